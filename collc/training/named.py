"""Workloads by their name or file."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence
from difflib import get_close_matches

from collc.ir.costs.training import Workload
from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest, warning
from collc.ir.shown import clipped, listed

from ..files.texts import STDIN, read_text
from .objectives import KINDS, Iterations, Objective, parse_mix
from .reading import read_workload, shipped, shipped_text

__all__ = ["is_workload", "objective_named", "workload_named"]

_LONG = 100  # characters from which no name is near


def is_workload(text: str) -> bool:
    """Return whether a text names a workload: a file, or one that comes with collc."""
    return text == STDIN or text.endswith(".json") or os.path.isfile(text) or text in shipped()


def workload_named(text: str, inputs: MutableMapping[str, str] | None = None) -> Workload:
    """Return the workload of a file or of a name; ``inputs`` gets the text that was read by its name in messages.

    Raises C0993 for an unknown name, C0002 and C0003 for a file that cannot be read, and what
    :func:`~.reading.read_workload` raises.
    """
    if not is_workload(text):
        raise _unknown(text, "needed a JSON file, or a workload that comes with collc")
    if text in shipped() and not os.path.isfile(text):
        return read_workload(shipped_text(text), f"{text}.json")
    name, content = "<stdin>" if text == STDIN else text, read_text(text)
    if inputs is not None:
        inputs[name] = content
    return read_workload(content, name)


def _unknown(text: str, need: str) -> CollcError:
    near = get_close_matches(text, shipped(), n=3, cutoff=0.6) if len(text) < _LONG else []
    hint = f"did you mean {listed([f'`{name}`' for name in near], 'or')}?" if near else None
    message = f"found `{clipped(text)}`, {need}"
    return error("C0993", message, hint=hint or f"they are {', '.join(shipped())}", exit_status=2)


def _is_mix(text: str) -> bool:
    """Return whether a text that names no workload is read as a mix: it has several words, or begins as one."""
    word = text.strip()
    return not word or any(sign in word for sign in (" ", "\t", "\n", ",")) or nearest(word, KINDS) is not None


def objective_named(
    text: str, nodes: Sequence[int], inputs: MutableMapping[str, str] | None = None
) -> tuple[Objective, list[Diagnostic]]:
    """Return the objective of a text: a mix of collectives, or the iteration of a workload.

    Also returns a warning if the workload is for another number of ranks than ``nodes``. Raises what
    :func:`workload_named` and :func:`~.objectives.parse_mix` raise.
    """
    if not is_workload(text):
        if not _is_mix(text):
            raise _unknown(text, "needed a mix of collectives, a JSON file, or a workload that comes with collc")
        return parse_mix(text), []
    workload = workload_named(text, inputs)
    if workload.ranks in (None, *nodes):
        return Iterations(workload), []
    message = f"the topologies have {nodes[0]} nodes, `{workload.name}` is for {workload.ranks} ranks"
    return Iterations(workload), [
        warning("C0991", message, notes=["its sizes and times hold for that number of ranks"])
    ]
