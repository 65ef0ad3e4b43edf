"""Number the ranks of a one-sided program anew: plans are for the ranks that take part only."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.one_sided.program import OneSided

__all__ = ["members_only", "relays"]


def relays(program: OneSided) -> tuple[int, ...]:
    """Return the ranks that execute operations and do not take part in the collective, ascending."""
    found: list[int] = np.setdiff1d(program.block_rank, program.collective.ranks).tolist()
    return tuple(found)


def members_only(program: OneSided) -> OneSided:
    """Return the program of the members alone, if no rank only relays: rank v is the v-th member."""
    collective = program.collective
    if collective.members is None:
        return program
    place, ranks = collective.places, collective.ranks
    kept = {name: getattr(program, name)[ranks] for name in ("inputs", "outputs", "scratch")}
    named = {
        name: place[getattr(program, name).astype(np.int64)]
        for name in ("channel_rank", "semaphore_rank", "block_rank", "item_rank", "groups")
    }
    peers = program.channel_peer.astype(np.int64)
    named["channel_peer"] = np.where(peers < 0, -1, place[np.maximum(peers, 0)])
    root = None if collective.root is None else int(place[collective.root])
    alone = attrs.evolve(collective, num_ranks=len(ranks), members=None, root=root)
    return attrs.evolve(program, collective=alone, **kept, **named)
