"""Explanations of the language's diagnostic codes, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

_SYNTAX = {
    "C0101": """text that does not belong there

The parser found text that cannot follow the text before it. The message lists what can.

    param n = 4 + ;

Complete or remove the part the caret points at.""",
    "C0102": """a missing semicolon

Declarations and statements end with `;`. After a closing `}` of a block it may be left out.

    param boxes = 2
    topology pod = torus(3, 3);

Put `;` at the end of the first line.""",
    "C0103": """a bracket that is not closed or not opened

Every `{`, `(` and `[` needs its partner. The note says where the open one is.

    topology dgx {
      rank gpu[8];
    collective grads = allreduce on dgx;

Put `}` before `collective`.""",
    "C0104": """a closing bracket without an opening one

There is one `}`, `)` or `]` more than were opened.

    topology pair { rank a, b; link a <-> b; } }

Remove it, or find the opening bracket that was deleted.""",
    "C0105": """text that is not a name

Names begin with a letter or `_` and consist of letters a to z, digits and `_`, because they become names of functions
and files. `-` is a subtraction.

    topology my-pod = torus(3, 3);

Write `my_pod`. Ranks and switches may have any name of at most 255 characters that can be seen, in quotes:
`rank "n-001";`.""",
    "C0106": """an unknown declaration or statement

A file consists of topology, cluster, collective, schedule, emit, include, import, param and let. A topology's body has
rank, switch, link, param, let, for and if; steps have at, send, reduce, let, for and if.

    toplogy pod = torus(3, 3);

Write `topology`.""",
    "C0107": """the wrong sign between a name and its value

Declarations use `=`, options in braces use `:` and are separated by `,`; two numbers are compared with `==`.

    emit grads as msccl-xml { channels = 4; };

Write `{ channels: 4 }`.""",
    "C0108": """a link without a proper arrow

`a -> b` is one link, `a <-> b` is one link each way.

    link gpu[0] -- gpu[1];

Write `link gpu[0] <-> gpu[1];`. As an argument, links are in a set: `without(torus(3, 3), {0 <-> 1})`.""",
    "C0109": """a form of another language

Comments begin with `#`. Strings are in double quotes. The remainder is `mod`, powers are `pow(a, b)`, and `a..b` is a
range. `and`, `or` and `not` join conditions. Indices are in one pair of brackets. Arguments have no names, names have
no types.

    let next = (r + 1) % n;

Write `(r + 1) mod n`.""",
    "C0110": """a string that does not end

Strings end on the line they begin.

    include "site.coll;

Write `include "site.coll";`.""",
    "C0111": """a missing word

    schedule grads bfb;

The forms are `schedule NAME using SCHEDULER`, `emit NAME as TARGET`, `collective NAME = KIND on TOPOLOGY`,
`for NAME in LOW..HIGH`, `at STEP: send shard SHARD from RANK to RANK` and `send shard SHARD part I of C from ..`.

Write `schedule grads using bfb;`.""",
    "C0112": """a missing comma

Arguments, options, indices and the nodes of one declaration are separated by `,`.

    topology pod = torus(3 3);

Write `torus(3, 3)`.""",
    "C0113": """statements where options belong

Only the scheduler `steps` takes statements; the others take options.

    schedule grads using bfb { for s in 0..3 { } }

Write `using steps { .. }`, or give options: `using bfb { name: value };`.""",
    "C0115": """a number with too many digits

Numbers are exact, but have at most 30 characters.

    let size = 1000000000000000000000000000000000;

Use a larger unit, as in `1 TB`.""",
    "C0116": """too many levels of nesting

Nested expressions and blocks, and operators in one chain, have a limit of 128 levels. Parentheses alone add no level,
but the parser stops at thousands of open ones.

    let total = 1 + 1 + 1 + ..;                            # 200 times

Name parts with `let`, or use a loop.""",
    "C0117": """a file that is not text

The file has a byte that text never contains, such as zero.

