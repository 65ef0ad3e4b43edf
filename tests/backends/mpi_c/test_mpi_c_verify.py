"""``collc verify`` of C files: what collc wrote is verified, and every other file is refused or fails."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.mpi_c.verify import is_source, verify_source
from collc.cli import main
from collc.ir.diagnostic import CollcError

MOST = 20000

SPECS = {
    "template": "topology n = torus(4, 4); collective g = allreduce on n { size: 1 MiB };",
    "listed": "topology n = jellyfish(10, 3, 1); collective g = alltoall on n { size: 1 MiB };",
    "counts": "topology n = biring(4); collective g = allgatherv on n { weights: {1, 2, 0, 4}, size: 70 KiB };",
    "roots": "topology n = mesh(3, 2); collective g = reduce on n { root: all, size: 1 MiB };",
    "several": "topology n = biring(5); collective g = allreduce on n; collective h = alltoall on n;",
    "sizes": "topology n = torus(4, 4); collective g = allreduce on n; schedule g using auto { sizes: 1 KiB..64 MiB };",
}


@cache
def written(name: str, options: str = "") -> str:
    files = collc.compile_source(SPECS[name], target=f"mpi-c{options}").files
    return next(str(one.text) for path, one in files.items() if path.endswith(".c"))


@pytest.mark.parametrize("options", ["", "{library=pod}", "{interpose=true}"])
@pytest.mark.parametrize("name", SPECS)
def test_what_collc_wrote_is_verified(name: str, options: str) -> None:
    if options == "{interpose=true}" and name == "counts":
        pytest.skip("no library for unmodified programs serves counts")
    text = written(name, options)
    assert is_source(text)
    reports = verify_source(text, "pod.c", MOST)
    assert reports and all(report.ok for _, report in reports)
    for _, report in reports:
        names = [check.name.rpartition(": ")[2] for check in report.checks]
        assert names[0] == "reading" and {"postcondition", "allowance", "scratch"} <= set(names)


def test_functions_have_reports_of_their_own() -> None:
    reports = verify_source(written("several", "{library=pod}"), "pod.c", MOST)
    assert [(name, report.collective) for name, report in reports] == [
        ("pod_g", "allreduce"), ("pod_h", "alltoall"),
    ]  # fmt: skip


# ---- planted faults


def changed(text: str, table: str, add: int = 1, place: int = 0) -> str:
    """Return a C file with another number in a table."""
    found = re.search(rf"static const \w+ {table}\[\w*\] = \{{([^}}]*)\}}", text)
    assert found is not None, table
    number = list(re.finditer(r"-?\d+", found[1]))[place]
    begin, end = (found.start(1) + at for at in number.span())
    return text[:begin] + str(int(number[0]) + add) + text[end:]


FAULTS = (
    ("listed", "block_slots"), ("listed", "block_sends"), ("listed", "block_slot_chunks"), ("listed", "step_src"),
    ("listed", "step_code"), ("listed", "rank_scratch"), ("template", "block_slots"), ("template", "block_send_peer"),
    ("counts", "step_count"), ("roots", "root_from"), ("roots", "move_back"), ("roots", "root_move"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "table"), FAULTS)
def test_a_number_that_was_changed_is_found(name: str, table: str) -> None:
    text = changed(written(name), table)
    try:
        reports = verify_source(text, "pod.c", MOST)
    except CollcError as problem:
        assert problem.diagnostics[0].code == "C0710"
    else:
        assert not all(report.ok for _, report in reports)


def test_a_copy_in_place_that_is_left_out_is_found() -> None:
    text = written("listed")
    code = re.search(r"static const \w+ step_code\[\w*\] = \{([^}]*)\}", text)
    assert code is not None
    place = next(k for k, value in enumerate(re.findall(r"\d+", code[1])) if int(value) & 32)
    [(_, report)] = verify_source(changed(text, "step_code", -32, place), "pod.c", MOST)
    assert [check.name for check in report.checks if not check.ok] == ["allowance"]
    assert "does not send a copy in place" in report.failed[0].detail


def test_a_title_of_another_collective_is_found() -> None:
    text = written("template").replace("/* g: allreduce for", "/* g: allgather for", 1)
    [(_, report)] = verify_source(text, "pod.c", MOST)
    assert [check.name for check in report.checks if not check.ok] == ["title"]


@pytest.mark.parametrize("name", ["template", "listed", "counts", "roots"])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_number_gives_a_report_or_one_error(name: str, data: st.DataObject) -> None:
    text = written(name)
    tables = re.findall(r"static const \w+ (\w+)\[\w*\] = \{[^}]*\d", text)
    table = data.draw(st.sampled_from(tables))
    add = data.draw(st.sampled_from([1, -1, 2, 255, 65535, 2**31 - 1, -(2**31)]))
    try:
        verify_source(changed(text, table, add), "pod.c", MOST)
    except CollcError as problem:
        assert problem.diagnostics[0].code in ("C0710", "C0023")


# ---- other files


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "int x;\n",
        lambda text: text.replace("MPI_Isend", "MPI_Irsend", 1),
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("static const struct plan plans[] = {", "static struct plan plans[] = {"),
    ],
)
def test_text_that_collc_would_not_write_is_refused(change: object) -> None:
    assert callable(change)
    with pytest.raises(CollcError, match="line") as found:
        verify_source(change(written("template")), "pod.c", MOST)
    assert found.value.diagnostics[0].code == "C0710"


def test_more_ranks_than_permitted_are_refused() -> None:
    with pytest.raises(CollcError) as found:
        verify_source(written("template"), "pod.c", 15)
    assert found.value.diagnostics[0].code == "C0023"


def test_the_verb_reads_c_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "pod.c"
    source.write_text(written("template"))
    assert main(["verify", str(source)]) == 0
    assert "verified: allreduce on 16 ranks (mpi-c)" in capsys.readouterr().out
    source.write_text(changed(written("template"), "block_slots"))
    assert main(["verify", str(source)]) == 1
    assert "allowance" in capsys.readouterr().out
    for words in (["cost", str(source)], [str(source)]):
        assert main(words) == 1
        assert "is C source" in capsys.readouterr().err


def test_headers_are_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = collc.compile_source(SPECS["template"], target="mpi-c").files
    header = tmp_path / "g.h"
    header.write_text(str(next(one.text for path, one in files.items() if path.endswith(".h"))))
    assert main(["verify", str(header)]) == 1
    assert "verify the C file, not its header" in capsys.readouterr().err
