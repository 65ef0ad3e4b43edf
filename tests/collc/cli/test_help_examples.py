"""The examples of every ``--help``: each is run, and each verb has its heading and an example."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from example_files import write_files

from collc.cli.tasks import EXAMPLES, TASKS
from collc.cli.verbs import VERBS, overview

Collc = Callable[..., Ran]

#: verbs that start an MPI, or programs that there are not, or that answer an editor (tests/collc/lsp); others may also
#: write the files that these write
NEED = ("run", "launch", "lsp")
#: warnings of these examples: what the matrix does not have, and collc assumes
ASSUMED = set(EXAMPLES["import"])


@pytest.fixture
def files(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the examples name, and a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath("cache of the examples"))
    write_files(collc)


def words(command: str) -> list[str]:
    name, *rest = shlex.split(command)
    assert name == "collc"
    return rest


@pytest.mark.slow
@pytest.mark.parametrize("command", [one for verb, each in EXAMPLES.items() if verb not in NEED for one in each])
def test_an_example_runs(collc: Collc, files: None, command: str) -> None:
    ran = collc(*words(command))
    assert (0, command in ASSUMED) == (ran.status, bool(ran.err))
    assert "error" not in ran.err and ran.err.count("warning") == ran.err.count("[C0940]")


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("command", EXAMPLES["run"])
def test_an_example_of_run(collc: Collc, files: None, command: str, mpich: object) -> None:
    Path("times.csv").unlink()
    assert collc(*words(command)).status == 0


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("command", EXAMPLES["launch"])
def test_an_example_of_launch(collc: Collc, files: None, command: str, mpich: object) -> None:
    before, dashes, after = command.partition(" -- ")
    assert collc(*words(f"{before} --dry-run{dashes}{after}")).status == 0


def test_every_verb_has_examples_in_its_help(collc: Collc) -> None:
    assert set(VERBS) == set(EXAMPLES)
    for verb, commands in EXAMPLES.items():
        text = collc(verb, "--help").out
        assert all(f"  {command}\n" in text for command in commands)
        assert all(words(command)[0] == verb or verb == "compile" for command in commands)


def test_every_verb_stands_under_one_task() -> None:
    listed = [name for names in TASKS.values() for name in names]
    assert sorted(VERBS) == sorted(listed)
    text = overview()
    assert [task for task in TASKS if f"\n{task}:\n" not in text] == []
    assert all(text.count(f"\n  {name} ") == 1 for name in VERBS)


def test_a_new_verb_is_shown_without_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "paint", VERBS["check"])
    assert f"\nmore:\n  {'paint':12}" in overview()
