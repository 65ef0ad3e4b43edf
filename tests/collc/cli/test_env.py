"""``collc env`` and files that are loaded together: what a launcher sets, and what no file alone shows."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Ran
from foreign_files import IN_PLACE, alltoall, ring, written
from hypothesis import given
from hypothesis import strategies as st
from msccl_files import nodes

from collc.backends.msccl_xml import read
from collc.backends.msccl_xml.bundle import Member, accepting_runtimes, check_together, common_call, unserved_calls
from collc.backends.msccl_xml.loading import config_text, environment
from collc.backends.msccl_xml.profiles import PROFILES
from collc.ir.diagnostic import CollcError

Collc = Callable[..., Ran]


def sized(low: int, high: int | None, name: str = "ring", ranks: int = 4, **head: object) -> str:
    return ring(ranks, name=name, minBytes=low, maxBytes=high, **head)


def in_folder(**texts: str) -> None:
    Path("algos").mkdir()
    for name, text in texts.items():
        written(f"algos/{name}.xml", text)


def failed(members: list[Member], runtime: str | None = None) -> dict[str, str]:
    return {c.name: c.detail for c in check_together(members, runtime) if not c.ok}


# ---- the environment


def test_a_shell_sets_what_is_printed(collc: Collc, tmp_path: Path) -> None:
    """Even where a folder's name is one that shells would take apart."""
    folder = tmp_path / "a b$(touch x)'\"#"
    folder.mkdir()
    (folder / "r.xml").write_text(sized(0, 65536))
    ran = collc("env", str(folder), "--runtime", "executor")
    assert (ran.status, ran.err) == (0, "")
    script = f"eval {shlex.quote(ran.out)}; env -0"
    shown = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, check=True, text=True, cwd=tmp_path).stdout
    set_ = dict(line.split("=", 1) for line in shown.split("\0") if "=" in line)
    assert (set_["MSCCL_ALGO_DIR"], set_["NCCL_MSCCL_ENABLE"], set_["NCCL_DEBUG"]) == (str(folder), "1", "INFO")
    assert sorted(p.name for p in tmp_path.iterdir()) == [folder.name]


@pytest.mark.parametrize(
    ("runtime", "wanted"),
    [
        ("executor", {"NCCL_MSCCL_ENABLE": "1", "MSCCL_ALGO_DIR": "{algos}"}),
        ("rccl", {"RCCL_MSCCL_ENABLE": "1", "RCCL_MSCCL_FORCE_ENABLE": "1", "MSCCL_ALGO_DIR": "{algos}"}),
        ("msccl", {"MSCCL_XML_FILES": "{algos}/large.xml:{algos}/small.xml", "NCCL_ALGO": "MSCCL,RING,TREE"}),
    ],
)
def test_every_runtime_is_told_in_its_own_way(collc: Collc, runtime: str, wanted: dict[str, str]) -> None:
    in_folder(large=alltoall(3, minBytes=65536, maxBytes=1 << 20, name="large"), small=alltoall(3, maxBytes=65535))
    ran = collc("env", "algos", "--runtime", runtime, "--shell", "json")
    assert (ran.status, ran.err) == (0, "")
    found = json.loads(ran.out)
    here = str(Path("algos").resolve())
    assert found["runtime"] == runtime
    assert {name: found["variables"][name] for name in wanted} == {
        name: value.format(algos=here) for name, value in wanted.items()
    }
    assert found["variables"]["NCCL_DEBUG"] == "INFO"
    assert len(found["look_for"]) >= 2
    beyond = runtime == "msccl"
    assert [(f["min_bytes"], f["max_bytes"], f["outofplace"]) for f in found["files"]] == [
        (65536, (1 << 20) - beyond, True), (0, 65535 - beyond, True),
    ]  # fmt: skip


def test_without_a_runtime_the_first_that_takes_all(collc: Collc) -> None:
    Path("one").mkdir()
    written("one/ring.xml", ring(4, maxBytes=None))
    assert collc("env", "one").out.startswith("# microsoft/msccl: ")
    written("one/ring.xml", ring(4))
    assert collc("env", "one").out.startswith("# msccl-executor-nccl: ")
    written("one/other.xml", ring(5, maxBytes=None))
    ran = collc("env", "one")
    assert (ran.status, "no runtime accepts all 2 files [C0654]" in ran.err) == (1, True)


