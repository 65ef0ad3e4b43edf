"""The bottom-up search: what theorems predict is what schedules cost, and the frontier is one."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.frontends import coll
from collc.frontends.coll.families.distance_regular import NAMES
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.expansion.expansion import Expansion
from collc.passes.expansion.theorems import optimum
from collc.passes.finder import expand, tasks
from collc.passes.finder.bases import DISTANCE_REGULAR, bases, can_be_bidirectional, circulant_offsets
from collc.passes.finder.database import Row, frontier, merged_frontiers, parse_rows, print_rows, rows_for
from collc.passes.finder.evaluate import bfb_cost
from collc.passes.finder.expand import Candidate, prune
from collc.passes.finder.measure import bfb_costs, measure, row_mistakes, with_reduce_scatter
from collc.passes.finder.search import BottomUp, search_bottom_up
from collc.passes.finder.wide import wide_cost
from collc.passes.synthesis.breadth_first.bfb import BFB

SIZES = [(n, d) for d in (1, 2, 3, 4, 5, 6) for n in range(2, 27)]


def allgather(topology: Topology) -> Problem:
    return Problem(topology, Collective("allgather", topology.num_ranks))


def real(candidate: Candidate) -> Candidate:
    """Return the candidate with what its breadth-first schedule costs."""
    (found, *_) = measure(attrs.evolve(candidate, scheduler="bfb"), coll.topology)
    return found


# ---- bases


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}-{size[1]}")
def test_bases_have_the_size_and_cost_they_say(size: tuple[int, int]) -> None:
    for base in bases(*size):
        topology = coll.topology(base.expression)
        assert size == (topology.num_ranks, topology.degree)
        assert (base.T_L, base.both_ways) == (topology.diameter, topology.reverse_links is not None), base
        assert bfb_costs(topology)[1] <= base.T_B, base
        loops = bool((topology.src == topology.dst).any())
        assert loops <= base.loops, base
        assert not (base.simple and loops), base
        if base.exact:
            assert base.T_B == bfb_costs(topology)[1], base


#: (degree, diameter) graphs by construction: expression -> (nodes, degree, T_L)
LARGE = {
    "polarity(3, 3)": (13, 4, 2), "polarity(3, 5)": (31, 6, 2), "polarity(3, 7)": (57, 8, 2),
    "polarity(3, 11)": (133, 12, 2), "polarity(6, 3)": (364, 4, 5), "slim_fly(3)": (18, 5, 2),
    "slim_fly(4)": (32, 6, 2), "slim_fly(5)": (50, 7, 2), "slim_fly(7)": (98, 11, 2), "slim_fly(8)": (128, 12, 2),
}  # fmt: skip


@pytest.mark.parametrize("expression", LARGE)
def test_large_graphs_of_small_diameter_are_bases(expression: str) -> None:
    nodes, degree, steps = LARGE[expression]
    (base,) = (base for base in bases(nodes, degree) if base.expression == expression)
    topology = coll.topology(expression)
    assert (topology.num_ranks, topology.degree, topology.diameter) == (nodes, degree, steps)
    assert base.T_L == steps and base.both_ways and topology.reverse_links is not None
    assert not (topology.src == topology.dst).any()
    assert bfb_costs(topology)[1] <= base.T_B


@pytest.mark.parametrize(("nodes", "degree"), [(7, 3), (15, 3), (21, 5), (43, 7), (85, 5), (72, 9), (8, 3)])
def test_sizes_without_such_graphs_have_none(nodes: int, degree: int) -> None:
    """Self-loops (7, 15, 21), orders that are no prime powers (43, 72) or have no polarity (85)."""
    assert not [base for base in bases(nodes, degree) if base.expression.startswith(("polarity", "slim_fly"))]


def test_distance_regular_graphs_are_those_of_the_language() -> None:
    assert {name: (known.ranks, known.degree, known.diameter) for name, known in NAMES.items()} == DISTANCE_REGULAR


@pytest.mark.parametrize(("nodes", "k"), [(7, 2), (50, 2), (64, 3), (100, 4), (5, 3)])
def test_offsets_of_circulants_have_the_diameter_they_say(nodes: int, k: int) -> None:
    offsets, steps = circulant_offsets(nodes, k)
    if not offsets:
        assert 2 * k >= nodes
        return
    topology = coll.topology(f"circulant({nodes}, {{{', '.join(map(str, offsets))}}})")
    assert (steps, 2 * k) == (topology.diameter, topology.degree)


def test_pairs_of_links_need_an_even_number() -> None:
    assert [True, True, False] == [can_be_bidirectional(8, 3), can_be_bidirectional(9, 4), can_be_bidirectional(9, 3)]


# ---- predictions

SMALL = [
    candidate
    for n, d in [(3, 1), (4, 1), (3, 2), (4, 2), (5, 2), (4, 3), (6, 3), (6, 2)]
    for candidate in BottomUp().frontier(n, d)
]


@given(st.sampled_from(SMALL))
@settings(max_examples=examples(25))
def test_line_graphs_cost_at_most_what_theorem_7_says(base: Candidate) -> None:
    base = real(base)
    made = expand.line(base)
    if made is None:
        assert base.degree == 1
        return
    found = real(made)
    assert made.T_L == found.T_L
    assert found.T_B <= made.T_B
    assert made.T_B - made.slack <= found.T_B


@given(st.sampled_from(SMALL), st.integers(2, 3))
@settings(max_examples=examples(25))
def test_degree_expansion_and_powers_cost_what_theorems_11_and_12_say(base: Candidate, n: int) -> None:
    base = real(base)
    for made in (expand.degree(base, n), expand.power(base, n) if base.nodes**n < 80 else None):
        if made is None:
            continue
        topology = coll.topology(made.expression)
        assert (made.nodes, made.degree) == (topology.num_ranks, topology.degree)
        schedule = Expansion().run(allgather(topology))
        assert verify(schedule).ok
        assert (made.T_L, made.T_B) == (cost(schedule).T_L, cost(schedule).T_B)


@given(st.sampled_from(SMALL), st.sampled_from(SMALL))
@settings(max_examples=examples(25))
def test_products_of_optimal_factors_are_optimal(one: Candidate, two: Candidate) -> None:
    one, two = real(one), real(two)
    made = expand.product((one, two))
    if made is None:
        assert not (one.multiplies and two.multiplies)
        return
    found = real(made)
    assert (made.T_L, made.T_B, made.both_ways) == (found.T_L, found.T_B, found.both_ways)
    assert optimum(made.nodes) == found.T_B


def test_line_graphs_of_line_graphs_are_written_as_one() -> None:
    (base,) = (one for one in bases(16, 4) if one.expression.startswith("circulant"))
    twice = expand.line(expand.line(base))  # type: ignore[arg-type]
    assert twice is not None
    assert twice.expression == "line(circulant(16, {3, 4}), 2)"


def test_a_wrong_prediction_does_not_hide_what_it_seemed_to_beat() -> None:
    good = Candidate("biring(8)", 8, 2, 4, optimum(8), both_ways=True)
    wrong = Candidate("uniring(8, 2)", 8, 2, 1, optimum(8), both_ways=True, exact=False)
    assert prune([good, wrong]) == [wrong]
    found = search_bottom_up(8, 2, {(8, 2): [good, wrong]}, lambda guess: [] if guess is wrong else [real(guess)])
    assert any(one.T_L <= 4 and one.T_B == optimum(8) and one.both_ways for one in found)
    assert wrong not in found


# ---- the paper's own space


@pytest.mark.parametrize(
    ("nodes", "row"),
    [
        (32, (3, Fraction(1))), (64, (4, Fraction(1))), (128, (4, Fraction(33, 32))), (256, (5, Fraction(65, 64))),
        (512, (6, Fraction(129, 128))), (1024, (6, Fraction(261, 256))), (1024, (8, Fraction(257, 256))),
    ],
)  # fmt: skip
def test_predictions_hold_the_rows_of_table_7(nodes: int, row: tuple[int, Fraction]) -> None:
    found = BottomUp().frontier(nodes, 4)
    assert any(one.T_L <= row[0] and one.T_B <= row[1] for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [2, 4, 8, 16])
def test_every_size_has_a_prediction(degree: int) -> None:
    search = BottomUp()
    for nodes in range(degree + 1, 2001, 37):
        found = search.frontier(nodes, degree)
        assert found
        assert any(one.both_ways for one in found)
        assert any(one.T_B == optimum(nodes) for one in found)


# ---- measuring


@pytest.mark.parametrize(
    "expression",
    [
        "generalized_kautz(4, 50)", "generalized_kautz(12, 60)", "bidirectional(generalized_kautz(5, 40))",
        "line(circulant(11, {1, 2, 3, 4, 5}))", "line(directed_circulant(6), 2)", "complete(12)", "uniring(5, 9)",
        "circulant(30, {1, 5})", "torus(3, 4, 5)", "debruijn(10, 2)", "directed_circulant(15, {1, 2, 7})",
        "cayley(metacyclic(8, 2, 7), {1, 3, 4, 6})",
    ],
)  # fmt: skip
def test_all_ways_to_measure_agree_with_the_schedule(expression: str) -> None:
    topology = coll.topology(expression)
    schedule = BFB(relax=False).run(allgather(topology))
    costs = (cost(schedule).T_L, cost(schedule).T_B)
    assert costs == bfb_costs(topology) == bfb_cost(topology) == wide_cost(topology)


def test_beside_parallel_links_the_relaxed_schedule_counts() -> None:
    topology = coll.topology("torus(3, 3, 2)")
    schedule = BFB().run(allgather(topology))
    assert (cost(schedule).T_L, cost(schedule).T_B) == bfb_costs(topology)
    assert bfb_costs(topology)[1] < bfb_cost(topology)[1]


def test_an_expression_of_another_size_is_an_error() -> None:
    wrong = Candidate("hamming(2, 3)", 10, 4, 2, optimum(10), exact=False)
    with pytest.raises(CollcError, match="C0571"):
        measure(wrong, coll.topology)


def test_what_cannot_be_built_is_no_candidate() -> None:
    assert [] == measure(Candidate("nothing(3)", 3, 1, 2, optimum(3), exact=False), coll.topology)
    assert [] == measure(Candidate("circulant(8, {2})", 8, 2, 2, optimum(8), exact=False), coll.topology)


# ---- tasks


@pytest.mark.parametrize(("nodes", "degree"), [(12, 4), (24, 3), (36, 6), (32, 2)])
def test_found_rows_compile_and_cost_what_they_say(nodes: int, degree: int) -> None:
    rows = tasks.search_one(nodes, degree, [], 200, 0, coll.topology)
    assert rows
    for row in rows:
        assert row_mistakes(row, coll.topology) == []
        schedule = BFB().run(allgather(collc.topology(row.expression)))
        assert verify(schedule).ok
        assert (row.T_L, row.T_B) == (cost(schedule).T_L, cost(schedule).T_B)


@pytest.mark.parametrize(
    "expression",
    [
        "cayley(metacyclic(3, 4, 2), {1, 3, 4, 9})", "generalized_kautz(4, 29)", "hamming(2, 3)",
        "circulant(12, {1, 5})", "line(cayley(metacyclic(3, 4, 2), {1, 3, 4, 9}))", "uniring(7, 2)",
        "line(generalized_kautz(3, 20))",
        "line(directed_circulant(9, {1, 3, 4}), 2)", "bidirectional(cayley(metacyclic(5, 4, 2), {1, 9}))",
    ],
)  # fmt: skip
def test_a_row_knows_what_a_reduce_scatter_costs(expression: str) -> None:
    topology = coll.topology(expression)
    row = Row(expression, topology.num_ranks, topology.degree or 0, *bfb_costs(topology), topology.diameter or 0, False)
    schedule = BFB(relax=False).run(Problem(topology, Collective("reduce-scatter", topology.num_ranks)))
    assert cost(schedule).T_B == with_reduce_scatter(row, coll.topology).reduce_scatter_T_B


def test_a_reduce_scatter_that_costs_more_is_seen() -> None:
    row = Row("cayley(metacyclic(3, 4, 2), {1, 3, 4, 9})", 12, 4, 2, Fraction(11, 12), 2, False)
    slow = with_reduce_scatter(row, coll.topology)
    assert (Fraction(1), Fraction(23, 12)) == (slow.reduce_scatter_T_B, slow.allreduce_T_B)
    fast = attrs.evolve(
        row, expression="another with a long name, which does not matter", reduce_scatter_T_B=Fraction(11, 12)
    )
    for objective in ("allgather", "allreduce"):
        assert [fast] == frontier([slow, fast], objective=objective)
    near = attrs.evolve(fast, T_B=Fraction(23, 24))
    assert [slow, near] == frontier([near, slow], objective="allreduce")
    assert [slow] == frontier([near, slow])


def test_the_same_search_finds_the_same() -> None:
    one = tasks.search_one(24, 4, [], 300, 7, coll.topology)
    two = tasks.search_one(24, 4, [], 300, 7, coll.topology)
    assert one == two


def test_known_rows_are_kept_and_expanded() -> None:
    known = tasks.search_one(16, 4, [], 2000, 0, coll.topology)
    found = tasks.assemble(64, 4, known, coll.topology)
    assert any((row.T_L, row.T_B) == (3, Fraction(17, 16)) for row in found)


def test_the_plan_has_the_sizes_whose_line_graphs_lead_there() -> None:
    found = tasks.plan(1024, 4, evaluations=10)
    assert {16, 64, 256, 1024} == {task.nodes for task in found}
    assert {1024} == {task.nodes for task in found if task.bidirectional or task.kind == "line"}
    assert not any(task.bidirectional for task in tasks.plan(27, 3))


# ---- the database's text

ROWS = [
    Row("hamming(2, 3)", 9, 4, 2, Fraction(8, 9), 2, True, Fraction(1, 3)),
    Row("line(uniring(3, 3))", 9, 3, 3, Fraction(1), 3, False, scheduler="expansion"),
]


def test_rows_are_read_as_they_were_written() -> None:
    rows = [attrs.evolve(row, degree=4) for row in ROWS]
    text = print_rows(4, rows)
    assert rows == parse_rows(text, 4, "rows.txt")
    assert text == print_rows(4, list(reversed(rows)))
    assert [] == parse_rows(text, 4, "rows.txt", 10)
    assert rows == list(rows_for(9, 4, text))


@pytest.mark.parametrize(
    "line", ["9 2", "9 2 8/0 - 2 -> - bfb complete(9)", "9 2 8/9 - 2 = - bfb complete(9)", "9 x 1 - 2 -> - bfb a"]
)
def test_a_line_that_is_no_row_is_an_error(line: str) -> None:
    with pytest.raises(CollcError, match=r"C0570"):
        parse_rows(f"# comment\n{line}\n", 4, "rows.txt")


def test_rows_that_others_beat_are_dropped_and_no_better_one_is() -> None:
    slow = Row("uniring(9, 4)", 9, 4, 8, Fraction(8, 9), 8, False)
    fast = Row("one", 9, 4, 2, Fraction(8, 9), 2, False)
    both = Row("two", 9, 4, 3, Fraction(8, 9), 3, True)
    assert [fast, both] == merged_frontiers([slow, both, fast])
    assert [fast] == frontier([slow, both, fast])
    assert [both] == frontier([slow, both, fast], bidirectional=True)
    rated = attrs.evolve(slow, alltoall_rate=Fraction(1, 5))
    assert [fast, both, rated] == merged_frontiers([rated, both, fast])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"T_L": 3}, "T_L is 2"), ({"T_B": Fraction(1)}, "T_B is 8/9"), ({"nodes": 10}, "has 9 ranks"),
        ({"bidirectional": False}, "bidirectional is True"), ({"expression": "hamming(2, 3"}, ""),
        ({"diameter": 5}, "diameter is 2"), ({"reduce_scatter_T_B": Fraction(1)}, "T_B is 8/9"),
        ({"alltoall_rate": Fraction(1, 2)}, "alltoall_rate is 1/3"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_seen(change: dict[str, object], text: str) -> None:
    (found, *_) = row_mistakes(attrs.evolve(ROWS[0], **change), coll.topology)
    assert text in found
    assert [] == row_mistakes(ROWS[0], coll.topology)
