"""Torus algorithms as templates: unfolded, they are the schedules that list all ranks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import instructions_of

import collc
from collc.backends.simulator.convert import traffic_of
from collc.ir.acting import Acting
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import Group, Mirrored, Translations
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SYMMETRIC_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.ir.verify.agreement import same_everywhere
from collc.ir.verify.symmetric_program import template_strayed
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower
from collc.passes.lowering.template import lower_template
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.reverse import Reverse
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner, RecursiveDoubling
from collc.passes.synthesis.torus.pat import PAT
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.trivance import Trivance

ALGORITHMS: tuple[TorusPass, ...] = (
    Swing(), Swing(ports=1), Swing(reparent=True), Swing(reparent=False), Trivance(), Trivance(variant="bandwidth"),
    Bucket(), Ring(), Ring(schedule="bfb"), Bine(), Bine(variant="bandwidth"), Rabenseifner(),
    Rabenseifner(mirrored="neg"), Rabenseifner(mirrored="reflect"), PAT(), PAT(buffer=2),
)  # fmt: skip


def problem(net: str | Topology, kind: str = "allreduce") -> Problem:
    topology = collc.topology(net) if isinstance(net, str) else net
    return Problem(topology, Collective(kind, topology.num_ranks))


def kept(algorithm: TorusPass, ir: Problem) -> SymmetricSchedule | Schedule:
    found = attrs.evolve(algorithm, template=True).run(ir)  # type: ignore[call-arg]
    assert isinstance(found, SymmetricSchedule | Schedule)
    return found


def template(net: str | Topology, kind: str = "allreduce", algorithm: TorusPass = ALGORITHMS[0]) -> SymmetricSchedule:
    found = kept(algorithm, problem(net, kind))
    assert isinstance(found, SymmetricSchedule)
    return found


def listed(net: str | Topology, kind: str = "allreduce", algorithm: TorusPass = ALGORITHMS[0]) -> Schedule:
    found = attrs.evolve(algorithm, template=False).run(problem(net, kind))  # type: ignore[call-arg]
    assert isinstance(found, Schedule)
    return found


def tori() -> st.SearchStrategy[str]:
    """Rings and tori, most of them of even sizes, some with parallel links."""
    even, sizes = st.sampled_from((2, 4, 6, 8, 10, 12)), st.integers(2, 9)
    shapes = st.one_of(
        st.lists(even, min_size=1, max_size=2), st.lists(sizes, min_size=1, max_size=2), st.just([2, 4, 6])
    )
    return st.one_of(
        shapes.map(lambda shape: f"torus({', '.join(map(str, shape))})"),
        one_link_each(),
        even.map(lambda size: f"biring({2 * size}, 2)"),
    )


def one_link_each() -> st.SearchStrategy[str]:
    """Networks with dimensions of 2 that have one link."""
    rings = st.sampled_from((4, 6, 8)).map(lambda size: f"product(hypercube(1), biring({size}))")
    return st.one_of(st.integers(1, 5).map(lambda size: f"hypercube({size})"), rings)


@settings(max_examples=examples(40), deadline=None)
@given(tori(), st.sampled_from(SYMMETRIC_KINDS), st.sampled_from(ALGORITHMS))
def test_unfolded_it_lists_the_same_rows(net: str, kind: str, algorithm: TorusPass) -> None:
    found, whole = kept(algorithm, problem(net, kind)), listed(net, kind, algorithm)
    if isinstance(found, Schedule):
        assert found == whole
        return
    rows = found.unfold()
    assert rows == whole and rows.routes == whole.routes and len(found) == len(whole)
    assert cost(found) == cost(whole) and traffic_of(found) == traffic_of(whole)
    assert same_everywhere(found) == same_everywhere(whole)
    report = verify(found)
    assert report.ok, report.failed


@settings(max_examples=examples(40), deadline=None)
@given(tori(), st.sampled_from(SYMMETRIC_KINDS), st.sampled_from(ALGORITHMS))
def test_its_program_is_that_of_all_rows(net: str, kind: str, algorithm: TorusPass) -> None:
    found = Discretize(templates=True).run(kept(algorithm, problem(net, kind)))
    if isinstance(found, Schedule):
        return
    program = lower_template(found)
    assert program is not None and program.width == 1 and verify(program).ok and not template_strayed(program, found)
    lowered = Lower().run(found.unfold())
    assert instructions_of(program.unfold()) == instructions_of(lowered)


@pytest.mark.quick
@pytest.mark.parametrize("net", ["torus(4, 6)", "torus(2, 8)", "biring(12, 2)"])
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter"])
def test_its_reverse_has_the_rows_of_the_listed_reverse(net: str, kind: str) -> None:
    found = Reverse().run(template(net, kind))
    assert verify(found).ok and rows_of(found.unfold()) == rows_of(Reverse().run(listed(net, kind)))


def rows_of(schedule: Schedule) -> list[tuple[object, ...]]:
    routes = [tuple(schedule.routes.links_of(route)) for route in schedule.route.tolist()]
    columns = (getattr(schedule, name).tolist() for name in ("step", "action", "shard", "lo", "hi"))
    return sorted(zip(*columns, routes, strict=True))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("net", "algorithm", "group"),
    [
        ("torus(4, 6)", Swing(), Mirrored((4, 6))), ("torus(12)", Swing(), Mirrored((12,))),
        ("torus(2, 8)", Swing(), Mirrored((2, 8))), ("torus(2, 2)", Swing(), Translations((2, 2))),
        ("torus(5, 7)", Trivance(), Translations((5, 7))), ("torus(6, 6)", Trivance(), Mirrored((6, 6))),
        ("hypercube(4)", Trivance(), Translations((2, 2, 2, 2))),
        ("hypercube(4)", Swing(), Translations((2, 2, 2, 2))),
        ("hypercube(4)", Rabenseifner(), Translations((2, 2, 2, 2))),
        ("hypercube(4)", RecursiveDoubling(), Translations((2, 2, 2, 2))),
        ("torus(4, 2, 4)", Rabenseifner(), Mirrored((4, 2, 4))),
        ("torus(11)", PAT(), Translations((11,))), ("torus(12)", PAT(buffer=4), Translations((12,))),
    ],
)  # fmt: skip
def test_which_group_moves_it(net: str, algorithm: TorusPass, group: Group) -> None:
    orbits = template(net, "allreduce", algorithm).orbits
    assert isinstance(orbits, Acting) and orbits.group == group
    assert orbits.shown == f"the group {group.expression}" and not list(orbits.flaws())


@pytest.mark.quick
@pytest.mark.parametrize(
    ("net", "algorithm"),
    [
        ("torus(5, 4)", Swing()),  # the last coordinate of an odd size is the guest of all others
        ("torus(4, 6)", Trivance()),  # the peers half round are reached up, or by even coordinates
        ("torus(6, 4)", Swing(variant="latency")),  # guests send to hosts, which others do not
        ("mesh(4, 4)", Swing()), ("complete(6)", Swing()),
        ("product(hypercube(1), biring(6))", Swing()),  # both directions take one link, with other shards
        ("torus(8)", PAT()), ("torus(3, 4)", PAT()),  # ways half round, of even coordinates up; ranks as a ring
        ("torus(8)", Rabenseifner()), ("torus(4, 8)", RecursiveDoubling()),  # pairs x, x + 2 that are not all alike
    ],
)  # fmt: skip
def test_without_a_group_all_rows_are_listed(net: str, algorithm: TorusPass) -> None:
    with remarks() as said:
        found = kept(algorithm, problem(net))
    assert isinstance(found, Schedule) and found == listed(net, "allreduce", algorithm)
    assert any("no template, because collc knows no group" in text for text in said)


@pytest.mark.quick
def test_a_link_of_another_class_is_no_symmetry() -> None:
    net = collc.topology("torus(4, 4)")
    kinds = np.zeros(net.num_links, dtype=np.int64)
    kinds[5] = 1
    slower = attrs.evolve(net, link_class=kinds, classes=(LinkClass(2), LinkClass(1)), symmetry=None, origin=None)
    assert isinstance(kept(Swing(shape="4x4"), problem(slower)), Schedule)
    found = template("torus(4, 4)")
    moved = attrs.evolve(found, seed=attrs.evolve(found.seed, topology=slower), orbits=Acting(slower, Mirrored((4, 4))))
    assert not verify(moved).ok


@pytest.mark.quick
@pytest.mark.parametrize("kind", SYMMETRIC_KINDS)
def test_a_changed_row_is_refused(kind: str) -> None:
    found = template("torus(4, 6)", kind)
    for row in range(0, len(found.seed), 5):
        shard = np.array(found.seed.shard).astype(np.int64)
        shard[row] = 1
        assert not verify(attrs.evolve(found, seed=attrs.evolve(found.seed, shard=shard))).ok, row
        others = found.seed.rows(np.delete(np.arange(len(found.seed)), row))
        assert not verify(attrs.evolve(found, seed=others)).ok, row


@pytest.mark.quick
def test_a_program_of_another_group_strays() -> None:
    found = Discretize(templates=True).run(template("torus(4, 4)"))
    assert isinstance(found, SymmetricSchedule)
    program = lower_template(found)
    assert program is not None
    assert "its group is" in template_strayed(attrs.evolve(program, group=Translations((4, 4))), found)
    fewer = attrs.evolve(found, seed=found.seed.rows(np.arange(1, len(found.seed))))
    assert "from rank" in template_strayed(program, fewer)


@pytest.mark.quick
@pytest.mark.parametrize("order", [8, 24])
def test_a_group_of_another_order_has_a_flaw(order: int) -> None:
    net = collc.topology("torus(4, 4)")
    assert "needed one for each of 16 ranks" in next(Acting(net, Mirrored((order,))).flaws())
    assert "does not move the links" in next(Acting(net, Mirrored((16,))).flaws())
    assert "different numbers of links" in next(Acting(collc.topology("mesh(4, 4)"), Mirrored((4, 4))).flaws())


@pytest.mark.parametrize("target", ["ir", "chakra"])
@pytest.mark.parametrize("scheduler", ["swing", "trivance"])
def test_files_of_schedules_of_all_ranks_keep_their_bytes(target: str, scheduler: str) -> None:
    texts = []
    for keep in ("true", "false"):
        source = f"collective c = allreduce on torus(4, 4); schedule c using {scheduler} {{ template: {keep} }};"
        try:
            compiled = collc.compile_source(source, target=target)
        except CollcError as refused:
            texts.append(str(refused).replace("true", "false"))
            continue
        texts.append({name: file.content for name, file in compiled.files.items()})
    assert texts[0] == texts[1]


def test_files_of_mpi_hold_one_rank() -> None:
    source = "collective c = allreduce on torus(24, 24); schedule c using swing;"
    compiled = collc.compile_source(source, target="mpi-c")
    result = compiled["c"]
    assert isinstance(result.program, SymmetricProgram) and result.program.group == Mirrored((24, 24))
    assert sum(len(file.content) for file in compiled.files.values()) < 400_000
    assert all(report.ok for report in result.reports)


@pytest.mark.quick
def test_of_ranks_in_line_no_group_is_asked_on_a_torus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAT().gives_template(problem("torus(401)")) and Bine().gives_template(problem("torus(402)"))
    monkeypatch.setattr(TorusPass, "plan", None)  # plans of many ranks take long
    assert not any(one.gives_template(problem("torus(100, 100)")) for one in (PAT(), Bine()))


@pytest.mark.quick
def test_small_schedules_are_listed() -> None:
    """Above 16,384 transfers they are templates."""
    assert isinstance(Swing().run(problem("torus(6, 6)")), Schedule)
    assert isinstance(Swing().run(problem("torus(8, 8)")), SymmetricSchedule)
    assert Swing().gives_template(problem("torus(8, 8)")) and not Swing().gives_template(problem("torus(6, 6)"))


def test_four_thousand_ranks_have_the_cost_of_their_messages() -> None:
    ir = problem("torus(64, 64)")
    found = Swing().run(ir)
    assert isinstance(found, SymmetricSchedule) and len(found) == 2 * 4 * 4096 * 4095
    messages = Swing().messages(ir)
    assert messages is not None and cost(found).time_per_byte == messages.time_per_byte
    with pytest.raises(CollcError, match="can be listed"):
        found.unfold()


ONE_WAY = """
topology net {{
  rank r[6];
  for i in 0..6 {{
    link r[i] -> r[(i + 1) mod 6] : 1 GB/s;
{more}  }}
}}
collective c = {kind} on net;
schedule c using ring {{ template: {keep} }};
"""


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
@pytest.mark.parametrize("more", ["", "    link r[i] -> r[(i + 1) mod 6] : 1 GB/s;\n"])
def test_rings_one_way_are_templates_unless_their_routes_differ(kind: str, more: str) -> None:
    """Of parallel links, a route takes one by the number of its end."""
    found = []
    for keep in ("true", "false"):
        schedule = collc.compile_source(ONE_WAY.format(kind=kind, keep=keep, more=more))["c"].schedule
        assert isinstance(schedule, SymmetricSchedule) == (keep == "true" and not more)
        found.append(schedule.unfold() if isinstance(schedule, SymmetricSchedule) else schedule)
    assert found[0] == found[1]
