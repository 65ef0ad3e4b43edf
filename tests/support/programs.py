"""Classic programs written by hand, for tests of everything that takes a Program."""

from __future__ import annotations

from collections.abc import Iterable

from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program

__all__ = [
    "allpairs_allreduce",
    "alltoall",
    "broadcast_chain",
    "by_hand",
    "recursive_doubling_allgather",
    "reduce_chain",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
    "scratch_sum",
]

I, O, S = Buffer  # noqa: E741
Instruction = tuple[Opcode, Buffer, int, Buffer, int, int, Iterable[int]]
_NONE = (I, 0)


def _send(src: Buffer, offset: int, count: int, *deps: int) -> Instruction:
    return (Opcode.SEND, src, offset, *_NONE, count, deps)


def _recv(dst: Buffer, offset: int, count: int, *deps: int) -> Instruction:
    return (Opcode.RECV, *_NONE, dst, offset, count, deps)


def _copy(src: Buffer, source: int, dst: Buffer, offset: int, count: int, *deps: int) -> Instruction:
    return (Opcode.COPY, src, source, dst, offset, count, deps)


def _reduce(src: Buffer, source: int, dst: Buffer, offset: int, count: int, *deps: int) -> Instruction:
    return (Opcode.REDUCE, src, source, dst, offset, count, deps)


def ring_allgather(ranks: int, chunks: int = 1) -> Program:
    """Each rank copies its own shard to the output, then passes the newest shard on round the ring: one block a
    rank."""
    collective = Collective("allgather", ranks)
    blocks, code = [], []
    for r in range(ranks):
        blocks.append((r, (r + 1) % ranks, (r - 1) % ranks, 0))
        rows = [_copy(I, 0, O, r * chunks, chunks)]
        for step in range(ranks - 1):
            rows.append(_send(O, (r - step) % ranks * chunks, chunks))
            rows.append(_recv(O, (r - step - 1) % ranks * chunks, chunks))
        code.append(rows)
    return Program.build(collective, chunks, [0] * ranks, blocks, code, name="ring_allgather", scheduler="ring")


def ring_allreduce(ranks: int, chunks: int = 1, *, fused: bool = True) -> Program:
    """Reduce-scatter round the ring, then allgather round it: right in place and out of place.

    Fused it never writes the input; unfused it receives into scratch and adds there.
    """
    collective = Collective("allreduce", ranks)
    blocks, code = [], []
    for r in range(ranks):
        blocks.append((r, (r + 1) % ranks, (r - 1) % ranks, 0))
        code.append(_fused_ring(r, ranks, chunks) if fused else _plain_ring(r, ranks, chunks))
    scratch = [0 if fused else chunks] * ranks
    return Program.build(collective, chunks, scratch, blocks, code, name="ring_allreduce", scheduler="ring")


def _fused_ring(r: int, ranks: int, c: int) -> list[Instruction]:
    rows: list[Instruction] = [_send(I, (r - 1) % ranks * c, c)]
    for step in range(2, ranks):
        shard = (r - step) % ranks * c
        rows.append((Opcode.RECV_REDUCE_SEND, I, shard, *_NONE, c, ()))
    rows.append((Opcode.RECV_REDUCE_COPY_SEND, I, r * c, O, r * c, c, ()))
    for step in range(1, ranks - 1):
        rows.append((Opcode.RECV_COPY_SEND, *_NONE, O, (r - step) % ranks * c, c, ()))
    rows.append(_recv(O, (r + 1) % ranks * c, c))
    return rows


def _plain_ring(r: int, ranks: int, c: int) -> list[Instruction]:
    rows: list[Instruction] = [_send(I, (r - 1) % ranks * c, c)]
    for step in range(2, ranks + 1):
        shard = (r - step) % ranks * c
        rows += [_recv(S, 0, c), _reduce(I, shard, S, 0, c)]
        if step == ranks:
            rows.append(_copy(S, 0, O, shard, c))
        rows.append(_send(S, 0, c))
    for step in range(1, ranks):
        shard = (r - step) % ranks * c
        rows.append(_recv(O, shard, c))
        if step < ranks - 1:
            rows.append(_send(O, shard, c))
    return rows


