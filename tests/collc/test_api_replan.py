"""`collc.replan`: results after faults, and what the faults cost."""

from __future__ import annotations

from fractions import Fraction

import pytest

import collc
from collc.driver.compilation import make_jobs
from collc.driver.result import CollectiveResult, Settings
from collc.ir.costs.cost import cost as cost_of
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.base import Kept, Replanned
from collc.passes.synthesis.forest import replanning
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.registry.elements import parse_elements
from collc.tools.replanning import Replanner, faults_of

TEXT = "topology net = {}; collective c = {} on net{}; schedule c using {};"


def compiled(net: str, kind: str, scheduler: str = "forest", options: str = "", **more: str) -> collc.Result:
    return collc.compile_source(TEXT.format(net, kind, options, scheduler), **more)


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_a_result_after_faults_is_a_result(kind: str) -> None:
    found = collc.replan(compiled("torus(4, 4)", kind, target="msccl-xml"), ["without 0 <-> 1"])
    assert list(found.files) == ["c.xml"] and found.faults == (collc.Fault("without", "0 <-> 1"),)
    assert verify(found.program).ok and verify(found["c"].schedule).ok
    fresh = compiled("without(torus(4, 4), {0 <-> 1})", kind)["c"].forest
    assert fresh is not None
    cost = found.cost_of_fault
    assert cost.reached == cost_of(fresh).time_per_byte
    assert cost.healthy < cost.reached and cost.is_optimal and cost.times == cost.reached / cost.healthy


def test_faults_may_be_objects() -> None:
    healthy = compiled("dgx_h100(2)", "allgather")
    texts = collc.replan(healthy, ["without gpu[1, 5]", "slow gpu[0, 1] <-> ib: 25 GB/s"])
    objects = collc.replan(
        healthy, [collc.Fault("without", "gpu[1, 5]"), collc.Fault("slow", "gpu[0, 1] <-> ib", "1/2")]
    )
    assert texts.cost_of_fault == objects.cost_of_fault and texts.schedule == objects.schedule
    assert texts["c"].replan is not None
    assert texts["c"].replan.ranks == (*range(13), None, 13, 14)


def test_a_result_after_faults_can_break_again() -> None:
    once = collc.replan(compiled("hypercube(3)", "allgather"), "without 0 <-> 1")
    twice = collc.replan(once, "without 2 <-> 3")
    assert twice.cost_of_fault.healthy == once.cost_of_fault.reached
    assert twice["c"].replan is not None and twice["c"].replan.how == "kept"


@pytest.mark.parametrize(("scheduler", "how"), [("bfb", "recompiled"), ("ring", "auto"), ("auto", "recompiled")])
def test_other_schedulers_start_anew(scheduler: str, how: str) -> None:
    found = collc.replan(compiled("torus(3, 3)", "allgather", scheduler), "without 0 <-> 1")
    plan = found["c"].replan
    assert plan is not None and plan.how == how and bool(plan.reason) == (how == "auto")
    assert verify(found.schedule).ok


def test_a_root_keeps_its_rank() -> None:
    found = collc.replan(compiled("torus(3, 3)", "broadcast", options=" { root: 5 }"), "without 2")
    assert found.schedule.collective.root == 4


def test_weights_and_members_follow_the_ranks() -> None:
    uneven = compiled("complete(4)", "allgatherv", options=" { weights: {5, 1, 2, 3} }")
    assert collc.replan(uneven, "without 1").schedule.collective.weights == (5, 2, 3)
    text = "topology net = complete(5); collective c = allgather on net among {0, 2, 4}; schedule c using forest;"
    found = collc.replan(collc.compile_source(text), "without 1")
    assert found.schedule.collective.members == (0, 1, 3)
    moved = compiled("complete(3)", "alltoallv", "auto", " { matrix: {{10 * a + b for b in 0..3} for a in 0..3} }")
    assert collc.replan(moved, "without 1").schedule.collective.weights == (0, 2, 20, 22)


@pytest.mark.parametrize(("kind", "options", "faults", "code"), [
    ("broadcast", " { root: 3 }", "without 3", "C0343"), ("allgather", "", "without 9", "C0311"),
    ("allgather", "", "slow 0 <-> 1: 2", "C0342"), ("allgather", "", "wrong", "C0340"), ("allgather", "", (), "C0340"),
])  # fmt: skip
def test_mistakes(kind: str, options: str, faults: str, code: str) -> None:
    with pytest.raises(collc.CollcError) as found:
        collc.replan(compiled("torus(3, 3)", kind, options=options), faults)
    assert found.value.diagnostics[0].code == code


def test_a_result_without_faults_has_no_cost_of_them() -> None:
    with pytest.raises(collc.CollcError, match="was compiled without faults"):
        _ = compiled("torus(3, 3)", "allgather").cost_of_fault


def test_the_cost_is_exact() -> None:
    found = collc.replan(compiled("dgx_h100(16)", "allreduce"), "slow gpu[3, 1] <-> ib: 25 GB/s").cost_of_fault
    assert (found.healthy, found.reached) == (Fraction(30, 6400 * 10**9), Fraction(30, 6375 * 10**9))
    assert found.is_optimal


