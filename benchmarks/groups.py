"""Groups that run at the same time on one network: the time of all over its bound, planned jointly and in proportion.

    python benchmarks/groups.py [--only torus] [--largest 128]

Members are drawn at random, the same in every run, if a case does not name them. ``alone`` is the time of all if every
group gets parts of its links in proportion to its time alone, ``joint`` that of the schedules which collc plans (by
`forest`, `flow` for an alltoall), both over the bound of all schedules. ``trees`` is the time over the bound of
schedules by trees; ``-`` if it is the same bound. Seconds of planning are those of one processor. Schedules of groups
with up to 100 ranks in all are executed.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from fractions import Fraction

import attrs

import collc
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.graph.members import inside
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes import PASSES
from collc.passes.synthesis.groups.together import planned, time_together, together

_EXECUTED = 100
_SIZE = 1 << 20


@attrs.frozen
class Case:
    """Groups of ``size`` ranks on a network: ``lines`` are rows and columns of a grid, or boxes and rails."""

    network: str
    kind: str
    size: int
    lines: bool = False
    sizes: tuple[int, int] = (_SIZE, _SIZE)

    def problems(self) -> list[Problem]:
        """Return the problems of all groups."""
        topology = collc.topology(self.network)
        n = topology.num_ranks
        groups = self._lines(n) if self.lines else [(one, self.sizes[0]) for one in self._drawn(n)]
        return [Problem(topology, Collective(self.kind, n, members=tuple(sorted(members)), size=size))
                for members, size in groups]  # fmt: skip

    def _lines(self, n: int) -> list[tuple[Sequence[int], int]]:
        rows = [(range(first, first + self.size), self.sizes[0]) for first in range(0, n, self.size)]
        return [*rows, *((range(first, n, self.size), self.sizes[1]) for first in range(self.size))]

    def _drawn(self, n: int) -> list[list[int]]:
        ranks = list(range(n))
        random.Random(f"{self.network} {self.size}").shuffle(ranks)
        return [ranks[first : first + self.size] for first in range(0, n - self.size + 1, self.size)]


CASES = (
    Case("torus(4, 4)", "allgather", 4), Case("torus(4, 4)", "allreduce", 4), Case("torus(4, 4)", "alltoall", 4),
    Case("torus(8, 8)", "allgather", 8, True), Case("torus(8, 8)", "allreduce", 8, True, (_SIZE, 4 * _SIZE)),
    Case("torus(16, 16)", "allgather", 16, True, (_SIZE, 4 * _SIZE)), Case("torus(8, 8)", "allgather", 8),
    Case("torus(8, 8)", "allreduce", 8), Case("torus(8, 8)", "reduce-scatter", 8), Case("torus(8, 8)", "alltoall", 8),
    Case("mesh(8, 8)", "allgather", 8), Case("hypercube(6)", "allgather", 8), Case("jellyfish(64, 4)", "allgather", 8),
    Case("jellyfish(64, 4)", "allreduce", 8), Case("jellyfish(64, 4)", "alltoall", 8),
    Case("fat_tree(4)", "allreduce", 4),
    Case("fat_tree(8)", "allgather", 8), Case("leaf_spine(8, 8, 4, 2)", "allreduce", 8),
    Case("dragonfly(2, 4, 2)", "allgather", 8), Case("dragonfly(2, 4, 2)", "allreduce", 8),
    Case("mi250(4)", "allgather", 8), Case("degraded(dgx_h100(4), {gpu[1,3]}, 0.5)", "allreduce", 8, True),
    Case("jellyfish(128, 4)", "allgather", 8), Case("torus(12, 12)", "allgather", 8),
    Case("jellyfish(256, 4)", "allgather", 8),
)  # fmt: skip


def alone(problems: Sequence[Problem]) -> Fraction:
    """Return the time of all on parts in proportion to the times of each alone, with all relays."""
    networks = [inside(problem.topology, problem.collective) for problem in problems]
    times = [bound(one.topology, one.collective).value * (problem.collective.size or 0)
             for one, problem in zip(networks, problems, strict=True)]  # fmt: skip
    return sum(times, Fraction(0))


def row(case: Case) -> str:
    problems = case.problems()
    begun = time.process_time()
    groups = together(problems)
    seconds = time.process_time() - begun
    scheduler = PASSES.load("flow" if case.kind == "alltoall" else "forest")()
    levels = planned(groups, [scheduler] * len(problems))
    if sum(problem.collective.num_members for problem in problems) <= _EXECUTED:
        assert all(verify(level).ok for level in levels)
    found, _ = time_together(levels, [problem.collective.size or 0 for problem in problems])
    assert found >= groups.bound.value
    trees = "-" if groups.tree_bound is None else f"{float(found / groups.tree_bound.value):.4f}"
    shown = [f"{float(value / groups.bound.value):9.4f}" for value in (alone(problems), found)]
    return (
        f"{case.network:42} {case.kind:14} {len(problems):6} {problems[0].topology.num_ranks:5} "
        f"{shown[0]} {shown[1]} {trees:>8} {seconds:8.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name has this text")
    parser.add_argument("--largest", type=int, default=256, help="the most ranks")
    options = parser.parse_args()
    print(f"{'network':42} {'collective':14} groups ranks     alone     joint    trees    CPU s")
    for case in CASES:
        if options.only in case.network and collc.topology(case.network).num_ranks <= options.largest:
            print(row(case), flush=True)


if __name__ == "__main__":
    main()
