"""Expansions: the theorems of the direct-connect paper on random bases, with equality; whole runs by text."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nets import circulant, complete, generalized_kautz, hypercube, one_way_ring
from sampling import examples
from strategies import connected, regular, star

from collc.frontends.coll import topology
from collc.frontends.coll.families import operators
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.graph.isomorphism import isomorphism
from collc.ir.schedule import Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass, Origin, Topology
from collc.ir.verify import verify_schedule
from collc.passes.expansion import theorems
from collc.passes.expansion.expansion import Expansion
from collc.passes.expansion.isomorphic import Transpose, mapped, opposite, reverse_symmetry
from collc.passes.expansion.line import line, line_graph
from collc.passes.expansion.theorems import optimum, predict
from collc.passes.synthesis.breadth_first.bfb import BFB


def built(operator: str, *arguments) -> Topology:
    """Apply an operator of the language and note the origin, as the language does."""
    return attrs.evolve(getattr(operators, operator)(*arguments), origin=Origin(operator, arguments))


def bfb(net: Topology, kind: str = "allgather", relax: bool = True) -> Schedule:
    made = BFB(relax=relax).run(Problem(net, Collective(kind, net.num_ranks)))
    return made.unfold() if isinstance(made, SymmetricSchedule) else made


def expanded(net: Topology, kind: str = "allgather", **options) -> Schedule:
    """Return the expanded schedule, executed."""
    made = Expansion(**options).run(Problem(net, Collective(kind, net.num_ranks)))
    assert made.topology is net and made.collective.kind == kind
    report = verify_schedule(made)
    assert report.ok, str(report)
    return made


def costs(schedule: Schedule) -> tuple[int, Fraction]:
    found = cost(schedule)
    return found.T_L, found.T_B


def base_costs(net: Topology) -> tuple[int, Fraction]:
    return costs(bfb(net))


def without_loops(net: Topology) -> Topology:
    """Give every self-loop of a regular network to a neighbour and the other way round, keeping all degrees."""
    rows = list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    for i, (a, b) in enumerate(rows):
        if a == b:
            j = next(j for j, (c, d) in enumerate(rows) if c != a and d != a)
            rows[i], rows[j] = (a, rows[j][1]), (rows[j][0], a)
    return Topology.from_links("regular", net.num_ranks, sorted(rows))


loopless = regular(max_ranks=7).filter(lambda net: net.num_ranks > 2).map(without_loops).filter(
    lambda net: net.is_connected and (net.src != net.dst).all()
)  # fmt: skip
few = settings(max_examples=examples(30))


# ---- line graphs


@given(regular(max_ranks=6), st.integers(1, 2))
@few
def test_line_graphs(base: Topology, n: int) -> None:
    """Theorem 7 and Corollary 7.1: T_L is exact, T_B at most what the theorem says."""
    steps, bandwidth = costs(expanded(built("line", base, n)))
    most = theorems.line(*base_costs(base), base.num_ranks, base.degree, n)
    assert steps == most[0] if base.degree > 1 else steps <= most[0]  # L(ring) is the ring
    assert bandwidth <= most[1]
    prediction = predict(built("line", base, n), base_costs)
    assert (prediction.T_L, prediction.T_B, prediction.exact) == (*most, False)


@given(regular(max_ranks=6), st.integers(1, 3))
@few
def test_line_graphs_keep_moore_optimality(base: Topology, n: int) -> None:
    """Theorem 8, for degrees above 1."""
    assume(base.degree > 1)

    def moore(ranks: int, steps: int) -> bool:
        return ranks > sum(base.degree**i for i in range(steps))

    steps, _ = base_costs(base)
    assert moore(base.num_ranks, steps) == moore(base.degree**n * base.num_ranks, steps + n)


@pytest.mark.parametrize("base", ["complete_bipartite(2)", "complete(4)", "torus(3, 3)", "directed_circulant(6)"])
def test_line_graphs_of_optimal_bases(base: str) -> None:
    """Theorem 9: within 1 + 1/((d-1) N) of the optimum, however often."""
    net = topology(base)
    assert optimum(net.num_ranks) == base_costs(net)[1]
    for n in (1, 2):
        _, bandwidth = costs(expanded(topology(f"line({base}, {n})")))
        ranks = net.degree**n * net.num_ranks
        assert bandwidth / optimum(ranks) <= 1 + Fraction(1, (net.degree - 1) * net.num_ranks)


def by_breadth(schedule: Schedule) -> bool:
    """Definition 15: every shard comes from a rank that is nearer to its own, in the step of the distance."""
    hops = schedule.topology.distances.astype(np.int64)
    to, at = (hops[schedule.shard, ends] for ends in (schedule.dst, schedule.src))
    return bool(((to == at + 1) & (to == schedule.step.astype(np.int64) + 1)).all())


@given(regular(max_ranks=6))
@few
def test_line_graphs_of_breadth_first_schedules(base: Topology) -> None:
    """Theorem 10 without its equality: still breadth first, so recomputing is never worse."""
    neighbours = [set(base.dst[base.src == u].tolist()) for u in range(base.num_ranks)]
    assume(all(len(others) > 1 for others in neighbours))
    net = built("line", base, 1)
    carried_along = line(bfb(base, relax=False), net)
    assert by_breadth(bfb(base, relax=False)) and by_breadth(carried_along)
    assert costs(bfb(net, relax=False)) <= costs(carried_along)


def test_theorem_10_has_a_counterexample() -> None:
    """The best breadth-first schedule of a line graph can be better than T_B(G) + 1/N."""
    base, net = topology("directed_circulant(6, {1, 4})"), topology("line(directed_circulant(6, {1, 4}))")
    assert (3, Fraction(5, 6)) == costs(bfb(base, relax=False))
    assert (4, Fraction(1)) == theorems.line(3, Fraction(5, 6), 6, 2) == costs(expanded(net))
    assert (4, Fraction(11, 12)) == costs(bfb(net, relax=False))


@pytest.mark.parametrize("base", ["debruijn(2, 2)", "debruijn(3, 1)", "uniring(3)", "uniring(3, 2)"])
@pytest.mark.parametrize("n", [1, 2])
def test_line_graphs_with_loops_and_parallel_links(base: str, n: int) -> None:
    for kind in ("allgather", "allreduce"):
        expanded(topology(f"line({base}, {n})"), kind)


# ---- degree expansion, powers, products


@given(loopless, st.integers(1, 3))
@few
def test_degree_expansion(base: Topology, n: int) -> None:
    """Theorem 11, exactly."""
    net = built("degree", base, n)
    found = costs(expanded(net))
    assert found == theorems.degree(*base_costs(base), base.num_ranks, n)
    prediction = predict(net, base_costs)
    assert found == (prediction.T_L, prediction.T_B) and prediction.exact


@given(regular(max_ranks=4), st.integers(1, 3))
@few
def test_powers(base: Topology, n: int) -> None:
    """Theorem 12, exactly."""
    net = built("power", base, n)
    found = costs(expanded(net))
    assert found == theorems.power(*base_costs(base), base.num_ranks, n)
    prediction = predict(net, base_costs)
    assert found == (prediction.T_L, prediction.T_B) and prediction.exact


OPTIMAL = ["uniring(2)", "uniring(3)", "complete(2)", "complete(3)", "biring(4)", "biring(5)", "directed_circulant(5)"]


@given(st.lists(st.sampled_from(OPTIMAL), min_size=1, max_size=3))
@few
def test_products(factors: list[str]) -> None:
    """Theorem 13: bandwidth-optimal in the sum of the diameters."""
    net = topology(f"product({', '.join(factors)})")
    found = costs(expanded(net))
    assert found == (sum(topology(f).diameter for f in factors), optimum(net.num_ranks))
    prediction = predict(net, base_costs)
    assert found == (prediction.T_L, prediction.T_B) and prediction.exact


def test_optimal_bases_stay_optimal() -> None:
    """Corollaries 11.1 and 12.1."""
    for expression in ("degree(uniring(4), 2)", "power(uniring(4), 2)", "hypercube(4)", "power(complete(2), 4)"):
        found = cost(expanded(topology(expression)))
        assert found.bw_optimal


# ---- both ways, backwards, renumbered


def one_way() -> st.SearchStrategy[Topology]:
    """One-way networks isomorphic to their transposes."""
    offsets = st.sets(st.integers(1, 6), min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda m, s: topology(f"directed_circulant({m}, {{{', '.join(map(str, {1, *s}))}}})"),
                  st.integers(7, 9), offsets),
        st.sampled_from(["kautz(2, 1)", "debruijn(2, 2)", "line(complete(3))", "uniring(4, 2)"]).map(topology),
    )  # fmt: skip


@given(one_way())
@few
def test_made_bidirectional(base: Topology) -> None:
    """Section A.6: neither T_L nor T_B changes."""
    net = built("bidirectional", base)
    found = costs(expanded(net))
    assert found == costs(expanded(base))
    prediction = predict(net, lambda leaf: costs(expanded(leaf)))
    assert prediction is not None and (prediction.T_L == found[0] and prediction.T_B >= found[1])


@given(regular(max_ranks=6))
@few
def test_made_bidirectional_without_an_isomorphism(base: Topology) -> None:
    """Where the transpose is another network it has a schedule of its own."""
    net = built("bidirectional", base)
    steps, bandwidth = costs(expanded(net))
    assert steps == base.diameter
    if reverse_symmetry(base).nodes is not None:
        assert bandwidth == base_costs(base)[1]


@given(regular(max_ranks=7) | connected(min_ranks=2, max_ranks=6), st.randoms(use_true_random=False))
@few
def test_isomorphic_schedules(net: Topology, random) -> None:
    """Definition 7: the schedule of a renumbered network, at the same cost."""
    nodes = list(range(net.num_ranks))
    random.shuffle(nodes)
    order = list(range(net.num_links))
    random.shuffle(order)
    nodes = np.array(nodes)
    other = Topology("other", net.num_ranks, nodes[net.src][order], nodes[net.dst][order])
    for kind in ("allgather", "reduce-scatter", "allreduce"):
        moved = mapped(bfb(net, kind), other, nodes)
        assert verify_schedule(moved).ok
        assert cost(moved).time_per_byte == cost(bfb(net, kind)).time_per_byte
    for kind in ("broadcast", "reduce"):
        problem = Problem(net, Collective(kind, net.num_ranks, root=0))
        moved = mapped(BFB().run(problem), other, nodes)
        assert verify_schedule(moved).ok and moved.collective.root == nodes[0]
    with pytest.raises(ValueError, match="does not map links to links"):
        mapped(bfb(net), Topology("none", net.num_ranks, [], []), nodes)


@given(one_way())
@few
def test_reduce_scatter_from_allgather(net: Topology) -> None:
    """Theorem 2: on the same network, at the same cost; twice gives an allgather again."""
    gather = bfb(net)
    scatter = Transpose().run(gather)
    assert scatter.topology is net and scatter.collective.kind == "reduce-scatter"
    assert verify_schedule(scatter).ok
    assert costs(scatter) == costs(gather)
    again = Transpose().run(scatter)
    assert again.collective.kind == "allgather" and verify_schedule(again).ok


@given(regular(max_ranks=5) | connected(min_ranks=2, max_ranks=5), st.sampled_from(["line", "power", "bidirectional"]))
@few
def test_reductions(base: Topology, operator: str) -> None:
    """Corollary 1.2: on any base, by expanding on the transpose."""
    net = built(operator, base, *([2] if operator != "bidirectional" else []))
    assume(net.is_connected)
    for kind in ("reduce-scatter", "allreduce"):
        expanded(net, kind)
    if base.degree and reverse_symmetry(base).nodes is not None:
        gather, scatter = (costs(expanded(net, kind)) for kind in ("allgather", "reduce-scatter"))
        assert gather == scatter


def test_schedules_through_switches_turn_round_and_move() -> None:
    net, pairs = star(3), [(v, w) for v in range(3) for w in range(3) if v != w]
    gather = Schedule(
        net, Collective("allgather", 3), 1, step=[0] * 6, action=[0] * 6, shard=[v for v, _ in pairs], lo=[0] * 6,
        hi=[1] * 6, route=range(6), routes=Routes.of([[v, 3 + w] for v, w in pairs]),
    )  # fmt: skip
    moved = mapped(gather, net, np.array([2, 0, 1, 3]))
    scatter = Transpose().run(gather)
    assert verify_schedule(gather).ok and verify_schedule(moved).ok and verify_schedule(scatter).ok
    exchange = attrs.evolve(
        gather, collective=Collective("alltoall", 3), shard=[3 * v + w for v, w in pairs]
    )  # fmt: skip
    assert verify_schedule(exchange).ok and verify_schedule(mapped(exchange, net, np.array([2, 0, 1, 3]))).ok


@pytest.mark.parametrize(
    "expression",
    [
        "transpose(line(generalized_kautz(2, 5), 2))", "line(transpose(generalized_kautz(2, 5)), 2)",
        "degree(transpose(kautz(2, 1)), 2)", "bidirectional(line(power(uniring(2), 2)))",
        "power(line(complete(2)), 2)", "product(line(complete(3)))", "transpose(transpose(uniring(5)))",
        "line(product(uniring(2), uniring(3)), 2)", "product(line(uniring(2)), complete(3))",
        "degree(bidirectional(uniring(3)), 2)", "power(transpose(degree(uniring(3), 2)), 2)",
        "line(bidirectional(directed_circulant(5, {1})))", "subset(line(complete(3)), 0..6)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_expansions_of_expansions(expression: str, kind: str) -> None:
    net = topology(expression)
    found = costs(expanded(net, kind))
    prediction = predict(net, base_costs)
    if prediction is not None and kind != "allreduce":
        assert prediction.T_L >= found[0] and prediction.T_B >= found[1]
        assert not prediction.exact or (prediction.T_L, prediction.T_B) == found


def test_networks_with_bandwidths_and_other_link_orders() -> None:
    fast = topology("line(complete_bipartite(2), 2) with { bandwidth: 25 GB/s, latency: 1 us }")
    plain = topology("line(complete_bipartite(2), 2)")
    assert costs(expanded(fast)) == costs(expanded(plain))
    shuffled = attrs.evolve(plain, src=plain.src[::-1], dst=plain.dst[::-1])
    assert costs(expanded(shuffled)) == costs(expanded(plain))


def test_parallel_links_that_differ() -> None:
    """What goes over the faster of two parallel links goes over faster links of the expanded network."""
    fast, slow = LinkClass(bandwidth=Fraction(2)), LinkClass()
    base = Topology.from_links("ring", 3, [(i, (i + 1) % 3, kind) for i in range(3) for kind in (fast, slow)])
    assert (2, Fraction(2, 3)) == base_costs(base)
    for operator, arguments, expected in (
        ("power", (base, 2), theorems.power(2, Fraction(2, 3), 3, 2)),
        ("bidirectional", (base,), (2, Fraction(2, 3))),
        ("transpose", (base,), (2, Fraction(2, 3))),
    ):
        net = built(operator, *arguments)
        turned = attrs.evolve(net, **{c: getattr(net, c)[::-1] for c in ("src", "dst", "link_class")})
        assert expected == costs(expanded(net)) == costs(expanded(turned, "reduce-scatter"))


def test_what_no_operator_built_is_scheduled_as_a_base() -> None:
    for net in (topology("torus(3, 2)"), generalized_kautz(2, 7), Topology("one", 1, [], [])):
        found, plain = expanded(net), bfb(net)
        assert found.scheduler == "expansion"
        assert attrs.evolve(found, scheduler="bfb") == plain
    one = expanded(topology("power(complete(1), 3)"))
    assert (len(one), one.num_steps) == (0, 0)


def test_hypercubes_as_powers() -> None:
    """The base of two ranks gives the hypercube's schedule; the expansion of 256 ranks is quick."""
    assert isomorphism(topology("power(complete(2), 5)"), hypercube(5)) is not None
    assert (8, Fraction(255, 256)) == costs(expanded(topology("power(complete(2), 8)")))


