"""Steps of passes that work on all blocks at once do what a loop over operations does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collc.backends.mscclpp_json.writer import _likes
from collc.ir.arrays import Array
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import Transport
from collc.ir.ragged import starts
from collc.passes.one_sided.merging import Limits, joined_links, merged
from collc.passes.one_sided.nops import _fewest
from collc.passes.one_sided.rows import BLOCK, OPCODE, SHARES, TRANSPORT, Rows
from collc.passes.one_sided.sharing import _first_fit
from collc.passes.one_sided.steps import steps_of, to_rows


@given(st.lists(st.lists(st.integers(0, 12), max_size=12), max_size=5))
def test_the_fewest_nops(blocks: list[list[int]]) -> None:
    """Operation k of a block needs a nop after operation k - back of its block (0: it needs none)."""
    need, block = [], []
    for number, backs in enumerate(blocks):
        first = len(need)
        for k, back in enumerate(backs):
            need.append(first + k - back if 0 < back <= k else -1)
            block.append(number)
    found, nop = [], -1
    for row, last in enumerate(need):
        if last >= max(nop, 0):
            nop = row
            found.append(row)
    assert _fewest(np.array(need, dtype=np.int64), np.array(block, dtype=np.int64)).tolist() == found


@given(
    st.lists(
        st.tuples(st.sampled_from([2, 4, 6]), st.lists(st.booleans(), min_size=8, max_size=8)), min_size=1, max_size=8
    )
)
def test_messages_lie_at_the_lowest_free_place(messages: list[tuple[int, list[bool]]]) -> None:
    size = np.array([count for count, _ in messages], dtype=np.int64)
    free = np.array([known[: len(messages)] for _, known in messages], dtype=bool).reshape(len(messages), -1)
    taken: list[set[int]] = []
    for k, count in enumerate(size.tolist()):
        occupied = set().union(*(taken[x] for x in range(k) if not free[k, x]))
        at = next(at for at in range(100) if occupied.isdisjoint(range(at, at + count)))
        taken.append(set(range(at, at + count)))
    assert _first_fit(size, free).tolist() == [min(one) for one in taken]


SYNCS = (Op.WAIT, Op.SIGNAL, Op.SEM_ACQUIRE, Op.FLUSH)


def rows_of(listed: list[tuple[Op, int, list[int]]]) -> Rows:
    fixed = np.zeros((len(listed), 9), dtype=np.int64)
    for k, (op, transport, _) in enumerate(listed):
        fixed[k, [BLOCK, OPCODE, TRANSPORT, SHARES]] = 0, op, transport, 1
    counts = np.array([len(links) for *_, links in listed], dtype=np.int64)
    links = np.array([link for *_, links in listed for link in links], dtype=np.int64)
    none = np.zeros(len(listed), dtype=np.int64)
    return Rows(fixed, counts, links, none, np.zeros((0, 5), dtype=np.int64))


OPERATIONS = st.tuples(
    st.sampled_from(SYNCS), st.sampled_from([Transport.MEMORY, Transport.PORT]),
    st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True),
)  # fmt: skip


@given(st.lists(OPERATIONS, max_size=12), st.integers(1, 6))
def test_neighbours_join_as_one_by_one(listed: list[tuple[Op, int, list[int]]], most: int) -> None:
    """Runs that join whole are as in ``merged``, and ``merged`` does the rest as if nothing had joined."""
    rows, limits = rows_of(listed), Limits(most, 10)
    quick, kept = joined_links(rows, np.zeros(len(rows), dtype=np.int64), most)

    def by_loop(some: Rows) -> list[tuple[int, int, list[int]]]:
        found = to_rows(merged(steps_of(some, [0] * len(some), [0] * len(some)), limits))
        first = starts(found.link_count).tolist()
        return [
            (int(found.fixed[k, OPCODE]), int(found.fixed[k, TRANSPORT]), found.links[first[k] : first[k + 1]].tolist())
            for k in range(len(found))
        ]

    assert by_loop(quick) == by_loop(rows)
    assert len(kept) == len(quick) and set(kept.tolist()) <= set(range(len(rows)))


@given(st.lists(st.lists(st.integers(-1, 2), min_size=1, max_size=4), max_size=20))
def test_equal_lists_are_found(lists: list[list[int]]) -> None:
    flat: Array = np.array([number for one in lists for number in one], dtype=np.int64)
    first = starts([len(one) for one in lists])
    assert _likes(flat, first).tolist() == [lists.index(one) for one in lists]
