"""Reading and writing: text or a clear refusal; whole files or none."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from collc.backends.base import Artifact
from collc.backends.ir_text import IrText
from collc.backends.mpi_c import MpiC
from collc.backends.msccl_xml import MscclXml
from collc.files import naming
from collc.files import texts as files
from collc.files.depfile import depfile, escape
from collc.files.texts import Output, check_writable, read_text, write_all
from collc.ir.diagnostic import CollcError


def code(work: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(CollcError) as caught:
        work()
    return caught.value.diagnostics[0].code, caught.value.diagnostics[0].message


# ---- reading


def test_text_is_read_with_plain_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.coll"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert read_text(str(path)) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a\x00b", "byte 1 is zero"),
        (b"ok \xff\xfe", "byte 3 (0xff) is not UTF-8"),
    ],
)
def test_what_is_not_text_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.coll"
    path.write_bytes(content)
    assert ("C0003", f"`{path}` is not text: {reason}") == code(lambda: read_text(str(path)))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x7fELF\x02\x01\x01\x00\xff", "an ELF program or library"),
        ("utf-16".encode("utf-16"), "UTF-16 text"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG picture"),
        (b"\x1f\x8b\x08\0\0", "a gzip archive"),
    ],
)
def test_known_kinds_of_binary_files_are_named(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "a.coll"
    path.write_bytes(content)
    assert ("C0003", f"`{path}` is {kind}, not a text that collc reads") == code(lambda: read_text(str(path)))


def test_an_endless_input_is_refused_at_once() -> None:
    assert code(lambda: read_text("/dev/zero"))[0] == "C0003"


def test_a_huge_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_INPUT", 1 << 20)
    path = tmp_path / "a.coll"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    assert ("C0003", f"`{path}` is larger than 1 MiB") == code(lambda: read_text(str(path)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.coll", "there is no such file"),
        (".", "it is a directory"),
        ("file/inside", "a part of the path is not a directory"),
        ("x" * 300, "the name is too long"),
        ("nul\0", "embedded null byte"),
        ("", "there is no such file"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert ("C0002", f"cannot read `{name}`: {reason}") == code(lambda: read_text(name))


# ---- writing


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_files_are_written_whole(tmp_path: Path) -> None:
    write_all([Output(str(tmp_path / "a"), "one"), Output(str(tmp_path / "b"), "zwölf")])
    assert names(tmp_path) == ["a", "b"]
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text("utf-8")) == ("one", "zwölf")


def test_if_one_cannot_be_written_none_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    outputs = [Output(str(tmp_path / "a"), "new"), Output(str(tmp_path / "missing" / "b"), "new")]
    assert code(lambda: write_all(outputs))[0] == "C0004"
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_an_interrupt_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all([Output(str(tmp_path / "a"), "new")])
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_all([Output(str(tmp_path / "a"), "")])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_symbolic_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_all([Output(str(tmp_path / "link"), "new")])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    write_all([Output(str(fifo), "through")])
    reader.join(10)
    assert got == ["through"]
    assert names(tmp_path) == ["pipe"]


def test_a_device_that_is_full_is_told() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    assert code(lambda: write_all([Output("/dev/full", "x" * 100000)])) == (
        "C0004",
        "cannot write `/dev/full`: no space left on the device",
    )


def test_unchanged_files_stay_untouched_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("same")
    os.utime(path, (1, 1))
    write_all([Output(str(path), "same")], if_changed=True)
    assert path.stat().st_mtime == 1
    write_all([Output(str(path), "same")])
    assert path.stat().st_mtime > 1


def test_outputs_are_checked_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.coll").write_text("")
    Path("folder").mkdir()
    Path("link").symlink_to("in.coll")
    check_writable(["new", "-", "/dev/null", "folder/new"], ["in.coll"])
    assert names(tmp_path) == ["folder", "in.coll", "link"]
    for path, expected in {
        "missing/x": ("C0004", "cannot write `missing/x`: directory `missing` does not exist"),
        "in.coll/x": ("C0004", "cannot write `in.coll/x`: directory `in.coll` is not a directory"),
        "folder": ("C0004", "cannot write `folder`: it is a directory"),
        "": ("C0004", "cannot write ``: it is not the name of a file"),
        "in.coll": ("C0005", "output `in.coll` would replace the input `in.coll`"),
        "./link": ("C0005", "output `./link` would replace the input `in.coll`"),
    }.items():
        assert expected == code(lambda path=path: check_writable([path], ["in.coll"]))


def test_no_standard_output_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert code(lambda: write_all([Output("-", "x")])) == ("C0004", "cannot write standard output: it is closed")


# ---- names of outputs


XML, C, IR = MscclXml(), MpiC(), IrText()


def test_names_of_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "is").mkdir()
    one, two = [("grads", XML)], [("grads", XML), ("weights", C)]
    assert naming.main_paths(one, "pod", None) == ["pod.xml"]
    assert naming.main_paths(one, "pod", "a.xml") == ["a.xml"]
    assert naming.main_paths(one, "pod", "-") == ["-"]
    assert naming.main_paths(one, "pod", "out/") == ["out/grads.xml"]
    assert naming.main_paths(one, "pod", "is") == ["is/grads.xml"]
    assert naming.main_paths(two, "pod", None) == ["grads.xml", "weights.c"]
    assert naming.main_paths(two, "pod", "out/") == ["out/grads.xml", "out/weights.c"]
    assert naming.main_paths([*one, *one], "pod", None) == ["grads.xml", "grads-2.xml"]
    assert code(lambda: naming.main_paths(two, "pod", "a.xml"))[0] == "C0021"
    assert code(lambda: naming.main_paths(two, "pod", "-"))[0] == "C0021"


def test_further_files_stand_beside_the_main_one() -> None:
    made = [Artifact("grads.c", "", "mpi-c"), Artifact("grads.h", "", "mpi-c")]
    assert [f.path for f in naming.name_files([("grads", C, made)], "pod", "x/")] == ["x/grads.c", "x/grads.h"]
    assert [f.path for f in naming.name_files([("grads", C, made)], "pod", "x/a.c")] == ["x/a.c", "x/a.h"]
    assert [f.path for f in naming.name_files([("grads", C, made)], "pod", "-")] == ["-"]


# ---- depfiles


def test_a_rule_names_outputs_and_inputs() -> None:
    text, warnings = depfile(["a.xml", "a.h"], ["pod.coll", "site.coll", "pod.coll"])
    assert text == "a.xml a.h: \\\n  pod.coll \\\n  site.coll\n"
    assert warnings == []


def test_every_include_may_get_an_empty_rule() -> None:
    assert depfile(["a"], ["x", "y"], phony=True)[0] == "a: \\\n  x \\\n  y\n\ny:\n"


def test_paths_are_absolute_when_asked() -> None:
    assert f"a: \\\n  {os.path.abspath('x')}\n" == depfile(["a"], ["x"], absolute=True)[0]


def test_standard_input_is_no_dependency() -> None:
    assert depfile(["a"], ["-"])[0] == "a:\n"


@pytest.mark.parametrize(
    ("path", "word"),
    [("a b", r"a\ b"), ("a#b", r"a\#b"), ("$a", "$$a"), ("a\\b", "a\\b"), ("a\\ b", r"a\\\ b"), ("a:b", r"a\:b")],
)
def test_what_make_would_misread_is_escaped(path: str, word: str) -> None:
    assert word == escape(path)


def test_odd_paths_are_warned_of_once() -> None:
    _, warnings = depfile(["a"], ["x#1", "y$2"])
    assert [w.code for w in warnings] == ["C0902"]


def test_a_line_break_cannot_be_escaped() -> None:
    assert code(lambda: escape("a\nb"))[0] == "C0901"
