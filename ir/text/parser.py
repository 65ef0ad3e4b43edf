"""Text -> IR. The IR is well formed; the verifier decides whether it is a correct schedule."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from ..arrays import Array
from ..collective import CUSTOM, KINDS, LARGEST_WEIGHT, Collective, preconditions
from ..diagnostic import CollcError, Diagnostic, Source
from ..group import Group, parse_group
from ..placement import Placement
from ..program import Program
from ..ragged import starts
from ..schedule import Forest, Routes, Schedule
from ..symmetric import SymmetricSchedule
from ..symmetric_program import SymmetricProgram
from ..topology import LinkClass, Topology
from ..validate import Flaw, flaws
from .columns import blame, columns, lists, rows
from .program import read_program
from .reader import Line, Reader, Table
from .source import Text, shown
from .words import ACTIONS, DIRECTIONS, ENDS, HEADER, MAX_NODES

if TYPE_CHECKING:
    from ..levels import Executable
    from ..one_sided.program import OneSided

__all__ = ["parse_ir"]

Level: TypeAlias = "Topology | Collective | Executable"
_BLOCKS = (
    "topology", "collective", "schedule", "symmetric-schedule", "forest", "program", "symmetric-program", "one-sided",
)  # fmt: skip


def parse_ir(text: str, path: str = "<ir>") -> Level:
    """Return the IR level of a text, which is the level of its last block.

    Raises :class:`CollcError` C0801 to C0807 with a span in ``path`` for every text that does not have the form of
    ``print_ir``, and for numbers that no well-formed IR has. Takes memory in proportion to the text.
    """
    return _Parser(Reader(Text(Source(path, text)))).parse()


@attrs.define
class _Parser:
    """The parser, with the blocks read so far."""

    reader: Reader
    topology: Topology | None = None
    collective: Collective | None = None
    tables: dict[str, Table] = attrs.field(factory=dict)  # for the places in messages
    places: dict[str, list[tuple[int, int]]] = attrs.field(factory=dict)  # the same for rows that are in no table
    block: int = 0  # the offset of the current block
    ends: dict[str, Array] = attrs.field(factory=dict)  # columns `from` and `to` of transfers, if the text has them

    def parse(self) -> Level:
        _header(self.reader)
        line = self.reader.line("a block: " + ", ".join(_BLOCKS))
        while True:
            self.block = line.place
            level: Level = getattr(self, "_" + line.word(*_BLOCKS).replace("-", "_"))(line)
            self._require(flaws(level))
            if isinstance(level, (Schedule, SymmetricSchedule)):
                self._require(_wrong_ends(level if isinstance(level, Schedule) else level.seed, self.ends))
            if self.reader.peek() is None:
                return level
            line = self.reader.line("a block")
            if not isinstance(level, (Topology, Collective)):
                raise line.expected("the end of the text: nothing follows a schedule, forest or program")

    def _require(self, found: list[Flaw]) -> None:
        if found:
            problems = [self._blame(flaw) for flaw in found]
            raise CollcError(sorted(problems, key=lambda p: (p.span.line, p.span.column) if p.span else (0, 0)))

    def _blame(self, flaw: Flaw) -> Diagnostic:
        places = self.places.get(flaw.table, ())
        if 0 <= flaw.row < len(places):
            return Diagnostic("C0806", str(flaw), span=self.reader.text.span(*places[flaw.row]))
        return blame(self.reader.text, flaw, self.tables, self.block)

    def _table(self, name: str, extra: tuple[str, ...] = ()) -> Table:
        table = self.tables[name] = self.reader.table(name, extra)
        return table

    # ---- blocks

    def _topology(self, line: Line) -> Topology:
        if self.topology is not None or self.collective is not None:
            raise line.fail("C0802", "a text has one topology, before its collective")
        reader, name = self.reader, line.string()
        reader.open(line)
        ranks = reader.integer("ranks", MAX_NODES)
        switches = reader.integer("switches", MAX_NODES) if reader.at("switches") else 0
        unit = reader.choice("unit", "link", "B/s")
        gamma, epsilon = (self._seconds(name) for name in ("gamma", "epsilon"))
        multicast, reduces = (self._nodes(name, ranks + switches) for name in ("multicast", "reduces"))
        symmetry = self._symmetry() if reader.at("symmetry") else None
        names = self._names() if reader.at("names") else None
        classes = tuple(self._classes())
        links = columns(reader.text, self._table("links"))
        reader.close()
        self.topology = Topology(
            name, ranks, links["src"], links["dst"], switches, links["class"], classes, unit, names, symmetry,
            gamma=gamma, epsilon=epsilon, multicast=multicast, reduces=reduces,
        )  # fmt: skip
        return self.topology

    def _nodes(self, name: str, nodes: int) -> tuple[int, ...]:
        """Return the node numbers of a line that may be absent."""
        if not self.reader.at(name):
            return ()
        line = self.reader.value(name)
        found = line.integers(max(nodes - 1, 0))
        line.done()
        return found

    def _seconds(self, name: str) -> Fraction:
        """Return the number of a line that may be absent."""
        if not self.reader.at(name):
            return Fraction(0)
        line = self.reader.value(name)
        found = line.rational()
        line.done()
        return found

    def _symmetry(self) -> Group:
        line = self.reader.value("symmetry")
        text = line.string()
        try:
            group = parse_group(text)
        except ValueError as problem:
            raise line.fail("C0805", f"the symmetry is not a group: {problem}") from None
        if group.order > MAX_NODES:
            raise line.fail("C0805", f"a symmetry has at most {MAX_NODES} elements")
        return group

    def _names(self) -> tuple[str, ...]:
        names = []
        for line in rows(self.reader.text, self._table("names")):
            names.append(line.string())
            line.done()
        return tuple(names)

    def _classes(self) -> list[LinkClass]:
        classes = []
        for line in rows(self.reader.text, self._table("classes")):
            classes.append(LinkClass(line.rational(), line.rational()))
            line.done()
        return classes

    def _collective(self, line: Line) -> Collective:
        if self.collective is not None:
            raise line.fail("C0802", "a text has one collective")
        place, kind = line.place, line.word(*KINDS, CUSTOM)
        line.word("ranks")
        ranks = line.integer(MAX_NODES)
        root = line.integer(MAX_NODES) if line.at("root") and line.word("root") else None
        size = line.integer() if line.at("size") and line.word("size") else None
        line.word("op")
        op = line.string(bare=True)
        line.word("dtype")
        dtype = line.string(bare=True)
        members = line.integers(MAX_NODES) if line.at("members") and line.word("members") else None
        weights = line.integers(LARGEST_WEIGHT) if line.at("weights") and line.word("weights") else None
        before, post = self._conditions(line) if kind == CUSTOM else (None, None)
        line.done()
        pre, contributors = (None, None) if before is None else preconditions(before)
        try:
            self.collective = Collective(
                kind, ranks, root, size, op, dtype, weights, members, pre, post, contributors
            )  # fmt: skip
        except CollcError as problem:
            message = problem.diagnostics[0].message
            raise self.reader.text.fail("C0806", message, place, line.end) from None
        return self.collective

    def _conditions(self, line: Line) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """Read ``from RANKS to RANKS`` for each shard of a custom collective."""
        pre, post = [], []
        while line.at("from"):
            line.word("from")
            pre.append((line.integer(MAX_NODES), *line.integers(MAX_NODES)))
            line.word("to")
            post.append(line.integers(MAX_NODES))
        return tuple(pre), tuple(post)

    def _needed(self, line: Line) -> tuple[Topology, Collective]:
        if self.topology is None or self.collective is None:
            raise line.fail("C0802", "a topology and a collective are needed before a schedule or forest")
        return self.topology, self.collective

    def _schedule(self, line: Line) -> Schedule:
        (topology, collective), reader = self._needed(line), self.reader
        reader.open(line)
        scheduler, parts = reader.bare("scheduler"), reader.integer("parts")
        discrete = reader.choice("discrete", "yes", "no") == "yes"
        in_network = self._in_network()
        routes = self._routes(topology)
        table = columns(reader.text, self._table("transfers", ENDS), {"action": ACTIONS})
        placement = self._placement() if reader.at("placement") else None
        reader.close()
        self.ends = {end: table.pop(end) for end in ENDS if end in table}
        return Schedule(
            topology, collective, parts, **table, routes=routes, discrete=discrete, scheduler=scheduler,
            placement=placement, in_network=in_network,
        )  # fmt: skip

    def _placement(self) -> Placement:
        """Read where transfers are placed: the numbers count from 1, and 0 leaves a choice to collc."""
        table = columns(self.reader.text, self._table("placement"))
        return Placement(**{name: column.astype(np.int64) - 1 for name, column in table.items()})

    def _symmetric_schedule(self, line: Line) -> SymmetricSchedule:
        return SymmetricSchedule(self._schedule(line))

    def _forest(self, line: Line) -> Forest:
        (topology, collective), reader = self._needed(line), self.reader
        reader.open(line)
        scheduler, parts = reader.bare("scheduler"), reader.integer("parts")
        direction = reader.choice("direction", *DIRECTIONS, "both")
        whole = reader.at("whole") and reader.choice("whole", "yes", "no") == "yes"
        pieces = reader.integer("pieces") if reader.at("pieces") else 1
        in_network = self._in_network()
        routes = self._routes(topology)
        trees = columns(reader.text, self._trees(direction == "both"), {"direction": DIRECTIONS})
        inward = trees.pop("direction", direction == "inward")
        edges = columns(reader.text, self._table("edges"))
        reader.close()
        return Forest(
            topology, collective, parts, **trees, **edges, routes=routes, inward=inward, whole=whole, pieces=pieces,
            scheduler=scheduler, in_network=in_network,
        )  # fmt: skip

    def _in_network(self) -> bool:
        """Return whether a line, which may be absent, says that rows share links."""
        return self.reader.at("in-network") and self.reader.choice("in-network", "yes", "no") == "yes"

    def _trees(self, both: bool) -> Table:
        """Return the table of trees; with ``both`` it has a column for the direction of each tree."""
        table = self._table("trees", ("direction",) if both else ())
        if both and "direction" not in table.columns:
            message = "the trees have both directions: expected a column `direction` after `root weight`"
            raise self.reader.text.fail("C0802", message, table.place, table.place + len(str(table.rows)))
        return table

    def _routes(self, topology: Topology) -> Routes:
        line = self.reader.peek()
        if line is not None and line.at("routes"):
            line.word("routes")
            if line.at("direct"):
                self.reader.choice("routes", "direct")
                return Routes.direct(topology.num_links)
        return lists(self.reader.text, self._table("routes"))

    def _program(self, line: Line) -> Program:
        if self.collective is None:
            raise line.fail("C0802", "a collective is needed before a program")
        reader, name = self.reader, line.string()
        reader.open(line)
        scheduler, chunks = reader.bare("scheduler"), reader.integer("chunks")
        placed = self._flag("placed")
        body = Table("instructions", (), 0, 0, reader.pos, len(reader.text.text))
        self.tables[body.name] = body
        reader.pos = body.end
        return attrs.evolve(read_program(reader.text, body, self.collective, chunks, name, scheduler), placed=placed)

    def _flag(self, word: str) -> bool:
        """Read a line that may be there: a word, and yes or no."""
        return self.reader.at(word) and self.reader.choice(word, "yes", "no") == "yes"

    def _symmetric_program(self, line: Line) -> SymmetricProgram:
        if self.collective is None:
            raise line.fail("C0802", "a collective is needed before a program")
        reader, name = self.reader, line.string()
        reader.open(line)
        scheduler, chunks = reader.bare("scheduler"), reader.integer("chunks")
        group = self._symmetry()
        fixed, unfused = self._flag("fixed"), self._flag("unfused")
        messages = columns(reader.text, self._table("messages"))["instructions"].astype(np.int64)
        none = np.zeros(0, dtype=np.int64)
        numbering = columns(reader.text, self._table("numbering"))["place"] if reader.at("numbering") else none
        body = Table("instructions", (), 0, 0, reader.pos, len(reader.text.text))
        self.tables[body.name] = body
        reader.pos = body.end
        seed = read_program(reader.text, body, self.collective, chunks, name, scheduler)
        width, scratch = len(seed.scratch), np.zeros(self.collective.num_ranks, dtype=np.int64)
        if messages.sum() != seed.num_instructions or (messages < 1).any() or width > len(scratch):
            raise line.fail("C0802", "the messages do not divide the instructions of the first ranks")
        scratch[:width] = seed.scratch
        joined = np.ones(seed.num_instructions, dtype=np.int64)
        joined[starts(messages)[:-1]] = 0
        return SymmetricProgram(attrs.evolve(seed, scratch=scratch), group, joined, numbering, fixed, unfused)

    def _one_sided(self, line: Line) -> OneSided:
        from .one_sided import read_one_sided

        if self.collective is None:
            raise line.fail("C0802", "a collective is needed before a program")
        name = line.string()
        self.reader.open(line)
        program, self.places = read_one_sided(self.reader, self.collective, name)
        return program


def _wrong_ends(schedule: Schedule, ends: dict[str, Array]) -> list[Flaw]:
    """Return a flaw for the first transfer whose route does not join the ranks in its columns `from` and `to`."""
    for name, real in zip(ENDS, (schedule.src, schedule.dst), strict=True):
        wrong = np.flatnonzero(ends.get(name, real) != real)
        if len(wrong):
            row = int(wrong[0])
            message = f"route {schedule.route[row]} runs {name} {real[row]}, found {ends[name][row]}"
            return [Flaw(message, "transfers", row)]
    return []


def _header(reader: Reader) -> None:
    text = reader.text
    end = text.line_end(0)
    first = text.text[:end].rstrip("\r")
    if first != HEADER:
        form, _, version = HEADER.partition(" ")
        if first.startswith(form + " "):
            message = f"found version {shown(first[len(form) + 1 :])} of the textual IR, needed version {version}"
        else:
            message = f"this is not textual IR: expected `{HEADER}` as the first line, found {shown(first)}"
        raise text.fail("C0801", message, 0, min(end, 80))
    reader.pos = end + 1
