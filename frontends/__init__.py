"""Text -> Spec.

Input: the text of a ``.coll`` file. Output: a :class:`collc.ir.spec.Spec` with source spans, or all mistakes of the
file at once. A frontend imports only :mod:`collc.ir`, and reads no files but those that a file names.
"""
