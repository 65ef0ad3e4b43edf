"""What a schedule chooses, channels, threadblocks, scratch and instances, reaches the files, or a message says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import collc
from collc.frontends import coll
from collc.ir.diagnostic import CollcError
from collc.ir.placement import Placement
from collc.ir.schedule import Schedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import verify

_ALLPAIRS = """topology net = complete(4); collective c = allreduce on net { size: 64 KiB };
schedule c using stepsWITH {
  at 0 { for r in 0..4, k in 0..4 { if r != k { reduce shard k from r to kFIRST; } } }
  at 1 { for r in 0..4, k in 0..4 { if r != k { send shard k from k to rSECOND; } } }
}"""
_SCRATCH = " into scratch r"
_BLOCKS = " { channel: 0, send-threadblock: k, receive-threadblock: r }"
_SECOND = " { channel: 1, send-threadblock: 4 + r, receive-threadblock: 4 + k }"


def source(first: str = "", second: str = "", options: str = "") -> str:
    return _ALLPAIRS.replace("FIRST", first).replace("SECOND", second).replace("WITH", options)


def schedule(text: str) -> Schedule:
    found = coll.load("<test>", text=text).collectives["c"].schedule.schedule
    assert isinstance(found, Schedule)
    return found


def mistakes(text: str) -> list[str]:
    with pytest.raises(CollcError) as caught:
        collc.compile_source(text, target="msccl-xml")
    return [f"{one.code}: {one.message}" for one in caught.value.diagnostics]


def test_choices_are_columns_beside_the_transfers() -> None:
    found = schedule(source(_SCRATCH + _BLOCKS))
    assert found.placement is not None and len(found.placement) == len(found) == 24
    first = found.placement.rows(np.flatnonzero(found.step == 0))
    rows = [column.tolist()[:3] for column in (first.channel, first.sender, first.receiver, first.scratch)]
    assert rows == [[0, 0, 0], [1, 2, 3], [0, 0, 0], [0, 0, 0]]
    assert not (found.placement.channel[12:] + 1).any()
    assert schedule(source()).placement is None


def test_several_shards_take_successive_places() -> None:
    text = """topology net = complete(3); collective c = alltoall on net; schedule c using steps {
      at 0: send shards {1, 2, 5} parts 0..2 of 2 from 0 to 1 into scratch 4; }"""
    placement = schedule(text).placement
    assert placement is not None and placement.scratch.tolist() == [4, 4, 5, 5, 6, 6]


def test_schedules_and_programs_read_back() -> None:
    result = collc.compile_source(source(_SCRATCH + _BLOCKS), target="msccl-xml")
    assert result.program is not None and result.program.placed
    text = print_ir(result.program)
    assert "placed yes" in text and parse_ir(text) == result.program
    level = schedule(source(_SCRATCH + _BLOCKS, _SECOND))
    read = parse_ir(print_ir(level))
    assert read == level and isinstance(read, Schedule) and read.placement == level.placement


def blocks(text: str, level: int, target: str = "msccl-xml{runtime=msccl}") -> list[list[tuple[int, int, int]]]:
    """Return (send peer, receive peer, channel) of the threadblocks of each rank in the file."""
    (artifact,) = collc.compile_source(text, target=target, level=level).artifacts.values()  # type: ignore[arg-type]
    return [
        [(int(tb.get("send")), int(tb.get("recv")), int(tb.get("chan"))) for tb in gpu.findall("tb")]
        for gpu in etree.fromstring(artifact.text.encode()).findall("gpu")
    ]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("runtime", ["msccl", "rccl", "executor"])
def test_threadblocks_and_channels_reach_the_file(level: int, runtime: str) -> None:
    found = blocks(source(_SCRATCH + _BLOCKS, _SECOND), level, f"msccl-xml{{runtime={runtime}}}")
    for rank, listed in enumerate(found):
        others = [r for r in range(4) if r != rank]
        assert listed == [(r, r, 0) for r in others] + [(r, r, 1) for r in others]


@pytest.mark.parametrize("level", [0, 2, 3])
def test_contributions_land_in_the_chosen_places(level: int) -> None:
    result = collc.compile_source(source(_SCRATCH), target="msccl-xml{runtime=msccl}", level=level)  # type: ignore[arg-type]
    (artifact,) = result.artifacts.values()
    for rank, gpu in enumerate(etree.fromstring(artifact.text.encode()).findall("gpu")):
        landed = {
            int(tb.get("recv")): int(step.get("dstoff"))
            for tb in gpu.findall("tb")
            for step in tb.findall("step")
            if step.get("type") == "r" and step.get("dstbuf") == "s"
        }
        assert landed == {r: r for r in range(4) if r != rank}
        assert int(gpu.get("s_chunks")) == (4 if rank < 3 else 3)


_TWO_STEPS = """topology net = complete(4); collective c = alltoall on net { size: 64 KiB };
function across(a, b) = abs(floor(a / 2) - floor(b / 2)) * abs(a mod 2 - b mod 2);
schedule c using steps {
  at 0 { for a in 0..4, b in 0..4 { if across(a, b) == 1 { send shard a * 4 + b from a to xor(a, 1) PLACE; } } }
  at 1 { for a in 0..4, b in 0..4 { if a != b {
    if across(a, b) == 1 { send shard a * 4 + b from xor(a, 1) to b; } else { send shard a * 4 + b from a to b; }
  } } }
}"""


def test_what_a_rank_passes_on_is_sent_from_the_chosen_place() -> None:
    for place in (0, 3):
        text = _TWO_STEPS.replace("PLACE", f"into scratch {place}")
        (artifact,) = collc.compile_source(text, target="msccl-xml{runtime=msccl}").artifacts.values()
        steps = etree.fromstring(artifact.text.encode()).iter("step")
        landed = [int(one.get("dstoff")) for one in steps if one.get("dstbuf") == "s" and one.get("type") == "r"]
        assert landed == [place] * 4


def test_instances_run_side_by_side_on_their_own_channels() -> None:
    once = blocks(source(_SCRATCH + _BLOCKS, _SECOND), 2)
    twice = blocks(source(_SCRATCH + _BLOCKS, _SECOND, " with { instances: 2 }"), 2)
    for one, two in zip(once, twice, strict=True):
        assert two == one + [(send, receive, channel + 2) for send, receive, channel in one]


@pytest.mark.parametrize("target", ["mpi-c", "oneccl-xml", "msccl-xml{runtime=rccl}"])
def test_every_target_takes_what_a_schedule_chooses(target: str) -> None:
    assert collc.compile_source(source(_SCRATCH + _BLOCKS, _SECOND, " with { instances: 2 }"), target=target).artifacts


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (" { send-threadblock: r }", "", "threadblock 0 of rank 0 sends to rank 2 too"),
        (" { receive-threadblock: k }", "", "threadblock 2 of rank 2 receives from rank 1 too"),
        (" { channel: k mod 2, send-threadblock: k }", " { channel: 2, receive-threadblock: k }",
         "threadblock 1 of rank 0 has channel 2 too"),
        (" { send-threadblock: k }", " { send-threadblock: r + 4 }",
         "rank 1 sends to rank 0 on channel 0 in threadblock 4 too"),
        (" into scratch 0", "", "step 0: rank 1 reduces shard 2 to rank 2, at place 0 of its scratch; so do other "
         "data in this step"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_mistake_at_the_transfers(first: str, second: str, expected: str) -> None:
    text = source(first, second)
    assert mistakes(text) == [f"C0401: the schedule of `c` is wrong: {expected}"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("at 0: send shard 3 from 0 to 1 into scratch 0; at 1: send shard 6 from 1 to 2 into scratch 0;"
         "at 2: send shard 6 from 2 to 0; at 2: send shard 3 from 1 to 0;", ""),
        ("at 0: send shard 2 from 0 to 1 into scratch 0; at 1: send shard 6 from 2 to 1 into scratch 0;"
         "at 2: send shard 2 from 1 to 2;",
         "step 2: rank 1 sends shard 2 to rank 2, but place 0 of its scratch has other data by then"),
        ("at 0: send shard 2 part 0 of 2 from 0 to 1 into scratch 0; at 1: send shard 2 part 1 of 2 from 0 to 1"
         " into scratch 1;", "step 1: rank 0 sends part [1/2, 2/2) of shard 2 to rank 1, at place 1 of its scratch"),
        ("at 0: send shard 2 part 0 of 2 from 0 to 1 into scratch 0; at 0: send shard 6 part 1 of 2 from 2 to 1"
         " into scratch 0;", ""),
    ],
)  # fmt: skip
def test_data_in_scratch_stay_until_they_are_read(steps: str, expected: str) -> None:
    text = f"topology net = complete(3); collective c = alltoall on net; schedule c using steps {{ {steps} }}"
    checks = {check.name: check for check in verify(schedule(text)).checks}
    check = checks["placement"]
    assert (not check.ok and check.detail == expected) if expected else check.ok


@pytest.mark.parametrize(
    ("first", "options", "expected"),
    [
        (" { chanel: 1 }", "", "C0127: unknown option `chanel`"),
        (" { channel: 0 - 1 }", "", "C0134: found channel -1, needed one from 0 to 4095"),
        (" { threadblock: 1 / 2 }", "", "C0132: found 1/2, needed the number of a threadblock"),
        (" into scratch 0 - 1", "", "C0134: found place in scratch -1, needed one from 0 to 1048575"),
        (" { channel: 1, channel: 2 }", "", "C0128: found option `channel` twice"),
        ("", " with { instances: 0 }", "C0134: found 0 instances, needed 1 to 64"),
        ("", " with { copies: 2 }", "C0127: unknown option `copies`"),
        (" { channel: 40 }", "", "C0509: the schedule chooses 41 channels; the limit is 32"),
    ],
)
def test_mistakes_in_options(first: str, options: str, expected: str) -> None:
    assert mistakes(source(first, options=options)) == [expected]


def test_shards_that_differ_in_size_have_no_places() -> None:
    text = """topology net = complete(3); collective c = allgatherv on net { weights: {1, 2, 3} };
    schedule c using steps { at 0: send shard 0 from 0 to 1 into scratch 0; }"""
    assert mistakes(text)[0].startswith("C0163")


def test_a_pass_that_loses_the_choices_says_so(tmp_path: Path) -> None:
    path = tmp_path / "c.coll"
    path.write_text(source(" { channel: 1 }"))
    arguments = [str(path), "-v", "-t", "ir", "-p", "reverse,discretize,lower", "-o", str(tmp_path / "c.ir")]
    ran = subprocess.run([sys.executable, "-m", "collc", *arguments], capture_output=True, text=True, check=True)
    assert "reverse: the channels, threadblocks and scratch that the schedule chooses are lost" in ran.stderr


def test_placements_select_rows() -> None:
    placed = Placement([0, 1, -1], [-1, -1, -1], [2, 3, 4], [-1, -1, 7])
    assert placed.rows(np.array([2, 0])) == Placement([-1, 0], [-1, -1], [4, 2], [7, -1])
    assert Placement.of(np.full((3, 4), -1)) is None
