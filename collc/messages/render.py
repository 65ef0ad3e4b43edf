"""Diagnostics for people and for tools: text with a caret, JSON, SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from collc.ir.diagnostic import Diagnostic, Severity, Span
from collc.ir.shown import counted

from .width import width

__all__ = ["FORMATS", "Style", "as_json", "as_sarif", "as_text", "clean", "diagnostic_object"]

FORMATS = ("text", "json", "sarif")

_WIDTH = 100  # shown columns of a source line; a longer line is cut around the caret
_TAB = 4


class Style:
    """Colors for the parts of a message: escape sequences or none."""

    def __init__(self, color: bool):
        self.color = color

    def mark(self, text: str, kind: str) -> str:
        """Return a text in the color of ``kind``, or unchanged without colors."""
        codes = {"error": "1;31", "warning": "1;35", "note": "36", "hint": "32", "place": "1", "line": "34"}
        return f"\x1b[{codes[kind]}m{text}\x1b[0m" if self.color and text else text


# ---- text


def as_text(diagnostics: Sequence[Diagnostic], *, color: bool = False, limit: int = 20) -> str:
    """Return the diagnostics as text: at most ``limit`` (0: all), then the number of the others."""
    shown = diagnostics if limit <= 0 else diagnostics[:limit]
    lines = [line for d in shown for line in _one(d, Style(color))]
    if len(diagnostics) > len(shown):
        rest = diagnostics[len(shown) :]
        lines.append(f"... and {_count(rest)} (--error-limit={limit})")
    return "".join(line + "\n" for line in lines)


def _count(diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(d.severity is Severity.ERROR for d in diagnostics)
    parts = [(errors, "error"), (len(diagnostics) - errors, "warning")]
    return " and ".join(counted(n, f"more {word}") for n, word in parts if n)


def _one(diagnostic: Diagnostic, style: Style) -> Iterable[str]:
    place = f"{clean(str(diagnostic.span))}:" if diagnostic.span else "collc:"
    kind = str(diagnostic.severity)
    message = clean(diagnostic.message, "\n      ")
    yield f"{style.mark(place, 'place')} {style.mark(f'{kind}:', kind)} {message} [{diagnostic.code}]"
    if diagnostic.span:
        yield from _excerpt(diagnostic.span, style, kind)
    for other in diagnostic.related:
        place = f"  {clean(str(other.span))}:"
        yield f"{style.mark(place, 'place')} {style.mark('note:', 'note')} {clean(other.message)}"
        yield from _excerpt(other.span, style, "note")
    for note in diagnostic.notes:
        yield f"  {style.mark('note:', 'note')} {clean(note, chr(10) + '        ')}"
    if diagnostic.hint:
        yield f"  {style.mark('hint:', 'hint')} {clean(diagnostic.hint, chr(10) + '        ')}"


def _excerpt(span: Span, style: Style, kind: str) -> Iterable[str]:
    """Yield the source line with its span underlined, at most to the end of the line; nothing of a hidden source."""
    if span.source.hidden:
        return
    line = span.source.line(span.line)
    start = min(span.column - 1, len(line))
    end = min(span.end_column - 1, len(line)) if span.end_line == span.line else len(line)
    before, inside, after = (
        clean(part) for part in (line[:start], line[start : max(end, start)], line[max(end, start) :])
    )
    before, inside, after = _window(before, inside, after)
    number = str(span.line)
    yield f"  {style.mark(number + ' |', 'line')} {before}{style.mark(inside, kind)}{after}".rstrip()
    under = "^" + "~" * (width(inside) - 1)
    yield f"  {' ' * len(number)} {style.mark('|', 'line')} {' ' * width(before)}{style.mark(under, kind)}"


def _window(before: str, inside: str, after: str) -> tuple[str, str, str]:
    """Cut a long line to the text around its marked part."""
    if len(before) + len(inside) + len(after) <= _WIDTH:
        return before, inside, after
    if len(inside) > _WIDTH - 30:
        inside, after = inside[: _WIDTH - 30] + "...", ""
    room = _WIDTH - len(inside)
    if len(before) > room // 2:
        before = "..." + before[-(room // 2) :]
    if len(before) + len(after) > room:
        after = after[: max(room - len(before), 0)] + "..."
    return before, inside, after


def clean(text: str, line_break: str = "\\n") -> str:
    r"""Return ``text`` without terminal controls: tabs expanded, other control characters escaped.

    >>> print(clean("a\tb\x1b[31m"))
    a    b\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(_visible(char, line_break) for char in text)


def _visible(char: str, line_break: str) -> str:
    if char == "\t":
        return " " * _TAB
    if char == "\n":
        return line_break
    if char.isprintable():
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"


# ---- JSON and SARIF


def as_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return one object, ``{"diagnostics": [..]}``, of every diagnostic."""
    return json.dumps({"diagnostics": [diagnostic_object(d) for d in diagnostics]}, indent=2) + "\n"


def diagnostic_object(diagnostic: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as a JSON object; ``location`` is None without a place."""
    place = _place(diagnostic.span) if diagnostic.span else None
    related = [{"message": other.message, "location": _place(other.span)} for other in diagnostic.related]
    return {
        "code": diagnostic.code, "severity": str(diagnostic.severity), "message": diagnostic.message,
        "location": place, "related": related, "notes": list(diagnostic.notes), "hint": diagnostic.hint,
        **_facts(diagnostic),
    }  # fmt: skip


def _place(span: Span) -> dict[str, object]:
    return {
        "file": span.source.path, "line": span.line, "column": span.column,
        "end_line": span.end_line, "end_column": span.end_column,
    }  # fmt: skip


def _facts(diagnostic: Diagnostic) -> dict[str, object]:
    """Return the kind of a diagnostic and, for an excess, its quantity, number and limit."""
    excess = diagnostic.excess
    return {
        "kind": str(diagnostic.kind),
        **({"excess": {"what": excess.what, "found": excess.found, "allowed": excess.allowed}} if excess else {}),
    }


def as_sarif(diagnostics: Sequence[Diagnostic], version: str) -> str:
    """Return a SARIF 2.1.0 log of one run; every rule carries the paragraph of ``collc explain``."""
    codes = sorted({d.code for d in diagnostics})
    run = {
        "tool": {"driver": {"name": "collc", "version": version, "rules": [_rule(code) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, codes.index(d.code)) for d in diagnostics],
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _rule(code: str) -> dict[str, object]:
    from .explain import explanation

    text = explanation(code)
    if text is None:
        return {"id": code}
    title, _, rest = text.partition("\n")
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": rest.strip() or title},
    }


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, object]:
    text = "\n".join([diagnostic.message, *(f"note: {n}" for n in diagnostic.notes)])
    if diagnostic.hint:
        text += f"\nhint: {diagnostic.hint}"
    result: dict[str, object] = {
        "ruleId": diagnostic.code, "ruleIndex": rule, "level": str(diagnostic.severity), "message": {"text": text},
    }  # fmt: skip
    if diagnostic.span:
        result["locations"] = [{"physicalLocation": _physical(diagnostic.span)}]
    if diagnostic.related:
        result["relatedLocations"] = [
            {"physicalLocation": _physical(other.span), "message": {"text": other.message}}
            for other in diagnostic.related
        ]
    return result | {"properties": _facts(diagnostic)}


def _physical(span: Span) -> dict[str, object]:
    """Return a place as SARIF's physicalLocation."""
    region = {
        "startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column,
    }  # fmt: skip
    return {"artifactLocation": {"uri": _uri(span.source.path)}, "region": region}


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
