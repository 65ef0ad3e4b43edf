"""``pre`` and ``post`` of custom collectives: the rank that has each shard before, the ranks that need it after."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.frozen import frozen
from collc.ir.shown import counted
from collc.ir.topology import Topology

from . import ast
from .expressions import NODE, Compiler, integer
from .lists import Item, flat, listed
from .scope import Scope
from .values import Switch, Value
from .weights import Weights

__all__ = ["Conditions", "conditions", "neighbours"]

#: The most shards of a custom collective.
_MOST_SHARDS = 1 << 20


@frozen
class Conditions:
    """The conditions of a custom collective, with its weights if its shards differ in size."""

    pre: tuple[int, ...]
    post: tuple[tuple[int, ...], ...]
    weights: Weights | None = None

    def among(self, members: tuple[int, ...] | None) -> Conditions:
        """Return the conditions for the ranks that are ``members``, where these are of their places."""
        if members is None:
            return self
        post = tuple(tuple(members[place] for place in places) for places in self.post)
        return attrs.evolve(self, pre=tuple(members[place] for place in self.pre), post=post)


def conditions(pre: ast.Option, post: ast.Option, count: int, scope: Scope, compiler: Compiler) -> Conditions:
    """Return the conditions of shards on ``count`` ranks; raise C0216 if they do not fit each other or the ranks."""
    assert not isinstance(pre.value, ast.Word) and not isinstance(post.value, ast.Word)
    what, hint = "a list of ranks such as `{0, 1, 2}`", "one rank has a shard before"
    before = [
        _rank(value, span, count, scope)
        for value, span in flat(listed(pre.value, scope, compiler, NODE, what), "a rank", hint)
    ]
    after = [
        _ranks(item, count, scope)
        for item in listed(post.value, scope, compiler, NODE, "a list of ranks, or of lists of ranks")
    ]
    if len(before) != len(after) or not before:
        message = f"found {counted(len(after), 'shard')}, needed {max(len(before), 1)} as in `pre`"
        hint = "`post` has a rank, or ranks in braces, for each shard: `{1, {0, 2}, 0}`"
        raise error("C0216", message, span=post.value.span, hint=hint)
    if len(before) > _MOST_SHARDS:
        raise error("C0216", f"found {len(before)} shards, needed at most {_MOST_SHARDS}", span=pre.value.span)
    return Conditions(tuple(before), tuple(after))


def _rank(value: Value, span: Span | None, count: int, scope: Scope) -> int:
    if isinstance(value, str):
        value = scope.node_named(value, span)
    if isinstance(value, Switch):
        raise error("C0216", "found a switch, needed a rank", span=span, hint="only ranks have data")
    rank = integer(value, span, "a rank")
    if not 0 <= rank < count:
        hint = "on a ring write `(r + 1) mod ranks`" if rank in (-1, count) else f"the last rank is {count - 1}"
        raise error("C0216", f"found rank {rank}: ranks are 0 to {count - 1}", span=span, hint=hint)
    return rank


def _ranks(item: Item, count: int, scope: Scope) -> tuple[int, ...]:
    """Return the ranks that need a shard, ascending; none for a shard that no rank needs."""
    if not isinstance(item.value, tuple):
        return (_rank(item.value, item.span, count, scope),)
    ranks: set[int] = set()
    for value, span in flat(item.value, "a rank", "a list of ranks stands for one shard"):
        rank = _rank(value, span, count, scope)
        if rank in ranks:
            raise error("C0216", f"found rank {rank} twice for one shard", span=span, hint="list it once")
        ranks.add(rank)
    return tuple(sorted(ranks))


def neighbours(topology: Topology, members: tuple[int, ...] | None, span: Span | None) -> Conditions:
    """Return the conditions of a shard for each link between ranks, by source, then by target.

    Raises C0216 if no link joins two ranks that take part.
    """
    last = topology.num_ranks
    ends = np.stack([topology.src, topology.dst], axis=1)
    ends = ends[(ends < last).all(axis=1)]
    if members is not None:
        ends = ends[np.isin(ends, members).all(axis=1)]
    if not len(ends):
        raise _no_neighbours(topology, members, span)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    return Conditions(tuple(ends[:, 0].tolist()), tuple((target,) for target in ends[:, 1].tolist()))


def _no_neighbours(topology: Topology, members: tuple[int, ...] | None, span: Span | None) -> CollcError:
    noun = "ranks" if members is None else "members"
    message = f"found no link between two {noun} of `{topology.name}`, needed one for each shard"
    hint = "list the pairs: `custom on .. { pre: {0, 0}, post: {1, 8} }`"
    return error("C0216", message, span=span, hint=hint)
