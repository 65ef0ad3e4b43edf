"""The command. What ``collc --version`` needs stands here; all else is imported when a verb needs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (without the program's name; the process's own by default); return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        from collc import __version__

        print(f"collc {__version__}")
        return 0
    try:
        from .app import run

        return run(arguments, alone=argv is None)
    except KeyboardInterrupt:
        return 130
