"""``collc compile``, and the bare form."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace

from collc.ir.diagnostic import CollcError, error
from collc.ir.program import Program
from collc.ir.spec import Spec

from ..driver.compilation import Job, make_jobs, run_jobs
from ..driver.result import CollectiveResult
from ..files.naming import NamedFile, main_paths, name_files, stem_of
from ..files.texts import STDIN, STDOUT, Output, check_writable, is_direct, output_folder, write_all
from ..registry.elements import element_text
from .console import Console
from .inputs import load, settings, targets
from .watcher import Watcher, time_table

__all__ = ["compile", "outputs_object"]


def compile(options: SimpleNamespace, console: Console) -> int:
    """Compile one file and write its outputs; return the exit status."""
    _check_options(options)
    spec, start = load(options, console)
    jobs, warnings = make_jobs(spec, targets(options), options.collective, start)
    console.warn([*spec.warnings, *warnings])
    jobs = [job for job in jobs if job.targets] or jobs
    places = _places(jobs, options)
    if options.M:
        _require_names(jobs, options)
        return _list_dependencies(spec, places, options, console)
    if not places:
        raise _no_target(jobs)
    rule = _rule_path(places, options)
    with output_folder(options.o):
        check_writable([*dict.fromkeys(places), *([rule] if rule else [])], spec.files)
        watcher = Watcher(options, console)
        results = run_jobs(jobs, settings(options), observer=watcher)
        watcher.ends()
        console.warn(warning for result in results for warning in result.warnings)
        emitted = [(r.name, t, artifacts) for r in results for t, artifacts in r.emitted]
        files = name_files(emitted, _stem(options), options.o, verify=options.verify != "off")
        _write(files, rule, spec, options, console)
    if options.time_passes:
        console.err(time_table(results))
    if console.verbose:
        for result in results:
            if result.choice is not None:
                from .auto_report import choice_text

                console.err(f"collc: {result.name}:\n{choice_text(result.choice, True)}")
            for text in result.remarks:
                console.say(f"{result.name}: {text}")
    if options.json:
        pipelines = {"pipelines": _pipelines(results)} if options.print_pipeline else {}
        console.json(outputs_object(files, results) | pipelines)
    return 0


def _check_options(options: SimpleNamespace) -> None:
    """Raise C0903 or C0001 for options that do not fit together."""
    given = [name for name, value in (("-MF", options.MF), ("-MT", options.MT), ("-MP", options.MP)) if value]
    if given and not (options.M or options.MD):
        hint = "add -MD to compile and write the rule"
        raise error(
            "C0903",
            f"{given[0]} sets the form of the make rule, but no option asks for the rule",
            hint=hint,
            exit_status=2,
        )
    if options.json and options.o == STDOUT:
        raise error(
            "C0001",
            "--json and -o - would both write to standard output",
            hint="write to a file",
            exit_status=2,
        )


def _stem(options: SimpleNamespace) -> str:
    return stem_of(options.files[0])


def _places(jobs: Sequence[Job], options: SimpleNamespace) -> list[str]:
    """Return the path of every main file."""
    outputs = [(job.request.name, target) for job in jobs for target in job.targets]
    return main_paths(outputs, _stem(options), options.o if not options.M else None)


def _no_target(jobs: Sequence[Job]) -> CollcError:
    name = jobs[0].request.name
    return error(
        "C0025",
        f"`{name}` has no target: no emit and no -t",
        span=jobs[0].request.span,
        hint=f"add `-t msccl-xml`, or write `emit {name} as msccl-xml;`; `collc targets` lists the targets",
        exit_status=2,
    )


# ---- dependencies


def _require_names(jobs: Sequence[Job], options: SimpleNamespace) -> None:
    """Raise C0048 if only compilation finds the names of outputs: `auto` writes one file per range."""
    for job in jobs:
        ranged = job.request.schedule.scheduler == "auto" and any(
            option.name == "sizes" for option in job.request.schedule.options
        )
        if ranged and not options.MT and any(not target.selects for target in job.targets):
            raise error(
                "C0048",
                f"the number of files of `{job.request.name}` is known only after compilation, which -M does not do",
                span=job.request.schedule.span,
                hint="write -MD to compile and list them, or name the target of the rule with -MT",
                exit_status=2,
            )


def _rule_path(places: Sequence[str], options: SimpleNamespace) -> str | None:
    """Return the path of the rule of ``-MD``: the output's name with ``.d``."""
    if not options.MD:
        return None
    if options.MF:
        path = str(options.MF)
    elif is_direct(places[0]):
        raise error(
            "C0903",
            "-MD has no output to write the rule beside",
            hint="name a file with -MF",
            exit_status=2,
        )
    elif len(places) == 1:
        path = os.path.splitext(places[0])[0] + ".d"
    else:
        path = os.path.join(os.path.dirname(places[0]), _stem(options) + ".d")
    if path in places:
        raise error(
            "C0903",
            f"the rule and an output would both be `{path}`",
            hint="name another file with -MF",
            exit_status=2,
        )
    return path


