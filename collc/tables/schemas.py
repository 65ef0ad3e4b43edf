"""The JSON objects of the command as JSON Schemas (draft 2020-12).

A definition is a text: a line `key: type: what it is` for every key, `key?` for one that may be absent. Types are
`integer`, `number`, `string`, `boolean`, `rational` (a string such as `31/32`), the name of another definition,
`[type]` for a list, `a|b` for either, `any`. Rows of tables follow from their columns. Objects may have more keys in a
later version of collc; ``schema`` grows when a key leaves or changes its meaning.
``python -m collc.tools.schemas FOLDER`` writes the files that are shipped; ``collc schema NAME`` prints one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .columns import Column, Kind
from .further import TIMED
from .listed import (
    CODES,
    FIT,
    FRONTIER,
    GROWN,
    NAMES,
    NATIVE,
    OPTIONS,
    PLACES,
    POINTS,
    RACKED,
    RECABLED,
    ROBUST,
    RUN,
    SIMULATED,
    SWEEP,
    TRAIN,
    WORKLOADS,
)

__all__ = ["DOCUMENTS", "VERSION", "schema"]

Json = dict[str, object]

#: the value of `schema` in every object
VERSION = 1

_KINDS: Mapping[Kind, str] = {
    "text": "string|null", "integer": "integer|null", "number": "number|null", "rational": "rational|null",
    "flag": "boolean|null",
}  # fmt: skip


def _row(columns: Iterable[Column]) -> str:
    return "\n".join(f"{c.key}{'?' if c.optional else ''}: {_KINDS[c.kind]}: {c.help}" for c in columns)


def _exact(name: str, help: str, kinds: str = "rational|null") -> str:
    floats = "number|null" if "null" in kinds else "number"
    key, absent = (name[:-1], "?") if name.endswith("?") else (name, "")
    return f"{key}{absent}: {kinds}: {help}\n{key}_float{absent}: {floats}: {key} as a float"


_COST = f"""
name?: string: the collective's name in the file
roots?: orbit: of a collective with several roots, those that this plan serves
ranks: integer: number of ranks
members?: integer: number of ranks that take part, if not all do
degree: integer|null: links out of every rank, if all have the same number
collective: string: what the collective does
scheduler: string: the scheduler
chunks_per_shard: integer: parts into which the schedule divides a shard
transfers: integer: number of transfers
steps: integer: steps of the schedule
T_L: integer: steps of the schedule
{_exact("T_B", "bandwidth time in M/B; null where ranks differ in their bandwidth B")}
{_exact("T_B_bound", "the least T_B of any schedule")}
T_L_bound: integer|null: the least number of steps of any schedule
bw_optimal: boolean: whether T_B is its bound
moore_optimal: boolean|null: whether T_L is its bound
diameter: integer|null: hops between the ranks that are farthest apart
{_exact("time_per_byte", "bandwidth time a byte of M, in seconds or in units of a link", "rational")}
{_exact("time_per_byte_bound", "the least time a byte of any schedule that `bound_kind` names")}
bottleneck_cut: string|null: what the bound is by, in words
bound_kind: string: among what the bound is the least - all-schedules, tree-schedules or multi-commodity-flow
bound_met: boolean: whether the schedule takes no longer than the bound
certificate: certificate|null: what proves the bound
bounds?: [bound]: the bound of all schedules, and that of schedules along trees
{_exact("time_per_byte_bound_above?", "the other end of the bracket around the bound of an all-to-all")}
{_exact("T_B_bound_above?", "the same in M/B")}
unit: string: unit of bandwidths - B/s or link
same_everywhere: boolean|null: whether all ranks end with the same bits of floating-point sums
{_exact("one_over_x?", "ForestColl's 1/x of the trees, per GB/s or per unit of a link", "rational")}
k?: integer: trees of every root
trees?: integer: different trees
max_height?: integer: hops from a root to its farthest rank
pieces?: integer: pieces in which the trees send the data, at the declared size
algbw_GBps?: number|null: M over the time of large sizes
{_exact("one_over_x_optimal?", "the least 1/x of any trees")}
k_optimal?: integer|null: trees of every root that reach it
{_exact("given_up?", "part of the best bandwidth that these trees do not have", "rational")}
k_tried?: [tried]: numbers of trees that were compared
{_exact("allreduce_bound?", "the most of an allreduce by trees")}
{_exact("allreduce_reached?", "what the schedule reaches of it")}
{_exact("allreduce_composed?", "what a reduce-scatter and an allgather reach")}
{_exact("T_C?", "the most that a rank adds, over all steps, in M - times gamma it is the time of additions")}
{_exact("gamma?", "time of adding a byte, in seconds", "rational")}
{_exact("epsilon?", "time of a launch, in seconds", "rational")}
points: [point]: a row for every size
{_exact("T_B_fluid?", "T_B without a limit on parts")}
{_exact("time_per_byte_fluid?", "time_per_byte without a limit on parts")}
{_exact("time_per_byte_mscclpp?", "time_per_byte as a plan of MSCCL++, if switches add or copy", "rational")}
{_exact("T_B_theorem_20?", "the most T_B that Theorem 20 allows for this number of chunks")}
assumed?: [string]: values that neither the file nor the options give
remarks?: [string]: what passes did
algorithm?: string: the algorithm of this range of sizes
label?: string: the range of sizes
weights?: [integer]: relative sizes of the shards for which it is planned, if they differ; it is right for all counts
whole_weight?: integer: M in units of these weights
counts_limit?: string|null: bandwidth time of other counts over the planned one, at most; null: a weight is 0
algorithms?: [cost]: the schedule of every range of sizes
auto?: choice: what `auto` compared and chose
baselines?: baselines: what NCCL does on this network, with --baselines
"""

_SIMULATION = f"""
name: string: the collective's name in the file
ranks: integer: number of ranks
collective: string: what the collective does
scheduler: string: the scheduler
topology: string: the network
routing: string: the routes of messages
latency: string: the model of latencies
run_ahead: boolean: whether a step may begin before all messages of the last one have arrived
steps: integer: steps of the schedule
{_exact("max_link_load", "the most of M that a link carries in a step", "rational")}
{_exact("congestion", "the bandwidth term over n/D beta (Psi times Xi)", "rational")}
{_exact("bandwidth_deficiency", "Psi of the Swing paper", "rational")}
{_exact("congestion_deficiency", "Xi of the Swing paper")}
latency_deficiency: rational|null: Lambda of the Swing paper where it is rational
latency_deficiency_float: number|null: Lambda of the Swing paper - steps over log2 of the ranks
{_exact("sent_per_rank", "the part of M that a rank sends")}
link_loads: [load]: the links' load, step by step
{_exact("T_C", "the most that a rank adds, over all steps, in M - times gamma it is the time of additions")}
{_exact("gamma", "time of adding a byte, in seconds", "rational")}
{_exact("epsilon", "time of a launch, in seconds", "rational")}
points: [simulated]: a row for every size
assumed: [string]: values that neither the file nor the options give
"""

_VERIFIED = """
ok: boolean: whether every check holds
kind: string: the level - spec, schedule, forest, program, ..
collective: string|null: what the collective does
ranks: integer|null: number of ranks
checks: [check]: every check with its result
warnings?: [warning]: what is right, and doubtful
name?: string: the collective's name in the file
path?: string: the file, of several
"""

_KEPT = """plan: string: what stayed - kept (trees), unchanged, recompiled (same scheduler) or auto (another one)
reason: string|null: why another scheduler
trees_kept: integer: trees that are as before, of both directions together
trees_new: integer: trees that grew again"""

_REPLANNED = f"""
name: string: the collective's name in the file
collective: string: what the collective does
scheduler: string: the scheduler
ranks: integer: number of ranks that are left
faults: [fault]: the faults
{_KEPT}
{_exact("time_per_byte_healthy", "bandwidth time a byte of M before the faults", "rational")}
{_exact("time_per_byte_bound", "the least time a byte after them of any schedule that `bound_kind` names", "rational")}
{_exact("time_per_byte", "time a byte after them, in seconds or in units of a link", "rational")}
{_exact("times_healthy", "time_per_byte over time_per_byte_healthy", "rational")}
bound_kind: string: among what the bound is the least
bound_met: boolean: whether the schedule takes no longer than the bound
unit: string: unit of bandwidths - B/s or link
ranks_before: [integer]: the number before the faults of every rank that is left
points: [fault_point]: a row for every size
"""

_FAILED = "failed?: [failure]: the collectives that could not be compiled, where there are some"

_LISTED = "{0}: [named]: the {0}"

#: definition -> its keys
_DEFINITIONS: dict[str, str] = {
    "point": _row(POINTS),
    "simulated": f"{_row(SIMULATED)}\ngoodput_Gbps: number: algbw in Gb/s",
    "frontier_row": _row(column for column in (*FRONTIER, *RACKED, *ROBUST) if column.key != "best"),
    "larger_topology": _row(GROWN),
    "node_place": _row(PLACES),
    "recabled": _row(RECABLED),
    "recabling": """
