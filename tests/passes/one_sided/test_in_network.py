"""Operations of switches: plans that the model executes, and faults in them that it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs
import numpy as np
import pytest
from one_sided_judge import judge
from sampling import every

import collc
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided import OneSided, Op
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.one_sided.fit import FitOperations
from collc.passes.one_sided.handshake import Handshake
from collc.passes.one_sided.in_network import SwitchOperations
from collc.passes.one_sided.rows import OPCODE, Rows, program_of, rows_of
from collc.passes.one_sided.two_sided import two_sided
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.forest.scheduler import ForestScheduler

BOX, TWO, SMALL = "dgx_h100(1, 0, 1)", "dgx_h100(2, 0, 1)", "subset(dgx_h100(2, 0, 1), {0..3, 8..11})"


def scheduled(network: str, kind: str, pieces: int = 1) -> Schedule:
    topology = collc.topology(network)
    root = 1 if kind in ("broadcast", "reduce") else None
    problem = Problem(topology, Collective(kind, topology.num_ranks, root=root))
    return Discretize().run(ForestScheduler(pieces=pieces).run(problem).to_steps())


def lowered(network: str, kind: str, pieces: int = 1, per_node: int = 8, **options: bool) -> OneSided:
    program = SwitchOperations(ranks_per_node=per_node, **options).run(scheduled(network, kind, pieces))
    return Handshake().run(program)


def words(program: OneSided, rank: int = 0) -> list[str]:
    return [program.word(row) for row in np.flatnonzero(program.rank == rank).tolist()]


def test_an_allreduce_of_a_box_is_one_operation_a_rank() -> None:
    for pieces in (1, 3):
        program = lowered(BOX, "allreduce", pieces)
        assert program.chunks == 1 and program.num_blocks == 8
        assert ["rlxsignal", "rlxwait", "nop", "glres", "nop", "signal", "wait"] == words(program)
        assert verify(program).ok


def test_an_allgather_is_one_store_a_rank() -> None:
    assert ["rlxsignal", "rlxwait", "nop", "gstore", "nop", "signal", "wait"] == words(lowered(BOX, "allgather"))


CASES = [
    (network, kind, pieces, inplace)
    for network, kinds in ((BOX, ("allreduce", "allgather", "broadcast")), (TWO, ("allreduce", "allgather")))
    for kind in kinds for pieces in (1, 2) for inplace in (False, True)
]  # fmt: skip
CASES += [(network, kind, 2, False) for network in (BOX, TWO) for kind in ("reduce-scatter", "reduce")]


@pytest.mark.parametrize(("network", "kind", "pieces", "inplace"), CASES)
def test_the_model_executes_them(network: str, kind: str, pieces: int, inplace: bool) -> None:
    program = lowered(network, kind, pieces, inplace=inplace)
    assert verify(program).ok
    assert verify(FitOperations(max_operations=32).run(program)).ok


@pytest.mark.parametrize("shares", [2, 3])
@pytest.mark.parametrize("network", [BOX, SMALL])
def test_blocks_share_operations_of_switches(network: str, shares: int) -> None:
    program = SwitchOperations(ranks_per_node=8).run(scheduled(network, "allreduce"))
    shared = Handshake(shares=shares).run(program)
    assert shared.num_blocks == shares * program.num_blocks and verify(shared).ok


@pytest.mark.parametrize(("network", "per_node"), [("subset(dgx_h100(1, 0, 1), {0..3})", 8), (SMALL, 8)])
def test_another_machine_agrees(network: str, per_node: int) -> None:
    assert judge(lowered(network, "allreduce", per_node=per_node), 3) == ""


def test_sends_and_receives_cannot_say_it() -> None:
    with pytest.raises(CollcError) as failure:
        Lower().run(scheduled(BOX, "allreduce"))
    assert [one.code for one in failure.value.diagnostics] == ["C0578"]
    with pytest.raises(CollcError) as failure:
        two_sided(lowered(BOX, "allreduce"))
    assert [one.code for one in failure.value.diagnostics] == ["C0576"]


def test_intervals_that_overlap_in_part() -> None:
    schedule = scheduled(BOX, "allgather", 2)
    mixed = attrs.evolve(schedule, parts=3, lo=np.where(schedule.lo, 1, 0), hi=np.where(schedule.lo, 3, 2))
    with pytest.raises(CollcError) as failure:
        SwitchOperations().run(mixed)
    assert [one.code for one in failure.value.diagnostics] == ["C0578"]


# ---- faults


Change = Callable[[Rows, int], Rows | None]


def _without(rows: Rows, row: int) -> Rows | None:
    if rows.fixed[row, OPCODE] == Op.FLUSH:
        return None
    return rows.take(np.delete(np.arange(len(rows)), row))


def _one_link_less(rows: Rows, row: int) -> Rows | None:
    if rows.link_count[row] < 2:
        return None
    counts = rows.link_count.copy()
    counts[row] -= 1
    return attrs.evolve(rows, link_count=counts, links=np.delete(rows.links, int(rows.link_count[:row].sum())))


def _elsewhere(rows: Rows, row: int) -> Rows | None:
    """Let the last item of an operation be one chunk further, or one back."""
    if not rows.item_count[row]:
        return None
    items, at = rows.items.copy(), int(rows.item_count[: row + 1].sum()) - 1
    items[at, 2] += 1 if items[at, 2] == 0 else -1
    return attrs.evolve(rows, items=items)


def _exchanged(rows: Rows, row: int) -> Rows | None:
    """Let a signal or a wait and the nop beside it change places."""
    pair = rows.fixed[row : row + 2]
    opcodes = pair[:, OPCODE].tolist()
    if len(pair) < 2 or pair[0, 0] != pair[1, 0] or opcodes not in ([Op.WAIT, Op.NOP], [Op.NOP, Op.SIGNAL]):
        return None
    order = np.arange(len(rows))
    order[[row, row + 1]] = row + 1, row
    return rows.take(order)


def faults(program: OneSided) -> Iterator[tuple[str, OneSided]]:
    """Yield changed programs. A nop after a sum is left: the threads that read the sum are those that computed it."""
    rows = rows_of(program)
    opcodes = rows.fixed[:, OPCODE].tolist()
    for change in (_without, _one_link_less, _elsewhere, _exchanged):
        for row in range(len(rows)):
            if change is _without and opcodes[row] == Op.NOP and opcodes[row - 1] in (Op.RE, Op.RRE):
                continue
            changed = change(rows, row)
            if changed is not None:
                yield f"{change.__name__} {program.place(row)} ({program.word(row)})", program_of(program, changed)


@pytest.mark.parametrize(("network", "step"), [("subset(dgx_h100(1, 0, 1), {0..3})", 1), (SMALL, 5)])
def test_faults_are_found(network: str, step: int) -> None:
    program = lowered(network, "allreduce")
    planted = every(step, list(faults(program)))
    assert len(planted) > 30
    assert [] == [name for name, changed in planted if verify(changed).ok]


# ---- whole commands


def plan(source: str, target: str = "mscclpp-json{ranks-per-node=8}") -> list[str]:
    """Return the operations of the plan of a specification, each once."""
    result = collc.compile_source(source, target=target)
    (text,) = (artifact.text for artifact in result.artifacts.values())
    return sorted(set(re.findall(r'\{"name": "([a-z]+)"', text)))


@pytest.mark.parametrize(
    ("network", "options", "found"),
    [
        ("dgx_h100(1, 0, 1)", "", ["glres"]),
        ("dgx_h100(2, 0, 1)", "", ["gstore", "pws", "rre"]),
        ("dgx_h100(1, 0, 1)", "{ in-network: false }", []),
        ("dgx_h100(1)", "", []),
        ("dgx_h100(2, 0, 1) among {0..4}", "{ relays: never }", ["glres"]),
    ],
)
def test_plans(network: str, options: str, found: list[str]) -> None:
    words_ = plan(f"collective c = allreduce on {network} {{ size: 64 MiB }}; schedule c using forest {options};")
    assert set(found) <= set(words_) and ("glres" in words_ or "gstore" in words_) == bool(found)


def test_the_driver_takes_what_another_scheduler_finds() -> None:
    source = "collective c = allreduce on dgx_h100(1, 0, 1) { size: 64 MiB }; schedule c using"
    assert (
        "signal" in plan(f"{source} ring;")
        and "glres" not in plan(f"{source} ring;")
        and "glres" in plan(f"{source} auto;")
    )
