"""The ``.coll`` language: text -> :class:`collc.ir.spec.Spec`.

Input: the text of a file, values for its parameters, limits. Output: topologies, collectives and requests with their
source spans; a schedule written by hand is elaborated, not verified. Every text gives a result or a
:class:`collc.ir.diagnostic.CollcError` with all its mistakes. Only included files are read. Listing the graph families
imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from .families import FAMILIES as _FAMILIES
from .families import OPERATORS as _OPERATORS

if TYPE_CHECKING:
    from collc.ir.spec import Spec
    from collc.ir.topology import Topology

__all__ = ["FAMILIES", "NODE_LIMIT", "OPERATORS", "brought", "details", "format_text", "load", "topology"]

#: Default of the most nodes a topology may have; links and statements are limited in proportion.
NODE_LIMIT = 20_000

#: graph family -> (signature, summary)
FAMILIES: dict[str, tuple[str, str]] = {name: (f.signature(name), f.summary) for name, f in _FAMILIES.own.items()}
#: operator on topologies -> (signature, summary)
OPERATORS: dict[str, tuple[str, str]] = {name: (f.signature(name), f.summary) for name, f in _OPERATORS.items()}


def brought() -> dict[str, tuple[str, str]]:
    """Return the graph families of plugins, in the form of :data:`FAMILIES`."""
    return {name: (f.signature(name), f.summary) for name, f in _FAMILIES.brought().items()}


def load(
    path: str,
    *,
    text: str | None = None,
    params: Mapping[str, object] | None = None,
    include_path: Sequence[str] = (),
    node_limit: int = NODE_LIMIT,
    schedulers: Collection[str] | None = None,
    targets: Collection[str] | None = None,
    topologies: Mapping[str, Topology] | None = None,
    options: Callable[[str], str | None] | None = None,
) -> Spec:
    """Return the specification in a file, or in ``text``; messages then call the text ``path``.

    ``params`` gives expressions for the file's parameters, by ``name`` or ``topology.name``. Included files are
    searched beside the including one, then in ``include_path``. Names in ``schedulers`` and ``targets`` are the only
    valid ones (None: any). ``topologies`` are declared before the file begins. ``options`` returns the schedulers and
    targets that have an option, for hints. Raises CollcError with all mistakes.

    >>> spec = load("pod.coll", text="collective grads = allreduce on torus(n, 3); param n = 2;")
    Traceback (most recent call last):
    collc.ir.diagnostic.CollcError: pod.coll:1:39: error: `n` is used before its declaration [C0130]
    >>> spec = load("pod.coll", text="param n = 2; topology pod = torus(n, 3);", params={"n": "2 * 2"})
    >>> spec.topologies["pod"].num_ranks
    12
    """
    from .elaborate import Elaborator

    elaborator = Elaborator(
        params=params, include_path=include_path, node_limit=node_limit, schedulers=schedulers, targets=targets,
        topologies=topologies, options=options,
    )  # fmt: skip
    return elaborator.load(path, text)


def details(family: str) -> dict[str, list[str]]:
    """Return the names that a family's arguments may use, by kind.

    >>> details("cayley")["groups"][2]
    'dihedral(n)'
    """
    if family == "cayley":
        from .groups import GROUPS, signature

        return {"groups": [signature(name) for name in GROUPS]}
    if family == "distance_regular":
        from .families.distance_regular import NAMES

        return {
            "names (ranks, degree, diameter)": [
                f'"{name}" ({known.ranks}, {known.degree}, {known.diameter})  {known.summary}'
                for name, known in NAMES.items()
            ]
        }
    return {}


def topology(expression: str, *, node_limit: int = NODE_LIMIT) -> Topology:
    """Return the topology of one expression, with or without ``with { bandwidth: .., latency: .. }``.

    >>> topology("product(uniring(4), uniring(8))").num_ranks
    32
    """
    from .elaborate import Elaborator

    return Elaborator(node_limit=node_limit).topology(expression)


def format_text(text: str, path: str = "<input>") -> str:
    """Return the canonical form of a text: same meaning, same comments; formatting is idempotent.

    Raises CollcError with all syntax errors; names and values are not checked.

    >>> print(format_text("param  n=4 ;# ranks"), end="")
    param n = 4;  # ranks
    """
    from collc.ir.diagnostic import CollcError

    from ..source import checked
    from .parser import parse_file
    from .printer import file_text

    source = checked(path, text)
    parsed = parse_file(source)
    if parsed.problems:
        raise CollcError(parsed.problems)
    return file_text(parsed.file, source.text)
