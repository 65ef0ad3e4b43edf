"""Files with several networks, of which the user chooses one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collc.ir.diagnostic import Span, error, nearest
from collc.ir.shown import clipped

if TYPE_CHECKING:
    from .figures import Figures

__all__ = ["chosen"]


def chosen(names: Sequence[str], figures: Figures, span: Span | None = None) -> int:
    """Return the index of the network to read: the chosen one, or the only one; raise C0985 if there is none.

    ``span`` is the place of the second network.
    """
    given = figures.choice
    if given is not None and given in names:
        return names.index(given)
    if given is None and len(names) == 1:
        return 0
    listing = ", ".join(f"`{clipped(name)}`" for name in names[:8]) + (", .." if len(names) > 8 else "")
    if given is not None:
        message = f"found no graph `{clipped(given)}`, needed one of {listing}"
        raise error("C0985", message, hint=nearest(given, names[:1000]))
    message = f"found {len(names)} graphs, needed one: {listing}"
    raise error("C0985", message, span=span, hint=f"choose one: `--choose {clipped(names[0])}`")
