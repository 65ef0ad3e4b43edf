"""The mix of trees with the least time: multiplicative weights find trees and prices, a linear program mixes them.

Prices begin with the links' widths and grow with their use. In each round every commodity takes a cheap tree, one after
another, so that those of equal price do not all take the same. Then HiGHS mixes the trees that were found, and its
prices find further ones. Mix and prices may be computed in floats: the loads of any mix are exact, and the bound of any
whole prices is proved (:mod:`.prices`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.effort import limited, spend
from collc.ir.progress import progress
from collc.ir.topology import Topology

from ..flow.master import Master
from .needs import Needs
from .prices import Proof, proof_of
from .trees import Tree, cheapest_routes, cheapest_tree

__all__ = ["Mix", "best_mix", "mixed"]

_ROUNDS, _MOST_LOOKED = 24, 24_000_000  # rounds of weights, and links that searches may look at in all
_PROGRAMS, _MOST_ROWS, _MOST_COLUMNS = 40, 2000, 60_000  # linear programs, and their size
#: rows from which an interior point method solves a program faster; the least gain of how many programs, and their most
_LARGE_PROGRAM, _PATIENCE, _SLOW, _FEW_PROGRAMS = 600, 3, 1e-3, 12
_FEW = 64  # commodities; fewer take more rounds
_LEAST_PRICE = 1e-12
_GROWTH = 0.5  # of the price of a link that is used as much as the bound allows
_WEIGHT = 0.5  # of the best prices so far in those that find trees
_NEAR = 1e-9
_CLOSE = 1e-4  # between mix and bound: near enough to end
_DEAREST = (1, 2, 3, 4, 6, 8, 12, 24, 60, 1 << 10, 1 << 16, 1 << 20)  # dearest links of rounded prices
_SOME = (1, 24, 1 << 20)
_MOST_ROUNDED = 1 << 20  # squares of targets, times links
_STEPS = 8  # of work for a link that a search looks at or a tree has, or a number of a linear program
_NO_LIMIT = 1 << 62
_DETOUR = 1e-7  # of the mean price: what each link costs more, so that no tree wanders on links without price


@attrs.frozen(eq=False)
class Mix:
    """Trees with their commodity and ``share``; the shares of a commodity add up to 1. ``time`` is in weight per width,
    ``proof`` the best lower bound of it that prices prove. ``work`` are the counted steps that finding it took.
    """

    needs: Needs
    commodity: Array
    trees: tuple[Tree, ...]
    share: Array
    time: float
    proof: Proof
    work: int = 0


def mixed(topology: Topology, collective: Collective) -> Mix:
    """Return the best mix for a collective that does not reduce. Raises C0301 if a target cannot be reached.

    The scheduler and the bound of its cost ask for the same mix, so the last ones are kept. A mix that is kept counts
    the work that it took: limits of work do not depend on what was asked before.
    """
    before = _mixed.cache_info().misses
    found = _mixed(_Network(topology), collective)
    if _mixed.cache_info().misses == before:
        spend(found.work)
    return found


class _Network:
    """A topology that equals itself only, so that a cache need not compare columns."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Network) and self.topology is other.topology

    def __hash__(self) -> int:
        return id(self.topology)


@lru_cache(maxsize=4)
def _mixed(network: _Network, collective: Collective) -> Mix:
    needs = Needs.of(network.topology, collective)
    needs.require_routes()
    return best_mix(needs)


def best_mix(needs: Needs) -> Mix:
    """Return the mix of least time that a counted effort finds, and the best proof."""
    with limited(_NO_LIMIT) as effort:
        search = _Search(needs)
        if needs.commodities:
            search.weigh()
            if not search.is_done:
                search.program()
        found = search.result()
    return attrs.evolve(found, work=effort.spent)


