"""Text -> what it says: the C file and the header that collc writes, and nothing else.

Tables, names and numbers are read; everything between them is compared with the files that collc ships, the engine by
its hash. No character of a file is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

import attrs

from .cursor import Cursor, Unreadable
from .numbers import Numbers, read_tables
from .source import ENGINE

__all__ = ["Documented", "Entry", "HeaderText", "PlanRow", "SourceText", "read_header", "read_source"]

_NAME = r"[A-Za-z]\w*"
_INTEGER = r"(?:0|-?[1-9][0-9]*)"
#: what :func:`.names.comment` leaves of a text
_PHRASE = r"[A-Za-z0-9 _.,:;=+<>(){}\[\]#-]*"
_BUFFERS = "/* ---- The buffers of a call ---------------------------------------------------------------------- */\n"
_FORMS = ("", "_c", "_begin", "_init")


@attrs.frozen
class PlanRow:
    """A row of the table ``plans``: what is the collective's, not an algorithm's."""

    ranks: int
    root: int
    reduces: int
    twice: int
    algorithm: int
    algorithms: int
    kind: str


@attrs.frozen
class Entry:
    """The functions of one collective: their name, whether one tells the algorithm, and the plan that they run."""

    name: str
    tells: bool
    plan: int


@attrs.frozen(eq=False)
class SourceText:
    """What a C file says. ``title`` is of its first comment, where that has one; ``labels`` are the names of its
    algorithms, where it tells them; ``engine`` is the beginning of the engine's hash.
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
    """What a header says of one collective. ``op`` and ``algorithms`` are nothing where it is silent of them."""

    name: str
    description: str
    kind: str
    op: str | None
    algorithms: tuple[str, ...]
    tells: bool


@attrs.frozen
class HeaderText:
    """What a header says; ``contents`` are name and description of each of several collectives."""

    prefix: str
    title: str
    contents: tuple[tuple[str, str], ...]
    functions: tuple[Documented, ...]


# ---- what is shipped


def shipped(name: str, package: str | None = __package__) -> str:
    """Return a file that ships with collc, as it is in the generated text: with one line break at its end."""
    assert package is not None
    return files(package).joinpath(name).read_text(encoding="utf-8").rstrip("\n") + "\n"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def expect_same(cursor: Cursor, text: str) -> None:
    """Go on past a text of which the hash is compared; raise Unreadable at its first difference."""
    found = cursor.text[cursor.at : cursor.at + len(text)]
    if digest(found) != digest(text):
        cursor.expect(text)
    cursor.at += len(text)


def _signatures(template: str) -> list[str]:
    """Return the external functions that a C file defines, each on one line.

    >>> _signatures("static int x(void)\\n{\\n}\\nint NAME(int a,\\n         int b)\\n{\\n}\\n")
    ['int NAME(int a, int b)']
    """
    found = re.findall(r"^(?:int|const char \*)\s?\w+\([^)]*\)(?=\n\{)", template, re.MULTILINE)
    return [re.sub(r"\s+", " ", text) for text in found]


def declarations(name: str, prefix: str, tells: bool) -> str:
    """Return the declarations of a collective's functions: those that the shipped files define, a line a half."""
    lines = []
    for signature in [*_signatures(shipped("entry.c")), *(_signatures(shipped("algorithm.c")) if tells else ())]:
        text = signature.replace("NAME", name).replace("PREFIX", prefix)
        lines.append(text.replace("op, ", "op,\n" + " " * (text.index("(") + 1)) + ";")
    return "\n".join(lines)


def request_declarations(prefix: str) -> str:
    """Return the declarations of what all collectives of a file share."""
    lines = [f"{text};".replace("PREFIX", prefix) for text in _signatures(shipped("requests.c"))]
    return "\n".join([f"typedef struct {prefix}_operation *{prefix}_request;", "", *lines])


# ---- the source


def read_source(text: str, name: str) -> SourceText:
    """Return what a C file says; raise Unreadable where it is not one that collc writes."""
    cursor = Cursor(text, name)
    found = cursor.fill(shipped("head.c"), {"@NAME@": _NAME, "@WHAT@": _PHRASE}, "the head of the file")
    cursor.expect("\n")
    source = rest_of_source(cursor, found["@NAME@"], "default")
    cursor.end()
    return attrs.evolve(source, title=found["@WHAT@"])


