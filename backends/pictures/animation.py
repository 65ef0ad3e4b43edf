"""A simulation as an animated SVG: step after step the links that carry data, as wide and as dark as they are loaded.

Animation is CSS, not a script or SMIL: a picture in a page may run no script, CSS stops under the pointer and the focus
of the keyboard, and it follows the wish for reduced motion. Then the picture has the loads of all steps together. The
description for screen readers lists the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from collc.ir.quantities import show_size, show_time
from collc.ir.shown import counted

from ..simulator import Simulation
from .charts import WIDTH, head
from .loads import link_loads_of
from .networks import (
    LEVELS,
    LinkLoads,
    NetworkDrawing,
    course_text,
    key_height,
    key_lines,
    level_of,
    network_style,
    title_of,
)  # fmt: skip
from .svg import Element, Picture, element, line, number, rectangle, text

__all__ = ["MOST_FRAMES", "animated"]

#: different steps that are shown; later ones are left out
MOST_FRAMES = 120
_SECONDS, _LEAST, _MOST = 20.0, 0.4, 4.0  # of all frames; of one frame
_HEAD = 54.0


def animated(simulation: Simulation, size: int) -> Picture:
    """Return the steps of a simulation for M of ``size`` bytes, one after the other; equal steps are one frame.

    Raises ValueError if the network is too large to draw.
    """
    drawing = NetworkDrawing.of(simulation.topology)
    if not drawing.panels:
        raise ValueError("the network is too large to draw")
    frames = len(simulation.steps[:MOST_FRAMES])
    ends = _ends(simulation, size, frames)
    words = list(_words(simulation, size, frames))
    title = f"{simulation.traffic.collective.name} on {title_of(simulation.topology)}"
    left = len(simulation.steps) - frames
    subtitle = (
        f"{show_size(size)} in {show_time(float(simulation.time(size)))}, {counted(simulation.num_steps, 'step')}"
    )
    if left:
        subtitle += f"; the first {frames} different ones are shown"
    below = _HEAD + drawing.height
    whole = link_loads_of(simulation)
    still = element("g", *drawing.links(whole), class_="still", aria_hidden="true")
    shown = [_frame(drawing, simulation, number, whole) for number in range(frames)]
    words_of_still = "Motion is reduced: these are the loads of all steps together."
    captions = [
        text(20, below + 16, words_of_still, "label still"),
        *(text(20, below + 16, one, f"label f{number}") for number, one in enumerate(words)),
    ]
    bar = (line(20, below + 30, WIDTH - 20, below + 30, "grid"), rectangle(20, below + 27, WIDTH - 40, 6, "clock"))
    samples = [(f"k{level}", f"{20 * level} % of the longest time of a step") for level in (1, 3, LEVELS)]
    body = (
        *head(title, f"{subtitle}. Hold the pointer over the picture, or click it, to pause.", WIDTH), still, *shown,
        *drawing.nodes(), *captions, *bar, *key_lines(samples, below + 38),
    )  # fmt: skip
    description = f"{subtitle}. {' '.join(words[:40])}"
    style = network_style(drawing.fitted) + _style(ends)
    return Picture(WIDTH, below + 38 + key_height(samples), title, description, body, style, focus=True)


def _ends(simulation: Simulation, size: int, frames: int) -> list[float]:
    """Return when each frame ends, in seconds of the animation: longer steps last longer, none is too short."""
    seconds = simulation.seconds_per_unit * size
    times = [float(step.times * step.time(seconds)) for step in simulation.steps[:frames]]
    longest = max(times, default=0.0) or 1.0
    shown = [max(_LEAST, min(_MOST, _MOST * time / longest)) for time in times]
    scale = min(1.0, max(_SECONDS, _LEAST * frames) / max(sum(shown), _LEAST))
    found, now = [], 0.0
    for one in shown:
        now += max(one * scale, _LEAST / 2)
        found.append(round(now, 3))
    return found


def _words(simulation: Simulation, size: int, frames: int) -> Iterator[str]:
    """Yield for every frame its steps, their time, and what they carry."""
    seconds, first, now = simulation.seconds_per_unit * size, 0, Fraction(0)
    for step in simulation.steps[:frames]:
        last, end = first + step.times - 1, now + step.times * step.time(seconds)
        name = f"step {first}" if last == first else f"steps {first} to {last}, all alike"
        yield (
            f"{name}, from {show_time(float(now))} to {show_time(float(end))}: {counted(step.messages, 'message')}, "
            f"at most {step.load} of the vector on a link."
        )
        first, now = last + 1, end


def _frame(drawing: NetworkDrawing, simulation: Simulation, number: int, whole: LinkLoads) -> Element:
    """Return the links of a step by level; dashes that move show the direction."""
    load, denominator = simulation.loads(number)
    loads = LinkLoads.of(simulation.topology, load, denominator)
    most = max(step.busiest for step in simulation.steps)
    texts: list[list[str]] = [[] for _ in range(LEVELS + 1)]
    links: list[list[str]] = [[] for _ in range(LEVELS + 1)]
    for link, top, course in drawing.courses():
        level = level_of(loads.busy[link], most)
        texts[level].append(course_text(course, top, False))
        links[level].append(str(link))
    paths = [
        element(
            "path", class_=f"link k{level}{' go' * bool(level)}", d="".join(texts[level]),
            data_links=" ".join(links[level]),
        )
        for level in range(LEVELS + 1)
        if texts[level]
    ]  # fmt: skip
    return element("g", *paths, class_=f"frame f{number}", data_step=str(number))


def _style(ends: Sequence[float]) -> str:
    """Return the rules of the animation: a frame is visible from the end of the one before to its own end."""
    total = ends[-1] if ends else 1.0
    rules = [
        ".frame,.clock,text[class*=' f']{visibility:hidden}.clock{fill:#888}"
        ".go{stroke-dasharray:7 4;animation:go .8s linear infinite}@keyframes go{to{stroke-dashoffset:-11}}",
    ]
    shown, start = [], 0.0
    for frame, end in enumerate(ends):
        a, b = (f"{100 * one / total:.3f}%" for one in (start, end))
        before = "" if start == 0 else f"0%,{a}{{visibility:hidden}}"
        after = "" if end == total else f"{b},100%{{visibility:hidden}}"
        last = f"{100 * end / total - 0.001:.3f}%" if end != total else "100%"
        first = "0%" if start == 0 else f"{100 * start / total + 0.001:.3f}%"
        rules.append(f"@keyframes s{frame}{{{before}{first},{last}{{visibility:visible}}{after}}}")
        shown.append(f".f{frame}{{animation:s{frame} {number(total)}s step-end infinite}}")
        start = end
    moving = (
        ".still{visibility:hidden}" + "".join(shown)
        + f".clock{{visibility:visible;transform-origin:20px 0;animation:clock {number(total)}s linear infinite}}"
        "@keyframes clock{from{transform:scaleX(0)}to{transform:scaleX(1)}}"
        ".picture:hover *,.picture:focus *{animation-play-state:paused}"
    )  # fmt: skip
    return "".join(rules) + f"@media (prefers-reduced-motion:no-preference){{{moving}}}"
