"""Neighbourhood collectives of programs that know nothing of the library, on communicators with a topology."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from interposed import Preloaded, Ran, everything, with_fault
from places import the

import collc
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.interpose import Served, exchanged_pairs
from collc.backends.mpi_c.source import Function
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Kind
from collc.ir.program import Program

KINDS = [f"{name}{more}" for name in ("allgather", "alltoall") for more in ("", "v")] + ["alltoallw"]
FORMS = {f"MPI_{form}" for kind in KINDS for form in (f"Neighbor_{kind}", f"Ineighbor_{kind}", f"Neighbor_{kind}_init")}
BLOCKING = {name for name in FORMS if name.startswith("MPI_Neighbor") and not name.endswith("_init")}

#: two calls of each kind on every rank and eleven communicators, two of which have other neighbours
ALL = {name: {"served": 72, "other neighbours": 16} for name in FORMS}

#: a ring both ways, a square with two links on each side, and a path; on the ring a path's blocks are forwarded
SPECIFICATION = """
topology t = biring(4);
topology s = torus(2, 2);
collective ring = neighbours on t;
collective square = neighbours on s;
collective path = custom on t { pre: {0, 1, 1, 2, 2, 3}, post: {1, 0, 2, 1, 3, 2} };
"""


def programs() -> list[Program]:
    found = []
    for name in ("ring", "square", "path"):
        program = collc.compile_source(SPECIFICATION, target="ir", collective=name).program
        assert isinstance(program, Program)
        found.append(program)
    return found


def served() -> list[Served]:
    made = [Served(Function(f"near{n}", ((None, program),))) for n, program in enumerate(programs())]
    return [*everything(4), *made]


def preloaded(mpi: Mpi, folder: Path) -> Preloaded:
    return Preloaded(mpi, folder, served(), program=the("neighbours_program.c"), optimized=False)


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return preloaded(mpich, tmp_path_factory.mktemp("mpich"))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return preloaded(openmpi, tmp_path_factory.mktemp("openmpi"))


def outcomes(ran: Ran) -> dict[str, dict[str, int]]:
    """Return the numbers of calls by function and outcome; those with large counts are counted with the others."""
    found: dict[str, dict[str, int]] = {}
    for (name, end), number in ran.report.calls.items():
        ends = found.setdefault(name.removesuffix("_c"), {})
        ends[end] = ends.get(end, 0) + number
    return {name: ends for name, ends in found.items() if "eighbor" in name}


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_all_forms_are_served(which: str, request: pytest.FixtureRequest) -> None:
    """On Cartesian topologies, periodic and not, and graphs. In three a rank has a neighbour twice, or itself."""
    library: Preloaded = request.getfixturevalue(which)
    keeps = {"KEEP_HANDLES": "1"} if which == "on_openmpi" else {}  # its persistent calls use types that were freed
    ran = library.run(4, COLLC_NONBLOCKING="1", **keeps)
    assert ran.all_right, ran.out + ran.err
    assert outcomes(ran) == ALL


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_nonblocking_forms_need_their_option(which: str, request: pytest.FixtureRequest) -> None:
    library: Preloaded = request.getfixturevalue(which)
    # Open MPI's own nonblocking calls fail where a rank has a neighbour twice.
    distinct = {"DISTINCT": "1"} if which == "on_openmpi" else {}
    ran = library.run(4, KEEP_HANDLES="1", **distinct)
    assert ran.all_right, ran.out + ran.err
    for name, ends in outcomes(ran).items():
        number = 40 if distinct else 72
        assert ends == {"served" if name in BLOCKING else "needs --nonblocking": number, "other neighbours": 16}


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("side->order[found++] = j ^ swaps;", "side->order[found++] = j;"),  # one direction for the other
        ("way == 1 && topology == MPI_CART", "0"),
        ("            blocks[j] = side->blocks;\n", "            return 0;\n"),  # no rank is its own neighbour
        ("    memcpy(it->packed + it->into + it->got,", "    memcpy(it->packed + it->into,"),
        ("wrong ? wrong : bytes - begin", "wrong ? wrong : bytes - begin - (side->first[k + 1] > side->first[k] + 1)"),
        ("places[k] = same ? 0 : ", "places[k] = "),  # one block for all neighbours
        ("else if (blocks[j] < 0 && peer != MPI_PROC_NULL)", "else if (blocks[j] < 0)"),  # the ends of a path
        ("if (k < side->blocks && cip_block_of", "if (0 && cip_block_of"),  # a part of the neighbours
        ("blocks->large | blocks->far, k)", "blocks->large, k)"),
        ("        it->error = cip_repack(&it->neighbours, 1);\n", "        it->error = MPI_SUCCESS;\n"),
        ("    if (it->meets && (cip_has_type(", "    if (0 && (cip_has_type("),  # types that persistent calls need
    ],
)
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    ran = on_mpich.run(4, library=with_fault(on_mpich, tmp_path, sound, faulty), COLLC_NONBLOCKING="1")
    assert not ran.all_right or outcomes(ran) != ALL


def test_files_are_read_back() -> None:
    """Two neighbourhood collectives of four ranks differ in their pairs, so a library may have both."""
    result = collc.compile_source(SPECIFICATION, target="mpi-c{interpose=true}")
    (file,) = result.files.values()
    for name in ("ring", "square", "path"):
        assert f" *   {name}: neighbours of 4 ranks, any size\n" in file.text
    twice = SPECIFICATION + "collective again = neighbours on t;\n"
    with pytest.raises(CollcError, match="both serve neighbours of 4 ranks"):
        list(collc.compile_source(twice, target="mpi-c{interpose=true}").files)


def test_another_plan_in_the_file_is_seen() -> None:
    """A library that takes the lists of one plan for the neighbours of another is refused."""
    ring, _, path = programs()
    target = MpiC(library="near", interpose=True)
    artifacts = target.join([target.emit(ring)[0], target.emit(path)[0]])
    mains = [target.emit(ring)[0], target.emit(path)[0]]
    assert target.check_joined(mains, artifacts).ok
    text = artifacts[0].text
    wrong = text.replace("cip_list_peers(begins_1,", "cip_list_peers(begins_0,")
    assert wrong != text
    assert not target.check_joined(mains, [attrs.evolve(artifacts[0], text=wrong)]).ok


@pytest.mark.parametrize(
    ("post", "pairs"),
    [
        (((1,), (0,)), {(0, 1), (1, 0)}),
        (((1, 2), (0,)), None),  # a shard for two ranks
        (((), (0,)), None),
    ],
)
def test_pairs(post: tuple[tuple[int, ...], ...], pairs: set[tuple[int, int]] | None) -> None:
    assert exchanged_pairs(Collective("custom", 3, pre=(0, 1), post=post)) == pairs
    assert exchanged_pairs(Collective("custom", 3, pre=(0, 0), post=((1,), (1,)))) == {(0, 1)}  # both links of a torus


def test_other_custom_collectives_are_refused() -> None:
    with pytest.raises(CollcError, match="serves no `custom`") as refused:
        MpiC(interpose=True).require(Collective("custom", 3, pre=(0,), post=((1, 2),)))
    assert refused.value.diagnostics[0].kind == Kind.INFEASIBLE  # a launch leaves it to the MPI
    several = "topology t = biring(4); collective c = custom on t { pre: {0}, post: {{1, 2}} };"
    with pytest.raises(CollcError, match="serves no `custom`"):
        list(collc.compile_source(several, target="mpi-c{interpose=true}").files)
    with pytest.raises(CollcError, match="option `max-bytes` does not go with `custom`"):
        MpiC(interpose=True, max_bytes=9).require(Collective("custom", 3, pre=(0,), post=((1,),)))
