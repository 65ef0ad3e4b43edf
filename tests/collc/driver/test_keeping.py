"""The cache of compilations: a hit has the bytes of a miss, every input is in the key, wrong entries are ignored."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pytest
from commands import Ran

import collc as api
from collc.driver import keeping, records
from collc.files.store import opened
from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import Diagnostic, Source, Span
from collc.ir.verify import Check, Report

RING = "param n = 4;\ntopology ring = biring(n);\ncollective sums = allreduce on ring;\n"
BOTH = RING + "collective parts = allgather on ring;\nemit sums as msccl-xml;\nemit parts as mpi-c;\n"


def told(result: api.Result) -> dict[str, object]:
    """Return all that a result offers without its schedules and programs."""
    return {
        "files": {name: (file.text, file.target) for name, file in result.files.items()},
        "diagnostics": result.diagnostics,
        "names": list(result.collectives),
        "reports": [one.reports for one in result],
        "remarks": [one.remarks for one in result],
        "choices": [one.choice for one in result],
    }


def kept(result: api.Result) -> list[bool]:
    return [one.is_kept for one in result]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (RING, {"target": "msccl-xml"}),
        (BOTH, {}),
        (BOTH, {"collective": "sums", "level": 0}),
        (RING, {"target": ["msccl-xml{runtime=rccl}", "mpi-c", "ir"], "params": {"n": 6}}),
        ("collective c = allreduce on biring(4); schedule c using auto { sizes: all };", {"target": "msccl-xml"}),
        ("collective c = allgather on dgx_a100(2); schedule c using forest;", {"target": "oneccl-xml"}),
        ("collective c = alltoall on mesh(2, 3);", {"target": "ir{level=schedule}"}),
        (BOTH.replace("emit parts as mpi-c;", ""), {}),  # a warning
    ],
)
def test_a_hit_is_the_same_as_a_miss(text: str, options: dict[str, Any], tmp_path: Path) -> None:
    plain = api.compile_source(text, **options)
    miss = api.compile_source(text, cache=tmp_path / "cache", **options)
    hit = api.compile_source(text, cache=tmp_path / "cache", **options)
    assert (set(kept(miss)), set(kept(hit))) == ({False}, {True})
    assert told(plain) == told(miss) == told(hit)
    for one, other in zip(plain, hit, strict=True):
        assert one.cost == other.cost
        assert one.program == other.program and one.schedule == other.schedule and one.forest == other.forest
        assert len(one.each) == len(other.each)


def test_costs_are_kept_when_they_are_first_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = api.compile_source(RING, target="ir").cost
    assert expected == api.compile_source(RING, target="ir", cache=tmp_path / "cache").cost

    def again(*_: object) -> None:
        raise AssertionError("nothing is to be compiled again")

    monkeypatch.setattr(keeping, "compiled", again)
    hit = api.compile_source(RING, target="ir", cache=tmp_path / "cache")
    assert expected == hit.cost
    assert "Result(sums: allreduce on ring, 4 ranks, from the cache)" == repr(hit)


def test_the_cache_is_off_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    api.compile_source(RING, target="ir")
    assert [] == list(tmp_path.iterdir())
    api.compile_source(RING, target="ir", cache=True)
    assert kept(api.compile_source(RING, target="ir", cache=True)) == [True]
    assert (tmp_path / "collc" / "results").is_dir()


def test_a_default_folder_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "collc").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert api.compile_source(RING, target="ir", cache=True).files
    with pytest.raises(api.CollcError, match="C0085"):
        api.compile_source(RING, target="ir", cache=tmp_path / "collc")


# ---- keys


CHANGES: dict[str, dict[str, Any]] = {
    "text": {"text": RING + "# more\n"},
    "path": {"path": "other.coll"},
    "params": {"params": {"n": 5}},
    "target": {"target": "ir{level=schedule}"},
    "level": {"level": 1},
    "passes": {"passes": "bfb"},
    "disabled": {"disable_passes": ["fuse"]},
    "verify": {"verify": "full"},
    "collective": {"collective": "sums"},
    "node limit": {"node_limit": 100},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_every_option_is_in_the_key(change: dict[str, Any], tmp_path: Path) -> None:
    usual: dict[str, Any] = {"text": RING, "target": "ir", "cache": tmp_path / "cache"}
    api.compile_source(**usual)
    assert [True] == kept(api.compile_source(**usual))
    assert [False] == kept(api.compile_source(**usual | change))


def test_included_files_are_in_the_key(tmp_path: Path) -> None:
    (tmp_path / "main.coll").write_text('include "site.coll";\ncollective c = allgather on pod;\n')
    ranks = []
    for size in (4, 5, 4):
        (tmp_path / "site.coll").write_text(f"topology pod = biring({size});\n")
        result = api.compile(tmp_path / "main.coll", target="ir", cache=tmp_path / "cache")
        ranks.append((result.program.num_ranks, kept(result)))
    assert [(4, [False]), (5, [False]), (4, [True])] == ranks


def test_given_topologies_are_in_the_key(tmp_path: Path) -> None:
    def hit(expression: str) -> list[bool]:
        given = {"pod": api.topology(expression)}
        text = "collective c = allgather on pod; schedule c using bfb;"
        return kept(api.compile_source(text, topologies=given, target="ir", cache=tmp_path / "cache"))

    expressions = ("biring(4)", "biring(5)", "hypercube(2)", "line(complete(3))", "line(uniring(3))")
    assert [[False]] * 5 == [hit(one) for one in expressions]
    assert [[True]] * 5 == [hit(one) for one in expressions]


def test_how_a_topology_was_built_is_in_the_key(tmp_path: Path) -> None:
    """The scheduler `expansion` undoes operators; networks are equal without them."""
    built = api.topology("line(complete(3))")
    written = attrs.evolve(built, origin=None)
    assert built == written
    found = []
    for given in (built, written):
        text = "collective c = allgather on pod; schedule c using bfb;"
        result = api.compile_source(text, topologies={"pod": given}, target="ir", cache=tmp_path)
        found += kept(result)
    assert [False, False] == found


def test_the_surroundings_are_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = keeping._surroundings()
    assert {"collc", "highspy", "numpy", "networkx"} <= {name for name, _ in found[0]}  # type: ignore[attr-defined]
    files = {name for room in found[2] for name, *_ in room}  # type: ignore[attr-defined]
    assert {"driver/keeping.py", "topology.py", "coll/elaborate.py", "base.py"} <= files
    api.compile_source(RING, target="ir", cache=tmp_path)
    monkeypatch.setattr(keeping, "_surroundings", lambda: ("another version",))
    assert [False] == kept(api.compile_source(RING, target="ir", cache=tmp_path))


@pytest.mark.slow
def test_processes_share_a_cache_under_any_hash_seed(tmp_path: Path) -> None:
    code = "import sys, collc; collc.compile_source(sys.argv[1], target='ir', params={'n': 4}, cache=sys.argv[2])"
    command = [sys.executable, "-c", code, RING, str(tmp_path / "cache")]
    running = [
        subprocess.Popen(command, env={"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": "1"}) for seed in ("0", "7")
    ]
    assert [0, 0] == [process.wait(120) for process in running]
    assert 1 == opened(str(tmp_path / "cache")).contents().entries
    assert [True] == kept(api.compile_source(RING, target="ir", params={"n": 4}, cache=tmp_path / "cache"))


# ---- wrong entries


def damaged(path: Path, how: str) -> None:
    head, _, body = path.read_text().partition("\n")
    if how == "truncated":
        path.write_text((head + "\n" + body)[:-40])
    elif how == "empty":
        path.write_text("")
    else:  # a right digest of something else
        text = {"other": "[1, 2]", "no json": "{", "unknown": '[{"is":"Popen"}]', "deep": "[" * 10**5}[how]
        path.write_text(f"collc-store 1 {hashlib.sha256(text.encode()).hexdigest()}\n{text}")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["truncated", "empty", "other", "no json", "unknown", "deep"])
def test_a_wrong_entry_is_ignored_and_written_again(how: str, tmp_path: Path) -> None:
    expected = told(api.compile_source(RING, target="msccl-xml", cache=tmp_path))
    [path] = tmp_path.glob("*.json")
    damaged(path, how)
    again = api.compile_source(RING, target="msccl-xml", cache=tmp_path)
    assert ([False], expected) == (kept(again), told(again))
    hit = api.compile_source(RING, target="msccl-xml", cache=tmp_path)
    assert ([True], expected) == (kept(hit), told(hit))


def test_threads_share_a_cache(tmp_path: Path) -> None:
    expected = told(api.compile_source(RING, target="msccl-xml"))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: told(api.compile_source(RING, target="msccl-xml", cache=tmp_path)), range(6))
    assert [expected] * 6 == list(found)


# ---- records


def test_records_are_exact() -> None:
    source = Source("a.coll", "text\n")
    value = (
        Fraction(1, 3), None, True, (), "\udcff", 2**70,
        Diagnostic("C0101", "wrong", span=Span(source, 1, 1, 1, 2), notes=("n",)),
        Report("schedule", "allgather", 4, (Check("a", True, "b"),)),
        api.compile_source(RING).cost,
    )  # fmt: skip
    again = records.read(records.written(value))
    assert value == again
    assert isinstance(again, tuple) and isinstance(again[-1], Cost) and type(again[2]) is bool


@pytest.mark.parametrize("value", [object(), {1: 2}, 1.5, [1], Path("a"), api.Result])
def test_other_objects_have_no_record(value: object) -> None:
    with pytest.raises(TypeError):
        records.written((value,))


@pytest.mark.parametrize("text", ["", "{", '{"is":"Path"}', '{"q":"1/0"}', '{"is":"Check"}', '{"is":"Check","x":1}'])
def test_other_texts_are_no_records(text: str) -> None:
    with pytest.raises(ValueError):
        records.read(text)


# ---- the command


def test_the_command_shows_and_clears_the_cache(collc: Callable[..., Ran], tmp_path: Path) -> None:
    Path("ring.coll").write_text(RING)
    cache = str(tmp_path / "cache")
    first = collc("ring.coll", "-t", "msccl-xml", f"--cache={cache}")
    text = Path("ring.xml").read_bytes()
    second = collc("ring.coll", "-t", "msccl-xml", f"--cache={cache}", "-v")
    assert (0, 0, text) == (first.status, second.status, Path("ring.xml").read_bytes())
    assert "from the cache" in second.err
    assert "entries  1\n" in collc("cache", "--cache", cache).out
    assert '"entries": 1' in collc("cache", "info", "--json", "--cache", cache).out
    assert collc("cache", "clear", "--cache", cache).out.startswith("removed 1 entry, ")
    assert "entries  0\n" in collc("cache", "--cache", cache).out
    assert collc("cache", "clean").status == 2


def test_options_that_show_the_compilation_compile(collc: Callable[..., Ran], tmp_path: Path) -> None:
    Path("ring.coll").write_text(RING)
    words = ("ring.coll", "-t", "msccl-xml", f"--cache={tmp_path / 'cache'}")
    collc(*words)
    for option in ("--json", "--time-passes", "--dump-ir=bfb", "--print-pipeline", "--profile=p.json"):
        plain, again = collc(*words[:-1], option), collc(*words, option)
        assert (plain.out, bool(plain.err)) == (again.out, bool(again.err)), option


def test_a_shared_cache_folder_is_refused(collc: Callable[..., Ran], tmp_path: Path) -> None:
    Path("ring.coll").write_text(RING)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    ran = collc("ring.coll", "-t", "msccl-xml", f"--cache={shared}")
    assert (1, True) == (ran.status, "C0085" in ran.err)
    shutil.rmtree(shared)