@pytest.mark.parametrize(("kind", "fault"), [
    ("allgather", "without gpu[0, 1] -> ib"), ("reduce-scatter", "without ib -> gpu[0, 1]"),
])  # fmt: skip
def test_a_switch_that_could_not_forward_all_gets_less(kind: str, fault: str) -> None:
    found = collc.replan(compiled("dgx_h100(2)", kind), fault)
    plan, cost = found["c"].replan, found.cost_of_fault
    assert plan is not None and plan.how == "kept" and plan.kept > plan.new
    assert verify(found.schedule).ok and not cost.is_optimal
    both = collc.replan(compiled("dgx_h100(2)", kind), "without gpu[0, 1] <-> ib").cost_of_fault
    assert cost.reached == both.reached == both.optimum


@pytest.mark.parametrize(("kind", "one", "other"), [
    ("allgather", "gpu[0, 1]", "ib"), ("reduce-scatter", "ib", "gpu[0, 1]"),
])  # fmt: skip
def test_a_link_that_is_slower_in_one_direction_costs_no_more_than_in_both(kind: str, one: str, other: str) -> None:
    found = collc.replan(compiled("dgx_h100(2)", kind), f"slow {one} -> {other}: 1/2")
    both = collc.replan(compiled("dgx_h100(2)", kind), f"slow {one} <-> {other}: 1/2")
    assert found.cost_of_fault.reached == both.cost_of_fault.reached and verify(found.schedule).ok
    assert found["c"].replan is not None and found["c"].replan.how == "kept"


#: a switch whose links in and out differ: the reverse of a slower link cannot be like it
UNLIKE = (
    "topology n { rank g[4]; switch w; for i in 0..4 { link g[i] -> w : 50 GB/s, 1 us; link w -> g[i] : 50 GB/s, 2 us; "
    "link g[i] <-> g[(i + 1) mod 4] : 100 GB/s; } } collective c = allgather on n; schedule c using forest;"
)


def test_trees_that_no_way_of_growing_reaches_are_all_new(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[object]()
    regrown = replanning.regrown_after

    def noted(scheduler: ForestScheduler, problem: Problem, before: Kept) -> Replanned | None:
        seen.append(regrown(scheduler, problem, before))
        return None

    monkeypatch.setattr(replanning, "regrown_after", noted)
    found = collc.replan(collc.compile_source(UNLIKE), "slow g[1] -> w: 1/2")
    assert seen == [None]  # refused with the network as it is, and with equal partners
    plan = found["c"].replan
    assert plan is not None and plan.how == "auto" and "needed as much out as in" in plan.reason
    assert verify(found.schedule).ok and found["c"].remarks == tuple(dict.fromkeys(found["c"].remarks))


def after_fault(kind: str, threadblocks: int, scheduler: str = "forest") -> CollectiveResult:
    """Return the result after a dead NIC, for a GPU of few threadblocks."""
    healthy = compiled("dgx_h100(2)", kind, scheduler)
    elements = parse_elements(f"msccl-xml{{runtime=rccl,threadblocks={threadblocks}}}", "-t")
    (job,) = make_jobs(healthy.spec, elements)[0]
    planner = Replanner(healthy.spec, ["c"], faults_of("without gpu[1, 1] <-> ib"))
    return planner.run(healthy["c"], job.targets, Settings())


def test_trees_that_stay_but_do_not_fit_all_grow_again() -> None:
    kept, new = after_fault("allgather", 16), after_fault("allgather", 12)
    assert kept.replan is not None and new.replan is not None
    assert (kept.replan.how, kept.replan.reason) == ("kept", "")
    assert (new.replan.how, new.replan.kept) == ("recompiled", 0)
    assert new.replan.reason.startswith("the trees that stay do not fit: ") and "the limit is 12" in new.replan.reason
    assert new.cost_of_fault.reached == kept.cost_of_fault.reached and new.emitted


def test_fewer_trees_where_the_best_ones_do_not_fit() -> None:
    found = after_fault("allreduce", 12)
    assert found.replan is not None and found.replan.how == "recompiled"
    assert found.replan.reason.startswith("forest: ") and found.schedule.scheduler == "forest"
    assert "forest: 5 trees a rank, because the number it chose exceeds limits of `msccl-xml`" in found.remarks


def test_another_scheduler_where_no_trees_fit() -> None:
    found = after_fault("allgather", 8)
    assert found.replan is not None and found.replan.how == "auto" and "the limit is 8" in found.replan.reason
    assert found.emitted


def test_nothing_that_fits_says_which_number() -> None:
    with pytest.raises(collc.CollcError, match=r"needs 8 threadblocks .* the limit is 1") as found:
        after_fault("allgather", 1)
    assert found.value.diagnostics[0].code == "C0509"


def test_trees_chosen_by_size_fit_a_target() -> None:
    text = "topology n = without(dgx_h100(2), {gpu[1, 1] <-> ib}); collective c = allgather on n; "
    spec = collc.compile_source(f"{text}schedule c using forest {{ k: auto }};", target="msccl-xml{threadblocks=12}")
    assert spec.files and any("trees a rank, because the number it chose" in one for one in spec["c"].remarks)
