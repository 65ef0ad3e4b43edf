"""IR -> IR: synthesis, transforms, lowering, optimization.

A pass ``takes`` verified IR of one level and ``gives`` IR of one level, which the driver verifies. A pass imports only
:mod:`collc.ir`, and assumes only the facts that it ``requires``. :mod:`.schedulers` lists the passes that schedule,
this module all others. Listing imports no pass.
"""

from __future__ import annotations

from collc.ir.registry import Entry, Registry

from .schedulers import SCHEDULERS

__all__ = ["PASSES", "RENAMED", "SCHEDULERS"]

#: the schedulers that are passes: all except ``auto``, which chooses among them
_SYNTHESIS = {name: Entry(*one[:3]) for name, one in SCHEDULERS.own.items() if name != "auto"}

#: name -> (module, class, one-line summary) of the passes that change schedules and programs
_TRANSFORMS: dict[str, tuple[str, str, str]] = {
    "pipelining": (
        "collc.passes.schedule.pipelining", "Pipelining", "write out a forest step by step, piece after piece",
    ),
    "reverse": ("collc.passes.schedule.reverse", "Reverse", "run a schedule backwards: allgather <-> reduce-scatter"),
    "transpose": (
        "collc.passes.expansion.isomorphic", "Transpose",
        "transpose an allgather on a network that is isomorphic to its transpose",
    ),
    "compose": ("collc.passes.schedule.compose", "Compose", "compose an allreduce from an allgather and its reverse"),
    "whole-chunks": (
        "collc.passes.schedule.whole_chunks", "WholeChunks", "cut shards that differ in size into equal ones",
    ),
    "discretize": ("collc.passes.schedule.discretize", "Discretize", "divide every shard into equal chunks"),
    "renumber": (
        "collc.passes.schedule.renumber", "Renumber",
        "renumber chunks so that chunks of one message are neighbours",
    ),
    "lower": ("collc.passes.lowering.lower", "Lower", "lower a schedule to a program of instructions"),
    "lay-out": (
        "collc.passes.program.lay_out", "LayOut", "list all ranks of the program of one rank and a group",
    ),
    "coalesce": ("collc.passes.program.coalesce", "Coalesce", "send contiguous chunks in one message"),
    "balance-threadblocks": (
        "collc.passes.program.threadblocks", "BalanceThreadblocks",
        "distribute messages over threadblocks and channels, evenly by bytes, within a runtime's limits",
    ),
    "eliminate-copies": ("collc.passes.program.copies", "EliminateCopies", "remove copies"),
    "replicate": (
        "collc.passes.program.replicate", "Replicate",
        "run the program in parallel instances, each on its own data and channels",
    ),
    "assign-channels": (
        "collc.passes.program.channels", "AssignChannels",
        "assign few channels; data forwarded by a rank stay on one channel",
    ),
    "reorder-fifo": (
        "collc.passes.program.reorder", "ReorderFifo",
        "reorder sends by critical path; receive in send order",
    ),
    "prune-dependencies": (
        "collc.passes.program.prune", "PruneDependencies", "remove dependencies that other dependencies imply",
    ),
    "reuse-scratch": (
        "collc.passes.program.scratch", "ReuseScratch", "share scratch between data with disjoint lifetimes",
    ),
    "fuse": ("collc.passes.program.fuse", "Fuse", "fuse receives and sends into one instruction and one threadblock"),
    "unfuse": (
        "collc.passes.program.unfuse", "Unfuse", "replace fused instructions by receives, copies and reductions",
    ),
    "one-sided": (
        "collc.passes.one_sided.lower", "LowerOneSided",
        "lower a program to puts into the buffers of peers, and signals",
    ),
    "switch-operations": (
        "collc.passes.one_sided.in_network", "SwitchOperations",
        "lower an in-network schedule to operations of switches, puts and signals",
    ),
    "place-messages": (
        "collc.passes.one_sided.place", "PlaceMessages",
        "let messages land where their data belong, or in scratch that is free",
    ),
    "combine-operations": (
        "collc.passes.one_sided.combine", "CombineOperations", "combine one-sided operations of a block into fewer",
    ),
    "handshake": (
        "collc.passes.one_sided.handshake", "Handshake",
        "let ranks wait until the buffers of their peers may be written, and have been read",
    ),
    "fit-operations": (
        "collc.passes.one_sided.fit", "FitOperations", "cut blocks into successive ones whose operations fit",
    ),
}  # fmt: skip

#: former name of a pass -> its name today, for hints
RENAMED = {"stream": "pipelining"}

#: name -> (module, class, one-line summary); the class is imported when the pass is first used
PASSES: Registry[tuple[str, str, str]] = Registry(
    "pass", ("passes", "schedulers"), _SYNTHESIS, _TRANSFORMS, listed="`collc passes` lists them", renamed=RENAMED
)
