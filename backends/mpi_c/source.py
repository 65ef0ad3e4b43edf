"""The text of a source and its header: one engine, any number of collectives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from textwrap import wrap

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, CUSTOM_REDUCTION, KINDS, UNEVEN, Collective
from collc.ir.ragged import starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.verify import adds_once

from ..base import Window
from .fixed_pieces import all_fixed
from .forms import (
    COUNTED,
    ENDS,
    EVEN,
    FIXED,
    GROUPED,
    ORBITS,
    RELAYED,
    ROOTED,
    SHARED,
    TURNED,
    WORDED,
    counted_functions,
    described_forms,
    resolved,
)
from .names import comment
from .rooted import TABLES, Rooted, offsets, shown_roots
from .scratch import is_counted, slot_shards
from .shared_pieces import shares
from .tables import Plan, column, tables
from .turns import folded
from .words import shape_of

__all__ = [
    "ENGINE", "ENGINE_COUNTS", "MEMBERS", "ROOT_WORDS", "Function", "Listing", "flags_of", "header", "identifiers",
    "listed_width", "numbers_of", "relayed_words", "source", "taken", "template",
]  # fmt: skip

#: the words before the members of a collective
MEMBERS = "The ranks of the communicator are these ranks of the network, in this order:"
#: the words on the root of a function that takes it
ROOT_WORDS = "root: one of these ranks, the same on all ranks, else MPI_ERR_ROOT."
_WIDTH = 100

#: the part of the engine that only files with functions with counts have
ENGINE_COUNTS = "engine_counts.c"
#: parts of a source after its tables, in order
ENGINE = (
    "engine_call.c", "engine_letters.c", "engine_memory.c", ENGINE_COUNTS, "engine_step.c", "engine_advance.c",
    "engine_run.c", "engine_agree.c", "engine_work.c",
)  # fmt: skip

_REQUESTS = """\
typedef struct {prefix}_operation *{prefix}_request;

int {prefix}_attach(MPI_Comm comm);
int {prefix}_start({prefix}_request *request);
int {prefix}_test({prefix}_request *request, int *flag);
int {prefix}_wait({prefix}_request *request);
int {prefix}_waitall(int number, {prefix}_request requests[]);
int {prefix}_free({prefix}_request *request);"""

_FORMS = (
    ("", "int count", ""),
    ("_c", "MPI_Count count", ""),
    ("_begin", "MPI_Count count", ", {prefix}_request *request"),
    ("_init", "MPI_Count count", ", MPI_Info info, {prefix}_request *request"),
)


@attrs.frozen
class Function:
    """One C function: a collective, with its algorithms in ascending order of their sizes.

    ``members`` are the ranks of the network that the communicator's ranks are, those that relay last; None if these are
    all. With ``rooted``, the C function takes the root, and this is its plan for one orbit of roots.
    """

    name: str
    parts: tuple[tuple[Window | None, AnyProgram], ...]
    members: tuple[int, ...] | None = None
    rooted: Rooted | None = None

    @property
    def is_head(self) -> bool:
        """Whether the C function is declared with this plan: all are but further orbits of roots."""
        return self.rooted is None or self.rooted.is_head

    @property
    def first(self) -> AnyProgram:
        """The program for the smallest calls."""
        return self.parts[0][1]

    @property
    def tells_algorithm(self) -> bool:
        """Whether a C function returns the algorithm of a call: if there are several, and one orbit of roots."""
        return bool(self.windows) and (self.rooted is None or self.rooted.orbits == 1)

    @property
    def windows(self) -> list[Window]:
        """The windows of several algorithms; empty if one serves all calls."""
        return [window for window, _ in self.parts if window is not None]

    @property
    def kind(self) -> str:
        """The collective's name as an identifier, with ``_`` for ``-``."""
        return self.first.collective.name.replace("-", "_")

    @property
    def relays(self) -> int:
        """The number of ranks that only relay, the last of the communicator."""
        collective = self.first.collective
        return collective.num_ranks - collective.num_members

    @property
    def width(self) -> int:
        """The most ranks that an algorithm lists of which a group gives the others; 0 if all algorithms list all."""
        return listed_width(self.parts)

    @property
    def worded(self) -> bool:
        """Whether such a group is none of vectors."""
        programs = (program for _, program in self.parts if isinstance(program, SymmetricProgram))
        return any(shape_of(program.group) is None for program in programs)

    @property
    def turned(self) -> bool:
        """Whether a rotation that keeps some ranks makes all ranks of few in an algorithm."""
        return any(isinstance(program, SymmetricProgram) and folded(program) for _, program in self.parts)

    @property
    def is_custom(self) -> bool:
        """Whether the plan lists the shards of each rank."""
        return self.first.collective.kind == CUSTOM

    @property
    def counted(self) -> bool:
        """Whether the function takes a count for each shard."""
        return is_counted(self.first.collective)


