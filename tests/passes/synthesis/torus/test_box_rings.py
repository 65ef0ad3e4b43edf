"""`ring { rings: R }` on clusters: a ring for each NIC, as NCCL makes them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from clusters import CLUSTERS, cluster, clusters, crossing_flaws, ring_flaws
from hypothesis import given
from hypothesis import strategies as st

from collc.backends.simulator import simulate
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.graph.boxes import Boxes, boxes_of, one_box
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.torus.box_rings import box_rings
from collc.passes.synthesis.torus.ring import Ring


def boxes(net: Topology) -> Boxes:
    found = boxes_of(net)
    assert found is not None
    return found


def cycles(net: Topology, rings: int) -> list[list[int]]:
    return [cycle.tolist() for cycle in box_rings(net, boxes(net), rings)]


def scheduled(net: Topology, kind: str = "allreduce", **options: object) -> Schedule:
    return Ring(**options).run(Problem(net, Collective(kind, net.num_ranks)))  # type: ignore[arg-type]


@pytest.mark.parametrize("net", CLUSTERS)
def test_rings_cross_boxes_by_nics_of_their_own(net: str) -> None:
    t = topology(net)
    for rings in {1, 2, boxes(t).nics}:
        found = cycles(t, rings)
        assert not [flaw for cycle in found for flaw in ring_flaws(cycle, boxes(t))]
        assert not list(crossing_flaws(found, boxes(t), rings))


@given(clusters, st.integers(1, 6))
def test_rings_on_boxes_of_any_sizes(sizes: list[int], rings: int) -> None:
    net = cluster(sizes)
    found = cycles(net, rings)
    assert not [flaw for cycle in found for flaw in ring_flaws(cycle, boxes(net))]
    assert not list(crossing_flaws(found, boxes(net), min(rings, min(sizes))))
    assert verify_schedule(scheduled(net, rings=max(rings, 2))).ok


def test_the_checks_find_planted_faults() -> None:
    net = topology("dgx_a100(2)")
    found = cycles(net, 8)
    twice = [found[0][:-1] + found[0][:1], [0, 8, *found[0][1:8], *range(9, 16)]]
    assert all(list(ring_flaws(cycle, boxes(net))) for cycle in twice)
    assert list(crossing_flaws([found[0], found[0]], boxes(net), 2))


@pytest.mark.parametrize("net", ["dgx_h100(4, 8)", "dgx_h100(3, 8)", "dgx_a100(5, 4)"])
def test_rings_stay_on_their_rails(net: str) -> None:
    """Data leave by a NIC and enter the next box by that of the same number, so no message changes rails."""
    t = topology(net)
    for cycle in cycles(t, 8):
        for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert a // 8 == b // 8 or a % 8 == b % 8


@pytest.mark.parametrize(("net", "nics", "speed"), [
    ("dgx_a100(2)", 8, 25), ("dgx_a100(3)", 8, 25), ("dgx_a100(4, 8)", 8, 25), ("dgx_h100(16)", 8, 50),
])  # fmt: skip
def test_the_bandwidth_time_is_that_of_the_nics(net: str, nics: int, speed: int) -> None:
    """An allreduce sends 2 (N - 1) / N of the vector over all NICs of a box, an allgather half of that."""
    t = topology(net)
    n, total = t.num_ranks, nics * speed * 10**9
    for kind, phases in (("allreduce", 2), ("allgather", 1), ("reduce-scatter", 1)):
        problem = Problem(t, Collective(kind, n))
        sent = Ring(rings="nics").messages(problem)
        assert sent.time_per_byte == Fraction(phases * (n - 1), n) / total
        assert sent.num_steps == phases * (n - 1)


@pytest.mark.parametrize("rings", [2, 4])
def test_fewer_rings_use_fewer_nics(rings: int) -> None:
    found = scheduled(topology("dgx_a100(2)"), rings=rings)
    assert simulate(found).per_unit == Fraction(15, 8) / (rings * 25 * 10**9)


@pytest.mark.parametrize("net", ["dgx_a100(2)", "mi250(2)", "clustered(biring(4), 3, 1/2)", "leaf_spine(2, 4, 2)"])
@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter"])
def test_schedules_are_right_and_their_messages_theirs(net: str, kind: str) -> None:
    t = topology(net)
    problem = Problem(t, Collective(kind, t.num_ranks))
    found = Ring(rings="nics").run(problem)
    assert verify_schedule(found).ok
    for size in (1, 1 << 20):
        assert simulate(found).time(size) == simulate(Ring(rings="nics").messages(problem)).time(size)


def test_messages_of_a_box_stay_inside() -> None:
    t = topology("dgx_a100(2)")
    found = scheduled(t, rings="nics")
    near = found.src // 8 == found.dst // 8
    inner = t.num_ranks + found.src // 8
    for row in np.unique(found.route[near], return_index=True)[1]:
        links = found.routes.links_of(int(found.route[near][row]))
        assert [int(t.dst[link]) for link in links][:-1] == [int(inner[near][row])]


def test_paths_of_a_box_without_switches_use_its_links() -> None:
    """Dies of an MI250 box have few links: 16 rings find paths with at most 4 on 50 GB/s."""
    t = topology("mi250(2)")
    speed: dict[tuple[int, int], Fraction] = {}
    for link in range(t.num_links):
        speed[int(t.src[link]), int(t.dst[link])] = t.bandwidth(link)
    used: dict[tuple[int, int], int] = {}
    for cycle in cycles(t, 16):
        for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            used[pair] = used.get(pair, 0) + 1
    inside = {pair: count for pair, count in used.items() if pair[0] // 16 == pair[1] // 16}
    assert set(inside) <= set(speed)
    assert max(count / speed[pair] for pair, count in inside.items()) <= Fraction(4, 50 * 10**9)


def test_one_machine_without_boxes() -> None:
    t = topology("dgx1_v100()")
    found = box_rings(t, one_box(t), 4)
    linked = set(zip(t.src.tolist(), t.dst.tolist(), strict=True))
    assert all(pair in linked for cycle in found for pair in zip(cycle, np.roll(cycle, -1), strict=True))
    assert verify_schedule(scheduled(t, rings=4)).ok


def test_what_rings_cannot_be() -> None:
    for rings in (0, 65):
        with pytest.raises(CollcError, match=r"C0586"):
            Ring(rings=rings)
    for net, rings in (("torus(6, 4)", 2), ("torus(6, 4)", 3), ("torus(4, 4)", 3), ("biring(5, 4)", 3)):
        with pytest.raises(CollcError, match=r"C0597"):
            scheduled(topology(net), rings=rings)
    assert scheduled(topology("torus(4, 4)"), rings="nics") == scheduled(topology("torus(4, 4)"))


def test_old_rings_are_as_before() -> None:
    t = topology("dgx_a100(2)")
    assert scheduled(t, rings="auto") == scheduled(t, rings=1)
    assert simulate(scheduled(t)).per_unit == Fraction(15, 8) / (25 * 10**9)
