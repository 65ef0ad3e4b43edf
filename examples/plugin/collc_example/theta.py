"""A graph family: a function that builds it, and one that says how large it is without building it."""

from itertools import pairwise

from collc.ir.topology import Topology


def theta(n: int) -> Topology:
    """Return two ranks, 0 and 1, joined by three lines of n ranks each."""
    lines = [[0, *range(2 + line * n, 2 + (line + 1) * n), 1] for line in range(3)]
    edges = [edge for line in lines for edge in pairwise(line)]
    return Topology.from_links("theta", 2 + 3 * n, sorted([*edges, *((b, a) for a, b in edges)]))


def theta_size(n: int) -> tuple[int, int]:
    """Return the numbers of nodes and links."""
    return 2 + 3 * n, 6 * (n + 1)
