"""The target ``dot``: a network with the loads of its links, and the trees of a forest, as graphs for Graphviz."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import attrs

from collc.ir.account import Account
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.schedule import Forest
from collc.ir.shown import counted
from collc.ir.topology import Topology
from collc.ir.verify import Check, Report

from ..base import Artifact, Target, first_difference
from ..networks.dot import quoted, write
from ..pictures.loads import added_up, forest_of, link_loads_of
from ..pictures.networks import LEVELS, LinkLoads, level_of
from ..pictures.trees import Tree, trees_of
from ..simulator import simulate

__all__ = ["Dot"]

_MOST_TREES = 256
_NODE = re.compile(r"  (\d+) \[(.*)\];")
_LINK = re.compile(r"  (\d+) -> (\d+) \[(.*?)(, dir=both)?\];")
_EDGE = re.compile(r"    t(\d+)_(\d+) -> t(\d+)_(\d+) \[(.*)\];")
_OF_LINKS = ("bandwidth", "latency", "tooltip", "penwidth")
_ATTRIBUTE = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@frozen
class Dot(Target):
    """A network for Graphviz, NAME.dot: links are as wide as they are loaded, and dotted if they carry nothing.

    Beside it is NAME-trees.dot for a schedule by trees, one cluster a tree. `neato`, `dot` or `fdp` draw them.
    """

    name: ClassVar[str] = "dot"
    summary: ClassVar[str] = "the network with loads, and the trees, as graphs for Graphviz"
    suffix: ClassVar[str] = ".dot"
    level: ClassVar[str] = "account"

    picture: Literal["all", "topology", "trees"] = attrs.field(
        default="all", metadata={"help": "which graph: all, topology or trees"}
    )
    trees: int = attrs.field(default=12, metadata={"help": "the largest number of trees, 1 to 256"})

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.trees <= _MOST_TREES:
            needed = f"1 to {_MOST_TREES}"
            raise error("C0820", f"`trees` is {self.trees}, needed {needed}", option="trees", exit_status=2)

    def emit(self, ir: Account) -> Sequence[Artifact]:
        """Return the graphs, the network first.

        Raises C0301 if a message has no route, C0780 for names with control characters, C0821 for the trees of a
        schedule in which nothing moves.
        """
        algorithm, found = ir.shown, []
        if self.picture != "trees":
            loads = link_loads_of(simulate(algorithm.schedule))
            text = write(ir.topology, [_drawn(loads, link) for link in range(ir.topology.num_links)])
            found.append(Artifact(f"{ir.name}{self.suffix}", text, self.name))
        forest = forest_of(algorithm) if self.picture != "topology" else None
        if forest is not None:
            ending = f"-trees{self.suffix}" if found else ""
            text = "\n".join([*_trees(forest[0], trees_of(forest[0], self.trees)), ""])
            found.append(Artifact(f"{ir.name}{ending or self.suffix}", text, self.name, ending=ending))
        if not found:
            message = f"`{ir.name}` has no trees to draw: nothing moves by `{algorithm.cost.scheduler}`"
            raise error("C0821", message, hint="use another `picture`", option="picture")
        return found

    def check(self, ir: Account, artifacts: Sequence[Artifact]) -> Report:
        """Read the graphs, and compare nodes, links with loads, and edges of trees with the schedule."""
        found = tuple(self._checks(ir, artifacts))
        return Report("graphs", ir.shown.schedule.collective.kind, ir.topology.num_ranks, found)

    def _checks(self, ir: Account, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        due = self.emit(ir)
        names, needed = [one.filename for one in artifacts], [one.filename for one in due]
        yield Check("files", names == needed, f"found {', '.join(names) or 'none'}, needed {', '.join(needed)}")
        if names != needed:
            return
        for found, expected in zip(artifacts, due, strict=True):
            lines = found.text.split("\n")
            ends = lines[0].startswith("digraph ") and lines[-2:] == ["}", ""]
            yield Check("form", ends, f"{found.filename}: one digraph")
            is_trees = expected.ending or self.picture == "trees"
            yield from _tree_checks(lines, ir) if is_trees else _network_checks(lines, ir)
            wrong = "" if found.text == expected.text else first_difference(found.text, expected.text)
            yield Check("as written", not wrong, wrong or f"{found.filename}: byte for byte")


def _drawn(loads: LinkLoads, link: int) -> Mapping[str, str]:
    """Return how Graphviz draws a link: wide and dark if it is loaded, dotted if it carries nothing."""
    level = level_of(loads.busy[link], loads.most)
    wide = f"{0.6 + 0.7 * level:.1f}"
    grey = f"gray{60 - 60 * level // LEVELS}"
    style = "solid" if level else "dotted"
    return {"penwidth": wide, "color": grey, "style": style, "tooltip": f"carries {loads.share[link]} of the vector"}


# ---- trees


def _trees(forest: Forest, trees: Sequence[Tree]) -> Iterator[str]:
    """Yield the lines of a graph with a cluster for each tree; in trees that reduce, arrows point to the root."""
    names = forest.topology.names
    yield f"digraph {quoted(f'trees on {forest.topology.name}')} {{"
    yield "  graph [compound=true];"
    for tree in trees:
        of = "vector" if forest.whole else "shard"
        direction = "to" if tree.inward else "from"
        label = f"tree {tree.number} {direction} {names[tree.root]}, {tree.share} of its {of}"
        yield f"  subgraph cluster_{tree.number} {{"
        yield f"    label={quoted(label)};"
        for node in [tree.root, *(edge.child for edge in tree.edges)]:
            shape = "box" if node == tree.root else "ellipse"
            yield f"    t{tree.number}_{node} [label={quoted(names[node])}, shape={shape}];"
        for edge in tree.edges:
            through = ", ".join(names[node] for node in edge.through)
            tip = f", tooltip={quoted(f'through {through}')}" if through else ""
            wide = f"{0.6 + 2.4 * float(tree.share):.2f}"
            ends = f"t{tree.number}_{edge.parent} -> t{tree.number}_{edge.child}"
            yield f"    {ends} [penwidth={quoted(wide)}{', dir=back' * tree.inward}{tip}];"
        yield "  }"
    yield "}"


# ---- reading


def _attributes(text: str) -> dict[str, str]:
    return {name: re.sub(r"\\(.)", r"\1", value) for name, value in _ATTRIBUTE.findall(text)}


def _network_checks(lines: Sequence[str], account: Account) -> Iterator[Check]:
    topology = account.topology
    nodes = [_NODE.fullmatch(line) for line in lines]
    found = [(one[1], _attributes(one[2]).get("label")) for one in nodes if one]
    same = found == [(str(number), name) for number, name in enumerate(topology.names)]
    yield Check("nodes", same, f"{counted(len(found), 'node')}" if same else "a node has another name or place")
    links = list(_links(lines))
    same = [one[:4] for one in links] == list(_due_links(topology))
    yield Check("links", same, f"{counted(len(links), 'link')}" if same else "a link is not that of the network")
    loads = added_up(account.shown.schedule)
    if loads is not None:
        due = [f"carries {share} of the vector" for share in loads.share]
        same = [one[4] for one in links] == due
        yield Check("loads", same, "as the transfers add up" if same else "a link has another load")
        levels = [f"{0.6 + 0.7 * level_of(busy, loads.most):.1f}" for busy in loads.busy]
        same = [one[5] for one in links] == levels
        yield Check("widths", same, "as wide as they are loaded" if same else "a link has another width")


def _links(lines: Sequence[str]) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield the ends, bandwidth, latency, load and width of every link, both directions of an edge for two."""
    for line in lines:
        found = _LINK.fullmatch(line)
        if found:
            has = _attributes(found[3])
            bandwidth, latency, load, wide = (has.get(name, "") for name in _OF_LINKS)
            yield found[1], found[2], bandwidth, latency, load, wide
            if found[4]:
                yield found[2], found[1], bandwidth, latency, load, wide


