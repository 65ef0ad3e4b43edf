"""Passes that work on the program of one rank and a group: right, within limits, and independent of the ranks."""

from __future__ import annotations

import json
import re

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orbit_programs import forest as orbit_forest
from orbit_programs import orbit_program, orbit_schedule
from sampling import examples
from template_programs import KINDS, cayley_networks, group_networks, instructions_of, network, template

import collc
from collc.backends.msccl_xml.target import MscclXml
from collc.cli import main
from collc.ir.editing import with_dependencies
from collc.ir.laid_out import _runs, laid_out, run_counts
from collc.ir.program import Program
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.fuse import Fuse
from collc.passes.program.lay_out import LayOut
from collc.passes.program.limits import steps
from collc.passes.program.orbit_messages import divided_by_depth, in_parts, message_conflicts, message_order, relays
from collc.passes.program.orbit_numbering import _numbering, numbered_for_runs
from collc.passes.program.prune import PruneDependencies
from collc.passes.program.scratch import ReuseScratch
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.program.unfuse import Unfuse

_NETWORKS = st.one_of(cayley_networks(), group_networks())
_RCCL = "msccl-xml{runtime=rccl}"
SPEC = """
topology pod = {network} with {{ bandwidth: 25 Gbps, latency: 10 us }};
collective grads = {kind} on pod {{ size: 1 MiB }};
schedule grads using {scheduler} {{ template: {template} }};
"""


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, kind=st.sampled_from(KINDS), parts=st.integers(1, 4))
def test_divided_messages_carry_the_same_chunks(topology: Topology, kind: str, parts: int) -> None:
    program = template(topology, kind)
    for found in (divided_by_depth(program), in_parts(program, np.full(len(program.message_start) - 1, parts))):
        assert verify(found).ok
        assert instructions_of(found.unfold()) == instructions_of(program.unfold())
        assert len(found.message_start) >= len(program.message_start)


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, most=st.sampled_from([None, 1, 2]))
def test_a_numbering_never_needs_more_instructions(topology: Topology, most: int | None) -> None:
    program = template(topology, "allreduce")
    found = numbered_for_runs(program, most)
    assert verify(found).ok
    assert run_counts(found, most).sum() <= run_counts(program, most).sum()


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, most=st.sampled_from([None, 1, 2]), divided=st.booleans())
def test_a_program_has_at_least_the_runs_that_its_numbering_counts(
    topology: Topology, most: int | None, divided: bool
) -> None:
    """A numbering is chosen without counting them: what a remark calls the least must be no more than there are."""
    program = template(topology, "allreduce")
    program = divided_by_depth(program) if divided else program
    found = _numbering(program)
    if found is not None:
        assert found.runs <= found.runs_before
        assert 2 * found.runs_before <= int(run_counts(program, most).sum())
        numbered = attrs.evolve(program, numbering=found.places)
        assert 2 * found.runs <= int(run_counts(numbered, most).sum())


