"""``collc simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import error
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ..driver.compilation import Job, make_jobs, run_jobs
from ..driver.pipeline import plan
from ..files.texts import Output, check_writable, write_all
from ..messages.quantities import show_size, show_size_about, show_time
from .console import Console
from .inputs import load, settings
from .table import table
from .watcher import Watcher, time_table

if TYPE_CHECKING:
    from collc.backends.simulator import Crossover, Simulation, Traffic
    from collc.backends.simulator import Level as Simulable
    from collc.ir.costs.messages import Messages

    from ..driver.result import CollectiveResult, Settings

__all__ = ["simulate"]

#: Sizes (bytes) if neither the command line nor the file names one.
DEFAULT_SIZES = (1 << 10, 1 << 20, 1 << 30)
#: Numbers of pieces that `--pieces=best` compares.
PIECES = tuple(1 << power for power in range(13))
#: Up to this number of ranks, every schedule is written out and executed before it is simulated.
MAX_EXPANDED_RANKS = 256

#: Sizes (bytes) of the points of a curve.
CURVE_SIZES = tuple(1 << power for power in range(5, 30))


@attrs.frozen(eq=False)
class _Entry:
    """One collective: its name, its simulation, and the sizes to print (bytes)."""

    name: str
    simulation: Simulation
    sizes: tuple[int, ...]


def simulate(options: SimpleNamespace, console: Console) -> int:
    """Print how long the schedule of every collective takes on the links; write pictures; return the exit status."""
    spec, start = load(options, console, "simulate")
    jobs, _ = make_jobs(spec, (), options.collective, start)
    jobs = [Job(job.request, (), job.start) for job in jobs]
    _check(options, jobs, spec.files)
    network = _network(options)
    console.warn(spec.warnings)
    if isinstance(start, Program):
        levels: dict[str, Simulable] = {jobs[0].request.name: _program(start, network, options)}
    else:
        levels = _levels(jobs, options, console)
    console.progress("simulating")
    entries = [_entry(name, level, network, options) for name, level in levels.items()]
    _write_pictures(entries, options, console)
    if options.json:
        console.json(_document(entries, options))
    else:
        console.out(_text(entries, options))
    return 0


def _check(options: SimpleNamespace, jobs: Sequence[Job], inputs: Sequence[str]) -> None:
    """Raise C0042, C0043 or C0060 for wrong options before anything is compiled."""
    if options.trace and len(jobs) > 1:
        names = ", ".join(job.request.name for job in jobs)
        raise error(
            "C0043",
            f"a trace shows one collective, found {len(jobs)}: {names}",
            hint=f"choose one: --collective {jobs[0].request.name}",
            exit_status=2,
        )
    if options.trace and options.run_ahead:
        message = "a trace shows steps one after the other, but `--run-ahead` overlaps them"
        raise error("C0060", message, hint="leave out `--run-ahead` or `--trace`", exit_status=2)
    if options.svg and options.size and len(set(options.size) - {0}) < 2:
        raise error(
            "C0042",
            f"a curve needs at least two sizes, found {', '.join(show_size(size) for size in options.size)}",
            hint="name several sizes, or leave out --size for 32 B to 512 MiB",
            exit_status=2,
        )
    check_writable([path for path in (options.trace, options.svg) if path], inputs)


def _network(options: SimpleNamespace) -> Topology | None:
    """Return the topology of ``--network``, or None without the option."""
    if not options.network:
        return None
    from collc.frontends import coll

    return coll.topology(options.network, node_limit=options.node_limit)


def _program(program: Program, network: Topology | None, options: SimpleNamespace) -> Traffic:
    """Return the traffic of a program over ``network``; without one, every rank has a link to every other."""
    from collc.backends.simulator import program_traffic
    from collc.frontends import coll
    from collc.ir.verify import verify

    if options.verify != "off":
        verify(program).require()
    if network is None or network.num_ranks != program.num_ranks:  # the simulator refuses another size later
        network = coll.topology(f"complete({program.num_ranks})", node_limit=options.node_limit)
    return program_traffic(program, network)


def _exact(options: SimpleNamespace) -> Settings:
    """Return settings that stop at the schedule; only ``-p`` can cut it into chunks."""
    chosen = settings(options, Schedule)
    if chosen.recipe.elements is None:
        chosen = attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=()))
    return chosen


def _levels(jobs: Sequence[Job], options: SimpleNamespace, console: Console) -> dict[str, Simulable]:
    """Return by name the schedule of every collective, or only its messages if the schedule is too large."""
    found: dict[str, Messages | None] = {job.request.name: _messages(job, options) for job in jobs}
    watcher = Watcher(options, console)
    results = run_jobs([job for job in jobs if found[job.request.name] is None], _exact(options), observer=watcher)
    watcher.ends()
    if options.time_passes:
        console.err(time_table(results))
    compiled = {result.name: {_name(one): one.schedule for one in result.each} for result in results}
    levels: dict[str, Simulable] = {}
    for name, sent in found.items():
        for label, level in compiled.get(name, {name: sent}).items():
            assert level is not None, "a collective without messages of its own was compiled to a schedule"
            levels[label] = level
    return levels


def _name(result: CollectiveResult) -> str:
    """Return a collective's name, followed by its sizes if it is one algorithm of several."""
    return result.name if result.window is None else f"{result.name}-{result.window.label}"


