"""The options that verbs share, by group."""

from __future__ import annotations

from typing import Any

from .arguments import Opt, usage_error

__all__ = [
    "CALIBRATION",
    "CHOICE",
    "CONVERSION",
    "DEPENDENCIES",
    "ENVIRONMENT",
    "FIND",
    "GENERAL",
    "INPUT",
    "JSON",
    "LAUNCH",
    "MULTIPROCESSORS",
    "OUTPUT",
    "PASSES",
    "PICTURES",
    "PREDICTION",
    "RUN",
    "SEARCH",
    "SIMULATION",
]


def _pieces(text: str, option: str) -> int | str:
    return text if text == "best" else positive(text, option)


def _count(text: str, option: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise usage_error(f"option `{option}` needs a whole number, found `{text}`")
    return int(text)


def positive(text: str, option: str) -> int:
    value = _count(text, option)
    if value < 1:
        raise usage_error(f"option `{option}` needs a number of at least 1, found `{text}`")
    return value


def _definition(text: str, option: str) -> tuple[str, str]:
    name, joined, value = text.partition("=")
    if not (joined and name.strip() and value.strip()):
        raise usage_error(f"option `{option}` needs NAME=VALUE, found `{text}`", code="C0027")
    return name.strip(), value.strip()


def _alternatives(text: str, option: str) -> tuple[str, list[str]]:
    name, values = _definition(text, option)
    return name, [value.strip() for value in values.split(",") if value.strip()]


def _counts(text: str, option: str) -> list[int]:
    return [_count(word.strip(), option) for word in text.split(",")]


def _ranges(text: str, option: str) -> list[int]:
    """Return the numbers of ``12``, ``8..16`` (as in the language, without 16) or several of these, with commas."""
    found: list[int] = []
    for word in text.split(","):
        low, dots, high = word.strip().partition("..")
        first = _count(low.strip(), option)
        last = _count(high.strip(), option) if dots else first + 1
        if last - first > 10**5:
            raise usage_error(f"option `{option}` takes at most 100000 numbers, found `{text}`")
        found += range(first, last)
    if not found:
        raise usage_error(f"option `{option}` needs a number or a range A..B, found `{text}`")
    return sorted(set(found))


def _size(text: str, option: str) -> int:
    from ..quantities import size

    return size(text, option)


def _words(text: str, option: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _classes(text: str, option: str) -> list[int] | str:
    return text if text == "auto" else _sizes(text, option)


def _sizes(text: str, option: str) -> list[int]:
    from ..quantities import sizes

    return sizes(text, option)


def _time(text: str, option: str) -> Any:
    from ..quantities import time

    return time(text, option)


def _bandwidth(text: str, option: str) -> Any:
    from ..quantities import bandwidth

    return bandwidth(text, option)


def _rate(text: str, option: str) -> Any:
    """Return the rate of a testbed's links (bytes per second); 40 Mbit/s where none is given."""
    return _bandwidth(text or "40Mbps", option)


def _places(text: str, option: str) -> list[str]:
    found = _words(text, option)
    if not found or not set(found) <= {"in", "out"}:
        raise usage_error(f"option `{option}` needs `in`, `out` or both, found `{text}`")
    return found


INPUT = (
    Opt(("-D",), "set a `param` of the file", "list", "NAME=VALUE", convert=_definition),
    Opt(("-I",), "look for included files in DIR too", "list", "DIR"),
    Opt(("--node-limit",), "refuse topologies of more nodes (20000)", "value", "N", 20000, convert=positive),
)
CHOICE = Opt(
    ("--collective",), "only this collective of the file (may be repeated); of MSCCL-XML:\nwhat it performs",
    "list", "NAME",
)  # fmt: skip
CONVERSION = (
    Opt(("--collective",), "what an MSCCL-XML file performs whose `coll` does not say it", "value", "KIND"),
    Opt(("--root",), "the root for which it must be right (default: any that does)", "value", "RANK", convert=_count),
)
JSON = Opt(("--json",), "print one JSON object on standard output")
PASSES = (
    Opt(("-O",), "which passes run: -O0 what a target needs, -O1 coalesce,\n"
        "-O2 balance threadblocks too (default), -O3 as -O2",
        "value", default="2", choices=("0", "1", "2", "3"), shown_as="-O0, -O1, -O2, -O3"),
    Opt(("-p", "--passes"), "run these passes instead: 'bfb,discretize{max-chunks=8},coalesce';\n"
        "what lies between is added, --print-pipeline shows it", "value", "PASSES"),
    Opt(("--disable-pass",), "leave a pass out (may be repeated)", "list", "NAME"),
    Opt(("--verify",), "each (default): every pass leaves a well-formed IR, the last\n"
        "schedule and program are executed, files read back;\nfull: every IR is executed; off", "value",
        default="each", choices=("each", "full", "off")),
    Opt(("--dump-ir",), "print the last IR, that after PASS, or all, on standard error", "joined", "PASS|all"),
    Opt(("--print-pipeline",), "print the passes that run, on standard error"),
    Opt(("--time-passes",), "print how long everything took, on standard error"),
)  # fmt: skip
OUTPUT = (
    Opt(("-t", "--target"), "make this of every collective, 'msccl-xml{runtime=rccl}' (may be repeated);\n"
        "replaces the file's emits, whose options for the same target stay", "list", "TARGET"),
    Opt(("-o",), "write to OUT: a file, a folder (`DIR/`), or - for standard output;\n"
        "otherwise FILE's name with the target's suffix, or the collectives'\nnames where there are several outputs",
        "value", "OUT"),
    Opt(("--write-if-changed",), "leave outputs alone whose content stays the same"),
    JSON,
)  # fmt: skip
DEPENDENCIES = (
    Opt(("-M",), "only print on which files the outputs depend, as a make rule"),
    Opt(("-MD",), "compile, and write that rule beside the output (OUT.d)"),
    Opt(("-MF",), "write the rule to FILE", "value", "FILE"),
    Opt(("-MT",), "name TARGET in the rule instead of the outputs (may be repeated)", "list", "TARGET"),
    Opt(("-MP",), "add an empty rule for every included file"),
    Opt(("-fdepfile-absolute",), "absolute paths in the rule, escaped for CMake and Ninja"),
)
ENVIRONMENT = (
    Opt(
        ("--runtime",),
        "who is to load the files: executor, msccl or rccl (default: the\nfirst of these that takes them all)",
        "value",
        "NAME",
    ),
    Opt(
        ("--shell",),
        "sh: assignments to be evaluated (default); json: one object",
        "value",
        default="sh",
        choices=("sh", "json"),
    ),
    Opt(("--config",), "write the list of files that msccl reads into FILE", "value", "FILE"),
)
GENERAL = (
    Opt(("--diagnostics-format",), "how errors and warnings are written to standard error", "value",
        default="text", choices=("text", "json", "sarif")),
    Opt(("--error-limit",), "show at most N errors (20; 0: all)", "value", "N", 20, convert=_count),
    Opt(("--color",), "colors; auto heeds NO_COLOR, FORCE_COLOR, TERM and the terminal", "value",
        default="auto", choices=("auto", "always", "never")),
    Opt(("-Werror",), "warnings are errors"),
    Opt(("-w",), "no warnings"),
    Opt(("-v", "--verbose"), "say what is done"),
    Opt(("-q", "--quiet"), "print errors only"),
    Opt(("-h", "--help"), "print this help"),
    Opt(("--version",), "print the version"),
)  # fmt: skip
PREDICTION = (
    Opt(("--size",), "sizes M of the whole vector, separated by commas: 1MiB,64MiB", "value", "SIZES", convert=_sizes),
    Opt(("--alpha",), "latency of a step: 10us", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node: 100Gbps", "value", "RATE", convert=_bandwidth),
)
SIMULATION = (
    *PREDICTION,
    Opt(("--latency",), "what makes messages late: links (default: the links' own latencies,\n"
        "else 10us), swing (300 ns a router, 100 ns a link, 4.7 ns of overhead)\n"
        "or hammingmesh (150 ns a router, 125 ns a cable to a switch)", "value",
        default="links", choices=("links", "swing", "hammingmesh")),
    Opt(("--per-hop",), "latency of every hop instead of the model's: 400ns", "value", "TIME", convert=_time),
    Opt(("--overhead",), "latency of every link, the cards' too, instead: 4.7ns", "value", "TIME", convert=_time),
    Opt(("--routing",), "as the schedule says (default), or shortest ways, divided evenly", "value",
        default="as-scheduled", choices=("as-scheduled", "minimal")),
    Opt(("--dimensions",), "D of the congestion (half the links of a rank; of hyperx its dimensions)", "value", "D",
        convert=positive),
    Opt(("--run-ahead",), "ranks do not wait for all others between repetitions of a step, as\n"
        "in rings: the mean latency of its messages counts there"),
    Opt(("--pieces",), "cut the data of forests in so many pieces instead, or `best`: in as\n"
        "many powers of two, to 4096, as take least time at each size", "value", "N|best", convert=_pieces),
    Opt(("--network",), "send over this network instead, by shortest ways: 'torus(8, 8)'", "value", "TOPOLOGY"),
)  # fmt: skip
MULTIPROCESSORS = Opt(
    ("--multiprocessors",), "threadblocks of an MSCCL-XML file or a program that a rank runs\nat once: 108 for an A100",
    "value", "N", convert=positive,
)  # fmt: skip
PICTURES = (
    Opt(("--steps",), "print what every step does too: its messages, hops and exact max link load"),
    Opt(("--trace",), "write a Chrome trace (Perfetto) of one size, the first, into FILE", "value", "FILE"),
    Opt(("--trace-ranks",), "only what these ranks send: 0..8", "value", "N", convert=_ranges),
    Opt(("--svg",), "draw goodput against size into FILE, all collectives in one picture", "value", "FILE"),
)
RUN = (
    Opt(("-t", "--target"), "what to run: mpi-c (default; of oneCCL-XML files oneccl-xml) or\n"
        "oneccl-xml, which may have options: 'oneccl-xml{threads=2}'", "value", "TARGET"),
    Opt(("--size",), "bytes of the whole vector, separated by commas: 1KiB,1MiB", "value", "SIZES", convert=_sizes),
    Opt(("--count",), "count arguments of the calls (0,1,7,1000 and a large one)", "value", "N,N", convert=_counts),
    Opt(("--dtype",), "element types, or `all`: int32,int64,float32,float64,strided; of\n"
        "oneccl-xml int8 to uint64, float16,bfloat16,float32,float64", "value", "TYPES", convert=_words),
    Opt(("--op",), "operations: sum,max,min,prod,user; of oneccl-xml sum,max,min,prod", "value", "OPS", convert=_words),
    Opt(("--place",), "calls in place, out of place: in,out", "value", "PLACES", convert=_places),
    Opt(("--ranks",), "an error unless the collectives have so many ranks", "value", "N", convert=positive),
    Opt(("--repeat",), "runs of each case that are timed (5)", "value", "N", 5, convert=positive),
    Opt(("--warmup",), "runs of each case before those (1)", "value", "N", 1, convert=_count),
    Opt(("--compare",), "time the MPI's (oneCCL's) own collective too, by turns"),
    Opt(("--csv",), "write a line a case as CSV into FILE, or on standard output", "joined", "FILE"),
    Opt(("--mpi",), "the MPI to use: mpich, openmpi or impi (one installed beside this\n"
        "Python, on PATH or in /opt), a folder, or an mpicc", "value", "NAME|DIR"),
    Opt(("--mpi-env",), "set a variable for the MPI (may be repeated)", "list", "NAME=VALUE", convert=_definition),
    Opt(("--oneccl",), "the folder of the oneCCL to use", "value", "DIR"),
    Opt(("--testbed",), "run on a network of namespaces built like the topology (Linux), its\n"
        "widest link at RATE (40Mbps)", "joined", "RATE", convert=_rate),
    Opt(("--delay",), "latency of every link of the testbed: 5ms", "value", "TIME", convert=_time),
    Opt(("--alpha",), "latency of a step for predictions: 10us", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node, for predictions: 100Gbps", "value", "RATE",
        convert=_bandwidth),
    Opt(("--timeout",), "end a run after so many seconds (300)", "value", "SECONDS", 300, convert=positive),
)  # fmt: skip
CALIBRATION = (
    Opt(("--schedules",), "the .coll file that was measured: it tells steps and load of rows that\n"
        "do not have them, by the collective's name", "value", "FILE"),
    Opt(("--only",), "take the rows of these names alone", "value", "NAMES", convert=_words),
    Opt(("--classes",), "bytes of messages at which alpha changes, 16KiB,64KiB, or auto (where\n"
        "one boundary explains much more than none)", "value", "SIZES|auto", convert=_classes),
    Opt(("--name",), "what the attributes' names begin with (measured)", "value", "NAME", "measured"),
    Opt(("-o",), "write the attributes, to be included, into FILE; - is standard output", "value", "FILE"),
)  # fmt: skip
LAUNCH = (
    Opt(("-t", "--target"), "compile for mpi-c, or for 'msccl-xml{runtime=rccl}' (default: by the\n"
        "command, mpi-c unless it is torchrun)", "value", "TARGET"),
    Opt(("--runtime",), "compile for an MSCCL runtime: executor, msccl or rccl", "value", "NAME"),
    Opt(("--each",), "compile with each of these values of a `param` (may be repeated)", "list", "NAME=V1,V2",
        convert=_alternatives),
    Opt(("--mpi",), "the MPI that the command belongs to: mpich, openmpi, impi or a folder\n"
        "(default: the launcher's)", "value", "NAME|DIR"),
    Opt(("--replace",), "torchrun: take the place of this backend of the program's (gloo)", "value", "NAME", "gloo"),
    Opt(("--cache",), "keep libraries in DIR (default: XDG_CACHE_HOME/collc)", "value", "DIR"),
    Opt(("--stats",), "say at the end how many calls were served"),
    Opt(("--timeout",), "end the command after so many seconds (default: never)", "value", "SECONDS", convert=positive),
    Opt(("-n", "--dry-run"), "print the command and its environment, run nothing"),
)  # fmt: skip
FIND = (
    Opt(("-n",), "the number of nodes; several, 8..64,128, for databases", "value", "N", convert=_ranges),
    Opt(("-d",), "the degree: links out of a node; several, 2,4, for databases", "value", "D", convert=_ranges),
    Opt(("--bidirectional",), "only topologies whose every link has its reverse"),
    Opt(("--objective",), "what the best is best for", "value", choices=("allreduce", "allgather", "alltoall")),
    Opt(("--size",), "M, the whole vector; for alltoall what one node sends (1MiB)", "value", "SIZE", convert=_size),
    Opt(("--alpha",), "latency of a step (10us)", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node (100Gbps)", "value", "RATE", convert=_bandwidth),
)
SEARCH = (
    Opt(("--refresh",), "search from scratch instead of looking up;\nwith --database add what is found to it"),
    Opt(("--database",), "use this database instead of the one that comes with collc", "value", "FILE"),
    Opt(("--check",), "compute every row of the database anew; exit 1 where one is wrong"),
    Opt(("--effort",), "evaluations of each search (20000; databases 400)", "value", "E", convert=positive),
    Opt(("--seed",), "the seed of the search (0)", "value", "S", 0, convert=_count),
    Opt(("-j", "--jobs"), "processes that search (as many as processors)", "value", "J", convert=positive),
)
