"""Columns: read-only integer arrays of the narrowest type for their values, and the base of classes of columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Array",
    "Columnar",
    "Columns",
    "are_among",
    "as_column",
    "distinct",
    "distinct_pairs",
    "distinct_rows",
    "fit",
    "last_at_most",
    "lexsort",
    "lowest_joined",
    "numbered",
    "times",
]

#: Any shape and element type: a column has the narrowest type for its values, which only the data determine.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: Columns by name. Any, because they become keyword arguments, whose converters take both lists and arrays.
Columns: TypeAlias = dict[str, Any]

_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.int64)
_SIGNED = (np.int8, np.int16, np.int32, np.int64)


def fit(low: int, high: int) -> type[np.integer[Any]]:  # Any: any number of bits
    """Return the narrowest integer type that holds ``low`` .. ``high``.

    >>> fit(0, 300).__name__, fit(-1, 100).__name__
    ('uint16', 'int8')
    """
    for kind in _SIGNED if low < 0 else _UNSIGNED:
        info = np.iinfo(kind)
        if info.min <= low and high <= info.max:
            return kind
    raise OverflowError(f"{high} does not fit 64 bits")


def as_column(values: ArrayLike) -> Array:
    """Return ``values`` as a one-dimensional, read-only integer column of the narrowest type that holds them.

    Arithmetic whose result may not fit the type must widen the columns first (``column.astype(np.int64)``). An array
    that is narrow enough is not copied, so the caller must not write to it afterwards.

    >>> as_column([0, 300]).dtype.name
    'uint16'
    """
    if type(values) is np.ndarray and values.dtype == np.uint8 and values.ndim == 1 and not values.flags.writeable:
        return values
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"a column has one dimension, found {array.ndim}")
    if array.size and array.dtype.kind not in "iubO":
        raise TypeError(f"a column holds integers, found {array.dtype}")
    if array.size == 0:
        array = np.zeros(0, dtype=np.uint8)
    else:
        array = array.astype(fit(int(array.min()), int(array.max())), copy=False)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def times(values: Array, factors: Array) -> Array:
    """Return the products of integers, exact: of 64 bits if the sum of all fits them, otherwise Python's integers.

    >>> times(np.array([1, 2]), np.array([3, 1 << 62])).tolist()
    [3, 9223372036854775808]
    """
    most = int(values.max(initial=0)) * int(factors.max(initial=0)) * max(len(values), 1)
    if most < 1 << 62:
        kind: type = np.int64
    else:
        kind = object
    products: Array = values.astype(kind) * factors.astype(kind)
    return products


def distinct(values: Array) -> Array:
    """Return the values of an array of any shape in order, each once.

    The result is that of ``np.unique``, which hashes and takes many times as long for regular numbers; this one sorts.
    In a short run ``np.unique`` also imports ``numpy.ma``, which takes several milliseconds.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values, axis=None)
    fresh = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered.compress(fresh)


def numbered(values: Array) -> tuple[Array, Array]:
    """Return the distinct values in order, and for each value its number among them.

    Values that lie close together, such as addresses, are looked up in a table, which takes a fraction of a search.

    >>> [column.tolist() for column in numbered(np.array([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    least = int(values.min(initial=0))
    span = int(values.max(initial=0)) - least + 1
    if span > _DENSE * len(values):
        found = distinct(values)
        return found, np.searchsorted(found, values)
    present = np.zeros(span, dtype=bool)
    present[values - least] = True
    number = np.cumsum(present) - 1
    found = (np.flatnonzero(present) + least).astype(values.dtype, copy=False)
    return found, number.take(values - least)


#: how many times as far apart as there are values they may lie, to be looked up in a table
_DENSE = 4
#: bits of a number of 64 bits that is not negative
_WORD = 63
#: the same for a table of one byte a value that only says whether a value is there
_DENSE_BITS = 32
#: bytes of such a table that may be four times as wide
_SMALL = 1 << 24
#: bits of a digit of numbers that are sorted by digits
_DIGIT = 16
#: the most digits of such numbers; more take as long as numbers that hold their rows
_DIGITS = 3


def distinct_pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the pairs ``first[k], second[k]`` in order, each once. No number is negative; products fit 64 bits.

    >>> [column.tolist() for column in distinct_pairs(np.array([3, 1, 3]), np.array([0, 5, 0]))]
    [[1, 3], [5, 0]]
    """
    bits = int(second.max(initial=0)).bit_length()
    if bits + int(first.max(initial=0)).bit_length() < _WORD:  # a remainder takes ten times as long as a mask
        pairs = distinct(first.astype(np.int64) << bits | second)
        return pairs >> bits, pairs & (1 << bits) - 1
    width = np.int64(int(second.max(initial=0)) + 1)
    pairs = distinct(first.astype(np.int64) * width + second)
    return pairs // width, pairs % width


