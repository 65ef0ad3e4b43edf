"""The backend of torch.distributed on a real torch: against gloo under torchrun, and where things go wrong.

Torch is installed into a folder of its own, once; without it these are skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from places import HELPERS, ROOT
from torch_runs import Torch, torch

from collc.ir.diagnostic import CollcError
from collc.torch import catalog, configure
from collc.torch.catalog import compiled
from collc.torch.settings import Settings, settings

__all__ = ["torch"]

# Jobs of several processes: they have the cores while they run.
pytestmark = pytest.mark.needs("torch")

FOUR = """
param side = 3;
topology square = torus(side, 2);
topology pair = torus(2);
collective grads   = allreduce on square;             schedule grads using bfb;
collective shards  = allgather on square;             schedule shards using bfb;
collective pieces  = reduce-scatter on square;        schedule pieces using bfb;
collective weights = broadcast on square { root: 0 }; schedule weights using bfb;
collective loss    = reduce on square { root: 1 };    schedule loss using bfb;
collective parts   = gather on square { root: 1 };    schedule parts using exact;
collective batch   = scatter on square { root: 1 };   schedule batch using exact;
collective tokens  = alltoall on square;              schedule tokens using flow;
collective both    = allreduce on pair;               schedule both using bfb;
"""
THREE = """
param chunks = 3;
topology ring = torus(3);
collective grads = allreduce on ring; schedule grads using bfb;
"""


def installed(folder: Path) -> str:
    """Return a path with collc's entry point as an installation writes it; this environment's may be older."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = folder / "collc_entry-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: collc-entry\nVersion: 0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return str(folder)


@pytest.mark.parametrize("engine", ["1", "0"])
def test_every_collective_and_training_as_under_gloo(torch: Torch, tmp_path: Path, engine: str) -> None:
    """A program that does not import collc, under plain torchrun; without the engine, in forked ranks."""
    (tmp_path / "four.coll").write_text(FOUR)
    given = {
        "COLLC_SPEC": str(tmp_path / "four.coll"), "COLLC_DEFINES": '{"side": 2}', "COLLC_STATS": "1",
        "COLLC_TORCH_ENGINE": engine, "PYTHONPATH": os.pathsep.join([str(torch.folder), installed(tmp_path)]),
    }  # fmt: skip
    program = HELPERS / "torch_checks.py"
    if engine == "1":
        status, written = torch.torchrun(4, [str(program), "--autoload"], **given)
    else:
        status, written = torch.ranks(4, program, ["--autoload"], **given)
        assert written.count("ended with 0") == 4, written
    assert status == 0, written
    served = json.loads(written.split("\nserved ")[1].splitlines()[0])
    kinds = ("allreduce", "allgather", "reduce-scatter", "broadcast", "alltoall", "reduce", "gather", "scatter")
    assert all(served[kind] > 0 for kind in kinds), served
    assert served["allreduce"] > 150
    assert ("messages over gloo: rank 0: COLLC_TORCH_ENGINE is 0" in written) == (engine == "0")
    found = re.search(r"collc: torch group \S+ of 4 ranks: served (\d+) \(.*allreduce (\d+).*delegated \d+", written)
    assert found and int(found[1]) == sum(served.values()) and int(found[2]) == served["allreduce"]


#: with every root: ZeroRedundancyOptimizer broadcasts from all ranks
EVERY_ROOT = re.sub(r"root: \d", "root: all", FOUR)
#: ways to train, and what each imports
WAYS = {
    "ddp": "torch.nn.parallel",
    "zero": "torch.distributed.optim",
    "fsdp2": "torch.distributed.fsdp",
    "tensor_parallel": "torch.distributed.tensor.parallel",
    "pipeline": "torch.distributed.pipelining",
}


