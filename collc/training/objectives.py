"""What the finder optimizes besides one collective: a weighted mix of collectives, or a training iteration."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Protocol

import attrs

from collc.ir.costs.training import Workload, best_iteration
from collc.ir.diagnostic import CollcError, Source, Span, error, nearest
from collc.ir.json_places import place_at
from collc.ir.shown import clipped
from collc.passes.finder.database import Row
from collc.passes.finder.networks import row_network

from ..messages.quantities import show_size, size

__all__ = ["KINDS", "Iterations", "Mix", "Objective", "Term", "parse_mix"]

#: collectives of a mix
KINDS = ("allreduce", "allgather", "reduce-scatter", "alltoall")
_TERM = re.compile(r"\s*([A-Za-z_-]+)\s+([^,]*?)\s*(?:\bx\s*([^\s,]+)\s*)?", re.ASCII)
_WEIGHT = re.compile(r"(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?", re.ASCII)


class Objective(Protocol):
    """What a workload is to the finder."""

    @property
    def text(self) -> str:
        """What the times are of."""

    @property
    def needs_alltoall(self) -> bool:
        """Whether a time needs the all-to-all rate."""

    def time(self, row: Row, alpha: Fraction, bandwidth: Fraction) -> Fraction | None:
        """Return the seconds on a topology; None if they need an unknown all-to-all rate."""


@attrs.frozen
class Term:
    """``weight`` times a collective of ``size`` bytes: the whole vector, of an all-to-all the data of one rank."""

    kind: str
    size: int
    weight: Fraction

    def __str__(self) -> str:
        return f"{self.kind} {show_size(self.size)} x {float(self.weight):g}"

    def time(self, row: Row, alpha: Fraction, bandwidth: Fraction) -> Fraction | None:
        """Return the seconds of one such collective, without the weight."""
        if self.kind in ("allreduce", "alltoall"):
            network = row_network(row, alpha, bandwidth)
            if self.kind == "allreduce":
                return network.allreduce(self.size)
            return None if network.alltoall is None else network.alltoall * self.size
        share = row.T_B if self.kind == "allgather" else row.allreduce_T_B - row.T_B
        return row.T_L * alpha + share * self.size / bandwidth


@attrs.frozen
class Mix:
    """Collectives with weights. The time is the sum of weight times seconds."""

    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The mix as :func:`parse_mix` reads it, weights in six digits."""
        return ", ".join(map(str, self.terms))

    @property
    def needs_alltoall(self) -> bool:
        """Whether one of the collectives is an all-to-all."""
        return any(term.kind == "alltoall" for term in self.terms)

    def time(self, row: Row, alpha: Fraction, bandwidth: Fraction) -> Fraction | None:
        """Return the weighted seconds."""
        total = Fraction(0)
        for term in self.terms:
            seconds = term.time(row, alpha, bandwidth)
            if seconds is None:
                return None
            total += term.weight * seconds
        return total


@attrs.frozen
class Iterations:
    """One training iteration, with the best bucket for each topology."""

    workload: Workload

    @property
    def text(self) -> str:
        """The iteration in words."""
        return f"iteration of {self.workload.name}"

    @property
    def needs_alltoall(self) -> bool:
        """Whether the workload has all-to-alls."""
        return self.workload.alltoalls > 0

    def time(self, row: Row, alpha: Fraction, bandwidth: Fraction) -> Fraction | None:
        """Return the seconds of the iteration."""
        found = best_iteration(self.workload, row_network(row, alpha, bandwidth))
        return None if found is None else found.time


def parse_mix(text: str) -> Mix:
    """Return the mix of a text; raise C0992, with the place, for a wrong one.

    >>> parse_mix("allreduce 64 MiB x 0.7, alltoall 4MiB x 0.3").text
    'allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3'
    >>> parse_mix("allgather 1000").terms
    (Term(kind='allgather', size=1000, weight=Fraction(1, 1)),)
    """
    source, start, terms = Source("<workload>", text), 0, list[Term]()
    for part in text.split(","):
        terms.append(_term(part, source, start))
        start += len(part) + 1
    return Mix(tuple(terms))


def _term(text: str, source: Source, start: int) -> Term:
    """Return the term of a part of the source that begins at an offset."""
    found = _TERM.fullmatch(text)
    if found is None or not found[2]:
        shown = text.strip()
        at = start + len(text) - len(text.lstrip()) if shown else max(start - 1, 0)
        place = place_at(source, at, len(shown))
        raise _wrong(f"found `{clipped(shown)}`, needed a collective with its size", _FORM, place)

    def place_of(group: int) -> Span:
        return place_at(source, start + found.start(group), len(found[group]))

    if found[1] not in KINDS:
        hint = nearest(found[1], KINDS) or f"collectives are {', '.join(KINDS)}"
        raise _wrong(f"found the collective `{clipped(found[1])}`, needed one of a mix", hint, place_of(1))
    weight = found[3] or "1"
    if not _WEIGHT.fullmatch(weight) or not Fraction(weight):
        raise _wrong(f"found the weight `{clipped(weight)}`, needed a number of more than 0", _FORM, place_of(3))
    try:
        return Term(found[1], size(found[2], "--workload"), Fraction(weight))
    except CollcError as failure:
        message = f"found the size `{clipped(found[2])}`, needed one such as 64 MiB"
        help_of_size = failure.diagnostics[0].hint if _ONE_WORD.fullmatch(found[2]) else _FORM
        raise _wrong(message, help_of_size, place_of(2)) from None


_FORM = "write `allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3`"
_ONE_WORD = re.compile(r"\S+(?:\s+[A-Za-z]+)?")  # a number and a unit: what the hint of a size is about


def _wrong(message: str, hint: str | None, place: Span) -> CollcError:
    return error("C0992", message, span=place, hint=hint, exit_status=2)
