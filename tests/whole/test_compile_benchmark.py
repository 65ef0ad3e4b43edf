"""benchmarks/compile.py: limits, failures and planted slowdowns are rows and exit codes, and growth is fitted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from places import ROOT, benchmark

compiled = benchmark("compile")

SMALL = compiled.chosen(["readme"])[0]
FAST = compiled.Run(user=1.0, wall=1.5, peak=100, size=7)


def row(here: object, other: object = FAST) -> object:
    return compiled.Row(SMALL, here, other)


def folder(path: Path, body: str) -> Path:
    """Return a tree whose collc is this module."""
    (path / "collc").mkdir(parents=True)
    (path / "collc" / "__init__.py").touch()
    (path / "collc" / "__main__.py").write_text(body)
    return path


#: a compiler that writes one file into the folder of -o
WRITES = "import sys, pathlib\npathlib.Path(sys.argv[sys.argv.index('-o') + 1], 'a.xml').write_text('12345')\n"


def test_a_run_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    check = "import os, sys\nassert not sys.dont_write_bytecode and 'PYTHONDONTWRITEBYTECODE' not in os.environ\n"
    one = compiled.run(SMALL, folder(tmp_path, check + WRITES), 60)
    assert one.ok and one.size == 5 and one.wall >= one.user > 0
    assert 1 << 20 < one.peak < 1 << 32


def test_this_tree_compiles_the_example() -> None:
    one = compiled.run(SMALL, ROOT, 120)
    assert one.ok, one.error
    assert one.size > 10_000 and one.peak > 20 << 20


def test_a_case_over_the_limit_is_a_row(tmp_path: Path) -> None:
    tree = folder(tmp_path, "import time\ntime.sleep(600)\n")
    one = compiled.run(SMALL, tree, 0.5)
    assert one.over and not one.ok and not one.error and one.wall < 60
    [shown] = compiled.lines(compiled.Row(SMALL, one, None), "")
    assert f">{one.wall:.1f}" in shown


def test_a_command_that_fails_is_a_row(tmp_path: Path) -> None:
    one = compiled.run(SMALL, folder(tmp_path, "import sys\nsys.exit('no such thing')\n"), 60)
    assert (one.ok, one.error) == (False, "exit 1: no such thing")
    assert "no such thing" in "\n".join(compiled.lines(row(one), "abc"))


def test_trees_run_alternately_and_failures_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    def run(case: object, tree: Path, limit: float) -> object:
        order.append(tree.name)
        return FAST._replace(user=float(len(order)), error="bad" if tree.name == "c" else "")

    monkeypatch.setattr(compiled, "run", run)
    trees = [Path("a"), Path("b"), Path("c")]
    a, b, c = compiled.measure(SMALL, trees, 3, 60)
    assert order == ["c", "b", "a", "a", "b", "b", "a"]
    assert (a.user, b.user, c.error) == (3.0, 2.0, "bad")


# ---- ratios


@pytest.mark.parametrize(
    ("here", "other", "worse"),
    [
        (FAST, FAST, False), (FAST._replace(user=1.19), FAST, False), (FAST._replace(user=1.21), FAST, True),
        (FAST._replace(peak=121), FAST, True), (FAST._replace(wall=9.0), FAST, False),
        (FAST._replace(error="exit 1"), FAST, True), (FAST._replace(over=True), FAST, True),
        (FAST._replace(user=9.0), FAST._replace(over=True), False), (FAST, FAST._replace(error="exit 1"), False),
        (FAST._replace(over=True), FAST._replace(over=True), False), (FAST._replace(user=9.0), None, False),
    ],
)  # fmt: skip
def test_what_is_worse(here: object, other: object, worse: bool) -> None:
    assert compiled.is_worse(row(here, other), 1.2) is worse
    assert list(compiled.lines(row(here, other), "abc"))


def test_a_ratio_with_a_limit_is_a_bound() -> None:
    over = FAST._replace(user=4.0, over=True)
    assert str(compiled.ratio(row(FAST, over), "user")) == "<0.25"
    assert str(compiled.ratio(row(over, FAST), "user")) == ">4.00"
    assert compiled.ratio(row(over, over), "user") is None


# ---- the whole script, with a planted slowdown


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose first commit has a fast compiler, and whose tree a slow one."""
    tree = folder(tmp_path / "repository", WRITES)
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "fast"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(compiled, "ROOT", tree)
    return tree


