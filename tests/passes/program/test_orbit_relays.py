"""Fused messages of a template: rings on a few ranks, of which all others are images."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import cayley_networks, instructions_of, network, template

import collc
from collc.ir.collective import Collective
from collc.ir.group import Translations
from collc.ir.laid_out import laid_out, run_counts
from collc.ir.opcodes import Opcode
from collc.ir.program import BLOCK_COLUMNS, Program
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.text.parser import parse_ir
from collc.ir.text.printer import print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.base import Pass
from collc.passes.lowering.template import lower_template
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.fuse import Fuse
from collc.passes.program.lay_out import LayOut
from collc.passes.program.limits import steps
from collc.passes.program.merging import merge
from collc.passes.program.orbit_channels import Room, on_channels
from collc.passes.program.orbit_joining import JoinLimits, Turns
from collc.passes.program.orbit_messages import _chunks, divided_by_depth, message_conflicts, message_order, relays
from collc.passes.program.orbit_relays import Forwarding
from collc.passes.program.pairing import pair_blocks
from collc.passes.program.prune import PruneDependencies
from collc.passes.program.relays import followed, without_delay
from collc.passes.program.scratch import ReuseScratch
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.torus.bucket import Bucket

KINDS = ("allgather", "reduce-scatter", "allreduce")
SPEC = """
topology pod = {network} with {{ bandwidth: 25 Gbps, latency: 10 us }};
collective grads = {kind} on pod {{ size: 1 MiB }};
schedule grads using {scheduler} {{ template: {template} }};
"""
_FREE = Room(1, None, None, None, None, True)


def ring(expression: str, kind: str, most: int | None = None) -> SymmetricProgram:
    """Return the program of rank 0, with blocks of at most ``most`` steps."""
    found = BalanceThreadblocks(max_steps=most).run(template(network(expression), kind))
    assert isinstance(found, SymmetricProgram)
    return found


def forwarding(program: SymmetricProgram, most: int | None = None, channels: int | None = None) -> Forwarding | None:
    return next(Forwarding.of(program, JoinLimits(most, channels, None, 2, True), 1 << 16, 1 << 16), None)


def fused(program: SymmetricProgram, most: int | None = None) -> SymmetricProgram:
    found = forwarding(program, most)
    assert found is not None
    result = found.joined(few=False)
    assert result is not None
    return result


@settings(max_examples=examples(40), deadline=None)
@given(
    name=st.sampled_from(["uniring", "biring"]), size=st.integers(3, 16), kind=st.sampled_from(KINDS),
    most=st.sampled_from([None, 6, 9, 20]), few=st.booleans(),
)  # fmt: skip
def test_rings_are_fused_on_a_few_ranks(name: str, size: int, kind: str, most: int | None, few: bool) -> None:
    program = ring(f"{name}({size})", kind, most)
    found = forwarding(program, most)
    assume(found is not None)
    assert found is not None and size % found.program.width == 0
    result = found.joined(few)
    assume(result is not None)
    assert isinstance(result, SymmetricProgram) and result.width == found.program.width
    assert verify(result).ok
    assert found.through[0].size or not result.forwards
    listed = LayOut(max_steps=most).run(ReuseScratch().run(PruneDependencies().run(result)))
    assert isinstance(listed, Program) and verify(listed).ok
    assert most is None or int(steps(listed).max()) <= most
    every = Fuse(max_steps=most).run(LayOut().run(program))
    assert isinstance(every, Program)
    if not few:
        assert int(listed.sends.sum()) == int(every.sends.sum())


@settings(max_examples=examples(30), deadline=None)
@given(size=st.integers(2, 16), kind=st.sampled_from(KINDS), data=st.data())
def test_a_template_of_more_ranks_is_the_same_program(size: int, kind: str, data: st.DataObject) -> None:
    program = template(network(f"uniring({size})"), kind)
    width = data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    wide = program.widened(width)
    assert (wide.width, wide.group.order) == (width, size // width)
    assert verify(wide).ok
    assert instructions_of(wide.unfold()) == instructions_of(program.unfold())


@settings(max_examples=examples(30), deadline=None)
@given(
    size=st.integers(3, 16), kind=st.sampled_from(KINDS), most=st.sampled_from([4, 7, None]), number=st.integers(1, 6)
)
def test_messages_are_on_as_many_channels_as_asked(size: int, kind: str, most: int | None, number: int) -> None:
    program = ring(f"uniring({size})", kind, most)
    found = on_channels(program, number, _FREE)
    assert found is not None and verify(found).ok
    assert found.seed.num_channels == min(number, int(program.batched.sends.sum()))
    sent = np.bincount(found.seed.channel[found.seed.block], found.seed.sends * found.seed.count)
    assert sent.max() - sent.min() <= int(found.seed.count.max())
    room = Room(1, None, number - 1, None, None, True)
    assert on_channels(program, number, room) is None or found.seed.num_channels < number


@settings(max_examples=examples(40), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS), most=st.sampled_from([3, 5]), number=st.integers(1, 4))
def test_channels_of_any_network_are_merged_or_not_at_all(
    topology: Topology, kind: str, most: int, number: int
) -> None:
    program = BalanceThreadblocks(max_steps=most).run(divided_by_depth(template(topology, kind)))
    if isinstance(program, SymmetricProgram):
        found = on_channels(program, number, _FREE)
        assert found is None or verify(found).ok


@settings(max_examples=examples(40), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS))
def test_messages_that_are_forwarded_are_known_by_their_chunks(topology: Topology, kind: str) -> None:
    program = divided_by_depth(template(topology, kind))
    assume(not program.joined.any())
    clashes = message_conflicts(program, message_order(program))
    arrival, send = relays(program, clashes)
    for a, b in zip(*clashes, strict=True):
        if program.seed.sends[a] and program.seed.receives[b] and (clashes[0] == a).sum() == 1:
            same = np.array_equal(_chunks(program, "dst", int(b)), _chunks(program, "src", int(a)))
            assert same == bool(((arrival == b) & (send == a)).any())


@pytest.mark.quick
def test_part_of_an_arrival_is_no_relay() -> None:
    """On an even ring, half of the data go on at the last step."""
    program = divided_by_depth(template(network("biring(8)"), "allgather"))
    clashes = message_conflicts(program, message_order(program))
    arrival, send = relays(program, clashes)
    assert (program.batched.count[arrival] == program.batched.count[send]).all()
    later, earlier = clashes
    forwards = program.batched.sends[later] & program.batched.receives[earlier]
    assert (program.batched.count[later[forwards]] != program.batched.count[earlier[forwards]]).any()


@pytest.mark.quick
def test_a_template_in_which_not_all_can_fuse_is_none() -> None:
    """Its messages of two chunks fill the FIFOs of all ranks at once."""
    found = forwarding(divided_by_depth(template(network("biring(40)"), "reduce-scatter")))
    assert found is not None and len(found.prompt[0])
    assert found.joined(few=False) is None and found.joined(few=True, through=True) is None


def test_channels_divide_the_order_of_the_group() -> None:
    """Blocks of 10 steps need 4 channels on 14 ranks; 7 divide 14."""
    program = ring("uniring(14)", "allreduce", 10)
    assert program.seed.num_channels == 4
    found = forwarding(program, 10)
    assert found is not None
    assert (found.program.width, found.program.seed.num_channels) == (7, 7)
    assert forwarding(program, 10, channels=4) is None


def test_no_channels_of_a_prime_ring_are_alike() -> None:
    """What `docs/design-decisions.md` says: on all ranks the channels differ as those of no template."""
    assert forwarding(ring("uniring(13)", "allreduce", 9), 9) is None
    assert forwarding(ring("uniring(12)", "allreduce", 9), 9) is not None
    source = SPEC.format(network="uniring(37)", kind="allreduce", scheduler="ring", template="true")
    result = collc.compile_source(source, target="msccl-xml")["grads"]
    assert all(report.ok for report in result.reports)
    assert not any("executed" in check.detail and "of 37" in check.detail for r in result.reports for check in r.checks)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "scheduler"), [("uniring(40)", "ring"), ("biring(40)", "ring"), ("uniring(40)", "bfb")]
)
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_rings_are_those_of_all_ranks(name: str, scheduler: str, kind: str) -> None:
    programs = []
    for option in ("true", "false"):
        source = SPEC.format(network=name, kind=kind, scheduler=scheduler, template=option)
        result = collc.compile_source(source, target="msccl-xml")["grads"]
        assert all(report.ok for report in result.reports)
        programs.append(result.program)
        details = [check.detail for report in result.reports for check in report.checks]
        assert any("all others by the group abelian" in text for text in details) == (option == "true")
    one, every = programs
    assert isinstance(one, Program) and isinstance(every, Program)
    assert one.fused.any()
    assert one.num_instructions <= every.num_instructions + 40  # a rank may copy its two halves one by one
    assert int(one.sends.sum()) == int(every.sends.sum())


# ---- planted faults


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_instruction_is_found_in_the_template_and_in_the_file(kind: str) -> None:
    program = fused(ring("uniring(12)", kind, 9), 9)
    seed = program.seed
    assert program.width > 1 and verify(program).ok
    rows = np.flatnonzero(seed.sends & seed.receives)
    for row in (int(rows[0]), int(rows[len(rows) // 2]), int(rows[-1])):
        for column in ("src_offset", "dst_offset"):
            if not (seed.reads_src if column == "src_offset" else seed.writes_dst)[row]:
                continue
            changed = getattr(seed, column).astype(np.int64)
            changed[row] = (changed[row] + 1) % 12
            wrong = attrs.evolve(program, seed=attrs.evolve(seed, **{column: changed}))
            assert not verify(wrong).ok
            assert not verify(laid_out(wrong)).ok


@pytest.mark.quick
def test_a_changed_channel_is_found() -> None:
    program = fused(ring("uniring(12)", "allreduce", 9), 9)
    channel = program.seed.channel.astype(np.int64)
    first = np.flatnonzero(program.seed.block_rank == 0)
    channel[first[:2]] = channel[first[:2]][::-1]
    wrong = attrs.evolve(program, seed=attrs.evolve(program.seed, channel=channel))
    assert not verify(wrong).ok
    assert not verify(laid_out(wrong)).ok


@pytest.mark.quick
def test_a_group_that_does_not_keep_channels_is_found() -> None:
    """With half the ranks of the template, channels would not meet."""
    program = fused(ring("uniring(12)", "allreduce", 9), 9)
    width = program.width
    assert width == 3
    seed = program.seed
    kept = np.flatnonzero(seed.block_rank < 1)
    rows = slice(0, int(seed.block_start[len(kept)]))
    columns = {
        c: getattr(seed, c)[rows] for c in ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")
    }
    deps = int(seed.dep_start[rows.stop])
    less = attrs.evolve(
        seed, **columns, **{c: getattr(seed, c)[kept] for c in BLOCK_COLUMNS},
        block_start=seed.block_start[: len(kept) + 1], dep_start=seed.dep_start[: rows.stop + 1], deps=seed.deps[:deps],
    )  # fmt: skip
    wrong = attrs.evolve(program, seed=less, group=Translations((12,)), joined=program.joined[rows])
    assert not verify(wrong).ok


@pytest.mark.quick
def test_a_message_that_is_forwarded_joins_no_other() -> None:
    program = fused(ring("uniring(12)", "allgather", 9), 9)
    row = int(np.flatnonzero(program.seed.opcode == Opcode.RECV_COPY_SEND)[1])
    joined = program.joined.astype(bool)
    joined[row] = True
    report = verify(attrs.evolve(program, joined=joined))
    assert not report.ok and report.failed[0].name == "structure"


# ---- what else takes such templates


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_a_fused_template_is_printed_and_read(kind: str) -> None:
    program = fused(ring("uniring(12)", kind, 9), 9)
    again = parse_ir(print_ir(program))
    assert again == program
    assert verify(again).ok


@pytest.mark.quick
def test_each_forwarded_message_is_one_instruction_on_every_rank() -> None:
    program = fused(ring("uniring(8)", "allreduce"))
    assert program.forwards
    assert (run_counts(program) == 1).all()
    assert laid_out(program).num_instructions == program.seed.num_instructions * program.group.order
    assert not ring("uniring(8)", "allreduce").forwards


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
@pytest.mark.parametrize(
    ("name", "scheduler"),
    [
        ("torus(6, 6)", Bucket(template=True)), ("torus(4, 4, 4)", Bucket(template=True)),
        ("biring(8)", BFB(template=True)),
    ],
    ids=["torus", "torus of 3 dimensions", "even ring"],
)  # fmt: skip
def test_if_all_ranks_forward_messages_as_long_as_fifos_none_can(name: str, scheduler: Pass, kind: str) -> None:
    """What `docs/design-decisions.md` says: of all ranks listed, one that does not fuse lets the others forward."""
    topology = network(name)
    steps_of_one = Discretize(templates=True).run(
        scheduler.run(Problem(topology, Collective(kind, topology.num_ranks)))
    )
    assert isinstance(steps_of_one, SymmetricSchedule)
    lowered = lower_template(steps_of_one)
    assert lowered is not None
    program = Coalesce().run(lowered)
    assert isinstance(program, SymmetricProgram)
    turns = Turns.of(program, 1 << 16, 1 << 16)
    batched, clashes = program.batched, turns.clashes
    flow = without_delay(batched, turns.times, clashes, relays(program, clashes))
    pairs = pair_blocks(batched, flow, False, np.zeros(batched.num_blocks, dtype=np.int64))
    follow = followed(batched, flow, pairs)
    assert (follow >= 0).any() and int(batched.count[batched.sends].max()) >= 2
    merged = merge(batched, turns.times.due, lambda: turns.place, clashes, follow, pairs.host, depth=2)
    assert merged is not None and (merged.follow < 0).all()
