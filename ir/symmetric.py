"""A schedule stored as a template and a group: the transfers of one shard determine those of all shards.

On a topology with a symmetry (:attr:`Topology.symmetry`), multiplying the schedule of shard 0 by every group element on
the left gives a schedule of all shards. Element g maps shard 0 to shard g, rank r to g*r, and the link at place p of
rank r to the link at place p of g*r. A torus of 10,000 ranks has 10^8 transfers; its template has 10^4 rows.

Shards do not interact, so executing the template on shard 0 executes the whole schedule. Every rank is the image of a
row's rank under exactly one element. So a link carries what the template sends over all links of its place.

An all-to-all has a shard from each rank to each. Its template has those of rank 0, and element g maps the shard from r
to t to that from g*r to g*t.

Where a group moves ranks in several orbits (boxes that rotate), the template has the shards of the first ranks, one of
each orbit, and routes may lead through switches: the steps of a :class:`~collc.ir.symmetric_forest.SymmetricForest`.

A torus has more groups than its translations. Swing's peers are on other sides of even and odd ranks, so its schedule
is moved by reflections (:class:`~collc.ir.group.Mirrored`): one element a rank, and routes of several links.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import attrs
import numpy as np

from .acting import Acting, acted_routes, interleaved
from .arrays import Array, Columnar, Columns, fit, lexsort
from .collective import Collective
from .diagnostic import Excess, error
from .frozen import frozen
from .group import Group
from .ragged import by_appearance
from .schedule import Action, Schedule, about
from .shown import counted, shown
from .symmetries import Symmetries, moved_routes
from .topology import Topology

__all__ = ["MOST_LISTED", "MOST_ROWS", "SYMMETRIC_KINDS", "TEMPLATE_KINDS", "AnySchedule", "SymmetricSchedule"]

#: The collectives with one shard per rank in which all ranks have the same role.
SYMMETRIC_KINDS = ("allgather", "reduce-scatter", "allreduce")

#: The collectives of templates whose group is the topology's symmetry.
TEMPLATE_KINDS = (*SYMMETRIC_KINDS, "alltoall")

#: Transfers up to which schedulers list a schedule that could be a template.
MOST_LISTED = 1 << 14

#: Rows that :meth:`SymmetricSchedule.unfold` makes at most by default: under 1 GB of columns.
MOST_ROWS = 1 << 26

_BLOCK = 1 << 18  # rows multiplied together


@frozen(eq=False)
class SymmetricSchedule(Columnar):
    """The schedule whose rows are those of ``seed``, each multiplied by every element of the topology's symmetry.

    All rows of the seed move shard 0, of an all-to-all the shards of rank 0, over routes of one link. With ``orbits``,
    a group of several orbits replaces the topology's symmetry, and the rows move shards 0 to ``width - 1``. ``len``
    counts the rows of the whole schedule.
    """

    seed: Schedule
    orbits: Symmetries | None = None

    SCALARS = ("seed",)

    def __repr__(self) -> str:
        text = f"{counted(self.num_steps, 'step')}, {counted(len(self), 'transfer')} of {len(self.seed)} in a template"
        return shown(self, f"{about(self)}, {text}")

    @property
    def topology(self) -> Topology:
        """The network, whose ``symmetry`` is the group."""
        return self.seed.topology

    @property
    def vector(self) -> int:
        """M in parts of shards."""
        return self.seed.vector

    @property
    def collective(self) -> Collective:
        """The collective that all shards together perform."""
        return self.seed.collective

    @property
    def parts(self) -> int:
        """Equal parts of a shard, as in :class:`~collc.ir.schedule.Schedule`."""
        return self.seed.parts

    @property
    def discrete(self) -> bool:
        """Whether a part is a chunk that runtimes move whole."""
        return self.seed.discrete

    @property
    def scheduler(self) -> str:
        """The name of its scheduler."""
        return self.seed.scheduler

    @property
    def num_steps(self) -> int:
        """Steps of the whole schedule: the template's."""
        return self.seed.num_steps

    @property
    def symmetry(self) -> Group:
        """The group; raises ValueError if the topology has none (then the template is not well formed).

        With ``orbits``, element g maps rank e*width + i to (g*e)*width + i.
        """
        if self.orbits is not None:
            if self.orbits.numbered is None:
                raise ValueError(f"{self.orbits.shown} does not move ranks in order")
            return self.orbits.numbered
        if self.topology.symmetry is None:
            raise ValueError(f"topology {self.topology.name} has no symmetry")
        return self.topology.symmetry

    @property
    def movable(self) -> bool:
        """Whether elements of the group move ranks in order, as the program of the first ranks needs."""
        return self.orbits is None or self.orbits.numbered is not None

    @property
    def works_by_orbits(self) -> bool:
        """Whether a program by orbits is as good as one of all ranks: if there is one."""
        return self.movable

    @property
    def exchanges(self) -> bool:
        """Whether ranks exchange whole vectors: a rank sends its own shard to be added, so it keeps no shard."""
        seed = self.seed
        given_away = (seed.action == Action.REDUCE) & (seed.src == seed.shard)
        return isinstance(self.orbits, Acting) and self.collective.kind == "allreduce" and bool(given_away.any())

    @property
    def order(self) -> int:
        """The number of elements of the group."""
        return self.topology.num_ranks if self.orbits is None else self.orbits.order

    @property
    def width(self) -> int:
        """The number of the first ranks, one of every orbit."""
        return max(self.topology.num_ranks // max(self.order, 1), 1)

    @property
    def shards(self) -> int:
        """The number of shards that the seed's rows move, those of the first ranks."""
        return self.width * max(self.collective.num_shards // max(self.topology.num_ranks, 1), 1)

    def moved_shards(self, element: Array, shard: Array) -> Array:
        """Return the images of shards under elements of a topology's symmetry; the arrays broadcast."""
        return self.collective.moved(shard, lambda rank: self.symmetry.multiply(element, rank))

    @property
    def place(self) -> Array:
        """The place of the link of each row of the seed among the links of the link's rank."""
        return self.seed.route % max(self.topology.num_links // max(self.topology.num_ranks, 1), 1)

    def __len__(self) -> int:
        return len(self.seed) * self.order

    def unfold(self, most: int = MOST_ROWS) -> Schedule:
        """Return the whole schedule as rows; raise C0808 for more than ``most`` rows.

        Within a step, rows are sorted by the rank that receives a copy or sends a reduction, then in the seed's order.
        So the unfolded reverse of a template is the reverse of the unfolded template. Of an all-to-all, the images of a
        row follow each other. With ``orbits``, rows of a step are sorted by action, reductions first, then by element:
        as in the steps of all trees. Those of an all-to-all are sorted by shard and part, and their routes numbered so.
        If the group has one element a rank, rows are sorted by part, then coordinate by coordinate by the rank that
        receives a copy or sends a reduction, and by the shard. If whole vectors are exchanged, each row of the seed
        stands for all shards, in their order.
        """
        if len(self) > most:
            raise error(
                "C0808",
                f"this schedule of {self.collective.kind} on {self.topology.num_ranks} ranks has {len(self)} "
                f"transfers; at most {most} can be listed",
                notes=["`collc cost` and `collc verify` need only its template"],
                hint="use fewer ranks, or keep the template: `-t 'ir{level=schedule}'`",
                exit_status=3,
                excess=Excess("transfers", len(self), most),
            )
        if isinstance(self.orbits, Acting):
            return self._acted(self.orbits)
        if self.orbits is not None:
            return self._moved(self.orbits)
        if self.collective.kind == "alltoall":
            return self._images()
        seed, size = self.seed, len(self)
        columns: Columns = {c: np.empty(size, dtype=getattr(seed, c).dtype) for c in ("step", "action", "lo", "hi")}
        columns["shard"] = np.empty(size, dtype=fit(0, max(self.topology.num_ranks - 1, 0)))
        columns["route"] = np.empty(size, dtype=fit(0, max(self.topology.num_links - 1, 0)))
        at = 0
        for rows, shard, route in self._blocks():
            here = slice(at, at + shard.size)
            for name in ("step", "action", "lo", "hi"):
                columns[name][here] = np.broadcast_to(getattr(seed, name)[rows], shard.shape).ravel()
            columns["shard"][here], columns["route"][here] = shard.ravel(), route.ravel()
            at = here.stop
        return attrs.evolve(seed, **columns)

    def _images(self) -> Schedule:
        """Return every row of the seed with its images, element by element."""
        seed, n = self.seed, self.topology.num_ranks
        degree = self.topology.num_links // max(n, 1)
        element = np.arange(self.order)
        columns: Columns = {c: np.repeat(getattr(seed, c), self.order) for c in ("step", "action", "lo", "hi")}
        shard, route = seed.shard.astype(np.int64)[:, None], seed.route.astype(np.int64)[:, None]
        tail = self.symmetry.multiply(element, route // max(degree, 1))
        columns["route"] = (tail * degree + route % max(degree, 1)).astype(fit(0, self.topology.num_links)).ravel()
        columns["shard"] = self.moved_shards(element, shard).astype(fit(0, self.collective.num_shards)).ravel()
        return attrs.evolve(seed, **columns)

    def _moved(self, group: Symmetries) -> Schedule:
        """Return the images of all rows under all elements of a group of several orbits."""
        seed = self.seed
        routes, image = moved_routes(seed.routes, group)
        row = np.tile(np.arange(len(seed)), group.order)
        element = np.repeat(np.arange(group.order), len(seed))
        shard = self.collective.moved(seed.shard[row], lambda rank: group.nodes(element, rank))
        if self.collective.kind == "alltoall":
            order = lexsort((seed.lo[row], shard, seed.step[row]))
        else:
            order = lexsort((row, element, seed.action[row] != Action.REDUCE, seed.step[row]))
        row, element = row[order], element[order]
        columns: Columns = {c: getattr(seed, c)[row] for c in ("step", "action", "lo", "hi")}
        route = image[element, seed.route[row]]
        if self.collective.kind == "alltoall":  # routes in the order of the shards
            number, first = by_appearance(np.zeros(len(route), dtype=np.int64), route.astype(np.int64))
            used, route = route[first], number
            routes = routes.chosen(used)
        return attrs.evolve(seed, shard=shard[order], route=route, routes=routes, **columns)

    def _acted(self, group: Acting) -> Schedule:
        """Return the images of all rows under all elements of a group that has one for each rank.

        Routes are numbered by their ends, parallel ones by the first part that they carry.
        """
        seed, element = self.seed, np.arange(group.order)[:, None]
        place, routes, number = acted_routes(seed, group)
        exchanges = self.exchanges
        fixed = np.where(seed.action == Action.REDUCE, seed.src, seed.dst)
        at, of = interleaved(group.shape)
        blocks = dict[str, list[Array]]()
        for a, b in self.step_ranges():
            rank = group.nodes(element, fixed[None, a:b])
            if exchanges:
                order = self._by_row(group, a, b)
            else:
                order = lexsort(((at[rank] + of[element]).ravel(), np.tile(seed.lo[a:b], group.order)))
            row, moved = a + order % (b - a), order // (b - a)
            columns: Columns = {c: getattr(seed, c)[row] for c in ("step", "action", "lo", "hi")}
            columns["shard"] = group.nodes(moved, seed.shard[row]).astype(fit(0, group.order))
            columns["route"] = number[group.nodes(moved, seed.src[row]), place[seed.route[row]]]
            for name, column in columns.items():
                blocks.setdefault(name, []).append(column)
        whole: Columns = {name: np.concatenate(found) for name, found in blocks.items()}
        return attrs.evolve(seed, routes=routes, **whole)

    def _by_row(self, group: Acting, a: int, b: int) -> Array:
        """Return the order of the images of rows a to b: by the seed's row with their ends and parts, then by shard.

        Images that are no rows of the seed come last.
        """
        seed, n = self.seed, self.topology.num_ranks
        element, lo = np.arange(n)[:, None], seed.lo[a:b].astype(np.int64)
        src, dst = (end[a:b].astype(np.int64) for end in (seed.src, seed.dst))
        known = (src * n + dst) * self.parts + lo
        image = ((group.nodes(element, src) * n + group.nodes(element, dst)) * self.parts + lo).ravel()
        order = np.argsort(known, kind="stable")
        found = np.minimum(np.searchsorted(known[order], image), len(known) - 1)
        row = np.where(known[order][found] == image, order[found], len(known))
        by_row: Array = lexsort((np.repeat(np.arange(n), b - a), row))  # the image of shard 0 is the element
        return by_row

    def _blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield rows of the seed with their shards and routes, shape (ranks, rows), for a range of ranks."""
        seed, group, n = self.seed, self.symmetry, self.topology.num_ranks
        degree = self.topology.num_links // max(n, 1)
        fixed = group.inverse(np.where(seed.action == Action.REDUCE, seed.src, seed.dst))
        tail, place = seed.src.astype(np.int64), self.place.astype(np.int64)
        for a, b in self.step_ranges():
            ranks = max(1, _BLOCK // (b - a))
            for first in range(0, n, ranks):
                rank = np.arange(first, min(first + ranks, n))[:, None]
                element = group.multiply(rank, fixed[None, a:b])
                yield slice(a, b), element, group.multiply(element, tail[None, a:b]) * degree + place[None, a:b]

    def step_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first row and the end of each step of the seed that has rows."""
        step = self.seed.step
        cuts = [0, *(np.flatnonzero(step[1:] != step[:-1]) + 1).tolist(), len(step)]
        return ((a, b) for a, b in pairwise(cuts) if b > a)


#: schedules of all ranks, or of the first ranks and a group
AnySchedule: TypeAlias = Schedule | SymmetricSchedule
