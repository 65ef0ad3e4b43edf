"""The variables that concern plans of MSCCL++, the registration that a program needs, and the lines that prove it.

MSCCL++ looks for plans of its own accord only under fixed names in ``$MSCCLPP_CACHE_DIR/default``. A program registers
all others from Python, before it creates a communicator.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from collc.ir.diagnostic import error
from collc.ir.frozen import frozen

from .plans import UNBOUNDED, WHOLE, PlanFile, require_together

__all__ = ["FIXED", "PlanEnvironment", "as_object", "as_shell", "plan_environment"]

#: the folder below ``MSCCLPP_CACHE_DIR`` in which the runtime looks for plans
DEFAULT = "default"
#: the names that it looks for there -> the numbers of ranks that a version takes the plan for
FIXED = {
    "allreduce_2nodes_1K_64K.json": (16,),
    "allreduce_2nodes_128K_2M.json": (16,),
    "allreduce_4nodes_1K_64K.json": (32, 64),
    "allreduce_4nodes_128K_2M.json": (32, 64),
}
#: the collectives whose calls look for plans if a program uses NCCL's interface
_NCCL = ("allreduce", "allgather", "reducescatter", "broadcast")


@frozen
class PlanEnvironment:
    """Variables to set (name, value, reason), Python lines to run first, patterns to find (meaning), and remarks."""

    variables: tuple[tuple[str, str, str], ...]
    python: tuple[str, ...]
    proofs: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def plan_environment(files: Sequence[PlanFile]) -> PlanEnvironment:
    """Return the environment that makes MSCCL++ take plans.

    Plans that all bear fixed names in a folder ``default`` need a variable only; others need Python. Raises C0663,
    C0688 and C0689 for plans that cannot be loaded together, and C0690 for plans in several folders.
    """
    require_together(files)
    folders = sorted({os.path.dirname(os.path.abspath(file.path)) for file in files})
    if len(folders) > 1:
        hint = "put the plans into one folder"
        raise error("C0690", f"found plans in {len(folders)} folders", notes=[f"`{f}`" for f in folders[:4]], hint=hint)
    fixed = os.path.basename(folders[0]) == DEFAULT and all(os.path.basename(f.path) in FIXED for f in files)
    return (_found_by_name if fixed else _registered)(folders[0], files)


_LOGGED = ("MSCCLPP_LOG_LEVEL", "INFO", "logs which plans were loaded")


def _registered(folder: str, files: Sequence[PlanFile]) -> PlanEnvironment:
    return PlanEnvironment(
        (_LOGGED,),
        (
            "import collc.mscclpp",
            f"collc.mscclpp.register({folder!r})  # on every rank, before it creates a communicator",
        ),
        (("No suitable algorithm found for collective", "must not appear for the sizes of these plans"),),
        (
            *_about(files),
            "no variable makes MSCCL++ load these files: a program registers them from Python, and programs in C "
            f"load only {', '.join(FIXED)} in $MSCCLPP_CACHE_DIR/{DEFAULT}",
            *_common(files),
        ),
    )


def _found_by_name(folder: str, files: Sequence[PlanFile]) -> PlanEnvironment:
    return PlanEnvironment(
        (
            ("MSCCLPP_CACHE_DIR", os.path.dirname(folder), f"its folder `{DEFAULT}` holds the plans"),
            _LOGGED,
        ),
        (),
        tuple((f"Loading plan: \"{os.path.abspath(file.path)}\"", "once a rank") for file in files),
        (*_about(files), *_names(files), *_common(files)),
    )  # fmt: skip


def _about(files: Sequence[PlanFile]) -> Iterator[str]:
    """Say which calls each plan serves."""
    for file in files:
        owner = " of all ranks together" if file.collective in WHOLE else ""
        what = f"{file.collective} on {file.ranks} ranks, {file.mode}, {file.sizes}{owner}"
        yield f"{os.path.basename(file.path)}: {what}, a multiple of {file.granularity} bytes"


def _names(files: Sequence[PlanFile]) -> Iterator[str]:
    """Say which plans the runtime takes for other ranks than they have."""
    for file in files:
        name = os.path.basename(file.path)
        if file.collective != "allreduce" or file.ranks not in FIXED[name]:
            ranks = " or ".join(map(str, FIXED[name]))
            yield f"{name}: MSCCL++ takes this name for an allreduce on {ranks} ranks; the plan is not one: rename it"


def _common(files: Sequence[PlanFile]) -> Iterator[str]:
    yield "calls of NCCL's interface reach MSCCL++ in programs with LD_PRELOAD=libmscclpp_nccl.so"
    if any(file.low > 0 or file.high < UNBOUNDED for file in files):
        yield "a call of another size takes MSCCL++'s own algorithm, or NCCL's if MSCCLPP_NCCL_LIB_PATH names it"
    yield "a call that fits a plan by size but is no multiple of its granularity fails; there is no fallback"
    if others := sorted({file.collective for file in files} - set(_NCCL)):
        yield f"calls of NCCL's interface do not look for {', '.join(others)}: run it with mscclpp.Executor"
    yield "every reduction is a sum, whatever the call says: do not call min, max or prod on sizes of these plans"
    yield "set MSCCLPP_HOSTID the same on nodes whose GPUs share memory"


# ---- as text


def as_shell(found: PlanEnvironment) -> str:
    """Return assignments for any POSIX shell; the Python lines and the lines to look for are comments."""
    return "\n".join([*_lines(found), ""])


def _lines(found: PlanEnvironment) -> Iterator[str]:
    yield "# MSCCL++: set these for every rank"
    yield from (f"export {name}={shlex.quote(value)}  # {why}" for name, value, why in found.variables)
    if found.python:
        yield "# run these lines on every rank:"
        yield from (f"#   {_one_line(line)}" for line in found.python)
    yield "# look for these lines in the output of every rank:"
    yield from (f"#   {_one_line(pattern)}  ({meaning})" for pattern, meaning in found.proofs)
    yield "# plans:"
    yield from (f"#   {_one_line(remark)}" for remark in found.remarks)


def _one_line(text: str) -> str:
    """Return a text without characters that could end its comment."""
    return "".join(c if c.isprintable() else "?" for c in text)


def as_object(files: Sequence[PlanFile], found: PlanEnvironment) -> dict[str, object]:
    """Return the JSON object of an environment."""
    return {
        "runtime": "mscclpp",
        "variables": {name: value for name, value, _ in found.variables},
        "python": list(found.python),
        "look_for": [{"pattern": pattern, "meaning": meaning} for pattern, meaning in found.proofs],
        "files": [
            {
                "path": os.path.abspath(file.path), "name": file.name, "coll": file.collective, "ranks": file.ranks,
                "inplace": file.inplace, "min_bytes": file.low, "max_bytes": file.high,
                "bytes_multiple_of": file.granularity, "ranks_sharing_memory": file.shares_memory,
            }
            for file in files
        ],
        "remarks": list(found.remarks),
    }  # fmt: skip
