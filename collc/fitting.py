"""Schedules within a target's limits: as many chunks, and of a forest as many pieces, as fit, or what would.

The cost model chooses the pieces of a forest for the network; a runtime may hold fewer. Where nobody asked for a number
of pieces, that many are made as fit. Where somebody did, or where one piece is too much already, the message of what
does not fit says what would. So it is with chunks: where nobody said how many, shards are cut in fewer until the
program fits, and what that loses is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from collc.backends.base import Artifact, Limits, Target
from collc.ir.arrays import distinct
from collc.ir.diagnostic import CollcError
from collc.ir.pipelining import turns
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.passes.discretize import Discretize, chunks_needed
from collc.passes.stream import Stream

from .internal import is_fatal
from .pipeline import Plan

__all__ = ["LIMITS", "Runner", "fit"]

Array = np.ndarray[Any, np.dtype[Any]]
Emitted = tuple[Target, tuple[Artifact, ...]]
#: the plan that ran, what it made, and the files
Fitted = tuple[Plan, Any, Emitted | None]

#: what passes and targets report of a runtime's limits, all of which fewer pieces or trees may keep
LIMITS = frozenset({"C0509", "C0546", "C0621", "C0622", "C0623", "C0624", "C0625", "C0626", "C0627"})
#: numbers of chunks tried between one that fits and the next larger one that does not
_BETWEEN = 3
#: transfers that are written out unless more pieces are asked for
_USUAL_TRANSFERS = 1 << 22


class Runner(Protocol):
    """Who runs plans; ``lenient`` where the scheduler's options are nobody's wish."""

    @property
    def lenient(self) -> bool: ...

    def announce(self, chain: Plan) -> None: ...

    def tell(self, text: str) -> None: ...

    def run(self, ir: Any, chain: Plan, begin: int = 0, end: int | None = None) -> Any: ...

    def finish(self, chain: Plan, ir: Any) -> Emitted | None: ...

    def trial(self) -> Runner: ...


def fit(runner: Runner, first: Any, chain: Plan, target: Target | None) -> Fitted:
    """Run a plan from ``first`` to the target's files; return the plan that ran, what it made, and the files.

    Raises CollcError; where a runtime's limit is the reason, with a hint at what fits, if something was found.
    """
    at = next((i for i, this in enumerate(chain.passes) if isinstance(this, Stream)), None)
    if at is None:
        return _in_chunks(runner, first, chain, target)
    forest = runner.run(first, chain, end=at)
    pieces = _pieces(chain, at, forest)
    chosen = _is_chosen(chain, at, 0 if runner.lenient else None)
    if chosen:
        pieces = min(pieces, _affordable(forest, target.limits if target else Limits()))
    while True:
        if pieces != _pieces(chain, at, forest):
            chain = _with_pieces(chain, at, pieces)
            runner.announce(chain)
        try:
            return _attempt(runner, forest, chain, target, begin=at)
        except CollcError as mistake:
            if not _is_limit(mistake):
                raise
            if chosen and pieces == 1 and (made := _in_fewer_chunks(runner, forest, chain, target, at)):
                return made
            if not chosen or pieces == 1:
                raise _advised(mistake, _what_fits(runner.trial(), first, chain, target, at, forest)) from None
        pieces //= 2


def _attempt(runner: Runner, ir: Any, chain: Plan, target: Target | None, begin: int = 0) -> Fitted:
    """Run a plan from ``begin`` on, in no more chunks than the target can number."""
    at = _cutting(chain)
    if at is not None and begin <= at:
        ir, begin = runner.run(ir, chain, begin=begin, end=at), at
        chain, given = _within(chain, at, ir, target), chain
        if chain is not given:
            runner.announce(chain)
    made = runner.run(ir, chain, begin=begin)
    return chain, made, runner.finish(chain, made)


def _is_limit(mistake: CollcError) -> bool:
    return all(d.code in LIMITS for d in mistake.diagnostics)


# ---- chunks


def _in_chunks(runner: Runner, first: Any, chain: Plan, target: Target | None) -> Fitted:
    """Run a plan without pieces; in fewer chunks a shard than the schedule would like where limits ask for that."""
    try:
        return _attempt(runner, first, chain, target)
    except CollcError as mistake:
        if not _is_limit(mistake):
            raise
        made = _in_fewer_chunks(runner, first, chain, target, 0)
        if made is None:
            raise _advised(mistake, _chunks_that_fit(runner.trial(), first, chain, target)) from None
        return made


def _in_fewer_chunks(runner: Runner, ir: Any, chain: Plan, target: Target | None, begin: int) -> Fitted | None:
    """Run a plan in the most chunks a shard that were found to fit; nothing where none do, or where the scheduler was
    told a number of chunks or trees.
    """
    at = _cutting(chain)
    if at is None or any(getattr(chain.passes[0], wish, None) is not None for wish in ("chunks", "k")):
        return None
    found = _most_chunks(runner.trial(), ir, chain, target, begin, at)
    if found is None:
        return None
    fewer = _with_chunks(chain, at, found)
    runner.announce(fewer)
    made = _attempt(runner, ir, fewer, target, begin)
    runner.tell(f"discretize: in more than {found} chunks a shard the program exceeds limits of `{_name(target)}`")
    return made


def _most_chunks(trial: Runner, ir: Any, chain: Plan, target: Target | None, begin: int, at: int) -> int | None:
    """Return the largest number of chunks that was found to fit: by halves, then between the last two."""
    before = trial.run(ir, chain, begin=begin, end=at)
    over = trial.run(before, _within(chain, at, before, target), begin=at, end=at + 1).parts
    fits = over // 2
    while fits and not _fits(trial, before, _with_chunks(chain, at, fits), target, at):
        fits, over = fits // 2, fits
    for _ in range(_BETWEEN if fits else 0):
        middle = (fits + over) // 2
        if middle == fits:
            break
        if _fits(trial, before, _with_chunks(chain, at, middle), target, at):
            fits = middle
        else:
            over = middle
    return fits or None


def _chunks_that_fit(trial: Runner, first: Any, chain: Plan, target: Target | None) -> str | None:
    """Return what is to be written in place of the scheduler's number of chunks, if anything fits."""
    asked = getattr(chain.passes[0], "chunks", None) if chain.passes else None
    while isinstance(asked, int) and asked > 1:
        asked //= 2
        fewer = attrs.evolve(chain.passes[0], chunks=asked)  # type: ignore[call-arg]
        if _fits(trial, first, attrs.evolve(chain, passes=(fewer, *chain.passes[1:])), target, 0):
            return f"{asked} chunks a shard fit: `chunks: {asked}`"
    return None


