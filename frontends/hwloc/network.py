"""A machine as hwloc sees it as a network: GPUs are ranks, all other devices are switches."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from collc.ir.diagnostic import Source
from collc.ir.shown import counted, some

from ..importing.figures import Figures, bandwidth_text
from ..importing.model import OPEN_END, Draft, Imported
from ..importing.model_links import NO_LINKS, NO_LINKS_HINT, links_of_model
from ..importing.planned import SLOWEST_SOCKETS, between_sockets
from ..importing.wires import without_wires
from .distances import Matrix, matrices
from .objects import Kind, Machine, Node, infos, machine
from .text import Text

__all__ = ["read_machine"]

_MOST_LINKS = 400_000
#: the switch that stands for all NVSwitches
_NVSWITCH = "nvswitch"
_XGMI_CONSTANT = 100_000 * 10**6


def read_machine(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of one file of hwloc.

    A bandwidth of 0 for NICs leaves them out. Raises CollcError with all mistakes: C0927 for text that is not XML,
    C0924 for values that the format has not, C0932 for a machine without GPUs, C0930, C0931 and C0933.
    """
    draft, text = Draft("hwloc"), Text(sources[0])
    root = text.root
    if root.tag != "topology":
        draft.wrong("C0924", f"found `<{str(root.tag)[:40]}>`, needed `<topology>`", text.span(root))
        return draft.finish()
    found = machine(text, draft)
    if figures.nic == 0:
        found.nodes = [node for node in found.nodes if node.kind is not Kind.NIC]
    if not draft.mistakes and not any(found.of(Kind.GPU)):
        _refuse_without_gpus(found, text, draft)
    links = matrices(text, found, draft)
    if not draft.mistakes:
        _Drawing(found, text, draft, figures).run(links)
    return draft.finish(text.span(root))


def _refuse_without_gpus(found: Machine, text: Text, draft: Draft) -> None:
    packages = found.counts.get("Package", 0) + found.counts.get("Socket", 0)
    parts = [counted(packages, "CPU package"), counted(len(list(found.of(Kind.NIC))), "NIC")]
    hint = "a host without GPUs is one rank: import the description of the fabric, such as Slurm's topology.conf"
    message = f"found {' and '.join(parts)}, needed GPUs: ranks inside a machine are its GPUs"
    draft.wrong("C0932", message, text.span(text.root), hint)


