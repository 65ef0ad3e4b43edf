"""What must be where before and after: the collectives, for every rank and every piece of data.

The data are *shards* of equal size M/N (N ranks). Shard v belongs to rank v; an alltoall has a shard s*N+t
for every pair of ranks. What a rank holds of a shard is a *value*: the set of ranks whose contributions
have been combined in it.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from .diagnostic import error, nearest

__all__ = ["IDEMPOTENT", "KINDS", "OPERATIONS", "ORDERED", "REVERSED", "ROOTED", "Collective"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Every collective by the name the language has for it.
KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "alltoall")
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
_REDUCING = frozenset({"reduce-scatter", "allreduce", "reduce"})

#: Every operation by the name the language has for it. ``user`` is a user's own, whose operands may change places;
#: ``ordered`` one whose may not, so that contributions must be combined in the order of ranks.
OPERATIONS = (
    "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor", "user", "ordered",
)  # fmt: skip
#: Operations to which a contribution that comes twice makes no difference.
IDEMPOTENT = frozenset({"min", "max", "band", "bor", "land", "lor"})
ORDERED = frozenset({"ordered"})

#: Running a schedule backwards (Definition 5 of the direct-connect paper) turns one collective into another.
REVERSED = {
    "allgather": "reduce-scatter", "reduce-scatter": "allgather", "broadcast": "reduce", "reduce": "broadcast",
}  # fmt: skip

_EVERYONE, _OWNER, _ROOT, _SOURCE, _TARGET, _NOBODY = (
    "everyone",
    "owner",
    "root",
    "source",
    "target",
    "nobody",
)

#: kind -> (who has a shard before, who must have it after)
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

    ``size`` is M in bytes (the whole vector: all shards together; for alltoall what one rank sends), where the
    request named one; ``op`` and ``dtype`` are what the request named.
    """

    kind: str
    num_ranks: int
    root: int | None = None
    size: int | None = None
    op: str = "sum"
    dtype: str = "float32"

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
        return self.num_ranks**2 if self.kind == "alltoall" else self.num_ranks

    @property
    def reduces(self) -> bool:
        """Whether the result combines the contributions of all ranks."""
        return self.kind in _REDUCING

    @property
    def idempotent(self) -> bool:
        """Whether the result combines contributions by an operation that takes them more than once."""
        return self.reduces and self.op in IDEMPOTENT

    @property
    def ordered(self) -> bool:
        """Whether the result combines contributions by an operation that needs them in the order of ranks."""
        return self.reduces and self.op in ORDERED

    def holds(self, ranks: Any, shards: Any) -> Array:
        """Return whether each rank has (its contribution to) each shard at the start; the arrays broadcast."""
        return self._is(_PLACES[self.kind][0], ranks, shards)

    def wants(self, ranks: Any, shards: Any) -> Array:
        """Return whether each rank must have the finished shard at the end; the arrays broadcast."""
        return self._is(_PLACES[self.kind][1], ranks, shards)

    def source(self, shard: int) -> int | None:
        """Return the one rank whose contribution the finished shard is, or nothing where all contribute."""
        if self.reduces:
            return None
        if self.root is not None and self.kind in ("broadcast", "scatter"):
            return self.root
        return shard // self.num_ranks if self.kind == "alltoall" else shard

    def input_slots(self, ranks: Any, shards: Any) -> Array:
        """Return where in the rank's input buffer each shard lies, counted in shards, or -1 where it does not."""
        return self._slots(_PLACES[self.kind][0], ranks, shards)

    def output_slots(self, ranks: Any, shards: Any) -> Array:
        """Return where in the rank's output buffer each shard lies, counted in shards, or -1 where it does not."""
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
        """Return the collective that a reversed schedule performs (Theorem 1); allreduce is its own."""
        if self.kind == "allreduce":
            return self
        if self.kind not in REVERSED:
            raise error(
                "C0205",
                f"a schedule of `{self.kind}` cannot be reversed into another collective",
                notes=[f"reversible: allreduce, {', '.join(REVERSED)}"],
            )
        return attrs.evolve(self, kind=REVERSED[self.kind])

    def _is(self, who: str, ranks: Any, shards: Any) -> Array:
        ranks, shards = np.broadcast_arrays(np.asarray(ranks, dtype=np.int64), np.asarray(shards, dtype=np.int64))
        match who:
            case "everyone":
                return np.ones(ranks.shape, dtype=bool)
            case "owner":
                return ranks == shards
            case "root":
                return ranks == self.root
            case "source":
                return ranks == shards // self.num_ranks
            case _:
                return ranks == shards % self.num_ranks

    def _slots(self, who: str, ranks: Any, shards: Any) -> Array:
        shards = np.asarray(shards, dtype=np.int64)
        slot = {
            _OWNER: shards * 0, _SOURCE: shards % self.num_ranks, _TARGET: shards // self.num_ranks,
        }.get(who, shards)  # fmt: skip
        return np.where(self._is(who, ranks, shards), slot, -1)
