"""The optimum of an allreduce by trees on healthy and broken clusters: what proves it, what trees reach, how long.

    python benchmarks/allreduce.py [--boxes 16,128] [--only TEXT] [--limit SECONDS] [--no-trees]

Every row runs in processes of its own. Times are those of large sizes, in ps per byte. The optimum is that of any
allreduce along trees; `equal` is what the best reduce-scatter and the best allgather with equal shards take, `reached`
what the forest of the scheduler takes, both over the optimum. `proof` is the certificate: p parts are a partition with
2 (p-1) crossings, cuts the dual of the program. Seconds are user CPU time: of the optimum with its exact proofs, and of
the forest (`-` if it takes more than the limit).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator

import attrs

import collc
from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum
from collc.passes.synthesis.forest.allreduce_program import composed
from collc.passes.synthesis.forest.scheduler import ForestScheduler


@attrs.frozen
class Row:
    """A cluster of ``boxes`` with a fault: an expression, in which N is the number of boxes.

    RAIL are the links of all boxes to rail 1.
    """

    name: str
    expression: str
    declarations: str = ""


NIC, PORT = "gpu[3, 1] <-> ib", "gpu[3, 1] <-> nv[3]"
BOX = ", ".join(f"gpu[3, {gpu}] <-> ib" for gpu in range(8))
RAILS = "dgx_h100(N, 8)"
PORTS = ", ".join(f"gpu[3, {gpu}] <-> nv[3]" for gpu in range(8))
NICS = ", ".join(f"nic[3, {gpu}] <-> ib[{gpu}]" for gpu in range(8))
FABRIC = "clustered(dgx_h100(1), N, 50 GB/s, 4, 2)"

POD_NIC = "gpu[3, 0, 1] <-> leaf[0]"
POD_BOX, POD_SWITCH = (", ".join(f"gpu[3, 0, {gpu}] <-> {end}" for gpu in range(8)) for end in ("leaf[0]", "nv[3, 0]"))
POD_LEAF = ", ".join(f"gpu[{box}, 0, {gpu}] <-> leaf[0]" for box in range(4) for gpu in range(8))

#: half of the boxes are of an older generation, with slower ports and NICs
MIXED = """
topology mixed {
  rank old[N/2, 8], new[N/2, 8];
  switch a[N/2], h[N/2], ib;
  for b in 0..N/2, g in 0..8 {
    link old[b, g] <-> a[b] : 300 GB/s;
    link old[b, g] <-> ib : 25 GB/s;
    link new[b, g] <-> h[b] : 450 GB/s;
    link new[b, g] <-> ib : 50 GB/s;
  }
}
"""

ROWS = [
    Row("healthy", "dgx_h100(N)"),
    Row("NIC at 25", "degraded(dgx_h100(N), {" + NIC + "}, 1/2)"),
    Row("NIC at 5", "degraded(dgx_h100(N), {" + NIC + "}, 1/10)"),
    Row("dead NIC", "without(dgx_h100(N), {" + NIC + "})"),
    Row("dead GPU", "without(dgx_h100(N), {gpu[3, 1]})"),
    Row("dead port inside", "without(dgx_h100(N), {" + PORT + "})"),
    Row("port at half", "degraded(dgx_h100(N), {" + PORT + "}, 1/2)"),
    Row("slow box", "degraded(dgx_h100(N), {" + BOX + "}, 1/2)"),
    Row("two faults", "degraded(without(dgx_h100(N), {gpu[5, 0]}), {" + NIC + "}, 1/2)"),
    Row("rails", RAILS),
    Row("rails, NIC at 25", "degraded(" + RAILS + ", {nic[3, 1] <-> ib[1]}, 1/2)"),
    Row("rails, NIC at 5", "degraded(" + RAILS + ", {nic[3, 1] <-> ib[1]}, 1/10)"),
    Row("rails, dead NIC", "without(" + RAILS + ", {nic[3, 1]})"),
    Row("rails, dead GPU", "without(" + RAILS + ", {gpu[3, 1]})"),
    Row("rails, dead port", "without(" + RAILS + ", {" + PORT + "})"),
    Row("rails, port at half", "degraded(" + RAILS + ", {" + PORT + "}, 1/2)"),
    Row("rails, port at 45", "degraded(" + RAILS + ", {" + PORT + "}, 1/10)"),
    Row("rails, NVSwitch at half", "degraded(" + RAILS + ", {" + PORTS + "}, 1/2)"),
    Row("rails, dead NVSwitch", "without(" + RAILS + ", {nv[3]})"),
    Row("rails, slow box", "degraded(" + RAILS + ", {" + NICS + "}, 1/2)"),
    Row("rails, slow rail", "degraded(" + RAILS + ", {RAIL}, 1/2)"),
    Row("rails, dead rail", "without(" + RAILS + ", {ib[1]})"),
    Row("mixed boxes", "mixed", MIXED),
    Row("2:1 tier", FABRIC),
    Row("2:1 tier, NIC at 25", "degraded(" + FABRIC + ", {" + POD_NIC + "}, 1/2)"),
    Row("2:1 tier, dead NIC", "without(" + FABRIC + ", {" + POD_NIC + "})"),
    Row("2:1 tier, dead GPU", "without(" + FABRIC + ", {25})"),
    Row("2:1 tier, slow box", "degraded(" + FABRIC + ", {" + POD_BOX + "}, 1/2)"),
    Row("2:1 tier, slow nv", "degraded(" + FABRIC + ", {" + POD_SWITCH + "}, 1/4)"),
    Row("2:1 tier, slow up", "degraded(" + FABRIC + ", {leaf[0] <-> spine}, 1/2)"),
    Row("2:1 tier, slow leaf", "degraded(" + FABRIC + ", {leaf[0] <-> spine, " + POD_LEAF + "}, 1/2)"),
    Row("leaf-spine 2:1", "leaf_spine(N, 8, 4, 2)"),
    Row("leaf-spine, dead up", "without(leaf_spine(N, 8, 4, 2), {leaf[3] <-> spine[1]})"),
]


def topology(row: Row, boxes: int) -> Topology:
    """Return the row's network."""
    rail = ", ".join(f"nic[{box}, 1] <-> ib[1]" for box in range(boxes))
    expression = row.expression.replace("{RAIL}", "{" + rail + "}")
    expression = re.sub(r"\bN\b", str(boxes), expression)
    if not row.declarations:
        return collc.topology(expression)
    return load(row.name, text=row.declarations.replace("N", str(boxes))).topologies[expression]


