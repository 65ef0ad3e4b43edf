"""Signs and files from elsewhere: look-alikes of signs, comments and files of other languages."""

from __future__ import annotations

import re

from .trouble import Fix, Slip, Trouble, called, here

__all__ = ["ROWS"]


_QUOTES = "“”„‟«»"
_SINGLE_QUOTES = "‘’‚"
_LOOKALIKES = {
    "：": ":", "；": ";", "，": ",", "（": "(", "）": ")", "［": "[", "］": "]", "｛": "{", "｝": "}", "＝": "=",
    "–": "-", "—": "-", "−": "-", "→": "->", "⟶": "->", "⇒": "->", "↔": "<->", "⟷": "<->", "⇔": "<->",
    "×": "*", "·": "*", "÷": "/", "≤": "<=", "≥": ">=", "≠": "!=", "…": "..",
}  # fmt: skip
_TERMINALS = {
    ":": "COLON", ";": "SEMI", ",": "COMMA", "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE",
    "}": "RBRACE", "=": "EQUAL", "-": "MINUS", "->": "SIMPLEX", "<->": "DUPLEX", "*": "TIMES", "/": "TIMES",
    "<=": "COMPARE", ">=": "COMPARE", "!=": "COMPARE", "..": "DOTS",
}  # fmt: skip
_BLANKS = {
    "\u00a0": "a no-break space", "\u2007": "a figure space", "\u202f": "a narrow no-break space", 
    "\u3000": "a wide space",
    "\u200b": "a space of no width", "\ufeff": "a byte-order mark", "\u2009": "a thin space",
}  # fmt: skip


def _lookalike(t: Trouble) -> Fix | None:
    """``include “site.coll”;``, a sign of a word processor or another keyboard."""
    if t.found in _BLANKS:
        code = f"U+{ord(t.found):04X}"
        return here(t, "C0109", f"found {_BLANKS[t.found]} ({code})", hint="write a plain space", skip=1)
    if t.found and t.found in _QUOTES + _SINGLE_QUOTES:
        return _typographic(t)
    sign = _LOOKALIKES.get(t.found)
    if sign is None:
        return None
    terminal = _TERMINALS[sign] if _TERMINALS[sign] in t.expected else None
    message = f"found `{t.found}` (U+{ord(t.found):04X}), needed `{sign}`"
    return here(t, "C0109", message, insert=terminal, sign=sign if terminal else None, skip=1 if terminal else 0)


def _typographic(t: Trouble) -> Fix | None:
    all_ = _QUOTES + _SINGLE_QUOTES
    match = re.compile(rf'[{all_}]([^\n{all_}"]*)[{all_}"]?').match(t.text, t.position)
    assert match is not None
    fits = "STRING" in t.expected
    message = f'found typographic quotes, needed `"{match[1]}"`' if fits else f"found `{t.found}`"
    hint = None if fits else "leave the quotes out"
    sign = f'"{match[1]}"' if fits else None
    return Fix(
        "C0109", message, t.position, match.end(), hint=hint, insert="STRING" if fits else None, sign=sign,
        skip=len(match.group()) if fits else 1,
    )  # fmt: skip


def _other_comment(t: Trouble) -> Fix | None:
    """``-- comment`` and docstrings, where a declaration or statement begins."""
    quoted = t.found == '""' and t.text.startswith('"""', t.position)
    if not (quoted or t.text.startswith(("--", "<!--"), t.position)) or (t.last is None and _other_format(t)):
        return None
    if not t.expected & {"TOPOLOGY", "LET"} or (t.found == "--" and "SIMPLEX" in t.expected):
        return None
    closing = '"""' if quoted else "-->" if t.found == "<" else "\n"
    end = t.text.find(closing, t.position + 3)
    end = len(t.text) if end < 0 else end + (0 if closing == "\n" else len(closing))
    shown = t.text[t.position : t.position + (3 if quoted else 4 if t.found == "<" else 2)]
    return Fix(
        "C0109", f"found `{shown}`", t.position, t.position + len(shown), hint="comments begin with `#`",
        skip=end - t.position,
    )  # fmt: skip


def _percent(t: Trouble) -> Fix | None:
    if t.found != "%" or not re.compile(r"%\s*[,;})]").match(t.text, t.position):
        return None
    if t.last is None or t.last.type != "NUMBER":
        return None
    share = float(t.last.text) / 100
    hint = f"write the quantity itself; as a share of another, `{share:g} * 25 Gbps`"
    if called(t):
        hint = f"write `{share:g}`"
    return Fix("C0109", f"found `{t.last.text}%`", t.last.start, t.position + 1, hint=hint, skip=1)


_KINDS = {"{": "JSON", "[": "JSON", "<": "XML", "-": "YAML"}


def _other_format(t: Trouble) -> Fix | None:
    """``{ "topology": ..``: the text begins as JSON, YAML or XML do."""
    if (
        t.last is not None
        or t.found[:1] not in _KINDS
        or (t.found == "--" and not t.text.startswith("---", t.position))
    ):
        return None
    kind = _KINDS[t.found[:1]]
    hint = "write declarations, such as `topology pod = torus(4, 4);`"
    return here(t, "C0109", f"found `{t.found}`, as {kind} begins, needed a declaration", hint=hint)


_FORMS = {
    "TOPOLOGY": ("topology", "topology NAME = torus(4, 4);"),
    "COLLECTIVE": ("collective", "collective NAME = allreduce on TOPOLOGY;"),
    "PARAM": ("parameter", "param NAME = 4;"), "LET": ("value", "let NAME = 4;"),
    "SCHEDULE": ("collective", "schedule NAME using bfb;"), "EMIT": ("collective", "emit NAME as TARGET;"),
}  # fmt: skip


def _unnamed(t: Trouble) -> Fix | None:
    """``topology = torus(4, 4);`` and YAML's ``topology:``."""
    if t.last is None or t.last.type not in _FORMS or t.found not in ("=", ":", "{", ";", ":=", "==", ""):
        return None
    what, form = _FORMS[t.last.type]
    return here(t, "C0111", f"missing the name of the {what}: found {t.what()}", hint=f"write `{form}`")


#: each with an example; the first that recognizes the mistake answers
ROWS = (
    Slip("include “site.coll”;", _lookalike),
    Slip("-- a comment\nparam n = 3;", _other_comment),
    Slip("topology t = torus(3) with { bandwidth: 80% };", _percent),
    Slip('{ "topology": "torus" }', _other_format),
    Slip("topology = torus(4, 4);", _unnamed),
)
