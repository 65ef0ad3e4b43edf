"""``collc env FILE.coll --library``: the choice among algorithms that an MPI library, UCC or NCCL has built in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, error

from ..files.texts import Output, check_writable, write_all
from ..messages.internal import InternalError
from .arguments import usage_error
from .console import Console
from .inputs import load

if TYPE_CHECKING:
    from collc.ir.spec import Problem
    from collc.ir.tuning import Tuning

    from ..selection.builtin import Choice, Left

__all__ = ["is_specification", "print_choice"]


@attrs.frozen
class _Printed:
    """Variables to set (name, value), and remarks on them."""

    variables: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def is_specification(path: str) -> bool:
    """Return whether a file is a specification, by its name."""
    return path.endswith(".coll")


def print_choice(options: SimpleNamespace, console: Console) -> int | None:
    """Print the choice for a specification; return the exit status, None if ``--library`` and ``.coll`` are absent."""
    given = [name for name in ("library", "rules", "D", "I", "collective") if vars(options)[name]]
    if not any(map(is_specification, options.files)):
        if given:
            shown = f"-{given[0]}" if len(given[0]) == 1 else f"--{given[0]}"
            raise usage_error(f"{shown} is for a `.coll` file", "`collc env net.coll --library openmpi --rules FILE`")
        return None
    if options.library is None and options.runtime is not None:
        return None  # a runtime loads files, which the specification is compiled to
    _require(options)
    spec, _ = load(options, console, "compile")
    wanted = [name for name in spec.collectives if not options.collective or name in options.collective]
    problems = [(name, spec.collectives[name].problem) for name in wanted]
    if unknown := [name for name in options.collective if name not in spec.collectives]:
        raise usage_error(f"there is no collective `{unknown[0]}` in the file")
    found = {"openmpi": _openmpi, "ucc": _ucc, "nccl": _nccl}[options.library](problems, options)
    if options.shell == "json":
        about = {"library": options.library, "variables": dict(found.variables), "remarks": list(found.remarks)}
        console.json(about)
    else:
        console.out("\n".join(_lines(found)) + "\n")
    return 0


def _require(options: SimpleNamespace) -> None:
    """Raise C0001 for options that do not go with each other."""
    if len(options.files) > 1:
        raise usage_error("--library takes one `.coll` file", "include the others in it")
    if options.library is None:
        raise usage_error(
            "a `.coll` file needs --library: openmpi, ucc or nccl", "`collc compile` writes files for other runtimes"
        )
    others = [f"--{name}" for name in ("runtime", "config", "plugin") if getattr(options, name) is not None]
    if others:
        raise usage_error(f"{others[0]} is for files of a runtime, and --library for a `.coll` file")
    if (options.library == "openmpi") != (options.rules is not None):
        needed = "openmpi needs --rules FILE, the file that it reads" if options.rules is None else ""
        raise usage_error(needed or f"--rules is for openmpi: {options.library} takes variables")


def _lines(found: _Printed) -> Iterator[str]:
    yield "# set these for every rank"
    yield from (f"export {name}={shlex.quote(value)}" for name, value in found.variables)
    yield "# notes:"
    yield from (f"#   {remark}" for remark in found.remarks)


def _remarks(chosen: Sequence[Choice], left: Sequence[Left]) -> tuple[str, ...]:
    notes = [f"`{one.tuning.name}`: {note}" for one in chosen for note in one.tuning.notes]
    return (*notes, *_left(left))


def _left(left: Sequence[Left]) -> tuple[str, ...]:
    return tuple(f"`{one.name}` is left to the library: {one.reason}" for one in left)


# ---- libraries


def _openmpi(problems: Sequence[tuple[str, Problem]], options: SimpleNamespace) -> _Printed:
    from collc.backends.builtin_rules import rules_text
    from collc.backends.builtin_rules.check import wrong_rules

    from ..selection.builtin import choose_builtins

    chosen, left = choose_builtins(problems, "openmpi")
    parts = [(one.entry.name, one.tuning) for one in chosen]
    text = rules_text(parts)
    if (wrong := wrong_rules(text, parts)) is not None:
        raise InternalError(f"the rules for Open MPI are wrong: {wrong}")
    check_writable([options.rules], options.files)
    write_all([Output(options.rules, text)])
    path = os.path.abspath(options.rules)
    variables = (
        ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"), ("OMPI_MCA_coll_tuned_dynamic_rules_filename", path),
    )  # fmt: skip
    how = "every host must have the file at this path; Open MPI uses its own rules if it cannot read it"
    return _Printed(variables, (*_remarks(chosen, left), how))


def _ucc(problems: Sequence[tuple[str, Problem]], options: SimpleNamespace) -> _Printed:
    from collc.backends.builtin_rules import tune_text
    from collc.backends.builtin_rules.check import wrong_tune

    from ..selection.builtin import choose_builtins

    chosen, left = choose_builtins(problems, "ucc")
    parts = [(one.entry.name, one.entry.per_rank, one.tuning) for one in chosen]
    text = tune_text(parts)
    if (wrong := wrong_tune(text, parts)) is not None:
        raise InternalError(f"the variable for UCC is wrong: {wrong}")
    fixed = dict(pair for one in chosen for used in one.used for pair in used.variables)
    how = "UCC_LOG_LEVEL=info prints the scores of every team; Open MPI takes UCC with `--mca coll_ucc_enable 1`"
    return _Printed((("UCC_TL_UCP_TUNE", text), *sorted(fixed.items())), (*_remarks(chosen, left), how))


def _nccl(problems: Sequence[tuple[str, Problem]], options: SimpleNamespace) -> _Printed:
    from collc.backends.nccl_tuner.names import COLLECTIVES

    from ..selection.builtin import Left

    found, notes, left = dict[str, str](), list[str](), list[Left]()
    for name, problem in problems:
        tuning = _tuning_of_nccl(name, problem)
        if isinstance(tuning, str):
            left.append(Left(name, tuning))
            continue
        algorithm, function = _algorithm_of(name, problem, tuning), COLLECTIVES[problem.collective.kind]
        if found.setdefault(function, algorithm) != algorithm:
            raise error("C0741", f"two collectives need other algorithms for {function}", hint="use --collective")
        notes += [f"`{name}`: {note}" for note in tuning.notes]
    refused = [f"`{one.name}`: {one.reason}" for one in left]
    if not found:
        raise error("C0740", "there is no choice among algorithms of NCCL", notes=refused)
    value = ";".join(f"{function}:{algorithm}" for function, algorithm in found.items())
    how = "NCCL 2.24 and later reads `function:algorithm`; unset NCCL_ALGO to undo it"
    return _Printed((("NCCL_ALGO", value), ("NCCL_PROTO", "Simple")), (*notes, *_left(left), how))


def _tuning_of_nccl(name: str, problem: Problem) -> Tuning | str:
    """Return the choice for a collective, or why NCCL has none."""
    from collc.backends.nccl_tuner.names import SEVERAL
    from collc.ir.graph.boxes import boxes_of
    from collc.ir.tuning import TuningRequest

    from ..selection.native import tuning_of

    collective = problem.collective
    if collective.name not in SEVERAL:
        return "NCCL has one algorithm for it"
    if collective.members is not None:
        return "it is among some ranks of the network"
    if boxes_of(problem.topology) is None:
        hint = "a table states it: `collc compile FILE -t 'nccl-tuner{nodes=1}' -o table.csv`"
        raise error("C0771", f"the network of `{name}` shows no boxes, so NCCL's machines are unknown", hint=hint)
    try:
        return tuning_of(problem, name, TuningRequest())
    except CollcError as mistake:
        if mistake.diagnostics[0].code != "C0770":
            raise
        return mistake.diagnostics[0].message


def _algorithm_of(name: str, problem: Problem, tuning: Tuning) -> str:
    """Return the one algorithm at the size of a collective; raise C0742 if there are several and no size."""
    size = problem.collective.size
    if size is None and len({one.algorithm for one in tuning.ranges}) > 1:
        hint = "give the collective a `size`, or write a table: `collc compile FILE -t nccl-tuner -o table.csv`"
        message = f"NCCL_ALGO has no sizes, and the fastest algorithm for `{name}` depends on the size"
        raise error("C0742", message, hint=hint)
    return tuning.at(size or 0).algorithm
