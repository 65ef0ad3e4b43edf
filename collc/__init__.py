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
    from .api import (
        Cancel,
        Cancelled,
        CollcError,
        CollectiveResult,
        Diagnostic,
        Fault,
        FaultCost,
        ImportedNetwork,
        InternalError,
        Progress,
        Result,
        check,
        check_source,
        compile,
        compile_many,
        compile_source,
        convert,
        find,
        format,
        format_source,
        import_topology,
        replan,
        topology,
        topology_from_networkx,
        verify,
    )
    from .iterations import listing, train
    from .plotting import plot
    from .running.result import Run
    from .runs import run
    from .sweeping.cases import SweepRow
    from .sweeping.sweep import Sweep
    from .sweeps import sweep
    from .tables.columns import Table
    from .tools.finding import Frontier
    from .training.predicting import Training

_here = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_here, "ir")):
    # A source tree: the other rooms stand beside this folder, not in it.
    __path__.append(os.path.dirname(_here))

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "Cancelled",
    "CollcError",
    "CollectiveResult",
    "Diagnostic",
    "Fault",
    "FaultCost",
    "Frontier",
    "ImportedNetwork",
    "InternalError",
    "Progress",
    "Result",
    "Run",
    "Sweep",
    "SweepRow",
    "Table",
    "Training",
    "__version__",
    "check",
    "check_source",
    "compile",
    "compile_many",
    "compile_source",
    "convert",
    "find",
    "format",
    "format_source",
    "import_topology",
    "listing",
    "plot",
    "replan",
    "run",
    "sweep",
    "topology",
    "topology_from_networkx",
    "train",
    "verify",
]


def _home(name: str) -> object:
    """Return the module that has a name. Sweeps, pictures and tables load more than compilation needs."""
    match name:
        case "plot":
            from . import plotting

            return plotting
        case "sweep":
            from . import sweeps

            return sweeps
        case "run":
            from . import runs

            return runs
        case "Run":
            from .running import result

            return result
        case "train" | "listing":
            from . import iterations

            return iterations
        case "Sweep":
            from .sweeping import sweep

            return sweep
        case "SweepRow":
            from .sweeping import cases

            return cases
        case "Frontier":
            from .tools import finding

            return finding
        case "Training":
            from .training import predicting

            return predicting
        case "Table":
            from .tables import columns

            return columns
    from . import api

    return api


def _attribute(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_home(name), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__ = _attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
