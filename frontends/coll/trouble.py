"""What the parser knows where it stopped, and what a message and a repair consist of."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import attrs

from collc.ir.frozen import frozen

__all__ = [
    "DECLARATIONS", "KEYWORDS", "STATEMENTS", "Fix", "Sign", "Slip", "Trouble", "before", "bracketed", "called",
    "closing_offset", "comma_parts", "here", "rest_of_line",
]  # fmt: skip

DECLARATIONS = (
    "topology",
    "cluster",
    "collective",
    "together",
    "schedule",
    "emit",
    "include",
    "import",
    "param",
    "let",
    "function",
    "define",
)
STATEMENTS = (
    "param", "let", "function", "define", "call", "rank", "switch", "link", "for", "if", "at", "send", "reduce",
)  # fmt: skip
#: What a statement or declaration may begin with -> its terminal.
KEYWORDS = {word: word.upper() for word in (*DECLARATIONS, *STATEMENTS)}

_FOUND = re.compile(
    r"[^\W\d]\w*|[0-9]+(?:\.[0-9]+)?|\"[^\"\n]*\"|'[^'\n]*'|<->|\.\.\.|\.\.=|=>|<=|>=|==|!=|:=|->|<-|--|&&|\|\||//|/\*|\*\*|\.\.|."
)  # fmt: skip


@frozen
class Sign:
    """A token: its terminal, its text, where it begins (offset) and on which line."""

    type: str
    text: str
    start: int
    line: int

    @property
    def end(self) -> int:
        """The offset just after the token's last character."""
        return self.start + len(self.text)


@frozen
class Trouble:
    """Where the parser stopped: at ``position``, after the token ``last``.

    ``opener`` is the innermost open bracket, ``open_blocks`` the number of open ``{``.
    """

    text: str = attrs.field(repr=False)
    position: int
    last: Sign | None
    opener: Sign | None
    accepts: Callable[..., frozenset[str]]
    fits: Callable[..., bool]
    open_blocks: int = 0

    @property
    def found(self) -> str:
        """The word, number or sign found; empty at the end of the text."""
        match = _FOUND.match(self.text, self.position)
        return match.group() if match else ""

    @cached_property
    def expected(self) -> frozenset[str]:
        """The terminals that the grammar allows at the position."""
        return self.accepts()

    @property
    def after(self) -> int:
        """The place just after the last token."""
        return self.last.end if self.last is not None else 0

    @property
    def on_new_line(self) -> bool:
        """Whether a line ends between the last token and the position."""
        return "\n" in self.text[self.after : self.position]

    def what(self) -> str:
        """Return what was found, for a message."""
        return f"`{self.found}`" if self.found else "the end of the text"


@frozen
class Fix:
    """A message, its place (text offsets), and a repair: ``insert`` replaces ``skip`` characters.

    What is put in reads ``sign``, or what stood there.
    ``names`` are names that the text tried to declare, ``opener`` is the bracket that is not closed. The parser skips
    the statement from ``drop_from``, or from the place of the error where that is absent.
    """

    code: str
    message: str
    start: int
    end: int
    hint: str | None = None
    notes: tuple[str, ...] = ()
    insert: str | None = None
    sign: str | None = None
    skip: int = 0
    names: tuple[str, ...] = ()
    drop_from: int | None = None
    opener: Sign | None = None

    @property
    def repairs(self) -> bool:
        """Whether the text is changed so that the parser can go on at the same place."""
        return self.insert is not None or self.skip > 0


@frozen
class Slip:
    """One row: an example of the mistake, and the function that recognizes it."""

    example: str
    recognize: Callable[[Trouble], Fix | None]


def here(trouble: Trouble, code: str, message: str, **more: Any) -> Fix:  # Any: named arguments of Fix
    """Return a fix whose place is what was found."""
    return Fix(code, message, trouble.position, trouble.position + len(trouble.found), **more)


# ---- the text around

#: characters that are searched for a closing bracket: arguments and bodies of mistakes are short
_FARTHEST = 10_000
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_BRACKETS = re.compile(r'"[^"\n]*"|#[^\n]*|[()\[\]{}]')
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(\Z")


def closing_offset(text: str, opener: int) -> int:
    """Return the offset after the bracket that closes the one at ``opener``; the end of its line if none does."""
    open_: list[str] = []
    for match in _BRACKETS.finditer(text, opener, opener + _FARTHEST):
        sign = match.group()
        if sign in _CLOSING:
            open_.append(_CLOSING[sign])
        elif open_ and sign == open_[-1]:
            open_.pop()
            if not open_:
                return match.end()
    end = text.find("\n", opener)
    return len(text) if end < 0 else end


def bracketed(text: str, opener: int) -> str:
    """Return the text between brackets, in one line."""
    return " ".join(text[opener + 1 : closing_offset(text, opener) - 1].split())


def comma_parts(text: str) -> list[str]:
    """Return the parts of a text between commas outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def called(t: Trouble) -> str | None:
    """Return the name of the call whose arguments the parser is in."""
    if t.opener is None or t.opener.type != "LPAR":
        return None
    match = _CALLED.search(t.text, max(t.opener.start - 200, 0), t.opener.end)
    return match[1] if match and match[1] not in KEYWORDS else None


def before(t: Trouble, length: int = 200) -> str:
    """Return the end of the text before the place of the trouble."""
    return t.text[max(t.position - length, 0) : t.position]


def rest_of_line(t: Trouble) -> str:
    """Return the text from the place of the trouble to the end of the line."""
    return t.text[t.position :].split("\n", 1)[0]
