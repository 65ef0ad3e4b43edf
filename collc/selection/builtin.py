"""Which algorithm of Open MPI or UCC is the fastest at which size on a network, by the cost model.

Each algorithm's messages run in the simulator. Times are piecewise linear in the size, so borders are exact. Only
algorithms with a model are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.backends.builtin_rules.libraries import LIBRARIES, TITLES, Builtin, Entry, Library
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.shown import listed
from collc.ir.spec import Problem
from collc.ir.tuning import Tuning

from .builtin_messages import builtin_traffic
from .measure import Model
from .native import fastest_ranges
from .options import Auto
from .times import Times

__all__ = ["Choice", "Left", "builtin_times", "choose_builtins"]


@frozen
class Choice:
    """The algorithms of a library's function ``entry`` by size; names in ``tuning`` are those of the library."""

    tuning: Tuning
    entry: Entry

    @property
    def used(self) -> tuple[Builtin, ...]:
        """The algorithms that are chosen at some size."""
        names = {one.algorithm for one in self.tuning.ranges}
        return tuple(one for one in self.entry.algorithms if one.name in names)


@frozen
class Left:
    """A collective that the library decides itself, and why."""

    name: str
    reason: str


def builtin_times(problem: Problem, algorithm: Builtin, model: Model) -> Times:
    """Return the time of an algorithm as a function of M."""
    return model.simulated(builtin_traffic(algorithm.model, problem)).times


def choose_builtins(problems: Sequence[tuple[str, Problem]], library: Library) -> tuple[list[Choice], list[Left]]:
    """Return the choice for each collective, and those that are left to the library.

    Raises C0740 if all are left, C0741 if two are for the same calls.
    """
    chosen, left = list[Choice](), list[Left]()
    for name, problem in problems:
        reason = _refusal(problem, library)
        if reason is not None:
            left.append(Left(name, reason))
            continue
        for entry in LIBRARIES[library][problem.collective.kind]:
            chosen.append(_choice(name, problem, entry))
    if not chosen:
        notes = [f"`{one.name}`: {one.reason}" for one in left]
        raise error("C0740", f"there is no choice among algorithms of {TITLES[library]}", notes=notes)
    _require_distinct(chosen)
    return chosen, left


def _refusal(problem: Problem, library: Library) -> str | None:
    """Return why a collective is left to the library, or None."""
    collective, known = problem.collective, LIBRARIES[library]
    if collective.name not in known:
        return (
            f"no algorithm of {TITLES[library]} for {collective.name} has a model; those of {listed(list(known))} have"
        )
    if collective.members is not None:
        return "it is among some ranks of the network"
    if collective.num_ranks < 2:
        return "it has one rank"
    if collective.ordered:
        return "its operation is not commutative"
    entries = known[collective.kind]
    if not any(len(_fitting(problem, entry)) > 1 for entry in entries):
        return f"on {collective.num_ranks} ranks one algorithm or none has a model"
    return None


def _fitting(problem: Problem, entry: Entry) -> list[Builtin]:
    ranks, root = problem.topology.num_ranks, problem.collective.root
    return [one for one in entry.algorithms if one.takes(ranks, root)]


def _choice(name: str, problem: Problem, entry: Entry) -> Choice:
    model, fitting = Model.of(Auto()), _fitting(problem, entry)
    problem.topology.require_connected(problem.collective.kind)
    timed = [((one.name, ""), builtin_times(problem, one, model)) for one in fitting]
    notes = [f"compared: {listed([one.model for one in fitting])}"]
    others = [*entry.unmodeled, *(one.model for one in entry.algorithms if one not in fitting)]
    if others:
        notes.append(f"not chosen, no model: {listed(others)}")
    notes += [f"assumed: {one}" for one in model.assumed(problem.topology)]
    plain = attrs.evolve(problem.collective, size=None)
    return Choice(Tuning(name, plain, 1, fastest_ranges(timed), tuple(notes)), entry)


def _require_distinct(chosen: Sequence[Choice]) -> None:
    seen: dict[tuple[str, int], str] = {}
    for one in chosen:
        collective = one.tuning.collective
        key = (one.entry.name, collective.num_ranks)
        if key in seen:
            message = (
                f"`{seen[key]}` and `{one.tuning.name}` are for the same calls: {collective.kind} on {key[1]} ranks"
            )
            raise error("C0741", message, hint="choose one with --collective")
        seen[key] = one.tuning.name
