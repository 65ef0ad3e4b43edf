"""`cluster NAME = MACHINE on FABRIC { .. };`: copies of a machine in place of hosts."""

from __future__ import annotations

import attrs

from collc.ir.diagnostic import CollcError, Related, Span, error
from collc.ir.topology import Topology

from ..importing.joining import box_of, joint
from ..importing.ports import JoinError
from . import ast
from .expressions import Compiler
from .hosts import named_hosts
from .limits import Limits
from .parts import rank_numbers
from .requests import distinct_options, known, text_of, word_of
from .scope import NodeTable, Scope
from .values import Integers, Parts, Switch, kind_of

__all__ = ["cluster"]

_OPTIONS = ("hosts", "nic")
_LONGEST_PATTERN = 255


def cluster(
    node: ast.Cluster, machine: Topology, fabric: Topology, scope: Scope, compiler: Compiler, limits: Limits
) -> Topology:
    """Return the fabric with copies of the machine in place of its hosts; raises CollcError or Poisoned."""
    given = {item.name.text: item for item in distinct_options(node.options, compiler)}
    for item in given.values():
        known(item.name, _OPTIONS, "C0127", "option of a cluster", compiler)
    pattern = _pattern(given["nic"], scope) if "nic" in given else None
    hosts = _hosts(given["hosts"], fabric, scope, compiler) if "hosts" in given else range(fabric.num_ranks)
    places = {"node": node.machine.span, "fabric": node.fabric.span, "nic": node.machine.span}
    if "nic" in given:
        places["nic"] = given["nic"].value.span
    try:
        found = joint(box_of(machine, pattern), fabric, sorted(hosts), pattern)
        limits.claim(f"`{node.name.text}`", found.num_nodes, found.num_links, node.name.span)
        joined = found.topology(node.name.text)
    except JoinError as failure:
        related = (*_declared("the machine", node.machine, scope), *_declared("the fabric", node.fabric, scope))
        place = places[failure.at]
        raise CollcError([attrs.evolve(one, span=place, related=related) for one in failure.diagnostics]) from None
    for warning in found.warnings:
        compiler.problems.warn(attrs.evolve(warning, span=places["nic"]), each=True)
    return joined


def _declared(what: str, node: ast.Expr, scope: Scope) -> tuple[Related, ...]:
    place = scope.places.get(node.name) if isinstance(node, ast.Name) else None
    return (Related(what, place),) if place else ()


def _pattern(item: ast.Option, scope: Scope) -> str:
    """Return the pattern of NICs: ``mlx5_*`` as it stands, a string, or the name of one."""
    text = word_of(item.value, scope)
    if text and len(text) <= _LONGEST_PATTERN:
        return text
    hint = "write `nic: mlx5_*`, or another pattern in quotes"
    if isinstance(item.value, ast.Index | ast.Binary):
        hint = f'write it in quotes: `nic: "{text_of(item.value)}"`'
    raise error("C0131", "found an expression, needed a pattern of names of NICs", span=item.value.span, hint=hint)


# ---- hosts


def _hosts(item: ast.Option, fabric: Topology, scope: Scope, compiler: Compiler) -> tuple[int, ...]:
    """Return the ranks of the fabric that are replaced."""
    node, span = item.value, item.value.span
    if isinstance(node, ast.Word):
        raise _no_hosts(node, f"the word `{node.text}`")
    inner = scope.child()
    inner.nodes = NodeTable.of(fabric)
    if isinstance(node, ast.Index) and not node.quoted:
        raise _no_hosts(node, "an index")
    value = compiler.evaluate(node, inner)
    match value:
        case str():
            return named_hosts(value, fabric, span, lambda start, end: _within(node, start, end))
        case range():
            ranks = tuple(value[: fabric.num_ranks + 1])
        case Integers(items):
            ranks = items
        case Parts():
            ranks = rank_numbers(fabric, value, f"hosts are ranks of `{fabric.name}`").items
        case _:
            raise _no_hosts(node, "a node" if isinstance(value, Switch) else kind_of(value))
    if not ranks:
        raise error("C0311", "found no hosts, needed at least one", span=span, hint="leave `hosts` out for all hosts")
    outside = [rank for rank in ranks if not 0 <= rank < fabric.num_ranks]
    if outside:
        message = f"found rank {outside[0]}, needed ranks from 0 to {fabric.num_ranks - 1}"
        raise error("C0311", message, span=value.place(outside[0], span) if isinstance(value, Integers) else span)
    return ranks


def _no_hosts(node: ast.Expr | ast.Word, found: str) -> CollcError:
    hint = f'write a list of hosts in quotes, `"{text_of(node)}"`, or a set `{{"n001", "n002"}}`'
    return error("C0131", f"found {found}, needed a list or a set of hosts", span=node.span, hint=hint)


def _within(node: ast.Expr, start: int, end: int) -> Span | None:
    """Return the place of some characters of a string; of a value from elsewhere, that of the expression."""
    span = node.span
    if not isinstance(node, ast.String) or span is None:
        return span
    first = span.column + 1 + start
    return Span(span.source, span.line, first, span.line, max(span.column + 1 + min(end, len(node.value)), first + 1))