Name the `.coll` file. If it is the right file, it is damaged.""",
    "C0118": """a file that is not UTF-8

Files are UTF-8; ASCII is valid UTF-8.

Convert the file: `iconv -f latin1 -t utf-8`.""",
    "C0119": """a file that is too long

A file may have 10 MiB. Describe a large network with `for` and `param`.

Write `for i in 0..n { link gpu[i] -> gpu[(i + 1) mod n]; }`.""",
}

_NAMES = {
    "C0120": """an unknown name

No declaration before this place has this name. Topologies, parameters and `let` are visible in the rest of the file;
names declared in a body are visible in that body.

    collective grads = allreduce on pods;                  # the topology is called pod

Correct the name, or declare it above.""",
    "C0121": """a name declared twice

In one file, and in one body, a name has one meaning. A collective has one schedule.

    topology pod = torus(3, 3);
    topology pod = torus(4, 4);

Rename one of them.""",
    "C0122": """an unknown graph family or function

    topology pod = tours(3, 3);

`collc topologies` lists the graph families, `collc topologies cayley` the groups. The operators are line, degree,
power, product, transpose, bidirectional, subset, without, degraded, relabel and clustered. The functions of numbers are
ranks, min, max, abs, floor, ceil, pow, log2, xor and count. A file declares others:
`function next(r) = (r + 1) mod 4;`.""",
    "C0123": """an unknown unit

Sizes have B KB MB GB TB and KiB MiB GiB TiB. Bandwidths have bps Kbps Mbps Gbps Tbps (bits) and B/s KB/s MB/s GB/s TB/s
(bytes). Times have ns us ms s. K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024.

    with { bandwidth: 25 gbps }

Write `25 Gbps`; upper and lower case matter.""",
    "C0124": """an unknown scheduler

`collc schedulers` lists them.""",
    "C0125": """an unknown target

`collc targets` lists them.""",
    "C0126": """a value for a parameter that does not exist

`-D name=value` sets a `param` of the file, of an included file, or of a topology's body. If several bodies have a
`param` of that name, write `-D dgx.boxes=4`. A `let` cannot be set.

    collc pod.coll -D box=4                                # the parameter is called boxes

Correct the name, or declare `param box = 2;`.""",
    "C0127": """an unknown option

    collective grads = allreduce on pod { sise: 64 MiB };

A collective has size, op, dtype and, where it has one, root. A cluster has hosts and nic. `with { .. }` has bandwidth,
latency, reduction and launch. After an import it also has the figures gpu, gpu-link, nic, size, choose and
tier-NAME.""",
    "C0128": """an option given twice

    emit grads as msccl-xml { channels: 2, channels: 4 };

Remove one of them.""",
    "C0129": """a collective's option with the wrong kind of value

`size` is a whole number of bytes with a unit, `op` and `dtype` are words of their lists, `root` is a rank.

    collective grads = allreduce on pod { size: 64 };

Write `64 B` or `64 MiB`.""",
    "C0130": """a name used before its declaration

Declarations are read in order.

    topology pod = torus(n, n);
    param n = 3;

Move `param n` up. A name may not be defined by itself. Functions and blocks do not call themselves, so that every file
ends: write a loop.""",
}

_VALUES = {
    "C0131": """the wrong kind of value

Numbers, sizes, bandwidths, times, truth values, strings, ranges, sets, topologies and switches are different things.
Quantities of one kind add, may be multiplied and divided by numbers, and their ratio is a number.

    let rate = 25 GB/s + 3 us;

The message says what was found and what was needed.""",
    "C0132": """a number that is not an integer

Ranks, shards, indices, steps and sizes of graphs are integers; `/` divides exactly, so 3/2 is not 1.

    topology pod = torus(n / 2, 4);                        # with n = 3

Write `floor(n / 2)` or `ceil(n / 2)`.""",
    "C0133": """a division by zero

`/` and `mod` need a divisor that is not zero, with every value that a loop's variable takes.

    for s in 0..4 { at s: send shard 8 / s from 0 to 1; }

