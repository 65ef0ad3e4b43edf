"""The page of the grammar: a diagram and the text of every rule."""

from __future__ import annotations

from collections.abc import Iterator

from .grammar import Rule, rules, words
from .markdown import fenced, head, page, table

__all__ = ["FOLDER", "grammar_page"]

#: the folder of the diagrams, beside the page
FOLDER = "grammar"

_TEXT = """All rules of `.coll` files, as railroad diagrams and as text. [The language](../language.md) says what the
declarations mean.

Follow a line from left to right. Round boxes are literal text. Square boxes are other rules of this page, or
[words](#words). A line that leads back repeats. `[a]` is optional, `a*` is any number, `a+` is one or more.

`#` begins a comment that ends with the line. Blanks and line breaks separate words, and mean nothing else. A keyword
is one only where the grammar allows it: `rank` or `part` may also be names."""


def grammar_page() -> str:
    """Return the text of the page."""
    return page(head("Grammar", _TEXT), *_rules(rules()), *_words())


def _rules(listed: list[Rule]) -> Iterator[str]:
    part = ""
    for rule in listed:
        if rule.part != part:
            part = rule.part
            yield f"## {part}"
        used = rule.others()
        yield f"### {rule.name}"
        yield f"![What may follow what in `{rule.name}`]({FOLDER}/{rule.name}.svg)"
        yield fenced("text", rule.text)
        if used:
            yield f"Uses {', '.join(f'[{name}](#{name})' for name in used)}."


def _words() -> Iterator[str]:
    yield "## Words\n\nEach is a regular expression, as in Python."
    rows = [(f"`{word.name}`", f"`` {word.pattern} ``", word.comment) for word in words()]
    yield table(("word", "regular expression", "use"), rows)
