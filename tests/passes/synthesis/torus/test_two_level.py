"""`two-level`: inside boxes, then across them rail by rail."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
from clusters import CLUSTERS, cluster
from hypothesis import given
from hypothesis import strategies as st

from collc.backends.simulator import simulate
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.torus.two_level import TwoLevel

KINDS = ("allreduce", "allgather", "reduce-scatter")


def problem(net: Topology, kind: str = "allreduce", size: int | None = None) -> Problem:
    return Problem(net, Collective(kind, net.num_ranks, size=size))


@given(
    st.integers(2, 5), st.integers(2, 5), st.sampled_from(KINDS), st.sampled_from(("ring", "pat")), st.integers(1, 4)
)
def test_schedules_are_right_and_their_messages_theirs(
    boxes: int, size: int, kind: str, across: str, pieces: int
) -> None:
    given_, by = problem(cluster([size] * boxes), kind), TwoLevel(across=across, pipeline=pieces)  # type: ignore[arg-type]
    found = by.run(given_)
    assert verify_schedule(found).ok
    for bytes_ in (1, 1 << 20):
        assert simulate(found).time(bytes_) == simulate(by.messages(given_)).time(bytes_)


@pytest.mark.parametrize("net", CLUSTERS)
def test_families(net: str) -> None:
    assert verify_schedule(TwoLevel().run(problem(topology(net)))).ok


@pytest.mark.parametrize("boxes", [2, 3, 4, 8])
@pytest.mark.parametrize("across", ["ring", "pat"])
def test_the_times_of_both_levels(boxes: int, across: str) -> None:
    """Without pieces an allreduce takes 2 (g - 1) / g M inside and 2 (B - 1) / B M / g across, one after the other."""
    found = simulate(TwoLevel(across=across, pipeline=1).messages(problem(topology(f"dgx_a100({boxes})"))))  # type: ignore[arg-type]
    inside = Fraction(2 * 7, 8) / (300 * 10**9)
    assert found.per_unit == inside + Fraction(2 * (boxes - 1), boxes) / (8 * 25 * 10**9)
    assert found.num_steps == 2 * (1 + (boxes - 1 if across == "ring" else (boxes - 1).bit_length()))


@pytest.mark.parametrize("boxes", [4, 8])
def test_pieces_hide_the_shorter_level(boxes: int) -> None:
    """Many pieces take the time across alone, but for the first and the last piece inside."""
    across = Fraction(2 * (boxes - 1), boxes) / (8 * 25 * 10**9)
    found = simulate(TwoLevel(pipeline=64).messages(problem(topology(f"dgx_a100({boxes})"))))
    assert across < found.per_unit < across * Fraction(5, 4)


@pytest.mark.parametrize("across", ["ring", "pat"])
def test_the_chosen_pieces_are_nearly_the_best(across: str) -> None:
    net = topology("dgx_a100(4)")
    for size in (1 << 10, 1 << 24, 1 << 30):
        given_ = problem(net, size=size)
        chosen = simulate(TwoLevel(across=across).messages(given_)).time(size)  # type: ignore[arg-type]
        for pieces in (1, 2, 5, 10, 20, 40, 64):
            other = simulate(TwoLevel(across=across, pipeline=pieces).messages(given_)).time(size)  # type: ignore[arg-type]
            assert chosen <= other * Fraction(21, 20)


def test_data_cross_boxes_on_their_rails_only() -> None:
    found = TwoLevel().run(problem(topology("dgx_a100(3, 8)")))
    assert ((found.src // 8 == found.dst // 8) | (found.src % 8 == found.dst % 8)).all()


def test_what_two_levels_cannot_be() -> None:
    with pytest.raises(CollcError, match=r"C0587"):
        TwoLevel().run(problem(cluster([2, 3])))
    with pytest.raises(CollcError, match=r"C0587"):
        TwoLevel().run(problem(topology("torus(3, 3)")))
    with pytest.raises(CollcError, match=r"C0532"):
        TwoLevel(pipeline=65)
    whole = cluster([2, 2])
    alone = attrs.evolve(whole, **{c: getattr(whole, c)[whole.src != 0] for c in Topology.COLUMNS})
    for by in (TwoLevel().run, TwoLevel().pieces):
        with pytest.raises(CollcError, match=r"C0301"):
            by(problem(alone))
    with pytest.raises(CollcError, match=r"C0591"):
        TwoLevel().run(Problem(cluster([2, 2]), Collective("broadcast", 4, root=0)))
