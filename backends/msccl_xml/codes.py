"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0601": """\
the text is not XML

collc first reads an MSCCL-XML file as XML. A tag that is not closed, a stray `&` or `<`, or a file of another kind
fails here. The message names the line. Example: `<tb id="0" send="1" recv="1" chan="0">` without its `</tb>`.
Correct the text, or name the right file.
""",
    "C0602": """\
the file holds no algorithm

The outermost element of an MSCCL-XML file is `<algo ...>`. It holds one `<gpu>` for each rank. A `<gpu>` holds `<tb>`
elements (threadblocks), and a `<tb>` holds `<step>` elements. An XML file of another kind, such as a topology, cannot
be verified or converted as an algorithm.

    <topology name="pod">...</topology>     <!-- C0602 -->
    <algo name="ring" ...>...</algo>        <!-- an algorithm -->
""",
    "C0603": """\
an attribute is missing or has a value no runtime takes

All runtimes need these attributes:

* An algorithm has `proto nchannels nchunksperloop ngpus coll inplace`.
* A gpu has `id i_chunks o_chunks s_chunks`.
* A tb has `id send recv chan`.
* A step has `s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep`.

collc reads integers as C does: `010` is 8, text after the digits is ignored, and text without digits is 0.
`collc verify` reports where that happens. Sizes have at most 64 bits, other numbers 32. Example: `cnt="99999999999"`.
""",
    "C0604": """\
the file is too large, or has a document type

collc reads files up to the size that the message states, and no file with a `<!DOCTYPE ...>`. The entities of a
document type can expand a few lines to gigabytes, or name other files. No runtime reads such a file either. Remove the
document type.
""",
    "C0605": """\
the runtimes' tokeniser would stop in this text

The runtimes do not use an XML parser, so well-formed XML can still fail to load. Their tokeniser accepts double quotes
only, at most 16 attributes, and values of at most 255 bytes; longer values overwrite memory. The file has no
`<?xml ...?>` line, no tab between elements, and no line break inside a tag. A comment has no `=` before its first
space. Write the file as `collc` does: one element a line.

    <?xml version="1.0"?>                             <!-- C0605: leave it out -->
    <step s='0' type='s' .../>                        <!-- C0605: double quotes -->
""",
    "C0606": """\
an option of the target does not fit

The message names the option, what it needs and what was found. `collc targets msccl-xml` lists and explains the
options of the target. Example: `-t 'msccl-xml{runtime=nccl}'`; the runtimes are executor, msccl and rccl.

    collc pod.coll -t 'msccl-xml{runtime=nccl}'       # C0606
    collc pod.coll -t 'msccl-xml{runtime=executor}'
""",
    "C0607": """\
the runtime cannot run this collective, or needs another spelling

The runtimes run allreduce, allgather, reduce-scatter, alltoall, broadcast and reduce from a file. Reduce-scatter is
spelled `reduce_scatter` for msccl and `reducescatter` for the executor and RCCL; no spelling suits all. No runtime
runs gather or scatter: compile them with `-t mpi-c`. The runtimes ignore the root of a call when they choose a file.

    collective g = gather on pod { root: 0 };
    emit g as msccl-xml;                              # C0607: write `emit g as mpi-c;`

A file does not name its operation either. collc refuses a program that adds some contributions twice: `op: max` allows
that, a sum does not. Let the scheduler fold.

    collective c = allreduce on torus(6) { op: max };
    schedule c using swing { variant: latency, fold: false };
    emit c as msccl-xml;                              # C0607: leave `fold` out
""",
    "C0608": """\
there is nothing to verify the file against

The attribute `coll` states what a file must achieve. With coll="custom" or an unknown name, collc cannot tell whether
the file is correct. Set `coll` to the collective that the file performs.

    <algo ... coll="custom" ...>                      <!-- C0608 -->
    <algo ... coll="allreduce" ...>
""",
    "C0609": """\
ranks or threadblocks are not numbered 0, 1, 2, ...

A file has one `<gpu>` for each rank 0 to ngpus - 1. Each `<gpu>` has threadblocks 0 to n - 1, each number once. Their
order in the file is free. A rank without a threadblock has nothing to launch.

    <gpu id="0" ...> <tb id="0" .../> <tb id="2" .../> </gpu>     <!-- C0609: there is no tb 1 -->
""",
    "C0610": """\
a threadblock's peers or channel do not make a connection

A peer is another rank, or -1 for none. The runtimes connect channels below `nchannels` only. A connection (from a rank,
to a rank, on a channel) is a queue. Exactly one threadblock may send into it, and exactly one may receive from it.
Ranks connect in pairs, so both ranks must name the connection, even if they send no data. The runtimes check little of
this: they overwrite memory or hang. Give one of the threadblocks another channel.

    <gpu id="0" ...> <tb id="0" send="1" recv="-1" chan="0"> ... <tb id="1" send="1" recv="-1" chan="0"> <!-- C0610 -->
    <gpu id="0" ...> <tb id="0" send="1" recv="-1" chan="0"> ... <tb id="1" send="1" recv="-1" chan="1">
""",
    "C0611": """\
the parsers do not accept a step

A step that sends needs a send peer on its threadblock, and a step that receives needs a receive peer. Counts are 1 to
71 chunks; hasdep is 0 or 1. A `nop` adds a dependency to the next step that is no `nop`. That step must have a
dependency of its own.

    <tb id="0" send="-1" recv="2" chan="0"> <step s="0" type="s" ... cnt="1" .../>     <!-- C0611: no send peer -->
""",
    "C0612": """\
a dependency ends with another step than it names

`depid` and `deps` make a step wait until threadblock `depid` of its rank has finished step `deps`. A threadblock
signals only after steps with hasdep="1". A wait for any other step ends with the next step that signals, or never. The
device numbers steps itself and does not count every `nop`: a `nop` without a dependency shifts all later numbers. Set
hasdep on the named step, and number steps from 0 in order.

If a later step ends the wait and the execution is still correct, this is a warning: the step begins later than it
could.

    <tb id="0" ...> <step s="0" type="r" ... hasdep="0"/> </tb>
    <tb id="1" ...> <step s="0" type="s" ... depid="0" deps="0" hasdep="0"/> </tb>  <!-- C0612: set hasdep above -->
""",
    "C0613": """\
a step leaves its buffer

Offsets count chunks from 0, and a step of count c accesses c chunks. The parsers check the first chunk only, and not of
every step. A step outside of the buffer reads or writes other memory. `i_chunks`, `o_chunks` and `s_chunks` are the
sizes of the buffers.

    <gpu id="0" i_chunks="4" ...> ... <step s="0" type="s" srcbuf="i" srcoff="3" ... cnt="2" .../>     <!-- C0613 -->
""",
    "C0614": """\
the parsers merge reductions and change their result

The parsers merge consecutive `re` steps that have the same destination and the same source buffer into one reduction of
many sources. A step with hasdep="1" or a dependency is not merged. The parsers do not compare counts: the last
count applies to all. They ignore a `nop` in between, and overrun a buffer at more than 16 sources. Give the steps equal
counts, put dependencies before the first, and set hasdep="1" on the 16th.

    <step s="0" type="re" srcbuf="s" srcoff="0" dstbuf="o" dstoff="0" cnt="2" ... hasdep="0"/>
    <step s="1" type="re" srcbuf="s" srcoff="4" dstbuf="o" dstoff="0" cnt="1" ... hasdep="0"/> <!-- C0614 -->
""",
    "C0620": """\
the runtime does not run this instruction

Since ROCm 6.1, RCCL has no kernels for fused steps (rcs, rrc, rrs, rrcs): it loads files with such steps, and every
call fails. It runs s, r, cpy, re and nop. The pass `unfuse` replaces the others. All -O levels for
`-t 'msccl-xml{runtime=rccl}'` include it.

    collc pod.coll -p 'bfb,discretize,lower' -t 'msccl-xml{runtime=rccl}'        # C0620 where the program fuses
    collc pod.coll -O2 -t 'msccl-xml{runtime=rccl}'
""",
    "C0621": """\
a threadblock has too many steps

The executor and RCCL hold 64 steps a threadblock, msccl 256. That includes the `nop` steps for more than one
dependency. Distribute the steps over more threadblocks and channels (`balance-threadblocks`), cut the data in fewer
chunks (`discretize{max-chunks=...}`), or send contiguous chunks together (`coalesce`).

    collc big.coll -O0 -t msccl-xml                   # C0621: 65 steps
    collc big.coll -O2 -t msccl-xml
""",
    "C0622": """\
a rank has too many threadblocks

RCCL takes 64 threadblocks a rank, msccl 216, the executor 1024. All threadblocks of a rank must run at once, or they
wait for each other forever. A GPU runs about one threadblock on each multiprocessor. The target's option `threadblocks`
sets the number (108 suits an A100, 132 an H100). `collc verify --multiprocessors` checks a file or a printed program
for that number. Fewer channels make fewer threadblocks.

    collc pod.coll -t 'msccl-xml{threadblocks=8}'     # C0622 where a rank has more neighbours
    collc pod.coll -t 'msccl-xml{threadblocks=132}'
""",
    "C0623": """\
too many channels, or too many threadblocks on one

msccl and the executor have 32 channels, RCCL has 128. On one channel of a rank, at most 31 threadblocks may have a send
peer, and at most 31 a receive peer. The target's option `channels` limits the channels. If one channel has too many
threadblocks, use more channels.
""",
    "C0624": """\
a step moves too many chunks

A step moves at most 71 chunks. `coalesce` obeys the target's limit. In a file from another tool, cut the data in fewer
chunks or split the step.
""",
    "C0625": """\
a step depends on a threadblock with too large a number

The runtimes store the number of that threadblock in one signed byte, so a step can depend on threadblocks 0 to 127
only. Use at most 128 threadblocks a rank.
""",
    "C0626": """\
an offset is too large

The runtimes store offsets in 16 bits: 0 to 32767 chunks. Cut the data in fewer chunks: `discretize{max-chunks=...}`.

    collc pod.coll -p 'bfb,discretize,lower' -t msccl-xml                          # C0626: 50000 chunks
    collc pod.coll -p 'bfb,discretize{max-chunks=64},lower' -t msccl-xml
""",
    "C0627": """\
the file is too large for the parsers

A parser holds 4095 elements for its own rank: the algorithm, all ranks, and the rank's threadblocks and steps. It also
holds at most 1024 ranks, and 1024 threadblocks of a rank (more overwrite memory). Fewer chunks or coalesced messages
make fewer steps.
""",
    "C0628": """\
an attribute the runtime needs is missing or has a value it does not take

The executor and RCCL need `outofplace`, `minBytes` and `maxBytes`, msccl needs `name`. Files of older tools lack some
of them. Names have at most 63 bytes, and nthreads (msccl only) is a multiple of 32 up to 640.

    <algo proto="Simple" ... coll="allreduce" inplace="1">                                         <!-- C0628 -->
    <algo name="ring" proto="Simple" ... inplace="1" outofplace="0" minBytes="0" maxBytes="0">
""",
    "C0629": """\
the chunks of a buffer do not add up

For msccl, i_chunks (times the ranks, for allgather) and o_chunks (times the ranks, for reduce-scatter) must equal
nchunksperloop. 0 means that the buffer is not used.

    <algo ... nchunksperloop="8" ngpus="4" coll="allgather" ...> <gpu id="0" i_chunks="1" .../> <!-- C0629 -->
    <algo ... nchunksperloop="8" ngpus="4" coll="allgather" ...> <gpu id="0" i_chunks="2" .../>
""",
    "C0630": """\
no call, or no safe call, has a size within the limits

minBytes and maxBytes are the sizes of the calls that use a file. For msccl, maxBytes is an exclusive limit and never 0.
For the other runtimes it is inclusive, and 0 means no limit. In larger calls a message holds fewer chunks, so the
connections need more slots, and a program can hang from some size on. `collc` computes that size and writes it. It
refuses a larger max-bytes, and one that needs more tiles than a launch can count.

    collc doubling.coll -t 'msccl-xml{max-bytes=16777216}'    # C0630: hangs from 8 MiB on
    collc doubling.coll -t msccl-xml                          # writes the largest size that does not
""",
    "C0631": """\
the program does not support the requested use

In place, input and output are one buffer. The program must read the input in the memory of an output chunk before it
writes this chunk. Out of place, a program must not write the input. The message states what fails. Without the option,
collc sets the flags to the uses that the program supports.

    collc pod.coll -t 'msccl-xml{inplace=true}'       # C0631 where the program is right out of place only
    collc pod.coll -t msccl-xml
""",
    "C0632": """\
the program is wrong

Before collc writes a file, it executes the program in place and out of place. The program is wrong in both uses. The
message names the check that failed, with rank, threadblock and step. If collc's own passes made the program, please
report a bug.
""",
    "C0633": """\
the connections are too short for the program

A connection has 2 slots with the protocol Simple, and 8 with LL and LL128. A sender waits while all slots are full.
Here senders wait for each other in a cycle, in calls of every size. Receive earlier, use more channels, or use another
protocol.

    collc pod.coll -t msccl-xml                       # C0633: each rank sends 3 messages before it receives
    collc pod.coll -t 'msccl-xml{proto=LL}'
""",
    "C0634": """\
a step overwrites data that a send may still read

With LL, RCCL ends a send without a barrier. The next step of the threadblock may write the same chunks at another
offset. Then a fast thread can overwrite data before a slow thread has sent it. Use another protocol, or put the two
steps in different threadblocks with a dependency.

    <step s="0" type="s" srcbuf="s" srcoff="0" ... cnt="2" .../>
    <step s="1" type="cpy" ... dstbuf="s" dstoff="1" cnt="2" .../>  <!-- C0634; fine with dstoff="0" -->
""",
    "C0635": """\
the name makes the runtime run something else

microsoft/msccl has a built-in alltoall in two dimensions. For an alltoall with the name `2D` it runs that one and
ignores the steps of the file. Use any other name.

    <algo name="2D" ... coll="alltoall" ...>                        <!-- C0635 -->
    <algo name="alltoall-2d" ... coll="alltoall" ...>
""",
    "C0640": """\
the algorithm in the file is wrong

Before collc converts an MSCCL-XML file, it executes it in the uses that its flags name. The file is wrong in all of
them. Chunks are missing or are added twice, a threadblock reads data too early, or a message has no partner. The notes
list the first failures; `collc verify` lists all.

    collc convert broken.xml -t mpi-c                                  # C0640
    collc verify broken.xml
""",
    "C0641": """\
the file claims a use in which it is wrong (a warning)

The flags `inplace` and `outofplace` name the uses of a file. This file is correct in only one of the two that it names.
The conversion supports that use. It supports the other use only if the target needs both: then every rank copies its
input first.

    <algo ... inplace="1" outofplace="1">      <!-- C0641: but it adds up in `i`, the input -->
    <algo ... inplace="1" outofplace="0">
""",
    "C0642": """\
no call has a size that the file serves

A runtime uses a file only for calls that its chunks divide evenly: the smallest call has one byte for each chunk. No
such size lies between minBytes and maxBytes, so the runtime loads the file and never uses it. A common cause is a unit,
which the runtimes do not read.

    <algo ... nchunksperloop="16" minBytes="0" maxBytes="8">         <!-- C0642: calls are of 16 bytes, 32, ... -->
    <algo ... nchunksperloop="16" minBytes="0" maxBytes="8MB">       <!-- C0642: 8 is what is read -->
    <algo ... nchunksperloop="16" minBytes="0" maxBytes="8388608">
""",
    "C0650": """\
two files serve the same call

A runtime chooses a file by collective, ranks, use (in place or not), and size. The sizes of these two files overlap,
and the runtime uses only one of the files there. The executor uses the first by path, msccl the first of its list,
older RCCL the first in the directory. That order can differ between machines; then ranks wait for each other forever.
Give the files disjoint ranges with min-bytes and max-bytes.

    collc verify small.xml large.xml      # C0650: maxBytes of the one is not below minBytes of the other
""",
    "C0651": """\
two files have the same name

The executor and RCCL load the files of one folder, which holds one file of each name. The logs of msccl identify an
algorithm by its `name` only. Rename one, or set the option `algorithm` when you compile.

    collc verify a/ring.xml b/ring.xml    # C0651
""",
    "C0652": """\
more files than the runtime loads

microsoft/msccl loads 4 files, the executor and RCCL 1024. They ignore the rest. Leave out the files for the rarest
calls.

    collc env 1.xml 2.xml 3.xml 4.xml 5.xml --runtime msccl      # C0652
""",
    "C0653": """\
a path that the runtime cannot take

The executor and RCCL take one folder, so all files must be in it. msccl takes a list of paths separated by colons, or a
file with one path of at most 255 bytes a line. Move the files.

    collc env a/ring.xml b/tree.xml --runtime rccl               # C0653: two folders
    collc env 'pod:1/ring.xml' --runtime msccl                   # C0653: use --config FILE
""",
    "C0654": """\
a file that the runtime would not load or run

`collc env` prints the variables that make a runtime use files. The runtime would refuse this file, or skip it without
a message. The notes give the reason. If possible, `collc convert` makes a file that the runtime accepts.

    collc env ring.xml --runtime rccl                            # C0654: it has fused instructions
    collc convert ring.xml -t 'msccl-xml{runtime=rccl}' -o out/
    collc env out/ --runtime rccl
""",
    "C0656": """\
a file is none that stock NCCL reads, or NCCL would misread it

`collc env` prints how to use graph files (`<graphs>`), topology files (`<system>`) and tuner tables (CSV). NCCL has a
reader of its own for its XML: no declaration `<?xml ..?>`, no tabs, no single quotes. Its example tuner plugin takes
unknown names for defaults and shifts the fields after an empty one, without a message.
""",
    "C0657": """\
stock NCCL cannot take these files together

NCCL reads one topology file and one tuner table. Graph files may differ by machine, and are called `NAME.nodeI.xml`
then. Files of another runtime have an environment of their own:

    collc env grads.csv pod.xml       # a tuner table and a topology file
    collc env grads.node0.xml grads.node1.xml
""",
    "C0655": """\
a folder with other files

The executor and RCCL load every file of their folder, with any name. If one is not an algorithm, they cannot create
communicators. Keep algorithms in a folder of their own: `-o DIR/`.

    collc env pod/ring.xml                # C0655: pod.coll is beside it
""",
}
