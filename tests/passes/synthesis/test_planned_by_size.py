"""A scheduler whose schedule depends on the size says so; tables of times by size rely on it."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest

from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass, Topology
from collc.passes import SCHEDULERS
from collc.passes.base import Pass
from collc.registry.classes import pass_class

#: ranks in a ring, with slow links besides: breadth-first balance depends on the size
UNEQUAL = Topology.from_links("unequal", 4, [
    (a, (a + step) % 4, LinkClass(Fraction(width), Fraction(late, 10**6)))
    for step, width, late in ((1, 1, 1), (-1, 1, 1), (1, 4, 30)) for a in range(4)
])  # fmt: skip
NETS = (*map(coll.topology, ("torus(3, 3)", "torus(2, 4)", "dgx_a100(1)", "line(biring(4), 1)")), UNEQUAL)
#: the programs of other networks take seconds
BOXES = (coll.topology("dgx_a100(2)"),)
FEW = {
    "exact": NETS[-1:], "flow": NETS[:1], "two-level": BOXES, "two-tier": BOXES, "box-trees": BOXES,
    "nccl-rings": NETS[:3],
}  # fmt: skip
KINDS = ("allreduce", "allgather", "broadcast", "alltoall")
NAMES = [name for name, one in SCHEDULERS.own.items() if name not in ("auto", "steps")]


def problem(net: Topology, kind: str, size: int) -> Problem:
    root = 0 if kind == "broadcast" else None
    return Problem(net, Collective(kind, net.num_ranks, root, size=size))


def compared(scheduler: Pass, net: Topology, kind: str) -> tuple[bool, bool]:
    """Return whether schedules for 32 bytes and 64 MiB are equal, and whether the scheduler says that they may differ.

    Also what it sends must be known with what the ranks add.
    """
    small, large = problem(net, kind, 32), problem(net, kind, 64 << 20)
    first, second = scheduler.run(small), scheduler.run(large)
    sent = scheduler.messages(large)
    assert sent is None or sent.reduced is not None
    if isinstance(second, SymmetricSchedule):
        second = attrs.evolve(second, seed=attrs.evolve(second.seed, collective=small.collective))
    else:
        second = attrs.evolve(second, collective=small.collective)
    if scheduler.plans_by_size(large) and isinstance(first, Forest):
        assert scheduler.resized(small, scheduler.run(large)) == first  # type: ignore[arg-type]  # a forest
    return first == second, scheduler.plans_by_size(large)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_schedule_that_depends_on_the_size_is_planned_by_size(name: str) -> None:
    scheduler, tried = pass_class(name)(), 0
    for net in FEW.get(name, NETS):
        for kind in KINDS:
            try:
                equal, says = compared(scheduler, net, kind)
            except CollcError:
                continue
            assert equal or says, f"{name} on {net.name}: {kind}"
            tried += 1
    assert tried


def test_a_scheduler_that_does_not_say_so_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, net in (("double-binary-tree", NETS[0]), ("bfb", UNEQUAL)):
        scheduler = pass_class(name)
        assert compared(scheduler(), net, "allreduce") == (False, True)
        monkeypatch.setattr(scheduler, "plans_by_size", Pass.plans_by_size)
        assert compared(scheduler(), net, "allreduce") == (False, False)
