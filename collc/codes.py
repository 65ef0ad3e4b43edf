"""What ``collc explain`` says of the codes of the command line, files, the driver and build systems."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0001": """a command line that cannot be understood

An option is unknown, lacks its value or has one it cannot have, or there are too few or too many files.

    collc pod.coll --dump-it

Options stand before or after the file; a value follows its option, or is joined to it with `=`. Options are not
abbreviated. `collc VERB --help` lists them.""",
    "C0002": """a file that cannot be read

The input does not exist, is a directory, or may not be read by you.

    collc missing.coll -t msccl-xml

Check the path. `-` reads standard input.""",
    "C0003": """a file that is not text

All inputs of collc are UTF-8 text: `.coll` files, printed IR, MSCCL-XML. The file holds other bytes, or is larger
than any file a person or collc writes.

    collc /bin/ls

Give the text file that was meant, saved as UTF-8.""",
    "C0004": """an output that cannot be written

The directory does not exist or may not be written, the name is a directory's, the file that is there is read-only, or
the device is full.

    collc pod.coll -t msccl-xml -o missing/pod.xml

Outputs are written completely or not at all: after this error no file has changed. Create the directory, make the file
writable, or name another with -o.""",
    "C0005": """an output that would replace its input

    collc pod.coll -t ir -o pod.coll

Name another file with -o. The input may be included rather than named: no file that was read is overwritten.""",
    "C0006": """a pipeline or target that cannot be read

Pipelines (-p) are names separated by commas, each with options in braces; targets (-t) look alike.

    collc pod.coll -p 'bfb,discretize{max-chunks=8' -t msccl-xml

Write `name,name{option=value,option=value}`, in quotes so that the shell leaves the braces alone.""",
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
    "C0010": """an option with a value it cannot have

    collc pod.coll -p 'bfb,discretize{max-chunks=many}'

The message says what is needed: a whole number, true or false, one of several words.""",
    "C0011": """passes in an order that cannot work

Every pass takes one level of the IR and gives one: synthesis makes a schedule of a problem, `lower` a program of a
schedule, and nothing leads back.

    collc pod.coll -p 'coalesce,bfb'

Order them as synthesis, schedule passes, `lower`, program passes. What is left out between the levels is added:
`-p coalesce` synthesizes and lowers first; `--print-pipeline` shows the whole.""",
    "C0012": """a pass that needs what does not hold yet

Some passes need a fact about the schedule, for example that it is discrete: cut in whole chunks.

    collc schedule.ir -p lower

Run the pass that establishes it first: `-p discretize,lower`.""",
    "C0013": """a pipeline that ends with another collective

    collc allgather.coll -p 'bfb,reverse'

The result must be the collective that the file asks for: its kind, root, ranks, operation, type and size. The message
says what differs. Leave out the pass that turns it into another, or declare the other collective. A pass that leaves
another network or collective than it should is an internal error (C0070).""",
    "C0014": """a schedule by hand that is not there

The pass `steps` stands for the schedule that the file writes out.

    collc pod.coll -p 'steps,discretize'

Write `schedule NAME using steps { ... }` in the file, or name a synthesis pass such as `bfb`.""",
    "C0015": """a scheduler that does not exist

    collc schedulers bfs

`collc schedulers` lists them; in a file the name stands after `using`.""",
    "C0016": """no collective to compile

The file declares none, or none of the name that --collective gives.

    topology pod = torus(3, 3);

Declare one: `collective grads = allreduce on pod;`.""",
    "C0017": """a collective of which nothing is made (a warning)

The file emits some of its collectives, but not this one.

Write `emit NAME as TARGET;` for it, or ask for a target with -t, which holds for all collectives of the file.""",
    "C0018": """a file of another kind than needed

What a file is, is told by its content: a printed IR begins with `collc-ir`, XML with `<`, all else is the language.

    collc algorithm.xml -t mpi-c

`collc verify` reads all three; `collc compile` reads the language, and printed schedules and programs.""",
    "C0019": """a result that does not have what was asked of it

