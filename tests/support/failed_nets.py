"""Networks with failures drawn at random inside and around other operators, and what must hold of every result there.

For tests and campaigns. :func:`drawn` gives a text; :func:`fault` compiles it for all targets and judges the results.
"""

from __future__ import annotations

import random
import tempfile
from fractions import Fraction
from functools import cache

from every_family import EXPRESSIONS
from program_judge import judge_program, judge_schedule

import collc
from collc.ir.collective import KINDS, ROOTED
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology
from collc.passes import SCHEDULERS

__all__ = ["TARGETS", "drawn", "fault"]

TARGETS = (
    "mpi-c", "msccl-xml{runtime=executor}", "msccl-xml{runtime=msccl}", "msccl-xml{runtime=rccl}", "oneccl-xml", "ir",
)  # fmt: skip
_MOST_RANKS = 12
_SIZES = (0, 7, 1024, 10**6, 1 << 26)
#: exit statuses of refusals: mistakes in the text, and no schedule within the limits
_REFUSED = (1, 3)
_AROUND = ("transpose({})", "bidirectional({})", "product({}, complete(2))", "line({})", "degree({}, 2)")


@cache
def _built(expression: str) -> Topology | None:
    """Return a small topology; None if the expression is refused, or the network has too many ranks or one."""
    try:
        topology = collc.topology(expression)
    except collc.CollcError:
        return None
    return topology if 2 <= topology.num_ranks <= _MOST_RANKS and len(topology.src) else None


def _parts(topology: Topology, luck: random.Random, is_degraded: bool) -> str:
    """Return links, and now and then nodes, of a topology as a set of the language."""
    named = topology.names
    parts = set()
    for _ in range(luck.choice((1, 1, 2, 3))):
        link = luck.randrange(len(topology.src))
        parts.add(f"{named[topology.src[link]]} -> {named[topology.dst[link]]}")
    if luck.random() < 0.4 or (is_degraded and luck.random() < 0.3):
        parts.add(luck.choice(named))
    return f"{{{', '.join(sorted(parts))}}}"


def _failed(expression: str, topology: Topology, luck: random.Random) -> str:
    if luck.random() < 0.5:
        return f"without({expression}, {_parts(topology, luck, False)})"
    factor = luck.choice(("1/2", "1/3", "3/4", "0.9"))
    return f"degraded({expression}, {_parts(topology, luck, True)}, {factor})"


def _network(luck: random.Random) -> str:
    """Return an expression: a family or operator, failures, other operators, failures again; each that is accepted."""
    expression = luck.choice([one for calls in EXPRESSIONS.values() for one in calls])
    while _built(expression) is None:
        expression = luck.choice([one for calls in EXPRESSIONS.values() for one in calls])
    for _ in range(luck.choice((1, 2, 2, 3))):
        topology = _built(expression)
        assert topology is not None
        order = luck.sample(range(topology.num_ranks), topology.num_ranks)
        around = f"relabel({expression}, {{{', '.join(map(str, order))}}})"
        if luck.random() < 0.6:
            around = luck.choice(_AROUND).format(expression)
        further = _failed(expression, topology, luck) if luck.random() < 0.7 else around
        expression = further if _built(further) is not None else expression
    return expression


def drawn(luck: random.Random) -> str:
    """Return a text: a network with failures ``t``, a collective ``c`` on it, and a scheduler that may take it."""
    kind, expression = luck.choice(sorted(KINDS)), _network(luck)
    options = [f"size: {luck.choice(('1 KiB', '1 MiB', '1000 B'))}"] * (luck.random() < 0.5)
    options += [f"root: {luck.choice((0, 1))}"] * (kind in ROOTED)
    shown = f" {{ {', '.join(options)} }}" if options else ""
    text = f"topology t = {expression};\ncollective c = {kind} on t{shown};\n"
    taking = sorted(name for name, one in SCHEDULERS.items() if kind in getattr(one, "collectives", KINDS))
    scheduler = luck.choice([None, "auto", *(name for name in taking if name != "steps")])
    return text if scheduler is None else f"{text}schedule c using {scheduler};\n"


def fault(text: str, target: str) -> str:
    """Compile a text for a target; return what is wrong with the result, or nothing: a refusal is right."""
    try:
        result = collc.compile_source(text, target=target)
    except collc.CollcError as problem:
        return "" if problem.exit_status in _REFUSED else f"exit status {problem.exit_status}: {problem}"
    one = result["c"]
    if not all(report.ok for report in one.reports):
        return f"not verified: {one.reports}"
    if isinstance(one.schedule, Schedule) and (wrong := judge_schedule(one.schedule, 1)):
        return f"the schedule is wrong: {wrong}"
    if isinstance(one.program, Program) and (wrong := judge_program(one.program, 2, 1)):
        return f"the program is wrong: {wrong}"
    return _dishonest(one) or _unlike(one) or _unread(result, target)


def _dishonest(one: collc.results.CollectiveResult) -> str:
    cost = one.cost
    for reached, bound in ((cost.T_L, cost.T_L_bound), (cost.T_B, cost.T_B_bound),
                           (cost.time_per_byte, cost.time_per_byte_bound)):  # fmt: skip
        if reached is not None and bound is not None and reached < bound:
            return f"the bound {bound} is beaten: {reached}"
    return ""


def _unlike(one: collc.results.CollectiveResult) -> str:
    """Return how the simulator and the cost differ, where each message has the route that the schedule names."""
    if not isinstance(one.schedule, Schedule) or one.algorithms:
        return ""
    simulated = one.simulate()
    for size in _SIZES:
        told, predicted = simulated.time(size), one.cost.time(size)
        if Fraction(told) != predicted:
            return f"the simulator says {told} for {size} bytes, the cost {predicted}"
    return ""


def _unread(result: collc.Result, target: str) -> str:
    """Write the files; return which of those that collc reads is not verified when it is read back."""
    if target == "mpi-c":
        return ""
    with tempfile.TemporaryDirectory() as folder:
        for path in result.write(folder):
            if not collc.verify(path).ok:
                return f"{path} is not verified"
    return ""
