"""Check whether an IR is well formed: columns of one length, numbers in range, connected routes.

Every pass, reader and verifier relies on these checks. They do not execute a schedule: a well-formed schedule may still
be wrong. All checks are of whole columns, so a million rows take a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .arrays import Array, distinct, lexsort
from .collective import Collective
from .frozen import frozen
from .layout import exact_sizes
from .program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from .ragged import owners
from .schedule import Action, Forest, Schedule
from .symmetric import SYMMETRIC_KINDS, TEMPLATE_KINDS, SymmetricSchedule
from .symmetric_forest import SymmetricForest
from .symmetric_program import SymmetricProgram
from .symmetries import Symmetries
from .topology import Topology

if TYPE_CHECKING:
    from .levels import Executable

__all__ = ["Flaw", "flaws", "structure"]
Flaws = Iterator["Flaw"]

_LARGEST = (1 << 63) - 1

_TREE_COLUMNS = ("root", "weight", "inward")  # the other columns of a forest have one row per edge


@frozen
class Flaw:
    """One flaw of an IR, and its row and table in the textual form, if any."""

    message: str
    table: str = ""
    row: int = -1

    def __str__(self) -> str:
        noun = {"classes": "class", "instructions": ""}.get(self.table, self.table.removesuffix("s"))
        return f"{noun} {self.row}: {self.message}" if noun and self.row >= 0 else self.message


def structure(level: Topology | Collective | Executable) -> list[str]:
    """Return the flaws of an IR, one message each; the list is empty if the IR is well formed.

    >>> structure(Topology("pair", 2, src=[0, 1], dst=[1, 2]))
    ['link 1: destination 2 does not exist: 0 to 1 do']
    """
    return [str(flaw) for flaw in flaws(level)]


def flaws(level: Topology | Collective | Executable) -> list[Flaw]:
    """Return the flaws of an IR with their places; checks that depend on a failed one are skipped."""
    for stage in _stages(level):
        if found := list(stage(level)):
            return found
    return []


def _stages(level: Any) -> tuple[Callable[[Any], Flaws], ...]:  # Any: of that level
    """Return the checks of a level; a one-sided program, which few runs import, brings its own."""
    if type(level) in _STAGES:
        return _STAGES[type(level)]
    stages: tuple[Callable[[Any], Flaws], ...] = level.checks_of_form()  # Any: as above
    return stages


# ---- building blocks


def _rows(table: str, bad: Array, message: Callable[[int], str]) -> Flaws:
    """Yield one flaw for the first bad row, with the number of others."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        more = f" (and {count - 1} more like it)" if count > 1 else ""
        yield Flaw(message(row) + more, table, row)


def _outside(table: str, column: Array, limit: int, what: str, low: int = 0) -> Flaws:
    def message(row: int) -> str:
        there = f"{low} to {limit - 1} do" if limit > low else "there is none"
        return f"{what} {int(column[row])} does not exist: {there}"

    return _rows(table, (column < low) | (column >= limit), message)


def _negative(table: str, column: Array, what: str) -> Flaws:
    return _rows(table, column < 0, lambda row: f"{what} {column[row]} is negative")


def _lengths(level: object, table: str, columns: tuple[str, ...]) -> Flaws:
    lengths = {name: len(getattr(level, name)) for name in columns}
    if len(set(lengths.values())) > 1:
        yield Flaw(f"columns of {table} differ in length: {', '.join(f'{c} {n}' for c, n in lengths.items())}")


def _starts(start: Array, count: int, end: int, what: str) -> Flaws:
    """Check the starts of ``count`` ranges that cover ``end`` rows one after the other."""
    if len(start) != count + 1:
        yield Flaw(f"{what} needs {count + 1} entries, found {len(start)}")
    elif start[0] != 0 or start[-1] != end or (start[1:] < start[:-1]).any():
        yield Flaw(f"{what} does not run from 0 to {end} without decreasing")


# ---- topology and collective


