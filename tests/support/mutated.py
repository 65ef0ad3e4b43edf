"""Damaged texts for readers: the same ones every time, from a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from sampling import EXHAUSTIVE

__all__ = ["cases", "mutations", "survives"]

_EXTREMES = (
    "0", "-1", "1", "4294967295", "18446744073709551616", "9" * 400, "1e999999999", "nan", "0x10", "1.5", "", "16 GT/s",
)  # fmt: skip
_STRAY = "\x00\x01\x1b[4m\x7f\u202e\u00e9\U0001f600\"'<>&;{}[]()=,#\\\t"
_TOKEN = re.compile(r"\w+|[^\w\s]")


def cases(usual: int = 300, all_of_them: int = 20_000) -> int:
    """Return how many mutations to try: all of them with ``COLLC_EXHAUSTIVE=1``."""
    return all_of_them if EXHAUSTIVE else usual


def mutations(texts: Sequence[str], count: int, seed: int = 1) -> Iterator[str]:
    """Yield ``count`` damaged forms of some texts; each has one to four damages."""
    chance = random.Random(seed)
    for number in range(count):
        text = texts[number % len(texts)]
        for _ in range(chance.choice((1, 1, 2, 4))):
            text = chance.choice(_DAMAGES)(text, chance)
        yield text


def survives(run: Callable[[str], object], texts: Sequence[str], count: int, seed: int = 1) -> int:
    """Run a function on mutations; only CollcError may come out. Return how many texts were accepted."""
    from collc.ir.diagnostic import CollcError

    accepted = 0
    for number, text in enumerate(mutations(texts, count, seed)):
        try:
            run(text)
            accepted += 1
        except CollcError as failure:
            assert failure.diagnostics
        except BaseException as failure:
            raise AssertionError(f"mutation {number} of seed {seed}: {failure!r}\n{text[:2000]}") from failure
    return accepted


def _lines(text: str, chance: random.Random) -> str:
    """Delete, double, swap or indent lines."""
    lines = text.split("\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[min(a, b) : min(a, b) + chance.choice((1, 1, 3))]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case _:
            lines[a] = chance.choice(("  ", "\t", "> ", "# ")) + lines[a]
    return "\n".join(lines)


def _tokens(text: str, chance: random.Random) -> str:
    """Delete, double or replace a token by another one of the text."""
    found = list(_TOKEN.finditer(text))
    if not found:
        return text
    one, other = chance.choice(found), chance.choice(found)
    new = chance.choice(("", one[0] * 2, other[0]))
    return text[: one.start()] + new + text[one.end() :]


def _numbers(text: str, chance: random.Random) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    one = chance.choice(found)
    return text[: one.start()] + chance.choice(_EXTREMES) + text[one.end() :]


def _characters(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(_STRAY) + text[at + chance.randrange(2) :]


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


_DAMAGES = (_lines, _lines, _tokens, _tokens, _numbers, _numbers, _characters, _cut)
