"""Every graph family and operator of the language with small parameters, and every collective on them, as texts.

For tests and campaigns that try all of the language's networks: nothing here compiles anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import collc
from collc.ir.collective import KINDS, ROOTED

__all__ = ["EXPRESSIONS", "MOST_RANKS", "SIZES", "TARGETS", "collectives", "texts", "topologies"]

MOST_RANKS = 20

#: graph family or operator -> calls of it with small parameters, of at most MOST_RANKS ranks where there are any
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "complete": ("complete(1)", "complete(2)", "complete(3)", "complete(5)", "complete(8)"),
    "complete_bipartite": ("complete_bipartite(1)", "complete_bipartite(2)", "complete_bipartite(3)"),
    "hamming": ("hamming(1, 4)", "hamming(2, 3)", "hamming(3, 2)", "hamming(2, 4)"),
    "kautz": ("kautz(1, 1)", "kautz(2, 0)", "kautz(2, 1)", "kautz(2, 2)", "kautz(3, 1)"),
    "generalized_kautz": (
        "generalized_kautz(2, 5)", "generalized_kautz(2, 7)", "generalized_kautz(3, 10)", "generalized_kautz(4, 6)",
        "generalized_kautz(2, 17)",
    ),
    "circulant": (
        "circulant(5, {1, 2})", "circulant(7, {1, 3})", "circulant(8, {1, 4})", "circulant(9, {2, 3})",
        "circulant(12, {2, 3})", "circulant(16, {1, 6})",
    ),
    "directed_circulant": (
        "directed_circulant(3)", "directed_circulant(6)", "directed_circulant(7, {1, 2})",
        "directed_circulant(10, {1, 4, 6})",
    ),
    "biring": ("biring(2)", "biring(3)", "biring(6)", "biring(5, 4)", "biring(9)"),
    "uniring": ("uniring(2)", "uniring(5)", "uniring(4, 2)", "uniring(8)"),
    "shifted_ring": ("shifted_ring(5)", "shifted_ring(8)", "shifted_ring(11)"),
    "torus": (
        "torus(1)", "torus(4)", "torus(2, 2)", "torus(3, 2)", "torus(3, 3)", "torus(4, 3)", "torus(2, 2, 3)",
        "torus(4, 4)", "torus(3, 3, 2)", "torus(5, 4)",
    ),
    "mesh": ("mesh(3)", "mesh(2, 2)", "mesh(3, 3)", "mesh(3, 4)", "mesh(2, 2, 2)", "mesh(2, 7)", "mesh(4, 5)"),
    "twisted_torus": ("twisted_torus(2, 4)", "twisted_torus(3, 6)"),
    "hypercube": ("hypercube(1)", "hypercube(2)", "hypercube(3)", "hypercube(4)"),
    "twisted_hypercube": ("twisted_hypercube(2)", "twisted_hypercube(3)", "twisted_hypercube(4)"),
    "debruijn": ("debruijn(2, 1)", "debruijn(2, 2)", "debruijn(2, 3)", "debruijn(3, 2)", "debruijn(2, 4)"),
    "double_binary_tree": ("double_binary_tree(3)", "double_binary_tree(6)", "double_binary_tree(9)"),
    "distance_regular": ('distance_regular("octahedron")', 'distance_regular("k55-minus-matching")'),
    "cayley": (
        "cayley(cyclic(7), {1, 3})", "cayley(dihedral(4), {1, 2})", "cayley(abelian(3, 4), {1, 4, 8})",
        "cayley(dicyclic(3), {2, 7})", "cayley(alternating(4), {1, 3})", "cayley(symmetric(3), {1, 2})",
        "cayley(metacyclic(5, 4, 2), {1, 4})",
    ),
    "hyperx": ("hyperx(2, 3)", "hyperx(3, 4)", "hyperx(2, 2, 3)"),
    "hammingmesh": ("hammingmesh(1, 1, 2, 3)", "hammingmesh(2, 2, 2, 2)"),
    "fat_tree": ("fat_tree(2)", "fat_tree(4)", "fat_tree(4, 2)"),
    "leaf_spine": ("leaf_spine(2, 2, 1)", "leaf_spine(3, 2, 2)", "leaf_spine(2, 4, 2, 2)"),
    "dragonfly": ("dragonfly(1, 2, 1)", "dragonfly(2, 2, 1)"),
    "polycirculant": ("polycirculant(10, {1, 2}, {4})", "polycirculant(12, {1, 6}, {1}, {1})", "polycirculant(9, {2})"),
    "directed_polycirculant": (
        "directed_polycirculant(10, {1, 4}, {2, 5})", "directed_polycirculant(12, {1, 2}, {4}, {1})",
        "directed_polycirculant(9, {2, 5})",
    ),
    "modified_debruijn": ("modified_debruijn(2, 2)", "modified_debruijn(2, 3)", "modified_debruijn(2, 4)"),
    "diamond": ("diamond()",),
    "dgx_a100": ("dgx_a100(1)", "dgx_a100(2)", "dgx_a100(2, 2)"),
    "dgx_h100": ("dgx_h100(1)", "dgx_h100(2)"),
    "dgx_b200": ("dgx_b200(1)", "dgx_b200(2)"),
    "gb200_nvl72": ("gb200_nvl72(1)",),
    "mi300x": ("mi300x()", "mi300x(2)"),
    "mi250": ("mi250(1)",),
    "tpu_v4": ("tpu_v4(2, 2, 2)", "tpu_v4(1, 2, 4)"),
    "dragonfly_plus": ("dragonfly_plus(2, 2, 2, 1)", "dragonfly_plus(1, 2, 2, 2, 3)"),
    "slim_fly": ("slim_fly(3)",),
    "polarity": ("polarity(3, 2)", "polarity(3, 3)", "polarity(4, 2)"),
    "jellyfish": ("jellyfish(8, 3)", "jellyfish(12, 3, 5)", "jellyfish(5, 2, 1, 2)"),
    "xpander": ("xpander(3, 4)", "xpander(4, 3, 2)"),
    "dgx1_v100": ("dgx1_v100()",),
    "line": (
        "line(complete(3))", "line(complete(4))", "line(complete_bipartite(2), 2)", "line(debruijn(2, 2))",
        "line(diamond())",
    ),
    "degree": ("degree(uniring(3), 2)", "degree(complete(3), 3)", "degree(mesh(3), 2)"),
    "power": ("power(complete(3), 2)", "power(uniring(4), 2)", "power(mesh(2), 3)"),
    "product": (
        "product(complete(3), uniring(4))", "product(mesh(3), torus(3))", "product(diamond(), complete(2))",
    ),
    "transpose": ("transpose(generalized_kautz(2, 5))", "transpose(diamond())", "transpose(kautz(2, 2))"),
    "bidirectional": ("bidirectional(uniring(5))", "bidirectional(diamond())", "bidirectional(kautz(2, 2))"),
    "subset": (
        "subset(torus(3, 3), {0..7})", "subset(mesh(3, 3), {0, 1, 2, 3, 5, 6, 7, 8})",
        "subset(dgx_a100(2), {0..5, 8..13})", "subset(mi250(2), {0..8, 16..24})",
    ),
    "inserted": (
        "inserted(torus(3, 3), {0 <-> 1, 5 <-> 8})", "inserted(complete(4), {0 <-> 1, 2 <-> 3}, 2)",
        "inserted(uniring(3), {0 -> 1})",
    ),
    "without": (
        "without(torus(3, 3), {4})", "without(torus(4, 3), {0 <-> 1, 5 -> 4})", "without(dgx_a100(2), {gpu[0, 3]})",
        "without(mi300x(), {gpu[0, 1] <-> gpu[0, 2]})", "without(dgx_a100(2), {gpu[1, 2] <-> nv[1]})",
    ),
    "degraded": (
        "degraded(torus(3, 3), {0 <-> 1}, 1/2)", "degraded(dgx_a100(2), {gpu[0, 0] <-> ib}, 1/4)",
        "degraded(mi300x(), {gpu[0, 7]}, 1/2)",
    ),
    "in_network": ("in_network(dgx_a100(1), {nv[0]})", "in_network(dgx_a100(2), {nv[0], nv[1], ib})"),
    "relabel": ("relabel(torus(2, 3), {5, 3, 1, 0, 2, 4})", "relabel(diamond(), {7, 6, 5, 4, 3, 2, 1, 0})"),
    "clustered": (
        "clustered(complete(3), 3, 1/2)", "clustered(torus(2, 2), 4, 1, 2, 2)", "clustered(diamond(), 2, 1)",
    ),
}  # fmt: skip

SIZES = (None, "64 B", "1 KiB", "1 MiB")

TARGETS = (
    "mpi-c", "msccl-xml{runtime=executor}", "msccl-xml{runtime=msccl}", "msccl-xml{runtime=rccl}", "oneccl-xml", "ir",
    "nccl-graph", "mscclpp-json", "chakra",
)  # fmt: skip


def topologies(most: int = MOST_RANKS) -> Iterator[tuple[str, int]]:
    """Yield the expressions of topologies of at most so many ranks, each with its number of ranks."""
    for calls in EXPRESSIONS.values():
        for expression in calls:
            if _ranks(expression) <= most:
                yield expression, _ranks(expression)


@cache
def _ranks(expression: str) -> int:
    return collc.topology(expression).num_ranks


def collectives(ranks: int) -> list[tuple[str, int | None]]:
    """Return every collective with its root: nothing where it has none, else the first and the last rank."""
    roots = sorted({0, ranks - 1})
    return [(kind, root) for kind in KINDS for root in (roots if kind in ROOTED else [None])]


def texts(
    most: int = MOST_RANKS, sizes: Sequence[str | None] = SIZES, options: str = ""
) -> Iterator[tuple[str, str, int | None, str | None, str]]:
    """Yield (topology, collective, root, size, text) for every collective of every size on every topology.

    A text names its topology ``t`` and its collective ``c``; ``options`` are more of the collective's.
    """
    for expression, ranks in topologies(most):
        for kind, root in collectives(ranks):
            for size in sizes:
                given = [f"root: {root}"] * (root is not None) + [f"size: {size}"] * (size is not None)
                listed = ", ".join([*given, *([options] if options else [])])
                with_options = f" {{ {listed} }}" if listed else ""
                text = f"topology t = {expression};\ncollective c = {kind} on t{with_options};\n"
                yield expression, kind, root, size, text
