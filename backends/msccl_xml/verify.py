"""Is a file what it says? Read it, judge its form, execute it as each runtime would, in place and out of place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collc.ir.diagnostic import error, nearest
from collc.ir.verify import Check, Report

from .execution import data_checks, fifo_check, needed_splits
from .findings import Finding, as_check
from .limits import check_limits, runtime_check
from .model import Algorithm
from .profiles import PROFILES, PROTOCOLS, Profile
from .program import Loaded, collective_of, to_program
from .reader import read
from .structure import STRUCTURE_CHECKS, check_structure
from .tokens import check_tokens
from .windows import message_counts, size_limit, splits

__all__ = ["verify_text"]

_EXECUTION = "execution"


def verify_text(text: str, path: str = "<xml>", *, runtime: str | None = None, collective: str | None = None) -> Report:
    """Return what holds of an MSCCL-XML text, for one runtime or for any that could take it.

    Checks the text against the runtimes' tokeniser, the rules all share, the limits of ``runtime`` (where none is
    named, one runtime that takes the file is enough), then executes it for each use its flags claim, in place and out
    of place, with the protocol's FIFO depth, for every way in which calls of the sizes it is used for cut their
    messages. A file does not name the root of a rooted collective: any root for which it is right will do.
    ``collective`` says what a file should perform that names nothing itself. Raises CollcError where the text cannot
    be read at all (see :func:`.reader.read`).
    """
    profiles = _profiles(runtime)
    algorithm = read(text, path)
    first = collective_of(algorithm, collective) if algorithm.ngpus > 0 else None
    findings = [*check_tokens(text), *check_structure(algorithm)]
    taking, runtimes = _runtimes(algorithm, profiles)
    checks = [as_check("tokens", findings, "the runtimes' tokeniser reads it")]
    checks += [as_check(name, findings, tried) for name, tried in STRUCTURE_CHECKS.items()]
    checks += runtimes
    if any(finding.fatal for finding in findings) or first is None:
        checks.append(Check(_EXECUTION, False, "not tried: there is nothing to execute in a file of this form"))
    else:
        checks += _executed(algorithm, taking or profiles, collective)
    kind = first.kind if first else algorithm.coll
    return Report("msccl-xml", kind, algorithm.ngpus, tuple(checks))


def _profiles(runtime: str | None) -> list[Profile]:
    if runtime is None:
        return list(PROFILES.values())
    if runtime not in PROFILES:
        hint = nearest(runtime, PROFILES) or f"runtimes are {', '.join(PROFILES)}"
        raise error("C0606", f"unknown runtime `{runtime}`", hint=hint, exit_status=2)
    return [PROFILES[runtime]]


def _runtimes(algorithm: Algorithm, profiles: Sequence[Profile]) -> tuple[list[Profile], list[Check]]:
    """Return the runtimes that take the file, and the check that one does."""
    found = {p.name: check_limits(algorithm, p) for p in profiles}
    taking = [p for p in profiles if not found[p.name]]
    if len(profiles) == 1:
        (profile,) = profiles
        tried = f"{profile.title} loads and runs it"
        return taking, [as_check(runtime_check(profile), found[profile.name], tried)]
    refusals = [f"not {p.name}: {_first(found[p.name])}" for p in profiles if found[p.name]]
    if not taking:
        return taking, [Check("runtime", False, "; ".join(refusals))]
    return taking, [Check("runtime", True, "; ".join([", ".join(p.name for p in taking), *refusals]))]


def _first(findings: Sequence[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return findings[0].message + more


# ---- execution


def _executed(algorithm: Algorithm, profiles: Sequence[Profile], told: str | None) -> list[Check]:
    """Return the checks of the execution, with the root that suits the file where its collective has one."""
    modes = _modes(algorithm, profiles)
    kept: list[Check] = []
    for root in _roots(algorithm, told):
        loaded = to_program(algorithm, collective_of(algorithm, told, root))
        checks = data_checks(loaded.program, modes)
        if loaded.program.collective.root is not None:
            checks.insert(0, Check("root", True, f"tried with root {root}"))
        good = all(check.ok for check in checks)
        if good or not kept:
            kept = checks
        if good:
            break
    return [_fifos(algorithm, profiles, loaded) if c.name == "deadlock" and c.ok else c for c in kept]


def _fifos(algorithm: Algorithm, profiles: Sequence[Profile], loaded: Loaded) -> Check:
    """Return the check of the FIFOs there are, for the messages of all calls the file is used for."""
    counts = message_counts(algorithm)
    tried = sorted({split for profile in profiles for split in _window_splits(algorithm, profile, counts)})
    return fifo_check(loaded, PROTOCOLS[algorithm.proto].fifo_depth, tried)


def _window_splits(algorithm: Algorithm, profile: Profile, counts: Iterable[int]) -> list[int]:
    largest = size_limit(algorithm, profile)
    low, high = splits(algorithm.nchunksperloop, algorithm.min_bytes or 0, largest, profile.tile[algorithm.proto])
    return needed_splits(counts, low, high)


def _modes(algorithm: Algorithm, profiles: Sequence[Profile]) -> list[bool]:
    """Return the uses the flags claim: in place (True), out of place (False).

    A runtime that reads ``inplace`` alone takes it for exact; ``outofplace`` then still is a claim to be held to.
    """
    modes = set()
    if algorithm.inplace:
        modes.add(True)
    if algorithm.outofplace or (not algorithm.inplace and any(not p.reads_outofplace for p in profiles)):
        modes.add(False)
    return sorted(modes, reverse=True) or [False]


def _roots(algorithm: Algorithm, told: str | None) -> list[int]:
    """Return the ranks that may be the root, the likeliest first: who never receives, or (reducing) never sends."""
    kind = collective_of(algorithm, told).kind
    if collective_of(algorithm, told).root is None:
        return [0]
    side = "send" if kind in ("reduce", "gather") else "recv"
    ends = {gpu.id for gpu in algorithm.gpus if all(getattr(block, side) < 0 for block in gpu.threadblocks)}
    return sorted(range(algorithm.ngpus), key=lambda rank: (rank not in ends, rank))
