"""The order of joined threadblocks: where nothing has to wait it is checked by columns, else it is simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nets import complete, hypercube, one_way_ring, torus
from strategies import connected

import collc
from collc.ir.collective import Collective
from collc.ir.machine import execute, partners
from collc.ir.program import Program
from collc.ir.ragged import inverse
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.analysis.hazards import conflicts
from collc.passes.lowering.lower import Lower
from collc.passes.program import merging
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.fuse import Fuse
from collc.passes.program.pairing import flows
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB


def program(topology: Topology, kind: str = "allreduce", largest: int = 2) -> Program:
    """Return the program of a schedule, in messages of at most ``largest`` chunks."""
    collective = Collective(kind, topology.num_ranks)
    lowered = Lower().run(Discretize().run(BFB().run(Problem(topology, collective))))
    made = BalanceThreadblocks(channels=2, max_count=largest).run(Coalesce().run(lowered))
    assert isinstance(made, Program)
    return made


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watched(monkeypatch)


def watched(patch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether each program's own order was taken: the simulation gives the same, with all pairs and blocks."""
    own, taken = merging._given_order, []

    def checked(
        ir: Program, order: np.ndarray, clashes: tuple[np.ndarray, np.ndarray], follow: np.ndarray, depth: int
    ) -> np.ndarray | None:
        order_of_all = own(ir, order, clashes, follow, depth)
        taken.append(order_of_all is not None)
        if order_of_all is not None:
            for host in (np.arange(ir.num_blocks), ir.rank_blocks[ir.block_rank].astype(np.int64)):
                simulation = merging._Simulation(ir, order, clashes, follow, host, depth)
                assert simulation.run()
                assert simulation.done == order_of_all.tolist()
                assert (np.array(simulation.follow) == follow).all() and (np.array(simulation.host) == host).all()
        return order_of_all

    patch.setattr(merging, "_order_by_time", lambda *_: None)
    patch.setattr(merging, "_given_order", checked)
    return taken


@pytest.mark.parametrize("depth", [1, 2, 8])
@pytest.mark.parametrize("strategy", ["flow", "few"])
@pytest.mark.parametrize("topology", [torus(3, 3), torus(2, 4), complete(5), hypercube(3), one_way_ring(7)])
def test_an_order_without_waits_is_that_of_the_simulation(
    topology: Topology, strategy: str, depth: int, found: list[bool]
) -> None:
    fuse = Fuse(strategy=strategy, fifo_depth=depth)  # type: ignore[arg-type]
    for kind in ("allreduce", "allgather"):
        fuse.run(program(topology, kind))
    assert found


@given(connected(), st.sampled_from(["allreduce", "allgather"]), st.sampled_from([2, 9]), st.sampled_from([1, 2, 50]))
def test_any_pairs_that_need_no_waiting_have_the_order_of_the_simulation(
    topology: Topology, kind: str, largest: int, depth: int
) -> None:
    """Also relays that delay others, which no strategy fuses: one by one, and all of them."""
    assume(topology.num_ranks > 1)
    ir = program(topology, kind, largest)
    turns = inverse(execute(ir).finished)
    clashes = conflicts(ir, turns)
    received, sent = (column[::-1] for column in flows(ir, clashes))
    everyone = np.arange(len(received))
    with pytest.MonkeyPatch.context() as patch:
        watched(patch)
        for chosen in (everyone[:0], everyone, *everyone[:20, None]):
            follow = np.full(ir.num_instructions, -1)
            follow[received[chosen]] = sent[chosen]
            merging.merge(ir, None, lambda: turns, clashes, follow, np.arange(ir.num_blocks), depth)


