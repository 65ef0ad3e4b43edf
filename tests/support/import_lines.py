"""The imports of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: the fields of statements that hold statements
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what holds statements, and all statements in it, outer ones first; expressions are passed over."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        blocks = (getattr(node, name, ()) for name in BLOCKS)
        left += [one for block in blocks for one in block][::-1]


def imports(tree: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield (line, level, dotted name) of every import, those inside functions too."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, 0, name.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for name in node.names:
                yield node.lineno, node.level, f"{base}.{name.name}".lstrip(".")
