"""Whatever has a name is listed, documented and tried; the tables say what is so."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from commands import Ran
from places import ROOT

from collc.backends import TARGETS
from collc.backends.msccl_xml.profiles import PROFILES
from collc.frontends import coll
from collc.frontends.coll import families, library
from collc.frontends.coll.families import FAMILIES, OPERATORS
from collc.frontends.importing import IMPORTS
from collc.ir.collective import KINDS, ROOTED, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.registry import Entry
from collc.ir.spec import Problem
from collc.passes import PASSES, RENAMED, SCHEDULERS
from collc.passes.schedulers import ANY, BOXES, RANKS, RINGS, candidates, usual
from collc.reading import FORMATS, Format, reader, sniff
from collc.reading.base import ReadOptions
from collc.reading.loading import Loading
from collc.registry.classes import pass_class, scheduler_pass
from collc.selection import Auto, Selector
from collc.tools.reference import reference_text

Run = Callable[..., Ran]

REFERENCE = ROOT / "docs" / "reference.md"
IMPORTING = ROOT / "docs" / "importing.md"


#: the verb that lists them -> names that are collc's own
NAMED: dict[str, Mapping[str, Any]] = {
    "passes": PASSES.own, "schedulers": SCHEDULERS.own, "targets": TARGETS.own,
    "formats": {**FORMATS.own, **IMPORTS.own},
    "topologies": {**FAMILIES.own, **OPERATORS},
}  # fmt: skip


# ---- all that there is


@cache
def tried() -> str:
    """Return the text of all tests but this one, of the files that they are about, and of the examples."""
    tests = ROOT / "tests"
    files = [path for path in sorted(tests.rglob("*.py")) if path.name != Path(__file__).name]
    files += [path for path in sorted((tests / "cases").rglob("*")) if path.suffix in (".coll", ".ir", ".xml")]
    return "\n".join(path.read_text(errors="replace") for path in files)


def lacks(collc: Run, verb: str) -> Iterator[str]:
    """Yield what is missing of each of the names that a verb lists."""
    listed = json.loads(collc(verb, "--json").out)
    known = {one["name"] for group in listed.values() if isinstance(group, list) for one in group}
    documented = REFERENCE.read_text()
    for name in NAMED[verb]:
        word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        if name not in known:
            yield f"`collc {verb}` does not list `{name}`"
        if not re.search(rf"(### {name}\n|\| `{name}(`|\())", documented):
            yield f"docs/reference.md has no entry for `{name}`"
        if not re.search(word, tried()):
            yield f"no test and no case names `{name}`"
        if collc(verb, name).status:
            yield f"`collc {verb} {name}` fails"


@pytest.mark.parametrize("verb", NAMED)
def test_every_name_is_listed_documented_and_tried(collc: Run, verb: str) -> None:
    assert [] == list(lacks(collc, verb))


def test_what_is_not_is_found(collc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "-".join(("fresh", "name"))
    monkeypatch.setitem(PASSES, name, Entry("collc.passes.schedule.reverse", "Reverse", "new"))
    assert ["docs/reference.md has no entry for `fresh-name`", "no test and no case names `fresh-name`"] == list(
        lacks(collc, "passes")
    )


def test_the_reference_is_what_the_code_says() -> None:
    assert reference_text() == REFERENCE.read_text(), "`python -m collc.tools.reference -o docs`"


def test_summaries_of_tables_and_classes_are_the_same() -> None:
    for table in (PASSES, TARGETS):
        for name, (_, _, summary) in table.own.items():
            assert (name, summary) == (table.load(name).name, table.load(name).summary)


@pytest.mark.parametrize("name", RENAMED)
def test_a_former_name_of_a_pass_is_answered_with_its_new_name(collc: Run, name: str) -> None:
    assert (name not in PASSES, RENAMED[name] in PASSES) == (True, True)
    Path("a.coll").write_text("topology t = torus(3);\ncollective c = allgather on t;\n")
    hint = f"`{name}` is called `{RENAMED[name]}` now"
    for words in (
        ("passes", name), ("cost", "a.coll", "-p", f"forest,{name}"), ("cost", "a.coll", f"--disable-pass={name}"),
    ):  # fmt: skip
        ran = collc(*words)
        assert ran.status == 2
        assert ("C0008" in ran.err, hint in ran.err) == (True, True)


#: formats whose headings in docs/importing.md have other words
_HEADINGS = {
    "nccl-topo": "NCCL", "nvidia-smi": "nvidia|smi", "rocm-smi": "rocm|amd|smi", "amd-smi": "amd|smi",
    "ibnetdiscover": "ibnetdiscover|InfiniBand", "dot": "Graphviz", "nodelink": "node-link", "astra-sim": "ASTRA",
}  # fmt: skip


@pytest.mark.parametrize("name", IMPORTS.own)
def test_an_importer_has_a_reader_a_test_and_a_section(name: str) -> None:
    module = import_module(IMPORTS[name].module)
    assert callable(module.read) and module.sniff("") is False
    tests = (path.read_text() for path in (ROOT / "tests" / "frontends").rglob("*.py"))
    assert any(f'"{name}"' in text for text in tests), f"no test in tests/frontends names the format {name}"
    headings = re.findall(r"^#+ .*", IMPORTING.read_text(), re.MULTILINE)
    word = re.compile(_HEADINGS.get(name, re.escape(name)), re.IGNORECASE)
    assert any(word.search(line) for line in headings), f"docs/importing.md has no heading for {name}"


# ---- schedulers

_NETWORKS = {
    "torus(3, 3)": (RANKS, ANY, RINGS),
    "generalized_kautz(2, 7)": (RANKS, ANY),
    "leaf_spine(2, 2, 1)": (ANY, RINGS, BOXES),
}


def takes(name: str, kind: str, network: str) -> bool:
    """Return whether a scheduler makes a schedule, with the options that `auto` would try, if any."""
    topology = coll.topology(network)
    how = SCHEDULERS[name].candidate
    for options in (how.variants or how.boxes) if how else ((),):
        try:
            root = 0 if kind in ROOTED else None
            pass_class(name)(**dict(options)).run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))
        except CollcError:
            continue
        return True
    return False


@pytest.mark.parametrize("name", [name for name in SCHEDULERS.own if name not in ("auto", "steps")])
def test_a_scheduler_takes_what_its_entry_says(name: str) -> None:
    one = SCHEDULERS[name]
    small = "leaf_spine(2, 2, 1)" if one.networks == BOXES else "torus(3, 3)"
    assert tuple(kind for kind in KINDS if takes(name, kind, small)) == tuple(
        kind for kind in KINDS if kind in one.collectives
    )
    kind = next(kind for kind in one.collectives if kind in KINDS)
    for network, words in _NETWORKS.items():
        assert takes(name, kind, network) == (one.networks in words), network


def test_every_collective_has_a_usual_scheduler_that_takes_it() -> None:
    for kind in KINDS:
        for switches in (False, True):
            assert kind in SCHEDULERS[usual(kind, switches)].collectives
    for name, one in SCHEDULERS.own.items():
        assert set(one.usual) <= set(one.collectives), name
        assert set(one.candidate.collectives or () if one.candidate else ()) <= set(one.collectives), name


def test_auto_compares_the_candidates_in_order() -> None:
    assert candidates() == Auto().names()
    assert {name for name, one in SCHEDULERS.own.items() if one.candidate} == set(candidates())
    assert [scheduler_pass(name) for name in ("auto", "forest")] == ["bfb", "forest"]
    topology = coll.topology("complete(4)")
    selector = Selector(Problem(topology, Collective("allreduce", 4)), Auto())
    met = [one.algorithm.scheduler for one in selector.measured] + [one.name for one in selector.skipped]
    assert set(met) >= {"bfb", "swing", "forest", "double-binary-tree"}


#: where else a word is that names a scheduler: in a line of the finder, in headings of gradients, in names of values
ELSEWHERE = {("find", "bfb"), ("listed", "bucket"), ("shared", "exact"), ("train", "bucket")}


def named_in(path: Path) -> set[tuple[str, str]]:
    """Return the schedulers that a module compares with, makes requests of or has a table of, by name.

    ``auto`` and ``steps``, which are no schedule's and have one of their own, are words for other things, too.
    """
    parts: list[ast.expr | None] = []
    text = path.read_text()
    if not any(name in text for name in SCHEDULERS.own):
        return set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            parts += [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            parts += node.keys
        elif isinstance(node, ast.Call):
            parts += node.args
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            parts.append(node.value)
    flat = [
        one for part in parts for one in (part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part])
    ]
    values = {one.value for one in flat if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return {(path.stem, value) for value in values if value in SCHEDULERS.own and value not in ("auto", "steps")}


def test_no_module_of_the_driver_knows_schedulers_by_name(tmp_path: Path) -> None:
    modules = [path for path in (ROOT / "collc").rglob("*.py") if path.parent.name != "pictures"]
    assert ELSEWHERE == {pair for path in modules for pair in named_in(path)}
    (tmp_path / "planted.py").write_text('x = 1 if s == "bfb" else {"pat": 2}\ny = ("flow", plain("ring"))\n')
    assert {"bfb", "pat", "flow", "ring"} == {name for _, name in named_in(tmp_path / "planted.py")}


#: `collc run` compiles for the target `mpi-c` unless the user names another
COMPARED = {("running", "mpi-c")}


def compared_in(path: Path) -> set[tuple[str, str]]:
    """Return the names of passes, targets, schedulers and runtimes that a module compares with a name or value."""
    known = {*PASSES.own, *TARGETS.own, *SCHEDULERS.own, *PROFILES} - {"auto", "steps"}
    text = path.read_text()
    if not any(word in text for word in (".name", ".value")):
        return set()
    compares = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Compare)]
    parts = [list(ast.walk(node)) for node in compares]
    named = [each for each in parts if any(getattr(part, "attr", "") in ("name", "value") for part in each)]
    constants = [part.value for each in named for part in each if isinstance(part, ast.Constant)]
    return {(path.stem, value) for value in constants if value in known}


def test_no_module_decides_by_the_name_of_a_pass_or_target(tmp_path: Path) -> None:
    """Passes, targets and runtimes declare what they are. The folder that has the runtimes may know them by name."""
    modules = [path for room in ("collc", "passes", "backends") for path in (ROOT / room).rglob("*.py")]
    modules = [path for path in modules if path.parent.name != "msccl_xml"]
    assert COMPARED == {pair for path in modules for pair in compared_in(path)}
    planted = 'x = target.name == "ir"\ny = p.name in ("fuse", "bfb")\nz = o.value == "rccl" or other == "lower"\n'
    (tmp_path / "planted.py").write_text(planted)
    assert {"ir", "fuse", "bfb", "rccl"} == {name for _, name in compared_in(tmp_path / "planted.py")}


#: the rooms that handle passes and targets of any class
GENERAL = ("driver", "selection")


def attributes_asked_for(text: str) -> list[str]:
    """Return the literal names that a text looks up on an object that may lack them."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(node)
        for node in calls
        if getattr(node.func, "id", "") in ("hasattr", "getattr")
        and (len(node.args) == 3 or getattr(node.func, "id", "") == "hasattr")
        and isinstance(node.args[1], ast.Constant)
    ]


