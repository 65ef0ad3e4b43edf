"""Barriers of blocks that were cut: the parts that meet have one of their own."""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import Excess, error
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided

__all__ = ["with_own_barriers"]


def with_own_barriers(cut: OneSided, origin: Array, most: int) -> OneSided:
    """Return the program with a barrier for each set of blocks that meet; ``origin`` is the block that each was cut of.

    The k-th operations on a barrier, of all blocks that use it, meet. Raises C0574 if a rank needs more than ``most``.
    """
    rows = np.flatnonzero(cut.opcode == Op.BARRIER)
    if not len(rows):
        return cut
    uses: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    blocks = cut.block[rows]
    keys = zip(cut.rank[rows].tolist(), cut.number[rows].tolist(), origin[blocks].tolist(), strict=True)
    for (rank, number, whole), row, block in zip(keys, rows.tolist(), blocks.tolist(), strict=True):
        uses[rank, number][whole].append((row, block))
    numbers = cut.number.astype(np.int64).copy()
    found: dict[int, dict[tuple[int, ...], int]] = defaultdict(dict)
    for (rank, _), of_blocks in sorted(uses.items()):
        for meeting in zip_longest(*of_blocks.values()):
            there = [use for use in meeting if use is not None]
            together = tuple(block for _, block in there)
            numbers[[row for row, _ in there]] = found[rank].setdefault(together, len(found[rank]))
    fullest = max(map(len, found.values()))
    if fullest > most:
        raise error(
            "C0574", f"blocks of a rank meet at {fullest} barriers, {most} barriers exist",
            hint="use `instances` in place of `shares`, or packets (`protocol=LL`), which need fewer operations",
            exit_status=3, excess=Excess("barriers", fullest, most),
        )  # fmt: skip
    return attrs.evolve(cut, number=numbers)
