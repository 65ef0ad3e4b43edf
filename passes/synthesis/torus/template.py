"""Templates of parts along the dimensions of a torus: the transfers of shard 0, and the group that moves them.

Trivance looks alike from every rank, so translations move it. Swing's peers are on other sides of even and odd ranks:
an odd rank's schedule is a reflection of rank 0's. Whether a group moves a plan is decided dimension by dimension, from
the tables of its lines, and by all links of the torus. So the template unfolds to the schedule that lists all ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np

from collc.ir.acting import Acting
from collc.ir.arrays import Array, distinct
from collc.ir.group import Group, Mirrored, Translations
from collc.ir.schedule import Routes
from collc.ir.symmetric import SYMMETRIC_KINDS, SymmetricSchedule

from .build import Plan, to_schedule
from .chunks import ExchangedPart, ScatteredPart
from .lines import Line
from .routing import GridRouter, Router

__all__ = ["group_of", "template_of"]


def template_of(plan: Plan) -> SymmetricSchedule | None:
    """Return a plan's schedule as the transfers of shard 0 and a group; None if no known group moves the plan."""
    group = group_of(plan)
    return None if group is None else SymmetricSchedule(to_schedule(plan, only=0), group)


def group_of(plan: Plan) -> Acting | None:
    """Return a group that moves a plan's schedule, with one element a rank; None if no known one does."""
    collective, shape = plan.problem.collective, _shape(plan)
    if collective.kind not in SYMMETRIC_KINDS or not collective.is_plain or shape is None:
        return None
    groups: list[Group] = [Translations(shape)]
    if all(size % 2 == 0 for size in shape):
        groups.append(Mirrored(shape))
    for group in groups:
        acting = Acting(plan.problem.topology, group)
        if _moves_lines(plan, group) and not any(acting.flaws()) and _moves_links(plan, acting):
            return acting
    return None


def _shape(plan: Plan) -> tuple[int, ...] | None:
    """Return the sizes of the torus of all parts, all scattered or all exchanged; None for others and networks."""
    by, shapes = plan.router, {part.shape for part in plan.parts}
    of_one_kind = len({type(part) for part in plan.parts}) == 1 and all(_in_order(part.place) for part in plan.parts)
    if not of_one_kind or len(shapes) != 1:
        return None
    shape = shapes.pop()
    if isinstance(by, GridRouter):
        return shape if all(by.grid.wraps) and shape == by.grid.shape else None
    topology = plan.problem.topology
    one_way = ((topology.dst.astype(np.int64) - topology.src) % topology.num_nodes == 1).all()
    is_ring = type(by) is Router and shape == (topology.num_ranks,) and one_way
    return shape if is_ring and all(isinstance(part, ScatteredPart) for part in plan.parts) else None


def _in_order(place: Array | None) -> bool:
    return place is None or np.array_equal(place, np.arange(len(place)))


def _moves_lines(plan: Plan, group: Group) -> bool:
    """Return whether a group, coordinate by coordinate, moves the lines of all parts, and the choice of routes."""
    mirrored = isinstance(group, Mirrored)
    lines = {line for part in plan.parts if isinstance(part, ScatteredPart) for line in part.lines}
    return all(_moves_line(line, mirrored) for line in lines) and _moves_exchanges(plan, mirrored)


def _moves_exchanges(plan: Plan, mirrored: bool) -> bool:
    """Return whether a group moves the exchanges of all parts. With guests, ranks differ, so no group does."""
    found = dict[tuple[int, bytes, bytes], tuple[int, Array, Array]]()
    for part in plan.parts:
        for step in part.exchanges if isinstance(part, ExchangedPart) else ():
            present = [len(own) == size for own, size in zip(step.present, part.shape, strict=True)]
            if step.copies or not all(present):
                return False
            size, sender, receiver = part.shape[step.dim], step.sender, step.receiver
            found[size, sender.tobytes(), receiver.tobytes()] = size, sender, receiver
    return all(_moves_pairs(*one, mirrored) for one in found.values())


def _moves_pairs(size: int, sender: Array, receiver: Array, mirrored: bool) -> bool:
    """Return whether the pairs of coordinates of an exchange are pairs again after each move."""
    if not mirrored and _is_tied(size, sender, receiver):
        return False
    group, pairs = _along(size, mirrored), np.sort(sender.astype(np.int64) * size + receiver)
    return all(
        np.array_equal(np.sort(group.multiply(element, sender) * size + group.multiply(element, receiver)), pairs)
        for element in _generators(size)
    )


def _along(size: int, mirrored: bool) -> Group:
    return Mirrored((size,)) if mirrored else Translations((size,))


