"""The figures of the paper: which networks and algorithms they show, and what its text says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import attrs

from .algorithms import EVERY, MIRRORED, PAPER, Algorithm
from .checks import MIB, Check, best_gain, fastest, gain, labels, megabytes, plateau, powers, rises, wins_up_to
from .networks import Curve, Network, curves, hammingmesh, hyperx, torus

__all__ = ["FIGURES", "Figure"]

All = Mapping[Network, Mapping[str, Curve]]
SIZES = tuple(powers(32, 512 * MIB))


@attrs.frozen
class Figure:
    """``statements`` yields the paper's statements, given the curves of every network by letter."""

    title: str
    networks: tuple[Network, ...]
    statements: Callable[[All], Iterator[Check]]
    algorithms: tuple[Algorithm, ...] = PAPER
    sizes: tuple[int, ...] = SIZES

    def curves(self) -> All:
        """Simulate; networks of three and more dimensions have no ring."""
        return {net: curves(net, self._shown(net)) for net in self.networks}

    def _shown(self, net: Network) -> list[Algorithm]:
        return [one for one in self.algorithms if one.letter != "H" or len(net.shape) == 2]


def _ends(net: Network, lines: Mapping[str, Curve]) -> Iterator[Check]:
    """Swing to 32 MiB, rings at 512 MiB: what all large tori of two dimensions have in common."""
    yield from labels(net, lines)
    yield wins_up_to(net, lines, 32 * MIB)
    winner = lines[fastest(lines, 512 * MIB)].algorithm
    yield Check(f"{net.name}: fastest at 512 MiB", "bucket or ring", winner.name, winner.letter in "BH")


def _figure_6(found: All) -> Iterator[Check]:
    ((net, lines),) = found.items()
    yield from _ends(net, lines)
    times = float(lines["D"].time(2 * MIB) / lines["S"].time(2 * MIB))
    yield Check("Swing over recursive doubling at 2 MiB", "2.0 to 2.4", f"{times:.2f}", 2 <= times <= 2.4)
    most, at = best_gain(lines, SIZES)
    yield Check("the greatest gain, about", "120 % at 2 MiB", f"{_percent(most)} at {megabytes(at)}",
                at == 2 * MIB and 1.1 <= most <= 1.3)  # fmt: skip
    small, _ = best_gain(lines, powers(32, 32 << 10))
    yield Check("gain up to 32 KiB, at most", "50 %", _percent(small), 0 < small <= 0.55, needed=False)
    later = [size for size in SIZES if fastest(lines, size) == "B"]
    yield Check(
        "bucket is fastest from", "128 MiB", megabytes(later[0]), later[0] in (64 * MIB, 128 * MIB), needed=False
    )
    share = lines["S"].goodput(512 * MIB) / net.peak
    yield Check("of the peak at 512 MiB", "77 %", f"{share:.0%}", abs(share - 0.77) < 0.01, needed=False)
    ahead = all(lines["S"].time(size) <= lines["M"].time(size) for size in SIZES)
    yield Check("mirrored doubling is nowhere faster", "yes", "yes" if ahead else "no", ahead)


def _figure_7(found: All) -> Iterator[Check]:
    for net, lines in found.items():
        yield wins_up_to(net, lines, 32 * MIB, needed=net.num_ranks >= 4096)
    gains = [best_gain(lines, SIZES)[0] for lines in found.values()]
    found_gains = ", ".join(map(_percent, gains))
    yield Check("the greatest gain grows with the network", "yes", found_gains, rises(gains), needed=False)
    least = min(gain(lines, size) for lines in found.values() for size in SIZES)
    yield Check("the least gain, about", "-20 %", _percent(least), -0.25 < least < 0)


def _figure_8(found: All) -> Iterator[Check]:
    for net, lines in found.items():
        least = min(gain(lines, size) for size in powers(32, MIB))
        what = f"{net.name}: Swing is fastest up to 1 MiB"
        yield Check(what, "yes", "yes" if least > 0 else "no", least > 0)
    small = [gain(lines, 32 << 10) for lines in found.values()]
    yield Check("the gain at 32 KiB falls with bandwidth", "yes", ", ".join(map(_percent, small)),
                rises(small[::-1]), needed=False)  # fmt: skip
    net, lines = list(found.items())[-1]
    yield wins_up_to(net, lines, 512 * MIB, needed=False)


