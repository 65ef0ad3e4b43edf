"""Names of nodes: which texts are names, and how the language writes them.

A name such as ``gpu[0, 3]`` is a family with indices. Every other text is a name without indices.
"""

from __future__ import annotations

import re

__all__ = ["LONGEST_NAME", "name_flaw", "node_text", "printed", "split_name"]

#: the most characters of a node's name
LONGEST_NAME = 255

#: an identifier that no keyword of expressions hides, with indices or without
_BARE = re.compile(r"(?!(?:not|import|true|false)\b)[A-Za-z_][A-Za-z0-9_]*(?:\[[0-9]+(?:, [0-9]+)*\])?")
_INDEXED = re.compile(r"(.+)\[((?:0|[1-9][0-9]*)(?:, (?:0|[1-9][0-9]*))*)\]")


def split_name(name: str) -> tuple[str, tuple[int, ...]]:
    """Return the family and the indices of a node; :func:`printed` joins them to the same name.

    >>> split_name("gpu[0, 3]"), split_name("n-001"), split_name("gpu[0,3]")
    (('gpu', (0, 3)), ('n-001', ()), ('gpu[0,3]', ()))
    """
    match = _INDEXED.fullmatch(name) if name.endswith("]") else None
    if match is None:
        return name, ()
    return match[1], tuple([int(index) for index in match[2].split(", ")])


def printed(family: str, indices: tuple[int, ...]) -> str:
    """Return the name of a node of a family.

    >>> printed("n-01/gpu", (3,)), printed("ib", ())
    ('n-01/gpu[3]', 'ib')
    """
    return f"{family}[{', '.join(map(str, indices))}]" if indices else family


def node_text(name: str) -> str:
    """Return a node's name as the language writes it: in quotes unless it is an identifier, with indices or without.

    A number without quotes is a rank; ``Topology.node_text`` writes it for nodes without names.

    >>> node_text("gpu[0, 3]"), node_text("n-001"), node_text("7")
    ('gpu[0, 3]', '"n-001"', '"7"')
    """
    return name if _BARE.fullmatch(name) else f'"{name}"'


def name_flaw(name: str) -> str | None:
    """Return why a text is no name of a node, as ``found X, needed Y``; None if it is one.

    >>> name_flaw("pci 0000:17:00.0"), name_flaw("")
    (None, 'found an empty name, needed at least one character')
    """
    if not name:
        return "found an empty name, needed at least one character"
    if len(name) > LONGEST_NAME:
        return f"found a name of {len(name)} characters, needed at most {LONGEST_NAME}"
    if name.isprintable():
        return None
    odd = next(char for char in name if not char.isprintable())
    return f"found the character U+{ord(odd):04X} in a name, needed characters that can be seen"
