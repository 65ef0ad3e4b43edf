"""The shipped database is no worse than a new search of its sizes: by each family, with links both ways."""

from __future__ import annotations

from fractions import Fraction

import pytest
from sampling import EXHAUSTIVE

from collc.passes.finder.cayley import search_cayley
from collc.passes.finder.database import DEGREES, parse_rows, shipped
from collc.passes.finder.found import Found
from collc.passes.finder.inserted import search_inserted
from collc.passes.finder.polycirculants import search_polycirculants

#: primes, few times a prime, and sizes of many groups
SIZES = [97, 206, 262, 371, 504, 807, 1054, 1459]
EVALUATIONS = 2000 if EXHAUSTIVE else 200


#: what the page of the finder says of links both ways: degree, nodes, steps, bandwidth time over the least
FOUND = [
    (6, 31, 2, "1"), (8, 57, 2, "1"), (3, 1000, 13, "1"), (4, 504, 6, "1"), (4, 885, 9, "1"), (4, 807, 9, "1"),
    (4, 1245, 10, "1"), (3, 504, 9, "1"), (6, 547, 8, "1"), (6, 1459, 6, "1.022"), (4, 1996, 11, "1"),
    (4, 1996, 9, "1.004"),
]  # fmt: skip


@pytest.mark.parametrize(("degree", "nodes", "steps", "times"), FOUND)
def test_the_page_tells_of_rows_that_there_are(degree: int, nodes: int, steps: int, times: str) -> None:
    rows = parse_rows(shipped(degree) or "", degree, "shipped", nodes)
    most = Fraction(times) * Fraction(nodes - 1, nodes)
    assert any(row.bidirectional and row.T_L == steps and row.T_B <= most for row in rows)


@pytest.mark.parametrize("degree", DEGREES)
def test_every_row_knows_its_reduce_scatter_and_its_rate(degree: int) -> None:
    """Without the first, an allreduce would be priced as two allgathers."""
    for row in parse_rows(shipped(degree) or "", degree, "shipped"):
        assert row.reduce_scatter_T_B is not None and row.alltoall_rate is not None, row.expression


def searched(nodes: int, degree: int) -> list[Found]:
    """Return what short searches of three families find."""
    return [
        *search_cayley(nodes, degree, evaluations=EVALUATIONS, bidirectional=True),
        *search_polycirculants(nodes, degree, evaluations=EVALUATIONS),
        *search_inserted(nodes, degree, evaluations=EVALUATIONS),
    ]


@pytest.mark.parametrize("degree", [3, 4, 6, 8])
@pytest.mark.parametrize("nodes", SIZES)
def test_a_short_search_finds_nothing_better(nodes: int, degree: int) -> None:
    if nodes * degree % 2:
        return
    rows = [row for row in parse_rows(shipped(degree) or "", degree, "shipped", nodes) if row.bidirectional]
    for one in searched(nodes, degree):
        assert any(row.T_L <= one.T_L and row.T_B <= one.T_B for row in rows), one
