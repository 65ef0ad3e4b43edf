"""``collc.train``: a training iteration on several topologies; ``collc.listing``: the names that collc knows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import error
from collc.ir.topology import Topology

from .compiling import Path, shielded
from .driver.watching import Cancel, Progress, watching
from .sweeps import Network, named, numbers
from .tables.columns import Table
from .training.predicting import Training

__all__ = ["listing", "train"]


def train(
    workload: Path,
    topologies: Network | Sequence[Network] | Mapping[str, Network],
    *,
    buckets: str | int | Iterable[str | int] | None = None,
    alpha: str | Fraction | None = None,
    bandwidth: str | Fraction | None = None,
    node_limit: int = 20000,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Training:
    """Predict the time of a training iteration on several topologies, as ``collc train`` does: ``.best``, ``.table``.

    ``workload`` is a JSON file, or a name of ``collc.listing("workloads")``. A topology is an expression, a topology or
    a networkx graph; a mapping names them. ``buckets`` (bytes, or texts) are the capacities of the buckets of
    gradients, instead of the workload's. ``alpha`` (seconds, or ``"10us"``) and ``bandwidth`` (bytes per second out of
    a node, or ``"100Gbps"``) are those of the cost model. Topologies of another number of ranks than the workload's
    give a warning in ``diagnostics``. Raises CollcError, :class:`Cancelled`.

    >>> found = train("gpt2-xl", ["torus(4, 4)", "uniring(16)"])
    >>> found.best.name, len(found.table)
    ('torus(4, 4)', 2)
    """
    from collc.passes.finder.networks import Values

    from .tools.finding import given_sizes
    from .training.named import workload_named
    from .training.predicting import predict

    def work() -> Training:
        found = workload_named(_name_of(workload))
        if capacities := given_sizes(buckets):
            found = attrs.evolve(found, buckets=capacities)
        given = numbers(alpha, bandwidth, None, None)
        return predict(found, _networks(topologies, node_limit), Values(given.alpha, given.bandwidth), watch)

    with watching(progress, cancel) as watch:
        return shielded("train", work)


def _name_of(workload: object) -> str:
    """Return the path or the name of a workload; raise C0001 for what is neither."""
    if not isinstance(workload, (str, os.PathLike)):
        raise error("C0001", f"found {type(workload).__name__} as workload, needed a path or a name", exit_status=2)
    return os.fspath(workload)


def _networks(
    topologies: Network | Sequence[Network] | Mapping[str, Network], node_limit: int
) -> list[tuple[str, Topology]]:
    """Return the topologies with their names; raise C0001 if there is none."""
    from collc.frontends import coll

    found = [
        (name, coll.topology(one, node_limit=node_limit) if isinstance(one, str) else one)
        for name, one in named(topologies).items()
    ]
    if not found:
        raise error("C0001", "found no topology to train on, needed at least one", exit_status=2)
    return found


def listing(kind: str, name: str | None = None) -> Table:
    """Return the names of a kind as a table, or the options of one target, pass or scheduler.

    Kinds are ``targets``, ``passes``, ``schedulers``, ``formats``, ``topologies``, ``codes``, ``schemas`` and
    ``workloads``. Raises CollcError for another kind or an unknown name.

    >>> [row["name"] for row in listing("schedulers", "ring").rows]
    ['schedule', 'rings', 'shape', 'template']
    """
    from .tools.listing import listing as listed

    return shielded("listing", lambda: listed(kind, name))
