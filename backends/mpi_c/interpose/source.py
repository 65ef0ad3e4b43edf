"""The text of a library for LD_PRELOAD: the engine with its tables, and the layer between a program and its MPI.

The library links no MPI. Every function of the MPI that the text calls becomes a pointer. At the first call the library
looks it up by its name in the profiling interface, and also handles that are variables (Open MPI's).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations

import attrs

from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.verify import adds_once

from ..names import comment
from ..rooted import shown_roots
from ..source import Function, Listing, identifiers, source

__all__ = [
    "AFTER", "BEFORE", "INTERPOSED", "Served", "call_text", "exchange_text", "exchanged_pairs", "interposed",
    "interposing", "listed", "require_distinct", "require_range", "serves_text",
]  # fmt: skip

#: the default name of the library
INTERPOSED = "collc_interpose"

#: the files before the engine and after it, in order
BEFORE = "symbols.c"
AFTER = (
    "registry.c", "counts.c", "private.c", "judge.c", "tune.c", "carry.c", "uneven.c", "around.c", "neighbours.c",
    "worker.c", "requests.c", "stages.c", "statistics.c", "fortran.c", "fortran_calls.c", "fortran_later.c",
    "wrappers.c", "later.c",
)  # fmt: skip

_RANGES = ", or give both ranges of sizes: `min-bytes`, `max-bytes` of mpi-c"

#: the name of custom collectives that libraries serve
NEIGHBOURS = "neighbours"

_KINDS = {
    "allgather": "ALLGATHER", "reduce-scatter": "REDUCE_SCATTER", "allreduce": "ALLREDUCE", "broadcast": "BROADCAST",
    "reduce": "REDUCE", "gather": "GATHER", "scatter": "SCATTER", "alltoall": "ALLTOALL",
    NEIGHBOURS: "NEIGHBOURS",
}  # fmt: skip

#: a function of MPI that is called, not a type in a cast or a declaration
_CALLED = re.compile(r"\bMPI_([A-Z][a-z]\w*)(?=\s*\()")

_HEAD = """\
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
"""


@attrs.frozen
class Served:
    """A function and the calls that it serves: ``low`` to ``high`` bytes of the whole vector, both included.

    If the function has windows, ``low`` and ``high`` narrow their range.
    """

    function: Function
    low: int = 0
    high: int | None = None

    @property
    def sizes(self) -> tuple[int, int | None]:
        """The smallest and the largest served vector (bytes, inclusive); None if there is no upper limit."""
        windows = self.function.windows
        low = max([self.low, *(window.low for window in windows[:1])])
        ends = [end for end in (self.high, *(window.high for window in windows[-1:])) if end is not None]
        return low, min(ends, default=None)

    @property
    def calls(self) -> tuple[str, int, int | None]:
        """The served calls without their sizes: kind, number of ranks, root."""
        collective = self.function.first.collective
        kind = NEIGHBOURS if self.function.is_custom else collective.kind
        return kind, collective.num_ranks, collective.root

    @property
    def pairs(self) -> frozenset[tuple[int, int]] | None:
        """The ranks of the blocks of a neighbourhood collective: sources and targets; None for other collectives."""
        return exchanged_pairs(self.function.first.collective)

    @property
    def roots(self) -> tuple[int | None, ...]:
        """The roots of the served calls; None alone if the collective has none."""
        root, rooted = self.calls[2], self.function.rooted
        return (root,) if root is None or rooted is None else rooted.roots.orbit(root)

    @property
    def at(self) -> str:
        """The roots in words, after a blank; empty if the collective has none."""
        roots = [root for root in self.roots if root is not None]
        if self.function.rooted is not None:
            return f" at {shown_roots(roots)}"
        return f" at rank {roots[0]}" if roots else ""

    def __str__(self) -> str:
        kind, ranks, _ = self.calls
        return f"{kind}{self.at} of {ranks} ranks, {_range(*self.sizes)}"


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} bytes or more" if low else "any size"
    return f"{low} to {high} bytes"


def exchanged_pairs(collective: Collective) -> frozenset[tuple[int, int]] | None:
    """Return the pairs (source, target) of a custom collective's shards; None for a collective that no neighbourhood
    collective of MPI is: if it reduces, or a shard has not one target.
    """
    if collective.kind != CUSTOM or collective.contributors is not None:
        return None
    assert collective.pre is not None and collective.post is not None
    if any(len(targets) != 1 for targets in collective.post):
        return None
    return frozenset((source, targets[0]) for source, targets in zip(collective.pre, collective.post, strict=True))


def require_distinct(served: Iterable[Served]) -> None:
    """Raise C0730 if two functions would serve the same call."""
    wrong = [
        Diagnostic(
            "C0730",
            f"`{a.function.first.name}` and `{b.function.first.name}` both serve {a.calls[0]} of {a.calls[1]} ranks",
            notes=(f"`{a.function.first.name}`: {a}", f"`{b.function.first.name}`: {b}"),
            hint=f"leave one out (--collective NAME){_RANGES * (a.pairs is None)}",
        )
        for a, b in combinations(served, 2)
        if a.calls[:2] == b.calls[:2]
        and a.pairs == b.pairs
        and not set(a.roots).isdisjoint(b.roots)
        and _overlap(a.sizes, b.sizes)
    ]
    if wrong:
        raise CollcError(wrong)


def require_range(low: int, high: int | None) -> None:
    """Raise C0731 for an invalid range of sizes."""
    if not 0 <= low < _MOST or (high is not None and not low <= high < _MOST):
        found = f"{low} to {'any' if high is None else high}"
        hint = "sizes are bytes of the whole vector, the smallest first"
        raise error(
            "C0731", f"`min-bytes` to `max-bytes` must be a range of sizes, found {found}", hint=hint, exit_status=2,
            option="min-bytes" if high is None else "max-bytes",
        )  # fmt: skip


#: one more than the largest 64-bit count of bytes
_MOST = 2**63


def _overlap(a: tuple[int, int | None], b: tuple[int, int | None]) -> bool:
    return (b[1] is None or a[0] <= b[1]) and (a[1] is None or b[0] <= a[1])


def interposed(name: str, served: Sequence[Served]) -> str:
    """Return the C file of a library that serves some calls of unmodified programs. Raises C0730."""
    return listed(name, served)[0]


def listed(name: str, served: Sequence[Served]) -> tuple[str, Listing]:
    """Return the C file as :func:`interposed` does, and the listing of its engine."""
    require_distinct(served)
    text, listing = source(name, [one.function for one in served])
    text = text.replace("visibility push(default)", "visibility push(hidden)")
    head, includes, engine = text.partition("#include <mpi.h>\n")
    head = _title(head, served)
    body = "\n".join([engine, *(template(part) for part in AFTER[:-1]), template("entry.c"), template(AFTER[-1])])
    body = body.replace("@CALLS@", "\n".join(_call(one, number) for number, one in enumerate(served)))
    body = body.replace("@ENTRIES@", "\n".join(_entry(one, number) for number, one in enumerate(served)))
    called = sorted(set(_CALLED.findall(body)))
    body = _CALLED.sub(r"cip_\1", body)
    return "\n".join([_HEAD + head + includes, template(BEFORE), _pointers(called), body]), listing


@cache
def template(name: str) -> str:
    """Return a C file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def interposing() -> frozenset[str]:
    """Return every identifier of the text except those of its engine."""
    return identifiers(_HEAD + "".join(map(template, (BEFORE, *AFTER, "entry.c"))))


