"""``collc simulate``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.diagnostic import error, warning
from collc.ir.laid_out import laid_out
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.shown import counted
from collc.ir.spec import Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.passes.synthesis.groups.applied import messages_of

from ..costing.orbits import Orbits, orbit_rows, orbits_of, root_rows
from ..costing.points import point_cells
from ..driver.compilation import Job, make_jobs
from ..driver.pipeline import plan
from ..driver.simulation_rows import link_of, simulation_row, step_rows
from ..driver.whole import on_its_part
from ..files.texts import Output, check_writable, write_all
from ..messages.quantities import show_size, show_size_about
from ..tables import further
from ..tables.columns import Cell, Table, with_floats
from ..tables.forms import rational
from ..tables.listed import SIMULATION
from .console import Console
from .failures import Failures
from .inputs import load, settings
from .planned import Compiled, Listed, Planned, Read, Sent, Source
from .points import legend, overheads_object, point_objects, point_table
from .roots import orbits_object, orbits_text
from .table import table
from .tabular import Tables, require_one_form, show, together
from .together import simulated_object, simulated_text
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from collc.backends.simulator import Crossover, Simulation, Traffic
    from collc.ir.levels import Executable
    from collc.ir.spec import Spec

    from ..driver.result import CollectiveResult, Settings
    from ..tables.columns import Column

__all__ = ["simulate"]

#: Sizes (bytes) if neither the command line nor the file names one.
DEFAULT_SIZES = (1 << 10, 1 << 20, 1 << 30)
#: Numbers of pieces that `--pieces=best` compares.
PIECES = tuple(1 << power for power in range(13))
#: Up to this number of ranks, every schedule is written out and executed before it is simulated.
MAX_EXPANDED_RANKS = 256

#: The line below times that depend on whether ranks wait for all others.
_AHEAD = "  run ahead: ranks do not wait for all others before a step; exact for rings: --run-ahead\n"

#: Sizes (bytes) of the points of a curve.
CURVE_SIZES = tuple(1 << power for power in range(5, 30))


@attrs.frozen(eq=False)
class _Entry:
    """One collective: its name, and its simulations."""

    name: str
    planned: Planned

    @property
    def simulation(self) -> Simulation:
        """The collective as declared."""
        return self.planned.base


def simulate(options: SimpleNamespace, console: Console) -> int:
    """Print how long the schedule of every collective takes on the links; write pictures; return the exit status."""
    require_one_form(options, options.files)
    spec, start = load(options, console, "simulate")
    jobs, _ = make_jobs(spec, (), options.collective, start)
    jobs = [job.schedule_only for job in jobs]
    _check(options, jobs, spec.files)
    network = _network(options)
    console.warn(spec.warnings)
    failures = Failures()
    start = laid_out(start) if isinstance(start, SymmetricProgram) else start
    if isinstance(start, Program):
        sources: dict[str, Source] = {jobs[0].request.name: Read(_program(start, network, options))}
    else:
        sources = _sources(jobs, options, console, failures)
    console.progress("simulating")
    _warn_of_pieces(sources, options, console)
    entries = failures.each(
        sources, str, lambda name: _Entry(name, _planned(name, sources[name], network, options))
    )  # fmt: skip
    blocks = _blocks(jobs, entries)
    requests = {job.request.name: job.request for job in jobs}
    orbits = orbits_of(  # several algorithms of one collective have names of their own, and are compared by `cost`
        (requests[e.name], {row.size: row.time for row in e.planned.rows}) for e in entries if e.name in requests
    )
    if not failures:
        _write_pictures(entries, spec, start, options, console)
    show(
        options, console, _tables(entries, options, blocks, orbits),
        lambda: _document(entries, options, failures, blocks, orbits),
        lambda: "\n".join([_text(entries, options, blocks), *map(orbits_text, orbits)]) if entries else "",
    )  # fmt: skip
    return failures.report(console)


def _tables(entries: Sequence[_Entry], options: SimpleNamespace, blocks: _Blocks, orbits: Sequence[Orbits]) -> Tables:
    """Return the tables by name; with ``--steps`` that of the steps is the first."""
    found: Tables = {
        "points": lambda: _table(SIMULATION, (_points(entry) for entry in entries)),
        "steps": lambda: _table(further.STEPS, (step_rows(entry.name, entry.simulation) for entry in entries)),
        "schedules": lambda: Table(further.SIMULATIONS, [simulation_row(e.name, e.simulation) for e in entries]),
        "crossovers": lambda: Table(further.CROSSOVERS, _changes(entries)),
        "roots": lambda: _table(further.ROOTS, map(root_rows, orbits)),
        "orbits": lambda: _table(further.ORBITS, map(orbit_rows, orbits)),
        "together": lambda: Table(further.TOGETHER_SIMULATED, [
            with_floats({"collectives": ", ".join(names), "time": time}) for names, time in blocks
        ]),
    }  # fmt: skip
    return {"steps": found["steps"], **found} if options.steps else found


def _table(columns: Sequence[Column], rows: Iterable[Iterable[Mapping[str, Cell]]]) -> Table:
    return Table(columns, [row for some in rows for row in some])


def _points(entry: _Entry) -> Iterator[dict[str, Cell]]:
    """Yield a row for every size of a collective."""
    s = entry.simulation
    about = with_floats({
        "name": entry.name, "collective": s.traffic.collective.name, "ranks": s.traffic.collective.num_ranks,
        "scheduler": s.traffic.scheduler, "topology": s.topology.name, "routing": s.routing,
        "congestion": s.congestion,
    })  # fmt: skip
    for cells in point_cells(entry.planned.rows):
        yield {**about, **cells}


def _check(options: SimpleNamespace, jobs: Sequence[Job], inputs: Sequence[str]) -> None:
    """Raise C0042, C0043 or C0060 for wrong options before anything is compiled."""
    if (options.trace or options.animate) and len(jobs) > 1:
        names = ", ".join(job.request.name for job in jobs)
        raise error(
            "C0043",
            f"{'a trace' if options.trace else 'an animation'} shows one collective, found {len(jobs)}: {names}",
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
    check_writable([path for path in (options.trace, options.svg, options.animate) if path], inputs)


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
    chosen = attrs.evolve(settings(options, Schedule), remembers=True)
    if chosen.recipe.elements is None:
        chosen = attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=()))
    return chosen


def _sources(
    jobs: Sequence[Job], options: SimpleNamespace, console: Console, failures: Failures
) -> dict[str, Source]:  # fmt: skip
    """Return by name every collective compiled to its schedule, or its messages if the schedule is too large."""
    listed = failures.each(jobs, lambda job: job.request.name, lambda job: (job.request.name, _messages(job, options)))
    found: dict[str, Sent | None] = dict(listed)
    watcher = Watcher(options, console)
    whole = [job for job in jobs if job.request.name in found and found[job.request.name] is None]
    results = failures.compiled(whole, _exact(options), watcher)
    show_times(results, options, console)
    compiled = {result.name: {_name(one): Compiled(one) for one in result.each} for result in results}
    sources: dict[str, Source] = {}
    for name, sent in found.items():
        if not failures.has(name):
            sources |= compiled[name] if sent is None else {name: sent}
    return sources


def _warn_of_pieces(sources: dict[str, Source], options: SimpleNamespace, console: Console) -> None:
    """Warn of collectives that `--pieces` does not change."""
    if options.pieces is None:
        return
    without = [name for name, source in sources.items() if not source.takes(1)]
    message = "`--pieces` changes nothing: the schedule of `{}` does not send the data in pieces"
    notes = ["`forest`, `double-binary-tree`, `box-trees` and `two-level` do"]
    console.warn(warning("C0061", message.format(name), notes=notes) for name in without)


def _name(result: CollectiveResult) -> str:
    """Return a collective's name, followed by its sizes if it is one algorithm of several."""
    return result.name if result.window is None else f"{result.name}-{result.window.label}"


