"""Texts to try: right ones of every kind that collc reads, changed ones, and what the grammar allows."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import attrs
from lark import Lark
from lark.grammar import NonTerminal, Terminal

__all__ = ["KINDS", "changed", "derived", "seeds"]

_ROOT = Path(__file__).resolve().parent.parent.parent

#: numbers and words that have broken readers before
_ODD = (
    "", "0", "-1", "1", "2", "007", "127", "128", "255", "65536", "2147483647", "2147483648", "9223372036854775807",
    "18446744073709551616", "1e9", "1e400", "nan", "inf", "0.1", "1/0", "9" * 40, "x" * 70, "é", "\u0661", "\x00",
    "\x7f", "\ufeff", "\u2028", "\ud800", "&amp;", "<", ">", '"', "'", "\\", "{", "}", "(", ")", "[", "]", ";", ",",
    ":", "->", "<->", "..", "#", "\t", "\r", "\n", " ", "1 MiB", "10 us", "25 Gbps", "GB/s", "mod", "not",
)  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z_][\w-]*|\d+(?:\.\d+)?|\s+|<->|->|\.\.|.", re.DOTALL)


@attrs.frozen
class Seed:
    """A right text, what kind it is, and its suffix."""

    kind: str
    suffix: str
    text: str


@cache
def seeds() -> tuple[Seed, ...]:
    """Return right texts: examples, cases of tests, and what collc makes of some of them."""
    found = [Seed("coll", ".coll", _text(path)) for path in sorted((_ROOT / "examples").rglob("*.coll"))]
    for suffix in (".coll", ".xml", ".ir"):
        paths = sorted((_ROOT / "tests" / "cases").rglob(f"*{suffix}"))
        found += [Seed(suffix[1:], suffix, _text(path)) for path in paths]
    return (*found, *_written())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _written() -> list[Seed]:
    """Return files that collc writes: every target and level, and tables that its other verbs read."""
    import collc

    found = []
    for topology, kind in (("biring(4)", "allreduce"), ("complete(3)", "alltoall")):
        text = f"topology t = {topology};\ncollective c = {kind} on t;\n"
        for target, suffix in (("msccl-xml", ".xml"), ("oneccl-xml", ".xml"), ("ir", ".ir")):
            text_of_target = collc.compile_source(text, target=target).artifacts["c"].text
            found.append(Seed(suffix[1:], suffix, text_of_target))
    rows = "".join(f"r{k},{1 << k},{(10 + (1 << k) / 100) * 1e-6:.9f},{k % 4 + 1},1.5\n" for k in range(4, 24))
    found.append(Seed("measured", ".csv", f"name,bytes,seconds,steps,load\n{rows}"))
    database = _text(_ROOT / "passes" / "finder" / "data" / "degree-3.txt").splitlines(keepends=True)
    found.append(Seed("database", ".txt", "".join(database[:40])))
    return found


KINDS = ("coll", "xml", "ir", "measured", "database")


# ---- changes


def changed(seed: Seed, luck: random.Random) -> str:
    """Return a text with a few random changes: of characters, tokens, numbers, lines, or pieces of another seed."""
    text = seed.text
    for _ in range(luck.choice((1, 1, 1, 2, 3, 6))):
        text = luck.choice((_characters, _token, _token, _number, _number, _lines, _spliced, _repeated))(text, luck)
    return text


def _characters(text: str, luck: random.Random) -> str:
    at = luck.randrange(len(text) + 1)
    return text[:at] + luck.choice(_ODD) + text[at + luck.randrange(12) :]


def _token(text: str, luck: random.Random) -> str:
    """Lose a token, double it, put another in its place, or exchange two."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        return luck.choice(_ODD)
    a, b = luck.randrange(len(tokens)), luck.randrange(len(tokens))
    match luck.randrange(5):
        case 0:
            tokens[a] = ""
        case 1:
            tokens[a] *= 2
        case 2:
            tokens[a] = luck.choice(_ODD)
        case 3:
            tokens[a] = tokens[b]
        case _:
            tokens[a], tokens[b] = tokens[b], tokens[a]
    return "".join(tokens)


def _number(text: str, luck: random.Random) -> str:
    places = list(re.finditer(r"\d+", text))
    if not places:
        return _characters(text, luck)
    place = luck.choice(places)
    value = int(place[0][:30])
    other = luck.choice(
        [value + 1, value - 1, 0, 2 * value, -value, value * 1000, luck.randrange(20), luck.choice(_ODD)]
    )
    return f"{text[: place.start()]}{other}{text[place.end() :]}"


