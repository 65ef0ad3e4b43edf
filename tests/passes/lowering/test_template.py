"""The program of one rank and a group, against the program of all ranks of the same schedule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import KINDS, cayley_networks, instructions_of, network, template, template_schedule

from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.lowering.template import lower_template


@settings(max_examples=examples(60), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS))
def test_unfolded_it_is_the_program_of_the_unfolded_schedule(topology: Topology, kind: str) -> None:
    schedule = template_schedule(topology, kind)
    program = lower_template(schedule)
    assert program is not None
    assert verify(program).ok
    unfolded, lowered = program.unfold(), Lower().run(schedule.unfold())
    assert instructions_of(unfolded) == instructions_of(lowered)
    assert verify(unfolded).ok
    assert (unfolded.scratch <= lowered.scratch).all()


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_all_that_goes_over_a_link_in_a_step(kind: str) -> None:
    program = template(network("torus(4, 4)"), kind)
    phases = 2 if kind == "allreduce" else 1
    assert int(program.batched.sends.sum()) == 4 * 4 * phases  # 4 links, 4 steps
    assert int(program.seed.sends.sum()) > int(program.batched.sends.sum())


@pytest.mark.quick
def test_messages_of_a_template_do_not_grow_with_the_ranks() -> None:
    assert int(template(network("hypercube(7)"), "allreduce").batched.sends.sum()) == 7 * 7 * 2


@pytest.mark.quick
@pytest.mark.parametrize("name", ["torus(3, 3)", "cayley(dihedral(4), {1, 2})"])
def test_lower_unfolds_templates_unless_the_target_takes_them(name: str) -> None:
    schedule = template_schedule(network(name), "allgather")
    assert type(Lower().run(schedule)).__name__ == "Program"
    assert type(Lower(templates=True).run(schedule)).__name__ == "SymmetricProgram"
