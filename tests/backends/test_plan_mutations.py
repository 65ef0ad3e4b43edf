"""Faults in right plans of MSCCL++: what brute force finds harmful, verification refuses."""

from __future__ import annotations

import json
import random

import pytest
from plan_faults import KINDS, conflicts, plant
from plan_judge import judge, judge_folder
from plan_texts import right_plans, ring_plan
from sampling import EXHAUSTIVE

from collc.backends.mscclpp_environment import plan_file, require_together
from collc.backends.mscclpp_json import verify_text
from collc.ir.diagnostic import CollcError

PLANS = right_plans()
RUNS = 60 if EXHAUSTIVE else 6


def refused(plan: dict[str, object]) -> bool:
    try:
        return not verify_text(json.dumps(plan)).ok
    except CollcError:
        return True


@pytest.mark.parametrize("name", PLANS)
def test_right_plans_are_accepted(name: str) -> None:
    report = verify_text(json.dumps(PLANS[name]))
    assert report.ok, report.failed
    assert judge(PLANS[name], RUNS) == ""


def test_two_ranks_with_a_channel_for_each_direction_wait_for_ever() -> None:
    assert "never ends" in judge(ring_plan(2), 1)
    assert refused(ring_plan(2))


@pytest.mark.parametrize("kind", KINDS)
def test_harmful_faults_are_refused(kind: str) -> None:
    luck, planted = random.Random(kind), 0
    for name in sorted(PLANS, key=lambda _: luck.random()):
        wrong = plant(PLANS[name], kind, luck)
        if wrong == PLANS[name]:
            continue
        planted += 1
        problem = "" if refused(wrong) else judge(wrong, RUNS)
        assert not problem, f"{kind} in {name}: accepted, but {problem}"
        if planted == (len(PLANS) if EXHAUSTIVE else 3):
            break
    assert planted, f"no plan has a place for {kind}"


@pytest.mark.parametrize("problem", ["two plans for one call", "one name", "two in-place modes", ""])
def test_folders_of_two_plans(problem: str) -> None:
    folders = [plans for found, plans in conflicts(PLANS["reads"]) if found == problem]
    assert folders
    for plans in folders:
        assert bool(judge_folder(plans)) == bool(problem)
        files = [plan_file(f"{k}.json", json.dumps(plan)) for k, plan in enumerate(plans)]
        if problem:
            with pytest.raises(CollcError):
                require_together(files)
        else:
            require_together(files)
