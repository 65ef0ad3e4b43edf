"""Start-up: CPU time of short runs of the command, of two or more source trees, alternately.

    git archive COMMIT | tar x -C /tmp/old
    python benchmarks/startup.py /tmp/old . [--turns N] [--only NAME ..] [--command "verify a.xml" ..]

Runs every command once in every tree, in turn, ``--turns`` times, so that what else the machine does falls on all trees
alike. Prints the minimum and the median of user plus system time (``RUSAGE_CHILDREN``) in milliseconds, and what the
last tree takes as a fraction of each other. The commands:

* ``example``: the README's example to MSCCL-XML; the trees must write the same bytes,
* ``check``: ``collc check`` of the same file,
* ``version``: ``collc --version``,
* ``import``: ``import collc``,
* ``numpy``: ``import numpy``, which no tree can be faster than,
* every ``--command``: the arguments of ``collc``.

All trees read the example of the last one and run under this interpreter, each with its own folder first on the path.
A first turn that does not count writes all bytecode to a temporary folder. A tree whose ``collc`` comes from elsewhere,
or a command that fails, ends the measurement. Exit status 1: the trees write different bytes.

Threads of OpenBLAS spin while they wait, which costs CPU time on a busy machine. ``OPENBLAS_NUM_THREADS=1`` in the
environment holds for all trees, and so leaves that out of the comparison.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

EXAMPLE = "examples/torus_3x3x2_allreduce.coll"


def commands(example: Path, output: Path, more: Sequence[str]) -> dict[str, list[str]]:
    """Return the interpreter's arguments by the command's name."""
    return {
        "example": ["-m", "collc", str(example), "-t", "msccl-xml", "-o", str(output)],
        "check": ["-m", "collc", "check", str(example)],
        "version": ["-m", "collc", "--version"],
        "import": ["-c", "import collc"],
        "numpy": ["-c", "import numpy"],
        **{text: ["-m", "collc", *shlex.split(text)] for text in more},
    }


def environment(tree: Path, bytecode: Path) -> dict[str, str]:
    """Return the process's variables with ``tree`` first on the path."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(bytecode)}


def ran(arguments: Sequence[str], tree: Path, variables: dict[str, str]) -> str:
    """Run the interpreter in ``tree`` and return what it printed; raise SystemExit if it fails."""
    done = subprocess.run([sys.executable, *arguments], cwd=tree, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{tree}: {shlex.join(arguments)} failed with {done.returncode}\n{done.stderr}")
    return done.stdout


def seconds(arguments: Sequence[str], tree: Path, variables: dict[str, str]) -> float:
    """Return user and system seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran(arguments, tree, variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def require_own(tree: Path, variables: dict[str, str]) -> None:
    """Raise SystemExit where ``import collc`` and its other folders do not come from ``tree``."""
    printed = ran(["-c", "import collc, collc.ir; print(collc.__file__); print(collc.ir.__file__)"], tree, variables)
    for path in map(Path, printed.splitlines()):
        if tree not in path.resolve().parents:
            raise SystemExit(f"{tree}: `import collc` takes {path}")


def measure(
    trees: Sequence[Path], measured: dict[str, list[str]], turns: int, folder: Path
) -> tuple[dict[str, list[list[float]]], bool]:
    """Return each tree's seconds by command, and whether all trees wrote the same bytes."""
    each = [environment(tree, folder / "bytecode") for tree in trees]
    for tree, variables in zip(trees, each, strict=True):
        require_own(tree, variables)
    taken: dict[str, list[list[float]]] = {name: [[] for _ in trees] for name in measured}
    written = set()
    for turn in range(turns + 1):
        for name, arguments in measured.items():
            for tree, variables, times in zip(trees, each, taken[name], strict=True):
                spent = seconds(arguments, tree, variables)
                if turn:
                    times.append(spent)
                if name == "example":
                    written.add((folder / "out.xml").read_bytes())
    return taken, len(written) < 2


def table(trees: Sequence[Path], taken: dict[str, list[list[float]]]) -> str:
    """Return the lines to print: milliseconds, then the last tree's as a fraction of each tree's."""
    wide = max(map(len, taken))
    head = f"{'command':{wide}} {'tree':32} {'min':>8} {'median':>8}   {'last/this':>9} {'(median)':>9}"
    rows = [head]
    for name, each in taken.items():
        last = each[-1]
        for tree, times in zip(trees, each, strict=True):
            low, middle = min(times), statistics.median(times)
            rows.append(
                f"{name:{wide}} {tree!s:32} {1000 * low:8.1f} {1000 * middle:8.1f}   "
                f"{min(last) / low:9.3f} {statistics.median(last) / middle:9.3f}"
            )
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; return 1 where the trees write different bytes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("trees", nargs="+", type=Path, help="folders of source trees, the newest last")
    parser.add_argument("--turns", type=int, default=8, help="runs of each command in each tree (default 8)")
    parser.add_argument("--only", nargs="*", default=[], help="names of the commands to measure")
    parser.add_argument("--command", action="append", default=[], help="arguments of `collc` to measure too")
    options = parser.parse_args(arguments)
    trees = [tree.resolve() for tree in options.trees]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_commands = commands(trees[-1] / EXAMPLE, folder / "out.xml", options.command)
        measured = {name: text for name, text in all_commands.items() if not options.only or name in options.only}
        taken, same = measure(trees, measured, options.turns, folder)
    print(table(trees, taken))
    if not same:
        print("the trees write different bytes")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
