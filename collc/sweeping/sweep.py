"""All cases of a sweep, with any executor and a cache, and the table that they make."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs

from collc.frontends.coll import NODE_LIMIT
from collc.frontends.coll import topology as built
from collc.frontends.coll.kinds import PREDEFINED
from collc.ir.diagnostic import CollcError, error
from collc.ir.shown import counted, shown
from collc.ir.spec import Spec
from collc.ir.topology import Topology

from ..driver.keeping import key_of
from ..driver.records import read, written
from ..files.store import Store
from ..messages.internal import contained
from ..processes.workers import Work
from ..registry.elements import Element, parse_elements
from ..tables.columns import Table
from .cases import Case, Prediction, SweepRow, collective_of, run
from .rows import html_rows, table_of

if TYPE_CHECKING:
    import pandas

__all__ = ["DEFAULT_SIZES", "Network", "Sweep", "cases", "run_cases", "scheduler_of"]

#: sizes (bytes) if none is given
DEFAULT_SIZES = (1 << 10, 1 << 20, 1 << 30)
#: an expression of the language, or a topology
Network: TypeAlias = "str | Topology"


@attrs.frozen(eq=False)
class Sweep:
    """The rows of a sweep, by network, collective, scheduler and size, in the order in which these were given.

    A row has a time, or the code and message of the mistake (``failed``). Times are exact; ``table`` has them in
    microseconds.

    >>> import collc
    >>> found = collc.sweep("torus(3, 3)", "alltoall", ["flow", "swing"], sizes="1MiB")
    >>> found
    Sweep(1 network, 1 collective, 2 schedulers, 1 size: 2 rows, 1 failed)
    >>> [(row.using, row.T_L, row.code) for row in found.rows]
    [('flow', 2, ''), ('swing', None, 'C0591')]
    """

    rows: tuple[SweepRow, ...]

    def __repr__(self) -> str:
        counts = [
            counted(len({getattr(row, name) for row in self.rows}), what)
            for name, what in (("network", "network"), ("collective", "collective"), ("using", "scheduler"),
                               ("size", "size"))
        ]  # fmt: skip
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return shown(self, f"{', '.join(counts)}: {counted(len(self.rows), 'row')}{failed}")

    def _repr_html_(self) -> str:
        """Return the rows as a table, for notebooks."""
        from collc.ir.html import html_table

        head, rows = html_rows(self.rows)
        return html_table(repr(self), head, rows)

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """The rows without a time."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def best(self) -> tuple[SweepRow, ...]:
        """The fastest row of every network, collective and size; of equally fast ones the first."""
        found: dict[tuple[str, str, int], SweepRow] = {}
        for row in self.rows:
            key = (row.network, row.collective, row.size)
            if row.time is not None and (key not in found or row.time < (found[key].time or 0)):
                found[key] = row
        return tuple(found.values())

    @property
    def table(self) -> Table:
        """The rows as ``collc sweep --csv`` prints them."""
        return table_of(self.rows, self.best)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas; raise C0028 without pandas."""
        return self.table.to_dataframe()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table into a file, whose name ends in .csv, .json, .md or .parquet.

        Raises C0029 for another name, C0028 for Parquet without pyarrow, C0004 if the file cannot be written.
        """
        from ..files.texts import Output, check_writable, write_all
        from .files import content_of

        place = os.fspath(path)
        check_writable([place])
        write_all([Output(place, content_of(self, place))])


def scheduler_of(text: str, known: Iterable[str]) -> Element:
    """Return one scheduler with its options, ``forest{k=2}``; raise C0015 or C0006 for another text."""
    from collc.ir.diagnostic import nearest

    found = parse_elements(text, "scheduler")
    names = list(known)
    if len(found) != 1:
        hint = "write several as several arguments"
        raise error("C0006", f"found {counted(len(found), 'scheduler')} in `{text}`, needed one", hint=hint,
                    exit_status=2)  # fmt: skip
    if found[0].name not in names:
        hint = nearest(found[0].name, names) or f"schedulers are {', '.join(names)}"
        raise error("C0015", f"there is no scheduler `{found[0].name}`", hint=hint, exit_status=2)
    return found[0]


def cases(
    networks: Mapping[str, Network], collectives: Sequence[str], schedulers: Sequence[str], sizes: Sequence[int],
    prediction: Prediction, *, node_limit: int = NODE_LIMIT, verify: str = "each",
) -> list[Case]:  # fmt: skip
    """Return the cases: every collective on every network by every scheduler.

    A network that cannot be built makes cases that fail. Raises C0029 for an unknown collective, or if something is
    missing, C0015 and C0006 for wrong schedulers.
    """
    from collc.passes import SCHEDULERS

    for what, given in (
        ("network", networks), ("collective", collectives), ("scheduler", schedulers), ("size", sizes)
    ):  # fmt: skip
        if not given:
            raise error("C0029", f"found no {what}, needed at least one", exit_status=2)
    named = list(dict.fromkeys(collective_of(text, PREDEFINED) for text in collectives))
    using = {text: scheduler_of(text, (name for name in SCHEDULERS if name != "steps")) for text in schedulers}
    places = {name: _built(network, node_limit) for name, network in networks.items()}
    return [
        Case(name, topology, collective, text, element, tuple(dict.fromkeys(sizes)), prediction, node_limit, verify,
             problem)
        for name, (topology, problem) in places.items() for collective in named for text, element in using.items()
    ]  # fmt: skip


def _built(network: Network, node_limit: int) -> tuple[Topology | None, CollcError | None]:
    if isinstance(network, Topology):
        return network, None
    try:
        return contained("topology", lambda: built(network, node_limit=node_limit)), None
    except CollcError as mistake:
        return None, mistake


def run_cases(cases: Sequence[Case], work: Work, store: Store | None = None) -> Sweep:
    """Run all cases in the workers of ``work``; ``store`` keeps the rows of every case as soon as they are there.

    The rows depend only on the cases: not on the workers, their number, nor on what the store has.
    """
    keys = [_key(case) if store is not None else None for case in cases]
    rows: dict[int, tuple[SweepRow, ...]] = {}
    for place, key in enumerate(keys):
        kept = _kept(store, key, cases[place])
        if kept is not None:
            rows[place] = kept
    left = [place for place in range(len(cases)) if place not in rows]

    def keep(at: int, found: tuple[SweepRow, ...]) -> None:
        key = keys[left[at]]
        if store is not None and key is not None and not any(row.status == 70 for row in found):
            store.write(key, written(found))

    done = work.run(run, [(cases[place],) for place in left], [cases[place].name for place in left], keep)
    rows |= dict(zip(left, done, strict=True))
    return Sweep(tuple(row for place in range(len(cases)) for row in rows[place]))


def _key(case: Case) -> str | None:
    """Return the hash of everything that determines the rows of a case; None if its network has no text."""
    if case.topology is None:
        return None
    values = [None if value is None else str(value) for value in attrs.astuple(case.prediction)]
    facts = ["sweep", case.network, case.collective, case.using, list(case.sizes), values, case.node_limit, case.verify]
    return key_of(Spec({}, {}), "", "<sweep>", facts, {"network": case.topology})


def _kept(store: Store | None, key: str | None, case: Case) -> tuple[SweepRow, ...] | None:
    """Return the rows that a store has for a case; None if it has none, or others."""
    text = None if store is None or key is None else store.read(key)
    if text is None:
        return None
    try:
        found = read(text)
    except ValueError:
        return None
    rows = tuple(row for row in found if isinstance(row, SweepRow)) if isinstance(found, tuple) else ()
    return rows if tuple(row.size for row in rows) == case.sizes else None
