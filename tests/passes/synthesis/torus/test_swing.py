"""Swing on tori of every shape: every block once, exact congestion, schedules that execute, sums that agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction as F
from itertools import pairwise

import attrs
import numpy as np
import pytest
from commands import Ran
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from torus_checks import all_parts, congestion, problem, scatter_rows, shapes, wrong

import collc as compiler
from collc.backends.interpreter import run
from collc.frontends.coll.families.cayley import hyperx, torus
from collc.frontends.coll.families.grids import mesh
from collc.frontends.coll.families.switched import fat_tree, hammingmesh
from collc.ir.costs.cost import cost, predicted_time
from collc.ir.costs.messages import Messages
from collc.ir.diagnostic import CollcError
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import adds_once, verify_program, verify_schedule
from collc.ir.verify.agreement import same_everywhere
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.torus.peers import rho, swing_line, swing_peers
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.times import seconds

BANDWIDTH, LATENCY = Swing(variant="bandwidth"), Swing(variant="latency")
UNFOLDED = Swing(variant="latency", fold=False)
KINDS = ("allreduce", "reduce-scatter", "allgather", "broadcast", "reduce")


def code(algorithm: Swing, net: Topology, *args: object, **more: object) -> str:
    with pytest.raises(CollcError) as caught:
        algorithm.run(problem(net, *args, **more))  # type: ignore[arg-type]
    return caught.value.diagnostics[0].code


# ---- every shape


@pytest.mark.slow
@pytest.mark.parametrize("reparent", [False, True])
def test_every_block_moves_once_on_every_shape(reparent: bool) -> None:
    """1-D to 64, all 2-D to 10 x 10, all 3-D to 5 x 5 x 5, some of four dimensions; plain, mirrored, every start."""
    for shape in shapes():
        ranks = int(np.prod(shape))
        parts = all_parts(Swing(variant="bandwidth", reparent=reparent), shape)
        assert len(parts) == 2 * sum(size > 1 for size in shape)
        for part in parts:
            rows = scatter_rows(part)
            assert wrong(ranks, rows) is None, (shape, part.stages[0])
            assert (np.bincount(rows[1], minlength=ranks) == ranks - 1).all()


def test_the_checker_sees_a_block_dropped_or_sent_twice() -> None:
    for shape in [(8,), (6, 4), (5, 3)]:
        rows = scatter_rows(all_parts(BANDWIDTH, shape)[0])
        ranks = int(np.prod(shape))
        for row in range(0, len(rows[0]), 7):
            fewer = tuple(np.delete(column, row) for column in rows)
            assert "0 times" in str(wrong(ranks, fewer))  # type: ignore[arg-type]
            more = tuple(np.append(column, column[row]) for column in rows)
            assert "2 times" in str(wrong(ranks, more))  # type: ignore[arg-type]
        first = int(np.argmin(rows[0]))
        rows[0][first] = rows[0].max()
        relayed = [(rows[3] == rows[3][i]) & (rows[2] == rows[1][i]) for i in range(len(rows[0]))]
        late = next(i for i, before in enumerate(relayed) if before.any())
        rows[0][late] = 0
        assert "after sending it" in str(wrong(ranks, rows))


def test_a_transfer_dropped_or_repeated_is_refused_by_the_verifier() -> None:
    schedule = BANDWIDTH.run(problem(torus(4, 3)))
    assert verify_schedule(schedule).ok
    rows = np.arange(len(schedule))
    for row in range(0, len(schedule), 37):
        assert not verify_schedule(schedule.rows(np.delete(rows, row))).ok
    reducing = np.flatnonzero(schedule.action == 1)
    for row in reducing[::23].tolist():
        report = verify_schedule(schedule.rows(np.insert(rows, row, row)))
        assert not report.ok and report.failed is not None


def test_steps_are_the_logarithm_of_every_dimension() -> None:
    """ceil(log2 d) substeps, an odd size those of the even one below it; twice for both phases, once for latency."""
    for shape in [(8,), (6,), (7,), (4, 4), (5, 6), (3, 3), (2, 9)]:
        logs = [(size - size % 2 - 1).bit_length() for size in shape]
        assert BANDWIDTH.run(problem(torus(*shape))).num_steps == 2 * sum(logs)
        floors = [size.bit_length() - 1 + 2 * bool(size & size - 1) for size in shape]
        assert LATENCY.run(problem(torus(*shape))).num_steps == sum(floors)


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3).filter(lambda sizes: 1 < np.prod(sizes) <= 60),
    st.sampled_from(KINDS), st.sampled_from(["bandwidth", "latency"]), st.sampled_from(["all", 1]), st.booleans(),
    st.booleans(), st.data(),
)  # fmt: skip
@settings(max_examples=examples(60))
def test_schedules_execute_and_cost_what_their_messages_do(sizes, kind, variant, ports, identical, wraps, data) -> None:
    net = torus(*sizes) if wraps else mesh(*sizes)
    root = data.draw(st.integers(0, net.num_ranks - 1)) if kind in ("broadcast", "reduce") else None
    variant = {"allgather": "bandwidth", "reduce-scatter": "bandwidth", "allreduce": variant}.get(kind, "latency")
    shape = "x".join(map(str, sizes))
    algorithm = Swing(variant=variant, ports=ports, identical=identical, shape=shape)
    schedule, messages = (make(problem(net, kind, root)) for make in (algorithm.run, algorithm.messages))
    report = verify_schedule(schedule)
    assert report.ok, report.failed
    assert messages.num_steps == schedule.num_steps
    assert messages.time_per_byte == Messages.of(schedule).time_per_byte == cost(schedule).time_per_byte


# ---- peers


def test_peers_are_pairs_and_reach_everyone() -> None:
    assert [rho(k) for k in range(8)] == [1, -1, 3, -5, 11, -21, 43, -85]
    for size in range(2, 200, 2):
        for mirrored in (False, True):
            for peer in swing_peers(size, mirrored):
                assert (peer[peer] == np.arange(size)).all()
            assert (swing_line(size, mirrored).when >= 0).all()


def test_the_latest_rule_where_the_paper_is_ambiguous() -> None:
    """Rank 0 of 12 can send block 3 in substep 1 or 2, rank 0 of 24 block 8 in 2 or 3: the later is taken."""
    assert swing_line(12, False).when[0, 3] == 2
    assert swing_line(24, False).when[0, 8] == 3
    assert [swing_line(18, False).volume(k) for k in range(5)] == [2, 8, 4, 2, 1]


# ---- congestion, exactly


def closed_form(dims: int, size: int) -> F:
    """Section 2.1: (1 - 2^-D) sum of 2^(-kD) |rho(k)| for a square torus of a power of two."""
    logs = size.bit_length() - 1
    return (1 - F(1, 2**dims)) * sum((F(abs(rho(k)), 2 ** (k * dims)) for k in range(logs)), F(0))


@pytest.mark.parametrize(("dims", "sizes"), [(1, (4, 16, 64)), (2, (4, 8, 16, 32, 64)), (3, (2, 4, 8)), (4, (4, 8))])
def test_squares_have_the_closed_form(dims: int, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        assert congestion(BANDWIDTH, (size,) * dims) == closed_form(dims, size)


def test_the_closed_form_tends_to_its_limits() -> None:
    for dims, limit in ((2, F(6, 5)), (3, F(28, 27)), (4, F(120, 119))):
        gaps = [limit - closed_form(dims, 2**k) for k in (4, 8, 16, 32)]
        assert all(a > b > 0 for a, b in pairwise(gaps))
        assert gaps[-1] < F(1, 10**8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "bandwidth", "latency"),
    [
        ((8, 8), F(69, 64), 5), ((16, 16), F(291, 256), 10), ((32, 32), F(1197, 1024), 21),
        ((64, 64), F(4851, 4096), 42),
        ((8, 8, 8), F(525, 512), F(15, 2)), ((8, 8, 8, 8), F(4125, 4096), 10), ((64, 16), F(1250, 1024), 42),
        ((128, 8), F(1442, 1024), 85), ((256, 4), F(1998, 1024), 170), ((2, 4), 1, 2), ((16,), F(23, 16), 5),
        ((64,), F(135, 64), 21),
    ],
)  # fmt: skip
def test_table_of_congestion(shape: tuple[int, ...], bandwidth: F, latency: F) -> None:
    assert congestion(BANDWIDTH, shape) == bandwidth
    assert congestion(LATENCY, shape) == latency == congestion(Swing(variant="latency", identical=False), shape)


@pytest.mark.parametrize(
    ("shape", "latest", "moved"),
    [
        ((10, 10), F(135, 100), F(121, 100)), ((12, 12), F(179, 144), F(165, 144)),
        ((20, 20), F(567, 400), F(475, 400)),
        ((36, 36), F(2033, 1296), F(1627, 1296)), ((12, 12, 12), F(1867, 1728), F(1793, 1728)),
        ((36,), F(101, 36), F(83, 36)),
    ],
)  # fmt: skip
def test_leaves_that_send_earlier_lower_the_congestion(shape: tuple[int, ...], latest: F, moved: F) -> None:
    assert congestion(Swing(variant="bandwidth", reparent=False), shape) == latest
    assert congestion(Swing(variant="bandwidth", reparent=True), shape) == moved == congestion(BANDWIDTH, shape)


def test_odd_sizes_have_one_busy_guest() -> None:
    latest = Swing(variant="bandwidth", reparent=False)
    assert congestion(latest, (5, 5)) == F(60, 25)
    assert congestion(latest, (7, 7)) == F(128, 49)
    assert congestion(latest, (9, 9)) == F(192, 81)
    assert congestion(latest, (5, 5, 5)) == F(333, 125)


def test_a_single_link_in_a_dimension_of_2_carries_both_halves() -> None:
    both = torus(2, 4)
    pairs = sorted({(int(a), int(b)) for a, b in zip(both.src, both.dst, strict=True)})
    single = Topology.from_links("one link", 8, [(a, b, LinkClass()) for a, b in pairs])
    once = Swing(variant="bandwidth", shape="2x4").messages(problem(single)).time_per_byte
    assert once > BANDWIDTH.messages(problem(both)).time_per_byte == F(1, 2)


def test_every_step_of_a_hyperx_goes_to_neighbours() -> None:
    """Section 3.6: every load is one message, so Xi is 1 - 1/p."""
    net = hyperx(8, 8)
    found = Swing(variant="bandwidth", shape="8x8").messages(problem(net))
    assert (found.hops == 1).all() and found.time_per_byte * 2 == F(63, 64)


# ---- bits


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8,), (16,), (8, 8), (4, 16), (9,), (6, 10)])
def test_ranks_agree_on_every_bit_where_the_flag_says_so(shape: tuple[int, ...]) -> None:
    """The paper's order of latency substeps brackets sums differently from rank to rank, the reverse order does not."""
    swings = {far: Swing(variant="latency", identical=far, template=False) for far in (False, True)}
    made = {far: swing.run(problem(torus(*shape))) for far, swing in swings.items()}
    values = np.random.default_rng(1).standard_normal((int(np.prod(shape)), 257)).astype(np.float32)
    for far, schedule in made.items():
        assert verify_schedule(schedule).ok
        results = executed(schedule, values)
        same = all(np.array_equal(results[0], result) for result in results)
        assert same == same_everywhere(schedule)
        assert same_everywhere(schedule) if far else (max(shape) < 8 or not same or shape == (6, 10))
    assert same_everywhere(BANDWIDTH.run(problem(torus(*shape))))


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ("", True),
        ("variant: bandwidth", True),
        ("variant: latency", True),
        ("variant: latency, identical: false", False),
    ],
)
def test_costs_say_whether_ranks_may_differ(options: str, same: bool, collc: Callable[..., Ran]) -> None:
    text = f"collective c = allreduce on torus(16); schedule c using swing {{ {options} }};"
    assert compiler.compile_source(text).cost.same_everywhere is same
    told, shown = collc("cost", "-", "--json", stdin=text), collc("cost", "-", stdin=text)
    assert json.loads(told.out)["same_everywhere"] is same
    assert ("may differ in their last bits" in shown.out) is not same


