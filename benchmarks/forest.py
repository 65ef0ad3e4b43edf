"""Spanning-tree packing from boxes of GPUs to 1,024 ranks, phase by phase, beside the reference implementation.

    python benchmarks/forest.py [--only TEXT] [--verify] [--k K]

Large networks with a symmetry have templates, whose seconds are all in `trees`. Every row runs in a process of its own,
so that memory is its own. Seconds are wall time of the phases: the bottleneck cut, links as numbers of trees, switches
out, trees, routes through switches; then of the proof (every tree spans, every link's load within capacity, congestion
equal to the cut). k is the number of trees a rank sends, height the longest path in hops between ranks. The reference's
figures (1/x* in s/GB or per link unit, k, seconds of all phases, height) are those of its Python implementation; -
where it was not run or did not end, + where only its search was.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from fractions import Fraction

import attrs

import collc
from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template


@attrs.frozen
class Row:
    """A network and what the reference says of it: nothing of irregular ones."""

    name: str
    expression: str
    one_over_x: str | None = None
    k: int | None = None
    seconds: float | None = None
    height: int | None = None
    declarations: str = ""


#: 32 boxes of 8 GPUs, one of whose NICs has half the bandwidth
SLOW_NIC = """
topology slow_nic {
  rank gpu[32, 8];
  switch nv[32], ib;
  for b in 0..32, g in 0..8 {
    link gpu[b, g] <-> nv[b] : 300 GB/s;
    if b == 3 and g == 2 { link gpu[b, g] <-> ib : 12.5 GB/s; } else { link gpu[b, g] <-> ib : 25 GB/s; }
  }
}
"""

#: 24 boxes of 8 GPUs and 16 of 4 on one fabric
MIXED_BOXES = """
topology mixed {
  rank large[24, 8], small[16, 4];
  switch big[24], little[16], ib;
  for b in 0..24, g in 0..8 { link large[b, g] <-> big[b] : 450 GB/s; link large[b, g] <-> ib : 50 GB/s; }
  for b in 0..16, g in 0..4 { link small[b, g] <-> little[b] : 300 GB/s; link small[b, g] <-> ib : 25 GB/s; }
}
"""

ROWS = [
    Row("A100 x 1", "dgx_a100(1)", "7/300", 1, 0.10, 7),
    Row("A100 x 2", "dgx_a100(2)", "3/65", 13, 2.53, 11),
    Row("A100 x 4", "dgx_a100(4)", "3/25", 1, 20.1, 18),
    Row("A100 x 8", "dgx_a100(8)", "7/25", 1, 203, 31),
    Row("A100 x 16", "dgx_a100(16)", "3/5", 1),
    Row("A100 x 32", "dgx_a100(32)", "31/25", 1),
    Row("A100 x 64", "dgx_a100(64)", "63/25", 1),
    Row("A100 x 128", "dgx_a100(128)", "127/25", 1),
    Row("A100 x 1280", "dgx_a100(1280)", "1279/25"),
    Row("H100 x 1", "dgx_h100(1)", "7/450", 1, 0.11, 7),
    Row("H100 x 2", "dgx_h100(2)", "3/100", 2, 2.6, 11),
    Row("H100 x 4", "dgx_h100(4)", "31/500", 10, 38.4, 22),
    Row("H100 x 128", "dgx_h100(128)", "127/50", 1),
    Row("H100 rails", "dgx_h100(128, 8)", "127/50"),
    Row("MI250 x 1", "mi250(1)", "7/150", 3, 0.54, 14),
    Row("MI250 x 2", "mi250(2)", "15/166", 83, 32.6, 20),
    Row("MI250 8+8", "subset(mi250(2), {0..8, 16..24})", "1/13", 13, 1.92, 11),
    Row("MI250 x 4", "mi250(4)", "3/16", 8, 281, 35),
    Row("MI250 x 16", "mi250(16)", "15/16", 8),
    Row("MI250 x 64", "mi250(64)", "63/16"),
    Row("DGX-1", "dgx1_v100()", "7/150", 6, 0.12, 5),
    Row("ring 32", "biring(32)", "31/2", 2, 2.4, 31),
    Row("torus 4x4", "torus(4, 4)", "15/4", 4, 0.56, 8),
    Row("torus 8x8", "torus(8, 8)", "63/4", 4, 58.7, 22),
    Row("torus 3x3x2", "torus(3, 3, 2)", "17/6", 6, 1.04, 7),
    Row("torus 16x16", "torus(16, 16)", "255/4", 4),
    Row("torus 32x32", "torus(32, 32)", "1023/4", 4),
    Row("hypercube 4", "hypercube(4)", "15/4", 4, 0.44, 10),
    Row("hypercube 6", "hypercube(6)", "21/2", 2, 40.1, 17),
    Row("hypercube 8", "hypercube(8)", "255/8"),
    Row("hypercube 10", "hypercube(10)", "1023/10"),
    Row("GPU missing", "subset(dgx_a100(32), {0..100, 101..256})"),
    Row("die missing", "subset(mi250(16), {0..100, 101..256})"),
    Row("slow NIC", "slow_nic", declarations=SLOW_NIC),
    Row("2:1 tier", "clustered(dgx_a100(1), 32, 25 GB/s, 4, 2)"),
    Row("mixed boxes", "mixed", declarations=MIXED_BOXES),
]  # fmt: skip


def topology(row: Row) -> Topology:
    """Return the row's network: an expression, or one that is spelled out."""
    if not row.declarations:
        return collc.topology(row.expression)
    return load(row.name, text=row.declarations).topologies[row.expression]


