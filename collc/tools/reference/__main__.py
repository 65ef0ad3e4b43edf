"""``python -m collc.tools.reference [-o DIR]`` prints the page of names, or writes all pages into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from .pages import print_names, write_reference

match sys.argv[1:]:
    case []:
        print_names()
    case ["-o", folder]:
        write_reference(Path(folder))
    case _:
        sys.exit("usage: python -m collc.tools.reference [-o DIR]")
