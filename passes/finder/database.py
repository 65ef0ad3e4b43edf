"""The database of found topologies, as plain text: one file per degree, one row per topology.

A row reads ``NODES T_L T_B BACK DIAMETER LINKS RATE SCHEDULER EXPRESSION``:

* ``BACK`` is the T_B of a reduce-scatter, ``-`` if it was not computed.
* ``LINKS`` is ``<->`` if every link has its reverse, otherwise ``->``.
* ``RATE`` is the all-to-all rate of LP (3), or ``LOWER..UPPER`` around it, ``-`` if it was not computed.

Rows are sorted by nodes, T_L, T_B and expression, so equal rows give equal bytes. Lines that begin with ``#`` are
comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.resources import files

import attrs

from collc.ir.diagnostic import error
from collc.ir.shown import clipped, shown

from .found import Found, no_worse, pareto

__all__ = [
    "DEGREES",
    "LARGEST",
    "Row",
    "frontier",
    "merged_frontiers",
    "parse_rows",
    "print_rows",
    "rate_text",
    "rows_for",
    "shipped",
]

#: the degrees and the largest number of nodes of the shipped database
DEGREES = (2, 3, 4, 6, 8, 16)
LARGEST = 2000

_HEAD = "# nodes T_L T_B reduce_scatter_T_B diameter links alltoall_rate scheduler expression"


@attrs.frozen
class Row(Found):
    """A found topology, and the scheduler that reaches its costs: ``bfb``, or ``expansion`` (of the base's schedule).

    ``reduce_scatter_T_B`` is the bandwidth time of a reduce-scatter, an allgather on the transpose, reversed (Corollary
    1.1). It takes the same number of steps, but T_B may differ if the topology is not isomorphic to its transpose.
    """

    scheduler: str = "bfb"
    reduce_scatter_T_B: Fraction | None = None

    def __repr__(self) -> str:
        return shown(self, f"{clipped(self.expression, 120)}, T_L {self.T_L}, T_B {self.T_B}")

    @property
    def allreduce_T_B(self) -> Fraction:
        """T_B of an allreduce: reduce-scatter, then allgather. An unknown T_B of the former counts as the latter's."""
        return self.T_B + (self.T_B if self.reduce_scatter_T_B is None else self.reduce_scatter_T_B)

    @classmethod
    def of(cls, found: Found) -> Row:
        """Return the row of a topology whose costs are those of breadth first."""
        if isinstance(found, Row):
            return found
        return cls(**{field.name: getattr(found, field.name) for field in attrs.fields(Found)})


# ---- frontiers


def frontier(rows: Iterable[Row], *, bidirectional: bool = False, objective: str = "allgather") -> list[Row]:
    """Return the rows that no other row beats, by T_L; with ``bidirectional`` only those whose links go both ways.

    Rows are compared by T_L, T_B and the all-to-all rate. With the ``objective`` allreduce those best by T_L and the
    T_B of an allreduce are added. With mix, rows are compared by all of these; an unknown rate is neither better nor
    worse than another. With cost, rows are compared by T_L and T_B only.
    """
    chosen = [row for row in rows if row.bidirectional or not bidirectional]
    if objective == "mix":
        return _undominated(chosen)
    found = dict.fromkeys(_rows(pareto(_cheapest_reduce_scatters(chosen))) if objective != "alltoall" else ())
    if objective != "cost":
        rated = [row for row in chosen if not any(no_worse(other, row, alltoall=True) for other in found)]
        found |= dict.fromkeys(_rows(pareto(rated, alltoall=True)))
    if objective == "allreduce":
        halves = {attrs.evolve(row, T_B=row.allreduce_T_B): row for row in _cheapest_reduce_scatters(chosen)}
        found |= {halves[one]: None for one in _rows(pareto(halves))}
    return sorted(found, key=_order)


def _rows(found: Iterable[Found]) -> list[Row]:
    return [row for row in found if isinstance(row, Row)]


def _undominated(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other beats in T_L, both T_B and the rate; of equals the one with the shortest name."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda one: (one.T_L, one.T_B, one.allreduce_T_B, -(one.alltoall_rate or 0),
                                             len(one.expression), one.expression)):  # fmt: skip
        if not any(_covers(other, row) for other in kept):
            kept.append(row)
    return sorted(kept, key=_order)


def _covers(one: Row, two: Row) -> bool:
    """Return whether ``one`` is surely no worse than ``two``."""
    if two.most_alltoall is None or one.alltoall_rate is None:
        rated = one.alltoall_rate == two.most_alltoall
    else:
        rated = one.alltoall_rate >= two.most_alltoall
    return rated and one.T_L <= two.T_L and one.T_B <= two.T_B and one.allreduce_T_B <= two.allreduce_T_B


