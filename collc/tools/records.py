"""The networks of the shipped database that meet both bounds, ``docs/records.md``.

``python -m collc.tools.records > docs/records.md`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from collc.ir.costs.bounds import moore_graph_steps, moore_steps
from collc.passes.finder.database import DEGREES, Row, parse_rows, shipped

from ..files.stdout import write_stdout

__all__ = ["meets_both", "records_text", "spans"]

_HEAD = """# Networks that meet both bounds

No topology of N nodes with d links each takes fewer steps than [Moore's bound](glossary.md#bound), or less
[bandwidth](glossary.md#bandwidth) time than (N-1)/N. The networks of these sizes, in the database of
[`collc find`](finder.md), reach both. If every link has its reverse (`<->`), the bound on steps is that of graphs.
With two links per node every ring meets that; rings are left out.

* `collc find -n N -d D` prints the network; with `--bidirectional`, the one with links both ways.
* The command in a row builds all networks of its sizes again and computes their exact costs.
* `python -m collc.tools.records > docs/records.md` writes this page from the database, and a test compares the two.
"""

_BETWEEN = """
## Between the bounds

If no network is known that meets both bounds, the frontier has several. At N = 1,024 and d = 4 the database has
(T_L, T_B) = (5, 277/256) and (6, 1023/1024), one way. A network between the two takes 5 steps, Moore's bound, and less
than 277/256. This command looked for one among Cayley digraphs and their line graphs:

```sh
python benchmarks/finder.py between -n 1024 -d 4 --steps 5 --evaluations 20000
```

* 1,024 nodes: 20,000 evaluations, none of 5 steps.
* Line graphs of 256 and of 64 nodes: 20,000 evaluations each, no base of 4 and of 3 steps.
* Line graphs of 16 nodes, taken three times: all 17,745 sets of generators of 13 of the 14 groups. 32 have 2 steps, and
  the least T_B of their line graphs is 277/256.

Only the last is a proof, for these groups. That there is no such network at all is not known.
"""
_BOTH = {False: "->", True: "<->"}


def records_text() -> str:
    """Return the whole file."""
    parts = [_HEAD]
    for degree in DEGREES:
        rows = parse_rows(shipped(degree) or "", degree, "shipped")
        parts += ["", f"## Degree {degree}", "", "| links | T_L | sizes | check |", "|---|---|---|---|"]
        parts += _lines(degree, rows)
    return "\n".join([*parts, _BETWEEN])


def _lines(degree: int, rows: Iterable[Row]) -> Iterator[str]:
    found: dict[tuple[bool, int], set[int]] = {}
    for row in rows:
        for both in (False, True)[: 1 + (degree > 2)]:
            if meets_both(row, both):
                found.setdefault((both, row.T_L), set()).add(row.nodes)
    for (both, steps), sizes in sorted(found.items()):
        text = spans(sorted(sizes))
        yield f"| `{_BOTH[both]}` | {steps} | {text} | `collc find --check -d {degree} -n {text.replace(' ', '')}` |"


def meets_both(row: Row, both: bool) -> bool:
    """Return whether a row meets both bounds, of networks with links ``both`` ways, or of all.

    >>> petersen = Row("petersen", 10, 3, 2, Fraction(9, 10), 2, True)
    >>> meets_both(petersen, True), meets_both(petersen, False)
    (True, True)
    """
    least = (moore_graph_steps if both else moore_steps)(row.nodes, row.degree)
    optimal = row.T_B == Fraction(row.nodes - 1, row.nodes)
    return optimal and row.T_L == least and (row.bidirectional or not both)


def spans(sizes: Iterable[int]) -> str:
    """Return ascending sizes as the option ``-n`` takes them: ranges without their ends.

    >>> spans([5, 6, 7, 9])
    '5..8, 9'
    """
    found: list[list[int]] = []
    for size in sizes:
        if found and found[-1][1] == size:
            found[-1][1] = size + 1
        else:
            found.append([size, size + 1])
    return ", ".join(f"{first}..{end}" if end > first + 1 else str(first) for first, end in found)


if __name__ == "__main__":
    write_stdout(records_text().encode())
