"""The page of the Python API: every public name with its signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import ForwardRef

import attrs

import collc
from collc import plugins
from collc.backends.base import Artifact
from collc.driver.simulated import Simulated
from collc.ir.costs.cost import Cost
from collc.ir.topology import Topology
from collc.ir.verify import Report

from ..finding import Frontier
from .markdown import fenced, head, page, table

__all__ = ["RETURNED", "public", "python_page"]

#: what the API returns, beside the names of its own
RETURNED = (Artifact, Cost, Frontier, Report, Simulated, Topology)

_TEXT = """Every public name of `collc`. [Use collc from Python](../api.md) shows them at work, task by task.

`import collc` loads a name when it is first used. Every mistake in the input raises [CollcError](#collcerror)."""

_WIDEST = 100


def public() -> dict[str, Mapping[str, object]]:
    """Return the public names by the title of their section."""
    named = {name: getattr(collc, name) for name in collc.__all__ if name != "__version__"}
    return {
        "Functions": {name: one for name, one in named.items() if inspect.isfunction(one)},
        "Classes": {name: one for name, one in named.items() if not inspect.isfunction(one)},
        "Results of other modules": {one.__name__: one for one in RETURNED},
        "Plugins": {name: getattr(plugins, name) for name in plugins.__all__},
    }


_SECTIONS = {
    "Functions": "`collc.__version__` is the version of collc, a string.",
    "Results of other modules": "The API returns values of these classes, which `collc` itself does not export.",
    "Plugins": "`collc.plugins` exports what the tables of a plugin need; "
    "[examples/plugin](../../examples/plugin/README.md) uses them.",
}


def python_page() -> str:
    """Return the text of the page."""
    return page(head("Python API", _TEXT), *_sections())


def _sections() -> Iterator[str]:
    for title, names in public().items():
        yield f"## {title}"
        yield _SECTIONS.get(title, "")
        for name, one in names.items():
            yield f"### {_place(title, one)}{name}"
            yield from _entry(name, one)


def _place(title: str, one: object) -> str:
    """Return what comes before a name: its module, except for the classes of `collc`."""
    if title in ("Functions", "Classes"):
        return "collc." if title == "Functions" else ""
    return "collc.plugins." if title == "Plugins" else f"{one.__module__}."


def _entry(name: str, one: object) -> Iterator[str]:
    if not (inspect.isfunction(one) or inspect.isclass(one)):
        yield f"Its value is `{one!r}`."
        return
    if not getattr(one, "_is_protocol", False):
        yield fenced("text", signature(name, one))
    yield from docstring(one)
    if inspect.isclass(one) and (rows := list(_members(one))):
        yield table(("attribute", "type", "meaning"), rows)


# ---- signatures


def signature(name: str, one: Callable[..., object]) -> str:
    """Return the call of a function or class: in one line, or a line for every parameter.

    >>> def f(a: int, *, b: str = "x") -> None: ...
    >>> signature("f", f)
    "f(a: int, *, b: str = 'x') -> None"
    """
    try:
        found = inspect.signature(one)
    except ValueError:
        return f"{name}()"
    # a field with a converter has no type in the signature
    types = {field.name: field.type for field in attrs.fields(one)} if inspect.isclass(one) and attrs.has(one) else {}
    parts = list(_parameters(found.parameters.values(), types))
    end = f" -> {_type(found.return_annotation)}" if inspect.isfunction(one) else ""
    short = f"{name}({', '.join(parts)}){end}"
    return short if len(short) <= _WIDEST else "\n".join((f"{name}(", *(f"    {part}," for part in parts), f"){end}"))


def _parameters(parameters: Iterable[inspect.Parameter], types: Mapping[str, object]) -> Iterator[str]:
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        starred |= stars == "*"
        annotation = types.get(one.name) if one.annotation is one.empty else one.annotation
        kind = "" if annotation is None else f": {_type(annotation)}"
        default = "" if one.default is one.empty else f" = {_value(one.default)}"
        yield f"{stars}{one.name}{kind}{default}"


def _type(annotation: object) -> str:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return annotation.strip("'\"")
    return "None" if annotation is None else annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _value(default: object) -> str:
    """Return a default as one writes it; values without such a form are `...`."""
    if isinstance(default, Enum):
        return str(default)
    written = repr(default)
    return "..." if written.startswith("<") or "NOTHING" in written else written


# ---- docstrings


def docstring(one: object) -> Iterator[str]:
    """Yield the paragraphs of a docstring as Markdown, its examples as blocks."""
    for block in re.split(r"\n\s*\n", inspect.getdoc(one) or ""):
        yield fenced("pycon", block) if block.startswith(">>> ") else _inline(block)


def _inline(text: str) -> str:
    """Return a text in which roles and literals are code.

    >>> _inline(":class:`~.api.Result` of ``x``")
    '`Result` of `x`'
    """
    return re.sub(r"``(.+?)``", r"`\1`", re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text))


def _summary(one: object) -> str:
    return _inline((inspect.getdoc(one) or "").split("\n\n")[0])


def _members(one: type) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the public properties and methods that a class defines itself."""
    for name, member in vars(one).items():
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_") or (attrs.has(one) and name in attrs.fields_dict(one)):
            continue
        if isinstance(member, property):
            kind = inspect.signature(member.fget).return_annotation if member.fget else ""
            yield f"`{name}`", f"`{_type(kind)}`", _summary(member)
        elif inspect.isfunction(function):
            shown = inspect.signature(function)
            bare = [p for p in shown.parameters.values() if p.name not in ("self", "cls")]
            call = f"{name}({', '.join(_parameters(bare, {}))})"
            yield f"`{call}`", f"`{_type(shown.return_annotation)}`", _summary(function)
