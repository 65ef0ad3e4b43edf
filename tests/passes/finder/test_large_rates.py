"""All-to-all rates of searches above 4,096 nodes: of networks of few kinds of nodes, equal to their distance bounds."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest

from collc.frontends.coll import topology
from collc.passes.finder.database import parse_rows, rate_text, rows_for
from collc.passes.finder.measure import row_mistakes
from collc.passes.finder.rates import is_quick, rate_bracket
from collc.passes.finder.tasks import _rated
from collc.passes.synthesis.flow.spread import distance_bound


def hops_from(call: str, start: int) -> list[int]:
    """Return the hops from a node, counted without the finder's help."""
    network = topology(call)
    heads: list[list[int]] = [[] for _ in range(network.num_ranks)]
    for a, b in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        heads[a].append(b)
    hops, queue = {start: 0}, [start]
    for node in queue:
        for head in heads[node]:
            if head not in hops:
                hops[head] = hops[node] + 1
                queue.append(head)
    return [hops[node] for node in range(network.num_ranks)]


@pytest.mark.parametrize(
    "call", ["torus(71, 71)", "circulant(4999, {70, 71})", "cayley(metacyclic(75, 60, 2), {62, 1611, 2289, 3418})"]
)
def test_a_rate_is_at_most_the_links_over_the_distances(call: str) -> None:
    """Of one node: all are alike. Where all generators are alike too, the bound is met."""
    network = topology(call)
    assert is_quick(network)
    lower, upper = rate_bracket(network)
    bound = Fraction(network.degree or 0, sum(hops_from(call, 0)))
    assert lower == upper <= bound
    if call.startswith("torus"):
        assert lower == bound == distance_bound(network)


def test_searches_rate_networks_of_few_kinds_of_nodes() -> None:
    rows = parse_rows(
        "5041 70 1 1 70 <-> - bfb torus(71, 71)\n5041 9 2 2 9 <-> - bfb inserted(torus(70, 72), {0 <-> 1, 2 <-> 3})\n"
        "5041 9 2 2 9 -> - bfb generalized_kautz(4, 5041)\n", 4, "rows",
    )  # fmt: skip
    one, other, kautz = (_rated(row, topology) for row in rows)
    assert one.alltoall_rate == rate_bracket(topology("torus(71, 71)"))[0]
    assert other.alltoall_rate is None
    assert kautz.alltoall_rate is not None and kautz.alltoall_upper is not None


def test_every_large_row_of_the_database_has_a_rate_that_a_check_computes_again() -> None:
    rows = [row for size in (5000, 8192, 10_000) for row in rows_for(size, 4)]
    assert rows and all(row.alltoall_rate is not None for row in rows)
    row = next(row for row in rows if row.nodes == 10_000 and row.expression.startswith("cayley("))
    assert not row_mistakes(row, topology)
    wrong = attrs.evolve(row, alltoall_rate=(row.alltoall_rate or 0) + Fraction(1, 10**9))
    [mistake] = row_mistakes(wrong, topology)
    assert mistake == f"alltoall_rate is {rate_text(row)}, the row has {rate_text(wrong)}"