def _messages(job: Job, options: SimpleNamespace) -> Messages | None:
    """Return the messages of a large collective whose scheduler knows them without its transfers, else None."""
    request = job.request
    is_small = request.problem.collective.num_ranks <= MAX_EXPANDED_RANKS
    if job.start is not None or options.passes is not None or is_small:
        return None
    if request.schedule.scheduler == "auto":
        return None
    chain = plan(_exact(options).recipe, request.schedule, None, start=Problem, until=Schedule).passes
    return chain[0].messages(request.problem) if len(chain) == 1 else None


def _entry(name: str, level: Simulable, network: Topology | None, options: SimpleNamespace) -> _Entry:
    from collc.backends import simulator

    if network is not None and network.num_ranks != level.topology.num_ranks:
        raise error(
            "C0040",
            f"`{options.network}` has {network.num_ranks} ranks, "
            f"but `{name}` is scheduled on {level.topology.num_ranks}",
            hint="name a network of as many ranks",
            exit_status=2,
        )
    given = {"base": options.alpha, "per_hop": options.per_hop, "overhead": options.overhead}
    latency = attrs.evolve(
        simulator.LATENCIES[options.latency], **{name: value for name, value in given.items() if value is not None}
    )
    one = partial(
        simulator.simulate, network=network, routing=options.routing, latency=latency, bandwidth=options.bandwidth,
        dimensions=None if options.dimensions is None else Fraction(options.dimensions), run_ahead=options.run_ahead,
    )  # fmt: skip
    simulation = one(level)
    if isinstance(level, Forest) and options.pieces is not None:
        counts = PIECES if options.pieces == "best" else (options.pieces,)
        simulation, *others = (one(simulator.forest_traffic(level, pieces)) for pieces in counts)
        simulation = attrs.evolve(simulation, others=tuple(others))
    own_size = level.collective.size
    sizes = options.size or (CURVE_SIZES if options.svg else [own_size] if own_size is not None else DEFAULT_SIZES)
    return _Entry(name, simulation, tuple(sizes))


# ---- pictures


def _write_pictures(entries: Sequence[_Entry], options: SimpleNamespace, console: Console) -> None:
    outputs = []
    if options.trace:
        outputs.append(Output(options.trace, _trace(entries[0], options)))
    if options.svg:
        from ..pictures.goodput import Curve, goodput_svg

        curves = [Curve(e.name, e.simulation.traffic.scheduler, e.simulation) for e in entries]
        outputs.append(Output(options.svg, goodput_svg(curves, entries[0].sizes)))
    if outputs:
        console.signals.check()
        write_all(outputs)


def _trace(entry: _Entry, options: SimpleNamespace) -> str:
    from collc.backends.simulator import MOST_EVENTS, count_events, trace_json

    ranks = options.trace_ranks
    most = entry.simulation.topology.num_ranks
    absent = [rank for rank in ranks or () if rank >= most]
    if absent:
        raise error(
            "C0044", f"rank {absent[0]} does not exist: `{entry.name}` has ranks 0 to {most - 1}", exit_status=2
        )
    events = count_events(entry.simulation, ranks)
    if events > MOST_EVENTS:
        raise error(
            "C0041",
            f"the trace of `{entry.name}` may have {events} events, the limit is {MOST_EVENTS}",
            hint="choose ranks: --trace-ranks 0..8",
        )
    return trace_json(entry.simulation, entry.sizes[0], ranks)


# ---- JSON


def _document(entries: Sequence[_Entry], options: SimpleNamespace) -> dict[str, object]:
    """Return the object of ``--json``: the only collective, or the first with all in ``collectives``."""
    objects = [_object(entry, options) for entry in entries]
    if len(objects) == 1:
        return objects[0]
    changes = [
        {"size_bytes": change.size, "from": entries[change.before].name, "to": entries[change.to].name}
        for change in _crossovers(entries)
    ]
    return {**objects[0], "collectives": objects, "crossovers": changes}


def _object(entry: _Entry, options: SimpleNamespace) -> dict[str, object]:
    """Rationals are strings beside floats; loads are shares of M, the whole vector."""
    s = entry.simulation
    collective = s.traffic.collective
    exact = s.exact_latency_deficiency
    return {
        "name": entry.name, "ranks": collective.num_ranks, "collective": collective.kind,
        "scheduler": s.traffic.scheduler, "topology": s.topology.name, "routing": s.routing,
        "latency": s.latency.name, "run_ahead": s.run_ahead, "steps": s.num_steps,
        **_rational("max_link_load", s.max_link_load),
        **_rational("congestion", s.congestion), **_rational("bandwidth_deficiency", s.bandwidth_deficiency),
        **_rational("congestion_deficiency", s.congestion_deficiency),
        "latency_deficiency": None if exact is None else str(exact),
        # logarithms differ in their last digit from machine to machine
        "latency_deficiency_float": None if s.latency_deficiency is None else round(s.latency_deficiency, 12),
        **_rational("sent_per_rank", s.sent),
        "link_loads": [
            {"times": step.times, "messages": step.messages, "hops": step.hops,
             **_rational("max_link_load", step.load), "link": _link(s, step.link) if step.messages else None}
            for step in s.steps
        ],
        "points": [
            {"size_bytes": p.size, "time_us": p.time * 1e6, "algbw_GBps": p.bandwidth / 1e9,
             "goodput_Gbps": p.bandwidth * 8 / 1e9}
            for p in s.points(entry.sizes)
        ],
        "assumed": _assumed(s, options),
    }  # fmt: skip