class _Drawing:
    def __init__(self, found: Machine, text: Text, draft: Draft, figures: Figures):
        self.machine, self.text, self.draft, self.figures = found, text, draft, figures
        self.gpus = sorted(found.of(Kind.GPU), key=lambda gpu: gpu.order)
        self.above = {node: node.above for node in found.nodes if node.above is not None}
        self.bandwidth = {node: node.bandwidth for node in self.above}

    def run(self, links: Sequence[Matrix]) -> None:
        nodes = without_wires(self.machine.nodes, self.above, self.bandwidth, set(self.machine.of(Kind.BRIDGE)))
        linked = [node for matrix in links for pair in matrix.links for node in pair]
        used = {self.above[node] for node in nodes if node in self.above} | set(linked)
        cpus = [node for node in nodes if node.kind is Kind.CPU and node in used]
        if len(self.gpus) == 1 and not any(self.machine.of(Kind.NIC)):  # no route passes the CPU
            nodes, cpus, self.above, links = self.gpus, [], {}, []
        nics = list(self.machine.of(Kind.NIC))
        self._declare([*cpus, *(node for node in nodes if node.kind in (Kind.BRIDGE, Kind.NIC))])
        if len(cpus) * (len(cpus) - 1) + 4 * len(nodes) > _MOST_LINKS:
            self.draft.wrong("C0933", f"found more than {_MOST_LINKS} links", self.text.span(self.text.root))
            return
        self._draw_matrices(links)
        self._draw_slots(nodes)
        self._draw_sockets(cpus)
        self._draw_nics(nics)
        self._report_slots()

    def _declare(self, switches: Iterable[Node]) -> None:
        for gpu in self.gpus:
            self.draft.rank(gpu.name, self.text.span(gpu.element))
        same = Counter[str]()
        for node in switches:
            same[node.name] += 1
            if node.kind is Kind.BRIDGE and same[node.name] > 1:
                node.name += f"#{same[node.name]}"
            self.draft.switch(node.name, self.text.span(node.element))

    # ---- links between GPUs

    def _draw_matrices(self, links: Sequence[Matrix]) -> None:
        if not any(matrix.links for matrix in links):
            self._draw_model()
            return
        for matrix in links:
            rates = self._rates(matrix)
            self.draft.note(f"{matrix.label}: the bandwidths that the file lists.")
            self._draw_pairs(matrix, rates)
            self._report_missing(matrix, rates)

    def _rates(self, matrix: Matrix) -> dict[tuple[Node, Node], Fraction]:
        """Return the links of a matrix with all NVSwitches as one node, in the place of the first."""
        switch = next((node for pair in matrix.links for node in pair if node.kind is Kind.NVSWITCH), None)
        rates = defaultdict[tuple[Node, Node], Fraction](Fraction)
        for (a, b), rate in matrix.links.items():
            one = switch if a.kind is Kind.NVSWITCH and switch else a
            other = switch if b.kind is Kind.NVSWITCH and switch else b
            if one is not other:
                rates[one, other] += self._given(matrix, rate)
        if switch is not None:
            switch.name = _NVSWITCH
            self._assume_one_switch(matrix)
        return self._without_single(dict(rates), switch)

    def _without_single(
        self, rates: dict[tuple[Node, Node], Fraction], switch: Node | None
    ) -> dict[tuple[Node, Node], Fraction]:
        """Return the links without those to the NVSwitch if they are of a single GPU."""
        ends = {node for pair in rates if switch in pair for node in pair if node is not switch}
        if len(ends) != 1:
            return rates
        [end] = ends
        message = f"ignored NVLinks of `{end.name}` to NVSwitches: no other GPU of the file has any"
        self.draft.warn("C0942", message, self.text.span(end.element))
        return {pair: rate for pair, rate in rates.items() if switch not in pair}

    def _given(self, matrix: Matrix, rate: Fraction) -> Fraction:
        """Return the bandwidth of a link: hwloc writes one constant for all links by xGMI."""
        if matrix.label != "xGMI" or rate != _XGMI_CONSTANT:
            return rate
        model = self.figures.gpu
        if model is not None:
            self.draft.note(f"xGMI: {bandwidth_text(model.link)} a link ({model.source})")
            return model.link
        what, hint = "100 GB/s for each xGMI link", "give the model of the GPUs: `--gpu mi300x`"
        self.draft.assume(what, "hwloc's constant for all models", self.text.span(matrix.element), hint)
        return rate

    def _assume_one_switch(self, matrix: Matrix) -> None:
        """Say that NVSwitches are joined, if no GPU is linked to all of them."""
        ends = defaultdict[Node, set[Node]](set)
        for a, b in matrix.links:
            if b.kind is Kind.NVSWITCH:
                ends[a].add(b)
        switches = set[Node]().union(*ends.values())
        if any(found != switches for found in ends.values()):
            what = "links between the NVSwitches that carry what all GPUs send"
            self.draft.assume(what, "the file lists none, NCCL assumes the same", self.text.span(matrix.element))

    def _draw_pairs(self, matrix: Matrix, rates: dict[tuple[Node, Node], Fraction]) -> None:
        if any(node.kind is Kind.NVSWITCH for pair in rates for node in pair) and _NVSWITCH not in self.draft:
            self.draft.switch(_NVSWITCH)
        seen = set[tuple[Node, Node]]()
        for (a, b), there in rates.items():
            if (a, b) in seen:
                continue
            seen.add((b, a))
            back = rates.get((b, a), Fraction(0))
            if there == back:
                self.draft.link(a.name, b.name, there, label=matrix.label)
                continue
            self.draft.link(a.name, b.name, there, duplex=False, label=matrix.label)
            if back:
                self.draft.link(b.name, a.name, back, duplex=False, label=matrix.label)
            found = f"{bandwidth_text(there)} to `{b.name}` and {bandwidth_text(back)} back"
            self.draft.fault(f"`{a.name}` has {matrix.label} of {found}", self.text.span(matrix.element))

    def _draw_model(self) -> None:
        model = self.figures.gpu
        known = links_of_model(model, len(self.gpus))
        span = self.text.span(self.gpus[0].element)
        if known is None or model is None:
            if len(self.gpus) > 1:
                self.draft.assume(NO_LINKS, "the file lists none", span, NO_LINKS_HINT)
            return
        self.draft.assume(known.what, model.source, span)
        if known.switched:
            self.draft.switch(_NVSWITCH)
            for gpu in self.gpus:
                self.draft.link(gpu.name, _NVSWITCH, known.switched, label="NVLink")
        else:
            for a, b in combinations(self.gpus, 2):
                self.draft.link(a.name, b.name, known.pair, label="xGMI")

    def _report_missing(self, matrix: Matrix, rates: dict[tuple[Node, Node], Fraction]) -> None:
        totals = Counter[Node]()
        for (a, _), rate in rates.items():
            totals[a] += int(rate)
        values = Counter(totals[gpu] for gpu in self.gpus)
        usual = next((value for value, number in values.items() if 2 * number > len(self.gpus)), 0)
        for gpu in self.gpus:
            span = self.text.span(gpu.element)
            if not totals[gpu]:
                self.draft.fault(f"`{gpu.name}` has no {matrix.label}, other GPUs have", span)
            elif totals[gpu] < usual:
                found = f"{bandwidth_text(Fraction(totals[gpu]))} of {matrix.label}"
                most = bandwidth_text(Fraction(usual))
                self.draft.fault(f"`{gpu.name}` has {found}, other GPUs have {most}", span)

    # ---- PCIe, CPUs and NICs

    def _draw_slots(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node in self.above:
                self.draft.link(self.above[node].name, node.name, self.bandwidth[node], label="PCIe")

    def _report_slots(self) -> None:
        """Compare the links of GPUs of one model, and of NICs of one model."""
        models = defaultdict[tuple[object, str], list[Node]](list)
        for node in (*self.gpus, *self.machine.of(Kind.NIC)):
            models[node.kind, node.model].append(node)
        for alike in models.values():
            speeds = Counter(node.bandwidth for node in alike)
            usual = max((value for value, number in speeds.items() if 2 * number >= len(alike)), default=Fraction(0))
            for node in alike:
                if node.bandwidth < usual:
                    found = f"`{node.name}` is linked at {bandwidth_text(node.bandwidth)}"
                    message = f"{found}, others of its kind at {bandwidth_text(usual)}"
                    self.draft.fault(message, self.text.span(node.element, "pci_link_speed"))

    def _draw_sockets(self, cpus: Sequence[Node]) -> None:
        speeds = {cpu: self._socket(cpu) for cpu in cpus} if len(cpus) > 1 else {}
        for one, other in combinations(cpus, 2):
            speed = min(speeds[one], speeds[other])
            self.draft.link(one.name, other.name, speed, label="between CPUs: NCCL's planning value")

    def _socket(self, cpu: Node) -> Fraction:
        """Return the bandwidth from a CPU to another one, which hwloc does not know."""
        about = {**self.machine.infos, **infos(cpu.element)}
        vendor = about.get("CPUVendor", "")
        power = about.get("CPUModel", "").startswith("POWER")
        arch = about.get("Architecture") or ("ppc64" if power else "x86_64")
        family, model = _number(about.get("CPUFamilyNumber")), _number(about.get("CPUModelNumber"))
        known = between_sockets(arch, vendor, family, model)
        span = self.text.span(cpu.element)
        if known is None:
            what = f"{bandwidth_text(SLOWEST_SOCKETS)} between CPUs of an unknown model"
            self.draft.assume(what, "NCCL's smallest value", span)
            return SLOWEST_SOCKETS
        name = f"{vendor} family {family} model {model}" if vendor else arch
        self.draft.assume(f"{bandwidth_text(known)} between CPUs", f"NCCL's planning value for {name}", span)
        return known

    def _draw_nics(self, nics: Sequence[Node]) -> None:
        """Link NICs to the fabric, at the speed that the user gives, or that of their slots."""
        if not nics:
            return
        self.draft.switch(OPEN_END)
        if self.machine.ignored:
            names = some([f"`{name[:40]}`" for name, _ in self.machine.ignored])
            span = self.text.span(self.machine.ignored[0][1])
            self.draft.warn("C0942", f"ignored {names}: the machine also has NICs of a fabric", span)
        if self.figures.nic is None:
            self.draft.assume(
                "that NICs are as fast as their PCIe links", "hwloc does not know their speeds",
                self.text.span(nics[0].element), "give it: `--nic 400Gbps`",
            )  # fmt: skip
        for nic in nics:
            self.draft.link(nic.name, OPEN_END, self.figures.nic or nic.bandwidth, label="NICs")


def _number(text: str | None) -> int:
    return int(text) if text and re.fullmatch("[0-9]{1,9}", text) else 0