def _topology(topology: Topology) -> Flaws:
    if topology.num_ranks < 0 or topology.num_switches < 0:
        yield Flaw(f"{topology.num_ranks} ranks and {topology.num_switches} switches: neither may be negative")
        return
    if topology.unit not in ("link", "B/s"):
        yield Flaw(f"unit `{topology.unit}` is not known: `link` and `B/s` are")
    if len(topology.names) != topology.num_nodes:
        yield Flaw(f"{len(topology.names)} node names for {topology.num_nodes} nodes", "names")
    for row, kind in enumerate(topology.classes):
        if kind.bandwidth <= 0:
            yield Flaw(f"bandwidth {kind.bandwidth} is not positive", "classes", row)
        if kind.latency < 0:
            yield Flaw(f"latency {kind.latency} is negative", "classes", row)
    for name in ("gamma", "epsilon"):
        if getattr(topology, name) < 0:
            yield Flaw(f"{name} {getattr(topology, name)} is negative")
    switches = range(topology.num_ranks, topology.num_nodes)
    for name, verb in (("multicast", "multicasts"), ("reduces", "reduces")):
        nodes = getattr(topology, name)
        if odd := [node for node in nodes if node not in switches]:
            yield Flaw(f"node {odd[0]} {verb}, which is no switch")
        elif list(nodes) != sorted(set(nodes)):
            yield Flaw(f"switches that {verb.removesuffix('s')} are not in ascending order, each once")
    yield from _lengths(topology, "links", ("src", "dst", "link_class"))


def _links(topology: Topology) -> Flaws:
    yield from _outside("links", topology.src, topology.num_nodes, "source")
    yield from _outside("links", topology.dst, topology.num_nodes, "destination")
    yield from _outside("links", topology.link_class, len(topology.classes), "class")


def _symmetry(topology: Topology) -> Flaws:
    """Check that link j of every rank is link j of rank 0, translated: the contract of Topology.symmetry."""
    symmetry, ranks = topology.symmetry, topology.num_ranks
    if symmetry is None:
        return
    if symmetry.order != ranks:
        yield Flaw(f"symmetry {symmetry.shown} does not have {ranks} elements, one a rank")
        return
    degree, rest = divmod(topology.num_links, ranks)
    owner = np.repeat(np.arange(ranks), degree)
    if rest or topology.num_switches or not np.array_equal(topology.src, owner):
        yield Flaw("symmetry needs links sorted by rank, the same number from every rank, and no switches")
        return
    target = symmetry.translate(np.tile(topology.dst[:degree], ranks), owner)
    wrong = (topology.dst != target) | (topology.link_class != np.tile(topology.link_class[:degree], ranks))
    yield from _rows("links", wrong, lambda row: f"the symmetry does not map link {row % degree} to it")


def _collective(collective: Collective) -> Flaws:
    if collective.size is not None and not 0 <= collective.size <= _LARGEST:
        yield Flaw(f"size {collective.size} is not a number of bytes: 0 to {_LARGEST} are")


# ---- schedule and forest


def _shared(level: Schedule | Forest) -> Flaws:
    """Check what both forms share: the number of ranks, the common denominator, the columns."""
    yield from flaws(level.topology)
    yield from flaws(level.collective)
    if level.topology.num_ranks != level.collective.num_ranks:
        ranks = f"{level.collective.num_ranks} ranks on a topology of {level.topology.num_ranks}"
        yield Flaw(f"collective `{level.collective.kind}` of {ranks}")
    if not 1 <= level.parts <= _LARGEST:
        yield Flaw(f"{level.parts} parts: 1 to {_LARGEST} are possible")
    if isinstance(level, Schedule) and level.placement is not None and len(level.placement) != len(level.step):
        yield Flaw(f"{len(level.placement)} transfers are placed, there are {len(level.step)}")
    table = "transfers" if isinstance(level, Schedule) else "edges"
    yield from _lengths(level, table, tuple(c for c in level.COLUMNS if c not in _TREE_COLUMNS))


def _routes(level: Schedule | Forest) -> Flaws:
    routes = level.routes
    yield from _starts(routes.start, max(len(routes.start) - 1, 0), len(routes.links), "the start of routes")
    yield from _rows("routes", routes.start[1:] == routes.start[:-1], lambda row: "it has no link")
    route = np.searchsorted(routes.start, np.arange(len(routes.links)), side="right") - 1
    missing = (routes.links < 0) | (routes.links >= level.topology.num_links)
    for flaw in _rows("routes", missing, lambda i: f"link {routes.links[i]} does not exist"):
        yield attrs.evolve(flaw, row=int(route[flaw.row]))


