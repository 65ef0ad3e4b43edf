"""Whole commands: seconds and memory of `collc compile`, against an older commit in the same run.

    python benchmarks/compile.py [--against REF | --alone] [--only NAME|GROUP ..] [--repeat N] [--limit SECONDS]
                                 [--fail-above RATIO] [--json]

Each case is a network, a collective, a scheduler and a target. The commits run alternately, each in a process of its
own. Seconds and memory are the least of ``--repeat`` runs. A ratio is this tree over the other commit: 0.1 is ten times
faster. A case over the limit is a row of its own; its ratio is a bound. ``--only growth`` takes three networks at 16 to
1,024 ranks, and fits time and memory to a power of the number of ranks. Verification is part of every command.

The other commit is checked out by `git worktree` into a temporary folder, and removed at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: the commit that is compared with by default: before programs of large networks became faster
REFERENCE = "dca77efe"


class Case(NamedTuple):
    """One command: a `.coll` text and its target, and by which words ``--only`` takes it."""

    name: str
    text: str
    target: str
    groups: tuple[str, ...]
    family: str = ""
    ranks: int = 0


class Run(NamedTuple):
    """What one run took; ``error`` says why there is no file, ``over`` that it met the limit."""

    user: float
    wall: float
    peak: int
    size: int
    error: str = ""
    over: bool = False

    @property
    def ok(self) -> bool:
        return not self.error and not self.over


class Row(NamedTuple):
    """One case, in this tree and in the other commit if there is one."""

    case: Case
    here: Run
    other: Run | None


# ---- the cases


def _text(network: str, kind: str, scheduler: str) -> str:
    return f"topology t = {network};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n"


_README = """topology pod = torus(3, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };
collective grads = allreduce on pod { size: 64 MiB, op: sum, dtype: float32 };
schedule grads using bfb;
"""

#: the runtime with most steps, which large clusters need
_MSCCL = "msccl-xml{runtime=msccl}"

_CASES = (
    Case("readme", _README, "msccl-xml", ("small",)),
    Case("torus-8x8", _text("torus(8, 8)", "allreduce", "bfb"), "msccl-xml", ("small",)),
    Case("ring-64", _text("biring(64)", "allreduce", "ring"), "msccl-xml", ("small",)),
    Case("ring-512", _text("biring(512)", "allreduce", "bfb"), "msccl-xml", ("large",)),
    Case("torus-16x16", _text("torus(16, 16)", "allreduce", "bfb"), "msccl-xml", ("large",)),
    Case("alltoall-256", _text("hypercube(8)", "alltoall", "flow"), "msccl-xml", ("large",)),
    Case("trees-512", _text("hypercube(9)", "allgather", "forest"), "msccl-xml", ("large",)),
    Case("boxes-allreduce-512", _text("dgx_a100(64)", "allreduce", "forest"), _MSCCL, ("boxes",)),
    Case("boxes-allgather-512", _text("dgx_a100(64)", "allgather", "forest"), _MSCCL, ("boxes",)),
    Case("boxes-alltoall-512", _text("dgx_a100(64)", "alltoall", "auto"), _MSCCL, ("boxes",)),
    Case("boxes-allreduce-800", _text("dgx_a100(100)", "allreduce", "forest"), _MSCCL, ("boxes",)),
    Case("fat-tree-allreduce", _text("fat_tree(16)", "allreduce", "trivance"), "msccl-xml", ("switched",)),
    Case("fat-tree-allgather", _text("fat_tree(16)", "allgather", "trivance"), "msccl-xml", ("switched",)),
    Case("fat-tree-scatter", _text("fat_tree(16)", "reduce-scatter", "trivance"), "mpi-c", ("switched",)),
    Case("racks-allreduce", _text("gb200_nvl72(4)", "allreduce", "two-level"), "msccl-xml", ("switched",)),
    Case("hypercube-8", _text("hypercube(8)", "allreduce", "bfb"), "mpi-c", ("large",)),
    Case("hypercube-10", _text("hypercube(10)", "allreduce", "bfb"), "mpi-c", ("huge",)),
    Case("torus-32x32", _text("torus(32, 32)", "allreduce", "bfb"), "mpi-c", ("huge",)),
    Case("torus-50x50", _text("torus(50, 50)", "allreduce", "bfb"), "mpi-c", ("huge",)),
    Case("metacyclic-500", _text("cayley(metacyclic(500, 2, -1), {1, 2, 998, 90, 910})", "allreduce", "bfb"), "mpi-c",
         ("huge",)),
    Case("kautz-1024", _text("generalized_kautz(4, 1024)", "allgather", "bfb"), "mpi-c", ("huge",)),
    Case("dgx-a100-128", _text("dgx_a100(128)", "allgather", "forest"), "mpi-c", ("huge",)),
)  # fmt: skip

#: ranks -> the arguments of the networks whose growth is measured
_GROWTH = {16: ("4, 4", 4, 2), 64: ("8, 8", 6, 8), 256: ("16, 16", 8, 32), 1024: ("32, 32", 10, 128)}


def _growth() -> Iterator[Case]:
    for ranks, (sides, dimensions, boxes) in _GROWTH.items():
        for family, network, kind, scheduler in (
            ("torus", f"torus({sides})", "allreduce", "bfb"),
            ("hypercube", f"hypercube({dimensions})", "allreduce", "bfb"),
            ("dgx", f"dgx_a100({boxes})", "allgather", "forest"),
        ):
            name = f"{family}/{ranks}"
            yield Case(name, _text(network, kind, scheduler), "mpi-c", ("growth", family), family, ranks)


CASES = (*_CASES, *_growth())


def chosen(only: Sequence[str]) -> list[Case]:
    """Return the cases of names and groups; all without any. Raises SystemExit for unknown ones."""
    known = {word for case in CASES for word in (case.name, *case.groups)}
    if unknown := [word for word in only if word not in known]:
        raise SystemExit(f"there is no case or group `{unknown[0]}`: {', '.join(sorted(known))}")
    return [case for case in CASES if not only or {case.name, *case.groups} & {*only}]


# ---- one run


def run(case: Case, tree: Path, limit: float) -> Run:
    """Run one case with the collc of a tree, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="collc-case-") as folder:
        source, out = Path(folder) / "case.coll", Path(folder) / "out"
        source.write_text(case.text)
        out.mkdir()
        command = [sys.executable, "-m", "collc", str(source), "-t", case.target, "-o", f"{out}/", "-q"]
        with (Path(folder) / "err").open("w+b") as errors:
            user, wall, peak, status, over = _measured(command, folder, _environment(tree), limit, errors.fileno())
            errors.seek(0)
            message = errors.read().decode("utf-8", "replace").strip()
        size = sum(path.stat().st_size for path in out.iterdir())
        error = "" if over or status == 0 else f"exit {status}: {message.splitlines()[-1] if message else 'no message'}"
        return Run(user, wall, peak, size, error, over)


