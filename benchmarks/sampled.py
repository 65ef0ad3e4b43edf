"""Search random sizes of a database of `collc find` for a time with each family, and count the sizes with better rows.

    python benchmarks/sampled.py --sizes 20 --seconds 60 --seed 1 --database my/

The climbs of ``climb.py``, with links both ways, and with other random numbers until the time is over. They evaluate
about a hundred times as many networks a second as `collc find --refresh`. Rows that are better are merged into the
database. The sizes depend only on the seed; the rows depend on the machine, because the time is fixed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent))

from climb import better, searched_size

from collc.passes.finder.database import Row, parse_rows
from collc.tools.finding_database import file_of, merged

_FAMILIES = ("lifts", "turned", "cayley", "complete", "inserted", "exchanges")
_DEGREES = (3, 4, 6, 8, 16)
_SMALL = 200  # nodes up to which any networks are annealed
_COMPLETE = 8  # links up to which circulants are drawn among all
_OPTIONS = {"evaluations": 3000, "periods": 12, "least_period": 2, "optimal": False, "tries": 1, "groups": 24}


def sizes(seed: int, largest: int) -> Iterator[tuple[int, int]]:
    """Yield random degrees and numbers of nodes for which a network with links both ways exists."""
    random = Random(seed)
    while True:
        degree = random.choice(_DEGREES)
        nodes = random.randint(2 * degree + 1, largest)
        if nodes * degree % 2 == 0:
            yield degree, nodes


def improved(rows: dict[int, list[Row]], degree: int, nodes: int, seconds: float) -> Iterator[tuple[str, int, Row]]:
    """Yield the family, the number of climbs and the row of each better network."""
    for family in _FAMILIES:
        if family == "complete" and degree > _COMPLETE:
            continue
        options = {**_OPTIONS, "family": family, "periods": nodes if family == "exchanges" else _OPTIONS["periods"]}
        if family == "exchanges" and nodes > _SMALL:
            options["periods"] = 24
        start, seed = time.process_time(), 100
        while time.process_time() - start < seconds:
            seed += 1
            known = {row.T_L: row.T_B for row in sorted(rows[nodes], key=lambda row: -row.T_B) if row.bidirectional}
            given = argparse.Namespace(**options, nodes=[nodes], degree=degree, seed=seed)
            size = (nodes, degree, given.evaluations, known, seed)
            for row in better(searched_size(given, rows, size)):
                rows[nodes].append(row)
                yield family, seed - 100, row


def main() -> None:
    """Search some random sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60, help="of CPU, for each size and family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=2000, help="the most nodes")
    parser.add_argument("--database", required=True)
    given = parser.parse_args()
    draw, count = sizes(given.seed, given.largest), 0
    for number in range(given.sizes):
        degree, nodes = next(draw)
        path = Path(file_of(given.database, degree))
        text = path.read_text("ascii")
        rows: dict[int, list[Row]] = {}
        for row in parse_rows(text, degree, str(path)):
            rows.setdefault(row.nodes, []).append(row)
        found = []
        for family, climbs, row in improved(rows, degree, nodes, given.seconds):
            print(
                f"d = {degree}, N = {nodes}: {family}, climb {climbs}: ({row.T_L}, {row.T_B}) {row.expression}",
                flush=True,
            )
            found.append(row)
        if found:
            path.write_text(merged(degree, {nodes: better(found)}, text, str(path)), "ascii")
        count += bool(found)
        print(f"d = {degree}, N = {nodes}: done; {count} of {number + 1} sizes have better rows", flush=True)


if __name__ == "__main__":
    main()
