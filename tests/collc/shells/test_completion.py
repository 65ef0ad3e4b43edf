"""Completion: the scripts are complete, and the shells that are installed give what the tables say."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Ran

from collc.backends import TARGETS
from collc.cli.arguments import Opt
from collc.cli.verbs import VERBS
from collc.passes import PASSES, SCHEDULERS
from collc.shells import SHELLS, script
from collc.shells.fish import quoted as fish_quoted
from collc.shells.offers import ARGUMENTS, FREE, LISTED, NAMED, VALUES, commands
from collc.shells.tables import TABLES
from collc.shells.zsh import quoted as zsh_quoted

Collc = Callable[..., Ran]


def options() -> Iterator[Opt]:
    for verb in VERBS.values():
        for _, group in verb.groups:
            yield from group


# ---- what is offered


def test_every_value_is_completed_or_known_to_the_user_only() -> None:
    """A new name of a value needs a line in ``VALUES`` or ``FREE``."""
    metavars = {opt.metavar for opt in options() if opt.kind != "flag" and not opt.choices}
    assert metavars <= {*VALUES, *FREE} and not set(VALUES) & FREE
    assert {*VALUES, *FREE} <= {opt.metavar for opt in options()}
    assert set(NAMED) <= {name for opt in options() for name in opt.names}
    positional = {word for verb in VERBS.values() for word in verb.positional if not word.strip("[]").islower()}
    assert positional - {"[NAME]"} == set(ARGUMENTS)
    assert {name for name, verb in VERBS.items() if "[NAME]" in verb.positional} == set(LISTED)
    rules = [*VALUES.values(), *NAMED.values(), *ARGUMENTS.values(), tuple(LISTED.values())]
    named = {word[1:] for rule in rules for word in rule if word.startswith("@")}
    assert named == {*TABLES, "files", "folders"}


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_names(table: str) -> None:
    assert len(TABLES[table]()) > 2


def test_names_that_need_quotes_are_not_offered() -> None:
    """A plugin may call a pass anything; no text of it runs in the user's shell."""
    tables = {**TABLES, "passes": lambda: {"$(touch x)": "", "a b": "", "good-1": "its `$(help)`"}}
    found = {c.name: c for c in commands(VERBS, tables)}["passes"]
    assert found.arguments.words == (("good-1", "its `$(help)`"),)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_verb_and_option(collc: Collc, shell: str) -> None:
    ran = collc("completion", shell)
    assert (0, "") == (ran.status, ran.err) and ran.out == script(shell, VERBS)
    words = set(re.split(r"[\s'|():\\]+", ran.out))
    assert set(VERBS) | set(TARGETS) | set(PASSES) | set(SCHEDULERS) <= words
    names = {name for opt in options() for name in opt.names}
    if shell == "fish":
        assert {name.lstrip("-") for name in names} <= words
    else:
        assert [name for name in names if name not in ran.out] == []


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_a_description_cannot_end_its_quotes(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verb = VERBS["check"]._replace(summary="a user's `touch x` $(touch x) \\ [x]: y")
    monkeypatch.setitem(VERBS, "check", verb)
    quoted = {"fish": fish_quoted, "zsh": zsh_quoted}.get(shell)
    text = script(shell, VERBS)
    assert quoted is None or quoted(verb.summary) in text or quoted(f"check:{verb.summary}") in text
    assert quoted is not None or "touch x" not in text


def test_another_shell_is_refused(collc: Collc) -> None:
    ran = collc("completion", "fsh")
    assert (2, "") == (ran.status, ran.out)
    assert "there is no completion for `fsh` [C0001]\n  hint: did you mean `fish`?" in ran.err
    assert "known: bash, zsh, fish" in collc("completion", "powershell").err
    assert "needs bash|zsh|fish" in collc("completion").err


# ---- bash


@pytest.fixture
def bash(collc: Collc) -> str:
    """The file of the script, beside files to offer."""
    Path("done.bash").write_text(collc("completion", "bash").out)
    Path("pod.coll").touch()
    Path("two words.coll").touch()
    Path("out").mkdir()
    return "done.bash"


ASK = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _collc; printf "%s\\n" "${COMPREPLY[@]}"'


def asked(path: str, *words: str) -> set[str]:
    """Return what bash is told to offer for the last word."""
    command = ["bash", "--norc", "-c", ASK, path, "collc", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


BASH = [
    (("sched",), {"schedulers"}),
    (("po",), {"pod.coll"}),
    (("schedulers", "recursive"), {"recursive-doubling"}),
    (("targets", "mpi"), {"mpi-c"}),
    (("passes", "discr"), {"discretize"}),
    (("formats", "hwl"), {"hwloc"}),
    (("topologies", "twisted_t"), {"twisted_torus"}),
    (("explain", "C000"), {f"C000{digit}" for digit in range(1, 10)}),
    (("schema", "fin"), {"find"}),
    (("completion", ""), {"bash", "zsh", "fish"}),
    (("cache", "c"), {"check", "clear"}),
    (("cost", "po"), {"pod.coll"}),
    (("cost", "--color", "a"), {"auto", "always"}),
    (("cost", "--color", "=", "n"), {"never"}),
    (("cost", "--color", "="), {"auto", "always", "never"}),
    (("cost", "--color=n"), {"--color=never"}),
    (("pod.coll", "-t", "mpi"), {"mpi-c"}),
    (("pod.coll", "--target", "'mpi"), {"mpi-c"}),
    (("-t", "mpi"), {"mpi-c"}),
    (("cost", "-p", "bfb,discr"), {"bfb,discretize"}),
    (("cost", "--passes=bfb,lower,coal"), {"--passes=bfb,lower,coalesce"}),
    (("cost", "--disable-pass", "coal"), {"coalesce"}),
    (("cost", "--csv", "=", "po"), {"pod.coll"}),
    (("cost", "--csv", "o"), {"out"}),
    (("compile", "-I", ""), {"out"}),
    (("compile", "-O"), {"-O0", "-O1", "-O2", "-O3"}),
    (("compile", "--dump-ir", "=", "al"), {"all"}),
    (("compile", "--collective", ""), set()),
    (("convert", "--collective", "allr"), {"allreduce"}),
    (("cost", "--size", ""), set()),
    (("verify", "--runtime", "rc"), {"rccl"}),
    (("run", "--place", "in,o"), {"in,out"}),
    (("train", "gpt2"), {"gpt2-xl"}),
    (("cost", "--basel"), {"--baselines"}),
    (("targets", "--size"), set()),
    (("launch", "pod.coll", "--", "compgen_nothing_"), set()),
    (("launch", "pod.coll", "--", "bash", "po"), {"pod.coll"}),
    (("check", "--", "po"), {"pod.coll"}),
    (("cost", "two\\ w"), {"two words.coll"}),
]


@pytest.mark.parametrize(("words", "found"), BASH)
def test_bash_offers(bash: str, words: tuple[str, ...], found: set[str]) -> None:
    assert found == asked(bash, *words)


def test_bash_offers_commands_after_dashes(bash: str) -> None:
    assert "bash" in asked(bash, "launch", "pod.coll", "--", "bas")
    assert set(VERBS) <= asked(bash, "")


def test_a_planted_fault_is_found(bash: str) -> None:
    Path("fault.bash").write_text(Path(bash).read_text().replace("separated=1", "", 1))
    assert asked("fault.bash", "cost", "-p", "bfb,discr") == set()


def typed(path: str, keys: bytes, needed: bytes) -> bytes:
    """Return what an interactive bash prints for these keys, up to ``needed`` or until nothing comes for a minute."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PS1="", TERM="dumb", HISTFILE="", INPUTRC="/dev/null")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    setup = f"source {path}; collc() {{ printf '<%s>' \"$@\"; echo; }}; echo rea''dy\n"
    found, limit = b"", time.monotonic() + 60
    os.write(terminal, setup.encode())
    sent = False
    while needed not in found and time.monotonic() < limit:
        if select.select([terminal], [], [], 1)[0]:
            found += os.read(terminal, 65536)
        if not sent and b"ready" in found.replace(b"rea''dy", b""):
            sent, found = True, b""
            os.write(terminal, keys)
    os.write(terminal, b"\x03exit\n")
    os.close(terminal)
    os.waitpid(child, 0)
    return found


def test_the_tab_key_of_bash_completes(bash: str) -> None:
    found = typed(bash, b"collc co\tst tw\t --color=nev\t -p bfb,discr\t\n", b"discretize>")
    assert b"<cost><two words.coll><--color=never><-p><bfb,discretize>" in found, found


# ---- the other shells


def installed(shell: str) -> str:
    """Return the path of a shell; skip the test without it."""
    return shutil.which(shell) or pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize(
    ("line", "found"),
    [("collc sched", "schedulers"), ("collc schedulers fore", "forest"), ("collc cost --basel", "--baselines"),
     ("collc cost --color=ne", "--color=never"), ("collc cost -p bfb,discr", "bfb,discretize"),
     ("collc cost po", "pod.coll"), ("collc pod.coll -t mpi", "mpi-c")],
)  # fmt: skip
def test_fish_offers(collc: Collc, line: str, found: str) -> None:
    fish = installed("fish")
    Path("done.fish").write_text(collc("completion", "fish").out)
    Path("pod.coll").touch()
    command = [fish, "--no-config", "-c", "source done.fish; complete -C $argv[1]", line]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert [found] == [row.split("\t")[0] for row in done.stdout.splitlines()]


ZSH = "autoload -Uz compinit; compinit -D -u; source done.zsh; whence -w _collc; print -r -- $_comps[collc]"


def test_zsh_reads_the_script(collc: Collc) -> None:
    zsh = installed("zsh")
    Path("done.zsh").write_text(collc("completion", "zsh").out)
    subprocess.run([zsh, "-n", "done.zsh"], timeout=60, check=True)
    done = subprocess.run([zsh, "-f", "-c", ZSH], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("_collc: function\n_collc\n", "")
