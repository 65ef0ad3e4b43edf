"""The library of graph families and operators, listed without importing the modules that build them.

Each entry names a module here; its function of the entry's name builds the topology, and ``NAME_size`` returns
(nodes, links) from the same arguments without building anything, raising C0311 for arguments that make no graph.
Families number their ranks as vectors of coordinates, last coordinate fastest, and list links rank by rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from collc.ir.frozen import frozen
from collc.ir.registry import Registry

__all__ = ["FAMILIES", "FUNCTIONS", "OPERATORS", "Bandwidth", "Construction", "Elements", "Parameter"]


@frozen
class Bandwidth:
    """A bandwidth as an argument: bytes per second (unit ``"B/s"``) or multiples of a link's (unit ``"link"``)."""

    value: Fraction
    unit: str = "link"


@frozen
class Elements:
    """Nodes and links of a topology as an argument, by their numbers there."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]


class Parameter(NamedTuple):
    """One parameter, of a ``kind``.

    It is an ``integer`` of at least ``least``, a ``set`` of integers, a ``name`` (string), a ``group`` or a
    ``topology``. It may depend on the topology before it. Then it is a set of its ``ranks`` or of its ``parts`` (nodes
    and links), or its ranks in an ``order``. Numbers are a ``factor`` above 0 and at most 1, and a ``bandwidth`` (in
    B/s or in link units).

    The last ones may be ``optional``, and the last one may stand for one or more arguments (``many``).

    >>> Parameter("sizes", least=2, many=True).kind
    'integer'
    """

    name: str
    kind: str = "integer"
    least: int = 1
    optional: bool = False
    many: bool = False


class Construction(NamedTuple):
    """One function from arguments to a topology; ``module`` is one of this folder, or a plugin's full module name.

    >>> Construction("my_package.theta", (Parameter("n"),), "two ranks joined by three lines of n ranks").least
    1
    """

    module: str
    parameters: tuple[Parameter, ...]
    summary: str

    @property
    def least(self) -> int:
        """The fewest arguments it needs."""
        return sum(not p.optional for p in self.parameters)

    @property
    def most(self) -> int | None:
        """The most arguments it takes; None without a limit."""
        many = any(p.many for p in self.parameters)
        return None if many else len(self.parameters)

    def signature(self, name: str) -> str:
        """Return the call as documentation writes it.

        >>> FAMILIES["biring"].signature("biring"), FAMILIES["torus"].signature("torus")
        ('biring(m[, d])', 'torus(d, ..)')
        """
        return f"{name}({''.join(self._pieces())})"

    def _pieces(self) -> Iterator[str]:
        for i, p in enumerate(self.parameters):
            text = (
                f"{{{p.name}}}"
                if p.kind in ("set", "ranks", "parts", "order")
                else f'"{p.name}"'
                if p.kind == "name"
                else p.name
            )
            text = f"{', ' if i else ''}{text}{', ..' if p.many else ''}"
            yield f"[{text}]" if p.optional else text

    def parameter(self, index: int) -> Parameter:
        """Return the parameter that argument ``index`` belongs to."""
        return self.parameters[min(index, len(self.parameters) - 1)]


def _integers(text: str) -> tuple[Parameter, ...]:
    """Return integer parameters from their names; ``name>=k`` sets the least value."""
    pairs = (word.partition(">=") for word in text.split())
    return tuple(Parameter(name, least=int(least or 1)) for name, _, least in pairs)


_SIZES = (Parameter("d", many=True),)
_TOPOLOGY = Parameter("topology", "topology")
_BOXES = (Parameter("boxes"), Parameter("rails", optional=True))
_NVLS = (Parameter("boxes"), Parameter("rails", least=0, optional=True), Parameter("nvls", least=0, optional=True))
_RATIO = Parameter("ratio", optional=True)
_SEED, _HOSTS = Parameter("seed", least=0, optional=True), Parameter("hosts", least=0, optional=True)


def _ring() -> tuple[Parameter, ...]:
    return (Parameter("m", least=2), Parameter("d", optional=True))


#: functions of numbers and topologies, as documentation writes their calls
FUNCTIONS = {
    "ranks": "ranks(topology)", "min": "min(a, ..)", "max": "max(a, ..)", "abs": "abs(x)", "floor": "floor(x)",
    "ceil": "ceil(x)", "pow": "pow(base, exponent)", "log2": "log2(n)", "xor": "xor(a, b)",
    "count": "count(set)",
}  # fmt: skip


def _functions() -> Iterator[str]:
    """Yield the other names that are called like a family; plugins may not define them."""
    from collc.ir.group import GROUPS

    yield from (*OPERATORS, *GROUPS, *FUNCTIONS)


#: family -> its arguments and its summary
FAMILIES: Registry[Construction] = Registry("graph family", ("families",), {
    "complete": Construction("cayley", _integers("m"), "every rank linked to every other, K_m"),
    "complete_bipartite": Construction("cayley", _integers("d"), "two sides of d ranks, all linked across, K_d,d"),
    "hamming": Construction("cayley", _integers("n q>=2"), "q^n ranks, linked where one of n letters differs, H(n,q)"),
    "kautz": Construction("digraphs", _integers("d n>=0"), "Kautz digraph K(d,n) of d^n (d+1) ranks"),
    "generalized_kautz": Construction("digraphs", _integers("d m>=2"), "Imase-Itoh digraph of degree d on any m ranks"),
    "circulant": Construction(
        "cayley", (Parameter("m", least=2), Parameter("offsets", "set")), "i linked to i + a and i - a for offsets a"
    ),
    "directed_circulant": Construction(
        "cayley", (Parameter("m", least=2), Parameter("offsets", "set", optional=True)),
        "rank i linked to i + a for offsets a (default: 1 to m-2)",
    ),
    "biring": Construction("cayley", _ring(), "d/2 parallel rings of m ranks in both directions (default d: 2)"),
    "uniring": Construction("cayley", _ring(), "d parallel rings of m ranks in one direction (default d: 1)"),
    "shifted_ring": Construction("cayley", _integers("m>=2"), "two rings in both directions, the second in strides"),
    "torus": Construction("cayley", _SIZES, "grid of rings; a ring of 2 has two parallel links each way"),
    "mesh": Construction("grids", _SIZES, "grid without wrap-around links"),
    "twisted_torus": Construction("grids", _SIZES, "torus of sizes k, 2k; short rings shift the long ones by k"),
    "hypercube": Construction("cayley", _integers("n"), "2^n ranks, linked where one of n bits differs"),
    "twisted_hypercube": Construction("grids", _integers("n>=2"), "hypercube with two links of one square crossed"),
    "debruijn": Construction("digraphs", _integers("d>=2 n"), "de Bruijn digraph of d^n ranks, with self-loops"),
    "double_binary_tree": Construction(
        "trees", _integers("m>=2"), "two binary trees on m ranks; inner ranks of one are leaves of the other"
    ),
    "distance_regular": Construction(
        "distance_regular", (Parameter("name", "name"),), 'a distance-regular graph, such as "pg(2,3)"'
    ),
    "cayley": Construction(
        "groups", (Parameter("group", "group"), Parameter("generators", "set")),
        "a rank for every element x of a group, linked to x * g for every generator g",
    ),
    "hyperx": Construction("cayley", _SIZES, "grid whose every line is a complete graph; sizes may differ"),
    "hammingmesh": Construction(
        "switched", (*_integers("a b x y"), Parameter("ports", least=2, optional=True)),
        "x*y boards, each a mesh of a*b ranks; switches join the board edges of a line (default: 64 ports)",
    ),
    "fat_tree": Construction(
        "switched", (Parameter("k", least=2), _RATIO),
        "k^3/4 ranks under three levels of k-port switches, the top one oversubscribed ratio to 1",
    ),
    "leaf_spine": Construction(
        "switched", (*_integers("leaves hosts spines"), _RATIO),
        "leaf switches of `hosts` ranks each, linked to all spines, oversubscribed ratio to 1",
    ),
    "dragonfly": Construction(
        "switched", _integers("p a h"), "a*h+1 groups of a switches; a switch has p ranks and h links to other groups"
    ),
    "dragonfly_plus": Construction(
        "switched", (*_integers("p leaves spines h"), Parameter("groups", least=2, optional=True)),
        "groups of leaves and spines; a leaf has p ranks, a spine h links to other groups (default: spines*h+1 groups)",
    ),
    "slim_fly": Construction(
        "routers", (Parameter("q", least=3), _HOSTS),
        "2q^2 routers of diameter 2 for a prime power q; the ranks, or with `hosts` ranks each",
    ),
    "jellyfish": Construction(
        "routers", (Parameter("n"), Parameter("d", least=2), _SEED, _HOSTS),
        "n routers with d links each at random, by the seed; the ranks, or with `hosts` ranks each",
    ),
    "xpander": Construction(
        "routers", (Parameter("d", least=3), Parameter("lift"), _SEED, _HOSTS),
        "a random lift of the complete graph of d+1 routers, `lift` for each; the ranks, or with `hosts` ranks each",
    ),
    "polycirculant": Construction(
        "lifts", (Parameter("n", least=2), Parameter("offsets", "set", many=True)),
        "rank x linked to x + a and back for offsets a of set x mod m, of m sets",
    ),
    "directed_polycirculant": Construction(
        "lifts", (Parameter("n", least=2), Parameter("offsets", "set", many=True)),
        "rank x linked to x + a for offsets a of set x mod m, of m sets",
    ),
    "polarity": Construction(
        "polarities", _integers("n>=3 q>=2"),
        "generalized n-gon of order q (n 3, 4 or 6) by a polarity: 1 + q + .. + q^(n-1) ranks, diameter n-1",
    ),
    "modified_debruijn": Construction(
        "searched", _integers("d>=2 n"), "de Bruijn digraph with one cycle in place of self-loops and 2-cycles"
    ),
    "diamond": Construction("searched", (), "8 ranks of degree 2, bandwidth-optimal in 3 steps, not breadth first"),
    "dgx_a100": Construction("machines", _BOXES, "boxes of 8 GPUs: NVSwitch 300 GB/s, fabric or rails of NICs 25 GB/s"),
    "dgx_h100": Construction(
        "machines", _NVLS, "boxes of 8 GPUs: NVSwitch 450 GB/s, with nvls 1 in-network, fabric or rails of NICs 50 GB/s"
    ),
    "dgx_b200": Construction(
        "machines", _NVLS, "boxes of 8 GPUs: NVSwitch 900 GB/s, with nvls 1 in-network, fabric or rails of NICs 50 GB/s"
    ),
    "gb200_nvl72": Construction(
        "machines", (Parameter("racks"), *_NVLS[1:]),
        "racks of 72 GPUs: NVSwitch 900 GB/s, with nvls 1 in-network, fabric or rails of NICs 50 GB/s",
    ),
    "mi300x": Construction(
        "machines", (Parameter("boxes", optional=True), Parameter("rails", optional=True)),
        "boxes of 8 GPUs (default: 1), all linked at 64 GB/s; fabric or rails of NICs 50 GB/s",
    ),
    "tpu_v4": Construction(
        "machines", (*_integers("x y z"), Parameter("twist", least=0, optional=True)),
        "3D torus slice, links of 50 GB/s; wraps where all sizes are multiples of 4; twist 1 twists it",
    ),
    "mi250": Construction("machines", _integers("boxes"), "boxes of 16 dies: 7 links of 50 GB/s, fabric 16 GB/s"),
    "dgx1_v100": Construction("machines", (), "8 GPUs with 6 links of 25 GB/s each"),
}, of=Construction, reserved=_functions)  # fmt: skip

#: operator -> its arguments and its summary
OPERATORS: dict[str, Construction] = {
    "line": Construction(
        "operators", (_TOPOLOGY, Parameter("n", optional=True)), "a rank for every link, linked to the links after it"
    ),
    "degree": Construction("operators", (_TOPOLOGY, Parameter("n")), "n copies of every rank, linked as the ranks are"),
    "power": Construction("operators", (_TOPOLOGY, Parameter("n")), "Cartesian product of n copies"),
    "product": Construction("operators", (Parameter("topology", "topology", many=True),), "Cartesian product"),
    "transpose": Construction("operators", (_TOPOLOGY,), "every link reversed"),
    "bidirectional": Construction("operators", (_TOPOLOGY,), "every link and its reverse"),
    "subset": Construction(
        "operators", (_TOPOLOGY, Parameter("ranks", "ranks")),
        "the given ranks, the switches that still join nodes, and the links among them",
    ),
    "without": Construction(
        "operators", (_TOPOLOGY, Parameter("parts", "parts")),
        "the topology without some ranks, switches or links, such as `{3, 0 <-> 1}`",
    ),
    "degraded": Construction(
        "operators", (_TOPOLOGY, Parameter("parts", "parts"), Parameter("factor", "factor")),
        "some links, or all links of some nodes, with `factor` times their bandwidth",
    ),
    "relabel": Construction(
        "operators", (_TOPOLOGY, Parameter("ranks", "order")), "the ranks in another order: the set gives rank 0, 1, .."
    ),
    "inserted": Construction(
        "operators", (_TOPOLOGY, Parameter("parts", "parts"), Parameter("n", optional=True)),
        "n new ranks, linked to each other, in the middle of links such as `{0 <-> 1, 5 <-> 8}` (default: 1)",
    ),
    "in_network": Construction(
        "operators", (_TOPOLOGY, Parameter("switches", "parts")), "these switches multicast and reduce"
    ),
    "clustered": Construction(
        "clusters",
        (_TOPOLOGY, Parameter("boxes"), Parameter("bandwidth", "bandwidth"), Parameter("under", optional=True), _RATIO),
        "copies as boxes; ranks on one switch, or on leaves of `under` boxes each below an oversubscribed spine",
    ),
}  # fmt: skip
