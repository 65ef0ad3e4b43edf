"""The rules of all runtimes: numbering, peers, connections, steps, waits, merged reductions, bounds.

The runtimes' parsers check few of them. An unnoticed violation causes a wrong result, a hang or overwritten memory, so
collc refuses all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import owners

from .consume import Operation, device, ending_operation, executed
from .findings import Finding, place
from .model import OPCODES, Algorithm, Gpu, Step, Threadblock
from .steps import COUNT, DST, DST_OFFSET, HASDEP, KINDS_OF, NUMBER, SRC, SRC_OFFSET, TYPE

__all__ = ["STRUCTURE_CHECKS", "check_structure"]

#: check -> its detail in reports
STRUCTURE_CHECKS: dict[str, str] = {
    "numbering": "ranks and threadblocks are numbered 0, 1, 2, ...",
    "connections": "peers are ranks, channels are connected, each end of a connection has one threadblock",
    "steps": "the parsers accept every step, counts are 1 to 71 chunks",
    "dependencies": "every dependency names a step that sets its threadblock's flag, by the device's number",
    "reductions": "merged runs of `re` have equal counts, keep their dependencies, and have at most 16 steps",
    "bounds": "every step stays inside its buffers over its whole count",
}


#: the last algorithm without findings: the read-back of a written file has the same form, once
_last_valid: list[Algorithm] = []


def check_structure(algorithm: Algorithm) -> list[Finding]:
    """Return the violations of the common rules. With a ``fatal`` finding there is no program to execute."""
    if _last_valid and _has_form_of(algorithm, _last_valid.pop()):
        return []
    found = list(_numbering(algorithm))
    if any(finding.fatal for finding in found):  # the checks below could not name a place
        return found
    if not _are_connected(algorithm):
        found += [*_connections(algorithm), *_ends(algorithm)]
    found += [*_steps(algorithm), *_runs_and_waits(algorithm)]
    if not found:
        _last_valid.append(algorithm)
    return found


def _has_form_of(algorithm: Algorithm, other: Algorithm) -> bool:
    """Return whether the rules find the same of two algorithms."""
    counts = [(one.nchannels, one.nchunksperloop, one.ngpus) for one in (algorithm, other)]
    if counts[0] != counts[1] or not algorithm.has_gpus_of(other):
        return False
    algorithm.devices[:] = other.devices  # the same steps are executed in the same way
    return True


def _numbering(algorithm: Algorithm) -> Iterator[Finding]:
    if algorithm.nchunksperloop < 1 or algorithm.nchannels < 1 or algorithm.ngpus < 1:
        for name in ("nchunksperloop", "nchannels", "ngpus"):
            if getattr(algorithm, name) < 1:
                yield _numbered(f"`{name}` needs to be at least 1, found {getattr(algorithm, name)}")
        return
    ids = [gpu.id for gpu in algorithm.gpus]
    if len(ids) != algorithm.ngpus or sorted(ids) != list(range(algorithm.ngpus)):
        yield _numbered(_numbering_problem("gpu", ids, algorithm.ngpus))
    for gpu in algorithm.gpus:
        ids = [block.id for block in gpu.threadblocks]
        if sorted(ids) != list(range(len(ids))):
            yield _numbered(f"{place(gpu)}: {_numbering_problem('tb', ids, len(ids))}")
        elif not ids:
            yield Finding("numbering", "C0609", f"{place(gpu)} has no threadblock, so the runtime cannot launch it")
        for name in ("i_chunks", "o_chunks", "s_chunks"):
            if getattr(gpu, name) < 0:
                yield _numbered(f"{place(gpu)}: `{name}` cannot be negative, found {getattr(gpu, name)}")


def _numbered(message: str) -> Finding:
    return Finding("numbering", "C0609", message, fatal=True)


def _numbering_problem(tag: str, ids: Sequence[int], count: int) -> str:
    times = Counter(ids)
    twice = next((i for i in ids if times[i] > 1), None)
    outside = next((i for i in ids if not 0 <= i < count), None)
    missing = next((i for i in range(count) if i not in times), None)
    found = f"{twice} twice" if twice is not None else f"{outside}" if outside is not None else f"no {missing}"
    return f"`{tag}` elements need the ids 0 to {count - 1}, each once, found {found}"


# ---- peers, channels, connections


def _are_connected(algorithm: Algorithm) -> bool:
    """Return whether the two functions below find nothing; False also if that is not certain."""
    rank, _, send, recv, chan = algorithm.block_table
    rank, number = algorithm.rank_table[rank, 0], algorithm.ngpus
    if ((chan < 0) | (chan >= algorithm.nchannels)).any() or number * number * algorithm.nchannels >= 1 << 62:
        return False
    if any(((peer == rank) | (peer < -1) | (peer >= number)).any() for peer in (send, recv)):
        return False
    out, into = (
        (rank * number + send) * algorithm.nchannels + chan,
        (recv * number + rank) * algorithm.nchannels + chan,
    )
    out, into = np.sort(out[send >= 0]), np.sort(into[recv >= 0])
    return np.array_equal(out, into) and bool((out[1:] != out[:-1]).all())


def _connections(algorithm: Algorithm) -> Iterator[Finding]:
    for gpu in algorithm.gpus:
        owners: dict[tuple[str, int, int], Threadblock] = {}
        for block in gpu.threadblocks:
            if not 0 <= block.chan < algorithm.nchannels:
                there = f"the runtimes connect only 0 to {algorithm.nchannels - 1} (nchannels)"
                yield _connection(f"{place(gpu, block)} uses channel {block.chan}, but {there}", fatal=block.chan < 0)
            for side, peer in (("send", block.send), ("recv", block.recv)):
                if peer == gpu.id:
                    yield _connection(f"{place(gpu, block)}: the {side} peer is its own rank")
                elif not -1 <= peer < algorithm.ngpus:
                    ranks = f"ranks are 0 to {algorithm.ngpus - 1}"
                    yield _connection(f"{place(gpu, block)}: {side} peer {peer} is out of range, {ranks}")
                elif peer >= 0:
                    other = owners.setdefault((side, peer, block.chan), block)
                    if other is not block:
                        yield _connection(_owned_twice(gpu, other, block, side, peer))


def _ends(algorithm: Algorithm) -> Iterator[Finding]:
    """Find connections that only one rank names: the rank waits forever for the other end, even if it sends nothing."""
    blocks = [(gpu, block) for gpu in algorithm.gpus for block in gpu.threadblocks]
    sending = {(gpu.id, block.send, block.chan) for gpu, block in blocks}
    receiving = {(block.recv, gpu.id, block.chan) for gpu, block in blocks}
    for gpu, block in blocks:
        there = f"on channel {block.chan}: the ranks hang when they connect"
        if 0 <= block.send < algorithm.ngpus and (gpu.id, block.send, block.chan) not in receiving:
            found = f"sends to rank {block.send}, but no threadblock there receives from rank {gpu.id} {there}"
            yield _connection(f"{place(gpu, block)} {found}", fatal=False)
        if 0 <= block.recv < algorithm.ngpus and (block.recv, gpu.id, block.chan) not in sending:
            found = f"receives from rank {block.recv}, but no threadblock there sends to rank {gpu.id} {there}"
            yield _connection(f"{place(gpu, block)} {found}", fatal=False)


def _owned_twice(gpu: Gpu, first: Threadblock, second: Threadblock, side: str, peer: int) -> str:
    word = "sends to" if side == "send" else "receives from"
    return (
        f"{place(gpu, second)} {word} rank {peer} on channel {second.chan}, "
        f"but threadblock {first.id} already owns that connection"
    )


def _connection(message: str, *, fatal: bool = True) -> Finding:
    hint = "give one of them another channel" if "already owns" in message else None
    return Finding("connections", "C0610", message, hint, fatal)


# ---- single steps


def _steps(algorithm: Algorithm) -> Iterator[Finding]:
    for row in _wrong_steps(algorithm).tolist():
        number = int(np.searchsorted(algorithm.starts, row, side="right")) - 1
        gpu, block = algorithm.blocks[number]
        step = block.steps[row - int(algorithm.starts[number])]
        chunks = {"i": gpu.i_chunks, "o": gpu.o_chunks, "s": gpu.s_chunks}
        if problem := _step_problem(block, step):
            yield Finding("steps", "C0611", f"{place(gpu, block, step)}: {problem}", fatal=True)
        for problem, fatal in _bounds_problems(chunks, step):
            yield Finding("bounds", "C0613", f"{place(gpu, block, step)}: {problem}", fatal=fatal)


#: step type -> whether it sends, receives, reads its source, writes its destination
_USES = {name: (op.sends, op.receives, op.reads_src, op.writes_dst) for name, op in OPCODES.items()}
_SENDS, _RECEIVES, _READS, _WRITES = np.array(list(_USES.values())).T


def _wrong_steps(algorithm: Algorithm) -> Array:
    """Return the steps with a problem, as rows of the table; the functions below say which."""
    table, block = algorithm.table, owners(np.diff(algorithm.starts))
    kind, count = table[:, TYPE], table[:, COUNT].astype(np.int64)
    rank, _, send, recv, _ = algorithm.block_table
    wrong = (_SENDS.take(kind) & (send < 0)[block]) | (_RECEIVES.take(kind) & (recv < 0)[block])
    wrong |= (count < 1) | (table[:, HASDEP] < 0) | (table[:, HASDEP] > 1)
    wrong = (wrong & (kind != KINDS_OF.index("nop"))) | (table[:, NUMBER] < 0)
    chunks, first = algorithm.rank_table[:, 1:4].ravel(), (rank * 3).take(block)  # of each buffer, rank by rank
    for used, buffer, offset in ((_READS, SRC, SRC_OFFSET), (_WRITES, DST, DST_OFFSET)):
        held = chunks.take(first + table[:, buffer])
        wrong |= used.take(kind) & ((table[:, offset] < 0) | (table[:, offset] + count > held))
    return np.flatnonzero(wrong)


def _step_problem(block: Threadblock, step: Step) -> str:
    sends, receives, _, _ = _USES[step.type]
    if step.s < 0:
        return "step numbers begin at 0"
    if step.type == "nop":
        return ""
    if sends and block.send < 0:
        return f"`{step.type}` sends, but its threadblock has no send peer"
    if receives and block.recv < 0:
        return f"`{step.type}` receives, but its threadblock has no receive peer"
    if step.cnt < 1:
        return f"`{step.type}` needs a count of at least 1, found {step.cnt}"
    if step.hasdep not in (0, 1):
        return f"hasdep must be 0 or 1, found {step.hasdep}"
    return ""


def _bounds_problems(chunks: dict[str, int], step: Step) -> Iterator[tuple[str, bool]]:
    """Yield the sides of a step that leave their buffer; the parsers check the first chunk only."""
    _, _, reads, writes = _USES[step.type]
    for used, side, buffer, offset in (
        (reads, "src", step.srcbuf, step.srcoff),
        (writes, "dst", step.dstbuf, step.dstoff),
    ):
        if used and offset < 0:
            yield f"{side} offset {offset} of `{step.type}` is negative", True
        elif used and offset + step.cnt > chunks[buffer]:
            last = offset + step.cnt - 1
            yield (
                f"{side} chunks {offset} to {last} of buffer `{buffer}`, which has {chunks[buffer]} chunks",
                False,
            )


# ---- merged reductions and waits


def _runs_and_waits(algorithm: Algorithm) -> Iterator[Finding]:
    if device(algorithm) is not None:  # every wait ends with the step that it names, and nothing is merged
        return
    for gpu in algorithm.gpus:
        operations = {block.id: executed(block) for block in gpu.threadblocks}
        flagged = {number: [op for op in ops if op.flagged] for number, ops in operations.items()}
        blocks = {block.id: block for block in gpu.threadblocks}
        rows = {block.id: _first_rows(block) for block in gpu.threadblocks}
        for block in gpu.threadblocks:
            for operation in operations[block.id]:
                if operation.refused:
                    step = block.steps[operation.rows[0]]
                    yield Finding("steps", "C0611", f"{place(gpu, block, step)}: {_NOP_NEEDS_WAIT}", fatal=True)
                merged = operation.overtaken or len(operation.rows) > 1
                for problem in _run_problems(block, operation) if merged else ():
                    where = place(gpu, block, block.steps[operation.rows[0]])
                    yield Finding("reductions", "C0614", f"{where}: {problem}")
                for wait in operation.waits:
                    problem, mild = _wait_problem(blocks, rows, operations, flagged, block, operation, wait.row)
                    if problem:
                        where = place(gpu, block, block.steps[wait.row])
                        yield Finding("dependencies", "C0612", f"{where}: {problem}", mild=mild)


_NOP_NEEDS_WAIT = "a step after `nop` steps needs a dependency of its own, or the parsers reject the file"


def _run_problems(block: Threadblock, operation: Operation) -> Iterator[str]:
    """Yield the faults of a run of `re` that the parsers merge into one reduction."""
    for wait in operation.overtaken:
        yield (
            f"the dependency of step {block.steps[wait.row].s} has no effect: the parsers merge the `re` steps around "
            f"it into one reduction"
        )
    steps = [block.steps[row] for row in operation.rows]
    if len(steps) == 1:
        return
    last = steps[-1]
    if len(steps) > 16:
        yield f"the parsers merge {len(steps)} `re` steps into one reduction; more than 16 sources overrun a buffer"
    if any(step.cnt != last.cnt for step in steps):
        yield f"the parsers merge `re` steps with different counts into one reduction of {last.cnt} chunks each"
    for step in steps[1:]:
        apart = abs(step.srcoff - step.dstoff) >= max(step.cnt, last.cnt)
        if step.srcbuf == step.dstbuf and not apart:
            yield f"in a run of `re` steps, the source of step {step.s} overlaps its destination"


def _first_rows(block: Threadblock) -> dict[int, int]:
    """Return step number -> the first row that has it."""
    found: dict[int, int] = {}
    for row, step in enumerate(block.steps):
        found.setdefault(step.s, row)
    return found


def _wait_problem(
    blocks: dict[int, Threadblock],
    rows: dict[int, dict[int, int]],
    operations: dict[int, list[Operation]],
    flagged: dict[int, list[Operation]],
    block: Threadblock,
    operation: Operation,
    row: int,
) -> tuple[str, bool]:
    """Return the fault of the wait that the step in this row states ("" for none), and whether it is mild.

    A wait that ends no sooner than stated is mild: the execution shows whether it does harm.
    """
    step = block.steps[row]
    if step.depid not in blocks:
        return f"depends on threadblock {step.depid}, which this rank does not have", False
    other = blocks[step.depid]
    named = rows[other.id].get(step.deps)
    if named is None:
        return f"depends on step {step.deps} of threadblock {other.id}, which does not exist", False
    reached = ending_operation(flagged[other.id], step.deps)
    what = f"depends on step {step.deps} of threadblock {other.id}"
    if other is block and (reached is None or reached.number >= operation.number):
        return f"{what}, its own, which does not come before it: it hangs", False
    if reached is None:
        return f"{what}, but neither that step nor a later one sets a flag (hasdep): it hangs", False
    if named in reached.rows and reached.number == step.deps:
        return "", False
    actual = next((op for op in operations[other.id] if named in op.rows), None)
    ends = other.steps[reached.rows[-1]].s
    if actual is not None and actual.number != step.deps:
        return f"{what}, but the device numbers that step {actual.number}, so the wait ends with step {ends}", False
    return f"{what}, which sets no flag (hasdep), so the wait ends with step {ends}", reached.rows[-1] >= named
