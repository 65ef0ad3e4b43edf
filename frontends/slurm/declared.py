"""What a Slurm topology declares, whichever of its two files it is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from collc.ir.diagnostic import Span, error

from ..importing.figures import Figures
from ..importing.hostlist import MOST_HOSTS, HostListError, expand

__all__ = ["Group", "Lists", "Named", "Shape", "Topology"]


@attrs.frozen(eq=False)
class Named:
    """A name and its place."""

    name: str
    span: Span


@attrs.frozen(eq=False)
class Group:
    """A switch, block, ring or torus: its name, the hosts in it, and the switches below it."""

    name: Named
    hosts: tuple[Named, ...] = ()
    children: tuple[Named, ...] = ()


@attrs.frozen(eq=False)
class Shape:
    """A torus: its dimensions, x first, and the host at each coordinate; x is fastest in the order of hosts."""

    name: Named
    dims: tuple[int, int, int]
    places: tuple[tuple[tuple[int, int, int], Named], ...]


@attrs.define
class Topology:
    """One topology: ``kind`` is tree, block, ring or torus3d; ``is_chosen`` if the user names it."""

    kind: str
    groups: list[Group] = attrs.Factory(list)
    shapes: list[Shape] = attrs.Factory(list)
    span: Span | None = None
    is_chosen: bool = False


class Lists:
    """Host lists of one file, which together have at most as many names as a network may have links."""

    def __init__(self, figures: Figures):
        self.figures = figures
        self.names_read = 0
        self.is_full = False  # then one mistake says so, and no other list is read

    def names(self, text: str, place: Callable[[int, int], Span]) -> Sequence[Named]:
        """Return the names of a host list, each at the place of the list.

        ``place`` gives the place of characters of the text. Raises C0924 for text that is no list, and C0933 for more
        names than the limits.
        """
        whole = place(0, len(text))
        if self.is_full:
            return []
        try:
            found = expand(text, max(MOST_HOSTS, self.figures.node_limit))
        except HostListError as failure:
            raise error("C0924", str(failure), span=place(failure.start, failure.end), hint=failure.hint) from None
        self.names_read += len(found)
        self.is_full = len(found) > self.figures.node_limit or self.names_read > self.figures.link_limit
        self.figures.require_within(len(found), self.names_read, whole)
        return [Named(name, whole) for name in found]