Asked of the API: the one schedule of several collectives, the cost of a program that was read from a file, files
where no target was named.

    result.schedule            # where the file declares two collectives

Ask for `result.collectives["grads"].schedule`, or compile with `collective="grads"`.""",
    "C0020": """a size, time or bandwidth that cannot be read

    collc cost pod.coll --bandwidth 100

Sizes are `64MiB`, `1GB` or bytes; times `10us`; bandwidths `100Gbps` (bits) or `25GB/s` (bytes). --bandwidth is the
total bandwidth out of one node, B.""",
    "C0021": """several outputs for one file

    collc two.coll -t msccl-xml -o out.xml

The file makes several outputs. `-o DIR/` writes each under its collective's name; --collective chooses one. Or two
options name one file, whether by the same path or by links.""",
    "C0022": """something that is not in this version

The verb or function belongs to collc, but this version does not have it yet.

    collc report pod.coll

`collc --help` lists what there is.""",
    "C0023": """not enough memory

A pass, a check or a target needs more memory than this machine gives. That ends the compilation whatever was tried:
`auto` does not go on without a candidate for which memory was short, lest it choose another elsewhere.

    collc huge.coll --node-limit 1000000

Use a smaller topology or a larger machine; `collc cost` needs less than a whole program.""",
    "C0024": """a worker that ended

The executor given to the API lost the process that compiled a collective: it was killed, or ran out of memory.

    collc.compile("pod.coll", executor=ProcessPoolExecutor())

Give the workers more memory, or compile without an executor.""",
    "C0025": """a file without a target

Nothing says what to make of the file: it has no `emit` statement, and there is no -t.

    collc pod.coll

Add `-t msccl-xml`, or write `emit NAME as msccl-xml;`. `collc targets` lists what can be made.""",
    "C0026": """a code that does not exist

    collc explain C9999

`collc explain` without a code lists them all.""",
    "C0027": """parameters that cannot be read

    collc pod.coll -D boxes

Write `-D name=value`; the file must declare `param name`.""",
    "C0030": """a size that no topology search can serve

Every node has d links out and d in, so at least d + 1 nodes are needed for links to different nodes; and a search
measures what it finds, which limits the size.

    collc find -n 4 -d 4

Ask for more nodes or a smaller degree. Fewer nodes need parallel links: `uniring(m, d)`, `biring(m, d)`.""",
    "C0031": """a size and degree without bidirectional topologies

Where every link has its reverse, the N*d links make pairs, so N*d is even.

    collc find -n 9 -d 3 --bidirectional

Take an even degree or an even number of nodes, or leave out --bidirectional.""",
    "C0032": """an objective that does not exist

    collc.find(nodes=64, degree=4, objective="broadcast")

Objectives are allreduce, allgather and alltoall.""",
    "C0033": """a database of topologies that holds something wrong

`collc find --check` builds every topology of a database and computes its costs anew. A row that does not compile, has
another size or degree, or costs something else than it says, is wrong.

    collc find --check --database best.txt -d 4

Delete the row, or build the database again with --refresh.""",
    "C0034": """a search that found no topology

Nothing of this size and degree was met, which happens only for searches of little effort.

    collc find -n 1999 -d 16 --bidirectional --refresh --effort 1

Search longer (--effort), or with another --seed.""",
    "C0040": """a network that does not fit a schedule

`collc simulate --network` sends a schedule's messages over another network, from rank to rank. Both need the same
number of ranks.

    collc simulate ring16.coll --network 'torus(3, 3)'

Name a network of as many ranks. Switches do not count.""",
    "C0041": """a trace too large to look at

A trace has a slice for every message and a value for every link whose load changes, and no viewer opens millions.

    collc simulate pod.coll --trace pod.json

Choose ranks: --trace-ranks 0..8 shows what these send, and the links out of them. The times are those of the whole.""",
    "C0042": """a curve without two sizes

--svg draws goodput against size, which takes two sizes or more.

    collc simulate pod.coll --size 1MiB --svg pod.svg