def test_integers_and_maxima_are_the_same_in_any_order() -> None:
    differing = Swing(variant="latency", identical=False)
    for more, same in (({}, False), ({"dtype": "int32"}, True), ({"op": "max"}, True), ({"op": "prod"}, False)):
        assert same_everywhere(differing.run(problem(torus(16), **more))) is same
    assert same_everywhere(Swing().run(problem(torus(16), "reduce", 0)))


def executed(schedule, values: np.ndarray) -> np.ndarray:
    """Return every rank's result of an allreduce of floats, added as lowering adds, every part on its own elements."""
    ranks, parts = schedule.collective.num_ranks, schedule.parts
    state = np.broadcast_to(values[:, None, None, :], (ranks, ranks, parts, values.shape[1])).copy()
    for step in range(schedule.num_steps):
        rows = np.flatnonzero(schedule.step == step)
        before = state.copy()
        for row in rows[np.lexsort((schedule.route[rows], schedule.lo[rows], schedule.shard[rows]))].tolist():
            where = int(schedule.shard[row]), slice(int(schedule.lo[row]), int(schedule.hi[row]))
            sent, at = before[int(schedule.src[row])][where], state[int(schedule.dst[row])]
            at[where] = at[where] + sent if schedule.action[row] else sent
    return state


# ---- options and mistakes


