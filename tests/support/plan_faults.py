"""Faults to plant in right plans of MSCCL++: each changes one thing in the JSON that some tool has got wrong."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["KINDS", "conflicts", "plant"]

Json = dict[str, Any]  # Any: values of JSON
Fault = Callable[[Json, random.Random], None]


def plant(plan: Json, kind: str, luck: random.Random) -> Json:
    """Return a copy of a plan with one fault of a kind, or an equal one where there is no place for such a fault."""
    changed = copy.deepcopy(plan)
    try:
        _FAULTS[kind](changed, luck)
    except (IndexError, ValueError):  # no place for it
        return copy.deepcopy(plan)
    return changed


def conflicts(plan: Json) -> Iterator[tuple[str, list[Json]]]:
    """Yield folders of two plans that one process must not load, and what is wrong with them."""
    other = {**copy.deepcopy(plan), "name": plan["name"] + " 2"}
    yield "two plans for one call", [plan, other]
    low = {**plan, "max_message_size": 1 << 20}
    yield "two plans for one call", [low, {**other, "min_message_size": 1 << 20}]
    apart = {**other, "min_message_size": (1 << 20) + 1}
    yield "one name", [low, {**apart, "name": plan["name"]}]
    yield "two in-place modes", [low, {**apart, "inplace": not plan["inplace"]}]
    yield "", [low, apart]


# ---- places


def _blocks(plan: Json) -> list[Json]:
    return [block for gpu in plan["gpus"] for block in gpu["threadblocks"]]


def _lists(plan: Json) -> list[list[Json]]:
    """Return all lists of operations, those of pipelines too."""
    outer = [block["ops"] for block in _blocks(plan)]
    return outer + [op["ops"] for ops in outer for op in ops if "ops" in op]


def _ops(plan: Json, *names: str) -> list[tuple[list[Json], int]]:
    """Return the places of operations with these names; of all without names."""
    return [(ops, k) for ops in _lists(plan) for k, op in enumerate(ops) if not names or op["name"] in names]


def _items(plan: Json, *keys: str) -> list[Json]:
    """Return the items of operations that have one of these keys."""
    ops = [op for found in _lists(plan) for op in found]
    items = [item for op in ops for side in ("src_buff", "dst_buff") for item in op.get(side, ())]
    return [item for item in items if not keys or any(key in item for key in keys)]


def _drop(*names: str) -> Fault:
    def fault(plan: Json, luck: random.Random) -> None:
        ops, k = luck.choice(_ops(plan, *names))
        del ops[k]

    return fault


def _rename(names: dict[str, str]) -> Fault:
    def fault(plan: Json, luck: random.Random) -> None:
        ops, k = luck.choice(_ops(plan, *names))
        ops[k]["name"] = names[ops[k]["name"]]

    return fault


def _shift(key: str, *steps: int, where: tuple[str, ...] = ()) -> Fault:
    def fault(plan: Json, luck: random.Random) -> None:
        item = luck.choice(_items(plan, *where))
        item[key] = max(item[key] + luck.choice(steps), 0)

    return fault


# ---- faults


def _slot(plan: Json, luck: random.Random) -> None:
    """Exchange the places of two items of scratch or of peers."""
    a, b = luck.sample(_items(plan, "buffer_id"), 2) if luck.random() < 0.5 else _of_scratch(plan, luck)
    a["index"], b["index"] = b["index"], a["index"]


def _of_scratch(plan: Json, luck: random.Random) -> list[Json]:
    found = [item for item in _items(plan, "type") if item["type"] == "s"]
    return luck.sample(found, 2) if len(found) > 1 else [found[0], found[0]]


def _order(plan: Json, luck: random.Random) -> None:
    ops, k = luck.choice([(ops, k) for ops, k in _ops(plan) if k])
    ops[k - 1], ops[k] = ops[k], ops[k - 1]


def _twice(plan: Json, luck: random.Random) -> None:
    ops, k = luck.choice(_ops(plan))
    ops.insert(k, copy.deepcopy(ops[k]))


def _writers(plan: Json, luck: random.Random) -> None:
    """Let another block of the rank do an operation too."""
    gpu = luck.choice(plan["gpus"])
    block = luck.choice(gpu["threadblocks"])
    op = copy.deepcopy(luck.choice([op for op in block["ops"] if "dst_buff" in op]))
    extra = {**copy.deepcopy(block), "id": len(gpu["threadblocks"]), "ops": [op]}
    gpu["threadblocks"].append(extra)


def _moved(plan: Json, luck: random.Random) -> None:
    """Move an operation to another place of its block."""
    ops, k = luck.choice(_ops(plan))
    ops.insert(luck.randrange(len(ops)), ops.pop(k))


def _channel(plan: Json, luck: random.Random) -> None:
    op = luck.choice([ops[k] for ops, k in _ops(plan) if ops[k].get("channel_ids")])
    at = luck.randrange(len(op["channel_ids"]))
    op["channel_ids"][at] = luck.choice([n for n in range(4) if n != op["channel_ids"][at]])


def _block_channel(plan: Json, luck: random.Random) -> None:
    entry = luck.choice([e for block in _blocks(plan) for e in block["channels"] if len(e["channel_ids"]) > 1])
    luck.shuffle(entry["channel_ids"])


def _peer(plan: Json, luck: random.Random) -> None:
    entry = luck.choice([e for gpu in plan["gpus"] for e in gpu["channels"] if e.get("connected_to")])
    at = luck.randrange(len(entry["connected_to"]))
    entry["connected_to"][at] = luck.randrange(len(plan["gpus"]))


def _owner(plan: Json, luck: random.Random) -> None:
    entry = luck.choice([e for gpu in plan["gpus"] for e in gpu["remote_buffers"]])
    if luck.random() < 0.5:
        entry["rank"] = luck.randrange(len(plan["gpus"]))
    else:
        entry["type"] = luck.choice([kind for kind in "ios" if kind != entry["type"]])


def _buffer(plan: Json, luck: random.Random) -> None:
    item = luck.choice(_items(plan, "type"))
    item["type"] = luck.choice([kind for kind in "ios" if kind != item["type"]])


def _reference(plan: Json, luck: random.Random) -> None:
    item = luck.choice(_items(plan, "buffer_id"))
    item["buffer_id"] = luck.choice([n for n in range(4) if n != item["buffer_id"]])


def _semaphore(plan: Json, luck: random.Random) -> None:
    """Leave a semaphore out of balance."""
    if luck.random() < 0.5:
        ops, k = luck.choice(_ops(plan, "sem_release", "sem_acquire"))
        del ops[k]
    else:
        entry = luck.choice([e for gpu in plan["gpus"] for e in gpu.get("semaphores", ())])
        entry["init_value"] += luck.choice((1, -1))


def _wide(plan: Json, luck: random.Random) -> None:
    """Give a block 17 channels or remote buffers."""
    block = luck.choice([block for block in _blocks(plan) if block["channels"]])
    if luck.random() < 0.5:
        entry = luck.choice(block["channels"])
        entry["channel_ids"] += [entry["channel_ids"][0]] * (17 - len(entry["channel_ids"]))
    else:
        entry = luck.choice(block["remote_buffer_refs"])
        entry["remote_buffer_ids"] += [entry["remote_buffer_ids"][0]] * (17 - len(entry["remote_buffer_ids"]))


def _long(plan: Json, luck: random.Random) -> None:
    """Give a block 65 operations."""
    ops = luck.choice(_blocks(plan))["ops"]
    ops += [{"name": "nop"} for _ in range(65 - len(ops))]


def _many(plan: Json, luck: random.Random) -> None:
    """Give an operation 9 channels, or 11 items on a side."""
    if luck.random() < 0.5:
        op = luck.choice([ops[k] for ops, k in _ops(plan) if ops[k].get("channel_ids")])
        op["channel_ids"] = (op["channel_ids"] * 9)[:9]
    else:
        op = luck.choice([ops[k] for ops, k in _ops(plan, "put", "re", "rre", "repkt", "ppkt")])
        for side in ("src_buff", "dst_buff") if op["name"] == "put" else ("src_buff",):
            op[side] = (op[side] * 11)[:11]


def _zero(plan: Json, luck: random.Random) -> None:
    key = luck.choice(["input_chunks", "output_chunks"])
    for gpu in plan["gpus"] if luck.random() < 0.5 else [luck.choice(plan["gpus"])]:
        gpu[key] = 0


def _chunks(plan: Json, luck: random.Random) -> None:
    gpu = luck.choice(plan["gpus"])
    key = luck.choice(["input_chunks", "output_chunks", "scratch_chunks"])
    gpu[key] = max(gpu[key] + luck.choice((-2, -1, 1)), 0)


def _crossed(plan: Json, luck: random.Random) -> None:
    """Let a get land at another offset than it reads."""
    ops, k = luck.choice(_ops(plan, "get"))
    item = luck.choice([*ops[k]["src_buff"], *ops[k]["dst_buff"]])
    item["index"] = item["index"] + 1 if item["index"] == 0 else item["index"] - 1


def _flush(plan: Json, luck: random.Random) -> None:
    """Put a flush as the DSL writes it in place of one that waits."""
    ops, k = luck.choice(_ops(plan, "pwsf", "flush"))
    if ops[k]["name"] == "flush":
        ops[k].pop("dst_buff", None)
    else:
        ops[k]["name"] = "pws"
        bare = {"name": "flush", "channel_ids": ops[k]["channel_ids"], "channel_type": "port"}
        ops[k + 1 : k + 1] = [{"name": "nop"}, bare]


def _mode(plan: Json, luck: random.Random) -> None:
    key = luck.choice(["inplace", "use_double_scratch_buffer", "protocol"])
    plan[key] = {"LL": "Simple", "Simple": "LL"}[plan[key]] if key == "protocol" else not plan[key]


def _identity(plan: Json, luck: random.Random) -> None:
    """Give a rank or block the number of another."""
    listed = [plan["gpus"], *(gpu["threadblocks"] for gpu in plan["gpus"] if len(gpu["threadblocks"]) > 1)]
    found = luck.choice([one for one in listed if len(one) > 1])
    a, b = luck.sample(found, 2)
    a["id"] = b["id"]


def _slices(plan: Json, luck: random.Random) -> None:
    op = luck.choice([ops[k] for ops, k in _ops(plan) if "tbg_info" in ops[k]])
    if luck.random() < 0.5:
        op["tbg_info"]["tb_id"] = (op["tbg_info"]["tb_id"] + 1) % op["tbg_info"]["tbg_size"]
    else:
        op["tbg_info"]["tbg_size"] += 1


def _barrier(plan: Json, luck: random.Random) -> None:
    ops, k = luck.choice(_ops(plan, "barrier"))
    if luck.random() < 0.5:
        ops[k]["num_threadblocks"] += luck.choice((-1, 1))
    else:
        ops[k]["barrier_id"] += luck.choice((1, 16))


def _transport(plan: Json, luck: random.Random) -> None:
    op = luck.choice([ops[k] for ops, k in _ops(plan) if ops[k].get("channel_type") in ("memory", "port")])
    op["channel_type"] = "port" if op["channel_type"] == "memory" else "memory"


def _loop(plan: Json, luck: random.Random) -> None:
    ops, k = luck.choice(_ops(plan, "pipeline"))
    ops[k]["iter_context"]["num_chunks"] += luck.choice((-1, 1))


def _entries(plan: Json) -> list[tuple[Json, Json]]:
    """Return the channels of switches with their ranks."""
    return [(gpu, entry) for gpu in plan["gpus"] for entry in gpu["channels"] if entry["channel_type"] == "switch"]


def _group(plan: Json, luck: random.Random) -> None:
    """Let a switch channel lose a rank, have another, or have its ranks in another order, at one rank or at all."""
    _, chosen = luck.choice(_entries(plan))
    old = list(chosen["rank_groups"][0]["ranks"])
    new = list(old)
    kind = luck.randrange(3)
    if kind == 0:
        new.remove(luck.choice(new))
    elif kind == 1:
        new[luck.randrange(len(new))] = luck.randrange(len(plan["gpus"]))
    else:
        luck.shuffle(new)
    every = luck.random() < 0.5
    for _, entry in _entries(plan):
        if entry is chosen or (every and entry["rank_groups"][0]["ranks"] == old):
            entry["rank_groups"][0]["ranks"] = list(new)


def _bound(plan: Json, luck: random.Random) -> None:
    """Let a switch channel join another buffer, be of one rank less, or stand at another place."""
    gpu, chosen = luck.choice(_entries(plan))
    kind = luck.randrange(4)
    if kind == 0:
        chosen["buffer_type"] = luck.choice([one for one in "ios" if one != chosen["buffer_type"]])
    elif kind == 1:
        old = (chosen["buffer_type"], chosen["rank_groups"][0]["ranks"])
        letter = luck.choice([one for one in "ios" if one != chosen["buffer_type"]])
        for _, entry in _entries(plan):
            if (entry["buffer_type"], entry["rank_groups"][0]["ranks"]) == old:
                entry["buffer_type"] = letter
    elif kind == 2:
        gpu["channels"].remove(chosen)
    else:
        gpu["channels"].insert(luck.randrange(len(gpu["channels"])), gpu["channels"].pop())


def _behind(plan: Json, luck: random.Random) -> None:
    """Let an operation of a switch use another of the block's channels, or read and write at different places."""
    item = luck.choice(_items(plan, "switch_channel_id"))
    if luck.random() < 0.5:
        item["switch_channel_id"] = luck.choice([n for n in range(3) if n != item["switch_channel_id"]])
    else:
        item["index"] = max(item["index"] + luck.choice((-1, 1, 2)), 0)


