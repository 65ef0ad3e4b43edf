"""Explanations of the codes of the command line, files, the driver and build systems, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0001": """a command line that cannot be understood

An option is unknown, lacks its value or has a wrong one, or there are too few or too many files.

    collc pod.coll --dump-it

Options are before or after the file. A value follows its option, or is joined to it with `=`. Options cannot be
abbreviated. `collc VERB --help` lists them.""",
    "C0002": """a file that cannot be read

The input does not exist, is a directory, or may not be read by you.

    collc missing.coll -t msccl-xml

Check the path. `-` reads standard input.""",
    "C0003": """a file that is not text

All inputs of collc are UTF-8 text: `.coll` files, printed IR, MSCCL-XML. The file holds other bytes, or it is too large
for such a text.

    collc /bin/ls

Name the text file that you meant, and save it as UTF-8.""",
    "C0004": """an output that cannot be written

Possible causes: the directory does not exist or is read-only, the name is that of a directory, the existing file is
read-only, or the device is full.

    collc pod.coll -t msccl-xml -o missing/pod.xml

collc writes all outputs or none: after this error no file has changed. Create the directory, make the file writable, or
name another file with -o.""",
    "C0005": """an output that would replace its input

    collc pod.coll -t ir -o pod.coll

Name another file with -o. Included files count too: collc overwrites no file that it has read.""",
    "C0006": """a pipeline or target that cannot be read

A pipeline (-p) is a list of names, separated by commas, each with options in braces. Targets (-t) have the same form.

    collc pod.coll -p 'bfb,discretize{max-chunks=8' -t msccl-xml

Write `name,name{option=value,option=value}`, in quotes so that the shell keeps the braces.""",
    "C0007": """a target that does not exist

    collc pod.coll -t msccl

`collc targets` lists the targets with their options.""",
    "C0008": """a pass that does not exist

    collc pod.coll -p 'bfb,coalesc'

`collc passes` lists the passes, `collc passes NAME` the options of one.""",
    "C0009": """an option that a pass or target does not have

    collc pod.coll -p 'bfb,discretize{chunks=8}'

The options are the same in the language (`emit g as msccl-xml { channels: 4 };`) and on the command line
(`-t 'msccl-xml{channels=4}'`). `collc passes NAME` and `collc targets NAME` list them.""",
    "C0010": """an option with a wrong value

    collc pod.coll -p 'bfb,discretize{max-chunks=many}'

The message says what the option needs: a whole number, true or false, or one of several words.""",
    "C0011": """passes in an order that cannot work

Every pass takes one level of the IR and gives one. Synthesis turns a problem into a schedule, and `lower` turns a
schedule into a program. No pass goes back to an earlier level.

    collc pod.coll -p 'coalesce,bfb'

Order them as synthesis, schedule passes, `lower`, program passes. collc adds missing passes between the levels: `-p
coalesce` synthesizes and lowers first. `--print-pipeline` shows the whole pipeline.""",
    "C0012": """a pass that needs another pass first

Some passes need a property of the schedule, for example that it is discrete: cut into whole chunks.

    collc schedule.ir -p lower

First run the pass that establishes the property: `-p discretize,lower`.""",
    "C0013": """a pipeline that ends with another collective

    collc allgather.coll -p 'bfb,reverse'

The result must be the collective of the file: its kind, root, ranks, operation, type and size. The message names the
difference. Leave out the pass that changes the collective, or declare the other collective. A pass that changes the
network or the collective without permission is an internal error (C0070).""",
    "C0014": """a missing schedule by hand

The pass `steps` uses the schedule that the file lists step by step.

    collc pod.coll -p 'steps,discretize'

Write `schedule NAME using steps { ... }` in the file, or name a synthesis pass such as `bfb`.""",
    "C0015": """a scheduler that does not exist

    collc schedulers bfs

`collc schedulers` lists the schedulers. In a file, the name follows `using`.""",
    "C0016": """no collective to compile

The file declares no collective, or none with the name of --collective.

    topology pod = torus(3, 3);

