"""Where transfers written by hand are placed: ``into scratch 3``, ``{ channel: 1, threadblock: 2 }``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from collc.ir.diagnostic import error
from collc.ir.placement import UNPLACED

from . import ast
from .expressions import NUMBER, Frame, Thunk, integer
from .requests import distinct_options, known
from .scope import Scope

if TYPE_CHECKING:
    from .steps import Steps

__all__ = ["OPTIONS", "compiled"]

#: option -> the columns of a placement that it sets: channel, threadblock of the sender, of the receiver
OPTIONS = {"channel": (0,), "threadblock": (1, 2), "send-threadblock": (1,), "receive-threadblock": (2,)}
#: No runtime has as many channels or threadblocks of a rank.
_MOST = 1 << 12
#: The most places in the scratch of a rank.
_MOST_PLACES = 1 << 20

#: what a transfer chooses: channel, threadblock of the sender, of the receiver, place in scratch
Chosen = tuple[int, int, int, int]


def compiled(node: ast.Transfer, scope: Scope, body: Steps) -> Callable[[Frame], Chosen] | None:
    """Return the function that gives what a transfer chooses; None if it leaves every choice to collc.

    It raises C0127 for an option that transfers do not have, and C0134 for a number out of range.
    """
    if node.scratch is None and not (node.options and node.options.items):
        return None
    columns: list[tuple[tuple[int, ...], Thunk, ast.Expr, str, int]] = []
    for item in distinct_options(node.options, body.compiler):
        known(item.name, tuple(OPTIONS), "C0127", "option", body.compiler)
        if isinstance(item.value, ast.Word):
            message = f"found the word `{item.value.text}`, needed a number"
            raise error("C0131", message, span=item.value.span)
        thunk = body.compiler.compile(item.value, scope, NUMBER)
        noun = item.name.text.rpartition("-")[2]
        columns.append((OPTIONS[item.name.text], thunk, item.value, noun, _MOST))
    if node.scratch is not None:
        thunk = body.compiler.compile(node.scratch, scope, NUMBER)
        columns.append(((3,), thunk, node.scratch, "place in scratch", _MOST_PLACES))
    columns.sort(key=lambda column: -len(column[0]))  # an option for one end replaces that for both

    def run(frame: Frame) -> Chosen:
        found = [UNPLACED] * 4
        for places, thunk, value, what, most in columns:
            number = integer(thunk(frame), value.span, f"the number of a {what}")
            if not 0 <= number < most:
                message = f"found {what} {number}, needed one from 0 to {most - 1}"
                raise error("C0134", message, span=value.span)
            for place in places:
                found[place] = number
        return (found[0], found[1], found[2], found[3])

    return run
