"""Execute a schedule symbolically, all transfers of a step at once, in columns.

Shards are first cut at all ends of parts into *atoms*, so that each row moves whole atoms. A collective that only
copies needs one bit per (rank, shard, atom): whether the rank has it. A collective that reduces needs the set of ranks
whose contributions the value combines, a bitset. Its shards are executed in blocks, because they are independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, distinct, lexsort
from ..collective import Collective
from ..progress import counting, progress
from ..ragged import first_of_group, ranges
from ..schedule import Action, Schedule
from ..shown import counted, some
from ..symmetric import SymmetricSchedule
from ..validate import flaws
from ._atoms import Atoms, Wrong, row_text
from ._evidence import Missing, arrivals, contribution, lacking_contributions, overwritten, reducer, supplier
from ._placement import check_placement
from ._sums import MOST, Sums
from .report import Check, Report, Row

__all__ = ["verify_schedule"]

_BLOCK_BYTES = 1 << 24  # state of the shards executed together
_MOST_BYTES = 1 << 26  # the same, of a collective that copies


def verify_schedule(schedule: Schedule | SymmetricSchedule, shards: Array | None = None) -> Report:
    """Execute a schedule; checks: structure, links, placement (if the schedule has one), causality, single reduction,
    postcondition.

    Causality: every rank has the data that it sends. Single reduction: no rank's contribution is added twice, unless
    the operation is idempotent, and no two transfers of a step write the same data unless both add. Postcondition:
    every rank ends with exactly the collective's result (Definition 4 of the direct-connect paper, for all
    collectives).

    Of a template (:class:`SymmetricSchedule`) only its own shards are executed: after the symmetry is checked,
    every other shard's execution is an image. If only some ``shards``, ascending, are moved, these are executed.
    """
    names = ("structure", "links", "placement", "causality", "single reduction", "postcondition")
    done: list[Check] = []
    try:
        progress("structure and links")
        done += _form(schedule)
        if isinstance(schedule, Schedule) and schedule.placement is not None:
            done.append(check_placement(schedule, schedule.placement))
        run = _execute_reducing if schedule.collective.reduces else _execute_copying
        if isinstance(schedule, SymmetricSchedule):
            done += run(schedule.seed, [range(schedule.shards)])
        else:
            done += run(schedule, [range(schedule.collective.num_shards)] if shards is None else _runs(shards))
    except Wrong as wrong:
        before = names[: names.index(wrong.check.name)]
        done = [c for c in done if c.name in before] + [wrong.check]
    return Report("schedule", schedule.collective.name, schedule.collective.num_ranks, tuple(done))


def _runs(numbers: Array) -> list[range]:
    """Return the runs of consecutive numbers among ascending ones.

    >>> _runs(np.array([0, 1, 2, 7, 8]))
    [range(0, 3), range(7, 9)]
    """
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return [range(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


# ---- structure


def _form(level: Schedule | SymmetricSchedule) -> list[Check]:
    """Check columns, ranges and routes, and that no transfer is from a rank to itself."""
    for flaw in flaws(level):
        raise Wrong("links" if flaw.table == "routes" else "structure", str(flaw))
    schedule = level if isinstance(level, Schedule) else level.seed
    itself = np.flatnonzero(schedule.src == schedule.dst)
    if len(itself):
        row = int(itself[0])
        raise Wrong("links", f"{row_text(schedule, row)}: a rank has its own data", rows=(Row(row),))
    return [
        Check(
            "structure",
            True,
            f"{counted(len(level), 'transfer')} in {counted(level.num_steps, 'step')}{_executed(level)}",
        ),
        Check("links", True, f"{len(distinct(schedule.route))} routes over links that exist"),
    ]


def _executed(level: Schedule | SymmetricSchedule) -> str:
    if isinstance(level, Schedule):
        return ""
    if level.orbits is not None:
        shards = "shard 0" if level.width == 1 else f"shards 0 to {level.width - 1}"
        if level.shards > level.width:
            shards = f"the shards of ranks 0 to {level.width - 1}"
        return f", from the {len(level.seed)} of {shards} by {level.orbits.shown}"
    shards = "shard 0" if level.shards == 1 else "the shards of rank 0"
    return f", from the {len(level.seed)} of {shards} by the symmetry {level.symmetry.shown}"


# ---- collectives that copy


def _execute_copying(s: Schedule, shards: Sequence[range]) -> list[Check]:
    """Execute runs of shards of a collective that copies; all rows move one of these shards."""
    reducing = np.flatnonzero(s.action != Action.COPY)
    if len(reducing):
        row, kind = int(reducing[0]), s.collective.name
        notes, hint = ("`send` copies data, `reduce` adds them to the receiver's",), "write `send` in place of `reduce`"
        raise Wrong("single reduction", f"{row_text(s, row)}, but {kind} does not reduce", notes, (Row(row),), hint)
    c, atoms = s.collective, Atoms.of(s)
    words = (atoms.count + 63) // 64
    block = max(1, _MOST_BYTES // (c.num_ranks * words * 8))
    blocks = [run[at : at + block] for run in shards for at in range(0, len(run), block)]
    repeated = 0
    for one, rows in zip(blocks, _rows_by_block(s, [one.start for one in blocks]), strict=True):
        if len(blocks) > 1:
            progress("executing shards", one.start, shards[-1].stop)
        repeated += _execute_copies(s, atoms, rows, one.start, len(one))
    return [
        Check("causality", True, "every rank has the data that it sends"),
        Check("single reduction", True, f"no reductions; {repeated} transfers repeat data that the receiver has"),
        Check("postcondition", True, f"{_all(c)} ends with the result of {c.name}"),
    ]


def _execute_copies(s: Schedule, atoms: Atoms, rows: Array, first: int, shards: int) -> int:
    """Execute the rows of ``shards`` shards from ``first``; return how many repeat data that the receiver has."""
    words = (atoms.count + 63) // 64
    has = np.zeros((words, s.collective.num_ranks * shards), dtype=np.uint64)
    holders = s.collective.holders[first : first + shards]
    for w in range(words):
        has[w, holders * shards + np.arange(shards)] = _full(atoms, w)
    repeated = 0
    cuts = np.flatnonzero(np.diff(s.step[rows].astype(np.int64))) + 1
    for now in counting(np.split(rows, cuts), "executing steps") if len(rows) else ():
        shard = s.shard[now].astype(np.int64) - first
        origin = s.src[now].astype(np.int64) * shards + shard
        target = s.dst[now].astype(np.int64) * shards + shard
        moved = [_range_bits(atoms, now, w) for w in range(words)]
        for w in range(words):
            absent = np.flatnonzero(moved[w] & ~has[w, origin])
            if len(absent):
                raise _not_there(s, has, moved, origin, now, int(absent[0]))
        for w in range(words):
            repeated += int(np.count_nonzero(moved[w] & has[w, target]))
            np.bitwise_or.at(has[w], target, moved[w])
    _everything_arrived(s, atoms, has, first, shards)
    return repeated


def _all(c: Collective) -> str:
    return "every rank" if c.members is None else "every member"


def _not_there(s: Schedule, has: Array, moved: Sequence[Array], origin: Array, moving: Array, at: int) -> Wrong:
    """Return the failure of a transfer, number ``at`` of these rows, whose sender does not have the data yet."""
    row = int(moving[at])
    some_there = any(moved[w][at] & has[w, origin[at]] for w in range(len(has)))
    notes, rows, hint = arrivals(s, row)
    lacks = f"{row_text(s, row)}, but does not have {'all of it' if some_there else 'it'}"
    return Wrong("causality", lacks, notes, (Row(row), *rows), hint)


def _full(atoms: Atoms, word: int) -> np.uint64:
    """Return word number ``word`` of having all atoms of a shard."""
    full: np.uint64 = _below(np.clip(np.array([atoms.count - 64 * word]), 0, 64))[0]
    return full


def _range_bits(atoms: Atoms, rows: Array, word: int) -> Array:
    """Return word number ``word`` of the rows' atoms, one bit per atom."""
    below = _below(np.clip(np.arange(atoms.count + 1) - 64 * word, 0, 64))  # by the end of a range: looked up
    return below[atoms.last[rows]] & ~below[atoms.first[rows]]