def _cheapest_reduce_scatters(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose reduce-scatter costs least among the rows of equal T_L and T_B."""
    least: dict[tuple[int, Fraction], Fraction] = {}
    for row in rows:
        key = row.T_L, row.T_B
        least[key] = min(least.get(key, row.allreduce_T_B), row.allreduce_T_B)
    return [row for row in rows if row.allreduce_T_B == least[row.T_L, row.T_B]]


def merged_frontiers(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of one size and degree to keep: the frontiers of all rows, and of those with links both ways."""
    everything = list(rows)
    kept: dict[Row, None] = {}
    for both in (False, True):
        kept |= dict.fromkeys(frontier(everything, bidirectional=both, objective="allreduce"))
    return sorted(kept, key=_order)


def _order(row: Row) -> tuple[int, int, Fraction, str, str]:
    return row.nodes, row.T_L, row.T_B, row.expression, row.scheduler


# ---- text


def print_rows(degree: int, rows: Iterable[Row]) -> str:
    """Return the text of the rows of a degree, sorted."""
    lines = [f"# collc find, degree {degree}", _HEAD, *map(_line, sorted(rows, key=_order))]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    links = "<->" if row.bidirectional else "->"
    back = "-" if row.reduce_scatter_T_B is None else str(row.reduce_scatter_T_B)
    rate = rate_text(row) or "-"
    return f"{row.nodes} {row.T_L} {row.T_B} {back} {row.diameter} {links} {rate} {row.scheduler} {row.expression}"


def rate_text(row: Found) -> str:
    """Return the all-to-all rate as ``p/q``, or ``lower..upper`` if it is known between bounds, or nothing.

    >>> rate_text(Found("complete(3)", 3, 2, 1, Fraction(2, 3), 1, True, Fraction(1)))
    '1'
    """
    return "..".join(str(end) for end in (row.alltoall_rate, row.alltoall_upper) if end is not None)


def parse_rows(text: str, degree: int, path: str, nodes: int | None = None) -> list[Row]:
    """Return the rows of a text (with ``nodes`` only those of that size); raise C0570 for a line that is no row."""
    start = None if nodes is None else f"{nodes} "
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#") and (start is None or line.startswith(start)):
            found.append(_row(line, degree, f"{path}:{number}"))
    return found


def _row(line: str, degree: int, place: str) -> Row:
    try:
        size, steps, bandwidth, back, diameter, links, rate, scheduler, expression = line.split(" ", 8)
        if links not in ("->", "<->") or scheduler not in ("bfb", "expansion"):
            raise ValueError
        return Row(
            expression, int(size), degree, int(steps), _rational(bandwidth), int(diameter), links == "<->",
            *_rate(rate), scheduler, None if back == "-" else _rational(back),
        )  # fmt: skip
    except (ValueError, ZeroDivisionError):
        raise error(
            "C0570",
            f"{place}: `{line[:80]}` is not a row of a topology database",
            notes=[f"needed: {_HEAD[2:]}"],
            hint="build the file with `collc find --refresh --database`",
        ) from None


def _rate(text: str) -> tuple[Fraction | None, Fraction | None]:
    """Return the rate of a row, and the upper end of a bracket; raise ValueError for ends in the wrong order."""
    if text == "-":
        return None, None
    lower, between, upper = text.partition("..")
    ends = _rational(lower), _rational(upper) if between else None
    if ends[0] <= 0 or (ends[1] is not None and ends[1] <= ends[0]):
        raise ValueError
    return ends


def _rational(text: str) -> Fraction:
    """Return the value of ``p`` or ``p/q``; exponents are refused, because they could make a number of any size."""
    upper, _, lower = text.partition("/")
    return Fraction(int(upper), int(lower or 1))


# ---- the shipped database


def shipped(degree: int) -> str | None:
    """Return the text of the shipped database for a degree, or None if there is none."""
    place = files(__package__) / "data" / f"degree-{degree}.txt"
    return place.read_text(encoding="ascii") if place.is_file() else None


def rows_for(nodes: int, degree: int, text: str | None = None, path: str = "database") -> Sequence[Row]:
    """Return the rows of a size and degree: of ``text``, or of the shipped database if ``text`` is None."""
    known = shipped(degree) if text is None else text
    return [] if known is None else parse_rows(known, degree, path, nodes)
