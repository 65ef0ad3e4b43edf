"""Schedules written by hand: what ``using steps { .. }`` becomes, which routes it takes, what it costs to read."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import topologies

from collc.frontends import coll
from collc.frontends.coll.routing import Router
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.topology import LinkClass, Topology
from collc.ir.validate import structure
from collc.ir.verify import verify_schedule


def steps(net: str, kind: str, body: str, declarations: str = "", **more: object) -> Schedule:
    """Return the schedule that a body describes for a collective on a topology (an expression or a body in braces)."""
    head = f"topology net {net}" if net.startswith("{") else f"topology net = {net};"
    text = f"{declarations} {head} collective c = {kind}; schedule c using steps {{ {body} }}"
    schedule = coll.load("<test>", text=text, **more).collectives["c"].schedule.schedule  # type: ignore[arg-type]
    assert isinstance(schedule, Schedule) and structure(schedule) == [] and schedule.scheduler == "steps"
    return schedule


def transfers(schedule: Schedule) -> list[tuple[int, str, int, tuple[Fraction, Fraction], int, int]]:
    """Return (step, action, shard, interval, from, to) for every row."""
    return [
        (
            int(s),
            Action(a).name,
            int(k),
            (Fraction(int(lo), schedule.parts), Fraction(int(hi), schedule.parts)),
            int(x),
            int(y),
        )
        for s, a, k, lo, hi, x, y in zip(
            schedule.step,
            schedule.action,
            schedule.shard,
            schedule.lo,
            schedule.hi,
            schedule.src,
            schedule.dst,
            strict=True,
        )
    ]


RING = "for s in 0..n-1, r in 0..n { at s: send shard (r - s) mod n from r to (r + 1) mod n; }"
RING_ALLREDUCE = """
  for s in 0..n-1, r in 0..n { at s: reduce shard (r - s) mod n from r to (r + 1) mod n; }
  for s in 0..n-1, r in 0..n { at n - 1 + s: send shard (r - s + 1) mod n from r to (r + 1) mod n; }
