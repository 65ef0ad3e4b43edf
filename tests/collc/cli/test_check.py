"""``collc check``: what it finds without synthesis, of several files and folders, and again when a file changes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import COMMAND, RING, Ran
from golden_files import copy_case
from places import CASES

from collc import api
from collc.cli import watching
from collc.driver import checking

Collc = Callable[..., Ran]

#: wrong files that only a schedule, or the target that is missing, shows to be wrong
ONLY_SYNTHESIS = {
    "c0808_too_many_transfers": "lowering counts the transfers",
    "in_network_for_sends": "lowering finds transfers that share links",
    "no_collective": "a file of topologies is right, but there is nothing to compile",
    "no_target": "the command line may name the target",
    "nccl_channels": "the schedule has the number of rings",
    "nccl_no_ring": "a search finds the rings",
    "nccl_one_gpu": "the rings have the NICs of a node",
    "nccl_order": "the rings have the order of the nodes",
    "nccl_tree": "the schedule shows that it is a tree",
    "sums_that_need_relays": "a schedule has the ranks that relay",
    "more_channels_than_the_runtime_has": "a program has the channels",
}
#: options that have nothing to do with the file; a case with others is about the command line
READING = ("-D", "-I", "--node-limit")
HARMLESS = ("%s", "compile", "check", "cost")


def words(path: Path) -> list[str]:
    found = re.match(r"# RUN: (.*?)\n", path.read_bytes()[:400].decode("utf-8", "replace"))
    return shlex.split(found[1] if found else "-p 'the file belongs to another case'")


def about_files() -> Iterator[tuple[Path, list[str]]]:
    """Yield the wrong files whose command has only options for reading, and targets that every file may have."""
    for expected in sorted((CASES / "errors").glob("*.expect")):
        path = expected.with_suffix(".coll")
        if path.exists() and (kept := _for_reading(words(path))) is not None:
            yield path, kept


def _for_reading(given: list[str]) -> list[str] | None:
    """Return the options of a command that say how to read the file; None if others may be what is wrong."""
    kept, rest = list[str](), iter(given)
    for word in rest:
        if word in READING:
            kept += [word, next(rest)]
        elif word.startswith("--node-limit="):
            kept.append(word)
        elif word in ("-o", "-t"):
            if next(rest) not in ("-", "/dev/null", "ir", "msccl-xml"):
                return None
        elif word not in HARMLESS and not word.startswith(("--color", "--diagnostics", "--error")):
            return None
    return kept


@pytest.mark.parametrize(("path", "options"), [pytest.param(*case, id=case[0].stem) for case in about_files()])
def test_what_compile_refuses_is_refused(collc: Collc, tmp_path: Path, path: Path, options: list[str]) -> None:
    copy_case(path, tmp_path)
    ran = collc("check", path.name, *options)
    assert (ran.status == 0) == (path.stem in ONLY_SYNTHESIS), ran.err


def test_most_wrong_files_are_about_files() -> None:
    assert len(list(about_files())) >= 80
    assert set(ONLY_SYNTHESIS) <= {path.stem for path, _ in about_files()}


#: a mistake each, and its code
WRONG = {
    "schedule sums using bfb { chunks: 0 };": "C0550",
    "schedule sums using bfb { chunk: 1 };": "C0009",
    "schedule sums using forest { k: -1 };": "C0585",
    "schedule sums using flow;": "C0503",
    "schedule sums using auto { most: 0 };": "C0010",
    "schedule sums using auto { candidates: nosuch };": "C0046",
    "schedule sums using steps { at 0: reduce shard 0 from 0 to 1; }": "C0401",
    "emit sums as msccl-xml { channels: 99 };": "C0606",
    "emit sums as msccl-xml { runtime: nccl };": "C0010",
    'emit sums as mpi-c { function: "for" };': "C0705",
    'emit sums as mpi-c { function: "a", library: "b" };': "C0720",
    "collective more = allreduce on { rank a, b; link a -> b; };": "C0109",
    "topology apart { rank a, b; link a -> b; } collective more = allreduce on apart;": "C0301",
    "topology star { rank a[3]; switch s; for i in 0..3 { link a[i] <-> s; } } "
    "collective more = allgather on star; schedule more using bfb;": "C0501",
    "topology star { rank a[3]; switch s; for i in 0..3 { link a[i] <-> s; } } "
    "collective more = alltoall on star; schedule more using flow { steps: 2 };": "C0564",
    "collective more = gather on ring { root: 0 }; emit more as msccl-xml;": "C0607",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_found_without_synthesis(collc: Collc, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.driver.compile.compile_collective", lambda *_: 1 // 0)
    Path("a.coll").write_text(RING + text)
    ran = collc("check", "a.coll")
    assert (1, True) == (ran.status, f"[{WRONG[text]}]" in ran.err), ran.err


@pytest.mark.parametrize("text", WRONG)
def test_compile_says_the_same(collc: Collc, text: str) -> None:
    """Place, code and message of a mistake are those that compiling finds."""
    Path("a.coll").write_text(RING + text)
    checked, compiled = collc("check", "a.coll"), collc("compile", "a.coll", "-t", "ir", "-o", "out/")
    if "emit" not in text:  # -t replaces it
        assert checked.err == compiled.err


@pytest.mark.parametrize(
    "text", [*WRONG, "", "schedule sums using bfb { chunks: 0 }; topology apart { rank a; link a -> a; }"]
)
def test_the_api_says_the_same(collc: Collc, text: str) -> None:
    """``collc.check`` returns the diagnostics that ``collc check`` prints, warnings too."""
    Path("a.coll").write_text(RING + text)
    printed = [
        (one["code"], one["location"]["line"], one["message"])
        for one in json.loads(collc("check", "a.coll", "--diagnostics-format=json").err)["diagnostics"]
    ]
    returned = [(one.code, one.span.line, one.message) for one in api.check("a.coll") if one.span is not None]
    assert printed == returned and (not text or printed)


def test_all_mistakes_are_told_at_once(collc: Collc) -> None:
    Path("a.coll").write_text(RING + 'schedule sums using flow;\nemit sums as mpi-c { function: "for" };\n')
    ran = collc("check", "a.coll")
    assert (1, 2) == (ran.status, ran.err.count("error:"))


def test_a_large_schedule_by_hand_is_not_executed(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.coll").write_text(RING + "schedule sums using steps { at 0: reduce shard 0 from 0 to 1; }")
    assert collc("check", "a.coll").status == 1
    monkeypatch.setattr(checking, "MOST_EXECUTED", 0)
    assert collc("check", "a.coll").status == 0


@pytest.mark.parametrize("path", sorted((CASES.parent.parent / "examples").glob("*.coll")), ids=lambda p: p.stem)
def test_examples_are_right(collc: Collc, path: Path) -> None:
    """What is assumed of an imported machine is a warning."""
    assert collc("check", str(path), "-w") == Ran(0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((CASES.parent.parent / "examples").glob("*.coll")), ids=lambda p: p.stem)
def test_examples_are_compiled(collc: Collc, path: Path) -> None:
    """All but the one that only declares topologies."""
    ran = collc(str(path), "-t", "ir", "-o", "out/")
    has_collectives = "collective" in path.read_text()
    assert ran.status == (0 if has_collectives else 1), ran.err
    assert any(Path().glob("out/*.ir")) == has_collectives


# ---- several files


@pytest.fixture
def three(collc: Collc) -> None:
    Path("dir/sub").mkdir(parents=True)
    Path("a.coll").write_text(RING)
    Path("dir/b.coll").write_text("topology b = toruss(3);\n")
    Path("dir/sub/c.coll").write_text(RING + "schedule sums using flow;\n")
    Path("dir/notes.txt").write_text("no specification")


def test_several_files_and_folders(collc: Collc, three: None) -> None:
    ran = collc("check", "a.coll", "dir/", "-v")
    assert ran.status == 1
    assert ["dir/b.coll:1:14: error:", "dir/sub/c.coll:3:21: error:"] == re.findall(r"^dir/\S+: error:", ran.err, re.M)
    assert "collc: a.coll: right" in ran.err and "collc: dir/b.coll: wrong" in ran.err


def test_json_of_several(collc: Collc, three: None) -> None:
    found = json.loads(collc("check", "a.coll", "dir", "--json").out)
    assert found["ok"] is False
    assert [("a.coll", True), ("dir/b.coll", False), ("dir/sub/c.coll", False)] == [
        (one["path"], one["ok"]) for one in found["checked"]
    ]
    assert ["C0122"] == [one["code"] for one in found["checked"][1]["diagnostics"]]


def test_json_of_one(collc: Collc, three: None) -> None:
    found = json.loads(collc("check", "a.coll", "--json").out)
    assert {"schema", "ok", "topologies", "collectives", "files"} == set(found) and found["ok"]
    assert json.loads(collc("check", "dir/b.coll", "--json").out)["ok"] is False


def test_the_worst_status_counts(collc: Collc, three: None) -> None:
    assert collc("check", "a.coll", "a.coll").status == 0
    assert collc("check", "a.coll", "missing.coll").status == 1
    Path("empty").mkdir()
    assert collc("check", "empty").status == 2


# ---- watching


class Watching:
    """``collc check --watch`` as a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(COMMAND), "check", "--watch", *arguments], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def round(self) -> list[str]:
        """Return the lines of one round, without the line that ends it."""
        lines: list[str] = []
        assert self.process.stderr is not None
        while not (line := self.process.stderr.readline()).startswith("----"):
            assert line, "the command ended"
            lines.append(line)
        return lines

    def end(self, number: int) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def changed(path: Path, text: str) -> None:
    """Replace a file as editors do."""
    fresh = path.with_name("fresh~")
    fresh.write_text(text)
    os.replace(fresh, path)


