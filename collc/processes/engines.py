"""What runs the units of a long search: processes of this machine, a Dask cluster, or the ranks of an MPI program.

Results do not depend on the engine or its number of workers, because a unit of work depends only on its arguments.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import attrs

from collc.ir.diagnostic import CollcError, error

from .workers import Renewable, cores, pool

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

__all__ = ["Engine", "Processes", "engine", "executing", "parse_engine"]

P = ParamSpec("P")
T = TypeVar("T")
_FORMS = "processes, processes:N, dask:tcp://HOST:PORT or mpi"
_SECONDS = 10  # to reach a scheduler


@attrs.frozen
class Engine:
    """A kind of workers: ``processes`` with their number (0: one per processor), ``dask`` with an address, ``mpi``."""

    kind: str
    workers: int = 0
    address: str = ""


def parse_engine(text: str) -> Engine:
    """Return the engine of ``--executor``; raise C0036 for a text that names none.

    >>> parse_engine("processes:4"), parse_engine("dask:tcp://head:8786").address
    (Engine(kind='processes', workers=4, address=''), 'tcp://head:8786')
    """
    kind, _, rest = text.partition(":")
    if text in ("processes", "mpi"):
        return Engine(text)
    if kind == "processes" and re.fullmatch(r"[1-9][0-9]{0,3}", rest):
        return Engine(kind, int(rest))
    if kind == "dask" and re.fullmatch(r"[a-z]+://\S+", rest):
        return Engine(kind, address=rest)
    raise error("C0036", f"found executor `{text}`, needed {_FORMS}", exit_status=2)


@contextlib.contextmanager
def engine(chosen: Engine) -> Iterator[Executor | None]:
    """Yield an executor with the workers of an engine; None if the work runs in this process.

    Raises C0036 (a package that is not installed) and C0037 (no cluster, or not started as an MPI program).
    """
    if chosen.kind == "dask":
        with _dask(chosen.address) as executor:
            yield executor
    elif chosen.kind == "mpi":
        with _mpi() as executor:
            yield executor
    elif (chosen.workers or cores()) == 1:
        yield None
    else:
        with Processes(chosen.workers or cores()) as executor:
            yield executor


@contextlib.contextmanager
def executing(given: Executor | str | None) -> Iterator[Executor | None]:
    """Yield an executor for ``executor=`` of the API: itself, or the engine that a text names. Raises C0036."""
    if not (given is None or isinstance(given, str) or callable(getattr(given, "submit", None))):
        raise error("C0036", f"found executor {given!r}, needed an executor or the name of an engine", exit_status=2)
    if not isinstance(given, str):
        yield given
        return
    with engine(parse_engine(given)) as executor:
        yield executor


# ---- processes


class Processes(Renewable):
    """At least two processes of this machine, inside of a ``with`` block; :meth:`renew` starts others."""

    ends_calls = True

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._open = contextlib.ExitStack()
        self._pool: Executor | None = None

    def __enter__(self) -> Processes:
        self.renew()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, place: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, problem, place)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Return the future result of a call in one of the processes."""
        assert self._pool is not None
        return self._pool.submit(function, *args, **kwargs)

    def renew(self) -> None:
        """End what is left of the processes, and start others."""
        self._open.close()
        self._pool = self._open.enter_context(pool(self.workers))


# ---- engines that are packages


def _package(name: str, install: str) -> ModuleType:
    """Return an imported module; raise C0036 with the command that installs it."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as problem:
        raise error(
            "C0036", f"this executor needs the package `{name.partition('.')[0]}`: {problem}",
            hint=f"pip install {install}",
        ) from None  # fmt: skip


class _Cluster(Renewable):
    """The workers of a Dask cluster. The scheduler gives the work of a lost worker to others."""

    def __init__(self, inner: Executor, lost: tuple[type[BaseException], ...]) -> None:
        self.inner, self.lost = inner, lost

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self.inner.submit(function, *args, **kwargs)

    def result(self, future: Future[T]) -> T:
        """Return the result of a call.

        If its worker ends while Dask reads the result, Dask takes the result for an exception, and raises TypeError.
        """
        try:
            return future.result()
        except TypeError as problem:
            if _raised_in(problem) == "distributed.cfexecutor":
                raise BrokenExecutor("a worker ended while its result was read") from problem
            raise

    def renew(self) -> None:
        """Do nothing: the next calls go to the workers that the scheduler has then."""


def _raised_in(problem: BaseException) -> str:
    """Return the module whose code raised an exception."""
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return "" if place is None else str(place.tb_frame.f_globals.get("__name__"))


@contextlib.contextmanager
def _dask(address: str) -> Iterator[Executor]:
    distributed = _package("distributed", "'collc[dask]'")
    from logging import ERROR, getLogger

    getLogger("distributed").setLevel(ERROR)  # one message, ours
    try:
        client = distributed.Client(address, timeout=f"{_SECONDS}s")
    except (OSError, ValueError) as problem:
        raise _unreachable(address, problem) from None
    lost = (distributed.scheduler.KilledWorker, distributed.client.FutureCancelledError, CancelledError, BrokenExecutor)
    with contextlib.closing(client):
        yield _Cluster(client.get_executor(pure=False), lost)


def _unreachable(address: str, problem: Exception) -> CollcError:
    return error(
        "C0037", f"no Dask scheduler answers at `{address}`", notes=[str(problem).partition("\n")[0][:200]],
        hint="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
    )  # fmt: skip


@contextlib.contextmanager
def _mpi() -> Iterator[Executor]:
    futures = _package("mpi4py.futures", "'collc[mpi4py]' mpich")
    shared = _package("mpi4py.futures._core", "'collc[mpi4py]' mpich")
    if getattr(shared, "SharedPool", None) is None:
        raise error(
            "C0037", "the executor `mpi` needs the ranks of an MPI program, found one process",
            hint="mpiexec -n 4 python -m mpi4py.futures -m collc .. --executor mpi",
        )  # fmt: skip
    with futures.MPIPoolExecutor() as executor:
        yield executor
