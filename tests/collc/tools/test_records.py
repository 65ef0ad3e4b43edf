"""The page of networks that meet both bounds is that of the database."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import attrs
import pytest

import collc
from collc.ir.costs.bounds import moore_graph_steps, moore_steps
from collc.passes.finder.climb import Draws
from collc.passes.finder.database import DEGREES, Row, parse_rows, print_rows, shipped
from collc.passes.finder.evaluate import Evaluator
from collc.passes.finder.groups import groups_of_order
from collc.passes.finder.lines import line_cost_cayley
from collc.tools import records
from collc.tools.records import meets_both, records_text, spans

PAGE = Path(__file__).parents[3] / "docs" / "records.md"
PETERSEN = Row('distance_regular("petersen")', 10, 3, 2, Fraction(9, 10), 2, True)


def test_the_page_is_that_of_the_database() -> None:
    """Written again by ``python -m collc.tools.records > docs/records.md``."""
    assert PAGE.read_text() == records_text()


def test_every_size_of_the_page_has_such_a_row_and_none_is_left_out() -> None:
    listed: set[tuple[int, str, int, int]] = set()
    for line in records_text().splitlines():
        if match := re.match(
            r"\| `(<?->)` \| (\d+) \| ([\d., ]+) \| `collc find --check -d (\d+) -n ([\d.,]+)` \|", line
        ):
            links, steps, sizes, degree, given = match.groups()
            assert sizes.replace(" ", "") == given
            for span in given.split(","):
                first, _, end = span.partition("..")
                for nodes in range(int(first), int(end or int(first) + 1)):
                    listed.add((int(degree), links, int(steps), nodes))
    best: set[tuple[int, str, int, int]] = set()
    for degree in DEGREES:
        for row in parse_rows(shipped(degree) or "", degree, "shipped"):
            if row.T_B != Fraction(row.nodes - 1, row.nodes):
                continue
            if row.T_L == moore_steps(row.nodes, degree):
                best.add((degree, "->", row.T_L, row.nodes))
            if row.bidirectional and degree > 2 and row.T_L == moore_graph_steps(row.nodes, degree):
                best.add((degree, "<->", row.T_L, row.nodes))
    assert listed == best
    assert len(listed) > 500


def test_a_row_that_misses_a_bound_is_not_listed() -> None:
    assert meets_both(PETERSEN, True)
    assert not meets_both(attrs.evolve(PETERSEN, T_L=3), True)
    assert not meets_both(attrs.evolve(PETERSEN, T_B=Fraction(1)), True)
    assert not meets_both(attrs.evolve(PETERSEN, bidirectional=False), True)
    assert collc.topology(PETERSEN.expression).diameter == 2


def test_the_table_of_links_both_ways_counts_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten nodes in 2 and 5 steps, 2 is the bound; twelve in 7 of 3 steps at the least T_B, in 4 at more."""
    twelve = attrs.evolve(PETERSEN, expression="cube", nodes=12, T_L=7, T_B=Fraction(11, 12))
    rows = [
        PETERSEN, attrs.evolve(PETERSEN, expression="slow", T_L=5), twelve,
        attrs.evolve(twelve, T_L=4, T_B=Fraction(1)), attrs.evolve(twelve, T_L=2, bidirectional=False),
        attrs.evolve(twelve, nodes=3000),
    ]  # fmt: skip
    monkeypatch.setattr(records, "shipped", lambda degree: print_rows(degree, rows))
    assert "| 3 | 2 | 1 | 0 | 1 | 2.00 | 0.50 |" == records.near(3)
    assert "| 3 | 1 | 1 | 0 | 0 |" == records.above(3)
    rows.append(attrs.evolve(twelve, T_L=6, T_B=Fraction(11, 12) * Fraction(101, 100)))
    assert "| 3 | 2 | 1 | 0 | 2 | 2.00 | 0.50 |" == records.near(3)
    slow = [attrs.evolve(twelve, nodes=nodes, T_L=9, T_B=Fraction(nodes - 1, nodes)) for nodes in (15, 18)]
    rows += slow  # all groups of 15 elements are abelian
    assert "| 3 | 4 | 1 | 1 | 2 | 4.00 | 3.25 |" == records.near(3)
    del rows[-len(slow) :]
    rows += [attrs.evolve(PETERSEN, nodes=nodes, T_L=steps) for nodes, steps in ((4, 9), (14, 5), (16, 6), (18, 9))]
    assert "| 3 | 1 | 1 | 1 | 2 |" == records.above(3)


def test_the_table_of_little_bandwidth_time_counts_allreduces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten nodes with three links each: two steps are the bound. Half of 5 % more may be that of a reduce-scatter."""
    one_way = attrs.evolve(PETERSEN, bidirectional=False, reduce_scatter_T_B=Fraction(9, 10))
    slower = attrs.evolve(one_way, T_L=4)
    rows = [attrs.evolve(one_way, T_B=Fraction(9, 10) * Fraction(112, 100)), slower]
    monkeypatch.setattr(records, "shipped", lambda degree: print_rows(degree, rows))
    assert "| 3 | 0 | 0 | 1 | 0 |" == records.few_and_little(3)
    rows[0] = attrs.evolve(one_way, T_B=Fraction(9, 10) * Fraction(110, 100))
    assert "| 3 | 1 | 0 | 0 | 0 |" == records.few_and_little(3)
    rows += [attrs.evolve(slower, nodes=2001), attrs.evolve(slower, nodes=4)]
    assert "| 3 | 1 | 0 | 0 | 0 |" == records.few_and_little(3)


def test_spans_are_read_as_they_were_written() -> None:
    assert spans([3, 4, 5, 8, 9, 11]) == "3..6, 8..10, 11"
    assert spans([]) == ""


def test_of_sixteen_nodes_the_line_graphs_are_the_ones_the_page_says() -> None:
    """The exhaustive part of the search between the bounds, as ``benchmarks/finder.py between`` does it."""
    groups = groups_of_order(16)
    counted, found, least = 0, 0, Fraction(2)
    for group in groups:
        evaluator = Evaluator(group)
        draws = Draws(evaluator, 4, False)
        sets = draws.all()
        counted += draws.count
        for one in sets[evaluator.costs(sets, 2).steps == 2]:
            cost = line_cost_cayley(evaluator, one, 3)
            assert cost is not None
            found, least = found + 1, min(least, cost[1])
    assert (13, 17745, 32, Fraction(277, 256)) == (len(groups), counted, found, least)
    text = " ".join(records_text().split())
    for part in ("all 17,745 sets of generators of 13 of the 14 groups", "32 have 2 steps", "is 277/256"):
        assert part in text
