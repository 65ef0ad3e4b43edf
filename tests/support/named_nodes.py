"""A reader of names with ranges: ``gpu[0 to 3, {1, 5}]`` to the numbers of nodes, by the names of the network alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from collc.ir.topology import Topology

__all__ = ["nodes_of", "numbers_of"]


def numbers_of(text: str) -> list[int]:
    """``0 to 3``, ``7``, ``{0 to 2, 5}``, ``0, 4, .., 16``."""
    text = text.strip().removeprefix("{").removesuffix("}")
    stride = re.fullmatch(r"(\d+), (\d+), \.\., (\d+)", text)
    if stride:
        first, second, last = map(int, stride.groups())
        return list(range(first, last + 1, second - first))
    found: list[int] = []
    for part in text.split(", "):
        ends = [int(number) for number in part.split(" to ")]
        found += range(ends[0], ends[-1] + 1)
    return found


def nodes_of(net: Topology, named: Iterable[str]) -> set[int]:
    """The nodes that the texts name; an error if one of them is no node, or is named twice."""
    place = {name: node for node, name in enumerate(net.names)}
    found: list[int] = []
    for term in named:
        if not net.node_names:
            found += numbers_of(term)
            continue
        match = re.fullmatch(r"(.*?)\[(.*)\]", term)
        if term in place or match is None:
            found.append(place[term])
            continue
        indices = [numbers_of(part) for part in re.findall(r"\{[^}]*\}|[^{},]+", match[2]) if part.strip()]
        found += [place[f"{match[1]}[{', '.join(map(str, one))}]"] for one in product(*indices)]
    assert len(set(found)) == len(found)
    return set(found)
