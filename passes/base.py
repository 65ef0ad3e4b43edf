"""What a pass is: one frozen class whose fields are its options.

A pass receives a verified IR and leaves one; between those it may do as it likes. It never verifies, prints or
times: the driver does. ``takes`` and ``gives`` are the IR levels; ``requires`` names facts that must hold
(see :data:`FACTS`), checked by the driver before the pass runs; ``establishes`` names those that hold after it. No pass
loses one that held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import attrs

from collc.ir.collective import Collective
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SymmetricSchedule

__all__ = ["FACTS", "Pass", "remark", "remarks"]

_REMARKS: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


@contextmanager
def remarks() -> Iterator[list[str]]:
    """Collect what passes that run inside say of what they chose; who collects outside is told too."""
    told: list[str] = []
    token = _REMARKS.set(told)
    try:
        yield told
    finally:
        _REMARKS.reset(token)
        for text in told:
            remark(text)


def remark(text: str) -> None:
    """Say what a pass chose, to who collects it."""
    told = _REMARKS.get()
    if told is not None:
        told.append(text)


#: fact -> what must hold of the IR for it
FACTS: dict[str, Callable[[Any], bool]] = {
    "discrete": lambda ir: isinstance(ir, (Schedule, SymmetricSchedule)) and ir.discrete,
}


@attrs.frozen
class Pass(ABC):
    """Base of all passes. Subclasses are ``@attrs.frozen``; fields are ``int``, ``bool``, ``str``, or these or None.

    A field's help text is its ``metadata["help"]``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    takes: ClassVar[type | tuple[type, ...]]
    gives: ClassVar[type]
    requires: ClassVar[tuple[str, ...]] = ()
    establishes: ClassVar[tuple[str, ...]] = ()
    #: whether the pieces it sends follow each other on purpose, so that joining messages would undo its work
    pipelined: ClassVar[bool] = False
    #: whether it takes a SymmetricSchedule where it takes a Schedule; others are given it unfolded
    takes_templates: ClassVar[bool] = False
    #: whether it makes a Forest of a Forest, where it takes a Schedule; others are given its steps
    takes_forests: ClassVar[bool] = False
    #: whether it changes a schedule for the sake of the program it becomes only
    for_programs: ClassVar[bool] = False
    #: the passes that it runs, one on what the other leaves, to see what would become of an IR
    tries: ClassVar[tuple[Pass, ...]] = ()

    def turned(self, collective: Collective, found: Collective) -> Collective:
        """Return the collective of what the pass makes of an IR of ``collective``: the same, unless a pass says else.

        ``found`` is that of what it made, for what follows from more than ``collective``. The driver holds them equal.
        """
        return collective

    @abstractmethod
    def run(self, ir: Any) -> Any:
        """Return the new IR; raise CollcError where the pass cannot apply."""
