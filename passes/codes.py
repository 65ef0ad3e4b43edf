"""Explanations of the passes' codes, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0501": """a switch in a topology for a scheduler without switches

BFB sends along links from rank to rank. A topology with `switch` nodes has links that end at a switch, which
cannot store data and forward it in a later step.

    topology box { rank gpu[8]; switch nv; for g in 0..8 { link gpu[g] <-> nv; } }
    collective c = allgather on box;
    schedule c using bfb;          # C0501

The message names the schedulers that take the collective on this network. No scheduler sends alltoall through switches.
Write the schedule by hand (`using steps` finds routes through switches), or remove the switches and link the ranks that
they connect.
""",
    "C0503": """a collective that the scheduler does not schedule

Every scheduler schedules some collectives; `collc schedulers` lists them. BFB schedules allgather, reduce-scatter,
allreduce, broadcast and reduce.

The message names the schedulers that take the collective on this network: write one of them. If there is none, write
the schedule by hand with `schedule NAME using steps { ... }`.
""",
    "C0504": """an exact schedule would need more parts than can be counted

Balancing links exactly divides shards into fractions. Their least common denominator grows with the number of links of
a node, and with the denominators of bandwidths and latencies. Here it exceeds 2^62.

Give a number of chunks per shard: `schedule c using bfb { chunks: 16 }` is the best schedule with 16 chunks.
`collc cost` prints its distance from the exact optimum.
""",
    "C0505": """a schedule cannot be run backwards on one-way links

Reversing a schedule reverses every transfer. The result is a schedule for the transpose of the network. It is one for
the network itself only if every link has a link of the same kind in the opposite direction (`<->`).

    collective c = allreduce on uniring(4);
    # collc -p 'bfb{collective=allgather},compose' ...      C0505

Use the scheduler instead: `bfb` also schedules reduce-scatter and allreduce on one-way links, on the transpose.
""",
    "C0506": """schedules that do not fit together

An allreduce is composed of a reduce-scatter followed by an allgather on the same network. No other two collectives
compose. The `compose` pass makes the missing half itself, by reversing the half that it gets.
""",
    "C0507": """an impossible number of chunks

`discretize{max-chunks=N}` needs N of at least 1: a shard has at least one chunk.
""",
    "C0574": """operations that need more barriers than a rank has

`shares` lets several blocks do one operation, each on its slice of all items. If operations access a chunk in items of
different sizes, the slices differ. Then the blocks that share operations meet at a barrier, one for each of the former
blocks. A rank has 16 barriers.

    emit c as mscclpp-json { shares: 4 };      # C0574 if a rank has more than 16 blocks

Use `instances` in place of `shares`: each instance has chunks of its own.
""",
    "C0598": """more chunks than can be numbered

Runtimes number the chunks of a buffer, MSCCL up to 32767. A buffer with more shards than that has more chunks than
numbers, even with one chunk per shard. Use a target without this limit (`mpi-c`), or fewer ranks.
""",
    "C0599": """an unknown value of `pack`

With `auto`, `coalesce` copies data that are not contiguous into scratch and sends them in one message, if that saves
time at the collective's size. The other values are `never` and `always`:

    collc pod.coll -p 'bfb,discretize,lower,coalesce{pack=always}'
""",
    "C0508": """an impossible limit

Limits of a pass (`max-steps`, `max-threadblocks`, `max-channels`, `max-count`, `channels`, `fifo-depth`) must be at
least 1. Omit an option for no limit, or for the target's own.
""",
    "C0512": """more pieces than elements

    collective grads = allreduce on torus(3, 3) { size: 1 MiB };
    schedule grads using bfb { chunks: 99999999 };

A chunk or piece has at least one element, so a shard of 29,128 elements cannot be cut into more.

Use a smaller number, or leave the option out. Without a `size` there is no limit.""",
    "C0509": """the program does not fit the runtime

Runtimes limit the threadblocks of a rank, the steps of a threadblock and the channels (`collc targets NAME` shows the
limits). collc distributes messages over more channels until every threadblock is short enough, and lets sends and
receives share threadblocks if there are too many. Here even that is not enough.

Divide shards into fewer chunks (`-p 'bfb,discretize{max-chunks=1},lower,coalesce,balance-threadblocks'`, or
`discretize: max-chunks` in the pipeline), use fewer ranks or links, or choose a runtime with larger limits.
""",
    "C0510": """instructions that a pass cannot handle

