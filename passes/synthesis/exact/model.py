"""The time-expanded mixed-integer program: which rank gets which piece at which step.

Items are cut in ``types`` equal pieces. For each piece, rank and step there is a truth "the piece arrives then", for
each piece, pair of ranks and step a share "this much of it comes from there", and for each step its length: what a link
of unit width carries. A rank sends of a piece only what arrived before, and only whole pieces have arrived. Once the
arrivals are known, the shares of a step are a transport problem, so they come in multiples of the lengths' unit:
arrivals are the only integer decisions besides the lengths. With as many types as chunks this is the formulation of
SCCL (Cai et al., PPoPP 2021): every chunk travels whole, along a route of its own.

Networks on which a group acts can ask for schedules that the group's translations leave the same (``folded``): then
item 0 decides for all, and the program is as many times smaller as there are ranks.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...solver import run
from .demand import Demand

__all__ = ["Answer", "Question", "program_size", "solve"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_ENTRIES = 10_000_000
_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.999),
)  # fmt: skip


@attrs.frozen
class Question:
    """How the program is to be put: steps, types (pieces of an item), the lengths' unit 1/``grain`` of a piece."""

    steps: int
    types: int
    grain: int
    folded: bool = False
    #: total length must lie between these, in grains; ``most`` of nothing is no limit
    least: int = 0
    most: int | None = None


@attrs.frozen(eq=False)
class Answer:
    """What came of it: ``arrival[piece, rank]`` (0 at the source, steps from 1, -1 never), where any was found.

    ``bound`` is a proved lower bound on the total length in grains; ``status`` is ``optimal``, ``infeasible`` or
    ``stopped`` (at a limit). ``questions`` says how much work it was (:mod:`...solver`). Pieces count item by item.
    """

    status: str
    arrival: Array | None
    total: int | None
    bound: int
    questions: int = 0


class _Rows:
    """Rows of a sparse matrix as they come."""

    def __init__(self) -> None:
        self.index: list[Array] = []
        self.value: list[Array] = []
        self.count: list[int] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, index: Any, value: Any, lower: float, upper: float) -> None:
        index = np.asarray(index, dtype=np.int32)
        self.index.append(index)
        self.value.append(np.broadcast_to(np.asarray(value, dtype=float), index.shape))
        self.count.append(len(index))
        self.lower.append(lower)
        self.upper.append(upper)


@attrs.frozen(eq=False)
class _Program:
    """The columns: arrivals first (piece, rank, step), then shares (piece, pair, step), then one length a step."""

    demand: Demand
    ask: Question
    items: int
    early: Array  # (piece, rank): the first step at which it can arrive
    late: Array  # (piece, rank): the last step at which arriving is of use
    arrives: Array  # (piece, rank, step): column or -1
    share: Array  # (piece, pair, step): column or -1

    @property
    def columns(self) -> int:
        return self.lengths + self.ask.steps

    @property
    def lengths(self) -> int:
        return int((self.arrives >= 0).sum() + (self.share >= 0).sum())


def _program(demand: Demand, ask: Question) -> _Program:
    items = demand.folded_items if ask.folded else len(demand.source)
    hops = demand.topology.distances[: demand.num_ranks, : demand.num_ranks].astype(np.int64)
    early = hops[demand.source[:items]]
    # an item that few want need not go where it cannot be of use any more
    after = np.where(demand.wanted[:items, None, :], hops[None], ask.steps + 1).min(axis=2)
    late = ask.steps - after
    early, late = np.repeat(early, ask.types, axis=0), np.repeat(late, ask.types, axis=0)
    steps = np.arange(1, ask.steps + 1)
    possible = (early[:, :, None] <= steps) & (steps <= late[:, :, None]) & (early[:, :, None] > 0)
    sendable = possible[:, demand.head] & (early[:, demand.tail, None] < steps)
    count = int(possible.sum())
    arrives = np.full(possible.shape, -1, dtype=np.int64)
    arrives[possible] = np.arange(count)
    share = np.full(sendable.shape, -1, dtype=np.int64)
    share[sendable] = count + np.arange(int(sendable.sum()))
    return _Program(demand, ask, items, early, late, arrives, share)


