"""The columns of every table that the command prints as CSV or Markdown."""

from __future__ import annotations

from .columns import Column
from .shared import (
    ALGBW,
    BUSBW,
    BYTES,
    KIND,
    NAME,
    RANKS,
    SCHEDULER,
    exact,
    exact_time,
    gigabytes,
    microseconds,
    per_byte,
    percent,
    seconds,
    share,
    size,
    times,
)

__all__ = [
    "BASELINES",
    "CACHE_ITEMS",
    "CACHE_PARTS",
    "CODES",
    "COST",
    "FIT",
    "FRONTIER",
    "GROWN",
    "NAMES",
    "NATIVE",
    "OPTIONS",
    "PLACES",
    "POINTS",
    "RACKED",
    "RECABLED",
    "REPLANNED",
    "ROBUST",
    "RUN",
    "SCHEDULED",
    "SIMULATED",
    "SIMULATION",
    "SINGLE_FAULTS",
    "STEP_MODELS",
    "SWEEP",
    "TIMES",
    "TOPOLOGIES",
    "TRAIN",
    "VERIFIED",
    "WORKLOADS",
]


#: one size of one collective: what `points` holds in JSON
POINTS = (
    BYTES,
    Column("steps", "steps", "integer", "steps that are taken at this size"),
    Column("pieces", "pieces", "integer", "pieces in which trees send the data at this size"),
    Column("time_us", "time", "number", "predicted time, in microseconds", microseconds),
    ALGBW, BUSBW,
    Column("T_C", "T_C/(M gamma)", "rational", "the most that a rank adds, over all steps, in M", share),
    Column("algorithm", "algorithm", "text", "what `auto` chose for this size", optional=True),
)  # fmt: skip

#: the times of a simulation with and without ranks that wait for all others before every step
STEP_MODELS = (
    Column("in_step_us", "in step", "number", "time if every step waits for all ranks, in us", microseconds, True),
    Column("run_ahead_us", "run ahead", "number", "time if ranks run ahead, in microseconds", microseconds, True),
)
SIMULATED = (*POINTS, *STEP_MODELS)

COST = (
    NAME, KIND, RANKS, SCHEDULER,
    Column("T_L", "T_L", "integer", "steps of the schedule as declared"),
    *exact("T_B", "T_B", "bandwidth time in M/B, where all ranks have the same bandwidth B", True),
    *exact("time_per_byte", "s/B", "bandwidth time a byte of M: seconds, or units of a link", short=False),
    *exact("time_per_byte_bound", "bound", "the least time a byte of any schedule", short=False),
    *POINTS,
)  # fmt: skip

BASELINES = (
    NAME, KIND, RANKS, BYTES,
    Column("algorithm", "algorithm", "text", "`collc`, or the baseline"),
    Column("using", "using", "text", "the algorithm of collc's schedule, or the scheduler of the baseline"),
    Column("time_us", "time", "number", "predicted time, in microseconds", microseconds),
    Column("ratio", "baseline / collc", "number", "the time over that of collc", times, True),
    Column("best", "best", "flag", "whether no baseline is faster at this size"),
)  # fmt: skip

SIMULATION = (
    NAME, KIND, RANKS, SCHEDULER,
    Column("topology", "topology", "text", "the network"),
    Column("routing", "routing", "text", "`scheduled`, or over `minimal` routes"),
    *exact("congestion", "congestion", "the bandwidth term over n/D beta (Psi times Xi)"),
    *SIMULATED,
)  # fmt: skip

FRONTIER = (
    Column("best", "best", "flag", "the fastest topology at the given size, latency and bandwidth"),
    Column("T_L", "T_L", "integer", "steps of the schedule"),
    *exact("T_B", "T_B", "bandwidth time in M/B"),
    Column("T_B_reduce_scatter", "reduce-scatter", "rational", "bandwidth time of a reduce-scatter", optional=True),
    Column("diameter", "diameter", "integer", "hops between the ranks that are farthest apart"),
    Column("bidirectional", "bidirectional", "flag", "whether every link has a reverse"),
    *exact("alltoall_rate", "all-to-all rate", "rate of an all-to-all in links, which a routing reaches", True),
    *exact("alltoall_rate_upper", "at most", "what no rate exceeds; equal if the rate is exact", True),
    Column("only_for_alltoall", "for all-to-all", "flag", "whether only the all-to-all rate keeps the row"),
    Column("time_us", "time", "number", "predicted time, in microseconds", microseconds),
    Column(
        "time_least_us", "at least", "number", "the time at the upper bound of the all-to-all rate", microseconds, True
    ),
    Column("scheduler", "scheduler", "text", "the scheduler that takes these steps"),
    Column("expression", "topology", "text", "the topology, as the language writes it"),
)

