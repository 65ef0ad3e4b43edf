"""The state of what surrounds a compilation: collc's own files, the installed packages, Python and the machine.

Names, sizes and times of change stand for contents, because this is read at every start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence

__all__ = ["digest_of_tree", "plugins", "surroundings", "tree", "version"]

#: the folders of collc in a source tree; an installed collc has them inside its own
_ROOMS = ("ir", "frontends", "passes", "backends")
#: the ends of names of what installers write for each package
_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")


def version() -> str:
    """Return collc's version."""
    return str(sys.modules["collc"].__dict__["__version__"])


def surroundings() -> list[object]:
    """Return the versions of collc and Python, the kind of machine, and the states of collc's and all packages' files.

    The list can be written as JSON.
    """
    own, *others = list(sys.modules["collc"].__path__)  # this module is a part of it
    rooms = [os.path.join(other, room) for other in others for room in _ROOMS]
    states = [digest_of_tree(folder) for folder in (own, *rooms)]
    return [version(), sys.version, platform.machine(), states, _packages(sys.path)]


def plugins() -> list[str]:
    """Return the folders or files of the code of installed plugins."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    from collc.ir.registry import GROUP

    found: list[str] = []
    for name in sorted({point.value.partition(":")[0].strip() for point in entry_points(group=GROUP)}):
        try:
            spec = find_spec(name.partition(".")[0])
        except (ImportError, ValueError):
            continue
        if spec is not None:
            found += list(spec.submodule_search_locations or ([spec.origin] if spec.origin else []))
    return found


def digest_of_tree(path: str) -> str:
    """Return a digest of the state of a file, or of all files below a folder."""
    try:
        if os.path.isdir(path):
            found: object = sorted(tree(path))
        else:
            state = os.stat(path)
            found = [state.st_size, state.st_mtime_ns]
    except OSError:
        found = None
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def tree(folder: str, inside: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of change of every file below a folder; ``inside`` comes before the names."""
    with os.scandir(folder) as listed:
        for one in listed:
            if one.is_dir() and one.name != "__pycache__" and not one.name.startswith("."):
                yield from tree(one.path, f"{inside}{one.name}/")
            elif one.is_file():
                found = one.stat()
                yield f"{inside}{one.name}", found.st_size, found.st_mtime_ns


def _packages(folders: Sequence[str]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return what installers wrote for packages into folders; folders without that are left out."""
    found = []
    for folder in dict.fromkeys(os.path.abspath(folder) for folder in folders):
        names = []
        with contextlib.suppress(OSError), os.scandir(folder) as listed:
            names = sorted((one.name, one.stat().st_mtime_ns) for one in listed if one.name.endswith(_PACKAGES))
        if names:
            found.append((folder, names))
    return found
