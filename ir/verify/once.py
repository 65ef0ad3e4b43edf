"""Whether a program adds every contribution once."""

from __future__ import annotations

import attrs

from ..layout import layout
from ..machine import execute, partners
from ..symmetric_program import AnyProgram, SymmetricProgram
from ._values import evaluate
from .symmetric_program import template_adds_once

__all__ = ["adds_once"]


def adds_once(program: AnyProgram) -> bool:
    """Return whether a verified program adds every contribution once, so that it is correct for any operation.

    Otherwise it is correct only for the operation of its collective, which is idempotent.
    """
    if not program.collective.idempotent:
        return True
    if isinstance(program, SymmetricProgram):
        listed = program.width == program.num_ranks
        return adds_once(program.unfold()) if listed else template_adds_once(program)
    strict = attrs.evolve(program, collective=attrs.evolve(program.collective, op="sum"))
    finished = execute(strict).finished
    return not evaluate(strict, layout(strict, False), finished, partners(strict)).problem
