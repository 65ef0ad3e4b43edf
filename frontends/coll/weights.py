"""``weights: {5, 0, 1, 2}`` and ``matrix: "counts.csv"``: the sizes of shards, relative to each other or in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from math import gcd, lcm

import attrs

from collc.ir.collective import LARGEST_WEIGHT
from collc.ir.diagnostic import CollcError, Related, Span, error
from collc.ir.frozen import frozen
from collc.ir.shown import counted

from ..units import SIZE
from . import ast
from .counts import Counts, Number, span_of
from .expressions import NUMBER, Compiler, Needs
from .lists import Item, flat, listed
from .scope import THE_NAME, Constant, Scope
from .values import Quantity, Value, kind_of

__all__ = ["Weights", "matrix", "weights"]

_NEEDS: Needs = (SIZE, *NUMBER)
_LIST = "a list of weights such as `{5, 0, 1, 2}`"
_ROWS = "a list of rows such as `{{0, 5}, {3, 0}}`"


@frozen(eq=False)
class Weights:
    """The weights of all shards; ``rows`` are the bytes of each row if they were written with units, else None.

    Weights that are no matrix are one row.
    """

    values: tuple[int, ...]
    rows: tuple[int, ...] | None = None

    @property
    def size(self) -> int | None:
        """The bytes of the largest row, which are M."""
        return max(self.rows) if self.rows else None


def weights(value: ast.Expr, count: int, each: str, scope: Scope, compiler: Compiler, counts: Counts) -> Weights:
    """Return the weights of a list or file, of which there must be ``count``, one for ``each``.

    Raises C0131 or C0132 for what is no number, and C0217 for numbers that are no weights.
    """
    if (path := _path(value, scope)) is not None:
        with _named(path):
            row = _one_line(counts.table(path), path.span)
            return _weights([_require_count(row, count, each, path.span)], {}, path.span)
    units: dict[int, Span | None] = {}
    found = flat(listed(value, scope, compiler, _NEEDS, _LIST), "a weight", _FLAT)
    row = [_amount(one, span, units) for one, span in found]
    return _weights([_require_count(row, count, each, value.span)], units, value.span)


def matrix(value: ast.Expr, count: int, each: str, scope: Scope, compiler: Compiler, counts: Counts) -> Weights:
    """Return the weights of a matrix with ``count`` rows and columns, one for ``each``: row s is what s sends."""
    if (path := _path(value, scope)) is not None:
        with _named(path):
            rows = [(row, span_of(row[0][1])) for row in counts.table(path)]
            return _matrix(rows, count, each, {}, path.span)
    units: dict[int, Span | None] = {}
    items = listed(value, scope, compiler, _NEEDS, _ROWS)
    return _matrix([(_row(item, units), item.span) for item in items], count, each, units, value.span)


def _matrix(
    rows: Sequence[tuple[list[Number], Span | None]], count: int, each: str, units: dict[int, Span | None],
    span: Span | None,
) -> Weights:  # fmt: skip
    _require_rows(len(rows), count, each, span)
    return _weights([_require_columns(row, count, each, place) for row, place in rows], units, span)


@contextmanager
def _named(path: ast.String) -> Iterator[None]:
    """Add the place of a file's name to mistakes in the file."""
    try:
        yield
    except CollcError as failure:
        raise CollcError([
            one if one.span is None or path.span is None or one.span.source is path.span.source
            else attrs.evolve(one, related=(*one.related, Related(THE_NAME, path.span)))
            for one in failure.diagnostics
        ]) from None  # fmt: skip


_FLAT = "`matrix: {{..}, ..}` is of alltoallv"


def _path(value: ast.Expr, scope: Scope) -> ast.String | None:
    """Return the path of a file, if the value is one or a name of one."""
    match value:
        case ast.String():
            return value
        case ast.Name(name):
            binding = scope.find(name)
            named = binding.value if isinstance(binding, Constant) else None
            return ast.String(named, span=value.span) if isinstance(named, str) else None
    return None


