"""The rules every runtime has in common: numbering, peers, connections, steps, waits, merged reductions, bounds.

Some the runtimes' parsers check, most they do not: what passes them unnoticed ends as a wrong result, a
hang or overwritten memory, so here all of it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from .consume import Operation, operations, target
from .findings import Finding, place
from .model import OPCODES, Algorithm, Gpu, Step, Threadblock

__all__ = ["STRUCTURE_CHECKS", "check_structure"]

#: check -> what it tried, for reports
STRUCTURE_CHECKS: dict[str, str] = {
    "numbering": "ranks and threadblocks are numbered 0, 1, 2, ...",
    "connections": "peers are ranks, channels are connected, each end of a connection has one threadblock",
    "steps": "steps are what the parsers take, counts are 1 to 71 chunks",
    "dependencies": "every wait is for a step that sets its threadblock's flag, by the number the device gives it",
    "reductions": "runs of `re` that the parsers merge agree in count, honour their waits and are 16 at most",
    "bounds": "every location lies within the declared chunks of its buffer, over its whole count",
}


#: the form in which nothing was found last, until it is asked for: what is written is read back and is the same
_flawless: list[tuple[int, int, int, tuple[Gpu, ...]]] = []


def check_structure(algorithm: Algorithm) -> list[Finding]:
    """Return what breaks a rule all runtimes share; where a finding is ``fatal`` there is nothing to execute."""
    form = (algorithm.nchannels, algorithm.nchunksperloop, algorithm.ngpus, algorithm.gpus)
    if _flawless and _flawless.pop() == form:
        return []
    found = list(_numbering(algorithm))
    if any(finding.fatal for finding in found):  # nothing below could name its place
        return found
    found += [*_connections(algorithm), *_ends(algorithm), *_steps(algorithm), *_runs_and_waits(algorithm)]
    if not found:
        _flawless.append(form)
    return found


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
            yield Finding("numbering", "C0609", f"{place(gpu)} has no threadblock: nothing can be launched there")
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


def _connections(algorithm: Algorithm) -> Iterator[Finding]:
    for gpu in algorithm.gpus:
        owners: dict[tuple[str, int, int], Threadblock] = {}
        for block in gpu.threadblocks:
            if not 0 <= block.chan < algorithm.nchannels:
                there = f"only 0 to {algorithm.nchannels - 1} are connected (nchannels)"
                yield _connection(f"{place(gpu, block)} uses channel {block.chan}, but {there}", fatal=block.chan < 0)
            for side, peer in (("send", block.send), ("recv", block.recv)):
                if peer == gpu.id:
                    yield _connection(f"{place(gpu, block)}: its {side} peer is its own rank")
                elif not -1 <= peer < algorithm.ngpus:
                    ranks = f"ranks are 0 to {algorithm.ngpus - 1}"
                    yield _connection(f"{place(gpu, block)}: {side} peer {peer} is out of range, {ranks}")
                elif peer >= 0:
                    other = owners.setdefault((side, peer, block.chan), block)
                    if other is not block:
                        yield _connection(_owned_twice(gpu, other, block, side, peer))


def _ends(algorithm: Algorithm) -> Iterator[Finding]:
    """Find connections that one rank names and the other does not: ranks set up both ends together, or wait for ever.

    Whether anything is sent does not matter.
    """
    blocks = [(gpu, block) for gpu in algorithm.gpus for block in gpu.threadblocks]
    sending = {(gpu.id, block.send, block.chan) for gpu, block in blocks}
    receiving = {(block.recv, gpu.id, block.chan) for gpu, block in blocks}
    for gpu, block in blocks:
        there = f"on channel {block.chan}: setting up that connection hangs"
        if 0 <= block.send < algorithm.ngpus and (gpu.id, block.send, block.chan) not in receiving:
            found = f"sends to rank {block.send}, of which no threadblock receives from rank {gpu.id} {there}"
            yield _connection(f"{place(gpu, block)} {found}", fatal=False)
        if 0 <= block.recv < algorithm.ngpus and (block.recv, gpu.id, block.chan) not in sending:
            found = f"receives from rank {block.recv}, of which no threadblock sends to rank {gpu.id} {there}"
            yield _connection(f"{place(gpu, block)} {found}", fatal=False)


def _owned_twice(gpu: Gpu, first: Threadblock, second: Threadblock, side: str, peer: int) -> str:
    word = "sends to" if side == "send" else "receives from"
    return (
        f"{place(gpu, second)} {word} rank {peer} on channel {second.chan}, "
        f"a connection that threadblock {first.id} owns already"
    )


def _connection(message: str, *, fatal: bool = True) -> Finding:
    hint = "give one of them another channel" if "owns already" in message else None
    return Finding("connections", "C0610", message, hint, fatal)


# ---- single steps


def _steps(algorithm: Algorithm) -> Iterator[Finding]:
    for gpu in algorithm.gpus:
        chunks = {"i": gpu.i_chunks, "o": gpu.o_chunks, "s": gpu.s_chunks}
        for block in gpu.threadblocks:
            for step in block.steps:
                if problem := _step_problem(block, step):
                    yield Finding("steps", "C0611", f"{place(gpu, block, step)}: {problem}", fatal=True)
                for problem, fatal in _bounds_problems(chunks, step):
                    yield Finding("bounds", "C0613", f"{place(gpu, block, step)}: {problem}", fatal=fatal)


#: step type -> whether it sends, receives, reads its source, writes its destination
_USES = {name: (op.sends, op.receives, op.reads_src, op.writes_dst) for name, op in OPCODES.items()}


def _step_problem(block: Threadblock, step: Step) -> str:
    sends, receives, _, _ = _USES[step.type]
    if step.s < 0:
        return "steps are numbered from 0"
    if step.type == "nop":
        return ""
    if sends and block.send < 0:
        return f"`{step.type}` sends, but its threadblock has no send peer"
    if receives and block.recv < 0:
        return f"`{step.type}` receives, but its threadblock has no receive peer"
    if step.cnt < 1:
        return f"`{step.type}` of {step.cnt} chunks: counts are at least 1"
    if step.hasdep not in (0, 1):
        return f"hasdep is 0 or 1, found {step.hasdep}"
    return ""


def _bounds_problems(chunks: dict[str, int], step: Step) -> Iterator[tuple[str, bool]]:
    """Yield which sides of a step leave their buffer's declared chunks; the parsers look at the first chunk only."""
    _, _, reads, writes = _USES[step.type]
    for used, side, buffer, offset in (
        (reads, "src", step.srcbuf, step.srcoff),
        (writes, "dst", step.dstbuf, step.dstoff),
    ):
        if used and offset < 0:
            yield f"{side} offset {offset} of `{step.type}` is no chunk", True
        elif used and offset + step.cnt > chunks[buffer]:
            last = offset + step.cnt - 1
            yield (
                f"{side} chunks {offset} to {last} of buffer `{buffer}`, which has {chunks[buffer]} chunks",
                False,
            )


