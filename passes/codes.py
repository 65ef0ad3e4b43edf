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
    "C0502": """a scheduler for equal links met links that differ

BFB balances the links of a step by the amount they carry, which is balanced in time only when all links have the same
bandwidth and latency. Links of a rank to itself do not count.

Give every link the same `: bandwidth, latency`, for example with `with { bandwidth: 25 GB/s, latency: 1 us }` on the
topology, or write the schedule by hand.
""",
    "C0503": """the scheduler does not know this collective

Every scheduler knows some collectives; `collc schedulers` lists them. BFB schedules allgather, reduce-scatter,
allreduce, broadcast and reduce.

Choose another scheduler, or write the schedule by hand with `schedule NAME using steps { ... }`.
""",
    "C0504": """an exact schedule would need more parts than can be counted

Balancing links exactly divides shards into fractions; their least common denominator grows with the number of links
of a node and has passed 2^62 here.

Use a topology whose nodes have fewer links.
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
}
