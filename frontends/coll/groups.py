"""Groups as values of the language: ``metacyclic(8, 4, 3)``, ``direct(dihedral(3), cyclic(2))``.

:mod:`collc.ir.group` decides what is a group. This module turns its errors into diagnostics of the file, and refuses
groups beyond the limit on nodes at once, before they become an argument.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.group import GROUPS, Group, build_group

from . import ast
from .expressions import integer
from .limits import count_text, too_large
from .values import Value

__all__ = ["GROUPS", "group", "signature"]

#: at least the number of sizes or matrix entries of any group below the limits
_MOST_ARGUMENTS = 1024
#: longer expressions of groups are not remembered as they were written
_LONGEST = 200
#: hints list the values of `r` up to this modulus
_SMALL = 1 << 16


def signature(name: str) -> str:
    """Return the signature of a group.

    >>> signature("metacyclic")
    'metacyclic(m, k, r[, s])'
    """
    return f"{name}({GROUPS[name][0]})"


def group(node: ast.Call, values: Sequence[Value], limit: int) -> Group:
    """Return the group of a call; raise C0319 for invalid arguments, C0310 if it exceeds ``limit``."""
    if len(values) > _MOST_ARGUMENTS:
        raise error("C0319", f"found {len(values)} arguments, needed at most {_MOST_ARGUMENTS}", span=node.span)
    arguments = [_argument(value, node.arguments[i]) for i, value in enumerate(values)]
    if node.name == "direct":
        # factors of one element change nothing, and without them a product of many factors is a large group
        arguments = [a for a in arguments if not isinstance(a, Group) or a.order > 1] or arguments[:1]
    try:
        found = build_group(node.name, arguments)
    except ValueError as failure:
        raise _no_group(node, arguments, str(failure)) from None
    if found.order > limit:
        message = f"`{node.name}(..)` has {count_text(found.order)} elements, the limit is {limit}"
        raise too_large(message, node.span, found.order)
    given = ", ".join(value.shown if isinstance(value, Group) else str(value) for value in values)
    written = f"{node.name}({given})"
    # Groups of one element may be doubled for ever.
    return attrs.evolve(found, written=written if len(written) <= _LONGEST else "")


def _argument(value: Value, node: ast.Expr) -> int | Group:
    return value if isinstance(value, Group) else integer(value, node.span, "an integer or a group")


def _no_group(node: ast.Call, arguments: Sequence[int | Group], reason: str) -> CollcError:
    """Return the error; for a metacyclic group, with the values of the failed condition."""
    form = f"write `{signature(node.name)}`"
    if node.name != "metacyclic" or "r^k" not in reason or not all(isinstance(a, int) for a in arguments):
        return error("C0319", f"`{node.name}(..)` is not a group: {reason}", span=node.span, hint=form)
    m, k, r, s = (int(a) for a in (*arguments, 0)[:4])  # type: ignore[arg-type]
    if m < 1 or k < 1:
        return error("C0319", f"found m = {m} and k = {k}, needed at least 1", span=node.span, hint=form)
    if pow(r, k, m) != 1 % m:
        message = f"found {r}^{k} = {pow(r, k, m)} modulo {m}, needed r^k = 1 modulo m"
        return error("C0319", message, span=node.span, hint=_twists(m, k))
    message = f"found {s} * ({r} - 1) = {s * (r - 1) % m} modulo {m}, needed s * (r - 1) = 0 modulo m"
    return error("C0319", message, span=node.span, hint="leave s out: then it is 0")


def _twists(m: int, k: int) -> str | None:
    if m > _SMALL:
        return None
    good = [r for r in range(1, m) if pow(r, k, m) == 1]
    shown = ", ".join(map(str, good[:12]))
    return f"with m = {m} and k = {k}, r may be {shown}{', ..' if len(good) > 12 else ''}"
