"""``collc replan --each-fault``: a plan compiled ahead for every single fault of its network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace

import attrs
import numpy as np

from collc.backends.base import Target
from collc.frontends.coll.faults import Fault
from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError, error
from collc.ir.graph.isomorphism import automorphisms
from collc.ir.shown import counted
from collc.ir.spec import Spec

from ..driver.relabelling import keeps_collective, relabelled_files
from ..driver.replanning import is_written_by_hand
from ..driver.result import CollectiveResult, Emitted, Settings
from ..files.index import INDEX, Index
from ..files.naming import file_name, name_files
from ..files.texts import Output, check_folder, check_writable
from ..messages.internal import is_fatal
from ..tables.columns import Cell, Table, with_floats
from ..tables.listed import SINGLE_FAULTS
from ..tables.schemas import VERSION
from ..tools.replanning import Replanner
from ..tools.single_faults import fault_file, orbits, single_faults
from .cache import key_of_inputs
from .console import Console
from .fault_texts import cost_object, fault_object, per_byte, times_text
from .table import table
from .tabular import show

__all__ = ["each_fault"]

#: effort to find automorphisms; with fewer of them more faults are compiled
_EFFORT = 10_000_000
#: faults after which there is nothing to compile: ranks that are cut off, a root that is gone
_WITHOUT_PROBLEM = frozenset({"C0301", "C0343"})

Json = dict[str, object]


def each_fault(
    spec: Spec, healthy: Sequence[CollectiveResult], targets: Mapping[str, tuple[Target, ...]], settings: Settings,
    options: SimpleNamespace, console: Console,
) -> int:  # fmt: skip
    """Write the files for every single fault, each with the index when it is compiled; return the exit status."""
    folder = os.path.join(options.each_fault, "")
    check_folder(folder)
    os.makedirs(folder, exist_ok=True)
    check_writable([os.path.join(folder, INDEX)], spec.files)
    settings = attrs.evolve(settings, keeps_last=True)
    todo = [_Ahead(spec, one, targets[one.name], settings, options.slow_factor, len(healthy) > 1) for one in healthy]
    keys = [_key(ahead, place) for ahead in todo for place in range(len(ahead.faults))]
    head: Json = {"schema": VERSION, "collectives": [one.name for one in healthy]}
    index = Index.opened(folder, head, key_of_inputs(spec, options.files[0], options, console) or "", keys)
    failed = list[tuple[Fault, CollcError]]()
    for ahead in todo:
        for done, place in enumerate(ahead.in_order()):
            console.count(f"{ahead.healthy.name}: {ahead.faults[place].fault}", done, len(ahead.faults))
            if not index.keeps(_key(ahead, place)):
                outputs, entry = ahead.entry(place, folder, failed)
                console.signals.check()
                index.add(_key(ahead, place), outputs, entry)
    index.write()
    console.say(f"wrote {index.path}")
    show(
        options, console, lambda: _table(index.entries),
        lambda: {name: value for name, value in index.document.items() if name != "schema"},
        lambda: _text(index.entries) + _summary(index),
    )  # fmt: skip
    return _report(failed, len(keys), index.path, console)


def _key(ahead: _Ahead, place: int) -> tuple[str, ...]:
    fault = ahead.faults[place].fault
    return ahead.healthy.name, fault.kind, fault.where, fault.rate


class _Ahead:
    """The single faults of one collective: one of every orbit is compiled, the others get its plan with other numbers.

    Fault f gets the plan of fault ``representative[f]``; ``maps[f]`` are the nodes to which that one's go.
    """

    def __init__(
        self, spec: Spec, healthy: CollectiveResult, targets: Sequence[Target], settings: Settings, factor: object,
        several: bool,
    ) -> None:  # fmt: skip
        self.spec, self.healthy, self.targets, self.settings = spec, healthy, targets, settings
        topology = healthy.request.problem.topology
        self.faults = list(single_faults(topology, factor))  # type: ignore[arg-type]  # of an option
        found = orbits(self.faults, _maps(spec, healthy), topology.num_nodes)
        self.representative = [first for first, _ in found]
        self.maps = [nodes for _, nodes in found]
        self.prefix = f"{file_name(healthy.name)}-" if several else ""
        self.known: tuple[int, CollectiveResult | None] = -1, None

    def in_order(self) -> Iterator[int]:
        """Yield all faults, orbit by orbit, so that one plan at a time is in memory."""
        yield from np.argsort(np.array(self.representative), kind="stable").tolist()

    def entry(self, place: int, folder: str, failed: list[tuple[Fault, CollcError]]) -> tuple[list[Output], Json]:
        """Return the files for a fault, and its entry of the index; faults that cannot be compiled go to ``failed``."""
        one = self.faults[place]
        start: Json = {"collective": self.healthy.name, **fault_object(one.fault)}
        try:
            planner = Replanner(self.spec, [self.healthy.name], [one.fault])
            by, result, emitted = self._planned(place, planner)
            named = [(self.prefix + fault_file(one.fault), target, files) for target, files in emitted]
            files = name_files(named, named[0][0], folder, verify=self.settings.verify != "off")
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            if not _WITHOUT_PROBLEM.issuperset(found.code for found in mistake.diagnostics):
                failed.append((one.fault, mistake))
            return [], {**start, "files": [], "reason": mistake.diagnostics[0].message}
        plan = result.replan
        assert plan is not None, "it was compiled after a fault"
        net = planner.networks[self.healthy.name]
        lost = [old for old, now in enumerate(net.rank.tolist()) if now >= 0] if (net.rank < 0).any() else None
        return [Output(file.path, file.artifact.content) for file in reversed(files)], {
            **start, "files": [os.path.basename(file.path) for file in files],
            "representative": self.faults[by].fault.where, "plan": plan.how, "trees_kept": plan.kept,
            "trees_new": plan.new, **cost_object(result.cost_of_fault), "unit": result.cost.unit,
            **({} if lost is None else {"ranks_before": lost}),
        }  # fmt: skip

    def _planned(self, place: int, planner: Replanner) -> tuple[int, CollectiveResult, tuple[Emitted, ...]]:
        """Return the fault that was compiled, its result, and the files for the fault."""
        first = self.representative[place]
        shared = self._compiled(first) if place != first else None
        if shared is not None:
            request, net = planner.spec.collectives[self.healthy.name], planner.networks[self.healthy.name]
            files = relabelled_files(shared, request, net, self.maps[place], self.settings)
            if files is not None:
                return first, shared, files
        result = planner.run(self.healthy, self.targets, self.settings)
        if place == first:
            self.known = first, result
        return place, result, result.emitted

    def _compiled(self, first: int) -> CollectiveResult | None:
        """Return the result for the representative of an orbit; None if it cannot be compiled."""
        if self.known[0] != first:
            try:
                planner = Replanner(self.spec, [self.healthy.name], [self.faults[first].fault])
                self.known = first, planner.run(self.healthy, self.targets, self.settings)
            except CollcError as mistake:
                if is_fatal(mistake):
                    raise
                self.known = first, None
        return self.known[1]


def _maps(spec: Spec, healthy: CollectiveResult) -> list[Array]:
    """Return automorphisms of the network that keep the collective; none for plans that are not renumbered."""
    problem, collective = healthy.request.problem, healthy.request.problem.collective
    plain = problem.is_whole and keeps_collective(collective) and not problem.topology.in_network
    if not plain or spec.together or len(healthy.each) > 1 or is_written_by_hand(healthy):
        return []
    return automorphisms(problem.topology, _EFFORT, () if collective.root is None else (collective.root,))


# ---- what is printed


def _table(entries: Sequence[Json]) -> Table:
    """Return a row for every fault."""
    return Table(SINGLE_FAULTS, [_cells(entry) for entry in entries])


def _cells(entry: Json) -> dict[str, Cell]:
    files, exact = entry["files"], dict[str, Cell]()
    assert isinstance(files, list)
    for name in ("time_per_byte_healthy", "time_per_byte_bound", "time_per_byte", "times_healthy"):
        exact[name] = Fraction(str(entry[name])) if name in entry else None
    cells: dict[str, Cell] = {"name": str(entry["collective"]), "file": files[0] if files else None}
    for name in ("kind", "where", "rate", "plan", "reason"):
        cells[name] = None if entry.get(name) is None else str(entry[name])
    met = entry.get("bound_met")
    return {**cells, **with_floats(exact), "bound_met": None if met is None else bool(met)}


def _text(entries: Sequence[Json]) -> str:
    """Return the table of all faults as text."""
    several = len({entry["collective"] for entry in entries}) > 1
    rows = []
    for entry in entries:
        fault = Fault(entry["kind"], str(entry["where"]), str(entry["rate"] or ""))  # type: ignore[arg-type]  # as it was
        about = [str(entry["collective"])] if several else []
        if not entry["files"]:
            rows.append([*about, str(fault), "-", "-", "-", str(entry["reason"])])
            continue
        first = entry["files"][0]  # type: ignore[index]  # a list
        time, times = per_byte(str(entry["time_per_byte"]), str(entry["unit"])), times_text(str(entry["times_healthy"]))
        rows.append([*about, str(fault), first, time, times, "met" if entry["bound_met"] else "not met"])
    head = [*(["collective"] if several else []), "fault", "file", "time per byte", "healthy", "bound"]
    return table(rows, head=head)


def _summary(index: Index) -> str:
    """Return how many faults there are, how many plans were compiled for them, and how many were there."""
    planned = [entry for entry in index.entries if entry["files"]]
    compiled = len({(entry["collective"], entry["kind"], entry["representative"], entry["rate"]) for entry in planned})
    shared = ", the others by symmetry" if compiled < len(planned) else ""
    text = f"{counted(len(index.entries), 'fault')}: {counted(compiled, 'plan')}{shared}"
    without = len(index.entries) - len(planned)
    parts = [text, *([f"{without} without a plan"] if without else [])]
    return "; ".join([*parts, *([f"{index.kept} already there"] if index.kept else [])]) + "\n"


def _report(failed: Sequence[tuple[Fault, CollcError]], total: int, index: str, console: Console) -> int:
    """Print that faults could not be compiled, if some could not; return the exit status."""
    if not failed:
        return 0
    fault, mistake = failed[0]
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    status = max(found.exit_status for _, found in failed)
    console.fail(error(
        "C0098", f"{len(failed)} of {counted(total, 'fault')} cannot be compiled: `{fault}`{more}",
        notes=[found.message for found in mistake.diagnostics], exit_status=status,
        hint=mistake.diagnostics[0].hint or f"`{index}` lists all of them",
    ).diagnostics)  # fmt: skip
    return status