def _connected_routes(level: Schedule | Forest) -> Flaws:
    """Check that the links of a route connect, and that used routes lead from rank to rank and visit no node twice.

    A route may pass through ranks and switches: they forward the data, and a rank does not read them.
    """
    topology, routes, ranks = level.topology, level.routes, level.topology.num_ranks
    yield from _outside("transfers" if isinstance(level, Schedule) else "edges", level.route, len(routes), "route")
    start = routes.start.astype(np.int64)
    route = owners(np.diff(start))
    inner = np.flatnonzero(route[1:] == route[:-1]) + 1  # links that are not the first of their route
    tail, head = topology.src[routes.links], topology.dst[routes.links]

    def of(rows: Array, bad: Array, message: str) -> Flaws:
        wrong = np.zeros(len(routes), dtype=bool)
        wrong[rows[bad]] = True
        return _rows("routes", wrong, lambda row: f"{message}: links {routes.links_of(row)}")

    yield from of(route[inner], head[inner - 1] != tail[inner], "a link does not begin where the one before it ends")
    used = distinct(level.route[(level.route >= 0) & (level.route < len(routes))]).astype(np.int64)
    is_used = np.zeros(len(routes), dtype=bool)
    is_used[used] = True
    ends = (tail[start[used]] >= ranks) | (head[start[used + 1] - 1] >= ranks)
    yield from of(used, ends, "it is used, but does not run from rank to rank")
    if len(inner):
        first = start[:-1][np.diff(start) > 1]
        entered = np.concatenate([tail[first], head]).astype(np.int64)
        owner = np.concatenate([route[first], route])
        order = lexsort((entered, owner))
        entered, owner = entered[order], owner[order]
        again = (entered[1:] == entered[:-1]) & (owner[1:] == owner[:-1]) & is_used[owner[1:]]
        yield from of(owner[1:], again, "it visits a node twice")


def _transfers(schedule: Schedule) -> Flaws:
    step, lo, hi = schedule.step, schedule.lo, schedule.hi
    yield from _outside("transfers", schedule.action, len(Action), "action")
    yield from _outside("transfers", schedule.shard, schedule.collective.num_shards, "shard")
    yield from _rows("transfers", step < 0, lambda row: f"step {step[row]} is negative")
    falls = np.concatenate([np.zeros(1, dtype=bool), step[1:] < step[:-1]])[: len(step)]
    yield from _rows("transfers", falls, lambda row: f"step {step[row]} comes after step {step[row - 1]}")
    yield from _rows(
        "transfers", (lo < 0) | (lo >= hi) | (hi > schedule.parts),
        lambda row: f"{lo[row]} to {hi[row]} are no parts of a shard: it has parts 0 to {schedule.parts}",
    )  # fmt: skip


def _template(level: SymmetricSchedule) -> Flaws:
    """Check that the topology's symmetry, which its own check has accepted, turns the seed into a schedule."""
    seed = level.seed
    if level.orbits is not None:
        yield from _moved_shards(level, level.orbits)
        return
    if level.topology.symmetry is None:
        yield Flaw(f"a template needs a topology with a symmetry, which `{level.topology.name}` does not have")
    if not level.collective.is_plain:
        yield Flaw(f"a template is of all ranks and equal shards, not of `{level.collective.name}`")
    elif level.collective.kind not in TEMPLATE_KINDS:
        yield Flaw(f"a template is of {', '.join(TEMPLATE_KINDS)}, not of `{level.collective.kind}`")
    if not (seed.routes.is_direct and len(seed.routes) == level.topology.num_links):
        yield Flaw("the routes of a template are its links")
    own = "shard 0" if level.shards == 1 else f"one of 0 to {level.shards - 1}"
    yield from _rows(
        "transfers", seed.shard >= level.shards, lambda row: f"it moves shard {seed.shard[row]}, not {own}"
    )


def _moved_shards(level: SymmetricSchedule, group: Symmetries) -> Flaws:
    """Check that a group of several orbits turns the shards of the first ranks into all."""
    yield from list(_moving(level, group)) or _boxes_first(group)
    if group.numbered is None:
        yield Flaw(f"{group.shown} does not move ranks in order")
    yield from _rows(
        "transfers", level.seed.shard >= level.shards,
        lambda row: f"it moves shard {level.seed.shard[row]}, not one of 0 to {level.shards - 1}",
    )  # fmt: skip