n: integer: number of nodes of the larger topology
expression: string: the larger topology
cables_kept: integer: cables that need no change
cables_removed: integer: cables to remove
cables_added: integer: cables to add
places: [node_place]: where every node goes, then the new nodes
cables: [recabled]: every cable that is kept, removed or added""",
    "run_row": _row(column for column in RUN if column.key != "on").replace("?: ", ": "),
    "fit_point": f"{_row(FIT)}\nreduced: number|null: the most that a rank adds, over all steps, in M",
    "named": _row(NAMES),
    "scheduler": f"""{_row(NAMES)}
collectives: [string]: the collectives that it takes
networks: string: the networks that it takes""",
    "option": _row(OPTIONS),
    "code_title": _row(CODES),
    "cost": _COST,
    "simulation": _SIMULATION,
    "verified": _VERIFIED,
    "certificate": """
kind: string: cut, partition, cuts or prices
text?: string: in words - the sets of nodes, what crosses, and the bandwidth; not of prices
nodes?: [integer]: nodes on one side of a cut
parts?: [[integer]]|string: parts of a partition, or that every rank is one
named?: [string]|[[string]]|string: the names of these nodes, with ranges of indices - both ends belong to them
direction?: string: the links of a cut or partition - into or out of
carries?: rational: what the links must carry; over the bandwidth it is the bound
bandwidth?: rational: bandwidth of the links together, of cuts at their prices
cuts?: [weighted_cut]: rows of a family of cuts
balances?: [balance]: rows of switches, which send as much as they get
automorphisms?: [[integer]]: images of the nodes 0, 1, ..; images of a row share its multiplier
mirrored?: boolean: whether outward and inward trees may be exchanged and links reversed, which gives more images
multicast?: [integer]: switches that send more of outward trees than they get
reduces?: [integer]: switches that get more of inward trees than they send
prices?: [integer]: a price of every link
distance?: rational: sum of the distances by these prices, over all pairs of ranks
capacity?: rational: bandwidth of all links by these prices
""",
    "weighted_cut": """
