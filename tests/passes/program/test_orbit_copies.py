"""What ranks of a template copy aside: adjacent copies are one message, and threadblocks divide them."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import pytest

import collc
from collc.ir.collective import Collective
from collc.ir.laid_out import laid_out
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import verify
from collc.passes.lowering.template import lower_template
from collc.passes.program.lay_out import LayOut
from collc.passes.program.limits import steps
from collc.passes.program.orbit_messages import with_joined_copies
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.synthesis.one_box import template_of
from collc.passes.synthesis.two_tier.scheduler import TwoTier

SPEC = """
topology pod = {network};
collective work = alltoall on pod {{ size: 1 MiB }};
schedule work using {scheduler};
"""


@cache
def exchanged(boxes: int) -> SymmetricProgram:
    """Return the program of one box whose ranks send some shards after others have arrived in their places."""
    topology = collc.topology(f"dgx_a100({boxes})")
    schedule = TwoTier().run(Problem(topology, Collective("alltoall", topology.num_ranks)))
    assert isinstance(schedule, Schedule)
    template = template_of(attrs.evolve(schedule, discrete=True))
    assert template is not None
    found = lower_template(template, shared=False)
    assert found is not None
    return found


def aside(program: SymmetricProgram) -> np.ndarray:
    """Return which messages are copies from input to scratch."""
    batched = program.batched
    return (batched.opcode == Opcode.COPY) & (batched.dst_buffer == Buffer.SCRATCH)


def test_adjacent_copies_from_input_to_scratch_are_one_message() -> None:
    program = exchanged(4)
    found = with_joined_copies(program)
    assert 0 < int(aside(found).sum()) < int(aside(program).sum())
    assert int(found.batched.count[aside(found)].sum()) == int(program.batched.count[aside(program)].sum())
    assert verify(found).ok and verify(laid_out(found)).ok
    assert with_joined_copies(found) is found


def test_copies_that_have_an_order_are_not_joined() -> None:
    """A copy that waits may depend on one before it, and those into output may read what others write."""
    program = exchanged(4)
    copies = np.flatnonzero((program.seed.opcode == Opcode.COPY) & (program.seed.dst_buffer != Buffer.SCRATCH))
    assert not with_joined_copies(program).joined[copies].any()
    joined = program.joined.copy()
    joined[copies[1:]] = 1
    wrong = attrs.evolve(program, joined=joined)
    assert [check.name for check in verify(wrong).failed] == ["structure"]


@pytest.mark.parametrize("most", [4, 7])
def test_what_a_rank_keeps_is_divided_among_threadblocks(most: int) -> None:
    program = exchanged(4)
    assert int(aside(program)[program.batched.rank == 0].sum()) > most
    found = BalanceThreadblocks(max_steps=most).run(program)
    assert isinstance(found, SymmetricProgram)
    assert verify(found).ok
    listed = LayOut(max_steps=most).run(found)
    assert verify(listed).ok and int(steps(listed).max()) <= most
    alone = (found.seed.send_peer < 0) & (found.seed.recv_peer < 0)
    assert np.bincount(found.seed.block_rank[alone]).max() > 1 and not found.seed.channel[alone].any()


def test_an_all_to_all_on_boxes_has_the_instructions_of_passes_on_all_ranks() -> None:
    result = collc.compile_source(SPEC.format(network="dgx_a100(16)", scheduler="two-tier"), target="msccl-xml")["work"]
    assert isinstance(result.program, Program)
    checks = [check.detail for report in result.reports for check in report.checks]
    assert any("executed 8 of 128 ranks, all others by the group" in text for text in checks)
    assert int(np.diff(result.program.rank_blocks).max()) <= 64


def test_a_rank_with_more_peers_than_threadblocks_is_refused_as_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes on all ranks are not tried: a threadblock sends to one peer, whatever they do."""
    monkeypatch.setattr("collc.ir.symmetric.SymmetricSchedule.unfold", None)
    source = SPEC.format(network="dgx_a100(20)", scheduler="flow { template: true }")
    with pytest.raises(collc.CollcError) as caught:
        collc.compile_source(source, target="msccl-xml")
    assert caught.value.diagnostics[0].message == "rank 0 would need at least 159 threadblocks; the limit is 108"
