"""Texts of NCCL's and RCCL's topology files as networks."""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.diagnostic import Source, Span, error
from collc.ir.shown import counted

from ..importing.figures import Figures
from ..importing.model import Draft, Imported
from .faults import report_faults
from .machine import Kind, Machine, machine
from .markup import Element, elements
from .names import name_devices
from .network import draw

__all__ = ["read_machine"]

_ROOT = "system"


def read_machine(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of one topology file.

    GPUs are ranks; CPUs, PCIe switches, NVSwitches and NICs are switches. Raises CollcError with all mistakes: C0927
    for text that is not made of elements, C0924 for elements and values that the format has not, C0930 to C0933.
    """
    draft = Draft("nccl-topo")
    top, around = elements(sources[0])
    system = _system(sources[0], top)
    _ignored(draft, around, [one for one in top if one is not system])
    found = machine(system, draft, figures.nic)
    if not draft.mistakes and not any(found.of(Kind.GPU)):
        _refuse_without_gpus(found, system, draft)
    if not draft.mistakes:
        gpus = name_devices(found, draft)
        links = draw(found, gpus, draft, figures)
        if not draft.mistakes:
            report_faults(found, gpus, links, draft)
    return draft.finish(system.span())


def _refuse_without_gpus(found: Machine, system: Element, draft: Draft) -> None:
    parts = [counted(len(list(found.of(kind))), name) for kind, name in ((Kind.CPU, "CPU"), (Kind.NIC, "NIC"))]
    hint = "NCCL adds the GPUs that it finds: dump what it has then, with NCCL_TOPO_DUMP_FILE"
    draft.wrong("C0932", f"found {' and '.join(parts)}, needed GPUs", system.span(), hint)


def _system(source: Source, top: Sequence[Element]) -> Element:
    for element in top:
        if element.tag == _ROOT:
            return element
    if not top:
        raise error("C0924", f"found no element, needed `<{_ROOT}>`", span=Span(source, 1, 1, 1, 2))
    hint = None
    if top[0].tag == "graphs":
        hint = "this is a graph file, which has rings and trees; NCCL_TOPO_DUMP_FILE names the topology file"
    raise error("C0924", f"found `<{top[0].tag[:40]}>`, needed `<{_ROOT}>`", span=top[0].span(), hint=hint)


def _ignored(draft: Draft, around: Sequence[Span], others: Sequence[Element]) -> None:
    for span in around:
        draft.warn("C0942", f"ignored text outside of `<{_ROOT}>`", span)
    for element in others:
        draft.warn("C0942", f"ignored `<{element.tag[:40]}>` beside `<{_ROOT}>`", element.span())
