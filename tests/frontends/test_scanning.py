"""Tokens found without a compiled scanner are those that the scanner of the state finds."""

from __future__ import annotations

import re

import pytest

from collc.frontends.coll import machine

pytestmark = pytest.mark.quick

KEYWORDS = """collective schedule topology cluster include import reduce switch steps param shard using else emit from
link part rank send with and for let mod not as at if in of on or to among together weights pre post
shards parts by function define call into scratch"""
WORDS = f"{KEYWORDS} stepsize elsewhere into one rank-of UNIT_s GB/s us a-b-1 a-1 a-b _x \u00e9"
SIGNS = '<-> <- -> - <= == = != .. . * / : , { ( [ + } ) ] ; "text" "open 12 12.5 1..2 % # comment'
TEXTS = [
    *WORDS.split(),
    *SIGNS.split(" "),
    "",
    "  ",
    "# end",
    " # line\n  link a",
    "\t ;",
    "for(",
    "a b",
    "3 GB/s",
    "mlx5_* }",
]


def found(match: re.Match[str] | None) -> object:
    return match and (match.lastgroup, match.span(match.lastgroup or 0), match.end())


def test_both_ways_find_the_same() -> None:
    program = machine._program()
    for state in range(len(program.tables.actions)):
        scanner = program._compiled(state)
        for text in TEXTS:
            assert found(program._find(state, text, 0)) == found(scanner(text, 0)), (state, text)


def test_the_texts_have_every_terminal() -> None:
    program = machine._program()
    states = range(len(program.tables.actions))
    seen = {match.lastgroup for s in states for text in TEXTS if (match := program._find(s, text, 0))}
    assert seen >= {name for row in program.tables.actions for name in row} - {machine.END}


def test_a_state_seen_often_gets_a_scanner() -> None:
    program = machine._Program(machine.tables(), machine._program().actions)
    for _ in range(machine._FEW):
        program.scanner(0)
        assert not program.scanners
    program.scanner(0)
    assert list(program.scanners) == [0]