def test_the_list_that_msccl_reads(collc: Collc) -> None:
    """Lower-case names, exclusive bounds, nothing that its tokeniser stops at."""
    in_folder(a=sized(0, 4096, "a"), b=sized(4096, 1 << 20, "b"))
    ran = collc("env", "algos", "--runtime", "msccl", "--config", "algos/list", "--shell", "json")
    assert json.loads(ran.out)["variables"]["MSCCL_CONFIG"] == str(Path("algos/list").resolve())
    tags = [(name, values) for kind, name, values in nodes(Path("algos/list").read_text()) if kind != "close"]
    here = str(Path("algos").resolve())
    assert tags == [
        ("msccl_algos", {}),
        ("load", {"path": f"{here}/a.xml", "minbytes": "0", "maxbytes": "4096", "proto": "Simple"}),
        ("load", {"path": f"{here}/b.xml", "minbytes": "4096", "maxbytes": str(1 << 20), "proto": "Simple"}),
    ]
    again = collc("env", "algos", "--runtime", "msccl", "--config", "algos/list")
    assert (again.status, "MSCCL_CONFIG=" in again.out) == (0, True)
    assert "--config writes the list of files for msccl" in collc("env", "algos", "--config", "x").err


def test_paths_that_cannot_be_told() -> None:
    algorithm = read(sized(0, 4096))
    apart = [Member("a/x.xml", algorithm), Member("b/y.xml", algorithm)]
    for members, runtime in ((apart, "rccl"), (apart, "executor"), ([Member("a:b.xml", algorithm)], "msccl")):
        with pytest.raises(CollcError) as failure:
            environment(members, runtime)
        assert failure.value.diagnostics[0].code == "C0653"
    assert environment([Member("a:b.xml", algorithm)], "msccl", "list").variables[0][0] == "MSCCL_CONFIG"
    for path in ("x" * 256, 'a"b.xml', "a\nb.xml"):
        with pytest.raises(CollcError) as failure:
            config_text([Member(path, algorithm)])
        assert failure.value.diagnostics[0].code == "C0653"


def test_files_that_would_not_be_used_are_named(collc: Collc) -> None:
    in_folder(ring=sized(0, 4096))
    ran = collc("env", "algos", "--runtime", "rccl")
    assert (ran.status, ran.out) == (1, "")
    assert "RCCL would not run `algos/ring.xml` [C0654]" in ran.err
    written("algos/ring.xml", "<?xml version='1.0'?>\n" + sized(0, 4096))
    assert "an XML declaration stops the runtimes" in collc("env", "algos", "--runtime", "executor").err


def test_a_folder_is_loaded_with_all_that_is_in_it(collc: Collc) -> None:
    in_folder(ring=sized(0, 4096))
    Path("algos/sub").mkdir()
    assert collc("env", "algos").status == collc("env", "algos/ring.xml").status == 0
    written("algos/notes.txt", "to do")
    for given_ in ("algos", "algos/ring.xml"):
        ran = collc("env", given_)
        assert (ran.status, "also these: `notes.txt` [C0655]" in ran.err) == (1, True)
    assert collc("env", "algos", "--runtime", "msccl").status == 0
    written("algos/other.xml", sized(0, 4096, ranks=5))
    assert "`other.xml`" in collc("env", "algos/ring.xml").err


def test_a_byte_order_mark_stops_the_runtimes(collc: Collc) -> None:
    """No editor shows it, and XML may have it."""
    Path("a.xml").write_bytes(b"\xef\xbb\xbf" + sized(0, 4096).encode())
    ran = collc("verify", "a.xml")
    assert (ran.status, "a byte order mark stops the runtimes" in ran.out) == (1, True)
    assert collc("convert", "a.xml", "-t", "msccl-xml", "-o", "b.xml").status == 0
    assert collc("verify", "b.xml").status == 0


def test_comments_and_names_are_of_any_encoding(collc: Collc) -> None:
    latin = sized(0, 4096).replace('name="ring"', 'name="Ring f\xfcr vier"')
    Path("a.xml").write_bytes(f"<!-- f\xfcr -->\n{latin}".encode("latin-1"))
    assert collc("verify", "a.xml").status == 0
    assert collc("convert", "a.xml", "-t", "msccl-xml", "-o", "b.xml").status == 0
    assert read(Path("b.xml").read_text()).name == "Ring_f_r_vier"


def test_what_holds_no_algorithm(collc: Collc) -> None:
    Path("empty").mkdir()
    assert "there is no algorithm in `empty` [C0654]" in collc("env", "empty").err
    written("empty/x", "x")
    assert "empty/x: not XML" in collc("env", "empty").err
    assert "[C0002]" in collc("env", "missing").err
    assert "[C0001]" in collc("env", "-").err
    assert "[C0606]" in collc("env", written("r.xml", ring(3)), "--runtime", "nccl").err


# ---- several files


@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 40), st.integers(1, 40), st.sampled_from([2, 3, 4, 6]))
def test_a_call_is_common_exactly_where_some_size_suits_both(a: int, b: int, c: int, d: int, ranks: int) -> None:
    """Against every size there is: multiples of both files' chunks, within both windows."""
    one, other = read(sized(a, a + b, ranks=ranks)), read(sized(c, c + d, ranks=ranks))
    for name, end in (("executor", 0), ("msccl", 1)):
        profile = PROFILES[name]
        suits = [
            n for n in range(1, 100)
            if n % ranks == 0 and a <= n <= a + b - end and c <= n <= c + d - end
        ]  # fmt: skip
        assert common_call(one, other, profile) == (suits[0] if suits else None)