@pytest.mark.parametrize(
    ("objective", "expected"), [("latency", (8, Fraction(187, 128))), ("bandwidth", (10, Fraction(255, 256)))]
)
def test_the_objective_of_the_base(objective: str, expected: tuple[int, Fraction]) -> None:
    """DBJMod(2,4)^2 of Table 7: its base trades a step for bandwidth."""
    net = topology("power(modified_debruijn(2, 4), 2)")
    made = Expansion(base="exact", objective=objective).run(Problem(net, Collective("allgather", net.num_ranks)))
    found = cost(made)
    assert (found.T_L, found.T_B) == expected
    assert verify_schedule(made).ok


@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
@pytest.mark.parametrize("base", ["bfb", "exact", "forest", "ring"])
def test_every_kind_of_schedule_may_be_expanded(base: str, kind: str) -> None:
    """A base's schedule is rows, a template or a forest; all become rows."""
    expanded(topology("line(torus(2, 3))"), kind, base=base)


# ---- errors


def code(net: Topology, kind: str = "allgather", **options) -> str:
    root = 0 if kind in ("broadcast", "reduce", "gather", "scatter") else None
    with pytest.raises(CollcError) as failure:
        Expansion(**options).run(Problem(net, Collective(kind, net.num_ranks, root=root)))
    return failure.value.diagnostics[0].code


