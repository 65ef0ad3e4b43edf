"""The result of a frontend: topologies, collectives, and how to schedule and emit each."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

import attrs

from .arrays import Array
from .collective import Collective
from .diagnostic import Diagnostic, Source, Span
from .frozen import frozen
from .roots import Roots
from .schedule import Forest, Schedule
from .shown import clipped, counted, shown
from .topology import Topology

__all__ = ["CollectiveRequest", "EmitRequest", "Option", "OptionValue", "Places", "Problem", "ScheduleRequest", "Spec"]

#: What may stand after ``name:`` in ``{ }``: exact numbers, words and strings as text, ``true`` and ``false``.
OptionValue: TypeAlias = bool | int | Fraction | str | tuple["OptionValue", ...]


@frozen
class Problem:
    """The problem to schedule: a collective on a topology. Synthesis passes take it.

    ``relays``: ranks that are no members forward data of the members if that takes less time (``auto``), or ``never``,
    or ``always``, as in an algorithm that `auto` has measured so.
    ``shares``: the bandwidth of each link that the collective may use beside others; None: all. ``trees`` are trees
    that keep these shares busy, if they were planned with the shares.
    """

    topology: Topology
    collective: Collective
    relays: Literal["auto", "never", "always"] = "auto"
    shares: tuple[Fraction, ...] | None = attrs.field(default=None, repr=False)
    trees: Forest | None = attrs.field(default=None, repr=False)

    def __repr__(self) -> str:
        ranks = counted(self.collective.num_ranks, "rank")
        return shown(self, f"{self.collective.name} on {clipped(self.topology.name)}, {ranks}")

    @property
    def brief(self) -> str:
        """The problem in a few words: collective, topology, members, and the first of the weights.

        >>> Problem(Topology.from_links("ring", 3, [(0, 1), (1, 2), (2, 0)]),
        ...         Collective("allgather", 3, weights=(5, 0), members=(0, 2))).brief
        'allgatherv on ring among 2 ranks (0, 2), weights 5, 0'
        """
        collective = self.collective
        text = f"{collective.name} on {clipped(self.topology.name)}"
        if collective.members is not None:
            text += f" among {counted(collective.num_members, 'rank')} ({_first(collective.members)})"
        if collective.pre is not None:
            text += f", {counted(len(collective.pre), 'shard')}"
        return text if collective.weights is None else f"{text}, weights {_first(collective.weights)}"

    @property
    def is_whole(self) -> bool:
        """Whether all ranks take part, and may use all links."""
        return self.collective.members is None and self.shares is None

    def sized(self, size: int) -> Problem:
        """Return the same problem for M of ``size`` bytes."""
        return attrs.evolve(self, collective=attrs.evolve(self.collective, size=size))


def _first(numbers: tuple[int, ...], most: int = 8) -> str:
    return ", ".join(map(str, numbers[:most])) + f", .. {len(numbers)} in all" * (len(numbers) > most)


@frozen
class Option:
    """One ``name: value`` with its place, and the place of its value, so that messages can point to them."""

    name: str
    value: OptionValue
    span: Span | None = None
    value_span: Span | None = None

    @property
    def place(self) -> Span | None:
        """The place of the value if it has one, else that of the whole option."""
        return self.value_span or self.span

    @property
    def name_span(self) -> Span | None:
        """The place of the name, with which the option begins."""
        return None if self.span is None else self.span.first(len(self.name))


@frozen(eq=False)
class Places:
    """The places of a schedule's rows: statement number ``numbers[i]`` wrote row i, in a loop with many others.

    ``steps`` are the steps of the rows as the user numbered them, which may have gaps.
    """

    statements: tuple[Span | None, ...] = attrs.field(repr=False)
    numbers: Array = attrs.field(repr=False)
    steps: Array = attrs.field(repr=False)

    def of(self, row: int) -> Span | None:
        """Return the place of a row."""
        return self.statements[int(self.numbers[row])]


@frozen
class ScheduleRequest:
    """``schedule NAME using SCHEDULER { options }``; ``steps`` schedules come elaborated, not yet verified.

    ``name_span`` is the place of the scheduler's name, ``rows`` those of the rows of a schedule written by hand.
    ``instances`` of the program run side by side, each on its part of the data.
    """

    scheduler: str
    options: tuple[Option, ...] = ()
    schedule: Schedule | Forest | None = None
    span: Span | None = None
    name_span: Span | None = None
    rows: Places | None = attrs.field(default=None, repr=False, eq=False)
    instances: int = 1


@frozen
class EmitRequest:
    """``emit NAME as TARGET { options }``; ``name_span`` is the place of the target's name."""

    target: str
    options: tuple[Option, ...] = ()
    span: Span | None = None
    name_span: Span | None = None


@frozen
class CollectiveRequest:
    """One ``collective`` declaration with its schedule (default ``auto``) and its emits.

    ``kind_span`` is the place of the collective's kind, ``topology_span`` that of the network's declaration.
    ``options`` are those of the collective as they were written. With ``roots``, the collective was declared with
    several: its plan is moved to the others of its orbit.
    """

    name: str
    topology: str
    problem: Problem
    schedule: ScheduleRequest
    emits: tuple[EmitRequest, ...] = ()
    span: Span | None = None
    kind_span: Span | None = None
    topology_span: Span | None = None
    options: tuple[Option, ...] = ()
    roots: Roots | None = None


@frozen
class Spec:
    """One elaborated input: everything in order of declaration.

    ``files`` are the paths of all files read, the main one first, as a depfile lists them. ``warnings`` did not stop
    elaboration. ``sources`` are the texts that were read; specifications are compared without them. ``together`` are
    the names of collectives that run at the same time, a tuple for each block; names of a family are ``tp[3]``.
    ``absent`` are the paths where an included file was looked for and not found.
    """

    topologies: dict[str, Topology]
    collectives: dict[str, CollectiveRequest]
    files: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    sources: tuple[Source, ...] = attrs.field(default=(), eq=False, repr=False)
    together: tuple[tuple[str, ...], ...] = ()
    absent: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)

    def __repr__(self) -> str:
        topologies = counted(len(self.topologies), "topology")
        return shown(self, f"{topologies}, {counted(len(self.collectives), 'collective')}")
