"""From a name to the class that bears it: passes, targets and schedulers, imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from collc.backends import TARGETS
from collc.ir.diagnostic import Span, error, nearest
from collc.passes import PASSES, SCHEDULERS

from .places import usage_status

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.passes.base import Pass

__all__ = ["pass_class", "scheduler_pass", "target_class"]


def pass_class(name: str, span: Span | None = None) -> type[Pass]:
    """Return the class of a pass; raise C0008 for a name no pass has."""
    if name not in PASSES:
        hint = nearest(name, PASSES) or "`collc passes` lists them"
        if name in SCHEDULERS:
            hint = f"the scheduler `{name}` is the pass `{SCHEDULERS[name][0]}`"
        raise error("C0008", f"unknown pass `{name}`", span=span, hint=hint, exit_status=usage_status([span]))
    return _load(PASSES[name])


def target_class(name: str, span: Span | None = None) -> type[Target]:
    """Return the class of a target; raise C0007 for a name no target has."""
    if name not in TARGETS:
        hint = nearest(name, TARGETS) or f"there are {', '.join(TARGETS)}"
        raise error("C0007", f"unknown target `{name}`", span=span, hint=hint, exit_status=usage_status([span]))
    return _load(TARGETS[name])


def scheduler_pass(name: str, span: Span | None = None) -> str:
    """Return the name of the pass that synthesizes for a scheduler; raise C0015 for a name no scheduler has."""
    if name not in SCHEDULERS:
        hint = nearest(name, SCHEDULERS) or f"there are {', '.join(SCHEDULERS)}"
        raise error("C0015", f"unknown scheduler `{name}`", span=span, hint=hint)
    return SCHEDULERS[name][0]


def _load(entry: tuple[str, str, str]) -> Any:
    return getattr(import_module(entry[0]), entry[1])