def _within(chain: Plan, at: int, ir: Any, target: Target | None) -> Plan:
    """Return a plan whose chunks a target can number, where the schedule would take more; fewer messages count then."""
    cut, limits = chain.passes[at], target.limits if target else Limits()
    if (
        not isinstance(cut, Discretize)
        or limits.max_offset is None
        or not isinstance(ir, (Schedule, SymmetricSchedule))
    ):
        return chain
    tight = attrs.evolve(cut, max_number=limits.max_offset, max_message=limits.max_count)
    if chunks_needed(ir) <= tight.most(ir.collective)[0]:
        return chain
    return attrs.evolve(chain, passes=(*chain.passes[:at], tight, *chain.passes[at + 1 :]))


def _name(target: Target | None) -> str:
    return target.name if target else "any target"


def _cutting(chain: Plan) -> int | None:
    return next((i for i, this in enumerate(chain.passes) if isinstance(this, Discretize)), None)


def _with_chunks(chain: Plan, at: int, chunks: int) -> Plan:
    cut = attrs.evolve(chain.passes[at], max_chunks=chunks)  # type: ignore[call-arg]
    return attrs.evolve(chain, passes=(*chain.passes[:at], cut, *chain.passes[at + 1 :]))


# ---- pieces


def _pieces(chain: Plan, at: int, forest: Forest) -> int:
    stream = chain.passes[at]
    return stream.pieces if isinstance(stream, Stream) and stream.pieces is not None else forest.pieces


