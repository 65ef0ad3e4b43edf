"""What `collc cost` and `collc simulate` say of shards that differ in size."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from uneven_runs import collective

import collc
from collc.cli import main
from collc.ir.collective import UNEVEN
from collc.ir.spec import Problem
from collc.ir.text import print_ir
from collc.passes import PASSES
from collc.tables.schemas import schema


def saved(folder: Path, scheduler: str, kind: str, sizes: list[int], network: str = "torus(3, 3)") -> str:
    net = collc.topology(network)
    schedule = PASSES.load(scheduler)().run(Problem(net, collective(kind, net.num_ranks, sizes, 2)))
    path = folder / "parts.ir"
    path.write_text(print_ir(schedule))
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


SIZES = {kind: [v % 6 for v in range(81 if kind == "alltoall" else 9)] for kind in UNEVEN}


@pytest.mark.parametrize("kind", UNEVEN)
def test_the_cost_states_weights_and_what_other_counts_take(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler = "forest" if kind in ("allgather", "reduce-scatter") else "flow"
    path = saved(tmp_path, scheduler, kind, SIZES[kind])
    text = printed(capsys, "cost", path)
    assert f"{UNEVEN[kind]} on 9 ranks" in text and "met: no schedule is faster" in text
    assert "optimal for these weights" in text and "right for any" in text and "max(count / weight)" in text
    assert "no limit if a shard of weight 0 has data" in text
    found = json.loads(printed(capsys, "cost", path, "--json"))
    jsonschema.validate(found, schema("cost"))
    assert found["weights"] == SIZES[kind] and found["counts_limit"] is None and found["bound_met"]
    assert found["collective"] == UNEVEN[kind] and all(one["busbw_GBps"] for one in found["points"])


def test_weights_above_0_limit_the_time_of_all_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "bfb", "allgather", [1, 2, 3, 4, 5, 6, 7, 8, 9])
    text = printed(capsys, "cost", path)
    assert "planned for these weights" in text and "no limit" not in text and ", .." in text
    found = json.loads(printed(capsys, "cost", path, "--json"))
    assert found["counts_limit"] == "max(count / weight)" and found["whole_weight"] == 45


def test_the_diagonal_of_an_alltoallv_does_not_matter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "flow", "alltoall", [int(v % 10 > 0) for v in range(81)])
    assert "no limit" not in printed(capsys, "cost", path)


def test_an_even_collective_has_no_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "even.coll"
    path.write_text("collective parts = allgather on torus(3, 3);\n")
    assert "weights" not in printed(capsys, "cost", str(path))
    assert "weights" not in json.loads(printed(capsys, "cost", str(path), "--json"))


def test_the_simulator_names_the_collective(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "forest", "allgather", SIZES["allgather"])
    assert "allgatherv on 9 ranks" in printed(capsys, "simulate", path)
    assert json.loads(printed(capsys, "simulate", path, "--json"))["collective"] == "allgatherv"