class _Search:
    def __init__(self, needs: Needs) -> None:
        self.needs, self.looked = needs, 0
        self.width = np.array(needs.widths, dtype=np.float64)
        self.useful = self.width > 0
        self.weight = np.array([float(one.weight) for one in needs.commodities])
        self.known: dict[tuple[int, Tree], int] = {}  # number of each tree that was found
        self.proof = Proof((0,) * len(needs.widths), 0, 1)
        self.best: tuple[float, Array, Array] = np.inf, np.zeros(0, np.int64), np.zeros(0)
        self.prices = np.where(self.useful, 1.0, 0.0)
        for simple in dict.fromkeys((tuple(self.prices), tuple(1 / np.where(self.useful, self.width, np.inf)))):
            self._prove(np.array(simple))
        for cut in self._cuts():
            self._keep(cut)

    @property
    def is_done(self) -> bool:
        return self.best[0] <= float(self.proof.value) * (1 + _CLOSE)

    def result(self) -> Mix:
        if self.best[0] > float(self.proof.value) * (1 + _NEAR):
            self._prove(self.prices, at_last=True)
        time, number, share = self.best
        trees = list(self.known)
        order = sorted(range(len(number)), key=lambda i: (trees[number[i]][0], -share[i], number[i]))
        chosen = [trees[number[i]] for i in order]
        of = np.array([commodity for commodity, _ in chosen], dtype=np.int64)
        found = share[order] if order else share
        return Mix(self.needs, of, tuple(tree for _, tree in chosen), found, time if order else 0.0, self.proof)

    # ---- bounds

    def _cuts(self) -> Iterator[Proof]:
        """Yield the proofs of the busiest ranks' links, out and in: every shard crosses them once."""
        topology, widths = self.needs.topology, self.needs.widths
        sent, received = [0] * topology.num_nodes, [0] * topology.num_nodes
        for one in self.needs.commodities:
            sent[one.source] += one.weight
            for target in one.targets:
                received[target] += one.weight
        for amount, ends in ((sent, topology.src.tolist()), (received, topology.dst.tolist())):
            total = [0] * topology.num_nodes
            for end, width in zip(ends, widths, strict=True):
                total[end] += width
            rank = max(range(topology.num_ranks), key=lambda rank: Fraction(amount[rank], total[rank] or 1))
            yield Proof(tuple(int(end == rank and width > 0) for end, width in zip(ends, widths, strict=True)),
                        amount[rank], total[rank])  # fmt: skip

    def _prove(self, prices: Array, at_last: bool = False) -> None:
        """Prove bounds by prices that are rounded to whole ones; at last by coarse ones too, often the exact best."""
        most = float(prices.max(initial=0.0))
        if most <= 0:
            return
        work = sum(len(one.targets) ** 2 for one in self.needs.commodities) * len(self.width)
        for dearest in _DEAREST[-1:] if not at_last else _DEAREST if work <= _MOST_ROUNDED else _SOME:
            whole = np.rint(prices * (dearest / most)).astype(np.int64)
            whole //= max(int(np.gcd.reduce(whole)), 1)
            self._keep(proof_of(self.needs, whole.tolist(), at_last), prices)

    def _keep(self, proof: Proof, prices: Array | None = None) -> None:
        if proof.value > self.proof.value:
            self.proof, self.prices = proof, np.array(proof.prices, dtype=np.float64) if prices is None else prices

    # ---- trees

    def _number(self, commodity: int, tree: Tree) -> int:
        return self.known.setdefault((commodity, tree), len(self.known))

    def _batches(self) -> list[tuple[int, list[int]]]:
        """Return the sources, each with its commodities of one target, then every other commodity alone."""
        singles: dict[int, list[int]] = {}
        several = []
        for number, one in enumerate(self.needs.commodities):
            if len(one.targets) == 1:
                singles.setdefault(one.source, []).append(number)
            else:
                several.append((one.source, [number]))
        return [*singles.items(), *several]

    def _trees(self, prices: Sequence[float], source: int, numbers: Sequence[int]) -> list[Tree]:
        needs = self.needs
        targets = [needs.commodities[number].targets for number in numbers]
        if len(targets[0]) == 1:
            routes, looked = cheapest_routes(needs, prices, source, [one for (one,) in targets])
            found: list[Tree] = [(route,) for route in routes]
        else:
            tree, looked = cheapest_tree(needs, prices, source, targets[0])
            found = [tree]
        self.looked += looked
        spend(_STEPS * (looked + sum(len(hop) for tree in found for hop in tree)))
        return found

    def _loads(self, number: Array, share: Array) -> Array:
        """Return the load of every link if trees carry these shares of their commodities."""
        trees = list(self.known)
        load = np.zeros(len(self.width))
        for i, part in zip(number.tolist(), share.tolist(), strict=True):
            commodity, tree = trees[i]
            amount = part * self.weight[commodity]
            for hop in tree:
                for link in hop:
                    load[link] += amount
        return load

    def _offer(self, number: Array, share: Array) -> None:
        """Keep a mix if it takes less time than the best so far."""
        load = self._loads(number, share)
        time = float((load[self.useful] / self.width[self.useful]).max(initial=0.0))
        if time < self.best[0] * (1 - _NEAR):
            self.best = time, number, share

    def weigh(self) -> None:
        """Multiplicative weights: busier links become dearer. Offer every round, and the mean of the later ones."""
        unit = float(self.proof.value) or 1.0
        prices = (1 / np.where(self.useful, self.width, np.inf)).tolist()
        batches, rounds = self._batches(), list[Array]()
        most = _ROUNDS * max(1, _FEW // len(self.weight))
        for turn in range(most):
            if self.is_done or (turn and self.looked * (turn + 1) > _MOST_LOOKED * turn):
                break
            progress("finding trees", turn, most)
            rounds.append(self._round(batches, prices, unit))
            self._offer(rounds[-1], np.ones(len(self.weight)))
            if turn % 4 == 3:
                self._offer_mean(rounds[len(rounds) // 2 :])
                self._prove(np.where(self.useful, prices, 0.0))
        if len(rounds) > 1:
            self._offer_mean(rounds[len(rounds) // 2 :])

    def _round(self, batches: Sequence[tuple[int, list[int]]], prices: list[float], unit: float) -> Array:
        """Let every commodity take a cheap tree, and raise the prices of its links; return the trees' numbers."""
        chosen, widths = np.zeros(len(self.weight), dtype=np.int64), self.needs.widths
        for source, numbers in batches:
            for number, tree in zip(numbers, self._trees(prices, source, numbers), strict=True):
                chosen[number] = self._number(number, tree)
                narrowest = min(widths[link] for hop in tree for link in hop)
                step = _GROWTH * min(float(self.weight[number]) / unit, narrowest)
                for hop in tree:
                    for link in hop:
                        prices[link] *= 1 + step / widths[link]
        largest = max(prices)
        prices[:] = [price / largest + _LEAST_PRICE for price in prices]
        return chosen

    def _offer_mean(self, rounds: Sequence[Array]) -> None:
        number, count = np.unique(np.concatenate(rounds), return_counts=True)
        self._offer(number, count / len(rounds))

    def program(self) -> None:
        """Column generation, if the linear program is not too large."""
        links = np.flatnonzero(self.useful)
        count = len(self.weight)
        if len(links) + count > _MOST_ROWS:
            return
        unit = float(self.proof.value) or 1.0
        row = np.full(len(self.width), -1, dtype=np.int64)
        row[links] = np.arange(len(links))
        large = len(links) + count > _LARGE_PROGRAM
        method = "vertex" if large else "simplex"
        master = Master(np.zeros(len(links), dtype=np.int64), self.width[links], count, method)
        joined, batches, values = 0, self._batches(), [np.inf]
        for turn in range(_FEW_PROGRAMS if large else _PROGRAMS):
            joined = self._join(master, row, unit, joined)
            spend(_STEPS * (len(links) + count + sum(len(tree) for _, tree in self.known)))
            value, shares, duals = master.solve()
            numbers = np.flatnonzero(shares > _NEAR)
            trees = list(self.known)
            total = np.bincount([trees[i][0] for i in numbers.tolist()], shares[numbers], count)
            of = np.array([trees[i][0] for i in numbers.tolist()], dtype=np.int64)
            self._offer(numbers, shares[numbers] / total[of])
            prices = np.zeros(len(self.width))
            prices[links] = duals
            self._prove(prices)
            if self.is_done or master.exhausted or self.looked > _MOST_LOOKED or len(self.known) > _MOST_COLUMNS:
                break
            progress("mixing trees", turn, _PROGRAMS)
            weight = _WEIGHT if value < values[-1] * (1 - _NEAR) else 0.0
            values.append(value)
            if large and len(values) > _PATIENCE and value > values[-_PATIENCE] * (1 - _SLOW):
                break
            if not (self._find(batches, weight * _scaled(self.prices, self.width) + (1 - weight) * prices)
                    or self._find(batches, prices)):  # fmt: skip
                break

    def _find(self, batches: Sequence[tuple[int, list[int]]], prices: Array) -> bool:
        """Find the cheapest trees at some prices; return whether any is new."""
        self._prove(prices)
        mean = float(prices.sum()) / max(int(self.useful.sum()), 1)
        each = (prices + _DETOUR * mean).tolist()
        before = len(self.known)
        for source, numbers in batches:
            for number, tree in zip(numbers, self._trees(each, source, numbers), strict=True):
                self._number(number, tree)
        return len(self.known) > before

    def _join(self, master: Master, row: Array, unit: float, joined: int) -> int:
        """Add the trees from number ``joined`` on to the linear program; return how many there are."""
        trees = list(self.known)[joined:]
        routing, classes, loads = list[int](), list[int](), list[float]()
        for i, (commodity, tree) in enumerate(trees):
            used: dict[int, int] = {}
            for hop in tree:
                for link in hop:
                    used[link] = used.get(link, 0) + 1
            for link in sorted(used):
                routing.append(i)
                classes.append(int(row[link]))
                loads.append(used[link] * float(self.weight[commodity]) / unit)
        sources = np.array([commodity for commodity, _ in trees], dtype=np.int64)
        if len(trees):
            master.join(sources, np.array(routing), np.array(classes), np.array(loads))
        return joined + len(trees)


def _scaled(prices: Array, width: Array) -> Array:
    """Return prices that times widths add up to 1, as those of the linear program."""
    total = float((prices * width).sum())
    return prices / total if total else prices
