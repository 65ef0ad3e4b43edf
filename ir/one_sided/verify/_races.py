"""Races: two accesses of one address, one of them a write, in an order that depends on timing.

What a switch does is ordered by relaxed signals too, as all plans for switches assume: its loads and stores pass the
caches. Nothing else is.

The launch that is executed is followed by another one. A peer may be one launch ahead or behind, and then its user
reads and writes its input and output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array, distinct, lexsort
from ...frozen import frozen
from ...program import Buffer
from ...ragged import owners, ranges
from ..opcodes import FLAGS, PUBLISHES, SWITCHES, Op, table
from ..program import OneSided, Transport
from ._events import Events
from ._form import MOST, POSTS, doing, nth_item
from ._memory import Memory
from ._order import Order

__all__ = ["races"]


_GIVES = PUBLISHES | table(Op.SEM_RELEASE)
_TAKES = table(Op.WAIT, Op.SEM_ACQUIRE)


@frozen(eq=False)
class _Accesses:
    """Access k of ``event[k]`` is done by ``agent[k]`` in its step ``stamp[k]`` (see :class:`Order`).

    ``shared[k]``: all threads of the block do it, each the elements of its number. ``origin`` is the access in events.
    """

    event: Array
    agent: Array
    stamp: Array
    lo: Array
    hi: Array
    write: Array
    slot: Array
    packets: Array
    shared: Array
    origin: Array

    def __getitem__(self, rows: Array) -> _Accesses:
        return _Accesses(*(getattr(self, name)[rows] for name in _NAMES))


_NAMES = ("event", "agent", "stamp", "lo", "hi", "write", "slot", "packets", "shared", "origin")


class _Pair(NamedTuple):
    first: int
    second: int
    next_launch: bool


def races(program: OneSided, seen: Events, memory: Memory, order: Order, level: Array) -> list[str]:
    """Return the conflicting accesses without an order."""
    touched = _accesses(program, seen, order)
    problems = _users(program, seen, memory, order, touched)
    return problems + _conflicts(program, seen, memory, order, touched, level)


def _accesses(program: OneSided, seen: Events, order: Order) -> _Accesses:
    event = seen.event
    found = _Accesses(
        event, seen.block[event], order.phase[event], seen.lo, seen.hi, seen.write, seen.slot,
        FLAGS[order.op[event]], np.ones(len(event), dtype=bool), np.arange(len(event)),
    )  # fmt: skip
    if not order.posted:
        return found
    port = POSTS[order.op[event]] & (program.transport[seen.row[event]] == Transport.PORT)
    return _joined(
        found[np.flatnonzero(~port | ((order.op[event] == Op.RPPKT) & ~seen.write))],
        _posted(program, seen, order, found, port),
    )


def _posted(program: OneSided, seen: Events, order: Order, found: _Accesses, port: Array) -> _Accesses:
    """Return the accesses of puts over ports, which run behind their blocks."""
    number = nth_item(program)[seen.item]
    rows, agents, steps = [], [], []
    for k in np.flatnonzero(port).tolist():
        event = int(seen.event[k])
        of_each = order.op[event] == Op.RPPKT and not seen.write[k]
        links = range(len(program.links[program.link_start[seen.row[event]] : program.link_start[seen.row[event] + 1]]))
        for link in links if of_each else [int(number[k])]:
            agent, step = order.posted[event, link]
            rows.append(k)
            agents.append(agent)
            steps.append(step)
    some = found[np.array(rows, dtype=np.int64)]
    apart = np.zeros(len(rows), dtype=bool)
    return _Accesses(
        some.event, np.array(agents, dtype=np.int64), np.array(steps, dtype=np.int64), some.lo, some.hi, some.write,
        some.slot, some.packets, apart, some.origin,
    )  # fmt: skip


def _joined(one: _Accesses, other: _Accesses) -> _Accesses:
    return _Accesses(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in _NAMES))


# ---- users


def _users(program: OneSided, seen: Events, memory: Memory, order: Order, touched: _Accesses) -> list[str]:
    """Return the accesses of a peer's input or output while its user may access them.

    A user writes its buffers before a launch and reads them after it. So an access of another rank needs the proof that
    the owner has begun, and the owner must know at its end that it is over.
    """
    owner, rank = memory.rank(touched.lo), program.block_rank.astype(np.int64)[seen.block[touched.event]]
    of_user = touched.lo < memory.base[owner, Buffer.SCRATCH]
    away = np.flatnonzero(of_user & ((owner != rank) | ~touched.shared))
    problems = []
    over = order.end[owner[away], touched.agent[away]] >= touched.stamp[away]
    switch = SWITCHES[order.op[touched.event[away]]] & ~over
    if switch.any():
        over[switch] = (order.in_time.end[owner[away], touched.agent[away]] >= touched.stamp[away])[switch]
    for k in away[~over].tolist():
        verb = "writes" if touched.write[k] else "reads"
        what = f"{_of(program, seen, touched, k)} {verb} {memory.name(int(touched.lo[k]))}"
        if owner[k] == rank[k]:
            problems.append(f"{what} through its port, but nothing proves before the end of the launch that it has")
        else:
            why = "which may end the launch before that" if not program.together else "which may not know it at the end"
            problems.append(f"{what}, {why}: it waits for no signal after it")
    if not program.together:
        for k in _before_begun(order, touched, away[over & (owner[away] != rank[away])], owner).tolist():
            verb = "writes" if touched.write[k] else "reads"
            problems.append(
                f"{_of(program, seen, touched, k)} {verb} {memory.name(int(touched.lo[k]))}, which may not have "
                "begun this launch: its user may still use that buffer"
            )
    return problems[:MOST]


def _before_begun(order: Order, touched: _Accesses, some: Array, owner: Array) -> Array:
    """Return those of some accesses at which the owner of the buffer may not have begun."""
    begun, number = order.beginners(touched.event[some])
    found: Array = some[~_holds(begun, number, owner[some], order.program.num_ranks)]
    return found


def _of(program: OneSided, seen: Events, touched: _Accesses, access: int) -> str:
    return doing(program, int(seen.row[touched.event[access]]))


# ---- conflicts


def _conflicts(
    program: OneSided, seen: Events, memory: Memory, order: Order, touched: _Accesses, level: Array
) -> list[str]:
    """Return conflicts of neighbouring accesses of an address; all others follow, because order is transitive."""
    scratch = touched.lo >= memory.base[memory.rank(touched.lo), Buffer.SCRATCH]
    both = np.concatenate([np.arange(len(scratch)), np.flatnonzero(scratch)])
    launch = np.repeat([0, 1], [len(scratch), len(both) - len(scratch)])
    before, after = _neighbours(touched, both, launch, level)
    later = launch[after] > launch[before]
    one, other = both[before], both[after]
    ok = _within(touched, order, one, other)
    _by_elements(program, seen, touched, order, one, other, ok)
    bad = ~later & ~ok
    across = np.flatnonzero(later)
    bad[across] = ~_across(program, seen, touched, order, one[across], other[across])
    switch = np.flatnonzero(bad & SWITCHES[order.op[touched.event[one]]])
    if len(switch):
        a, b, next_ = one[switch], other[switch], later[switch]
        timed = order.in_time
        bad[switch] = ~np.where(
            next_, _across(program, seen, touched, timed, a, b), _within(touched, timed, a, b)
        )  # fmt: skip
    found: dict[tuple[int, int, bool], str] = {}
    for k in np.flatnonzero(bad).tolist():
        key = int(touched.event[one[k]]), int(touched.event[other[k]]), bool(later[k])
        if key not in found and len(found) < MOST:
            pair = _Pair(int(one[k]), int(other[k]), bool(later[k]))
            found[key] = _explain(program, seen, memory, touched, pair, order)
    return list(found.values())


def _neighbours(touched: _Accesses, both: Array, launch: Array, level: Array) -> tuple[Array, Array]:
    """Return each access with the write before it, and each read with the write after it, at every address.

    Addresses that are always accessed together count as one.
    """
    points = distinct(np.concatenate([touched.lo, touched.hi]))
    low, high = np.searchsorted(points, touched.lo[both]), np.searchsorted(points, touched.hi[both])
    row, location = owners(high - low), ranges(low, high - low)
    when = (launch * (int(level.max(initial=0)) + 1) + level[touched.event[both]]) * 2 + touched.write[both]
    order = lexsort((both[row], when[row], location))
    row, location = row[order], location[order]
    write, here = touched.write[both[row]], np.arange(len(row))
    group = np.searchsorted(location, location)
    end = np.searchsorted(location, location, side="right")
    last = np.concatenate([[-1], np.maximum.accumulate(np.where(write, here, -1))])[:-1][: len(row)]
    next_ = np.minimum.accumulate(np.where(write, here, len(row))[::-1])[::-1]
    has_last, has_next = last >= group, ~write & (next_ < end)
    before = np.concatenate([row[last[has_last]], row[has_next]])
    after = np.concatenate([row[has_last], row[next_[has_next]]])
    pair = distinct(before * (len(both) + 1) + after)
    return pair // (len(both) + 1), pair % (len(both) + 1)


def _within(touched: _Accesses, order: Order, one: Array, other: Array) -> Array:
    """Return which pairs of one launch are ordered, or wait for each other's packets."""
    agent, stamp = touched.agent[one], touched.stamp[one]
    ok: Array = order.over(order.known[touched.event[other]], agent) >= stamp
    ok |= (agent == touched.agent[other]) & (
        (stamp < touched.stamp[other]) & ~(touched.shared[one] & touched.shared[other])
    )
    same = (agent == touched.agent[other]) & touched.shared[one] & touched.shared[other]
    same &= (touched.lo[one] == touched.lo[other]) & (touched.hi[one] == touched.hi[other])
    same &= touched.packets[one] == touched.packets[other]
    ok |= same
    looks = order.op[touched.event[other]] != Op.PPKT
    ok |= touched.slot[one] & touched.slot[other] & touched.write[one] & ~touched.write[other] & looks
    return ok


