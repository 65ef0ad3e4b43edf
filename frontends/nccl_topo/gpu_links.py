"""The links of GPUs besides PCIe: NVLink to GPUs, switches and CPUs, xGMI, and NVLink-C2C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import attrs

from ..importing.figures import Figures, Gpu, bandwidth_text
from ..importing.model import Draft
from ..importing.model_links import NO_LINKS, NO_LINKS_HINT, links_of_model
from ..importing.planned import nvlink, xgmi
from .attributes import integer, quantity
from .machine import Device, Kind, Machine, bus_number
from .markup import Element

__all__ = ["SWITCH", "GpuLinks", "gpu_links"]

#: the switch that stands for all NVSwitches of a file
SWITCH = "nvswitch"
_MOST_COUNT = 1000
_MOST_RATE = 10**9  # MB/s
_ROWS = {"nvlink": "NVLink", "xgmi": "xGMI"}
_RATE_HINT = "`--gpu MODEL` takes the nominal bandwidth of the model"


@attrs.define(eq=False)
class GpuLinks:
    """The links of GPUs, in bytes per second; the end of a link is a GPU, or the card with several parts of one.

    ``between`` has each direction of the links between GPUs, ``switched`` the links to the NVSwitch, ``sockets`` those
    to CPUs. ``counts`` has the number of links of each end, and ``rows`` the first row of each direction.
    """

    between: dict[tuple[Device, Device], Fraction] = attrs.field(factory=dict)
    switched: dict[Device, Fraction] = attrs.field(factory=dict)
    sockets: dict[tuple[Device, str], Fraction] = attrs.field(factory=dict)
    counts: dict[Device, int] = attrs.field(factory=dict)
    rows: dict[tuple[Device, Device], Element] = attrs.field(factory=dict)
    label: str = "NVLink"

    def pairs(self) -> Iterator[tuple[Device, Device, Fraction, Fraction]]:
        """Yield each pair of GPUs with links once, with the bandwidth there and back."""
        seen = set[tuple[Device, Device]]()
        for (a, b), bandwidth in self.between.items():
            if (a, b) not in seen:
                seen.add((b, a))
                yield a, b, bandwidth, self.between.get((b, a), Fraction(0))

    def draw(self, draft: Draft) -> None:
        """Add the links to a draft; a pair is one duplex link if both directions are equal."""
        for end, bandwidth in self.switched.items():
            draft.link(end.name, SWITCH, bandwidth, label=self.label)
        for a, b, there, back in self.pairs():
            if there == back:
                draft.link(a.name, b.name, there, label=self.label)
                continue
            for one, other, bandwidth in ((a, b, there), (b, a, back)):
                if bandwidth:
                    draft.link(one.name, other.name, bandwidth, duplex=False, label=self.label)
        for (end, label), bandwidth in self.sockets.items():
            draft.link(end.name, _socket(end).name, bandwidth, label=label)


def gpu_links(machine: Machine, gpus: Sequence[Device], draft: Draft, figures: Figures) -> GpuLinks:
    """Return the links that the rows of the GPUs list, or those of the model that the user gives."""
    reader = _Rows(machine, gpus, draft, figures.gpu)
    for end, gpu in reader.ends.items():
        for row in gpu.element.children:
            reader.read(end, gpu, row)
    reader.leave_out_single()
    if not reader.found:
        _unlisted(machine, list(reader.ends), reader.links, draft, figures.gpu)
    return reader.links


class _Rows:
    def __init__(self, machine: Machine, gpus: Sequence[Device], draft: Draft, model: Gpu | None):
        self.draft, self.model, self.links = draft, model, GpuLinks()
        self.found = False
        self.ends: dict[Device, Device] = {}
        self.places: dict[tuple[int, int], Device] = {}
        for gpu in gpus:
            end = gpu.above if gpu.above is not None and gpu.above.kind is Kind.CARD else gpu
            self.ends.setdefault(end, gpu)  # parts of a GPU list the same links
            card = gpu.card or gpu.element
            self.places.setdefault((gpu.host, bus_number(card.get("busid") or "")), end)

    def read(self, end: Device, gpu: Device, row: Element) -> None:
        if row.tag == "c2c":
            self.found = True
            self._socket(end, row)
        elif row.tag in _ROWS:
            self.found = True
            count = quantity(self.draft, row, "count", _MOST_COUNT)
            if count:
                self._row(end, gpu, row, count)

    def leave_out_single(self) -> None:
        """Leave out the NVSwitch if a single GPU is linked to it, since no route passes it."""
        for end in list(self.links.switched) if len(self.links.switched) == 1 else []:
            message = f"ignored NVLinks of `{end.name}` to NVSwitches: no other GPU of the file has any"
            self.draft.warn("C0942", message, self.ends[end].element.span())
            del self.links.switched[end]

    def _socket(self, end: Device, row: Element) -> None:
        count, rate = quantity(self.draft, row, "count", _MOST_COUNT), quantity(self.draft, row, "bw", _MOST_RATE)
        if count * rate:
            key = end, "NVLink-C2C"
            self.links.sockets[key] = self.links.sockets.get(key, Fraction(0)) + count * rate * 10**6

    def _row(self, end: Device, gpu: Device, row: Element, count: int) -> None:
        """Add one row of links: to the NVSwitch, to a GPU, or to the CPU, by the class of the target."""
        target = self.places.get((end.host, bus_number(row.get("target") or "")))
        kind = (row.get("tclass") or "").lower()
        if not kind and target is None:
            self.draft.wrong("C0924", f"found `{row.tag}` without `tclass`", row.span())
            return
        links = self.links
        if not kind or kind.startswith(("0x03", "0x12")):
            if target is None or target is end:
                self._ignore(end, row, "itself" if target else f"`{(row.get('target') or '')[:40]}`")
            else:
                self._pair(end, target, row, count, count * self._rate(gpu, row))
            return
        bandwidth = count * self._rate(gpu, row)
        links.counts[end] = links.counts.get(end, 0) + count
        if kind.startswith("0x068001"):
            key = end, f"{_ROWS[row.tag]} to CPUs"
            links.sockets[key] = links.sockets.get(key, Fraction(0)) + bandwidth
        else:
            links.switched[end] = links.switched.get(end, Fraction(0)) + bandwidth

    def _ignore(self, end: Device, row: Element, what: str) -> None:
        reason = "" if what == "itself" else ": the file has no GPU of this bus id"
        self.draft.warn("C0942", f"ignored links of `{end.name}` to {what}{reason}", row.span("target"))

    def _pair(self, end: Device, target: Device, row: Element, count: int, bandwidth: Fraction) -> None:
        links, key = self.links, (end, target)
        links.label = _ROWS[row.tag]
        links.between[key] = links.between.get(key, Fraction(0)) + bandwidth
        links.counts[end] = links.counts.get(end, 0) + count
        links.rows.setdefault(key, row)

    def _rate(self, gpu: Device, row: Element) -> Fraction:
        """Return the bandwidth of one link: of the model that the user gives, or what NCCL and RCCL plan with."""
        name = _ROWS[row.tag]
        if self.model is not None:
            self.draft.note(f"{name}: {bandwidth_text(self.model.link)} a link ({self.model.source})")
            return self.model.link
        if row.tag == "xgmi":
            gcn = gpu.element.get("gcn") or ""
            rate, of = xgmi(gcn), f"RCCL's planning value for {f'gcn {gcn[:20]}' if gcn else 'unknown GPUs'}"
        else:
            sm = integer(self.draft, gpu.element, "sm") or 0
            rate, of = nvlink(sm), f"NCCL's planning value for sm {sm}"
        self.draft.assume(f"{bandwidth_text(rate)} for each {name}", f"{of}, below nominal", row.span(), _RATE_HINT)
        return rate


def _socket(end: Device) -> Device:
    """Return the CPU that a device is below."""
    while end.above is not None:
        end = end.above
    return end


# ---- files without the links of GPUs


def _unlisted(machine: Machine, ends: Sequence[Device], links: GpuLinks, draft: Draft, model: Gpu | None) -> None:
    """Take the links of the given model, for a file that lists none."""
    if len(ends) < 2:
        return
    known = links_of_model(model, len(ends))
    span = ends[0].element.span()
    if known is None or model is None or (known.pair and machine.hosts > 1):
        source = "it names GPUs only as PCI devices" if machine.hints else "the file lists none"
        draft.assume(NO_LINKS, source, span, NO_LINKS_HINT)
        return
    draft.assume(known.what, model.source, span)
    if known.switched:
        links.switched.update(dict.fromkeys(ends, known.switched))
        return
    links.label = "xGMI"
    for a, b in combinations(ends, 2):
        links.between[a, b] = links.between[b, a] = known.pair
