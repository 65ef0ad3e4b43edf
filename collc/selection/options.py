"""The options of ``auto``: for which sizes, among which candidates, by which model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest
from collc.passes import SCHEDULERS
from collc.passes.schedulers import candidates

from ..messages.quantities import show_size

__all__ = ["CANDIDATES", "Auto"]

#: The schedulers that auto compares; of equally fast ones it takes the first.
CANDIDATES = candidates()

_SPAN = re.compile(r"\s*(\d{1,19})\s*\.\.\s*(\d{1,19})\s*")
#: steps of work that a scheduler may take: half a minute, about
_STEPS = 1 << 28
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
    reduction: Fraction | None = attrs.field(
        default=None, metadata={"help": "bytes per second that a rank adds, instead of the topology's"}
    )
    launch: Fraction | None = attrs.field(
        default=None, metadata={"help": "time of a call besides its steps, instead of the topology's"}
    )
    transfers: int = attrs.field(default=1 << 23, metadata={"help": "skip schedules with more transfers"})
    effort: int | None = attrs.field(
        default=None,
        metadata={"help": "skip schedulers that need more steps of work (default: 2^28, no limit for `candidates`)"},
    )

    def __attrs_post_init__(self) -> None:
        wrong = list(self._wrong_numbers())
        for read in (self.span, self.names):
            try:
                read()
            except CollcError as mistake:
                wrong += mistake.diagnostics
        if wrong:
            raise CollcError(wrong)

    def _wrong_numbers(self) -> Iterator[Diagnostic]:
        if self.size is not None and self.sizes is not None:
            yield Diagnostic("C0045", "auto takes a size or a range of sizes, found both", hint="leave `size` out",
                             option="size")  # fmt: skip
        if self.size is not None and not 0 <= self.size <= _MAX_BYTES:
            yield _number("C0045", "size", f"0 to {_MAX_BYTES} bytes", self.size)
        if self.bandwidth is not None and self.bandwidth <= 0:
            yield _number("C0010", "bandwidth", "more than 0", self.bandwidth)
        if self.alpha is not None and self.alpha < 0:
            yield _number("C0010", "alpha", "0 or more", self.alpha)
        if self.reduction is not None and self.reduction <= 0:
            yield _number("C0010", "reduction", "more than 0", self.reduction)
        if self.launch is not None and self.launch < 0:
            yield _number("C0010", "launch", "0 or more", self.launch)
        for name in ("most", "transfers", "effort"):
            value = getattr(self, name)
            if value is not None and value < 1:
                yield _number("C0010", name, "1 or more", value)

    @property
    def steps(self) -> int | None:
        """The limit on the work of one scheduler, in the steps that it counts; None for no limit."""
        return _STEPS if self.effort is None and self.candidates is None else self.effort

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
                option="sizes",
            )
        low, high = int(found[1]), int(found[2])
        if not low <= high <= _MAX_BYTES:
            message = f"auto needs a range with an end of at least its start, found {show_size(low)}..{show_size(high)}"
            hint = (
                f"write `sizes: {show_size(high)}..{show_size(low)}`"
                if high < low <= _MAX_BYTES
                else "use smaller sizes"
            )
            raise error("C0045", message, hint=hint, option="sizes")
        return low, high

    def names(self) -> tuple[str, ...]:
        """Return the schedulers to compare, in order; named ones of plugins follow collc's own."""
        only, without = _listed(self.candidates, "candidates"), _listed(self.without, "without") or ()
        from_plugins = sorted({*(only or ())} - {*CANDIDATES})
        found = tuple(n for n in (*CANDIDATES, *from_plugins) if (only is None or n in only) and n not in without)
        if not found:
            option = "without" if self.without is not None else "candidates"
            hint = "leave out fewer" if option == "without" else "name a scheduler"
            raise error("C0046", "auto has no candidate left", hint=hint, option=option)
        return found


def _number(code: str, option: str, need: str, found: object) -> Diagnostic:
    message = f"option `{option}` of scheduler `auto` needs {need}, found {found}"
    return Diagnostic(code, message, hint=f"leave `{option}` out for the default", option=option)


def _listed(text: str | None, option: str) -> tuple[str, ...] | None:
    """Return the schedulers of a list, the value of an option; raise C0046 for an unknown one."""
    if text is None:
        return None
    names = tuple(part for part in re.split(r"[\s,]+", text) if part)
    for name in names:
        if name not in CANDIDATES and (name not in SCHEDULERS or SCHEDULERS[name].candidate is None):
            hint = nearest(name, CANDIDATES) or f"candidates are {', '.join(CANDIDATES)}"
            what = "is a scheduler that auto does not compare" if name in SCHEDULERS else "is no scheduler"
            raise error("C0046", f"`{name}` {what}", hint=hint, option=option)
    return names
