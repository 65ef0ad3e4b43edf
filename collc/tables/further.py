"""The columns of the tables that a verb has beside its first one: ``--table NAME`` chooses one of them."""

from __future__ import annotations

from .columns import Column
from .shared import BYTES, KIND, NAME, RANKS, SCHEDULER, exact, microseconds, seconds, share, size, times

__all__ = [
    "ALPHAS",
    "CANDIDATES",
    "CHECKED",
    "CHOICES",
    "CROSSOVERS",
    "DECLARED",
    "FASTEST",
    "FILES",
    "IMPORTED",
    "NETWORKS",
    "ORBITS",
    "PROGRAMS",
    "RANGES",
    "ROOTS",
    "SCHEDULES",
    "SIMULATIONS",
    "SKIPPED",
    "STEPS",
    "TIMED",
    "TOGETHER",
    "TOGETHER_PARTS",
    "TOGETHER_SIMULATED",
    "TRIED",
]


_PLANNED = Column("planned", "plan of rank", "integer", "the root that has the plan")

#: one schedule: what the lines above the points of `collc cost` say
SCHEDULES = (
    NAME, KIND, RANKS,
    Column("degree", "degree", "integer", "links out of every rank, if all have the same number"),
    SCHEDULER,
    Column("T_L", "T_L", "integer", "steps of the schedule as declared"),
    Column("T_L_bound", "at least", "integer", "the least number of steps of any schedule"),
    *exact("T_B", "T_B", "bandwidth time in M/B, where all ranks have the same bandwidth B", True),
    *exact("T_B_bound", "bound", "the least T_B of any schedule", True),
    *exact("time_per_byte", "s/B", "bandwidth time a byte of M: seconds, or units of a link", short=False),
    *exact("time_per_byte_bound", "bound", "the least time a byte of any schedule", short=False),
    Column("bound_kind", "bound of", "text", "among what the bound is the least"),
    Column("bound_met", "bound met", "flag", "whether the schedule takes no longer than the bound"),
    *exact("T_C", "T_C", "the most that a rank adds, over all steps, in M", True),
    Column("chunks_per_shard", "chunks", "integer", "parts into which the schedule divides a shard"),
    Column("transfers", "transfers", "integer", "number of transfers"),
    *exact("one_over_x", "1/x", "ForestColl's 1/x of the trees, per GB/s or per unit of a link", True),
    Column("k", "k", "integer", "trees of every root", optional=True),
    Column("trees", "trees", "integer", "different trees", optional=True),
    Column("max_height", "height", "integer", "hops from a root to its farthest rank", optional=True),
)  # fmt: skip

#: a number of trees that `forest` compared
TRIED = (
    NAME,
    Column("k", "trees a root", "integer", "trees of every root"),
    *exact("part", "part", "the part of the best bandwidth that they reach", short=False, show=share),
)

#: sizes for which `auto` chose one algorithm
RANGES = (
    NAME,
    Column("min_bytes", "from", "integer", "smallest size, in bytes", size),
    Column("max_bytes", "to", "integer", "largest size, in bytes; none if there is no end", size),
    Column("algorithm", "algorithm", "text", "the fastest algorithm"),
    Column("using", "using", "text", "its scheduler with options"),
    Column("first_us", "takes", "number", "its time at the smallest size, in microseconds", microseconds),
    Column("last_us", "to", "number", "its time at the largest size, in microseconds", microseconds),
    *exact("crossing", "meet at", "size at which it takes as long as the algorithm before, in bytes", True),
)

#: a candidate of `auto` at one end of a range
CANDIDATES = (
    NAME,
    Column("algorithm", "algorithm", "text", "the candidate"),
    Column("using", "using", "text", "its scheduler with options"),
    Column("steps", "steps", "integer", "its steps"),
    Column("chosen", "chosen", "flag", "whether it is the fastest at some size"),
    BYTES,
    Column("time_us", "time", "number", "predicted time, in microseconds", microseconds),
    Column("time_s", "time", "rational", "the exact predicted time, in seconds", hidden=True),
)

SKIPPED = (
    NAME,
    Column("algorithm", "algorithm", "text", "what `auto` did not compare"),
    Column("reason", "reason", "text", "why"),
)

#: a collective with several roots at one size
ROOTS = (
    NAME, BYTES,
    Column("best", "best root", "integer", "the planned root of the least time"),
    Column("best_time_us", "time", "number", "its time, in microseconds", microseconds),
    Column("worst", "worst root", "integer", "the planned root of the greatest time"),
    Column("worst_time_us", "time", "number", "its time, in microseconds", microseconds),
)  # fmt: skip

ORBITS = (
    NAME, _PLANNED,
    Column("served", "serves", "text", "the roots that the plan serves, itself included"),
)  # fmt: skip

#: the collectives of one `together` block
TOGETHER = (
    Column("collectives", "collectives", "text", "the names of the collectives"),
    *exact("time", "time", "time of all at once by the loads of the links, in seconds", short=False, show=seconds),
    Column("link", "most on", "text", "the link that carries most"),
    *exact("time_bound", "bound", "the least time of any schedules, in seconds", short=False, show=seconds),
    *exact("ratio", "time / bound", "the time over the bound", short=False, show=times),
    *exact("tree_time_bound", "trees", "the least time of any schedules by trees", True, short=False, show=seconds),
)

TOGETHER_PARTS = (
    Column("block", "block", "integer", "the number of the block in the file, from 0"),
    NAME,
    *exact("time", "time", "time of its trees on its part of the links, in seconds", short=False, show=seconds),
)

