"""Shapes: programs of schedules by hand, beside those that msccl-tools writes for the same algorithms.

    python benchmarks/shapes.py [--only NAME ..] [--json | --table] [--relays]

Compiles the algorithms of ``tests/cases/shapes`` for every target that takes them. Prints the most threadblocks of a
rank, the most steps of a threadblock, instructions and sends of a rank (means, ``nop`` counted), and fused
instructions of all ranks. For MPI and oneCCL only messages matter. Returns 1 if a program for a runtime with fused
instructions exceeds msccl-tools' in threadblocks, in threadblocks times steps, in instructions or in sends, or if a
program for another target has more sends. ``--relays`` prints instead how many forwarded messages of synthesized
schedules are fused for ``executor``, and why the others are not.

The numbers of msccl-tools (microsoft/msccl-tools, revision 030a750, ``examples/mscclang``, one instance) are those of
its files for halving-doubling, recursive doubling and one step. The others are counted by its rules for fusing,
threadblocks, channels and dependencies, which give the same three numbers. Its alltonext is that of boxes of 4 ranks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np

import collc
from collc.ir.program import Program
from collc.passes.base import remarks

__all__ = ["ALGORITHMS", "TARGETS", "Shape", "main", "shape"]

CASES = Path(__file__).resolve().parent.parent / "tests" / "cases" / "shapes"


@attrs.frozen
class Shape:
    """The most threadblocks of a rank and steps of one; instructions and sends of a rank; fused instructions of all."""

    threadblocks: int
    steps: int
    instructions: float
    sends: float
    fused: int

    def __str__(self) -> str:
        """Return ``3 x 4, 11, 6 sends, 8 fused``."""
        size = f"{self.threadblocks} x {self.steps}, {self.instructions:g}"
        return f"{size}, {self.sends:g} sends, {self.fused} fused"


#: file of the algorithm -> what msccl-tools writes
ALGORITHMS = {
    "ring": Shape(1, 15, 15, 14, 104), "allpairs": Shape(8, 22, 167, 14, 0), "hierarchical": Shape(14, 2, 18, 14, 80),
    "two-step": Shape(8, 4, 19, 7, 0), "halving-doubling": Shape(3, 5, 13, 6, 0),
    "recursive-doubling": Shape(3, 3, 7, 3, 0), "one-step": Shape(4, 8, 29, 3, 0),
    "double-tree": Shape(6, 2, 5.5, 3.5, 12), "alltonext": Shape(5, 1, 3.75, 2, 2),
}  # fmt: skip

#: target -> whether its programs have threadblocks and fused instructions
TARGETS = {
    "msccl-xml{runtime=msccl}": True, "msccl-xml{runtime=executor}": True, "msccl-xml{runtime=rccl}": False,
    "mpi-c": False, "oneccl-xml": False,
}  # fmt: skip

RELAYS = (
    "allgather on torus(4, 4) bfb", "allreduce on torus(4, 4) bfb", "allgather on hypercube(4) bfb",
    "allreduce on hypercube(4) bfb", "allgather on kautz(2, 2) bfb", "allreduce on kautz(2, 2) bfb",
    "broadcast on kautz(2, 2) bfb", "allreduce on torus(4, 4) swing", "allreduce on torus(8, 8) swing",
)  # fmt: skip


def shape(program: Program) -> Shape:
    """Return the shape of a program; every dependency of an instruction after its first is a ``nop``."""
    each = np.maximum(program.num_dependencies, 1)
    total = np.bincount(program.block, weights=each, minlength=program.num_blocks)
    ranks = program.num_ranks
    return Shape(
        int(np.diff(program.rank_blocks).max(initial=0)), int(total.max(initial=0)),
        round(float(total.sum()) / ranks, 2), round(int(program.sends.sum()) / ranks, 2),
        int((program.sends & program.receives).sum()),
    )  # fmt: skip


def excess(found: Shape, needed: Shape, full: bool) -> list[str]:
    """Return in what a program exceeds msccl-tools'; without ``full``, only sends count."""
    pairs = {"sends": (found.sends, needed.sends)}
    if full:
        pairs |= {
            "threadblocks": (found.threadblocks, needed.threadblocks),
            "threadblocks x steps": (found.threadblocks * found.steps, needed.threadblocks * needed.steps),
            "instructions": (found.instructions, needed.instructions),
        }
    return [what for what, (count, most) in pairs.items() if count > most]


def row(name: str, target: str) -> dict[str, object]:
    """Return the shape of one algorithm for one target, or the reason why there is none."""
    try:
        program = collc.compile(CASES / f"{name}.coll", target=target).program
    except collc.CollcError as refused:
        return {"name": name, "target": target, "refused": refused.diagnostics[0].message}
    found = shape(program)
    return {
        "name": name,
        "target": target,
        **attrs.asdict(found),
        "exceeds": excess(found, ALGORITHMS[name], TARGETS[target]),
    }


def table(rows: list[dict[str, object]]) -> str:
    """Return a Markdown table: a row for each algorithm, a column for msccl-tools and each target."""
    head = ["algorithm", "msccl-tools", *(one.removeprefix("msccl-xml{runtime=").removesuffix("}") for one in TARGETS)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in dict.fromkeys(str(one["name"]) for one in rows):
        cells = [_cell(one) for one in rows if one["name"] == name]
        lines.append(f"| {' | '.join([name, str(ALGORITHMS[name]), *cells])} |")
    return "\n".join(lines)


def _cell(one: dict[str, object]) -> str:
    if "refused" in one:
        return "refused"
    text = f"{one['threadblocks']} x {one['steps']}, {one['instructions']:g}, {one['sends']:g} sends"
    return text if TARGETS[str(one["target"])] is False else f"{text}, {one['fused']} fused"


def relays() -> Iterator[str]:
    """Yield for each synthesized schedule how many forwarded messages are fused, and why the others are not."""
    for case in RELAYS:
        kind, _, rest = case.partition(" on ")
        net, _, scheduler = rest.rpartition(" ")
        options = "{ size: 16 MiB, root: 0 }" if kind == "broadcast" else "{ size: 16 MiB }"
        text = f"topology net = {net}; collective c = {kind} on net {options}; schedule c using {scheduler};"
        with remarks() as stated:
            collc.compile_source(text, target="msccl-xml")
        yield f"{case}: " + "; ".join(one.removeprefix("fuse: ") for one in stated if one.startswith("fuse: "))


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if a program exceeds msccl-tools'."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(ALGORITHMS), choices=list(ALGORITHMS), help="algorithms")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--table", action="store_true", help="in Markdown, as docs/msccl.md has it")
    parser.add_argument("--relays", action="store_true", help="relays of synthesized schedules")
    given = parser.parse_args(arguments)
    if given.relays:
        print("\n".join(relays()))
        return 0
    rows = [row(name, target) for name in given.only for target in TARGETS]
    if given.table:
        print(table(rows))
    else:
        for one in rows:
            mark = f"  MORE {', '.join(map(str, one['exceeds']))}" if one.get("exceeds") else ""  # type: ignore[call-overload]
            print(json.dumps(one) if given.json else f"{one['name']:19} {one['target']:28} {_cell(one)}{mark}")
    return int(any(one.get("exceeds") for one in rows))


if __name__ == "__main__":
    sys.exit(main())
