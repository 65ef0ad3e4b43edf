"""Programs of sends and receives from one-sided programs: right where those are, and refused where none exists."""

from __future__ import annotations

from typing import Any

import pytest
from plan_programs import plan_program
from plan_texts import both, exchange, local, remote, ring_plan, signal
from programs import by_hand

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.verify import verify_program
from collc.passes.one_sided.handshake import Handshake
from collc.passes.one_sided.lower import LowerOneSided
from collc.passes.one_sided.two_sided import two_sided

Json = dict[str, Any]  # Any: values of JSON
NOP = {"name": "nop"}


def right(program: Program, inplace: bool = True) -> Program:
    """Return a program that is right in one mode, with connections that hold one chunk."""
    report = verify_program(program, inplace=inplace, fifo_depth=1)
    assert report.ok, report.failed
    return program


@pytest.mark.parametrize("packets", [False, True])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_rings_keep_their_threadblocks(ranks: int, packets: bool) -> None:
    if ranks == 2 and not packets:
        pytest.skip("a channel of two ranks pairs with itself")
    plan = plan_program(ring_plan(ranks, packets=packets), Collective("allreduce", ranks))
    program = right(two_sided(plan))
    assert program.num_blocks == ranks
    assert program.num_channels == 1
    assert int(program.sends.sum()) == 2 * (ranks - 1) * ranks


ALLREDUCE = Collective("allreduce", 2)


def test_reads_of_a_peer_are_served_by_a_threadblock_of_the_peer() -> None:
    meet = [signal("signal", 0), signal("wait", 0), NOP]
    ops = [
        [*meet, both("rre", [local("i", r), remote(1, r)], [local("i", r)]), NOP, *meet,
         both("get", [remote(1, 1 - r)], [local("i", 1 - r)]), NOP, *meet]
        for r in range(2)
    ]  # fmt: skip
    program = right(two_sided(plan_program(exchange(ops), ALLREDUCE)))
    assert program.reduces.sum() == 2
    assert program.num_blocks == 4


def test_slices_of_one_operation_and_blocks_joined_by_a_barrier() -> None:
    """Two blocks of each rank put half of a chunk each, then one adds the whole."""
    ops = []
    for _ in range(2):
        for block in range(2):
            slices = {"tb_id": block, "tbg_size": 2}
            put = both("put", [local("i", 0, 2)], [remote(0, 0, 2)], tbg_info=slices)
            joined = [{"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}]
            total = [{"name": "re", "src_buff": [local("i", 0, 2), local("s", 0, 2)], "dst_buff": [local("i", 0, 2)]}]
            ops.append([put, NOP, signal("signal", 0), signal("wait", 0), *joined, *(total if block else [])])
    program = right(two_sided(plan_program(exchange(ops, blocks=2), ALLREDUCE)))
    assert program.chunks == 2 * plan_program(exchange(ops, blocks=2), ALLREDUCE).chunks
    assert program.num_channels == 2


def test_semaphores_become_dependencies() -> None:
    ops = [
        ops
        for _ in range(2)
        for ops in (
            [both("put", [local("i", 0, 2)], [remote(0, 0, 2)]), NOP, signal("signal", 0), signal("wait", 0), NOP,
             {"name": "sem_release", "semaphore_ids": [0]}],
            [{"name": "sem_acquire", "semaphore_ids": [0]}, NOP,
             {"name": "re", "src_buff": [local("i", 0, 2), local("s", 0, 2)], "dst_buff": [local("i", 0, 2)]}],
        )
    ]  # fmt: skip
    program = right(two_sided(plan_program(exchange(ops, blocks=2), ALLREDUCE)))
    assert int(program.num_dependencies.sum()) == 2  # each sum waits for the last message of the other block


def test_a_loop_runs_once() -> None:
    plan = ring_plan(3)
    for gpu in plan["gpus"]:
        block = gpu["threadblocks"][0]
        (put,) = [k for k, op in enumerate(block["ops"]) if op["name"] == "put"][:1]
        inner = block["ops"][put : put + 3]
        block["ops"][put : put + 3] = [
            {"name": "pipeline", "iter_context": {"unit_size": 1 << 20, "num_chunks": 1}, "ops": inner}
        ]
    right(two_sided(plan_program(plan, Collective("allreduce", 3))))


def refused(code: str, ops: list[list[Json]]) -> str:
    with pytest.raises(CollcError) as problem:
        two_sided(plan_program(exchange(ops), ALLREDUCE))
    assert problem.value.diagnostics[0].code == code
    return str(problem.value)


def test_what_is_refused() -> None:
    overlapping = [{"name": "re", "src_buff": [local("i", 0), local("i", 1)], "dst_buff": [local("i", 0, 1)]}]
    overlapping[0]["src_buff"] = [local("s", 0, 2), local("i", 0, 2)]
    overlapping[0]["dst_buff"] = [{"type": "i", "index": 1, "size": 2}]
    refused("C0576", [overlapping, []])
    refused("C0577", [[signal("wait", 0)], []])
    plan = exchange([[], []])
    for gpu in plan["gpus"]:
        gpu["channels"] = [
            {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}
        ]
        block = gpu["threadblocks"][0]
        block["channels"] = [{"channel_type": "switch", "channel_ids": [0]}]
        item = {"switch_channel_id": 0, "index": gpu["id"], "size": 1}
        block["ops"] = [{"name": "glres", "src_buff": [item], "dst_buff": [item], "channel_type": "switch"}]
    with pytest.raises(CollcError, match="cannot express"):
        two_sided(plan_program(plan, ALLREDUCE))


@pytest.mark.parametrize("packets", [False, True])
@pytest.mark.parametrize("program", by_hand(), ids=lambda program: str(program.name))
def test_programs_come_back_from_puts(program: Program, packets: bool) -> None:
    """They send as many chunks, and are right in the mode that the puts were for."""
    for inplace in (False, True):
        puts = LowerOneSided(packets=packets, inplace=inplace).run(program)
        found = right(two_sided(Handshake().run(puts)), inplace)
        assert int(found.count[found.sends].sum()) == int(program.count[program.sends].sum())
