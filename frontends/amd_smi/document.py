"""The output of `amd-smi topology --json` and `--csv`: for every GPU, what it has to every other one.

Two forms of JSON are read: a list of links for each GPU (ROCm 6.3 and later), and an object for each kind of value
with keys such as `gpu_0` (before). The CSV has the second form in its header: `link_type_gpu_0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from collc.ir.diagnostic import Source, Span, error

from ..importing.model import Draft
from ..importing.pasted import Word
from ..importing.squares import MOST_COLUMNS, table_lines
from ..importing.trees import Json, json_place, parse_json
from ..importing.xgmi import Box, Place

__all__ = ["read_csv", "read_json"]

Cell: TypeAlias = "tuple[str, int, int, str, Place]"

#: key of a link -> what it has
_OF_A_LINK = {
    "weight": "weight", "num_hops": "hops", "link_type": "kind", "bandwidth": "bandwidth", "link_status": "access",
}  # fmt: skip
#: key of a kind of value -> what it has
_OF_A_KIND = {
    "weight": "weight", "hops": "hops", "link_type": "kind", "numa_bandwidth": "bandwidth",
    "link_accessibility": "access",
}  # fmt: skip
_OTHER = re.compile(r"gpu_(\d{1,6})")
_COLUMN = re.compile(rf"({'|'.join(_OF_A_KIND)})_gpu_(\d{{1,6}})")
_NUMBER = re.compile(r"\d{1,6}")


def read_json(draft: Draft, source: Source) -> Box:
    """Return what a JSON text says of one machine; raise C0924 if it has no list of GPUs."""
    value = parse_json(source)
    path: tuple[str, ...] = ()
    if isinstance(value, dict):
        path = next(((key,) for key, one in value.items() if isinstance(one, list)), ())
        value = value[path[0]] if path else value
    if not isinstance(value, list) or not all(isinstance(one, dict) and _is_number(one.get("gpu")) for one in value):
        needed = "a list of objects with the key `gpu`"
        raise error("C0924", f"found other JSON, needed {needed}", span=json_place(source, *path))
    gpus = [one for one in value if isinstance(one, dict)]
    cells = [cell for at, gpu in enumerate(gpus) for cell in _cells(source, gpu, (*path, at))]
    addresses = {int(str(gpu["gpu"])): str(gpu["bdf"]) for gpu in gpus if isinstance(gpu.get("bdf"), str)}
    return _box(draft, source, [int(str(gpu["gpu"])) for gpu in gpus], cells, addresses)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | str) and bool(_NUMBER.fullmatch(str(value)))


def _cells(source: Source, gpu: Mapping[str, Json], path: tuple[str | int, ...]) -> Iterator[Cell]:
    """Yield what one GPU has to the others, in either form."""
    number = int(str(gpu["gpu"]))
    links = gpu.get("links")
    for at, link in enumerate(links if isinstance(links, list) else ()):
        if isinstance(link, dict) and _is_number(link.get("gpu")):
            for key, what in _OF_A_LINK.items():
                if key in link:
                    place = partial(json_place, source, *path, "links", at, key)
                    yield what, number, int(str(link["gpu"])), str(link[key]), place
    for key, what in _OF_A_KIND.items():
        others = gpu.get(key)
        for name, value in others.items() if isinstance(others, dict) else ():
            if found := _OTHER.fullmatch(name):
                yield what, number, int(found[1]), str(value), partial(json_place, source, *path, key, name)


def read_csv(draft: Draft, sources: Sequence[Source]) -> Box:
    """Return what a table of comma-separated values says of one machine; raise C0924 if it has no column `gpu`."""
    rows = [line for line in table_lines(sources) if "," in line.text]
    table = [[line.part(cell) for cell in re.finditer(r"[^,]*(?=,|$)", line.text)] for line in rows]
    header = [cell.text.strip() for cell in table[0]] if table else []
    if "gpu" not in header:
        raise error("C0924", "found no header with the column `gpu`", span=Span(sources[0], 1, 1, 1, 2))
    at = header.index("gpu")
    columns = [(i, found) for i, name in enumerate(header) if (found := _COLUMN.fullmatch(name))]
    cells, numbers = list[Cell](), list[int]()
    for row in table[1:]:
        if at < len(row) and _NUMBER.fullmatch(row[at].text.strip()):
            numbers.append(int(row[at].text))
            for i, found in columns:
                if i < len(row):
                    text = row[i].text.strip()
                    cells.append((_OF_A_KIND[found[1]], numbers[-1], int(found[2]), text, partial(_place, row[i])))
    return _box(draft, sources[0], numbers, cells, {})


def _place(word: Word) -> Span:
    return word.span


def _box(
    draft: Draft, source: Source, gpus: Sequence[int], cells: Sequence[Cell], addresses: Mapping[int, str]
) -> Box:  # fmt: skip
    """Return the machine with these cells; raise C0933 for too many GPUs."""
    numbers = sorted({*gpus, *(cell[2] for cell in cells)})
    if len(numbers) > MOST_COLUMNS:
        raise error("C0933", f"found {len(numbers)} GPUs, needed at most {MOST_COLUMNS}", span=Span(source, 1, 1, 1, 2))
    box = Box(draft, Span(source, 1, 1, 1, 2))
    box.gpus = [f"GPU{number}" for number in numbers]
    index = {number: i for i, number in enumerate(numbers)}
    for what, a, b, text, place in cells:
        box.put(what, (index[a], index[b]), text, place)
    missing = [f"GPU{number}" for number in numbers if number not in set(gpus)]
    if missing:
        draft.wrong("C0924", f"found links to {', '.join(missing[:3])}, but not from it", box.span, "is the text cut?")
    if addresses:
        draft.note("PCIe addresses: " + ", ".join(f"GPU{number} {addresses[number]}" for number in sorted(addresses)))
    return box
