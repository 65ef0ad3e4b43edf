"""The verbs: their arguments, their help, and the module that runs each."""

from __future__ import annotations

from .arguments import Opt, Verb
from .flags import (
    BASELINES,
    CALIBRATION,
    CHECK_FORMS,
    CHOICE,
    CONVERSION,
    COST_FORMS,
    DEPENDENCIES,
    ENVIRONMENT,
    FAULTS,
    FIND,
    FIND_FORMS,
    FIT_FORMS,
    FORMS,
    GENERAL,
    IMPORT,
    IMPORT_FORMS,
    INPUT,
    JSON,
    LAUNCH,
    MULTIPROCESSORS,
    NCCL_LOGS,
    NETWORK,
    OUTPUT,
    PASSES,
    PICTURES,
    PREDICTION,
    PROFILE,
    RUN,
    SEARCH,
    SIMULATE_FORMS,
    SIMULATION,
    TRAINING,
    VERIFY,
    ranges,
)  # fmt: skip
from .sweep_flags import SWEEP, SWEEP_OUTPUT, WORK
from .tasks import TASKS

__all__ = ["ALIKE", "LATER", "SUMMARY", "VERBS", "by_task", "overview"]

#: what collc is, in one line
SUMMARY = "Compile collective communication for a network, and verify every file."

#: verbs of collc that this version does not have -> what to do instead
LATER = {"serve": "`collc report FILE` and `collc explore FILE` write pages that need no server"}

#: words that other tools have as verbs -> the verb of collc
ALIKE = {
    "build": "compile", "synthesize": "compile", "schedule": "compile", "emit": "compile", "fmt": "format",
    "lint": "check", "validate": "verify", "test": "run", "bench": "run", "benchmark": "run", "plot": "simulate",
    "predict": "cost", "search": "find", "read": "import", "discover": "import", "algorithms": "schedulers",
    "families": "topologies", "list": "targets",
}  # fmt: skip

Groups = tuple[tuple[str, tuple[Opt, ...]], ...]

_GENERAL: Groups = (("General", GENERAL),)
_READING: Groups = (("Input", (*INPUT, CHOICE)),)
_COMPILING: Groups = (*_READING, ("Passes", PASSES))
_JSON: Groups = (("Output", (JSON,)),)
_FORMS: Groups = (("Output", FORMS),)

_COMPILE_DETAILS = """
`-` is standard input. `@file` inserts the arguments in a file, separated as in a shell.
Exit status: 0 done, 1 errors in the input, 2 wrong usage, 3 no schedule within the limits, 70 internal error."""

_IN_PLACE = Opt(("-i", "--in-place"), "rewrite the files")
_CHECK = Opt(("--check",), "change nothing; exit 1 if a file is not canonical")
_RUNTIME = Opt(
    ("--runtime",), "check MSCCL-XML, or a plan of MSCCL++, against the\nrules of this runtime", "value", "NAME"
)
_COLL = Opt(
    ("-o",),
    "write the .coll file to OUT, or into the folder OUT (default:\nstandard output)",
    "value",
    "OUT",
    writes=True,
)
_UNCHANGED = Opt(("--write-if-changed",), "do not touch OUT if its content is the same")
_WATCH = Opt(("--watch",), "check again when a file changes, until Ctrl-C")
_PAGE = (
    Opt(
        ("-o",), "write to OUT: a file, a folder (`DIR/`), or - for standard output\n(default: report.html)",
        "value", "OUT", writes=True,
    ),
    *(opt for opt in OUTPUT if opt.names[0] in ("--write-if-changed", "--json", "--csv", "--markdown", "--table")),
)  # fmt: skip
_STAGES = (
    Opt(
        ("-o",), "write to OUT: a file, a folder (`DIR/`), or - for standard output\n"
        "(default: FILE's name with .explore.html)",
        "value", "OUT", writes=True,
    ),
    Opt(("--ranks",), "show only rows of these ranks: 0,3,8..16 (default: all of small IRs,\nrank 0 of others)",
        "value", "N", convert=ranges),
    *(opt for opt in OUTPUT if opt.names[0] in ("-t", "--write-if-changed")),
)  # fmt: skip
_SVG = Opt(("--svg",), "draw the frontier into FILE", "value", "FILE", writes=True)
_FIND_DETAILS = """
Rows form the frontier: no topology is better in both T_L and T_B. Each row is an expression of the language.
`collc find -n 1024 -d 4` looks the size up. --refresh searches from scratch. --check recomputes a database.
`collc find --refresh --database best.txt -d 4 -n 5..2001` builds or extends a database."""

_SIMULATE_DETAILS = """
All messages of a step start together and share the links of their routes. The next step starts when the last one has
arrived. A message takes its route's latency plus the time of its busiest link. The model has no packets and no queues.
Without --latency and --routing, a schedule over single links takes the time that `collc cost` predicts."""

