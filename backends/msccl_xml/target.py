"""The target ``msccl-xml``: a Program as a file for one of the runtimes that read MSCCL-XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from collc.ir.collective import CUSTOM
from collc.ir.diagnostic import CollcError, Diagnostic, Excess, Subject, error
from collc.ir.frozen import frozen
from collc.ir.layout import granule
from collc.ir.machine import completes_with
from collc.ir.verify import Check, Report

from ..base import MAX_TEXT, Artifact, Limits, Target, Window, first_difference
from .profiles import PROFILES, PROTOCOLS, Profile

if TYPE_CHECKING:
    from collc.ir.collective import Collective
    from collc.ir.program import Program

    from .model import Algorithm
    from .published import Published
    from .uses import Sizes

__all__ = ["MscclXml"]

_MOST_BYTES = 2**62  # the parsers read sizes as signed 64-bit numbers
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,63}")


@frozen
class MscclXml(Target):
    """MSCCL-XML for one runtime. The target checks the runtime's limits before it writes.

    The default runtime is ``executor``, the only maintained one. Sizes are bytes of the whole vector, as the runtimes
    count them (for allgather, reduce-scatter and alltoall: of the data of all ranks together).
    """

    name: ClassVar[str] = "msccl-xml"
    summary: ClassVar[str] = "MSCCL-XML for GPU runtimes: msccl, executor (NCCL), rccl"
    suffix: ClassVar[str] = ".xml"
    says_use: ClassVar[bool] = True
    relays_as_custom: ClassVar[bool] = True
    most_read: ClassVar[int | None] = MAX_TEXT

    runtime: Literal["executor", "msccl", "rccl"] = attrs.field(
        default="executor",
        metadata={
            "help": "the runtime: msccl-executor-nccl, microsoft/msccl, RCCL",
            "meanings": "executor is msccl-executor-nccl (NCCL 2.23, NVIDIA GPUs), msccl is microsoft/msccl "
            "(NCCL 2.12, NVIDIA GPUs), rccl is RCCL (AMD GPUs)",
            "habits": {
                "nccl": "executor", "nvidia": "executor", "cuda": "executor", "msccl-executor-nccl": "executor",
                "msccl-executor": "executor", "microsoft": "msccl", "amd": "rccl", "rocm": "rccl", "hip": "rccl",
            },
        },
    )  # fmt: skip
    proto: Literal["Simple", "LL", "LL128"] = attrs.field(
        default="Simple", metadata={"help": "NCCL protocol: Simple for large calls, LL and LL128 for small ones"}
    )
    channels: int | None = attrs.field(default=None, metadata={"help": "maximum number of channels"})
    threadblocks: int | None = attrs.field(
        default=None, metadata={"help": "threadblocks of a rank that run at once (default: 108; rccl 64)"}
    )
    inplace: bool | None = attrs.field(
        default=None, metadata={"help": "serve calls in place (default: if the program is correct in place)"}
    )
    outofplace: bool | None = attrs.field(
        default=None, metadata={"help": "serve calls out of place (default: if the program is correct out of place)"}
    )
    min_bytes: int = attrs.field(default=0, metadata={"help": "smallest call, in bytes"})
    max_bytes: int | None = attrs.field(
        default=None, metadata={"help": "largest call, in bytes (default: the largest that cannot deadlock)"}
    )
    algorithm: str | None = attrs.field(
        default=None, metadata={"help": "name of the algorithm (default: the collective's)"}
    )
    nthreads: int | None = attrs.field(default=None, metadata={"help": "threads of a threadblock (msccl only)"})
    _label: str = ""  # suffix of the name of one of several algorithms
    _scale: int | None = None  # chunks of the program in one of the file, if the steps allow that; None: few chunks

    def __attrs_post_init__(self) -> None:
        wrong: list[Diagnostic] = []
        for option, known in (("runtime", PROFILES), ("proto", PROTOCOLS)):
            if getattr(self, option) not in known:
                raise CollcError(_option(option, f"one of {', '.join(known)}", getattr(self, option)), exit_status=2)
        for option in ("channels", "threadblocks"):
            value, most = getattr(self, option), getattr(self.profile, f"max_{option}")
            if value is not None and not 1 <= value <= most:
                wrong.append(_option(option, f"1 to {most} for runtime {self.runtime}", value))
        if not 0 <= self.min_bytes <= _MOST_BYTES:
            wrong.append(_option("min-bytes", f"0 to {_MOST_BYTES}", self.min_bytes))
        elif self.max_bytes is not None and not max(self.min_bytes, 1) <= self.max_bytes <= _MOST_BYTES:
            least = f"{self.min_bytes} (`min-bytes`)" if self.min_bytes > 1 else "1"
            wrong.append(_option("max-bytes", f"{least} to {_MOST_BYTES}", self.max_bytes))
        if self.algorithm is not None and not _NAME.fullmatch(self.algorithm):
            wrong.append(_option("algorithm", "1 to 63 letters, digits and _ . + -", self.algorithm))
        if self.nthreads is not None and self.profile.max_threads is None:
            message = f"runtime {self.runtime} does not read the option `nthreads`"
            hint = "leave `nthreads` out, or use runtime `msccl`"
            wrong.append(Diagnostic("C0606", message, hint=hint, option="nthreads"))
        if self.inplace is False and self.outofplace is False:
            message = "options `inplace` and `outofplace` are both false: no call would use the file"
            wrong.append(Diagnostic("C0606", message, hint="leave one of them out", option="outofplace"))
        if wrong:
            raise CollcError(wrong, exit_status=2)

    @classmethod
    def options_of(cls, published: Published, name: str, given: Mapping[str, object]) -> Mapping[str, object]:
        """Return protocol, sizes, uses and name of a published file, and its threads if the runtime reads them."""
        kept = dict(published.options)
        if published.largest is not None and published.largest < max(published.smallest, 1):
            del kept["max_bytes"]
        for several in (("inplace", "outofplace"), ("min_bytes", "max_bytes")):
            if not given.keys().isdisjoint(several):
                kept = {option: value for option, value in kept.items() if option not in several}
        runtime, threads = PROFILES.get(str(given.get("runtime"))), published.algorithm.nthreads
        if threads is not None and runtime is not None and runtime.max_threads is not None:
            kept["nthreads"] = threads
        return {**kept, "algorithm": name[:63]}

    def in_chunks_of(self, published: Published) -> MscclXml:
        return attrs.evolve(self, scale=published.scale)

    @property
    def profile(self) -> Profile:
        """The runtime's limits and spellings."""
        return PROFILES[self.runtime]

    @property
    def takes_relays(self) -> bool:
        """Whether the runtime has custom collectives: a file of another name would also serve calls without relays."""
        return CUSTOM in self.profile.spellings

    def instead(self, excess: Excess) -> tuple[str | None, str | None]:
        what, found = excess.what, excess.found
        if what in ("threadblocks", "channels"):
            most = getattr(self.profile, f"max_{what}")
            if excess.allowed < found <= most:
                running = " if a GPU of yours runs that many at once" if what == "threadblocks" else ""
                return what, f"set `{what}` to {found}{running}: runtime {self.runtime} takes up to {most}"
        field = {"threadblocks": "resident", "channels": "max_channels", "steps": "max_steps"}.get(what)
        larger = [one for one in PROFILES.values() if field and getattr(one, field) >= found]
        given = what if getattr(self, what, None) is not None else "runtime"
        if field is None or not larger:
            return None, None
        return given, f"use runtime `{larger[0].name}`, which takes {getattr(larger[0], field)} {what}"

    @property
    def limits(self) -> Limits:
        """The limits for passes: the runtime's, or lower ones of options."""
        return Limits(
            max_threadblocks=self.threadblocks or self.profile.resident,
            max_steps=self.profile.max_steps,
            max_channels=self.channels or self.profile.max_channels,
            max_count=self.profile.max_count,
            max_offset=self.profile.max_offset,
            max_elements=self.profile.max_nodes,
            fifo_depth=PROTOCOLS[self.proto].fifo_depth,
            fused=self.profile.fused,
            equal_chunks=True,
            orbits=True,
        )

    @property
    def reader(self) -> str:
        return self.runtime

    def within(self, window: Window) -> MscclXml | None:
        """Return the target for the calls of a window inside its own sizes; None if there are none."""
        low = max(self.min_bytes, window.low)
        ends = [end for end in (self.max_bytes, window.high) if end is not None]
        high = min(ends, default=None)
        if high is not None and high < max(low, 1):
            return None
        return attrs.evolve(self, min_bytes=low, max_bytes=high, label=f"-{window.label}")

    def emit(self, ir: Program) -> Sequence[Artifact]:
        """Return one file. Raises C0607 to C0633 if the runtime cannot run the program."""
        from .writer import written

        algorithm, sizes = self._algorithm(ir)
        text = written(algorithm)
        return [Artifact(f"{ir.name}.xml", text, self.name, model=(self, ir, algorithm, text), hangs=sizes.hangs)]

    def _algorithm(self, ir: Program) -> tuple[Algorithm, Sizes]:
        """Return the algorithm of a program with all its attributes, and the sizes that it serves."""
        from collc.ir.verify import adds_once

        from .findings import refuse
        from .limits import check_limits
        from .structure import check_structure
        from .uses import find_modes, find_sizes, served

        spelling = self._spelling(ir)
        if not adds_once(ir):
            raise error(
                "C0607", f"{self.profile.title} cannot run a program that is correct only for `op: {ir.collective.op}`",
                notes=["its files serve calls with any operation, and this program adds some contributions twice"],
                hint="let the scheduler fold (`fold: true`), or use the target `mpi-c`, which refuses other operations",
                about=(Subject.TARGET, Subject.SCHEDULER, Subject.COLLECTIVE),
            )  # fmt: skip
        modes = find_modes(ir, self._requested(ir.collective))
        ir = served(ir, modes)
        draft, scale = self._draft(ir, spelling)
        refuse([*check_structure(draft), *check_limits(draft, self._without_sizes, self.limits.max_threadblocks)])
        if draft.nchannels > (self.channels or draft.nchannels):
            raise error(
                "C0623", f"the program uses {draft.nchannels} channels, but option `channels` allows {self.channels}",
                hint="let `balance-threadblocks` place its messages",
                excess=Excess("channels", draft.nchannels, self.channels or draft.nchannels),
            )  # fmt: skip
        sizes = find_sizes(ir, draft, self.profile, self.min_bytes, self.max_bytes, scale)
        algorithm = self._complete(ir, draft, modes, sizes)
        refuse(check_limits(algorithm, self.profile))
        return algorithm, sizes

    def _requested(self, collective: Collective) -> tuple[bool | None, bool | None]:
        """Return whether the file is to serve calls in place and out of place; None: if the program is correct so."""
        if not _is_custom(collective):
            return self.inplace, self.outofplace
        if self.inplace:
            message = "a custom collective has no calls in place: its input and its output may be any shards"
            raise CollcError(Diagnostic("C0606", message, hint="leave `inplace` out", option="inplace"), exit_status=2)
        return False, self.outofplace

    def check(self, ir: Program, artifacts: Sequence[Artifact]) -> Report:
        """Read the file back, execute it as the runtime would, and compare it with the program.

        A file does not have the operation, the element type, the size or the root of a call, or instructions that do
        nothing in its uses. Its dependencies may differ if their effect is the same. All its numbers and comments are
        compared.
        """
        return Report("msccl-xml", ir.collective.name, ir.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Program, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        from .reader import read
        from .same import differences
        from .uses import served
        from .verify import verify_read

        if [a.filename for a in artifacts] != [f"{ir.name}.xml"]:
            yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {ir.name}.xml")
            return
        text = artifacts[0].content
        try:
            found = read(text, artifacts[0].filename)
            report = verify_read(found, text, [self.profile], collective=_unnamed(ir.collective))
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        yield from report.checks
        if report.ok:
            other = next(differences(found, served(ir, (bool(found.inplace), bool(found.outofplace)))), "")
            yield Check("same program", not other, other or "equal instructions; dependencies have the same effect")
        expected, expected_text = self._expected(ir, artifacts[0])
        wrong = ""
        if artifacts[0].data != expected_text:
            wrong = first_difference(artifacts[0].text, expected_text.decode("utf-8", "surrogatepass"))
        if not wrong and not found.equals(expected):
            wrong = "the reader finds another algorithm"
        yield Check("as written", not wrong, wrong or "byte for byte the emitted text")

    def _expected(self, ir: Program, artifact: Artifact) -> tuple[Algorithm, bytes]:
        """Return the algorithm and the text of a program: the artifact's if it is this program's, else new ones."""
        if isinstance(artifact.model, tuple) and artifact.model[:2] == (self, ir):
            return artifact.model[2], artifact.model[3]
        from .writer import written

        algorithm, _ = self._algorithm(ir)
        return algorithm, written(algorithm)

    # ---- parts of emit

    @property
    def _without_sizes(self) -> Profile:
        """The runtime without its rules for sizes, which the target checks last."""
        return attrs.evolve(self.profile, exclusive_max_bytes=False)

    def require(self, collective: Collective) -> None:
        kind = collective.kind if collective.weights is None and collective.members is None else CUSTOM
        if kind == CUSTOM and kind not in self.profile.spellings:
            able = next(one for one in PROFILES.values() if kind in one.spellings)
            raise error(
                "C0607", f"{self.profile.title} cannot run `{collective.name}`: its buffers are equal on all ranks",
                notes=[f"{able.title} runs it as a custom collective"],
                hint=f"use `runtime={able.name}`, or the target `mpi-c`",
            )  # fmt: skip
        if collective.weights is not None and collective.reduces:
            raise error(
                "C0607", f"{self.profile.title} cannot run `{collective.name}`: its chunks are equal",
                hint="use the target `mpi-c`, which takes every collective",
            )  # fmt: skip
        if kind not in self.profile.spellings:
            carried = ", ".join(self.profile.spellings)
            raise error(
                "C0607", f"{self.profile.title} cannot run the collective `{collective.kind}`; it runs {carried}",
                hint="use the target `mpi-c`, which takes every collective",
            )  # fmt: skip

    def _spelling(self, program: Program) -> str:
        self.require(program.collective)
        if program.collective.weights is not None:
            raise error(
                "C0607", f"the program's chunks differ in size; all chunks of {self.profile.title} are equal",
                hint="run `whole-chunks` before `discretize`",
            )  # fmt: skip
        return self.profile.spellings[CUSTOM if _is_custom(program.collective) else program.collective.kind]

    def _draft(self, program: Program, spelling: str) -> tuple[Algorithm, int]:
        """Return the algorithm of a program, and the number of the program's chunks in one of its chunks.

        Chunks are as large as in the file that the program comes from, or larger if FIFOs would be too short otherwise.
        """
        from .chunks import in_larger_chunks
        from .document import document

        draft = document(program, coll=spelling, proto=self.proto, name=self._title(program), nthreads=self.nthreads)
        scale = granule(program) if self._scale is None else self._scale
        if self._scale is None and scale > 1 and completes_with(program, PROTOCOLS[self.proto].fifo_depth, split=1):
            scale = 1
        larger = in_larger_chunks(draft, scale) if scale > 1 else None
        return (draft, 1) if larger is None else (larger, scale)

    def _title(self, program: Program) -> str:
        """Return the name of the algorithm: the option's, or the program's, cut to fit."""
        name = self.algorithm or re.sub(r"[^A-Za-z0-9_.+-]", "_", program.name) or "collective"
        return name[: max(63 - len(self._label), 1)] + self._label[:62]

    def _complete(self, program: Program, draft: Algorithm, modes: tuple[bool, bool], sizes: Sizes) -> Algorithm:
        """Return the algorithm with its flags, its sizes and the comments about them."""
        beyond = int(self.profile.exclusive_max_bytes)
        return draft.headed(
            inplace=int(modes[0]),
            outofplace=int(modes[1]),
            min_bytes=sizes.smallest,
            max_bytes=0 if sizes.largest is None else sizes.largest + beyond,
            comments=tuple(self._comments(program, draft, modes, sizes)),
        )

    def _comments(self, program: Program, draft: Algorithm, modes: tuple[bool, bool], sizes: Sizes) -> Iterator[str]:
        from .execution import mode_name
        from .windows import splits

        collective = program.collective
        by = f" by {program.scheduler}" if program.scheduler else ""
        yield f"collc: {collective.name} of {collective.num_ranks} ranks{by}, for {self.profile.title}"
        if _is_custom(collective):
            chunks = [[f(r) for r in range(program.num_ranks)] for f in (program.input_chunks, program.output_chunks)]
            total = draft.nchunksperloop
            yield f"for ncclCustomCollective with a count of {total} chunks; a rank uses the first of each buffer:"
            yield f"input {' '.join(map(str, chunks[0]))}; output {' '.join(map(str, chunks[1]))}"
            if collective.members is not None:
                at = f" at rank {collective.root}" if collective.root is not None else ""
                with_op = "; its `op` reduces" if collective.reduces else ""
                yield f"{collective.kind}{at} of the first {collective.num_members}; the others only relay{with_op}"
        elif collective.root is not None:
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


def _unnamed(collective: Collective) -> Collective | None:
    """Return the collective if files cannot name it."""
    return collective if _is_custom(collective) else None


def _is_custom(collective: Collective) -> bool:
    """Return whether a file names a collective `custom`: its conditions are its own, or some ranks only relay."""
    return collective.kind == CUSTOM or collective.members is not None


def _option(name: str, need: str, found: object) -> Diagnostic:
    message = f"option `{name}` of target `msccl-xml` needs {need}, found {found}"
    return Diagnostic("C0606", message, hint=f"leave `{name}` out for the default", option=name)
