"""Search graphs with links both ways by a compiled climb, and merge what is better into a database of `collc find`.

    python benchmarks/climb.py lifts -d 6 -n 5..2001 --database my/      # polycirculants
    python benchmarks/climb.py turned -d 4 -n 5..2001 --database my/     # those that a turn of the ring keeps
    python benchmarks/climb.py cayley -d 6 -n 5..2001 --database my/     # Cayley graphs
    python benchmarks/climb.py complete -d 3 -n 5..2001 --database my/   # all of few links, or circulants
    python benchmarks/climb.py inserted -d 6 -n 5..2001 --database my/   # a node or two more than a row has
    python benchmarks/climb.py exchanges -d 3 -n 34..201 --database my/  # any networks, by exchanges of links' ends

The searches of the finder, in C: some hundred thousand evaluations a second. It needs a C compiler (``CC``). First it
looks for fewer steps than the database has, then for less bandwidth time within as many, and for fewer steps at the
least bandwidth time. The same arguments give the same rows; `collc find --check` computes them again.

``exchanges`` looks for fewer steps alone. It anneals: the number of pairs of nodes that are more than a number of steps
apart falls, as in the order/degree problem. A shift of all nodes keeps the networks, for each period of up to
``--periods`` nodes; with the period N they are any networks. Such ones also start from the row of one or two nodes
more, without these.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, prod
from pathlib import Path

import attrs
import numpy as np

from collc.frontends import coll
from collc.ir.costs.bounds import moore_graph_steps
from collc.ir.group import Group, Translations
from collc.passes.finder.cayley import cayley_expression
from collc.passes.finder.database import Row, parse_rows
from collc.passes.finder.evaluate import load_unit
from collc.passes.finder.groups import generating, groups_of_order
from collc.passes.finder.measure import with_alltoall_rate
from collc.passes.finder.shapes import shapes
from collc.passes.finder.turns import Turn, turns
from collc.tools.finding_database import file_of, merged

__all__ = ["Climb", "main"]

_LINKS, _STEPS, _PERIOD = 16, 64, 64  # as in climb.c
_FAR = 1 << 60
_WORD = 2**64 - 1
_PATIENCE = 300  # evaluations without progress before a climb starts anew
_WRITTEN = 50  # sizes between two writes
_POOL = 200  # pairs of elements of a group that sets are drawn from
_SETS = 1_000_000  # of one kind of a group
_GENERAL = 4  # links up to which all groups are tried completely
_CLIMBED = 4  # groups, those whose random sets are the best
_SLACK = 4  # steps above the fewest, within which bandwidth time is lowered
_HEAT = (4.0, 0.5)  # pairs of nodes: the first and the last temperature of an annealing
_WARM = (1.0, 0.25)  # the same, of a network that is nearly good
_DRAWS = 100  # tries to pair ends of links
_SHUFFLES = 20  # exchanges for each link of the first network
_POLISH = 2000  # exchanges that lower the bandwidth time of a network that was found


class _Set(ctypes.Structure):
    _fields_ = (("load", ctypes.c_int64), ("set", ctypes.c_int * _LINKS))


class _Link(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("a", "b", "v", "half"))


class _Lift(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("link", _Link * (_PERIOD * _LINKS // 2 + _PERIOD)))


class _Turn(ctypes.Structure):
    _fields_ = (("times", ctypes.c_int), ("order", ctypes.c_int), ("next", ctypes.c_int * _PERIOD))

    @classmethod
    def of(cls, turn: Turn | None) -> _Turn:
        """Return the turn for C; an order of 0 is none."""
        return cls() if turn is None else cls(turn.times, turn.order, (ctypes.c_int * _PERIOD)(*turn.next))


class _BestLift(ctypes.Structure):
    _fields_ = (("load", ctypes.c_int64), ("lift", _Lift))


@lru_cache
def library() -> ctypes.CDLL:
    """Compile climb.c and load it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = str(Path(__file__).with_name("climb.c")), f"{folder}/climb.so"
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", target], check=True)
        loaded = ctypes.CDLL(target)
    number, pointer = ctypes.c_int, ctypes.c_void_p
    loaded.climb_cayley.argtypes = [pointer, pointer, *[number] * 6, ctypes.c_uint64, pointer, pointer, number]
    loaded.climb_lift.argtypes = [*[number] * 6, ctypes.c_uint64, pointer, pointer, pointer]
    loaded.insert.argtypes = [*[number] * 3, pointer, *[number] * 3, ctypes.c_uint64, pointer, pointer]
    large = ctypes.c_int64
    loaded.exchange.argtypes = [
        *[number] * 4, large, number, large, large, number, ctypes.c_uint64, pointer, pointer,
    ]  # fmt: skip
    loaded.try_sets.argtypes = [pointer, number, number, pointer, ctypes.c_int64, number, pointer]
    loaded.try_sets.restype = None
    for function in (loaded.climb_cayley, loaded.climb_lift, loaded.insert, loaded.exchange):
        function.restype = ctypes.c_int64
    return loaded


