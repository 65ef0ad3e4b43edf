"""The first element of an XML text, without parsing the text."""

from __future__ import annotations

import re

__all__ = ["prolog", "root_of"]

_PROLOG = re.compile(r"\s*(?:<!--.*?-->|<\?.*?\?>)", re.DOTALL)
_ROOT = re.compile(r"<([^\s/>!?]+)[\s/>]")


def root_of(text: str) -> str | None:
    """Return the name of the first element after comments and processing instructions; None if there is none.

    >>> root_of('<?xml version="1.0"?><!-- mine --><oneccl/>'), root_of("links 3")
    ('oneccl', None)
    """
    found = _ROOT.match(text[prolog(text) :].lstrip("\ufeff \t\r\n"))
    return found[1] if found else None


def prolog(text: str) -> int:
    """Return where the comments and processing instructions before the first element end."""
    position = 1 if text.startswith("\ufeff") else 0
    while skipped := _PROLOG.match(text, position):
        position = skipped.end()
    return position