PLANTED = {"user": "sum(range(3 * 10**7))\n", "peak": "x = bytearray(b'1') * 10**8\n"}


@pytest.mark.parametrize("field", PLANTED)
def test_a_planted_fault_fails(repository: Path, capsys: pytest.CaptureFixture[str], field: str) -> None:
    arguments = ["--against", "HEAD", "--only", "readme", "--repeat", "1", "--fail-above"]
    assert compiled.main([*arguments, "50"]) == 0
    (repository / "collc" / "__main__.py").write_text(PLANTED[field] + WRITES)
    capsys.readouterr()
    assert compiled.main([*arguments, "1.2", "--json"]) == 1
    ran = capsys.readouterr()
    assert "worse than HEAD by more than 1.2: readme" in ran.err
    [found] = json.loads(ran.out)["cases"]
    assert found["other"]["size"] == 5 and found["ratios"][field]["value"] > 1.2
    listed = subprocess.run(["git", "-C", str(repository), "worktree", "list"], capture_output=True, text=True)
    assert len(listed.stdout.splitlines()) == 1  # the other commit is removed


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "none"], ["--against", "no-such-commit", "--only", "readme"], ["--repeat", "0"],
        ["--alone", "--fail-above", "1.2"],
    ],
)  # fmt: skip
def test_wrong_options_are_refused(repository: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        compiled.main(arguments)
    assert refused.value.code


def test_the_stored_commit_is_in_the_history() -> None:
    git = ["git", "-C", str(ROOT)]
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if not (ROOT / ".git").exists() or shallow.stdout.strip() != "false":
        pytest.skip("no repository with its whole history")
    command = [*git, "merge-base", "--is-ancestor", compiled.REFERENCE, "HEAD"]
    assert subprocess.run(command, check=False).returncode == 0


# ---- growth


def test_exponents_are_slopes_of_logarithms() -> None:
    assert compiled.exponent([(16, 2 * 16**1.5), (64, 2 * 64**1.5), (256, 2 * 256**1.5)]) == pytest.approx(1.5)
    assert compiled.exponent([(16, 5.0)]) is None


def test_growth_leaves_out_what_did_not_end() -> None:
    cases = compiled.chosen(["torus"])
    runs = [FAST._replace(user=case.ranks**2.0, over=case.ranks > 256) for case in cases]
    rows = [compiled.Row(case, one, None) for case, one in zip(cases, runs, strict=True)]
    user, peak = compiled.fits(rows)
    assert [ranks for ranks, _ in user.points] == [16, 64, 256]
    assert (user.fitted, user.last, peak.fitted) == (pytest.approx(2), pytest.approx(2), pytest.approx(0))
    assert "16: 256.00, 64: 4096.00" in "\n".join(compiled.fit_lines([user, peak], "abc"))


def test_cases_are_the_ranks_that_they_name() -> None:
    import collc

    for case in compiled.CASES:
        if 0 < case.ranks <= 64:
            expression = case.text.partition("= ")[2].partition(";")[0]
            assert collc.topology(expression).num_ranks == case.ranks, case.name


# ---- the optional job


def test_the_optional_job_runs_options_that_exist() -> None:
    [command] = re.findall(r"^.*benchmarks/compile.py .*$", (ROOT / ".ci" / "optional").read_text(), re.MULTILINE)
    words = command.replace('${1:+--against "$1"}', "").split()[2:]
    options = compiled.parsed(words)
    assert (options.against, options.only, options.fail_above) == (compiled.REFERENCE, ["small"], 1.2)
    assert compiled.chosen(options.only)
    assert os.access(ROOT / ".ci" / "optional", os.X_OK)