Begin the range at 1, or put the statement into `if s > 0 { .. }`.""",
    "C0134": """a number out of bounds

Numbers have at most 256 bits. Sets and ranges in options have a limited length. Exponents are at least 0, `mod` needs a
positive number, and `log2` a power of two. Steps count from 0.

    at s - 1: send shard 0 from 0 to 1;                    # with s = 0

Correct the expression; the note shows the variables.""",
    "C0135": """an index out of range

Indices, ranks, shards and parts count from 0, and `a..b` excludes b.

    for g in 0..9 { link gpu[g] -> gpu[0]; }               # with rank gpu[8]

Write `0..8`. For neighbours on a ring write `(g + 1) mod 8`.""",
    "C0136": """the wrong number of arguments

    topology cube = hypercube(3, 3);

The hint shows the arguments; `collc topologies` lists all families.""",
    "C0137": """a set with an element twice

    topology ring = circulant(8, {1, 1});

A set has each element once. For parallel links write `biring(8, 4)`, or offsets that mean the same: `{1, 7}`. Lists of
weights may repeat numbers.""",
    "C0138": """a file of weights that has something else in it

A file of weights has a line of numbers for each rank, between commas, semicolons or blanks; `#` begins a comment. A
JSON file has a list of numbers, or a list of lists for the matrix of an alltoallv.

    rank, bytes
    0, 4096

Leave names out. Write 0 for nothing: an empty field is a mistake.""",
}

_BODIES = {
    "C0140": """a statement in the wrong kind of body

rank, switch and link belong to topologies, at, send and reduce to steps; a param belongs to a file or a topology.

    schedule grads using steps { link 0 -> 1; }

Move it to where it belongs.""",
    "C0141": """a declaration in a loop

A topology declares its nodes once: `rank`, `switch` and `param` are in the body itself or in an `if` of the body.

    for b in 0..boxes { rank gpu[8]; }

Write `rank gpu[boxes, 8];`. A value that changes is a `let`. `define` is in the file, or in the steps
outside of other blocks.""",
    "C0142": """too many statements to run

All loops of a body together may run 200 statements per node of the node limit: 4,000,000 by default. A file may call
functions as often.

    for i in 0..100000, j in 0..100000 { link gpu[i mod 8] -> gpu[j mod 8]; }

Check the ranges; raise `--node-limit` if they are meant.""",
    "C0143": """a transfer without a step, or a step inside a step

Every transfer belongs to exactly one `at`.

    send shard 0 from 0 to 1;

Write `at 0: send shard 0 from 0 to 1;` or put several into `at 0 { .. }`. A block that has `at` itself is called
outside `at`, a block without it inside.""",
    "C0144": """collectives that cannot run together

Collectives of one `together` share the links of one topology. A block has at least one collective and at most 4096.

    together { collective tp = allreduce on box; collective dp = allreduce on pod; }

Declare one topology, and name the ranks of each collective: `allreduce on pod among {0..8}`.""",
    "C0150": """a file that cannot be read

    include "site.coll";

Included and imported files are looked for beside the file that names them, then in the folders given with `-I`. Only
regular files are read. For a file outside the main file's folder and the `-I` folders, such as `../site.coll`, messages
show line numbers but no text.""",
    "C0151": """the format of a file in place of a topology's name

    import "node.xml" as nccl-topo;

In a declaration the word after `as` is the name of the topology; the format is recognized by the file's content. In an
expression the word after `as` is the format.

Write `import "node.xml" as node;` or `topology node = import "node.xml" as nccl-topo;`.""",
    "C0152": """a request in an included file

Included files hold declarations: topologies, collectives, parameters. Only the compiled file itself says how to
schedule and emit them.

    emit grads as msccl-xml;                               # in site.coll

Move `schedule` and `emit` to the main file.""",
    "C0153": """includes that form a cycle

