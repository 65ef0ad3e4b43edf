"""What a result computes on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

from collc.ir.frozen import frozen

__all__ = ["Deferred"]

T = TypeVar("T")


@frozen(eq=False)
class Deferred(Generic[T]):
    """A value that ``make`` returns; the first use calls it, later ones do not."""

    make: Callable[[], T]

    @cached_property
    def value(self) -> T:
        """The value; raises what ``make`` raises."""
        return self.make()
