"""collc under a build system: GNU make rebuilds what changed and nothing else, and never sees half a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from commands import COMMAND, spawn
from places import ROOT
from sampling import every

MAKE = shutil.which("make")
needs_make = pytest.mark.skipif(MAKE is None, reason="no make here")

MAIN = """\
include "site.coll";
topology pod = biring(4) with { bandwidth: rail };
collective grads = allreduce on pod;
"""
RULE = f"""\
%.xml: %.coll
\t{COMMAND} $< -t msccl-xml -MD -MF $*.d -MP -o $@
-include $(wildcard *.d)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pod.coll").write_text(MAIN)
    (tmp_path / "site.coll").write_text("let rail = 25 GB/s;\n")
    (tmp_path / "Makefile").write_text(RULE)
    for path in tmp_path.iterdir():
        os.utime(path, (1_000_000, 1_000_000))
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert MAKE
    return subprocess.run([MAKE, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.slow
@needs_make
def test_make_rebuilds_what_changed_and_nothing_else(project: Path) -> None:
    first = make(project, "pod.xml")
    assert first.returncode == 0, first.stderr
    assert names(project) == ["Makefile", "pod.coll", "pod.d", "pod.xml", "site.coll"]
    assert make(project, "-q", "pod.xml").returncode == 0

    (project / "site.coll").touch()
    assert make(project, "-q", "pod.xml").returncode == 1
    built = (project / "pod.xml").stat().st_mtime_ns
    assert make(project, "pod.xml").returncode == 0
    assert (project / "pod.xml").stat().st_mtime_ns > built
    assert make(project, "-q", "pod.xml").returncode == 0


@pytest.mark.slow
@needs_make
def test_an_include_can_go_away(project: Path) -> None:
    """-MP: the rule of the last build names a file that is no more, and make does not stop at that."""
    assert make(project, "pod.xml").returncode == 0
    (project / "site.coll").unlink()
    (project / "pod.coll").write_text(MAIN.replace('include "site.coll";\n', "let rail = 25 GB/s;\n"))
    again = make(project, "pod.xml")
    assert again.returncode == 0, again.stderr
    assert "site.coll" not in (project / "pod.d").read_text()


@pytest.mark.slow
@needs_make
def test_a_failed_build_leaves_the_old_output_and_stays_out_of_date(project: Path) -> None:
    assert make(project, "pod.xml").returncode == 0
    before = (project / "pod.xml").read_bytes(), (project / "pod.d").read_bytes()
    (project / "site.coll").write_text("let rial = 25 GB/s;\n")
    assert make(project, "pod.xml").returncode == 2
    assert before == ((project / "pod.xml").read_bytes(), (project / "pod.d").read_bytes())
    assert make(project, "-q", "pod.xml").returncode == 1


@pytest.mark.slow
@needs_make
@pytest.mark.parametrize("name", ["a b.coll", "a#b.coll", "a$b.coll", "ü.coll"])
def test_odd_names_in_the_rule_are_read_back(project: Path, name: str) -> None:
    (project / "site.coll").rename(project / name)
    (project / "pod.coll").write_text(MAIN.replace("site.coll", name))
    assert make(project, "pod.xml").returncode == 0
    assert make(project, "-q", "pod.xml").returncode == 0
    later = (project / "pod.xml").stat().st_mtime + 2
    os.utime(project / name, (later, later))
    assert make(project, "-q", "pod.xml").returncode == 1


# ---- the project's own check


def test_the_check_runs_the_readme_s_command() -> None:
    """The one command that passes the tests is the one that is checked."""
    readme = (ROOT / "README.md").read_text()
    commands = [line for line in readme.splitlines() if line.startswith("python3 -m venv") and "pytest" in line]
    assert len(commands) == 1
    script = ROOT / ".ci" / "run"
    assert commands[0] in script.read_text().splitlines()
    assert os.access(script, os.X_OK)


# ---- the ends of a process


SLOW = "topology big = hypercube(8);\ncollective grads = allreduce on big;\n"


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    (folder / "slow.coll").write_text(SLOW)
    return subprocess.Popen(
        [str(COMMAND), "slow.coll", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_killed_compiler_leaves_no_half_output(tmp_path: Path) -> None:
    """At whatever moment: the output is the old one or the new one."""
    reference = started(tmp_path, "-t", "ir{level=schedule}", "-o", "whole.ir", "--verify=off")
    begun = time.monotonic()
    assert reference.wait(120) == 0
    took = time.monotonic() - begun
    reference.communicate()
    whole = (tmp_path / "whole.ir").read_bytes()
    out = tmp_path / "out.ir"
    out.write_bytes(b"old")
    for share in every(2, (0.5, 0.8, 0.9, 0.95, 1.0)):
        process = started(tmp_path, "-t", "ir{level=schedule}", "-o", "out.ir", "--verify=off")
        time.sleep(took * share)
        process.kill()
        process.communicate()
        assert out.read_bytes() in (b"old", whole)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error_to_report(tmp_path: Path) -> None:
    (tmp_path / "pod.coll").write_text(SLOW.replace("8", "4"))
    process = subprocess.Popen(
        [str(COMMAND), "pod.coll", "-t", "ir", "-o", "-"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(COMMAND), "passes"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (
        done.returncode, done.stderr,
    ) == (1, "collc: error: cannot write standard output: no space left on device [C0004]\n")  # fmt: skip


@pytest.mark.slow
def test_closed_standard_streams_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "pod.coll").write_text(SLOW.replace("8", "2"))
    command = f"'{COMMAND}' pod.coll -t ir -o out.ir <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "out.ir").exists()
    command = f"'{COMMAND}' - -t ir -o out.ir <&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (
        done.returncode, done.stderr,
    ) == (1, "collc: error: cannot read `<stdin>`: standard input is closed [C0002]\n")  # fmt: skip


def test_the_installed_command_runs_anywhere(tmp_path: Path) -> None:
    done = spawn("--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("collc ")
