"""Chains of messages that ranks of a torus forward, each on one channel."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import cayley_networks, network, template

import collc
from collc.ir.collective import Collective
from collc.ir.laid_out import laid_out, run_counts
from collc.ir.program import Program
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering.template import lower_template
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.fuse import Fuse
from collc.passes.program.limits import steps
from collc.passes.program.orbit_chains import along_chains
from collc.passes.program.orbit_channels import Room
from collc.passes.program.orbit_joining import JoinLimits
from collc.passes.program.orbit_messages import divided_by_depth, one_by_one
from collc.passes.program.orbit_relays import Forwarding
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.torus.bucket import Bucket

SHAPES = ("torus(3, 3)", "torus(4, 4)", "torus(3, 5)", "torus(6, 4)", "torus(8, 8)", "torus(3, 4, 3)", "hypercube(4)")
KINDS = ("allgather", "reduce-scatter")
SPEC = """
topology pod = {network};
collective grads = {kind} on pod {{ size: 64 MiB }};
schedule grads using bucket {{ template: {template} }};
"""


def bucket(expression: str, kind: str) -> SymmetricProgram:
    """Return the template of a bucket schedule, with messages as `coalesce` leaves them."""
    topology = network(expression)
    schedule = Discretize(templates=True).run(
        Bucket(template=True).run(Problem(topology, Collective(kind, topology.num_ranks)))
    )
    assert isinstance(schedule, SymmetricSchedule)
    lowered = lower_template(schedule)
    assert lowered is not None
    found = Coalesce().run(lowered)
    assert isinstance(found, SymmetricProgram)
    return found


def room(most: int | None, channels: int | None = None) -> Room:
    return Room(1, most, channels, None, None, True)


@settings(max_examples=examples(30), deadline=None)
@given(expression=st.sampled_from(SHAPES), kind=st.sampled_from(KINDS), most=st.sampled_from([None, 4, 7, 12, 40]))
def test_chains_are_correct_and_their_blocks_short(expression: str, kind: str, most: int | None) -> None:
    program = one_by_one(bucket(expression, kind))
    found = along_chains(program, room(most))
    assume(found is not None)
    assert found is not None and verify(found).ok
    assert most is None or int(steps(found.seed).max()) <= most
    assert found.seed.num_instructions == program.seed.num_instructions
    if most is None:
        assert found.seed.num_channels == 1


@settings(max_examples=examples(30), deadline=None)
@given(expression=st.sampled_from(SHAPES), kind=st.sampled_from(KINDS), most=st.sampled_from([7, 12, 40, 64]))
def test_fused_chains_are_correct_on_one_rank_and_on_all(expression: str, kind: str, most: int) -> None:
    limits = JoinLimits(most, None, None, 2, True)
    for forwarding in Forwarding.of(bucket(expression, kind), limits, 1 << 16, 1 << 16):
        for few in (False, True):
            joined = forwarding.joined(few)
            if joined is None:
                continue
            assert (joined.width, verify(joined).ok) == (1, True)
            assert int(steps(joined.seed).max()) <= most
            listed = laid_out(joined)
            assert verify(listed).ok
            assert listed.num_instructions == joined.seed.num_instructions * joined.num_ranks


@settings(max_examples=examples(30), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS), most=st.sampled_from([None, 6, 12]))
def test_chains_of_any_network_are_correct(topology: Topology, kind: str, most: int | None) -> None:
    program = divided_by_depth(template(topology, kind))
    found = along_chains(program, room(most))
    assert found is None or verify(found).ok
    for forwarding in Forwarding.of(program, JoinLimits(most, None, None, 2, True), 1 << 16, 1 << 16):
        joined = forwarding.joined(few=True)
        assert joined is None or (verify(joined).ok and verify(laid_out(joined)).ok)


def test_a_chain_goes_straight_on_over_one_channel() -> None:
    """On a ring of 8 ranks a chain has 7 messages, of which 6 forward what arrived before on their channel."""
    limits = JoinLimits(40, None, None, 2, True)
    joined = next(Forwarding.of(bucket("torus(8, 8)", "allgather"), limits, 1 << 16, 1 << 16)).joined(few=False)
    assert joined is not None
    fused, sent = int((joined.seed.sends & joined.seed.receives).sum()), int(joined.seed.sends.sum())
    assert fused * 7 == sent * 6


def test_a_chain_that_is_too_long_is_cut() -> None:
    program = one_by_one(bucket("torus(8, 8)", "reduce-scatter"))
    found = along_chains(program, room(4))
    assert found is not None and verify(found).ok
    assert int(steps(found.seed).max()) <= 4
    whole = along_chains(program, room(40))
    assert whole is not None
    assert found.seed.num_channels > 2 * whole.seed.num_channels


@pytest.mark.quick
def test_limits_that_no_chain_fits_give_no_template() -> None:
    program = one_by_one(bucket("torus(4, 4)", "allgather"))
    assert along_chains(program, room(1)) is None
    assert along_chains(program, room(4, channels=2)) is None
    assert list(Forwarding.of(program, JoinLimits(2, None, None, 2, True), 1 << 16, 1 << 16)) == []


@pytest.mark.quick
def test_messages_of_many_runs_keep_together() -> None:
    """Numbered messages are sets of one run: a template of their chunks would have many times as many messages."""
    program = bucket("torus(8, 8)", "allreduce")
    assert len(program.numbering) and int(run_counts(program).max()) == 1
    assert list(Forwarding.of(program, JoinLimits(64, None, None, 2, True), 1 << 16, 1 << 16)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network_name", ["torus(8, 8)", "torus(12, 12)"])
def test_files_of_tori_are_executed_on_one_rank_and_shorter(network_name: str, kind: str) -> None:
    """What `docs/design-decisions.md` says: about half as many instructions as with passes on all ranks."""
    listed = []
    for option in ("true", "false"):
        source = SPEC.format(network=network_name, kind=kind, template=option)
        result = collc.compile_source(source, target="msccl-xml")["grads"]
        assert all(report.ok for report in result.reports)
        details = [check.detail for report in result.reports for check in report.checks]
        assert any("all others by the group" in text for text in details) == (option == "true")
        assert isinstance(result.program, Program)
        listed.append(result.program.num_instructions)
    assert listed[0] <= 0.6 * listed[1]


@pytest.mark.quick
def test_whole_messages_go_to_channels_where_parts_would_not_fit() -> None:
    """A numbered message is one run. Divided into as many parts as channels, it needs as many more steps."""
    program = bucket("torus(8, 8)", "allreduce")
    found = BalanceThreadblocks(max_threadblocks=64, max_steps=16).run(program)
    assert isinstance(found, SymmetricProgram) and verify(found).ok
    assert found.seed.num_channels > 1
    assert len(found.message_start) == len(program.message_start)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_chain_is_found(kind: str) -> None:
    forwarding = next(Forwarding.of(bucket("torus(4, 4)", kind), JoinLimits(64, None, None, 2, True), 1 << 16, 1 << 16))
    joined = forwarding.joined(few=False)
    assert joined is not None and verify(joined).ok
    seed = joined.seed
    for row in np.flatnonzero(seed.sends & seed.receives)[::3].tolist():
        column = "src_offset" if seed.reads_src[row] else "dst_offset"
        changed = getattr(seed, column).astype(np.int64)
        changed[row] = (changed[row] + 1) % (joined.num_ranks * joined.chunks)
        wrong = attrs.evolve(joined, seed=attrs.evolve(seed, **{column: changed}))
        assert not verify(wrong).ok
        assert not verify(laid_out(wrong)).ok


@pytest.mark.quick
def test_the_fastest_number_of_channels_is_chosen() -> None:
    program = BalanceThreadblocks(max_steps=64).run(bucket("torus(8, 8)", "allgather"))
    assert isinstance(program, SymmetricProgram)
    found = Fuse(max_steps=64).run(program)
    assert isinstance(found, SymmetricProgram) and found.forwards
    few = next(Forwarding.of(program, JoinLimits(64, None, None, 2, True), 1 << 16, 1 << 16)).joined(few=False)
    assert few is not None and few.seed.num_channels < found.seed.num_channels


@pytest.mark.quick
def test_of_programs_that_fuse_those_that_a_rank_can_read_come_first() -> None:
    program = BalanceThreadblocks(max_steps=64).run(bucket("torus(8, 8)", "reduce-scatter"))
    assert isinstance(program, SymmetricProgram)
    fastest = Fuse(max_steps=64).run(program)
    assert isinstance(fastest, SymmetricProgram)
    elements = 1 + 64 + fastest.seed.num_blocks + int(steps(fastest.seed).sum())
    shorter = Fuse(max_steps=64, max_elements=elements - 1).run(program)
    assert isinstance(shorter, SymmetricProgram) and verify(shorter).ok
    assert 1 + 64 + shorter.seed.num_blocks + int(steps(shorter.seed).sum()) < elements
    assert Fuse(max_steps=64, max_elements=elements).run(program) == fastest
    assert Fuse(max_steps=64, max_elements=2).run(program) == fastest  # none fits


@pytest.mark.quick
def test_blocks_that_fit_only_if_joined_are_joined() -> None:
    """Apart, a rank would have more threadblocks than the limit."""
    program = bucket("torus(8, 8)", "reduce-scatter")
    balanced = BalanceThreadblocks(max_threadblocks=12, max_steps=32).run(program)
    assert isinstance(balanced, SymmetricProgram) and balanced.seed.num_blocks > 12
    found = Fuse(max_threadblocks=12, max_steps=32).run(balanced)
    assert isinstance(found, SymmetricProgram) and verify(found).ok
    assert found.seed.num_blocks <= 12