def listed_width(parts: Iterable[tuple[Window | None, AnyProgram]]) -> int:
    """Return the most ranks that an algorithm lists of which a group gives the others; 0 if there is no such one."""
    return max((program.width for _, program in parts if isinstance(program, SymmetricProgram)), default=0)


@attrs.frozen(eq=False)
class Listing:
    """The contents of a C file: the prefix of names, the functions, and the tables by name."""

    prefix: str
    functions: tuple[Function, ...]
    numbers: dict[str, Array]


@cache
def template(name: str) -> str:
    """Return a C file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def flags_of(
    counted: Iterable[bool], relayed: bool = False, width: int = 0, worded: bool = False, rooted: bool = False,
    shared: bool = False, turned: bool = False, fixed: bool = False,
) -> tuple[str, ...]:  # fmt: skip
    """Return the flags of a file of functions: whether each takes counts, and whether any has relays or takes the root.

    ``width`` is the most ranks that an algorithm with a group lists, 0 if there is none; ``worded`` says whether such
    a group is none of vectors, ``shared`` whether both ends of messages share lists of pieces, ``turned`` whether a
    rotation that keeps some ranks makes all of few, ``fixed`` whether lists have fixed places.
    """
    found = set(counted)
    flags = (
        (COUNTED, True in found), (EVEN, False in found), (RELAYED, relayed), (GROUPED, width > 0), (ORBITS, width > 1),
        (WORDED, worded), (ROOTED, rooted), (SHARED, shared or fixed),
        (FIXED, fixed), (TURNED, turned),
    )  # fmt: skip
    return tuple(flag for flag, has in flags if has)


def _flags(functions: Sequence[Function]) -> tuple[str, ...]:
    width, worded = max(f.width for f in functions), any(f.worded for f in functions)
    rooted, turned = any(f.rooted for f in functions), any(f.turned for f in functions)
    programs = [program for f in functions for _, program in f.parts]
    shared, fixed = any(map(shares, programs)), all_fixed(programs)
    counted, relayed = [f.counted for f in functions], any(f.relays for f in functions)
    return flags_of(counted, relayed, width, worded, rooted, shared, turned, fixed)


def relayed_words(members: int) -> str:
    """Return the sentence of a header that says which ranks only relay."""
    have = "rank of the communicator has data" if members == 1 else "ranks of the communicator have data"
    return f"The first {members} {have}: RANKS is {members}. The others only relay."


def _engine(flags: Sequence[str]) -> list[str]:
    parts = [part for part in ENGINE if part != ENGINE_COUNTS or COUNTED in flags]
    return [resolved(template(part), flags) for part in parts]


@cache
def taken(counted: bool = False, relayed: bool = False, width: int = 0, rooted: bool = False) -> frozenset[str]:
    """Return every identifier that a generated file uses; ``counted``: a file with functions with counts; ``relayed``:
    one with ranks that only relay; ``width``: as in :func:`flags_of`, with groups of any kind; ``rooted``: one with a
    function that takes the root.
    """
    with_counts = [*UNEVEN.values(), CUSTOM, CUSTOM_REDUCTION] if counted else []
    kinds = [*KINDS, *with_counts]
    bindings = [_binding_file(kind.replace("-", "_")) for kind in kinds]
    rest = ["requests.c", "entry.c", "algorithm.c", *(("rooted_entry.c", "rooted_algorithm.c") if rooted else ())]
    if counted:
        rest += [*(_entry_file(kind.replace("-", "_")) for kind in with_counts), *ENDS]
    flags = flags_of([False, counted], relayed, width, width > 0, rooted, width > 1)
    bound = [resolved(template(name), flags) for name in bindings]
    text = "".join([template("head.c"), *_engine(flags), *bound, *(resolved(template(name), flags) for name in rest)])
    text += " ".join(TABLES) if rooted else ""
    fixed = "plans int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t"
    return identifiers(text) | frozenset(fixed.split()) - {"NAME", "PREFIX"}


def identifiers(text: str) -> frozenset[str]:
    """Return all words of a C text except those in comments, strings and characters.

    >>> sorted(identifiers('/* it is */ puts("no %d" /* here */, x);'))
    ['puts', 'x']
    """
    ignored = r"""/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'"""
    return frozenset(re.findall(r"[A-Za-z_]\w*", re.sub(ignored, " ", text, flags=re.DOTALL)))


# ---- the source


