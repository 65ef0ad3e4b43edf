"""Every torus algorithm with the collectives it does, as a user would write them: what is run and what is read back."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from sampling import every

__all__ = ["SHAPES", "Asked", "asked", "source"]

#: ranks -> tori of that many: on the first all algorithms run, on the others those that dimensions matter to
SHAPES: dict[int, tuple[tuple[int, ...], ...]] = {
    4: ((2, 2),), 6: ((2, 3), (6,)), 7: ((7,),), 8: ((2, 4), (2, 2, 2)), 9: ((3, 3),), 12: ((3, 4),), 16: ((4, 4),),
}  # fmt: skip

_HALVES = ("reduce-scatter", "allgather")
_ROOTED = ("broadcast", "reduce")
#: scheduler as it is written -> its collectives
_ALGORITHMS: dict[str, tuple[str, ...]] = {
    "swing { variant: bandwidth }": ("allreduce", *_HALVES), "swing { variant: latency }": ("allreduce", *_ROOTED),
    "recursive-doubling": ("allreduce", *_ROOTED), "rabenseifner": ("allreduce", *_HALVES),
    "bucket": ("allreduce", *_HALVES), "ring": ("allreduce", *_HALVES),
    "bine": ("allreduce", *_HALVES, *_ROOTED, "gather", "scatter"), "pat { buffer: 2 }": ("allreduce", *_HALVES),
    "trivance": ("allreduce", *_HALVES), "double-binary-tree { pipeline: 3 }": ("allreduce", *_ROOTED),
}  # fmt: skip
#: allreduces that differ from those above in options, on one number of ranks
_OPTIONS = (
    "swing { ports: 1 }", "swing { variant: latency, identical: false }", "recursive-doubling { mirrored: neg }",
    "rabenseifner { mirrored: reflect }", "ring { schedule: bfb }", "ring { rings: 1 }",
    "bine { order: halving, variant: latency }", "trivance { variant: bandwidth }",
)  # fmt: skip
_AGAIN = ("swing { variant: bandwidth }", "swing { variant: latency }", "rabenseifner", "recursive-doubling", "bucket")


@attrs.frozen
class Asked:
    """One collective by one scheduler on one torus."""

    scheduler: str
    kind: str
    shape: tuple[int, ...]


def asked(ranks: int, turn: int = 0) -> list[Asked]:
    """Return what is tried on a number of ranks: every fourth of all there is."""
    return every(4, _all_asked(ranks), list(SHAPES).index(ranks) + turn)


def _all_asked(ranks: int) -> list[Asked]:
    first, *others = SHAPES[ranks]
    found = [Asked(scheduler, kind, first) for scheduler, kinds in _ALGORITHMS.items() for kind in kinds]
    if ranks == 9:
        found += [Asked(scheduler, "allreduce", first) for scheduler in _OPTIONS]
    return found + [Asked(scheduler, "allreduce", shape) for shape in others for scheduler in _AGAIN]


def source(wanted: Sequence[Asked], targets: Sequence[str] = ()) -> str:
    """Return a file that asks for ``c0``, ``c1``, .. and emits each as its target, if there are any."""
    lines = []
    for number, one in enumerate(wanted):
        rooted = one.kind in (*_ROOTED, "gather", "scatter")
        root = f" {{ root: {(number + 1) % max(one.shape)} }}" if rooted else ""
        lines.append(f"collective c{number} = {one.kind} on torus({', '.join(map(str, one.shape))}){root};")
        lines.append(f"schedule c{number} using {one.scheduler};")
        lines += [f"emit c{number} as {target};" for target in targets[number : number + 1]]
    return "\n".join(lines) + "\n"