def _messages(job: Job, options: SimpleNamespace) -> Sent | None:
    """Return the messages of a large collective whose scheduler knows them without its transfers, else None."""
    request = job.request
    is_small = request.problem.collective.num_ranks <= MAX_EXPANDED_RANKS
    if job.start is not None or options.passes is not None or is_small:
        return None
    if request.schedule.scheduler == "auto":
        return None
    chain = plan(_exact(options).recipe, request.schedule, None, start=Problem, until=Schedule).passes
    sent = messages_of(chain[0], request.problem) if len(chain) == 1 else None
    gamma = request.problem.topology.gamma if options.gamma is None else options.gamma
    if sent is None or (gamma and sent.reduced is None):
        return None
    pieces = chain[0].num_pieces(request.problem) or 1
    return Sent(chain[0], request.problem, {(None, None): Listed(sent, pieces)})


def _planned(name: str, source: Source, network: Topology | None, options: SimpleNamespace) -> Planned:
    from collc.backends import simulator

    level = source.at(None).level
    if network is not None and network.num_ranks != level.topology.num_ranks:
        raise error(
            "C0040",
            f"`{options.network}` has {network.num_ranks} ranks, "
            f"but `{name}` is scheduled on {level.topology.num_ranks}",
            hint=f"name a network of {level.topology.num_ranks} ranks",
            exit_status=2,
        )
    given = {"base": options.alpha, "per_hop": options.per_hop, "overhead": options.overhead}
    latency = attrs.evolve(
        simulator.LATENCIES[options.latency], **{name: value for name, value in given.items() if value is not None}
    )
    one = partial(
        simulator.simulate, network=network, routing=options.routing, latency=latency, bandwidth=options.bandwidth,
        dimensions=None if options.dimensions is None else Fraction(options.dimensions), run_ahead=options.run_ahead,
        gamma=options.gamma, epsilon=options.epsilon,
    )  # fmt: skip
    counts = None
    if options.pieces is not None and source.takes(1):
        counts = tuple(filter(source.takes, PIECES)) if options.pieces == "best" else (options.pieces,)
    own_size = level.collective.size
    sizes = options.size or (CURVE_SIZES if options.svg else [own_size] if own_size is not None else DEFAULT_SIZES)
    shares = source.result.request.problem.shares if isinstance(source, Compiled) and network is None else None
    return Planned(source, lambda level: one(on_its_part(level, shares)), tuple(sizes), counts)


