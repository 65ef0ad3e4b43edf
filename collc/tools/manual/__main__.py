"""``python -m collc.tools.manual -o DIR`` writes the manual pages into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from .pages import write_pages

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "-o":
        sys.exit("usage: python -m collc.tools.manual -o DIR")
    write_pages(Path(sys.argv[2]))
