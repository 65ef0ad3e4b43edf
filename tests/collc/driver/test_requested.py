"""What comes out is for the network and the requested collective, and the program sends what its schedule sends."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from commands import Ran
from sampling import every

from collc.driver.compilation import Job, make_jobs, run_jobs
from collc.driver.plan import Recipe
from collc.driver.requested import describe, other_collective, other_network
from collc.driver.result import Settings
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.program import Opcode, Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.ir.verify.connections import carried, excess, strayed
from collc.messages.internal import InternalError
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce
from collc.passes.schedule.compose import Compose
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.renumber import Renumber
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.reading.coll import load_spec
from collc.reading.loading import Loading
from collc.registry.elements import parse_elements

Collc = Callable[..., Ran]
TARGETS = ("ir", "mpi-c", "msccl-xml", "msccl-xml{runtime=rccl}", "oneccl-xml")


def jobs_of(text: str, targets: str) -> list[Job]:
    return make_jobs(load_spec(text, "x.coll", Loading()), parse_elements(targets, "-t"))[0]


def source(net: str, kind: str = "allgather", scheduler: str = "bfb") -> str:
    return f"topology t = {net};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n"


def blamed(text: str, target: str = "mpi-c", mode: str = "each", passes: str | None = None) -> str:
    recipe = Recipe("2", None if passes is None else parse_elements(passes, "-p"))
    with pytest.raises(InternalError) as caught:
        run_jobs(jobs_of(text, target), Settings(recipe, mode))
    return caught.value.message


def scheduled(net: str, kind: str = "allgather") -> Schedule:
    topology = coll.topology(net)
    made = BFB().run(Problem(topology, Collective(kind, topology.num_ranks)))
    made = Discretize().run(made)
    return made.unfold() if isinstance(made, SymmetricSchedule) else made


# ---- networks


@pytest.mark.parametrize("mode", ["each", "full", "off"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_schedule_of_another_network_is_refused(monkeypatch: pytest.MonkeyPatch, target: str, mode: str) -> None:
    """Every link of the ring is one of the complete network, which is cheaper."""
    whole, other = BFB.run, coll.topology("complete(6)")
    monkeypatch.setattr(BFB, "run", lambda self, ir: whole(self, attrs.evolve(ir, topology=other)))
    said = blamed(source("uniring(6)"), target, mode)
    assert said == (
        "pass `bfb` failed on `c`: its result is not the requested one: another network: found 30 links, requested 6"
    )


def _relinked(topology: Topology, **changes: Any) -> Topology:
    return attrs.evolve(topology, symmetry=None, **changes)


def _turned(column: Any, row: int, value: int) -> Any:
    values = np.array(column, dtype=np.int64)
    values[row] = value
    return values


NETWORKS: dict[str, tuple[Callable[[Topology], Topology], str]] = {
    "ranks": (lambda t: _relinked(t, num_ranks=5), "5 ranks, requested 4"),
    "switches": (lambda t: _relinked(t, num_switches=1), "1 switches, requested 0"),
    "unit": (lambda t: _relinked(t, unit="B/s"), "bandwidths in B/s, requested link"),
    "link": (
        lambda t: _relinked(t, src=_turned(t.src, 0, int(t.dst[0])), dst=_turned(t.dst, 0, int(t.src[0]))),
        "link 0 from ",
    ),
    "bandwidth": (lambda t: t.with_links(Fraction(2), None).with_links(None, None), "bandwidths in B/s"),
    "one bandwidth": (
        lambda t: _relinked(t, classes=(LinkClass(), LinkClass(Fraction(2))), link_class=_turned(t.link_class, 1, 1)),
        "bandwidth 2 of link 1, requested 1",
    ),
    "latency": (lambda t: t.with_links(None, Fraction(1, 10)), "latency 1/10 of link 0, requested 0"),
    "transpose": (lambda t: t.transpose(), "link 0 from "),
}  # fmt: skip


@pytest.mark.parametrize("field", NETWORKS)
@pytest.mark.parametrize("at", [BFB, Discretize, Renumber])
def test_every_field_of_a_network_is_compared(monkeypatch: pytest.MonkeyPatch, field: str, at: Any) -> None:
    change, said = NETWORKS[field]
    whole = at.run

    def run(self: Any, ir: Any) -> Any:
        made = whole(self, ir)
        return attrs.evolve(made, topology=change(made.topology))

    monkeypatch.setattr(at, "run", run)
    found = blamed(source("biring(4)"), mode="off")
    assert found.startswith(f"pass `{at.name}` failed on `c`: its result is not the requested one: another")
    assert said in found
    assert blamed(source("biring(4)")).startswith(f"pass `{at.name}` failed on `c`: ")


def test_names_and_numbers_of_classes_make_no_other_network() -> None:
    net = coll.topology("biring(4)")
    two = attrs.evolve(net, classes=(LinkClass(Fraction(3)), LinkClass()), link_class=[1] * 8, name="other")
    assert other_network(net, two) == ""
    assert other_network(net, attrs.evolve(net, node_names=("a", "b", "c", "d"), symmetry=None, origin=None)) == ""
    assert "of no class" in other_network(net, attrs.evolve(net, link_class=np.full(8, 7)))


def test_forests_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, other = ForestScheduler.run, coll.topology("complete(4)")
    monkeypatch.setattr(ForestScheduler, "run", lambda self, ir: whole(self, attrs.evolve(ir, topology=other)))
    assert "12 links, requested 8" in blamed(source("biring(4)", "allreduce", "forest"))


def test_a_candidate_of_auto_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, other = BFB.run, coll.topology("complete(6)")
    monkeypatch.setattr(BFB, "run", lambda self, ir: whole(self, attrs.evolve(ir, topology=other)))
    assert blamed(source("uniring(6)", "allreduce", "auto")).startswith("pass `bfb` failed on `c`: ")


# ---- collectives


COLLECTIVES = {
    "kind": ("reduce-scatter", {"kind": "allgather"}), "op": ("reduce-scatter", {"op": "max"}),
    "dtype": ("allgather", {"dtype": "int8"}), "size": ("allgather", {"size": 1 << 20}),
    "ranks": ("allgather", {"num_ranks": 5}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "at"), every(2, [(f, at) for f in COLLECTIVES for at in (BFB, Discretize, Lower, Coalesce)])
)
def test_every_field_of_a_collective_is_compared(monkeypatch: pytest.MonkeyPatch, field: str, at: Any) -> None:
    kind, changes = COLLECTIVES[field]
    whole = at.run

    def run(self: Any, ir: Any) -> Any:
        made = whole(self, ir)
        return attrs.evolve(made, collective=attrs.evolve(made.collective, **changes))

    monkeypatch.setattr(at, "run", run)
    said = blamed(source("biring(4)", kind), mode="off")
    assert said.startswith(f"pass `{at.name}` failed on `c`: its result is not the requested one: found ")
    asked = Collective(kind, 4)
    assert said.endswith(other_collective(asked, attrs.evolve(asked, **changes)))
    assert blamed(source("biring(4)", kind)).startswith(f"pass `{at.name}` failed on `c`: ")


@pytest.mark.parametrize("at", [BFB, Renumber, Coalesce])
def test_another_root_is_another_collective(monkeypatch: pytest.MonkeyPatch, at: Any) -> None:
    whole = at.run
    net = coll.topology("biring(4)")
    other = Discretize().run(BFB().run(Problem(net, Collective("broadcast", 4, 2))))
    there = {BFB: other, Renumber: other, Coalesce: Lower().run(other)}[at]
    monkeypatch.setattr(at, "run", lambda self, ir: whole(self, ir) and there)
    text = "topology t = biring(4);\ncollective c = broadcast on t { root: 1 };\nschedule c using bfb;\n"
    assert "found broadcast with root 2 over 4 ranks; requested broadcast with root 1" in blamed(text)


def test_two_descriptions_are_never_alike() -> None:
    one = Collective("allreduce", 4)
    for change in ({"op": "max"}, {"dtype": "int8"}, {"size": 5}, {"kind": "allgather"}, {"num_ranks": 5}):
        two = attrs.evolve(one, **change)
        assert describe(one, two) != describe(two, one)
    assert describe(one, attrs.evolve(one, op="max", size=5)) == "allreduce over 4 ranks, op sum, no size"


# ---- what pipelines may do


@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("allreduce", "bfb{collective=allgather},compose"), ("allreduce", "bfb{collective=reduce-scatter},compose"),
        ("reduce-scatter", "bfb{collective=allgather},reverse"), ("allgather", "bfb,reverse,reverse"),
        ("reduce-scatter", "bfb{collective=allgather},transpose"), ("allreduce", "bfb,reverse,discretize"),
        ("allreduce", "forest,discretize"), ("allreduce", "forest{k=1},pipelining{pieces=3}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["each", "full", "off"])
def test_pipelines_may_go_through_other_collectives(kind: str, passes: str, mode: str) -> None:
    recipe = Recipe("2", parse_elements(passes, "-p"))
    assert run_jobs(jobs_of(source("biring(4)", kind), "mpi-c"), Settings(recipe, mode))


def test_the_end_of_a_pipeline_is_the_user_s(collc: Collc) -> None:
    Path("x.coll").write_text(source("biring(4)", "allgather"))
    ran = collc("x.coll", "-t", "mpi-c", "-p", "bfb,reverse")
    assert ran.status == 2
    assert (
        "`c` is to be allgather over 4 ranks, but the pipeline ends with reduce-scatter over 4 ranks [C0013]" in ran.err
    )


def test_a_pass_that_turns_wrongly_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline does not end where it says it does: that is no mistake of who wrote it."""
    monkeypatch.setattr(Compose, "run", lambda self, ir: ir)
    said = blamed(source("biring(4)", "allreduce"), passes="bfb{collective=allgather},compose")
    assert said.startswith("pass `compose` failed on `c`: its result is not the requested one: found allgather")


