"""The command's verbs and options, run in this process."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from commands import COMMAND, COST_KEYS, RING, Ran
from places import EXAMPLES
from sampling import every

import collc as package
from collc.cli.verbs import LATER, VERBS
from collc.ir.text import parse_ir

Collc = Callable[..., Ran]


def names() -> list[str]:
    return sorted(p.name for p in Path().iterdir())


# ---- help


def test_the_version_is_the_package_s(collc: Collc) -> None:
    expected = Ran(0, f"collc {version('collc')}\n", "")
    assert expected == Ran(0, f"collc {package.__version__}\n", "")
    for arguments in (["--version"], ["compile", "--version"], ["x.coll", "--version"]):
        assert collc(*arguments).out == expected.out


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    for arguments, status in ((["--version"], 0), (["nosuch"], 2)):
        command = [sys.executable, "-m", "collc", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == status
        assert (f"collc {version('collc')}\n" if status == 0 else "").encode() == done.stdout


def test_nothing_at_all_is_answered_with_the_overview(collc: Collc) -> None:
    ran = collc()
    assert (2, "") == (ran.status, ran.out)
    assert ran.err == collc("--help").out == collc("help").out


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_help_with_every_option(collc: Collc, verb: str) -> None:
    ran = collc(verb, "--help")
    assert (0, "") == (ran.status, ran.err)
    assert ran.out == collc("help", verb).out == collc(verb, "x", "y", "-h").out
    for _, group in VERBS[verb].groups:
        for opt in group:
            assert all(name in ran.out for name in opt.names)
    assert max(map(len, ran.out.splitlines())) <= 120


@pytest.mark.parametrize("verb", LATER)
def test_verbs_of_later_versions_say_so(collc: Collc, verb: str) -> None:
    ran = collc(verb, "-n", "4", "--whatever")
    assert (2, 2) == (ran.status, len(ran.err.splitlines()))
    assert f"this version does not have `collc {verb}` [C0022]" in ran.err


def test_every_option_name_is_used_once_and_leads_to_one_value() -> None:
    for verb in VERBS.values():
        names = [name for _, group in verb.groups for opt in group for name in opt.names]
        assert sorted(set(names)) == sorted(names)
        assert all(len(opt.names) <= 2 for _, group in verb.groups for opt in group)


# ---- options


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["ring.coll", "-t", "ir", "-o", "a.ir"],
        ["-t", "ir", "-o", "a.ir", "ring.coll"],
        ["-tir", "-oa.ir", "ring.coll"],
        ["-o=a.ir", "ring.coll", "--target=ir"],
        ["compile", "--target", "ir", "-o", "a.ir", "--", "ring.coll"],
        ["ring.coll", "-t", "mpi-c", "-o", "wrong", "-o", "a.ir", "-O0", "-O2", "-t", "ir", "--collective", "sums"][3:],
        ["@args"],
        ["compile", "@args"],
        ["@nested"],
    ],
)
def test_options_stand_anywhere(collc: Collc, ring: str, arguments: list[str]) -> None:
    Path("args").write_text("ring.coll # the input\n-t 'ir{level=program}'\n  -o a.ir\n")
    Path("nested").write_text("@args --verify off")
    if arguments[0] == "-o":
        arguments = ["ring.coll", *arguments]
    before = set(names())
    ran = collc(*arguments)
    assert (0, "", "") == (ran.status, ran.out, ran.err)
    assert {"a.ir"} == set(names()) - before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read `args`: there is no such file [C0002]"),
        ("-t 'ir", "response file `args`: no closing quotation [C0001]"),
        ("@args", "response files nest deeper than 10: `@args` [C0001]"),
    ],
)
def test_response_files_that_go_wrong(collc: Collc, content: str | None, message: str) -> None:
    if content is not None:
        Path("args").write_text(content)
    ran = collc("@args")
    assert message in ran.err
    assert ran.status in (1, 2)


def test_an_unknown_option_in_json(collc: Collc) -> None:
    """The form of diagnostics holds for mistakes in the command line, too."""
    ran = collc("x.coll", "--dump-it", "--diagnostics-format=json")
    assert ["C0001"] == [d["code"] for d in json.loads(ran.err)["diagnostics"]]


def test_tools_get_a_document_without_mistakes_too(collc: Collc, ring: str) -> None:
    assert {"diagnostics": []} == json.loads(collc("check", ring, "--diagnostics-format=json").err)
    assert [] == json.loads(collc("check", ring, "--diagnostics-format=sarif").err)["runs"][0]["results"]


def test_color_follows_the_environment(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in collc("x.coll").err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in collc("x.coll").err
    assert "\x1b[" not in collc("x.coll", "--color=never").err


# ---- compile


def test_standard_input_to_standard_output(collc: Collc, ring: str) -> None:
    collc(ring, "-t", "ir", "-o", "a.ir")
    ran = collc("-", "-t", "ir", "-o", "-", stdin=RING)
    assert (0, "") == (ran.status, ran.err)
    assert Path("a.ir").read_text() == ran.out


def test_output_of_standard_input_has_a_name(collc: Collc) -> None:
    assert collc("-", "-t", "mpi-c", stdin=RING).status == 0
    assert ["stdin.c", "stdin.h"] == names()


def test_mistakes_in_standard_input_are_placed(collc: Collc) -> None:
    assert collc("-", "-t", "ir", stdin="topology t = toruss(3);").err.startswith("<stdin>:1:14: error: ")


def test_json_of_compile(collc: Collc, ring: str) -> None:
    ran = collc(ring, "-t", "mpi-c", "-t", "msccl-xml", "--json", "-o", "out/")
    assert (0, "") == (ran.status, ran.err)
    found = json.loads(ran.out)
    for output in found["outputs"]:
        data = Path(output["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (output["bytes"], output["sha256"])
    assert ["out/sums.c", "out/sums.h", "out/sums.xml"] == [output["path"] for output in found["outputs"]]
    assert ["mpi-c", "mpi-c", "msccl-xml"] == [output["target"] for output in found["outputs"]]
    assert {"ranks", "threadblocks_max", "channels", "steps_max", "instructions"} <= set(found["program"])
    assert (4, 1) == (found["program"]["ranks"], found["program"]["channels"])
    assert found["cost"].keys() >= COST_KEYS
    assert "3/2" == found["cost"]["T_B"]


def test_a_folder_that_fails_to_fill_is_taken_away(collc: Collc) -> None:
    Path("bad.coll").write_text("collective a = alltoall on biring(3); schedule a using bfb;\n")
    assert collc("bad.coll", "-t", "ir", "-o", "out/").status == 3
    assert collc("bad.coll", "-t", "ir", "-o", "no/such/").status == 1
    assert ["bad.coll"] == names()


def test_failed_runs_leave_what_was_there(collc: Collc, ring: str) -> None:
    Path("ring.xml").write_text("old")
    Path("ring.coll").write_text(RING + "topology x = nonsense(1);\n")
    assert collc(ring, "-t", "msccl-xml", "-MD").status == 1
    assert ["ring.coll", "ring.xml"] == names()
    assert "old" == Path("ring.xml").read_text()


def test_printed_levels_compile_on(collc: Collc, ring: str) -> None:
    """Every level printed and read back leads to the same file as the whole way."""
    collc(ring, "-t", "msccl-xml", "-o", "whole.xml")
    collc(ring, "-t", "ir{level=schedule}", "-o", "sums.schedule")
    collc(ring, "-p", "bfb,discretize,lower", "-t", "ir", "-o", "sums.program")
    for start in ("sums.schedule", "sums.program"):
        assert collc(start, "-t", "msccl-xml", "-o", "again.xml").status == 0
        assert Path("whole.xml").read_text() == Path("again.xml").read_text()


def test_dumps_are_read_back(collc: Collc, ring: str) -> None:
    ran = collc(ring, "-t", "ir", "-o", "a.ir", "--dump-ir=all")
    texts = ["collc-ir 1\n" + text for text in ran.err.split("collc-ir 1\n")[1:]]
    levels = [type(parse_ir(text, "dump")).__name__ for text in texts]
    assert levels[:3] == ["Schedule"] * 3 and set(levels[3:]) == {"Program"}
    last = collc(ring, "-t", "ir", "-o", "a.ir", "--dump-ir").err
    assert parse_ir(last, "dump") == parse_ir(Path("a.ir").read_text(), "a.ir")


def test_the_printed_pipeline_gives_the_same_output(collc: Collc, ring: str) -> None:
    ran = collc(ring, "-t", "msccl-xml{runtime=rccl}", "-o", "a.xml", "--print-pipeline")
    pipeline = ran.err.removeprefix("sums as msccl-xml: ").strip()
    again = collc(ring, "-t", "msccl-xml{runtime=rccl}", "-o", "b.xml", "-p", pipeline, "--print-pipeline")
    assert ran.err == again.err
    assert Path("a.xml").read_text() == Path("b.xml").read_text()


def test_the_printed_pipeline_says_why(collc: Collc, ring: str) -> None:
    """With -v, of every pass that nobody wrote; tools get it as JSON."""
    err = collc(ring, "-t", "msccl-xml", "-o", "a.xml", "--print-pipeline", "-v").err
    assert "\n  discretize: runtimes move whole chunks, so exact intervals become chunks before lowering\n" in err
    ran = collc(ring, "-t", "msccl-xml", "-o", "a.xml", "--print-pipeline", "--json", "-p", "bfb,discretize,fuse")
    (made,) = json.loads(ran.out)["pipelines"]
    assert (made["collective"], made["target"]) == ("sums", "msccl-xml")
    reasons = {one["pass"].split("{")[0]: one["why"] for one in made["passes"]}
    assert [name for name, why in reasons.items() if why is None] == ["bfb", "discretize", "fuse"]
    assert list(reasons) == ["bfb", "discretize", "lower", "balance-threadblocks", "fuse"]
    assert "limits" in reasons["balance-threadblocks"]
    assert "pipelines" not in json.loads(collc(ring, "-t", "msccl-xml", "-o", "a.xml", "--json").out)


def test_details_say_what_was_executed(collc: Collc) -> None:
    """Of a template one rank, and the group that moves it to all others."""
    text = "topology pod = torus(4, 4); collective g = allgather on pod; schedule g using bfb { template: true };"
    Path("t.coll").write_text(text)
    ran = collc("t.coll", "-v", "-t", "mpi-c", "-o", "t.c")
    moved = "executed 1 of 16 ranks, all others by the group abelian(4, 4) of order 16, checked"
    for what in (f"program verified: {moved}", f"mpi-c verified: {moved}"):
        assert ran.err.count(f"collc: g: {what}") == 1, ran.err
    assert "verified" not in collc("t.coll", "-t", "mpi-c", "-o", "t.c").err


def test_times_are_a_table(collc: Collc, ring: str) -> None:
    lines = collc(ring, "-t", "msccl-xml", "-o", "a.xml", "--time-passes").err.splitlines()
    assert ["seconds", "share", "peak MB", "more MB", "rows", "collective", "step"] == re.split(" {2,}", lines[0])
    steps = {re.split(" {2,}", line)[-1] for line in lines[1:]}
    assert {"bfb", "lower", "verify renumber", "emit msccl-xml", "read back msccl-xml", "total"} <= steps


def test_write_if_changed(collc: Collc, ring: str) -> None:
    import os

    for expected, options in ((True, ["--write-if-changed"]), (False, [])):
        collc(ring, "-t", "ir", "-o", "a.ir")
        os.utime("a.ir", (1, 1))
        collc(ring, "-t", "ir", "-o", "a.ir", *options)
        assert expected == (Path("a.ir").stat().st_mtime == 1)


def test_dependencies_are_found_through_the_include_path(collc: Collc) -> None:
    Path("lib").mkdir()
    Path("lib/site.coll").write_text("let n = 3;\n")
    Path("pod.coll").write_text('include "site.coll";\ncollective g = allgather on biring(n);\n')
    assert collc("pod.coll", "-t", "ir", "-Ilib", "-MD", "-fdepfile-absolute").status == 0
    assert (
        f"pod.ir: \\\n  {Path('pod.coll').resolve()} \\\n  {Path('lib/site.coll').resolve()}\n"
        == Path("pod.d").read_text()
    )
    assert collc("pod.coll", "-t", "ir").status == 1


def test_an_include_is_not_overwritten(collc: Collc) -> None:
    Path("site.coll").write_text("let n = 3;\n")
    Path("pod.coll").write_text('include "site.coll";\ncollective g = allgather on biring(n);\n')
    ran = collc("pod.coll", "-t", "ir", "-o", "site.coll")
    assert (1, True) == (ran.status, "would replace the input `site.coll` [C0005]" in ran.err)
    assert collc("pod.coll", "-t", "ir", "-o", "a.ir", "-MD", "-MF", "pod.coll").status == 1


def test_wrong_kinds_of_input(collc: Collc, tmp_path: Path) -> None:
    Path("garbage.coll").write_bytes(bytes(range(256)))
    for arguments, code in {
        ("garbage.coll", "-t", "ir"): "C0003",
        (".", "-t", "ir"): "C0002",
        (str(COMMAND.resolve().parent / "missing"), "-t", "ir"): "C0002",
        ("verify", "garbage.coll"): "C0003",
        ("cost", "garbage.coll"): "C0003",
        ("format", "garbage.coll"): "C0003",
    }.items():
        ran = collc(*arguments)
        assert (1, 1) == (ran.status, ran.err.count("error:"))
        assert f"[{code}]" in ran.err


def test_a_path_with_a_line_break_in_the_rule(collc: Collc) -> None:
    Path("a\nb.coll").write_text(RING)
    ran = collc("a\nb.coll", "-t", "ir", "-o", "a.ir", "-MD")
    assert (1, True) == (ran.status, "[C0901]" in ran.err)
    assert ["a\nb.coll"] == names()


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
def test_an_empty_file_has_nothing_to_compile(collc: Collc, text: str) -> None:
    ran = collc("-", "-t", "ir", stdin=text)
    assert (1, True) == (ran.status, "there is no collective to compile [C0016]" in ran.err)


# ---- the same everywhere


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Whatever the order of hashes: every target, from another folder."""
    source = EXAMPLES / "hypercube_allgather.coll"
    jobs = []
    found = set()
    seeds = every(5, range(20))
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        command = [COMMAND, source, "-t", "msccl-xml", "-t", "mpi-c", "-t", "ir", "-D", "n=2", "-MD", "--json"]
        environment = {"PYTHONHASHSEED": str(seed), "PATH": "/usr/bin:/bin"}
        jobs.append((folder, subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE)))
        if len(jobs) == 2 or seed == seeds[-1]:
            for place, job in jobs:
                out, _ = job.communicate(timeout=60)
                assert job.returncode == 0
                found.add((out, *((p.name, p.read_bytes()) for p in sorted(place.iterdir()))))
            jobs.clear()
    assert 1 == len(found)
    assert ["blocks.c", "blocks.h", "blocks.ir", "blocks.xml", "hypercube_allgather.d"] == [
        name for name, _ in next(iter(found))[1:]
    ]
