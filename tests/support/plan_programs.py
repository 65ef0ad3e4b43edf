"""Plans as one-sided programs, read by the letter of the format: no checks, for right plans written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collc.ir.collective import Collective
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import NO_CHANNEL, Channel, Item, OneSided, Operation, Transport
from collc.ir.program import Buffer

__all__ = ["plan_program"]

Json = dict[str, Any]  # Any: values of JSON
_BUFFERS = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}
_TRANSPORTS = {"memory": Transport.MEMORY, "port": Transport.PORT, "switch": Transport.SWITCH}


def plan_program(plan: Json, collective: Collective) -> OneSided:
    """Return the one-sided program of a plan for a collective."""
    gpus = plan["gpus"]
    listed = [list(_channels(rank, gpu)) for rank, gpu in enumerate(gpus)]
    first = [sum(map(len, listed[:rank])) for rank in range(len(gpus))]
    semaphores = [(rank, one["init_value"]) for rank, gpu in enumerate(gpus) for one in gpu.get("semaphores", ())]
    loops: list[tuple[int, int]] = []
    blocks = [
        (rank, list(_operations(rank, gpu, block, listed[rank], first[rank], semaphores, loops)))
        for rank, gpu in enumerate(gpus) for block in gpu["threadblocks"]
    ]  # fmt: skip
    sizes = [tuple(gpu[f"{kind}_chunks"] for kind in ("input", "output", "scratch")) for gpu in gpus]
    shards = max(collective.input_shards, collective.output_shards)
    return OneSided.build(
        collective, max(sizes[0][0], sizes[0][1]) // shards, sizes, [c for found in listed for c in found], blocks,
        semaphores=semaphores, loops=loops, packets=plan["protocol"] == "LL", inplace=plan["inplace"],
        double_scratch=plan.get("use_double_scratch_buffer", False), name=plan["name"],
    )  # fmt: skip


def _channels(rank: int, gpu: Json) -> Iterator[Channel]:
    for entry in gpu["channels"]:
        kind = _TRANSPORTS[entry["channel_type"]]
        yield from (Channel(rank, peer, kind) for peer in entry.get("connected_to", ()))
        for group in entry.get("rank_groups", ()):
            yield Channel(rank, -1, kind, _BUFFERS[entry["buffer_type"]], tuple(group["ranks"]))


def _operations(
    rank: int, gpu: Json, block: Json, channels: list[Channel], first: int, semaphores: list[tuple[int, int]],
    loops: list[tuple[int, int]],
) -> Iterator[Operation]:  # fmt: skip
    own = [k for k, (owner, _) in enumerate(semaphores) if owner == rank]
    rows = {kind: [k for k, c in enumerate(channels) if c.transport == of] for kind, of in _TRANSPORTS.items()}
    here = {
        e["channel_type"]: [first + rows[e["channel_type"]][i] for i in e["channel_ids"]] for e in block["channels"]
    }
    refs = {
        e["access_channel_type"]: [gpu["remote_buffers"][i] for i in e["remote_buffer_ids"]]
        for e in block.get("remote_buffer_refs", ())
    }

    def item(one: Json, kind: str) -> Item:
        if "buffer_id" in one:
            there = refs[kind][one["buffer_id"]]
            return Item(there["rank"], _BUFFERS[there["type"]], one["index"], one["size"])
        if "switch_channel_id" in one:
            row = here["switch"][one["switch_channel_id"]]
            return Item(rank, channels[row - first].buffer, one["index"], one["size"], row)
        return Item(rank, _BUFFERS[one["type"]], one["index"], one["size"], NO_CHANNEL)

    def operation(op: Json, loop: int) -> Operation:
        kind, slices = op.get("channel_type", ""), op.get("tbg_info", {"tb_id": 0, "tbg_size": 1})
        links = [here[kind][i] for i in op.get("channel_ids", ())] + [own[i] for i in op.get("semaphore_ids", ())]
        sides = (tuple(item(one, kind) for one in op.get(f"{side}_buff", ())) for side in ("src", "dst"))
        return Operation(
            Op[op["name"].upper()], _TRANSPORTS.get(kind, Transport.LOCAL), tuple(links), *sides, slices["tb_id"],
            slices["tbg_size"], op.get("barrier_id", 0), op.get("num_threadblocks", 0), loop,
        )  # fmt: skip

    for op in block["ops"]:
        if op["name"] == "pipeline":
            loops.append((op["iter_context"]["unit_size"], op["iter_context"]["num_chunks"]))
            yield from (operation(inner, len(loops) - 1) for inner in op["ops"])
        else:
            yield operation(op, -1)
