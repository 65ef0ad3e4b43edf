"""Compare what `auto` chooses with every schedule that the schedulers make, on 26 networks at 6 sizes.

    python benchmarks/auto.py [--only TEXT ..] [--collective allgather ..] [--limit 1.01] [--rows]

A candidate is a scheduler with its options, and the best number of pieces at the size. The times are the exact ones
that `auto` compares. Prints the worst ratio of each network and collective, and all rows above the limit; exits with 1
if there is one. `exact`, `general` and `thorough` run on few ranks only, and
all candidates with limited work. `--only` selects networks whose names contain a text; `--rows` prints all rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import attrs

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.effort import EffortSpent, limited
from collc.ir.spec import Problem
from collc.messages.internal import is_fatal
from collc.passes.applying import require_listed
from collc.passes.schedulers import SCHEDULERS
from collc.registry.classes import pass_class
from collc.selection import Auto, Memory, Selector
from collc.selection.measure import MeasuredForest, Model
from collc.selection.selector import ChoosesPieces, GrowsForest

NETWORKS = (
    "dgx_a100(1)", "dgx_a100(2)", "dgx_a100(4)", "dgx_h100(2)", "dgx_h100(4)", "mi250(1)", "mi250(2)", "gb200_nvl72(1)",
    "torus(4, 4)", "torus(3, 5)", "torus(2, 4, 4)", "hypercube(4)", "biring(8)", "uniring(9)",
    "generalized_kautz(4, 12)", "jellyfish(16, 4)", "fat_tree(4)", "leaf_spine(2, 4, 2, 2)", "dragonfly(2, 2, 1)",
    "degraded(dgx_h100(2), {gpu[0, 1] <-> ib}, 1/2)", "mesh(3, 4)", "complete(8)",
    "torus(8, 8)", "dgx_a100(8)", "hypercube(6)", "jellyfish(64, 4)",
)  # fmt: skip
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall", "broadcast")
SIZES = (1 << 10, 32 << 10, 1 << 20, 32 << 20, 256 << 20, 1 << 30)

#: steps of work and transfers of one candidate, which `auto` does not exceed either
_EFFORT, _TRANSFERS = 1 << 26, 1 << 20
_PIPELINES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
#: the ranks up to which integer programs and searches by column take seconds
_FEW = {"exact": 8, "general": 32}
_THOROUGH = 9
_NONE = (None,)

#: scheduler -> the values of its options; the numbers of pieces are found for each size
OPTIONS: dict[str, dict[str, Sequence[object]]] = {
    "bfb": {"relax": (True, False), "chunks": (None, 1, 2, 4)},
    "double-binary-tree": {"one_port": (False, True), "routed": (True, False)},
    "expansion": {"base": ("bfb", "ring", "forest")},
    "exact": {"objective": ("latency", "bandwidth")},
    "flow": {"chunks": (None, 1, 2, 4, 8), "thorough": (False, True)},
    "forest": {"k": (*range(1, 11), "optimal", "fewest", "auto"), "via": ("reduce-scatter", "reduce"),
               "division": ("free", "equal")},
    "general": {"objective": ("time", "latency", "bandwidth")},
    "swing": {"variant": ("auto", "bandwidth", "latency"), "ports": ("all", 1), "reparent": ("auto", True, False),
              "fold": (True, False), "identical": (True, False)},
    "recursive-doubling": {"mirrored": (False, "neg", "reflect")},
    "rabenseifner": {"mirrored": (False, "neg", "reflect")},
    "bucket": {},
    "ring": {"schedule": ("traditional", "bfb"), "rings": ("auto", "nics", 1, 2, 3, 4)},
    "bine": {"variant": ("auto", "bandwidth", "latency"), "order": ("doubling", "halving")},
    "pat": {"buffer": (None, 1, 2, 4, 8)},
    "trivance": {"variant": ("auto", "bandwidth", "latency")},
    "box-trees": {"channels": (None, 1, 2, 4, 8)},
    "nccl-rings": {"rings": ("auto", 1, 2, 4, 8), "fabric": (False, True)},
    "two-level": {"across": ("ring", "pat")},
    "two-tier": {"rounds": (True, False), "slices": (None, 1, 2, 4), "chunks": (None, 1, 2, 4)},
}  # fmt: skip


@attrs.frozen
class Row:
    """The algorithm and seconds of `auto`, and of the fastest candidate, at a size."""

    network: str
    collective: str
    size: int
    chosen: str
    seconds: Fraction
    best: str
    least: Fraction

    @property
    def ratio(self) -> Fraction:
        """The time of `auto` by that of the fastest candidate."""
        return self.seconds / self.least

    def __str__(self) -> str:
        place = f"{self.network:48} {self.collective:15} {self.size:>11,}"
        times = f"{self.chosen} {float(self.seconds) * 1e6:.6g} us, {self.best} {float(self.least) * 1e6:.6g} us"
        return f"{place} {float(self.ratio):.4f}  {times}"


def rows(network: str, kind: str, schedulers: Sequence[str]) -> list[Row]:
    """Return the rows of a collective on a network, one for each size."""
    graph, model, memory = topology(network), Model.of(Auto()), Memory()
    problem = Problem(graph, Collective(kind, graph.num_ranks, 0 if kind == "broadcast" else None))
    best: dict[int, tuple[Fraction, str]] = {}
    for scheduler, options in candidates(graph.num_ranks, kind, schedulers):
        text = ", ".join(f"{name}: {value}" for name, value in options.items() if value is not None)
        for size, seconds, more in times(problem, scheduler, options, model):
            best[size] = min(best.get(size, (seconds, "~")), (seconds, f"{scheduler} {{ {text}{more} }}"))
    found = []
    for size in SIZES:
        chosen = Selector(problem.sized(size), Auto(), "c", memory).choose({})
        seconds = chosen.at(size)
        least, name = min(best.get(size, (seconds, "auto")), (seconds, "auto"))
        found.append(Row(network, kind, size, chosen.intervals[0].algorithm.name, seconds, name, least))
    return found


def candidates(ranks: int, kind: str, schedulers: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield all schedulers with their options, but for numbers of pieces."""
    fixed: dict[str, Sequence[object]] = {"thorough": (False,)} if ranks > _THOROUGH else {}
    fixed |= {"via": ("reduce-scatter",), "division": ("free",)} if kind != "allreduce" else {}
    for scheduler, values in OPTIONS.items():
        if (not schedulers or scheduler in schedulers) and ranks <= _FEW.get(scheduler, ranks):
            values = {name: fixed.get(name, tried) for name, tried in values.items()}
            for choice in product(*values.values()):
                found = dict(zip(values, choice, strict=True))
                if found.get("variant") != "bandwidth" or (found.get("fold", True) and found.get("identical", True)):
                    yield scheduler, found


