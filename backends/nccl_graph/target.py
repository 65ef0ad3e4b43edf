"""The target ``nccl-graph``: the rings of a schedule as graph files for stock NCCL (``NCCL_GRAPH_FILE``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.schedule import Forest, Schedule
from collc.ir.shown import counted, listed
from collc.ir.spec import Option
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.verify import Check, Report

from ..base import Artifact, Target, first_difference
from .connect import ConnectError, connect
from .document import Files, graph_files
from .model import GraphFile, Version
from .reader import read
from .rings import KINDS
from .writer import write

__all__ = ["NcclGraph"]

_OLDEST, _NEWEST = (2, 18), (2, 30)
_MOST_CHANNELS = 32
_MOST_RANKS = 1 << 16


@attrs.frozen
class NcclGraph(Target):
    """Writes the rings of a schedule, and in every node the chains for NCCL's trees, channel by channel.

    If all nodes have the same paths and NICs, one file serves them all. Otherwise every node has a file of its own,
    ``NAME.node0.xml`` and so on, numbered by the lowest ranks of the nodes. Raises C0911 to C0914 for schedules that
    NCCL cannot execute, C0916 for wrong options.
    """

    name: ClassVar[str] = "nccl-graph"
    summary: ClassVar[str] = "graph files with the rings of a schedule, for stock NCCL (NCCL_GRAPH_FILE)"
    suffix: ClassVar[str] = ".xml"
    level: ClassVar[str] = "schedule"
    scheduler: ClassVar[str | None] = "nccl-rings"

    nccl: str = attrs.field(default="2.25", metadata={"help": "version of NCCL, 2.18 to 2.30: how it reads the file"})
    channels: int | None = attrs.field(
        default=None,
        metadata={"help": "channels in the file, which NCCL doubles (default: as many as carry 25 GB/s or less)"},
    )
    node: int | None = attrs.field(
        default=None, metadata={"help": "ranks of a node, which follow each other (default: as names and links tell)"}
    )
    ranks: bool = attrs.field(
        default=False, metadata={"help": "name every GPU by its rank too, from NCCL 2.30: only for the whole cluster"}
    )

    def __attrs_post_init__(self) -> None:
        version = self.version
        if self.ranks and not version.has_ranks:
            raise _option("ranks", "`nccl=2.30`: older versions find GPUs by device only", str(self.nccl))
        if self.channels is not None and not 1 <= self.channels <= _MOST_CHANNELS:
            raise _option("channels", f"1 to {_MOST_CHANNELS}", str(self.channels))
        if self.node is not None and not 1 <= self.node <= _MOST_RANKS:
            raise _option("node", f"1 to {_MOST_RANKS}", str(self.node))

    @property
    def scheduler_options(self) -> tuple[Option, ...]:
        return () if self.node is None else (Option("node", self.node),)

    @property
    def version(self) -> Version:
        """The version of NCCL; raise C0916 for one that collc does not know."""
        found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})(\.\d{1,4})?", self.nccl)
        number = (int(found[1]), int(found[2])) if found else None
        if number is None or not _OLDEST <= number <= _NEWEST:
            raise _option("nccl", "2.18 to 2.30", self.nccl)
        return Version(*number)

    def require(self, collective: Collective) -> None:
        if collective.members is not None:
            raise error(
                "C0910", "a graph file is of all GPUs of a node; found a collective among some ranks",
                hint="describe the network of the members alone: `without(pod, {..})`", about=(Subject.COLLECTIVE,),
            )  # fmt: skip
        if collective.name not in KINDS:
            raise error(
                "C0910", f"NCCL has no ring for {collective.name}", notes=[f"it has rings for {listed(KINDS)}"],
                hint="emit `msccl-xml`, which carries any collective", about=(Subject.COLLECTIVE,),
            )  # fmt: skip

    def emit(self, ir: Schedule | Forest) -> Sequence[Artifact]:
        """Return one file for all nodes, or one for each."""
        self.require(ir.collective)
        emitted = self._files(ir)
        texts = [write(file, self.version) for file in emitted.files]
        stem = ir.collective.kind
        if len(set(texts)) == 1:
            return [Artifact(f"{stem}{self.suffix}", texts[0], self.name, model=(self, ir, emitted))]
        return [
            Artifact(f"{stem}{_ending(node)}", text, self.name, model=(self, ir, emitted), ending=_ending(node))
            for node, text in enumerate(texts)
        ]

    def check(self, ir: Schedule | Forest, artifacts: Sequence[Artifact]) -> Report:
        """Read the files back, connect them as NCCL does, and compare the rings and NICs with the schedule's."""
        return Report("nccl-graph", ir.collective.kind, ir.topology.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Schedule | Forest, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        expected = self._expected(ir, artifacts)
        texts = [write(file, self.version) for file in expected.files]
        due = [_ending(node) for node in range(len(texts))] if len(set(texts)) > 1 else [self.suffix]
        names = [f"{ir.collective.kind}{ending}" for ending in due]
        if [a.filename for a in artifacts] != names:
            yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {', '.join(names)}")
            return
        try:
            files = [read(a.text, a.filename, self.version) for a in artifacts]
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        yield Check("files", True, counted(len(files), "file"))
        yield Check("reading", True, "every element and attribute that NCCL needs")
        yield from self._connected(expected, files * (len(texts) if len(files) == 1 else 1))
        wrong = [first_difference(a.text, text) for a, text in zip(artifacts, texts, strict=False) if a.text != text]
        yield Check("as written", not wrong, wrong[0] if wrong else "byte for byte the emitted texts")

    def _connected(self, expected: Files, files: Sequence[GraphFile]) -> Iterator[Check]:
        try:
            found = connect(files, expected.devices, self.version)
        except ConnectError as problem:
            yield Check("connect", False, f"NCCL fails: {problem}")
            return
        yield Check("connect", True, f"{len(found.rings)} rings close and contain all ranks")
        rings, nics = expected.rings * 2, expected.nics * 2
        other = next((c for c, ring in enumerate(rings) if found.rings[c : c + 1] != (ring,)), None)
        same = other is None and len(found.rings) == len(rings)
        what = f"channel {other} is another ring" if other is not None else "NCCL makes more rings"
        yield Check("same rings", same, f"{len(expected.rings)} rings, doubled" if same else what)
        wrong = next((c for c, pair in enumerate(nics) if found.nics[c : c + 1] != (pair,)), None)
        yield Check("same NICs", wrong is None, "" if wrong is None else f"channel {wrong} has other NICs")

    def _expected(self, ir: Schedule | Forest, artifacts: Sequence[Artifact]) -> Files:
        model = artifacts[0].model if artifacts else None
        if isinstance(model, tuple) and model[0] == self and model[1] is ir:
            found: Files = model[2]
            return found
        return self._files(ir)

    def _files(self, ir: Schedule | Forest) -> Files:
        if isinstance(ir, SymmetricSchedule | SymmetricForest):
            ir = ir.unfold()
        return graph_files(ir, self.version, self.node, self.channels, self.ranks)


def _ending(node: int) -> str:
    return f".node{node}{NcclGraph.suffix}"


def _option(name: str, need: str, found: str) -> CollcError:
    return error(
        "C0916", f"option `{name}` of target `nccl-graph` needs {need}, found `{found}`",
        hint=f"leave `{name}` out for the default", exit_status=2, option=name,
    )  # fmt: skip
