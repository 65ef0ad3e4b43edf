"""Programs -> a checked and timed run on this machine's MPI."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from collc.ir.collective import CUSTOM, CUSTOM_REDUCTION, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.ragged import starts
from collc.ir.symmetric_program import AnyProgram

from ..base import Artifact
from .emit import MpiC
from .launch import launch
from .members import among_members
from .names import identifier
from .results import DTYPES, OPS, RunResult, parse, vector_elements
from .scratch import is_counted, slot_shards
from .selected import Selected
from .source import template
from .toolchain import Mpi, compile_c, find

__all__ = ["Cases", "build", "emit_all", "execute", "run"]

#: elements of the vector in the largest default case
_LARGE = 1_000_000

_KINDS = {
    "allgather": "ALLGATHER", "reduce-scatter": "REDUCE_SCATTER", "allreduce": "ALLREDUCE", "broadcast": "BROADCAST",
    "reduce": "REDUCE", "gather": "GATHER", "scatter": "SCATTER", "alltoall": "ALLTOALL", CUSTOM: "CUSTOM",
    CUSTOM_REDUCTION: "CUSTOM_REDUCTION",
}  # fmt: skip

#: kind -> parameters and arguments of a function with counts
_COUNTED = {
    "allgather": (
        "const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm",
        "send, send_counts[0], type, recv, recv_counts, recv_displs, type, comm",
    ),
    "reduce-scatter": (
        "const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm", "send, recv, recv_counts, type, op, comm",
    ),
    "alltoall": (
        "const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, "
        "MPI_Comm",
        "send, send_counts, send_displs, type, recv, recv_counts, recv_displs, type, comm",
    ),
    "gather": (
        "const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, int, MPI_Comm",
        "send, send_counts[0], type, recv, recv_counts, recv_displs, type, root, comm",
    ),
    "scatter": (
        "const void *, const int *, const int *, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm",
        "send, send_counts, send_displs, type, recv, recv_counts[0], type, root, comm",
    ),
}  # fmt: skip

_COUNTED[CUSTOM] = _COUNTED["alltoall"]
_COUNTED[CUSTOM_REDUCTION] = (
    _COUNTED[CUSTOM][0].replace("MPI_Comm", "MPI_Op, MPI_Comm"), _COUNTED[CUSTOM][1].replace("comm", "op, comm"),
)  # fmt: skip

_EVEN_CALLS = "typedef int collective(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);"
_COUNTED_CALLS = """\
typedef int collective(const void *, void *, MPI_Datatype, MPI_Op, int, MPI_Comm);

/* Of the call at hand, on this rank. */
static int *send_counts, *send_displs, *recv_counts, *recv_displs;"""


@attrs.frozen
class Cases:
    """The calls of a run: every program with every count, type, operation (if it reduces) and placement."""

    counts: tuple[int, ...]
    dtypes: tuple[str, ...] = ("float32",)
    ops: tuple[str, ...] = ("sum",)
    in_place: tuple[bool, ...] = (False, True)
    repeats: int = 5
    compare: bool = False
    warmup: int = 1

    def __attrs_post_init__(self) -> None:
        _require_known(self.dtypes, tuple(DTYPES), "element type")
        _require_known(self.ops, OPS, "operation")
        wrong = [n for n in self.counts if not 0 <= n < 2**31]
        if wrong:
            raise error("C0709", f"a count of MPI must be 0 to {2**31 - 1}, found {wrong[0]}", exit_status=2)
        if self.repeats < 1:
            raise error("C0709", f"a run needs at least 1 repeat, found {self.repeats}", exit_status=2)
        if self.warmup < 0:
            raise error("C0709", f"the number of warm-up calls must be at least 0, found {self.warmup}", exit_status=2)
        if not (self.counts and self.dtypes and self.in_place):
            missing = "count" if not self.counts else "placement" if self.dtypes else "element type"
            raise error("C0709", f"nothing to run: no {missing} given", exit_status=2)

    def require_for(self, collectives: Iterable[Collective]) -> None:
        """Raise C0709 if a collective that reduces has no operation for any of the types, or a custom one no call."""
        collectives = list(collectives)
        customs = [c for c in collectives if c.kind == CUSTOM]
        if customs and self.compare:
            raise error("C0709", "no MPI has a collective like a custom one to compare with", exit_status=2)
        if customs and len(customs) == len(collectives) and False not in self.in_place:
            raise error("C0709", "nothing to run: a custom collective has no calls in place", exit_status=2)
        legal = any(d != "strided" or op == "user" for d in self.dtypes for op in self.ops)
        if not legal and any(c.reduces for c in collectives):
            what = "the only operation of the type `strided` is `user`" if self.ops else "no operation given"
            raise error("C0709", f"nothing to run: {what}", exit_status=2)

    def arguments(self, names: Iterable[str], seconds: float) -> list[str]:
        """Return the driver's command line arguments for programs by function name."""
        places = ",".join("in" if place else "out" for place in dict.fromkeys(self.in_place))
        return [
            ",".join(names), ",".join(map(str, dict.fromkeys(self.counts))), ",".join(self.dtypes),
            ",".join((*self.ops, "none")), places, str(self.repeats), str(self.warmup), str(int(self.compare)),
            str(max(1, int(seconds))),
        ]  # fmt: skip


