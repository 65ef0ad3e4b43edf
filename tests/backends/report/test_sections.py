"""The data of a section against the IR, by other means than those that the target uses."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from report_pages import TORUS, account, section
from sampling import every

import collc
from collc.backends.report.answer import table_sizes
from collc.backends.report.document import length, page
from collc.backends.report.fitting import MOST_CHARACTERS, fitted
from collc.backends.report.transfers import MOST_ROWS
from collc.ir.costs.cost import predicted_time
from collc.ir.costs.least import least_steps, least_time
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule

DGX = "topology pod = dgx_a100(2);\ncollective grads = allreduce on pod { size: 64 MiB };\n"


def test_the_three_lines_are_what_cost_prints() -> None:
    found, cost = section(TORUS), account(TORUS).algorithms[0].cost
    assert found["question"] == "How long does an allreduce of 64 MiB take on pod, torus(3, 3, 2): 18 ranks, 108 links?"
    assert found["answer"] == (
        "64 MiB take 6.821 ms with bfb: 9.839 GB/s, in 6 steps, T_B = 17/9 M/B. Large sizes reach 9.926 GB/s."
    )
    assert found["why"] == (
        "At large sizes no schedule is faster. The vector crosses the parts of the network (single ranks) at least 34 "
        "times, over 337.5 GB/s in all. It takes 6 steps in two phases; the farthest ranks are 3 links apart."
    )
    assert (cost.T_L, cost.T_B, cost.bound_met) == (6, Fraction(17, 9), True)


def test_a_schedule_above_the_bound_says_by_how_much_and_names_the_cut() -> None:
    found = section("collective parts = allgather on mesh(3, 4);\nschedule parts using swing;")
    assert found["why"] == (
        "At large sizes it takes 1.273 times the bound. The links into rank 0 must carry 11 shards over 2 link units. "
        "At 1 KiB, general-latency takes 0.336 of the time."
    )
    assert found["cut"] == {"parts": [[0]], "text": "links into rank 0: 11 shards over 2 link units"}
    assert found["assumed"] == "The times assume 10 us a step and 12.5 GB/s a link unit."


def test_rows_of_sizes_are_predicted_times() -> None:
    rows: Any = section(TORUS)["sizes"]
    cost = account(TORUS).algorithms[0].cost
    assert [row[0] for row in rows] == ["1 KiB", "1 MiB", "64 MiB", "1 GiB"]
    for size, row in zip(table_sizes(account(TORUS)), rows, strict=True):
        shown, unit = row[1].split()
        seconds = float(shown) * {"us": 1e-6, "ms": 1e-3}[unit]
        assert seconds == pytest.approx(float(predicted_time(cost, size)), rel=1e-3)


@pytest.mark.parametrize("text", [TORUS, DGX, "collective c = alltoall on torus(3, 3);"])
def test_loads_are_those_of_the_schedule(text: str) -> None:
    """Every link in every step, added up transfer by transfer."""
    found, level = section(text), account(text).shown.schedule
    steps = level if isinstance(level, Schedule) else level.to_steps()
    flow: Any = found["flow"]
    links = steps.topology.num_links
    due = [[Fraction(0)] * links for _ in range(steps.num_steps)]
    for row in range(len(steps)):
        for link in steps.routes.links_of(int(steps.route[row])):
            due[int(steps.step[row])][link] += Fraction(int(steps.amount[row]), steps.vector)
    step_of = [at for at, times in enumerate(flow["times"]) for _ in range(times)]
    shown = [[Fraction(flow["loads"][row][at], flow["whole"]) for row in flow["link"]] for at in step_of]
    assert shown == due
    assert [Fraction(flow["largest"][at]) for at in step_of] == [max(loads) for loads in due]


def test_columns_of_the_program_are_those_of_the_ir() -> None:
    program, shown = account(TORUS).shown.program, section(TORUS)["program"]
    assert program is not None and isinstance(shown, dict)
    assert shown["ranks"] == program.num_ranks == 18
    for name in ("opcode", "src_buffer", "src_offset", "dst_offset", "count", "dep_start", "deps", "scratch"):
        assert shown[name] == getattr(program, name).tolist(), name
    assert shown["opcodes"][2] == "recv"  # type: ignore[call-overload,index]  # a list
    waves = np.array(shown["wave"])
    for row in range(program.num_instructions):
        assert all(waves[dep] <= waves[row] for dep in program.dependencies(row))


def test_a_program_is_that_of_the_emit_of_the_file() -> None:
    findings: Any = section(TORUS)["findings"]
    assert ["threadblocks", "12", "108", "msccl-xml"] in findings["limits"]
    assert ["channels", "2", "32", "msccl-xml"] in findings["limits"]
    assert all(verdict == "passed" for verdict, *_ in findings["checks"])
    assert {kind for _, kind, *_ in findings["checks"]} == {"schedule", "program", "msccl-xml"}
    assert [name.partition("{")[0] for name, *_ in findings["passes"]][:4] == ["bfb", "discretize", "renumber", "lower"]


def test_a_target_that_refuses_the_program_is_a_remark() -> None:
    text = "collective c = allreduce on dgx_a100(2);\nschedule c using ring;\nemit c as msccl-xml { threadblocks: 1 };"
    found = section(text)
    findings: Any = found["findings"]
    (remark,) = [one for one in findings["remarks"] if one.startswith("msccl-xml refuses the program: ")]
    assert "threadblock" in remark and found["program"] is not None


def test_curves_hold_every_candidate_and_never_pass_the_bound() -> None:
    goodput: Any = section(DGX)["goodput"]
    names = [curve["name"] for curve in goodput["curves"]]
    assert {"ring", "recursive-doubling", "forest-k1-equal-3"} <= set(names)
    assert [curve["name"] for curve in goodput["curves"] if curve["chosen"]] == ["forest-k1-equal-3"]
    for curve in goodput["curves"]:
        assert all(rate <= bound for rate, bound in zip(curve["rate"], goodput["bound"], strict=True)), curve["name"]
    ((size, best),) = goodput["crossings"]
    assert names[best] == "forest-k1-equal-3" and size in goodput["sizes"]
    assert goodput["bus"] == 1.875


FAMILIES = (
    "torus(3, 2)", "mesh(2, 3)", "kautz(2, 1)", "dgx_a100(2)", "fat_tree(4)", "hypercube(3)", "dragonfly(1, 2, 1)",
    "degraded(mesh(2, 2), {0 <-> 1}, 1/2)", "uniring(5) with { bandwidth: 1 GB/s, latency: 3 us }",
)  # fmt: skip


KINDS = ("allreduce", "allgather", "alltoall", "broadcast { root: 1 }")


@pytest.mark.parametrize(("network", "kind"), every(3, list(product(FAMILIES, KINDS))))
def test_no_candidate_takes_less_than_the_least_time(network: str, kind: str) -> None:
    name, _, options = kind.partition(" ")
    text = f"topology t = {network};\ncollective c = {name} on t {options};"
    found = account(text)
    cost = found.shown.cost
    assert 1 <= least_steps(cost) <= cost.steps
    for size, least in ((size, least_time(cost, found.topology, size)) for size in (0, 1, 1 << 10, 1 << 20, 1 << 32)):
        assert 0 < least <= predicted_time(cost, size)
        if size in found.sizes:
            at = found.sizes.index(size)
            assert all(least <= one.seconds[at] for one in found.contenders)


def test_a_range_of_sizes_has_all_its_algorithms() -> None:
    text = "collective c = allreduce on torus(4, 4);\nschedule c using auto { sizes: 1 KiB .. 1 GiB };"
    found = section(text)
    algorithms = account(text).algorithms
    assert len(algorithms) > 1
    assert f"{len(algorithms)} algorithms serve the sizes." in str(found["answer"])
    sizes: Any = found["sizes"]
    assert sizes[0][-1] != sizes[-1][-1]


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("collective c = allgather on torus(32, 32);\nschedule c using bfb;", "the other 1023 shards move alike"),
        (
            "collective c = alltoall on torus(9, 9);\nschedule c using flow { template: false };",
            "the first parts of",
        ),
    ],
)
def test_of_a_large_schedule_some_shards_are_listed(text: str, about: str) -> None:
    transfers: Any = section(text)["transfers"]
    assert about in transfers["about"] and not transfers["all"]
    assert 0 < len(transfers["step"]) <= MOST_ROWS


def test_programs_and_other_collectives_without_schedules_are_refused() -> None:
    text = collc.compile_source("collective c = allreduce on biring(3);", target="ir")["c"].artifacts[0].text
    with pytest.raises(CollcError, match="only schedules have a report"):
        collc.compile_source(text, target="report")


def test_many_collectives_lose_details_of_the_last_first() -> None:
    one = dict(section(TORUS))
    assert fitted([one, one]) == [one, one]
    many = fitted([{**one, "name": str(n)} for n in range(40)])
    assert sum(map(length, many)) <= MOST_CHARACTERS
    assert many[0]["transfers"] is not None and many[-1]["transfers"] is None
    assert many[-1]["name"] == "39" and "40 collectives" in str(many[-1]["absent"])
    assert many[-1]["sizes"] == one["sizes"]
    brief = fitted([one] * 150)[-1]
    assert brief["sizes"] == one["sizes"] and brief["why"] == one["why"]
    assert len(page([brief] * 100)) < 2_000_000


def test_a_page_and_its_check_simulate_a_schedule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a page takes the data that it was written from only if they are those of the same account."""
    import collc.backends.report.target as target
    from collc.backends.report import HtmlReport

    made, kept = [], target.section_of
    monkeypatch.setattr(target, "section_of", lambda given: made.append(given) or kept(given))
    one, other = account(TORUS), account(DGX)
    page_of_one = HtmlReport().emit(one)
    assert HtmlReport().check(one, page_of_one).ok and made == [one]
    assert not HtmlReport().check(other, page_of_one).ok and made == [one, other]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("collective c = allgather on torus(3, 5); schedule c using bfb;",
         " It takes 3 steps; the farthest ranks are 3 links apart, so link by link no schedule takes fewer."),
        ("collective c = allgather on biring(8); schedule c using ring;",
         " It takes 7 steps; the farthest ranks are 4 links apart."),
        ("collective c = broadcast on biring(8) { root: 0 };", ""),
        ("collective c = allgather on dgx_a100(2);", ""), ("collective c = allgather on complete(4);", ""),
    ],
)  # fmt: skip
def test_steps_stand_beside_the_distance_of_the_farthest_ranks(text: str, said: str) -> None:
    why = str(section(text)["why"])
    assert said in why if said else "links apart" not in why


def test_the_page_has_the_checks_of_a_plan() -> None:
    text = "collective c = allgather on dgx_a100(1); schedule c using ring; emit c as mscclpp-json;"
    findings = section(text)["findings"]
    assert isinstance(findings, dict)
    assert {"schedule", "program", "one-sided", "mscclpp-json"} <= {row[1] for row in findings["checks"]}  # type: ignore
