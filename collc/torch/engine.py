"""The compiled engine: plays a rank's plan over sockets in one call of C, in the calling thread, without Python's lock.

Every call of a group has a number, and every message a header with the number of its call, its own and its size. A
header that is not the expected one ends the call, so a message never lands in another's place.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import weakref
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array

from .columns import RECEIVE, Columns

__all__ = ["Engine", "Failure"]

_INTEGERS = ctypes.POINTER(ctypes.c_int64)
_Elsewhere = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@attrs.frozen
class Failure:
    """What a call failed on: a message of ``peer`` (``incoming``) or to it, the reason, and if the time was over."""

    incoming: bool
    peer: int
    reason: str
    timed_out: bool


class Engine:
    """The connections of one rank. ``sockets`` has one for every rank with which it exchanges messages."""

    def __init__(self, library: ctypes.CDLL, size: int, sockets: Mapping[int, socket.socket]):
        self.library, self.sockets = library, dict(sockets)
        _declare(library)
        places = np.full(size, -1, np.int64)
        for rank, one in sockets.items():
            places[rank] = one.fileno()
        self.handle = library.collc_open(size, _pointer(places))
        if not self.handle:
            raise MemoryError("no memory for connections")
        weakref.finalize(self, library.collc_close, self.handle)
        self.waits = library.collc_awaits(self.handle)
        self.waits[0] = -1

    def awaits(self) -> tuple[bool, int] | None:
        """Return what the call of another thread waits for: a message from a rank (True) or to it (False)."""
        kind, peer = int(self.waits[0]), int(self.waits[1])
        return (kind == RECEIVE, peer) if kind >= 0 else None

    def play(
        self, columns: Columns, buffers: Sequence[int], width: int, reduction: str, other: Callable[[int], None],
        seconds: float,
    ) -> Failure | None:  # fmt: skip
        """Perform a call; ``buffers`` are addresses, ``width`` the bytes of an element.

        The engine has a ``reduction`` (such as ``sum float32``), or calls ``other`` with the number of each operation
        that combines. An error of ``other`` ends the call.
        """
        raised: list[BaseException] = []

        def elsewhere(number: int) -> int:
            try:
                other(number)
            except BaseException as problem:
                raised.append(problem)
            return len(raised)

        tables: list[object] = []
        for table in (columns.operations, columns.dependents, columns.messages):
            tables += [_pointer(table), len(table)]
        places = (ctypes.c_void_p * len(buffers))(*buffers)
        function = self.library.collc_reduction(reduction.encode())
        status = self.library.collc_play(
            self.handle, *tables, places, width, function, _Elsewhere(elsewhere), max(int(seconds * 1000), 1)
        )
        if raised:
            raise raised[0]
        return self._failure(status) if status else None

    def close(self) -> None:
        """End the connections; peers that wait for a message fail at once."""
        for one in self.sockets.values():
            with contextlib.suppress(OSError):  # the peer was faster
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.sockets = {}

    def _failure(self, status: int) -> Failure:
        incoming, peer = self.awaits() or (True, -1)
        self.waits[0] = -1
        known = {errno.EPROTO: "a message of another call", errno.ECONNRESET: "the connection was closed"}
        reason = known.get(status) or os.strerror(status).lower()
        return Failure(incoming, peer, reason, status == errno.ETIMEDOUT)


def _pointer(array: Array) -> object:
    return array.ctypes.data_as(_INTEGERS)


def _declare(library: ctypes.CDLL) -> None:
    number, place = ctypes.c_int64, ctypes.c_void_p
    library.collc_open.restype, library.collc_open.argtypes = place, [number, _INTEGERS]
    library.collc_close.restype, library.collc_close.argtypes = None, [place]
    library.collc_awaits.restype, library.collc_awaits.argtypes = _INTEGERS, [place]
    library.collc_reduction.restype, library.collc_reduction.argtypes = place, [ctypes.c_char_p]
    library.collc_play.restype = number
    library.collc_play.argtypes = [
        place, _INTEGERS, number, _INTEGERS, number, _INTEGERS, number, place, number, place, _Elsewhere, number,
    ]  # fmt: skip
