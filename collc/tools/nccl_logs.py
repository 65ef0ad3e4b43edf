"""Logs of nccl-tests and of the OSU benchmarks -> measured times, from text as people paste it.

Colors, quotation marks of mails and prefixes of mpirun are passed over. A log may hold several runs, each with an
algorithm of its own: ``NCCL_ALGO=Ring``, in a command or as NCCL prints it, is for the runs after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs

from collc.backends.nccl_tuner.names import ALGORITHMS, PROTOCOLS
from collc.ir.diagnostic import CollcError, Source, Span, error, nearest
from collc.ir.frozen import frozen

__all__ = ["MAX_LINES", "Given", "Timed", "read_log"]

#: the largest number of lines of a log
MAX_LINES = 1_000_000

#: what a terminal, a mail, mpirun, srun or pdsh adds; blanks of the same length keep the columns of messages
_NOISE = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\r"
    r"|^(?:[^\S\n]*>)*[^\S\n]*(?:\[\d+,\d+\]<std(?:out|err)>:?|(?:\[[\w.:-]+\]|[\w.-]+:)(?=[^\S\n]+[#\d]))"
    r"|^(?:[^\S\n]*>)+",
    re.MULTILINE,
)
_VARIABLE = re.compile(r"\bNCCL_(ALGO|PROTO)(?:=| set by environment to )[\"']?([^\s;'\"]+)")
_TEST = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall|sendrecv|gather|scatter)_perf"
    r"|\bosu_(?:xccl_|nccl_)?(allreduce|allgather|reduce_scatter|bcast|reduce|alltoall)\b"
)
_ELSEWHERE = re.compile(r"NCCL INFO|test concluded")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\b.*?\bon\s+(\S+)\s+device\b")
_START = re.compile(r"#\s*(?:nThread\b|Collective test starting)")
_OSU = re.compile(
    r"#\s*OSU\b.*?\b(Allreduce|Allgather|Reduce_scatter|Broadcast|Bcast|Reduce|All-?to-?all)\b.*Latency", re.IGNORECASE
)
_LAUNCHER = re.compile(r"\b(?:mpirun|mpiexec|srun)\b.*?\s(?:-np|-n|--ntasks)[ =](\d{1,7})\b")

#: a test's name, or a benchmark's -> the collective
_KINDS = {
    "all_reduce": "allreduce", "allreduce": "allreduce", "all_gather": "allgather", "allgather": "allgather",
    "reduce_scatter": "reduce-scatter", "broadcast": "broadcast", "bcast": "broadcast", "reduce": "reduce",
    "alltoall": "alltoall",
}  # fmt: skip
#: names of algorithms as NCCL_ALGO spells them -> as tuners do
_SPELLED = {"collnetdirect": "collnet_direct", "collnetchain": "collnet_chain", "nvlstree": "nvls_tree"}


@frozen
class Timed:
    """One measurement: a call of ``bytes`` (the whole vector) took ``seconds``, exact as printed."""

    collective: str
    nodes: int
    ranks: int
    algorithm: str
    protocol: str | None
    bytes: int
    seconds: Fraction


@frozen
class Given:
    """What the user says of a log, which counts more than what it says itself."""

    algorithm: str | None = None
    protocol: str | None = None
    collective: str | None = None
    ranks: int | None = None
    nodes: int | None = None


def read_log(text: str, shown: str, given: Given) -> tuple[list[Timed], list[str]]:
    """Return the measurements of a log, and the reasons for skipped rows; raise C0079 at a line that is wrong."""
    reader = _Reader(Source(shown, text), given)
    found = list(reader.measurements())
    if not found:
        hint = "run `all_reduce_perf -b 8 -e 1G -f 2`, or `osu_allreduce`, and give their output"
        raise error("C0079", f"`{shown}` has no rows of nccl-tests or of the OSU benchmarks", hint=hint)
    notes = [f"{reader.wrong} rows of `{shown}` skipped: the result was wrong"] * bool(reader.wrong)
    return found, notes


@attrs.define
class _Run:
    """What is known of the run whose rows follow."""

    kind: str | None = None
    ranks: set[int] = attrs.Factory(set)
    hosts: set[str] = attrs.Factory(set)
    columns: tuple[str, ...] = ()
    is_osu: bool = False


class _Reader:
    """Reads the lines of one log, in order."""

    def __init__(self, source: Source, given: Given) -> None:
        self.source, self.given, self.run, self.wrong = source, given, _Run(), 0
        self.algorithm: str | None = None
        self.protocol: str | None = None
        self.launched: int | None = None

    def measurements(self) -> Iterator[Timed]:
        """Yield the measurement of every row."""
        lines = _NOISE.sub(lambda found: " " * len(found[0]), self.source.text).split("\n")
        if len(lines) > MAX_LINES:
            raise error("C0079", f"`{self.source.path}` has {len(lines)} lines; the limit is {MAX_LINES}")
        for number, line in enumerate(lines, 1):
            if not self._note(line, number) and self.run.columns and re.match(r"\s*\d+(\s|$)", line):
                found = self._row(line, number)
                if found is not None:
                    yield found

    # ---- what a run is

    def _note(self, line: str, number: int) -> bool:
        """Take what a line says of the runs after it; return whether it is no row."""
        for match in _VARIABLE.finditer(line):
            self._variable(match, number)
        if (launched := _LAUNCHER.search(line)) is not None:
            self.launched = int(launched[1])
        if _START.match(line.lstrip()):
            self.run = _Run(kind=self.run.kind if not self.run.columns else None)
        if (test := _TEST.search(line)) is not None and not _ELSEWHERE.search(line):
            self.run = _Run() if self.run.columns else self.run
            name = test[1] or test[2]
            self.run.kind = _KINDS.get(name, name)
        if (rank := _RANK.search(line)) is not None:
            self.run.ranks.add(int(rank[1]))
            self.run.hosts.add(rank[2])
        if (osu := _OSU.search(line)) is not None:
            self.run = _Run(kind=_KINDS[osu[1].lower().replace("-", "")], is_osu=True)
        stripped = line.lstrip()
        if stripped.startswith("#"):
            self._heading(stripped[1:].split())
        return stripped.startswith("#") or not stripped

    def _variable(self, match: re.Match[str], number: int) -> None:
        value = match[2].lower()
        single = re.fullmatch(r"\w+", value) is not None
        if match[1] == "ALGO":
            name = _SPELLED.get(value, value)
            if single and name not in ALGORITHMS:
                raise self._error(number, match.start(2), match.end(2), f"NCCL has no algorithm `{match[2]}`",
                                  nearest(name, ALGORITHMS))  # fmt: skip
            self.algorithm = name if single else None
        else:
            if single and value not in PROTOCOLS:
                message = f"NCCL has no protocol `{match[2]}`"
                raise self._error(number, match.start(2), match.end(2), message, nearest(value, PROTOCOLS))
            self.protocol = value if single else None

    def _heading(self, words: Sequence[str]) -> None:
        lower = [word.lower() for word in words]
        if lower[:2] == ["size", "count"] and "time" in lower:
            self.run.columns = tuple(lower)
        elif lower[:1] == ["size"] and "latency(us)" in lower:
            self.run.columns, self.run.is_osu = ("size", "time"), True

    # ---- rows

    def _row(self, line: str, number: int) -> Timed | None:
        words = [(found[0], found.start(), found.end()) for found in re.finditer(r"\S+", line)]
        due = len(self.run.columns)
        if len(words) < due:
            message = f"the row has {len(words)} columns, its heading has {due}"
            raise self._error(number, words[0][1], words[-1][2], message, "give the whole line, or leave it out")
        size = self._number(words[0], number)
        place = self._column_of_time(words)
        if place is None:
            return None
        seconds = self._number(words[place], number) / 10**6
        if size.denominator != 1 or seconds <= 0:
            at = words[0] if size.denominator != 1 else words[place]
            raise self._error(number, at[1], at[2], f"`{at[0]}` is no size or time")
        if self._is_wrong(words):
            self.wrong += 1
            return None
        kind, ranks = self._kind(words, number), self._ranks(number)
        whole = int(size) * (ranks if self.run.is_osu and kind in ("allgather", "alltoall") else 1)
        return Timed(kind, self._nodes(number), ranks, self._algorithm(number), self._protocol, whole, seconds)

    def _column_of_time(self, words: Sequence[tuple[str, int, int]]) -> int | None:
        """Return the place of the time out of place, or in place if there is none (``N/A``)."""
        places = [place for place, name in enumerate(self.run.columns) if name == "time"]
        return next((place for place in places if words[place][0] != "N/A"), None)

    def _is_wrong(self, words: Sequence[tuple[str, int, int]]) -> bool:
        counts = [words[place][0] for place, name in enumerate(self.run.columns) if name == "#wrong"]
        return any(count.isdecimal() and int(count) for count in counts)

    def _number(self, word: tuple[str, int, int], number: int) -> Fraction:
        if not re.fullmatch(r"\d{1,18}(\.\d{1,12})?", word[0]):
            raise self._error(number, word[1], word[2], f"found `{word[0]}`, needed a number")
        return Fraction(word[0])

    def _kind(self, words: Sequence[tuple[str, int, int]], number: int) -> str:
        kind = self.given.collective or self.run.kind or self._kind_by_factor(words)
        if kind is None:
            raise self._error(number, words[0][1], words[-1][2], "the log does not name the collective of its rows",
                              "add --collective allreduce, or what it is")  # fmt: skip
        return kind

    def _kind_by_factor(self, words: Sequence[tuple[str, int, int]]) -> str | None:
        """Return ``allreduce`` for rows with an operation, no root, and the bus bandwidth of an allreduce."""
        row = dict(zip(self.run.columns, [word[0] for word in words], strict=False))
        ranks = self.given.ranks or len(self.run.ranks)
        if row.get("redop", "none") == "none" or row.get("root", "-1") != "-1" or ranks < 3:
            return None
        factor, algbw = 2 * (ranks - 1) / ranks, float(row.get("algbw", "0"))
        return "allreduce" if algbw >= 1 and abs(float(row.get("busbw", "0")) / algbw / factor - 1) < 0.02 else None

    def _ranks(self, number: int) -> int:
        found = self.given.ranks or len(self.run.ranks) or self.launched
        return self._known(found, number, "number of ranks", "--ranks 16")

    def _nodes(self, number: int) -> int:
        return self._known(self.given.nodes or len(self.run.hosts), number, "number of machines", "--nodes 2")

    def _known(self, found: int | None, number: int, what: str, option: str) -> int:
        if not found:
            line = self.source.line(number)
            raise self._error(number, 0, len(line), f"the log does not say the {what} of its rows", f"add {option}")
        return found

    def _algorithm(self, number: int) -> str:
        found = self.given.algorithm or self.algorithm
        if found is None:
            line = self.source.line(number)
            hint = f"run it with NCCL_ALGO=Ring, or add --algorithm ring={self.source.path}"
            raise self._error(number, 0, len(line), "the log does not name the algorithm of its rows", hint)
        return found

    @property
    def _protocol(self) -> str | None:
        return self.given.protocol or self.protocol

    def _error(self, number: int, start: int, end: int, message: str, hint: str | None = None) -> CollcError:
        span = Span(self.source, number, start + 1, number, max(end, start + 1) + 1)
        return error("C0079", message, span=span, hint=hint)
