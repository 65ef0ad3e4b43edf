"""Generated C, built and run, for several MPIs."""

from __future__ import annotations

import attrs
import programs
from built_programs import direct, ring
from mpi_c_hoards import hoarded, recursive_doubling_allreduce
from mpi_c_programs import relay, reused

from collc.backends.mpi_c.results import RunResult
from collc.ir.collective import KINDS, Collective
from collc.ir.program import Program
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.program.unfuse import Unfuse
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB

SYNTHESIZED = ("allgather", "reduce-scatter", "allreduce")


def synthesized(topology: Topology, kind: str, level: int = 2) -> Program:
    """Compile a collective on a topology: 0 lowers only, 1 coalesces, 2 shares out to threadblocks, 3 unfuses."""
    schedule = BFB().run(Problem(topology, Collective(kind, topology.num_ranks)))
    program = Lower().run(Discretize().run(schedule))
    if level > 0:
        program = Coalesce().run(program)
    if level > 1:
        program = BalanceThreadblocks().run(program)
    if level > 2:
        program = Unfuse().run(program)
    return attrs.evolve(program, name=f"{kind}_{level}")


def right(result: RunResult) -> int:
    """Require that every row is correct; return their number."""
    wrong = [f"{r.name} {r.count} {r.dtype} {r.op} {r.in_place}: {r.detail}" for r in result.rows if not r.correct]
    assert not wrong, wrong[:5]
    return len(result.rows)


def by_hand(ranks: int, chunks: int) -> list[Program]:
    made = [attrs.evolve(direct(kind, ranks, chunks, root=ranks - 1), name=f"direct {kind}") for kind in KINDS]
    kinds = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
    made += [attrs.evolve(ring(kind, ranks, chunks, root=1 % ranks), name=f"ring {kind}") for kind in kinds]
    if ranks > 1:
        made += [programs.ring_allreduce(ranks, chunks, fused=False), programs.allpairs_allreduce(ranks, chunks)]
        made += [programs.alltoall(ranks, chunks), programs.scratch_sum(ranks)]
    if ranks == 4:
        made += [programs.recursive_doubling_allgather(ranks, chunks), recursive_doubling_allreduce(ranks)]
    if ranks == 3:
        made += [relay([3, 1, 0, 2, 5, 4], 3, 2)]
    if ranks == 2:
        made += [reused(3), hoarded(20)]
    return made
