"""``collc compile``, and the bare form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.diagnostic import CollcError, error
from collc.ir.frozen import frozen
from collc.ir.spec import Spec
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.passes.program.participants import participants

from ..driver.compilation import Job, joined, make_jobs, with_read_files
from ..driver.result import CollectiveResult
from ..driver.spans import span
from ..files.naming import NamedFile, main_paths, name_files, stem_of
from ..files.texts import STDIN, STDOUT, Output, check_writable, is_direct, is_folder, output_folder, write_all
from ..registry.elements import element_text
from .console import Console
from .failures import Failures
from .inputs import load, require_own_places, settings, targets
from .tabular import Tables, is_printed, require_one_form, show, wants_table
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from ..tables.columns import Cell

__all__ = ["compile", "outputs_list", "outputs_object", "outputs_tables", "require_one_output"]


@frozen(eq=False)
class _Input:
    """One input: its path, its jobs, the places of its main files, and of its make rule if one is wanted."""

    path: str
    spec: Spec
    jobs: list[Job]
    places: list[str]
    rule: str | None = None


def compile(options: SimpleNamespace, console: Console) -> int:
    """Compile files and write their outputs, all or none; return the exit status."""
    _check_options(options)
    inputs = _inputs(options, console)
    if options.M:
        return _list_dependencies(inputs, options, console)
    _require_own_places(inputs)
    used = [path for one in inputs for path in one.spec.files]
    rules = [one.rule for one in inputs if one.rule]
    places = [*(place for one in inputs for place in dict.fromkeys(one.places)), *rules]
    check_writable(places, used, options.o)
    require_own_places(options, used, places)
    failures, watcher = Failures(), Watcher(options, console)
    results = [_results(one, inputs, failures, options, console, watcher) for one in inputs]
    console.warn(warning for each in results for result in each for warning in result.warnings)
    files = [] if failures else [_named(one, each, options) for one, each in zip(inputs, results, strict=True)]
    if files:
        _write(inputs, files, used, options, console)
    _show(inputs, files, [result for each in results for result in each], failures, options, console)
    return failures.report(console)


def _inputs(options: SimpleNamespace, console: Console) -> list[_Input]:
    """Return all inputs; raise the mistakes of all at once."""
    found, wrong = list[_Input](), list[CollcError]()
    for path in options.files:
        try:
            found.append(_input(path, options, console))
        except CollcError as mistake:
            wrong.append(mistake)
    if wrong:
        raise joined(wrong)
    return found


def _input(path: str, options: SimpleNamespace, console: Console) -> _Input:
    spec, start = load(options, console, path=path)
    jobs, warnings = make_jobs(spec, targets(options), options.collective, start)
    console.warn([*spec.warnings, *warnings])
    jobs = [job for job in jobs if job.targets] or jobs
    spec = with_read_files(spec, jobs)
    outputs = [(job.request.name, target) for job in jobs for target in job.targets]
    places = main_paths(outputs, stem_of(path), options.o if not options.M else None)
    if options.M:
        _require_names(jobs, options)
    elif not places:
        raise _no_target(jobs)
    return _Input(path, spec, jobs, places, None if options.M else _rule_path(places, path, options))


def _source(one: _Input, inputs: Sequence[_Input]) -> str:
    """Return the name of an input in messages that concern several; "" for the only one."""
    return one.path if len(inputs) > 1 else ""


def _named(one: _Input, results: Sequence[CollectiveResult], options: SimpleNamespace) -> list[NamedFile]:
    emitted = [(r.name, t, artifacts) for r in results for t, artifacts in r.emitted]
    return name_files(emitted, stem_of(one.path), options.o, verify=options.verify != "off")


def _require_own_places(inputs: Sequence[_Input]) -> None:
    """Raise C0021 if files of two inputs would have one path."""
    taken: dict[str, str] = {}
    for one in inputs:
        for place in dict.fromkeys([*one.places, *([one.rule] if one.rule else [])]):
            if place in taken and not is_direct(place):
                raise error(
                    "C0021",
                    f"`{taken[place]}` and `{one.path}` would both write `{place}`",
                    hint="give their collectives different names, or compile each into a folder of its own",
                    exit_status=2,
                )
            taken[place] = one.path


def _show(
    inputs: Sequence[_Input], files: Sequence[Sequence[NamedFile]], results: Sequence[CollectiveResult],
    failures: Failures, options: SimpleNamespace, console: Console,
) -> None:  # fmt: skip
    """Print what the options ask for."""
    show_times(results, options, console)
    if console.verbose:
        _show_choices(results, console)
        _show_checks(results, console)
    if not wants_table(options):
        return
    sources = [one.path for one, each in zip(inputs, files, strict=True) for _ in each] if files else []

    def document() -> Mapping[str, object]:
        found = outputs_object([file for each in files for file in each], results)
        if len(inputs) > 1:
            listed = found["outputs"]
            assert isinstance(listed, list)
            found["outputs"] = [{**entry, "input": path} for entry, path in zip(listed, sources, strict=True)]
        pipelines = {"pipelines": _pipelines(results)} if options.print_pipeline else {}
        return found | pipelines | failures.objects()

    show(options, console, outputs_tables([file for each in files for file in each], results), document, lambda: "")


def _show_choices(results: Sequence[CollectiveResult], console: Console) -> None:
    for result in results:
        if result.choice is not None:
            from .auto_report import choice_text

            console.err(f"collc: {result.name}:\n{choice_text(result.choice, True)}")
        for text in result.remarks:
            console.say(f"{result.name}: {text}")


def _show_checks(results: Sequence[CollectiveResult], console: Console) -> None:
    """Print which ranks were executed, of programs and files of which a group makes the rest."""
    for result in results:
        for report in result.reports:
            details = {check.name: check.detail for check in report.checks}
            if "symmetry" in details and "executed" in details.get("postcondition", ""):
                console.say(f"{result.name}: {report.kind} verified: {details['postcondition']}")


def _results(
    one: _Input, inputs: Sequence[_Input], failures: Failures, options: SimpleNamespace, console: Console,
    watcher: Watcher,
) -> list[CollectiveResult]:  # fmt: skip
    """Compile the jobs of an input, or take their files from the cache."""

    def run() -> list[CollectiveResult]:
        return failures.compiled(one.jobs, settings(options), watcher, _source(one, inputs))

    if options.cache is None:
        return run()
    from .cache import kept_or_run

    return kept_or_run(one.spec, one.path, one.jobs, options, console, run)


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
    require_one_output(options)
    if len(options.files) > 1:
        _check_for_several(options)


def require_one_output(options: SimpleNamespace) -> None:
    """Raise C0001 if standard output would get a file and a table or an object, or several of these."""
    require_one_form(options, [path for path in options.files if path != STDIN])
    printed = [f"--{name}" for name in ("json", "csv", "markdown") if is_printed(options, name)]
    printed += ["--table"] if options.table and not printed else []
    if printed and options.o == STDOUT:
        message = f"{printed[0]} and -o - would both write to standard output"
        raise error("C0001", message, hint="write to a file", exit_status=2)


def _check_for_several(options: SimpleNamespace) -> None:
    """Raise C0021 or C0903 for options that name one file for the outputs or rules of several inputs."""
    count = len(options.files)
    if options.o is not None and not is_folder(options.o) and not options.M:
        message = f"the outputs of {count} inputs cannot go to one file `{options.o}`"
        raise error("C0021", message, hint=f"name a folder: -o {options.o}/", exit_status=2)
    for name, value in (("-MF", options.MF and not options.M), ("-MT", options.MT)):
        if value:
            message = f"{name} is for one make rule, but {count} inputs have {count}"
            raise error("C0903", message, hint=f"leave {name} out, or compile one input at a time", exit_status=2)


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


def _rule_path(places: Sequence[str], source: str, options: SimpleNamespace) -> str | None:
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
        path = os.path.join(os.path.dirname(places[0]), stem_of(source) + ".d")
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


def _list_dependencies(inputs: Sequence[_Input], options: SimpleNamespace, console: Console) -> int:
    """Carry out ``-M``: write the rules to ``-MF``, ``-o`` or standard output, and compile nothing."""
    if not all(one.places for one in inputs) and not options.MT:
        raise error("C0903", "-M needs a name for the output", hint="add -t TARGET or -MT NAME", exit_status=2)
    where = options.MF or options.o or STDOUT
    check_writable([where], [path for one in inputs for path in one.spec.files])
    write_all([Output(where, "".join(_rule(one.places, one.spec, options, console) for one in inputs))])
    return 0


# ---- results


def _write(
    inputs: Sequence[_Input], files: Sequence[Sequence[NamedFile]], used: Sequence[str], options: SimpleNamespace,
    console: Console,
) -> None:  # fmt: skip
    """Write the files and rules of all inputs, or nothing."""
    outputs: list[Output] = []
    for one, named in zip(inputs, files, strict=True):
        outputs += [Output(file.path, file.artifact.content) for file in named]
        if one.rule is not None:
            outputs.append(Output(one.rule, _rule([file.path for file in named], one.spec, options, console)))
    # Main files come last: a build system that checks them runs again after any interruption.
    order = [*reversed(outputs)]
    check_writable([output.path for output in outputs], used, options.o)
    console.signals.check()
    with span("write files", "output"), output_folder(options.o):
        write_all(order, if_changed=options.write_if_changed)
    for output in outputs:
        console.say(f"wrote {output.path} ({len(output.data)} bytes)")


def outputs_object(files: Sequence[NamedFile], results: Sequence[CollectiveResult]) -> dict[str, object]:
    """Return the object of ``--json``; ``program`` and ``cost`` are of the first of ``collectives``."""
    from .auto_report import choice_object

    collectives = [
        {
            **_one_object(r), **choice_object(r.choice),
            **({"algorithms": [_one_object(one) for one in r.algorithms]} if r.algorithms else {}),
        }
        for r in results
    ]  # fmt: skip
    return {
        "outputs": outputs_list(files),
        "program": collectives[0]["program"] if collectives else None,
        "cost": collectives[0]["cost"] if collectives else None,
        "collectives": collectives,
    }  # fmt: skip


def outputs_tables(files: Sequence[NamedFile], results: Sequence[CollectiveResult]) -> Tables:
    """Return the tables by name: the files, the programs, and what `auto` chose."""
    from ..costing.tables import choice_tables
    from ..tables.columns import Table
    from ..tables.further import FILES, PROGRAMS

    return {
        "files": lambda: Table(FILES, outputs_list(files)),
        "programs": lambda: Table(PROGRAMS, [row for result in results for row in _program_rows(result)]),
        **choice_tables(results),
    }


def _program_rows(result: CollectiveResult) -> Iterator[dict[str, Cell]]:
    from ..costing.tables import title_of

    for one in result.each:
        if one.made is not None:
            yield {"name": title_of(one), **_program_row(one.made)}


def outputs_list(files: Sequence[NamedFile]) -> list[dict[str, Cell]]:
    """Return the JSON objects of files."""
    from hashlib import sha256

    return [
        {
            "path": file.path, "target": file.target, "collective": file.collective,
            "bytes": len(file.artifact.data),
            "sha256": sha256(file.artifact.data).hexdigest(),
        }
        for file in files
    ]  # fmt: skip


def _one_object(result: CollectiveResult) -> dict[str, object]:
    from .cost import cost_object

    window = result.window
    which = {} if window is None else {"algorithm": window.algorithm, "label": window.label}
    remarks = {"remarks": list(result.remarks)} if result.remarks else {}
    members = result.request.problem.collective.members
    program, cost = _program_object(result.made, members), cost_object(result)
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


def _program_object(program: AnyProgram | None, members: tuple[int, ...] | None) -> dict[str, object] | None:
    if program is None:
        return None
    row = _program_row(program)
    if members is None or isinstance(program, SymmetricProgram):
        return {**row}
    return {**row, "participants": list(participants(program, members))}


def _program_row(program: AnyProgram) -> dict[str, Cell]:
    """Return the numbers of a program; in one of one rank and a group all ranks are alike."""
    if isinstance(program, SymmetricProgram):
        steps, listed = program.batched.block_start, program.seed
    else:
        steps, listed = program.block_start, program
    blocks = listed.rank_blocks[1:] - listed.rank_blocks[:-1]
    return {
        "ranks": program.num_ranks, "threadblocks_max": int(blocks.max(initial=0)), "channels": program.num_channels,
        "steps_max": int((steps[1:].astype(int) - steps[:-1]).max(initial=0)),
        "instructions": program.num_instructions, "chunks": program.chunks,
    }  # fmt: skip
