"""One case of a sweep: a network, a collective and a scheduler, at several sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

import attrs

from collc.ir.costs.busbw import bus_factor_of
from collc.ir.costs.cost import predicted_time, seconds_per_unit
from collc.ir.diagnostic import CollcError, error, nearest
from collc.ir.frozen import frozen
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest, ScheduleRequest, Spec
from collc.ir.topology import Topology

from ..driver.compilation import Job, compiled
from ..driver.plan import Recipe
from ..driver.result import CollectiveResult, Settings
from ..driver.sizes import algorithm_name, at_size, cost_at_size, num_pieces
from ..messages.internal import contained
from ..reading import load
from ..reading.base import ReadOptions
from ..reading.loading import Loading
from ..registry.elements import Element

__all__ = ["Case", "Prediction", "SweepRow", "collective_of", "failed", "run"]

_TEXT = re.compile(r"\s*([A-Za-z-]+)\s*(\{.*\})?\s*", re.DOTALL)
#: the name of the network in the text of a case
_NETWORK = "network"


@frozen
class Prediction:
    """The values of the cost model, None for the topology's own: ``alpha`` and ``epsilon`` in seconds, ``bandwidth`` in
    bytes per second, ``gamma`` in seconds a byte.
    """

    alpha: Fraction | None = None
    bandwidth: Fraction | None = None
    gamma: Fraction | None = None
    epsilon: Fraction | None = None


@frozen
class SweepRow:
    """One row: what was asked for, and the exact prediction, or the ``code`` and ``message`` of what went wrong.

    ``size`` is M in bytes. ``time`` is in seconds, ``bound`` the least bandwidth time of the schedules that the bound
    of the cost model is among. ``scheduler`` is that of the schedule, ``algorithm`` what `auto` chose for the size.
    ``status`` is the exit status of the command for the mistake alone, 0 without one.

    >>> import collc
    >>> [row] = collc.sweep("torus(3, 3)", "allreduce", "bfb", sizes=1024).rows
    >>> row.ok, row.T_L, row.T_B, row.time
    (True, 4, Fraction(16, 9), Fraction(141137, 3515625000))
    """

    network: str
    collective: str
    using: str
    size: int
    ranks: int | None = None
    degree: int | None = None
    scheduler: str = ""
    algorithm: str = ""
    steps: int | None = None
    pieces: int | None = None
    T_L: int | None = None
    T_B: Fraction | None = None
    time_per_byte: Fraction | None = None
    time: Fraction | None = None
    bound: Fraction | None = None
    bus_factor: Fraction | None = None
    code: str = ""
    message: str = ""
    status: int = 0

    @property
    def ok(self) -> bool:
        """Whether there is a time."""
        return self.time is not None


@frozen(eq=False)
class Case:
    """What one worker does: ``topology`` is None if the network could not be built, for the reason ``problem``.

    ``collective`` is as the language writes it (``broadcast { root: 3 }``), ``using`` the text of ``scheduler``.
    """

    network: str
    topology: Topology | None
    collective: str
    using: str
    scheduler: Element
    sizes: tuple[int, ...]
    prediction: Prediction
    node_limit: int
    verify: str = "each"
    problem: CollcError | None = None

    @property
    def name(self) -> str:
        """The case in one line, for progress."""
        return f"{self.collective} on {self.network} by {self.using}"

    def row(self, size: int) -> SweepRow:
        """Return the row of a size without a result."""
        known = self.topology
        ranks, degree = (None, None) if known is None else (known.num_ranks, known.degree)
        return SweepRow(self.network, self.collective, self.using, size, ranks, degree)


def collective_of(text: str, known: Iterable[str]) -> str:
    """Return a collective as the language writes it; raise C0029 for another text.

    >>> collective_of("broadcast{root: 3}", ["broadcast"])
    'broadcast { root: 3 }'
    """
    found, names = _TEXT.fullmatch(text), list(known)
    if found is None or found[1] not in names or not _is_one_block(found[2] or "{}"):
        name = text if found is None else found[1]
        hint = nearest(name, names) or f"collectives are {', '.join(names)}"
        raise error("C0029", f"found `{text}`, needed a collective", hint=hint, exit_status=2)
    attributes = (found[2] or "")[1:-1].strip()
    return f"{found[1]} {{ {attributes} }}" if attributes else found[1]


def _is_one_block(text: str) -> bool:
    """Return whether the first brace of a text is closed by its last one, and it is one statement.

    >>> _is_one_block("{ weights: {1, 2} }"), _is_one_block("{}; include {}"), _is_one_block("{ a: 1 } on {}")
    (True, False, False)
    """
    depth, open_until_end = 0, True
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        open_until_end &= depth > 0 or place == len(text) - 1
    return open_until_end and depth == 0 and not any(mark in text for mark in ";#\n")


def run(case: Case) -> tuple[SweepRow, ...]:
    """Return a row for every size of a case. A mistake is in its rows; nothing is raised but what ends the process."""
    if case.topology is None:
        assert case.problem is not None
        return failed(case, case.problem)
    try:
        found = contained("sweep", lambda: _compiled(case))
    except CollcError as mistake:
        return failed(case, mistake)
    return tuple(_row(case, found, size) for size in case.sizes)


def failed(case: Case, mistake: CollcError) -> tuple[SweepRow, ...]:
    """Return the rows of a case that has no schedule."""
    return tuple(_failed(case.row(size), mistake) for size in case.sizes)


def _failed(row: SweepRow, mistake: CollcError) -> SweepRow:
    first = mistake.diagnostics[0]
    return attrs.evolve(row, code=first.code, message=first.message, status=mistake.exit_status)


def _compiled(case: Case) -> CollectiveResult:
    """Compile the schedule of a case, in exact parts, as ``collc cost`` does."""
    request = _request(case)
    settings = Settings(Recipe("2", ()), case.verify, until=Schedule, remembers=True)
    return compiled(Job(request, ()), settings)


def _request(case: Case) -> CollectiveRequest:
    assert case.topology is not None
    loading = Loading({}, (), case.node_limit, {_NETWORK: case.topology})
    words, brace, attributes = case.collective.partition("{")
    text = f"collective c = {words.strip()} on {_NETWORK} {brace}{attributes};"
    spec, _ = load(text, case.collective, "compile", ReadOptions(loading))
    if len(spec.collectives) != 1:
        raise _several(spec)
    request = next(iter(spec.collectives.values()))
    schedule = ScheduleRequest(case.scheduler.name, case.scheduler.options, name_span=case.scheduler.span)
    problem = attrs.evolve(request.problem, topology=case.topology)  # with its own name, for messages
    return attrs.evolve(request, schedule=schedule, problem=problem, topology=case.topology.name)


def _several(spec: Spec) -> CollcError:
    message = f"found {len(spec.collectives)} plans, needed a collective with one"
    return error("C0029", message, hint="name one root: `broadcast { root: 0 }`", exit_status=2)


def _row(case: Case, result: CollectiveResult, size: int) -> SweepRow:
    row = case.row(size)
    try:
        return contained("sweep", lambda: _predicted(row, _serving(result, size), case.prediction))
    except CollcError as mistake:
        return _failed(row, mistake)


def _serving(result: CollectiveResult, size: int) -> CollectiveResult:
    """Return the algorithm of a range of sizes that serves a size; the result itself without a range."""
    fits = [
        one for one in result.each
        if one.window is None or (one.window.low <= size and (one.window.high is None or size <= one.window.high))
    ]  # fmt: skip
    if not fits:
        raise error("C0029", f"found {size} bytes, needed a size of the range of `auto`", exit_status=1)
    return fits[0]


def _predicted(row: SweepRow, base: CollectiveResult, given: Prediction) -> SweepRow:
    planned = at_size(base, row.size)
    cost, whole = cost_at_size(planned, base), base.cost
    assert planned.schedule is not None, "a sweep compiles schedules"
    gamma = whole.gamma if given.gamma is None else given.gamma
    epsilon = whole.epsilon if given.epsilon is None else given.epsilon
    time = predicted_time(cost, row.size, given.alpha, given.bandwidth, gamma, epsilon)
    scale = seconds_per_unit(whole.unit, whole.node_bandwidth, given.bandwidth)
    return attrs.evolve(
        row, scheduler=cost.scheduler, algorithm=algorithm_name(planned) or _algorithm_of_range(base),
        steps=cost.steps, pieces=num_pieces(planned), T_L=cost.T_L, T_B=cost.T_B, time_per_byte=cost.time_per_byte,
        time=time, bound=whole.time_per_byte_bound * scale * row.size,
        bus_factor=bus_factor_of(planned.schedule.collective),
    )  # fmt: skip


def _algorithm_of_range(result: CollectiveResult) -> str:
    return "" if result.window is None else result.window.algorithm
