"""Several files for one loader: the calls that two files share, and how many files a runtime loads.

A runtime chooses the file for a call by collective, ranks, use (in place or not) and size. If two files serve the same
call, msccl takes the first in its list, the executor the first by path, and older RCCL the first in the directory. That
last order can differ between machines: then ranks run different algorithms and hang.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd, lcm

import attrs

from collc.ir.verify import Check

from .findings import Finding, as_check
from .limits import check_limits
from .model import KINDS, Algorithm
from .profiles import PROFILES, Profile
from .windows import size_limit, size_unit, smallest_call

__all__ = ["Member", "accepting_runtimes", "check_together", "served_sizes", "unserved_calls", "uses"]


@attrs.frozen
class Member:
    """One of several files: its path and its algorithm."""

    path: str
    algorithm: Algorithm

    @property
    def title(self) -> str:
        """The path in backquotes, for messages."""
        return f"`{self.path}`"


def accepting_runtimes(members: Sequence[Member]) -> list[Profile]:
    """Return the runtimes that accept every single one of the files."""
    return [p for p in PROFILES.values() if not any(check_limits(m.algorithm, p) for m in members)]


def check_together(members: Sequence[Member], runtime: str | None = None) -> list[Check]:
    """Return the checks of files that a runtime loads together.

    The checks are for ``runtime``, or else for the runtimes that accept every file and load that many. If none loads
    that many, they are for the runtimes that accept every file; if none accepts every file, for the first runtime.
    """
    accepting = accepting_runtimes(members)
    sufficient = [profile for profile in accepting if len(members) <= profile.max_algorithms]
    profiles = [PROFILES[runtime]] if runtime else sufficient or accepting or [next(iter(PROFILES.values()))]
    found = [*_overlaps(members, profiles), *_names(members, profiles if runtime else ()), *_numbers(members, profiles)]
    names = ", ".join(p.name for p in profiles)
    return [
        as_check("windows", found, f"no two of the {len(members)} files serve the same call ({names})"),
        as_check("names", found, "files and algorithms have different names"),
        as_check("number", found, f"the runtime loads all {len(members)} files ({names})"),
    ]


# ---- sizes


def _overlaps(members: Sequence[Member], profiles: Sequence[Profile]) -> Iterator[Finding]:
    for one, other in combinations(members, 2):
        for profile in profiles:
            size = common_call(one.algorithm, other.algorithm, profile)
            if size is not None:
                what = f"{one.title} and {other.title} both serve {_described(one, other, profile)} of {size} bytes"
                yield Finding("windows", "C0650", f"{what}: {_resolution(profile, one, other)}")
                break


def common_call(one: Algorithm, other: Algorithm, profile: Profile) -> int | None:
    """Return the smallest call (bytes) for which a runtime could use both algorithms; None if there is none."""
    same_kind = KINDS.get(one.coll, one.coll) == KINDS.get(other.coll, other.coll)
    if not same_kind or one.ngpus != other.ngpus or not uses(one, profile) & uses(other, profile):
        return None
    unit = lcm(size_unit(one), size_unit(other))
    low = max(smallest_call(one), smallest_call(other))
    size = -(-low // unit) * unit
    ends = [end for end in (size_limit(one, profile), size_limit(other, profile)) if end is not None]
    return size if size <= min(ends, default=size) else None


def uses(algorithm: Algorithm, profile: Profile) -> set[bool]:
    """Return the uses of a file by a runtime: in place (True), out of place (False)."""
    if not profile.reads_outofplace:
        return {bool(algorithm.inplace)}
    flags = (True, algorithm.inplace), (False, algorithm.outofplace)
    return {mode for mode, flag in flags if flag}


def _described(one: Member, other: Member, profile: Profile) -> str:
    both = uses(one.algorithm, profile) & uses(other.algorithm, profile)
    where = "" if len(both) > 1 else " in place" if True in both else " out of place"
    return f"{KINDS.get(one.algorithm.coll, one.algorithm.coll)} on {one.algorithm.ngpus} ranks{where}, in calls"


def _resolution(profile: Profile, one: Member, other: Member) -> str:
    if profile.name == "msccl":
        return f"{profile.title} takes the first in the list"
    if profile.name == "executor":
        first = min(one.path, other.path)
        return f"{profile.title} takes the first by path, `{first}`"
    return f"{profile.title} takes either; older versions take the first in the directory, which can differ by machine"


def served_sizes(algorithm: Algorithm, profile: Profile) -> tuple[int, int | None]:
    """Return the smallest and the largest call (bytes, inclusive) for which a runtime uses a file; None: no limit."""
    return algorithm.min_bytes or 0, size_limit(algorithm, profile)


def unserved_calls(members: Sequence[Member], profile: Profile) -> list[str]:
    """Say which calls no file serves although some file serves similar calls: of another size or use.

    The runtime executes those calls with its own algorithm, perhaps against the user's intention.
    """
    groups: dict[tuple[str, int], list[Algorithm]] = {}
    for member in members:
        algorithm = member.algorithm
        groups.setdefault((KINDS.get(algorithm.coll, algorithm.coll), algorithm.ngpus), []).append(algorithm)
    found = []
    for (kind, ranks), algorithms in groups.items():
        by_use = {mode: [a for a in algorithms if mode in uses(a, profile)] for mode in (True, False)}
        missing = {mode: _sizes_between(chosen, profile) if chosen else [""] for mode, chosen in by_use.items()}
        both = [sizes for sizes in missing[True] if sizes in missing[False]]
        texts = [*both]
        for mode, where in ((True, " in place"), (False, " out of place")):
            texts += [where + sizes for sizes in missing[mode] if sizes not in both]
        found += [f"no file serves {kind} on {ranks} ranks{text}" for text in texts]
    return found


def _sizes_between(algorithms: Sequence[Algorithm], profile: Profile) -> list[str]:
    """Return the sizes between those of the algorithms that none of them serves."""
    unit = gcd(*(size_unit(algorithm) for algorithm in algorithms))
    windows = sorted((served_sizes(algorithm, profile) for algorithm in algorithms), key=lambda window: window[0])
    found: list[str] = []
    reached: int | None = windows[0][0] - 1
    for low, high in windows:
        if reached is None:
            break
        if (low - 1) // unit > reached // unit:
            found.append(f" of {reached + 1} to {low - 1} bytes")
        reached = None if high is None else max(reached, high)
    return found


# ---- names and numbers


def _names(members: Sequence[Member], profiles: Sequence[Profile]) -> Iterator[Finding]:
    """Find files that cannot be in one folder, and algorithms with the same name, unless the runtime reads no names."""
    named = not profiles or any("name" in p.required for p in profiles)
    for one, other in combinations(members, 2):
        if os.path.realpath(one.path) == os.path.realpath(other.path):
            yield Finding("names", "C0651", f"{one.title} and {other.title} are the same file")
        elif os.path.basename(one.path) == os.path.basename(other.path):
            found = f"{one.title} and {other.title} have the same name, so a folder can hold only one of them"
            yield Finding("names", "C0651", found)
        elif named and one.algorithm.name is not None and one.algorithm.name == other.algorithm.name:
            found = f"{one.title} and {other.title} both name their algorithm `{one.algorithm.name}`"
            yield Finding("names", "C0651", f"{found}: logs cannot distinguish them")


def _numbers(members: Sequence[Member], profiles: Sequence[Profile]) -> Iterator[Finding]:
    for profile in profiles:
        if len(members) > profile.max_algorithms:
            last = members[profile.max_algorithms]
            what = f"{profile.title} loads {profile.max_algorithms} files, found {len(members)}"
            yield Finding("number", "C0652", f"{what}; it ignores the files from {last.title} on")
