"""Packets in queues beside flows: where the two models agree, where not, and that the docs quote the script."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from places import ROOT, benchmark

packets = benchmark("swing_packets")

QUEUES = packets.Queues(per_byte=F(1, 50), hop=F(400), base=F(500), packet=4096)  # in nanoseconds


def messages(ring: int, hops: int, size: int) -> list:
    return [packets.Message(place, True, hops, F(size)) for place in range(ring)]


def test_one_message_takes_its_latency_and_its_bytes() -> None:
    (one, *_) = messages(8, 3, 10_000)
    assert QUEUES.time(8, [one]) == 500 + 3 * 400 + 200


@pytest.mark.parametrize("size", [50, 10_000, 40_000])
@pytest.mark.parametrize("hops", [1, 3, 7])
def test_what_is_under_way_leaves_links_free(hops: int, size: int) -> None:
    """All ranks of a ring send equally far: of two times of a hop, only the larger counts again and again.

    A model that adds the latency to the busiest link's time counts both for every hop.
    """
    found, own = QUEUES.time(16, messages(16, hops, size)), F(size, 50)
    flows = 500 + hops * 400 + hops * own
    if own <= 400:
        assert found == 500 + hops * 400 + own == flows - (hops - 1) * own
    else:
        assert 500 + 400 + hops * own <= found < flows or hops == 1


def test_packets_carry_everything() -> None:
    """The check can fail: a message that is left out ends earlier."""
    sent = messages(8, 2, 40_000)
    assert QUEUES.time(8, sent[:1]) < QUEUES.time(8, sent)
    assert sum(one.size for one in QUEUES._packets(sent)) == 8 * 40_000


def test_small_vectors_take_the_same_time_in_both_models() -> None:
    for row in packets.rows(["8x8", "4x4"], 32, 8192):
        assert abs(float(row[2]) - float(row[3])) <= 0.1 and row[4] in ("+0%", "-0%")


def test_the_docs_quote_the_script() -> None:
    text = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
    for row in packets.rows(["8x8"], 32 << 10, 8192):
        assert f"| {' | '.join(row)} |" in text