def source(prefix: str, functions: Sequence[Function]) -> tuple[str, Listing]:
    """Return the C file of some functions, and its listing.

    The names of the functions for requests begin with ``prefix``.
    """
    data, plans, numbers = tables(_groups(functions), [f.rooted for f in functions])
    kinds, flags = dict.fromkeys(f.kind for f in functions), _flags(functions)
    head = template("head.c").replace("@NAME@", prefix).replace("@WHAT@", _title(functions))
    declared = "\n\n".join([_REQUESTS.format(prefix=prefix), *(_prototypes(prefix, f) for f in _heads(functions))])
    body = [
        f"{_VISIBLE}\n{declared}\n{_VISIBLE_END}\n", data, *_engine(flags),
        "/* ---- The buffers of a call ---------------------------------------------------------------------- */\n",
        *(resolved(template(_binding_file(kind)), flags) for kind in kinds), _plans(functions, plans),
        template("requests.c").replace("PREFIX", prefix),
        *(_entry(prefix, f, n, flags) for n, f in enumerate(functions) if f.is_head),
    ]  # fmt: skip
    text = "\n".join([head, *(part.rstrip("\n") + "\n" for part in body)])
    return text, Listing(prefix, tuple(functions), numbers)


def numbers_of(functions: Sequence[Function]) -> dict[str, Array]:
    """Return the tables of the C file of some functions."""
    return tables(_groups(functions), [f.rooted for f in functions])[2]


def _heads(functions: Sequence[Function]) -> list[Function]:
    """Return the plans with which C functions are declared."""
    return [function for function in functions if function.is_head]


def _groups(functions: Sequence[Function]) -> list[list[tuple[AnyProgram, int | None]]]:
    return [[(program, window.high if window else None) for window, program in f.parts] for f in functions]


_VISIBLE = "#if defined(__GNUC__)\n#pragma GCC visibility push(default)\n#endif"
_VISIBLE_END = "#if defined(__GNUC__)\n#pragma GCC visibility pop\n#endif"


def _binding_file(kind: str) -> str:
    return f"bind_{kind}.c"


def _entry_file(kind: str) -> str:
    return f"entry_{kind}.c"


def _plans(functions: Sequence[Function], plans: Sequence[Plan]) -> str:
    flags = _flags(functions)
    roots = offsets(f.rooted for f in functions)
    rows = [
        f"    {{{p.ranks}, {p.root}, {int(p.reduces)}, {int(p.twice)}, {p.algorithm}, {p.algorithms}, "
        f"{f'{p.relays}, ' if RELAYED in flags else ''}"
        f"{', '.join(map(str, roots[n])) + ', ' if ROOTED in flags else ''}"
        f"{_bindings(f, n) if COUNTED in flags else f'bind_{f.kind}'}}},"
        for n, (f, p) in enumerate(zip(functions, plans, strict=True))
    ]
    lists = [_listed_shards(f.first.collective, n) for n, f in enumerate(functions) if f.is_custom]
    text = "\n".join([*lists, "static const struct plan plans[] = {", *rows, "};"])
    if any(f.tells_algorithm for f in functions):
        labels = [f'    "{comment(window.algorithm if window else "")}",' for f in functions for window, _ in f.parts]
        text += "\n\n" + "\n".join(["static const char *const algorithm_names[] = {", *labels, "};"])
    return text


def _bindings(function: Function, number: int) -> str:
    """Return the last columns of a plan in a file with functions with counts."""
    lists = f"begins_{number}, listed_{number}" if function.is_custom else "NULL, NULL"
    if function.counted:
        return f"NULL, {function.first.collective.num_shards}, bind_{function.kind}, {lists}"
    return f"bind_{function.kind}, 0, NULL, NULL, NULL"


def _listed_shards(collective: Collective, number: int) -> str:
    """Return the tables of the shards that ranks of a custom collective have before, and after."""
    lists = [slot_shards(collective, rank, output) for rank in range(collective.num_ranks) for output in (False, True)]
    return column(f"begins_{number}", starts([len(one) for one in lists]), "int32_t") + column(
        f"listed_{number}", np.concatenate(lists), "int32_t"
    )


def _forms_text(function: Function, flags: Sequence[str]) -> str:
    if function.counted:
        return counted_functions(template(_entry_file(function.kind)), {end: template(end) for end in ENDS})
    return template("rooted_entry.c") if function.rooted else resolved(template("entry.c"), flags)


def _entry(prefix: str, function: Function, number: int, flags: Sequence[str]) -> str:
    algorithm = template("rooted_algorithm.c" if function.rooted else "algorithm.c")
    text = _forms_text(function, flags) + ("\n" + algorithm if function.tells_algorithm else "")
    orbits = function.rooted.orbits if function.rooted else 0
    words = {"NAME": function.name, "PREFIX": prefix, "NUMBER": str(number), "AMONG": str(orbits)}
    # In one pass: a name may contain one of these words.
    return re.sub("NAME|PREFIX|NUMBER|AMONG" if function.rooted else "NAME|PREFIX|NUMBER",
                  lambda found: words[found[0]], text)  # fmt: skip


