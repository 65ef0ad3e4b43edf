"""Workloads from files: what is read, and the place, what was found and what was needed of each mistake."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import benchmark

from collc.ir.costs.training import Layer
from collc.ir.diagnostic import CollcError
from collc.training.reading import BUCKETS, read_workload, shipped, shipped_text

TWO = """{"workload": "two", "ranks": 4, "buckets": ["1 KiB", 5], "layers": [
  {"name": "a", "gradient": "2 KB", "forward": "1.5 ms", "backward": "3 ms"},
  {"repeat": 2, "layers": [{"name": "b"}, {"name": "c", "repeat": 2, "alltoall": 7}]}]}"""


def test_sizes_times_and_groups() -> None:
    found = read_workload(TWO, "two.json")
    assert found.layers[0] == Layer("a", 2000, Fraction(3, 2000), Fraction(3, 1000))
    assert [layer.name for layer in found.layers[1:]] == ["b 1", "c 1 1", "c 2 1", "b 2", "c 1 2", "c 2 2"]
    assert (found.ranks, found.buckets, found.alltoalls, found.gradient) == (4, (1024, 5), 16, 2000)
    assert read_workload('{"workload": "w", "layers": [{"name": "a"}]}', "w").buckets == BUCKETS


#: text, a part of which is the wrong one -> the message, and the text at its place
WRONG = [
    ('{"workload": "w", "layers": [{"name": "a", "forward": "40"}]}', "needed a time such as 1.5 ms", '"40"'),
    ('{"workload": "w", "layers": [{"name": "a", "forward": 40}]}', "found `40`, needed a time with its unit", "40"),
    ('{"workload": "w", "layers": [{"name": "a", "forward": true}]}', "found true, needed a time", "true"),
    ('{"workload": "w", "layers": [{"name": "a", "gradient": "5 mb"}]}', "found `5 mb`, needed a size", '"5 mb"'),
    ('{"workload": "w", "layers": [{"name": "a", "gradient": -5}]}', "found `-5`, needed bytes", "-5"),
    ('{"workload": "w", "layers": [{"name": "a", "gradient": [1]}]}', "found an array of 1 value", "[1]"),
    ('{"workload": "w", "layers": [{"name": "a", "bytes": 5}]}', "found the key `bytes`, which a layer does", "5"),
    ('{"workload": "w", "layers": [{"gradient": 5}]}', "found no `name`, needed a text", '{"gradient": 5}'),
    ('{"workload": "w", "layers": [7]}', "found a number, needed a layer", "7"),
    ('{"workload": "w", "layers": [{"repeat": 0, "layers": []}]}', "found `0` as `repeat`, needed a whole number", "0"),
    ('{"workload": "w", "layers": [{"repeat": 99999, "name": "a"}]}', "found more than 10000 layers", '{"repeat"'),
    ('{"workload": "w", "layers": []}', "found no layer, needed at least one", "[]"),
    ('{"workload": "w"}', "found no `layers`, needed an array of layers", '{"workload"'),
    ('{"layers": [{"name": "a"}]}', "found no `workload`, needed a text", '{"layers"'),
    ('{"workload": "w", "buckets": [0], "layers": [{"name": "a"}]}', "needed sizes of more than 0 B", "[0]"),
    ('{"workload": "w", "ranks": 1.5, "layers": [{"name": "a"}]}', "found `3/2` as `ranks`", "1.5"),
    ("[]", "found an array of 0 values, needed a workload", "[]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "place"), WRONG)
def test_a_mistake_has_its_place_what_was_found_and_what_is_needed(text: str, message: str, place: str) -> None:
    with pytest.raises(CollcError) as caught:
        read_workload(text, "w.json")
    (problem,) = caught.value.diagnostics
    assert problem.code == "C0990" and message in problem.message
    assert problem.span is not None and text[problem.span.column - 1 :].startswith(place)


_keys = st.sampled_from(["workload", "layers", "name", "gradient", "forward", "alltoall", "repeat", "buckets", "ranks"])
_values = st.none() | st.booleans() | st.integers(-5, 1 << 70) | st.floats() | st.text(max_size=6) | st.just("5 us")
_json = st.recursive(_values, lambda one: st.lists(one, max_size=3) | st.dictionaries(_keys, one, max_size=4))


@given(_json, st.dictionaries(_keys, _json, max_size=3))
def test_any_json_is_a_workload_or_gets_a_message(value: object, more: dict[str, object]) -> None:
    for text in (json.dumps(value), json.dumps({"workload": "w", "layers": [{"name": "a"}, value], **more})):
        try:
            found = read_workload(text, "any.json")
        except CollcError as problem:
            assert problem.diagnostics[0].code in ("C0990", "C0928")
        else:
            assert found.layers and all(bucket > 0 for bucket in found.buckets)


def test_text_that_is_no_json() -> None:
    with pytest.raises(CollcError, match="C0928"):
        read_workload('{"workload": ', "w.json")


def test_nested_groups_of_any_number_are_refused_before_they_are_made() -> None:
    text = '{"name": "a"}'
    for _ in range(60):
        text = f'{{"repeat": 1000000000, "layers": [{text}]}}'
    with pytest.raises(CollcError, match="more than 10000 layers"):
        read_workload(f'{{"workload": "w", "layers": [{text}]}}', "w.json")


# ---- what comes with collc

#: workload -> published parameters in billions
PUBLISHED = {"gpt2-xl": 1.56, "llama3-8b": 8.03, "llama3-70b": 70.6, "switch-base-256": 14.7, "switch-c-2048": 1571}


def test_shipped_files_are_what_the_hyperparameters_give() -> None:
    made = benchmark("workloads")
    assert made.texts() == {f"{name}.json": shipped_text(name) for name in shipped()}
    for name, billions in PUBLISHED.items():
        assert made.WORKLOADS[name].model.parameters / 1e9 == pytest.approx(billions, rel=0.005)


@pytest.mark.parametrize("name", shipped())
def test_shipped_workloads_name_their_source_and_what_is_assumed(name: str) -> None:
    found = read_workload(shipped_text(name), name)
    assert (found.name, found.buckets) == (name, BUCKETS)
    assert "arXiv" in found.source or "checkpoint" in found.source
    assert "TFLOP/s" in found.assumed and found.summary
    if found.alltoalls == 0:  # every parameter is replicated, in two bytes
        assert found.gradient == 2 * benchmark("workloads").WORKLOADS[name].model.parameters
    assert json.loads(shipped_text(name))["workload"] == name
