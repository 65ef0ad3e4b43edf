"""What is verified runs right: files, and files with a random mistake, on an independent model of the device."""

from __future__ import annotations

import random

import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_device import Hang, run
from msccl_faults import KINDS, MORE, plant
from sampling import examples

from collc.backends.msccl_xml import MscclXml, read, verify_text
from collc.backends.msccl_xml.windows import message_counts
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program

PROGRAMS = [*programs.by_hand(), programs.alltoall(3, apart=True)]


def text_of(program: Program) -> str:
    (artifact,) = MscclXml().emit(program)
    return artifact.text


def runs_right(text: str, seed: int) -> bool:
    """Whether one random order of each claimed use, with small and with large messages, ends right."""
    algorithm = read(text)
    low = 2 if algorithm.max_bytes else 1
    sizes = {low, max(message_counts(algorithm), default=1)}
    modes = [mode for mode, used in ((True, algorithm.inplace), (False, algorithm.outofplace)) if used]
    try:
        return all(run(text, inplace=m, depth=2, split=max(s, low), seed=seed) for m in modes for s in sorted(sizes))
    except (Hang, AssertionError, TypeError, IndexError, KeyError):
        return False


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_files_run_right_in_any_order(program: Program) -> None:
    text = text_of(program)
    assert all(runs_right(text, seed) for seed in range(10))


def test_the_model_sees_deadlocks_and_races() -> None:
    """It is no rubber stamp: one chunk a message hangs recursive doubling, and in place a split alltoall races."""
    doubling = text_of(programs.recursive_doubling_allgather(8))
    assert run(doubling, inplace=False, depth=2, split=2, seed=0)
    with pytest.raises(Hang):
        run(doubling, inplace=False, depth=2, split=1, seed=0)
    apart = text_of(programs.alltoall(3, apart=True))
    assert not all(run(apart, inplace=True, depth=2, split=1, seed=seed) for seed in range(20))


@st.composite
def mistakes(draw: st.DrawFn) -> str:
    """A right file with one or two faults of any kind."""
    text = text_of(draw(st.sampled_from(PROGRAMS)))
    for kind in draw(st.lists(st.sampled_from(sorted({*KINDS, *MORE})), min_size=1, max_size=2)):
        text = plant(text, kind, random.Random(draw(st.integers(0, 2**32))))
    return text


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(mistakes(), st.integers(0, 2**32))
def test_what_is_accepted_runs_right(text: str, seed: int) -> None:
    """Whatever was changed: if the verifier still accepts the file, the device gets it right in a random order."""
    try:
        accepted = verify_text(text, runtime="executor").ok
    except CollcError:
        accepted = False
    if accepted:
        assert runs_right(text, seed)
