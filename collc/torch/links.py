"""Connections between the ranks of a group: addresses and a secret go through torch's store.

Every group and every attempt of a job has its own secret, so connections of others are refused. All ranks decide
together: if one of them cannot take part, none has connections.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import socket
import struct
import time
from collections.abc import Collection, Iterator
from typing import Protocol

__all__ = ["Store", "connected"]

#: time limit for one connection's first bytes: strangers may connect and say nothing
_GREETING_SECONDS = 2.0
#: Linux: the address of an interface
_SIOCGIFADDR = 0x8915
_DIGEST = hashlib.sha256().digest_size
_RANK = struct.Struct("!q")


class Store(Protocol):
    """What is used of torch's store."""

    def set(self, key: str, value: str) -> None:
        """Publish a value."""

    def get(self, key: str) -> bytes:
        """Wait for a value."""
        ...


def connected(
    store: Store, rank: int, size: int, peers: Collection[int], obstacle: str, seconds: float
) -> dict[int, socket.socket] | str:
    """Return a connection to each of ``peers``, or why there are none; every rank of the group calls this.

    ``obstacle`` is why this rank cannot take part; empty if it can.
    """
    found: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        place: tuple[str, int] | None = None
        if not obstacle:
            try:
                listener = stack.enter_context(socket.create_server((_address(), 0), backlog=size))
                place = listener.getsockname()[:2]
            except OSError as problem:
                obstacle = f"cannot listen: {problem}"
        first = _agreed(store, "begin", rank, size, obstacle, place, secrets.token_hex(32) if rank == 0 else None)
        if isinstance(first, str):
            return first
        places, secret = first
        try:
            _connect(found, listener, rank, peers, places, bytes.fromhex(secret), time.monotonic() + seconds)
        except OSError as problem:
            obstacle = f"cannot connect: {problem}"
        last = _agreed(store, "end", rank, size, obstacle)
    if isinstance(last, str):
        for one in found.values():
            one.close()
        return last
    for one in found.values():
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def _agreed(
    store: Store, step: str, rank: int, size: int, obstacle: str, place: tuple[str, int] | None = None,
    secret: str | None = None,
) -> tuple[list[tuple[str, int]], str] | str:  # fmt: skip
    """Return what all ranks published and the secret of rank 0, or the obstacle of the first rank with one."""
    store.set(f"{step}/{rank}", json.dumps([obstacle, place]))
    if rank == 0:
        every = [json.loads(bytes(store.get(f"{step}/{r}"))) for r in range(size)]
        refused = next((f"rank {r}: {problem}" for r, (problem, _) in enumerate(every) if problem), "")
        store.set(step, json.dumps([refused, [where for _, where in every], secret]))
    refused, places, shared = json.loads(bytes(store.get(step)))
    return refused or ([tuple(where or ("", 0)) for where in places], shared or "")


def _address() -> str:
    """Return this rank's address as gloo chooses it: of ``GLOO_SOCKET_IFNAME``, else of the host's name."""
    name = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if name:
            request = struct.pack("256s", name.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)[20:24])
        with contextlib.suppress(OSError):
            address = socket.gethostbyname(socket.gethostname())
            probe.bind((address, 0))
            return address
    return "127.0.0.1"


def _connect(
    found: dict[int, socket.socket], listener: socket.socket, rank: int, peers: Collection[int],
    places: list[tuple[str, int]], secret: bytes, deadline: float,
) -> None:  # fmt: skip
    """Connect to lower ranks and accept higher ones; both ends prove that they know the secret."""
    for peer in sorted(peer for peer in peers if peer < rank):
        found[peer] = socket.create_connection(places[peer], timeout=_left(deadline))
        found[peer].sendall(_RANK.pack(rank) + _proof(secret, rank, peer))
    awaited = {peer for peer in peers if peer > rank}
    for one, peer in _greeted(listener, rank, secret, awaited, deadline):
        found[peer] = one
        one.sendall(_proof(secret, rank, peer))
    for peer in (peer for peer in peers if peer < rank):
        found[peer].settimeout(_left(deadline))
        if not hmac.compare_digest(_received(found[peer], _DIGEST), _proof(secret, peer, rank)):
            raise ConnectionRefusedError(f"at the address of rank {peer} is another program")


def _greeted(
    listener: socket.socket, rank: int, secret: bytes, awaited: set[int], deadline: float
) -> Iterator[tuple[socket.socket, int]]:
    """Yield a connection of each awaited rank; close those of strangers."""
    while awaited:
        listener.settimeout(_left(deadline))
        one, _ = listener.accept()
        try:
            one.settimeout(min(_GREETING_SECONDS, _left(deadline)))
            greeting = _received(one, _RANK.size + _DIGEST)
        except OSError:
            greeting = b""
        peer = _RANK.unpack(greeting[: _RANK.size])[0] if greeting else -1
        if peer not in awaited or not hmac.compare_digest(greeting[_RANK.size :], _proof(secret, peer, rank)):
            one.close()
            continue
        awaited.discard(peer)
        yield one, peer


def _proof(secret: bytes, sender: int, receiver: int) -> bytes:
    return hmac.digest(secret, f"{sender} to {receiver}".encode(), "sha256")


def _received(one: socket.socket, size: int) -> bytes:
    greeting = b""
    while len(greeting) < size:
        more = one.recv(size - len(greeting))
        if not more:
            raise ConnectionResetError("the connection was closed")
        greeting += more
    return greeting


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)
