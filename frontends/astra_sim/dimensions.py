"""Networks of ASTRA-sim: a product of dimensions, each a ring, a full mesh or a switch.

Semantics are those of ASTRA-sim's analytical backends (astra-network-analytical, `congestion_aware/basic-topology` and
`common/network-parser`): `bandwidth` is that of one link in each direction, `latency` that of one link. A ring has a
link in both directions between neighbours; with two NPUs it is one link. A full mesh has a link between every two. A
switch has a link to each NPU, so that a message takes two. NPU numbers count dimension 0 fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import TypeVar

from collc.ir.diagnostic import CollcError, Source, error, nearest
from collc.ir.frozen import frozen
from collc.ir.shown import counted

from ..importing.figures import Figures, gigabytes
from ..importing.model import Draft, Imported
from ..importing.numbers import decimal, whole
from ..importing.several import only
from ..importing.yaml_tree import Fields, Items, Node, Scalar, parse_yaml

__all__ = ["BLOCKS", "network"]

T = TypeVar("T")

#: name of a block -> the number of links that n NPUs have in it
BLOCKS: Mapping[str, Callable[[int], int]] = {
    "Ring": lambda n: n if n > 2 else n - 1, "FullyConnected": lambda n: n * (n - 1) // 2, "Switch": lambda n: n,
}  # fmt: skip
_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_MOST_DIMENSIONS = 20


@frozen
class _Dimension:
    """One dimension: its block, its NPUs, and the bandwidth (bytes/s) and latency (s) of one link."""

    block: str
    npus: int
    bandwidth: Fraction
    latency: Fraction


def network(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network; raise CollcError with all mistakes."""
    source = only(sources, "ASTRA-sim")
    draft = Draft("astra-sim")
    tree = parse_yaml(source)
    dimensions = _dimensions(draft, tree)
    if draft.mistakes:
        return draft.finish()  # raises them
    _require_within(dimensions, figures, tree)
    draft.note("GB/s is 10^9 bytes per second; ASTRA-sim's analytical backends compute with 2^30")
    for number in range(prod(one.npus for one in dimensions)):
        draft.rank(f"npu{number}")
    for d, one in enumerate(dimensions):
        _link(draft, d, one, [dimension.npus for dimension in dimensions])
    return draft.finish()


