"""The document model -> text for the runtimes' tokeniser: one element a line, no declaration, no tabs."""

from __future__ import annotations

from collections.abc import Mapping

from .model import Algorithm, Gpu, Threadblock
from .steps import BUFFERS, KINDS_OF, LINE

__all__ = ["write"]

_WRITTEN = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\n", "&#10;"),
    ("\t", "&#9;"),
    ("\r", "&#13;"),
)

_STEP = (
    '      <step s="%d" type="%s" srcbuf="%s" srcoff="%d" dstbuf="%s" dstoff="%d" cnt="%d" depid="%d" deps="%d" '
    'hasdep="%d"/>'
)


def write(algorithm: Algorithm) -> str:
    """Return the text of an algorithm; equal algorithms give equal bytes. :func:`.reader.read` is the inverse.

    The text has no attributes that are None. Comments come first, one a line.
    """
    # A comment must begin with a space, and must not have a double hyphen.
    lines = [f"<!-- {comment.replace('--', '- -')} -->" for comment in algorithm.comments]
    lines += _element(0, "algo", _head(algorithm), [line for gpu in algorithm.gpus for line in _gpu(gpu)])
    return "\n".join(lines) + "\n"


def _gpu(gpu: Gpu) -> list[str]:
    chunks = {"i_chunks": gpu.i_chunks, "o_chunks": gpu.o_chunks, "s_chunks": gpu.s_chunks}
    inside = [line for block in gpu.threadblocks for line in _threadblock(block)]
    return _element(1, "gpu", {"id": gpu.id, **chunks}, inside)


def _threadblock(block: Threadblock) -> list[str]:
    ends = {"id": block.id, "send": block.send, "recv": block.recv, "chan": block.chan}
    steps = [
        _STEP % (s, KINDS_OF[kind], BUFFERS[src], srcoff, BUFFERS[dst], dstoff, cnt, depid, deps, hasdep)
        for s, kind, src, srcoff, dst, dstoff, cnt, depid, deps, hasdep in block.steps.table[:, :LINE].tolist()
    ]
    return _element(2, "tb", ends, steps)


def _element(depth: int, tag: str, values: Mapping[str, object], inside: list[str]) -> list[str]:
    """Return the lines of an element with the lines ``inside`` of its children; values that are None are absent."""
    given = "".join(f' {name}="{_escaped(str(value))}"' for name, value in values.items() if value is not None)
    gap = "  " * depth
    return [f"{gap}<{tag}{given}>", *inside, f"{gap}</{tag}>"] if inside else [f"{gap}<{tag}{given}/>"]


def _escaped(text: str) -> str:
    for plain, written in _WRITTEN:
        text = text.replace(plain, written)
    return text


def _head(algorithm: Algorithm) -> dict[str, object]:
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
