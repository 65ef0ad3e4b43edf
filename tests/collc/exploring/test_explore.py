"""``collc explore``: the page has every row of every stage, and marks what a pass changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from built_programs import with_deps
from commands import Ran
from hypothesis import given
from hypothesis import strategies as st
from lxml import html
from report_pages import browser, opened

from collc import compile_source
from collc.exploring import Change, Row, Stage, Stages, changes, page, rows
from collc.ir.program import Program
from collc.ir.schedule import Schedule

Collc = Callable[..., Ran]

TORUS = "collective c = allreduce on torus(3, 3);\nschedule c using bfb;\nemit c as {};\n"
ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy")), max_size=12).map(
    lambda pairs: [Row(key, f"{n}: {key}{more}", f"{key}{more}") for n, (key, more) in enumerate(pairs)]
)


def explored(collc: Collc, text: str, *words: str) -> html.HtmlElement:
    Path("pod.coll").write_text(text)
    ran = collc("explore", "pod.coll", "-o", "pod.html", *words)
    assert (ran.status, ran.err) == (0, "")
    return html.fromstring(Path("pod.html").read_text("utf-8"))


def parts(tree: html.HtmlElement) -> dict[str, html.HtmlElement]:
    return {part.findtext("summary/h3"): part for part in tree.iter("details")}


def said(part: html.HtmlElement) -> str:
    return str(part.findtext("summary/span"))


def table(part: html.HtmlElement) -> list[tuple[str, list[str]]]:
    """Return the kind of each row of a table, and its cells."""
    found = part.findall(".//tbody/tr")
    return [(row.get("class"), [cell.text_content() for cell in row.findall("td")]) for row in found]


# ---- what changed


@given(ROWS, ROWS)
def test_both_sides_are_whole_and_in_order(before: list[Row], after: list[Row]) -> None:
    found = changes(before, after)
    assert [one.before for one in found if one.before] == [(n + 1, row.text) for n, row in enumerate(before)]
    assert [one.after for one in found if one.after] == [(n + 1, row.text) for n, row in enumerate(after)]
    for one in found:
        sides = [side.text.partition(": ")[2] for side in _rows(one, before, after)]
        assert one.kind == {1: "removed" if one.before else "added"}.get(
            len(sides), "same" if len(set(sides)) == 1 else "changed"
        )
    assert all(one.kind == "same" for one in changes(before, before))


def _rows(one: Change, before: list[Row], after: list[Row]) -> list[Row]:
    sides = ((one.before, before), (one.after, after))
    return [listed[side[0] - 1] for side, listed in sides if side is not None]


def test_long_texts_are_compared_place_by_place() -> None:
    many = [Row(str(n), f"{n}: a", "a") for n in range(20_000)]
    other = [*many[:7], Row("other", "7: b", "b"), *many[8:-1]]
    found = changes(many, other)
    assert [(n, one.kind) for n, one in enumerate(found) if one.kind != "same"] == [(7, "changed"), (19_999, "removed")]


# ---- rows of an IR


def compiled(text: str) -> dict[str, Stage]:
    result = compile_source(text, target="msccl-xml")
    return {"schedule": Stage("s", result.schedule), "program": Stage("p", result.program)}


def test_rows_are_those_of_the_ranks() -> None:
    stages = compiled(TORUS.format("msccl-xml"))
    schedule, program = stages["schedule"].ir, stages["program"].ir
    assert isinstance(schedule, Schedule) and isinstance(program, Program)
    for ranks in ({0}, {3, 8}, set(range(9))):
        _, listed = rows(schedule, ranks)
        transfers = [row.text.split() for row in listed if row.text.startswith("    ")]
        assert len(transfers) == sum(
            src in ranks or dst in ranks for src, dst in zip(schedule.src.tolist(), schedule.dst.tolist(), strict=True)
        )
        assert all({int(words[-2]), int(words[-1])} & ranks for words in transfers)
        name, listed = rows(program, ranks)
        assert name == "program"
        assert sum(row.is_numbered for row in listed) == sum(rank in ranks for rank in program.rank.tolist())
        assert [int(row.text.split()[1]) for row in listed if row.text.startswith("  rank ")] == sorted(ranks)
    assert rows(program) == rows(program, set(range(9)))


def test_an_instruction_that_waits_for_others_is_the_same_row() -> None:
    program = compiled(TORUS.format("msccl-xml"))["program"].ir
    assert isinstance(program, Program)
    place = int(np.flatnonzero(program.num_dependencies)[0])
    before, after = ([row for row in rows(ir)[1] if row.is_numbered] for ir in (program, with_deps(program, place, [])))
    assert [row.key for row in before] == [row.key for row in after]
    assert [n for n, pair in enumerate(zip(before, after, strict=True)) if pair[0].body != pair[1].body] == [place]


def test_trees_are_those_of_the_roots(collc: Collc) -> None:
    text = "collective c = allgather on mesh(2, 3);\nschedule c using forest;\nemit c as msccl-xml;\n"
    listed = {}
    for words in ((), ("--ranks", "4")):
        lines = parts(explored(collc, text, *words))["forest"].findtext(".//pre").splitlines()
        tables = {line.split()[0]: at for at, line in enumerate(lines) if line.endswith("{")}
        listed[words] = [line.split() for line in lines[tables["trees"] + 1 : tables["edges"]]]
        edges = [line.split() for line in lines[tables["edges"] + 1 :] if line.startswith("    ")]
        assert {int(tree) for tree, *_ in edges} == set(range(len(listed[words])))
    assert listed["--ranks", "4"] == [row for row in listed[()] if row[0] == "4"] != []


# ---- pages


@pytest.mark.parametrize("target", ["msccl-xml", "mpi-c", "oneccl-xml", "mscclpp-json"])
def test_every_pass_is_there(collc: Collc, target: str) -> None:
    found = parts(explored(collc, TORUS.format(target)))
    ran = collc("pod.coll", "-o", "out/", "--print-pipeline", "-q")
    pipeline = re.sub(r"\{[^}]*\}", "", ran.err.splitlines()[0].partition(": ")[2])
    assert list(found) == pipeline.split(",")


def test_rows_that_a_pass_changed_are_marked(collc: Collc) -> None:
    found = parts(explored(collc, TORUS.format("msccl-xml"), "--ranks", "0"))
    assert said(found["bfb"]) == "schedule, 37 rows"
    assert said(found["lower"]) == "program, 43 rows (before: schedule)"
    assert said(found["coalesce"]).startswith("no row changed") and found["coalesce"].get("open") is None
    fuse = found["fuse"]
    assert fuse.get("open") == "open" and "fuse: strategy flow of" in fuse.findtext("p")
    listed = table(fuse)
    numbers = {kind: sum(one == kind for one, _ in listed) for kind in ("changed", "removed", "added")}
    assert said(fuse) == "{changed} changed, {removed} removed, {added} added, of 35 rows".format(**numbers)
    signs = {kind: {cells[0] for one, cells in listed if one == kind} for kind, _ in listed if kind != "gap"}
    assert signs == {"same": {""}, "changed": {"~"}, "removed": {"\u2212"}, "added": {"+"}}
    added = [cells[4].strip() for kind, cells in listed if kind == "added"]
    assert any("recv-copy-send" in text or "recv-reduce" in text for text in added)


def test_equal_rows_far_from_changes_are_folded(collc: Collc) -> None:
    found = parts(explored(collc, TORUS.format("msccl-xml")))
    listed = table(found["prune-dependencies"])
    hidden = sum(int(cells[0].split()[0]) for kind, cells in listed if kind == "gap")
    shown = sum(kind != "gap" for kind, _ in listed)
    assert hidden > 0 and hidden + shown == int(said(found["prune-dependencies"]).rpartition("of ")[2].split()[0])


def test_a_large_program_has_the_rows_of_rank_0(collc: Collc) -> None:
    tree = explored(collc, "collective c = allreduce on torus(6, 6);\nschedule c using bfb;\nemit c as msccl-xml;\n")
    assert "Only the rows of rank 0" in tree.text_content()
    ranks = {cells[2].split()[1] for _, cells in table(parts(tree)["fuse"]) if cells[2].strip().startswith("rank ")}
    assert ranks <= {"0"}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


def test_no_text_of_an_input_becomes_markup() -> None:
    stage = compiled(TORUS.format("msccl-xml"))["program"]
    hostile = "<script>alert(1)</script>"
    text = page(hostile, {hostile: [Stage(hostile, stage.ir, (hostile,))]}, None)
    tags = _Tags()
    tags.feed(text)
    assert "script" not in tags.found and "&lt;script&gt;" in text
    assert page(hostile, {hostile: [Stage(hostile, stage.ir, (hostile,))]}, None) == text


def test_a_pass_that_runs_again_begins_anew() -> None:
    ir = compiled(TORUS.format("msccl-xml"))["program"].ir
    stages = Stages()
    stages.begin("c")
    for step in ("bfb", "lower", "fuse", "lower"):
        stages.keep("c", step, ir)
    (titled,) = stages.titled({"c": [["lower: two", "fuse: three"]]}).items()
    assert titled[0] == "c" and [stage.step for stage in titled[1]] == ["bfb", "lower"]
    assert [stage.remarks for stage in titled[1]] == [(), ("lower: two",)]


def test_every_algorithm_of_auto_is_there(collc: Collc) -> None:
    text = "collective c = allreduce on torus(4, 4);\nschedule c using auto { sizes: all };\nemit c as msccl-xml;\n"
    tree = explored(collc, text)
    titles = [str(section.findtext("h2")) for section in tree.iter("section")]
    ran = collc("pod.coll", "-o", "out/", "-q", "--print-pipeline")
    schedulers = [line.partition(": ")[2].partition(",")[0].partition("{")[0] for line in ran.err.splitlines()]
    assert titles == [f"c, {n} of {len(schedulers)}: {name}" for n, name in enumerate(schedulers, 1)]
    assert len(set(titles)) > 1
    fuses = [section.xpath(".//details[summary/h3='fuse']")[0] for section in tree.iter("section")]
    assert all(fuse.findtext("p").startswith("fuse: ") for fuse in fuses)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "scheduler"), [("dgx_a100(128)", "forest"), ("torus(16, 16)", "bfb")])
def test_a_template_is_not_written_out(collc: Collc, network: str, scheduler: str) -> None:
    """Also one of several orbits: the page has rows of its ranks, not of all."""
    text = f"collective c = allreduce on {network};\nschedule c using {scheduler};\nemit c as mpi-c;\n"
    found = parts(explored(collc, text))
    assert "template" in said(found[scheduler])
    assert all(int(re.findall(r"(\d+) rows", said(part))[0]) < 40_000 for part in found.values())


# ---- the command


def test_the_page_is_named_after_the_file(collc: Collc) -> None:
    Path("pod.coll").write_text(TORUS.format("msccl-xml"))
    assert "wrote pod.explore.html" in collc("explore", "pod.coll", "-v").err
    assert collc("explore", "pod.coll", "-o", "-", "-q").out == Path("pod.explore.html").read_text("utf-8")
    assert collc("explore", "pod.coll", "-o", "new/", "-q").status == 0
    assert Path("new/pod.explore.html").read_text("utf-8") == Path("pod.explore.html").read_text("utf-8")
    assert "[C0005]" in collc("explore", "pod.coll", "-o", "pod.coll").err


def test_a_rank_that_is_not_there_is_an_error(collc: Collc) -> None:
    Path("pod.coll").write_text(TORUS.format("msccl-xml"))
    ran = collc("explore", "pod.coll", "--ranks", "3..12")
    assert ran.status == 2 and "there is no rank 11" in ran.err and "ranks are 0 to 8" in ran.err
    assert not Path("pod.explore.html").exists()


def test_a_mistake_is_a_message(collc: Collc) -> None:
    Path("pod.coll").write_text(TORUS.format("msccl-xml").replace("bfb", "bfbb"))
    ran = collc("explore", "pod.coll")
    assert ran.status == 1 and "bfbb" in ran.err and not Path("pod.explore.html").exists()


@pytest.mark.needs("browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1600])
def test_a_page_fits_the_screen_and_opens(collc: Collc, width: int, scheme: str) -> None:
    explored(collc, TORUS.format("msccl-xml"), "--ranks", "0")
    with browser() as chromium, opened(chromium, Path("pod.html").resolve(), width, scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not tab.get_by_text("43 rows").first.is_hidden()
        folded = tab.locator("details", has_text="coalesce").first
        assert folded.get_attribute("open") is None
        folded.locator("summary").press("Enter")
        assert folded.get_attribute("open") is not None
        assert tab.locator("tr.added").first.is_visible()
