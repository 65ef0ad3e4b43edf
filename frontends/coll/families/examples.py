"""A call of each family and operator, as a file writes it, for hints."""

from __future__ import annotations

from . import FAMILIES, OPERATORS

__all__ = ["EXAMPLES", "example"]

#: a call of each family and operator that many people try first
EXAMPLES = {
    "biring": "biring(8)", "uniring": "uniring(8)", "torus": "torus(4, 4)", "mesh": "mesh(4, 4)",
    "hypercube": "hypercube(3)", "complete": "complete(8)", "fat_tree": "fat_tree(4)", "kautz": "kautz(2, 2)",
    "leaf_spine": "leaf_spine(4, 8, 2)", "dragonfly": "dragonfly(2, 4, 2)", "dgx_a100": "dgx_a100(2)",
    "dgx_h100": "dgx_h100(2)", "dgx1_v100": "dgx1_v100()", "mi250": "mi250(2)", "diamond": "diamond()",
    "double_binary_tree": "double_binary_tree(8)", "circulant": "circulant(8, {1, 3})", "debruijn": "debruijn(2, 3)",
    "generalized_kautz": "generalized_kautz(2, 8)", "hyperx": "hyperx(4, 4)", "line": "line(biring(4))",
    "product": "product(torus(3, 3), complete(2))", "complete_bipartite": "complete_bipartite(4)",
    "distance_regular": 'distance_regular("petersen")', "twisted_torus": "twisted_torus(4, 8)",
    "hammingmesh": "hammingmesh(2, 2, 2, 2)", "degree": "degree(biring(4), 2)", "power": "power(biring(4), 2)",
    "transpose": "transpose(uniring(4))", "bidirectional": "bidirectional(uniring(4))",
    "subset": "subset(torus(3, 3), {0..6})", "without": "without(torus(4, 4), {3, 0 <-> 1})",
    "degraded": "degraded(torus(4, 4), {0 <-> 1}, 1/2)", "relabel": "relabel(uniring(4), {3, 1, 0, 2})",
    "inserted": "inserted(torus(4, 4), {0 <-> 1, 5 <-> 9})", "polycirculant": "polycirculant(10, {1, 2}, {4})",
    "directed_polycirculant": "directed_polycirculant(10, {1, 4}, {2, 5})",
    "polarity": "polarity(3, 5)", "slim_fly": "slim_fly(5)", "jellyfish": "jellyfish(16, 4, 1)", 
    "xpander": "xpander(4, 4)",
    "dragonfly_plus": "dragonfly_plus(2, 2, 2, 1)", "dgx_b200": "dgx_b200(2)", "gb200_nvl72": "gb200_nvl72(2)",
    "mi300x": "mi300x(2)", "tpu_v4": "tpu_v4(4, 4, 8)", "clustered": "clustered(torus(3, 3), 4, 1/2)",
}  # fmt: skip


def example(name: str) -> str:
    """Return a call of a family or operator as a file writes it; its signature if none is kept.

    >>> example("torus"), example("hamming")
    ('torus(4, 4)', 'hamming(n, q)')
    """
    if name in EXAMPLES:
        return EXAMPLES[name]
    entry = OPERATORS.get(name) or FAMILIES[name]
    return entry.signature(name)
