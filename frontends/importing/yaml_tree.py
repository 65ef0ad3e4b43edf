"""Untrusted YAML as a tree with places: maps, lists and scalars; no anchors, aliases, tags or keys twice.

Places are those of the text as the user pasted it: terminal codes and quote marks are removed before it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, Related, Source, Span, error
from collc.ir.frozen import frozen

from .pasted import Line, lines

if TYPE_CHECKING:
    from yaml.events import CollectionStartEvent, Event, NodeEvent, ScalarEvent

__all__ = ["Fields", "Items", "Node", "Scalar", "parse_yaml"]

_DEEPEST = 50
_MOST_EVENTS = 100_000  # a switch of `topology.yaml` takes six
_MOST_CHARACTERS = 2_000_000  # which take seconds
#: line ends of YAML 1.1 that are none here: they would shift the places
_OTHER_ENDS = str.maketrans("\x85\u2028\u2029", "   ")
_SURROGATE = re.compile("[\ud800-\udfff]")


@frozen(eq=False)
class Scalar:
    """A text; numbers and booleans are texts too."""

    text: str
    span: Span


@frozen(eq=False)
class Items:
    """A list of values, in order."""

    items: tuple[Node, ...]
    span: Span


@frozen(eq=False)
class Fields:
    """A map: the key of each text, and its value, in order."""

    entries: dict[str, tuple[Scalar, Node]]
    span: Span

    def get(self, key: str) -> Node | None:
        """Return the value of a key, or None."""
        return self.entries[key][1] if key in self.entries else None


class _Mark(Protocol):
    """A place of the parser: line and column from 0."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


Node: TypeAlias = "Scalar | Items | Fields"


def parse_yaml(source: Source) -> Node:
    """Return the value of a YAML text; raise C0929 if it is none, has references or tags, or is too large."""
    import yaml

    if len(source.text) > _MOST_CHARACTERS:
        raise error("C0929", f"found {len(source.text)} characters of YAML, needed at most {_MOST_CHARACTERS}")
    text = _Text(source)
    try:
        events = text.allowed(yaml.parse(text.joined, Loader=yaml.SafeLoader))
        return _tree(events, text)
    except yaml.MarkedYAMLError as failure:
        problem = failure.problem or failure.context or "it ends too early"
        raise _not_yaml(problem, text.at(failure.problem_mark or failure.context_mark)) from None
    except yaml.reader.ReaderError as failure:
        problem = f"the character {failure.character:#x} is not allowed"
        raise _not_yaml(problem, text.offset(failure.position)) from None
    except (ValueError, OverflowError, RecursionError):  # an escape or a version beyond all limits
        raise _not_yaml("it has a number out of range", None) from None


def _not_yaml(problem: str, span: Span | None) -> CollcError:
    return error("C0929", f"found text that is not YAML: {problem[:200]}", span=span)


class _Text:
    """The cleaned text, and the places of its characters in the original."""

    def __init__(self, source: Source):
        self.source = source
        self.lines: Sequence[Line] = list(lines(source))
        self.joined = "\n".join(line.text.translate(_OTHER_ENDS) for line in self.lines)

    def at(self, mark: _Mark | None, length: int = 1) -> Span | None:
        """Return the place of ``length`` characters from a mark of the parser."""
        if mark is None:
            return None
        line = self.lines[min(mark.line, len(self.lines) - 1)]
        return line.span(mark.column, mark.column + length)

    def between(self, start: _Mark | None, end: _Mark | None) -> Span:
        """Return the place from one mark to another, or to the end of the first line."""
        assert start is not None and end is not None  # of every event of a text
        line = self.lines[min(start.line, len(self.lines) - 1)]
        stop = end.column if end.line == start.line else len(line.text.rstrip())
        return line.span(start.column, max(stop, start.column + 1))

    def offset(self, position: int) -> Span:
        """Return the place of a character of the joined text."""
        row = self.joined.count("\n", 0, position)
        column = position - (self.joined.rfind("\n", 0, position) + 1)
        return self.lines[row].span(column, column + 1)

    def allowed(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events; raise C0929 for what is not allowed, for a second document, and for too many."""
        import yaml

        documents = 0
        for count, event in enumerate(events):
            if count > _MOST_EVENTS:
                raise error("C0929", f"found more than {_MOST_EVENTS} values", span=self.at(event.start_mark))
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                raise error("C0929", "found a second document, needed one", span=self.at(event.start_mark, 3))
            if isinstance(event, yaml.NodeEvent):
                self._check_plain(event)
            yield event

    def _check_plain(self, event: NodeEvent) -> None:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            found = f"the alias `*{event.anchor}`"
        elif event.anchor is not None:
            found = f"the anchor `&{event.anchor}`"
        elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag is not None:
            found = "a tag"
        else:
            return
        hint = "write the value itself: a small text with references can describe a huge value"
        raise error("C0929", f"found {found}, needed a value", span=self.at(event.start_mark), hint=hint)


@attrs.define
class _Open:
    """A list or a map whose end has not been read: its values, and the key that waits for a value."""

    start: _Mark | None
    is_map: bool
    items: list[Node] = attrs.Factory(list)
    entries: dict[str, tuple[Scalar, Node]] = attrs.Factory(dict)
    key: Scalar | None = None


def _tree(events: Iterator[Event], text: _Text) -> Node:
    import yaml

    opened, last = list[_Open](), None
    for event in events:
        value: Node | None = None
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(_opened(event, opened, text))
        elif isinstance(event, yaml.ScalarEvent):
            value = _scalar(event, text)
        elif isinstance(event, yaml.CollectionEndEvent):
            value = _closed(opened.pop(), event, text)
        if value is not None and opened:
            _add(opened[-1], value)
        last = value or last
    if last is None:
        raise error("C0929", "found no value, needed YAML", span=text.lines[0].span())
    return last


def _opened(event: CollectionStartEvent, opened: Sequence[_Open], text: _Text) -> _Open:
    import yaml

    if len(opened) >= _DEEPEST:
        raise error("C0929", f"found more than {_DEEPEST} levels of nesting", span=text.at(event.start_mark))
    if opened and opened[-1].is_map and opened[-1].key is None:
        raise error("C0929", "found a list or a map as a key, needed a text", span=text.at(event.start_mark))
    return _Open(event.start_mark, isinstance(event, yaml.MappingStartEvent))


def _closed(one: _Open, event: Event, text: _Text) -> Node:
    span = text.between(one.start, event.end_mark)
    return Fields(one.entries, span) if one.is_map else Items(tuple(one.items), span)


def _scalar(event: ScalarEvent, text: _Text) -> Scalar:
    span = text.between(event.start_mark, event.end_mark)
    if _SURROGATE.search(event.value):
        raise error("C0929", "found half of a character, needed text", span=span)
    return Scalar(event.value, span)


def _add(one: _Open, value: Node) -> None:
    if not one.is_map:
        one.items.append(value)
    elif one.key is None:
        assert isinstance(value, Scalar)  # _opened refuses others
        one.key = value
    else:
        if one.key.text in one.entries:
            first = Related("the first one", one.entries[one.key.text][0].span)
            raise error("C0929", f"found the key `{one.key.text}` twice", span=one.key.span, related=[first])
        one.entries[one.key.text] = (one.key, value)
        one.key = None