def _generators(size: int) -> tuple[int, int]:
    """Return two elements that generate both groups of a dimension."""
    return 1 % size, 2 % size


def _is_tied(size: int, sender: Array, receiver: Array) -> bool:
    """Return whether some routes up and down are equally long.

    Even coordinates then take one and odd ones the other, which translations do not swap.
    """
    return size > 2 and bool((np.abs(receiver.astype(np.int64) - sender) * 2 == size).any())


@cache
def _moves_line(line: Line, mirrored: bool) -> bool:
    size, at = line.size, np.arange(line.size)
    group, sends = _along(size, mirrored), line.to >= 0
    if not mirrored and _is_tied(size, np.nonzero(sends)[0], line.to[sends]):
        return False
    if not _is_sorted(line):
        return False
    return all(_is_moved(line, sends, group.multiply(element, at)) for element in _generators(size))


def _is_sorted(line: Line) -> bool:
    """Return whether the sends of each substep are listed by coordinate, then by shard, as a template unfolds."""
    sends = (line.sends(substep) for substep in range(line.substeps))
    return not any((np.diff(a.astype(np.int64) * line.size + b) < 0).any() for a, b, _ in sends)


def _is_moved(line: Line, sends: Array, image: Array) -> bool:
    """Return whether a permutation of coordinates maps a line to itself."""
    there = np.ix_(image, image)
    to = np.where(sends, image[line.to], line.to)
    return np.array_equal(line.when[there], line.when) and np.array_equal(line.to[there], to)


def _directions_are_alike(plan: Plan) -> bool:
    """Return whether the parts of both directions send the same shards, if a plan has both.

    A route over the one link of a dimension of 2 has a copy for each direction where all ranks are listed. So it must
    have both in the template too: shard 0 must use both or none.
    """
    found = dict[int, Counter[object]]()
    for part in plan.parts:
        sent: object = None  # all ranks exchange
        if isinstance(part, ScatteredPart):
            sent = tuple((line.when.tobytes(), line.to.tobytes()) for line in part.lines), part.stages
        found.setdefault(part.direction, Counter())[sent] += 1
    first, *others = found.values()
    return all(one == first for one in others)


def _moves_links(plan: Plan, group: Acting) -> bool:
    """Return whether the links up and down each dimension that messages use are images of those out of rank 0.

    Shape (ranks, dimensions, directions). A reflection swaps up and down, but not the two links of a dimension of 2.
    """
    if not isinstance(plan.router, GridRouter):
        return _moves_neighbours(plan, group)
    grid = plan.router.grid
    used = {part.lane % plan.router.lanes for part in plan.parts}
    one_link = (grid.links[0, :, 0] == grid.links[0, :, 1]).any()
    if one_link and not _directions_are_alike(plan):
        return False
    orbit = group.link_orbit[grid.links[:, :, :, sorted(used)]]
    at = np.stack(np.unravel_index(np.arange(group.order), grid.shape), axis=1)
    swaps = isinstance(group.group, Mirrored) & (at % 2 == 1) & (np.array(grid.shape) > 2)[None, :]
    seen = np.where(swaps[:, :, None, None], orbit[:, :, ::-1], orbit)
    return bool((seen == seen[:1]).all())


def _moves_neighbours(plan: Plan, group: Acting) -> bool:
    """Return whether parts on a ring one way send over single links, which are images of those out of rank 0."""
    return isinstance(group.group, Translations) and all(
        _are_images(plan.router.routes(plan.router.keys(*ends, part.direction, part.lane)), *ends, group)
        for part in plan.parts
        if isinstance(part, ScatteredPart)
        for ends in _exchanged_ends(part)
    )


def _exchanged_ends(part: ScatteredPart) -> Iterator[tuple[Array, Array]]:
    """Yield the senders and receivers of a part on one ring: of its sends, and of what returns against its line."""
    (line,) = part.lines
    sender, shard = np.nonzero(line.to >= 0)
    src, dst = np.divmod(distinct(sender * np.int64(line.size) + line.to[sender, shard]), line.size)
    if part.forwards:
        yield src, dst
    if part.backwards:
        yield dst, src


def _are_images(routes: Routes, src: Array, dst: Array, group: Acting) -> bool:
    """Return whether routes are single links, those between ranks equally far apart images of each other."""
    if (routes.lengths != 1).any():
        return False
    apart, orbit = (dst - src) % group.order, group.link_orbit[routes.links]
    return len(np.unique(np.stack([apart, orbit]), axis=1).T) == len(distinct(apart))