def _require_within(dimensions: Sequence[_Dimension], figures: Figures, tree: Node) -> None:
    npus = prod(one.npus for one in dimensions)
    groups = [(one, npus // one.npus) for one in dimensions]
    switches = sum(count for one, count in groups if one.block == "Switch")
    links = sum(count * BLOCKS[one.block](one.npus) for one, count in groups)
    counts = tree.get("npus_count") if isinstance(tree, Fields) else None
    figures.require_within(npus + switches, 2 * links, counts.span if counts else None)


# ---- what the text has


def _dimensions(draft: Draft, tree: Node) -> list[_Dimension]:
    if not isinstance(tree, Fields):
        draft.wrong("C0924", "found no map, needed `topology`, `npus_count`, `bandwidth` and `latency`", tree.span)
        return []
    for key, (scalar, _) in tree.entries.items():
        if key not in _KEYS:
            draft.warn("C0942", f"ignored the key `{key}`", scalar.span, hint=nearest(key, _KEYS))
    columns = [_column(draft, tree, key) for key in _KEYS]
    if draft.mistakes:
        return []
    rows = list(zip(*columns, strict=True))
    found = [_dimension(draft, *row) for row in rows]
    return [one for one in found if one is not None]


def _column(draft: Draft, tree: Fields, key: str) -> Sequence[Scalar]:
    """Return the values of a key, one for each dimension."""
    value = tree.get(key)
    if value is None:
        draft.wrong("C0924", f"found no `{key}`, needed a list with a value for each dimension", tree.span)
        return []
    items = value.items if isinstance(value, Items) else (value,)  # older files have `topology: Switch`
    scalars = [item for item in items if isinstance(item, Scalar)]
    if len(scalars) < len(items):
        draft.wrong("C0924", f"`{key}` is no list of values", value.span, hint=f"write `{key}: [ .. ]`")
        return []
    dimensions = _count(tree.get(_KEYS[0]))
    if not scalars or len(scalars) > _MOST_DIMENSIONS:
        found = counted(len(scalars), "value")
        draft.wrong("C0924", f"`{key}` has {found}, needed 1 to {_MOST_DIMENSIONS}", value.span)
    elif len(scalars) != dimensions:
        message = f"`{key}` has {counted(len(scalars), 'value')}, `topology` has {dimensions}"
        draft.wrong("C0924", message, value.span, hint="give one value for each dimension")
    return scalars


def _count(value: Node | None) -> int:
    return len(value.items) if isinstance(value, Items) else 1


def _dimension(draft: Draft, block: Scalar, npus: Scalar, bandwidth: Scalar, latency: Scalar) -> _Dimension | None:
    checked = (
        _taken(draft, _block, block), _taken(draft, _npus, npus), _taken(draft, _speed, bandwidth),
        _taken(draft, _time, latency),
    )  # fmt: skip
    name, count, speed, time = checked
    if name is None or count is None or speed is None or time is None:
        return None
    return _Dimension(name, count, speed, time)


def _taken(draft: Draft, check: Callable[[Scalar], T], scalar: Scalar) -> T | None:
    """Return the checked value; None, and the mistake is in the draft, if it is wrong."""
    try:
        return check(scalar)
    except CollcError as failure:
        draft.take(failure)
        return None


def _block(scalar: Scalar) -> str:
    if scalar.text not in BLOCKS:
        hint = nearest(scalar.text, BLOCKS) or f"known: {', '.join(BLOCKS)}"
        raise error("C0924", f"found `{scalar.text}`, needed a block of ASTRA-sim", span=scalar.span, hint=hint)
    return scalar.text


def _npus(scalar: Scalar) -> int:
    number = whole(scalar.text)
    if number is None or number < 2:
        raise error("C0924", f"found `{scalar.text}`, needed a number of NPUs from 2", span=scalar.span)
    return number


def _speed(scalar: Scalar) -> Fraction:
    number = decimal(scalar.text)
    if not number:
        raise error("C0924", f"found `{scalar.text}`, needed a bandwidth in GB/s above 0", span=scalar.span)
    return gigabytes(number)


def _time(scalar: Scalar) -> Fraction:
    number = decimal(scalar.text)
    if number is None:
        raise error("C0924", f"found `{scalar.text}`, needed a latency in ns", span=scalar.span)
    return number / 10**9


# ---- what becomes of it


def _link(draft: Draft, d: int, one: _Dimension, counts: Sequence[int]) -> None:
    """Add the links of a dimension: in each group of NPUs that differ in its coordinate only."""
    label = f"dimension {d}: {one.block} of {one.npus}"
    for number, group in enumerate(_groups(d, counts)):
        for a, b in _pairs(draft, one, group, f"dim{d}_switch{number}"):
            draft.link(a, b, one.bandwidth, one.latency, label=label)


def _groups(d: int, counts: Sequence[int]) -> Iterator[list[str]]:
    stride, total = prod(counts[:d]), prod(counts)
    for high in range(0, total, stride * counts[d]):
        for low in range(stride):
            yield [f"npu{high + low + stride * i}" for i in range(counts[d])]


def _pairs(draft: Draft, one: _Dimension, group: Sequence[str], switch: str) -> Iterator[tuple[str, str]]:
    match one.block:
        case "Ring":
            yield from zip(group, [*group[1:], *(group[:1] if len(group) > 2 else [])], strict=False)
        case "FullyConnected":
            yield from combinations(group, 2)
        case _:
            draft.switch(switch)
            yield from ((npu, switch) for npu in group)
