"""Rules as GNU make reads them: whatever files are called, a build does nothing until one of them changes."""

from __future__ import annotations

import os
import random
import shutil
import string
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from sampling import EXHAUSTIVE

from collc.files.depfile import depfile, escape
from collc.ir.diagnostic import CollcError

MAKE, NINJA = shutil.which("make"), shutil.which("ninja")
needs_make = pytest.mark.skipif(MAKE is None, reason="no make here")

ODD = [
    "a:b", ":a", "a:", "a;b", ";a", "a;", "=a", "a=b", "+=a", ":=a", "?=a", "a\\", "a\\\\", "\\a", "a\\ b", "a#b", "#a",
    "a\\#b", "$a", "a$b", "a$$(b)c", "a b", " a", "a  b", "a\tb", "\ta", "~", "~root", "~a", "a~", "a*b", "*", "a?b",
    "a[b]c", "[a]", "a\\*b", "a\\[b]", "a|b", "|", "a\\|b", "a&", "a&b", "&", "(a)", "a(b", "a,b", "'a'", '"a"', "`a`",
    "<a>", "{a}", "!a", "@a", "-a", "-include", "include", "define", "ifeq", "a^b", "a+", "ü", "\x01a", "a\x0bb",
    "a\\;b", "a\\:b", "a\\=b", "\\", "~\\ b", "a\\b*c d:e;f",
]  # fmt: skip
INPUTS = [*ODD, "50%", "%", "a%b"]


