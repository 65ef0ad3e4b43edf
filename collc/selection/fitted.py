"""Times of NCCL's algorithms as lines, alpha + beta x bytes: what ``collc calibrate --nccl-tests`` writes and targets
read."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from fractions import Fraction

from collc.ir.diagnostic import error
from collc.ir.frozen import frozen

from .times import Times

__all__ = ["COLUMNS", "FittedTime", "parse_fitted", "read_fitted"]

COLUMNS = (
    "collective", "nodes", "ranks", "algorithm", "protocol", "alpha_s", "beta_s_per_byte", "min_bytes", "max_bytes",
    "points", "largest_deviation",
)  # fmt: skip
_MOST_DIGITS = 4000


@frozen
class FittedTime:
    """The line of one algorithm with a protocol: ``alpha`` seconds, ``beta`` seconds a byte of the whole vector.

    It was fitted to ``points`` sizes from ``low`` to ``high`` bytes; ``deviation`` is the largest relative deviation.
    """

    collective: str
    nodes: int
    ranks: int
    algorithm: str
    protocol: str
    alpha: Fraction
    beta: Fraction
    low: int
    high: int
    points: int
    deviation: float

    @property
    def times(self) -> Times:
        """The line as a function of the size."""
        return Times((Fraction(0),), (self.alpha,), (self.beta,))


def read_fitted(path: str) -> list[FittedTime]:
    """Return the lines in a file; raise C0002 and others if it cannot be read, C0076 for a file of another kind."""
    from ..files.texts import read_text

    return parse_fitted(read_text(path), path)


def parse_fitted(text: str, shown: str) -> list[FittedTime]:
    """Return the lines in a CSV text; raise C0076 for another kind of text."""
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    table = csv.DictReader(io.StringIO("\n".join(rows)))
    if not set(COLUMNS) <= set(table.fieldnames or ()):
        hint = "`collc calibrate --nccl-tests LOG -o FILE` writes such files"
        raise error("C0076", f"`{shown}` has no times of NCCL's algorithms", hint=hint)
    return [_row(row, f"{shown}, row {number}") for number, row in enumerate(table, 1)]


def _row(row: Mapping[str, str | None], place: str) -> FittedTime:
    cells = {name: (row[name] or "").strip() for name in COLUMNS}
    try:
        return _parsed(cells)
    except (ValueError, ZeroDivisionError):
        hint = f"its columns are {', '.join(COLUMNS)}"
        raise error("C0076", f"a row of times is wrong ({place})", hint=hint) from None


def _parsed(cells: Mapping[str, str]) -> FittedTime:
    """Return the line of a row; raise ValueError for a row that has none."""
    if any(len(cell) > _MOST_DIGITS for cell in cells.values()):
        raise ValueError
    whole = ("nodes", "ranks", "min_bytes", "max_bytes", "points")
    nodes, ranks, low, high, points = (int(cells[name]) for name in whole)
    alpha, beta = Fraction(cells["alpha_s"]), Fraction(cells["beta_s_per_byte"])
    if min(nodes, ranks) < 1 or alpha < 0 or beta <= 0:
        raise ValueError
    return FittedTime(
        cells["collective"], nodes, ranks, cells["algorithm"], cells["protocol"], alpha, beta, low, high, points,
        float(cells["largest_deviation"]),
    )  # fmt: skip
