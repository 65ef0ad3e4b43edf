"""Data -> HTML: the text of a page, its styles and its script. All text is escaped; nothing is fetched.

The head has a policy that lets the browser run this script only, by its hash, so no text of an input runs even if it
were not escaped. Each section has its data in an element of its own.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from collc.ir.shown import counted

from .numbers import Json
from .section import Section

__all__ = ["DATA", "Markup", "element", "length", "opening", "page", "script", "style"]

#: the parts of the script, in order
_SCRIPTS = ("base.js", "model.js", "network.js", "schedule.js", "threadblocks.js", "goodput.js", "main.js")
#: the id of the data of a section
DATA = "data-{}"
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_SCRIPT = "The figures need the script of this page. The tables and texts do not."
_MOST_STEPS = 128  # rows of the table of steps


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """Return an element; ``class_`` is ``class``. Children that are no :class:`Markup` are escaped.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    given = "".join(f' {name.strip("_").replace("_", "-")}="{_text(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>{_inside(children)}</{tag}>")


def _inside(children: Sequence[str]) -> str:
    return "".join(child if isinstance(child, Markup) else _text(child) for child in children)


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text), quote=True)


@cache
def script() -> str:
    """Return the script of every page."""
    parts = [files(__package__).joinpath(name).read_text("utf-8") for name in _SCRIPTS]
    return '(()=>{"use strict";\n' + "".join(parts) + "})();\n"


@cache
def style() -> str:
    """Return the styles of every page."""
    return files(__package__).joinpath("page.css").read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def page(sections: Sequence[Section]) -> str:
    """Return the page of one or more collectives; equal data give equal bytes."""
    names = ", ".join(str(one["name"]) for one in sections)
    lines = [
        *opening(f"collc report: {names}", style(), script()),
        element("a", "Skip to the first collective", class_="skip", href="#s0"),
        element("h1", f"collc report: {names}"), element("noscript", element("p", _NO_SCRIPT, class_="note")),
        *_contents(sections), "<main>",
        *(line for number, one in enumerate(sections) for line in _section(number, one)), *_sources(sections),
        "</main>", *(_data(number, one) for number, one in enumerate(sections)),
        f"<script>{script()}</script>", "</body>", "</html>", "",
    ]  # fmt: skip
    return "\n".join(lines)


def opening(title: str, styles: str, program: str = "") -> list[str]:
    """Return the lines of a page up to its body. Its policy allows these styles and this script, and no request."""
    runs = f"script-src {_hash(program)}; " if program else ""
    policy = f"default-src 'none'; {runs}style-src {_hash(styles)}; base-uri 'none'"
    return [
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        element("title", title), f"<style>{styles}</style>", "</head>", "<body>",
    ]  # fmt: skip


def length(section: Section) -> int:
    """Return the characters that a section takes on a page, besides its source."""
    return len(_data(0, section)) + sum(len(line) + 1 for line in _section(0, section))


def _data(number: int, section: Section) -> str:
    """Return the element with the data of a section, without any character that could end it."""
    text = json.dumps(section, separators=(",", ":"), sort_keys=True)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return f'<script type="application/json" id="{DATA.format(number)}">{text}</script>'


def _contents(sections: Sequence[Section]) -> Iterator[str]:
    if len(sections) > 1:
        links = [element("li", element("a", str(one["name"]), href=f"#s{n}")) for n, one in enumerate(sections)]
        yield element("nav", element("ul", *links), aria_label="collectives")


# ---- a section


def _section(number: int, one: Section) -> Iterator[str]:
    head = f"{one['name']}: {one['collective']} by {one['scheduler']}"
    yield f'<section id="s{number}" aria-labelledby="h{number}">'
    yield element("h2", head, id=f"h{number}")
    yield element(
        "dl", element("dt", "Question"), element("dd", str(one["question"])), element("dt", "Answer"),
        element("dd", str(one["answer"]), class_="answer"), element("dt", "Why not faster"),
        element("dd", str(one["why"]), *_cut_link(number, one)), class_="lead",
    )  # fmt: skip
    yield _table(
        "Time by size of the whole vector", ("size", "time", "algbw", "busbw", "bound", "time / bound", "algorithm"),
        one["sizes"], numbers=6,
    )  # fmt: skip
    if one["assumed"]:
        yield element("p", str(one["assumed"]), class_="note")
    for kind, title, text in _FIGURES:
        stage = Markup(f'<div class="stage" data-figure="{kind}" data-section="{number}"></div>')
        caption = element("figcaption", element("h3", title), element("p", text, class_="note"))
        yield element("figure", caption, stage, id=f"{kind}-{number}")
    yield _steps(one)
    yield from _findings(one)
    yield "</section>"


def _cut_link(number: int, one: Section) -> Iterator[str]:
    """Yield the link that draws the cut of the bound in the network, if both are on the page."""
    network = one["network"]
    assert isinstance(network, dict)
    if one["cut"] is not None and network["shape"] != "none":
        yield " "
        yield element("a", "Show the cut.", class_="show-cut", href=f"#network-{number}", data_section=str(number))


