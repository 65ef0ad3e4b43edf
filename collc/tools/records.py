"""The networks of the shipped database that meet both bounds, ``docs/records.md``.

``python -m collc.tools.records > docs/records.md`` writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

from collc.ir.costs.bounds import moore_graph_steps, moore_steps
from collc.passes.finder.database import DEGREES, LARGEST, Row, parse_rows, shipped
from collc.passes.finder.groups import has_other_groups

from ..files.stdout import write_stdout

__all__ = ["meets_both", "records_text", "spans"]

_SMALLEST = 5  # nodes
_NEARLY = Fraction(1, 100)  # more than the least bandwidth time, relatively
_LITTLE = Fraction(1, 20)  # the same, of an allreduce on networks of few steps
_HEAD = """# Networks that meet both bounds

No topology of N nodes with d links each takes fewer steps than [Moore's bound](glossary.md#bound), or less
[bandwidth](glossary.md#bandwidth) time than (N-1)/N. The database of [`collc find`](finder.md) has networks that reach
the two bounds, for the sizes below. If every link has its reverse (`<->`), Moore's bound is the bound for graphs. With
two links per node, every ring meets this bound, so the tables leave out rings.

* `collc find -n N -d D` prints the network. With `--bidirectional` it prints the network of a row with `<->`.
* Ranges of sizes leave out their ends, as those of `-n` do: `5..8` is 5, 6 and 7.
* The command in a row builds all networks of its sizes again and computes their exact costs.
* `python -m collc.tools.records > docs/records.md` writes this page from the database, and a test compares the two.
"""

_BETWEEN = """
## Between the bounds

If no known network meets the two bounds, the frontier has several networks. At N = 1,024 and d = 4 the database has
one-way networks with (T_L, T_B) = (5, 277/256) and (6, 1023/1024). A network between these two would take 5 steps,
which is Moore's bound, and less than 277/256. This command searched for one among Cayley digraphs and their line
graphs:

```sh
python benchmarks/finder.py between -n 1024 -d 4 --steps 5 --evaluations 20000
```

* 1,024 nodes: none of 20,000 evaluated networks takes 5 steps.
* Line graphs of 256 and of 64 nodes: none of 20,000 evaluated bases of each size takes 4 and 3 steps.
* Line graphs of 16 nodes, taken three times: all 17,745 sets of generators of 13 of the 14 groups. 32 have 2 steps, and
  the least T_B of their line graphs is 277/256.

Only the last result is a proof, for these groups. It is not known whether such a network exists.
"""
_TWO_WAY = f"""
## How near links both ways come

The table has the networks with links both ways, up to {LARGEST:,} nodes:

* `at most twice the bound` is the number of sizes in which a network takes the least bandwidth time, (N-1)/N, in at
  most twice the steps of Moore's bound. `abelian only` counts the other sizes of which all groups are abelian
  ([why](finder.md#why-some-sizes-have-no-fast-network-of-the-least-bandwidth-time)). `1 % more` counts the sizes in
  which such a network takes at most 1 % more bandwidth time.
* The other columns are steps above the bound, as means over all sizes: of the fastest network that takes the least
  bandwidth time, and of the fastest of all.

| degree | sizes | at most twice the bound | abelian only | 1 % more | steps above, least time | steps above, fewest |
|---|---|---|---|---|---|---|
"""
_STEPS = f"""

The next table counts the sizes from 5 to {LARGEST:,} by the steps of the fastest network: those of Moore's bound, one
or two more, and more than that.

| degree | Moore's bound | 1 above | 2 above | more |
|---|---|---|---|---|
"""
_FEW_AND_LITTLE = f"""

## Few steps and little bandwidth time

A generalized Kautz digraph takes the fewest steps, or one more, but up to twice the least bandwidth time. The table
counts the sizes from 5 to {LARGEST:,} by the steps that an allreduce needs if it may take 5 % more than the least
bandwidth time. Links go one way or both ways. Moore's bound is the bound for digraphs.

| degree | Moore's bound | 1 above | 2 above | more |
|---|---|---|---|---|
"""
_BOTH = {False: "->", True: "<->"}


def records_text() -> str:
    """Return the whole file."""
    parts = [_HEAD]
    for degree in DEGREES:
        rows = parse_rows(shipped(degree) or "", degree, "shipped")
        parts += ["", f"## Degree {degree}", "", "| links | T_L | sizes | check |", "|---|---|---|---|"]
        parts += _lines(degree, rows)
    parts.append(_TWO_WAY + "\n".join(near(degree) for degree in DEGREES if degree > 2))
    parts[-1] += _STEPS + "\n".join(above(degree) for degree in DEGREES if degree > 2)
    parts[-1] += _FEW_AND_LITTLE + "\n".join(few_and_little(degree) for degree in DEGREES)
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


def near(degree: int) -> str:
    """Return the line of a degree in the table of networks with links both ways."""
    optimal, fewest, nearly = dict[int, int](), dict[int, int](), set[int]()
    for row in parse_rows(shipped(degree) or "", degree, "shipped"):
        if not row.bidirectional or row.nodes > LARGEST:
            continue
        fewest[row.nodes] = min(row.T_L, fewest.get(row.nodes, row.T_L))
        is_quick = row.T_L <= 2 * moore_graph_steps(row.nodes, degree)
        if is_quick and row.T_B <= Fraction(row.nodes - 1, row.nodes) * (1 + _NEARLY):
            nearly.add(row.nodes)
        if row.T_B == Fraction(row.nodes - 1, row.nodes):
            optimal[row.nodes] = min(row.T_L, optimal.get(row.nodes, row.T_L))
    bound = {nodes: moore_graph_steps(nodes, degree) for nodes in fewest}
    within = {nodes for nodes, steps in optimal.items() if steps <= 2 * bound[nodes]}
    abelian = sum(not has_other_groups(nodes) for nodes in fewest.keys() - within)
    above = [
        Fraction(sum(steps - bound[nodes] for nodes, steps in found.items()), len(found)) for found in (optimal, fewest)
    ]
    counts = " | ".join(f"{count:,}" for count in (len(fewest), len(within), abelian, len(nearly)))
    return f"| {degree} | {counts} | {float(above[0]):.2f} | {float(above[1]):.2f} |"


def above(degree: int) -> str:
    """Return the line of a degree in the table of sizes by steps above Moore's bound."""
    fewest = dict[int, int]()
    for row in parse_rows(shipped(degree) or "", degree, "shipped"):
        if row.bidirectional and _SMALLEST <= row.nodes <= LARGEST:
            fewest[row.nodes] = min(row.T_L, fewest.get(row.nodes, row.T_L))
    counts = Counter(min(steps - moore_graph_steps(nodes, degree), 3) for nodes, steps in fewest.items())
    return f"| {degree} | {' | '.join(f'{counts[more]:,}' for more in range(4))} |"


def few_and_little(degree: int) -> str:
    """Return the line of a degree in the table of sizes by the steps of networks of little bandwidth time."""
    fewest = dict[int, int]()
    for row in parse_rows(shipped(degree) or "", degree, "shipped"):
        little = 2 * Fraction(row.nodes - 1, row.nodes) * (1 + _LITTLE)
        if row.allreduce_T_B <= little and _SMALLEST <= row.nodes <= LARGEST:
            fewest[row.nodes] = min(row.T_L, fewest.get(row.nodes, row.T_L))
    counts = Counter(min(steps - moore_steps(nodes, degree), 3) for nodes, steps in fewest.items())
    return f"| {degree} | {' | '.join(f'{counts[more]:,}' for more in range(4))} |"


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