def test_what_a_pass_or_target_can_do_is_a_method_of_its_base() -> None:
    modules = [path for room in GENERAL for path in (ROOT / "collc" / room).rglob("*.py")]
    modules += [ROOT / "collc" / "cli" / "simulate.py", ROOT / "collc" / "tools" / "conversion.py"]
    assert [] == [found for path in modules for found in attributes_asked_for(path.read_text())]
    assert 2 == len(attributes_asked_for('hasattr(a, "plan")\ngetattr(a, "plan", None)\ngetattr(a, name)\n'))


# ---- formats

TEXTS = {
    "coll": ("", "# only a comment", "topology t = torus(3);", " \n# x # y\n\nparam n = 4;", "\ufeffinclude 'x';"),
    "ir": ("collc-ir 1\n", "  collc-ir 1\ntopology"),
    "msccl-xml": ("<algo/>", "  <algo>", "<?xml version='1.0'?>", "<other/>", "<!-- <oneccl/> --><algo name='x'/>"),
    "oneccl-xml": ("<oneccl/>", "<?xml version='1.0'?><!-- mine -->\n<oneccl name='x'>", "\ufeff<oneccl/>"),
    "mpi-c": (
        "/* g: allreduce for communicators of 4 ranks.\n *\n * Generated by collc. Compile",
        "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n/* A library for LD_PRELOAD. Generated by collc.\n",
    ),
    "mscclpp-json": ('{"name": "x", "gpus": []}', '{"gpus":[{"id": 0}]}', '\ufeff{\n  "gpus" : ['),
}


