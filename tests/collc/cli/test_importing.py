"""`collc import`: where it reads from and writes to, limits, signals, and what it leaves behind when it fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMAND, Ran
from places import CASES, benchmark

from collc.frontends.importing import MOST_BYTES

Collc = Callable[..., Ran]

CASE_FILES = [path for path in (CASES / "import").iterdir() if path.suffix not in (".coll", ".expect")]
WROTE = "wrote {}: 4 ranks, 11 switches, 40 links\n"


@pytest.fixture(autouse=True)
def files(collc: Collc, tmp_path: Path) -> None:
    for path in CASE_FILES:
        shutil.copy(path, tmp_path)


def unchanged(folder: Path) -> bool:
    """Whether the inputs are as they were, and nothing else stands beside them."""
    known = {path.name: path.read_bytes() for path in CASE_FILES}
    return {path.name: path.read_bytes() for path in folder.iterdir()} == known


@pytest.mark.parametrize(
    ("out", "path"),
    [
        ("a.coll", "a.coll"), ("./a.coll", "a.coll"), ("here", "here/fabric.coll"), ("here/", "here/fabric.coll"),
        ("new/", "new/fabric.coll"), ("here/b.coll", "here/b.coll"),
    ],
)  # fmt: skip
def test_outputs(collc: Collc, out: str, path: str) -> None:
    Path("here").mkdir()
    ran = collc("import", "fabric.txt", "-o", out)
    shown = out if out.endswith(".coll") else path
    assert ran == Ran(0, WROTE.format(shown), "")
    name = Path(path).stem
    assert f"topology {name} {{" in Path(path).read_text()
    assert collc("check", path) == Ran(0, "", "")


def test_standard_streams(collc: Collc, tmp_path: Path) -> None:
    text = Path("fabric.txt").read_text()
    plain = collc("import", "fabric.txt")
    assert plain.out.startswith("# fabric.txt (ibnetdiscover)") and plain.err == ""
    assert collc("import", "fabric.txt", "-o", "-") == plain
    piped = collc("import", "-", "--name", "fabric", stdin=text)
    assert piped.out == plain.out.replace("# fabric.txt", "# <stdin>")
    joined = collc("import", "node.xml", "--fabric", "-", "-o", "-", stdin=text)
    assert joined.status == 0 and "cluster pod = node on fabric;" in joined.out
    assert collc("import", "-", "--fabric", "-", stdin=text).status == 2
    assert collc("import", "-", stdin="").err.startswith("collc: error: `<stdin>` is empty [C0921]")
    assert unchanged(tmp_path)


@pytest.mark.parametrize(
    ("out", "code"),
    [
        ("node.xml", "C0005"), ("./node.xml", "C0005"), ("fabric.txt", "C0005"), ("link", "C0005"), ("hard", "C0005"),
        ("dir", "C0005"), ("no/a.coll", "C0004"), ("no/new/", "C0004"),
    ],
)  # fmt: skip
def test_an_output_never_replaces_an_input(collc: Collc, tmp_path: Path, out: str, code: str) -> None:
    os.symlink("node.xml", "link")
    os.link("fabric.txt", "hard")
    Path("dir").mkdir()
    os.link("fabric.txt", "dir/pod.coll")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ran = collc("import", "node.xml", "--fabric", "fabric.txt", "-o", out)
    assert ran.status == 1 and f"[{code}]" in ran.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_read_only_output_stays(collc: Collc) -> None:
    Path("old.coll").write_text("# mine\n")
    os.chmod("old.coll", 0o444)
    assert "[C0004]" in collc("import", "fabric.txt", "-o", "old.coll").err
    assert Path("old.coll").read_text() == "# mine\n"


def test_levels_of_messages(collc: Collc) -> None:
    words = ("import", "nvidia.txt", "--gpu", "a100", "--nic", "200Gbps", "-o", "a.coll")
    assert collc(*words).err.count("warning") == 2
    assert collc(*words, "-w") == Ran(0, "wrote a.coll: 4 ranks, 8 switches, 30 links\n", "")
    assert collc(*words, "-q") == Ran(0, "", "")
    Path("a.coll").unlink()
    ran = collc(*words, "-Werror")
    assert ran.status == 1 and ran.err.count("error: assumed") == 2 and not Path("a.coll").exists()


def mangled(text: str) -> dict[str, bytes]:
    return {
        "CR LF": text.replace("\n", "\r\n").encode(), "CR": text.replace("\n", "\r").encode(),
        "byte order mark": text.encode("utf-8-sig"), "no line end": text.rstrip("\n").encode(),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["fabric.txt", "node.xml", "graph.json", "topology.conf", "topology.yaml", "tree.topo"]
)
def test_line_ends_and_marks_do_not_matter(collc: Collc, name: str) -> None:
    """Neither to the command nor to the language."""
    rates = "leaf=1GB/s,spine=1GB/s,block=1GB/s,fabric=1GB/s"
    given = ", ".join(f"tier-{one.replace('=', ': ').replace('GB', ' GB')}" for one in rates.split(","))
    expected = collc("import", name, "--tier-bandwidth", rates, "--name", "t")
    assert expected.status == 0, expected.err
    for what, data in mangled(Path(name).read_text()).items():
        Path(name).write_bytes(data)
        assert collc("import", name, "--tier-bandwidth", rates, "--name", "t").out == expected.out, what
        Path("main.coll").write_text(f'import "{name}" as t with {{ {given} }};')
        assert collc("check", "main.coll").status == 0, what


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "is empty [C0921]"), (b"\n \n", "is empty [C0921]"), (b"\x7fELF\x01\x00\x00", "ELF program"),
        (b"SwitchName=l\x00", "byte 12 is zero"), ("SwitchName=l Nodes=n1".encode("utf-16"), "UTF-16 text"),
        ("SwitchName=l\u00e9af Nodes=n1".encode("latin-1"), "byte 12 (0xe9) is not UTF-8"),
        (b"topology t = torus(3);\n", "is a `.coll` file already"),
    ],
)  # fmt: skip
def test_other_bytes_are_refused(collc: Collc, data: bytes, found: str) -> None:
    Path("input").write_bytes(data)
    ran = collc("import", "input", "-o", "a.coll")
    assert ran.status == 1 and found in ran.err and ran.err.count("error") == 1 and not Path("a.coll").exists()


def test_folders_and_missing_files_are_refused(collc: Collc, tmp_path: Path) -> None:
    assert "[C0002]" in collc("import", ".").err and "[C0002]" in collc("import", "no.xml").err
    assert "did you mean `node.xml`?" in collc("import", "nod.xml").err
    assert unchanged(tmp_path)


def test_long_files_are_refused(collc: Collc) -> None:
    Path("long.txt").write_bytes(b"# x\n" * (MOST_BYTES // 4 + 1))
    Path("main.coll").write_text('import "long.txt" as t;')
    for words in (("import", "long.txt", "-o", "a.coll"), ("check", "main.coll")):
        ran = collc(*words)
        assert ran.status == 1 and "is longer than 64 MiB [C0119]" in ran.err
    assert not Path("a.coll").exists()


def test_the_node_limit_reaches_the_readers(collc: Collc) -> None:
    Path("main.coll").write_text('import "fabric.txt" as t;\n')
    for words in (("import", "fabric.txt"), ("check", "main.coll")):
        assert "found 11 nodes, the limit is 10 [C0933]" in collc(*words, "--node-limit", "10").err
        assert collc(*words, "--node-limit", "15").status == 0
    small = ("import", "node.xml", "--fabric", "fabric.txt", "--node-limit", "20")
    assert "error: found 39 nodes, the limit is 20 [C0933]" in collc(*small).err


def test_messages_have_no_places_in_the_written_text(collc: Collc, tmp_path: Path) -> None:
    """The text of a refused network is never written."""
    for more in (
        ("--hosts", "n9"), ("--hosts", "n["), ("--hosts", ""), ("--nics", "x*"), ("--nics", ""), ("--nics", 'a"b'),
        ("--hosts", "n000,n000"), ("--hosts", "leaf0"), ("--nics", "mlx5_0"), ("--hosts", "n000", "--hosts", "n001"),
    ):  # fmt: skip
        ran = collc("import", "node.xml", "--fabric", "rail0.txt" if more[1] == "leaf0" else "fabric.txt", *more)
        assert (ran.status == 0) == (more == ("--nics", "mlx5_0")), more
        assert ".coll:" not in ran.err and "pod" not in ran.err and "nic:" not in ran.err
        assert ran.status == 0 or f"<{more[0]}>" in ran.err or more[0] in ran.err
    assert unchanged(tmp_path)


def test_names_of_declarations_differ(collc: Collc) -> None:
    shutil.copy("graph.dot", "fabric.dot")
    ran = collc(
        "import",
        "graph.dot",
        "graph.json",
        "fabric.dot",
        "--name",
        "graph",
        "--collective",
        "allgather",
        "-o",
        "a.coll",
    )
    assert ran.status == 0, ran.err
    names = [line.split()[1] for line in Path("a.coll").read_text().splitlines() if line.startswith(("topo", "coll"))]
    assert names == ["graph", "graph_2", "fabric", "allgather", "allgather_2", "allgather_3"]
    ran = collc("import", "quad.dot", "--fabric", "rail0.txt", "--nics", "nic*", "--name", "quad", "-w", "-o", "b.coll")
    assert ran.status == 0 and "cluster quad = quad_2 on fabric" in Path("b.coll").read_text()
    assert collc("import", "quad.dot", "--name", "allreduce", "--collective", "allreduce", "-o", "c.coll").status == 0


def test_the_text_is_compared_with_the_network(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.frontends.importing.coll_text._links", lambda cable, unit: iter(()))
    ran = collc("import", "fabric.txt", "-o", "a.coll")
    assert ran.status == 70 and "another network" in ran.err and not Path("a.coll").exists()


def test_unknown_options_values_are_usage_errors(collc: Collc) -> None:
    for more in (("--gpu", "h10"), ("--format", "nccl"), ("--nic", "400"), ("--collective", "all"), ("--name", "a b")):
        assert collc("import", "node.xml", *more).status == 2


def test_sizes_of_zero_are_usage_errors(collc: Collc) -> None:
    ran = collc("import", "taccl.json", "--size", "0", "-o", "out.coll")
    assert (ran.status, ran.out) == (2, "") and "`--size` must be more than 0, found `0` [C0020]" in ran.err


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    text = benchmark("importers").ibnetdiscover(600)
    (tmp_path / "large.txt").write_text(text)
    before = set(os.listdir(tmp_path))
    for seconds in (0.4, 1.0, 1.6):
        words = [str(COMMAND), "import", "large.txt", "-o", "a.coll"]
        child = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(seconds)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        if child.returncode == 0:
            os.unlink(tmp_path / "a.coll")
            continue
        assert child.returncode in (130, -signal.SIGINT) and b"Traceback" not in err and out == b""
        assert set(os.listdir(tmp_path)) == before


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(f"{COMMAND} import fabric.txt | head -c 10", shell=True, capture_output=True, timeout=60)
    assert done.stdout == b"# fabric.t" and done.stderr == b""
