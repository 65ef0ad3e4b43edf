"""The mistakes that the target ``oneccl-xml`` reports, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0750": """\
this program cannot become oneCCL-XML

Refused are programs that move data to a place where chunks have another size (a count is cut in chunks that differ by
one element), and those that use more than 1024 channels, each of which is a communicator.

Remedy: compile the same collective from a schedule instead of an imported file.""",
    "C0751": """\
this program deadlocks

The threadblocks of a program wait for each other in a circle, whatever its connections may hold.

Remedy: `collc verify` the program, which shows the circle.""",
    "C0752": """\
not XML

The text is not well-formed XML; the message says where it stops being so.

    <oneccl version="1" ...> <rank id="0">             <!-- C0752: neither is closed -->""",
    "C0753": """\
not valid oneCCL-XML

The text does not follow the schema, `oneccl.xsd`: an element or attribute is missing, unknown or out of place, a value
is not of its type, or a key does not hold (a thread sends on a connection that it does not own, a step sends two
messages to one peer on one channel, a sync names a step that is not there). The message names the key.

    <send peer="1" channel="0" buffer="input" offset="0" chunk="0" count="0"/>  <!-- C0753: count is 1 or more -->""",
    "C0754": """\
a file that is not read

Files of more than 256 MiB, and files with a document type, whose entities can make a small file huge.

Remedy: remove the `<!DOCTYPE ...>`.""",
    "C0755": """\
ranks, threads or steps out of order

They are numbered 0, 1, 2, ... in document order, steps with the number of their thread before (`1.4` is step 4 of
thread 1), and there are as many ranks as `ranks` says (rule R1).

    <thread id="1"> <step id="1.1">                    <!-- C0755: step 1.0 is due here -->""",
    "C0756": """\
a rule of oneCCL-XML does not hold

Rules that a schema cannot state: R1 to R14 in `oneccl.xsd` and docs/oneccl.md. The message names the rule and the
line: an access beyond its buffer, an operand at a place for another chunk, a message that nobody receives, and so on.

    <copy src="input" srcoff="3" dst="output" dstoff="2" chunk="3" count="1"/>   <!-- C0756: R6, 2 is chunk 2 -->""",
    "C0757": """\
the algorithm in the file is not right

Before anything is made of an oneCCL-XML file it is executed, in the uses its flags name. This one does not perform its
collective there, or its threads touch the same data unordered, or its steps wait for each other for ever.

Remedy: `collc verify FILE` says all.""",
    "C0758": """\
the program cannot be used in the way that was asked for

In place, input and output are one buffer; a program that writes an output place before it has read the same place
as input is wrong then. Out of place, the input must not be written.

    collc pod.coll -t 'oneccl-xml{inplace=true}'       # C0758 where the program is right out of place only
    collc pod.coll -t oneccl-xml""",
    "C0759": """\
an option of the target `oneccl-xml` has a value it cannot have

The message says which and what it needs. `collc targets oneccl-xml` lists the options.

    collc pod.coll -t 'oneccl-xml{threads=0}'          # C0759: 1 to 64""",
    "C0760": """\
no oneCCL found

Running an oneCCL-XML file needs oneCCL's CPU library for static linking (`lib/ccl/cpu/lib/libccl.a`), its headers,
libhwloc and libfabric. They are looked for where `oneccl` says, in CCL_ROOT, and beside the Python that runs collc.

    pip install 'collc[oneccl]' && pip install --no-deps oneccl-devel==2022.1.2

The second command leaves out what the package asks for beside: half a gigabyte of compiler run-times for devices that
the CPU library does not use.""",
    "C0761": """\
the executor did not compile

No C++ compiler was found (CXX, c++, g++ and clang++ are tried), or it refused the executor's sources, or they did not
link with the oneCCL found; its first messages are shown. The executor needs C++17.

Remedy: install a compiler (Debian: `apt install g++`) or name one in CXX.""",
    "C0762": """\
a run over oneCCL did not finish

The executor refused the file, a rank died, or ranks waited longer than the time limit; what it said is shown. All its
processes were stopped.

Remedy: raise the time limit; if a small file fails too, try oneCCL's own examples on this machine.""",
    "C0763": """\
the results are wrong

At least one element, on one rank, was not what the collective promises; the first one is shown. The file was verified
before it ran, so the fault is in oneCCL, the executor or collc.""",
    "C0764": """\
nothing to run

A run needs counts, element types and operations that the file is for.

    int32 float32 ...   sum prod min max               # C0764: other names
""",
    "C0765": """\
another number of ranks

`collc run --ranks N` runs what is for N ranks. This collective, or this file, is for another number: its schedule names
every rank, so it cannot run on more or fewer.

    collc run pod8.xml --ranks 4                       # C0765 where the file says ranks="8"

Remedy: compile it anew for a topology of that many ranks.""",
}
