"""Text -> graph file, of any tool. Numbers are read as a version of NCCL reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collc.ir.diagnostic import CollcError, Source, Span, error

from ..markup import prolog, root_of
from .model import TYPES, Channel, Graph, GraphFile, Version

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["MAX_TEXT", "ROOT", "is_graph_file", "read"]

ROOT = "graphs"
#: the longest file, in characters: NCCL reads at most 65,536 elements
MAX_TEXT = 16 << 20

_NUMBER = re.compile(r"\s*([+-]?)(0[xX])?([0-9a-fA-F]*)")
_FLOAT = re.compile(r"\s*[+-]?[0-9]*\.?[0-9]+")


def is_graph_file(text: str) -> bool:
    """Return whether the first element of a text is that of a graph file.

    >>> is_graph_file('<graphs version="1"/>'), is_graph_file("<graph/>")
    (True, False)
    """
    return root_of(text) == ROOT


def read(text: str, path: str, version: Version) -> GraphFile:
    """Return the graphs of a text; unknown elements are left out, as NCCL does.

    Raises C0915 for a text that is no graph file, or lacks an element or attribute that NCCL needs.
    """
    source = Source(path, text)
    root = _parse(source)
    if root.tag != ROOT:
        raise _wrong(source, root, f"the first element is `{root.tag}`, not `{ROOT}`")
    graphs = tuple(_graph(one, source, version) for one in root if one.tag == "graph")
    return GraphFile(_integer(root, "version", source), graphs)


def _parse(source: Source) -> _Element:
    from lxml import etree

    if len(source.text) > MAX_TEXT or source.text[prolog(source.text) :].lstrip().startswith("<!DOCTYPE"):
        raise error("C0915", f"`{source.path}` is no graph file: it is too large, or has a document type")
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_pis=True,
        remove_comments=True,
    )  # fmt: skip
    try:
        return etree.fromstring(source.text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as problem:
        line = min(max(problem.position[0], 1), source.text.count("\n") + 1)
        raise error("C0915", f"`{source.path}` is not XML", span=_line(source, line)) from None


def _graph(found: _Element, source: Source, version: Version) -> Graph:
    channels = tuple(_channel(one, source, version) for one in found if one.tag == "channel")
    kinds = [_text(found, name, source) for name in ("typeintra", "typeinter")]
    for kind in kinds:
        if kind not in TYPES:
            raise _wrong(source, found, f"`{kind}` is no kind of path: {', '.join(TYPES)}")
    speeds = [_speed(found, name, source) for name in ("speedintra", "speedinter")]
    latency = _speed(found, "latencyinter", source) if found.get("latencyinter") is not None else "0"
    numbers = {
        name: _integer(found, name, source) for name in ("id", "pattern", "crossnic", "nchannels", "samechannels")
    }
    return Graph(
        speedintra=speeds[0], speedinter=speeds[1], latencyinter=latency, typeintra=kinds[0], typeinter=kinds[1],
        channels=channels, **numbers,
    )  # fmt: skip


def _channel(found: _Element, source: Source, version: Version) -> Channel:
    nets = [_device(one, source, version) for one in found if one.tag == "net"]
    gpus = [one for one in found if one.tag == "gpu"]
    if len(nets) not in (0, 2):
        raise _wrong(source, found, f"a channel has no NIC or two, found {len(nets)}")
    ranks = tuple(None if one.get("rank") is None else _integer(one, "rank", source) for one in gpus)
    entry, leaving = nets or (None, None)
    devices = tuple(_device(one, source, version) for one in gpus)
    return Channel(entry, devices, leaving, () if set(ranks) <= {None} else ranks)


def _device(found: _Element, source: Source, version: Version) -> int:
    text = _text(found, "dev", source)
    return _strtol(text, 16 if version.hexadecimal else 0)


def _integer(found: _Element, name: str, source: Source) -> int:
    return _strtol(_text(found, name, source), 0)


def _strtol(text: str, base: int) -> int:
    """Return what C's strtol reads at the beginning of a text: 0 if there is no number.

    >>> _strtol("0x1f", 16), _strtol("10", 16), _strtol("10", 0), _strtol("1f", 0), _strtol("", 0)
    (31, 16, 10, 1, 0)
    """
    found = _NUMBER.match(text)
    assert found is not None, "the pattern matches every text"
    sign, prefix, digits = found.groups()
    if base == 0:
        base = 16 if prefix else 8 if digits.startswith("0") and len(digits) > 1 else 10
    elif prefix and base != 16:
        prefix, digits = None, "0"
    known = re.match({8: "[0-7]*", 10: "[0-9]*", 16: "[0-9a-fA-F]*"}[base], digits)
    assert known is not None, "the pattern matches every text"
    number = int(known[0], base) if known[0] else 0
    return -number if sign == "-" else number


def _speed(found: _Element, name: str, source: Source) -> str:
    text = _text(found, name, source)
    if not _FLOAT.match(text):
        raise _wrong(source, found, f"`{name}` is no number: `{text}`")
    return text


def _text(found: _Element, name: str, source: Source) -> str:
    text = found.get(name)
    if text is None:
        raise _wrong(source, found, f"`{found.tag}` has no attribute `{name}`")
    return str(text)


def _wrong(source: Source, found: _Element, why: str) -> CollcError:
    return error("C0915", f"`{source.path}` is no graph file: {why}", span=_line(source, found.sourceline or 1))


def _line(source: Source, line: int) -> Span:
    text = (source.text.split("\n") + [""] * line)[line - 1]
    start = len(text) - len(text.lstrip()) + 1
    return Span(source, line, start, line, max(len(text.rstrip()), start) + 1)
