"""Workloads by their name or file."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence

from collc.ir.costs.training import Workload
from collc.ir.diagnostic import Diagnostic, error, nearest, warning

from ..files.texts import STDIN, read_text
from .objectives import Iterations, Objective, parse_mix
from .reading import read_workload, shipped, shipped_text

__all__ = ["is_workload", "objective_named", "workload_named"]


def is_workload(text: str) -> bool:
    """Return whether a text names a workload: a file, or one that comes with collc."""
    return text == STDIN or text.endswith(".json") or os.path.isfile(text) or text in shipped()


def workload_named(text: str, inputs: MutableMapping[str, str] | None = None) -> Workload:
    """Return the workload of a file or of a name; ``inputs`` gets the text that was read by its name in messages.

    Raises C0993 for an unknown name, C0002 and C0003 for a file that cannot be read, and what
    :func:`~.reading.read_workload` raises.
    """
    if not is_workload(text):
        hint = nearest(text, shipped()) or f"they are {', '.join(shipped())}"
        message = f"found `{text}`, needed a JSON file, or a workload that comes with collc"
        raise error("C0993", message, hint=hint, exit_status=2)
    if text in shipped() and not os.path.isfile(text):
        return read_workload(shipped_text(text), f"{text}.json")
    name, content = "<stdin>" if text == STDIN else text, read_text(text)
    if inputs is not None:
        inputs[name] = content
    return read_workload(content, name)


def objective_named(
    text: str, nodes: Sequence[int], inputs: MutableMapping[str, str] | None = None
) -> tuple[Objective, list[Diagnostic]]:
    """Return the objective of a text: a mix of collectives, or the iteration of a workload.

    Also returns a warning if the workload is for another number of ranks than ``nodes``. Raises what
    :func:`workload_named` and :func:`~.objectives.parse_mix` raise.
    """
    if not is_workload(text):
        return parse_mix(text), []
    workload = workload_named(text, inputs)
    if workload.ranks in (None, *nodes):
        return Iterations(workload), []
    message = f"the topologies have {nodes[0]} nodes, `{workload.name}` is for {workload.ranks} ranks"
    return Iterations(workload), [
        warning("C0991", message, notes=["its sizes and times hold for that number of ranks"])
    ]
