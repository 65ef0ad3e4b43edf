"""The campaign of hostile inputs can find what it looks for, repeats its cases, and what it once found stays mended."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from places import BENCHMARKS, CORPUS
from program_judge import judge_program, judge_schedule
from sampling import every

import collc.driver.bounding
from collc.frontends.coll.families import FAMILIES, OPERATORS
from collc.ir.costs.cost import Cost
from collc.ir.schedule import Schedule
from collc.ir.verify.report import Check, Report
from collc.passes import SCHEDULERS

#: one finding on several networks, with seconds for each
SEVERAL = sorted(CORPUS.glob("alltoall-with-size-*"))
REPRODUCERS = [*(path for path in sorted(CORPUS.iterdir()) if path not in SEVERAL), *every(2, SEVERAL, 1)]
sys.path.insert(0, str(BENCHMARKS))

from hostile import caches, commands, faults, fuzzing, imports, interruptions, specs, texts  # noqa: E402
from hostile.answers import Servant  # noqa: E402
from hostile.findings import Finding, minimal  # noqa: E402


@pytest.fixture(autouse=True)
def _own_servants() -> Iterator[None]:
    """Children are forked anew, so that they see what a test has patched."""
    for module in (caches, commands, faults, fuzzing, imports):
        module._servant.end()
    yield
    for module in (caches, commands, faults, fuzzing, imports):
        module._servant.end()


@pytest.mark.slow
@pytest.mark.parametrize("path", REPRODUCERS, ids=[path.name for path in REPRODUCERS])
def test_what_was_found_stays_mended(path: Path) -> None:
    assert fuzzing.replay(path.read_text(encoding="utf-8", errors="surrogatepass"), path.suffix) == []


def test_a_seed_repeats_its_cases() -> None:
    for seed in (1, 2):
        drawn = [texts.derived(random.Random(seed)) for _ in range(2)]
        assert drawn[0] == drawn[1]
    origin = texts.seeds()[0]
    assert texts.changed(origin, random.Random(5)) == texts.changed(origin, random.Random(5))


def test_a_reproducer_is_small() -> None:
    text = "".join(f"line {k}\n" for k in range(40)) + "a needle here\n" + "rest\n" * 30
    assert minimal(text, lambda t: "needle" in t) == "needle"


# ---- the campaign can fail


def _numbers(run: Callable[[int, int], list[Finding]], count: int, seed: int = 7) -> list[str]:
    return [finding.what for k in range(count) for finding in run(seed, k)]


def test_a_crash_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.cli.check.check", lambda *_: 1 // 0)
    found = _numbers(fuzzing.grammar, 12)
    assert any("exit status 70" in what for what in found)


@pytest.mark.slow
def test_a_crash_of_a_command_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.cli.schema.schema", lambda *_: 1 // 0)
    monkeypatch.setattr("hostile.commands._fewest", lambda words, _: words)
    assert any("exit status 70" in what for what in _of_verb("schema"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "answer", "found"),
    [
        ("collc.tools.importing.import_texts", lambda *_: 1 // 0, "exit status 70"),
        ("collc.frontends.coll.imports.read_network", lambda *_: 1 // 0, "exit status 70"),
        ("collc.frontends.importing.coll_text._links", lambda *_: iter(()), "another network"),
        ("collc.cli.importing.check_writable", lambda paths, *_: open(paths[0], "w").close(), "files left: out.coll"),
    ],
)
def test_a_wrong_import_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: str, answer: Callable[..., object], found: str
) -> None:
    assert _numbers(imports.imports, 12) == []
    imports._servant.end()
    monkeypatch.setattr("hostile.imports.smallest", lambda text, *_: text)
    monkeypatch.setattr(planted, answer)
    assert any(found in what for what in _numbers(imports.imports, 12))


def test_another_answer_the_second_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _of_verb("cache") == []
    monkeypatch.setattr("collc.cli.caches._info", lambda *_: f"{time.monotonic_ns()}\n")
    assert any("the second time" in what for what in _of_verb("cache"))


def _of_verb(verb: str) -> list[str]:
    """Return what the first command lines of a verb find, in a new child."""
    commands._servant.end()
    lines = (commands.drawn(random.Random(f"commands 7 {k}"))[0][0] for k in range(400))
    numbers = [k for k, one in enumerate(lines) if one == verb][:20]
    return [finding.what for k in numbers for finding in commands.commands(7, k)]


@pytest.mark.slow
def test_a_cache_that_believes_everything_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "topology t = biring(3);\ncollective c = allgather on t;\nemit c as ir;\n"
    plain = caches._servant.ask(caches.command, caches._WORDS, {"spec.coll": text}).value[3]
    caches._servant.end()
    assert [caches._damaged(text, plain, random.Random(k)) for k in range(4)] == [""] * 4
    monkeypatch.setattr("collc.files.store.digest", lambda _: "0" * 64)
    monkeypatch.setattr("collc.driver.keeping.read", lambda text: 1 // 0)
    caches._servant.end()
    assert any(caches._damaged(text, plain, random.Random(k)) for k in range(4))


def test_what_is_left_in_a_cache_is_found(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert interruptions._broken_entries(tmp_path, False) == ""
    cache.mkdir()
    (cache / ".x.tmp").write_text("")
    assert "is left" in interruptions._broken_entries(tmp_path, False)
    assert interruptions._broken_entries(tmp_path, True) == ""
    (cache / f"{'0' * 64}.json").write_text(f"collc-store 1 {'0' * 64}\ntext")
    assert "is not whole" in interruptions._broken_entries(tmp_path, True)


def test_no_family_operator_or_scheduler_is_left_out() -> None:
    text = "".join(specs.topology(random.Random(k)) for k in range(2000))
    assert [name for name in (*FAMILIES, *OPERATORS) if f"{name}(" not in text] == []
    assert set(SCHEDULERS) - {"steps"} == set(specs._SCHEDULERS)


@pytest.mark.slow
def test_a_hang_and_a_killed_process_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostile.answers.CPU_SECONDS", 0.3)
    servant = Servant()
    assert "processor time" in servant.ask(_endless).broken
    assert "ends the process" in servant.ask(os._exit, 3).broken
    assert servant.ask(len, "abc").value == 3
    servant.end()


def _endless() -> None:
    while True:
        pass


@pytest.mark.slow
def test_a_verifier_that_accepts_everything_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.ir.verify.verify", lambda ir: Report("any", "any", 1, (Check("all", True, ""),)))
    found = _numbers(faults.columns, 40)
    assert any("verification accepts" in what for what in found)


@pytest.mark.slow
def test_a_bound_that_is_beaten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = collc.driver.bounding.bounded

    def wrong(*arguments: Any) -> Cost:
        found = true(*arguments)
        return attrs.evolve(found, bound=attrs.evolve(found.bound, value=found.time_per_byte + 1))

    monkeypatch.setattr("collc.driver.bounding.bounded", wrong)
    monkeypatch.setattr("hostile.fuzzing.minimal", lambda text, _: text)
    assert any("is beaten" in what for what in _numbers(fuzzing.specifications, 8))


# ---- the independent interpreter


@pytest.mark.slow
def test_right_programs_and_schedules_are_right() -> None:
    for case in range(len(faults._CASES)):
        made = faults._compiled(case)
        assert judge_program(made.program, 3) == ""
        if isinstance(made.schedule, Schedule):
            assert judge_schedule(made.schedule) == ""


def test_wrong_ones_are_not() -> None:
    made = faults._compiled(0)
    shard = made.schedule.shard.copy()
    shard[0] = (shard[0] + 1) % 6
    assert judge_schedule(attrs.evolve(made.schedule, shard=shard))
    count = made.program.count.copy()
    count[np.flatnonzero(made.program.opcode == 1)[0]] += 1
    assert judge_program(attrs.evolve(made.program, count=count), 3)
