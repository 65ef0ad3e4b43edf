"""The result of a compilation, as the API returns it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import attrs

from collc.backends.base import Artifact
from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import Diagnostic, error, nearest
from collc.ir.levels import Scheduled
from collc.ir.quantities import sizes_in_bytes
from collc.ir.shown import clipped, counted, shown
from collc.ir.spec import Spec
from collc.ir.symmetric_program import AnyProgram
from collc.ir.topology import Topology

from .driver.result import CollectiveResult
from .files.naming import name_files
from .files.texts import Output, check_writable, write_all

if TYPE_CHECKING:
    import pandas

    from collc.frontends.coll.faults import Fault

    from .driver.blocks import Block
    from .driver.replan import FaultCost
    from .driver.simulated import Simulated
    from .tables.columns import Table

__all__ = ["Result"]


@attrs.frozen(eq=False)
class Result:
    """The result of a compilation: one :class:`CollectiveResult` per collective, by name.

    ``diagnostics`` are the warnings, ``faults`` those for which ``collc.replan`` compiled it, ``blocks`` the
    collectives that run together. ``schedule``, ``program``, ``cost`` and ``simulate()`` are those of an only
    collective; of several, use ``result[NAME]``.
    Iteration yields the results of the collectives in order.

    >>> import collc
    >>> text = "collective sums = allreduce on biring(4); collective parts = allgather on biring(4);"
    >>> result = collc.compile_source(text)
    >>> [one.name for one in result], len(result), "sums" in result, result["parts"].cost.T_L
    (['sums', 'parts'], 2, True, 2)
    >>> result.cost
    Traceback (most recent call last):
    collc.ir.diagnostic.CollcError: error: there are 2 collectives (sums, parts), each with its own cost [C0019]
    """

    spec: Spec
    collectives: dict[str, CollectiveResult]
    diagnostics: tuple[Diagnostic, ...] = ()
    faults: tuple[Fault, ...] = ()
    blocks: tuple[Block, ...] = ()

    def __iter__(self) -> Iterator[CollectiveResult]:
        return iter(self.collectives.values())

    def __len__(self) -> int:
        return len(self.collectives)

    def __contains__(self, name: object) -> bool:
        return name in self.collectives

    def __getitem__(self, name: str) -> CollectiveResult:
        if name in self.collectives:
            return self.collectives[name]
        known = self.collectives
        hint = nearest(str(name), known) or f"there are {', '.join(known)}"
        raise error("C0016", f"there is no collective `{clipped(str(name))}`", hint=hint, exit_status=2)

    def __repr__(self) -> str:
        if len(self) == 1:
            one = next(iter(self))
            return shown(self, f"{clipped(one.name)}: {one.summary}")
        return shown(self, f"{counted(len(self), 'collective')}: {', '.join(map(clipped, self.collectives))}")

    def _repr_html_(self) -> str:
        """Return the collectives as a table, for notebooks."""
        from collc.ir.html import html_table

        rows = [(one.name, one.summary, ", ".join(file.target for file in one.artifacts)) for one in self]
        return html_table(counted(len(self), "collective"), ("name", "schedule", "targets"), rows)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a row for every collective, with its exact cost, as a data frame of pandas; C0028 without pandas."""
        from .driver.frames import frame_of

        return frame_of([one.row for one in self])

    def table(self, name: str = "schedules", sizes: int | str | Iterable[int | str] | None = None) -> Table:
        """Return a table of the compiled schedules, by the names of ``collc cost --table``.

        ``schedules`` has a row for each, with its cost and bounds, ``points`` its predicted time at every size (bytes,
        or texts; default: the collective's own), ``tried`` numbers of trees; ``auto``, ``candidates`` and ``skipped``
        what `auto` chose and compared; ``roots`` and ``orbits`` the collectives with several roots; ``together`` and
        ``parts`` those that run together. Raises C0019 for another name.

        >>> import collc
        >>> result = collc.compile_source("collective c = broadcast on biring(4) { root: all };")
        >>> [(row["planned"], row["served"]) for row in result.table("orbits").rows]
        [(0, '0..4')]
        """
        from .costing.points import Pricing
        from .costing.tables import cost_tables
        from .driver.whole import wholes
        from .tables.columns import require_table

        results = [one for one in self if one.schedule is not None]
        pricing = Pricing(() if sizes is None else sizes_in_bytes(sizes))
        found = cost_tables(results, lambda: list(wholes(self.blocks, results)), pricing, lambda one, _: one)
        return found[require_table(name, found)]()

    @property
    def schedule(self) -> Scheduled:
        """The schedule of the one collective; of a large symmetric network its template."""
        found = self._only("schedule").schedule
        if found is None:
            raise error("C0019", "there is no schedule: the compilation began with a program")
        return found

    @property
    def program(self) -> AnyProgram:
        """The program of the one collective for its first target; of a large symmetric network its template."""
        found = self._only("program").program
        if found is None:
            raise error("C0019", "there is no program: the compilation ended with a schedule")
        return found

    @cached_property
    def cost(self) -> Cost:
        """Steps, bandwidth time and bounds of the one collective, exact; ``cost.time(size)`` predicts seconds."""
        return self._only("cost").cost

    @property
    def cost_of_fault(self) -> FaultCost:
        """The times a byte of the one collective before and after the faults, exact."""
        return self._only("cost of faults").cost_of_fault

    def simulate(
        self,
        size: int | str | Iterable[int | str] | None = None,
        *,
        network: Topology | None = None,
        routing: Literal["as-scheduled", "minimal"] = "as-scheduled",
        latency: Literal["links", "swing", "hammingmesh"] = "links",
        alpha: Fraction | str | None = None,
        bandwidth: Fraction | str | None = None,
        run_ahead: bool = False,
        pieces: int | None = None,
    ) -> Simulated:
        """Simulate the one collective's schedule; see :meth:`CollectiveResult.simulate`."""
        return self._only("simulation").simulate(
            size, network=network, routing=routing, latency=latency, alpha=alpha, bandwidth=bandwidth,
            run_ahead=run_ahead, pieces=pieces,
        )  # fmt: skip

    @cached_property
    def artifacts(self) -> dict[str, Artifact]:
        """The main file of every collective's first target, by the collective's name; ``files`` has them all."""
        return {one.name: one.artifacts[0] for one in self if one.artifacts}

    @cached_property
    def files(self) -> dict[str, Artifact]:
        """Every file, by its name for :meth:`write`."""
        emitted = [(one.name, target, files) for one in self for target, files in one.emitted]
        verify = all(one.settings.verify != "off" for one in self)
        return {os.path.basename(file.path): file.artifact for file in name_files(emitted, "", "./", verify=verify)}

    def write(self, directory: str | os.PathLike[str] = ".") -> list[str]:
        """Write every file into ``directory``, created if missing, or none; return their paths."""
        folder = os.fspath(directory)
        if not self.files:
            raise error(
                "C0019", "there is nothing to write: the compilation had no target", hint='give target="msccl-xml"'
            )
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise error("C0004", f"cannot make the directory `{folder}`: {reason}") from None
        outputs = [Output(os.path.join(folder, name), file.content) for name, file in self.files.items()]
        check_writable([output.path for output in outputs], self.spec.files)
        write_all(outputs)
        return [output.path for output in outputs]

    def _only(self, what: str) -> CollectiveResult:
        if len(self) != 1:
            names = ", ".join(self.collectives)
            call = {"simulation": "simulate()", "cost of faults": "cost_of_fault"}.get(what, what)
            raise error(
                "C0019",
                f"there are {len(self)} collectives ({names}), each with its own {what}",
                hint=f"use `result[NAME].{call}`",
            )
        return next(iter(self))
