"""Plans of MSCCL++ written by hand, as JSON values: rings of the worked example of the format."""

from __future__ import annotations

from typing import Any

__all__ = ["both", "exchange", "local", "remote", "right_plans", "ring_plan", "signal"]

Json = dict[str, Any]  # Any: values of JSON
NOP: Json = {"name": "nop"}


def local(buffer: str, index: int, size: int = 1) -> Json:
    """Return an item of a buffer of the executing rank."""
    return {"type": buffer, "index": index, "size": size}


def remote(number: int, index: int, size: int = 1) -> Json:
    """Return an item of a buffer of a peer, by its number in the block."""
    return {"buffer_id": number, "index": index, "size": size}


def signal(name: str, *channels: int) -> Json:
    """Return a signal or wait on these channels of the block."""
    return {"name": name, "channel_ids": list(channels), "channel_type": "memory"}


def _joined(name: str, src: list[Json], dst: list[Json]) -> Json:
    return {"name": name, "src_buff": src, "dst_buff": dst, "channel_type": "memory"}


def ring_plan(ranks: int, *, packets: bool = False, memory: int | None = None) -> Json:
    """Return a ring allreduce in place, one block a rank; ``packets`` make it one of the protocol LL.

    If ``memory`` is given, only pairs in one group of so many ranks have memory channels: a head for tests of heads.
    Without packets it needs three ranks or more.
    """
    gpus = [_rank(rank, ranks, packets) for rank in range(ranks)]
    if memory is not None:
        for rank, gpu in enumerate(gpus):
            first = rank - rank % memory
            gpu["channels"] = [{"channel_type": "memory", "connected_to": [first, first + memory - 1]}]
            gpu["remote_buffers"] = []
    return {
        "name": "ring", "collective": "allreduce", "protocol": "LL" if packets else "Simple", "inplace": True,
        "reuse_resources": False, "gpus": gpus, "num_threads_per_block": 1024,
        "use_double_scratch_buffer": packets, "buffer_alignment": 16, "min_message_size": 0,
        "max_message_size": 2**64 - 1,
    }  # fmt: skip


def _rank(rank: int, ranks: int, packets: bool) -> Json:
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    block = {
        "id": 0, "ops": _packet_steps(rank, ranks) if packets else _steps(rank, ranks),
        "channels": [{"channel_type": "memory", "channel_ids": [0, 1]}],
        "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0, 1]}],
    }  # fmt: skip
    return {
        "id": rank, "input_chunks": ranks, "output_chunks": ranks,
        "scratch_chunks": 2 * ranks - 2 if packets else ranks - 1, "threadblocks": [block],
        "channels": [{"channel_type": "memory", "connected_to": [after, before]}],
        "remote_buffers": [{"rank": after, "type": kind, "access_channel_types": ["memory"]} for kind in "si"],
        "semaphores": [],
    }  # fmt: skip


def _steps(rank: int, ranks: int) -> list[Json]:
    ops = [signal("rlxsignal", 1), signal("rlxwait", 0), NOP]
    ops += [_joined("put", [local("i", rank)], [remote(0, 0)]), NOP, signal("signal", 0)]
    for step in range(1, ranks):
        chunk, last = (rank - step) % ranks, step == ranks - 1
        there = remote(1, chunk) if last else remote(0, step)
        ops += [signal("wait", 1), NOP]
        ops += [_joined("res", [local("i", chunk), local("s", step - 1)], [local("i", chunk), there])]
        ops += [NOP, signal("signal", 0)]
    for step in range(1, ranks - 1):
        chunk = (rank + 1 - step) % ranks
        ops += [signal("wait", 1), NOP, _joined("put", [local("i", chunk)], [remote(1, chunk)]), NOP]
        ops += [signal("signal", 0)]
    return [*ops, signal("wait", 1), NOP]