def _title(head: str, served: Sequence[Served]) -> str:
    """Return the first comment of the file, with instructions to build and use it."""
    lines = "".join(f" *   {comment(one.function.first.name)}: {one}\n" for one in served)
    body = head[head.index("*/") :]
    return f"""\
/* A library for LD_PRELOAD that serves collective calls of unmodified MPI programs. Generated by collc.
 *
{lines} *
 * It is for the MPI whose header it is compiled with, and links none; never build it with mpicc as linker:
 *   mpicc -O2 -fPIC -c FILE.c  and then  cc -shared -o FILE.so FILE.o -ldl
 * `collc launch` does both, and runs a program with it. COLLC_STATS=1 prints what was served.
 {body}"""


def _pointers(called: Sequence[str]) -> str:
    """Return a pointer for every called function of the MPI, and the function that sets the pointers."""
    declared, found = [], []
    for name in called:
        lines = [
            f"static __typeof__(&PMPI_{name}) cip_{name};",
            f'    if ((cip_{name} = (__typeof__(&PMPI_{name}))cip_find("PMPI_{name}")) == NULL)\n'
            f'        return "PMPI_{name}";',
        ]
        if name.endswith("_c"):  # functions for large counts, which an MPI has or has not
            lines = [f"#if MPI_VERSION >= 4\n{line}\n#endif" for line in lines]
        declared.append(lines[0])
        found.append(lines[1])
    note = "/* The MPI's functions that are called here, and where they are found; the name of one that is missing. */"
    return "\n".join([note, *declared, "\nstatic const char *cip_bind(void)\n{", *found, "    return NULL;\n}", ""])


