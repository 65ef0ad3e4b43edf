"""``collc.run``: compile a file, run it over an MPI, check every element, time it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.diagnostic import error

from .compiling import Level, Param, Path, Verify, loading_of, recipe_of, shielded, verify_mode
from .driver.watching import Cancel, Progress, Watch, watching
from .running.calls import Calls
from .running.result import Run
from .sweeps import numbers

if TYPE_CHECKING:
    import networkx

    from collc.ir.topology import Topology

    from .driver.result import Settings
    from .reading.loading import Loading

__all__ = ["run"]


def run(
    path: Path,
    *,
    sizes: str | int | Iterable[str | int] | None = None,
    counts: int | Iterable[int] = (),
    dtypes: str | Iterable[str] = (),
    ops: str | Iterable[str] = (),
    places: str | Iterable[str] = (),
    repeats: int = 5,
    warmup: int = 1,
    compare: bool = False,
    mpi: Path | None = None,
    testbed: str | Fraction | None = None,
    delay: str | Fraction | None = None,
    alpha: str | Fraction | None = None,
    bandwidth: str | Fraction | None = None,
    timeout: float = 300,
    params: Mapping[str, Param] | None = None,
    topologies: Mapping[str, Topology | networkx.Graph] | None = None,
    include_path: Sequence[Path] = (),
    collective: str | Sequence[str] = (),
    level: Level = 2,
    passes: str | None = None,
    disable_passes: Iterable[str] = (),
    verify: Verify = "each",
    node_limit: int = 20000,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Run:
    """Compile a file, build it, run it over MPI, check every element and time it, as ``collc run`` does.

    ``path`` is a ``.coll`` file, an MSCCL-XML file or a printed program. ``sizes`` (bytes of the whole vector, or texts
    such as ``"1KiB..1MiB"``), ``counts`` (arguments of the calls), ``dtypes``, ``ops`` and ``places`` (``"in"``,
    ``"out"``) choose the calls; the defaults are those of ``collc run``. Each call is repeated ``repeats`` times after
    ``warmup`` untimed calls. ``compare`` also times the MPI's own collective. ``mpi`` is a name (``"mpich"``), a folder
    or an ``mpicc``. ``testbed`` (a rate such as ``"40Mbps"``) runs on an emulated network, ``delay`` is the latency of
    its links. ``alpha`` and ``bandwidth`` are for predictions. ``timeout`` (seconds) is for each program. The other
    options are those of ``collc.compile``. Set variables for the MPI in ``os.environ``.

    A wrong element does not raise: the result's ``ok`` is false. Raises CollcError if a collective cannot be compiled
    (with its code) or does not run (C0701 to C0709), :class:`Cancelled` between two steps or programs.

    >>> import collc
    >>> from collc.ir.diagnostic import CollcError
    >>> try:
    ...     collc.run("sums.coll", places="inside")
    ... except CollcError as problem:
    ...     print(problem.diagnostics[0].message)
    `places` needs `in` or `out`, found `inside`
    """
    from .tools.finding import given_sizes

    def work() -> Run:
        settings = _settings(level, passes, disable_passes, verify)
        calls = _calls(
            Calls(
                _counts(counts), given_sizes(sizes), _listed(dtypes), _listed(ops), _places(places), repeats, warmup,
                compare, timeout,
            ),
            alpha, bandwidth, testbed, delay,
        )  # fmt: skip
        loading = loading_of(params, topologies, include_path, node_limit)
        return _run(os.fspath(path), loading, _listed(collective), settings, calls, mpi, watch)

    with watching(progress, cancel) as watch:
        return shielded("run", work)


def _run(
    path: str, loading: Loading, only: tuple[str, ...], settings: Settings, calls: Calls, mpi: Path | None,
    watch: Watch | None,
) -> Run:  # fmt: skip
    from collc.backends.mpi_c.installed import choose

    from .driver.compilation import make_jobs, run_jobs
    from .files.texts import read_text
    from .reading import reader_of
    from .reading.base import ReadOptions
    from .registry.elements import Element
    from .running.over_mpi import arranged, run_collective

    text = read_text(path)
    reader = reader_of(text, path, "run")
    spec, start = reader.load(text, path, ReadOptions(loading, only))
    jobs, warnings = make_jobs(spec, (Element("mpi-c"),), only if reader.names_collective else (), start)
    chosen = choose(None if mpi is None else os.fspath(mpi))
    compiled = run_jobs(jobs, arranged(settings, start), progress=watch, observer=watch)
    report = watch or (lambda what: None)
    results = [part for one in compiled for part in run_collective(one, chosen, calls, report)]
    found = [*spec.warnings, *warnings, *(warning for one in compiled for warning in one.warnings)]
    return Run(tuple(results), tuple(found))


# ---- arguments


def _settings(level: Level, passes: str | None, disabled: Iterable[str], verify: Verify) -> Settings:
    from .driver.result import Settings

    return Settings(recipe_of(level, passes, disabled), verify_mode(verify))


def _calls(
    calls: Calls, alpha: str | Fraction | None, bandwidth: str | Fraction | None, testbed: str | Fraction | None,
    delay: str | Fraction | None,
) -> Calls:  # fmt: skip
    """Return the calls with the numbers of predictions and of a testbed."""
    import attrs

    if delay is not None and testbed is None:
        raise error("C0001", "`delay` is for links of a testbed", hint="give `testbed`", exit_status=2)
    known, wires = numbers(alpha, bandwidth, None, None), numbers(delay, testbed, None, None)
    return attrs.evolve(
        calls, alpha=known.alpha, bandwidth=known.bandwidth, testbed=wires.bandwidth, delay=wires.alpha or Fraction(0)
    )


def _places(given: str | Iterable[str]) -> tuple[str, ...]:
    found = _listed(given)
    for place in found:
        if place not in ("in", "out"):
            raise error("C0001", f"`places` needs `in` or `out`, found `{place}`", exit_status=2)
    return found


def _counts(given: int | Iterable[int]) -> tuple[int, ...]:
    from .tools.finding import whole

    return tuple(whole("count", one) for one in (given if isinstance(given, Iterable) else (given,)))


def _listed(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given)
