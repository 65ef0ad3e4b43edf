"""The tree of PCIe behind a matrix: which devices share a switch, and which a CPU.

PIX, PXB, PHB and NODE are the levels of a tree, so each is an equivalence: devices that a chain of pairs with a level
or a closer one connects are in one class (NVML, `nvmlGpuTopologyLevel_t`). PHB and NODE both mean one CPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from collc.ir.frozen import frozen

from ..importing.figures import Gpu
from ..importing.host import joined, link_cpus, pcie_bandwidth
from ..importing.model import OPEN_END, Draft
from .matrix import Matrix, Pair
from .words import Level

__all__ = ["Classes", "add_nics", "add_paths", "classes"]


@frozen(eq=False)
class Classes:
    """The classes of devices at three levels: one PCIe switch, one tree of them, one CPU. Each device has a number."""

    switch: Sequence[int]
    tree: Sequence[int]
    cpu: Sequence[int]


def classes(draft: Draft, matrix: Matrix) -> Classes:
    """Return the classes of all devices; a pair that contradicts the others is a fault."""
    count = len(matrix.names)
    pix = joined(count, _pairs(matrix, Level.PIX))
    pxb = joined(count, _pairs(matrix, Level.PXB))
    known = _pairs(matrix, Level.NODE)
    cpu = joined(count, [*known, *_same_affinity(matrix), *_lost(draft, matrix)])
    _judge(draft, matrix, {Level.PIX: pix, Level.PXB: pxb, Level.NODE: cpu})
    return Classes(pix, pxb, cpu)


def _pairs(matrix: Matrix, level: Level) -> list[Pair]:
    return [pair for pair, found in matrix.levels.items() if found <= level]


def _same_affinity(matrix: Matrix) -> Iterable[Pair]:
    """Yield GPUs near the same CPUs, if NVLinks hide how far they are from each other, and no other cell tells."""
    near, far = [0] * len(matrix.names), [0] * len(matrix.names)
    for (i, j), level in matrix.levels.items():
        sets = near if level <= Level.NODE else far
        sets[i] |= 1 << j
        sets[j] |= 1 << i
    for i, j in combinations(matrix.gpus, 2):
        cpus = matrix.affinity.get(i)
        if cpus is None or cpus != matrix.affinity.get(j) or (i, j) in matrix.levels:
            continue
        if not (near[i] & far[j] or far[i] & near[j]):
            yield i, j


def _lost(draft: Draft, matrix: Matrix) -> list[Pair]:
    """Return pairs that put GPUs of which the text says nothing below the first CPU, and say so."""
    known = {device for pair in matrix.levels for device in pair} | set(matrix.affinity)
    lost = [gpu for gpu in matrix.gpus if gpu not in known]
    if lost and (len(lost) > 1 or known):
        what = "one CPU for the GPUs of which the text has no place on PCIe"
        draft.assume(what, "collc, the least that they need", matrix.span(lost[0]))
    return [(0, gpu) for gpu in lost if gpu]


def _judge(draft: Draft, matrix: Matrix, found: Mapping[Level, Sequence[int]]) -> None:
    """Report pairs that the text calls farther from each other than other pairs imply."""
    wrong = [
        (pair, level, implied)
        for pair, level in matrix.levels.items()
        if (implied := next((at for at, one in found.items() if one[pair[0]] == one[pair[1]]), Level.SYS)) < level
    ]
    if wrong:
        (i, j), level, implied = wrong[0]
        more = f", and {len(wrong) - 1} more pairs" if len(wrong) > 1 else ""
        message = (
            f"the matrix contradicts itself: {matrix.names[i]} and {matrix.names[j]} have {level.name}, "
            f"but other cells imply {implied.name}{more}"
        )
        draft.fault(message, matrix.cells[i, j].span)


# ---- the tree


def add_paths(draft: Draft, matrix: Matrix, kept: Sequence[int], gpu: Callable[[int], Gpu | None]) -> None:
    """Add CPUs, PCIe switches and the links from the kept devices to them."""
    found = classes(draft, matrix)
    tree = _Tree(draft, matrix, gpu(matrix.gpus[0]))
    below = _grouped(kept, found.cpu)
    names = _cpu_names(matrix, below)
    used = list[str]()
    for name, devices in zip(names, below, strict=True):
        if len(below) == 1 and len(_grouped(devices, found.tree)) == 1 and len(devices) > 1:
            tree.below(None, devices, found)
            continue
        used.append(draft.switch(name, matrix.span(devices[0])))
        for group in _grouped(devices, found.tree):
            tree.below(name, group, found)
    link_cpus(draft, used, gpu(matrix.gpus[0]))


class _Tree:
    """Adds PCIe switches and their links; switches are numbered in the order of the devices."""

    def __init__(self, draft: Draft, matrix: Matrix, gpu: Gpu | None):
        self.draft, self.matrix = draft, matrix
        self.bandwidth = pcie_bandwidth(draft, gpu)
        self.switches = 0

    def below(self, upper: str | None, devices: Sequence[int], found: Classes) -> None:
        """Add the devices of one tree of switches below a CPU, or below nothing."""
        if len(devices) == 1 and upper is not None:
            self._link(self.matrix.names[devices[0]], upper)
            return
        top = self._switch(upper, devices[0])
        groups = _grouped(devices, found.switch)
        for group in groups:
            lower = self._switch(top, group[0]) if 1 < len(group) < len(devices) else top
            for device in group:
                self._link(self.matrix.names[device], lower)

    def _switch(self, upper: str | None, first: int) -> str:
        name = self.draft.switch(f"pcie{self.switches}", self.matrix.span(first))
        self.switches += 1
        if upper is not None:
            self._link(name, upper)
        return name

    def _link(self, lower: str, upper: str) -> None:
        self.draft.link(lower, upper, self.bandwidth, label="PCIe")


def _grouped(devices: Iterable[int], numbers: Sequence[int]) -> list[list[int]]:
    """Return the devices of each class, in the order of the devices."""
    groups = defaultdict[int, list[int]](list)
    for device in devices:
        groups[numbers[device]].append(device)
    return list(groups.values())


def _cpu_names(matrix: Matrix, groups: Sequence[Sequence[int]]) -> list[str]:
    """Return the name of the CPU of each group: by its NUMA node if no other group has the same, else by a number."""
    nodes = [{matrix.affinity[i] for i in group if matrix.affinity.get(i, "").isdigit()} for group in groups]
    numbers = [int(next(iter(found))) if len(found) == 1 else None for found in nodes]
    taken = {number for number in numbers if number is not None and numbers.count(number) == 1}
    free = (number for number in range(len(groups) + len(taken)) if number not in taken)
    return [f"cpu{number if number in taken else next(free)}" for number in numbers]


# ---- NICs


def add_nics(draft: Draft, matrix: Matrix, bandwidth: Fraction) -> None:
    """Link all NICs to the fabric."""
    draft.switch(OPEN_END, matrix.span(matrix.nics[0]))
    for nic in matrix.nics:
        draft.link(matrix.names[nic], OPEN_END, bandwidth, label="NICs")
