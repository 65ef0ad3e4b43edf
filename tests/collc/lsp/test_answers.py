"""What the language server answers, without a protocol: texts, places, names."""

from __future__ import annotations

from pathlib import Path

import pytest

from collc.frontends.coll import topology
from collc.frontends.coll.kinds import OPTIONS, PREDEFINED
from collc.ir.diagnostic import Source
from collc.lsp import documents
from collc.lsp.completing import completions
from collc.lsp.context import context_at
from collc.lsp.defining import all_names, definition
from collc.lsp.documents import check
from collc.lsp.hovering import MOST_WORK, network_text, text_at
from collc.lsp.names import declared
from collc.lsp.places import Place, end_of, offset_of, word_at
from collc.messages.internal import InternalError
from collc.passes import SCHEDULERS
from collc.reading.loading import Loading

TEXT = """\
topology t {
  param n = 4;
  rank gpu[n], "pci 0";
  for i in 0..n { link gpu[i] <-> gpu[(i + 1) mod n]; }
}
function next(r) = (r + 1) mod 4;
collective c = allgather on t;
schedule c using steps { let n = 2; for i in 0..n { at i: send shard i from i to next(i); } }
"""


def cut(text: str) -> tuple[str, int]:
    """Return a text without its cursor, ``|``, and the offset of the cursor."""
    return text.replace("|", "", 1), text.index("|")


def offered(text: str) -> set[str]:
    text, offset = cut(text)
    return {one.name for one in completions(text, offset, declared(Source("a.coll", text)))}


@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("|", {"topology", "collective", "emit", "include"}, {"link", "torus"}),
        ("topology t { | }", {"rank", "switch", "link", "for"}, {"emit", "torus"}),
        ("schedule c using b|", {"bfb", "forest", "auto", "steps"}, {"torus", "mpi-c"}),
        ("emit c as |", {"mpi-c", "msccl-xml", "ir"}, {"bfb"}),
        ("collective c = |", set(PREDEFINED), {"torus", "bfb"}),
        ("collective x { pre: {} post: {} } collective c = |", {"x", "allreduce"}, set()),
        ("collective c = allgather on t;\nemit |", {"c"}, {"t", "torus"}),
        ("topology a = torus(3); topology b = |", {"a", "torus", "without", "min", "dihedral"}, {"bfb"}),
        ("topology t = torus(3) with { |", {"bandwidth", "latency"}, {"torus"}),
        ("topology t = torus(3) with { bandwidth: 25 |", {"Gbps", "GB/s", "us"}, {"torus"}),
        ("collective c = allreduce on torus(3) { |", set(OPTIONS), {"bandwidth"}),
        ("collective c = allreduce on torus(3) { op: |", {"sum", "max"}, {"torus"}),
        ("collective c = allreduce on torus(3) { size: 1 B, dtype: |", {"float32", "int8"}, {"sum"}),
        ("schedule c using bfb { |", {"relax"}, {"channels"}),
        ("schedule c using bfb { relax: |", {"true", "false"}, {"torus"}),
        ("emit c as msccl-xml { |", {"runtime", "channels"}, {"relax"}),
        ("emit c as msccl-xml { runtime: |", {"executor", "msccl", "rccl"}, {"torus"}),
        ("schedule c using forest { |", {"k", "pieces"}, set()),
        ("emit c as nonsense { |", set(), {"runtime"}),
        ('import "a.xml" as |', {"hwloc", "nccl-topo"}, {"mpi-c"}),
        ("topology |", set(), {"torus", "topology"}),
        ("# using |", set(), {"bfb", "torus"}),
        ('include "|', set(), {"torus", "topology"}),
        ("param n = 3; topology t = torus(3, 3, |", {"n", "torus"}, set()),
        ("topology t = { broken ;\nparam m = 2;\nlet k = m|", {"m"}, {"topology"}),
    ],
)
def test_names_that_can_stand_at_the_cursor(text: str, some: set[str], none: set[str]) -> None:
    found = offered(text)
    assert some <= found and not none & found


@pytest.mark.parametrize("scheduler", [name for name in SCHEDULERS.own if name != "steps"])
def test_every_scheduler_offers_its_options(scheduler: str) -> None:
    from collc.lsp.completing import options_of

    assert options_of(f"schedule c using {scheduler} ") is not None