def _row(item: Item, units: dict[int, Span | None]) -> list[Number]:
    if not isinstance(item.value, tuple):
        found = kind_of(item.value)
        hint = "write a row in braces for each rank: `matrix: {{0, 5}, {3, 0}}`"
        raise error("C0131", f"found {found}, needed a row of weights", span=item.span, hint=hint)
    return [_amount(one, span, units) for one, span in flat(item.value, "a weight")]


def _amount(value: Value, span: Span | None, units: dict[int, Span | None]) -> Number:
    """Return a number or a size in bytes; ``units`` gets the place of the first of each, by whether it has a unit."""
    if isinstance(value, Quantity) and value.measure == SIZE:
        units.setdefault(True, span)
        return value.value, span
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        hint = f"write `{value}` without quotes" if isinstance(value, str) else None
        raise error("C0132", f"found {kind_of(value)}, needed a weight", span=span, hint=hint)
    if value != 0:
        units.setdefault(False, span)
    return value, span


def _one_line(table: Sequence[list[Number]], span: Span | None) -> list[Number]:
    """Return the numbers of a file with one row or one column."""
    if len(table) > 1 and any(len(row) != 1 for row in table):
        wide = max(len(row) for row in table)
        message = f"found {counted(len(table), 'row')} of up to {counted(wide, 'number')}, needed one row or one column"
        raise error("C0217", message, span=span, hint='a matrix is of alltoallv: `matrix: "FILE"`')
    return [amount for row in table for amount in row]


def _require_count(row: list[Number], count: int, each: str, span: Span | None) -> list[Number]:
    if len(row) != count:
        message = f"found {counted(len(row), 'weight')}, needed {count}, one for {each}"
        raise error("C0217", message, span=span, hint="0 is the weight of one without data")
    return row


def _require_rows(found: int, count: int, each: str, span: Span | None) -> None:
    if found != count:
        message = f"found a matrix of {counted(found, 'row')}, needed {count}, one for {each}"
        raise error("C0217", message, span=span, hint="row s is what s sends to each other; 0 is nothing")


def _require_columns(row: list[Number], count: int, each: str, span: Span | None) -> list[Number]:
    if len(row) != count:
        message = f"found a row of {counted(len(row), 'weight')}, needed {count}, one for {each}"
        raise error("C0217", message, span=span, hint="row s is what s sends to each other; 0 is nothing")
    return row


def _weights(rows: Sequence[list[Number]], units: dict[int, Span | None], span: Span | None) -> Weights:
    """Return whole numbers in the ratios of the amounts; amounts in bytes are also the bytes of each row."""
    if len(units) == 2:
        hint = "write all of them with a unit, such as `64 MiB`, or none"
        raise error("C0217", "found numbers and sizes together, needed one kind", span=units[False], hint=hint)
    amounts = [amount for row in rows for amount, _ in row]
    for amount, place in chain.from_iterable(rows):
        if amount < 0:
            message, hint = f"found the weight {amount}, needed at least 0", "0 is the weight of one without data"
            raise error("C0217", message, span=span_of(place) or span, hint=hint)
    if not any(amounts):
        raise error("C0217", "found weights that are all 0, needed one above 0", span=span, hint="write what is moved")
    scale = Fraction(lcm(*{amount.denominator for amount in amounts}))
    if True in units:
        _require_bytes(rows, span)
        scale = Fraction(1, gcd(*{amount.numerator for amount in amounts}))
    values = tuple(map(int, amounts if scale == 1 else [amount * scale for amount in amounts]))
    if sum(values) > LARGEST_WEIGHT:
        message = f"found weights with sum {sum(values)}, needed at most {LARGEST_WEIGHT}"
        raise error("C0217", message, span=span, hint="round them: only their ratios matter")
    return Weights(values, tuple(int(sum(one for one, _ in row)) for row in rows) if True in units else None)


def _require_bytes(rows: Sequence[list[Number]], span: Span | None) -> None:
    for amount, place in chain.from_iterable(rows):
        if amount.denominator != 1:
            message = f"found {float(amount):g} B, needed a whole number of bytes"
            raise error("C0129", message, span=span_of(place) or span)
