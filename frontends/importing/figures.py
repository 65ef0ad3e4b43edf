"""Figures that files lack: what the user gives, and what GPUs of a model have, each with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Span, error, nearest
from collc.ir.frozen import frozen

from ..units import BANDWIDTH, UNITS

__all__ = ["GPUS", "Figures", "Gpu", "bandwidth_of", "bandwidth_text", "gigabits", "gigabytes", "gpu_named"]

_LINKS = 20  # links that are allowed for each node of the limit
_QUANTITY = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([A-Za-z]+(?:/s)?)\s*")


@frozen
class Gpu:
    """What a model of GPU has: the bandwidth of one NVLink or xGMI link in each direction, and how many links."""

    name: str
    link: Fraction
    links: int
    source: str


def gigabytes(number: Fraction | int | str) -> Fraction:
    """Return bytes per second of a number of GB/s.

    >>> gigabytes("0.5")
    Fraction(500000000, 1)
    """
    return Fraction(number) * 10**9


def gigabits(number: Fraction | int | str) -> Fraction:
    """Return bytes per second of a number of Gb/s."""
    return gigabytes(number) / 8


def _gpu(name: str, link: str, links: int, sheet: str) -> tuple[str, Gpu]:
    return name, Gpu(name, gigabytes(link), links, f"NVIDIA, {sheet}" if "AMD" not in sheet else sheet)


#: model -> its links; bandwidths are nominal, from the datasheets
GPUS: Mapping[str, Gpu] = dict([
    _gpu("p100", "20", 4, "P100 datasheet: 160 GB/s of NVLink in both directions, 4 links"),
    _gpu("v100", "25", 6, "V100 datasheet: 300 GB/s of NVLink in both directions, 6 links"),
    _gpu("a100", "25", 12, "A100 datasheet: 600 GB/s of NVLink in both directions, 12 links"),
    _gpu("a800", "25", 8, "A800 datasheet: 400 GB/s of NVLink in both directions, 8 links"),
    _gpu("a30", "25", 4, "A30 datasheet: 200 GB/s of NVLink in both directions, 4 links"),
    _gpu("a40", "14.0625", 4, "A40 datasheet: 112.5 GB/s of NVLink in both directions, 4 links"),
    _gpu("a6000", "14.0625", 4, "RTX A6000 datasheet: 112.5 GB/s of NVLink in both directions, 4 links"),
    _gpu("h100", "25", 18, "H100 datasheet: 900 GB/s of NVLink in both directions, 18 links"),
    _gpu("h800", "25", 8, "H800 datasheet: 400 GB/s of NVLink in both directions, 8 links"),
    _gpu("h20", "25", 18, "H20 datasheet: 900 GB/s of NVLink in both directions, 18 links"),
    _gpu("h200", "25", 18, "H200 datasheet: 900 GB/s of NVLink in both directions, 18 links"),
    _gpu("b200", "50", 18, "B200 datasheet: 1.8 TB/s of NVLink in both directions, 18 links"),
    _gpu("b300", "50", 18, "B300 datasheet: 1.8 TB/s of NVLink in both directions, 18 links"),
    _gpu("gb200", "50", 18, "GB200 datasheet: 1.8 TB/s of NVLink in both directions, 18 links"),
    _gpu("mi100", "46", 3, "AMD, MI100 datasheet: 92 GB/s of Infinity Fabric for each link in both directions"),
    _gpu("mi210", "50", 3, "AMD, MI210 datasheet: 100 GB/s of Infinity Fabric for each link in both directions"),
    _gpu("mi250", "50", 8, "AMD, MI250 datasheet: 100 GB/s of Infinity Fabric for each link in both directions"),
    _gpu("mi300x", "64", 7, "AMD, MI300X datasheet: 128 GB/s of Infinity Fabric for each link in both directions"),
    _gpu("mi325x", "64", 7, "AMD, MI325X datasheet: 128 GB/s of Infinity Fabric for each link in both directions"),
    _gpu("mi350x", "76.8", 7, "AMD, MI350X datasheet: 153.6 GB/s of Infinity Fabric for each link in both directions"),
])  # fmt: skip


@frozen
class Figures:
    """What the user gives: the model of the GPUs, bandwidths in bytes per second, and the size of a profile in bytes.

    A ``nic`` of 0 leaves the NICs out, if the format has no speed of them. ``tiers`` are the bandwidths of links into
    each tier of a fabric: ``leaf`` from a host, ``spine`` from a leaf. ``choice`` names one of several networks in a
    file. ``node_limit`` is the most nodes that a network may have; it may have 20 links for each.
    """

    gpu: Gpu | None = None
    nic: Fraction | None = None
    tiers: Mapping[str, Fraction] = attrs.Factory(dict)
    size: int | None = None
    choice: str | None = None
    node_limit: int = 20_000

    @property
    def link_limit(self) -> int:
        """The most links, each direction counted, that a network may have."""
        return _LINKS * self.node_limit

    def require_gpu(self, what: str, span: Span | None = None, example: str = "h100") -> Gpu:
        """Return the model of the GPUs; raise C0923, with a model as ``example``, if it was not given."""
        if self.gpu is None:
            raise missing(f"{what}: the file does not name the GPU", f"--gpu {example}", f"gpu: {example}", span)
        return self.gpu

    def require_nic(self, what: str, span: Span | None = None) -> Fraction:
        """Return the bandwidth of a NIC; raise C0923 if it was not given."""
        if not self.nic:
            raise missing(f"{what}: the file has no speed of the NICs", "--nic 400Gbps", "nic: 400 Gbps", span)
        return self.nic

    def require_tier(self, tier: str, tiers: list[str], what: str, span: Span | None = None) -> Fraction:
        """Return the bandwidth of links into a tier; raise C0923 if it was not given; ``tiers`` are all of the file."""
        if tier not in self.tiers:
            raise missing_tier(tier, tiers, what, span)
        return self.tiers[tier]

    def require_size(self, what: str, span: Span | None = None) -> int:
        """Return the message size of a profile; raise C0923 if it was not given."""
        if self.size is None:
            raise missing(f"{what}: the file does not say the size of its messages", "--size 1MB", "size: 1 MB", span)
        return self.size

    def require_within(self, nodes: int, links: int, span: Span | None = None) -> None:
        """Raise C0933 if a network of this size has more nodes, or more links in each direction, than the limit."""
        for count, noun, most in ((nodes, "nodes", self.node_limit), (links, "links", self.link_limit)):
            if count > most:
                needed = max(nodes, -(-links // _LINKS))
                found = f"{count}" if count <= 10**12 else "more than 10^12"
                hint = f"`--node-limit {needed}` raises the limit" if needed <= 10**7 else "look for a wrong number"
                raise error("C0933", f"found {found} {noun}, the limit is {most}", span=span, hint=hint)


def missing_tier(tier: str, tiers: list[str], what: str, span: Span | None = None) -> CollcError:
    """Return the error C0923 for a tier without a bandwidth; ``tiers`` are all of the file."""
    option = "--tier-bandwidth " + ",".join(f"{name}=400Gbps" for name in tiers)
    inside = ", ".join(f"tier-{name}: 400 Gbps" for name in tiers)
    return missing(f"{what}: the file has no bandwidth of tier `{tier}`", option, inside, span)


def missing(what: str, option: str, inside: str, span: Span | None = None) -> CollcError:
    """Return the error C0923 for a figure that only the user knows, with the option of the command and the language."""
    return error("C0923", what, span=span, hint=f"give it: `{option}`, or in a `.coll` file `with {{ {inside} }}`")


def gpu_named(text: str, span: Span | None = None) -> Gpu:
    """Return the GPU of a model as people write it; raise C0925 for one that is not listed.

    >>> gpu_named("NVIDIA H100 80GB HBM3").name, gpu_named("Tesla V100-SXM2-16GB").name
    ('h100', 'v100')
    """
    words = re.findall(r"[a-z]+[0-9]+[a-z]*", text.lower())
    for word in words:
        for name in (word, word.rstrip("abcdefghijklmnopqrstuvwxyz")):
            if name in GPUS:
                return GPUS[name]
    hint = nearest(text.lower(), GPUS) or f"known: {', '.join(GPUS)}"
    raise error("C0925", f"found the GPU `{text}`, which collc does not know", span=span, hint=hint)


def bandwidth_of(text: str, span: Span | None = None) -> Fraction:
    """Return bytes per second of a text such as ``400Gbps`` or ``25 GB/s``; raise C0926 for anything else.

    >>> bandwidth_of("400Gbps") == bandwidth_of("50 GB/s")
    True
    """
    match = _QUANTITY.fullmatch(text)
    measure, unit = UNITS.get(match[2], (None, Fraction(0))) if match else (None, Fraction(0))
    if match is None or measure != BANDWIDTH or not Fraction(match[1]):
        hint = "write `400Gbps` (bits) or `50GB/s` (bytes)"
        raise error("C0926", f"found `{text}`, needed a bandwidth", span=span, hint=hint)
    return Fraction(match[1]) * unit


def bandwidth_text(bandwidth: Fraction, unit: str = "B/s") -> str:
    """Return a bandwidth as the language writes it, exact: in GB/s, or in link units.

    >>> bandwidth_text(Fraction(25 * 10**9)), bandwidth_text(Fraction(10**9, 3)), bandwidth_text(Fraction(3, 2), "link")
    ('25 GB/s', '1 / 3 * 1 GB/s', '1.5')
    """
    number = bandwidth / 10**9 if unit == "B/s" else bandwidth
    text = decimal_text(number)
    if text is not None:
        return f"{text} GB/s" if unit == "B/s" else text
    quotient = f"{number.numerator} / {number.denominator}"
    return f"{quotient} * 1 GB/s" if unit == "B/s" else f"({quotient})"


def decimal_text(number: Fraction) -> str | None:
    """Return a number as a decimal without exponent; None if it has no short one.

    >>> decimal_text(Fraction(1, 8)), decimal_text(Fraction(1, 3))
    ('0.125', None)
    """
    for places in range(13):
        if (number * 10**places).denominator == 1:
            whole, rest = divmod(int(number * 10**places), 10**places)
            return f"{whole}.{rest:0{places}}" if places else str(whole)
    return None