def _require_known(names: tuple[str, ...], known: tuple[str, ...], what: str) -> None:
    for name in names:
        if name not in known:
            notes = [f"known: {', '.join(known)}"]
            raise error("C0709", f"unknown {what} `{name}`", notes=notes, hint=nearest(name, known), exit_status=2)


def run(
    programs: AnyProgram | Selected | Sequence[AnyProgram | Selected],
    *,
    sizes: Iterable[int] | None = None,
    dtypes: Iterable[str] = ("float32",),
    ops: Iterable[str] = ("sum",),
    in_place: Iterable[bool] = (False, True),
    repeats: int = 5,
    compare: bool = False,
    warmup: int = 1,
    mpi: str | os.PathLike[str] | Mpi | None = None,
    timeout: float = 300.0,
    flags: Sequence[str] = (),
) -> RunResult:
    """Emit, compile and run programs with equal numbers of ranks, and check every element on every rank.

    ``sizes`` are counts as the MPI calls define them (:func:`~.results.counts_for` converts bytes). By default they
    range from 0 to a vector of a million elements, and include those at which a function changes its program.
    ``warmup`` calls of each case are not timed. ``compare`` also times the MPI's own collective, alternating.
    Wrong results are rows that are not ``correct``. Everything that prevents a run is a CollcError (C0701 .. C0709).
    """
    programs = [programs] if isinstance(programs, (AnyProgram, Selected)) else list(programs)
    dtypes = tuple(dtypes)
    counts = _default_counts(programs, dtypes) if sizes is None else tuple(sizes)
    cases = Cases(counts, dtypes, tuple(ops), tuple(in_place), repeats, compare, warmup)
    collectives = emit_all(programs)
    cases.require_for(c for c, _ in collectives.values())
    mpi = mpi if isinstance(mpi, Mpi) else find(mpi)
    with tempfile.TemporaryDirectory(prefix="collc-run-") as folder:
        binary = build(mpi, collectives, Path(folder), flags)
        return execute(mpi, binary, {name: c for name, (c, _) in collectives.items()}, cases, timeout)