multiplier: rational: how often the row counts
trees: string: the trees that cross - outward or inward
roots: string: where their roots are - inside or outside of the nodes
nodes: [integer]: nodes on one side
named: [string]: their names, with ranges of indices
""",
    "balance": """
multiplier: rational: how often what enters the switch counts, less what leaves it
trees: string: the trees that count - outward or inward
switch: integer: the switch
""",
    "at_once": f"""
collectives: [string]: their names
{_exact("time", "seconds until the last has finished, each on its part of every link", "rational")}
""",
    "whole": f"""
collectives: [string]: their names
{_exact("time", "seconds in which the busiest link carries the data of all", "rational")}
link: string: the busiest link
{_exact("time_bound", "the least time of any schedules", "rational")}
{_exact("ratio", "time over time_bound; null if no data move")}
parts: [part]: the time of each collective on its part of the links
{_exact("tree_time_bound", "the least time of schedules by trees; null if it was not computed", "rational|null")}
certificate: joint_cuts|joint_prices: what proves the bound
tree_certificate: joint_prices|null: what proves the bound of schedules by trees
""",
    "joint_prices": f"""
kind: string: joint-prices
{_exact("carried", "bytes of all, times the cheapest price of their trees and routes", "rational")}
{_exact("paid", "bandwidth of the links, times their prices; carried over paid is the bound", "rational")}
prices: [integer]: the price of every link
""",
    "part": f"""
