"""Whether the FIFOs suffice, and up to which size of calls.

Small calls send many chunks in one message, large calls one by one: larger calls need more slots. A file without other
faults that completes with messages of A chunks also completes with longer ones (see
:func:`collc.ir.machine.smallest_split`). So it completes from one A on, and up to one size of calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.editing import without_idle_nops
from collc.ir.machine import execute, smallest_depth, smallest_split
from collc.ir.verify import Check

from .model import Algorithm
from .profiles import MAX_SPLIT, PROTOCOLS, Profile
from .program import Loaded
from .windows import (
    behaviours,
    first_size,
    largest_size,
    message_counts,
    size_limit,
    size_unit,
    smallest_call,
    splits,
    stated_limit,
)

__all__ = ["fifo_check", "safe_split", "stuck"]


def stuck(loaded: Loaded, depth: int, split: int) -> str:
    """Return the place where the program hangs with FIFOs of ``depth`` and messages of ``split`` chunks, or ""."""
    deadlock = execute(loaded.program, depth, split * loaded.scale).deadlock
    return deadlock.describe(loaded.program) if deadlock else ""


def safe_split(loaded: Loaded, algorithm: Algorithm, most: int = MAX_SPLIT) -> int | None:
    """Return the least number of chunks in a message, 1 to ``most``, with which the program completes.

    None if it completes with none of them. The program must have matched messages.
    """
    tried = behaviours(message_counts(algorithm), 1, most)
    program = without_idle_nops(loaded.program)
    found = smallest_split(program, PROTOCOLS[algorithm.proto].fifo_depth, [a * loaded.scale for a in tried])
    return None if found is None else found // loaded.scale


def fifo_check(loaded: Loaded, algorithm: Algorithm, profiles: Sequence[Profile]) -> Check:
    """Return whether the program completes with the FIFOs of its protocol, in all calls that the file serves.

    The detail states the largest safe size for each runtime. If a call hangs, it states the size and the place.
    """
    depth, least = PROTOCOLS[algorithm.proto].fifo_depth, safe_split(loaded, algorithm)
    windows = {p.name: _window(algorithm, p) for p in profiles}
    low, high = min(a for a, _ in windows.values()), max(b for _, b in windows.values())
    if least == 1:
        held = f"{low} to {high} chunks" if low < high else _chunks(high)
        return Check("deadlock", True, f"completes with FIFOs of depth {depth} at any size; messages hold {held}")
    if least is None:
        where = f"in calls of {smallest_call(algorithm)} bytes and more"
        needed = smallest_depth(loaded.program)
        return Check(
            "deadlock", False, f"hangs with FIFOs of depth {depth} ({needed or 'no depth'} suffices) {where}: "
            f"messages of at most {_chunks(high)}: {stuck(loaded, depth, high)}",
        )  # fmt: skip
    limits = _by_runtime({p.name: _limit(algorithm, p, least) for p in profiles})
    if low >= least:
        return Check("deadlock", True, f"completes with FIFOs of depth {depth}; in larger calls it hangs: {limits}")
    return Check(
        "deadlock", False, f"hangs with FIFOs of depth {depth}: {limits}; with messages of at most "
        f"{_chunks(least - 1)}: {stuck(loaded, depth, least - 1)}",
    )  # fmt: skip


def _window(algorithm: Algorithm, profile: Profile) -> tuple[int, int]:
    """Return the least and the greatest number of chunks in a message over all calls that the file serves."""
    smallest, largest = smallest_call(algorithm), size_limit(algorithm, profile)
    if largest is not None:  # no call is larger than the last multiple
        largest = max(largest // size_unit(algorithm) * size_unit(algorithm), smallest)
    return splits(algorithm.nchunksperloop, smallest, largest, profile.tile[algorithm.proto])


def _limit(algorithm: Algorithm, profile: Profile, least: int) -> str:
    """Say from which size on messages hold fewer than ``least`` chunks, and which maxBytes excludes such calls."""
    tile = profile.tile[algorithm.proto]
    largest = stated_limit(largest_size(algorithm.nchunksperloop, tile, least), profile)
    first = first_size(algorithm, tile, least - 1)
    if largest_size(algorithm.nchunksperloop, tile, least) < smallest_call(algorithm):
        return f"in calls of {first} bytes and more, which is every call"
    return f"in calls of {first} bytes and more (the largest safe maxBytes is {largest})"


def _by_runtime(texts: dict[str, str]) -> str:
    """Return the texts; if they differ, each with its runtimes."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return ", ".join(f"{text} for {' and '.join(runtimes)}" for text, runtimes in names.items())


def _chunks(number: int) -> str:
    return f"{number} chunk{'' if number == 1 else 's'}"
