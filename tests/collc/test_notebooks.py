"""Results in notebooks: tables, data frames, pictures."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from notebook_results import EVIL, FRAMED, HTML, result_of, tags_of

import collc
from collc.ir.frames import dataframe

pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install 'collc[pandas]'")
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'collc[plot]'")


# ---- tables


@pytest.mark.parametrize("name", HTML)
def test_every_result_is_a_table_and_foreign_names_stay_texts(name: str) -> None:
    text = result_of(name)._repr_html_()
    tags, open_tags, texts = tags_of(text)
    assert [] == open_tags and {"table", "caption", "tr", "td"} <= tags <= {"table", "caption", "tr", "th", "td"}
    if name.startswith("evil"):
        assert any("<script>" in one for one in texts)


def test_a_planted_tag_is_found() -> None:
    tags, _, _ = tags_of(f"<table><tr><td>{EVIL}</td></tr></table>")
    assert "script" in tags


def test_every_public_class_of_results_has_a_table() -> None:
    """A class that `collc` exports and that has rows shows as a table and gives a data frame."""
    named = {name: getattr(collc, name) for name in collc.__all__}
    results = {
        name for name, one in named.items()
        if isinstance(one, type) and not issubclass(one, BaseException) and name not in NO_RESULTS
    }  # fmt: skip
    known = {"Result", "CollectiveResult", "Sweep", "FaultCost", "ImportedNetwork", "Frontier", "Training"}
    assert known | {"Run", "Table"} <= results
    assert [] == [name for name in results if not hasattr(named[name], "_repr_html_")]
    assert [] == [name for name in results if not hasattr(named[name], "to_dataframe")]


def returned() -> dict[str, set[str]]:
    """Return the classes of ours that each public function says it returns, and those of its methods that are results.

    The annotations of functions are texts.
    """
    functions = {name: getattr(collc, name) for name in collc.__all__ if name not in NO_RESULTS}
    calls = {name: one for name, one in functions.items() if callable(one) and not isinstance(one, type)}
    calls |= {
        f"{owner}.{name}": one.fget if isinstance(one, property) else getattr(one, "func", one)
        for owner, cls in functions.items() if isinstance(cls, type) and not issubclass(cls, BaseException)
        for name, one in vars(cls).items() if not name.startswith("_")
    }  # fmt: skip
    found = {}
    for name, one in calls.items():
        text = getattr(one, "__annotations__", {}).get("return", "")
        found[name] = set(re.findall(r"\b[A-Z]\w+", text)) & CLASSES.keys()
    return found


#: classes that functions and methods of the API return -> where they are
CLASSES = {
    "Result": "collc.results", "CollectiveResult": "collc.driver.result", "Cost": "collc.ir.costs.cost",
    "Simulated": "collc.driver.simulated", "Frontier": "collc.tools.finding", "Report": "collc.ir.verify",
    "Topology": "collc.ir.topology", "Sweep": "collc.sweeping.sweep", "FaultCost": "collc.driver.replan",
    "ImportedNetwork": "collc.tools.importing", "Training": "collc.training.predicting",
    "Table": "collc.tables.columns", "Run": "collc.running.result", "Choice": "collc.selection",
}  # fmt: skip


def test_every_class_that_the_functions_return_has_both_methods() -> None:
    found = set().union(*returned().values())
    assert found == set(CLASSES) - NOT_ANNOTATED
    for name, module in CLASSES.items():
        cls = getattr(import_module(module), name)
        assert [] == [method for method in ("_repr_html_", "to_dataframe") if not callable(getattr(cls, method, None))]


#: fields of other results
NOT_ANNOTATED = {"Choice"}

#: what callers pass, and parts of other results
NO_RESULTS = {"Cancel", "Progress", "Diagnostic", "Fault", "SweepRow"}


# ---- data frames

#: result -> (rows, a column with a type of pandas, its first value)
EXPECTED: dict[str, tuple[int, str, str, object]] = {
    "result": (2, "T_B", "object", Fraction(16, 9)), "collective": (1, "ranks", "Int64", 9),
    "cost": (3, "size_bytes", "Int64", 1024), "simulated": (2, "time_us", "float64", None),
    "frontier": (3, "best", "boolean", True), "report": (None, "ok", "boolean", True),  # type: ignore[dict-item]
    "topology": (36, "src_name", "object", "0"), "sweep": (2, "time_s", "object", None),
    "faults": (1, "healthy", "object", Fraction(2, 9)), "imported": (8, "bandwidth", "object", Fraction(50 * 10**9)),
    "training": (2, "best", "boolean", True), "listing": (None, "networks", "object", None),  # type: ignore[dict-item]
    "choice": (1, "min_bytes", "Int64", 1 << 20), "roots": (2, "best", "Int64", 0),
    "run": (1, "time_us", "float64", 2.0), "part of a run": (1, "time_us", "float64", 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMED)
def test_every_result_is_a_data_frame(name: str) -> None:
    found = result_of(name).to_dataframe()
    count, column, kind, first = EXPECTED[name]
    assert isinstance(found, pandas.DataFrame) and (count is None or len(found) == count)
    assert str(found[column].dtype) == kind
    assert first is None or found[column].iloc[0] == first


def test_frames_have_the_values_of_the_results() -> None:
    result = result_of("result")
    frame = result["sums"].cost.to_dataframe(["1KiB", "64MiB"])
    assert [float(result["sums"].cost.time(size)) * 1e6 for size in (1 << 10, 1 << 26)] == frame["time_us"].tolist()
    frontier = result_of("frontier")
    mine = frontier.to_dataframe()
    assert [row.expression for row in frontier.frontier] == mine["expression"].tolist()[: len(frontier.frontier)]
    assert [row.T_B for row in frontier.frontier] == mine["T_B"].tolist()[: len(frontier.frontier)]
    sweep = result_of("sweep").to_dataframe()
    assert [row.time for row in result_of("sweep").rows] == sweep["time_s"].tolist()


def test_columns_do_not_depend_on_the_values() -> None:
    kinds = {"a": "text", "b": "integer", "c": "number", "d": "rational", "e": "flag"}
    empty, full = dataframe(kinds, []), dataframe(kinds, [{"a": "x", "b": 1, "c": 1.5, "d": Fraction(1, 3), "e": True}])
    holes = dataframe(kinds, [{}, {"b": 2**62}])
    for frame in (empty, full, holes):
        assert list(kinds) == list(frame.columns)
        assert full.dtypes.tolist() == frame.dtypes.tolist()
    assert 2**62 == holes["b"].iloc[1] and holes["b"].isna().iloc[0] and "" == holes["a"].iloc[0]


@pytest.mark.parametrize("name", FRAMED)
def test_without_pandas_the_message_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(name)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(collc.CollcError, match="C0028") as caught:
        result.to_dataframe()
    assert "install it: pip install 'collc[pandas]'" == caught.value.diagnostics[0].hint


# ---- pictures

#: result -> its pictures, the default first
PICTURES = {
    "result": ["goodput"], "collective": ["goodput", "loads"], "cost": ["goodput"], "simulated": ["goodput", "loads"],
    "frontier": ["frontier"], "sweep": ["goodput"], "faults": ["faults"],
}  # fmt: skip
EACH = [(name, kind) for name, kinds in PICTURES.items() for kind in kinds]


@cache
def figure(name: str, kind: str | None = None) -> Any:  # Any: matplotlib's types are not known
    return collc.plot(result_of(name), kind)  # type: ignore[arg-type]  # a name of a picture


def series(axes: Any) -> Iterator[tuple[str, str, str, str]]:  # Any: as above
    """Color, dashes and mark of every curve, with its label."""
    for line in axes.get_lines():
        yield str(line.get_label()), str(line.get_color()), str(line._unscaled_dash_pattern), str(line.get_marker())


@pytest.mark.parametrize(("name", "kind"), EACH)
def test_a_picture_has_titles_and_units(name: str, kind: str) -> None:
    [axes] = figure(name, kind).axes
    assert axes.get_title() and axes.get_ylabel() and (axes.get_xlabel() or kind == "faults")
    assert axes.lines or axes.patches or axes.collections


@pytest.mark.parametrize("name", PICTURES)
def test_the_first_picture_is_the_default(name: str) -> None:
    assert figure(name).axes[0].get_title() == figure(name, PICTURES[name][0]).axes[0].get_title()


@pytest.mark.parametrize(("name", "kind"), EACH)
def test_a_notebook_shows_it_and_the_bytes_repeat(name: str, kind: str) -> None:
    one, two = (collc.plot(result_of(name), kind)._repr_png_() for _ in range(2))  # type: ignore[arg-type,attr-defined]
    assert one == two and one.startswith(b"\x89PNG")


def test_curves_are_the_times_of_the_model() -> None:
    cost = result_of("cost")
    [axes] = collc.plot(cost, sizes=["1KiB", "1MiB"]).axes
    curve, bound = axes.get_lines()
    assert [1 << 10, 1 << 20] == list(curve.get_xdata())
    assert [float(size / cost.time(size)) for size in (1 << 10, 1 << 20)] == list(curve.get_ydata())
    assert "bound of allreduce" == bound.get_label()
    assert all(b >= c for b, c in zip(bound.get_ydata(), curve.get_ydata(), strict=True))


def test_loads_are_those_of_the_simulator() -> None:
    simulated = result_of("simulated")
    [axes] = collc.plot(simulated, "loads").axes
    heights = [bar.get_height() for bar in axes.patches]
    topology = simulated.simulation.topology
    assert topology.num_links == len(heights) and heights == sorted(heights, reverse=True)
    # every rank of an allreduce sends 2 (N - 1) / N of the vector
    assert sum(heights) == pytest.approx(9 * 2 * 8 / 9)


def test_a_frontier_has_its_rows_and_bounds() -> None:
    frontier = result_of("frontier")
    [axes] = figure("frontier").axes
    points = {tuple(place) for one in axes.collections for place in one.get_offsets().tolist()}
    assert {(float(row.T_L), float(row.T_B)) for row in frontier.frontier} == points
    assert {f"bound: {frontier.bound[0]} steps", f"bound: {frontier.bound[1]} M/B"} <= {s[0] for s in series(axes)}


def test_curves_differ_without_colors() -> None:
    """Dashes and marks together tell any two curves apart, and bounds have no mark."""
    sweep = collc.sweep(["torus(3)", "torus(4)"], ["allgather", "allreduce"], ["bfb", "ring"], sizes="1KiB,1MiB")
    [axes] = collc.plot(sweep).axes
    looks = [(dash, mark) for label, _, dash, mark in series(axes) if not label.startswith("bound")]
    assert 8 == len(looks) == len(set(looks))
    bounds = [(dash, mark) for label, _, dash, mark in series(axes) if label.startswith("bound")]
    assert 4 == len(set(bounds)) and {mark for _, mark in bounds} == {"None"}
    assert not set(bounds) & set(looks)


def test_names_are_texts_and_no_mathematics() -> None:
    sweep = collc.sweep({"$x^{$": "torus(3)", "_hidden": "biring(3)"}, "allgather", "bfb", sizes="1KiB,1MiB")
    shown = collc.plot(sweep)
    shown.savefig(io.BytesIO(), format="png")
    labels = shown.axes[0].get_legend_handles_labels()[1]
    assert any(r"\$x^{\$" in label for label in labels) and any("hidden" in label for label in labels)


def test_a_picture_goes_on_axes_that_are_given() -> None:
    from matplotlib.figure import Figure

    mine = Figure()
    left, right = mine.subplots(1, 2)
    assert collc.plot(result_of("cost"), ax=left) is mine
    assert left.lines and not right.lines


@pytest.mark.parametrize(("name", "kind"), [("cost", "loads"), ("frontier", "goodput"), ("report", None),
                                            ("topology", None), ("result", "loads")])  # fmt: skip
def test_a_picture_that_does_not_exist_is_an_error(name: str, kind: str | None) -> None:
    with pytest.raises(collc.CollcError, match="C0019"):
        collc.plot(result_of(name), kind)  # type: ignore[arg-type]  # what is tried


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(collc.CollcError, match="C0028") as caught:
        collc.plot(result_of("cost"))
    assert "install it: pip install 'collc[plot]'" == caught.value.diagnostics[0].hint


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def test_nothing_global_changes_and_no_window_opens() -> None:
    draw = "collc.plot(collc.compile_source('collective c = allgather on biring(4);'))._repr_png_()\n"
    assert "False\n" == run(f"import collc, sys\n{draw}print('matplotlib.pyplot' in sys.modules)")
    compare = "print(dict(matplotlib.rcParams) == before)"
    assert "True\n" == run(f"import collc, matplotlib\nbefore = dict(matplotlib.rcParams)\n{draw}{compare}")


@pytest.mark.parametrize("name", ["pandas", "matplotlib", "pyarrow"])
def test_packages_are_loaded_on_use(name: str) -> None:
    assert "False\n" == run(
        f"import collc, sys; collc.compile; collc.plot; collc.Sweep; print({name!r} in sys.modules)"
    )


def test_compilation_loads_neither_sweeps_nor_pictures() -> None:
    loaded = "[m for m in ('collc.sweeping', 'collc.pictures.plots', 'collc.tables.listed') if m in sys.modules]"
    assert "[]\n" == run(f"import collc, sys; collc.compile, collc.find, collc.Result; print({loaded})")


def test_threads_draw_at_the_same_time() -> None:
    from concurrent.futures import ThreadPoolExecutor

    draw: Callable[[int], bytes] = lambda _: collc.plot(result_of("cost"))._repr_png_()  # type: ignore[attr-defined]  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        assert 1 == len(set(pool.map(draw, range(8))))


def test_a_long_title_stays_in_the_picture() -> None:
    text = "topology t { rank r[2, 3]; switch s; for b in 0..2, g in 0..3 { link r[b, g] <-> s : 123.456789 GB/s; } }"
    made = collc.compile_source(f"{text} collective a_rather_long_name_of_sums = reduce-scatter on t;")
    figure = collc.plot(made)
    figure.canvas.draw()
    (axes,) = figure.axes
    assert len(axes.get_title()) == 80
    box, whole = axes.title.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1