def test_auto_takes_the_latency_variant_for_small_data() -> None:
    net = torus(8, 8)
    small, large = (Swing().run(problem(net, size=size)) for size in (1024, 1 << 30))
    assert (small.num_steps, large.num_steps) == (6, 12)
    assert Swing().run(problem(net)).num_steps == 12


def test_mistakes_have_codes() -> None:
    assert code(Swing(shape="3x5"), torus(4, 4)) == "C0590"
    assert code(Swing(shape="4 by 4"), torus(4, 4)) == "C0590"
    assert code(Swing(), torus(4, 4), "alltoall") == "C0591"
    assert code(LATENCY, torus(4, 4), "allgather") == code(BANDWIDTH, torus(4, 4), "broadcast", 1) == "C0591"
    assert code(UNFOLDED, torus(4, 6)) == "C0592"
    assert code(LATENCY, torus(66, 66)) == "C0594"  # guests: ranks differ


def test_the_dimension_at_fault_is_named_as_it_was_written() -> None:
    for net, shape, op, words in [
        (torus(4, 1, 6), None, "sum", "dimension 2 of 4x1x6: .* needs a power of two"),
        (torus(4, 6), "1x24", "sum", "dimension 1 of 1x24: .* needs a power of two"),
        (torus(6, 5), None, "max", "dimension 1 of 6x5: .* needs an even size"),
    ]:
        with pytest.raises(CollcError, match=words):
            Swing(variant="latency", fold=False, shape=shape).run(problem(net, op=op))


