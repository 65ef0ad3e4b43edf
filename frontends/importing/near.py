"""Texts that are nearly an input of importers: what they are, and where the network is instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from collc.ir.diagnostic import CollcError, Source, error

__all__ = ["unrecognized"]

_PROLOG = r"(?:\s|<\?[^>]*\?>|<!--.*?-->|<![^>]*>)*+"

#: beginning of a text -> what it is, and what to do
_KINDS: tuple[tuple[str, str, str], ...] = (
    (r"\s*\Z", "is empty", "look whether the program that wrote it failed"),
    (_PROLOG + r"<graphs\b", "is a graph file of NCCL: it has rings and trees, and no network",
     "`NCCL_TOPO_DUMP_FILE=node.xml` prints the network"),
    (_PROLOG + r"<algo\b", "is an MSCCL-XML algorithm, which has no network",
     "`collc verify` and `collc convert` read it"),
    (_PROLOG + r"<svg\b", "is an SVG picture, not a network", "import the file that it was drawn from"),
    (r"\s*collc-ir\b", "is a printed IR", "`collc cost`, `collc verify` and `collc convert` read it"),
    (r"(?:\s|#[^\n]*\n)*(?:topology|collective|cluster|schedule|emit|include|param|let)\b|(?:\s|#[^\n]*\n)*import\s+\"",
     "is a `.coll` file already", "`collc check` and `collc compile` read it"),
    (r"(?:\s|#[^\n]*\n|Creator[^\n]*\n|Version[^\n]*\n)*graph\s*\[", "is a graph in GML",
     "convert it: `networkx.write_graphml(networkx.read_gml(FILE), 'pod.graphml')`"),
    (r'\s*\{\s*"(?:elements|data)"\s*:', "is a graph of Cytoscape",
     "convert it: `networkx.node_link_data(networkx.cytoscape_graph(..))`"),
)  # fmt: skip


def unrecognized(source: Source, formats: Iterable[str]) -> CollcError:
    """Return the error C0921 for a text that no reader of the ``formats`` recognizes."""
    head = source.text[: 1 << 16]
    for pattern, what, hint in _KINDS:
        if re.match(pattern, head, re.DOTALL | re.IGNORECASE):
            return error("C0921", f"`{source.path}` {what}", hint=hint)
    hint = f"if it has one of these formats, name it by `--format`: {', '.join(formats)}"
    return error("C0921", f"`{source.path}` begins like no file that collc imports", hint=hint)