def _program_template(level: SymmetricProgram) -> Flaws:
    """Check that all blocks of the seed are its first ranks', and that every instruction has its flag."""
    if len(level.joined) != level.seed.num_instructions:
        yield Flaw(f"{len(level.joined)} flags of messages for {level.seed.num_instructions} instructions")
    yield from _outside("instructions", level.joined, 2, "joined")
    chunks = level.collective.num_shards * level.chunks
    if len(level.numbering) not in (0, chunks):
        yield Flaw(f"{len(level.numbering)} places for {chunks} chunks")
    yield from _outside("numbering", level.numbering, chunks, "place")
    if level.fixed and (level.collective.kind != "allreduce" or len(level.numbering)):
        yield Flaw("chunks have fixed places, but not every rank has the whole vector in order")
    beyond = level.seed.block_rank >= level.width
    yield from _rows("threadblocks", beyond, lambda row: f"a template has blocks of {level.seeds} only")


def _trees(forest: Forest) -> Flaws:
    yield from _lengths(forest, "trees", _TREE_COLUMNS)
    if not 1 <= forest.pieces <= _LARGEST // forest.parts:
        yield Flaw(f"{forest.pieces} pieces of {forest.parts} parts: 1 to {_LARGEST // forest.parts} are possible")
    yield from _outside("trees", forest.root, forest.collective.num_ranks, "root")
    weight = forest.weight
    yield from _rows(
        "trees", (weight < 1) | (weight > forest.parts),
        lambda row: f"weight {weight[row]} is no share of {forest.parts} parts",
    )  # fmt: skip
    yield from _outside("trees", forest.inward, 2, "direction")
    yield from _outside("edges", forest.tree, forest.num_trees, "tree")
    yield from _outside("edges", forest.parent, forest.collective.num_ranks, "parent")
    yield from _outside("edges", forest.child, forest.collective.num_ranks, "child")


def _moved_trees(level: SymmetricForest) -> Flaws:
    """Check that the group is one of automorphisms of the network, and the roots of the template one of each orbit."""
    found = list(_moving(level, level.group))
    if found:
        yield from found
        return
    others = ~np.isin(level.seed.root, level.roots)
    yield from _rows("trees", others, lambda row: f"root {level.seed.root[row]} is no root of the template")


def _moving(level: SymmetricForest | SymmetricSchedule, group: Symmetries) -> Flaws:
    """Check that a group is one of automorphisms of the network, and can move a template of this collective."""
    if group.topology is not level.topology and group.topology != level.topology:
        yield Flaw(f"the group is of `{group.topology.name}`, not of `{level.topology.name}`")
        return
    if found := [Flaw(f"the group of the template: {text}") for text in group.flaws()]:
        yield from found
        return
    kinds = SYMMETRIC_KINDS if isinstance(level, SymmetricForest) else TEMPLATE_KINDS
    if not level.collective.is_plain:
        yield Flaw(f"a template is of all ranks and equal shards, not of `{level.collective.name}`")
    elif level.collective.kind not in kinds:
        yield Flaw(f"a template is of {', '.join(kinds)}, not of `{level.collective.kind}`")


def _boxes_first(group: Symmetries) -> Flaws:
    """Check that a group moves all ranks, and that the first ranks are one of each orbit."""
    ranks = group.topology.num_ranks
    width = ranks // max(group.order, 1)
    if width * group.order != ranks or group.stays.any():
        yield Flaw(f"a group of order {group.order} does not move {ranks} ranks to each other freely")
    elif len(set(group.rank_orbit[:width].tolist())) < width:
        yield Flaw(f"ranks 0 to {width - 1} are not of different orbits")


def _edges(forest: Forest) -> Flaws:
    """Check that the route of every edge connects its ranks, in the direction of the data."""
    tail, head = forest.routes.tails(forest.topology), forest.routes.heads(forest.topology)
    tail, head = tail[forest.route], head[forest.route]
    inward = forest.inward[forest.tree] == 1
    source, target = np.where(inward, (forest.child, forest.parent), (forest.parent, forest.child))
    yield from _rows(
        "edges", (tail != source) | (head != target),
        lambda row: f"route {forest.route[row]} runs from {tail[row]} to {head[row]}, "
        f"needed from {source[row]} to {target[row]}",
    )  # fmt: skip


# ---- program


def _tables(program: Program) -> Flaws:
    yield from flaws(program.collective)
    if not 1 <= program.chunks <= _LARGEST:
        yield Flaw(f"{program.chunks} chunks: 1 to {_LARGEST} are possible")
    if len(program.scratch) != program.num_ranks:
        yield Flaw(f"scratch for {len(program.scratch)} ranks, needed for {program.num_ranks}")
    yield from _lengths(program, "threadblocks", BLOCK_COLUMNS)
    yield from _lengths(program, "instructions", INSTRUCTION_COLUMNS)
    yield from _starts(program.block_start, program.num_blocks, program.num_instructions, "block_start")
    yield from _starts(program.dep_start, program.num_instructions, len(program.deps), "dep_start")


