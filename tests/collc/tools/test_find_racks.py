"""``--rack`` of ``collc find`` and of cabling lists."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from read_networks import cabled_links

from collc.frontends.coll import topology
from collc.passes.finder.database import Row, parse_rows
from collc.passes.finder.racks import assign_racks
from collc.tools.building import Facts, equals, fewest_between_racks

Collc = Callable[..., Ran]
DATABASE = """\
16 3 15/16 - 3 <-> - bfb circulant(16, {1, 3})
16 3 15/16 - 3 <-> - bfb circulant(16, {2, 7})
16 4 14/16 - 4 <-> - bfb circulant(16, {3, 4})
"""


@pytest.fixture
def found(collc: Collc) -> Callable[..., Ran]:
    Path("best.txt").write_text(DATABASE)
    return lambda *options: collc("find", "-n", "16", "-d", "4", "--database", "best.txt", *options)


def test_links_between_racks_are_columns(found: Callable[..., Ran]) -> None:
    ran = found("--rack", "4", "--json")
    assert (0, "") == (ran.status, ran.err)
    shown = json.loads(ran.out)
    assert 4 == shown["rack"]
    for row in shown["frontier"]:
        racks = assign_racks(topology(row["expression"]), 4)
        assert (racks.links, racks.bound) == (row["links_between_racks"], row["links_between_racks_bound"])
    rows = list(csv.DictReader(io.StringIO(found("--rack", "4", "--csv").out)))
    assert [int(row["links_between_racks"]) for row in rows] == [
        row["links_between_racks"] for row in shown["frontier"]
    ]
    text = found("--rack", "4").out.splitlines()
    assert "between racks  at least" in text[1]
    assert ["24", "16"] == text[2].split()[5:7]


def test_without_racks_nothing_changes(found: Callable[..., Ran]) -> None:
    assert "rack" not in found().out + found("--json").out + found("--csv").out


def test_of_equal_networks_the_one_of_fewest_links_is_shown(found: Callable[..., Ran]) -> None:
    def first(*options: str) -> dict[str, object]:
        row: dict[str, object] = json.loads(found("--json", *options).out)["frontier"][0]
        return row

    assert "circulant(16, {1, 3})" == first()["expression"]
    shown = first("--rack", "4")
    assert ("circulant(16, {2, 7})", 24) == (shown["expression"], shown["links_between_racks"])
    assert assign_racks(topology("circulant(16, {1, 3})"), 4).links > 24


def test_a_row_is_replaced_by_its_equals_alone() -> None:
    best, other, slower, oneway, unrated = parse_rows(
        "9 2 8/9 8/9 2 <-> 1/3 bfb a\n9 2 8/9 8/9 2 <-> 1/3 bfb b\n9 3 8/9 8/9 2 <-> 1/3 bfb c\n"
        "9 2 8/9 8/9 2 -> 1/3 bfb d\n9 2 8/9 8/9 2 <-> - bfb e\n", 4, "rows",
    )  # fmt: skip
    rows = [best, other, slower, oneway, unrated]
    assert equals(best, rows) == [best, other]
    assert equals(unrated, rows) == [unrated, best, other]
    known: dict[Row, Facts] = {row: Facts(10) for row in rows}
    assert fewest_between_racks(best, rows, known) is best
    assert fewest_between_racks(best, rows, {**known, other: Facts(9), slower: Facts(1)}) is other


def test_a_cabling_list_has_the_racks(collc: Collc) -> None:
    ran = collc("topologies", "torus(4, 4)", "--as", "cabling", "--rack", "4", "-o", "cables.csv", "-v")
    assert "4 racks: 32 links between racks, no assignment has less than 16" in ran.err
    text = Path("cables.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert 16 == sum(row["rack"] != row["peer_rack"] for row in rows)  # a cable has two links
    rack = assign_racks(topology("torus(4, 4)"), 4).rack
    assert all(rack[int(row["node"])] == int(row["rack"]) for row in rows)
    assert all(rack[int(row["peer"])] == int(row["peer_rack"]) for row in rows)
    assert 64 == sum(cabled_links(text).values())


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("topologies", "torus(4, 4)", "--as", "dot", "--rack", "4"), 2, "--rack is for a cabling list"),
        (("topologies", "torus", "--rack", "4"), 2, "--rack is for a network that is written"),
        (("topologies", "fat_tree(4)", "--as", "cabling", "--rack", "4"), 1, "C0579"),
        (("find", "-n", "16", "-d", "4", "--rack", "0"), 2, "--rack"),
        (("find", "-n", "16", "-d", "4", "--check", "--rack", "4"), 2, "--rack is for one size"),
    ],
)
def test_racks_out_of_place_are_errors(collc: Collc, words: tuple[str, ...], status: int, text: str) -> None:
    ran = collc(*words)
    assert (status, "") == (ran.status, ran.out)
    assert text in ran.err