#: the names of the collectives of a block, and their time
_Blocks = Sequence[tuple[tuple[str, ...], Fraction]]


def _blocks(jobs: Sequence[Job], entries: Sequence[_Entry]) -> _Blocks:
    """Return every block all of whose collectives were simulated, and the time of the slowest, each in its own size."""
    found: dict[tuple[str, ...], Fraction] = {}
    planned = {entry.name: entry.planned for entry in entries}
    for job in jobs:
        names = tuple(request.name for request in job.block.requests) if job.block is not None else ()
        if names and all(name in planned for name in names):
            found[names] = max(_own_time(planned[name]) for name in names)
    return list(found.items())


def _own_time(planned: Planned) -> Fraction:
    size = planned.traffic.collective.size
    return planned.base.time(USUAL_SIZE if size is None else size)


# ---- pictures


def _write_pictures(
    entries: Sequence[_Entry], spec: Spec, start: Executable | None, options: SimpleNamespace, console: Console
) -> None:
    outputs = []
    if options.trace:
        from .pictured import trace

        outputs.append(Output(options.trace, trace(entries[0].name, entries[0].planned, spec, start, options)))
    if options.animate:
        from .pictured import animation

        outputs.append(Output(options.animate, animation(entries[0].name, entries[0].planned)))
    if options.svg:
        from ..pictures.goodput import Curve, goodput_svg

        curves = [Curve(e.name, e.simulation.traffic.scheduler, e.planned) for e in entries]
        bound = _bound(entries, options)
        outputs.append(Output(options.svg, goodput_svg(curves, entries[0].planned.sizes, bound)))
    if outputs:
        console.signals.check()
        write_all(outputs)


def _bound(entries: Sequence[_Entry], options: SimpleNamespace) -> Fraction | None:
    """Return the bytes a second that no schedule exceeds, if all curves are of one collective on its own network."""
    from collc.ir.costs.cost import unit_seconds

    found = set()
    for entry in entries:
        source = entry.planned.source
        if options.network or not isinstance(source, Compiled):
            return None
        seconds = unit_seconds(entry.simulation.topology, options.bandwidth)
        found.add((entry.simulation.traffic.collective.name, source.result.plain_cost.bound.value * seconds))
    kinds, values = {kind for kind, _ in found}, {value for _, value in found}
    return 1 / max(values) if len(kinds) == 1 and len(values) == 1 and min(values) > 0 else None


# ---- JSON


def _document(
    entries: Sequence[_Entry],
    options: SimpleNamespace,
    failures: Failures,
    blocks: _Blocks,
    orbits: Sequence[Orbits],
) -> Mapping[str, object]:
    """Return the object of ``--json``."""
    objects = [_object(entry, options) for entry in entries]
    more = {"together": [simulated_object(*block) for block in blocks]} if blocks else {}
    if orbits:
        more["roots"] = list(map(orbits_object, orbits))
    return together(objects, failures.objects(), crossovers=_changes(entries), **more)