RACKED = (
    Column(
        "links_between_racks", "between racks", "integer", "directed links between racks, with --rack", optional=True
    ),
    Column("links_between_racks_bound", "at least", "integer", "what no assignment to racks goes below", optional=True),
)

#: a network, a collective and a scheduler at one size
SWEEP = (
    Column("network", "network", "text", "the network, as the language writes it, or its name"),
    RANKS,
    Column("degree", "degree", "integer", "links out of every rank, if all have the same number"),
    Column("collective", "collective", "text", "the collective with its attributes"),
    Column("using", "using", "text", "the scheduler that was asked for, with its options"),
    Column("scheduler", "by", "text", "the scheduler of the schedule", optional=True),
    Column("algorithm", "algorithm", "text", "what `auto` chose for this size", optional=True),
    BYTES,
    Column("best", "best", "flag", "the fastest of its network, collective and size"),
    Column("steps", "steps", "integer", "steps that are taken at this size"),
    Column("pieces", "pieces", "integer", "pieces in which trees send the data at this size"),
    Column("T_L", "T_L", "integer", "steps of the schedule of this size"),
    *exact("T_B", "T_B", "bandwidth time in M/B, where all ranks have the same bandwidth B", True),
    *exact("time_per_byte", "s/B", "bandwidth time a byte of M: seconds, or units of a link", True),
    Column("time_s", "time", "rational", "the exact predicted time, in seconds", hidden=True),
    Column("time_us", "time", "number", "predicted time, in microseconds", microseconds),
    ALGBW, BUSBW,
    Column("bound_us", "bound", "number", "the least bandwidth time that is proved, in microseconds", microseconds),
    Column("over_bound", "time / bound", "number", "the time over the bound", times),
    Column("code", "code", "text", "the code of the mistake, if there is no time", optional=True),
    Column("message", "why", "text", "its message", optional=True),
)  # fmt: skip

#: larger topologies, with --expand-to
GROWN = (
    Column("n", "nodes", "integer", "number of nodes"),
    Column("T_L", "T_L", "integer", "steps of the schedule"),
    *exact("T_B", "T_B", "bandwidth time in M/B"),
    Column("bidirectional", "bidirectional", "flag", "whether every link has a reverse"),
    Column("links_kept", "kept", "integer", "directed links of the smaller topology that stay"),
    Column("links", "of", "integer", "directed links of the smaller topology, without loops"),
    Column("links_kept_bound", "at most", "integer", "what no placement of the nodes exceeds"),
    Column("labelling", "labelling", "text", "`numbers` if nodes keep their numbers, `search` if a search placed them"),
    Column("scheduler", "scheduler", "text", "the scheduler that takes these steps"),
    Column("expression", "topology", "text", "the larger topology, as the language writes it"),
)

#: the nodes of the topology that --expand-to grows into
PLACES = (
    Column("node", "node", "integer", "the number of the node before, empty for a new node"),
    Column("new_node", "new number", "integer", "its number in the larger topology"),
)

#: its cables
RECABLED = (
    Column("change", "change", "text", "kept, removed or added"),
    Column("node", "node", "integer", "the number before of the node at one end, empty for a new node"),
    Column("port", "port", "integer", "the port of this node"),
    Column("peer", "peer", "integer", "the number before of the node at the other end, empty for a new node"),
    Column("peer_port", "peer port", "integer", "the port of the peer"),
    Column("bidirectional", "bidirectional", "flag", "a link in each direction; otherwise one from node to peer"),
    Column("new_node", "new node", "integer", "the number of the node in the larger topology"),
    Column("new_peer", "new peer", "integer", "the number of the peer in the larger topology"),
)

ROBUST = (
    Column(
        "link_failure",
        "link failure",
        "text",
        "computed, disconnected, or not computed; with `--robust`",
        optional=True,
    ),
    Column(
        "T_L_link_failure", "T_L without a link", "integer", "most steps after the failure of a link", optional=True
    ),
    *exact("T_B_link_failure", "T_B without a link", "greatest bandwidth time after the failure of a link", True),
    Column(
        "node_failure",
        "node failure",
        "text",
        "computed, disconnected, or not computed; with `--robust`",
        optional=True,
    ),
    Column(
        "T_L_node_failure", "T_L without a node", "integer", "most steps after the failure of a node", optional=True
    ),
    *exact("T_B_node_failure", "T_B without a node", "greatest bandwidth time after the failure of a node", True),
)

