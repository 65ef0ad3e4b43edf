"""The uses of a program: in place, out of place, and up to which size. This module executes it to find them."""

from __future__ import annotations

from collc.ir.diagnostic import CollcError, Diagnostic, Excess, Kind, error
from collc.ir.editing import select
from collc.ir.frozen import frozen
from collc.ir.layout import layout, locations
from collc.ir.machine import smallest_depth
from collc.ir.program import Opcode, Program
from collc.ir.verify import Check

from ..base import Hang
from .execution import data_checks, mode_name
from .fifos import safe_split, stuck
from .model import Algorithm
from .profiles import PROTOCOLS, Profile
from .program import Loaded
from .windows import UNBOUNDED, first_size, largest_size, splits, tile_limit

__all__ = ["Sizes", "find_modes", "find_sizes", "served"]


@frozen
class Sizes:
    """The calls that a file serves, in bytes. ``largest`` is None if there is no limit; ``why`` is its reason.

    ``hangs`` is the hang of larger calls, if that is the reason.
    """

    smallest: int
    largest: int | None
    why: str = ""
    hangs: Hang | None = None


def find_modes(program: Program, requested: tuple[bool | None, bool | None]) -> tuple[bool, bool]:
    """Return whether a file serves calls in place, and whether it serves calls out of place.

    ``requested`` has for each: requested, excluded, or None for "if the program is correct". Raises C0631 if a
    requested use fails, C0632 if all uses fail.
    """
    if False not in requested and all(check.ok for check in data_checks(program, [True, False])):
        return True, True
    use: list[bool] = []
    failed: list[Check] = []
    for mode, request in zip((True, False), requested, strict=True):
        wrong = [] if request is False else [c for c in data_checks(program, [mode]) if not c.ok]
        if wrong and request:
            what = f"the program is wrong {mode_name(mode)}"
            raise CollcError([Diagnostic("C0631", f"{what}: {c.name}: {c.detail}") for c in wrong])
        failed += [c for c in wrong if c not in failed]
        use.append(request is not False and not wrong)
    if not any(use):
        raise CollcError([Diagnostic("C0632", f"the program is wrong: {c.name}: {c.detail}") for c in failed])
    return use[0], use[1]


def served(program: Program, modes: tuple[bool, bool]) -> Program:
    """Return what a file needs of a program for these uses: in place only, copies of a place onto itself are not.

    ``modes`` say whether the file serves calls in place, and out of place.
    """
    if modes != (True, False):
        return program
    src, dst = locations(program, layout(program, inplace=True))
    idle = (program.opcode == Opcode.COPY) & (src == dst)
    return select(program, ~idle) if idle.any() else program


def find_sizes(
    program: Program,
    draft: Algorithm,
    profile: Profile,
    smallest: int = 0,
    requested: int | None = None,
    scale: int = 1,
) -> Sizes:
    """Return the sizes of the calls that a program can serve. ``draft`` is its algorithm.

    One chunk of the algorithm is ``scale`` chunks of the program (see :class:`.program.Loaded`). ``requested`` is the
    largest call in bytes; None means the largest that neither deadlocks nor exceeds the runtime. Raises C0630 if the
    requested sizes are too large, C0633 if the program hangs at any size.
    """
    ceiling, why = _ceiling(profile, draft)
    safe, stops = _deadlock_free(Loaded(program, scale), draft, profile, smallest)
    hangs = None
    if safe is not None and stops is not None and (ceiling is None or safe < ceiling):
        ceiling, why, hangs = safe, stops.why, stops
    if requested is not None and ceiling is not None and requested > ceiling:
        raise error(
            "C0630", f"calls of {requested} bytes are too large: the largest possible call has {ceiling} bytes",
            notes=[why], hint=f"set max-bytes to {ceiling}, or leave it out",
            kind=Kind.SIZE, excess=Excess("bytes", requested, ceiling),
        )  # fmt: skip
    if ceiling is not None and ceiling < smallest:
        found = f"min-bytes {smallest} is too large: the largest possible call has {ceiling} bytes"
        raise error("C0630", found, notes=[why], kind=Kind.SIZE, excess=Excess("bytes", smallest, ceiling))
    return Sizes(smallest, requested) if requested else Sizes(smallest, ceiling, why, hangs)


def _ceiling(profile: Profile, draft: Algorithm) -> tuple[int | None, str]:
    """Return the largest call (bytes) that the runtime allows, and the reason."""
    limit = tile_limit(draft.nchunksperloop, profile, draft.proto)
    why = f"no larger: a launch has at most {profile.max_tiles} tiles"
    scratch = max(gpu.s_chunks for gpu in draft.gpus)
    if profile.exclusive_max_bytes and scratch:
        # This runtime allocates scratch once, for the largest call of its files.
        limit, why = min(limit, profile.default_max_bytes), "no larger by default: scratch is allocated for this size"
    if limit < UNBOUNDED:
        return limit, why
    return (UNBOUNDED, "") if profile.exclusive_max_bytes else (None, "")


def _deadlock_free(loaded: Loaded, draft: Algorithm, profile: Profile, smallest: int) -> tuple[int | None, Hang | None]:
    """Return the largest call (bytes) that completes with the protocol's FIFOs, and the hang of larger calls.

    Both are None if all calls complete. Raises C0633 if the smallest call hangs.
    """
    depth, tile = PROTOCOLS[draft.proto].fifo_depth, profile.tile[draft.proto]
    most = splits(draft.nchunksperloop, smallest, None, tile)[1]
    least = safe_split(loaded, draft, most)
    if least == 1:
        return None, None
    if least is not None:
        first = first_size(draft, tile, least - 1)
        why = f"no larger: from {first} bytes on it hangs; {stuck(loaded, depth, least - 1)}"
        return largest_size(draft.nchunksperloop, tile, least), Hang(first, why)
    needed = smallest_depth(loaded.program)
    notes = [] if needed is None else [f"it completes with FIFOs of depth {needed}"]
    hint = "receive earlier, or use more channels"
    if needed is not None and depth < needed <= PROTOCOLS["LL"].fifo_depth:
        hint += ", or `proto=LL`, whose FIFOs are deeper"
    found = f"FIFOs of depth {depth} are too short: {stuck(loaded, depth, most)}"
    excess = None if needed is None else Excess("slots", needed, depth)
    raise error("C0633", found, notes=notes, hint=hint, kind=Kind.MISFIT, excess=excess)
