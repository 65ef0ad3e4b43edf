"""The tokens of the language as rules, from the tables of the language: terminals, units, families, kinds, names.

A rule has one kind for each group of its pattern; the groups cover the whole match. The first rule that matches wins.
Patterns are in the common part of the regular expressions of Python and of TextMate, and match within one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from collc.backends import TARGETS
from collc.frontends.coll.families import FAMILIES, FUNCTIONS, OPERATORS
from collc.frontends.coll.groups import GROUPS
from collc.frontends.coll.kinds import PREDEFINED
from collc.frontends.coll.tables import tables
from collc.frontends.importing.formats import IMPORTS
from collc.frontends.units import UNITS
from collc.passes import SCHEDULERS

__all__ = ["KINDS", "WORD_OPERATORS", "Rule", "keywords", "rules"]

#: The kinds of tokens.
KINDS = (
    "space", "comment", "string", "number", "unit", "keyword", "word-operator", "operator", "punctuation", "constant",
    "builtin", "function", "kind", "option", "name",
)  # fmt: skip

#: The keywords that are operators of expressions.
WORD_OPERATORS = ("mod", "and", "or", "not")
_CONSTANTS = ("true", "false")
_OPERATORS = ("DUPLEX", "SIMPLEX", "COMPARE", "DOTS", "EQUAL", "PLUS", "MINUS", "TIMES")
#: The terminals that are neither words nor signs.
_CLASSES = ("NUMBER", "BLANK", "STRING", "COMMENT")
_BLANKS = r"[ \t\r\f]+"
_BLANKS_OR_NONE = r"[ \t\r\f]*"


class Rule(NamedTuple):
    """A regular expression, and the kind of each of its groups."""

    pattern: str
    kinds: tuple[str, ...]


def keywords() -> tuple[str, ...]:
    """Return the keywords: the terminals of the grammar that are words.

    >>> keywords()[:3]
    ('among', 'and', 'as')
    """
    found = (re.fullmatch(r"([a-z]+)\(\?!.*\)", text) for text in tables().terminals.values())
    return tuple(sorted(match[1] for match in found if match))


def rules() -> tuple[Rule, ...]:
    """Return the rules, first choice first."""
    return (*_contexts(), *_lexical(), *_words(), *_signs())


def _lexical() -> Iterable[Rule]:
    """Yield the rules for blanks, comments, texts and numbers."""
    terminals = tables().terminals
    yield Rule(f"({_BLANKS})", ("space",))
    yield Rule(r"(#[^\n]*)", ("comment",))
    yield Rule(r'("[^"\n]*")', ("string",))
    number = r"[0-9]+(?:\.[0-9]+)?"
    assert terminals["NUMBER"] == r"[0-9]+(\.[0-9]+)?", "the rule below is this terminal without its group"
    yield Rule(rf"({number})({_BLANKS_OR_NONE})({_any(UNITS)})(?![A-Za-z0-9_/])", ("number", "space", "unit"))
    yield Rule(f"({number})", ("number",))


def _contexts() -> Iterable[Rule]:
    """Yield the rules for words with hyphens, which have a meaning only in their places."""
    word = r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*"
    end = r"(?![A-Za-z0-9_-])"
    named = {"using": [*SCHEDULERS.own], "as": [*TARGETS.own, *IMPORTS.own]}
    for keyword, names in named.items():
        others = [name for name in names if name not in keywords()]
        yield Rule(f"({keyword})({_BLANKS})({_any(others)}){end}", ("keyword", "space", "kind"))
    yield Rule(f"(=)({_BLANKS_OR_NONE})({_any(PREDEFINED)})(?={_BLANKS}on\\b)", ("operator", "space", "kind"))
    yield Rule(
        f"({_any(name for name in (*PREDEFINED, *SCHEDULERS.own, *TARGETS.own) if '-' in name)}){end}", ("kind",)
    )
    option = f"({word})({_BLANKS_OR_NONE})(:)"
    rest = ("option", "space", "punctuation")
    yield Rule(rf"([{{,])({_BLANKS_OR_NONE}){option}", ("punctuation", "space", *rest))
    yield Rule(rf"^({_BLANKS})(?!(?:{_any(keywords())})(?![A-Za-z0-9_])){option}", ("space", *rest))


def _words() -> Iterable[Rule]:
    """Yield the rules for keywords, names of the language, and other names."""
    end = "(?![A-Za-z0-9_])"
    yield Rule(f"({_any(WORD_OPERATORS)}){end}", ("word-operator",))
    yield Rule(f"({_any(word for word in keywords() if word not in WORD_OPERATORS)}){end}", ("keyword",))
    yield Rule(f"({_any(_CONSTANTS)}){end}", ("constant",))
    known = {*FAMILIES.own, *OPERATORS, *FUNCTIONS, *GROUPS}
    yield Rule(rf"({_any(known)})(?={_BLANKS_OR_NONE}\()", ("builtin",))
    yield Rule(rf"([A-Za-z_][A-Za-z0-9_]*)(?={_BLANKS_OR_NONE}\()", ("function",))
    yield Rule(r"([A-Za-z_][A-Za-z0-9_]*)", ("name",))


def _signs() -> Iterable[Rule]:
    """Yield the rules for the terminals that are signs."""
    found = tables().terminals.items()
    signs = {name: text for name, text in found if name not in _CLASSES and not re.search("[A-Za-z]", text)}
    yield Rule(f"({'|'.join(signs[name] for name in _OPERATORS)})", ("operator",))
    yield Rule(f"({'|'.join(text for name, text in signs.items() if name not in _OPERATORS)})", ("punctuation",))


def _any(words: Iterable[str]) -> str:
    """Return a pattern of alternatives, longer words first; none of them has a sign of regular expressions."""
    return "|".join(sorted(set(words), key=lambda word: (-len(word), word)))
