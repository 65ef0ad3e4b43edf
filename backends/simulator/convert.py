"""Schedules, templates, forests, messages -> traffic: all rows of a step on one route are one message."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from collc.ir.acting import Acting, acted_routes
from collc.ir.arrays import Array, as_column
from collc.ir.bundles import loading
from collc.ir.costs.messages import Messages
from collc.ir.costs.reductions import reduced_share
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from .pipelined import forest_traffic
from .repeats import repeated
from .traffic import Traffic

__all__ = ["Level", "traffic_of", "traffic_of_one"]
Level = Scheduled | Messages | Traffic


@singledispatch
def traffic_of(level: Level) -> Traffic:
    """Return the traffic of a level. Equal consecutive steps are one repeated step; a forest is pipelined."""
    raise TypeError(f"a {type(level).__name__} sends nothing")


@traffic_of.register
def _(level: Traffic) -> Traffic:
    return level


@traffic_of.register
def _(level: Messages) -> Traffic:
    return repeated(Traffic(
        level.topology, level.collective, level.whole, step=level.step, src=level.src, dst=level.dst,
        amount=level.amount, times=level.times, route=level.route, routes=level.routes, scheduler=level.scheduler,
        reduced=level.reduced,
    ))  # fmt: skip


@traffic_of.register
def _(level: Forest) -> Traffic:
    return repeated(forest_traffic(level))


@traffic_of.register
def _(level: SymmetricForest) -> Traffic:
    return repeated(forest_traffic(level.unfold()))


@traffic_of.register
def _(level: Schedule) -> Traffic:
    route, routes = loading(level)
    row_key = level.step.astype(np.int64) * max(len(routes), 1) + route
    key, place = np.unique(row_key, return_inverse=True)
    amount = np.zeros(len(key), dtype=level.amount.dtype)
    np.add.at(amount, place, level.amount)
    return _from_keys(level, routes, key, amount)


@traffic_of.register
def _(level: SymmetricSchedule) -> Traffic:
    """Every rank's link at a place carries what the template sends over all links of that place."""
    if isinstance(level.orbits, Acting):
        return _acted(level, level.orbits)
    if level.orbits is not None:
        return traffic_of(level.unfold())
    return _of_ranks(level, level.topology.num_ranks)


def traffic_of_one(level: SymmetricSchedule) -> Traffic:
    """Return what rank 0 sends: as much as every other rank, so a step takes as long as the step of all ranks.

    Of a template whose group is the topology's symmetry: its routes are single links, so those of rank 0 carry no more.
    """
    assert level.orbits is None, "routes of one link"
    return _of_ranks(level, 1)


def _of_ranks(level: SymmetricSchedule, ranks: int) -> Traffic:
    """Return the traffic of the first ranks of a template whose group is the topology's symmetry."""
    seed, links = level.seed, level.topology.num_links
    degree = links // max(level.topology.num_ranks, 1)
    keys, amounts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for a, b in level.step_ranges():
        load = np.zeros(degree, dtype=np.int64)
        np.add.at(load, level.place[a:b], seed.amount[a:b])
        link_load = np.tile(load, ranks)
        keys.append(int(seed.step[a]) * links + np.flatnonzero(link_load))
        amounts.append(link_load[link_load > 0])
    return _from_keys(level, Routes.direct(links), np.concatenate(keys), np.concatenate(amounts))


def _acted(level: SymmetricSchedule, group: Acting) -> Traffic:
    """Return the traffic of a group with one element a rank: every route carries what its orbit does."""
    seed = level.seed
    orbit, routes, number = acted_routes(seed, group)
    step_orbit = seed.step.astype(np.int64) * max(number.shape[1], 1) + orbit[seed.route]
    found, place = np.unique(step_orbit, return_inverse=True)
    amount = np.zeros(len(found), dtype=seed.amount.dtype)
    np.add.at(amount, place, seed.amount)
    step, which = np.divmod(found, max(number.shape[1], 1))
    key = (step * max(len(routes), 1) + number[:, which]).ravel()
    order = np.argsort(key, kind="stable")
    return _from_keys(level, routes, key[order], np.tile(amount, group.order)[order])


def _from_keys(level: Schedule | SymmetricSchedule, routes: Routes, key: Array, amount: Array) -> Traffic:
    """Return the messages with these ascending keys: step times the number of routes, plus the route."""
    step, route = np.divmod(key, max(len(routes), 1))
    tails, heads = routes.tails(level.topology), routes.heads(level.topology)
    return repeated(Traffic(
        level.topology, level.collective, level.vector, step=step,
        src=as_column(tails[route]), dst=as_column(heads[route]), amount=amount,
        times=np.ones(level.num_steps, dtype=np.uint8), route=route, routes=routes, scheduler=level.scheduler,
        reduced=reduced_share(level),
    ))  # fmt: skip
