"""Mistakes in textual IR: every one ends in a message with a code and a place."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from text_examples import GATHER, PROGRAM, RING, SCHEDULE

from collc.ir.codes import CODES
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Routes, Schedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.validate import structure


def _swap(old: str, new: str, of: Callable[[], str]) -> str:
    assert old in of()
    return of().replace(old, new, 1)


def _schedule() -> str:
    return print_ir(SCHEDULE)


def _program() -> str:
    return print_ir(PROGRAM)


MISTAKES = [
    # what is replaced, by what, in which text, code, place of the caret, part of the message
    ("collc-ir 1", "collc-ir 2", _schedule, "C0801", "1:1", "found version `2` of the textual IR, needed version 1"),
    ("collc-ir 1", "<algo>", _schedule, "C0801", "1:1", "expected `collc-ir 1` as the first line, found `<algo>`"),
    ("topology", "topolgy", _schedule, "C0802", "3:1", "found `topolgy`"),
    ("  unit link\n", "", _schedule, "C0802", "5:3", "expected `unit`, found `symmetry`"),
    ("unit link", "unit bits", _schedule, "C0802", "5:8", "expected `link` or `B/s`, found `bits`"),
    ("ranks 3\n", "ranks 3000000\n", _schedule, "C0805", "4:9", "at most 1048576"),
    ("ranks 3\n", "ranks 99999999999999999999\n", _schedule, "C0805", "4:9", "is too large"),
    ("ranks 3\n", "ranks -3\n", _schedule, "C0802", "4:9", "expected a whole number, found `-3`"),
    ("abelian(3)", "abelian(4)", _schedule, "C0806", "3:1", "symmetry abelian(4) does not have 3 elements"),
    ("2 0 0\n", "2 1 0\n", _schedule, "C0806", "13:5", "link 2: the symmetry does not map link 0 to it"),
    ("    1 0\n", "    0 0\n", _schedule, "C0806", "8:5", "class 0: bandwidth 0 is not positive"),
    ("    1 0\n", "    1/0 0\n", _schedule, "C0803", "8:5", "divides by zero"),
    ("    1 0\n", "    1\n", _schedule, "C0802", "8:6", "expected a number `p` or `p/q`, found the end of the line"),
    ("links 3", "links 4", _schedule, "C0804", "10:9", "has 4 rows by its header, found 3"),
    ("links 3", "links 9223372036854775807", _schedule, "C0804", "10:9", "found 3"),
    ("src dst", "dst src", _schedule, "C0802", "10:12", "expected `src`, found `dst`"),
    ("1 2 0\n", "1 2\n", _schedule, "C0802", "12:8", "a row has 3 values (src dst class), found 2"),
    ("1 2 0\n", "1 2 0 7\n", _schedule, "C0802", "12:11", "a row has 3 values (src dst class), found 4"),
    ("1 2 0\n", "1 3 0\n", _schedule, "C0806", "12:5", "link 1: destination 3 does not exist: 0 to 2 do"),
    ("1 2 0\n", "1 2 1\n", _schedule, "C0806", "12:5", "link 1: class 1 does not exist"),
    ("1 2 0\n", "1 x 0\n", _schedule, "C0802", "12:7", "expected a number, found `x`"),
    ("1 2 0\n", "1 é 0\n", _schedule, "C0802", "12:7", "unexpected character `\\xe9`"),
    ("1 2 0\n", "1 2x 0\n", _schedule, "C0802", "12:7", "a blank is needed within `2x`"),
    ("1 2 0\n", "1 18446744073709551617 0\n", _schedule, "C0803", "12:7", "is too large"),
    ("1 2 0\n", "1 9223372036854775808 0\n", _schedule, "C0803", "12:7", "is too large"),
    ("allgather", "allgathr", _schedule, "C0802", "17:12", "found `allgathr`"),
    ("ranks 3 op", "ranks 3 root 0 op", _schedule, "C0806", "17:12", "collective `allgather` has no root"),
    ("ranks 3 op", "ranks 4 op", _schedule, "C0806", "19:1", "of 4 ranks on a topology of 3"),
    ("parts 2", "parts 0", _schedule, "C0806", "19:1", "0 parts"),
    ("parts 2", "parts 1", _schedule, "C0806", "25:5", "transfer 0: 0 to 2 are no parts of a shard"),
    ("0 copy 0", "0 kopy 0", _schedule, "C0802", "25:7", "expected `copy` or `reduce` as action, found `kopy`"),
    ("0 copy 1", "2 copy 1", _schedule, "C0806", "27:5", "transfer 2: step 1 comes after step 2"),
    ("0 copy 1", "0 copy 3", _schedule, "C0806", "26:5", "transfer 1: shard 3 does not exist: 0 to 2 do"),
    ("2 1 1 2\n", "2 3 1 2\n", _schedule, "C0806", "26:5", "transfer 1: route 3 does not exist"),
    ("2 1 1 2\n", "2 1 0 2\n", _schedule, "C0806", "26:5", "transfer 1: route 1 runs from 1, found 0"),
    ("  }\n}\n\ncoll", "\n}\n\ncoll", _schedule, "C0802", "17:1", "expected `}`, found `collective`"),
    ("scheduler steps", 'scheduler "steps', _schedule, "C0807", "20:13", "this string does not end on its line"),
    ("scheduler steps", r'scheduler "a\qb"', _schedule, "C0807", "20:15", "unknown escape"),
    ("scheduler steps", r'scheduler "\u{110000}"', _schedule, "C0807", "20:14", "unknown escape"),
    ("chunks 1", "chunks 0", _program, "C0806", "5:1", "0 chunks"),
    ("rank 1", "rank 2", _program, "C0802", "16:8", "expected rank 1, found 2: ranks count from 0 in order"),
    ("threadblock 1", "threadblock 2", _program, "C0802", "12:17", "expected threadblock 1, found 2"),
    ("1: send", "2: send", _program, "C0802", "19:7", "expected step 1, found 2"),
    ("send 1 recv", "send 2 recv", _program, "C0806", "5:1", "send peer 2 does not exist"),
    ("send 1 recv", "send x recv", _program, "C0802", "9:24", "expected a number or `none`, found `x`"),
    ("send input", "sent input", _program, "C0802", "10:10", "expected an opcode, found `sent`"),
    ("send input 0", "send 0", _program, "C0802", "10:15", "expected `input` or `output` or `scratch`, found `0`"),
    ("send input 0", "send -> input 0", _program, "C0802", "10:15", "found `->`"),
    ("count 2\n", "count\n", _program, "C0802", "10:28", "expected a number, found the end of the line"),
    ("count 2\n", "count 2 3\n", _program, "C0802", "10:31", "expected `after`, found `3`"),
    ("count 2\n", "count 3\n", _program, "C0806", "10:7", "rank 0, threadblock 0, step 0 (send): 3 chunks from 0"),
    ("count 2\n", "count 0\n", _program, "C0806", "10:7", "it moves 0 chunks"),
    ("after 0.0", "after 0.1", _program, "C0802", "13:41", "found 0.1, which does not exist"),
    ("after 0.0", "after 2.0", _program, "C0802", "13:41", "found 2.0, which does not exist"),
    ("after 0.0", "after 1.0", _program, "C0806", "13:7", "it depends on itself or a later instruction"),
    ("after 0.0", "after 0", _program, "C0802", "13:42", "expected `.`, found the end of the line"),
    ("after 0.0", "after 0.", _program, "C0802", "13:43", "expected a number, found the end of the line"),
    ("after 0.0", "after", _program, "C0802", "13:40", "expected a number, found the end of the line"),
    ("after 0.0", "0.0", _program, "C0802", "13:35", "expected `after`, found `0`"),
    ("  rank 1 scratch 2 {\n", "", _program, "C0802", "16:5", "expected `rank` or `}`, found `threadblock`"),
    ("    }\n  }\n}\n", "    }\n  }\n", _program, "C0802", "22:1", "expected `}`, found the end of the text"),
    ("    }\n  }\n}\n", "    }\n  }\n}\nmore\n", _program, "C0802", "23:1", "expected the end of the text"),
    ("scratch 2", "scratch 1", _program, "C0806", "18:7", "leave its dst buffer, which has 1"),
    ("ranks 2", "ranks 3", _program, "C0806", "5:1", "scratch for 2 ranks, needed for 3"),
    ('program "tiny"', "program tiny", _program, "C0802", "5:9", "expected a quoted string, found `tiny`"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "of", "code", "place", "message"), MISTAKES)
def test_a_mistake_is_named_where_it_is(old, new, of, code, place, message):
    with pytest.raises(CollcError) as caught:
        parse_ir(_swap(old, new, of), "x.ir")
    first = caught.value.diagnostics[0]
    assert (first.code, str(first.span), caught.value.exit_status) == (code, f"x.ir:{place}", 1)
    assert message in first.message
    assert code in CODES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected `collc-ir 1` as the first line, found the end of the line"),
        (
            "collc-ir 1",
            "program, symmetric-program, one-sided, found the end of the text",
        ),
        ("collc-ir 1\n\nschedule {\n", "a topology and a collective are needed before"),
        ('collc-ir 1\nprogram "x" {', "a collective is needed before a program"),
        ("collc-ir 1\ncollective allgather ranks 0 op a dtype b", "at least 1 rank"),
        ("\x00\xff\ud800", "expected `collc-ir 1`"),
    ],
)
def test_what_is_too_short_says_what_comes_next(text, message):
    with pytest.raises(CollcError) as caught:
        parse_ir(text)
    assert message in caught.value.diagnostics[0].message


def test_a_second_block_of_a_kind_is_refused():
    topology = print_ir(RING).removeprefix("collc-ir 1\n")
    for text in (print_ir(RING) + topology, print_ir(GATHER) + topology, print_ir(SCHEDULE) + topology):
        with pytest.raises(CollcError, match="C0802"):
            parse_ir(text)


def test_routes_must_be_whole():
    """A route's links join, run from rank to rank, and visit no node twice."""
    star = strategies.star(2)  # links: 0 and 1 up, 2 and 3 down
    schedule = Schedule(star, Collective("allgather", 2), 1, [0], [0], [0], [0], [1], [0], Routes.of([[0, 3]]))
    text = print_ir(schedule)
    assert parse_ir(text) == schedule
    for path, message in (
        ("0 1", "route 0: a link does not begin where the one before it ends: links [0, 1]"),
        ("0", "route 0: it is used, but does not run from rank to rank: links [0]"),
        ("0 2 0 3", "route 0: it visits a node twice: links [0, 2, 0, 3]"),
        ("0 4", "route 0: link 4 does not exist"),
    ):
        with pytest.raises(CollcError) as caught:
            parse_ir(text.replace("    0 3\n", f"    {path}\n"))
        assert message in [d.message for d in caught.value.diagnostics]


