"""Reads the C file and the header that collc writes, and nothing else.

The reader returns tables, names and numbers. It compares all other text with the files that collc ships, the engine by
its hash. It skips no character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

import attrs

from collc.ir.arrays import Array

from .cursor import Cursor, Unreadable
from .forms import COUNTED, ENDS, RELAYED, counted_functions, described_forms, resolved
from .numbers import Numbers, read_table, read_tables
from .rooted import NONE
from .source import ENGINE, ENGINE_COUNTS, MEMBERS, ROOT_WORDS, flags_of, relayed_words
from .template_tables import most_listed

__all__ = ["Documented", "Entry", "HeaderText", "PlanRow", "SourceText", "read_header", "read_source"]

_NAME = r"[A-Za-z]\w*"
_INTEGER = r"(?:0|-?[1-9][0-9]*)"
#: texts that :func:`.names.comment` returns
_PHRASE = r"[A-Za-z0-9 _.,:;=+<>(){}\[\]#-]*"
_RELAYS_OF_PLAN = "    int relays; /* ranks of the communicator after"
_BUFFERS = "/* ---- The buffers of a call ---------------------------------------------------------------------- */\n"


@attrs.frozen
class PlanRow:
    """A row of the table ``plans``: the data of a collective, without its algorithms. ``shards`` is 0 if none.

    The communicator has ``ranks`` members, then ``relays``. ``listed`` has the shards of a custom collective: those of
    each rank's input and output begin at ``begins``. ``roots`` has the first row of its roots, its first move and the
    first image.
    """

    ranks: int
    root: int
    reduces: int
    twice: int
    algorithm: int
    algorithms: int
    kind: str
    shards: int = 0
    begins: Array | None = attrs.field(default=None, eq=False)
    listed: Array | None = attrs.field(default=None, eq=False)
    relays: int = 0
    roots: tuple[int, int, int] = NONE


@attrs.frozen
class Entry:
    """The functions of one collective: their name, whether one returns the algorithm, and the plan that they run.

    Functions that take the root run one of ``orbits`` plans from that one on; others have 0.
    """

    name: str
    has_algorithm: bool
    plan: int
    orbits: int = 0


@attrs.frozen(eq=False)
class SourceText:
    """The contents of a C file.

    ``title`` is that of its first comment, or None. ``labels`` are the names of its algorithms, if a function returns
    them. ``engine`` is the beginning of the engine's hash.
    """

    prefix: str
    title: str | None
    entries: tuple[Entry, ...]
    channels: int
    numbers: Numbers
    kinds: tuple[str, ...]
    plans: tuple[PlanRow, ...]
    labels: tuple[str, ...]
    engine: str


@attrs.frozen
class Documented:
    """The description of one collective in a header. ``op`` is None and ``algorithms`` is empty if they are absent.

    ``without_relays`` is the number of ranks that do not only relay, if the header says that others do. ``rooted``: the
    functions take the root.
    """

    name: str
    description: str
    kind: str
    op: str | None
    algorithms: tuple[str, ...]
    has_algorithm: bool
    members: tuple[int, ...] | None = None
    without_relays: int | None = None
    rooted: bool = False


@attrs.frozen
class HeaderText:
    """The contents of a header; ``contents`` has name and description of each of several collectives."""

    prefix: str
    title: str
    contents: tuple[tuple[str, str], ...]
    functions: tuple[Documented, ...]


# ---- shipped files


def shipped(name: str, package: str | None = __package__) -> str:
    """Return a file that ships with collc, with exactly one line break at its end, as in the generated text."""
    assert package is not None
    return files(package).joinpath(name).read_text(encoding="utf-8").rstrip("\n") + "\n"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def expect_same(cursor: Cursor, text: str) -> None:
    """Skip a text and compare its hash; raise Unreadable at its first difference."""
    found = cursor.text[cursor.at : cursor.at + len(text)]
    if digest(found) != digest(text):
        cursor.expect(text)
    cursor.at += len(text)


def _signatures(template: str) -> list[str]:
    """Return the external functions of a C file, each on one line.

    >>> _signatures("static int x(void)\\n{\\n}\\nint NAME(int a,\\n         int b)\\n{\\n}\\n")
    ['int NAME(int a, int b)']
    """
    return [re.sub(r"\s+", " ", text) for text in _heads(template)]


def _heads(template: str) -> list[str]:
    return re.findall(r"^(?:int|const char \*)\s?\w+\([^)]*\)(?=\n\{)", template, re.MULTILINE)


def _counted_entry(kind: str) -> str:
    return counted_functions(shipped(f"entry_{kind}.c"), {end: shipped(end) for end in ENDS})


@cache
def _counted_kinds() -> dict[str, str]:
    """Return the functions of each kind of collective with counts."""
    names = [file.name for file in files(__package__).iterdir()]
    kinds = sorted(name[len("entry_") : -len(".c")] for name in names if re.fullmatch(r"entry_\w+\.c", name))
    return {kind: _counted_entry(kind) for kind in kinds}


def declarations(name: str, prefix: str, has_algorithm: bool, kind: str | None = None, rooted: bool = False) -> str:
    """Return the declarations of a collective's functions in the shipped files, each on two lines.

    With counts, ``kind`` is the collective's, and the lines are those of the functions. ``rooted``: they take the root.
    """
    lines = []
    if kind is not None:
        lines = [f"{text};" for text in _heads(_counted_kinds()[kind])]
        lines = [text.replace("NAME", name).replace("PREFIX", prefix) for text in lines]
    for signature in [
        *(_signatures(shipped("rooted_entry.c" if rooted else "entry.c")) if kind is None else ()),
        *(_signatures(shipped("rooted_algorithm.c" if rooted else "algorithm.c")) if has_algorithm else ()),
    ]:
        text = signature.replace("NAME", name).replace("PREFIX", prefix)
        lines.append(text.replace("op, ", "op,\n" + " " * (text.index("(") + 1)) + ";")
    return "\n".join(lines)


def request_declarations(prefix: str) -> str:
    """Return the declarations that all collectives of a file share."""
    lines = [f"{text};".replace("PREFIX", prefix) for text in _signatures(shipped("requests.c"))]
    return "\n".join([f"typedef struct {prefix}_operation *{prefix}_request;", "", *lines])


# ---- the source


def read_source(text: str, name: str) -> SourceText:
    """Return the contents of a C file; raise Unreadable if collc would not write it."""
    cursor = Cursor(text, name)
    found = cursor.fill(shipped("head.c"), {"@NAME@": _NAME, "@WHAT@": _PHRASE}, "the head of the file")
    cursor.expect("\n")
    source = rest_of_source(cursor, found["@NAME@"], "default")
    cursor.end()
    return attrs.evolve(source, title=found["@WHAT@"])


def rest_of_source(cursor: Cursor, prefix: str | None, visibility: str) -> SourceText:
    """Return the declarations, tables, engine and functions of a C file, after its head.

    If ``prefix`` is None, the declarations give it.
    """
    cursor.expect(f"#if defined(__GNUC__)\n#pragma GCC visibility push({visibility})\n#endif\n")
    if prefix is None:
        prefix = _ahead(cursor, rf"typedef struct ({_NAME})_operation \*")
    declared = _declared(cursor, prefix)
    relayed = _RELAYS_OF_PLAN in cursor.text
    cursor.expect("\n")
    channels, numbers = read_tables(cursor)
    counted, rooted = (one.kind is not None for one in declared), any(one.rooted for one in declared)
    worded, shared, turned = "algorithm_words" in numbers, "piece_src" in numbers, "algorithm_kept" in numbers
    fixed = "piece_place" in numbers and "piece_buffer" not in numbers
    flags = flags_of(counted, relayed, most_listed(numbers), worded, rooted, shared, turned, fixed)
    cursor.expect("\n")
    parts = [part for part in ENGINE if part != ENGINE_COUNTS or COUNTED in flags]
    texts = [resolved(shipped(part), flags).rstrip("\n") + "\n" for part in parts]
    expect_same(cursor, "\n".join(texts) + "\n" + _BUFFERS + "\n")
    kinds = []
    while found := _binding(cursor, flags):
        kinds.append(found)
    plans, labels = _plans(cursor, COUNTED in flags, relayed, rooted)
    expect_same(cursor, shipped("requests.c").replace("PREFIX", prefix))
    entries = tuple(_entry(cursor, prefix, one, flags) for one in declared)
    return SourceText(
        prefix, None, entries, channels, numbers, tuple(kinds), plans, labels, digest("\n".join(texts))[:12]
    )


@attrs.frozen
class _Declared:
    """A declared collective: its name, whether a function returns the algorithm, its kind if it has counts, and whether
    its functions take the root.
    """

    name: str
    has_algorithm: bool
    kind: str | None = None
    rooted: bool = False


def _declared(cursor: Cursor, prefix: str) -> list[_Declared]:
    """Return the declared collectives."""
    cursor.expect(request_declarations(prefix) + "\n")
    found = []
    while not cursor.accept("#if defined(__GNUC__)\n#pragma GCC visibility pop\n#endif\n"):
        cursor.expect("\n")
        name = _ahead(cursor, rf"int ({_NAME})\(")
        found.append(_declares(cursor, name, prefix))
        cursor.expect("\n")
    return found


def _ahead(cursor: Cursor, pattern: str) -> str:
    """Return the name here, and stay in place."""
    place = cursor.at
    name = cursor.match(pattern, "a declaration")[1]
    cursor.at = place
    return name


def _declares(cursor: Cursor, name: str, prefix: str) -> _Declared:
    """Skip the declarations of a collective, and return it."""
    for kind in _counted_kinds():
        for has_algorithm in (True, False):
            if cursor.accept(declarations(name, prefix, has_algorithm, kind)):
                return _Declared(name, has_algorithm, kind)
    for has_algorithm in (True, False):
        if cursor.accept(declarations(name, prefix, has_algorithm, rooted=True)):
            return _Declared(name, has_algorithm, rooted=True)
    has_algorithm = cursor.accept(declarations(name, prefix, True))
    if not has_algorithm:
        cursor.expect(declarations(name, prefix, False))
    return _Declared(name, has_algorithm)


@cache
def _bindings() -> dict[str, str]:
    names = [file.name for file in files(__package__).iterdir() if re.fullmatch(r"bind_\w+\.c", file.name)]
    return {name.removeprefix("bind_").removesuffix(".c"): shipped(name) for name in sorted(names)}


def _binding(cursor: Cursor, flags: Sequence[str]) -> str | None:
    """Return the kind of collective whose binding is next; None if there is none."""
    for kind, text in _bindings().items():
        if cursor.accept(resolved(text, flags)):
            cursor.expect("\n")
            return kind
    return None


def _plans(cursor: Cursor, counted: bool, relayed: bool, rooted: bool) -> tuple[tuple[PlanRow, ...], tuple[str, ...]]:
    lists: dict[int, tuple[Array, Array]] = {}
    while found := _optional(cursor, r"(?=static const int32_t begins_([0-9]{1,9})\[)"):
        number = int(found[1])
        lists[number] = (
            read_table(cursor, f"begins_{number}", "int32_t"), read_table(cursor, f"listed_{number}", "int32_t")
        )  # fmt: skip
        cursor.expect("\n")
    cursor.expect("static const struct plan plans[] = {\n")
    rows = list[PlanRow]()
    while not cursor.accept("};\n\n"):
        number = len(rows)
        tables = f"begins_{number}, listed_{number}" if number in lists else "NULL, NULL"
        with_counts = rf"(?:bind_(\w+), 0, NULL|NULL, ({_INTEGER}), bind_(\w+)), {tables}"
        binding = with_counts if counted else r"bind_(\w+)()()"
        relays = rf"({_INTEGER}), " if relayed else "()"
        roots = rf"({_INTEGER}), ({_INTEGER}), ({_INTEGER}), " if rooted else "()()()"
        row = rf"    {{{', '.join([f'({_INTEGER})'] * 6)}, {relays}{roots}{binding}}},\n"
        found = cursor.match(row, "a row of `plans`")
        ranks, root, reduces, twice, algorithm, algorithms = map(int, found.groups()[:6])
        kind, shards = found[11] or found[13], int(found[12] or 0)
        moved = (int(found[8]), int(found[9]), int(found[10])) if rooted else NONE
        begins, listed = lists.pop(number, (None, None))
        plan = PlanRow(ranks, root, reduces, twice, algorithm, algorithms, kind, shards, begins, listed)
        rows.append(attrs.evolve(plan, relays=int(found[7] or 0), roots=moved))
    if relayed != any(row.relays for row in rows):
        raise cursor.fail("a plan with ranks that relay")
    if lists:
        raise cursor.fail("lists of shards of plans")
    labels = []
    if cursor.accept("static const char *const algorithm_names[] = {\n"):
        while not cursor.accept("};\n\n"):
            labels.append(cursor.match(rf'    "({_PHRASE})",\n', "the name of an algorithm")[1])
    return tuple(rows), tuple(labels)


def _entry(cursor: Cursor, prefix: str, one: _Declared, flags: Sequence[str]) -> Entry:
    begin = "rooted_" if one.rooted else ""
    template = resolved(shipped(f"{begin}entry.c"), flags) if one.kind is None else _counted_kinds()[one.kind]
    template += "\n" + shipped(f"{begin}algorithm.c") if one.has_algorithm else ""
    template = template.replace("NAME", one.name).replace("PREFIX", prefix)
    cursor.expect("\n")
    holes = {"NUMBER": _INTEGER, "AMONG": _INTEGER} if one.rooted else {"NUMBER": _INTEGER}
    found = cursor.fill(template, holes, f"the functions of `{one.name}`")
    return Entry(one.name, one.has_algorithm, int(found["NUMBER"]), int(found["AMONG"]) if one.rooted else 0)


# ---- the header


def read_header(text: str, name: str) -> HeaderText:
    """Return the contents of a header; raise Unreadable if collc would not write it."""
    cursor = Cursor(text, name)
    counted = "\n * Functions with counts have" in text
    # all that is there of functions without counts is in files with counts too
    relayed = "\n * Ranks that only relay have" in text
    flags = [flag for flag, has in ((COUNTED, counted), (RELAYED, relayed)) if has]
    template = resolved(shipped("header.h"), flags).replace("@AT_ONCE@", _at_once())
    before, after = template.split("@FUNCTIONS@")
    before, middle = before.split("@REQUESTS@")
    line = rf" \*   {_NAME}: {_PHRASE}\n"
    holes = {
        "@NAME@": _NAME, "@WHAT@": _PHRASE, "@CONTENTS@": rf"(?: \*\n(?:{line})+)?", "@PREFIX@": _NAME,
        "@GUARD@": r"\w+",
    }  # fmt: skip
    found = cursor.fill(before, holes, "the head of the header")
    prefix = found["@NAME@"]
    if found["@PREFIX@"] != prefix or found["@GUARD@"] != f"COLLC_{prefix.upper()}_H":
        raise Unreadable(f"{name}: some names of the header do not begin with `{prefix}`")
    cursor.expect(request_declarations(prefix).rstrip("\n") + middle)
    functions = [_documented(cursor, prefix)]
    while not cursor.accept(after):
        cursor.expect("\n")
        functions.append(_documented(cursor, prefix))
    cursor.end()
    if counted != any(function.kind in _counted_kinds() for function in functions):
        raise Unreadable(f"{name}: the words on counts are not those of the functions")
    if relayed != any(function.without_relays for function in functions):
        raise Unreadable(f"{name}: the words on ranks that relay are not those of the functions")
    listed = re.findall(rf" \*   ({_NAME}): ({_PHRASE})\n", found["@CONTENTS@"])
    return HeaderText(prefix, found["@WHAT@"], tuple(listed), tuple(functions))


def _at_once() -> str:
    """Return the number of calls that run at a time, as the word that the header has for the macro's number."""
    found = re.search(r"#define COLLC_AT_ONCE (\d+)", shipped("head.c"))
    words = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[int(found[1])] if found is not None and int(found[1]) < len(words) else "@AT_ONCE@"


