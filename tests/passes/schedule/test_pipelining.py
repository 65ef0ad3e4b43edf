"""Forests on their way to files: pipelined, lowered with messages joined step by step, within a runtime's limits."""

from __future__ import annotations

import json
import time
from functools import cache

import attrs
import numpy as np
import pytest
import strategies
from grown import grown
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.api import compile_source
from collc.backends.base import Limits
from collc.backends.msccl_xml.target import MscclXml
from collc.backends.msccl_xml.verify import verify_text
from collc.driver.compile import compile_collective
from collc.driver.pipeline import LEVELS, plan
from collc.driver.plan import Recipe
from collc.driver.result import Settings
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Opcode
from collc.ir.schedule import Action, Forest, Schedule
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify, verify_schedule
from collc.passes.base import Pass
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.compose import Compose
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.pipelining import Pipelining
from collc.passes.schedule.reverse import Reverse
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.registry.elements import parse_elements

TREE_KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
#: shares of 13 in trees of different multiplicities
THIRTEEN = (2, 2, 2, 2, 2, 1, 1, 1)


def request(forest: Forest, scheduler: str = "steps") -> CollectiveRequest:
    problem = Problem(forest.topology, forest.collective)
    return CollectiveRequest("c", forest.topology.name, problem, ScheduleRequest(scheduler), ())


def passes(recipe: Recipe, target=None, start: type = Forest, until=None, forest: Forest | None = None) -> list[str]:
    chain = plan(recipe, request(forest or line()).schedule, target, start=start, **({"until": until} if until else {}))
    return [this.name for this in chain.passes]


def line(ranks: int = 4, pieces: int = 1, kind: str = "broadcast") -> Forest:
    """One tree along a line, both ways linked."""
    net = Topology.from_links("line", ranks, [e for r in range(ranks - 1) for e in ((r, r + 1), (r + 1, r))])
    rows = np.arange(ranks - 1)
    return Forest(net, Collective(kind, ranks, 0), 1, [0], [1], rows * 0, rows, rows + 1, 2 * rows, pieces=pieces)


# ---- the pass


@settings(max_examples=examples(40))
@given(strategies.forests(), st.none() | st.integers(1, 5))
def test_what_is_streamed_is_correct(forest, pieces):
    """In any number of pieces the steps do what the collective promises, one step more a piece."""
    steps = Pipelining(pieces=pieces).run(forest)
    assert verify_schedule(steps).ok
    count = forest.pieces if pieces is None else pieces
    assert steps.parts == forest.parts * count
    assert steps.num_steps == (sum(forest.heights) + count - 1 if len(forest.tree) else 0)


@pytest.mark.parametrize(("pieces", "code"), [(0, "C0545"), (-3, "C0545"), (1 << 63, "C0545"), (1 << 26, "C0546")])
def test_pieces_that_cannot_be(pieces, code):
    with pytest.raises(CollcError) as caught:
        Pipelining(pieces=pieces).run(line())
    (found,) = caught.value.diagnostics
    assert (found.code, caught.value.exit_status) == (code, 3 if code == "C0546" else 1)
    if code == "C0546":
        # 3 edges, each with all 4 shards
        assert "67108864 pieces of 12 transfers each" in found.message
        assert found.hint == f"use at most {(1 << 26) // 12} pieces: `pipelining{{pieces={(1 << 26) // 12}}}`"


# ---- messages joined step by step


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests() | strategies.schedules(kinds=TREE_KINDS))
def test_joined_messages_do_the_same(ir):
    """Any schedule lowered with messages joined is right in place and out of place; none is joined across steps."""
    schedule = Discretize().run(Pipelining().run(ir) if isinstance(ir, Forest) else ir)
    plain, joined = Lower().run(schedule), Lower(join=True).run(schedule)
    assert verify(joined).ok
    sends = [(p.opcode == Opcode.SEND).sum() for p in (plain, joined)]
    turns = {(int(s), int(r)) for s, r in zip(schedule.step, schedule.route, strict=True)}
    assert len(turns) <= sends[1] <= sends[0]
    chunks = [int(p.count[p.opcode == Opcode.SEND].sum()) for p in (plain, joined)]
    assert chunks[0] == chunks[1]


