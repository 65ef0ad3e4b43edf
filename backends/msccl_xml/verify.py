"""Is a file what it says? Read it, judge its form, execute it as each runtime would, in place and out of place."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import error, nearest
from collc.ir.verify import Check, Report

from .execution import data_checks
from .fifos import fifo_check
from .findings import Finding, as_check
from .limits import check_limits, check_residency, runtime_check
from .model import Algorithm
from .profiles import PROFILES, Profile
from .program import collective_of, to_program
from .reader import read
from .structure import STRUCTURE_CHECKS, check_structure
from .tokens import check_tokens
from .windows import smallest_call

__all__ = ["verify_text"]

_EXECUTION = "execution"

#: checks of what happens before any call
_LOADING = frozenset({"numbering"})


def verify_text(
    text: str,
    path: str = "<xml>",
    *,
    runtime: str | None = None,
    collective: str | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Return what holds of an MSCCL-XML text, for one runtime or for any that could take it.

    Checks the text against the runtimes' tokeniser, the rules all share, the limits of ``runtime`` (where none is
    named, one runtime that takes the file is enough), then executes it for each use its flags claim, in place and out
    of place, with the protocol's FIFO depth, for every way in which calls of the sizes it is used for cut their
    messages. A file does not name the root of a rooted collective: any root for which it is right will do.
    ``collective`` says what a file should perform that names nothing itself, ``multiprocessors`` how many threadblocks
    a GPU runs at once. What fails says where, why and from which size of calls on. Raises CollcError where the text
    cannot be read at all (see :func:`.reader.read`), and C0606 for an unknown runtime or fewer than 1 multiprocessor.
    """
    profiles = _profiles(runtime)
    if multiprocessors is not None and multiprocessors < 1:
        raise error("C0606", f"a GPU has at least 1 multiprocessor, found {multiprocessors}", exit_status=2)
    algorithm = read(text, path)
    first = collective_of(algorithm, collective) if algorithm.ngpus > 0 else None
    findings = [*check_tokens(text), *check_structure(algorithm)]
    taking, runtimes = _runtimes(algorithm, profiles)
    checks = [as_check("tokens", findings, "the runtimes' tokeniser reads it")]
    if algorithm.remarks:
        checks.append(Check("reading", True, "; ".join(algorithm.remarks)))
    checks += [_sized(as_check(name, findings, tried), algorithm) for name, tried in STRUCTURE_CHECKS.items()]
    checks += runtimes
    checks.append(_sized(as_check("residency", *check_residency(algorithm, multiprocessors)), algorithm))
    if any(finding.fatal for finding in findings) or first is None:
        checks.append(Check(_EXECUTION, False, "not tried: there is nothing to execute in a file of this form"))
    else:
        checks += _executed(algorithm, taking or profiles, collective)
    kind = first.kind if first else algorithm.coll
    return Report("msccl-xml", kind, algorithm.ngpus, tuple(checks))


def _sized(check: Check, algorithm: Algorithm) -> Check:
    """Return a check with, where it failed, the smallest call in which it does: the first the file is used for.

    What keeps a file from being loaded has none, since no call gets that far.
    """
    if check.ok or check.name in _LOADING:
        return check
    return attrs.evolve(check, detail=f"{check.detail}; in calls of {smallest_call(algorithm)} bytes and more")


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
    for root in likely_roots(algorithm, told):
        loaded = to_program(algorithm, collective_of(algorithm, told, root))
        checks = data_checks(loaded.program, modes)
        if loaded.program.collective.root is not None:
            checks.insert(0, Check("root", True, f"tried with root {root}"))
        if loaded.scale > 1:
            parts = f"{loaded.program.chunks} chunks to a shard, {loaded.scale} to a chunk of the file"
            checks.insert(0, Check("chunks", True, f"ranks' shards are no whole chunks: below there are {parts}"))
        good = all(check.ok for check in checks)
        if good or not kept:
            kept = checks
        if good:
            break
    return [
        fifo_check(loaded, algorithm, profiles) if c.name == "deadlock" and c.ok else _sized(c, algorithm) for c in kept
    ]


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


def likely_roots(algorithm: Algorithm, told: str | None) -> list[int]:
    """Return the ranks that may be the root, the likeliest first: who never receives, or (reducing) never sends."""
    kind = collective_of(algorithm, told).kind
    if collective_of(algorithm, told).root is None:
        return [0]
    side = "send" if kind in ("reduce", "gather") else "recv"
    ends = {gpu.id for gpu in algorithm.gpus if all(getattr(block, side) < 0 for block in gpu.threadblocks)}
    return sorted(range(algorithm.ngpus), key=lambda rank: (rank not in ends, rank))
