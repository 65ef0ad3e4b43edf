"""Slim Fly, Jellyfish, Xpander, Dragonfly+, and the machines of today: what their definitions promise."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.frontends.coll import topology
from collc.frontends.coll.families._fields import field, prime_of
from collc.ir.diagnostic import CollcError
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.topology import Topology
from collc.ir.validate import structure
from tests.support.sampling import every

GB = 10**9


def pairs(net: Topology) -> set[tuple[int, int]]:
    return set(zip(net.src.tolist(), net.dst.tolist(), strict=True))


def is_simple_and_two_way(net: Topology) -> bool:
    found = pairs(net)
    return len(found) == net.num_links and all(a != b and (b, a) in found for a, b in found)


# ---- finite fields


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27])
def test_fields_are_fields(q: int) -> None:
    """Both operations are commutative groups, and products distribute over sums."""
    of = field(q)
    for table, nonzero in ((of.plus, 0), (of.times[1:, 1:], 1)):
        assert np.array_equal(table, table.T)
        assert all(sorted(row) == list(range(nonzero, q)) for row in table.tolist())
    a, b, c = np.meshgrid(range(q), range(q), range(q))
    assert np.array_equal(of.times[a, of.plus[b, c]], of.plus[of.times[a, b], of.times[a, c]])


def test_prime_powers() -> None:
    powers = {p**k: p for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29) for k in range(1, 6) if p**k < 30}
    assert {q: prime_of(q) for q in range(2, 30)} == {q: powers.get(q) for q in range(2, 30)}


# ---- Slim Fly


@pytest.mark.parametrize("q", every(2, [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 25, 27]))
def test_slim_fly_has_the_published_parameters(q: int) -> None:
    """2 q^2 routers of degree (3q - delta) / 2 at diameter 2, as tables of the paper have them."""
    net = topology(f"slim_fly({q})")
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    assert (net.num_ranks, net.degree, net.diameter) == (2 * q * q, (3 * q - delta) // 2, 2)
    assert is_simple_and_two_way(net) and structure(net) == []


def test_slim_fly_of_5_is_the_moore_graph() -> None:
    """50 routers of degree 7: any two are linked or have exactly one common neighbour."""
    linked = np.zeros((50, 50), dtype=int)
    linked[tuple(np.array(sorted(pairs(topology("slim_fly(5)")))).T)] = 1
    assert np.array_equal(linked @ linked + linked, 6 * np.eye(50, dtype=int) + 1)


# ---- random networks


@given(st.integers(3, 40), st.integers(2, 9), st.integers(0, 2**64 - 1))
def test_jellyfish_is_regular_simple_and_connected(n: int, d: int, seed: int) -> None:
    if d >= n or n * d % 2:
        with pytest.raises(CollcError):
            topology(f"jellyfish({n}, {d}, {seed})")
        return
    net = topology(f"jellyfish({n}, {d}, {seed})")
    assert (net.num_ranks, net.degree) == (n, d) and net.is_connected and is_simple_and_two_way(net)
    assert net == topology(f"jellyfish({n}, {d}, {seed})")


@given(st.integers(3, 8), st.integers(1, 8), st.integers(0, 2**64 - 1))
def test_xpander_is_a_lift_of_the_complete_graph(d: int, lift: int, seed: int) -> None:
    """Between any two groups there is a matching, and no link inside a group."""
    net = topology(f"xpander({d}, {lift}, {seed})")
    assert (net.num_ranks, net.degree) == ((d + 1) * lift, d) and net.is_connected and is_simple_and_two_way(net)
    between: dict[tuple[int, int], list[int]] = {}
    for a, b in pairs(net):
        between.setdefault((a // lift, b // lift), []).append(b)
    assert set(between) == {(a, b) for a in range(d + 1) for b in range(d + 1) if a != b}
    assert all(len(heads) == len(set(heads)) == lift for heads in between.values())


@pytest.mark.slow
def test_seeds_give_other_networks_and_the_same_ones_everywhere() -> None:
    assert len({tuple(sorted(pairs(topology(f"jellyfish(16, 4, {seed})")))) for seed in range(20)}) == 20
    text = "import collc; print(collc.topology('jellyfish(12, 3, 5)').dst.tolist())"
    expected = "[6, 9, 11, 2, 8, 11, 1, 3, 11, 2, 4, 6, 3, 8, 9, 7, 8, 10, "
    for seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
        assert done.stdout.startswith(expected), done.stdout


def test_hosts_hang_from_their_routers() -> None:
    net = topology("slim_fly(3, 2)")
    assert (net.num_ranks, net.num_switches) == (36, 18) and net.names[35:37] == ("host[17, 1]", "router[0]")
    assert {(a, b) for a, b in pairs(net) if a < 36} == {(r, 36 + r // 2) for r in range(36)}
    routers = topology("slim_fly(3)")
    assert {(a - 36, b - 36) for a, b in pairs(net) if a >= 36 and b >= 36} == pairs(routers)


# ---- Dragonfly+


@pytest.mark.parametrize(
    ("p", "leaves", "spines", "h", "groups"), [(2, 2, 2, 1, 3), (1, 3, 2, 2, 5), (2, 2, 2, 2, 3), (1, 4, 4, 3, 4)]
)
def test_dragonfly_plus_joins_all_groups_alike(p: int, leaves: int, spines: int, h: int, groups: int) -> None:
    net = topology(f"dragonfly_plus({p}, {leaves}, {spines}, {h}, {groups})")
    assert net.num_ranks == groups * leaves * p
    group = [int(name.partition("[")[2].partition(",")[0]) for name in net.names]
    between: dict[tuple[int, int], int] = {}
    out = dict.fromkeys(range(net.num_nodes), 0)
    for a, b in zip(net.src.tolist(), net.dst.tolist(), strict=True):
        if group[a] != group[b]:
            between[group[a], group[b]] = between.get((group[a], group[b]), 0) + 1
            out[a] += 1
    assert set(between) == {(a, b) for a in range(groups) for b in range(groups) if a != b}
    assert set(between.values()) == {spines * h // (groups - 1)}
    assert all(out[node] == (h if name.startswith("spine") else 0) for node, name in enumerate(net.names))
    assert net.diameter is not None and net.diameter <= 2 + 5  # host, leaf, spine, spine, other groups' spines and leaf


# ---- machines


def one_over_x(expression: str) -> str:
    net = topology(expression)
    return str(worst_ratio(net, [1] * net.num_ranks)[0] * GB)


@pytest.mark.parametrize(
    ("expression", "nodes", "links", "bottleneck"),
    [
        # one box: the other 7 (71) shards enter a GPU by its own links; more: a box's own shards by its 8 (72) NICs
        ("dgx_b200(1)", 9, 16, "7/900"), ("dgx_b200(4)", 37, 128, "3/50"), ("dgx_b200(2, 8)", 42, 96, "1/50"),
        ("gb200_nvl72(1)", 73, 144, "71/900"), ("gb200_nvl72(2)", 147, 576, "143/950"),
        ("mi300x()", 8, 56, "1/64"), ("mi300x(4)", 33, 288, "31/498"),
    ],
)  # fmt: skip
def test_machines_of_today(expression: str, nodes: int, links: int, bottleneck: str) -> None:
    net = topology(expression)
    assert (net.num_nodes, net.num_links) == (nodes, links)
    assert structure(net) == [] and net.reverse_links is not None
    assert one_over_x(expression) == bottleneck


def test_slices_of_a_torus_wrap_where_they_are_whole_cubes() -> None:
    assert [topology(f"tpu_v4({s})").diameter for s in ("2, 2, 4", "4, 4, 4", "4, 4, 8", "4, 4, 8, 1")] == [5, 6, 8, 6]
    net = topology("tpu_v4(4, 4, 4)")
    assert net.symmetry is not None and net.node_bandwidth == 300 * GB
    assert pairs(net) == pairs(topology("torus(4, 4, 4)"))
    assert pairs(topology("tpu_v4(4, 4, 8, 1)")) == pairs(topology("twisted_torus(4, 4, 8)"))


COMPILED = (
    "slim_fly(3)", "jellyfish(8, 3, 1)", "jellyfish(5, 2, 1, 2)", "xpander(3, 2)", "dragonfly_plus(2, 2, 2, 1)",
    "mi300x()", "mi300x(2)", "dgx_b200(2)", "tpu_v4(2, 2, 2)", "without(torus(3, 3), {4, 0 <-> 1})",
    "degraded(dgx_a100(2), {gpu[0, 0] <-> ib}, 1/4)", "relabel(torus(2, 3), {5, 3, 1, 0, 2, 4})",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allreduce", "allgather"])
@pytest.mark.parametrize("expression", every(2, COMPILED))
def test_networks_compile_to_proved_files(expression: str, kind: str) -> None:
    text = f"topology t = {expression};\ncollective c = {kind} on t {{ size: 1 MiB }};\n"
    for target in ("msccl-xml", "mpi-c"):
        result = collc.compile_source(text, target=target)
        assert result.artifacts and result.cost.ranks == topology(expression).num_ranks


@pytest.mark.slow
def test_a_rack_compiles() -> None:
    text = "topology t = gb200_nvl72(1);\ncollective c = allgather on t { size: 64 MiB };\nschedule c using forest;\n"
    assert collc.compile_source(text, target="ir").cost.ranks == 72


def test_pairs_of_draws_are_unbiased() -> None:
    """Each pair of routers is linked in about d / (n - 1) of all networks: 2/3 for degree 4 of 7 routers."""
    count = dict.fromkeys(combinations(range(7), 2), 0)
    for seed in range(300):
        for a, b in pairs(topology(f"jellyfish(7, 4, {seed})")):
            count[min(a, b), max(a, b)] += a < b
    assert all(150 <= n <= 250 for n in count.values())