name: string: the collective
{_exact("time", "seconds of its trees on its part of the links; null if it shares no link")}
""",
    "joint_cuts": f"""
kind: string: joint-cuts
{_exact("carried", "bytes that must cross the cuts, times their prices", "rational")}
{_exact("paid", "bandwidth of the links, times their prices; carried over paid is the bound", "rational")}
cuts: [priced_cut]: the cuts
""",
    "priced_cut": """
collective: string: the collective, which stands for all that an automorphism maps to it
parts: [[integer]]: a set of nodes, or the parts of a partition
named: [[string]]: the names of these nodes, with ranges of indices
direction: string: the links of the parts - into or out of
carries: rational: vectors that must cross
price: rational: the price of a byte
""",
    "replanned": _REPLANNED,
    "fault": """
kind: string: without (gone) or slow
where: string: the nodes or links, as the language writes them
rate: string|null: the bandwidth that is left, or the part of it
""",
    "fault_point": f"""
size_bytes: integer: M, bytes of the whole vector
time_us_healthy: number: predicted time before the faults, in microseconds
time_us: number: predicted time after them
{_exact("times_healthy", "time_us over time_us_healthy", "rational")}
""",
    "single_fault": f"""
collective: string: the collective's name in the file
kind: string: without (gone) or slow
where: string: the nodes or links, as the language writes them
rate: string|null: the part of the bandwidth that is left
files: [string]: the files in the folder, none if there is no schedule
reason?: string: why there is none
representative?: string: the fault whose plan it is, with other numbers - the fault itself if it was compiled
plan?: string: what stayed - kept, unchanged, recompiled or auto
trees_kept?: integer: trees that are as before, of both directions together
trees_new?: integer: trees that grew again
{_exact("time_per_byte_healthy?", "bandwidth time a byte of M before the fault", "rational")}
{_exact("time_per_byte_bound?", "the least time a byte after it of any schedule that `bound_kind` names", "rational")}
{_exact("time_per_byte?", "time a byte after it, in seconds or in units of a link", "rational")}
{_exact("times_healthy?", "time_per_byte over time_per_byte_healthy", "rational")}
bound_kind?: string: among what the bound is the least
bound_met?: boolean: whether the schedule takes no longer than the bound
unit?: string: unit of bandwidths - B/s or link
ranks_before?: [integer]: the number before the fault of every rank that is left, if some are gone
sha256: [string]: the SHA-256 of every file
input: string: a hash of the input, the options and the versions that the files follow from
""",
    "bound": f"""
bound_kind: string: among what the bound is the least
{_exact("time_per_byte_bound", "the least time a byte")}
by: string: what the bound is by, in words
certificate: certificate|null: what proves the bound
""",
    "tried": f"k: integer: trees of every root\n{_exact('part', 'the part of the best bandwidth that they have')}",
    "choice": """
sizes_from: string: where the sizes come from
ranges: [range]: the ranges of sizes, each with the fastest algorithm
candidates: [candidate]: the algorithms that were compared
skipped: [skipped]: the algorithms that were not, and why
assumed: [string]: values that neither the file nor the options give
""",
    "range": f"""
min_bytes: integer: the least size
max_bytes: integer|null: the largest size, null for no end
algorithm: string: the name of the fastest algorithm
using: string: the algorithm, as the language writes it
{_exact("crossing", "the exact size at which it takes as long as the one before")}
points: [choice_point]: its times at both ends
""",
    "candidate": """
algorithm: string: the name of the algorithm
using: string: the algorithm, as the language writes it
steps: integer|null: its steps
chosen: boolean: whether it is the fastest of a range
points: [choice_point]: its times at the ends of the ranges
""",
    "skipped": "algorithm: string: the name of the algorithm\nreason: string: why it was not compared",
    "choice_point": """
