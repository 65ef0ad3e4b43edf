"""The paragraphs that ``collc explain`` prints for the codes of the target ``mscclpp-json``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0660": """\
not JSON, or JSON that readers take differently

The text must be well-formed JSON of at most 512 MiB. Its numbers must be whole numbers, and the names of an object must
differ. Parsers disagree about such a name: one takes the first value, another the last.

    {"name": "ring", "name": "tree", ..}               # C0660

Remedy: write the plan again with the tool that wrote it.""",
    "C0661": """\
a plan of another form

A key is missing, or its value has another type: a number is negative, an item has no buffer, a channel has an unknown
type. The message names the key and its place.

    {"type": "i", "index": -1, "size": 1}              # C0661: the index is at least 0

Remedy: docs/mscclpp.md lists the keys.""",
    "C0662": """\
a plan of MSCCL++ 0.7

Version 0.8 changed the form of plans: operations have items (`src_buff`, `dst_buff`), ranks have remote buffers and
semaphores, and several operations have other names. The runtimes from 0.8 on cannot load older plans.

    {"name": "rrcs", "ctype": "sm", ..}                # C0662

Remedy: write the plan again with a later version, or compile it with collc.""",
    "C0663": """\
two plans with one name

The runtime keeps the channels of a plan by its name and the buffers. A second plan of that name on the same buffers
uses the channels of the first.

Remedy: give every plan a name of its own; collc adds a hash of the content.""",
    "C0664": """\
a number that is not the position

The executor takes ranks and threadblocks by their position in the list, but finds channels by `id`. An `id` that is not
the position gives a threadblock the channels of another.

    "threadblocks": [{"id": 1, ..}, {"id": 0, ..}]     # C0664

Remedy: number ranks and threadblocks 0, 1, 2, .. in the order of the list.""",
    "C0665": """\
a number that names nothing

Operations name channels and remote buffers by their position in the lists of their threadblock. Threadblocks name those
of their rank. The executor checks neither, and reads past the end of the list.

    {"name": "signal", "channel_ids": [2], "channel_type": "memory"}   # C0665 in a block with 2 memory channels

Remedy: add the channel or remote buffer to the lists, or name another.""",
    "C0666": """\
an operation without its operands

Every operation needs its own number of sources and destinations, each local, remote or behind a switch. All items have
the same size, at least one chunk. The protocol is `Simple` or `LL`, and a block has 1 to 1024 threads.

    {"name": "copy", "src_buff": [..], "dst_buff": []}  # C0666

Remedy: docs/mscclpp.md lists the operands of each operation.""",
    "C0667": """\
chunks of no size, or of different sizes

The executor divides the bytes of a call by `input_chunks` and by `output_chunks`, so both are at least 1. All chunks of
a plan have one size, and all ranks have the same number of chunks. An allgather of N ranks has N times as many output
chunks as input chunks.

    "input_chunks": 0, "output_chunks": 4              # C0667: the runtime dies of a division by zero

Remedy: use the counts of the collective, on all ranks.""",
    "C0668": """\
an operation that the runtime does not have

Version 0.8 lacks `recpkt` and `recspkt`, version 0.9 lacks `gstorepkt`. No version has `glre`, although the DSL prints
it. The executor refuses such a plan when it loads it.

    collc verify plan.json --runtime 0.8               # C0668 for a plan with recpkt

Remedy: use the version that the message names, or other operations.""",
    "C0669": """\
a block with more than 64 operations

The executor keeps the operations of a block in an array of 64. It counts nops, and every operation of a pipeline and
the pipeline itself. It fails at the first launch, not when the plan is loaded.

    collc pod.coll -t mscclpp-json --disable-pass fit-operations       # C0669 in a ring of 8 ranks

Remedy: let `fit-operations` cut the block, or use packets (`protocol=LL`).""",
    "C0670": """\
a block with more than 16 channels or remote buffers

A block has room for 16 channels of each type, and for 16 remote buffers by each type. The executor does not check it:
more of them overwrite other data.