_REPORT_DETAILS = """
`collc FILE -t report` does the same. The page needs no network and no server, and has less than 2 MB. The default
output is report.html. Large networks and schedules are shown in part: the page says which part."""

_EXPLORE_DETAILS = """
Each pass has the rows before it and after it, side by side, and its remarks. The passes are those for the first target:
of -t, else of `emit`. The page has no script and needs no network."""

_CHECK_DETAILS = """
It finds mistakes of the language, options out of range, and ranks that cannot be reached. It finds schedulers and
targets that do not take the collective or its network. It executes small schedules written by hand.
Exit status: 0 nothing is wrong, 1 something is, 2 wrong usage."""

_VERIFY_DETAILS = """
For several MSCCL-XML files, verify also reports overlapping calls, and more files than the runtime loads. For several
plans of MSCCL++ it reports overlapping calls, and mixed modes. In a folder, verify reads all .json and .xml files.
Exit status: 0 verified, 1 not."""
_CONVERT_DETAILS = """
An MSCCL-XML file is executed first and refused if it is wrong. Its threadblocks, channels and steps are kept if the
target allows them. Its protocol, sizes, uses and name are kept unless -t replaces them.
`collc convert ring.xml -t 'msccl-xml{runtime=rccl}'` writes ring-rccl.xml."""

_CALIBRATE_DETAILS = """
FILE is CSV or JSON, from `collc run`, the testbed or another program. The columns are bytes, seconds (or time_us),
steps and load. The load is the share of the vector that the busiest links of bandwidth 1 carry over all steps.
With --nccl-tests, FILES are logs, with NCCL_ALGO in them. The target `nccl-tuner` reads what -o writes."""
_ENV_DETAILS = """
`eval "$(collc env out/ --runtime rccl)"` sets them in a shell. It is an error if the runtime would refuse a file, or if
two files are for the same call. FILES may be for stock NCCL: graph files, a topology file, a tuner table. collc then
also prints how to undo it. For plans of MSCCL++ it prints the Python lines that register them.

For a .coll file, --library chooses among the algorithms that a library has built in, by the cost model."""

_IMPORT_DETAILS = """
Formats are recognized by content: `collc formats` lists them. A file with no network of its own, such as the output of
`nvidia-smi nvlink -s`, completes the one beside it. Figures that the files lack are given by options; a default that
is taken is a warning, and a comment in the file. With --fabric, each FILE is a machine in the place of hosts."""

_RUN_DETAILS = """
One row per collective, type, count and place: median, minimum and quartiles of the slowest rank's time, and the bus
bandwidth. --compare adds the library's median and its ratio to ours. Links with bandwidths add prediction and bound.
Exit status: 0 every element was right, 1 an element was wrong or the run did not end."""

_LAUNCH_DETAILS = """
Blocking collectives of an MPI program use compiled schedules if communicator, data and operation match. The MPI library
executes the others. `collc launch sums.coll -- mpiexec -n 8 ./app` returns the exit status of mpiexec."""

_SCHEMA_DETAILS = """
`collc schema cost` describes what `collc cost FILE --json` prints. Every object has the version of its schema in the
key `schema`. Keys may be added to a version; none leaves it or changes its meaning."""

_TOPOLOGIES_DETAILS = """
With --as, the argument is an expression such as 'dgx_a100(2)', or a file. The text holds the whole network, or collc
says what the form lacks. networkx and `collc.topology_from_networkx` read nodelink and graphml back."""

_REPLAN_DETAILS = """
A fault names nodes and links as the language does: 'gpu[7, 5]', 'gpu[0, 2] -> ib', 'gpu[3, 0..4] <-> ib', 0..4. PLAN is
a .coll file, or trees that run already, printed by `collc FILE -p forest -t 'ir{level=schedule}'`. Trees that no fault
touches stay; the others grow again at the optimum of the broken network. Other schedules are compiled again. Without
-t and without an emit in PLAN, replan only prints what the faults cost."""

_TRAIN_TRACE = Opt(
    ("--trace",), "write a Chrome trace (Perfetto) of one iteration on each topology\ninto FILE", "value", "FILE",
    writes=True,
)  # fmt: skip
_TRAIN_DETAILS = """
WORKLOAD is a JSON file, or a name that --list prints. TOPOLOGY is an expression such as 'torus(16, 16)', or a file.
An iteration is compute, plus allreduces that compute waits for, plus all-to-alls of expert layers.
`collc train switch-base-256 --on 'torus(16, 16)' 'shifted_ring(256)'` compares two networks."""

_SWEEP_DETAILS = """
There is a row for every network, collective, scheduler and size, in this order, for any workers and any number of them.
A case that cannot be scheduled has a row with the code and the message. Ctrl-C writes no table; with --cache, the same
command then continues. Exit status: 0 if a row has a time, else the highest status of the mistakes."""

