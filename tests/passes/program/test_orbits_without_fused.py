"""Passes on a template for a runtime without fused instructions: `lay-out` replaces them, as on all ranks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orbit_programs import orbit_program
from sampling import examples
from template_programs import cayley_networks, instructions_of, network, template

import collc
from collc.ir.laid_out import laid_out
from collc.ir.program import Opcode, Program
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.analysis.timing import duration
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.copies import EliminateCopies
from collc.passes.program.lay_out import LayOut
from collc.passes.program.orbit_messages import in_order, message_order
from collc.passes.program.prune import PruneDependencies
from collc.passes.program.reorder import ReorderFifo
from collc.passes.program.scratch import ReuseScratch, first_fits
from collc.passes.program.unfuse import Unfuse

_RCCL = "msccl-xml{runtime=rccl}"
SPEC = """
topology pod = {network};
collective grads = {kind} on pod {{ size: 1 MiB }};
schedule grads using {scheduler} {{ {options}template: true }};
"""
#: network, collective, scheduler, its options
PLANS = (
    ("torus(4, 4)", "allreduce", "bfb", ""), ("torus(4, 4)", "reduce-scatter", "bfb", ""),
    ("cayley(dihedral(4), {1, 2})", "allreduce", "bfb", ""), ("torus(4, 4)", "reduce-scatter", "forest", ""),
    ("torus(8, 4)", "allreduce", "swing", "variant: bandwidth, "),
    ("torus(4, 4)", "allreduce", "swing", "variant: latency, "),
    ("hypercube(4)", "allreduce", "rabenseifner", ""), ("dgx_a100(2)", "allreduce", "forest", ""),
    ("dgx_h100(2)", "reduce-scatter", "forest", ""),
)  # fmt: skip


def compiled(plan: tuple[str, str, str, str], level: int = 2) -> collc.CollectiveResult:
    network, kind, scheduler, options = plan
    source = SPEC.format(network=network, kind=kind, scheduler=scheduler, options=options)
    return collc.compile_source(source, target=_RCCL, level=level)["grads"]


def executed(result: collc.CollectiveResult) -> list[str]:
    """Return which ranks were executed, in each check that says so."""
    details = [check.detail for report in result.reports for check in report.checks]
    return [text for text in details if text.startswith("executed ") and " ranks" in text]


def reduced(topology: Topology) -> SymmetricProgram:
    found = Coalesce().run(template(topology, "allreduce"))
    assert isinstance(found, SymmetricProgram)
    return found


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: f"{p[0]}-{p[1]}-{p[2]}-{p[3][9:12]}")
def test_files_are_those_of_all_ranks(plan: tuple[str, str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What `docs/design-decisions.md` says: the file is the same as if all ranks were listed before `unfuse`."""
    by_orbits = compiled(plan)
    assert all(report.ok for report in by_orbits.reports) and executed(by_orbits)
    monkeypatch.setattr(Unfuse, "works_by_orbits", lambda self, ir: not ir.seed.fused.any())
    listed = compiled(plan)
    assert not executed(listed)
    assert by_orbits.program == listed.program


@pytest.mark.quick
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_works_on_one_rank(level: int) -> None:
    for plan in (PLANS[0], PLANS[4], ("biring(32)", "reduce-scatter", "ring", "")):
        result = compiled(plan, level)
        assert all(report.ok for report in result.reports) and executed(result)
        assert isinstance(result.program, Program) and not result.program.fused.any()


@settings(max_examples=examples(30), deadline=None)
@given(topology=cayley_networks(), most=st.sampled_from([None, 1, 3]), steps=st.sampled_from([None, 24]))
def test_runs_of_a_template_are_received_and_added(topology: Topology, most: int | None, steps: int | None) -> None:
    program = reduced(topology)
    unfused = Unfuse().run(program)
    assert isinstance(unfused, SymmetricProgram) and unfused.unfused and verify(unfused).ok
    assert ReuseScratch().run(unfused) is unfused
    listed = LayOut(max_count=most, max_steps=steps, fused=False).run(PruneDependencies().run(unfused))
    assert verify(listed).ok and not listed.fused.any()
    whole = LayOut(max_count=most, max_steps=steps, fused=False).run(program)
    assert int(listed.receives.sum()) == int(whole.receives.sum())
    assert int((listed.opcode == Opcode.REDUCE).sum()) == int((whole.opcode == Opcode.RECV_REDUCE_COPY).sum())


@pytest.mark.quick
def test_other_places_of_what_is_added_are_found() -> None:
    listed = LayOut(fused=False).run(Unfuse().run(reduced(network("torus(4, 4)"))))
    adds = np.flatnonzero(listed.opcode == Opcode.REDUCE)
    for column in ("src_offset", "dst_offset", "count"):
        for row in adds[[0, -1]].tolist():
            changed = getattr(listed, column).astype(np.int64)
            changed[row] += 1
            assert not verify(attrs.evolve(listed, **{column: changed})).ok, column


