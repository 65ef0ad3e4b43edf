"""What has an option of a name, for hints about options in the wrong braces."""

from __future__ import annotations

import functools

import attrs

from collc.backends import TARGETS
from collc.passes import SCHEDULERS

from .classes import pass_class, scheduler_pass, target_class

__all__ = ["option_owner"]

_MOST = 4  # names listed


@functools.cache
def option_owner(option: str) -> str | None:
    """Return the schedulers and targets of collc that have an option, None if there are none.

    >>> option_owner("runtime"), option_owner("size"), option_owner("nonsense")
    ('targets `msccl-xml`, `mscclpp-json`', 'schedulers `auto`, `bfb` and target `chakra`', None)
    """
    schedulers = [name for name in SCHEDULERS.own if _has(pass_class(scheduler_pass(name)), option)]
    targets = [name for name in TARGETS.own if _has(target_class(name), option)]
    return " and ".join(filter(None, [_named("scheduler", schedulers), _named("target", targets)])) or None


def _has(cls: type, option: str) -> bool:
    name = option.replace("-", "_")
    return any(field.name == name and field.init for field in attrs.fields(cls)) and not name.startswith("_")


def _named(kind: str, names: list[str]) -> str:
    """Return names with their kind: one alone, few all, many with ``..``."""
    shown = ", ".join(f"`{name}`" for name in names[:_MOST]) + (", .." if len(names) > _MOST else "")
    return f"{kind}{'s' if len(names) > 1 else ''} {shown}" if names else ""
