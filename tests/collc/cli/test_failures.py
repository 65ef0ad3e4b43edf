"""One bad collective does not hide the others: results of the good ones, every failure once, the largest status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

from collc.cli.console import Console
from collc.cli.failures import Failures
from collc.ir.diagnostic import error
from collc.messages.internal import InternalError

Collc = Callable[..., Ran]

#: the second collective is infeasible, the fourth wrong
MIXED = """
topology t = biring(4);
collective a = allreduce on t;
collective b = alltoall on t;
collective c = allgather on t;
collective d = allgather on t;
schedule a using bfb;
schedule b using bfb;
schedule c using bfb;
schedule d using bfb { chunks: 0 };
"""


@pytest.fixture
def mixed(collc: Collc) -> str:
    Path("mixed.coll").write_text(MIXED)
    return "mixed.coll"


@pytest.mark.parametrize("arguments", [["cost"], ["simulate"], ["verify"], ["compile", "-t", "ir", "-o", "out/"]])
def test_every_failure_is_told_once_in_order(collc: Collc, mixed: str, arguments: list[str]) -> None:
    ran = collc(*arguments, mixed)
    assert ran.status == 3
    assert ran.err.count("error:") == 2
    assert ran.err.index("C0503") < ran.err.index("C0550")


@pytest.mark.parametrize("verb", ["cost", "simulate", "verify"])
def test_the_others_are_shown(collc: Collc, mixed: str, verb: str) -> None:
    alone = collc(verb, mixed, "--collective", "a", "--collective", "c")
    assert (0, collc(verb, mixed).out) == (alone.status, alone.out)
    assert "allreduce on 4 ranks" in alone.out and "allgather on 4 ranks" in alone.out


@pytest.mark.parametrize("arguments", [["cost"], ["simulate"], ["verify"], ["compile", "-t", "ir", "-o", "out/"]])
def test_json_has_the_good_and_the_failed(collc: Collc, mixed: str, arguments: list[str]) -> None:
    found = json.loads(collc(*arguments, mixed, "--json").out)
    assert ["a", "c"] == [one["name"] for one in found["collectives"]]
    failed = found["failed"]
    assert [("b", 3), ("d", 1)] == [(one["name"], one["exit_status"]) for one in failed]
    assert ["C0503", "C0550"] == [one["diagnostics"][0]["code"] for one in failed]
    assert failed[0]["diagnostics"][0]["location"]["line"] == 8


def test_json_of_failures_only(collc: Collc, mixed: str) -> None:
    ran = collc("cost", mixed, "--json", "--collective", "b")
    found = json.loads(ran.out)
    assert (3, [], "b") == (ran.status, found["collectives"], found["failed"][0]["name"])


def test_json_without_failures_has_no_key_more(collc: Collc, mixed: str) -> None:
    assert "failed" not in json.loads(collc("cost", mixed, "--json", "--collective", "a").out)


def test_a_failed_compilation_writes_nothing(collc: Collc, mixed: str) -> None:
    ran = collc(mixed, "-t", "ir", "-o", "out/", "--json")
    assert (3, []) == (ran.status, json.loads(ran.out)["outputs"])
    assert [Path("mixed.coll")] == list(Path().iterdir())
    assert collc(mixed, "-t", "ir", "-o", "out/", "--collective", "a").status == 0
    assert [Path("out/a.ir")] == list(Path("out").iterdir())


def test_a_picture_of_a_part_is_not_drawn(collc: Collc, mixed: str) -> None:
    assert collc("simulate", mixed, "--svg", "a.svg").status == 3
    assert [Path("mixed.coll")] == list(Path().iterdir())


def test_a_later_step_fails_for_one_only(collc: Collc) -> None:
    """A network of another size fails when a schedule is simulated, not when it is made."""
    Path("a.coll").write_text("collective a = allgather on biring(4);\ncollective b = allgather on biring(5);\n")
    ran = collc("simulate", "a.coll", "--network", "biring(4)", "--json")
    found = json.loads(ran.out)
    assert (2, ["a"], ["b"]) == (
        ran.status, [one["name"] for one in found["collectives"]], [one["name"] for one in found["failed"]],
    )  # fmt: skip


def test_an_internal_error_ends_the_command() -> None:
    failures = Failures()
    with pytest.raises(InternalError):
        failures.each(["a", "b"], str, lambda name: (_ for _ in ()).throw(InternalError(name)))
    assert not failures


def test_the_status_is_the_largest_and_a_shared_diagnostic_is_printed_once() -> None:
    failures, console = Failures(), Console()
    assert (0, {}) == (failures.report(console), failures.objects())
    for name, status in (("b", 3), ("a", 1), ("c", 3)):
        failures.keep(name, error("C0001", "same" if name != "a" else "other", exit_status=status))
    assert failures.report(console) == 3
    assert ["same", "other"] == [d.message for d in console.diagnostics]
