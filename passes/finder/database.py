"""The topologies found so far, as plain text: one file a degree, one row a topology.

A row reads ``NODES T_L T_B BACK DIAMETER LINKS RATE SCHEDULER EXPRESSION``: ``BACK`` is the T_B of a reduce-scatter, or
``-`` where it was not computed; ``LINKS`` is ``<->`` where every link has its reverse, else ``->``; ``RATE`` is the
all-to-all rate of LP (3), or ``-`` where it was not computed. Rows stand by nodes, then T_L, T_B and expression, so
that the same rows are always the same bytes. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.resources import files

import attrs

from collc.ir.diagnostic import error

from .found import Found, pareto

__all__ = ["DEGREES", "LARGEST", "Row", "frontier", "merged", "parse_rows", "print_rows", "rows_for", "shipped"]

#: what the shipped database covers: these degrees, up to so many nodes
DEGREES = (2, 3, 4, 6, 8, 16)
LARGEST = 2000

_HEAD = "# nodes T_L T_B reduce_scatter_T_B diameter links alltoall_rate scheduler expression"


@attrs.frozen
class Row(Found):
    """A found topology and whose schedule its costs are: ``bfb``, or ``expansion`` (the base's schedule, expanded).

    ``T_B_back`` is the bandwidth time of a reduce-scatter, which runs backwards on the transpose (Corollary 1.1). Its
    steps are as many, but where the topology is not isomorphic to its transpose T_B may be another.
    """

    scheduler: str = "bfb"
    T_B_back: Fraction | None = None

    @property
    def both_halves(self) -> Fraction:
        """T_B of an allreduce: reduce-scatter, then allgather. The former counts as much where it is not known."""
        return self.T_B + (self.T_B if self.T_B_back is None else self.T_B_back)

    @classmethod
    def of(cls, found: Found) -> Row:
        """Return the row of a topology whose costs are breadth first's."""
        if isinstance(found, Row):
            return found
        return cls(**{field.name: getattr(found, field.name) for field in attrs.fields(Found)})


# ---- frontiers


def frontier(rows: Iterable[Row], *, bidirectional: bool = False, objective: str = "allgather") -> list[Row]:
    """Return the rows that none beats, by T_L; with ``bidirectional`` among those whose links go both ways.

    None beats them in T_L and T_B or, where the ``objective`` is allreduce, in T_L and the T_B of both halves; for
    alltoall the rate is a third criterion.
    """
    chosen = [row for row in rows if row.bidirectional or not bidirectional]
    if objective != "alltoall":
        chosen = _best_backwards(chosen)
    found = {row: None for row in pareto(chosen, alltoall=objective == "alltoall") if isinstance(row, Row)}
    if objective == "allreduce":
        halves = {attrs.evolve(row, T_B=row.both_halves): row for row in chosen}
        found |= {halves[one]: None for one in pareto(halves) if isinstance(one, Row)}
    return sorted(found, key=_order)


def _best_backwards(rows: Sequence[Row]) -> list[Row]:
    """Return of rows of equal T_L and T_B those whose reduce-scatter costs least."""
    least: dict[tuple[int, Fraction], Fraction] = {}
    for row in rows:
        key = row.T_L, row.T_B
        least[key] = min(least.get(key, row.both_halves), row.both_halves)
    return [row for row in rows if row.both_halves == least[row.T_L, row.T_B]]


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of one size and degree worth keeping: the frontiers of all and of those linked both ways.

    Rows whose all-to-all rates are known have three objectives among themselves.
    """
    everything = list(rows)
    rated = [row for row in everything if row.alltoall_rate is not None]
    kept: dict[Row, None] = {}
    for both in (False, True):
        kept |= dict.fromkeys(frontier(everything, bidirectional=both, objective="allreduce"))
        kept |= dict.fromkeys(frontier(rated, bidirectional=both, objective="alltoall"))
    return sorted(kept, key=_order)


def _order(row: Row) -> tuple[int, int, Fraction, str, str]:
    return row.nodes, row.T_L, row.T_B, row.expression, row.scheduler


# ---- text


def print_rows(degree: int, rows: Iterable[Row]) -> str:
    """Return the text of a degree's rows, in order."""
    lines = [f"# collc find, degree {degree}", _HEAD, *map(_line, sorted(rows, key=_order))]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    links = "<->" if row.bidirectional else "->"
    back, rate = ("-" if value is None else str(value) for value in (row.T_B_back, row.alltoall_rate))
    return f"{row.nodes} {row.T_L} {row.T_B} {back} {row.diameter} {links} {rate} {row.scheduler} {row.expression}"


def parse_rows(text: str, degree: int, path: str, nodes: int | None = None) -> list[Row]:
    """Return the rows of a text, or those of one number of nodes; raise C0570 for a line that is no row."""
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
            None if rate == "-" else _rational(rate), scheduler, None if back == "-" else _rational(back),
        )  # fmt: skip
    except (ValueError, ZeroDivisionError):
        raise error(
            "C0570",
            f"{place}: `{line[:80]}` is not a row of a topology database",
            notes=[f"needed: {_HEAD[2:]}"],
            hint="build the file with `collc find --refresh --database`",
        ) from None


def _rational(text: str) -> Fraction:
    """Return ``p`` or ``p/q``; an exponent is none of it, which could be one of any size."""
    upper, _, lower = text.partition("/")
    return Fraction(int(upper), int(lower or 1))


# ---- what is shipped


def shipped(degree: int) -> str | None:
    """Return the text of the shipped database for a degree, or None if there is none."""
    place = files(__package__) / "data" / f"degree-{degree}.txt"
    return place.read_text(encoding="ascii") if place.is_file() else None


def rows_for(nodes: int, degree: int, text: str | None = None, path: str = "database") -> Sequence[Row]:
    """Return the known rows of a size and degree: of ``text``, else of the shipped database; none where it has none."""
    known = shipped(degree) if text is None else text
    return [] if known is None else parse_rows(known, degree, path, nodes)
