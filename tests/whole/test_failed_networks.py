"""Networks with failures inside and around other operators: every target's result is right, or refused."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest
from failed_nets import TARGETS, drawn, fault
from sampling import every

import collc
import collc.driver.bounding
from collc.ir.costs.cost import Cost

NUMBERS = every(25, range(300), 3)


@pytest.mark.parametrize("number", NUMBERS)
def test_results_are_right_or_refused(number: int) -> None:
    text = drawn(random.Random(f"failed {number}"))
    assert fault(text, TARGETS[number % len(TARGETS)]) == "", text


def test_networks_are_drawn_alike_and_most_have_failures() -> None:
    texts = [drawn(random.Random(f"failed {number}")) for number in range(40)]
    assert texts == [drawn(random.Random(f"failed {number}")) for number in range(40)]
    assert sum("without(" in text or "degraded(" in text for text in texts) > 20
    assert any(text.count("without(") + text.count("degraded(") > 1 for text in texts)


# ---- planted faults

_TEXT = "topology t = without(torus(3, 2), {0 -> 1});\ncollective c = allgather on t;\nschedule c using bfb;\n"


def test_a_wrong_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = collc.driver.bounding.bounded

    def wrong(*arguments: Any) -> Cost:
        found = true(*arguments)
        return attrs.evolve(found, bound=attrs.evolve(found.bound, value=found.time_per_byte + 1))

    assert fault(_TEXT, "ir") == ""
    monkeypatch.setattr("collc.driver.bounding.bounded", wrong)
    assert "is beaten" in fault(_TEXT, "ir")


def test_a_time_that_is_not_the_cost_s_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cost, "time", lambda *_: 0)
    assert "the simulator says" in fault(_TEXT, "ir")


def test_a_file_that_is_not_verified_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collc, "verify", lambda path: _Refused())
    assert "is not verified" in fault(_TEXT, "msccl-xml{runtime=rccl}")


class _Refused:
    ok = False
