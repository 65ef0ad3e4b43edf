"""Numbers of a pass that can be reduced if its program does not fit a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from collc.ir.frozen import frozen

if TYPE_CHECKING:
    from .base import Pass

__all__ = ["CHUNKS", "Knob"]


# Any: the pass that has the knob, and the IR before and after it; the driver passes the right ones
Taken: TypeAlias = Callable[[Any, Any, Callable[[], Any]], int]
# Any: the IR before the pass
Most: TypeAlias = Callable[[Any, Mapping[str, int]], int | None]


def _none_known(given: object, limits: Mapping[str, int]) -> int | None:
    return None


@frozen
class Knob:
    """A number of a pass. A smaller number makes a program with fewer or shorter messages.

    ``option`` is the field of the pass that sets the number; None in it leaves the number open. Knobs with equal
    ``counts`` count the same. Messages use the nouns ``word`` (one) and ``words`` (several). ``taken(this, given,
    make)`` returns the actual number, from a pass, the IR before it, and a function that returns the IR after it.

    The driver reduces a ``free`` number itself, unless the user set it, or set one of ``kept_by`` in an earlier pass.
    For any other number it searches for one that fits, and prints it as a hint. A ``noted`` number is stored in the IR,
    as the free number of a later pass. If the option is an ``upper`` bound, a smaller number obeys it. If a smaller
    number is ``lossy``, the driver searches for the largest that fits, and reports it.
    """

    option: str
    counts: str
    words: str
    taken: Taken
    free: bool = False
    noted: bool = False
    upper: bool = False
    lossy: bool = False
    kept_by: tuple[str, ...] = ()
    single: str = ""
    most: Most = _none_known
    word: str = attrs.field(kw_only=True)

    def text(self, number: int) -> str:
        """Return a number with its noun, for messages.

        >>> CHUNKS.text(1), CHUNKS.text(8)
        ('1 chunk per shard', '8 chunks per shard')
        """
        return f"{number} {self.word if number == 1 else self.words}"

    def is_set(self, this: Pass) -> bool:
        """Return whether the option of a pass sets the number."""
        return getattr(this, self.option) is not None

    def set(self, this: Pass, number: int) -> Pass:
        """Return the pass with this number."""
        return attrs.evolve(this, **{self.option: number})


#: the chunks per shard of a scheduler
CHUNKS = Knob(
    "chunks", "chunks", "chunks per shard", lambda this, given, make: this.chunks or 0, word="chunk per shard"
)