@pytest.mark.parametrize("topology", [torus(3, 3), hypercube(3), one_way_ring(5)])
def test_no_order_is_taken_in_which_something_comes_too_early(topology: Topology) -> None:
    """Planted faults: each instruction before each that it waits for, in its threadblock, for data or for its peer."""
    ir = program(topology, "allreduce")
    turns = inverse(execute(ir).finished)
    clashes = conflicts(ir, turns)
    follow = np.full(ir.num_instructions, -1)
    assert merging._given_order(ir, turns, clashes, follow, 50) is not None
    before, after = merging._edges(ir, clashes, partners(ir))
    kinds = np.select([ir.block[before] == ir.block[after], ir.rank[before] == ir.rank[after]], [0, 1], 2)
    assert {0, 1, 2} == set(kinds.tolist())
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        wrong = turns.copy()
        wrong[(turns >= turns[one]) & (turns < turns[other])] += 1
        wrong[other] = turns[one]
        assert merging._given_order(ir, wrong, clashes, follow, 50) is None


@pytest.mark.parametrize("depth", [1, 2, 8])
@pytest.mark.parametrize(
    "expression", ["biring(24)", "biring(9)", "uniring(17)", "torus(3, 3)", "complete(5)", "torus(12)"]
)
def test_times_decide_as_places_do(expression: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_time, taken = merging._order_by_time, []
    ir = program(collc.topology(expression))
    for strategy in ("flow", "few"):
        fuse = Fuse(strategy=strategy, fifo_depth=depth)  # type: ignore[arg-type]
        monkeypatch.setattr(merging, "_order_by_time", lambda *_: None)
        due = fuse.run(ir)
        monkeypatch.setattr(merging, "_order_by_time", lambda *given: taken.append(by_time(*given)) or taken[-1])
        assert fuse.run(ir) == due
    assert taken and (taken[0] is not None or depth == 1 or expression not in ("biring(24)", "uniring(17)"))


@given(connected(), st.sampled_from(["flow", "few"]), st.integers(1, 3))
def test_times_decide_as_places_do_on_random_networks(topology: Topology, strategy: str, depth: int) -> None:
    assume(topology.num_ranks > 1)
    ir, fuse = program(topology), Fuse(strategy=strategy, fifo_depth=depth)  # type: ignore[arg-type]
    found = fuse.run(ir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_order_by_time", lambda *_: None)
        assert fuse.run(ir) == found


@pytest.mark.parametrize("expression", ["biring(24)", "uniring(17)"])
def test_rings_keep_their_order(expression: str, found: list[bool]) -> None:
    Fuse(strategy="flow").run(program(collc.topology(expression)))
    assert found == [True]


def test_times_do_not_decide_where_two_are_equal() -> None:
    """Planted faults: of two instructions, one of which waits for the other; of two of a joined threadblock."""
    ir = program(one_way_ring(5))
    due, host = inverse(execute(ir).finished), np.arange(ir.num_blocks)
    clashes, follow = conflicts(ir, due), np.full(ir.num_instructions, -1)
    assert merging._order_by_time(ir, due, clashes, follow, host, 50) is not None
    for one, other in zip(*merging._edges(ir, clashes, partners(ir)), strict=True):
        level = np.where(due == due[one], due[other], due)
        assert merging._order_by_time(ir, level, clashes, follow, host, 50) is None
    at, level, none = np.flatnonzero(ir.rank == 0), due.copy(), (np.zeros(0, dtype=np.int64),) * 2
    one, other = at[ir.block[at] == ir.block[at[0]]][0], at[ir.block[at] != ir.block[at[0]]][0]
    level[[one, other]] = -1
    joined = np.where(ir.block_rank == 0, 0, host)
    assert merging._order_by_time(ir, level, none, follow, host, 50) is not None
    assert merging._order_by_time(ir, level, none, follow, joined, 50) is None


def test_no_order_is_taken_that_needs_more_room() -> None:
    ir = program(one_way_ring(5))
    clashes, follow = (np.zeros(0, dtype=np.int64),) * 2, np.full(ir.num_instructions, -1)
    turns = inverse(execute(ir).finished)
    assert merging._given_order(ir, turns, clashes, follow, 2) is not None
    assert merging._given_order(ir, turns, clashes, follow, 0) is None
