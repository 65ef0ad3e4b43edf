"""The Swing paper's tables and figures: congestion as exact rationals, limits, times of 32 bytes, who wins where."""

from __future__ import annotations

import time
from fractions import Fraction as F
from functools import cache
from itertools import product
from math import prod

import pytest
from picture_checks import check
from places import benchmark

swing = benchmark("swing")

from swing_paper import algorithms, checks, figures, networks, published, tables  # noqa: E402

pytestmark = pytest.mark.slow

MIB = 1 << 20


# ---- congestion, by hand: links of one ring at a time, since every message stays on one


def rho(k: int) -> int:
    return (1 - (-2) ** (k + 1)) // 3


def swing_peer(size: int, k: int, a: int, mirror: str) -> int:
    sign = (1 if a % 2 == 0 else -1) * (1 if mirror == "same" else -1)
    return (a + sign * rho(k)) % size


def doubling_peer(size: int, k: int, a: int, mirror: str) -> int:
    if mirror == "reflect":
        return -(-a % size ^ 1 << k) % size
    ahead = (a ^ 1 << k) - a
    return (a + (ahead if mirror == "same" else -ahead)) % size


def turns(shape: tuple[int, ...], start: int) -> list[tuple[int, int]]:
    """Return (dimension, substep): the dimensions in turn, those that have finished left out."""
    left = [size.bit_length() - 1 for size in shape]
    found = [(k, (i - start) % len(shape), i) for i, most in enumerate(left) for k in range(most)]
    return [(i, k) for k, _, i in sorted(found)]


@cache
def ring_loads(size: int, peer, k: int, mirror: str) -> dict[tuple[int, int], int]:
    """Return (place, way) -> halves of messages on the link from there; half go either way where both are as near."""
    loads: dict[tuple[int, int], int] = {}
    for a in range(size):
        ahead = (peer(size, k, a, mirror) - a) % size
        for way, hops in ((1, ahead), (-1, size - ahead)):
            halves = 2 if 2 * hops < size else 1 if 2 * hops == size else 0
            for far in range(hops if halves else 0):
                at = (a + way * far) % size, way
                loads[at] = loads.get(at, 0) + halves
    return loads


def congestion_by_hand(shape, peer, mirrors, scattered: bool) -> F:
    """Return D times the sum over steps of the most loaded link's share of the vector."""
    chunks = [(start, m) for m in mirrors for start in range(len(shape) if len(mirrors) > 1 else 1)]
    order = {start: turns(shape, start) for start, _ in chunks}
    total = F(0)
    for step in range(len(order[0])):
        loads: dict[tuple[int, int, int], int] = {}
        for start, mirror in chunks:
            dim, k = order[start][step]
            for at, halves in ring_loads(shape[dim], peer, k, mirror).items():
                loads[dim, *at] = loads.get((dim, *at), 0) + halves
        total += F(max(loads.values()), 2 * len(chunks) * (2 ** (step + 1) if scattered else 1))
    return len(shape) * total * (2 if scattered else 1)


