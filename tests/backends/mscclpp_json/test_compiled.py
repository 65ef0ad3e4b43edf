"""Compiled plans: of every collective and option, read anew as any tool's plan, within the limits, and right."""

from __future__ import annotations

import json

import pytest
from sampling import every

import collc
from collc.backends.mscclpp_json import verify_text
from collc.ir.diagnostic import CollcError

NETWORKS = {"biring(4)": "auto", "hypercube(3)": "auto", "complete(3)": "auto", "torus(3, 2)": "bfb"}
KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce", "gather", "scatter", "alltoall")
OPTIONS = (
    "", "protocol=LL", "protocol=Simple", "inplace=true,protocol=LL", "inplace=true,protocol=Simple,runtime=0.8",
    "ranks-per-node=1,protocol=Simple", "ranks-per-node=2,protocol=LL", "instances=2,gpu=h100", "shares=2,runtime=main",
)  # fmt: skip
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
TRIED = [
    (net, kind, options)
    for net in NETWORKS for kind in KINDS for options in OPTIONS
    if NETWORKS[net] == "auto" or kind in ("allreduce", "allgather", "reduce-scatter")
]  # fmt: skip


@pytest.mark.parametrize(("net", "kind", "options"), every(11, TRIED, 3))
def test_compiled_plans_are_right(net: str, kind: str, options: str) -> None:
    root = ", root: 1" if kind in ROOTED else ""
    text = f"topology t = {net}; collective c = {kind} on t {{ size: 64 KiB{root} }}; schedule c using {NETWORKS[net]};"
    plan = collc.compile_source(text, target=f"mscclpp-json{{{options}}}").artifacts["c"].text
    runtime = next((one for one in ("0.8", "main") if one in options), "0.9")
    report = verify_text(plan, runtime=runtime, multiprocessors=132)
    assert report.ok, report.failed
    assert (report.collective, json.loads(plan)["inplace"]) == (kind, "inplace=true" in options)
    checked = next((check.detail for check in report.checks if check.name == "root"), "tried with root 1")
    assert checked == "tried with root 1", "of all roots it is right for this one"


def test_members_are_the_ranks_of_the_plan() -> None:
    text = "topology t = torus(2, 4); collective c = allreduce on t among {1, 2, 5, 6};"
    plan = collc.compile_source(text, target="mscclpp-json{inplace=true}").artifacts["c"].text
    assert len(json.loads(plan)["gpus"]) == 4
    assert verify_text(plan).ok


def test_files_of_several_sizes_do_not_overlap_and_small_ones_use_packets() -> None:
    text = "topology t = torus(4, 4); collective c = allreduce on t; schedule c using auto { sizes: 1 KiB..64 MiB };"
    result = collc.compile_source(text, target="mscclpp-json")
    plans = sorted(
        (json.loads(file.text) for one in result.collectives.values() for _, files in one.emitted for file in files),
        key=lambda plan: plan["min_message_size"],
    )
    assert [plan["protocol"] for plan in plans] == ["LL", "Simple"] and len({plan["name"] for plan in plans}) == 2
    assert plans[0]["max_message_size"] < plans[1]["min_message_size"]


def test_too_few_multiprocessors_reduce_chunks_or_are_refused_with_a_hint() -> None:
    text = "topology t = biring(12); collective c = allreduce on t; schedule c using ring;"
    with pytest.raises(CollcError) as refused:
        collc.compile_source(text, target="mscclpp-json{gpu=2,protocol=Simple}")
    assert {one.code for one in refused.value.diagnostics} <= {"C0572", "C0509", "C0673"}
    assert all(one.hint for one in refused.value.diagnostics)
