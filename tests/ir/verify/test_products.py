"""Products of a group that a program's images need: proved by one table, and a changed product is found."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.arrays import Array
from collc.ir.group import Group, parse_group
from collc.ir.verify._products import products_agree

GROUPS = (
    "cyclic(7)", "abelian(4, 5)", "mirrored(8, 6)", "dihedral(7)", "symmetric(4)", "psl(2, 5)", "dicyclic(3)",
)  # fmt: skip


@attrs.frozen(eq=False)
class Table(Group):
    """A group, or none, by the table of its products."""

    products: Array
    inverses: Array

    @property
    def order(self) -> int:
        return len(self.products)

    @property
    def expression(self) -> str:
        return "table"

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        found: Array = self.products[a, b]
        return found

    def inverse(self, a: Array | int) -> Array:
        found: Array = self.inverses[a]
        return found


def table(group: Group) -> Table:
    elements = np.arange(group.order)
    return Table(group.multiply(elements[:, None], elements[None, :]), group.inverse(elements))


def generating(group: Group, some: set[int]) -> Array:
    """Return elements and their inverses that generate a group: some, and as many others as needed."""
    chosen, reached = np.array(sorted(some), dtype=np.int64), np.zeros(1, dtype=np.int64)
    while len(reached) < group.order:
        wider = np.unique(np.append(reached, group.multiply(reached[:, None], chosen[None, :])))
        if len(wider) == len(reached):
            chosen = np.append(chosen, np.setdiff1d(np.arange(group.order), reached)[0])
        reached = wider
    return np.unique(np.concatenate([chosen, group.inverse(chosen)]))


@given(st.sampled_from(GROUPS), st.data())
def test_a_group_agrees_and_a_changed_product_does_not(name: str, data: st.DataObject) -> None:
    group = parse_group(name)
    numbers = st.integers(1, group.order - 1)
    peers = generating(group, data.draw(st.sets(numbers, min_size=1, max_size=3)))
    known = table(group)
    assert products_agree(group, peers) and products_agree(known, peers)
    row, (a, b) = data.draw(numbers), data.draw(st.lists(numbers, min_size=2, max_size=2, unique=True))
    products = known.products.copy()
    products[row, [a, b]] = products[row, [b, a]]
    assert not products_agree(attrs.evolve(known, products=products), peers)


@pytest.mark.quick
def test_a_wrong_inverse_and_peers_of_a_part_of_the_group_are_not_proved() -> None:
    group = parse_group("abelian(4, 5)")
    known, peers = table(group), np.array([1, 4, 5, 15])
    assert products_agree(known, peers)
    wrong = known.inverses.copy()
    wrong[[1, 4]] = wrong[[4, 1]]
    assert not products_agree(attrs.evolve(known, inverses=wrong), peers)
    assert not products_agree(known, np.array([1, 4])) and not products_agree(known, peers[:0])
