"""What ``collc explain`` says of the mistakes that passes report."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0501": """a scheduler for ranks only met a switch

BFB sends along links from rank to rank. A topology with `switch` nodes has links that end at a switch, which
cannot keep data and pass it on in a later step.

    topology box { rank gpu[8]; switch nv; for g in 0..8 { link gpu[g] <-> nv; } }
    collective c = allgather on box;
    schedule c using bfb;          # C0501

Write the schedule by hand (`using steps`; routes through switches are found for you), or leave the switches out and
link the ranks that they join.
""",
    "C0503": """the scheduler does not know this collective

Every scheduler knows some collectives; `collc schedulers` lists them. BFB schedules allgather, reduce-scatter,
allreduce, broadcast and reduce.

Choose another scheduler, or write the schedule by hand with `schedule NAME using steps { ... }`.
""",
    "C0504": """an exact schedule would need more parts than can be counted

Balancing links exactly divides shards into fractions; their least common denominator grows with the number of links
of a node, and with how odd their bandwidths and latencies are, and has passed 2^62 here.

Give the number of chunks that a shard is cut in: `schedule c using bfb { chunks: 16 }` is the best schedule with so
many, and `collc cost` says how far it is from any parts.
""",
    "C0505": """a schedule cannot be run backwards on one-way links

Reversing a schedule turns every transfer round. That gives a schedule for the transpose of the network; it is one
for the network itself only where every link has a partner of the same kind in the opposite direction (`<->`).

    collective c = allreduce on uniring(4);
    # collc -p 'bfb{collective=allgather},compose' ...      C0505

Let the scheduler do it: `bfb` schedules reduce-scatter and allreduce on one-way links too, on the transpose.
""",
    "C0506": """schedules that do not fit together

An allreduce is composed of a reduce-scatter followed by an allgather on the same network; nothing else composes.
The `compose` pass makes the missing half itself, by reversing the half it is given.
""",
    "C0507": """an impossible number of chunks

`discretize{max-chunks=N}` needs N of at least 1: a shard cannot be cut in fewer than one chunk.
""",
    "C0598": """more chunks than can be numbered

Runtimes number the chunks of a buffer, MSCCL's up to 32767. A buffer that holds the shards of more ranks than that has
more chunks than numbers even where every shard is one chunk. Use a target without such a limit (`mpi-c`), or schedule
fewer ranks.
""",
    "C0599": """an unknown way to pack messages

`coalesce` copies what does not lie together into scratch, to send it in one message, where that pays at the size of the
collective. Say `auto` for that, `never`, or `always`:

    collc pod.coll -p 'bfb,discretize,lower,coalesce{pack=always}'
""",
    "C0508": """an impossible limit

Limits given to a pass (`max-steps`, `max-threadblocks`, `max-channels`, `max-count`, `channels`, `fifo-depth`)
must be at least 1. Leave an option out for no limit, or for the target's own.
""",
    "C0509": """the program does not fit the runtime

Runtimes limit the threadblocks of a rank, the steps of a threadblock and the channels (`collc targets NAME` shows the
limits). Messages are divided among more channels until every threadblock is short enough, and sends and receives share
threadblocks where there would be too many; here even that is not enough.

Cut shards in fewer chunks (`-p 'bfb,discretize{max-chunks=1},lower,coalesce,balance-threadblocks'`, or
`discretize: max-chunks` in the pipeline), use fewer ranks or links, or choose a runtime with larger limits.
""",
    "C0510": """a pass met instructions it cannot take

`balance-threadblocks` moves sends and receives to other threadblocks, so it must run before sends and receives are
fused into one instruction.
""",
    "C0511": """an unknown phase

`bfb{collective=NAME}` schedules another collective than the one asked for, as the first half of an allreduce that
`compose` completes. NAME is `allgather` or `reduce-scatter`.
""",
    "C0535": """a network that is too large for exact schedules

`exact` asks an integer program which rank receives which chunk at which step. Its unknowns grow with the square of the
ranks, the chunks and the steps; programs of more than 20,000 are not tried. A gather or scatter is a flow and needs no
such program; there the links times the steps must be no more than 32,768.

Use `bfb`, or ask for fewer chunks. `exact { size-limit: 50000 }` raises the limit, and what a search may take.
""",
    "C0536": """there is no such schedule

The steps or rounds that were asked for are fewer than any schedule takes. The note names what shows it: two ranks that
are so many hops apart, links through which so much must pass, or an exhaustive search.

    collective c = allgather on biring(6);
    schedule c using exact { steps: 2 };                 # C0536: it is 3 hops from rank 0 to rank 3
    schedule c using exact { chunks: 2, rounds: 4 };     # C0536: 5 shards of 2 chunks over 2 links

