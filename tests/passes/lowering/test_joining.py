"""Messages are joined only where the order of what they add to stays possible."""

from __future__ import annotations

from collc.ir.collective import Collective
from collc.ir.schedule import Routes, Schedule
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower


def test_a_joined_message_does_not_add_before_the_first_one_is_stored() -> None:
    """Part 1 of shard 0 of rank 2 arrives between two messages of rank 1, whose routes stand before and after its."""
    net = Topology.from_links("net", 3, [(1, 0), (2, 0), (0, 1), (0, 2)])
    routes = Routes.of([[0], [1], [0]])
    rows = [
        (0, 0, 0, 1, 1),  # step, shard, lo, hi, route
        (1, 0, 0, 1, 0), (1, 0, 1, 2, 1), (1, 0, 1, 2, 2),
        (2, 1, 0, 2, 0), (2, 1, 0, 2, 1), (2, 2, 0, 2, 0), (2, 2, 0, 2, 1),
    ]  # fmt: skip
    step, shard, lo, hi, route = zip(*rows, strict=True)
    schedule = Schedule(
        net, Collective("reduce", 3, 0), 2, step=step, action=[1] * len(rows), shard=shard, lo=lo, hi=hi, route=route,
        routes=routes, discrete=True,
    )  # fmt: skip
    assert verify(schedule).ok
    for join in (False, True):
        report = verify(Lower(join=join).run(schedule))
        assert report.ok, report.failed
