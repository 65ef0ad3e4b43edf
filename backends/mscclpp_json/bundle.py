"""Several plans of one folder: the calls that two of them serve, their modes, and their names.

The runtime takes a plan by collective, ranks, mode and size; if two match, the order of a hash table decides (notes,
5.13). It remembers the mode of the first plan of a process, and keeps channels by the plan's name (5.13, 5.18).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from collc.ir.shown import clipped
from collc.ir.verify import Check

from ..msccl_xml.findings import Finding, as_check
from .model import Plan

__all__ = ["FIXED_NAMES", "Member", "check_together", "fixed_name"]

#: files that C programs load from `$MSCCLPP_CACHE_DIR/default` -> the ranks of their calls (notes, 5.14)
FIXED_NAMES = {
    "allreduce_2nodes_1K_64K.json": 16, "allreduce_2nodes_128K_2M.json": 16, "allreduce_4nodes_1K_64K.json": 32,
    "allreduce_4nodes_128K_2M.json": 32,
}  # fmt: skip


class Member(NamedTuple):
    """One of several files: its path and its plan."""

    path: str
    plan: Plan

    @property
    def title(self) -> str:
        """The path in backquotes, for messages."""
        return f"`{self.path}`"


def check_together(members: Sequence[Member]) -> list[Check]:
    """Return the checks of plans that one process loads."""
    found = [*_windows(members), *_modes(members), *_names(members)]
    return [
        as_check("windows", found, f"no two of the {len(members)} plans serve the same call"),
        as_check("modes", found, "all plans are for calls in place, or all out of place"),
        as_check("names", found, "plans and files have different names"),
    ]


def fixed_name(path: str, plan: Plan) -> str:
    """Return why a plan should not have its file's name; "" if it may."""
    ranks = FIXED_NAMES.get(os.path.basename(path))
    if ranks is None:
        return ""
    serves = f"C programs load `{os.path.basename(path)}` for allreduce calls of {ranks} ranks"
    if plan.collective != "allreduce" or len(plan.gpus) != ranks:
        return f"{serves}, but the plan is {clipped(plan.collective)} of {len(plan.gpus)} ranks"
    return f"{serves}, whatever sizes the plan serves; other names are registered from Python"


def _windows(members: Sequence[Member]) -> Iterator[Finding]:
    for one, other in combinations(members, 2):
        size = _common_call(one.plan, other.plan)
        if size is not None:
            kind, ranks = clipped(one.plan.collective), len(one.plan.gpus)
            what = f"{one.title} and {other.title} are both for {kind} of {ranks} ranks in calls of {size} bytes"
            yield Finding("windows", "C0688", f"{what}: the runtime takes either")


def _common_call(one: Plan, other: Plan) -> int | None:
    """Return the smallest call inside both windows that one of the plans serves; None if there is none.

    The runtime chooses by size alone: if it takes the plan whose chunks do not divide the size, the call fails.
    """
    if one.collective != other.collective or len(one.gpus) != len(other.gpus) or one.inplace != other.inplace:
        return None
    low = max(one.min_bytes, other.min_bytes, 1)
    size = min(-(-low // unit) * unit for unit in (_unit(one), _unit(other)))
    return size if size <= min(one.max_bytes, other.max_bytes) else None


def _unit(plan: Plan) -> int:
    """Return the bytes of which calls are multiples, as the size of a call counts them."""
    first = plan.gpus[0]
    count = first.output if plan.collective == "allgather" else first.input
    return max(count, 1) * max(plan.alignment, 1)


def _modes(members: Sequence[Member]) -> Iterator[Finding]:
    first = members[0]
    for other in members[1:]:
        if other.plan.inplace != first.plan.inplace:
            modes = [("in place" if one.plan.inplace else "out of place", one.title) for one in (first, other)]
            found = f"{modes[0][1]} is for calls {modes[0][0]}, {modes[1][1]} {modes[1][0]}"
            yield Finding("modes", "C0689", f"{found}: the runtime uses the mode of the first plan for all")


def _names(members: Sequence[Member]) -> Iterator[Finding]:
    for one, other in combinations(members, 2):
        if os.path.realpath(one.path) == os.path.realpath(other.path):
            yield Finding("names", "C0663", f"{one.title} and {other.title} are the same file")
        elif one.plan.name == other.plan.name:
            found = f"{one.title} and {other.title} both have the name `{clipped(one.plan.name)}`"
            yield Finding("names", "C0663", f"{found}: on the same buffers they would share channels")