"""


# ---- algorithms of the textbooks, verified


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_ring_allgather_is_correct(n: int) -> None:
    schedule = steps(f"uniring({n})", "allgather on net", f"let n = ranks(net); {RING}")
    assert (len(schedule), schedule.num_steps, schedule.parts) == (n * (n - 1), n - 1, 1)
    assert verify_schedule(schedule).ok


def test_a_wrong_ring_is_read_and_then_refused_by_the_verifier() -> None:
    wrong = steps("uniring(4)", "allgather on net", f"let n = 4; {RING.replace('r - s', 'r + s')}")
    assert len(wrong) == 12 and not verify_schedule(wrong).ok


def test_the_ring_allreduce_is_correct() -> None:
    schedule = steps("biring(5)", "allreduce on net", f"let n = ranks(net); {RING_ALLREDUCE}")
    assert verify_schedule(schedule).ok and schedule.num_steps == 8


def test_recursive_doubling_is_correct_on_the_hypercube() -> None:
    body = """for s in 0..log2(n), r in 0..n, k in 0..n {
      let reach = pow(2, s);
      if floor(k / reach) == floor(r / reach) { at s: send shard k from r to xor(r, reach); }
    }"""
    schedule = steps("hypercube(3)", "allgather on net", f"let n = ranks(net); {body}")
    assert verify_schedule(schedule).ok and (schedule.num_steps, len(schedule)) == (3, 8 * 7)


def test_an_alltoall_numbers_its_shards_by_source_and_target() -> None:
    body = "for a in 0..4, b in 0..4 { if a != b { at 0: send shard a * 4 + b from a to b; } }"
    assert verify_schedule(steps("complete(4)", "alltoall on net", body)).ok


def test_rooted_collectives_send_shards_of_the_root() -> None:
    body = "at 0 { for r in 1..4, k in 0..4 { send shard k from 0 to r; } }"
    assert verify_schedule(steps("complete(4)", "broadcast on net { root: 0 }", body)).ok


# ---- rows


def test_transfers_are_sorted_by_step_and_stand_as_written_within_one() -> None:
    body = """
      at 3: send shard 1 from 1 to 0;
      at 0 { send shard 0 from 0 to 1; reduce shard 2 from 2 to 1; }
      at 3: reduce shard 0 from 2 to 0;
    """
    whole = (Fraction(0), Fraction(1))
    assert transfers(steps("complete(3)", "allreduce on net", body)) == [
        (0, "COPY", 0, whole, 0, 1), (0, "REDUCE", 2, whole, 2, 1),
        (1, "COPY", 1, whole, 1, 0), (1, "REDUCE", 0, whole, 2, 0),
    ]  # fmt: skip


def test_parts_of_all_cuts_have_one_denominator() -> None:
    body = """
      at 0: send shard 0 part 1 of 2 from 0 to 1;
      at 0: send shard 0 part 2 of 3 from 0 to 1;
      at 1: send shard 1 from 1 to 0;
    """
    schedule = steps("complete(2)", "allgather on net", body)
    assert schedule.parts == 6 and not schedule.discrete
    assert [row[3] for row in transfers(schedule)] == [
        (Fraction(1, 2), Fraction(1)), (Fraction(2, 3), Fraction(1)), (Fraction(0), Fraction(1)),
    ]  # fmt: skip


def test_step_numbers_only_order_transfers() -> None:
    body = "at 7: send shard 1 from 1 to 0; at 1000000000000: send shard 0 from 0 to 1;"
    assert steps("complete(2)", "allgather on net", body).step.tolist() == [0, 1]


def test_no_transfers_are_a_schedule_too() -> None:
    schedule = steps("complete(2)", "allgather on net", "for s in 3..3 { at s: send shard 0 from 0 to 1; }")
    assert (len(schedule), schedule.num_steps, schedule.parts) == (0, 0, 1)


def test_ranks_may_be_named_in_steps() -> None:
    net = "{ rank gpu[2, 2], last; link gpu[0, 1] -> last; link last -> gpu[1, 0]; }"
    body = "let g = 1; at 0: send shard 1 from gpu[0, g] to last; at 1: send shard 1 from 4 to gpu[1, g - 1];"
    assert [row[4:] for row in transfers(steps(net, "allgather on net", body))] == [(1, 4), (4, 2)]


def test_loops_see_names_of_the_file_and_of_loops_around() -> None:
    body = """for a in {0, 2}, b in a..a+2 {
      let c = a + b;
      if c > k { at b: send shard c mod 4 from b mod 4 to (b + 1) mod 4; }
    }"""
    schedule = steps("biring(4)", "allgather on net", body, declarations="param k = 1;")
    assert [row[:1] + row[2:3] for row in transfers(schedule)] == [(0, 0), (1, 1)]
    assert len(steps("biring(4)", "allgather on net", body, declarations="param k = 1;", params={"k": "0"})) == 3


# ---- routes


def test_parallel_links_share_the_load_of_a_step() -> None:
    """Two links each way: transfers of one step alternate, and each step begins anew."""
    body = "for s in 0..2, i in 0..4 { at s: send shard 0 part i of 4 from 0 to 1; } at 2: send shard 0 from 0 to 1;"
    schedule = steps("torus(2)", "allgather on net", body)
    assert schedule.route.tolist() == [0, 1, 0, 1] * 2 + [0]
    assert schedule.routes == Routes.direct(4)


def test_parallel_links_are_loaded_by_their_bandwidth() -> None:
    """A link of three units takes three parts of four."""
    net = "{ rank a, b; link a -> b : 1; link a -> b : 3; link b -> a; }"
    schedule = steps(net, "allgather on net", "for i in 0..4 { at 0: send shard 0 part i of 4 from a to b; }")
    assert sorted(schedule.route.tolist()) == [0, 1, 1, 1] and schedule.route[0] == 1


def test_routes_take_the_fewest_links_through_switches_and_spread() -> None:
    """Two leaves, two spines: the routes between leaves alternate; within a leaf only the leaf is used."""
    net = """{ rank g[4]; switch leaf[2], spine[2];
      for i in 0..4 { link g[i] <-> leaf[floor(i / 2)]; }
      for l in 0..2, s in 0..2 { link leaf[l] <-> spine[s]; } }"""
    schedule = steps(
        net,
        "allgather on net",
        "at 0 { send shard 0 from 0 to 2; send shard 1 from 1 to 3; send shard 0 from 0 to 1; }",
    )
    names, topology = schedule.topology.names, schedule.topology
    routes = [
        [names[topology.dst[link]] for link in schedule.routes.links_of(route)] for route in schedule.route.tolist()
    ]  # fmt: skip
    assert routes == [
        ["leaf[0]", "spine[0]", "leaf[1]", "g[2]"],
        ["leaf[0]", "spine[1]", "leaf[1]", "g[3]"],
        ["leaf[0]", "g[1]"],
    ]


def test_a_link_is_shorter_than_a_way_through_a_switch_and_ranks_are_no_switches() -> None:
    net = "{ rank a, b, c; switch s; link a <-> s; link b <-> s; link a -> b; link b -> c; }"
    schedule = steps(net, "allgather on net", "at 0: send shard 0 from a to b; at 0: send shard 1 from b to a;")
    assert [len(schedule.routes.links_of(r)) for r in schedule.route.tolist()] == [1, 2]
    with pytest.raises(CollcError, match="no route from rank a to rank c"):
        steps(net, "allgather on net", "at 0: send shard 0 from a to c;")


def _routes(net: Topology, source: int, target: int) -> list[tuple[int, ...]]:
    """Return all routes from rank to rank with the fewest links, none through a rank, by trying all."""
    routes: list[tuple[int, ...]] = [(link,) for link in range(net.num_links) if net.src[link] == source]
    for _ in range(net.num_nodes):
        done = [way for way in routes if net.dst[way[-1]] == target]
        if done:
            return done
        routes = [
            (*way, link) for way in routes if net.dst[way[-1]] >= net.num_ranks
            for link in range(net.num_links) if net.src[link] == net.dst[way[-1]] and link not in way
        ]  # fmt: skip
    return []


@given(topologies(max_ranks=4, max_switches=3, max_links=12), st.data())
def test_routes_are_shortest_ways_and_exist_where_any_does(net: Topology, data: st.DataObject) -> None:
    router = Router(net)
    for _ in range(4):
        source, target = data.draw(st.integers(0, net.num_ranks - 1)), data.draw(st.integers(0, net.num_ranks - 1))
        if source == target:
            continue
        routes = _routes(net, source, target)
        if not routes:
            with pytest.raises(CollcError, match="C0160"):
                router.route(0, source, target, 1)
            continue
        route = router.route(data.draw(st.integers(0, 1)), source, target, data.draw(st.integers(1, 3)))
        assert tuple(router.routes.links_of(route)) in routes


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 12))
def test_equal_pieces_over_parallel_links_finish_as_early_as_can_be(speeds: list[int], pieces: int) -> None:
    """Giving each piece to the link that would be done with it first is optimal for equal pieces."""
    kinds = [(0, 1, LinkClass(Fraction(speed))) for speed in speeds]
    router = Router(Topology.from_links("pair", 2, kinds))
    taken = [router.route(0, 0, 1, pieces) for _ in range(pieces)]
    finish = max(Fraction(taken.count(i), speed) for i, speed in enumerate(speeds))
    best = min(
        t
        for t in {Fraction(n, s) for n in range(pieces + 1) for s in speeds}
        if sum(t * s // 1 for s in speeds) >= pieces
    )
    assert finish == best


# ---- limits and speed


def test_reading_eight_thousand_transfers_is_quick() -> None:
    coll.topology("torus(3)")
    began = time.process_time()
    schedule = steps("uniring(64)", "allreduce on net", f"let n = ranks(net); {RING_ALLREDUCE}")
    assert len(schedule) == 2 * 63 * 64 and time.process_time() - began < 0.7


@pytest.mark.parametrize(
    "body",
    [
        "for i in 0..1000000000000000000000000 { at i: send shard 0 from 0 to 1; }",
        "for i in 0..3000 { for j in 0..3000 { at i: send shard 0 from 0 to 1; } }",
        "for i in 0..1000, j in 0..1000, k in 0..1000 { let x = i + j; }",
    ],
)
def test_endless_bodies_are_stopped(body: str) -> None:
    began = time.process_time()
    with pytest.raises(CollcError) as caught:
        steps("complete(2)", "allgather on net", body, node_limit=1000)
    assert [d.code for d in caught.value.diagnostics] == ["C0142"] and time.process_time() - began < 3


def test_a_statement_that_fails_is_reported_once_with_its_variables() -> None:
    body = "for s in 0..1000, r in 0..4 { at s: send shard r from r to r + 1; at s: send shard r from r to nowhere; }"
    with pytest.raises(CollcError) as caught:
        steps("uniring(4)", "allgather on net", body)
    found = [(d.code, d.notes) for d in caught.value.diagnostics]
    assert found == [("C0135", ("with s = 0, r = 3",)), ("C0120", ())]


def test_rows_are_columns_of_numbers() -> None:
    schedule = steps("uniring(8)", "allgather on net", f"let n = 8; {RING}")
    assert all(isinstance(getattr(schedule, c), np.ndarray) for c in Schedule.COLUMNS)