def _by_elements(
    program: OneSided, seen: Events, touched: _Accesses, order: Order, one: Array, other: Array, ok: Array
) -> None:
    """Add the pairs in which packets prove that the first has read each element before the second writes it."""
    same = (touched.lo[one] == touched.lo[other]) & (touched.hi[one] == touched.hi[other])
    same &= ~touched.write[one] & touched.write[other] & touched.packets[one] & touched.packets[other]
    same &= touched.shared[one] & touched.shared[other]
    rows = np.flatnonzero(same & ~ok)
    if len(rows):
        number = nth_item(program)[seen.item[touched.origin[one[rows]]]].tolist()
        first, second = touched.event[one[rows]].tolist(), touched.event[other[rows]].tolist()
        ok[rows] = [order.proofs.reads_before(b, a, n) for a, b, n in zip(first, second, number, strict=True)]


def _across(program: OneSided, seen: Events, touched: _Accesses, order: Order, one: Array, other: Array) -> Array:
    """Return which pairs of a launch and the next one that uses the same half of scratch are ordered."""
    launches = 2 if program.double_scratch else 1
    agent, stamp, of_block = touched.agent[one], touched.stamp[one], touched.shared[one]
    begun, number = order.beginners(touched.event[other])
    finished = [order.finished(ranks, launches) for ranks in begun]
    own = program.block_rank.astype(np.int64)[seen.block[touched.event[one]]]
    ok = of_block & _holds(finished, number, own, program.num_ranks)
    rest = np.flatnonzero(~ok)
    for which in distinct(number[rest]).tolist():
        some = rest[number[rest] == which]
        ok[some] = order.earlier(begun[which], launches)[agent[some]] >= stamp[some]
    provable = touched.slot[one] & (~touched.write[one] | ~touched.shared[one])
    for k in np.flatnonzero(provable & ~ok).tolist():
        ended = finished[number[k]]
        if of_block[k]:
            ok[k] = order.proofs.read_at_end(ended, int(touched.event[one[k]]))
        else:
            ok[k] = order.proofs.over_at_end(ended, (int(agent[k]), int(stamp[k])))
    return ok


