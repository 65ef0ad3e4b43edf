"""Explanations of the IR's codes, for ``collc explain``: collectives, topologies, schedules, the text form."""

from __future__ import annotations

__all__ = ["CODES"]

_COLLECTIVE = {
    "C0201": """unknown collective

The collectives are allgather, reduce-scatter, allreduce, broadcast, reduce, gather, scatter and alltoall.

    collective grads = all-reduce on pod;

Write one of these names, as in `allreduce on pod`.""",
    "C0202": """a collective without ranks

A collective moves data between ranks, so it needs at least one. The topology it is on has only
switches, or is empty.

Declare ranks in the topology (`rank gpu[8];`). One rank is enough: every collective is then a local copy.""",
    "C0203": """a missing or superfluous root

broadcast and scatter send data from one rank, reduce and gather to one rank: the root. These collectives need
a root. The other collectives have none.

    collective weights = broadcast on pod;                 # which rank has them?

Write `broadcast on pod { root: 0 }`, or leave `root` out of the others. `root: all` and `root: {0, 4}` give several
roots to broadcast, reduce, gather and scatter: at least one, each once. Collectives with weights, with `among` and in
`together` have one root.""",
    "C0204": """a root that is not a rank

Ranks are numbered from 0, in the order of their declaration in the topology. The root must be one of them.

    collective weights = broadcast on ring8 { root: 8 };   # ranks are 0 to 7

Give a number from 0 to one less than the number of ranks.""",
    "C0205": """a collective that has no reverse

The reverse of a schedule reverses every transfer and turns copies into reductions. An allgather becomes a
reduce-scatter, a broadcast becomes a reduce, and an allreduce remains an allreduce. The pass `reverse` does not
take gather, scatter or alltoall, because their reverses would reduce.

Schedule the collective that you need directly, or reverse one of those named.""",
    "C0215": """members that are not ranks

A collective `among {..}` is one of the ranks that are listed: its members. Each is a rank of the topology, listed once;
the root is one of them. Other ranks only relay data.

    collective grads = allreduce on pod among {0, 4, 4, 64};   # pod has 64 ranks: 0 to 63

List each member once.""",
    "C0216": """a pre- and a postcondition that do not fit

A custom collective has one entry a shard in `pre` (the rank that has it before) and in `post` (the ranks that must have
it after).

    collective shift on ring { pre: {0, 1, 2}, post: {1, 2} };   # who needs shard 2?

Give as many entries in both.""",
    "C0217": """weights that do not fit the collective

allgatherv, reduce-scatterv, gatherv and scatterv have one weight a rank, alltoallv has one for each pair of ranks.
Weights are integers, and at least one is not 0. They say how large the shards are, relative to each other.

    collective parts = allgatherv on ring4 { weights: {5, 0, 1} };   # which weight has rank 3?

Give a weight for every rank; 0 is a rank without data.""",
    "C0206": """an operation that the interpreter does not know

The interpreter combines numbers by sum, prod, min, max, or a function of two arrays.

    run(program, inputs, op="average")

Name one of these operations, or pass a function such as `numpy.bitwise_xor`.""",
    "C0207": """inputs that do not fit the collective

The interpreter needs one one-dimensional array for every rank that has an input, all of one length and one
type. For reduce-scatter, scatter and alltoall the array has a block for every rank, so its length must be a
multiple of the number of ranks.

    run(program, [numpy.zeros(3), numpy.zeros(3)])         # a reduce-scatter of 2 ranks: 3 is odd

Give arrays of one length and type, and None for ranks that have no input.""",
}

_TOPOLOGY = {
    "C0301": """a topology that is not strongly connected

There is no route from some rank to another, so no schedule exists. The message names the ranks without a route, and
the direction of the links between them and the others. Links are directed: `->` declares one link.

    link gpu[0] -> gpu[1];                                 # no link back

Write the links that the hint names: `<->` if a link lacks its reverse, else new links. They connect all ranks.""",
    "C0302": """a graph attribute that is not a bandwidth or latency

A networkx graph may carry `bandwidth` and `latency` on its edges. Both are read as exact numbers: integers,
fractions.Fraction, or text such as "25/8"; floats are taken at their exact value. A bandwidth is positive, a
latency at least 0.

    graph.add_edge(0, 1, bandwidth="25 Gbps")              # units belong in the .coll language

Give the number in the topology's unit (bytes per second, or links) and the latency in seconds.""",
    "C0303": """a graph that is not a network

A networkx graph becomes a topology if at least one node is a rank. The node attribute `kind` is "rank" (the
default) or "switch". The graph attribute `unit` is "link" (the default) or "B/s". collc ignores other attributes.

    graph.add_node("spine", kind="router")                 # neither a rank nor a switch

Correct the attribute that the message names, or give a graph that has ranks.""",
}