def ring_reduce_scatter(ranks: int, chunks: int = 1) -> Program:
    """Partial sums go round the ring and end, complete, in the output of the shard's owner."""
    c = chunks
    collective = Collective("reduce-scatter", ranks)
    blocks, code = [], []
    for r in range(ranks):
        blocks.append((r, (r + 1) % ranks, (r - 1) % ranks, 0))
        rows: list[Instruction] = [_send(I, (r - 1) % ranks * c, c)]
        for step in range(2, ranks):
            rows.append((Opcode.RECV_REDUCE_SEND, I, (r - step) % ranks * c, *_NONE, c, ()))
        rows.append((Opcode.RECV_REDUCE_COPY, I, r * c, O, 0, c, ()))
        code.append(rows)
    return Program.build(collective, c, [0] * ranks, blocks, code, name="ring_reduce_scatter", scheduler="ring")


def recursive_doubling_allgather(ranks: int, chunks: int = 1) -> Program:
    """Pairs exchange all they have at doubling distance, one block a distance, sending before they receive.

    With 8 ranks the last exchange sends 4 shards at once: more than a FIFO of 2 holds if each chunk takes a slot.
    ``ranks`` is a power of two.
    """
    c = chunks
    collective = Collective("allgather", ranks)
    blocks, code = [], []
    row = 0
    for r in range(ranks):
        previous = -1
        distance = 1
        while distance < ranks:
            peer = r ^ distance
            mine, theirs = r // distance * distance * c, peer // distance * distance * c
            rows = [_copy(I, 0, O, r * c, c)] if distance == 1 else []
            wait = [previous] if previous >= 0 else []
            rows.append(_send(O, mine, distance * c, *wait))
            rows.append(_recv(O, theirs, distance * c))
            blocks.append((r, peer, peer, 0))
            code.append(rows)
            row += len(rows)
            previous = row - 1
            distance *= 2
    return Program.build(
        collective, c, [0] * ranks, blocks, code, name="recursive_doubling", scheduler="recursive-doubling"
    )


def allpairs_allreduce(ranks: int, chunks: int = 1) -> Program:
    """Every rank gets its shard of all others into scratch, adds them up and sends the sum to all.

    One block a peer, and a local one (the last) that copies and adds: it waits for all others, they for it.
    """
    c = chunks
    collective = Collective("allreduce", ranks)
    blocks, code = [], []
    each = 4  # instructions of a block with a peer
    per_rank = each * (ranks - 1) + ranks
    for r in range(ranks):
        first, peers = r * per_rank, [p for p in range(ranks) if p != r]
        local = first + each * (ranks - 1)
        for k, peer in enumerate(peers):
            blocks.append((r, peer, peer, 0))
            code.append(
                [
                    _send(I, peer * c, c),
                    _recv(S, k * c, c),
                    _send(O, r * c, c, local + ranks - 1),
                    _recv(O, peer * c, c),
                ]
            )
        blocks.append((r, -1, -1, 0))
        arrived = [first + each * k + 1 for k in range(ranks - 1)]
        rows = [_copy(I, r * c, O, r * c, c)]
        for k in range(ranks - 1):
            rows.append(_reduce(S, k * c, O, r * c, c, *(arrived if k == 0 else ())))
        code.append(rows)
    scratch = [(ranks - 1) * c] * ranks
    return Program.build(collective, c, scratch, blocks, code, name="allpairs", scheduler="allpairs")