def test_what_it_cannot_do() -> None:
    net = topology("line(complete(3))")
    assert {"C0520"} == {code(net, kind) for kind in ("broadcast", "alltoall", "gather")}
    assert {"C0522"} == {code(net, base=base) for base in ("bbf", "expansion", "steps", "lower")}
    assert "C0522" == code(net, objective="bandwidth")
    assert "C0538" == code(net, base="exact", objective="speed")
    assert "C0301" == code(topology("degree(complete(1), 2)"))
    assert "C0501" == code(topology("dgx_a100(1)"))
    with pytest.raises(CollcError) as failure:
        Transpose().run(bfb(generalized_kautz(2, 5)))
    assert "C0523" == failure.value.diagnostics[0].code
    with pytest.raises(CollcError) as failure:
        Transpose(effort=0).run(bfb(one_way_ring(5)))
    assert "C0524" == failure.value.diagnostics[0].code


@pytest.mark.parametrize(
    "expression", ["line(complete(3), 2)", "degree(uniring(3), 2)", "power(uniring(3), 2)", "bidirectional(uniring(3))",
                   "transpose(uniring(3))"],
)  # fmt: skip
def test_an_edited_topology_is_an_error(expression: str) -> None:
    """One link bent elsewhere, whose topology still says how it was built."""
    net = topology(expression)
    heads = net.dst.copy()
    heads[0] = (int(heads[0]) + 1) % net.num_ranks
    edited = attrs.evolve(net, dst=heads)
    if edited.is_connected:
        assert {"C0521"} == {code(edited, kind) for kind in ("allgather", "reduce-scatter")}
    more = attrs.evolve(net, src=[*net.src, 0], dst=[*net.dst, 1], link_class=[*net.link_class, 0])
    assert "C0521" == code(more)