def make(folder: Path, rules: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert MAKE
    (folder / "Makefile").write_text(rules)
    return subprocess.run(
        [MAKE, "-rR", *arguments], cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=60
    )  # fmt: skip


def read(folder: Path, targets: list[str], inputs: list[str]) -> list[str]:
    """Return the target and the inputs of a rule as make reads them, by a recipe that prints them."""
    for name in (*targets, *inputs, "last"):
        (folder / name).touch()
    quoted = "$(subst ','\\'',{})"
    recipe = f"\t@printf '%s\\n' '{quoted.format('$@')}' '{quoted.format('$+')}'\n"
    goal = depfile(["goal"], [*targets, "last"])[0]
    done = make(folder, f"{goal}\n{depfile(targets, inputs)[0]}{recipe}", "-B")
    assert (done.returncode, done.stderr) == (0, ""), (depfile(targets, inputs), done.stderr)
    return done.stdout[:-1].split("\n")


@needs_make
@pytest.mark.parametrize("name", ODD)
def test_make_reads_a_name_before_the_colon(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, [name], ["in"]) == [name, "in"]


@pytest.mark.slow
@needs_make
@pytest.mark.parametrize("name", INPUTS)
def test_make_reads_a_name_behind_the_colon(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, ["out"], [name]) == ["out", name]
    assert read(tmp_path, ["out"], ["main", name]) == ["out", f"main {name}"]
    assert sorted(read(tmp_path, ["out"], [name, "b", "c"])[1].replace(name, "X", 1).split()) == ["X", "b", "c"]


@needs_make
def test_make_reads_names_of_any_characters(tmp_path: Path) -> None:
    dice = random.Random(1)
    for n in range(1500 if EXHAUSTIVE else 60):
        folder = tmp_path / str(n)
        folder.mkdir()
        names = [
            "".join(dice.choices(string.punctuation.replace("/", "") + "ab \t", k=dice.randint(1, 6))) for _ in "ab"
        ]
        try:
            rule = depfile(names[:1], names[1:])[0]
        except CollcError as refused:
            assert refused.diagnostics[0].code == "C0901"
            continue
        if set(names) & {".", "..", "-"} or names[0] == names[1]:
            continue
        assert read(folder, names[:1], names[1:]) == names, rule


@needs_make
def test_a_build_does_nothing_until_an_input_changes(tmp_path: Path) -> None:
    """A whole project: every odd name is both made and included somewhere, with an empty rule for each include."""
    source, built = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    built.mkdir()
    rules, goals = [], []
    odd = [name for name in ODD if name != "(a)"]  # in a folder, make takes it for a member of an archive
    for n, name in enumerate(odd):
        (source / name).touch()
        (source / "main").touch()
        (built / name).touch()  # names with `*` and the like are found, as in every build but the first
        for path, age in ((source / name, 1000), (source / "main", 1000), (built / name, 500)):
            os.utime(path, (age, age))
        rules.append(depfile([f"out/{name}"], ["in/main", f"in/{name}"], phony=True)[0])
        goals.append(escape(f"out/{name}"))
        rules.append(f"{escape(f'out/{name}', target=True)}:\n\t@echo {n}; touch '$(subst ','\\'',$@)'\n")
    text = "all: \\\n" + " \\\n".join(goals) + "\n" + "\n".join(rules)
    first = make(tmp_path, text)
    assert sorted(map(int, first.stdout.split())) == list(range(len(odd))), first.stderr
    assert sorted(os.listdir(built)) == sorted(odd)
    assert make(tmp_path, text, "-q").returncode == 0
    for n, name in enumerate(odd):
        later = max((built / name).stat().st_mtime, 2000) + 2 + n
        os.utime(source / name, (later, later))
        done = make(tmp_path, text, "-n")
        assert f"echo {n};" in done.stdout and done.stdout.count("echo") == 1, name
        os.utime(source / name, (1000, 1000))


def test_the_command_s_rule_names_what_it_included(collc: Callable[..., Ran]) -> None:
    """Through the language, which takes any name but one with a quotation mark, and the options of the command."""
    if MAKE is None:
        pytest.skip("no make here")
    odd = [name for name in ODD if '"' not in name and name.isprintable() and "(" not in name]
    for n, name in enumerate(odd):
        Path(name).write_text(f"let v{n} = 1;\n")
    included = "".join(f'include "{name}";\n' for name in odd)
    Path("pod.coll").write_text(included + "topology pod = biring(2);\ncollective sums = allreduce on pod;\n")
    assert collc("pod.coll", "-t", "ir", "-o", "n=4 a:b.ir", "-MD", "-MF", "rule", "-MP").status == 0
    goal = f"all: {escape('n=4 a:b.ir')}\n{escape('n=4 a:b.ir', target=True)}:\n\t@echo built\ninclude rule\n"
    assert make(Path(), goal, "-q").returncode == 0
    later = Path("n=4 a:b.ir").stat().st_mtime + 5
    for name in odd:
        os.utime(name, (later, later))
        assert make(Path(), goal).stdout == "built\n", name
        Path(name).unlink()
    assert make(Path(), goal).stdout == "built\n"


# ---- what no escape helps


@pytest.mark.parametrize(
    ("targets", "inputs", "reason"),
    [
        (["a\nb"], ["x"], "has a line break"), (["a"], ["x\ny"], "has a line break"), (["a"], ["x\r"], "a line break"),
        (["50%"], ["x"], "a rule of it that holds for many files"), ([".PHONY"], ["x"], "is a special target"),
        (["a"], ["x(y)"], "a member of an archive"), (["a(b)"], ["x"], "a member of an archive"),
        (["a"], ["x(y", "z)"], "a member of an archive"), (["a"], ["x "], "ends in a blank"),
    ],
)  # fmt: skip
def test_what_make_cannot_read_is_refused(targets: list[str], inputs: list[str], reason: str) -> None:
    with pytest.raises(CollcError) as caught:
        depfile(targets, inputs)
    assert reason in str(caught.value) and "C0901" in str(caught.value)
    assert "rename the file; -MT gives an output another name in the rule" == caught.value.diagnostics[0].hint


def test_a_target_named_by_the_user_stands_as_it_is() -> None:
    assert depfile(["50%"], ["x"], words=["a\\ b c"])[0] == "a\\ b c: \\\n  x\n"


@needs_make
def test_blanks_at_the_end_are_kept_where_a_file_follows(tmp_path: Path) -> None:
    assert read(tmp_path, ["out"], ["main", "a "]) == ["out", "a  main"]
    assert read(tmp_path, ["a "], ["main"]) == ["a ", "main"]


# ---- Ninja


@pytest.mark.skipif(NINJA is None, reason="no ninja here")
@pytest.mark.parametrize(
    "name", ["a b", "a#b", "a$b", "a:b", "a=b", "a[b]", "~a", "a%b", "a\\b", "a\\ b", "(a)", "{a}"]
)
def test_ninja_reads_absolute_paths(tmp_path: Path, name: str) -> None:
    assert NINJA
    for path in ("main", name):
        (tmp_path / path).touch()
        os.utime(tmp_path / path, (1000, 1000))
    paths = [str(tmp_path / "main"), str(tmp_path / name)]
    text, warnings = depfile([str(tmp_path / "out")], paths, absolute=True)
    assert not [
        w for w in warnings if "Ninja misreads: it would rebuild every time" in w.message and "CMake" not in w.message
    ]
    (tmp_path / "rule").write_text(text)
    (tmp_path / "build.ninja").write_text(
        "rule r\n  command = touch out && cp rule out.d\n  depfile = out.d\n  deps = gcc\nbuild out: r main\n"
    )

    def built() -> bool:
        done = subprocess.run([NINJA], cwd=tmp_path, capture_output=True, text=True, check=True)
        return "no work to do" not in done.stdout

    assert [built(), built()] == [True, False]
    later = (tmp_path / "out").stat().st_mtime + 5
    os.utime(tmp_path / name, (later, later))
    assert built()


@pytest.mark.parametrize(
    ("name", "absolute", "note"),
    [
        ("a=b", False, "`-fdepfile-absolute`"),
        ("a;b", False, "rename"),
        ("a;b", True, "rename"),
        ("a*b", False, "rename"),
    ],
)
def test_names_that_ninja_gets_wrong_are_warned_of(name: str, absolute: bool, note: str) -> None:
    (warning,) = depfile(["out"], [name], absolute=absolute)[1]
    assert warning.code == "C0902" and "Ninja misreads" in warning.message and note in warning.notes[-1]


@pytest.mark.parametrize("name", ["a", "a b", "a:b", "a%b", "a/b-c_d.coll", "a\\b", "ü"])
def test_other_names_are_not(name: str) -> None:
    assert depfile(["out"], [name])[1] == depfile(["out"], [name], absolute=True)[1] == []
    assert depfile(["n=4/out"], ["main", "n=4/a"])[1] == []
