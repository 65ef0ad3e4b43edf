"""NVLinks: how fast each is, which GPUs are linked to a switch and which to each other, and what looks broken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

from collc.ir.diagnostic import CollcError, Span
from collc.ir.frozen import frozen
from collc.ir.shown import counted, some

from ..importing.figures import GPUS, Figures, Gpu, bandwidth_text
from ..importing.model import Draft
from .matrix import Matrix
from .status import Status
from .words import gpu_number

__all__ = ["Links", "add_nvlinks"]

Number = TypeVar("Number", int, Fraction)

#: No GPU has more NVLinks, so a GPU with more in its row is linked to a switch.
_MOST_LINKS = max(gpu.links for gpu in GPUS.values())
_NVSWITCH = "nvswitch"
#: From this number on, GPUs with the same number of NVLinks to each other have a switch between them.
_SWITCHED = 8
#: models that only bridges link
_BRIDGED = ("a30", "a40", "a6000", "p100")


@frozen(eq=False)
class Links:
    """The NVLinks of a machine: the matrix, the status of the links by number of the GPU, and what the user gives."""

    matrix: Matrix
    status: Mapping[int, Status]
    figures: Figures

    def status_of(self, gpu: int) -> Status | None:
        """Return the status of a GPU by its index in the matrix."""
        return self.status.get(gpu_number(self.matrix.names[gpu]) or 0)

    def model(self, gpu: int) -> Gpu | None:
        """Return the model of a GPU: as the user gives it, or as the text names it."""
        status = self.status_of(gpu)
        return self.figures.gpu or (status.model if status else None)

    def speed(self, gpu: int) -> Fraction:
        """Return the bandwidth of one NVLink of a GPU; raise C0923 if no text and no option has it."""
        status = self.status_of(gpu)
        if status and status.active:
            return _common(status.active)
        model = self.model(gpu)
        if model is None:
            pair = next(pair for pair in self.matrix.nvlinks if gpu in pair)
            cell = self.matrix.cells[pair]
            model = self.figures.require_gpu(f"found `{cell}` without the speed of an NVLink", cell.span)
        return model.link

    def most(self, gpu: int) -> int:
        """Return how many NVLinks a GPU has at most."""
        status, model = self.status_of(gpu), self.model(gpu)
        listed = len(status.links) if status and status.complete else 0
        return max(listed, model.links if model else 0) or _MOST_LINKS


def add_nvlinks(draft: Draft, links: Links) -> None:
    """Add the NVLinks of a matrix to the network; mistakes and faults go into the draft."""
    matrix = links.matrix
    if not matrix.nvlinks:
        return
    try:
        for gpu in sorted({gpu for pair in matrix.nvlinks for gpu in pair}):
            links.speed(gpu)
    except CollcError as failure:
        draft.take(failure)
        return
    _note(draft, links)
    if not _fitting(draft, links):
        return
    groups = _groups(matrix)
    switched = [group for group in groups if _is_switched(links, group)]
    counts = dict[int, int]()
    for group in groups:
        if group in switched:
            name = _NVSWITCH if len(switched) == 1 else f"{_NVSWITCH}{switched.index(group)}"
            counts |= _switched(draft, links, group, name)
        else:
            counts |= _direct(draft, links, group)
    _judge(draft, links, groups, counts)


def _note(draft: Draft, links: Links) -> None:
    for gpu in sorted({gpu for pair in links.matrix.nvlinks for gpu in pair}):
        status, model = links.status_of(gpu), links.model(gpu)
        speed = bandwidth_text(links.speed(gpu))
        if status and status.active:
            draft.note(f"NVLink: {speed} for each link, as `nvidia-smi nvlink -s` prints")
        elif model:
            draft.note(f"NVLink: {speed} for each link ({model.source})")


def _fitting(draft: Draft, links: Links) -> bool:
    """Judge numbers of NVLinks that are larger than what the model has: one mistake for all of them."""
    counts = links.matrix.nvlinks
    wrong = [(i, j) for (i, j), count in counts.items() if count > min(links.most(i), links.most(j))]
    if wrong:
        i, j = wrong[0]
        most, model = min(links.most(i), links.most(j)), links.model(i)
        limit = f"the {model.name} has {most}" if model and model.links == most else f"a GPU has at most {most}"
        more = f", and so do {counted(len(wrong) - 1, 'more pair')}" if len(wrong) > 1 else ""
        names = f"{links.matrix.names[i]} and {links.matrix.names[j]}"
        hint = "is `--gpu` the model of these GPUs?" if links.figures.gpu else None
        message = f"{names} have {counted(counts[i, j], 'NVLink')}{more}, {limit}"
        draft.wrong("C0961", message, links.matrix.cells[i, j].span, hint)
    return not wrong


def _groups(matrix: Matrix) -> list[list[int]]:
    """Return the GPUs that NVLinks connect, directly or not."""
    peers = defaultdict[int, list[int]](list)
    for i, j in matrix.nvlinks:
        peers[i].append(j)
        peers[j].append(i)
    groups, seen = list[list[int]](), set[int]()
    for gpu in matrix.gpus:
        if gpu in seen or gpu not in peers:
            continue
        group, open = {gpu}, [gpu]
        while open:
            more = [peer for peer in peers[open.pop()] if peer not in group]
            group.update(more)
            open += more
        seen |= group
        groups.append(sorted(group))
    return groups


def _is_switched(links: Links, group: Sequence[int]) -> bool:
    """Return whether a switch links the GPUs of a group.

    It does if a GPU has more NVLinks in its row than in all, or if eight or more GPUs have the same number to each
    other. Fewer GPUs with all of their NVLinks to each other are a part of such a machine, unless the model is one
    that bridges link.
    """
    counts = links.matrix.nvlinks
    found = [counts.get(pair, 0) for pair in combinations(group, 2)]
    total = _totals(links, group)
    if any(total[gpu] > links.most(gpu) for gpu in group):
        return True
    if len(set(found)) > 1:
        return False
    model = links.model(group[0])
    whole = model is not None and model.name not in _BRIDGED and found[0] == model.links
    return len(group) >= _SWITCHED or whole


def _totals(links: Links, group: Sequence[int]) -> Counter[int]:
    total = Counter[int]()
    for i, j in combinations(group, 2):
        count = links.matrix.nvlinks.get((i, j), 0)
        total[i] += count
        total[j] += count
    return total


def _switched(draft: Draft, links: Links, group: Sequence[int], switch: str) -> dict[int, int]:
    """Link each GPU to the switch; return how many NVLinks each has."""
    draft.switch(switch, links.matrix.span(group[0]))
    counts = dict[int, int]()
    for gpu in group:
        count = max(links.matrix.nvlinks.get((min(gpu, peer), max(gpu, peer)), 0) for peer in group if peer != gpu)
        status = links.status_of(gpu)
        if status and status.active and status.complete:
            count, bandwidth = len(status.active), sum(status.active, Fraction(0))
        else:
            bandwidth = count * links.speed(gpu)
        counts[gpu] = count
        label = f"NVLink to the switch, {bandwidth_text(links.speed(gpu))} for each link"
        draft.link(links.matrix.names[gpu], switch, bandwidth, label=label)
    _missing_pairs(draft, links, group, counts)
    return counts


def _missing_pairs(draft: Draft, links: Links, group: Sequence[int], counts: Mapping[int, int]) -> None:
    """Report pairs that have no NVLinks, while a switch links both GPUs."""
    names = links.matrix.names
    pairs = [pair for pair in combinations(group, 2) if pair not in links.matrix.nvlinks]
    if pairs:
        listed = some([f"{names[i]} and {names[j]}" for i, j in pairs])
        cell = links.matrix.cells.get(pairs[0], links.matrix.columns[pairs[0][0]])
        draft.fault(f"the matrix has no NVLinks between {listed}, but the switch links them", cell.span)


def _direct(draft: Draft, links: Links, group: Sequence[int]) -> dict[int, int]:
    """Link the pairs of a group; return how many NVLinks each GPU has."""
    names = links.matrix.names
    for i, j in combinations(group, 2):
        count = links.matrix.nvlinks.get((i, j), 0)
        if count:
            speed = min(links.speed(i), links.speed(j))
            label = f"NVLink between GPUs, {bandwidth_text(speed)} for each link"
            draft.link(names[i], names[j], count * speed, label=label)
    return dict(_totals(links, group))


def _judge(draft: Draft, links: Links, groups: Sequence[Sequence[int]], counts: Mapping[int, int]) -> None:
    """Report GPUs that have fewer or slower NVLinks than their peers."""
    names = links.matrix.names
    without = [gpu for gpu in links.matrix.gpus if gpu not in counts]
    if without:
        verb, owner = ("has", "its") if len(without) == 1 else ("have", "their")
        listed = some([names[gpu] for gpu in without])
        draft.fault(f"{listed} {verb} no NVLinks, {owner} peers have some", links.matrix.span(without[0]))
    fewer = set[int]()
    for group in groups:
        usual = _common([counts[gpu] for gpu in group])
        for gpu in group:
            if len(group) > 2 and counts[gpu] < usual:
                fewer.add(gpu)
                found = counted(counts[gpu], "NVLink")
                draft.fault(f"{names[gpu]} has {found}, its peers have {usual}", _span(links, gpu))
    _judge_status(draft, links, fewer)


def _span(links: Links, gpu: int) -> Span:
    status = links.status_of(gpu)
    return status.span if status and status.listed else links.matrix.span(gpu)


def _judge_status(draft: Draft, links: Links, fewer: Collection[int]) -> None:
    """Report NVLinks that are inactive or slow, if those of most GPUs are not; ``fewer`` are GPUs that are reported."""
    listed = {gpu: one for gpu in links.matrix.gpus if (one := links.status_of(gpu)) and one.complete}
    if not listed:
        return
    active = _common([len(status.active) for status in listed.values()])
    speed = _common([speed for status in listed.values() for speed in status.active] or [Fraction(0)])
    for gpu, status in listed.items():
        name = links.matrix.names[gpu]
        if len(status.active) < active and gpu not in fewer:
            message = f"{name} has {counted(len(status.active), 'active NVLink')}, its peers have {active}"
            draft.fault(message, status.span)
        slow = [number for number, found in status.links.items() if 0 < found < speed]
        if slow:
            numbers = some([f"link {number}" for number in slow])
            found = bandwidth_text(min(status.active))
            draft.fault(f"{numbers} of {name} is slow: {found}, not {bandwidth_text(speed)}", status.span)


def _common(values: Sequence[Number]) -> Number:
    """Return the most common of some values, the largest of several."""
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value))
