"""Several files for one loader: which calls two of them are both for, and how many a runtime loads.

A runtime picks the file for a call by collective, ranks, use (in place or not) and size. Where two files are for the
same call, the first in some order is taken: the list's for msccl, the paths' for the executor, and for older RCCL that
of the directory, which may differ from machine to machine, so that ranks run different algorithms and hang.
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

__all__ = ["Member", "calls", "check_together", "gaps", "takers", "uses"]


@attrs.frozen
class Member:
    """One file of several: where it is and what it holds."""

    path: str
    algorithm: Algorithm

    @property
    def title(self) -> str:
        return f"`{self.path}`"


def takers(members: Sequence[Member]) -> list[Profile]:
    """Return the runtimes that take every one of the files by itself."""
    return [p for p in PROFILES.values() if not any(check_limits(m.algorithm, p) for m in members)]


def check_together(members: Sequence[Member], runtime: str | None = None) -> list[Check]:
    """Return what holds of files that are to be loaded together, for one runtime or for those that take all of them.

    Where none is named, one runtime that loads so many is enough. Where none takes all, files are held against each
    other by the rules of the first.
    """
    able = takers(members)
    enough = [profile for profile in able if len(members) <= profile.max_algorithms]
    profiles = [PROFILES[runtime]] if runtime else enough or able or [next(iter(PROFILES.values()))]
    found = [*_overlaps(members, profiles), *_names(members, profiles if runtime else ()), *_numbers(members, profiles)]
    names = ", ".join(p.name for p in profiles)
    return [
        as_check("windows", found, f"no call is for two of the {len(members)} files ({names})"),
        as_check("names", found, "files and algorithms have different names"),
        as_check("number", found, f"{len(members)} files are loaded ({names})"),
    ]


# ---- sizes


def _overlaps(members: Sequence[Member], profiles: Sequence[Profile]) -> Iterator[Finding]:
    for one, other in combinations(members, 2):
        for profile in profiles:
            size = common_call(one.algorithm, other.algorithm, profile)
            if size is not None:
                what = f"{one.title} and {other.title} are both for {_described(one, other, profile)} of {size} bytes"
                yield Finding("windows", "C0650", f"{what}: {_resolution(profile, one, other)}")
                break


def common_call(one: Algorithm, other: Algorithm, profile: Profile) -> int | None:
    """Return the smallest call, in bytes, that a runtime would use both algorithms for; nothing where there is none."""
    alike = KINDS.get(one.coll, one.coll) == KINDS.get(other.coll, other.coll) and one.ngpus == other.ngpus
    if not alike or not uses(one, profile) & uses(other, profile):
        return None
    unit = lcm(size_unit(one), size_unit(other))
    low = max(smallest_call(one), smallest_call(other))
    size = -(-low // unit) * unit
    ends = [end for end in (size_limit(one, profile), size_limit(other, profile)) if end is not None]
    return size if size <= min(ends, default=size) else None


def uses(algorithm: Algorithm, profile: Profile) -> set[bool]:
    """Return the uses, in place (True) and out of place (False), for which a runtime would take a file."""
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
    return f"{profile.title} takes either: older ones the first in the directory, on every machine another perhaps"


def calls(algorithm: Algorithm, profile: Profile) -> tuple[int, int | None]:
    """Return the smallest and the largest call, in bytes, both included, that a runtime uses a file for.

    Nothing stands for no limit.
    """
    return algorithm.min_bytes or 0, size_limit(algorithm, profile)


def gaps(members: Sequence[Member], profile: Profile) -> list[str]:
    """Say for which calls there is no file although there are some for calls like them, a little smaller, larger or of
    the other use: a runtime makes them its own way, which nobody may have meant."""
    alike: dict[tuple[str, int], list[Algorithm]] = {}
    for member in members:
        algorithm = member.algorithm
        alike.setdefault((KINDS.get(algorithm.coll, algorithm.coll), algorithm.ngpus), []).append(algorithm)
    found = []
    for (kind, ranks), algorithms in alike.items():
        within = {mode: [a for a in algorithms if mode in uses(a, profile)] for mode in (True, False)}
        lacks = {mode: _between(chosen, profile) if chosen else [""] for mode, chosen in within.items()}
        both = [sizes for sizes in lacks[True] if sizes in lacks[False]]
        said = [*both]
        for mode, where in ((True, " in place"), (False, " out of place")):
            said += [where + sizes for sizes in lacks[mode] if sizes not in both]
        found += [f"no file is for {kind} on {ranks} ranks{what}" for what in said]
    return found


def _between(algorithms: Sequence[Algorithm], profile: Profile) -> list[str]:
    """Return the sizes between those of the algorithms that none of them is for."""
    unit = gcd(*(size_unit(algorithm) for algorithm in algorithms))
    windows = sorted((calls(algorithm, profile) for algorithm in algorithms), key=lambda window: window[0])
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
    """Find files that cannot stand in one folder, and algorithms of one name, unless the runtime reads no names."""
    named = not profiles or any("name" in p.required for p in profiles)
    for one, other in combinations(members, 2):
        if os.path.realpath(one.path) == os.path.realpath(other.path):
            yield Finding("names", "C0651", f"{one.title} and {other.title} are one file")
        elif os.path.basename(one.path) == os.path.basename(other.path):
            found = f"{one.title} and {other.title} have one name, so a folder holds only one of them"
            yield Finding("names", "C0651", found)
        elif named and one.algorithm.name is not None and one.algorithm.name == other.algorithm.name:
            found = f"{one.title} and {other.title} call their algorithms `{one.algorithm.name}` both"
            yield Finding("names", "C0651", f"{found}: logs could not tell them apart")


def _numbers(members: Sequence[Member], profiles: Sequence[Profile]) -> Iterator[Finding]:
    for profile in profiles:
        if len(members) > profile.max_algorithms:
            last = members[profile.max_algorithms]
            what = f"{len(members)} files; {profile.title} loads {profile.max_algorithms} and ignores the rest"
            yield Finding("number", "C0652", f"{what}, from {last.title} on")