_SCHEDULE = {
    "C0401": """a wrong schedule or program

The verifier executed it symbolically. It does not perform the collective. For example, a rank sends data that it does
not have, a sum has a contribution twice, a link does not exist, or a rank ends with other data. The message names the
step, rank and shard where it failed, or the first ranks with what they miss. For a schedule written by hand it
underlines the transfer, and the one that explains it.

    schedule grads using steps { at 0: send shard 1 from 0 to 1; }   # rank 0 does not have shard 1

Correct the schedule at that place: the hint says how. If collc computed the schedule, this is a bug in collc: report
it.""",
}

_TEXT = {
    "C0801": """not a textual IR

The textual IR begins with the line `collc-ir 1`. The file has another first line: it is another kind of file,
or another version of collc wrote it.

    collc verify notes.txt

Give a file that `--dump-ir` or `-t ir` wrote, or write it again with this collc.""",
    "C0802": """a syntax error in a textual IR

Every line of the textual IR has a fixed form. The message states what was found and what was needed.

    links 2: src dst class {
      0 -> 1 0

A row of a table has one integer for each column of its header: `0 1 0`. Compare the line with the output of
`-t ir`.""",
    "C0803": """a number that is too large, or not a number

Integers of the textual IR are 0 to 9223372036854775807 (signed 64 bits). Rationals are `p` or `p/q` with at
most 1000 digits, and q is not 0.

    classes 1: bandwidth latency {
      25/0 0

Give a number within these bounds.""",
    "C0804": """a table with another number of rows than its header states

The header of a table states its number of rows. So collc notices a truncated file.

    links 4: src dst class {
      0 1 0
      1 0 0
    }

Correct the number, or restore the missing rows.""",
    "C0805": """a textual IR beyond its limits

A topology in the textual IR has at most 1048576 ranks and as many switches. A line of a table has at most 1048576
characters, and a symmetry is a group of at most 1048576 elements. With more, a small file could use all memory.

    ranks 1000000000

Other passes cannot handle larger networks either.""",
    "C0806": """a textual IR that is not well formed

The syntax is correct, but the contents are inconsistent. For example, a link ends at an unknown node, the links of a
route do not connect, steps decrease from row to row, or a location is outside of its buffer. The message names the row.

    ranks 2
    links 1: src dst class {
      0 2 0                                                # nodes are 0 and 1

`collc verify` checks whether a well-formed IR performs its collective.""",
    "C0807": """a string that cannot be read

A string is enclosed in double quotes, on one line. `\\"`, `\\\\`, `\\n`, `\\t` and `\\r` have their usual
meaning, and `\\u{1f600}` is the character with that hexadecimal number.

    topology "my ring {

Close the string, and write a backslash as `\\\\`.""",
    "C0808": """a schedule that is too large to write out

On a symmetric network collc stores only the transfers of one shard of a large schedule, or the trees of some roots: the
template. The symmetry gives all others. Files of most runtimes list every rank's messages. collc writes out at most
67108864 transfers, or pieces of messages; an allgather on 10000 ranks has at least 99990000.

    topology t = torus(100, 100);
    collective g = allgather on t;
    emit g as msccl-xml;

`collc cost`, `collc verify`, `-t 'ir{level=schedule}'` and `mpi-c` need only the template; of a forest, `collc cost`
does. For other files, use fewer ranks.""",
}

_PLUGINS = {
    "C0891": """a plugin that cannot be loaded

An installed package declares passes, targets, graph families, schedulers or formats by an entry point of the group
`collc.plugins`. Its module fails to import, the object is not a `Plugin`, or one of its names refers to an object of
another kind.

    [project.entry-points."collc.plugins"]
    mine = "mine.plugin:PLUGIN"                            # there is no module `mine.plugin`

Everything that is part of collc still works. Repair or uninstall the package that the message names.""",
    "C0892": """a name that a plugin cannot have

A plugin adds a pass, target, graph family, scheduler or format, but collc or an earlier plugin already uses its name.
Plugins load in the order of their names. The name keeps its meaning. The rest of the plugin is available.

    Plugin(targets={"mpi-c": Entry("mine.c", "MyC", "my own C")})

Choose another name in the plugin.""",
}

CODES: dict[str, str] = {**_COLLECTIVE, **_TOPOLOGY, **_SCHEDULE, **_TEXT, **_PLUGINS}