def test_nothing_of_training_is_delegated_that_has_a_schedule(torch: Torch, tmp_path: Path) -> None:
    """DDP, ZeRO, FSDP2 and tensor parallelism give the parameters of one process, and need no collective of gloo."""
    (tmp_path / "four.coll").write_text(EVERY_ROOT)
    path = os.pathsep.join([str(torch.folder), installed(tmp_path)])
    status, written = torch.ranks(
        4, HELPERS / "torch_training.py", [" ".join(WAYS)], COLLC_SPEC=str(tmp_path / "four.coll"),
        COLLC_DEFINES='{"side": 2}', COLLC_CHECK_MODULES=" ".join(WAYS.values()), PYTHONPATH=path,
    )  # fmt: skip
    assert (status, written.count("ended with 0")) == (0, 4), written
    ways = {name: json.loads(counts) for name, counts in re.findall(r"^way (\w+) (.*)$", written, re.MULTILINE)}
    assert [*ways] == [*WAYS], written
    for name in ("ddp", "zero", "fsdp2", "tensor_parallel"):
        assert ways[name]["delegated"] == {}, name
    assert set(ways["pipeline"]["delegated"]) == {"send", "recv"}
    assert ways["zero"]["served"]["broadcast"] >= 24 and ways["fsdp2"]["served"]["reduce-scatter"] >= 12


def test_calls_of_every_root_are_served(torch: Torch, tmp_path: Path) -> None:
    """Automorphisms move the plan of one root to the others; the results are gloo's."""
    (tmp_path / "four.coll").write_text(EVERY_ROOT)
    status, written = torch.ranks(
        4, HELPERS / "torch_checks.py", ["roots moves"], COLLC_CHECK_SPEC=str(tmp_path / "four.coll"),
        COLLC_CHECK_DEFINES='{"side": 2}', COLLC_STATS="1", PYTHONPATH=str(torch.folder),
    )  # fmt: skip
    assert (status, written.count("ended with 0")) == (0, 4), written
    served = json.loads(written.split("\nserved ")[1].splitlines()[0])
    assert (served["reduce"], served["gather"], served["scatter"], served["broadcast"]) == (4, 4, 4, 30), served


@pytest.fixture(scope="module", params=["1", "0"], ids=["engine", "gloo"])
def trouble(
    torch: Torch, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, list[tuple[int, str]]]:
    """What each rank of each scenario ended with and wrote."""
    folder = tmp_path_factory.mktemp("specs")
    (folder / "four.coll").write_text(FOUR.replace("side = 3", "side = 2"))
    (folder / "three.coll").write_text(THREE)
    (folder / "bad.coll").write_text("topology t = torus(3);\ncollective g = allreduce on u;\n")
    scenarios = re.findall(r"^def (\w+)\(\) ", (HELPERS / "torch_trouble.py").read_text(), re.MULTILINE)
    scenarios = [name for name in scenarios if name not in ("begin", "end", "summed")]
    status, written = torch.ranks(
        3, HELPERS / "torch_trouble.py", scenarios, COLLC_CHECK_SPECS=str(folder), COLLC_TORCH_ENGINE=request.param
    )
    assert status == 0, written
    found = {}
    for part in written.split("scenario ")[1:]:
        name, rest = part.split("\n", 1)
        ranks = re.split(r"^rank \d ended with (-?\d+)\n", rest, flags=re.MULTILINE)[1:]
        found[name] = [(int(s), text) for s, text in zip(ranks[::2], ranks[1::2], strict=True)]
    return found


def test_the_engine_and_gloo_give_the_same_bits(torch: Torch, tmp_path: Path) -> None:
    """Of every type and operation, in two groups at once; ranks without a compiler make all use gloo."""
    (tmp_path / "three.coll").write_text(THREE)
    written = []
    status, texts = torch.ranks(
        3, HELPERS / "torch_bits.py", ["bits", "bits 2", "bits 0 1 2"], COLLC_SPEC=str(tmp_path / "three.coll"),
        COLLC_STATS="1",
    )  # fmt: skip
    assert status == 0, texts
    for off, text in zip(("", "2", "0,1,2"), texts.split("scenario ")[1:], strict=True):
        assert text.count("ended with 0") == 3, text
        said = set(re.findall(r"served \d+ .*delegated \d+.*?(?:; (.*))?$", text, re.MULTILINE))
        assert said == {f"messages over gloo: rank {off[0]}: COLLC_TORCH_ENGINE is 0" if off else ""}, text
        written.append(sorted(re.findall(r"^bits \d torch.*$", text, re.MULTILINE)))
        assert len(written[-1]) == 3 * (4 * 5 + 4 * 4)
    assert written[0] == written[1] == written[2]


