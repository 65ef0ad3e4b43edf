"""Short texts of lists of numbers, in the language's notation: ``12..16`` is 12, 13, 14 and 15."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["runs"]


def runs(numbers: Iterable[int], shortest: int = 4) -> list[str]:
    """Return ascending numbers as texts, runs of at least ``shortest`` as ranges.

    >>> runs([1, 2, 3, 7, *range(9, 20)])
    ['1', '2', '3', '7', '9..20']
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1]:
            found[-1][1] += 1
        else:
            found.append([number, number + 1])
    texts: list[str] = []
    for start, end in found:
        texts += [f"{start}..{end}"] if end - start >= shortest else map(str, range(start, end))
    return texts
