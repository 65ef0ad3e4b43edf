"""Ranges of options: each stands beside the option's help, and holds for every instance of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Kind
from collc.ir.frozen import frozen
from collc.ir.spec import Problem

if TYPE_CHECKING:
    from .base import Pass

__all__ = ["AT_LEAST_1", "Range", "require_ranges"]


@frozen
class Range:
    """The numbers that an option takes: ``least`` to ``most``, both included; others raise ``code``.

    An option that counts pieces says what it ``divides``: a ``shard``, or a ``half`` of all data.

    >>> Range(1, 64).text, Range(0).text
    ('1 to 64', '0 or more')
    """

    least: int = 1
    most: int | None = None
    code: str = "C0508"
    divides: str = ""

    @property
    def text(self) -> str:
        """The range in words."""
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"

    def nearest(self, value: int) -> int:
        """Return the number of the range that is nearest to another."""
        return max(self.least, value) if self.most is None else min(max(self.least, value), self.most)


#: a limit of a pass on programs
AT_LEAST_1 = Range()


def require_ranges(this: Pass) -> None:
    """Raise all options of a pass that are out of the range in their ``metadata["range"]``; words have no range."""
    wrong = list(_out_of_range(this))
    if wrong:
        raise CollcError(wrong)


def _out_of_range(this: Pass) -> Iterator[Diagnostic]:
    for field in attrs.fields(type(this)):
        allowed, value = field.metadata.get("range"), getattr(this, field.name)
        if allowed is None or not isinstance(value, int) or isinstance(value, bool):
            continue
        nearest = allowed.nearest(value)
        if nearest != value:
            option, noun = field.name.replace("_", "-"), "scheduler" if this.takes is Problem else "pass"
            message = f"option `{option}` of {noun} `{this.name}` needs {allowed.text}, found {value}"
            hint = f"use {nearest}, or leave `{option}` out"
            yield Diagnostic(allowed.code, message, hint=hint, kind=Kind.MISTAKE, option=option)
