"""The language server: messages of the protocol, by pygls, and answers by the other modules of this folder.

Diagnostics are computed in a thread, one version of one file at a time. While the user types, versions in between are
left out. Other answers need no schedule and no specification; they use the last one that was right.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import attrs
from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from collc.frontends.coll import format_text
from collc.ir.diagnostic import CollcError, Diagnostic, Severity, Source, Span
from collc.ir.spec import Spec

from ..reading.loading import Loading
from .completing import Item, completions
from .costing import cost_text
from .defining import all_names, definition
from .documents import Checked, check
from .hovering import collective_at, text_at
from .names import Declared
from .places import Place, end_of, offset_of, range_of, word_at

__all__ = ["serve"]

#: How long the text must stay unchanged before it is checked.
_QUIET_SECONDS = 0.15

_KINDS = {
    "keyword": types.CompletionItemKind.Keyword, "name": types.CompletionItemKind.Variable,
    "function": types.CompletionItemKind.Function, "option": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember, "unit": types.CompletionItemKind.Unit,
}  # fmt: skip


#: an answer to a message, whose parameters and result have classes of the protocol
_Answer: TypeAlias = Callable[..., Awaitable[object]]


def serve(version: str, loading: Loading, options: Sequence[str] = ()) -> None:
    """Answer a client on standard input and output until it ends.

    ``version`` is that of collc. ``loading`` says how files are read; ``options`` says the same to a command line.
    """
    server = LanguageServer("collc", version, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
    session = _Session(server, loading, tuple(options))
    features: list[tuple[str, _Answer, object]] = [
        (types.TEXT_DOCUMENT_DID_OPEN, session.changed, None),
        (types.TEXT_DOCUMENT_DID_CHANGE, session.changed, None),
        (types.TEXT_DOCUMENT_DID_SAVE, session.saved, None),
        (types.TEXT_DOCUMENT_DID_CLOSE, session.closed, None),
        (types.TEXT_DOCUMENT_HOVER, session.hover, None),
        (types.TEXT_DOCUMENT_DEFINITION, session.definition, None),
        (types.TEXT_DOCUMENT_FORMATTING, session.formatting, None),
        (
            types.TEXT_DOCUMENT_COMPLETION,
            session.completion,
            types.CompletionOptions(trigger_characters=[" ", "{", ":"]),
        ),
    ]
    for name, answer, more in features:
        server.feature(name, more)(_function(answer))
    # Copies, since pygls closes what it is given.
    try:
        server.start_io(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    finally:
        session.pool.shutdown(wait=False, cancel_futures=True)


def _function(answer: _Answer) -> _Answer:
    """Return a method as a function, which pygls can mark."""

    async def function(_server: object, params: object) -> object:
        return await answer(params)

    return function


@attrs.define
class _File:
    """An open file: the check that is to come, and the last specification without errors."""

    pending: asyncio.Task[None] | None = None
    spec: Spec | None = None
    costs: dict[tuple[str, str], str] = attrs.field(factory=dict)  # (text, collective) -> Markdown


@attrs.define(eq=False)
class _Session:
    """The open files of one client."""

    server: LanguageServer
    loading: Loading
    options: tuple[str, ...]
    files: dict[str, _File] = attrs.field(factory=dict)
    pool: ThreadPoolExecutor = attrs.field(factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="check"))

    # ---- diagnostics

    async def changed(self, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
        """Check a file soon; a check of an older version that has not begun is left out."""
        self._check_soon(params.text_document.uri)

    async def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """Check all open files: they may include the one that was saved."""
        for uri, file in self.files.items():
            file.costs = {}
            self._check_soon(uri)

    async def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a file and its diagnostics."""
        file = self.files.pop(params.text_document.uri, _File())
        if file.pending:
            file.pending.cancel()
        self._publish(params.text_document.uri, None, [])

    def _check_soon(self, uri: str) -> None:
        file = self.files.setdefault(uri, _File())
        if file.pending:
            file.pending.cancel()
        file.pending = asyncio.get_running_loop().create_task(self._check(uri, file))

    async def _check(self, uri: str, file: _File) -> None:
        await asyncio.sleep(_QUIET_SECONDS)
        document = self._document(uri)
        version, text = document.version, document.source
        work = asyncio.get_running_loop().run_in_executor(self.pool, check, text, _path(document), self.loading)
        try:
            found = await work
        except CollcError as fault:
            self.server.window_log_message(types.LogMessageParams(types.MessageType.Error, str(fault)))
            return
        if self.files.get(uri) is not file or self._document(uri).version != version:
            return
        file.spec = found.spec or file.spec
        self._publish(uri, version, _diagnostics(found))

    def _publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    # ---- answers

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Explain the word under the cursor; of a collective also the cost."""
        document = self._document(params.text_document.uri)
        text, offset = document.source, _offset(document.source, params.position)
        file = self.files.get(document.uri, _File())
        shown = text_at(text, offset, file.spec)
        if shown is None:
            return None
        if (collective := collective_at(text, offset, file.spec)) is not None:
            shown += "\n\n" + await self._cost(document, file, collective.name)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, shown), _word_range(text, offset))

    async def _cost(self, document: TextDocument, file: _File, collective: str) -> str:
        """Return the cost of a collective, computed once for each version of the text."""
        key = (document.source, collective)
        if key not in file.costs:
            file.costs = {other: cost for other, cost in file.costs.items() if other[0] == document.source}
            folder = os.path.dirname(_path(document))
            cost = await cost_text(document.source, folder or ".", collective, self.options)
            file.costs[key] = cost
        return file.costs[key]

    async def completion(self, params: types.CompletionParams) -> list[types.CompletionItem]:
        """Return the names that can stand at the cursor."""
        document = self._document(params.text_document.uri)
        offset = _offset(document.source, params.position)
        names = all_names(_source(document), self.loading.include_path)
        found = completions(document.source, offset, (one for one in names if not _is_open(one, document, offset)))
        return [_item(one) for one in found]

    async def definition(self, params: types.DefinitionParams) -> types.Location | None:
        """Return where the name under the cursor is declared."""
        document = self._document(params.text_document.uri)
        offset = _offset(document.source, params.position)
        return _location(definition(_source(document), offset, self.loading.include_path))

    async def formatting(self, params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        """Return the canonical form of a file; None if it has errors of syntax."""
        document = self._document(params.text_document.uri)
        try:
            text = format_text(document.source, _path(document))
        except CollcError:
            return None
        whole = types.Range(types.Position(0, 0), _position(end_of(document.source)))
        return [] if text == document.source else [types.TextEdit(whole, text)]

    def _document(self, uri: str) -> TextDocument:
        return self.server.workspace.get_text_document(uri)


# ---- between the protocol and collc


def _path(document: TextDocument) -> str:
    """Return the path of a file; a file that was never saved has none, and gets a name for messages."""
    return uris.to_fs_path(document.uri) or os.path.basename(document.uri) or "untitled.coll"


def _source(document: TextDocument) -> Source:
    return Source(_path(document), document.source)


def _offset(text: str, position: types.Position) -> int:
    return offset_of(text, Place(position.line, position.character))


def _position(place: Place) -> types.Position:
    return types.Position(place.line, place.character)


def _range(span: Span | None) -> types.Range:
    """Return the range of a span; without one the beginning of the file."""
    if span is None:
        return types.Range(types.Position(0, 0), types.Position(0, 0))
    start, end = range_of(span)
    return types.Range(_position(start), _position(end))


def _location(span: Span | None) -> types.Location | None:
    if span is None:
        return None
    uri = uris.from_fs_path(os.path.abspath(span.source.path))
    return None if uri is None else types.Location(uri, _range(span))


def _word_range(text: str, offset: int) -> types.Range | None:
    ends = word_at(text, offset)
    if ends is None:
        return None
    start, end = (end_of(text[:at]) for at in ends)
    return types.Range(_position(start), _position(end))


def _is_open(one: Declared, document: TextDocument, offset: int) -> bool:
    """Return whether the statement at the cursor declares a name: it has no value yet."""
    span, text = one.span, document.source
    if span.source.path != _path(document) or one.kind == "variable":
        return False
    start = span.source.start_of(span.line) + span.column - 1
    return start <= offset and not re.search("[;{}]", text[start:offset])


def _item(one: Item) -> types.CompletionItem:
    return types.CompletionItem(
        one.name, kind=_KINDS[one.kind], detail=one.detail or None, documentation=one.help or None
    )


def _diagnostics(found: Checked) -> list[types.Diagnostic]:
    return [_diagnostic(one, found.source) for one in found.diagnostics]


def _diagnostic(one: Diagnostic, source: Source) -> types.Diagnostic:
    """Return a diagnostic with its notes and its hint; one of another file stands where that file is included."""
    span, message = one.span, one.message
    related = [(other.span, other.message) for other in one.related]
    if span is not None and span.source.path != source.path:
        related.insert(0, (span, "the mistake"))
        message = f"{span}: {message}"
        span = _include_of(span.source.path, source)
    lines = [message, *(f"note: {note}" for note in one.notes), *([f"hint: {one.hint}"] if one.hint else [])]
    places = [(_location(other), text) for other, text in related]
    return types.Diagnostic(
        _range(span), "\n".join(lines), code=one.code, source="collc",
        severity=types.DiagnosticSeverity.Error if one.severity is Severity.ERROR else types.DiagnosticSeverity.Warning,
        related_information=[types.DiagnosticRelatedInformation(place, text) for place, text in places if place],
    )  # fmt: skip


def _include_of(path: str, source: Source) -> Span | None:
    """Return the place of the text that names a file, directly; None if an included file names it."""
    name = os.path.basename(path)
    for number, line in enumerate(source.text.split("\n"), start=1):
        at = line.find(f'{name}"')
        if at >= 0 and '"' in line[:at]:
            start = line.rindex('"', 0, at)
            return Span(source, number, start + 1, number, at + len(name) + 2)
    return None
