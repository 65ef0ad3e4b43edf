"""The algorithms that Swing is compared with: right on every network they take, as congested as theory says."""

from __future__ import annotations

from fractions import Fraction as F
from importlib import import_module
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import every, examples
from torus_checks import all_parts, congestion, problem, scatter_rows, shapes, wrong

from collc.backends.interpreter import reference, run
from collc.frontends.coll import topology
from collc.frontends.coll.families.cayley import biring, complete, hypercube, shifted_ring, torus, uniring
from collc.ir.costs.cost import cost
from collc.ir.costs.messages import Messages
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Action
from collc.ir.topology import Topology
from collc.ir.verify import verify_program, verify_schedule
from collc.passes import PASSES, SCHEDULERS
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.cycles import one_cycle, two_cycles
from collc.passes.synthesis.torus.doubling import Rabenseifner, RecursiveDoubling
from collc.passes.synthesis.torus.lines import Line, ring_line, short_ring_line
from collc.passes.synthesis.torus.pat import PAT
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.trivance import Trivance

ALL = (
    Swing(), Swing(variant="latency"), Swing(ports=1), RecursiveDoubling(), RecursiveDoubling(mirrored="neg"),
    RecursiveDoubling(mirrored="reflect"), Rabenseifner(), Rabenseifner(mirrored="neg"),
    Rabenseifner(mirrored="reflect"), Bucket(), Ring(), Ring(schedule="bfb"), Ring(rings=1), Bine(),
    Bine(variant="latency"), Bine(order="halving"), Bine(variant="latency", order="halving"), PAT(), PAT(buffer=1),
    PAT(buffer=3), Trivance(),
)  # fmt: skip
NETS = (
    torus(4), torus(7), torus(2, 2), torus(3, 4), torus(2, 4), torus(3, 3), torus(5, 2), torus(2, 3, 3), biring(9),
    biring(6, 4), shifted_ring(8), complete(6), hypercube(3), uniring(5), uniring(4, 3),
    *map(topology, ("mesh(4, 3)", "hyperx(3, 4)", "fat_tree(2)", "fat_tree(4)", "hammingmesh(2, 2, 2, 1)",
                    "dragonfly(1, 2, 1)", "product(torus(3), complete(2))", "twisted_torus(4, 2)")),
)  # fmt: skip


def root_of(kind: str, ranks: int, root: int = 1) -> int | None:
    return root % ranks if kind in ("broadcast", "reduce", "gather", "scatter") else None


def kinds_of(algorithm: TorusPass) -> tuple[str, ...]:
    return ("allreduce",) if getattr(algorithm, "variant", "") == "latency" else algorithm.kinds


def code(algorithm: TorusPass, net: Topology, kind: str = "allreduce") -> str:
    with pytest.raises(CollcError) as caught:
        algorithm.run(problem(net, kind))
    return caught.value.diagnostics[0].code


# ---- right


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS, ids=lambda net: f"{net.name}-{net.num_ranks}")
def test_schedules_execute_and_cost_what_their_messages_do(net: Topology) -> None:
    for algorithm in ALL:
        for kind in kinds_of(algorithm):
            asked = problem(net, kind, root_of(kind, net.num_ranks, 3))
            schedule, messages = algorithm.run(asked), algorithm.messages(asked)
            report = verify_schedule(schedule)
            assert report.ok, (algorithm, kind, report.failed)
            assert schedule.scheduler == algorithm.name
            assert messages.num_steps == schedule.num_steps
            assert messages.time_per_byte == Messages.of(schedule).time_per_byte == cost(schedule).time_per_byte


@pytest.mark.slow
def test_every_block_moves_once_on_every_shape() -> None:
    scattered = (Rabenseifner(), Rabenseifner(mirrored="neg"), Rabenseifner(mirrored="reflect"), Bucket(), Trivance())
    chosen = shapes()[::6]
    for algorithm in (*scattered, Ring(), Ring(schedule="bfb"), Bine(), Bine(order="halving"), PAT(), PAT(buffer=4)):
        for shape in chosen:
            ranks, folds = int(np.prod(shape)), any(size & size - 1 for size in shape)
            for part in all_parts(algorithm, shape)[:4]:
                rows = scatter_rows(part)
                if not (algorithm.name == "rabenseifner" and folds):
                    assert wrong(ranks, rows) is None, (algorithm, shape)
                else:  # a folded block comes home at the end: its owner sends all others, and it is sent once more
                    assert len(rows[0]) == ranks * (ranks - 1)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 6, 7, 8, 9, 12])
