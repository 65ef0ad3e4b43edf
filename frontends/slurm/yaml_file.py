"""`topology.yaml`: a list of topologies, each a tree, blocks, rings, tori or flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeVar

from collc.ir.diagnostic import CollcError, Source, Span, error, nearest

from ..importing.figures import Figures
from ..importing.model import Draft
from ..importing.numbers import whole
from ..importing.several import only
from ..importing.yaml_tree import Fields, Items, Node, Scalar, parse_yaml
from .declared import Group, Lists, Named, Shape, Topology

__all__ = ["chosen"]

T = TypeVar("T")

_KINDS = ("tree", "block", "ring", "torus3d", "flat")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def chosen(draft: Draft, sources: Sequence[Source], figures: Figures) -> Topology:
    """Return the chosen topology of a text: ``figures.choice``, or the default of the cluster, or the first."""
    tree = parse_yaml(only(sources, "Slurm as YAML"))
    entries = _maps(tree, "topologies")
    names = dict[str, Fields]()
    for one in entries:
        name = _text(one, "topology")
        if name.name in names:
            raise error("C0930", f"found the topology `{name.name}` twice", span=name.span, hint="rename one of them")
        names[name.name] = one
    entry = _choice(draft, names, figures, tree)
    kind = _kind(entry)
    value = entry.entries[kind][1]
    topology = Topology(kind, span=value.span, is_chosen=figures.choice in names)
    lists = Lists(figures)
    match kind:
        case "tree":
            topology.groups += _groups(draft, value, "switches", "switch", lists)
        case "block":
            topology.groups += _groups(draft, value, "blocks", "block", lists)
            _note_sizes(draft, value)
        case "ring":
            topology.groups += _groups(draft, value, "rings", "ring", lists)
        case "torus3d":
            topology.shapes += _collected(draft, _tori(value), lambda one: _torus(one, lists))
        case _:
            others = [name for name in names if names[name] is not entry]
            hint = f"`--choose NAME` takes another one: {', '.join(others)}" if others else "list them below a switch"
            message = "a flat topology names no hosts: Slurm has them from `slurm.conf`"
            raise error("C0932", message, span=entry.entries[kind][0].span, hint=hint)
    return topology


def _choice(draft: Draft, names: dict[str, Fields], figures: Figures, tree: Node) -> Fields:
    if not names:
        raise error("C0924", "found no topology, needed `- topology: NAME`", span=tree.span)
    if figures.choice is not None and figures.choice in names:
        return names[figures.choice]
    if figures.choice is not None and len(names) > 1:
        hint = nearest(figures.choice, names) or f"the file has {', '.join(names)}"
        raise error("C0974", f"found no topology `{figures.choice}`", span=tree.span, hint=hint)
    default = next((name for name, one in names.items() if _is_default(one)), None)
    name = default if default is not None else next(iter(names))
    if len(names) > 1:
        others = ", ".join(other for other in names if other != name)
        source = "the file's `cluster_default`" if default is not None else "the first of the file"
        hint = f"`--choose NAME` takes another one: {others}"
        draft.assume(f"the topology `{name}`", source, names[name].entries["topology"][1].span, hint=hint)
    return names[name]


def _is_default(entry: Fields) -> bool:
    value = entry.get("cluster_default")
    if value is None:
        return False
    if not isinstance(value, Scalar) or value.text.lower() not in (*_TRUE, *_FALSE):
        raise error("C0924", "found no truth value, needed `true` or `false`", span=value.span)
    return value.text.lower() in _TRUE


def _kind(entry: Fields) -> str:
    found = [key for key in entry.entries if key in _KINDS]
    name = _text(entry, "topology")
    if len(found) == 1:
        return found[0]
    if found:
        message = f"the topology `{name.name}` has {' and '.join(f'`{key}`' for key in found)}, needed one of them"
        raise error("C0924", message, span=entry.entries[found[1]][0].span)
    others = [scalar for key, (scalar, _) in entry.entries.items() if key not in ("topology", "cluster_default")]
    unknown = others[0] if others else None
    hint = (nearest(unknown.text, _KINDS) if unknown else None) or f"known: {', '.join(_KINDS)}"
    message = f"found no kind of the topology `{name.name}`"
    raise error("C0924", message, span=unknown.span if unknown else name.span, hint=hint)


# ---- values


def _maps(value: Node | None, what: str) -> list[Fields]:
    """Return the maps of a list."""
    if isinstance(value, Items):
        for item in value.items:
            if not isinstance(item, Fields):
                raise error("C0924", f"found no map in the list of {what}", span=item.span)
        return [item for item in value.items if isinstance(item, Fields)]
    raise error("C0924", f"found no list of {what}", span=value.span if value else None)


def _fields(value: Node) -> Fields:
    if not isinstance(value, Fields):
        raise error("C0924", "found no map, needed `key: value`", span=value.span)
    return value


def _text(entry: Fields, key: str) -> Named:
    value = entry.get(key)
    if not isinstance(value, Scalar) or not value.text:
        raise error("C0924", f"found no `{key}` with a name", span=value.span if value else entry.span)
    return Named(value.text, value.span)


def _hosts(entry: Fields, key: str, lists: Lists) -> tuple[Named, ...]:
    """Return the names of a host list, or of a list of host lists; none without the key."""
    value = entry.get(key)
    if value is None:
        return ()
    found = list[Named]()
    for one in value.items if isinstance(value, Items) else (value,):
        if not isinstance(one, Scalar):
            raise error("C0924", f"`{key}` is no host list", span=one.span, hint="write `n[001-016]`")
        if one.text and one.text.lower() not in ("null", "~"):
            found += lists.names(one.text, _place(one.span, len(one.text)))
    return tuple(found)


def _place(span: Span, length: int) -> Callable[[int, int], Span]:
    """Return the places in a scalar: exact if it stands in the text without quotes, else the whole."""
    exact = span.end_column - span.column == length

    def place(start: int, end: int) -> Span:
        if not exact:
            return span
        return Span(span.source, span.line, span.column + start, span.line, span.column + max(end, start + 1))

    return place


def _collected(draft: Draft, entries: Sequence[Fields], build: Callable[[Fields], T]) -> Iterator[T]:
    """Yield what is built of each entry; mistakes are added to the draft."""
    for entry in entries:
        try:
            yield build(entry)
        except CollcError as failure:
            draft.take(failure)


# ---- kinds


def _groups(draft: Draft, value: Node, key: str, name: str, lists: Lists) -> Iterator[Group]:
    """Yield the switches, blocks or rings below a key."""
    inside = value if isinstance(value, Items) else _fields(value).get(key)
    if inside is None:
        raise error("C0924", f"found no `{key}`", span=value.span)
    entries = _maps(inside, key)
    for entry in entries:
        _check_keys(draft, entry, (name, "nodes", *(("children",) if name == "switch" else ())))
    yield from _collected(
        draft, entries,
        lambda one: Group(_text(one, name), _hosts(one, "nodes", lists), _hosts(one, "children", lists)),
    )  # fmt: skip


def _check_keys(draft: Draft, entry: Fields, known: Sequence[str]) -> None:
    for key, (scalar, _) in entry.entries.items():
        if key not in known:
            draft.warn("C0942", f"ignored the key `{key}`", scalar.span, hint=nearest(key, known))


def _note_sizes(draft: Draft, value: Node) -> None:
    sizes = value.get("block_sizes") if isinstance(value, Fields) else None
    if isinstance(sizes, Items):
        found = ",".join(item.text for item in sizes.items if isinstance(item, Scalar))
        draft.note(f"BlockSizes={found[:200]} are sizes that Slurm plans with; no link depends on them")


def _tori(value: Node) -> list[Fields]:
    """Return the tori: a list, a map with a list of `toruses`, or one torus itself."""
    if isinstance(value, Fields) and value.get("dims") is None:
        inside = next((one for _, one in value.entries.values() if isinstance(one, Items)), None)
        return _maps(inside or value, "tori")
    return [value] if isinstance(value, Fields) else _maps(value, "tori")


def _torus(entry: Fields, lists: Lists) -> Shape:
    dims = _coordinates(entry, "dims", 1)
    lists.figures.require_within(prod(dims), 6 * prod(dims), entry.entries["dims"][1].span)
    name = _text(entry, "torus") if entry.get("torus") else _text(entry, "name") if entry.get("name") else None
    span = entry.entries["dims"][1].span
    regions = entry.get("regions")
    places = dict[tuple[int, int, int], Named]()
    if regions is None:
        _put(places, (0, 0, 0), dims, _hosts(entry, "nodes", lists), span)
    elif entry.get("nodes") is not None:
        raise error("C0924", "found both `nodes` and `regions`, needed one of them", span=regions.span)
    for region in [] if regions is None else _maps(regions, "regions"):
        _put_region(places, region, dims, lists)
    return Shape(name or Named("torus", span), dims, tuple(places.items()))


def _put_region(places: dict[tuple[int, int, int], Named], region: Fields, dims: Sequence[int], lists: Lists) -> None:
    anchor, size = _coordinates(region, "anchor", 0), _coordinates(region, "dims", 1)
    if any(a + b > most for a, b, most in zip(anchor, size, dims, strict=True)):
        raise error("C0924", "found a region that is not inside its torus", span=region.entries["dims"][1].span)
    _put(places, anchor, size, _hosts(region, "nodes", lists), region.entries["dims"][1].span)


def _put(
    places: dict[tuple[int, int, int], Named], anchor: tuple[int, int, int], size: tuple[int, int, int],
    hosts: Sequence[Named], span: Span,
) -> None:  # fmt: skip
    """Put hosts at the coordinates of a box, x fastest."""
    if len(hosts) != prod(size):
        shape = "x".join(map(str, size))
        raise error("C0924", f"found {len(hosts)} hosts, needed {prod(size)} for {shape}", span=span)
    for (z, y, x), host in zip(product(*(range(one) for one in reversed(size))), hosts, strict=True):
        at = (anchor[0] + x, anchor[1] + y, anchor[2] + z)
        if at in places:
            raise error("C0924", f"found two hosts at the coordinate {at}", span=span)
        places[at] = host


def _coordinates(entry: Fields, key: str, least: int) -> tuple[int, int, int]:
    value = entry.get(key)
    if not isinstance(value, Fields):
        hint = f"write `{key}: {{x: 4, y: 4, z: 4}}`"
        raise error("C0924", f"found no `{key}` with x, y and z", span=value.span if value else entry.span, hint=hint)
    x, y, z = (_coordinate(value, axis, least) for axis in "xyz")
    return x, y, z


def _coordinate(value: Fields, axis: str, least: int) -> int:
    found = value.get(axis)
    number = whole(found.text) if isinstance(found, Scalar) else None
    if number is None or number < least:
        span = found.span if found else value.span
        raise error("C0924", f"found no `{axis}`, needed a whole number from {least}", span=span)
    return number
