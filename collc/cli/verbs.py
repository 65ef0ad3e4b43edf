"""The verbs: what each takes, what help says of it, and which module carries it out."""

from __future__ import annotations

from .arguments import Opt, Verb
from .flags import (
    CALIBRATION,
    CHOICE,
    CONVERSION,
    DEPENDENCIES,
    ENVIRONMENT,
    FIND,
    GENERAL,
    INPUT,
    JSON,
    LAUNCH,
    MULTIPROCESSORS,
    OUTPUT,
    PASSES,
    PICTURES,
    PREDICTION,
    RUN,
    SEARCH,
    SIMULATION,
)  # fmt: skip

__all__ = ["LATER", "VERBS", "overview"]

#: Verbs of collc that this version does not have.
LATER = ("report",)

Groups = tuple[tuple[str, tuple[Opt, ...]], ...]

_GENERAL: Groups = (("General", GENERAL),)
_READING: Groups = (("Input", (*INPUT, CHOICE)),)
_COMPILING: Groups = (*_READING, ("Passes", PASSES))
_JSON: Groups = (("Output", (JSON,)),)

_COMPILE_DETAILS = """
`-` is standard input, `@file` stands for the arguments in a file, separated as in a shell.
Exit status: 0 done, 1 errors in the input, 2 wrong usage, 3 no schedule within the limits, 70 internal error."""

_IN_PLACE = Opt(("-i", "--in-place"), "rewrite the files")
_CHECK = Opt(("--check",), "change nothing; exit 1 if a file is not canonical")
_RUNTIME = Opt(("--runtime",), "judge MSCCL-XML by the rules of this runtime", "value", "NAME")
_SVG = Opt(("--svg",), "draw the frontier into FILE", "value", "FILE")
_FIND_DETAILS = """
Rows are the frontier: none is beaten in both T_L and T_B. Each is an expression of the language.
`collc find -n 1024 -d 4` looks up; --refresh searches from scratch; `--refresh --database best.txt -d 4 -n 5..2001`
builds or extends a database; --check computes a database anew."""

_SIMULATE_DETAILS = """
All messages of a step start together and share the links on their ways; the step lasts until the last one is there.
A message is as late as its way is long, and takes as long as the link on it with most to carry. There are no packets
and no queues: what those cost is not shown. Without --latency and --routing, schedules over single links take the
time that `collc cost` predicts."""

_VERIFY_DETAILS = """
Several MSCCL-XML files are also held against each other: whether two are for the same call, and more than are loaded.
Exit status: 0 verified, 1 not."""
_CONVERT_DETAILS = """
An MSCCL-XML file is executed first; one that is wrong is refused. Its threadblocks, channels and steps are kept where
the target takes them, its protocol, sizes, uses and name where -t does not say otherwise.
`collc convert ring.xml -t 'msccl-xml{runtime=rccl}'` writes ring-rccl.xml."""

_CALIBRATE_DETAILS = """
FILE is CSV or JSON of `collc run` or the testbed, or any table with the columns bytes, seconds (or time_us), steps and
load: how much of the vector the busiest links carry over all steps, for links of bandwidth 1."""
_ENV_DETAILS = """
`eval "$(collc env out/ --runtime rccl)"` sets it in a shell. Files that the runtime would refuse, or two that are for
the same call, are errors."""

_RUN_DETAILS = """
Rows are a collective, type, count and place each: median, least and quartiles of the slowest rank's time, bus bandwidth
(what a rank's links carry at least), with --compare the library's own median and how many times as long it takes, and
where links have bandwidths what the cost model predicts and the least any schedule could take.
Exit status: 0 every element was right, 1 not, or the run did not end."""

_LAUNCH_DETAILS = """
An MPI program's blocking collectives go to the compiled ones where communicator, data and operation fit, all others to
its MPI. `collc launch sums.coll -- mpiexec -n 8 ./app` returns what mpiexec does; --stats says what was served."""

