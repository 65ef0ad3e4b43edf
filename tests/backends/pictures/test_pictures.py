"""Pictures: whatever the data, texts are on the page and not on each other, curves within the axes, ticks round."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_checks import SPACE, axes_of, boxes, check, drawn, kinds, overlap, places, words_of
from places import ROOT
from sampling import examples

from collc.backends.pictures import lettering, svg
from collc.backends.pictures.axes import Axis
from collc.backends.pictures.charts import Chart, Rule, Series
from collc.backends.pictures.legend import Key, draw_legend
from collc.backends.pictures.lettering import Box
from collc.backends.pictures.style import BOUND, COLORS, FONTS, STYLE, Look, look
from collc.backends.pictures.ticks import floor_log, linear_ticks, log_ticks
from collc.backends.pictures.timelines import Bar, Lane, Timeline
from collc.backends.pictures.timelines import Row as Band
from collc.backends.pictures.units import BYTES, BYTES_PER_SECOND, NUMBERS, SECONDS, decimal
from collc.passes.finder.database import Row
from collc.pictures.frontier import pareto_svg
from collc.pictures.goodput import goodput_svg
from collc.tools.finding import Frontier, Wanted

TRY = settings(max_examples=examples(40), deadline=None)


# ---- charts of odd data

NAMES = st.one_of(
    st.sampled_from(["", "bfb", '<&">', "name " * 200, "W" * 5000, "網路" * 90, "a\x00\ud800b\ufffe", "]]>", "&amp;"]),
    st.text(max_size=20),
)
VALUES = st.one_of(
    st.sampled_from(
        [0, 1, 5, -5, 10**18, 1e300, -1e300, 5e-324, 1e-9, Fraction(1, 3), 1000000, 1000001, 1e15, 1e15 + 1]
    ),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(max_denominator=1000).map(lambda value: value % 100),
)
UNITS = (NUMBERS, BYTES, SECONDS, BYTES_PER_SECOND)
AXES = st.builds(
    Axis, NAMES, st.sampled_from([0, 2, 10]), st.sampled_from(UNITS), st.booleans(), st.booleans(),
    st.sampled_from([Fraction(0), Fraction(1, 10)]),
)  # fmt: skip


@st.composite
def series(draw: st.DrawFn) -> Series:
    points = draw(st.lists(st.tuples(VALUES, VALUES), max_size=6))
    texts = st.lists(NAMES, min_size=len(points), max_size=len(points))
    return Series(
        draw(NAMES), points, look(draw(st.integers(0, 40))), draw(st.sampled_from(["line", "steps", "marks"])),
        draw(st.booleans()), draw(texts), draw(texts),
    )  # fmt: skip


RULES = st.builds(Rule, VALUES, NAMES, st.booleans())


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(NAMES, AXES, AXES, st.lists(series(), max_size=5), st.lists(RULES, max_size=5), NAMES)
def test_charts(title: str, x: Axis, y: Axis, lines: list[Series], rules: list[Rule], subtitle: str) -> None:
    chart = Chart(title, x, y, lines, rules, subtitle)
    text = chart.picture().file()
    check(text)
    text.encode()
    assert text == Chart(title, x, y, lines, rules, subtitle).picture().file()


@pytest.mark.parametrize("base", [0, 2, 10])
@pytest.mark.parametrize(
    "points", [[], [(5, 1)], [(0, 0)], [(3, 2.0), (9, 2.0)], [(7, 1), (7, 9)], [(0, 0), (1e-300, 1), (1e300, 1e-300)]]
)
def test_charts_of_little(points: list[tuple[float, float]], base: int) -> None:
    root = check(Chart("t", Axis("x", base), Axis("y", base), [Series("c", points, look(0))]).picture().file())
    shown = [point for point in points if not base or min(point) > 0]
    assert bool(list(drawn(root))) == bool(shown)


def test_points_are_where_they_belong() -> None:
    """On an axis of powers of two doublings are equally far; zero has no place there, and up is less."""
    points = [(0, 7), (1, 0.0), (2, 10.0), (4, 5.0)]
    root = check(Chart("t", Axis("x", 2), Axis("y"), [Series("c", points, Look("c0"), dots=True)]).picture().file())
    dots = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in root.findall(f"{SPACE}circle")]
    assert 3 == len(dots) and dots[1][0] - dots[0][0] == pytest.approx(dots[2][0] - dots[1][0])
    assert dots[1][1] < dots[2][1] < dots[0][1]
    assert dots[2][1] == pytest.approx((dots[0][1] + dots[1][1]) / 2, abs=0.11)


def test_steps_go_along_then_up() -> None:
    root = check(Chart("t", Axis("x"), Axis("y"), [Series("", [(0, 0), (1, 1)], look(0), "steps")]).picture().file())
    (corners,) = (places(node.get("d", "")) for node in root.findall(f"{SPACE}path") if "line" in kinds(node))
    axes = axes_of(root)
    assert [(axes.left, axes.bottom), (axes.right, axes.bottom), (axes.right, axes.top)] == list(dict.fromkeys(corners))


def test_labels_are_beside_their_marks() -> None:
    """Each mark has its own, the ends of the page and other labels in the way or not."""
    points, names = [(k, Fraction(k, 9)) for k in range(6)], [f"torus({k}, {k})" for k in range(6)]
    chart = Chart("t", Axis("x"), Axis("y"), [Series("m", points, look(0), "marks", labels=names)])
    root = check(chart.picture().file())
    found = {words: box for words, box in boxes(root) if words.startswith("torus")}
    assert set(names) == set(found)
    for (x, y), name in zip(drawn(root), names, strict=True):
        assert min(abs(found[name].left - x), abs(found[name].right - x)) < 11 and abs(found[name].bottom - y) < 30


def test_bounds_are_drawn_and_named() -> None:
    rules = [Rule(2, "bound: 2 steps"), Rule(Fraction(7, 8), "bound: 7/8 M/B", upright=False)]
    root = check(Chart("t", Axis("x"), Axis("y"), [Series("m", [(3, 1)], look(0), "marks")], rules).picture().file())
    lines = [node for node in root.findall(f"{SPACE}line") if BOUND.color in kinds(node)]
    assert {rule.label for rule in rules} <= {words for words, _ in boxes(root)}
    assert [rule.label for rule in rules] == [next(iter(node)).text for node in lines]


def test_many_rules_all_have_a_line() -> None:
    rules = [Rule(k, f"schedule number {k} from here") for k in range(60)]
    root = check(Chart("t", Axis("x"), Axis("y"), [Series("c", [(0, 0), (60, 1)], look(0))], rules).picture().file())
    assert 60 == sum(BOUND.color in kinds(node) for node in root.findall(f"{SPACE}line"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        Chart("t", Axis("x"), Axis("y"), [Series("c", [(1, value)], look(0))]).picture()
    with pytest.raises(ValueError, match="no place on a page"):
        svg.number(value)


def test_no_curve_at_all() -> None:
    assert "Goodput" in words_of(check(goodput_svg([], [1 << 10, 1 << 20]))[4])


# ---- the check itself

PLANTED = [
    (svg.text(880, 100, "off the page"), "off the page.*off the page"),
    (svg.text(20, 24, "on the title", "title"), "on each other.*on the title"),
    (svg.text(450, -2, "above"), "off the page.*above"),
    (svg.circle(40, 300, 3, "fill c0"), "outside of the axes"),
    (svg.path([(100, 100), (700, 5000)], "line c0"), "outside of the axes"),
]


@pytest.mark.parametrize(("element", "named"), PLANTED)
def test_a_planted_fault_is_found(element: svg.Element, named: str) -> None:
    picture = Chart("a title", Axis("x"), Axis("y"), [Series("c", [(1, 1), (2, 2)], look(0))]).picture()
    check(picture.file())
    with pytest.raises(AssertionError, match=named):
        check(attrs.evolve(picture, body=(*picture.body, element)).file())


# ---- frontiers


ROWS = st.builds(
    Row, NAMES, st.just(16), st.just(4), st.integers(2, 9), st.fractions(Fraction(15, 16), 2, max_denominator=64),
    st.integers(2, 9), st.booleans(),
)  # fmt: skip


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(ROWS, max_size=12))
def test_frontiers(rows: list[Row]) -> None:
    """Whatever the database says: every row is a mark with a tip, and the bounds are named."""
    root = check(pareto_svg(Frontier(Wanted(16, 4), tuple(rows))))
    links = root.findall(f"{SPACE}a")
    marks = [node for link in links for node in link if {"fill"} < kinds(node)]
    assert len(rows) == len(marks) == sum(len(mark) for mark in marks) == len(links)
    named = [node.get("id") for node in root if "row" in kinds(node)]
    assert sorted(f"#{name}" for name in named) == sorted(link.get("href", "") for link in links)
    assert "bound: 2 steps" in {words for words, _ in boxes(root)}


# ---- timelines


@st.composite
def lanes(draw: st.DrawFn) -> Lane:
    ends = sorted(draw(st.lists(VALUES, max_size=6)))
    bars = [Bar(a, b, draw(NAMES), draw(NAMES), draw(NAMES)) for a, b in zip(ends[::2], ends[1::2], strict=False)]
    return Lane(bars, draw(st.lists(VALUES, max_size=2)), draw(NAMES))


@TRY
@given(NAMES, AXES, st.lists(st.builds(Band, NAMES, st.lists(lanes(), max_size=3)), max_size=4), NAMES)
def test_timelines(title: str, axis: Axis, rows: list[Band], post: str) -> None:
    root = check(Timeline(title, axis, rows, post).picture().file())
    axes = axes_of(root)
    bars = [node for node in root.findall(f"{SPACE}rect") if "fill" in kinds(node)]
    assert len(bars) == sum(len(lane.bars) for row in rows for lane in row.lanes)
    for bar in bars:
        x, wide = float(bar.get("x", "")), float(bar.get("width", ""))
        assert axes.left <= x and x + wide <= axes.right + 1


def test_ranks_over_time() -> None:
    """A row a rank, a lane a channel; bars are as long as they take."""
    rows = [Band(f"rank {r}", [Lane([Bar(k, k + 1, "send") for k in range(r + 1)])]) for r in range(4)]
    root = check(Timeline("t", Axis("time", units=SECONDS), rows).picture().file())
    widths = {bar.get("width") for bar in root.findall(f"{SPACE}rect") if "fill" in kinds(bar)}
    assert 1 == len({round(float(width or "nan")) for width in widths})
    assert {"rank 0", "rank 3", "send", "time (s)"} <= {words for words, _ in boxes(root)}


def test_the_testbed_draws_measured_beside_predicted() -> None:
    """A lane an algorithm, from a power of ten on; predictions are posts."""
    rows = [SimpleNamespace(topology="ring8", bytes=1 << 20, name=name, seconds=t, predicted=t / 1.1, over=0.1)
            for name, t in (("bfb", 0.25), ("ring", 2.5))]  # fmt: skip
    root = check(_testbed().picture("measured", rows))
    written = {words for words, _ in boxes(root)}
    assert {"ring8, 1 MiB", "bfb", "ring", "predicted", "250 ms, +10.0 %", "100 ms", "1 s"} <= written
    posts = [float(node.get("x1", "")) for node in root.findall(f"{SPACE}line") if BOUND.color in kinds(node)]
    ends = [float(bar.get("x", "")) + float(bar.get("width", "")) for bar in root.findall(f"{SPACE}rect")[1:]]
    assert 2 == len(posts) and all(post < end for post, end in zip(posts, ends, strict=True))


def _testbed() -> Any:
    folder = ROOT / "benchmarks" / "testbed"
    spec = importlib.util.spec_from_file_location("benchmark_testbed", folder / "run.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- ticks and units

POSITIVE = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12, max_denominator=10**12)


@TRY
@given(st.fractions(max_denominator=10**6), POSITIVE, st.booleans())
def test_linear_ticks_are_round(low: Fraction, span: Fraction, whole: bool) -> None:
    counts = []
    for ticks in linear_ticks(low, low + span, whole):
        counts.append(len(ticks))
        assert all(low <= tick <= low + span for tick in ticks)
        steps = {b - a for a, b in pairwise(ticks)}
        assert len(steps) <= 1
        for step in steps:
            assert step / Fraction(10) ** floor_log(step, 10) in (1, 2, 5) and all(t % step == 0 for t in ticks)
            assert not whole or step.denominator == 1
    assert counts[0] <= 11 and counts == sorted(counts, reverse=True) and counts[-1] <= 1


@TRY
@given(POSITIVE, POSITIVE, st.sampled_from([2, 10]))
def test_logarithmic_ticks_are_powers(one: Fraction, other: Fraction, base: int) -> None:
    low, high = min(one, other), max(one, other) * 2
    for ticks in log_ticks(low, high, base):
        assert all(low <= tick <= high for tick in ticks)
        if base == 2 and high >= 4 * low:
            assert all(tick == Fraction(2) ** floor_log(tick, 2) for tick in ticks)
            assert len({b / a for a, b in pairwise(ticks)}) <= 1


@pytest.mark.parametrize("base", [2, 10])
def test_exact_powers_are_their_own(base: int) -> None:
    for power in range(-400, 400, 7):
        value = Fraction(base) ** power
        assert power == floor_log(value, base) and power - 1 == floor_log(value * (1 - Fraction(1, 10**30)), base)


@TRY
@given(st.lists(VALUES, min_size=1, max_size=4), AXES)
def test_labels_of_ticks_differ(values: list[float], axis: Axis) -> None:
    scale = axis.scale(values, 0, 500)
    _, labels = scale.labels(lambda labels: True)
    assert len(labels) == len({words for _, words in labels})
    at = [scale.place(value) for value, _ in labels]
    assert at == sorted(at) and all(0 <= place <= 500 for place in at)


@pytest.mark.parametrize(
    ("axis", "values", "unit", "written"),
    [
        (Axis("t", units=SECONDS, zero=True), [4e-5], "us", "0, 5, 10, 15, 20, 25, 30, 35, 40"),
        (Axis("b", units=BYTES_PER_SECOND, zero=True), [40e9], "GB/s", "0, 5, 10, 15, 20, 25, 30, 35, 40"),
        (Axis("m", 2, BYTES), [512, 4096], "", "512 B, 1 KiB, 2 KiB, 4 KiB"),
        (Axis("m", 10, SECONDS), [Fraction(1, 100), 1], "", "10 ms, 20 ms, 50 ms, 100 ms, 200 ms, 500 ms, 1 s"),
        (Axis("m", 2), [30, 33], "", "30, 30.5, 31, 31.5, 32, 32.5, 33"),
        (Axis("n", whole=True), [3], "", "3"),
    ],
)
def test_units_of_axes(axis: Axis, values: list[float], unit: str, written: str) -> None:
    found, labels = axis.scale(values, 0, 500).labels(lambda labels: True)
    assert unit == found and written == ", ".join(words for _, words in labels)


def test_decimals() -> None:
    assert ["0.1", "0.30000001", "1e+20", "-2.5"] == [
        decimal(Fraction(1, 10)), decimal(Fraction(30000001, 10**8), Fraction(1, 10**8)), decimal(Fraction(10**20)),
        decimal(Fraction(-5, 2)),
    ]  # fmt: skip


# ---- letters


@TRY
@given(st.text(max_size=40), st.floats(0, 300), st.sampled_from(sorted(FONTS)))
def test_what_is_shortened_fits(text: str, room: float, kind: str) -> None:
    short = lettering.shorten(text, room, kind)
    assert lettering.width(short, kind) <= room + 1e-9
    assert short == text or short == "" or (short.endswith("...") and text.startswith(short[:-3]))


@TRY
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200)), max_size=12))
def test_stacked_spans_do_not_meet(pairs: list[tuple[int, int]]) -> None:
    spans = [(a, a + long) for a, long in pairs]
    for (one, row), (other, later) in combinations(zip(spans, lettering.stack(spans), strict=True), 2):
        assert row < later or one[1] + 10 <= other[0] or other[1] + 10 <= one[0]


@TRY
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 25)), min_size=1, max_size=8, unique_by=lambda r: r[0]))
def test_no_upright_rule_goes_through_a_label(pairs: list[tuple[int, int]]) -> None:
    rules = [Rule(at, "n" * long) for at, long in pairs]
    root = check(Chart("t", Axis("x"), Axis("y"), [Series("c", [(0, 0), (1000, 1)], look(0))], rules).picture().file())
    lines = [node for node in root.findall(f"{SPACE}line") if BOUND.color in kinds(node)]
    ends = [[float(node.get(name, "")) for name in ("x1", "y1", "y2")] for node in lines]
    labels = [box for words, box in boxes(root) if set(words) == {"n"}]
    assert len(rules) == len(lines) and len(labels) == len(rules)
    crossed = [(x, box) for x, top, bottom in ends for box in labels if overlap(Box(x, top, x + 0.5, bottom), box, 0.3)]
    assert not crossed


def test_a_bound_among_many_points_is_named_nevertheless() -> None:
    points = [(k, Fraction(1) + Fraction(k % 5 - 2, 60)) for k in range(200)]
    chart = Chart(
        "t", Axis("x"), Axis("y", zero=True), [Series("c", points, look(0), dots=True)], [Rule(1, "bound", False)]
    )
    assert "bound" in {words for words, _ in boxes(check(chart.picture().file()))}


def test_a_legend_goes_on_in_the_next_line() -> None:
    groups = list(draw_legend([Key("name " * 5, look(i), stroke=True) for i in range(9)], 80, 500, 0))
    assert 9 == len(groups) and 1 < len({dict(each.children[-1].attributes)["y"] for each in groups})


# ---- light, dark and paper; nothing from elsewhere


def luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colors_are_seen_on_light_and_dark() -> None:
    """WCAG 2.1: 4.5 for letters, which bars have inside, in both; 7 for the text of the page."""
    light, dark = STYLE.split("@media screen and (prefers-color-scheme:dark)")
    for rules, paper, index in ((light, "#fff", 0), (dark, "#16181c", 1)):
        assert f".paper{{fill:{paper}}}" in rules
        for i, pair in enumerate(COLORS):
            assert f".c{i}{{color:{pair[index]}}}" in rules and contrast(pair[index], paper) >= 4.5, pair
        assert contrast({0: "#222", 1: "#e4e4e4"}[index], paper) > 7


def test_looks_differ() -> None:
    assert 32 == len({look(i) for i in range(32)})
    assert all(look(i).dash != look(i + 1).dash and look(i).mark != look(i + 1).mark for i in range(7))


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    picture = Chart("a < b", Axis("x"), Axis("y"), [Series("c", [(1, 1)], look(0))]).picture()
    text = picture.file().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"http|url\(|@import|@font-face|<script|href", text)
    assert "<style>" not in picture.inline() and picture.inline().startswith("<svg ") and "a &lt; b" in text


def test_every_class_has_a_rule() -> None:
    rows = [Band("r", [Lane([Bar(0, 1, "k", "in")], [1], "note")])]
    chart = Chart("t", Axis("x"), Axis("y"), [Series(f"c{i}", [(i, 1), (2, i)], look(i), dots=True) for i in range(33)])
    for picture in (Timeline("t", Axis("x"), rows, "p").picture(), chart.picture()):
        for node in ElementTree.fromstring(picture.file()).iter():
            assert all(f".{kind}" in STYLE for kind in kinds(node)), node.get("class")


@given(st.text())
def test_text_comes_back(words: str) -> None:
    element = svg.element("text", words, note=words)
    read = ElementTree.fromstring(str(element))
    allowed = re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", words)
    assert allowed.replace("\r\n", "\n").replace("\r", "\n") == (read.text or "")
    str(element).encode()


# ---- one room

ROOMS = ("ir", "frontends", "passes", "backends", "collc")
#: an element of SVG with its first attribute, in a string
_NOTATION = re.compile(r"<(svg|g|path|line|polyline|rect|circle|text|tspan)\s+[a-zA-Z:-]+=|www\.w3\.org/2000/svg")


def modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def writes_svg(source: str) -> bool:
    return _NOTATION.search(source) is not None


def imported(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of every import, those inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", name.name) for name in node.names)


def test_nobody_else_writes_svg() -> None:
    found = [path for path in modules(*ROOMS, "benchmarks") if writes_svg(path.read_text())]
    assert [ROOT / "backends" / "pictures" / "svg.py"] == found


def test_no_private_name_is_imported_into_or_within_the_room() -> None:
    for path in modules("backends/pictures", "collc/pictures", "collc/cli", "benchmarks"):
        for module, name in imported(path.read_text()):
            private = name.startswith("_") and not name.endswith("__")
            assert not (private and ("pictures" in module or path.parent.name == "pictures")), path


def test_only_plots_draw_with_matplotlib_and_nothing_with_pyplot() -> None:
    for path in modules(*ROOMS):
        source = path.read_text()
        found = list(imported(source)) if "matplotlib" in source else []
        assert not any("pyplot" in (*module.split("."), name) for module, name in found), path
        tops = {module.split(".")[0] for module, _ in found}
        assert "matplotlib" not in tops or path.name in ("plots.py", "plotting.py"), path


def test_planted_violations_are_found() -> None:
    assert writes_svg("x = f'<rect x=\"{a}\"/>'") and not writes_svg("x = 'rect <text> a < b'")
    assert ("matplotlib.pyplot", "") in imported("def f():\n    import matplotlib.pyplot as plt")
    assert ("matplotlib", "pyplot") in imported("from matplotlib import pyplot")
