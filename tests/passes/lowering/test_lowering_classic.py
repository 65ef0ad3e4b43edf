"""Emitted files are no larger than the classic forms written by hand, counted from the XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import collc

PROFILES = ("msccl", "executor", "rccl")


def blocks(network: str, scheduler: str, runtime: str) -> list[list[ElementTree.Element]]:
    """Return the threadblocks of every rank of an allreduce."""
    text = (
        f"topology net = {network}; collective sums = allreduce on net {{ size: 1MiB }};"
        f"schedule sums using {scheduler};"
    )
    done = collc.compile_source(text, target=f"msccl-xml{{runtime={runtime}}}")
    (artifact,) = done.artifacts.values()
    return [gpu.findall("tb") for gpu in ElementTree.fromstring(artifact.text).findall("gpu")]


def classic_ring(ranks: int, runtime: str) -> int:
    """Return the steps of one threadblock: 2 R - 1; without fused instructions receive, add, send and receive, send."""
    return 2 * ranks - 1 if runtime != "rccl" else 1 + 3 * (ranks - 1) + 1 + 2 * ranks - 3


@pytest.mark.slow
@pytest.mark.parametrize("ranks", range(3, 17))
@pytest.mark.parametrize("both_ways", [False, True])
def test_a_ring_takes_the_classic_steps(ranks: int, both_ways: bool) -> None:
    """One threadblock for each way round, which receives from one neighbour and sends to the other."""
    # every runtime at some sizes: the three are alike but for their limits
    for runtime in PROFILES if ranks in (3, 8, 16) else PROFILES[ranks % 3 :: 3]:
        made = blocks(f"{'biring' if both_ways else 'uniring'}({ranks})", "ring", runtime)
        steps = classic_ring(ranks, runtime)
        for mine in made:
            assert max(len(block.findall("step")) for block in mine) <= steps
            ways = {(block.get("send"), block.get("recv"), block.get("chan")) for block in mine}
            assert len(ways) == len(mine)
            if (
                steps < 56 or runtime != "rccl"
            ):  # a longer one has no room for its waits in the 64 steps of this runtime
                assert len(mine) == 1 + both_ways


@pytest.mark.parametrize("ranks", [3, 4, 6, 8])
def test_allpairs_takes_a_threadblock_a_peer(ranks: int) -> None:
    """Of each peer: send its part, add what comes, send the sum, receive; unfused what comes is added after."""
    for runtime in PROFILES:
        for mine in blocks(f"complete({ranks})", "bfb", runtime):
            assert len(mine) == ranks - 1
            assert {block.get("send") for block in mine} == {block.get("recv") for block in mine}
            assert max(len(block.findall("step")) for block in mine) <= (6 if runtime == "rccl" else 4)