Declare one: `collective grads = allreduce on pod;`.""",
    "C0017": """a collective without a target (a warning)

The file emits some of its collectives, but not this one.

Write `emit NAME as TARGET;` for it, or give a target for all collectives with -t.""",
    "C0018": """a file of another kind than needed

collc recognizes a file by its content: a printed IR begins with `collc-ir`, XML begins with `<`, and all else is the
language.

    collc algorithm.xml -t mpi-c

The message names files of other programs: NCCL topologies (`<system>`) and graphs (`<graphs>`), JSON, C, CSV, pictures.
collc imports none of them.

`collc verify` reads all three. `collc compile` reads the language and printed IR. `collc formats` lists all formats,
and `collc formats NAME` lists the verbs that read one.""",
    "C0019": """a result without the requested value

The result does not have what the call asks for. Several collectives have no single schedule, a program from a file has
no cost, and without a target there are no files.

    result.schedule            # the file declares two collectives

Use `result.collectives["grads"].schedule`, or compile with `collective="grads"`.""",
    "C0020": """a size, time or bandwidth that cannot be read

    collc cost pod.coll --bandwidth 100

Sizes are `64MiB`, `1GB` or bytes; times `10us`; bandwidths `100Gbps` (bits) or `25GB/s` (bytes). `--bandwidth` is the
total bandwidth out of one node, B. `--gamma` is a time per byte, `2ps/B`, or the bytes that a rank adds per second,
`500GB/s`. Ranges of sizes are `1KiB..1GiB` (powers of two) and `1KiB..1GiB:4` (powers of four), from 1 byte on.""",
    "C0021": """several outputs for one file

    collc two.coll -t msccl-xml -o out.xml

The file has several outputs. `-o DIR/` writes each under its collective's name; --collective chooses one. This error
also appears if two options name one file, by the same path or by links.""",
    "C0022": """something that is not in this version

The verb or function belongs to collc, but this version does not have it yet.

    collc report pod.coll

`collc --help` lists what there is.""",
    "C0023": """not enough memory

A pass, a check or a target needs more memory than this machine has. The compilation always ends here. `auto` does not
skip a candidate for lack of memory: it must choose the same candidate on every machine.

    collc huge.coll --node-limit 1000000

Use a smaller topology or a larger machine. `collc cost` needs less memory than a whole program.""",
    "C0024": """a worker that ended

The executor given to the API lost the process that compiled a collective: it was killed, or ran out of memory.
`collc find` makes the calls of a lost worker again, and ends after three losses without a result between them.

    collc.compile("pod.coll", executor=ProcessPoolExecutor())

Give the workers more memory, or compile without an executor.""",
    "C0025": """a file without a target

The file has no `emit` statement, and the command line has no -t.

    collc pod.coll

Add `-t msccl-xml`, or write `emit NAME as msccl-xml;`. `collc targets` lists the targets.""",
    "C0026": """a code that does not exist

    collc explain C9999

`collc explain` without a code lists them all.""",
    "C0027": """parameters that cannot be read

    collc pod.coll -D boxes

Write `-D name=value`; the file must declare `param name`.""",
    "C0028": """a package that a table or a picture needs

Data frames need pandas, pictures of `collc.plot` matplotlib, Parquet files pyarrow. They are not installed with collc
itself.

    collc sweep --on 'torus(4, 4)' --collective allreduce -o times.parquet

Install the package into the environment of collc: `pip install 'collc[parquet]'`, `collc[pandas]` or `collc[plot]`.""",
    "C0029": """a sweep that cannot be read

A sweep needs networks, collectives, schedulers and sizes. A collective may have attributes in braces. The name of the
file says its form: .csv, .json, .md or .parquet.

    collc sweep --on 'torus(4, 4)' --collective alreduce

Write the name of a collective, such as `allreduce` or `'broadcast { root: 3 }'`.""",
    "C0030": """a size without a topology search

Every node has d links out and d in. Links to different nodes need at least d + 1 nodes. The search also measures every
topology that it finds. This limits the size to 10,000 nodes, and to 4,096 if a node has more than 8 links.

    collc find -n 4 -d 4