def _is_chosen(chain: Plan, at: int, free: int | None) -> bool:
    """Whether nobody asked for a number of pieces: neither of ``stream`` nor of the scheduler, unless that is the pass
    number ``free``, whose options nobody wrote.
    """
    passes = [this for i, this in enumerate(chain.passes[: at + 1]) if i != free]
    return all(getattr(this, "pieces", None) is None for this in passes)


def _with_pieces(chain: Plan, at: int, pieces: int) -> Plan:
    return attrs.evolve(chain, passes=(*chain.passes[:at], Stream(pieces=pieces), *chain.passes[at + 1 :]))


def _affordable(forest: Forest, limits: Limits) -> int:
    """Return a number of pieces, at least 1, that no larger one is worth trying: each takes a rank at least one step
    for every route and step of the trees that begins or ends there.
    """
    most = _USUAL_TRANSFERS // max(len(forest.tree), 1)
    if limits.max_steps is not None and limits.max_threadblocks is not None:
        most = min(most, limits.max_steps * limits.max_threadblocks // max(_messages(forest), 1))
    return max(most, 1)


def _messages(forest: Forest) -> int:
    """Return the most messages that a rank sends or receives of one piece at least."""
    routes = forest.routes
    used = distinct(turns(forest) * np.int64(len(routes)) + forest.route) % max(len(routes), 1)
    ends = np.concatenate([routes.tails(forest.topology)[used], routes.heads(forest.topology)[used]])
    return int(np.bincount(ends, minlength=1).max())


# ---- what would fit


def _what_fits(trial: Runner, first: Any, chain: Plan, target: Target | None, at: int, forest: Forest) -> str | None:
    """Return what is to be written so that the limits hold, or nothing where one tree in one piece is too much."""
    pieces = _pieces(chain, at, forest)
    while pieces > 1:
        pieces //= 2
        if _fits(trial, forest, _with_pieces(chain, at, pieces), target, at):
            by_scheduler = getattr(chain.passes[0], "pieces", None) is not None and at > 0
            return f"{pieces} pieces fit: `{f'pieces: {pieces}' if by_scheduler else f'stream{{pieces={pieces}}}'}`"
    scheduler = chain.passes[0]
    if not isinstance(first, Problem) or not hasattr(scheduler, "k"):
        return None
    alone = _with_pieces(chain, at, 1)
    trees = _trees(forest)
    while trees > 1:
        trees //= 2
        fewer = attrs.evolve(scheduler, k=trees)  # type: ignore[call-arg]
        if _fits(trial, first, attrs.evolve(alone, passes=(fewer, *alone.passes[1:])), target, 0):
            return f"{trees} trees a rank in one piece fit: `k: {trees}, pieces: 1`"
    return None


def _trees(forest: Forest) -> int:
    common = int(np.gcd.reduce([forest.parts, *forest.weight.tolist()]))
    return forest.parts // common


def _fits(trial: Runner, ir: Any, chain: Plan, target: Target | None, begin: int) -> bool:
    try:
        _attempt(trial, ir, chain, target, begin)
    except CollcError as mistake:
        if is_fatal(mistake):
            raise
        return False
    return True


def _advised(mistake: CollcError, way: str | None) -> CollcError:
    """Return a mistake with a way out in place of its hints, where there is one."""
    if way is None:
        return mistake
    found: Sequence[Any] = [attrs.evolve(d, hint=way) for d in mistake.diagnostics]
    return CollcError(list(found), mistake.exit_status)