RUN = (
    Column("on", "on", "text", "the MPI or runtime"),
    NAME, KIND, RANKS,
    Column("count", "count", "integer", "the count argument of the call"),
    BYTES,
    Column("dtype", "type", "text", "element type"),
    Column("op", "op", "text", "operation"),
    Column("in_place", "in place", "flag", "whether input and output are one buffer"),
    Column("correct", "correct", "flag", "whether every element was right on every rank"),
    Column("detail", "detail", "text", "the first wrong element", optional=True),
    Column("repeats", "repeats", "integer", "number of timed runs"),
    Column("time_us", "median", "number", "median time of the slowest rank, in microseconds", microseconds),
    Column("min_us", "least", "number", "least time, in microseconds", microseconds),
    Column("q1_us", "q1", "number", "first quartile, in microseconds", microseconds),
    Column("q3_us", "q3", "number", "third quartile, in microseconds", microseconds),
    ALGBW, BUSBW,
    Column("builtin_us", "library", "number", "median of the library's own, in microseconds", microseconds, True),
    Column("ratio", "ratio", "number", "time of the library's own over this one's", optional=True),
    Column("model_us", "model", "number", "predicted time, in microseconds", microseconds, True),
    Column("bound_us", "bound", "number", "least bandwidth time of any schedule, in microseconds", microseconds, True),
)  # fmt: skip

FIT = (
    Column("name", "name", "text", "the measurement's name"),
    Column("bytes", "size", "integer", "M, bytes of the whole vector", size),
    Column("steps", "steps", "integer", "steps of the schedule"),
    Column("load", "load", "number", "share of M that the busiest links carry, over all steps"),
    Column("seconds", "measured", "number", "measured time, in seconds", seconds),
    Column("model_seconds", "model", "number", "time by the fitted model, in seconds", seconds),
    Column("deviation", "deviation", "number", "model over measured, less 1", percent),
    Column("repeats", "repeats", "integer", "number of measurements that the time stands for"),
    Column("outlier", "outlier", "flag", "left out of the fit"),
)

NATIVE = (
    Column("collective", "collective", "text", "the collective"),
    Column("nodes", "machines", "integer", "number of machines"),
    Column("ranks", "ranks", "integer", "number of ranks"),
    Column("algorithm", "algorithm", "text", "NCCL's name of the algorithm"),
    Column("protocol", "protocol", "text", "NCCL's name of the protocol"),
    Column("alpha_s", "alpha", "rational", "seconds of a call of no bytes", exact_time),
    Column("beta_s_per_byte", "beta", "rational", "seconds a byte of the whole vector", per_byte),
    Column("bandwidth_GBps", "bandwidth", "number", "1 over beta, in GB/s", gigabytes),
    Column("min_bytes", "from", "integer", "smallest size that was measured", size),
    Column("max_bytes", "to", "integer", "largest size that was measured", size),
    Column("points", "points", "integer", "number of measurements"),
    Column("largest_deviation", "deviation", "number", "largest relative deviation of the line", percent),
)

TRAIN = (
    Column("best", "best", "flag", "the topology of the least time"),
    Column("topology", "topology", "text", "the topology"),
    RANKS,
    Column("scheduler", "scheduler", "text", "the scheduler of the allreduce"),
    Column("time_s", "time", "rational", "the exact time of an iteration, in seconds", hidden=True),
    Column("time_us", "time", "number", "compute, exposed and all-to-all together, in microseconds", microseconds),
    Column("compute_us", "compute", "number", "forward and backward, in microseconds", microseconds),
    Column("exposed_us", "exposed", "number", "time in which compute waits for allreduces, in us", microseconds),
    Column("alltoall_us", "all-to-all", "number", "time of all all-to-alls, in microseconds", microseconds),
    Column("allreduce_us", "allreduce", "number", "time of all allreduces, overlapped or not, in us", microseconds),
    Column("bucket_bytes", "bucket", "integer", "the best capacity of a bucket of gradients", size),
    Column("allreduces", "allreduces", "integer", "number of allreduces"),
    Column("bound_us", "bound", "number", "the least time, in microseconds", microseconds),
    Column("over_bound", "time / bound", "number", "the time over the bound", times),
    Column("note", "note", "text", "why there is no time", optional=True),
)

WORKLOADS = (
    Column("name", "name", "text", "the name"),
    Column("summary", "workload", "text", "the model"),
    Column("ranks", "ranks", "integer", "the number of ranks for which sizes and times hold, empty for any"),
    Column("layers", "layers", "integer", "number of layers"),
    Column("gradient_bytes", "gradients", "integer", "bytes that are allreduced"),
    Column("alltoalls", "all-to-alls", "integer", "number of all-to-alls"),
    Column("compute_us", "compute", "number", "forward and backward, in microseconds", microseconds),
    Column("source", "source", "text", "where the sizes are published"),
    Column("assumed", "assumed", "text", "what the source does not give"),
)

