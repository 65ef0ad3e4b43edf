"""The options of ``auto``: for which sizes, among which candidates, by which model."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import ClassVar, Literal

import attrs

from collc.ir.diagnostic import error, nearest
from collc.passes import SCHEDULERS
from collc.passes.schedulers import candidates

__all__ = ["CANDIDATES", "Auto"]

#: The schedulers that auto compares; of equally fast ones it takes the first.
CANDIDATES = candidates()

_SPAN = re.compile(r"\s*(\d{1,19})\s*\.\.\s*(\d{1,19})\s*")
_MAX_BYTES = 2**63 - 1


@attrs.frozen
class Auto:
    """The options of ``schedule x using auto { .. }``.

    Raises C0045 (sizes that are no range), C0046 (an unknown candidate), C0010.
    """

    name: ClassVar[str] = "auto"

    size: int | None = attrs.field(
        default=None, metadata={"help": "bytes to choose for (default: the collective's own size, else 1 MiB)"}
    )
    sizes: str | int | None = attrs.field(
        default=None,
        metadata={"help": "choose for every size of a range, `1 KiB..1 GiB` with both ends, or for `all`"},
    )
    most: int | None = attrs.field(default=None, metadata={"help": "maximum number of algorithms for a range"})
    candidates: str | None = attrs.field(
        default=None, metadata={"help": 'compare only these schedulers, such as `bfb` or `"swing, bucket"`'}
    )
    without: str | None = attrs.field(default=None, metadata={"help": "compare all but these schedulers"})
    latency: Literal["links", "swing", "hammingmesh"] = attrs.field(
        default="links", metadata={"help": "latency model, as in `collc simulate --latency`"}
    )
    alpha: Fraction | None = attrs.field(
        default=None, metadata={"help": "latency of a message, instead of the links' own"}
    )
    bandwidth: Fraction | None = attrs.field(
        default=None, metadata={"help": "bandwidth out of a rank, for links without one"}
    )
    transfers: int = attrs.field(default=1 << 23, metadata={"help": "skip schedules with more transfers"})

    def __attrs_post_init__(self) -> None:
        if self.size is not None and self.sizes is not None:
            raise error("C0045", "auto takes a size or a range of sizes, found both", hint="leave `size` out")
        if self.size is not None and not 0 <= self.size <= _MAX_BYTES:
            raise error("C0045", f"auto needs a size of 0 to {_MAX_BYTES} bytes, found {self.size}")
        if self.bandwidth is not None and self.bandwidth <= 0:
            raise error("C0010", f"option `bandwidth` of scheduler `auto` needs more than 0, found {self.bandwidth}")
        if self.alpha is not None and self.alpha < 0:
            raise error("C0010", f"option `alpha` of scheduler `auto` needs 0 or more, found {self.alpha}")
        if self.most is not None and self.most < 1:
            raise error("C0010", f"option `most` of scheduler `auto` needs 1 or more, found {self.most}")
        if self.transfers < 1:
            raise error("C0010", f"option `transfers` of scheduler `auto` needs 1 or more, found {self.transfers}")
        self.span()
        if not self.names():
            raise error("C0046", "auto has no candidate left", hint="leave fewer out")

    def span(self) -> tuple[int, int | None] | None:
        """Return the smallest and the largest size of the range (None: no limit), or None without a range."""
        if self.sizes is None:
            return None
        if self.sizes == "all":
            return 1, None
        found = _SPAN.fullmatch(str(self.sizes))
        if found is None:
            raise error(
                "C0045",
                f"auto needs a range of whole sizes, found `{self.sizes}`",
                hint="write `sizes: 1 KiB..1 GiB`, or `sizes: all`",
            )
        low, high = int(found[1]), int(found[2])
        if not low <= high <= _MAX_BYTES:
            raise error("C0045", f"auto needs a range with an end of at least its start, found {low}..{high}")
        return low, high

    def names(self) -> tuple[str, ...]:
        """Return the schedulers to compare, in order; named ones of plugins follow collc's own."""
        only, without = _listed(self.candidates), _listed(self.without) or ()
        from_plugins = sorted({*(only or ())} - {*CANDIDATES})
        return tuple(n for n in (*CANDIDATES, *from_plugins) if (only is None or n in only) and n not in without)


def _listed(text: str | None) -> tuple[str, ...] | None:
    """Return the schedulers of a list; raise C0046 for an unknown one."""
    if text is None:
        return None
    names = tuple(part for part in re.split(r"[\s,]+", text) if part)
    for name in names:
        if name not in CANDIDATES and (name not in SCHEDULERS or SCHEDULERS[name].candidate is None):
            hint = nearest(name, CANDIDATES) or f"candidates are {', '.join(CANDIDATES)}"
            what = "is a scheduler that auto does not compare" if name in SCHEDULERS else "is no scheduler"
            raise error("C0046", f"`{name}` {what}", hint=hint)
    return names