@pytest.mark.quick
def test_its_text_says_that_instructions_are_replaced() -> None:
    program = Unfuse().run(template(network("torus(3, 3)"), "reduce-scatter"))
    text = print_ir(program)
    assert "  unfused yes\n" in text and parse_ir(text) == program
    assert parse_ir(text.replace("  unfused yes\n", "")) != program


@pytest.mark.parametrize("kind", ["allreduce", "reduce-scatter"])
@pytest.mark.parametrize("name", ["biring(24)", "uniring(26)", "biring(32)"])
def test_rings_forward_on_a_few_ranks_or_none(name: str, kind: str) -> None:
    """A template that forwards is chosen by the time without fused instructions."""
    result = compiled((name, kind, "ring", ""))
    assert all(report.ok for report in result.reports) and executed(result)


@pytest.mark.quick
def test_only_the_ranks_of_a_template_place_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """All others have no data in it: 144 ranks took 98 s where one takes two."""
    seen = list[tuple[int, ...]]()

    def noted(size: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        seen.append(size.shape)
        return first_fits(size, begins, ends)

    monkeypatch.setattr("collc.passes.program.scratch.first_fits", noted)
    program = orbit_program("dgx_a100(2)", "reduce-scatter")
    ReuseScratch().run(program)
    ReuseScratch().run(template(network("torus(4, 4)"), "alltoall"))
    assert [shape[0] for shape in seen] == [program.width, 1]


@pytest.mark.quick
def test_a_marked_template_keeps_its_scratch() -> None:
    """`lay-out` adds scratch, and shares all of it."""
    program = orbit_program("dgx_a100(2)", "reduce-scatter")
    marked = Unfuse().run(program)
    assert isinstance(marked, SymmetricProgram) and marked.unfused
    assert ReuseScratch().run(marked) is marked


def test_a_ring_that_fits_on_all_ranks_fits_as_a_template() -> None:
    """Steps are counted as those of the instructions that replace fused ones."""
    result = compiled(("biring(128)", "allreduce", "ring", ""))
    assert executed(result)
    assert not any("exceeds limits" in text for text in result.remarks)


# ---- passes of -O3


@settings(max_examples=examples(30), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(["allreduce", "alltoall"]))
def test_another_order_takes_less_time(topology: Topology, kind: str) -> None:
    program = template(topology, kind)
    ordered = ReorderFifo().run(program)
    assert isinstance(ordered, SymmetricProgram)
    before, after = (duration(one.batched, 1, 4, 2) for one in (program, ordered))
    assert ordered is program or (after is not None and (before is None or after < before))


@settings(max_examples=examples(30), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(["allgather", "reduce-scatter", "allreduce", "alltoall"]))
def test_passes_of_the_third_level_keep_what_a_template_sends(topology: Topology, kind: str) -> None:
    program = template(topology, kind)
    assert EliminateCopies().works_by_orbits(program) and ReorderFifo().works_by_orbits(program)
    ordered = ReorderFifo().run(program)
    assert isinstance(ordered, SymmetricProgram) and verify(ordered).ok
    assert instructions_of(ordered.unfold()) == instructions_of(program.unfold())
    fewer = EliminateCopies().run(program)
    assert isinstance(fewer, SymmetricProgram) and verify(fewer).ok
    copies, left = (int((one.seed.opcode == Opcode.COPY).sum()) for one in (program, fewer))
    of_all = EliminateCopies().run(laid_out(program))
    assert isinstance(of_all, Program)
    assert left <= copies
    assert left * program.group.order == int((of_all.opcode == Opcode.COPY).sum())


@pytest.mark.quick
def test_messages_in_another_order_are_the_same() -> None:
    program = template(network("torus(3, 3)"), "allgather")
    order = message_order(program)
    found = in_order(program, order)
    assert verify(found).ok and instructions_of(found.unfold()) == instructions_of(program.unfold())


@pytest.mark.parametrize("target", ["msccl-xml", _RCCL, "oneccl-xml"])
@pytest.mark.parametrize(
    "plan", [*PLANS, ("torus(4, 4)", "alltoall", "flow", ""), ("torus(4, 4)", "allgather", "bfb", "")],
    ids=lambda p: f"{p[0]}-{p[1]}-{p[2]}-{p[3][9:12]}",
)  # fmt: skip
def test_the_third_level_works_on_templates(plan: tuple[str, str, str, str], target: str) -> None:
    network, kind, scheduler, options = plan
    source = SPEC.format(network=network, kind=kind, scheduler=scheduler, options=options)
    result = collc.compile_source(source, target=target, level=3)["grads"]
    assert all(report.ok for report in result.reports) and executed(result)


@pytest.mark.quick
@pytest.mark.parametrize("target", ["msccl-xml", _RCCL, "oneccl-xml", "mscclpp-json"])
def test_chunks_may_have_other_places_in_scratch(target: str) -> None:
    """`reuse-scratch` moves them; the verifier cuts both ends of a message alike."""
    for name in ("circulant(8, {1, 2})", "circulant(8, {1, 6})"):
        source = SPEC.format(network=name, kind="alltoall", scheduler="flow", options="")
        result = collc.compile_source(source, target=target, level=3)["grads"]
        assert all(report.ok for report in result.reports)
