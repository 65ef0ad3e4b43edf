"""The operations that schedulers accept."""

from __future__ import annotations

from collc.ir.collective import Collective
from collc.ir.connectivity import not_connected
from collc.ir.diagnostic import Subject, error
from collc.ir.topology import Topology

__all__ = ["require_commutative", "require_routes"]


def require_commutative(scheduler: str, collective: Collective) -> None:
    """Raise C0593 for an operation that needs contributions in the order of ranks.

    Exchanges combine ranks that are no interval: after two steps of Swing, rank 0 of 8 has 0, 1, 6 and 7. Trees combine
    contributions as they arrive.
    """
    if collective.ordered and collective.num_ranks > 1:
        raise error(
            "C0593",
            f"no scheduler combines contributions in the order of ranks, as `op: {collective.op}` needs",
            notes=["all schedulers assume a commutative operation: they combine in the order of arrival"],
            hint="gather the contributions (`allgather`, `gather`) and combine them on the receiving ranks",
            exit_status=3,
            option="op",
            about=(Subject.COLLECTIVE,),
        )


def require_routes(topology: Topology, collective: Collective) -> None:
    """Raise C0301 unless there are the routes that a collective needs: from or to its root, else between all ranks."""
    kind, root = collective.kind, collective.root
    if root is None:
        topology.require_connected(kind)
        return
    outward = kind in ("broadcast", "scatter")
    hops = topology.hops_from(root) if outward else topology.hops_to(root)
    if (hops[: topology.num_ranks] < 0).any():
        need = f"{kind} needs a route {'from its root to' if outward else 'to its root from'} every rank"
        raise not_connected(topology, need, root, outward)