TOGETHER_SIMULATED = (
    Column("collectives", "collectives", "text", "the names of the collectives"),
    *exact("time", "time", "the time of the slowest on its part of every link, in seconds", short=False, show=seconds),
)

#: one simulation: what the lines above the points of `collc simulate` say
SIMULATIONS = (
    NAME, KIND, RANKS, SCHEDULER,
    Column("topology", "topology", "text", "the network"),
    Column("routing", "routing", "text", "`scheduled`, or over `minimal` routes"),
    Column("steps", "steps", "integer", "steps of the schedule"),
    Column("latency_deficiency", "Lambda", "number", "steps over log2 of the ranks"),
    *exact("congestion", "congestion", "the bandwidth term over n/D beta (Psi times Xi)"),
    *exact("bandwidth_deficiency", "Psi", "Psi of the Swing paper"),
    *exact("congestion_deficiency", "Xi", "Xi of the Swing paper", True),
    *exact("max_link_load", "max link load", "the most of M that a link carries in a step"),
)  # fmt: skip

#: a step, or equal steps that follow each other
STEPS = (
    NAME,
    Column("step", "step", "integer", "the number of the step, from 0"),
    Column("times", "times", "integer", "number of equal steps that follow each other"),
    Column("messages", "messages", "integer", "messages of a step"),
    Column("hops", "links", "integer", "links of the longest route"),
    *exact("max_link_load", "max link load", "the most of M that a link carries"),
    Column("link", "on", "text", "the link that carries it"),
)

CROSSOVERS = (
    Column("size_bytes", "size", "integer", "the first size at which another collective is the fastest", size),
    Column("from", "until then", "text", "the fastest at smaller sizes"),
    Column("to", "then", "text", "the fastest from this size on"),
)

#: the fastest topology at one size
FASTEST = (
    BYTES,
    Column("time_us", "time", "number", "predicted time, in microseconds", microseconds),
    Column("best", "fastest", "text", "the fastest topology"),
    Column("scheduler", "scheduler", "text", "the scheduler of its steps"),
)

#: one file of a compilation
FILES = (
    Column("path", "file", "text", "the file"),
    Column("target", "target", "text", "the target"),
    Column("collective", "collective", "text", "the collective's name"),
    Column("bytes", "size", "integer", "its size", size),
    Column("sha256", "sha256", "text", "the digest of its content"),
)

#: the program of one collective
PROGRAMS = (
    NAME, RANKS,
    Column("threadblocks_max", "threadblocks", "integer", "most threadblocks of a rank"),
    Column("channels", "channels", "integer", "number of channels"),
    Column("steps_max", "steps", "integer", "most instructions of a threadblock"),
    Column("instructions", "instructions", "integer", "instructions of all ranks"),
    Column("chunks", "chunks", "integer", "chunks of a shard"),
)  # fmt: skip

#: latency by the size of messages, of `collc calibrate`
ALPHAS = (
    Column("most_message_bytes", "up to", "number", "largest size of a message, in bytes; none if there is no end"),
    Column("alpha_us", "alpha", "number", "latency of a step, in microseconds", microseconds),
)

#: the fastest of NCCL's algorithms in one range of sizes
CHOICES = (
    Column("collective", "collective", "text", "the collective"),
    Column("nodes", "machines", "integer", "number of machines"),
    RANKS,
    Column("min_bytes", "from", "integer", "smallest size, in bytes", size),
    Column("max_bytes", "to", "integer", "largest size, in bytes; none if there is no end", size),
    Column("algorithm", "algorithm", "text", "NCCL's name of the algorithm"),
    Column("protocol", "protocol", "text", "NCCL's name of the protocol"),
)

#: what `--tune` timed
TIMED = (
    Column("collective", "collective", "text", "what the collective does"),
    RANKS,
    Column("nodes", "nodes", "integer", "number of machines"),
    Column("size_bytes", "up to", "integer", "the largest size for which the times are used", size),
    Column("library_us", "library", "number", "time of the library's own collective, in microseconds", microseconds),
    Column("compiled_us", "compiled", "number", "time of the compiled collective, in microseconds", microseconds),
    Column("is_compiled", "compiled used", "flag", "whether calls use the compiled collective"),
    Column("path", "file", "text", "the file that keeps the times"),
)

_PATH = Column("path", "file", "text", "the file")
_SWITCHES = Column("switches", "switches", "integer", "number of switches")
_LINKS = Column("links", "links", "integer", "number of directed links")

#: a file that was checked
CHECKED = (
    _PATH,
    Column("ok", "right", "flag", "whether the file is right"),
    Column("topologies", "topologies", "integer", "declared topologies"),
    Column("collectives", "collectives", "integer", "declared collectives"),
    Column("errors", "errors", "integer", "errors that were found"),
)  # fmt: skip

#: a topology of a file
NETWORKS = (
    _PATH,
    Column("name", "topology", "text", "the topology's name in the file"),
    RANKS, _SWITCHES, _LINKS,
    Column("degree", "degree", "integer", "links out of every rank, if all have the same number", optional=True),
    Column("unit", "unit", "text", "the unit of bandwidths: B/s, or empty for units of a link", optional=True),
)  # fmt: skip

#: a collective of a file
DECLARED = (
    _PATH, NAME,
    Column("kind", "kind", "text", KIND.help),
    Column("topology", "topology", "text", "its topology"),
    SCHEDULER,
    Column("emits", "emits", "text", "targets of its emits"),
)  # fmt: skip

#: a network that `collc import` read
IMPORTED = (
    Column("name", "network", "text", "the network's name in the .coll file"),
    Column("format", "format", "text", "the format of its files"),
    Column("files", "files", "text", "its files"),
    RANKS, _SWITCHES, _LINKS,
)  # fmt: skip
