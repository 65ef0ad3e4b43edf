"""Small MSCCL-XML files for tests, and a strict model of what the runtimes read them with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from collc.backends.msccl_xml.model import Algorithm, Step

__all__ = ["TokenError", "change", "nodes", "xml"]

Block = tuple[int, int, int, Sequence[str]]


def xml(
    coll: str,
    chunks: int,
    ranks: Sequence[Sequence[Block]],
    buffers: tuple[int, int, int],
    **head: object,
) -> str:
    """Return the text of a file from a shorthand.

    A rank is a list of blocks ``(send, recv, chan, steps)``; a step is ``"type src dst cnt"`` such as ``"s i0 o3 2"``,
    followed by ``<B:S`` where it waits for step S of block B and ``!`` where it sets its flag. ``buffers`` are i, o and
    s chunks; ``head`` replaces attributes of the algorithm (None: left out).
    """
    attributes: dict[str, object] = {
        "name": "test", "proto": "Simple", "nchannels": 1, "nchunksperloop": chunks, "ngpus": len(ranks), "coll": coll,
        "inplace": 0, "outofplace": 1, "minBytes": 0, "maxBytes": 0, **head,
    }  # fmt: skip
    lines = [f"<algo{_attributes(attributes)}>"]
    for r, blocks in enumerate(ranks):
        i, o, s = buffers
        lines.append(f'  <gpu id="{r}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">')
        for t, (send, recv, chan, steps) in enumerate(blocks):
            lines.append(f'    <tb id="{t}" send="{send}" recv="{recv}" chan="{chan}">')
            lines += [f"      <step{_attributes(_step(number, text))}/>" for number, text in enumerate(steps)]
            lines.append("    </tb>")
        lines.append("  </gpu>")
    return "\n".join([*lines, "</algo>", ""])


def _step(number: int, text: str) -> dict[str, object]:
    kind, *rest = text.split()
    wait = next((word[1:].split(":") for word in rest if word[0] == "<"), ["-1", "-1"])
    places = [word for word in rest if re.fullmatch(r"[ios]-?\d+", word)] or ["i-1", "o-1"]
    count = next((word for word in rest if word.isdigit()), "0")
    return {
        "s": number, "type": kind, "srcbuf": places[0][0], "srcoff": places[0][1:], "dstbuf": places[1][0],
        "dstoff": places[1][1:], "cnt": count, "depid": wait[0], "deps": wait[1], "hasdep": int("!" in rest),
    }  # fmt: skip


def _attributes(values: Mapping[str, object]) -> str:
    return "".join(f' {name}="{value}"' for name, value in values.items() if value is not None)


def change(
    algorithm: Algorithm, rank: int, block: int, steps: Sequence[Step] | None = None, **fields: int
) -> Algorithm:
    """Return the algorithm with other steps, or other attributes, of one threadblock."""
    gpus = list(algorithm.gpus)
    blocks = list(gpus[rank].threadblocks)
    fresh = {} if steps is None else {"steps": tuple(attrs.evolve(s, s=k) for k, s in enumerate(steps))}
    blocks[block] = attrs.evolve(blocks[block], **fields, **fresh)
    gpus[rank] = attrs.evolve(gpus[rank], threadblocks=tuple(blocks))
    return attrs.evolve(algorithm, gpus=tuple(gpus))


# ---- the runtimes' tokeniser, character by character


class TokenError(Exception):
    """The tokeniser stops, or would write past a buffer."""


@attrs.define
class _Stream:
    text: str
    at: int = 0

    def take(self) -> str:
        if self.at >= len(self.text):
            raise TokenError("end of file")
        self.at += 1
        return self.text[self.at - 1]


def nodes(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield what the runtimes' tokeniser reads: (``open``, ``close`` or ``single``, name, attributes) of every tag."""
    stream = _Stream(text)
    opened: list[str] = []
    while True:
        c = " "
        while c in " \n\r":
            if stream.at >= len(text):
                if opened:
                    raise TokenError(f"{opened[-1]} is not closed")
                return
            c = stream.take()
        if c != "<":
            raise TokenError(f"expected <, got {c!r}")
        name, last, _ = _token(stream, None)
        if name.startswith("!--"):
            tail = (name[3:] + last)[-3:]
            while tail != "-->":
                tail = (tail + stream.take())[-3:]
            continue
        if not name and last == "/":
            name, last, _ = _token(stream, None)
            if last != ">" or not opened or opened.pop() != name:
                raise TokenError("closing tag")
            yield "close", name, {}
            continue
        kind, name, attributes = _opened(stream, name, last)
        opened += [name] if kind == "open" else []
        yield kind, name, attributes


def _opened(stream: _Stream, name: str, last: str) -> tuple[str, str, dict[str, str]]:
    attributes: dict[str, str] = {}
    seen = 0
    while last == " ":
        key, last, value = _token(stream, "")
        if "&" in (value or "") and key != "name":
            raise TokenError("an entity stays as it is")
        seen += 1
        attributes[key] = value or ""
    if seen > 16:
        raise TokenError("attributes")
    kind = "open"
    if last == "/":
        kind = "single"
        _, last, _ = _token(stream, None)
    if last != ">":
        raise TokenError(f"expected >, got {last!r}")
    return kind, name, attributes


def _token(stream: _Stream, value: str | None) -> tuple[str, str, str | None]:
    """Return a name, the character after it (and after its value), and its value."""
    name = ""
    while True:
        c = stream.take()
        if c == "=":
            if value is None:
                raise TokenError("unexpected value")
            return name, *_value(stream)
        if c in " >/\n\r":
            return name, c, value
        if c == "\t" and not name.startswith("!--"):
            raise TokenError("a name with a tab in it is no name anybody knows")
        name += c
        if len(name) > 254:
            raise TokenError("name too long")


def _value(stream: _Stream) -> tuple[str, str]:
    if stream.take() != '"':
        raise TokenError("quote")
    value = ""
    while (c := stream.take()) != '"':
        value += c
    if len(value.encode()) > 255:
        raise TokenError("value too long")
    return stream.take(), value