# ---- merged reductions and waits


def _runs_and_waits(algorithm: Algorithm) -> Iterator[Finding]:
    for gpu in algorithm.gpus:
        made = {block.id: operations(block) for block in gpu.threadblocks}
        flagged = {number: [op for op in ops if op.flagged] for number, ops in made.items()}
        blocks = {block.id: block for block in gpu.threadblocks}
        rows = {block.id: _first_rows(block) for block in gpu.threadblocks}
        for block in gpu.threadblocks:
            for operation in made[block.id]:
                if operation.refused:
                    step = block.steps[operation.rows[0]]
                    yield Finding("steps", "C0611", f"{place(gpu, block, step)}: {_UNCARRIED}", fatal=True)
                for problem in _run_problems(block, operation) if operation.late or len(operation.rows) > 1 else ():
                    where = place(gpu, block, block.steps[operation.rows[0]])
                    yield Finding("reductions", "C0614", f"{where}: {problem}")
                for wait in operation.waits:
                    problem, mild = _wait_problem(blocks, rows, made, flagged, block, operation, wait.row)
                    if problem:
                        where = place(gpu, block, block.steps[wait.row])
                        yield Finding("dependencies", "C0612", f"{where}: {problem}", mild=mild)


_UNCARRIED = "an instruction after `nop` steps must wait for something itself, or the parsers reject the file"


def _run_problems(block: Threadblock, operation: Operation) -> Iterator[str]:
    """Yield what is wrong with a run of `re` that the parsers make one reduction of."""
    for wait in operation.late:
        yield (
            f"the wait of step {block.steps[wait.row].s} comes too late: the `re` steps around it become one reduction "
            f"that does not wait for it"
        )
    steps = [block.steps[row] for row in operation.rows]
    if len(steps) == 1:
        return
    last = steps[-1]
    if len(steps) > 16:
        yield f"a run of {len(steps)} `re` steps becomes one reduction of more than 16 sources, which overruns a buffer"
    if any(step.cnt != last.cnt for step in steps):
        yield f"a run of `re` steps with different counts becomes one reduction of {last.cnt} chunks each"
    for step in steps[1:]:
        apart = abs(step.srcoff - step.dstoff) >= max(step.cnt, last.cnt)
        if step.srcbuf == step.dstbuf and not apart:
            yield f"in a run of `re` steps, the source of step {step.s} overlaps the destination it adds to"


def _first_rows(block: Threadblock) -> dict[int, int]:
    """Return step number -> the first row that has it."""
    found: dict[int, int] = {}
    for row, step in enumerate(block.steps):
        found.setdefault(step.s, row)
    return found


def _wait_problem(
    blocks: dict[int, Threadblock],
    rows: dict[int, dict[int, int]],
    made: dict[int, list[Operation]],
    flagged: dict[int, list[Operation]],
    block: Threadblock,
    operation: Operation,
    row: int,
) -> tuple[str, bool]:
    """Return what is wrong with waiting as the step in this row says, or nothing; and whether the wait is over no
    sooner than it says, so that the execution shows whether that does any harm.
    """
    step = block.steps[row]
    if step.depid not in blocks:
        return f"waits for threadblock {step.depid}, which this rank has not", False
    other = blocks[step.depid]
    named = rows[other.id].get(step.deps)
    if named is None:
        return f"waits for step {step.deps} of threadblock {other.id}, which it has not", False
    reached = target(flagged[other.id], step.deps)
    what = f"waits for step {step.deps} of threadblock {other.id}"
    if other is block and (reached is None or reached.number >= operation.number):
        return f"{what}, its own, which comes no earlier: hangs", False
    if reached is None:
        return f"{what}, which sets no flag (hasdep), nor does a later one: hangs", False
    if named in reached.rows and reached.number == step.deps:
        return "", False
    actual = next((op for op in made[other.id] if named in op.rows), None)
    ends = other.steps[reached.rows[-1]].s
    if actual is not None and actual.number != step.deps:
        return f"{what}, but the device numbers that step {actual.number}, so the wait ends with step {ends}", False
    return f"{what}, which sets no flag (hasdep), so the wait ends with step {ends} only", reached.rows[-1] >= named