def _packet_steps(rank: int, ranks: int) -> list[Json]:
    ops = [_joined("ppkt", [local("i", rank)], [remote(0, 0)])]
    for step in range(1, ranks):
        chunk = (rank - step) % ranks
        sides = [local("i", chunk), local("s", step - 1)], [local("i", chunk), remote(0, step)]
        ops.append(_joined("respkt", *sides))
    for step in range(ranks - 1):
        slot, chunk = ranks - 1 + step, (rank - step) % ranks
        if step < ranks - 2:
            ops.append(_joined("rppkt", [local("s", slot)], [remote(0, slot + 1)]))
        ops.append({"name": "upkt", "src_buff": [local("s", slot)], "dst_buff": [local("i", chunk)]})
    return ops


# ---- plans of two ranks, and others


def both(name: str, src: list[Json], dst: list[Json], **more: object) -> Json:
    """Return an operation with items on both sides, over memory."""
    return {"name": name, "src_buff": src, "dst_buff": dst, "channel_type": "memory", **more}


def exchange(ops: list[list[Json]], blocks: int = 1, kind: str = "memory", **head: object) -> Json:
    """Return a plan of two ranks with these blocks, those of rank 0 first; each block has one channel to the peer.

    Blocks reach the peer's scratch (0), input (1) and output (2). Each rank has one semaphore, 2 chunks of input and
    output, and 4 of scratch.
    """
    gpus = [
        {
            "id": rank, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 4,
            "channels": [{"channel_type": kind, "connected_to": [1 - rank] * blocks}],
            "remote_buffers": [{"rank": 1 - rank, "type": one, "access_channel_types": [kind]} for one in "sio"],
            "semaphores": [{"init_value": 0}],
            "threadblocks": [
                {
                    "id": block, "ops": ops[blocks * rank + block],
                    "channels": [{"channel_type": kind, "channel_ids": [block]}],
                    "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": [0, 1, 2]}],
                }
                for block in range(blocks)
            ],
        }
        for rank in range(2)
    ]  # fmt: skip
    return {
        "name": "pair", "collective": "allreduce", "protocol": "Simple", "inplace": True, "reuse_resources": False,
        "gpus": gpus, "num_threads_per_block": 1024, "use_double_scratch_buffer": False, "buffer_alignment": 16,
        "min_message_size": 0, "max_message_size": 2**64 - 1, **head,
    }  # fmt: skip


def right_plans() -> dict[str, Json]:
    """Return right plans by name; together they have most operations of the format."""
    return {
        **{f"ring of {n}": ring_plan(n) for n in (3, 4)},
        **{f"ring of {n}, packets": ring_plan(n, packets=True) for n in (2, 3)},
        "reads": _reads(), "slices": _slices(), "semaphore": _semaphore(), "ports": _ports(), "switch": _switch(),
        "pipeline": _pipeline(), "all pairs": _all_pairs(4), "packets of slices": _packet_slices(),
    }  # fmt: skip


READY = [signal("rlxsignal", 0), signal("rlxwait", 0), NOP]
MEET = [signal("signal", 0), signal("wait", 0), NOP]


def _sum(src: list[Json], dst: list[Json]) -> Json:
    return {"name": "re", "src_buff": src, "dst_buff": dst}


def _reads() -> Json:
    """Each rank adds its half of the peer's input, and gets the other half's sum."""
    return exchange(
        [
            [*MEET, both("rre", [local("i", r), remote(1, r)], [local("i", r)]), NOP, *MEET,
             both("get", [remote(1, 1 - r)], [local("i", 1 - r)]), NOP, *MEET]
            for r in range(2)
        ],
    )  # fmt: skip


def _slices() -> Json:
    """Two blocks put half of each chunk, meet at a barrier, and one adds the whole."""
    ops = []
    for _ in range(2):
        for block in range(2):
            put = both("put", [local("i", 0, 2)], [remote(0, 0, 2)], tbg_info={"tb_id": block, "tbg_size": 2})
            joined = {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}
            total = [_sum([local("i", 0, 2), local("s", 0, 2)], [local("i", 0, 2)])]
            ops.append([*READY, put, NOP, signal("signal", 0), signal("wait", 0), joined, *(total if block else [])])
    return exchange(ops, blocks=2)


