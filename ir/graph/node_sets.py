"""Short texts of sets of nodes: boxes, ranges, rows and columns, or all nodes but a few.

The text names the ranks of a set, and a switch only where it matters for the bandwidth of a cut. ``to`` includes both
ends: ``ranks 0 to 63`` are 64 ranks. A box has a number where names give one (``gpu[b, i]`` is in box b), or where
nodes have no names and links divide the ranks (:mod:`.boxes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from ..node_names import split_name
from ..shown import counted
from ..topology import Topology
from .bottleneck import leaving
from .boxes import boxes_of

__all__ = ["LONGEST", "NodeSets", "spans"]

#: a longer text gives numbers of ranks and boxes instead of the set
LONGEST = 60
_MOST_WITHOUT = 4  # nodes that are listed after "without"
_BRACES = 12  # characters that take as long to read as braces
_SHORTEST_STRIDE = 4  # numbers of equal distance that are written as first, second, .., last
_GRIDS = ("torus", "mesh")  # rank i * width + j is in row i and column j


def spans(numbers: Iterable[int]) -> list[str]:
    """Return ascending numbers as texts: runs of at least 3 with both ends, equal distances by their first two.

    >>> spans([0, 1, 2, 3, 7]), spans([0, 4, 8, 12, 16]), spans([5, 6])
    (['0 to 3', '7'], ['0, 4, .., 16'], ['5', '6'])
    """
    found = sorted(numbers)
    steps = {b - a for a, b in pairwise(found)}
    if len(found) >= _SHORTEST_STRIDE and len(steps) == 1 and steps != {1}:
        return [f"{found[0]}, {found[1]}, .., {found[-1]}"]
    texts, start = list[str](), 0
    for end in range(1, len(found) + 1):
        if end == len(found) or found[end] != found[end - 1] + 1:
            run = found[start:end]
            texts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
            start = end
    return texts


class NodeSets:
    """Names of sets of nodes of one topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    # ---- texts

    def text(self, nodes: Iterable[int], inward: bool | None = None) -> str:
        """Return a text of the ranks of a set, at most about :data:`LONGEST` characters.

        ``inward`` is the direction of the links that count: switches are named if without them the bandwidth of the
        links out of the set, or into it, is another. None: they are left out. A text of a larger set that is not
        exact begins with the number of ranks and ends with an example.

        >>> from collc.frontends.coll import topology
        >>> pod = NodeSets(topology("dgx_a100(4)"))
        >>> pod.text(range(8, 16)), pod.text([0, 1, 2]), pod.text([*range(5), 6, 7, *range(16, 32)])
        ('box 1', 'gpu[0, 0 to 2]', 'all but box 1 and gpu[0, 5]')
        """
        chosen = frozenset(nodes)
        ranks = tuple(sorted(node for node in chosen if node < self.topology.num_ranks))
        short = [one for one in self._exact(ranks) if len(one[0]) <= LONGEST]
        exact = [text + self._switches(chosen, frozenset(ranks), implied, inward) for text, implied in short]
        return min(exact, key=_effort) if exact else self._counts(ranks)

    def named(self, nodes: Iterable[int]) -> tuple[str, ...]:
        """Return texts that together are exactly this set, switches included: names with ranges of indices.

        Ranks without names are ``0 to 63``, in numbers; switches without names have numbers too.

        >>> from collc.frontends.coll import topology
        >>> NodeSets(topology("dgx_a100(2)")).named([*range(8), 16]), NodeSets(topology("torus(4, 4)")).named(range(8))
        (('gpu[0, 0 to 7]', 'nv[0]'), ('0 to 7',))
        """
        chosen = sorted(set(nodes))
        return tuple(self._terms(chosen) if self.topology.node_names else spans(chosen))

    def one(self, node: int) -> str:
        """Return a single node: ``rank 3``, ``rank gpu[0, 1]``, ``switch nv[0]``."""
        kind = "rank" if node < self.topology.num_ranks else "switch"
        return f"{kind} {self.topology.names[node]}"

    # ---- boxes

    @cached_property
    def boxes(self) -> Mapping[int, tuple[int, ...]]:
        """The ranks of every box by its number; empty if there are no boxes."""
        if self.topology.node_names is None:
            found = boxes_of(self.topology)
            return dict(enumerate(found.ranks)) if found is not None else {}
        groups: dict[int, list[int]] = {}
        families = set()
        for rank in range(self.topology.num_ranks):
            family, indices = split_name(self.topology.names[rank])
            if len(indices) < 2:
                return {}
            families.add(family)
            groups.setdefault(indices[0], []).append(rank)
        by_name = {box: tuple(ranks) for box, ranks in sorted(groups.items())}
        if len(by_name) < 2 or max(map(len, by_name.values())) < 2:
            return {}
        if families != {"gpu"}:
            found = boxes_of(self.topology)
            return by_name if found is not None and sorted(by_name.values()) == sorted(found.ranks) else {}
        return by_name

    @cached_property
    def _box_of(self) -> dict[int, int]:
        """The box of every rank, and of every switch whose neighbours are all in one box or beyond boxes."""
        found = {rank: box for box, ranks in self.boxes.items() for rank in ranks}
        beside: dict[int, set[int]] = {}
        for a, b in zip(self.topology.src.tolist(), self.topology.dst.tolist(), strict=True):
            beside.setdefault(a, set()).add(b)
            beside.setdefault(b, set()).add(a)
        left = set(range(self.topology.num_ranks, self.topology.num_nodes)) if found else set()
        while True:
            joined = {node: boxes.pop() for node in left if len(boxes := self._around(beside, node, found)) == 1}
            joined = {node: box for node, box in joined.items() if self._may_join(node, box)}
            if not joined:
                return found
            found |= joined
            left -= joined.keys()

    @staticmethod
    def _around(beside: Mapping[int, set[int]], node: int, box_of: Mapping[int, int]) -> set[int]:
        return {box_of[near] for near in beside.get(node, ()) if near in box_of}

    def _may_join(self, node: int, box: int) -> bool:
        """Return whether the name of a switch allows that it is in a box: its first index, if it has one."""
        if self.topology.node_names is None:
            return True
        indices = split_name(self.topology.names[node])[1]
        return bool(indices) and indices[0] == box

    @cached_property
    def _switches_of(self) -> dict[int, frozenset[int]]:
        """The switches of every box."""
        found: dict[int, set[int]] = {box: set() for box in self.boxes}
        for node, box in self._box_of.items():
            if node >= self.topology.num_ranks:
                found[box].add(node)
        return {box: frozenset(nodes) for box, nodes in found.items()}

    # ---- texts of ranks

    def _exact(self, ranks: tuple[int, ...]) -> Iterator[tuple[str, frozenset[int]]]:
        """Yield exact texts of a set of ranks, the preferred one of equally long ones first.

        Each comes with the switches that it includes: of a box its own, of all nodes but a few all others.
        """
        total = self.topology.num_ranks
        switches = frozenset(range(total, self.topology.num_nodes))
        if len(ranks) == total:
            yield "all ranks", switches
        if len(ranks) == 1:
            yield self.one(ranks[0]), frozenset()
            return
        yield from ((text, self._inside_boxes(ranks)) for text in self._plain(ranks))
        others = tuple(sorted(set(range(total)).difference(ranks)))
        if len(others) == 1:
            yield f"all but {self.one(others[0])}", switches
        elif 0 < len(others) < len(ranks):
            yield from ((f"all but {text}", switches - self._inside_boxes(others)) for text in self._plain(others))

    def _plain(self, ranks: tuple[int, ...]) -> Iterator[str]:
        yield from self._by_boxes(ranks)
        yield from self._by_lines(ranks)
        if self.topology.node_names:
            yield ", ".join(self._terms(ranks))
        else:
            yield f"ranks {', '.join(spans(ranks))}"

    def _by_boxes(self, ranks: tuple[int, ...]) -> Iterator[str]:
        """Yield whole boxes, without some ranks or with some of another."""
        if not self.boxes:
            return
        chosen = set(ranks)
        kept = {box: chosen.intersection(own) for box, own in self.boxes.items() if not chosen.isdisjoint(own)}
        whole = [box for box, own in kept.items() if len(own) == len(self.boxes[box])]
        rest = sorted(rank for box, own in kept.items() if len(own) < len(self.boxes[box]) for rank in own)
        if whole:
            more = f" and {', '.join(self._short(rest))}" if rest else ""
            yield _boxes_text(whole) + more
        missing = sorted(rank for box in kept for rank in set(self.boxes[box]) - chosen)
        if 0 < len(missing) <= _MOST_WITHOUT:
            yield f"{_boxes_text(sorted(kept))} without {', '.join(self._short(missing))}"

    def _short(self, ranks: Sequence[int]) -> list[str]:
        if self.topology.node_names:
            return self._terms(ranks)
        return [f"rank{'s' if len(ranks) > 1 else ''} {', '.join(spans(ranks))}"]

    def _by_lines(self, ranks: tuple[int, ...]) -> Iterator[str]:
        """Yield rows or columns of a grid of two dimensions without names."""
        origin = self.topology.origin
        while origin is not None and origin.name == "degraded" and origin.bases:
            origin = origin.bases[0].origin
        if origin is None or origin.name not in _GRIDS or self.topology.node_names:
            return
        sides = [side for side in origin.arguments if isinstance(side, int)]
        if len(sides) != 2 or sides[0] * sides[1] != self.topology.num_ranks:
            return
        height, width = sides
        for word, lines, length in (
            ("row", {rank // width for rank in ranks}, width), ("column", {rank % width for rank in ranks}, height),
        ):  # fmt: skip
            if len(lines) * length == len(ranks):
                yield f"{word}{'s' if len(lines) > 1 else ''} {', '.join(spans(lines))}"

    def _terms(self, nodes: Sequence[int]) -> list[str]:
        """Return names with ranges of indices, families in the order of their first nodes."""
        families: dict[str, list[tuple[int, ...]]] = {}
        for node in nodes:
            family, indices = split_name(self.topology.names[node])
            families.setdefault(family, []).append(indices)
        found = []
        for family, members in families.items():
            for length in sorted({len(one) for one in members}):
                terms = _index_terms([one for one in members if len(one) == length])
                found += [f"{family}[{term}]" if length else family for term in terms]
        return found

    def _switches(
        self, nodes: frozenset[int], ranks: frozenset[int], implied: frozenset[int], inward: bool | None
    ) -> str:
        """Return what the text of the ranks must say of switches: those that matter for the bandwidth."""
        switches = nodes - ranks
        if inward is None or switches == implied or self._width(nodes, inward) == self._width(ranks | implied, inward):
            return ""
        added, missing = sorted(switches - implied), sorted(implied - switches)
        found = f" with {self.switches(added)}" if added else ""
        return found + (f" without {self.switches(missing)}" if missing else "")

    def _inside_boxes(self, ranks: tuple[int, ...]) -> frozenset[int]:
        """Return the switches of the boxes of which a set of several ranks has every rank."""
        chosen = set(ranks) if len(ranks) > 1 else set()
        whole = [self._switches_of[box] for box, own in self.boxes.items() if chosen.issuperset(own)]
        return frozenset().union(*whole)

    def switches(self, switches: Iterable[int]) -> str:
        """Return a text of some switches: their names, or if that is long their number."""
        chosen = sorted(switches)
        texts = self.named(chosen) if self.topology.node_names else [self.one(node) for node in chosen]
        listed = ", ".join(texts)
        return listed if len(listed) <= LONGEST // 2 else counted(len(chosen), "switch")

    def _width(self, nodes: frozenset[int], inward: bool) -> Fraction:
        """Return the bandwidth out of a set, or into it."""
        side = frozenset(range(self.topology.num_nodes)) - nodes if inward else nodes
        return sum((self.topology.bandwidth(link) for link in leaving(self.topology, side).tolist()), Fraction(0))

    def _counts(self, ranks: tuple[int, ...]) -> str:
        """Return the number of ranks and of boxes, and an example."""
        boxes = {self._box_of[rank] for rank in ranks} if self.boxes else set()
        of = f" of {counted(len(boxes), 'box')}" if boxes else ""
        return f"{counted(len(ranks), 'rank')}{of}, such as {self.topology.names[ranks[0]]}"


def _effort(text: str) -> int:
    """Return how long a text takes to read: its length, and more if it has braces."""
    return len(text) + _BRACES * ("{" in text)


def _boxes_text(boxes: Sequence[int]) -> str:
    return f"box{'es' if len(boxes) > 1 else ''} {', '.join(spans(boxes))}"


def _index_terms(indices: Sequence[tuple[int, ...]]) -> list[str]:
    """Return tuples of indices as products of ranges: first indices with the same others are joined.

    >>> _index_terms([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 5)])
    ['{0, 1}, 0 to 2', '2, 5']
    """
    if not indices or not indices[0]:
        return [""] if indices else []
    if len(indices[0]) == 1:
        return [_braced([one[0] for one in indices])]
    tails: dict[int, list[tuple[int, ...]]] = {}
    for first, *rest in indices:
        tails.setdefault(first, []).append(tuple(rest))
    alike: dict[tuple[str, ...], list[int]] = {}
    for first, others in tails.items():
        alike.setdefault(tuple(_index_terms(others)), []).append(first)
    return [f"{_braced(firsts)}, {tail}" for terms, firsts in alike.items() for tail in terms]


def _braced(numbers: Sequence[int]) -> str:
    texts = spans(numbers)
    text = ", ".join(texts)
    return f"{{{text}}}" if "," in text else text