#: one check of one IR or file
VERIFIED = (
    Column("path", "file", "text", "the file"),
    Column("name", "collective", "text", "the collective's name in the file", optional=True),
    Column("kind", "level", "text", "the level or format: schedule, forest, program, .."),
    Column("collective", "kind", "text", "what the collective does"),
    RANKS,
    Column("check", "check", "text", "the check"),
    Column("ok", "ok", "flag", "whether it holds"),
    Column("detail", "found", "text", "what was found"),
    Column("notes", "more", "text", "more of what was found", optional=True),
)

_FAULT_COST = (
    *exact("time_per_byte_healthy", "healthy", "bandwidth time a byte of M before the faults", True),
    *exact("time_per_byte_bound", "least", "the least time a byte after them that is proved", True),
    *exact("time_per_byte", "now", "time a byte after them, in seconds or in units of a link", True),
    *exact("times_healthy", "now / healthy", "time_per_byte over time_per_byte_healthy", True),
    Column("bound_met", "bound met", "flag", "whether the schedule takes no longer than the bound"),
)
_PLAN = Column("plan", "plan", "text", "what stayed: kept (trees), unchanged, recompiled, or auto", optional=True)

#: one collective after faults, at one size; without sizes one row
REPLANNED = (
    NAME, KIND, RANKS, SCHEDULER, _PLAN, *_FAULT_COST,
    Column("size_bytes", "size", "integer", "M, bytes of the whole vector", size, optional=True),
    Column("time_us_healthy", "before", "number", "predicted time before the faults, in us", microseconds, True),
    Column("time_us", "after", "number", "predicted time after them, in microseconds", microseconds, True),
)  # fmt: skip

#: one single fault of a network
SINGLE_FAULTS = (
    NAME,
    Column("kind", "fault", "text", "without (gone) or slow"),
    Column("where", "where", "text", "the nodes or links, as the language writes them"),
    Column("rate", "rate", "text", "the part of the bandwidth that is left", optional=True),
    Column("file", "file", "text", "the first file in the folder", optional=True),
    _PLAN, *_FAULT_COST,
    Column("reason", "reason", "text", "why there is no plan", optional=True),
)  # fmt: skip

CACHE_PARTS = (
    Column("name", "part", "text", "results, launches, libraries, files or tuned"),
    Column("entries", "entries", "integer", "number of entries (after `clear`: of those that were removed)"),
    Column("bytes", "size", "integer", "their size", size),
    Column("most_bytes", "limit", "integer", "the limit of their size", size),
    Column("folder", "folder", "text", "the folder"),
)

CACHE_ITEMS = (
    Column("part", "part", "text", "the name of its part"),
    Column("bytes", "size", "integer", "its size", size),
    Column("used", "last used", "text", "local time of the last use"),
    Column("names", "names", "text", "the files of a launch or of the entry"),
    Column("state", "state", "text", "whole, stale or wrong (check)", optional=True),
    Column("path", "file", "text", "the file, or the folder of files"),
)

#: a pass or check of one collective
TIMES = (
    Column("seconds", "seconds", "number", "seconds of all repetitions"),
    Column("share", "share", "number", "part of the seconds of all steps", share),
    Column("peak_bytes", "peak", "integer", "the peak memory of the process until the end of the step", size),
    Column("more_bytes", "more", "integer", "by how much the step raised it", size),
    Column("rows", "rows", "integer", "rows of its result"),
    NAME,
    Column("step", "step", "text", "the pass, or the check"),
)

NAMES = (
    Column("name", "name", "text", "the name"),
    Column("summary", "summary", "text", "what it is"),
)

SCHEDULED = (
    *NAMES,
    Column("collectives", "collectives", "text", "the collectives that it takes"),
    Column("networks", "networks", "text", "the networks that it takes"),
)

OPTIONS = (
    Column("name", "option", "text", "the option's name"),
    Column("type", "type", "text", "the values that it takes"),
    Column("default", "default", "text", "its value where none is given; `required` where one must be"),
    Column("help", "meaning", "text", "what it does"),
)

TOPOLOGIES = (
    Column("name", "name", "text", "the graph family or operator"),
    Column("kind", "kind", "text", "`family` or `operator`"),
    Column("signature", "call", "text", "how it is called"),
    Column("summary", "summary", "text", "what it builds"),
)

CODES = (
    Column("code", "code", "text", "the code of a diagnostic"),
    Column("title", "title", "text", "what it means"),
)
