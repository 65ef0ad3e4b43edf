"""The imports of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def imports(tree: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield (line, level, dotted name) of every import, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, 0, name.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for name in node.names:
                yield node.lineno, node.level, f"{base}.{name.name}".lstrip(".")