def alltoall(ranks: int, chunks: int = 1, *, apart: bool = False) -> Program:
    """Every rank exchanges with every other directly, a block a pair, each sending before it receives.

    With ``apart`` a pair has a block to send and one to receive: then it is wrong in place, where nothing keeps what
    arrives from overwriting what has yet to be sent.
    """
    c = chunks
    collective = Collective("alltoall", ranks)
    blocks, code = [], []
    for r in range(ranks):
        for peer in range(ranks):
            if peer == r:
                blocks.append((r, -1, -1, 0))
                code.append([_copy(I, r * c, O, r * c, c)])
            elif apart:
                blocks += [(r, peer, -1, 0), (r, -1, peer, 0)]
                code += [[_send(I, peer * c, c)], [_recv(O, peer * c, c)]]
            else:
                blocks.append((r, peer, peer, 0))
                code.append([_send(I, peer * c, c), _recv(O, peer * c, c)])
    return Program.build(collective, c, [0] * ranks, blocks, code, name="alltoall", scheduler="direct")


def broadcast_chain(ranks: int, root: int = 0, chunks: int = 1) -> Program:
    """The root's vector passes down a chain of ranks."""
    total = ranks * chunks
    order = [(root + k) % ranks for k in range(ranks)]
    at = {rank: k for k, rank in enumerate(order)}
    blocks, code = [], []
    for r in range(ranks):
        k = at[r]
        after = order[k + 1] if k + 1 < ranks else -1
        before = order[k - 1] if k else -1
        blocks.append((r, after, before, 0))
        if k == 0:
            code.append([_copy(I, 0, O, 0, total), *([_send(I, 0, total)] if after >= 0 else [])])
        elif after >= 0:
            code.append([(Opcode.RECV_COPY_SEND, *_NONE, O, 0, total, ())])
        else:
            code.append([_recv(O, 0, total)])
    return Program.build(
        Collective("broadcast", ranks, root), chunks, [0] * ranks, blocks, code, name="chain", scheduler="chain"
    )


def reduce_chain(ranks: int, root: int = 0, chunks: int = 1) -> Program:
    """Partial sums pass up a chain of ranks to the root. At least 2 ranks."""
    total = ranks * chunks
    order = [(root - 1 - k) % ranks for k in range(ranks)]  # the root last
    at = {rank: k for k, rank in enumerate(order)}
    blocks, code = [], []
    for r in range(ranks):
        k = at[r]
        blocks.append((r, order[k + 1] if k + 1 < ranks else -1, order[k - 1] if k else -1, 0))
        if k == 0:
            code.append([_send(I, 0, total)])
        elif k + 1 < ranks:
            code.append([(Opcode.RECV_REDUCE_SEND, I, 0, *_NONE, total, ())])
        else:
            code.append([(Opcode.RECV_REDUCE_COPY, I, 0, O, 0, total, ())])
    return Program.build(
        Collective("reduce", ranks, root), chunks, [0] * ranks, blocks, code, name="chain", scheduler="chain"
    )


def scratch_sum(ranks: int = 3) -> Program:
    """A reduce to rank 0 that adds into scratch at another index than the data come from.

    Rank r keeps its running sum in scratch chunks 1 to ``ranks``, so local and remote places differ in every message.
    """
    blocks, code = [], []
    for r in range(ranks):
        toward, behind = r - 1, r + 1 if r + 1 < ranks else -1
        blocks.append((r, toward, behind, 0))
        rows: list[Instruction] = [_copy(I, 0, S, 1, ranks)]
        if behind >= 0:
            rows.append((Opcode.RECV_REDUCE_COPY, S, 1, S, 1, ranks, ()))
        rows.append(_copy(S, 1, O, 0, ranks) if r == 0 else _send(S, 1, ranks))
        code.append(rows)
    return Program.build(
        Collective("reduce", ranks, 0), 1, [ranks + 1] * ranks, blocks, code, name="scratch_sum", scheduler="chain"
    )


def by_hand() -> tuple[Program, ...]:
    """Return a small program of each kind."""
    return (
        ring_allgather(4, 2),
        ring_allreduce(4, 2),
        ring_allreduce(3, fused=False),
        ring_reduce_scatter(4),
        recursive_doubling_allgather(8),
        allpairs_allreduce(4),
        alltoall(3, 2),
    )
