"""The time-expanded mixed-integer program: which rank receives which part at which step.

Items are cut in ``types`` equal parts. The unknowns are: for each part, rank and step, whether the part arrives then;
for each part, pair of ranks and step, the share of the part that uses the pair; for each step its length, what a link
of unit width carries. A rank sends only parts that have arrived completely before. With given arrivals, the shares of a
step are a transport problem, so they are multiples of the lengths' unit: only arrivals and lengths need to be integer.
With as many types as chunks this is the formulation of SCCL (Cai et al., PPoPP 2021): every chunk travels whole, along
its own route.

On a network with a group, the program may be limited to schedules that the group's translations leave unchanged
(``folded``). Then item 0 decides for all, and the program is smaller by the number of ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import starts

from ...solver import run
from .demand import Demand

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Answer", "Question", "program_size", "solve"]

_MOST_ENTRIES = 10_000_000
_OPTIONS: tuple[tuple[str, bool | int | float], ...] = (
    ("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.999),
)  # fmt: skip


@attrs.frozen
class Question:
    """The parameters of a program: steps, types (parts of an item), the lengths' unit 1/``grain`` of a part."""

    steps: int
    types: int
    grain: int
    folded: bool = False
    #: limits of the total length, in grains; ``most`` may be None
    least: int = 0
    most: int | None = None


@attrs.frozen(eq=False)
class Answer:
    """The result: ``arrival[part, rank]`` (0 at the source, steps from 1, -1 never), or None.

    ``bound`` is a proved lower bound on the total length in grains; ``status`` is ``optimal``, ``infeasible`` or
    ``stopped`` (at a limit). ``questions`` counts the work (:mod:`...solver`). Parts count item by item.
    """

    status: str
    arrival: Array | None
    total: int | None
    bound: int
    questions: int = 0


class _Rows:
    """Rows of a sparse matrix, in the order they are added."""

    def __init__(self) -> None:
        self.index: list[Array] = []
        self.value: list[Array] = []
        self.count: list[int] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, index: ArrayLike, value: ArrayLike, lower: float, upper: float) -> None:
        columns = np.asarray(index, dtype=np.int32)
        self.index.append(columns)
        self.value.append(np.broadcast_to(np.asarray(value, dtype=float), columns.shape))
        self.count.append(len(columns))
        self.lower.append(lower)
        self.upper.append(upper)


@attrs.frozen(eq=False)
class _Program:
    """The columns: arrivals first (part, rank, step), then shares (part, pair, step), then one length per step."""

    demand: Demand
    question: Question
    items: int
    first_step: Array  # (part, rank): the first step at which the part can arrive
    last_step: Array  # (part, rank): the last step at which its arrival is useful
    arrives: Array  # (part, rank, step): column or -1
    share: Array  # (part, pair, step): column or -1

    @property
    def columns(self) -> int:
        return self.lengths + self.question.steps

    @property
    def lengths(self) -> int:
        return int((self.arrives >= 0).sum() + (self.share >= 0).sum())


def _program(demand: Demand, question: Question) -> _Program:
    items = demand.folded_items if question.folded else len(demand.source)
    hops = demand.topology.distances[: demand.num_ranks, : demand.num_ranks].astype(np.int64)
    first_step = hops[demand.source[:items]]
    # an item with few receivers need not arrive where no receiver can get it in time
    after = np.where(demand.required[:items, None, :], hops[None], question.steps + 1).min(axis=2)
    last_step = question.steps - after
    first_step, last_step = np.repeat(first_step, question.types, axis=0), np.repeat(last_step, question.types, axis=0)
    steps = np.arange(1, question.steps + 1)
    possible = (first_step[:, :, None] <= steps) & (steps <= last_step[:, :, None]) & (first_step[:, :, None] > 0)
    sendable = possible[:, demand.head] & (first_step[:, demand.tail, None] < steps)
    count = int(possible.sum())
    arrives = np.full(possible.shape, -1, dtype=np.int64)
    arrives[possible] = np.arange(count)
    share = np.full(sendable.shape, -1, dtype=np.int64)
    share[sendable] = count + np.arange(int(sendable.sum()))
    return _Program(demand, question, items, first_step, last_step, arrives, share)


