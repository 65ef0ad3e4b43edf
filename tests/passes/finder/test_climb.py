"""benchmarks/climb.py: what the compiled climb finds has the costs that collc computes, and is the same every time."""

from __future__ import annotations

import shutil
from fractions import Fraction
from importlib import import_module
from itertools import combinations
from math import gcd
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from places import benchmark

import collc
from collc.ir.group import Translations
from collc.passes.finder.cayley import search_cayley
from collc.passes.finder.database import Row, parse_rows
from collc.passes.finder.groups import groups_of_order
from collc.passes.finder.measure import row_mistakes
from collc.passes.finder.turns import turns

climb = benchmark("climb")
cayley, exchanges = import_module("climbs.cayley"), import_module("climbs.exchanges")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the databases of three short searches, each of which goes on from the one before."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("climb")
    for family, degree, sizes in (
        ("cayley", 3, "20..23"), ("lifts", 3, "20..25"), ("lifts", 4, "57"), ("lifts", 16, "66"), ("cayley", 6, "60"),
        ("lifts", 6, "60"), ("inserted", 6, "61"),
    ):  # fmt: skip
        search(folder, family, degree, sizes)
    return folder


def search(folder: Path, family: str, degree: int, sizes: str, *more: str) -> None:
    words = (family, "-d", str(degree), "-n", sizes, "--database", f"{folder}/", "--evaluations", "400", *more)
    assert climb.main(words) == 0


def rows(folder: Path, degree: int) -> list[Row]:
    return parse_rows((folder / f"degree-{degree}.txt").read_text(), degree, "found")


@pytest.mark.parametrize(("degree", "sizes"), [(3, {20, 22, 24}), (4, {57}), (6, {60, 61}), (16, {66})])
def test_the_rows_have_the_costs_that_collc_computes(folder: Path, degree: int, sizes: set[int]) -> None:
    found = rows(folder, degree)
    assert sizes == {row.nodes for row in found}
    for row in found:
        assert not row_mistakes(row, collc.topology)
        assert row.bidirectional and row.alltoall_rate is not None
    assert any(row.T_B == Fraction(row.nodes - 1, row.nodes) for row in found)
    wrong = attrs.evolve(found[0], T_B=found[0].T_B - Fraction(1, 100))
    assert "T_B" in row_mistakes(wrong, collc.topology)[0]


def test_odd_sizes_without_other_groups_have_polycirculants_that_meet_the_bound(folder: Path) -> None:
    """57 nodes: three classes of 19."""
    optimal = [row.T_L for row in rows(folder, 4) if row.T_B == Fraction(56, 57)]
    assert min(optimal) <= 4


