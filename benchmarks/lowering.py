"""Lowering: what programs become for each runtime, beside the classic ones written by hand.

    python benchmarks/lowering.py [--only NAME ..] [--json | --table] [--scale]

Compiles each algorithm to MSCCL-XML for the three runtimes with all passes of -O2. Prints the most threadblocks of a
rank, the most steps of a threadblock, instructions of a rank (the mean) and channels, the strategy by which
threadblocks were joined, and whether the emitted file, read back, passes the interpreter in place and out of place at
every split factor of its size window. Where there is a classic form its numbers stand beside, and what exceeds them is
marked: a ring allreduce of R ranks takes 2 R - 1 steps in one threadblock a channel, an exchange of all pairs a
threadblock for each of R - 1 peers, recursive doubling a message each way for each of log2(R) peers. ``--scale``
measures large networks instead: seconds from text to a file that has been read back.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import attrs
import numpy as np

import collc
from collc.backends.msccl_xml.profiles import PROFILES
from collc.backends.msccl_xml.verify import verify_text
from collc.ir.program import Program
from collc.passes.base import remarks

__all__ = ["ALGORITHMS", "LARGE", "main"]


@attrs.frozen
class Classic:
    """Threadblocks and steps of a form written by hand, with fused instructions and without; instructions of a rank."""

    threadblocks: int
    steps: tuple[int, int]
    instructions: tuple[int, int]


@attrs.frozen
class Algorithm:
    """What is compiled; ``options`` are the scheduler's."""

    name: str
    topology: str
    collective: str
    scheduler: str
    options: str = ""
    classic: Classic | None = None

    @property
    def text(self) -> str:
        return (
            f"topology net = {self.topology}; collective c = {self.collective} on net; "
            f"schedule c using {self.scheduler}{self.options};"
        )


def _ring(ranks: int, directions: int = 1) -> Classic:
    """Send, pass on sums, then results, receive; unfused: receive, add and send, then receive and send."""
    steps, unfused = 2 * ranks - 1, 1 + 3 * (ranks - 1) + 1 + (2 * ranks - 3)
    return Classic(directions, (steps, unfused), (directions * steps, directions * unfused))


def _allpairs(ranks: int) -> Classic:
    """Of each peer: send its part, add what comes, send the sum, receive; unfused, receives are added after."""
    peers = ranks - 1
    return Classic(peers, (4, 6), (4 * peers, 5 * peers + 1))


def _doubling(peers: int) -> Classic:
    """Of each peer: send all, receive, add; sends and receives of large messages need threadblocks of their own."""
    return Classic(2 * peers, (3, 3), (3 * peers + 1, 3 * peers + 1))


ALGORITHMS = (
    Algorithm("ring 8", "uniring(8)", "allreduce", "ring", classic=_ring(8)),
    Algorithm("ring 16", "uniring(16)", "allreduce", "ring", classic=_ring(16)),
    Algorithm("ring, both ways, 8", "biring(8)", "allreduce", "ring", classic=_ring(8, 2)),
    Algorithm("recursive doubling 8", "hypercube(3)", "allreduce", "recursive-doubling", classic=_doubling(3)),
    Algorithm("recursive doubling 16", "hypercube(4)", "allreduce", "recursive-doubling", classic=_doubling(4)),
    Algorithm("allpairs 8", "complete(8)", "allreduce", "bfb", classic=_allpairs(8)),
    Algorithm("allpairs 4", "complete(4)", "allreduce", "bfb", classic=_allpairs(4)),
    Algorithm("hierarchical 2 x 4", "product(complete(4), complete(2))", "allreduce", "bucket"),
    Algorithm("bfb 3x3x2", "torus(3, 3, 2)", "allreduce", "bfb"),
    Algorithm("hypercube 16", "hypercube(4)", "allreduce", "bfb"),
    Algorithm("circulant 16", "circulant(16, {3, 4})", "allreduce", "bfb"),
    Algorithm("circulant 11", "circulant(11, {2, 3})", "allgather", "bfb"),
    Algorithm("dgx_a100(2) forest", "dgx_a100(2)", "allgather", "forest"),
    Algorithm("dgx_a100(2) forest", "dgx_a100(2)", "allreduce", "forest"),
    Algorithm("swing 4x4", "torus(4, 4)", "allreduce", "swing"),
)

LARGE = (
    Algorithm("torus 8x8", "torus(8, 8)", "allreduce", "bfb"),
    Algorithm("hypercube 64", "hypercube(6)", "allreduce", "bfb"),
    Algorithm("dgx_a100(8)", "dgx_a100(8)", "allgather", "forest"),
    Algorithm("torus 16x16", "torus(16, 16)", "allreduce", "bfb"),
)


def compiled(algorithm: Algorithm, runtime: str) -> tuple[Any, list[str], float]:
    """Return the result, what passes remarked, and the seconds it took."""
    start = time.perf_counter()
    with remarks() as remarked:
        result = collc.compile_source(algorithm.text, target=f"msccl-xml{{runtime={runtime}}}")
    return result, remarked, time.perf_counter() - start


def steps(program: Program) -> int:
    """Return the most steps of a threadblock as runtimes count them: every wait but an instruction's first is one."""
    each = np.maximum(np.diff(program.dep_start.astype(np.int64)), 1)
    total = np.zeros(program.num_blocks, dtype=np.int64)
    np.add.at(total, program.block, each)
    return int(total.max(initial=0))