@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (sized(0, 4096), True),
        (sized(4096, 8192), True),
        (sized(4097, 8192), False),
        (sized(4097, 0), False),
        (sized(0, 0), True),
        (sized(0, 4096, ranks=5), False),
        (alltoall(4, minBytes=0, maxBytes=4096), False),
        (sized(0, 4096, inplace=0), True),
        (sized(0, 4096).replace('coll="allreduce"', 'coll="reduce"'), False),
    ],
)
def test_which_files_are_for_the_same_call(other: str, meets: bool) -> None:
    members = [Member("a.xml", read(sized(0, 4096))), Member("b.xml", read(other))]
    assert ("windows" in failed(members, "executor")) == meets
    if meets:
        assert "`a.xml` and `b.xml` both serve allreduce on 4 ranks" in failed(members, "executor")["windows"]


def test_a_file_in_place_and_one_out_of_place_do_not_meet() -> None:
    members = [Member("a.xml", read(sized(0, 4096, outofplace=0))), Member("b.xml", read(sized(0, 4096, inplace=0)))]
    assert "windows" not in failed(members, "executor")
    assert "windows" not in failed(members, "msccl")


def test_an_exclusive_bound_meets_later() -> None:
    """4096 is the first size of the second file; for the executor it is the last of the first too."""
    members = [Member("a.xml", read(sized(0, 4096, "a"))), Member("b.xml", read(sized(4096, 8192, "b")))]
    assert failed(members, "msccl") == {}
    assert "calls of 4096 bytes" in failed(members, "executor")["windows"]


def test_names_and_numbers() -> None:
    many = [Member(f"{k}.xml", read(sized(k * 4096 + 1, (k + 1) * 4096, f"r{k}"))) for k in range(5)]
    assert set(failed(many, "msccl")) == {"number"}
    assert (
        "microsoft/msccl loads 4 files, found 5; it ignores the files from `4.xml` on"
        in failed(many, "msccl")["number"]
    )
    assert failed(many, "executor") == failed(many) == {}  # one runtime that loads so many is enough
    twice = [many[0], Member("b.xml", read(sized(8192, 9000, "r0")))]
    assert "both name their algorithm `r0`" in failed(twice, "msccl")["names"]
    assert failed(twice, "executor") == {}  # which reads no names
    assert "a folder can hold only one of them" in failed([many[0], Member("sub/0.xml", many[1].algorithm)])["names"]
    assert "are the same file" in failed([many[0], many[0]])["names"]
    assert [p.name for p in accepting_runtimes(many)] == ["executor", "msccl"]


def test_env_refuses_what_would_not_be_used(collc: Collc) -> None:
    texts = {f"r{k}": sized(k * 4096, (k + 1) * 4096, "r") for k in range(5)}
    in_folder(**texts)
    ran = collc("env", "algos", "--runtime", "msccl")
    assert all(f"[{code}]" in ran.err for code in ("C0651", "C0652"))
    assert "[C0650]" not in ran.err
    assert "[C0650]" in collc("env", "algos", "--runtime", "executor").err


def test_verify_takes_several_files(collc: Collc) -> None:
    written("a.xml", sized(0, 4096, "a"))
    written("b.xml", sized(4096, 0, "b"))
    written("c.xml", sized(4097, 0, "c"))
    ran = collc("verify", "a.xml", "b.xml", "--runtime", "executor")
    assert (ran.status, ran.out.count("verified:"), ran.out.count("WRONG")) == (1, 2, 1)
    assert "together: WRONG: allreduce on 4 ranks" in ran.out
    ran = collc("verify", "a.xml", "c.xml", "--runtime", "executor", "--json")
    found = json.loads(ran.out)
    assert (ran.status, found["ok"], [f["path"] for f in found["files"]]) == (0, True, ["a.xml", "c.xml", "together"])
    assert {"kind", "collective", "ranks", "checks"} <= set(found)
    written("r.coll", "topology r = biring(3);\ncollective s = allreduce on r;")
    ran = collc("verify", "a.xml", "r.coll")
    assert (ran.status, "together" in ran.out) == (0, False)
    assert collc("verify", "a.xml", written("bad.xml", IN_PLACE.replace('type="re"', 'type="cpy"'))).status == 1


