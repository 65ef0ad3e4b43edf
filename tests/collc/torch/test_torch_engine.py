"""The compiled engine without torch: ranks are threads of one process, joined by pairs of sockets."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from torch_plans import CASES, Played, inputs_of, laid, memory_of

from collc.ir.arrays import Array
from collc.torch import columns as arrays
from collc.torch import library as building
from collc.torch.columns import Columns, columns
from collc.torch.engine import Engine, Failure
from collc.torch.library import library
from collc.torch.plan import Plan, Planner

#: bytes of a socket's buffers: most messages go in several parts
SMALL = 4096


@pytest.fixture
def engines() -> Iterator[Engines]:
    loaded = library()
    if isinstance(loaded, str):
        pytest.skip(loaded)
    made = Engines(loaded)
    yield made
    for one in made.sockets:
        one.close()


class Engines:
    """Makes the connected engines of a job."""

    def __init__(self, loaded: object):
        self.loaded = loaded
        self.sockets: list[socket.socket] = []

    def pair(self) -> tuple[socket.socket, socket.socket]:
        both = socket.socketpair()
        self.sockets += both
        return both

    def of(self, size: int) -> list[Engine]:
        ends: list[dict[int, socket.socket]] = [{} for _ in range(size)]
        for a, b in itertools.combinations(range(size), 2):
            ends[a][b], ends[b][a] = self.pair()
            for one in (ends[a][b], ends[b][a]):
                one.setblocking(False)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        return [Engine(self.loaded, size, mine) for mine in ends]  # type: ignore[arg-type]


def played(
    engines: Sequence[Engine], tables: Sequence[Columns], memory: Sequence[list[Array]], reduction: str = "sum float64",
    seconds: float = 20,
) -> list[Failure | None]:  # fmt: skip
    """Play a call on all ranks at once; a reduction that the engine does not have is a sum here."""
    found: list[Failure | None] = [None] * len(engines)

    def rank(r: int) -> None:
        def combine(k: int) -> None:
            to, one, other = (memory[r][b][low:high] for b, low, high in tables[r].actions[k][1:])
            to[:] = one + other

        places = [buffer.ctypes.data for buffer in memory[r]]
        width = memory[r][1].dtype.itemsize
        found[r] = engines[r].play(tables[r], places, width, reduction, combine, seconds)

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(len(engines))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def check(engines: Engines, case: int, elements: int, packed: bool, reduction: str) -> None:
    """Compare the bits of two calls with those of ranks that perform the plan's actions in its order."""
    which = laid(case)
    n = which.program.num_ranks
    plans: list[Plan] = [Planner(which, r).plan(elements, packed) for r in range(n)]
    ranks = engines.of(n)
    for seed in range(2):
        numbers = np.random.default_rng(seed)
        given = inputs_of(which.program, elements, seed)
        inputs = [None if one is None else numbers.standard_normal(len(one)) for one in given]
        expected = Played(which, plans, inputs, elements, seed).run()
        memory = memory_of(which, plans, inputs, elements)
        assert played(ranks, [columns(plan.actions) for plan in plans], memory, reduction) == [None] * n
        wrong = [r for r in range(n) if memory[r][1].tobytes() != expected[r].tobytes()]
        assert wrong == []  # ranks: a comparison of all bytes takes minutes to print where pytest shows it whole
    for one in ranks:
        one.close()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("case", range(len(CASES) + 1), ids=[*(" ".join(case) for case in CASES), "relay"])
def test_results_have_the_bits_of_the_plans_order(engines: Engines, case: int, packed: bool) -> None:
    check(engines, case, 61, packed, "sum float64")


@pytest.mark.parametrize("reduction", ["sum float64", "not there"])
def test_messages_in_many_parts(engines: Engines, reduction: str) -> None:
    for case in (0, 3, len(CASES)):
        check(engines, case, 20001, False, reduction)


