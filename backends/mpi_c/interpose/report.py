"""The reports of the ranks of a run on their calls.

Ranks that end in order add lines to a file (``statistics.c``). Of the others a file of counts stays (``counts.c``).
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import attrs

__all__ = ["Report", "Unfinished", "gather_report", "read_counts", "read_report"]

_RANK = re.compile(r"rank (-?\d+) of (\d+), (on|off), last size (\d+)")

#: words of ``registry.c`` for served calls, and for calls refused for the size of their communicator
SERVED, OTHER_SIZE = "served", "communicator of another size"

#: ``struct cip_file`` up to its counts: magic, rank, number of ranks, functions, ends
_FILE = struct.Struct("=16s4i")
_MAGIC = b"collc counts 1\n\0"


@attrs.frozen
class Unfinished:
    """The counts of a rank that ended without MPI_Finalize; ``rank`` is -1 if it is unknown."""

    rank: int
    size: int
    calls: Counter[tuple[str, str]]

    def __str__(self) -> str:
        served = sum(n for (_, end), n in self.calls.items() if end == SERVED)
        name = f"rank {self.rank}" if self.rank >= 0 else "a rank"
        return f"{name} ended abnormally: {served} served, {sum(self.calls.values()) - served} left until then"


@attrs.frozen
class Report:
    """Sums over the ranks that reported: calls by function and outcome.

    In ``refused`` ranks the library refused the MPI. ``sizes`` are those of communicators that it did not serve.
    ``unfinished`` ranks are counted. ``missing`` ranks left nothing. ``processes`` are names of programs that the
    library was loaded into without being called, each with what it had of MPI (words of ``statistics.c``).
    """

    ranks: int = 0
    refused: int = 0
    sizes: tuple[int, ...] = ()
    calls: Counter[tuple[str, str]] = attrs.Factory(Counter)
    unfinished: tuple[Unfinished, ...] = ()
    missing: tuple[int, ...] = ()
    processes: tuple[tuple[str, str], ...] = ()

    @property
    def served(self) -> int:
        """Calls that a compiled collective performed."""
        return sum(n for (_, end), n in self.calls.items() if end == SERVED)

    @property
    def left(self) -> int:
        """Calls that the MPI executed."""
        return sum(self.calls.values()) - self.served

    def functions_left(self, reason: str) -> list[tuple[str, int]]:
        """Return the functions whose calls the MPI executed for a reason, with the numbers, the largest first."""
        return Counter({name: n for (name, end), n in self.calls.items() if end == reason}).most_common()

    def reasons(self) -> list[tuple[str, int]]:
        """Return why the MPI executed calls, the most frequent reason first."""
        counts: Counter[str] = Counter()
        for (_, end), number in self.calls.items():
            if end != SERVED:
                counts[end] += number
        return counts.most_common()

    def table(self) -> str:
        """Return the numbers as text, one line for each function, and one for each rank that ended abnormally."""
        lines = [f"{self.served} calls served, {self.left} left to the MPI (sums over {self.ranks} ranks)"]
        for function in dict.fromkeys(name for name, _ in self.calls):
            ends = {end: n for (name, end), n in self.calls.items() if name == function}
            left = ", ".join(f"{n} {end}" for end, n in ends.items() if end != SERVED)
            lines.append(f"  {function}: {ends.get(SERVED, 0)} served" + (f"; left: {left}" if left else ""))
        lines += [f"  {one}" for one in self.unfinished]
        lines += [f"  rank {rank} not reported: ended abnormally" for rank in self.missing]
        return "".join(f"collc: {line}\n" for line in lines)


def gather_report(path: Path) -> Report:
    """Return the report of a file of lines and of the files of counts beside it, whose names begin with its name."""
    beside = sorted(path.parent.glob(f"{path.name}.*"))
    found = [one for one in (read_counts(file.read_bytes()) for file in beside) if one is not None]
    return read_report(path.read_text(encoding="utf-8", errors="replace"), found)


def read_counts(data: bytes) -> Unfinished | None:
    """Return the contents of a file of counts; None if the process did not finish it, or it has another form."""
    if len(data) < _FILE.size:
        return None
    magic, rank, size, functions, ends = _FILE.unpack_from(data)
    number = 2 * functions * ends
    if magic != _MAGIC or min(functions, ends) < 1 or len(data) < _FILE.size + 8 * number:
        return None
    counts = struct.unpack_from(f"={number}q", data, _FILE.size)
    names, stop, _ = data[_FILE.size + 8 * number :].partition(b"\0")
    lines = names.decode("ascii", "replace").splitlines()
    if not stop or len(lines) != functions + ends:
        return None
    calls: Counter[tuple[str, str]] = Counter()
    for at, count in enumerate(counts):
        large, function, end = at // (functions * ends), at // ends % functions, at % ends
        if count > 0:
            calls[lines[function] + "_c" * large, lines[functions + end]] += count
    return Unfinished(rank, size, calls)


def read_report(text: str, unfinished: Iterable[Unfinished] = ()) -> Report:
    """Return the sums of the ranks' reports, and of what others left; an incomplete line does not count."""
    ranks, refused, sizes = 0, 0, set[int]()
    calls: Counter[tuple[str, str]] = Counter()
    heard, number, processes = set[int](), 0, dict[tuple[str, str], None]()
    for line in text.splitlines():
        rank = _RANK.fullmatch(line)
        if rank:
            ranks += 1
            refused += rank[3] == "off"
            sizes |= {int(rank[4])} - {0}
            heard.add(int(rank[1]))
            number = max(number, int(rank[2]))
            continue
        name, _, rest = line.partition("\t")
        end, _, count = rest.partition("\t")
        if name == "process" and count:
            processes[end, count] = None
        elif count.isdigit():
            calls[name, end] += int(count)
    left = tuple(sorted(unfinished, key=lambda one: one.rank))
    for one in left:
        calls.update(one.calls)
        heard.add(one.rank)
        number = max(number, one.size)
    missing = () if -1 in heard else tuple(sorted({*range(number)} - heard))
    return Report(
        ranks + len(left), refused, tuple(sorted(sizes)), Counter(dict(sorted(calls.items(), key=_order))), left,
        missing, tuple(processes),
    )  # fmt: skip


def _order(item: tuple[tuple[str, str], int]) -> tuple[str, bool, str]:
    (name, end), _ = item
    return name, end != SERVED, end
