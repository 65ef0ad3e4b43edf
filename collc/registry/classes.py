"""From names to classes of passes, targets and schedulers, each imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from collc.backends import TARGETS
from collc.ir.diagnostic import Span, error
from collc.ir.registry import Registry
from collc.passes import PASSES, SCHEDULERS
from collc.passes.schedulers import usual

from ..messages.places import usage_status

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.passes.base import Pass

__all__ = ["pass_class", "plugin_class", "scheduler_pass", "target_class"]


def pass_class(name: str, span: Span | None = None) -> type[Pass]:
    """Return the class of a pass; raise C0008 for an unknown name, C0891 if a plugin's class is wrong."""
    if name not in PASSES:
        found = None
        if name in SCHEDULERS:
            found = (
                f"`{name}` chooses among the schedulers; a pipeline begins with one, such as `{scheduler_pass(name)}`"
            )
        hint = found or PASSES.hint(name)
        raise error("C0008", f"unknown pass `{name}`", span=span, hint=hint, exit_status=usage_status([span]))
    if name in PASSES.own:
        own: type[Pass] = _load(PASSES[name])
        return own
    from collc.passes.base import Pass

    brought: type[Pass] = plugin_class(PASSES, name, Pass)
    return brought


def target_class(name: str, span: Span | None = None) -> type[Target]:
    """Return the class of a target; raise C0007 for an unknown name, C0891 if a plugin's class is wrong."""
    if name not in TARGETS:
        status = usage_status([span])
        raise error("C0007", f"unknown target `{name}`", span=span, hint=TARGETS.hint(name), exit_status=status)
    if name in TARGETS.own:
        own: type[Target] = _load(TARGETS[name])
        return own
    from collc.backends.base import Target

    found: type[Target] = plugin_class(TARGETS, name, Target)
    return found


def scheduler_pass(name: str, span: Span | None = None) -> str:
    """Return the name of a scheduler's pass; raise C0015 for an unknown scheduler."""
    if name not in SCHEDULERS:
        raise error("C0015", f"unknown scheduler `{name}`", span=span, hint=SCHEDULERS.hint(name))
    return name if name in PASSES else usual("allreduce")


# Any: tables of any rows; what is returned is a subclass of ``base``
def plugin_class(table: Registry[Any], name: str, base: type) -> Any:
    """Return the class that a plugin brings; raise C0891 unless it is a subclass of ``base`` with this name."""
    found = table.load(name)
    if isinstance(found, type) and issubclass(found, base) and getattr(found, "name", None) == name:
        return found
    message = f"the {table.kind} `{name}` of the package `{table.package(name)}` is no {base.__name__} of that name"
    raise error("C0891", message)


def _load(entry: tuple[str, str, str]) -> Any:  # Any: whichever class the table names
    return getattr(import_module(entry[0]), entry[1])