def program_size(demand: Demand, question: Question) -> int:
    """Return the number of the program's unknowns, or of its tables' entries if those alone are too many."""
    items = demand.folded_items if question.folded else len(demand.source)
    entries = items * demand.num_ranks * max(demand.num_ranks, len(demand.tail) * question.steps * question.types // 8)
    return entries if entries > _MOST_ENTRIES else _program(demand, question).columns


def _rows(program: _Program) -> _Rows:
    rows, demand, question, inf = _Rows(), program.demand, program.question, np.inf
    arrives, share = program.arrives, program.share
    required = np.repeat(demand.required[: program.items], question.types, axis=0)
    into: list[list[int]] = [[] for _ in range(demand.num_ranks)]
    for pair, head in enumerate(demand.head.tolist()):
        into[head].append(pair)
    for part in range(len(arrives)):
        for rank in range(demand.num_ranks):
            here = arrives[part, rank]
            columns = here[here >= 0]
            if not len(columns):
                if required[part, rank]:
                    rows.add([], [], 1, 1)
                continue
            rows.add(columns, 1, float(required[part, rank]), 1)
            for step in np.flatnonzero(here >= 0).tolist():
                shares = share[part, into[rank], step]
                shares = shares[shares >= 0]
                rows.add([here[step], *shares], [-1, *np.ones(len(shares))], 0, 0)
        for pair, tail in enumerate(demand.tail.tolist()):
            if program.first_step[part, tail] == 0:
                continue
            for step in np.flatnonzero(share[part, pair] >= 0).tolist():
                before = arrives[part, tail, :step]
                before = before[before >= 0]
                rows.add([share[part, pair, step], *before], [1, *-np.ones(len(before))], -inf, 0)
    _capacities(program, rows)
    return rows


def _capacities(program: _Program, rows: _Rows) -> None:
    demand, question, share = program.demand, program.question, program.share
    classes = _classes(demand) if question.folded else [np.array([k]) for k in range(len(demand.tail))]
    for members in classes:
        for step in range(question.steps):
            columns = share[:, members, step].ravel()
            columns = columns[columns >= 0]
            width = float(demand.width[members[0]]) / question.grain
            if len(columns):
                rows.add([*columns, program.lengths + step], [*np.ones(len(columns)), -width], -np.inf, 0)
    lengths = program.lengths + np.arange(question.steps)
    rows.add(lengths, 1, question.least, np.inf if question.most is None else question.most)


def _classes(demand: Demand) -> list[Array]:
    """Return the classes of pairs under the group's translations."""
    topology = demand.topology
    assert topology.symmetry is not None
    degree = topology.num_links // topology.num_ranks
    place = np.arange(topology.num_links) % degree
    real = demand.pair >= 0
    first: dict[int, int] = {}
    for link in range(degree):  # parallel links of rank 0 are one class
        first.setdefault(int(demand.pair[link]), link)
    kind = np.array([first[int(demand.pair[p])] if demand.pair[p] >= 0 else -1 for p in range(degree)])
    return [
        np.unique(demand.pair[real & (kind[place] == k)]) for k in dict.fromkeys(kind.tolist()) if k >= 0
    ]  # fmt: skip


def solve(demand: Demand, question: Question, nodes: int, questions: int) -> Answer:
    """Solve the program by HiGHS; ``nodes`` and ``questions`` (:func:`...solver.run`) limit its search."""
    import highspy

    program = _program(demand, question)
    rows = _rows(program)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.columns, len(rows.count)
    lengths = np.arange(program.lengths, program.columns)
    arrivals = int((program.arrives >= 0).sum())
    cost = np.zeros(program.columns)
    cost[lengths] = 1
    upper = np.ones(program.columns)
    upper[lengths] = np.inf if question.most is None else question.most
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(program.columns), upper
    lp.row_lower_, lp.row_upper_ = np.array(rows.lower), np.array(rows.upper)
    kinds = [highspy.HighsVarType.kContinuous] * program.columns
    for column in (*range(arrivals), *lengths.tolist()):
        kinds[column] = highspy.HighsVarType.kInteger
    lp.integrality_ = kinds
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = starts(rows.count).astype(np.int32)
    lp.a_matrix_.index_ = np.concatenate(rows.index).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate(rows.value)
    model = highspy.Highs()
    for name, value in (*_OPTIONS, ("mip_max_nodes", nodes)):
        model.setOptionValue(name, value)
    model.passModel(lp)
    what = f"integer program of {program.columns} unknowns"
    questions = run(model, f"{what} for {question.steps} steps, {question.types * question.grain} chunks", questions)
    return attrs.evolve(_answer(model, highspy, program), questions=questions)


# Any: highspy has no types, and is imported on first use
def _answer(model: Any, highspy: Any, program: _Program) -> Answer:
    status, info = model.getModelStatus(), model.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Answer("infeasible", None, None, 0)
    found = info.primal_solution_status == 2
    bound = float(info.mip_dual_bound)
    bound = max(program.question.least, int(np.ceil(bound - 1e-6))) if np.isfinite(bound) else program.question.least
    if not found:
        return Answer("stopped", None, None, bound)
    value = np.array(model.getSolution().col_value)
    total = round(value[program.lengths :].sum())
    done = status == highspy.HighsModelStatus.kOptimal
    return Answer("optimal" if done else "stopped", _arrivals(program, value), total, total if done else bound)


def _arrivals(program: _Program, value: Array) -> Array:
    """Return the arrivals of a solution; parts that never arrive at a rank have -1 there."""
    arrives = program.arrives
    taken = (arrives >= 0) & (value[arrives] > 0.5)
    step = np.where(taken.any(axis=2), taken.argmax(axis=2) + 1, -1)
    return np.where(program.first_step == 0, 0, step)