BY_HAND = (
    (swing_peer, ("same", "neg")), (doubling_peer, ("same",)), (doubling_peer, ("same", "neg")),
    (doubling_peer, ("same", "reflect")),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", published.CONGESTION, ids=lambda shape: "x".join(map(str, shape)))
def test_every_entry_of_the_table_of_congestion_as_a_rational(shape):
    """The simulator's links, links by hand and the published decimals are one number; of 128x128, Swing's."""
    columns = list(tables.COLUMNS.items())[: 2 if shape == (128, 128) else None]
    for number, (name, algorithm) in enumerate(columns):
        peer, mirrors = BY_HAND[number // 2]
        by_hand = congestion_by_hand(shape, peer, mirrors, number % 2 == 0)
        assert by_hand == tables.simulated(algorithm, shape).congestion, name
        printed = published.CONGESTION[shape][number]
        if printed:
            places = len(printed.partition(".")[2])
            assert abs(by_hand - F(printed)) <= F(1, 2 * 10**places), name


def test_the_table_of_congestion_catches_a_wrong_load(monkeypatch):
    """A table whose entry is off by its last digit is seen."""
    monkeypatch.setattr(tables, "CONGESTION", {(8, 8): ("1.0782", "5", "4.875", "20", "1.3125", "7", "1.5000", "8")})
    assert [False] + 7 * [True] == [check.agrees for check in tables.congestion()]


@pytest.mark.parametrize(("dimensions", "printed"), [(2, F(6, 5)), (3, F(28, 27)), (4, F(120, 119))])
def test_limits_are_what_the_closed_form_tends_to(dimensions, printed):
    """What is missing at side 2^m is the two geometric tails, exactly."""
    assert printed == tables.limit(dimensions)
    near, far = F(2, 2**dimensions), F(-1, 2**dimensions)
    for logs in range(24):
        tails = 2 * near**logs / (1 - near) + far**logs / (1 - far)
        missing = (1 - F(1, 2**dimensions)) * tails / 3
        assert printed - missing == tables.closed_form(1 << logs, dimensions)


@pytest.mark.parametrize("shape", [(4, 4), (32, 32), (64, 64), (4, 4, 4), (16, 16, 16), (8, 8, 8, 8)])
def test_the_closed_form_is_what_the_links_carry(shape):
    one = tables.simulated(algorithms.Swing(variant="bandwidth"), shape)
    assert tables.closed_form(shape[0], len(shape)) == one.congestion
    assert 1 - F(1, prod(shape)) == one.bandwidth_deficiency
    assert 2 == one.exact_latency_deficiency
    assert 2 * (1 - F(1, prod(shape))) == one.sent


@pytest.mark.parametrize(
    ("shape", "latest", "moved"),
    [((10, 10), "1.350", "1.210"), ((12, 12), "1.243", "1.146"), ((20, 20), "1.418", "1.188"),
     ((36, 36), "1.569", "1.255"), ((12, 12, 12), "1.080", "1.038"), ((36,), "2.806", "2.306")],
)  # fmt: skip
def test_congestion_of_sizes_that_are_no_powers_of_two(shape, latest, moved):
    for printed, reparent in ((latest, False), (moved, True)):
        one = tables.simulated(algorithms.Swing(variant="bandwidth", reparent=reparent), shape)
        assert abs(one.congestion - F(printed)) <= F(1, 2000)
        assert 2 * (1 - F(1, prod(shape))) == one.sent


@pytest.mark.parametrize(("shape", "printed"), [((64, 16), "1.0459"), ((128, 8), "1.1162"), ((256, 4), "1.2451")])
def test_congestion_of_synchronized_buckets(shape, printed):
    assert printed == f"{float(tables.simulated(algorithms.Bucket(), shape).congestion):.4f}"


@pytest.mark.slow
def test_table_2():
    found = list(tables.table_2())
    assert all(check.agrees for check in found if check.needed) and len(found) > 40


# ---- times


TORI = {"x".join(map(str, shape)): networks.torus(*shape) for shape in (
    (8, 8), (64, 64), (64, 16), (128, 8), (256, 4), (8, 8, 8), (8, 8, 8, 8)
)}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TORI)
def test_times_of_32_bytes_are_the_labels(name):
    """Within 3 % or a microsecond, all three algorithms."""
    lines = networks.curves(TORI[name], [algorithms.SWING, algorithms.DOUBLING, algorithms.BUCKET])
    for letter, label in published.LABELS[name].items():
        assert abs(lines[letter].time(32) * 10**6 - F(label)) <= max(F(1), F(label) * 3 / 100), letter


@pytest.mark.slow
@pytest.mark.parametrize("name", ["64x64", "64x16", "128x8", "256x4"])
def test_swing_is_fastest_up_to_32_mib_and_rings_at_512(name):
    lines = networks.curves(TORI[name], algorithms.PAPER)
    assert {"S"} == {checks.fastest(lines, 1 << k) for k in range(5, 26)}
    assert checks.fastest(lines, 512 * MIB) in "BH"


def test_swing_over_recursive_doubling_at_2_mib():
    lines = networks.curves(TORI["64x64"], algorithms.PAPER)
    assert 2 <= lines["D"].time(2 * MIB) / lines["S"].time(2 * MIB) <= F(12, 5)


@pytest.mark.parametrize("identical", [True, False])
def test_the_order_of_the_latency_variant_costs_nothing(identical):
    """Far to near or near to far, chunks are in the longer dimension of a rectangle at the same time."""
    one = tables.simulated(algorithms.Swing(variant="latency", identical=identical), (64, 16))
    hops = [step.hops for step in one.steps for _ in range(step.times)]
    assert [1, 1, 1, 1, 3, 3, 5, 5, 11, 21] == sorted(hops)
    assert hops == sorted(hops, reverse=identical)


@pytest.mark.slow
def test_rings_on_boards_run_ahead():
    """The labels of HammingMesh: a hop on a board is 315 ns late, one between boards 715, and rings take the mean."""
    for net, label, on_board in (
        (networks.hammingmesh(2, 32), 131, F(1, 2)),
        (networks.hammingmesh(4, 16), 105, F(3, 4)),
    ):
        (one,) = networks.curves(net, [algorithms.BUCKET])["B"].variants
        mean = 315 * on_board + 715 * (1 - on_board)
        assert 3 * 715 + 249 * mean == one.time(0) * 10**9
        assert abs(one.time(32) * 10**6 - label) <= 1


# ---- the script


@pytest.mark.slow
@pytest.mark.parametrize("name", ["6", "10", "11", "14"])
def test_figures_say_what_the_paper_says(name):
    figure = figures.FIGURES[name]
    found = list(figure.statements(figure.curves()))
    assert found and all(check.agrees for check in found if check.needed)


def test_a_figure_whose_algorithms_are_exchanged_is_wrong():
    """Recursive doubling in Swing's place: the statements are not such that anything agrees."""
    figure = figures.FIGURES["6"]
    ((net, lines),) = figure.curves().items()
    wrong = {net: {**lines, "S": lines["D"], "D": lines["S"]}}
    assert sum(check.needed and not check.agrees for check in figure.statements(wrong)) >= 4


@pytest.mark.slow
def test_the_script_prints_and_draws(tmp_path, capsys):
    assert 0 == swing.main(["--only", "14", "--output", str(tmp_path)])
    text = capsys.readouterr().out
    assert "14: 4 of 4 agree" in text and "512 MiB" in text
    pictures = sorted(path.name for path in tmp_path.iterdir())
    assert ["swing_14_HyperX.svg", "swing_14_gain.svg"] == pictures
    for picture in tmp_path.iterdir():
        check(picture.read_text())


@pytest.mark.slow
def test_every_algorithm_on_4096_ranks_from_32_bytes_to_512_mib():
    """The whole figure in under a minute on two cores: here, of processor time."""
    start = time.process_time()
    figure = figures.FIGURES["64x64"]
    ((_, lines),) = figure.curves().items()
    times = {(letter, size): line.time(size) for (letter, line), size in product(lines.items(), figure.sizes)}
    assert len(lines) == 10 and 25 == len(figure.sizes) and all(times.values())
    assert time.process_time() - start < 60
