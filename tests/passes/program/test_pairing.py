"""What fusing decides before it builds a program: which blocks forward most, and conflicts in the order of turns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import schedules

from collc.ir.collective import Collective
from collc.ir.machine import connections, execute
from collc.ir.program import INSTRUCTION_COLUMNS, Program
from collc.passes.analysis.hazards import conflicts
from collc.passes.analysis.timing import play
from collc.passes.lowering.lower import Lower
from collc.passes.program import pairing
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.fuse import _clashes
from collc.passes.program.pairing import PER_CHANNEL, _listed, _weights, pair_blocks
from collc.passes.schedule.discretize import Discretize

programs = schedules(kinds=("allgather", "reduce-scatter", "allreduce", "broadcast")).map(
    lambda schedule: Coalesce(pack="never").run(Lower().run(Discretize().run(schedule)))
)


@settings(max_examples=examples(40))
@given(programs, st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_blocks_that_forward_most_chunks_come_first(program: Program, number: int, seed: int) -> None:
    if not program.num_instructions:
        return
    receives, sends = np.random.default_rng(seed).integers(0, program.num_instructions, (2, number))
    total: dict[tuple[int, int], list[int]] = {}
    for i, j in zip(receives.tolist(), sends.tolist(), strict=True):
        of_pair = total.setdefault((int(program.block[i]), int(program.block[j])), [0, 0])
        of_pair[0] += int(program.count[j])
        of_pair[1] += 1
    due = sorted((-chunks, a, b, messages) for (a, b), (chunks, messages) in total.items())
    assert _listed(_weights(program, (receives, sends))) == [(a, b, messages) for _, a, b, messages in due]


@settings(max_examples=examples(40))
@given(programs, st.integers(0, 3))
def test_blocks_without_data_are_paired_up_to_the_limit(program: Program, less: int) -> None:
    """Whether the shortest blocks fit together is only a quick answer to whether any do."""
    length = np.diff(program.block_start.astype(np.int64))
    none = np.zeros(0, dtype=np.int64)
    for most in {int(length.max(initial=0)) + more for more in range(-less, int(length.max(initial=0)) + 1)}:
        found = pair_blocks(program, (none, none), True, length, most).host
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(pairing, "_shortest", lambda steps, free: 0)
            assert pair_blocks(program, (none, none), True, length, most).host.tolist() == found.tolist()


@pytest.mark.quick
def test_no_rank_sends_more_often_on_a_channel_than_a_runtime_can() -> None:
    """Ranks relay data between all others. Joined, all their connections would share a channel."""
    ranks, out = 40, np.arange(1, 40)
    peer, here = (np.arange(ranks)[:, None] + out) % ranks, np.repeat(np.arange(ranks), len(out))
    send = np.concatenate([peer.ravel(), np.full(here.size, -1)])
    recv = np.concatenate([np.full(here.size, -1), peer.ravel()])
    rank = np.concatenate([here, here])
    order = np.argsort(rank, kind="stable")
    empty = np.zeros(0, dtype=np.int64)
    program = Program(
        Collective("allgather", ranks), 1, np.zeros(ranks, dtype=np.int64), block_rank=rank[order],
        send_peer=send[order], recv_peer=recv[order], channel=0 * rank,
        block_start=np.zeros(len(rank) + 1, dtype=np.int64), dep_start=np.zeros(1, dtype=np.int64), deps=empty,
        **dict.fromkeys(INSTRUCTION_COLUMNS, empty),
    )  # fmt: skip
    blocks = {(r, s, v): b for b, (r, s, v) in enumerate(zip(rank[order], send[order], recv[order], strict=True))}
    host, steps = np.arange(len(rank)), np.zeros(len(rank), dtype=np.int64)
    links = connections(program)
    classes = pairing._Classes(program, links)
    joined, random = 0, np.random.default_rng(1)
    for r in range(ranks):
        for source, target in zip(random.permutation(peer[r]), random.permutation(peer[r]), strict=True):
            into, away = blocks[r, -1, source], blocks[r, target, -1]
            joined += classes.join(int(links.inward[into]), int(links.outward[away]))
    assert 0 < joined < ranks * 39
    channel = pairing._colour(program, links, classes)
    for peers in (program.send_peer, program.recv_peer):
        used = peers >= 0
        assert np.bincount(program.block_rank[used].astype(np.int64) * len(rank) + channel[used]).max() <= PER_CHANNEL
    assert (pair_blocks(program, (empty, empty), True, steps).host <= host).all()


@settings(max_examples=examples(40))
@given(programs, st.booleans())
def test_conflicts_in_the_order_of_turns_need_no_order_where_times_decide(program: Program, tied: bool) -> None:
    """Where all have their turn at one time, the order decides."""
    if not program.num_instructions:
        return
    finished = execute(program).finished
    times = play(program, 1, 1, lambda: finished)
    if tied:
        times.due[:] = 0
    due = conflicts(_copy(program), times.places(finished))
    found = _clashes(program, times, lambda: finished)
    assert _pairs(found) == _pairs(due)


def _copy(program: Program) -> Program:
    """Return the same program, of which nothing is known."""
    return Program(**{name: getattr(program, name) for name in (*Program.SCALARS, *Program.COLUMNS)})


def _pairs(found: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return {(a, b) for a, b in zip(*(column.tolist() for column in found), strict=True) if a != b}