def _environment(tree: Path) -> dict[str, str]:
    """Return the environment in which Python takes collc from a tree and keeps its bytecode."""
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    return {**{key: value for key, value in os.environ.items() if key not in dropped}, "PYTHONPATH": str(tree)}


#: Runs a command for at most some seconds, and prints what it took. The kernel counts the memory of the process that
#: starts a command as the command's own, so this one is small.
_MEASURE = """
import json, os, resource, subprocess, sys, time
limit, command = float(sys.argv[1]), sys.argv[2:]
start, over = time.perf_counter(), False
with open(os.devnull) as nothing:
    child = subprocess.Popen(command, stdin=nothing, stdout=sys.stderr)
try:
    status = child.wait(limit)
except subprocess.TimeoutExpired:
    over = True
    child.kill()
    status = child.wait()
wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime, wall, used.ru_maxrss, status, over and status != 0]))
"""


def _measured(
    command: Sequence[str], folder: str, environment: dict[str, str], limit: float, errors: int
) -> tuple[float, float, int, int, bool]:
    """Run a process for at most ``limit`` seconds: its user and wall seconds, peak (bytes), status, whether over."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", _MEASURE, str(limit), *command], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = child.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):  # what the command left behind
            os.killpg(child.pid, signal.SIGKILL)
    user, wall, peak, status, over = json.loads(printed)
    return user, wall, peak * (1 if sys.platform == "darwin" else 1024), status, over


def measure(case: Case, trees: Sequence[Path], repeat: int, limit: float) -> list[Run]:
    """Return the best run of each tree; they run alternately. A tree that fails once is not tried again."""
    runs: list[list[Run]] = [[] for _ in trees]
    for number in range(repeat):
        for place in range(len(trees))[:: 1 if number % 2 else -1]:
            if all(one.ok for one in runs[place]):
                runs[place].append(run(case, trees[place], limit))
    return [best(each) for each in runs]


def best(runs: Sequence[Run]) -> Run:
    """Return the least of each number; the first run without a file if there is one."""
    failed = [one for one in runs if not one.ok]
    if failed:
        return failed[0]
    return Run(
        min(one.user for one in runs), min(one.wall for one in runs), min(one.peak for one in runs), runs[0].size
    )  # fmt: skip


# ---- the other commit


@contextmanager
def checked_out(reference: str) -> Iterator[Path]:
    """Yield a folder with the tree of a commit; it is removed at the end. Raises SystemExit for an unknown commit."""
    git = ["git", "-C", str(ROOT)]
    with tempfile.TemporaryDirectory(prefix="collc-reference-") as folder:
        tree = Path(folder) / "tree"
        added = subprocess.run(
            [*git, "worktree", "add", "--detach", "--quiet", str(tree), reference], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if added.returncode:
            raise SystemExit(f"cannot check out `{reference}`: {added.stderr.strip()}")
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=False)


def write_bytecode(tree: Path) -> None:
    """Compile the modules of a tree, which no run is to pay for."""
    rooms = [str(tree / room) for room in ("collc", "ir", "frontends", "passes", "backends")]
    command = [sys.executable, "-m", "compileall", "-q", *rooms]
    subprocess.run(command, env=_environment(tree), stdout=subprocess.DEVNULL, check=False)


# ---- ratios


class Ratio(NamedTuple):
    """This tree over the other commit; ``sign`` is `<` or `>` if one of them met the limit."""

    value: float
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.value:.2f}"


def ratio(row: Row, field: str) -> Ratio | None:
    """Return the ratio of a field of a row (user, wall, peak); None if a run failed or both met the limit."""
    here, other = row.here, row.other
    if other is None or here.error or other.error or (here.over and other.over):
        return None
    value = getattr(here, field) / max(getattr(other, field), 1e-9)
    return Ratio(value, ">" if here.over else "<" if other.over else "")


def is_worse(row: Row, most: float) -> bool:
    """Return whether this tree fails where the other commit does not, or takes ``most`` times its time or memory."""
    if row.other is None:
        return False
    if row.other.ok and not row.here.ok:
        return True
    found = [ratio(row, field) for field in ("user", "peak")]
    return any(one is not None and one.sign != "<" and one.value > most for one in found)


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """Return the slope of the line that fits the logarithms best (least squares); None for less than two points."""
    logs = [(math.log(ranks), math.log(value)) for ranks, value in points if value > 0]
    if len(logs) < 2:
        return None
    x, y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    spread = sum((a - x) ** 2 for a, _ in logs)
    return sum((a - x) * (b - y) for a, b in logs) / spread if spread else None


class Fit(NamedTuple):
    """The growth of one family on one side: exponents of all points, and of the last two."""

    family: str
    side: str
    field: str
    points: tuple[tuple[int, float], ...]
    fitted: float | None
    last: float | None


def fits(rows: Sequence[Row]) -> list[Fit]:
    """Return the exponents of seconds and memory against ranks, of the runs that ended."""
    found = []
    for family in dict.fromkeys(row.case.family for row in rows if row.case.family):
        for side in ("here", "other"):
            each = [(row.case.ranks, getattr(row, side)) for row in rows if row.case.family == family]
            ended = [(ranks, one) for ranks, one in each if one is not None and one.ok]
            for field in ("user", "peak"):
                points = tuple((ranks, float(getattr(one, field))) for ranks, one in ended)
                if points:
                    found.append(Fit(family, side, field, points, exponent(points), exponent(points[-2:])))
    return found


# ---- output

_HEAD = (
    f"{'case':21}{'target':27}{'commit':12}{'user s':>9}{'wall s':>9}{'peak MB':>9}{'bytes':>13}  "
    + "ratio of user, wall, peak"
)


def lines(row: Row, reference: str) -> Iterator[str]:
    """Yield the line of the other commit, if there is one, then that of this tree with the ratios."""
    about = f"{row.case.name:21}{row.case.target:27}"
    if row.other is not None:
        yield f"{about}{reference[:10]:12}{_numbers(row.other)}"
    ratios = [ratio(row, field) for field in ("user", "wall", "peak")] if row.here.ok or row.here.over else []
    shown = "  ".join("-" if one is None else str(one) for one in ratios) if row.other is not None else ""
    yield f"{about}{'here':12}{_numbers(row.here)}  {shown}".rstrip()


def _numbers(one: Run) -> str:
    if one.error:
        return f"  {one.error}"
    wall = f">{one.wall:.1f}" if one.over else f"{one.wall:.2f}"
    return f"{one.user:9.2f}{wall:>9}{one.peak / 1e6:9.0f}{one.size:13,}"


def fit_lines(found: Sequence[Fit], reference: str) -> Iterator[str]:
    """Yield the table of growth."""
    yield f"{'growth':12}{'commit':12}{'of':9}{'exponent':>9}{'last two':>9}  values at ranks"
    for one in found:
        scale, digits = (1.0, 2) if one.field == "user" else (1e6, 0)
        name = {"user": "user s", "peak": "peak MB"}[one.field]
        values = ", ".join(f"{ranks:,}: {value / scale:.{digits}f}" for ranks, value in one.points)
        slopes = "".join("        -" if x is None else f"{x:9.2f}" for x in (one.fitted, one.last))
        side = "here" if one.side == "here" else reference[:10]
        yield f"{one.family:12}{side:12}{name:9}{slopes}  {values}"


def document(rows: Sequence[Row], options: argparse.Namespace) -> dict[str, object]:
    """Return the object of ``--json``."""
    return {
        "against": None if options.alone else options.against, "repeat": options.repeat, "limit": options.limit,
        "cases": [
            {
                "name": row.case.name, "target": row.case.target, "here": row.here._asdict(),
                "other": None if row.other is None else row.other._asdict(),
                "ratios": {field: _ratio_object(ratio(row, field)) for field in ("user", "wall", "peak")},
            }
            for row in rows
        ],
        "growth": [one._asdict() for one in fits(rows)],
    }  # fmt: skip


def _ratio_object(one: Ratio | None) -> dict[str, object] | None:
    return None if one is None else one._asdict()


def measured_rows(cases: Sequence[Case], options: argparse.Namespace, trees: Sequence[Path]) -> list[Row]:
    """Measure all cases, and print each line as soon as it is known unless JSON is printed."""
    rows = []
    for case in cases:
        here, *other = measure(case, trees, options.repeat, options.limit)
        rows.append(Row(case, here, other[0] if other else None))
        if not options.json:
            print("\n".join(lines(rows[-1], options.against)), flush=True)
    return rows


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", default=REFERENCE, metavar="REF", help=f"the other commit ({REFERENCE})")
    parser.add_argument("--alone", action="store_true", help="measure this tree only")
    parser.add_argument("--only", action="append", default=[], metavar="NAME|GROUP", help="only these cases")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each case and commit (3)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="the most of a run (120)")
    parser.add_argument("--fail-above", type=float, metavar="RATIO", help="exit with 1 if a ratio is higher")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if options.repeat < 1 or options.limit <= 0:
        parser.error("--repeat and --limit must be more than 0")
    if options.alone and options.fail_above is not None:
        parser.error("--fail-above compares with another commit, which --alone leaves out")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    cases = chosen(options.only)
    if not options.json:
        print(_HEAD, flush=True)
    if options.alone:
        write_bytecode(ROOT)
        rows = measured_rows(cases, options, [ROOT])
    else:
        with checked_out(options.against) as tree:
            for each in (ROOT, tree):
                write_bytecode(each)
            rows = measured_rows(cases, options, [ROOT, tree])
    return report(rows, options)


def report(rows: Sequence[Row], options: argparse.Namespace) -> int:
    """Print growth, or everything as JSON; return 1 if a ratio is above ``--fail-above``."""
    if options.json:
        print(json.dumps(document(rows, options), indent=2))
    elif found := fits(rows):
        print("\n".join(["", *fit_lines(found, options.against)]))
    worse = [row.case.name for row in rows if options.fail_above is not None and is_worse(row, options.fail_above)]
    if worse:
        print(f"worse than {options.against} by more than {options.fail_above:g}: {', '.join(worse)}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
