"""Conjecture 1 of the direct-connect paper (section F.4), tried on small circulants.

    python benchmarks/conjecture.py [--most N] [--offsets K] [--list]

The conjecture: every connected circulant C(n, {a_1, .., a_k}) has a breadth-first allgather that is bandwidth-optimal.
Checked are all n up to N (200) and all sets of up to K (3) offsets, exactly.

What is checked. A circulant looks alike from every node, so by Theorems 17 and 19 the schedule exists if and only if in
every step t no set L of the d links into node 0 has more than |L| * N_t / d shards confined to it, of the N_t that are
due. Shards are counted by the set of links they may use, for all sets of links and thousands of circulants at a
time; all numbers are small integers.

What is counted. Offsets are 1 .. n/2, since a and -a are the same pair of links. Multiplying all offsets by a unit of
Z_n renames the nodes, so one set of each class under the units is checked; the counts are of classes. (Two classes may
still be isomorphic graphs.)

The offset n/2 is special: i + n/2 and i - n/2 are one node. Definition 18 speaks of adjacent nodes, which makes it one
link and the degree 2k - 1; the paper also calls every C(n, {a_1, .., a_k}) 2k-regular, which makes it two parallel
links, as the family `circulant` of the language has it. Both readings are checked.

What came out, for n to 200 and k to 3 (a minute on one core):

The conjecture is false from three offsets on, and true up to two (k = 2 is proved in the paper). Of the 185,336 classes
with three offsets and without n/2, 3,104 have no such schedule; the smallest are C(15, {1, 4, 5}) and C(15, {1, 5, 6}).
In C(15, {1, 4, 5}) eight shards are due in step 2 on six links, 4/3 a link, but six of them (2, 3, 7, 8, 12 and 13
steps away) can come over the four links of +-1 and +-4 only, 3/2 a link: T_B is 1, not 14/15. In two thirds of the
counterexamples one offset is the sum of the others, or all add up to n; {1, 3, 4} fails for every n from 24 to 200.

With n/2 as one link 273 of 5,326 classes fail, all of three offsets; the smallest is C(8, {1, 3, 4}), which is K_{4,4}
with the four nodes of each side linked in pairs: these links are idle in step 2. With n/2 as two links every circulant
but C(2, {1}) fails, 148 classes of two offsets and all 5,326 of three: both links bring the same shard in step 1.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from math import comb, gcd

import attrs
import numpy as np

from collc.ir.arrays import Array

_BLOCK = 1 << 19  # nodes of circulants handled together


# ---- circulants up to units


def classes(n: int, k: int) -> Array:
    """Return one set of k offsets (a row, ascending) from every class of connected circulants on n nodes.

    Shape (classes, k), rows in lexicographic order; each is the least of its class.
    """
    half = n // 2
    if half < k:
        return np.zeros((0, k), dtype=np.int64)
    # Every class has a set with an offset that divides n: a unit takes any offset to its gcd with n.
    divisors = [g for g in range(1, half + 1) if n % g == 0]
    others = np.array(list(combinations(range(1, half + 1), k - 1)), dtype=np.int64).reshape(comb(half, k - 1), k - 1)
    sets = np.concatenate([np.column_stack([np.full(len(others), g), others]) for g in divisors])
    sets = np.sort(sets, axis=1)
    sets = sets[(np.diff(sets, axis=1) > 0).all(axis=1) & (np.gcd.reduce(sets, axis=1, initial=n) == 1)]
    least = np.full(len(sets), np.iinfo(np.int64).max)
    weight = (half + 1) ** np.arange(k)[::-1]
    for unit in (u for u in range(1, half + 1) if gcd(u, n) == 1):
        moved = sets * unit % n
        moved = np.sort(np.minimum(moved, n - moved), axis=1)
        np.minimum(least, moved @ weight, out=least)
    least = np.unique(least)
    return least[:, None] // weight % (half + 1)


# ---- the criterion


def first_unbalanced_step(steps: Array, n: int) -> Array:
    """Return for every row the first step (from 1) whose links cannot be equally busy, or 0 where all can.

    ``steps`` (rows, d) are the links of a node: from every node v to v + step. Rows are connected circulants, or any
    Cayley digraphs of Z_n.
    """
    block = max(1, _BLOCK // n)
    parts = [_first_unbalanced_step(steps[i : i + block], n) for i in range(0, len(steps), block)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _first_unbalanced_step(steps: Array, n: int) -> Array:
    """Breadth first from node 0 in all rows at once: link j brings to v what v - steps[j] has had one step before."""
    count, d = steps.shape
    found = np.zeros(count, dtype=np.int64)
    active = np.arange(count)
    tails = (np.arange(n) - steps[:, :, None]) % n
    reached = np.zeros((count, n), dtype=bool)
    reached[:, 0] = True
    frontier = reached.copy()
    sizes = np.array([mask.bit_count() for mask in range(1 << d)])
    for step in range(1, n):
        mask = np.zeros(frontier.shape, dtype=np.int64)
        for j in range(d):
            mask |= np.take_along_axis(frontier, tails[:, j], axis=1).astype(np.int64) << j
        frontier = (mask > 0) & ~reached
        reached |= frontier
        due = frontier.sum(axis=1)
        confined = _confined(mask, frontier, d)
        wrong = (d * confined > sizes * due[:, None]).any(axis=1)
        found[active[wrong]] = step
        frontier[wrong] = False
        going = frontier.any(axis=1)
        if not going.any():
            break
        if going.sum() < len(active) * 3 // 4:
            active, tails = active[going], tails[going]
            reached, frontier = reached[going], frontier[going]
    return found


def _confined(mask: Array, frontier: Array, d: int) -> Array:
    """Return how many of the shards due may use links of a set only, for every row and set of links."""
    row, node = np.nonzero(frontier)
    key = row << d | mask[row, node]
    table = np.bincount(key, minlength=len(mask) << d).reshape(len(mask), *(2,) * d)
    for axis in range(1, d + 1):  # sum over subsets, link by link
        table = np.cumsum(table, axis=axis)
    return table.reshape(len(mask), 1 << d)


# ---- the survey


@attrs.frozen
class Survey:
    """How many classes there are on n nodes with k offsets, how many of them with the offset n/2, and which fail.

    ``plain`` are without n/2, ``single`` with n/2 as one link, ``double`` with n/2 as two.
    """

    classes: int
    special: int
    plain: tuple[tuple[int, ...], ...]
    single: tuple[tuple[int, ...], ...]
    double: tuple[tuple[int, ...], ...]

    @property
    def counts(self) -> tuple[int, ...]:
        plain = self.classes - self.special
        return plain, len(self.plain), self.special, len(self.single), len(self.double)


def survey(n: int, k: int) -> Survey:
    """Check all circulants on n nodes with k offsets."""
    offsets = classes(n, k)
    special = offsets[:, -1] * 2 == n
    plain = failing(offsets[~special], n, n - offsets[~special])
    with_half = offsets[special]
    single = failing(with_half, n, n - with_half[:, :-1])
    double = failing(with_half, n, n - with_half)
    return Survey(len(offsets), int(special.sum()), plain, single, double)


def failing(offsets: Array, n: int, backwards: Array) -> tuple[tuple[int, ...], ...]:
    """Return the sets of offsets that have no balanced schedule with links of these and of the ``backwards`` ones."""
    wrong = first_unbalanced_step(np.concatenate([offsets, backwards], axis=1), n) > 0
    return tuple(tuple(row) for row in offsets[wrong].tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=200, metavar="N", help="check up to N nodes (200)")
    parser.add_argument("--offsets", type=int, default=3, metavar="K", help="check up to K offsets (3)")
    options = parser.parse_args()
    print("classes of connected circulants up to units; `fail`: no bandwidth-optimal breadth-first schedule")
    head = ("n", "k", "without n/2", "fail", "with n/2", "fail as one link", "fail as two", "s")
    print("{:>9}{:>3}{:>13}{:>8}{:>10}{:>18}{:>13}{:>8}".format(*head))
    found: list[str] = []
    for k in range(1, options.offsets + 1):
        for low in range(1, options.most + 1, 50):
            high, start, counts = min(low + 49, options.most), time.perf_counter(), np.zeros(5, dtype=np.int64)
            for n in range(low, high + 1):
                this = survey(n, k)
                counts += this.counts
                found += _lines(n, this)
            a, b, c, e, f = counts.tolist()
            seconds = time.perf_counter() - start
            print(f"{f'{low}-{high}':>9}{k:3}{a:13,}{b:8,}{c:10,}{e:18,}{f:13,}{seconds:8.1f}", flush=True)
    print("\n".join(["counterexamples:", *found]) if found else "no counterexamples")


def _lines(n: int, this: Survey) -> list[str]:
    kinds = (("", this.plain), (", n/2 as one link", this.single), (", n/2 as two links", this.double))
    return [
        f"n = {n}{what}: " + " ".join("{" + ", ".join(map(str, row)) + "}" for row in rows)
        for what, rows in kinds if rows
    ]  # fmt: skip


if __name__ == "__main__":
    main()
