"""IR -> text. The form is canonical: equal IRs print the same bytes, however they were built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..collective import Collective
from ..program import Opcode, Program
from ..schedule import Forest, Routes, Schedule
from ..symmetric import SymmetricSchedule
from ..symmetric_forest import SymmetricForest
from ..symmetric_program import SymmetricProgram
from ..topology import Topology
from .render import render
from .words import ACTIONS, BUFFERS, DIRECTIONS, ENDS, HEADER, OPCODES, TABLES, quoted, word_or_quoted

if TYPE_CHECKING:
    from ..levels import Executable

__all__ = ["print_ir"]


def print_ir(level: Topology | Collective | Executable) -> str:
    """Return the textual form of an IR level; :func:`parse_ir` reads it back to an equal value.

    The text of a schedule or forest includes its topology and collective, that of a program, one-sided or not, its
    collective. The trees of a template, and its steps, are printed as those of all roots.
    """
    if isinstance(level, SymmetricForest) or (isinstance(level, SymmetricSchedule) and level.orbits is not None):
        level = level.unfold()
    blocks: list[Iterable[str]] = []
    if isinstance(level, (Schedule, SymmetricSchedule, Forest)):
        blocks.append(_topology(level.topology))
    if not isinstance(level, (Topology, Collective)):
        blocks.append(_collective(level.collective))
    blocks.append(_one_sided(level) if type(level) not in _BLOCKS else _BLOCKS[type(level)](level))
    return HEADER + "\n" + "".join("\n" + "\n".join(block) + "\n" for block in blocks)


def _topology(topology: Topology) -> Iterator[str]:
    yield f"topology {quoted(topology.name)} {{"
    yield f"  ranks {topology.num_ranks}"
    if topology.num_switches:
        yield f"  switches {topology.num_switches}"
    yield f"  unit {topology.unit if topology.unit == 'B/s' else word_or_quoted(topology.unit)}"
    if topology.gamma:
        yield f"  gamma {Fraction(topology.gamma)}"
    if topology.epsilon:
        yield f"  epsilon {Fraction(topology.epsilon)}"
    for power in ("multicast", "reduces"):
        if nodes := getattr(topology, power):
            yield f"  {power} {' '.join(map(str, nodes))}"
    if topology.symmetry is not None:
        yield f"  symmetry {quoted(topology.symmetry.expression)}"
    if topology.names != tuple(map(str, range(topology.num_nodes))):
        yield from _table("names", len(topology.names), map(quoted, topology.names))
    classes = (f"{Fraction(c.bandwidth)} {Fraction(c.latency)}" for c in topology.classes)
    yield from _table("classes", len(topology.classes), classes)
    yield from _integers("links", (topology.src, topology.dst, topology.link_class))
    yield "}"


def _collective(collective: Collective) -> Iterator[str]:
    words = [f"collective {collective.kind} ranks {collective.num_ranks}"]
    if collective.root is not None:
        words.append(f"root {collective.root}")
    if collective.size is not None:
        words.append(f"size {collective.size}")
    words.append(f"op {word_or_quoted(collective.op)} dtype {word_or_quoted(collective.dtype)}")
    if collective.members is not None:
        words.append(f"members {' '.join(map(str, collective.members))}")
    if collective.weights is not None:
        words.append(f"weights {' '.join(map(str, collective.weights))}")
    before = collective.contributors or [(rank,) for rank in collective.pre or ()]
    for sources, ranks in zip(before, collective.post or (), strict=True):
        words.append(" ".join(["from", *map(str, sources), "to", *map(str, ranks)]))
    yield " ".join(words)


def _symmetric(level: SymmetricSchedule) -> Iterator[str]:
    return _schedule(level.seed, "symmetric-schedule")


def _schedule(schedule: Schedule, block: str = "schedule") -> Iterator[str]:
    yield f"{block} {{"
    yield f"  scheduler {word_or_quoted(schedule.scheduler)}"
    yield f"  parts {schedule.parts}"
    yield f"  discrete {'yes' if schedule.discrete else 'no'}"
    if schedule.in_network:
        yield "  in-network yes"
    yield from _routes(schedule.routes, schedule.topology.num_links)
    columns = [(schedule.action, ACTIONS) if c == "action" else getattr(schedule, c) for c in schedule.COLUMNS]
    try:
        yield from _integers("transfers", (*columns, schedule.src, schedule.dst), ENDS)
    except IndexError:  # an unsound schedule: some routes have no links
        yield from _integers("transfers", columns)
    if schedule.placement is not None:
        # from 1, since the text has no negative numbers: 0 is what collc chooses
        chosen = [getattr(schedule.placement, c).astype(np.int64) + 1 for c in schedule.placement.COLUMNS]
        yield from _integers("placement", chosen)
    yield "}"


def _forest(forest: Forest) -> Iterator[str]:
    yield "forest {"
    yield f"  scheduler {word_or_quoted(forest.scheduler)}"
    yield f"  parts {forest.parts}"
    mixed = len(forest.inward) > 0 and int(forest.inward.min()) != int(forest.inward.max())
    yield f"  direction {'both' if mixed else DIRECTIONS[int(forest.inward[:1].sum())]}"
    if forest.whole and forest.collective.root is None:
        yield "  whole yes"
    if forest.pieces != 1:
        yield f"  pieces {forest.pieces}"
    if forest.in_network:
        yield "  in-network yes"
    yield from _routes(forest.routes, forest.topology.num_links)
    if mixed:
        yield from _integers("trees", (forest.root, forest.weight, (forest.inward, DIRECTIONS)), ("direction",))
    else:
        yield from _integers("trees", (forest.root, forest.weight))
    yield from _integers("edges", (forest.tree, forest.parent, forest.child, forest.route))
    yield "}"


def _routes(routes: Routes, num_links: int) -> Iterator[str]:
    if routes.is_direct and len(routes) == num_links:
        yield "  routes direct"
        return
    start, links = routes.start.tolist(), _named(routes.links, ())
    paths = (" ".join(links[a:b]) or "none" for a, b in pairwise(start))
    yield from _table("routes", len(routes), paths)


def _table(name: str, count: int, rows: Iterable[str]) -> Iterator[str]:
    yield f"  {name} {count}: {' '.join(TABLES[name])} {{"
    if count:
        yield "    " + "\n    ".join(rows)
    yield "  }"


def _integers(
    name: str, columns: Sequence[Array | tuple[Array, Sequence[str]]], extra: tuple[str, ...] = ()
) -> Iterator[str]:
    first = columns[0][0] if isinstance(columns[0], tuple) else columns[0]
    yield f"  {name} {len(first)}: {' '.join(TABLES[name] + extra)} {{"
    yield render(columns, "    ") + "  }"


def _named(column: Array, words: Sequence[str]) -> list[str]:
    """Return a column as words; a value without a word (a sound IR has none) stays a number."""
    known = dict(enumerate(words))
    return [known.get(value) or str(value) for value in column.tolist()]


# ---- programs


def _program(program: Program) -> Iterator[str]:
    yield f"program {quoted(program.name)} {{"
    yield f"  scheduler {word_or_quoted(program.scheduler)}"
    yield f"  chunks {program.chunks}"
    if program.placed:
        yield "  placed yes"
    yield from _ranks(program, program.num_ranks)
    yield "}"


def _symmetric_program(program: SymmetricProgram) -> Iterator[str]:
    yield f"symmetric-program {quoted(program.name)} {{"
    yield f"  scheduler {word_or_quoted(program.scheduler)}"
    yield f"  chunks {program.chunks}"
    yield f"  symmetry {quoted(program.group.expression)}"
    if program.fixed:
        yield "  fixed yes"
    if program.unfused:
        yield "  unfused yes"
    yield from _integers("messages", (np.diff(program.message_start),))
    if len(program.numbering):
        yield from _integers("numbering", (program.numbering,))
    yield from _ranks(program.seed, program.width)
    yield "}"


def _ranks(program: Program, ranks: int) -> Iterator[str]:
    """Yield the lines of the first ranks."""
    first, start = program.rank_blocks.tolist(), program.block_start.tolist()
    send, recv = (_peers(column) for column in (program.send_peer, program.recv_peer))
    channel, instructions = program.channel.tolist(), _instructions(program)
    for rank, scratch in enumerate(program.scratch[:ranks].tolist()):
        yield f"  rank {rank} scratch {scratch} {{"
        for number, block in enumerate(range(first[rank], first[rank + 1])):
            peers = f"send {send[block]} recv {recv[block]} channel {channel[block]}"
            yield f"    threadblock {number} {peers} {{"
            yield from instructions[start[block] : start[block + 1]]
            yield "    }"
        yield "  }"


def _peers(column: Array) -> list[str]:
    return ["none" if peer == -1 else str(peer) for peer in column.tolist()]


def _instructions(program: Program) -> list[str]:
    """Return the line of every instruction."""
    shape = [_shape(opcode) for opcode in range(len(OPCODES))]
    buffers = [_named(column, BUFFERS) for column in (program.src_buffer, program.dst_buffer)]
    columns = [
        program.step.tolist(), program.opcode.tolist(), buffers[0], program.src_offset.tolist(), buffers[1],
        program.dst_offset.tolist(), program.count.tolist(), _dependencies(program),
    ]  # fmt: skip
    return [
        shape[opcode].format(step, src, src_offset, dst, dst_offset, count, wait)
        for step, opcode, src, src_offset, dst, dst_offset, count, wait in zip(*columns, strict=True)
    ]


def _shape(opcode: int) -> str:
    """Return the format of an opcode's line, with the locations that the opcode uses."""
    kind = Opcode(opcode)
    src = " {1} {2}" if kind.reads_src else ""
    dst = " -> {3} {4}" if kind.writes_dst else ""
    count = " count {5}" if kind is not Opcode.NOP else ""
    return f"      {{0}}: {OPCODES[opcode]}{src}{dst}{count}{{6}}"


def _dependencies(program: Program) -> list[str]:
    """Return `` after BLOCK.STEP ..`` for every instruction with dependencies, an empty text for the others."""
    result = [""] * program.num_instructions
    block, step, start = program.block_id[program.block], program.step, program.dep_start.astype(np.int64)
    deps = program.deps
    names = list(map("%d.%d".__mod__, zip(block[deps].tolist(), step[deps].tolist(), strict=True)))
    for row in np.flatnonzero(start[1:] > start[:-1]).tolist():
        result[row] = " after " + " ".join(names[start[row] : start[row + 1]])
    return result


def _one_sided(program: Any) -> Iterator[str]:  # Any: few runs import its class
    from ..one_sided.text import print_body

    yield f"one-sided {quoted(program.name)} {{"
    yield f"  scheduler {word_or_quoted(program.scheduler)}"
    yield from print_body(program)
    yield "}"


# Any: each printer takes its own class
_BLOCKS: dict[type, Callable[[Any], Iterator[str]]] = {
    Topology: _topology,
    Collective: _collective,
    Schedule: _schedule,
    SymmetricSchedule: _symmetric,
    Forest: _forest,
    Program: _program,
    SymmetricProgram: _symmetric_program,
}