def _holds(sets: list[int], number: Array, rank: Array, ranks: int) -> Array:
    """Return whether set ``number[k]`` of bits has ``rank[k]``."""
    keys = number * np.int64(ranks) + rank
    pairs = distinct(keys)
    held = np.array([bool(sets[pair // ranks] >> pair % ranks & 1) for pair in pairs.tolist()], dtype=bool)
    found: Array = held[np.searchsorted(pairs, keys)]
    return found


def _explain(program: OneSided, seen: Events, memory: Memory, touched: _Accesses, pair: _Pair, order: Order) -> str:
    first, second = (_of(program, seen, touched, k) for k in (pair.first, pair.second))
    verbs = ["writes" if touched.write[k] else "reads" for k in (pair.first, pair.second)]
    address = max(int(touched.lo[pair.first]), int(touched.lo[pair.second]))
    where = memory.name(address, bool(touched.slot[pair.first]))
    if pair.next_launch:
        when = "the launch after the next" if program.double_scratch else "the next launch"
        return f"{first} {verbs[0]} {where}, but {second} may have begun {when} and {verbs[1]} it before that"
    same = touched.event[pair.first] == touched.event[pair.second]
    if same:
        return f"{first} reads and writes {where} with different threads"
    if int(touched.agent[pair.first]) == int(touched.agent[pair.second]):
        return f"{first} {verbs[0]} {where} and {second} {verbs[1]} it, without a nop between them"
    why = _missing(program, seen, touched, pair, order)
    return f"{first} {verbs[0]} {where} and {second} {verbs[1]} it, but {why}"


def _missing(program: OneSided, seen: Events, touched: _Accesses, pair: _Pair, order: Order) -> str:
    """Return what would order two accesses of one launch, if little is missing."""
    first, second = int(touched.event[pair.first]), int(touched.event[pair.second])
    agent, stamp = int(touched.agent[pair.first]), int(touched.stamp[pair.first])
    row = int(order.known[second])
    if order.in_time.over(np.array([row]), np.array([agent]))[0] >= stamp:
        return "only relaxed signals order them"
    if order.over_after(row, agent) >= stamp:
        waits = _in_phase(seen, order, _TAKES, second)
        if waits and waits[-1] < second:
            return f"no nop stands between it and {doing(program, int(seen.row[waits[-1]]))}"
    gives = [event for event in _in_phase(seen, order, _GIVES, first) if event > first]
    if gives and touched.shared[pair.first] and order.over(np.array([row]), np.array([agent]))[0] + 1 >= stamp:
        return f"no nop stands between the first and {doing(program, int(seen.row[gives[0]]))}"
    return "nothing orders them"


def _in_phase(seen: Events, order: Order, kind: Array, event: int) -> list[int]:
    """Return the events of a kind in the phase of an event, in order."""
    block = int(seen.block[event])
    rows = np.arange(int(seen.start[block]), int(seen.start[block + 1]))
    found: list[int] = rows[(order.phase[rows] == order.phase[event]) & kind[order.op[rows]]].tolist()
    return found
