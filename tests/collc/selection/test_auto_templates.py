"""`auto` on large symmetric networks: its candidates are the templates that a compilation takes."""

from __future__ import annotations

import pytest

import collc
from collc.cli import main
from collc.ir.collective import Collective
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.selection import Auto, Selector

MIB = 1 << 20


@pytest.mark.parametrize(
    ("network", "kind", "scheduler"),
    [
        ("dgx_a100(128)", "allgather", "forest"), ("dgx_a100(128)", "allreduce", "forest"),
        ("torus(32, 32)", "allreduce", "swing"), ("torus(32, 32)", "allgather", "swing"),
        ("torus(20, 20)", "alltoall", "flow"),
    ],
)  # fmt: skip
def test_files_of_large_networks_hold_the_first_ranks(network: str, kind: str, scheduler: str) -> None:
    compiled = collc.compile_source(f"collective g = {kind} on {network};", target="mpi-c")
    result = compiled["g"]
    assert isinstance(result.schedule, SymmetricSchedule) and result.schedule.scheduler == scheduler
    assert sum(len(file.content) for file in compiled.files.values()) < MIB
    assert all(report.ok for report in result.reports)


def test_what_lists_millions_of_transfers_is_left_out_only_beside_a_template() -> None:
    torus, kautz = collc.topology("torus(32, 32)"), collc.topology("generalized_kautz(4, 1600)")
    found = Selector(Problem(torus, Collective("allreduce", 1024)), Auto(), "g", lists=True)
    assert any(one.name == "swing-bandwidth" and "templates" in one.reason for one in found.skipped)
    assert "swing-bandwidth" not in {one.algorithm.name for one in found.measured}
    held = Selector(Problem(torus, Collective("allreduce", 1024)), Auto(), "g")
    assert {"swing-bandwidth", "trivance-bandwidth", "bucket"} <= {one.algorithm.name for one in held.measured}
    assert any(one.name == "rabenseifner" and "templates" in one.reason for one in held.skipped)
    named = Selector(Problem(torus, Collective("allreduce", 1024)), Auto(candidates="bfb, swing"), "g")
    assert "swing-bandwidth" in {one.algorithm.name for one in named.measured}
    whole = Selector(Problem(kautz, Collective("allgather", 1600)), Auto(candidates="bfb"), "g")
    assert "bfb" in {one.algorithm.name for one in whole.measured}


def test_a_megabyte_on_a_large_torus_takes_the_steps_of_swing() -> None:
    found = Selector(Problem(collc.topology("torus(32, 32)"), Collective("allreduce", 1024, size=10**6)), Auto(), "g")
    times = {one.algorithm.name: one.times.at(10**6) for one in found.measured}
    steps = {one.algorithm.name: one.steps for one in found.measured}
    assert min(times, key=lambda name: times[name]) == "swing-bandwidth"
    assert (steps["swing-bandwidth"], steps["bfb"]) == (20, 64) and 2 < times["bfb"] / times["swing-bandwidth"] < 2.1


@pytest.mark.parametrize("spec", ["torus(32, 32)", "dgx_a100(1280)"])
def test_a_forest_is_verified_by_its_symmetry(spec: str, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "pod.coll"
    path.write_text(f"collective g = allgather on {spec}; schedule g using forest;")
    assert main(["verify", str(path)]) == 0
    told = capsys.readouterr().out
    assert "transfers in" in told and ("by the group abelian(32, 32)" in told or "of order 1280" in told)
