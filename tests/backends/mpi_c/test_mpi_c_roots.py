"""Functions that take the root: read back, moved to every root and executed, and run on both MPIs."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest
from commands import COMMAND
from mpi_fixtures import STRICT
from places import the
from program_judge import judge_program

import collc
from collc.backends.base import Artifact
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.interpose import Served, require_distinct
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.members import function_of
from collc.backends.mpi_c.rooted import Rooted, in_file
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.files.naming import name_files
from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError
from collc.ir.graph.rooted import roots_of
from collc.ir.program import Program
from collc.ir.relabelling import relabelled
from collc.ir.roots import Roots
from collc.ir.verify import verify_program
from collc.results import Result

KINDS = {"news": "broadcast", "total": "reduce", "heap": "gather", "deal": "scatter"}
#: calls wait for each other, messages of more than five elements count as large, tags run out
SCARCE = ("-DCOLLC_MESSAGE_MAX=5", "-DCOLLC_AT_ONCE=2", "-DCOLLC_TAG_MAX=9")


def declared(roots: str) -> str:
    """Return a collective of each kind with these roots, and its schedule."""
    lines = [f"collective {name} = {kind} on t {{ root: {roots} }};" for name, kind in KINDS.items()]
    using = ("bine", "bine", "flow", "flow")
    return "\n".join([*lines, *(f"schedule {n} using {one};" for n, one in zip(KINDS, using, strict=True))])


@cache
def compiled(network: str, roots: str, target: str = "mpi-c{library=pod}") -> Result:
    return collc.compile_source(f"topology t = {network};\n{declared(roots)}", target=target)


def files(result: Result, out: str = "out/") -> dict[str, str]:
    emitted = [(one.name, target, made) for one in result for target, made in one.emitted]
    return {Path(file.path).name: file.artifact.text for file in name_files(emitted, "pod", out)}


def rooted(network: str, kind: str, target: MpiC) -> tuple[MpiC, list[Program], Roots]:
    """Return the target for all roots of a network, the plan of each orbit, and the roots."""
    text = f"topology t = {network};\ncollective c = {kind} on t {{ root: all }};\nschedule c using SCHEDULER;"
    scheduler = "bine" if kind in ("broadcast", "reduce") else "flow"
    made = collc.compile_source(text.replace("SCHEDULER", scheduler), target="mpi-c")
    topology = collc.topology(network)
    roots = roots_of("c", topology, range(topology.num_ranks))
    programs = [one.program for one in made]
    assert all(isinstance(program, Program) for program in programs)
    return target.for_roots(roots, 0), programs, roots


# ---- files


def test_one_source_whose_function_takes_the_root() -> None:
    found = files(compiled("mesh(2, 3)", "all", "mpi-c"))
    assert set(found) == {f"{name}.{end}" for name in KINDS for end in "ch"}
    assert re.search(r"^int news\(const void \*send.*\n +int root, MPI_Comm comm\);", found["news.h"], re.MULTILINE)
    assert "/* news: broadcast at ranks 0..6 for communicators of 6 ranks, by plans of 2 roots.\n" in found["news.h"]
    assert " * root: one of these ranks, the same on all ranks, else MPI_ERR_ROOT.\n" in found["news.h"]
    assert found["news.c"].count("plan_of(&plans[0], 2, root)") == 4
    single = files(compiled("biring(4)", "{1, 3}", "mpi-c"))
    assert "news: broadcast at ranks 1, 3 for communicators of 4 ranks, scheduled by" in single["news.h"]


def test_a_library_has_functions_of_one_root_too() -> None:
    lines = ("a = broadcast on t { root: {0, 1} }", "b = gather on t { root: 1 }", "d = reduce on t { root: all }")
    text = "topology t = mesh(3);\n" + "".join(f"collective {line};\n" for line in lines)
    source = files(collc.compile_source(text, target="mpi-c{library=pod}"))
    assert "return perform(&plans[2], plans[2].root, send" in source["pod.c"]
    assert "plan_of(&plans[0], 2, root)" in source["pod.c"] and "plan_of(&plans[3], 2, root)" in source["pod.c"]
    assert re.search(r"^int pod_b\(.*MPI_Op op,\n +MPI_Comm comm\);", source["pod.h"], re.MULTILINE)


def test_files_of_one_root_do_not_change() -> None:
    (text,) = (t for n, t in files(compiled("biring(4)", "0", "mpi-c")).items() if n == "news.c")
    assert "root_from" not in text and "ROOTS" not in text and "int root" not in text


@pytest.mark.parametrize("network", ["biring(8)", "torus(8, 8)", "hypercube(6)"])
def test_a_file_does_not_grow_by_its_ranks(network: str) -> None:
    """All roots cost less than a tenth of a plan for each."""
    sizes = []
    for roots in ("0", "all"):
        text = f"topology t = {network};\ncollective c = broadcast on t {{ root: {roots} }};\nschedule c using bine;"
        source = next(iter(collc.compile_source(text, target="mpi-c").artifacts.values())).text
        tables = [rest.split("};", 1)[0] for rest in source.split("static const ")[1:] if "_t " in rest[:9]]
        sizes.append(sum(map(len, tables)))
    one, every = sizes
    ranks = collc.topology(network).num_ranks
    assert every - one < one * (ranks - 1) / 10
    if network == "torus(8, 8)":  # docs/mpi.md
        assert 3_500 < every - one < 4_500


def test_two_algorithms_by_size() -> None:
    """A function returns the algorithm of a call if all roots have the same ones."""
    text = (
        "topology t = TOPOLOGY;\ncollective rows = gather on t { root: all };\nschedule rows using auto { sizes: all };"
    )
    ring = files(collc.compile_source(text.replace("TOPOLOGY", "biring(3)"), target="mpi-c"))
    mesh = files(collc.compile_source(text.replace("TOPOLOGY", "mesh(3)"), target="mpi-c"))
    several = "const char *rows_algorithm(MPI_Count count, MPI_Datatype type, int root);"
    assert (several in ring["rows.h"]) == ("choose the algorithm" in ring["rows.h"])
    assert "rows_algorithm" not in mesh["rows.h"]


# ---- every root is executed


@pytest.mark.parametrize("network", ["mesh(2, 3)", "torus(3, 3)", "hypercube(3)", "dgx_a100(1)"])
@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_the_moved_plan_of_every_root_is_right(network: str, kind: str) -> None:
    _, programs, roots = rooted(network, kind, MpiC())
    for program in programs:
        planned = program.collective.root
        for root in roots.orbit(planned):
            moved = relabelled(program, attrs.evolve(program.collective, root=root), roots.images(root))
            assert moved is not None and verify_program(moved).ok and judge_program(moved, 1) == ""


# ---- planted faults


def check(target: MpiC, programs: list[Program], text: str | None = None) -> list[str]:
    """Return the names of the checks that fail for the joined files, with another source if there is one."""
    mains = [target.emit(program)[0] for program in programs]
    made = list(target.emit(programs[0]) if len(programs) == 1 else target.join(mains))
    if text is not None:
        made[0] = attrs.evolve(made[0], text=text)
    report = target.check(programs[0], made) if len(programs) == 1 else target.check_joined(mains, made)
    return [one.name for one in report.failed]


def source_of(target: MpiC, programs: list[Program]) -> str:
    mains: list[Artifact] = [target.emit(program)[0] for program in programs]
    return mains[0].text if len(programs) == 1 else target.join(mains)[0].text


TABLES = ("root_from", "root_served", "root_move", "move_back", "move_image")


@pytest.mark.parametrize("kind", ["broadcast", "gather"])
@pytest.mark.parametrize("network", ["mesh(2, 3)", "biring(5)"])
def test_every_number_of_the_moves_counts(network: str, kind: str) -> None:
    target, programs, _ = rooted(network, kind, MpiC())
    text = source_of(target, programs)
    assert check(target, programs) == []
    for name in TABLES:
        begin = text.index("{\n", text.index(f" {name}[] = ")) + 2
        end = text.index("};", begin)
        found = [(begin + m.start(), begin + m.end()) for m in re.finditer(r"-?\d+", text[begin:end])]
        for first, last in found[:: max(len(found) // 6, 1)]:
            other = "1" if text[first:last] == "0" else "0"
            failed = check(target, programs, text[:first] + other + text[last:])
            assert failed and failed[0] in ("roots", "reading"), (name, failed)


def test_planted_asymmetry_is_caught() -> None:
    """A file whose move exchanges two ranks, with its inverse, is right in itself, and is refused."""
    target, programs, roots = rooted("torus(3, 3)", "broadcast", MpiC())
    moves: Array = roots.moves.copy()
    k = int(roots.move[roots.move >= 0][0])
    fixed = int(roots.source[np.flatnonzero(roots.move == k)[0]])
    a, b = [rank for rank in range(9) if rank != fixed][:2]
    moves[k, [a, b]] = moves[k, [b, a]]
    moves[roots.back[k]] = np.argsort(moves[k])
    wrong = attrs.evolve(roots, moves=moves)
    text = source_of(MpiC().for_roots(wrong, 0), programs)
    assert text != source_of(target, programs)
    assert "roots" in check(target, programs, text)


def test_the_driver_refuses_moves_that_are_no_symmetry(monkeypatch: pytest.MonkeyPatch) -> None:
    other = roots_of("c", collc.topology("biring(6)"), range(6))
    monkeypatch.setattr("collc.frontends.coll.roots.roots_of", lambda *_: other)
    text = "topology t = complete_bipartite(3);\ncollective c = broadcast on t { root: all };"
    with pytest.raises(CollcError, match="moved wrongly"):
        collc.compile_source(text.replace("complete_bipartite(3)", "mesh(6)"), target="mpi-c")


@pytest.mark.parametrize(
    ("before", "after"),
    [("plan_of(&plans[0], 2", "plan_of(&plans[0], 1"), ("plan_of(&plans[0], 2", "plan_of(&plans[1], 2"),
     ("0, 0, 0, bind_broadcast", "0, 1, 0, bind_broadcast"), ("{6, 1, ", "{6, 2, "), ("int root", "int rank")],
)  # fmt: skip
def test_other_plans_and_words_are_seen(before: str, after: str) -> None:
    target, programs, _ = rooted("mesh(2, 3)", "broadcast", MpiC())
    text = source_of(target, programs)
    assert before in text
    assert check(target, programs, text.replace(before, after)) != []


# ---- libraries to preload


def test_the_registry_keys_by_root() -> None:
    result = compiled("mesh(2, 3)", "{0, 1, 5}", "mpi-c{interpose=true}")
    ((name, text),) = files(result).items()
    assert name == "collc_interpose.c"
    assert " *   news[0]: broadcast at ranks 0, 5 of 6 ranks, any size\n" in text
    assert " *   news[1]: broadcast at ranks 1 of 6 ranks, any size\n" in text
    entry = (
        '{CIP_BROADCAST, 6, 1, 0, 0, INT64_MAX, "news[1]", cip_collc_interpose_news, cip_collc_interpose_news_begin, '
    )
    assert entry in text and "cip_attach_this, cip_serves_1, NULL, NULL, INT64_MAX" in text


def test_two_algorithms_of_one_root_clash() -> None:
    _, programs, roots = rooted("biring(4)", "broadcast", MpiC())
    moved = Served(function_of("a", ((None, programs[0]),), Rooted(roots, 0, 1)))
    alone = attrs.evolve(programs[0], collective=attrs.evolve(programs[0].collective, root=3))
    with pytest.raises(CollcError) as caught:
        require_distinct([moved, Served(function_of("b", ((None, alone),)))])
    assert caught.value.diagnostics[0].code == "C0730"


def test_plans_of_two_declarations_are_no_orbits_of_one() -> None:
    roots = roots_of("c", collc.topology("mesh(3)"), range(3))
    found = in_file([(roots, 0), (roots, 1), (roots, 0), (None, 2), (roots, 1)])
    assert [None if one is None else (one.place, one.orbits, one.roots.listed) for one in found] == [
        (0, 2, (0, 1, 2)), (1, 2, (0, 1, 2)), (0, 1, (0, 2)), None, (0, 1, (1,)),
    ]  # fmt: skip


# ---- runs


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("which", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("network", "roots", "served", "ranks"), [("mesh(2, 3)", "all", 0x3F, 6), ("biring(4)", "{0, 1, 3}", 0xB, 4)]
)
def test_every_call_of_every_root(
    which: str, network: str, roots: str, served: int, ranks: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    for name, text in files(compiled(network, roots)).items():
        (tmp_path / name).write_text(text)
    flags = [*STRICT, f"-DROOTS={served}", f"-I{tmp_path}", *(SCARCE if which == "mpich" else ())]
    compile_c(mpi, [the("mpi_c_roots.c"), tmp_path / "pod.c"], tmp_path / "program", flags)
    out = launch(mpi, ranks, [str(tmp_path / "program")], 100, tmp_path)
    assert re.fullmatch(r"calls [1-9]\d\d+ failures 0\n", out), out


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(("roots", "left"), [("all", 0), ("{0, 1, 2, 4, 5}", 4 * 6 * 4)])
def test_an_unmodified_program_is_served_at_every_root(roots: str, left: int, mpich: Mpi, tmp_path: Path) -> None:
    (tmp_path / "net.coll").write_text(f"topology t = mesh(2, 3);\n{declared(roots)}")
    compile_c(mpich, [the("rooted_program.c")], tmp_path / "program", STRICT)
    words = ["net.coll", f"--cache={tmp_path}/cache", "--stats", "--", str(mpich.mpiexec), "-n", "6", "./program"]
    done = subprocess.run(
        [COMMAND, "launch", *words], cwd=tmp_path, env=mpich.environment(os.environ), capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "wrong 0\n"), done.stderr
    assert f"collc: {4 * 6 * 4 * 6 - left} calls served, {left} left to the MPI (sums over 6 ranks)" in done.stderr
    assert "MPI_Bcast: 144 served" in done.stderr if not left else "left: 24 another root" in done.stderr
