"""Hints for words that are no names here: a hint is of the kind that its place needs.

A word may be a name of the kind with other letters, a habit from elsewhere (``float``, ``fat-tree``, ``h100``), a name
of another kind, or a typing mistake; the first that applies gives the hint. Imported when a mistake was found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches

from collc.ir.collective import OPERATIONS
from collc.ir.frozen import frozen
from collc.ir.group import GROUPS

from ..units import UNITS
from .families import FAMILIES, FUNCTIONS, OPERATORS
from .families.examples import EXAMPLES, example
from .kinds import OPTIONS, PREDEFINED

__all__ = ["NEEDED", "Vocabulary", "did_you_mean", "folded"]

#: folded word -> topologies that it may mean, the usual one first; those of a family that is not available are left out
_TOPOLOGIES = {
    "ring": ("biring(8)", "uniring(8)"), "bidirectionalring": ("biring(8)",), "unidirectionalring": ("uniring(8)",),
    "cycle": ("biring(8)",), "loop": ("biring(8)",), "duplexring": ("biring(8)",),
    "grid": ("mesh(4, 4)",), "mesh2d": ("mesh(4, 4)",), "2dmesh": ("mesh(4, 4)",), "mesh3d": ("mesh(4, 4, 4)",),
    "chain": ("mesh(8)",), "path": ("mesh(8)",), "linear": ("mesh(8)",), "array": ("mesh(8)",),
    "torus2d": ("torus(4, 4)",), "2dtorus": ("torus(4, 4)",), "torus3d": ("torus(4, 4, 4)",),
    "3dtorus": ("torus(4, 4, 4)",), "fullmesh": ("complete(8)",), "fullyconnected": ("complete(8)",),
    "clique": ("complete(8)",), "alltoall": ("complete(8)",), "completegraph": ("complete(8)",),
    "full": ("complete(8)",), "cube": ("hypercube(3)",), "ncube": ("hypercube(3)",), "tree": ("double_binary_tree(8)",),
    "binarytree": ("double_binary_tree(8)",), "dbt": ("double_binary_tree(8)",), "clos": ("fat_tree(4)",),
    "folderclos": ("fat_tree(4)",), "spineleaf": ("leaf_spine(4, 8, 2)",), "star": ("leaf_spine(1, 8, 1)",),
    "switch": ("leaf_spine(1, 8, 1)",), "crossbar": ("leaf_spine(1, 8, 1)",),
    "a100": ("dgx_a100(2)",), "hgxa100": ("dgx_a100(2)",), "dgx": ("dgx_a100(2)", "dgx_h100(2)"),
    "hgx": ("dgx_h100(2)",), "p4d": ("dgx_a100(2)",), "h100": ("dgx_h100(2)",), "hgxh100": ("dgx_h100(2)",),
    "h200": ("dgx_h100(2)",), "dgxh200": ("dgx_h100(2)",), "p5": ("dgx_h100(2)",),
    "v100": ("dgx1_v100()",), "dgxv100": ("dgx1_v100()",), "dgx1": ("dgx1_v100()",),
    "mi200": ("mi250(2)",), "mi250x": ("mi250(2)",), "mi300": ("mi300x()", "mi250(2)"), "mi300a": ("mi300x()",),
    "mi300x": ("mi250(2)",), "mi325x": ("mi300x()",), "b200": ("dgx_b200(2)", "dgx_h100(2)"),
    "hgxb200": ("dgx_b200(2)", "dgx_h100(2)"), "dgxb200": ("dgx_h100(2)",), "b100": ("dgx_b200(2)", "dgx_h100(2)"),
    "nvl72": ("gb200_nvl72(1)",), "gb200": ("gb200_nvl72(1)",), "gb300": ("gb200_nvl72(1)",),
    "tpu": ("torus(4, 4, 4)",), "tpuv2": ("torus(16, 16)",), "tpuv3": ("torus(16, 16)",),
    "tpuv4": ("torus(4, 4, 4)",), "tpuv5p": ("torus(4, 4, 4)",), "tpuv5e": ("torus(16, 16)",),
    "trainium": ("torus(4, 4)",), "slimfly": ("slim_fly(5)",),
    "polarfly": ("polarity(3, 7)",), "random": ("jellyfish(16, 4, 1)",),
    "randomregular": ("jellyfish(16, 4, 1)",), "expander": ("xpander(4, 4)",),
    "petersen": (EXAMPLES["distance_regular"],),
    **dict.fromkeys(("remove", "exclude", "except", "delete", "drop", "minus"), (EXAMPLES["without"],)),
    **dict.fromkeys(("permute", "reorder", "renumber", "permutation", "rename"), (EXAMPLES["relabel"],)),
    **dict.fromkeys(("slow", "throttle", "derate", "scale"), (EXAMPLES["degraded"],)),
}  # fmt: skip

#: switches of machines that no family may describe
_SWITCHED = {"nvl72": 72, "gb200nvl72": 72, "gb200": 72, "gb300": 72}

_COLLECTIVES = {
    "bcast": "broadcast", "all2all": "alltoall", "a2a": "alltoall", "rs": "reduce-scatter", "ag": "allgather",
    "ar": "allreduce", "sum": "allreduce", "gatherall": "allgather", "exchange": "alltoall",
    "reducescatterblock": "reduce-scatter", "alltoallsingle": "alltoallv", "alltoallvariable": "alltoallv",
    "alltoallw": "custom", "sendrecv": "custom", "permute": "custom", "collectivepermute": "custom", "shift": "custom",
    "neighboralltoall": "neighbours", "neighboralltoallv": "neighbours", "neighbouralltoall": "neighbours",
    "neighbor": "neighbours", "neighbour": "neighbours", "halo": "neighbours", "haloexchange": "neighbours",
    "mpineighboralltoall": "neighbours", "mpineighboralltoallv": "neighbours", "mpibcast": "broadcast",
    "mpireducescatterblock": "reduce-scatter", "allgatherintotensor": "allgather",
    "reducescattertensor": "reduce-scatter", "allgatheruneven": "allgatherv",
    **{f"{library}{kind.replace('-', '')}": kind for library in ("mpi", "nccl") for kind in PREDEFINED},
}  # fmt: skip
_SCHEDULERS = {
    "default": "auto", "best": "auto", "fastest": "auto", "any": "auto", "none": "auto", "manual": "steps",
    "hand": "steps", "custom": "steps", "byhand": "steps", "rings": "ring", "bidirectionalring": "ring",
    "nccl": "ring", "tree": "double-binary-tree", "dbt": "double-binary-tree", "binarytree": "double-binary-tree",
    "trees": "forest", "forestcoll": "forest", "optimal": "exact", "milp": "exact", "ilp": "exact", "sccl": "exact",
    "bruteforce": "exact", "rd": "recursive-doubling", "doubling": "recursive-doubling",
    "rhd": "rabenseifner", "halvingdoubling": "rabenseifner", "recursivehalvingdoubling": "rabenseifner",
    "fast": "two-tier", "birkhoff": "two-tier", "twotier": "two-tier",
    "hierarchical": "two-level", "2level": "two-level", "2d": "two-level", "twostep": "two-level",
    "multilevel": "two-level", "blueconnect": "two-level", "ncclring": "ring", "nccltree": "box-trees",
    "nccltrees": "box-trees", "bruck": "pat", "recursivehalving": "rabenseifner", "bfs": "bfb",
    "breadthfirst": "bfb", "mcf": "flow", "line": "expansion",
}  # fmt: skip
_TARGETS = {
    "xml": "msccl-xml", "msccl": "msccl-xml", "nccl": "msccl-xml", "rccl": "msccl-xml", "gpu": "msccl-xml",
    "cuda": "msccl-xml", "hip": "msccl-xml", "rocm": "msccl-xml", "ncclxml": "msccl-xml", "rcclxml": "msccl-xml",
    "c": "mpi-c", "mpi": "mpi-c", "mpich": "mpi-c", "openmpi": "mpi-c", "c++": "mpi-c", "cpp": "mpi-c",
    "mscclpp": "mscclpp-json", "mscclxx": "mscclpp-json", "plan": "mscclpp-json", "executionplan": "mscclpp-json",
    "sglang": "mscclpp-json", "oneccl": "oneccl-xml", "ccl": "oneccl-xml", "cpu": "oneccl-xml", "text": "ir",
    "dump": "ir", "collcir": "ir",
}  # fmt: skip
_OPERATIONS = {
    "add": "sum", "plus": "sum", "+": "sum", "mpisum": "sum", "ncclsum": "sum", "mean": "avg", "average": "avg",
    "product": "prod", "mul": "prod", "multiply": "prod", "*": "prod", "mpiprod": "prod", "minimum": "min",
    "maximum": "max", "mpimax": "max", "mpimin": "min", "and": "land", "or": "lor", "xor": "bxor", "bitand": "band",
    "bitor": "bor", "bitxor": "bxor", "logicaland": "land", "logicalor": "lor", "custom": "user", "function": "user",
}  # fmt: skip
#: folded word -> element type and the language or library that says so
_DTYPES = {
    "float": ("float32", "C's `float`"), "double": ("float64", "C's `double`"), "half": ("float16", "CUDA's `half`"),
    "int": ("int32", "C's `int`"), "long": ("int64", "C's `long` on Linux"), "longlong": ("int64", "C's `long long`"),
    "short": ("int16", "C's `short`"), "char": ("int8", "C's `char`"), "byte": ("uint8", "a byte"),
    "unsigned": ("uint32", "C's `unsigned`"), "uint": ("uint32", "C's `unsigned`"),
    "uchar": ("uint8", "C's `unsigned char`"),
    "ulong": ("uint64", "C's `unsigned long` on Linux"), "sizet": ("uint64", "C's `size_t`"),
    "single": ("float32", "single precision"), "fp16": ("float16", "`fp16`"), "f16": ("float16", "`f16`"),
    "bf16": ("bfloat16", "`bf16`"), "fp32": ("float32", "`fp32`"), "f32": ("float32", "`f32`"),
    "tf32": ("float32", "the memory format of `tf32`"), "fp64": ("float64", "`fp64`"), "f64": ("float64", "`f64`"),
    "float8": ("float16", "the smallest float"), "fp8": ("float16", "the smallest float"),
    "bool": ("uint8", "a truth value of one byte"),
    "real": ("float32", "Fortran's `real`"), "integer": ("int32", "Fortran's `integer`"),
    "mpifloat": ("float32", "`MPI_FLOAT`"), "mpidouble": ("float64", "`MPI_DOUBLE`"), "mpiint": ("int32", "`MPI_INT`"),
    **{f"{c}{bits}": (f"{word}{bits}", f"`{c}{bits}`") for c, word in (("i", "int"), ("s", "int"), ("u", "uint"))
       for bits in (8, 16, 32, 64)},
    **{f"{word}{bits}t": (f"{word}{bits}", f"C's `{word}{bits}_t`") for word in ("int", "uint")
       for bits in (8, 16, 32, 64)},
}  # fmt: skip
_OPTIONS = {
    "bytes": "size", "nbytes": "size", "length": "size", "len": "size", "count": "size", "n": "size",
    "elements": "size", "messagesize": "size", "msgsize": "size", "buffersize": "size", "payload": "size",
    "volume": "size", "m": "size",
    "operation": "op", "reduction": "op", "reduceop": "op", "redop": "op", "operator": "op", "func": "op",
    "type": "dtype", "datatype": "dtype", "elementtype": "dtype", "precision": "dtype", "dt": "dtype",
    "counts": "weights", "sizes": "weights", "recvcounts": "weights", "sendcounts": "matrix", "splits": "weights",
    "demand": "matrix", "demands": "matrix", "trafficmatrix": "matrix", "weight": "weights", "before": "pre",
    "after": "post", "precondition": "pre", "postcondition": "post",
    "source": "root", "src": "root", "master": "root", "owner": "root", "from": "root", "to": "root", "dst": "root",
}  # fmt: skip
_OF_CLUSTERS = {
    "host": "hosts", "node": "hosts", "nodes": "hosts", "nodelist": "hosts", "nics": "nic", "hca": "nic", "hcas": "nic",
    "port": "nic", "ports": "nic", "ifname": "nic",
}  # fmt: skip
_DEFAULTS = {
    "bw": "bandwidth", "rate": "bandwidth", "speed": "bandwidth", "capacity": "bandwidth", "throughput": "bandwidth",
    "beta": "bandwidth", "linkbandwidth": "bandwidth", "lat": "latency", "delay": "latency", "alpha": "latency",
    "linklatency": "latency", "linkdelay": "latency", "gamma": "reduction", "reduce": "reduction",
    "addition": "reduction", "epsilon": "launch", "overhead": "launch", "startup": "launch", "kernel": "launch",
}  # fmt: skip


_FUNCTION_HABITS = {
    "len": "ranks(TOPOLOGY)", "size": "ranks(TOPOLOGY)", "count": "ranks(TOPOLOGY)", "numranks": "ranks(TOPOLOGY)",
    "nranks": "ranks(TOPOLOGY)", "log": "log2(n)", "int": "floor(x)", "round": "floor(x + 1/2)", "trunc": "floor(x)",
    "mod": "a mod b", "exp": "pow(base, exponent)", "ceiling": "ceil(x)", "maximum": "max(a, b)",
    "minimum": "min(a, b)",
}  # fmt: skip


def folded(word: str) -> str:
    """Return a word without case, ``-`` and ``_``.

    >>> folded("Fat-Tree") == folded("fat_tree")
    True
    """
    return word.lower().replace("-", "").replace("_", "")


def did_you_mean(word: str, known: Collection[str]) -> str | None:
    """Return a hint with the known name that has the same letters, or the nearest one; None if no name is near.

    >>> did_you_mean("BFB", ["bfb"]), did_you_mean("zzz", ["bfb"])
    ('did you mean `bfb`?', None)
    """
    if len(word) > _LONG_NAME or len(known) > _MANY_NAMES:
        return None
    match = _same(word, known) or next(iter(get_close_matches(word.lower(), sorted(known), n=1, cutoff=0.6)), None)
    return f"did you mean `{match}`?" if match else None


def nearest_node(name: str, known: Iterable[str]) -> str | None:
    """Return the name of a node that is nearest to ``name``; of many nodes, only among those with its beginning or end.

    >>> nearest_node("n001/gpu8", [f"n{host:03}/gpu{gpu}" for host in range(2) for gpu in range(8)])
    'n001/gpu7'
    """
    names = sorted(known)
    if len(name) > _LONG_NAME:
        return None
    if len(names) > _MANY_NAMES:
        half = (len(name) + 1) // 2
        names = [one for one in names if one[:half] == name[:half] or one[-half:] == name[-half:]][:_MANY_NAMES]
    return _same(name, names) or next(iter(get_close_matches(name, names, n=1, cutoff=0.6)), None)


def _same(word: str, known: Collection[str]) -> str | None:
    """Return the known name with the same letters."""
    if len(known) > _MANY_NAMES:
        return None
    return next((name for name in sorted(known) if folded(name) == folded(word)), None)


_LONG_NAME = 200  # no typing mistake is so long
_MANY_NAMES = 5000  # comparing more takes longer than everything else


def _topology_names() -> tuple[str, ...]:
    return (*FAMILIES, *OPERATORS)


def _exists(call: str) -> bool:
    name = call.partition("(")[0]
    return name in FAMILIES or name in OPERATORS


def _topologies(word: str) -> str | None:
    calls = [call for call in _TOPOLOGIES.get(folded(word), ()) if _exists(call)]
    if calls:
        return f"write {_either(calls)}"
    if ranks := _SWITCHED.get(folded(word)):
        return f"write it out: `rank gpu[{ranks}]; switch nv; for i in 0..{ranks} {{ link gpu[i] <-> nv : 900 GB/s; }}`"
    return None


def _either(calls: Iterable[str]) -> str:
    return " or ".join(f"`{call}`" for call in calls)


def _from(table: Mapping[str, str]) -> Callable[[str], str | None]:
    return lambda word: f"write `{table[folded(word)]}`" if folded(word) in table else None


def _dtypes(word: str) -> str | None:
    name = folded(word.rpartition(".")[2])
    found = _DTYPES.get(name)
    return f"{found[1]} is `{found[0]}`" if found else None


def _options(word: str) -> str | None:
    if word in ("bandwidth", "latency", "launch"):
        return f"`{word}` stands in the topology: `with {{ {word}: .. }}`"
    return _from(_OPTIONS)(word)


@frozen
class _Kind:
    """A kind of name: ``noun`` names one, ``habit`` returns the hint for a word from elsewhere."""

    noun: str
    habit: Callable[[str], str | None] = lambda word: None


#: kinds of names by the word with which messages ask for them
NEEDED: dict[str, _Kind] = {
    "topology": _Kind("a topology", _topologies),
    "collective": _Kind("a collective", _from(_COLLECTIVES)),
    "scheduler": _Kind("a scheduler", _from(_SCHEDULERS)),
    "target": _Kind("a target", _from(_TARGETS)),
    "operation": _Kind("an operation", _from(_OPERATIONS)),
    "element type": _Kind("an element type", _dtypes),
    "option": _Kind("an option of a collective", _options),
    "option of a cluster": _Kind("an option of a cluster", _from(_OF_CLUSTERS)),
    "default": _Kind("a default of links", _from(_DEFAULTS)),
    "function": _Kind("a function of numbers", _from(_FUNCTION_HABITS)),
}


@frozen
class Vocabulary:
    """The names of all kinds; ``schedulers`` and ``targets`` are those that the caller of the language knows.

    ``options`` returns what takes an option of a name, such as ``target `mpi-c```, or None.
    """

    schedulers: Collection[str] = ()
    targets: Collection[str] = ()
    options: Callable[[str], str | None] = lambda name: None

    def hint(self, word: str, need: str, known: Collection[str], called: bool = False) -> str | None:
        """Return what to write where a ``word`` stands that is none of the ``known`` names of the kind ``need``.

        ``called``: arguments follow it, so that of a topology only the name can be wrong.
        """
        if need == "topology" and not called and (family := _same(word, _topology_names())):
            return f"`{family}` is {self.kind_of(family)}; write `{example(family)}`"
        if same := _same(word, known):
            return f"did you mean `{same}`?"
        found, other = NEEDED[need].habit(word), self.kind_of(word, need)
        if found or other:
            return "; ".join(text for text in (f"`{word}` is {other}" if other else None, found) if text)
        return did_you_mean(word, known)

    def kind_of(self, word: str, need: str = "") -> str | None:
        """Return the kind of a word that is a name of another kind than ``need``.

        >>> Vocabulary(schedulers=["ring"]).kind_of("ring")
        'a scheduler'
        """
        kinds: dict[str, tuple[str, Collection[str]]] = {
            "collective": ("a collective", PREDEFINED), "scheduler": ("a scheduler", self.schedulers),
            "target": ("a target", self.targets), "topology": ("a graph family", tuple(FAMILIES.own)),
            "operator": ("an operator on topologies", OPERATORS), "operation": ("an operation", OPERATIONS),
            "option": ("an option of a collective", OPTIONS),
            "function": ("a function of numbers", FUNCTIONS), "group": ("a group", GROUPS), "unit": ("a unit", UNITS),
        }  # fmt: skip
        ignored = ("operator",) if need == "topology" else ()
        return next((noun for kind, (noun, names) in kinds.items()
                     if kind != need and kind not in ignored and word in names), None)  # fmt: skip
