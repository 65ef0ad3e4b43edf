"""Mistakes in ``.coll`` texts: all of a file at once, each said once, and never anything but a diagnostic.

What each message looks like is in ``tests/cases/errors``; here is what no single file shows.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import CASES
from sampling import examples

from collc.frontends import coll
from collc.frontends.coll import slips
from collc.frontends.coll.codes import CODES
from collc.frontends.coll.parser import MAX_DEPTH, parse_file
from collc.frontends.coll.slips import SLIPS, Fix, Trouble
from collc.ir.diagnostic import CollcError, Diagnostic, Source

ERRORS = CASES / "errors"


def mistakes(text: str, **more: object) -> list[Diagnostic]:
    with pytest.raises(CollcError) as caught:
        coll.load("<test>", text=text, **more)  # type: ignore[arg-type]
    return list(caught.value.diagnostics)


def places(text: str) -> list[str]:
    return [f"{d.code} {d.span.line}:{d.span.column}" for d in mistakes(text) if d.span]


# ---- the tables


@pytest.mark.parametrize("row", range(len(SLIPS)), ids=[slip.example.split("\n")[0][:30] for slip in SLIPS])
def test_every_slip_is_recognized_by_its_row(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of a row of the table reaches that row, none before it takes it, and its message says so."""
    taken: list[Callable[..., object]] = []
    original = slips.describe

    def describe(trouble: Trouble) -> Fix:
        taken.append(next(slip.recognize for slip in SLIPS if slip.recognize(trouble)))
        return original(trouble)

    monkeypatch.setattr(slips, "describe", describe)
    assert parse_file(Source("<test>", SLIPS[row].example)).problems
    assert taken[0] is SLIPS[row].recognize


def test_every_code_of_the_language_has_a_case() -> None:
    """Codes of files that are no text, of a search that fails, and of faults in options have theirs in other tests."""
    shown = "\n".join(path.read_text() for path in ERRORS.glob("*.expect"))
    faults = ["C0340", "C0341", "C0342", "C0343", "C0344"]
    missing = ["C0117", "C0118", "C0119", "C0331", *faults]
    assert [code for code in CODES if f"[{code}]" not in shown] == missing
    replans = "\n".join(path.read_text() for path in (CASES / "replan").glob("*.expect"))
    assert [code for code in faults if f"[{code}]" not in replans] == []


def test_cases_show_the_code_they_are_named_after() -> None:
    found = [path for path in ERRORS.glob("c0[13]*.coll") if path.with_suffix(".expect").exists()]
    assert len(found) > 50
    for path in found:
        assert f"[{path.name[:5].upper()}]" in path.with_suffix(".expect").read_text(), path.name


@pytest.mark.parametrize("code", CODES)
def test_examples_of_the_explanations_are_in_the_language_s_words(code: str) -> None:
    """What a paragraph tells to write is code: quoted, and on a line short enough for a terminal."""
    title, _, body = CODES[code].partition("\n\n")
    assert title[0].islower() and len(title) < 80 and max(map(len, body.splitlines())) <= 120


# ---- all at once, once each


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("param a = 1\nparam b = a\nlet c = a + b\n", ["C0102 1:12", "C0102 2:12", "C0102 3:14"]),
        ("topology t = torus(3;\ncollective c = allreduce on t;\nlet x = y;", ["C0103 1:21", "C0120 3:9"]),
        ("toplogy t = torus(3);\ncollective c = allreduce on t;", ["C0106 1:1"]),
        ("topology my-t = torus(3);\ncollective c = allreduce on my-t;", ["C0105 1:10"]),
        ("param n = ;\ntopology t = torus(n, m);", ["C0101 1:11", "C0120 2:23"]),
        ("topology t { rank a[;\n link a[0] -> a[1]; }\ncollective c = allgather on t;", ["C0101 1:21"]),
        ("topology t { rank a[2]; link a[0] -> ; link a[0] -> b; }\nlet n = ranks(t);", ["C0101 1:38", "C0120 1:53"]),
        ("collective c = allreduce ;\nschedule c using bfb;\nemit c as mpi-c;", ["C0101 1:26"]),
        ("let x = nowhere;\ntopology t = torus(x);\ncollective c = allreduce on t;\nemit c as ir;", ["C0120 1:9"]),
        ("topology t = tors(3);collective c = gather on t;\nschedule c using steps { at 0: send shard x from 0 to 1; }",
         ["C0122 1:14"]),
        ("topology t { rank a[0]; for i in 0..a { link a[i] -> a[0]; } }\nlet n = ranks(t);", ["C0316 1:21"]),
        ("topology t { rank a[3 / 2]; link a[0] -> a[1]; link a -> b; }", ["C0132 1:21", "C0120 1:58"]),
        ("param a = 1; topology t { let b = zz; rank r[b]; link r[0] -> r[b]; }", ["C0120 1:35"]),
        ("schedule c using steps { at 0: send shard 0 from 0 to 1; at 1 send }",
         ["C0111 1:62", "C0101 1:68", "C0120 1:10"]),
        ("topology t { rank a[2]; rank [3]; }\ntopology u = subset(t, {4});", ["C0101 1:30"]),
        ("topology t { rank a; } }\n}\nlet x = ;", ["C0104 1:24", "C0104 2:1", "C0101 3:9"]),
        ("topology t {\n rank a;\n\ntopology u = torus(3);\nlet x = ranks(t) + ranks(u);", ["C0103 2:9"]),
        ("garbage {{{ \ntopology u = torus(3);\nlet x = y;", ["C0106 1:1", "C0120 3:9"]),
        ("let x = (1 + 2;\nlet y = [3];\nlet z = x + w;", ["C0103 1:15", "C0101 2:9", "C0120 3:13"]),
    ],
)  # fmt: skip
def test_each_mistake_is_reported_once_and_the_rest_is_read(text: str, expected: list[str]) -> None:
    assert sorted(places(text)) == sorted(expected)


