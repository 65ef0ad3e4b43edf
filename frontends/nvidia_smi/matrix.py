"""The matrix of `nvidia-smi topo -m`: which of several is read, and what each pair of devices has between it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from collc.ir.diagnostic import Span
from collc.ir.frozen import frozen
from collc.ir.shown import counted, some

from ..importing.model import Draft
from ..importing.pasted import Line, Word
from ..importing.squares import Row, Square
from .words import NEEDED, Level, Other, gpu_number, meaning, nvlinks_text

__all__ = ["Matrix", "Pair", "chosen", "judged"]

Pair = tuple[int, int]

_MOST_ODD = 8
_ALIAS = re.compile(r"[^\w]*(NIC\d{1,6})\s*:[\s|]*([\w.:-]+)[\s|]*")
_HEADINGS = re.compile(r"CPUAffinity|NUMAAffinity|GPUNUMAID|NUMA")


@frozen(eq=False)
class Matrix:
    """The devices by index, GPUs by number and then all others, and what is between the pairs (i < j).

    ``nvlinks`` counts the NVLinks of pairs that have some, ``levels`` are the distances on PCIe that the text has,
    ``cells`` where each pair stands. ``affinity`` is the NUMA node of a GPU, or the CPUs near it.
    """

    names: tuple[str, ...]
    gpus: tuple[int, ...]
    nics: tuple[int, ...]
    nvlinks: Mapping[Pair, int]
    levels: Mapping[Pair, Level]
    cells: Mapping[Pair, Word]
    affinity: Mapping[int, str]
    columns: tuple[Word, ...]

    def span(self, device: int) -> Span:
        """Return where the header names a device."""
        return self.columns[device].span


# ---- which table is read


def chosen(draft: Draft, tables: Sequence[Square], choice: str | None) -> tuple[Square, ...]:
    """Return the table to read, and those of the same devices without NVLinks (`topo -mp`), which complete it.

    Equal tables count once; tables of `topo -p2p` are ignored. Warns of further tables (C0942).
    """
    machines = _machines(tables)
    if not machines:
        return ()
    numbers = [str(n + 1) for n in range(len(machines))]
    number = choice if choice in numbers else "1"
    if choice is not None and choice not in numbers:
        found = "one matrix" if len(machines) == 1 else f"{len(machines)} matrices"
        message = f"found {found}, needed the number of one instead of `{choice}`"
        draft.wrong("C0924", message, machines[0][0].columns[0].span, hint=f"choose one: {', '.join(numbers[:9])}")
    elif len(machines) > 1 and choice is None:
        first, second = machines[0][0].columns[0], machines[1][0].columns[0]
        message = f"found {len(machines)} matrices, read the one in line {first.line.number}"
        draft.warn("C0942", message, second.span, hint=f"read another one: `--choose {numbers[1]}`")
    return tuple(sorted(machines[int(number) - 1], key=lambda table: not _has_nvlinks(table)))


def _machines(tables: Sequence[Square]) -> list[list[Square]]:
    """Return the tables of each machine: one, or two of which one has the distances behind the NVLinks of the other."""
    machines = list[list[Square]]()
    seen = set[tuple[tuple[str, ...], tuple[str, ...]]]()
    single = dict[tuple[tuple[str, ...], bool], list[Square]]()
    for table in tables:
        content = table.names, tuple(_words(table))
        if content in seen or _is_status(table):
            continue
        seen.add(content)
        other = single.pop((table.names, not _has_nvlinks(table)), None)
        if other is None:
            machines.append([table])
            single[table.names, _has_nvlinks(table)] = machines[-1]
        else:
            other.append(table)
    return machines


def _words(table: Square) -> Iterator[str]:
    return (cell.text for row in table.rows for cell in row.cells)


def _is_status(table: Square) -> bool:
    found = [meaning(word) for word in _words(table)]
    return Other.STATUS in found and all(isinstance(one, Other) for one in found)


def _has_nvlinks(table: Square) -> bool:
    return any(_count(meaning(word)) for word in _words(table))


def _count(found: int | Level | Other | None) -> int:
    """Return the number of NVLinks that a cell says; 0 if it says something else."""
    return found if isinstance(found, int) and not isinstance(found, Level) else 0


# ---- what its cells say


def judged(draft: Draft, tables: Sequence[Square], rest: Sequence[Line]) -> Matrix:
    """Return what the tables of one machine say; mistakes and faults go into the draft.

    ``rest`` are the lines beside the tables, among them the legend of the NICs.
    """
    table = tables[0]
    cells = _Cells(draft, table)
    order = sorted(range(len(table.names)), key=lambda i: (gpu_number(table.names[i]) is None, _place(table, i)))
    new = {old: i for i, old in enumerate(order)}
    nvlinks, levels, places = dict[Pair, int](), dict[Pair, Level](), dict[Pair, Word]()
    for i, j in combinations(range(len(table.names)), 2):
        found, word = cells.between(i, j)
        pair = min(new[i], new[j]), max(new[i], new[j])
        if word:
            places[pair] = word
        if isinstance(found, Level):
            levels[pair] = found
        elif found:
            nvlinks[pair] = found
    cells.finish()
    for other in tables[1:]:
        _complete(levels, nvlinks, other, new)
    aliases = _aliases(rest)
    names = [table.names[i] for i in order]
    gpus = [i for i, name in enumerate(names) if gpu_number(name) is not None]
    return Matrix(
        tuple(aliases.get(name, name) for name in names), tuple(gpus), tuple(range(len(gpus), len(names))), nvlinks,
        levels, places, {new[i]: text for i, text in _affinities(table)}, tuple(table.columns[i] for i in order),
    )  # fmt: skip


def _place(table: Square, i: int) -> int:
    number = gpu_number(table.names[i])
    return i if number is None else number


def _complete(levels: dict[Pair, Level], nvlinks: Mapping[Pair, int], other: Square, new: Mapping[int, int]) -> None:
    """Add the distances on PCIe of pairs with NVLinks, which only `topo -mp` prints."""
    number = {name: i for i, name in enumerate(other.names)}
    for row in other.rows:
        i = number[row.label.text]
        for j, cell in enumerate(row.cells):
            found = meaning(cell.text)
            pair = min(new[i], new[j]), max(new[i], new[j])
            if isinstance(found, Level) and pair in nvlinks:
                levels.setdefault(pair, found)


def _aliases(rest: Sequence[Line]) -> dict[str, str]:
    """Return the names of the NICs in the legend."""
    found = (_ALIAS.fullmatch(line.text) for line in rest)
    return {match[1]: match[2] for match in found if match}


def _affinities(table: Square) -> Iterator[tuple[int, str]]:
    """Yield the NUMA node of each GPU, or the CPUs near it if the table has no NUMA nodes."""
    headings = [heading[0] for heading in _HEADINGS.finditer(re.sub(r"\s", "", table.headings))]
    at = next((headings.index(word) for word in ("NUMAAffinity", "NUMA", "CPUAffinity") if word in headings), None)
    number = {name: i for i, name in enumerate(table.names)}
    for row in table.rows:
        words = [word.text for word in row.beside]
        if len(words) > max(len(headings), 1) and row.beside[0].line is not row.beside[1].line:
            words[:2] = ["".join(words[:2])]  # a terminal broke the list of CPUs
        if at is not None and at < len(words) and words[at] != "N/A":
            yield number[row.label.text], words[at]


class _Cells:
    """The cells of one table by row and column; checks rows and diagonal."""

    def __init__(self, draft: Draft, table: Square):
        self.draft, self.table = draft, table
        self.odd = Counter[str]()
        number = {name: i for i, name in enumerate(table.names)}
        self.rows: dict[int, Row] = {}
        for row in table.rows:
            i = number[row.label.text]
            if i in self.rows:
                draft.wrong("C0924", f"found the row of {row.label} twice", row.label.span)
            self.rows.setdefault(i, row)
            self._check(i, row)
        self._missing()

    def _check(self, i: int, row: Row) -> None:
        for j, cell in enumerate(row.cells):
            found = meaning(cell.text)
            if found is None or found == Other.STATUS:
                self.draft.wrong("C0924", f"found `{cell}` in the row of {row.label}, needed {NEEDED}", cell.span)
            elif (found == Other.SELF) != (i == j):
                where = f"between {self.table.names[i]} and {'itself' if i == j else self.table.names[j]}"
                needed = NEEDED if i != j else "X"
                self.draft.wrong("C0924", f"found `{cell}` {where}, needed {needed.removeprefix('X, ')}", cell.span)
        if len(row.cells) < len(self.table.columns):
            last = row.cells[-1] if row.cells else row.label
            message = (
                f"found {counted(len(row.cells), 'cell')} in the row of {row.label}, needed {len(self.table.columns)}"
            )
            self.draft.wrong("C0924", message, last.span, hint="is the text cut off?")

    def _missing(self) -> None:
        """Judge rows that are missing: the column of a device says the same, unless two GPUs lack theirs."""
        names = self.table.names
        missing = [i for i in range(len(names)) if i not in self.rows]
        if not missing:
            return
        listed = some([names[i] for i in missing])
        if sum(gpu_number(names[i]) is not None for i in missing) > 1:
            span = self.table.columns[missing[0]].span
            self.draft.wrong("C0924", f"found no rows of {listed}", span, hint="is the text cut off?")
        else:
            noun = "row" if len(missing) == 1 else "rows"
            message = f"the matrix has no {noun} of {listed}, the network has what the columns say"
            self.draft.fault(message, self.table.columns[missing[0]].span)

    def _cell(self, i: int, j: int) -> Word | None:
        row = self.rows.get(i)
        return row.cells[j] if row and j < len(row.cells) else None

    def between(self, i: int, j: int) -> tuple[int | Level | None, Word | None]:
        """Return what is between two devices, and where it stands: NVLinks, a distance, or None if it is unknown.

        If the two cells differ, that is a fault, and the smaller number of NVLinks or the longer distance counts.
        """
        words = [word for word in (self._cell(i, j), self._cell(j, i)) if word]
        found = [one for word in words if (one := meaning(word.text)) is not None]
        known = [one for one in found if not isinstance(one, Other)]
        if len(known) == 2 and (known[0] != known[1] or isinstance(known[0], Level) != isinstance(known[1], Level)):
            return self._differing(i, j, words[1], known), words[0]
        if len(known) < len(found) and i != j:
            self._unknown(i, j, words[0])
        return (known[0] if known else None), (words[0] if words else None)

    def _differing(self, i: int, j: int, second: Word, known: Sequence[int | Level]) -> int | Level:
        names = self.table.names
        levels = [one for one in known if isinstance(one, Level)]
        taken = max(levels) if levels else min(known)
        texts = [one.name if isinstance(one, Level) else nvlinks_text(one) for one in (*known, taken)]
        message = f"{names[i]} has {texts[0]} to {names[j]}, and {names[j]} has {texts[1]} to {names[i]}"
        self._odd("differing pairs", f"{message}; the network has {texts[2]}", second)
        return taken

    def _unknown(self, i: int, j: int, word: Word) -> None:
        names = self.table.names
        self._odd("unknown pairs", f"the driver does not know what is between {names[i]} and {names[j]}", word)

    def _odd(self, kind: str, message: str, word: Word) -> None:
        """Report a fault of a pair; of many of one kind, the first ones and their number."""
        self.odd[kind] += 1
        if self.odd[kind] <= _MOST_ODD:
            self.draft.fault(message, word.span)

    def finish(self) -> None:
        """Say how many faults of each kind were not reported one by one."""
        for kind, count in self.odd.items():
            if count > _MOST_ODD:
                self.draft.fault(f"{count - _MOST_ODD} more {kind}")