def test_a_fact_that_is_lost_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Discretize.run
    monkeypatch.setattr(Discretize, "run", lambda self, ir: attrs.evolve(whole(self, ir), discrete=False))
    assert blamed(source("biring(4)")) == "pass `discretize` failed on `c`: its result is not discrete"


@pytest.mark.parametrize("level", ["schedule", "program"])
def test_levels_that_are_read_go_where_pipelines_lead(collc: Collc, level: str) -> None:
    Path("x.coll").write_text(source("biring(4)", "allgather"))
    assert collc("x.coll", "-t", f"ir{{level={level}}}", "-o", "x.ir").status == 0
    passes = ["", "reverse,discretize,lower"] if level == "schedule" else ["", "coalesce,replicate"]
    for one in passes:
        ran = collc("x.ir", "-p", one, "-t", "mpi-c", "-o", "out.c")
        assert (ran.status, ran.err) == (0, ""), one


# ---- what connections carry


def _mirrored(schedule: Schedule) -> Schedule:
    """Return the schedule seen in a mirror: the same amounts the other way round a ring."""
    ranks = schedule.topology.num_ranks
    there = np.array([(-r) % ranks for r in range(ranks)])
    topology = schedule.topology
    links = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(topology.src, topology.dst, strict=True))}
    route = [links[int(there[a]), int(there[b])] for a, b in zip(schedule.src, schedule.dst, strict=True)]
    return attrs.evolve(schedule, shard=there[schedule.shard], route=route)


