"""Rounds of pieces: a message conflicts with those pieces of its thread that access the same data."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import pytest
from built_programs import ring
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.oneccl_xml import rounds
from collc.backends.oneccl_xml.pieces import LOCAL, OUT, Piece, Pieces
from collc.ir.program import Program

_NETS = ("torus(2, 3)", "hypercube(3)", "torus(5)", "complete(4)")
_KINDS = ("allreduce", "allgather", "reduce-scatter", "alltoall")


class _Compared(rounds._Touched):
    """Compares a message with each piece in turn."""

    def __init__(self, base: list[int]):
        super().__init__(base)
        self.pieces: list[tuple[Piece, int]] = []

    def add(self, piece: Piece, count: int) -> None:
        self.pieces.append((piece, count))
        super().add(piece, count)

    def conflicts(self, message: Piece, count: int) -> bool:
        kept = super().conflicts(message, count)
        assert kept == any(_conflict(self.base, one, size, message, count) for one, size in self.pieces), "each piece"
        return kept


def _conflict(base: list[int], before: Piece, size: int, message: Piece, count: int) -> bool:
    reads = [place for place in (before.src, before.second) if place is not None]
    writes = [] if before.dst is None else [before.dst]
    place = message.src if message.kind == OUT else message.dst
    assert place is not None
    touched = writes if message.kind == OUT else reads + writes
    if before.kind == LOCAL and before.second is None and len({base[b] + at for b, at in reads + writes}) == 1:
        touched = [one for one in touched if one[0] is place[0]]
    numbers = range(base[place[0]] + place[1], base[place[0]] + place[1] + count)
    return any(base[b] + at + k in numbers for b, at in touched for k in range(size))


@cache
def _program(net: str, kind: str) -> Program:
    program = collc.compile_source(f"topology t = {net}; collective g = {kind} on t;", target="ir").program
    assert program is not None
    return program


@given(st.sampled_from(("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")), st.integers(2, 5),
       st.integers(1, 3), st.integers(1, 3), st.integers(1, 8))  # fmt: skip
def test_conflicts_of_rings_are_those_of_each_piece(
    kind: str, ranks: int, split: int, threads: int, lanes: int
) -> None:
    """A block of a ring receives what it sends next."""
    _compare(ring(kind, ranks, split), threads, lanes)


@settings(max_examples=examples(30))
@given(st.sampled_from(_NETS), st.sampled_from(_KINDS), st.integers(1, 5), st.integers(1, 8))
def test_conflicts_are_those_of_each_piece(net: str, kind: str, threads: int, lanes: int) -> None:
    _compare(_program(net, kind), threads, lanes)


def _compare(program: Program, threads: int, lanes: int) -> None:
    thread = [int(k) % threads for k in program.block_id]
    kept = rounds.plan(Pieces(program, lanes), thread, lanes)
    with patch.object(rounds, "_Touched", _Compared):
        assert rounds.plan(Pieces(program, lanes), thread, lanes) == kept


def test_a_piece_that_is_missing_is_found() -> None:
    """Without the conflicts of one's own thread, messages go too early: the comparison above would see it."""
    pieces = Pieces(ring("allreduce", 4, 2), 8)
    thread = [0] * pieces.program.num_blocks

    class Forgetful(_Compared):
        def add(self, piece: Piece, count: int) -> None:
            self.pieces.append((piece, count))

    with patch.object(rounds, "_Touched", Forgetful), pytest.raises(AssertionError, match="each piece"):
        rounds.plan(pieces, thread, 8)