def test_formats_are_known_by_content() -> None:
    assert set(TEXTS) == set(FORMATS.own)
    for name, texts in TEXTS.items():
        assert {name} == {sniff(text) for text in texts}
    assert "coll" == sniff("torus(3)") == sniff("topologie t;")


def test_a_comment_is_looked_through_in_no_time() -> None:
    assert "coll" == sniff("# " * 200_000 + "\n" + " \n" * 200_000 + "#\n" * 200_000 + "?")


@pytest.mark.parametrize("name", FORMATS.own)
def test_a_reader_bears_the_name_of_its_format(name: str) -> None:
    assert name == reader(name).name
    assert FORMATS[name].runs in TARGETS


@pytest.mark.parametrize("verb", ["compile", "check", "verify", "cost", "simulate", "convert", "run", "launch"])
@pytest.mark.parametrize("name", FORMATS.own)
def test_a_verb_refuses_exactly_what_the_table_says(collc: Run, verb: str, name: str) -> None:
    """Whatever else is wrong with the file: C0018 is for its format alone."""
    Path("x").write_text(TEXTS[name][1])
    command = {"convert": ("-t", "ir"), "launch": ("--", "true"), "run": ("--ranks", "3")}.get(verb, ())
    err = collc(verb, "x", *command).err
    refused = f"`x` is {FORMATS[name].noun}, not a" in err or "`x` is neither" in err
    assert refused == (verb not in FORMATS[name].verbs), err


