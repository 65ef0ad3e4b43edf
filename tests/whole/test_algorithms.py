"""The algorithms written by hand in ``examples/algorithms``: verified, and compiled for all targets that take them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import Ran
from places import EXAMPLES
from sampling import every

import collc
from collc.backends import TARGETS
from collc.backends.interpreter import reference, run
from collc.frontends.coll import format_text
from collc.ir.diagnostic import CollcError

FILES = sorted((EXAMPLES / "algorithms").glob("*.coll"))
RUNTIMES = ["msccl-xml{runtime=msccl}", "msccl-xml{runtime=executor}", "msccl-xml{runtime=rccl}"]
#: these targets take networks, or choose among NCCL's own algorithms
OTHER_TARGETS = {"nccl-tuner", "nccl-topo"}
TAKING = [*RUNTIMES, *sorted(set(TARGETS) - {"msccl-xml"} - OTHER_TARGETS)]
#: example -> targets that refuse it, each with its code
REFUSED: dict[str, dict[str, str]] = {
    **{
        name: {"nccl-graph": "C0911"}
        for name in (
            "allpairs_allreduce", "hierarchical_allreduce", "halving_doubling_allreduce",
            "recursive_doubling_allgather", "double_binary_tree_allreduce",
        )
    },
    "two_step_alltoall": {"nccl-graph": "C0910"},
    "alltonext": {
        "msccl-xml{runtime=executor}": "C0607", "msccl-xml{runtime=rccl}": "C0607", "nccl-graph": "C0910",
    },
}  # fmt: skip
#: example -> a larger or smaller instance of it
OTHERS = {
    "ring_allreduce": {"n": 5}, "allpairs_allreduce": {"n": 3}, "hierarchical_allreduce": {"boxes": 3, "gpus": 2},
    "two_step_alltoall": {"boxes": 3, "gpus": 3}, "halving_doubling_allreduce": {"d": 2},
    "recursive_doubling_allgather": {"d": 4}, "double_binary_tree_allreduce": {"levels": 2, "pieces": 3},
    "alltonext": {"boxes": 3, "gpus": 2},
}  # fmt: skip
#: example -> steps of its schedule
STEPS = {
    "ring_allreduce": 14, "allpairs_allreduce": 2, "hierarchical_allreduce": 8, "two_step_alltoall": 2,
    "halving_doubling_allreduce": 6, "recursive_doubling_allgather": 3, "double_binary_tree_allreduce": 7,
    "alltonext": 3,
}  # fmt: skip


def files(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("target", TAKING)
@pytest.mark.parametrize("path", FILES, ids=files)
def test_every_target_takes_it_or_says_why_not(path: Path, target: str) -> None:
    code = REFUSED.get(path.stem, {}).get(target)
    if code is not None:
        with pytest.raises(CollcError, match=code):
            collc.compile(path, target=target)
        return
    result = collc.compile(path, target=target)
    assert result.schedule is not None and result.schedule.num_steps == STEPS[path.stem]
    assert all(artifact.text for artifact in result.artifacts.values())


@pytest.mark.parametrize("path", FILES, ids=files)
def test_other_sizes_are_right_too(path: Path) -> None:
    result = collc.compile(path, target="msccl-xml{runtime=msccl}", params=OTHERS[path.stem])
    program = result.program
    assert program is not None
    collective, count = program.collective, 2 * program.chunks
    inputs = [
        np.arange(count * collective.buffer_shards(rank, output=False), dtype=np.int64) * (rank + 3)
        for rank in range(program.num_ranks)
    ]
    counts = [count] * collective.num_shards if collective.kind == "custom" else None
    found, needed = run(program, inputs, counts=counts), reference(collective, inputs, counts=counts)
    assert all(map(np.array_equal, found, needed))


@pytest.mark.parametrize("path", FILES, ids=files)
def test_it_is_written_as_the_formatter_writes(path: Path) -> None:
    assert format_text(path.read_text(), path.name) == path.read_text()


def test_all_of_them_are_here() -> None:
    assert {path.stem for path in FILES} == set(STEPS) == set(OTHERS)


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("path", every(3, FILES), ids=files)
def test_it_runs_on_an_mpi(path: Path, collc: Callable[..., Ran], mpich: object) -> None:
    shutil.copy(path, "it.coll")
    ran = collc("run", "it.coll", "--size", "8KiB", "--repeat", "1")
    assert ran.status == 0 and "ok" in ran.out and "WRONG" not in ran.out
