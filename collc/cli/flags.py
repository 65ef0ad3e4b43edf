"""The options that verbs share, by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Opt, usage_error

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = [
    "CALIBRATION",
    "CHECK_FORMS",
    "CHOICE",
    "CONVERSION",
    "COST_FORMS",
    "DEPENDENCIES",
    "ENVIRONMENT",
    "FAULTS",
    "FIND",
    "FIND_FORMS",
    "FIT_FORMS",
    "GENERAL",
    "IMPORT",
    "IMPORT_FORMS",
    "INPUT",
    "JSON",
    "LAUNCH",
    "MULTIPROCESSORS",
    "OUTPUT",
    "PASSES",
    "PICTURES",
    "PREDICTION",
    "PROFILE",
    "RUN",
    "SEARCH",
    "SIMULATE_FORMS",
    "SIMULATION",
    "TRAINING",
    "VERIFY",
    "ranges",
    "several_forms",
    "workers",
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


def ranges(text: str, option: str) -> list[int]:
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


def _words(text: str, option: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _classes(text: str, option: str) -> list[int] | str:
    return text if text == "auto" else _sizes(text, option)


def _sizes(text: str, option: str) -> list[int]:
    from ..messages.size_ranges import sizes

    return sizes(text, option)


def _bucket_sizes(text: str, option: str) -> list[int]:
    found = _sizes(text, option)
    if 0 in found:
        raise usage_error(f"option `{option}` needs sizes of more than 0, found `{text}`", code="C0020")
    return found


def _time(text: str, option: str) -> Fraction:
    from ..messages.quantities import time

    return time(text, option)


def _bandwidth(text: str, option: str) -> Fraction:
    from ..messages.quantities import bandwidth

    return bandwidth(text, option)


def _nic(text: str, option: str) -> Fraction:
    """Return the bandwidth of a NIC, 0 for ``none``."""
    from fractions import Fraction

    return Fraction(0) if text == "none" else _bandwidth(text, option)


def _gamma(text: str, option: str) -> Fraction:
    from ..messages.quantities import gamma

    return gamma(text, option)


def _tiers(text: str, option: str) -> list[tuple[str, Fraction]]:
    """Return the tiers of ``leaf=400Gbps,spine=1600Gbps`` with their bandwidths."""
    found = [_definition(word, option) for word in text.split(",")]
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise usage_error(f"option `{option}` names a tier twice: `{text}`")
    return [(name, _bandwidth(value, option)) for name, value in found]


def _size(text: str, option: str) -> int:
    found = _sizes(text, option)
    if len(found) != 1:
        raise usage_error(f"option `{option}` needs one size, found `{text}`")
    if not found[0]:
        raise usage_error(f"option `{option}` must be more than 0, found `{text}`", code="C0020")
    return found[0]


def _factor(text: str, option: str) -> Fraction:
    """Return a part of a bandwidth, more than 0 and less than 1."""
    from fractions import Fraction

    share = text.strip().removesuffix("%").strip()
    try:
        value = Fraction(share) / (100 if text.strip().endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value < 1:
        raise usage_error(f"option `{option}` needs a part between 0 and 1, found `{text}`", "such as `1/2`")
    return value


def _rate(text: str, option: str) -> Fraction:
    """Return the rate of a testbed's links (bytes per second); 40 Mbit/s where none is given."""
    return _bandwidth(text or "40Mbps", option)


def _places(text: str, option: str) -> list[str]:
    found = _words(text, option)
    if not found or not set(found) <= {"in", "out"}:
        raise usage_error(f"option `{option}` needs `in`, `out` or both, found `{text}`")
    return found