`balance-threadblocks` moves sends and receives to other threadblocks. So it must run before `fuse` turns a receive and
a send into one instruction.
""",
    "C0511": """an unknown phase

`bfb{collective=NAME}` schedules one half of the requested allreduce; `compose` completes it. NAME is `allgather` or
`reduce-scatter`.
""",
    "C0535": """a network that is too large for exact schedules

`exact` solves an integer program for the rank, chunk and step of every receive. Its variables grow with the square of
the ranks, the chunks and the steps; it tries programs of at most 20,000 variables. A gather or scatter is a flow and
needs no such program; there the links times the steps must be at most 32,768.

Use `bfb`, or fewer chunks. `exact { size-limit: 50000 }` raises the limit, and the search may take longer.
""",
    "C0536": """a schedule that does not exist

Every schedule takes more steps or rounds than you allow. The note names the proof: the distance of two ranks, the data
that must cross some links, or an exhaustive search.

    collective c = allgather on biring(6);
    schedule c using exact { steps: 2 };                 # C0536: it is 3 hops from rank 0 to rank 3
    schedule c using exact { chunks: 2, rounds: 4 };     # C0536: 5 shards of 2 chunks over 2 links

Both limits apply to the whole schedule; of an allreduce, to its two phases together.

Allow more steps, more rounds (a round is one chunk on every link), or another number of chunks.
""",
    "C0537": """a schedule that is not proved to be the best

With `exact { proof: true }` a schedule needs a proof that no better one exists for its chunks and steps. The search
found a schedule, but reached its limits before a proof. The message states its rounds and the proven lower bound.

Raise `effort` or `size-limit`, use fewer chunks, or omit `proof`: the schedule's scheduler then states the gap.
""",
    "C0538": """options that `exact` cannot follow

`chunks`, `steps`, `rounds`, `effort` and `size-limit` are at least 1. `rounds` counts chunks on a link, so it needs
`chunks`. `objective` is `latency` (fewest steps, then fewest rounds) or `bandwidth` (the reverse). An allreduce has no
front of its own, because `exact` schedules its halves separately. Chunks have one size, so the shards of a custom
collective must be equal.
""",
    "C0539": """exact schedules and switches

`exact` decides what every rank receives over each of its links, so every link must join two ranks.

Remove the switches and link the ranks that they connect, or write the schedule by hand with `using steps`.
""",
    "C0540": """a search that reached its limits

The search for an exact schedule reached its limits without a schedule, and without a proof that there is none. The
limits count steps of the solver, so the search ends at the same place on every machine.

Use fewer chunks, allow more rounds or steps, raise `effort`, or use `bfb`.
""",
    "C0542": """shards that cannot be cut into equal ones

Files of MSCCL-XML have chunks of one size. collc cuts uneven shards into equal ones for them, as a collective that only
copies. A reduce-scatterv reduces.

    collective grads = reduce-scatterv on ring4 { weights: {5, 0, 1, 2} };
    emit grads as msccl-xml;                            # C0542

Use the target `mpi-c`, or equal shards.""",
    "C0543": """weights that need too many chunks

Files of MSCCL-XML have chunks of one size. collc divides all weights by their greatest common divisor. Then a shard of
weight w becomes w shards. There are at most 32768 of them.

    collective parts = allgatherv on ring4 { weights: {1000003, 1, 1, 1} };
    emit parts as msccl-xml;                            # C0543

Round the weights: `{1000000, 1000, 1000, 1000}` is `{1000, 1, 1, 1}`.""",
    "C0545": """an impossible number of pieces

`pipelining` sends the data of every tree of a forest in `pieces` equal pieces, one after another. `pieces` is at
least 1. `general { pieces: P }` takes 1 to 4096.

    collc a.coll -p 'forest,pipelining{pieces=8}' -t ir

Without the option, the pass uses the number that the scheduler chose.
""",
    "C0546": """a forest of too many transfers

`pipelining` writes out one transfer for every edge of every tree and every piece, at most 2^26 of them. A forest may
be larger: `collc cost` and `collc verify` do not write it out.

Use fewer pieces (`-p 'forest,pipelining{pieces=1}'`), fewer trees per root (a smaller `k`), or fewer ranks.
""",
    "C0547": """an unknown objective of `general`

`general` minimizes the predicted `time` at the collective's size, `latency` (the number of steps) or `bandwidth` (the
bandwidth time).

    schedule c using general { objective: speed };          # C0547