Both limits hold for the whole schedule: for an allreduce, for its two phases together.

Allow more steps, more rounds (a round is one chunk on every link), or another number of chunks.
""",
    "C0537": """a schedule that is not proved to be the best

With `exact { proof: true }` a schedule counts only if nothing better exists for its chunks and steps. The search found
one, and ended at its limits before it could tell whether that is the best. The message says how many rounds it takes,
and how many are proved to be needed.

Raise `effort` or `size-limit`, ask for fewer chunks, or leave `proof` out: the schedule's scheduler then names the gap.
""",
    "C0538": """options that `exact` cannot follow

`chunks`, `steps`, `rounds`, `effort` and `size-limit` are at least 1; `rounds` counts chunks on a link, so it needs
`chunks`; `objective` is `latency` (fewest steps, then fewest rounds) or `bandwidth` (the reverse). An allreduce has no
front of its own, since its halves are scheduled one by one.
""",
    "C0539": """exact schedules and switches

`exact` decides what every rank receives over each of its links; links that end at a switch are not rank to rank.

Leave the switches out and link the ranks that they join, or write the schedule by hand with `using steps`.
""",
    "C0540": """a search that did not end

The search for an exact schedule came to its limits with neither a schedule nor a proof that there is none. The limits
count steps of the solver, so the search ends at the same place on every machine.

Ask for fewer chunks or for more rounds or steps, raise `effort`, or use `bfb`.
""",
    "C0545": """an impossible number of pieces of a tree

`stream` cuts what every tree of a forest carries in `pieces` equal pieces that follow each other: at least 1.

    collc a.coll -p 'forest,stream{pieces=8}' -t ir

Left out, it is what the forest says, which the scheduler has chosen.
""",
    "C0546": """a forest of too many transfers

`stream` writes out one transfer for every edge of every tree and every piece, at most 2^26 of them. A forest itself may
be larger: `collc cost` and `collc verify` take it as it is.

Use fewer pieces (`-p 'forest,stream{pieces=1}'`), fewer trees a root (a smaller `k`), or fewer ranks.
""",
    "C0550": """an impossible number of chunks or bytes

`bfb { chunks: P }` cuts every shard in P equal chunks and divides them among the links as well as whole chunks allow;
`bfb { size: N }` plans for N bytes where links differ in latency. Both are at least 1.

    schedule c using bfb { chunks: 4 };

Leave `chunks` out for any parts, and `size` out for the size of the collective.
""",
    "C0530": """a collective that trees are not for

double-binary-tree schedules allreduce, broadcast and reduce: collectives in which all data pass through the root of a
tree.

    collective c = allgather on double_binary_tree(16);
    schedule c using double-binary-tree;          # C0530

Use `bfb`, which schedules allgather and reduce-scatter on any network of ranks.
""",
    "C0531": """a network without the links of the two trees

double-binary-tree sends along the edges of two fixed trees on the ranks' numbers, both ways. With `routed: false` the
network must have these links, as `double_binary_tree(16)` and `complete(16)` have.

    collective c = allreduce on torus(4, 4);
    schedule c using double-binary-tree { routed: false };          # C0531

Leave `routed` out, and messages take shortest paths of several links, or use one of those topologies.
""",
    "C0532": """an impossible number of pieces

`pipeline` says in how many pieces each half of the data follows its tree: 1 to 65,536. Left out, it is the number that
takes least time by the cost model at the collective's size.
""",
    "C0533": """one port with a root

`one-port` uses that a rank has at most two children in the two trees together. A broadcast or reduce hangs both trees
up at its own root, where that no longer holds.

    schedule c using double-binary-tree { one-port: true };   # C0533 for a broadcast

Leave `one-port` out, or set it for allreduce only.
""",
    "C0560": """an all-to-all rate of fewer than 2 ranks

The rate f of an all-to-all is the largest amount that every rank can send to every other at once. With one rank nothing
is sent.

Choose a topology of at least 2 ranks.
""",
    "C0561": """fewer steps than ranks are apart

In one step data cross one link, so an all-to-all takes at least as many steps as the diameter of the network has links.

    collective c = alltoall on uniring(4);
    schedule c using flow { steps: 2 };          # C0561: rank 0 and rank 3 are 3 links apart

Leave `steps` out: `flow` takes the diameter, or a few more where that is faster.
""",
    "C0562": """an impossible number of pieces

`flow { chunks: N }` cuts every shard in at most N equal pieces, 1 to 64. Few are mostly enough: every piece takes one
path, and shards are many.
""",
    "C0563": """an all-to-all that is too large

