"""Plans are read and judged the same way whether equal lines and columns are used or not."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_faults import KINDS, plant
from plan_texts import ring_plan

from collc.backends.mscclpp_json import reader, structure
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.runtimes import RUNTIMES
from collc.ir.diagnostic import CollcError

Json = Any  # values of JSON

MORE = {
    "unknown key": lambda op: {**op, "colour": 3},
    "no name": lambda op: {key: value for key, value in op.items() if key != "name"},
    "another name": lambda op: {**op, "name": "putt"},
    "old name": lambda op: {**op, "name": "rs"},
    "a text": lambda op: "nop",
    "a fraction": lambda op: {**op, "barrier_id": 1.5},
    "true for 1": lambda op: {**op, "channel_ids": [True]},
    "too large": lambda op: {**op, "barrier_id": 2**31},
    "many digits": lambda op: {**op, "barrier_id": 10**30},
    "of another type": lambda op: {**op, "channel_type": "proxy"},
    "a channel more": lambda op: {**op, "channel_ids": [99]},
    "a semaphore": lambda op: {**op, "semaphore_ids": [99]},
    "another sum": lambda op: {**op, "reduce_op": "min"},
    "a pipeline": lambda op: {"name": "pipeline", "iter_context": {"unit_size": 64, "num_chunks": 1}, "ops": [op, op]},
    "a slice": lambda op: {**op, "tbg_info": {"tb_id": 0, "tbg_size": 2}},
    "no slice": lambda op: {**op, "tbg_info": {"tb_id": 2, "tbg_size": 2}},
    "an item": lambda op: {**op, "src_buff": [{"type": "i", "index": 0, "size": 1}]},
    "an empty item": lambda op: {**op, "dst_buff": [{"type": "s", "index": 0, "size": 0}]},
    "an item behind a switch": lambda op: {**op, "dst_buff": [{"switch_channel_id": 0, "index": 0, "size": 1}]},
}  # fmt: skip


def lined(plan: Json) -> str:
    """Return the text of a plan with an operation on each line, as the writer has it."""
    lines: list[str] = []

    def marked(op: Json) -> Json:
        if isinstance(op, dict) and op.get("name") == "pipeline":
            return {**op, "ops": [marked(one) for one in op["ops"]]}
        lines.append(json.dumps(op))
        return f"@{len(lines) - 1}@"

    copied = json.loads(json.dumps(plan))
    for gpu in copied["gpus"]:
        for block in gpu["threadblocks"]:
            block["ops"] = [marked(op) for op in block["ops"]]
    text = json.dumps(copied, indent=1)
    for number, line in enumerate(lines):
        text = text.replace(f'"@{number}@"', line)
    return text


def outcome(text: str) -> object:
    try:
        return read(text, "plan.json")
    except CollcError as refused:
        return [(one.code, one.message, str(one.span), one.notes) for one in refused.diagnostics]


def both_ways(text: str, patch: pytest.MonkeyPatch) -> bool:
    """Compare what is read, and what is found wrong; return whether equal lines were used."""
    quick = reader._by_lines(text)
    found = outcome(text)
    with patch.context() as within:
        within.setattr(reader, "_by_lines", lambda text: None)
        assert outcome(text) == found
    if not isinstance(found, list):
        for runtime in (None, RUNTIMES["0.8"]):
            findings = structure.broken_rules(found, runtime)
            with patch.context() as within:
                within.setattr(structure, "are_sound", lambda plan, kinds, runtime: False)
                assert structure.broken_rules(found, runtime) == findings
    return quick is not None


@pytest.mark.parametrize("packets", [False, True])
def test_right_plans(packets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ring_plan(4, packets=packets)
    assert both_ways(lined(plan), monkeypatch)
    assert read(lined(plan)) == read(json.dumps(plan))
    monkeypatch.setattr(structure, "_block", lambda *_: pytest.fail("nothing is wrong, so no reason is looked for"))
    assert structure.broken_rules(read(lined(plan)), RUNTIMES["0.9"]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_plans_with_faults(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for packets in (False, True):
        for seed in range(3):
            plan = plant(json.loads(json.dumps(ring_plan(3, packets=packets))), kind, random.Random(f"{kind} {seed}"))
            both_ways(lined(plan), monkeypatch)


@pytest.mark.parametrize("change", MORE)
def test_operations_of_other_forms(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for packets in (False, True):
        plan = json.loads(json.dumps(ring_plan(3, packets=packets)))
        ops = plan["gpus"][1]["threadblocks"][0]["ops"]
        for at in range(0, len(ops), 2):
            kept, ops[at] = ops[at], MORE[change](ops[at])
            both_ways(lined(plan), monkeypatch)
            ops[at] = kept


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"name": "nop"}', '{"name": "nop", "name": "nop"}'),
        ('{"name": "nop"}', '{"name": "nop"}, {"name": "nop"}'),
        ('{"name": "nop"}', '{"name": "nop"]'),
        ('{"name": "nop"}', '{"name": "n\\u006fp"}'),
        ('{"name": "nop"}', '{"name": "\x7f1"}'),
        ('{"name": "nop"}', '"\x7f1"'),
        ('{"name": "nop"}', '{"name": NaN}'),
        ('{"name": "nop"}', '{"name":\n"nop"}'),
        ('{"name": "nop"}', '\xa0{"name": "nop"}'),
        ('"Simple"', '\n{"name": "nop"}\n'),
        ('"gpus": [', '"gpus": [\n{"name": "nop"},\n'),
        ('"semaphores": []', '"semaphores": [\n{"name": "nop"}\n]'),
        ('"gpus"', '"name": "x", "gpus"'),
        ('"index": 0', '"index": 00'),
        ('"index": 0', '"index": -1'),
        ('"index": 0', '"index": true'),
        ('"index": 0', '"index": 99999999999'),
        ('"size": 1}', '"size": 1, "more": 2}'),
        ('"size": 1}', '"size": 1, "size": 2}'),
        ('"size": 1}', '"size": 1}, {}'),
        ('"type": "i"', '"type": "x"'),
        ('"type": "i"', '"type": "i", "buffer_id": 0'),
        ('"memory"}', '"nvlink"}'),
        ('"name": "put"', '"name": "putt"'),
        ('"src_buff": [', '"src_buff": [[], '),
    ],
)
def test_unusual_lines(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = lined(ring_plan(3))
    assert old in text and reader._by_lines(text) is not None
    both_ways(text.replace(old, new, 1), monkeypatch)
    both_ways(text.replace(old, new), monkeypatch)


@given(st.data())
def test_lines_that_change_places(data: st.DataObject) -> None:
    lines = lined(ring_plan(3)).split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        one, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines[one], lines[other] = lines[other], lines[one]
    with pytest.MonkeyPatch.context() as patch:
        both_ways("\n".join(lines), patch)


def test_a_blind_reader_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were names that stand twice not counted, the comparison would say so."""
    text = lined(ring_plan(3)).replace('{"name": "nop"}', '{"name": "nop", "name": "nop"}')
    monkeypatch.setattr(reader, "_names", lambda op: 2 * len(op) if op == {"name": "nop"} else _names(op))
    with pytest.raises(AssertionError):
        both_ways(text, monkeypatch)


_names = reader._names
