"""Verifies a file: reads it, checks its form, and executes it as each runtime would, in place and out of place."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.opcodes import WRITES_DST
from collc.ir.verify import Check, Report

from .execution import data_checks
from .fifos import fifo_check
from .findings import Finding, as_check, as_warnings
from .limits import check_limits, check_residency, runtime_check
from .model import Algorithm
from .profiles import MAX_SPLIT, PROFILES, Profile
from .program import collective_of, to_program
from .reader import read
from .steps import COUNT, opcode_of
from .structure import STRUCTURE_CHECKS, check_structure
from .tokens import check_tokens
from .windows import smallest_call

__all__ = ["verify_read", "verify_text"]

_EXECUTION = "execution"

#: the check that can have mild findings
_DEPENDENCIES = "dependencies"

#: checks with the same result for every root
_ROOTLESS = frozenset({"program", "messages", "deadlock"})

#: instructions that the search for a root executes; in larger files it tries the likeliest roots only
_MOST_EXECUTED = 1 << 17

#: chunks of all ranks' vectors up to which collc executes any file
_MANY_CHUNKS = 1 << 20

#: checks of faults that occur before any call
_LOADING = frozenset({"numbering"})


def verify_text(
    text: str,
    path: str = "<xml>",
    *,
    runtime: str | None = None,
    collective: str | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Return the report on an MSCCL-XML text, for one runtime or for any that accepts it.

    The checks are: the runtimes' tokeniser, the common rules, and the limits of ``runtime`` (default: at least one
    runtime must accept the file). Then the file is executed for each use that its flags claim, with the protocol's FIFO
    depth, for every split of messages in the calls that it serves. A file does not name the root of a rooted
    collective: it must be correct for one root. In a large file only the likeliest roots are tried.

    ``collective`` is the collective of a file that does not name it. ``multiprocessors`` is the number of threadblocks
    that a GPU runs at once. A failed check states the place, the reason, and the smallest call that fails. Raises
    CollcError if the text is unreadable (see :func:`.reader.read`), and C0606 for an unknown runtime or fewer than 1
    multiprocessor. A wait that ends with a later step than it names is a warning of the report (C0612).
    """
    profiles = _profiles(runtime)
    if multiprocessors is not None and multiprocessors < 1:
        raise error("C0606", f"a GPU has at least 1 multiprocessor, found {multiprocessors}", exit_status=2)
    return verify_read(read(text, path), text, profiles, collective=collective, multiprocessors=multiprocessors)


