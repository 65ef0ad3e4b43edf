"""Which schedulers apply, judged without scheduling: as scheduling itself finds, and with hints that work."""

from __future__ import annotations

import attrs
import pytest

from collc.frontends.coll import topology
from collc.ir.collective import KINDS, ROOTED, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.passes import PASSES, SCHEDULERS
from collc.passes.applying import applicable, listed
from collc.passes.base import Pass
from collc.passes.ranges import Range

NETWORKS = ("torus(2, 3)", "uniring(3)", "mesh(2, 2)", "complete(3)", "dgx_a100(1)", "complete(1)", "circulant(4, {2})")
OWN = [name for name in SCHEDULERS.own if name not in ("auto", "steps")]
RANGED = [
    (name, field.name, field.metadata["range"])
    for name in PASSES.own
    for field in attrs.fields(PASSES.load(name))
    if "range" in field.metadata
]


def problem(network: str, kind: str) -> Problem:
    graph = topology(network)
    return Problem(graph, Collective(kind, graph.num_ranks, root=0 if kind in ROOTED else None))


def refusal(this: Pass, of: Problem, run: bool) -> list[str]:
    try:
        (this.run if run else this.require)(of)
    except CollcError as mistake:
        return [f"{d.code} {d.message}" for d in mistake.diagnostics]
    return []


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", OWN)
def test_what_is_judged_is_what_scheduling_finds(name: str, network: str) -> None:
    """Limits on the size of a search and what a scheduler finds on the way are no matter of small networks."""
    for kind in KINDS:
        if (name, network) == ("nccl-rings", "torus(2, 3)") and kind not in ("allreduce", "alltoall", "broadcast"):
            continue  # the search for rings takes a second, and is the same for all
        if network == "dgx_a100(1)" and kind not in ("alltoall", "allgather", "gather"):
            continue
        of = problem(network, kind)
        assert refusal(PASSES.load(name)(), of, run=False) == refusal(PASSES.load(name)(), of, run=True), kind


@pytest.mark.parametrize("network", NETWORKS)
def test_a_hint_names_schedulers_that_take_the_collective(network: str) -> None:
    for kind in KINDS:
        of = problem(network, kind)
        for name in OWN:
            with_kind = refusal(PASSES.load(name)(), of, run=False)
            assert (name in applicable(of)) <= (not with_kind), (name, kind)
    assert network == "circulant(4, {2})" or applicable(problem(network, "allreduce"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", ["dgx_a100(1)", "mi250(2)", "leaf_spine(2, 2, 2)", "kautz(2, 2)", "mesh(2, 3)"])
def test_every_collective_has_a_scheduler_on_every_connected_network(network: str, kind: str) -> None:
    assert applicable(problem(network, kind))


@pytest.mark.parametrize(("name", "field", "allowed"), RANGED, ids=lambda given: str(given))
def test_options_out_of_range_are_named(name: str, field: str, allowed: Range) -> None:
    wrong = [allowed.least - 1, *([] if allowed.most is None else [allowed.most + 1])]
    for value in wrong:
        with pytest.raises(CollcError) as caught:
            PASSES.load(name)(**{field: value})
        found = caught.value.diagnostics[-1]
        option = field.replace("_", "-")
        assert (found.code, found.option, caught.value.exit_status) == (allowed.code, option, 1)
        assert allowed.text in found.message and str(allowed.nearest(value)) in str(found.hint)
    if field != "rounds":  # needs `chunks`
        assert getattr(PASSES.load(name)(**{field: allowed.least}), field) == allowed.least


def test_every_number_of_a_pass_has_a_range() -> None:
    """`root` depends on the network; `steps` of flow has its diameter as least."""
    without = {
        (name, field.name)
        for name in PASSES.own
        for field in attrs.fields(PASSES.load(name))
        if "int" in str(field.type).replace("Literal", "") and "range" not in field.metadata
    }
    assert without == {("flow", "steps"), ("forest", "root")}


def test_lists() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"], "or")] == ["a", "a and b", "a, b or c"]
