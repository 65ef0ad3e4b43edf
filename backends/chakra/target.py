"""The target ``chakra``: a trace of messages for each rank, read back and executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from collc.ir.connections import connections
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.shown import counted
from collc.ir.verify import Check, Report

from ..base import Artifact, Target
from ..simulator.programs import instruction_steps
from .files import read, written
from .schema import messages
from .trace import Node, depths, nodes_of

if TYPE_CHECKING:
    from collc.ir.collective import Collective

__all__ = ["Chakra"]

_USUAL, _MOST = 1 << 20, 1 << 62


@frozen
class Chakra(Target):
    """Execution traces of MLCommons Chakra, NAME.0.et, NAME.1.et ..: the messages of each rank with what they wait for.

    ASTRA-sim takes them as the implementation of a collective (`all-reduce-implementation-chakra` of its system file),
    which sends all messages that can go, or as its workload, which sends one message of a rank at a time.
    """

    name: ClassVar[str] = "chakra"
    summary: ClassVar[str] = "execution traces of MLCommons Chakra, a file a rank, for ASTRA-sim"
    suffix: ClassVar[str] = ".et"
    takes_members: ClassVar[bool] = True  # to refuse them

    size: int | None = attrs.field(
        default=None, metadata={"help": "bytes of the whole vector (default: the size of the collective, else 1 MiB)"}
    )

    def __attrs_post_init__(self) -> None:
        if self.size is not None and not 1 <= self.size <= _MOST:
            raise error("C0832", f"`size` is {self.size}, needed 1 to 2^62", option="size", exit_status=2)

    def require(self, collective: Collective) -> None:
        """Raise C0831 for a collective among some ranks, C0830 without protobuf."""
        messages()
        if collective.members is not None:
            hint = "describe the network of the members alone: `without(pod, {..})`"
            raise error("C0831", "a trace is of all ranks; found a collective among some of them", hint=hint)

    def _bytes(self, program: Program) -> int:
        return self.size or program.collective.size or _USUAL

    def emit(self, ir: Program) -> Sequence[Artifact]:
        """Return the traces, rank by rank; raise C0830 without protobuf."""
        self.require(ir.collective)
        size = self._bytes(ir)
        about = {
            "collective": ir.collective.name, "scheduler": ir.scheduler, "ranks": str(ir.num_ranks),
            "bytes": str(size),
        }  # fmt: skip
        traces = nodes_of(ir, size)
        return [
            Artifact(
                f"{ir.name}.{rank}{self.suffix}", _text(written(rank, nodes, about)), self.name,
                ending=f".{rank}{self.suffix}",
            )
            for rank, nodes in enumerate(traces)
        ]  # fmt: skip

    def check(self, ir: Program, artifacts: Sequence[Artifact]) -> Report:
        """Read the traces, execute them, and compare their messages and steps with those of the program."""
        return Report("traces", ir.collective.kind, ir.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Program, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        due = self.emit(ir)
        names, needed = [one.filename for one in artifacts], [one.filename for one in due]
        yield Check("files", names == needed, f"found {counted(len(names), 'file')}, needed {len(needed)}")
        if names != needed:
            return
        try:
            found = [read(one.data, rank) for rank, one in enumerate(artifacts)]
        except ValueError as problem:
            yield Check("reading", False, str(problem))
            return
        yield Check("reading", True, counted(sum(len(nodes) for _, nodes in found), "node"))
        abouts = {tuple(about.items()) for about, _ in found}
        yield Check("metadata", len(abouts) == 1, "the same in all files")
        traces = tuple(nodes for _, nodes in found)
        yield _pairs(traces)
        yield _amounts(traces, ir, self._bytes(ir))
        yield _steps(traces, ir)
        same = traces == nodes_of(ir, self._bytes(ir))
        yield Check("nodes", same, "those of the program" if same else "a node differs from that of its instruction")
        other = next((a.filename for a, b in zip(artifacts, due, strict=True) if a.data != b.data), "")
        yield Check("as written", not other, f"{other} differs" if other else "byte for byte")


def _text(data: bytes) -> str:
    """Return bytes as the text that a file is written from: each byte that is no UTF-8 as half a surrogate."""
    return data.decode("utf-8", "surrogateescape")


def _pairs(traces: Sequence[Sequence[Node]]) -> Check:
    """Compare sends and receives: every message has both ends, the same size, and a tag of its own."""
    ends: list[list[tuple[int, int, int, int]]] = [[], []]
    for rank, nodes in enumerate(traces):
        for node in nodes:
            pair = (rank, node.peer) if node.sends else (node.peer, rank)
            ends[node.sends].append((*pair, node.tag, node.size))
    same = sorted(ends[0]) == sorted(ends[1])
    own = len({one[:3] for one in ends[1]}) == len(ends[1])
    numbered = all([node.id for node in nodes] == list(range(1, len(nodes) + 1)) for nodes in traces)
    detail = counted(len(ends[1]), "message") if same and own else "a message has no other end, or no tag of its own"
    return Check("messages", same and own and numbered, detail)


def _amounts(traces: Sequence[Sequence[Node]], program: Program, size: int) -> Check:
    """Compare the bytes from each rank to each other with what the program sends."""
    rows = np.flatnonzero(program.sends)
    links = connections(program)
    link = links.outward[program.block[rows]]
    whole, due = program.chunks * program.num_ranks, dict[tuple[int, int], int]()
    columns = zip(links.src[link].tolist(), links.dst[link].tolist(), program.count[rows].tolist(), strict=True)
    for a, b, count in columns:
        due[a, b] = due.get((a, b), 0) + max((count * size + whole - 1) // whole, 1)
    found: dict[tuple[int, int], int] = {}
    for rank, nodes in enumerate(traces):
        for node in nodes:
            if node.sends:
                found[rank, node.peer] = found.get((rank, node.peer), 0) + node.size
    return Check("amounts", found == due, "the bytes of the program" if found == due else "other bytes are sent")


def _steps(traces: tuple[tuple[Node, ...], ...], program: Program) -> Check:
    """Execute the traces, and compare the step of every message with that of the program's instructions."""
    try:
        found = sorted((a, b, step) for a, b, _, step in depths(traces))
    except (ValueError, KeyError) as problem:
        return Check("execution", False, f"the traces do not complete: {problem}")
    steps = instruction_steps(program)
    rows = np.flatnonzero(program.sends)
    links = connections(program)
    link = links.outward[program.block[rows]]
    ends = zip(links.src[link].tolist(), links.dst[link].tolist(), rows.tolist(), strict=True)
    due = sorted((a, b, steps[row]) for a, b, row in ends)
    detail = f"complete, in {counted(max((step for _, _, step in due), default=-1) + 1, 'step')} as the program"
    return Check("execution", found == due, detail if found == due else "a message goes in another step")
