"""What an editor shows of the word under the cursor, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collc.backends import TARGETS
from collc.frontends.coll import FAMILIES, OPERATORS, brought
from collc.frontends.coll.families import FUNCTIONS
from collc.ir.shown import counted
from collc.ir.spec import CollectiveRequest, Spec
from collc.ir.topology import Topology
from collc.passes import SCHEDULERS

from .completing import options_of
from .context import context_at
from .places import word_at

__all__ = ["MOST_WORK", "collective_at", "network_text", "text_at"]

#: The most nodes times links of a network whose diameter is computed while the user waits: some tenths of a second.
MOST_WORK = 4_000_000


def collective_at(text: str, offset: int, spec: Spec | None) -> CollectiveRequest | None:
    """Return the collective whose name is at an offset; the first of a family of collectives."""
    word = _word(text, offset)
    if spec is None or word is None or _is_on_network(text, offset):
        return None
    names = (name for name in spec.collectives if name == word or name.startswith(f"{word}["))
    found = next(names, None)
    return None if found is None else spec.collectives[found]


def text_at(text: str, offset: int, spec: Spec | None) -> str | None:
    """Return the explanation of the word at an offset; None if there is nothing to say."""
    word = _word(text, offset)
    context = context_at(text, offset)
    if word is None or context.quoted:
        return None
    if (found := collective_at(text, offset, spec)) is not None:
        return f"**{found.name}**: {found.problem.brief}, using {found.schedule.scheduler}"
    if spec is not None and word in spec.topologies:
        return network_text(word, spec.topologies[word])
    return _of_options(word, context.owners, context.before) or _of_language(word, context.before)


def network_text(name: str, topology: Topology) -> str:
    """Return the figures of a network. The diameter of a large one is left out.

    >>> print(network_text("t", Topology.from_links("t", 2, [(0, 1), (1, 0)])))
    **t**: 2 ranks, 2 links, degree 1, diameter 1
    """
    parts = [counted(topology.num_ranks, "rank")]
    if topology.num_switches:
        parts.append(counted(topology.num_switches, "switch"))
    parts.append(counted(topology.num_links, "link"))
    if topology.degree is not None:
        parts.append(f"degree {topology.degree}")
    if topology.num_nodes * topology.num_links <= MOST_WORK:
        diameter = topology.diameter
        parts.append("not connected" if diameter is None else f"diameter {diameter}")
    return f"**{name}**: {', '.join(parts)}"


def _word(text: str, offset: int) -> str | None:
    ends = word_at(text, offset)
    return None if ends is None else text[ends[0] : ends[1]]


def _is_on_network(text: str, offset: int) -> bool:
    """Return whether the word at an offset stands where a network is named, which may have the name of a collective."""
    return re.search(r"\b(on|topology|cluster)\s+\Z", context_at(text, offset).before) is not None


def _of_options(word: str, owners: tuple[str, ...], before: str) -> str | None:
    """Return the help of an option, if the word is the name of one in the braces around it."""
    options = options_of(owners[-1]) if owners else None
    if not options or ":" in before.rpartition(",")[2]:
        return None
    for one in options:
        if one.name == word and (one.help or one.kind):
            kind = f" ({one.kind}, default {one.default})" if one.default else f" ({one.kind})" if one.kind else ""
            return f"**{word}**{kind}" + (f": {one.help}" if one.help else "")
    return None


def _of_language(word: str, before: str) -> str | None:
    """Return the summary of a name of the language; a scheduler's or target's only in its place."""
    if re.search(r"\busing\s+\Z", before) and word in SCHEDULERS:
        one = SCHEDULERS[word]
        takes = f"collectives: {', '.join(one.collectives)}\n\nnetworks: {one.networks}"
        return f"**{word}**: {one.summary}\n\n{takes}"
    if re.search(r"\bas\s+\Z", before) and word in TARGETS:
        return f"**{word}**: {TARGETS[word][2]}"
    known: Mapping[str, tuple[str, str]] = {**FAMILIES, **brought(), **OPERATORS}
    if word in known:
        signature, summary = known[word]
        return f"`{signature}`: {summary}"
    return f"`{FUNCTIONS[word]}`" if word in FUNCTIONS else None
