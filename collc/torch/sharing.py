"""One compilation for a whole job: rank 0 of a group compiles, all ranks agree, through torch's store.

Every rank publishes its configuration. Rank 0 compares them, compiles, and publishes the result; so all ranks go on
together or fail with one message that names the ranks that differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

from collc.ir.diagnostic import CollcError, error
from collc.ir.ranges import runs

from .catalog import Entry, compiled, load, printed
from .settings import Settings, settings

if TYPE_CHECKING:
    import torch.distributed as dist

__all__ = ["share"]

#: the collectives of this process, by the digest of its programs, and the programs it compiled, by its settings' digest
_loaded: dict[str, list[Entry]] = {}
_compiled: dict[str, bytes] = {}

_UNREAD = "-"
#: time limit of rank 0 for telling all ranks of a failure: the store ends with rank 0
_PATIENCE = timedelta(seconds=60)


class Verdict(TypedDict, total=False):
    """The answer of rank 0 to the others: the digest of the programs, or the failure."""

    programs: str
    failed: str
    code: str
    notes: Sequence[str]


def share(store: dist.Store, rank: int, size: int) -> list[Entry]:
    """Return the collectives that all ranks of a group have.

    Raises CollcError on every rank: the error of compilation on rank 0, C0092 on the others; C0093 if ranks have
    different settings.
    """
    try:
        own: Settings | None = settings()
        problem: CollcError | None = None
    except CollcError as mistake:
        own, problem = None, mistake
    if rank:
        store.set(f"spec/{rank}", _digest(own))
        verdict: Verdict = json.loads(bytes(store.get("verdict")))
        if "failed" in verdict:
            store.set(f"heard/{rank}", "")
        return _entries_of_rank_0(verdict, store, problem)
    try:
        if problem is not None:
            raise problem
        assert own is not None
        _compare(store, size, _digest(own))
        body = _body(own)
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


def _fail(store: dist.Store, size: int, verdict: Verdict) -> None:
    """Tell all ranks, and wait until they know: the store ends with rank 0."""
    store.set("verdict", json.dumps(verdict))
    with contextlib.suppress(RuntimeError):  # a rank that never answers
        store.wait([f"heard/{rank}" for rank in range(1, size)], _PATIENCE)


def _entries_of_rank_0(verdict: Verdict, store: dist.Store, problem: CollcError | None) -> list[Entry]:
    """Return the collectives from rank 0, or raise its error."""
    if "failed" not in verdict:
        digest = verdict["programs"]
        return _loaded.get(digest) or _load(digest, bytes(store.get("programs")))
    if problem is not None and problem.diagnostics[0].code == verdict["code"]:
        raise problem
    if verdict["code"] == "C0093":
        raise error("C0093", _DIFFER, notes=verdict["notes"])
    first = verdict["failed"].splitlines()[0]
    raise error("C0092", "rank 0 could not compile the specification", notes=[f"rank 0: {first}"])


def _body(own: Settings) -> bytes:
    key = _digest(own)
    if key not in _compiled:
        _compiled[key] = zlib.compress(json.dumps(compiled(own)).encode())
    return _compiled[key]


def _load(digest: str, body: bytes) -> list[Entry]:
    if digest not in _loaded:
        _loaded[digest] = load(printed(json.loads(zlib.decompress(body))))
    return _loaded[digest]


_DIFFER = "ranks of a group were configured with different specifications"


def _compare(store: dist.Store, size: int, own: str) -> None:
    """Raise C0093 if a rank has another specification; a rank without a readable one uses that of rank 0."""
    digests = {rank: bytes(store.get(f"spec/{rank}")).decode() for rank in range(1, size)}
    other = [rank for rank, digest in digests.items() if digest not in (own, _UNREAD)]
    if other and own != _UNREAD:
        one, listed = ("rank", "has") if len(other) == 1 else ("ranks", "have")
        raise error(
            "C0093",
            _DIFFER,
            notes=[f"{one} {', '.join(runs(other))} {listed} another one than rank 0"],
            hint="the file and its parameters must be the same on all machines",
        )


def _digest(own: Settings | None) -> str:
    if own is None:
        return _UNREAD
    try:
        with open(own.spec, "rb") as file:
            text = file.read()
    except OSError:
        return _UNREAD
    return hashlib.sha256(text + b"\0" + repr((own.defines, own.collectives)).encode()).hexdigest()
