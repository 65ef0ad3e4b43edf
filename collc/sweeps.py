"""``collc.sweep``: many collectives on many networks by many schedulers, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from collc.ir.topology import Topology

from .compiling import Path, Verify, network, shielded, store_of, verify_mode
from .driver.watching import Cancel, Progress, watching
from .messages import quantities

if TYPE_CHECKING:
    import networkx

    from .sweeping.cases import Prediction
    from .sweeping.sweep import Sweep

#: a network by an expression of the language, or itself
Network: TypeAlias = "str | Topology | networkx.Graph"

__all__ = ["Network", "named", "numbers", "sweep"]


def sweep(
    networks: Network | Sequence[Network] | Mapping[str, Network],
    collectives: str | Sequence[str],
    schedulers: str | Sequence[str] = ("auto",),
    *,
    sizes: str | int | Iterable[str | int] | None = None,
    alpha: str | Fraction | None = None,
    bandwidth: str | Fraction | None = None,
    gamma: str | Fraction | None = None,
    launch: str | Fraction | None = None,
    node_limit: int = 20000,
    verify: Verify = "each",
    cache: bool | Path = False,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Sweep:
    """Predict the times of every collective on every network by every scheduler, at every size, as one table.

    A network is an expression (``"torus(4, 4)"``), a topology or a networkx graph; a mapping names them. A collective
    may have attributes: ``"broadcast { root: 3 }"``. A scheduler may have options: ``"forest{k=2}"``. ``sizes`` (bytes,
    or texts such as ``"1KiB..1GiB"``; default 1 KiB, 1 MiB and 1 GiB), ``alpha``, ``bandwidth``, ``gamma`` and
    ``launch`` are as in ``collc cost``: texts with units, or seconds, bytes per second and seconds a byte.

    A case that cannot be scheduled is a row with a code and a message; it does not raise. ``executor`` is an executor,
    or an engine as on the command line: ``"processes:4"``, ``"dask:tcp://head:8786"``, ``"mpi"``. Rows are the same for
    all. ``cache`` keeps the rows of every finished case, so that an interrupted sweep continues. Raises
    CollcError for unknown names and wrong values, :class:`Cancelled`.

    >>> found = sweep("hypercube(3)", ["allgather", "alltoall"], ["bfb"], sizes="1KiB,1MiB", alpha="1us")
    >>> [(row.collective, row.size, float(row.time)) for row in found.rows if row.time is not None]
    [('allgather', 1024, 3.07168e-06), ('allgather', 1048576, 7.640032e-05)]
    """
    from .processes.engines import executing
    from .processes.workers import Work
    from .sweeping.sweep import cases, run_cases

    def work() -> Sweep:
        planned = cases(
            named(networks), _listed(collectives), _listed(schedulers), _sizes(sizes),
            numbers(alpha, bandwidth, gamma, launch), node_limit=node_limit, verify=verify_mode(verify),
        )  # fmt: skip
        store = store_of(cache)
        with executing(executor) as engine:
            return run_cases(planned, Work(engine, watch), store)

    with watching(progress, cancel) as watch:
        return shielded("sweep", work)


def _listed(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def named(given: Network | Sequence[Network] | Mapping[str, Network]) -> dict[str, str | Topology]:
    """Return networks by name: that of the mapping, or the expression, or the topology's own."""
    if isinstance(given, Mapping):
        return {name: one if isinstance(one, str) else network(one) for name, one in given.items()}
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    found: dict[str, str | Topology] = {}
    for one in listed:
        known = one if isinstance(one, str) else network(one)
        name = known if isinstance(known, str) else known.name
        found[name if name not in found or isinstance(known, str) else f"{name} ({len(found) + 1})"] = known
    return found


def _sizes(given: str | int | Iterable[str | int] | None) -> list[int]:
    from .messages.size_ranges import sizes
    from .sweeping.sweep import DEFAULT_SIZES
    from .tools.finding import whole

    if given is None:
        return list(DEFAULT_SIZES)
    listed = [given] if isinstance(given, (str, int)) else list(given)
    return [size for one in listed for size in (sizes(one, "sizes") if isinstance(one, str) else [whole("sizes", one)])]


def numbers(
    alpha: str | Fraction | None, bandwidth: str | Fraction | None, gamma: str | Fraction | None,
    launch: str | Fraction | None,
) -> Prediction:  # fmt: skip
    """Return the numbers of the cost model: texts with units, or seconds, bytes per second and seconds a byte."""
    from .sweeping.cases import Prediction
    from .tools.finding import rational

    def value(name: str, given: str | Fraction | None, least: int = 0) -> Fraction | None:
        if given is None or not isinstance(given, str):
            return None if given is None else rational(name, given, least)
        read = {"bandwidth": quantities.bandwidth, "gamma": quantities.gamma}.get(name, quantities.time)
        return read(given, name)

    return Prediction(
        value("alpha", alpha), value("bandwidth", bandwidth, 1), value("gamma", gamma), value("launch", launch)
    )  # fmt: skip
