"""``collc find --robust``: costs after the worst failure of a link and of a node."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

Collc = Callable[..., Ran]


@pytest.fixture
def found(collc: Collc) -> Callable[..., Ran]:
    Path("best.txt").write_text(
        "16 3 15/16 - 3 <-> - bfb circulant(16, {3, 4})\n16 2 7/8 - 2 -> - bfb uniring(16, 4)\n"
        "4 3 3/4 - 3 -> - bfb uniring(4)\n"
    )
    return lambda *options: collc("find", "-n", "16", "-d", "4", "--database", "best.txt", *options)


def test_costs_after_failures_are_columns(found: Callable[..., Ran]) -> None:
    shown = json.loads(found("--robust", "--bidirectional", "--json").out)
    (row,) = shown["frontier"]
    assert ("computed", 3, "5/4", 1.25) == tuple(row[key] for key in LINK)
    assert ("computed", "4/3") == (row["node_failure"], row["T_B_node_failure"])
    (cells,) = csv.DictReader(io.StringIO(found("--robust", "--bidirectional", "--csv").out))
    assert all(cells[key] == str(row[key]) for key in (*LINK, "node_failure", "T_L_node_failure"))
    text = found("--robust").out.splitlines()
    assert "without a link  without a node" in text[1]
    assert "3, 5/4" in found("--robust", "--bidirectional").out


LINK = ("link_failure", "T_L_link_failure", "T_B_link_failure", "T_B_link_failure_float")


def test_a_network_that_a_failure_cuts_says_so(collc: Collc) -> None:
    ran = collc("find", "-n", "5", "-d", "1", "--robust")
    assert 2 == ran.out.splitlines()[2].count("disconnected")
    row = json.loads(collc("find", "-n", "5", "-d", "1", "--robust", "--json").out)["frontier"][0]
    assert ("disconnected", None, None, None) == tuple(row[key] for key in LINK)


def test_racks_and_failures_are_asked_together_or_not_at_all(found: Callable[..., Ran]) -> None:
    row = json.loads(found("--robust", "--rack", "4", "--bidirectional", "--json").out)["frontier"][0]
    assert {"links_between_racks", "link_failure"} <= set(row)
    assert "failure" not in found("--json").out + found("--csv").out


def test_databases_have_no_failures(collc: Collc) -> None:
    ran = collc("find", "-n", "16", "-d", "4", "--check", "--robust")
    assert (2, "") == (ran.status, ran.out)
    assert "--robust is for one size" in ran.err
