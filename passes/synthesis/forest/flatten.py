"""Making the tallest trees of a forest lower, without changing what any arc carries.

The trees grown last take what the others have left and may be many times as tall. But they can trade
(:mod:`.trading`): a rank that is too deep, or one above it, is hung nearer to the root by an arc that another tree has,
which takes the present one for it. The other becomes taller there, which may not take it past the limit; often only a
leaf hangs there. No load changes, so no cut needs a look.

A limit is lowered step by step to the farthest that any rank is from another; one that not all trees can keep
leaves them lower than they were. First trees trade all their copies with trees of as many, then some may be split. Each
trade brings ranks beyond the limit nearer to it and takes none past it; the effort is bounded besides, in trees
looked at, not in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .capacities import Tree
from .trading import Trading

__all__ = ["flatten"]

_EFFORT = 20_000_000
_MORE = 2  # trees may become half as many again
_STEPS = 8  # between the present height and the least


def flatten(num_ranks: int, capacity: dict[tuple[int, int], int], forest: Sequence[Tree], least: int) -> list[Tree]:
    """Return a forest of as many copies at every root, within the same capacities, whose trees are mostly lower.

    ``least`` is a height that no forest can do better than; lower trees stay as they are.
    """
    trading = Trading(num_ranks, capacity, forest, _EFFORT)
    for trading.most in (len(forest), len(forest) + len(forest) // _MORE):
        before: list[int] = []
        while before != (before := _tall(trading, least)) and before:
            steps = range(before[0] - 1, least - 1, -max(1, (before[0] - least) // _STEPS))
            for limit in steps:
                _lower(trading, limit)
    return trading.trees()


def _tall(trading: Trading, least: int) -> list[int]:
    return sorted((height for height in trading.height if height > least), reverse=True)


def _lower(trading: Trading, limit: int) -> None:
    """Make as many trees as possible no taller than a limit."""
    queue = sorted((i for i, height in enumerate(trading.height) if height > limit), key=lambda i: -trading.height[i])
    for number in queue:
        while trading.height[number] > limit and trading.effort > 0:
            if not _raise_one(trading, number, limit, queue):
                break


def _raise_one(trading: Trading, number: int, limit: int, queue: list[int]) -> bool:
    """Bring some rank of a tree that is deeper than the limit nearer to it; say whether that was possible."""
    for direct in (True, False):
        if any(_move(trading, number, y, x, limit, direct, queue) for y, x in _wishes(trading, number, limit)):
            return True
    return any(_make_way(trading, number, y, x, limit, queue) for y, x in _wishes(trading, number, limit))


def _wishes(trading: Trading, number: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (rank, rank nearer to the root than its parent) that would raise what is deeper than the limit; for each of
    the deepest ranks in turn what raises it most comes first."""
    tree = trading.tree(number)
    depth, seen = tree.depth, set[int]()
    for y in reversed(tree.order):
        if depth[y] <= limit or trading.effort <= 0:
            break
        wishes = []
        while y != tree.root and y not in seen:
            seen.add(y)
            at = depth[y] - 1
            trading.effort -= len(trading.room[y])
            wishes += [(depth[x] - at, y, x) for x in trading.room[y] if depth[x] < at]
            y = tree.parent[y]
        for _, y, x in sorted(wishes):
            yield y, x


def _move(trading: Trading, number: int, y: int, x: int, limit: int, direct: bool, queue: list[int]) -> bool:
    """Hang rank y below x in a tree, if others let it."""
    weight = trading.weight[number]
    for copies in (weight, 1) if weight > 1 and trading.may_split else (weight,):
        moves = trading.circle(number, y, x, limit, copies, direct)
        if moves is not None:
            queue += trading.exchange(moves, y)
            return True
    return False


def _make_way(trading: Trading, number: int, y: int, wanted: int, limit: int, queue: list[int]) -> bool:
    """Hang rank y below another, where a tree that would trade reaches y's parent through y: it moves that first."""
    first = trading.parent[number][y]
    for other in list(trading.using(y)[wanted]):
        if trading.weight[other] == trading.weight[number]:
            for z, x in _detours(trading, other, first, y, limit):
                if _move(trading, other, z, x, limit, True, queue):
                    if _move(trading, number, y, wanted, limit, True, queue):
                        return True
                    break
    return False


def _detours(trading: Trading, number: int, x: int, y: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (rank, new parent) that would take x out from below y in a tree, and let y hang below x."""
    tree = trading.tree(number)
    depth, z = tree.depth, x
    if not tree.hangs(x, y):
        return
    while z != y:
        trading.effort -= len(trading.room[z])
        lowest = limit - 2 - max(tree.below[z] - 1, depth[x] - depth[z] + tree.below[y])
        for way in trading.room[z]:
            if depth[way] <= lowest and not tree.hangs(way, y):
                yield z, way
        z = tree.parent[z]