def _prototypes(prefix: str, function: Function) -> str:
    lines = []
    if function.counted:
        found = re.findall(r"^int NAME[^)]*\)(?=\n\{)", _forms_text(function, ()), re.MULTILINE)
        lines = [f"{text};".replace("NAME", function.name).replace("PREFIX", prefix) for text in found]
    for suffix, count, more in () if function.counted else _FORMS:
        begin = f"int {function.name}{suffix}("
        line = f"{begin}const void *send, void *recv, {count}, MPI_Datatype type, MPI_Op op,"
        root = "int root, " if function.rooted else ""
        lines += [line, f"{' ' * len(begin)}{root}MPI_Comm comm{more.format(prefix=prefix)});"]
    if function.tells_algorithm:
        root = ", int root" if function.rooted else ""
        lines.append(f"const char *{function.name}_algorithm(MPI_Count count, MPI_Datatype type{root});")
    return "\n".join(lines)


# ---- the header


def header(prefix: str, functions: Sequence[Function]) -> str:
    """Return the header of some functions."""
    text = resolved(template("header.h"), _flags(functions))
    text = text.replace("@GUARD@", f"COLLC_{prefix.upper()}_H").replace("@WHAT@", _title(functions))
    heads = _heads(functions)
    contents = " *\n" + "".join(f" *   {f.name}: {_describe(f)}\n" for f in heads)
    contents = contents if len(heads) > 1 else ""
    text = text.replace("@REQUESTS@", _REQUESTS.format(prefix=prefix)).replace("@CONTENTS@", contents)
    text = text.replace("@FUNCTIONS@", "\n".join(_documented(prefix, f) + "\n" for f in heads))
    return text.replace("@AT_ONCE@", "eight").replace("@PREFIX@", prefix).replace("@NAME@", prefix)


def _title(functions: Sequence[Function]) -> str:
    heads = _heads(functions)
    return _describe(heads[0]) if len(heads) == 1 else f"{len(heads)} collectives"


def _describe(function: Function) -> str:
    program, among = function.first, len(function.parts)
    c = program.collective
    at = f" at rank {c.root}" if c.root is not None else ""
    if function.rooted is not None:
        at = f" at {shown_roots(function.rooted.roots.listed)}"
        if function.rooted.orbits > 1:
            return f"{c.name}{at} for communicators of {c.num_ranks} ranks, by plans of {function.rooted.orbits} roots"
    author = f", scheduled by {comment(program.scheduler)}" if program.scheduler else ""
    author = author if among == 1 else f", by one of {among} algorithms"
    relays = f", {function.relays} of which only relay" if function.relays else ""
    return f"{c.name}{at} for communicators of {c.num_ranks} ranks{relays}{author}"


def _documented(prefix: str, function: Function) -> str:
    """Return the declarations of a collective with their comment."""
    once = all(adds_once(program) for _, program in function.parts)
    lines = [f"{function.name}: {_describe(function)}."]
    if function.members is not None:
        text = f"{MEMBERS} {', '.join(map(str, function.members))}."
        lines += ["", *wrap(text, _WIDTH)]
    if function.relays:
        lines += ["", relayed_words(function.first.collective.num_members)]
    lines += ["", *_buffers(function)]
    if function.rooted is not None:
        lines += ["", ROOT_WORDS]
    if function.first.collective.reduces:
        need = "any commutative operation" if once else "MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_LAND or MPI_LOR"
        lines += ["", f"op: {need}."]
    if function.tells_algorithm:
        lines += ["", *_algorithms(function.windows)]
    lines += [""] + [f"  {function.name}{suffix}: {form}" for suffix, form in described_forms(function.counted)]
    if function.tells_algorithm:
        lines.append(f"  {function.name}_algorithm: the one of a call, or NULL where the arguments make no sense")
    text = "".join(f" * {line}".rstrip() + "\n" for line in lines)
    return f"/*{text[2:]} */\n{_prototypes(prefix, function)}"


def _buffers(function: Function) -> list[str]:
    """Return the description of the buffers, from the comment of the binding."""
    text = template(_binding_file(function.kind))
    lines = text[text.index("/*") + 3 : text.index("*/")].strip().splitlines()
    return [line.removeprefix(" *").strip() for line in lines]


def _algorithms(windows: Sequence[Window]) -> list[str]:
    """Return lines with the calls of each algorithm, by the bytes of the whole vector."""
    ends = [f"up to {window.high} bytes" for window in windows[:-1]] + ["larger calls"]
    lines = [f"  {end}: {comment(window.algorithm)}" for end, window in zip(ends, windows, strict=True)]
    return ["The bytes of the whole vector (all ranks' blocks together) choose the algorithm:", *lines]
