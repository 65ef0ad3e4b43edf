"""The variable ``UCC_TL_UCP_TUNE``: which algorithm UCC takes for which size and number of ranks.

An entry is ``FUNCTION:FIRST-END:[RANKS-RANKS]:inf:@ALGORITHM``; entries are joined by ``#``. A size at which one range
ends and the next begins belongs to the next, since both have the same score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from collc.ir.tuning import LARGEST, Tuning

__all__ = ["Tune", "read_tune", "tune_text"]

#: (function, ranks) -> (first size, algorithm), ascending
Tune: TypeAlias = dict[tuple[str, int], list[tuple[int, str]]]

_ENTRY = re.compile(r"([a-z_]+):(\d+)-(\d+|inf):\[(\d+)-(\d+)\]:inf:@([a-z_]+)")


def tune_text(choices: Sequence[tuple[str, bool, Tuning]]) -> str:
    """Return the value for (function, whether it decides by the bytes of one rank's block, its choice)."""
    return "#".join(one for function, per_rank, tuning in choices for one in _entries(function, per_rank, tuning))


def _entries(function: str, per_rank: bool, tuning: Tuning) -> list[str]:
    ranks = tuning.collective.num_ranks
    step = ranks if per_rank else 1
    lows = [(-(-one.low // step), one.algorithm) for one in tuning.ranges]
    # Of ranges that begin at the same block the last holds: the others have no whole block.
    lows = [one for one, after in zip(lows, [*lows[1:], (LARGEST, "")], strict=True) if one[0] < after[0]]
    ends = [str(low) for low, _ in lows[1:]] + ["inf"]
    return [
        f"{function}:{low}-{end}:[{ranks}-{ranks}]:inf:@{algorithm}"
        for (low, algorithm), end in zip(lows, ends, strict=True)
    ]  # fmt: skip


def read_tune(text: str) -> Tune:
    """Return what UCC reads in a value; raise ValueError for one that has other entries, or gaps between them."""
    found: Tune = {}
    ends: dict[tuple[str, int], str] = {}
    for entry in text.split("#"):
        match = _ENTRY.fullmatch(entry)
        if match is None or match[4] != match[5]:
            raise ValueError(f"no entry: `{entry}`")
        key = (match[1], int(match[4]))
        if ends.get(key, "0") != match[2]:
            raise ValueError(f"the range before `{entry}` ends at {ends.get(key, '0')}")
        ends[key] = match[3]
        found.setdefault(key, []).append((int(match[2]), match[6]))
    if open_ := [key for key, end in ends.items() if end != "inf"]:
        raise ValueError(f"the ranges of {open_[0][0]} end")
    return found