def test_operations_that_need_the_order_of_ranks_are_refused() -> None:
    """By every scheduler, by the verifier where a schedule is written by hand; copies need no operation."""
    for scheduler in ("swing", "bine", "bfb", "forest", "exact", "expansion", "double-binary-tree"):
        with pytest.raises(CollcError, match="C0593"):
            compiler.compile_source(
                f"collective c = allreduce on torus(4) {{ op: ordered }}; schedule c using {scheduler};"
            )
    assert compiler.compile_source(
        "collective c = allgather on torus(4) { op: ordered }; schedule c using swing;"
    ).schedule
    schedule = BANDWIDTH.run(problem(torus(4)))
    needy = attrs.evolve(schedule, collective=attrs.evolve(schedule.collective, op="ordered"))
    assert [check.name for check in verify_schedule(needy).failed] == ["single reduction"]
    program = Lower().run(Discretize().run(schedule))
    needy_program = attrs.evolve(program, collective=needy.collective)
    assert verify_program(program).ok
    assert [check.name for check in verify_program(needy_program).failed] == ["single reduction"]


# ---- operations that take a contribution more than once


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(6,), (10,), (12,), (4, 6), (2, 6), (6, 1, 2)])
@pytest.mark.parametrize("identical", [False, True])
def test_maxima_need_no_folding_in_even_sizes(sizes: tuple[int, ...], identical: bool) -> None:
    """ceil(log2 d) steps a dimension; the same rows are wrong for a sum, and programs know that of themselves."""
    algorithm = Swing(variant="latency", fold=False, identical=identical)
    schedule = algorithm.run(problem(torus(*sizes), op="max"))
    assert schedule.num_steps == sum((size - 1).bit_length() for size in sizes)
    assert verify_schedule(schedule).ok and same_everywhere(schedule)
    sums = attrs.evolve(schedule.collective, op="sum")
    assert [c.name for c in verify_schedule(attrs.evolve(schedule, collective=sums)).failed] == ["single reduction"]
    program = Lower().run(Discretize().run(schedule))
    assert verify_program(program).ok and not adds_once(program)
    assert not verify_program(attrs.evolve(program, collective=sums)).ok
    inputs = list(np.random.default_rng(3).integers(0, 10**6, (schedule.collective.num_ranks, 17)))
    for found in run(program, inputs):
        assert np.array_equal(found, np.max(inputs, axis=0))