size_bytes: integer: M, bytes of the whole vector
time_us: number: predicted time, in microseconds
time_s: rational: predicted time, in seconds, exact
""",
    "load": f"""
times: integer: steps of this kind in a row
messages: integer: number of messages
hops: integer: links of the longest route
{_exact("max_link_load", "the most of M that a link carries", "rational")}
link: string|null: such a link
""",
    "crossover": """
size_bytes: integer: the size
from: string: the fastest below it
to: string: the fastest from it on
""",
    "check": """
name: string: the check
ok: boolean: whether it holds
detail: string: what was found
notes?: [string]: more of what was found
hint?: string: what to change
""",
    "failure": """
name: string: the collective's name in the file
input?: string: the file, of several
exit_status: integer: the status that the command ends with if nothing worse is found
diagnostics: [diagnostic]: what is wrong
""",
    "diagnostic": """
code: string: the code; `collc explain CODE` explains it
severity: string: error or warning
message: string: its text
location: place|null: where it is
related: [related]: places that explain it
notes: [string]: more of what was found
hint: string|null: what to write instead
kind: string: what another attempt would change - mistake, limit, misfit, size, unused, infeasible, memory, ..
excess?: excess: the limit that was exceeded
""",
    "place": """
file: string: the file
line: integer: the first line, counted from 1
column: integer: the first column, counted from 1
end_line: integer: the last line
end_column: integer: the column after the last
""",
    "related": "message: string: what is there\nlocation: place: where it is",
    "excess": """
what: string: what there is too much of
found: integer: the number that was found
allowed: integer: the most that is allowed
""",
    "checked": """
path: string: the file
ok: boolean: whether it is right
topologies: [topology]: the topologies
collectives: [declared]: the collectives
files: [string]: the files that were read
together?: [[string]]: the collectives of each block that run at the same time
diagnostics?: [diagnostic]: what is wrong
""",
    "warning": "code: string: the code of the diagnostic\nmessage: string: its text",
    "output": """
path: string: the file
target: string: the target
collective: string: the collective's name in the file
bytes: integer: its size
sha256: string: its digest
input?: string: the file that it was compiled from, of several
""",
    "program": """
ranks: integer: number of ranks
threadblocks_max: integer: the most threadblocks of a rank
channels: integer: number of channels
steps_max: integer: the most instructions of a threadblock
instructions: integer: instructions of all ranks
chunks: integer: chunks of the vector
participants?: [integer]: the ranks of the network that the ranks of the files are, if not all take part
""",
    "compiled": """
name: string: the collective's name in the file
program: program|null: the program
cost: cost|null: its schedule's cost
remarks?: [string]: what passes did
algorithm?: string: the algorithm of this range of sizes
label?: string: the range of sizes
algorithms?: [compiled]: the program of every range of sizes
auto?: choice: what `auto` compared and chose
""",
    "pipeline": """
collective: string: the collective's name in the file
target: string|null: the target
passes: [ran]: the passes that ran, in order
""",
    "ran": "pass: string: the pass with its options\nwhy: string|null: why it was added",
    "topology": """
name: string: the topology's name in the file
ranks: integer: number of ranks
switches: integer: number of switches
links: integer: directed links
degree: integer|null: links out of every rank, if all have the same number
""",
    "declared": """
name: string: the collective's name in the file
kind: string: what the collective does
topology: string: the topology's name
scheduler: string: the scheduler
emits: [string]: the targets
members?: [integer]: the ranks that take part, if others do not
shards?: integer: the shards of a custom collective
weights?: [integer]: the relative sizes of the shards, if they differ
""",
    "native_line": _row(NATIVE),
    "train_row": _row(TRAIN),
    "sweep_row": _row(SWEEP),
    "listed_workload": _row(WORKLOADS),
    "native_choice": """
collective: string: the collective
nodes: integer: number of machines
ranks: integer: number of ranks
ranges: [native_range]: from size to size
""",
    "native_range": """
min_bytes: integer: smallest size
max_bytes: integer|null: largest size; null without a limit
algorithm: string: NCCL's name of the algorithm
protocol: string: NCCL's name of the protocol
""",
    "cache_part": """
