"""Which of NCCL's own algorithms is the fastest at which size: by the cost model, or by times that were measured.

NCCL has rings for every collective, the double binary tree for allreduce, PAT for allgather and reduce-scatter if each
machine has one GPU, and NVLS inside a machine whose switches add and copy. The model of each but NVLS is the baseline
of that name; with fewer pieces or more, an algorithm is another function of the size, and all are compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs

from collc.backends.nccl_tuner.names import applies
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, error
from collc.ir.graph.boxes import boxes_of
from collc.ir.shown import counted, listed
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.tuning import LARGEST, TunedRange, Tuning, TuningRequest
from collc.passes.schedulers import baselines

from ..messages.internal import is_fatal
from .algorithm import Algorithm, candidate_of
from .fitted import FittedTime, read_fitted
from .measure import MeasuredForest, Model
from .options import Auto
from .protocols import GrowsForest
from .selector import reason_of
from .times import Times, least

__all__ = ["fastest_ranges", "native_times", "tuning_of"]

#: numbers of pieces that are compared: powers of two, as `--pieces best` of `collc simulate` compares
_PIECES = tuple(2**k for k in range(13))


def tuning_of(problem: Problem, name: str, request: TuningRequest) -> Tuning:
    """Return the choice for every size of an allreduce, allgather or reduce-scatter, exact to the byte.

    Of equally fast algorithms the first wins.

    Raises C0770 if NCCL has one algorithm for the collective there, C0771 if the number of machines is unknown, C0775
    if an algorithm has no model there, C0076 for wrong files of times.
    """
    collective = problem.collective
    if request.measured is not None:
        return _measured(problem, name, request)
    nodes = request.nodes or _nodes(problem.topology)
    model = Model.of(Auto())
    timed = list(native_times(problem, nodes, model, request.multicast))
    names = list(dict.fromkeys(algorithm for algorithm, _ in timed))
    if len(names) == 1:
        raise _no_choice(collective, nodes, names[0])
    pairs = [((algorithm, request.protocol), times) for algorithm, times in timed]
    return Tuning(name, collective, nodes, fastest_ranges(pairs), _notes(problem, model, names))


def _nodes(topology: Topology) -> int:
    boxes = boxes_of(topology)
    if boxes is None:
        ranks = topology.num_ranks
        hint = f"write `nodes=1` for one machine, or `nodes={ranks}` if each rank is one"
        raise error("C0771", "the network shows no boxes, so the number of machines is unknown", hint=hint)
    return len(boxes)


def _no_choice(collective: Collective, nodes: int, only: str) -> CollcError:
    where = f"{counted(collective.num_ranks, 'rank')} on {counted(nodes, 'machine')}"
    hints = {
        "allreduce": "`nvls=true` adds NVLS, `measured=FILE` takes times of any algorithm",
        "allgather": "PAT needs one GPU a machine; `measured=FILE` takes times of any algorithm",
    }  # fmt: skip
    message = f"for {collective.kind} of {where} the model has only {only} of NCCL's algorithms, so there is no choice"
    return error("C0770", message, hint=hints.get(collective.kind, hints["allgather"]))


def _notes(problem: Problem, model: Model, names: Sequence[str]) -> tuple[str, ...]:
    compared = f"by the cost model: {listed(names)}"
    return (compared, *(f"assumed: {one}" for one in model.assumed(problem.topology)))


def fastest_ranges(timed: Sequence[tuple[tuple[str, str], Times]]) -> tuple[TunedRange, ...]:
    """Return the fastest algorithm and protocol for every size."""
    found = list[TunedRange]()
    changes = least([times for _, times in timed], 0, LARGEST)
    ends = [change.size - 1 for change in changes[1:]] + [LARGEST]
    for change, end in zip(changes, ends, strict=True):
        algorithm, protocol = timed[change.winner][0]
        if found and (found[-1].algorithm, found[-1].protocol) == (algorithm, protocol):
            found[-1] = attrs.evolve(found[-1], high=end)
        else:
            found.append(TunedRange(change.size, end, algorithm, protocol))
    return tuple(found)


# ---- by the cost model


def native_times(problem: Problem, nodes: int, model: Model, multicast: bool) -> Iterator[tuple[str, Times]]:
    """Yield NCCL's algorithms with their times, an algorithm once for each number of pieces.

    Raises C0771 for a number of machines that does not fit the network, C0772 for NVLS without such a switch, C0775 if
    an algorithm that NCCL has there has no model.
    """
    topology, kind, boxes = problem.topology, problem.collective.kind, boxes_of(problem.topology)
    if nodes not in {1, topology.num_ranks} if boxes is None else nodes != len(boxes):
        due = counted(len(boxes), "machine") if boxes is not None else f"1 or {topology.num_ranks} machines"
        raise error("C0771", f"`nodes` is {nodes}, the network has {due}", option="nodes")
    for scheduler, one in baselines(kind, boxes is not None):
        if one.native is not None and applies(one.native, kind, nodes, topology.num_ranks):
            try:
                yield from [(one.native, times) for times in _each(problem, Algorithm(scheduler, one.options), model)]
            except CollcError as mistake:
                raise mistake if is_fatal(mistake) else _no_model(one.native, mistake) from None
    if multicast:
        yield "nvls", _nvls(problem, nodes, model)


def _no_model(name: str, mistake: CollcError) -> CollcError:
    message = f"NCCL has the algorithm {name} on this network, and the model has none for it there"
    return error("C0775", message, notes=[reason_of(mistake)], hint="`measured=FILE` takes times of any algorithm")


def _each(problem: Problem, algorithm: Algorithm, model: Model) -> Iterator[Times]:
    """Yield the times of an algorithm, in each number of pieces if it has pieces."""
    planned, scheduler = candidate_of(algorithm.scheduler).planned, algorithm.scheduler_pass()
    if planned == "trees":
        assert isinstance(scheduler, GrowsForest)
        forest = MeasuredForest.of(scheduler.grow(problem), model)
        yield from (forest.measure(k).times for k in _PIECES if k * forest.forest.parts <= _PIECES[-1])
    elif planned == "pipeline":
        passes = (algorithm.with_options(pipeline=k).scheduler_pass() for k in _PIECES)
        yield from (model.measure(one, problem).times for one in passes)
    else:
        yield model.measure(scheduler, problem).times


def _nvls(problem: Problem, nodes: int, model: Model) -> Times:
    """Return the time of NVLS on one switch, which adds what ranks send and copies what they receive.

    Every rank sends its whole vector to be added, and stores the sum of its share to all; both pass its link. One step
    for each. The switch adds at the speed of the links.
    """
    from collc.ir.costs.cost import unit_seconds

    topology, ranks, kind = problem.topology, problem.collective.num_ranks, problem.collective.kind
    if nodes != 1 or not _one_switch(topology):
        message = "NVLS needs one switch that every rank has a link to, of equal bandwidth, and no other link"
        raise error("C0772", message, hint="leave `nvls` out", option="nvls")
    own = topology.latency(0) + topology.latency(int(topology.out_links[1][topology.out_links[0][ranks]]))
    alpha = model.latency.of(topology, 2, 2, own)
    share = Fraction(ranks + 1, ranks) if kind == "allreduce" else Fraction(1)
    slope = share * unit_seconds(topology, model.bandwidth) / topology.egress(0)
    steps = 2 if kind == "allreduce" else 1
    return Times.of_steps([(steps, [(alpha, slope / steps)]), (1, [model.overheads(topology, Fraction(0))])])


def _one_switch(topology: Topology) -> bool:
    """Return whether the network is one switch with a link to every rank, and one from it, all equal."""
    ranks = topology.num_ranks
    star = {(rank, ranks) for rank in range(ranks)} | {(ranks, rank) for rank in range(ranks)}
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    return topology.num_switches == 1 and len(ends) == 2 * ranks and set(ends) == star and topology.is_uniform


# ---- by measured times


def _measured(problem: Problem, name: str, request: TuningRequest) -> Tuning:
    """Return the choice among the algorithms of a file of fitted times."""
    assert request.measured is not None
    collective, path = problem.collective, request.measured
    rows = [one for one in read_fitted(path) if one.collective == collective.kind]
    fitting = [one for one in rows if one.ranks == collective.num_ranks and request.nodes in (None, one.nodes)]
    if not fitting:
        found = sorted({f"{one.ranks} ranks on {counted(one.nodes, 'machine')}" for one in rows}) or ["none"]
        message = f"`{path}` has no times of {collective.kind} on {counted(collective.num_ranks, 'rank')}"
        raise error("C0773", message, notes=[f"its times of {collective.kind}: {listed(found)}"], option="measured")
    nodes = {one.nodes for one in fitting}
    if len(nodes) > 1:
        hint = f"write `nodes={min(nodes)}`, or another of them"
        raise error("C0773", f"`{path}` has times for several numbers of machines", hint=hint, option="measured")
    pairs = [((one.algorithm, one.protocol), one.times) for one in fitting]
    return Tuning(name, collective, nodes.pop(), fastest_ranges(pairs), tuple(_notes_of(fitting)))


def _notes_of(rows: Sequence[FittedTime]) -> Iterator[str]:
    yield "by measured times, a line for each algorithm"
    low, high = max(one.low for one in rows), min(one.high for one in rows)
    yield f"all were measured from {low} to {high} bytes; the lines go on beyond"
