"""Any scheduler on a collective of members: on the network of the members, then on the whole network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.frozen import frozen
from collc.ir.graph.members import Inside, inside, shared, with_shares
from collc.ir.levels import Executable, Scheduled
from collc.ir.schedule import Forest
from collc.ir.shown import counted
from collc.ir.spec import Problem

from ...base import Pass, remark
from ...schedulers import RANKS, SCHEDULERS

if TYPE_CHECKING:
    from collc.ir.costs.messages import Messages

__all__ = [
    "MeasuredNetworks", "measured_networks", "member_network", "messages_of", "planned_trees",
    "require_scheduled", "scheduled",
]  # fmt: skip


@frozen(eq=False)
class MeasuredNetworks:
    """The problem on the network of most bandwidth for the members, and what else it takes to compare schedules.

    If ranks relay on it, ``apart`` is the problem on the network without relays; None if the members need them.
    ``lift`` then returns the schedule of the whole network, relays included: on it, both have the same links.
    """

    first: Problem
    lift: Callable[[Scheduled], Scheduled] | None = None
    apart: MeasuredNetworks | None = None


def scheduled(scheduler: Pass, problem: Problem) -> Executable:
    """Return a scheduler's result for a problem, whose collective may have members.

    It runs on the network of the members without relays. If that is not connected, or its time per byte is above the
    bound with relays, it also runs on the network in which all other ranks relay. Relays stay if they take less time:
    at the size of the collective, else per byte. Raises what the scheduler raises if it takes neither network.
    """
    if _is_plain(scheduler, problem):
        return scheduler.run(problem)
    if problem.trees is not None and scheduler.takes_trees:
        return scheduler.resized(problem, problem.trees)
    from collc.ir.costs.bounds import bound  # most runs have no members
    from collc.ir.costs.cost import cost, predicted_time

    best: tuple[Fraction, Scheduled] | None = None
    refused: CollcError | None = None
    size = problem.collective.size
    for network in _networks(problem):
        if best is not None and cost(best[1]).time_per_byte <= bound(problem.topology, problem.collective).value:
            break
        try:
            level = _lifted_by(scheduler, network, problem)
        except CollcError as mistake:
            refused = refused or mistake
            continue
        found = cost(level)
        time = found.time_per_byte if size is None else predicted_time(found, size)
        if best is None or time < best[0]:
            best = time, level
    if best is None:
        assert refused is not None, "there is a network for every problem"
        raise refused
    _remark_relays(scheduler, best[1])
    return best[1]


def messages_of(scheduler: Pass, problem: Problem) -> Messages | None:
    """Return the messages of a scheduler's schedule; None if they need the schedule, as those of members do."""
    return scheduler.messages(problem) if _is_plain(scheduler, problem) else None


def require_scheduled(scheduler: Pass, problem: Problem) -> None:
    """Raise what a scheduler raises for a problem, with members if it takes no network of the members."""
    if _is_plain(scheduler, problem):
        scheduler.require(problem)
        return
    if problem.trees is not None and scheduler.takes_trees:
        return
    refused: CollcError | None = None
    for network in _networks(problem):
        try:
            _require(_lenient(scheduler), network)
        except CollcError as mistake:
            refused = refused or mistake
        else:
            return
    assert refused is not None, "there is a network for every problem"
    raise refused


def member_network(problem: Problem) -> Problem:
    """Return the problem of the members alone: without relays, unless these raise the bandwidth that cuts allow.

    >>> from collc.frontends.coll import topology
    >>> from collc.ir.collective import Collective
    >>> member_network(Problem(topology("biring(6)"), Collective("allgather", 6, members=(0, 1, 2)))).topology
    Topology(biring(6): 3 ranks, 3 switches, 12 links)
    """
    if problem.is_whole:
        return problem
    networks = list(_networks(problem))
    return _problem(min(networks, key=_bound) if len(networks) > 1 else networks[0])


def measured_networks(problem: Problem) -> MeasuredNetworks:
    """Return the networks of a problem on which candidates are measured; ``problem`` alone if all ranks take part.

    >>> from collc.frontends.coll import topology
    >>> from collc.ir.collective import Collective
    >>> found = measured_networks(Problem(topology("torus(3, 3)"), Collective("allgather", 9, members=(0, 1))))
    >>> found.first.topology.num_switches, found.apart.first.topology.num_switches
    (7, 0)
    """
    if problem.is_whole:
        return MeasuredNetworks(problem)
    networks = list(_networks(problem))
    best = min(networks, key=_bound) if len(networks) > 1 else networks[0]
    if problem.shares is not None or not len(best.relays):
        return MeasuredNetworks(_problem(best))
    apart = None if best is networks[0] else _measured(networks[0], problem)
    return attrs.evolve(_measured(best, problem), apart=apart)


