"""`auto` on switches that multicast and reduce: for targets that send and receive only, switches only forward."""

from __future__ import annotations

import pytest

from collc.driver.compilation import make_jobs
from collc.driver.compile import compile_collective
from collc.driver.plan import Recipe
from collc.driver.result import CollectiveResult, Settings
from collc.ir.diagnostic import CollcError
from collc.reading.coll import load_spec
from collc.reading.loading import Loading

GAIN = "switches only forward in files for"


def compiled(emits: str, using: str = "auto", kind: str = "allreduce") -> CollectiveResult:
    text = f"""topology net = subset(dgx_h100(1, 0, 1), {{0..3}});
        collective c = {kind} on net {{ size: 1 GiB }}; schedule c using {using}; {emits}"""
    jobs, _ = make_jobs(load_spec(text, "t.coll", Loading()))
    return compile_collective(jobs[0].request, jobs[0].targets, Settings(Recipe()))


def gains(result: CollectiveResult) -> list[str]:
    return [text for text in result.remarks if text.startswith(GAIN)]


@pytest.mark.parametrize("target", ["msccl-xml", "mpi-c", "oneccl-xml"])
def test_switches_only_forward(target: str) -> None:
    found = compiled(f"emit c as {target};")
    assert found.schedule is not None and not found.schedule.in_network
    (text,) = gains(found)
    assert "with switches that multicast and reduce" in text and "1 GiB" in text


def test_switches_take_part() -> None:
    for emits in ("", "emit c as mscclpp-json;", "emit c as ir { level: schedule };"):
        found = compiled(emits)
        assert found.schedule is not None and found.schedule.in_network and not gains(found)


def test_each_target_has_its_schedule() -> None:
    both = compiled("emit c as mscclpp-json; emit c as msccl-xml;")
    assert both.schedule is not None and both.schedule.in_network and len(gains(both)) == 1
    assert [target.name for target, _ in both.emitted] == ["mscclpp-json", "msccl-xml"]


def test_a_forest_by_name_is_refused() -> None:
    with pytest.raises(CollcError) as failure:
        compiled("emit c as msccl-xml;", "forest")
    assert [one.code for one in failure.value.diagnostics] == ["C0578"]
