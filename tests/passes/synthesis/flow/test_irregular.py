"""All-to-all on networks without symmetry: schedules within 2 % of LP (3), whose value is exact or in a bracket."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest
from irregular import random_regular, sparse, with_dead_links, with_widths, without_rank
from lp import lp3
from numpy._core import _multiarray_umath
from sampling import every

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_program, verify_schedule
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.flow import columns, rate, scheduler
from collc.passes.synthesis.flow.learning import Learned, learn_flows
from collc.passes.synthesis.flow.paths import Network
from collc.passes.synthesis.flow.rate import alltoall_bound, capacities, quick_bracket
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.flow.units import WEIGHTS, unit_paths, whole_units
from collc.passes.synthesis.flow.unrolled import Unrolled

Make = Callable[[], Topology]


def problem(net: Topology) -> Problem:
    return Problem(net, Collective("alltoall", net.num_ranks))


def over_the_bound(net: Topology, **options: int) -> float:
    """Return by how much the schedule that ``flow`` finds takes longer than the proved least time, relatively."""
    schedule = Flow(**options).run(problem(net))
    report = verify_schedule(schedule)
    assert report.ok, report
    found = alltoall_bound(net)
    assert found is not None and cost(schedule).time_per_byte >= found.value
    return float(cost(schedule).time_per_byte / found.value) - 1


# ---- LP (3) exactly


def small(seed: int) -> Topology:
    """One of the random networks of up to 9 ranks."""
    makers: list[Make] = [
        lambda: random_regular(8, 3, seed), lambda: with_dead_links("torus(3, 3)", 1 + seed % 3, seed),
        lambda: with_widths("mesh(2, 4)", seed), lambda: sparse(9, seed),
        lambda: with_dead_links("complete(6)", 2, seed),
    ]  # fmt: skip
    return makers[seed % len(makers)]()


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_is_lp_3_as_a_rational(seed: int) -> None:
    """The program, written as it stands and solved in floats: the simplest fraction near its value is the bound."""
    net = small(seed)
    found = alltoall_bound(net)
    assert found is not None and found.name == "LP (3)" and found.value == found.above
    least = min(net.bandwidth(k) for k in range(net.num_links))
    exact = 1 / (Fraction(lp3(net)).limit_denominator(5000) * net.num_ranks * least)
    assert exact == found.value


def test_another_network_has_another_rate() -> None:
    """The check can fail."""
    assert Fraction(lp3(small(0))).limit_denominator(5000) != Fraction(lp3(small(1))).limit_denominator(5000)


@pytest.mark.parametrize("seed", every(3, range(12)))
def test_learned_brackets_hold_lp_3(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no linear program is solved, prices and flows that learn prove both ends, within a five-hundredth."""
    net = small(seed)
    monkeypatch.setattr(rate, "_EXACT", -1)
    monkeypatch.setattr(columns, "_LEARN", 16)  # so that the first bracket is wide
    found = quick_bracket(net)
    assert found is not None
    assert float(found.lower) <= lp3(net) * (1 + 1e-9) and lp3(net) <= float(found.upper) * (1 + 1e-9)
    assert found.upper <= found.lower * (1 + Fraction(1, 500))


# ---- schedules


QUICK: dict[str, Make] = {
    "torus, 1 dead link": lambda: with_dead_links("torus(4, 4)", 1),
    "hypercube, 5 dead links": lambda: with_dead_links("hypercube(3)", 5),
    "complete, 1 dead link": lambda: with_dead_links("complete(8)", 1),
    "hypercube without a rank": lambda: without_rank("hypercube(3)"),
    "mesh": lambda: collc.topology("mesh(2, 4)"),
    "random": lambda: random_regular(12, 3),
    "torus of 64, 1 dead link": lambda: with_dead_links("torus(4, 4, 4)", 1),
}

