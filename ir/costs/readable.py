"""Certificates with their texts: sets of nodes, what must cross, over what bandwidth. A person can check the sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import attrs

from ..collective import Collective
from ..graph.bottleneck import leaving
from ..graph.node_sets import NodeSets, spans
from ..shown import counted
from ..topology import Topology
from .certificate import Cut, direction
from .partitions import Partition
from .tree_cuts import TreeCuts, images

__all__ = ["bandwidth_text", "cut", "exact_text", "named_cut", "named_partition", "named_tree_cuts"]

_MOST_DECIMALS = 3
_LONGEST_FRACTION = 12
_LONGEST = 60  # characters of the parts of a partition
_MOST_IMAGES = 1 << 12  # of a cut under automorphisms
_MOST_LISTED = 4  # boxes that are all listed


def cut(
    topology: Topology, nodes: Iterable[int], carries: Fraction, collective: Collective, where: str | None = None
) -> Cut:  # fmt: skip
    """Return the certificate that a set of nodes must send ``carries`` vectors, stated by its smaller side.

    ``where`` replaces the name of the set.
    """
    inside = sorted(nodes)
    outside = sorted(set(range(topology.num_nodes)).difference(inside))
    inward = len(outside) < len(inside)
    width = sum((topology.bandwidth(link) for link in leaving(topology, inside).tolist()), Fraction(0))
    return named_cut(topology, Cut(tuple(outside if inward else inside), inward, carries, width), collective, where)


def named_cut(topology: Topology, proof: Cut, collective: Collective, where: str | None = None) -> Cut:
    """Return a cut with its text; ``where`` replaces the name of the set."""
    names = NodeSets(topology)
    if where is None:
        is_root = collective.root is not None and proof.nodes == (collective.root,)
        where = "the root" if is_root else names.text(proof.nodes, proof.inward)
    amount = f"{_carried(proof.carries, collective)} over {bandwidth_text(topology, proof.bandwidth)}"
    text = f"links {direction(proof.inward)} {where}: {amount}"
    return attrs.evolve(proof, text=text, named=names.named(proof.nodes))


def named_partition(topology: Topology, proof: Partition, one: str = "rank") -> Partition:
    """Return a partition with its text; parts of single nodes are called by ``one``: ranks, or members."""
    names = NodeSets(topology)
    toward = " into the parts" if proof.inward else ""
    amount = f"{proof.crossings:,} crossings over {bandwidth_text(topology, proof.bandwidth)}{toward}"
    parts = f"every {one} alone" if proof.is_finest else _parts_text(names, proof)
    listed = () if proof.is_finest else tuple(names.named(part) for part in proof.parts)
    return attrs.evolve(proof, text=f"{parts}: {amount}", named=listed)


def _parts_text(names: NodeSets, proof: Partition) -> str:
    """Return the parts of a partition: boxes first, then other sets, then single ranks. If that is long, the first."""
    texts = [names.text(part, proof.inward) for part in proof.parts]
    ranks = [tuple(node for node in part if node < names.topology.num_ranks) for part in proof.parts]
    box_of = {f"box {box}": box for box in names.boxes}
    boxes = sorted(box_of[text] for text in texts if text in box_of)
    single = {
        text: own[0] for text, own in zip(texts, ranks, strict=True) if len(own) == 1 and text == names.one(own[0])
    }
    groups = [(" | ".join(_box_texts(boxes)), len(boxes))] if boxes else []
    groups += [(text, 1) for text in texts if text not in box_of and text not in single]
    if len(single) > 1:
        groups.append((f"{_every(_of_ranks(names, list(single.values())))} alone", len(single)))
    else:
        groups += [(text, 1) for text in single]
    return _first_parts(groups)


def _every(of: str) -> str:
    return f"every {of}" if of.startswith("rank") else f"each {of}"


def _first_parts(groups: Sequence[tuple[str, int]]) -> str:
    """Return the texts of groups of parts, as many as are short, and the number of other parts.

    Each text comes with the number of its parts.
    """
    whole = " | ".join(text for text, _ in groups)
    if len(whole) <= _LONGEST:
        return whole
    kept, left = list[str](), sum(number for _, number in groups)
    for text, number in groups:
        if len(" | ".join([*kept, text])) > _LONGEST - len(" | and 999 more parts"):
            break
        kept.append(text)
        left -= number
    return f"{' | '.join(kept)} | and {counted(left, 'more part')}" if kept else counted(left, "part")


def _box_texts(boxes: Sequence[int]) -> Iterator[str]:
    """Yield boxes each of which is a part: all if they are few, first, second and last of a sequence of numbers."""
    if len(boxes) <= _MOST_LISTED:
        yield from (f"box {box}" for box in boxes)
    elif len({b - a for a, b in pairwise(boxes)}) == 1:
        yield from (f"box {boxes[0]}", f"box {boxes[1]}", "..", f"box {boxes[-1]}")
    else:
        yield f"each of boxes {', '.join(spans(boxes))}"


def named_tree_cuts(topology: Topology, proof: TreeCuts) -> TreeCuts:
    """Return a family of cuts with its text, scaled so that all numbers of the text are whole.

    ``2 x into box 3`` are rows that count links into box 3 twice, ``2 x box 3`` those that count both directions twice.
    """
    names, weight = NodeSets(topology), _weights(proof)
    scale = _whole([*(one for pair in weight.values() for one in pair), proof.carries])
    sets: dict[tuple[Fraction, str], list[frozenset[int]]] = {}
    for nodes, pair in sorted(weight.items(), key=lambda one: (-max(one[1]), min(one[0]), len(one[0]))):
        for multiplier, toward in _directed(*pair):
            sets.setdefault((multiplier * scale, toward), []).append(nodes)
    terms = [
        f"{exact_text(times)} x {toward}{text}" for (times, toward), some in sets.items()
        for text in _texts_of_sets(names, some)
    ]  # fmt: skip
    listed = ", ".join(terms)
    if len(listed) > _LONGEST:
        listed = f"{len(weight)} cuts with multipliers, such as {min(terms, key=len)}"
    carries, bandwidth = proof.carries * scale, proof.bandwidth * scale
    crossing = f"{_counted(carries, 'crossing')} over {bandwidth_text(topology, bandwidth)}"
    if proof.balances:
        moved = [images([row.switch], proof.maps, _MOST_IMAGES) for row in proof.balances]
        crossing += f", balanced at {names.switches({node for found in moved for each in found for node in each})}"
    cuts = [attrs.evolve(one, multiplier=one.multiplier * scale, named=names.named(one.nodes)) for one in proof.cuts]
    balances = [attrs.evolve(one, multiplier=one.multiplier * scale) for one in proof.balances]
    return attrs.evolve(
        proof, cuts=tuple(cuts), balances=tuple(balances), carries=carries, bandwidth=bandwidth,
        text=f"{listed}: {crossing}",
    )  # fmt: skip


def _weights(proof: TreeCuts) -> dict[frozenset[int], tuple[Fraction, Fraction]]:
    """Return for every set of nodes how often rows count the links into it, and those out of it."""
    found: dict[frozenset[int], tuple[Fraction, Fraction]] = {}
    for cut in proof.cuts:
        moved = images(cut.nodes, proof.maps, _MOST_IMAGES)
        each = cut.multiplier / len(moved)
        into = each / 2 if proof.mirrored else each * (cut.inward == cut.rooted)
        for nodes in moved:
            before = found.get(nodes, (Fraction(0), Fraction(0)))
            found[nodes] = before[0] + into, before[1] + each - into
    return found


def _directed(into: Fraction, out: Fraction) -> list[tuple[Fraction, str]]:
    """Return the multipliers of a set of nodes, each with the direction of its links."""
    if into == out:
        return [(into, "")]
    return [(times, toward) for times, toward in ((into, "into "), (out, "out of ")) if times]


def _whole(values: Sequence[Fraction]) -> Fraction:
    """Return the least factor that makes all values whole numbers without a common divisor."""
    return Fraction(lcm(*(v.denominator for v in values)), gcd(*(v.numerator for v in values)) or 1)


def _texts_of_sets(names: NodeSets, sets: Sequence[frozenset[int]]) -> list[str]:
    """Return texts of sets with the same multiplier: single ranks together, boxes together, then the others."""
    total = names.topology.num_ranks
    ranks = sorted(next(iter(nodes)) for nodes in sets if len(nodes) == 1 and min(nodes) < total)
    texts = [names.text(nodes, inward=False) for nodes in sets if not (len(nodes) == 1 and min(nodes) < total)]
    box_of = {f"box {box}": box for box in names.boxes}
    boxes = sorted(box_of[text] for text in texts if text in box_of)
    found = [f"box {boxes[0]}" if len(boxes) == 1 else f"each of boxes {', '.join(spans(boxes))}"] if boxes else []
    if ranks:
        found.append(names.one(ranks[0]) if len(ranks) == 1 else f"each {_of_ranks(names, ranks)}")
    return found + [text for text in texts if text not in box_of]


def _of_ranks(names: NodeSets, ranks: Sequence[int]) -> str:
    """Return what follows ``each`` or ``every`` of several ranks."""
    text = names.text(ranks)
    if text == "all ranks":
        return "rank"
    is_boxes = text.startswith("box") and " without " not in text and " and " not in text
    return f"rank of {text}" if is_boxes else f"of {text}"


def _carried(carries: Fraction, collective: Collective) -> str:
    """Return vectors as the collective counts them: vectors, shards, or the weight of shards."""
    if collective.kind in ("allreduce", "broadcast", "reduce"):
        return _counted(carries, "vector")
    if collective.weights is None:
        return _counted(carries * collective.whole, "shard")
    return f"shards of weight {exact_text(carries * collective.whole)}"


def _counted(count: Fraction, noun: str) -> str:
    return f"{exact_text(count)} {noun}{'' if count == 1 else 's'}"


def exact_text(value: Fraction) -> str:
    """Return a number as an integer, a decimal or a fraction, if one is exact and short; else with 9 digits.

    >>> exact_text(Fraction(6375)), exact_text(Fraction(25, 2)), exact_text(Fraction(1, 3))
    ('6,375', '12.5', '1/3')
    """
    scaled = value * 10**_MOST_DECIMALS
    if value.denominator == 1:
        return f"{value.numerator:,}"
    if scaled.denominator == 1:
        return f"{scaled.numerator // 10**_MOST_DECIMALS:,}.{scaled.numerator % 10**_MOST_DECIMALS:03}".rstrip("0")
    text = f"{value.numerator}/{value.denominator}"
    return text if len(text) <= _LONGEST_FRACTION else f"{float(value):,.9g}"


def bandwidth_text(topology: Topology, bandwidth: Fraction) -> str:
    """Return a sum of the topology's bandwidths with its unit.

    >>> from collc.frontends.coll import topology
    >>> bandwidth_text(topology("dgx_a100(2)"), Fraction(6375 * 10**9))
    '6,375 GB/s'
    >>> bandwidth_text(topology("mesh(2)"), Fraction(1))
    '1 link unit'
    """
    if topology.unit == "B/s":
        return f"{exact_text(bandwidth / 10**9)} GB/s"
    return _counted(bandwidth, "link unit")
