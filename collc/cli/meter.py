"""The line of progress: what is done, a bar, and how long the rest takes. tqdm draws the bar, and is loaded for one."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["WIDTH", "Meter"]

#: the most characters of a line
WIDTH = 78
_LEAST_SECONDS = 2.0  # of one piece of work before its rest is estimated


class Meter:
    """Remembers when the current work began, to estimate its rest as fast as it went so far."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.what, self.total, self.first, self.start = "", 0, 0, clock()
        self.done = 0

    def update(self, what: str, done: int, total: int) -> None:
        """Take a report; other work, another total or a smaller number begins anew."""
        if (what, total) != (self.what, self.total) or done < self.done:
            self.what, self.total, self.first, self.start = what, total, done, self.clock()
        self.done = done

    def line(self, text: str, width: int = WIDTH, *, plain: bool = False) -> str:
        """Return a text with the bar of the last report, in at most ``width`` characters; without a total no bar.

        ``plain``: the terminal has only ASCII.

        >>> meter = Meter(clock=lambda: 0.0)
        >>> meter.update("trees", 3, 4)
        >>> meter.line("trees 3 of 4", 30, plain=True)
        'trees 3 of 4 |###########    |'
        """
        if not self.total:
            return text[:width]
        from tqdm import tqdm

        spent = self.clock() - self.start
        known = spent >= _LEAST_SECONDS and self.first < self.done < self.total and not text.endswith(" left")
        shown = "{desc} |{bar}| {remaining} left" if known else "{desc} |{bar}|"
        found: str = tqdm.format_meter(
            self.done, self.total, spent, ncols=width, prefix=text[: width - 8], ascii=" #" if plain else False,
            initial=self.first, bar_format=shown,
        )  # fmt: skip
        return found[:width]