def test_reductions_of_other_connections_stay_apart():
    """Two children send halves of a shard each in one step, cut at different places: the sum must not depend on it."""
    net = Topology.from_links("star", 3, [(1, 0), (2, 0), (0, 1), (0, 2), (1, 2), (2, 1)])
    rows = [(0, 0, 1, 0), (0, 1, 3, 0), (0, 0, 2, 1), (0, 2, 3, 1)]
    schedule = Schedule(
        net, Collective("reduce", 3, 0), 3, [0] * 12, [Action.REDUCE] * 12,
        [s for s in range(3) for _ in rows], *np.array([[lo, hi, r] for _ in range(3) for _, lo, hi, r in rows]).T,
        discrete=True,
    )  # fmt: skip
    assert verify(schedule).ok
    program = Lower(join=True).run(schedule)
    assert verify(program).ok
    assert (program.opcode == Opcode.SEND).sum() == 2 and set(program.count[program.opcode == Opcode.SEND]) == {9}


def test_pieces_are_not_joined():
    """All pieces leave the root's input; coalesce would make one message of them, joining leaves them apart."""
    schedule = Discretize().run(Pipelining().run(line(pieces=5)))
    program = Lower(join=True).run(schedule)
    assert (program.opcode == Opcode.SEND).sum() == 3 * 5
    assert program.count[program.opcode == Opcode.SEND].tolist() == [4] * 15  # of all four shards
    assert (Lower().run(schedule).opcode == Opcode.SEND).sum() > 15


# ---- where it stands in pipelines


def test_every_level_streams_a_forest():
    for level in LEVELS:
        found = passes(Recipe(level), MscclXml())
        assert [name for name in found if name != "renumber"][:3] == ["pipelining", "discretize", "lower"]
        assert "coalesce" not in found
        chain = plan(Recipe(level), request(line()).schedule, MscclXml(), start=Forest)
        assert [p.join for p in chain.passes if isinstance(p, Lower)] == [level != "0"]
    assert passes(Recipe("2", parse_elements("discretize", "p")), until=Schedule) == ["pipelining", "discretize"]
    assert passes(Recipe("2", ()), until=Schedule) == []
    assert passes(Recipe("2", parse_elements("transpose", "p")), until=Schedule) == ["pipelining", "transpose"]


def test_forests_stay_forests_where_they_can():
    """Reverse and compose keep trees; what follows them is pipelined."""
    found = passes(Recipe("2", parse_elements("compose,pipelining{pieces=3},discretize", "p")), until=Schedule)
    assert found == ["compose", "pipelining", "discretize"]
    result = compile_collective(
        request(line(3, kind="broadcast")), (), Settings(Recipe("2", parse_elements("reverse", "p")), until=Schedule),
        start=line(3),
    )  # fmt: skip
    assert isinstance(result.schedule, Forest) and result.schedule.collective.kind == "reduce"


def test_a_pipeline_without_stream_is_refused():
    with pytest.raises(CollcError) as caught:
        plan(Recipe("2", disabled=("pipelining",)), request(line()).schedule, MscclXml(), start=Forest)
    (found,) = caught.value.diagnostics
    assert found.code == "C0011"


@settings(max_examples=examples(20), deadline=None)
@given(strategies.forests())
def test_reverse_and_compose_of_forests_are_those_of_their_steps(forest):
    """A pass that takes steps too gives the same collective either way."""
    if forest.topology.reverse_links is None:
        return
    assert verify(Reverse().run(forest)).ok
    if forest.collective.kind != "allreduce":
        whole = Compose().run(forest)
        assert verify(whole).ok and whole.collective.kind == "allreduce"
        assert verify_schedule(Pipelining(pieces=2).run(whole)).ok


