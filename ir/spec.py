"""What a frontend hands over: topologies, collectives and how each is to be scheduled and emitted."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import attrs

from .collective import Collective
from .diagnostic import Diagnostic, Span
from .schedule import Forest, Schedule
from .topology import Topology

__all__ = ["CollectiveRequest", "EmitRequest", "Option", "OptionValue", "Problem", "ScheduleRequest", "Spec"]

#: What may stand after ``name:`` in ``{ }``: exact numbers, words and strings as text, ``true`` and ``false``.
OptionValue: TypeAlias = bool | int | Fraction | str | tuple["OptionValue", ...]


@attrs.frozen
class Problem:
    """What is to be scheduled: a collective on a topology. Synthesis passes take it."""

    topology: Topology
    collective: Collective


@attrs.frozen
class Option:
    """One ``name: value`` with its place, so that a mistake in it gets a caret."""

    name: str
    value: OptionValue
    span: Span | None = None


@attrs.frozen
class ScheduleRequest:
    """``schedule NAME using SCHEDULER { options }``; ``steps`` schedules come elaborated, not yet verified."""

    scheduler: str
    options: tuple[Option, ...] = ()
    schedule: Schedule | Forest | None = None
    span: Span | None = None


@attrs.frozen
class EmitRequest:
    """``emit NAME as TARGET { options }``."""

    target: str
    options: tuple[Option, ...] = ()
    span: Span | None = None


@attrs.frozen
class CollectiveRequest:
    """One ``collective`` declaration with its schedule (``auto`` where none is written) and its emits."""

    name: str
    topology: str
    problem: Problem
    schedule: ScheduleRequest
    emits: tuple[EmitRequest, ...] = ()
    span: Span | None = None


@attrs.frozen
class Spec:
    """One elaborated input: everything in order of declaration.

    ``files`` are the paths read, the main one first, as a depfile lists them; ``warnings`` did not stop elaboration.
    """

    topologies: dict[str, Topology]
    collectives: dict[str, CollectiveRequest]
    files: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
