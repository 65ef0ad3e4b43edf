"""Texts that are no plans, and plans that break a rule: each is refused with its code and place."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from plan_texts import local, remote, ring_plan, signal
from sampling import EXHAUSTIVE

from collc.backends.mscclpp_json.model import Plan
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.runtimes import RUNTIMES
from collc.backends.mscclpp_json.structure import broken_rules
from collc.backends.mscclpp_json.verify import load, verify_text
from collc.ir.diagnostic import CollcError

Json = Any  # values of JSON


def fresh(packets: bool = False) -> Json:
    """Return the ring of three ranks, whose values may be changed: none is shared."""
    return json.loads(json.dumps(ring_plan(3, packets=packets)))


def refusal(text: str) -> CollcError:
    """Return the error of a text that is refused."""
    with pytest.raises(CollcError) as refused:
        read(text, "plan.json")
    return refused.value


@pytest.mark.parametrize(
    ("text", "code", "found", "place"),
    [
        ('{"gpus": [', "C0660", "not JSON", "1:10"),
        ('{"name": "a",\n "name": "b", "gpus": []}', "C0660", "`name` twice", "1:2"),
        ('{"gpus": [1.5]}', "C0660", "`1.5`", "1:11"),
        ('{"gpus": [' + "9" * 30 + "]}", "C0660", "30 digits", "1:11"),
        ("[" * 100000, "C0660", "nesting", "1:1"),
        ("[]", "C0661", "no object", "1:1"),
        ('{"name": "x", "gpus": 3}', "C0661", "no array as `gpus`", "1:23"),
    ],
)
def test_texts_that_are_no_plans(text: str, code: str, found: str, place: str) -> None:
    (first, *_) = [one for one in refusal(text).diagnostics if found in one.message]
    assert first.code == code and str(first.span) == f"plan.json:{place}"


def put(*path: str | int, to: object) -> Callable[[Json], None]:
    """Return what sets a value of a plan; ``...`` removes it."""

    def change(plan: Json) -> None:
        for step in path[:-1]:
            plan = plan[step]
        if to is ...:
            del plan[path[-1]]
        else:
            plan[path[-1]] = to

    return change


OPS = ("gpus", 0, "threadblocks", 0, "ops")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (put("inplace", to="yes"), "no `true` or `false` as `inplace`"),
        (put("protocol", to=...), "found no `protocol`"),
        (put("min_message_size", to=2**64), "needed 0 to 2^64-1"),
        (put("gpus", 1, "input_chunks", to=-1), "found -1 as `input_chunks`"),
        (put("gpus", 1, to=3), "found no object"),
        (put("gpus", 0, "channels", 0, "channel_type", to="ib"), "found `ib` as `channel_type`, needed memory or port"),
        (put("gpus", 0, "channels", 0, "channel_type", to=["memory"]), "as `channel_type`"),
        (put("gpus", 0, "remote_buffers", 0, "access_channel_types", to=["switch"]), "needed memory or port"),
        (put("gpus", 0, "semaphores", to=[{}]), "found no `init_value`"),
        (put("gpus", 0, "threadblocks", 0, "channels", 0, "channel_ids", to=[True]), "whole numbers as `channel_ids`"),
        (put(*OPS, 0, to=7), "found no object"),
        (put(*OPS, 0, "name", to=7), "found no `name`"),
        (put(*OPS, 0, "channel_ids", to="0"), "whole numbers as `channel_ids`"),
        (put(*OPS, 3, "src_buff", to={}), "found no array in `src_buff`"),
        (put(*OPS, 3, "src_buff", 0, to=1), "needed an item"),
        (put(*OPS, 3, "src_buff", 0, "type", to="x"), "found `x` as `type`, needed i or o or s"),
        (put(*OPS, 3, "src_buff", 0, "index", to=-1), "as `index` of an item"),
        (put(*OPS, 3, "src_buff", 0, "size", to=True), "as `size` of an item"),
        (put(*OPS, 3, "src_buff", 0, to={"index": 0, "size": 1}), "an item has one of"),
        (put(*OPS, 3, "tbg_info", to={"tb_id": 2, "tbg_size": 2}), "slice 2 of 2"),
        (put(*OPS, 3, to={"name": "pipeline", "ops": []}), "found no `iter_context`"),
        (put(*OPS, 3, to={"name": "pipeline", "iter_context": {"unit_size": 0, "num_chunks": 1}}), "at least 1"),
    ],
)  # fmt: skip
def test_values_of_another_form_are_refused_with_their_place(change: Callable[[Json], None], found: str) -> None:
    plan = fresh()
    change(plan)
    (one,) = refusal(json.dumps(plan, indent=1)).diagnostics
    assert one.code == "C0661" and found in one.message and one.span is not None and one.span.line >= 1


def test_many_mistakes_are_reported_at_once_each_with_its_line() -> None:
    plan = ring_plan(3)
    plan["gpus"][0]["threadblocks"][0]["ops"][3]["src_buff"][0]["size"] = -2
    plan["gpus"][2]["threadblocks"][0]["ops"][0]["channel_ids"] = [-1]
    text = json.dumps(plan, indent=1)
    lines = [text.splitlines()[one.span.line - 1].strip() for one in refusal(text).diagnostics if one.span]
    assert lines == ['"size": -2', '"channel_ids": [']


@pytest.mark.parametrize(
    "gpu",
    [
        {"id": 0, "inputChunks": 2, "threadblocks": []},
        {"id": 0, "channels": [{"type": "sm", "connectedTo": [1]}], "threadblocks": []},
        {"id": 0, "threadblocks": [{"id": 0, "ops": [{"name": "rrcs"}]}]},
        {"id": 0, "threadblocks": [{"id": 0, "ops": [{"name": "put", "srcbuff": "i"}]}]},
    ],
)
def test_plans_of_version_0_7_are_named(gpu: Json) -> None:
    found = refusal(json.dumps({"name": "old", "gpus": [gpu]}))
    assert [one.code for one in found.diagnostics] == ["C0662"] and "0.7" in str(found)


def test_keys_that_no_runtime_reads_are_remarks() -> None:
    plan = ring_plan(3) | {"reuse_resource": True}
    (remark,) = read(json.dumps(plan)).remarks
    assert "`reuse_resource` of the plan (did you mean `reuse_resources`?)" in remark
    assert verify_text(json.dumps(plan)).ok


# ---- rules


def changed(*changes: Callable[[Json], None], packets: bool = False) -> Plan:
    """Return the ring of three ranks with changes."""
    plan = fresh(packets)
    for change in changes:
        change(plan)
    return read(json.dumps(plan))


@pytest.mark.parametrize(
    ("change", "code", "found"),
    [
        (put("protocol", to="LL128"), "C0666", "needed Simple or LL"),
        (put("num_threads_per_block", to=2048), "C0666", "2048 threads"),
        (put("min_message_size", to=2**64 - 1), None, ""),
        (put("buffer_alignment", to=0), "C0682", "divides"),
        (put("max_message_size", to=0), None, ""),
        (put("gpus", 1, "id", to=2), "C0664", "rank 2 stands at position 1"),
        (put("gpus", 1, "threadblocks", 0, "id", to=1), "C0664", "block 1 stands at position 0"),
        (put("gpus", 1, "input_chunks", to=0), "C0667", "divides"),
        (put("gpus", 1, "input_chunks", to=6), "C0667", "differ in size"),
        (put("collective", to="allgather"), "C0667", "needed 1 to 3"),
        (put("gpus", 0, "channels", 0, "connected_to", to=[0, 9]), "C0665", "a channel to rank 0"),
        (put("gpus", 0, "remote_buffers", 0, "rank", to=3), "C0665", "remote buffer 0 is of rank 3"),
        (put("gpus", 0, "threadblocks", 0, "channels", 0, "channel_ids", to=[0, 2]), "C0665", "memory channel 2"),
        (put(*OPS[:4], "remote_buffer_refs", 0, "remote_buffer_ids", to=[0, 7]), "C0665", "buffer 7"),
        (put(*OPS, 0, "channel_ids", to=[2]), "C0665", "names channel 2"),
        (put(*OPS, 3, "dst_buff", 0, "buffer_id", to=2), "C0665", "names remote buffer 2"),
        (put(*OPS, 2, to={"name": "sem_acquire", "semaphore_ids": [0]}), "C0665", "names semaphore 0"),
        (put(*OPS, 2, "name", to="glre"), "C0668", "no executor has it"),
        (put(*OPS, 2, "name", to="nope"), "C0668", "did you mean `nop`?"),
        (put(*OPS, 0, "channel_ids", to=[]), "C0666", "names no channel"),
        (put(*OPS, 3, "dst_buff", to=[]), "C0666", "found 0 destinations"),
        (put(*OPS, 3, "dst_buff", 0, to=local("i", 0)), "C0666", "is a local buffer, needed a remote buffer"),
        (put(*OPS, 3, "dst_buff", 0, "size", to=2), "C0666", "differ in size"),
        (put(*OPS, 3, "src_buff", 0, "size", to=0), "C0666", "no chunks"),
        (put(*OPS, 3, "name", to="pws"), "C0680", "over memory it puts and never signals"),
        (put(*OPS, 3, "channel_type", to="port"), "C0665", "remote buffer 0"),
        (put(*OPS, 8, "reduce_op", to="max"), "C0677", "adds whatever a plan says"),
    ],
)  # fmt: skip
def test_a_broken_rule_has_its_code(change: Callable[[Json], None], code: str | None, found: str) -> None:
    findings = broken_rules(changed(change))
    if code is None:
        assert not findings
        return
    assert any(one.code == code and found in one.message for one in findings), findings


def test_a_window_without_sizes_is_found() -> None:
    (one,) = broken_rules(changed(put("min_message_size", to=100), put("max_message_size", to=99)))
    assert one.code == "C0674"


@pytest.mark.parametrize(
    "change",
    [
        {"max_message_size": 0}, {"max_message_size": 47}, {"min_message_size": 49, "max_message_size": 95},
        {"min_message_size": 2**64 - 1}, {"min_message_size": 2**40}, {"buffer_alignment": 2**31 - 16},
    ],
)  # fmt: skip
def test_a_plan_that_serves_no_call_has_no_program(change: Json) -> None:
    """Three chunks of 16 bytes: calls are multiples of 48 bytes, and below 4 GiB."""
    plan = ring_plan(3) | change
    assert not verify_text(json.dumps(plan)).ok
    with pytest.raises(CollcError, match="serves no call") as found:
        load(read(json.dumps(plan)))
    assert [one.code for one in found.value.diagnostics] == ["C0674"]


def test_a_plan_for_one_size_serves_it() -> None:
    plan = ring_plan(3) | {"min_message_size": 48, "max_message_size": 48}
    assert load(read(json.dumps(plan))).collective.num_ranks == 3


@pytest.mark.parametrize(("name", "runtime"), [("recpkt", "0.8"), ("recspkt", "0.8"), ("gstorepkt", "0.9")])
def test_each_version_has_its_own_operations(name: str, runtime: str) -> None:
    plan = changed(put(*OPS, 1, "name", to=name), packets=True)
    codes = [one.code for one in broken_rules(plan, RUNTIMES[runtime])]
    assert codes.count("C0668") == 1
    assert "C0668" not in [one.code for one in broken_rules(plan, RUNTIMES["main"])]


def test_equal_operations_are_judged_by_what_their_own_block_has() -> None:
    # rank 0 has two channels and two remote buffers, rank 1 names the same numbers and has one of each
    block = ("gpus", 1, "threadblocks", 0)
    fewer = put(*block, "channels", 0, "channel_ids", to=[0])
    found = [one.message for one in broken_rules(changed(fewer))]
    assert found and all(text.startswith("rank 1, block 0") and "names channel 1" in text for text in found)
    plan = ring_plan(3)
    assert len(found) == sum(1 in op.get("channel_ids", ()) for op in plan["gpus"][1]["threadblocks"][0]["ops"])
    fewer = put(*block, "remote_buffer_refs", 0, "remote_buffer_ids", to=[0])
    found = [one.message for one in broken_rules(changed(fewer))]
    assert found and all(text.startswith("rank 1, block 0") and "names remote buffer 1" in text for text in found)


@pytest.mark.parametrize("rank", [0, 2])
def test_numbers_of_another_type_are_found_beside_equal_ones(rank: int) -> None:
    ops = ("gpus", rank, "threadblocks", 0, "ops")
    plan = fresh()
    put(*ops, 0, "channel_ids", to=[True])(plan)
    put(*ops, 3, "dst_buff", 0, "size", to=True)(plan)
    found = [one.message for one in refusal(json.dumps(plan)).diagnostics]
    assert ["`channel_ids`" in found[0], "`size`" in found[1]] == [True, True] and len(found) == 2


def test_items_of_pipelines_are_judged_too() -> None:
    inner = {"name": "put", "src_buff": [local("i", 0)], "dst_buff": [remote(5, 0)], "channel_type": "memory"}
    loop = {"name": "pipeline", "iter_context": {"unit_size": 16, "num_chunks": 1}, "ops": [signal("signal", 0), inner]}
    (one,) = broken_rules(changed(put(*OPS, 2, to=loop)))
    assert one.code == "C0665" and "rank 0, block 0, operation 3 (put)" in one.message
    report = verify_text(json.dumps(ring_plan(3) | {"gpus": [ring_plan(3)["gpus"][0]]}))
    assert [check.name for check in report.failed][-1] == "execution"


# ---- any text


def places(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, one in pairs for found in places(one, (*path, step)))]


VALUES: list[object] = [
    0, 1, -1, 3, 16, 2**31, 2**64, True, None, "", "i", "s", "port", "switch", "put", "re", "rre", "upkt", "glres",
    "pipeline", "sem_acquire", "barrier", "LL", "broadcast", "sendrecv", [], {}, [0], [[]], {"a": []},
]  # fmt: skip


def test_any_plan_gets_a_report_or_a_message() -> None:
    luck = random.Random(5)
    texts, verdicts = [json.dumps(ring_plan(3, packets=packets)) for packets in (False, True)], Counter[str]()
    for _ in range(2000 if EXHAUSTIVE else 250):
        plan = json.loads(luck.choice(texts))
        path = luck.choice(places(plan)[1:])
        put(*path, to=luck.choice([*VALUES, ...]))(plan)
        try:
            report = verify_text(json.dumps(plan), runtime=luck.choice([None, "0.8"]))
        except CollcError as refused:
            verdicts[refused.diagnostics[0].code] += 1
        else:
            verdicts["right" if report.ok else "wrong"] += 1
    assert {"C0661", "right", "wrong"} <= set(verdicts) <= {"C0660", "C0661", "C0662", "right", "wrong"}, verdicts
