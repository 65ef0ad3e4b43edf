"""Reading a page back: its structure, its data, and what they must agree with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser

import attrs
import numpy as np

from collc.ir.account import Account
from collc.ir.arrays import Columns
from collc.ir.costs.cost import link_loads
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Routes, Schedule
from collc.ir.shown import counted
from collc.ir.validate import flaws
from collc.ir.verify import Check, verify

from ..base import first_difference
from .document import DATA, page, script, style
from .section import Section
from .transfers import COLUMNS

__all__ = ["checks", "sections_of"]

#: elements without an end
_EMPTY = ("meta",)
#: attributes that a page may have
_ATTRIBUTES = frozenset({
    "lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "title", "tabindex", "role", "scope",
    "type", "data-figure", "data-section",
})  # fmt: skip


class _Reader(HTMLParser):
    """Reads a page: its data by the id of their elements, its script and style, and what must not be in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, str] = {}
        self.code: dict[str, str] = {}
        self.flaws: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note an element, and attributes that could run or fetch anything."""
        given = dict(attributes)
        for name, value in attributes:
            if name not in _ATTRIBUTES and not name.startswith("aria-"):
                self.flaws.append(f"attribute `{name}` of `{tag}`")
            if name == "href" and not (value or "").startswith("#"):
                self.flaws.append(f"link to `{value}`")
        if tag not in _EMPTY:
            self.open.append((tag, given))

    def handle_endtag(self, tag: str) -> None:
        """Close the element that is open."""
        if not self.open or self.open[-1][0] != tag:
            self.flaws.append(f"`{tag}` ends where it is not open")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Take the text of scripts and styles."""
        tag, given = self.open[-1] if self.open else ("", {})
        if tag == "script" and given.get("type") == "application/json":
            key = str(given.get("id"))
            self.data[key] = self.data.get(key, "") + data
        elif tag in ("script", "style"):
            self.code[tag] = self.code.get(tag, "") + data


def sections_of(text: str) -> list[Section]:
    """Return the data of a page; raise ValueError for a text that is not a page."""
    return _sections(_read(text))


def _read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader


def _sections(reader: _Reader) -> list[Section]:
    found: list[Section] = []
    for number in range(len(reader.data)):
        key = DATA.format(number)
        if key not in reader.data:
            raise ValueError(f"there is no element `{key}`")
        one = json.loads(reader.data[key])
        if not isinstance(one, dict):
            raise ValueError(f"`{key}` is no object")
        found.append(one)
    if not found:
        raise ValueError("the page has no data")
    return found


def checks(text: str, sections: Sequence[Section], account: Account | None) -> Iterator[Check]:
    """Yield the checks of a page against the data that it is to have, and of its transfers against the ``account``."""
    reader = _read(text)
    flaws = reader.flaws + [f"`{tag}` does not end" for tag, _ in reader.open]
    yield Check("structure", not flaws, flaws[0] if flaws else "every element ends; no link leads out of the page")
    same = reader.code == {"script": script(), "style": style()}
    yield Check("script", same, "the script and the styles are collc's" if same else "another script or style")
    try:
        found = _sections(reader)
    except ValueError as problem:
        yield Check("reading", False, str(problem))
        return
    wrong = _difference(found, list(sections))
    yield Check("data", not wrong, wrong or f"the data of {counted(len(found), 'collective')} are equal")
    expected = page(sections)
    wrong = "" if text == expected else first_difference(text, expected)
    yield Check("as written", not wrong, wrong or "byte for byte the page of these data")
    if account is not None and len(found) == 1:
        yield from _judged(found[0], account)


def _difference(found: object, due: object, path: str = "") -> str:
    """Return the first place where two values of JSON differ; empty if they are equal."""
    if isinstance(found, dict) and isinstance(due, dict) and found.keys() == due.keys():
        return next(filter(None, (_difference(found[key], due[key], f"{path}.{key}") for key in sorted(due))), "")
    if isinstance(found, list) and isinstance(due, list) and len(found) == len(due):
        if found == due:
            return ""
        pairs = enumerate(zip(found, due, strict=True))
        return next(filter(None, (_difference(a, b, f"{path}[{n}]") for n, (a, b) in pairs)), "")
    same = type(found) is type(due) and found == due
    return "" if same else f"{path or 'the data'} differ: found {str(found)[:60]}, needed {str(due)[:60]}"


def _judged(section: Section, account: Account) -> Iterator[Check]:
    """Yield checks of the pictures' data by other means than the writer's."""
    transfers = section["transfers"]
    if not isinstance(transfers, dict):
        return
    try:
        steps = _schedule(transfers, account)
        if not transfers["all"]:  # some transfers do not perform the collective
            for flaw in flaws(steps):
                yield Check("transfers", False, f"the columns are no schedule: {flaw}")
            return
        report = verify(steps)
        failed = "; ".join(f"{check.name}: {check.detail}" for check in report.failed)
        yield Check("execution", report.ok, failed or f"the {counted(len(steps), 'transfer')} perform the collective")
        if not steps.in_network:
            yield _loads(section, steps)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, CollcError) as problem:
        yield Check("transfers", False, f"the columns are no schedule: {problem}")


def _schedule(transfers: Mapping[str, object], account: Account) -> Schedule:
    """Return the transfers of a page as a schedule on the account's network."""
    level = account.shown.schedule
    columns: Columns = {name: np.array(transfers[name]) for name in COLUMNS}
    parts = transfers["parts"]
    assert isinstance(parts, int)
    routes = Routes(np.array(transfers["start"]), np.array(transfers["links"]))
    found = Schedule(level.topology, level.collective, parts, routes=routes, **columns)
    in_network = getattr(level, "in_network", False)
    return attrs.evolve(found, in_network=in_network) if in_network else found


def _loads(section: Section, steps: Schedule) -> Check:
    """Compare the loads of all links in all steps with the sum of the transfers."""
    flow = section["flow"]
    assert isinstance(flow, dict)
    if "loads" not in flow or not flow["each"] or flow["whole"] == 1:
        return Check("loads", True, "the loads are not listed step by step")
    times, rows, link = (np.array(flow[name]) for name in ("times", "loads", "link"))
    table = np.repeat(rows[link], times, axis=1) if len(times) else np.zeros((len(link), 0), dtype=np.int64)
    for number, (a, b) in enumerate(zip(steps.step_start[:-1].tolist(), steps.step_start[1:].tolist(), strict=True)):
        load = link_loads(steps.topology, steps.routes, steps.route[a:b], steps.amount[a:b])
        if number >= table.shape[1] or (table[:, number] * steps.vector != load * flow["whole"]).any():
            return Check("loads", False, f"links carry other data in step {number} than the transfers put there")
    return Check("loads", True, f"the transfers of {counted(steps.num_steps, 'step')} put these loads on the links")
