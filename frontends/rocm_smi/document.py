"""The output of `rocm-smi --showtopo --json`: a key for every pair of GPUs, and an object for every GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from collc.ir.diagnostic import Source, Span, error

from ..importing.model import Draft
from ..importing.squares import MOST_COLUMNS
from ..importing.trees import Json, json_place, parse_json
from ..importing.xgmi import Box

__all__ = ["read_document"]

_PAIR = re.compile(r"\(Topology\) (\S.*) between DRM devices (\d{1,6}) and (\d{1,6})", re.IGNORECASE)
_CARD = re.compile(r"(?:card|GPU) ?(\d{1,6})", re.IGNORECASE)
_WHATS = {"weight": "weight", "hops": "hops", "link type": "kind", "link accessibility": "access"}
_NAMES = ("card series", "card model", "gfx version")


def read_document(draft: Draft, source: Source) -> Box:
    """Return what a JSON text says of one machine; raise C0924 if it is no object of GPUs."""
    value = parse_json(source)
    if not isinstance(value, dict):
        raise error("C0924", "found no object with GPUs", span=json_place(source))
    pairs = list(_pairs(value))
    cards = {int(found[1]): one for key, one in value.items() if (found := _CARD.fullmatch(key))}
    numbers = sorted({number for one in pairs for number in one[1]} | set(cards))
    if len(numbers) > MOST_COLUMNS:
        raise error("C0933", f"found {len(numbers)} GPUs, needed at most {MOST_COLUMNS}", span=json_place(source))
    box = Box(draft, Span(source, 1, 1, 1, 2))
    box.gpus = [f"GPU{number}" for number in numbers]
    index = {number: i for i, number in enumerate(numbers)}
    for what, (a, b), text, path in pairs:
        box.put(what, (index[a], index[b]), text, partial(json_place, source, *path))
    for number, card in cards.items():
        _put_card(box, index[number], card)
    return box


def _pairs(value: dict[str, Json]) -> Iterator[tuple[str, tuple[int, int], str, tuple[str, str]]]:
    """Yield what each pair has: the kind of the value, the numbers of the GPUs, the value, and its place."""
    for group, members in value.items():
        if isinstance(members, dict):
            for key, one in members.items():
                found = _PAIR.fullmatch(key)
                if found and found[1].lower() in _WHATS:
                    yield _WHATS[found[1].lower()], (int(found[2]), int(found[3])), str(one), (group, key)


def _put_card(box: Box, gpu: int, card: Json) -> None:
    if not isinstance(card, dict):
        return
    lower = {key.lower(): str(one) for key, one in card.items()}
    node = lower.get("(topology) numa node", "")
    if re.fullmatch(r"\d{1,6}", node):
        box.nodes[gpu] = int(node)
    for name in _NAMES:
        if name in lower:
            box.name(gpu, lower[name])
