"""Text -> Spec.

Enters: the text of a ``.coll`` file. Leaves: a :class:`collc.ir.spec.Spec` with source spans, or all mistakes of the
file at once. A frontend knows only :mod:`collc.ir`; nothing in a file can make it read other files than it names.
"""
