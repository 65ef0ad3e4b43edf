"""Colors, dashes, marks and letters of all pictures: on light and dark screens, and light on paper.

Series differ in color, dashes and marks, so that they differ without colors too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

__all__ = ["BOUND", "COLORS", "FONTS", "QUIET", "RING", "STYLE", "Look", "look"]

#: kind of text -> size in units of the page, and whether it is bold
FONTS: Mapping[str, tuple[int, bool]] = {
    "": (12, False), "title": (15, True), "label": (11, False), "inside": (11, False),
}  # fmt: skip

#: light and dark colors: (name, on white, on black)
_SHADES = (
    ("paper", "#fff", "#16181c"), ("ink", "#222", "#e4e4e4"), ("grid", "#ddd", "#3a3d42"),
    ("quiet", "#888", "#999"), ("bound", "#a00", "#ff7b72"),
)  # fmt: skip
#: colors of series, dark on white and light on black
COLORS = (
    ("#1f5fa8", "#6cb0f5"), ("#a85a15", "#f0a35e"), ("#2e7d32", "#6fce76"), ("#8e24aa", "#d28be8"),
    ("#b3261e", "#ff8a80"), ("#00707d", "#4fd0de"), ("#5d4037", "#c9a594"), ("#555", "#bbb"),
)  # fmt: skip
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_MARKS = ("circle", "square", "triangle", "diamond")


@attrs.frozen
class Look:
    """How a series looks: the class of its color, its dashes, and its mark."""

    color: str
    dash: str = ""
    mark: str = "circle"


BOUND = Look("bound", "6 4")
QUIET = Look("quiet")
RING = Look("ink", mark="ring")


def look(index: int) -> Look:
    """Return the look of a series; the first 32 all differ.

    >>> look(0), look(8)
    (Look(color='c0', dash='', mark='circle'), Look(color='c0', dash='7 4', mark='circle'))
    """
    turn = index // len(COLORS)
    return Look(f"c{index % len(COLORS)}", _DASHES[(index + turn) % len(_DASHES)], _MARKS[index % len(_MARKS)])


def _colors(dark: bool) -> Iterator[str]:
    shade = {name: pair[dark] for name, *pair in _SHADES}
    yield f".paper{{fill:{shade['paper']}}}.picture text{{fill:{shade['ink']}}}"
    yield f".picture text.inside{{fill:{shade['paper']}}}"
    yield f".grid{{stroke:{shade['grid']}}}.axis{{stroke:{shade['ink']}}}"
    yield "".join(f".{name}{{color:{shade[name]}}}" for name in ("ink", "quiet", "bound"))
    yield "".join(f".c{i}{{color:{pair[dark]}}}" for i, pair in enumerate(COLORS))


def _letters() -> Iterator[str]:
    yield ".picture text{font-family:sans-serif}"
    for kind, (size, bold) in FONTS.items():
        yield f".picture text{f'.{kind}' * bool(kind)}{{font-size:{size}px{';font-weight:bold' * bold}}}"


_FORMS = (
    ".axis{fill:none}.line{stroke:currentColor;fill:none;stroke-width:1.8}.thin{stroke:currentColor;fill:none}"
    ".fill{fill:currentColor}.ring{stroke:currentColor;fill:none;stroke-width:2}"
    ".row:target text{font-weight:bold}a:focus-visible{outline:2px solid currentColor}"
)
#: rules for all pictures, in a page once; only screens are dark, paper is not
STYLE = (
    "".join([*_letters(), _FORMS, *_colors(False)])
    + f"@media screen and (prefers-color-scheme:dark){{{''.join(_colors(True))}}}"
)
