"""`collc.mscclpp.register` with a stand-in of the package `mscclpp`, and the environment that `collc env` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from commands import Ran
from plan_texts import ring_plan

import collc.mscclpp as mscclpp
from collc.backends.mscclpp_environment import as_object, as_shell, is_plan, plan_environment, plans_in
from collc.ir.diagnostic import CollcError


class Runtime:
    """What a program registered: (id, path, rank, ranks, ranks of a node) each."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, str, int, int, int]] = []


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A stand-in of the package, with the names of version 0.9."""
    found = Runtime()

    class Constraint:
        def __init__(self, world_size: int = 0, n_ranks_per_node: int = 0):
            self.sizes = (world_size, n_ranks_per_node)

    class Algorithm:
        def __init__(self, id: str, execution_plan: tuple[str, int], constraint: Constraint, tags: dict[str, int]):
            self.row = (id, *execution_plan, *constraint.sizes)

    Algorithm.Constraint = Constraint  # type: ignore[attr-defined]

    class Builder:
        def add_algorithm_builder(self, algorithm: Algorithm) -> None:
            found.registered.append(algorithm.row)

    package, ext, core = (ModuleType(name) for name in ("mscclpp", "mscclpp.ext", "mscclpp._mscclpp"))
    package.Algorithm = Algorithm  # type: ignore[attr-defined]
    package.__path__ = []
    ext.AlgorithmCollectionBuilder = Builder  # type: ignore[attr-defined]
    core.CppExecutionPlan = lambda path, rank: (path, rank)  # type: ignore[attr-defined]
    for module in (package, ext, core):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(mscclpp, "_registered", {})
    for name in (*mscclpp._RANK, *mscclpp._OF_NODE):
        monkeypatch.delenv(name, raising=False)
    yield found


def write(folder: Path, stem: str = "ring", **changes: Any) -> str:  # Any: values of JSON
    path = folder / f"{stem}.json"
    path.write_text(json.dumps({**ring_plan(4), "name": stem, **changes}))
    return str(path)


def refused(code: str, folder: Path, **given: Any) -> str:  # Any: arguments of register
    with pytest.raises(CollcError) as problem:
        mscclpp.register(folder, **given)
    assert {found.code for found in problem.value.diagnostics} == {code}
    return str(problem.value)


def test_every_plan_of_a_folder_is_registered(tmp_path: Path, runtime: Runtime) -> None:
    small, large = write(tmp_path, "a", max_message_size=4096), write(tmp_path, "b", min_message_size=4097)
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("{")
    found = mscclpp.register(tmp_path, rank=2, ranks_per_node=4)
    assert runtime.registered == [("a", small, 2, 4, 4), ("b", large, 2, 4, 4)]
    assert [(plan.low, plan.high) for plan in found] == [(0, 4096), (4097, 2**64 - 1)]
    mscclpp.register(str(tmp_path), rank=2, ranks_per_node=4)
    assert len(runtime.registered) == 2


def test_the_launcher_says_rank_and_ranks_of_a_node(
    tmp_path: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    assert "no rank" in refused("C0692", tmp_path)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert "and nodes have 2" in refused("C0692", tmp_path)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    mscclpp.register(tmp_path)
    assert [row[2:] for row in runtime.registered] == [(3, 4, 4)]
    assert "this is rank 4" in refused("C0692", tmp_path, rank=4)


def test_without_the_package_or_with_an_old_one(
    tmp_path: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.delattr(sys.modules["mscclpp.ext"], "AlgorithmCollectionBuilder")
    assert "mscclpp.ext.AlgorithmCollectionBuilder" in refused("C0691", tmp_path, rank=0)
    monkeypatch.setitem(sys.modules, "mscclpp", None)
    assert "cannot be imported" in refused("C0691", tmp_path, rank=0)
    assert not runtime.registered


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "b"}, "C0688"),  # sizes meet
        ({"name": "a", "min_message_size": 4097}, "C0663"),  # one name
        ({"name": "b", "min_message_size": 4097, "inplace": False}, "C0689"),
        ({"name": "b", "min_message_size": 4097}, ""),
        ({"name": "b", "collective": "allgather"}, ""),
    ],
)
def test_plans_that_the_runtime_would_mix_up(
    tmp_path: Path, runtime: Runtime, changes: dict[str, object], code: str
) -> None:
    write(tmp_path, "a", max_message_size=4096)
    write(tmp_path, "other", **changes)
    if code:
        refused(code, tmp_path, rank=0)
        assert not runtime.registered
    else:
        assert len(mscclpp.register(tmp_path, rank=0)) == 2


def test_plans_of_two_folders_are_judged_together(tmp_path: Path, runtime: Runtime) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, name)
    mscclpp.register(tmp_path / "one", rank=0)
    refused("C0688", tmp_path / "two", rank=0)
    assert len(runtime.registered) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name": "a", "gpus": [', "not JSON"),
        ("[]", "not an object"),
        ('{"gpus": []}', "lists no rank"),
        (json.dumps({**ring_plan(2), "inplace": 1}), "`inplace`"),
        (json.dumps({**ring_plan(2), "name": None}), "`name`"),
        (json.dumps({**ring_plan(2), "min_message_size": -1}), "`min_message_size`"),
        ("[" * 100000, "not JSON"),
    ],
)
def test_what_is_no_plan(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(CollcError, match=why):
        plans_in(str(path))


@pytest.mark.parametrize("sizes", [(0, 63), (65, 127), (2**64 - 1, 2**64 - 1)])
def test_a_plan_that_serves_no_call_is_refused(tmp_path: Path, sizes: tuple[int, int]) -> None:
    """Four chunks of 16 bytes: calls are multiples of 64 bytes."""
    write(tmp_path, min_message_size=sizes[0], max_message_size=sizes[1])
    assert "serves no call" in refused("C0674", tmp_path)
    write(tmp_path, min_message_size=0, max_message_size=64)
    assert plans_in(str(tmp_path))[0].high == 64


def test_an_empty_folder_has_no_plan(tmp_path: Path) -> None:
    with pytest.raises(CollcError, match="no plan in"):
        plans_in(str(tmp_path))
    with pytest.raises(CollcError, match="cannot read"):
        plans_in(str(tmp_path / "missing.json"))
    assert not is_plan("{" * 100000 + '"gpus"')


def test_ranks_that_share_memory(tmp_path: Path) -> None:
    """Two rings of two ranks, joined by ports: only pairs share memory."""
    plan = ring_plan(4)
    for rank, gpu in enumerate(plan["gpus"]):
        gpu["channels"] = [
            {"channel_type": "memory", "connected_to": [rank ^ 1]},
            {"channel_type": "port", "connected_to": [rank ^ 2]},
        ]
        gpu["remote_buffers"] = [{"rank": rank ^ 2, "type": "s", "access_channel_types": ["port"]}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(plan))
    assert plans_in(str(path))[0].shares_memory == 2
    plan["gpus"][0]["channels"].append(
        {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 4, "ranks": [0, 1, 2, 3]}]}
    )
    path.write_text(json.dumps(plan))
    assert plans_in(str(path))[0].shares_memory == 4


# ---- the environment


def test_the_environment_names_the_registration(tmp_path: Path) -> None:
    write(tmp_path, min_message_size=1024, max_message_size=65536)
    found = plan_environment(plans_in(str(tmp_path)))
    assert f"collc.mscclpp.register({str(tmp_path)!r})" in as_shell(found)
    assert "programs in C" in as_shell(found)
    assert "MSCCLPP_CACHE_DIR" not in [name for name, _, _ in found.variables]
    assert as_object(plans_in(str(tmp_path)), found)["files"][0]["bytes_multiple_of"] == 64  # type: ignore[index]


def test_fixed_names_need_a_variable_only(tmp_path: Path) -> None:
    folder = tmp_path / "default"
    folder.mkdir()
    name = "allreduce_2nodes_1K_64K"
    write(folder, name)
    found = plan_environment(plans_in(str(folder)))
    assert ("MSCCLPP_CACHE_DIR", str(tmp_path)) in [(name, value) for name, value, _ in found.variables]
    assert not found.python
    assert any("the plan is not one" in remark for remark in found.remarks)  # 4 ranks, not 16
    (folder / f"{name}.json").write_text(json.dumps({**ring_plan(16, memory=8), "name": name}))
    found = plan_environment(plans_in(str(folder)))
    assert not any("the plan is not one" in remark for remark in found.remarks)


def test_collc_env_prints_it(tmp_path: Path, collc: Callable[..., Ran]) -> None:
    path = write(tmp_path)
    ran = collc("env", str(tmp_path))
    assert (ran.status, ran.err) == (0, "")
    assert f"collc.mscclpp.register({str(tmp_path)!r})" in ran.out
    found = json.loads(collc("env", path, "--shell=json").out)
    assert (found["runtime"], found["files"][0]["ranks_sharing_memory"]) == ("mscclpp", 4)
    assert "C0001" in collc("env", path, "--runtime=rccl").err
    (tmp_path / "a.txt").write_text("<algo/>")
    assert "C0690" in collc("env", path, str(tmp_path / "a.txt")).err
    write(tmp_path, "b")
    assert "C0688" in collc("env", str(tmp_path)).err


def test_collc_launch_points_to_the_registration(collc: Callable[..., Ran]) -> None:
    ran = collc("launch", "a.coll", "-t", "mscclpp-json", "--", "python", "app.py")
    assert ran.status == 2
    assert "`collc env` prints the lines" in ran.err
