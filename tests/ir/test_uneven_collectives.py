"""Collectives whose shards differ in size, that some ranks are members of, or that have conditions of their own."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.ir.collective import CUSTOM, KINDS, ROOTED, UNEVEN, Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower


def by_ring(collective: Collective, topology: Topology) -> Schedule:
    """Send every shard around a ring of the members, link by link, until all who need it have it."""
    n = collective.num_ranks
    rows = []
    for shard, rank in enumerate(collective.holders.tolist()):
        targets = [t for t in range(n) if collective.wants(t, shard) and t != rank]
        far = max(((t - rank) % n for t in targets), default=0)
        rows += [(k, shard, (rank + k) % n) for k in range(far)]
    rows.sort()
    link = {int(topology.src[i]): i for i in range(topology.num_links)}
    return Schedule(
        topology, collective, 1, step=[k for k, _, _ in rows], action=[0] * len(rows), shard=[s for _, s, _ in rows],
        lo=[0] * len(rows), hi=[1] * len(rows), route=[link[r] for _, _, r in rows], discrete=True,
    )  # fmt: skip


def checked(collective: Collective) -> tuple[Schedule, Program]:
    """Return the verified ring schedule and its verified program; both are equal to what their texts say."""
    schedule = by_ring(collective, collc.topology(f"uniring({collective.num_ranks})"))
    program = Lower().run(schedule)
    for level in (schedule, program):
        report = verify(level)
        assert report.ok, report
        assert parse_ir(print_ir(level)) == level
    return schedule, program


copying = st.sampled_from([kind for kind in UNEVEN if kind != "reduce-scatter"])


@given(st.data(), copying, st.integers(2, 5))
def test_members_and_weights_are_verified_and_costed(data: st.DataObject, kind: str, ranks: int) -> None:
    members = tuple(sorted(data.draw(st.sets(st.integers(0, ranks - 1), min_size=1))))
    plain = Collective(
        kind, ranks, data.draw(st.sampled_from(members)) if kind in ROOTED else None,
        members=None if len(members) == ranks else members,
    )  # fmt: skip
    shards = st.lists(st.integers(0, 9), min_size=plain.num_shards, max_size=plain.num_shards)
    weights = tuple(data.draw(shards.filter(any)))
    collective = attrs.evolve(plain, weights=weights)
    schedule, _ = checked(collective)
    moved = [0] * (max(schedule.step.tolist(), default=-1) + 1)
    for step in range(len(moved)):
        rows = [i for i in range(len(schedule)) if schedule.step[i] == step]
        moved[step] = max(sum(weights[schedule.shard[i]] for i in rows if schedule.route[i] == r) for r in range(ranks))
    assert sum((Fraction(most, collective.whole) for most in moved), Fraction(0)) == schedule_time(schedule)
    assert schedule.vector == collective.whole


def schedule_time(schedule: Schedule) -> Fraction:
    """Return the time per byte as the cost model computes it."""
    from collc.passes.schedule.step_times import time_per_byte

    return time_per_byte(schedule)


@given(st.data(), st.integers(2, 4))
def test_any_conditions_are_verified(data: st.DataObject, ranks: int) -> None:
    rank = st.integers(0, ranks - 1)
    pairs = data.draw(st.lists(st.tuples(rank, st.sets(rank)), min_size=1, max_size=6))
    pre, post = tuple(a for a, _ in pairs), tuple(tuple(sorted(b)) for _, b in pairs)
    _, program = checked(Collective(CUSTOM, ranks, pre=pre, post=post))
    for r in range(ranks):
        assert program.input_chunks(r) == pre.count(r)
        assert program.output_chunks(r) == sum(r in after for after in post)


def test_an_even_weight_costs_as_none() -> None:
    ring = collc.topology("uniring(4)")
    for kind in ("allgather", "alltoall"):
        plain = Collective(kind, 4)
        same = attrs.evolve(plain, weights=(3,) * plain.num_shards)
        assert schedule_time(by_ring(same, ring)) == cost(by_ring(plain, ring)).time_per_byte


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_shard_of_a_member_is_found(kind: str) -> None:
    if Collective(kind, 4, 0 if kind in ROOTED else None).reduces:
        return
    collective = Collective(kind, 4, 1 if kind in ROOTED else None, members=(1, 3))
    schedule = by_ring(collective, collc.topology("uniring(4)"))
    assert verify(schedule).ok
    for row in range(len(schedule)):
        keep = [i for i in range(len(schedule)) if i != row]
        assert not verify(schedule.rows(keep)).ok  # type: ignore[arg-type]  # row numbers


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"kind": "allgather", "members": (0, 0)}, "C0215"), ({"kind": "allgather", "members": ()}, "C0215"),
        ({"kind": "allgather", "members": (1, 4)}, "C0215"), ({"kind": "allgather", "members": (2, 1)}, "C0215"),
        ({"kind": "broadcast", "root": 0, "members": (1, 2)}, "C0215"),
        ({"kind": CUSTOM}, "C0216"), ({"kind": "allgather", "pre": (0,), "post": ((1,),)}, "C0216"),
        ({"kind": CUSTOM, "pre": (0, 1), "post": ((1,),)}, "C0216"),
        ({"kind": CUSTOM, "pre": (0,), "post": ((4,),)}, "C0216"),
        ({"kind": "allgather", "weights": (1, 2, 3)}, "C0217"), ({"kind": "allreduce", "weights": (1,) * 4}, "C0217"),
        ({"kind": "allgather", "weights": (0,) * 4}, "C0217"), ({"kind": "gather", "root": 1, "weights": (-1, 1, 1, 1)},
                                                                "C0217"),
        ({"kind": "alltoall", "weights": (1,) * 4}, "C0217"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(fields: dict[str, object], code: str) -> None:
    with pytest.raises(CollcError) as caught:
        Collective(num_ranks=4, **fields)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == code
