"""Latency variants of torus algorithms as templates: whole vectors, whose chunks have fixed places on all ranks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.mpi_c import MpiC
from collc.backends.simulator.convert import traffic_of
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import Translations
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.text import parse_ir, print_ir
from collc.ir.validate import flaws
from collc.ir.verify import verify
from collc.ir.verify.agreement import same_everywhere
from collc.ir.verify.connections import strayed
from collc.ir.verify.symmetric_program import template_strayed
from collc.passes.lowering.template import lower_messages, lower_template
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.renumber import Renumber
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.doubling import RecursiveDoubling
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.trivance import Trivance

POWERS_OF_2: tuple[TorusPass, ...] = (
    Swing(variant="latency"), Swing(variant="latency", ports=1), Swing(variant="latency", identical=False),
    RecursiveDoubling(), RecursiveDoubling(mirrored="neg"), RecursiveDoubling(mirrored="reflect"),
    Bine(variant="latency"),
)  # fmt: skip
THIRDS = Trivance(variant="latency")


def cases() -> st.SearchStrategy[tuple[str, TorusPass]]:
    """Tori on which all ranks exchange alike, some with parallel links."""
    twos = st.lists(st.sampled_from((2, 4, 8)), min_size=1, max_size=2)
    threes = st.lists(st.sampled_from((3, 9)), min_size=1, max_size=2)
    lanes = st.sampled_from((4, 8, 16)).map(lambda size: f"biring({size}, 2)")
    cubes = st.integers(1, 5).map(lambda size: f"hypercube({size})")
    rings = st.sampled_from((4, 8)).map(lambda size: f"product(hypercube(1), biring({size}))")
    return st.one_of(
        st.tuples(st.one_of(twos.map(torus), lanes, cubes, rings), st.sampled_from(POWERS_OF_2)),
        st.tuples(threes.map(torus), st.just(THIRDS)),
    )


def torus(shape: list[int]) -> str:
    return f"torus({', '.join(map(str, shape))})"


def scheduled(net: str, algorithm: TorusPass, keep: bool) -> SymmetricSchedule | Schedule:
    topology = collc.topology(net)
    found = attrs.evolve(algorithm, template=keep).run(  # type: ignore[call-arg]
        Problem(topology, Collective("allreduce", topology.num_ranks))
    )
    assert isinstance(found, SymmetricSchedule | Schedule)
    return found


def template(net: str, algorithm: TorusPass = POWERS_OF_2[0]) -> SymmetricSchedule:
    found = Discretize(templates=True).run(scheduled(net, algorithm, keep=True))
    assert isinstance(found, SymmetricSchedule)
    return found


def program_of(net: str, algorithm: TorusPass = POWERS_OF_2[0]) -> SymmetricProgram:
    found = lower_template(template(net, algorithm))
    assert found is not None
    return found


@settings(max_examples=examples(40), deadline=None)
@given(cases())
def test_unfolded_it_lists_the_same_rows(case: tuple[str, TorusPass]) -> None:
    found, whole = scheduled(*case, keep=True), scheduled(*case, keep=False)
    if isinstance(found, Schedule):
        assert not isinstance(case[1], Swing | Trivance) and found == whole
        return
    rows = found.unfold()
    assert found.exchanges and rows == whole and rows.routes == whole.routes
    assert cost(found) == cost(whole) and traffic_of(found) == traffic_of(whole)
    assert same_everywhere(found) == same_everywhere(whole)
    assert verify(found).ok


@settings(max_examples=examples(40), deadline=None)
@given(cases())
def test_its_program_has_one_run_in_a_message(case: tuple[str, TorusPass]) -> None:
    found = scheduled(*case, keep=True)
    if isinstance(found, Schedule):
        return
    found = Discretize(templates=True).run(found)
    assert isinstance(found, SymmetricSchedule)
    program = lower_template(found)
    assert program is not None and program.fixed and verify(program).ok and not template_strayed(program, found)
    assert verify(program.unfold()).ok


@pytest.mark.quick
def test_a_changed_row_is_refused() -> None:
    found = template("torus(4, 4)")
    for row in range(0, len(found.seed), 5):
        others = found.seed.rows(np.delete(np.arange(len(found.seed)), row))
        assert not verify(attrs.evolve(found, seed=others)).ok, row
        route = np.array(found.seed.route).astype(np.int64)
        route[row] = route[row - 1] if route[row] != route[row - 1] else route[row - 2]
        assert not verify(attrs.evolve(found, seed=attrs.evolve(found.seed, route=route))).ok, row


@pytest.mark.quick
def test_messages_without_a_shard_are_not_lowered_whole() -> None:
    found = template("torus(4, 4)")
    for row in (0, 17):  # sent by rank 0, and by another rank
        others = found.seed.rows(np.delete(np.arange(len(found.seed)), row))
        assert lower_template(attrs.evolve(found, seed=others)) is None


@pytest.mark.quick
def test_planted_faults_of_programs_are_found() -> None:
    program, schedule = program_of("torus(4, 4)"), template("torus(4, 4)")
    seed = program.seed
    moved = attrs.evolve(program, fixed=False)
    assert not verify(moved).ok
    alone = attrs.evolve(seed, dep_start=np.zeros(seed.num_instructions + 1, dtype=np.int64), deps=[])
    assert "in either order" in str(verify(attrs.evolve(program, seed=alone)).failed)
    for column in ("src_offset", "dst_offset"):
        changed = np.array(getattr(seed, column)).astype(np.int64)
        row = int(np.flatnonzero(changed)[0])
        changed[row] -= 1
        assert not verify(attrs.evolve(program, seed=attrs.evolve(seed, **{column: changed}))).ok
    assert "its group is" in template_strayed(attrs.evolve(program, group=Translations((4, 4))), schedule)
    fewer = attrs.evolve(schedule, seed=schedule.seed.rows(np.arange(1, len(schedule.seed))))
    assert "from rank" in template_strayed(program, fewer)


@pytest.mark.quick
def test_fixed_places_need_whole_vectors_in_order() -> None:
    program = program_of("torus(4, 4)")
    topology = collc.topology("torus(4, 4)")
    schedule = Discretize(templates=True).run(Swing(template=True).run(Problem(topology, Collective("allgather", 16))))
    assert isinstance(schedule, SymmetricSchedule)
    gathers = lower_template(schedule)
    assert gathers is not None and verify(gathers).ok
    fixed = attrs.evolve(gathers, fixed=True)
    assert any("fixed places" in str(flaw) for flaw in flaws(fixed)) and not verify(fixed).ok
    numbered = attrs.evolve(program, numbering=np.arange(16 * program.chunks))
    assert any("fixed places" in str(flaw) for flaw in flaws(numbered))


@pytest.mark.quick
def test_its_text_is_read_back() -> None:
    program = program_of("torus(4, 4)")
    text = print_ir(program)
    assert "  fixed yes\n" in text and parse_ir(text) == program
    assert parse_ir(text.replace("  fixed yes\n", "")) != program


@pytest.mark.quick
@pytest.mark.parametrize("ranks", [256, 1024])
def test_a_file_of_mpi_holds_one_rank(ranks: int) -> None:
    side = int(ranks**0.5)
    source = f"collective c = allreduce on torus({side}, {side}); schedule c using swing {{ variant: latency }};"
    compiled = collc.compile_source(source, target="mpi-c")
    result = compiled["c"]
    assert isinstance(result.program, SymmetricProgram) and result.program.fixed
    assert sum(len(file.content) for file in compiled.files.values()) < 200_000
    assert all(report.ok for report in result.reports)


@pytest.mark.parametrize("target", ["ir", "chakra"])
@pytest.mark.parametrize(("net", "scheduler"), [("torus(4, 4)", "swing"), ("torus(3, 3)", "trivance")])
def test_files_of_schedules_of_all_ranks_keep_their_bytes(target: str, net: str, scheduler: str) -> None:
    texts = []
    for keep in ("true", "false"):
        options = f"variant: latency, template: {keep}"
        source = f"collective c = allreduce on {net}; schedule c using {scheduler} {{ {options} }};"
        try:
            compiled = collc.compile_source(source, target=target)
        except CollcError as refused:
            texts.append(str(refused).replace("true", "false"))
            continue
        texts.append({name: file.content for name, file in compiled.files.items()})
    assert texts[0] == texts[1]


# ---- without a group


@settings(max_examples=examples(30), deadline=None)
@given(
    st.sampled_from((
        "torus(3, 6)", "torus(8)", "complete(8)", "mesh(3, 4)", "torus(5, 6)", "torus(4, 8)", "hypercube(3)",
        "generalized_kautz(2, 12)", "complete(3)",
    )),
    st.sampled_from(POWERS_OF_2[:-1]), st.booleans(),
)  # fmt: skip
def test_programs_of_all_ranks_exchange_too(net: str, algorithm: TorusPass, renumber: bool) -> None:
    found = Discretize().run(scheduled(net, algorithm, keep=False))
    if renumber:
        found = Renumber().run(found)
    assert isinstance(found, Schedule)
    program = lower_messages(found)
    assert program is not None and program.fixed and program.width == program.num_ranks
    assert verify(program).ok and not strayed(program.unfold(), found)
    named = program.renamed("c")
    assert MpiC().check(named, MpiC().emit(named)).ok


@pytest.mark.quick
def test_a_program_of_all_ranks_without_a_row_is_wrong() -> None:
    found = Discretize().run(scheduled("torus(5, 2)", POWERS_OF_2[0], keep=False))
    assert isinstance(found, Schedule)
    for row in range(0, len(found), 37):
        program = lower_messages(found.rows(np.delete(np.arange(len(found)), row)))
        assert program is not None and not verify(program).ok
    program = lower_messages(found)
    assert program is not None
    alone = attrs.evolve(program.seed, dep_start=np.zeros(program.seed.num_instructions + 1, dtype=np.int64), deps=[])
    assert not verify(attrs.evolve(program, seed=alone)).ok


def test_a_long_exchange_without_a_group_is_a_small_program() -> None:
    source = "collective c = allreduce on torus(12, 14); schedule c using recursive-doubling;"
    result = collc.compile_source(source, target="mpi-c")["c"]
    assert isinstance(result.program, SymmetricProgram) and result.program.fixed
    assert result.program.width == 168 and result.program.seed.num_instructions < 10_000
    assert all(report.ok for report in result.reports)


def test_a_long_exchange_of_bits_is_the_program_of_one_rank() -> None:
    """No group moves its routes on a torus, but programs have none."""
    source = "collective c = allreduce on torus(16, 16); schedule c using recursive-doubling;"
    result = collc.compile_source(source, target="mpi-c")["c"]
    assert isinstance(result.program, SymmetricProgram) and result.program.fixed
    assert (result.program.width, result.program.seed.num_instructions) == (1, 20)
    assert all(report.ok for report in result.reports)
