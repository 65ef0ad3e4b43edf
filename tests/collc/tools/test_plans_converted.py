"""Plans of MSCCL++ as input: conversion to other targets, and as programs that run and that the simulator times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from msccl_published import PUBLISHED
from plan_texts import right_plans, ring_plan

from collc.backends.msccl_xml import verify_text as verify_xml
from collc.backends.mscclpp_json import verify_text as verify_plan
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.verify import load
from collc.backends.oneccl_xml import verify_text as verify_oneccl
from collc.ir.program import Program
from collc.ir.verify import verify_program
from collc.reading import load as load_format
from collc.reading.base import ReadOptions
from collc.reading.mscclpp import two_sided_program

Collc = Callable[..., Ran]
PLANS = right_plans()
TWO_SIDED = sorted(set(PLANS) - {"switch"})


def write(name: str = "plan.json", plan: str = "ring of 3") -> str:
    Path(name).write_text(json.dumps(PLANS[plan]))
    return name


@pytest.mark.parametrize("name", TWO_SIDED)
def test_a_plan_is_right_in_both_modes_as_a_program(name: str) -> None:
    program = two_sided_program(load(read(json.dumps(PLANS[name]))))
    report = verify_program(program, fifo_depth=1)
    assert report.ok, report.failed


@pytest.mark.parametrize("name", ["ring of 3", "ring of 3, packets", "reads", "slices", "all pairs"])
def test_plans_become_files_of_other_runtimes(name: str, collc: Collc, tmp_path: Path) -> None:
    path = write(plan=name)
    for target, verify in (("msccl-xml", verify_xml), ("oneccl-xml", verify_oneccl), ("mscclpp-json", verify_plan)):
        out = tmp_path / target
        ran = collc("convert", path, "-t", target, "-o", str(out))
        assert (ran.status, ran.err) == (0, "")
        assert verify(out.read_text()).ok
    assert collc("convert", path, "-t", "mpi-c", "-o", str(tmp_path / "a.c")).status == 0


def test_a_plan_keeps_its_arrangement_in_a_plan(collc: Collc) -> None:
    ran = collc("convert", write(), "-t", "mscclpp-json", "-o", "-")
    assert [[op["name"] for op in gpu["threadblocks"][0]["ops"]] for gpu in json.loads(ran.out)["gpus"]] == [
        [op["name"] for op in gpu["threadblocks"][0]["ops"]] for gpu in ring_plan(3)["gpus"]
    ]


def test_what_a_switch_does_is_refused_with_the_operation(collc: Collc) -> None:
    ran = collc("convert", write(plan="switch"), "-t", "msccl-xml", "-o", "-")
    assert "C0576" in ran.err
    assert "`glres`" in ran.err
    assert collc("convert", "plan.json", "-t", "mscclpp-json", "-o", "-").status == 0


def test_a_wrong_plan_is_refused(collc: Collc) -> None:
    Path("plan.json").write_text(json.dumps(ring_plan(2)))
    ran = collc("convert", "plan.json", "-t", "msccl-xml", "-o", "-")
    assert ran.status == 1
    assert "is wrong" in ran.err


def test_a_plan_is_simulated_like_its_schedule(collc: Collc) -> None:
    ran = collc("simulate", write(plan="ring of 4"))
    assert ran.status == 0
    assert "1/4 of the vector" in ran.out
    _, program = load_format(json.dumps(PLANS["ring of 4"]), "plan.json", "simulate", ReadOptions())
    assert isinstance(program, Program)


@pytest.mark.needs("mpi")
def test_a_plan_runs_over_mpi(collc: Collc) -> None:
    ran = collc("run", write(plan="ring of 3, packets"), "--count", "0,1,7,100")
    assert ran.status == 0
    assert "wrong" not in ran.out


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_files_of_msccl_become_plans(name: str, collc: Collc) -> None:
    """Those for one mode become plans for that mode."""
    Path("a.xml").write_text(PUBLISHED[name])
    ran = collc("convert", "a.xml", "-t", "mscclpp-json", "-o", "a.json")
    assert ran.status == 0, ran.err
    assert verify_plan(Path("a.json").read_text()).ok
    for wrong in (True, False):
        ran = collc("convert", "a.xml", "-t", f"mscclpp-json{{inplace={str(wrong).lower()}}}", "-o", "b.json")
        assert ran.status == 0, ran.err
        assert json.loads(Path("b.json").read_text())["inplace"] is wrong
