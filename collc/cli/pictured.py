"""The pictures of ``collc simulate``: a trace of messages or of threadblocks, an animation of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.backends.markup import root_of
from collc.ir.diagnostic import error
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.symmetric_program import SymmetricProgram

from ..driver.compilation import Failure, make_jobs, try_jobs
from ..registry.classes import target_class
from ..registry.elements import Element, parse_elements
from .inputs import settings

if TYPE_CHECKING:
    from collc.backends.simulator import Label, Simulation
    from collc.ir.levels import Executable
    from collc.ir.spec import CollectiveRequest, Spec

    from ..driver.result import CollectiveResult
    from .planned import Planned

__all__ = ["animation", "trace"]

#: the word of ``--trace-target`` for a trace of messages
MESSAGES = "messages"


def trace(name: str, planned: Planned, spec: Spec, start: Executable | None, options: SimpleNamespace) -> str:
    """Return the text of a trace: of the threadblocks of the emitted file if there is one, else of the messages.

    Raises C0044 for ranks that do not exist, C0041 for too many events, and what prevents the file.
    """
    from collc.backends.simulator import count_events, count_program_events, program_trace_json, trace_json

    size = planned.sizes[0]
    simulation, _ = planned.at[size]
    _require_ranks(name, simulation, options.trace_ranks)
    found = _of_threadblocks(planned, spec, start, options, size)
    if found is None:
        _require_events(name, count_events(simulation, options.trace_ranks))
        return trace_json(simulation, size, options.trace_ranks)
    program, labels, run = found
    events = count_program_events(program, run)
    chosen = len(options.trace_ranks) / program.num_ranks if options.trace_ranks else 1
    _require_events(name, int(events * chosen))
    return program_trace_json(program, run, size, labels, options.trace_ranks)


def _require_ranks(name: str, simulation: Simulation, ranks: Sequence[int] | None) -> None:
    most = simulation.topology.num_ranks
    absent = [rank for rank in ranks or () if rank >= most]
    if absent:
        raise error(
            "C0044",
            f"rank {absent[0]} does not exist: `{name}` has ranks 0 to {most - 1}",
            hint=f"write --trace-ranks 0..{most}, or leave it out for all ranks",
            exit_status=2,
        )


def _require_events(name: str, events: int) -> None:
    from collc.backends.simulator import MOST_EVENTS

    if events > MOST_EVENTS:
        raise error(
            "C0041",
            f"the trace of `{name}` may have {events} events, the limit is {MOST_EVENTS}",
            hint="choose ranks: --trace-ranks 0..8",
        )


# ---- threadblocks


def _of_threadblocks(
    planned: Planned, spec: Spec, start: Executable | None, options: SimpleNamespace, size: int
) -> tuple[Program, Sequence[Label], Simulation] | None:
    """Return the program of the emitted file, its instructions as the file names them, and its simulation."""
    from collc.backends.simulator import labels_of, on_routes, program_traffic

    if options.trace_target == MESSAGES:
        return None
    if isinstance(start, Program):
        program, labels = start, _labels(start, _text_of(options))
    else:
        result = _compiled(spec, options, size)
        if result is None:
            return None
        found = result.made.unfold() if isinstance(result.made, SymmetricProgram) else result.made
        if not isinstance(found, Program):
            return None
        program, labels = found, _labels(found, result.artifacts[0].text if result.artifacts else "")
    topology, level = planned.base.topology, planned.source.at(size).level
    if program.num_ranks != topology.num_ranks:
        return None
    traffic = program_traffic(program, topology)
    if isinstance(level, Schedule):
        traffic = on_routes(traffic, level)
    return program, labels or labels_of(program), planned.run(traffic)


def _labels(program: Program, text: str) -> Sequence[Label]:
    """Return the instructions as a file names them if it is MSCCL-XML; else none."""
    if root_of(text) != "algo":
        return []
    from collc.backends.msccl_xml.labels import file_labels

    return file_labels(program, text)


def _text_of(options: SimpleNamespace) -> str:
    """Return the text of the input file once more; of standard input, which is read, nothing."""
    path = options.files[0]
    try:
        return "" if path == "-" else Path(path).read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _compiled(spec: Spec, options: SimpleNamespace, size: int) -> CollectiveResult | None:
    """Return the result with the file for calls of a size; None if no file with a program is emitted."""
    elements = parse_elements(options.trace_target, "--trace-target") if options.trace_target else ()
    jobs, _ = make_jobs(spec, elements, options.collective)
    element = elements[0] if elements else _emitted(jobs[0].request)
    if element is None:
        return None
    if target_class(element.name, element.span).level != "program":
        message = f"`{element.name}` has no threadblocks to trace"
        raise error("C0051", message, hint="use `msccl-xml`, or `--trace-target messages`", exit_status=2)
    jobs, _ = make_jobs(spec, (element,), options.collective)
    outcome = try_jobs(jobs[:1], settings(options))[0]
    if isinstance(outcome, Failure):
        raise outcome.mistake
    found = [one for one in outcome.each if one.window is None or one.window.high is None or size <= one.window.high]
    return found[0] if found else outcome.each[-1]


def _emitted(request: CollectiveRequest) -> Element | None:
    """Return the first `emit` of a collective whose file has a program."""
    for emit in request.emits:
        if target_class(emit.target, emit.span).level == "program":
            return Element(emit.target, emit.options, emit.span)
    return None


# ---- the animation


def animation(name: str, planned: Planned) -> str:
    """Return the steps at the first size as an animated SVG; raise C0052 if the network is too large to draw."""
    from collc.backends.pictures.animation import animated

    size = planned.sizes[0]
    try:
        return animated(planned.at[size][0], size).file()
    except ValueError as problem:
        hint = "`collc report` lists the steps of large networks"
        raise error("C0052", f"`{name}` cannot be animated: {problem}", hint=hint) from None