Omit `objective` for the least time.
""",
    "C0548": """a collective that is too large for `general`

`general` searches trees for every shard. It takes at most 65,536 shards, and 2^26 pairs of a shard and a rank.

Use fewer and larger shards, or a smaller topology. For an alltoall, `flow` has one flow for each rank.
""",
    "C0550": """an impossible number of chunks or bytes

`bfb { chunks: P }` divides every shard into P equal chunks and balances the links as well as whole chunks allow.
`bfb { size: N }` schedules for N bytes if links differ in latency. Both are at least 1.

    schedule c using bfb { chunks: 4 };

Omit `chunks` for any parts, and `size` for the size of the collective.
""",
    "C0530": """a collective that binary trees cannot do

double-binary-tree schedules allreduce, broadcast and reduce: in these collectives all data pass through the root of a
tree.

    collective c = allgather on double_binary_tree(16);
    schedule c using double-binary-tree;          # C0530

Use `bfb`, which schedules allgather and reduce-scatter on any network of ranks.
""",
    "C0531": """a network without the links of the two trees

double-binary-tree sends along the edges of two fixed trees on the ranks' numbers, in both directions. With `routed:
false` the network must have these links, as `double_binary_tree(16)` and `complete(16)` do.

    collective c = allreduce on torus(4, 4);
    schedule c using double-binary-tree { routed: false };          # C0531

Omit `routed`, so that messages take shortest paths of several links, or use one of these topologies.
""",
    "C0532": """an impossible number of pieces

`pipeline` is the number of pieces in which each tree sends its half of the data: 1 to 65,536. By default it is the
number with the least predicted time at the collective's size.
""",
    "C0533": """`one-port` with a rooted collective

`one-port` requires that a rank has at most two children in both trees together. The root of a broadcast or reduce is
the root of both trees, so it may have more.

    schedule c using double-binary-tree { one-port: true };   # C0533 for a broadcast

Omit `one-port`, or set it for allreduce only.
""",
    "C0560": """an all-to-all rate of fewer than 2 ranks

The rate f of an all-to-all is the largest rate at which every rank can send to every other at the same time. A single
rank sends no data.

Choose a topology of at least 2 ranks.
""",
    "C0561": """fewer steps than ranks are apart

In one step data cross one link, so an all-to-all takes at least as many steps as the network's diameter.

    collective c = alltoall on uniring(4);
    schedule c using flow { steps: 2 };          # C0561: rank 0 and rank 3 are 3 links apart

Omit `steps`: `flow` takes the diameter, or a few steps more if that is faster.
""",
    "C0562": """an impossible number of chunks

`flow { chunks: N }` divides every shard into at most N equal chunks, 1 to 64. A few usually suffice, because every
chunk takes its own route and there are many shards. `general { chunks: N }` takes 1 to 5040.
""",
    "C0563": """an all-to-all that is too large

An all-to-all of N ranks has N * N shards. Each crosses as many links as its two ranks are apart. `flow` makes at most
2^26 transfers: about 2,500 ranks on networks of small diameter.

Use a smaller topology.
""",
    "C0564": """an option that does not apply

On networks with switches, and of gathers and scatters, `flow` sends all data in one step, along routes that switches
and ranks forward. `steps` and `thorough` are for an all-to-all on a network of ranks only.

    collective c = alltoall on dgx_a100(2);
    schedule c using flow { steps: 3 };          # C0564

Omit the option.
""",
    "C0566": """a relay would have to hold two values of one chunk at a time

A rank that is no member of the collective relays data of the members in its scratch, which has room for one value of
each chunk. In an allreduce, partial sums that are not equal can meet in one relay in one step.

Use `forest`: its relays add what they receive. Or write `relays: never` in the options of the schedule, if the members
are connected without other ranks.
""",
    "C0567": """a scheduler that uses no relays, and members that need some

The members of the collective reach each other only through other ranks. To this scheduler a rank that only relays is
like a switch, and it takes networks of ranks only.

    topology pod = biring(6);
    collective c = allgather on pod among {0, 2, 4};
    schedule c using bfb;          # C0567: data from 0 to 2 pass rank 1

Use `forest` or `auto`.
""",
    "C0568": """a division of the links that cannot be computed exactly

Groups of a `together` block share links. Their parts are the solution of a linear program, which is solved once more in
fractions from the last basis of the solver. Here that solution breaks a row: bandwidths, or sizes of groups, differ too
much for the solver's numbers.

Schedule the groups one by one, without `together`, or give bandwidths of fewer digits.
""",
    "C0570": """a database of topologies that cannot be read

A row has nine words: nodes, T_L, T_B, the T_B of a reduce-scatter or `-`, diameter, `->` or `<->`, the all-to-all rate
or `-`, scheduler, expression. The expression may contain spaces.

    9 2 8/9 8/9 2 <-> 1/3 bfb hamming(2, 3)

Build the file with `collc find --refresh --database FILE`.
""",
    "C0571": """a topology whose size or degree differs from its row

A row of a database states the number of nodes and the degree of its expression. The topology of the expression has
others.

    10 2 8/9 8/9 2 <-> - bfb hamming(2, 3)          # hamming(2, 3) has 9 ranks

Correct the row, or delete it and search again.
""",
    "C0572": """more blocks than run at once

Blocks of MSCCL++ wait for each other, so all blocks of a rank must run at once, each on a multiprocessor. The pass
`fit-operations` cuts blocks of more than 64 operations, which makes more of them.

    collc pod.coll -t 'mscclpp-json{gpu=4}'

Use packets (`protocol=LL`), which need fewer operations, fewer chunks, fewer instances or shares, or a larger GPU.""",
    "C0573": """an operation that does not fit, and cannot be split

An operation of MSCCL++ has at most 8 channels and 10 items on a side, and a block holds 64 operations. The pass
`fit-operations` splits puts, signals, waits and sums. It cannot split others, or cut a pipeline.

Let a rank reach fewer peers at once, or use a shorter pipeline.""",
    "C0575": """a topology whose cost the finder cannot compute

The finder computes the cost of a breadth-first allgather without building it. The network must have ranks only, as many
links into every rank as out of it, and one bandwidth and latency for all links.

`collc cost` predicts the cost of a schedule on any topology.
""",
    "C0579": """racks of a network with switches

Racks hold ranks. The racks of switches are not known, so links to switches are not counted.

    collc topologies 'fat_tree(4)' --as cabling --rack 4     # C0579

Write the list without racks.
""",
    "C0520": """a collective that expansion cannot schedule

`using expansion` expands the schedule of a base topology by the operators that built the topology. It schedules
allgather, reduce-scatter and allreduce.

    topology t = line(complete(3));
    collective c = broadcast on t { root: 0 };
    schedule c using expansion;          # C0520

Use `bfb`, which also schedules broadcast and reduce, or write the schedule by hand.
""",
    "C0521": """a topology that differs from what its operator builds

A topology stores the operator and the base that built it. `expansion` uses them. Here the links have been changed
since, so the schedule of the base does not fit.

Schedule the topology with `bfb`, or build it by the operator and do not change its links.
""",
    "C0522": """a scheduler that cannot schedule a base

`using expansion { base: NAME }` names the scheduler for base topologies: any that `collc schedulers` lists, except
`expansion` itself, `steps` and `auto`. `objective` needs a scheduler with that option, which is `exact`.

    schedule c using expansion { base: bfb };
""",
    "C0523": """a network that is not isomorphic to its transpose

The `transpose` pass reverses a schedule and renumbers the ranks so that it fits the network again. That needs an
isomorphism from the network to its transpose (all links reversed), and there is none. Generalized Kautz digraphs are
such networks.

Use a scheduler instead: `bfb` and `expansion` schedule reduce-scatter and allreduce on any network of ranks.
""",
    "C0524": """a search for an isomorphism that reached its limit

The `transpose` pass searches for an isomorphism from a network to its transpose. The search ends after a fixed effort,
the number of links examined. Here it ended before it had tried all possibilities.

Raise the effort (`-p 'bfb{collective=allgather},transpose{effort=1000000000}'`), or use a scheduler for both
collectives.
""",
    "C0525": """an expanded schedule that is too large

`expansion` writes out every transfer, at most 2^26 of them: about 8,000 ranks.

Use fewer ranks, or `bfb`: on a symmetric topology it stores one rank's part of the schedule.
""",
    "C0576": """sends and receives cannot express a one-sided program

A put and the wait for it become a send and a receive, so most plans for MSCCL++ convert to other targets. Two things
do not: operations in which a switch adds or multicasts, and a sum that overlaps one of its sources in part.

    collc convert plan.json -t msccl-xml      # C0576: `glres`

The message names the operation. Compile the schedule for the other target instead.
""",
    "C0577": """a one-sided program that never ends

In every order of its operations, a block waits forever: no other block sends its signal, semaphore, barrier or packets.
`collc verify plan.json` names the operations that wait for each other.
""",
    "C0578": """a schedule that shares links in switches

A switch that multicasts or reduces lets transfers share links. Only plans of MSCCL++ have operations for that
(`-t mscclpp-json`), and only for intervals that no other transfer moves in part. Programs of sends and receives have
none.

    topology box = dgx_h100(1, 0, 1);          # NVSwitches that multicast and reduce
    collective c = allreduce on box;
    schedule c using forest;
    emit c as msccl-xml;                       # C0578

Write `schedule c using forest { in-network: false }`, or a network whose switches only forward: `dgx_h100(1)` is one.
""",
    "C0580": """a link without bandwidth

`forest` divides data in proportion to bandwidth. A `.coll` file cannot declare a link of 0 GB/s, but a topology from
Python can have one.

Remove links without bandwidth.
""",
    "C0581": """a node with different bandwidth in and out

The links into this node have more or less bandwidth in sum than the links out of it. Spanning trees can hardly use the
difference: every rank receives the same data, and a switch sends exactly what it receives. Most often a link is
missing, or is `->` instead of `<->`.

    topology one {
      rank g[3]; switch w;
      link g[0] <-> w : 10 GB/s;
      link g[1] <-> w : 10 GB/s;
      link g[2] -> w : 30 GB/s;       # C0581: 50 GB/s into w, 30 GB/s out
      link w -> g[2] : 10 GB/s;
    }

Write `<->`, or give the node's links the same bandwidth in sum in both directions. `using forest { unbalanced: true }`
allows the difference at ranks, and at switches as long as no tree is lost.
""",
    "C0582": """a switch that no route uses

Data that enter a switch without an outgoing link are lost. A switch without an incoming link has no data to send. A
switch whose links all lead to one rank connects no two nodes. Perhaps a link `->` should be `<->`.

    topology t {
      rank g[2]; switch w;
      link g[0] <-> g[1];
      link g[0] -> w;                 # C0582
    }

Write `<->`, add the missing links, or remove the switch.
""",
    "C0584": """a switch with more trees in than out

The trees of a forest pass through switches, which cannot copy: as many trees must leave a switch as enter it. Bandwidth
is counted in whole trees, and with a fixed `k` it is rounded down. So if a switch's incoming and outgoing links differ,
the numbers of trees may differ.

    topology one { rank g[3]; switch w; link g[0] -> w at 3 GB/s; link g[1] -> w at 3 GB/s; link g[2] -> w at 3 GB/s;
                   link w -> g[0] at 2 GB/s; link w -> g[1] at 2 GB/s; link w -> g[2] at 5 GB/s; }

collc ignores the excess if no tree is lost. Otherwise omit `k`: the optimal number of trees needs no rounding, so
balanced bandwidth gives balanced trees. Or give every link to a switch a link back with the same bandwidth.
""",
    "C0585": """a number of trees or pieces that `forest` cannot use

Option `k` of the scheduler `forest` is the number of trees per root: 1 to 4096, `optimal`, or `auto` for the best of at
most 10. `pieces` is the number of pieces that are sent one after another: 1 to 4096. `root` is the rank through which
an allreduce with `via: reduce` goes.

    schedule grads using forest { k: 0 };

Write `k: 1` for one tree per rank, or omit the option.
""",
    "C0586": """an impossible number of rings or channels

`ring { rings: R }` and `box-trees { channels: C }` take 1 to 64. On a cluster of boxes each has a NIC of its own in
every box, as far as there are NICs.

    topology pod = dgx_a100(4);                    # 8 NICs in every box
    collective c = allreduce on pod;
    schedule c using ring { rings: nics };         # 8 rings
    schedule c using ring { rings: 100 };          # C0586

Write `rings: nics`, or omit `channels`, for one for each NIC.
""",
    "C0587": """a network without boxes, or boxes of different sizes

`two-level`, `two-tier` and `box-trees` need a cluster of boxes. collc finds boxes from the links: ranks that are joined
by faster links than all ranks together, or without a switch, or that hang from switches of their own. `two-level` joins
the ranks of one number, one in each box, to a rail. So all its boxes must have as many ranks.

    topology pod = subset(dgx_a100(2), {0, 1, 2, 3, 8, 9});
    collective c = allreduce on pod;
    schedule c using two-level;                    # C0587: boxes of 2 and 4 ranks

`box-trees`, `two-tier` and `ring { rings: nics }` take boxes of different sizes, `forest` takes any network.
""",
    "C0588": """a network without a ring through its boxes

`nccl-rings` needs, in every box, a path through all its ranks from one NIC to another. In a network of one box it needs
a cycle. Ranks do not forward: between neighbours of a ring there are links and switches only.

    collective c = allreduce on mesh(3, 3);      # 9 ranks, chequered black and white: no cycle
    schedule c using nccl-rings;                 # C0588

`node` says how many ranks are in a box, if names and links do not tell.
""",
    "C0589": """an impossible number of slices

`two-tier` cuts rounds that carry more than a fraction of the data. `slices` says which: with 8, no round carries more
than an eighth of what the busiest box sends or receives.

    collective c = alltoall on dgx_h100(8);
    schedule c using two-tier { slices: 0 };       # C0589

Give a number from 1 to 256, or leave `slices` out: then it is the one with the least predicted time.
""",
    "C0590": """a torus of another size than the network

`shape: "8x8"` is the torus by which the ranks are numbered, last dimension fastest. The product of its sizes must be
the number of ranks. The default is the shape of the topology; a network that is not a grid has one dimension.

    schedule c using swing { shape: "4x4" };     # C0590 on 12 ranks
""",
    "C0591": """a collective that this algorithm does not schedule

Swing and similar algorithms schedule allreduce, reduce-scatter and allgather. Those with trees also schedule broadcast
and reduce, and `bine` gather and scatter. The latency variants exchange whole vectors, so they schedule allreduce only.

    collective c = alltoall on torus(4, 4);
    schedule c using swing;          # C0591

The message names the schedulers that take the collective on this network. Without `schedule`, `auto` chooses one.
""",
    "C0592": """a dimension that the latency variant cannot have

A latency variant sends the whole vector in every step. Each step of Swing doubles the contributions that a rank has
(Trivance triples them). So in a dimension that is not a power of 2 (of 3) some contributions would be added twice.

    collective c = allreduce on torus(6, 4);
    schedule c using swing { variant: latency, fold: false };        # C0592: dimension 0 of 6x4
    schedule c using trivance { variant: latency };                  # C0592

`fold` (Swing's default) takes two more steps: some ranks first send their data to others, and receive the result at the
end. The operations min, max, band, bor, land and lor give the same result if a contribution is repeated. With
`fold: false` the program is for these operations only, and does not fold in even sizes. The bandwidth variants take
any size.
""",
    "C0593": """an operation that depends on the order of ranks

`op: ordered` is a user's operation that is not commutative, such as the product of matrices; `op: user` is a
commutative one. All schedulers combine contributions in the order of their arrival, not in the order of ranks.

    collective c = allreduce on torus(4) { op: ordered };
    schedule c using swing;          # C0593

Gather the contributions and combine them where you need them; allgather and gather take any data.
""",
    "C0594": """too many transfers to write out

A transfer moves a part of one shard. An exchange among N ranks has about N * N transfers per chunk and phase; an
algorithm that sends whole vectors has N * N per step. collc writes out at most 2^26.

Use fewer ranks, or the bandwidth variant, which sends every shard once. `collc simulate` needs the messages only.
""",
    "C0595": """a network without a ring

`ring` sends data along cycles through all ranks: of a torus or mesh, or the ranks in their order. The scheduler knows
no such cycle of this network.

    collective c = allreduce on mesh(3, 3);      # 9 ranks, chequered black and white: no cycle
    schedule c using ring;                       # C0595

`bucket` needs rings of single dimensions only; `bfb` needs no particular links.
""",
    "C0596": """a buffer that is too small for a shard

`pat { buffer: K }` lets a message carry at most K shards; K is at least 1. By default messages carry as many as a
logarithmic number of steps needs.
""",
    "C0597": """a network without a second ring

`ring { rings: 2 }` needs two rings through all ranks without a common link. A torus of r x c ranks has them if r = c k
and gcd(r, c - 1) = 1: every square, and 9 x 3 or 8 x 2. `shifted_ring`, and rings with parallel links, have them too.

    collective c = allreduce on torus(6, 4);
    schedule c using ring { rings: 2 };          # C0597: 6 is no multiple of 4

Omit `rings` to use the rings that exist. `bucket` uses all links of a torus of any size.
""",
}
