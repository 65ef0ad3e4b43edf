"""The limits of one runtime: its spellings, its sizes, its instructions. For programs before writing, and for files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypedDict

import numpy as np

from collc.ir.arrays import Array, numbered
from collc.ir.diagnostic import Excess, Kind
from collc.ir.ragged import starts

from .findings import Finding, place
from .model import KINDS, OPCODES, Algorithm, Gpu, Step, Threadblock
from .profiles import Profile
from .steps import COUNT, DEPID, DST_OFFSET, KINDS_OF, NUMBER, SRC_OFFSET, TYPE
from .windows import UNBOUNDED, size_limit, size_unit, smallest_call, stated_limit, tile_limit

__all__ = ["check_limits", "check_residency", "runtime_check"]

_FEWER_STEPS = "use more channels or threadblocks for the steps; fewer chunks make fewer steps"
_FEWER_CHUNKS = "cut the data in fewer chunks (`discretize{max-chunks=...}`)"


def runtime_check(profile: Profile) -> str:
    """Return the name of the check that one runtime accepts a file."""
    return f"runtime {profile.name}"


def check_limits(algorithm: Algorithm, profile: Profile, resident: int | None = None) -> list[Finding]:
    """Return why one runtime cannot load or run a file; empty if it can.

    ``resident`` is the maximum number of threadblocks of a rank that run at once.
    """
    finding = partial(Finding, runtime_check(profile))
    return [
        *_head(finding, algorithm, profile), *_window(finding, algorithm, profile),
        *_ranks(finding, algorithm, profile), *_threadblocks(finding, algorithm, profile, resident),
        *_steps(finding, algorithm, profile),
    ]  # fmt: skip


def check_residency(algorithm: Algorithm, multiprocessors: int | None) -> tuple[list[Finding], str]:
    """Return the ranks whose threadblocks cannot all run at once on ``multiprocessors``, and the detail of the check.

    A threadblock without a multiprocessor starts only after another has finished, and that one may wait for it. The
    order in which they start is unknown, so every threadblock needs a multiprocessor.
    """
    most = max((len(gpu.threadblocks) for gpu in algorithm.gpus), default=0)
    if multiprocessors is None:
        return [], f"{most} threadblocks of a rank run at once: a GPU needs {most} multiprocessors"
    return [
        Finding(
            "residency", "C0622", f"{place(gpu)} has {len(gpu.threadblocks)} threadblocks, but {multiprocessors} run "
            f"at once: threadblock {multiprocessors} has no place, and others may wait for it forever",
            **_excess("threadblocks", len(gpu.threadblocks), multiprocessors),
        )
        for gpu in algorithm.gpus
        if len(gpu.threadblocks) > multiprocessors
    ], f"{most} threadblocks of a rank run at once on {multiprocessors} multiprocessors"  # fmt: skip


#: makes a finding from its code, message, hint and further fields
_MakeFinding = Callable[..., Finding]
_Findings = Iterator[Finding]


class _Exceeded(TypedDict):
    kind: Kind
    excess: Excess


def _excess(what: str, found: int, allowed: int) -> _Exceeded:
    """Return the further fields of a finding about a limit."""
    return {"kind": Kind.LIMIT, "excess": Excess(what, found, allowed)}


def _too_large(found: int, allowed: int) -> _Exceeded:
    """Return the further fields of a finding about too large calls, in bytes."""
    return {"kind": Kind.SIZE, "excess": Excess("bytes", found, allowed)}


def _head(finding: _MakeFinding, algorithm: Algorithm, profile: Profile) -> _Findings:
    present = {
        "name": algorithm.name is not None,
        "outofplace": algorithm.outofplace is not None,
        "minBytes": algorithm.min_bytes is not None,
        "maxBytes": algorithm.max_bytes is not None,
    }
    for name in profile.required:
        if not present[name]:
            yield finding("C0628", f"`algo` lacks the attribute `{name}`, which {profile.title} needs", None)
    if algorithm.coll not in profile.spellings.values():
        kind = KINDS.get(algorithm.coll, algorithm.coll)
        known = ", ".join(profile.spellings.values())
        if kind in profile.spellings:
            yield finding(
                "C0607",
                f'{profile.title} needs coll="{profile.spellings[kind]}", found "{algorithm.coll}"',
                None,
            )
        else:
            yield finding("C0607", f"{profile.title} cannot run `{algorithm.coll}`; it runs {known}", None)
    if (KINDS.get(algorithm.coll, ""), algorithm.name) in profile.builtin_names:
        found = f'name="{algorithm.name}" makes {profile.title} run its own {algorithm.coll}'
        yield finding("C0635", found, "choose another name")
    if len((algorithm.name or "").encode()) > profile.max_name:
        length = len((algorithm.name or "").encode())
        yield finding("C0628", f"the name has {length} bytes; {profile.title} takes at most {profile.max_name}", None)
    if algorithm.nchannels > profile.max_channels:
        found = f"{profile.title} has {profile.max_channels} channels, found {algorithm.nchannels}"
        yield finding(
            "C0623",
            found,
            "set the target's option `channels`, or that of `balance-threadblocks`",
            **_excess("channels", algorithm.nchannels, profile.max_channels),
        )
    if profile.reads_outofplace and not algorithm.inplace and not algorithm.outofplace:
        message = "neither `inplace` nor `outofplace` is set: no call would use the file"
        yield finding("C0631", message, kind=Kind.UNUSED)
    if profile.max_threads is not None and algorithm.nthreads is not None:
        threads = algorithm.nthreads
        if threads % 32 or not 0 < threads <= profile.max_threads:
            yield finding("C0628", f"nthreads must be a multiple of 32 up to {profile.max_threads}, found {threads}")


def _window(finding: _MakeFinding, algorithm: Algorithm, profile: Profile) -> _Findings:
    smallest, stated = algorithm.min_bytes or 0, algorithm.max_bytes
    largest = size_limit(algorithm, profile)
    if smallest < 0 or (stated or 0) < 0:
        yield finding("C0630", f"minBytes and maxBytes cannot be negative, found {smallest} and {stated}", None)
    elif profile.exclusive_max_bytes and stated == 0:
        yield finding(
            "C0630",
            f"maxBytes is 0: {profile.title} uses a file only below maxBytes, so never",
            "write the largest size",
            kind=Kind.UNUSED,
        )
    elif largest is not None and largest < smallest:
        yield finding(
            "C0630",
            f"no size is within minBytes {smallest} and maxBytes {stated}: no call would use the file",
            kind=Kind.UNUSED,
        )
    elif largest is not None and largest < smallest_call(algorithm):
        unit = f"a multiple of {size_unit(algorithm)} bytes, as {algorithm.nchunksperloop} equal chunks need"
        between = f"no size within minBytes {smallest} and maxBytes {stated} is {unit}"
        written = any("maxBytes" in remark for remark in algorithm.remarks)
        hint = "sizes are whole numbers of bytes" if written else f"serve calls of {smallest_call(algorithm)} bytes too"
        yield finding("C0642", f"{between}: no call would use the file", hint, kind=Kind.UNUSED)
    elif stated and algorithm.nchunksperloop > 0 and largest is not None:
        most = tile_limit(algorithm.nchunksperloop, profile, algorithm.proto)
        if largest > most and most < UNBOUNDED:
            tiles = f"a launch has at most {profile.max_tiles} tiles, enough for calls of {most} bytes"
            hint = f"set maxBytes to {stated_limit(most, profile)}"
            yield finding("C0630", f"maxBytes {stated} is too large: {tiles}", hint, **_too_large(largest, most))


def _ranks(finding: _MakeFinding, algorithm: Algorithm, profile: Profile) -> _Findings:
    if algorithm.ngpus > profile.max_children:
        yield finding(
            "C0627",
            f"the parsers hold {profile.max_children} ranks, found {algorithm.ngpus}",
            **_excess("ranks", algorithm.ngpus, profile.max_children),
        )
    first = starts(algorithm.rank_table[:, 4])
    for gpu, steps in zip(algorithm.gpus, np.diff(algorithm.starts[first]).tolist(), strict=True):
        nodes = 1 + algorithm.ngpus + len(gpu.threadblocks) + steps
        if nodes > profile.max_nodes:
            parts = f"1 + {algorithm.ngpus} ranks + {len(gpu.threadblocks)} threadblocks + {steps} steps"
            message = f"{place(gpu)}: {nodes} XML elements ({parts}); the parsers hold {profile.max_nodes}"
            yield finding("C0627", message, _FEWER_CHUNKS, **_excess("elements", nodes, profile.max_nodes))
        if profile.counts_must_match:
            yield from _chunk_counts(finding, algorithm, gpu)


def _chunk_counts(finding: _MakeFinding, algorithm: Algorithm, gpu: Gpu) -> _Findings:
    """Check that the chunks of a buffer equal those of a loop; 0 means that the buffer is not used."""
    kind = KINDS.get(algorithm.coll)
    for name, parts in (
        ("i_chunks", algorithm.ngpus if kind == "allgather" else 1),
        ("o_chunks", algorithm.ngpus if kind == "reduce-scatter" else 1),
    ):
        found = getattr(gpu, name)
        if found > 0 and found * parts != algorithm.nchunksperloop:
            times = f" times {parts} ranks" if parts > 1 else ""
            message = f"{place(gpu)}: {name} {found}{times} must be nchunksperloop, {algorithm.nchunksperloop}, or 0"
            yield finding("C0629", message, None)


def _threadblocks(finding: _MakeFinding, algorithm: Algorithm, profile: Profile, resident: int | None) -> _Findings:
    most = profile.max_threadblocks if resident is None else min(resident, profile.max_threadblocks)
    if _are_few(algorithm, most, profile.max_threadblocks_per_channel):
        return
    for gpu in algorithm.gpus:
        if len(gpu.threadblocks) > most:
            why = f"{profile.title} takes at most {profile.max_threadblocks}"
            if most < profile.max_threadblocks:
                why = f"at most {most} run at once"
            hint = "fewer channels make fewer threadblocks; the option `threadblocks` states how many run at once"
            yield finding(
                "C0622",
                f"{place(gpu)} has {len(gpu.threadblocks)} threadblocks; {why}",
                hint,
                **_excess("threadblocks", len(gpu.threadblocks), most),
            )
        for side in ("send", "recv"):
            owners = Counter(block.chan for block in gpu.threadblocks if getattr(block, side) >= 0)
            for channel, count in sorted(owners.items()):
                if count > profile.max_threadblocks_per_channel:
                    what = f"{count} threadblocks with a {side} peer on channel {channel}"
                    limit = f"a channel takes at most {profile.max_threadblocks_per_channel}"
                    yield finding(
                        "C0623",
                        f"{place(gpu)} has {what}; {limit}",
                        "use more channels",
                        **_excess("threadblocks of a channel", count, profile.max_threadblocks_per_channel),
                    )


def _are_few(algorithm: Algorithm, most: int, of_channel: int) -> bool:
    """Return whether no rank has more threadblocks, or more that send or receive on one channel."""
    if int(algorithm.rank_table[:, 4].max(initial=0)) > most:
        return False
    rank, _, send, recv, channel = algorithm.block_table
    place = numbered(channel)[1]
    key = rank * (int(place.max(initial=0)) + 1) + place
    return all(int(np.bincount(key[peer >= 0]).max(initial=0)) <= of_channel for peer in (send, recv))


def _steps(finding: _MakeFinding, algorithm: Algorithm, profile: Profile) -> _Findings:
    if algorithm.proto not in profile.unordered_sends and _all_fit(algorithm.table, profile):
        return
    for gpu in algorithm.gpus:
        for block in gpu.threadblocks:
            last = max((step.s for step in block.steps), default=-1)
            if last >= profile.max_steps:
                found = f"{place(gpu, block)} has {last + 1} steps; {profile.title} takes at most {profile.max_steps}"
                yield finding("C0621", found, _FEWER_STEPS, **_excess("steps", last + 1, profile.max_steps))
            yield from _step_limits(finding, gpu, block, profile)
            if algorithm.proto in profile.unordered_sends:
                yield from _overtaken_sends(finding, algorithm, gpu, block, profile)


def _all_fit(table: Array, profile: Profile) -> bool:
    """Return whether no step of a table exceeds a limit of its own; :func:`_step_limits` says which does."""
    known = np.array([name in profile.ops for name in KINDS_OF])
    limits = (
        (NUMBER, profile.max_steps - 1), (COUNT, profile.max_count), (DEPID, profile.max_dependency_id),
        (SRC_OFFSET, profile.max_offset), (DST_OFFSET, profile.max_offset),
    )  # fmt: skip
    return bool(known.take(table[:, TYPE]).all()) and all(
        int(table[:, column].max(initial=-1)) <= most for column, most in limits
    )


def _step_limits(finding: _MakeFinding, gpu: Gpu, block: Threadblock, profile: Profile) -> _Findings:
    for step in block.steps:
        if step.type not in profile.ops:
            takes = ", ".join(sorted(profile.ops))
            message = f"{place(gpu, block, step)}: {profile.title} does not run `{step.type}`; it runs {takes}"
            yield finding("C0620", message, "the pass `unfuse` replaces such instructions", kind=Kind.MISFIT)
        if step.cnt > profile.max_count:
            message = f"{place(gpu, block, step)} moves {step.cnt} chunks; a step moves at most {profile.max_count}"
            over = _excess("chunks of a step", step.cnt, profile.max_count)
            yield finding("C0624", message, "limit the chunks that `coalesce` joins, or split the step", **over)
        if step.depid > profile.max_dependency_id:
            message = (
                f"{place(gpu, block, step)} depends on threadblock {step.depid}; "
                f"a step can depend on 0 to {profile.max_dependency_id} only (the number is one signed byte)"
            )
            over = _excess("threadblocks", step.depid + 1, profile.max_dependency_id + 1)
            yield finding("C0625", message, f"use at most {profile.max_dependency_id + 1} threadblocks a rank", **over)
        if max(step.srcoff, step.dstoff) > profile.max_offset:
            offset = max(step.srcoff, step.dstoff)
            message = f"{place(gpu, block, step)}: offset {offset}; offsets are at most {profile.max_offset}"
            yield finding("C0626", message, _FEWER_CHUNKS, **_excess("offset", offset, profile.max_offset))


def _overtaken_sends(
    finding: _MakeFinding, algorithm: Algorithm, gpu: Gpu, block: Threadblock, profile: Profile
) -> _Findings:
    """Find sends whose data the next step overwrites while slower threads still read them.

    If a send ends without a barrier, each thread may overwrite only what it has read itself, at the same offset. Every
    other step ends with a barrier.
    """
    aliased = algorithm.inplace and KINDS.get(algorithm.coll) not in ("allgather", "reduce-scatter")
    sent: list[Step] = []
    for step in block.steps:
        if step.type == "s":
            sent.append(step)
        elif step.type != "nop":
            for send in sent if OPCODES[step.type].writes_dst else ():
                together = send.srcbuf == step.dstbuf or (aliased and {send.srcbuf, step.dstbuf} == {"i", "o"})
                apart = send.srcoff - step.dstoff
                if together and apart and -send.cnt < apart < step.cnt:
                    message = (
                        f"{place(gpu, block, step)} writes data that step {send.s} may still send: "
                        f"{profile.title} ends a send without a barrier with {algorithm.proto}"
                    )
                    hint = "use another protocol, or put the two steps in different threadblocks"
                    yield finding("C0634", message, hint, kind=Kind.MISFIT)
            sent = []