def _lines(text: str, luck: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    a, b = luck.randrange(len(lines)), luck.randrange(len(lines))
    match luck.randrange(4):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            lines[a] = ""
        case _:
            lines = lines[: a + 1]
    return "".join(lines)


def _spliced(text: str, luck: random.Random) -> str:
    """Put some lines of another seed into the text."""
    other = luck.choice(seeds()).text.splitlines(keepends=True)
    lines = text.splitlines(keepends=True)
    at, first = luck.randrange(len(lines) + 1), luck.randrange(len(other) + 1)
    return "".join(lines[:at] + other[first : first + luck.randrange(6)] + lines[at:])


def _repeated(text: str, luck: random.Random) -> str:
    """Repeat a piece of text many times: what is linear stays quick."""
    if len(text) > 20_000 or luck.random() < 0.7:
        return _token(text, luck)
    at = luck.randrange(len(text) + 1)
    return text[:at] + text[at : at + luck.randrange(1, 30)] * luck.randrange(2, 400) + text[at:]


# ---- what the grammar allows

_WORDS = {
    "NAME": ("t", "c", "x", "gpu", "r", "s", "n", "torus", "biring", "complete", "hypercube", "line", "ranks", "mesh",
             "circulant", "kautz", "debruijn", "product", "power", "uniring", "bandwidth", "latency", "root", "size"),
    "WORD": ("t", "c", "allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "bfb", "forest", "ring",
             "auto", "swing", "msccl-xml", "allgatherv", "alltoallv", "custom", "neighbours", "weights", "matrix",
             "pre", "mpi-c", "ir", "size", "root", "op", "chunks", "runtime", "latency", "k"),
    "HYPHENATED": ("reduce-scatter", "nccl-topo", "double-binary-tree"),
    "GLOB": ("mlx5_*", "*", "HCA-*"),
    "NUMBER": ("0", "1", "2", "3", "4", "5", "8", "16", "1.5", "300", "99999999999"),
    "UNIT": ("B", "KiB", "MiB", "GB", "Gbps", "us", "ns", "s", "Mb", "parsec"),
    "STRING": ('"a.coll"', '""', '"pg(2,3)"', '"../x"', '"n-001"', '"gpu[0]"', '"n[1-4]"', '"node.xml"'),
    "COMPARE": ("==", "<", ">=", "!="),
    "TIMES": ("*", "/"),
}  # fmt: skip


@cache
def _grammar() -> tuple[dict[str, list[tuple[str, ...]]], dict[str, str]]:
    """Return the rules of the language (name -> expansions) and the fixed text of its terminals."""
    text = (_ROOT / "frontends" / "coll" / "grammar.lark").read_text(encoding="utf-8")
    parser = Lark(text, start="file", parser="lalr", keep_all_tokens=True)
    rules: dict[str, list[tuple[str, ...]]] = {}
    for rule in parser.rules:
        symbols = tuple(s.name if isinstance(s, Terminal) else f"<{s.name}" for s in rule.expansion)
        assert all(isinstance(s, (Terminal, NonTerminal)) for s in rule.expansion)
        rules.setdefault(rule.origin.name, []).append(symbols)
    fixed = {}
    for terminal in parser.terminals:
        pattern = terminal.pattern
        fixed[terminal.name] = re.sub(r"\(\?!.*", "", pattern.value) if pattern.type == "re" else pattern.value
    return rules, fixed


def derived(luck: random.Random) -> str:
    """Return a text that the grammar allows, drawn at random; what it says need not mean anything."""
    rules, fixed = _grammar()
    words: list[str] = []
    todo, room = ["<declaration"] * luck.randint(1, 4), luck.choice((40, 120, 400))
    while todo and len(words) < 3000:
        symbol = todo.pop()
        if not symbol.startswith("<"):
            words.append(luck.choice(_WORDS[symbol]) if symbol in _WORDS else fixed[symbol])
            continue
        expansions = rules[symbol[1:]]
        if len(words) + len(todo) > room:  # no more room: what ends soonest
            least = min(len(e) for e in expansions)
            expansions = [e for e in expansions if len(e) == least] if luck.random() < 0.9 else expansions
        todo += reversed(luck.choice(expansions))
    return re.sub(r" (?=[;,)\]])", "", " ".join(words)).replace("; ", ";\n")