def _call(one: Served, number: int) -> str:
    if one.function.counted:
        return exchange_text(one.function.name, number)
    rooted = one.function.rooted is not None
    text = call_text(one.function.name, rooted) if one.function.is_head else ""
    return text + ("\n" * bool(text) + serves_text(number) if rooted else "")


def call_text(name: str, rooted: bool) -> str:
    """Return the function that carries out the calls of one algorithm, or of all orbits of roots."""
    ignored, root = ("", "root, ") if rooted else ("    (void)root;\n", "")
    return f"""\
static int cip_{name}(const void *send, void *recv, int64_t count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm)
{{
{ignored}    return cip_outcome({name}_c(send, recv, (MPI_Count)count, type, op, {root}comm), comm);
}}

static int cip_{name}_begin(const void *send, void *recv, int64_t count, MPI_Datatype type, MPI_Op op, int root,
                            MPI_Comm comm, int persistent, void **request)
{{
{ignored}    if (persistent)
        return {name}_init(send, recv, (MPI_Count)count, type, op, {root}comm, MPI_INFO_NULL, (void *)request);
    return {name}_begin(send, recv, (MPI_Count)count, type, op, {root}comm, (void *)request);
}}
"""


def exchange_text(name: str, number: int) -> str:
    """Return the functions that carry out calls of a neighbourhood collective, and list a rank's neighbours."""
    return f"""\
static int cip_{name}_peers(int rank, int receives, int *peers)
{{
    return cip_list_peers(begins_{number}, listed_{number}, plans[{number}].ranks, rank, receives, peers);
}}

static int cip_{name}_exchange(const struct cip_exchange *x, MPI_Comm comm, int form, void **request)
{{
    struct arguments given = {{.send = x->send, .recv = x->recv, .op = MPI_OP_NULL, .root = -1}};

    given.send_counts.wide = x->send_counts;
    given.send_places.far = x->send_places;
    given.send_type = x->send_type;
    given.recv_counts.wide = x->recv_counts;
    given.recv_places.far = x->recv_places;
    given.recv_type = x->recv_type;
    if (form == CIP_AT_ONCE)
        return cip_outcome(perform_counts(&plans[{number}], &given, comm), comm);
    return request_counts((void *)request, form == CIP_AGAIN, &plans[{number}], &given, comm);
}}
"""


def serves_text(number: int) -> str:
    """Return the function that says whether a plan is moved to a root."""
    return f"""\
static int cip_serves_{number}(int root)
{{
    return plan_of(&plans[{number}], 1, root) != NULL;
}}
"""


def _entry(one: Served, number: int) -> str:
    (kind, ranks, root), (low, high) = one.calls, one.sizes
    twice = int(not all(adds_once(program) for _, program in one.function.parts))
    name = one.function.name
    calls = f"cip_{name}, cip_{name}_begin", "NULL, NULL"
    if one.function.counted:
        calls = "NULL, NULL", f"cip_{name}_peers, cip_{name}_exchange"
    return (
        f"    {{CIP_{_KINDS[kind]}, {ranks}, {-1 if root is None else root}, {twice}, {low}, "
        f'{"INT64_MAX" if high is None else high}, "{comment(one.function.first.name)}", '
        f"{calls[0]}, cip_start_this, cip_test_this, cip_forget_this, "
        f"cip_attach_this, {'NULL' if one.function.rooted is None else f'cip_serves_{number}'}, {calls[1]}, "
        f"INT64_MAX, cip_bind, NULL}},"
    )
