"""Text as roff, for the macros ``man``."""

from __future__ import annotations

import re

__all__ = ["bold", "inline", "paragraphs", "term"]

_SPECIAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}


def inline(text: str) -> str:
    r"""Return a text in which quoted code is bold; no line of it can be a request.

    >>> print(inline("`collc -t x` prints 'y'"))
    \fBcollc \-t x\fR prints \(aqy\(aq
    """
    parts = re.split(r"`([^`\n]*)`", text)
    return _guarded("".join(bold(part) if place % 2 else _escaped(part) for place, part in enumerate(parts)))


def bold(text: str) -> str:
    """Return a text in bold."""
    return f"\\fB{_escaped(text)}\\fR"


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which blank lines separate."""
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip()) if block.strip()]
    return [line for block in blocks for line in (".PP", inline(block))]


def term(name: str, text: str) -> list[str]:
    """Return an entry: a term (roff) and the text that explains it."""
    return [".TP", name, inline(text)]


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(char, char) for char in text)


def _guarded(text: str) -> str:
    """Return a text of which no line begins as a request does."""
    return re.sub(r"^(?=[.])", r"\\&", text, flags=re.MULTILINE)
