"""The calls of a run: how many elements, of which types, by which operations, how often."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import attrs

from collc.ir.frozen import frozen

if TYPE_CHECKING:
    from collc.ir.collective import Collective

__all__ = ["Calls"]


@frozen
class Calls:
    """The calls to make and the predictions to print with them; empty tuples stand for the defaults of a collective.

    ``counts`` are arguments of calls, ``sizes`` bytes of the whole vector. ``places`` are `in` and `out`. ``alpha``
    (seconds), ``bandwidth`` (bytes per second out of a node) and ``delay`` (seconds) are numbers of the cost model.
    ``testbed`` is the bytes per second of the widest link of a testbed, None for a run on this machine.
    """

    counts: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    repeats: int = 5
    warmup: int = 1
    compare: bool = False
    timeout: float = 300
    alpha: Fraction | None = None
    bandwidth: Fraction | None = None
    testbed: Fraction | None = None
    delay: Fraction = attrs.field(default=Fraction(0))

    # Any: named arguments of the program's run
    def arguments(self, collective: Collective) -> dict[str, Any]:
        """Return the named arguments of :func:`collc.backends.mpi_c.run.run` for a collective."""
        from collc.backends.mpi_c.results import OPS

        dtypes = self._dtypes(collective)
        default = collective.op if collective.op in OPS else "max" if collective.idempotent else "sum"
        found: dict[str, Any] = {  # Any: as above
            "dtypes": dtypes, "ops": list(self.ops) or [default], "compare": self.compare, "timeout": self.timeout,
            "repeats": self.repeats, "warmup": self.warmup,
        }  # fmt: skip
        if self.places:
            found["in_place"] = [place == "in" for place in self.places]
        counts = self._counts(collective, dtypes)
        return {**found, "sizes": counts} if counts else found

    def _dtypes(self, collective: Collective) -> list[str]:
        from collc.backends.mpi_c.results import DTYPES

        if self.dtypes != ("all",):
            return list(self.dtypes) or [collective.dtype if collective.dtype in DTYPES else "float32"]
        with_strided = not collective.reduces or "user" in self.ops
        return [name for name in DTYPES if name != "strided" or with_strided]

    def _counts(self, collective: Collective, dtypes: list[str]) -> list[int]:
        """Return the count arguments of ``counts``, and of ``sizes`` for the widest type; empty without both."""
        from collc.backends.mpi_c.results import DTYPES, counts_for

        counts = list(self.counts)
        if self.sizes:
            known = [name for name in dtypes if name in DTYPES] or ["float32"]
            counts += counts_for(collective, self.sizes, max(known, key=lambda name: DTYPES[name]))
        return list(dict.fromkeys(counts))