name: string: results, launches, libraries or files
folder: string: its folder
entries: integer: number of entries
bytes: integer: their size
most_bytes: integer|null: the limit of their size
""",
    "cache_item": """
part: string: the name of its part
path: string: the file, or the folder of files
bytes: integer: its size
names: [string]: the files of a launch or of the entry
used: string: local time of the last use
state?: string: whole, stale (a file that it came from has changed) or wrong (check)
""",
    "written": """
path: string: the file
bytes: integer: its size
sha256: string: its digest
""",
    "imported": """
name: string: the topology's name in the file
format: string: the format
files: [string]: the files that it was read from
ranks: integer: number of ranks
switches: integer: number of switches
links: integer: directed links
notes: [string]: what was assumed, and what looks broken
""",
    "size": """
name: string: the topology's name in the file
ranks: integer: number of ranks
switches: integer: number of switches
links: integer: directed links
unit: string: unit of bandwidths - B/s or link
""",
    "latency": """
most_message_bytes: number|null: messages up to this size, null for any
alpha_us: number: latency of a step with such messages
""",
    "frontier_bound": f"T_L: integer: the least steps of any topology\n{_exact('T_B', 'the least T_B', 'rational')}",
    "baselines": """
boxes: string|null: the boxes that were found, null for none
points: [baseline_point]: a row for every size
skipped: [skipped_baseline]: the baselines that do not apply
""",
    "baseline_point": """
size_bytes: integer: M, bytes of the whole vector
algorithm: string: collc's algorithm
time_us: number: its time, in microseconds
best: string|null: the fastest baseline
ratio: number|null: its time over collc's
baselines: [baseline]: every baseline
""",
    "baseline": """
name: string: the baseline
using: string: the baseline, as the language writes it
time_us: number: its time, in microseconds
ratio: number|null: its time over collc's
""",
    "skipped_baseline": "baseline: string: the baseline\nreason: string: why it does not apply",
    "orbit": """
of?: string: the name of the collective in the file
planned: integer: the root that has a plan
served: [integer]: the roots to which the plan is moved, that one included
""",
    "extremes": """
size_bytes: integer: M, bytes of the whole vector
best: integer: the planned root with the least time
best_time_us: number: its time, in microseconds
worst: integer: the planned root with the most time
worst_time_us: number: its time, in microseconds
""",
    "orbits": """
name: string: the name of the collective in the file
orbits: [orbit]: the roots that have a plan, and those that it serves
points: [extremes]: the best and the worst root at each size
""",
    "timed": _row(TIMED),
    "find_point": """
size_bytes: integer: M, bytes of the whole vector
time_us: number|null: predicted time, in microseconds
best: string|null: the fastest topology
""",
    "family": """
name: string: the graph family or operator
signature: string: how it is called
summary: string: what it builds
""",
}  # fmt: skip

#: document -> what it is, and the forms that its object has
DOCUMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cost": ("`collc cost --json`: one collective, or all in `collectives`", (
        _COST,
        "collectives: [cost]: every collective that can be scheduled\n"
        "together?: [whole]: the collectives of each block that run at the same time\n"
        f"roots?: [orbits]: the collectives with several roots\n{_FAILED}",
    )),
    "simulate": ("`collc simulate --json`: one collective, or all in `collectives`", (
        _SIMULATION,
        "collectives: [simulation]: every collective that can be simulated\n"
        "crossovers: [crossover]: where the fastest changes\n"
        "together?: [at_once]: the collectives of each block that run at the same time\n"
        f"roots?: [orbits]: the collectives with several roots\n{_FAILED}",
    )),
    "find": ("`collc find --json`", ("""
