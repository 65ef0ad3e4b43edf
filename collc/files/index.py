"""The index of a folder of plans, written again whenever one is finished, so that an interrupted run can go on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence

from .texts import Output, write_all

__all__ = ["INDEX", "Index"]

#: the index in the folder
INDEX = "faults.json"

Json = dict[str, object]
Key = tuple[str, ...]


class Index:
    """Entries for all ``keys``, in their order.

    An entry of an earlier run counts if it has the same ``given``, a digest of everything that its files follow from,
    and if these are as they were written: by their own digests, not by their times. An empty ``given`` is not known,
    and then none counts.
    """

    def __init__(
        self, folder: str, head: Json, given: str, keys: Sequence[Key], before: dict[Key, Json] | None = None
    ) -> None:
        self.folder, self.head, self.given, self.keys = folder, head, given, keys
        self.before = before or {}
        self.found: dict[Key, Json] = {}
        self.kept = 0

    @classmethod
    def opened(cls, folder: str, head: Json, given: str, keys: Sequence[Key]) -> Index:
        """Return the index of a folder, with the entries of earlier runs; a file that is no index has none."""
        return cls(folder, head, given, keys, dict(_read(os.path.join(folder, INDEX))))

    @property
    def path(self) -> str:
        """The file of the index."""
        return os.path.join(self.folder, INDEX)

    @property
    def entries(self) -> list[Json]:
        """The entries that count, in the order of the keys."""
        return [entry for entry in map(self._entry, self.keys) if entry is not None]

    @property
    def document(self) -> Json:
        """What the file holds; ``complete`` if this run has been at every key."""
        return {**self.head, "complete": len(self.found) == len(self.keys), "faults": self.entries}

    def keeps(self, key: Key) -> bool:
        """Return whether an earlier run has written the files of a key; then they and the entry stay."""
        entry = self._earlier(key)
        digests = [] if entry is None else _digests(entry)
        if entry is None or not digests or not all(self._is_as_written(*one) for one in digests):
            return False
        self.found[key] = entry
        self.kept += 1
        return True

    def add(self, key: Key, outputs: Sequence[Output], entry: Json) -> None:
        """Write the files of a key, the main one last, then the index. Files of before that it no longer has go."""
        files = [os.path.basename(output.path) for output in reversed(outputs)]
        sums = [hashlib.sha256(output.data).hexdigest() for output in reversed(outputs)]
        write_all(outputs, if_changed=True)
        for name, written in _digests(self.before.get(key, {})):
            if name not in files and self._is_as_written(name, written):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))
        self.found[key] = {**entry, "sha256": sums, "input": self.given}
        self.write()

    def write(self) -> None:
        """Write the index as it is."""
        text = json.dumps(self.document, indent=2) + "\n"
        write_all([Output(self.path, text)], if_changed=True)

    def _entry(self, key: Key) -> Json | None:
        return self.found.get(key) or self._earlier(key)

    def _earlier(self, key: Key) -> Json | None:
        entry = self.before.get(key)
        return entry if entry is not None and self.given and entry.get("input") == self.given else None

    def _is_as_written(self, name: str, written: str) -> bool:
        try:
            with open(os.path.join(self.folder, name), "rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == written
        except OSError:
            return False


def _digests(entry: Json) -> list[tuple[str, str]]:
    """Return the files of an entry in its own folder, with their digests."""
    files, sums = entry.get("files"), entry.get("sha256")
    if not isinstance(files, list) or not isinstance(sums, list) or len(files) != len(sums):
        return []
    pairs = [(str(name), str(one)) for name, one in zip(files, sums, strict=True)]
    return pairs if all(os.path.basename(name) == name for name, _ in pairs) else []


def _read(path: str) -> list[tuple[Key, Json]]:
    """Return the keys and entries of an index; none of a file that is missing, cut off, or something else."""
    try:
        with open(path, encoding="utf-8") as stream:
            faults = json.load(stream)["faults"]
        return [((one["collective"], one["kind"], one["where"], one["rate"] or ""), one) for one in faults]
    except (OSError, ValueError, KeyError, TypeError):
        return []
