"""Reads generated text from beginning to end, and refuses any deviation."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["Cursor", "Unreadable"]

_SHOWN = 60


class Unreadable(Exception):
    """A text that collc would not write. The message names the place and the expected text."""


class Cursor:
    """A place in a text, behind everything understood so far. ``name`` is the name of the text in messages."""

    def __init__(self, text: str, name: str):
        self.text, self.name, self.at = text, name, 0

    def accept(self, literal: str) -> bool:
        """Skip a literal if it is next; return whether it was."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Skip a literal; raise Unreadable at the first different character."""
        if not self.accept(literal):
            found = self.text[self.at : self.at + len(literal)]
            same = next((k for k, (a, b) in enumerate(zip(found, literal, strict=False)) if a != b), len(found))
            self.at += same
            raise self.fail(f"`{_shown(literal[same:])}`")

    def match(self, pattern: str, what: str) -> re.Match[str]:
        """Skip a match of a regular expression and return it; raise Unreadable if it does not match here."""
        found = _compiled(pattern).match(self.text, self.at)
        if found is None:
            raise self.fail(what)
        self.at = found.end()
        return found

    def fill(self, template: str, holes: dict[str, str], what: str) -> dict[str, str]:
        """Skip a template and return the text of its holes: words of the template with their regular expressions.

        A repeated hole must have the same text again.
        """
        found = self.match(_filled(template, tuple(holes.items())), what)
        return {name: found[f"h{k}"] for k, name in enumerate(holes)}

    def end(self) -> None:
        """Require the end of the text."""
        if self.at < len(self.text):
            raise self.fail("the end of the file")

    def fail(self, needed: str) -> Unreadable:
        """Return the error for the text here."""
        line = self.text.count("\n", 0, self.at) + 1
        found = f"`{_shown(self.text[self.at :][:_SHOWN])}`" if self.at < len(self.text) else "the end of the file"
        return Unreadable(f"{self.name}, line {line}: expected {needed}, found {found}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@cache
def _filled(template: str, holes: tuple[tuple[str, str], ...]) -> str:
    """Return the regular expression of a template."""
    numbers = {name: k for k, (name, _) in enumerate(holes)}
    parts, seen = [], set()
    for part in re.split(f"({'|'.join(re.escape(name) for name, _ in holes)})", template):
        if part not in numbers:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(f"(?P=h{numbers[part]})")
        else:
            seen.add(part)
            parts.append(f"(?P<h{numbers[part]}>{holes[numbers[part]][1]})")
    return "".join(parts)


def _shown(text: str) -> str:
    """Return the beginning of a text as a message shows it."""
    return repr(text.split("\n", 1)[0][:_SHOWN] or text[:1])[1:-1]