def row(algorithm: Algorithm, runtime: str) -> dict[str, Any]:
    """Return the numbers of one algorithm for one runtime, or why there are none."""
    found: dict[str, Any] = {"name": algorithm.name, "collective": algorithm.collective, "runtime": runtime}
    try:
        result, remarked, seconds = compiled(algorithm, runtime)
    except collc.CollcError as refused:
        return {**found, "refused": refused.diagnostics[0].message}
    program, (artifact,) = result.program, result.artifacts.values()
    report = verify_text(artifact.text, runtime=runtime)
    strategy = next((text.split()[2] for text in remarked if text.startswith("fuse: strategy")), "")
    found |= {
        "threadblocks": int(np.diff(program.rank_blocks).max()), "steps": steps(program),
        "instructions": round(program.num_instructions / program.num_ranks, 1), "channels": program.num_channels,
        "chunks": program.chunks, "strategy": strategy, "ok": report.ok, "seconds": round(seconds, 2),
        "window": [artifact.text.split(f'{key}="')[1].split('"')[0] for key in ("minBytes", "maxBytes")],
        "uses": [artifact.text.split(f'{key}="')[1].split('"')[0] == "1" for key in ("inplace", "outofplace")],
    }  # fmt: skip
    plain = not PROFILES[runtime].fused
    if algorithm.classic and algorithm.classic.steps[plain] <= PROFILES[runtime].max_steps:
        found["classic"] = [
            algorithm.classic.threadblocks, algorithm.classic.steps[plain], algorithm.classic.instructions[plain]
        ]  # fmt: skip
        ours = (found["threadblocks"], found["steps"], found["instructions"])
        found["exceeds"] = [
            what for what, a, b in zip(("threadblocks", "steps", "instructions"), ours, found["classic"], strict=True)
            if a > b
        ]  # fmt: skip
    return found


def line(found: dict[str, Any]) -> str:
    """Return a file's row of the printed table."""
    head = f"{found['name']:24} {found['collective']:10} {found['runtime']:9}"
    if "refused" in found:
        return f"{head} refused: {found['refused']}"
    classic = "x".join(map(str, found.get("classic", ()))) or "-"
    uses = "+".join(word for word, used in zip(("in", "out"), found["uses"], strict=True) if used)
    most = found["window"][1]
    verdict = ("ok" if found["ok"] else "WRONG") + (
        f" MORE {', '.join(found['exceeds'])}" if found.get("exceeds") else ""
    )
    return (
        f"{head} {found['threadblocks']:>4} {found['steps']:>6} {found['instructions']:>7} {found['channels']:>4} "
        f"{classic:>10} {found['strategy'] or '-':8} {uses:7} {most:>12} {verdict}"
    )


def table(found: list[dict[str, Any]]) -> str:
    """Return a table in Markdown: threadblocks, steps and instructions of each runtime, the classic form's after."""
    head = ["| algorithm | collective | " + " | ".join(PROFILES) + " |", "|---" * (2 + len(PROFILES)) + "|"]
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        cell = "refused"
        if "refused" not in one:
            cell = f"{one['threadblocks']} x {one['steps']}, {one['instructions']:g}"
            if "classic" in one:
                cell += " ({} x {}, {:g})".format(*one["classic"])
            cell += "" if one["ok"] else " WRONG"
        lines.setdefault((one["name"], one["collective"]), {})[one["runtime"]] = cell
    rows = [f"| {name} | {kind} | " + " | ".join(by.values()) + " |" for (name, kind), by in lines.items()]
    return "\n".join([*head, *rows])


def large() -> int:
    """Print the seconds that large networks take, step by step."""
    for algorithm in LARGE:
        for runtime in ("executor", "rccl"):
            result, _, seconds = compiled(algorithm, runtime)
            parts = sorted(result.timings, key=lambda t: -t.seconds)[:4] if hasattr(result, "timings") else ()
            slow = ", ".join(f"{t.step} {t.seconds:.1f}" for t in parts)
            ok = "ok" if all(report.ok for report in getattr(result, "reports", ())) else "WRONG"
            print(f"{algorithm.name:16} {algorithm.collective:10} {runtime:9} {seconds:6.1f} s  {ok}  {slow}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 where a file is wrong or exceeds its classic form."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="names to measure, or their beginnings")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--table", action="store_true", help="in Markdown, as docs/msccl.md has it")
    parser.add_argument("--scale", action="store_true", help="large networks")
    given = parser.parse_args(arguments)
    if given.scale:
        return large()
    if not given.json and not given.table:
        head = f"{'algorithm':24} {'collective':10} {'runtime':9}"
        print(f"{head}  tbs  steps  instr.   ch    classic joined   for           maxBytes")
    bad, rows = 0, list[dict[str, Any]]()
    for algorithm in ALGORITHMS:
        if given.only and not any(algorithm.name.startswith(name) for name in given.only):
            continue
        for runtime in PROFILES:
            found = row(algorithm, runtime)
            bad |= found.get("ok") is False or bool(found.get("exceeds"))
            rows.append(found)
            if not given.table:
                print(json.dumps(found) if given.json else line(found), flush=True)
    if given.table:
        print(table(rows))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
