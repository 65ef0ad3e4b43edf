"""Text in Graphviz's language -> calls of an object's methods, by the grammar beside this file; places of mistakes.

lark calls a method for each rule as soon as its text is complete, so that no tree of a large text is in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from collc.ir.diagnostic import CollcError, Source, error
from collc.ir.shown import clipped

from ..importing.trees import place_at

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

__all__ = ["Id", "Items", "identifier", "items_of", "parse"]

#: what a backslash does in quotes: it stands before a quote, or before the end of a line that goes on
_ESCAPES = re.compile(r'\\(?:(")|\r?\n)')

#: the first letter of a wrong text -> what is wrong
_UNCLOSED = {
    '"': ("a quotation that does not end", None), "<": ("an HTML label that does not end", None),
    "[": ("a list of attributes that does not end", "close it by `]`"), "/": ("a comment that does not end", None),
}  # fmt: skip

#: terminal -> how messages call it
_TERMINALS = {
    "OPEN": "`{`", "_CLOSE": "`}`", "_SEMI": "`;`", "_COMMA": "`,`", "_EQUAL": "`=`", "_COLON": "`:`",
    "_PLUS": "`+`", "ARROW": "`->` or `--`", "LIST": "attributes in `[..]`", "NAME": "a name", "$END": "the end",
}  # fmt: skip


class Id(NamedTuple):
    """An identifier: its text without quotes, the offset where it begins, and its length in the source."""

    text: str
    start: int
    length: int
    html: bool = False


class Items(NamedTuple):
    """The attributes in brackets that begin at the offset ``start``; the offsets of values count from there."""

    values: Mapping[str, Id]
    start: int


def parse(source: Source, builder: object) -> None:
    """Call a builder's method for each rule of the grammar; raise C0924 at the first place that it does not allow."""
    from lark.exceptions import UnexpectedInput

    try:
        _lark(builder).parse(source.text, start="start")
    except UnexpectedInput as failure:
        raise _refused(source, failure, len(source.text), 0) from None


def items_of(source: Source, token: Token, known: dict[str, Mapping[str, Id]]) -> Items:
    """Return the attributes of a token LIST; ``known`` has those of equal texts."""
    from lark.exceptions import UnexpectedInput

    text = str(token)
    start = token.start_pos or 0
    if text not in known:
        try:
            tree = _items().parse(text[1:-1], start="items")
        except UnexpectedInput as failure:
            raise _refused(source, failure, len(text) - 2, start + 1) from None
        known[text] = dict(_item(tree) for tree in tree.children)
    return Items(known[text], start)


# Any: what a tree of lark has, lark does not declare
def _item(tree: Any) -> tuple[str, Id]:
    name, value = tree.children
    found = identifier(name, 1)  # the bracket is not part of the text
    return found.text, identifier(value, 1) if value is not None else Id("true", found.start, found.length)


# Any: as above
def _of_token(token: Any, shift: int) -> Id:
    start, text = token.start_pos + shift, str(token)
    return Id(text[1:-1], start, len(text), True) if token.type == "HTML" else Id(text, start, len(text))


# Any: as above
def identifier(found: Any, shift: int = 0) -> Id:
    """Return the identifier of a token, of tokens in quotes, or of a tree of those; offsets are moved by ``shift``."""
    if isinstance(found, Id):
        return found
    if isinstance(found, str):
        return _of_token(found, shift)
    tokens = found if isinstance(found, list) else found.children
    start, end = tokens[0].start_pos + shift, tokens[-1].end_pos + shift
    return Id("".join(_ESCAPES.sub(lambda match: match[1] or "", token[1:-1]) for token in tokens), start, end - start)


def _lark(builder: object = None) -> Lark:
    """Return a parser that calls the builder's methods, which is of any class; one that gives trees without it."""
    from lark import Lark

    with open(os.path.join(os.path.dirname(__file__), "grammar.lark"), encoding="utf-8") as stream:
        return Lark(
            stream.read(), parser="lalr", start=["start", "items"], maybe_placeholders=True, transformer=builder
        )


@cache
def _items() -> Lark:
    """Return the parser of lists of attributes, which gives trees."""
    return _lark()


def _refused(source: Source, failure: UnexpectedInput, end: int, shift: int) -> CollcError:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    if isinstance(failure, UnexpectedCharacters):
        at = shift + (failure.pos_in_stream or 0)
        letter = source.text[at]
        found, hint = _UNCLOSED.get(letter, (f"`{clipped(letter)}`", None))
        if letter.isdecimal() or letter in "-.":
            word = re.compile(r"[\w.+-]+").match(source.text, at)
            found = f"`{clipped(word[0])}`, which is no number and no name" if word else found
            hint = "write it in quotes"
        return error("C0924", f"found {found}", span=place_at(source, at), hint=hint)
    assert isinstance(failure, UnexpectedToken)
    wanting = sorted({_TERMINALS[name] for name in failure.expected if name in _TERMINALS})
    needed = f", needed {' or '.join(wanting)}" if 0 < len(wanting) <= 3 else ""
    token = failure.token
    if token.type == "$END":
        at = max(len(source.text[: shift + end].rstrip()) - 1, 0)
        return error("C0924", f"the text ends too early{needed}", span=place_at(source, at))
    at = shift + (token.start_pos or 0)
    return error("C0924", f"found `{clipped(str(token))}`{needed}", span=place_at(source, at, _width(str(token))))


def _width(text: str) -> int:
    """Return how many characters of a text are on its first line."""
    return len(text.split("\n", 1)[0])