@pytest.mark.slow
def test_a_change_is_checked_and_ctrl_c_ends(tmp_path: Path) -> None:
    main, included = tmp_path / "a.coll", tmp_path / "site.coll"
    main.write_text('include "site.coll";\ncollective sums = allreduce on ring;\n')
    included.write_text("topology ring = biring(4);\n")
    watching = Watching(tmp_path, "a.coll")
    try:
        assert watching.round() == []
        changed(included, "topology ring = birings(4);\n")
        assert any("site.coll:1:17: error:" in line for line in watching.round())
        changed(included, "topology ring = biring(4);\n")
        assert watching.round() == []
        included.unlink()
        assert any("cannot read `site.coll`" in line for line in watching.round())
        included.write_text("topology ring = biring(4);\n")
        while watching.round():  # the folder may change before the text is there
            pass
    finally:
        status, out, err = watching.end(signal.SIGINT)
    assert (130, "", "") == (status, out, err)


def test_standard_input_cannot_be_watched(collc: Collc) -> None:
    assert collc("check", "--watch", "-").status == 2


def test_a_change_during_a_round_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes while a file is checked starts the next round at once."""
    from collc.cli.console import Console

    path, rounds = tmp_path / "a", list[int]()
    path.write_text("1")

    def work() -> tuple[int, tuple[str, ...]]:
        rounds.append(len(rounds))
        if len(rounds) < 3:
            path.write_text("1" * (len(rounds) + 1))
        else:
            raise KeyboardInterrupt
        return 0, (str(path),)

    monkeypatch.setattr(watching, "_PAUSE", 0.0)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        watching.watch(work, [str(path)], Console())
    assert rounds == [0, 1, 2]


@pytest.mark.parametrize(
    ("network", "kind", "scheduler", "code"),
    [
        ("torus(4, 4)", "allreduce", "two-level", "C0587"),
        ("torus(4, 4)", "allreduce", "box-trees", "C0587"),
        ("dgx_a100(2)", "allgather", "box-trees", "C0530"),
        ("subset(dgx_a100(2), {0, 1, 2, 3, 8, 9})", "allreduce", "two-level", "C0587"),
    ],
)
def test_schedulers_of_boxes_judge_the_network(
    collc: Collc, tmp_path: Path, network: str, kind: str, scheduler: str, code: str
) -> None:
    file = tmp_path / "boxes.coll"
    file.write_text(f"topology t = {network};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n")
    found = collc("check", str(file))
    assert (found.status, f"[{code}]" in found.err, "boxes.coll:3:18: error" in found.err) == (1, True, True)
