"""The paragraphs that ``collc explain`` prints for the codes of the target ``oneccl-xml``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0750": """\
this program cannot become oneCCL-XML

oneccl-xml refuses programs that move data to a place where chunks have another size (the chunks of a count differ by up
to one element). It also refuses more than 1024 channels, because each channel is a communicator.

Remedy: compile the same collective from a schedule instead of an imported file.""",
    "C0751": """\
this program deadlocks

The threadblocks of the program wait for each other in a cycle, with any number of slots.

Remedy: `collc verify` the program; it shows the cycle.""",
    "C0752": """\
not XML

The text is not well-formed XML. The message names the line.

    <oneccl version="1" ...> <rank id="0">             <!-- C0752: neither is closed -->""",
    "C0753": """\
not valid oneCCL-XML

The text does not follow the schema, `oneccl.xsd`: an element is missing or unknown, a value has another
type, or two elements have the same key. For example, a thread uses a connection of another thread to send, a step sends
two messages to one peer on one channel, or a sync names an unknown step. The message names the key.

    <send peer="1" channel="0" buffer="input" offset="0" chunk="0" count="0"/>  <!-- C0753: count is 1 or more -->""",
    "C0754": """\
the file is too large, or has a document type

collc does not read files of more than 512 MiB, or files with a document type, whose entities can make a small file
huge.

Remedy: remove the `<!DOCTYPE ...>`.""",
    "C0755": """\
ranks, threads or steps out of order

Ranks, threads and steps are numbered 0, 1, 2, ... in document order. The number of a step begins with its thread: `1.4`
is step 4 of thread 1. The attribute `ranks` is the number of ranks (rule R1).

    <thread id="1"> <step id="1.1">                    <!-- C0755: step 1.0 is due here -->""",
    "C0756": """\
a rule of oneCCL-XML does not hold

The schema cannot state the rules R1 to R16; see `oneccl.xsd` and docs/oneccl.md. The message names the rule and the
line. Examples: an access beyond its buffer, an operand at a place for another chunk, a message without a receive.

    <copy src="input" srcoff="3" dst="output" dstoff="2" chunk="3" count="1"/>   <!-- C0756: R6, 2 is chunk 2 -->""",
    "C0757": """\
the algorithm in the file is wrong

Before collc converts an oneCCL-XML file, it executes it in the uses that its flags name. This file does not perform its
collective, or its threads access the same data without an order, or its steps wait for each other forever.

Remedy: `collc verify FILE` lists all failures.""",
    "C0758": """\
the program does not support the requested use

In place, input and output are one buffer. The program must read the input in the memory of an output chunk before it
writes this chunk. Out of place, a program must not write the input.

    collc pod.coll -t 'oneccl-xml{inplace=true}'       # C0758 where the program is right out of place only
    collc pod.coll -t oneccl-xml""",
    "C0759": """\
an option of the target `oneccl-xml` has an invalid value

The message names the option and what it needs. `collc targets oneccl-xml` lists the options.

    collc pod.coll -t 'oneccl-xml{threads=0}'          # C0759: 1 to 64""",
    "C0760": """\
no oneCCL found

Running an oneCCL-XML file needs oneCCL's CPU library for static linking (`lib/ccl/cpu/lib/libccl.a`), its headers,
libhwloc and libfabric. collc looks for them at `oneccl`, in CCL_ROOT, and beside the Python that runs collc.

    pip install 'collc[oneccl]' && pip install --no-deps oneccl-devel==2022.1.2

The second command leaves out the dependencies of the package: half a gigabyte of compiler run-times for devices that
the CPU library does not use.""",
    "C0761": """\
the executor did not compile

collc found no C++ compiler, or the compiler could not compile the executor's sources or link them with oneCCL. collc
tries CXX, c++, g++ and clang++. The notes show its first messages. The executor needs C++17.

Remedy: install a compiler (Debian: `apt install g++`) or name one in CXX.""",
    "C0762": """\
a run over oneCCL did not finish

The executor refused the file, a rank died, or ranks waited longer than the time limit. The notes show its messages.
collc stopped all its processes.

Remedy: raise the time limit; if a small file fails too, try oneCCL's own examples on this machine.""",
    "C0763": """\
the results are wrong

At least one element on one rank is not what the collective promises. The notes show the first one. collc verified the
file before the run, so the fault is in oneCCL, the executor or collc.""",
    "C0764": """\
nothing to run

A run needs counts, and element types and operations that the file supports.

    int32 float32 ...   sum prod min max               # C0764: other names
""",
    "C0765": """\
another number of ranks

`collc run --ranks N` runs collectives and files for N ranks. This one is for another number. Its schedule names every
rank, so it cannot run on more or fewer.

    collc run pod8.xml --ranks 4                       # C0765 where the file says ranks="8"

Remedy: compile it again for a topology of N ranks.""",
    "C0766": """\
a collective that oneCCL-XML cannot carry

Files of oneCCL-XML have blocks of one size. collc cuts uneven shards into equal ones for them, as a collective that
only copies. A reduce-scatterv reduces, and oneCCL's own reduce-scatter is even. A custom collective that sums shards
has no call of oneCCL to be compared with.

    collective grads = reduce-scatterv on ring4 { weights: {5, 0, 1, 2} };
    emit grads as oneccl-xml;                           # C0766

Remedy: use the target `mpi-c`, or equal shards.""",
}
