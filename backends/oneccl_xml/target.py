"""The target ``oneccl-xml``: a Program as a file for CPU ranks that communicate through oneCCL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError, Diagnostic, Excess, error
from collc.ir.program import Program
from collc.ir.verify import Check, Report, verify_program

from ..base import MAX_TEXT, Artifact, Limits, Target, Window, first_difference
from .document import document, label
from .model import Document
from .reader import read
from .same import differences
from .verify import verify_document
from .writer import write

__all__ = ["OneCclXml"]

_MOST_BYTES = 2**63 - 1
_MOST_CHANNELS = 1024
_MOST_THREADS = 64
_MOST_LANES = 64


@attrs.frozen
class OneCclXml(Target):
    """Threads of instructions for every rank; each step posts its messages and waits for them.

    With one thread, a rank waits for all messages of a step before it goes on. With more threads, the connections are
    divided among them, and they wait for each other only for dependencies of data.
    """

    name: ClassVar[str] = "oneccl-xml"
    summary: ClassVar[str] = "oneCCL-XML: threads of steps for CPU ranks over oneCCL"
    suffix: ClassVar[str] = ".xml"
    most_read: ClassVar[int | None] = MAX_TEXT

    threads: int = attrs.field(default=1, metadata={"help": "maximum threads of a rank (1 to 64)"})
    lanes: int = attrs.field(
        default=8, metadata={"help": "maximum messages of a connection in a step, each on its own channel (1 to 64)"}
    )
    inplace: bool | None = attrs.field(
        default=None, metadata={"help": "serve calls in place (default: if the program is correct in place)"}
    )
    outofplace: bool | None = attrs.field(
        default=None, metadata={"help": "serve calls out of place (default: if the program is correct out of place)"}
    )
    min_bytes: int = attrs.field(default=0, metadata={"help": "smallest call, in bytes of the whole vector"})
    max_bytes: int | None = attrs.field(default=None, metadata={"help": "largest call, in bytes of the whole vector"})
    algorithm: str | None = attrs.field(
        default=None, metadata={"help": "name of the algorithm (default: the collective's)"}
    )
    _label: str = ""  # suffix of the name of one of several algorithms

    def __attrs_post_init__(self) -> None:
        wrong: list[Diagnostic] = []
        if not 1 <= self.threads <= _MOST_THREADS:
            wrong.append(_option("threads", f"1 to {_MOST_THREADS}", self.threads))
        if not 1 <= self.lanes <= _MOST_LANES:
            wrong.append(_option("lanes", f"1 to {_MOST_LANES}", self.lanes))
        if not 0 <= self.min_bytes <= _MOST_BYTES:
            wrong.append(_option("min-bytes", f"0 to {_MOST_BYTES}", self.min_bytes))
        elif self.max_bytes is not None and not self.min_bytes <= self.max_bytes <= _MOST_BYTES:
            least = f"{self.min_bytes} (`min-bytes`)" if self.min_bytes else "0"
            wrong.append(_option("max-bytes", f"{least} to {_MOST_BYTES}", self.max_bytes))
        if self.algorithm is not None and label(self.algorithm) != self.algorithm:
            wrong.append(_option("algorithm", "1 to 63 letters, digits and _ . + -", self.algorithm))
        if self.inplace is False and self.outofplace is False:
            message = "options `inplace` and `outofplace` are both false: no call would use the file"
            wrong.append(Diagnostic("C0759", message, hint="leave one of them out", option="outofplace"))
        if wrong:
            raise CollcError(wrong, exit_status=2)

    @property
    def takes_relays(self) -> bool:
        return True

    def within(self, window: Window) -> OneCclXml | None:
        """Return the target for the calls of a window inside its own sizes; None if there are none."""
        low = max(self.min_bytes, window.low)
        high = min((end for end in (self.max_bytes, window.high) if end is not None), default=None)
        if high is not None and high < low:
            return None
        return attrs.evolve(self, min_bytes=low, max_bytes=high, label=f"-{window.label}")

    @property
    def limits(self) -> Limits:
        """Blocks are of one size."""
        return Limits(equal_chunks=True, orbits=True)

    def require(self, collective: Collective) -> None:
        if collective.contributors is not None:
            raise error(
                "C0766", "oneccl-xml has no custom collective that reduces: its executor compares custom ones with "
                "oneCCL's alltoallv, which copies",
                hint="use the target `mpi-c`, or `msccl-xml { runtime: msccl }`",
            )  # fmt: skip
        if collective.weights is not None and collective.reduces:
            raise error(
                "C0766", f"oneccl-xml has no `{collective.name}`: its blocks are equal where data are reduced",
                notes=["oneCCL's own reduce-scatter is even, too"], hint="use the target `mpi-c`",
            )  # fmt: skip

    def emit(self, ir: Program) -> Sequence[Artifact]:
        """Return one file, valid against the schema; raise C0750, C0751 or C0758 if that is impossible."""
        emitted = self._document(ir)
        text = write(emitted)
        found = read(text, f"{ir.name}.xml")
        label = self._label.removeprefix("-")
        return [Artifact(f"{ir.name}.xml", text, self.name, label, model=(self, ir, emitted, text, found))]

    def _document(self, ir: Program) -> Document:
        if ir.num_channels > _MOST_CHANNELS:
            found = (
                f"this program uses {ir.num_channels} channels, but a rank has at most {_MOST_CHANNELS} communicators"
            )
            hint = "let `balance-threadblocks` place its messages"
            raise error("C0750", found, hint=hint, excess=Excess("channels", ir.num_channels, _MOST_CHANNELS))
        inplace, outofplace = self._uses(ir)
        name = label(self.algorithm or ir.name)
        name = name[: max(63 - len(self._label), 1)] + self._label[:62]
        lanes = min(self.lanes, _MOST_CHANNELS // max(ir.num_channels, 1))
        file = document(ir, self.threads, name=name, inplace=inplace, outofplace=outofplace, lanes=lanes)
        return attrs.evolve(file, min_bytes=self.min_bytes, max_bytes=self.max_bytes, comments=_comments(ir, file))

    def check(self, ir: Program, artifacts: Sequence[Artifact]) -> Report:
        """Read the file back, execute it, and compare it with the program.

        A file does not have the element type or the size of a call, and only a list of its operations. It has the
        program's messages, connection by connection and in order, in steps of its own, with a new layout of scratch.
        All its numbers are compared.
        """
        return Report("oneccl-xml", ir.collective.kind, ir.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Program, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        if [a.filename for a in artifacts] != [f"{ir.name}.xml"]:
            yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {ir.name}.xml")
            return
        try:
            found = self._read(artifacts[0])
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        report = verify_document(found)
        yield from report.checks
        if report.ok:
            other = next(differences(found, ir), "")
            yield Check(
                "same program", not other, other or "every connection carries the same chunks in the same order"
            )
        expected, expected_text = self._expected(ir, artifacts[0])
        text = artifacts[0].text
        wrong = first_difference(text, expected_text) if text != expected_text else ""
        collective = _in_file(expected.collective, found.collective)
        if not wrong and found != attrs.evolve(expected, collective=collective):
            wrong = "the reader finds another document"
        yield Check("as written", not wrong, wrong or "byte for byte the emitted text")

    def _read(self, artifact: Artifact) -> Document:
        """Return the document of a file. The text that :meth:`emit` has read is not read again."""
        if isinstance(artifact.model, tuple) and artifact.model[0] == self and artifact.model[3] == artifact.text:
            found: Document = artifact.model[4]
            return found
        return read(artifact.text, artifact.filename)

    def _expected(self, ir: Program, artifact: Artifact) -> tuple[Document, str]:
        """Return the document and the text of a program: the artifact's if it is this program's, else new ones."""
        if isinstance(artifact.model, tuple) and artifact.model[:2] == (self, ir):
            return artifact.model[2], artifact.model[3]
        file = self._document(ir)
        return file, write(file)

    def _uses(self, ir: Program) -> tuple[bool, bool]:
        """Return whether the file serves calls in place, and whether it serves calls out of place."""
        found = []
        custom = ir.collective.kind == CUSTOM
        if custom and self.inplace:
            raise error("C0758", "option `inplace`: a custom collective has no calls in place", hint="leave it out")
        uses = (("inplace", False if custom else self.inplace, True), ("outofplace", self.outofplace, False))
        for name, requested, inplace in uses:
            report = None if requested is False else verify_program(ir, inplace=inplace)
            if requested and report is not None and not report.ok:
                notes = [f"{check.name}: {check.detail}" for check in report.failed]
                raise error(
                    "C0758",
                    f"option `{name}`: the program is wrong {'in place' if inplace else 'out of place'}",
                    notes=notes,
                )
            found.append((report is not None and report.ok, report))
        if not any(correct for correct, _ in found):
            notes = [f"{c.name}: {c.detail}" for _, report in found if report is not None for c in report.failed]
            raise error("C0758", "the program is wrong both in place and out of place", notes=notes[:4])
        return found[0][0], found[1][0]


def _comments(program: Program, file: Document) -> tuple[str, ...]:
    by = f" by {program.scheduler}" if program.scheduler else ""
    collective = program.collective
    relays = collective.num_ranks - collective.num_members
    ranks = f"{collective.num_ranks} ranks" + f", {relays} of which only relay" * (relays > 0)
    at = "" if collective.root is None else f" at rank {collective.root}"
    steps = max((len(t.steps) for rank in file.ranks for t in rank.threads), default=0)
    return (f"collc: {collective.name}{at} of {ranks}{by}; at most {steps} steps a thread",)


def _option(name: str, need: str, found: object) -> Diagnostic:
    message = f"option `{name}` of target `oneccl-xml` needs {need}, found {found}"
    return Diagnostic("C0759", message, hint=f"leave `{name}` out for the default", option=name)


def _in_file(due: Collective, found: Collective) -> Collective:
    """Return a collective with the reader's operation, type and size, which a file does not have."""
    return attrs.evolve(due, op=found.op, dtype=found.dtype, size=found.size)
