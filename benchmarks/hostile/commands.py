"""Part (a): command lines: any options of any verb, values in and out of range, several inputs and folders."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from .answers import Servant, command
from .findings import Finding
from .fuzzing import judged
from .specs import specification
from .texts import changed, seeds

__all__ = ["commands", "drawn"]

#: verbs that run other programs or search for hours, and options that never end, or print seconds
_LEFT_OUT = ("run", "launch", "find")
_NOT_HERE = ("--watch", "--time-passes", "--profile")
#: placeholder of a value -> values in and out of range; no path leads out of the folder
_VALUES = {
    "SIZES": (
        "1KiB..1GiB:4", "1KiB..1GiB", "1KiB,64MiB", "0", "1", "1B..1B", "1GiB..1KiB", "1KiB..1GiB:1", "1KiB..1GiB:0",
        "1..2:99", "1B..9EiB:2", "1KiB..", "..", "", ",", "1KiB,,2", "-1", "1e3", "9" * 40, "1KiB..1GiB:4:4",
    ),
    "TIME": ("20us", "0us", "0", "1ns", "1/3us", "-1us", "1e3us", "5", "us", "", "99999999999s", "0.0000000000001ns"),
    "RATE": ("100Gbps", "1B/s", "0", "0Gbps", "-1GB/s", "1/3GB/s", "9999999999TB/s", "", "fast", "12"),
    "TIME|RATE": ("0.002ns/B", "500GB/s", "0ns/B", "0GB/s", "1B/s", "-1ns/B", "ns/B", "", "7", "1us", "9999999s/B"),
    "N": ("1", "2", "48", "0", "-1", "007", "1.5", "", "9" * 20, "99999999999999999999", "x"),
    "TARGET": (
        "msccl-xml", "mpi-c", "ir", "oneccl-xml", "msccl-xml{runtime=rccl}", "msccl-xml{runtime=x}", "mpi-c{", "{}", "",
        "msccl-xml{channels=0}", "msccl-xml{channels=99999}", "mpi-c{prefix=1x}", "ir{x=1}",
    ),
    "FILE": ("out.csv", "out.csv", "sub/out", "-", "", "input.coll", "folder", "\x7f", "x" * 300),
    "OUT": ("out", "out/", "out/", "-", "sub/out", "", "input.coll", "folder", "folder/"),
    "DIR": ("cache", "cache", "folder", "input.coll", "", "a/b/c", "x" * 300),
    "NAME": ("c", "d", "t", "nothing", "", "msccl", "rccl", "auto", "fuse", "allreduce"),
    "NAME=VALUE": ("n=4", "n=", "=4", "n", "n=n", "t=torus(2)", "n=1/0", "n=" + "9" * 40, "n=4;", "n=\u0661"),
    "PASSES": ("bfb", "ring", "bfb,lower", "lower,bfb", "", ",", "bfb{chunks=2}", "bfb{chunks=0}", "nothing", "bfb{"),
}  # fmt: skip
_WORDS = ("", "0", "1", "-1", "2", "auto", "all", "links", "swing", "minimal", "nothing", "9" * 30, "1/2", "torus(4)")


def _value(option: Any, luck: random.Random) -> str:
    if option.choices and luck.random() < 0.8:
        return luck.choice(option.choices)
    return luck.choice(_VALUES.get(option.metavar, _WORDS) if luck.random() < 0.95 else _WORDS)


def _option(option: Any, luck: random.Random) -> list[str]:
    """Return an option of the command as its words."""
    name = luck.choice(option.names)
    if option.kind == "flag":
        return [name]
    if option.kind == "joined":
        return [luck.choice((name, f"{name}={_value(option, luck)}"))]
    if name == "-O" or (name.startswith("--") and luck.random() < 0.5):
        return [f"{name}{'' if name == '-O' else '='}{_value(option, luck)}"]
    return [name, _value(option, luck)]


@cache
def _verbs() -> dict[str, list[Any]]:
    from collc.cli.verbs import VERBS

    return {
        name: [o for _, options in verb.groups for o in options if not set(o.names) & {*_NOT_HERE, "-h", "--version"}]
        for name, verb in sorted(VERBS.items()) if name not in _LEFT_OUT
    }  # fmt: skip


def _files(luck: random.Random) -> dict[str, str]:
    """Return the files of a case: a right text, another, and one in a folder, now and then changed."""
    texts = {name: specification(luck) for name in ("input.coll", "other.coll", "folder/input.coll")}
    if luck.random() < 0.3:
        origin = luck.choice([seed for seed in seeds() if seed.kind == "coll"])
        texts[luck.choice(sorted(texts))] = changed(origin, luck)
    return texts


def drawn(luck: random.Random) -> tuple[list[str], dict[str, str]]:
    """Return a command line, and the files of the folder in which it runs."""
    verb = luck.choice(("compile", "compile", "compile", "cost", "cost", "simulate", "check", "cache", *_verbs()))
    options = [_option(one, luck) for one in luck.choices(_verbs()[verb], k=luck.choice((0, 1, 1, 2, 2, 3, 5)))]
    inputs = luck.choices(("input.coll", "other.coll", "folder", "folder/input.coll", "missing.coll", "-"),
                          (9, 4, 1, 2, 0.3, 0.3), k=luck.choice((1, 1, 1, 2, 3)))  # fmt: skip
    if verb in ("schema", "explain", "cache", "topologies", "schedulers", "targets", "passes", "formats", "calibrate"):
        inputs = luck.choices(("cost", "clear", "info", "C0501", "torus", "without", "auto", "nothing", ""), k=1)
        inputs = inputs * luck.randrange(3)
    pieces = [*([one] for one in inputs), *options]
    luck.shuffle(pieces)
    return [verb, *(word for piece in pieces for word in piece)], _files(luck)


_servant = Servant()


def commands(seed: int, number: int) -> list[Finding]:
    """Run a command line twice: it ends well both times, and in the same way."""
    words, files = drawn(random.Random(f"commands {seed} {number}"))

    def wrong(some: Sequence[str]) -> str:
        first = _servant.ask(command, some, files)
        if found := judged(first, some):
            return found
        return "" if _servant.ask(command, some, files) == first else "says or writes something else the second time"

    found = wrong(words)
    if not found:
        return []
    words = _fewest(words, lambda some: bool(wrong(some)))
    text = "".join(f"==> {name}\n{content}" for name, content in files.items() if name in words or "/" in name)
    return [Finding(f"commands:{number}", f"collc {' '.join(words)}: {wrong(words) or found}", text)]


def _fewest(words: list[str], shows: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return the words without those that the finding does not need."""
    for at in reversed(range(1, len(words))):
        fewer = words[:at] + words[at + 1 :]
        words = fewer if shows(fewer) else words
    return words