@settings(max_examples=examples(30), deadline=None)
@given(
    topology=_NETWORKS, kind=st.sampled_from(KINDS), steps_of_block=st.integers(3, 12),
    channels=st.integers(1, 3), count=st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_messages_fit_the_limits_on_every_rank(
    topology: Topology, kind: str, steps_of_block: int, channels: int, count: int | None
) -> None:
    program = Coalesce(max_count=count).run(template(topology, kind))
    assert isinstance(program, SymmetricProgram)
    fit = BalanceThreadblocks(channels=channels, max_steps=steps_of_block, max_count=count)
    if not fit.works_by_orbits(program):
        return
    found = fit.run(program)
    assert isinstance(found, SymmetricProgram)
    assert verify(found).ok
    pruned = PruneDependencies().run(found)
    assert isinstance(pruned, SymmetricProgram)
    assert verify(pruned).ok
    assert len(pruned.seed.deps) <= len(found.seed.deps)
    listed = LayOut(max_steps=steps_of_block, max_count=count).run(pruned)
    assert verify(listed).ok
    assert int(steps(listed).max()) <= steps_of_block
    assert listed.num_channels >= min(channels, 1)
    assert count is None or int(listed.count[~listed.local].max()) <= count


@settings(max_examples=examples(30), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS))
def test_without_a_dependency_that_prune_keeps_the_program_is_refused(topology: Topology, kind: str) -> None:
    program = PruneDependencies().run(divided_by_depth(template(topology, kind)))
    assert isinstance(program, SymmetricProgram)
    seed = program.seed
    for lost in range(0, len(seed.deps), max(len(seed.deps) // 5, 1)):
        kept = np.arange(len(seed.deps)) != lost
        fewer = with_dependencies(seed, seed.dependent[kept], seed.deps[kept].astype(np.int64))
        assert not verify(attrs.evolve(program, seed=fewer)).ok


@pytest.mark.quick
@pytest.mark.parametrize(("name", "forwards"), [("uniring(8)", True), ("torus(4, 4)", False)])
def test_fuse_joins_blocks_of_a_template_if_many_messages_are_forwarded(name: str, forwards: bool) -> None:
    program = divided_by_depth(template(network(name), "allgather"))
    assert Fuse().works_by_orbits(program)
    assert not Fuse(strategy="flow").works_by_orbits(program)
    assert Fuse(strategy="apart").works_by_orbits(program)
    with remarks() as texts:
        found = Fuse().run(program)
    assert isinstance(found, SymmetricProgram) and found.forwards is forwards and (found is program) is not forwards
    assert ["can be forwarded as they arrive" in text for text in texts] == [not forwards]


@pytest.mark.quick
def test_fuse_lists_all_ranks_if_sets_of_chunks_are_forwarded() -> None:
    """In `bucket` on a torus, and on even rings, messages have several chunks, which lie apart on some ranks."""
    for name, scheduler in (("torus(6, 6)", "bucket"), ("biring(8)", "bfb")):
        source = SPEC.format(network=name, kind="allreduce", scheduler=scheduler, template="true")
        result = collc.compile_source(source, target="msccl-xml")["grads"]
        assert all(report.ok for report in result.reports)
        assert isinstance(result.program, Program) and (result.program.sends & result.program.receives).any()
        assert not any("executed 1 of" in check.detail for report in result.reports for check in report.checks)


@pytest.mark.quick
def test_a_ring_forwards_all_messages_but_its_own() -> None:
    program = template(network("uniring(8)"), "allgather")
    arrival, send = relays(program, message_conflicts(program, message_order(program)))
    assert len(arrival) == len(send) == 6


@pytest.mark.quick
def test_which_passes_take_a_template() -> None:
    gather, scatter = (template(network("torus(3, 3)"), kind) for kind in ("allgather", "reduce-scatter"))
    assert Unfuse().works_by_orbits(gather)
    assert Unfuse().run(gather) is gather
    assert ReuseScratch().run(gather) is gather
    assert ReuseScratch().works_by_orbits(gather)
    assert ReuseScratch().works_by_orbits(scatter)
    assert Unfuse().works_by_orbits(scatter)
    assert not Coalesce(pack="always").works_by_orbits(gather)
    assert not BalanceThreadblocks(max_threadblocks=3).works_by_orbits(gather)
    assert not BalanceThreadblocks(max_steps=1, max_channels=1).works_by_orbits(gather)


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS)
def test_scratch_is_reused_as_on_all_ranks(topology: Topology) -> None:
    program = PruneDependencies().run(Coalesce().run(template(topology, "reduce-scatter")))
    assert isinstance(program, SymmetricProgram)
    found, everywhere = ReuseScratch().run(program), LayOut().run(program)
    assert isinstance(found, SymmetricProgram)
    assert verify(found).ok
    assert verify(LayOut().run(found)).ok
    of_all = ReuseScratch().run(everywhere)
    assert not isinstance(of_all, SymmetricProgram)
    assert int(found.seed.scratch.max()) <= int(of_all.scratch.max())


@pytest.mark.quick
def test_limits_are_counted_with_the_dependencies_of_runs() -> None:
    """Where these make a block too long, the messages of all ranks are distributed again."""
    program = divided_by_depth(template(network("torus(4, 4)"), "allreduce"))
    whole = laid_out(program)
    least = int(np.bincount(whole.block).max())
    listed = LayOut(max_steps=least).run(program)
    assert verify(listed).ok
    assert int(steps(listed).max()) <= least


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, kind=st.sampled_from(KINDS), most=st.integers(2, 8))
def test_runs_are_distributed_when_ranks_are_listed(topology: Topology, kind: str, most: int) -> None:
    """With ``runs`` a template keeps its messages, whatever their number. Its ranks keep the limit, if they can."""
    program = template(topology, kind)
    fit = BalanceThreadblocks(max_steps=most, runs=True)
    assert fit.works_by_orbits(program)
    assert fit.run(program) is program
    try:
        listed = LayOut(max_steps=most).run(program)
    except collc.CollcError as mistake:  # an instruction alone may wait for more than that
        assert [d.code for d in mistake.diagnostics] == ["C0509"]
        return
    assert verify(listed).ok
    assert int(steps(listed).max(initial=0)) <= most


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, kind=st.sampled_from(KINDS), most=st.sampled_from([None, 1, 3]))
def test_the_order_of_runs_is_free(topology: Topology, kind: str, most: int | None) -> None:
    program = template(topology, kind)
    usual, by_place = (laid_out(program, most, by_place=other) for other in (False, True))
    assert verify(by_place).ok
    assert instructions_of(by_place) == instructions_of(usual)


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, chunks=st.integers(1, 3))
def test_an_all_to_all_shares_no_scratch_before_its_passes(topology: Topology, chunks: int) -> None:
    """Then fewer instructions wait; `reuse-scratch` shares it, and the program stays right."""
    schedule = orbit_schedule(topology, "alltoall", chunks)
    shared, apart = (Lower(templates=True, orbits=orbits).run(schedule) for orbits in (False, True))
    assert isinstance(shared, SymmetricProgram) and isinstance(apart, SymmetricProgram)
    assert verify(apart).ok
    assert len(apart.seed.deps) <= len(shared.seed.deps)
    assert int(apart.seed.scratch.max()) >= int(shared.seed.scratch.max())
    reused = ReuseScratch().run(apart)
    assert verify(reused).ok