A file includes itself, directly or through others; the note shows the cycle. Includes may be 50 deep.

    include "pod.coll";                                    # in pod.coll

Put what both need into a third file. Including a file twice is fine: it is read once.""",
    "C0160": """a transfer between ranks that are not linked

A transfer goes over a link, or over links through switches, never through other ranks.

    at 0: send shard 0 from 0 to 4;                        # on biring(8)

Send in several steps, or to a rank that is linked; the note lists them.""",
    "C0161": """a transfer from a rank to itself

    at s: send shard r from r to (r + s) mod n;            # with s = 0

A rank has its own data already. Begin the range at 1.""",
    "C0162": """a number of parts that is zero or too large

`part i of c` cuts a shard in c parts. A schedule uses one common number of parts, at most 1,048,576.

    at 0: send shard 0 part 0 of 2000003 from 0 to 1;

Use few different numbers that divide each other, such as 2, 4 and 8.""",
    "C0163": """a place in scratch for shards that differ in size

`into scratch 3` counts places of one shard each, so all shards have one size.

    collective parts = allgatherv on ring { weights: {5, 0, 1, 1} };
    schedule parts using steps { at 0: send shard 0 from 0 to 1 into scratch 0; }

Leave `into scratch` out: collc finds a place for what a rank passes on.""",
}

_TOPOLOGY = {
    "C0310": """a topology that is too large

One topology may have 20,000 nodes, and 64 links for each node of that limit. All topologies of a file together may be
eight times as large. collc checks sizes before it builds a topology.

    topology huge = torus(100000, 100000);

The hint names the `--node-limit` that is needed, if that number of nodes can fit into memory. A topology may declare
32,768 names of ranks and switches. `--node-limit` does not change this. One name can be of many ranks, as in
`rank g[100000];`.""",
    "C0311": """arguments that make no graph

    topology ring = biring(8, 3);

Each family has limits. Sizes are at least 1, and rings have at least 2 ranks. The degree of a biring is even. The
offsets of a circulant lie between 1 and m - 1.

    topology broken = without(torus(3, 3), {0 -> 4});

`without` and `degraded` take nodes and links that the topology has. Name a link once for each of several parallel
links. `relabel` takes every rank once.""",
    "C0312": """links with and without a bandwidth in bytes

Either all links of a topology have a bandwidth such as `25 GB/s`, or all have a number of link units.

    link gpu[0] -> gpu[1] : 300 GB/s;
    link gpu[1] -> gpu[0];

Give every link one, or write `} with { bandwidth: 300 GB/s };` after the topology, for the links without one. A plain
number is then a multiple of that bandwidth.""",
    "C0314": """an operator that does not apply

line, degree, power and product need a topology that has only ranks. line also needs equal links, and degree a topology
without self-loops.

    topology big = line(dgx_a100(2));

Apply it to a graph of ranks.""",
    "C0315": """an invalid bandwidth or latency

A link has at most one bandwidth, which is positive, and one latency, which is not negative.

    link gpu[0] -> gpu[1] : 0 GB/s;

Leave out links that carry no data.""",
    "C0316": """no nodes

    rank gpu[boxes - 1, 8];                                # with boxes = 1

Every size in a declaration of nodes is at least 1. A declaration may be in an `if`.""",
    "C0317": """a topology without ranks

Only ranks have data, so a topology of switches alone cannot run a collective.

    topology net { switch leaf[4]; }

Declare ranks: `rank gpu[8];`.""",
    "C0318": """a default for links that have a bandwidth

`with { bandwidth: .. }` is for links without a bandwidth. The links of this topology have one in bytes per second.

Leave it out.""",
    "C0330": """words that are too short for a modified de Bruijn graph

    topology t = modified_debruijn(3, 1);

The graph replaces the self-loops and 2-cycles of the de Bruijn graph by one cycle, on which every rank has one link in
and one out. With words of one letter a rank is on several 2-cycles, and no such cycle gives all its links back.

