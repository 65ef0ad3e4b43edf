"""collc, the compiler for collective communication.

    import collc
    result = collc.compile("pod.coll", target="msccl-xml")
    result.write("out/")

Names are imported when first used, so that ``import collc`` costs nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not loaded for it; type checkers know the name

if TYPE_CHECKING:
    from typing import Any

    from .api import (
        CollcError,
        CollectiveResult,
        Diagnostic,
        InternalError,
        Result,
        compile,
        compile_source,
        convert,
        find,
        topology,
        topology_from_networkx,
        verify,
    )

_here = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_here, "ir")):
    # A source tree: the other rooms stand beside this folder, not in it.
    __path__.append(os.path.dirname(_here))

__version__ = "0.1.0"

__all__ = [
    "CollcError",
    "CollectiveResult",
    "Diagnostic",
    "InternalError",
    "Result",
    "__version__",
    "compile",
    "compile_source",
    "convert",
    "find",
    "topology",
    "topology_from_networkx",
    "verify",
]


def __getattr__(name: str) -> Any:  # Any: whichever name is asked for
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    value = getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