def measure(row: Row, k: int | str, verified: bool) -> dict[str, object]:
    """Synthesize, check against the certificate, and return what to print."""
    network = topology(row)
    phases: dict[str, float] = {}
    last = time.perf_counter()

    def done(phase: str) -> None:
        nonlocal last
        now = time.perf_counter()
        phases[phase] = phases.get(phase, 0.0) + now - last
        last = now

    problem = Problem(network, Collective("allgather", network.num_ranks))
    scheduler = ForestScheduler(k=k, pieces=1)
    forest = template(scheduler, problem)
    if forest is None:
        forest = scheduler.grow(problem, done)
    else:
        done("trees")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    last = time.perf_counter()
    found = cost(forest)
    ok = True
    if verified:
        ok = verify(forest).ok
    done("proof")
    detail = found.forest
    assert detail is not None
    return {
        "phases": phases, "k": detail.k, "trees": detail.trees, "height": detail.max_height,
        "one_over_x": str(detail.one_over_x), "optimal": found.bw_optimal, "ok": ok, "memory": memory,
        "algbw": float(network.num_ranks / detail.one_over_x), "ranks": network.num_ranks,
    }  # fmt: skip


def show(row: Row, found: dict) -> None:  # type: ignore[type-arg]
    """Print a row of the table: what was measured, beside the reference."""
    phases = found["phases"]
    total = sum(seconds for phase, seconds in phases.items() if phase != "proof")
    known = " " if row.one_over_x is None else "!="[Fraction(found["one_over_x"]) == Fraction(row.one_over_x)]
    faster = f"{row.seconds / total:8.0f}x" if row.seconds else "        -"
    split = " ".join(f"{phases.get(p, 0.0):7.3f}" for p in ("optimum", "switches", "trees", "routes", "proof"))
    print(
        f"{row.name:12} {found['ranks']:5} {found['one_over_x']:>8}{known} {found['k']:3} {found['trees']:5}"
        f" {found['height']:3} {found['algbw']:8.2f}  {split} {total:7.3f}  {found['memory']:5.0f}"
        f"  {row.k or '-':>3} {row.height or '-':>3} {row.seconds or '-':>6} {faster}"
        + ("" if found["optimal"] else "  not optimal") + ("" if found["ok"] else "  WRONG"),
        flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--verify", action="store_true", help="execute every forest too (minutes at 1,024 ranks)")
    parser.add_argument("--k", default="optimal", help="trees a rank sends: a number, auto or optimal")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row is not None:
        k = int(options.k) if options.k.isdigit() else options.k
        print(json.dumps(measure(ROWS[options.row], k, options.verify)))
        return
    print(
        "             ranks     1/x*    k trees   h    algbw  optimum switches  trees  routes   proof   total"
        "     MB  reference: k, h, s, ratio"
    )
    for number, row in enumerate(ROWS):
        if options.only.lower() in row.name.lower():
            again = [sys.executable, __file__, "--row", str(number), "--k", options.k]
            run = subprocess.run([*again, *["--verify"] * options.verify], capture_output=True, text=True, check=False)
            if run.returncode:
                print(f"{row.name:12} failed: {run.stderr.strip().splitlines()[-1]}", flush=True)
            else:
                show(row, json.loads(run.stdout))


if __name__ == "__main__":
    main()
