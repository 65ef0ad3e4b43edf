"""The operations that schedulers accept."""

from __future__ import annotations

from collc.ir.collective import Collective
from collc.ir.diagnostic import error

__all__ = ["require_commutative"]


def require_commutative(scheduler: str, collective: Collective) -> None:
    """Raise C0593 for an operation that needs contributions in the order of ranks.

    Exchanges combine ranks that are no interval: after two steps of Swing, rank 0 of 8 has 0, 1, 6 and 7. Trees combine
    contributions as they arrive.
    """
    if collective.ordered and collective.num_ranks > 1:
        raise error(
            "C0593",
            f"{scheduler} does not combine contributions in the order of ranks, as `op: {collective.op}` needs",
            notes=["no scheduler does: all assume a commutative operation"],
            hint="gather the contributions (`allgather`, `gather`) and combine them on the receiving ranks",
            exit_status=3,
        )
