"""The files of a result on an isomorphic network: its last IRs with the ranks renumbered, verified and written anew."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.frontends.coll.faults import Broken
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.graph.isomorphism import link_map
from collc.ir.levels import Executable, Scheduled
from collc.ir.program import Program
from collc.ir.relabelling import relabelled
from collc.ir.spec import CollectiveRequest, Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.validate import structure

from ..messages.internal import InternalError
from .judging import failures
from .maker import Maker
from .plan import Plan
from .result import CollectiveResult, Emitted, Observer, Settings
from .session import Session

__all__ = ["keeps_collective", "relabelled_files"]


def keeps_collective(collective: Collective) -> bool:
    """Whether every automorphism of the network that keeps the root, if there is one, keeps the collective."""
    return collective.is_plain and not collective.ordered


def relabelled_files(
    found: CollectiveResult, request: CollectiveRequest, net: Broken, nodes: Sequence[int] | Array, settings: Settings,
    observer: Observer | None = None,
) -> tuple[Emitted, ...] | None:  # fmt: skip
    """Return the files for the faults of ``net``, of the result for the faults that ``nodes`` takes to them.

    ``nodes`` is an automorphism of the network before all faults, ``request`` that after those of ``net``. Each IR is
    executed with its new numbers, and each file is read back. The result is None if an IR cannot get other numbers.
    Raises InternalError if one is then wrong.
    """
    if found.replan is None or len(found.last) != len(found.emitted):
        return None
    maps = _maps(found.replan.network, net, np.asarray(nodes))
    if maps is None:
        return None
    session = Session(request, settings, observer)
    maker, files = Maker(session), list[Emitted]()
    for target, ir in found.last:
        moved = _moved(ir, request.problem, *maps)
        if moved is None:
            return None
        if settings.verify != "off":
            _require_right(maker, moved)
        written = maker.finish(Plan((), type(moved), target), moved)
        assert written is not None, "it has a target"
        files.append(written)
    return tuple(files)


def _maps(one: Broken, two: Broken, nodes: Array) -> tuple[Array, Array] | None:
    """Return the maps of nodes and links from one broken network to another; None if they are no isomorphism."""
    left = one.node >= 0
    if not np.array_equal(left, two.node[nodes] >= 0):
        return None
    found = np.empty(int(left.sum()), dtype=np.int64)
    found[one.node[left]] = two.node[nodes[left]]
    links = link_map(one.topology, two.topology, found)
    return None if links is None else (found, links)


def _moved(ir: Executable, problem: Problem, nodes: Array, links: Array) -> Executable | None:
    collective, ranks = problem.collective, nodes[: problem.topology.num_ranks]
    root = None if ir.collective.root is None else int(ranks[ir.collective.root])
    if attrs.evolve(ir.collective, root=root) != collective:
        return None
    if isinstance(ir, Program):
        return relabelled(ir, collective, ranks)
    if isinstance(ir, SymmetricProgram):
        return None  # its group is of the healthy network
    if not isinstance(ir, Scheduled):
        from collc.ir.one_sided.relabelling import relabelled as relabelled_writes

        return relabelled_writes(ir, collective, ranks)
    from collc.passes.synthesis.groups.together import image

    return image(ir, problem, nodes, links)


def _require_right(maker: Maker, ir: Executable) -> None:
    """Raise InternalError if an IR is malformed with its new numbers, or wrong when it is executed."""
    wrong = "; ".join(structure(ir)) or failures(maker.runner.report("renumbering", ir))
    if wrong:
        name = maker.session.request.name
        raise InternalError(f"the plan of `{name}` is wrong with other numbers of ranks: {wrong}", collective=name)
