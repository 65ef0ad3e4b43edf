"""Is a file what it says? Read it, judge its form, execute it as each runtime would, in place and out of place."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import error, nearest
from collc.ir.verify import Check, Report

from .execution import data_checks
from .fifos import fifo_check
from .findings import Finding, as_check, as_warnings
from .limits import check_limits, check_residency, runtime_check
from .model import OPCODES, Algorithm
from .profiles import MAX_SPLIT, PROFILES, Profile
from .program import collective_of, to_program
from .reader import read
from .structure import STRUCTURE_CHECKS, check_structure
from .tokens import check_tokens
from .windows import smallest_call

__all__ = ["verify_read", "verify_text"]

_EXECUTION = "execution"

#: the check whose findings may be mild
_WAITS = "dependencies"

#: checks that come out alike for every root
_ROOTLESS = frozenset({"program", "messages", "deadlock"})

#: instructions that are executed in search of a root; files of more have their likeliest roots tried
_MOST_EXECUTED = 1 << 17

#: chunks of all ranks' vectors up to which any file is executed
_MANY_CHUNKS = 1 << 20

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
    messages. A file does not name the root of a rooted collective: any root for which it is right will do, of those
    tried, which of a large file are the likeliest only.
    ``collective`` says what a file should perform that names nothing itself, ``multiprocessors`` how many threadblocks
    a GPU runs at once. What fails says where, why and from which size of calls on. Raises CollcError where the text
    cannot be read at all (see :func:`.reader.read`), and C0606 for an unknown runtime or fewer than 1 multiprocessor.
    A wait that is over later than it says, with the next step that sets the flag, is a warning of the report (C0612).
    """
    profiles = _profiles(runtime)
    if multiprocessors is not None and multiprocessors < 1:
        raise error("C0606", f"a GPU has at least 1 multiprocessor, found {multiprocessors}", exit_status=2)
    return verify_read(read(text, path), text, profiles, collective=collective, multiprocessors=multiprocessors)


def verify_read(
    algorithm: Algorithm,
    text: str,
    profiles: Sequence[Profile],
    *,
    collective: str | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Return what holds of a text that was read, for any of some runtimes, as :func:`verify_text` does."""
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
    mild = [finding for finding in findings if finding.mild]
    if not mild:
        return Report("msccl-xml", kind, algorithm.ngpus, tuple(checks))
    if all(check.ok for check in checks):
        late = f"every wait ends; {len(mild)} with a later step than it names"
        return Report("msccl-xml", kind, algorithm.ngpus, _with(checks, Check(_WAITS, True, late)), as_warnings(mild))
    # What is not as the file says may be why it is wrong.
    strict = as_check(_WAITS, [attrs.evolve(finding, mild=False) for finding in findings], "")
    return Report("msccl-xml", kind, algorithm.ngpus, _with(checks, _sized(strict, algorithm)))


def _with(checks: Sequence[Check], other: Check) -> tuple[Check, ...]:
    """Return the checks with the one of this name replaced."""
    return tuple(other if check.name == other.name else check for check in checks)


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
    if modes == [True]:
        algorithm = attrs.evolve(algorithm, outofplace=0)
    if missing := _unwritten(algorithm, collective_of(algorithm, told).kind):
        return [Check(_EXECUTION, False, missing)]
    kept: list[Check] = []
    roots, executed = likely_roots(algorithm, told), 0
    for tried, root in enumerate(roots, 1):
        loaded = to_program(algorithm, collective_of(algorithm, told, root))
        checks = data_checks(loaded.program, modes)
        if loaded.program.collective.root is not None:
            checks.insert(0, Check("root", True, f"tried with root {root}"))
            executed += loaded.program.num_instructions + algorithm.ngpus
        if loaded.scale > 1:
            parts = f"{loaded.program.chunks} chunks to a shard, {loaded.scale} to a chunk of the file"
            checks.insert(0, Check("chunks", True, f"ranks' shards are no whole chunks: below there are {parts}"))
        good = all(check.ok for check in checks)
        if good or not kept:
            kept = checks
        if good or any(not check.ok and check.name in _ROOTLESS for check in checks):
            break
        if executed > _MOST_EXECUTED and tried < len(roots):
            others = f"tried with {tried} of {len(roots)} roots, the likeliest: it is right for none of them"
            kept = list(_with(kept, Check("root", True, others)))
            break
    return [
        fifo_check(loaded, algorithm, profiles) if c.name == "deadlock" and c.ok else _sized(c, algorithm) for c in kept
    ]


def _unwritten(algorithm: Algorithm, kind: str) -> str:
    """Return why a file of many chunks and few steps need not be executed, or nothing.

    Executing it takes memory for every chunk, and a line of text can ask for millions. Steps of more than 71 chunks,
    which no runtime takes, count as 71.
    """
    chunks, ranks = algorithm.nchunksperloop, algorithm.ngpus
    if chunks * ranks <= _MANY_CHUNKS or ranks == 1:
        return ""
    each = {"allreduce": chunks, "reduce-scatter": chunks // ranks}.get(kind, chunks - chunks // ranks)
    needed = {"broadcast": chunks * (ranks - 1), "reduce": chunks}.get(kind, each * ranks)
    steps = (step for gpu in algorithm.gpus for block in gpu.threadblocks for step in block.steps)
    written = sum(min(step.cnt, MAX_SPLIT) for step in steps if OPCODES[step.type].writes_dst)
    if written >= needed:
        return ""
    return f"not tried: the steps write {written} chunks at most, and the outputs have {needed} to be written"


def _modes(algorithm: Algorithm, profiles: Sequence[Profile]) -> list[bool]:
    """Return the uses that one of the runtimes makes of the file: in place (True), out of place (False).

    Where a runtime does not read ``outofplace``, a call's in-placeness must equal ``inplace``: one use of a file.
    """
    modes = set()
    for profile in profiles:
        if not profile.reads_outofplace:
            modes.add(bool(algorithm.inplace))
            continue
        modes |= {use for use, claimed in ((True, algorithm.inplace), (False, algorithm.outofplace)) if claimed}
    return sorted(modes, reverse=True) or [False]


def likely_roots(algorithm: Algorithm, told: str | None) -> list[int]:
    """Return the ranks that may be the root, the likeliest first: who never receives, or (reducing) never sends."""
    kind = collective_of(algorithm, told).kind
    if collective_of(algorithm, told).root is None:
        return [0]
    side = "send" if kind in ("reduce", "gather") else "recv"
    ends = {gpu.id for gpu in algorithm.gpus if all(getattr(block, side) < 0 for block in gpu.threadblocks)}
    return sorted(range(algorithm.ngpus), key=lambda rank: (rank not in ends, rank))
