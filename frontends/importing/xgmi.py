"""The links between GPUs of AMD, as `rocm-smi` and `amd-smi` print them: what each pair has, and the network of it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import combinations

from collc.ir.diagnostic import CollcError, Span
from collc.ir.shown import listed, some

from .figures import Figures, Gpu, bandwidth_text, gpu_named
from .host import joined, link_cpus, pcie_bandwidth
from .model import Draft, Imported

__all__ = ["Box", "Place", "finished"]

Pair = tuple[int, int]
#: where something stands; computed only for messages
Place = Callable[[], Span | None]

_WEIGHT_OF_A_LINK = 15  # of the kernel, for each xGMI link on the route
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
_NUMBER = re.compile(r"\d{1,9}")
_MEGABYTE = 10**6
_MOST_ODD = 8
_MOST_WRONG = 20
#: models with one link to each other GPU; others may have several to some
_ONE_LINK = ("mi300x", "mi325x", "mi350x")
#: architecture -> one of its models; all of them have the same links
_BY_ARCHITECTURE = {"gfx908": "mi100", "gfx90a": "mi250", "gfx942": "mi300x", "gfx950": "mi350x"}


class Box:
    """One machine while its text is read: GPUs in order, and what the tables say of each ordered pair.

    ``kinds`` are link types as printed, ``weights`` and ``hops`` numbers, ``bandwidths`` the largest bandwidth in
    bytes per second, 0 for GPUs without a direct link. ``nodes`` are NUMA nodes.
    """

    def __init__(self, draft: Draft, span: Span | None = None):
        self.draft, self.span = draft, span
        self.gpus: list[str] = []
        self.kinds: dict[Pair, tuple[str, Place]] = {}
        self.weights: dict[Pair, int] = {}
        self.hops: dict[Pair, int] = {}
        self.bandwidths: dict[Pair, Fraction] = {}
        self.disabled: dict[Pair, Place] = {}
        self.nodes: dict[int, int] = {}
        self.models: dict[int, str] = {}

    def put(self, what: str, pair: Pair, text: str, place: Place) -> None:
        """Store a cell of a table: ``kind``, ``weight``, ``hops``, ``bandwidth`` or ``access``.

        Other tables and cells without a value are skipped; C0924 for a cell that is not understood.
        """
        if pair[0] == pair[1] or text in ("N/A", "", "None"):
            return
        match what:
            case "kind":
                self._put_kind(pair, text, place)
            case "weight" | "hops":
                if _NUMBER.fullmatch(text):
                    (self.weights if what == "weight" else self.hops)[pair] = int(text)
                else:
                    self._wrong(text, "a weight" if what == "weight" else "a number of hops", place)
            case "bandwidth":
                if found := _RANGE.fullmatch(text):
                    self.bandwidths[pair] = Fraction(int(found[2]) * _MEGABYTE)
                else:
                    self._wrong(text, "a bandwidth such as 50000-50000", place)
            case "access" if text in ("DISABLED", "False"):
                self.disabled[pair] = place

    def _put_kind(self, pair: Pair, text: str, place: Place) -> None:
        if text in ("XGMI", "PCIE", "UNKNOWN"):
            self.kinds[pair] = text, place
        else:
            self._wrong(text, "XGMI or PCIE", place)

    def _wrong(self, text: str, needed: str, place: Place) -> None:
        if len(self.draft.mistakes) < _MOST_WRONG:  # a place takes time to compute
            self.draft.wrong("C0924", f"found `{text}`, needed {needed}", place())

    def name(self, gpu: int, text: str) -> None:
        """Store the name or the architecture of a GPU; the first that is a known model counts."""
        if gpu not in self.models:
            known = _BY_ARCHITECTURE.get(text.lower(), text)
            with suppress(CollcError):
                self.models[gpu] = gpu_named(known).name


def finished(box: Box, figures: Figures) -> Imported:
    """Return the network of a machine; raise CollcError with all mistakes.

    C0962 if the text has neither link types nor bandwidths, C0923 if it has no bandwidths and the model of the GPUs is
    unknown.
    """
    draft = box.draft
    for name in box.gpus:
        draft.rank(name, box.span)
    if box.gpus and len(box.gpus) > 1 and not box.kinds and not any(box.bandwidths.values()):
        hint = "print all tables: `rocm-smi --showtopo` or `amd-smi topology`"
        draft.wrong("C0962", "found neither link types nor bandwidths between GPUs", box.span, hint)
    if draft.mistakes or not box.gpus:
        return draft.finish(box.span)
    pairs = _Pairs(box)
    _link_directly(pairs, figures)
    if not draft.mistakes and pairs.need_host():
        _add_host(box, pairs, figures)
    _judge(pairs)
    figures.require_within(len(draft.ranks) + len(draft.switches), 2 * len(draft.cables), box.span)
    return draft.finish(box.span)


class _Pairs:
    """The unordered pairs of GPUs: what both directions say, and which have a direct link."""

    def __init__(self, box: Box):
        self.box = box
        self.all: list[Pair] = list(combinations(range(len(box.gpus)), 2))
        self.odd = Counter[str]()
        self.measured = any(box.bandwidths.values())
        self.closest = min((weight for pair in self.all if (weight := self.weight(pair))), default=0)
        self.linked: dict[Pair, Fraction] = {}

    def kind(self, pair: Pair) -> str:
        """Return the link type of a pair, PCIE if the two directions differ; empty if the text has none."""
        there, back = self.box.kinds.get(pair), self.box.kinds.get(pair[::-1])
        if there and back and there[0] != back[0]:
            return "PCIE"
        found = there or back
        return found[0] if found else ""

    def weight(self, pair: Pair) -> int:
        """Return the weight of a pair of xGMI, 0 if the text has none."""
        if self.kind(pair) not in ("XGMI", ""):
            return 0
        return self.box.weights.get(pair) or self.box.weights.get(pair[::-1], 0)

    def is_direct(self, pair: Pair) -> bool:
        """Return whether a pair has a direct link: a bandwidth, else the smallest weight, else one hop.

        One hop alone only says that the route is of xGMI (ROCm, `amdsmi_topo_get_link_type`).
        """
        box = self.box
        if self.kind(pair) not in ("XGMI", ""):
            return False
        if self.measured:
            return bool(self.bandwidth(pair))
        if self.kind(pair) == "":
            return False
        if self.closest:
            return self.weight(pair) <= max(self.closest, _WEIGHT_OF_A_LINK)
        return (box.hops.get(pair) or box.hops.get(pair[::-1], 1)) == 1

    def bandwidth(self, pair: Pair) -> Fraction:
        """Return the bandwidth of a pair in each direction, the smaller one if they differ."""
        found = [self.box.bandwidths[one] for one in (pair, pair[::-1]) if one in self.box.bandwidths]
        return min(found, default=Fraction(0))

    def need_host(self) -> bool:
        """Return whether some pair has PCIe, or links of xGMI alone do not connect all GPUs."""
        apart = len(set(joined(len(self.box.gpus), self.linked))) > 1
        return apart or any(self.kind(pair) == "PCIE" for pair in self.all if pair not in self.linked)

    def names(self, pair: Pair) -> str:
        """Return the two GPUs of a pair for a message."""
        return f"{self.box.gpus[pair[0]]} and {self.box.gpus[pair[1]]}"

    def report(self, kind: str, message: str, place: Place) -> None:
        """Report a fault of a pair; of many of one kind, the first ones only."""
        self.odd[kind] += 1
        if self.odd[kind] <= _MOST_ODD:
            self.box.draft.fault(message, place())


# ---- links


def _link_directly(pairs: _Pairs, figures: Figures) -> None:
    """Add the links of xGMI."""
    direct = [pair for pair in pairs.all if pairs.is_direct(pair)]
    box = pairs.box
    if not direct:
        return
    if pairs.measured:
        box.draft.note("xGMI: the bandwidth of each pair is the larger one that the text has, in MB/s")
        for pair in direct:
            _link(pairs, pair, pairs.bandwidth(pair))
        return
    try:
        missing = "found xGMI links without their bandwidth"
        gpu = _model(box, figures) or figures.require_gpu(missing, box.span, "mi300x")
    except CollcError as failure:
        box.draft.take(failure)
        return
    box.draft.note(f"xGMI: {bandwidth_text(gpu.link)} for each link ({gpu.source})")
    degree = Counter(gpu for pair in direct for gpu in pair)
    if gpu.name not in _ONE_LINK and set(degree.values()) != {gpu.links}:
        what = f"one link for each pair of GPUs with xGMI; a {gpu.name} has {gpu.links}"
        hint = "`rocm-smi --shownodesbw` and `amd-smi topology` print the bandwidth of each pair"
        box.draft.assume(what, "the text has no numbers of links", box.span, hint)
    for pair in direct:
        _link(pairs, pair, gpu.link)


def _link(pairs: _Pairs, pair: Pair, bandwidth: Fraction) -> None:
    a, b = (pairs.box.gpus[i] for i in pair)
    pairs.box.draft.link(a, b, bandwidth, label="xGMI")
    pairs.linked[pair] = bandwidth


def _model(box: Box, figures: Figures) -> Gpu | None:
    """Return the model of the GPUs: as the user gives it, or as the text names it."""
    if figures.gpu or not box.models:
        return figures.gpu
    return gpu_named(box.models[min(box.models)])


# ---- the host


def _add_host(box: Box, pairs: _Pairs, figures: Figures) -> None:
    """Add CPUs, one for each NUMA node, and the PCIe links of all GPUs to them."""
    gpu = _model(box, figures)
    groups = _below_cpus(box, pairs)
    bandwidth = pcie_bandwidth(box.draft, gpu)
    for name, members in groups.items():
        box.draft.switch(name, box.span)
        for member in members:
            box.draft.link(box.gpus[member], name, bandwidth, label="PCIe")
    link_cpus(box.draft, list(groups), gpu)


def _below_cpus(box: Box, pairs: _Pairs) -> Mapping[str, Sequence[int]]:
    """Return the GPUs below each CPU: by NUMA node, else by hops, of which two lead through one CPU."""
    groups = defaultdict[str, list[int]](list)
    count = len(box.gpus)
    if len(box.nodes) == count:
        for gpu in range(count):
            groups[f"cpu{box.nodes[gpu]}"].append(gpu)
        return groups
    near = joined(
        count, (pair for pair in pairs.all if min(box.hops.get(pair, 2), box.hops.get(pair[::-1], 2)) <= 2)
    )  # fmt: skip
    if not box.hops:
        box.draft.assume("one CPU for all GPUs", "the text has no NUMA nodes", box.span)
    order = list(dict.fromkeys(near))
    for gpu in range(count):
        groups[f"cpu{order.index(near[gpu])}"].append(gpu)
    return groups


# ---- faults


def _judge(pairs: _Pairs) -> None:
    """Report what looks broken: directions that differ, GPUs without the links of their peers, disabled links."""
    box = pairs.box
    for pair in pairs.all:
        _judge_directions(pairs, pair)
    for pair, place in box.disabled.items():
        if (min(pair), max(pair)) in pairs.linked and pair[0] < pair[1]:
            message = f"{pairs.names(pair)} have an xGMI link, but no access to each other"
            pairs.report("disabled", message, place)
    degree = Counter(dict.fromkeys(range(len(box.gpus)), 0))
    degree.update(gpu for pair in pairs.linked for gpu in pair)
    if not pairs.linked:
        return
    without = [box.gpus[gpu] for gpu, count in degree.items() if not count]
    if without:
        verb, owner = ("has", "its") if len(without) == 1 else ("have", "their")
        box.draft.fault(f"{some(without)} {verb} no xGMI links, {owner} peers have some", box.span)
    _judge_mesh(pairs, degree)


def _judge_directions(pairs: _Pairs, pair: Pair) -> None:
    box, back = pairs.box, pair[::-1]
    there, other = box.kinds.get(pair), box.kinds.get(back)
    if there and other and there[0] != other[0]:
        message = f"{pairs.names(pair)} have {there[0]} in one direction and {other[0]} in the other"
        pairs.report("kinds", f"{message}; the network has PCIE", other[1])
    if box.bandwidths.get(pair) != box.bandwidths.get(back) and pair in box.bandwidths and back in box.bandwidths:
        found = listed([bandwidth_text(box.bandwidths[one]) for one in (pair, back)])
        pairs.report("bandwidths", f"{pairs.names(pair)} have {found} in their two directions", lambda: box.span)


def _judge_mesh(pairs: _Pairs, degree: Counter[int]) -> None:
    """Report pairs without a link if at least half of the GPUs are linked to all others."""
    count = sum(1 for links in degree.values() if links)
    whole = sum(links == count - 1 for links in degree.values())
    missing = [pair for pair in pairs.all if pair not in pairs.linked and degree[pair[0]] and degree[pair[1]]]
    if count > 3 and missing and 2 * whole >= count:
        names = some([pairs.names(pair) for pair in missing])
        pairs.box.draft.fault(f"these GPUs have no xGMI link, unlike all others: {names}", pairs.box.span)