Words have at least 2 letters: `modified_debruijn(3, 2)`. On as few ranks as letters, `complete(3)` is best.""",
    "C0331": """a modified de Bruijn graph that was not found

collc searches for an order of the ranks on the new cycle that repeats no link of the graph. It found none within its
limit of attempts.

Use `debruijn` or `generalized_kautz`, which have the same sizes.""",
    "C0319": """arguments that make no group

    topology net = cayley(metacyclic(8, 4, 2), {1, 4});

* `metacyclic(m, k, r)` needs r^k = 1 modulo m, and its last argument s, where there is one, s * (r - 1) = 0 modulo m.
* `semidirect` needs a square matrix over the moduli of its abelian group whose k-th power is the identity.
* `symmetric` and `alternating` take 1 to 9 points.
* `psl`, `pgl` and `sl` take 2 and a prime power of at most 64.

`collc topologies cayley` lists the groups.

Write `metacyclic(8, 4, 3)`: 3^4 is 1 modulo 8.""",
    "C0320": """generators that make no Cayley digraph

    topology net = cayley(cyclic(8), {0, 8});

Generators are numbers of elements: 1 up to the order of the group less 1. Element 0 is the identity, which would link
every rank to itself.

Write `cayley(cyclic(8), {1, 3})`.""",
    "C0321": """an unknown distance-regular graph

    topology net = distance_regular("pg(2,6)");

There is no projective plane of order 6. `collc topologies distance_regular` lists the names with ranks, degree and
diameter; upper and lower case and blanks do not matter.

Write `distance_regular("pg(2,5)")`.""",
    "C0322": """a link from a node to itself

    for i in 0..8, j in 0..8 { link gpu[i] -> gpu[j] : 25 GB/s; }

A rank has its own data, and a switch its own traffic, so no schedule uses such a link. It is a warning.

Leave it out: `if i != j { link gpu[i] -> gpu[j] : 25 GB/s; }`.""",
}

_FAULTS = {
    "C0340": """a fault that cannot be read

    collc replan pod.coll --slow 'gpu[3, 1] <-> ib'

A fault of `--without` names nodes or links, as a set of the language does. One of `--slow` also has the bandwidth that
is left, or the part of it: `12.5 GB/s`, `1/2`, `50 %`. In Python a fault begins with `without` or `slow`.

Write `--slow 'gpu[3, 1] <-> ib: 12.5 GB/s'`.""",
    "C0341": """two faults of one link

    collc replan pod.coll --without 'gpu[7, 5]' --slow 'gpu[7, 5] <-> ib: 1/2'

All faults happen to the network as it was. A link is gone, or slow, once. The links of a node that is gone are gone
too.

Leave one of the faults out.""",
    "C0342": """a slow link that is not slower

    collc replan pod.coll --slow 'gpu[3, 1] <-> ib: 400 GB/s'    # it has 50 GB/s

The remaining bandwidth must be more than 0 and less than the bandwidth of the link. Bytes per second need a network
with bandwidths; on other networks, write a part such as `1/2`.

Write less bandwidth. For a link that carries no data, use `--without`.""",
    "C0343": """a collective that needs a rank that is gone

    collective parts = broadcast on pod { root: 3 };
    collc replan pod.coll --without 3

Without its root, a rooted collective has no data. A custom collective names its ranks in its conditions. A collective
needs at least one rank, and data.

Name another root, or other conditions, and compile the file.""",
    "C0344": """a schedule by hand that needs what is gone

    schedule parts using steps { at 0: send shard 0 from 0 to 1; }
    collc replan pod.coll --without '0 -> 1'

Only its author can change a schedule written by hand. collc keeps it if the faults leave all its links, also slower
ones.

Change these transfers, or let collc schedule the collective: `using auto`.""",
}

#: code -> title, blank line, explanation with an example of the mistake and the remedy
CODES: dict[str, str] = {**_SYNTAX, **_NAMES, **_VALUES, **_BODIES, **_TOPOLOGY, **_FAULTS}
