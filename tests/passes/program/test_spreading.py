"""Messages spread over channels, from columns, against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import any_programs

from collc.ir.machine import partners
from collc.passes.program.coalesce import Coalesce, _other_ends
from collc.passes.program.pairing import PER_CHANNEL
from collc.passes.program.spreading import free_channels, least_loaded


def spread_plainly(sizes: list[list[int]], channels: list[int]) -> list[int]:
    """Give each message of each connection the first channel with the fewest chunks."""
    chosen = []
    for messages, number in zip(sizes, channels, strict=True):
        load = [0] * number
        for size in messages:
            chosen.append(load.index(min(load)))
            load[chosen[-1]] += size
    return chosen


@given(st.lists(st.tuples(st.lists(st.integers(1, 300), max_size=9), st.integers(1, 4)), max_size=40))
def test_each_message_goes_to_the_channel_with_the_fewest_chunks(connections: list[tuple[list[int], int]]) -> None:
    """Few connections one by one, many at once."""
    sizes, channels = [one[0] for one in connections], [one[1] for one in connections]
    count = np.array([size for one in sizes for size in one], dtype=np.uint16)
    messages = np.array([len(one) for one in sizes], dtype=np.int64)
    found = least_loaded(count, messages, np.array(channels, dtype=np.int64))
    assert found.tolist() == spread_plainly(sizes, channels)


def channels_plainly(ends: list[tuple[int, int]], number: list[int]) -> list[int]:
    """Give each connection the lowest channels that are free at both ends, one connection after the other."""
    found: list[int] = []
    taken: list[tuple[int, int, int]] = []
    for (src, dst), count in zip(ends, number, strict=True):
        c = -1
        for _ in range(count):
            c += 1
            while (
                (src, dst, c) in taken
                or sum(a == src and x == c for a, _, x in taken) >= PER_CHANNEL
                or sum(b == dst and x == c for _, b, x in taken) >= PER_CHANNEL
            ):
                c += 1
            taken.append((src, dst, c))
            found.append(c)
    return found


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=60), st.booleans(), st.data())
def test_channels_are_the_lowest_free_ones(ends: list[tuple[int, int]], once: bool, data: st.DataObject) -> None:
    """With parallel connections and without, with ranks of more connections than a channel takes."""
    ends = sorted(set(ends) if once else ends)
    number = data.draw(st.lists(st.integers(1, 3), min_size=len(ends), max_size=len(ends)))
    src, dst = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    assert free_channels(src, dst, np.array(number, dtype=np.int64)).tolist() == channels_plainly(ends, number)


def test_a_rank_with_many_connections_takes_another_channel() -> None:
    ends = [(0, peer) for peer in range(1, PER_CHANNEL + 3)]
    src, dst = np.array(ends).T
    found = free_channels(src, dst, np.ones(len(ends), dtype=np.int64))
    assert found.tolist() == channels_plainly(ends, [1] * len(ends)) and found.tolist().count(1) == 2


@settings(max_examples=examples(60))
@given(any_programs(), st.integers(1, 6), st.data())
def test_runs_of_joined_rows_break_where_they_exceed_the_limit(program, most: int, data: st.DataObject) -> None:
    alike = np.zeros(program.num_instructions, dtype=bool)
    alike[1:] = (program.opcode[1:] == program.opcode[:-1]) & (program.block[1:] == program.block[:-1])
    drawn = data.draw(st.lists(st.booleans(), min_size=len(alike), max_size=len(alike)))
    joined = alike & np.array(drawn, dtype=bool)
    other = _other_ends(program, partners(program))
    due, total = joined.copy(), 0
    for i in np.flatnonzero(~program.receives).tolist():
        total = total + int(program.count[i]) if joined[i] else int(program.count[i])
        if joined[i] and total > most:
            due[i], total = False, int(program.count[i])
            if other[i] >= 0:
                due[other[i]] = False
    assert Coalesce(max_count=most)._limit(program, joined, other).tolist() == due.tolist()