Remedy: let `fit-operations` cut the block, or divide its peers among several blocks.""",
    "C0671": """\
an operation on more than 8 channels

The executor keeps 8 channels of an operation, and 16 semaphores. It does not check the number.

    {"name": "wait", "channel_ids": [0, 1, 2, 3, 4, 5, 6, 7, 8], ..}   # C0671

Remedy: use two operations.""",
    "C0672": """\
an operation with more than 10 items on a side

The executor keeps 10 sources and 10 destinations of an operation; version 0.8 keeps 8. It does not check the number.

Remedy: use two operations; `fit-operations` does that.""",
    "C0673": """\
more blocks than multiprocessors

All blocks of a rank wait for others, so all must run at once. Each takes a multiprocessor. The kernel does not start
cooperatively: if all places are taken, a block waits until another block has ended.

    collc verify plan.json --multiprocessors 108       # C0673 for a plan of 110 blocks

Remedy: use packets, fewer instances or shares, or fewer chunks; `gpu` sets the number.""",
    "C0674": """\
no call that the plan could serve

The bytes of a call are a multiple of chunks times `buffer_alignment`. Every buffer must be below 4 GiB, because offsets
have 32 bits; protocol LL and double scratch take twice the scratch each. Scratch that calls share has 64 MiB.

    collc pod.coll -t 'mscclpp-json{max-bytes=64}'     # C0674: 8 chunks of 16 bytes are 128 bytes

Remedy: allow larger calls, or use fewer chunks.""",
    "C0675": """\
more than 16 barriers

A GPU has 16 barriers, which all plans and streams share. The executor does not check the number.

Remedy: use semaphores between blocks, or barriers again after all blocks have left them.""",
    "C0676": """\
more than 8 ranks of a node beside a network

Between nodes the executor gives each rank of a node a NIC of its own, and knows 8 of them.

Remedy: set `ranks-per-node` to the ranks that share memory.""",
    "C0677": """\
an operation other than a sum

The executor always adds, also if the plan or a call names another operation. A plan for `min` or `max` gives wrong
results without a message. The executor adds float16, bfloat16, float32, int32, uint32 and fp8 elements.

    collective grads = allreduce on pod { op: max };
    emit grads as mscclpp-json;                         # C0677

Remedy: use `op: sum`, or the target `mpi-c`.""",
    "C0678": """\
a flush that does nothing

The executor flushes once for each destination of the operation, and the DSL writes none. So the source of a put may be
overwritten before it has left.

    {"name": "flush", "channel_ids": [0], "channel_type": "port"}      # C0678

Remedy: give the flush a destination for each of its channels, as collc does. `pwsf` also flushes, but some versions of
the executor compute its source wrongly.""",
    "C0679": """\
a get with different offsets

The executor reads the peer at the offset of the destination, and writes at the offset of the source. The get is right
only if both are equal.

Remedy: use equal offsets, a put by the peer, or `rre`.""",
    "C0680": """\
an operation over a transport that does not have it

`pws` and `pwsf` over a memory channel put and never signal. `ppkt` over a port takes its buffer from the first plan of
the process. `get`, `rre`, `res` and their like work over memory only.

    {"name": "pws", "channel_type": "memory", ..}      # C0680

Remedy: over memory use put, nop, signal; over ports use cpkt and rppkt.""",
    "C0681": """\
a put from several buffers

A put over memory takes all its sources from the buffer of the first one.

Remedy: use one put for the input, one for the output and one for scratch.""",
    "C0682": """\
a `buffer_alignment` that is not a multiple of 16

The executor moves 16 bytes at a time. It adds the remainder of a sum incorrectly.

Remedy: use 16, or a multiple.""",
    "C0683": """\
packets without room

Packets are in scratch, and take twice the bytes of their data. Only the protocol `LL` doubles the scratch.

    "protocol": "Simple", .. {"name": "ppkt", ..}      # C0683