def test_programs_that_fold_are_right_for_any_operation() -> None:
    schedule = Swing(variant="latency").run(problem(torus(6), op="max"))
    assert "no contribution" in next(c.detail for c in verify_schedule(schedule).checks if c.name == "single reduction")
    assert adds_once(Lower().run(Discretize().run(schedule)))
    assert Swing(fold=False).run(problem(torus(6), op="max", size=1)).num_steps == 3
    assert Swing(fold=False).run(problem(torus(6), op="sum", size=1)).num_steps == 6


# ---- ports


@given(
    st.lists(st.sampled_from([2, 4, 6, 8]), min_size=1, max_size=3).filter(lambda sizes: np.prod(sizes) <= 64),
    st.sampled_from(KINDS),
)
@settings(max_examples=examples(25))
def test_one_port_sends_one_message_at_a_time(sizes: list[int], kind: str) -> None:
    root = 1 if kind in ("broadcast", "reduce") else None
    found = Swing(ports=1).messages(problem(torus(*sizes), kind, root))
    assert len(np.unique(np.stack([found.step, found.src]), axis=1).T) == len(found)
    every = Swing().messages(problem(torus(*sizes), kind, root))
    assert len(every) > len(found) and found.num_steps == every.num_steps


def test_all_ports_are_in_use_in_the_first_step() -> None:
    net = torus(8, 8)
    found = BANDWIDTH.messages(problem(net))
    first = found.route[found.step == 0]
    assert np.array_equal(
        np.unique([found.routes.links_of(int(route))[0] for route in first]), np.arange(net.num_links)
    )


@pytest.mark.slow
@given(
    st.sampled_from(["torus(4, 4)", "torus(3, 4)", "mesh(2, 5)", "fat_tree(2)", "two speeds"]), st.integers(0, 1 << 24)
)
@settings(max_examples=examples(30))
def test_what_auto_compares_is_what_predictions_say(expression: str, size: int) -> None:
    """Also where links have latencies, and where these differ; the variant taken is the faster one."""
    net = torus(4, 4)
    if expression == "two speeds":
        classes = (LinkClass(F(10**9), F(1, 10**6)), LinkClass(F(2 * 10**9), F(7, 10**6)))
        net = attrs.evolve(net, classes=classes, link_class=np.arange(net.num_links) % 3 % 2)
    else:
        net = compiler.topology(expression)
        net = net if size % 2 else net.with_links(F(25 * 10**9), F(3, 10**6))
    times = {}
    for variant in ("bandwidth", "latency"):
        asked = problem(net, size=size)
        made = Swing(variant=variant).run(asked)
        times[variant] = seconds(Messages.of(made))
        assert times[variant] == predicted_time(cost(made), size) == seconds(Swing(variant=variant).messages(asked))
    assert predicted_time(cost(Swing().run(asked)), size) == min(times.values())


def test_auto_without_fold_keeps_to_what_is_possible() -> None:
    assert Swing(fold=False).run(problem(torus(6), size=1)).num_steps == 6


def test_other_networks_take_the_torus_they_are_numbered_as() -> None:
    for net, shape in [(hammingmesh(2, 2, 2, 2), "4x4"), (fat_tree(4), "4x4"), (torus(4, 4), "16"), (mesh(3, 4), None)]:
        for variant in ("bandwidth", "latency"):
            schedule = Swing(variant=variant, shape=shape).run(problem(net))
            assert verify_schedule(schedule).ok


def test_one_rank_has_nothing_to_do() -> None:
    for algorithm in (BANDWIDTH, LATENCY):
        schedule = algorithm.run(problem(torus(1)))
        assert len(schedule) == 0 and verify_schedule(schedule).ok
        assert algorithm.messages(problem(torus(1))).time_per_byte == 0


def test_links_with_bandwidths_of_their_own() -> None:
    net = torus(4, 4).with_links(F(25 * 10**9), F(1, 10**6))
    schedule = Swing().run(problem(net, size=1 << 20))
    assert verify_schedule(schedule).ok and Messages.of(schedule).time_per_byte == cost(schedule).time_per_byte
