"""Schedules that a group of ranks moves on any network: the program of one rank is that of all, and files hold it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.backends.msccl_xml.target import MscclXml
from collc.driver.other_ways import _of_all_ranks
from collc.driver.plan import Plan
from collc.frontends.coll import topology as parsed
from collc.ir.collective import Collective
from collc.ir.group import Group, Mirrored, Translations
from collc.ir.regular import moved_by_ranks
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import verify
from collc.ir.verify.symmetric_program import template_strayed
from collc.passes.lowering import regular
from collc.passes.lowering.lower import Lower
from collc.passes.lowering.regular import lower_by_ranks
from collc.passes.lowering.template import lower_template
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.renumber import Renumber
from collc.registry.classes import pass_class

KINDS = ("allgather", "reduce-scatter", "allreduce")
ROTATIONS, AGAINST, BITS, BOXES = Translations((16,)), Mirrored((16,)), Translations((2, 2, 2, 2)), Translations((4, 4))
#: schedulers, and the group that moves their schedules on 16 ranks
MOVED: dict[str, Group] = {
    "trivance": ROTATIONS, "pat": ROTATIONS, "ring": ROTATIONS, "swing": AGAINST, "bine": AGAINST,
    "rabenseifner": BITS, "recursive-doubling": BITS, "two-level": BOXES,
}  # fmt: skip
CASES = [(name, kind) for name in MOVED for kind in KINDS if name != "recursive-doubling" or kind == "allreduce"]
SWITCHED = ("leaf_spine(4, 4, 2)", "clustered(complete(4), 4, 25)")


def schedule(network: str, kind: str, scheduler: str) -> Schedule:
    topology = parsed(network)
    found = pass_class(scheduler)().run(Problem(topology, Collective(kind, topology.num_ranks)))  # type: ignore[arg-type]
    discrete = Discretize().run(found)  # type: ignore[arg-type]
    assert isinstance(discrete, Schedule), "no group moves the routes of a network with switches"
    return discrete


def rows_of(s: Schedule) -> list[tuple[int, ...]]:
    columns = (s.step, s.action, s.src, s.dst, s.shard, s.lo, s.hi)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.quick
@pytest.mark.parametrize("network", SWITCHED)
@pytest.mark.parametrize(("scheduler", "kind"), CASES)
def test_the_images_of_one_shard_are_the_schedule(network: str, scheduler: str, kind: str) -> None:
    found = schedule(network, kind, scheduler)
    moved = moved_by_ranks(found)
    assert moved is not None
    group = MOVED[scheduler]
    assert moved.symmetry == group
    images = [
        (step, action, int(group.multiply(g, src)), int(group.multiply(g, dst)), g, lo, hi)
        for step, action, src, dst, shard, lo, hi in rows_of(moved.seed)
        for g in range(16)
        if shard == 0
    ]
    assert sorted(images) == rows_of(found)


@pytest.mark.quick
@pytest.mark.parametrize("network", SWITCHED)
@pytest.mark.parametrize(("scheduler", "kind"), CASES)
def test_the_program_of_one_rank_is_right_and_sends_no_more(network: str, scheduler: str, kind: str) -> None:
    moved = moved_by_ranks(schedule(network, kind, scheduler))
    assert moved is not None
    program = lower_template(moved)
    assert program is not None
    report = verify(program)
    assert report.ok and "executed 1 of 16 ranks" in " ".join(check.detail for check in report.checks)
    assert not template_strayed(program, moved)
    if not program.fixed:
        assert verify(program.unfold()).ok


@given(st.sampled_from(CASES), st.data())
def test_one_other_transfer_is_seen(case: tuple[str, str], data: st.DataObject) -> None:
    scheduler, kind = case
    found = schedule(SWITCHED[0], kind, scheduler)
    row = data.draw(st.integers(0, len(found) - 1))
    column = data.draw(st.sampled_from(["step", "shard", "action", "route"]))
    values = getattr(found, column).astype(np.int64).copy()
    others = {"step": found.num_steps, "shard": 16, "action": 2, "route": len(found.routes)}[column]
    other = data.draw(st.integers(0, others - 1).filter(lambda value: value != values[row]))
    values[row] = other
    changed = attrs.evolve(found, **{column: values})
    if rows_of(changed) != rows_of(found):
        assert moved_by_ranks(changed) is None


@pytest.mark.quick
def test_schedules_of_other_kinds_are_left() -> None:
    """A group of ranks says nothing of uneven shards, of roots, nor of transfers that a switch copies or adds."""
    found = schedule(SWITCHED[0], "allgather", "pat")
    assert moved_by_ranks(found) is not None
    uneven = Collective("allgather", 16, weights=tuple(range(1, 17)))
    assert moved_by_ranks(attrs.evolve(found, collective=uneven)) is None
    assert moved_by_ranks(attrs.evolve(found, in_network=True)) is None
    rooted = Problem(found.topology, Collective("broadcast", 16, root=0))
    tree = Discretize().run(pass_class("double-binary-tree")().run(rooted))  # type: ignore[arg-type]
    assert isinstance(tree, Schedule) and moved_by_ranks(tree) is None


# ---- where it pays


@pytest.fixture
def _all_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular, "MOST_LISTED", 0)
    monkeypatch.setattr(regular, "_MOST_ALLGATHER", 0)


@pytest.mark.quick
def test_short_schedules_list_all_ranks() -> None:
    assert lower_by_ranks(schedule(SWITCHED[0], "allreduce", "pat"), orbits=True) is None


@pytest.mark.quick
@pytest.mark.usefixtures("_all_long")
def test_passes_work_on_all_ranks_where_they_fuse_more() -> None:
    assert lower_by_ranks(schedule("dgx_a100(6)", "allreduce", "two-level"), orbits=True) is not None, "6 boxes of 8"
    for kind, orbits, due in [("allreduce", True, True), ("allgather", True, True), ("reduce-scatter", True, False),
                              ("reduce-scatter", False, True)]:  # fmt: skip
        assert (lower_by_ranks(schedule(SWITCHED[0], kind, "pat"), orbits) is not None) == due
    assert lower_by_ranks(schedule(SWITCHED[0], "allreduce", "ring"), orbits=True) is None, "messages of one transfer"


@pytest.mark.quick
@pytest.mark.usefixtures("_all_long")
@pytest.mark.parametrize("scheduler", ["trivance", "pat", "bine", "rabenseifner", "recursive-doubling"])
def test_chunks_keep_their_numbers_until_the_program_of_one_rank_numbers_them(scheduler: str) -> None:
    found = schedule(SWITCHED[0], "allreduce", scheduler)
    assert Renumber(templates=True).run(found) is found
    by_one = Lower(templates=True, orbits=True).run(found)
    assert isinstance(by_one, SymmetricProgram) and by_one.group == MOVED[scheduler]
    assert not isinstance(Lower(templates=False).run(found), SymmetricProgram)


SPEC = "topology net = {}; collective c = {} on net {{ size: 64 MiB }}; schedule c using {};"


@pytest.mark.usefixtures("_all_long")
@pytest.mark.parametrize("target", ["msccl-xml", "oneccl-xml", "mpi-c", "mscclpp-json"])
@pytest.mark.parametrize(("scheduler", "kind"), [
    ("trivance", "allreduce"), ("bine", "allreduce"), ("swing { variant: latency }", "allreduce"),
    ("recursive-doubling", "allreduce"), ("pat", "allgather"), ("two-level { across: pat }", "allreduce"),
])  # fmt: skip
def test_files_of_switched_networks_come_from_one_rank(scheduler: str, kind: str, target: str) -> None:
    result = collc.compile_source(SPEC.format("leaf_spine(4, 4, 2)", kind, scheduler), target=target)["c"]
    details = " ".join(check.detail for report in result.reports for check in report.checks)
    assert "executed 1 of 16 ranks" in details
    assert all(report.ok for report in result.reports)


@pytest.mark.usefixtures("_all_long")
def test_messages_are_as_few_as_without_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recursive doubling uses one route inside a leaf and two to others; both programs send 6 messages a rank."""

    def sends() -> int:
        text = SPEC.format("leaf_spine(4, 4, 2)", "allreduce", "recursive-doubling")
        program = collc.compile_source(text, target="mpi-c")["c"].program
        assert isinstance(program, SymmetricProgram)
        return int(program.batched.sends.sum()) * program.group.order

    few = sends()
    monkeypatch.setattr(regular, "MOST_LISTED", 1 << 40)
    monkeypatch.setattr("collc.driver.pipeline.MOST_LISTED", 0)
    assert few == sends() == 6 * 16