def _default_counts(programs: Sequence[AnyProgram | Selected], dtypes: Sequence[str]) -> tuple[int, ...]:
    """Return counts from 0 to a vector of a million elements; some are odd, some smaller than the number of ranks."""
    most = max((vector_elements(p.collective, 1) for p in programs), default=1)
    edges = [count for p in programs if isinstance(p, Selected) for count in p.edges(dtypes)]
    return tuple(dict.fromkeys((0, 1, 7, 1000, _LARGE // most, *edges)))


def _source(program: AnyProgram | Selected, function: str | None = None) -> Artifact:
    target = MpiC(function=function)
    return target.emit(program)[0] if isinstance(program, AnyProgram) else target.emit_selected(program.parts)[0]


def emit_all(programs: Sequence[AnyProgram | Selected]) -> dict[str, tuple[Collective, Artifact]]:
    """Return the C file of each program by its function's name. The names are distinct."""
    if not programs:
        raise error("C0709", "nothing to run: no program given", exit_status=2)
    programs = [_among_members(program) for program in programs]
    ranks = sorted({p.num_ranks for p in programs})
    if len(ranks) > 1:
        found = ", ".join(map(str, ranks))
        raise error("C0709", f"all programs of a run need one number of ranks, found {found}", exit_status=2)
    if len(programs) > _MOST_PROGRAMS:
        raise error("C0709", f"one run has at most {_MOST_PROGRAMS} programs, found {len(programs)}", exit_status=2)
    result: dict[str, tuple[Collective, Artifact]] = {}
    if len({is_counted(p.collective) for p in programs}) > 1:
        raise error("C0709", "one run has programs with counts, or programs without, not both", exit_status=2)
    for program in programs:
        source = _source(program)
        base, number = source.filename.removesuffix(".c"), 1
        name = base
        while name in result or identifier(name, _DRIVER_NAMES) != name:
            number += 1
            name = f"{base}_{number}"
        if name != base:
            source = _source(program, name)
        result[name] = (program.collective, source)
    return result


def _among_members(program: AnyProgram | Selected) -> AnyProgram | Selected:
    if isinstance(program, AnyProgram):
        return among_members([program])[0]
    among = among_members([part for _, part in program.parts])
    return Selected(tuple((window, part) for (window, _), part in zip(program.parts, among, strict=True)))


_MOST_PROGRAMS = 256

#: the driver's own names with external linkage, or used by its table
_DRIVER_NAMES = frozenset({"collective", "algorithm", "algorithms"})


def build(
    mpi: Mpi, sources: Mapping[str, tuple[Collective, Artifact]], folder: Path, flags: Sequence[str] = ()
) -> Path:
    """Compile emitted files (by function name) with a driver that calls and checks them; return the executable."""
    files = []
    for name, (_, artifact) in sources.items():
        files.append(folder / f"{name}.c")
        files[-1].write_text(artifact.text, encoding="utf-8")
    files.append(folder / "collc-driver.c")
    files[-1].write_text(_driver({name: c for name, (c, _) in sources.items()}), encoding="utf-8")
    compile_c(mpi, files, folder / "collc-driver", flags)
    return folder / "collc-driver"


def execute(mpi: Mpi, binary: Path, collectives: Mapping[str, Collective], cases: Cases, timeout: float) -> RunResult:
    """Run a built driver once, for all or some of its programs (by function name), and return its rows."""
    ranks = next(iter(collectives.values())).num_ranks
    output = launch(mpi, ranks, [str(binary), *cases.arguments(collectives, timeout + 30)], timeout, binary.parent)
    return parse(output, mpi, collectives)


def _driver(collectives: Mapping[str, Collective]) -> str:
    counted = any(map(is_counted, collectives.values()))
    table = _counted_table(collectives) if counted else _even_table(collectives)
    data = template("driver_data.c").replace("/*@CALLS@*/", _COUNTED_CALLS if counted else _EVEN_CALLS)
    rest = ("driver_test.c", "driver_counts.c" if counted else "driver_even.c", "driver_cases.c")
    return "\n".join([data.replace("/*@ALGORITHMS@*/", table), *map(template, rest)])


def _counted_table(collectives: Mapping[str, Collective]) -> str:
    """Return the functions with counts, each behind one with the arguments that all have, and their plans."""
    lines, rows = [], []
    for number, (name, c) in enumerate(collectives.items()):
        kind = CUSTOM_REDUCTION if c.contributors is not None else c.kind
        parameters, arguments = _COUNTED[kind]
        root = -1 if c.root is None else c.root
        lines += [
            f"int {name}({parameters});",
            f"static int call_{number}(const void *send, void *recv, MPI_Datatype type, MPI_Op op, int root,",
            "                  MPI_Comm comm)", "{", "    (void)op, (void)root;", f"    return {name}({arguments});",
            "}", _array("int64_t", f"weights_{number}", c.weight.tolist()),
        ]  # fmt: skip
        lists, sources = "NULL, NULL, NULL", "NULL, NULL"
        if c.kind == CUSTOM:
            slots = [slot_shards(c, rank, output).tolist() for rank in range(c.num_ranks) for output in (False, True)]
            begins = starts([len(one) for one in slots]).tolist()
            lines += [
                _array("int", f"holders_{number}", c.holders.tolist()), _array("int", f"begins_{number}", begins),
                _array("int", f"listed_{number}", [shard for one in slots for shard in one]),
            ]  # fmt: skip
            lists = f"holders_{number}, begins_{number}, listed_{number}"
        if c.contributors is not None:
            first = starts([len(ranks) for ranks in c.contributors]).tolist()
            lines += [
                _array("int", f"first_sources_{number}", first),
                _array("int", f"sources_{number}", [rank for ranks in c.contributors for rank in ranks]),
            ]  # fmt: skip
            sources = f"first_sources_{number}, sources_{number}"
        rows.append(
            f'    {{"{name}", call_{number}, {_KINDS[kind]}, {root}, {c.num_members}, weights_{number}, {c.whole}, '
            f"{c.num_shards}, {lists}, {sources}}},"
        )
    return "\n".join([*lines, "static const struct algorithm algorithms[] = {", *rows, "};"])


def _array(kind: str, name: str, values: Iterable[int]) -> str:
    """Return an array of C; an empty one gets a 0, because C has no empty arrays."""
    return f"static const {kind} {name}[] = {{{', '.join(map(str, values)) or '0'}}};"


#: the columns of an algorithm whose shards are equal
_NO_LISTS = "NULL, 0, 0, NULL, NULL, NULL, NULL, NULL"


def _even_table(collectives: Mapping[str, Collective]) -> str:
    lines = [f"int {name}(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);" for name in collectives]
    lines.append("\nstatic const struct algorithm algorithms[] = {")
    lines += [
        f'    {{"{name}", {name}, {_KINDS[c.kind]}, {-1 if c.root is None else c.root}, {c.num_members}, {_NO_LISTS}}},'
        for name, c in collectives.items()
    ]
    return "\n".join([*lines, "};"])
