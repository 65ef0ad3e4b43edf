"""The model of the executor of one-sided programs: right ones pass, and every planted mistake is named."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
import sampling
from one_sided_faults import blocks_of, changed, rebuilt
from one_sided_judge import judge
from one_sided_programs import SHAPES, packets_to_all, ring, ring_of_packets

from collc.ir.collective import Collective
from collc.ir.one_sided import OneSided, Op
from collc.ir.one_sided.verify import _clocks as clocks
from collc.ir.one_sided.verify import program as verifier
from collc.ir.verify import verify

NAMES = ["structure", "bounds", "channels", "packets", "deadlock", "leftover signals", "races", "single reduction",
         "postcondition"]  # fmt: skip


def failures(program):
    return {check.name: check.detail for check in verify(program).failed}


@pytest.mark.parametrize("ranks", [3, 4, 7])
def test_rings_with_signals_are_right(ranks):
    report = verify(ring(ranks))
    assert report.ok, report.failed
    assert [check.name for check in report.checks] == NAMES


def test_blocks_of_more_phases_than_a_byte_counts():
    program = ring(40)
    assert np.count_nonzero(program.opcode == Op.NOP) > 128 * program.num_ranks
    assert failures(program) == {}
    blocks = blocks_of(program)
    rows = blocks[7][1]
    last_put = max(at for at, row in enumerate(rows) if row.op is Op.PUT)
    assert rows[last_put - 1].op is Op.NOP and rows[last_put - 2].op is Op.WAIT
    del rows[last_put - 1]
    assert "no nop stands between" in failures(rebuilt(program, blocks))["races"]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_rings_of_packets_are_right(ranks):
    assert failures(ring_of_packets(ranks)) == {}


def test_two_channels_between_two_ranks_pair_by_ordinal_and_deadlock():
    found = failures(ring(2))
    assert list(found) == ["deadlock"]
    assert (
        "rank 0, block 0, operation 1 (rlxwait) waits for signal 1 of channel 0 from rank 1, which gives 0"
        in (found["deadlock"])
    )
    assert failures(ring(2, one_channel=True)) == {}


def test_packets_to_all_need_both_halves_of_scratch():
    found = failures(packets_to_all(3, double_scratch=False))
    assert list(found) == ["races"] and "may have begun the next launch" in found["races"]
    assert "nothing goes on" in judge(packets_to_all(3, double_scratch=False), 40)
    # around a ring the result itself proves that the packets were read
    assert failures(ring_of_packets(3, double_scratch=False)) == {}


@pytest.mark.parametrize("name", SHAPES)
def test_right_programs_of_every_kind(name):
    assert failures(SHAPES[name]()) == {}
    assert judge(SHAPES[name](), 10) == ""


@pytest.mark.parametrize("name", SHAPES)
def test_what_brute_force_finds_wrong_is_refused(name):
    """Mutants that the model accepts are right in every order that is tried, and many that it refuses are not."""
    confirmed = refused = 0
    for number in range(sampling.examples(64) // 16 if not sampling.EXHAUSTIVE else 200):
        chance = random.Random(f"{name} {number}")
        program = SHAPES[name]()
        for _ in range(chance.choice((1, 1, 2))):
            program = changed(program, chance)
        found = failures(program)
        if not found:
            assert judge(program, 12, number) == "", (name, number)
        elif not set(found) & {"structure", "bounds", "channels", "packets", "out-of-place input is not written"}:
            refused += 1
            confirmed += judge(program, 12, number) != ""
    assert confirmed >= refused // 3


@pytest.mark.parametrize("name", SHAPES)
def test_numbers_of_one_agent_at_a_time_prove_the_same(name, monkeypatch):
    """All numbers of a large program together would fill the memory."""

    def found():
        verifier._right.clear()
        programs = [changed(SHAPES[name](), random.Random(f"{name} {number}")) for number in range(12)]
        return [failures(program) for program in (SHAPES[name](), *programs)]

    whole = found()
    assert any(whole)
    monkeypatch.setattr(clocks, "_MOST_BYTES", 1)
    assert whole == found()


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_loops_of_any_number_of_turns(turns):
    assert judge(SHAPES["loops"](), 10, turns=turns) == ""


def test_a_loop_that_takes_more_turns_than_its_signals():
    program = SHAPES["loops"]()
    uneven = attrs.evolve(program, loop_unit=[4096, 8192, 4096])
    found = failures(uneven)
    assert set(found) <= {"deadlock", "leftover signals"} and "(loops of" in next(iter(found.values()))


def test_programs_that_were_right_are_remembered(monkeypatch):
    program = ring(4)
    assert verify(program).ok
    monkeypatch.setattr(verifier, "_checks", None)
    assert verify(attrs.evolve(program, name="another")).ok
    with pytest.raises(TypeError):
        verify(attrs.evolve(program, inplace=False))


def test_a_block_without_operations_and_a_rank_without_blocks():
    alone = OneSided.build(Collective("allreduce", 1), 1, [(1, 1, 0)], [], [(0, [])], inplace=True)
    assert failures(alone) == {}
    assert failures(OneSided.build(Collective("allreduce", 1), 1, [(1, 1, 0)], [], [], inplace=True)) == {}
    assert list(failures(attrs.evolve(alone, inplace=False))) == ["postcondition"]