@pytest.mark.parametrize("net", ["biring(4)", "torus(3, 2)", "complete(5)", "hypercube(3)", "uniring(5)"])
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_a_program_sends_what_its_schedule_sends(net: str, kind: str) -> None:
    schedule = scheduled(net, kind)
    for join in (False, True):
        assert strayed(Lower(join=join).run(schedule), schedule) == ""


def test_a_right_program_of_another_schedule_is_found() -> None:
    """In a mirror the connections carry as much, of other shards."""
    schedule = scheduled("biring(6)")
    other = _mirrored(schedule)
    program = Lower().run(other)
    assert verify(other).ok
    assert verify(program).ok
    assert excess(carried(program), carried(schedule)) == ""
    assert "sends there" in strayed(program, schedule) or "does not send there" in strayed(program, schedule)


def test_wide_programs_are_compared_as_narrow_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = scheduled("torus(4, 4)", "allreduce")
    program = Lower().run(schedule)
    assert program.num_blocks >= 64
    assert strayed(program, schedule) == ""
    other = schedule.rows(np.arange(len(schedule)))
    swapped = _swapped(other)
    fixed = strayed(program, swapped)
    monkeypatch.setattr("collc.ir.verify.connections._fixed_identities", lambda program, partner: None)
    wide = strayed(program, swapped)
    assert fixed == wide
    monkeypatch.setattr("collc.ir.verify.connections.waves", lambda program: None)
    assert wide == strayed(program, swapped) != ""


