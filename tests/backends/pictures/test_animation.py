"""Animations: every step with its loads, one after the other, and a picture that stands still for those who ask."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Ran
from picture_checks import check
from report_pages import browser

import collc as compiler
from collc.backends.pictures import layout
from collc.backends.pictures.animation import MOST_FRAMES, animated
from collc.backends.pictures.networks import LinkLoads, level_of
from collc.backends.simulator import Simulation, simulate

Collc = Callable[..., Ran]
TEXT = "topology t = {net};\ncollective c = allreduce on t;\nschedule c using {how};"


def simulation(net: str, how: str) -> Simulation:
    return simulate(compiler.compile_source(TEXT.format(net=net, how=how))["c"].schedule)


@pytest.mark.parametrize("net, how", [("torus(3, 2)", "bfb"), ("biring(6)", "ring"), ("dgx_a100(2)", "ring")])
def test_every_step_shows_its_links(net: str, how: str) -> None:
    run = simulation(net, how)
    text = animated(run, 1 << 20).file()
    root = ElementTree.fromstring(text)
    frames = [one for one in root if "data-step" in one.attrib]
    assert list(map(str, range(len(run.steps)))) == [one.attrib["data-step"] for one in frames]
    most = max(step.busiest for step in run.steps)
    for number, frame in enumerate(frames):
        loads = LinkLoads.of(run.topology, *run.loads(number))
        found = {
            int(link): int(re.findall(r"\bk(\d)", path.attrib["class"])[0])
            for path in frame for link in path.attrib["data-links"].split()
        }  # fmt: skip
        assert found == {link: level_of(busy, most) for link, busy in enumerate(loads.busy)}
    assert text == animated(run, 1 << 20).file()


def test_frames_follow_each_other_and_are_visible_once() -> None:
    text = animated(simulation("torus(4, 4)", "swing"), 1 << 20).file()
    spans = re.findall(r"@keyframes s(\d+)\{(.*?)\}\}", text)
    assert [int(number) for number, _ in spans] == list(range(len(spans))) and len(spans) > 3
    shown = [re.search(r"([\d.]+)%,([\d.]+)%\{visibility:visible", one + "}") for _, one in spans]
    ends = [(float(one[1]), float(one[2])) for one in shown if one]
    assert len(ends) == len(spans) and all(a[1] < b[0] + 1e-9 for a, b in pairwise(ends))
    assert ends[0][0] == 0 and ends[-1][1] == 100


def test_long_schedules_are_cut_and_large_networks_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    many = simulation("mesh(11)", "bfb")
    assert len(re.findall("data-step", animated(many, 1 << 20).file())) == min(len(many.steps), MOST_FRAMES)
    monkeypatch.setattr(layout, "MOST_NODES", 10)
    with pytest.raises(ValueError, match="too large"):
        animated(many, 1 << 20)


def test_the_command_writes_a_picture(collc: Collc) -> None:
    ran = collc("simulate", "-", "--animate", "a.svg", "--size", "1MiB", stdin=TEXT.format(net="biring(4)", how="ring"))
    assert (0, "") == (ran.status, ran.err)
    text = Path("a.svg").read_text()
    ElementTree.fromstring(text)
    assert "<script" not in text and "prefers-reduced-motion:no-preference" in text and 'tabindex="0"' in text
    two = TEXT.format(net="biring(4)", how="ring") + "\ncollective d = allgather on t;"
    ran = collc("simulate", "-", "--animate", "b.svg", stdin=two)
    assert 2 == ran.status and "[C0043]" in ran.err
    large = "collective g = allgather on torus(70, 70);\nschedule g using swing;"
    ran = collc("simulate", "-", "--animate", "b.svg", "--size", "1MiB", stdin=large)
    assert 1 == ran.status and "[C0052]" in ran.err and not Path("b.svg").exists()
    assert check


@pytest.mark.needs("browser")
def test_it_moves_stops_and_stands_still(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text(animated(simulation("biring(6)", "ring"), 1 << 20).file())
    state = "getComputedStyle(document.querySelector('.clock')).animationPlayState"
    seen = "[...document.querySelectorAll('.frame')].filter(e => getComputedStyle(e).visibility == 'visible').length"
    still = "getComputedStyle(document.querySelector('.still')).visibility"
    with browser() as chromium:
        tab = chromium.new_page(viewport={"width": 800, "height": 600})
        tab.goto(path.as_uri())
        assert (1, "hidden", "running") == (tab.evaluate(seen), tab.evaluate(still), tab.evaluate(state))
        tab.mouse.move(300, 200)
        assert "paused" == tab.evaluate(state)
        tab.close()
        tab = chromium.new_page(reduced_motion="reduce")
        tab.goto(path.as_uri())
        assert (0, "visible") == (tab.evaluate(seen), tab.evaluate(still))
        tab.close()