Trouble = dict[str, list[tuple[int, str]]]


def test_other_sizes_use_gloo_with_one_warning(trouble: Trouble) -> None:
    ranks = trouble["other_size"]
    assert [status for status, _ in ranks] == [0, 0, 0], ranks
    assert ["C0094" in text for _, text in ranks] == [True, False, False]
    assert "collc: the specification has no collective for 3 ranks, only for 2, 4; groups" in ranks[0][1]


@pytest.mark.parametrize(
    ("scenario", "code", "says"),
    [
        ("no_spec", "C0090", "no specification"),
        ("bad_defines", "C0091", "COLLC_DEFINES is not a JSON object: `[3]`"),
        ("bad_spec", "C0120", "bad.coll:2:29"),
        ("other_spec", "C0093", "rank 2 has another one than rank 0"),
    ],
)
def test_specifications_that_cannot_be_end_every_rank(trouble: Trouble, scenario: str, code: str, says: str) -> None:
    ranks = trouble[scenario]
    assert [status for status, _ in ranks] == [1, 1, 1], ranks
    assert f"[{code}]" in ranks[0][1] and says in ranks[0][1], ranks[0][1]
    elsewhere = "C0092" if scenario == "bad_spec" else code
    assert all(f"[{elsewhere}]" in text and says in text for _, text in ranks[1:]), ranks


def test_one_file_is_enough(trouble: Trouble) -> None:
    assert [status for status, _ in trouble["no_file_elsewhere"]] == [0, 0, 0], trouble["no_file_elsewhere"]


def test_a_killed_rank_ends_the_others_calls(trouble: Trouble) -> None:
    ranks = trouble["killed"]
    assert [status for status, _ in ranks] == [3, -9, 3], ranks
    for rank in (0, 2):
        refused = re.findall(
            rf"refused: error: grads failed on rank {rank} of 3: no message (?:from|to) rank \d", ranks[rank][1]
        )
        assert len(refused) == 2 and refused[0] == refused[1], ranks[rank][1]
        assert "C0095" in ranks[rank][1]


def test_a_rank_that_does_not_come_is_waited_for_as_long_as_the_group_says(trouble: Trouble) -> None:
    ranks = trouble["absent"]
    assert [status for status, _ in ranks] == [1, 3, 1], ranks
    late = [text for _, text in ranks if "rank 1 within 3 s" in text and "C0095" in text]
    assert late, ranks


def test_gloo_is_replaced_where_that_was_asked_for(trouble: Trouble) -> None:
    ranks = trouble["in_place_of_gloo"]
    assert [status for status, _ in ranks] == [0, 0, 0], ranks
    assert "served 1 (allreduce 1)" in ranks[0][1] and "served" not in ranks[1][1]
    assert [status for status, _ in trouble["not_in_place"]] == [0, 0, 0], trouble["not_in_place"]


def test_torch_without_a_specification_loads_nothing_of_ours(torch: Torch, tmp_path: Path) -> None:
    text = (
        "import sys, torch; print([m for m in sys.modules if m.startswith('collc.') and m != 'collc.autoload_torch'])"
    )
    path = os.pathsep.join([str(torch.folder), installed(tmp_path)])
    assert torch.run(["-c", text], PYTHONPATH=path) == (0, "[]\n")


# ---- without torch