def test_no_size_is_believed_before_it_is_seen():
    """A small text that names huge sizes is refused at once, whatever it names."""
    for old, new in (
        ("links 3", "links 999999999999"),
        ("transfers 3", "transfers 999999999999"),
        ("ranks 3\n", "ranks 999999999999\n"),
        ("ranks 3\n", "ranks 3\n  switches 999999999\n"),
        ('symmetry "abelian(3)"', 'symmetry "abelian(999999999999)"'),
        ('symmetry "abelian(3)"', 'symmetry "abelian(3' + ", 4" * 100 + ')"'),
        ("routes direct", "routes 999999999999: links {\n}"),
    ):
        with pytest.raises(CollcError, match=r"C080[3456]"):
            parse_ir(_schedule().replace(old, new))


def test_a_line_without_end_is_refused():
    with pytest.raises(CollcError, match="C0805"):
        parse_ir(_schedule().replace("0 1 0\n", "0 1 0" + " " * 3_000_000 + "\n"))


# ---- fuzz

_ODD = [
    "", "0", "-1", "1", "2", "7", "007", "1/2", "99999999999999999999", "9223372036854775807", "1048577", "{", "}", ":",
    "#", "\n", " ", '"', "\\", "->", "after 0.0", "none", "copy", "rank 0 scratch 0 {", "é", "\x00", "\ud800",
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A valid text with a few tokens, characters or lines changed."""
    text = print_ir(draw(strategies.levels()))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["token", "character", "line", "cut"]))
        if kind == "line":
            lines = text.split("\n")
            at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines[at : at + draw(st.integers(0, 1))] = lines[to : to + draw(st.integers(0, 2))]
            text = "\n".join(lines)
            continue
        spots = [m.span() for m in re.finditer(r"\S+" if kind == "token" else r"(?s).", text)]
        if not spots:
            return text
        begin, end = spots[draw(st.integers(0, len(spots) - 1))]
        text = text[:begin] + (draw(st.sampled_from(_ODD)) + text[end:] if kind != "cut" else "")
    return text


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(mutations())
def test_whatever_is_read_is_sound_or_refused_with_a_place(text):
    """A changed text is either well formed still, or every complaint has a code of this form and lies in the text."""
    try:
        level = parse_ir(text, "fuzz.ir")
    except CollcError as error:
        lines = text.split("\n")
        for diagnostic in error.diagnostics:
            assert diagnostic.code in CODES and diagnostic.code.startswith("C08")
            span = diagnostic.span
            assert span is not None
            assert 1 <= span.line <= len(lines) and 1 <= span.column <= len(lines[span.line - 1]) + 1
            assert diagnostic.message.encode("utf-8") and "\n" not in diagnostic.message
        return
    assert structure(level) == []
    assert parse_ir(print_ir(level)) == level


@given(st.text())
def test_any_text_is_refused(text):
    for whole in (text, "collc-ir 1\n" + text):
        with pytest.raises(CollcError):
            parse_ir(whole)
