"""Files of other programs, recognized by how they begin, so that messages can say what was found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from collc.backends.markup import root_of

__all__ = ["Other", "kind_of_bytes", "kind_of_text"]

_MAGIC = (
    (b"\x7fELF", "an ELF program or library"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x93NUMPY", "a numpy array"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)

_NO_NETWORK = "it has rings and trees; `NCCL_TOPO_DUMP_FILE` prints the network, which `collc import` reads"


class Other(NamedTuple):
    """A kind of file that collc does not read: what it is, and what to do with it ("" if nothing is known).

    ``imported`` says that `collc import` reads it.
    """

    noun: str
    instead: str = ""
    imported: bool = False


_ROOTS = {
    "system": Other("a topology file of NCCL", imported=True),
    "graphs": Other("an NCCL graph file (`<graphs>`)", _NO_NETWORK),
    "svg": Other("an SVG picture"),
    "html": Other("an HTML page"),
    "graphml": Other("a GraphML file", imported=True),
}

#: pattern of the beginning -> what the text is
_BEGINNINGS: tuple[tuple[str, Other], ...] = (
    (r"%PDF", Other("a PDF document")),
    (r"#!.*|(import|from) [\w.]+( import .*)?$", Other("a script or Python file")),
    (r"#\s*include\b|/\*", Other("C source")),
    (r"(strict )?(di)?graph\b[^{\n]*\{", Other("a Graphviz graph", imported=True)),
    (r"<!doctype html", Other("an HTML page")),
    (r"---$", Other("a YAML file")),
    (r"[\w-]+:(\s.*)?$", Other("a YAML file")),
    (r"[\w ]+(,[\w ]+)+$", Other("a CSV table", "`collc calibrate` reads measurements in CSV")),
)


def kind_of_bytes(data: bytes) -> str | None:
    """Return what a file that is not UTF-8 text is, by its first bytes; None if they are unknown.

    >>> kind_of_bytes(b"GIF89a")
    'a GIF picture'
    """
    return next((noun for magic, noun in _MAGIC if data.startswith(magic)), None)


def kind_of_text(text: str) -> Other | None:
    """Return what a text of another program is; None if it may be a file of collc.

    >>> kind_of_text('<system version="1">').noun, kind_of_text("topology t = torus(3);")
    ('a topology file of NCCL', None)
    """
    head = text.lstrip("\ufeff \t\r\n")
    if not head:
        return Other("an empty file")
    root = root_of(text)
    if root is not None:
        return _ROOTS.get(root)
    if head[0] in "{[":
        return _json(head)
    first = head.split("\n", 1)[0].rstrip()
    return next((other for pattern, other in _BEGINNINGS if re.match(pattern, first, re.IGNORECASE)), None)


#: keys of an object -> what it is
_KEYS: tuple[tuple[str, Other], ...] = (
    ("traceEvents", Other("a trace in JSON", "ui.perfetto.dev and chrome://tracing show it")),
    ("nodes", Other("a graph in node-link JSON", imported=True)),
    ("cells", Other("a Jupyter notebook")),
    ("checks", Other("a report of `collc verify --json`")),
    ("diagnostics", Other("messages of collc in JSON")),
)


def _json(text: str) -> Other | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Other("JSON with a mistake in it") if re.match(r'[\[{]\s*"', text) else None
    known: Callable[[str], bool] = (lambda key: key in value) if isinstance(value, dict) else (lambda key: False)
    return next((other for key, other in _KEYS if known(key)), Other("a JSON file"))