_FIGURES = (
    (
        "network", "Network and load of its links",
        "Wide, dark links carry more; a dotted link carries nothing in this step. Circles are ranks, rectangles "
        "switches. The two directions of a link are drawn side by side, each on its right side.",
    ),
    (
        "schedule", "Schedule: ranks by time",
        "Each row is a rank, each column a step. The upper bar shows how long its links send, the striped lower bar "
        "how long they receive; the rest of the step the rank waits. Choose a rank and a step, then a transfer, to "
        "follow its data through the network.",
    ),
    ("threadblocks", "Threadblocks of a rank", "Each row is a threadblock. A dashed border waits for another one."),
    (
        "goodput", "Goodput by size",
        "The whole vector over the time it takes. The dashed red line is the bound: no schedule is above it.",
    ),
)  # fmt: skip


def _table(caption: str, heads: Sequence[str], rows: Json, numbers: int = 0, first: int = 0, short: int = -1) -> Markup:
    """Return a table; columns from ``first`` up to ``numbers`` are aligned right, column ``short`` is not wrapped."""
    kinds = [{"class_": "n"} if first <= at < numbers else {} for at in range(len(heads))]
    if short >= 0:
        kinds[short] = {"class_": "s"}
    head = element("tr", *(element("th", text, scope="col", **kind) for text, kind in zip(heads, kinds, strict=True)))
    body = []
    for row in _rows(rows):
        cells = [_cell(str(text), dict(kind)) for text, kind in zip(row, kinds, strict=True)]
        body.append(element("tr", *cells))
    table = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", table, class_="wide", tabindex="0", role="group", aria_label=caption)


def _cell(text: str, kind: dict[str, str]) -> Markup:
    if text in ("failed", "warning"):
        kind = {**kind, "class_": text}
    return element("td", text, **kind)


def _steps(one: Section) -> Markup:
    """Return the table of steps, folded; equal consecutive steps are one row."""
    flow = one["flow"]
    assert isinstance(flow, dict)
    columns = [_list(flow[name]) for name in ("times", "messages", "largest", "busiest")]
    rows: list[Json] = []
    at = 0
    for times, messages, largest, busiest in zip(*columns, strict=True):
        end = at + _integer(times)
        rows.append([f"{at}" if end == at + 1 else f"{at} to {end - 1}", messages, largest, busiest])
        at = end
    more = len(rows) - _MOST_STEPS
    title = f"{counted(at, 'step')}, {counted(len(rows), 'different one')}"
    cut = [element("p", f"{counted(more, 'more row')} are not listed.", class_="note")] if more > 0 else []
    heads = ("step", "messages", "largest load of a link (of the vector)", "on the link")
    table = _table("Loads step by step", heads, rows[:_MOST_STEPS], numbers=3)
    return element("details", element("summary", f"Table of steps: {title}"), table, *cut)


def _findings(one: Section) -> Iterator[str]:
    found = one["findings"]
    assert isinstance(found, dict)
    yield element("h3", "What the verifier found")
    checks = "Checks of the schedule, the program and the files"
    yield _table(checks, ("", "of", "check", "found"), found["checks"], short=1)
    yield element("h3", "What the target allows")
    yield _table("Limits", ("quantity", "used", "limit", "of"), found["limits"])
    yield element("h3", "What the passes did")
    yield _table("Passes in order", ("pass", "rows after", "reason"), found["passes"], numbers=2, first=1)
    if remarks := _list(found["remarks"]):
        yield element("ul", *(element("li", str(text)) for text in remarks))


# ---- types of JSON


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _rows(value: Json) -> list[list[Json]]:
    return [_list(one) for one in _list(value)]


def _integer(value: Json) -> int:
    assert isinstance(value, int)
    return value


# ---- the source


def _sources(sections: Sequence[Section]) -> Iterator[str]:
    """Yield each file once, with the notes of all collectives."""
    found: dict[tuple[str, str], dict[tuple[int, int], list[str]]] = {}
    for one in sections:
        source = one["source"]
        if isinstance(source, dict):
            notes = found.setdefault((str(source["path"]), str(source["text"])), {})
            for start, end, text in _rows(source["notes"]):
                notes.setdefault((_integer(start), _integer(end)), []).append(str(text))
    if found:
        yield element("h2", "Source")
        yield element("p", _MARKED, class_="note")
    for (path, text), notes in found.items():
        yield element("h3", path)
        yield element("pre", *_marked(text, notes), class_="source")
        lines = [(text.count("\n", 0, start) + 1, _became(each)) for (start, _), each in sorted(notes.items())]
        listed = [element("li", f"line {number}: {became}") for number, became in lines]
        yield element("details", element("summary", "The same as a list"), element("ul", *listed))


_MARKED = "Underlined parts say what they became: point at one, or move to it with Tab."


def _became(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _marked(text: str, notes: dict[tuple[int, int], list[str]]) -> Iterator[str]:
    """Yield the text with a mark for every note; of places that overlap the first."""
    at = 0
    for (start, end), each in sorted(notes.items()):
        if start < at or end > len(text):
            continue
        yield text[at:start]
        became = _became(each)
        yield element("mark", text[start:end], title=became, tabindex="0", aria_description=became)
        at = end
    yield text[at:]
