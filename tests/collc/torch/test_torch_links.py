"""Connections between ranks of a group: addresses and a secret from a store, and what strangers get."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable

import pytest

from collc.torch import links
from collc.torch.links import connected


class Memory:
    """A store for threads; ``seen`` is called with every new key."""

    def __init__(self, seen: Callable[[str, str], None] = lambda key, value: None):
        self.values: dict[str, str] = {}
        self.changed, self.seen = threading.Condition(), seen

    def set(self, key: str, value: str) -> None:
        self.seen(key, value)
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str) -> bytes:
        with self.changed:
            assert self.changed.wait_for(lambda: key in self.values, 20)
            return self.values[key].encode()


Found = dict[int, socket.socket] | str


def ranks(size: int, store: Memory, obstacles: dict[int, str], seconds: float = 20) -> list[Found]:
    found: list[Found] = [""] * size

    def rank(r: int) -> None:
        others = {peer for peer in range(size) if peer != r and abs(peer - r) != 2}
        found[r] = connected(store, r, size, others, obstacles.get(r, ""), seconds)

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def check(found: list[Found]) -> None:
    """Every pair that exchanges messages has one connection."""
    for r, mine in enumerate(found):
        assert not isinstance(mine, str), mine
        assert set(mine) == {peer for peer in range(len(found)) if peer != r and abs(peer - r) != 2}
        for peer, one in mine.items():
            one.setblocking(True)
            one.sendall(bytes([r, peer]))
    for r, mine in enumerate(found):
        assert not isinstance(mine, str)
        for peer, one in mine.items():
            assert one.recv(2) == bytes([peer, r])
            one.close()


def test_ranks_that_exchange_messages_are_connected() -> None:
    check(ranks(5, Memory(), {}))


def test_strangers_are_refused() -> None:
    """They come first, and say nothing, or what a rank of another attempt would."""
    strangers: list[socket.socket] = []

    def come(key: str, value: str) -> None:
        if key != "begin":
            return
        for where in json.loads(value)[1]:
            for said in (b"GET / HTTP/1.1", links._RANK.pack(1) + links._proof(b"old secret", 1, 0), b""):
                strangers.append(socket.create_connection(tuple(where), 5))
                strangers[-1].sendall(said)
                if said:
                    strangers[-1].shutdown(socket.SHUT_WR)
                else:
                    strangers[-1].close()

    check(ranks(3, Memory(come), {}))
    for one in strangers:
        if one.fileno() >= 0:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        one.close()


def test_another_program_at_a_rank_s_address_is_refused() -> None:
    """All ranks then have the same reason, and none has connections."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            one, _ = other.accept()
            one.recv(100)
            one.sendall(bytes(100))
            one.close()

        wrong = Memory()
        original = wrong.set

        def moved(key: str, value: str) -> None:
            if key == "begin/0":
                value = json.dumps(["", other.getsockname()])
            original(key, value)

        wrong.set = moved  # type: ignore[method-assign]
        threading.Thread(target=answer, daemon=True).start()
        found = ranks(2, wrong, {}, seconds=1)
    assert found[0] == found[1] and isinstance(found[0], str) and "cannot connect" in found[0]


def test_all_ranks_do_without_if_one_has_no_library() -> None:
    assert ranks(3, Memory(), {2: "no C compiler"}) == ["rank 2: no C compiler"] * 3


def test_the_interface_is_that_of_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    assert links._address() == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "no-such-one")
    found = ranks(2, Memory(), {})
    assert found[0] == found[1] and str(found[0]).startswith("rank 0: cannot listen")
