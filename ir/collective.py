"""Collectives: the shards that every rank has before, and must have after.

The data are *shards* of equal size M/N (N ranks). Shard v belongs to rank v; an alltoall has a shard s*N+t for
every pair of ranks. A rank's *value* of a shard is the set of ranks whose contributions are combined in it.
"""

from __future__ import annotations

import attrs
import numpy as np

from .arrays import Array
from .diagnostic import error, nearest
from .shown import brief_fields

__all__ = ["IDEMPOTENT", "KINDS", "OPERATIONS", "ORDERED", "REVERSED", "ROOTED", "Collective"]

#: Every collective by its name in the language.
KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "alltoall")
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
}


@attrs.frozen
class Collective:
    """One collective over ``num_ranks`` ranks.

    ``size`` is M in bytes (the whole vector: all shards together; of an alltoall, the data that one rank sends), or
    None if the request has no size. ``op`` and ``dtype`` are those of the request.
    """

    kind: str
    num_ranks: int
    root: int | None = None
    size: int | None = None
    op: str = "sum"
    dtype: str = "float32"

    __repr__ = brief_fields

    def __attrs_post_init__(self) -> None:
        if self.kind not in KINDS:
            raise error("C0201", f"unknown collective `{self.kind}`", hint=nearest(self.kind, KINDS))
        if self.num_ranks < 1:
            raise error("C0202", f"a collective needs at least 1 rank, found {self.num_ranks}")
        if (self.root is not None) != (self.kind in ROOTED):
            need = "needs a root" if self.kind in ROOTED else "has no root"
            raise error("C0203", f"collective `{self.kind}` {need}")
        if self.root is not None and not 0 <= self.root < self.num_ranks:
            raise error("C0204", f"root {self.root} is not a rank: ranks are 0 to {self.num_ranks - 1}")

    @property
    def num_shards(self) -> int:
        """Shards that the collective moves: N^2 in an alltoall, one from each rank to each, else N."""
        return self.num_ranks**2 if self.kind == "alltoall" else self.num_ranks

    @property
    def element_bytes(self) -> int:
        """Bytes of one element, by the type's name: 4 for ``float32``, 2 for ``bfloat16``."""
        return int(self.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8

    @property
    def reduces(self) -> bool:
        """Whether the result combines the contributions of all ranks."""
        return self.kind in _REDUCING

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

    def source(self, shard: int) -> int | None:
        """Return the one rank whose contribution the finished shard is; None if all contribute."""
        if self.reduces:
            return None
        if self.root is not None and self.kind in ("broadcast", "scatter"):
            return self.root
        return shard // self.num_ranks if self.kind == "alltoall" else shard

    def input_slots(self, ranks: Array | int, shards: Array | int) -> Array:
        """Return the offset of each shard in the rank's input buffer, in shards; -1 if it is not there."""
        return self._slots(_PLACES[self.kind][0], ranks, shards)

    def output_slots(self, ranks: Array | int, shards: Array | int) -> Array:
        """Return the offset of each shard in the rank's output buffer, in shards; -1 if it is not there."""
        return self._slots(_PLACES[self.kind][1], ranks, shards)

    @property
    def input_shards(self) -> int:
        """Shards in an input buffer (on ranks that have one)."""
        return 1 if self.kind in ("allgather", "gather") else self.num_ranks

    @property
    def output_shards(self) -> int:
        """Shards in an output buffer (on ranks that have one)."""
        return 1 if self.kind in ("reduce-scatter", "scatter") else self.num_ranks

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
        ranks, shards = np.broadcast_arrays(np.asarray(ranks, dtype=np.int64), np.asarray(shards, dtype=np.int64))
        match role:
            case "everyone":
                found: Array = np.ones(ranks.shape, dtype=bool)
            case "owner":
                found = ranks == shards
            case "root":
                found = ranks == self.root
            case "source":
                found = ranks == shards // self.num_ranks
            case _:
                found = ranks == shards % self.num_ranks
        return found

    def _slots(self, role: str, ranks: Array | int, shards: Array | int) -> Array:
        shards = np.asarray(shards, dtype=np.int64)
        slot = {
            _OWNER: shards * 0, _SOURCE: shards % self.num_ranks, _TARGET: shards // self.num_ranks,
        }.get(role, shards)  # fmt: skip
        return np.where(self._is(role, ranks, shards), slot, -1)
