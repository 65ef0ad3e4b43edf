"""Sweeps: equal to `collc cost`, the same for any workers, mistakes as rows, files, caches."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import networkx
import pytest
from commands import COMMAND, Ran, spawn
from jsonschema import Draft202012Validator

import collc as library
from collc.ir.costs.cost import predicted_time
from collc.sweeping import sweep as sweeping
from collc.sweeping.cases import Case, collective_of, run
from collc.tables.listed import SWEEP
from collc.tables.schemas import schema

Collc = Callable[..., Ran]
CASES = ("sweep", "--on", "torus(3, 3)", "biring(4)", "--collective", "allreduce", "alltoall", "--using", "bfb",
         "swing", "--size", "1KiB,1MiB")  # fmt: skip


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# ---- what the rows say


def test_rows_come_in_the_order_of_the_arguments(collc: Collc) -> None:
    found = rows(collc(*CASES, "-j1", "--csv").out)
    expected = [
        (network, kind, using, size)
        for network in ("torus(3, 3)", "biring(4)") for kind in ("allreduce", "alltoall")
        for using in ("bfb", "swing") for size in ("1024", "1048576")
    ]  # fmt: skip
    assert expected == [(row["network"], row["collective"], row["using"], row["size_bytes"]) for row in found]
    assert [column.key for column in SWEEP] == list(found[0])


@pytest.mark.parametrize("using", ["bfb", "forest{k=1}", "swing", "auto"])
@pytest.mark.parametrize("network", ["torus(3, 3)", "dgx_a100(2)"])
def test_rows_are_those_of_cost(collc: Collc, tmp_path: Path, network: str, using: str) -> None:
    """At every size the steps, times and bounds of `collc cost`, which plans each size anew."""
    words = ("--size", "1KiB,64MiB", "--alpha", "3us", "--bandwidth", "200Gbps", "--gamma", "500GB/s", "--csv")
    name, _, options = using.partition("{")
    braces = f" {{ {options[:-1].replace('=', ': ')} }}" if options else ""
    spec = tmp_path / "a.coll"
    spec.write_text(f"collective c = allreduce on {network};\nschedule c using {name}{braces};\n")
    ran = collc("cost", str(spec), *words)
    found = rows(collc("sweep", "--on", network, "--collective", "allreduce", "--using", using, "-j1", *words).out)
    if ran.status:
        assert all(row["time_us"] == "" and row["code"] in ran.err and row["message"] in ran.err for row in found)
        return
    for row, other in zip(found, rows(ran.out), strict=True):
        for key in ("size_bytes", "steps", "pieces", "time_us", "algbw_GBps", "busbw_GBps"):
            assert row[key] == other[key], key
        bound = Fraction(other["time_per_byte_bound"]) * int(row["size_bytes"])
        assert float(row["bound_us"]) > 0 and bound > 0
        assert float(row["over_bound"]) == pytest.approx(float(row["time_us"]) / float(row["bound_us"]))


def test_exact_times_and_bounds() -> None:
    found = library.sweep("torus(3, 3)", "allreduce", "bfb", sizes=[10**6], alpha=Fraction(1, 10**6), launch="20us")
    cost = library.compile_source("collective c = allreduce on torus(3, 3); schedule c using bfb;").cost
    [row] = found.rows
    assert row.time == predicted_time(cost, 10**6, Fraction(1, 10**6), None, None, Fraction(2, 10**5))
    assert row.time is not None and row.bound is not None and row.bound < row.time
    assert (row.T_B, row.T_L, row.ranks, row.degree) == (Fraction(16, 9), 4, 9, 4)


def test_one_row_is_the_best_of_each_collective_and_size(collc: Collc) -> None:
    found = rows(collc(*CASES, "-j1", "--csv").out)
    for network, kind, size in {(row["network"], row["collective"], row["size_bytes"]) for row in found}:
        mine = [r for r in found if (r["network"], r["collective"], r["size_bytes"]) == (network, kind, size)]
        best, *more = [row for row in mine if row["best"] == "1"] or [None]
        assert best is not None if any(row["time_us"] for row in mine) else best is None
        if best is None:
            continue
        assert not more and float(best["time_us"]) == min(float(row["time_us"]) for row in mine if row["time_us"])


# ---- mistakes are rows


def test_what_cannot_be_scheduled_has_the_code_and_the_message(collc: Collc) -> None:
    words = ("--on", "torus(2, 2", "hypercube(30)", "torus(3, 3)", "--collective", "alltoall", "--using",
             "swing", "flow", "flow{chunkz=3}", "--size", "1KiB", "-j1")  # fmt: skip
    ran = collc("sweep", *words, "--csv")
    assert (0, "") == (ran.status, ran.err)
    codes = [row["code"] for row in rows(ran.out)]
    assert ["C0103"] * 3 + [codes[3]] * 3 + ["C0591", "", "C0009"] == codes and codes[3].startswith("C")
    assert all(bool(row["message"]) == bool(row["code"]) for row in rows(ran.out))
    assert "3 rows" not in ran.out and "8 rows without a schedule" in collc("sweep", *words).out


def test_the_status_is_that_of_the_mistakes_if_nothing_has_a_time(collc: Collc) -> None:
    words = ("sweep", "--on", "circulant(9, {2, 3})", "--collective", "alltoall", "--using", "swing", "-j1", "--csv")
    ran = collc(*words)
    assert ran.status in (1, 3) and 3 == len(rows(ran.out))


def test_an_internal_error_is_a_row_and_the_status(monkeypatch: pytest.MonkeyPatch, collc: Collc) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("collc.sweeping.cases.compiled", broken)
    ran = collc("sweep", "--on", "torus(3)", "--collective", "allreduce", "--cache=kept", "-j1", "--csv")
    assert 70 == ran.status and {"C0070"} == {row["code"] for row in rows(ran.out)} and "planted" in ran.out
    assert [] == list(Path("kept").glob("*.json"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--collective", "allreduce"), "C0001"), (("--on", "torus(3)"), "C0001"),
        (("--on", "torus(3)", "--collective", "alreduce"), "C0029"),
        (("--on", "torus(3)", "--collective", "allreduce", "--using", "bfp"), "C0015"),
        (("--on", "torus(3)", "--collective", "allreduce", "--using", "bfb,swing"), "C0006"),
        (("--on", "torus(3)", "--collective", "allreduce", "--using", "steps"), "C0015"),
        (("--on", "torus(3)", "--collective", "allreduce", "-o", "table.xls"), "C0029"),
        (("--on", "torus(3)", "--collective", "allreduce", "-o", "missing/table.csv"), "C0004"),
        (("--on", "missing.coll", "--collective", "allreduce"), "C0002"),
        (("--on", "torus(3)", "--collective", "allreduce", "--json", "--csv"), "C0001"),
        (("--on", "torus(3)", "--collective", "allreduce", "--executor", "threads"), "C0036"),
        (("--on", "torus(3)", "--collective", "allreduce", "--size", "1 furlong"), "C0020"),
    ],
)  # fmt: skip
def test_wrong_command_lines_are_refused_before_any_work(
    collc: Collc, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: str
) -> None:
    monkeypatch.setattr(sweeping, "run", None)
    ran = collc("sweep", *words)
    assert (True, "") == (ran.status in (1, 2), ran.out) and code in ran.err


def test_near_names_are_suggested() -> None:
    with pytest.raises(library.CollcError, match="C0029") as caught:
        collective_of("alreduce", ["allgather", "allreduce"])
    assert "allreduce" in (caught.value.diagnostics[0].hint or "")
    assert "allreduce { op: max }" == collective_of(" allreduce{op: max}", ["allreduce"])


@pytest.mark.parametrize(
    "text", ["broadcast { root: 0 }; include \"a.coll\"; collective d = allgather on network {}",
             "broadcast { root: 0 } } {", "broadcast {} on network {}", "broadcast { root: 0 # }", "broadcast root: 0",
             "broadcast { root: 0", ""]
)  # fmt: skip
def test_a_collective_is_one_collective(text: str) -> None:
    """No text of a collective brings other statements, which could read files."""
    with pytest.raises(library.CollcError, match="C0029"):
        library.sweep("torus(3)", text, "bfb")


def test_several_roots_are_refused() -> None:
    [row] = library.sweep("mesh(3)", "broadcast { root: {0, 1} }", "forest", sizes=1024).rows
    assert ("C0029", True) == (row.code, "one" in row.message)


# ---- networks


def test_topologies_of_files_graphs_and_objects(collc: Collc) -> None:
    Path("pod.coll").write_text("param n = 3; topology a = torus(n, n); topology b = biring(n);\n")
    ran = collc("sweep", "pod.coll", "--collective", "allgather", "--using", "bfb", "-D", "n=4", "-j1", "--csv",
                "--size", "1KiB")  # fmt: skip
    assert [("pod.coll: a", "16"), ("pod.coll: b", "4")] == [(r["network"], r["ranks"]) for r in rows(ran.out)]
    graphs = {"petersen": networkx.petersen_graph(), "ring": library.topology("biring(4)"), "text": "torus(2, 2)"}
    found = library.sweep(graphs, "allgather", "bfb", sizes=1024).rows
    assert [("petersen", 10), ("ring", 4), ("text", 4)] == [(row.network, row.ranks) for row in found]


def test_names_that_are_formulas_stay_texts(collc: Collc) -> None:
    Path("=1+1.coll").write_text("topology a = biring(3);\n")
    ran = collc("sweep", "=1+1.coll", "--collective", "allgather", "--using", "bfb", "--size", "1KiB", "-j1", "--csv")
    assert "'=1+1.coll: a" == rows(ran.out)[0]["network"]


# ---- workers


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_bytes_do_not_depend_on_the_workers(collc: Collc, form: str) -> None:
    for name, how in (("one", ["-j1"]), ("two", ["--executor", "processes:2"])):
        assert Ran(0, "", "") == collc(*CASES, *how, "-o", f"{name}.{form}")
    assert Path(f"one.{form}").read_bytes() == Path(f"two.{form}").read_bytes()


@pytest.mark.slow
def test_bytes_do_not_depend_on_hash_seeds(tmp_path: Path) -> None:
    texts = {spawn(*CASES, "-j1", "--csv", cwd=tmp_path, PYTHONHASHSEED=seed).stdout for seed in ("0", "77")}
    assert 1 == len(texts) and 17 == next(iter(texts)).count("\n")


@pytest.mark.slow
def test_dask_gives_the_same_rows(collc: Collc) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'collc[dask]'")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made:
        ran = collc(*CASES, "--executor", f"dask:{made.scheduler_address}", "--csv")
    assert collc(*CASES, "-j1", "--csv") == ran


def test_the_api_takes_the_engines_of_the_command() -> None:
    one = library.sweep(["torus(3)", "biring(4)"], "allgather", ["bfb", "ring"])
    two = library.sweep(["torus(3)", "biring(4)"], "allgather", ["bfb", "ring"], executor="processes:1")
    assert one.rows == two.rows
    with pytest.raises(library.CollcError, match="C0036"):
        library.sweep("torus(3)", "allgather", executor="threads")


def test_progress_and_cancellation() -> None:
    seen: list[tuple[int, int]] = []
    library.sweep(
        "torus(3)", "allgather", ["bfb", "ring"], progress=lambda what, done, total: seen.append((done, total))
    )
    assert (0, 2) in seen and (2, 2) == seen[-1]
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(library.Cancelled):
        library.sweep("torus(3)", "allgather", cancel=cancel)


# ---- the cache


def test_finished_cases_are_kept(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = collc(*CASES, "-j1", "--csv").out
    assert whole == collc(*CASES, "-j1", "--csv", "--cache=kept").out
    assert 8 == len(list(Path("kept").glob("*.json")))
    monkeypatch.setattr(sweeping, "run", None)
    assert whole == collc(*CASES, "-j1", "--csv", "--cache=kept").out


@pytest.mark.parametrize("more", [("--alpha", "1us"), ("--bandwidth", "1Gbps"), ("--size", "1KiB,1GiB"),
                                  ("--verify", "off"), ("--gamma", "1GB/s"), ("--epsilon", "1us")])  # fmt: skip
def test_other_inputs_are_other_entries(collc: Collc, more: tuple[str, ...]) -> None:
    words = ("sweep", "--on", "torus(3)", "--collective", "allreduce", "--using", "bfb", "-j1", "--csv")
    plain = collc(*words, *more).out
    collc(*words, "--cache=kept")
    assert plain == collc(*words, *more, "--cache=kept").out
    assert 2 == len(list(Path("kept").glob("*.json")))


def test_a_damaged_entry_is_computed_again(collc: Collc) -> None:
    words = ("sweep", "--on", "torus(3)", "--collective", "allreduce", "--using", "bfb", "-j1", "--csv", "--cache=kept")
    whole = collc(*words).out
    [entry] = Path("kept").glob("*.json")
    for text in (entry.read_text().replace('"bfb"', '"bfx"'), "", "collc-store 1 0\n[]"):
        entry.write_text(text)
        assert whole == collc(*words).out
    assert Ran(0, "checked 1 entry: all are whole\n", "") == collc("cache", "check", "--cache=kept")


def test_a_network_of_the_same_name_is_another_entry(collc: Collc) -> None:
    words = ("sweep", "pod.coll", "--collective", "allgather", "--using", "bfb", "-j1", "--csv", "--cache=kept")
    texts = []
    for size in (3, 4):
        Path("pod.coll").write_text(f"topology a = biring({size});\n")
        texts.append(collc(*words).out)
    assert texts[0] != texts[1]


@pytest.mark.slow
def test_a_sweep_that_was_interrupted_leaves_no_table_and_goes_on(collc: Collc, tmp_path: Path) -> None:
    words = ("sweep", "--on", *(f"torus({n}, {n})" for n in range(3, 10)), "--collective", "allreduce", "--using",
             "bfb", "forest", "--cache=kept", "-o", "table.csv")  # fmt: skip
    running = subprocess.Popen(
        [str(COMMAND), *words, "-j2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    limit = time.monotonic() + 60
    while not list(Path("kept").glob("*.json")) and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    assert (b"", b"") == running.communicate(timeout=60)
    assert 130 == running.returncode
    kept = len(list(Path("kept").glob("*.json")))
    assert 0 < kept < 14 and not Path("table.csv").exists() and [] == list(tmp_path.glob("*.tmp"))
    assert 0 == collc(*words, "-j1").status
    first = Path("table.csv").read_bytes()
    assert 0 == collc(*words, "-j1", "--cache=other").status
    assert first == Path("table.csv").read_bytes()


# ---- files


def test_json_is_as_its_schema_says(collc: Collc) -> None:
    found = json.loads(collc(*CASES, "-j1", "--json").out)
    strict = schema("sweep")
    Draft202012Validator(strict).validate(found)
    assert 16 == len(found["rows"]) and found["failed"] == sum("code" in row for row in found["rows"]) > 0
    assert not Draft202012Validator(strict).is_valid({**found, "rows": [{"network": 3}]})
    collc(*CASES, "-j1", "-o", "a.json")
    assert found == json.loads(Path("a.json").read_text())


def test_all_forms_hold_the_same(collc: Collc) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'collc[parquet]'")
    for form in ("csv", "parquet", "md"):
        assert Ran(0, "", "") == collc(*CASES, "-j1", "-o", f"a.{form}")
    table = parquet.read_table("a.parquet").to_pylist()
    for row, other in zip(table, rows(Path("a.csv").read_text()), strict=True):
        texts = {key: "" if value is None else str(int(value) if isinstance(value, bool) else value)
                 for key, value in row.items()}  # fmt: skip
        assert texts == other
    assert 18 == Path("a.md").read_text().count("\n")
    assert collc(*CASES, "-j1", "--csv").out == Path("a.csv").read_text()


def test_a_table_is_written_beside_what_is_printed(collc: Collc) -> None:
    assert collc(*CASES, "-j1", "--json").out == collc(*CASES, "-j1", "--json", "-o", "a.csv").out
    assert Path("a.csv").read_text() == collc(*CASES, "-j1", "--csv").out


def test_parquet_without_its_package_is_refused_before_any_work(
    collc: Collc, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sweeping, "run", None)
    ran = collc(*CASES, "-o", "a.parquet")
    assert (1, "", True, True) == (ran.status, ran.out, "C0028" in ran.err, "pip install 'collc[parquet]'" in ran.err)


def test_the_result_writes_what_the_command_writes(collc: Collc) -> None:
    found = library.sweep(["torus(3, 3)", "biring(4)"], ["allreduce", "alltoall"], ["bfb", "swing"], sizes="1KiB,1MiB")
    for form in ("csv", "json", "md"):
        collc(*CASES, "-j1", "-o", f"a.{form}")
        found.write(f"b.{form}")
        assert Path(f"a.{form}").read_bytes() == Path(f"b.{form}").read_bytes()
    with pytest.raises(library.CollcError, match="C0029"):
        found.write("b.txt")


def test_a_case_is_small_to_send() -> None:
    """Workers of a cluster get a case and send its rows: no schedule is sent."""
    import pickle

    [case] = sweeping.cases({"t": "torus(16, 16)"}, ["allgather"], ["bfb"], [1024], sweeping.Prediction())
    assert isinstance(case, Case) and len(pickle.dumps(run(case))) < 10_000
