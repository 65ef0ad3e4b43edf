"""Reduces the height of the tallest trees of a forest, without changing the load of any arc.

The trees grown last use the remaining capacity and may be many times as tall. But trees can trade (:mod:`.trading`): a
rank that is too deep, or one above it, gets a parent nearer to the root by an arc of another tree, which takes the
present arc in exchange. The other tree may become taller there, up to the limit; often the rank is a leaf in it. No
load changes, so no cut needs a check.

The limit falls step by step to the largest distance between ranks. If not all trees can keep a limit, they still become
lower. First trees trade all their copies with trees of as many copies; then some trees may be split. Each trade brings
ranks beyond the limit nearer to it and takes none past it. The effort is also bounded, in trees examined, not in
seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collc.ir.effort import spend

from .capacities import Tree
from .trading import Trading

__all__ = ["EFFORT", "flatten"]

EFFORT = 20_000_000
_MORE = 2  # trees may become half as many again
_STEPS = 8  # between the present height and the least


def flatten(
    num_ranks: int, capacity: dict[tuple[int, int], int], forest: Sequence[Tree], least: int, effort: int = EFFORT
) -> list[Tree]:
    """Return a forest with the same number of copies at every root and the same capacities, with mostly lower trees.

    ``least`` is a lower bound on the height of a forest; lower trees stay unchanged. At most ``effort`` trees are
    examined.
    """
    trading = Trading(num_ranks, capacity, forest, effort)
    for trading.most in (len(forest), len(forest) + len(forest) // _MORE):
        before: list[int] = []
        while before != (before := _heights_above(trading, least)) and before:
            steps = range(before[0] - 1, least - 1, -max(1, (before[0] - least) // _STEPS))
            for limit in steps:
                _lower(trading, limit)
    return trading.trees()


def _heights_above(trading: Trading, least: int) -> list[int]:
    return sorted((height for height in trading.height if height > least), reverse=True)


def _lower(trading: Trading, limit: int) -> None:
    """Make as many trees as possible no taller than a limit."""
    queue = sorted((i for i, height in enumerate(trading.height) if height > limit), key=lambda i: -trading.height[i])
    for number in queue:
        before = trading.effort
        while trading.height[number] > limit and trading.effort > 0:
            if not _raise_one(trading, number, limit, queue):
                break
        spend(before - trading.effort)


def _raise_one(trading: Trading, number: int, limit: int, queue: list[int]) -> bool:
    """Bring a rank of a tree that is deeper than the limit nearer to it; return whether that was possible."""
    for direct in (True, False):
        if any(_move(trading, number, y, x, limit, direct, queue) for y, x in _better_parents(trading, number, limit)):
            return True
    return any(
        _move_with_detour(trading, number, y, x, limit, queue) for y, x in _better_parents(trading, number, limit)
    )


def _better_parents(trading: Trading, number: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (rank, better parent) that raise a rank deeper than the limit; for each of the deepest ranks in turn, the
    largest improvement comes first."""
    tree = trading.tree(number)
    depth, seen = tree.depth, set[int]()
    for y in reversed(tree.order):
        if depth[y] <= limit or trading.effort <= 0:
            break
        candidates = []
        while y != tree.root and y not in seen:
            seen.add(y)
            at = depth[y] - 1
            trading.effort -= len(trading.room[y])
            candidates += [(depth[x] - at, y, x) for x in trading.room[y] if depth[x] < at]
            y = tree.parent[y]
        for _, y, x in sorted(candidates):
            yield y, x


def _move(trading: Trading, number: int, y: int, x: int, limit: int, direct: bool, queue: list[int]) -> bool:
    """Move rank y below x in a tree, if other trees can trade."""
    weight = trading.weight[number]
    for copies in (weight, 1) if weight > 1 and trading.may_split else (weight,):
        moves = trading.find_trade(number, y, x, limit, copies, direct)
        if moves is not None:
            queue += trading.exchange(moves, y)
            return True
    return False


def _move_with_detour(trading: Trading, number: int, y: int, target: int, limit: int, queue: list[int]) -> bool:
    """Move rank y below ``target`` if a trading tree reaches y's parent through y; that tree moves the parent first."""
    first = trading.parent[number][y]
    for other in list(trading.using(y)[target]):
        if trading.weight[other] == trading.weight[number]:
            for z, x in _detours(trading, other, first, y, limit):
                if _move(trading, other, z, x, limit, True, queue):
                    if _move(trading, number, y, target, limit, True, queue):
                        return True
                    break
    return False


def _detours(trading: Trading, number: int, x: int, y: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (rank, new parent) that move x out from below y in a tree, so that y can move below x."""
    tree = trading.tree(number)
    depth, z = tree.depth, x
    if not tree.is_below(x, y):
        return
    while z != y:
        trading.effort -= len(trading.room[z])
        lowest = limit - 2 - max(tree.below[z] - 1, depth[x] - depth[z] + tree.below[y])
        for parent in trading.room[z]:
            if depth[parent] <= lowest and not tree.is_below(parent, y):
                yield z, parent
        z = tree.parent[z]