@pytest.mark.quick
def test_an_all_to_all_on_one_rank_needs_no_more_threadblocks() -> None:
    """With each wait of a message as a step, a rank of this torus had 17."""
    blocks = []
    for template_option in ("false", "true"):
        source = SPEC.format(network="torus(8, 8)", kind="alltoall", scheduler="flow", template=template_option)
        program = collc.compile_source(source, target="msccl-xml").program
        assert isinstance(program, Program)
        blocks.append(int(np.diff(program.rank_blocks).max()))
    assert blocks == [9, 9]


@pytest.mark.quick
def test_scratch_of_a_torus_is_shared_for_files_of_one_rank_only() -> None:
    schedule = orbit_schedule("torus(5, 5)", "alltoall")
    shared, apart = (Lower(templates=True, orbits=orbits).run(schedule) for orbits in (False, True))
    assert isinstance(shared, SymmetricProgram) and isinstance(apart, SymmetricProgram)
    assert int(apart.seed.scratch.max()) > int(shared.seed.scratch.max())
    assert len(apart.seed.deps) < len(shared.seed.deps)


@pytest.mark.quick
def test_chunks_of_trees_are_numbered_if_that_saves_a_quarter() -> None:
    program = divided_by_depth(template(network("torus(4, 4)"), "allreduce"))
    found = numbered_for_runs(program)
    before, after = (int(run_counts(one).sum()) for one in (program, found))
    assert after < before
    for share in range(1, 2 * before // (before - after) + 2):
        saved = numbered_for_runs(program, share=share) is not program
        assert saved == ((before - after) * share >= before)


@pytest.mark.quick
def test_trees_of_a_large_torus_are_numbered_by_lower() -> None:
    """`renumber` does so for all ranks."""
    trees = orbit_schedule("torus(20, 20)", "allreduce")
    numbered, plain = (Lower(join=True, templates=True, orbits=orbits).run(trees) for orbits in (True, False))
    assert isinstance(numbered, SymmetricProgram) and isinstance(plain, SymmetricProgram)
    assert len(numbered.numbering) and not len(plain.numbering)
    assert verify(numbered).ok


@pytest.mark.quick
def test_plans_leave_the_messages_of_trees_to_lay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = []

    def noted(program: SymmetricProgram, most: int | None = None, by_place: bool = False) -> Program:
        orders.append(by_place)
        return laid_out(program, most, by_place)

    monkeypatch.setattr("collc.passes.program.lay_out.laid_out", noted)
    source = SPEC.format(network="torus(17, 17)", kind="allgather", scheduler="forest", template="true")
    result = collc.compile_source(source, target="msccl-xml")["grads"]
    assert all(report.ok for report in result.reports)
    assert orders == [True]


@settings(max_examples=examples(30), deadline=None)
@given(topology=_NETWORKS, kind=st.sampled_from(KINDS), most=st.integers(3, 12))
def test_runs_that_are_kept_are_those_of_the_program(topology: Topology, kind: str, most: int) -> None:
    """Messages that change their order keep their runs: these are not computed again."""
    program = divided_by_depth(template(topology, kind))
    found = BalanceThreadblocks(max_steps=most).run(program)
    if not isinstance(found, SymmetricProgram):
        return
    for one in (found, PruneDependencies().run(found)):
        assert isinstance(one, SymmetricProgram)
        assert found is program or ("runs", None) in one.found
        kept, fresh = (_runs(same, None) for same in (one, attrs.evolve(one)))
        for column in attrs.fields(type(kept)):
            assert np.array_equal(getattr(kept, column.name), getattr(fresh, column.name)), column.name


@pytest.mark.quick
def test_an_all_to_all_keeps_its_numbers() -> None:
    program = template(network("torus(4, 4)"), "alltoall")
    assert numbered_for_runs(program) is program


@pytest.mark.quick
@pytest.mark.parametrize("target", ["msccl-xml", "oneccl-xml", "mscclpp-json"])
@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_passes_work_on_templates_of_trees(target: str, kind: str) -> None:
    source = SPEC.format(network="torus(5, 5)", kind=kind, scheduler="forest", template="true")
    result = collc.compile_source(source, target=target)["grads"]
    assert all(report.ok for report in result.reports)
    assert any("executed 1 of 25" in check.detail for report in result.reports for check in report.checks)


@pytest.mark.quick
def test_trees_in_many_parts_on_boxes_are_listed_before_passes_work_on_them() -> None:
    assert orbit_forest("dgx_a100(3)", "allgather").works_by_orbits
    assert not orbit_forest("mi250(3)", "allgather").works_by_orbits


def test_a_cluster_has_more_threadblocks_than_a_runtime_unless_they_are_joined() -> None:
    """What `docs/design-decisions.md` says of trees on clusters."""
    limits = MscclXml().limits
    for kind in ("allgather", "allreduce", "alltoall"):
        program = orbit_program("dgx_a100(64)", kind)
        blocks = np.diff(program.seed.rank_blocks)[: program.width]
        assert limits.max_threadblocks is not None and blocks.min() > max(limits.max_threadblocks, 128)
        assert kind != "allgather" or set(blocks.tolist()) == {141}
        if kind != "alltoall":
            found = Fuse(max_threadblocks=limits.max_threadblocks).run(program)
            assert isinstance(found, SymmetricProgram)
            assert set(np.diff(found.batched.rank_blocks).tolist()) == {70}


@pytest.mark.quick
def test_a_template_over_the_limits_is_an_error_with_a_place() -> None:
    source = SPEC.format(network="torus(8, 8)", kind="allgather", scheduler="forest", template="true")
    with pytest.raises(collc.CollcError) as caught:
        collc.compile_source(source, target="msccl-xml{threadblocks=3, channels=1}")
    assert [d.code for d in caught.value.diagnostics] == ["C0509"]
    assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize("target", ["msccl-xml", _RCCL, "oneccl-xml", "mscclpp-json"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_templates_are_right_for_every_target(target: str, kind: str) -> None:
    scheduler = "flow" if kind == "alltoall" else "bfb"
    for name in ("torus(4, 4)", "uniring(6)", "cayley(dihedral(4), {1, 2})"):
        source = SPEC.format(network=name, kind=kind, scheduler=scheduler, template="true")
        result = collc.compile_source(source, target=target)["grads"]
        assert all(report.ok for report in result.reports)
        if name == "torus(4, 4)":  # others forward much and are fused, on all ranks
            executed = [check.detail for report in result.reports for check in report.checks]
            assert any("executed 1 of" in text for text in executed)


@pytest.mark.quick
def test_passes_of_a_template_have_its_rows_whatever_the_number_of_ranks(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Four times the ranks are four times the shards of a rank, and sixteen times the rows of all ranks."""
    rows = {}
    for side in (4, 8):
        source = tmp_path / "pod.coll"
        network = f"torus({side}, {side})"
        source.write_text(SPEC.format(network=network, kind="allreduce", scheduler="bfb", template="true"))
        profile = tmp_path / "profile.json"
        output = str(tmp_path / "o.xml")
        assert main(["compile", str(source), "-t", "msccl-xml", "-o", output, "--profile", str(profile)]) == 0
        events = json.loads(profile.read_text())["traceEvents"]
        rows[side] = {e["name"]: e["args"]["rows"] for e in events if "rows" in e.get("args", {}) and e["ph"] == "X"}
    for one in ("lower", "coalesce", "balance-threadblocks", "fuse", "prune-dependencies", "reuse-scratch"):
        assert rows[8][one] < 6 * rows[4][one] < 8 * 64 * 4, one
    assert rows[8]["lay-out"] > 10 * rows[4]["lay-out"]


@pytest.mark.quick
@pytest.mark.parametrize("name", ["torus(4, 4)", "torus(6, 6)", "hypercube(4)", "circulant(24, {1, 5})"])
def test_a_remark_on_a_numbering_says_no_more_than_there_are(name: str) -> None:
    program = template(network(name), "allreduce")
    with remarks() as texts:
        found = Coalesce().run(program)
    assert isinstance(found, SymmetricProgram) and len(found.numbering)
    match = re.search(r"coalesce: (\d+) instructions .* instead of (?:at least )?(\d+)", "\n".join(texts))
    assert match is not None
    after, before = map(int, match.groups())
    assert after == int(run_counts(found).sum())
    assert after < before <= int(run_counts(attrs.evolve(found, numbering=[])).sum())


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["allgather", "alltoall"])
def test_the_last_pass_counts_all_steps_of_a_file_before_it_lists_them(kind: str) -> None:
    """Before others, a step may receive one run and send another, so fewer are certain."""
    program = Coalesce().run(template(network("torus(5, 5)"), kind))
    assert isinstance(program, SymmetricProgram)
    listed = LayOut().run(program)
    most = int(np.bincount(listed.rank).max())  # the instructions of a rank
    least = 1 + listed.num_ranks + most + int(np.diff(listed.rank_blocks).max()) // 2
    assert LayOut(last=True, max_elements=least).run(program).num_instructions == listed.num_instructions
    with pytest.raises(collc.CollcError, match=f"at least {least} elements; the limit is {least - 1}"):
        LayOut(last=True, max_elements=least - 1).run(program)
    assert LayOut(max_elements=least - 1).run(program).num_instructions == listed.num_instructions
