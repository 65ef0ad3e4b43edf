"""``collc.find`` with the options of the command: the same rows, tables and errors."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commands import Ran

import collc

Collc = Callable[..., Ran]
MIX = "allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3"
DATABASE = """\
16 3 15/16 - 3 <-> - bfb circulant(16, {3, 4})
17 2 17/16 - 2 -> - bfb generalized_kautz(4, 17)
17 3 16/17 - 3 <-> - bfb circulant(17, {3, 4})
18 3 17/18 - 3 <-> - bfb circulant(18, {3, 4})
"""
WORKLOAD = '{"workload": "two", "ranks": 8, "layers": [{"name": "a", "gradient": "9 MB", "forward": "1 ms"}]}'


def cell(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    return "" if value is None else str(value)


def rows_of(ran: Ran) -> list[dict[str, str]]:
    assert (0, "") == (ran.status, ran.err)
    return list(csv.DictReader(io.StringIO(ran.out)))


CASES: list[tuple[tuple[str, ...], dict[str, Any], tuple[str, ...]]] = [
    (("--workload", MIX), {"workload": MIX}, ("frontier",)),
    (("--workload", "gpt2-xl"), {"workload": "gpt2-xl"}, ("frontier",)),
    (("--rack", "4", "--robust"), {"rack": 4, "robust": True}, ("frontier", "sizes")),
    (("--database", "best.txt"), {"database": Path("best.txt")}, ("frontier",)),
    (("--database", "best.txt", "--expand-to", "18"), {"database": "best.txt", "expand_to": 18},
     ("expansions", "places", "recabling", "frontier")),
    (("--bidirectional", "--expand-to", "17"), {"bidirectional": True, "expand_to": 17}, ("expansions", "recabling")),
]  # fmt: skip


@pytest.mark.parametrize(("words", "arguments", "tables"), CASES)
def test_arguments_give_the_rows_of_the_command(
    collc_run: Collc, words: tuple[str, ...], arguments: dict[str, Any], tables: tuple[str, ...]
) -> None:
    Path("best.txt").write_text(DATABASE)
    found = collc.find(nodes=16, degree=4, **arguments)
    for name in tables:
        shown = rows_of(collc_run("find", "-n", "16", "-d", "4", *words, "--table", name, "--csv"))
        assert shown
        table = found.table(name)
        assert shown == [
            {column.key: cell(row[column.key]) for column in table.columns if column.key in shown[0]}
            for row in table.rows
        ]


@pytest.fixture
def collc_run(collc: Collc) -> Collc:  # the module has the name in this file
    return collc


def test_the_way_to_a_larger_network_is_an_object() -> None:
    found = collc.find(nodes=16, degree=4, bidirectional=True, expand_to=17)
    assert found.recabling is not None and found.expansions is not None
    assert found.recabling.place == found.expansions[0].grown.place
    assert collc.find(nodes=16, degree=4).recabling is None


def test_facts_have_the_answers_by_row() -> None:
    found = collc.find(nodes=16, degree=4, rack=4)
    assert {row.expression for row in found.facts} >= {row.expression for row in found.frontier}
    assert all(fact.between_racks is not None and fact.after_link is None for fact in found.facts.values())


@pytest.mark.usefixtures("collc")
def test_a_workload_of_another_number_of_ranks_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    Path("two.json").write_text(WORKLOAD)
    assert not collc.find(nodes=8, degree=2, workload="two.json").diagnostics
    with caplog.at_level(logging.WARNING, "collc"):
        found = collc.find(nodes=9, degree=4, workload=Path("two.json"))
    assert ["C0991"] == [one.code for one in found.diagnostics]
    assert "is for 8 ranks" in caplog.text


def test_an_objective_that_is_none_is_an_allreduce() -> None:
    one, two = (collc.find(nodes=9, degree=4, objective=objective) for objective in (None, "allreduce"))  # type: ignore[arg-type]
    assert one.wanted == two.wanted


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [({"workload": 5}, "C0001", "workload"), ({"workload": "gpt2-xl", "size": 5}, "C0001", "size"),
     ({"workload": "gpt2-xl", "objective": "allreduce"}, "C0001", "objective"), 
     ({"workload": ""}, "C0992", "collective"),
     ({"workload": "allreduce"}, "C0992", "its size"), ({"workload": "no.json"}, "C0002", "no.json"),
     ({"rack": 0}, "C0030", "rack"), ({"rack": "4"}, "C0030", "rack"), ({"rack": True}, "C0030", "rack"),
     ({"expand_to": 16}, "C0030", "17 to 80"), ({"expand_to": Fraction(1, 2)}, "C0030", "expand_to"),
     ({"database": 3}, "C0001", "database"), ({"database": "no.txt"}, "C0002", "no.txt"),
     ({"database": "best.txt", "refresh": True}, "C0001", "refresh")],
)  # fmt: skip
@pytest.mark.usefixtures("collc")
def test_wrong_arguments_are_one_error(arguments: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(collc.CollcError) as found:
        collc.find(nodes=16, degree=4, **arguments)
    [problem] = found.value.diagnostics
    assert code == problem.code and said in problem.message


def test_tables_that_were_not_asked_for_are_errors() -> None:
    for arguments, name in (({}, "expansions"), ({"workload": MIX}, "sizes")):
        with pytest.raises(collc.CollcError, match="there is no table"):
            collc.find(nodes=16, degree=4, **arguments).table(name)  # type: ignore[arg-type]
