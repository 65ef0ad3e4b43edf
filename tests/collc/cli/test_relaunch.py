"""The cache of launches: a hit does what a miss does, and every input counts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from launches import SPEC, Site, site
from places import ROOT

import collc as package
from collc.cli import relaunch
from collc.cli.arguments import parse
from collc.cli.verbs import VERBS
from collc.files import trust
from collc.ir.diagnostic import warning

__all__ = ["site"]

LEFT = SPEC + "collective swap = alltoall on net;\nschedule swap using swing;\n"


# ---- hits


@pytest.mark.parametrize(
    ("options", "program"),
    [
        ((), "mpiexec"), (("-v",), "mpiexec"), (("-D", "n=3", "--each", "n=5,6"), "mpiexec"), (("-w",), "mpiexec"),
        (("--diagnostics-format=json",), "mpiexec"), (("--stats",), "torchrun"), (("-D", "n=3"), "torchrun"),
        (("-t", "mpi-c", "-v"), "mpiexec"), (("--runtime=rccl",), "app"), (("-t", "msccl-xml{runtime=msccl}"), "app"),
    ],
)  # fmt: skip
def test_a_hit_does_what_a_miss_does(options: tuple[str, ...], program: str, site: Site) -> None:
    site.spec.write_text(LEFT)
    miss, given = site(*options, program=program), site.told
    hit = site(*options, program=program)
    assert (site.compiled, site.told) == (1, given) and given
    assert hit.status == miss.status == 0 and hit.out == miss.out
    assert ("C0089" in hit.err) == ("-w" not in options)
    if "-v" in options:
        first, _, rest = hit.err.partition("\n")
        assert first == f"collc: took what was compiled from the cache in {site.cache}/launches"
        assert "serves" in rest and re.sub(r"\S+/report", "", rest) == re.sub(r"\S+/report", "", miss.err)
    else:
        assert hit.err == miss.err


def test_a_dry_run_uses_the_cache_and_fills_none(site: Site) -> None:
    shown = site("-n")
    assert shown.status == 0 and not site.entries and not site.built
    assert site.compiles() and not site.compiles("-n") and site("-n").out == shown.out


def test_warnings_of_the_cache_are_errors_if_asked(site: Site) -> None:
    site.spec.write_text(LEFT)
    fatal = site("-Werror")
    assert fatal.status == 1 and not site.entries
    assert site.compiles()
    again = site("-Werror")
    assert (again.status, again.err) == (1, fatal.err) and "C0089" in again.err and site.compiled == 2


def test_mistakes_are_not_kept(site: Site) -> None:
    site.spec.write_text(LEFT)
    for _ in range(2):
        assert site("--strict").status == 3
    assert site.compiled == 2 and not site.entries


@pytest.mark.parametrize("option", ["--dump-ir", "--print-pipeline", "--time-passes", "--profile=p.json"])
def test_what_shows_a_compilation_compiles(option: str, site: Site) -> None:
    assert site.compiles() and site.compiles(option) and not site.compiles()


def test_standard_input_is_not_kept(site: Site) -> None:
    for _ in range(2):
        words = ("launch", "-", f"--cache={site.cache}", "--", str(site.programs / "mpiexec"))
        assert site.collc(*words, stdin=SPEC).status == 0
    assert site.compiled == 2 and not site.entries


def test_a_pipe_is_read_once_and_not_kept(site: Site) -> None:
    site.spec.unlink()
    for _ in range(2):
        read, write = os.pipe()
        os.write(write, SPEC.encode())
        os.close(write)
        assert site.compiles(file=f"/dev/fd/{read}")
        os.close(read)
    assert not site.entries


def test_faults_of_plugins_are_reported_each_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.ir.registry.reported", lambda: (warning("C0150", "a fault"),))
    assert site.compiles() and site.compiles() and not site.entries


# ---- what is imported

_HIT = "import sys\nfrom collc.cli import main\nstatus = main(sys.argv[1:])\nprint(status, *sys.modules)\n"
#: what a hit does without
_UNUSED = (
    "numpy", "lark", "networkx", "highspy", "lxml", "yaml", "collc.frontends", "collc.passes", "collc.driver.result",
    "collc.reading", "collc.selection", "collc.api", "collc.compiling", "collc.cli.launch",
)  # fmt: skip
_MOST_MODULES = 200


@pytest.mark.parametrize("text", [SPEC, LEFT], ids=["no warning", "a warning"])
def test_a_hit_imports_little(text: str, site: Site) -> None:
    site.spec.write_text(text)
    words = ["launch", str(site.spec), f"--cache={site.cache}", "--", str(site.programs / "mpiexec"), "argument"]
    assert site.collc(*words).status == 0 and len(site.entries) == 1
    command = [sys.executable, "-c", _HIT, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=site.folder)
    status, *loaded = done.stdout.split("\n")[-2].split()
    assert status == "0" and "collc.tools.prepared" in loaded
    assert [name for name in _UNUSED if name in loaded] == []
    assert len(loaded) < _MOST_MODULES


def test_a_miss_starts_no_thread(site: Site) -> None:
    code = _HIT.replace("*sys.modules", 'len(os.listdir("/proc/self/task"))').replace("import sys", "import os, sys")
    words = ["launch", str(site.spec), f"--cache={site.cache}", "--runtime=rccl", "--", str(site.programs / "app")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[-2:] == ["0", "1"]


@pytest.mark.parametrize("name", _UNUSED)
def test_what_is_not_imported_exists(name: str) -> None:
    __import__(name)


# ---- keys


def other_text(site: Site) -> None:
    site.spec.write_text(SPEC + "# more\n")


def other_mpi(site: Site) -> None:
    site.install("5.00")


def other_package(site: Site) -> None:
    (site.folder / "packages" / "numpy-99.dist-info").mkdir()


def other_time_of_a_package(site: Site) -> None:
    os.utime(site.folder / "packages" / "numpy-1.dist-info", (1, 1))


@pytest.mark.parametrize("change", [other_text, other_mpi, other_package, other_time_of_a_package])
def test_every_file_counts(change: Callable[[Site], None], site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (site.folder / "packages" / "numpy-1.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site.folder / "packages")])
    assert site.compiles() and not site.compiles()
    change(site)
    assert site.compiles() and not site.compiles()


@pytest.mark.parametrize(
    "options",
    [
        ("-D", "n=6"), ("--each", "n=4,6"), ("-O0",), ("-t", "mpi-c"), ("--strict",), ("--collective", "sums"),
        ("--verify=full",), ("--disable-pass", "fuse"), ("-p", "bfb"), ("--node-limit", "100"), ("-I", "/tmp"),
        ("--replace", "nccl"),
    ],
)  # fmt: skip
def test_every_option_counts(options: tuple[str, ...], site: Site) -> None:
    assert site.compiles() and site.compiles(*options) and not site.compiles(*options) and not site.compiles()


@pytest.mark.parametrize("option", ["--stats", "-v", "-q", "--timeout=60", "--color=never"])
def test_what_only_runs_does_not_count(option: str, site: Site) -> None:
    assert site.compiles() and not site.compiles(option)


@pytest.mark.parametrize(
    ("name", "counts"), [("CFLAGS", True), ("COLLC_NEW", True), ("COLLC_STATS", False), ("ANY", False)]
)
def test_variables_count_if_collc_reads_them(
    name: str, counts: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.compiles()
    monkeypatch.setenv(name, "1")
    assert site.compiles() == counts


def test_the_version_and_the_source_of_collc_count(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (site.folder / "ir").mkdir()
    (site.folder / "ir" / "module.py").write_text("1\n")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(site.folder)])
    assert site.compiles() and not site.compiles()
    monkeypatch.setattr(package, "__version__", "0.0.0")
    assert site.compiles() and not site.compiles()
    (site.folder / "ir" / "module.py").write_text("22\n")
    assert site.compiles() and not site.compiles()


def test_relative_names_count_with_their_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (site.folder / name).mkdir()
        (site.folder / name / "net.coll").write_text(SPEC)
    monkeypatch.chdir(site.folder / "a")
    assert site.compiles(file="net.coll") and site.compiles()
    monkeypatch.chdir(site.folder / "b")
    assert site.compiles(file="net.coll")
    assert not site.compiles(), "an absolute path is the same everywhere"


INCLUDING = 'include "site.coll";\ncollective sums = allreduce on net;\nschedule sums using bfb;\n'
SITE = "topology net = biring(4);\n"


def test_included_files_count(site: Site) -> None:
    near, far = site.folder / "near", site.folder / "far"
    for folder in (near, far):
        folder.mkdir()
    (far / "site.coll").write_text(SITE)
    site.spec.write_text(INCLUDING)
    paths = ("-I", near, "-I", far)
    assert site.compiles(*paths) and not site.compiles(*paths)
    (far / "site.coll").write_text(SITE.replace("4", "6"))
    assert site.compiles(*paths) and not site.compiles(*paths)
    (near / "site.coll").write_text(SITE)  # found earlier
    assert site.compiles(*paths) and not site.compiles(*paths)
    (near / "site.coll").unlink()
    assert site.compiles(*paths)
    (far / "site.coll").unlink()
    assert site(*paths).status == 1


def test_imported_files_count(site: Site) -> None:
    net = site.folder / "net.dot"
    net.write_text("graph { a -- b; b -- c; c -- a }")
    site.spec.write_text('topology net = import "net.dot";\ncollective sums = allreduce on net;\n')
    assert site.compiles() and not site.compiles()
    net.write_text("graph { a -- b; b -- c; c -- d; d -- a }")
    assert site.compiles() and not site.compiles()


def test_a_file_that_changes_while_it_is_compiled_is_not_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    seal = trust.seal

    def changing(path: str) -> None:
        seal(path)
        site.spec.write_text(SPEC + "# edited\n")

    monkeypatch.setattr("collc.tools.launching.seal", changing)
    assert site.compiles() and not site.entries


def test_options_that_do_not_count_are_options() -> None:
    options = {opt.dest for _, group in VERBS["launch"].groups for opt in group} | {"files", "command"}
    assert {*relaunch._OTHERS, *relaunch._SHOWS} <= options


def test_the_page_lists_the_options_that_do_not_count() -> None:
    options = {name: opt.dest for _, group in VERBS["launch"].groups for opt in group for name in opt.names}
    _, _, rest = (ROOT / "docs" / "launch.md").read_text().partition("* the options, except")
    listed = {options[name] for name in re.findall(r"`(-[\w-]+)`", rest.partition("\n* ")[0])}
    assert listed == {*relaunch._OTHERS} - {"files", "command", "help", "version", "cache"}
    shown = {
        options[name] for name in re.findall(r"`(-[\w-]+)`", rest.partition("\n`--dump-ir")[2].partition(" show")[0])
    }
    assert shown | {"dump_ir"} == {*relaunch._SHOWS}


def test_caches_are_named_by_any_path(site: Site) -> None:
    (site.folder / "real").mkdir(mode=0o700)
    (site.folder / "link").symlink_to(site.folder / "real")
    (site.folder / "deep").mkdir()
    for name in ("link", "deep/../cache/", "./cache"):
        site.compiles(f"--cache={name}")
        assert not site.compiles(f"--cache={name}"), name
        assert site.collc("cache", "check", f"--cache={name}").status == 0


def test_options_of_later_versions_count(site: Site) -> None:
    options = parse(VERBS["launch"], [str(site.spec), "--", str(site.programs / "mpiexec")])
    key = relaunch.key_of_launch(options, os.environ)
    assert key is not None and key == relaunch.key_of_launch(SimpleNamespace(**vars(options)), os.environ)
    assert key != relaunch.key_of_launch(SimpleNamespace(**vars(options), later=True), os.environ)


def test_plugins_count_with_their_code(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    code = site.folder / "code"
    code.mkdir()
    (code / "a.py").write_text("1")
    monkeypatch.setattr("collc.cli.launch.plugins", lambda: [str(code)])
    assert site.compiles() and not site.compiles()
    (code / "a.py").write_text("22")
    assert site.compiles() and not site.compiles()


def test_an_mpi_that_is_found_earlier_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(site.programs, site.folder / "earlier" / "bin")
    monkeypatch.setattr(sys, "prefix", str(site.folder / "none"))
    monkeypatch.setattr(sys, "executable", str(site.folder / "none" / "python"))
    monkeypatch.setenv("PATH", f"{site.folder}/early:{site.programs}:{os.environ['PATH']}")
    assert site.compiles(program="app") and not site.compiles(program="app")
    (site.folder / "earlier" / "bin").rename(site.folder / "early")
    assert site.compiles(program="app") and not site.compiles(program="app")


def test_a_program_that_is_not_there_is_an_error_each_time(site: Site) -> None:
    for _ in range(2):
        ran = site.collc("launch", str(site.spec), f"--cache={site.cache}", "--", "/none/mpiexec")
        assert ran.status == 1 and "C0080" in ran.err
