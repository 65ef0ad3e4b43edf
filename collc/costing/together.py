"""Collectives that run at the same time, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from collc.ir.costs.cost import unit_seconds

from ..driver.whole import Whole
from ..tables.columns import Cell, with_floats

__all__ = ["link_of", "part_rows", "whole_rows"]


def link_of(whole: Whole) -> str:
    """Return the link that carries most, by the names of its ends."""
    if whole.link < 0:
        return "no link"
    names, topology = whole.topology.names, whole.topology
    return f"{names[int(topology.src[whole.link])]} -> {names[int(topology.dst[whole.link])]}"


def whole_rows(blocks: Iterable[Whole], bandwidth: Fraction | None = None) -> Iterator[dict[str, Cell]]:
    """Yield the time of every block by the loads of the links, and its bounds; times are in seconds."""
    for whole in blocks:
        scale = unit_seconds(whole.topology, bandwidth)
        trees = None if whole.tree_bound is None else whole.tree_bound.value * scale
        yield with_floats({
            "collectives": ", ".join(whole.names), "time": whole.time * scale, "link": link_of(whole),
            "time_bound": whole.bound.value * scale, "ratio": whole.ratio, "tree_time_bound": trees,
        })  # fmt: skip


def part_rows(blocks: Iterable[Whole], bandwidth: Fraction | None = None) -> Iterator[dict[str, Cell]]:
    """Yield the time of every collective of every block on its part of the links, in seconds; None without such."""
    for number, whole in enumerate(blocks):
        scale = unit_seconds(whole.topology, bandwidth)
        for name, time in zip(whole.names, whole.parts, strict=True):
            yield with_floats({"block": number, "name": name, "time": None if time is None else time * scale})
