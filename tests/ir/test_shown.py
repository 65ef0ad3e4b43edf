"""A ``repr`` is one short line, whatever an object holds and whoever named it; nothing else depends on it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
import strategies
from every_family import EXPRESSIONS
from hypothesis import given

import collc
from collc.ir.diagnostic import CollcError, Diagnostic, Source, Span, error
from collc.ir.frozen import frozen
from collc.ir.shown import brief, clipped
from collc.ir.text import parse_ir, print_ir

MOST = 200
LONG = "a\x1b[31m\n" * 1000

COMPILED = (
    "collective c = allreduce on torus(3, 3);",
    "collective c = alltoall on mesh(2, 3);",
    "collective c = allgather on dgx_a100(2); schedule c using forest;",
    "collective c = broadcast on biring(5) { root: 1 };",
    "collective c = allreduce on biring(4); schedule c using auto { sizes: all };",
)


def flaw(found: object) -> str:
    """Return the ``repr`` of an object if it is too long or breaks a line, else nothing."""
    text = repr(found)
    return "" if len(text) <= MOST and text.isprintable() else text


def reachable(found: object, seen: set[int]) -> Iterator[object]:
    """Yield collc's own objects that are reachable through the fields of others, each once."""
    if id(found) in seen:
        return
    seen.add(id(found))
    if isinstance(found, (tuple, list)):
        inside = list(found)
    elif isinstance(found, dict):
        inside = list(found.values())
    elif type(found).__module__.startswith("collc.") and attrs.has(type(found)):
        yield found
        inside = [getattr(found, field.name) for field in attrs.fields(type(found))]
    else:
        return
    for one in inside:
        yield from reachable(one, seen)


@given(strategies.levels())
def test_levels_are_short_and_their_text_is_whole(level: object) -> None:
    assert not flaw(level)
    assert parse_ir(print_ir(level)) == level  # type: ignore[arg-type]


@pytest.mark.parametrize("family", EXPRESSIONS)
def test_topologies_of_every_family_are_short(family: str) -> None:
    for expression in EXPRESSIONS[family][:2]:
        topology = collc.topology(expression)
        assert not flaw(topology) and not flaw(topology.origin)
        assert f"{topology.num_ranks} rank" in repr(topology)


@pytest.mark.parametrize("text", COMPILED)
def test_all_that_a_result_holds_is_short(text: str) -> None:
    result = collc.compile_source(text, target="ir")
    one = result["c"]
    seen = set[int]()
    found = [o for start in (result, one.cost, one.simulate().simulation, one.program) for o in reachable(start, seen)]
    names = {type(o).__name__ for o in found}
    assert {"Result", "CollectiveResult", "Topology", "Collective", "Artifact", "Report", "Cost", "Bound"} <= names
    assert [] == [flaw(o) for o in found if flaw(o)]


def test_what_the_finder_returns_is_short() -> None:
    found = collc.find(nodes=64, degree=4)
    assert [] == [flaw(o) for o in reachable(found, set()) if flaw(o)]
    assert repr(found).startswith("Frontier(64 nodes, degree 4: ")


def test_results_say_what_they_are() -> None:
    result = collc.compile_source("topology pod = torus(3, 3); collective grads = allreduce on pod;", target="ir")
    assert "Result(grads: allreduce on pod, 9 ranks, bfb, T_L 4, T_B 16/9)" == repr(result)
    assert "CollectiveResult(grads: allreduce on pod, 9 ranks, bfb, T_L 4, T_B 16/9)" == repr(result["grads"])
    assert "Topology(pod: 9 ranks, 36 links)" == repr(result.spec.topologies["pod"])


def test_mistakes_are_short() -> None:
    source = Source(LONG, LONG)
    wrong = Diagnostic("C0101", LONG, span=Span(source, 1, 1, 1, 2), notes=(LONG,), hint=LONG)
    for found in (wrong, source, wrong.span, CollcError([wrong, wrong]), CollcError([]), error("C0101", "short")):
        assert not flaw(found)
    assert "CollcError(error: short [C0101])" == repr(error("C0101", "short"))
    assert repr(CollcError([wrong, wrong])).startswith("CollcError(2 diagnostics: ")


@frozen
class Holder:
    """A class without a ``repr`` of its own."""

    value: object


@pytest.mark.parametrize(
    "value", [LONG, tuple(range(10**5)), dict.fromkeys(range(100), LONG), [LONG] * 9, Holder(LONG)]
)
def test_generic_representations_are_short(value: object) -> None:
    assert not flaw(Holder(value))


def test_short_values_are_whole() -> None:
    assert "Holder(value=(1, 'a'))" == repr(Holder((1, "a")))
    assert ("{'a': 1}", "'x'") == (brief({"a": 1}), brief("x"))
    assert clipped("x" * 40) == "x" * 40 and len(clipped("x" * 41)) == 40
