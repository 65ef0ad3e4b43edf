"""The passes of the ``-O`` levels and those that targets need, each with the reason for its place."""

from __future__ import annotations

from collections.abc import Callable

from collc.backends.base import Limits
from collc.ir.frozen import frozen
from collc.ir.spec import Option

__all__ = [
    "COPIES", "CUT", "EQUAL", "FIT", "FUSE", "INSTANCES", "JOIN", "LEGAL", "LEGALIZING", "LEGAL_WRITES", "LEVELS",
    "LIST", "LOWER", "MERGE", "PIPELINE", "PUT", "SCHEDULED", "SHAPE", "SPREAD", "UNFUSE", "Entry",
]  # fmt: skip


def _always(limits: Limits) -> bool:
    return True


def _unfused(limits: Limits) -> bool:
    return not limits.fused


def _equal_chunks(limits: Limits) -> bool:
    return limits.equal_chunks


def _one_sided(limits: Limits) -> bool:
    return limits.one_sided


def _several_instances(limits: Limits) -> bool:
    return limits.instances is not None


def _limited(limits: Limits) -> bool:
    return limits.max_threadblocks is not None or limits.max_channels is not None or limits.max_steps is not None


@frozen
class Entry:
    """A pass of an ``-O`` level, the reason for its place, and the targets that need it."""

    name: str
    why: str
    when: Callable[[Limits], bool] = _always
    options: tuple[Option, ...] = ()


EQUAL = Entry(
    "whole-chunks", "runs before shards are cut into chunks: all chunks of the runtime have one size", _equal_chunks
)
CUT = Entry("discretize", "runtimes move whole chunks, so exact intervals become chunks before lowering")
_NUMBER = Entry("renumber", "runs before lowering, which sends adjacent chunks in one message")
LOWER = Entry("lower", "fixes the order of instructions on each rank, which all later passes keep")
UNFUSE = Entry(
    "unfuse", "runs before balancing, which counts instructions: a runtime without fused ones runs more", _unfused
)
FIT = Entry("balance-threadblocks", "keeps the file within the runtime's limits: over them it would not load", _limited)
JOIN = Entry("lower", "joins transfers of one step into one message, and does not join successive pieces")
SHAPE = Entry("lower", "joins transfers of one step into one message, as the schedule by hand has them")
MERGE = Entry("coalesce", "runs before balancing, which weighs messages: fewer and larger ones are fewer to place")
_BYPASS = Entry("eliminate-copies", "runs before messages are placed: a copy that is gone needs no threadblock")
SPREAD = Entry("balance-threadblocks", "runs after messages have changed, and places those left evenly by bytes")
_REORDER = Entry("reorder-fifo", "runs when messages have their connections, before threadblocks join in that order")
FUSE = Entry(
    "fuse", "runs after balancing, which decides the connections and channels that threadblocks can join", _limited
)
_SPLIT = Entry(
    "unfuse",
    "runs after fusing, which finds data that need not be stored: the runtime has no fused instructions",
    _unfused,
)
_PRUNE = Entry("prune-dependencies", "runs when threadblocks are final: they decide which dependencies imply others")
_PACK = Entry("reuse-scratch", "runs last: it moves data only where the remaining dependencies keep them apart")
LIST = Entry("lay-out", "files list all ranks of a template, on one of which passes worked")
INSTANCES = Entry("replicate", "runs last: the schedule asks for instances")

COPIES = Entry(
    "replicate", "runs when threadblocks are final: the target has the option `instances`", _several_instances,
    (Option("max-threadblocks", "none"),))  # fmt: skip  # the target's limit is of one instance
PUT = Entry("one-sided", "the runtime's ranks write into the buffers of their peers", _one_sided)
SWITCHES = Entry(
    "switch-operations", "the schedule shares links in switches, which a program of sends and receives cannot do"
)
_PLACE = Entry("place-messages", "runs before operations join: where messages land decides which can", _one_sided)
_COMBINE = Entry("combine-operations", "runs when messages have their places: blocks run few operations", _one_sided)
_SHAKE = Entry("handshake", "runs when all remote writes and reads are known: it makes ranks wait for them", _one_sided)
_WITHIN = Entry("fit-operations", "runs last: it counts the operations of blocks", _one_sided)

#: passes between levels of the IR
PIPELINE = Entry("pipelining", "trees have no steps, so this pass writes them out step by step")
SCHEDULED = "makes the schedule"

#: from a program to a one-sided one
_WRITES = (COPIES, PUT, _PLACE, _COMBINE, _SHAKE, _WITHIN)

#: level -> its passes after synthesis, each with the reason for its place
LEVELS: dict[str, tuple[Entry, ...]] = {
    "0": (EQUAL, CUT, LOWER, UNFUSE, FIT, COPIES, PUT, _SHAKE, _WITHIN),
    "1": (EQUAL, CUT, LOWER, MERGE, UNFUSE, FIT, _PRUNE, *_WRITES),
    "2": (EQUAL, CUT, _NUMBER, LOWER, MERGE, SPREAD, FUSE, _SPLIT, _PRUNE, _PACK, *_WRITES),
    # Removing copies and listing messages anew seldom gain anything, and take as long as all the rest.
    "3": (EQUAL, CUT, _NUMBER, LOWER, _BYPASS, MERGE, SPREAD, _REORDER, FUSE, _SPLIT, _PRUNE, _PACK, *_WRITES),
}  # fmt: skip

#: the passes that any program for a target needs, in this order; appended if a pipeline lacks them
LEGAL = (UNFUSE, FIT)
#: the passes that any one-sided program needs
LEGAL_WRITES = (_SHAKE, _WITHIN)
LEGALIZING = tuple(entry.name for entry in LEGAL)