Ask for more nodes or a smaller degree. Fewer nodes need parallel links: `uniring(m, d)`, `biring(m, d)`.""",
    "C0031": """a size and degree without bidirectional topologies

If every link has its reverse, the N*d links form pairs, so N*d is even.

    collc find -n 9 -d 3 --bidirectional

Use an even degree or an even number of nodes, or leave out --bidirectional.""",
    "C0032": """an objective that does not exist

    collc.find(nodes=64, degree=4, objective="broadcast")

Objectives are allreduce, allgather and alltoall.""",
    "C0033": """a database of topologies with wrong rows

`collc find --check` builds every topology of a database and recomputes its costs. A row is wrong if it does not
compile, or if its size, degree or costs differ.

    collc find --check --database best.txt -d 4

Delete the row, or build the database again with --refresh.""",
    "C0034": """a search that found no topology

The search met no topology of this size and degree. This happens only in searches with little effort.

    collc find -n 1999 -d 16 --bidirectional --refresh --effort 1

Search longer (--effort), or with another --seed.""",
    "C0035": """a pattern that excludes nothing

`--exclude` takes the name of a graph family, an operator, a group or a graph of the literature, as expressions have it.
The wildcards of a shell match several: `*kautz`.

    collc find -n 64 -d 4 --exclude kauz

`collc topologies` lists families and operators.""",
    "C0036": """an executor that does not exist, or whose package is not installed

    collc find -n 64 -d 4 --refresh --executor dask:tcp://head:8786

Executors are `processes`, `processes:N`, `dask:tcp://HOST:PORT` and `mpi`. Dask needs `pip install 'collc[dask]'`, MPI
`pip install 'collc[mpi4py]'`.""",
    "C0037": """an executor without workers

No Dask scheduler answers at the address, or the command does not run as an MPI program.

    collc find -n 64 -d 4 --refresh --executor mpi

Start `dask scheduler` and `dask worker ADDRESS` first. For MPI, start the command with
`mpiexec -n 4 python -m mpi4py.futures -m collc`.""",
    "C0040": """a network that does not fit a schedule

`collc simulate --network` sends the messages of a schedule over another network, from rank to rank. Both need the same
number of ranks.

    collc simulate ring16.coll --network 'torus(3, 3)'

Name a network with the same number of ranks. Switches do not count.""",
    "C0041": """a trace that is too large

A trace has a slice for every message and a value for every link whose load changes. Viewers do not open millions of
them.

    collc simulate pod.coll --trace pod.json

Choose ranks: --trace-ranks 0..8 shows only what these ranks send, and the links out of them. The times stay those of
all ranks.""",
    "C0042": """a curve without two sizes

--svg draws goodput by size, which needs at least two sizes.

    collc simulate pod.coll --size 1MiB --svg pod.svg

Name several sizes, or leave out --size for 32 B to 512 MiB.""",
    "C0043": """a trace of several collectives

A trace shows one collective at one size.

    collc simulate two.coll --trace two.json

Choose one: --collective NAME.""",
    "C0044": """ranks of a trace that do not exist

    collc simulate ring4.coll --trace ring.json --trace-ranks 8

Ranks are numbers from 0; `0..8` are the first eight.""",
    "C0045": """sizes that `auto` cannot choose for

`auto` chooses for one size, or for every size of a range that includes both ends.

    schedule grads using auto { sizes: 1 MiB };

Write one of `size: 1 MiB`, `sizes: 1 KiB..1 GiB` and `sizes: all`.""",
    "C0046": """candidates that `auto` does not have

The options `candidates` and `without` name schedulers, separated by commas. After them, no candidate is left, or none
of the rest can schedule the collective on this topology.

    schedule grads using auto { candidates: "swing, buckets" };

`collc cost -v` gives the reason for each skipped scheduler. Name other schedulers, or leave out the options.""",
    "C0047": """more transfers than `auto` writes out

