"""Workloads by their name or file."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from collc.ir.costs.training import Workload
from collc.ir.diagnostic import error, nearest

from ..files.texts import STDIN, read_text
from .reading import read_workload, shipped, shipped_text

__all__ = ["is_workload", "workload_named"]


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
