"""Rounds of pieces: the pieces that a message is compared with are those of its thread, whichever way they are kept."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.oneccl_xml import rounds
from collc.backends.oneccl_xml.pieces import Piece, Pieces
from collc.ir.program import Program

_NETS = ("torus(2, 3)", "hypercube(3)", "torus(5)", "complete(4)")
_KINDS = ("allreduce", "allgather", "reduce-scatter", "alltoall")


class _Searched(rounds._Run):
    """Looks at the blocks of all ranks for those of a thread."""

    def _look_ahead(self, block: int) -> None:
        own = self.rank[block], self.thread[block]
        found = [busy for other, busy in self.busy.items() if (self.rank[other], self.thread[other]) == own]
        kept = self.mates.get(own, [])
        assert sorted(map(id, kept)) == sorted(map(id, found)), "each list of the thread, once"
        super()._look_ahead(block)


@cache
def _program(net: str, kind: str) -> Program:
    program = collc.compile_source(f"topology t = {net}; collective g = {kind} on t;", target="ir").program
    assert program is not None
    return program


@settings(max_examples=examples(30))
@given(st.sampled_from(_NETS), st.sampled_from(_KINDS), st.integers(1, 5), st.integers(1, 8))
def test_lists_by_thread_are_those_that_a_search_finds(net: str, kind: str, threads: int, lanes: int) -> None:
    program = _program(net, kind)
    thread = [int(k) % threads for k in program.block_id]
    kept = rounds.plan(Pieces(program, lanes), thread, lanes)
    with patch.object(rounds, "_Run", _Searched):
        assert rounds.plan(Pieces(program, lanes), thread, lanes) == kept


def test_a_list_that_is_missing_is_found() -> None:
    """Without the conflicts of one's own thread, messages go too early: the comparison above would see it."""
    pieces = Pieces(_program("torus(2, 3)", "allreduce"), 8)
    thread = [0] * pieces.program.num_blocks

    class Forgetful(_Searched):
        def _pass(self, block: int, piece: Piece) -> None:
            self.mates[self.rank[block], self.thread[block]] = []
            super()._pass(block, piece)

    with patch.object(rounds, "_Run", Forgetful), pytest.raises(AssertionError, match="each list of the thread, once"):
        rounds.plan(pieces, thread, 8)
