"""Texts of a store that hold only while files are as they were: those they come from, and those they speak of."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from collc.ir.frozen import frozen

from .store import Store
from .surroundings import digest_of_tree
from .trust import digest_of, is_ours

__all__ = ["Origins", "State", "keep", "kept", "names_read", "state_of"]

#: ``stale``: whole, but a file that it came from has changed; ``wrong``: changed, cut off, or not this user's alone
State = Literal["whole", "stale", "wrong"]

_CODECS = ("utf-8-sig", "utf-8", "latin-1")


@frozen
class Origins:
    """What a text depends on.

    ``texts`` are those of the files that were read, by path. ``absent`` are paths where no file was found. ``trees``
    are folders or files of code. ``outputs`` are the files that collc wrote for the text.
    """

    texts: Mapping[str, str] = attrs.Factory(dict)
    absent: Sequence[str] = ()
    trees: Sequence[str] = ()
    outputs: Sequence[str] = ()


def keep(store: Store, key: str, text: str, origins: Origins) -> bool:
    """Keep a text under a key; return whether it is kept.

    It is not if a file has changed since it was read, or is missing.
    """
    read = [(os.path.abspath(path), _digest_if_equal(path, text)) for path, text in origins.texts.items()]
    outputs = [(path, digest_of(path)) for path in origins.outputs]
    if any(digest is None for _, digest in (*read, *outputs)):
        return False
    entry = {
        "key": key, "read": read, "absent": [os.path.abspath(path) for path in origins.absent],
        "trees": [(path, digest_of_tree(path)) for path in origins.trees], "outputs": outputs, "text": text,
    }  # fmt: skip
    return store.write(key, json.dumps(entry))


def kept(store: Store, key: str, root: str) -> str | None:
    """Return the text of a key if all files are as they were, else None.

    The files that collc wrote must be below ``root``, and only this user can have written them.
    """
    text = store.read(key)
    if text is None or state_of(text, key, root) != "whole":
        return None
    return str(json.loads(text)["text"])


def state_of(text: str, key: str, root: str) -> State:
    """Return whether the text of a key in the store would be used."""
    entry = _entry(text)
    try:
        if entry is None or entry["key"] != key or not isinstance(entry["text"], str):  # or a file that was moved
            return "wrong"
        if not all(is_ours(path, root) and digest_of(path) == digest for path, digest in entry["outputs"]):
            return "wrong"
        is_current = (
            all(digest_of(path) == digest for path, digest in entry["read"])
            and not any(os.path.exists(path) for path in entry["absent"])
            and all(digest_of_tree(path) == digest for path, digest in entry["trees"])
        )
    except (KeyError, TypeError, ValueError):
        return "wrong"
    return "whole" if is_current else "stale"


def names_read(text: str) -> tuple[str, ...]:
    """Return the names of the files that a text of the store comes from."""
    return tuple(os.path.basename(path) for path, _ in (_entry(text) or {"read": ()})["read"])


# Any: the digest of the store says that `keep` wrote it
def _entry(text: str | None) -> dict | None:  # type: ignore[type-arg]
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _digest_if_equal(path: str, text: str) -> str | None:
    """Return the digest of a file if it has this text, whichever way line ends and encoding were read."""
    if not os.path.isfile(path):  # a pipe
        return None
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except (OSError, ValueError):
        return None
    plain = text.replace("\r\n", "\n")
    return hashlib.sha256(data).hexdigest() if any(_decoded(data, codec) == plain for codec in _CODECS) else None


def _decoded(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec).replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