Name several, or leave --size out for 32 B to 512 MiB.""",
    "C0043": """a trace of several collectives

A trace shows one collective at one size.

    collc simulate two.coll --trace two.json

Choose one: --collective NAME.""",
    "C0044": """ranks of a trace that do not exist

    collc simulate ring4.coll --trace ring.json --trace-ranks 8

Ranks are numbers from 0; `0..8` are the first eight.""",
    "C0045": """sizes that `auto` cannot choose for

`auto` chooses for one size, or for every size of a range whose ends are both included.

    schedule grads using auto { sizes: 1 MiB };

Write `size: 1 MiB`, `sizes: 1 KiB..1 GiB` or `sizes: all`; not both.""",
    "C0046": """candidates that `auto` does not have

The options `candidates` and `without` name schedulers that are compared, separated by commas. None may be left, or none
of those that are left may schedule the collective on this topology.

    schedule grads using auto { candidates: "swing, buckets" };

`collc cost -v` says why each was left out. Name others, or leave the options out.""",
    "C0047": """more transfers than `auto` writes out

A schedule of exchanges among N ranks has some N * N transfers or more, since a transfer moves one shard. `auto` leaves
out candidates with more than its option `transfers` says. Where no other candidate applies, this is an error.

    schedule grads using auto { candidates: swing, transfers: 1000 };

Raise `transfers`: a schedule may have 2^26 of them.""",
    "C0048": """outputs whose names are not known yet

`auto` with `sizes` makes a file for every range of sizes in which an algorithm is the fastest, and where those begin is
known when the collective is compiled. -M compiles nothing.

    collc -M pod.coll -t msccl-xml

Write -MD, which compiles and lists them, or give the rule a target with -MT.""",
    "C0049": """sizes that no file is for (a warning)

The runtime cannot run the fastest algorithm for all sizes of its range: scratch is limited, or larger calls could hang.
A file was written for the calls that it can run, if there are any; for others the runtime uses its own algorithms.

    schedule grads using auto { sizes: all };  emit grads as msccl-xml { runtime: msccl };

End the range earlier, or leave the candidate out: `without: NAME`.""",
    "C0060": """a trace of ranks that run ahead

    collc simulate pod.coll --run-ahead --trace pod.json

A trace shows steps one after the other. With --run-ahead only the time of all repetitions of a step is known, not when
each message of them is under way. Leave one of the two out.""",
    "C0070": """an internal error

The compiler itself failed; whatever the input was, it should not have. Exit status 70.

The message names the first pass that left something wrong: where a failure shows later, in another pass, at the end of
a level or in a file that is read back, all passes run once more and everything each leaves is checked.

What is needed to see it again has been written to a file whose first lines say how: the IR that this pass was given or
the input itself, the rest of the pipeline, the version, and the command. COLLC_DEBUG=1 prints a traceback too.""",
    "C0072": """an algorithm that was arranged anew (a warning)

The threadblocks, channels and steps of a file are kept where the target takes them. These do not fit its limits, so
fused instructions were replaced and the messages given to threadblocks and channels anew; the note says what did not
fit. Who sends what to whom, and in which order, is as it was.

    collc convert ring64.xml -t 'msccl-xml{runtime=rccl}'

Where that is not wanted, say which passes run: -p 'unfuse'.""",
    "C0073": """an algorithm for fewer sizes than its file says (a warning)

The file is for calls up to a size at which the runtime asked for could hang, or which it cannot count. What was made is
for calls up to the largest size that is safe; the note says why no larger.

    collc convert doubling.xml -t 'msccl-xml{runtime=executor}'

For larger calls convert another algorithm, or compile one.""",
    "C0074": """a testbed that cannot be built here

The network of namespaces needs Linux, programs of util-linux and iproute2, a C compiler for two small files, and
the right
to make network namespaces: root has it, others where user namespaces may be made. The message says which of them
is missing,
or which command failed.

    collc run pod.coll --testbed