INPUT = (
    Opt(("-D",), "set a `param` of the file", "list", "NAME=VALUE", convert=_definition),
    Opt(("-I",), "also search DIR for included files", "list", "DIR"),
    Opt(("--node-limit",), "refuse topologies with more nodes (20000)", "value", "N", 20000, convert=positive),
)
CHOICE = Opt(
    ("--collective",), "only this collective (repeatable); for MSCCL-XML, the collective\nit performs",
    "list", "NAME",
)  # fmt: skip
CONVERSION = (
    Opt(("--collective",), 'the collective of an MSCCL-XML file with coll="custom"', "value", "KIND"),
    Opt(("--root",), "the root (default: detected)", "value", "RANK", convert=_count),
)
JSON = Opt(("--json",), "print one JSON object on standard output")
CSV = Opt(("--csv",), "print the table as CSV, or write it into FILE", "joined", "FILE", writes=True)
MARKDOWN = Opt(("--markdown",), "print the table as Markdown, or write it into FILE", "joined", "FILE", writes=True)
FORMS = (JSON, CSV, MARKDOWN)


def several_forms(first: str, *others: str) -> tuple[Opt, ...]:
    """Return the forms of a verb with several tables, and the option that chooses one of them by its name."""
    lines, names = list[str](), [f"{first} (default)", *others]
    for name in names:
        if not lines or len(lines[-1]) + len(name) > 66:
            lines.append("")
        lines[-1] += f"{name}, " if name != names[-1] else name
    help = "the table that --csv, --markdown or text show:\n" + "\n".join(line.rstrip() for line in lines)
    return (*FORMS, Opt(("--table",), help, "value", "NAME", choices=(first, *others), shown_as="--table=NAME"))


