"""``root: all`` and ``root: {0, 4}``: several roots of one collective."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.graph.rooted import roots_of
from collc.ir.node_names import printed, split_name
from collc.ir.roots import Roots
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from . import ast
from .expressions import NODE, Compiler
from .lists import flat, listed
from .members import rank_of
from .scope import Constant, Listing, Scope, earlier
from .values import Integers, Parts

__all__ = ["for_orbits", "is_several", "not_together", "roots"]

_LIST = "a list of ranks such as `{0, 4}`"


def is_several(value: ast.Expr | ast.Word, scope: Scope) -> bool:
    """Return whether the value of ``root`` is written as several roots."""
    match value:
        case ast.SetOf() | ast.Comprehension() | ast.Range():
            return True
        case ast.Name(name):
            found = scope.find(name)
            if found is None:
                return name == "all"
            return isinstance(found, Listing) or (
                isinstance(found, Constant) and isinstance(found.value, Integers | Parts | range)
            )
    return False


def roots(value: ast.Expr, topology: Topology, scope: Scope, compiler: Compiler) -> tuple[int, ...]:
    """Return the roots, ascending; ``scope`` has the names of the topology's nodes.

    Raises C0203 for none, and for one that is listed twice, C0204 for what is no rank.
    """
    if isinstance(value, ast.Name) and scope.find(value.name) is None:
        return tuple(range(topology.num_ranks))
    places: dict[int, Span | None] = {}
    for one, span in flat(listed(value, scope, compiler, NODE, _LIST), "a rank"):
        rank = rank_of(one, span, topology, scope, "C0204")
        if rank in places:
            related = earlier(places[rank], "the first") if places[rank] != span else ()
            raise error("C0203", f"found root {rank} twice", span=span, hint="list it once", related=related)
        places[rank] = span
    if not places:
        hint = "write `root: 0`, or `root: all` for every rank"
        raise error("C0203", "found no roots, needed at least one", span=value.span, hint=hint)
    return tuple(sorted(places))


def for_orbits(name: str, problem: Problem, listed: tuple[int, ...]) -> Iterator[tuple[str, Problem, Roots]]:
    """Yield a collective for each orbit of the roots: its name, with the root as an index if there are several."""
    found = roots_of(name, problem.topology, listed)
    family, indices = split_name(name)
    for root in found.planned:
        one = name if len(found.planned) == 1 else printed(family, (*indices, root))
        yield one, attrs.evolve(problem, collective=attrs.evolve(problem.collective, root=root)), found


def not_together(node: ast.Collective) -> CollcError:
    """Return the error C0203 for a list of roots in a ``together`` block."""
    items = node.options.items if node.options else ()
    span = next((one.value.span for one in items if one.name.text == "root"), node.span)
    hint = "declare it outside, or one collective for each root that is in use at the same time"
    return error("C0203", "found several roots, needed one rank in `together`", span=span, hint=hint)
