"""A language server for ``.coll`` files: what editors show while a file is written.

Only :mod:`.server` needs the package pygls. Everything else takes texts and places, and knows no protocol. No answer
needs a schedule but the cost of a collective, which a process of its own computes within a time limit.
"""
