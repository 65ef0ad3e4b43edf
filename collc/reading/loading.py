"""From texts to specifications, and from IR that was read to the specification it implements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest, Spec
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.topology import Topology

from ..files.naming import identifier, stem_of

if TYPE_CHECKING:
    from collc.ir.one_sided.program import OneSided

__all__ = ["Loading", "program_spec", "read_ir", "with_spec"]


@frozen
class Loading:
    """How to read a ``.coll`` text: parameters and topologies from outside, include path, limit on nodes."""

    params: Mapping[str, object] = attrs.Factory(dict)
    include_path: tuple[str, ...] = ()
    node_limit: int = 20000
    topologies: dict[str, Topology] = attrs.Factory(dict)


def read_ir(text: str, path: str) -> tuple[Spec, Executable]:
    """Return the specification that a printed schedule, forest or program implements, and that IR."""
    from collc.ir.text import parse_ir

    return with_spec(parse_ir(text, path), path)


def with_spec(level: Executable | Topology | Collective, path: str) -> tuple[Spec, Executable]:
    """Return the specification that an IR implements, and the IR; raise C0018 for a topology or collective."""
    if isinstance(level, (Topology, Collective)):
        found = type(level).__name__.lower()
        raise error(
            "C0018",
            f"found a {found} in `{path}`, needed a schedule, forest or program",
            hint="print a schedule or program",
        )
    from collc.ir.one_sided.program import OneSided

    if isinstance(level, (Program, SymmetricProgram, OneSided)):
        topology = Topology.from_links("none", level.collective.num_ranks, [])
        name = level.name
    else:
        topology, name = level.topology, identifier(stem_of(path))
    return _spec(name, Problem(topology, level.collective), path), level


def program_spec(program: AnyProgram | OneSided, path: str) -> Spec:
    """Return the specification that a program implements, named after its file: a name in the file may be anything."""
    topology = Topology.from_links("none", program.collective.num_ranks, [])
    return _spec(identifier(stem_of(path)), Problem(topology, program.collective), path)


def _spec(name: str, problem: Problem, path: str) -> Spec:
    topology = problem.topology
    request = CollectiveRequest(name, topology.name, problem, ScheduleRequest("steps"), ())
    return Spec({topology.name: topology}, {name: request}, (path,))
