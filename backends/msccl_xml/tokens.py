"""A model of the runtimes' tokeniser: where it would stop in a text, or write past a buffer.

It is not an XML parser: it takes no declaration, no tab between nodes, exactly one space between attributes, and double
quotes only. Its buffers have a fixed size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .findings import Finding

__all__ = ["MAX_ATTRIBUTES", "MAX_VALUE", "Node", "check_tokens", "nodes"]

MAX_ATTRIBUTES = 16
MAX_NAME = 254
MAX_VALUE = 255

#: attributes that runtimes look for; others may have any value, and may come after the last one looked at
NEEDED = frozenset({
    "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace", "minBytes", "maxBytes", "name",
    "nthreads", "id", "i_chunks", "o_chunks", "s_chunks", "send", "recv", "chan", "s", "type", "srcbuf", "srcoff",
    "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep",
})  # fmt: skip

_GAP = re.compile(r"[ \n\r]*")
_COMMENT_HEAD = re.compile(r"<!--[^ =>/\n\r]*")
_CLOSE = re.compile(r"</([^ =>/\n\r\t]*)>")
_OPEN = re.compile(r"<([^ =>/\n\r\t!?][^ =>/\n\r\t]*)")
_ATTRIBUTE = re.compile(r' ([^ =>/\n\r\t]*)(?:="([^"]*)"(?=[ />])|(?=[ />]))')
#: most tags: short names and values, and few of them; they need no further checks
_PLAIN = re.compile(r'<[a-z]{1,9}(?: [A-Za-z_]{1,32}="[^"&]{0,63}"){0,15}+ ?(/?)>')
#: such tags and closing ones, one after the other; values have none of the characters that mark tags
_RUN = re.compile(r'(?:<(?:[a-z-]{1,16}(?: [A-Za-z_]{1,32}="[^"&<>/]{0,63}"){0,15}+ ?/?|/[a-z-]{1,16})>[ \n\r]*+)++')
_PAIR = re.compile(r' [^ =>/\n\r]*="[^"]*"')
_SINGLE_QUOTED = re.compile(r" [^ =>/\n\r]*='")
_END = re.compile(r"/?[^ =>/\n\r]*>")


class Node(NamedTuple):
    """An ``open`` or ``single`` tag with its attributes, a ``close`` with its name, a ``comment`` with its text."""

    kind: str
    name: str
    attributes: tuple[tuple[str, str], ...]
    position: int


def nodes(text: str) -> Iterator[Node]:
    """Yield the nodes of a text that the tokeniser accepts (see :func:`check_tokens`)."""
    position = _match(_GAP, text, 0).end()
    while position < len(text):
        start = position
        if text.startswith("<!--", position):
            position, _ = _comment(text, position)
            yield Node("comment", text[start + 4 : position - 3].strip(), (), start)
        elif closing := _CLOSE.match(text, position):
            position = closing.end()
            yield Node("close", closing[1], (), start)
        else:
            opening = _match(_OPEN, text, position)
            position, found = opening.end(), []
            while attribute := _ATTRIBUTE.match(text, position):
                found.append((attribute[1], attribute[2] or ""))
                position = attribute.end()
            end = _match(_END, text, position)
            position = end.end()
            yield Node("single" if end[0].startswith("/") else "open", opening[1], tuple(found), start)
        position = _match(_GAP, text, position).end()


def check_tokens(text: str) -> list[Finding]:
    """Return the first place where the tokeniser of every runtime would stop or overrun; empty if it accepts the text.

    >>> check_tokens('<algo name="a" ><gpu id="0"/></algo>')
    []
    >>> check_tokens('<?xml version="1.0"?><algo/>')[0].message
    'line 1: an XML declaration stops the runtimes (`<?xml version="1.0"?><algo/>`)'
    """
    position, depth = 0, 0
    while True:
        position = _match(_GAP, text, position).end()
        if run := _RUN.match(text, position):
            depth += _opened(run[0])
            position = run.end()
        if position == len(text):
            return [] if depth == 0 else [_stop(text, position, f"{depth} elements are not closed")]
        if text.startswith("<!--", position):
            end, problem = _comment(text, position)
        elif closing := _CLOSE.match(text, position):
            end, problem, depth = closing.end(), "", depth - 1
        else:
            end, problem, single = _tag(text, position)
            depth += not single
        if problem:
            return [_stop(text, end, problem)]
        position = end


def _opened(run: str) -> int:
    """Return how many more elements a run of plain tags opens than it closes."""
    return run.count("<") - 2 * run.count("</") - run.count("/>")


def _match(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str]:
    match = pattern.match(text, position)
    assert match is not None
    return match


def _comment(text: str, position: int) -> tuple[int, str]:
    """Return where a comment ends, or why the tokeniser stops: it takes the text up to the first space for a name."""
    head = _match(_COMMENT_HEAD, text, position)
    if text[head.end() : head.end() + 1] == "=":
        return head.end(), "a comment must not have `=` before its first space"
    if len(head[0]) - 1 > MAX_NAME:
        return position, f"a comment needs a space within its first {MAX_NAME} characters"
    end = text.find("-->", position + 4)
    return (end + 3, "") if end >= 0 else (position, "a comment does not end")


def _tag(text: str, position: int) -> tuple[int, str, bool]:
    """Return where an opening tag ends, what stops the tokeniser in it, and whether it closes itself."""
    if plain := _PLAIN.match(text, position):
        return plain.end(), "", plain[1] == "/"
    opening = _OPEN.match(text, position)
    if opening is None:
        return position, _not_a_tag(text, position), False
    place, count = opening.end(), 0
    while attribute := _ATTRIBUTE.match(text, place):
        name, value = attribute.groups()
        count += 1
        if len(name) > MAX_NAME or len((value or "").encode("utf-8", "replace")) > MAX_VALUE:
            longest = f"names have at most {MAX_NAME} bytes, values {MAX_VALUE}"
            return place + 1, f"attribute `{name[:40]}` overruns a buffer: {longest}", False
        if "&" in (value or "") and name in NEEDED and name != "name":
            return place + 1, "the runtimes do not expand `&...;`", False
        if count > MAX_ATTRIBUTES and name in NEEDED:
            found = f"attribute `{name}` is number {count} of its element, but the runtimes read {MAX_ATTRIBUTES}"
            return place + 1, found, False
        place = attribute.end()
    end = _END.match(text, place)
    if end is None:
        place, problem = _misplaced(text, opening.start(), place)
        return place, problem, False
    return end.end(), "", end[0].startswith("/")


def _not_a_tag(text: str, position: int) -> str:
    """Return why a text is not a tag."""
    for start, what in (
        ("\t", "a tab between elements stops the runtimes"),
        ("<?xml", "an XML declaration stops the runtimes"),
        ("<?", "a processing instruction stops the runtimes"),
        ("<!", "the runtimes read only elements and comments"),
        ("</", "a closing tag has only its name"),
        ("\ufeff", "a byte order mark stops the runtimes"),
    ):
        if text.startswith(start, position):
            return what
    return "expected an element or a comment"


def _misplaced(text: str, start: int, place: int) -> tuple[int, str]:
    """Return where the tokeniser stops between the attributes of a tag, and why."""
    pair = _PAIR.match(text, place)
    stop = pair.end() if pair else place
    found = text[stop : stop + 1]
    if found in ("\n", "\r", "\t") or "\t" in text[start:stop]:
        word = "line break" if found in ("\n", "\r") else "tab"
        return start, f"a {word} inside a tag stops the runtimes: use one space between attributes"
    if _SINGLE_QUOTED.match(text, place):
        return place + 1, "values need double quotes"
    return stop, 'a tag is name="value" pairs with one space before each'


def _stop(text: str, position: int, message: str) -> Finding:
    line = text.count("\n", 0, position) + 1
    rest = text[position : position + 32].split("\n")[0]
    shown = f" (`{rest}`)" if rest.strip() else ""
    return Finding("tokens", "C0605", f"line {line}: {message}{shown}")
