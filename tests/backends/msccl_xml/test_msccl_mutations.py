"""Single faults planted in right files: every harmful one is refused, no right file is; benchmarks/mutations.py."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import attrs
import pytest
from places import benchmark

pytestmark = pytest.mark.slow

mutations = benchmark("mutations")
XML = mutations.FORMATS["msccl-xml"]


@cache
def files() -> Any:
    return mutations.small_cases()


def test_right_files_are_not_refused() -> None:
    """Neither by verification nor by brute force, for the runtime they are for, at every split factor they allow."""
    assert len(files()) > 40
    assert mutations.false_alarms(XML, files(), 3) == []


def test_harmful_faults_are_refused() -> None:
    """210 faults, 30 of each kind: none that brute force sees go wrong is accepted."""
    outcome = mutations.survey(XML, files(), 210, seed=11, runs=25, kinds=XML.kinds)
    assert [(case.name, problem) for case, _, problem in outcome.missed] == []
    assert sum(outcome.fates.values()) == 210
    for kind in XML.kinds:
        assert sum(count for (k, _), count in outcome.fates.items() if k == kind) == 30
        assert outcome.fates[kind, "caught"] > 10, kind
    assert outcome.total("strict") < 20


@pytest.mark.parametrize("kind", XML.kinds)
def test_faults_are_single(kind: str) -> None:
    """A fault changes one line; an exchange of two steps changes two, which keep their numbers."""
    luck = random.Random(5)
    for case in files()[:12]:
        changed = XML.plant(case.text, kind, luck)
        before, after = case.text.split("\n"), changed.split("\n")
        lines = [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert len(lines) <= (2 if kind == "order" else 1)


def test_a_blind_verifier_would_be_seen() -> None:
    """Were nothing refused, the survey would say what was missed."""
    right = XML.verify(files()[0], files()[0].text)
    blind = attrs.evolve(XML, verify=lambda case, text: right)
    outcome = mutations.survey(blind, files()[:6], 35, seed=3, runs=10, kinds=XML.kinds)
    assert len(outcome.missed) > 20
    assert outcome.total("caught") == 0