def test_programs_compute_the_collective(ranks: int) -> None:
    shape = {4: (2, 2), 6: (2, 3), 8: (2, 4), 9: (3, 3), 12: (3, 4)}.get(ranks, (ranks,))
    tried = [(algorithm, kind) for algorithm in ALL for kind in kinds_of(algorithm)]
    for algorithm, kind in every(3, tried, ranks):
        asked = problem(torus(*shape), kind, root_of(kind, ranks))
        program = Lower().run(Discretize().run(algorithm.run(asked)))
        report = verify_program(program)
        assert report.ok, (algorithm, kind, report.failed)
        c, rng = program.collective, np.random.default_rng(ranks)
        holds = [(c.input_slots(r, np.arange(ranks)) >= 0).any() for r in range(ranks)]
        blocks = 1 if kind in ("allreduce", "reduce", "broadcast") else c.input_shards
        inputs = [rng.integers(0, 99, 13 * blocks) if has else None for has in holds]
        for found, wanted in zip(run(program, inputs), reference(c, inputs), strict=True):
            assert np.array_equal(found, wanted), (algorithm, kind)


def test_a_transfer_less_is_noticed() -> None:
    for algorithm in ALL:
        kind = kinds_of(algorithm)[-1]
        schedule = algorithm.run(problem(torus(3, 3), kind, root_of(kind, 9)))
        rows = np.arange(len(schedule))
        for row in rows[:: max(1, len(rows) // 5)].tolist():
            assert not verify_schedule(schedule.rows(np.delete(rows, row))).ok, (algorithm, row)


def test_all_are_registered() -> None:
    for algorithm in ALL:
        module, name, summary = PASSES[algorithm.name]
        assert getattr(import_module(module), name) is type(algorithm)
        assert SCHEDULERS[algorithm.name].summary == summary == type(algorithm).summary


# ---- congestion of recursive doubling, plain and mirrored: section 2.2 of the notes

TABLE = {  # RD B, RD L, mirrored B neg and refl, mirrored L neg and refl
    (8, 8): (F(39, 8), 20, F(21, 16), F(3, 2), 7, 8),
    (16, 16): (F(87, 16), 44, F(45, 32), F(111, 64), 15, 19),
    (32, 32): (F(183, 32), 92, F(93, 64), F(477, 256), 31, 42),
    (64, 64): (F(375, 64), 188, F(189, 128), F(1977, 1024), 63, 89),
    (8, 8, 8): (F(1722, 256), 45, F(147, 128), F(161, 128), F(21, 2), 12),
    (64, 16): (F(23, 4), 116, F(49, 32), 2, 63, 89),
    (128, 8): (6, 200, F(29, 16), F(637, 256), 127, 184),
    (256, 4): (7, 386, F(21, 8), F(1009, 256), 255, 375),
    (2, 4): (F(5, 2), 5, F(5, 4), F(5, 4), 3, 3),
    (16,): (F(7, 2), 11, 2, F(21, 8), F(15, 2), F(19, 2)),
    (64,): (F(11, 2), 47, 3, F(145, 32), F(63, 2), F(89, 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", TABLE)
def test_table_of_congestion(shape: tuple[int, ...]) -> None:
    plain, plain_l, neg, refl, neg_l, refl_l = TABLE[shape]
    assert congestion(Rabenseifner(), shape) == plain
    assert congestion(RecursiveDoubling(), shape) == plain_l
    for mirror, wide, fast in (("neg", neg, neg_l), ("reflect", refl, refl_l)):
        assert congestion(Rabenseifner(mirrored=mirror), shape) == wide
        assert congestion(RecursiveDoubling(mirrored=mirror), shape) == fast


# ---- bucket and rings


def test_bucket_has_no_congestion_on_squares_and_what_rectangles_must_have() -> None:
    for shape in [(4, 4), (8, 8), (3, 3, 3), (64, 64), (16,), (2, 2, 2, 2)]:
        assert congestion(Bucket(), shape) == 1 - F(1, int(np.prod(shape)))
    for long, short in [(64, 16), (128, 8), (256, 4), (4, 2)]:
        stretch = F(long - 1, long) * (1 + F(1, short))  # every phase lasts as long as the longer dimension takes
        assert congestion(Bucket(), (long, short)) == stretch
        steps = Bucket().messages(problem(torus(long, short))).num_steps
        assert steps == 2 * 2 * (long - 1)


def test_two_cycles_exist_where_the_condition_says_and_share_no_link() -> None:
    for rows in range(2, 13):
        for columns in range(2, 13):
            wide, narrow = max(rows, columns), min(rows, columns)
            found = two_cycles((rows, columns))
            assert (found is not None) == (wide % narrow == 0 and gcd(wide, narrow - 1) == 1)
            if found is None:
                continue
            edges = []
            for cycle in found:
                assert sorted(cycle.tolist()) == list(range(rows * columns))
                at = np.stack(np.unravel_index(cycle, (rows, columns)), axis=1)
                moves = (np.roll(at, -1, axis=0) - at) % (rows, columns)
                assert all(sorted((min(m, s - m) for m, s in zip(move, (rows, columns), strict=True))) == [0, 1]
                           for move in moves.tolist())  # fmt: skip
                edges += [frozenset(pair) for pair in zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True)]
            if narrow > 2:
                assert len(set(edges)) == len(edges) == 2 * rows * columns


@given(st.lists(st.integers(2, 7), min_size=1, max_size=4), st.booleans())
def test_one_cycle_of_any_torus(sizes: list[int], flipped: bool) -> None:
    cycle = one_cycle(tuple(sizes), flipped)
    assert sorted(cycle.tolist()) == list(range(int(np.prod(sizes))))
    at = np.stack(np.unravel_index(cycle, sizes), axis=1)
    moves = (np.roll(at, -1, axis=0) - at) % sizes
    assert (np.minimum(moves, np.array(sizes) - moves).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("net", "share"),
    [
        (torus(8), 2), (torus(4, 4), 4), (torus(8, 2), 4), (torus(3, 4), 2), (torus(3, 3, 3), 2), (biring(6, 4), 4),
        (shifted_ring(8), 4), (uniring(5), 1), (uniring(4, 3), 3), (complete(6), 2), (hypercube(3), 2),
    ],
    ids=lambda value: f"{value.name}-{value.num_ranks}" if isinstance(value, Topology) else str(value),
)  # fmt: skip
def test_rings_use_every_cycle_they_know(net: Topology, share: int) -> None:
    """2 (N - 1) steps, each of 1/N of what one direction of one cycle carries."""
    found = Ring().messages(problem(net))
    assert found.num_steps == 2 * (net.num_ranks - 1)
    assert found.time_per_byte == 2 * F(net.num_ranks - 1, net.num_ranks * share)


@pytest.mark.slow
@pytest.mark.parametrize("m", range(2, 40))
def test_shifted_rings_go_all_the_way_round_or_breadth_first(m: int) -> None:
    """2 (N - 1) and 2 floor(N / 2) steps (figure 14 of the direct-connect paper), both bandwidth-optimal."""
    for ring, steps in ((Ring(), m - 1), (Ring(schedule="bfb"), m // 2)):
        found = ring.messages(problem(shifted_ring(m)))
        assert found.num_steps == 2 * steps and found.time_per_byte * 4 == 2 * F(m - 1, m)
        if m < 14:
            for kind in ring.kinds:
                made = ring.run(problem(shifted_ring(m), kind))
                assert verify_schedule(made).ok
                assert cost(made).time_per_byte == ring.messages(problem(shifted_ring(m), kind)).time_per_byte


@pytest.mark.parametrize("size", range(2, 12))
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("make", [ring_line, short_ring_line])
def test_lines_of_rings_are_those_of_their_tables(make, direction: int, size: int) -> None:
    ring, to = make(size, direction), np.full((size, size), -1)
    for substep in range(ring.substeps):
        a, shard, target = ring.sends(substep)
        assert (ring.when[a, shard] == substep).all() and len(a) == np.count_nonzero(ring.when == substep)
        to[a, shard] = target
    line = Line(ring.substeps, ring.when, to)
    for substep in range(ring.substeps):
        assert np.array_equal(ring.holdings(substep), line.holdings(substep))
        for found, wanted in ((ring.traffic(substep), line.traffic(substep)), (ring.held(substep), line.held(substep))):
            assert sorted(zip(*found, strict=True)) == sorted(zip(*wanted, strict=True))


def test_how_many_rings() -> None:
    for net, auto in ((torus(4, 4), 4), (torus(9, 3), 4), (biring(7, 4), 4), (torus(3, 4), 2), (uniring(4, 3), 3)):
        n = net.num_ranks
        for rings, share in (("auto", auto), (2, min(4, auto)), (1, 2)):
            if rings == 2 and auto == 2:
                assert code(Ring(rings=2), net) == "C0597"
            elif net.name != "uniring":
                made = Ring(rings=rings).run(problem(net))  # type: ignore[arg-type]
                assert verify_schedule(made).ok and cost(made).time_per_byte == 2 * F(n - 1, n * share)
    for net, words in ((torus(6, 4), "here r is 6, c is 4"), (torus(2, 2, 2), "2-D tori"), (uniring(5), "2-D tori")):
        with pytest.raises(CollcError) as caught:
            Ring(rings=2).run(problem(net))
        assert words in caught.value.diagnostics[0].notes[0]


def test_a_ring_through_switches_and_none_at_all() -> None:
    assert verify_schedule(Ring().run(problem(topology("fat_tree(4)")))).ok
    for expression in ("mesh(3, 3)", "debruijn(2, 3)", "mesh(5)"):
        assert code(Ring(), topology(expression)) == "C0595"


# ---- trees


@pytest.mark.parametrize("order", ["doubling", "halving"])
def test_bine_trees_are_logarithmic(order: str) -> None:
    for ranks in (2, 5, 8, 12, 16, 31):
        for kind in ("broadcast", "reduce", "gather", "scatter"):
            schedule = Bine(order=order).run(problem(torus(ranks), kind, ranks // 2))
            assert schedule.num_steps <= (ranks - 1).bit_length()
            if kind == "broadcast":
                assert len(schedule) == ranks * (ranks - 1)  # everyone receives every shard once


def test_a_gather_carries_a_shard_as_far_as_its_rank_is_deep() -> None:
    schedule = Bine().run(problem(torus(8), "gather", 0))
    assert (schedule.action == Action.COPY).all()
    reduced = Bine().run(problem(torus(8), "reduce", 0))
    above = {int(a): int(b) for a, b in zip(reduced.src, reduced.dst, strict=True)}

    def depth(rank: int) -> int:
        return 0 if rank == 0 else 1 + depth(above[rank])

    assert np.bincount(schedule.shard, minlength=8).tolist() == [depth(rank) for rank in range(8)]


@given(st.integers(2, 40), st.integers(0, 5))
@settings(max_examples=examples(40))
def test_pat_keeps_to_its_buffer_and_needs_the_steps_that_it_leaves(ranks: int, doublings: int) -> None:
    """Messages of at most 2^m blocks; log2 steps without a limit, m + 2^(L - m) - 1 at most with one."""
    limit, bits = 1 << doublings, (ranks - 1).bit_length()
    for kind in ("allgather", "reduce-scatter"):
        asked = problem(complete(ranks), kind)
        assert PAT().run(asked).num_steps == bits
        bounded = PAT(buffer=limit).run(asked)
        per_message = np.unique(np.stack([bounded.step, bounded.src, bounded.dst]), axis=1, return_counts=True)[1]
        assert per_message.max() <= limit
        far = min(doublings, bits)
        assert bounded.num_steps <= far + (1 << (bits - far)) - 1
    assert PAT(buffer=1).run(asked).num_steps == ranks - 1


@given(st.integers(2, 64), st.integers(0, 4))
@settings(max_examples=examples(40))
def test_what_pat_holds_on_the_way_is_logarithmic(ranks: int, doublings: int) -> None:
    """A rank keeps blocks that it will send on: at most 2^m for each of log2(N) levels of the tree."""
    schedule = PAT(buffer=1 << doublings).run(problem(complete(ranks), "allgather"))
    arrives, leaves = np.full((ranks, ranks), -1), np.full((ranks, ranks), -1)
    arrives[schedule.dst, schedule.shard] = schedule.step
    np.maximum.at(leaves, (schedule.src, schedule.shard), schedule.step)
    np.fill_diagonal(leaves, -1)
    for step in range(schedule.num_steps):
        held = ((arrives >= 0) & (arrives < step) & (leaves >= step)).sum(axis=1)
        assert held.max() <= (1 << doublings) * (ranks - 1).bit_length()


def test_trivance_takes_the_logarithm_to_base_3() -> None:
    for shape, steps in [((9,), 2), ((9, 9), 4), ((27, 3), 4)]:
        exchanged = Trivance(variant="latency").run(problem(torus(*shape)))
        assert exchanged.num_steps == steps and verify_schedule(exchanged).ok
        assert Trivance(variant="bandwidth").messages(problem(torus(*shape))).num_steps == 2 * steps
    assert Trivance().run(problem(torus(9), size=64)).num_steps == 2
    assert Trivance().run(problem(torus(9), size=1 << 30)).num_steps == 4
    assert Trivance().run(problem(torus(8), size=64)).num_steps == 4


def test_mistakes_have_codes() -> None:
    assert code(Trivance(variant="latency"), torus(9, 8)) == "C0592"
    assert code(Bucket(shape="5"), torus(4)) == "C0590"
    assert code(Trivance(variant="latency"), torus(9), "allgather") == "C0591"
    assert code(Bine(variant="latency"), torus(9), "allgather") == "C0591"
    assert code(PAT(), torus(4), "alltoall") == code(Ring(), torus(4), "alltoall") == "C0591"
    with pytest.raises(CollcError, match="C0596"):
        PAT(buffer=0)


# ---- other networks


@pytest.mark.parametrize(
    ("board", "swing", "doubling"), [(2, (1, 1, 2, 2), (1, 1, 1, 1)), (4, (1, 1, 3, 4), (1, 2, 2, 2))]
)
def test_loads_of_a_hammingmesh(board: int, swing: tuple[int, ...], doubling: tuple[int, ...]) -> None:
    """Section 3.6: messages on the busiest link of every substep of a dimension, of 16 x 16 ranks on boards."""
    net = topology(f"hammingmesh({board}, {board}, {16 // board}, {16 // board})")
    for algorithm, parts, loads in ((Swing(variant="bandwidth"), 4, swing), (Rabenseifner(), 1, doubling)):
        slowest = algorithm.messages(problem(net)).slowest[:8]
        assert slowest == tuple(F(loads[k // 2], parts * 2 ** (k + 1)) for k in range(8))


def test_boards_keep_to_their_own_links() -> None:
    """A path of three links on the board is taken, though two lead over the switch of the row."""
    net = topology("hammingmesh(4, 4, 2, 2)")
    found = Swing(variant="bandwidth").messages(problem(net))
    on_board = (found.src // 8 // 4 == found.dst // 8 // 4) & (found.src % 8 // 4 == found.dst % 8 // 4)
    through = np.isin(
        found.route, [r for r in range(len(found.routes)) if (net.dst[found.routes.links_of(r)] >= 64).any()]
    )
    assert on_board.any() and not through[on_board].any() and through[~on_board].all()
    hops = net.distances[:64, :64]
    assert (found.hops <= hops[found.src, found.dst] + 1).all()


# ---- large


@pytest.mark.slow
def test_messages_of_16384_ranks() -> None:
    """What simulations of a 128 x 128 torus need: no transfer is written out."""
    net = torus(128, 128)
    wanted = {Swing(variant="latency"): F(85, 2), Bucket(): F(16383, 32768), Ring(): F(16383, 32768)}
    for algorithm, time in wanted.items():
        found = algorithm.messages(problem(net))
        assert found.time_per_byte == time
        assert len(found) < 2**20
