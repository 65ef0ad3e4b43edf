"""What a program can be used for: in place, out of place, up to which size. Found by executing it."""

from __future__ import annotations

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.machine import smallest_depth
from collc.ir.program import Program
from collc.ir.verify import Check

from .execution import data_checks, mode_name
from .fifos import safe_split, stuck
from .model import Algorithm
from .profiles import PROTOCOLS, Profile
from .program import Loaded
from .windows import ENDLESS, first_size, largest_size, splits, tile_limit

__all__ = ["Sizes", "find_modes", "find_sizes"]


@attrs.frozen
class Sizes:
    """The calls a file is for, in bytes. ``largest`` is nothing where there is no limit, ``why`` what limits it."""

    smallest: int
    largest: int | None
    why: str = ""


def find_modes(program: Program, asked: tuple[bool | None, bool | None]) -> tuple[bool, bool]:
    """Return whether a program is to be used in place and out of place.

    ``asked`` says for each: wanted, not wanted or, where nothing, where the program is right so. Raises C0631 where a
    wanted use fails, C0632 where all do.
    """
    if False not in asked and all(check.ok for check in data_checks(program, [True, False])):
        return True, True
    use: list[bool] = []
    failed: list[Check] = []
    for mode, want in zip((True, False), asked, strict=True):
        wrong = [] if want is False else [c for c in data_checks(program, [mode]) if not c.ok]
        if wrong and want:
            what = f"the program cannot be used {mode_name(mode)}"
            raise CollcError([Diagnostic("C0631", f"{what}: {c.name}: {c.detail}") for c in wrong])
        failed += [c for c in wrong if c not in failed]
        use.append(want is not False and not wrong)
    if not any(use):
        raise CollcError([Diagnostic("C0632", f"the program is wrong: {c.name}: {c.detail}") for c in failed])
    return use[0], use[1]


def find_sizes(
    program: Program,
    draft: Algorithm,
    profile: Profile,
    smallest: int = 0,
    wanted: int | None = None,
    scale: int = 1,
) -> Sizes:
    """Return the sizes of calls a program is to be used for, ``draft`` being its algorithm.

    ``scale`` of the program's chunks are one of the algorithm's (see :class:`.program.Loaded`).

    ``wanted`` is the largest call in bytes; nothing: the largest at which it neither deadlocks nor overruns the
    runtime. Raises C0630 where the sizes asked for are too large, C0633 where the program gets stuck at any size.
    """
    ceiling, why = _ceiling(profile, draft)
    safe, stops = _deadlock_free(Loaded(program, scale), draft, profile, smallest)
    if safe is not None and (ceiling is None or safe < ceiling):
        ceiling, why = safe, stops
    if wanted is not None and ceiling is not None and wanted > ceiling:
        raise error(
            "C0630", f"calls of {wanted} bytes are too large: at most {ceiling} bytes will do",
            notes=[why], hint=f"set max-bytes to {ceiling}, or leave it out",
        )  # fmt: skip
    if ceiling is not None and ceiling < smallest:
        found = f"no call of min-bytes {smallest} is small enough: at most {ceiling} bytes will do"
        raise error("C0630", found, notes=[why])
    return Sizes(smallest, wanted or ceiling, "" if wanted else why)


def _ceiling(profile: Profile, draft: Algorithm) -> tuple[int | None, str]:
    """Return the largest call the runtime itself allows, and why."""
    limit = tile_limit(draft.nchunksperloop, profile, draft.proto)
    why = f"no larger: a launch has at most {profile.max_tiles} tiles"
    scratch = max(gpu.s_chunks for gpu in draft.gpus)
    if profile.exclusive_max_bytes and scratch:
        # This runtime allocates scratch once, for the largest call it is told of.
        limit, why = min(limit, profile.default_max_bytes), "no larger by default: scratch is allocated for this size"
    if limit < ENDLESS:
        return limit, why
    return (ENDLESS, "") if profile.exclusive_max_bytes else (None, "")


def _deadlock_free(loaded: Loaded, draft: Algorithm, profile: Profile, smallest: int) -> tuple[int | None, str]:
    """Return the largest call, in bytes, that FIFOs of the protocol's depth let complete, and what stops larger ones.

    Nothing where all complete. Raises C0633 where even the smallest call gets stuck.
    """
    depth, tile = PROTOCOLS[draft.proto].fifo_depth, profile.tile[draft.proto]
    most = splits(draft.nchunksperloop, smallest, None, tile)[1]
    least = safe_split(loaded, draft, most)
    if least == 1:
        return None, ""
    if least is not None:
        first = first_size(draft, tile, least - 1)
        problem = stuck(loaded, depth, least - 1)
        return largest_size(draft.nchunksperloop, tile, least), f"no larger: from {first} bytes on it hangs; {problem}"
    needed = smallest_depth(loaded.program)
    notes = [] if needed is None else [f"it completes with FIFOs of depth {needed}"]
    hint = "let receives come earlier, or use more channels"
    if needed is not None and depth < needed <= PROTOCOLS["LL"].fifo_depth:
        hint += ", or `proto=LL`, whose FIFOs are deeper"
    found = f"FIFOs of depth {depth} are too short: {stuck(loaded, depth, most)}"
    raise error("C0633", found, notes=notes, hint=hint)
