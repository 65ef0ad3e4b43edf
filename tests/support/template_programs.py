"""Programs of one rank and a group, and what they are compared with: the programs of all ranks."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from hypothesis import strategies as st
from strategies import translations

from collc.frontends.coll import topology
from collc.frontends.coll.families.groups import cayley
from collc.ir.collective import Collective
from collc.ir.group import parse_group
from collc.ir.program import Buffer, Program
from collc.ir.ragged import nth, owners
from collc.ir.spec import Problem
from collc.ir.symmetric import TEMPLATE_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.passes.lowering.template import lower_template
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow

__all__ = [
    "GROUPS", "KINDS", "SHAPES", "cayley_networks", "group_networks", "instructions_of", "network", "template",
    "template_schedule",
]  # fmt: skip

KINDS = TEMPLATE_KINDS
SHAPES: tuple[tuple[int, ...], ...] = (
    (2,), (3,), (5,), (8,), (9,), (12,), (2, 2), (2, 3), (3, 3), (2, 4), (4, 4), (3, 5), (2, 2, 2), (2, 2, 3),
    (2, 2, 2, 2), (16,),
)  # fmt: skip


def network(expression: str) -> Topology:
    """Return the topology of an expression of the language, with its symmetry."""
    return topology(expression)


#: groups that are none of vectors, and elements that generate them
GROUPS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("dihedral(3)", (1, 2)), ("dihedral(4)", (1, 2)), ("dihedral(7)", (1, 3)), ("dicyclic(2)", (1, 2)),
    ("dicyclic(3)", (1, 2)), ("symmetric(3)", (1, 2)), ("alternating(4)", (1, 3)),
    ("metacyclic(7, 3, 2)", (1, 3)), ("metacyclic(8, 2, 3)", (1, 2)), ("metacyclic(6, 2, 1, 1)", (1, 2)),
    ("semidirect(abelian(2, 2), 3, 0, 1, 1, 1)", (1, 3)), ("mirrored(4, 2)", (1, 2, 5)),
    ("direct(dihedral(3), cyclic(2))", (1, 2, 4)),
)  # fmt: skip


@st.composite
def group_networks(draw: st.DrawFn) -> Topology:
    """Connected Cayley digraphs of groups that are none of vectors."""
    name, generators = draw(st.sampled_from(GROUPS))
    group = parse_group(name)
    more = draw(st.sets(st.integers(1, group.order - 1), max_size=2))
    return cayley(group, tuple(sorted({*generators, *more})))


def cayley_networks() -> st.SearchStrategy[Topology]:
    """Connected Cayley digraphs of any groups."""
    return st.one_of(vector_networks(), group_networks())


@st.composite
def vector_networks(draw: st.DrawFn) -> Topology:
    """Connected Cayley digraphs of groups of vectors, some with parallel links."""
    shape = draw(st.sampled_from(SHAPES))
    units = [tuple(int(i == k) for i in range(len(shape))) for k in range(len(shape))]
    vector = st.tuples(*(st.integers(0, size - 1) for size in shape)).filter(any)
    more = draw(st.lists(vector, max_size=2))
    return translations(shape, [*units, *more], "drawn")


def template_schedule(topology: Topology, kind: str) -> SymmetricSchedule:
    """Return the discrete template of a collective."""
    scheduler = Flow(template=True) if kind == "alltoall" else BFB(template=True)
    found = Discretize(templates=True).run(scheduler.run(Problem(topology, Collective(kind, topology.num_ranks))))
    assert isinstance(found, SymmetricSchedule)
    return found


def template(topology: Topology, kind: str, op: str = "sum") -> SymmetricProgram:
    """Return the program of a collective, of one rank and the group."""
    found = lower_template(template_schedule(topology, kind))
    assert found is not None
    return attrs.evolve(
        found, seed=attrs.evolve(found.seed, name="c", collective=attrs.evolve(found.collective, op=op))
    )


def instructions_of(program: Program) -> Sequence[tuple[int, ...]]:
    """Return all instructions with their rank, peers and channel, chunk by chunk, sorted.

    Scratch may be in any order of shards. Which of several additions of one step is the first, the one that reads the
    input, is free: additions are listed without what they read.
    """
    block = program.block
    adds = program.receives & program.reads_src
    src_buffer = np.where(adds, 0, program.src_buffer)
    count = program.count.astype(np.int64)
    row = owners(count)
    place = {end: getattr(program, f"{end}_offset").astype(np.int64)[row] + nth(count) for end in ("src", "dst")}
    for end, offset in place.items():
        inside = getattr(program, f"{end}_buffer")[row] == Buffer.SCRATCH
        place[end] = np.where(inside, offset % program.chunks, offset)
    reads, writes = (program.reads_src & ~adds)[row], program.writes_dst[row]
    columns = (
        program.rank[row], program.send_peer[block][row], program.recv_peer[block][row], program.channel[block][row],
        program.opcode[row], src_buffer[row], np.where(reads, place["src"], -1),
        program.dst_buffer[row], np.where(writes, place["dst"], -1),
    )  # fmt: skip
    return sorted(zip(*(column.tolist() for column in columns), strict=True))