def rest_of_source(cursor: Cursor, prefix: str | None, visibility: str) -> SourceText:
    """Return what follows the head of a C file, which says the prefix or does not: declarations, tables, engine and
    functions.
    """
    cursor.expect(f"#if defined(__GNUC__)\n#pragma GCC visibility push({visibility})\n#endif\n")
    if prefix is None:
        prefix = _ahead(cursor, rf"typedef struct ({_NAME})_operation \*")
    declared = _declared(cursor, prefix)
    cursor.expect("\n")
    channels, numbers = read_tables(cursor)
    cursor.expect("\n")
    texts = [shipped(part) for part in ENGINE]
    expect_same(cursor, "\n".join(texts) + "\n" + _BUFFERS + "\n")
    kinds = []
    while found := _binding(cursor):
        kinds.append(found)
    plans, labels = _plans(cursor)
    expect_same(cursor, shipped("requests.c").replace("PREFIX", prefix))
    entries = tuple(_entry(cursor, prefix, name, tells) for name, tells in declared)
    return SourceText(
        prefix, None, entries, channels, numbers, tuple(kinds), plans, labels, digest("\n".join(texts))[:12]
    )


def _declared(cursor: Cursor, prefix: str) -> list[tuple[str, bool]]:
    """Return the collectives that are declared, and whether each has a function that tells its algorithm."""
    cursor.expect(request_declarations(prefix) + "\n")
    found = []
    while not cursor.accept("#if defined(__GNUC__)\n#pragma GCC visibility pop\n#endif\n"):
        cursor.expect("\n")
        name = _ahead(cursor, rf"int ({_NAME})\(")
        found.append((name, _declares(cursor, name, prefix)))
        cursor.expect("\n")
    return found


def _ahead(cursor: Cursor, pattern: str) -> str:
    """Return the name that stands here, without going on."""
    place = cursor.at
    name = cursor.match(pattern, "a declaration")[1]
    cursor.at = place
    return name


def _declares(cursor: Cursor, name: str, prefix: str) -> bool:
    """Go on past the declarations of a collective; return whether a function that tells its algorithm is there."""
    tells = cursor.accept(declarations(name, prefix, True))
    if not tells:
        cursor.expect(declarations(name, prefix, False))
    return tells


@cache
def _bindings() -> dict[str, str]:
    names = [file.name for file in files(__package__).iterdir() if re.fullmatch(r"bind_\w+\.c", file.name)]
    return {name.removeprefix("bind_").removesuffix(".c"): shipped(name) for name in sorted(names)}


def _binding(cursor: Cursor) -> str | None:
    """Return the kind of collective whose buffers are bound here, nothing where something else stands."""
    for kind, text in _bindings().items():
        if cursor.accept(text):
            cursor.expect("\n")
            return kind
    return None


def _plans(cursor: Cursor) -> tuple[tuple[PlanRow, ...], tuple[str, ...]]:
    cursor.expect("static const struct plan plans[] = {\n")
    rows = []
    while not cursor.accept("};\n\n"):
        found = cursor.match(rf"    {{{', '.join([f'({_INTEGER})'] * 6)}, bind_(\w+)}},\n", "a row of `plans`")
        ranks, root, reduces, twice, algorithm, algorithms = map(int, found.groups()[:-1])
        rows.append(PlanRow(ranks, root, reduces, twice, algorithm, algorithms, found[7]))
    labels = []
    if cursor.accept("static const char *const algorithm_names[] = {\n"):
        while not cursor.accept("};\n\n"):
            labels.append(cursor.match(rf'    "({_PHRASE})",\n', "the name of an algorithm")[1])
    return tuple(rows), tuple(labels)


def _entry(cursor: Cursor, prefix: str, name: str, tells: bool) -> Entry:
    template = shipped("entry.c") + ("\n" + shipped("algorithm.c") if tells else "")
    template = template.replace("NAME", name).replace("PREFIX", prefix)
    cursor.expect("\n")
    found = cursor.fill(template, {"NUMBER": _INTEGER}, f"the functions of `{name}`")
    return Entry(name, tells, int(found["NUMBER"]))


