"""The grammar of the language as rules, read from lark's file by lark's own grammar of such files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import TypeAlias

import attrs
from lark import Lark, Token, Tree

__all__ = ["Either", "Leaf", "Node", "Repeat", "Row", "Rule", "Word", "leaves", "rules", "words"]

#: a regular expression of one keyword: the word, and what must not follow
_KEYWORD = re.compile(r"/([a-z]+)\(\?![^)]*\)/")
#: the parts of the grammar, each above a line `// ---- ..` or the end
_PARTS = ("Declarations", "Statements", "Expressions", "Words")


@attrs.frozen
class Leaf:
    """Text as it stands (``fixed``), the name of another rule, or a kind of word."""

    text: str
    kind: str

    @property
    def is_rule(self) -> bool:
        """Whether it names a rule, not a token or a text."""
        return self.kind == "rule"


@attrs.frozen
class Row:
    """Parts that follow each other."""

    parts: tuple[Node, ...]


@attrs.frozen
class Either:
    """Alternatives."""

    parts: tuple[Node, ...]


@attrs.frozen
class Repeat:
    """A part with how often it may stand: ``?`` once or not at all, ``*`` any number of times, ``+`` at least once."""

    part: Node
    sign: str


Node: TypeAlias = Leaf | Row | Either | Repeat


@attrs.frozen
class Rule:
    """A rule: its part of the grammar, its text as in the file, and what it says."""

    name: str
    part: str
    text: str
    body: Node

    def others(self) -> list[str]:
        """Return the other rules that it names, each once, in order."""
        named = (leaf.text for leaf in leaves(self.body) if leaf.is_rule)
        return [name for name in dict.fromkeys(named) if name != self.name]


@attrs.frozen
class Word:
    """A kind of word that is no fixed text, with its regular expression and the comment above it."""

    name: str
    pattern: str
    comment: str


@cache
def _text() -> str:
    return (files("collc.frontends.coll") / "grammar.lark").read_text("utf-8")


@cache
def _tree() -> Tree[Token]:
    reader = Lark.open_from_package(
        "lark", "lark.lark", ["grammars"], parser="lalr", maybe_placeholders=False, propagate_positions=True
    )
    return reader.parse(_text())


def rules() -> list[Rule]:
    """Return all rules in the order of the file.

    >>> [rule.name for rule in rules()][:3], rules()[1].others()
    (['file', 'expression', 'declaration'], ['expr', 'defaults'])
    >>> rules()[3].text, [leaf.text for leaf in leaves(rules()[3].body)]
    ('include: INCLUDE STRING ";"', ['include', 'STRING', ';'])
    """
    found = []
    for rule in _tree().find_data("rule"):
        name, start = str(rule.children[0]).lstrip("?!"), rule.meta.start_pos
        part = _PARTS[_text().count("// ----", 0, start)]
        found.append((start, Rule(name, part, _tidy(_text()[start : rule.meta.end_pos]), _node(rule.children[-1]))))
    return [rule for _, rule in sorted(found, key=lambda pair: pair[0])]


def _tidy(text: str) -> str:
    """Return a rule without comments, blank lines at the end, and the marks that only the parser reads."""
    lines = [re.sub(r"\s*//.*$", "", line) for line in re.sub(r"^[?!]", "", text).splitlines()]
    bare = [re.sub(r"\s+-> \w+$", "", line) for line in lines if line.strip()]
    return "\n".join(row for line in bare for row in wrap(line, 100, subsequent_indent="    "))


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves of a part in order."""
    match node:
        case Leaf():
            yield node
        case Repeat(part=part):
            yield from leaves(part)
        case Row(parts=parts) | Either(parts=parts):
            for one in parts:
                yield from leaves(one)


# ---- from lark's tree


def _node(tree: Tree[Token] | Token) -> Node:
    assert isinstance(tree, Tree)
    match tree.data:
        case "literal":
            return Leaf(str(tree.children[0]).strip('"'), "fixed")
        case "name":
            return _named(str(tree.children[0]))
        case "alias":
            return _node(tree.children[0])
        case "maybe":
            return Repeat(_node(tree.children[0]), "?")
        case "expr":
            return Repeat(_node(tree.children[0]), str(tree.children[1]))
        case "expansions":
            return Either(tuple(map(_node, tree.children)))
    return Row(tuple(map(_node, tree.children)))


def _named(name: str) -> Node:
    if name.islower():
        return Leaf(name, "rule")
    texts = [Leaf(text, "fixed") for text in _fixed(name)]
    return Leaf(name, "word") if not texts else texts[0] if len(texts) == 1 else Either(tuple(texts))


@cache
def _tokens() -> dict[str, list[str]]:
    """Return the texts and regular expressions of each kind of word, with their marks."""
    return {
        str(token.children[0]): [str(part) for part in token.scan_values(_is_text)]
        for token in _tree().find_data("token")
    }


def _is_text(part: Tree[Token] | Token) -> bool:
    return isinstance(part, Token) and part.type in ("STRING", "REGEXP")


def _fixed(name: str) -> list[str]:
    """Return the texts that a kind of word may be; none if it is a regular expression."""
    texts = _tokens()[name]
    if all(text.startswith('"') for text in texts):
        return [text.strip('"') for text in texts]
    keyword = _KEYWORD.fullmatch(texts[0])
    return [keyword[1]] if keyword and len(texts) == 1 else []


def words() -> list[Word]:
    """Return the kinds of words that are regular expressions, in the order of the file.

    >>> [word.name for word in words()][:3], words()[0].pattern
    (['NUMBER', 'STRING', 'NAME'], '[0-9]+(\\\\.[0-9]+)?')
    """
    found = []
    for name, texts in _tokens().items():
        if not _fixed(name) and name not in ("COMMENT", "BLANK"):
            above = re.search(rf"((?:^//.*\n)+){name}\b", _text(), re.MULTILINE)
            comment = " ".join(re.findall(r"^// ?(.*)", above[1], re.MULTILINE)) if above else ""
            found.append((_text().index(f"\n{name}"), Word(name, texts[0].strip("/"), comment)))
    return [word for _, word in sorted(found, key=lambda pair: pair[0])]