def _ranges(program: Program) -> Flaws:
    ranks, rank = program.num_ranks, program.block_rank
    yield from _negative("ranks", program.scratch, "scratch")
    yield from _outside("threadblocks", rank, ranks, "rank")
    if (rank[1:] < rank[:-1]).any():
        yield Flaw("threadblocks are not sorted by rank")
    yield from _outside("threadblocks", program.send_peer, ranks, "send peer", low=-1)
    yield from _outside("threadblocks", program.recv_peer, ranks, "recv peer", low=-1)
    yield from _negative("threadblocks", program.channel, "channel")
    yield from _outside("instructions", program.opcode, len(Opcode), "opcode")
    for name in ("src_buffer", "dst_buffer"):
        yield from _outside("instructions", getattr(program, name), len(Buffer), name.replace("_", " "))
    for name in ("src_offset", "dst_offset", "count"):
        yield from _negative("instructions", getattr(program, name), name.replace("_", " "))
    yield from _outside("instructions", program.deps, program.num_instructions, "dependency")


def _instructions(program: Program) -> Flaws:
    opcode = program.opcode
    for used, peer, verb in ((program.sends, program.send_peer, "send"), (program.receives, program.recv_peer, "recv")):
        alone = used & (peer.take(program.block) < 0)
        yield from _at(program, alone, [f"its threadblock has no {verb} peer"])
    none = (program.count < 1) != (opcode == Opcode.NOP)
    yield from _at(program, none, ["it moves ", program.count, " chunks"])
    sizes, rank = _buffer_sizes(program).reshape(-1), program.rank.astype(np.int64)
    for end in ("src", "dst"):
        used = program.uses(end)
        buffer, offset = getattr(program, f"{end}_buffer"), getattr(program, f"{end}_offset").astype(np.int64)
        stray = ~used & ((buffer != 0) | (offset != 0))
        yield from _at(program, stray, [f"its {end} location is not used, but is not 0, 0"])
        size = sizes.take(buffer * np.int64(program.num_ranks) + rank)
        beyond = used & (offset > size - program.count.astype(np.int64))
        where = [program.count, " chunks from ", offset, f" leave its {end} buffer, which has ", size]
        yield from _at(program, beyond, where)
    yield from _dependencies(program)


def _dependencies(program: Program) -> Flaws:
    dependent = program.dependent
    block, dep_block = program.block.take(dependent), program.block.take(program.deps)
    other_rank = program.block_rank.take(block) != program.block_rank.take(dep_block)
    backward = (block == dep_block) & (program.deps >= dependent)
    for wrong, message in (
        (other_rank, "it depends on another rank"),
        (backward, "it depends on itself or a later instruction"),
    ):
        bad = np.zeros(program.num_instructions, dtype=bool)
        bad[dependent[wrong]] = True
        yield from _at(program, bad, [message])


def _at(program: Program, bad: Array, words: Sequence[str | Array]) -> Flaws:
    """Yield one flaw for the first bad instruction; a column among ``words`` stands for its value there."""

    def message(row: int) -> str:
        opcode = Opcode(int(program.opcode[row])).name.lower().replace("_", "-")
        text = "".join(word if isinstance(word, str) else str(word[row]) for word in words)
        return f"{program.place(row)} ({opcode}): {text}"

    return _rows("instructions", bad, message)


def _buffer_sizes(program: Program) -> Array:
    """Return the chunks in each buffer (row) of each rank (column)."""
    inputs, outputs = ([min(chunks, _LARGEST) for chunks in of_ranks] for of_ranks in exact_sizes(program)[:2])
    return np.stack([np.array(inputs), np.array(outputs), program.scratch.astype(np.int64)])


# Any: the checks of a class take that class
_STAGES: dict[type, tuple[Callable[[Any], Flaws], ...]] = {
    Topology: (_topology, _links, _symmetry),
    Collective: (_collective,),
    Schedule: (_shared, _routes, _connected_routes, _transfers),
    SymmetricSchedule: (lambda level: iter(flaws(level.seed)), _template),
    Forest: (_shared, _routes, _connected_routes, _trees, _edges),
    SymmetricForest: (lambda level: iter(flaws(level.seed)), _moved_trees),
    Program: (_tables, _ranges, _instructions),
    SymmetricProgram: (lambda level: iter(flaws(level.seed)), _program_template),
}
