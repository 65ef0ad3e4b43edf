"""Program -> C99 over MPI point-to-point; builds and runs it on this machine.

The target is imported when first used: what finds MPIs and reads reports needs no program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emit import MpiC

__all__ = ["MpiC"]


def _attribute(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import emit

    return getattr(emit, name)


if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__ = _attribute
