"""The reference executor over the real oneCCL: every element on every rank, and what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest
from commands import gone
from oneccl_files import BROKEN_FORM, BROKEN_RULES, VALID, WRONG, broken
from oneccl_runs import executor, oneccl
from sampling import every

import collc
from collc.backends.oneccl_xml import run as running
from collc.backends.oneccl_xml.model import DTYPES, OPS
from collc.backends.oneccl_xml.run import execute
from collc.backends.oneccl_xml.toolchain import OneCcl, build, find
from collc.ir.diagnostic import CollcError

__all__ = ["executor", "oneccl"]

# One process builds the executor and has the cores while ranks run.
pytestmark = pytest.mark.needs("oneccl")

TORUS, CUBE, RING = (
    {4: "torus(2, 2)", 8: "torus(2, 4)"},
    {4: "hypercube(2)", 8: "hypercube(3)"},
    {4: "torus(4)", 8: "torus(8)"},
)
NETWORKS = {"torus": (TORUS, "bfb"), "hypercube": (CUBE, "bfb"), "forest": (CUBE, "forest"), "swing": (RING, "swing")}


@cache
def _text(network: str, ranks: int, kind: str, threads: int) -> str:
    topologies, scheduler = NETWORKS[network]
    text = f"topology t = {topologies[ranks]}; collective g = {kind} on t; schedule g using {scheduler};"
    return next(iter(collc.compile_source(text, target=f"oneccl-xml{{threads={threads}}}").artifacts.values())).text


def _write(folder: Path, ranks: int) -> list[Path]:
    paths = []
    for network in NETWORKS:
        for threads, kind in enumerate(("allreduce", "allgather", "reduce-scatter"), 1):
            paths.append(folder / f"{network}-{kind}.xml")
            paths[-1].write_text(_text(network, ranks, kind, threads))
    return paths


@pytest.mark.parametrize(("ranks", "counts"), [(4, (0, 1, 13, 1003)), (8, (101,))])
def test_every_network_and_collective_is_exact(
    executor: Path, tmp_path: Path, ranks: int, counts: tuple[int, ...]
) -> None:
    paths = every(1 if ranks == 4 else 2, _write(tmp_path, ranks))
    rows = execute(executor, paths, counts=counts, dtypes=("int32",))
    assert all(row.exact for row in rows)
    assert len({(row.name, row.inplace, row.count) for row in rows}) == len(rows) == len(paths) * 2 * len(counts)


def test_every_element_type_and_operation(executor: Path, tmp_path: Path) -> None:
    paths = _write(tmp_path, 4)[:1]
    rows = execute(executor, paths, counts=(1003,), dtypes=DTYPES, ops=OPS)
    assert {(row.dtype, row.op) for row in rows} == {(dtype, op) for dtype in DTYPES for op in OPS}


def test_other_collectives_and_what_was_put_aside(executor: Path, tmp_path: Path) -> None:
    paths = []
    for kind in (
        "alltoall",
        "broadcast { root: 2 }",
        "reduce { root: 1 }",
        "gather { root: 3 }",
        "scatter { root: 0 }",
    ):
        name, _, root = kind.partition(" ")
        text = f"topology t = torus(2, 2); collective g = {name} on t {root};"
        files = collc.compile_source(text, target="oneccl-xml{threads=2}").artifacts
        paths.append(tmp_path / f"{name}.xml")
        paths[-1].write_text(next(iter(files.values())).text)
    rows = execute(executor, paths, counts=(1, 101), dtypes=("float64",))
    assert {row.name for row in rows} == {path.stem for path in paths}


UNEVEN = """topology t = torus(2, 2);
collective gather_all = allgatherv on t { weights: {5, 0, 1, 2} };
collective exchange = alltoallv on t { matrix: {{0, 1, 2, 3}, {3, 0, 0, 1}, {0, 0, 0, 0}, {1, 1, 1, 0}} };
collective to_one = gatherv on t { weights: {5, 0, 1, 2}, root: 1 };
collective one_has_all = scatterv on t { weights: {0, 0, 7, 0}, root: 3 };
collective shift { pre: 0..ranks, post: {{(r + 1) mod ranks, (r + 2) mod ranks} for r in 0..ranks} }
collective to_two = shift on t;
"""


def test_shards_that_differ_and_conditions_of_one_s_own(executor: Path, tmp_path: Path) -> None:
    """Each element of every rank is right; where oneCCL has the collective, it runs beside."""
    files = collc.compile_source(UNEVEN, target="oneccl-xml{threads=2}").artifacts
    paths = []
    for name, file in files.items():
        paths.append(tmp_path / f"{name}.xml")
        paths[-1].write_text(file.text)
    rows = execute(executor, paths, counts=(0, 1, 101), compare=True)
    assert all(row.exact and not row.inplace for row in rows) and len(rows) == len(paths) * 3
    compared = {row.name for row in rows if row.builtin_times}
    assert compared >= {"gather_all", "exchange"} and "to_two" not in compared


@pytest.mark.parametrize(
    ("old", "new"),
    [('from="0" to="1 2"', 'from="0" to="1 3"'), ('from="0" to="1 2"', 'from="4" to="1 2"'),
     ('from="0" to="1 2"', 'from="0" to="2 1"'), ('inplace="0" outofplace="1"', 'inplace="1" outofplace="0"')],
)  # fmt: skip
def test_a_fault_in_a_file_of_conditions_is_found(executor: Path, tmp_path: Path, old: str, new: str) -> None:
    """By the executor alone, without the check of what was emitted."""
    text = next(
        file.text
        for name, file in collc.compile_source(UNEVEN, target="oneccl-xml").artifacts.items()
        if name == "to_two"
    )
    assert old in text
    (tmp_path / "broken.xml").write_text(text.replace(old, new, 1))
    with pytest.raises(CollcError) as caught:
        execute(executor, [tmp_path / "broken.xml"], counts=(101,), in_place=[False])
    assert caught.value.diagnostics[0].code in ("C0762", "C0763")


def test_a_file_by_hand(executor: Path, tmp_path: Path) -> None:
    (tmp_path / "halves.xml").write_text("\ufeff" + VALID.replace('"input"', '" input "').replace('"0.0"', '" 0.0"'))
    rows = execute(executor, [tmp_path / "halves.xml"], counts=(0, 1, 1001), repeats=20)
    assert len(rows) == 6


# ---- what is refused before anybody communicates


def _start(executor: Path, *words: str) -> tuple[int, str]:
    """Return status and messages of a run that must not get as far as making its ranks."""
    environment = {**os.environ, "TMPDIR": "/nowhere"}  # where ranks would meet
    done = subprocess.run([executor, *words], capture_output=True, text=True, env=environment, timeout=30, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("changes", [BROKEN_FORM, BROKEN_RULES], ids=["form", "rules"])
def test_a_broken_file_is_refused(executor: Path, tmp_path: Path, changes: dict[str, tuple[str, str, str]]) -> None:
    for name, change in changes.items():
        path = tmp_path / "broken.xml"
        path.write_text(broken(change))
        status, message = _start(executor, str(path))
        assert status == 1, name
        assert message.startswith(f"collc-oneccl: {path}: line ") and message.count("\n") == 1, (name, message)
    status, message = _start(executor, str(tmp_path / "none.xml"))
    assert (status, message) == (1, f"collc-oneccl: {tmp_path}/none.xml: cannot be read\n")


def test_what_is_no_oneccl_xml_is_refused(executor: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.xml"
    bomb = '<!DOCTYPE a [<!ENTITY b "bb">]><oneccl/>'
    for text in (
        "",
        "text",
        "<algo/>",
        bomb,
        VALID[:-20],
        VALID.replace("halves", "&b;"),
        VALID + "<a/>",
        "<a>" * 100000,
    ):
        path.write_text(text)
        status, message = _start(executor, str(path))
        assert status == 1 and message.count("\n") == 1, message


@pytest.mark.parametrize(
    ("words", "status", "needed"),
    [(["--dtype", "int33"], 1, "int33"), (["--op", "avg"], 1, "avg"), (["--place", "up"], 1, "up"),
     (["--count", "x"], 2, "`x`"), (["--count"], 2, "needs a value"),
    (["--what", "1"], 2, "--what"), (["--timeout", "0"], 2, "not in")],
)  # fmt: skip
def test_calls_that_the_file_is_not_for(
    executor: Path, tmp_path: Path, words: list[str], status: int, needed: str
) -> None:
    (tmp_path / "halves.xml").write_text(VALID)
    found, message = _start(executor, str(tmp_path / "halves.xml"), *words)
    assert found == status and needed in message


def test_files_of_other_rank_counts_do_not_run_together(executor: Path, tmp_path: Path) -> None:
    paths = _write(tmp_path, 4)[:1]
    (tmp_path / "halves.xml").write_text(VALID)
    with pytest.raises(CollcError) as caught:
        execute(executor, [*paths, tmp_path / "halves.xml"])
    assert caught.value.diagnostics[0].code == "C0762" and "different numbers" in caught.value.diagnostics[0].notes[0]


# ---- what goes wrong on the way


def test_wrong_results_are_seen(executor: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.xml").write_text(broken(WRONG["nothing added"]))
    with pytest.raises(CollcError) as caught:
        execute(executor, [tmp_path / "wrong.xml"], counts=(10,))
    first = caught.value.diagnostics[0]
    assert first.code == "C0763" and "output element" in first.notes[0]


def test_a_size_that_the_file_is_not_for(executor: Path, tmp_path: Path) -> None:
    (tmp_path / "small.xml").write_text(VALID.replace('name="halves"', 'name="halves" maxBytes="100"'))
    with pytest.raises(CollcError) as caught:
        execute(executor, [tmp_path / "small.xml"], counts=(25, 26))
    assert any("104 bytes" in note for note in caught.value.diagnostics[0].notes)


def _ranks(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def test_a_killed_rank_ends_all_with_a_message(executor: Path, tmp_path: Path) -> None:
    (tmp_path / "halves.xml").write_text(VALID)
    command = [
        str(executor),
        str(tmp_path / "halves.xml"),
        "--count",
        "100000",
        "--repeat",
        "100000",
        "--timeout",
        "60",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while len(ranks := _ranks(process.pid)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(ranks[1], signal.SIGKILL)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "rank 1 was killed by signal 9" in message
    assert all(gone(rank) for rank in ranks)


def test_time_has_a_limit(executor: Path, tmp_path: Path) -> None:
    (tmp_path / "halves.xml").write_text(VALID)
    with pytest.raises(CollcError) as caught:
        execute(executor, [tmp_path / "halves.xml"], counts=(100000,), repeats=1000000, timeout=1.0)
    assert caught.value.diagnostics[0].code == "C0762"
    assert any("longer than 1 s" in note for note in caught.value.diagnostics[0].notes)


# ---- the toolchain


def test_no_oneccl(tmp_path: Path) -> None:
    for prefix, environ in ((tmp_path, {}), (None, {"CCL_ROOT": str(tmp_path)})):
        with pytest.raises(CollcError) as caught:
            found = find(prefix, environ)
            pytest.skip(f"this Python has one: {found.root}")
        assert caught.value.diagnostics[0].code == "C0760" and "libccl.a" in caught.value.diagnostics[0].notes[0]


def test_no_compiler_or_one_that_refuses(oneccl: OneCcl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(CollcError, match="refused") as caught:
        build(oneccl, tmp_path)
    assert caught.value.diagnostics[0].code == "C0761"
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollcError, match=r"no C\+\+ compiler") as caught:
        build(oneccl, tmp_path)
    assert caught.value.diagnostics[0].code == "C0761"


def test_run_builds_and_runs_a_text_that_it_has_verified(
    executor: Path, oneccl: OneCcl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "built", lambda found: executor)
    assert [row.exact for row in running.run(VALID, counts=(7,), oneccl=oneccl, in_place=(True,))] == [True]
    with pytest.raises(CollcError) as caught:
        running.run(broken(WRONG["a lost wait"]), oneccl=oneccl)
    assert caught.value.diagnostics[0].code == "C0757"
    with pytest.raises(CollcError) as caught:
        running.run(VALID, counts=(), oneccl=oneccl)
    assert caught.value.diagnostics[0].code == "C0764"
