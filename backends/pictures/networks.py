"""A network as a picture: ranks and switches at their places, links as wide and as dark as they are loaded.

Width, dashes and the number beside each sample of the legend say what the colors say. Each link is an element of its
own, whose attributes have its number and its exact load, so that a reader can compare them with a schedule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil, sqrt

import attrs

from collc.ir.arrays import Array
from collc.ir.costs.readable import bandwidth_text
from collc.ir.quantities import show_time
from collc.ir.shown import counted
from collc.ir.topology import Topology

from .charts import WIDTH, head
from .cuts import CutParts
from .geometry import Course, Panel, panels_of
from .layout import Layout, layout_of
from .lettering import shorten, width
from .svg import Element, Picture, circle, element, group, line, number, rectangle, text

__all__ = [
    "LEVELS",
    "LinkLoads",
    "NetworkDrawing",
    "course_text",
    "key_height",
    "key_lines",
    "level_of",
    "load_samples",
    "network_picture",
    "network_style",
    "origin_text",
    "title_of",
]

#: levels of load; level 0 carries nothing
LEVELS = 5
#: more links are drawn without heads and tips
_MOST_HEADS, _MOST_TIPS = 400, 2500
_HEAD, _LINE = 54.0, 18.0

#: width and colors (on white, on black) of the links of each level: darker on white, lighter on black
_SHADES = (
    (0.9, "#8a9098", "#7a8088"), (1.1, "#7fb2e0", "#2f5f92"), (1.7, "#4f93d2", "#3f7fbd"), (2.4, "#2a72b8", "#5d9fdc"),
    (3.1, "#17508c", "#8cc0f0"), (3.9, "#0a2f5c", "#d0e6fb"),
)  # fmt: skip
_FORMS = (
    ".link{fill:none;stroke-linecap:round;stroke-linejoin:round}.k0{stroke-dasharray:1 4}.small{stroke-width:.8px}"
    ".node{fill:#fff;stroke:#222;stroke-width:1.2}.switch{fill:#ddd}.box{fill:none;stroke:#666;stroke-dasharray:3 3}"
    ".inside{stroke:#a00;stroke-width:2.6;stroke-dasharray:4 2}.under{stroke:#fff;stroke-width:2.6px}"
    ".cut{stroke:#a00;stroke-width:2px;stroke-dasharray:6 4;stroke-linecap:butt}"
)
_DARK = (
    ".node{fill:#16181c;stroke:#e4e4e4}.switch{fill:#3a3d42}.box{stroke:#999}.inside,.cut{stroke:#ff7b72}.under{stroke:#16181c}"
)  # fmt: skip


def network_style(scale: float = 1.0) -> str:
    """Return the rules of networks, beside those of all pictures; links are ``scale`` times as wide as usual."""
    wide = "".join(f".k{n}{{stroke-width:{max(width * scale, 0.5):.3g}px}}" for n, (width, _, _) in enumerate(_SHADES))
    light = "".join(f".k{n}{{stroke:{shade}}}" for n, (_, shade, _) in enumerate(_SHADES))
    dark = "".join(f".k{n}{{stroke:{shade}}}" for n, (_, _, shade) in enumerate(_SHADES))
    return f"{_FORMS}{wide}{light}@media screen and (prefers-color-scheme:dark){{{dark}{_DARK}}}"


def level_of(busy: Fraction, most: Fraction) -> int:
    """Return the level of a link that is busy for this time, if the busiest is for ``most``.

    >>> level_of(Fraction(0), Fraction(3)), level_of(Fraction(1, 10), Fraction(3)), level_of(Fraction(3), Fraction(3))
    (0, 1, 5)
    """
    return max(ceil(busy / most * LEVELS), 1) if busy and most else 0


@attrs.frozen(eq=False)
class LinkLoads:
    """The load of every link, as a share of M, and what it takes: the share over the bandwidth."""

    share: tuple[Fraction, ...]
    busy: tuple[Fraction, ...]

    @classmethod
    def of(cls, topology: Topology, load: Array, whole: int) -> LinkLoads:
        """Return the loads from numerators over one denominator."""
        share = tuple(Fraction(one, whole) for one in load.tolist())
        widths = [topology.classes[kind].bandwidth for kind in topology.link_class.tolist()]
        return cls(share, tuple(one / wide for one, wide in zip(share, widths, strict=True)))

    @property
    def most(self) -> Fraction:
        """What the busiest link takes."""
        return max(self.busy, default=Fraction(0))


@attrs.frozen(eq=False)
class NetworkDrawing:
    """A topology at its places. Links are drawn by :meth:`links`, once or for every step; nodes by :meth:`nodes`."""

    topology: Topology
    layout: Layout
    panels: tuple[Panel, ...]

    @classmethod
    def of(cls, topology: Topology, page: float = WIDTH) -> NetworkDrawing:
        """Return the drawing for a page of some width."""
        layout = layout_of(topology)
        return cls(topology, layout, tuple(panels_of(topology, layout, page)))

    @property
    def height(self) -> float:
        """The height of all panels."""
        return sum(panel.height for panel in self.panels)

    @property
    def fitted(self) -> float:
        """The share of their width that links have, so that they do not cover each other."""
        near = min((panel.near for panel in self.panels), default=62.0)
        crowd = sqrt(2500 / max(self.topology.num_links, 1))
        return min(max(near / 62, 0.35), 1.0) * max(min(1.0, crowd), 0.4)

    def courses(self) -> Iterator[tuple[int, float, Course]]:
        """Yield (link, top of its panel, course) for every link on the page."""
        top = _HEAD
        for panel in self.panels:
            yield from ((link, top, course) for link, course in self._on(panel))
            top += panel.height

    def _on(self, panel: Panel) -> Iterator[tuple[int, Course]]:
        owned = {node for box in self.layout.boxes for node in box}
        parallel: dict[tuple[int, int], int] = {}
        ends = zip(self.topology.src.tolist(), self.topology.dst.tolist(), strict=True)
        for link, (a, b) in enumerate(ends):
            inside = a in panel.at and b in panel.at
            if a == b or not (inside or ((a in panel.at or b in panel.at) and a in owned and b in owned)):
                continue
            key = (a, b) if inside else (a if a in panel.at else b, -1)
            nth = parallel.get(key, 0)
            parallel[key] = nth + 1
            course = panel.course(a, b, nth)
            if course is not None:
                yield link, course

    # ---- elements

    def links(self, loads: LinkLoads | None, crossed: Iterable[int] = ()) -> Iterator[Element]:
        """Yield every link by its load, then the marks of the links that cross a cut; without loads all are alike."""
        courses = list(self.courses())
        heads, tips = len(courses) <= _MOST_HEADS, len(courses) <= _MOST_TIPS
        for link, top, course in courses:
            level = 2 if loads is None else level_of(loads.busy[link], loads.most)
            share = None if loads is None else str(loads.share[link])
            tip = (element("title", self.link_text(link, loads)),) if tips else ()
            yield element(
                "path",
                *tip,
                class_=f"link k{level}",
                d=course_text(course, top, heads),
                data_link=str(link),
                data_load=share,
            )
        chosen = set(crossed)
        marks = "".join(course_text(course, top, False) for link, top, course in courses if link in chosen)
        if marks:
            yield element("path", class_="link under", d=marks)
            yield element("path", class_="link cut", d=marks)

    def link_text(self, link: int, loads: LinkLoads | None) -> str:
        """Return the ends of a link, its bandwidth and latency, and its load."""
        topology = self.topology
        kind = topology.classes[int(topology.link_class[link])]
        rate = bandwidth_text(topology, kind.bandwidth)
        latency = f", {show_time(float(kind.latency))}" if kind.latency else ""
        ends = f"{topology.names[int(topology.src[link])]} to {topology.names[int(topology.dst[link])]}"
        return f"{ends}: {rate}{latency}" + ("" if loads is None else f"; carries {_share(loads.share[link])}")

    def nodes(self, inside: frozenset[int] = frozenset()) -> Iterator[Element]:
        """Yield boxes, then nodes with their names where they fit; nodes ``inside`` a cut have dashed borders."""
        top = _HEAD
        for panel in self.panels:
            for name, box in panel.outlines:
                yield element(
                    "rect", class_="box", x=box.left, y=top + box.top, width=box.right - box.left,
                    height=box.bottom - box.top, rx=6,
                )  # fmt: skip
                yield text(box.left + 4, top + box.bottom + 13, name, "label")
            for node, (x, y) in panel.at.items():
                yield self._node(panel, node, x, top + y, node in inside)
            top += panel.height

    def _node(self, panel: Panel, node: int, x: float, y: float, inside: bool) -> Element:
        r, rank = panel.radius, node < self.topology.num_ranks
        name = self.topology.names[node]
        tip = f"{'rank' if rank else 'switch'} {name}"
        kind = " ".join(["node", *["switch"] * (not rank), *["inside"] * inside, *["small"] * (r < 6)])
        shape = circle(x, y, r, kind) if rank else rectangle(x - r * 1.7, y - r * 0.8, r * 3.4, r * 1.6, kind)
        label = _label(name, r * (1.9 if rank else 3.3)) if r >= 7 else ""
        words = (text(x, y + 4, label, "label", "middle"),) if label else ()
        return group(shape, *words, tip=tip)


def course_text(course: Course, top: float, head: bool) -> str:
    """Return the path of a link, with the head of its direction if asked."""
    parts = [
        f"M{number(a[0])} {number(a[1] + top)}Q{number(b[0])} {number(b[1] + top)} {number(c[0])} {number(c[1] + top)}"
        for a, b, c in course.strokes
    ]
    if head:
        parts.append("M" + "L".join(f"{number(x)} {number(y + top)}" for x, y in course.arrow))
    return "".join(parts)


def _share(share: Fraction) -> str:
    """Return a share of the vector in words."""
    exact = str(share)
    return f"{exact} of the vector" if len(exact) < 12 else f"{float(share):.4g} of the vector"


def _label(name: str, room: float) -> str:
    """Return the name of a node if it fits; else its indices, or the last of them; else nothing."""
    found = re.fullmatch(r"(.*)\[([\d, ]+)\]", name)
    shorter = [found[2].replace(" ", ""), found[2].split(", ")[-1]] if found else []
    return next((one for one in (name, *shorter) if width(one, "label") <= room), "")


def key_lines(samples: Sequence[tuple[str, str]], top: float) -> Iterator[Element]:
    """Yield a legend: (class of a line, words), one after the other, in as many lines as they need."""
    x, y = 20.0, top
    for kind, words in samples:
        long = 42 + width(words)
        if x > 20 and x + long > WIDTH - 20:
            x, y = 20.0, y + _LINE
        yield group(line(x, y + 9, x + 30, y + 9, f"link {kind}"), text(x + 36, y + 13, words))
        x += long + 16


def key_height(samples: Sequence[tuple[str, str]]) -> float:
    """Return the height of a legend."""
    x, rows = 20.0, 1
    for _, words in samples:
        long = 42 + width(words)
        if x > 20 and x + long > WIDTH - 20:
            x, rows = 20.0, rows + 1
        x += long + 16
    return rows * _LINE + 8


def load_samples(loads: LinkLoads, shown: Iterable[int]) -> list[tuple[str, str]]:
    """Return the legend of the loads of some links: every level that occurs, and how many links have it."""
    count: dict[int, int] = {}
    for link in shown:
        level = level_of(loads.busy[link], loads.most)
        count[level] = count.get(level, 0) + 1
    found = []
    for level in sorted(count):
        part = f"busy {20 * (level - 1)} to {20 * level} % of the longest" if level else "carries nothing"
        found.append((f"k{level}", f"{part}: {counted(count[level], 'link')}"))
    return found


def network_picture(
    topology: Topology, loads: LinkLoads | None = None, cut: CutParts | None = None, subtitle: str = ""
) -> Picture:
    """Return a network with the loads of its links and the cut of a bound."""
    drawing = NetworkDrawing.of(topology)
    title = title_of(topology)
    if not drawing.panels:
        words = f"{title}: too large to draw; `picture=load` shows which parts carry how much"
        return Picture(WIDTH, 80, title, words, tuple(head(title, words, WIDTH)))
    parts = () if cut is None else cut.parts or ()
    side = {node: place for place, part in enumerate(parts, 1) for node in part}
    ends = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    crossed = [link for link, (a, b) in enumerate(ends) if side.get(a, 0) != side.get(b, 0)] if side else []
    shown = sorted({link for link, _, _ in drawing.courses()})
    samples = [("k2", counted(len(shown), "link"))] if loads is None else load_samples(loads, shown)
    if crossed and cut is not None:
        samples.append(("cut", shorten(f"crosses the cut of the bound: {cut.text}", WIDTH - 90)))
    below = _HEAD + drawing.height
    body = (
        *head(title, subtitle, WIDTH), *drawing.links(loads, crossed), *drawing.nodes(frozenset(side)),
        *key_lines(samples, below),
    )  # fmt: skip
    words = ". ".join([subtitle, *(words for _, words in samples)])
    return Picture(WIDTH, below + key_height(samples), title, words, body, network_style(drawing.fitted))


def title_of(topology: Topology) -> str:
    """Return the name of a network and the number of its ranks, switches and links."""
    switches = f", {counted(topology.num_switches, 'switch')}" if topology.num_switches else ""
    origin = origin_text(topology)
    name = topology.name if origin in ("", topology.name) else f"{topology.name}, {origin}"
    return f"{name}: {counted(topology.num_ranks, 'rank')}{switches}, {counted(topology.num_links, 'link')}"


def origin_text(topology: Topology) -> str:
    """Return the call that built a network if its arguments are numbers, such as ``torus(3, 3, 2)``; else empty."""
    origin = topology.origin
    if origin is None or not all(isinstance(one, int) for one in origin.arguments):
        return ""
    return f"{origin.name}({', '.join(map(str, origin.arguments))})"
