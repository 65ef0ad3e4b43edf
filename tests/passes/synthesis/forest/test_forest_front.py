"""Numbers of trees by size: bandwidths known before packing are exact, and `k: auto` is the fastest of all numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial
from itertools import pairwise, product

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import topologies

from collc.driver.compile import compile_collective
from collc.driver.result import Settings
from collc.driver.sizes import at_size
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.costs.pieces import fastest_pieces, pieces_that_fit
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest import front
from collc.passes.synthesis.forest.front import MOST, Grown, Number, grown, members, numbers, work_limit
from collc.passes.synthesis.forest.scheduler import ForestScheduler

NETS = ("dgx_a100(1)", "torus(3, 2)", "biring(6)", "fat_tree(2)", "generalized_kautz(2, 5)", "mesh(2, 3)")
LARGER = [("dgx_h100(2)", "allgather"), ("mi250(1)", "broadcast")]
KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast")
SIZES = (1 << 10, 1 << 20, 1 << 25, 1 << 30)


def problem(net: Topology | str, kind: str = "allgather", size: int | None = None) -> Problem:
    net = topology(net) if isinstance(net, str) else net
    return Problem(net, Collective(kind, net.num_ranks, 0 if kind in ("broadcast", "reduce") else None, size=size))


def seconds(forest: Forest, size: int) -> Fraction:
    return fastest_pieces(forest, size, most=pieces_that_fit(forest))[0]


@cache
def every_number(net: str, kind: str) -> tuple[Forest, ...]:
    """The optimal trees, and 1 to 10, with links divided freely or into equal halves."""
    return tuple(
        ForestScheduler(k=k, pieces=1, division=division).run(problem(net, kind))
        for k in ("optimal", *range(1, MOST + 1))
        for division in (("free", "equal") if kind == "allreduce" else ("free",))
    )


@pytest.mark.parametrize(("net", "kind"), [*product(NETS, KINDS), *LARGER])
def test_no_number_is_faster_at_any_size(net: str, kind: str) -> None:
    for size in SIZES:
        found = ForestScheduler(k="auto").run(problem(net, kind, size))
        least = min(seconds(forest, size) for forest in every_number(net, kind))
        assert fastest_pieces(found, size, among=[found.pieces])[0] == least
        assert verify(found).ok


def test_the_number_depends_on_the_size() -> None:
    two = [ForestScheduler(k="auto").run(problem("dgx_h100(2)", size=size)) for size in (1 << 25, 1 << 30)]
    assert [forest.parts for forest in two] == [1, 10]
    assert ForestScheduler(k="auto").run(problem("dgx_h100(2)")).parts == 1  # as at 1 MiB
    given_pieces = ForestScheduler(k="auto", pieces=7).run(problem("dgx_h100(2)", size=1 << 30))
    among = [fastest_pieces(forest, 1 << 30, among=[7])[0] for forest in every_number("dgx_h100(2)", "allgather")]
    assert given_pieces.pieces == 7 and fastest_pieces(given_pieces, 1 << 30, among=[7])[0] == min(among)


def test_another_size_of_a_result_chooses_again() -> None:
    """The trees themselves change, not only their pieces."""
    small = problem("dgx_h100(2)", size=1 << 20)
    request = CollectiveRequest("c", "t", small, ScheduleRequest("forest", (Option("k", "auto"),)))
    result = compile_collective(request, (), Settings(until=Schedule))
    again = at_size(result, 1 << 30)
    assert isinstance(result.forest, Forest) and isinstance(again.forest, Forest)
    assert (result.forest.parts, again.forest.parts) == (1, 10)


@pytest.mark.parametrize("net", NETS)
def test_the_front(net: str) -> None:
    """Bandwidth rises along the front, no other number has more than smaller ones on it, and trees reach it exactly."""
    known = numbers(ForestScheduler(), problem(net))
    on = [one for one in known if one.front]
    assert [one.k for one in on] == sorted(one.k for one in on)
    assert all(more.per_byte < fewer.per_byte for fewer, more in pairwise(on))
    optimal = ForestScheduler().choices(problem(net))[0].k
    assert {one.k for one in known} == {*range(1, MOST + 1)} - {optimal}
    scale = cost(ForestScheduler(k=1, pieces=1).run(problem(net))).time_per_byte / next(
        (one.per_byte for one in known if one.k == 1), Fraction(1)
    )
    for one in known:
        if optimal != 1:
            assert cost(ForestScheduler(k=one.k, pieces=1).run(problem(net))).time_per_byte == one.per_byte * scale
        if not one.front:
            assert any(fewer.k < one.k and fewer.per_byte <= one.per_byte for fewer in on) or optimal < one.k


@given(topologies(), st.sampled_from(SIZES), st.sampled_from(["allgather", "broadcast"]))
@settings(max_examples=examples(40))
def test_bandwidth_alone_bounds_the_time(net: Topology, size: int, kind: str) -> None:
    """What is left out because of its bandwidth could not have won."""
    if net.num_ranks < 2 or not net.is_connected:
        return
    one = problem(net, kind)
    for number in numbers(ForestScheduler(unbalanced=True), one)[:3]:
        forest = ForestScheduler(k=number.k, unbalanced=True).grow(one)
        assert size * number.per_byte <= seconds(forest, size)


def test_work_is_limited() -> None:
    """Numbers are tried in order until the work is spent; the number that is too much ends the search."""
    given_ = problem("mi250(1)")
    known = numbers(ForestScheduler(), given_)
    each = {one.k: grown(ForestScheduler(k=one.k), given_, 1 << 40) for one in known}
    works = [found.work for found in each.values() if found is not None]
    for limit in (0, works[0], works[0] + works[1], sum(works[:4]) - 1, sum(works)):
        grow = partial(_within, each)
        tried = [one.k for one, _ in members(known, limit, lambda _: True, grow)]
        count = sum(sum(works[: i + 1]) <= limit for i in range(len(works)))
        assert tried == [one.k for one in known][:count]
    assert grown(ForestScheduler(k=4), given_, 10) is None
    assert work_limit(problem("torus(16, 16)"), 0) < work_limit(given_, 0) < work_limit(given_, 100)


def _within(each: dict[int, Grown | None], number: Number, most: int) -> Grown | None:
    found = each[number.k]
    return found if found is not None and found.work <= most else None


def test_without_the_front_the_number_is_the_optimal_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of all numbers can fail."""
    monkeypatch.setattr(front, "members", lambda *_: iter(()))
    found = ForestScheduler(k="auto").run(problem("dgx_h100(2)", size=1 << 25))
    assert found.parts == 2 and seconds(found, 1 << 25) > min(
        seconds(forest, 1 << 25) for forest in every_number("dgx_h100(2)", "allgather")
    )


def test_one_rank() -> None:
    alone = ForestScheduler(k="auto").run(problem("complete(1)"))
    assert alone == attrs.evolve(ForestScheduler().run(problem("complete(1)")), pieces=alone.pieces)


def test_numbers_of_an_allreduce_are_tried_in_the_order_of_their_halves() -> None:
    # the bound of all allreduces is the same for every number; work ends before the last ones are tried
    both = [numbers(ForestScheduler(k="optimal"), problem("mi250(2)", kind)) for kind in ("allgather", "allreduce")]
    orders = [[(one.k, one.front) for one in found] for found in both]
    assert orders[0] == orders[1]
    assert [k for k, front in orders[1] if front] == [1, 2, 3, 5, 7, 9]


def test_work_suffices_for_the_numbers_that_are_fast_at_a_size() -> None:
    size = 32 << 20
    found = ForestScheduler(k="auto").run(problem("mi250(2)", "allreduce", size))
    assert seconds(found, size) <= seconds(ForestScheduler(k=3, pieces=1).run(problem("mi250(2)", "allreduce")), size)
