"""The check of certificates: it accepts what bounds state, of every kind of collective, and refuses what is altered."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import pytest
from cut_nets import switched
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import connected
from uneven_runs import uneven

import collc
from collc.ir.collective import ROOTED, Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.certificate import Bound, Cut, Prices
from collc.ir.costs.partitions import Partition
from collc.ir.costs.proofs import certificate_holds, vectors_out_of
from collc.ir.topology import Topology
from collc.passes.synthesis.flow.rate import alltoall_bound
from collc.passes.synthesis.general.bound import general_bound

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "alltoall")


def networks() -> st.SearchStrategy[Topology]:
    return connected(min_ranks=2, max_ranks=5) | switched(max_ranks=4)


@st.composite
def collectives(draw: st.DrawFn, ranks: int) -> Collective:
    """Any kind, of all ranks or of some, with equal shards or others."""
    if draw(st.integers(0, 4)) == 0:
        return draw(uneven(ranks))
    kind = draw(st.sampled_from(KINDS))
    some = st.sets(st.integers(0, ranks - 1), min_size=1).map(lambda chosen: tuple(sorted(chosen)))
    members = draw(st.none() | some)
    root = draw(st.sampled_from(members or range(ranks))) if kind in ROOTED else None
    return Collective(kind, ranks, root, members=members)


@given(st.data(), networks())
@settings(max_examples=examples(200), deadline=None)
def test_every_bound_is_proved_by_its_certificate(data: st.DataObject, net: Topology) -> None:
    what = data.draw(collectives(net.num_ranks))
    found = bound(net, what)
    assert certificate_holds(net, what, found)
    assert found.certificate is None or len(found.name) <= 160


@given(st.data(), networks())
@settings(max_examples=examples(150), deadline=None)
def test_what_is_altered_is_refused(data: st.DataObject, net: Topology) -> None:
    what = data.draw(collectives(net.num_ranks))
    found = bound(net, what)
    assume(found.certificate is not None)
    wrong = data.draw(st.sampled_from([alter(found) for alter in ALTERED.get(type(found.certificate), [])]))
    assert not certificate_holds(net, what, wrong)
    assert not certificate_holds(net, what, attrs.evolve(found, value=found.value * Fraction(101, 100)))


def _with(**changes: Callable[[Any], Any]) -> Callable[[Bound], Bound]:
    """Return a function that alters fields of a certificate, and states the value that it then seems to prove."""

    def altered(found: Bound) -> Bound:
        proof: Any = found.certificate
        proof = attrs.evolve(proof, **{name: change(getattr(proof, name)) for name, change in changes.items()})
        value = found.value
        if isinstance(proof, Cut):
            value = proof.carries / proof.bandwidth
        elif isinstance(proof, Partition):
            value = proof.ratio
        else:
            value *= Fraction(proof.distance) / proof.capacity
            value /= Fraction(found.certificate.distance) / found.certificate.capacity  # type: ignore[union-attr]
        return Bound(value, found.kind, found.name, proof)

    return altered


ALTERED: dict[type, list[Callable[[Bound], Bound]]] = {
    Cut: [
        _with(carries=lambda x: x + Fraction(1, 7)), _with(bandwidth=lambda x: x / 2), _with(nodes=lambda x: (*x, *x)),
        _with(nodes=lambda x: (*x, 999)),
    ],
    Partition: [
        _with(bandwidth=lambda x: x / 2), _with(parts=lambda x: x[:-1]), _with(parts=lambda x: (*x, x[0])),
        _with(parts=lambda x: (*x, ())),
    ],
    Prices: [
        _with(distance=lambda x: x + 1), _with(capacity=lambda x: x / 2), _with(prices=lambda x: (-1, *x[1:])),
        _with(prices=lambda x: ()),
    ],
}  # fmt: skip


def test_a_partition_proves_nothing_of_an_allgather() -> None:
    net = collc.topology("biring(4)")
    found = bound(net, Collective("allreduce", 4))
    assert isinstance(found.certificate, Partition)
    assert not certificate_holds(net, Collective("allgather", 4), found)


def test_relays_that_add_belong_to_a_part() -> None:
    """A partition into the members alone would forbid the rank in the middle to add."""
    star = Topology.from_links("star", 6, [(a, b) for leaf in range(1, 6) for a, b in ((0, leaf), (leaf, 0))])
    members = Collective("allreduce", 6, members=(1, 2, 3, 4, 5))
    wrong = Partition(tuple((leaf,) for leaf in range(1, 6)), False, Fraction(5))
    assert certificate_holds(star, members, bound(star, members))
    assert not certificate_holds(star, members, Bound(wrong.ratio, "all-schedules", "", wrong))


@pytest.mark.parametrize("net", ["debruijn(2, 3)", "mesh(2, 3)", "torus(3, 3)", "dgx_a100(2)", "leaf_spine(2, 3, 2)"])
def test_prices_of_an_alltoall_are_proved(net: str) -> None:
    topology = collc.topology(net)
    what, found = Collective("alltoall", topology.num_ranks), alltoall_bound(topology)
    assert found is not None and certificate_holds(topology, what, found)
    if isinstance(found.certificate, Prices):
        dear = attrs.evolve(found.certificate, distance=found.certificate.distance * 2)
        assert not certificate_holds(topology, what, attrs.evolve(found, value=found.value * 2, certificate=dear))


@given(st.data(), networks())
@settings(max_examples=examples(40), deadline=None)
def test_prices_of_custom_collectives_are_proved(data: st.DataObject, net: Topology) -> None:
    n = net.num_ranks
    rank = st.integers(0, n - 1)
    moves = data.draw(st.lists(st.tuples(rank, st.sets(rank, max_size=3)), min_size=1, max_size=4))
    pre, post = tuple(a for a, _ in moves), tuple(tuple(sorted(b)) for _, b in moves)
    what = Collective("custom", n, pre=pre, post=post)
    found = general_bound(net, what)
    assert certificate_holds(net, what, found)
    assert not certificate_holds(net, what, attrs.evolve(found, value=found.value + 1))


def test_what_leaves_a_set_is_counted_by_who_has_and_needs_it() -> None:
    assert vectors_out_of(Collective("gather", 4, 0), {0, 1}) == 0
    assert vectors_out_of(Collective("gather", 4, 3), {0, 1}) == Fraction(1, 2)
    assert vectors_out_of(Collective("scatter", 4, 0), {0, 1}) == Fraction(1, 2)
    assert vectors_out_of(Collective("alltoall", 4), {0}) == Fraction(3, 4)
    assert vectors_out_of(Collective("broadcast", 4, 1), {0}) == 0
    assert vectors_out_of(Collective("reduce", 4, 1), {0}) == 1
    assert vectors_out_of(Collective("reduce-scatter", 4), {0}) == Fraction(3, 4)
    assert vectors_out_of(Collective("allreduce", 4, members=(0, 1)), {0, 1}) == 0


@pytest.mark.parametrize("scheduler", ["forest", "bfb", "ring"])
@pytest.mark.parametrize("kind", ["allgather", "allreduce", "reduce-scatter"])
def test_the_bound_of_a_result_is_proved(scheduler: str, kind: str) -> None:
    found = collc.compile_source(f"collective c = {kind} on torus(3, 3); schedule c using {scheduler};")
    assert certificate_holds(found.schedule.topology, found.schedule.collective, found.cost.bound)


def test_switches_that_copy_and_add_belong_to_a_part() -> None:
    """A partition into ranks proves nothing where a switch adds; every rank's links do."""
    pairs = [(a, b) for rank in range(4) for a, b in ((rank, 4), (4, rank))]
    able = attrs.evolve(Topology.from_links("able", 4, pairs, 1), multicast=(4,), reduces=(4,))
    what = Collective("allreduce", 4)
    alone = Partition(tuple((rank,) for rank in range(4)), False, Fraction(4))
    plain = attrs.evolve(able, multicast=(), reduces=())
    assert certificate_holds(plain, what, Bound(alone.ratio, "all-schedules", "", alone))
    assert not certificate_holds(able, what, Bound(alone.ratio, "all-schedules", "", alone))
    assert certificate_holds(able, what, bound(able, what)) and bound(able, what).value == 1