def _figure_10(found: All) -> Iterator[Check]:
    for net, lines in found.items():
        yield from _ends(net, lines)
    most = max(best_gain(lines, SIZES)[0] for lines in found.values())
    yield Check("Swing is faster by up to", "3 times", f"{float(most) + 1:.2f} times", 1.7 < most < 2.3)


def _figure_11(found: All) -> Iterator[Check]:
    for net, lines in found.items():
        yield from labels(net, lines)
        if len(net.shape) > 2:
            yield wins_up_to(net, lines, 32 * MIB)
            yield wins_up_to(net, lines, 2048 * MIB, needed=False)
    most = max(best_gain(lines, SIZES)[0] for net, lines in found.items() if len(net.shape) > 2)
    yield Check("Swing is faster by up to", "2 times", f"{float(most) + 1:.2f} times", 0.5 < most < 1.3, needed=False)


def _figure_mesh(published: float, last: int) -> Callable[[All], Iterator[Check]]:
    """Figures 12 and 13: Swing is fastest up to ``last`` bytes, by up to ``published`` times."""

    def statements(found: All) -> Iterator[Check]:
        ((net, lines),) = found.items()
        yield from labels(net, lines)
        yield plateau(net, lines)
        yield wins_up_to(net, lines, last, needed=False)
        yield _times(lines, published)

    return statements


def _figure_14(found: All) -> Iterator[Check]:
    ((net, lines),) = found.items()
    xi = lines["S"].variants[1].congestion
    yield Check("congestion of Swing", "1 - 1/p", str(xi), xi == 1 - Fraction(1, net.num_ranks))
    hop = float(lines["B"].time(0) / lines["B"].variants[0].num_steps * 10**9)
    yield Check("a message to a neighbour", "914 ns", f"{hop:.1f} ns", abs(hop - 914) < 1)
    yield wins_up_to(net, lines, 512 * MIB)
    yield _times(lines, 3)


def _times(lines: Mapping[str, Curve], gain: float) -> Check:
    most, at = best_gain(lines, SIZES)
    found = f"{float(most) + 1:.2f} times at {megabytes(at)}"
    return Check("Swing is faster by up to", f"{gain:g} times", found, abs(float(most) + 1 - gain) < 0.3, needed=False)


def _nothing(found: All) -> Iterator[Check]:
    return iter(())


def _percent(value: Fraction) -> str:
    return f"{float(value):+.0%}"


FIGURES: dict[str, Figure] = {
    "6": Figure("a torus of 64x64", (torus(64, 64),), _figure_6, (*PAPER, MIRRORED)),
    "7": Figure("square tori", tuple(torus(d, d) for d in (8, 16, 32, 64, 128)), _figure_7),
    "8": Figure(
        "links of other speeds", tuple(torus(8, 8, gbps=g) for g in (100, 200, 400, 800, 1600, 3200)), _figure_8
    ),
    "10": Figure("rectangular tori", (torus(64, 16), torus(128, 8), torus(256, 4)), _figure_10),
    "11": Figure("more dimensions", (torus(8, 8), torus(8, 8, 8), torus(8, 8, 8, 8)), _figure_11,
                 sizes=tuple(powers(32, 2048 * MIB))),
    "12": Figure("Hx2Mesh of 4,096", (hammingmesh(2, 32),), _figure_mesh(2.5, 512 * MIB)),
    "13": Figure("Hx4Mesh of 4,096", (hammingmesh(4, 16),), _figure_mesh(2.5, 64 * MIB)),
    "14": Figure("HyperX of 4,096", (hyperx(64, 64),), _figure_14),
    "64x64": Figure("a torus of 64x64, every algorithm", (torus(64, 64),), _nothing, EVERY),
}  # fmt: skip
