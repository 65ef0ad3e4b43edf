"""The time of a training iteration on several topologies, and the fastest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.training import Iteration, Workload, best_iteration
from collc.ir.diagnostic import Diagnostic, warning
from collc.ir.shown import clipped, counted, shown
from collc.ir.topology import Topology
from collc.passes.finder.networks import Pair, Values, networks

from ..tables.columns import Cell, Table
from ..tables.listed import TRAIN

if TYPE_CHECKING:
    import pandas

__all__ = ["NO_RATE", "Predicted", "Training", "other_sizes", "predict"]

NO_RATE = "no all-to-all rate"


@attrs.frozen(eq=False)
class Predicted:
    """A topology: the best iteration on it, None without an all-to-all rate, and the bound."""

    name: str
    pair: Pair
    found: Iteration | None
    bound: Iteration | None

    def __repr__(self) -> str:
        return shown(self, f"{clipped(self.name)}: {counted(self.pair.ranks, 'rank')}")


@attrs.frozen(eq=False, slots=False)
class Training:
    """The predicted iterations of a workload, one for every topology in ``entries``; ``diagnostics`` are warnings.

    >>> import collc
    >>> found = collc.train("gpt2-xl", ["torus(4, 4)", "hypercube(4)"])
    >>> found, f"{float(found.best.found.time):.3f} s"
    (Training(gpt2-xl on 2 topologies, best torus(4, 4)), '0.600 s')
    """

    workload: Workload
    entries: tuple[Predicted, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {clipped(self.best.name)}"
        count = "1 topology" if len(self.entries) == 1 else f"{len(self.entries)} topologies"
        return shown(self, f"{clipped(self.workload.name)} on {count}{best}")

    @cached_property
    def best(self) -> Predicted | None:
        """The entry of the least time; of equals the first; None if no time is known."""
        known = [(entry.found.time, place) for place, entry in enumerate(self.entries) if entry.found is not None]
        return self.entries[min(known)[1]] if known else None

    @property
    def table(self) -> Table:
        """The rows as ``collc train --csv`` prints them."""
        return Table(TRAIN, [_row(entry, entry is self.best) for entry in self.entries], repr(self))

    def _repr_html_(self) -> str:
        """Return the rows as a table, for notebooks."""
        return self.table._repr_html_()

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas; raise C0028 without pandas."""
        return self.table.to_dataframe()


def predict(
    workload: Workload, topologies: Sequence[tuple[str, Topology]], values: Values,
    watch: Callable[[str, int, int], object] | None = None,
) -> Training:  # fmt: skip
    """Return the iterations of a workload on topologies, each with its name; ``watch`` takes the progress."""
    entries = list[Predicted]()
    for done, (name, topology) in enumerate(topologies):
        if watch is not None:
            watch(f"{name}: times of collectives", done, len(topologies))
        pair = networks(topology, name, values, workload.alltoalls > 0)
        found, bound = best_iteration(workload, pair.network), best_iteration(workload, pair.bound)
        entries.append(Predicted(name, pair, found, bound))
    return Training(workload, tuple(entries), tuple(other_sizes(workload, dict(topologies))))


def other_sizes(workload: Workload, topologies: Mapping[str, Topology]) -> list[Diagnostic]:
    """Return warnings of topologies that have another number of ranks than the workload."""
    return [
        warning("C0991", f"`{name}` has {counted(topology.num_ranks, 'rank')}, `{workload.name}` is for "
                f"{workload.ranks}", notes=["its sizes and times hold for that number of ranks"])
        for name, topology in topologies.items()
        if workload.ranks is not None and workload.ranks != topology.num_ranks
    ]  # fmt: skip


def _row(entry: Predicted, is_best: bool) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "best": is_best, "topology": entry.name, "ranks": entry.pair.ranks, "scheduler": entry.pair.scheduler,
        "bound_us": None if entry.bound is None else float(entry.bound.time) * 1e6,
    }  # fmt: skip
    found = entry.found
    if found is None:
        return {**row, "note": NO_RATE}
    times = {
        "time_us": found.time, "compute_us": found.compute, "exposed_us": found.exposed, "alltoall_us": found.alltoall,
        "allreduce_us": found.allreduce,
    }  # fmt: skip
    row |= {key: float(value) * 1e6 for key, value in times.items()}
    row |= {"time_s": found.time, "bucket_bytes": found.bucket, "allreduces": found.allreduces}
    if entry.bound is not None and entry.bound.time:
        row["over_bound"] = float(found.time / entry.bound.time)
    return row
