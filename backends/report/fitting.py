"""Pages below the limit of their size: details of the last collectives are left out first."""

from __future__ import annotations

from collections.abc import Sequence

from .document import length
from .numbers import Json
from .section import Section

__all__ = ["MOST_CHARACTERS", "fitted"]

#: the most characters of the sections of a page; with styles, script and sources it is below 2 MB
MOST_CHARACTERS = 1_700_000


def fitted(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with as many details as a page holds; where some are left out, ``absent`` says so.

    A section always keeps its three lines and its table of sizes.
    """
    found = list(sections)
    sizes = [length(one) for one in found]
    for shorter in (_without_details, _undrawn, _brief):
        for number in reversed(range(len(found))):
            if sum(sizes) <= MOST_CHARACTERS:
                return found
            left = shorter(found[number])
            if left is not found[number]:
                why = f"this page has {len(found)} collectives; a page of this one alone has more"
                found[number] = {**left, "absent": why}
                sizes[number] = length(found[number])
    return found


def _without_details(section: Section) -> Section:
    """Return a section without transfers and instructions."""
    if section["transfers"] is None and section["program"] is None:
        return section
    return {**section, "transfers": None, "program": None}


def _undrawn(section: Section) -> Section:
    """Return a section without the links of its network and their loads."""
    network, flow = section["network"], section["flow"]
    assert isinstance(network, dict) and isinstance(flow, dict)
    if network["shape"] == "none":
        return section
    kept = ("name", "ranks", "switches", "names", "classes", "links")
    steps = ("times", "messages", "largest", "busiest", "pairs")
    network = {**{name: network[name] for name in kept}, "shape": "none"}
    return {**section, "network": network, "flow": {name: flow[name] for name in steps}}


def _brief(section: Section) -> Section:
    """Return a section with the number of its checks instead of all, and the curves that were chosen."""
    findings, goodput, flow = section["findings"], section["goodput"], section["flow"]
    assert isinstance(findings, dict) and isinstance(goodput, dict) and isinstance(flow, dict)
    checks, curves = findings["checks"], goodput["curves"]
    assert isinstance(checks, list) and isinstance(curves, list)
    failed = [row for row in checks if isinstance(row, list) and row[0] != "passed"]
    short: list[Json] = [*failed, ["passed", "all", f"{len(checks) - len(failed)} checks", ""]]
    chosen: list[Json] = [one for one in curves if isinstance(one, dict) and one["chosen"]]
    return {
        **section, "findings": {"checks": short, "limits": [], "passes": [], "remarks": []},
        "goodput": {**goodput, "curves": chosen, "crossings": [], "skipped": []},
        "flow": {name: [] for name in flow}, "cut": None,
    }  # fmt: skip
