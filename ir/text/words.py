"""The words and limits that the printer and the parser share."""

from __future__ import annotations

import re

from ..program import Buffer, Opcode
from ..schedule import Action

__all__ = [
    "ACTIONS", "BUFFERS", "DIRECTIONS", "ENDS", "HEADER", "MAX_INTEGER", "MAX_LINE", "MAX_NODES",
    "MAX_RATIONAL_DIGITS", "OPCODES", "PROGRAM_WORDS", "TABLES", "quoted", "word_or_quoted",
]  # fmt: skip

#: The first line of every text. The number increases if the form changes.
HEADER = "collc-ir 1"

MAX_NODES = 1 << 20  # ranks and switches of one topology; some properties take memory for every node
MAX_INTEGER = (1 << 63) - 1  # the largest value of a column
MAX_LINE = 1 << 20  # characters in a line of a table
MAX_RATIONAL_DIGITS = 1000

ACTIONS = tuple(a.name.lower() for a in Action)
DIRECTIONS = ("outward", "inward")  # of a tree: by Forest.inward
BUFFERS = tuple(b.name.lower() for b in Buffer)
OPCODES = tuple(o.name.lower().replace("_", "-") for o in Opcode)

#: Every word inside the ranks of a program. Opcodes and buffers come first, so their numbers are their values.
PROGRAM_WORDS = (*OPCODES, *BUFFERS, "rank", "threadblock", "channel", "none", "count", "after", "->")

#: Columns after those of transfers, which repeat the ends of routes for the reader. A text may leave them out.
ENDS = ("from", "to")

#: table -> its columns as the header names them
TABLES = {
    "names": ("name",),
    "classes": ("bandwidth", "latency"),
    "links": ("src", "dst", "class"),
    "routes": ("links",),
    "transfers": ("step", "action", "shard", "lo", "hi", "route"),
    "placement": ("channel", "sender", "receiver", "scratch"),
    "trees": ("root", "weight"),
    "edges": ("tree", "parent", "child", "route"),
    "messages": ("instructions",),
    "numbering": ("place",),
}

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

# Characters that a terminal or an editor does not show. The list is fixed, so every Python prints the same bytes.
_HIDDEN = re.compile(
    '["\\\\\x00-\x1f\x7f-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f'
    "\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e0fff]"
)
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quoted(text: str) -> str:
    r"""Return ``text`` as a string of the textual IR, on one line, whatever it contains.

    >>> print(quoted('a "b"\n\x00'))
    "a \"b\"\n\u{0}"
    """
    return '"' + _HIDDEN.sub(lambda m: _SHORT.get(m[0], f"\\u{{{ord(m[0]):x}}}"), text) + '"'


def word_or_quoted(text: str) -> str:
    """Return ``text`` bare if it is a plain word, otherwise quoted."""
    return text if _BARE.fullmatch(text) else quoted(text)
