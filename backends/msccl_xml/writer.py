"""The document model -> text that the runtimes' tokeniser reads: one element a line, no declaration, no tabs."""

from __future__ import annotations

from typing import Any

from .model import Algorithm

__all__ = ["write"]

_STEP = ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")


def write(algorithm: Algorithm) -> str:
    """Return the text of an algorithm; equal algorithms give equal bytes. :func:`.reader.read` gives it back.

    Attributes that are nothing (None) are left out. Comments come first, one a line.
    """
    from lxml import etree

    root = etree.Element("algo", _texts(_head(algorithm)))
    for gpu in algorithm.gpus:
        chunks = {"i_chunks": gpu.i_chunks, "o_chunks": gpu.o_chunks, "s_chunks": gpu.s_chunks}
        rank = etree.SubElement(root, "gpu", _texts({"id": gpu.id, **chunks}))
        for block in gpu.threadblocks:
            ends = {"id": block.id, "send": block.send, "recv": block.recv, "chan": block.chan}
            threadblock = etree.SubElement(rank, "tb", _texts(ends))
            for step in block.steps:
                etree.SubElement(threadblock, "step", {name: str(getattr(step, name)) for name in _STEP})
    # A comment must start with a space and hold no double hyphen.
    for comment in algorithm.comments:
        root.addprevious(etree.Comment(f" {comment.replace('--', '- -')} "))
    text: str = etree.tostring(root.getroottree(), encoding="unicode", pretty_print=True)
    return text


def _head(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "name": algorithm.name,
        "proto": algorithm.proto,
        "nchannels": algorithm.nchannels,
        "nchunksperloop": algorithm.nchunksperloop,
        "ngpus": algorithm.ngpus,
        "coll": algorithm.coll,
        "inplace": algorithm.inplace,
        "outofplace": algorithm.outofplace,
        "minBytes": algorithm.min_bytes,
        "maxBytes": algorithm.max_bytes,
        "nthreads": algorithm.nthreads,
    }


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