def _rational(name: str, value: Fraction | None) -> dict[str, object]:
    return {name: None if value is None else str(value), f"{name}_float": None if value is None else float(value)}


def _link(simulation: Simulation, link: int) -> str:
    topology = simulation.topology
    return f"{topology.names[int(topology.src[link])]} -> {topology.names[int(topology.dst[link])]}"


def _assumed(s: Simulation, options: SimpleNamespace) -> list[str]:
    """Return the values that neither the topology nor the options give."""
    from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH

    found = []
    if s.latency.base is None and not any(kind.latency for kind in s.topology.classes):
        found.append(f"{DEFAULT_ALPHA * 10**6} us a message")
    if options.bandwidth is None and s.topology.unit != "B/s":
        of = "out of a node" if s.topology.is_direct and s.topology.node_bandwidth is not None else "a link unit"
        found.append(f"{DEFAULT_BANDWIDTH * 8 / 10**9} Gbps {of}")
    return found


def _crossovers(entries: Sequence[_Entry]) -> Sequence[Crossover]:
    from collc.backends.simulator import crossovers

    return crossovers([entry.simulation for entry in entries], [size for entry in entries for size in entry.sizes])


# ---- text


def _text(entries: Sequence[_Entry], options: SimpleNamespace) -> str:
    text = "\n".join(_one(entry, options) for entry in entries)
    names, changes = [entry.name for entry in entries], _crossovers(entries)
    if changes:
        text += "\nfastest:\n"
    for change in changes:
        size = f"{show_size_about(change.size)} ({change.size} B)"
        text += f"  {names[change.before]} until {size}, then {names[change.to]}\n"
    return text


def _one(entry: _Entry, options: SimpleNamespace) -> str:
    s = entry.simulation
    kind = s.traffic.collective
    routes = "over shortest routes" if s.routing == "minimal" else "as scheduled"
    text = (
        f"{entry.name}: {kind.kind} on {kind.num_ranks} ranks of {s.topology.name} by {s.traffic.scheduler}, {routes}\n"
    )
    text += table(_figures(s), indent="  ")
    if options.steps:
        text += table(_steps(s), head=("step", "messages", "links", "max link load", "on"), right=(1, 2), indent="  ")
    lines = [
        (show_size(p.size), show_time(p.time), f"{p.bandwidth / 1e9:.4g} GB/s", f"{p.bandwidth * 8 / 1e9:.4g} Gb/s")
        for p in s.points(entry.sizes)
    ]
    text += table(lines, head=("size", "time", "algbw", "goodput"), right=(0, 1, 2, 3), indent="  ")
    assumed = _assumed(s, options)
    return text + (f"  times assume {' and '.join(assumed)}: --alpha, --bandwidth\n" if assumed else "")


def _steps(s: Simulation) -> list[tuple[str, ...]]:
    """Return one row per different step; the repetitions of a ring share a row."""
    rows: list[tuple[str, ...]] = []
    first = 0
    for step in s.steps:
        number = str(first) if step.times == 1 else f"{first}..{first + step.times}"
        on = _link(s, step.link) if step.messages else ""
        rows.append((number, str(step.messages), str(step.hops), str(step.load), on))
        first += step.times
    return rows


def _figures(s: Simulation) -> list[tuple[str, str, str]]:
    """Return the lines above the table of sizes: name, value, remark."""
    busiest = max(s.steps, key=lambda step: step.load, default=None)
    hops = max((step.hops for step in s.steps), default=0)
    latency = s.latency_deficiency
    rows = [
        ("steps", str(s.num_steps), f"longest route {hops} link{'s' * (hops != 1)}"),
        ("latency deficiency", "" if latency is None else f"{latency:.4g}", "Lambda: steps over log2 of the ranks"),
        ("congestion", f"{s.congestion} ({float(s.congestion):.4f})", "Psi Xi: bandwidth term over n/D beta"),
        ("bandwidth deficiency", f"{s.bandwidth_deficiency} ({float(s.bandwidth_deficiency):.4f})", "Psi"),
    ]
    if s.congestion_deficiency is not None:
        rows.append(
            ("congestion deficiency", f"{s.congestion_deficiency} ({float(s.congestion_deficiency):.4f})", "Xi")
        )
    if busiest is not None and busiest.messages:
        rows.append(("max link load", f"{busiest.load} of the vector", f"in a step, on {_link(s, busiest.link)}"))
    return rows
