"""Collectives: the shards that every rank has before, and must have after.

The data are *shards* of equal size M/N (N ranks). Shard v belongs to rank v; an alltoall has a shard s*N+t for
every pair of ranks. A rank's *value* of a shard is the set of ranks whose contributions are combined in it.

Three things may differ. Shards have *weights* if their sizes differ (``allgatherv``). A collective among *members* is
one of these g ranks: shard v belongs to the v-th member, and other ranks may only relay. A *custom* collective has any
shards: ``pre`` is the rank that has each of them before, ``post`` are the ranks that must have it after. If several
ranks contribute to some of its shards, it reduces: ``contributors`` are the ranks whose contributions each shard sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import attrs
import numpy as np

from .arrays import Array
from .diagnostic import error, nearest
from .shown import brief_named

__all__ = [
    "CUSTOM", "CUSTOM_REDUCTION", "IDEMPOTENT", "KINDS", "LARGEST_WEIGHT", "OPERATIONS", "ORDERED", "REVERSED",
    "ROOTED", "UNEVEN", "Collective", "preconditions",
]  # fmt: skip

#: Every collective by its name in the language.
KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "alltoall")
#: The kind of a collective that is described by its pre- and postcondition.
CUSTOM = "custom"
#: The name of a custom collective that reduces.
CUSTOM_REDUCTION = "custom-reduction"
#: kind -> the name of the collective whose shards differ in size
UNEVEN = {
    "allgather": "allgatherv", "reduce-scatter": "reduce-scatterv", "alltoall": "alltoallv", "gather": "gatherv",
    "scatter": "scatterv",
}  # fmt: skip
#: The largest weight of a shard.
LARGEST_WEIGHT = (1 << 53) - 1
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
_REDUCING = frozenset({"reduce-scatter", "allreduce", "reduce"})

#: Every operation by its name in the language. ``user`` is a user's own commutative operation; ``ordered`` is one that
#: is not commutative, so contributions must be combined in the order of ranks.
OPERATIONS = (
    "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor", "user", "ordered",
)  # fmt: skip
#: Operations for which repeated contributions do not matter.
IDEMPOTENT = frozenset({"min", "max", "band", "bor", "land", "lor"})
ORDERED = frozenset({"ordered"})

#: Running a schedule backwards (Definition 5 of the direct-connect paper) turns one collective into another.
REVERSED = {
    "allgather": "reduce-scatter", "reduce-scatter": "allgather", "broadcast": "reduce", "reduce": "broadcast",
}  # fmt: skip

_EVERYONE, _OWNER, _ROOT, _SOURCE, _TARGET = "everyone", "owner", "root", "source", "target"
_PRE, _POST = "pre", "post"

#: kind -> (the ranks that have a shard before, the ranks that must have it after)
_PLACES = {
    "allgather": (_OWNER, _EVERYONE),
    "reduce-scatter": (_EVERYONE, _OWNER),
    "allreduce": (_EVERYONE, _EVERYONE),
    "broadcast": (_ROOT, _EVERYONE),
    "reduce": (_EVERYONE, _ROOT),
    "gather": (_OWNER, _ROOT),
    "scatter": (_ROOT, _OWNER),
    "alltoall": (_SOURCE, _TARGET),
    CUSTOM: (_PRE, _POST),
}


@attrs.frozen
class Collective:
    """One collective over ``num_ranks`` ranks.

    ``size`` is M in bytes (the whole vector: all shards together; of an alltoall, the most data that one rank sends),
    or None if the request has no size. ``op`` and ``dtype`` are those of the request.

    ``weights`` are the relative sizes of the shards, one a shard; None: all are equal. ``members`` are the ranks that
    take part, ascending; None: all. ``pre`` and ``post`` are those of a custom collective, one entry a shard. If it
    reduces, ``contributors`` has the ranks whose contributions each shard combines, ascending, and ``pre`` the first.

    >>> Collective("allgather", 4, weights=(5, 0, 1, 2)).name, Collective("alltoall", 8, members=(0, 4)).num_shards
    ('allgatherv', 4)
    """

    kind: str
    num_ranks: int
    root: int | None = None
    size: int | None = None
    op: str = "sum"
    dtype: str = "float32"
    weights: tuple[int, ...] | None = None
    members: tuple[int, ...] | None = None
    pre: tuple[int, ...] | None = None
    post: tuple[tuple[int, ...], ...] | None = None
    contributors: tuple[tuple[int, ...], ...] | None = None

    def __repr__(self) -> str:
        """Return the class with its fields, without those that only some collectives have."""
        optional = ("weights", "members", "pre", "post", "contributors")
        rare = [name for name in optional if getattr(self, name) is not None]
        return brief_named(self, ["kind", "num_ranks", "root", "size", "op", "dtype", *rare])

    def __attrs_post_init__(self) -> None:
        if self.kind not in KINDS and self.kind != CUSTOM:
            raise error("C0201", f"unknown collective `{self.kind}`", hint=nearest(self.kind, KINDS))
        if self.num_ranks < 1:
            raise error("C0202", f"a collective needs at least 1 rank, found {self.num_ranks}")
        if (self.root is not None) != (self.kind in ROOTED):
            need = "needs a root" if self.kind in ROOTED else "has no root"
            raise error("C0203", f"collective `{self.kind}` {need}")
        if self.root is not None and not 0 <= self.root < self.num_ranks:
            raise error("C0204", f"root {self.root} is not a rank: ranks are 0 to {self.num_ranks - 1}")
        if self.members is not None:
            self._require_members(self.members)
        if (self.pre is not None) != (self.kind == CUSTOM) or (self.post is not None) != (self.kind == CUSTOM):
            raise error("C0216", f"a pre- and a postcondition are for collective `{CUSTOM}` only, which needs both")
        if self.pre is not None and self.post is not None:
            self._require_conditions(self.pre, self.post)
        if self.contributors is not None:
            self._require_contributors(self.contributors)
        if self.weights is not None:
            self._require_weights(self.weights)

    def _require_members(self, members: tuple[int, ...]) -> None:
        if not members or list(members) != sorted(set(members)) or not 0 <= members[0] <= members[-1] < self.num_ranks:
            raise error(
                "C0215", f"members are one or more of the ranks 0 to {self.num_ranks - 1}, each once, ascending"
            )
        if self.root is not None and self.root not in members:
            raise error("C0215", f"root {self.root} is not a member")
        if self.kind == CUSTOM:
            raise error("C0215", f"collective `{CUSTOM}` has no members: its conditions name the ranks")

    def _require_conditions(self, pre: tuple[int, ...], post: tuple[tuple[int, ...], ...]) -> None:
        if len(pre) != len(post) or not pre:
            raise error("C0216", f"found {len(pre)} shards before and {len(post)} after, needed as many, at least 1")
        for shard, (rank, ranks) in enumerate(zip(pre, post, strict=True)):
            if not all(0 <= one < self.num_ranks for one in (rank, *ranks)) or list(ranks) != sorted(set(ranks)):
                ok = f"ranks from 0 to {self.num_ranks - 1}, each once, ascending"
                raise error("C0216", f"shard {shard} is on {rank} before and on {list(ranks)} after, needed {ok}")

    def _require_contributors(self, contributors: tuple[tuple[int, ...], ...]) -> None:
        if self.pre != tuple(ranks[0] if ranks else -1 for ranks in contributors):
            raise error("C0216", "contributors are listed for each shard of a custom collective, that of `pre` first")
        for shard, ranks in enumerate(contributors):
            if list(ranks) != sorted(set(ranks)) or ranks[-1] >= self.num_ranks:
                ok = f"ranks from 0 to {self.num_ranks - 1}, each once, ascending"
                raise error("C0216", f"shard {shard} has contributions of {list(ranks)}, needed {ok}")
        if all(len(ranks) == 1 for ranks in contributors):
            raise error("C0216", "a collective with one contributor to each shard copies: leave out the contributors")

    def _require_weights(self, weights: tuple[int, ...]) -> None:
        if self.kind not in UNEVEN and self.kind != CUSTOM:
            raise error("C0217", f"collective `{self.kind}` has no weights", notes=[f"those with weights: {_UNEVEN}"])
        if len(weights) != self.num_shards:
            raise error("C0217", f"found {len(weights)} weights, needed {self.num_shards}, one for each shard")
        if not all(0 <= weight <= LARGEST_WEIGHT for weight in weights):
            raise error("C0217", f"weights are integers from 0 to {LARGEST_WEIGHT}")
        if not 0 < sum(weights) <= LARGEST_WEIGHT:
            raise error("C0217", f"found weights with sum {sum(weights)}, needed a sum from 1 to {LARGEST_WEIGHT}")

    @property
    def name(self) -> str:
        """The name of the collective in the language: its kind, with a final ``v`` if shards differ in size.

        A custom collective that reduces is a ``custom-reduction``.
        """
        if self.contributors is not None:
            return CUSTOM_REDUCTION
        return self.kind if self.weights is None else UNEVEN.get(self.kind, self.kind)

    @property
    def is_plain(self) -> bool:
        """Whether all ranks take part, all shards are equal, and the kind is one of :data:`KINDS`."""
        return self.weights is None and self.members is None and self.kind != CUSTOM

    @property
    def num_members(self) -> int:
        """Ranks that take part: g."""
        return self.num_ranks if self.members is None else len(self.members)

    @cached_property
    def ranks(self) -> Array:
        """The ranks that take part, ascending: shape (g,), read-only."""
        found = np.arange(self.num_ranks) if self.members is None else np.array(self.members, dtype=np.int64)
        found.flags.writeable = False
        return found

    @cached_property
    def places(self) -> Array:
        """The place of each rank among the members, -1 if it is none: shape (num_ranks,), read-only."""
        found = np.full(self.num_ranks, -1, dtype=np.int64)
        found[self.ranks] = np.arange(self.num_members)
        found.flags.writeable = False
        return found

    @property
    def num_shards(self) -> int:
        """Shards that the collective moves: g^2 in an alltoall of g ranks, one from each to each, else g; of a custom
        collective, as many as it lists.
        """
        if self.pre is not None:
            return len(self.pre)
        return self.num_members**2 if self.kind == "alltoall" else self.num_members

    @cached_property
    def weight(self) -> Array:
        """The weight of each shard: shape (shards,), read-only; 1 if all are equal."""
        found = np.ones(self.num_shards, np.int64) if self.weights is None else np.array(self.weights, dtype=np.int64)
        found.flags.writeable = False
        return found

    @cached_property
    def whole(self) -> int:
        """M in units of a shard of weight 1: all shards together; of an alltoall, the most that one rank sends."""
        if self.weights is None:
            return self.num_members if self.pre is None else len(self.pre)
        if self.kind != "alltoall":
            return sum(self.weights)
        g = self.num_members
        return max(sum(self.weights[source * g : (source + 1) * g]) for source in range(g))

    @property
    def element_bytes(self) -> int:
        """Bytes of one element, by the type's name: 4 for ``float32``, 2 for ``bfloat16``."""
        return int(self.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8

    @property
    def reduces(self) -> bool:
        """Whether the result combines the contributions of several ranks."""
        return self.kind in _REDUCING or self.contributors is not None

    @property
    def idempotent(self) -> bool:
        """Whether the result combines contributions by an operation for which repeated ones do not matter."""
        return self.reduces and self.op in IDEMPOTENT

    @property
    def ordered(self) -> bool:
        """Whether the result combines contributions by an operation that needs them in the order of ranks."""
        return self.reduces and self.op in ORDERED

    def holds(self, ranks: Array | int, shards: Array | int) -> Array:
        """Return whether each rank has (its contribution to) each shard at the start; the arrays broadcast."""
        return self._is(_PLACES[self.kind][0], ranks, shards)

    def wants(self, ranks: Array | int, shards: Array | int) -> Array:
        """Return whether each rank must have the finished shard at the end; the arrays broadcast."""
        return self._is(_PLACES[self.kind][1], ranks, shards)

    @cached_property
    def holders(self) -> Array:
        """The rank that has each shard at the start: shape (shards,), read-only; -1 if several contribute to it."""
        shards = np.arange(self.num_shards)
        match _PLACES[self.kind][0]:
            case "everyone":
                found = np.full(len(shards), -1)
            case "root":
                found = np.full(len(shards), self.root)
            case "source":
                found = self.ranks[shards // self.num_members]
            case "pre" if self.contributors is not None:
                found = np.array([-1 if len(ranks) > 1 else ranks[0] for ranks in self.contributors], dtype=np.int64)
            case "pre":
                found = np.array(self.pre, dtype=np.int64)
            case _:
                found = self.ranks[shards].copy()
        found.flags.writeable = False
        return found

    def source(self, shard: int) -> int | None:
        """Return the one rank whose contribution the finished shard is; None if several contribute."""
        return None if self.kind in _REDUCING or self.holders[shard] < 0 else int(self.holders[shard])

    def contributions(self, shard: int) -> tuple[int, ...]:
        """Return the ranks whose contributions the finished shard combines, ascending.

        >>> Collective("custom", 3, pre=(0,), post=((2,),), contributors=((0, 1),)).contributions(0)
        (0, 1)
        """
        if self.contributors is not None:
            return self.contributors[shard]
        return tuple(self.ranks.tolist()) if self.kind in _REDUCING else (int(self.holders[shard]),)

    @cached_property
    def contribution_counts(self) -> Array:
        """How many ranks contribute to each shard: shape (shards,), read-only."""
        found = np.full(self.num_shards, self.num_members if self.kind in _REDUCING else 1)
        if self.contributors is not None:
            found = np.array([len(ranks) for ranks in self.contributors])
        found.flags.writeable = False
        return found

    def moved(self, shards: Array | int, move: Callable[[Array], Array]) -> Array:
        """Return the images of shards if ``move`` gives those of ranks, all of which take part: of an all-to-all, the
        shard from the one rank's image to the other's.
        """
        shards = np.asarray(shards, dtype=np.int64)
        if self.kind != "alltoall":
            return move(shards)
        source, target = np.divmod(shards, self.num_ranks)
        image: Array = move(source) * self.num_ranks + move(target)
        return image

    def pair(self, shard: int) -> tuple[int, int]:
        """Return the ranks that a shard of an alltoall is from and to."""
        source, target = divmod(shard, self.num_members)
        return int(self.ranks[source]), int(self.ranks[target])

    def input_slots(self, ranks: Array | int, shards: Array | int) -> Array:
        """Return the offset of each shard in the rank's input buffer, in shards; -1 if it is not there."""
        return self._slots(_PLACES[self.kind][0], ranks, shards)

    def output_slots(self, ranks: Array | int, shards: Array | int) -> Array:
        """Return the offset of each shard in the rank's output buffer, in shards; -1 if it is not there."""
        return self._slots(_PLACES[self.kind][1], ranks, shards)

    def shards_at(self, rank: int, output: bool) -> Array:
        """Return the shards that a rank's input (or output) may contain: of an alltoall, those from it (or to it)."""
        if self.pre is not None:
            return np.flatnonzero(self._conditions[_POST if output else _PRE][rank] >= 0)
        if self.kind != "alltoall":
            return np.arange(self.num_members)
        g, place = self.num_members, int(self.places[rank])
        if place < 0:
            return np.arange(0)
        return np.arange(place, g * g, g) if output else np.arange(g) + place * g

    @property
    def input_shards(self) -> int:
        """Shards in an input buffer (on ranks that have one); of a custom collective, in the largest."""
        if self.pre is not None:
            return int(self._conditions[_PRE].max()) + 1
        return 1 if self.kind in ("allgather", "gather") else self.num_members

    @property
    def output_shards(self) -> int:
        """Shards in an output buffer (on ranks that have one); of a custom collective, in the largest."""
        if self.pre is not None:
            return int(self._conditions[_POST].max()) + 1
        return 1 if self.kind in ("reduce-scatter", "scatter") else self.num_members

    def buffer_shards(self, rank: int, output: bool) -> int:
        """Return the shards in a rank's input (or output) buffer; 0 if the collective gives it none."""
        if self.pre is not None:
            return int(self._conditions[_POST if output else _PRE][rank].max()) + 1
        role = _PLACES[self.kind][output]
        has_one = rank == self.root if role == _ROOT else self.places[rank] >= 0
        return (self.output_shards if output else self.input_shards) if has_one else 0

    def reversed(self) -> Collective:
        """Return the collective of the reversed schedule (Theorem 1); that of an allreduce is an allreduce."""
        if self.kind == "allreduce":
            return self
        if self.kind not in REVERSED:
            raise error(
                "C0205",
                f"a schedule of `{self.kind}` cannot be reversed into another collective",
                notes=[f"reversible: allreduce, {', '.join(REVERSED)}"],
            )
        return attrs.evolve(self, kind=REVERSED[self.kind])

    def _is(self, role: str, ranks: Array | int, shards: Array | int) -> Array:
        pairs = np.broadcast_arrays(np.asarray(ranks, dtype=np.int64), np.asarray(shards, dtype=np.int64))
        rank: Array = pairs[0]
        shard: Array = pairs[1]
        if self.members is not None and role != _ROOT:
            rank = self.places[rank]
        match role:
            case "everyone":
                found: Array = rank >= 0
            case "owner":
                found = rank == shard
            case "root":
                found = rank == self.root
            case "source":
                found = rank == shard // self.num_members
            case "target":
                found = rank == shard % self.num_members
            case _:
                found = self._conditions[role][rank, shard] >= 0
        return found

    def _slots(self, role: str, ranks: Array | int, shards: Array | int) -> Array:
        if role in (_PRE, _POST):
            ranks, shards = np.broadcast_arrays(np.asarray(ranks, dtype=np.int64), np.asarray(shards, dtype=np.int64))
            found: Array = self._conditions[role][ranks, shards]
            return found
        shards = np.asarray(shards, dtype=np.int64)
        slot = {
            _OWNER: shards * 0, _SOURCE: shards % self.num_members, _TARGET: shards // self.num_members,
        }.get(role, shards)  # fmt: skip
        return np.where(self._is(role, ranks, shards), slot, -1)

    @cached_property
    def _conditions(self) -> dict[str, Array]:
        """The slot of each shard in each rank's buffer before and after a custom collective, -1 if it is not there."""
        assert self.pre is not None and self.post is not None
        return {
            role: self._numbered(ranks)
            for role, ranks in ((_PRE, self.contributors or [(rank,) for rank in self.pre]), (_POST, self.post))
        }

    def _numbered(self, ranks_of: Sequence[tuple[int, ...]]) -> Array:
        """Return the slot of each shard on each rank: a rank's shards lie in ascending order. Shape (ranks, shards)."""
        there = np.zeros((self.num_ranks, self.num_shards), dtype=bool)
        for shard, ranks in enumerate(ranks_of):
            there[list(ranks), shard] = True
        found: Array = np.where(there, np.cumsum(there, axis=1) - 1, -1)
        return found


def preconditions(before: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...] | None]:
    """Return ``pre`` and ``contributors`` of the custom collective whose shards have these contributing ranks.

    >>> preconditions([(0,), (2,)]), preconditions([(0, 1), (2,)])
    (((0, 2), None), ((0, 2), ((0, 1), (2,))))
    """
    reduces = any(len(ranks) > 1 for ranks in before)
    return tuple(ranks[0] for ranks in before), tuple(before) if reduces else None


_UNEVEN = ", ".join(UNEVEN)