def _measured(network: Inside, problem: Problem) -> MeasuredNetworks:
    from .lifting import lifted

    return MeasuredNetworks(_problem(network), lambda level: lifted(level, network, problem.collective))


def planned_trees(problem: Problem) -> Forest | None:
    """Return the trees that were planned with a problem's shares, on links that have these shares; None: none were."""
    if problem.trees is None or problem.shares is None:
        return None
    part = with_shares(problem.topology, problem.shares)
    return attrs.evolve(problem.trees, topology=part, collective=problem.collective)


def _is_plain(scheduler: Pass, problem: Problem) -> bool:
    """Return whether a scheduler takes a problem as it is: all ranks take part, or the user wrote the schedule."""
    return scheduler.by_hand or problem.is_whole


def _networks(problem: Problem) -> Iterator[Inside]:
    """Yield the network of the members without relays if it is connected, then that with relays if there are any.

    If neither is connected, yield the one that the problem allows.
    """
    topology, collective = problem.topology, problem.collective
    if problem.shares is not None:
        part = shared(topology, collective, problem.shares)
        yield _balanced(part, attrs.evolve(problem, topology=with_shares(topology, problem.shares)))
        return
    alone = inside(topology, collective, relays=False)
    if problem.relays == "never" or (problem.relays == "auto" and alone.topology.is_connected):
        yield alone
    if problem.relays != "never":
        relayed = inside(topology, collective)
        if len(relayed.relays) or not alone.topology.is_connected:
            yield _balanced(relayed, problem)


def _balanced(network: Inside, problem: Problem) -> Inside:
    """Return a network with relays in which each receives as much as it sends, of the most bandwidth for the members.

    Links without a reverse may bring a relay more than it can send on.
    """
    topology, relays = network.topology, range(network.topology.num_ranks, network.topology.num_nodes)
    if not network.topology.is_connected or all(topology.ingress(node) == topology.egress(node) for node in relays):
        return network
    from .classes import classes_of
    from .division import divided

    classes = classes_of(problem.topology, [network], [problem.collective])
    parts = divided(problem.topology, [network], [Fraction(1)], classes)
    shares = [Fraction(0)] * problem.topology.num_links
    for link, width in zip(network.links.tolist(), parts.shares[0], strict=True):
        shares[link] = width
    found = shared(problem.topology, problem.collective, shares)
    return attrs.evolve(found, whole=network.whole)


def _problem(network: Inside) -> Problem:
    return Problem(network.topology, network.collective)


def _lenient(scheduler: Pass) -> Pass:
    """Return a scheduler that takes ranks with more bandwidth in than out: parts of networks have such ranks."""
    if any(field.name == "unbalanced" for field in attrs.fields(type(scheduler))):
        return attrs.evolve(scheduler, unbalanced=True)  # type: ignore[call-arg]  # it has this field
    return scheduler


def _require(scheduler: Pass, network: Inside) -> None:
    """Raise what a scheduler raises for a network of members; C0567 if it takes no switches, and so no relays."""
    if len(network.relays) and SCHEDULERS[scheduler.name].networks == RANKS and network.whole.is_direct:
        raise error(
            "C0567", f"{scheduler.name} uses no relays, and some members have no links to other members",
            hint="use `forest` or `auto`", exit_status=3, about=(Subject.SCHEDULER, Subject.COLLECTIVE),
        )  # fmt: skip
    scheduler.require(_problem(network))


def _bound(network: Inside) -> Fraction:
    from collc.ir.costs.bounds import bound

    return bound(network.topology, network.collective).value


def _lifted_by(scheduler: Pass, network: Inside, problem: Problem) -> Scheduled:
    from .lifting import lifted

    scheduler = _lenient(scheduler)
    _require(scheduler, network)
    level = scheduler.run(_problem(network))
    assert isinstance(level, Scheduled), "a scheduler returns a schedule"
    found = lifted(level, network, problem.collective)
    if not isinstance(found, Forest) or not len(network.relays) or type(scheduler).resized is Pass.resized:
        return found
    trees = scheduler.resized(problem, found)  # trees are higher with their relays: other numbers of pieces are best
    assert isinstance(trees, Forest), "a scheduler of forests returns one"
    return trees


def _remark_relays(scheduler: Pass, level: Scheduled) -> None:
    from .relays import relays_of

    relays = relays_of(level)
    if relays:
        remark(f"{scheduler.name}: {counted(len(relays), 'rank')} that are no members relay")
