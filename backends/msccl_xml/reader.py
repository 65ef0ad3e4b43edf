"""Text -> the document model: MSCCL-XML files of any tool, including collc.

The reader follows the runtimes: integers as C's ``strtol`` with base 0, unknown attributes and elements ignored, steps
in document order. It refuses files that no runtime could take, and reports all mistakes of a file at once, each with
its line. :mod:`.tokens` finds out whether the runtimes' own tokeniser accepts the text. :mod:`.markup` reads texts that
only this tokeniser accepts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.diagnostic import CollcError, Diagnostic, Severity, Source, Span, error, nearest
from collc.ir.progress import counting
from collc.ir.ragged import starts, stretches

from ..base import MAX_TEXT
from . import markup
from .model import OPCODES, Algorithm, Gpu, Step, Steps, Threadblock
from .skeleton import STEPS, read_skeleton
from .step_lines import beginnings, read_lines, starts_step
from .steps import BUFFERS, LINE, as_steps, divided

if TYPE_CHECKING:
    from typing import TypeAlias

    from lxml.etree import _Element

    _Node: TypeAlias = _Element | markup.Element

__all__ = ["MAX_TEXT", "read"]

_MAX_MISTAKES = 20
_MAX_REMARKS = 8
_STEP_INTEGERS = ("s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")
_PROLOG = re.compile(r"\s*(?:<!--.*?-->|<\?.*?\?>)", re.DOTALL)
_NUMBER = re.compile(r"[ \t\n\r]*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)")


# ---- steps that stand one to a line


def _by_lines(text: bytes, path: str) -> Algorithm | None:
    """Return the algorithm of a text whose steps stand one to a line; None if anything about it is unusual.

    The lines of each threadblock's steps become one table, without an element for each. The rest is read with a short
    element in place of the steps.
    """
    if len(text) > MAX_TEXT:
        return None
    begin = beginnings(text)
    is_step = starts_step(text, begin)
    table = read_lines(text, begin.compress(is_step)) if is_step.any() else None
    if table is None:
        return None
    first, stop = np.array(stretches(is_step), dtype=np.int64).T
    sizes = stop - first
    table[:, LINE] = np.flatnonzero(is_step) + 1
    ends = np.append(begin, len(text))
    rest = list(map(text.__getitem__, map(slice, [0, *ends[stop].tolist()], [*begin[first].tolist(), len(text)])))
    if STEPS.encode() in b"\n".join(rest):
        return None
    marks = [b'      <%s n="%d"/>\n' % (STEPS.encode(), number) for number in range(len(sizes))]
    skeleton = b"".join(chain.from_iterable(zip(rest, [*marks, b""], strict=True))).decode("utf-8", "surrogatepass")
    start = starts(sizes)
    found = read_skeleton(skeleton, divided(table, start))
    try:
        head = None if found is None else _Reader(Source(path, skeleton)).algorithm(found.head)
    except CollcError:
        return None
    if found is None or head is None or head.remarks:
        return None
    whole = attrs.evolve(head, gpus=found.gpus, skeleton=skeleton)
    return whole.knowing(table=table, starts=start) if len(sizes) == len(whole.blocks) else whole


class _Plain(dict[str | None, int | None]):
    """Numbers by their texts, for texts in the usual form; others are not cached."""

    _WRITTEN = re.compile(r"-1|0|[1-9][0-9]{0,4}")

    def __missing__(self, text: str | None) -> int | None:
        if text is None or not self._WRITTEN.fullmatch(text):
            return None
        return self.setdefault(text, int(text))


_plain = _Plain().__getitem__


def read(text: str | bytes, path: str = "<xml>") -> Algorithm:
    """Return the algorithm of an MSCCL-XML text; bytes are UTF-8.

    Raises C0601 (not XML), C0602 (not an algorithm), C0603 (an attribute missing or wrong), C0604 (too
    large, or with a document type, which could make a small text huge). ``path`` names the text in
    messages. The reader opens no files.

    >>> gpu = '<gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0"/>'
    >>> head = 'proto="LL" nchannels="1" nchunksperloop="2" ngpus="1" coll="allreduce" inplace="1"'
    >>> read(f"<algo {head}>{gpu}</algo>").gpus[0].i_chunks
    2
    """
    encoded, source = (text, None) if isinstance(text, bytes) else (text.encode("utf-8", "surrogatepass"), text)
    found = _by_lines(encoded, path)
    if found is None:
        whole = Source(path, encoded.decode("utf-8", "surrogatepass") if source is None else source)
        found = _Reader(whole).algorithm(_parse(whole))
    return found


def _parse(source: Source) -> _Node:
    """Return the root element with its comments; fetch and expand nothing."""
    _refuse_unsafe(source)
    try:
        root: _Node | None = _parse_xml(source)
    except CollcError as problem:
        root = markup.parse(source.text)
        if root is None:
            raise problem from None
    if root is None or root.tag != "algo":
        found = "no element" if root is None else f"`{root.tag}`"
        raise error(
            "C0602", f"an MSCCL-XML file holds one `algo` element, found {found}",
            span=_span(source, 1 if root is None else root.sourceline or 1),
        )  # fmt: skip
    return root


def _parse_xml(source: Source) -> _Element | None:
    from lxml import etree

    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_pis=True,
    )
    try:
        return etree.fromstring(source.text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as problem:
        line, column = problem.position
        # The message of libxml2 ends with its own line and column, and calls the bytes "<string>".
        message = re.sub(r",? \(?(<string>, )?line \d+(, column \d+)?\)?", "", str(problem.msg)).strip()
        message = re.sub(r", (use|try) XML_PARSE_HUGE.*", "", message).rstrip(". ")
        raise error(
            "C0601",
            f"not XML: {message[:1].lower()}{message[1:]}",
            span=_span(source, line or 1, max(column, 1)),
            hint="the text ends inside an element: is the file complete?" if "remature end" in message else None,
        ) from None


def _refuse_unsafe(source: Source) -> None:
    if len(source.text) > MAX_TEXT:
        found = f"{len(source.text) >> 20} MiB"
        raise error("C0604", f"the file is too large: found {found}, collc reads at most {MAX_TEXT >> 20} MiB")
    position = 0
    while skipped := _PROLOG.match(source.text, position):
        position = skipped.end()
    if source.text[position:].lstrip("\ufeff \t\r\n").startswith("<!DOCTYPE"):
        line = source.text.count("\n", 0, source.text.index("<!DOCTYPE", position)) + 1
        raise error(
            "C0604", "collc does not read document types", span=_span(source, line),
            hint="remove the `<!DOCTYPE ...>`; no runtime reads past it either",
        )  # fmt: skip


def _span(source: Source, line: int, column: int = 1, width: int = 1) -> Span:
    return Span(source, line, column, line, column + width)


#: step types that some parser accepts and no kernel runs
_PARSED_ONLY = {"ra": "the parser of microsoft/msccl accepts `ra`, but no runtime has such an instruction"}


class _Reader:
    """Turns elements into the model, and collects mistakes with their places."""

    def __init__(self, source: Source):
        self.source = source
        self.mistakes: list[Diagnostic] = []
        self.remarks: list[str] = []
        self.remarked = 0

    def algorithm(self, root: _Node) -> Algorithm:
        """Return the algorithm of an ``algo`` element; raise all its mistakes at once."""
        numbers: dict[str, int] = {
            name: self.integer(root, name) for name in ("nchannels", "nchunksperloop", "ngpus", "inplace")
        }
        result = Algorithm(
            **numbers,  # type: ignore[arg-type]  # all four are numbers
            proto=self.word(root, "proto", ("Simple", "LL", "LL128")),
            coll=self.word(root, "coll"),
            gpus=tuple(self.gpu(child) for child in counting(list(self.children(root, "gpu")), "reading ranks")),
            name=root.get("name"),
            outofplace=self.optional(root, "outofplace"),
            min_bytes=self.optional(root, "minBytes", bits=64),
            max_bytes=self.optional(root, "maxBytes", bits=64),
            nthreads=self.optional(root, "nthreads"),
            comments=tuple(_comments(root)),
            line=root.sourceline or 0,
        )
        if self.remarked > len(self.remarks):
            self.remarks.append(f"and {self.remarked - len(self.remarks)} more")
        result = attrs.evolve(result, remarks=tuple(self.remarks))
        if self.mistakes:
            raise CollcError(self.mistakes)
        return result

    def gpu(self, element: _Node) -> Gpu:
        number, i, o, s = self.integers(element, ("id", "i_chunks", "o_chunks", "s_chunks"))
        blocks = tuple(self.threadblock(child) for child in self.children(element, "tb"))
        return Gpu(number, i, o, s, blocks, element.sourceline or 0)

    def threadblock(self, element: _Node) -> Threadblock:
        number, send, recv, chan = self.integers(element, ("id", "send", "recv", "chan"))
        return Threadblock(number, send, recv, chan, self.steps(element), element.sourceline or 0)

    def steps(self, element: _Node) -> Steps:
        """Return the steps of a threadblock."""
        return as_steps([self.step(child) for child in self.children(element, "step")])

    def step(self, element: _Node) -> Step:
        """Return a step; most steps take a fast path."""
        get = element.get
        numbers = [number for name in _STEP_INTEGERS if (number := _plain(get(name))) is not None]
        kind, srcbuf, dstbuf = get("type"), get("srcbuf"), get("dstbuf")
        plain = len(numbers) == len(_STEP_INTEGERS)
        if plain and kind in OPCODES and srcbuf in BUFFERS and dstbuf in BUFFERS:
            s, srcoff, dstoff, cnt, depid, deps, hasdep = numbers
            where = str(srcbuf), srcoff, str(dstbuf), dstoff
            return Step(s, str(kind), *where, cnt, depid, deps, hasdep, element.sourceline or 0)
        s, srcoff, dstoff, cnt, depid, deps, hasdep = [self.integer(element, name) for name in _STEP_INTEGERS]
        kind = self.word(element, "type", tuple(OPCODES))
        srcbuf, dstbuf = (self.word(element, name, BUFFERS) for name in ("srcbuf", "dstbuf"))
        return Step(s, kind, srcbuf, srcoff, dstbuf, dstoff, cnt, depid, deps, hasdep, element.sourceline or 0)

    def children(self, element: _Node, tag: str) -> list[_Node]:
        """Return the children with this tag; add a remark for others, which no runtime reads."""
        found: list[_Node] = [*element.iterchildren(tag)]
        if len(found) < len(element):
            for child in element:
                if isinstance(child.tag, str) and child.tag != tag:
                    what = f"`{_short(child.tag)}` in `{element.tag}` is ignored, as in the runtimes"
                    self.remark(f"line {child.sourceline}: {what}")
        return found

    # ---- attributes

    def integers(self, element: _Node, names: tuple[str, ...]) -> list[int]:
        """Return several numbers of an element; most are written plainly."""
        get = element.get
        plain = [number for name in names if (number := _plain(get(name))) is not None]
        return plain if len(plain) == len(names) else [self.integer(element, name) for name in names]

    def integer(self, element: _Node, name: str, bits: int = 32) -> int:
        """Return a whole number as the runtimes read it. If it is missing or too large, note a mistake and return 0."""
        text = element.get(name)
        if text is None:
            self.missing(element, name)
            return 0
        value, rest = _integer(text, bits)
        if value is None:
            found = f"`{name}` of `{element.tag}` needs a whole number of at most {bits} bits, found `{_short(text)}`"
            self.mistake(element, name, found)
            return 0
        if rest:
            self.remark(f'line {element.sourceline}: {name}="{_short(text)}" is read as {value}')
        return value

    def optional(self, element: _Node, name: str, bits: int = 32) -> int | None:
        return None if element.get(name) is None else self.integer(element, name, bits)

    def word(self, element: _Node, name: str, known: tuple[str, ...] = ()) -> str:
        """Return the value of an attribute. If it is missing or not ``known``, note a mistake."""
        text = element.get(name)
        if text is None:
            self.missing(element, name)
            return known[0] if known else ""
        if known and text not in known:
            message = f"`{name}` of `{element.tag}` must be one of {', '.join(known)}, found `{_short(text)}`"
            hint = _PARSED_ONLY.get(text) or nearest(text, known)
            self.mistake(element, name, message, hint)
            return known[0]
        return text

    def remark(self, message: str) -> None:
        self.remarked += 1
        if len(self.remarks) < _MAX_REMARKS:
            self.remarks.append(message)

    def missing(self, element: _Node, name: str) -> None:
        self.mistake(element, "", f"`{element.tag}` lacks the attribute `{name}`, which every runtime needs")

    def mistake(self, element: _Node, name: str, message: str, hint: str | None = None) -> None:
        span = _place(self.source, element, name)
        self.mistakes.append(Diagnostic("C0603", message, Severity.ERROR, span, (), hint))
        if len(self.mistakes) >= _MAX_MISTAKES:
            raise CollcError(self.mistakes)


def _comments(root: _Node) -> list[str]:
    if isinstance(root, markup.Element):
        return root.comments
    from lxml import etree

    before = list(root.itersiblings(etree.Comment, preceding=True))[::-1]
    found = [*before, *root.iter(etree.Comment), *root.itersiblings(etree.Comment)]
    return [(comment.text or "").strip() for comment in found]


def _short(text: str) -> str:
    """Return a value as messages show it, cut to 40 characters."""
    return text if len(text) <= 40 else f"{text[:37]}..."


def _place(source: Source, element: _Node, name: str) -> Span:
    """Return the span of an attribute, or of the element's tag, if its line contains it; else the line."""
    line = element.sourceline or 1
    text = source.line(line)
    found = re.search(rf"\b{re.escape(name)}\s*=" if name else rf"<{re.escape(element.tag)}\b", text)
    if found is None:
        return _span(source, line)
    return _span(source, line, found.start() + 1, len(found[0].rstrip("= ")))


@lru_cache(maxsize=4096)
def _integer(text: str, bits: int) -> tuple[int | None, str]:
    """Return the number that C's ``strtol(text, 0, 0)`` reads (None if it has too many bits), and the text after it.

    >>> _integer("-1", 32), _integer("0x10", 32), _integer("010", 32), _integer("2x", 32), _integer("x", 32)
    ((-1, ''), (16, ''), (8, ''), (2, 'x'), (0, 'x'))
    """
    match = _NUMBER.match(text)
    if match is None:
        return 0, text or "no text"
    sign, digits = match.groups()
    rest = text[match.end() :]
    octal = re.match(r"0[0-7]+", digits) if digits[:2] not in ("0x", "0X") else None
    if digits[:1] == "0" and digits[1:2].isdigit():
        read_digits = octal[0] if octal else "0"
        rest = digits[len(read_digits) :] + rest
        magnitude = int(read_digits, 8)
    elif len(digits) > 24:
        return None, ""
    else:
        magnitude = int(digits, 0)
    value = -magnitude if sign == "-" else magnitude
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        return None, ""
    return value, rest
