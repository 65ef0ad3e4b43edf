"""Lines that are operations on data, in the form of :mod:`.writer`: read without a parser of JSON."""

from __future__ import annotations

import re

from .model import OPS, PlanItem, PlanOp

__all__ = ["Moves"]

_ITEMS = r"\[\{[^][{}]*\}(?:, \{[^][{}]*\})*\]"
_MOVE = re.compile(
    rf'\{{"name": "([a-z_]+)"(?:, "src_buff": ({_ITEMS}))?(?:, "dst_buff": ({_ITEMS}))?'
    r'(?:, "channel_type": "(memory|port|switch)")?(?:, "reduce_op": "sum")?\}'
)
_NUMBER = r"(0|[1-9]\d{0,8})"
_ITEM = re.compile(
    rf'(?:"type": "([ios])"|"buffer_id": {_NUMBER}|"switch_channel_id": {_NUMBER}), "index": {_NUMBER}, '
    rf'"size": {_NUMBER}'
)


class Moves:
    """Reads lines that are operations on data in the form of :mod:`.writer`. Equal lists of items are one object."""

    def __init__(self) -> None:
        self.lists: dict[str | None, tuple[PlanItem, ...] | None] = {None: ()}
        self.items: dict[str, PlanItem | None] = {}

    def read(self, line: str) -> PlanOp | None:
        """Return the operation of a line; None if it is in another form."""
        match = _MOVE.fullmatch(line)
        if match is None:
            return None
        name, *sides, transport = match.groups()
        src, dst = (self.lists[side] if side in self.lists else self._list(side) for side in sides)
        return None if src is None or dst is None or name not in OPS else PlanOp(name, transport or "", (), src, dst)

    def _list(self, text: str) -> tuple[PlanItem, ...] | None:
        items = [self.items[one] if one in self.items else self._item(one) for one in text[2:-2].split("}, {")]
        found = tuple([one for one in items if one is not None])
        self.lists[text] = found if len(found) == len(items) else None
        return self.lists[text]

    def _item(self, text: str) -> PlanItem | None:
        found = None
        if match := _ITEM.fullmatch(text):
            letter, remote, switch, index, size = match.groups()
            found = PlanItem(letter or "", int(index), int(size), int(remote or -1), int(switch or -1))
        self.items[text] = found
        return found
