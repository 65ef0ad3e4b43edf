"""A profile of TACCL -> one machine.

Times of a profile are microseconds for messages of one size: ``alpha`` to start, ``beta`` for the bytes. So a link's
bandwidth is the size divided by beta. Matrices are indexed ``[destination][source]``. Source: TACCL, INPUT_GUIDE.md and
taccl/topologies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from collc.ir.diagnostic import Source, error

from ..importing.figures import bandwidth_text
from ..importing.json_fields import Fields, object_in
from ..importing.model import OPEN_END, Draft
from ..units import UNITS

if TYPE_CHECKING:
    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["machine_in"]

_SIZE = re.compile(r"(?<![A-Za-z0-9])(\d{1,6})\s?([KMG]i?B)(?![A-Za-z0-9])")

#: pairs of GPUs of a DGX-1 that two NVLinks join, and those that one joins
_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
_CUBE_GPUS = 8

#: slower links between GPUs come of times with a factor: PCI Express 3.0 x16 has 16 GB/s
_SLOW = Fraction(5 * 10**9)
_MOST_OFF = Fraction(1)  # microseconds by which a rounded total may differ
_KNOWN = frozenset(
    {
        "name", "gpus_per_node", "nics_per_node", "alpha", "node_betas_list", "node_invbws_list", "links", "betas",
        "invbws", "remote_alpha", "remote_beta", "remote_invbw", "remote_invbws",
    }
)  # fmt: skip


class Pair(NamedTuple):
    """``links`` links from GPU ``a`` to GPU ``b``, and back if ``duplex``; the bytes take ``beta`` microseconds."""

    a: int
    b: int
    beta: Fraction
    links: int = 1
    duplex: bool = False


def machine_in(source: Source, figures: Figures) -> Imported:
    """Return the machine of one text."""
    root = object_in(source, "a profile of TACCL")
    fields = Fields(source, root)
    if "intranode_sketch" in root or "nnodes" in root:
        hint = "give the file of `--topology-file`, such as topo-ndv2-1MB.json"
        raise error("C0924", "found a sketch of TACCL, needed a topology", span=fields.place(), hint=hint)
    return _Reader(source, fields, figures).machine()


class _Reader:
    """One profile."""

    def __init__(self, source: Source, fields: Fields, figures: Figures):
        self.source, self.fields, self.figures = source, fields, figures
        self.draft = Draft("taccl")

    def machine(self) -> Imported:
        """Return the machine; raise CollcError with all mistakes."""
        fields, draft = self.fields, self.draft
        draft.title = fields.text("name")
        gpus = fields.count("gpus_per_node", self.figures.node_limit)
        fields.require()
        alpha = fields.number("alpha")
        is_hub = "links" not in fields and len(fields.array("node_betas_list")) == 1
        pairs = [] if is_hub else list(self._custom(gpus) if "links" in fields else self._cube(gpus))
        hub_beta = fields.number("node_betas_list", 0, above=True) if is_hub else Fraction(1)
        nics = self._nics()
        fields.require()
        self._check_totals(alpha)
        size = self._size()
        names = [draft.rank(f"gpu{number}") for number in range(gpus)]
        latency = alpha / 10**6
        if is_hub:
            self._hub(names, _bandwidth(size, hub_beta), latency)
        for pair in pairs:
            draft.link(names[pair.a], names[pair.b], _bandwidth(size, pair.beta), latency, duplex=pair.duplex,
                       count=pair.links, label="NVLink")  # fmt: skip
        self._warn_of_factor()
        if nics:
            self._fabric(names, nics, size)
        self._report_ignored()
        return draft.finish()

    # ---- inside the machine

    def _hub(self, names: list[str], bandwidth: Fraction, latency: Fraction) -> None:
        """Link all GPUs to one switch; a transfer through it takes the latency once."""
        switch = self.draft.switch("nvswitch")
        for name in names:
            self.draft.link(name, switch, bandwidth, latency / 2, label="one port of each GPU on the switch")
        self.draft.assume("that all GPUs are on one switch, as the profile has one beta",
                          "TACCL's HubAndSpoke and DGX2", self.fields.place("node_betas_list"))  # fmt: skip

    def _cube(self, gpus: int) -> Iterator[Pair]:
        """Yield the links of a DGX-1 by the two betas of double and single NVLinks."""
        fields = self.fields
        betas = fields.array("node_betas_list")
        if len(betas) != 2 or gpus != _CUBE_GPUS:
            if isinstance(fields.root.get("node_betas_list"), list):
                hint = "one beta is a switch, two are the NVLinks of an NDv2 with 8 GPUs; else give `links` and `betas`"
                fields.wrong(f"found {len(betas)} betas for {gpus} GPUs", "node_betas_list", hint=hint)
            return
        self.draft.assume("the NVLinks of a DGX-1, as the profile has two betas", "TACCL's NDv2",
                          fields.place("node_betas_list"))  # fmt: skip
        for number, pairs in enumerate((_DOUBLE, _SINGLE)):
            beta = fields.number("node_betas_list", number, above=True)
            yield from (Pair(a, b, beta, duplex=True) for a, b in pairs)

    def _custom(self, gpus: int) -> Iterator[Pair]:
        """Yield the links of the matrices ``links`` and ``betas``."""
        fields = self.fields
        self.figures.require_within(gpus, 0, fields.place("gpus_per_node"))
        if fields.array("links") and fields.array("betas"):
            fields.square("links", gpus)
            fields.square("betas", gpus)
        if fields.mistakes:
            return
        total = 0
        for a in range(gpus):
            self._link(a, a)
            for b in range(a + 1, gpus):
                there, back = self._link(a, b), self._link(b, a)
                total += sum(pair.links for pair in (there, back) if pair)
                self.figures.require_within(0, total, fields.place("links", b, a))
                yield from self._joined(there, back)

    def _link(self, a: int, b: int) -> Pair | None:
        """Return the links from GPU a to GPU b; None if there are none."""
        fields = self.fields
        links = fields.number("links", b, a)
        if links.denominator != 1:
            fields.wrong("found a part of a link, needed a whole number of links", "links", b, a)
        elif links and a == b:
            fields.wrong(f"found a link from GPU {a} to itself", "links", b, a)
        elif links:
            return Pair(a, b, fields.number("betas", b, a, above=True), int(links))
        return None

    def _joined(self, there: Pair | None, back: Pair | None) -> Iterator[Pair]:
        """Yield the links of a pair of GPUs: one duplex pair if both directions are equal."""
        if there and back and (there.beta, there.links) == (back.beta, back.links):
            yield there._replace(duplex=True)
            return
        for pair in (there, back):
            if pair:
                message = f"the links from gpu{pair.a} to gpu{pair.b} differ from those of the other direction"
                if pair is there or there is None:
                    self.draft.fault(message, self.fields.place("links", pair.b, pair.a))
                yield pair

    # ---- to other machines

    def _nics(self) -> int:
        if self.fields.root.get("nics_per_node") in (None, -1, 0):
            return 0
        for key in ("remote_alpha", "remote_beta"):
            self.fields.number(key, above=key == "remote_beta")
        return self.fields.count("nics_per_node", self.figures.node_limit)

    def _fabric(self, names: list[str], nics: int, size: int) -> None:
        """Add the NICs: neighbouring GPUs share one, and half of the remote alpha is on each side of the fabric."""
        draft, fields = self.draft, self.fields
        bandwidth = _bandwidth(size, fields.number("remote_beta", above=True))
        latency = fields.number("remote_alpha") / 10**6 / 2
        switches = [draft.switch(f"nic{number}") for number in range(nics)]
        fabric = draft.switch(OPEN_END)
        if nics != len(names):
            draft.assume("that neighbouring GPUs share a NIC", "the sketches of TACCL do so for DGX-2 and NDv2",
                         fields.place("nics_per_node"))  # fmt: skip
        for number, name in enumerate(names):
            near = switches[number * nics // len(names)]
            draft.link(name, near, bandwidth, label="GPU to NIC: as fast as the NIC")
        for switch in switches:
            draft.link(switch, fabric, bandwidth, latency, label="NIC to the fabric: half of the remote alpha")

    # ---- figures

    def _size(self) -> int:
        if self.figures.size is not None:
            return self.figures.size
        for text, span in (
            (self.draft.title.replace("_", " "), self.fields.place("name") if "name" in self.fields else None),
            (self.source.path.rpartition("/")[2].replace("_", " "), None),
        ):
            if match := _SIZE.search(text):
                size = int(match[1]) * UNITS[match[2]][1]
                if size:
                    self.draft.assume(f"a message size of {match[0]} for the times", f"the name `{text}`", span,
                                      hint=f"give another one: `--size {match[0].replace(' ', '')}`")  # fmt: skip
                    return int(size)
        return self.figures.require_size("betas are times for one message", self.fields.place())

    def _check_totals(self, alpha: Fraction) -> None:
        """Report totals (``invbw``) that are not alpha + beta; TACCL rounds them to whole microseconds."""
        fields = self.fields
        if "node_invbws_list" in fields and "links" not in fields:
            totals = fields.array("node_invbws_list")
            if len(totals) != len(fields.array("node_betas_list")):
                fields.wrong(f"found {len(totals)} totals, needed as many as betas", "node_invbws_list")
                fields.fail()
            for number in range(len(totals)):
                self._check_total(alpha, fields.number("node_betas_list", number), "node_invbws_list", number)
        if "remote_invbw" in fields and "remote_beta" in fields and "remote_alpha" in fields:
            self._check_total(fields.number("remote_alpha"), fields.number("remote_beta"), "remote_invbw")
        fields.require()

    def _check_total(self, alpha: Fraction, beta: Fraction, key: str, *path: int) -> None:
        total = self.fields.number(key, *path)
        if abs(total - alpha - beta) > max(_MOST_OFF, (alpha + beta) / 20):
            found = f"{float(total):g} us, and alpha + beta is {float(alpha + beta):g} us"
            self.draft.fault(f"`{key}` is {found}; bandwidths are from beta", self.fields.place(key, *path))

    def _warn_of_factor(self) -> None:
        slowest = min((cable.bandwidth for cable in self.draft.cables), default=_SLOW)
        if slowest < _SLOW:
            message = f"links between GPUs have only {bandwidth_text(slowest.limit_denominator(1))}"
            hint = "if all times of the file have a factor, as TACCL's guide advises, divide them by it"
            key = "betas" if "links" in self.fields else "node_betas_list"
            self.draft.note(message)
            self.draft.warn("C0984", message, self.fields.place(key), hint)

    def _report_ignored(self) -> None:
        names = [f"`{name[:40]}`" for name in self.fields.root if name not in _KNOWN]
        if names:
            self.draft.warn("C0942", f"ignored the {'key' if len(names) == 1 else 'keys'} {', '.join(names[:8])}")


def _bandwidth(size: int, beta: Fraction) -> Fraction:
    return size / (beta / 10**6)
