"""Search networks by a compiled climb, and merge what is better into a database of `collc find`.

    python benchmarks/climb.py lifts -d 6 -n 5..2001 --database my/      # polycirculants
    python benchmarks/climb.py turned -d 4 -n 5..2001 --database my/     # those that a turn of the ring keeps
    python benchmarks/climb.py cayley -d 6 -n 5..2001 --database my/     # Cayley graphs
    python benchmarks/climb.py complete -d 3 -n 5..2001 --database my/   # all of few links, or circulants
    python benchmarks/climb.py inserted -d 6 -n 5..2001 --database my/   # a node or two more than a row has
    python benchmarks/climb.py exchanges -d 3 -n 34..201 --database my/  # any networks, by exchanges of links' ends
    python benchmarks/climb.py directed -d 4 -n 6..2001 --database my/   # links one way: polycirculants
    python benchmarks/climb.py led -d 4 -n 7..2001 --database my/        # links one way: a node more than a row has

All but the last two have links both ways.

The searches of the finder, in C: some hundred thousand evaluations a second. It needs a C compiler (``CC``). First it
looks for fewer steps than the database has, then for less bandwidth time within as many, and for fewer steps at the
least bandwidth time. The same arguments give the same rows; `collc find --check` computes them again.

``exchanges`` looks for fewer steps alone. It anneals: the number of pairs of nodes that are more than a number of steps
apart falls, as in the order/degree problem. A shift of all nodes keeps the networks, for each period of up to
``--periods`` nodes; with the period N they are any networks. Such ones also start from the row of one or two nodes
more, without these.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parent))

from climbs.cayley import GENERAL, Cayley, Elements
from climbs.compiled import PERIOD
from climbs.directed import Directed, light
from climbs.exchanges import Exchanges
from climbs.inserted import Inserted, bases
from climbs.polycirculants import Polycirculants

from collc.frontends import coll
from collc.ir.group import Translations
from collc.passes.finder.database import Row, parse_rows
from collc.passes.finder.groups import groups_of_order
from collc.passes.finder.measure import with_alltoall_rate
from collc.tools.finding_database import file_of, merged

__all__ = ["better", "searched_size"]

_ONE_WAY = ("directed", "led")
_FAMILIES = ("lifts", "turned", "cayley", "complete", "inserted", "exchanges", *_ONE_WAY)
_WRITTEN = 50  # sizes between two writes

#: nodes, degree, evaluations, the least known T_B by steps, seed
_Size: TypeAlias = tuple[int, int, int, dict[int, Fraction], int]


def better(found: Sequence[Row]) -> list[Row]:
    """Return what was not replaced later, with its all-to-all rates."""
    last = {row.T_L: row for row in found}
    kept = [row for row in last.values() if not any(
        other.T_L < row.T_L and other.allreduce_T_B <= row.allreduce_T_B for other in last.values())]  # fmt: skip
    return [with_alltoall_rate(row, coll.topology) for row in kept]


def searched(given: argparse.Namespace, rows: dict[int, list[Row]], degree: int) -> Iterator[tuple[int, list[Row]]]:
    """Yield every size with better rows."""
    # of a larger network with exchanged links, nodes are removed later
    for nodes in sorted(given.nodes, reverse=given.family == "exchanges"):
        if given.family in _ONE_WAY:
            others = sorted(rows.get(nodes, []), key=lambda row: -row.allreduce_T_B)
            known = {row.T_L: row.allreduce_T_B / 2 for row in others}
            if nodes <= degree + 1:
                continue
        else:
            if nodes <= 2 * degree or nodes * degree % 2:
                continue
            both = sorted((row for row in rows.get(nodes, []) if row.bidirectional), key=lambda row: -row.T_B)
            known = {row.T_L: row.T_B for row in both}
        found = searched_size(given, rows, (nodes, degree, given.evaluations, known, given.seed))
        if found:
            yield nodes, better(found)


def searched_size(given: argparse.Namespace, rows: dict[int, list[Row]], size: _Size) -> list[Row]:
    """Return what the family's search finds for one size."""
    nodes, degree, *_ = size
    if given.family in ("lifts", "turned"):
        lifts = Polycirculants(*size)
        periods = range(given.least_period, min(given.periods, PERIOD) + 1)
        (lifts.lifts if given.family == "lifts" else lifts.turned)(periods, given.optimal)
        return lifts.found
    if given.family in ("cayley", "complete"):
        cayley, groups = Cayley(*size), groups_of_order(nodes, given.groups)
        others = [one for one in groups if not isinstance(one, Translations)]
        if given.family == "cayley":
            cayley.cayley([Elements.of(group) for group in others or groups])
        else:
            cayley.complete([Translations((nodes,)), *(others if degree <= GENERAL else [])])
        return cayley.found
    if given.family in _ONE_WAY:
        one_way = Directed(*size)
        if given.family == "directed":
            one_way.lifts(range(given.least_period, min(given.periods, PERIOD) + 1))
        else:
            for row in light(rows.get(nodes - 1, [])):
                one_way.inserted(row)
        return one_way.found
    more = 1 + degree % 2  # a new node has an even number of links to others
    if given.family == "exchanges":
        exchanges, larger = Exchanges(*size), [row for row in rows.get(nodes + more, []) if row.bidirectional]
        if larger and nodes <= given.periods:
            exchanges.shrunk(min(larger, key=lambda row: (row.T_L, row.T_B, row.expression)), given.tries)
        exchanges.exchanges(given.periods, given.tries)
        return exchanges.found
    inserted = Inserted(*size)
    for row in bases([row for row in rows.get(nodes - more, []) if row.bidirectional]):
        inserted.inserted(row, more)
    return inserted.found


