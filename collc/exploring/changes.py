"""What a pass changed: the rows before and after it, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from collc.ir.frozen import frozen

from .rows import Row

__all__ = ["Change", "changes"]

#: rows of both sides up to which moves within the text are found; longer texts are compared place by place
_MOST_MATCHED = 20_000


@frozen
class Change:
    """A row before a pass and a row after it; ``kind`` is same, changed, removed or added. None: there is no row.

    Numbers of rows count from 1.
    """

    kind: str
    before: tuple[int, str] | None
    after: tuple[int, str] | None


def changes(before: Sequence[Row], after: Sequence[Row]) -> list[Change]:
    """Return the rows of both sides in order, each once.

    >>> one, other = [Row("a", "0: a", "a"), Row("b", "1: b", "b")], [Row("b", "0: b", "b"), Row("c", "1: c", "c")]
    >>> [change.kind for change in changes(one, other)]
    ['removed', 'same', 'added']
    """
    return list(_changes(before, after))


def _changes(before: Sequence[Row], after: Sequence[Row]) -> Iterator[Change]:
    for tag, a, b, c, d in _matched([row.key for row in before], [row.key for row in after]):
        for i, j in zip_longest(range(a, b), range(c, d)):
            left = None if i is None else (i + 1, before[i].text)
            right = None if j is None else (j + 1, after[j].text)
            if tag == "equal" and i is not None and j is not None:
                yield Change("same" if before[i].body == after[j].body else "changed", left, right)
            elif i is not None and j is not None and before[i].is_numbered == after[j].is_numbered:
                yield Change("changed", left, right)
            else:
                yield from (Change("removed", left, None) for _ in range(left is not None))
                yield from (Change("added", None, right) for _ in range(right is not None))


def _matched(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    if len(before) + len(after) <= _MOST_MATCHED:
        yield from SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return
    for place in range(max(len(before), len(after))):
        a, b = min(place, len(before)), min(place + 1, len(before))
        c, d = min(place, len(after)), min(place + 1, len(after))
        same = a < b and c < d and before[a] == after[c]
        yield "equal" if same else "replace", a, b, c, d
