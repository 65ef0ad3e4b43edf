"""Registration of the backend with torch, and creation of groups."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from collc.ir.diagnostic import CollcError, warning

from .catalog import Entry
from .engine import Engine
from .group import CollcGroup
from .library import library
from .links import connected
from .messages import details
from .running import Wire
from .settings import ENGINE, REPLACE, STATS
from .sharing import share

__all__ = ["register", "replace"]

NAME = "collc"

#: groups that have not been reported yet
_open: weakref.WeakSet[CollcGroup] = weakref.WeakSet()


def register() -> None:
    """Make ``collc`` a backend of torch.distributed, once."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])
        atexit.register(_report_all)


def _create(options: dist.distributed_c10d._DistributedBackendOptions, _backend_options: object = None) -> CollcGroup:
    """Return a rank's group; raises CollcError on every rank for a wrong specification."""
    rank, size, limit = options.group_rank, options.group_size, options.timeout
    # torchrun may keep the store when it starts workers again: addresses of ended workers must not be found
    store = dist.PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", options.store)
    try:
        entries = share(dist.PrefixStore("collc", store), rank, size)
    except CollcError as mistake:
        for diagnostic in mistake.diagnostics:  # a traceback shows notes below the message
            for note in details(diagnostic):
                mistake.add_note(note)
        raise
    fits = size > 1 and any(entry.ranks == size for entry in entries)
    is_default = not options.global_ranks_in_group
    if not fits and is_default and rank == 0:
        known = ", ".join(map(str, sorted({entry.ranks for entry in entries})))
        found = warning(
            "C0094",
            f"the specification has no collective for {size} ranks, only for {known}; groups of this size use gloo",
        )
        warnings.warn(f"collc: {found.message} [{found.code}]", RuntimeWarning, stacklevel=6)
    inner = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout=limit)
    wire = _wire(store, rank, size, limit, entries) if fits else None
    group = _Reporting(rank, size, limit, inner, wire, entries if fits else (), str(options.group_id))
    _open.add(group)
    return group


def _wire(store: dist.Store, rank: int, size: int, limit: timedelta, entries: Sequence[Entry]) -> Wire:
    """Return what plays the schedules of a group: the engine if all ranks can have it, else gloo."""
    transport = dist.ProcessGroupGloo(dist.PrefixStore("wire", store), rank, size, timeout=limit)
    off = os.environ.get(ENGINE, "") == "0"
    loaded = f"{ENGINE} is 0" if off else library()
    peers = {peer for entry in entries if entry.ranks == size for peer in entry.peers(rank)}
    obstacle = loaded if isinstance(loaded, str) else ""
    seconds = limit.total_seconds()
    sockets = connected(dist.PrefixStore("engine", store), rank, size, peers, obstacle, seconds)
    if isinstance(loaded, str) or isinstance(sockets, str):
        return Wire(transport, None, rank, size, why=str(sockets))
    return Wire(transport, Engine(loaded, size, sockets), rank, size)


class _Reporting(CollcGroup):
    """A group that reports its calls at its end if the environment asks for it."""

    def shutdown(self) -> None:
        super().shutdown()
        _report(self)


def _report(group: CollcGroup) -> None:
    if group not in _open:
        return
    _open.discard(group)
    where = os.environ.get(STATS, "")
    if where in ("", "0") or group.rank():
        return
    counts = (("served", group.served), ("delegated", group.delegated))
    text = ", ".join(f"{word} {sum(by.values())}{_listed(by)}" for word, by in counts)
    wire = group._wire
    why = f"; messages over gloo: {wire.why}" if wire is not None and wire.engine is None else ""
    line = f"collc: torch group {group._label} of {group.size()} ranks: {text}{why}\n"
    if where == "1":
        sys.stderr.write(line)  # in one piece, since all ranks write there
        sys.stderr.flush()
    else:
        with contextlib.suppress(OSError), open(where, "a", encoding="utf-8") as file:
            file.write(line)


def _listed(counts: dict[str, int]) -> str:
    return f" ({', '.join(f'{kind} {n}' for kind, n in sorted(counts.items()))})" if counts else ""


def _report_all() -> None:
    for group in list(_open):
        _report(group)


def replace() -> None:
    """Give programs this backend if they ask for the backend in ``COLLC_TORCH_REPLACE``, or for none."""
    replaced = os.environ.get(REPLACE, "")
    if not replaced or getattr(dist, "_collc_replaced", False):
        return
    from torch.distributed import distributed_c10d

    # Any, to the end: whatever torch's function takes and returns
    def with_this_backend(original: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps

        @wraps(original)
        def call(*args: Any, **named: Any) -> Any:  # Any: as above
            position = _BACKEND[original.__name__]
            backend = args[position] if len(args) > position else named.get("backend")
            unnamed = backend is None and original.__name__ == "init_process_group"
            if unnamed or (backend is not None and str(backend).lower() == replaced.lower()):
                if len(args) > position:
                    args = (*args[:position], NAME, *args[position + 1 :])
                else:
                    named["backend"] = NAME
            return original(*args, **named)

        return call

    for name in _BACKEND:
        replacement = with_this_backend(getattr(distributed_c10d, name))
        for module in (distributed_c10d, dist):
            setattr(module, name, replacement)
    dist._collc_replaced = True


#: functions with a backend argument -> its position
_BACKEND = {"init_process_group": 0, "new_group": 2}
