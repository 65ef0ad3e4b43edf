"""Times of compiled allreduces and the MPI's own on a network, alternating in one run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from statistics import median

import attrs

from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.run import emit_all
from collc.backends.mpi_c.toolchain import Mpi, compile_c, find
from collc.ir.diagnostic import error
from collc.ir.program import Program

from .network import Network

__all__ = ["BUILTIN", "Timing", "build", "measure"]

#: the name of the MPI's own allreduce
BUILTIN = "builtin"

_LINE = re.compile(
    r"time (?P<name>\S+) (?P<bytes>\d+) (?P<seconds>[\d.]+) late (?P<late>[\d.]+) processor (?P<cpu>[\d.]+)"
)


@attrs.frozen
class Timing:
    """Times of calls of ``bytes``: seconds from a common start until the last rank was done.

    ``start_delays`` are the seconds between the common start and the start of the last rank, call by call; the
    machine's scheduler causes them. ``processor`` are the seconds of processor time of all ranks together.
    """

    name: str
    bytes: int
    seconds: tuple[float, ...]
    start_delays: tuple[float, ...] = ()
    processor: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """The median of the seconds that calls took."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """The middle half of the times, over the median: 0 if all are equal."""
        ordered = sorted(self.seconds)
        quarter = len(ordered) // 4
        return (ordered[len(ordered) - 1 - quarter] - ordered[quarter]) / self.median if self.median else 0.0


def build(programs: Mapping[str, Program], mpi: Mpi, folder: Path) -> Path:
    """Compile allreduce programs and the driver that times them; return the executable."""
    sources = emit_all(list(programs.values()))
    files, entries = [], []
    for name, (function, (_, artifact)) in zip(programs, sources.items(), strict=True):
        files.append(folder / f"measured_{function}.c")
        files[-1].write_text(artifact.text, encoding="utf-8")
        entries.append((name, function))
    files.append(folder / "measure.c")
    files[-1].write_text(_driver(entries), encoding="utf-8")
    compile_c(mpi, files, folder / "measure", ["-std=gnu99"])
    return folder / "measure"


def _driver(entries: Sequence[tuple[str, str]]) -> str:
    lines = ["#define _GNU_SOURCE", *(f"#include <{name}.h>" for name in ("stdint", "stdio", "stdlib", "string"))]
    lines += ["#include <time.h>", "#include <mpi.h>"]
    lines += ["typedef int allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);"]
    lines += [f"allreduce {function};" for _, function in entries]
    lines += ["static const struct entry { const char *name; allreduce *function; } entries[] = {"]
    lines += [f'    {{"{name}", {function}}},' for name, function in entries]
    lines += [f'    {{"{BUILTIN}", NULL}},', "};", ""]
    return "\n".join(lines) + resources.files(__package__).joinpath("measure.c").read_text(encoding="utf-8")


def measure(
    net: Network, programs: Mapping[str, Program], sizes: Sequence[int], repeats: int = 5, *,
    builtin: bool = True, mpi: Mpi | None = None, timeout: float = 300.0,
) -> list[Timing]:  # fmt: skip
    """Return the timings of every program, and of the MPI's own allreduce, at every size (bytes of the whole vector).

    Programs are allreduces by any names without blanks and commas. They alternate, so that other load of the machine
    affects all; every result is checked. Raises C0706 if a run fails or a result is wrong.
    """
    plain = find() if mpi is None else mpi
    binary = build(programs, plain, net.folder)
    names = [*programs, *([BUILTIN] if builtin else [])]
    arguments = [str(repeats), ",".join(str(size - size % 4) for size in sizes), ",".join(names), _settle(net)]
    output = launch(net.mpi(plain), net.plan.num_ranks, [str(binary), *arguments], timeout, net.folder)
    return parse(output, names, sizes, repeats)


def _settle(net: Network) -> str:
    """Return the nanoseconds after which all ranks know the start of a call."""
    ranks, hops = net.plan.num_ranks, int(net.plan.network.distances.max())
    return str(30_000_000 + round(3 * ranks.bit_length() * hops * net.plan.delay * 10**9))


def parse(output: str, names: Sequence[str], sizes: Sequence[int], repeats: int) -> list[Timing]:
    """Return the timings of the driver's output, by sizes and names; raise C0706 for missing ones."""
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for line in output.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            key = match["name"], int(match["bytes"])
            found.setdefault(key, []).append((float(match["seconds"]), float(match["late"]), float(match["cpu"])))
    timings = []
    for size in sizes:
        for name in names:
            rows = found.get((name, size - size % 4), [])
            if len(rows) < repeats:
                message = f"the run's output ended early: {len(rows)} of {repeats} times of `{name}` at {size} bytes"
                raise error("C0706", message)
            seconds, start_delays, processor = zip(*rows, strict=True)
            timings.append(Timing(name, size - size % 4, seconds, start_delays, processor))
    return timings
