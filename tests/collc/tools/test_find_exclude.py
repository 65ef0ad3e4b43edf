"""``--exclude``: networks that are not wanted take no part in the search."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

import collc as package
from collc.frontends.coll import topology
from collc.passes.finder.database import parse_rows
from collc.passes.finder.exclude import NOTHING, Excluded
from collc.passes.finder.groups import group_expression, groups_of_order
from collc.passes.finder.measure import row_mistakes
from collc.passes.finder.tasks import assemble, plan
from collc.tools.excluding import excluded

Collc = Callable[..., Ran]
#: its first row beats every circulant, so the database has none
DATABASE = "9 2 8/9 8/9 2 <-> 1/3 bfb hamming(2, 3)\n"


def _rows(ran: Ran) -> list[str]:
    return [str(row["expression"]) for row in json.loads(ran.out)["frontier"]]


def test_a_network_that_an_excluded_one_beat_is_found(collc: Collc) -> None:
    Path("best.txt").write_text(DATABASE)
    use = ("find", "-n", "9", "-d", "4", "--database", "best.txt", "--effort", "50", "--json")
    assert _rows(collc(*use)) == ["hamming(2, 3)"]
    ran = collc(*use, "--exclude", "hamming", "--exclude", "cayley", "--exclude", "powe?")
    assert (0, "") == (ran.status, ran.err)
    assert _rows(ran) == ["circulant(9, {2, 3})"]
    assert ["cayley", "hamming", "power"] == json.loads(ran.out)["excluded"]


def test_a_database_without_the_excluded_names_answers_itself(collc: Collc) -> None:
    Path("best.txt").write_text(DATABASE)
    ran = collc("find", "-n9", "-d4", "--database", "best.txt", "--json", "--exclude", "cayley")
    assert _rows(ran) == ["hamming(2, 3)"]


def test_the_text_says_what_is_missing(collc: Collc) -> None:
    ran = collc("find", "-n", "12", "-d", "2", "--exclude", "cayley", "--exclude", "line")
    assert "topologies of 12 nodes and degree 2 without cayley or line: T_L" in ran.out
    assert "cayley(" not in ran.out
    assert "line(" not in ran.out


@pytest.mark.parametrize("name", ["line", "degree", "power", "product", "bidirectional", "uniring", "circulant"])
def test_no_part_of_the_search_offers_an_excluded_name(name: str) -> None:
    without = Excluded(frozenset({name, "cayley", "polycirculant", "directed_polycirculant"}))
    assert plan(64, 4, exclude=without) == []
    rows = assemble(64, 4, [], topology, without)
    assert rows
    assert all(without.allows(row.expression) for row in rows)
    assert all(not row_mistakes(row, topology) for row in rows)
    assert any(name in row.expression for row in assemble(64, 4, [], topology)) or name not in ("line", "circulant")


def test_known_rows_with_excluded_names_are_not_expanded() -> None:
    known = parse_rows("16 2 1 1 2 -> - bfb cayley(metacyclic(8, 2, 7), {3, 4, 5, 6})\n", 4, "known")
    assert any("cayley" in row.expression for row in assemble(64, 4, known, topology))
    without = assemble(64, 4, known, topology, Excluded(frozenset({"cayley"})))
    assert without
    assert not any("cayley" in row.expression for row in without)


def test_groups_are_excluded_before_they_are_counted() -> None:
    without = Excluded(frozenset({"metacyclic"}))
    few = groups_of_order(64, 6, without)
    assert 6 == len(few) == len(groups_of_order(64, 6, NOTHING))
    assert not any("metacyclic" in group_expression(group) for group in few)


def test_line_graphs_are_not_searched_without_them() -> None:
    tasks = plan(64, 4, evaluations=10, exclude=Excluded(frozenset({"line"})))
    assert {64} == {task.nodes for task in tasks}
    assert not any(task.kind == "line" for task in tasks)


def test_the_api_takes_patterns() -> None:
    found = package.find(nodes=8, degree=2, exclude=["cayley", "line"])
    assert found.frontier
    assert all("line(" not in row.expression and "cayley(" not in row.expression for row in found.frontier)


def test_names_without_a_match_are_errors(collc: Collc) -> None:
    ran = collc("find", "-n", "16", "-d", "4", "--exclude", "hypercub", "--exclude", "n0*")
    assert (2, "") == (ran.status, ran.out)
    assert 2 == ran.err.count("C0035")
    assert "nearest" in ran.err
    assert "`hypercube`" in ran.err
    with pytest.raises(package.CollcError, match="C0035"):
        excluded([""])


def test_a_database_is_built_without_names_and_says_so(collc: Collc) -> None:
    use = ("find", "-n", "16", "-d", "4", "--refresh", "--database", "x.txt", "--effort", "10")
    assert collc(*use, "--exclude", "cayley", "--exclude", "pg(2,?)").status == 0
    text = Path("x.txt").read_text()
    assert "# searched 16 with effort 10, seed 0, without cayley, without pg(2,3), without pg(2,4)" in text
    assert "cayley(" not in text
    assert collc(*use, "--bidirectional", "--exclude", "polycirculant").status == 0
    heads = [line for line in Path("x.txt").read_text().splitlines() if line.startswith("# searched")]
    assert heads[0] == "# searched 16 with effort 10, seed 0, links both ways, without polycirculant"
    assert len(heads) == 2


def test_databases_are_checked_whole(collc: Collc) -> None:
    ran = collc("find", "-n", "16", "-d", "4", "--check", "--database", "x.txt", "--exclude", "line")
    assert (2, "") == (ran.status, ran.out)
    assert "--check searches nothing, found also --exclude" in ran.err
    for words, found in ((("--json",), "--json is for one size"), (("--seed", "3"), "found also --seed")):
        ran = collc("find", "-n", "16", "-d", "4", "--check", "--database", "x.txt", *words)
        assert (2, "") == (ran.status, ran.out) and found in ran.err
    ran = collc("find", "-n", "2001", "-d", "4", "--check")
    assert (2, "") == (ran.status, ran.out) and "no topology of degree 4 and these numbers" in ran.err


def test_a_look_up_says_that_it_searches_nothing(collc: Collc) -> None:
    ran = collc("find", "-n", "45", "-d", "4", "--seed", "3")
    assert ran.status == 0 and "--effort and --seed are for a search" in ran.err
