"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0601": """\
the text is not XML

An MSCCL-XML file is read as XML first: a tag that is not closed, a stray `&` or `<`, or a file of another kind ends
here, with the line the XML parser names. Example: `<tb id="0" send="1" recv="1" chan="0">` without its `</tb>`.
Mend the text, or give the file that was meant.
""",
    "C0602": """\
the file holds no algorithm

The outermost element of an MSCCL-XML file is `<algo ...>`; it holds one `<gpu>` for each rank, these hold `<tb>`
elements (threadblocks), and these hold `<step>` elements. An XML file of another kind, such as a topology, cannot
be verified or converted as an algorithm.

    <topology name="pod">...</topology>     <!-- C0602 -->
    <algo name="ring" ...>...</algo>        <!-- an algorithm -->
""",
    "C0603": """\
an attribute is missing or has a value no runtime takes

All runtimes need `proto`, `nchannels`, `nchunksperloop`, `ngpus`, `coll` and `inplace` of an algorithm, `id`,
`i_chunks`, `o_chunks` and `s_chunks` of a gpu, `id`, `send`, `recv` and `chan` of a tb, and all ten attributes of a
step: `s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep`. Whole numbers are read as C reads them: `010` is
8, what follows the digits is nothing and no digits at all are 0 (`collc verify` says where that happens); sizes have
at most 64 bits, other numbers 32. Example: `cnt="99999999999"`.
""",
    "C0604": """\
the file is too large, or has a document type

Files are read up to a stated size, and never with a `<!DOCTYPE ...>`: through entities a document type can make a
few lines expand to gigabytes or name other files. No runtime reads past one either. Remove it.
""",
    "C0605": """\
the runtimes' tokeniser would stop in this text

What the runtimes read files with is not an XML parser: no `<?xml ...?>` line, no tab between elements, no line
break inside a tag, double quotes only, at most 16 attributes, values of at most 255 bytes (longer ones overwrite
memory), and no `=` in a comment before its first space. A file that is good XML may still not load. Write it as
`collc` does: one element a line.

    <?xml version="1.0"?>                             <!-- C0605: leave it out -->
    <step s='0' type='s' .../>                        <!-- C0605: double quotes -->
""",
    "C0606": """\
an option of the target does not fit

The message names the option, what it needs and what was found. `collc targets msccl-xml` lists the options of the
target and what each is for. Example: `-t 'msccl-xml{runtime=nccl}'`; the runtimes are executor, msccl and rccl.

    collc pod.coll -t 'msccl-xml{runtime=nccl}'       # C0606
    collc pod.coll -t 'msccl-xml{runtime=executor}'
""",
    "C0607": """\
the runtime cannot carry this collective, or spells it otherwise

The runtimes run allreduce, allgather, reduce-scatter, alltoall, broadcast and reduce from a file. Reduce-scatter is
spelled `reduce_scatter` for msccl and `reducescatter` for the executor and RCCL; no spelling suits all. Gather and
scatter are run by none: compile them with `-t mpi-c`. For a rooted collective, mind that the runtimes pick a file
whatever the root of the call.

    collective g = gather on pod { root: 0 };
    emit g as msccl-xml;                              # C0607: write `emit g as mpi-c;`

Nor do files say for which operation they are. A program that adds some contributions twice, which `op: max` allows and
a sum does not, is refused: let the scheduler fold.

    collective c = allreduce on torus(6) { op: max };
    schedule c using swing { variant: latency, fold: false };
    emit c as msccl-xml;                              # C0607: leave `fold` out
""",
    "C0608": """\
there is nothing to verify the file against

What a file must achieve follows from its `coll`. With coll="custom", or a name no collective has, nobody can say
whether it is right. Set `coll` to the collective it performs.

    <algo ... coll="custom" ...>                      <!-- C0608 -->
    <algo ... coll="allreduce" ...>
""",
    "C0609": """\
ranks or threadblocks are not numbered 0, 1, 2, ...

There must be one `<gpu>` for each rank 0 to ngpus - 1, and in each of them threadblocks 0 to n - 1 without a hole
and without two of one number; their order in the file is free. Without a threadblock a rank has nothing to launch.

    <gpu id="0" ...> <tb id="0" .../> <tb id="2" .../> </gpu>     <!-- C0609: there is no tb 1 -->
""",
    "C0610": """\
a threadblock's peers or channel do not make a connection

A peer is another rank, or -1 for none. Connections are set up for channels below `nchannels` only. A connection
(from a rank, to a rank, on a channel) is a queue that keeps no order between several users: one threadblock alone
may send into it and one alone receive from it. Ranks set connections up in pairs, so both must name it, even if
nothing is sent. Runtimes check little of this; the result is memory overwritten or a hang. Give one of the threadblocks
another channel.

    <gpu id="0" ...> <tb id="0" send="1" recv="-1" chan="0"> ... <tb id="1" send="1" recv="-1" chan="0"> <!-- C0610 -->
    <gpu id="0" ...> <tb id="0" send="1" recv="-1" chan="0"> ... <tb id="1" send="1" recv="-1" chan="1">
""",
    "C0611": """\
a step is not what the parsers take

A step that sends needs a send peer on its threadblock, one that receives a receive peer. Counts are 1 to 71 chunks;
hasdep is 0 or 1. A `nop` carries one more wait for the next real step, and that step must carry a wait itself.

    <tb id="0" send="-1" recv="2" chan="0"> <step s="0" type="s" ... cnt="1" .../>     <!-- C0611: no send peer -->
""",
    "C0612": """\
a wait does not end when it says

depid and deps make a step wait until threadblock depid of its rank has done step deps. Threadblocks signal only
after steps with hasdep="1": a wait for another step ends with a later one that signals, or never. The device counts
steps by itself, and not every `nop`: a `nop` without a wait shifts all later numbers. Set hasdep on the step waited
for, and number steps from 0 in order.

It is a warning where a later step ends the wait and the execution is right all the same: the step begins later than
it could.

    <tb id="0" ...> <step s="0" type="r" ... hasdep="0"/> </tb>
    <tb id="1" ...> <step s="0" type="s" ... depid="0" deps="0" hasdep="0"/> </tb>  <!-- C0612: set hasdep above -->
""",
    "C0613": """\
a step leaves its buffer

src and dst offsets count chunks from 0, and a step of count c touches c of them. The parsers look at the first
chunk only, and not at all steps; beyond it memory of others is read or written. The chunks of each buffer are
`i_chunks`, `o_chunks` and `s_chunks`.

    <gpu id="0" i_chunks="4" ...> ... <step s="0" type="s" srcbuf="i" srcoff="3" ... cnt="2" .../>     <!-- C0613 -->
""",
    "C0614": """\
reductions are merged in a way that changes them

Parsers merge consecutive `re` steps with one destination and one source buffer into one reduction of many sources,
unless a step has hasdep="1" or waits for something. They do not compare counts (the last one counts for all), do
not honour a `nop` between, and overrun a buffer at more than 16 sources. Give the steps equal counts, put waits
before the first, and set hasdep="1" on the 16th.

    <step s="0" type="re" srcbuf="s" srcoff="0" dstbuf="o" dstoff="0" cnt="2" ... hasdep="0"/>
    <step s="1" type="re" srcbuf="s" srcoff="4" dstbuf="o" dstoff="0" cnt="1" ... hasdep="0"/> <!-- C0614 -->
""",
    "C0620": """\
the runtime does not run this instruction

RCCL compiles no kernels for steps that receive and do something else at once (rcs, rrc, rrs, rrcs) since ROCm 6.1:
files with them load, and every call fails. It runs s, r, cpy, re and nop. The pass `unfuse` replaces the others: -O
levels for `-t 'msccl-xml{runtime=rccl}'` include it.

    collc pod.coll -p 'bfb,discretize,lower' -t 'msccl-xml{runtime=rccl}'        # C0620 where the program fuses
    collc pod.coll -O2 -t 'msccl-xml{runtime=rccl}'
""",
    "C0621": """\
a threadblock has too many steps

The executor and RCCL hold 64 steps a threadblock, msccl 256, `nop` steps for further waits included. Let more
threadblocks and channels share the steps (`balance-threadblocks`), cut the data in fewer chunks
(`discretize{max-chunks=...}`) or send contiguous chunks together (`coalesce`).

    collc big.coll -O0 -t msccl-xml                   # C0621: 65 steps
    collc big.coll -O2 -t msccl-xml
""",
    "C0622": """\
a rank has too many threadblocks

RCCL takes 64 threadblocks a rank, msccl 216, the executor 1024; and all of a rank must run at once, or they wait
for each other for ever: there are about as many places as the GPU has multiprocessors. The target's option
`threadblocks` says how many (108 suits an A100, 132 an H100), and `collc verify --multiprocessors` checks a file or a
printed program for that number. Fewer channels make fewer threadblocks.

    collc pod.coll -t 'msccl-xml{threadblocks=8}'     # C0622 where a rank has more neighbours
    collc pod.coll -t 'msccl-xml{threadblocks=132}'
""",
    "C0623": """\
too many channels, or too many threadblocks on one

msccl and the executor have 32 channels, RCCL 128; on one channel of a rank at most 31 threadblocks may have a send
peer, and 31 a receive peer. The target's option `channels` caps channels; where one is too full, more channels
share the load.
""",
    "C0624": """\
a step moves too many chunks

A step moves at most 71 chunks. `coalesce` joins no more than a target's limit; cut the data in fewer chunks or
split the step.
""",
    "C0625": """\
a step waits for a threadblock that cannot be named

The runtimes keep the number of the threadblock waited for in one signed byte: only 0 to 127 can be waited for. Use
at most 128 threadblocks a rank.
""",
    "C0626": """\
an offset is too large

Offsets are kept in 16 bits: 0 to 32767 chunks. Cut the data in fewer chunks: `discretize{max-chunks=...}`.

    collc pod.coll -p 'bfb,discretize,lower' -t msccl-xml                          # C0626: 50000 chunks
    collc pod.coll -p 'bfb,discretize{max-chunks=64},lower' -t msccl-xml
""",
    "C0627": """\
the file is too large for the parsers

For its own rank a parser holds 4095 elements: the algorithm, all ranks, the rank's threadblocks and steps together;
and at most 1024 ranks or threadblocks side by side (more overwrite memory). Fewer chunks or coalesced messages make
fewer steps.
""",
    "C0628": """\
an attribute the runtime needs is missing or has a value it does not take

The executor and RCCL need `outofplace`, `minBytes` and `maxBytes`, msccl needs `name`; files of older tools lack
some. Names have at most 63 bytes, and nthreads (msccl only) is a multiple of 32 up to 640.

    <algo proto="Simple" ... coll="allreduce" inplace="1">                                         <!-- C0628 -->
    <algo name="ring" proto="Simple" ... inplace="1" outofplace="0" minBytes="0" maxBytes="0">
""",
    "C0629": """\
the chunks of a buffer do not add up

msccl wants i_chunks (times the ranks, for allgather) and o_chunks (times the ranks, for reduce-scatter) to be
nchunksperloop, or 0 for a buffer that is not used.

    <algo ... nchunksperloop="8" ngpus="4" coll="allgather" ...> <gpu id="0" i_chunks="1" .../> <!-- C0629 -->
    <algo ... nchunksperloop="8" ngpus="4" coll="allgather" ...> <gpu id="0" i_chunks="2" .../>
""",
    "C0630": """\
no call, or no safe call, has a size within the limits

minBytes and maxBytes say for which calls a file is used. For msccl maxBytes is the first size it is not used for
and never 0; for the others it is the last, and 0 stands for no limit. The larger a call, the fewer chunks one
message holds, and the more room the connections must have: a program may hang from some size on. `collc` finds that
size and writes it; a larger max-bytes is refused, and so is one beyond the tiles a launch can count.

    collc doubling.coll -t 'msccl-xml{max-bytes=16777216}'    # C0630: hangs from 8 MiB on
    collc doubling.coll -t msccl-xml                          # writes the largest size that does not
""",
    "C0631": """\
the program cannot be used in the way that was asked for

In place, input and output are one buffer; a program that writes an output place before it has read the same place
as input is wrong then. Out of place, the input must not be written. The message says what goes wrong. Leave the
option out, and the flags are set as the program allows.

    collc pod.coll -t 'msccl-xml{inplace=true}'       # C0631 where the program is right out of place only
    collc pod.coll -t msccl-xml
""",
    "C0632": """\
the program is wrong

Before a file is written the program is executed, in place and out of place. It is right in neither. The message
names the check that failed, with rank, threadblock and step. A program made by collc's own passes that ends here is
a bug worth reporting.
""",
    "C0633": """\
the connections are too short for the program

A connection holds 2 messages with the protocol Simple and 8 with LL and LL128; a sender that is further ahead
waits. Here the waits close a circle for calls of every size. Receive earlier, use more channels, or another
protocol.

    collc pod.coll -t msccl-xml                       # C0633: each rank sends 3 messages before it receives
    collc pod.coll -t 'msccl-xml{proto=LL}'
""",
    "C0634": """\
a step overwrites what may still be being sent

RCCL ends a send without a barrier under LL. If the next step of the threadblock writes the same chunks at another
offset, a fast thread may overwrite what a slow one has yet to send. Use another protocol, or put the two steps in
different threadblocks with a wait.

    <step s="0" type="s" srcbuf="s" srcoff="0" ... cnt="2" .../>
    <step s="1" type="cpy" ... dstbuf="s" dstoff="1" cnt="2" .../>  <!-- C0634; fine with dstoff="0" -->
""",
    "C0635": """\
the name makes the runtime run something else

microsoft/msccl has an alltoall in two dimensions built in: an alltoall whose file is named `2D` runs that, and the
steps of the file are never executed. Any other name will do.

    <algo name="2D" ... coll="alltoall" ...>                        <!-- C0635 -->
    <algo name="alltoall-2d" ... coll="alltoall" ...>
""",
    "C0640": """\
the algorithm in the file is not right

Before anything is made of an MSCCL-XML file, it is executed in the uses its flags name, and it is right in none of
them: chunks are missing or added twice, a threadblock uses what another has not finished, or a message has no
partner. What was made of it would be as wrong. The notes say what fails; `collc verify` says all.

    collc convert broken.xml -t mpi-c                                  # C0640
    collc verify broken.xml
""",
    "C0641": """\
the file claims a use that it is not right for (a warning)

The flags `inplace` and `outofplace` say for which calls a file is. This one is right for one of the two it names; what
is made of it is for that use, and for the other only where the target asks for both and copies the input first.

    <algo ... inplace="1" outofplace="1">      <!-- C0641: but it adds up in `i`, the input -->
    <algo ... inplace="1" outofplace="0">
""",
    "C0642": """\
no call is of the sizes that the file is for

A runtime uses a file for calls that can be cut in its chunks evenly and no others: the smallest has as many bytes as
there are chunks. Between minBytes and maxBytes there is no such size, so the file is loaded and never used. Often a
unit was meant, which the runtimes do not read.

    <algo ... nchunksperloop="16" minBytes="0" maxBytes="8">         <!-- C0642: calls are of 16 bytes, 32, ... -->
    <algo ... nchunksperloop="16" minBytes="0" maxBytes="8MB">       <!-- C0642: 8 is what is read -->
    <algo ... nchunksperloop="16" minBytes="0" maxBytes="8388608">
""",
    "C0650": """\
two files are for the same call

A runtime looks for a file by collective, ranks, use in place or not, and size; the sizes of two files overlap. One of
them is not used there: the executor takes the first by path, msccl the first of its list, older RCCL the first that
the directory has, which on another machine may be the other, and then ranks wait for each other for ever. Give the
files ranges that do not meet, with min-bytes and max-bytes.

    collc verify small.xml large.xml      # C0650: maxBytes of the one is not below minBytes of the other
""",
    "C0651": """\
two files have one name

The executor and RCCL load the files of one folder, which holds one file of a name; and the logs of msccl name an
algorithm by its `name` only. Rename one, or set the option `algorithm` when compiling.

    collc verify a/ring.xml b/ring.xml    # C0651
""",
    "C0652": """\
more files than the runtime loads

microsoft/msccl loads 4 files, the executor and RCCL 1024; the rest is ignored. Leave out those for the rarest calls.

    collc env 1.xml 2.xml 3.xml 4.xml 5.xml --runtime msccl      # C0652
""",
    "C0653": """\
a path that cannot be told to the runtime

The executor and RCCL are told one folder, so all files must stand in it. msccl is told a list of paths separated by
colons, or a file with one path of at most 255 bytes a line. Move the files.

    collc env a/ring.xml b/tree.xml --runtime rccl               # C0653: two folders
    collc env 'pod:1/ring.xml' --runtime msccl                   # C0653: use --config FILE
""",
    "C0654": """\
a file that the runtime would not load or run

`collc env` prints what makes a runtime use files, and this one it would refuse, or skip without a word. The notes
say why. `collc convert` makes a file that the runtime takes, where that is possible.

    collc env ring.xml --runtime rccl                            # C0654: it has fused instructions
    collc convert ring.xml -t 'msccl-xml{runtime=rccl}' -o out/
    collc env out/ --runtime rccl
""",
    "C0655": """\
a folder with files that are not meant

The executor and RCCL load every file of the folder they are told, whatever its name, and a file that is no algorithm
keeps communicators from being made. Keep algorithms in a folder of their own: `-o DIR/`.

    collc env pod/ring.xml                # C0655: pod.coll stands beside it
""",
}
