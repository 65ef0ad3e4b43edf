"""Cayley digraphs of any group that the language names: networks that look the same from every rank."""

from __future__ import annotations

import numpy as np

from collc.ir.diagnostic import CollcError
from collc.ir.group import Group
from collc.ir.topology import Topology

from . import _sizes
from ._sizes import domain

__all__ = ["cayley"]


def cayley(group: Group, generators: tuple[int, ...]) -> Topology:
    """Return the digraph in which rank x is linked to x * g for every generator g, a rank for every group element.

    Generators are numbers of elements, ascending; link x*d + i is that of rank x and generator i. Multiplying on the
    left keeps links and their places, so the group is the topology's symmetry, abelian or not. A set of generators
    that holds every inverse gives links both ways. Raises C0320.

    >>> from collc.ir.group import build_group
    >>> net = cayley(build_group("dihedral", [4]), (1, 2))
    >>> net.num_ranks, net.degree, net.diameter
    (8, 2, 3)
    """
    ranks, degree = np.arange(group.order), len(generators)
    heads = group.multiply(ranks[:, None], np.array(generators, dtype=np.int64))
    return Topology("cayley", group.order, np.repeat(ranks, degree), heads.ravel(), symmetry=group)


def cayley_size(group: Group, generators: tuple[int, ...]) -> tuple[int, int]:
    if not generators:
        raise _no_generators("found no generators, needed at least one", "write `cayley(GROUP, {1, ..})`")
    for g in generators:
        if not 0 <= g < group.order:
            last = f"elements of `{_shortened(group)}`, 1 to {group.order - 1}"
            need = last if group.order > 1 else "a group of more than one element"
            raise _no_generators(f"found generator {g}, needed {need}", item=g)
        if g == 0:
            hint = "element 0 is the identity; leave it out"
            raise _no_generators("found generator 0, which would link every rank to itself", hint, g)
    return group.order, _sizes.prod([group.order, len(generators)])


def _no_generators(message: str, hint: str | None = None, item: int | None = None) -> CollcError:
    return domain(message, hint, "generators", item, "C0320")


def _shortened(group: Group) -> str:
    text = group.shown
    return text if len(text) < 60 else "the group"
