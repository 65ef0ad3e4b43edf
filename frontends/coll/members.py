"""``among {0, 4, 8, 12}``: the ranks that take part in a collective."""

from __future__ import annotations

from itertools import pairwise

from collc.ir.diagnostic import Span, error
from collc.ir.topology import Topology

from . import ast
from .expressions import NODE, Compiler, integer
from .lists import flat, listed
from .scope import Scope, earlier
from .values import Switch, Value

__all__ = ["members", "rank_of"]

_LIST = "a list of ranks such as `{0, 4, 8}`"


def members(node: ast.Expr, topology: Topology, scope: Scope, compiler: Compiler) -> tuple[int, ...] | None:
    """Return the members, ascending; None if all ranks are. ``scope`` has the names of the topology's nodes.

    Raises C0215 for what is no rank, a member that is listed twice, or another order: member v is the v-th rank.
    """
    found = flat(listed(node, scope, compiler, NODE, _LIST), "a rank")
    ranks = [(rank_of(value, span, topology, scope, "C0215"), span) for value, span in found]
    if not ranks:
        raise error("C0215", "found no members, needed at least one", span=node.span, hint="leave `among` out for all")
    _require_ascending(ranks, node)
    return None if len(ranks) == topology.num_ranks else tuple(rank for rank, _ in ranks)


def _require_ascending(ranks: list[tuple[int, Span | None]], node: ast.Expr) -> None:
    places: dict[int, Span | None] = {}
    for rank, span in ranks:
        if rank in places:
            related = earlier(places[rank], "the first") if places[rank] != span else ()
            raise error("C0215", f"found member {rank} twice", span=span, hint="list it once", related=related)
        places[rank] = span
    for (before, _), (after, span) in pairwise(ranks):
        if after < before:
            message = f"found member {after} after member {before}, needed ascending ranks"
            hint = f"write `{_braces(sorted(places))}`: shard v belongs to the v-th member in the order of ranks"
            raise error("C0215", message, span=span or node.span, hint=hint)


def _braces(ranks: list[int]) -> str:
    return f"{{{', '.join(map(str, ranks[:8]))}{', ..' * (len(ranks) > 8)}}}"


def rank_of(value: Value, span: Span | None, topology: Topology, scope: Scope, code: str) -> int:
    """Return the rank that a number or the name of a node means; raise ``code`` if it is none."""
    if isinstance(value, str) and topology.node_names:
        value = scope.node_named(value, span)
    if isinstance(value, Switch):
        name = topology.names[topology.num_ranks + value.number]
        message = f"found `{name}`, a switch of `{topology.name}`, needed a rank"
        raise error(code, message, span=span, hint="only ranks have data; data cross switches anyway")
    rank = integer(value, span, "a rank")
    if not 0 <= rank < topology.num_ranks:
        message = f"found rank {rank}: ranks of `{topology.name}` are 0 to {topology.num_ranks - 1}"
        raise error(code, message, span=span, hint=f"ranks count from 0: the last is {topology.num_ranks - 1}")
    return rank
