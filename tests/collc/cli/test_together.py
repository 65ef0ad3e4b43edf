"""`collc cost`, `simulate` and `compile` of collectives that run together: text, JSON against the schemas, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from collc.tables.schemas import schema

pytestmark = pytest.mark.slow

TEXT = """
topology pod = dgx_h100(2);
together {
  for b in 0..2 { collective tp[b] = allreduce on pod among {gpu[b, g] for g in 0..8} { size: 64 MiB }; }
  for g in 0..8 { collective dp[g] = allgather on pod among {gpu[b, g] for b in 0..2} { size: 64 MiB }; }
}
schedule tp using forest;
schedule dp using forest;
"""


def written() -> str:
    Path("pod.coll").write_text(TEXT)
    return "pod.coll"


def required(name: str, text: str) -> dict[str, Any]:  # Any: JSON
    found: dict[str, Any] = json.loads(text)  # Any: JSON
    Draft202012Validator(schema(name)).validate(found)
    return found


def test_cost_prints_the_whole(collc: Callable[..., Any]) -> None:  # Any: what the command printed
    ran = collc("cost", written())
    assert ran.status == 0, ran.err
    assert "tp[0]: allreduce on 8 of 16 ranks" in ran.out
    assert ran.out.endswith(
        "together: 10 collectives (tp[0], tp[1], dp[0], dp[1], ..)\n"
        "  time   671.1 us  by the loads of all, most on gpu[0, 0] -> ib\n"
        "  bound  671.1 us  met: no schedules are faster\n"
    )
    (whole,) = required("cost", collc("cost", "pod.coll", "--json").out)["together"]
    assert whole["ratio"] == "1"
    assert whole["certificate"]["kind"] == "joint-cuts"
    assert whole["certificate"]["cuts"][0]["collective"] == "dp[0]"


def test_simulate_gives_each_its_part(collc: Callable[..., Any]) -> None:  # Any: as above
    ran = collc("simulate", written())
    assert ran.status == 0, ran.err
    assert ran.out.endswith("  time  681.1 us, each on its part of every link\n")
    (whole,) = required("simulate", collc("simulate", "pod.coll", "--json").out)["together"]
    assert len(whole["collectives"]) == 10


def test_one_of_a_block_has_its_part_and_no_whole(collc: Callable[..., Any]) -> None:  # Any: as above
    ran = collc("cost", written(), "--collective", "tp[0]")
    assert ran.status == 0 and "together" not in ran.out


def test_files_of_a_block(collc: Callable[..., Any]) -> None:  # Any: as above
    ran = collc(written(), "-t", "msccl-xml", "-o", "out/", "--json")
    assert ran.status == 0, ran.err
    assert required("compile", ran.out)["program"]["participants"] == list(range(8))
    assert len(list(Path("out").iterdir())) == 10


CROSSED = """
topology pod = mesh(3, 3);
together {
  collective a = allreduce on pod among {1, 3, 5, 7} { size: 1 MiB };
  collective b = allreduce on pod among {0, 2, 4, 8} { size: 1 MiB };
}
schedule a using forest;
schedule b using forest;
"""


def test_cost_prints_bounds_of_all_schedules_and_of_trees(collc: Callable[..., Any]) -> None:  # Any: as above
    Path("pod.coll").write_text(CROSSED)
    ran = collc("cost", "pod.coll")
    assert ran.status == 0, ran.err
    time, bound, trees = ran.out.splitlines()[-3:]
    assert time.startswith("  time ") and bound.startswith("  bound ")
    assert trees.startswith("  trees ") and trees.endswith("met: no schedules by trees are faster")
    (whole,) = required("cost", collc("cost", "pod.coll", "--json").out)["together"]
    assert whole["time"] == whole["tree_time_bound"]
    assert whole["time_bound_float"] < whole["tree_time_bound_float"]
    assert whole["tree_certificate"]["kind"] == "joint-prices"
    assert len(whole["tree_certificate"]["prices"]) == 24


def test_ranks_relay_only_for_targets_that_can_express_it(collc: Callable[..., Any]) -> None:  # Any: as above
    """The NIC of a GPU has half of its bandwidth; other GPUs could relay, but not in files for the executor."""
    text = TEXT.replace("dgx_h100(2)", "degraded(dgx_h100(2), {gpu[1, 3]}, 0.5)").replace("allgather", "allreduce")
    Path("pod.coll").write_text(text)
    (free,) = json.loads(collc("cost", "pod.coll", "--json").out)["together"]
    Path("pod.coll").write_text(text + "emit tp as msccl-xml;\nemit dp as msccl-xml;\n")
    (bound,) = json.loads(collc("cost", "pod.coll", "--json").out)["together"]
    assert free["time_float"] < bound["time_float"]
    ran = collc("pod.coll", "-o", "out/")
    assert ran.status == 0, ran.err


def test_ranks_do_not_relay_for_schedulers_without_relays(collc: Callable[..., Any]) -> None:  # Any: as above
    """Rows could use the columns' links, but `bfb` takes no relays."""
    text = """
topology pod = torus(4, 4);
together {
  for r in 0..4 { collective row[r] = allgather on pod among {4 * r + c for c in 0..4} { size: 4 MiB }; }
  collective far = allgather on pod among {0, 5, 10, 15} { size: 1 MiB };
}
schedule row using bfb;
schedule far using forest;
"""
    Path("pod.coll").write_text(text)
    ran = collc("cost", "pod.coll")
    assert ran.status == 0, ran.err
    Path("pod.coll").write_text(text.replace("using bfb", "using forest"))
    ran = collc("cost", "pod.coll", "--json")
    (whole,) = json.loads(ran.out)["together"]
    assert whole["time_float"] <= 1.02 * whole["time_bound_float"]