@pytest.mark.slow
def test_too_large_to_write_out() -> None:
    assert "C0525" == code(topology("line(torus(50, 50))"))
    assert "C0525" == code(topology("degree(uniring(3000), 4)"))
    assert "C0525" == code(topology("power(torus(10, 10), 2)"))


def test_a_wrong_expansion_is_caught() -> None:
    """The verifier sees a transfer that the last step of Definition 2 would lack, and one of Definition 1."""
    for expression in ("degree(uniring(3), 2)", "line(complete(3))"):
        whole = expanded(topology(expression))
        assert not verify_schedule(whole.rows(np.arange(len(whole) - 1))).ok


# ---- as the user meets it


TEXT = """
topology t = {expression};
collective c = {kind} on t;
schedule c using expansion{options};
emit c as {target};
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ir", "msccl-xml", "mpi-c"])
@pytest.mark.parametrize(
    "expression", ["line(complete_bipartite(2), 2)", "degree(uniring(3), 2)", "bidirectional(line(complete(3)))"]
)
def test_by_text(collc, expression: str, target: str) -> None:
    for kind in ("allgather", "allreduce"):
        text = TEXT.format(expression=expression, kind=kind, target=target, options=" { base: bfb }")
        ran = collc("compile", "-", "--verify=full", stdin=text)
        assert 0 == ran.status, ran.err


def test_errors_by_text(collc) -> None:
    for kind, options, expected in (("alltoall", "", "C0520"), ("allgather", " { base: steps }", "C0522")):
        text = TEXT.format(expression="line(complete(3))", kind=kind, target="ir", options=options)
        ran = collc("compile", "-", stdin=text)
        assert ran.status and expected in ran.err


def test_line_graphs_are_numbered_as_the_language_does() -> None:
    """Rank i is link i of the base, so iterated line graphs must number their links alike."""
    for base in (complete(3), circulant(7, 1, 2), generalized_kautz(2, 6), topology("debruijn(2, 2)")):
        ours, theirs = line_graph(line_graph(base)), operators.line(base, 2)
        assert np.array_equal(ours.src, theirs.src) and np.array_equal(ours.dst, theirs.dst)


def test_opposite_needs_an_isomorphism() -> None:
    with pytest.raises(ValueError, match="does not map links to links"):
        opposite(bfb(generalized_kautz(2, 5)), np.arange(5))