Run it where these are: as root in a virtual machine or in a privileged container.""",
    "C0075": """a network that a testbed cannot be

Every rank and every switch is a namespace of this machine, and every rank a process. So there are at least two
ranks and at
most so many nodes as the message says, every link has a rate that the kernel can limit, and a delay is at most a
second.

    collc run pod.coll --testbed=100Gbps

Choose a rate of 20 to 40 Mbps for the widest link: there links are slower than the processors, as in a real
network.""",
    "C0076": """measurements that cannot be read

A calibration reads CSV with a line of titles, or JSON: a list of objects, or an object with such a list as `rows`. Rows
have `bytes` (the whole vector), `seconds` or `time_us`, and what the schedule does: `steps` and `load`, how much of the
vector its busiest links carry over all steps.

    name,bytes,steps,load,seconds
    ring,1048576,14,7/4,0.3681

Without `steps` and `load` name the file that was measured: --schedules pod.coll. `collc cost --json` has both, as
`T_L` and
`time_per_byte`.""",
    "C0077": """measurements that determine nothing

Alpha and bandwidth are two unknowns, and what every call takes besides is a third: at least three different
measurements are
needed, of sizes that differ, whose times grow with the bytes.

    collc calibrate small.csv        # one size, or times that fall

Measure from a few bytes, where latency rules, to some megabytes, where bandwidth does.""",
    "C0078": """a calibration to be read with care (a warning)

Rows were left out, alpha is not visible at the sizes that were measured, or the model does not explain the times
well: many
measurements lie far from it. The message says which.

Outliers do not move the fit as long as most measurements are right. If many are far off, the machine was busy, or
an MPI
goes about small and large messages differently: --classes auto gives each an alpha of its own.""",
    "C0080": """a program that is not there

`collc launch` runs the command after `--` as it stands. Its first word is looked for on PATH, and beside the
Python that
runs collc, where wheels put their launchers.

    collc launch sums.coll -- mpiexec -n 4 ./app

Install it, activate its environment, or write its path.""",
    "C0081": """a launcher without a compiler

The library for an MPI program is compiled with the header of the MPI that the launcher belongs to, by the `mpicc` that
stands beside it. There is none there, or it cannot be told which MPI the launcher is of.

    collc launch sums.coll --mpi /opt/mpich -- /opt/scheduler/bin/mpiexec -n 4 ./app

