"""Diagnostics in tracebacks of programs that do not use collc's own rendering."""

from __future__ import annotations

from collc.ir.diagnostic import Diagnostic

__all__ = ["details"]


def details(diagnostic: Diagnostic) -> list[str]:
    """Return the lines that follow a diagnostic's message: its notes and its hint."""
    hint = [f"hint: {diagnostic.hint}"] if diagnostic.hint else []
    explained = f"`collc explain {diagnostic.code}` explains the code"
    return [*(f"note: {note}" for note in diagnostic.notes), *hint, explained]
