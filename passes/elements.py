"""Numbers of pieces against the size of the data: a piece holds at least one element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.shown import counted
from collc.ir.spec import Option

from .base import Pass

__all__ = ["require_elements"]


def require_elements(this: type[Pass], name: str, options: Sequence[Option], collective: Collective) -> None:
    """Raise C0512 for options of a scheduler that divide the data of a collective into more pieces than elements.

    ``name`` is the scheduler's in the language. A collective without a size has no limit. An option counts pieces if
    its :class:`~collc.passes.ranges.Range` names what it ``divides``; of a broadcast or reduce that is all data.
    """
    if collective.size is not None:
        wrong = list(_too_many(this, name, options, collective, collective.size))
        if wrong:
            raise CollcError(wrong)


def _too_many(
    this: type[Pass], name: str, options: Sequence[Option], collective: Collective, size: int
) -> Iterator[Diagnostic]:
    fields = attrs.fields_dict(this)
    for option in options:
        field = fields.get(option.name.replace("-", "_"))
        divided = getattr(field.metadata.get("range"), "divides", "") if field else ""
        if not divided or type(option.value) is not int:
            continue
        whole = divided == "shard" and collective.kind in ("broadcast", "reduce")
        parts = 1 if whole else {"shard": collective.num_ranks, "half": 2}[divided]
        most = -(-size // (parts * collective.element_bytes))
        if option.value > most:
            message = f"option `{option.name}` of scheduler `{name}` needs at most {most}, found {option.value}"
            data = f"{size} B" if whole else f"a {divided} is 1/{parts} of {size} B"
            note = f"{data}: {counted(most, 'element')} of {collective.dtype}"
            yield Diagnostic(
                "C0512", message, span=option.place, notes=(note,), option=option.name,
                hint=f"use {most} or fewer, or leave `{option.name}` out",
            )  # fmt: skip
