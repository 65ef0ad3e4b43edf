"""The page of JSON Schemas: the keys of every object that the command prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any  # Any: parts of a JSON Schema

from ...tables.schemas import DOCUMENTS, schema
from .markdown import head, page, table

__all__ = ["schemas_page"]

_TEXT = """The objects that `--json` prints, and their keys. `collc schema NAME` prints a schema (draft 2020-12).

Every object has its version in the key `schema`. Keys may be added to a version; none leaves it. A rational is a
string such as `31/32`. A key in *italics* may be absent."""

Json = Mapping[str, Any]  # Any: see above


def schemas_page() -> str:
    """Return the text of the page."""
    return page(head("JSON schemas", _TEXT), *(part for name in DOCUMENTS for part in _document(name)))


def _document(name: str) -> Iterator[str]:
    whole: Json = schema(name)
    yield f"## {name}"
    yield f"{whole['title']}. The schema is [{name}.json](../../collc/share/schemas/{name}.json)."
    yield from _object(whole)
    for part, definition in whole.get("$defs", {}).items():
        if "properties" in definition or "anyOf" in definition:
            yield f"**{part}**, of `{name}`:"
            yield from _object(definition)


def _object(of: Json) -> Iterator[str]:
    """Yield a table of the keys of an object, or of each of its alternatives."""
    for alternative in of.get("anyOf", [of]):
        required = alternative.get("required", ())
        rows = [
            (f"`{key}`" if key in required else f"*`{key}`*", _kind(value), value.get("description", ""))
            for key, value in alternative.get("properties", {}).items()
        ]
        if rows:
            yield table(("key", "type", "meaning"), rows)


def _kind(value: Json) -> str:
    """Return the type of a value in words."""
    if "const" in value:
        return f"`{value['const']}`"
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "anyOf" in value:
        return " or ".join(map(_kind, value["anyOf"]))
    if "enum" in value:
        return " or ".join(f"`{one}`" for one in value["enum"])
    if "pattern" in value:
        return "rational"
    kinds = value.get("type", "any")
    shown = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    return f"list of {_kind(value['items'])}" if shown == "array" and value.get("items") else shown
