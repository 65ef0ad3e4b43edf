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
from collc.ir.machine import execute
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


@given(
    connected(), st.sampled_from(["allreduce", "allgather"]), st.sampled_from([2, 9]), st.integers(1, 3),
    st.lists(st.integers(0, 10**6), max_size=2), st.integers(0, 2**20),
)  # fmt: skip
def test_any_order_and_pairs_that_need_no_waiting_are_those_of_the_simulation(
    topology: Topology, kind: str, largest: int, depth: int, exchanged: list[int], chosen: int
) -> None:
    """Also those that no strategy gives: relays that delay others, and orders with instructions exchanged."""
    assume(topology.num_ranks > 1)
    ir = program(topology, kind, largest)
    turns = inverse(execute(ir).finished)
    clashes = conflicts(ir, turns)
    received, sent = (column[::-1] for column in flows(ir, clashes))
    follow = np.full(ir.num_instructions, -1)
    take = np.random.Generator(np.random.PCG64(chosen)).random(len(received)) < 0.5
    follow[received[take]] = sent[take]
    for place in exchanged if len(clashes[0]) else ():
        both = [column[place % len(column)] for column in clashes]
        turns[both] = turns[both[::-1]]
    with pytest.MonkeyPatch.context() as patch:
        watched(patch)
        merging.merge(ir, turns, clashes, follow, np.arange(ir.num_blocks), depth)


@pytest.mark.parametrize("expression", ["biring(24)", "uniring(17)"])
def test_rings_keep_their_order(expression: str, found: list[bool]) -> None:
    Fuse(strategy="flow").run(program(collc.topology(expression)))
    assert found == [True]


def test_an_order_that_is_wrong_or_needs_more_room_is_not_taken() -> None:
    """Planted faults: two instructions of a block exchanged, and a connection that holds nothing."""
    ir = program(one_way_ring(5))
    clashes, follow = (np.zeros(0, dtype=np.int64),) * 2, np.full(ir.num_instructions, -1)
    turns = inverse(execute(ir).finished)
    assert merging._given_order(ir, turns, clashes, follow, 2) is not None
    wrong = turns.copy()
    first, second = np.flatnonzero(ir.block == ir.block[0])[:2]
    wrong[[first, second]] = wrong[[second, first]]
    assert merging._given_order(ir, wrong, clashes, follow, 2) is None
    assert merging._given_order(ir, turns, clashes, follow, 0) is None