def _swapped(schedule: Schedule) -> Schedule:
    """Return a schedule in which one transfer moves another shard."""
    shard = schedule.shard.astype(np.int64)
    shard[0] = (shard[0] + 1) % schedule.collective.num_shards
    return attrs.evolve(schedule, shard=shard)


def test_more_than_the_schedule_carries_is_found() -> None:
    schedule = scheduled("biring(4)")
    program = Lower().run(schedule)
    fewer = schedule.rows(np.flatnonzero((schedule.src != 0) | (schedule.dst != 1)))
    assert strayed(program, fewer) == "rank 0 sends to rank 1, to which the schedule sends no data"
    double = attrs.evolve(carried(program), amount=carried(program).amount * 2)
    assert "rank 0 sends rank 1 " in excess(double, carried(schedule))
    assert excess(attrs.evolve(double, chunks=double.chunks * 2), carried(schedule)) == ""
    assert excess(carried(program), double) == ""


@pytest.mark.parametrize("mode", ["each", "full"])
def test_lowering_another_schedule_is_an_internal_error(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    whole = Lower.run
    monkeypatch.setattr(Lower, "run", lambda self, ir: whole(self, _mirrored(ir)))
    said = blamed(source("biring(6)"), mode=mode)
    assert said.startswith("pass `lower` failed on `c`: its result sends too much: rank 0 ")


def _rerouted(program: Program) -> Program:
    """Return an allgather that sends everything from everybody to everybody, whatever links there are."""
    return _LOWER(Lower(), scheduled(f"complete({program.num_ranks})"))


_LOWER = Lower.run


@pytest.mark.parametrize(("at", "mode"), [(Lower, "each"), (Coalesce, "each"), (Coalesce, "full")])
def test_messages_where_there_is_no_link_are_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, at: Any, mode: str
) -> None:
    """The result is right, and costs less than the network allows."""
    whole = at.run
    monkeypatch.setattr(at, "run", lambda self, ir: _rerouted(whole(self, ir)))
    said = blamed(source("biring(6)"), mode=mode)
    assert said == (
        f"pass `{at.name}` failed on `c`: its result sends too much: "
        "rank 0 sends to rank 2, to which the schedule sends no data"
    )


def test_messages_that_come_twice_are_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Coalesce.run
    monkeypatch.setattr(Coalesce, "run", lambda self, ir: _twice(whole(self, ir)))
    said = blamed(source("biring(4)"))
    assert said.startswith("pass `coalesce` failed on `c`: its result sends too much: rank 0 sends rank 1 ")


def _twice(program: Program) -> Program:
    """Return a program whose first message is sent and received once more at the end: as right as before."""
    blocks = [tuple(int(getattr(program, c)[b]) for c in ("block_rank", "send_peer", "recv_peer", "channel"))
              for b in range(program.num_blocks)]  # fmt: skip
    sender = next(b for b, (rank, send, _, _) in enumerate(blocks) if rank == 0 and send == 1)
    receiver = next(b for b, (rank, _, recv, _) in enumerate(blocks) if rank == 1 and recv == 0)
    rows = []
    for b in range(program.num_blocks):
        span = range(int(program.block_start[b]), int(program.block_start[b + 1]))
        mine = [
            (Opcode(int(program.opcode[i])), int(program.src_buffer[i]), int(program.src_offset[i]),
             int(program.dst_buffer[i]), int(program.dst_offset[i]), int(program.count[i]), ())
            for i in span
        ]  # fmt: skip
        rows.append([mine[0], *mine] if b in (sender, receiver) else mine)
    return Program.build(program.collective, program.chunks, program.scratch, blocks, rows)  # type: ignore[arg-type]
