"""The question and the answer of a section: network, collective, algorithm, times, the bound, and why not faster."""

from __future__ import annotations

from fractions import Fraction

from collc.ir.account import Account
from collc.ir.costs.busbw import bus_factor_of
from collc.ir.costs.certificate import Cut
from collc.ir.costs.cost import Cost, assumptions, unit_seconds
from collc.ir.costs.least import least_time
from collc.ir.costs.partitions import Partition
from collc.ir.quantities import show_bandwidth, show_size, show_time
from collc.ir.shown import counted, listed
from collc.ir.topology import Topology

from ..pictures.networks import origin_text
from .goodput import seconds_at
from .numbers import Json

__all__ = ["answer_of", "assumed", "rows_of", "table_sizes"]

#: sizes (bytes) of the table, besides the collective's own
_USUAL = (1 << 10, 1 << 20, 1 << 30)
_LONG = 10**6  # a denominator of more digits is not shown


def answer_of(account: Account) -> dict[str, Json]:
    """Return the three lines of a section: the question, the answer, and why it is not faster."""
    return {"question": _question(account), "answer": _answer(account), "why": _why(account)}


def table_sizes(account: Account) -> tuple[int, ...]:
    """Return the sizes of the table: the collective's own, and three usual ones."""
    return tuple(sorted({*_USUAL, *([account.own] if account.own else [])}))


# ---- lines


def _question(account: Account) -> str:
    topology, collective = account.topology, account.algorithms[0].schedule.collective
    among = "" if collective.members is None else f" among {collective.num_members} of its ranks"
    size = f" of {show_size(account.own)}" if account.own else ""
    root = "" if collective.root is None else f" (root {topology.names[collective.root]})"
    return f"How long does {_article(collective.name)}{size} take on {_network(topology)}{among}{root}?"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _network(topology: Topology) -> str:
    switches = f", {counted(topology.num_switches, 'switch')}" if topology.num_switches else ""
    origin = origin_text(topology)
    name = topology.name if origin in ("", topology.name) else f"{topology.name}, {origin}"
    return f"{name}: {counted(topology.num_ranks, 'rank')}{switches}, {counted(topology.num_links, 'link')}"


def _answer(account: Account) -> str:
    size = account.own or _USUAL[1]
    algorithm, time = account.at(size), seconds_at(account, size)
    cost = algorithm.cost
    rate = f": {show_bandwidth(float(size / time))}" if time else ""
    slope = account.algorithms[-1].cost.time_per_byte * unit_seconds(account.topology)
    large = f" Large sizes reach {show_bandwidth(float(1 / slope))}." if slope else ""
    exact = f", T_B = {cost.T_B} M/B" if cost.T_B is not None and cost.T_B.denominator < _LONG else ""
    number = len(account.algorithms)
    several = f" {counted(number, 'algorithm')} serve the sizes." if number > 1 else ""
    return (
        f"{show_size(size)} take {show_time(float(time))} with {cost.scheduler}{rate}, in "
        f"{counted(cost.steps, 'step')}{exact}.{large}{several}"
    )


def _why(account: Account) -> str:
    """Return how far the last algorithm, that of the largest sizes, is from the bound, and what the bound is."""
    cost = account.algorithms[-1].cost
    steps = _steps(cost, account)
    if cost.bound_met:
        kinds = "no schedule by trees is" if cost.tightest.kind == "tree-schedules" else "no schedule is"
        return f"At large sizes {kinds} faster.{_proof(cost)}{steps}{_faster(account)}"
    ratio = float(cost.time_per_byte / cost.tightest.value) if cost.tightest.value else 0.0
    return f"At large sizes it takes {ratio:.4g} times the bound.{_proof(cost)}{steps}{_faster(account)}"


def _steps(cost: Cost, account: Account) -> str:
    """Return the steps beside the distance of the farthest ranks, if every transfer goes over one link."""
    collective, hops = account.shown.schedule.collective, account.topology.diameter
    if cost.T_L_bound is None or hops is None or hops < 2 or collective.root is not None:
        return ""
    phases = " in two phases" if cost.phases == 2 else ""
    fewest = ", so link by link no schedule takes fewer" if cost.steps == hops else ""
    return f" It takes {counted(cost.steps, 'step')}{phases}; the farthest ranks are {hops} links apart{fewest}."


def _faster(account: Account) -> str:
    """Return which contender takes less time at the size of the answer, and at the smallest size; empty if none."""
    size = account.own or _USUAL[1]
    found = ""
    for at in dict.fromkeys((account.sizes.index(size), 0)):
        best = min(account.contenders, key=lambda one: one.seconds[at])
        time = seconds_at(account, account.sizes[at])
        if best.seconds[at] < time:
            ratio = float(best.seconds[at] / time)
            found += f" At {show_size(account.sizes[at])}, {best.name} takes {ratio:.3g} of the time."
    return found


def _proof(cost: Cost) -> str:
    """Return the certificate of the tightest bound as a sentence."""
    proof, name = cost.tightest.certificate, cost.tightest.name
    where, colon, what = name.rpartition(": ")
    if isinstance(proof, Cut) and colon:
        return f" The {where} must carry {what}."
    if isinstance(proof, Partition) and colon:
        parts = "single ranks" if proof.is_finest else where
        crossings, _, over = what.partition(" crossings over ")
        return f" The vector crosses the parts of the network ({parts}) at least {crossings} times, over {over} in all."
    return f" The bound: {name}." if name else ""


# ---- the table of sizes


def rows_of(account: Account) -> list[Json]:
    """Return a row for each size of the table: texts of size, time, algbw, busbw, least time, ratio and algorithm."""
    factor = bus_factor_of(account.algorithms[0].schedule.collective)
    found: list[Json] = []
    for size in table_sizes(account):
        algorithm, time = account.at(size), seconds_at(account, size)
        least = least_time(algorithm.cost, account.topology, size)
        rate = float(size / time) if time else 0.0
        found.append([
            show_size(size), show_time(float(time)), show_bandwidth(rate),
            "" if factor is None else show_bandwidth(rate * float(factor)), show_time(float(least)),
            _ratio(time, least), algorithm.cost.scheduler,
        ])  # fmt: skip
    return found


def _ratio(time: Fraction, least: Fraction) -> str:
    return f"{float(time / least):.3g}" if least else ""


def assumed(account: Account) -> str:
    """Return what the times assume because the network does not say it; empty if they assume nothing."""
    found = list(dict.fromkeys(text for algorithm in account.algorithms for text in assumptions(algorithm.cost)))
    return f"The times assume {listed(found)}." if found else ""
