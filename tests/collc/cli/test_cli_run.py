"""``collc run``: what it takes, on what it runs, what it prints."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from oneccl_files import BROKEN_RULES, VALID, WRONG, broken
from oneccl_runs import executor, oneccl

from collc.backends.mpi_c import installed, toolchain
from collc.backends.mpi_c.installed import Suffixed, choose
from collc.backends.mpi_c.toolchain import Mpi
from collc.backends.oneccl_xml import toolchain as oneccl_toolchain
from collc.backends.oneccl_xml.toolchain import OneCcl
from collc.ir.diagnostic import CollcError
from collc.testbed import obstacle

__all__ = ["executor", "oneccl"]

Collc = Callable[..., Ran]
CUBE = "topology t = hypercube(2){};\ncollective g = allreduce on t;\ncollective h = allgather on t;\n"
TIMED = CUBE.format(" with { bandwidth: 1 Gbps, latency: 2 us }")


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


# ---- the command line


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["-t", "msccl-xml"], "found `msccl-xml`"), (["-t", "oneccl"], "`oneccl-xml`"),
        (["-t", "ir,mpi-c"], "ir,mpi-c"),
        (["-t", "mpi-c{function=f}"], "without options"), (["--place", "up"], "`up`"), (["--warmup", "-1"], "`-1`"),
        (["--csv", "--json"], "takes one form"), (["--delay", "1ms"], "testbed"), (["--mpi-env", "X"], "NAME=VALUE"),
        (["-t", "oneccl-xml", "--mpi", "mpich"], "`--mpi`"), (["-t", "oneccl-xml", "--testbed"], "`--testbed`"),
        (["--oneccl", "/opt"], "`--oneccl`"), (["--testbed=fast"], "fast"), (["--tune"], "`--tune` is not for mpi-c"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(collc: Collc, words: list[str], needed: str) -> None:
    ran = collc("run", written("a.coll", CUBE.format("")), *words)
    assert ran.status == 2 and needed in ran.err and ran.out == "", ran.err


def test_another_number_of_ranks_is_refused_before_anything_is_built(collc: Collc) -> None:
    written("a.coll", CUBE.format(""))
    written("halves.xml", VALID)
    for words in (["a.coll"], ["a.coll", "-t", "oneccl-xml"], ["halves.xml"], ["halves.xml", "-t", "mpi-c"]):
        ran = collc("run", *words, "--ranks", "8")
        assert ran.status == 1 and "C0765" in ran.err and "--ranks needs 8" in ran.err, (words, ran.err)


def test_standard_input_is_read_once(collc: Collc) -> None:
    ran = collc("run", "-", "--ranks", "3", stdin=VALID)
    assert "C0765" in ran.err and "2 ranks" in ran.err


# ---- which MPI


def fake(folder: Path, said: str, suffix: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("mpicc", "mpiexec"):
        path = folder / f"{name}{suffix}"
        path.write_text(f"#!/bin/sh\necho '{said}'\n")
        path.chmod(0o755)
    return folder


def test_an_mpi_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "files", lambda wheel: [])
    for module in (installed, toolchain):
        monkeypatch.setattr(module.sys, "prefix", str(tmp_path / "prefix"))
        monkeypatch.setattr(module.sys, "executable", str(tmp_path / "prefix" / "bin" / "python"))
    mpich = fake(tmp_path / "one", "HYDRA build details:\n    Version:    4.9")
    openmpi = fake(tmp_path / "two", "mpiexec (OpenRTE) 4.1.9")
    environ = {"PATH": f"{mpich}:{openmpi}:{os.environ['PATH']}"}
    assert [(mpi.vendor, mpi.folder) for mpi in installed.installed("", environ)][:2] == [
        ("MPICH", mpich), ("Open MPI", openmpi),
    ]  # fmt: skip
    assert choose("openmpi", environ) == Mpi(openmpi, "Open MPI", "4.1.9")
    assert choose("mpich", environ).folder == choose(None, environ).folder == choose("mpicc", environ).folder == mpich
    assert choose(str(openmpi / "mpicc"), environ).vendor == "Open MPI"
    with pytest.raises(CollcError) as caught:
        choose("impi", environ)
    (found,) = caught.value.diagnostics
    assert found.code == "C0701" and found.notes[:2] == (
        f"found: MPICH 4.9 in {mpich}", f"found: Open MPI 4.1.9 in {openmpi}",
    )  # fmt: skip
    assert found.hint is not None and "impi-rt" in found.hint


def test_an_mpi_among_several_of_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "files", lambda wheel: [])
    both = fake(tmp_path, "HYDRA build details:\n    Version:    4.9")
    fake(tmp_path, "", ".openmpi")
    chosen = choose("openmpi", {"PATH": str(both)})
    assert isinstance(chosen, Suffixed) and chosen.vendor == "Open MPI"
    assert chosen.command(2, ["x"])[0] == f"{both}/mpiexec.openmpi" and chosen.mpicc.name == "mpicc.openmpi"
    assert "PRTE_MCA_rmaps_default_mapping_policy" in chosen.environment({})


def test_no_mpi_of_that_name(collc: Collc) -> None:
    ran = collc("run", written("a.coll", CUBE.format("")), "--mpi", "impi")
    if ran.status == 0:
        pytest.skip("this machine has Intel's MPI")
    assert ran.status == 1 and "no Intel MPI found" in ran.err and "impi-rt" in ran.err


# ---- over MPI


@pytest.mark.needs("mpi")
def test_a_run_over_mpi_compares_predicts_and_writes(collc: Collc, mpich: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLLC_TEST", raising=False)
    words = [
        "--mpi",
        str(mpich.folder),
        "--mpi-env",
        "COLLC_TEST=1",
        "--size",
        "4KiB",
        "--repeat",
        "3",
        "--warmup",
        "2",
    ]
    ran = collc("run", written("a.coll", TIMED), *words, "--compare", "--json", "--csv=rows.csv", "--place", "out")
    assert (ran.status, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert [(row["name"], row["count"], row["size_bytes"], row["in_place"]) for row in found["rows"]] == [
        ("g", 1024, 4096, False), ("h", 256, 4096, False),
    ]  # fmt: skip
    for row in found["rows"]:
        assert row["correct"] and row["repeats"] == 3
        assert 0 < row["min_us"] <= row["q1_us"] <= row["time_us"] <= row["q3_us"]
        assert row["ratio"] == pytest.approx(row["builtin_us"] / row["time_us"], rel=1e-2)
    # 4 steps of 2 us and 3/2 M over two links of 1 Gbit/s; of the allgather half as much
    carried = [1.5 * 4096 * 8 / 2e3, 0.75 * 4096 * 8 / 2e3]
    assert [row["bound_us"] for row in found["rows"]] == pytest.approx(carried, abs=1e-3)
    assert [row["model_us"] for row in found["rows"]] == pytest.approx([8 + carried[0], 4 + carried[1]], abs=1e-3)
    with Path("rows.csv").open(newline="") as file:
        assert [line["name"] for line in csv.DictReader(file)] == ["g", "h"]
    assert "COLLC_TEST" not in os.environ


@pytest.mark.needs("mpi")
def test_a_run_on_a_testbed(collc: Collc, mpich: Mpi) -> None:
    reason = obstacle()
    if reason:
        pytest.skip(f"no testbed: {reason}")
    words = ["--testbed=40Mbps", "--count", "32768", "--repeat", "2", "--place", "out", "--collective", "g", "--json"]
    ran = collc("run", written("a.coll", CUBE.format("")), "--mpi", str(mpich.folder), *words)
    assert (ran.status, ran.err) == (0, "")
    (row,) = json.loads(ran.out)["rows"]
    # 3/2 of 128 KiB over two links of 5 MB/s
    assert row["model_us"] == pytest.approx(1.5 * 131072 / 10, abs=1e-2)
    assert row["time_us"] > 0.9 * row["model_us"]
    ran = collc("run", written("halves.xml", VALID), "-t", "mpi-c", "--mpi", str(mpich.folder), "--testbed")
    assert ran.status == 2 and "no topology" in ran.err


# ---- over oneCCL


@pytest.fixture
def ready(executor: Path, oneccl: OneCcl, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command finds this oneCCL, and the executor that was built with it."""
    monkeypatch.setenv("CCL_ROOT", str(oneccl.root))
    monkeypatch.setattr(oneccl_toolchain, "built", lambda found: executor)
    return executor