SLOW: dict[str, Make] = {
    **{f"{expression} - {count}": lambda expression=expression, count=count: with_dead_links(expression, count)
       for expression in ("torus(4, 4)", "hypercube(4)", "circulant(16, {3, 4})", "complete(16)", "torus(6, 6)",
                          "hypercube(5)", "torus(4, 4, 4)", "complete(32)") for count in (1, 2, 5)},
    **{f"{expression} without a rank": lambda expression=expression: without_rank(expression)
       for expression in ("torus(4, 4)", "hypercube(4)", "circulant(12, {2, 3})", "torus(4, 4, 4)")},
    **{f"random {n}, {d}": lambda n=n, d=d: random_regular(n, d) for n, d in ((16, 4), (48, 3), (96, 4), (128, 4))},
    **{f"sparse {n}": lambda n=n: sparse(n) for n in (16, 40, 128)},
    **{f"{e} of widths": lambda e=e: with_widths(e) for e in ("torus(3, 4)", "mesh(5, 5)", "torus(8, 8)")},
    **{e: lambda e=e: collc.topology(e) for e in ("mesh(6, 6)", "mesh(8, 8)")},
    "torus(8, 16) - 1": lambda: with_dead_links("torus(8, 16)", 1),
    "circulant(128) - 2": lambda: with_dead_links("circulant(128, {5, 22})", 2),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_schedules_come_within_a_fiftieth(name: str) -> None:
    assert over_the_bound(QUICK[name]()) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", every(18, list(SLOW), 3))
def test_all_kinds_of_networks(name: str) -> None:
    assert over_the_bound(SLOW[name]()) <= 0.02


def test_the_search_before_is_seen_to_miss_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a path for each shard, without flows, takes a tenth longer at least."""
    monkeypatch.setattr(Flow, "_learned", lambda *_: None)
    monkeypatch.setattr(scheduler, "_PROGRAM", 0)
    monkeypatch.setattr(scheduler, "_QUICK_PROGRAM", 0)
    assert over_the_bound(with_dead_links("torus(4, 4)", 1)) > 0.1


@pytest.mark.slow
def test_chunks_and_steps_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_PROGRAM", 0)
    monkeypatch.setattr(scheduler, "_QUICK_PROGRAM", 0)
    net = with_dead_links("torus(3, 4)", 1)
    times = []
    for chunks in (1, 4, 64):
        schedule = Flow(chunks=chunks).run(problem(net))
        assert schedule.parts <= chunks and verify_schedule(schedule).ok
        times.append(cost(schedule).time_per_byte)
    assert times == sorted(times, reverse=True) and times[0] > times[2]
    assert Flow(steps=6).run(problem(net)).num_steps <= 6


@pytest.mark.parametrize("name", ["hypercube, 5 dead links", "complete, 1 dead link"])
def test_programs_run_in_place_and_out_of_place(name: str) -> None:
    """Shards may leave their source after the ones that come back have arrived: those are staged."""
    program = Lower().run(Discretize().run(Flow().run(problem(QUICK[name]()))))
    assert verify_program(program, inplace=True).ok and verify_program(program, inplace=False).ok


def test_the_same_network_gives_the_same_schedule() -> None:
    net = with_dead_links("complete(8)", 1)
    assert Flow().run(problem(net)) == Flow().run(problem(net))


DIGEST = """
import hashlib
from test_irregular import NETS, learned
from collc.passes.synthesis.flow.units import whole_units
digest = hashlib.sha256()
for make in NETS:
    over, found = learned(make(), 60)
    digest.update(found.flow.tobytes() + found.prices.tobytes() + repr((found.time, found.least)).encode())
    digest.update(whole_units(over, found.flow, 12).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_other_machines_learn_the_same_bits() -> None:
    """Without the vector instructions that numpy chose for this machine, and under another hash seed."""
    enabled = [name for name in _multiarray_umath.__cpu_dispatch__ if _multiarray_umath.__cpu_features__[name]]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    found = []
    for change in ({}, {"NPY_DISABLE_CPU_FEATURES": " ".join(enabled), "PYTHONHASHSEED": "7"}):
        environment = {**os.environ, "PYTHONPATH": path, **change}
        ran = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        found.append(ran.stdout)
    assert found[0] == found[1] != ""


def test_networks_with_a_group_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flow, "_irregular", None)
    assert Flow().run(problem(collc.topology("torus(3, 3)"))).parts == 1


# ---- flows on the unrolled network


def unrolled(net: Topology, more: int = 1) -> Unrolled:
    n, widths = net.num_ranks, capacities(net)
    network = Network.of(n, net.src.astype(np.int64), net.dst.astype(np.int64))
    capacity = np.array([float(widths[k]) for k in net.link_class.tolist()])
    ones, links = np.ones(n, dtype=np.int64), np.arange(net.num_links)
    return Unrolled.of(
        network, np.arange(n), ones, np.ones((1, 1)), links, capacity, net.distances.T.astype(np.int64),
        (net.diameter or 0) + more,
    )  # fmt: skip


def learned(net: Topology, rounds: int) -> tuple[Unrolled, Learned]:
    over = unrolled(net)
    return over, learn_flows(over, rounds, lambda least, time: False, by_step=True)


NETS: list[Make] = [
    lambda: random_regular(10, 3), lambda: with_dead_links("complete(7)", 2), lambda: with_widths("mesh(3, 3)"),
    lambda: sparse(8), lambda: collc.topology("debruijn(2, 3)"),
]  # fmt: skip


def is_a_flow(over: Unrolled, units: np.ndarray, parts: int) -> bool:
    """Whether all places get what they pass on, every node what it wants, and nothing comes but from its source."""
    need = np.rint(over.wanted * parts).astype(np.int64)
    for step in reversed(range(over.steps)):
        if (units[step].sum(axis=0) != need).any() or (units[step][~over.open[step]] != 0).any():
            return False
        need = over.before(units[step])
    return bool((need[~over.open[0, -1]] == 0).all()) and int(need.sum()) == int(over.wanted.sum()) * parts


@pytest.mark.parametrize("make", NETS)
@pytest.mark.parametrize("parts", [1, 7, 64])
def test_whole_units_are_a_flow_near_the_learned_one(make: Make, parts: int) -> None:
    over, found = learned(make(), 60)
    for weights in WEIGHTS:
        units = whole_units(over, found.flow, parts, weights)
        assert is_a_flow(over, units, parts)
        difference = over.loads(units.astype(np.float64)) / parts - over.loads(found.flow)
        assert np.abs(difference).max() <= 6 / parts + 1e-9


def test_a_missing_unit_is_seen() -> None:
    over, found = learned(NETS[0](), 20)
    units = whole_units(over, found.flow, 4)
    units[tuple(np.argwhere(units > 0)[5])] -= 1
    assert not is_a_flow(over, units, 4)


@pytest.mark.parametrize("make", NETS)
def test_paths_are_the_units(make: Make) -> None:
    """Every shard's paths carry all its parts from its source, one link at a step, and load no link more."""
    net = make()
    over, found = learned(net, 30)
    units, n = whole_units(over, found.flow, 9), net.num_ranks
    paths = unit_paths(over, units, 9)
    sums = np.zeros((n, n), dtype=np.int64)
    np.add.at(sums, (paths.source, paths.target), paths.units)
    assert (sums == 9 * (1 - np.eye(n))).all() and paths.units.min() > 0
    assert (paths.nodes[:, 0] == paths.source).all() and (paths.nodes[:, -1] == paths.target).all()
    tails = np.concatenate([over.tails, np.arange(n)[None]])
    assert (tails[paths.slots, paths.nodes[:, 1:]] == paths.nodes[:, :-1]).all()
    loads = np.zeros(units.shape[:3], dtype=np.int64)
    for step in range(over.steps):
        np.add.at(loads[step], (paths.slots[:, step], paths.nodes[:, step + 1]), paths.units)
    assert (loads[:, :-1] <= units[:, :-1].sum(axis=3)).all()
    moves = (np.diff(paths.nodes, axis=1) != 0).sum(axis=1)
    assert all(len({*row}) == count + 1 for row, count in zip(paths.nodes.tolist(), moves.tolist(), strict=True))


@pytest.mark.parametrize("make", NETS)
def test_learning_proves_what_it_reaches(make: Make) -> None:
    """No flow takes less than the proved least; more rounds bring both together."""
    over, found = learned(make(), 300)
    assert found.least <= found.time * (1 + 1e-9) and found.time <= found.least * 1.02
    assert np.abs(over.loads(found.flow).max() - (over.loads(found.flow)).max()) == 0
    assert found.time == pytest.approx((over.loads(found.flow) / over.capacity).max(axis=1).sum())


def test_false_prices_prove_less() -> None:
    """The proof is of its prices: on a mesh, even prices do not prove what the learned ones do."""
    net = collc.topology("mesh(3, 4)")
    over, found = learned(net, 200)
    even = np.tile(1 / over.capacity.sum(), (over.steps, over.classes))
    assert over.least(over.prices(even)) < 0.9 * found.least
    assert attrs.evolve(found, prices=even).time == found.time
