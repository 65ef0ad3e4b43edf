"""Pages as files: their structure, what they may hold, that nothing in them runs or fetches, that faults are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from commands import Ran
from lxml import etree, html
from report_pages import HOSTILE, TORUS, account, page, section

import collc as compiler
from collc.backends.base import Artifact
from collc.backends.report import HtmlReport
from collc.backends.report.document import element, script, style
from collc.backends.report.reader import sections_of
from collc.ir.verify import Report

Collc = Callable[..., Ran]

TWO = """\
topology pod = biring(4);
collective sums = allreduce on pod { size: 1 MiB };
collective parts = allgather on pod;
schedule sums using ring;
schedule parts using bfb;
"""


def tree(text: str) -> Any:
    return html.fromstring(text)


def words(node: Any) -> str:
    return " ".join("".join(node.itertext()).split())


# ---- what is on a page


def test_a_page_has_its_texts_without_a_script() -> None:
    root = tree(page(TORUS))
    assert root.get("lang") == "en" and words(root.find(".//title")) == "collc report: grads"
    terms = {words(term): words(term.getnext()) for term in root.findall(".//dt")}
    assert set(terms) == {"Question", "Answer", "Why not faster"}
    assert terms["Answer"].startswith("64 MiB take 6.821 ms with bfb: 9.839 GB/s, in 6 steps")
    captions = [words(caption) for caption in root.findall(".//caption")]
    assert captions[:2] == ["Time by size of the whole vector", "Loads step by step"]
    rows = [[words(cell) for cell in row.findall("td")] for row in root.find(".//table").findall(".//tr")[1:]]
    assert rows == section(TORUS)["sizes"]
    marks = {words(mark): mark.get("title") for mark in root.findall(".//mark")}
    assert marks["schedule grads using bfb;"].startswith("passes: bfb, discretize")
    assert marks["emit grads as msccl-xml;"].startswith("msccl-xml: threadblocks 12 of 108")
    assert "torus(3, 3, 2): 18 ranks, 108 links" in marks.values()


def test_headings_and_tables_have_an_order_for_screen_readers() -> None:
    root = tree(page(TORUS))
    levels = [int(node.tag[1]) for node in root.iter("h1", "h2", "h3")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in root.findall(".//table"):
        assert table.find("caption") is not None
        assert all(head.get("scope") == "col" for head in table.findall(".//th"))
    for section_ in root.findall(".//section"):
        assert root.get_element_by_id(section_.get("aria-labelledby")) is not None
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    assert all(node.get("href").lstrip("#") in ids for node in root.iter("a"))


def test_equal_inputs_give_equal_bytes() -> None:
    assert compiler.compile_source(TORUS, target="report")["grads"].artifacts[0].text == page(TORUS)


def test_a_page_of_1024_ranks_is_below_2_megabytes() -> None:
    text = "topology pod = torus(32, 32);\ncollective c = allreduce on pod { size: 64 MiB };\nschedule c using bfb;"
    found = page(text)
    assert len(found.encode()) < 2_000_000
    network: Any = section(text)["network"]
    assert network["ranks"] == 1024 and len(network["src"]) == 4096
    assert "programs are shown up to 64 ranks" in found


# ---- the command


def test_the_verb_does_what_the_target_does(collc: Collc) -> None:
    Path("two.coll").write_text(TWO)
    assert collc("report", "two.coll", "-o", "verb.html").status == 0
    assert collc("two.coll", "-t", "report", "-o", "target.html").status == 0
    assert Path("verb.html").read_bytes() == Path("target.html").read_bytes()
    assert collc("report", "two.coll").status == 0
    assert Path("report.html").read_bytes() == Path("verb.html").read_bytes()


def test_collectives_of_a_file_are_sections_and_the_source_is_there_once(collc: Collc) -> None:
    Path("two.coll").write_text(TWO)
    ran = collc("report", "two.coll", "-o", "-")
    root = tree(ran.out)
    assert [words(head) for head in root.findall(".//h2")] == [
        "sums: allreduce by ring",
        "parts: allgather by bfb",
        "Source",
    ]
    assert [words(link) for link in root.findall(".//nav//a")] == ["sums", "parts"]
    (source,) = root.findall(".//pre")
    assert "".join(source.itertext()) == TWO
    assert "biring(4): 4 ranks, 8 links" in [mark.get("title") for mark in source.findall("mark")]
    assert [one["name"] for one in sections_of(ran.out)] == ["sums", "parts"]


def test_a_program_has_no_report(collc: Collc) -> None:
    Path("a.coll").write_text(TWO)
    assert collc("a.coll", "-t", "ir", "--collective", "sums", "-o", "a.ir").status == 0
    ran = collc("report", "a.ir")
    assert ran.status != 0 and "only schedules have a report [C0019]" in ran.err
    assert not Path("report.html").exists()


def test_with_other_targets_the_report_shows_their_program(collc: Collc) -> None:
    Path("a.coll").write_text(TORUS)
    ran = collc("a.coll", "-t", "report", "-t", "mpi-c", "-o", "out/")
    assert ran.status == 0 and {one.name for one in Path("out").iterdir()} == {"report.html", "grads.c", "grads.h"}
    findings: Any = sections_of(Path("out/report.html").read_text())[0]["findings"]
    assert "mpi-c" not in {of for *_, of in findings["limits"]}  # it has none


# ---- hostile texts


def hostile(name: str) -> str:
    quoted = json.dumps(name, ensure_ascii=False)
    return f"""\
