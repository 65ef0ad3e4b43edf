"""``collc replan --each-fault``: a plan compiled ahead for every single fault of its network."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from collc.backends.base import Target
from collc.frontends.coll.faults import Fault
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Spec

from ..driver.result import CollectiveResult, Settings
from ..files.naming import file_name, name_files
from ..files.texts import Output, check_folder, check_writable, write_all
from ..messages.internal import is_fatal
from ..tables.schemas import VERSION
from ..tools.replanning import Replanner
from ..tools.single_faults import fault_file, single_faults
from .console import Console
from .fault_texts import cost_object, fault_object, per_byte, ranks_before, times_text
from .table import table

__all__ = ["INDEX", "each_fault"]

#: the index in the folder
INDEX = "faults.json"

Json = dict[str, object]


def each_fault(
    spec: Spec, healthy: Sequence[CollectiveResult], targets: Mapping[str, tuple[Target, ...]], settings: Settings,
    options: SimpleNamespace, console: Console,
) -> int:  # fmt: skip
    """Write the files for every single fault, each when it is compiled, then the index; return the exit status."""
    folder = os.path.join(options.each_fault, "")
    check_folder(folder)
    os.makedirs(folder, exist_ok=True)
    index = os.path.join(folder, INDEX)
    check_writable([index], spec.files)
    found = list[Json]()
    for one in healthy:
        faults = list(single_faults(one.request.problem.topology, options.slow_factor))
        prefix = f"{file_name(one.name)}-" if len(healthy) > 1 else ""
        for place, fault in enumerate(faults):
            console.count(f"{one.name}: {fault}", place, len(faults))
            stem = prefix + fault_file(fault)
            found.append(_entry(spec, one, fault, targets[one.name], settings, folder, stem))
    document: Json = {"collectives": [one.name for one in healthy], "faults": found}
    console.signals.check()
    write_all([Output(index, json.dumps({"schema": VERSION, **document}, indent=2) + "\n")])
    console.say(f"wrote {index}")
    if options.json:
        console.json(document)
    else:
        console.out(_table(found))
    return 0


def _entry(
    spec: Spec, healthy: CollectiveResult, fault: Fault, targets: Sequence[Target], settings: Settings, folder: str,
    stem: str,
) -> Json:  # fmt: skip
    """Compile for one fault, write the files, and return the entry of the index."""
    entry: Json = {"collective": healthy.name, **fault_object(fault)}
    try:
        result = Replanner(spec, [healthy.name], [fault]).run(healthy, targets, settings)
        plan, cost = result.replan, result.cost_of_fault
        assert plan is not None, "it was compiled after a fault"
        emitted = [(stem, target, files) for target, files in result.emitted]
        files = name_files(emitted, stem, folder, verify=settings.verify != "off")
    except CollcError as mistake:
        if is_fatal(mistake):
            raise
        return {**entry, "files": [], "reason": mistake.diagnostics[0].message}
    write_all([Output(file.path, file.artifact.text) for file in reversed(files)], if_changed=True)
    lost = None in plan.ranks
    return {
        **entry, "files": [os.path.basename(file.path) for file in files], "plan": plan.how,
        "trees_kept": plan.kept, "trees_new": plan.new, **cost_object(cost), "unit": result.cost.unit,
        **({"ranks_before": ranks_before(plan)} if lost else {}),
    }  # fmt: skip


def _table(entries: Sequence[Json]) -> str:
    """Return the table of all faults, with the most expensive ones last."""
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
