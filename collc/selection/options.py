"""The options of ``auto``: for which sizes, among which candidates, by which model."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import ClassVar, Literal

import attrs

from collc.ir.diagnostic import error, nearest
from collc.passes import SCHEDULERS

__all__ = ["CANDIDATES", "Auto"]

#: the schedulers that are compared; of equally fast ones the first is taken
CANDIDATES = (
    "bfb", "expansion", "flow", "exact", "swing", "bucket", "ring", "recursive-doubling", "rabenseifner", "bine", "pat",
    "trivance", "double-binary-tree", "forest",
)  # fmt: skip

_SPAN = re.compile(r"\s*(\d{1,19})\s*\.\.\s*(\d{1,19})\s*")
_MOST_BYTES = 2**63 - 1


@attrs.frozen
class Auto:
    """What ``schedule x using auto { .. }`` may say.

    Raises C0045 (sizes that are no range), C0046 (a candidate that there is none of), C0010.
    """

    name: ClassVar[str] = "auto"

    size: int | None = attrs.field(
        default=None, metadata={"help": "bytes to choose for: the collective's own size unless given, else 1 MiB"}
    )
    sizes: str | int | None = attrs.field(
        default=None,
        metadata={"help": "choose for every size of a range, `1 KiB..1 GiB` with both ends, or for `all`"},
    )
    most: int | None = attrs.field(
        default=None, metadata={"help": "use at most so many algorithms for a range, those that lose least"}
    )
    candidates: str | None = attrs.field(
        default=None, metadata={"help": 'compare only these schedulers, such as `bfb` or `"swing, bucket"`'}
    )
    without: str | None = attrs.field(default=None, metadata={"help": "compare all but these schedulers"})
    latency: Literal["links", "swing", "hammingmesh"] = attrs.field(
        default="links", metadata={"help": "how late messages are, as `collc simulate --latency` takes it"}
    )
    alpha: Fraction | None = attrs.field(
        default=None, metadata={"help": "latency of a message, in place of the links' own"}
    )
    bandwidth: Fraction | None = attrs.field(
        default=None, metadata={"help": "bandwidth out of a rank, where links have none of their own"}
    )
    transfers: int = attrs.field(
        default=1 << 23, metadata={"help": "leave out what would take more transfers to write out"}
    )

    def __attrs_post_init__(self) -> None:
        if self.size is not None and self.sizes is not None:
            raise error("C0045", "auto takes a size or a range of sizes, found both", hint="leave `size` out")
        if self.size is not None and not 0 <= self.size <= _MOST_BYTES:
            raise error("C0045", f"auto needs a size of 0 to {_MOST_BYTES} bytes, found {self.size}")
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
            raise error("C0046", "auto is left without a candidate", hint="leave fewer out")

    def span(self) -> tuple[int, int | None] | None:
        """Return the least and the greatest size asked for (nothing: no greatest), if a range was."""
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
        if not low <= high <= _MOST_BYTES:
            raise error("C0045", f"auto needs a range whose end is no smaller than its start, found {low}..{high}")
        return low, high

    def names(self) -> tuple[str, ...]:
        """Return the schedulers to compare, in order."""
        asked, without = _listed(self.candidates), _listed(self.without) or ()
        return tuple(name for name in CANDIDATES if (asked is None or name in asked) and name not in without)


def _listed(text: str | None) -> tuple[str, ...] | None:
    """Return the schedulers of a list, each of which is known."""
    if text is None:
        return None
    names = tuple(part for part in re.split(r"[\s,]+", text) if part)
    for name in names:
        if name not in CANDIDATES:
            hint = nearest(name, CANDIDATES) or f"there are {', '.join(CANDIDATES)}"
            what = "is not one that auto compares" if name in SCHEDULERS else "is no scheduler"
            raise error("C0046", f"`{name}` {what}", hint=hint)
    return names
