"""From an account to its pictures: the network with its loads, the trees, the matrix of loads, goodput by size."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from collc.ir.account import Account
from collc.ir.costs.least import least_time
from collc.ir.quantities import show_bandwidth, show_size, show_time
from collc.ir.shown import counted

from ..pictures.axes import Axis
from ..pictures.charts import Chart, Rule, Series
from ..pictures.cuts import cut_parts
from ..pictures.loads import forest_of, has_trees, link_loads_of
from ..pictures.matrix import load_picture
from ..pictures.networks import LinkLoads, network_picture
from ..pictures.style import BOUND, Look, look
from ..pictures.svg import Picture
from ..pictures.trees import trees_picture
from ..pictures.units import BYTES, BYTES_PER_SECOND
from ..simulator import simulate

__all__ = ["curve_tips", "goodput_picture", "pictures_of"]

_ARRIVALS = "One root: its data come by these transfers first."
_CHANGE = Look("ink", "2 4")


def pictures_of(account: Account, which: str, trees: int) -> Iterator[tuple[str, Picture]]:
    """Yield (name, picture) of the chosen pictures, or of all; raise C0301 if a message has no route."""
    algorithm = account.shown
    level, topology = algorithm.schedule, account.topology
    about = f"{algorithm.cost.collective} by {algorithm.cost.scheduler}, {counted(algorithm.cost.steps, 'step')}."
    cut = cut_parts(algorithm.cost, topology)

    @cache
    def loads() -> LinkLoads:
        return link_loads_of(simulate(level))

    if which in ("all", "topology"):
        yield "topology", network_picture(topology, loads(), cut, f"{about} Loads of all steps together.")
    forest = forest_of(algorithm) if which in ("all", "trees") else None
    if forest is not None:
        yield "trees", trees_picture(*forest, trees, about if has_trees(algorithm) else f"{about} {_ARRIVALS}")
    if which in ("all", "load"):
        parts, text = ((), "") if cut is None else (cut.parts or (), cut.text)
        yield "load", load_picture(topology, loads(), parts, text, f"{about} All steps together.")
    if which in ("all", "goodput"):
        yield "goodput", goodput_picture(account)


# ---- goodput


def curve_tips(account: Account) -> list[list[str]]:
    """Return the tips of the points of every curve: size, goodput and time."""
    return [
        [_tip(size, time) for size, time in zip(account.sizes, one.seconds, strict=True) if time]
        for one in account.contenders
    ]


def _least(account: Account) -> tuple[Fraction, ...]:
    return tuple(least_time(account.at(size).cost, account.topology, size) for size in account.sizes)


def _tip(size: int, time: Fraction) -> str:
    return f"{show_size(size)}: {show_bandwidth(float(size / time))}, {show_time(float(time))}"


def goodput_picture(account: Account) -> Picture:
    """Return a curve for every algorithm that was compared, the bound as a line, and the sizes of crossovers."""
    series = [
        _series(one.name, look(number), account, one.seconds) for number, one in enumerate(account.contenders)
    ] + [_series("bound", BOUND, account, _least(account))]
    kind = account.algorithms[0].cost.collective
    skipped = ", ".join(name for name, _ in account.skipped)
    left = f" Not compared: {skipped}." if skipped else ""
    words = f"The whole vector over the time it takes, on {account.topology.name}. No schedule is above the bound."
    changes = list(_changes(account))
    in_words = "".join(f" {change.label}." for change in changes)
    return Chart(
        f"Goodput of {kind} by size", Axis("size of the vector", 2, BYTES),
        Axis("goodput", units=BYTES_PER_SECOND, zero=True, margin=Fraction(1, 20)), series, changes, words,
        f"{words} Curves of {', '.join(one.name for one in series)}.{in_words}{left}",
    ).picture()  # fmt: skip


def _series(name: str, shown: Look, account: Account, seconds: tuple[Fraction, ...]) -> Series:
    points = [(size, time) for size, time in zip(account.sizes, seconds, strict=True) if time]
    tips = [_tip(size, time) for size, time in points]
    return Series(name, [(size, size / time) for size, time in points], shown, dots=shown != BOUND, tips=tips)


def _changes(account: Account) -> Iterator[Rule]:
    """Yield the first sizes at which another algorithm is the fastest."""
    before: int | None = None
    for at, size in enumerate(account.sizes):
        best = min(range(len(account.contenders)), key=lambda one: account.contenders[one].seconds[at])
        if before is not None and account.contenders[best].seconds[at] < account.contenders[before].seconds[at]:
            yield Rule(size, f"{account.contenders[best].name} from {show_size(size)}", look=_CHANGE)
            before = best
        before = best if before is None else before