_LSP_DETAILS = """
An editor starts it, and talks to it on standard input and output (the Language Server Protocol). It gives diagnostics
while you type, explanations under the cursor, names to choose from, places of declarations, and the canonical form.
It needs the package pygls: pip install 'collc[lsp]'. docs/editors.md has settings for editors."""

_COMPLETION_DETAILS = """
The script offers verbs, options, their values, and the names of schedulers, targets, passes and formats. It has the
names of installed plugins, too: write it again after an installation. docs/editors.md says where each shell looks."""

_CACHE = Opt(("--cache",), "the folder of the caches (default: those of the user)", "value", "DIR")
_CACHE_DETAILS = """
The key of an entry is a hash of all inputs: files, options, and versions of collc, solvers and plugins. The least
recently used entries of a full cache go first. `collc launch` keeps entries, and the libraries and files that commands
load. `times` prints what --tune timed. `check` names entries that are wrong (exit status 1) or whose files have
changed: collc never uses them, and makes them again. Clear while no program starts: programs load their libraries when
they start."""

_VERBS = (
    Verb(
        "compile", "compile", "Compile FILES: .coll files or printed IR. `collc FILE` does the same.",
        ("FILE...",), (("Output", OUTPUT), *_COMPILING, ("Dependencies", DEPENDENCIES), *_GENERAL), _COMPILE_DETAILS,
        silent=True,
    ),
    Verb(
        "check", "check", "Check FILES, or all .coll files of folders, without scheduling anything.",
        ("FILE...",), (("Output", (*CHECK_FORMS, PROFILE, _WATCH)), ("Input", INPUT), *_GENERAL), _CHECK_DETAILS,
    ),
    Verb(
        "format", "formatting", "Print .coll files in canonical form.",
        ("FILE...",), (("Output", (_IN_PLACE, _CHECK)), *_GENERAL),
    ),
    Verb(
        "verify", "inspect", "Execute FILE symbolically: .coll, IR, C of mpi-c, XML and plans of any tool.",
        ("FILE...",), (("Output", (*FORMS, _RUNTIME, MULTIPROCESSORS, PROFILE)), *_READING, *_GENERAL), _VERIFY_DETAILS,
    ),
    Verb(
        "cost", "cost", "Print steps, bandwidth time, bounds and predicted times of FILE's schedules.",
        ("FILE",), (("Output", COST_FORMS), ("Prediction", (*PREDICTION, BASELINES)), *_COMPILING, *_GENERAL),
    ),
    Verb(
        "simulate", "simulate", "Simulate FILE's schedules on the links: time, congestion, a trace, curves.",
        ("FILE",), (("Model", SIMULATION), ("Output", (*SIMULATE_FORMS, *PICTURES)), *_COMPILING, *_GENERAL),
        _SIMULATE_DETAILS,
    ),
    Verb(
        "report", "report", "Write one HTML page on FILE's collectives: times, network, schedule, bounds, checks.",
        ("FILE",), (("Output", _PAGE), *_COMPILING, ("Dependencies", DEPENDENCIES), *_GENERAL), _REPORT_DETAILS,
        silent=True,
    ),
    Verb(
        "explore", "explore", "Write one HTML page with FILE's IR after every pass, changed rows marked.",
        ("FILE",), (("Output", _STAGES), *_COMPILING, *_GENERAL), _EXPLORE_DETAILS,
        silent=True,
    ),
    Verb(
        "replan", "replan", "Compile PLAN again after faults of its network, and print what they cost.",
        ("PLAN",),
        (("Faults", FAULTS), ("Output", (*OUTPUT[:3], *FORMS)), ("Prediction", PREDICTION), *_COMPILING, *_GENERAL),
        _REPLAN_DETAILS,
    ),
    Verb(
        "convert", "convert", "Convert FILE (MSCCL-XML, oneCCL-XML, MSCCL++ plan, printed IR) to another target.",
        ("FILE...",), (("Input", CONVERSION), ("Output", OUTPUT), ("Passes", PASSES[1:]), *_GENERAL), _CONVERT_DETAILS,
        silent=True,
    ),
    Verb(
        "import", "importing", "Write the networks that machines and fabrics print as a .coll file.",
        ("FILE...",), (("Import", IMPORT), ("Output", (_COLL, _UNCHANGED, *IMPORT_FORMS)), *_GENERAL), _IMPORT_DETAILS,
    ),
    Verb(
        "env", "env", "Print the environment that makes a runtime load FILES or folders, and how to prove it.",
        ("FILE...",), (("Output", ENVIRONMENT), ("Input", (*INPUT, CHOICE)), *_GENERAL), _ENV_DETAILS,
    ),
    Verb(
        "run", "running", "Compile FILE, build it, run it over MPI or oneCCL, check every element, time it.",
        ("FILE",), (("Run", RUN), *_FORMS, *_COMPILING, *_GENERAL), _RUN_DETAILS,
    ),
    Verb(
        "calibrate", "calibrate", "Fit latency and bandwidth to measured times, and write them as .coll attributes.",
        ("[FILE...]",),
        (("Fit", CALIBRATION), ("Logs of NCCL", NCCL_LOGS), ("Output", FIT_FORMS), ("Input", INPUT), *_GENERAL),
        _CALIBRATE_DETAILS,
    ),
    Verb(
        "launch", "relaunch", "Compile FILES and run an unmodified program with them.",
        ("FILE...", "--", "COMMAND..."), (("Launch", LAUNCH), *_COMPILING, *_GENERAL), _LAUNCH_DETAILS,
    ),
    Verb(
        "find", "find", "Find the best topologies of N nodes and degree D; print their cost.", (),
        (("Topology", FIND), ("Search", SEARCH), ("Output", (*FIND_FORMS, _SVG)), *_GENERAL), _FIND_DETAILS,
    ),
    Verb(
        "sweep", "sweep", "Predict the times of collectives on networks by schedulers, as one table.",
        ("[TOPOLOGY...]",),
        (("Cases", (*SWEEP, *PREDICTION)), ("Work", (*WORK, VERIFY)),
         ("Output", (*SWEEP_OUTPUT, *FORMS)), ("Input", INPUT), *_GENERAL), _SWEEP_DETAILS,
    ),
    Verb(
        "train", "train", "Predict the time of a training iteration on several topologies.",
        ("[WORKLOAD]", "[TOPOLOGY...]"),
        (("Training", TRAINING), ("Output", (*FORMS, _TRAIN_TRACE)), ("Input", INPUT), *_GENERAL), _TRAIN_DETAILS,
    ),
    Verb(
        "cache", "caches", "Show, list, check or clear the caches of compiled files and of launches.",
        ("[info|list|check|times|clear]",),
        (("Output", (_CACHE, *FORMS)), *_GENERAL), _CACHE_DETAILS,
    ),
    Verb("explain", "explain", "Explain a diagnostic code, or list all codes.", ("[CODE]",), (*_FORMS, *_GENERAL)),
    Verb("targets", "listing", "List the targets, or the options of one.", ("[NAME]",), (*_FORMS, *_GENERAL)),
    Verb("passes", "listing", "List the passes, or the options of one.", ("[NAME]",), (*_FORMS, *_GENERAL)),
    Verb(
        "topologies", "networks", "List the graph families and operators, or write a network for another program.",
        ("[NAME|EXPRESSION|FILE]",), (("Network", NETWORK), *_FORMS, ("Input", INPUT), *_GENERAL), _TOPOLOGIES_DETAILS,
    ),
    Verb("schedulers", "listing", "List the schedulers, or the options of one.", ("[NAME]",), (*_FORMS, *_GENERAL)),
    Verb(
        "schema", "schema", "Print the JSON Schema of the objects that --json prints, or list the schemas.",
        ("[NAME]",), (*_FORMS, *_GENERAL), _SCHEMA_DETAILS,
    ),
    Verb(
        "lsp", "lsp", "Run the language server, which editors use for .coll files.", (),
        (("Input", INPUT), *_GENERAL), _LSP_DETAILS,
    ),
    Verb(
        "completion", "completion", "Print a script that completes command lines of collc in a shell.",
        ("bash|zsh|fish",), _GENERAL, _COMPLETION_DETAILS,
    ),
    Verb("formats", "listing", "List the file formats, or the verbs that read one.", ("[NAME]",),
         (*_FORMS, *_GENERAL)),
)  # fmt: skip

VERBS: dict[str, Verb] = {verb.name: verb for verb in _VERBS}


def overview() -> str:
    """Return what ``collc --help`` prints: the verbs by task."""
    lines = ["usage: collc FILE.coll [-t TARGET] [-o OUT] [OPTIONS]", "       collc VERB ...", ""]
    for task, names in by_task().items():
        lines += [f"{task}:", *(f"  {name:12}{VERBS[name].summary}" for name in names), ""]
    lines += ["`collc VERB --help` prints the options of a verb, with examples. `collc --version` prints the version.",
              "`collc --cmake-dir` prints the folder of collc.cmake and collc.mk."]  # fmt: skip
    return "\n".join(lines) + "\n"


def by_task() -> dict[str, tuple[str, ...]]:
    """Return the verbs under their headings; those under none come last."""
    listed = {name for names in TASKS.values() for name in names}
    others = tuple(name for name in VERBS if name not in listed)
    return {**TASKS, **({"more": others} if others else {})}
