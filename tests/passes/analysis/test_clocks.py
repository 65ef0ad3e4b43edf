"""Dependencies that others imply, found for some ranks at a time, against paths."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import schedules

from collc.ir.program import Program
from collc.passes.analysis import clocks
from collc.passes.analysis.hazards import with_all_dependencies
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize


def reduced_plainly(program: Program) -> list[tuple[int, int]]:
    """Return the dependencies without which an instruction and its dependency have no other path."""
    graph = nx.DiGraph()
    graph.add_edges_from(
        (i, i + 1) for i in range(program.num_instructions - 1) if program.block[i] == program.block[i + 1]
    )
    pairs = set(zip(program.deps.tolist(), program.dependent.tolist(), strict=True))
    graph.add_edges_from(pairs)
    kept = nx.transitive_reduction(graph)
    return sorted((b, a) for a, b in pairs if kept.has_edge(a, b))


@settings(max_examples=examples(40))
@given(schedules(kinds=("allgather", "allreduce", "alltoall", "reduce")), st.sampled_from([1, 40, 1 << 23]))
def test_implied_dependencies_are_removed_whatever_ranks_are_taken_at_once(schedule, entries: int) -> None:
    program = with_all_dependencies(Lower().run(Discretize().run(schedule)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "_ENTRIES", entries)
        found = clocks.without_implied(program)
    assert list(zip(found.dependent.tolist(), found.deps.tolist(), strict=True)) == reduced_plainly(program)