@pytest.mark.parametrize("planted", ["none", "reductions"])
def test_the_comparison_finds_missing_dependencies(
    engines: Engines, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations that do not wait for others, and reductions into one place in the other order."""
    original = arrays._dependents

    def changed(actions: Sequence[arrays.Action]) -> list[list[int]]:
        if planted == "none":
            return [[] for _ in actions]
        before = [act for act in actions if act[0] == arrays.Kind.COMBINE]
        return original([swapped(act) if act in before else act for act in actions])

    def swapped(act: arrays.Action) -> arrays.Action:
        return (act[0], (9, *act[1][1:]), (9, *act[2][1:]), act[3])  # nothing else uses this buffer

    monkeypatch.setattr(arrays, "_dependents", changed)
    with pytest.raises(AssertionError):
        for _ in range(5):
            check(engines, 0, 2001, False, "sum float64")


def test_the_sends_to_a_peer_are_in_the_order_of_their_numbers() -> None:
    """The engine sends them in that order; another order of the operations could make ranks wait for each other."""
    for case, packed in itertools.product(range(len(CASES) + 1), (True, False)):
        which = laid(case)
        for r in range(which.program.num_ranks):
            table = columns(Planner(which, r).plan(61, packed).actions).operations
            for kind, peer in {(int(row[0]), int(row[1])) for row in table if row[0] == arrays.SEND}:
                numbers = [int(row[2]) for row in table if (row[0], row[1]) == (kind, peer)]
                assert numbers == sorted(set(numbers))


# ---- failures


def pair(engines: Engines) -> tuple[Engine, socket.socket, list[Columns], list[list[Array]]]:
    """Rank 0 of an allreduce of 2 ranks, the socket of rank 1, and what both would play."""
    which = laid(-1)
    plans = [Planner(which, r).plan(100, False) for r in range(2)]
    memory = memory_of(which, plans, [np.ones(100), np.ones(100)], 100)
    mine, theirs = engines.pair()
    mine.setblocking(False)
    return Engine(engines.loaded, 2, {1: mine}), theirs, [columns(p.actions) for p in plans], memory  # type: ignore[arg-type]


def first_message(table: Columns, call: int = 1, more: int = 0) -> bytes:
    """Return the first message that a rank expects, of zeros."""
    row = next(row for row in table.operations.tolist() if row[0] == arrays.RECEIVE)
    size = 8 * row[5] + more
    return struct.pack("=IIQ", call, row[2], size) + bytes(size)


CLOSED, OTHER = "the connection was closed", "a message of another call"


@pytest.mark.parametrize(
    ("call", "more", "cut", "says"),
    [(1, 0, 0, CLOSED), (1, 0, 8, CLOSED), (1, 0, -1, CLOSED), (2, 0, 99, OTHER), (1, 8, 99, OTHER)],
    ids=["nothing", "half a header", "a message cut off", "another call", "another size"],
)
def test_a_wrong_peer_ends_the_call(engines: Engines, call: int, more: int, cut: int, says: str) -> None:
    mine, theirs, tables, memory = pair(engines)
    theirs.sendall(first_message(tables[0], call, more)[:cut])
    theirs.shutdown(socket.SHUT_WR)
    assert played([mine], tables[:1], memory[:1]) == [Failure(True, 1, says, False)]


def test_a_peer_that_does_not_come_is_named_while_it_is_awaited_and_when_the_time_is_over(engines: Engines) -> None:
    mine, _theirs, tables, memory = pair(engines)
    seen: list[object] = []
    watch = threading.Timer(0.1, lambda: seen.append(mine.awaits()))
    watch.start()
    (failed,) = played([mine], tables[:1], memory[:1], seconds=0.3)
    assert failed is not None and (failed.incoming, failed.peer, failed.timed_out) == (True, 1, True)
    assert seen == [(True, 1)] and mine.awaits() is None


def test_an_error_of_a_reduction_of_python_ends_the_call(engines: Engines) -> None:
    mine, theirs, tables, memory = pair(engines)

    def broken(number: int) -> None:
        raise ZeroDivisionError(number)

    theirs.sendall(first_message(tables[0]))
    with pytest.raises(ZeroDivisionError):
        mine.play(tables[0], [buffer.ctypes.data for buffer in memory[0]], 8, "none", broken, 5)


# ---- reductions

TYPES = ("float32", "float64", "float16", "uint8", "int8", "int16", "int32", "int64")
FUNCTIONS = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def reduced(engines: Engines, name: str, one: Array, other: Array) -> Array | None:
    import ctypes

    Engine(engines.loaded, 1, {})  # type: ignore[arg-type]  # declares the functions
    function = engines.loaded.collc_reduction(name.encode())  # type: ignore[attr-defined]
    if not function:
        return None
    to = np.empty_like(one)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(function)
    call(to.ctypes.data, one.ctypes.data, other.ctypes.data, len(one))
    return to


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_reductions_are_those_of_numpy_bit_by_bit(engines: Engines, dtype: str, op: str) -> None:
    """Floating-point numbers of any bits. NaNs are NaNs. Minimum and maximum of them are Python's."""
    numbers = np.random.default_rng(1)
    one, other = (np.frombuffer(numbers.bytes(8 * 30001), dtype) for _ in range(2))
    found = reduced(engines, f"{op} {dtype}", one, other)
    if dtype.startswith("float") and op not in ("sum", "product"):
        assert found is None
        return
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[op](one, other)
    assert found is not None
    same = found.view(f"u{one.itemsize}") == expected.view(f"u{one.itemsize}")
    assert bool((same | ((found != found) & (expected != expected))).all())


@pytest.mark.parametrize("op", ["sum", "product"])
def test_bfloat16_is_rounded_to_the_nearest_and_ties_to_even(engines: Engines, op: str) -> None:
    numbers = np.random.default_rng(2)
    one, other = (np.frombuffer(numbers.bytes(200000), np.uint16) for _ in range(2))
    found = reduced(engines, f"{op} bfloat16", one, other)
    wide = [(part.astype(np.uint32) << 16).view(np.float32) for part in (one, other)]
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[op](*wide)
    bits = exact.view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    assert found is not None
    is_nan = np.isnan(exact)
    assert np.array_equal(found[~is_nan], expected[~is_nan]) and bool((found[is_nan] & 0x7FFF > 0x7F80).all())


# ---- the library


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    yield tmp_path
    building._library.cache_clear()


def test_without_a_compiler_there_is_a_reason(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    assert "false` failed" in str(library())
    monkeypatch.setenv("CC", "no-compiler-at-all")
    monkeypatch.setenv("PATH", str(elsewhere))
    assert library() == "no C compiler"
    assert not list(elsewhere.glob("collc/interpose/*/*.so"))


def test_a_changed_library_is_never_loaded(elsewhere: Path) -> None:
    if isinstance(library(), str):
        pytest.skip("no C compiler")
    (path,) = elsewhere.glob("collc/interpose/*/torch.so")
    right = path.read_bytes()
    path.unlink()  # the loaded file stays as it is
    path.write_bytes(right[:-1])
    building._library.cache_clear()
    assert not isinstance(library(), str) and path.read_bytes() == right
