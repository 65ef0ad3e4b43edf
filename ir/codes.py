"""What ``collc explain`` says of the codes of the IR: collectives, topologies, schedules, the text form."""

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
    "C0203": """a root that is missing or not wanted

broadcast and reduce, gather and scatter have one rank that data come from or go to, their root; it must
be named. The other collectives treat all ranks alike and have none.

    collective weights = broadcast on pod;                 # which rank has them?

Write `broadcast on pod { root: 0 }`, or leave `root` out of the others.""",
    "C0204": """a root that is no rank

Ranks are numbered from 0, in the order in which the topology declares them; the root must be one of them.

    collective weights = broadcast on ring8 { root: 8 };   # ranks are 0 to 7

Give a number from 0 to one less than the number of ranks.""",
    "C0205": """a collective that has no reverse

Run backwards, with every transfer turned round and copies made reductions, a schedule of allgather
becomes one of reduce-scatter and a schedule of broadcast one of reduce; allreduce stays allreduce.
gather, scatter and alltoall copy without reducing, so the pass `reverse` has nothing to make of them.

Schedule the collective that is wanted directly, or reverse one of those named.""",
    "C0206": """an operation the interpreter does not know

Numbers are combined by sum, prod, min or max; a function of two arrays may be given in their place.

    run(program, inputs, op="average")

Name one of these operations, or pass a function such as `numpy.bitwise_xor`.""",
    "C0207": """inputs that do not fit the collective

The interpreter takes one one-dimensional array for every rank that the collective takes data from, all
of one length and one type. For reduce-scatter, scatter and alltoall it is a block for every rank, so the
length is a multiple of the number of ranks.

    run(program, [numpy.zeros(3), numpy.zeros(3)])         # a reduce-scatter of 2 ranks: 3 is odd

Give arrays of one length and type, and None for ranks that have no input.""",
}

_TOPOLOGY = {
    "C0301": """a topology that is not strongly connected

Some rank has no path to another, so its data cannot get there and no schedule exists. The message names
the first such pair. Links are directed: `->` is one way only.

    link gpu[0] -> gpu[1];                                 # nothing leads back

Add the links that are missing, or write `<->` for both ways.""",
    "C0302": """a graph attribute that is no bandwidth or latency

A networkx graph may carry `bandwidth` and `latency` on its edges. Both are read as exact numbers: integers,
fractions.Fraction, or text such as "25/8"; floats are taken at their exact value. A bandwidth is positive, a
latency at least 0.

    graph.add_edge(0, 1, bandwidth="25 Gbps")              # units belong in the .coll language

Give the number in the topology's unit (bytes per second, or links) and the latency in seconds.""",
}

_SCHEDULE = {
    "C0401": """a schedule or program that does not do what it should

The verifier executed it symbolically and found that the collective's promise does not hold: data are
sent before they are there, a contribution is added twice or lost, a link does not exist, or ranks end
with something else. The message names the check, and the step, rank and shard where it failed.

    schedule grads using steps { at 0: send shard 1 from 0 to 1; }   # rank 0 does not have shard 1

Correct the schedule at that place. Where the schedule came from collc itself, this is a bug in collc:
report it.""",
}

_TEXT = {
    "C0801": """not a textual IR

The textual IR begins with the line `collc-ir 1`. The file has another first line: it is something else,
or was written by a collc whose form has another version.

    collc verify notes.txt

Give a file that `--dump-ir` or `-t ir` wrote, or write it again with this collc.""",
    "C0802": """something out of place in a textual IR

Every line of the textual IR has one form; the message says what stands there and what was needed.

    links 2: src dst class {
      0 -> 1 0

A row of a table is its integers, one for each column that its header names: `0 1 0`. Compare the line with
what `-t ir` prints.""",
    "C0803": """a number that is too large, or no number

Integers of the textual IR are those that 64 bits hold with a sign, 0 to 9223372036854775807. Rationals
are `p` or `p/q` with at most 1000 digits and a q that is not 0.

    classes 1: bandwidth latency {
      25/0 0

Give a number within these bounds.""",
    "C0804": """a table that has not as many rows as its header says

The header of a table counts its rows, so that a file that was cut short is noticed.

    links 4: src dst class {
      0 1 0
      1 0 0
    }

Correct the count, or restore the rows that are missing.""",
    "C0805": """a textual IR beyond its limits

A topology in the textual IR has at most 1048576 ranks and as many switches, and a line of a table at
most 1048576 characters; a symmetry is a group with no more elements: beyond that a small file could take all memory.

    ranks 1000000000

Larger networks do not fit the other passes either.""",
    "C0806": """a textual IR that is not well formed

All of it can be read, but it does not fit together: a link ends at a node that does not exist, a
route's links do not join, steps decrease from row to row, a location lies outside of its buffer. The
message names the row.

    ranks 2
    links 1: src dst class {
      0 2 0                                                # nodes are 0 and 1

Whatever is well formed can be read; whether it does what the collective promises is for `collc verify`.""",
    "C0807": """a string that cannot be read

Strings stand between double quotes on one line. `\\"`, `\\\\`, `\\n`, `\\t` and `\\r` have their usual
meaning, and `\\u{1f600}` is the character with that hexadecimal number.

    topology "my ring {

Close the string, and write a backslash as `\\\\`.""",
    "C0808": """a schedule that is too large to write out

On a symmetric network collc keeps of a large schedule only what happens to one shard, its template, and knows the rest
by symmetry. Steps that need every transfer (lowering to a program, rounding to fewer chunks) have it written out,
which is refused beyond 67108864 transfers: on 10000 ranks an allgather has at least 99990000.

    topology t = torus(100, 100);
    collective g = allgather on t;
    emit g as msccl-xml;

`collc cost`, `collc verify` and `-t 'ir{level=schedule}'` need only the template. For a program use fewer ranks.""",
}

CODES: dict[str, str] = {**_COLLECTIVE, **_TOPOLOGY, **_SCHEDULE, **_TEXT}
