"""One compilation for a whole job: rank 0 of a group compiles, all ranks agree, through torch's store.

Every rank says what it was configured with, rank 0 compares, compiles and says what became of it; so all ranks go on
together or fail with one message that names who differs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from datetime import timedelta
from typing import Any

from collc.ir.diagnostic import CollcError, error
from collc.ir.ranges import runs

from .catalog import Entry, compiled, load, printed
from .settings import Settings, settings

__all__ = ["share"]

#: what this process has, by the digest of its programs, and the programs it compiled, by its settings' digest
_loaded: dict[str, list[Entry]] = {}
_compiled: dict[str, bytes] = {}

_UNREAD = "-"
#: how long rank 0, with which the store ends, stays for ranks that have still to hear of a failure
_PATIENCE = timedelta(seconds=60)


def share(store: Any, rank: int, size: int) -> list[Entry]:
    """Return the collectives that all ranks of a group have.

    Raises CollcError on every rank: what compiling raised on rank 0 there, and a pointer to it elsewhere (C0092);
    C0093 where ranks were configured differently.
    """
    try:
        mine: Settings | None = settings()
        problem: CollcError | None = None
    except CollcError as mistake:
        mine, problem = None, mistake
    if rank:
        store.set(f"spec/{rank}", _digest(mine))
        verdict = json.loads(bytes(store.get("verdict")))
        if "failed" in verdict:
            store.set(f"heard/{rank}", "")
        return _told(verdict, store, problem)
    try:
        if problem is not None:
            raise problem
        assert mine is not None
        _compare(store, size, _digest(mine))
        body = _body(mine)
    except CollcError as mistake:
        first = mistake.diagnostics[0]
        _fail(store, size, {"failed": str(mistake), "code": first.code, "notes": first.notes})
        raise
    except BaseException as other:
        _fail(store, size, {"failed": f"{type(other).__name__}: {other}", "code": "C0092", "notes": []})
        raise
    digest = hashlib.sha256(body).hexdigest()
    store.set("programs", body)
    store.set("verdict", json.dumps({"programs": digest}))
    return _load(digest, body)


def _fail(store: Any, size: int, verdict: dict[str, Any]) -> None:
    """Tell all ranks, and stay until they know: most jobs end after this, and the store with rank 0."""
    store.set("verdict", json.dumps(verdict))
    with contextlib.suppress(RuntimeError):  # one that never comes
        store.wait([f"heard/{rank}" for rank in range(1, size)], _PATIENCE)


def _told(verdict: dict[str, Any], store: Any, problem: CollcError | None) -> list[Entry]:
    """Return what rank 0 offers, or raise what it found."""
    if "failed" not in verdict:
        digest = verdict["programs"]
        return _loaded.get(digest) or _load(digest, bytes(store.get("programs")))
    if problem is not None and problem.diagnostics[0].code == verdict["code"]:
        raise problem
    if verdict["code"] == "C0093":
        raise error("C0093", _DIFFER, notes=verdict["notes"])
    first = verdict["failed"].splitlines()[0]
    raise error("C0092", "rank 0 could not compile the specification", notes=[f"rank 0 says: {first}"])


def _body(mine: Settings) -> bytes:
    key = _digest(mine)
    if key not in _compiled:
        _compiled[key] = zlib.compress(json.dumps(compiled(mine)).encode())
    return _compiled[key]


def _load(digest: str, body: bytes) -> list[Entry]:
    if digest not in _loaded:
        _loaded[digest] = load(printed(json.loads(zlib.decompress(body))))
    return _loaded[digest]


_DIFFER = "ranks of a group were configured with different specifications"


def _compare(store: Any, size: int, mine: str) -> None:
    """Raise C0093 where a rank has another specification; one that cannot read it, or has none, takes rank 0's."""
    theirs = {rank: bytes(store.get(f"spec/{rank}")).decode() for rank in range(1, size)}
    other = [rank for rank, digest in theirs.items() if digest not in (mine, _UNREAD)]
    if other and mine != _UNREAD:
        one, listed = ("rank", "has") if len(other) == 1 else ("ranks", "have")
        raise error(
            "C0093",
            _DIFFER,
            notes=[f"{one} {', '.join(runs(other))} {listed} not what rank 0 has"],
            hint="the file and its parameters must be the same on all machines",
        )


def _digest(mine: Settings | None) -> str:
    if mine is None:
        return _UNREAD
    try:
        with open(mine.spec, "rb") as file:
            text = file.read()
    except OSError:
        return _UNREAD
    return hashlib.sha256(text + b"\0" + repr(mine.defines).encode()).hexdigest()