# ---- the header


def read_header(text: str, name: str) -> HeaderText:
    """Return what a header says; raise Unreadable where it is not one that collc writes."""
    cursor = Cursor(text, name)
    template = shipped("header.h").replace("@AT_ONCE@", _at_once())
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
        raise Unreadable(f"{name}: not all names of the header are made of `{prefix}`")
    cursor.expect(request_declarations(prefix).rstrip("\n") + middle)
    functions = [_documented(cursor, prefix)]
    while not cursor.accept(after):
        cursor.expect("\n")
        functions.append(_documented(cursor, prefix))
    cursor.end()
    listed = re.findall(rf" \*   ({_NAME}): ({_PHRASE})\n", found["@CONTENTS@"])
    return HeaderText(prefix, found["@WHAT@"], tuple(listed), tuple(functions))


def _at_once() -> str:
    """Return how many calls are carried out at a time, in the word that the header has for the macro's number."""
    found = re.search(r"#define COLLC_AT_ONCE (\d+)", shipped("head.c"))
    words = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[int(found[1])] if found is not None and int(found[1]) < len(words) else "@AT_ONCE@"


def _documented(cursor: Cursor, prefix: str) -> Documented:
    head = cursor.match(rf"/\* ({_NAME}): ({_PHRASE})\.\n \*\n", "the description of a function")
    name = head[1]
    kind = _described_buffers(cursor)
    op, algorithms, tells = None, list[str](), False
    if found := _optional(cursor, rf" \*\n \* op: ({_PHRASE})\.\n"):
        op = found[1]
    if cursor.accept(" *\n * The bytes of the whole vector (all ranks' blocks together) choose the algorithm:\n"):
        tells = True
        while found := _optional(cursor, rf" \*   ((?:up to {_INTEGER} bytes|larger calls):{_PHRASE})\n"):
            algorithms.append(found[1].rstrip())
    says = ("blocking", "the same for counts of any size", "nonblocking: returns at once, see test and wait",
            "persistent: start begins the call, as often as wanted")  # fmt: skip
    cursor.expect(" *\n" + "".join(f" *   {name}{form}: {text}\n" for form, text in zip(_FORMS, says, strict=True)))
    if tells:
        cursor.expect(f" *   {name}_algorithm: the one of a call, or NULL where the arguments make no sense\n")
    cursor.expect(" */\n" + declarations(name, prefix, tells) + "\n")
    return Documented(name, head[2], kind, op, tuple(algorithms), tells)


def _optional(cursor: Cursor, pattern: str) -> re.Match[str] | None:
    found = re.compile(pattern, re.ASCII).match(cursor.text, cursor.at)
    cursor.at = cursor.at if found is None else found.end()
    return found


def _described_buffers(cursor: Cursor) -> str:
    """Return the kind of collective whose buffers are described here, as the comment of its binding does."""
    for kind, text in _bindings().items():
        comment = text[: text.index("*/")].removeprefix("/*")
        lines = [line.strip().removeprefix("*").strip() for line in comment.strip().splitlines()]
        if cursor.accept("".join(f" * {line}\n" for line in lines)):
            return kind
    raise cursor.fail("what the buffers are")


# ---- descriptions


_DESCRIPTION = re.compile(
    rf"(?P<kind>[a-z-]+)(?: at rank (?P<root>[0-9]+))? for communicators of (?P<ranks>[0-9]+) ranks"
    rf"(?:, by one of (?P<among>[0-9]+) algorithms|, scheduled by (?P<scheduler>{_PHRASE}))?"
)


def described(text: str) -> dict[str, str | None]:
    """Return what a description says: kind, root, ranks, number of algorithms or scheduler, as texts.

    >>> described("reduce at rank 2 for communicators of 4 ranks, scheduled by bfb")["root"]
    '2'
    """
    found = _DESCRIPTION.fullmatch(text)
    return {} if found is None else found.groupdict()


def title_of(descriptions: Sequence[str]) -> str:
    """Return the title of a file of collectives that are described so."""
    return descriptions[0] if len(descriptions) == 1 else f"{len(descriptions)} collectives"
