"""Document -> text; equal documents give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TypeAlias

from collc.ir.collective import ROOTED, Collective
from collc.ir.progress import counting

from .model import DTYPES, ROOT_TAG, Document, Local, Message, Place, Rank, Step, Thread

__all__ = ["write"]


def write(document: Document) -> str:
    """Return the document as text, one element a line."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines += [f"<!-- {_safe(comment)} -->" for comment in document.comments]
    lines += _element("", (ROOT_TAG, _head(document), _ranks(document)))
    return "\n".join([*lines, ""])


#: an element: its tag, its attributes, its children
_Element: TypeAlias = "tuple[str, dict[str, str], Iterator[_Element]]"


def _element(indent: str, element: _Element) -> Iterator[str]:
    """Yield the lines of an element. Its values are numbers and words of the schema, which need no escapes."""
    tag, attributes, held = element
    head = " ".join([tag, *(f'{name}="{value}"' for name, value in attributes.items())])
    inside = [line for child in held for line in _element(indent + "  ", child)]
    if inside:
        yield f"{indent}<{head}>"
        yield from inside
        yield f"{indent}</{tag}>"
    else:
        yield f"{indent}<{head}/>"


def _safe(comment: str) -> str:
    """Return a text without characters that could end its comment."""
    printable = "".join(c if c.isprintable() else "?" for c in comment)
    return printable.replace("--", "- -").removesuffix("-")


def _head(document: Document) -> dict[str, str]:
    values = {
        "version": "1", "name": document.name, "ranks": len(document.ranks), "channels": document.channels,
        "chunks": document.chunks, "inplace": int(document.inplace), "outofplace": int(document.outofplace),
    }  # fmt: skip
    if document.collective.members is not None:
        values["members"] = document.collective.num_members
    if document.dtypes != DTYPES:
        values["dtypes"] = " ".join(document.dtypes)
    if document.min_bytes:
        values["minBytes"] = document.min_bytes
    if document.max_bytes is not None:
        values["maxBytes"] = document.max_bytes
    return _text(values)


def _text(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _ranks(document: Document) -> Iterator[_Element]:
    collective, attributes = document.collective, {}
    if collective.kind in ROOTED:
        attributes["root"] = str(collective.root)
    if collective.reduces:
        attributes["ops"] = " ".join(document.ops)
    yield collective.kind, attributes, _shards(collective)
    for r, rank in enumerate(counting(document.ranks, "writing ranks")):
        yield "rank", _text({"id": r, "input": rank.input, "output": rank.output}), _rank(rank)


def _shards(collective: Collective) -> Iterator[_Element]:
    """Yield the shards of a custom collective, equal ones that follow one another as one element."""
    pairs = zip(collective.pre or (), collective.post or (), strict=True)
    for (rank, ranks), group in groupby(pairs):
        yield "shard", _text({"from": rank, "to": " ".join(map(str, ranks)), "count": len(list(group))}), iter(())


def _rank(rank: Rank) -> Iterator[_Element]:
    for segment in rank.segments:
        fixed = {} if segment.chunk is None else {"chunk": segment.chunk}
        yield "segment", _text({**fixed, "count": segment.count}), iter(())
    for t, thread in enumerate(rank.threads):
        yield "thread", {"id": str(t)}, _thread(t, thread)


def _thread(number: int, thread: Thread) -> Iterator[_Element]:
    for tag, ends in (("out", thread.outs), ("in", thread.ins)):
        for end in ends:
            yield tag, _text({"peer": end.peer, "channel": end.channel}), iter(())
    for s, step in enumerate(thread.steps):
        yield "step", {"id": f"{number}.{s}"}, _step(step)


def _step(step: Step) -> Iterator[_Element]:
    for thread, number in step.syncs:
        yield "sync", {"step": f"{thread}.{number}"}, iter(())
    for message in step.messages:
        yield _message(message)
    for local in step.locals:
        yield _local(local)


def _message(message: Message) -> _Element:
    tag = "send" if message.sends else "recv"
    buffer, offset = message.place
    ends = {"peer": message.peer, "channel": message.channel, "buffer": buffer.name.lower(), "offset": offset}
    return tag, _text({**ends, "chunk": message.chunk, "count": message.count}), iter(())


def _local(local: Local) -> _Element:
    places = {**_place("src", local.src), **({} if local.second is None else _place("with", local.second))}
    places |= _place("dst", local.dst)
    tag = "copy" if local.second is None else "reduce"
    return tag, _text({**places, "chunk": local.chunk, "count": local.count}), iter(())


def _place(name: str, place: Place) -> dict[str, object]:
    return {name: place[0].name.lower(), f"{name}off": place[1]}
