"""Where a cursor stands: the text of the statement before it, and the braces around it. Texts may be broken."""

from __future__ import annotations

import re

from collc.ir.frozen import frozen

__all__ = ["Context", "context_at"]

_IGNORED = re.compile(r'#[^\n]*|"[^"\n]*"?')
_PARTIAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z|\Z")
_FARTHEST = 20_000  # characters before the cursor that are looked at


@frozen
class Context:
    """What stands before a cursor.

    ``word`` is the beginning of the word at the cursor, ``before`` the statement up to it without the content of
    braces that are closed. ``owners`` are the texts before the open braces around it, outermost first. ``quoted``: the
    cursor is in a comment or a text in quotes.
    """

    before: str
    word: str
    owners: tuple[str, ...] = ()
    quoted: bool = False


def context_at(text: str, offset: int) -> Context:
    """Return the context of an offset.

    >>> context_at("schedule c using bfb { re", 25)
    Context(before=' ', word='re', owners=('schedule c using bfb ',), quoted=False)
    >>> context_at("param n = 2; topology t = to", 28).before
    ' topology t = '
    """
    text = text[max(0, offset - _FARTHEST) : offset]
    last = [match for match in _IGNORED.finditer(text) if match.end() == len(text)]
    quoted = bool(last) and not re.fullmatch(r'"[^"\n]*"', last[0][0])
    text = _IGNORED.sub(lambda match: '""' if match[0][0] == '"' else "", text)
    open_: list[str] = []
    statement = ""
    for char in text:
        if char == "{":
            open_.append(statement)
            statement = ""
        elif char == "}":
            statement = open_.pop() + "{}" if open_ else ""
            statement = "" if _ends_block(statement) else statement
        elif char == ";":
            statement = ""
        else:
            statement += char
    match = _PARTIAL.search(statement)
    start = match.start() if match else len(statement)
    return Context(statement[:start], statement[start:], tuple(open_), quoted)


def _ends_block(statement: str) -> bool:
    """Return whether braces that are closed end a statement: those of a body, where no expression can follow."""
    return (
        re.match(r"\s*(topology\s+\w+\s*\{|for\b|if\b|define\b|together\b|schedule\b.*\{|emit\b.*\{)", statement)
        is not None
    )
