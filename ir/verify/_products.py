"""Check the products of a group that the images of a program need: (r p)(p' x) = r x for all elements r and x.

p are the elements of peers, p' their inverses. Checked one by one, that is a table of all products for each peer. One
table is enough. Let L be the permutations that multiplications by peers on the left generate, and R those on the right.
If all generators of L commute with all of R, and R takes 0 to every element, then two permutations in L that agree on 0
are equal. If r = p y, and r x = p (y x) for all x, then multiplication by r is in L where that by y is; it takes 0 to
r. So (r p)(p' x) and r x are permutations in L of x, which agree on 0 if (r p) p' = r.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..group import Group

__all__ = ["products_agree"]

_BLOCK = 1 << 22  # products compared together


def products_agree(group: Group, peers: Array) -> bool:
    """Return whether (r p)(p' x) = r x is proved for all elements r and x, and elements p of peers, with inverses p'.

    0 is the identity, which is checked before. False also if the peers do not generate the group.
    """
    elements = np.arange(group.order)
    by = [group.multiply(int(p), elements) for p in peers.tolist()]
    after = [group.multiply(elements, int(p)) for p in peers.tolist()]
    if not by or not all(np.array_equal(np.sort(one), elements) for one in (*by, *after)):
        return False
    back = group.inverse(peers)
    undone = all(np.array_equal(group.multiply(a, int(p)), elements) for a, p in zip(after, back.tolist(), strict=True))
    if not (undone and all(np.array_equal(a[one], one[a]) for one in by for a in after)):
        return False
    reached, words = _words(after), _words(by)
    return reached is not None and words is not None and _are_products(group, np.stack(by), *words)


def _words(permutations: list[Array]) -> tuple[Array, Array] | None:
    """Return for each element but 0 a permutation that takes another one to it, and this one, which leads to 0.

    None if there are elements that no permutations take 0 to.
    """
    order = len(permutations[0])
    first, rest = np.full(order, -1), np.zeros(order, dtype=np.int64)
    known = np.zeros(order, dtype=bool)
    known[0], fresh = True, np.zeros(1, dtype=np.int64)
    while len(fresh):
        found = []
        for number, moved in enumerate(permutations):
            image = moved[fresh]
            new = ~known[image]  # different elements have different images
            known[image], first[image[new]], rest[image[new]] = True, number, fresh[new]
            found.append(image[new])
        fresh = np.concatenate(found)
    return (first, rest) if known.all() else None


def _are_products(group: Group, by: Array, first: Array, rest: Array) -> bool:
    """Return whether r x = p (y x) for all r = p y and all x; p is peer ``first[r]``, y is ``rest[r]``."""
    elements = np.arange(group.order)
    rows = max(1, _BLOCK // group.order)
    for begin in range(1, group.order, rows):
        these = elements[begin : begin + rows]
        found = group.multiply(these[:, None], elements[None, :])
        inner = group.multiply(rest[these][:, None], elements[None, :])
        if not np.array_equal(found, by[first[these][:, None], inner]):
            return False
    return True
