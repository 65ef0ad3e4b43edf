"""`import` in the language, with a toy format: figures, places of mistakes, files that are found, and dependencies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Ran
from toy_import import read, toys

from collc.frontends.coll import format_text, load
from collc.frontends.importing.figures import GPUS, Figures
from collc.ir.diagnostic import CollcError, Diagnostic

NODE = """toy
rank gpu0
rank gpu-1
switch mlx5_0
switch fabric
link gpu0 gpu-1 100
link gpu0 mlx5_0
link gpu-1 mlx5_0
link mlx5_0 fabric leaf
"""
FIGURES = "with { gpu: h100, nic: 400 Gbps, tier-leaf: 50 GB/s, latency: 1 us }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node.toy").write_text(NODE)
    with toys():
        yield tmp_path


def mistakes(text: str, **more: object) -> tuple[Diagnostic, ...]:
    with pytest.raises(CollcError) as caught:
        load("main.coll", text=text, **more)  # type: ignore[arg-type]
    return caught.value.diagnostics


def places(found: Diagnostic) -> list[str]:
    return [str(found.span), *(f"{one.message} {one.span}" for one in found.related)]


@pytest.mark.parametrize(
    "text",
    [
        f'import "node.toy" as t {FIGURES};',
        f'topology t = import "node.toy" as toy {FIGURES};',
        f'topology t = import "node.toy" {FIGURES};',
        'import "node.toy" as t with { nic: "400Gbps", tier-leaf: 2 * 25 GB/s, latency: 1 us, gpu: "NVIDIA H100" };',
        'param rate = 400 Gbps; import "node.toy" as t with { nic: rate, tier-leaf: "50 GB/s", latency: 1 us };',
    ],
)
def test_all_forms_declare_the_network_of_the_file(text: str) -> None:
    net = load("main.coll", text=text).topologies["t"]
    assert (net.name, net.names) == ("t", ("gpu0", "gpu-1", "mlx5_0", "fabric")) and net.num_links == 8
    assert {(net.bandwidth(i), net.latency(i)) for i in range(8)} == {
        (Fraction(100 * 10**9), Fraction(1, 10**6)), (Fraction(50 * 10**9), Fraction(1, 10**6)),
    }  # fmt: skip
    assert format_text(format_text(text)) == format_text(text)


def test_an_import_is_an_expression(folder: Path) -> None:
    (folder / "plain.toy").write_text("toy\nrank a-1\nrank b\nlink a-1 b 5\n")
    text = """
    let plain = import "plain.toy";
    topology t = without(import "plain.toy" as toy, {"a-1" -> b});
    collective c = broadcast on plain { root: "a-1" };
    collective d = allgather on import "plain.toy" as toy;
    """
    spec = load("main.coll", text=text)
    assert spec.topologies["t"].num_links == 1
    assert [c.topology for c in spec.collectives.values()] == ['import "plain.toy"', 'import "plain.toy" as toy']


def test_a_file_is_read_once_and_a_dependency(folder: Path) -> None:
    (folder / "site.coll").write_text(f'import "node.toy" as machine {FIGURES};')
    text = f'include "site.coll"; import "./node.toy" as again {FIGURES};'
    spec = load("main.coll", text=text)
    assert [os.path.normpath(path) for path in spec.files] == ["main.coll", "site.coll", "node.toy"]
    assert list(spec.topologies) == ["machine", "again"]


def test_nics_may_be_left_out(folder: Path) -> None:
    (folder / "node.txt").write_text(
        "\tGPU0\tGPU1\tmlx5_0\nGPU0\tX\tNV4\tPIX\nGPU1\tNV4\tX\tSYS\nmlx5_0\tPIX\tSYS\tX\n"
    )
    (net,) = load("main.coll", text='import "node.txt" as t with { gpu: a100, nic: none };').topologies.values()
    assert net.names == ("GPU0", "GPU1")
    (wrong,) = mistakes('import "node.txt" as t with { gpu: a100, nic: nonne };')
    assert wrong.code == "C0120"


def test_mistakes_have_two_places(folder: Path) -> None:
    (folder / "bad.toy").write_text("toy\nrank a\nrnak b\nswitch a\n")
    found = mistakes('import "bad.toy" as t;\nimport "node.toy" as u;')
    assert [(one.code, *places(one)) for one in found] == [
        ("C0924", "bad.toy:3:1", "the import main.coll:1:8"),
        ("C0930", "bad.toy:4:1", "the import main.coll:1:8"),
        ("C0923", "node.toy:7:1", "the import main.coll:2:8"),
    ]


def test_what_a_reader_assumed_are_warnings(folder: Path) -> None:
    (folder / "odd.toy").write_text("toy\nrank a\nguess x=1\nguess y=2\n")
    warnings = load("main.coll", text='import "odd.toy" as t; import "odd.toy" as u;').warnings
    assert [(one.code, one.message, *places(one)) for one in warnings] == [
        ("C0940", "assumed x=1 (the toy's manual)", "odd.toy:3:1", "the import main.coll:1:8"),
        ("C0940", "assumed y=2 (the toy's manual)", "odd.toy:4:1", "the import main.coll:1:8"),
    ]


def test_files_are_found_as_those_of_include(folder: Path) -> None:
    (folder / "lib").mkdir()
    (folder / "lib" / "node.toy").write_text("toy\nrank only\n")
    (folder / "lib" / "site.coll").write_text('import "node.toy" as t;')
    assert load("main.coll", text='include "lib/site.coll";').topologies["t"].names == ("only",)
    os.rename("node.toy", "other.toy")
    assert load("main.coll", text='import "node.toy" as t;', include_path=["lib"]).topologies["t"].names == ("only",)
    (found,) = mistakes('import "no.toy" as t;', include_path=["lib"])
    assert found.code == "C0150" and found.notes == ("looked in `.`, `lib`",)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_regular_files_are_imported(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    (folder / "nul").write_bytes(b"toy\x00")
    (folder / "latin").write_bytes(b"toy \xe9")
    found = [mistakes(f'import "{name}" as t;')[0].code for name in ("pipe", "sub", "/dev/zero", "nul", "latin")]
    assert found == ["C0150", "C0150", "C0150", "C0117", "C0118"]


def test_files_outside_are_not_quoted(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "secret.toy").write_text("toy\nrank a\npassword hunter2\n")
    (folder / "deep" / "main.coll").write_text('import "../secret.toy" as t;')
    with pytest.raises(CollcError) as caught:
        load(str(folder / "deep" / "main.coll"))
    (found,) = caught.value.diagnostics
    assert found.code == "C0924" and "password" not in str(found) and "hunter2" not in str(found)
    assert [one.message for one in found.related] == ["the import"]


def test_wrong_figures_are_all_told() -> None:
    found = mistakes('import "node.toy" as t with { nic: 400, gpu: h10, tier-leaf: 1 us, size: 1/2 * 1 B, fo: 1 };')
    assert sorted(one.code for one in found) == ["C0127", "C0129", "C0131", "C0131", "C0925"]
    (found_too,) = mistakes('import "node.toy" as t with { choose: pod-1 };')
    assert found_too.hint == 'write it in quotes: `"pod-1"`'
    assert mistakes("topology t = torus(2) with { nic: 1 GB/s };")[0].code == "C0127"
    (found,) = mistakes('topology t = transpose(import "node.toy" as toy);')
    assert found.code == "C0923" and 'import "node.toy" as NAME with' in found.notes[0]


def test_figures_may_be_parameters_and_a_link_replaces_what_the_model_has(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Figures] = []
    monkeypatch.setattr("toy_import.read", lambda sources, given: seen.append(given) or read(sources, Figures()))
    Path("bare.toy").write_text("toy\nrank a\n")
    text = """param model = "H100"; let slow = 10 GB/s;
    import "bare.toy" as a with { gpu-link: slow, gpu: model, size: 1 MB, choose: "pod-1", tier-leaf: slow,
        tier-spine: "40Gbps" };
    import "bare.toy" as b with { gpu: a100 };
    import "bare.toy" as c;"""
    load("main.coll", text=text)
    gpus = [(one.gpu.name, one.gpu.link) if one.gpu else None for one in seen]
    assert gpus == [("h100", 10 * 10**9), ("a100", GPUS["a100"].link), None]
    assert (seen[0].size, seen[0].choice, dict(seen[0].tiers)) == (10**6, "pod-1", {"leaf": 10**10, "spine": 5 * 10**9})


def test_a_faulty_import_causes_no_further_mistakes() -> None:
    found = mistakes(
        'import "no.toy" as t; collective c = allreduce on t; schedule c using bfb; topology u = without(t, {x});'
        ' cluster p = t on u { hosts: "n[1-2]" };'
    )
    assert [one.code for one in found] == ["C0150"]


def test_a_network_beyond_the_limit_is_refused_before_it_is_built(folder: Path) -> None:
    (folder / "large.toy").write_text("toy\n" + "".join(f"rank n{i}\n" for i in range(101)))
    (found,) = mistakes('import "large.toy" as t;', node_limit=100)
    assert found.code == "C0310" and str(found.span) == "main.coll:1:8"


def test_the_command_knows_imported_files(folder: Path, collc: Callable[..., Ran]) -> None:
    """Dependencies, the cache and the list of checked files; a change of the file is another key."""
    (folder / "main.coll").write_text(
        f'import "node.toy" as t {FIGURES}; topology u = without(t, {{fabric}});'
        " collective c = allreduce on u { size: 1 MiB };"
    )
    ran = collc("main.coll", "-t", "mpi-c", "-o", "c.c", "-MD", "--cache=kept")
    assert ran.status == 0, ran.err
    assert "node.toy" in (folder / "c.d").read_text()
    assert json.loads(collc("check", "main.coll", "--json").out)["files"] == ["main.coll", "node.toy"]
    again = collc("main.coll", "-t", "mpi-c", "-o", "c.c", "--cache=kept", "-v")
    assert "from the cache" in again.err
    (folder / "node.toy").write_text(NODE.replace(" 100", " 90"))
    changed = collc("main.coll", "-t", "mpi-c", "-o", "c.c", "--cache=kept", "-v")
    assert "from the cache" not in changed.err


def test_a_machine_and_a_fabric_of_files_join(folder: Path) -> None:
    (folder / "fabric.toy").write_text(
        "toy\nrank n-001\nrank n-002\nswitch leaf\nswitch n-001/mlx5_0\nswitch n-002/mlx5_0\n"
        + "".join(f"link n-00{i} n-00{i}/mlx5_0 9\nlink n-00{i}/mlx5_0 leaf 25\n" for i in (1, 2))
    )
    text = f'import "node.toy" as h100 {FIGURES}; import "fabric.toy" as fabric; let all = "*_0";'
    net = load(
        "main.coll", text=f'{text} cluster pod = h100 on fabric {{ hosts: "n-[001-002]", nic: all }};'
    ).topologies["pod"]
    assert net.names[:4] == ("n-001/gpu0", "n-001/gpu-1", "n-002/gpu0", "n-002/gpu-1") and net.is_connected
    assert net.names[4:] == ("n-001/mlx5_0", "n-002/mlx5_0", "leaf")