def test_a_cluster_of_256_ranks_is_one_rank_moved(tmp_path: Path) -> None:
    source = SPEC.format("leaf_spine(16, 16, 8)", "allreduce", "bine")
    result = collc.compile_source(source, target="msccl-xml")["c"]
    assert "executed 1 of 256 ranks" in " ".join(c.detail for report in result.reports for c in report.checks)
    ((_, (file,)),) = result.emitted
    path = tmp_path / "bine.xml"
    path.write_text(file.text)
    from collc.cli import main

    assert main(["verify", str(path)]) == 0
    path.write_text(file.text.replace('srcoff="1"', 'srcoff="2"', 1))
    assert main(["verify", str(path)]) != 0


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_a_cluster_are_those_of_one_rank(kind: str) -> None:
    """Those of all ranks take half a megabyte and more."""
    result = collc.compile_source(SPEC.format("leaf_spine(16, 16, 8)", kind, "trivance"), target="mpi-c")["c"]
    ((_, files),) = result.emitted
    assert max(len(file.content) for file in files) < 150_000


@pytest.mark.quick
@pytest.mark.usefixtures("_all_long")
def test_a_program_of_one_rank_that_exceeds_a_limit_is_made_of_all_ranks() -> None:
    found = schedule(SWITCHED[0], "allreduce", "pat")
    template = Lower(templates=True, orbits=True).run(found)
    chain = Plan((Renumber(templates=True), Lower(templates=True, orbits=True)), SymmetricProgram)

    def listed(blocks: int | None, program: object) -> Plan | None:
        maker = SimpleNamespace(runner=SimpleNamespace(schedule=found, template=program))
        return _of_all_ranks(maker, chain, MscclXml(threadblocks=blocks))  # type: ignore[arg-type]

    peers = len(set(template.seed.send_peer.tolist()) - {-1})  # type: ignore[union-attr]
    again = listed(peers, template)
    assert again is not None and not any(this.templates for this in again.passes)  # type: ignore[attr-defined]
    assert listed(peers - 1, template) is None, "each peer needs a threadblock"
    assert listed(None, None) is None, "all ranks were listed before"
