"""Fuse receives and sends of a template whose ranks forward what arrives, as on rings.

A block that receives and sends has one channel, and data pass all ranks of a ring. So a channel that is the same on all
ranks would carry all data. But if c ranks are the template, rank r may have the data of shard s on channel s - r modulo
c: their images have the same channels. That needs a cyclic group whose order c divides.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.group import Translations
from collc.ir.machine import completes_with
from collc.ir.symmetric_program import SymmetricProgram

from .assembling import assemble
from .limits import steps
from .merging import merge
from .orbit_channels import Room, on_channels
from .orbit_joining import JoinLimits, Turns
from .orbit_messages import relays, without_implied_waits
from .pairing import pair_blocks
from .relays import followed, without_delay

__all__ = ["Forwarding"]


class Forwarding:
    """A template of as many ranks as connections have channels, for fusing receives with the sends that forward them.

    ``prompt`` and ``through`` are pairs (receive, send) of :func:`.relays.without_delay`. Times are those of the model
    of :mod:`..analysis.timing` with ``alpha`` and ``unit``.
    """

    def __init__(self, program: SymmetricProgram, limits: JoinLimits, alpha: int, unit: int):
        self.program, self.limits = program, limits
        self.turns = Turns.of(program, alpha, unit)
        batched, times, clashes = program.batched, self.turns.times, self.turns.clashes
        found = relays(program, clashes)
        self.prompt = without_delay(batched, times, clashes, found)
        self.through = without_delay(batched, times, clashes, found, through=True)

    @classmethod
    def of(cls, program: SymmetricProgram, limits: JoinLimits, alpha: int, unit: int) -> Forwarding | None:
        """Return the template; None if only all ranks together have such channels, or messages are no runs on all."""
        group = program.group
        cyclic = program.width == 1 and isinstance(group, Translations) and len(group.shape) == 1
        short = limits.count is None or int(program.seed.count.max(initial=0)) <= limits.count
        if not (cyclic and short) or program.joined.any() or len(program.numbering) or program.fixed:
            return None
        found = _channels(program)
        width = next(n for n in range(found, group.order + 1) if group.order % n == 0)
        if width == group.order:
            return None
        room = Room(1, limits.steps, limits.channels, None, limits.count, limits.fused)
        spread = program if width == found else on_channels(program, width, room)
        return None if spread is None else cls(spread.widened(width), limits, alpha, unit)

    def joined(self, few: bool, through: bool = False) -> SymmetricProgram | None:
        """Return the template with blocks joined that forward data, or (``few``) all; None if that breaks limits.

        Receives are fused with sends that leave at once, or (``through``) as soon as their block is free. If FIFOs are
        full on all ranks, none can forward, and the result is None: in a program of all ranks, one that does not fuse
        lets the others forward.
        """
        given, turns, limits, flow = self.program, self.turns, self.limits, self.through if through else self.prompt
        length = steps(given.seed, limits.fused)
        pairs = pair_blocks(given.batched, flow, few, length, limits.steps, limits.fused)
        if limits.channels is not None and int(pairs.channel.max(initial=0)) >= limits.channels:
            return None
        follow = followed(given.batched, flow, pairs)
        merged = merge(
            given.batched, turns.times.due, lambda: turns.place, turns.clashes, follow, pairs.host, limits.depth
        )
        if merged is None or not np.array_equal(merged.follow, follow):
            return None
        seed, _ = assemble(given.seed, merged, pairs)
        found = attrs.evolve(given, seed=seed, joined=np.zeros(seed.num_instructions, dtype=bool))
        fits = limits.steps is None or int(steps(seed, limits.fused).max(initial=0)) <= limits.steps
        return without_implied_waits(found) if fits and completes_with(found.batched, limits.depth) else None


def _channels(program: SymmetricProgram) -> int:
    """Return the most connections from one rank to another."""
    ends = program.links.src * program.num_ranks + program.links.dst
    return int(np.unique(ends, return_counts=True)[1].max(initial=1))