n: integer: number of nodes
degree: integer: links out of every node
bidirectional: boolean: whether only topologies with links in both directions were asked for
objective: string: the collective of the times, or `workload`
alpha_us: number: latency of a step
size_bytes: integer: M, bytes of the whole vector; 0 with --workload
bandwidth_GBps: number: B, bandwidth out of a node
frontier: [frontier_row]: topologies of which none is better in T_L, T_B and the all-to-all rate
bidirectional_frontier: [frontier_row]: the same of those with links in both directions
bound: frontier_bound: what no topology goes below
best: string|null: the fastest
points?: [find_point]: the fastest at each of several sizes
workload?: string: what the times are of, with --workload
excluded?: [string]: the names that no topology may have, with --exclude
rack?: integer: nodes in a rack, with --rack
expansions?: [larger_topology]: larger topologies, with --expand-to
recabling?: recabling|null: how to get to the largest of them that keeps most links, with --expand-to
""",)),
    "sweep": ("`collc sweep --json`, and what `-o FILE.json` writes", ("""
rows: [sweep_row]: a row for every network, collective, scheduler and size
failed: integer: number of rows without a time
""",)),
    "train": ("`collc train --json`; with --list the workloads that come with collc", ("""
name: string: the workload
summary: string: the model
ranks: integer|null: the number of ranks for which sizes and times hold
layers: integer: number of layers
gradient_bytes: integer: bytes that are allreduced
alltoalls: integer: number of all-to-alls
compute_us: number: forward and backward, in microseconds
source: string: where the sizes are published
assumed: string: what the source does not give
alpha_us: number|null: latency of a step, if it was given
bandwidth_GBps: number|null: B, bandwidth out of a node, if it was given
buckets_bytes: [integer]: the capacities of buckets that were compared
rows: [train_row]: every topology
best: string|null: the topology of the least time
""", "workloads: [listed_workload]: the workloads")),
    "run": ("`collc run --json`", (f"""
ok: boolean: whether every element was right
ranks: integer|null: number of ranks
mpi: string|null: the MPI or runtime
rows: [run_row]: a row for every case
{_FAILED}
""",)),
    "calibrate": ("`collc calibrate --json`", ("""
bandwidth_Bps: number: bandwidth of a link
alphas: [latency]: latency of a step, by the size of its messages
overhead_us: number|null: time of a call
epsilon_us: number|null: the same by its name in the cost model
gamma_ns_per_B: number|null: time of a rank to add a byte, in nanoseconds
reduction_Bps: number|null: bytes that a rank adds in a second
mean_deviation: number: of the measurements from the model
largest_deviation: number: of a measurement from the model
r_squared: number: the part of the variance that the model explains
notes: [string]: what was left out or assumed
points: [fit_point]: the measurements
""", """
lines: [native_line]: the line of every algorithm, with --nccl-tests
choices: [native_choice]: the fastest at every size
notes: [string]: what was left out or assumed
""")),
    "compile": ("`collc compile --json`, `collc convert --json`; `program`, `cost`: of the first collective", (f"""
outputs: [output]: the files
program: program|null: the program
cost: cost|null: its schedule's cost
collectives: [compiled]: every collective
pipelines?: [pipeline]: the passes, with --print-pipeline
{_FAILED}
""",)),
    "replan": ("`collc replan --json`; with --each-fault that of the index `faults.json`", (
        f"{_REPLANNED.strip()}\noutputs: [output]: the files",
        f"collectives: [replanned]: every collective\noutputs: [output]: the files\n{_FAILED}",
        "collectives: [string]: the collectives\ncomplete: boolean: whether the run was at every fault\n"
        "faults: [single_fault]: every single fault of every collective",
    )),
    "verify": ("`collc verify --json`; of several collectives or files, `ok` is that of all", (f"""
{_VERIFIED.strip()}
collectives?: [verified]: every collective of a file with several
files?: [verified]: every collective of several files
{_FAILED}
""", """
ok: boolean: false
collectives?: [verified]: none of a file
files?: [verified]: none of several files
failed: [failure]: all collectives, which could not be compiled
""",)),
    "check": ("`collc check --json`; of several files, `ok` is that of all, the other keys are of the first", ("""
ok: boolean: whether the file is right
path?: string: the file, of several
topologies: [topology]: the topologies
collectives: [declared]: the collectives
files: [string]: the files that were read
together?: [[string]]: the collectives of each block that run at the same time
diagnostics?: [diagnostic]: what is wrong
checked?: [checked]: every file of several
""",)),
    "import": ("`collc import --json`", ("""
