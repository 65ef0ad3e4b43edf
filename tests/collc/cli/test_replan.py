"""`collc replan`: what it writes, ahead and after a fault, and the plans that it reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

from collc.driver.result import CollectiveResult
from collc.files.index import Index
from collc.ir.diagnostic import error
from collc.tools.replanning import Replanner

Collc = Callable[..., Ran]

POD = "topology pod = dgx_h100(2);\ncollective parts = allgather on pod;\nschedule parts using forest;\n"
CUBE = "topology cube = hypercube(2);\ncollective parts = allgather on cube;\nschedule parts using forest;\n"


@pytest.fixture
def pod() -> str:
    Path("pod.coll").write_text(POD)
    return "pod.coll"


@pytest.fixture
def cube() -> str:
    Path("cube.coll").write_text(CUBE)
    return "cube.coll"


def document(ran: Ran) -> dict[str, object]:
    assert ran.status == 0, ran.err
    found: dict[str, object] = json.loads(ran.out)
    return found


def test_a_printed_plan_gives_what_its_file_gives(collc: Collc, pod: str) -> None:
    assert collc("compile", pod, "-p", "forest", "-t", "ir{level=schedule}", "-o", "plan.ir").status == 0
    keys = ("trees_kept", "trees_new", "time_per_byte", "time_per_byte_healthy", "bound_met", "ranks_before")
    from_file = document(collc("replan", pod, "--without", "gpu[1, 5]", "--json"))
    from_plan = document(collc("replan", "plan.ir", "--without", "gpu[1, 5]", "--json"))
    assert [from_plan[key] for key in keys] == [from_file[key] for key in keys]
    assert from_file["bound_met"] is True and from_file["trees_kept"]


def test_a_plan_after_a_fault_is_a_plan(collc: Collc, pod: str) -> None:
    assert collc("replan", pod, "--without", "gpu[0, 1] <-> ib", "-p", "forest", "-t", "ir{level=schedule}").status == 0
    assert collc("verify", "pod-broken.ir").status == 0
    again = document(collc("replan", "pod-broken.ir", "--without", "gpu[1, 5]", "--json"))
    at_once = document(collc("replan", pod, "--without", "gpu[0, 1] <-> ib", "--without", "gpu[1, 5]", "--json"))
    assert again["time_per_byte"] == at_once["time_per_byte"] and again["plan"] == "kept"


def test_a_program_has_no_network(collc: Collc, pod: str) -> None:
    assert collc("compile", pod, "-t", "ir", "-o", "program.ir").status == 0
    ran = collc("replan", "program.ir", "--without", "3")
    assert ran.status == 1 and "[C0018]" in ran.err and "-p forest -t 'ir{level=schedule}'" in ran.err


def test_files_hold_the_ranks_that_are_left(collc: Collc, pod: str) -> None:
    assert collc("replan", pod, "--without", "gpu[1, 5]", "-t", "msccl-xml", "-o", "out/").status == 0
    assert os.listdir("out") == ["parts.xml"]
    assert 'ngpus="15"' in Path("out/parts.xml").read_text()


def test_nothing_is_written_without_a_target(collc: Collc, pod: str) -> None:
    assert collc("replan", pod, "--without", "gpu[1, 5]").status == 0
    assert os.listdir() == [pod]
    ran = collc("replan", pod, "--without", "gpu[1, 5]", "-o", "x.xml")
    assert ran.status == 2 and "[C0025]" in ran.err


def test_the_time_of_the_schedule_is_that_of_its_pass(collc: Collc, pod: str) -> None:
    ran = collc("replan", pod, "--without", "gpu[1, 5]", "--time-passes")
    assert ran.err.splitlines()[1].split()[-1] == "forest"


def test_one_collective_of_several(collc: Collc, pod: str) -> None:
    Path(pod).write_text(f"{POD}collective root = broadcast on pod {{ root: 0 }};\n")
    assert "found" not in collc("replan", pod, "--collective", "parts", "--without", "0").err
    ran = collc("replan", pod, "--without", "0")
    assert ran.status == 1 and "the root of broadcast, is gone [C0343]" in ran.err


# ---- ahead


def test_every_single_fault_has_its_file(collc: Collc, cube: str) -> None:
    found = document(collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml", "--json"))
    faults = found["faults"]
    assert isinstance(faults, list)
    names = [name for fault in faults for name in fault["files"]]
    assert sorted(os.listdir("plans")) == sorted([*names, "faults.json"])
    assert {"without-0.xml", "without-0--1.xml"} <= set(names) and len(names) == 4 + 4
    assert json.loads(Path("plans/faults.json").read_text()) == found


def entries(folder: str = "plans") -> dict[str, dict[str, object]]:
    """Return the entries of the index by the places of their faults."""
    found: dict[str, object] = json.loads(Path(folder, "faults.json").read_text())
    faults = found["faults"]
    assert isinstance(faults, list)
    return {entry["where"]: entry for entry in faults}


def test_the_file_of_a_representative_is_that_of_the_fault(collc: Collc, cube: str) -> None:
    assert collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml").status == 0
    first = str(entries()["0 <-> 1"]["representative"])
    assert collc("replan", cube, "--without", first, "-t", "msccl-xml", "-o", "one.xml").status == 0
    assert Path("one.xml").read_text() == Path(f"plans/without-{first.replace(' <-> ', '--')}.xml").read_text()


@pytest.mark.parametrize(("kind", "target"), [
    *(("allgather", target) for target in ("msccl-xml", "mpi-c", "mscclpp-json", "ir{level=schedule}", "ir")),
    ("reduce-scatter", "msccl-xml"), ("allreduce", "msccl-xml"), ("allreduce", "mscclpp-json"),
])  # fmt: skip
def test_faults_of_one_orbit_are_compiled_once(
    collc: Collc, monkeypatch: pytest.MonkeyPatch, kind: str, target: str
) -> None:
    compiled = list[str]()
    run = Replanner.run

    def counted(planner: Replanner, healthy: CollectiveResult, *rest: object) -> CollectiveResult:
        compiled.append(str(planner.networks[healthy.name].faults[0]))
        return run(planner, healthy, *rest)  # type: ignore[arg-type]  # as they were

    monkeypatch.setattr(Replanner, "run", counted)
    net = "hypercube(2)" if kind == "allreduce" else "hypercube(3)"
    Path("c.coll").write_text(f"collective c = {kind} on {net}; schedule c using forest;")
    assert collc("replan", "c.coll", "--each-fault", "plans", "-t", target).status == 0
    found = entries()
    assert len(compiled) == 2 and compiled[0] == "without 0" and len(found) == (8 if kind == "allreduce" else 8 + 12)
    assert {f"without {entry['representative']}" for entry in found.values()} == set(compiled)
    for entry in found.values():
        assert entry["time_per_byte"] == found[str(entry["representative"])]["time_per_byte"]
        files = entry["files"]
        assert isinstance(files, list)
        if target != "mpi-c" and target != "mscclpp-json":
            assert collc("verify", f"plans/{files[0]}", "--collective", kind).status == 0


def test_a_root_is_only_in_its_own_orbit(collc: Collc) -> None:
    Path("c.coll").write_text("collective c = broadcast on hypercube(3) { root: 5 }; schedule c using forest;")
    assert collc("replan", "c.coll", "--each-fault", "plans", "-t", "msccl-xml").status == 0
    found = entries()
    assert "the root of broadcast, is gone" in str(found["5"]["reason"])
    assert {str(found[where]["representative"]) for where in "0123467"} == {"0", "1", "2"}  # by distance
    assert collc("verify", "plans/without-6.xml").status == 0


def test_a_schedule_by_hand_has_no_symmetry(collc: Collc) -> None:
    steps = "at 0: send shard r from r to (r + 1) mod 4; at 1: send shard r from r to (r + 3) mod 4;"
    more = "at 2: send shard r from (r + 1) mod 4 to (r + 2) mod 4;"
    Path("c.coll").write_text(
        f"collective c = allgather on complete(4);\nschedule c using steps {{ for r in 0..4 {{ {steps} {more} }} }}\n"
    )
    ran = collc("replan", "c.coll", "--each-fault", "plans", "-t", "msccl-xml")
    found = entries()
    assert found["0 <-> 2"]["plan"] == "unchanged" and found["0 <-> 2"]["representative"] == "0 <-> 2"
    assert "over a link that is gone" in str(found["0"]["reason"]) and ran.status == 1 and "[C0098]" in ran.err


def test_a_fault_that_cuts_ranks_off_has_a_reason(collc: Collc) -> None:
    Path("line.coll").write_text("collective parts = allgather on mesh(3); schedule parts using forest;")
    found = document(collc("replan", "line.coll", "--each-fault", "plans", "-t", "msccl-xml", "--json"))
    faults = found["faults"]
    assert isinstance(faults, list)
    reasons = {fault["where"]: fault.get("reason") for fault in faults}
    assert reasons["0"] is None and "not strongly connected" in str(reasons["1"])
    assert "not strongly connected" in str(reasons["0 <-> 1"])


def test_a_second_run_touches_no_file(collc: Collc, cube: str) -> None:
    assert collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml").status == 0
    old = Path("plans/without-0.xml")
    os.utime(old, (1, 1))
    assert collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml").status == 0
    assert old.stat().st_mtime == 1


def test_a_run_goes_on_after_an_interruption(collc: Collc, cube: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert collc("replan", cube, "--each-fault", "whole", "-t", "msccl-xml").status == 0
    add, calls = Index.add, list[object]()

    def interrupted(index: Index, key: tuple[str, ...], *rest: object) -> None:
        calls.append(key)
        if len(calls) == 4:
            raise KeyboardInterrupt
        add(index, key, *rest)  # type: ignore[arg-type]  # as they were

    monkeypatch.setattr(Index, "add", interrupted)
    assert collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml").status != 0
    assert len(entries()) == 3 and len(os.listdir("plans")) == 4
    for name in os.listdir("plans"):
        if name != "faults.json":
            assert Path("plans", name).read_bytes() == Path("whole", name).read_bytes()
    calls.clear()
    monkeypatch.setattr(Index, "add", lambda index, key, *rest: (calls.append(key), add(index, key, *rest))[1])
    ran = collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml")
    assert ran.status == 0 and len(calls) == 8 - 3 and "3 already there" in ran.out
    assert {name: Path("plans", name).read_bytes() for name in os.listdir("plans")} == {
        name: Path("whole", name).read_bytes() for name in os.listdir("whole")
    }


@pytest.mark.parametrize("change", ["text", "target"])
def test_another_input_is_compiled_again(collc: Collc, cube: str, change: str) -> None:
    assert collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml").status == 0
    if change == "text":
        Path(cube).write_text(CUBE.replace("on cube;", "on cube { size: 1 MiB };"))
    target = "msccl-xml" if change == "text" else "msccl-xml{runtime=rccl}"
    ran = collc("replan", cube, "--each-fault", "plans", "-t", target)
    assert ran.status == 0 and "already there" not in ran.out


def test_a_fault_that_cannot_be_compiled_does_not_stop_the_others(
    collc: Collc, cube: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(planner: Replanner, healthy: CollectiveResult, *rest: object) -> CollectiveResult:
        if len(planner.networks[healthy.name].topology.names) == 3:
            raise error("C0509", "77 threadblocks of 64", exit_status=3)
        return run(planner, healthy, *rest)  # type: ignore[arg-type]  # as they were

    run = Replanner.run
    monkeypatch.setattr(Replanner, "run", refused)
    ran = collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml")
    assert ran.status == 3 and "4 of 8 faults cannot be compiled: `without 0`, and 3 more [C0098]" in ran.err
    assert "77 threadblocks of 64" in ran.err and "Traceback" not in ran.err
    assert [bool(entry["files"]) for entry in entries().values()] == [False] * 4 + [True] * 4
    assert entries()["1"]["reason"] == "77 threadblocks of 64"


def test_several_collectives_ahead_have_their_names_in_front(collc: Collc, cube: str) -> None:
    Path(cube).write_text(f"{CUBE}collective sums = allreduce on cube;\nschedule sums using forest;\n")
    assert collc("replan", cube, "--each-fault", "plans", "-t", "msccl-xml").status == 0
    assert {"parts-without-0.xml", "sums-without-0--1.xml"} <= set(os.listdir("plans"))


@pytest.mark.parametrize("options", [
    ("--each-fault", "plans", "--without", "0"), ("--slow-factor", "1/2", "--without", "0"),
    ("--each-fault", "plans", "-o", "x"), ("--each-fault", "plans", "--slow-factor", "2"), (),
])  # fmt: skip
def test_options_that_do_not_fit(collc: Collc, cube: str, options: tuple[str, ...]) -> None:
    ran = collc("replan", cube, "-t", "msccl-xml", *options)
    assert ran.status == 2 and "[C0001]" in ran.err
    assert not os.path.exists("plans")


def test_links_without_a_bandwidth_keep_theirs(collc: Collc) -> None:
    Path("net.coll").write_text("collective parts = allgather on torus(3, 3); schedule parts using bfb;")
    found = document(collc("replan", "net.coll", "--without", "0 <-> 1", "--size", "1GiB", "--alpha", "0us", "--json"))
    points = found["points"]
    assert isinstance(points, list)
    assert points[0]["times_healthy"] == found["times_healthy"]
