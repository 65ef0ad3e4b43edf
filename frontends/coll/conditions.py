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
    """The conditions of a custom collective, with its weights if its shards differ in size.

    ``before`` are the ranks that contribute to each shard: mostly the one that has it.
    """

    before: tuple[tuple[int, ...], ...]
    post: tuple[tuple[int, ...], ...]
    weights: Weights | None = None

    def among(self, members: tuple[int, ...] | None) -> Conditions:
        """Return the conditions for the ranks that are ``members``, where these are of their places."""
        if members is None:
            return self
        before, post = (
            tuple(tuple(members[place] for place in places) for places in one) for one in (self.before, self.post)
        )
        return attrs.evolve(self, before=before, post=post)


def conditions(pre: ast.Option, post: ast.Option, count: int, scope: Scope, compiler: Compiler) -> Conditions:
    """Return the conditions of shards on ``count`` ranks; raise C0216 if they do not fit each other or the ranks."""
    assert not isinstance(pre.value, ast.Word) and not isinstance(post.value, ast.Word)
    what = "a list of ranks, or of lists of ranks"
    before = [_contributors(item, count, scope) for item in listed(pre.value, scope, compiler, NODE, what)]
    after = [_ranks(item, count, scope) for item in listed(post.value, scope, compiler, NODE, what)]
    if len(before) != len(after) or not before:
        message = f"found {counted(len(after), 'shard')}, needed {max(len(before), 1)} as in `pre`"
        hint = "`post` has a rank, or ranks in braces, for each shard: `{1, {0, 2}, 0}`"
        raise error("C0216", message, span=post.value.span, hint=hint)
    if len(before) > _MOST_SHARDS:
        raise error("C0216", f"found {len(before)} shards, needed at most {_MOST_SHARDS}", span=pre.value.span)
    return Conditions(tuple(before), tuple(after))


def _contributors(item: Item, count: int, scope: Scope) -> tuple[int, ...]:
    """Return the rank that has a shard, or the ranks whose contributions are summed in it, ascending."""
    ranks = _ranks(item, count, scope)
    if not ranks:
        hint = "write the rank that has the shard, or the ranks whose contributions it sums"
        raise error("C0216", "found a shard that no rank has", span=item.span, hint=hint)
    return ranks


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
    before, after = (tuple((rank,) for rank in column) for column in ends.T.tolist())
    return Conditions(before, after)


def _no_neighbours(topology: Topology, members: tuple[int, ...] | None, span: Span | None) -> CollcError:
    noun = "ranks" if members is None else "members"
    message = f"found no link between two {noun} of `{topology.name}`, needed one for each shard"
    hint = "list the pairs: `custom on .. { pre: {0, 0}, post: {1, 8} }`"
    return error("C0216", message, span=span, hint=hint)
