"""The output of `nvidia-smi nvlink -s` and `nvidia-smi -L`: the name of each GPU, and the speed of each NVLink."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Span

from ..importing.figures import Gpu, gigabytes, gpu_named
from ..importing.model import Draft
from ..importing.pasted import Line

__all__ = ["GPU_LINE", "LINK_LINE", "Status", "statuses"]

GPU_LINE = re.compile(r"[^\w]*GPU (\d{1,6}): ([^()]+?)\s*(?:\(.*)?")
LINK_LINE = re.compile(r"[^\w]*Link (\d{1,4}):\s*(?:(\d{1,6}(?:\.\d{1,9})?) GB/s|(<?inactive>?))\s*", re.IGNORECASE)
_ANY_LINK = re.compile(r"[^\w]*Link (\d+):\s*(\S.*)", re.IGNORECASE)
_MARK = re.compile(r"GPU \d|Link|link|NVML")
_NONE = re.compile(r"NVML: .*(?:inactive|NVLink)", re.IGNORECASE)


@attrs.define
class Status:
    """One GPU: its name, and the speed of its NVLinks in bytes per second, 0 for one that is inactive.

    ``listed`` says that the text has the links of this GPU, of which there may be none.
    """

    name: str
    span: Span
    links: dict[int, Fraction] = attrs.Factory(dict)
    listed: bool = False

    @property
    def active(self) -> list[Fraction]:
        """The speeds of the active links."""
        return [speed for speed in self.links.values() if speed]

    @property
    def complete(self) -> bool:
        """Whether the text has all links up to the last: people leave some out."""
        return bool(self.links) and set(self.links) == set(range(len(self.links)))

    @property
    def model(self) -> Gpu | None:
        """The model by its name; None if it is not in the table."""
        try:
            return gpu_named(self.name)
        except CollcError:
            return None


def statuses(draft: Draft, lines: Iterable[Line]) -> Mapping[int, Status]:
    """Return what the lines say of each GPU by its number. A link without a speed is a mistake (C0924)."""
    found = dict[int, Status]()
    last: Status | None = None
    for line in lines:
        if not _MARK.search(line.text):
            continue
        if gpu := GPU_LINE.fullmatch(line.text):
            last = found.setdefault(int(gpu[1]), Status(gpu[2], line.part(gpu, 1).span))
        elif last and (link := LINK_LINE.fullmatch(line.text)):
            last.links[int(link[1])] = gigabytes(link[2]) if link[2] else Fraction(0)
            last.listed = True
        elif last and (link := _ANY_LINK.fullmatch(line.text)) and link[2].endswith("/s"):
            draft.wrong("C0924", f"found `{link[2]}`, needed a speed in GB/s or <inactive>", line.part(link, 2).span)
        elif last and _NONE.search(line.text):
            last.listed = True
    return found