A schedule of exchanges among N ranks has about N * N transfers or more, since a transfer moves one shard. `auto` skips
candidates with more transfers than its option `transfers`. If no other candidate applies, this is an error.

    schedule grads using auto { candidates: swing, transfers: 1000 };

Raise `transfers`, up to 2^26.""",
    "C0048": """outputs without known names

`auto` with `sizes` writes one file for every range of sizes with a different fastest algorithm. Only compilation finds
these ranges, and -M does not compile.

    collc -M pod.coll -t msccl-xml

Write -MD, which compiles and lists the files, or name a target of the rule with -MT.""",
    "C0049": """sizes without a file (a warning)

The runtime cannot run the fastest algorithm for all sizes of its range: scratch is limited, or larger calls could hang.
collc wrote a file for the calls that it can run, if there are any. For others the runtime uses its own algorithms.

    schedule grads using auto { sizes: all };  emit grads as msccl-xml { runtime: msccl };

End the range earlier, or exclude the candidate: `without: NAME`.""",
    "C0050": """more work than `auto` allows a scheduler

`auto` limits the work of every scheduler. Schedulers count steps of work, not seconds, so the choice is the same on
every machine. A scheduler beyond the limit is skipped. If only the usual scheduler applies, it runs without a limit.

    schedule grads using auto { candidates: forest, effort: 1000 };

Raise `effort`, or name the scheduler: `using forest` has no limit.""",
    "C0051": """a target whose files have no threadblocks to trace

`collc simulate --trace-target TARGET` shows the threadblocks and the instructions of the file that the target writes.
Only targets that write programs have them: `msccl-xml`, `mpi-c`, `oneccl-xml`, `ir` and others.

    collc simulate pod.coll --trace steps.json --trace-target report        # C0051
    collc simulate pod.coll --trace steps.json --trace-target messages      # a slice for each message instead
""",
    "C0052": """a network that is too large to animate

An animation draws every link of the network. Networks of more than 4,096 nodes or 20,000 links are not drawn.
`collc simulate --steps` lists the steps, and `collc report` shows them with a slider.
""",
    "C0060": """a trace of ranks that run ahead

    collc simulate pod.coll --run-ahead --trace pod.json

A trace shows steps one after the other. --run-ahead gives only the time of all repetitions of a step, not the time of
each message. Leave out one of the two options.""",
    "C0061": """a number of pieces for a schedule without pieces (a warning)

`collc simulate --pieces` sends the data of trees, and of `two-level`, in another number of pieces. Other schedules do
not divide the data into successive pieces, so their times do not change.

    collc simulate bucket.coll --pieces best

Leave `--pieces` out, or use `forest`, `double-binary-tree`, `box-trees` or `two-level`.""",
    "C0062": """a target whose files have no ranks that only relay

Ranks that are no members of the collective relay in the schedule. The runtime's files are for ranks that all take part
in the call.

collc leaves relays out by itself if the members are connected without them. Here they are not, or the schedule was
written by hand. `mpi-c`, `oneccl-xml`, and `msccl-xml` for runtime `msccl` have ranks that only relay. Else, add the
relays to the members.
""",
    "C0063": """a collective that cannot run together with the others of its block

The collectives of a `together` block divide the links of one network. collc knows what a collective must send over each
link only if its kind says so.

Put collectives of other networks, and collectives with conditions of their own, into other blocks or outside.
""",
    "C0064": """a target whose files are for one root

`root: all` and `root: {0, 4}` give a collective several roots. A function of `mpi-c` takes the root as an argument. The
files of other targets have the steps of one root.

    collective weights = broadcast on pod { root: all };
    emit weights as msccl-xml;

Write one root, `root: 0`, and declare a collective for each other root that the program uses; or use `mpi-c`.
""",
    "C0065": """a file that is too large to be read back

collc reads back what it writes, and executes it. Readers refuse longer files than the message says, because such files
could use up the memory.

    collc compile ring.coll -t mpi-c             # holds the program of one rank and the group

