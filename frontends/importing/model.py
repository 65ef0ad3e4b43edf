"""The network that a reader builds: ranks, switches and cables by the machine's names, and what was assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Severity, Span, error, warning
from collc.ir.frozen import frozen
from collc.ir.links import LinkClass
from collc.ir.node_names import LONGEST_NAME
from collc.ir.topology import Topology

__all__ = ["OPEN_END", "Cable", "Draft", "Imported", "Note", "is_open_end", "wrong_name"]

#: The switch that the NICs of a single machine are linked to. ``fabric/rail0`` is one of several.
OPEN_END = "fabric"

_MOST_WARNINGS = 20  # of one kind; the last says how many more there are


def is_open_end(name: str) -> bool:
    """Return whether a node stands for a fabric that another file describes.

    >>> is_open_end("fabric"), is_open_end("fabric/rail0"), is_open_end("fabric2")
    (True, True, False)
    """
    return name == OPEN_END or name.startswith(f"{OPEN_END}/")


@frozen
class Cable:
    """``count`` equal parallel links from ``a`` to ``b``, and back if ``duplex``.

    ``bandwidth`` of each, in bytes per second or in link units as the network's ``unit`` says, and ``latency`` in
    seconds. Cables with the same ``label`` in a row stand under one comment.
    """

    a: str
    b: str
    bandwidth: Fraction
    latency: Fraction = Fraction(0)
    duplex: bool = True
    count: int = 1
    label: str = ""


@frozen
class Note:
    """A sentence for the comments of the `.coll` file: an assumption, or a fault that was found."""

    text: str


@frozen
class Imported:
    """A network as a file describes it, in the order of the file.

    ``ranks`` and ``switches`` are names, all distinct. ``format`` is the reader's. ``hosts`` says that ranks are hosts
    (a fabric), whose insides another file may describe. ``title`` is the network's name in the file, if it has one.
    ``gamma`` and ``epsilon`` (seconds) are those of :class:`~collc.ir.topology.Topology`, and so are ``multicast`` and
    ``reduces``, with names of switches.
    """

    format: str
    ranks: tuple[str, ...]
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    notes: tuple[Note, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    unit: str = "B/s"
    hosts: bool = False
    title: str = ""
    gamma: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    multicast: tuple[str, ...] = ()
    reduces: tuple[str, ...] = ()

    def topology(self, name: str) -> Topology:
        """Return the network as a topology of this name; ranks first, then switches."""
        names = (*self.ranks, *self.switches)
        number = {node: i for i, node in enumerate(names)}
        links = [(number[a], number[b], kind) for a, b, kind in self.links()]
        unit = self.unit if links else "link"  # without links there is no bandwidth, and the language sees no unit
        found = Topology.from_links(name, len(self.ranks), links, len(self.switches), unit=unit, node_names=names)
        multicast, reduces = (tuple(sorted(number[name] for name in able)) for able in (self.multicast, self.reduces))
        return attrs.evolve(
            found, gamma=self.gamma, epsilon=self.epsilon, multicast=multicast, reduces=reduces
        )  # fmt: skip

    def links(self) -> Iterator[tuple[str, str, LinkClass]]:
        """Yield every directed link: of a duplex cable there, then back, for each of its parallel links."""
        for cable in self.cables:
            kind = LinkClass(cable.bandwidth, cable.latency)
            for _ in range(cable.count):
                yield cable.a, cable.b, kind
                if cable.duplex:
                    yield cable.b, cable.a, kind


class Draft:
    """A network while it is being read: mistakes and warnings are collected, and reported together at the end."""

    def __init__(self, format: str, unit: str = "B/s", hosts: bool = False):
        self.format, self.unit, self.hosts = format, unit, hosts
        self.title, self.gamma, self.epsilon = "", Fraction(0), Fraction(0)
        self.multicast, self.reduces = list[str](), list[str]()
        self.ranks: dict[str, Span | None] = {}
        self.switches: dict[str, Span | None] = {}
        self.cables: list[Cable] = []
        self.notes: dict[str, None] = {}
        self.warnings: list[Diagnostic] = []
        self.mistakes: list[Diagnostic] = []
        self._counts: Counter[str] = Counter()

    # ---- nodes and cables

    def rank(self, name: str, span: Span | None = None) -> str:
        """Declare a rank and return its name; a name twice is a mistake (C0930)."""
        return self._declare(self.ranks, name, span)

    def switch(self, name: str, span: Span | None = None) -> str:
        """Declare a switch and return its name; a name twice is a mistake (C0930)."""
        return self._declare(self.switches, name, span)

    def _declare(self, table: dict[str, Span | None], name: str, span: Span | None) -> str:
        if problem := wrong_name(name):
            message = f'found {problem}, needed a name of at most {LONGEST_NAME} printable characters, and no `"`'
            self.wrong("C0931", message, span)
        elif name in self:
            self.wrong("C0930", f"found `{name}` twice", span, hint="rename one of them")
        table[name] = span
        return name

    def __contains__(self, name: object) -> bool:
        return name in self.ranks or name in self.switches

    def link(
        self, a: str, b: str, bandwidth: Fraction, latency: Fraction = Fraction(0), *, duplex: bool = True,
        count: int = 1, label: str = "",
    ) -> None:  # fmt: skip
        """Add ``count`` parallel links of ``bandwidth`` each between declared nodes."""
        self.cables.append(Cable(a, b, Fraction(bandwidth), Fraction(latency), duplex, count, label))

    # ---- what is said about them

    def note(self, text: str) -> None:
        """Add a comment for the `.coll` file; the same text counts once."""
        self.notes.setdefault(text)

    def assume(self, what: str, source: str, span: Span | None = None, hint: str | None = None) -> None:
        """Record a default (C0940): ``what`` is assumed, as ``source`` has it. The same default counts once."""
        text = f"assumed {what} ({source})"
        if text not in self.notes:
            self.note(text)
            self.warn("C0940", text, span, hint=hint)

    def fault(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        """Record what looks broken in the machine (C0941). The model keeps it as the file describes it."""
        self.note(message)
        self.warn("C0941", message, span, hint=hint)

    def warn(self, code: str, message: str, span: Span | None = None, hint: str | None = None) -> None:
        """Add a warning; after many of one code only their number counts."""
        self._counts[code] += 1
        if self._counts[code] <= _MOST_WARNINGS:
            self.warnings.append(warning(code, message, span=span, hint=hint))

    def wrong(self, code: str, message: str, span: Span | None = None, hint: str | None = None) -> None:
        """Add a mistake; the text is read on."""
        self.mistakes += error(code, message, span=span, hint=hint).diagnostics

    def take(self, failure: CollcError) -> None:
        """Add the mistakes of an exception."""
        self.mistakes += failure.diagnostics

    # ---- the whole

    def finish(self, span: Span | None = None) -> Imported:
        """Return the network; raise CollcError with all mistakes, C0932 if it has no rank."""
        if not self.mistakes and not self.ranks:
            self.wrong("C0932", "found no GPU, host or other rank", span)
        if self.mistakes:
            raise CollcError([d for d in self.mistakes if d.severity == Severity.ERROR][:_MOST_WARNINGS])
        return Imported(
            self.format, tuple(self.ranks), tuple(self.switches), tuple(self.cables), tuple(map(Note, self.notes)),
            tuple(self._bounded()), self.unit, self.hosts, self.title, self.gamma, self.epsilon,
            tuple(self.multicast), tuple(self.reduces),
        )  # fmt: skip

    def _bounded(self) -> Iterator[Diagnostic]:
        """Yield the warnings; the last of a code that has too many says how many are not shown."""
        seen = Counter[str]()
        for one in self.warnings:
            seen[one.code] += 1
            left = self._counts[one.code] - _MOST_WARNINGS
            last = seen[one.code] == _MOST_WARNINGS and left > 0
            yield attrs.evolve(one, notes=(*one.notes, f"and {left} more of this kind")) if last else one


def wrong_name(name: str) -> str | None:
    """Return what is wrong with a node's name, if anything is."""
    if not name:
        return "an empty name"
    if len(name) > LONGEST_NAME:
        return f"a name of {len(name)} characters"
    if not name.isprintable() or '"' in name:
        return f"the name {name!r}"
    return None