# ---- within a runtime's limits


@attrs.frozen
class Grown(Pass):
    """A scheduler whose trees cannot be fewer than asked for."""

    name = "forest"
    summary = "trees of a test"
    takes = Problem
    gives = Forest
    pipelined = True
    varies = ForestScheduler.varies

    k: int = 13
    pieces: int | None = None

    def run(self, ir: Problem) -> Forest:
        made = grown(ir.topology, (1,) * self.k)
        return attrs.evolve(made, pieces=64 if self.pieces is None else self.pieces)


@pytest.fixture
def by_test(monkeypatch):
    """The scheduler ``forest`` of this file, in place of any other."""
    import collc.driver.pipeline as pipeline

    known = pipeline.pass_class
    monkeypatch.setattr(
        pipeline, "pass_class", lambda name, span=None: Grown if name == "forest" else known(name, span)
    )
    monkeypatch.setattr(pipeline, "scheduler_pass", lambda name, span=None: "forest")


def settings_of(text: str | None = None) -> Settings:
    return Settings(Recipe("2", None if text is None else parse_elements(text, "p")))


@attrs.frozen
class Tight(MscclXml):
    """A runtime with room for little."""

    steps: int = 8

    @property
    def limits(self) -> Limits:
        return Limits(max_threadblocks=12, max_steps=self.steps, max_channels=2, max_count=71, fifo_depth=2)


def box(ranks: int = 4) -> Forest:
    return grown(strategies.complete(ranks), (1,), pieces=1)


def test_as_many_pieces_as_fit(by_test):
    """64 are the scheduler's own choice, so fewer will do; the forest says how many there are."""
    made = compile_collective(request(box(), "forest"), (Tight(),), settings_of())
    assert made.forest is not None and 1 <= made.forest.pieces < 64
    assert made.made is not None and int(np.diff(made.made.block_start).max()) <= 8
    assert made.plans[0].passes[1] == Pipelining(pieces=made.forest.pieces)
    assert made.cost.forest is not None and made.cost.forest.pieces == made.forest.pieces


@pytest.mark.slow
def test_pieces_that_were_asked_for_are_not_changed(by_test):
    for text, way in (
        ("forest{pieces=64}", "pieces: "),
        ("pipelining{pieces=64}", "pipelining{pieces="),
    ):
        with pytest.raises(CollcError) as caught:
            compile_collective(
                request(box(), "forest"), (Tight(),), settings_of(f"{text},discretize,lower{{join=true}}")
            )
        (found,) = caught.value.diagnostics
        assert found.code == "C0509" and "limit" in found.message
        assert found.hint is not None and f"1 piece fits: `{way}" in found.hint


def test_fewer_trees_are_named_where_one_piece_is_too_much(by_test):
    with pytest.raises(CollcError) as caught:
        compile_collective(request(box(), "forest"), (Tight(steps=2),), settings_of("forest{k=64},discretize,lower"))
    (found,) = caught.value.diagnostics
    assert found.hint is not None and "trees a rank in one piece fit: `k: " in found.hint


def test_a_mistake_of_another_kind_is_not_tried_again(by_test):
    with pytest.raises(CollcError) as caught:
        compile_collective(request(box(), "forest"), (Tight(),), settings_of("pipelining,discretize{max-chunks=0}"))
    assert [d.code for d in caught.value.diagnostics] == ["C0507"]


# ---- all the way


@cache
def two_boxes(weights: tuple[int, ...]) -> Forest:
    return grown(coll.topology("dgx_a100(2)"), weights)


def boxes(weights: tuple[int, ...], kind: str, pieces: int) -> Forest:
    forest = attrs.evolve(two_boxes(weights), pieces=pieces)
    return {"allgather": lambda f: f, "reduce-scatter": Reverse().run, "allreduce": Compose().run}[kind](forest)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
