"""Small to large allreduces of the preloaded library against the MPI's own, in one run.

    python benchmarks/latency.py [--ranks 2,4,8] [--mpi DIR ..] [--sizes 8,64,..] [--seconds S] [--letters] [--runs N]

Compiles an allreduce on a complete network for all sizes (``auto { sizes: all }``), and runs ``latency.c`` with
``collc launch``. The program times both alternately: the library's by ``MPI_Allreduce``, the MPI's own by
``PMPI_Allreduce``. Each cell is the ratio of the shortest times, and in brackets the median of the ratios of all turns:
the MPI's own time by the library's, so above 1 the library is faster. With ``--runs``, a cell has the shortest times of
all runs, and the median of their medians: other work on the machine then counts less.

With ``messages``, MPICH's collectives over shared memory are off (``MPIR_CVAR_DEVICE_COLLECTIVES=none``), so MPICH
sends messages too, by its own algorithms. With ``yields`` there are more ranks than processors, and waiting ranks give
way to others; MPICH's collectives over shared memory do not, so they are timed for small sizes only. Such rows measure
the scheduler of the machine too. With ``no letters``, the library sends small messages by MPI as well
(``COLLC_SHARED_MEMORY=0``); ``--letters`` prints such rows. Exit status 1: a result was wrong, or a run failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import attrs

from collc.backends.mpi_c.toolchain import Mpi, find
from collc.ir.diagnostic import CollcError

__all__ = ["main"]

_HERE = Path(__file__).resolve().parent
_SIZES = (8, 64, 512, 4096, 32768, 262144, 2097152, 16777216)
_MESSAGES = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}
#: the largest size of collectives that poll without giving way, with more ranks than processors
_CROWDED = 4096
_SPEC = "topology net = complete({});\ncollective c = allreduce on net;\nschedule c using auto {{ sizes: all }};\n"


def found_mpis(named: Sequence[str]) -> list[Mpi]:
    """Return the named MPIs; without names, the first that is found, and those of the project's cache."""
    places: list[str | None] = [*named] or [None, *sorted(map(str, (_HERE.parent / ".cache").glob("openmpi-*")))]
    found = []
    for place in places:
        try:
            found.append(find(place))
        except CollcError as reason:
            print(f"{place or 'an MPI'}: {reason}", file=sys.stderr)
    return found


@attrs.frozen
class Setting:
    """A way in which an MPI is measured: words for the row, the environment, and the largest size in bytes."""

    words: str
    environ: Mapping[str, str]
    most: int = _SIZES[-1]


def settings(mpi: Mpi, ranks: int, letters: bool) -> Iterator[Setting]:
    """Yield the ways in which an MPI is measured; ``letters``: also without those of the library."""
    crowded = ranks > (os.cpu_count() or 1)
    calm = {name: value for name, value in mpi.environment({}).items() if name not in _MESSAGES}
    environ = {**os.environ, **(calm if crowded else {k: v for k, v in calm.items() if "ALLOW_RUN_AS_ROOT" in k})}
    words = ["yields"] if crowded else []
    found = [Setting(", ".join(words), environ, _CROWDED if crowded and mpi.vendor == "MPICH" else _SIZES[-1])]
    if mpi.vendor == "MPICH":
        found.append(Setting(", ".join(["messages", *words]), {**environ, **_MESSAGES}))
    yield from found
    if letters:
        for one in found:
            text = ", ".join(filter(None, [one.words, "no letters"]))
            yield attrs.evolve(one, words=text, environ={**one.environ, "COLLC_SHARED_MEMORY": "0"})


def rows(mpi: Mpi, program: Path, spec: Path, ranks: int, environ: Mapping[str, str], words: Sequence[str],
         limit: float) -> Iterator[list[str]]:  # fmt: skip
    """Yield the fields of each line that the program prints; raise SystemExit if a result is wrong or the run fails."""
    command = [sys.executable, "-m", "collc", "launch", str(spec), f"--cache={spec.parent}/cache",
               f"--timeout={limit:g}", "--", *mpi.command(ranks, [str(program), *words])]  # fmt: skip
    done = subprocess.run(command, env=dict(environ), capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    yield from (line for line in lines if len(line) == 4 and line[0].isdigit())
    if done.returncode or any(line[:1] == ["wrong"] for line in lines):
        raise SystemExit(f"{mpi}, {ranks} ranks: status {done.returncode}\n{done.stdout}{done.stderr}")


def cell(runs: Sequence[Sequence[float]]) -> str:
    """Return the ratio of the shortest times of one size over some runs, and the median of their median ratios."""
    compiled, own, medians = zip(*runs, strict=True)
    return f"{min(own) / min(compiled):.2f} ({median(medians):.2f})"


def main() -> int:
    """Measure every MPI with every number of ranks, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--mpi", action="append", default=[])
    parser.add_argument("--sizes", default=",".join(map(str, _SIZES)))
    parser.add_argument("--runs", type=int, default=1, help="of each row: on a machine with other work, several")
    parser.add_argument("--letters", action="store_true", help="also without letters")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each size")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of a run")
    options = parser.parse_args()
    sizes = options.sizes.split(",")
    print(f"| MPI | ranks | {' | '.join(f'{size} B' for size in sizes)} |\n|{'---|' * (len(sizes) + 2)}")
    with tempfile.TemporaryDirectory() as name:
        for number, mpi in enumerate(found_mpis(options.mpi)):
            program = Path(name) / f"latency{number}"
            subprocess.run([mpi.mpicc, "-O2", "-o", program, _HERE / "latency.c"], check=True)
            for ranks in map(int, options.ranks.split(",")):
                spec = Path(name) / f"net{ranks}.coll"
                spec.write_text(_SPEC.format(ranks))
                for how in settings(mpi, ranks, options.letters):
                    words = [str(options.seconds), *(size for size in sizes if int(size) <= how.most)]
                    runs = [
                        [list(map(float, line[1:]))
                         for line in rows(mpi, program, spec, ranks, how.environ, words, options.limit)]
                        for _ in range(options.runs)
                    ]  # fmt: skip
                    cells = [cell(size) for size in zip(*runs, strict=True)] + [""] * (len(sizes) - len(words) + 1)
                    print(
                        f"| {', '.join(filter(None, [str(mpi), how.words]))} | {ranks} | {' | '.join(cells)} |",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
