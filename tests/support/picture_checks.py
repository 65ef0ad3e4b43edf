"""What holds of every picture: texts are on the page and not on each other, and what is drawn is within the axes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

from collc.backends.pictures.lettering import Box, text_box

__all__ = ["SPACE", "axes_of", "boxes", "check", "drawn", "kinds", "overlap", "places", "words_of"]

SPACE = "{http://www.w3.org/2000/svg}"


def kinds(node: ElementTree.Element) -> set[str]:
    return set(node.get("class", "").split())


def words_of(node: ElementTree.Element) -> str:
    """What is written, without the tip."""
    return (node.text or "") + "".join(child.tail or "" for child in node)


def boxes(root: ElementTree.Element) -> Iterator[tuple[str, Box]]:
    """The room of every text, by the estimate of its width."""
    for node in root.iter(f"{SPACE}text"):
        words, anchor = words_of(node), node.get("text-anchor", "start")
        kind = next(iter(kinds(node)), "")
        turned = re.fullmatch(r"translate\((\S+) (\S+)\) rotate\(-90\)", node.get("transform", ""))
        if turned:
            box = text_box(0, 0, words, kind, anchor)
            x, y = float(turned[1]), float(turned[2])
            yield words, Box(x + box.top, y - box.right, x + box.bottom, y - box.left)
        else:
            yield words, text_box(float(node.get("x", "nan")), float(node.get("y", "nan")), words, kind, anchor)


def within(outer: Box, box: Box, slack: float = 0.11) -> bool:
    return Box(outer.left - slack, outer.top - slack, outer.right + slack, outer.bottom + slack).holds(box)


def overlap(a: Box, b: Box, slack: float = 0.11) -> bool:
    return Box(a.left + slack, a.top + slack, a.right - slack, a.bottom - slack).meets(b)


def places(path: str) -> list[tuple[float, float]]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def axes_of(root: ElementTree.Element) -> Box:
    (axis,) = (node for node in root.iter(f"{SPACE}path") if "axis" in kinds(node))
    (left, top), _, (right, bottom) = places(axis.get("d", ""))
    return Box(left, top, right, bottom)


def drawn(root: ElementTree.Element) -> Iterator[tuple[float, float]]:
    """The corners of curves, centers of marks and ends of bars; those of the legend are in groups."""
    linked = [node for link in root.findall(f"{SPACE}a") for node in link]
    for node in [*root, *linked]:
        if "axis" in kinds(node) or "paper" in kinds(node):
            continue
        if node.tag == f"{SPACE}path" and "line" in kinds(node):
            yield from places(node.get("d", ""))
        if node.tag == f"{SPACE}circle":
            yield float(node.get("cx", "nan")), float(node.get("cy", "nan"))


def check(text: str) -> ElementTree.Element:
    """Assert what holds of every picture; return its root."""
    root = ElementTree.fromstring(text)
    _, _, width, height = (float(number) for number in root.get("viewBox", "").split())
    page, written = Box(0, 0, width, height), list(boxes(root))
    off = [words for words, box in written if not within(page, box)]
    assert not off, f"texts off the page: {off}"
    over = [(a, b) for (a, one), (b, two) in combinations(written, 2) if overlap(one, two)]
    assert not over, f"texts on each other: {over}"
    axes = axes_of(root)
    assert within(page, axes), f"axes off the page: {axes}"
    outside = [(x, y) for x, y in drawn(root) if not within(axes, Box(x, y, x, y))]
    assert not outside, f"drawn outside of the axes: {outside}"
    first = [node.tag.removeprefix(SPACE) for node in root[:2]]
    assert ["title", "desc"] == first and "img" == root.get("role"), "nothing for a screen reader"
    return root
