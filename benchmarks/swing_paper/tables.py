"""Table 2 of the paper, and the exact congestion of tori: shares of the vector on links, no sizes, no latencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import log2

import attrs

import collc
from collc.backends.simulator import Simulation, simulate
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner, RecursiveDoubling
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing

from .algorithms import allreduce
from .checks import Check
from .published import CONGESTION, LIMITS

__all__ = ["COLUMNS", "closed_form", "congestion", "limit", "table_2"]

#: the columns of the published table of congestion
COLUMNS: dict[str, TorusPass] = {
    "Swing (B)": Swing(variant="bandwidth"), "Swing (L)": Swing(variant="latency"),
    "doubling (B)": Rabenseifner(), "doubling (L)": RecursiveDoubling(),
    "mirrored (B)": Rabenseifner(mirrored="neg"), "mirrored (L)": RecursiveDoubling(mirrored="neg"),
    "reflected (B)": Rabenseifner(mirrored="reflect"), "reflected (L)": RecursiveDoubling(mirrored="reflect"),
}  # fmt: skip


def simulated(algorithm: TorusPass, shape: Sequence[int]) -> Simulation:
    """Return an allreduce on a torus."""
    net = collc.topology(f"torus({', '.join(map(str, shape))})")
    return simulate(algorithm.messages(allreduce(net)))


# ---- congestion


def congestion() -> Iterator[Check]:
    """Yield every entry of the table of congestion: the exact fraction here has the decimals there."""
    for shape, row in CONGESTION.items():
        for (name, algorithm), printed in zip(COLUMNS.items(), row, strict=True):
            if printed:
                value = simulated(algorithm, shape).congestion
                decimals = len(printed.partition(".")[2])
                agrees = abs(value - Fraction(printed)) <= Fraction(1, 2 * 10**decimals)
                yield Check(f"{'x'.join(map(str, shape))}, {name}", printed, str(value), agrees)


def closed_form(side: int, dimensions: int) -> Fraction:
    """Return Swing's congestion on a square torus whose side is a power of two (section 4.1 of the paper).

    (1 - 2^-D) sum of 2^(-kD) delta(k), where delta(k) = (2^(k+1) + (-1)^k) / 3 is the distance in substep k.
    """
    terms = (Fraction(2 ** (k + 1) + (-1) ** k, 3 * 2 ** (k * dimensions)) for k in range(side.bit_length() - 1))
    return (1 - Fraction(1, 2**dimensions)) * sum(terms, Fraction(0))


def limit(dimensions: int) -> Fraction:
    """Return what the closed form tends to: both of its geometric series summed to the end."""
    near, far = Fraction(2, 2**dimensions), Fraction(-1, 2**dimensions)
    return (1 - Fraction(1, 2**dimensions)) * (2 / (1 - near) + 1 / (1 - far)) / 3


# ---- Table 2


@attrs.frozen
class Row:
    """The paper's deficiencies of an algorithm, as functions of D, d and p, for large p; ``bound``: at most these."""

    name: str
    algorithm: TorusPass
    latency: float
    bandwidth: float
    congestion: float
    bound: bool = False


def table_2() -> Iterator[Check]:
    """Yield the entries for a large torus of each number of dimensions, and the limits of Swing's congestion."""
    for dimensions, side in ((2, 64), (3, 16), (4, 8)):
        for row in rows(side, dimensions):
            yield from _entries(row, (side,) * dimensions)
    for dimensions, (value, printed) in LIMITS.items():
        found = limit(dimensions)
        yield Check(f"D = {dimensions}: Swing (B), Xi of large tori", f"{printed}; {value}", str(found), found == value)


def rows(side: int, dimensions: int) -> list[Row]:
    """Return the rows of the table for one torus; ring only where there are two dimensions."""
    p, d, D = side**dimensions, side, dimensions
    logs = log2(p)
    ring = [Row("ring", Ring(), 2 * p / logs, 1, 1)] if D == 2 else []
    return [
        *ring,
        Row("doubling (L)", RecursiveDoubling(), 1, D * logs, 2 * D * d, bound=True),
        Row("doubling (B)", Rabenseifner(), 2, 2 * D, (2**D - 1) / (2**D - 2)),
        Row("bucket", Bucket(), 2 * D * d / logs, 1, 1),
        Row("Swing (L)", Swing(variant="latency"), 1, D * logs, 4 / 3 * D * d, bound=True),
        Row("Swing (B)", Swing(variant="bandwidth"), 2, 1, float(closed_form(side, dimensions))),
    ]


def _entries(row: Row, shape: tuple[int, ...]) -> Iterator[Check]:
    """Yield Lambda, Psi and Xi. The paper leaves out terms of 1/d and 1/p.

    Its Xi of what exchanges everything sums over the steps that Psi counts too, so it is beside Psi Xi, as a bound: the
    last step's messages divide. In more dimensions than two it counts the steps of two, which is too few. Its Psi of
    Swing there is that of one port.
    """
    one, where = simulated(row.algorithm, shape), f"{'x'.join(map(str, shape))}, {row.name}"
    latency = one.latency_deficiency or 0.0
    yield Check(f"{where}: Lambda", f"{row.latency:.4g}", f"{latency:.4g}", _near(latency, row.latency, shape[0]))
    psi, xi = one.bandwidth_deficiency, one.congestion_deficiency or Fraction(0)
    if row.bound:
        yield Check(f"{where}: Psi", f"<= {row.bandwidth:.4g}", str(psi), psi <= row.bandwidth)
        both, flat = one.congestion, len(shape) == 2
        yield Check(f"{where}: Psi Xi", f"<= {row.congestion:.4g}", str(both), both <= row.congestion, needed=flat)
    else:
        yield Check(f"{where}: Psi", f"{row.bandwidth:.4g}", str(psi), _near(float(psi), row.bandwidth, shape[0]))
        yield Check(f"{where}: Xi", f"{row.congestion:.4g}", str(xi), _near(float(xi), row.congestion, shape[0]))


def _near(found: float, published: float, side: int) -> bool:
    return published * (1 - 2 / side) <= found <= published * 1.01
