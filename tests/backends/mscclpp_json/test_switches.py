"""Plans with operations of switches: faults that somebody's generator plants, each refused with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import plan_judge
import pytest

import collc
from collc.backends.mscclpp_json import verify_text
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.structure import broken_rules
from collc.ir.diagnostic import CollcError

Json = dict[str, Any]  # Any: values of JSON

BOX = "topology t { rank gpu[4]; switch nv : multicast, reduces; for g in 0..4 { link gpu[g] <-> nv : 450 GB/s; } }"


@cache
def text() -> str:
    source = f"{BOX}\ncollective c = allreduce on t;\nschedule c using forest;\n"
    return collc.compile_source(source, target="mscclpp-json").artifacts["c"].text


def right() -> Json:
    plan: Json = json.loads(text())
    return plan


def refused(plan: Json) -> str:
    """Return why a plan is refused; empty if it is not."""
    try:
        report = verify_text(json.dumps(plan))
    except CollcError as problem:
        return f"{problem.diagnostics[0].code}: {problem.diagnostics[0].message}"
    return "; ".join(f"{one.name}: {one.detail}" for one in report.failed)


def switches(plan: Json, rank: int) -> list[Json]:
    return [one for one in plan["gpus"][rank]["channels"] if one["channel_type"] == "switch"]


def ops(plan: Json, rank: int) -> list[Json]:
    found: list[Json] = plan["gpus"][rank]["threadblocks"][0]["ops"]
    return found


def adds(plan: Json, rank: int) -> Json:
    return next(op for op in ops(plan, rank) if op["name"] == "glres")


def without_rank_everywhere(plan: Json) -> None:
    for rank in range(4):
        for entry in switches(plan, rank):
            entry["rank_groups"][0]["ranks"] = [0, 1, 2] if rank < 3 else [3]


def without_rank_at_one(plan: Json) -> None:
    switches(plan, 1)[0]["rank_groups"][0]["ranks"] = [0, 1, 2]


def other_order_of_ranks(plan: Json) -> None:
    switches(plan, 1)[0]["rank_groups"][0]["ranks"] = [1, 0, 2, 3]


def other_order_of_channels(plan: Json) -> None:
    gpu = plan["gpus"][2]
    one, other = switches(plan, 2)
    a, b = gpu["channels"].index(one), gpu["channels"].index(other)
    gpu["channels"][a], gpu["channels"][b] = other, one


def rank_twice(plan: Json) -> None:
    for rank in range(4):
        for entry in switches(plan, rank):
            entry["rank_groups"][0]["ranks"] = [0, 1, 1, 2, 3]


def missing_channel(plan: Json) -> None:
    gpu = plan["gpus"][3]
    gpu["channels"] = [one for one in gpu["channels"] if one["channel_type"] != "switch"]
    block = gpu["threadblocks"][0]
    block["channels"] = [one for one in block["channels"] if one["channel_type"] != "switch"]
    block["ops"] = [op for op in block["ops"] if op["name"] != "glres"]


def twice(plan: Json) -> None:
    """Rank 1 adds the part of rank 0 too, after rank 0 has stored it: in place, the sum is added again."""
    plan["inplace"] = True
    for rank in range(4):
        for op in ops(plan, rank):
            if op["name"] == "glres":
                op["src_buff"][0]["switch_channel_id"] = op["dst_buff"][0]["switch_channel_id"]
    ops(plan, 0).append({"name": "nop"})
    ops(plan, 0).append(dict(adds(plan, 0)))


def other_buffer(plan: Json) -> None:
    for rank in range(4):
        for entry in switches(plan, rank):
            if entry["buffer_type"] == "o":
                entry["buffer_type"] = "s"


def other_offset(plan: Json) -> None:
    adds(plan, 1)["src_buff"][0]["index"] = adds(plan, 0)["src_buff"][0]["index"]


def no_channel(plan: Json) -> None:
    adds(plan, 1)["src_buff"][0]["switch_channel_id"] = 2


def no_wait_before(plan: Json) -> None:
    plan["gpus"][1]["threadblocks"][0]["ops"] = [op for op in ops(plan, 1) if op["name"] != "rlxwait"]


def no_signal_after(plan: Json) -> None:
    plan["gpus"][1]["threadblocks"][0]["ops"] = [op for op in ops(plan, 1) if op["name"] != "signal"]


def no_nop_after(plan: Json) -> None:
    found = ops(plan, 1)
    at = found.index(adds(plan, 1))
    assert found[at + 1]["name"] == "nop"
    del found[at + 1]


def no_handshake(plan: Json) -> None:
    for rank in range(4):
        plan["gpus"][rank]["threadblocks"][0]["ops"] = [op for op in ops(plan, rank) if "rlx" not in op["name"]]


FAULTS: list[tuple[Callable[[Json], None], str]] = [
    (without_rank_everywhere, "postcondition"), (without_rank_at_one, "rank 1 waits for its channel|which rank 1"),
    (other_order_of_ranks, "which rank 1"), (other_order_of_channels, "rank 2"), (missing_channel, "which rank 3"),
    (rank_twice, "each once"),
    (twice, "postcondition|races|single"), (other_buffer, "postcondition|bounds"), (other_offset, "postcondition"),
    (no_channel, "names switch channel 2"), (no_wait_before, "signals|races"), (no_signal_after, "deadlock"),
    (no_nop_after, "races"), (no_handshake, "races"),
]  # fmt: skip


def test_the_right_plan() -> None:
    assert refused(right()) == "" and plan_judge.judge(right(), 4) == ""


@pytest.mark.parametrize(("fault", "reason"), FAULTS, ids=lambda one: getattr(one, "__name__", ""))
def test_faults_are_refused_with_a_reason(fault: Callable[[Json], None], reason: str) -> None:
    plan = right()
    fault(plan)
    found = refused(plan)
    assert any(one in found for one in reason.split("|")), found


def test_brute_force_waits_for_the_same_channels() -> None:
    for fault in (without_rank_at_one, other_order_of_ranks, other_order_of_channels, missing_channel, rank_twice):
        plan = right()
        fault(plan)
        assert "waits for a switch" in plan_judge.unloadable(plan)


def test_channels_that_ranks_do_not_set_up_together_have_a_code() -> None:
    plan = right()
    missing_channel(plan)
    codes = {finding.code for finding in broken_rules(read(json.dumps(plan), "plan.json"))}
    assert codes == {"C0694"}
