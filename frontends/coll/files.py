"""Finds the files that `include` and `import` name."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import error

from . import ast

__all__ = ["Files"]


@attrs.define
class Files:
    """Folders in which files are found: that of the file that names them, then the include path.

    ``main`` is the path of the main file. ``absent`` collects the paths that were tried before a file was found.
    """

    include_path: Sequence[str] = ()
    main: str = ""
    absent: list[str] = attrs.field(factory=list)

    def found(self, path: ast.String) -> str:
        """Return the path of a file that the text of another names; raise C0150 if there is none."""
        name = path.value
        origin = os.path.dirname(path.span.source.path) if path.span else ""
        folders = (origin, *self.include_path)
        for folder in folders:
            candidate = os.path.join(folder, name)
            if os.path.exists(candidate):
                return candidate
            self.absent.append(candidate)
        looked = ", ".join(f"`{folder or '.'}`" for folder in folders)
        message = f"cannot read `{name}`: no such file"
        raise error("C0150", message, span=path.span, notes=(f"looked in {looked}",), hint="`-I` adds a folder")

    def is_inside(self, real: str) -> bool:
        """Return whether a file lies below the folder of the main file or a folder of the include path."""
        folders = [os.path.realpath(folder or ".") for folder in (os.path.dirname(self.main), *self.include_path)]
        return any(os.path.commonpath([real, folder]) == folder for folder in folders)