The files of GPU and oneCCL runtimes list all ranks. Use `mpi-c`, or fewer ranks, or a schedule of fewer messages.
`--verify off` writes the file, but then nothing proves it.
""",
    "C0070": """an internal error

The compiler failed. No input should cause this. Exit status 70.

If the pass or target that failed comes from a plugin, a note names the plugin's package.

The message names the first pass with a wrong result. The failure may appear later: in another pass, at the end of a
level, or in a file that is read back. Then collc runs all passes again and checks the result of each.

collc has written a file that reproduces the failure; its first lines say how. It holds the IR that this pass got, or
the input, and the rest of the pipeline, the version and the command. COLLC_DEBUG=1 also prints a traceback.""",
    "C0072": """an algorithm that was rearranged (a warning)

The conversion keeps the threadblocks, channels and steps of a file if the target allows them. These exceed its limits,
which the note names. So collc replaced fused instructions and reassigned messages to threadblocks and channels. Every
message has its old sender, receiver and place in the order.

    collc convert ring64.xml -t 'msccl-xml{runtime=rccl}'

To prevent this, name the passes: -p 'unfuse'.""",
    "C0073": """an algorithm for fewer sizes than its file names (a warning)

The file covers sizes at which the requested runtime could hang, or which it cannot count. The new file covers only the
sizes up to the largest safe one. The note gives the reason for this limit.

    collc convert doubling.xml -t 'msccl-xml{runtime=executor}'

For larger calls, convert another algorithm, or compile one.""",
    "C0074": """a testbed that cannot be built here

The network of namespaces needs Linux, programs of util-linux and iproute2, a C compiler for two small files, and the
permission to create network namespaces. Root has it; other users have it on systems with user namespaces. The message
names what is missing, or the command that failed.

    collc run pod.coll --testbed

Run it on a system that has all of these, for example as root in a virtual machine or in a privileged container.""",
    "C0075": """a network that the testbed cannot build

Every rank and every switch is a namespace of this machine, and every rank is a process. The network needs at least two
ranks, and at most the number of nodes in the message. The kernel must be able to limit the rate of every link. A delay
is at most one second.

    collc run pod.coll --testbed=100Gbps

Choose a rate of 20 to 40 Mbps for the widest link. Then links are slower than the processors, as in a real network.""",
    "C0076": """measurements that cannot be read

A calibration reads CSV with a line of titles, or JSON: a list of objects, or an object with such a list as `rows`. Rows
have `bytes` (the whole vector), `seconds` or `time_us`, `steps` and `load`: the share of the vector that the busiest
links carry over all steps.

    name,bytes,steps,load,seconds
    ring,1048576,14,7/4,0.3681

Without `steps` and `load`, name the measured file: --schedules pod.coll. `collc cost --json` has both, as `T_L` and
`time_per_byte`.""",
    "C0077": """measurements that do not determine a fit

The fit has three unknowns: alpha, bandwidth, and the overhead of a call. It needs at least three different measurements
with different sizes, whose times grow with the bytes.

    collc calibrate small.csv        # one size, or times that fall

Measure from a few bytes, where latency dominates, to some megabytes, where bandwidth dominates.""",
    "C0078": """a doubtful calibration (a warning)

collc left out rows, the measured sizes do not show alpha, or the model does not explain the times, because many
measurements lie far from it. The message says which.

Outliers do not move the fit if most measurements are right. If many are far off, the machine was busy, or the MPI
treats small and large messages differently. `--classes auto` fits one alpha for each.""",
    "C0079": """\
a log of nccl-tests or the OSU benchmarks cannot be read

`collc calibrate --nccl-tests` reads the output of `all_reduce_perf` and its siblings, and of `osu_allreduce`. A log may
have colors, `>` of a mail and prefixes of mpirun. A row must have all columns of its heading. The algorithm comes from
`NCCL_ALGO=Ring` in the log, or from the command line:

    collc calibrate --nccl-tests --algorithm ring=ring.log --algorithm tree/ll128=tree.log -o times.csv
""",
    "C0080": """a missing program