def test_importing_collc_or_its_settings_loads_no_torch() -> None:
    text = "import sys, collc, collc.autoload_torch as a; a.start(); assert 'torch' not in sys.modules"
    clean = {k: v for k, v in os.environ.items() if k != "COLLC_SPEC"}
    subprocess.run([sys.executable, "-c", text], check=True, env=clean)


def test_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("COLLC_SPEC", "COLLC_DEFINES", "COLLC_COLLECTIVES"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CollcError, match="C0090"):
        settings()
    monkeypatch.setenv("COLLC_SPEC", "a.coll")
    assert settings() == Settings(str(tmp_path / "a.coll"))
    monkeypatch.setenv("COLLC_DEFINES", '{"b": [2, 3], "a": "x"}')
    assert settings().defines == (("a", "x"), ("b", (2, 3)))
    for wrong in ("{", "[]", '{"a": null}', '{"a": 1.5}', '{"a": ["x"]}'):
        monkeypatch.setenv("COLLC_DEFINES", wrong)
        with pytest.raises(CollcError, match="C0091"):
            settings()
    monkeypatch.setenv("COLLC_DEFINES", "")
    monkeypatch.setenv("COLLC_COLLECTIVES", '["sums"]')
    assert settings().collectives == ("sums",)
    for wrong in ("{", "{}", "[1]"):
        monkeypatch.setenv("COLLC_COLLECTIVES", wrong)
        with pytest.raises(CollcError, match="C0091"):
            settings()
    configure("b.coll", {"n": 3})
    try:
        assert settings() == Settings(str(tmp_path / "b.coll"), (("n", 3),))
    finally:
        configure(None)


def test_what_cannot_be_scheduled_is_left_to_gloo(tmp_path: Path) -> None:
    spec, impossible = tmp_path / "a.coll", "collective swap = alltoall on net;\nschedule swap using swing;\n"
    spec.write_text(f"topology net = biring(4);\n{impossible}collective sums = allreduce on net;\n")
    with pytest.warns(RuntimeWarning, match=r"`swap` is left to gloo: swing cannot schedule `alltoall` \[C0591\]"):
        rows = compiled(Settings(str(spec)))
    assert [name for name, *_ in rows] == ["sums"]
    spec.write_text(f"topology net = biring(4);\n{impossible}")
    with pytest.raises(CollcError, match="C0591"):
        compiled(Settings(str(spec)))
    spec.write_text("collective swap = alltoall on nett;\n")
    with pytest.raises(CollcError, match="nett"):
        compiled(Settings(str(spec)))


def test_programs_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 of the next job compiles nothing, and warns as the first did; every change compiles."""
    spec, cache = tmp_path / "a.coll", tmp_path / "cache"
    text = "param n = 4;\ntopology net = biring(n);\ncollective swap = alltoall on net;\nschedule swap using swing;\n"
    spec.write_text(f"{text}collective sums = allreduce on net;\ncollective parts = allgather on net;\n")
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("COLLC_CACHE", str(cache))
    times: list[Settings] = []

    def counted(settings: Settings) -> object:
        times.append(settings)
        return compile_programs(settings)

    compile_programs = catalog._compiled
    monkeypatch.setattr(catalog, "_compiled", counted)

    def programs(**more: object) -> object:
        with pytest.warns(RuntimeWarning, match="`swap` is left to gloo"):
            return compiled(Settings(str(spec), **more))  # type: ignore[arg-type]

    first = programs()
    assert programs() == first and len(times) == 1
    assert programs(defines=(("n", 6),)) != first and len(times) == 2
    assert programs(collectives=("swap", "sums")) == first[:1] and len(times) == 3  # type: ignore[index]
    spec.write_text(spec.read_text() + "# more\n")
    assert programs() == first and len(times) == 4
    for entry in (cache / "launches").iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    assert programs() == first and len(times) == 5
    monkeypatch.delenv("COLLC_CACHE")
    assert programs() == first and len(times) == 6
    monkeypatch.setenv("COLLC_CACHE", str(tmp_path / "none"))
    assert programs() == first and programs() == first and len(times) == 8