def are_among(values: Array, others: Array) -> Array:
    """Return which values are among the others, as ``np.isin`` does, without what that imports.

    >>> are_among(np.array([3, 1, 3]), np.array([5, 3])).tolist()
    [True, False, True]
    """
    if not len(others):
        return np.zeros(len(values), dtype=bool)
    least, most = int(others.min()), int(others.max())
    if (
        most - least < max(_DENSE_BITS * len(others), min(4 * _DENSE_BITS * len(others), _SMALL))
        and values.dtype.kind == "i"
        and values.dtype.itemsize == 8
    ):
        present = np.zeros(most - least + 2, dtype=bool)  # the last entry stands for all values outside
        present[others - least] = True
        inside = (values >= least) & (values <= most)
        return present.take(np.where(inside, values - least, -1))
    ordered = np.sort(others)
    found: Array = ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values
    return found


def lowest_joined(number: int, one: Array, other: Array) -> Array:
    """Return for each of ``number`` nodes the lowest node that pairs join it with, directly or by others.

    >>> lowest_joined(5, np.array([4, 2]), np.array([1, 4])).tolist()
    [0, 1, 1, 3, 1]
    """
    part = np.arange(number)
    while True:
        least = np.minimum(part[one], part[other])
        lower = part.copy()
        np.minimum.at(lower, part[one], least)
        np.minimum.at(lower, part[other], least)
        while (lower[lower] != lower).any():
            lower = lower[lower]
        if (lower == part).all():
            return part
        part = lower[part]


def last_at_most(ordered: Array, values: Array) -> Array:
    """Return the number of the last entry of an ascending column that is at most each value; -1 if there is none.

    What ``np.searchsorted(ordered, values, side="right") - 1`` returns. No number is negative. One sort of both takes a
    fraction of many searches for values that do not ascend.

    >>> last_at_most(np.array([2, 5, 5]), np.array([5, 1, 3])).tolist()
    [2, -1, 0]
    """
    bits = (len(ordered) + len(values)).bit_length()
    if max(int(ordered.max(initial=0)), int(values.max(initial=0))) >> (_WORD - bits):
        return np.searchsorted(ordered, values, side="right") - 1
    number = len(ordered)
    both = np.concatenate([ordered, values]).astype(np.int64) << bits
    both |= np.arange(len(both))  # of equals, entries of the column come before values
    both.sort()
    both &= (1 << bits) - 1
    is_value = both >= number
    found = np.empty(len(values), dtype=np.int64)
    found[both.compress(is_value) - number] = (np.cumsum(~is_value) - 1).compress(is_value)
    return found


def lexsort(keys: Sequence[Array]) -> Array:
    """Return what ``np.lexsort`` does: the order by the last key, then by the key before it, and so on, then by number.

    Integer keys are packed into one number. Numbers of at most 48 bits are sorted by digits, others together with the
    row's own number; that takes a fifth of the time or less. If the ranges of keys do not fit 64 bits together, the
    rows are sorted by the last key after they are by the others.

    >>> lexsort([np.array([2, 0, 1]), np.array([3, 3, 1])]).tolist()
    [2, 1, 0]
    """
    number = len(keys[0])
    if not number or any(key.dtype.kind not in "iub" or key.dtype == np.uint64 for key in keys):
        return np.lexsort(keys)
    lows = [int(key.min()) for key in keys]
    spans = [int(key.max()) - low + 1 for key, low in zip(keys, lows, strict=True)]
    bits, span_of_all = number.bit_length(), prod(spans)
    if span_of_all << bits >= 1 << 63:
        return _sorted_by_last(keys)
    packed = keys[-1].astype(np.int64)
    packed -= lows[-1]
    for key, low, span in zip(reversed(keys[:-1]), reversed(lows[:-1]), reversed(spans[:-1]), strict=True):
        if span > 1:
            packed *= span
            packed += key
            packed -= low
    if span_of_all <= 1 << _DIGITS * _DIGIT:
        return _sorted_by_digits(packed, span_of_all)
    packed <<= bits
    packed |= np.arange(number)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def _sorted_by_digits(values: Array, span: int) -> Array:
    """Return the stable order of values from 0 to below ``span``, which is at most 2^48."""
    order = np.argsort(values.astype(np.uint16), kind="stable")  # a radix sort; the cast keeps the lowest digit
    while span > 1 << _DIGIT:
        values, span = values >> _DIGIT, -(-span >> _DIGIT)
        order = order.take(np.argsort(values.astype(np.uint16).take(order), kind="stable"))
    return order


def _sorted_by_last(keys: Sequence[Array]) -> Array:
    """Return the order of rows by their keys, each too wide to be packed with all others."""
    if len(keys) == 1:
        return np.lexsort(keys)
    order = lexsort(keys[:-1])
    return order.take(lexsort([keys[-1].take(order)]))


def distinct_rows(rows: Array) -> Array:
    """Return the rows of a table of integers in order, each once: what ``np.unique(rows, axis=0)`` does, quicker.

    >>> distinct_rows(np.array([[3, 0], [1, 5], [3, 0]])).tolist()
    [[1, 5], [3, 0]]
    """
    ordered = rows[np.lexsort(rows.T[::-1])] if len(rows) else rows
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    found: Array = ordered[fresh]
    return found


class Columnar:
    """Base of classes whose fields are scalars and columns. Two are equal if all fields are. Not hashable."""

    __slots__ = ()

    SCALARS: ClassVar[tuple[str, ...]] = ()
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, s) == getattr(other, s) for s in self.SCALARS) and all(
            np.array_equal(getattr(self, c), getattr(other, c)) for c in self.COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]
