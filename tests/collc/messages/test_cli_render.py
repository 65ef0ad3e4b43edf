"""How diagnostics look, to people and to tools; when they are colored."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.cli.console import wants_color
from collc.cli.table import table
from collc.ir.diagnostic import Diagnostic, Related, Severity, Source, Span, warning
from collc.messages import explain
from collc.messages.render import as_json, as_sarif, as_text
from collc.messages.width import width


def place(text: str, column: int, end: int, line: int = 1, path: str = "pod.coll", end_line: int | None = None) -> Span:
    return Span(Source(path, text), line, column, end_line or line, end)


def shown(*diagnostics: Diagnostic, **options: object) -> list[str]:
    return as_text(diagnostics, **options).splitlines()  # type: ignore[arg-type]


def test_an_error_with_all_its_parts() -> None:
    span = place("# a torus\ntopology pod = toruss(3, 3);\n", 16, 22, 2)
    found = Diagnostic("C0104", "unknown graph family `toruss`", span=span, notes=("a note",), hint="write torus")
    assert shown(found) == [
        "pod.coll:2:16: error: unknown graph family `toruss` [C0104]",
        "  2 | topology pod = toruss(3, 3);",
        "    |                ^~~~~~",
        "  note: a note",
        "  hint: write torus",
    ]


def with_two_places() -> Diagnostic:
    first = place("param n = 1;\nparam n = 2;\n", 7, 8, 1)
    again = place("param n = 1;\nparam n = 2;\n", 7, 8, 2)
    return Diagnostic("C0121", "`n` is declared twice", span=again, hint="h", related=(Related("the first", first),))


def test_a_second_place_is_shown_with_its_line() -> None:
    assert shown(with_two_places()) == [
        "pod.coll:2:7: error: `n` is declared twice [C0121]",
        "  2 | param n = 2;",
        "    |       ^",
        "  pod.coll:1:7: note: the first",
        "  1 | param n = 1;",
        "    |       ^",
        "  hint: h",
    ]


def test_nothing_of_a_hidden_second_place_is_shown() -> None:
    secret = Span(Source("/secret", "password", hidden=True), 1, 1, 1, 9)
    found = Diagnostic("C0121", "m", related=(Related("the first", secret),))
    assert shown(found) == ["collc: error: m [C0121]", "  /secret:1:1: note: the first"]


def test_tools_get_the_second_place() -> None:
    found = [with_two_places(), Diagnostic("C0101", "m")]
    first, second = json.loads(as_json(found))["diagnostics"]
    where = {"file": "pod.coll", "line": 1, "column": 7, "end_line": 1, "end_column": 8}
    assert (first["related"], second["related"]) == ([{"message": "the first", "location": where}], [])
    first, second = json.loads(as_sarif(found, "1"))["runs"][0]["results"]
    (related,) = first["relatedLocations"]
    assert related["message"] == {"text": "the first"} and "relatedLocations" not in second
    assert related["physicalLocation"]["region"]["startLine"] == 1


def test_an_error_without_a_place_is_the_program_s() -> None:
    assert shown(Diagnostic("C0001", "unknown option `--foo`")) == ["collc: error: unknown option `--foo` [C0001]"]


@pytest.mark.parametrize(
    ("line", "column", "end", "caret"),
    [
        ("\tx = y;", 2, 3, "    |     ^"),
        ("\t\tx", 3, 4, "    |         ^"),
        ("网络 x", 4, 5, "    |      ^"),
        ("e\u0301 x", 4, 5, "    |   ^"),
        ("x 网络", 3, 5, "    |   ^~~~"),
        ("abc", 4, 4, "    |    ^"),
        ("abc", 99, 120, "    |    ^"),
        ("", 1, 1, "    | ^"),
        ("a\x1b[31mb", 7, 8, "    |          ^"),
    ],
)
def test_the_caret_stands_under_what_is_meant(line: str, column: int, end: int, caret: str) -> None:
    assert caret == shown(Diagnostic("C0101", "m", span=place(line, column, end)))[2]


def test_a_span_of_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    span = place("abc {\n}\n", 5, 2, end_line=2)
    assert shown(Diagnostic("C0101", "m", span=span))[2] == "    |     ^"


def test_a_place_past_the_end_of_the_file() -> None:
    assert shown(Diagnostic("C0101", "m", span=place("a\nb\n", 1, 1, 3))) == [
        "pod.coll:3:1: error: m [C0101]",
        "  3 |",
        "    | ^",
    ]


def test_a_long_line_is_cut_round_the_caret() -> None:
    line = "x" * 5000 + "HERE" + "y" * 5000
    _, text, caret = shown(Diagnostic("C0101", "m", span=place(line, 5001, 5005)))
    assert len(text) < 130
    start = caret.index("^")
    assert text[start : start + 4] == "HERE"
    assert caret[start:] == "^~~~"


def test_nothing_in_a_file_reaches_the_terminal_as_a_command() -> None:
    evil = "\x1b]0;title\x07\u202e\x9b31m\r"
    span = place(f"x {evil}", 1, 2, path=f"a{evil}.coll")
    text = as_text([Diagnostic("C0101", f"found {evil}", span=span, notes=(evil,), hint=evil)])
    assert not set("\x1b\x07\u202e\x9b\r") & set(text)


@given(st.text(max_size=40), st.integers(1, 45), st.integers(1, 45))
def test_any_line_is_shown_with_its_caret(line: str, column: int, end: int) -> None:
    text = as_text([Diagnostic("C0101", "m", span=place(line, column, max(column, end)))])
    assert text.isprintable() or {c for c in text if not c.isprintable()} <= {"\n"}
    assert text.split("\n")[2].count("^") == 1


def test_many_errors_are_cut() -> None:
    found = [Diagnostic("C0101", f"m{i}") for i in range(30)] + [warning("C0902", "w")]
    lines = shown(*found, limit=20)
    assert len(lines) == 21
    assert lines[-1] == "... and 10 more errors and 1 more warning (--error-limit=20)"
    assert len(shown(*found, limit=0)) == 31
    assert len(shown(*found, limit=31)) == 31


def test_colors_add_nothing_but_escape_sequences() -> None:
    span = place("topology pod = x;", 16, 17)
    found = Diagnostic("C0101", "m", Severity.WARNING, span, ("n",), "h")
    colored = as_text([found], color=True)
    assert "\x1b[" in colored
    assert as_text([found]) == re.sub(r"\x1b\[[\d;]*m", "", colored)


# ---- for tools


def test_json_is_one_object() -> None:
    span = place("abc", 1, 3)
    found = [Diagnostic("C0101", "m", span=span, notes=("n",), hint="h"), warning("C0902", "w")]
    first, second = json.loads(as_json(found))["diagnostics"]
    assert first == {
        "code": "C0101", "severity": "error", "message": "m", "notes": ["n"], "hint": "h", "kind": "mistake",
        "related": [],
        "location": {"file": "pod.coll", "line": 1, "column": 1, "end_line": 1, "end_column": 3},
    }  # fmt: skip
    assert (second["severity"], second["location"]) == ("warning", None)
    assert json.loads(as_json([])) == {"diagnostics": []}


def test_sarif_has_what_the_standard_requires() -> None:
    span = place("abc", 1, 3, path="a b/pod#1.coll")
    log = json.loads(as_sarif([Diagnostic("C0001", "m", span=span, hint="h"), warning("C0902", "w")], "1.2"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("collc", "1.2")
    assert [rule["id"] for rule in driver["rules"]] == ["C0001", "C0902"]
    assert all(rule["shortDescription"]["text"] and rule["fullDescription"]["text"] for rule in driver["rules"])
    first, second = run["results"]
    assert (
        first["ruleId"], first["ruleIndex"], first["level"], first["message"]["text"],
    ) == ("C0001", 0, "error", "m\nhint: h")  # fmt: skip
    where = first["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "a%20b/pod%231.coll"
    assert where["region"] == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 3}
    assert (second["level"], "locations" in second) == ("warning", False)
    assert json.loads(as_sarif([], "1"))["runs"][0]["results"] == []


# ---- colors and tables


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "terminal", "environment", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"CLICOLOR_FORCE": "1"}, True),
        ("auto", False, {"CLICOLOR_FORCE": "0"}, False),
        ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_who_decides_about_colors(choice: str, terminal: bool, environment: dict[str, str], expected: bool) -> None:
    assert expected is wants_color(choice, Terminal() if terminal else io.StringIO(), environment)


def test_tables_align_wide_text() -> None:
    assert table([("网", "1"), ("ab", "22")]) == "网  1\nab  22\n"
    assert table([("22",)], head=("a",), right=(0,)) == " a\n22\n"
    assert table([]) == ""


@given(st.text(max_size=10), st.text(max_size=10))
def test_widths_add_up(a: str, b: str) -> None:
    assert width(a) + width(b) == width(a + b)


def test_codes_are_explained() -> None:
    text = explain.explanation("c0001")
    assert text is not None
    assert text.startswith("a command line that cannot be understood\n")
    assert explain.explanation("C9999") is None