`collc launch` runs the command after `--` unchanged. It searches for the first word on PATH and in the folder of the
Python that runs collc, where wheels install their launchers.

    collc launch sums.coll -- mpiexec -n 4 ./app

Install the program, activate its environment, or write its path.""",
    "C0081": """a launcher without a compiler

collc compiles the library for an MPI program with the `mpicc` in the launcher's folder. That folder has no `mpicc`, or
the MPI of the launcher is unknown.

    collc launch sums.coll --mpi /opt/mpich -- /opt/scheduler/bin/mpiexec -n 4 ./app

Install the MPI's development files, or name the MPI with --mpi.""",
    "C0082": """a library that reported nothing (a warning)

Every rank under `collc launch` reports at its end what the library did. No rank did. The note gives the reason, as far
as the processes and the program's file show it:

* The program uses no MPI, did not call MPI_Init, or calls MPI by PMPI_ names.
* It or its MPI is linked statically.
* It is setuid, so the system ignores LD_PRELOAD.
* No process loaded the library: the launcher does not pass on the environment, or the ranks ran on other hosts. There
  the library may have served calls.

    collc launch sums.coll -- mpiexec -n 4 hostname

With COLLC_STATS=1, rank 0 prints the sums of all ranks itself, on any host.""",
    "C0083": """no call used a compiled schedule (a warning)

The program ran, and the MPI library executed all of its collectives. One note for each reason gives the number of
calls, in total and by function. Further notes list the calls that the compiled library serves. The most frequent reason
is a communicator with another number of ranks than the specification.

    collc launch sums8.coll -- mpiexec -n 4 ./app

Compile for the number of ranks of the program, for several numbers (--each ranks=4,8), or for the collectives that it
calls.""",
    "C0084": """sums that differ between ranks (a warning)

In this schedule, ranks add up the same element in different orders. Floating-point sums may then differ between ranks
in their last bits. MPI recommends equal results: a program that branches on such a result could hang.

    schedule sums using swing;

In schedules of a reduce-scatter and an allgather, one rank adds up each element: `using bfb`, for example.""",
    "C0085": """a cache that cannot be used

collc trusts the files in its cache, and programs load them. So the folder must belong to the user, and only the
user may write to it. The folder of `collc launch` also needs a name without spaces and colons, which separate names in
LD_PRELOAD. If the default folder does not qualify, `collc launch` uses a temporary one for the run, and `collc compile`
compiles without a cache. A folder given with --cache must qualify, and so must that of `collc launch --library-dir`.
The error also appears if a library or a file for the command cannot be written there, for instance because the disk is
full.

    collc launch sums.coll --cache /shared/cache -- mpiexec -n 4 ./app

Restrict the folder (`chmod go-w DIR`), or name another one.""",
    "C0086": """a command that ran too long

`collc launch --timeout` is the time limit of a command in seconds. After it, collc first asks the command to end, and
kills it a little later. The exit status is 124, as with `timeout` in a shell.

    collc launch sums.coll --timeout 60 -- mpiexec -n 4 ./app

Raise the limit, or find the rank that does not arrive: `--stats` shows the served calls.""",
    "C0087": """a library for another MPI (a warning)

The program's MPI has another binary interface than the MPI that the library was compiled for, or it is older. The
library printed a message and passed on every call.

    collc launch sums.coll --mpi openmpi -- srun ./app-of-mpich

Name the MPI that the program is linked with (`ldd ./app` shows it): --mpi DIR.""",
    "C0088": """several specifications for one PyTorch program

Every process of a PyTorch program compiles one specification, the file in COLLC_SPEC. Only MPI programs can use
several.

    collc launch a.coll b.coll -- torchrun --nproc-per-node 4 train.py

Write the collectives into one file, or include one file in another.""",
    "C0089": """a collective that is left to the MPI, NCCL or gloo (a warning)

`collc launch` compiles every collective of a specification. For this one the scheduler has no schedule, or the target
cannot say its program; the message gives the reason. The program runs, and the library that collc replaces executes the
calls of this collective.

    collc launch pod.coll --strict -- mpiexec -n 5 ./app

Name another scheduler, or remove the collective. With --strict, collc refuses such a specification.""",
    "C0090": """no specification for torch

The backend `collc` of torch.distributed runs the schedules of a specification. It has none.

    import collc.torch
    collc.torch.configure("cluster.coll")

Or set COLLC_SPEC to the file, as `collc launch cluster.coll -- torchrun ..` does.""",
    "C0091": """parameters for torch that cannot be read

    COLLC_DEFINES='{"boxes": 4}' torchrun train.py

COLLC_DEFINES is a JSON object of parameters. A value is a number, a text, true or false, or a list of integers.
`collc.torch.configure` takes a dictionary of such values.""",
    "C0092": """a specification that rank 0 could not compile

Rank 0 of a group compiles for all ranks, and failed. The message shows the first line of its error. The other ranks
cannot continue.

    collc verify cluster.coll

This shows the whole message without starting a job.""",
    "C0093": """ranks with different specifications

Ranks with different schedules would wait for each other forever. So ranks first compare the text of the file and the
values of its parameters. Ranks that cannot read the file use the result of rank 0.

Copy the file to all machines again, or keep it only on the machine of rank 0.""",
    "C0094": """a job with another number of ranks than the specification (a warning)

A schedule is for a fixed number of ranks. The whole job has another number. So gloo executes its calls, as for all
groups of other sizes.

    torchrun --nproc-per-node 8 train.py

Start one process per rank of the topology, or set a parameter of the file: COLLC_DEFINES='{"boxes": 4}'.""",
    "C0095": """a message that did not arrive

In a call of torch.distributed, a rank waited for another rank until that one ended, or until the time limit of the
group (`init_process_group(timeout=..)`). Ranks may now disagree about the order of messages, so all later calls of the
group raise the same error.

Read the output of the named rank: it may have failed first, or made other calls.""",
    "C0097": """cancelled work

A program that uses the Python API ended its own call: it set the object that it gave as `cancel=`. collc wrote no
file.

    collc.compile("pod.coll", cancel=event)      # and event.set() in another thread

Catch `collc.Cancelled` where the program cancels.""",
    "C0098": """faults that cannot be compiled

`--each-fault` compiles for every single fault. Some of them leave a plan that a target cannot hold, or that a scheduler
cannot make. The others have their files.

    collc replan pod.coll --each-fault plans/ -t 'msccl-xml{runtime=rccl}'

`faults.json` has the reason of each. Write the option that the message names, or use another target, and run the
command again: it keeps the files that are there. A fault that cuts ranks off has no plan, and is no error.""",
    "C0099": """a package that the language server needs

`collc lsp` answers editors by the package pygls, version 2 or later. It is not installed with collc itself.

    collc lsp

Install it into the environment of collc: `pip install 'collc[lsp]'`.""",
    "C0901": """a path that a depfile cannot hold

Paths are escaped for GNU make. Some names cannot be escaped: a line break, a `%` in a target, a blank at the end of the
only input, and targets like `.PHONY`. A name like `a(b)` is a member of an archive for make.

Rename the file. An output can have another name in the rule: `-MT NAME`.""",
    "C0902": """a path that CMake or Ninja gets wrong (a warning)

Depfiles escape paths for make. Ninja reads the escapes of blanks, `#`, `$` and `:`. It does not read those of `=`, `[`
and `~`, and it has none for `;`, `*`, `?`, `|`, `&` and quotation marks. CMake 3.25 with its Ninja generator passes on
`#` and `$` without escapes. A misread path is rebuilt every time.

    collc 'a#b.coll' -t msccl-xml -MD

`-fdepfile-absolute` writes the rule for CMake and Ninja. If that does not help, rename the file. make alone reads the
rule correctly.""",
    "C0903": """dependency options that do not fit together

    collc pod.coll -t msccl-xml -MF pod.d

-MF, -MT and -MP change the form of the rule. They need -MD, which also compiles, or -M, which only prints the
dependencies.""",
}
