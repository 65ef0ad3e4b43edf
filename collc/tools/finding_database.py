"""Building, extending and checking databases of topologies: many sizes, block by block.

Only better rows replace rows. The sizes of a block do not depend on each other. So its searches run in any order on any
number of processes, with the same text as result. The text lists the searched sizes, so that an interrupted build
continues. Sizes of an unfinished block are in a file of finished units.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import attrs

from collc.frontends import coll
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.passes.finder.database import Row, merged_frontiers, parse_rows, print_rows, shipped
from collc.passes.finder.exclude import NOTHING, Excluded
from collc.passes.finder.measure import row_mistakes, with_alltoall_rates
from collc.passes.finder.tasks import search_one

from ..files.finished import Finished
from ..files.surroundings import version
from ..processes.workers import Work

__all__ = ["EVALUATIONS", "Searched", "build", "check", "evaluations_for", "file_of", "merged", "rate"]

#: default number of evaluations of each search of a database
EVALUATIONS = 400
_BLOCK = 64  # sizes between two writes
_MAX_NODES = 2**20  # the largest size in a database
_RATED = 64  # rows that are rated between two entries of the file of finished units


@attrs.frozen
class Searched:
    """The settings of a search: number of evaluations, seed, whether only networks with links both ways, and the names
    that no expression may have."""

    evaluations: int = EVALUATIONS
    seed: int = 0
    bidirectional: bool = False
    exclude: Excluded = NOTHING

    @property
    def shown(self) -> str:
        """The settings as the text of a database lists them."""
        both = ", links both ways" if self.bidirectional else ""
        return f"effort {self.evaluations}, seed {self.seed}{both}" + "".join(
            f", without {name}" for name in sorted(self.exclude.names)
        )


def file_of(path: str, degree: int) -> str:
    """Return the file that holds a degree: ``path``, or ``degree-4.txt`` in it if it is a folder or ends in a slash."""
    if path.endswith("/") or os.path.isdir(path):
        return os.path.join(path, f"degree-{degree}.txt")
    return path


def evaluations_for(nodes: int, evaluations: int) -> int:
    """Return the evaluations for one size: about the same time for all sizes, more for common machine sizes.

    >>> evaluations_for(1000, 100), evaluations_for(1001, 100), evaluations_for(1024, 100), evaluations_for(32, 100)
    (200, 100, 2000, 32000)
    """
    usual = evaluations * min(max(1000 // nodes, 1), 16)
    if nodes & (nodes - 1) == 0:
        return 20 * usual
    return 2 * usual if nodes % 8 == 0 else usual


def build(
    degree: int, sizes: Sequence[int], text: str, path: str, how: Searched, work: Work, store: Callable[[str], None],
    finished: Finished | None = None,
) -> str:  # fmt: skip
    """Search the sizes that ``text`` does not list, and merge the rows; ``store`` gets the text after every block.

    ``finished`` keeps the rows of every size until its block is stored. Returns the text. Raises C0570 for a text that
    is no database.
    """
    rows, done = _read(text, degree, path)
    todo = [n for n in sorted(sizes) if n > degree and n not in done.get(how, ())]
    before = 0
    for number, block in enumerate(_blocks(todo, degree)):
        whole = attrs.evolve(work, progress=_counted(work, before, len(todo)))
        units = [_unit(n, degree, rows.get(n // degree, []) if n % degree == 0 and degree > 1 else [], how)
                 for n in block]  # fmt: skip
        for n, found in zip(block, _searched(units, whole, finished), strict=True):
            rows[n] = merged_frontiers([*rows.get(n, []), *found])
        done.setdefault(how, set()).update(block)
        text = _written(degree, rows, done)
        store(text)
        if finished is not None:
            finished.clear()
        before += len(block)
        work.report(f"degree {degree}: block {number + 1} written")
    return text


def _counted(work: Work, before: int, total: int) -> Callable[[str, int, int], object]:
    """Return a callback that reports the parts of a block as parts of the whole build."""
    return lambda what, done, _: work.report(what, before + done, total)


@attrs.frozen
class _Unit:
    """The search of one size, and its name among finished units."""

    nodes: int
    degree: int
    call: tuple[object, ...]
    name: str

    @property
    def shown(self) -> str:
        return f"degree {self.degree}, {self.nodes} nodes"


def _unit(nodes: int, degree: int, bases: list[Row], how: Searched) -> _Unit:
    evaluations = evaluations_for(nodes, how.evaluations)
    known = hashlib.sha256(print_rows(degree, bases).encode()).hexdigest()[:16]
    shown = attrs.evolve(how, evaluations=evaluations).shown
    name = f"{nodes} {degree} {shown} bases {known} collc {version()}"
    call = (nodes, degree, bases, evaluations, how.seed, coll.topology, how.bidirectional, how.exclude)
    return _Unit(nodes, degree, call, name)


def _searched(units: Sequence[_Unit], work: Work, finished: Finished | None) -> list[list[Row]]:
    """Return the rows of each unit: those that are finished, and those that are searched now."""
    known = {place: text for place, unit in enumerate(units)
             if finished is not None and (text := finished.get(unit.name)) is not None}  # fmt: skip
    left = [place for place in range(len(units)) if place not in known]

    def keep(at: int, rows: list[Row]) -> None:
        if finished is not None:
            unit = units[left[at]]
            finished.add(unit.name, print_rows(unit.degree, rows))

    names = [units[place].shown for place in left]
    fresh = dict(zip(left, work.run(search_one, [units[place].call for place in left], names, keep), strict=True))
    return [
        fresh[place] if place in fresh else parse_rows(known[place], unit.degree, "finished units")
        for place, unit in enumerate(units)
    ]


def _blocks(sizes: Sequence[int], degree: int) -> Iterator[list[int]]:
    """Split sizes so that no block has a size and that of its line graph."""
    block: list[int] = []
    for n in sizes:
        if block and (len(block) == _BLOCK or n >= block[0] * max(degree, 2)):
            yield block
            block = []
        block.append(n)
    if block:
        yield block


def merged(degree: int, found: Mapping[int, Sequence[Row]], text: str, path: str) -> str:
    """Return the text with rows by number of nodes, where they are better; raise C0570 for a text that is no
    database."""
    rows, done = _read(text, degree, path)
    for n, some in found.items():
        rows[n] = merged_frontiers([*rows.get(n, []), *some])
    return _written(degree, rows, done)


# ---- all-to-all rates


def rate(
    degree: int, sizes: Collection[int] | None, text: str, path: str, work: Work, finished: Finished
) -> tuple[str, int]:  # fmt: skip
    """Return the text with the all-to-all rates of rows that have none, and how many these are.

    ``sizes`` limits them to some numbers of nodes. Rates of topologies that the shipped database has are taken from
    there. ``finished`` keeps rates until the text is stored. Raises C0570 for a text that is no database.
    """
    rows, done = _read(text, degree, path)
    known = {row.expression: row for row in parse_rows(shipped(degree) or "", degree, "shipped")}
    chosen = [row for n in sorted(rows) if sizes is None or n in sizes for row in rows[n] if row.alltoall_rate is None]
    todo = [row for row in chosen if row.expression not in known or known[row.expression].alltoall_rate is None]
    for row in _rated(degree, todo, work, finished):
        known[row.expression] = row
    for row in chosen:
        found = known[row.expression]
        place = rows[row.nodes].index(row)
        rows[row.nodes][place] = attrs.evolve(
            row, alltoall_rate=found.alltoall_rate, alltoall_upper=found.alltoall_upper
        )
    return _written(degree, rows, done), len(chosen)


def _rated(degree: int, rows: Sequence[Row], work: Work, finished: Finished) -> list[Row]:
    """Return the rows with their rates: those that are finished, and those that are computed now."""
    parts = [rows[first : first + _RATED] for first in range(0, len(rows), _RATED)]
    texts = [print_rows(degree, part) for part in parts]
    names = [f"rates of {hashlib.sha256(text.encode()).hexdigest()} collc {version()}" for text in texts]
    left = [place for place, name in enumerate(names) if finished.get(name) is None]

    def keep(at: int, found: list[Row]) -> None:
        finished.add(names[left[at]], print_rows(degree, found))

    shown = [f"degree {degree}, {parts[place][-1].nodes} nodes: rates" for place in left]
    work.run(with_alltoall_rates, [(parts[place], coll.topology) for place in left], shown, keep)
    return [row for name in names for row in parse_rows(finished.get(name) or "", degree, "finished units")]


# ---- the text


def _read(text: str, degree: int, path: str) -> tuple[dict[int, list[Row]], dict[Searched, set[int]]]:
    rows: dict[int, list[Row]] = {}
    for row in parse_rows(text, degree, path):
        rows.setdefault(row.nodes, []).append(row)
    done: dict[Searched, set[int]] = {}
    for line in text.splitlines():
        if line.startswith("# searched "):
            words, _, how = line[len("# searched ") :].partition(" with effort ")
            match = re.fullmatch(r"(\d{1,18}), seed (\d{1,18})(, links both ways)?((?:, without \S+)*)", how)
            spans = [re.fullmatch(r"(\d{1,18})(?:\.\.(\d{1,18}))?", word) for word in words.split(",")]
            if not match or not all(spans):
                raise error("C0570", f"{path}: `{line[:80]}` is no list of searched sizes")
            without = Excluded(frozenset(match[4].split(", without ")[1:]))
            sizes = done.setdefault(Searched(int(match[1]), int(match[2]), match[3] is not None, without), set())
            for span in filter(None, spans):
                first, end = int(span[1]), int(span[2] or int(span[1]) + 1)
                if end > _MAX_NODES:
                    raise error("C0570", f"{path}: `{line[:80]}` lists more than {_MAX_NODES} nodes")
                sizes.update(range(first, end))
    return rows, done


def _written(degree: int, rows: dict[int, list[Row]], done: dict[Searched, set[int]]) -> str:
    text = print_rows(degree, [row for n in sorted(rows) for row in rows[n]])
    head, _, rest = text.partition("\n")
    lines = [
        f"# searched {_spans(sizes)} with {how.shown}"
        for how, sizes in sorted(done.items(), key=lambda item: (item[0].evaluations, item[0].seed, item[0].shown))
    ]
    return "\n".join([head, *lines, rest])


def _spans(sizes: set[int]) -> str:
    """Return sizes as ranges of the language, without their ends: ``5..9,12``."""
    found: list[list[int]] = []
    for n in sorted(sizes):
        if found and found[-1][1] == n:
            found[-1][1] = n + 1
        else:
            found.append([n, n + 1])
    return ",".join(f"{a}..{b}" if b > a + 1 else str(a) for a, b in found)


# ---- checking


def check(rows: Sequence[Row], work: Work) -> int:
    """Recompute all rows; return their number. Raises C0033 with all errors."""
    found = work.run(row_mistakes, [(row, coll.topology) for row in rows], [_shown(row) for row in rows])
    wrong: list[Diagnostic] = []
    for row, texts in zip(rows, found, strict=True):
        for text in texts:
            wrong += error(
                "C0033", f"{_shown(row)}: {text}", hint="search again: `collc find --refresh --database`"
            ).diagnostics
    if wrong:
        raise CollcError(wrong)
    return len(rows)


def _shown(row: Row) -> str:
    return f"{row.nodes} nodes, `{row.expression}`"
