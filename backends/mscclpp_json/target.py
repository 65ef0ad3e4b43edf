"""The target ``mscclpp-json``: a one-sided program as an execution plan of MSCCL++."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Excess, Kind, Subject, error
from collc.ir.frozen import frozen
from collc.ir.verify import Check, Report

from ..base import MAX_TEXT, Artifact, Limits, Target, Window, first_difference
from .runtimes import (
    GPUS,
    MAX_BARRIERS,
    MAX_LINK_IDS,
    MAX_LINKS,
    MAX_OPERATIONS,
    RUNTIMES,
    Runtime,
)  # fmt: skip

if TYPE_CHECKING:
    from collc.ir.collective import Collective
    from collc.ir.one_sided.program import OneSided

    from ..msccl_xml.published import Published
    from .windows import Sizes

__all__ = ["MscclppJson", "OneSidedLimits"]

_MOST_BYTES = 2**62
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,63}")
#: element types that the executor adds
_TYPES = frozenset({"float16", "bfloat16", "float32", "int32", "uint32"})
_MOST_SHARES = 64


@frozen
class OneSidedLimits(Limits):
    """The limits of MSCCL++, and the options of the target that passes need.

    ``packets`` is whether to use them: None if the pass chooses. ``ranks_per_node`` ranks share memory, None: all, or
    those that the topology says. ``max_blocks`` blocks run at once; each operation is cut among ``shares`` blocks.
    """

    packets: bool | None = None
    ranks_per_node: int | None = None
    max_operations: int = MAX_OPERATIONS
    max_links: int = MAX_LINKS
    max_link_ids: int = MAX_LINK_IDS
    max_items: int = 10
    max_barriers: int = MAX_BARRIERS
    max_blocks: int | None = None
    double_scratch: bool | None = None
    shares: int = 1


@frozen
class MscclppJson(Target):
    """An execution plan for MSCCL++, on NVIDIA and AMD GPUs. One file serves all ranks.

    Sizes are bytes of the whole vector (for allgather, reduce-scatter and alltoall: of the data of all ranks together).
    The executor adds, whatever a call asks for, so the target takes sums only.
    """

    name: ClassVar[str] = "mscclpp-json"
    summary: ClassVar[str] = "execution plans of MSCCL++ for NVIDIA and AMD GPUs"
    suffix: ClassVar[str] = ".json"
    level: ClassVar[str] = "one-sided"
    says_use: ClassVar[bool] = True
    most_read: ClassVar[int | None] = MAX_TEXT

    runtime: Literal["0.8", "0.9", "main"] = attrs.field(
        default="0.9",
        metadata={
            "help": "version of MSCCL++: 0.8, 0.9 or its main branch",
            "meanings": "0.8 is 0.8.0, 0.9 is 0.9.0, main is the main branch after 0.9.0",
            "habits": {"v0.8": "0.8", "0.8.0": "0.8", "v0.8.0": "0.8", "v0.9": "0.9", "0.9.0": "0.9", "v0.9.0": "0.9",
                       "master": "main", "latest": "main"},
        },
    )  # fmt: skip
    protocol: Literal["Simple", "LL", "auto"] = attrs.field(
        default="auto",
        metadata={"help": "Simple (signals), LL (packets, for small calls), or auto: what fits and pays"},
    )
    ranks_per_node: int | None = attrs.field(
        default=None, metadata={"help": "ranks that share memory (default: all, or those that the topology says)"}
    )
    inplace: bool = attrs.field(
        default=False, metadata={"help": "serve calls in place, else out of place; a process needs one of them"}
    )
    instances: int = attrs.field(default=1, metadata={"help": "parallel instances, each on its own part of the data"})
    shares: int = attrs.field(
        default=1, metadata={"help": "blocks that share every operation, each on its slice (1 to 64)"}
    )
    gpu: int | str = attrs.field(
        default="a100", metadata={"help": f"multiprocessors of a GPU: a number, or {', '.join(GPUS)}"}
    )
    blocks: int | None = attrs.field(
        default=None, metadata={"help": "most blocks of a rank (default: the multiprocessors of the GPU)"}
    )
    min_bytes: int = attrs.field(default=0, metadata={"help": "smallest call, in bytes"})
    max_bytes: int | None = attrs.field(
        default=None, metadata={"help": "largest call, in bytes (default: the largest with buffers below 4 GiB)"}
    )
    double_scratch: bool | None = attrs.field(
        default=None, metadata={"help": "use halves of scratch alternately (default: with packets)"}
    )
    reuse: bool = attrs.field(
        default=False, metadata={"help": "share channels and 64 MiB of scratch among calls on all buffers"}
    )
    algorithm: str | None = attrs.field(
        default=None, metadata={"help": "name of the plan, before its hash (default: the collective's)"}
    )
    _label: str = ""  # suffix of the name of one of several algorithms

    def __attrs_post_init__(self) -> None:
        wrong = list(self._wrong())
        if wrong:
            raise CollcError(wrong, exit_status=2)

    def _wrong(self) -> Iterator[Diagnostic]:
        if self.runtime not in RUNTIMES:
            yield _option("runtime", f"one of {', '.join(RUNTIMES)}", self.runtime)
        if self.protocol not in ("Simple", "LL", "auto"):
            yield _option("protocol", "Simple, LL or auto", self.protocol)
        for option in ("ranks_per_node", "instances", "blocks"):
            value = getattr(self, option)
            if value is not None and value < 1:
                yield _option(option.replace("_", "-"), "at least 1", value)
        if not 1 <= self.shares <= _MOST_SHARES:
            yield _option("shares", f"1 to {_MOST_SHARES}", self.shares)
        if isinstance(self.gpu, str) and self.gpu.lower() not in GPUS:
            yield _option("gpu", f"a number of multiprocessors, or one of {', '.join(GPUS)}", self.gpu)
        elif isinstance(self.gpu, int) and self.gpu < 1:
            yield _option("gpu", "at least 1 multiprocessor", self.gpu)
        if not 0 <= self.min_bytes <= _MOST_BYTES:
            yield _option("min-bytes", f"0 to {_MOST_BYTES}", self.min_bytes)
        elif self.max_bytes is not None and not max(self.min_bytes, 1) <= self.max_bytes <= _MOST_BYTES:
            least = f"{self.min_bytes} (`min-bytes`)" if self.min_bytes > 1 else "1"
            yield _option("max-bytes", f"{least} to {_MOST_BYTES}", self.max_bytes)
        if self.algorithm is not None and not _NAME.fullmatch(self.algorithm):
            yield _option("algorithm", "1 to 63 letters, digits and _ . + -", self.algorithm)

    @property
    def version(self) -> Runtime:
        """The version of the runtime, with its limits."""
        return RUNTIMES[self.runtime]

    @property
    def multiprocessors(self) -> int:
        """Blocks of a rank that run at once."""
        return GPUS[self.gpu.lower()] if isinstance(self.gpu, str) else self.gpu

    @classmethod
    def options_of(cls, published: Published, name: str, given: Mapping[str, object]) -> Mapping[str, object]:
        """Return the in-place mode of a file that is for one mode, unless the user wrote one."""
        return {} if "inplace" in given else {"inplace": not published.confirmed[1]}

    @property
    def limits(self) -> OneSidedLimits:
        """The limits of the runtime, and the options that passes need."""
        blocks = min(self.blocks or self.multiprocessors, self.multiprocessors)
        return OneSidedLimits(
            max_threadblocks=blocks // (self.shares * self.instances) or 1,
            equal_chunks=True,
            orbits=True,
            one_sided=True,
            packets={"LL": True, "Simple": False}.get(self.protocol, self._small()),
            ranks_per_node=self.ranks_per_node,
            inplace=self.inplace,
            max_items=self.version.max_items,
            max_blocks=blocks,
            double_scratch=self.double_scratch,
            shares=self.shares,
            instances=self.instances if self.instances > 1 else None,
        )

    def _small(self) -> bool | None:
        """Return whether all calls are so small that packets pay; None if the sizes do not say."""
        return True if self.max_bytes is not None and self.max_bytes <= _SMALL else None

    @property
    def reader(self) -> str:
        return self.runtime

    def within(self, window: Window) -> MscclppJson | None:
        """Return the target for the calls of a window inside its own sizes; None if there are none."""
        low = max(self.min_bytes, window.low)
        high = min((end for end in (self.max_bytes, window.high) if end is not None), default=None)
        if high is not None and high < max(low, 1):
            return None
        return attrs.evolve(self, min_bytes=low, max_bytes=high, label=f"-{window.label}")

    def instead(self, excess: Excess) -> tuple[str | None, str | None]:
        if excess.what != "blocks":
            return None, None
        able = next((name for name, number in GPUS.items() if number >= excess.found), None)
        larger = f"; a {able} runs {GPUS[able]}" if able else ""
        given = "blocks" if self.blocks is not None else "gpu"
        return given, f"use `protocol=LL`, fewer `instances` or `shares`, or fewer chunks{larger}"

    def require(self, collective: Collective) -> None:
        if collective.weights is not None and collective.reduces:
            raise error(
                "C0697", f"mscclpp-json has no `{collective.name}`: its chunks are equal where data are reduced",
                hint="use the target `mpi-c`, which takes every collective",
            )  # fmt: skip
        if not collective.reduces:
            return
        if collective.op != "sum":
            raise error(
                "C0677", f"MSCCL++ adds whatever a plan says, found `op: {collective.op}`",
                hint="use `op: sum`, or the target `mpi-c`, which has every operation",
                about=(Subject.TARGET, Subject.COLLECTIVE),
            )  # fmt: skip
        if collective.dtype not in _TYPES:
            raise error(
                "C0677", f"MSCCL++ adds no elements of type {collective.dtype}",
                notes=[f"it adds {', '.join(sorted(_TYPES))} and fp8 elements"],
                hint="use another `dtype`, or the target `mpi-c`", about=(Subject.TARGET, Subject.COLLECTIVE),
            )  # fmt: skip

    # ---- writing

    def emit(self, ir: OneSided) -> Sequence[Artifact]:
        """Return one file. Raises C0669 to C0697 if the executor cannot run the program."""
        arranged, text = self._written(ir)
        label = self._label.removeprefix("-")
        return [Artifact(f"{ir.name}{self.suffix}", text, self.name, label, model=(self, ir, arranged, text))]

    def _written(self, ir: OneSided) -> tuple[OneSided, str]:
        """Return the program as the plan holds it, and the plan."""
        from ..msccl_xml.findings import refuse
        from .limits import broken_limits, check_residency
        from .writer import arranged, write

        self.require(ir.collective)
        if ir.together:
            raise error(
                "C0698", "the program relies on all ranks having finished a launch when any begins the next",
                notes=["launches of MSCCL++ overlap"], hint="run the pass `handshake`",
            )  # fmt: skip
        program = arranged(ir) if ir.reuse == self.reuse else attrs.evolve(arranged(ir), reuse=self.reuse)
        found = [one for one in broken_limits(program, self.version) if not one.mild]
        refuse([*found, *check_residency(program, self.limits.max_blocks)[0]])
        return program, write(program, self._title(ir), self._sizes(program))

    def _title(self, ir: OneSided) -> str:
        name = self.algorithm or re.sub(r"[^A-Za-z0-9_.+-]", "_", ir.name) or "collective"
        return name[: max(63 - len(self._label), 1)] + self._label[:62]

    def _sizes(self, program: OneSided) -> Sizes:
        """Return the calls that the plan serves; raise C0674 if there are none."""
        from .windows import counted_chunks, in_calls, largest_chunk, sizes_of, smallest_chunk

        sizes = sizes_of(program, self.version, self.min_bytes, self.max_bytes)
        if sizes is not None:
            return sizes
        counted = counted_chunks(program)
        least, most = counted * smallest_chunk(program, self.version), counted * largest_chunk(program)
        limit = "" if self.max_bytes is None else f" to {int(in_calls(program, self.max_bytes))}"
        first = int(in_calls(program, self.min_bytes))
        unit = counted * program.alignment
        raise error(
            "C0674", f"no call of {first}{limit} bytes is a multiple of {unit}, as {counted} chunks need",
            notes=[f"the plan can serve calls of {least} to {most} bytes"], kind=Kind.SIZE,
            hint="allow other sizes (`min-bytes`, `max-bytes`), or use fewer chunks", option="max-bytes",
            excess=Excess("bytes", least, self.max_bytes or most),
        )  # fmt: skip

    # ---- reading back

    def check(self, ir: OneSided, artifacts: Sequence[Artifact]) -> Report:
        """Read the file back, execute it by the model of the runtime, and compare it with the program.

        A file does not have the operation, the element type, the size or the root of a call. All else is compared,
        column by column.
        """
        return Report(self.name, ir.collective.name, ir.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: OneSided, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        from .reader import read
        from .verify import verify_plan

        due = f"{ir.name}{self.suffix}"
        if [a.filename for a in artifacts] != [due]:
            yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {due}")
            return
        try:
            plan = read(artifacts[0].text, artifacts[0].filename)
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        arranged, text = self._expected(ir, artifacts[0])
        report = verify_plan(
            plan, runtime=self.version, collective=ir.collective, multiprocessors=self.limits.max_blocks, due=arranged
        )
        yield from report.checks
        wrong = first_difference(artifacts[0].text, text) if artifacts[0].text != text else ""
        yield Check("as written", not wrong, wrong or "byte for byte the emitted text")

    def _expected(self, ir: OneSided, artifact: Artifact) -> tuple[OneSided, str]:
        """Return the arranged program and its text: the artifact's if it is this program's, else new ones."""
        if isinstance(artifact.model, tuple) and artifact.model[:2] == (self, ir):
            return artifact.model[2], artifact.model[3]
        return self._written(ir)


#: bytes up to which packets pay, which take twice the bandwidth and half the latency of signals
_SMALL = 1 << 20


def _option(name: str, need: str, found: object) -> Diagnostic:
    message = f"option `{name}` of target `mscclpp-json` needs {need}, found {found}"
    return Diagnostic("C0686", message, hint=f"leave `{name}` out for the default", option=name)