def program_size(demand: Demand, ask: Question) -> int:
    """Return the number of the program's unknowns, or of its tables' entries where those alone are too many."""
    items = demand.folded_items if ask.folded else len(demand.source)
    entries = items * demand.num_ranks * max(demand.num_ranks, len(demand.tail) * ask.steps * ask.types // 8)
    return entries if entries > _MOST_ENTRIES else _program(demand, ask).columns


def _rows(program: _Program) -> _Rows:
    rows, demand, ask, inf = _Rows(), program.demand, program.ask, np.inf
    arrives, share = program.arrives, program.share
    wanted = np.repeat(demand.wanted[: program.items], ask.types, axis=0)
    into: list[list[int]] = [[] for _ in range(demand.num_ranks)]
    for pair, head in enumerate(demand.head.tolist()):
        into[head].append(pair)
    for piece in range(len(arrives)):
        for rank in range(demand.num_ranks):
            here = arrives[piece, rank]
            columns = here[here >= 0]
            if not len(columns):
                if wanted[piece, rank]:
                    rows.add([], [], 1, 1)
                continue
            rows.add(columns, 1, float(wanted[piece, rank]), 1)
            for step in np.flatnonzero(here >= 0).tolist():
                shares = share[piece, into[rank], step]
                shares = shares[shares >= 0]
                rows.add([here[step], *shares], [-1, *np.ones(len(shares))], 0, 0)
        for pair, tail in enumerate(demand.tail.tolist()):
            if program.early[piece, tail] == 0:
                continue
            for step in np.flatnonzero(share[piece, pair] >= 0).tolist():
                before = arrives[piece, tail, :step]
                before = before[before >= 0]
                rows.add([share[piece, pair, step], *before], [1, *-np.ones(len(before))], -inf, 0)
    _capacities(program, rows)
    return rows


def _capacities(program: _Program, rows: _Rows) -> None:
    demand, ask, share = program.demand, program.ask, program.share
    classes = _classes(demand) if ask.folded else [np.array([k]) for k in range(len(demand.tail))]
    for members in classes:
        for step in range(ask.steps):
            columns = share[:, members, step].ravel()
            columns = columns[columns >= 0]
            width = float(demand.width[members[0]]) / ask.grain
            if len(columns):
                rows.add([*columns, program.lengths + step], [*np.ones(len(columns)), -width], -np.inf, 0)
    lengths = program.lengths + np.arange(ask.steps)
    rows.add(lengths, 1, ask.least, np.inf if ask.most is None else ask.most)


def _classes(demand: Demand) -> list[Array]:
    """Return the pairs that translations take to each other, class by class."""
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


def solve(demand: Demand, ask: Question, nodes: int, questions: int) -> Answer:
    """Put the question to HiGHS; ``nodes`` and ``questions`` (:func:`...solver.run`) limit its search."""
    import highspy

    program = _program(demand, ask)
    rows = _rows(program)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.columns, len(rows.count)
    lengths = np.arange(program.lengths, program.columns)
    arrivals = int((program.arrives >= 0).sum())
    cost = np.zeros(program.columns)
    cost[lengths] = 1
    upper = np.ones(program.columns)
    upper[lengths] = np.inf if ask.most is None else ask.most
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(program.columns), upper
    lp.row_lower_, lp.row_upper_ = np.array(rows.lower), np.array(rows.upper)
    kinds = [highspy.HighsVarType.kContinuous] * program.columns
    for column in (*range(arrivals), *lengths.tolist()):
        kinds[column] = highspy.HighsVarType.kInteger
    lp.integrality_ = kinds
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(rows.count)]).astype(np.int32)
    lp.a_matrix_.index_ = np.concatenate(rows.index).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate(rows.value)
    model = highspy.Highs()
    for name, value in (*_OPTIONS, ("mip_max_nodes", nodes)):
        model.setOptionValue(name, value)
    model.passModel(lp)
    what = f"integer program of {program.columns} unknowns"
    questions = run(model, f"{what} for {ask.steps} steps, {ask.types * ask.grain} chunks", questions)
    return attrs.evolve(_answer(model, highspy, program), questions=questions)


def _answer(model: Any, highspy: Any, program: _Program) -> Answer:
    status, info = model.getModelStatus(), model.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Answer("infeasible", None, None, 0)
    found = info.primal_solution_status == 2
    bound = float(info.mip_dual_bound)
    bound = max(program.ask.least, int(np.ceil(bound - 1e-6))) if np.isfinite(bound) else program.ask.least
    if not found:
        return Answer("stopped", None, None, bound)
    value = np.array(model.getSolution().col_value)
    total = round(value[program.lengths :].sum())
    done = status == highspy.HighsModelStatus.kOptimal
    return Answer("optimal" if done else "stopped", _arrivals(program, value), total, total if done else bound)


def _arrivals(program: _Program, value: Array) -> Array:
    """Read the arrivals off a solution; pieces that never arrive somewhere have -1 there."""
    arrives = program.arrives
    taken = (arrives >= 0) & (value[arrives] > 0.5)
    step = np.where(taken.any(axis=2), taken.argmax(axis=2) + 1, -1)
    return np.where(program.early == 0, 0, step)
