"""The limit on counted work in ``auto``: what is beyond it is skipped, unless nothing else applies."""

from __future__ import annotations

from pathlib import Path

import pytest
from pcie_clusters import pcie_cluster

from collc.frontends import coll
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.effort import limited
from collc.ir.spec import Problem
from collc.passes.synthesis.general.scheduler import General
from collc.selection import Auto, Selector

BOXES = "clustered(complete(4), 3, 1/2)"
SKIPPED = "more than 10 steps of work; `using forest` has no limit [C0050]"


def selector(text: str, auto: Auto) -> Selector:
    (request,) = coll.load("pod.coll", text=text).collectives.values()
    return Selector(request.problem, auto, request.name)


def reasons(found: Selector) -> dict[str, str]:
    return {one.name: one.reason for one in found.choose({}).skipped}


def test_a_scheduler_beyond_the_limit_is_skipped() -> None:
    text = f"collective c = allreduce on {BOXES};"
    skipped = reasons(selector(text, Auto(effort=10)))
    assert skipped["forest"] == SKIPPED
    assert "forest" not in reasons(selector(text, Auto()))


def test_the_limit_is_remembered_for_other_sizes() -> None:
    text = f"collective c = allreduce on {BOXES};"
    first = selector(text, Auto(effort=10))
    again = Selector(first.problem.sized(1 << 20), Auto(effort=10), "c", first.memory)
    assert reasons(again)["forest"] == SKIPPED


def test_the_only_candidate_runs_without_a_limit() -> None:
    others = ", ".join(name for name in Auto().names() if name != "forest")
    found = selector("collective c = allreduce on leaf_spine(2, 2, 1);", Auto(effort=10, without=others))
    assert {one.algorithm.scheduler for one in found.measured} == {"forest"}
    assert "forest" not in reasons(found)


def test_a_candidate_that_was_named_stays_limited() -> None:
    with pytest.raises(CollcError) as caught:
        selector(f"collective c = allreduce on {BOXES};", Auto(effort=10, candidates="forest"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint, found.option) == ("C0050", "`effort` raises the limit", "candidates")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allreduce", "alltoall"])
def test_no_candidate_runs_away_on_an_imported_cluster(tmp_path: Path, kind: str) -> None:
    """128 ranks and 252 switches: forests take a hundredth of the limit, and no candidate comes near it."""
    text = pcie_cluster(tmp_path, 16) + f"collective c = {kind} on pod {{ size: 256 MiB }};\n"
    (request,) = coll.load(str(tmp_path / "pod.coll"), text=text).collectives.values()
    found = Selector(request.problem, Auto(effort=10_000_000), "c")
    assert not any("C0050" in one.reason for one in found.skipped)
    assert any(one.algorithm.scheduler == ("forest" if kind == "allreduce" else "flow") for one in found.measured)


def test_what_is_too_large_for_all_others_is_for_general(monkeypatch: pytest.MonkeyPatch) -> None:
    """`flow` takes a number of pairs of a source and a link; no collective is refused for that."""
    matrix = "{{(s + 2 * t) mod 3 for t in 0..9} for s in 0..9}"
    text = f"collective c = alltoallv on torus(3, 3) {{ matrix: {matrix} }};"
    assert "general" not in {one.algorithm.scheduler for one in selector(text, Auto()).measured}
    monkeypatch.setattr("collc.passes.synthesis.flow.scheduler._MOST_UNEVEN", 10)
    found = selector(text, Auto())
    assert {one.algorithm.scheduler for one in found.measured} == {"general"}
    assert "flow" in reasons(found)


def test_general_counts_its_work() -> None:
    """Few steps skip it; a mix that is kept counts as if it were found again."""
    net = topology("torus(4, 4)")
    one = Problem(net, Collective("allgather", 16, size=1 << 10))
    few, many = Selector(one, Auto(effort=5_000), "c"), Selector(one, Auto(effort=5_000_000), "c")
    assert "steps of work" in next(skipped.reason for skipped in few.skipped if skipped.name == "general-latency")
    assert any(found.algorithm.scheduler == "general" for found in many.measured)
    for kind, objective in (("allgather", "latency"), ("alltoall", "time")):
        spent = []
        for _ in range(2):
            with limited(1 << 40) as effort:
                General(objective=objective).run(Problem(net, Collective(kind, 16)))
            spent.append(effort.spent)
        assert spent[0] == spent[1] > 10_000