@attrs.frozen
class Elements:
    """Some elements of a group, closed under inverses: their products with all elements, the places of inverses."""

    group: Group
    numbers: np.ndarray
    inverse: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, group: Group) -> Elements:
        """Draw up to :data:`_POOL` elements and add their inverses; a third may be their own."""
        every = np.arange(group.order)
        inverse, random = group.inverse(every), np.random.Generator(np.random.PCG64(group.order))
        own, halves = every[1:][inverse[1:] == every[1:]], every[inverse > every]
        if len(own) + len(halves) > _POOL:
            own = random.permutation(own)[: _POOL // 3]
            halves = random.permutation(halves)[: _POOL - len(own)]
        numbers = np.unique(np.concatenate([own, halves, inverse[halves]]))
        place = np.searchsorted(numbers, inverse[numbers]).astype(np.int32)
        return cls(group, numbers, place, group.multiply(every, numbers[:, None]).astype(np.uint16))


def every_set(group: Group, degree: int) -> Iterator[np.ndarray]:
    """Yield all sets of d elements with their inverses, shape (sets, d), by kind: one of each set's images.

    A set and its images under an automorphism give the same graph. So the first element is the first of its class. Five
    or more elements are pairs only. Of a kind with more than :data:`_SETS` sets they are random ones.
    """
    every = np.arange(group.order)
    inverse, random = group.inverse(every), np.random.Generator(np.random.PCG64(group.order))
    own, half = every[1:][inverse[1:] == every[1:]], every[inverse > every]
    alone, pairs = own[:, None], np.stack([half, inverse[half]], axis=1)
    first = classes(group) == every
    led_alone, led = alone[first[own]], pairs[first[half]]
    kinds = [[led, *[pairs] * (degree // 2 - 1)]] if degree % 2 == 0 else []
    if degree == 3:
        kinds += [[led_alone, alone, alone], [led_alone, pairs]]
    elif degree == 4:
        kinds += [[led_alone, alone, alone, alone], [led_alone, alone, pairs]]
    for kind in kinds:
        shape = tuple(map(len, kind))
        count = prod(shape)
        places = np.arange(count) if count <= _SETS else random.integers(count, size=_SETS)
        rows = np.unravel_index(places, shape)
        sets = np.concatenate([part[row] for part, row in zip(kind, rows, strict=True)], axis=1)
        rising = np.ones(len(sets), dtype=bool)  # of the same parts, each set once
        for one, two, a, b in zip(kind[1:], kind[2:], rows[1:], rows[2:], strict=False):
            rising &= (a < b) if one is two else True
        distinct = (np.diff(np.sort(sets, axis=1), axis=1) > 0).all(axis=1)
        yield sets[rising & distinct].astype(np.int32)


def classes(group: Group) -> np.ndarray:
    """Return the least image of each element under some automorphisms and inversion, shape (N,): all of a cyclic group,
    those by conjugation of others.
    """
    every = np.arange(group.order)
    if isinstance(group, Translations) and len(group.shape) == 1:
        return np.gcd(every, group.order) % group.order
    inverse = group.inverse(every)
    maps = [inverse, *(group.multiply(group.multiply(inverse[one], every), one) for one in generating(group))]
    least, before = every.copy(), np.zeros(0)
    while not np.array_equal(least, before):
        before = least.copy()
        for image in maps:
            np.minimum.at(least, image, before)
            least = np.minimum(least, least[image])
    return least


@attrs.define
class Climb:
    """The search of one size and degree: the least T_B by steps of the known rows, and the rows found so far."""

    library: ctypes.CDLL
    nodes: int
    degree: int
    evaluations: int
    known: dict[int, Fraction]
    given: int = 0  # the seed
    found: list[Row] = attrs.field(factory=list)
    climbs: int = 0

    @property
    def least(self) -> int:
        """The fewest steps known."""
        return min(self.known, default=_STEPS - 1)

    @property
    def fastest(self) -> int:
        """The fewest steps known at the least T_B."""
        optimum = Fraction(self.nodes - 1, self.nodes)
        return min((steps for steps, bandwidth in self.known.items() if bandwidth == optimum), default=_STEPS - 1)

    @property
    def bound(self) -> int:
        """Moore's bound."""
        return moore_graph_steps(self.nodes, self.degree)

    def loads(self) -> list[int]:
        """Return the least known load of up to 0, 1, .. steps."""
        loads, unit = [_FAR] * _STEPS, Fraction(self.nodes * load_unit(self.degree), self.degree)
        for steps, bandwidth in self.known.items():
            loads[steps:] = [min(load, ceil(bandwidth * unit)) for load in loads[steps:]]
        return loads

    def seed(self) -> int:
        """Return the seed of the next climb."""
        self.climbs += 1
        return (self.given << 22 | self.nodes * 64 + self.degree) << 32 & _WORD | self.climbs

    def add(self, steps: int, load: int, expression: str) -> None:
        """Keep a result."""
        bandwidth = Fraction(self.degree * load, load_unit(self.degree) * self.nodes)
        self.known[steps] = bandwidth
        self.found.append(Row(
            expression, self.nodes, self.degree, steps, bandwidth, steps, True, reduce_scatter_T_B=bandwidth
        ))  # fmt: skip

    # ---- polycirculants

    def lifts(self, periods: range, optimal: bool) -> None:
        """Climb to polycirculants of every one of these periods that the size has.

        ``optimal`` are only the climbs to fewer steps at the least T_B.
        """
        for m in periods:
            copies = self.nodes // m
            if self.nodes % m or copies < 3 or (m * self.degree % 2 and copies % 2):
                continue
            self._polycirculants(m, (*shapes(m, self.degree), None), None, optimal)

    def turned(self, periods: range, optimal: bool) -> None:
        """Climb to polycirculants that turns keep, as :meth:`lifts`."""
        for m in periods:
            if self.nodes % m or self.nodes // m < 3:
                continue
            for turn in turns(self.nodes // m, m, self.degree):
                self._polycirculants(m, (None,), turn, optimal)

    def _polycirculants(
        self, m: int, shapes: Sequence[Sequence[tuple[int, int]] | None], turn: Turn | None, optimal: bool
    ) -> None:
        """Climb to fewer steps, to fewer at the least T_B, and to less T_B in between; only the second if optimal."""
        while not optimal and self.least > self.bound and self._lift(m, self.least - 1, turn=turn):
            pass
        for shape in shapes:
            self._optimal(m, shape, turn)
        between = () if optimal else range(self.least, min(self.fastest, self.least + _SLACK))
        for target in between:
            self._lift(m, target, turn=turn)

    def _optimal(self, m: int, shape: Sequence[tuple[int, int]] | None, turn: Turn | None = None) -> None:
        """Climb to lifts of fewer steps at the least T_B, as long as there are some: of few steps, else of any."""
        few = 2 * self.bound + 2
        for most in (few, _STEPS - 1):
            before = _STEPS
            while self.bound < self.fastest < before:
                before = self.fastest
                self._lift(m, min(before - 1, most), shape, turn)
            if self.fastest <= few:
                break

    def _lift(
        self, m: int, target: int, shape: Sequence[tuple[int, int]] | None = None, turn: Turn | None = None
    ) -> bool:
        """Climb to lifts of period m, with a shape's links between classes; return whether one is better than known."""
        given = _Lift(len(shape or ()))
        for place, (one, two) in enumerate(shape or ()):
            given.link[place] = _Link(one, two, 0, 0)
        best = (_BestLift * _STEPS)()
        for one, load in zip(best, self.loads(), strict=True):
            one.load = load
        self.library.climb_lift(
            self.nodes, m, self.degree, target, self.evaluations, _PATIENCE, self.seed(), ctypes.byref(best),
            ctypes.byref(given), ctypes.byref(_Turn.of(turn)),
        )  # fmt: skip
        better = [(steps, one) for steps, one in enumerate(best) if one.lift.count]
        for steps, one in better:
            self.add(steps, one.load, self._polycirculant(m, one.lift))
        return bool(better)

    def _polycirculant(self, m: int, lift: _Lift) -> str:
        sets: list[list[int]] = [[] for _ in range(m)]
        for one in lift.link[: lift.count]:
            sets[one.a].append(self.nodes // 2 if one.half else (one.b + m * one.v - one.a) % self.nodes)
        shown = ["{" + ", ".join(map(str, sorted(own))) + "}" for own in sets]
        return f"polycirculant({self.nodes}, {', '.join(shown)})"

    # ---- Cayley graphs

    def cayley(self, groups: Sequence[Elements]) -> None:
        """Climb in the groups: for the fewest steps, for the fewest at the least T_B, and between."""
        tried: set[int] = set()
        groups = [one for one in groups if len(one.numbers) >= self.degree]
        while targets := self._targets() - tried:
            target = max(targets)
            tried.add(target)
            self._climb(groups, target)

    def _targets(self) -> set[int]:
        first, last = max(self.least - 1, self.bound), self.fastest - 1
        return {steps for steps in (first, (first + last) // 2, last) if self.bound <= steps <= last}

    def _climb(self, groups: Sequence[Elements], target: int) -> None:
        """Draw sets of all groups for a number of steps, then climb from the best."""
        drawn = []
        for place, group in enumerate(groups):
            start = (ctypes.c_int * _LINKS)()
            drawn.append((self._set(group, target, start, self.evaluations // 16, 0), place, start))
            if self.fastest <= target:
                return
        for _, place, start in sorted(drawn, key=lambda one: one[:2])[:_CLIMBED]:
            self._set(groups[place], target, start, self.evaluations, 1)
            if self.fastest <= target:
                return

    def _set(
        self, elements: Elements, target: int, start: ctypes.Array[ctypes.c_int], evaluations: int, started: int
    ) -> int:
        best = (_Set * _STEPS)()
        for one, load in zip(best, self.loads(), strict=True):
            one.load, one.set[0] = load, -1
        value = int(self.library.climb_cayley(
            elements.right.ctypes.data, elements.inverse.ctypes.data, self.nodes, len(elements.numbers), self.degree,
            target, evaluations, _PATIENCE, self.seed(), ctypes.byref(best), start, started,
        ))  # fmt: skip
        for steps, one in enumerate(best):
            if one.set[0] >= 0:
                generators = elements.numbers[list(one.set[: self.degree])].tolist()
                self.add(steps, one.load, cayley_expression(elements.group, generators))
        return value

    def complete(self, groups: Sequence[Group]) -> None:
        """Try the Cayley graphs of these groups, all unless there are too many (:func:`every_set`)."""
        every = np.arange(self.nodes)
        for group in groups:
            right = np.ascontiguousarray(group.multiply(every, every[:, None]).astype(np.uint16))
            for sets in every_set(group, self.degree):
                best = (_Set * _STEPS)()
                for one, load in zip(best, self.loads(), strict=True):
                    one.load, one.set[0] = load, -1
                self.library.try_sets(
                    right.ctypes.data, self.nodes, self.degree, sets.ctypes.data, len(sets), self.fastest,
                    ctypes.byref(best),
                )  # fmt: skip
                for steps, one in enumerate(best):
                    if one.set[0] >= 0:
                        self.add(steps, one.load, cayley_expression(group, list(one.set[: self.degree])))

    # ---- inserted nodes

    def inserted(self, base: Row, more: int) -> None:
        """Insert nodes into a base of ``more`` nodes less, in few cables: for fewer steps, then for less T_B."""
        heads = coll.topology(base.expression).dst.reshape(base.nodes, -1).astype(np.int32)
        first = max(base.T_L, self.bound)
        for target in range(first, self.least):
            if self._insert(base, heads, more, target):
                break
        for target in range(first, first + _SLACK):
            self._insert(base, heads, more, target)

    def _insert(self, base: Row, heads: np.ndarray, more: int, target: int) -> bool:
        """Insert nodes such that there are at most ``target`` steps; return whether that is better than known."""
        steps, cables = ctypes.c_int(), (ctypes.c_int * _LINKS**2)()
        load = int(self.library.insert(
            self.nodes, more, self.degree, np.ascontiguousarray(heads).ctypes.data, target, self.evaluations,
            self.evaluations // 10 + 1, self.seed(), ctypes.byref(steps), cables,
        ))  # fmt: skip
        if load >= self.loads()[target]:
            return False
        ends = cables[: more * (self.degree - more + 1)]
        shown = ", ".join(f"{one} <-> {two}" for one, two in zip(ends[::2], ends[1::2], strict=True))
        number = f", {more}" if more > 1 else ""
        self.add(steps.value, load, f"inserted({base.expression}, {{{shown}}}{number})")
        return True

    # ---- exchanges of links

    def exchanges(self, periods: int, tries: int) -> None:
        """Anneal networks of every period up to ``periods`` to fewer steps than known, for each a number of times."""
        for m in (m for m in range(2, min(periods, self.nodes) + 1) if self.nodes % m == 0 and m * self.degree > 8):
            for _ in range(tries):
                while self.least > self.bound:
                    start = ring(self.nodes, self.degree)
                    if not self._exchange(m, self.least - 1, start, _HEAT, _SHUFFLES * m * self.degree):
                        break

    def shrunk(self, base: Row, tries: int) -> None:
        """Anneal what is left of a larger network of fewer steps than known, if some nodes are removed."""
        if not self.bound <= base.T_L < self.least:
            return
        heads = coll.topology(base.expression).dst.reshape(base.nodes, -1)
        for _ in range(tries):
            start = without_nodes(heads, base.nodes - self.nodes, np.random.Generator(np.random.PCG64(self.seed())))
            if start is not None and self._exchange(self.nodes, base.T_L, start, _WARM, 0):
                return

    def _exchange(self, m: int, target: int, heads: np.ndarray, heat: tuple[float, float], shuffles: int) -> bool:
        """Anneal a network of period m, shuffled first; return whether it has at most ``target`` steps then."""
        hot, cold = (int(1024 * pairs) for pairs in heat)
        steps = ctypes.c_int()
        load = int(self.library.exchange(
            self.nodes, m, self.degree, target, self.evaluations, _POLISH, hot, cold, shuffles, self.seed(),
            heads.ctypes.data, ctypes.byref(steps),
        ))  # fmt: skip
        if load < _FAR:
            self.add(steps.value, load, periodic(heads, m))
        return load < _FAR


def ring(nodes: int, degree: int) -> np.ndarray:
    """Return the neighbours of nodes on a ring, shape (N, d): the nearest ones, for odd d also the opposite one."""
    steps = [step for near in range(1, degree // 2 + 1) for step in (near, -near)] + [nodes // 2] * (degree % 2)
    heads: np.ndarray = (np.arange(nodes)[:, None] + steps) % nodes
    return heads.astype(np.int32)


def without_nodes(heads: np.ndarray, fewer: int, random: np.random.Generator) -> np.ndarray | None:
    """Return the neighbours, shape (N, d), without some nodes that are linked to each other: a random one, and
    neighbours. The ends of their links are linked in random pairs; None if this soon gives no network.
    """
    removed = [int(random.integers(len(heads)))]
    removed += heads[removed[0]][: fewer - 1].tolist()
    place = np.cumsum(~np.isin(np.arange(len(heads)), removed)) - 1
    ends = [end for node in removed for end in heads[node].tolist() if end not in removed]
    for _ in range(_DRAWS):
        found = {node: set(own.tolist()) - set(removed) for node, own in enumerate(heads) if node not in removed}
        pairs = random.permutation(ends).reshape(-1, 2).tolist()
        for one, two in pairs:
            found[one].add(two)
            found[two].add(one)
        if all(len(own - {node}) == heads.shape[1] for node, own in found.items()):
            return place[np.array([sorted(own) for own in found.values()])].astype(np.int32)
    return None


def periodic(heads: np.ndarray, m: int) -> str:
    """Return the expression of a network that a shift by m keeps, from the neighbours of its nodes, shape (N, d)."""
    nodes = len(heads)
    sets: list[list[int]] = [[] for _ in range(m)]
    for node in range(m):
        for step in sorted((int(head) - node) % nodes for head in heads[node]):
            if (step, node) <= (-step % nodes, (node + step) % m):
                sets[node].append(step)
    return f"polycirculant({nodes}, {', '.join('{' + ', '.join(map(str, own)) + '}' for own in sets)})"


def bases(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that nodes are inserted into: the one of the fewest steps, and the one of the least T_B."""
    fastest = [min(rows, key=lambda row: (row.T_L, row.T_B, row.expression))] if rows else []
    lightest = [min(rows, key=lambda row: (row.T_B, row.T_L, row.expression))] if rows else []
    return fastest + [row for row in lightest if row not in fastest]


def better(found: Sequence[Row]) -> list[Row]:
    """Return what was not replaced later, with its all-to-all rates."""
    last = {row.T_L: row for row in found}
    kept = [row for row in last.values() if not any(
        other.T_L < row.T_L and other.T_B <= row.T_B for other in last.values())]  # fmt: skip
    return [with_alltoall_rate(row, coll.topology) for row in kept]


def searched(
    given: argparse.Namespace, loaded: ctypes.CDLL, rows: dict[int, list[Row]], degree: int
) -> Iterator[tuple[int, list[Row]]]:
    """Yield every size with better rows."""
    periods = range(given.least_period, min(given.periods, _PERIOD) + 1)
    # of a larger network with exchanged links, nodes are removed later
    for nodes in sorted(given.nodes, reverse=given.family == "exchanges"):
        if nodes <= 2 * degree or nodes * degree % 2:
            continue
        both = sorted((row for row in rows.get(nodes, []) if row.bidirectional), key=lambda row: -row.T_B)
        climb = Climb(loaded, nodes, degree, given.evaluations, {row.T_L: row.T_B for row in both}, given.seed)
        if given.family == "lifts":
            climb.lifts(periods, given.optimal)
        elif given.family == "turned":
            climb.turned(periods, given.optimal)
        elif given.family == "cayley":
            groups = groups_of_order(nodes, given.groups)
            some = [one for one in groups if not isinstance(one, Translations)] or groups
            climb.cayley([Elements.of(group) for group in some])
        elif given.family == "complete":
            circulants = [Translations((nodes,))]
            others = [one for one in groups_of_order(nodes, given.groups) if not isinstance(one, Translations)]
            climb.complete(circulants + others if degree <= _GENERAL else circulants)
        elif given.family == "exchanges":
            larger = [row for row in rows.get(nodes + 1 + degree % 2, []) if row.bidirectional]
            if larger and nodes <= given.periods:
                climb.shrunk(min(larger, key=lambda row: (row.T_L, row.T_B, row.expression)), given.tries)
            climb.exchanges(given.periods, given.tries)
        else:
            more = 1 + degree % 2  # a new node has an even number of links to others
            less = [row for row in rows.get(nodes - more, []) if row.bidirectional and "inserted" not in row.expression]
            for row in bases(less):
                climb.inserted(row, more)
        if climb.found:
            yield nodes, better(climb.found)


def sizes_of(text: str) -> list[int]:
    """Return the sizes of ``5..9,12``: ends are left out."""
    spans = [part.partition("..") for part in text.split(",")]
    return sorted({n for first, _, end in spans for n in range(int(first), int(end or int(first) + 1))})


def main(words: Sequence[str] | None = None) -> int:
    """Search the sizes of a degree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=("lifts", "turned", "cayley", "complete", "inserted", "exchanges"))
    parser.add_argument("-d", "--degree", type=int, required=True)
    parser.add_argument("-n", "--nodes", type=sizes_of, required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--evaluations", type=int, default=3000, help="of each climb")
    parser.add_argument("--periods", type=int, default=10, help="the largest period of polycirculants")
    parser.add_argument("--least-period", type=int, default=2, help="the smallest period of polycirculants")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers: another one, other climbs")
    parser.add_argument("--optimal", action="store_true", help="lifts, turned: only for the least bandwidth time")
    parser.add_argument("--tries", type=int, default=1, help="annealings of each period")
    parser.add_argument("--groups", type=int, default=24, help="of one order")
    given = parser.parse_args(words)
    path = Path(file_of(given.database, given.degree))
    text = path.read_text("ascii") if path.exists() else ""
    rows: dict[int, list[Row]] = {}
    for row in parse_rows(text, given.degree, str(path)):
        rows.setdefault(row.nodes, []).append(row)
    found: dict[int, list[Row]] = {}
    total = 0
    try:
        for nodes, some in searched(given, library(), rows, given.degree):
            found[nodes], rows[nodes], total = some, [*rows.get(nodes, []), *some], total + 1
            if len(found) == _WRITTEN:
                text, found = _stored(path, given.degree, found, text), {}
    finally:  # an interrupted search keeps what it found
        _stored(path, given.degree, found, text)
    print(f"degree {given.degree}, {given.family}: {total} sizes are better", file=sys.stderr)
    return 0


def _stored(path: Path, degree: int, found: dict[int, list[Row]], text: str) -> str:
    text = merged(degree, found, text, str(path))
    path.write_text(text, "ascii")
    return text


if __name__ == "__main__":
    sys.exit(main())
