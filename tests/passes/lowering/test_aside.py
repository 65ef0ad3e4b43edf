"""Shards of an all-to-all that others replace in place, in the step that sends them: without copies ranks may hang."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import EXHAUSTIVE, examples

import collc
from collc.ir.diagnostic import CollcError
from collc.ir.machine import smallest_depth
from collc.ir.program import Buffer, Program
from collc.ir.schedule import Schedule
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.tools.verification import verify_text

#: ranks 6 and 7 relay for each other's neighbours: first three messages of others, then three of their own
RELAYS = """
topology t = complete(8);
collective c = alltoall on t;
schedule c using steps {
  for s in 0..8, d in 0..8 {
    let k = s * 8 + d;
    if s != d and (s < 6 and d < 6 or s mod 2 == d mod 2 or s + d == 13) { at 0: send shard k from s to d; }
    else if s < 6 and d >= 6 { at 0: send shard k from s to 13 - d; at 1: send shard k from 13 - d to d; }
    else if s >= 6 and d < 6 { at 1: send shard k from s to 13 - s; at 2: send shard k from 13 - s to d; }
  }
}
"""


def scheduled(text: str) -> Schedule:
    found = collc.compile_source(text).schedule
    assert isinstance(found, Schedule)
    return found if found.discrete else Discretize().run(found)


def lowered(schedule: Schedule, aside: bool) -> Program:
    found = Lower(aside=aside).run(schedule)
    assert isinstance(found, Program)
    return found


def test_without_copies_connections_need_more_slots() -> None:
    schedule = scheduled(RELAYS)
    assert smallest_depth(lowered(schedule, False)) == 4
    assert smallest_depth(lowered(schedule, True)) == 1
    assert verify(lowered(schedule, True)).ok


def test_a_program_that_hangs_is_compiled_with_copies() -> None:
    found = collc.compile_source(RELAYS, target="msccl-xml", level=0)
    assert any("aside=true" in remark for remark in found["c"].remarks)
    assert verify_text(found.artifacts["c"].text, "c.xml").ok


def test_without_another_way_the_mistake_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lower, "unstuck", lambda self: None)
    with pytest.raises(CollcError, match="C0633"):
        collc.compile_source(RELAYS, target="msccl-xml", level=0)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(5, 9), st.integers(0, 9), st.booleans())
def test_with_copies_any_depth_suffices(n: int, seed: int, join: bool) -> None:
    n += n % 2
    schedule = scheduled(f"collective c = alltoall on jellyfish({n}, 3, {seed});")
    program = Lower(join=join, aside=True).run(schedule)
    assert isinstance(program, Program) and verify(program).ok
    assert smallest_depth(program) == 1


def test_other_collectives_have_no_copies() -> None:
    schedule = scheduled("collective c = allgather on biring(5); schedule c using bfb;")
    with_copies, without = lowered(schedule, True), lowered(schedule, False)
    assert with_copies == without
    assert not (with_copies.dst_buffer == Buffer.SCRATCH).any()


@pytest.mark.parametrize(
    "network", ["jellyfish(40, 5, 3)", "xpander(5, 8)", "inserted(torus(6, 6), {0 <-> 1, 8 <-> 9})"]
)
@pytest.mark.skipif(not EXHAUSTIVE, reason="takes 10 to 30 seconds")
def test_networks_that_the_documentation_names_need_copies(network: str) -> None:
    schedule = scheduled(f"collective c = alltoall on {network};\nschedule c using flow;")
    needed = smallest_depth(lowered(schedule, False))
    assert needed is not None and needed > 2
    assert smallest_depth(lowered(schedule, True)) == 1
