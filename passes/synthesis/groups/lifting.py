"""Schedules of the members' network as schedules of the whole network, in which relays receive and send."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import Kind, Subject, error
from collc.ir.graph.members import Inside
from collc.ir.levels import Scheduled
from collc.ir.ragged import group_starts
from collc.ir.schedule import Action, Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from ...schedule.reverse import reverse
from .hops import Hops, has_relays, within

__all__ = ["lifted"]

Hop = tuple[int, int, int]  # sender, receiver, route
Row = tuple[int, int, int, int, int, int]  # step, action, shard, lo, hi, route


def lifted(level: Scheduled, inside: Inside, collective: Collective) -> Scheduled:
    """Return a schedule or forest of the members' network on the whole network, for the ``collective`` of members.

    A transfer through relays becomes one transfer for each hop, in consecutive steps. In a tree, a relay becomes an
    inner node: it receives once and sends to all its children. Relays keep data in scratch only.

    Raises C0566 if a relay would have to hold two values of one chunk at a time: an allreduce that is no forest can
    need this.
    """
    if isinstance(level, (SymmetricSchedule, SymmetricForest)):
        level = level.unfold()
    if not has_relays(inside, level.routes):
        return _renamed(level, inside, collective)
    if isinstance(level, Forest):
        return _forest(level, inside, collective)
    if level.collective.reduces and level.collective.kind != "allreduce":
        return _backwards(level, inside, collective)
    return _steps(level, inside, collective)


def _renamed(level: Schedule | Forest, inside: Inside, collective: Collective) -> Schedule | Forest:
    there = attrs.evolve(level, topology=inside.whole, collective=collective, routes=within(inside, level.routes))
    if isinstance(there, Schedule):
        return there
    columns = {name: inside.nodes[getattr(there, name)] for name in ("root", "parent", "child")}
    return attrs.evolve(there, **columns)


# ---- steps


def _backwards(schedule: Schedule, inside: Inside, collective: Collective) -> Schedule:
    """Lift the reverse, which copies: two partial sums that meet in a relay are one copy that it sends twice."""
    back = Inside(
        inside.whole.transpose(), inside.topology.transpose(), inside.collective.reversed(), inside.nodes, inside.links
    )
    found = reverse(_steps(reverse(schedule), back, collective.reversed()))
    return attrs.evolve(found, topology=inside.whole, collective=collective)


def _steps(schedule: Schedule, inside: Inside, collective: Collective) -> Schedule:
    hops = Hops(inside, schedule.routes)
    relaying = _Relaying(hops.each(), inside, not collective.reduces)
    rows = list[Row]()
    columns = [getattr(schedule, c).tolist() for c in ("action", "shard", "lo", "hi", "route")]
    for a, b in zip(schedule.step_start[:-1].tolist(), schedule.step_start[1:].tolist(), strict=True):
        rows += relaying.step([tuple(column[row] for column in columns) for row in range(a, b)])
    rows.sort(key=lambda row: row[0])
    table = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    return Schedule(
        inside.whole, collective, schedule.parts, step=table[0], action=table[1], shard=table[2], lo=table[3],
        hi=table[4], route=table[5], routes=hops.numbered(), discrete=schedule.discrete,
        scheduler=schedule.scheduler,
    )  # fmt: skip


class _Relaying:
    """What relays have: where all data are copies, a relay that has them already receives them no more."""

    def __init__(self, hops: list[list[Hop]], inside: Inside, copies: bool) -> None:
        self.hops, self.inside, self.copies, self.now = hops, inside, copies, 0
        self.there: dict[tuple[int, int], list[tuple[int, int, int]]] = {}  # (relay, shard) -> (lo, hi, step)
        self.writes: set[tuple[int, int, int]] = set()

    def step(self, moves: list[tuple[int, ...]]) -> list[Row]:
        """Return the rows of one step of the members' network, in as many steps as its longest route has hops."""
        rows, end = list[Row](), self.now + 1
        for action, shard, lo, hi, route in moves:
            hops = self.hops[route]
            first, at = self._first(hops, shard, lo, hi) if self.copies else (0, self.now)
            for place, (_, receiver, number) in enumerate(hops[first:]):
                last = first + place == len(hops) - 1
                rows.append((at + place, action if last else Action.COPY, shard, lo, hi, number))
                if not last:
                    self._keep(receiver, shard, lo, hi, at + place)
            end = max(end, at + len(hops) - first)
        self.now = end
        return rows

    def _first(self, hops: list[Hop], shard: int, lo: int, hi: int) -> tuple[int, int]:
        """Return the first hop that is needed, and its step: the last one whose sender has the data."""
        for place in range(len(hops) - 1, 0, -1):
            for low, high, step in self.there.get((hops[place][0], shard), ()):
                if low <= lo and hi <= high:
                    return place, max(self.now, step + 1)
        return 0, self.now

    def _keep(self, relay: int, shard: int, lo: int, hi: int, step: int) -> None:
        kept = self.there.setdefault((relay, shard), [])
        if not self.copies and any(step == one and low < hi and lo < high for low, high, one in kept):
            raise _two_values(self.inside.whole.names[relay])
        kept.append((lo, hi, step))


def _two_values(relay: str) -> Exception:
    return error(
        "C0566", f"rank {relay} would have to relay two values of one chunk at a time",
        hint="use `forest`, in which a relay adds what it receives", exit_status=3, kind=Kind.MISFIT,
        about=(Subject.SCHEDULER, Subject.COLLECTIVE),
    )  # fmt: skip


# ---- trees


def _forest(forest: Forest, inside: Inside, collective: Collective) -> Forest:
    hops = Hops(inside, forest.routes)
    each = hops.each()
    start = group_starts(forest.tree, forest.num_trees)
    if (np.diff(forest.tree.astype(np.int64)) < 0).any():
        raise AssertionError("rows of a forest are by tree")
    routes, inward = forest.route.tolist(), forest.inward.tolist()
    tree, edges = list[int](), list[Hop]()
    root = inside.nodes[forest.root]
    for number, (a, b) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        found = [hop for route in routes[a:b] for hop in each[route]]
        if inward[number]:
            found = [(receiver, sender, route) for sender, receiver, route in found]
        kept = _tree(found, int(root[number]), set(collective.ranks.tolist()))
        edges += kept
        tree += [number] * len(kept)
    table = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    return attrs.evolve(
        forest, topology=inside.whole, collective=collective, root=root, tree=tree, parent=table[0], child=table[1],
        route=table[2], routes=hops.numbered(),
    )  # fmt: skip


def _tree(hops: list[Hop], root: int, members: set[int]) -> list[Hop]:
    """Return the hops of a tree from the root to all members, parents first; each relay has one parent, and children.

    Among the hops are a tree's routes, so all members are reached; breadth first, at the first chance.
    """
    beside: dict[int, list[Hop]] = {}
    for hop in hops:
        beside.setdefault(hop[0], []).append(hop)
    found, seen, front = list[Hop](), {root}, [root]
    while front:
        fresh = list[int]()
        for node in front:
            for hop in beside.get(node, ()):
                if hop[1] not in seen:
                    seen.add(hop[1])
                    found.append(hop)
                    fresh.append(hop[1])
        front = fresh
    needed, kept = set(members), list[Hop]()
    for hop in reversed(found):
        if hop[1] in needed:
            needed.add(hop[0])
            kept.append(hop)
    return kept[::-1]
