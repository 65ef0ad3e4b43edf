"""`collc cost`, `simulate` and `compile` of collectives that run together: text, JSON against the schemas, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from collc.tables.schemas import schema

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
