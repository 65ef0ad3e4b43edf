"""climb.c, compiled, and the structures that it shares with Python."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from collc.passes.finder.turns import Turn

__all__ = ["FAR", "LINKS", "PATIENCE", "PERIOD", "STEPS", "BestLift", "BestSet", "Lift", "Link", "Turning", "library"]

LINKS, STEPS, PERIOD = 16, 64, 64  # as in climb.c
FAR = 1 << 60  # above any load
PATIENCE = 300  # evaluations without progress before a climb starts anew


class BestSet(ctypes.Structure):
    _fields_ = (("load", ctypes.c_int64), ("set", ctypes.c_int * LINKS))


class Link(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("a", "b", "v", "half"))


class Lift(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("link", Link * (PERIOD * LINKS // 2 + PERIOD)))


class Turning(ctypes.Structure):
    _fields_ = (("times", ctypes.c_int), ("order", ctypes.c_int), ("next", ctypes.c_int * PERIOD))

    @classmethod
    def of(cls, turn: Turn | None) -> Turning:
        """Return the turn for C; an order of 0 is none."""
        return cls() if turn is None else cls(turn.times, turn.order, (ctypes.c_int * PERIOD)(*turn.next))


class BestLift(ctypes.Structure):
    _fields_ = (("load", ctypes.c_int64), ("lift", Lift))


@lru_cache
def library() -> ctypes.CDLL:
    """Compile climb.c and load it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = str(Path(__file__).with_name("climb.c")), f"{folder}/climb.so"
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", target], check=True)
        loaded = ctypes.CDLL(target)
    number, pointer = ctypes.c_int, ctypes.c_void_p
    loaded.climb_cayley.argtypes = [pointer, pointer, *[number] * 6, ctypes.c_uint64, pointer, pointer, number]
    loaded.climb_lift.argtypes = [*[number] * 6, ctypes.c_uint64, pointer, pointer, pointer]
    loaded.climb_directed.argtypes = [*[number] * 6, ctypes.c_uint64, pointer]
    loaded.insert_one_way.argtypes = [
        number, number, pointer, pointer, *[number] * 3, ctypes.c_uint64, pointer, pointer,
    ]  # fmt: skip
    loaded.insert.argtypes = [*[number] * 3, pointer, *[number] * 3, ctypes.c_uint64, pointer, pointer]
    large = ctypes.c_int64
    loaded.exchange.argtypes = [
        *[number] * 4, large, number, large, large, number, ctypes.c_uint64, pointer, pointer,
    ]  # fmt: skip
    loaded.try_sets.argtypes = [pointer, number, number, pointer, ctypes.c_int64, number, pointer]
    loaded.try_sets.restype = None
    for function in (
        loaded.climb_cayley, loaded.climb_lift, loaded.climb_directed, loaded.insert, loaded.insert_one_way,
        loaded.exchange,
    ):  # fmt: skip
        function.restype = ctypes.c_int64
    return loaded