An all-to-all of N ranks has N * N shards, each of which crosses as many links as its ranks are apart. `flow` makes at
most 2^26 transfers: about 2,500 ranks on networks of small diameter.

Use a smaller topology.
""",
    "C0570": """a database of topologies that cannot be read

A row has nine words: nodes, T_L, T_B, the T_B of a reduce-scatter or `-`, diameter, `->` or `<->`, the all-to-all rate
or `-`, the scheduler, and the expression, which may have blanks.

    9 2 8/9 8/9 2 <-> 1/3 bfb hamming(2, 3)

Build the file with `collc find --refresh --database FILE`.
""",
    "C0571": """a topology of another size or degree than it is listed with

A row of a database says how many nodes and links out of each its expression has; building it gave something else.

    10 2 8/9 8/9 2 <-> - bfb hamming(2, 3)          # hamming(2, 3) has 9 ranks

Correct the row, or delete it and search again.
""",
    "C0575": """a topology whose cost the finder cannot tell

The finder computes what a breadth-first allgather costs without building it. It does so for networks of ranks only,
with as many links into every rank as out of it, all of the same bandwidth and latency.

`collc cost` predicts the cost of a schedule on any topology.
""",
    "C0520": """a collective that expansion cannot schedule

`using expansion` carries the schedule of a base topology along the operators that built the topology. It does so for
allgather, reduce-scatter and allreduce.

    topology t = line(complete(3));
    collective c = broadcast on t { root: 0 };
    schedule c using expansion;          # C0520

Choose bfb, which schedules broadcast and reduce too, or write the schedule by hand.
""",
    "C0521": """a topology that is not what built it says

A topology remembers which operator built it, and from what; expansion relies on that. Here the links have been changed
since, so the schedule of the base would not fit them.

Schedule the topology with bfb, or build it by the operator and leave its links as they are.
""",
    "C0522": """a scheduler that a base cannot have

`using expansion { base: NAME }` names the scheduler of the topologies that no operator built: one of those that
`collc schedulers` lists, except `expansion` itself, `steps` and `auto`. An `objective` goes with a scheduler that has
one, which is `exact`.

    schedule c using expansion { base: bfb };
""",
    "C0523": """a network that is not isomorphic to its transpose

The `transpose` pass runs a schedule backwards and renumbers the ranks so that it fits the network again. That needs an
isomorphism from the network to its transpose (all links turned round), and there is none. Generalized Kautz digraphs
are such networks.

Let the scheduler do it: `bfb` and `expansion` schedule reduce-scatter and allreduce on any network of ranks.
""",
    "C0524": """an isomorphism that was not found in time

Whether a network is isomorphic to its transpose is found by search, and the search of the `transpose` pass ends after
a fixed effort, the number of links looked at. It ended before all possibilities were tried.

Raise the effort (`-p 'bfb{collective=allgather},transpose{effort=1000000000}'`), or let the scheduler do both
collectives.
""",
    "C0525": """an expanded schedule that is too large

Expanded schedules are written out transfer by transfer, at most 2^26 of them: some 8,000 ranks.

Use fewer ranks, or `bfb`: it keeps the schedule of a topology whose ranks all look alike as one rank's.
""",
    "C0580": """a link without bandwidth

Forests divide data by what links can carry. A topology of the language cannot have a link of 0 GB/s; one that was built
otherwise can.

Leave out links that carry nothing.
""",
    "C0581": """a node with more bandwidth in than out

Trees of all ranks bring every rank the same data and take it on, and a switch passes on what it takes in and cannot
copy. Where links into a node have more bandwidth than those out of it, or less, the difference is of little use, and
most often a link is missing or was written `->` instead of `<->`.

    topology one {
      rank g[3]; switch w;
      link g[0] <-> w : 10 GB/s;
      link g[1] <-> w : 10 GB/s;
      link g[2] -> w : 30 GB/s;       # C0581: 50 GB/s into w, 30 GB/s out
      link w -> g[2] : 10 GB/s;
    }

Write `<->`, or give the links of the node the same bandwidth in sum both ways. `using forest { unbalanced: true }`
takes the links as they are: ranks may have more one way than the other then, and switches as long as no trees are lost.
""",
    "C0582": """a switch that nothing passes through

What enters a switch without a link out is lost, and a switch without a link in has nothing to send. A link `->` to it
was perhaps meant to be `<->`. A switch whose links all lead to the same node joins nothing.

    topology t {
      rank g[2]; switch w;
      link g[0] <-> g[1];
      link g[0] -> w;                 # C0582
    }

