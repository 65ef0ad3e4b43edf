"""The paragraphs that ``collc explain`` prints for the codes of the target ``mpi-c``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0701": """no MPI found

A run needs an MPI: its compiler wrapper `mpicc` and its launcher `mpiexec`. collc looks for them in this order: at
`--mpi` (a prefix that has bin/mpicc, or that bin folder), beside the Python that runs collc, and on PATH. Both must
come from one folder.

    $ collc run pod.coll
    error: no MPI found: neither `mpicc` nor `mpiexec` is on PATH [C0701]

Remedy: `pip install 'collc[mpi]'` brings one from a wheel, without root rights; or install one with the system's
packages (Debian: `apt install mpich libmpich-dev`); or name it: `collc run --mpi /opt/openmpi pod.coll`.""",
    "C0702": """the C compiler did not run

`mpicc` is a wrapper around the C compiler of its configuration. It could not start that compiler.

Remedy: install a C compiler (Debian: `apt install gcc`), or name one to the wrapper: MPICH_CC=clang for
MPICH, OMPI_CC=clang for Open MPI, I_MPI_CC=clang for Intel MPI.""",
    "C0703": """the generated C did not compile

`mpicc` refused the generated files. The notes show its first messages. Generated C needs a C99 compiler and an MPI of
version 3.0 or later.

Remedy: check that other MPI programs compile (`mpicc hello.c`). If they do, this is a defect in collc.""",
    "C0704": """this program cannot become MPI-C

The mpi-c target takes every program that verifies both in place and out of place. It refuses programs that

* deadlock,
* write their input, because an MPI call must not write its send buffer,
* use more than 32767 channels, because a channel is a message tag,
* move data to a place where chunks have another size.

Remedy: `collc verify` the program; compile the same collective from a schedule instead of an imported file.""",
    "C0705": """a name that C cannot use

The function's name must be a C identifier. It must not be a keyword, or a name of the C library, the system or MPI.

    $ collc pod.coll -t 'mpi-c{function=free}'
    error: `free` is a name of the C library [C0705]

Remedy: choose another name, e.g. `pod_free`. (collc changes names that it takes from the collective as needed.)""",
    "C0706": """a run did not finish

The launcher reported that a rank died or returned an error, or its output ended early. The notes show the output of
the ranks.

Remedy: a killed rank may have run out of memory: try smaller sizes (`--size`). If `mpiexec -n 2 hostname` fails too,
the MPI itself does not work here.""",
    "C0707": """a run took longer than its time limit

collc stopped all processes of the run. More ranks than cores, large sizes and many repeats take time.

Remedy: raise `--timeout`, or run fewer sizes, types or operations.""",
    "C0708": """the results are wrong

At least one element on one rank is not what the collective promises. The message shows the first one of each wrong
call.

Remedy: collc verified the schedule and the program before the run, so the fault is in the MPI, the compiler or collc.
Try another MPI (`--mpi`).""",
    "C0709": """nothing to run

A run needs at least one program, size, element type and operation. The element types must support the operations.

    $ collc run pod.coll --dtype int23
    error: unknown element type `int23` [C0709]

Remedy: element types are int32, int64, float32, float64 and strided (a derived type). Operations are sum, max, min,
prod and user (a user-defined one, the only operation of strided).""",
    "C0710": """a C file that collc would not write

`collc verify FILE.c` reads a C file of the target `mpi-c`: its tables, the engine, and the functions. It executes the
programs in the tables. All other text must be that of this version of collc, to the last character. The message names
the first line that is not.

    $ collc verify pod.c
    error: pod.c, line 412: expected `};`, found `int x;` [C0710]

Remedy: compile the `.coll` file again with this version, and verify the new file.""",
    "C0720": """a function's name and a library

`mpi-c{library=NAME}` puts all collectives of a compilation into one source and one header, with functions
NAME_COLLECTIVE. `function` names the only function of a source. The two options contradict each other.

    $ collc pod.coll -t 'mpi-c{library=pod,function=sum}'
    error: `function=sum` names the one function, `library=pod` holds several [C0720]

Remedy: leave one of them out; a collective called `sum` becomes `pod_sum`.""",
    "C0721": """a header that hides another

mpi-c writes a header beside its source, with the same name. Programs that look for headers in its folder (`-I`) would
include a header `string.h` or `mpi.h` instead of the system's. On file systems that ignore case the same holds for
`String.h`.

    $ collc pod.coll -t mpi-c -o string.c

Remedy: rename the file, or the collective that gives it its name.""",
    "C0730": """two algorithms for the same calls

A library for unmodified programs chooses an algorithm by the collective, the number of ranks, the root and the bytes
of the whole vector. Two of its algorithms serve the same calls, so the choice is ambiguous.

    collc compile pod.coll -t 'mpi-c{interpose=true}'

Remedy: leave one out with `--collective`, or let `using auto { sizes: .. }` choose. The options `min-bytes` and
`max-bytes` of their emits divide the sizes among them.""",
    "C0731": """options of a library for unmodified programs

`interpose=true` makes a library whose functions are MPI's own, so it takes no `function`. `min-bytes` and `max-bytes`
limit the calls that it serves, by the bytes of the whole vector, both included. They need `interpose`. It serves no
collectives with counts (`allgatherv`, `alltoallv`), except `neighbours` and `custom` ones with one target for each
shard. Those go without `min-bytes` and `max-bytes`: ranks choose the algorithm before they know the sizes.

    collc pod.coll -t 'mpi-c{interpose=true,min-bytes=4096,max-bytes=1024}'

Remedy: leave out the option that does not fit, and give the smaller size first.""",
    "C0732": """a library that could not be linked

`mpicc` compiles the library. The compiler behind it links it (`mpicc -show` names that compiler; otherwise CC,
otherwise `cc`), so the library is bound to no MPI. That compiler did not run, or refused.

Remedy: install it, or set CC. Only Linux has LD_PRELOAD.""",
}