def _again(plan: Json, luck: random.Random) -> None:
    """Let a rank do an operation of a switch twice, or another rank do it too."""
    ops, k = luck.choice(_ops(plan, "glres", "gstore"))
    other = luck.choice(_ops(plan, "glres", "gstore")) if luck.random() < 0.5 else (ops, k)
    other[0].insert(other[1] + 1, copy.deepcopy(ops[k]))


def _two(plan: Json, luck: random.Random) -> None:
    for _ in range(2):
        kind = luck.choice(["nop", "slot", "index", "order", "channel", "wait", "signal"])
        _FAULTS[kind](plan, luck)


_FAULTS: dict[str, Fault] = {
    "nop": _drop("nop"),
    "wait": _drop("wait", "rlxwait"),
    "signal": _drop("signal", "rlxsignal"),
    "lost": _drop(),
    "relaxed": _rename({"signal": "rlxsignal", "wait": "rlxwait"}),
    "op": _rename({"put": "get", "get": "put", "re": "copy", "res": "re", "rre": "get", "rres": "rre", "copy": "re",
                   "respkt": "repkt", "repkt": "respkt", "upkt": "cpkt", "rppkt": "upkt", "pws": "put"}),
    "glre": _rename({"glres": "glre", "re": "glre", "res": "glre", "put": "glre", "ppkt": "rspkt"}),
    "slot": _slot, "index": _shift("index", -1, 1, 2), "size": _shift("size", -1, 1), "order": _order, "twice": _twice,
    "writers": _writers, "moved": _moved, "channel": _channel, "list": _block_channel, "peer": _peer, "owner": _owner,
    "buffer": _buffer, "reference": _reference, "semaphore": _semaphore, "wide": _wide, "long": _long, "many": _many,
    "zero": _zero, "chunks": _chunks, "crossed": _crossed, "flush": _flush, "mode": _mode, "identity": _identity,
    "slices": _slices, "barrier": _barrier, "transport": _transport, "loop": _loop, "two": _two,
    "group": _group, "bound": _bound, "behind": _behind, "again": _again, "stored": _drop("glres", "gstore"),
}  # fmt: skip

KINDS = tuple(_FAULTS)
