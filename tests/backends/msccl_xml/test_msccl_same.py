"""Is what was read the program that was to be written: waits are compared by what they name, else by what they do."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import pytest
from sampling import every

import collc as api
from collc.backends.msccl_xml import same
from collc.backends.msccl_xml.reader import read
from collc.ir.program import Program

TEXT = "topology t = torus(3, 2); collective c = allreduce on t; schedule c using bfb;"


@pytest.fixture(scope="module")
def made() -> tuple[str, Program]:
    result = api.compile_source(TEXT, target="msccl-xml", passes="bfb,discretize,lower,prune-dependencies")
    assert result.program is not None and len(result.program.deps)
    return result.artifacts["c"].text, result.program


def found(text: str, program: Program) -> list[str]:
    return list(same.differences(_read(text), program))


_read = cache(read)


def test_the_same_waits_need_no_working_out(made: tuple[str, Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same, "_finished", lambda program: 1 // 0)
    assert found(*made) == []


def test_every_wait_that_is_left_out_or_moved_is_judged_by_what_it_does(
    made: tuple[str, Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most come to something else; whatever they come to, working it out says so too."""
    text, program = made
    counts = np.diff(program.dep_start.astype(np.int64))
    changed = []
    for at in every(9, range(len(program.deps))):
        row = int(np.searchsorted(program.dep_start, at, side="right")) - 1
        fewer = np.concatenate([[0], np.cumsum(counts - (np.arange(len(counts)) == row))])
        changed.append(attrs.evolve(program, deps=np.delete(program.deps, at), dep_start=fewer))
        deps = program.deps.astype(np.int64)
        deps[at] -= int(deps[at] not in set(program.block_start.tolist()))
        changed.append(attrs.evolve(program, deps=deps))
    quick = [found(text, other) for other in changed]
    monkeypatch.setattr(same, "_has_same_dependencies", lambda *_: False)
    assert quick == [found(text, other) for other in changed]
    assert 2 * sum(bool(problem) for problem in quick) > len(changed)


def test_a_wait_that_moved_to_another_instruction_is_found(made: tuple[str, Program]) -> None:
    """As many waits in all, one of them at another place."""
    text, program = made
    counts = np.diff(program.dep_start.astype(np.int64))
    row = int(np.flatnonzero(counts)[0])
    counts[row] -= 1
    counts[row + 1] += 1
    moved = attrs.evolve(program, dep_start=np.concatenate([[0], np.cumsum(counts)]))
    assert "has dependencies with another effect" in found(text, moved)[0]


def test_more_waits_that_say_nothing_new_are_the_same(made: tuple[str, Program]) -> None:
    """What a wait implies may be waited for too: then it is worked out."""
    text, program = made
    row = int(np.flatnonzero(np.diff(program.dep_start.astype(np.int64)))[0])
    at = int(program.dep_start[row])
    dep = int(program.deps[at])
    assert dep not in set(program.block_start.tolist())
    start = program.dep_start.astype(np.int64) + (np.arange(program.num_instructions + 1) > row)
    more = attrs.evolve(program, deps=np.insert(program.deps.astype(np.int64), at, dep - 1), dep_start=start)
    assert found(text, more) == []
