"""How far the finder's database is from the bounds, and what lies between two known costs.

python benchmarks/finder.py distances                      # sizes by steps above Moore's bound, for each degree
python benchmarks/finder.py between -n 1024 -d 4 --steps 5 --evaluations 400000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from collc.ir.costs.bounds import moore_graph_steps, moore_steps
from collc.passes.finder.cayley import Candidate, candidates
from collc.passes.finder.climb import Draws
from collc.passes.finder.database import DEGREES, parse_rows, shipped
from collc.passes.finder.evaluate import Evaluator
from collc.passes.finder.groups import groups_of_order
from collc.passes.finder.lines import line_cost_cayley

_EXHAUSTED = 20_000  # sets of a group up to which all are tried


def distances() -> Iterator[str]:
    """Yield a line for each degree and direction: the numbers of sizes by steps above Moore's bound."""
    for degree in DEGREES:
        rows = parse_rows(shipped(degree) or "", degree, "shipped")
        for both in (False, True):
            fastest: dict[int, int] = {}
            optimal: dict[int, int] = {}
            for row in rows:
                if both and not row.bidirectional:
                    continue
                above = row.T_L - (moore_graph_steps if both else moore_steps)(row.nodes, degree)
                fastest[row.nodes] = min(above, fastest.get(row.nodes, above))
                if row.T_B == Fraction(row.nodes - 1, row.nodes):
                    optimal[row.nodes] = min(above, optimal.get(row.nodes, above))
            name = f"degree {degree}, {'<->' if both else '->'}"
            yield f"{name}: {len(fastest)} sizes, fewest steps {_counts(fastest)}; least T_B {_counts(optimal)}"


def _counts(above: dict[int, int]) -> str:
    return ", ".join(f"+{more}: {count}" for more, count in sorted(Counter(above.values()).items()))


def between(nodes: int, degree: int, steps: int, evaluations: int) -> Iterator[str]:
    """Yield the least T_B of digraphs of this many steps: Cayley digraphs, and line graphs of smaller ones."""
    for times in range(steps):
        base = nodes // degree**times
        if nodes % degree**times or base <= degree:
            return
        found, tried = _bases(base, degree, steps - times, evaluations)
        best: tuple[Fraction, Candidate] | None = None
        evaluators: dict[str, Evaluator] = {}
        for one in found:
            evaluator = evaluators.setdefault(one.group.expression, Evaluator(one.group))
            generators = np.array(one.generators, dtype=np.int64)
            cost = (one.T_L, one.T_B) if not times else line_cost_cayley(evaluator, generators, times)
            if cost is not None and cost[0] == steps and (best is None or cost[1] < best[0]):
                best = cost[1], one
        shown = "none" if best is None else f"least T_B {best[0]}, {best[1].found(False).expression}"
        yield f"{base} nodes, line graph {times} times: {tried}, {len(found)} of {steps - times} steps: {shown}"


def _bases(nodes: int, degree: int, steps: int, evaluations: int) -> tuple[list[Candidate], str]:
    """Return Cayley digraphs of a number of steps, and how many were tried: all if there are few."""
    groups = groups_of_order(nodes)
    draws = [
        (group, Draws(evaluator, degree, False), evaluator) for group in groups for evaluator in [Evaluator(group)]
    ]
    if max(one.count for _, one, _ in draws) > _EXHAUSTED:
        found = candidates(nodes, degree, evaluations=evaluations, spend_all=True)
        return [one for one in found if one.T_L == steps], f"{evaluations} evaluations"
    result: list[Candidate] = []
    for group, draw, evaluator in draws:
        sets = draw.all()
        costs = evaluator.costs(sets, steps)
        result += [
            Candidate(group, tuple(sets[row].tolist()), steps, costs.T_B(row))
            for row in np.flatnonzero(costs.steps == steps).tolist()
        ]
    return result, f"all {sum(one.count for _, one, _ in draws)} sets of {len(groups)} groups"


def main() -> None:
    """Run one of the two measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("distances")
    search = commands.add_parser("between")
    search.add_argument("-n", type=int, default=1024)
    search.add_argument("-d", type=int, default=4)
    search.add_argument("--steps", type=int, default=5)
    search.add_argument("--evaluations", type=int, default=400_000)
    given = parser.parse_args()
    lines = distances() if given.command == "distances" else between(given.n, given.d, given.steps, given.evaluations)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
