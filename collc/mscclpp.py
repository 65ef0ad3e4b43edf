"""Plans under MSCCL++: gives the plans of a folder to the runtime of a Python program.

    import collc.mscclpp
    collc.mscclpp.register("plans/")  # on every rank, before it creates a communicator

Needs the package ``mscclpp`` when it registers, and nothing but the standard library and collc before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from collc.ir.diagnostic import CollcError, error

if TYPE_CHECKING:
    from collc.backends.mscclpp_environment import PlanFile

__all__ = ["plans", "register"]

#: the variables in which launchers say the rank of a process
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
#: those in which they say how many ranks its node has
_OF_NODE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
#: where versions of mscclpp keep a name
_PLAN = (("mscclpp", "ExecutionPlan"), ("mscclpp", "CppExecutionPlan"), ("mscclpp._mscclpp", "CppExecutionPlan"))
_ALGORITHM = (("mscclpp", "Algorithm"), ("mscclpp._core.algorithm", "Algorithm"))
_BUILDER = (("mscclpp.ext", "AlgorithmCollectionBuilder"),)

#: the plans that this process has registered, by absolute path
_registered: dict[str, PlanFile] = {}


def plans(folder: str | os.PathLike[str]) -> tuple[PlanFile, ...]:
    """Return what the plans of a folder serve, in the order of their names; raises C0663, C0688, C0689 and C0690."""
    from collc.backends.mscclpp_environment import plans_in, require_together

    found = plans_in(os.fspath(folder))
    require_together(found)
    return found


def register(
    folder: str | os.PathLike[str], *, rank: int | None = None, ranks_per_node: int | None = None
) -> tuple[PlanFile, ...]:
    """Register every plan of a folder with MSCCL++, and return what they serve.

    ``rank`` is the rank of this process, ``ranks_per_node`` the number of ranks on its node; the default is what the
    launcher's variables say. MSCCL++ takes a plan for a call of its collective, ranks, ranks of a node, in-place mode
    and size. Communicators that exist already do not see it. Plans of a folder that is registered again count once.

    Raises C0690 for a folder without plans, C0663, C0688 and C0689 for plans that MSCCL++ would mix up with each other
    or with those of earlier calls, C0691 without a fitting ``mscclpp``, and C0692 for plans that are not for this job.
    """
    from collc.backends.mscclpp_environment import plans_in, require_together

    found = plans_in(os.fspath(folder))
    fresh = [plan for plan in found if os.path.realpath(plan.path) not in _registered]
    require_together([*_registered.values(), *fresh])
    which = _rank(rank, found, os.environ)
    of_node = _of_node(ranks_per_node, found, os.environ)
    execution_plan, algorithm, builder = (_name(places) for places in (_PLAN, _ALGORITHM, _BUILDER))
    for plan in fresh:
        constraint = algorithm.Constraint(world_size=plan.ranks, n_ranks_per_node=of_node or plan.shares_memory)
        loaded = execution_plan(os.path.abspath(plan.path), which)
        builder().add_algorithm_builder(algorithm(id=plan.name, execution_plan=loaded, constraint=constraint, tags={}))
        _registered[os.path.realpath(plan.path)] = plan
    return found


def _rank(given: int | None, found: Sequence[PlanFile], variables: Mapping[str, str]) -> int:
    rank = _number(variables, _RANK) if given is None else given
    if rank is None:
        raise error("C0692", f"no rank: none of {', '.join(_RANK)} is set", hint="register(.., rank=R)")
    fewest = min(found, key=lambda plan: plan.ranks)
    if not 0 <= rank < fewest.ranks:
        what = f"`{fewest.path}` is for {fewest.ranks} ranks, and this is rank {rank}"
        raise error("C0692", what, hint="register the plans of this job only")
    return rank


def _of_node(given: int | None, found: Sequence[PlanFile], variables: Mapping[str, str]) -> int | None:
    """Return the ranks of a node; None if nothing says it."""
    if given is not None:
        return given
    size = _number(variables, _OF_NODE)
    wrong = [plan for plan in found if size is not None and (plan.ranks % size or size % plan.shares_memory)]
    if wrong:
        plan = wrong[0]
        what = f"`{plan.path}` joins groups of {plan.shares_memory} of its {plan.ranks} ranks by memory"
        hint = "if GPUs of several nodes share memory, say so: register(.., ranks_per_node=N)"
        raise error("C0692", f"{what}, and nodes have {size}", hint=hint)
    return size


def _number(variables: Mapping[str, str], names: Sequence[str]) -> int | None:
    """Return the first of these variables that is a number."""
    return next((int(value) for name in names if (value := variables.get(name, "")).isdecimal()), None)


def _name(places: Sequence[tuple[str, str]]) -> Any:  # Any: a class of a package without types
    """Return the first of these names that the installed ``mscclpp`` has; raise C0691 if it has none."""
    for module, name in places:
        try:
            return getattr(import_module(module), name)
        except ImportError as problem:
            if module == "mscclpp":
                raise _unusable(f"it cannot be imported: {problem}") from None
        except AttributeError:
            continue
    raise _unusable(f"it has no `{places[-1][0]}.{places[-1][1]}`")


def _unusable(why: str) -> CollcError:
    hint = "install the package of MSCCL++ 0.9 or later, for Python"
    return error("C0691", f"the package `mscclpp` cannot register plans: {why}", hint=hint)
