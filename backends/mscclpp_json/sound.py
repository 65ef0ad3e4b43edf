"""Whether the blocks of a plan break no rule of their form, judged on columns: all at once, and without a reason.

The rules are those of :mod:`.structure`, which names what breaks them.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.one_sided.opcodes import Op, table
from collc.ir.one_sided.program import Transport
from collc.ir.ragged import nth, owners, starts

from .forms import FORMS
from .kinds import HERE, PEER, SWITCH, Kinds
from .model import LINKED, TRANSPORTS, Plan
from .runtimes import MAX_LINKS, Runtime

__all__ = ["are_sound"]

_PLACES = {"here": HERE, "peer": PEER, "switch": SWITCH, "": -1}
_MANY = 1 << 31
_SEMAPHORES, _POSTS = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE), table(*LINKED)
_PAIRS, _IDS = table(*(op for op in Op if FORMS[op].pairs)), table(*(op for op in Op if FORMS[op].ids))

#: [operation, transport + 1]: whether it works over the transport; 0: without one
_OVER = np.array([[name in FORMS[op].transports for name in ("", *TRANSPORTS)] for op in Op])
_SIDES = [[(FORMS[op].src, FORMS[op].more_src), (FORMS[op].dst, FORMS[op].more_dst)] for op in Op]
#: [operation, source or destination]: the fewest and the most items
_FEWEST = np.array([[len(first) for first, _ in sides] for sides in _SIDES])
_MOST = np.array([[_MANY if more else len(first) for first, more in sides] for sides in _SIDES])
#: [operation, source or destination, first, second or later item]: where the item is
_DUE = np.array([
    [[_PLACES[first[k] if k < len(first) else more] for k in range(3)] for first, more in sides] for sides in _SIDES
])  # fmt: skip


def are_sound(plan: Plan, kinds: Kinds, runtime: Runtime | None) -> bool:
    """Return whether :func:`.structure.broken_rules` finds nothing in the blocks of a plan."""
    return _lists(plan, kinds) and _formed(kinds, runtime) and _within(plan, kinds)


def _lists(plan: Plan, kinds: Kinds) -> bool:
    """Return whether blocks list channels of their rank, and remote buffers that their transports reach."""
    counts = [
        [sum(len(c.peers) + len(c.groups) for c in gpu.channels if c.transport == name) for name in TRANSPORTS]
        for gpu in plan.gpus
    ]  # fmt: skip
    rank = np.repeat(kinds.rank, len(TRANSPORTS))
    transport = np.arange(len(rank)) % len(TRANSPORTS)
    linked, reached = kinds.linked, kinds.reached
    known = linked.values < np.repeat(np.array(counts, dtype=np.int64)[rank, transport], linked.lengths)
    sizes = [len(gpu.buffers) for gpu in plan.gpus]
    there = reached.values < np.repeat(np.array(sizes, dtype=np.int64)[rank], reached.lengths)
    short = max(linked.lengths.max(initial=0), reached.lengths.max(initial=0)) <= MAX_LINKS
    if not (known.all() and there.all() and short):
        return False
    able = np.array(
        [[name in buffer.transports for name in TRANSPORTS] for gpu in plan.gpus for buffer in gpu.buffers], dtype=bool
    ).reshape(-1, len(TRANSPORTS))
    row = reached.values + np.repeat(starts(sizes)[rank], reached.lengths)
    return bool(able[row, np.repeat(transport, reached.lengths)].all())


def _formed(kinds: Kinds, runtime: Runtime | None) -> bool:
    """Return whether all operations have the operands of their names, over transports that have them."""
    code = kinds.code
    if (code < 0).any():
        return False
    joins = code == Op.NOP  # of which nothing is read
    sides = np.stack([kinds.sources, kinds.items - kinds.sources], axis=1)
    wrong = ~_OVER[code, kinds.transport + 1] | (kinds.sums == 0)
    if runtime is not None:
        wrong |= table(*runtime.lacks)[code]
    wrong |= ((sides < _FEWEST[code]) | (sides > _MOST[code])).any(axis=1)
    wrong |= _PAIRS[code] & (sides[:, 0] != sides[:, 1])
    wrong |= _IDS[code] & (kinds.channels == 0)
    wrong |= _POSTS[code] & (kinds.transport == Transport.PORT) & (kinds.channels != sides[:, 1])
    wrong |= _SEMAPHORES[code] & (kinds.semaphores == 0)
    wrong |= (code == Op.BARRIER) & (kinds.joins < 1)
    if (wrong & ~joins).any():
        return False
    return not (_misplaced(kinds) & ~joins[owners(kinds.items)]).any()


def _misplaced(kinds: Kinds) -> Array:
    """Return the items that are elsewhere than they must be, are empty, or differ in size from their counterparts."""
    of, number = owners(kinds.items), nth(kinds.items)
    code, sources = kinds.code[of], kinds.sources[of]
    target = (number >= sources).astype(np.int64)
    number -= target * sources
    first = starts(kinds.items)[of]
    pairs = _PAIRS[code]
    # a pair has as many sources as destinations, which is known here
    other = np.where(pairs, first + number, first)
    wrong: Array = kinds.where != _DUE[code, target, np.minimum(number, 2)]
    wrong |= (kinds.size < 1) | (kinds.size != kinds.size[np.minimum(other, len(of) - 1)] if len(of) else wrong)
    return wrong


def _within(plan: Plan, kinds: Kinds) -> bool:
    """Return whether operations name what their blocks list, and semaphores of their ranks."""
    kind, block = kinds.kind, owners(kinds.sizes)
    local = kinds.transport[kind] < 0
    list_of = block * len(TRANSPORTS) + np.maximum(kinds.transport[kind], 0)
    channels, buffers = (np.where(local, 0, lists.lengths[list_of]) for lists in (kinds.linked, kinds.reached))
    switches = kinds.linked.lengths[block * len(TRANSPORTS) + int(Transport.SWITCH)]
    semaphores = np.array([len(gpu.semaphores) for gpu in plan.gpus], dtype=np.int64)[kinds.rank[block]]
    named = (
        (_largest(kinds.channel, kinds.channels), channels),
        (_largest(kinds.semaphore, kinds.semaphores), semaphores),
        (_largest(np.where(kinds.where == PEER, kinds.number, -1), kinds.items), buffers),
        (_largest(np.where(kinds.where == SWITCH, kinds.number, -1), kinds.items), switches),
    )
    used = kinds.code[kind] != Op.NOP
    return not any((used & (largest[kind] >= limit)).any() for largest, limit in named)


def _largest(values: Array, counts: Array) -> Array:
    """Return the largest value of each list, of which all stand one after the other; -1 if it is empty."""
    found = np.full(len(counts), -1, dtype=np.int64)
    some = counts > 0
    if some.any():
        found[some] = np.maximum.reduceat(values, starts(counts)[:-1][some])
    return found
