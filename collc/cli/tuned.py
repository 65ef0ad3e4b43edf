"""Times of ``--tune``: where they are kept, and how they are shown."""

from __future__ import annotations

import os
from pathlib import Path

from .console import Console

__all__ = ["path_of_times", "tuned_text"]


def path_of_times(cache: Path, library: Path, console: Console, *facts: str) -> str | None:
    """Return the file of what is timed; None with a warning if there can be none."""
    from ..files.tuned import tuned_path

    try:
        return tuned_path(os.path.abspath(cache), str(library), *facts)
    except OSError as problem:
        from collc.ir.diagnostic import warning

        reason = (problem.strerror or str(problem)).lower()
        console.warn([warning("C0085", f"`{cache}` cannot keep times: {reason}", notes=["--tune times nothing"])])
        return None


def tuned_text(path: str, cache: Path, owner: str) -> str:
    """Return what was timed, in this run and in earlier ones, as a table; ``owner`` has the other collectives."""
    from ..files.tuned import read_tuned
    from ..messages.quantities import show_size
    from .table import table

    rows = [
        (row.kind, str(row.ranks), str(row.nodes), show_size(row.size), f"{row.built_in:.2f} us",
         f"{row.compiled:.2f} us", "compiled" if row.is_compiled else owner)
        for row in read_tuned(path, os.path.abspath(cache))
    ]  # fmt: skip
    if not rows:
        return "collc: nothing was timed\n"
    head = ("collective", "ranks", "nodes", "up to", owner, "compiled", "used")
    return f"collc: times in {path}\n" + table(rows, head=head, right=(1, 2, 3, 4, 5), indent="  ")
