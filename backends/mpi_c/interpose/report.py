"""The reports of the ranks of a run on their calls: lines that ``statistics.c`` adds to a file."""

from __future__ import annotations

import re
from collections import Counter

import attrs

__all__ = ["Report", "read_report"]

_RANK = re.compile(r"rank (-?\d+) of (\d+), (on|off), last size (\d+)")

#: words of ``registry.c`` for served calls, and for calls refused for the size of their communicator
SERVED, OTHER_SIZE = "served", "communicator of another size"


@attrs.frozen
class Report:
    """Sums over the ranks that reported: calls by function and outcome.

    In ``refused`` ranks the library refused the MPI. ``sizes`` are those of communicators that it did not serve.
    """

    ranks: int = 0
    refused: int = 0
    sizes: tuple[int, ...] = ()
    calls: Counter[tuple[str, str]] = attrs.Factory(Counter)

    @property
    def served(self) -> int:
        """Calls that a compiled collective performed."""
        return sum(n for (_, end), n in self.calls.items() if end == SERVED)

    @property
    def left(self) -> int:
        """Calls that the MPI executed."""
        return sum(self.calls.values()) - self.served

    def reasons(self) -> list[tuple[str, int]]:
        """Return why the MPI executed calls, the most frequent reason first."""
        counts: Counter[str] = Counter()
        for (_, end), number in self.calls.items():
            if end != SERVED:
                counts[end] += number
        return counts.most_common()

    def table(self) -> str:
        """Return the numbers as text, one line for each function."""
        lines = [f"{self.served} calls served, {self.left} left to the MPI (sums over {self.ranks} ranks)"]
        for function in dict.fromkeys(name for name, _ in self.calls):
            ends = {end: n for (name, end), n in self.calls.items() if name == function}
            left = ", ".join(f"{n} {end}" for end, n in ends.items() if end != SERVED)
            lines.append(f"  {function}: {ends.get(SERVED, 0)} served" + (f"; left: {left}" if left else ""))
        return "".join(f"collc: {line}\n" for line in lines)


def read_report(text: str) -> Report:
    """Return the sums of the ranks' reports; an incomplete line does not count."""
    ranks, refused, sizes = 0, 0, set[int]()
    calls: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        rank = _RANK.fullmatch(line)
        if rank:
            ranks += 1
            refused += rank[3] == "off"
            sizes |= {int(rank[4])} - {0}
            continue
        name, _, rest = line.partition("\t")
        end, _, number = rest.partition("\t")
        if number.isdigit():
            calls[name, end] += int(number)
    return Report(ranks, refused, tuple(sorted(sizes)), Counter(dict(sorted(calls.items(), key=_order))))


def _order(item: tuple[tuple[str, str], int]) -> tuple[str, bool, str]:
    (name, end), _ = item
    return name, end != SERVED, end
