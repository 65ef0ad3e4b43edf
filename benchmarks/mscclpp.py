"""Plans of MSCCL++: time to compile, and what they hold, for every scheduler at 8 to 64 ranks; faults in plans.

    python benchmarks/mscclpp.py [--ranks 8,16,32,64] [--faults 0] [--only ring,bfb] [--judge 'COMMAND PLAN']
        [--limit 60]

Prints a row for each scheduler, collective and number of ranks: seconds of a processor for a whole compilation with
verification (a process of its own), threadblocks and operations of a rank (most of any rank), operations of its longest
threadblock, chunks of scratch. ``--judge 'COMMAND PLAN'`` must exit with 0 for every plan, such as the runtime's own
parser. With ``--faults N`` the table of ``benchmarks/mutations.py --format mscclpp-json`` follows.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: scheduler, collective, and the network for a number of ranks
CASES = (
    ("ring", "allreduce", "uniring({n})"),
    ("ring", "allgather", "uniring({n})"),
    ("bfb", "allreduce", "torus({a}, {b})"),
    ("bfb", "allgather", "torus({a}, {b})"),
    ("bfb", "reduce-scatter", "torus({a}, {b})"),
    ("swing", "allreduce", "torus({a}, {b})"),
    ("bucket", "allreduce", "torus({a}, {b})"),
    ("recursive-doubling", "allreduce", "hypercube({log})"),
    ("rabenseifner", "allreduce", "hypercube({log})"),
    ("double-binary-tree", "allreduce", "complete({n})"),
    ("forest", "allreduce", "dgx_a100({boxes})"),
    ("forest", "allgather", "dgx_a100({boxes})"),
    ("flow", "alltoall", "complete({n})"),
)


class Row(NamedTuple):
    """What one compilation gave; ``refused`` is its message if it failed."""

    seconds: float
    blocks: int = 0
    operations: int = 0
    longest: int = 0
    scratch: int = 0
    protocol: str = ""
    refused: str = ""


def network(form: str, ranks: int) -> str:
    """Return a network of a number of ranks, a power of two from 8 on."""
    log = ranks.bit_length() - 1
    return form.format(n=ranks, a=2 ** (log // 2), b=2 ** (log - log // 2), log=log, boxes=ranks // 8)


def compiled(scheduler: str, kind: str, topology: str, protocol: str, limit: float, judge: str | None) -> Row:
    """Compile in a process of its own, and count what the plan holds."""
    with tempfile.TemporaryDirectory() as folder:
        source, plan = Path(folder, "a.coll"), Path(folder, "a.json")
        source.write_text(f"topology t = {topology};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n")
        target = f"mscclpp-json{{protocol={protocol}}}"
        command = [sys.executable, "-m", "collc", str(source), "-t", target, "-o", str(plan)]
        before = _seconds()
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=folder)
        except subprocess.TimeoutExpired:
            return Row(limit, refused="took longer")
        seconds = _seconds() - before
        if ran.returncode:
            return Row(seconds, refused=ran.stderr.splitlines()[0].removeprefix("collc: error: "))
        if judge is not None:
            found = subprocess.run([*shlex.split(judge.replace("PLAN", str(plan)))], capture_output=True, text=True)
            if found.returncode:
                return Row(seconds, refused=f"judged wrong: {found.stdout.strip()[-80:]}")
        return counted(json.loads(plan.read_text()), seconds)


def _seconds() -> float:
    """Return the processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def counted(plan: dict, seconds: float) -> Row:  # type: ignore[type-arg]  # of JSON
    """Return the counts of a plan."""
    lengths = [[_operations(block["ops"]) for block in gpu["threadblocks"]] for gpu in plan["gpus"]]
    return Row(
        seconds, max(map(len, lengths)), max(map(sum, lengths)), max(max(found) for found in lengths),
        max(gpu["scratch_chunks"] for gpu in plan["gpus"]), plan["protocol"],
    )  # fmt: skip


def _operations(ops: list[dict]) -> int:  # type: ignore[type-arg]  # of JSON
    return sum(1 + len(op.get("ops", ())) for op in ops)


def rows(ranks: list[int], limit: float, judge: str | None, only: str = "") -> Iterator[tuple[str, Row]]:
    """Yield a name and a row for each case, one after the other."""
    for scheduler, kind, form in CASES:
        if only and scheduler not in only.split(","):
            continue
        for n in ranks:
            topology = network(form, n)
            for protocol in ("Simple", "LL"):
                row = compiled(scheduler, kind, topology, protocol, limit, judge)
                yield f"{scheduler} {kind} on {topology}, {protocol}", row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="8,16,32,64")
    parser.add_argument("--only", default="", help="schedulers, separated by commas")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--judge", help="a command that loads PLAN")
    parser.add_argument("--faults", type=int, default=0)
    options = parser.parse_args()
    print(f"{'plan':<62}{'s':>6}{'blocks':>8}{'ops':>6}{'longest':>9}{'scratch':>9}")
    for name, row in rows([int(n) for n in options.ranks.split(",")], options.limit, options.judge, options.only):
        if row.refused:
            print(f"{name:<62}{row.seconds:>6.2f}  {row.refused[:100]}")
        else:
            print(f"{name:<62}{row.seconds:>6.2f}{row.blocks:>8}{row.operations:>6}{row.longest:>9}{row.scratch:>9}")
        sys.stdout.flush()
    if options.faults:
        command = [sys.executable, str(ROOT / "benchmarks" / "mutations.py"), "--format", "mscclpp-json"]
        return subprocess.run([*command, "--faults", str(options.faults)]).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
