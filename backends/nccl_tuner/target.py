"""The target ``nccl-tuner``: a table of NCCL's own algorithms by size, read back by models of the tuners."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.frozen import frozen
from collc.ir.shown import counted, listed
from collc.ir.tuning import LARGEST, Tuning, TuningRequest
from collc.ir.verify import Check, Report

from ..base import Artifact, Target, first_difference
from .dialects import COLUMNS, read_table, rows_of
from .names import COLLECTIVES, PROTOCOLS, SEVERAL
from .plugins import Call, Choice, Tuner

if TYPE_CHECKING:
    from collc.ir.collective import Collective

__all__ = ["NcclTuner"]

_VERSION = re.compile(r"2\.(\d{1,3})(\.\d{1,3})?")
_FIRST = 28
_MOST_CHANNELS = 64
_STEM = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_ONE_CHANNEL = "with this plugin a call without a row runs on one channel: have rows for each collective"


@frozen
class NcclTuner(Target):
    """The table of a tuner: which of NCCL's own algorithms at which size of a call, for stock NCCL.

    A tuner chooses among NCCL's algorithms; it cannot run a schedule of collc. The borders are exact to the byte by the
    cost model, or by measured times. Sizes are bytes of the whole vector.
    """

    name: ClassVar[str] = "nccl-tuner"
    summary: ClassVar[str] = "table of NCCL's tuner plugins: which of NCCL's own algorithms at which size"
    suffix: ClassVar[str] = ".csv"
    level: ClassVar[str] = "tuning"

    dialect: Literal["example", "ncclx"] = attrs.field(
        default="example",
        metadata={"help": "the tuner: example (NCCL's CSV plugin) or ncclx (built into NCCLX)"},
    )
    nccl: str = attrs.field(default="2.30", metadata={"help": "version of NCCL: 2.28 and later"})
    channels: int = attrs.field(
        default=0, metadata={"help": "number of channels of every row, 1 to 64 (0: NCCL's own number)"}
    )
    nodes: int | None = attrs.field(
        default=None, metadata={"help": "number of machines (default: the boxes of the network)"}
    )
    measured: str | None = attrs.field(
        default=None, metadata={"help": "file of times that `collc calibrate --nccl-tests` wrote, instead of the model"}
    )
    nvls: bool = attrs.field(
        default=False, metadata={"help": "the switch of the machine adds and copies (H100 and later)"}
    )
    protocol: Literal["ll", "ll128", "simple"] = attrs.field(
        default="simple", metadata={"help": "protocol of rows from the cost model, which has none: ll, ll128, simple"}
    )
    table: str | None = attrs.field(
        default=None, metadata={"help": "stem of one file for all collectives of the input"}
    )

    def __attrs_post_init__(self) -> None:
        wrong = list(self._wrong())
        if wrong:
            raise CollcError(wrong, exit_status=2)

    def _wrong(self) -> Iterator[Diagnostic]:
        for option, known in (("dialect", tuple(COLUMNS)), ("protocol", PROTOCOLS)):
            if getattr(self, option) not in known:
                yield _option(option, f"one of {', '.join(known)}", getattr(self, option))
        version = _VERSION.fullmatch(str(self.nccl))
        if version is None or int(version[1]) < _FIRST:
            yield _option("nccl", f"a version from 2.{_FIRST} on, whose example plugin reads the table", self.nccl)
        if not 0 <= self.channels <= _MOST_CHANNELS:
            yield _option("channels", f"0 to {_MOST_CHANNELS}", self.channels)
        if self.nodes is not None and self.nodes < 1:
            yield _option("nodes", "at least 1", self.nodes)
        if self.table is not None and not _STEM.fullmatch(self.table):
            yield _option("table", "1 to 64 letters, digits and _ . + -", self.table)

    @property
    def request(self) -> TuningRequest:
        """What the choice among NCCL's algorithms depends on."""
        return TuningRequest(self.nodes, self.measured, self.nvls, self.protocol)

    @property
    def reads(self) -> tuple[str, ...]:
        """The file of measured times."""
        return () if self.measured is None else (self.measured,)

    @property
    def shared(self) -> str | None:
        """The stem of the one file; None if each collective has its own."""
        return self.table

    def require(self, collective: Collective) -> None:
        """Raise C0770 for a collective that NCCL has one algorithm for."""
        if collective.members is not None:
            hint = "describe the network of the members alone: `without(pod, {..})`"
            raise error("C0770", "a table is of the whole network; found a collective among some ranks", hint=hint)
        if collective.name not in SEVERAL:
            hint = f"it has several for {listed(SEVERAL)}"
            raise error("C0770", f"NCCL has one algorithm for {collective.name}", hint=hint)

    # ---- writing

    def emit(self, ir: Tuning) -> Sequence[Artifact]:
        """Return the table; raise C0774 for what NCCL does not have."""
        return [Artifact(f"{ir.name}{self.suffix}", self._text([ir]), self.name, part=ir)]

    def join(self, mains: Sequence[Artifact]) -> Sequence[Artifact]:
        """Return the one table of several collectives."""
        tunings: list[Tuning] = [main.part for main in mains]
        served = [_communicator(one) for one in tunings]
        for kind, nodes, ranks in served:
            if served.count((kind, nodes, ranks)) > 1:
                where = f"{counted(ranks, 'rank')} and {counted(nodes, 'machine')}"
                message = f"two tables are for {kind} on {where}, and a tuner uses the first"
                raise error("C0774", message, hint="leave one out")
        return [Artifact(f"{self.table}{self.suffix}", self._text(tunings), self.name)]

    def _text(self, tunings: Sequence[Tuning]) -> str:
        lines = [f"# {COLUMNS[self.dialect]}"]
        if self.dialect == "example":
            lines.append(f"# NCCL {self.nccl}, example plugin; {_ONE_CHANNEL}")
        for one in tunings:
            kinds = f"{one.collective.kind} on {counted(one.collective.num_ranks, 'rank')}"
            lines += [f"# {kinds} and {counted(one.nodes, 'machine')}, {note}" for note in one.notes]
            lines += rows_of(one, self.dialect, self.channels)
        return "\n".join([*lines, ""])

    # ---- reading back

    def check(self, ir: Tuning, artifacts: Sequence[Artifact]) -> Report:
        """Read the table as the tuner does, and compare what it chooses on both sides of every border."""
        return self._report([ir], artifacts)

    def check_joined(self, mains: Sequence[Artifact], artifacts: Sequence[Artifact]) -> Report:
        """Read the one table as the tuner does, for every collective in it."""
        return self._report([main.part for main in mains], artifacts)

    def _report(self, tunings: Sequence[Tuning], artifacts: Sequence[Artifact]) -> Report:
        kinds, ranks = ", ".join(one.collective.kind for one in tunings), tunings[0].collective.num_ranks
        return Report("tuning", kinds, ranks, tuple(self._checks(tunings, artifacts)))

    def _checks(self, tunings: Sequence[Tuning], artifacts: Sequence[Artifact]) -> Iterator[Check]:
        text = artifacts[0].text
        yield Check("files", len(artifacts) == 1, counted(len(artifacts), "file"))
        wrong = next((line for line in text.split("\n") if len(line.encode()) > 254 or ",," in line), None)
        yield Check("lines", wrong is None, "no empty field, none too long" if wrong is None else f"`{wrong[:60]}`")
        try:
            tuner = read_table(text, self.dialect)
        except ValueError as refused:
            yield Check("reading", False, str(refused))
            return
        yield Check("reading", True, f"as the tuner of dialect {self.dialect} does")
        for one in tunings:
            yield self._same_choices(one, tuner)
            yield self._no_other(one, tunings, tuner)
        written = self._text(tunings)
        differs = "" if text == written else first_difference(text, written)
        yield Check("as written", not differs, differs or "byte for byte")

    def _same_choices(self, tuning: Tuning, tuner: Tuner) -> Check:
        """Return whether the tuner chooses, at many sizes, what the tuning says."""
        name, ranks = COLLECTIVES[tuning.collective.kind], tuning.collective.num_ranks
        sizes = self._sizes(tuning)
        for size in sizes:
            due = tuning.at(size)
            found = tuner.choose(Call(name, size, tuning.nodes, ranks))
            if found != Choice(due.algorithm, due.protocol, self.channels):
                shown = "no row" if found is None else " ".join(map(str, found))
                needed = f"{due.algorithm} {due.protocol} {self.channels}"
                return Check("same choice", False, f"{name} of {size} bytes: {shown}, not {needed}")
        return Check("same choice", True, f"{name} at {len(sizes)} sizes, {counted(len(tuning.borders), 'border')}")

    def _sizes(self, tuning: Tuning) -> list[int]:
        """Return sizes on both sides of every border, powers of two, and both ends."""
        step = tuning.collective.num_ranks if self.dialect == "ncclx" else 1
        near = [low + step * k for low in tuning.borders for k in (-1, 0, 1)]
        sizes = {0, 1, LARGEST, *near, *(2**k for k in range(64))}
        return sorted({size - size % step for size in sizes if 0 <= size <= LARGEST})

    def _no_other(self, tuning: Tuning, tunings: Sequence[Tuning], tuner: Tuner) -> Check:
        """Return whether the rows are for this number of machines and ranks alone."""
        name, ranks, nodes = COLLECTIVES[tuning.collective.kind], tuning.collective.num_ranks, tuning.nodes
        served = {_communicator(one) for one in tunings}
        others = [Call(name, 4096, times * nodes, times * ranks) for times in (2, 3)]
        wrong = [
            call for call in others
            if (tuning.collective.kind, call.nodes, call.ranks) not in served and tuner.choose(call) is not None
        ]  # fmt: skip
        return Check("no other communicator", not wrong, f"{nodes} machines, {ranks} ranks")


def _communicator(tuning: Tuning) -> tuple[str, int, int]:
    return tuning.collective.kind, tuning.nodes, tuning.collective.num_ranks


def _option(option: str, needed: str, found: object) -> Diagnostic:
    return error("C0774", f"option `{option}` is `{found}`, needed {needed}", option=option).diagnostics[0]
