"""The collective that a plan performs: what its name says, or what it may be."""

from __future__ import annotations

from collections.abc import Iterator

from collc.ir.collective import CUSTOM, ROOTED, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.one_sided.opcodes import PACKET_READS, SIGNALS, WAITS, Op

from .model import KINDS, OPS, Gpu, Plan, PlanOp

__all__ = ["candidates"]

#: the name of a plan in which every rank sends its input to one peer; the format does not say to which
_SENDRECV = "sendrecv"


def candidates(plan: Plan, named: str | Collective | None = None) -> list[Collective]:
    """Return the collectives that a plan may perform, the likeliest first: one for each root of a rooted one.

    ``named`` is the collective of a plan whose name says nothing, or one to be performed in any case. Raises C0687 for
    a name that says nothing, without ``named``.
    """
    ranks = len(plan.gpus)
    if isinstance(named, Collective):
        return [named]
    name = named or plan.collective
    if name == _SENDRECV:
        return list(dict.fromkeys(_shift(ranks, step) for step in (1, ranks - 1)))
    kind = KINDS.get(name, name)
    if kind not in KINDS.values():
        hint = nearest(name, (*KINDS, *KINDS.values())) or f"`--collective` says which: {', '.join(KINDS.values())}"
        raise error("C0687", f"found collective `{name[:80]}`, which does not say what the plan performs", hint=hint)
    if kind not in ROOTED:
        return [Collective(kind, ranks)]
    sink = kind in ("reduce", "gather")
    likely = sorted(range(ranks), key=lambda rank: (_counts(plan.gpus[rank], sends=sink), rank))
    return [Collective(kind, ranks, root=root) for root in likely]


def _shift(ranks: int, step: int) -> Collective:
    """Return the collective in which every rank sends its input to the rank ``step`` after it."""
    return Collective(CUSTOM, ranks, pre=tuple(range(ranks)), post=tuple(((r + step) % ranks,) for r in range(ranks)))


def _counts(gpu: Gpu, sends: bool) -> int:
    """Return how often a rank sends to others, or waits for them: the root of a broadcast seldom waits."""
    found = 0
    for op in _all(gpu):
        code = OPS.get(op.name)
        if code is not None:
            found += bool(any(item.remote >= 0 for item in op.dst) or SIGNALS[code]) if sends else _waits(code)
    return found


def _waits(code: Op) -> bool:
    return bool(PACKET_READS[code]) or (bool(WAITS[code]) and code is not Op.RLXWAIT)


def _all(gpu: Gpu) -> Iterator[PlanOp]:
    for block in gpu.blocks:
        for op in block.ops:
            yield op
            yield from op.inner