COST_FORMS = several_forms(
    "points", "schedules", "tried", "auto", "candidates", "skipped", "roots", "orbits", "together", "parts", "baselines"
)
SIMULATE_FORMS = several_forms("points", "steps", "schedules", "crossovers", "roots", "orbits", "together")
FIND_FORMS = several_forms("frontier", "sizes", "expansions", "places", "recabling")
CHECK_FORMS = several_forms("files", "topologies", "collectives")
IMPORT_FORMS = several_forms("topologies", "imported")
FIT_FORMS = several_forms("points", "alphas", "lines", "choices")
PROFILE = Opt(
    ("--profile",), "write what took the time into FILE, as a Chrome trace (Perfetto):\n"
    "collectives, passes and checks, with memory and rows", "value", "FILE", writes=True,
)  # fmt: skip
VERIFY = Opt(
    ("--verify",), "each (default): check structure after every pass, execute the\n"
    "final schedule and program, read files back;\nfull: execute every IR; off: skip these checks", "value",
    default="each", choices=("each", "full", "off"),
)  # fmt: skip
PASSES = (
    Opt(("-O",), "-O0 only required passes, -O1 also coalesce and prune-dependencies,\n"
        "-O2 also renumber, balance-threadblocks, fuse, reuse-scratch (default),\n"
        "-O3 also eliminate-copies and reorder-fifo",
        "value", default="2", choices=("0", "1", "2", "3"), shown_as="-O0, -O1, -O2, -O3"),
    Opt(("-p", "--passes"), "run these passes instead: 'bfb,discretize{max-chunks=8},coalesce';\n"
        "missing passes in between are added; --print-pipeline shows them", "value", "PASSES"),
    Opt(("--disable-pass",), "leave a pass out (repeatable)", "list", "NAME"),
    VERIFY,
    Opt(("--dump-ir",), "print the final IR, the IR after PASS, or all, on standard error", "joined", "PASS|all"),
    Opt(("--print-pipeline",), "print the passes that run, on standard error; with -v, also why"),
    Opt(("--time-passes",), "print the seconds, memory and rows of every pass and check on standard\n"
        "error, or write them into FILE as CSV. Memory is the peak of the process,\n"
        "and its growth in the step.", "joined", "FILE", writes=True),
    PROFILE,
)  # fmt: skip
OUTPUT = (
    Opt(("-t", "--target"), "compile every collective to TARGET, 'msccl-xml{runtime=rccl}' (repeatable);\n"
        "replaces the file's emits, but keeps their options for that target", "list", "TARGET"),
    Opt(("-o",), "write to OUT: a file, a folder (`DIR/`), or - for standard output\n"
        "(default: FILE's name with the target's suffix; for several outputs\nthe collectives' names)",
        "value", "OUT", writes=True),
    Opt(("--write-if-changed",), "do not touch outputs with unchanged content"),
    Opt(("--cache",), "keep compiled files, and take them from the cache for the same inputs\n"
        "(default folder: `collc cache` prints it)", "joined", "DIR"),
    *several_forms("files", "programs", "auto", "candidates", "skipped"),
)  # fmt: skip
DEPENDENCIES = (
    Opt(("-M",), "print only the dependencies, as a make rule"),
    Opt(("-MD",), "compile, and write the rule beside the output (OUT.d)"),
    Opt(("-MF",), "write the rule to FILE", "value", "FILE", writes=True),
    Opt(("-MT",), "name TARGET in the rule instead of the outputs (repeatable)", "list", "TARGET"),
    Opt(("-MP",), "add an empty rule for every included file"),
    Opt(("-fdepfile-absolute",), "write absolute paths in the rule, escaped for CMake and Ninja"),
)
ENVIRONMENT = (
    Opt(
        ("--runtime",),
        "the runtime: executor, msccl or rccl (default: the first of\nthese that accepts all files)",
        "value",
        "NAME",
    ),
    Opt(
        ("--shell",),
        "sh: assignments for a shell (default); json: one object",
        "value",
        default="sh",
        choices=("sh", "json"),
    ),
    Opt(("--config",), "write the list of files that msccl reads into FILE", "value", "FILE", writes=True),
    Opt(("--plugin",), "the library of NCCL's tuner plugin (libnccl-tuner-example.so)", "value", "FILE"),
    Opt(
        ("--library",),
        "for a .coll file: choose among the algorithms of openmpi, ucc or nccl",
        "value",
        choices=("openmpi", "ucc", "nccl"),
    ),
    Opt(("--rules",), "write the rules that openmpi reads into FILE", "value", "FILE", writes=True),
)
GENERAL = (
    Opt(("--diagnostics-format",), "format of errors and warnings on standard error", "value",
        default="text", choices=("text", "json", "sarif")),
    Opt(("--error-limit",), "print at most N errors (20; 0: all)", "value", "N", 20, convert=_count),
    Opt(("--color",), "colors; auto heeds NO_COLOR, FORCE_COLOR, TERM and the terminal", "value",
        default="auto", choices=("auto", "always", "never")),
    Opt(("-Werror",), "treat warnings as errors"),
    Opt(("-w",), "print no warnings"),
    Opt(("-v", "--verbose"), "print details"),
    Opt(("-q", "--quiet"), "print errors only"),
    Opt(("-h", "--help"), "print this help"),
    Opt(("--version",), "print the version"),
)  # fmt: skip
PREDICTION = (
    Opt(("--size",), "sizes M of the whole vector: 1MiB,64MiB; a range, both ends included:\n"
        "1KiB..1GiB (powers of two), 1KiB..1GiB:4 (powers of four)", "value", "SIZES", convert=_sizes),
    Opt(("--alpha",), "latency of a step: 10us", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node: 100Gbps", "value", "RATE", convert=_bandwidth),
    Opt(("--gamma",), "time of a rank to add a byte: 0.002ns/B, or bytes that it adds per\n"
        "second: 500GB/s (default: the topology's `reduction`, else none)", "value", "TIME|RATE", convert=_gamma),
    Opt(("--launch", "--epsilon"), "time of a call besides its steps: 20us (default: the topology's\n"
        "`launch`, else none)", "value", "TIME", convert=_time),
)  # fmt: skip
BASELINES = Opt(
    ("--baselines",), "also print the times of NCCL's rings and trees, PAT and the\n"
    "two-level algorithm on this network, and the ratio to the best",
)  # fmt: skip
SIMULATION = (
    *PREDICTION,
    Opt(("--latency",), "latency model: links (default: the links' own latencies, else\n"
        "10us), swing (300 ns a router, 100 ns a link, 4.7 ns of overhead)\n"
        "or hammingmesh (150 ns a router, 125 ns a cable to a switch)", "value",
        default="links", choices=("links", "swing", "hammingmesh")),
    Opt(("--per-hop",), "replace the latency of every hop: 400ns", "value", "TIME", convert=_time),
    Opt(("--overhead",), "replace the overhead of every link, the cards' too: 4.7ns", "value", "TIME", convert=_time),
    Opt(("--routing",), "as-scheduled: routes of the schedule (default);\n"
        "minimal: shortest routes, load divided evenly", "value",
        default="as-scheduled", choices=("as-scheduled", "minimal")),
    Opt(("--dimensions",), "D of the congestion (half the links of a rank; for hyperx, its dimensions)", "value", "D",
        convert=positive),
    Opt(("--run-ahead",), "let ranks start a repeated step without waiting for all others, as\n"
        "in rings; uses the mean latency of its messages"),
    Opt(("--pieces",), "number of pieces of the data (forest, double-binary-tree, box-trees,\n"
        "two-level); best: the fastest power of two up to 4096 at each size", "value", "N|best", convert=_pieces),
    Opt(("--network",), "simulate on this network, over shortest routes: 'torus(8, 8)'", "value", "TOPOLOGY"),
)  # fmt: skip
MULTIPROCESSORS = Opt(
    ("--multiprocessors",), "number of threadblocks that a rank runs at once (MSCCL-XML and\n"
    "programs): 108 for an A100", "value", "N", convert=positive,
)  # fmt: skip
PICTURES = (
    Opt(("--steps",), "also print each step: messages, hops, exact max link load"),
    Opt(("--trace",), "write a Chrome trace (Perfetto) of the first size into FILE", "value", "FILE", writes=True),
    Opt(("--trace-ranks",), "trace only these sending ranks: 0..8", "value", "N", convert=ranges),
    Opt(
        ("--trace-target",),
        "show the threadblocks of the file for TARGET, or `messages`\n(default: those of the "
        "first `emit`, messages without one)",
        "value",
        "TARGET",
    ),
    Opt(("--animate",), "draw the steps at the first size into FILE, an animated SVG", "value", "FILE", writes=True),
    Opt(("--svg",), "draw goodput by size for all collectives into FILE", "value", "FILE", writes=True),
)
RUN = (
    Opt(("-t", "--target"), "mpi-c (default), or oneccl-xml (default for oneCCL-XML files), which\n"
        "may have options: 'oneccl-xml{threads=2}'", "value", "TARGET"),
    Opt(("--size",), "sizes of the whole vector: 1KiB,1MiB, or a range 1KiB..1GiB:4", "value", "SIZES",
        convert=_sizes),
    Opt(("--count",), "count arguments of the calls (0,1,7,1000 and a large one)", "value", "N,N", convert=_counts),
    Opt(("--dtype",), "element types, or `all`: int32,int64,float32,float64,strided; for\n"
        "oneccl-xml int8 to uint64, float16,bfloat16,float32,float64", "value", "TYPES", convert=_words),
    Opt(("--op",), "operations: sum,max,min,prod,user; for oneccl-xml sum,max,min,prod", "value", "OPS",
        convert=_words),
    Opt(("--place",), "calls in place, out of place: in,out", "value", "PLACES", convert=_places),
    Opt(("--ranks",), "fail if a collective has another number of ranks", "value", "N", convert=positive),
    Opt(("--repeat",), "timed runs of each case (5)", "value", "N", 5, convert=positive),
    Opt(("--warmup",), "untimed runs of each case before those (1)", "value", "N", 1, convert=_count),
    Opt(("--compare",), "also time the library's own collective, alternating"),
    Opt(("--mpi",), "the MPI to use: mpich, openmpi or impi (one installed beside this\n"
        "Python, on PATH or in /opt), a folder, or an mpicc", "value", "NAME|DIR"),
    Opt(("--mpi-env",), "set a variable for the MPI (repeatable)", "list", "NAME=VALUE", convert=_definition),
    Opt(("--oneccl",), "the folder of the oneCCL to use", "value", "DIR"),
    Opt(("--tune",), "oneCCL: time files against oneCCL's own collectives, once for each class\n"
        "of sizes; use the faster ones, now and with --tune later"),
    Opt(("--testbed",), "run on network namespaces connected like the topology (Linux); the\n"
        "widest link has RATE (40Mbps)", "joined", "RATE", convert=_rate),
    Opt(("--delay",), "latency of every link of the testbed: 5ms", "value", "TIME", convert=_time),
    Opt(("--alpha",), "latency of a step for predictions: 10us", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node, for predictions: 100Gbps", "value", "RATE",
        convert=_bandwidth),
    Opt(("--timeout",), "time limit of a run in seconds (300)", "value", "SECONDS", 300, convert=positive),
)  # fmt: skip


FAULTS = (
    Opt(("--without",), "a node, or links, that are gone: 'gpu[7, 5]', 'gpu[0, 2] -> ib',\n"
        "'gpu[0, 2] <-> ib' (repeatable)", "list", "PARTS"),
    Opt(("--slow",), "nodes or links with less bandwidth: 'gpu[3, 1] <-> ib: 12.5 GB/s', or\n"
        "the part that is left: ': 1/2', ': 50 %' (repeatable)", "list", "PARTS:RATE"),
    Opt(("--each-fault",), "compile PLAN for each single fault (a dead rank or switch, a dead pair of\n"
        "links) into the folder DIR, with an index faults.json", "value", "DIR"),
    Opt(("--slow-factor",), "with --each-fault: also each pair of links with this part of its\n"
        "bandwidth: 1/2", "value", "FACTOR", convert=_factor),
)  # fmt: skip


def _log_of(text: str, option: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise usage_error(f"option `{option}` needs NAME=LOG, found `{text}`", "such as `--algorithm ring=ring.log`")
    return name, path


NCCL_LOGS = (
    Opt(("--nccl-tests",), "FILES are output of nccl-tests or the OSU benchmarks: fit a line to\n"
        "each of NCCL's algorithms"),
    Opt(("--algorithm",), "the algorithm of a log that does not name it, or ring/ll128 with its\n"
        "protocol (repeatable)", "list", "NAME=LOG", convert=_log_of),
    Opt(("--collective",), "the collective of logs that do not name it", "value", "KIND"),
    Opt(("--ranks",), "number of ranks of logs that do not state it", "value", "N", convert=positive),
    Opt(("--nodes",), "number of machines of logs that do not state it", "value", "N", convert=positive),
)  # fmt: skip
CALIBRATION = (
    Opt(("--schedules",), "the measured .coll file; supplies steps and load, by the collective's\n"
        "name, for rows without them", "value", "FILE"),
    Opt(("--only",), "use only the rows with these names", "value", "NAMES", convert=_words),
    Opt(("--classes",), "message sizes at which alpha changes, 16KiB,64KiB; auto finds at most\n"
        "one boundary", "value", "SIZES|auto", convert=_classes),
    Opt(("--gamma",), "also fit gamma, the time in which a rank adds a byte"),
    Opt(("--name",), "prefix of the attribute names (measured)", "value", "NAME", "measured"),
    Opt(("-o",), "write the attributes into FILE, for `include`; with --nccl-tests the\n"
        "lines, for `nccl-tuner{measured=FILE}`; - is standard output", "value", "FILE", writes=True),
)  # fmt: skip
NETWORK = (
    Opt(("--as",), "write the network: nodelink (JSON of networkx), graphml, dot (Graphviz),\n"
        "astra-sim (YAML), astra-sim-gib (in its 2^30 B/s), nccl-topo (XML of NCCL's dump)\n"
        "or cabling (CSV of cables)", "value",
        choices=("nodelink", "graphml", "dot", "astra-sim", "astra-sim-gib", "nccl-topo", "cabling"),
        shown_as="--as=FORM"),
    Opt(("--topology",), "the topology to write, of a file that has several", "value", "NAME"),
    Opt(("--rack",), "also list the racks of N nodes, in a cabling list", "value", "N", convert=positive),
    Opt(("-o",), "write the network into FILE (default: standard output)", "value", "FILE", writes=True),
)  # fmt: skip
IMPORT = (
    Opt(("--gpu",), "the model of the GPUs, for the bandwidth of their links: h100, mi300x", "value", "MODEL"),
    Opt(("--gpu-link",), "the bandwidth of one link between GPUs: 25GB/s", "value", "RATE", convert=_bandwidth),
    Opt(("--nic",), "the bandwidth of a NIC: 400Gbps; none leaves NICs without a speed out", "value", "RATE",
        convert=_nic),
    Opt(("--tier-bandwidth",), "the bandwidth of a link in each tier of a fabric:\n"
        "leaf=400Gbps,spine=1600Gbps", "value", "TIERS", convert=_tiers),
    Opt(("--size",), "the message size for which a profile was measured: 1MB", "value", "SIZE", convert=_size),
    Opt(("--choose",), "the network to read, of several in a file", "value", "NAME"),
    Opt(("--fabric",), "put the machines in the place of the hosts of this fabric; repeat it\n"
        "for parts of one fabric in several files", "list", "FILE"),
    Opt(("--hosts",), "the hosts that are like FILE: 'n[001-016]'; once for each FILE\n"
        "(default: all hosts)", "list", "LIST"),
    Opt(("--nics",), "the NICs that have a port in the fabric: 'mlx5_*' (default: all)", "value", "PATTERN"),
    Opt(("--format",), "the format of the files (default: by their content)", "value", "NAME"),
    Opt(("--name",), "the name of the topology (default: that of OUT or FILE)", "value", "NAME"),
    Opt(("--collective",), "also declare this collective on the network (repeatable)", "list", "KIND"),
    Opt(("--node-limit",), "refuse networks with more nodes (20000)", "value", "N", 20000, convert=positive),
)  # fmt: skip
LAUNCH = (
    Opt(("-t", "--target"), "compile to mpi-c or 'msccl-xml{runtime=rccl}' (default: mpi-c,\n"
        "except for torchrun)", "value", "TARGET"),
    Opt(("--runtime",), "compile for an MSCCL runtime: executor, msccl or rccl", "value", "NAME"),
    Opt(("--each",), "compile once for each of these values of a `param` (repeatable)", "list", "NAME=V1,V2",
        convert=_alternatives),
    Opt(("--mpi",), "the MPI of the command: mpich, openmpi, impi or a folder (default:\n"
        "the launcher's)", "value", "NAME|DIR"),
    Opt(("--replace",), "torchrun: the backend that collc replaces (gloo)", "value", "NAME", "gloo"),
    Opt(("--cache",), "keep libraries in DIR (default: XDG_CACHE_HOME/collc)", "value", "DIR"),
    Opt(("--library-dir",), "MPI: put the library into DIR, where every host must have it;\n"
        "with -n, only build it", "value", "DIR"),
    Opt(("--strict",), "refuse a specification of which a collective cannot be compiled\n"
        "(default: leave its calls to the MPI, NCCL or gloo)"),
    Opt(("--nonblocking",), "MPI: also serve nonblocking and persistent calls; needs\n"
        "MPI_THREAD_MULTIPLE, and a thread of every rank"),
    Opt(("--uneven",), "MPI: also serve Alltoallv, Alltoallw, Gatherv and Scatterv; ranks\n"
        "tell each other the sizes of their data before every call"),
    Opt(("--tune",), "MPI: time compiled collectives against those of the MPI, at the first\n"
        "blocking call of each size; use the faster ones, now and with --tune later"),
    Opt(("--stats",), "print the number of served calls at the end"),
    Opt(("--timeout",), "time limit of the command in seconds (default: none)", "value", "SECONDS", convert=positive),
    Opt(("-n", "--dry-run"), "print the command and its environment without running it"),
)  # fmt: skip
FIND = (
    Opt(("-n",), "number of nodes; for databases also several: 8..64,128 (8 to 63, and 128)", "value", "N",
        convert=ranges),
    Opt(("-d",), "degree, the links out of a node; for databases also several: 2,4", "value", "D", convert=ranges),
    Opt(("--bidirectional",), "only topologies in which every link has a reverse"),
    Opt(("--exclude",), "no topologies with this name in their expression: a family, operator or\n"
        "group; 'kautz', '*debruijn' (repeatable)", "list", "PATTERN"),
    Opt(("--objective",), "the collective to optimize for (allreduce)", "value",
        choices=("allreduce", "allgather", "alltoall")),
    Opt(("--workload",), "optimize for a mix of collectives instead, or for a training iteration:\n"
        "'allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3', or a workload", "value", "MIX|WORKLOAD"),
    Opt(("--size",), "M, bytes of the whole vector; for alltoall, of one node's data (1MiB);\n"
        "several: 1KiB,1MiB or 1KiB..1GiB:4", "value", "SIZES", convert=_sizes),
    Opt(("--alpha",), "latency of a step (10us)", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node (100Gbps)", "value", "RATE", convert=_bandwidth),
    Opt(("--rack",), "count the links between racks of N nodes; of equal topologies print the\none with the fewest",
        "value", "N", convert=positive),
    Opt(("--expand-to",), "list larger topologies of up to N nodes that keep many links of the best\n"
        "one, and the cables to change", "value", "N", convert=positive),
    Opt(("--robust",), "compute the cost after the worst failure of a link, and of a node"),
)  # fmt: skip


def workers(verb: str, work: str) -> tuple[Opt, ...]:
    """Return the options that say what runs the ``work`` of a verb."""
    engines = f"what runs the {work}: processes[:N] (default), dask:tcp://HOST:PORT, or mpi\n"
    command = f"in `mpiexec -n 4 python -m mpi4py.futures -m collc {verb} ..`"
    return (
        Opt(("-j", "--jobs"), f"number of processes for {work} (one per processor)", "value", "J", convert=positive),
        Opt(("--executor",), engines + command, "value", "ENGINE"),
    )


TRAINING = (
    Opt(("--on",), "a topology to compare (repeatable); more may follow it", "list", "TOPOLOGY"),
    Opt(("--buckets",), "capacities of the buckets of gradients, instead of the workload's", "value", "SIZES",
        convert=_bucket_sizes),
    Opt(("--alpha",), "latency of a step (the links' own, or 10us)", "value", "TIME", convert=_time),
    Opt(("--bandwidth",), "B, the total bandwidth out of one node (the links' own, or 100Gbps)", "value", "RATE",
        convert=_bandwidth),
    Opt(("--list",), "list the workloads that come with collc"),
)  # fmt: skip
SEARCH = (
    Opt(("--refresh",), "search from scratch instead of looking up; with --database,\nadd the results to it"),
    Opt(("--database",), "use this database instead of collc's own", "value", "FILE"),
    Opt(("--rates-only",), "with --refresh --database: no search, but compute the all-to-all rates\nthat rows lack"),
    Opt(("--check",), "recompute every row of the database; exit 1 if one is wrong"),
    Opt(("--effort",), "evaluations of each search (20000; databases 400)", "value", "E", convert=positive),
    Opt(("--seed",), "the seed of the search (0)", "value", "S", 0, convert=_count),
    *workers("find", "searches"),
)
