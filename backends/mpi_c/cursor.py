"""Reading generated text from its beginning to its end: whatever does not stand where it must is refused."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["Cursor", "Unreadable"]

_SHOWN = 60


class Unreadable(Exception):
    """A text that is not what collc writes; the message says where and what is due there."""


class Cursor:
    """A place in a text. Everything before it was understood; ``name`` is the text's in messages."""

    def __init__(self, text: str, name: str):
        self.text, self.name, self.at = text, name, 0

    def accept(self, literal: str) -> bool:
        """Go on past a literal, where it stands here; return whether it does."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Go on past a literal; raise Unreadable at the first character that differs."""
        if not self.accept(literal):
            found = self.text[self.at : self.at + len(literal)]
            same = next((k for k, (a, b) in enumerate(zip(found, literal, strict=False)) if a != b), len(found))
            self.at += same
            raise self.fail(f"`{_shown(literal[same:])}`")

    def match(self, pattern: str, what: str) -> re.Match[str]:
        """Go on past a match of a regular expression; raise Unreadable where none begins here."""
        found = _compiled(pattern).match(self.text, self.at)
        if found is None:
            raise self.fail(what)
        self.at = found.end()
        return found

    def fill(self, template: str, holes: dict[str, str], what: str) -> dict[str, str]:
        """Go on past a template and return what stands in its holes, each a word of it with its regular expression.

        A hole that comes again holds the same again.
        """
        found = self.match(_filled(template, tuple(holes.items())), what)
        return {name: found[f"h{k}"] for k, name in enumerate(holes)}

    def end(self) -> None:
        """Require the end of the text."""
        if self.at < len(self.text):
            raise self.fail("the end of the file")

    def fail(self, needed: str) -> Unreadable:
        """Return the error for what stands here, ready to raise."""
        line = self.text.count("\n", 0, self.at) + 1
        found = f"`{_shown(self.text[self.at :][:_SHOWN])}`" if self.at < len(self.text) else "the end of the file"
        return Unreadable(f"{self.name}, line {line}: {needed} must stand here, found {found}")


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
