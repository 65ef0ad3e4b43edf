"""The all-to-all's bound is LP (3)'s value or a bracket around it, proved by prices that anybody can check."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from commands import Ran
from cut_nets import switched
from hypothesis import given, settings
from lp import lp3
from sampling import examples
from strategies import connected, families

import collc as api
from collc.driver.bounding import bounded
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.flow import columns, rate
from collc.passes.synthesis.flow.rate import alltoall_bound
from collc.passes.synthesis.flow.scheduler import Flow


def least_time(net: Topology) -> float:
    """LP (3)'s time per byte, in floats."""
    return 1 / (net.num_ranks * lp3(net) * float(rate._least(net)))


def proved(net: Topology, found: dict[str, Any]) -> Fraction:
    """Return what a certificate as JSON has it proves: all pairs' cheapest ways over all links' prices, or a cut."""
    n, links = net.num_ranks, list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    if found["kind"] == "cut":
        inside = {*found["nodes"]}
        ranks = sum(node < n for node in inside)
        end = {"out of": 0, "into": 1}[found["direction"]]
        crossing = [k for k, ends in enumerate(links) if ends[end] in inside and ends[1 - end] not in inside]
        return Fraction(ranks * (n - ranks), n) / sum((net.bandwidth(k) for k in crossing), Fraction(0))
    prices = found["prices"] * (len(links) // len(found["prices"]))
    assert len(prices) == len(links) and min(prices) >= 0
    total = sum(sum(distances(net, links, prices, s)) for s in range(n))
    capacity = sum((net.bandwidth(k) * price for k, price in enumerate(prices)), Fraction(0))
    assert (str(total), str(capacity)) == (found["distance"], found["capacity"])
    return Fraction(total, n) / capacity


def distances(net: Topology, links: list[tuple[int, int]], prices: list[int], source: int) -> list[int]:
    """Dijkstra's algorithm; distances of the ranks."""
    out: dict[int, list[tuple[int, int]]] = {}
    for (a, b), price in zip(links, prices, strict=True):
        out.setdefault(a, []).append((b, price))
    found, queue = dict[int, int](), [(0, source)]
    while queue:
        paid, node = heapq.heappop(queue)
        if node not in found:
            found[node] = paid
            for head, price in out.get(node, []):
                heapq.heappush(queue, (paid + price, head))
    return [found[r] for r in range(net.num_ranks)]


def check(net: Topology) -> None:
    """Bound <= LP (3) <= above; equal where that is said; the simple bound is no better; certificates prove both."""
    found, simple, value = alltoall_bound(net), bound(net, Collective("alltoall", net.num_ranks)), least_time(net)
    assert found is not None and found.above is not None
    assert proved(net, found.to_json() or {}) == found.value
    assert proved(net, simple.to_json() or {}) == simple.value <= found.above
    assert float(found.value) <= value * (1 + 1e-6) and value <= float(found.above) * (1 + 1e-6)
    assert float(simple.value) <= value * (1 + 1e-6)
    if found.name == "LP (3)":
        assert found.value == found.above and float(found.value) == pytest.approx(value, rel=1e-6)
    assert found.above <= found.value * Fraction(101, 100)


@given(connected(min_ranks=2, max_ranks=6, extra=10) | switched(max_ranks=4) | families())
@settings(max_examples=examples(30), deadline=None)
def test_lp_3_lies_in_the_bracket(net: Topology) -> None:
    if net.num_ranks > 1:
        check(net)


NAMED = [
    "debruijn(2, 3)", "debruijn(2, 4)", "generalized_kautz(3, 20)", "kautz(2, 2)", "mesh(3, 4)", "torus(3, 4)",
    "hypercube(4)", "complete_bipartite(3)", "double_binary_tree(9)", "dgx1_v100()", "dgx_a100(2)",
    "dragonfly(3, 1, 1)", "mi250(1)", "fat_tree(4)", "shifted_ring(9)",
    "subset(dgx_a100(2), {0..3, 8..13})", "modified_debruijn(2, 3)",
    "line(complete_bipartite(2), 2)", "twisted_torus(4, 2)", "uniring(5)",
]  # fmt: skip


@pytest.mark.parametrize("expression", NAMED)
def test_named_networks(expression: str) -> None:
    check(api.topology(expression))


@pytest.mark.parametrize("expression", ["debruijn(2, 3)", "mesh(2, 3)", "uniring(5)", "complete_bipartite(2)"])
def test_a_schedule_lies_above_and_is_called_optimal_where_it_is(expression: str) -> None:
    net = api.topology(expression)
    found = bounded(cost(Flow().run(Problem(net, Collective("alltoall", net.num_ranks)))), net, None)
    assert found.time_per_byte >= found.bound.value
    assert found.bw_optimal == (float(found.time_per_byte) <= least_time(net) * (1 + 1e-9))


@pytest.mark.parametrize("limit", [(0, 0), (0, 1 << 23)])
def test_brackets_of_larger_networks(limit: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large for linear programs is bracketed, what is too large for that has the simple bound."""
    monkeypatch.setattr(rate, "_EXACT", limit[0])
    monkeypatch.setattr(rate, "_MOST_QUICK", limit[1])
    for expression in ("generalized_kautz(3, 20)", "mesh(3, 4)", "dgx_a100(2)", "double_binary_tree(9)"):
        net = api.topology(expression)
        if limit[1]:
            check(net)
        else:
            assert alltoall_bound(net) is None


def test_false_prices_are_seen() -> None:
    """The check can fail: it computes what prices prove."""
    net = api.topology("debruijn(2, 3)")
    found = alltoall_bound(net)
    assert found is not None
    wrong = {**(found.to_json() or {}), "prices": [1] * 16}
    with pytest.raises(AssertionError):
        proved(net, wrong)


def test_a_bracket_that_claims_too_much_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = columns.Commodities.bound
    monkeypatch.setattr(rate, "_EXACT", 0)
    monkeypatch.setattr(columns.Commodities, "bound", lambda *given: (right(*given)[0] * 2, right(*given)[1]))
    with pytest.raises(AssertionError):
        check(api.topology("mesh(3, 4)"))


def test_what_is_printed(collc: Callable[..., Ran], tmp_path: Any) -> None:
    (tmp_path / "a.coll").write_text(
        "topology t = debruijn(2, 3); collective c = alltoall on t; schedule c using flow;"
    )
    text, found = (
        collc("cost", str(tmp_path / "a.coll")),
        json.loads(collc("cost", "--json", str(tmp_path / "a.coll")).out),
    )
    assert "bound 9/4 M/B by LP (3), met: no schedule is faster" in text.out
    assert (found["T_B"], found["T_B_bound"], found["T_B_bound_above"]) == ("9/4", "9/4", "9/4")
    assert found["bw_optimal"] and found["bound_kind"] == "multi-commodity-flow"
    assert proved(api.topology("debruijn(2, 3)"), found["certificate"]) * 2 == Fraction(9, 4)


def test_a_bracket_is_printed_as_one(collc: Callable[..., Ran], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "_EXACT", 0)
    (tmp_path / "a.coll").write_text("topology t = mesh(2, 4); collective c = alltoall on t; schedule c using flow;")
    ran = collc("cost", str(tmp_path / "a.coll"))
    assert "a bracket around LP (3)" in ran.out or "met: no schedule is faster" in ran.out