def _due_links(topology: Topology) -> Iterator[tuple[str, str, str, str]]:
    ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True)
    for src, dst, kind in ends:
        one = topology.classes[kind]
        yield str(src), str(dst), str(one.bandwidth), str(one.latency)


def _tree_checks(lines: Sequence[str], account: Account) -> Iterator[Check]:
    source = forest_of(account.shown)
    if source is None:
        yield Check("trees", False, "the schedule has no trees")
        return
    forest = source[0]
    edges = [one for line in lines if (one := _EDGE.fullmatch(line))]
    drawn = {int(one[1]) for one in edges}
    found = sorted((int(one[1]), int(one[2]), int(one[4]), "dir=back" in one[5]) for one in edges if one[1] == one[3])
    inward = forest.inward.astype(bool).tolist()
    rows = zip(forest.tree.tolist(), forest.parent.tolist(), forest.child.tolist(), strict=True)
    due = sorted((t, a, b, inward[t]) for t, a, b in rows if t in drawn)
    same = found == due and len(found) == len(edges)
    detail = f"{counted(len(drawn), 'tree')} with {counted(len(edges), 'edge')}"
    yield Check("trees", same, detail if same else "the edges are not those of the forest")
    named = sum(1 for line in lines if re.match(r"    t\d+_\d+ \[label=", line))
    yield Check("ranks", named == len(edges) + len(drawn), f"{counted(named, 'rank')} in all trees")
