"""Single faults planted in right plans: every harmful one is refused, no right plan is; benchmarks/mutations.py."""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs
import pytest
from places import benchmark

pytestmark = pytest.mark.slow

mutations = benchmark("mutations")
PLANS = mutations.FORMATS["mscclpp-json"]


@cache
def files() -> Any:
    return PLANS.cases(True)[:12]  # written by hand


def test_right_plans_are_not_refused() -> None:
    assert len(files()) == 12
    assert mutations.false_alarms(PLANS, files(), 2) == []


def test_folders_of_two_plans() -> None:
    assert mutations.folders(files()[:3]) == []


def test_harmful_faults_are_refused() -> None:
    """Each kind of fault, in turn: none that brute force sees go wrong is accepted."""
    count = len(PLANS.kinds)
    outcome = mutations.survey(PLANS, files(), count, seed=11, runs=4, kinds=PLANS.kinds)
    assert [(case.name, problem) for case, _, problem in outcome.missed] == []
    assert sum(outcome.fates.values()) == count
    assert outcome.total("caught") > count // 2


def test_a_blind_verifier_would_be_seen() -> None:
    """Were nothing refused, the survey would say what was missed."""
    right = PLANS.verify(files()[0], files()[0].text)
    blind = attrs.evolve(PLANS, verify=lambda case, text: right)
    outcome = mutations.survey(blind, files()[:6], 20, seed=3, runs=4, kinds=PLANS.kinds)
    assert len(outcome.missed) > 5
    assert outcome.total("caught") == 0
