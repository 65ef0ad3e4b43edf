"""What a campaign finds: one line each, with a reproducer that is as small as deleting can make it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import attrs

__all__ = ["Finding", "Part", "minimal"]

#: tries that a reproducer is worth
_TRIES = 150


@attrs.frozen
class Finding:
    """Something that must not be: what was tried, what happened, and a text that shows it again.

    ``case`` names the part of the campaign and the number of the case; the seed and this name repeat it.
    """

    case: str
    what: str
    text: str = attrs.field(default="", repr=False)
    suffix: str = ".txt"

    def kept(self, folder: Path) -> Path:
        """Write the reproducer; its name follows from its content."""
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:10]
        path = folder / f"{self.case.replace(':', '-')}-{digest}{self.suffix}"
        path.write_text(self.text, encoding="utf-8", errors="surrogatepass")
        return path


@attrs.frozen
class Part:
    """A part of the campaign: ``run(seed, number)`` tries one case and returns what it found.

    The same seed and number try the same case. ``share`` is its share of the time. ``prepare`` makes what all cases
    start from; it runs once, before the processes that try them begin.
    """

    name: str
    share: int
    run: Callable[[int, int], list[Finding]]
    prepare: Callable[[], object] = lambda: None


def minimal(text: str, shows: Callable[[str], bool]) -> str:
    """Return a smaller text that still ``shows`` the finding: lines are left out, then characters, in halves."""
    tries = 0

    def still(candidate: str) -> bool:
        nonlocal tries
        tries += 1
        return tries <= _TRIES and shows(candidate)

    for cut, join in ((lambda t: t.splitlines(keepends=True), ""), (list, "")):
        units = cut(text)
        size = max(len(units) // 2, 1)
        while size and tries < _TRIES:
            at = 0
            while at < len(units) and tries < _TRIES:
                shorter = units[:at] + units[at + size :]
                if shorter and still(join.join(shorter)):
                    units = shorter
                else:
                    at += size
            size //= 2
        text = join.join(units)
    return text
