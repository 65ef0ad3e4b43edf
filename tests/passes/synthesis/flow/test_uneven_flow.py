"""All-to-all, gather and scatter of shards that differ in size: LP (3) with demands, on HiGHS and by prices."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from cut_nets import switched
from hypothesis import given, settings
from hypothesis import strategies as st
from lp import lp3
from sampling import examples
from strategies import connected
from uneven_runs import collective, runs_right, uneven

import collc
from collc.driver.bounding import bounded
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.certificate import Bound, Prices
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.flow import quotient
from collc.passes.synthesis.flow import uneven as module
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.flow.uneven import uneven_bound


def moved(what: Collective) -> np.ndarray:
    found = np.array(what.weights).reshape(what.num_ranks, -1).copy()
    np.fill_diagonal(found, 0)
    return found


def least_time(net: Topology, what: Collective) -> float:
    """Return the least time per byte of an alltoallv, by the program that HiGHS solves independently."""
    real = net.src != net.dst
    least = min(net.classes[c].bandwidth for c in np.unique(net.link_class[real]))
    need = moved(what)
    return int(need.max()) / lp3(net, need / need.max()) / float(least) / what.whole


def proved(net: Topology, found: Bound, what: Collective) -> Fraction:
    """Return what the prices of a bound prove, by networkx."""
    proof = found.certificate
    assert isinstance(proof, Prices)
    graph, capacity = nx.DiGraph(), Fraction(0)
    for link in range(net.num_links):
        a, b, price = int(net.src[link]), int(net.dst[link]), proof.prices[link % len(proof.prices)]
        capacity += net.bandwidth(link) * price * (a != b)
        if not graph.has_edge(a, b) or graph[a][b]["weight"] > price:
            graph.add_edge(a, b, weight=price)
    need = moved(what)
    cheapest = dict(nx.all_pairs_dijkstra_path_length(graph))
    distance = sum(int(need[s, t]) * cheapest[s][t] for s in range(len(need)) for t in range(len(need)) if need[s, t])
    return Fraction(distance) / capacity / what.whole


@given(st.data(), connected(min_ranks=2, max_ranks=5) | switched(max_ranks=4))
@settings(max_examples=examples(60), deadline=None)
def test_an_alltoallv_takes_the_time_of_lp_3(data: st.DataObject, net: Topology) -> None:
    what = data.draw(uneven(net.num_ranks, ["alltoall"]))
    schedule = Flow().run(Problem(net, what))
    assert verify(schedule).ok and schedule.collective == what
    found, least = cost(schedule), uneven_bound(net, what)
    if not moved(what).any():
        assert least is None and found.time_per_byte == 0
        return
    assert least is not None and least.value == proved(net, least, what)
    assert found.time_per_byte == least.value == least.above
    assert float(least.value) == pytest.approx(least_time(net, what), rel=1e-6)
    assert bound(net, what).value <= least.value
    assert bounded(found, net, None, what).bound_met


@given(st.data(), connected(min_ranks=2, max_ranks=6) | switched(max_ranks=5), st.sampled_from(["gather", "scatter"]))
@settings(max_examples=examples(60), deadline=None)
def test_gathers_and_scatters_take_the_time_of_the_worst_cut(data: st.DataObject, net: Topology, kind: str) -> None:
    what = data.draw(uneven(net.num_ranks, [kind]))
    schedule = Flow().run(Problem(net, what))
    assert verify(schedule).ok
    assert cost(schedule).time_per_byte == bound(net, what).value


@pytest.mark.parametrize("name", ["torus(3, 3)", "dgx_a100(1)", "uniring(4)"])
@pytest.mark.parametrize("kind", ["alltoall", "gather", "scatter"])
def test_the_program_is_right_for_all_counts(name: str, kind: str) -> None:
    net = collc.topology(name)
    n = net.num_ranks
    shards = n * n if kind == "alltoall" else n
    sizes = [(v * v) % 5 * (v % 3 > 0) for v in range(shards)]
    program = Lower().run(Discretize(max_chunks=8).run(Flow().run(Problem(net, collective(kind, n, sizes, 1)))))
    for counts in (sizes, [3] * shards, [9 * (v == 2) for v in range(shards)], [v % 4 for v in range(shards)]):
        assert runs_right(program, counts)


def test_a_pair_without_data_has_a_route() -> None:
    net = collc.topology("torus(3, 3)")
    schedule = Flow().run(Problem(net, collective("alltoall", 9, [int(v == 1) for v in range(81)])))
    assert set(schedule.shard.tolist()) == {v for v in range(81) if v % 10}
    for shard in (2, 80 - 1, 40 + 1):
        assert not verify(schedule.rows(schedule.shard != shard)).ok


@pytest.mark.parametrize("name", ["torus(3, 3)", "dgx_a100(1)", "diamond()"])
def test_flows_in_floats_are_near_the_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "_MOST_EXACT", 0)
    net = collc.topology(name)
    n = net.num_ranks
    what = collective("alltoall", n, [(v * 7) % 11 * 1000 ** (v % 3) for v in range(n * n)])
    schedule = Flow().run(Problem(net, what))
    assert verify(schedule).ok
    assert float(cost(schedule).time_per_byte) == pytest.approx(least_time(net, what), rel=1e-5)


@pytest.mark.parametrize("size", [10**6, 10**12])
def test_large_weights_are_exact_up_to_rounding(size: int) -> None:
    for name in ("torus(3, 3)", "dgx_a100(1)"):
        net = collc.topology(name)
        n = net.num_ranks
        what = collective("alltoall", n, [(v * v * 7919 + 13 * v) ** 3 % size for v in range(n * n)])
        schedule, least = Flow().run(Problem(net, what)), uneven_bound(net, what)
        assert verify(schedule).ok and least is not None
        assert least.value <= cost(schedule).time_per_byte < least.value * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("most", [0, 1 << 15])
def test_bounds_of_large_networks_are_proved_by_prices(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_EXACT", 0)
    monkeypatch.setattr(module, "_MOST_PROGRAM", most)
    for name, size in (("torus(3, 3)", 9), ("mesh(2, 3)", 1 << 30), ("dgx_a100(1)", 9)):
        net = collc.topology(name)
        n = net.num_ranks
        what = collective("alltoall", n, [(v * 7919) % size for v in range(n * n)])
        found, value = uneven_bound(net, what), least_time(net, what)
        assert found is not None and found.value == proved(net, found, what)
        assert float(found.value) <= value * (1 + 1e-9)
        assert not most or float(found.value) == pytest.approx(value, rel=1e-5)


def test_a_network_that_is_too_large_has_no_bound_by_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_QUICK", 0)
    net = collc.topology("mesh(2, 3)")
    what = collective("alltoall", 6, [1] * 36)
    assert uneven_bound(net, what) is None
    found = cost(Flow().run(Problem(net, what)))
    assert bounded(found, net, None, what).bound.above == found.time_per_byte


def test_chunks_limit_the_parts() -> None:
    net = collc.topology("torus(3, 3)")
    problem = Problem(net, collective("alltoall", 9, [(v * 5) % 7 for v in range(81)]))
    free, few = Flow().run(problem), Flow(chunks=3).run(problem)
    assert few.parts <= 3 < free.parts and verify(few).ok
    assert cost(few).time_per_byte > cost(free).time_per_byte


def test_long_weights_are_rounded_and_it_is_remarked() -> None:
    net = collc.topology("torus(3, 3)")
    what = collective("alltoall", 9, [(v * 999_983) % 1_000_003 for v in range(81)])
    with remarks() as texts:
        schedule = Flow().run(Problem(net, what))
    assert len(texts) == 1 and "rounded" in texts[0] and verify(schedule).ok
    least = uneven_bound(net, what)
    assert least is not None and least.value < cost(schedule).time_per_byte < least.value * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize(("options", "code"), [({"steps": 3}, "C0564"), ({"thorough": True}, "C0564")])
def test_options_of_several_steps_are_refused(options: dict[str, int], code: str) -> None:
    net = collc.topology("torus(3, 3)")
    with pytest.raises(CollcError) as caught:
        Flow(**options).run(Problem(net, collective("alltoall", 9, [1] * 81)))  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == code and "alltoallv" in caught.value.diagnostics[0].message


def test_a_large_network_is_refused() -> None:
    net = collc.topology("torus(12, 12)")
    with pytest.raises(CollcError) as caught:
        Flow().require(Problem(net, collective("alltoall", 144, [1] * 144**2)))
    assert caught.value.diagnostics[0].code == "C0563"
    scatter = Problem(net, collective("scatter", 144, range(144)))
    Flow().require(scatter)
