"""What the caches of a user hold: lists, checks and empties them.

Compiled files are entries of a store. A launch has an entry of another store, and the library or files that its command
loads. An entry that is wrong is never used, so a check only says what will be made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence

from collc.ir.diagnostic import CollcError
from collc.ir.frozen import frozen

from .derived import Origins, State, keep, kept, names_read, state_of
from .store import MOST_BYTES, Store, default_folder, opened
from .trust import SEAL, is_ours, is_private, is_sealed, make_folder
from .tuned import TUNED, is_tuned_file

__all__ = [
    "FILES",
    "LAUNCHES",
    "LIBRARIES",
    "Item",
    "Part",
    "State",
    "clear",
    "digest_of_files",
    "items",
    "launch_folder",
    "parts",
]

#: folders of the cache of launches: libraries, files of MSCCL runtimes, and what launches need
LIBRARIES, FILES, LAUNCHES = "interpose", "files", "launches"


#: the names of the folders of libraries and of files
_KEY = re.compile(r"[0-9a-f]{32}")


@frozen
class Part:
    """A part of the caches, its folder and its most bytes (None: any number). ``parts`` lists them."""

    name: str
    folder: str
    most: int | None = None


@frozen
class Item:
    """One entry of a part: its path, bytes, time of last use (seconds since 1970), and names of what it is for."""

    part: Part
    path: str
    size: int
    used: float
    names: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """Whether the entry would be used."""
        folder, key = self.part.folder, os.path.basename(self.path).removesuffix(".json")
        match self.part.name:
            case "results":
                return "wrong" if _text(folder, key) is None else "whole"
            case "launches":
                text = _text(folder, key)
                return "wrong" if text is None else state_of(text, key, os.path.dirname(folder))
            case "libraries":
                return "whole" if is_sealed(self.path, os.path.dirname(folder)) else "wrong"
            case "tuned":
                return "whole" if is_tuned_file(self.path, os.path.dirname(folder)) else "wrong"
            case _:
                return "whole" if _is_named_by_content(self.path, os.path.dirname(folder)) else "wrong"


def launch_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of launches unless the user names one."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "collc")


def read_launch(cache: str, key: str) -> str | None:
    """Return what a cache keeps for a launch under a key; None if it is missing, wrong or stale."""
    folder = os.path.join(cache, LAUNCHES)
    if not os.path.isdir(folder):
        return None
    try:
        return kept(opened(folder), key, cache)
    except CollcError:  # others can write there
        return None


def write_launch(cache: str, key: str, text: str, origins: Origins) -> bool:
    """Keep a text for later launches; return whether it is kept."""
    try:
        return keep(opened(make_folder(cache, LAUNCHES)), key, text, origins)
    except (CollcError, OSError):
        return False


def parts(named: str | None, environ: Mapping[str, str]) -> list[Part]:
    """Return the parts of the caches, of the folder that ``--cache`` names or of the user's."""
    results = os.path.abspath(named) if named else default_folder(environ)
    base = os.path.abspath(named or launch_folder(environ))
    folders = ((LAUNCHES, LAUNCHES), ("libraries", LIBRARIES), ("files", FILES), (TUNED, TUNED))
    limits = {"launches": MOST_BYTES}
    more = [Part(name, os.path.join(base, folder), limits.get(name)) for name, folder in folders]
    return [Part("results", results, MOST_BYTES), *more]


def items(part: Part) -> list[Item]:
    """Return the entries of a part, the last used first."""
    found = _of_store(part) if part.most is not None else _of_folders(part)
    if part.name == TUNED:
        found = iter([_item(part, path, [path]) for path in _listed(part.folder) if path.endswith(".tsv")])
    return sorted(found, key=lambda item: (-item.used, item.path))


def clear(part: Part) -> list[Item]:
    """Remove the entries of a part, and nothing else; return those that are gone."""
    listed = items(part)
    for item in listed:
        paths = _listed(item.path) if part.name == "files" else (item.path, item.path + SEAL)
        for path in paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        if part.most is None:
            with contextlib.suppress(OSError):  # others are in it
                os.rmdir(item.path if part.name == "files" else os.path.dirname(item.path))
    return [item for item in listed if not os.path.lexists(item.path)]


def _of_store(part: Part) -> Iterator[Item]:
    for path, used, size in Store(part.folder).entries():
        text = _text(part.folder, os.path.basename(path).removesuffix(".json")) if part.name == "launches" else None
        yield Item(part, path, size, used, names_read(text or ""))


def _of_folders(part: Part) -> Iterator[Item]:
    """Yield an entry for each library, or for each folder of files. Folders of other names are not collc's."""
    for folder in _listed(part.folder):
        if not _KEY.fullmatch(os.path.basename(folder)):
            continue
        inside = [path for path in _listed(folder) if stat.S_ISREG(os.lstat(path).st_mode) or os.path.islink(path)]
        if part.name == "files":
            yield _item(part, folder, inside)
            continue
        for path in inside:
            if path.endswith(".so"):
                yield _item(part, path, [path, *(one for one in inside if one == path + SEAL)])


def _item(part: Part, path: str, files: Sequence[str]) -> Item:
    states = [os.lstat(file) for file in files]
    names = tuple(os.path.basename(file) for file in files if not file.endswith(SEAL))
    return Item(
        part, path, sum(one.st_size for one in states), max((one.st_mtime for one in states), default=0.0), names
    )


def _listed(folder: str) -> Sequence[str]:
    """Return the paths in a folder that are no temporary files."""
    with contextlib.suppress(OSError):
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if not name.startswith(".")]
    return []


def _text(folder: str, key: str) -> str | None:
    """Return the text of an entry of a store; None if it would not be used."""
    try:
        return Store(folder).read(key, uses=False) if is_private(os.stat(folder)) else None
    except OSError:
        return None


def _is_named_by_content(folder: str, root: str) -> bool:
    """Return whether the files of a folder are ours, and the name of the folder is their digest."""
    try:
        files = []
        for path in _listed(folder):
            if not is_ours(path, root):
                return False
            with open(path, encoding="utf-8") as stream:
                files.append((os.path.basename(path), stream.read()))
    except (OSError, ValueError):
        return False
    return os.path.basename(folder) == digest_of_files(files)


def digest_of_files(files: Sequence[tuple[str, str]]) -> str:
    """Return the name of the folder for files: names and texts."""
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()[:32]
