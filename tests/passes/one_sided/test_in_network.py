"""Operations of switches: plans that the model executes, and faults in them that it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

import attrs
import numpy as np
import pytest
from one_sided_judge import judge
from sampling import every

import collc
from collc.ir.bundles import loading
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided import OneSided, Op
from collc.ir.one_sided.program import Transport
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.one_sided.fit import FitOperations
from collc.passes.one_sided.handshake import Handshake
from collc.passes.one_sided.in_network import SwitchOperations, plan_time
from collc.passes.one_sided.rows import OPCODE, Rows, program_of, rows_of
from collc.passes.one_sided.two_sided import two_sided
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.forest.scheduler import ForestScheduler

FOURS = "subset(dgx_h100(2, 0, 1), {0..4, 8..12})"
BOX, TWO, SMALL = "dgx_h100(1, 0, 1)", "dgx_h100(2, 0, 1)", "subset(dgx_h100(2, 0, 1), {0..3, 8..11})"


def scheduled(network: str | Topology, kind: str, pieces: int = 1) -> Schedule:
    topology = collc.topology(network) if isinstance(network, str) else network
    root = 1 if kind in ("broadcast", "reduce") else None
    problem = Problem(topology, Collective(kind, topology.num_ranks, root=root))
    return Discretize().run(ForestScheduler(pieces=pieces).run(problem).to_steps())


def lowered(network: str | Topology, kind: str, pieces: int = 1, per_node: int = 8, **options: bool) -> OneSided:
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


@pytest.mark.parametrize(("network", "per_node"), [("subset(dgx_h100(1, 0, 1), {0..3})", 8), (SMALL, 8), (FOURS, 4)])
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


def test_a_switch_joins_ranks_of_one_node() -> None:
    with pytest.raises(CollcError, match="divides") as failure:
        SwitchOperations(ranks_per_node=4).run(scheduled(SMALL, "allreduce"))
    assert [one.code for one in failure.value.diagnostics] == ["C0578"]


# ---- sums that a switch stores for one rank


@pytest.mark.parametrize(("boxes", "most"), [(2, 400), (3, 300), (4, Fraction(800, 3))])
def test_a_plan_of_boxes_takes_no_longer_than_the_schedule(boxes: int, most: int | Fraction) -> None:
    schedule = scheduled(f"dgx_h100({boxes}, 0, 1)", "allreduce")
    program = SwitchOperations(ranks_per_node=8).run(schedule)
    assert "glres" in words(program) and "rre" not in words(program)
    assert plan_time(schedule) == time_per_byte(schedule) == 1 / Fraction(most) / 10**9
    assert boxes > 2 or verify(Handshake().run(program)).ok


def slow(network: str, bandwidth: int = 100 * 10**9) -> Topology:
    """Return a network whose NVLinks are slower, so that they decide."""
    topology = collc.topology(network)
    return attrs.evolve(
        topology,
        classes=tuple(attrs.evolve(c, bandwidth=min(c.bandwidth, Fraction(bandwidth))) for c in topology.classes),
    )


@pytest.mark.parametrize("pieces", [1, 2])
def test_sums_of_slow_boxes_are_stored_by_switches(pieces: int) -> None:
    program = lowered(slow(FOURS), "allreduce", pieces, per_node=4)
    assert "glres" in words(program) and verify(program).ok
    assert judge(program, 2) == ""


def test_three_ranks_share_a_store_if_their_number_is_odd() -> None:
    program = lowered("subset(dgx_h100(2, 0, 1), {0..7, 8..15})", "allreduce", per_node=7)
    pairs = {one.group for one in program.channels if one.transport == Transport.SWITCH and one.buffer == 2}
    assert pairs == {(0, 1), (2, 3), (4, 5, 6), (7, 8), (9, 10), (11, 12, 13)}
    assert verify(program).ok


def time_per_byte(schedule: Schedule) -> Fraction:
    """Return the time of the link with the largest load, where transfers share links."""
    route, routes = loading(schedule)
    load = [0] * schedule.topology.num_links
    for row, (lo, hi) in enumerate(zip(schedule.lo.tolist(), schedule.hi.tolist(), strict=True)):
        first, last = routes.start[route[row]], routes.start[route[row] + 1]
        for place in range(first, last):
            load[int(routes.links[place])] += (hi - lo) * bool(routes.carries is None or routes.carries[place])
    return max(Fraction(n) / schedule.topology.bandwidth(link) for link, n in enumerate(load)) / schedule.vector


@pytest.mark.parametrize("network", [BOX, TWO])
def test_ranks_read_their_peers_where_that_is_no_slower(network: str) -> None:
    program, schedule = lowered(network, "reduce-scatter"), scheduled(network, "reduce-scatter")
    assert "rre" in words(program) and "glres" not in words(program)
    assert plan_time(schedule) >= time_per_byte(schedule)


@pytest.mark.parametrize("network", [BOX, TWO, FOURS])
@pytest.mark.parametrize("kind", ["allreduce", "broadcast", "allgather"])
def test_all_ranks_of_a_group_have_its_channel_in_one_order(network: str, kind: str) -> None:
    program = lowered(network, kind, per_node=4 if network == FOURS else 8)
    found: dict[int, list[tuple[int, tuple[int, ...]]]] = {rank: [] for rank in range(program.num_ranks)}
    for channel in program.channels:
        if channel.transport == Transport.SWITCH:
            found[channel.rank].append((channel.buffer, channel.group))
    order = list(dict.fromkeys(one for each in found.values() for one in each))
    assert order
    for rank, each in found.items():
        assert set(each) == {one for one in order if rank in one[1]}
        for other in range(rank):
            common = set(each) & set(found[other])
            assert [one for one in each if one in common] == [one for one in found[other] if one in common]


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


def test_harmful_faults_of_stored_sums_are_found() -> None:
    program = lowered(slow(FOURS), "allreduce", per_node=4)
    planted = every(50, list(faults(program)))
    assert len(planted) > 15
    missed = [(name, changed) for name, changed in planted if verify(changed).ok]
    assert len(missed) < len(planted) // 3
    assert [] == [name for name, changed in missed if judge(changed, 3)]


# ---- whole commands


def plan(source: str, per_node: int = 8) -> list[str]:
    """Return the operations of the plan of a specification, each once."""
    target = f"mscclpp-json{{ranks-per-node={per_node}}}"
    result = collc.compile_source(source, target=target)
    (text,) = (artifact.text for artifact in result.artifacts.values())
    return sorted(set(re.findall(r'\{"name": "([a-z]+)"', text)))


@pytest.mark.parametrize(
    ("network", "options", "found"),
    [
        ("dgx_h100(1, 0, 1)", "", ["glres"]),
        ("dgx_h100(2, 0, 1)", "", ["glres", "gstore", "pws"]),
        ("subset(dgx_h100(2, 0, 1), {0..3, 8..11})", "", ["gstore", "pws", "rre"]),
        ("dgx_h100(1, 0, 1)", "{ in-network: false }", []),
        ("dgx_h100(1)", "", []),
        ("dgx_h100(2, 0, 1) among {0..4}", "{ relays: never }", ["glres"]),
    ],
)
def test_plans(network: str, options: str, found: list[str]) -> None:
    source = f"collective c = allreduce on {network} {{ size: 64 MiB }}; schedule c using forest {options};"
    words_ = plan(source, 3 if "subset" in network else 8)
    assert set(found) <= set(words_) and ("glres" in words_ or "gstore" in words_) == bool(found)


def test_the_driver_takes_what_another_scheduler_finds() -> None:
    source = "collective c = allreduce on dgx_h100(1, 0, 1) { size: 64 MiB }; schedule c using"
    assert (
        "signal" in plan(f"{source} ring;")
        and "glres" not in plan(f"{source} ring;")
        and "glres" in plan(f"{source} auto;")
    )
