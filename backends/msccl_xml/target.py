"""The target ``msccl-xml``: a Program as a file for one of the runtimes that read MSCCL-XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.program import Program
from collc.ir.verify import Check, Report, adds_once

from ..base import Artifact, Limits, Target, Window, first_difference
from .chunks import in_larger_chunks
from .document import document
from .execution import mode_name
from .findings import refuse
from .limits import check_limits
from .model import Algorithm
from .profiles import PROFILES, PROTOCOLS, Profile
from .reader import read
from .same import differences
from .structure import check_structure
from .uses import Sizes, find_modes, find_sizes
from .verify import verify_read
from .windows import splits
from .writer import write

__all__ = ["MscclXml"]

_MOST_BYTES = 2**62  # the parsers read sizes as signed 64-bit numbers
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,63}")


@attrs.frozen
class MscclXml(Target):
    """MSCCL-XML for one runtime, checked against its limits before anything is written.

    The default runtime is ``executor``, the last of the three that is kept up. Sizes are in bytes as the runtimes count
    them: of the whole vector (for allgather, reduce-scatter and alltoall: of all ranks' parts).
    """

    name: ClassVar[str] = "msccl-xml"
    summary: ClassVar[str] = "MSCCL-XML for GPU runtimes: msccl, executor (NCCL), rccl"
    suffix: ClassVar[str] = ".xml"

    runtime: Literal["executor", "msccl", "rccl"] = attrs.field(
        default="executor", metadata={"help": "who is to run the file: msccl-executor-nccl, microsoft/msccl, RCCL"}
    )
    proto: Literal["Simple", "LL", "LL128"] = attrs.field(
        default="Simple", metadata={"help": "NCCL protocol: Simple for large calls, LL and LL128 for small ones"}
    )
    channels: int | None = attrs.field(default=None, metadata={"help": "use at most so many channels"})
    threadblocks: int | None = attrs.field(
        default=None, metadata={"help": "threadblocks of a rank that run at once (default: 108; rccl 64)"}
    )
    inplace: bool | None = attrs.field(
        default=None, metadata={"help": "for calls in place (default: where the program is right so)"}
    )
    outofplace: bool | None = attrs.field(
        default=None, metadata={"help": "for calls out of place (default: where the program is right so)"}
    )
    min_bytes: int = attrs.field(default=0, metadata={"help": "smallest call, in bytes"})
    max_bytes: int | None = attrs.field(
        default=None, metadata={"help": "largest call, in bytes (default: the largest that cannot deadlock)"}
    )
    algorithm: str | None = attrs.field(
        default=None, metadata={"help": "name of the algorithm (default: the collective's)"}
    )
    nthreads: int | None = attrs.field(default=None, metadata={"help": "threads of a threadblock (msccl only)"})
    _label: str = ""  # what follows the name of one of several algorithms
    _scale: int = 1  # of the program's chunks, how many make one of the file's where its steps allow that

    def __attrs_post_init__(self) -> None:
        for option, known in (("runtime", PROFILES), ("proto", PROTOCOLS)):
            if getattr(self, option) not in known:
                raise _option(option, f"one of {', '.join(known)}", getattr(self, option))
        for option in ("channels", "threadblocks"):
            value, most = getattr(self, option), getattr(self.profile, f"max_{option}")
            if value is not None and not 1 <= value <= most:
                raise _option(option, f"1 to {most} for runtime {self.runtime}", value)
        if not 0 <= self.min_bytes <= _MOST_BYTES:
            raise _option("min-bytes", f"0 to {_MOST_BYTES}", self.min_bytes)
        if self.max_bytes is not None and not max(self.min_bytes, 1) <= self.max_bytes <= _MOST_BYTES:
            raise _option("max-bytes", f"{max(self.min_bytes, 1)} to {_MOST_BYTES}", self.max_bytes)
        if self.algorithm is not None and not _NAME.fullmatch(self.algorithm):
            raise _option("algorithm", "1 to 63 letters, digits and _ . + -", self.algorithm)
        if self.nthreads is not None and self.profile.max_threads is None:
            raise _option("nthreads", f"left out: runtime {self.runtime} does not read it", self.nthreads)
        if self.inplace is False and self.outofplace is False:
            raise _option("outofplace", "true where inplace is false: else no call would use the file", "false")

    @property
    def profile(self) -> Profile:
        """What the runtime takes."""
        return PROFILES[self.runtime]

    @property
    def limits(self) -> Limits:
        """What passes may use up: of the runtime's limits, as far as options do not set lower ones."""
        return Limits(
            max_threadblocks=self.threadblocks or self.profile.resident,
            max_steps=self.profile.max_steps,
            max_channels=self.channels or self.profile.max_channels,
            max_count=self.profile.max_count,
            max_offset=self.profile.max_offset,
            fifo_depth=PROTOCOLS[self.proto].fifo_depth,
            fused=self.profile.fused,
        )

    def within(self, window: Window) -> MscclXml | None:
        """Return the target for calls of a window, as far as they are of the sizes that its options name."""
        low = max(self.min_bytes, window.low)
        ends = [end for end in (self.max_bytes, window.high) if end is not None]
        high = min(ends, default=None)
        if high is not None and high < max(low, 1):
            return None
        return attrs.evolve(self, min_bytes=low, max_bytes=high, label=f"-{window.label}")

    def emit(self, ir: Program) -> Sequence[Artifact]:
        """Return one file; raise C0607 to C0633 where the runtime cannot carry the program, before anything is
        written."""
        algorithm = self._algorithm(ir)
        text = write(algorithm)
        return [Artifact(f"{ir.name}.xml", text, self.name, model=(self, ir, algorithm, text))]

    def _algorithm(self, ir: Program) -> Algorithm:
        spelling = self._spelling(ir)
        if not adds_once(ir):
            raise error(
                "C0607", f"{self.profile.title} cannot carry a program that is right for `op: {ir.collective.op}` only",
                notes=["calls with any operation use its files, and this one adds some contributions twice"],
                hint="let the scheduler fold (`fold: true`), or use the target `mpi-c`, which refuses other operations",
            )  # fmt: skip
        modes = find_modes(ir, (self.inplace, self.outofplace))
        draft, scale = self._draft(ir, spelling)
        refuse([*check_structure(draft), *check_limits(draft, self._sizeless, self.limits.max_threadblocks)])
        if draft.nchannels > (self.channels or draft.nchannels):
            raise error(
                "C0623", f"the program uses {draft.nchannels} channels where option `channels` allows {self.channels}",
                hint="let `balance-threadblocks` place its messages",
            )  # fmt: skip
        sizes = find_sizes(ir, draft, self.profile, self.min_bytes, self.max_bytes, scale)
        algorithm = self._stated(ir, draft, modes, sizes)
        refuse(check_limits(algorithm, self.profile))
        return algorithm

    def check(self, ir: Program, artifacts: Sequence[Artifact]) -> Report:
        """Read the file back, execute it as the runtime would, and compare it with the program.

        A file does not carry the operation, the element type or the size of a call, nor the root, nor instructions that
        do nothing; waits may be others as long as they come to the same. All its numbers, comments included, are those
        that were to be written.
        """
        return Report("msccl-xml", ir.collective.kind, ir.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Program, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        if [a.filename for a in artifacts] != [f"{ir.name}.xml"]:
            yield Check("files", False, f"these are {', '.join(a.filename for a in artifacts)}, not {ir.name}.xml")
            return
        text = artifacts[0].text
        try:
            found = read(text, artifacts[0].filename)
            report = verify_read(found, text, [self.profile])
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        yield from report.checks
        if report.ok:
            other = next(differences(found, ir), "")
            yield Check("same program", not other, other or "instruction by instruction, waits by what they come to")
        due, wanted = self._written(ir, artifacts[0])
        wrong = first_difference(text, wanted) if text != wanted else "" if found == due else "it is read otherwise"
        yield Check("as written", not wrong, wrong or "byte for byte what was to be written")

    def _written(self, ir: Program, artifact: Artifact) -> tuple[Algorithm, str]:
        """Return what was to be written: what came along with the file, if it is this program's, else made again."""
        if isinstance(artifact.model, tuple) and artifact.model[:2] == (self, ir):
            return artifact.model[2], artifact.model[3]
        made = self._algorithm(ir)
        return made, write(made)

    # ---- parts of emit

    @property
    def _sizeless(self) -> Profile:
        """The runtime as far as it does not concern sizes, which are settled last."""
        return attrs.evolve(self.profile, exclusive_max_bytes=False)

    def _spelling(self, program: Program) -> str:
        kind = program.collective.kind
        if kind not in self.profile.spellings:
            carried = ", ".join(self.profile.spellings)
            raise error(
                "C0607", f"{self.profile.title} cannot carry the collective `{kind}`; it takes {carried}",
                hint="the target `mpi-c` carries every collective",
            )  # fmt: skip
        return self.profile.spellings[kind]

    def _draft(self, program: Program, spelling: str) -> tuple[Algorithm, int]:
        """Return the algorithm of a program, and how many of the program's chunks are one of its own."""
        made = document(program, coll=spelling, proto=self.proto, name=self._title(program), nthreads=self.nthreads)
        larger = in_larger_chunks(made, self._scale) if self._scale > 1 else None
        return (made, 1) if larger is None else (larger, self._scale)

    def _title(self, program: Program) -> str:
        """Return the name of the algorithm: as given, or the program's as far as it fits."""
        name = self.algorithm or re.sub(r"[^A-Za-z0-9_.+-]", "_", program.name) or "collective"
        return name[: max(63 - len(self._label), 1)] + self._label[:62]

    def _stated(self, program: Program, draft: Algorithm, modes: tuple[bool, bool], sizes: Sizes) -> Algorithm:
        """Return the algorithm with its flags, its sizes and the comments that say what they are."""
        beyond = int(self.profile.exclusive_max_bytes)
        return attrs.evolve(
            draft,
            inplace=int(modes[0]),
            outofplace=int(modes[1]),
            min_bytes=sizes.smallest,
            max_bytes=0 if sizes.largest is None else sizes.largest + beyond,
            comments=tuple(self._comments(program, draft, modes, sizes)),
        )

    def _comments(self, program: Program, draft: Algorithm, modes: tuple[bool, bool], sizes: Sizes) -> Iterator[str]:
        collective = program.collective
        by = f" by {program.scheduler}" if program.scheduler else ""
        yield f"collc: {collective.kind} of {collective.num_ranks} ranks{by}, for {self.profile.title}"
        if collective.root is not None:
            yield f"warning: right for root {collective.root} only, but runtimes pick a file for any root"
            if self.proto == "Simple" and self.profile.reads_outofplace:
                yield "warning: between machines this runtime miscounts its steps under Simple; use LL or LL128"
        used = " and ".join(mode_name(mode) for mode, use in zip((True, False), modes, strict=True) if use)
        low, high = splits(draft.nchunksperloop, sizes.smallest, sizes.largest, self.profile.tile[self.proto])
        depth = PROTOCOLS[self.proto].fifo_depth
        held = f"{low} to {high}" if low < high else f"{low}"
        yield f"executed {used}, with FIFOs of depth {depth}; its calls move at most {held} chunks at once"
        if not self.profile.reads_outofplace and all(modes):
            yield "this runtime uses it in place only: for calls out of place set inplace to 0"
        if sizes.why:
            yield sizes.why


def _option(name: str, need: str, found: object) -> Exception:
    return error("C0606", f"option `{name}` of target `msccl-xml` needs {need}, found {found}", exit_status=2)
