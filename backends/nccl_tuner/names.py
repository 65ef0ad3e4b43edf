"""The names of NCCL's collectives, algorithms and protocols, and which of them go together."""

from __future__ import annotations

import re

from collc.ir.diagnostic import error, nearest
from collc.ir.shown import listed

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "PROTOCOLS",
    "SEVERAL",
    "applies",
    "is_left_one_channel",
    "require_pair",
    "require_row",
]

#: collc's name of a collective -> NCCL's
COLLECTIVES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce-scatter": "reducescatter", "broadcast": "broadcast",
    "reduce": "reduce",
}  # fmt: skip

_ALL = tuple(COLLECTIVES)
#: the collectives that NCCL has several algorithms for
SEVERAL = ("allreduce", "allgather", "reduce-scatter")

#: algorithm -> the collectives that have it
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "tree": ("allreduce",), "ring": _ALL, "collnet_direct": SEVERAL, "collnet_chain": ("allreduce",), "nvls": SEVERAL,
    "nvls_tree": ("allreduce",), "pat": ("allgather", "reduce-scatter"),
}  # fmt: skip

PROTOCOLS = ("ll", "ll128", "simple")
_WITH_FLAGS = ("tree", "ring")


def applies(algorithm: str, collective: str, nodes: int, ranks: int) -> bool:
    """Return whether NCCL has an algorithm for a collective on a number of machines.

    On one machine the tree is a chain. PAT needs one GPU a machine (``ncclPatEnable`` of NCCL 2.30).

    >>> applies("pat", "allgather", 2, 16), applies("pat", "allgather", 16, 16)
    (False, True)
    """
    if collective not in ALGORITHMS[algorithm]:
        return False
    return {"tree": nodes > 1, "pat": nodes == ranks > 1}.get(algorithm, True)


def require_pair(collective: str, algorithm: str, protocol: str) -> None:
    """Raise C0774 for an algorithm or a protocol that NCCL does not have for a collective."""
    for what, name, known in (("algorithm", algorithm, ALGORITHMS), ("protocol", protocol, PROTOCOLS)):
        if name not in known:
            hint = nearest(name, known) or f"it has {listed(list(known))}"
            raise error("C0774", f"NCCL has no {what} `{name}`", hint=hint)
    if collective not in ALGORITHMS[algorithm]:
        hint = f"it has it for {listed(ALGORITHMS[algorithm])}"
        raise error("C0774", f"NCCL has no {algorithm} for {collective}", hint=hint)
    if protocol != "simple" and algorithm not in _WITH_FLAGS:
        raise error("C0774", f"NCCL has no protocol {protocol} for {algorithm}", hint="write `simple`")


def require_row(line: str, dialect: str) -> None:
    """Raise C0774 for a row that a tuner would take for another: an unknown name, an empty field, too long a line."""
    if ",," in line.replace(" ", "") or len(line.encode()) > 254:
        hint = "write -1 for any; a line has less than 255 bytes"
        long = len(line.encode()) > 254
        raise error("C0774", "the line is too long" if long else "an empty field shifts all later ones", hint=hint)
    fields = _fields(line)
    places, least = ((0, 2, 3), 7) if dialect == "ncclx" else ((0, 3, 4), 8)
    if len(fields) < least:
        raise error("C0774", f"found {len(fields)} fields, needed at least {least}")
    name, algorithm, protocol = (fields[place] for place in places)
    known = {own: kind for kind, own in COLLECTIVES.items()}
    if name not in known:
        hint = nearest(name, known) or f"it has {listed(list(known))}"
        raise error("C0774", f"NCCL's tuners know no collective `{name}`", hint=hint)
    require_pair(known[name], algorithm, protocol)


def is_left_one_channel(line: str) -> bool:
    """Return whether the example plugin runs the calls of a row on one channel, since the row does not say how many.

    >>> is_left_one_channel("allreduce,0,99,ring,simple,-1,2,16")
    True
    """
    return _fields(line)[5:6] == ["-1"]


def _fields(line: str) -> list[str]:
    """Return the fields of a row; commas inside brackets are parts of an interval."""
    return [one.strip() for one in re.split(r",(?![^\[(]*[\])])", line)]
