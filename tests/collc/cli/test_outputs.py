"""Where outputs go: places are checked before any work, folders are made at the end, several inputs share one."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Ran

import collc.cli.inputs as inputs
import collc.reading.loading as loading
from collc.cli.verbs import VERBS

Collc = Callable[..., Ran]

A = "collective a = allreduce on biring(4);\nschedule a using bfb;\n"
B = "collective b = allgather on biring(3);\nschedule b using bfb;\n"


@pytest.fixture
def two(collc: Collc) -> tuple[str, str]:
    Path("a.coll").write_text(A)
    Path("b.coll").write_text(B)
    return "a.coll", "b.coll"


def files() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file() and path.suffix != ".coll")


#: for each option that writes, a command that does
WRITING = {
    ("compile", "-o"): ["a.coll", "-t", "ir", "-o", "%s"],
    ("compile", "-MF"): ["a.coll", "-t", "ir", "-MD", "-MF", "%s"],
    ("convert", "-o"): ["convert", "a.coll", "-t", "ir", "-o", "%s"],
    ("env", "--config"): ["env", "a.coll", "--config", "%s"],
    ("env", "--rules"): ["env", "a.coll", "--library", "openmpi", "--rules", "%s"],
    ("report", "-o"): ["report", "a.coll", "-o", "%s"],
    ("explore", "-o"): ["explore", "a.coll", "-o", "%s"],
    ("report", "-MF"): ["report", "a.coll", "-MD", "-MF", "%s"],
    ("simulate", "--trace"): ["simulate", "a.coll", "--trace", "%s"],
    ("simulate", "--animate"): ["simulate", "a.coll", "--animate", "%s"],
    ("simulate", "--svg"): ["simulate", "a.coll", "--svg", "%s"],
    ("replan", "-o"): ["replan", "a.coll", "--without", "0 -> 1", "-t", "ir", "-o", "%s"],
    ("calibrate", "-o"): ["calibrate", "a.coll", "-o", "%s"],
    ("import", "-o"): ["import", "a.coll", "-o", "%s"],
    ("topologies", "-o"): ["topologies", "a.coll", "--as", "dot", "-o", "%s"],
    ("find", "--svg"): ["find", "-n", "8", "-d", "3", "--svg", "%s"],
    ("train", "--trace"): ["train", "gpt2-xl", "--on", "torus(2, 2)", "--trace", "%s"],
    **{(verb, "--profile"): [verb, "a.coll", *more, "--profile", "%s"]
       for verb, *more in (["compile", "-t", "ir", "-o", "a.ir"], ["check"], ["cost"], ["simulate"], ["run"],
                           ["convert", "-t", "ir"], ["report"], ["explore"], ["replan", "--without", "0 -> 1"],
                           ["verify"])},
    **{(verb, "--time-passes"): [verb, "a.coll", *more, "--time-passes=%s"]
       for verb, *more in (["compile", "-t", "ir", "-o", "a.ir"], ["cost"], ["simulate"], ["run"],
                           ["convert", "-t", "ir"], ["report"], ["explore"], ["replan", "--without", "0 -> 1"])},
    ("launch", "--time-passes"): ["launch", "a.coll", "--time-passes=%s", "--", "true"],
    ("sweep", "-o"): ["sweep", "--on", "biring(4)", "--collective", "allgather", "-o", "%s"],
    ("launch", "--profile"): ["launch", "a.coll", "--profile", "%s", "--", "true"],
    **{(verb, f"--{form}"): [verb, "a.coll", f"--{form}=%s"]
       for verb in ("cost", "simulate", "run", "calibrate", "check") for form in ("csv", "markdown")},
    **{(verb, f"--{form}"): [verb, *words, f"--{form}=%s"]
       for verb, *words in (["find", "-n", "8", "-d", "3"], ["train", "--list"], ["explain"], ["targets"], ["passes"],
                            ["topologies"], ["schedulers"], ["schema"], ["formats"], ["verify", "a.coll"],
                            ["replan", "a.coll", "--without", "0 -> 1"], ["cache", "list"], ["report", "a.coll"],
                            ["compile", "a.coll", "-t", "ir"], ["convert", "a.coll", "-t", "ir"],
                            ["sweep", "--on", "biring(4)", "--collective", "allgather"],
                            ["import", "a.coll", "-o", "b.coll"])
       for form in ("csv", "markdown")},
}  # fmt: skip


def written() -> Iterator[tuple[str, str]]:
    for verb in VERBS.values():
        for _, group in verb.groups:
            for opt in group:
                if opt.writes:
                    yield verb.name, opt.names[-1]


def test_the_commands_below_are_all_that_write() -> None:
    """An option whose help says that it writes a file says so to the command, too."""
    assert set(WRITING) == set(written())
    for verb in VERBS.values():
        for _, group in verb.groups:
            for opt in group:
                says = opt.metavar in ("FILE", "OUT") and opt.kind != "flag" and "into FILE" in opt.help
                assert opt.writes or not says, opt.names


def test_a_folder_is_no_picture(collc: Collc, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "read", lambda *_: 1 // 0)
    assert "cannot write `new/`" in collc("simulate", "a.coll", "--svg", "new/").err


#: a place that cannot be written, and a command; a file that is no input of it is replaced
REFUSED = [
    pytest.param(where, words, id=f"{' '.join(names)}-{where}")
    for names, words in WRITING.items()
    for where in ("missing/x", "a.coll/x", "missing/sub/", "a.coll")
    if where != "a.coll" or "a.coll" in words
]


@pytest.mark.parametrize(("where", "arguments"), REFUSED)
def test_a_place_is_checked_before_the_input_is_read(
    collc: Collc, two: tuple[str, str], arguments: list[str], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "read", lambda *_: 1 // 0)
    monkeypatch.setattr(loading, "with_spec", lambda *_: 1 // 0)
    ran = collc(*[word.replace("%s", where) for word in arguments])
    assert (1, 1) == (ran.status, ran.err.count("error:")), ran.err
    assert "C0005" in ran.err or "cannot write" in ran.err
    assert files() == []


@pytest.mark.parametrize("where", ["out", "out/", "out/sub/"])
def test_a_folder_that_takes_no_files(
    collc: Collc, two: tuple[str, str], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("out").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("out"))  # root may write anywhere
    monkeypatch.setattr(inputs, "read", lambda *_: 1 // 0)
    assert "not writable" in collc("a.coll", "-t", "ir", "-o", where).err


def test_a_missing_folder_is_made_at_the_end(
    collc: Collc, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import collc.cli.compile as verb

    kept = verb.Failures.compiled
    seen: list[bool] = []

    def watched(*arguments: object, **more: object) -> object:
        seen.append(Path("new").exists())
        return kept(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(verb.Failures, "compiled", watched)
    assert collc("a.coll", "-t", "ir", "-o", "new/") == Ran(0, "", "")
    assert (seen, files()) == ([False], ["new/a.ir"])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("new/sub/", "cannot write into `new/sub/`: directory `new` does not exist"),
        ("there/new/sub/", "cannot write into `there/new/sub/`: directory `there/new` does not exist"),
        ("a.coll/", "cannot write into `a.coll/`: directory `a.coll` is not a directory"),
        ("a.coll/sub/", "cannot write into `a.coll/sub/`: directory `a.coll` is not a directory"),
    ],
)
def test_more_than_the_last_folder_is_missing(collc: Collc, two: tuple[str, str], where: str, message: str) -> None:
    Path("there").mkdir()
    ran = collc("a.coll", "-t", "ir", "-o", where)
    assert (1, True) == (ran.status, message in ran.err), ran.err
    if "new" in where:
        nearest = "there" if "there" in where else "."
        assert f"note: the nearest directory that exists is `{nearest}`\n" in ran.err
        assert f"hint: create it: mkdir -p {where.rstrip('/')}\n" in ran.err
        command = ran.err.partition("create it: ")[2].strip()
        assert os.system(command) == 0 and collc("a.coll", "-t", "ir", "-o", where).status == 0


def test_a_failed_write_takes_the_folder_away(
    collc: Collc, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import collc.cli.compile as verb
    from collc.ir.diagnostic import error

    def fail(*_: object, **__: object) -> None:
        raise error("C0004", "no room")

    monkeypatch.setattr(verb, "write_all", fail)
    assert collc("a.coll", "-t", "ir", "-o", "new/").status == 1
    assert not Path("new").exists()


# ---- several outputs in one place


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "a.ir", "--csv=a.ir"], ["--csv=a.ir"], ["-o", "a.ir", "--time-passes=./a.ir"],
        ["-o", "a.ir", "--markdown=a.md", "--time-passes=a.md"], ["-o", "a.ir", "-MD", "--csv=a.d"],
        ["-o", "out/", "--csv=out/a.ir"], ["-o", "a.ir", "--csv=b.csv", "--csv=b.csv"],
    ],
)  # fmt: skip
def test_no_output_replaces_another(collc: Collc, two: tuple[str, str], arguments: list[str]) -> None:
    Path("out").mkdir()
    ran = collc("a.coll", "-t", "ir", *arguments)
    assert (1, True) == (min(ran.status, 1), "[C0021]" in ran.err), ran.err
    assert files() == []


@pytest.mark.parametrize("verb", [["compile", "-t", "ir"], ["cost"], ["simulate"], ["check"], ["verify"]])
def test_no_table_replaces_an_included_file(collc: Collc, two: tuple[str, str], verb: list[str]) -> None:
    Path("b.coll").write_text("topology ring = biring(4);\n")
    Path("a.coll").write_text('include "b.coll";\ncollective a = allreduce on ring;\n')
    for option in ("--csv=b.coll", "--markdown=./b.coll", "--time-passes=b.coll"):
        if verb in (["check"], ["verify"]) and "time" in option:
            continue
        ran = collc(verb[0], "a.coll", *verb[1:], option)
        assert "[C0005]" in ran.err, ran
    assert Path("b.coll").read_text() == "topology ring = biring(4);\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "a.coll", "-t", "ir", "-o", "-", "--time-passes=-"],
        ["compile", "a.coll", "-t", "ir", "-o", "a.ir", "--json", "--time-passes=-"],
        ["compile", "a.coll", "-t", "ir", "-o", "a.ir", "--csv", "--time-passes=-"],
        ["compile", "a.coll", "-t", "ir", "-o", "a.ir", "--table=programs", "--time-passes=-"],
        ["cost", "a.coll", "--time-passes=-"], ["simulate", "a.coll", "--trace", "-"],
        ["simulate", "a.coll", "--svg", "-"], ["find", "-n", "8", "-d", "3", "--svg", "-"],
    ],
)  # fmt: skip
def test_standard_output_takes_one_output(collc: Collc, two: tuple[str, str], arguments: list[str]) -> None:
    ran = collc(*arguments)
    assert (2, "", True) == (ran.status, ran.out, "would both write to standard output [C0001]" in ran.err), ran
    assert files() == []


def test_times_on_standard_output(collc: Collc, two: tuple[str, str]) -> None:
    ran = collc("a.coll", "-t", "ir", "-o", "a.ir", "--time-passes=-")
    assert (0, "", True) == (ran.status, ran.err, ran.out.startswith("seconds,share,"))


# ---- several inputs


def test_several_inputs_share_a_folder(collc: Collc, two: tuple[str, str]) -> None:
    alone = {}
    for path in two:
        collc(path, "-t", "ir", "-o", "one/")
    alone = {path.name: path.read_bytes() for path in Path("one").iterdir()}
    ran = collc(*two, "-t", "ir", "-o", "both/", "--json")
    assert (0, "") == (ran.status, ran.err)
    assert alone == {path.name: path.read_bytes() for path in Path("both").iterdir()}
    listed = json.loads(ran.out)["outputs"]
    assert [("both/a.ir", "a.coll"), ("both/b.ir", "b.coll")] == [(one["path"], one["input"]) for one in listed]


def test_without_a_place_each_has_its_own_name(collc: Collc, two: tuple[str, str]) -> None:
    assert collc(*two, "-t", "ir", "-MD").status == 0
    assert ["a.d", "a.ir", "b.d", "b.ir"] == files()
    assert Path("b.d").read_text().startswith("b.ir: \\\n  b.coll\n")


def test_rules_of_several_inputs(collc: Collc, two: tuple[str, str]) -> None:
    assert collc(*two, "-t", "ir", "-M").out == "a.ir: \\\n  a.coll\nb.ir: \\\n  b.coll\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-o", "one.ir"], "C0021", "the outputs of 2 inputs cannot go to one file `one.ir`"),
        (["-o", "-"], "C0021", "the outputs of 2 inputs cannot go to one file `-`"),
        (["-MD", "-MF", "x.d"], "C0903", "-MF is for one make rule, but 2 inputs have 2"),
        (["-MD", "-MT", "x"], "C0903", "-MT is for one make rule"),
    ],
)
def test_one_file_for_several(collc: Collc, two: tuple[str, str], arguments: list[str], code: str, words: str) -> None:
    ran = collc(*two, "-t", "ir", *arguments)
    assert (2, True, True) == (ran.status, words in ran.err, f"[{code}]" in ran.err), ran.err
    assert files() == []


def test_names_that_collide(collc: Collc, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import collc.cli.compile as verb

    Path("b.coll").write_text(A)
    monkeypatch.setattr(verb.Failures, "compiled", lambda *_: 1 // 0)
    ran = collc(*two, "-t", "ir", "-o", "out/")
    assert (2, True) == (ran.status, "`a.coll` and `b.coll` would both write `out/a.ir` [C0021]" in ran.err)
    assert collc("a.coll", "./a.coll", "-t", "ir").status == 2


def test_failures_of_all_inputs_are_told_at_once(collc: Collc, two: tuple[str, str]) -> None:
    Path("b.coll").write_text("collective b = alltoall on biring(4);\nschedule b using bfb;\n")
    ran = collc(*two, "-t", "ir", "-o", "out/", "--json")
    assert (3, []) == (ran.status, files())
    assert ["b.coll"] == [one["input"] for one in json.loads(ran.out)["failed"]]
    Path("a.coll").write_text("topology a = toruss(3);\n")
    Path("b.coll").write_text("topology b = toruss(3);\n")
    assert collc(*two, "-t", "ir").err.count("C0122") == 2


def test_a_new_folder_has_the_mode_of_the_umask(collc: Collc, two: tuple[str, str]) -> None:
    before = os.umask(0o027)
    try:
        collc("a.coll", "-t", "ir", "-o", "new/")
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("new").stat().st_mode) == 0o750
