"""Simulated times as equalities: closed forms of rings, buckets and Swing, and the figures of the Swing paper."""

from __future__ import annotations

from fractions import Fraction
from math import log2, prod

import pytest
from traffics import NS, bucket, doubling, rho, ring, swing

from collc.backends.simulator import LATENCIES, simulate
from collc.frontends import coll

# ---- closed forms


@pytest.mark.parametrize("ranks", [3, 4, 7, 16, 64])
def test_ring(ranks):
    simulation = simulate(ring(ranks), latency=LATENCIES["swing"], bandwidth=100 * Fraction(10**9))
    assert Fraction(ranks - 1, ranks) == simulation.congestion == simulation.bandwidth_deficiency
    assert 2 * (ranks - 1) == simulation.num_steps
    assert Fraction(2 * (ranks - 1), ranks) == simulation.sent
    alpha = Fraction(9141, 10) * NS  # alpha(1): 500 + 400 + 4.7 * 3
    assert 2 * (ranks - 1) * (alpha + Fraction(10**6, 2 * ranks) / (50 * 10**9)) == simulation.time(10**6)


@pytest.mark.parametrize(("shape", "steps"), [((4, 4), 12), ((3, 3), 8), ((8, 4), 28), ((3, 3, 3), 12)])
def test_bucket(shape, steps):
    simulation = simulate(bucket(shape))
    p = prod(shape)
    assert steps == simulation.num_steps
    assert Fraction(2 * (p - 1), p) == simulation.sent
    if len(set(shape)) == 1:
        assert Fraction(p - 1, p) == simulation.congestion
    assert 1 == simulation.congestion_deficiency


# ---- Swing and recursive doubling, from their definitions


def closed_form(d, dimensions):
    """Xi of the bandwidth variant on a square torus whose side d is a power of two."""
    terms = (Fraction(abs(rho(k)), 2 ** (k * dimensions)) for k in range(int(log2(d))))
    return (1 - Fraction(1, 2**dimensions)) * sum(terms)


@pytest.mark.parametrize(("d", "dimensions"), [(8, 2), (16, 2), (32, 2), (64, 2), (8, 3), (4, 4), (16, 1), (64, 1)])
def test_swing_on_square_tori(d, dimensions):
    shape = (d,) * dimensions
    simulation = simulate(swing(shape))
    p = d**dimensions
    assert closed_form(d, dimensions) == simulation.congestion
    assert Fraction(p - 1, p) == simulation.bandwidth_deficiency
    assert 2 == simulation.exact_latency_deficiency
    assert Fraction(2 * (p - 1), p) == simulation.sent


@pytest.mark.parametrize(
    ("shape", "bandwidth", "latency"),
    [((8, 8), "1.0781", "5"), ((16, 16), "1.1367", "10"), ((32, 32), "1.1689", "21"), ((64, 64), "1.1843", "42"),
     ((8, 8, 8), "1.0254", "7.5"), ((64, 16), "1.2207", "42"), ((128, 8), "1.4082", "85"), ((256, 4), "1.9512", "170"),
     ((2, 4), "1.0000", "2"), ((16,), "1.4375", "5"), ((64,), "2.1094", "21")],
)  # fmt: skip
def test_congestion_of_swing_is_the_tabled_one(shape, bandwidth, latency):
    assert bandwidth == f"{float(simulate(swing(shape)).congestion):.4f}"
    assert Fraction(latency) == simulate(swing(shape, latency=True)).congestion


@pytest.mark.parametrize(
    ("shape", "bandwidth", "latency"),
    [((8, 8), "4.875", "20"), ((16, 16), "5.4375", "44"), ((64, 16), "5.75", "116"), ((2, 4), "2.5", "5"),
     ((16,), "3.5", "11")],
)  # fmt: skip
def test_congestion_of_recursive_doubling_is_the_tabled_one(shape, bandwidth, latency):
    short, long = simulate(doubling(shape, latency=True)), simulate(doubling(shape))
    assert (Fraction(bandwidth), Fraction(latency)) == (long.congestion, short.congestion)
    p, dimensions = prod(shape), len(shape)
    if 2 not in shape:  # where both of two parallel links serve
        assert dimensions * int(log2(p)) == short.bandwidth_deficiency
        assert 2 * dimensions * Fraction(p - 1, p) == long.bandwidth_deficiency
    assert (1, 2) == (short.exact_latency_deficiency, long.exact_latency_deficiency)


@pytest.mark.parametrize(
    ("shape", "label"),
    [((8, 8), 7), ((64, 64), 40), ((64, 16), 26), ((128, 8), 41), ((256, 4), 74), ((8, 8, 8), 10), ((8, 8, 8, 8), 14)],
)
def test_times_of_32_bytes_are_the_paper_s_labels(shape, label):
    """Within 3 % or a microsecond: 400 Gb/s a link, the paper's latencies."""
    bandwidth = 2 * len(shape) * Fraction(400 * 10**9, 8)
    time = simulate(swing(shape, latency=True), latency=LATENCIES["swing"], bandwidth=bandwidth).time(32)
    assert abs(time * 10**6 - label) <= max(1, label * 3 / 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "congestion"),
    [("hammingmesh(2, 2, 32, 32)", "1.0620"), ("hammingmesh(4, 4, 16, 16)", "1.1396"), ("hyperx(64, 64)", "0.9998")],
)
def test_swing_on_networks_that_extend_the_torus(expression, congestion):
    """The plateaus of the paper's figures for Hx2Mesh, Hx4Mesh and HyperX: 800 Gb/s over these."""
    latency = LATENCIES["hammingmesh" if "mesh" in expression else "swing"]
    simulation = simulate(swing((64, 64), topology=coll.topology(expression)), latency=latency)
    assert congestion == f"{float(simulation.congestion):.4f}"
    assert Fraction(4095, 4096) == simulation.bandwidth_deficiency


def test_lines_of_two_levels_carry_what_one_switch_does():
    """HammingMesh of lines with more ends than a switch has ports: not blocking, two links farther between leaves."""
    one, two = (coll.topology(f"hammingmesh(2, 2, 8, 8, {ports})") for ports in (16, 8))
    assert (32, 32 * 4 + 32 * 4) == (one.num_switches, two.num_switches)
    traffic = swing((16, 16))
    flat, deep = (simulate(traffic, network=net, latency=LATENCIES["hammingmesh"]) for net in (one, two))
    assert flat.congestion == deep.congestion
    far = 2 * (150 + 125) * NS  # two more routers and cables
    assert [a.slowest[0][0] + far for a in flat.steps[4:12]] == [b.slowest[0][0] for b in deep.steps[4:12]]


@pytest.mark.slow
def test_a_torus_of_16384_ranks():
    simulation = simulate(swing((128, 128)))
    assert "1.1922" == f"{float(simulation.congestion):.4f}"
    assert closed_form(128, 2) == simulation.congestion


def test_switches_of_full_bandwidth_do_not_congest():
    """Exchanges on a fat tree meet nowhere but at the ranks' own links, where minimal ways divide evenly."""
    network = coll.topology("fat_tree(4)")
    simulation = simulate(doubling((4, 4), latency=True), network=network)
    assert 1 == simulation.congestion_deficiency
    assert [2, 4, 6, 6] == sorted(step.hops for step in simulation.steps)