Install the MPI's development files, or name the MPI with --mpi.""",
    "C0082": """a library that was not heard (a warning)

Every rank under `collc launch` says at its end what the library did. None did: the program made no use of MPI,
its MPI is
linked statically (a library cannot stand before that), its launcher does not pass the environment on, or the ranks ran
on other hosts, where the numbers stay unknown though calls may well have been served.

    collc launch sums.coll -- mpiexec -n 4 hostname

COLLC_STATS=1 lets rank 0 print the sums of all ranks itself, on whatever host.""",
    "C0083": """no call was served (a warning)

The program ran, and all of its collectives went to the MPI. The notes say why, and which calls the library is for. The
most frequent reason is a communicator of another size than the specification's.

    collc launch sums8.coll -- mpiexec -n 4 ./app

Compile for the number of ranks of the program, for several (--each ranks=4,8), or for the collectives that it
calls.""",
    "C0084": """sums that differ between ranks (a warning)

In this schedule ranks add up the same element in different orders, so floating-point sums may differ in their last bits
from rank to rank. MPI recommends that they do not; programs that take different ways by such a result could hang.

    schedule sums using swing;

Schedules of a reduce-scatter and an allgather have one rank add up each element: `using bfb`, for example.""",
    "C0085": """a cache that cannot be used

What lies in the cache is loaded into programs. So the folder must be the user's, writable for nobody else, and its name
without spaces and colons, at which LD_PRELOAD ends names. Where the usual folder is not like that, one that lasts
as long as
the run takes its place; one named by --cache must be right.

    collc launch sums.coll --cache /shared/cache -- mpiexec -n 4 ./app

Make it so (`chmod go-w DIR`), or name another folder.""",
    "C0086": """a command that ran too long

`collc launch --timeout` gives a command so many seconds; then it is asked to end, and killed a little later. Exit
status
124, as of `timeout` in a shell.

    collc launch sums.coll --timeout 60 -- mpiexec -n 4 ./app

Raise the limit, or find out which rank does not come: `--stats` says which calls were served.""",
    "C0087": """a library for another MPI (a warning)

The program runs on an MPI with another binary interface than the one that the library was compiled for, or on an
older one.
The library said so and passed every call on.

    collc launch sums.coll --mpi openmpi -- srun ./app-of-mpich

Name the MPI that the program is linked with (`ldd ./app` shows it): --mpi DIR.""",
    "C0088": """several specifications for one PyTorch program

Every process of a PyTorch program compiles the one specification that COLLC_SPEC names; libraries of several are
for MPI
programs.

    collc launch a.coll b.coll -- torchrun --nproc-per-node 4 train.py

Write the collectives into one file, or include one file in another.""",
    "C0090": """no specification for torch

The backend `collc` of torch.distributed runs the schedules of a specification, and was given none.

    import collc.torch
    collc.torch.configure("cluster.coll")

Or set COLLC_SPEC to the file; `collc launch cluster.coll -- torchrun ..` does.""",
    "C0091": """parameters for torch that cannot be read

    COLLC_DEFINES='{"boxes": 4}' torchrun train.py

COLLC_DEFINES is a JSON object: names of parameters, and for each a number, a text, true or false, or a list of whole
numbers. `collc.torch.configure` takes a dictionary of such values.""",
    "C0092": """a specification that rank 0 could not compile

Rank 0 of a group compiles for all ranks. There it failed, with a message of its own, of which the first line is shown;
the other ranks cannot go on either.

    collc verify cluster.coll

shows the whole message without starting a job.""",
    "C0093": """ranks with different specifications

Ranks that ran different schedules would wait for each other for ever, so they compare first: the text of the file and
the values of its parameters. Ranks that cannot read the file take what rank 0 has compiled.

Copy the file to all machines again, or leave it on rank 0's alone.""",
    "C0094": """a job of a size that nothing in the specification is for (a warning)

Schedules are for a number of ranks. The whole job has another, so its calls are performed by gloo, as groups of other
sizes always are.

    torchrun --nproc-per-node 8 train.py

Start as many processes as the topology has ranks, or give the file a parameter: COLLC_DEFINES='{"boxes": 4}'.""",
    "C0095": """a message that did not come

A rank that takes part in a call of torch.distributed waited for another, until that ended, or until the time limit of
the group (`init_process_group(timeout=..)`). Ranks no longer agree which message is which, so all later calls of the
group raise the same.

Look at what the named rank says: it may have failed first, or have made other calls.""",
    "C0901": """a path that a depfile cannot hold

Paths are escaped as GNU make reads them. No escape helps a line break, a `%` in a target, a name like `a(b)`, which
is a member of an archive, a blank at the end of the only input, and targets like `.PHONY`.

Rename the file. An output can have another name in the rule: `-MT NAME`.""",
    "C0902": """a path that CMake or Ninja gets wrong (a warning)

Depfiles escape paths as make reads them. Ninja reads these escapes of blanks, `#`, `$` and `:`, but not those of `=`,
`[` or `~`, and has none for `;`, `*`, `?`, `|`, `&` and quotation marks. CMake 3.25 with its Ninja generator writes `#`
and `$` on unescaped. What is read wrong is rebuilt always.

    collc 'a#b.coll' -t msccl-xml -MD

With `-fdepfile-absolute` the rule is written as CMake and Ninja read it. Rename the file where that does not help;
where make alone reads the rule, nothing is wrong.""",
    "C0903": """dependency options that do not fit together

    collc pod.coll -t msccl-xml -MF pod.d

-MF, -MT and -MP say how dependencies are written; -MD (compile too) or -M (only list them) asks for them.""",
}