def test_options_that_judge_other_formats_are_refused(collc: Run) -> None:
    for name, texts in TEXTS.items():
        Path("x").write_text(texts[1])
        for option, value, kinds in (
            ("runtime", "rccl", "MSCCL-XML files and plans of MSCCL++"),
            ("multiprocessors", "8", "MSCCL-XML files, plans of MSCCL++ and programs"),
        ):  # fmt: skip
            refused = (
                f"--{option} applies to {kinds}, which `x` is not [C0018]"
                in collc("verify", "x", f"--{option}", value).err
            )
            assert refused == (option not in dict(FORMATS[name].judged)), (name, option)


def test_one_entry_makes_a_format(collc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format of collc's own is asked for before the ones that take what nobody knows, and all verbs have it."""
    entry = Format("collc.reading.printed", "IrReader", "as printed, with another head", "toy", "a toy", "toy-ir")
    monkeypatch.setitem(FORMATS, "toy", entry)
    monkeypatch.setattr("collc.reading.printed.IrReader.read", lambda self, text, path: None, raising=False)
    assert "toy" == sniff("toy-ir 1")
    assert "toy  " in collc("formats").out
    Path("a.coll").write_text("topology t = biring(4);\n")
    assert "nor toy [C0018]" in collc("convert", "a.coll", "-t", "ir").err


def test_a_reader_reads_nothing_but_the_text() -> None:
    spec, level = reader("coll").load("topology t = biring(4);", "a.coll", ReadOptions(Loading()))
    assert (["t"], None) == (list(spec.topologies), level)


def test_the_functions_of_the_language_are_those_that_are_listed() -> None:
    assert library._FUNCTIONS.keys() == families.FUNCTIONS.keys()