def verify_read(
    algorithm: Algorithm,
    text: str | bytes,
    profiles: Sequence[Profile],
    *,
    collective: str | Collective | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Return the report on a text and the algorithm read from it, as :func:`verify_text` does."""
    first = collective_of(algorithm, collective) if algorithm.ngpus > 0 else None
    findings = [*_stops(algorithm, text), *check_structure(algorithm)]
    accepting, runtimes = _runtimes(algorithm, profiles)
    checks = [as_check("tokens", findings, "the runtimes' tokeniser accepts it")]
    if algorithm.remarks:
        checks.append(Check("reading", True, "; ".join(algorithm.remarks)))
    checks += [_sized(as_check(name, findings, tried), algorithm) for name, tried in STRUCTURE_CHECKS.items()]
    checks += runtimes
    checks.append(_sized(as_check("residency", *check_residency(algorithm, multiprocessors)), algorithm))
    if any(finding.fatal for finding in findings) or first is None:
        checks.append(Check(_EXECUTION, False, "not tried: a file of this form has no program"))
    else:
        checks += _executed(algorithm, accepting or profiles, collective)
    kind = first.kind if first else algorithm.coll
    mild = [finding for finding in findings if finding.mild]
    if not mild:
        return Report("msccl-xml", kind, algorithm.ngpus, tuple(checks))
    if all(check.ok for check in checks):
        passed = Check(_DEPENDENCIES, True, f"every wait ends; {len(mild)} with a later step than it names")
        return Report("msccl-xml", kind, algorithm.ngpus, _replace(checks, passed), as_warnings(mild))
    # A mild finding may be the cause of the failure.
    strict = as_check(_DEPENDENCIES, [attrs.evolve(finding, mild=False) for finding in findings], "")
    return Report("msccl-xml", kind, algorithm.ngpus, _replace(checks, _sized(strict, algorithm)))


def _stops(algorithm: Algorithm, text: str | bytes) -> list[Finding]:
    """Return where the tokeniser stops.

    It takes every line of a step that :mod:`.step_lines` takes. So the text without them decides whether it stops.
    """
    if algorithm.skeleton and not check_tokens(algorithm.skeleton):
        return []
    return check_tokens(text if isinstance(text, str) else text.decode("utf-8", "surrogatepass"))


def _replace(checks: Sequence[Check], other: Check) -> tuple[Check, ...]:
    """Return the checks with ``other`` in place of the one with its name."""
    return tuple(other if check.name == other.name else check for check in checks)


def _sized(check: Check, algorithm: Algorithm) -> Check:
    """Return a check; if it failed, with the smallest call that the file serves.

    A fault that prevents loading gets no size, since no call uses the file.
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
    """Return the runtimes that accept the file, and the check that one does."""
    found = {p.name: check_limits(algorithm, p) for p in profiles}
    accepting = [p for p in profiles if not found[p.name]]
    if len(profiles) == 1:
        (profile,) = profiles
        tried = f"{profile.title} loads and runs it"
        return accepting, [as_check(runtime_check(profile), found[profile.name], tried)]
    refusals = [f"not {p.name}: {_first(found[p.name])}" for p in profiles if found[p.name]]
    if not accepting:
        return accepting, [Check("runtime", False, "; ".join(refusals))]
    return accepting, [Check("runtime", True, "; ".join([", ".join(p.name for p in accepting), *refusals]))]


def _first(findings: Sequence[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return findings[0].message + more


# ---- execution


def _executed(algorithm: Algorithm, profiles: Sequence[Profile], kind: str | Collective | None) -> list[Check]:
    """Return the checks of the execution; for a rooted collective, with a root for which they pass if there is one."""
    modes = _modes(algorithm, profiles)
    if modes == [True]:
        algorithm = attrs.evolve(algorithm, outofplace=0)
    if missing := _unwritten(algorithm, collective_of(algorithm, kind)):
        return [Check(_EXECUTION, False, missing)]
    kept: list[Check] = []
    roots, executed = likely_roots(algorithm, kind), 0
    for tried, root in enumerate(roots, 1):
        loaded = to_program(algorithm, collective_of(algorithm, kind, root))
        checks = data_checks(loaded.program, modes)
        if loaded.program.collective.root is not None:
            checks.insert(0, Check("root", True, f"tried with root {root}"))
            executed += loaded.program.num_instructions + algorithm.ngpus
        if loaded.scale > 1:
            parts = f"{loaded.program.chunks} chunks in a shard, {loaded.scale} in a chunk of the file"
            checks.insert(0, Check("chunks", True, f"a shard is not a whole number of chunks; the checks use {parts}"))
        good = all(check.ok for check in checks)
        if good or not kept:
            kept = checks
        if good or any(not check.ok and check.name in _ROOTLESS for check in checks):
            break
        if executed > _MOST_EXECUTED and tried < len(roots):
            others = f"tried with the {tried} likeliest of {len(roots)} roots: wrong for all of them"
            kept = list(_replace(kept, Check("root", True, others)))
            break
    return [
        fifo_check(loaded, algorithm, profiles) if c.name == "deadlock" and c.ok else _sized(c, algorithm) for c in kept
    ]


def _unwritten(algorithm: Algorithm, collective: Collective) -> str:
    """Return why a file with many chunks and few steps is wrong without an execution, or "".

    The execution takes memory for every chunk, and a line of text can declare millions. Steps of more than 71 chunks,
    which no runtime accepts, count as 71.
    """
    chunks, ranks = algorithm.nchunksperloop, algorithm.ngpus
    if chunks * ranks <= _MANY_CHUNKS or ranks == 1:
        return ""
    kind = collective.kind
    if kind == CUSTOM or collective.members is not None:  # collc's own, which was executed before
        return ""
    each = {"allreduce": chunks, "reduce-scatter": chunks // ranks}.get(kind, chunks - chunks // ranks)
    needed = {"broadcast": chunks * (ranks - 1), "reduce": chunks}.get(kind, each * ranks)
    writes = WRITES_DST[opcode_of(algorithm.table)]
    counts = algorithm.table[writes, COUNT].astype(np.int64)
    written = int(np.minimum(counts, MAX_SPLIT).sum())
    if written >= needed:
        return ""
    return f"not tried: the steps write at most {written} chunks, but the outputs need {needed}"


def _modes(algorithm: Algorithm, profiles: Sequence[Profile]) -> list[bool]:
    """Return the uses of the file by one of the runtimes: in place (True), out of place (False).

    A runtime that does not read ``outofplace`` uses a file for one use only: the one that ``inplace`` states.
    """
    modes = set()
    for profile in profiles:
        if not profile.reads_outofplace:
            modes.add(bool(algorithm.inplace))
            continue
        modes |= {use for use, claimed in ((True, algorithm.inplace), (False, algorithm.outofplace)) if claimed}
    return sorted(modes, reverse=True) or [False]


def likely_roots(algorithm: Algorithm, kind: str | Collective | None) -> list[int]:
    """Return the possible roots, the likeliest first: a rank that never receives, or for reduce, never sends."""
    collective = collective_of(algorithm, kind)
    if collective.root is None:
        return [0]
    if isinstance(kind, Collective):
        return [collective.root]
    side = "send" if collective.kind in ("reduce", "gather") else "recv"
    ends = {gpu.id for gpu in algorithm.gpus if all(getattr(block, side) < 0 for block in gpu.threadblocks)}
    return sorted(range(algorithm.ngpus), key=lambda rank: (rank not in ends, rank))