def test_mistakes_come_in_the_order_of_the_text() -> None:
    text = "let a = zz;\ntopology t = tors(3);\nlet b = ;\nlet c = 1 / 0;\nparam param = ;\n"
    assert [d.span.line for d in mistakes(text) if d.span] == [1, 2, 3, 4, 5]


def test_a_flood_of_mistakes_is_cut_off() -> None:
    began = time.process_time()
    assert len(mistakes("let = 3;\n" * 20_000)) == 100
    assert len(mistakes("".join(f"let a{i} = b{i};\n" for i in range(5000)))) == 100
    assert time.process_time() - began < 8


def test_spans_cover_what_they_are_about() -> None:
    text = "topology pod = torus(3, 3) with { bandwidth: 25 gbps };\nschedule grads using steps { }"
    spans = [d.span for d in mistakes(text) if d.span]
    lines = text.split("\n")
    assert [lines[s.line - 1][s.column - 1 : s.end_column - 1] for s in spans] == ["25 gbps", "grads"]


# ---- whatever the text


SOUND = """
include "nowhere.coll";
param n = 4;
let size = 64 MiB;
topology pod = torus(n, 3) with { bandwidth: 25 Gbps, latency: 10 us };
topology net { rank gpu[2, n], x; switch s; for b in 0..2, g in 0..n { link gpu[b, g] <-> s : 3 GB/s, 1 us; }
  if n > 3 and not (n == 5) { link x -> s : 1 GB/s; } else { let y = 3; } }
collective grads = broadcast on net { root: gpu[1, 2], size: size };
schedule grads using steps { let m = ranks(net);
  for r in 0..m { if r != 6 { at 0: send shard 0 part 1 of 2 from 6 to r; } } }
emit grads as msccl-xml { channels: n-1, runtime: rccl, set: {1, 2}, kind: reduce-scatter };
"""  # fmt: skip
_PIECE = re.compile(r'"[^"\n]*"|\w+|<->|->|\.\.|\s+|.', re.DOTALL)
PIECES = _PIECE.findall(SOUND)
_STRAY = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "=",
    "-",
    "..",
    "#",
    '"',
    "'",
    "%",
    "@",
    "é",
    "0",
    "1e9",
    "\n",
    "for",
    "topology",
]


def survives(text: str) -> None:
    """Loading ends, with a specification or with diagnostics that have a place and a sentence."""
    try:
        coll.load("<test>", text=text, node_limit=100)
    except CollcError as failure:
        assert failure.diagnostics
        for found in failure.diagnostics:
            assert found.code in CODES or found.code in ("C0201", "C0203", "C0204"), found
            assert (
                found.span is not None
                and found.message[0] not in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                and found.message[-1] != "."
            )
            assert 1 <= found.span.line <= text.count("\n") + 1 and found.span.column >= 1


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.integers(0, len(PIECES) - 1), st.sampled_from([None, *_STRAY])), min_size=1, max_size=4))
def test_damaged_texts_end_in_diagnostics(edits: list[tuple[int, str | None]]) -> None:
    """Tokens removed, replaced or put in anywhere: no crash, no endless loop."""
    pieces = list(PIECES)
    for place, stray in edits:
        pieces[place] = "" if stray is None else stray + pieces[place] if place % 2 else stray
    survives("".join(pieces))


@given(st.text(max_size=60))
def test_any_text_ends_in_diagnostics(text: str) -> None:
    survives(text)


@given(st.lists(st.sampled_from(sorted(set(PIECES))), max_size=40).map("".join))
def test_any_words_of_the_language_end_in_diagnostics(text: str) -> None:
    survives(text)


def test_every_cut_of_a_text_ends_in_diagnostics() -> None:
    """As an editor sees it while it is typed."""
    ends = [m.end() for m in _PIECE.finditer(SOUND)]
    for end in random.Random(1).sample(ends, 60):
        survives(SOUND[:end])


@pytest.mark.parametrize(
    "text",
    [
        "let x = " + "(" * 50_000, "let x = " + "-" * 50_000 + "1;", "let x = " + "f(" * 20_000,
        "topology t " + "{" * 50_000,
        "topology t { " + "for i in 0..2 { " * 5_000, "let x = " + "1 + " * 20_000 + "1;", "}" * 50_000, "[" * 50_000,
        "let x = " + "{" * 20_000 + "}" * 20_000 + ";", "topology t { " + "if true { } else " * 5_000 + "{ } }",
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_deep_texts_do_not_exhaust_the_stack(text: str) -> None:
    began = time.process_time()
    assert mistakes(text)
    assert time.process_time() - began < 5


def test_nesting_up_to_the_limit_is_fine() -> None:
    levels = MAX_DEPTH - 5
    text = f"let a = {'-' * levels}1; topology t = {'transpose(' * (levels // 2)}torus(3){')' * (levels // 2)};"
    blocks = "if true { " * (levels // 2) + "rank r;" + " }" * (levels // 2)
    coll.load("<test>", text=f"{text} topology u {{ {blocks} }}")
    assert coll.format_text(f"topology u {{ {blocks} }}").count("if true") == levels // 2
