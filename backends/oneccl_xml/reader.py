"""Text -> document, for oneCCL-XML files of any tool. The reader reports all violations of the schema with lines."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError, Diagnostic, Severity, Source, Span, error
from collc.ir.program import Buffer
from collc.ir.progress import counting, progress

from ..base import MAX_TEXT
from ..markup import prolog, root_of
from .model import DTYPES, OPS, ROOT_TAG, Document, End, Local, Message, Rank, Segment, Step, Thread

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["MAX_TEXT", "is_oneccl", "read", "schema_text"]

_MAX_MISTAKES = 20
_BUFFERS = {buffer.name.lower(): buffer for buffer in Buffer}


def is_oneccl(text: str) -> bool:
    """Return whether the first element of a text is that of an oneCCL-XML file.

    >>> is_oneccl('<?xml version="1.0"?><!-- mine --><oneccl/>'), is_oneccl("<algo/>")
    (True, False)
    """
    return root_of(text) == ROOT_TAG


def schema_text() -> str:
    """Return the schema."""
    return files(__package__).joinpath("oneccl.xsd").read_text(encoding="utf-8")


def read(text: str, path: str = "<xml>") -> Document:
    """Return the document of an oneCCL-XML text.

    Raises C0752 (not XML), C0753 (not valid against the schema) and C0754 (too large, or with a document type, which
    could make a small text huge). ``path`` names the text in messages. The reader opens no files.
    """
    source = Source(path, text)
    _refuse_unsafe(source)
    root = _parse(source)
    _validate(root, source)
    _trim(root)
    _require_order(root, source)
    return _document(root, source)


def _refuse_unsafe(source: Source) -> None:
    if len(source.text) > MAX_TEXT:
        found = f"{len(source.text) >> 20} MiB"
        raise error("C0754", f"the file is too large: found {found}, collc reads at most {MAX_TEXT >> 20} MiB")
    position = prolog(source.text)
    if source.text[position:].lstrip().startswith("<!DOCTYPE"):
        line = source.text.count("\n", 0, source.text.index("<!DOCTYPE", position)) + 1
        raise error(
            "C0754", "collc does not read document types", span=_span(source, line), hint="remove the `<!DOCTYPE ...>`"
        )


def _parse(source: Source) -> _Element:
    from lxml import etree

    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_pis=True,
        remove_comments=True,
    )  # fmt: skip
    try:
        return etree.fromstring(source.text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as problem:
        line, column = problem.position
        message = re.sub(r",? \(?(<string>, )?line \d+(, column \d+)?\)?", "", str(problem.msg)).strip()
        message = re.sub(r", (use|try) XML_PARSE_HUGE.*", "", message).rstrip(". ")
        span = _span(source, line or 1, max(column, 1))
        raise error("C0752", f"not XML: {message[:1].lower()}{message[1:]}", span=span) from None


def _validate(root: _Element, source: Source) -> None:
    from lxml import etree

    # A new schema for every call, because a schema keeps the log of its last use.
    line_count = source.text.count("\n")
    progress(f"checking {line_count:,} lines against the schema")
    schema = etree.XMLSchema(etree.fromstring(schema_text().encode()))
    if schema.validate(root):
        return
    mistakes, seen = [], set()
    for entry in schema.error_log:
        message = entry.message.rstrip(".")
        if (entry.line, message) in seen:
            continue
        seen.add((entry.line, message))
        mistakes.append(
            Diagnostic("C0753", _worded(message), Severity.ERROR, _span(source, max(entry.line, 1)), (), None)
        )
    raise CollcError(mistakes[:_MAX_MISTAKES])


#: the most shards of a custom collective, times its ranks
_MOST_PLACES = 1 << 24

#: the rule of each key of the schema, for messages
_KEYS = {
    "oneSend": "a step sends one message to a peer on a channel",
    "oneRecv": "a step receives one message from a peer on a channel",
    "outKey": "a thread names an end once", "inKey": "a thread names an end once",
    "sendsOnItsOut": "a thread sends on connections that an `out` of it names",
    "recvsOnItsIn": "a thread receives on connections that an `in` of it names",
    "oneSender": "one thread sends to a peer on a channel",
    "oneReceiver": "one thread receives from a peer on a channel",
    "threadKey": "threads have different numbers", "stepKey": "steps have different numbers",
    "syncsOnAStep": "a sync names a step of its rank", "rankKey": "ranks have different numbers",
    "outToARank": "a peer is a rank", "inFromARank": "a peer is a rank", "rootIsARank": "the root is a rank",
}  # fmt: skip


def _worded(message: str) -> str:
    """Return a message of the schema with the rule of its key.

    >>> _worded("Element 'rank': Duplicate key-sequence ['0'] in key identity-constraint 'rankKey'")
    "element `rank`: ['0'] twice, but ranks have different numbers (rankKey)"
    """
    message = re.sub(r"Element '([^']*)'", r"element `\1`", message)
    message = re.sub(r", attribute '([^']*)'", r", attribute `\1`", message)
    key = re.search(r"(?:keyref|identity-constraint) '(\w+)'", message)
    if key is None or key[1] not in _KEYS:
        return re.sub(r"\[facet '\w+'\] ", "", message)
    element = message.split(":")[0]
    values = re.search(r"\[[^\]]*\]", message)
    shown = values[0] if values else ""
    what = "twice" if "Duplicate" in message else "is nowhere declared"
    return f"{element}: {shown} {what}, but {_KEYS[key[1]]} ({key[1]})"


def _trim(root: _Element) -> None:
    """Strip the blanks of values, as the schema does before it validates them."""
    for element in root.iter():
        for name, value in element.attrib.items():
            if value != value.strip():
                element.set(name, value.strip())


def _require_order(root: _Element, source: Source) -> None:
    """Raise C0755 unless ranks, threads and steps are numbered in document order (rule R1)."""
    mistakes: list[Diagnostic] = []

    def require(element: _Element, what: str, need: str) -> None:
        if element.get("id") != need and len(mistakes) < _MAX_MISTAKES:
            found = f"needed {what} {need} here, found id `{element.get('id')}`"
            span = _span(source, element.sourceline or 1)
            hint = "number them 0, 1, 2, ... in document order (R1)"
            mistakes.append(Diagnostic("C0755", found, Severity.ERROR, span, (), hint))

    ranks = list(root.iterchildren("rank"))
    for r, rank in enumerate(ranks):
        require(rank, "rank", str(r))
        for t, thread in enumerate(rank.iterchildren("thread")):
            require(thread, "thread", str(t))
            for s, step in enumerate(thread.iterchildren("step")):
                require(step, "step", f"{t}.{s}")
    if not mistakes and len(ranks) != _number(root, "ranks"):
        found = f"`ranks` is {root.get('ranks')}, but the file has {len(ranks)} ranks"
        mistakes.append(Diagnostic("C0755", found, Severity.ERROR, _span(source, root.sourceline or 1), (), None))
    if mistakes:
        raise CollcError(mistakes)


def _span(source: Source, line: int, column: int = 1) -> Span:
    return Span(source, line, column, line, column + 1)


# ---- valid elements


def _document(root: _Element, source: Source) -> Document:
    kind, *ranks = root
    name = kind.tag
    at = kind.get("root")
    ops = tuple(op for op in OPS if op in (kind.get("ops") or "").split())
    # If the file claims only idempotent operations, a contribution may come twice.
    op = "sum" if not ops or {"sum", "prod"} & set(ops) else ops[0]
    pre, post = _conditions(kind, len(ranks), source) if name == CUSTOM else (None, None)
    members = _members(root, kind, len(ranks), source)
    collective = Collective(
        name, len(ranks), None if at is None else int(at), op=op, pre=pre, post=post, members=members
    )
    given = (root.get("dtypes") or " ".join(DTYPES)).split()
    most = root.get("maxBytes")
    return Document(
        name=root.get("name") or "", collective=collective, channels=_number(root, "channels"),
        chunks=_number(root, "chunks"), inplace=root.get("inplace") == "1", outofplace=root.get("outofplace") == "1",
        ranks=tuple(_rank(r) for r in counting(ranks, "reading ranks")), ops=ops,
        dtypes=tuple(d for d in DTYPES if d in given),
        min_bytes=int(root.get("minBytes") or 0), max_bytes=None if most is None else int(most),
        line=root.sourceline or 0,
    )  # fmt: skip


def _members(root: _Element, kind: _Element, ranks: int, source: Source) -> tuple[int, ...] | None:
    """Return the ranks that have data, if others only relay; raise C0756 for a wrong number of them (rule R16)."""
    if root.get("members") is None:
        return None
    members = _number(root, "members")
    if kind.tag == CUSTOM or not _number(kind, "root") < members < ranks:
        found = f"`members` is {members}, needed fewer than {ranks} ranks and more than the root, not with custom (R16)"
        raise error("C0756", found, span=_span(source, root.sourceline or 1))
    return tuple(range(members))


def _conditions(
    kind: _Element, ranks: int, source: Source
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:  # fmt: skip
    """Return the rank that has each shard of a custom collective before, and those that must have it after.

    Raises C0756 if they are not ranks, or too many (rule R15).
    """
    pre, post = list[int](), list[tuple[int, ...]]()
    for shard in kind.iterchildren("shard"):
        holder, count = _number(shard, "from"), _number(shard, "count")
        wanting = tuple(map(int, (shard.get("to") or "").split()))
        if not all(rank < ranks for rank in (holder, *wanting)) or list(wanting) != sorted(set(wanting)):
            found = f"a shard is from {holder} to {list(wanting)}, needed ranks below {ranks}, ascending (R15)"
            raise error("C0756", found, span=_span(source, shard.sourceline or 1))
        if (len(pre) + count) * ranks > _MOST_PLACES:
            found = f"found more than {_MOST_PLACES // ranks} shards of {ranks} ranks (R15)"
            raise error("C0756", found, span=_span(source, shard.sourceline or 1))
        pre += [holder] * count
        post += [wanting] * count
    return tuple(pre), tuple(post)


def _number(element: _Element, name: str) -> int:
    return int(element.get(name) or 0)


def _rank(element: _Element) -> Rank:
    segments = tuple(
        Segment(None if s.get("chunk") is None else _number(s, "chunk"), _number(s, "count"), s.sourceline or 0)
        for s in element.iterchildren("segment")
    )
    threads = tuple(_thread(t) for t in element.iterchildren("thread"))
    return Rank(_number(element, "input"), _number(element, "output"), segments, threads, element.sourceline or 0)


def _thread(element: _Element) -> Thread:
    outs, ins = (
        tuple(End(_number(e, "peer"), _number(e, "channel"), e.sourceline or 0) for e in element.iterchildren(tag))
        for tag in ("out", "in")
    )
    return Thread(outs, ins, tuple(_step(s) for s in element.iterchildren("step")), element.sourceline or 0)


def _step(element: _Element) -> Step:
    syncs: list[tuple[int, int]] = []
    messages: list[Message] = []
    local: list[Local] = []
    for child in element:
        if child.tag == "sync":
            thread, step = (child.get("step") or "").split(".")
            syncs.append((int(thread), int(step)))
        elif child.tag in ("send", "recv"):
            messages.append(_message(child))
        else:
            local.append(_local(child))
    return Step(tuple(syncs), tuple(messages), tuple(local), element.sourceline or 0)


def _message(e: _Element) -> Message:
    place = _BUFFERS[e.get("buffer") or ""], _number(e, "offset")
    data = _number(e, "chunk"), _number(e, "count"), e.sourceline or 0
    return Message(e.tag == "send", _number(e, "peer"), _number(e, "channel"), place, *data)


def _local(e: _Element) -> Local:
    src, second, dst = (
        None if e.get(name) is None else (_BUFFERS[e.get(name) or ""], _number(e, f"{name}off"))
        for name in ("src", "with", "dst")
    )
    assert src is not None and dst is not None
    return Local(src, dst, _number(e, "chunk"), _number(e, "count"), second, e.sourceline or 0)
