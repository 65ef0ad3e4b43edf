"""Pages in a headless Chromium: what a person and a keyboard can do, on small and large screens, light and dark."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # Any: tabs of playwright, which may not be installed

import attrs
import pytest
from places import ROOT
from report_pages import HOSTILE, TORUS, account, browser, opened, page

from collc.backends.report import HtmlReport

pytestmark = pytest.mark.needs("browser")

SWITCHED = "topology pod = dgx_a100(2);\ncollective c = allreduce on pod { size: 64 MiB };"
LARGE = "topology pod = torus(32, 32);\ncollective c = allreduce on pod { size: 64 MiB };\nschedule c using bfb;"
MANY_BOXES = "topology pod = dgx_a100(16);\ncollective c = allgather on pod;\nschedule c using ring;"
KINDS = ("network", "schedule", "threadblocks", "goodput")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:  # Any: see above
    with browser() as found:
        yield found


@pytest.fixture
def written(tmp_path: Path) -> Any:  # Any: a function that writes a page
    def write(text: str) -> Path:
        path = tmp_path / "page.html"
        path.write_text(page(text), "utf-8")
        return path

    return write


def figure(tab: Any, kind: str) -> Any:  # Any: see above
    found = tab.locator(f'[data-figure="{kind}"]').first
    found.scroll_into_view_if_needed()
    found.locator("> *").first.wait_for()
    return found


def said(tab: Any, kind: str) -> str:  # Any: see above
    return str(figure(tab, kind).locator(".said").inner_text())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1600])
@pytest.mark.parametrize("text", [TORUS, SWITCHED], ids=["torus", "switched"])
def test_every_figure_is_drawn_and_fits_the_screen(
    chromium: Any, written: Any, text: str, width: int, scheme: str
) -> None:  # Any: see above
    with opened(chromium, written(text), width, scheme) as tab:
        for kind in KINDS:
            picture = figure(tab, kind).locator("> div > svg").first
            box = picture.bounding_box()
            assert box is not None and box["width"] > 500 and box["x"] >= 0
            assert box["x"] + box["width"] <= width, kind
            assert picture.get_attribute("role") == "img" and picture.get_attribute("aria-label")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper))) < 200) == (scheme == "dark")


def test_the_slider_shows_the_steps_one_by_one(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(TORUS)) as tab:
        network = figure(tab, "network")
        slider = network.get_by_role("slider", name="step")
        assert network.locator("output").inner_text() == "all 6 steps"
        slider.focus()
        tab.keyboard.press("ArrowRight")
        assert network.locator("output").inner_text() == "step 0: 108 messages, at most 2/27 of the vector on a link"
        slider.fill("3")
        assert "step 2: 108 messages, at most 1/36" in network.locator("output").inner_text()
        assert slider.get_attribute("aria-valuetext") == "step 2 of 6"
        legend = network.locator(".legend li").all_inner_texts()
        assert legend == ["20 to 40 % of the longest time: 108 links"]
        network.get_by_role("button", name="previous step").click()
        assert network.locator("output").inner_text().startswith("step 1:")
        assert figure(tab, "schedule").locator("output").inner_text() == "1 of 6"


def test_loads_differ_by_width_and_not_only_by_color(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(TORUS)) as tab:
        figure(tab, "network")
        widths = tab.evaluate(
            "[0,1,2,3,4,5].map(k => parseFloat(getComputedStyle(document.querySelector('.link.k' + k)).strokeWidth))"
        )
        assert widths == sorted(set(widths)) and widths[-1] > 3 * widths[1]


def test_a_click_on_the_schedule_chooses_and_a_transfer_is_followed(chromium: Any, written: Any) -> None:  # Any: tabs
    with opened(chromium, written(TORUS)) as tab:
        schedule = figure(tab, "schedule")
        schedule.locator("svg").first.click(position={"x": 300, "y": 100})
        chosen = said(tab, "schedule")
        rank, step = re.findall(r"Rank (\d+), step (\d+):", chosen)[0]
        assert schedule.locator("select").first.input_value() == rank
        assert "threadblocks, " in said(tab, "threadblocks") and f"Rank {rank}:" in said(tab, "threadblocks")
        first = schedule.locator(".list button").first
        label = first.inner_text()
        assert re.fullmatch(r"\d+ to \d+: (adds|copies) shard \d+(, parts? .* of 6)?", label)
        first.focus()
        tab.keyboard.press("Enter")
        path = schedule.locator("details li").all_inner_texts()
        assert f"step {step}: {label}" in path
        steps = [int(line.split()[1].rstrip(":")) for line in path]
        assert steps == sorted(steps) and steps[0] == 0
        assert said(tab, "network").startswith("Following shard ")
        assert figure(tab, "network").locator(".node.have").count() > 1
        assert figure(tab, "network").locator(".path").get_attribute("d")
        schedule.get_by_role("button", name="stop following").click()
        assert figure(tab, "network").locator(".node.have").count() == 0


def test_in_the_end_every_rank_has_a_shard_of_an_allgather(chromium: Any, written: Any) -> None:  # Any: see above
    text = "collective c = allgather on hypercube(3);\nschedule c using bfb;"
    with opened(chromium, written(text)) as tab:
        figure(tab, "network")
        figure(tab, "schedule").locator("select").nth(1).select_option(label="shard 5")
        assert said(tab, "network") == "Following shard 5: 8 ranks have sent or received it in the end."
        figure(tab, "network").get_by_role("slider", name="step").fill("1")
        assert said(tab, "network") == "Following shard 5: 4 ranks have sent or received it after step 0."


def test_the_answer_leads_to_the_cut(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(TORUS)) as tab:
        tab.get_by_role("link", name="Show the cut.").focus()
        tab.keyboard.press("Enter")
        network = figure(tab, "network")
        assert network.get_by_label("cut of the bound").is_checked()
        assert network.locator(".cut").get_attribute("d") and "The cut: " in said(tab, "network")


def test_the_cut_is_drawn(chromium: Any, written: Any) -> None:  # Any: see above
    text = "collective parts = allgather on mesh(3, 4);\nschedule parts using swing;"
    with opened(chromium, written(text)) as tab:
        network = figure(tab, "network")
        assert not network.locator(".cut").get_attribute("d")
        network.get_by_label("cut of the bound").check()
        assert "links into rank 0: 11 shards over 2 link units" in said(tab, "network")
        assert network.locator(".node.inside").count() == 1
        assert network.locator(".cut").get_attribute("d").count("M") == 4  # both directions of two links


def test_pointing_at_a_link_says_what_it_carries(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written("collective c = allreduce on mesh(2, 2);\nschedule c using ring;")) as tab:
        picture = figure(tab, "network").locator("svg").first
        places = [box for box in (node.bounding_box() for node in picture.locator(".node").all()) if box]
        (a, b), origin = places[:2], picture.bounding_box()
        assert origin is not None
        x, y = (a["x"] + b["x"] + a["width"]) / 2, (a["y"] + b["y"] + a["height"]) / 2
        tab.mouse.move(x, y + 4)
        assert re.fullmatch(r"(0 to 1|1 to 0): 1 link unit, in all steps \d.* % of the vector", said(tab, "network"))
        network = figure(tab, "network")
        network.locator("summary").click()
        network.locator("details select").select_option(label="rank 3")
        assert len(network.locator("details li").all_inner_texts()) == 4


def test_goodput_reads_sizes_and_switches_its_axis(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(SWITCHED)) as tab:
        goodput = figure(tab, "goodput")
        assert said(tab, "goodput").startswith("64 MiB: bound 169 GB/s; forest-k1-equal-3 140 GB/s")
        goodput.get_by_label("bus bandwidth (busbw)").check()
        goodput.get_by_role("slider", name="size").fill("16")
        assert said(tab, "goodput").startswith("64 MiB: bound 316.8 GB/s; forest-k1-equal-3 262.5 GB/s")
        goodput.get_by_label("as a part of the bound").check()
        assert "part of the bound" in goodput.locator("svg").first.text_content()
        assert "forest-k1-equal-3 from 256 KiB" in goodput.locator("svg").first.text_content()
        looks = "l => getComputedStyle(l).strokeDasharray + ' ' + l.parentNode.className.baseVal"
        dashes = tab.evaluate(f"[...document.querySelectorAll('.legend .line')].map({looks})")
        assert len(dashes) > 8 and len(set(dashes)) == len(dashes)


def test_many_boxes_are_shown_one_at_a_time(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(MANY_BOXES)) as tab:
        network = figure(tab, "network")
        assert "box 0, one of 16 alike" in network.locator("svg").first.text_content()
        assert network.locator("circle.node").count() == 8
        network.locator("select").first.select_option(label="box 7, like box 0")
        assert network.locator("svg title", has_text="rank gpu[7, 0]").count() == 1


def test_links_to_other_boxes_are_drawn_as_their_ends(chromium: Any, written: Any) -> None:  # Any: see above
    text = "topology pod = dragonfly(2, 4, 2);\ncollective c = allgather on pod;\nschedule c using ring;"
    with opened(chromium, written(text)) as tab:
        network = figure(tab, "network")
        assert "box 0, one of 36 alike" in network.locator("svg").first.text_content()
        counts = [int(one.split(": ")[1].split()[0]) for one in network.locator(".legend li").all_inner_texts()]
        assert sum(counts) == 4 + 2 * 5  # two ranks, and a router with links to three others and two groups


def test_1024_ranks_open_in_groups_and_a_click_goes_down(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(LARGE)) as tab:
        schedule = figure(tab, "schedule")
        assert (
            schedule.locator("svg").first.get_attribute("aria-label").startswith("ranks by time: 1024 ranks, 64 steps")
        )
        schedule.locator("svg").first.click(position={"x": 400, "y": 200})
        label = schedule.locator("svg").first.get_attribute("aria-label")
        assert label.startswith("ranks by time: 16 ranks, 64 steps")
        schedule.get_by_role("button", name="all ranks and steps").click()
        assert schedule.locator("svg").first.get_attribute("aria-label").startswith("ranks by time: 1024 ranks")
        assert figure(tab, "network").locator("circle.node").count() == 1024
        assert "programs are shown up to 64 ranks" in figure(tab, "threadblocks").inner_text()


def test_everything_is_reached_with_the_keyboard(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(TORUS)) as tab:
        for kind in KINDS:
            figure(tab, kind)
        tab.evaluate("scrollTo(0, 0)")
        tab.locator("body").click(position={"x": 2, "y": 2})
        seen = set()
        for _ in range(140):
            tab.keyboard.press("Tab")
            seen.add(tab.evaluate("document.activeElement.tagName + ' ' + (document.activeElement.type || '')").strip())
        assert {"A", "BUTTON button", "INPUT range", "INPUT checkbox", "SELECT select-one", "SUMMARY", "MARK"} <= seen


def test_pages_print_on_white_with_all_figures(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(TORUS), scheme="dark") as tab:
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert tab.locator(".stage svg[role=img]").count() == len(KINDS)
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not tab.locator(".controls").first.is_visible()
        assert tab.pdf()[:5] == b"%PDF-"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_runs(chromium: Any, tmp_path: Path, name: str) -> None:  # Any: see above
    of = account(TORUS)
    (one,) = of.algorithms
    names = tuple(f"{name}{rank}" for rank in range(18))
    schedule = attrs.evolve(one.schedule, topology=attrs.evolve(one.schedule.topology, name=name, node_names=names))
    hostile = attrs.evolve(
        of, request=attrs.evolve(of.request, name=name), skipped=((name, name),),
        algorithms=(attrs.evolve(one, schedule=schedule, cost=attrs.evolve(one.cost, scheduler=name)),),
    )  # fmt: skip
    path = tmp_path / "hostile.html"
    path.write_text(HtmlReport().emit(hostile)[0].text, "utf-8")
    with opened(chromium, path) as tab:
        for kind in KINDS:
            figure(tab, kind)
        figure(tab, "schedule").locator(".list button").first.click()
        assert tab.title() == " ".join(f"collc report: {name}".split())
        assert tab.locator("img, script:not([type]) ~ script, svg[onload]").count() == 0
        assert figure(tab, "network").locator("title").first.text_content() == f"rank {name}0"


# ---- how fast a page opens

OPENING: dict[str, Any] = runpy.run_path(str(ROOT / "benchmarks" / "opening.py"))  # Any: names of a script


@pytest.mark.parametrize("name", ["18 ranks, torus(3, 3, 2), allreduce", "1,024 ranks, torus(32, 32), allreduce"])
def test_a_page_is_drawn_within_a_second(chromium: Any, tmp_path: Path, name: str) -> None:  # Any: see above
    """The least of five openings: other programs use the machine too."""
    path = tmp_path / "page.html"
    path.write_text(page(OPENING["SPECS"][name]), "utf-8")
    assert path.stat().st_size < 2_000_000
    found = [OPENING["times"](chromium, path) for _ in range(5)]
    loaded, drawn, step = (min(one[k] for one in found) for k in range(3))
    assert 0 < loaded < drawn < 1000 and 0 < step < 1000


def test_the_documents_have_a_row_for_every_page() -> None:
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    assert [name for name in OPENING["SPECS"] if f"| {name} |" not in text] == []


# ---- networks that are in no example

PAIR = """topology pair {
  rank gpu[2, 8];
  switch nv[2], slow;
  for b in 0..2, g in 0..8 { link gpu[b, g] <-> nv[b] : 300 GB/s, 700 ns; link gpu[b, g] <-> slow : 5 GB/s, 5 us; }
}
collective sums = reduce-scatter on pair { size: 256 MiB, dtype: float16 };
schedule sums using forest;
emit sums as mscclpp-json;
"""
CAYLEY = """topology web = cayley(metacyclic(7, 3, 2), {3, 1}) with { bandwidth: 25 Gbps, latency: 1 us };
collective swap = alltoall on web { size: 8 MiB };
"""
FLAT = """topology pod = torus(3, 5) with { bandwidth: 100 Gbps, latency: 2 us };
collective parts = allgather on pod { size: 16 MiB };
schedule parts using bfb;
emit parts as msccl-xml;
"""
#: the boxes of all texts of a figure that overlap others, except at their edges
_OVERLAPS = """(figure) => {
  const boxes = [...figure.querySelectorAll('svg text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
  const before = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 3;
  const apart = (a, b) => before(a, b) || before(b, a);
  return boxes.flatMap(([a, x], at) => boxes.slice(at + 1).filter(([, y]) => !apart(x, y)).map(([b]) => [a, b]));
}"""
_SMALLEST = """(figure) => {
  const image = figure.querySelector('svg'), scale = image.getBoundingClientRect().width / image.viewBox.baseVal.width;
  const sizes = [...image.querySelectorAll('text')].map((one) => parseFloat(getComputedStyle(one).fontSize) * scale);
  return Math.min(...sizes);
}"""


@pytest.mark.parametrize("text", [PAIR, CAYLEY, FLAT], ids=["pair", "cayley", "flat"])
@pytest.mark.parametrize(("width", "scheme"), [(800, "dark"), (1600, "light")])
def test_texts_of_other_networks_are_apart_and_large_enough(
    chromium: Any, written: Any, text: str, width: int, scheme: str
) -> None:  # Any: see above
    with opened(chromium, written(text), width, scheme) as tab:
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        for kind in KINDS:
            shown = figure(tab, kind).first
            assert shown.evaluate(_SMALLEST) > 8, kind
            if kind != "network":  # lines cross there, and numbers stand in circles
                assert shown.evaluate(_OVERLAPS) == [], kind
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_names_that_would_overlap_are_found(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(PAIR)) as tab:
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        shown = figure(tab, "goodput").first
        shown.evaluate("(one) => one.querySelectorAll('svg text.halo').forEach((text) => text.setAttribute('y', 28))")
        assert shown.evaluate(_OVERLAPS) != []


def test_a_shard_of_an_alltoall_says_from_which_rank_to_which(chromium: Any, written: Any) -> None:  # Any: see above
    with opened(chromium, written(CAYLEY)) as tab:
        button = figure(tab, "schedule").get_by_role("button", name="shard").first
        words = button.inner_text()
        number, source, target = map(int, re.findall(r"shard (\d+) \((\d+) to (\d+)\)", words)[0])
        assert number == source * 21 + target
        button.click()
        assert f"Following shard {number} ({source} to {target})" in figure(tab, "network").inner_text()


def test_a_threadblock_without_peers_is_local_and_formats_are_not_wrapped(chromium: Any, written: Any) -> None:
    with opened(chromium, written(FLAT)) as tab:  # Any: see above
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert "8: local" in figure(tab, "threadblocks").locator("svg text").all_text_contents()
        cell = tab.get_by_role("cell", name="msccl-xml").first
        assert cell.evaluate("(one) => getComputedStyle(one).whiteSpace") == "nowrap"