@pytest.mark.parametrize(("degree", "sizes"), [(3, "24,60"), (4, "57,75"), (6, "45")])
def test_turned_polycirculants_are_kept_by_a_turn(tmp_path: Path, degree: int, sizes: str) -> None:
    search(tmp_path, "turned", degree, sizes, "--periods", "6")
    found = rows(tmp_path, degree)
    assert {int(size) for size in sizes.split(",")} == {row.nodes for row in found}
    for row in found:
        assert not row_mistakes(row, collc.topology)
        network, period = collc.topology(row.expression), row.expression.count("{")
        links = set(zip(network.src.tolist(), network.dst.tolist(), strict=True))
        possible = turns(row.nodes // period, period, degree)
        assert any({(turned(a, turn, row.nodes, period), turned(b, turn, row.nodes, period)) for a, b in links} == links
                   for turn in possible)  # fmt: skip
    assert any(row.T_B == Fraction(row.nodes - 1, row.nodes) for row in found)


def turned(node: int, turn: Any, nodes: int, period: int) -> int:  # Any: a structure of C
    place, kind = divmod(node, period)
    return (turn.times * place % (nodes // period)) * period + turn.next[kind]


def test_classes_in_fewer_cycles_reach_the_least_bandwidth_time_sooner(tmp_path: Path) -> None:
    """1,245 = 3 * 5 * 83 nodes, for which all groups are cyclic: the fastest circulant takes 25 steps."""
    search(tmp_path, "turned", 4, "1245", "--periods", "3")
    optimal = [row.T_L for row in rows(tmp_path, 4) if row.T_B == Fraction(1244, 1245)]
    assert min(optimal) <= 12


@pytest.mark.parametrize("degree", [3, 4])
def test_every_set_of_a_small_group_has_a_conjugate_that_is_tried(degree: int) -> None:
    group = groups_of_order(24)[0]
    every = np.arange(24)
    inverse = group.inverse(every)
    tried = {tuple(sorted(own)) for sets in cayley.every_set(group, degree) for own in sets.tolist()}
    closed = {own for own in combinations(range(1, 24), degree) if set(inverse[list(own)].tolist()) == set(own)}
    images = [group.multiply(group.multiply(inverse[one], every), one).tolist() for one in range(24)]
    assert tried <= closed == {tuple(sorted(image[one] for one in own)) for own in tried for image in images}


@pytest.mark.parametrize(("nodes", "degree"), [(15, 4), (16, 4), (13, 6), (18, 6)])
def test_every_circulant_is_a_multiple_of_one_that_is_tried(nodes: int, degree: int) -> None:
    tried = {tuple(sorted(own)) for sets in cayley.every_set(Translations((nodes,)), degree) for own in sets.tolist()}
    closed = {own for own in combinations(range(1, nodes), degree) if {-one % nodes for one in own} == set(own)}
    units = [unit for unit in range(nodes) if gcd(unit, nodes) == 1]
    found = {tuple(sorted(unit * one % nodes for one in own)) for own in tried for unit in units}
    assert tried <= closed  # of six elements, only pairs are tried
    assert found == {own for own in closed if degree == 4 or all(2 * one != nodes for one in own)}


def test_all_circulants_of_a_prime_have_one_of_eight_steps(tmp_path: Path) -> None:
    """547 nodes with 6 links: eight steps are twice Moore's bound, and a climb finds nine."""
    search(tmp_path, "complete", 6, "547")
    assert min(row.T_L for row in rows(tmp_path, 6) if row.T_B == Fraction(546, 547)) == 8


def test_another_search_finds_nothing_worse_and_keeps_the_bytes(folder: Path) -> None:
    before = (folder / "degree-3.txt").read_bytes()
    climb.main(("cayley", "-d", "3", "-n", "20..23", "--database", f"{folder}/", "--evaluations", "1"))
    assert before == (folder / "degree-3.txt").read_bytes()
    again = folder / "again"
    again.mkdir(exist_ok=True)
    for family, sizes in (("cayley", "20..23"), ("lifts", "20..25")):
        climb.main((family, "-d", "3", "-n", sizes, "--database", f"{again}/", "--evaluations", "400"))
    assert before == (again / "degree-3.txt").read_bytes()


# ---- links one way


@pytest.fixture(scope="module")
def one_way(folder: Path) -> Path:
    """A folder with networks whose links go one way."""
    folder = folder / "one-way"
    folder.mkdir()
    search(folder, "directed", 2, "20..27")
    search(folder, "led", 2, "23,29")
    search(folder, "directed", 4, "52,82", "--least-period", "1")
    search(folder, "led", 4, "53")
    return folder


@pytest.mark.parametrize(("degree", "sizes"), [(2, {20, 21, 22, 23, 24, 25, 26}), (4, {52, 53, 82})])
def test_networks_with_links_one_way_have_the_costs_that_collc_computes(
    one_way: Path, degree: int, sizes: set[int]
) -> None:
    found = rows(one_way, degree)
    assert sizes == {row.nodes for row in found}
    for row in found:
        assert not row_mistakes(row, collc.topology)
        assert not row.bidirectional and row.reduce_scatter_T_B is not None and row.alltoall_rate is not None
    assert any(row.allreduce_T_B == 2 * Fraction(row.nodes - 1, row.nodes) for row in found)


def test_a_search_of_links_one_way_keeps_what_costs_less(one_way: Path) -> None:
    before = (one_way / "degree-2.txt").read_bytes()
    climb.main(("directed", "-d", "2", "-n", "20..27", "--database", f"{one_way}/", "--evaluations", "1"))
    assert before == (one_way / "degree-2.txt").read_bytes()


# ---- exchanges of links


@pytest.fixture(scope="module")
def exchanged(folder: Path) -> Path:
    """A folder with networks of three links: of any links, of periods, with removed and with inserted nodes."""
    folder = folder / "exchanged"
    folder.mkdir()
    search(folder, "exchanges", 3, "20..25,38", "--periods", "40", "--evaluations", "100000")
    search(folder, "inserted", 3, "26,40")
    search(folder, "exchanges", 4, "15..17,41", "--periods", "41", "--evaluations", "20000")
    return folder


@pytest.mark.parametrize(("degree", "sizes"), [(3, {20, 22, 24, 26, 38, 40}), (4, {15, 16, 41})])
def test_networks_of_any_links_have_the_costs_that_collc_computes(
    exchanged: Path, degree: int, sizes: set[int]
) -> None:
    found = rows(exchanged, degree)
    assert sizes == {row.nodes for row in found}
    for row in found:
        assert not row_mistakes(row, collc.topology)
        assert row.bidirectional and row.alltoall_rate is not None


def test_exchanges_reach_the_records_of_degree_and_diameter(exchanged: Path) -> None:
    """The largest known graphs of three links and 3 and 4 steps, the largest of four links and 2 steps."""
    steps = {(degree, nodes): min(row.T_L for row in rows(exchanged, degree) if row.nodes == nodes)
             for degree, nodes in ((3, 20), (3, 38), (4, 15))}  # fmt: skip
    assert steps == {(3, 20): 3, (3, 38): 4, (4, 15): 2}


def test_exchanges_are_the_same_every_time(exchanged: Path, tmp_path: Path) -> None:
    search(tmp_path, "exchanges", 3, "20..25,38", "--periods", "40", "--evaluations", "100000")
    again = {row for row in rows(tmp_path, 3) if row.nodes < 26}
    assert again == {row for row in rows(exchanged, 3) if row.nodes < 26}


def test_a_removed_node_leaves_its_links_to_others() -> None:
    for fewer, degree in ((1, 4), (2, 3)):
        left = exchanges.without_nodes(exchanges.ring(12, degree), fewer, np.random.Generator(np.random.PCG64(fewer)))
        assert left is not None and left.shape == (12 - fewer, degree)
        pairs = {(node, int(other)) for node, own in enumerate(left) for other in own}
        assert len(pairs) == left.size and pairs == {(b, a) for a, b in pairs} and all(a != b for a, b in pairs)
    complete = np.array([[other for other in range(5) if other != node] for node in range(5)])
    assert exchanges.without_nodes(complete, 1, np.random.Generator(np.random.PCG64(0))) is None


@pytest.mark.parametrize("m", [4, 6, 12])
def test_networks_are_written_with_the_period_that_they_have(m: int) -> None:
    heads = exchanges.ring(12, 3)
    topology = collc.topology(exchanges.periodic(heads, m))
    given = {(node, int(other)) for node, own in enumerate(heads) for other in own}
    assert given == set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))


def test_a_search_reports_within_a_unit_and_can_be_ended_there() -> None:
    from collc.ir.progress import watched

    seen: list[tuple[str, int, int]] = []

    def observer(what: str, done: int, total: int) -> None:
        seen.append((what, done, total))
        if len(seen) == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watched(observer):
        search_cayley(64, 8, bidirectional=True, evaluations=10**7)
    assert {"sets of generators"} == {what for what, _, _ in seen} and all(done <= total for _, done, total in seen)