def user() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def optimum(network: Topology) -> dict[str, object]:
    """Return the optimum, its proof and its time."""
    allreduce_optimum(collc.topology("mesh(2, 3)"))  # load modules
    start = user()
    found = allreduce_optimum(network)
    seconds = user() - start
    if found is None:
        return {"seconds": seconds}
    scale = 1 if network.unit == "B/s" else 10**9
    parts = found.partition and len(found.partition.parts)
    return {
        "seconds": seconds, "time": float(10**12 / (found.value * scale)), "columns": found.columns,
        "equal": float(found.value / composed(network)), "trees": found.division.trees,
        "roots": sorted(set(found.division.roots)), "per_second": str(found.value * scale),
        "proof": f"{parts} parts" if parts else f"{len(found.cuts)} cut{'s' * (len(found.cuts) > 1)}",
    }  # fmt: skip


def trees(network: Topology) -> dict[str, object]:
    """Return what the scheduler's forest takes, and what it is like."""
    start = user()
    forest = ForestScheduler().run(Problem(network, Collective("allreduce", network.num_ranks)))
    seconds, found = user() - start, cost(forest)
    detail = found.forest
    assert detail is not None
    best = allreduce_optimum(network)
    reached = None if best is None else float(found.time_per_byte * best.value)
    return {"seconds": seconds, "reached": reached, "distinct": detail.trees, "height": detail.max_height}


def run(number: int, boxes: int, what: str, limit: float) -> dict | None:  # type: ignore[type-arg]
    """Return what a process of its own found, or None if it took too long; an error's last line ends the row."""
    again = [sys.executable, __file__, "--row", str(number), "--boxes", str(boxes), "--what", what]
    try:
        done = subprocess.run(again, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout))


def lines(sizes: list[int], only: str, limit: float, with_trees: bool) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        f"{'cluster':>7} {'fault':<23} {'ps/B':>9} {'equal':>7} {'proof':>10} {'unknowns':>8} {'trees':>7} {'s':>6}"
        f"   {'reached':>7} {'distinct':>8} {'height':>6} {'s':>7}"
    )
    for boxes in sizes:
        for number, row in enumerate(ROWS):
            if only.lower() not in row.name.lower():
                continue
            best = run(number, boxes, "optimum", limit)
            packed = run(number, boxes, "trees", limit) if with_trees else None
            yield f"{boxes:>4}x8  {row.name:<23} {_optimum(best)}   {_trees(packed)}"


def _optimum(found: dict | None) -> str:  # type: ignore[type-arg]
    if found is None or "time" not in found:
        return "-" if found is None else str(found.get("error", "too large"))
    return (
        f"{found['time']:9.5f} {found['equal']:7.4f} {found['proof']:>10} {found['columns']:8} {found['trees']:7}"
        f" {found['seconds']:6.2f}"
    )


def _trees(found: dict | None) -> str:  # type: ignore[type-arg]
    if found is None or "error" in found:
        return "-" if found is None else str(found["error"])
    reached = "-" if found["reached"] is None else f"{found['reached']:.4f}"
    return f"{reached:>7} {found['distinct']:8} {found['height']:6} {found['seconds']:7.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--boxes", default="16,128", help="numbers of boxes of 8 GPUs")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a cell, else it is `-`")
    parser.add_argument("--no-trees", action="store_true", help="the optimum alone")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--what", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(size) for size in options.boxes.split(",")]
    if options.row is not None:
        network = topology(ROWS[options.row], sizes[0])
        print(json.dumps(optimum(network) if options.what == "optimum" else trees(network)))
        return
    for line in lines(sizes, options.only, options.limit, not options.no_trees):
        print(line, flush=True)


if __name__ == "__main__":
    main()