Write `<->`, add the links that are missing, or leave the switch out.
""",
    "C0584": """a switch that takes in more than it lets out

A forest's trees pass through switches, which cannot copy: whatever trees a switch takes in, it must let out. Bandwidths
are counted in whole trees, and with a fixed `k` they are rounded down. Where the links of a switch differ one way and
the other, as many trees need not fit in as out then.

    topology one { rank g[3]; switch w; link g[0] -> w at 3 GB/s; link g[1] -> w at 3 GB/s; link g[2] -> w at 3 GB/s;
                   link w -> g[0] at 2 GB/s; link w -> g[1] at 2 GB/s; link w -> g[2] at 5 GB/s; }

What is too much is left out where no tree is lost by it. Elsewhere leave `k` out: the optimal number of trees rounds
nothing, so what balances in bandwidth balances in trees. Or give every link to a switch one of the same bandwidth back.
""",
    "C0585": """a number of trees or pieces that forest cannot use

Option `k` of the scheduler `forest` is the number of trees that every rank sends: 1 to 4096, `optimal`, or `auto` for
the best of at most 10. `pieces` is the number of pieces of the data that follow each other: 1 to 4096. `root` is the
rank that an allreduce with `via: reduce` goes through.

    schedule grads using forest { k: 0 };

Write `k: 1` for one tree a rank, or leave the option out.
""",
    "C0590": """a torus of another size than the network

`shape: "8x8"` says which torus the ranks are numbered as, last dimension fastest. Its sizes multiply to the number of
ranks. Left out, it is what the topology was built as; a network that is no grid is one dimension.

    schedule c using swing { shape: "4x4" };     # C0590 on 12 ranks
""",
    "C0591": """a collective that this algorithm does not do

Swing and the algorithms like it schedule allreduce, reduce-scatter and allgather; those with a tree for a root also
broadcast and reduce, and `bine` gather and scatter. The latency variants exchange everything, which is an allreduce.

    collective c = alltoall on torus(4, 4);
    schedule c using swing;          # C0591

Leave the scheduler out: `auto` takes one that can.
""",
    "C0592": """a dimension that the latency variant cannot have

A latency variant sends everything in every step. Each step of Swing doubles the contributions that a rank has (each
step of Trivance triples them), so in a dimension that is no power of 2 (of 3) some contributions would be added twice.

    collective c = allreduce on torus(6, 4);
    schedule c using swing { variant: latency, fold: false };        # C0592: dimension 0 of 6x4
    schedule c using trivance { variant: latency };                  # C0592

`fold` (Swing's default) takes two steps more: some ranks hand over all they have first and get the result at the end.
Operations that take a contribution more than once (min, max, band, bor, land, lor) need no folding in even sizes:
with `fold: false` the program is for these operations only. The bandwidth variants take any size.
""",
    "C0593": """an operation that depends on the order of ranks

`op: ordered` is an operation of the user's whose operands may not change places, such as the product of matrices; `op:
user` is one whose may. Schedules combine contributions as they arrive, never in the order of ranks, and so do all
schedulers.

    collective c = allreduce on torus(4) { op: ordered };
    schedule c using swing;          # C0593

Gather the contributions and combine them where they are needed; allgather and gather take any data.
""",
    "C0594": """too many transfers to write out

A transfer moves part of one shard, so an exchange among N ranks has about N * N of them a chunk and phase, and one that
sends everything in every step N * N a step. More than 2^26 are not written out.

Use fewer ranks; the bandwidth variant, which sends every shard once; or look at the messages only, as simulations do.
""",
    "C0595": """a network without a ring

`ring` passes data round cycles through all ranks: of a torus or mesh, or the ranks in their order. This network has no
such cycle that the scheduler knows.

    collective c = allreduce on mesh(3, 3);      # 9 ranks, chequered black and white: no cycle
    schedule c using ring;                       # C0595

`bucket` needs rings of single dimensions only; `bfb` needs no particular links.
""",
    "C0596": """a buffer without room for a block

`pat { buffer: K }` lets a message carry at most K blocks, the shares of K ranks: at least 1. Left out, messages carry
as many as logarithmically many steps need.
""",
    "C0597": """a network without a second ring

`ring { rings: 2 }` asks for two rings through all ranks without a common link. A torus of r x c ranks has two where
r = c k and gcd(r, c - 1) = 1, so every square, and 9 x 3 or 8 x 2; `shifted_ring` has two, and rings with parallel
links.

    collective c = allreduce on torus(6, 4);
    schedule c using ring { rings: 2 };          # C0597: 6 is no multiple of 4

Leave `rings` out to use what there is. `bucket` uses all links of a torus of any sizes.
""",
}
