"""Stages -> one HTML page: what every pass changed, side by side. It has no script and fetches nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby

from collc.backends.report.document import Markup, element, opening
from collc.ir.shown import counted, listed

from .changes import Change, changes
from .rows import Row, rows
from .stages import Stage

__all__ = ["MOST_ROWS", "page"]

#: rows of a table
MOST_ROWS = 3000
#: equal rows that are shown beside a change
_NEAR = 3
#: the sign of a kind of change, and its words
_KINDS = {"same": ("", ""), "changed": ("~", "changed"), "removed": ("\u2212", "removed"), "added": ("+", "added")}


@cache
def _style() -> str:
    return files(__package__).joinpath("page.css").read_text("utf-8")


def page(title: str, collectives: Mapping[str, Sequence[Stage]], ranks: Collection[int] | None) -> str:
    """Return the page of the stages of collectives; equal stages give equal bytes. ``ranks`` are those of `rows`."""
    title = f"collc explore: {title}"
    head = [
        *opening(title, _style()), element("h1", title),
        element("p", "Each pass below has the rows of the IR before it on the left, and after it on the right. "
                     "~ is a changed row, \u2212 a removed one, + an added one.", class_="note"),
    ]  # fmt: skip
    if ranks is not None:
        shown = listed([f"rank {rank}" for rank in sorted(ranks)])
        head.append(element("p", f"Only the rows of {shown} are here: --ranks names others.", class_="note"))
    body = [line for number, (name, stages) in enumerate(collectives.items()) for line in
            _collective(number, name, stages, ranks)]  # fmt: skip
    return "\n".join([*head, "<main>", *body, "</main>", "</body>", "</html>", ""])


def _collective(number: int, name: str, stages: Sequence[Stage], ranks: Collection[int] | None) -> Iterator[str]:
    yield f'<section aria-labelledby="c{number}">'
    yield element("h2", name, id=f"c{number}")
    parts: list[tuple[str, str, str]] = []
    level, before = "", list[Row]()
    for place, stage in enumerate(stages):
        known, last = level, before
        level, before = rows(stage.ir, ranks)
        found = changes(last, before) if known == level else None
        identity = f"c{number}p{place}"
        parts.append((identity, stage.step, _part(identity, stage, known, level, before, found)))
    links = [element("li", element("a", step, href=f"#{identity}")) for identity, step, _ in parts]
    yield element("nav", element("ol", *links), aria_label=f"passes of {name}")
    yield from (text for _, _, text in parts)
    yield "</section>"


def _part(
    identity: str, stage: Stage, known: str, level: str, now: Sequence[Row], found: Sequence[Change] | None
) -> str:  # fmt: skip
    """Return the part of one pass, which is folded if the pass changed nothing."""
    if found is None:
        summary_text = f"{level}, {counted(len(now), 'row')}{f' (before: {known})' if known else ''}"
        inside = [_listing(now)]
        opened = not known
    else:
        numbers = {kind: sum(one.kind == kind for one in found) for kind in ("changed", "removed", "added")}
        counts = ", ".join(f"{number} {_KINDS[kind][1]}" for kind, number in numbers.items() if number)
        summary_text = f"{counts or 'no row changed'}, of {counted(len(now), 'row')}"
        opened = bool(counts)
        inside = [_table(stage.step, found)] if counts else []
    remarks = [element("p", text, class_="note") for text in stage.remarks]
    summary = element("summary", element("h3", stage.step), element("span", summary_text))
    return element("details", summary, *remarks, *inside, id=identity, **({"open": "open"} if opened else {}))


def _listing(now: Sequence[Row]) -> Markup:
    more = len(now) - MOST_ROWS
    text = "\n".join(row.text for row in now[:MOST_ROWS])
    cut = [_cut(more)] if more > 0 else []
    return element("div", element("pre", text, tabindex="0"), *cut)


def _table(step: str, found: Sequence[Change]) -> Markup:
    lines = list(_folded(found))
    cut = [_cut(len(lines) - MOST_ROWS)] if len(lines) > MOST_ROWS else []
    heads = [element("th", text, scope="col") for text in ("", "row", "before", "row", "after")]
    body = element("tbody", *lines[:MOST_ROWS])
    table = element("table", element("caption", f"Rows that {step} changed, and those around them"),
                    element("thead", element("tr", *heads)), body)  # fmt: skip
    return element("div", table, *cut, class_="wide", tabindex="0", role="group", aria_label=f"changes of {step}")


def _cut(more: int) -> Markup:
    return element("p", f"{counted(more, 'more row')} are not shown: --ranks chooses ranks.", class_="note")


def _folded(found: Sequence[Change]) -> Iterator[Markup]:
    """Yield the rows of a table: of a run of equal rows only those beside a change."""
    groups = [(same, list(each)) for same, each in groupby(found, lambda one: one.kind == "same")]
    for place, (same, each) in enumerate(groups):
        first = _NEAR if same and place else 0
        last = _NEAR if same and place < len(groups) - 1 else 0
        hidden = len(each) - first - last
        if not same or hidden <= 1:
            yield from map(_line, each)
            continue
        yield from map(_line, each[:first])
        yield element("tr", element("td", f"{hidden} equal rows", colspan="5"), class_="gap")
        yield from map(_line, each[len(each) - last :])


def _line(one: Change) -> Markup:
    sign, word = _KINDS[one.kind]
    cells = [element("td", sign, **({"aria_label": word} if word else {}))]
    for side in (one.before, one.after):
        number, text = side or ("", "")
        cells += [element("td", str(number), class_="n"), element("td", element("code", text))]
    return element("tr", *cells, class_=one.kind)
