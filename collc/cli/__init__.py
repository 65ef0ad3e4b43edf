"""The command. What ``collc --version`` needs stands here; all else is imported when a verb needs it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]

#: objects made before garbage is collected: a run makes many that stay to its end, and hardly any circles
_GARBAGE = 400_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (without the program's name; the process's own by default); return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        from collc import __version__

        print(f"collc {__version__}")
        return 0
    if argv is None:
        gc.set_threshold(_GARBAGE)
    try:
        from .app import run

        status = run(arguments, alone=argv is None)
    except KeyboardInterrupt:
        return 130
    if argv is None:
        gc.freeze()  # the end of the process would look for garbage among all that is left
    return status
