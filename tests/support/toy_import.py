"""A format for tests of `import`: ``toy``, then ``rank NAME``, ``switch NAME``, ``link A B [GB/s]`` in lines.

A link without a bandwidth needs the figure `nic`, ``link A B leaf`` that of the tier `leaf`. ``guess`` assumes a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from collc.frontends.importing.figures import Figures, gigabytes
from collc.frontends.importing.formats import IMPORTS, Importer
from collc.frontends.importing.model import Draft, Imported
from collc.frontends.importing.pasted import Line, lines
from collc.ir.diagnostic import Source

__all__ = ["read", "sniff", "toys"]


def sniff(head: str) -> bool:
    return head.startswith("toy")


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    draft = Draft("toy")
    for line in list(lines(sources[0]))[1:]:
        words = [word.text for word in line.words]
        match words:
            case ["rank", name]:
                draft.rank(name, line.span())
            case ["switch", name]:
                draft.switch(name, line.span())
            case ["link", a, b, *rest] if a in draft and b in draft and rest != ["0"]:
                draft.link(a, b, _bandwidth(rest, figures, line))
            case ["guess", what]:
                draft.assume(what, "the toy's manual", line.span())
            case [_, *_]:
                draft.wrong("C0924", f"found `{words[0]}`, needed `rank`, `switch` or `link`", line.words[0].span)
    return draft.finish()


def _bandwidth(rest: list[str], figures: Figures, line: Line) -> Fraction:
    if not rest:
        return figures.require_nic("a link", line.span())
    return gigabytes(rest[0]) if rest[0].isdigit() else figures.require_tier(rest[0], [rest[0]], "a link", line.span())


@contextmanager
def toys() -> Iterator[None]:
    """Make the format known inside the block."""
    IMPORTS["toy"] = Importer(__name__, "a format of the tests", "tests")
    try:
        yield
    finally:
        del IMPORTS["toy"]