def _semaphore() -> Json:
    """One block sends and receives, the other adds after a semaphore."""
    moves = [*READY, both("put", [local("i", 0, 2)], [remote(0, 0, 2)]), NOP, *MEET,
             {"name": "sem_release", "semaphore_ids": [0]}]  # fmt: skip
    adds = [{"name": "sem_acquire", "semaphore_ids": [0]}, NOP, _sum([local("i", 0, 2), local("s", 0, 2)],
                                                                    [local("i", 0, 2)])]  # fmt: skip
    return exchange([moves, adds, moves, adds], blocks=2)


def _port(name: str, *channels: int, **more: object) -> Json:
    return {"name": name, "channel_ids": list(channels), "channel_type": "port", **more}


def _ports() -> Json:
    """Each rank sends its input over a port, waits until it has left, and adds what came."""
    sent = _port("pwsf", 0, src_buff=[local("i", 0, 2)], dst_buff=[remote(0, 0, 2)])
    ops = [_port("signal", 0), _port("wait", 0), NOP, sent, _port("wait", 0), NOP]
    return exchange([[*ops, _sum([local("i", 0, 2), local("s", 0, 2)], [local("i", 0, 2)])]] * 2, kind="port")


def _switch() -> Json:
    """Each rank lets the switch add its half."""
    plan = exchange([[], []])
    for rank, gpu in enumerate(plan["gpus"]):
        group = {"size": 2, "ranks": [0, 1]}
        gpu["channels"].append({"channel_type": "switch", "buffer_type": "i", "rank_groups": [group]})
        block, item = gpu["threadblocks"][0], {"switch_channel_id": 0, "index": rank, "size": 1}
        block["channels"].append({"channel_type": "switch", "channel_ids": [0]})
        added = both("glres", [item], [dict(item)])
        block["ops"] = [*MEET, {**added, "channel_type": "switch"}, NOP, *MEET]
    return plan


def _pipeline() -> Json:
    """Each rank puts its input slice by slice; every slice has a signal and a wait of its own."""
    body = [both("put", [local("i", 0, 2)], [remote(0, 0, 2)]), NOP, signal("signal", 0), signal("wait", 0), NOP]
    loop = {"name": "pipeline", "iter_context": {"unit_size": 1 << 20, "num_chunks": 2}, "ops": body}
    return exchange([[*READY, loop, _sum([local("i", 0, 2), local("s", 0, 2)], [local("i", 0, 2)])]] * 2)


def _packet_slices() -> Json:
    """Two blocks send half of each chunk as packets, and add what came."""
    ops = []
    for _ in range(2):
        for block in range(2):
            part = {"tbg_info": {"tb_id": block, "tbg_size": 2}}
            ops.append([
                both("ppkt", [local("i", 0, 2)], [remote(0, 0, 2)], **part),
                both("repkt", [local("i", 0, 2), local("s", 0, 2)], [local("i", 0, 2)], **part),
            ])  # fmt: skip
    return exchange(ops, blocks=2, protocol="LL", use_double_scratch_buffer=True)


def _all_pairs(ranks: int) -> Json:
    """An allgather out of place: each rank puts its chunk into the output of all others at once."""
    gpus = []
    for rank in range(ranks):
        peers, all_ = [peer for peer in range(ranks) if peer != rank], list(range(ranks - 1))
        ops = [
            signal("rlxsignal", *all_), signal("rlxwait", *all_), NOP,
            both("put", [local("i", 0)] * len(peers), [remote(k, rank) for k in all_]),
            {"name": "copy", "src_buff": [local("i", 0)], "dst_buff": [local("o", rank)]},
            NOP, signal("signal", *all_), signal("wait", *all_),
        ]  # fmt: skip
        block = {
            "id": 0, "ops": ops, "channels": [{"channel_type": "memory", "channel_ids": all_}],
            "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": all_}],
        }  # fmt: skip
        gpus.append({
            "id": rank, "input_chunks": 1, "output_chunks": ranks, "scratch_chunks": 0, "threadblocks": [block],
            "channels": [{"channel_type": "memory", "connected_to": peers}],
            "remote_buffers": [{"rank": peer, "type": "o", "access_channel_types": ["memory"]} for peer in peers],
            "semaphores": [],
        })  # fmt: skip
    head = exchange([[], []], collective="allgather", inplace=False, name="all pairs")
    return {**head, "gpus": gpus}
