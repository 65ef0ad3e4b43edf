"""`topology.conf`: lines of `Key=value`, with comments, lines that go on, and host lists."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import attrs

from collc.ir.diagnostic import CollcError, Source, Span, error, nearest

from ..importing.figures import Figures
from ..importing.model import Draft
from ..importing.pasted import Line, lines
from .declared import Group, Lists, Named, Topology

__all__ = ["declared"]

#: the first key of a line -> the kind of topology
_KINDS = {"switchname": "tree", "blockname": "block", "ringname": "ring", "blocksizes": "block"}
_NAMES = {
    "switchname": "SwitchName", "blockname": "BlockName", "ringname": "RingName", "blocksizes": "BlockSizes",
    "switches": "Switches", "nodes": "Nodes", "linkspeed": "LinkSpeed", "level": "Level", "children": "Children",
}  # fmt: skip
_KEYS = "|".join(_NAMES)
#: a key and its value: in quotes, up to a blank, or none if the next key comes at once
_PAIR = re.compile(
    rf"\s*([A-Za-z][\w.]*)\s*=(?:\s*\"([^\"]*)\"|\s*(?!(?:{_KEYS})\s*=)([^\s\"]\S*)|())(?=\s|$)", re.IGNORECASE
)
#: the keys that follow a first one; `scontrol show topology` prints Level too
_FOLLOWING = {
    "switchname": ("switches", "nodes", "linkspeed", "level", "children"), "blockname": ("nodes",),
    "ringname": ("nodes",), "blocksizes": (),
}  # fmt: skip
_NEXT_WORD = re.compile(r"\s*(\S+)")
_COMMENT = re.compile(r"(?<!\\)#")
_INCLUDE = re.compile(r"\s*(include)\b(?!\s*=)", re.IGNORECASE)
_MOST_MISTAKES = 100  # then the text is not read on
_PREFERRED = ("tree", "block", "ring")


class _Statement:
    """One logical line, and the physical lines that it is joined from, with the blanks cut off before each."""

    def __init__(self, line: Line, text: str):
        self.lines = [(line, 0)]
        self.texts = [text.rstrip()]
        self.is_open = _is_open(text)

    def goes_on(self, text: str) -> bool:
        """Return whether a line belongs to this one.

        It does after a backslash or a comma, inside brackets, and if it begins with a key that begins no line.
        """
        if self.texts[-1].endswith(("\\", ",")):
            return True
        first = _PAIR.match(text)
        if first is None:
            return self.is_open and bool(text.strip())
        return first[1].lower() in _NAMES and first[1].lower() not in _KINDS

    def join(self, line: Line, text: str) -> None:
        """Add a line: without a blank between if a list goes on."""
        before = self.texts[-1].removesuffix("\\").rstrip()
        goes_on = before.endswith(",") or self.is_open
        indent = len(text) - len(text.lstrip()) if goes_on else 0
        self.texts[-1] = before if goes_on else f"{before} "
        self.texts.append(text[indent:].rstrip())
        self.lines.append((line, indent))
        self.is_open = _is_open(text, self.is_open)

    @cached_property
    def text(self) -> str:
        """The whole, once all lines are joined."""
        return "".join(self.texts)

    def place(self, start: int, end: int) -> Span:
        """Return the place of characters of the text, on one line."""
        index = max(bisect_right(self._starts, start) - 1, 0)
        line, indent = self.lines[index]
        offset = self._starts[index] - indent
        return line.span(start - offset, max(min(end - offset, len(line.text)), start - offset + 1))

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self.texts[:-1]), initial=0))


@attrs.frozen(eq=False)
class _Value:
    """The value of a key: its text, and its offset in the statement."""

    text: str
    start: int
    statement: _Statement

    @property
    def span(self) -> Span:
        return self.place(0, len(self.text))

    def place(self, start: int, end: int) -> Span:
        """Return the place of characters of the value."""
        return self.statement.place(self.start + start, self.start + end)


def declared(draft: Draft, sources: Sequence[Source], figures: Figures) -> Topology:
    """Return the topology in the lines of all texts; mistakes are added to the draft.

    A file may have lines of several kinds: ``figures.choice`` chooses, otherwise the tree comes first.
    """
    found, lists = dict[str, Topology](), Lists(figures)
    for source in sources:
        for statement in _statements(source):
            try:
                _declare(draft, found, statement, lists)
            except CollcError as failure:
                draft.take(failure)
            if len(draft.mistakes) >= _MOST_MISTAKES:
                break
    if len(found) < 2:
        return next(iter(found.values()), Topology("tree"))
    if figures.choice in found:
        found[figures.choice].is_chosen = True
        return found[figures.choice]
    kind = next(kind for kind in _PREFERRED if kind in found)
    others = ", ".join(other for other in found if other != kind)
    hint = f"`--choose NAME` takes another one: {others}"
    draft.assume(f"the topology of kind `{kind}`", "the file has several", found[kind].span, hint=hint)
    return found[kind]


def _is_open(text: str, before: bool = False) -> bool:
    """Return whether a line ends inside brackets."""
    opened, closed = text.rfind("["), text.rfind("]")
    return opened > closed if opened >= 0 or closed >= 0 else before


def _statements(source: Source) -> Iterator[_Statement]:
    """Yield the logical lines of a text."""
    held: _Statement | None = None
    for line in lines(source):
        text = _uncommented(line.text)
        if held is not None and held.goes_on(text):
            held.join(line, text)
        elif text.strip():
            if held is not None:
                yield held
            held = _Statement(line, text)
    if held is not None:
        yield held


def _uncommented(text: str) -> str:
    """Return a line without its comment; `\\#` begins none."""
    found = _COMMENT.search(text)
    return text[: found.start()] if found else text


def _declare(draft: Draft, found: dict[str, Topology], statement: _Statement, lists: Lists) -> None:
    """Add what a line declares; a line may have several declarations, as if their line ends were lost."""
    if include := _INCLUDE.match(statement.text):
        hint = "put the lines of that file here: an importer opens no other file"
        raise error("C0924", "found `Include`", span=statement.place(*include.span(1)), hint=hint)
    for values in _declarations(statement):
        first = next(iter(values))
        topology = found.setdefault(_KINDS[first], Topology(_KINDS[first], span=values[first].span))
        if first == "blocksizes":
            draft.note(
                f"BlockSizes={values[first].text[:200]} are sizes that Slurm plans with; no link depends on them"
            )
            continue
        if "linkspeed" in values:
            message = "ignored `LinkSpeed`, whose unit is arbitrary: Slurm does not use it either"
            _once(draft, message, values["linkspeed"].span)
        topology.groups.append(_group(values, first, lists))


def _once(draft: Draft, message: str, span: Span) -> None:
    if message not in draft.notes:
        draft.note(message)
        draft.warn("C0942", message, span)


def _group(values: dict[str, _Value], first: str, lists: Lists) -> Group:
    name = values[first]
    if not name.text:
        raise error("C0924", f"found no name after `{_NAMES[first]}=`", span=name.span)
    hosts, children = _listed(values.get("nodes"), lists), _listed(values.get("switches"), lists)
    if "level" in values and values["level"].text.strip("0"):
        hosts = ()  # `scontrol show topology` lists all hosts below a switch
    return Group(Named(name.text, name.span), hosts, children)


def _listed(value: _Value | None, lists: Lists) -> tuple[Named, ...]:
    return tuple(lists.names(value.text, value.place)) if value and value.text else ()


def _declarations(statement: _Statement) -> Iterator[dict[str, _Value]]:
    """Yield the keys, in lower case, and values of each declaration; the first key is that of a known kind."""
    values, position, text = dict[str, _Value](), 0, statement.text
    while position < len(text):
        pair = _PAIR.match(text, position)
        if pair is None:
            if found := _NEXT_WORD.match(text, position):
                span = statement.place(*found.span(1))
                raise error("C0924", f"found `{found[1][:80]}`, needed `Key=value`", span=span)
            break
        key = pair[1].lower()
        if key in _KINDS and values:
            yield values
            values = {}
        known = _FOLLOWING[next(iter(values))] if values else tuple(_KINDS)
        if key not in known:
            raise _unknown_key(pair, key, known, statement)
        if key in values:
            raise error("C0924", f"found `{pair[1]}` twice", span=statement.place(*pair.span(1)))
        group = next(number for number in (2, 3, 4) if pair[number] is not None)
        values[key] = _Value(pair[group], pair.start(group), statement)
        position = pair.end()
    yield values


def _unknown_key(pair: re.Match[str], key: str, known: Sequence[str], statement: _Statement) -> CollcError:
    names = [_NAMES[one] for one in known]
    hint = nearest(pair[1], names) or (f"known here: {', '.join(names)}" if names else None)
    needed = "needed a key of Slurm's topologies" if key not in _NAMES else "which does not belong here"
    return error("C0924", f"found `{pair[1]}`, {needed}", span=statement.place(*pair.span(1)), hint=hint)
