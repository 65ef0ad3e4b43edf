"""Compares the program that was read with the one that was to be written, column by column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collc.ir.one_sided.program import OneSided

__all__ = ["differences"]

_SETTINGS = ("chunks", "packets", "inplace", "double_scratch", "reuse", "threads", "alignment")


def differences(found: OneSided, due: OneSided) -> Iterator[str]:
    """Yield what of the program that a plan holds differs from the one that was to be written."""
    for name in _SETTINGS:
        if getattr(found, name) != getattr(due, name):
            yield f"{name} is {getattr(found, name)}, not {getattr(due, name)}"
    for name in OneSided.COLUMNS:
        one, other = (getattr(program, name) for program in (found, due))
        if len(one) != len(other):
            yield f"found {len(one)} values of {name}, needed {len(other)}"
        elif not np.array_equal(one, other):
            at = int(np.flatnonzero(one.astype(np.int64) != other)[0])
            yield f"value {at} of {name} is {one[at]}, not {other[at]}"
