"""The trees of a forest: each in a panel of its own, the root on top, ranks as deep as their data come late.

An edge is a link, or a route through switches, which its tip names. The share that a tree carries is beside its root,
and edges are as wide as that share. In trees that reduce, data go up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, hypot

import attrs

from collc.ir.schedule import Forest
from collc.ir.shown import counted

from .charts import WIDTH, head
from .lettering import Box, shorten, width
from .networks import LEVELS, level_of, network_style, title_of
from .svg import Element, Picture, element, group, rectangle, text
from .svg import number as place_text

__all__ = ["Edge", "Tree", "trees_of", "trees_picture"]

_HEAD, _NAME, _ROW, _GAP = 62.0, 34.0, 40.0, 16.0
_MOST_COLUMNS, _LEAST_LEAF = 4, 30.0


@attrs.frozen
class Edge:
    """A row of a forest: the rank nearer to the root, the other one, and the nodes that the data pass."""

    row: int
    parent: int
    child: int
    depth: int
    through: tuple[int, ...]


@attrs.frozen
class Tree:
    """A tree: its number, its root, the share that it carries, its direction, and its edges, parents first."""

    number: int
    root: int
    share: Fraction
    inward: bool
    edges: tuple[Edge, ...]

    @property
    def height(self) -> int:
        """The edges on its longest path."""
        return max((edge.depth for edge in self.edges), default=0)

    def columns(self) -> dict[int, float]:
        """Return the column of every rank: leaves from left to right, others above the middle of their children."""
        children: dict[int, list[int]] = {}
        for edge in self.edges:
            children.setdefault(edge.parent, []).append(edge.child)
        found: dict[int, float] = {}
        leaves = 0
        order, waiting = list[int](), [self.root]
        while waiting:
            node = waiting.pop()
            order.append(node)
            waiting += reversed(children.get(node, []))
        for node in order:  # leaves in the order of a walk from left to right
            if node not in children:
                found[node] = float(leaves)
                leaves += 1
        for node in reversed(order):
            if node in children:
                places = [found[child] for child in children[node]]
                found[node] = (min(places) + max(places)) / 2
        return found


def trees_of(forest: Forest, most: int) -> list[Tree]:
    """Return up to ``most`` trees: those of the first roots, each root with its trees one after the other."""
    depth, routes = forest.depth, forest.routes
    rows: dict[int, list[int]] = {}
    chosen = range(min(most, forest.num_trees))
    for row, tree in enumerate(forest.tree.tolist()):
        if tree in chosen:
            rows.setdefault(tree, []).append(row)
    found = []
    for tree in chosen:
        edges = []
        for row in rows.get(tree, []):
            links = routes.links_of(int(forest.route[row]))
            through = tuple(int(forest.topology.dst[link]) for link in links[:-1])
            edges.append(Edge(row, int(forest.parent[row]), int(forest.child[row]), int(depth[row]), through))
        edges.sort(key=lambda edge: (edge.depth, edge.row))
        share, inward = forest.share(tree), bool(forest.inward[tree])
        found.append(Tree(tree, int(forest.root[tree]), share, inward, tuple(edges)))
    return found


def trees_picture(forest: Forest, number: int, most: int, subtitle: str = "") -> Picture:
    """Return the first ``most`` trees of a forest as a picture, which has ``number`` trees in all."""
    trees = trees_of(forest, most)
    left = number - len(trees)
    more = f" {counted(left, 'more tree')} not drawn." if left else ""
    title = f"Trees on {title_of(forest.topology)}"
    words = f"{subtitle} {counted(number, 'tree')}, {counted(forest.pieces, 'piece')}.{more}".strip()
    largest = max((tree.share for tree in trees), default=Fraction(0))
    body, top = list(head(title, words, WIDTH)), _HEAD
    for row in _rows(trees):
        wide = WIDTH / len(row)
        for place, tree in enumerate(row):
            body += _tree(forest, tree, Box(place * wide, top, (place + 1) * wide, 0), level_of(tree.share, largest))
        top += _NAME + max(tree.height for tree in row) * _ROW + 2 * _GAP + 14
    words_of = "; ".join(_in_words(forest, tree) for tree in trees[:12])
    return Picture(WIDTH, top + 8, title, f"{words} {words_of}", tuple(body), _style())


def _style() -> str:
    """Return the rules of networks, with edges as wide as their share."""
    return network_style() + "".join(f".s{n}{{stroke-width:{0.8 + 0.55 * n:.3g}px}}" for n in range(LEVELS + 1))


def _rows(trees: Sequence[Tree]) -> Iterator[list[Tree]]:
    """Yield the trees of each row of panels: as many as have room for their leaves."""
    row: list[Tree] = []
    for tree in trees:
        columns = max((_leaves(one) for one in [*row, tree]), default=1)
        fit = max(min(int(WIDTH / (columns * _LEAST_LEAF + 40)), _MOST_COLUMNS), 1)
        if len(row) + 1 > fit and row:
            yield row
            row = []
        row.append(tree)
    if row:
        yield row


def _leaves(tree: Tree) -> int:
    return ceil(max(tree.columns().values(), default=0.0)) + 1


def _in_words(forest: Forest, tree: Tree) -> str:
    """Return a tree in words."""
    direction = "to" if tree.inward else "from"
    return f"tree {tree.number} {direction} {forest.topology.names[tree.root]}, {tree.share}, height {tree.height}"


def _tree(forest: Forest, tree: Tree, room: Box, level: int) -> Iterator[Element]:
    names, columns = forest.topology.names, tree.columns()
    of = "vector" if forest.whole else "shard"
    name = f"tree {tree.number}: {'to' if tree.inward else 'from'} {names[tree.root]}, {tree.share} of its {of}"
    long = room.right - room.left
    yield text(
        (room.left + room.right) / 2, room.top + 12, shorten(name, long - 8, "label"), "label", "middle", tip=name
    )
    leaves = max(columns.values(), default=0.0)
    unit = min((long - 60) / max(leaves, 1), 90.0)
    shift = (room.left + room.right - leaves * unit) / 2
    depth = {tree.root: 0, **{edge.child: edge.depth for edge in tree.edges}}
    at = {node: (shift + x * unit, room.top + _NAME + depth[node] * _ROW) for node, x in columns.items()}
    for edge in tree.edges:
        yield _edge(forest, tree, edge, (at[edge.parent], at[edge.child]), level if unit >= 24 else min(level, 1))
    for node, place in at.items():
        yield _rank(names[node], place, unit, node == tree.root)


def _edge(
    forest: Forest, tree: Tree, edge: Edge, ends: tuple[tuple[float, float], tuple[float, float]], level: int
) -> Element:
    """Return an edge with the head of its direction."""
    (x1, y1), (x2, y2) = ends if not tree.inward else ends[::-1]
    x, y = x1 + (x2 - x1) * 0.6, y1 + (y2 - y1) * 0.6
    long = max(hypot(x2 - x1, y2 - y1), 1.0)
    dx, dy = (x2 - x1) / long * 6, (y2 - y1) / long * 6
    points = ((x - dx - dy * 0.6, y - dy + dx * 0.6), (x, y), (x - dx + dy * 0.6, y - dy - dx * 0.6))
    headed = "L".join(f"{place_text(a)} {place_text(b)}" for a, b in points)
    names = forest.topology.names
    through = f" through {', '.join(names[node] for node in edge.through)}" if edge.through else ""
    a, b = (edge.child, edge.parent) if tree.inward else (edge.parent, edge.child)
    return element(
        "path", element("title", f"{names[a]} to {names[b]}{through}"), class_=f"link k3 s{level}",
        d=f"M{place_text(x1)} {place_text(y1)}L{place_text(x2)} {place_text(y2)}M{headed}", data_tree=str(tree.number),
        data_parent=str(edge.parent), data_child=str(edge.child), data_share=str(tree.share),
    )  # fmt: skip


def _rank(name: str, place: tuple[float, float], unit: float, root: bool) -> Element:
    """Return a rank with its name, or with its indices, or without a name if there is no room."""
    x, y = place
    words = name if "[" not in name else name[name.index("[") + 1 : -1].replace(" ", "")
    room = max(unit, 24.0)
    label = next((one for one in (words, words.split(",")[-1]) if width(one, "label") + 6 <= room), "")
    wide = max(width(label, "label") + 8, 12.0)
    if not label or unit < 13:
        return group(rectangle(x - 3, y - 3, 6, 6, "node small"), tip=name)
    box = element("rect", class_="node", x=x - wide / 2, y=y - 9, width=wide, height=18, rx=2 if root else 9)
    return group(box, text(x, y + 4, label, "label", "middle"), tip=name)