Remedy: use the protocol LL.""",
    "C0684": """\
a half of scratch that an operation does not find

With `use_double_scratch_buffer` launches use the halves of scratch alternately. Packets find the half of a peer; put,
get and sums do not. A rank computes the halves of its peers from its own size of scratch.

Remedy: use packets, or no double scratch; give all ranks the same `scratch_chunks`.""",
    "C0685": """\
a pipeline that goes past its items

A pipeline cuts its items in slices of `unit_size` bytes. If an item has other chunks than `num_chunks`, the last slices
are beyond its end. The slices are multiples of `buffer_alignment`. With reused resources a local sum finds its sources
as it finds its destination, so scratch and other buffers cannot mix.

Remedy: use as many chunks as every item has.""",
    "C0686": """\
an option of the target `mscclpp-json` has an invalid value

The message names the option and what it needs. `collc targets mscclpp-json` lists the options.

    collc pod.coll -t 'mscclpp-json{ranks-per-node=0}'  # C0686: at least 1""",
    "C0687": """\
a collective that the plan does not say

The name of a plan's collective is any text. collc knows allreduce, allgather, reducescatter, alltoall, broadcast,
sendrecv, reduce, gather and scatter. It cannot guess what another name promises.

    collc verify plan.json --collective allreduce""",
    "C0688": """\
two plans for the same call

The runtime takes a plan for a call by its collective, ranks, mode and size. If two match, it takes either: their order
is that of a hash table, and can differ between ranks.

Remedy: give them windows that do not overlap (`min-bytes`, `max-bytes`).""",
    "C0689": """\
plans in place and out of place in one process

The runtime remembers the mode of the first plan that is asked for, and uses it for all plans of the process.

Remedy: compile all plans of a folder with one `inplace`.""",
    "C0693": """\
a put over a port from the input or output

The executor registers the whole allocation of a buffer, and forgets where the buffer begins in it. A put over a port
from input or output sends other data if the buffer is a part of a larger allocation, as tensors often are. This is a
warning: plans with buffers at the start of an allocation are right.

Remedy: allocate buffers of their own, or let the plan send from scratch.""",
    "C0694": """\
channels of switches that ranks do not set up together

The executor sets up the switch channels of a rank one after the other, and waits for all ranks of each. All of them
need a channel with the same ranks, in the same order, to the same buffer, even if only one uses it.

    rank 0: {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 4, "ranks": [0, 1]}]}
    rank 1: no channel of a switch                     # C0694: rank 0 waits forever

Remedy: list the channel at every rank of the group, and channels of several groups in one order.""",
    "C0695": """\
a name that C programs load

Without Python, the runtime loads four fixed names of `$MSCCLPP_CACHE_DIR/default`, as plans for 16, 32 or 64 ranks with
4 or 8 ranks per node. A file with such a name serves these calls, even if it was written for other calls.

Remedy: name the file otherwise, and register it from Python.""",
    "C0696": """\
the plan in the file is wrong

Before collc converts or runs a plan, it executes it by a model of the runtime: two launches, every order that signals
allow. This plan is wrong: it does not perform its collective, it hangs, or two accesses to the same data have no order.

Remedy: `collc verify FILE` lists all failures.""",
    "C0697": """\
a collective that plans cannot carry

All ranks of a plan have buffers of the same size, all chunks are equal, and every rank takes part. collc cuts shards
that differ in size into equal ones, as a collective that only copies.

    collective grads = reduce-scatterv on ring4 { weights: {5, 0, 1, 2} };
    emit grads as mscclpp-json;                         # C0697

Remedy: use the target `mpi-c`, or equal shards.""",
    "C0698": """\
a program whose launches must not overlap

Nothing orders the launches of different ranks: one rank may be in its second launch while a peer is in its first. The
pass `handshake` lets ranks wait until the buffers of their peers may be written, and have been read.

    collc pod.coll -t mscclpp-json --disable-pass handshake            # C0698

Remedy: run the pass.""",
}