def _rule(paths: Sequence[str], spec: Spec, options: SimpleNamespace, console: Console) -> str:
    """Return the make rule: outputs (or ``-MT``), and the files read."""
    if not options.MT and STDOUT in paths:
        raise error(
            "C0903",
            "standard output cannot be a target of a make rule",
            hint="name the target with -MT",
            exit_status=2,
        )
    from ..files.depfile import depfile

    text, warnings = depfile(
        paths, [f for f in spec.files if f not in (STDIN, "<stdin>")], words=options.MT or (),
        phony=options.MP, absolute=options.fdepfile_absolute,
    )  # fmt: skip
    console.warn(warnings)
    return text


def _list_dependencies(spec: Spec, places: Sequence[str], options: SimpleNamespace, console: Console) -> int:
    """Carry out ``-M``: write the rule to ``-MF``, ``-o`` or standard output, and compile nothing."""
    if not places and not options.MT:
        raise error("C0903", "-M needs a name for the output", hint="add -t TARGET or -MT NAME", exit_status=2)
    where = options.MF or options.o or STDOUT
    check_writable([where], spec.files)
    write_all([Output(where, _rule(places, spec, options, console))])
    return 0


# ---- results


def _write(
    files: Sequence[NamedFile], rule: str | None, spec: Spec, options: SimpleNamespace, console: Console
) -> None:
    """Write all files and the rule, or nothing."""
    outputs = [Output(file.path, file.artifact.text) for file in files]
    if rule is not None:
        outputs.append(Output(rule, _rule([file.path for file in files], spec, options, console)))
    # Main files come last: a build system that checks them runs again after any interruption.
    order = [*reversed(outputs)]
    check_writable([output.path for output in outputs], spec.files)
    console.signals.check()
    write_all(order, if_changed=options.write_if_changed)
    for output in outputs:
        console.say(f"wrote {output.path} ({len(output.data)} bytes)")


def outputs_object(files: Sequence[NamedFile], results: Sequence[CollectiveResult]) -> dict[str, object]:
    """Return the object of ``--json``; ``program`` and ``cost`` are of the first of ``collectives``."""
    from hashlib import sha256

    from .auto_report import choice_object

    collectives = [
        {
            **_one_object(r), **choice_object(r.choice),
            **({"algorithms": [_one_object(one) for one in r.algorithms]} if r.algorithms else {}),
        }
        for r in results
    ]  # fmt: skip
    return {
        "outputs": [
            {
                "path": file.path, "target": file.target, "collective": file.collective,
                "bytes": len(file.artifact.text.encode()),
                "sha256": sha256(file.artifact.text.encode()).hexdigest(),
            }
            for file in files
        ],
        "program": collectives[0]["program"],
        "cost": collectives[0]["cost"],
        "collectives": collectives,
    }  # fmt: skip


def _one_object(result: CollectiveResult) -> dict[str, object]:
    from .cost import cost_object

    window = result.window
    which = {} if window is None else {"algorithm": window.algorithm, "label": window.label}
    remarks = {"remarks": list(result.remarks)} if result.remarks else {}
    program, cost = _program_object(result.made), cost_object(result)
    return {"name": result.name, **which, "program": program, "cost": cost, **remarks}


def _pipelines(results: Sequence[CollectiveResult]) -> list[dict[str, object]]:
    """Return the passes that ran for every collective, algorithm and target, with the reason for each added one."""
    return [
        {
            "collective": result.name, "target": chain.target.name if chain.target else None,
            "passes": [
                {"pass": element_text(this), "why": why or None}
                for this, why in zip(chain.passes, chain.reasons, strict=True)
            ],
        }
        for result in results for one in result.each for chain in one.plans
    ]  # fmt: skip


def _program_object(program: Program | None) -> dict[str, int] | None:
    if program is None:
        return None
    return {
        "ranks": program.num_ranks,
        "threadblocks_max": int((program.rank_blocks[1:] - program.rank_blocks[:-1]).max(initial=0)),
        "channels": program.num_channels,
        "steps_max": int((program.block_start[1:].astype(int) - program.block_start[:-1]).max(initial=0)),
        "instructions": program.num_instructions,
        "chunks": program.chunks,
    }