def sizes_of(text: str) -> list[int]:
    """Return the sizes of ``5..9,12``: ends are left out."""
    spans = [part.partition("..") for part in text.split(",")]
    return sorted({n for first, _, end in spans for n in range(int(first), int(end or int(first) + 1))})


def main(words: Sequence[str] | None = None) -> int:
    """Search the sizes of a degree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=_FAMILIES)
    parser.add_argument("-d", "--degree", type=int, required=True)
    parser.add_argument("-n", "--nodes", type=sizes_of, required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--evaluations", type=int, default=3000, help="of each climb")
    parser.add_argument("--periods", type=int, default=10, help="the largest period of polycirculants")
    parser.add_argument("--least-period", type=int, default=2, help="the smallest period of polycirculants")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers: another one, other climbs")
    parser.add_argument("--optimal", action="store_true", help="lifts, turned: only for the least bandwidth time")
    parser.add_argument("--tries", type=int, default=1, help="annealings of each period")
    parser.add_argument("--groups", type=int, default=24, help="of one order")
    given = parser.parse_args(words)
    path = Path(file_of(given.database, given.degree))
    text = path.read_text("ascii") if path.exists() else ""
    rows: dict[int, list[Row]] = {}
    for row in parse_rows(text, given.degree, str(path)):
        rows.setdefault(row.nodes, []).append(row)
    found: dict[int, list[Row]] = {}
    total = 0
    try:
        for nodes, some in searched(given, rows, given.degree):
            found[nodes], rows[nodes], total = some, [*rows.get(nodes, []), *some], total + 1
            if len(found) == _WRITTEN:
                text, found = _stored(path, given.degree, found, text), {}
    finally:  # an interrupted search keeps what it found
        _stored(path, given.degree, found, text)
    print(f"degree {given.degree}, {given.family}: {total} sizes are better", file=sys.stderr)
    return 0


def _stored(path: Path, degree: int, found: dict[int, list[Row]], text: str) -> str:
    text = merged(degree, found, text, str(path))
    path.write_text(text, "ascii")
    return text


if __name__ == "__main__":
    sys.exit(main())
