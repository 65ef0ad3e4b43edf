"""Which module imports which, and so which room: for tests, and for benchmarks/house.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from import_lines import BLOCKS

__all__ = ["TOPS", "Graph", "circles", "floors", "graph", "modules_of", "reached_by", "room_graph"]

#: folder at the top of the tree -> the package that it is installed as
TOPS = {name: f"collc.{name}" for name in ("ir", "frontends", "passes", "backends")} | {"collc": "collc"}

Graph = dict[str, set[str]]


def modules_of(tree: Path) -> dict[str, tuple[str, bool]]:
    """Return the text of every module of a source tree by its dotted name, and whether it is a package."""
    found = {}
    for top, package in TOPS.items():
        for path in sorted((tree / top).rglob("*.py")):
            parts = path.relative_to(tree / top).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            found[".".join((package, *(parts[:-1] if is_package else parts)))] = path.read_text("utf-8"), is_package
    return found


def _runs(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements in it, without the branches that only type checkers read."""
    yield node
    only_types = isinstance(node, ast.If) and any(
        getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING" for part in ast.walk(node.test)
    )
    for block in ("orelse",) if only_types else BLOCKS:
        for child in getattr(node, block, ()):
            yield from _runs(child)


def _imported(name: str, is_package: bool, text: str) -> Iterator[str]:
    """Yield the dotted names that a module imports; of ``from a import b`` it is ``a.b``, whatever ``b`` is."""
    for node in _runs(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = node.level - is_package
            base = name.split(".")[: -up or None] if node.level else []
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


def graph(modules: Mapping[str, tuple[str, bool]]) -> Graph:
    """Return module -> the modules of ours that it imports, anywhere in its text."""

    def module_of(name: str) -> str:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        return name

    return {
        name: {module_of(full) for full in _imported(name, is_package, text)} - {"", name}
        for name, (text, is_package) in modules.items()
    }


def room_graph(modules: Mapping[str, tuple[str, bool]], edges: Graph | None = None) -> Graph:
    """Return room (the path of a folder of modules) -> the rooms that its modules import; ``edges`` is their graph."""

    def room(name: str) -> str:
        package = name if modules[name][1] else name.rpartition(".")[0]
        top = next(top for top, known in TOPS.items() if f"{package}.".startswith(f"{known}."))
        return "/".join((top, *package.removeprefix(TOPS[top]).split(".")[1:]))

    found: Graph = {room(name): set() for name in modules}
    for name, others in (graph(modules) if edges is None else edges).items():
        found[room(name)] |= {room(other) for other in others} - {room(name)}
    return found


def reached_by(rooms: Graph, name: str) -> set[str]:
    """Return all that a room imports, by way of others too."""
    found, left = set[str](), [name]
    while left:
        fresh = rooms[left.pop()] - found
        found |= fresh
        left += fresh
    return found


def circles(rooms: Graph) -> list[tuple[str, ...]]:
    """Return the rooms that import themselves by way of others, those of one circle together, sorted."""
    reached = {name: reached_by(rooms, name) for name in rooms}
    found = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in rooms if a in reached[a]}
    return sorted(found)


def floors(rooms: Graph) -> dict[str, int]:
    """Return the floor of every room: one above the highest room that it imports; a circle is on one floor."""
    reached = {name: reached_by(rooms, name) for name in rooms}

    def together(name: str) -> set[str]:
        return {other for other in reached[name] if name in reached[other]} | {name}

    found: dict[str, int] = {}
    # A room reaches more rooms than any below it, so those have their floors first.
    for name in sorted(rooms, key=lambda name: (len(reached[name] | {name}), name)):
        below = {other for one in together(name) for other in rooms[one]} - together(name)
        found[name] = 1 + max((found[other] for other in below), default=-1)
    return found
