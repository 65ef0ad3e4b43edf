"""Workloads as JSON: layers with their gradient, compute times and all-to-alls, and the buckets to compare.

    {"workload": "two-experts", "buckets": ["1 MiB", "100 MiB"], "layers": [
      {"name": "embedding", "gradient": "98 MB", "forward": "40 us", "backward": "80 us"},
      {"repeat": 6, "layers": [
        {"name": "attention", "gradient": "9 MB", "forward": "1.5 ms", "backward": "3 ms"},
        {"name": "experts", "alltoall": "6 MiB", "forward": "1.5 ms", "backward": "3 ms"}]}]}

A group repeats its layers in turn. Sizes are bytes or texts with a unit, times are texts with a unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib.resources import files
from importlib.resources.abc import Traversable

from collc.frontends.importing.trees import Json, json_place, parse_json
from collc.ir.costs.training import Layer, Workload
from collc.ir.diagnostic import CollcError, Related, Source, error, nearest
from collc.ir.json_places import repeated_key
from collc.ir.shown import clipped, counted

from ..messages import quantities

__all__ = ["BUCKETS", "read_workload", "shipped", "shipped_text"]

#: capacities of buckets that appendix A.4 compares, as PyTorch counts them: in binary units
BUCKETS = (1 << 20, 10 << 20, 100 << 20, 1 << 30)
_TOP = ("workload", "summary", "source", "assumed", "ranks", "buckets", "layers")
_GROUP = ("repeat", "layers")
_LAYER = ("name", "gradient", "forward", "backward", "alltoall", "repeat")
_MOST_LAYERS = 10_000

Path = tuple[str | int, ...]


def read_workload(text: str, path: str) -> Workload:
    """Return the workload of a text; raise C0928 for text that is not JSON, C0990 for JSON that is no workload."""
    source = Source(path, text)
    value = parse_json(source)
    if repeated := repeated_key(source):
        key, first, again = repeated
        message, also = f"found the key `{clipped(key)}` twice in an object", Related("the first one", first)
        raise error("C0990", message, span=again, hint="remove one of them", related=[also])
    return _Reader(source).workload(value)


def shipped() -> tuple[str, ...]:
    """Return the names of the workloads that come with collc, sorted."""
    return tuple(sorted(p.name.removesuffix(".json") for p in _folder().iterdir() if p.name.endswith(".json")))


def shipped_text(name: str) -> str:
    """Return the text of a workload that comes with collc."""
    return (_folder() / f"{name}.json").read_text(encoding="utf-8")


def _folder() -> Traversable:
    return files(__package__) / "models"


class _Reader:
    """The parts of one text; every method takes the path of keys and indices to its value."""

    def __init__(self, source: Source):
        self.source = source
        self.count = 0

    def workload(self, root: Json) -> Workload:
        """Return the whole."""
        body = self._object(root, (), _TOP, "a workload")
        layers = tuple(self._layers(body, ()))
        if not layers:
            raise self._wrong("found no layer, needed at least one", "layers")
        return Workload(
            self._text(body, (), "workload", needed=True), layers, self._buckets(body),
            self._whole(body, (), "ranks") if "ranks" in body else None,
            *(self._text(body, (), key) for key in ("summary", "source", "assumed")),
        )  # fmt: skip

    def _layers(self, body: Mapping[str, Json], path: Path) -> Iterator[Layer]:
        listed = self._list(body, path, "layers", "an array of layers")
        for index, value in enumerate(listed):
            yield from self._entry(value, (*path, "layers", index))

    def _entry(self, value: Json, path: Path) -> Iterator[Layer]:
        """Yield the layers of a layer or of a group, as often as it says."""
        is_group = isinstance(value, dict) and "layers" in value
        body = self._object(value, path, _GROUP if is_group else _LAYER, "a layer")
        times = self._whole(body, path, "repeat") if "repeat" in body else 1
        layers = list(self._layers(body, path)) if is_group else [self._layer(body, path)]
        self.count += (times - 1) * len(layers) + (not is_group)
        if self.count > _MOST_LAYERS:
            raise self._wrong(f"found more than {_MOST_LAYERS} layers, needed at most that many", *path)
        for number in range(1, times + 1):
            yield from (_numbered(layer, number) for layer in layers) if times > 1 else layers

    def _layer(self, body: Mapping[str, Json], path: Path) -> Layer:
        return Layer(
            self._text(body, path, "name", needed=True), self._size(body, path, "gradient"),
            self._time(body, path, "forward"), self._time(body, path, "backward"), self._size(body, path, "alltoall"),
        )  # fmt: skip

    def _buckets(self, body: Mapping[str, Json]) -> tuple[int, ...]:
        if "buckets" not in body:
            return BUCKETS
        listed = self._list(body, (), "buckets", "an array of sizes")
        found = tuple(self._size_of(value, ("buckets", index)) for index, value in enumerate(listed))
        if not found or 0 in found:
            raise self._wrong("found a list without a size or with 0, needed sizes of more than 0 B", "buckets")
        return found

    # ---- values

    def _object(self, value: Json, path: Path, keys: tuple[str, ...], what: str) -> Mapping[str, Json]:
        if not isinstance(value, dict):
            raise self._wrong(f"found {_kind(value)}, needed {what}: an object with {', '.join(keys)}", *path)
        for key in value:
            if key not in keys:
                hint = nearest(key, keys) or f"keys are {', '.join(keys)}"
                raise self._wrong(f"found the key `{clipped(key)}`, which {what} does not have", *path, key, hint=hint)
        return value

    def _list(self, body: Mapping[str, Json], path: Path, key: str, need: str) -> list[Json]:
        value = body.get(key)
        if isinstance(value, list):
            return value
        found = f"{_kind(value)} as `{key}`" if key in body else f"no `{key}`"
        raise self._wrong(f"found {found}, needed {need}", *path, *([key] if key in body else []))

    def _text(self, body: Mapping[str, Json], path: Path, key: str, needed: bool = False) -> str:
        value = body.get(key, "")
        if isinstance(value, str) and (value.strip() or not needed):
            return value
        found = f"{_kind(value)} as `{key}`" if value else f"no `{key}`"
        raise self._wrong(f"found {found}, needed a text", *path, *([key] if key in body else []))

    def _whole(self, body: Mapping[str, Json], path: Path, key: str) -> int:
        value = body[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 10**9:
            need = f"needed a whole number of 1 to {10**9}"
            raise self._wrong(f"found {_shown(value)} as `{key}`, {need}", *path, key)
        return value

    def _size(self, body: Mapping[str, Json], path: Path, key: str) -> int:
        return self._size_of(body[key], (*path, key)) if key in body else 0

    def _size_of(self, value: Json, path: Path) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
            return value
        try:
            if isinstance(value, str):
                return quantities.size(value, "a size")
        except CollcError as failure:
            raise self._wrong(_needed(value, "a size such as 64 MiB"), *path, hint=_hint(failure)) from None
        raise self._wrong(_needed(value, "bytes, or a size such as 64 MiB"), *path)

    def _time(self, body: Mapping[str, Json], path: Path, key: str) -> Fraction:
        value = body.get(key, 0)
        try:
            if isinstance(value, str):
                return quantities.time(value, "a time")
        except CollcError as failure:
            raise self._wrong(_needed(value, "a time such as 1.5 ms"), *path, key, hint=_hint(failure)) from None
        if value == 0 and not isinstance(value, bool):
            return Fraction(0)
        raise self._wrong(_needed(value, "a time with its unit, such as 1.5 ms"), *path, key)

    def _wrong(self, message: str, *path: str | int, hint: str | None = None) -> CollcError:
        return error("C0990", message, span=json_place(self.source, *path), hint=hint)


def _numbered(layer: Layer, number: int) -> Layer:
    return Layer(f"{layer.name} {number}", layer.gradient, layer.forward, layer.backward, layer.alltoall)


def _needed(value: Json, need: str) -> str:
    return f"found {_shown(value)}, needed {need}"


def _hint(failure: CollcError) -> str | None:
    return failure.diagnostics[0].hint


def _shown(value: Json) -> str:
    """Return a value as a message quotes it."""
    if isinstance(value, (list, dict)) or value is None or isinstance(value, bool):
        return _kind(value)
    return f"`{clipped(str(value))}`"


def _kind(value: Json) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (list, dict)):
        return f"an {'array' if isinstance(value, list) else 'object'} of {counted(len(value), 'value')}"
    return "a text" if isinstance(value, str) else "a number"


def about(workload: Workload) -> dict[str, str | int | float | None]:
    """Return what a workload is, by the keys of `collc train --list`."""
    return {
        "name": workload.name, "summary": workload.summary, "ranks": workload.ranks, "layers": len(workload.layers),
        "gradient_bytes": workload.gradient, "alltoalls": workload.alltoalls,
        "compute_us": float(workload.compute) * 1e6, "source": workload.source, "assumed": workload.assumed,
    }  # fmt: skip