@pytest.mark.parametrize(("weights", "pieces"), [((1,), 1), ((1,), 4), (THIRTEEN, 1), (THIRTEEN, 2)])
def test_two_boxes_within_the_executors_limits(kind, weights, pieces):
    """One tree a rank, and thirteen by multiplicity: chunks follow from shares, threadblocks from connections."""
    forest = boxes(weights, kind, pieces)
    made = compile_source(print_ir(forest), target="msccl-xml{runtime=executor}")
    (one,) = made.collectives.values()
    program = one.made
    assert program is not None and program.chunks == sum(weights) * pieces
    assert one.forest is not None and one.forest.pieces == pieces
    assert int(np.diff(program.rank_blocks).max()) <= 108 and program.num_channels <= 32
    assert int(np.diff(program.block_start).max()) <= 64
    assert all(report.ok for report in one.reports)
    (file,) = made.files.values()
    report = verify_text(file.text, "c.xml", runtime="executor")
    names = {check.name for check in report.checks}
    assert report.ok and {"in place: postcondition", "out of place: postcondition"} <= names


@pytest.mark.slow
def test_thirteen_trees_of_two_boxes_on_rccl():
    """Without fused instructions there are more steps; they fit, too."""
    made = compile_source(print_ir(boxes(THIRTEEN, "allreduce", 1)), target="msccl-xml{runtime=rccl}")
    (one,) = made.collectives.values()
    assert one.reports[-1].ok


def test_sixty_four_ranks_take_seconds():
    """A star a rank: 12,096 transfers in three pieces, by columns."""
    net, rank = strategies.complete(64), np.arange(64)
    forest = Forest(
        net, Collective("allgather", 64), 1, rank, rank * 0 + 1, np.repeat(rank, 63), net.src, net.dst,
        np.arange(64 * 63), pieces=3,
    )  # fmt: skip
    begin = time.process_time()
    program = Lower(join=True).run(Discretize().run(Pipelining().run(forest)))
    assert time.process_time() - begin < 5
    assert (program.opcode == Opcode.SEND).sum() == 64 * 63 * 3


# ---- from and to text


def test_a_printed_forest_is_compiled(collc, tmp_path):
    forest = Compose().run(line(3, pieces=2))
    (tmp_path / "f.ir").write_text(print_ir(forest))
    ran = collc("f.ir", "-t", "ir", "-o", "out.ir", "--json", "--dump-ir=pipelining")
    assert ran.status == 0, ran.err
    assert "after pipelining" in ran.err
    found = json.loads(ran.out)["cost"]
    assert (found["k"], found["pieces"], found["trees"], found["max_height"], found["steps"]) == (1, 2, 2, 2, 5)
    assert parse_ir((tmp_path / "out.ir").read_text()).collective.kind == "allreduce"


def test_a_printed_forest_is_verified_and_costed(collc, tmp_path):
    (tmp_path / "f.ir").write_text(print_ir(line(3, pieces=2)))
    ran = collc("verify", "f.ir")
    assert ran.status == 0 and "weights" in ran.out
    ran = collc("cost", "f.ir", "--json", "--size", "1MiB", "--alpha", "10us", "--bandwidth", "100Gbps")
    found = json.loads(ran.out)
    # In units of a link: the whole vector over every link, 100 Gbps each.
    assert (found["one_over_x"], found["k"], found["pieces"], found["algbw_GBps"]) == ("1", 1, 2, 12.5)
    assert found["points"][0]["time_us"] == pytest.approx(30 + 3 * (1 << 19) / 12.5e3)
    ran = collc("cost", "f.ir", "-p", "pipelining{pieces=4}", "--json")
    assert (json.loads(ran.out)["pieces"], json.loads(ran.out)["steps"]) == (4, 5)
    text = collc("cost", "f.ir").out
    assert "1 a root, 1 distinct in all" in text and "per link unit" in text