def _documented(cursor: Cursor, prefix: str) -> Documented:
    head = cursor.match(rf"/\* ({_NAME}): ({_PHRASE})\.\n \*\n", "the description of a function")
    name = head[1]
    members = _members(cursor)
    without_relays = _without_relays(cursor)
    kind = _described_buffers(cursor)
    rooted = cursor.accept(f" *\n * {ROOT_WORDS}\n")
    op, algorithms, has_algorithm = None, list[str](), False
    if found := _optional(cursor, rf" \*\n \* op: ({_PHRASE})\.\n"):
        op = found[1]
    if cursor.accept(" *\n * The bytes of the whole vector (all ranks' blocks together) choose the algorithm:\n"):
        has_algorithm = True
        while found := _optional(cursor, rf" \*   ((?:up to {_INTEGER} bytes|larger calls):{_PHRASE})\n"):
            algorithms.append(found[1].rstrip())
    counted = kind if kind in _counted_kinds() else None
    forms = described_forms(counted is not None)
    cursor.expect(" *\n" + "".join(f" *   {name}{form}: {text}\n" for form, text in forms))
    if has_algorithm:
        cursor.expect(f" *   {name}_algorithm: the one of a call, or NULL where the arguments make no sense\n")
    cursor.expect(" */\n" + declarations(name, prefix, has_algorithm, counted, rooted) + "\n")
    return Documented(name, head[2], kind, op, tuple(algorithms), has_algorithm, members, without_relays, rooted)