def _below(bits: Array) -> Array:
    """Return words with the lowest ``bits`` (0 to 64) bits set."""
    one = np.uint64(1)
    shifted = one << np.minimum(bits, 63).astype(np.uint64)
    return np.where(bits == 64, ~np.uint64(0), shifted - one)


def _everything_arrived(s: Schedule, atoms: Atoms, has: Array, first_shard: int, shards: int) -> None:
    c = s.collective
    full = [_full(atoms, w) for w in range(len(has))]
    together = max(1, _BLOCK_BYTES // (64 * shards * len(has)))
    missing = Missing(s, shards)
    for first in counting(range(0, c.num_ranks, together), "what ranks have at the end"):
        ranks = np.arange(first, min(first + together, c.num_ranks))
        required = c.wants(ranks[:, None], np.arange(first_shard, first_shard + shards)[None, :]).ravel()
        lacking = [full[w] & ~has[w, first * shards : first * shards + len(required)] for w in range(len(has))]
        bad = np.flatnonzero(required & np.logical_or.reduce([words != 0 for words in lacking]))
        for rank in distinct(bad // shards).tolist():
            missing_rows = bad[bad // shards == rank]
            parts = [_first_part(s, atoms, [int(words[place]) for words in lacking]) for place in missing_rows.tolist()]
            amount = int(np.count_nonzero(required[rank * shards : (rank + 1) * shards]))
            missing.add(first + rank, (missing_rows % shards + first_shard).tolist(), parts, amount)
    if missing.count:
        rank, _, shard = missing.ranks[0]
        holders = np.flatnonzero(
            np.logical_and.reduce([has[w, shard - first_shard :: shards] == full[w] for w in range(len(has))])
        )
        raise Wrong("postcondition", missing.detail, missing.notes, hint=supplier(s, rank, holders, shard))


def _first_part(s: Schedule, atoms: Atoms, lacking: Sequence[int]) -> str:
    """Return the first missing atom as text, from the words of all missing ones; "" if the whole shard is missing."""
    word = next(w for w, bits in enumerate(lacking) if bits)
    if sum(bits.bit_count() for bits in lacking) == atoms.count:
        return ""
    return atoms.name(s, 64 * word + (lacking[word] & -lacking[word]).bit_length() - 1)


# ---- collectives that reduce


def _execute_reducing(s: Schedule, shards: Sequence[range]) -> list[Check]:
    """Execute runs of shards of a collective that reduces; all rows move one of these shards.

    It executes a block of shards at a time, or a window of the atoms of one shard.
    """
    c = s.collective
    if c.ordered and len(s):
        raise Wrong("single reduction", f"`op: {c.op}` needs the order of ranks, which collc cannot verify")
    words = (c.num_ranks + 63) // 64
    most = max(1, _BLOCK_BYTES // max(c.num_ranks * words * 8, 1))
    end_of_all = shards[-1].stop if shards else 0
    blocks = [
        (first, min(first + max(1, most // atoms.count), end, run.stop), atoms)
        for start, end, atoms in Atoms.by_shard(s, end_of_all, most // 16)
        for run in shards
        for first in range(max(start, run.start), min(end, run.stop), max(1, most // atoms.count))
    ]
    rows_of = _rows_by_block(s, [first for first, _, _ in blocks])
    adds_once = True
    for rows, (first, end, atoms) in zip(rows_of, blocks, strict=True):
        for window in atoms.windows(most if end == first + 1 else atoms.count):
            progress("executing shards", first, end_of_all)
            adds_once &= _execute_block(s, window, rows, np.arange(first, end), words)
    return [
        Check("causality", True, "every rank has the data that it sends"),
        Check("single reduction", True, _once(c, adds_once)),
        Check("postcondition", True, f"{_all(c)} ends with the result of {c.name}"),
    ]


def _once(c: Collective, adds_once: bool) -> str:
    if adds_once:
        return "no contribution is reduced twice"
    return f"some contributions are reduced twice, which `op: {c.op}` allows"


def _rows_by_block(s: Schedule, first: Sequence[int]) -> list[Array]:
    """Return the rows of blocks of shards that begin with these shards."""
    if len(first) == 1:
        return [np.arange(len(s))]
    number = np.searchsorted(np.array(first), s.shard, side="right") - 1
    order = lexsort([number])
    return np.split(order, np.searchsorted(number[order], np.arange(1, len(first))))


def _execute_block(s: Schedule, atoms: Atoms, rows: Array, shards: Array, words: int) -> bool:
    """Execute the rows of some shards; return whether no contribution was added twice.

    State: value of (rank, shard, atom) as ``words`` words of contributions.
    """
    c = s.collective
    cuts = np.flatnonzero(np.diff(s.step[rows].astype(np.int64))) + 1
    steps = np.split(rows, cuts) if len(rows) else []
    if _adds_up(s, atoms, steps, shards):
        return True
    value = np.zeros((c.num_ranks, len(shards), atoms.count, words), dtype=np.uint64)
    ranks = np.arange(c.num_ranks)
    own = np.zeros((c.num_ranks, words), dtype=np.uint64)
    own[ranks, ranks // 64] = np.uint64(1) << (ranks % 64).astype(np.uint64)
    # a collective that reduces starts with the contributions of its ranks: mostly one of every rank that takes part
    if c.contributors is None:
        value[c.ranks] = own[c.ranks, None, None, :]
    else:
        there = c.holds(ranks[:, None], shards[None, :])
        value[:] = np.where(there[:, :, None, None], own[:, None, None, :], np.uint64(0))
    flat = value.reshape(-1, words)
    once = True
    for step_rows in steps:
        once &= _execute_step(s, atoms, step_rows, flat, int(shards[0]), len(shards))
    _everything_combined(s, atoms, value, shards)
    return once


def _adds_up(s: Schedule, atoms: Atoms, steps: Sequence[Array], shards: Array) -> bool:
    """Return whether counting shows that the rows of some shards are right, if no partial sum is part of two others.

    See :mod:`._sums`, which does the same for programs. False also if the schedule may be right all the same.
    """
    c = s.collective
    size = c.num_ranks * len(shards) * atoms.count
    if c.contributors is not None or c.idempotent or len(c.ranks) != c.num_ranks:
        return False
    adds = [rows[s.action[rows] == Action.REDUCE] for rows in steps]
    more = sum(int((atoms.last[rows].astype(np.int64) - atoms.first[rows]).sum()) for rows in adds)
    if size + more >= MOST:
        return False
    sums, holds = Sums(size, more), np.arange(1, size + 1, dtype=np.int32)
    for rows in steps:
        row, origin, target = _moves(s, atoms, rows, int(shards[0]), len(shards))
        order = lexsort([target])
        sent, target, reducing = (
            holds.take(origin.take(order)),
            target.take(order),
            s.action.take(row.take(order)) == Action.REDUCE,
        )
        fresh = first_of_group(target)
        if not (reducing | (fresh & np.append(fresh[1:], True))).all():  # copies that meet others
            return False
        holds[target.compress(~reducing)] = sent.compress(~reducing)
        sent, target, fresh = sent.compress(reducing), target.compress(reducing), fresh[reducing]
        start = np.flatnonzero(fresh)
        if len(start):
            before = holds.take(target.take(start))
            if not sums.take(np.concatenate([before, sent])):
                return False
            count = sums.count.take(before) + np.add.reduceat(sums.count.take(sent), start)
            holds[target.take(start)] = sums.add(count)
    required = c.wants(np.arange(c.num_ranks)[:, None], shards[None, :])
    count = sums.count.take(holds).reshape(c.num_ranks, len(shards), atoms.count)
    return not (required[:, :, None] & (count != c.num_ranks)).any()


def _moves(s: Schedule, atoms: Atoms, rows: Array, first_shard: int, shards: int) -> tuple[Array, Array, Array]:
    """Return for each atom that rows move: its row, and its places at both ends, numbered by rank, shard and atom."""
    widths = atoms.last.take(rows).astype(np.int64) - atoms.first.take(rows)
    row = np.repeat(rows, widths)
    place = (s.shard.take(row).astype(np.int64) - first_shard) * atoms.count + ranges(atoms.first[rows], widths)
    origin, target = (end.take(row).astype(np.int64) * (shards * atoms.count) + place for end in (s.src, s.dst))
    return row, origin, target


def _execute_step(s: Schedule, atoms: Atoms, rows: Array, flat: Array, first_shard: int, shards: int) -> bool:
    """Execute the rows of a step; return whether no contribution was added twice, which only some operations allow."""
    row, origin, target = _moves(s, atoms, rows, first_shard, shards)
    if not len(row):
        return True
    sent = flat[origin]
    if s.collective.contributors is not None:
        _require_data(s, row, sent)
    order = lexsort([target])
    row, target, sent = row[order], target[order], sent[order]
    fresh = first_of_group(target)
    start, group = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    reducing = s.action[row] == Action.REDUCE
    arrivals = np.diff(np.append(start, len(row)))
    _no_clash(s, row, start, arrivals, reducing)
    before = np.where(reducing[start][:, None], flat[target[start]], np.uint64(0))
    after = before | np.bitwise_or.reduceat(sent, start, axis=0)
    parts = _popcount(before) + np.add.reduceat(_popcount(sent), start)
    twice = np.flatnonzero(_popcount(after) != parts)
    if len(twice) and not s.collective.idempotent:
        rows_in = np.flatnonzero(group == twice[0])
        atom = int(target[start[twice[0]]]) % atoms.count
        _report_twice(s, atoms, atom, row[rows_in], before[twice[0]], sent[rows_in])
    flat[target[start]] = after
    return not len(twice)


def _require_data(s: Schedule, row: Array, sent: Array) -> None:
    """Raise unless every row sends data: other ranks than the contributors begin with none."""
    absent = np.flatnonzero(~sent.any(axis=-1))
    if len(absent):
        at = int(row[absent[0]])
        notes, rows, hint = arrivals(s, at)
        raise Wrong("causality", f"{row_text(s, at)}, but does not have it", notes, (Row(at), *rows), hint)


def _popcount(words: Array) -> Array:
    bits: Array = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
    return bits


def _no_clash(s: Schedule, row: Array, start: Array, arrivals: Array, reducing: Array) -> None:
    """Raise unless two writes of one step to the same data both add."""
    mixed = np.flatnonzero((arrivals > 1) & ~np.logical_and.reduceat(reducing, start))
    if len(mixed):
        a = int(start[mixed[0]])
        rows = (Row(int(row[a])), Row(int(row[a + 1]), "the other transfer of this step"))
        raise Wrong(
            "single reduction",
            f"{row_text(s, int(row[a]))}; so does {row_text(s, int(row[a + 1]))}: which comes last?",
            ("transfers of one step happen at the same time: only reductions may meet",), rows,
            "move one of the two to another step",
        )  # fmt: skip


def _report_twice(s: Schedule, atoms: Atoms, atom: int, rows: Array, before: Array, sent: Array) -> None:
    seen = before.copy()
    for i, value in zip(rows, sent, strict=True):
        again = seen & value
        if again.any():
            word = int(np.flatnonzero(again)[0])
            rank = 64 * word + (int(again[word]) & -int(again[word])).bit_length() - 1
            notes, explaining = contribution(s, atoms, int(i), atom, rank)
            raise Wrong(
                "single reduction",
                f"{row_text(s, int(i))}, which has the contribution of rank {s.topology.names[rank]} already",
                notes, (Row(int(i)), *explaining), "leave out one of the transfers that bring it, or write `send`, "
                "which replaces the receiver's data",
            )  # fmt: skip
        seen |= value
    raise AssertionError("counts differ but no contribution repeats")


def _everything_combined(s: Schedule, atoms: Atoms, value: Array, shards: Array) -> None:
    c = s.collective
    count = _popcount(value)
    required = c.wants(np.arange(c.num_ranks)[:, None], shards[None, :])
    bad = np.argwhere(required[:, :, None] & (count != c.contribution_counts[shards][None, :, None]))
    if len(bad):
        rank, shard, atom = (int(x) for x in bad[0])
        detail = lacking_contributions(s, value[rank, shard, atom], atoms.name(s, atom), rank, int(shards[shard]))
        results, ranks = len(np.unique(bad[:, :2], axis=0)), np.unique(bad[:, 0]).tolist()
        notes = []
        if results > 1 and len(shards) == c.num_shards:
            where = f"on rank{'s' * (len(ranks) > 1)} {some([s.topology.names[r] for r in ranks])}"
            notes = [f"{results} of {int(required.sum())} results lack contributions, {where}"]
        hint = reducer(s, value[:, shard, atom], rank, int(shards[shard]))
        rows = overwritten(s, value[rank, shard, atom], rank, int(shards[shard]))
        raise Wrong("postcondition", detail, tuple(notes), rows, hint)