outputs: [written]: the file
topology: string: the topology of the whole
imported: [imported]: every network that was read
topologies: [size]: every topology of the file
""",)),
    "cache": ("`collc cache --json`", ("""
folder: string: the folder of compiled files
entries: integer: number of its entries (after `clear`: of those that were removed)
bytes: integer: their size
most_bytes: integer: the limit of their size
parts: [cache_part]: compiled files, launches, and the libraries and files that launched commands load
items?: [cache_item]: every entry (list, check)
times?: [timed]: what --tune timed (times)
""",)),
    "listing": ("`collc targets --json` and the other listings", (
        *(_LISTED.format(name) for name in ("targets", "passes", "schemas")),
        "schedulers: [scheduler]: the schedulers",
        f"{_LISTED.format('formats')}\nimports?: [named]: the formats that `collc import` reads",
        "codes: [code_title]: the codes of diagnostics",
        """
topologies: [family]: the graph families
operators?: [family]: the operators on topologies
groups?: [string]: groups that `cayley` takes
names (ranks, degree, diameter)?: [string]: graphs that `distance_regular` takes
""",
    )),
    "entry": ("`collc passes NAME --json` and the like: one of a kind", (
        """
name: string: the name
summary: string: what it is
options: [option]: its options
collectives?: [string]: the collectives that a scheduler takes
networks?: string: the networks that a scheduler takes
""",
        """
name: string: the format
summary: string: what it is
verbs: [string]: the verbs that read it
printed_by?: string: the command that prints files to import
describes?: string: what files to import describe
""",
        "code: string: the code\ntitle: string: what it means\ntext: string: the explanation",
    )),
}  # fmt: skip


def schema(name: str) -> Json:
    """Return the JSON Schema of a document; raise KeyError for another name.

    >>> schema("run")["properties"]["ok"]
    {'description': 'whether every element was right', 'type': 'boolean'}
    """
    title, texts = DOCUMENTS[name]
    forms = [_object(f"schema: version: version of the schema\n{text.strip()}") for text in texts]
    body: Json = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:collc:schema:{name}:{VERSION}",
        "title": title, **body, "$defs": {one: _object(_DEFINITIONS[one]) for one in _used(texts)},
    }  # fmt: skip


def _object(text: str) -> Json:
    keys = [_key(line) for line in text.strip().splitlines()]
    return {
        "type": "object", "properties": {key: {"description": help, **_type(kinds)} for key, _, kinds, help in keys},
        "required": [key for key, needed, _, _ in keys if needed],
    }  # fmt: skip


def _key(line: str) -> tuple[str, bool, str, str]:
    """Return a key, whether it must be there, its type, and what it is."""
    key, kinds, help = line.split(": ", 2)
    return key.removesuffix("?"), not key.endswith("?"), kinds, help


def _type(kinds: str) -> Json:
    found = [_one_type(kind) for kind in kinds.split("|")]
    if len(found) == 1:
        return found[0]
    plain = [one["type"] for one in found if set(one) == {"type"}]
    return {"type": plain} if len(plain) == len(found) else {"anyOf": found}


def _one_type(kind: str) -> Json:
    if kind.startswith("["):
        return {"type": "array", "items": _type(kind[1:-1])}
    if kind == "rational":
        return {"type": "string", "pattern": "^-?[0-9]+(/[1-9][0-9]*)?$"}
    if kind == "version":
        return {"const": VERSION}
    if kind in _DEFINITIONS:
        return {"$ref": f"#/$defs/{kind}"}
    return {"type": kind}


def _used(texts: Sequence[str]) -> list[str]:
    """Return the definitions that texts use, and those that these use, in order of their names."""
    found: set[str] = set()
    rest = list(texts)
    while rest:
        words = {word for line in rest.pop().strip().splitlines() for word in _words(_key(line)[2])}
        rest += [_DEFINITIONS[word] for word in words - found]
        found |= words
    return sorted(found)


def _words(kinds: str) -> set[str]:
    return {word for word in kinds.replace("[", "").replace("]", "").split("|") if word in _DEFINITIONS}