# {name}
topology pod {{
  rank {quoted}, b;
  switch {json.dumps(name + " s", ensure_ascii=False)};
  link {quoted} <-> b : 1 GB/s, 1 us;
}}
collective c = allreduce on pod {{ size: 1 MiB }};
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_comments_stay_text(name: str) -> None:
    try:
        text = page(hostile(name))
    except compiler.CollcError:  # the language does not take the name; an imported network may have it
        text = page(hostile("x").replace("# x", f"# {name}"))
    plain = page(hostile("plain"))
    count = {tag: plain.count(f"<{tag}") for tag in ("script", "img", "svg", "b>", "style")}
    assert {tag: text.count(f"<{tag}") for tag in count} == count
    root = tree(text)
    assert "".join(root.find(".//pre").itertext()).startswith(f"# {name}\n")
    assert not [key for node in root.iter(etree.Element) for key in node.attrib if key.startswith("on")]
    assert root.find(".//pre").text.startswith(f"# {name}")


@pytest.mark.parametrize("name", HOSTILE)
def test_any_text_of_an_account_stays_text(name: str) -> None:
    """Names of collectives, nodes, networks and algorithms, remarks and reasons, whatever wrote them."""
    of = account(TWO)
    (algorithm,) = of.algorithms
    topology = attrs.evolve(algorithm.schedule.topology, name=name, node_names=(name, name + "1", name + "2", "d"))
    schedule = attrs.evolve(algorithm.schedule, topology=topology, scheduler=name)
    cost = attrs.evolve(algorithm.cost, scheduler=name)
    changed = attrs.evolve(
        of, request=attrs.evolve(of.request, name=name), skipped=((name, name),),
        algorithms=(attrs.evolve(algorithm, schedule=schedule, cost=cost, remarks=(name,), absent=name, program=None),),
    )  # fmt: skip
    files = HtmlReport().emit(changed)
    assert HtmlReport().check(changed, files).ok
    (found,) = sections_of(files[0].text)
    assert found["name"] == name and found["scheduler"] == name
    assert words(tree(files[0].text).find(".//h2")) == " ".join(f"{name}: allreduce by {name}".split())
    assert files[0].text.count("<script") == page(TWO).count("<script")
    assert name not in files[0].text.replace("&lt;", "<")[: files[0].text.index("<main>")] or "<" not in name


def test_characters_that_no_page_may_hold_are_replaced() -> None:
    assert element("p", "a\x00\x1b\ud800b", title='"\n') == '<p title="&quot;\n">a\ufffd\ufffd\ufffdb</p>'


def test_nothing_is_fetched_and_only_the_script_of_the_page_runs() -> None:
    text = page(TORUS)
    root = tree(text)
    policy = root.find(".//meta[@http-equiv]").get("content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    assert root.find(".//style").text == style() and root.findall(".//script")[-1].text == script()
    for node in root.iter(etree.Element):
        assert not {"src", "srcset", "action", "style", "ping"} & set(node.attrib), node.tag
        assert node.get("href", "#").startswith("#")
    for part in (script(), style()):
        words_ = ("innerHTML", "outerHTML", "eval(", "fetch(", "import(", "url(h", "@import", "XMLHttp", "write(")
        assert not [word for word in words_ if word in part]


# ---- faults


def judged(text: str) -> Report:
    return HtmlReport().check(account(TORUS), [Artifact("report.html", text, "report")])


def changed(change: Callable[[Any], None]) -> str:
    """Return the page of changed data, all of whose text says the same."""
    from collc.backends.report.document import page as written

    found = json.loads(json.dumps(section(TORUS)))
    change(found)
    return written([found])


def of_columns(part: str, name: str) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        column = found[part][name]
        at = len(column) // 2
        column[at] = column[at] + 1 if isinstance(column[at], int) else column[at][::-1]

    return change


@pytest.mark.parametrize(
    ("part", "name"),
    [("network", "src"), ("network", "x"), ("flow", "link"), ("flow", "times"), ("flow", "messages"),
     ("program", "deps"), ("program", "opcode"), ("program", "wave"), ("goodput", "bound"), ("goodput", "sizes"),
     ("transfers", "step")],
)  # fmt: skip
def test_a_wrong_number_is_found(part: str, name: str) -> None:
    failed = [check.name for check in judged(changed(of_columns(part, name))).failed]
    assert "data" in failed and "as written" in failed


@pytest.mark.parametrize("name", ["step", "shard", "lo", "hi", "route", "links"])
def test_wrong_transfers_are_found_by_executing_them(name: str) -> None:
    failed = [check.name for check in judged(changed(of_columns("transfers", name))).failed]
    assert {"transfers", "execution", "loads"} & set(failed), failed


def test_wrong_loads_are_found_by_adding_the_transfers_up() -> None:
    def change(found: Any) -> None:
        found["flow"]["loads"][0][0] += 1

    assert "loads" in [check.name for check in judged(changed(change)).failed]


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("</section>", "", "structure"), ("<main>", "<main onclick='x'>", "structure"),
        ('href="#s0"', 'href="https://example.org"', "structure"), ("</style>", " </style>", "script"),
        ('"use strict"', '"use strict";', "script"), ('id="data-0"', 'id="data-1"', "reading"),
        ("6.821 ms with", "5.821 ms with", "data"), ("<h3>Network", "<h3>network", "as written"),
        ("default-src 'none'", "default-src *", "as written"),
    ],
)  # fmt: skip
def test_another_text_is_found(old: str, new: str, check: str) -> None:
    text = page(TORUS)
    assert judged(text).ok and old in text
    assert check in [one.name for one in judged(text.replace(old, new)).failed]


def test_a_page_that_is_cut_off_is_found() -> None:
    text = page(TORUS)
    for end in range(0, len(text), len(text) // 12):
        assert not judged(text[:end]).ok
    assert not HtmlReport().check(account(TORUS), []).ok