@pytest.mark.needs("oneccl")
def test_collectives_run_over_oneccl(collc: Collc, ready: Path) -> None:
    words = ["-t", "oneccl-xml{threads=2}", "--count", "0,1,13", "--repeat", "2", "--compare", "--json"]
    ran = collc("run", written("a.coll", TIMED), *words)
    assert (ran.status, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert found["ok"] and found["mpi"].startswith("oneCCL 20")
    rows = {(row["name"], row["count"], row["in_place"]): row for row in found["rows"]}
    assert len(rows) == 2 * 3 * 2 and all(row["correct"] and row["repeats"] == 2 for row in rows.values())
    assert rows["g", 13, True]["builtin_us"] > 0 and rows["g", 0, True]["builtin_us"] is None
    assert rows["h", 13, False]["size_bytes"] == 4 * 13 * 4 and rows["h", 13, False]["model_us"] > 4


@pytest.mark.needs("oneccl")
def test_what_is_timed_is_kept_and_shown(
    collc: Collc, ready: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of each file by itself; a launch with the same file times nothing again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    written("halves.xml", VALID)
    written("other.xml", VALID.replace('name="halves"', 'name="other"'))

    def kept() -> dict[str, str]:
        return {path.name: path.read_text() for path in (tmp_path / "cache/collc/tuned").iterdir()}

    ran = collc("run", "halves.xml", "--tune", "--count", "1,1000")
    assert ran.status == 0 and "halves: collc: times in " in ran.err, ran.err
    assert [line.split()[:5] for line in ran.err.splitlines() if line.startswith("  allreduce")] == [
        ["allreduce", "2", "1", "4", "B"], ["allreduce", "2", "1", "4", "KiB"],
    ]  # fmt: skip
    before = kept()
    assert len(before) == 1
    assert collc("run", "halves.xml", "--tune", "--count", "1,1000").status == 0 and kept() == before
    assert collc("run", "halves.xml", "--count", "7").status == 0 and kept() == before
    assert collc("run", "other.xml", "--tune", "--count", "1").status == 0
    assert kept().items() > before.items() and len(kept()) == 2
    listed = collc("cache", "check")
    assert listed.status == 0, listed.out


@pytest.mark.needs("oneccl")
def test_a_file_runs_as_it_stands(collc: Collc, ready: Path) -> None:
    text = VALID.replace('name="halves"', 'name="halves" minBytes="8" maxBytes="64"').replace("sum prod", "prod")
    ran = collc("run", written("halves.xml", text), "--dtype", "all", "--place", "in", "--repeat", "1", "--csv")
    assert (ran.status, ran.err) == (0, "")
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert len({row["dtype"] for row in rows}) == 12 and {row["op"] for row in rows} == {"prod"}
    assert all(8 <= int(row["size_bytes"]) <= 64 for row in rows) and {row["in_place"] for row in rows} == {"1"}
    ran = collc("run", "halves.xml", "--count", "100")
    assert ran.status == 2 and "C0764" in ran.err


def test_a_broken_file_is_refused_before_anything_is_started(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oneccl_toolchain, "find", lambda prefix=None: pytest.fail("looked for oneCCL"))
    texts = {
        "C0752": VALID[:-20], "C0753": VALID.replace('channels="2"', ""),
        "C0755": VALID.replace('ranks="2"', 'ranks="3"'), "C0756": broken(BROKEN_RULES["never received"]),
        "C0757": broken(WRONG["a lost wait"]),
    }  # fmt: skip
    for code, text in texts.items():
        ran = collc("run", written("bad.xml", text), "-t", "oneccl-xml")
        assert ran.status == 1 and code in ran.err and ran.out == "", (code, ran.err)


def test_no_oneccl_is_a_message(collc: Collc, tmp_path: Path) -> None:
    ran = collc("run", written("halves.xml", VALID), "--oneccl", str(tmp_path / "none"))
    assert ran.status == 1 and "C0760" in ran.err and "pip install" in ran.err


def test_a_rank_that_dies_is_a_message(
    collc: Collc, oneccl: OneCcl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That the executor ends all ranks and says so stands in test_oneccl_run.py.
    program = tmp_path / "dies"
    program.write_text(
        "#!/bin/sh\necho 'collc-oneccl: rank 1 was killed by signal 9; all others are stopped' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(oneccl_toolchain, "built", lambda found: program)
    ran = collc("run", written("halves.xml", VALID), "--oneccl", str(oneccl.root))
    assert ran.status == 1 and "C0762" in ran.err and "rank 1 was killed by signal 9" in ran.err


def test_the_executor_is_built_once_and_kept(oneccl: OneCcl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def build(found: OneCcl, folder: Path, flags: object = ()) -> Path:
        made.append(folder)
        (folder / "collc-oneccl").write_text("built")
        return folder / "collc-oneccl"

    monkeypatch.setattr(oneccl_toolchain, "build", build)
    environ = {**os.environ, "COLLC_CACHE": str(tmp_path / "cache")}
    first = oneccl_toolchain.built(oneccl, environ)
    assert first.read_text() == "built" and first == oneccl_toolchain.built(oneccl, environ) and len(made) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.parent.name]
    (tmp_path / "file").write_text("")
    aside = oneccl_toolchain.built(oneccl, {**environ, "COLLC_CACHE": str(tmp_path / "file")})
    assert aside.read_text() == "built" and len(made) == 2
