"""``collc find --expand-to``: larger networks and the links that they keep."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

from collc.frontends.coll import topology
from collc.passes.finder.growth import grown

Collc = Callable[..., Ran]
DATABASE = """\
16 3 15/16 - 3 <-> - bfb circulant(16, {3, 4})
17 2 17/16 - 2 -> - bfb generalized_kautz(4, 17)
17 3 16/17 - 3 <-> - bfb circulant(17, {3, 4})
18 3 17/18 - 3 <-> - bfb circulant(18, {3, 4})
"""


@pytest.fixture
def found(collc: Collc) -> Callable[..., Ran]:
    Path("best.txt").write_text(DATABASE)
    return lambda *options: collc("find", "-n", "16", "-d", "4", "--database", "best.txt", *options)


def test_larger_networks_are_listed_by_the_links_that_they_keep(found: Callable[..., Ran]) -> None:
    ran = found("--expand-to", "18", "--json")
    assert (0, "") == (ran.status, ran.err)
    shown = json.loads(ran.out)
    assert "circulant(16, {3, 4})" == shown["best"]
    rows = shown["expansions"]
    assert [17, 17, 18] == [row["n"] for row in rows]
    assert ["circulant(17, {3, 4})", "generalized_kautz(4, 17)"] == [row["expression"] for row in rows[:2]]
    for row in rows:
        again = grown(topology(shown["best"]), topology(row["expression"]))
        assert (again.kept, again.links, again.bound, again.labelling) == (
            row["links_kept"], row["links"], row["links_kept_bound"], row["labelling"],
        )  # fmt: skip
    assert (56, 64, 60, "numbers") == tuple(
        rows[0][key] for key in ("links_kept", "links", "links_kept_bound", "labelling")
    )


def test_text_and_csv_have_the_rows(found: Callable[..., Ran]) -> None:
    text = found("--expand-to", "17").out
    assert text.startswith(found().out)
    assert "larger topologies, and how many of the 64 links of circulant(16, {3, 4}) they keep" in text
    assert ["17", "3", "16/17", "<->", "56", "60", "numbers", "circulant(17,", "{3,", "4})"] in map(
        str.split, text.splitlines()
    )
    rows = list(csv.DictReader(io.StringIO(found("--expand-to", "17", "--csv").out)))
    assert ["56", "numbers"] == [rows[0][key] for key in ("links_kept", "labelling")]


def test_only_networks_that_were_asked_for_are_listed(found: Callable[..., Ran]) -> None:
    rows = json.loads(found("--expand-to", "17", "--bidirectional", "--json").out)["expansions"]
    assert ["circulant(17, {3, 4})"] == [row["expression"] for row in rows]
    assert "expansions" not in found("--json").out


def test_sizes_without_two_way_networks_are_left_out(collc: Collc) -> None:
    Path("best.txt").write_text("8 3 7/8 - 3 <-> - bfb hypercube(3)\n10 2 9/10 - 2 <-> - bfb complete(10)\n")
    use = ("find", "-n", "8", "-d", "3", "--database", "best.txt", "--bidirectional", "--expand-to", "10", "--json")
    assert [10] == [row["n"] for row in json.loads(collc(*use).out)["expansions"]]


@pytest.mark.parametrize(("largest", "code"), [("16", "C0030"), ("81", "C0030"), ("x", "C0001")])
def test_sizes_that_are_not_larger_are_errors(found: Callable[..., Ran], largest: str, code: str) -> None:
    ran = found("--expand-to", largest)
    assert (2, "") == (ran.status, ran.out)
    assert code in ran.err


def test_databases_have_no_expansions(collc: Collc) -> None:
    ran = collc("find", "-n", "16", "-d", "4", "--check", "--expand-to", "17")
    assert (2, "") == (ran.status, ran.out)
    assert "--expand-to is for one size" in ran.err
