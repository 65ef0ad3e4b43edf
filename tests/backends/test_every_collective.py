"""Every target either writes a collective, reads it back and compares it, or refuses it with a message."""

from __future__ import annotations

from itertools import product

import pytest
from sampling import every

import collc
from collc.backends import TARGETS
from collc.ir.diagnostic import CollcError

WEIGHTS = "weights: {5, 0, 1, 2, 3, 1, 0, 2}"
COLLECTIVES = {
    "allgatherv": f"allgatherv on pod {{ {WEIGHTS} }}",
    "reduce-scatterv": f"reduce-scatterv on pod {{ {WEIGHTS} }}",
    "alltoallv": "alltoallv on pod { matrix: {{(s + 2 * t) mod 3 for t in 0..8} for s in 0..8} }",
    "gatherv": f"gatherv on pod {{ {WEIGHTS}, root: 2 }}",
    "scatterv": f"scatterv on pod {{ {WEIGHTS}, root: 2 }}",
    "allgather among": "allgather on pod among {0, 2, 4, 6}",
    "allreduce among": "allreduce on pod among {1, 3}",
    "alltoall among": "alltoall on pod among {0..4}",
    "custom": "shift on pod",
    "neighbours": "neighbours on pod",
}
#: what a target needs besides to write files of a network like this
OPTIONS = {"msccl-xml": ("", "runtime=msccl", "runtime=rccl"), "nccl-tuner": ("nodes=1",), "nccl-graph": ("node=8",)}
NETWORK = """topology pod = torus(2, 4);
collective shift { pre: 0..ranks, post: {{(r + 1) mod ranks, (r + 2) mod ranks} for r in 0..ranks} }
"""
TRIED = [f"{name}{{{options}}}" if options else name for name in TARGETS.own for options in OPTIONS.get(name, ("",))]


@pytest.mark.parametrize(("target", "what"), every(2, list(product(TRIED, COLLECTIVES))))
def test_every_target_takes_or_refuses_a_collective(target: str, what: str) -> None:
    text = f"{NETWORK}collective c = {COLLECTIVES[what]};"
    try:
        result = collc.compile_source(text, target=target)
    except CollcError as refused:
        assert all(one.code != "C0070" for one in refused.diagnostics), refused
        assert all(one.hint or one.notes for one in refused.diagnostics), refused
    else:
        assert result.artifacts
        takers = ("mpi-c", "msccl-xml", "oneccl-xml", "mscclpp-json", "ir", "report", "svg", "dot", "chakra")
        assert target.startswith(takers)