def _members(cursor: Cursor) -> tuple[int, ...] | None:
    """Return the ranks of the network that the communicator's ranks are, if the header names them."""
    if not cursor.accept(f" * {MEMBERS}"):
        return None
    found = cursor.match(r"(?:(?: |\n \* )(?:0|[1-9][0-9]*),)*(?: |\n \* )(?:0|[1-9][0-9]*)\.\n \*\n", "members")
    return tuple(map(int, re.findall("[0-9]+", found[0])))


def _without_relays(cursor: Cursor) -> int | None:
    """Return how many ranks of the communicator have data, if the header says that the others only relay."""
    found = _optional(cursor, r" \* The first ([1-9][0-9]*) ranks? of the communicator (?:has|have) data[^\n]*\n \*\n")
    if found is None:
        return None
    members = int(found[1])
    if found[0] != f" * {relayed_words(members)}\n *\n":
        raise cursor.fail("the words on ranks that relay")
    return members


def _optional(cursor: Cursor, pattern: str) -> re.Match[str] | None:
    found = re.compile(pattern, re.ASCII).match(cursor.text, cursor.at)
    cursor.at = cursor.at if found is None else found.end()
    return found


def _described_buffers(cursor: Cursor) -> str:
    """Return the kind of collective whose buffers are described here, in the words of its binding."""
    for kind, text in _bindings().items():
        comment = text[: text.index("*/")].removeprefix("/*")
        lines = [line.strip().removeprefix("*").strip() for line in comment.strip().splitlines()]
        if cursor.accept("".join(f" * {line}\n" for line in lines)):
            return kind
    raise cursor.fail("a description of the buffers")


# ---- descriptions


_DESCRIPTION = re.compile(
    rf"(?P<kind>[a-z-]+)(?: at rank (?P<root>[0-9]+)| at (?P<roots>ranks [0-9., ]*[0-9]|[0-9]+ ranks))?"
    rf" for communicators of (?P<ranks>[0-9]+) ranks"
    rf"(?:, (?P<relays>[0-9]+) of which only relay)?"
    rf"(?:, by plans of (?P<plans>[0-9]+) roots|, by one of (?P<among>[0-9]+) algorithms"
    rf"|, scheduled by (?P<scheduler>{_PHRASE}))?"
)


def described(text: str) -> dict[str, str | None]:
    """Return the fields of a description as texts: kind, root, ranks, number of algorithms or scheduler.

    >>> described("reduce at rank 2 for communicators of 4 ranks, scheduled by bfb")["root"]
    '2'
    """
    found = _DESCRIPTION.fullmatch(text)
    return {} if found is None else found.groupdict()


def title_of(descriptions: Sequence[str]) -> str:
    """Return the title of a file of collectives with these descriptions."""
    return descriptions[0] if len(descriptions) == 1 else f"{len(descriptions)} collectives"