def _object(entry: _Entry, options: SimpleNamespace) -> dict[str, object]:
    """Rationals are strings beside floats; loads are shares of M, the whole vector."""
    s, rows = entry.simulation, entry.planned.rows
    collective = s.traffic.collective
    exact = s.exact_latency_deficiency
    return {
        "name": entry.name, "ranks": collective.num_ranks, "collective": collective.name,
        "scheduler": s.traffic.scheduler, "topology": s.topology.name, "routing": s.routing,
        "latency": s.latency.name, "run_ahead": s.run_ahead, "steps": s.num_steps,
        **rational("max_link_load", s.max_link_load),
        **rational("congestion", s.congestion), **rational("bandwidth_deficiency", s.bandwidth_deficiency),
        **rational("congestion_deficiency", s.congestion_deficiency),
        "latency_deficiency": None if exact is None else str(exact),
        # logarithms differ in their last digit from machine to machine
        "latency_deficiency_float": None if s.latency_deficiency is None else round(s.latency_deficiency, 12),
        **rational("sent_per_rank", s.sent),
        "link_loads": [
            {"times": step.times, "messages": step.messages, "hops": step.hops,
             **rational("max_link_load", step.load), "link": link_of(s, step.link) if step.messages else None}
            for step in s.steps
        ],
        "points": [
            {**point, "goodput_Gbps": row.algbw * 8 / 1e9}
            for point, row in zip(point_objects(rows), rows, strict=True)
        ],
        "assumed": _assumed(s, options), **overheads_object(s.traffic.reduced, s.gamma, s.epsilon),
    }  # fmt: skip


def _assumed(s: Simulation, options: SimpleNamespace) -> tuple[str, ...]:
    from collc.backends.simulator import assumptions

    return assumptions(s.topology, s.latency, options.bandwidth)


def _changes(entries: Sequence[_Entry]) -> list[dict[str, Cell]]:
    """Return the sizes at which another collective becomes the fastest."""
    return [
        {"size_bytes": change.size, "from": entries[change.before].name, "to": entries[change.to].name}
        for change in _crossovers(entries)
    ]


def _crossovers(entries: Sequence[_Entry]) -> Sequence[Crossover]:
    from collc.backends.simulator import crossovers

    return crossovers([one.planned for one in entries], [size for one in entries for size in one.planned.sizes])


# ---- text


def _text(entries: Sequence[_Entry], options: SimpleNamespace, blocks: _Blocks) -> str:
    text = "\n".join([*(_one(entry, options) for entry in entries), *(simulated_text(*block) for block in blocks)])
    if blocks:
        return text
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
    among = "" if kind.members is None else f"{kind.num_members} of "
    routes = "over shortest routes" if s.routing == "minimal" else "as scheduled"
    where = f"{among}{kind.num_ranks} ranks of {s.topology.name}"
    text = f"{entry.name}: {kind.name} on {where} by {s.traffic.scheduler}, {routes}\n"
    text += table(_figures(s), indent="  ")
    if options.steps:
        text += table(_steps(s), head=("step", "messages", "links", "max link load", "on"), right=(1, 2), indent="  ")
    rows = entry.planned.rows
    text += point_table(rows) + legend(_assumed(s, options), entry.planned.by_size, s.gamma, s.epsilon)
    return text + (_AHEAD if any(row.in_step != row.run_ahead for row in rows) else "")


def _steps(s: Simulation) -> list[tuple[str, ...]]:
    """Return one row per different step; the repetitions of a ring share a row."""
    rows: list[tuple[str, ...]] = []
    first = 0
    for step in s.steps:
        number = str(first) if step.times == 1 else f"{first}..{first + step.times}"
        on = link_of(s, step.link) if step.messages else ""
        rows.append((number, str(step.messages), str(step.hops), str(step.load), on))
        first += step.times
    return rows


def _figures(s: Simulation) -> list[tuple[str, str, str]]:
    """Return the lines above the table of sizes: name, value, remark."""
    busiest = max(s.steps, key=lambda step: step.load, default=None)
    hops = max((step.hops for step in s.steps), default=0)
    latency = s.latency_deficiency
    rows = [
        ("steps", str(s.num_steps), f"longest route {counted(hops, 'link')}"),
        ("latency deficiency", "" if latency is None else f"{latency:.4g}", "Lambda: steps over log2 of the ranks"),
        ("congestion", f"{s.congestion} ({float(s.congestion):.4f})", "Psi Xi: bandwidth term over n/D beta"),
        ("bandwidth deficiency", f"{s.bandwidth_deficiency} ({float(s.bandwidth_deficiency):.4f})", "Psi"),
    ]
    if s.congestion_deficiency is not None:
        rows.append(
            ("congestion deficiency", f"{s.congestion_deficiency} ({float(s.congestion_deficiency):.4f})", "Xi")
        )
    if busiest is not None and busiest.messages:
        rows.append(("max link load", f"{busiest.load} of the vector", f"in a step, on {link_of(s, busiest.link)}"))
    return rows
