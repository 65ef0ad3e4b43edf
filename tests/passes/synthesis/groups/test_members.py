"""Schedules of members: every scheduler, with relays and without, verified on the whole network."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import connected

import collc
from collc.ir.collective import KINDS, ROOTED, Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes import PASSES
from collc.passes.lowering.lower import Lower
from collc.passes.program.participants import participants, participating
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.groups.applied import member_network, scheduled
from collc.passes.synthesis.groups.relays import relays_of

SCHEDULERS = ("forest", "bfb", "flow", "bine", "rabenseifner", "swing", "ring", "recursive-doubling", "pat", "bucket")


def problem(topology: Topology, kind: str, members: tuple[int, ...], relays: str = "auto") -> Problem:
    root = members[-1] if kind in ROOTED else None
    return Problem(topology, Collective(kind, topology.num_ranks, root, members=members), relays)  # type: ignore[arg-type]


def checked(scheduler: str, ir: Problem) -> Scheduled | None:
    """Return a schedule whose execution, text and program are right; None if the scheduler refuses."""
    try:
        level = scheduled(PASSES.load(scheduler)(), ir)
    except CollcError:
        return None
    assert isinstance(level, Schedule | Forest)
    assert level.topology is ir.topology
    assert level.collective == ir.collective
    assert verify(level).ok, verify(level)
    assert parse_ir(print_ir(level)) == level
    found = cost(level)
    assert found.time_per_byte >= bound(ir.topology, ir.collective).value
    program = Lower().run(Discretize().run(level.to_steps() if isinstance(level, Forest) else level))
    for one in (program, participating(program)):
        assert verify(one).ok, verify(one)
    assert participating(program).num_ranks == len(participants(program))
    return level


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_relays_or_refuses(scheduler: str, kind: str) -> None:
    for name, members in (("biring(6)", (0, 1, 3)), ("uniring(5)", (0, 2)), ("dgx_a100(2)", (1, 8, 9))):
        checked(scheduler, problem(collc.topology(name), kind, members))


@settings(max_examples=examples(10), deadline=None)
@given(connected(2), st.data())
def test_trees_of_members_meet_the_cut_or_exceed_it(topology: Topology, data: st.DataObject) -> None:
    members = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_ranks - 1), min_size=2))))
    for kind in ("allgather", "reduce-scatter", "allreduce", "broadcast"):
        level = checked("forest", problem(topology, kind, members))
        never = checked("forest", problem(topology, kind, members, "never"))
        if never is not None:
            assert not relays_of(never)
            assert level is not None
            assert cost(level).time_per_byte <= cost(never).time_per_byte


def test_relays_only_where_they_take_less_time() -> None:
    boxes = collc.topology("dgx_a100(2)")
    near = checked("forest", problem(boxes, "allgather", tuple(range(8))))
    assert near is not None and relays_of(near) == ()
    far = checked("forest", problem(boxes, "allgather", (0, 8)))
    assert far is not None and relays_of(far) == (*range(1, 8), *range(9, 16))
    alone = checked("forest", problem(boxes, "allgather", (0, 8), "never"))
    assert alone is not None and relays_of(alone) == ()
    assert cost(alone).time_per_byte == 8 * cost(far).time_per_byte


def test_a_schedule_without_the_hop_to_a_relay_is_wrong() -> None:
    level = checked("flow", problem(collc.topology("biring(6)"), "alltoall", (0, 2, 4)))
    assert isinstance(level, Schedule)
    wrong = [row for row in range(len(level)) if verify(level.rows([r for r in range(len(level)) if r != row])).ok]  # type: ignore[arg-type]
    assert wrong == []


def test_a_relay_receives_a_tree_once() -> None:
    """Two children of one parent behind one relay: the relay receives their data once."""
    star = Topology.from_links("star", 4, [(a, b) for leaf in range(1, 4) for a, b in ((0, leaf), (leaf, 0))])
    level = checked("forest", problem(star, "broadcast", (1, 2, 3)))
    assert isinstance(level, Forest)
    assert cost(level).time_per_byte == 1


def test_one_member_moves_nothing() -> None:
    for scheduler in ("forest", "bfb"):
        level = checked(scheduler, problem(collc.topology("biring(6)"), "allgather", (3,)))
        assert level is not None and cost(level).time_per_byte == 0


@pytest.mark.parametrize(("scheduler", "relays", "code"), [("bfb", "auto", "C0567"), ("forest", "never", "C0301")])
def test_members_that_need_relays(scheduler: str, relays: str, code: str) -> None:
    with pytest.raises(CollcError) as caught:
        scheduled(PASSES.load(scheduler)(), problem(collc.topology("biring(6)"), "allgather", (0, 2, 4), relays))
    assert caught.value.diagnostics[0].code == code


def test_two_values_in_a_relay_are_refused() -> None:
    with pytest.raises(CollcError) as caught:
        scheduled(PASSES.load("recursive-doubling")(), problem(collc.topology("torus(3, 3)"), "allreduce", (0, 1, 5)))
    assert caught.value.diagnostics[0].code == "C0566"


def test_the_network_of_members_is_that_of_the_greater_bandwidth() -> None:
    boxes = collc.topology("dgx_a100(2)")
    assert member_network(problem(boxes, "allgather", (0, 8))).topology.num_switches == 17
    assert member_network(problem(boxes, "allgather", tuple(range(8)))).topology.num_switches == 2
    plain = Problem(boxes, Collective("allgather", 16))
    assert member_network(plain) is plain
    assert attrs.evolve(plain) == plain
