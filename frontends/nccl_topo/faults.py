"""What looks broken in a machine: a device that differs from its peers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

from collc.ir.shown import counted

from ..importing.figures import bandwidth_text
from ..importing.model import Draft
from ..importing.planned import pcie
from .gpu_links import GpuLinks
from .machine import Device, Kind, Machine

__all__ = ["report_faults"]

_Value = TypeVar("_Value", int, Fraction)


def report_faults(machine: Machine, gpus: Sequence[Device], links: GpuLinks, draft: Draft) -> None:
    """Add a warning for each GPU, NIC, link and host that differs from most of its peers."""
    _missing_links(gpus, links, draft)
    _one_sided_links(links, draft)
    _slow_slots(gpus, draft)
    _slow_slots([nic for nic in machine.of(Kind.NIC) if nic.card is not None], draft)
    _fewer_nics(machine, draft)
    _islands(machine, links, draft)


def _usual(values: Iterable[_Value], half_suffices: bool = False) -> _Value | None:
    """Return the value that more than half of some things have, or half of them; None if there is none.

    If two values have half each, the larger one counts.
    """
    counts = Counter(values)
    value, number = max(counts.items(), key=lambda one: (one[1], one[0]), default=(None, 0))
    return value if 2 * number > counts.total() or (half_suffices and 2 * number == counts.total()) else None


def _missing_links(gpus: Sequence[Device], links: GpuLinks, draft: Draft) -> None:
    ends = {gpu.above if gpu.above is not None and gpu.above.kind is Kind.CARD else gpu: gpu for gpu in gpus}
    usual = _usual((links.counts.get(end, 0) for end in ends), half_suffices=not links.between) or 0
    for end, gpu in ends.items():
        count = links.counts.get(end, 0)
        if not count and any(links.counts.values()):
            draft.fault(f"`{end.name}` has no {links.label}, other GPUs have", gpu.element.span())
        elif count < usual:
            found = f"{counted(count, 'link')} of {links.label}"
            draft.fault(f"`{end.name}` has {found}, other GPUs have {usual}", gpu.element.span())


def _one_sided_links(links: GpuLinks, draft: Draft) -> None:
    for a, b, there, back in links.pairs():
        if there == back:
            continue
        if not back:
            message = f"`{a.name}` lists {links.label} to `{b.name}`, which lists none back"
        else:
            rates = f"{bandwidth_text(there)} to `{b.name}` and {bandwidth_text(back)} back"
            message = f"`{a.name}` has {links.label} of {rates}"
        draft.fault(message, links.rows[a, b].span("target"))


def _slow_slots(devices: Sequence[Device], draft: Draft) -> None:
    """Compare the slots of devices of one model: their own speeds and widths, whatever is above them."""
    models = defaultdict[object, list[tuple[Device, Fraction]]](list)
    for device in devices:
        card = device.card
        if card is not None and card.get("link_speed") and card.get("link_width"):
            models[_model(device)].append((device, _slot(device)))
    for alike in models.values():
        usual = _usual((rate for _, rate in alike), half_suffices=True)
        for device, rate in alike:
            if usual is not None and rate < usual and device.card is not None:
                card = device.card
                found = f"{card.get('link_speed')} x{card.get('link_width')}"
                message = f"`{device.name}` is linked at {found}: {bandwidth_text(rate)}, others of its kind at"
                draft.fault(f"{message} {bandwidth_text(usual)}", card.span("link_speed"))


def _model(device: Device) -> tuple[object, ...]:
    card = device.card or device.element
    kind = tuple(card.get(name) for name in ("class", "vendor", "device"))
    return (*kind, device.element.get("speed"))


def _slot(device: Device) -> Fraction:
    card = device.card or device.element
    width = card.get("link_width") or ""
    return pcie(card.get("link_speed"), int(width) if width.isdecimal() and width.isascii() and len(width) < 4 else 0)[
        0
    ]


def _fewer_nics(machine: Machine, draft: Draft) -> None:
    counts = Counter(nic.host for nic in machine.of(Kind.NIC))
    usual = _usual(counts[host] for host in range(machine.hosts)) or 0
    for cpu in {cpu.host: cpu for cpu in reversed(list(machine.of(Kind.CPU)))}.values():
        if counts[cpu.host] < usual:
            message = f"host{cpu.host} has {counted(counts[cpu.host], 'NIC')}, other hosts have {usual}"
            draft.fault(message, cpu.element.span())


def _islands(machine: Machine, links: GpuLinks, draft: Draft) -> None:
    """Report hosts that no link joins to others."""
    joined = {device.host for device in (*machine.of(Kind.NIC), *links.switched)}
    for cpu in machine.of(Kind.CPU):
        if machine.hosts > 1 and cpu.host not in joined:
            joined.add(cpu.host)
            draft.fault(f"host{cpu.host} has no NIC and no NVSwitch: no route leads to it", cpu.element.span())