def test_the_context_of_a_cursor() -> None:
    assert context_at(*cut('topology t { rank a; } param s = "{;|')).quoted
    assert context_at(*cut("# } { |\n")).quoted and not context_at(*cut('include "a";|')).quoted
    found = context_at(*cut("together { for b in 0..2 { collective c = al|"))
    assert (found.before, found.word, len(found.owners)) == (" collective c = ", "al", 2)
    assert context_at(*cut("topology t { rank a; } em|")) == context_at(*cut(" em|"))
    assert context_at(*cut("} } ; } x|")).owners == ()


@pytest.mark.parametrize(
    ("before", "line", "column"),
    [
        ("gpu[i] <-> g", 3, 8), ("[(i", 4, 7), ("rank gpu[n", 2, 9), ("allgather on t", 1, 10),
        ("schedule c", 7, 12), ("let n = 2; for i in 0..n", 8, 30), ("to next", 6, 10), ("= (r", 6, 15),
        ("shard i", 8, 41),
    ],
)  # fmt: skip
def test_definitions(before: str, line: int, column: int) -> None:
    offset = TEXT.index(before) + len(before)
    found = definition(Source("a.coll", TEXT), offset)
    assert found is not None and (found.line, found.column) == (line, column)


def test_definitions_in_included_files(tmp_path: Path) -> None:
    (tmp_path / "b.coll").write_text('include "c.coll"; include "b.coll"; include "gone.coll";\n')
    (tmp_path / "c.coll").write_text("# c\nlet rail = 1;\n")
    source = Source(str(tmp_path / "a.coll"), 'include "b.coll"; let x = rail + none + 3;')
    found = definition(source, source.text.index("rail"))
    assert found is not None and (found.source.path, found.line) == (str(tmp_path / "c.coll"), 2)
    assert [definition(source, source.text.index(word)) for word in ("none", "3;")] == [None, None]
    assert [one.name for one in all_names(source)] == ["x", "rail"]


def test_a_difference_is_two_names() -> None:
    text = "let n = 3; let m = 2; let k = n-m;"
    found = definition(Source("a.coll", text), text.index("-m") + 1)
    assert found is not None and found.column == 16


def test_what_is_said_of_a_word() -> None:
    checked = check(TEXT.partition("schedule")[0], "a.coll", Loading())
    text = checked.source.text
    shown = {word: text_at(text, text.index(word), checked.spec) for word in ("t {", "allgather", "t;", "c = all")}
    assert shown["t {"] == shown["t;"] and (shown["t;"] or "").startswith("**t**: 5 ranks, 8 links")
    assert shown["c = all"] == "**c**: allgather on t, using auto"
    assert text_at("schedule c using bfb { relax: true };", 25, None) is not None
    assert text_at("emit c as mpi-c;", 11, None) == text_at("emit c as mpi-c;", 15, None) is not None
    assert text_at("let x = log2(8);", 9, None) == "`log2(n)`" and text_at("# torus", 4, None) is None


def test_the_diameter_of_a_large_network_is_left_out() -> None:
    large = topology("torus(40, 40)")
    assert large.num_nodes * large.num_links > MOST_WORK
    assert network_text("t", large) == "**t**: 1600 ranks, 6400 links, degree 4"


def test_places_in_a_text() -> None:
    text = "ab\r\n\U0001f600c\n"
    assert [offset_of(text, Place(*place)) for place in ((0, 9), (1, 2), (1, 3), (2, 0), (9, 9))] == [2, 5, 6, 7, 7]
    assert (end_of(text), end_of("\U0001f600")) == (Place(2, 0), Place(0, 2))
    assert [word_at("a-b c", at) for at in (0, 2, 3, 4, 5)] == [(0, 3), (0, 3), (0, 3), (4, 5), (4, 5)]
    assert word_at("  =", 2) is None


def test_every_text_has_an_answer() -> None:
    """Nothing raises at any cursor of a text, nor of its beginnings."""
    for offset in range(0, len(TEXT), 3):
        text = TEXT[:offset]
        source = Source("a.coll", text)
        names = declared(source)
        completions(text, offset, names)
        text_at(text, offset, None)
        definition(source, offset)


def test_a_fault_of_collc_is_no_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "mistakes", lambda *_: 1 // 0)
    with pytest.raises(InternalError, match="check failed: ZeroDivisionError"):
        check("collective c = allgather on biring(3);", "a.coll", Loading())
