"""Help texts and listings: the glossary's words, short lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from commands import Ran

from collc.backends import TARGETS
from collc.cli.arguments import help_text
from collc.cli.verbs import VERBS, overview
from collc.passes import PASSES, SCHEDULERS

Collc = Callable[..., Ran]

NAMED = {"targets": TARGETS.own, "schedulers": SCHEDULERS.own, "passes": PASSES.own}
LISTINGS = ("targets", "passes", "schedulers", "topologies", "formats")
MOST_WORDS = 20

#: What help and listings do not say, and what they say instead.
OLD_WORDS = {
    r"(?<!both )(?<!each )(?<!one )\bways?\b": "route",
    r"\blate(ness)?\b": "latency",
    r"\bstream(s|ed|ing)?\b": "pipelining",
    r"\bwho\b": "name the actor",
    r"\bwhat (it|they) becomes?\b": "say what it is",
    r"\bso many\b": "the number",
    r"\banyone|\bsomebody|\bnobody": "name the actor",
    r"\bstays? as (it is|they are)\b": "unmodified",
    r"\bby turns\b|\banew\b": "alternating, recompute",
}


def old_words(text: str) -> list[str]:
    """Return the old words in a text, each with its replacement."""
    found = []
    for pattern, instead in OLD_WORDS.items():
        found += [f"{hit[0]!r} -> {instead}: {text}" for hit in re.finditer(pattern, text, re.IGNORECASE)]
    return found


def long_lines(text: str) -> list[str]:
    """Return the lines of more than 20 words; a word has a letter or a digit."""
    return [line for line in text.splitlines() if len(re.findall(r"\S*\w\S*", line)) > MOST_WORDS]


def flaws(text: str) -> list[str]:
    return [*old_words(text), *long_lines(text)]


def listed(value: object) -> Iterator[str]:
    """Yield the summaries and help texts of a listing; names and values are no prose."""
    if isinstance(value, list):
        for one in value:
            yield from listed(one)
    elif isinstance(value, dict):
        yield from (value[key] for key in ("summary", "help", "networks") if isinstance(value.get(key), str))
        for one in value.values():
            yield from listed(one)


def test_the_overview() -> None:
    assert not flaws(overview())


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb(verb: str) -> None:
    text = help_text(VERBS[verb])
    lines = [line for line in text.splitlines() if line[:1] == " "]
    assert not old_words(text) and not long_lines("\n".join(lines))
    sentences = re.split(r"(?<=[.:])\s+", VERBS[verb].details.strip())
    assert not [one for one in sentences if len(one.split()) > MOST_WORDS + 5]


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing(collc: Collc, listing: str) -> None:
    found = json.loads(collc(listing, "--json").out)
    assert not [flaw for text in listed(found) for flaw in flaws(text)]


@pytest.mark.parametrize(
    ("listing", "name"),
    [(listing, name) for listing, known in NAMED.items() for name in known],
)
def test_the_options_of_one(collc: Collc, listing: str, name: str) -> None:
    found = json.loads(collc(listing, name, "--json").out)
    assert not [flaw for text in listed([found]) for flaw in flaws(text)]


@pytest.mark.parametrize(
    "text",
    ["over shortest ways", "how late messages are", "who is to run the file", "run on what they become",
     "use at most so many algorithms", "pieces are streamed", "word " * 21, "computes a database anew"],
)  # fmt: skip
def test_a_fault_is_found(text: str) -> None:
    assert flaws(text)


@pytest.mark.parametrize("text", ["rings both ways", "one latency for each route", "a rate of 3 later steps"])
def test_plain_english_is_no_fault(text: str) -> None:
    assert not flaws(text)
