"""Blocks of boxes that are joined on one box: right on all ranks, within limits, as many on each rank."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orbit_programs import KINDS, boxes, orbit_program, orbit_schedule
from sampling import examples
from template_programs import template

import collc
from collc.ir.editing import take, with_dependencies
from collc.ir.laid_out import laid_out, run_counts
from collc.ir.machine import completes_with
from collc.ir.program import Program
from collc.ir.ragged import owners
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.program.fuse import Fuse
from collc.passes.program.lay_out import LayOut
from collc.passes.program.limits import PARTS, steps
from collc.passes.program.orbit_joining import JoinLimits, Turns, block_steps, in_pairs
from collc.passes.program.orbit_messages import divided_by_depth
from collc.passes.program.orbit_numbering import numbered_for_runs
from collc.passes.program.pairing import PER_CHANNEL
from collc.passes.program.prune import PruneDependencies
from collc.passes.program.threadblocks import BalanceThreadblocks

NETWORKS = ("dgx_a100(3)", "dgx_h100(2)")
clusters = st.builds(
    lambda shape, rails: boxes(*shape, rails), st.sampled_from([(3, 2), (4, 2), (5, 2), (4, 3), (5, 3)]),
    st.sampled_from(["ib[g]", "ib[0]"]),
)  # fmt: skip
SPEC = """
topology pod = {network};
collective grads = {kind} on pod {{ size: 64 MiB }};
schedule grads using {scheduler} {{ template: true }};
"""


def lowered(network: object, kind: str, pieces: int = 1) -> SymmetricProgram:
    """Return the template on which passes work for files that list all ranks."""
    schedule = orbit_schedule(network, kind, pieces)  # type: ignore[arg-type]
    program = Lower(join=True, templates=True, orbits=True).run(schedule)
    assert isinstance(program, SymmetricProgram)
    return program


def joined(program: SymmetricProgram, most: int | None = None, depth: int = 2) -> SymmetricProgram | None:
    return in_pairs(Turns.of(program, 1 << 16, 1 << 10), JoinLimits(most, None, None, depth, True))


@settings(max_examples=examples(25), deadline=None)
@given(topology=clusters, kind=st.sampled_from(KINDS), pieces=st.integers(1, 2), depth=st.integers(1, 8))
def test_joined_blocks_do_what_separate_ones_do(topology: object, kind: str, pieces: int, depth: int) -> None:
    program = lowered(topology, kind, pieces)
    found = joined(program, depth=depth)
    assert found is not None
    report = verify(found)
    assert report.ok, report
    listed = LayOut().run(found)
    assert verify(listed).ok
    assert run_counts(found).sum() == run_counts(program).sum()
    assert np.array_equal(run_counts(found), run_counts(attrs.evolve(found)))
    assert completes_with(found.batched, depth)


@settings(max_examples=examples(15), deadline=None)
@given(topology=clusters, kind=st.sampled_from(["allgather", "allreduce"]), pieces=st.integers(1, 2))
def test_blocks_of_one_peer_are_joined_on_every_rank(topology: object, kind: str, pieces: int) -> None:
    """Blocks that send to each other take turns, so none is separated again."""
    program = lowered(topology, kind, pieces)
    found = joined(program)
    assert found is not None
    before, after = (np.diff(one.batched.rank_blocks) for one in (program, found))
    local = int(((program.seed.send_peer < 0) & (program.seed.recv_peer < 0)).any())
    assert (after == (before - local) // 2).all()


@pytest.mark.quick
@pytest.mark.parametrize("most", [6, 10, 20])
def test_joined_blocks_keep_a_limit_of_steps(most: int) -> None:
    program = lowered("dgx_a100(3)", "allgather")
    alone = block_steps(program, JoinLimits(None, None, None, 2, True))
    found = joined(program, most)
    assert found is not None
    assert int(block_steps(found, JoinLimits(None, None, None, 2, True)).max()) <= max(most, int(alone.max()))
    assert int(steps(LayOut().run(found)).max()) <= max(most, int(alone.max()))


@pytest.mark.quick
def test_a_long_block_joins_a_short_one_of_another_peer() -> None:
    """Blocks inside the box are long on a cluster of many boxes, and those to other boxes are short."""
    program = lowered("dgx_a100(12)", "allgather")
    length = block_steps(program, JoinLimits(None, None, None, 2, True))
    seed = program.seed
    inside = (np.maximum(seed.send_peer, seed.recv_peer) < 8) & (np.maximum(seed.send_peer, seed.recv_peer) >= 0)
    assert int(length[inside].min()) > int(length[~inside & (seed.send_peer >= 0)].max())
    most = int(length[inside].max()) + int(length[~inside & (seed.send_peer >= 0)].max())
    assert 2 * int(length[inside].min()) > most
    found = joined(program, most)
    assert found is not None
    assert set(np.diff(found.batched.rank_blocks).tolist()) == {7 + 11}


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_planted_faults_in_joined_blocks_are_found(kind: str) -> None:
    """A dependency that is lost, a message that comes earlier, a channel of another connection."""
    found = joined(divided_by_depth(lowered("mi250(3)", kind)))
    assert found is not None and verify(found).ok
    seed = found.seed
    for lost in range(0, len(seed.deps), max(len(seed.deps) // 7, 1)):
        kept = np.arange(len(seed.deps)) != lost
        fewer = with_dependencies(seed, seed.dependent[kept], seed.deps[kept].astype(np.int64))
        assert not verify(attrs.evolve(found, seed=fewer)).ok
    both = np.flatnonzero((seed.send_peer >= 0) & (seed.recv_peer >= 0))
    assert len(both)
    channel = seed.channel.astype(np.int64)
    channel[both[0]] += 1
    assert not verify(attrs.evolve(found, seed=attrs.evolve(seed, channel=channel))).ok
    peers = seed.send_peer.astype(np.int64)
    peers[both[:2]] = peers[both[:2]][::-1]
    assert not verify(attrs.evolve(found, seed=attrs.evolve(seed, send_peer=peers))).ok


@pytest.mark.quick
def test_messages_of_a_joined_block_in_another_order_are_found() -> None:
    """Both ends send first: with one slot that is a deadlock, or what they send has not arrived yet."""
    program = lowered("dgx_a100(3)", "allreduce")
    found = joined(program)
    assert found is not None
    seed, start = found.seed, found.message_start
    block = int(np.flatnonzero((seed.send_peer >= 0) & (seed.recv_peer >= 0))[0])
    messages = np.flatnonzero(found.batched.block == block)
    order = np.arange(len(start) - 1)
    order[messages] = messages[::-1]
    rows = np.concatenate([np.arange(start[m], start[m + 1]) for m in order.tolist()])
    place = np.argsort(rows)
    moved = with_dependencies(take(seed, rows, seed.block[rows]), place[seed.dependent], place[seed.deps])
    assert not verify(attrs.evolve(found, seed=moved, joined=found.joined[rows])).ok


@settings(max_examples=examples(20), deadline=None)
@given(topology=clusters, pieces=st.integers(1, 3), most=st.sampled_from([None, 1, 3]))
def test_chunks_of_boxes_are_numbered_for_fewer_runs(topology: object, pieces: int, most: int | None) -> None:
    program = lowered(topology, "allreduce", pieces)
    program = attrs.evolve(program, numbering=np.zeros(0, dtype=np.int64))
    found = numbered_for_runs(program, most)
    assert verify(found).ok
    assert verify(laid_out(found, most)).ok
    assert run_counts(found, most).sum() <= run_counts(program, most).sum()


@pytest.mark.quick
def test_numbered_chunks_of_boxes_save_most_instructions() -> None:
    program = attrs.evolve(lowered("dgx_a100(8)", "allreduce"), numbering=np.zeros(0, dtype=np.int64))
    assert 2 * run_counts(numbered_for_runs(program)).sum() < run_counts(program).sum()


@settings(max_examples=examples(20), deadline=None)
@given(
    topology=clusters, kind=st.sampled_from(KINDS), most=st.integers(3, 12), channels=st.integers(1, 2),
    count=st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_messages_of_boxes_fit_the_limits_on_every_rank(
    topology: object, kind: str, most: int, channels: int, count: int | None
) -> None:
    program = lowered(topology, kind)
    fit = BalanceThreadblocks(channels=channels, max_steps=most, max_count=count)
    if not fit.works_by_orbits(program):
        return
    found = fit.run(program)
    assert isinstance(found, SymmetricProgram)
    assert verify(found).ok
    pruned = PruneDependencies().run(found)
    try:
        listed = LayOut(max_steps=most, max_count=count).run(pruned)
    except collc.CollcError as mistake:  # an instruction alone may wait for more than that
        assert [d.code for d in mistake.diagnostics] == ["C0509"]
        return
    assert verify(listed).ok
    assert int(steps(listed).max()) <= most


@pytest.mark.quick
def test_no_rank_of_a_template_has_too_many_peers_on_a_channel() -> None:
    """A rank sends to 63 others and receives from as many: on one channel it may have 31 of each."""
    program = lowered("dgx_a100(40)", "allgather")
    found = joined(program)
    assert found is not None
    seed = found.seed
    for peer in (seed.send_peer, seed.recv_peer):
        used = peer >= 0
        key = seed.block_rank[used].astype(np.int64) * found.num_channels + seed.channel[used]
        assert int(np.bincount(key).max()) <= PER_CHANNEL


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "target", ["msccl-xml", "msccl-xml{runtime=msccl}", "msccl-xml{runtime=rccl}", "oneccl-xml", "mscclpp-json"]
)
@pytest.mark.parametrize("network", NETWORKS)
def test_files_of_boxes_are_right_for_every_target(network: str, target: str, kind: str) -> None:
    source = SPEC.format(network=network, kind=kind, scheduler="flow" if kind == "alltoall" else "forest")
    result = collc.compile_source(source, target=target)["grads"]
    assert all(report.ok for report in result.reports)
    assert isinstance(result.program, Program) or target == "mscclpp-json"
    if kind in ("allgather", "alltoall") or "rccl" not in target:
        executed = [check.detail for report in result.reports for check in report.checks]
        assert any("of " in text and "by the group" in text for text in executed)


@pytest.mark.quick
def test_fuse_joins_the_blocks_of_boxes() -> None:
    program = lowered("dgx_a100(3)", "allgather")
    fuse = Fuse(max_steps=256)
    assert fuse.works_by_orbits(program)
    found = fuse.run(program)
    assert isinstance(found, SymmetricProgram)
    assert np.diff(found.batched.rank_blocks).max() == 9
    assert not Fuse(max_threadblocks=8, max_steps=256).works_by_orbits(program)


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_what_a_rank_needs_is_known_before_ranks_are_listed(kind: str) -> None:
    """The least elements of a file are no more than those of the file."""
    program = PruneDependencies().run(joined(lowered("dgx_a100(6)", kind)))  # type: ignore[arg-type]
    listed = LayOut().run(program)
    of_rank = listed.block_rank[owners(np.diff(listed.block_start.astype(np.int64)))]
    length = np.bincount(of_rank, np.maximum(listed.num_dependencies, 1)).astype(int)
    found = int((1 + listed.num_ranks + np.diff(listed.rank_blocks) + length).max())
    assert LayOut(max_elements=found).run(program).num_instructions == listed.num_instructions
    with pytest.raises(collc.CollcError) as caught:
        LayOut(max_elements=found // 2).run(program)
    assert [d.code for d in caught.value.diagnostics] == ["C0509"]
    assert caught.value.diagnostics[0].excess is not None
    assert found // 2 < caught.value.diagnostics[0].excess.found <= found


@pytest.mark.quick
def test_a_rank_with_more_peers_than_threadblocks_is_refused_at_once() -> None:
    program = orbit_program("dgx_a100(6)", "alltoall")
    with pytest.raises(collc.CollcError) as caught:
        LayOut(max_threadblocks=46, max_steps=64).run(program)
    assert "rank 0 would need at least 47 threadblocks; the limit is 46" in str(caught.value)
    assert LayOut(max_threadblocks=95, max_steps=64).run(program).num_ranks == 48


@settings(max_examples=examples(20), deadline=None)
@given(topology=clusters, kind=st.sampled_from(KINDS), most=st.integers(2, 12), depth=st.integers(1, 2))
def test_joined_blocks_that_do_not_fit_are_distributed_again(
    topology: object, kind: str, most: int, depth: int
) -> None:
    found = joined(lowered(topology, kind), depth=depth)
    assert found is not None
    try:
        listed = LayOut(max_steps=most, fifo_depth=depth).run(found)
    except collc.CollcError as mistake:  # an instruction alone may wait for more than that
        assert [d.code for d in mistake.diagnostics] == ["C0509"]
        return
    assert verify(listed).ok
    assert int(steps(listed).max()) <= most
    both = (listed.send_peer >= 0) & (listed.recv_peer >= 0)
    assert not both.any() or completes_with(listed, depth, 1)


@pytest.mark.quick
@pytest.mark.parametrize(("network", "fits"), [("dgx_a100(3)", True), ("dgx_a100(40)", False)])
def test_blocks_are_joined_only_if_their_channels_are_few_enough(network: str, fits: bool) -> None:
    program = lowered(network, "allgather")
    found = in_pairs(Turns.of(program, 1 << 16, 1 << 10), JoinLimits(None, 1, None, 2, True))
    assert (found is not None) is fits


@pytest.mark.quick
def test_what_fuse_makes_one_step_later_counts_once() -> None:
    """A ring is listed before it is fused: then a rank receives and sends in one step."""
    source = SPEC.format(network="uniring(8)", kind="allgather", scheduler="bfb")
    fused = collc.compile_source(source, target="msccl-xml").program
    assert isinstance(fused, Program) and (fused.sends & fused.receives).any()
    program = template(collc.topology("uniring(8)"), "allgather")
    steps_of_rank = int(np.diff(fused.block_start[fused.rank_blocks].astype(np.int64)).max())
    elements = 1 + 8 + int(np.diff(fused.rank_blocks).max()) + steps_of_rank
    assert LayOut(max_elements=elements).run(program).num_instructions > 8 * steps_of_rank
    with pytest.raises(collc.CollcError, match="elements"):
        LayOut(max_elements=1 + 8 + 5).run(program)


@pytest.mark.quick
def test_joined_blocks_that_need_longer_fifos_are_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = joined(lowered("dgx_a100(3)", "allgather"))
    assert found is not None
    depths = []

    def refused(program: Program, depth: int, split: int | None = None) -> bool:
        depths.append((depth, split))
        return False

    assert ((listed := LayOut(fifo_depth=2).run(found)).send_peer[listed.recv_peer >= 0] >= 0).any()
    monkeypatch.setattr("collc.passes.program.lay_out.completes_with", refused)
    apart = LayOut(fifo_depth=2).run(found)
    assert depths == [(2, 1)]
    assert not ((apart.send_peer >= 0) & (apart.recv_peer >= 0)).any()
    assert verify(apart).ok


@pytest.mark.quick
@pytest.mark.parametrize(("network", "kind"), [("dgx_a100(3)", "allreduce"), ("torus(4, 4)", "alltoall")])
@pytest.mark.parametrize("fused", [True, False])
def test_steps_are_counted_on_every_image(network: str, kind: str, fused: bool) -> None:
    program = divided_by_depth(lowered(network, kind))
    batched, runs = program.batched, run_counts(program, 2)
    assert int(batched.num_dependencies.max()) > 1
    found = block_steps(program, JoinLimits(None, None, 2, 2, fused))
    for block in range(program.seed.num_blocks):
        total = np.zeros(len(runs), dtype=np.int64)
        for message in np.flatnonzero(batched.block == block).tolist():
            each = runs[:, message] * (1 if fused else int(PARTS[batched.opcode[message]]))
            free = each if kind == "alltoall" else 1
            total += each + np.maximum(int(batched.num_dependencies[message]) - free, 0)
        assert found[block] == total.max()


@pytest.mark.quick
def test_channels_of_boxes_have_as_many_ranks_as_a_runtime_takes() -> None:
    found = BalanceThreadblocks().run(lowered("dgx_a100(40)", "allgather"))
    assert isinstance(found, SymmetricProgram)
    seed = found.seed
    for peer in (seed.send_peer, seed.recv_peer):
        used = peer >= 0
        key = seed.block_rank[used].astype(np.int64) * found.num_channels + seed.channel[used]
        assert int(np.bincount(key).max()) <= PER_CHANNEL
