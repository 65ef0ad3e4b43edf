"""What `--nonblocking` and `--uneven` of `collc launch` cost, and what they serve, in one run.

    python benchmarks/options.py [--ranks N] [--mpi DIR ..] [--turns N] [--repetitions N] [--times N]

Compiles an allreduce and an alltoall on a complete network, and runs ``options.c`` with each set of options in turn.
The first column is the shortest time without options, in microseconds; the others are the shortest times with options
divided by it: above 1 the program is slower. Calls that need an option are the MPI's own without it.
Exit status 1: a run failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from latency import found_mpis

from collc.backends.mpi_c.toolchain import Mpi

__all__ = ["main"]

_HERE = Path(__file__).resolve().parent
_SPEC = """topology net = complete({});
collective sums = allreduce on net;
collective all = alltoall on net;
schedule sums using auto {{ sizes: all }};
"""
_OPTIONS = ((), ("--nonblocking",), ("--uneven",), ("--nonblocking", "--uneven"))


def times(
    mpi: Mpi, ranks: int, program: Path, spec: Path, options: Sequence[str], words: Sequence[str]
) -> dict[str, float]:
    """Return the microseconds of each call that the program prints; raise SystemExit if the run fails."""
    command = [sys.executable, "-m", "collc", "launch", str(spec), f"--cache={spec.parent}/cache", *options, "--",
               *mpi.command(ranks, [str(program), *words])]  # fmt: skip
    environ: Mapping[str, str] = {**mpi.environment({}), **os.environ}
    done = subprocess.run(command, env=dict(environ), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{mpi}: status {done.returncode}\n{done.stdout}{done.stderr}")
    fields = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    return {name: float(value) for name, value in fields}


def main() -> int:
    """Measure every MPI and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mpi", action="append", default=[])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=100, help="of a call in a time")
    parser.add_argument("--times", type=int, default=100, help="of which the shortest counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for number, mpi in enumerate(found_mpis(options.mpi)):
            program, spec = Path(name) / f"options{number}", Path(name) / "net.coll"
            subprocess.run([mpi.mpicc, "-O2", "-o", program, _HERE / "options.c"], check=True)
            spec.write_text(_SPEC.format(options.ranks))
            least: dict[Sequence[str], dict[str, float]] = {chosen: {} for chosen in _OPTIONS}
            for _ in range(options.turns):
                for chosen, best in least.items():
                    words = [str(options.repetitions), str(options.times)]
                    for call, taken in times(mpi, options.ranks, program, spec, chosen, words).items():
                        best[call] = min(taken, best.get(call, taken))
            print(
                f"| {mpi}, {options.ranks} ranks | without | {' | '.join(map(' '.join, _OPTIONS[1:]))} |\n|{'---|' * 5}"
            )
            for call, alone in least[()].items():
                ratios = " | ".join(f"{least[chosen][call] / alone:.2f}" for chosen in _OPTIONS[1:])
                print(f"| {call} | {alone:.2f} us | {ratios} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