def times(
    problem: Problem, scheduler: str, options: dict[str, object], model: Model
) -> Iterator[tuple[int, Fraction, str]]:
    """Yield (size, seconds, options of the pieces) of a scheduler; nothing if it does not apply."""
    try:
        require_listed(scheduler, problem)
        with limited(_EFFORT):
            yield from _times(problem, scheduler, options, model)
    except CollcError as mistake:
        if is_fatal(mistake):
            raise
    except EffortSpent:
        pass


def _times(
    problem: Problem, scheduler: str, options: dict[str, object], model: Model
) -> Iterator[tuple[int, Fraction, str]]:
    make = pass_class(scheduler)
    one = make(**options)
    estimate = one.num_transfers(problem, _TRANSFERS)
    if estimate is not None and estimate > _TRANSFERS:
        return
    if isinstance(one, GrowsForest):
        forest = MeasuredForest.of(one.grow(problem), model)
        for size in SIZES:
            (pieces,) = forest.pieces([size])
            yield size, forest.measure(pieces).times.at(size), f", pieces: {pieces}"
    elif isinstance(one, ChoosesPieces) and "pipeline" in attrs.fields_dict(make):
        for pieces in sorted({*_PIPELINES, *(one.pieces(problem.sized(size)) for size in SIZES)}):
            found = model.measure(make(**options, pipeline=pieces), problem).times
            yield from ((size, found.at(size), f", pipeline: {pieces}") for size in SIZES)
    elif one.plans_by_size(problem):
        for size in SIZES:
            yield size, model.measure(one, problem.sized(size)).times.at(size), ""
    else:
        found = model.measure(one, problem).times
        yield from ((size, found.at(size), "") for size in SIZES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--scheduler", nargs="*", default=(), choices=list(OPTIONS))
    parser.add_argument("--collective", nargs="*", default=COLLECTIVES, choices=COLLECTIVES)
    parser.add_argument("--limit", type=Fraction, default=Fraction(101, 100))
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    missing = set(SCHEDULERS.own) - set(OPTIONS) - {"auto", "steps"}
    assert not missing, f"schedulers without options here: {sorted(missing)}"
    above, worst = list[Row](), list[Row]()
    for network in NETWORKS:
        if options.only and not any(text in network for text in options.only):
            continue
        for kind in options.collective:
            start = time.perf_counter()
            found = rows(network, kind, options.scheduler)
            worst.append(max(found, key=lambda row: row.ratio))
            shown = found if options.rows else [row for row in found if row.ratio > options.limit]
            above += [row for row in found if row.ratio > options.limit]
            for row in shown:
                print(row)
            took = time.perf_counter() - start
            print(f"{network:48} {kind:15} worst {float(worst[-1].ratio):.4f}", flush=True)
            print(f"{network} {kind}: {took:.1f} s", file=sys.stderr, flush=True)
    if worst:
        print(f"worst of {len(worst) * len(SIZES)} rows: {float(max(row.ratio for row in worst)):.4f}, "
              f"{len(above)} above {float(options.limit):g}")  # fmt: skip
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