def test_what_collc_writes_for_ranges_is_loaded_together(collc: Collc) -> None:
    """From a specification over files to an environment, for two sizes of one collective."""
    written("r.coll", "topology r = biring(4);\ncollective s = allreduce on r;")
    Path("out").mkdir()
    small = "msccl-xml{max-bytes=65536,algorithm=small,proto=LL}"
    assert collc("r.coll", "-t", small, "-o", "out/small.xml").status == 0
    assert collc("r.coll", "-t", "msccl-xml{min-bytes=65537,algorithm=large}", "-o", "out/large.xml").status == 0
    assert collc("verify", "out/small.xml", "out/large.xml", "--runtime", "executor").status == 0
    assert collc("env", "out").status == 0


# ---- what a loader picks


def picked(found: dict[str, Any], coll: str, size: int, elements: int, inplace: bool) -> list[str]:
    """Return the files a runtime could use for a call, the one it takes first: its own rules, from the text alone."""
    variables = found["variables"]
    paths = variables["MSCCL_XML_FILES"].split(":") if "MSCCL_XML_FILES" in variables else []
    paths = paths or sorted(str(path) for path in Path(variables["MSCCL_ALGO_DIR"]).iterdir())
    chosen = []
    for path in paths:
        head = next(values for kind, name, values in nodes(Path(path).read_text()) if name == "algo")
        low, high = int(head["minBytes"]), int(head["maxBytes"])
        if found["runtime"] == "msccl":
            fits = int(head["inplace"]) == inplace and low <= size < high
        else:
            fits = head["inplace" if inplace else "outofplace"] == "1" and low <= size and (high == 0 or size <= high)
        if fits and head["coll"] == coll and elements % int(head["nchunksperloop"]) == 0:
            chosen.append(Path(path).name)
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("runtime", list(PROFILES))
def test_a_loader_picks_the_file_that_is_named_for_a_call(collc: Collc, runtime: str) -> None:
    """From one specification for all sizes to the file that runs: exactly one, of the range that its name says."""
    text = "topology t = torus(4, 4);\ncollective sums = allreduce on t;\nschedule sums using auto { sizes: all };\n"
    text += "collective all = allgather on t;\nschedule all using bfb;\n"
    assert collc("compile", written("t.coll", text), "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "out/").status == 0
    found = json.loads(collc("env", "out", "--runtime", runtime, "--shell", "json").out)
    assert len(found["files"]) > 2
    chunks = {file["coll"]: file["elements_multiple_of"] for file in found["files"]}
    ends = {end for file in found["files"] for end in (file["min_bytes"], file["max_bytes"]) if end}
    for coll, unit in chunks.items():
        near = {size for end in ends for size in (end // unit * unit, -(-end // unit) * unit)}
        for size in sorted({unit, unit << 10, unit << 20, *near} - {0}):
            inside = [
                Path(f["path"]).name for f in found["files"]
                if f["coll"] == coll and f["min_bytes"] <= size <= (f["max_bytes"] or size)
            ]  # fmt: skip
            assert len(inside) == (size <= 1 << 37)
            assert picked(found, coll, size, size, True) == inside
            assert picked(found, coll, size, size, False) == ([] if runtime == "msccl" else inside)
            assert unit == 1 or picked(found, coll, size + 1, size + 1, True) == []


def test_calls_without_a_file_are_named(collc: Collc) -> None:
    """Between two files, and where one use alone is covered: nothing else would tell."""
    in_folder(small=sized(0, 65536, "small"), large=sized(131072, 0, "large"))
    ran = collc("env", "algos", "--runtime", "executor")
    assert "no file serves allreduce on 4 ranks of 65537 to 131071 bytes\n" in ran.out
    Path("algos/large.xml").write_text(sized(65537, 0, "large", outofplace=0))
    ran = collc("env", "algos", "--runtime", "executor")
    assert ran.status == 0 and "no file serves" not in ran.out


def test_gaps() -> None:
    def of(*windows: tuple[int, int | None], **head: object) -> list[str]:
        members = [Member(f"{k}.xml", read(sized(*window, f"n{k}", **head))) for k, window in enumerate(windows)]  # type: ignore[arg-type]
        return unserved_calls(members, PROFILES["executor"])

    assert of((0, 99), (100, 0)) == []
    assert of((100, 199), (0, 99)) == []
    assert of((0, 100), (104, 0)) == []  # no multiple of the chunks between them
    assert of((0, 99), (108, 0)) == ["no file serves allreduce on 4 ranks of 100 to 107 bytes"]
    assert of((0, 0), (108, 0)) == []
    assert of((0, 99), (200, 0), inplace=0) == [
        "no file serves allreduce on 4 ranks in place",
        "no file serves allreduce on 4 ranks out of place of 100 to 199 bytes",
    ]
    both = [Member("a", read(sized(0, 99, outofplace=0))), Member("b", read(sized(0, 99, inplace=0)))]
    assert unserved_calls(both, PROFILES["executor"]) == []
    assert unserved_calls(both[:1], PROFILES["executor"]) == ["no file serves allreduce on 4 ranks out of place"]