_VERBS = (
    Verb(
        "compile", "compile", "Compile FILE: a .coll file, a printed schedule or program. `collc FILE` does the same.",
        ("FILE",), (("Output", OUTPUT), *_COMPILING, ("Dependencies", DEPENDENCIES), *_GENERAL), _COMPILE_DETAILS,
    ),
    Verb("check", "inspect", "Parse and elaborate FILE only.", ("FILE",), (*_JSON, ("Input", INPUT), *_GENERAL)),
    Verb(
        "format", "formatting", "Print .coll files in canonical form.",
        ("FILE...",), (("Output", (_IN_PLACE, _CHECK)), *_GENERAL),
    ),
    Verb(
        "verify", "inspect", "Execute FILE symbolically: a .coll file, a printed IR or an MSCCL-XML file, anyone's.",
        ("FILE...",), (("Output", (JSON, _RUNTIME, MULTIPROCESSORS)), *_READING, *_GENERAL), _VERIFY_DETAILS,
    ),
    Verb(
        "cost", "cost", "Print steps, bandwidth time, their bounds and predicted times of FILE's schedules.",
        ("FILE",), (*_JSON, ("Prediction", PREDICTION), *_COMPILING, *_GENERAL),
    ),
    Verb(
        "simulate", "simulate", "Simulate FILE's schedules on the links: time, congestion, a trace, curves.",
        ("FILE",), (("Model", SIMULATION), ("Output", (JSON, *PICTURES)), *_COMPILING, *_GENERAL), _SIMULATE_DETAILS,
    ),
    Verb(
        "convert", "convert", "Make files for another runtime or target of FILE: MSCCL-XML, anyone's, or a printed IR.",
        ("FILE...",), (("Input", CONVERSION), ("Output", OUTPUT), ("Passes", PASSES[1:]), *_GENERAL), _CONVERT_DETAILS,
    ),
    Verb(
        "env", "env", "Print what a launcher sets so that a runtime loads FILES (or a folder's), and how to see it.",
        ("FILE...",), (("Output", ENVIRONMENT), *_GENERAL), _ENV_DETAILS,
    ),
    Verb(
        "run", "running", "Compile FILE, build it, run it over MPI or oneCCL, check every element and time it.",
        ("FILE",), (("Run", RUN), *_JSON, *_COMPILING, *_GENERAL), _RUN_DETAILS,
    ),
    Verb(
        "calibrate", "calibrate", "Fit alpha and bandwidth to measured times, and write them for `with` to take.",
        ("FILE...",),
        (("Fit", CALIBRATION), *_JSON, ("Input", INPUT), *_GENERAL), _CALIBRATE_DETAILS,
    ),
    Verb(
        "launch", "launch", "Compile FILES, and run a program that stays as it is on what they become.",
        ("FILE...", "--", "COMMAND..."), (("Launch", LAUNCH), *_COMPILING, *_GENERAL), _LAUNCH_DETAILS,
    ),
    Verb(
        "find", "find", "Find the best topologies of N nodes and degree D, and what they cost.", (),
        (("Topology", FIND), ("Search", SEARCH), ("Output", (JSON, _SVG)), *_GENERAL), _FIND_DETAILS,
    ),
    Verb("explain", "explain", "Explain a diagnostic code; without one, list all.", ("[CODE]",), (*_JSON, *_GENERAL)),
    Verb("targets", "listing", "List the targets; of one, its options.", ("[NAME]",), (*_JSON, *_GENERAL)),
    Verb("passes", "listing", "List the passes; of one, its options.", ("[NAME]",), (*_JSON, *_GENERAL)),
    Verb(
        "topologies", "listing", "List the graph families and operators of the language.", ("[NAME]",),
        (*_JSON, *_GENERAL),
    ),
    Verb("schedulers", "listing", "List the schedulers of the language.", ("[NAME]",), (*_JSON, *_GENERAL)),
)  # fmt: skip

VERBS: dict[str, Verb] = {verb.name: verb for verb in _VERBS}


def overview() -> str:
    """Return what ``collc --help`` prints."""
    lines = ["usage: collc FILE.coll [-t TARGET] [-o OUT] [OPTIONS]", "       collc VERB ...", "", "verbs:"]
    lines += [f"  {verb.name:12}{verb.summary}" for verb in _VERBS]
    lines += ["", "`collc VERB --help` lists the options of a verb, `collc --version` prints the version,",
              "`collc --cmake-dir` the folder of collc.cmake and collc.mk."]  # fmt: skip
    return "\n".join(lines) + "\n"
