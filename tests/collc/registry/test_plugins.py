"""What another installed package brings to collc, what goes wrong with it, and that it costs nothing unless asked."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Ran, spawn
from plugged import EXAMPLE, can_build, example_files, example_points, installed, wheel

import collc as compiler
from collc.backends import TARGETS
from collc.frontends.importing import IMPORTS
from collc.ir import registry
from collc.ir.diagnostic import CollcError
from collc.ir.registry import Entry, Plugin, Registry
from collc.passes import PASSES, SCHEDULERS
from collc.reading import FORMATS

Run = Callable[..., Ran]

THETA = "topology t = theta(2);\ncollective c = allgather on t;\n"
COMPLETE = "topology k = complete(4);\ncollective g = allgather on k { size: 1 MiB };\n"
#: a shard is sent twice
TWICE = (
    "topology r = uniring(2);\ncollective c = allgather on r;\nschedule c using steps {\n"
    "  at 0: send shard 0 from 0 to 1; at 1: send shard 1 from 1 to 0; at 1: send shard 0 from 0 to 1;\n}\n"
)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example is installed in: by its own build where wheels can be built, else as a wheel."""
    folder = tmp_path_factory.mktemp("example")
    if not can_build():
        return installed(folder / "site", wheel(folder, "collc-example", example_files(), example_points()))
    source = shutil.copytree(EXAMPLE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--target", str(folder / "site"), str(source)]
    subprocess.run(command, check=True, timeout=120)
    return folder / "site"


@pytest.fixture
def plugged(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example is there in this process."""
    yield from _present(example, monkeypatch)


def _present(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(site))
    registry.forget()
    yield
    registry.forget()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(site)):
            del sys.modules[name]


# ---- what the example brings


@pytest.mark.slow
def test_the_installed_command_uses_all_of_it(example: Path, tmp_path: Path) -> None:
    (tmp_path / "a.coll").write_text(COMPLETE + "schedule g using at-once;\nemit g as transfers-csv;\n")
    (tmp_path / "b.coll").write_text(THETA)

    def run(*arguments: str) -> str:
        done = spawn(*arguments, cwd=tmp_path, PYTHONPATH=str(example))
        assert (0, "") == (done.returncode, done.stderr)
        return done.stdout

    run("a.coll", "-o", "a.csv")
    assert "0,0,0,0,1,1,0,1,allgather,4," == (tmp_path / "a.csv").read_text().splitlines()[1]
    assert "a.csv: verified: allgather on 4 ranks" in run("verify", "a.csv")
    run("convert", "a.csv", "-t", "msccl-xml", "-o", "a.xml")
    assert "a.xml: verified: allgather on 4 ranks (msccl-xml)" in run("verify", "a.xml")
    assert 8 == json.loads(run("cost", "b.coll", "--json"))["ranks"]
    assert "theta(n)" in run("topologies")


@pytest.mark.usefixtures("plugged")
class TestExample:
    """All of it, in this process."""

    def test_the_api_uses_it(self, tmp_path: Path) -> None:
        made = compiler.compile_source(COMPLETE, passes="at-once", target="transfers-csv")
        (tmp_path / "g.csv").write_text(made.artifacts["g"].text)
        assert compiler.verify(tmp_path / "g.csv").ok
        assert 1 == compiler.compile(tmp_path / "g.csv").cost.T_L
        assert ("transfers-csv",) == tuple({a.target for a in made.files.values()})
        assert () == made.diagnostics
        assert 11 == compiler.topology("theta(3)").num_ranks

    def test_its_pass_runs_where_it_is_asked_for(self) -> None:
        assert 3 == compiler.compile_source(TWICE).cost.transfers
        made = compiler.compile_source(TWICE, passes="drop-repeats,discretize,lower", target="mpi-c")
        assert 2 == made.cost.transfers
        assert "drop-repeats: 1 transfers brought nothing new" in made.collectives["c"].remarks

    def test_its_target_is_read_back(self) -> None:
        """A target that writes a wrong file is caught as collc's own are."""
        from collc.backends.base import Artifact
        from collc.registry.classes import target_class

        made = compiler.compile_source(COMPLETE, passes="at-once", target="transfers-csv")
        target, artifact = target_class("transfers-csv")(), made.artifacts["g"]
        assert target.check(made.schedule, [artifact]).ok
        lines = artifact.text.splitlines()
        for wrong in ("\n".join(lines[:-1]), artifact.text.replace("0,0,3", "0,0,2"), "", "step,action,\n1"):
            assert not target.check(made.schedule, [Artifact(artifact.filename, wrong, artifact.target)]).ok, wrong

    def test_its_scheduler_is_a_candidate_where_it_is_named(self) -> None:
        named = COMPLETE + 'schedule g using auto { candidates: "at-once" };\n'
        choice = compiler.compile_source(named).collectives["g"].choice
        assert choice is not None and ["at-once"] == [one.algorithm.name for one in choice.candidates]
        choice = compiler.compile_source(COMPLETE).collectives["g"].choice
        assert choice is not None and "at-once" not in {one.algorithm.name for one in choice.candidates}

    @pytest.mark.parametrize(
        ("verb", "name"),
        [
            ("passes", "drop-repeats"), ("passes", "at-once"), ("schedulers", "at-once"),
            ("targets", "transfers-csv"), ("topologies", "theta"), ("formats", "transfers-csv"),
            ("formats", "links-csv"),
        ],
    )  # fmt: skip
    def test_listings_and_nearest_names_have_it(self, collc: Run, verb: str, name: str) -> None:
        assert name in collc(verb).out and name in collc(verb, "--json").out
        assert 0 == collc(verb, name).status
        assert f"did you mean `{name}`?" in collc(verb, f"{name}x").err

    def test_mistyped_names_in_a_file_get_its_nearest(self, collc: Run) -> None:
        Path("a.coll").write_text("topology t = thta(2);\n")
        assert "did you mean `theta`?" in collc("check", "a.coll").err
        Path("b.coll").write_text(COMPLETE + "schedule g using at-onze;\nemit g as transfers-csw;\n")
        ran = collc("check", "b.coll").err
        assert "did you mean `at-once`?" in ran and "did you mean `transfers-csv`?" in ran

    def test_its_importer_reads_a_table_of_links(self, collc: Run) -> None:
        Path("links.csv").write_text("from,to,GB/s\nn1,n2,25\nn2,n3,25\nn3,n1,50\n")
        ran = collc("import", "links.csv", "-o", "links.coll")
        assert (0, "wrote links.coll: 3 ranks, 6 links\n") == (ran.status, ran.out)
        assert "link n3 <-> n1 : 50 GB/s;" in Path("links.coll").read_text()
        ran = collc("cost", "links.csv")
        assert "`links.csv` is a table of links [C0018]" in ran.err
        assert "hint: `collc import links.csv -o links.coll` reads it" in ran.err
        Path("wrong.csv").write_text("from,to,GB/s\nn1,n2\nn2,n1,x\n")
        ran = collc("import", "wrong.csv")
        assert ran.status == 1 and "wrong.csv:2:1: error: found no link" in ran.err and "wrong.csv:3:1:" in ran.err
        ran = collc("import", "links.csv", "--format", "links-cvs")
        assert "did you mean `links-csv`?" in ran.err

    def test_messages_list_its_format(self, collc: Run) -> None:
        Path("a.coll").write_text(COMPLETE)
        ours = ", ".join(one.title for one in FORMATS.own.values() if "convert" in one.verbs)
        assert f"`a.coll` is neither {ours} nor transfers CSV" in collc("convert", "a.coll", "-t", "ir").err


# ---- what goes wrong


def _plugin(line: str) -> str:
    return f"from collc.plugins import Construction, Entry, Format, Importer, Plugin\n{line}\n"


BROKEN = {
    "no module": ({}, "nowhere:PLUGIN", "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
    "no attribute": ({"bad.py": ""}, "bad:PLUGIN", "cannot be imported: AttributeError"),
    "raises": ({"bad.py": "1 / 0\n"}, "bad:PLUGIN", "cannot be imported: ZeroDivisionError: division by zero"),
    "syntax": ({"bad.py": "def\n"}, "bad:PLUGIN", "cannot be imported: SyntaxError"),
    "exits": ({"bad.py": "raise SystemExit(0)\n"}, "bad:PLUGIN", "cannot be imported: SystemExit: 0"),
    "no plugin": ({"bad.py": "PLUGIN = 3\n"}, "bad:PLUGIN", "is not a Plugin of tables: `bad:PLUGIN` is 3"),
    "no table": (
        {"bad.py": _plugin("PLUGIN = Plugin(passes=[1])")}, "bad:PLUGIN", "is not a Plugin of tables: `bad:PLUGIN` is",
    ),
    "no entry": (
        {"bad.py": _plugin("PLUGIN = Plugin(targets={'mine': 'my.module'})")}, "bad:PLUGIN",
        "describes the target `mine` by 'my.module', which is no tuple",
    ),
}  # fmt: skip


@pytest.fixture
def broken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    files, value, told = BROKEN[request.param]
    site = _unpacked(tmp_path / "site", "mine-broken", files, value)
    for _ in _present(site, monkeypatch):
        yield told


def _unpacked(site: Path, name: str, files: dict[str, str], value: str) -> Path:
    """Lay a package out as pip does."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[collc.plugins]\n{name} = {value}\n")
    for path, text in files.items():
        (site / path).write_text(text)
    return site


@pytest.mark.parametrize("broken", BROKEN, indirect=True)
def test_a_plugin_that_cannot_be_loaded_is_told_once_by_its_package(collc: Run, broken: str) -> None:
    Path("a.coll").write_text(COMPLETE)
    ran = collc("a.coll", "-t", "mine")
    assert 2 == ran.status and "unknown target `mine` [C0007]" in ran.err
    assert 1 == ran.err.count("[C0891]") and f"the plugin of the package `mine-broken` {broken}" in ran.err
    assert "Traceback" not in ran.err and "internal" not in ran.err
    listed = collc("targets")
    assert (0, 1) == (listed.status, listed.err.count("[C0891]")) and "mpi-c" in listed.out
    assert (0, "") == (collc("a.coll", "-t", "mpi-c").status, collc("a.coll", "-t", "mpi-c").err)
    with pytest.raises(CollcError) as caught:
        compiler.compile("a.coll", target="mine")
    assert ["C0007", "C0891"] == [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize("broken", ["raises"], indirect=True)
@pytest.mark.usefixtures("plugged")
def test_what_other_plugins_bring_works_beside_it(collc: Run, broken: str) -> None:
    Path("a.coll").write_text(COMPLETE)
    for options, told in (((), 1), (("-Werror",), 1), (("-w",), 0)):
        ran = collc("a.coll", "-t", "transfers-csv", "-o", "a.csv", *options)
        assert (0, told) == (ran.status, ran.err.count(f"warning: the plugin of the package `mine-broken` {broken}"))
    assert ["C0891"] == [d.code for d in compiler.compile("a.coll", target="transfers-csv").diagnostics]
    assert () == compiler.compile("a.coll", target="mpi-c").diagnostics


TAKEN = {
    "targets": ("mpi-c", "Entry('taken', 'X', 'x')", "target"),
    "passes": ("lower", "Entry('taken', 'X', 'x')", "pass"),
    "families": ("torus", "Construction('taken', (), 'x')", "graph family"),
    "formats": ("ir", "Format('taken', 'X', 'x', 'x', 'x')", "format"),
    "imports": ("dot", "Importer('taken', 'x', 'x')", "format to import"),
}


@pytest.mark.parametrize("field", [*TAKEN, "operators", "functions"])
def test_a_name_that_exists_keeps_its_meaning(
    collc: Run, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**TAKEN, "operators": ("line", *TAKEN["families"][1:]), "functions": ("log2", *TAKEN["families"][1:])}
    name, entry, kind = known[field]
    table = field if field in TAKEN else "families"
    text = _plugin(f"PLUGIN = Plugin({table}={{'{name}': {entry}}})")
    site = _unpacked(tmp_path / "site", "grabber", {"taken.py": text}, "taken:PLUGIN")
    for _ in _present(site, monkeypatch):
        Path("a.coll").write_text(f"topology t = line(torus(log2(8)));\n{COMPLETE}")
        ran = collc("a.coll", "-p", "bfb,discretize,lower", "-t", "mpi-c")
        assert (0, "") == (ran.status, ran.err)
        Path("b.coll").write_text("topology t = torsu(3);\n")
        verb = "formats" if table == "imports" else table
        ran = collc("check", "b.coll") if table == "families" else collc(verb)
        assert f"package `grabber` adds a {kind} `{name}`, which collc has already [C0892]" in ran.err
        assert 1 == ran.err.count("[C0892]") and "Traceback" not in ran.err


def test_of_two_plugins_the_first_by_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    for name in ("zebra", "ant"):
        text = _plugin(f"PLUGIN = Plugin(targets={{'mine': Entry('{name}', 'X', 'from {name}')}})")
        _unpacked(site, name, {f"{name}.py": text}, f"{name}:PLUGIN")
    for _ in _present(site, monkeypatch):
        with registry.consulting() as told:
            assert ("from ant", "ant") == (TARGETS["mine"][2], TARGETS.package("mine"))
        assert ["the plugin of the package `zebra` adds a target `mine`, which ant has already"] == [
            problem.message for problem in told
        ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "cannot be loaded: AttributeError"),
        ("raise OSError('no disk')", "cannot be loaded: OSError: no disk"),
        ("X = int", "is no Target of that name"),
        ("from collc.backends.ir_text import IrText as X", "is no Target of that name"),
    ],
)
def test_an_entry_that_is_not_what_it_says(
    collc: Run, text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"liar.py": _plugin("PLUGIN = Plugin(targets={'mine': Entry('lie', 'X', 'x')})"), "lie.py": f"{text}\n"}
    for _ in _present(_unpacked(tmp_path / "site", "liar", files, "liar:PLUGIN"), monkeypatch):
        Path("a.coll").write_text(COMPLETE)
        ran = collc("a.coll", "-t", "mine")
        assert 1 == ran.status and 1 == ran.err.count("error:") and "[C0891]" in ran.err
        assert "the target `mine` of the package `liar` " in ran.err and told in ran.err


def test_a_reader_that_takes_everything_gets_none_of_collc_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "PLUGIN = Plugin(formats={'greedy': Format('greedy', 'Greedy', 'x', 'x', 'x')})\n"
    lines += "from collc.reading.base import Reader\nclass Greedy(Reader):\n    name = 'greedy'\n"
    for sniffing, other in (("True", "greedy"), ("1 / 0", "coll")):
        text = _plugin(f"{lines}    def sniff(self, text): return {sniffing}")
        site = _unpacked(tmp_path / other, "greedy", {"greedy.py": text}, "greedy:PLUGIN")
        for _ in _present(site, monkeypatch):
            from collc.reading import sniff

            found = [sniff(text) for text in ("collc-ir 1", "<algo/>", "<oneccl/>", COMPLETE, "# x\nparam n = 1;", "")]
            assert ["ir", "msccl-xml", "oneccl-xml", "coll", "coll", "coll"] == found
            with registry.consulting() as told:
                assert other == sniff("3 ranks")
            assert (["C0891"] if other == "coll" else []) == [problem.code for problem in told]


FAULTY = """
from typing import ClassVar
import attrs
from collc.backends.ir_text import IrText
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.passes.base import Pass

class Faulty(Pass):
    summary: ClassVar[str] = "faulty"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

@attrs.frozen
class Raises(Faulty):
    name: ClassVar[str] = "raises"
    def run(self, ir): return 1 // 0

@attrs.frozen
class Spoils(Faulty):
    name: ClassVar[str] = "spoils"
    def run(self, ir): return attrs.evolve(ir, lo=ir.lo[:0], hi=ir.hi[:0])

@attrs.frozen
class Scheduler(Raises):
    name: ClassVar[str] = "no-scheduler"
    takes: ClassVar[type] = Problem

@attrs.frozen
class Target(IrText):
    name: ClassVar[str] = "no-target"
    def emit(self, ir): return 1 // 0
"""
BRINGS = """PLUGIN = Plugin(
    passes={"raises": Entry("faulty", "Raises", "x"), "spoils": Entry("faulty", "Spoils", "x")},
    schedulers={"no-scheduler": Scheduler("faulty", "Scheduler", "x", ("allgather",), ANY, (), Candidate(9))},
    targets={"no-target": Entry("faulty", "Target", "x")},
)"""


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plugin is there whose passes and target fail."""
    text = f"from collc.plugins import ANY, Candidate, Scheduler\n{_plugin(BRINGS)}"
    files = {"faulty_plugin.py": text, "faulty.py": FAULTY}
    yield from _present(_unpacked(tmp_path / "site", "faulty", files, "faulty_plugin:PLUGIN"), monkeypatch)


FAULTS = {
    "pass": (("-p", "bfb,raises,discretize,lower", "-t", "mpi-c"), "pass `raises` failed on `g`: ZeroDivisionError"),
    "pass that spoils": (("-p", "bfb,spoils,discretize,lower", "-t", "mpi-c"), "pass `spoils` failed on `g`: "),
    "scheduler": (("-p", "no-scheduler", "-t", "mpi-c"), "pass `no-scheduler` failed on `g`: ZeroDivisionError"),
    "target": (("-t", "no-target"), "target `no-target` failed: ZeroDivisionError"),
}


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_names_the_package_that_brings_the_culprit(collc: Run, fault: str) -> None:
    options, told = FAULTS[fault]
    Path("a.coll").write_text(COMPLETE)
    ran = collc("a.coll", *options, "-o", os.devnull)
    assert 70 == ran.status and told in ran.err, ran.err
    assert "this is a mistake in the package `faulty`, not in collc or the input" in ran.err
    assert "report it to the authors of `faulty`" in ran.err and "mistake in collc" not in ran.err


@pytest.mark.usefixtures("faulty")
def test_a_candidate_that_fails_names_its_package() -> None:
    named = COMPLETE + 'schedule g using auto { candidates: "no-scheduler" };\n'
    with pytest.raises(compiler.InternalError) as caught:
        compiler.compile_source(named)
    assert "faulty" == caught.value.package == pickle.loads(pickle.dumps(caught.value)).package


@pytest.mark.usefixtures("faulty")
def test_a_failure_of_collc_beside_a_plugin_is_collc_s(collc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.passes.lowering.lower import Lower

    monkeypatch.setattr(Lower, "run", lambda self, ir: 1 // 0)
    Path("a.coll").write_text(COMPLETE)
    ran = collc("a.coll", "-p", "bfb,discretize,lower", "-t", "mpi-c")
    assert 70 == ran.status and "this is a mistake in collc, not in the input" in ran.err
    assert "report it with that file" in ran.err and "faulty" not in ran.err


# ---- what it costs


def test_what_uses_no_plugin_imports_none(example: Path, tmp_path: Path) -> None:
    """Neither the plugin nor what looks for plugins, whatever is done with names of collc's own."""
    (tmp_path / "a.coll").write_text(COMPLETE + "schedule g using bfb;\nemit g as mpi-c;\n")
    runs: list[list[str]] = [
        ["check", "a.coll"], ["a.coll", "-o", "a.c"], ["a.coll", "-t", "msccl-xml", "-o", "a.xml"],
        ["verify", "a.xml"], ["convert", "a.xml", "-t", "ir", "-o", "a.ir"], ["verify", "a.ir"], ["cost", "a.coll"],
        ["a.coll", "-p", "bfb,discretize,lower", "-t", "ir", "-o", "b.ir"], ["simulate", "a.xml"], ["--version"],
    ]  # fmt: skip
    program = (
        "import sys\nfrom collc.cli import main\n"
        f"for arguments in {runs!r}: assert main(arguments) == 0, arguments\n"
        "print('\\n' + ' '.join(m for m in sys.modules if m.startswith(('collc_example', 'importlib.metadata'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "PYTHONPATH": str(example)},
    )  # fmt: skip
    assert "" == done.stdout.splitlines()[-1]


@pytest.mark.usefixtures("plugged")
def test_the_description_imports_nothing_else_of_its_package() -> None:
    assert "theta" in compiler.topology("torus(3)").name or "transfers-csv" in set(FORMATS)
    names = {name for name in sys.modules if name.startswith("collc_example")}
    assert {"collc_example"} == names


# ---- the tables themselves


def test_a_table_refuses_a_name_twice() -> None:
    table: Registry[Entry] = Registry("thing", ("passes",), {"a": Entry("a", "A", "one")})
    with pytest.raises(ValueError, match="there is a thing `a` already"):
        table["a"] = Entry("b", "B", "two")
    with pytest.raises(ValueError, match="`a` already"):
        Registry("thing", ("passes",), {"a": Entry("a", "A", "one")}, {"a": Entry("b", "B", "two")})
    for real in (PASSES, TARGETS, SCHEDULERS, FORMATS):
        with pytest.raises(ValueError, match="already"):
            real[next(iter(real.own))] = None  # type: ignore[call-overload]


def test_every_field_of_a_plugin_is_read_by_a_table() -> None:
    from collc.frontends.coll.families import FAMILIES

    read = {field for table in (PASSES, TARGETS, SCHEDULERS, FORMATS, FAMILIES, IMPORTS) for field in table._fields}
    assert set(Plugin.FIELDS) == read
