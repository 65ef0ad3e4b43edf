"""Compiling the collectives of a specification again after faults of their networks."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.backends.base import Target
from collc.frontends.coll.faults import Broken, Fault, broken
from collc.ir.diagnostic import CollcError, error
from collc.ir.spec import CollectiveRequest, Spec
from collc.ir.topology import Topology

from ..driver.blocks import blocks_of
from ..driver.replanning import replan_collective, request_after
from ..driver.result import CollectiveResult, Observer, Settings
from ..driver.spans import span

__all__ = ["Replanner", "faults_of"]


def faults_of(given: Sequence[str | Fault] | str | Fault) -> tuple[Fault, ...]:
    """Return faults from objects and texts such as ``"without gpu[7, 5]"``; raise C0340 for other texts, and for none.

    >>> faults_of(["without link 0 -> 1", Fault("slow", "2 <-> 3", "1/2")])
    (Fault(kind='without', where='0 -> 1', rate=''), Fault(kind='slow', where='2 <-> 3', rate='1/2'))
    """
    listed = [given] if isinstance(given, (str, Fault)) else list(given)
    if not listed:
        hint = "name what is gone or slow: `without gpu[0, 2] -> ib`, `slow gpu[3, 1] <-> ib: 12.5 GB/s`"
        raise error("C0340", "found no fault", hint=hint, exit_status=2)
    return tuple(one if isinstance(one, Fault) else Fault.read(one) for one in listed)


class Replanner:
    """The collectives of a specification on its networks after some faults; ``spec`` is that after the faults.

    Raises what :func:`~collc.frontends.coll.faults.broken` raises for one of the networks, and C0343 for a collective
    that needs a rank that is gone.
    """

    def __init__(self, spec: Spec, names: Sequence[str], faults: Sequence[Fault]) -> None:
        self.networks = dict[str, Broken]()
        found: dict[int, tuple[Topology, Broken]] = {}
        collectives = dict(spec.collectives)
        for name in names:
            request = collectives[name]
            topology = request.problem.topology
            known = found.setdefault(id(topology), (topology, broken(topology, faults)))[1]
            self.networks[name] = known
            collectives[name] = _placed(request, known)
        after = {known.topology.name: known.topology for _, known in found.values()}
        self.spec = attrs.evolve(spec, topologies={**spec.topologies, **after}, collectives=collectives)
        self.blocks = blocks_of(self.spec, lambda request: True) if spec.together else {}

    def run(
        self, healthy: CollectiveResult, targets: Sequence[Target], settings: Settings,
        observer: Observer | None = None,
    ) -> CollectiveResult:  # fmt: skip
        """Return the result of a collective after the faults, of its result before."""
        request = self.spec.collectives[healthy.name]
        block = self.blocks.get(healthy.name)
        divided = request if block is None else block.divided(request)
        with span(f"{healthy.name} after faults", "collective"):
            return replan_collective(healthy, divided, self.networks[healthy.name], targets, settings, observer)


def _placed(request: CollectiveRequest, net: Broken) -> CollectiveRequest:
    """Return a request after faults; its mistakes have the place of the collective."""
    try:
        return request_after(request, net)
    except CollcError as mistake:
        diagnostics = [attrs.evolve(one, span=one.span or request.span) for one in mistake.diagnostics]
        raise CollcError(diagnostics, mistake.exit_status) from None
