"""The result of a frontend: topologies, collectives, and how to schedule and emit each."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from .collective import Collective
from .diagnostic import Diagnostic, Span
from .frozen import frozen
from .schedule import Forest, Schedule
from .topology import Topology

__all__ = ["CollectiveRequest", "EmitRequest", "Option", "OptionValue", "Problem", "ScheduleRequest", "Spec"]

#: What may stand after ``name:`` in ``{ }``: exact numbers, words and strings as text, ``true`` and ``false``.
OptionValue: TypeAlias = bool | int | Fraction | str | tuple["OptionValue", ...]


@frozen
class Problem:
    """The problem to schedule: a collective on a topology. Synthesis passes take it."""

    topology: Topology
    collective: Collective


@frozen
class Option:
    """One ``name: value`` with its place, so that messages can point to it."""

    name: str
    value: OptionValue
    span: Span | None = None


@frozen
class ScheduleRequest:
    """``schedule NAME using SCHEDULER { options }``; ``steps`` schedules come elaborated, not yet verified."""

    scheduler: str
    options: tuple[Option, ...] = ()
    schedule: Schedule | Forest | None = None
    span: Span | None = None


@frozen
class EmitRequest:
    """``emit NAME as TARGET { options }``."""

    target: str
    options: tuple[Option, ...] = ()
    span: Span | None = None


@frozen
class CollectiveRequest:
    """One ``collective`` declaration with its schedule (default ``auto``) and its emits."""

    name: str
    topology: str
    problem: Problem
    schedule: ScheduleRequest
    emits: tuple[EmitRequest, ...] = ()
    span: Span | None = None


@frozen
class Spec:
    """One elaborated input: everything in order of declaration.

    ``files`` are the paths of all files read, the main one first, as a depfile lists them. ``warnings`` did not stop
    elaboration.
    """

    topologies: dict[str, Topology]
    collectives: dict[str, CollectiveRequest]
    files: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
