"""Models of libraries' own algorithms: who hears of whom, closed forms, and the fastest on both sides of borders."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest

from collc.backends.builtin_rules import LIBRARIES
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.selection.builtin import builtin_times, choose_builtins
from collc.selection.builtin_messages import MODELS, Exchange
from collc.selection.measure import Model
from collc.selection.options import Auto

POWERS_ONLY = ("recursive doubling allgather", "scatter, recursive doubling broadcast")


def problem(net: str, kind: str, root: int | None = None, **more: int) -> Problem:
    found = topology(net)
    return Problem(found, Collective(kind, found.num_ranks, root, **more))


def heard(steps: list[Exchange], ranks: int) -> list[set[int]]:
    """Return of whom each rank has heard at the end."""
    known = [{rank} for rank in range(ranks)]
    for step in steps:
        before = [set(one) for one in known]
        for src, dst, _ in step.messages:
            known[dst] |= before[src]
    return known


def is_enough(kind: str, known: list[set[int]]) -> bool:
    """Whether ranks that have heard of these can have the result of a collective."""
    ranks = set(range(len(known)))
    if kind == "broadcast":
        return all(0 in one for one in known)
    return known[0] == ranks if kind == "reduce" else all(one == ranks for one in known)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 7, 8, 12])
def test_data_reach_every_rank_that_needs_them(name: str, ranks: int) -> None:
    if (name in POWERS_ONLY and ranks & (ranks - 1)) or (name.startswith("neighbor") and ranks % 2):
        return
    steps, kind = list(MODELS[name](ranks)), name.split()[-1]
    assert is_enough(kind, heard(steps, ranks))
    got = [sum(share for step in steps for _, dst, share in step.messages if dst == rank) for rank in range(ranks)]
    least = {
        "allreduce": Fraction(1),
        "broadcast": Fraction(1),
        "reduce": Fraction(0),
        "reduce-scatter": Fraction(1, ranks),
    }
    floor = least.get(kind, Fraction(ranks - 1, ranks))
    assert all(one >= floor for one in got[1:]), "less than what the collective needs"


@pytest.mark.parametrize("name", MODELS)
def test_messages_that_are_left_out_are_noticed(name: str) -> None:
    steps, kind = list(MODELS[name](4)), name.split()[-1]
    for rank in [0] if kind == "reduce" else [1, 3]:
        fewer = [attrs.evolve(step, messages=[one for one in step.messages if one[1] != rank]) for step in steps]
        assert not is_enough(kind, heard(fewer, 4))


@pytest.mark.parametrize(
    ("name", "kind", "steps", "share"),
    [
        ("recursive doubling allreduce", "allreduce", 3, Fraction(3)),
        ("rabenseifner allreduce", "allreduce", 6, Fraction(7, 4)),
        ("ring allreduce", "allreduce", 14, Fraction(7, 4)),
        ("bruck allgather", "allgather", 3, Fraction(7, 8)), ("ring allgather", "allgather", 7, Fraction(7, 8)),
        ("neighbor exchange allgather", "allgather", 4, Fraction(7, 8)),
        ("pairwise alltoall", "alltoall", 7, Fraction(7, 8)), ("bruck alltoall", "alltoall", 3, Fraction(3, 2)),
        ("scatter, ring broadcast", "broadcast", 10, Fraction(7, 4)),
        ("linear broadcast", "broadcast", 7, Fraction(7)), ("binomial broadcast", "broadcast", 3, Fraction(3)),
        ("rabenseifner reduce", "reduce", 6, Fraction(7, 4)), ("binomial reduce", "reduce", 3, Fraction(3)),
        ("recursive halving reduce-scatter", "reduce-scatter", 3, Fraction(7, 8)),
    ],
)  # fmt: skip
def test_closed_forms(name: str, kind: str, steps: int, share: Fraction) -> None:
    """Eight ranks, a link for each pair: the latencies, and the share of M that passes a link, as in the papers."""
    net = "complete(8)"
    found = problem(net, kind, 0 if kind in ("broadcast", "reduce") else None)
    builtin = next(
        one for of in LIBRARIES.values() for entry in of[kind] for one in entry.algorithms if one.model == name
    )
    times = builtin_times(found, builtin, Model.of(Auto()))
    ring = next(one for one in LIBRARIES["openmpi"]["allgather"][0].algorithms if one.model == "ring allgather")
    unit = builtin_times(problem(net, "allgather"), ring, Model.of(Auto()))
    assert times.at(0) * 7 == unit.at(0) * steps
    assert times.slope[-1] * Fraction(7, 8) == unit.slope[-1] * share


@pytest.mark.parametrize("library", ["openmpi", "ucc"])
@pytest.mark.parametrize("net", ["torus(4)", "torus(3, 3)", "dgx_a100(2)"])
def test_the_choice_is_the_fastest_on_both_sides_of_every_border(library: str, net: str) -> None:
    model = Model.of(Auto())
    kinds = {kind: 0 if kind in ("broadcast", "reduce") else None for kind in LIBRARIES[library]}  # type: ignore[index]
    problems = [(kind, problem(net, kind, root)) for kind, root in kinds.items()]
    chosen, _ = choose_builtins(problems, library)  # type: ignore[arg-type]
    for choice in chosen:
        found, ranks = dict(problems)[choice.tuning.name], choice.tuning.collective.num_ranks
        fitting = [one for one in choice.entry.algorithms if one.takes(ranks, found.collective.root)]
        times = {one.name: builtin_times(found, one, model) for one in fitting}
        for size in {0, 1, 1 << 40, *(low + k for low in choice.tuning.borders for k in (-1, 0, 1))}:
            best = min(one.at(size) for one in times.values())
            assert times[choice.tuning.at(size).algorithm].at(size) == best


def test_what_is_left_and_what_is_refused() -> None:
    chosen, left = choose_builtins([("a", problem("torus(4)", "allreduce")), ("g", problem("torus(4)", "gather", 0))],
                                   "openmpi")  # fmt: skip
    assert [one.tuning.name for one in chosen] == ["a"] and "gather has a model" in left[0].reason
    with pytest.raises(CollcError, match="C0740"):
        choose_builtins([("g", problem("torus(4)", "gather", 0))], "ucc")
    with pytest.raises(CollcError, match="C0741"):
        choose_builtins([(name, problem("torus(4)", "allreduce")) for name in "ab"], "ucc")
    odd, _ = choose_builtins([("a", problem("torus(5)", "allgather"))], "openmpi")
    assert any("neighbor exchange" in note for note in odd[0].tuning.notes if note.startswith("not chosen"))
