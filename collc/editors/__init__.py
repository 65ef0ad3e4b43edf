"""The language for editors: one list of rules, from which a lexer of Pygments and a TextMate grammar are made.

Importing this package or :mod:`.rules` needs no other package; :mod:`.lexer` needs Pygments.
"""
