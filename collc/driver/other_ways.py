"""Other ways to make files of a plan whose program hangs, or exceeds a limit of its target."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from collc.backends.base import Target
from collc.ir.arrays import distinct, distinct_pairs
from collc.ir.diagnostic import CollcError, Kind
from collc.ir.levels import Level
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram

from ..messages.internal import is_fatal
from ..registry.elements import element_text
from .fitting import Fitted, fit
from .maker import Maker
from .plan import Plan

__all__ = ["fit_in_some_way"]

#: transfers up to which passes work on all ranks if the program of one rank exceeds a limit
_MOST_RELISTED = 1 << 17


def fit_in_some_way(maker: Maker, first: Level, chain: Plan, target: Target | None) -> Fitted:
    """Return what :func:`.fitting.fit` returns, by other passes if the plan's own do not fit.

    If a program hangs because connections have too few slots, passes run in their other way (:meth:`~.Pass.unstuck`).
    If a program of one rank exceeds a limit, passes work on all ranks, whose messages may be other ones. Raises what
    the plan itself does if no way fits.
    """
    try:
        return _unless_stuck(maker, first, chain, target)
    except CollcError as mistake:
        listed = _of_all_ranks(maker, chain, target) if mistake.is_only(Kind.LIMIT) else None
        if listed is None:
            raise
        found = _instead_of(mistake, lambda: _unless_stuck(maker, first, listed, target))
        name = target.name if target else "the target"
        maker.remark(f"passes work on all ranks, because the program of one rank exceeds limits of `{name}`")
        return found


def _instead_of(mistake: CollcError, work: Callable[[], Fitted]) -> Fitted:
    """Return what ``work`` returns; raise ``mistake`` if it fails, unless its own error is fatal."""
    try:
        return work()
    except CollcError as again:
        raise (again if is_fatal(again) else mistake) from None


def _of_all_ranks(maker: Maker, chain: Plan, target: Target | None) -> Plan | None:
    """Return the plan that lists all ranks before its passes; None if it did, or if the template is large.

    None also if a rank sends to more ranks than it has threadblocks: each sends to one.
    """
    schedule, template = maker.runner.schedule, maker.runner.template
    if target is None or not target.limits.orbits:
        return None
    if isinstance(schedule, SymmetricSchedule):
        if len(schedule) > _MOST_RELISTED:
            return None
        peers = _peers(schedule)
    elif template is not None:  # of a schedule that lists all ranks anyway
        peers = _peers_in_program(template)
    else:
        return None
    most = target.limits.max_threadblocks
    if most is not None and peers > most:
        return None
    return attrs.evolve(chain, passes=tuple(this.of_all_ranks() for this in chain.passes))


def _peers(schedule: SymmetricSchedule) -> int:
    """Return the most ranks to which a rank sends."""
    seed, width = schedule.seed, schedule.width
    if not schedule.movable or not len(seed):
        return 0
    element, sender = np.divmod(seed.src.astype(np.int64), width)  # the sender is an image of a rank of the template
    to, orbit = np.divmod(seed.dst.astype(np.int64), width)
    receiver = schedule.symmetry.multiply(schedule.symmetry.inverse(element), to) * width + orbit
    ranks = schedule.topology.num_ranks
    return int(np.bincount(distinct(sender * ranks + receiver) // ranks).max())


def _peers_in_program(template: SymmetricProgram) -> int:
    """Return the most ranks to which a rank of a template sends."""
    seed = template.seed
    sends = seed.send_peer >= 0
    pairs = distinct_pairs(seed.block_rank[sends], seed.send_peer[sends])
    return int(np.bincount(pairs[0]).max(initial=0))


def _unless_stuck(maker: Maker, first: Level, chain: Plan, target: Target | None) -> Fitted:
    try:
        return fit(maker, first, chain, target)
    except CollcError as mistake:
        other = _unstuck(chain) if _lacks_slots(mistake) else chain
        if other is chain:
            raise
        found = _instead_of(mistake, lambda: fit(maker, first, other, target))
        slots = f"the connections of `{target.name if target else 'the target'}` have too few slots without it"
        changed = [element_text(new) for old, new in zip(chain.passes, other.passes, strict=True) if old is not new]
        maker.remark(f"{', '.join(changed)}: {slots}")
        return found


def _lacks_slots(mistake: CollcError) -> bool:
    return any(d.excess is not None and d.excess.what == "slots" for d in mistake.diagnostics)


def _unstuck(chain: Plan) -> Plan:
    """Return the plan in which no pass that has another way makes ranks wait for each other; itself if none has."""
    for at, this in enumerate(chain.passes):
        other = this.unstuck()
        chain = chain if other is None else chain.replaced(at, other)
    return chain
