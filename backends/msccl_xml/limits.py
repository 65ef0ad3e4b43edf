"""What one runtime takes: its spellings, its sizes, its instructions. Checked before anything is written, and on
files read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .findings import Finding, place
from .model import KINDS, OPCODES, Algorithm, Gpu, Step, Threadblock
from .profiles import Profile
from .windows import ENDLESS, size_limit, size_unit, smallest_call, stated_limit, tile_limit

__all__ = ["check_limits", "check_residency", "runtime_check"]

_SHARE = "more channels or threadblocks share the steps out; fewer chunks make fewer steps"
_FEWER_CHUNKS = "cut the data in fewer chunks (`discretize{max-chunks=...}`)"


def runtime_check(profile: Profile) -> str:
    """Return the name of the check that one runtime takes a file."""
    return f"runtime {profile.name}"


def check_limits(algorithm: Algorithm, profile: Profile, resident: int | None = None) -> list[Finding]:
    """Return what keeps one runtime from loading or running a file.

    With ``resident`` a rank's threadblocks must not be more than that, so that all of them run at once.
    """
    check = runtime_check(profile)
    found = [
        *_head(algorithm, profile), *_window(algorithm, profile), *_ranks(algorithm, profile),
        *_threadblocks(algorithm, profile, resident), *_steps(algorithm, profile),
    ]  # fmt: skip
    return [Finding(check, code, message, hint) for code, message, hint in found]


def check_residency(algorithm: Algorithm, multiprocessors: int | None) -> tuple[list[Finding], str]:
    """Return the ranks whose threadblocks cannot all run at once on so many multiprocessors, and what was found.

    A threadblock that has no place does not start until another has finished, which may wait for it. Nothing tells
    which of them start first, so there must be a place for each.
    """
    most = max((len(gpu.threadblocks) for gpu in algorithm.gpus), default=0)
    if multiprocessors is None:
        return [], f"{most} threadblocks of a rank run at once: a GPU needs {most} multiprocessors"
    return [
        Finding(
            "residency", "C0622", f"{place(gpu)} has {len(gpu.threadblocks)} threadblocks where {multiprocessors} run "
            f"at once: threadblock {multiprocessors} has no place, and others may wait for it for ever",
        )
        for gpu in algorithm.gpus
        if len(gpu.threadblocks) > multiprocessors
    ], f"{most} threadblocks of a rank run at once on {multiprocessors} multiprocessors"  # fmt: skip


_Found = Iterator[tuple[str, str, str | None]]  # code, message, hint


def _head(algorithm: Algorithm, profile: Profile) -> _Found:
    present = {
        "name": algorithm.name is not None,
        "outofplace": algorithm.outofplace is not None,
        "minBytes": algorithm.min_bytes is not None,
        "maxBytes": algorithm.max_bytes is not None,
    }
    for name in profile.required:
        if not present[name]:
            yield "C0628", f"`algo` lacks the attribute `{name}`, which {profile.title} needs", None
    if algorithm.coll not in profile.spellings.values():
        kind = KINDS.get(algorithm.coll, algorithm.coll)
        known = ", ".join(profile.spellings.values())
        if kind in profile.spellings:
            yield (
                "C0607",
                f'{profile.title} spells it coll="{profile.spellings[kind]}", found "{algorithm.coll}"',
                None,
            )
        else:
            yield "C0607", f"{profile.title} cannot carry `{algorithm.coll}`; it takes {known}", None
    if (KINDS.get(algorithm.coll, ""), algorithm.name) in profile.taken_names:
        found = f'name="{algorithm.name}" makes {profile.title} run an {algorithm.coll} of its own instead of the steps'
        yield "C0635", found, "choose another name"
    if len((algorithm.name or "").encode()) > profile.max_name:
        length = len((algorithm.name or "").encode())
        yield "C0628", f"the name has {length} bytes; {profile.title} takes {profile.max_name}", None
    if algorithm.nchannels > profile.max_channels:
        found = f"{algorithm.nchannels} channels; {profile.title} has {profile.max_channels}"
        yield (
            "C0623",
            found,
            "set the target's option `channels`, or cap channels when balancing threadblocks",
        )
    if profile.reads_outofplace and not algorithm.inplace and not algorithm.outofplace:
        yield "C0631", "neither `inplace` nor `outofplace` is set: no call would use the file", None
    if profile.max_threads is not None and algorithm.nthreads is not None:
        threads = algorithm.nthreads
        if threads % 32 or not 0 < threads <= profile.max_threads:
            yield "C0628", f"nthreads is a multiple of 32 up to {profile.max_threads}, found {threads}", None


def _window(algorithm: Algorithm, profile: Profile) -> _Found:
    smallest, stated = algorithm.min_bytes or 0, algorithm.max_bytes
    largest = size_limit(algorithm, profile)
    if smallest < 0 or (stated or 0) < 0:
        yield "C0630", f"minBytes and maxBytes cannot be negative, found {smallest} and {stated}", None
    elif profile.exclusive_max_bytes and stated == 0:
        yield (
            "C0630",
            f"maxBytes is 0: {profile.title} uses a file below maxBytes only, so never",
            "write the largest size",
        )
    elif largest is not None and largest < smallest:
        yield (
            "C0630",
            f"no size is within minBytes {smallest} and maxBytes {stated}: no call would use the file",
            None,
        )
    elif largest is not None and largest < smallest_call(algorithm):
        unit = f"a multiple of {size_unit(algorithm)} bytes, which a call needs to be cut in {algorithm.nchunksperloop}"
        between = f"no size within minBytes {smallest} and maxBytes {stated} is {unit} chunks"
        hint = "sizes are whole numbers of bytes" if any("maxBytes" in r for r in algorithm.remarks) else None
        yield "C0642", f"{between}: no call would use the file", hint
    elif stated and algorithm.nchunksperloop > 0 and largest is not None:
        most = tile_limit(algorithm.nchunksperloop, profile, algorithm.proto)
        if largest > most and most < ENDLESS:
            tiles = f"a launch has at most {profile.max_tiles} tiles, which calls of {most} bytes need"
            yield "C0630", f"maxBytes {stated} is too large: {tiles}", f"set maxBytes to {stated_limit(most, profile)}"


def _ranks(algorithm: Algorithm, profile: Profile) -> _Found:
    if algorithm.ngpus > profile.max_children:
        yield "C0627", f"{algorithm.ngpus} ranks; the parsers hold {profile.max_children}", None
    for gpu in algorithm.gpus:
        steps = sum(len(block.steps) for block in gpu.threadblocks)
        nodes = 1 + algorithm.ngpus + len(gpu.threadblocks) + steps
        if nodes > profile.max_nodes:
            parts = f"1 + {algorithm.ngpus} ranks + {len(gpu.threadblocks)} threadblocks + {steps} steps"
            message = f"{place(gpu)}: {nodes} XML elements ({parts}); the parsers hold {profile.max_nodes}"
            yield "C0627", message, _FEWER_CHUNKS
        if profile.counts_must_match:
            yield from _chunk_counts(algorithm, gpu)


def _chunk_counts(algorithm: Algorithm, gpu: Gpu) -> _Found:
    """Check that the buffers' chunks add up to the loop's; 0 stands for a buffer not used."""
    kind = KINDS.get(algorithm.coll)
    for name, parts in (
        ("i_chunks", algorithm.ngpus if kind == "allgather" else 1),
        ("o_chunks", algorithm.ngpus if kind == "reduce-scatter" else 1),
    ):
        found = getattr(gpu, name)
        if found > 0 and found * parts != algorithm.nchunksperloop:
            times = f" times {parts} ranks" if parts > 1 else ""
            message = f"{place(gpu)}: {name} {found}{times} must be nchunksperloop, {algorithm.nchunksperloop}, or 0"
            yield "C0629", message, None


def _threadblocks(algorithm: Algorithm, profile: Profile, resident: int | None) -> _Found:
    most = profile.max_threadblocks if resident is None else min(resident, profile.max_threadblocks)
    for gpu in algorithm.gpus:
        if len(gpu.threadblocks) > most:
            why = f"{profile.title} takes {profile.max_threadblocks}"
            if most < profile.max_threadblocks:
                why = f"at most {most} are taken to run at once"
            hint = "fewer channels make fewer threadblocks; the option `threadblocks` is how many run at once"
            yield "C0622", f"{place(gpu)} has {len(gpu.threadblocks)} threadblocks; {why}", hint
        for side in ("send", "recv"):
            owners = Counter(block.chan for block in gpu.threadblocks if getattr(block, side) >= 0)
            for channel, count in sorted(owners.items()):
                if count > profile.max_threadblocks_per_channel:
                    what = f"{count} threadblocks with a {side} peer on channel {channel}"
                    limit = f"at most {profile.max_threadblocks_per_channel} may share one"
                    yield "C0623", f"{place(gpu)} has {what}; {limit}", "use more channels"


def _steps(algorithm: Algorithm, profile: Profile) -> _Found:
    for gpu in algorithm.gpus:
        for block in gpu.threadblocks:
            last = max((step.s for step in block.steps), default=-1)
            if last >= profile.max_steps:
                found = f"{place(gpu, block)} has {last + 1} steps; {profile.title} takes {profile.max_steps}"
                yield "C0621", found, _SHARE
            yield from _step_limits(gpu, block, profile)
            if algorithm.proto in profile.loose_sends:
                yield from _overtaken_sends(algorithm, gpu, block, profile)


def _step_limits(gpu: Gpu, block: Threadblock, profile: Profile) -> _Found:
    for step in block.steps:
        if step.type not in profile.ops:
            takes = ", ".join(sorted(profile.ops))
            message = f"{place(gpu, block, step)}: {profile.title} does not run `{step.type}`; it runs {takes}"
            yield "C0620", message, "the pass `unfuse` replaces such instructions"
        if step.cnt > profile.max_count:
            message = f"{place(gpu, block, step)} moves {step.cnt} chunks; at most {profile.max_count} can be moved"
            yield "C0624", message, "`coalesce` takes an upper bound of what it joins"
        if step.depid > profile.max_dependency_id:
            message = (
                f"{place(gpu, block, step)} waits for threadblock {step.depid}; "
                f"only 0 to {profile.max_dependency_id} can be waited for (the number is kept in one signed byte)"
            )
            yield "C0625", message, f"use at most {profile.max_dependency_id + 1} threadblocks a rank"
        if max(step.srcoff, step.dstoff) > profile.max_offset:
            offset = max(step.srcoff, step.dstoff)
            message = f"{place(gpu, block, step)}: offset {offset}; offsets are at most {profile.max_offset}"
            yield "C0626", message, _FEWER_CHUNKS


def _overtaken_sends(algorithm: Algorithm, gpu: Gpu, block: Threadblock, profile: Profile) -> _Found:
    """Find sends whose data the next step overwrites while slower threads still read them.

    Where a send ends without a barrier, a step after it is safe only if each thread writes what it has read
    itself, that is at the same offset. Any step that is no send ends with a barrier.
    """
    same = algorithm.inplace and KINDS.get(algorithm.coll) not in ("allgather", "reduce-scatter")
    sent: list[Step] = []
    for step in block.steps:
        if step.type == "s":
            sent.append(step)
        elif step.type != "nop":
            for send in sent if OPCODES[step.type].writes_dst else ():
                together = send.srcbuf == step.dstbuf or (same and {send.srcbuf, step.dstbuf} == {"i", "o"})
                apart = send.srcoff - step.dstoff
                if together and apart and -send.cnt < apart < step.cnt:
                    message = (
                        f"{place(gpu, block, step)} writes what step {send.s} may still be sending: "
                        f"{profile.title} ends a send without a barrier under {algorithm.proto}"
                    )
                    yield "C0634", message, "use another protocol, or put the two steps in different threadblocks"
            sent = []
