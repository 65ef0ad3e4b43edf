"""Wrong schedules written by hand: the transfer's own line, the line that explains it, a hint that mends it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

from collc.driver.placing import wrong_by_hand
from collc.frontends.coll import load
from collc.ir.verify import verify

_HEAD = "topology ring = biring(4);\ncollective c = {} on ring;\nschedule c using steps {{\n"
GATHER = """  for r in 0..4 { at 0: send shard r from r to (r + 1) mod 4; }
  for r in 0..4 { at 1: send shard r from (r + 1) mod 4 to (r + 2) mod 4; }
"""


def file(kind: str, body: str) -> str:
    return _HEAD.format(kind) + body + "}\n"


@pytest.mark.parametrize(
    ("kind", "body", "line", "message", "second", "hint"),
    [
        ("allgather", "at 0: send shard 1 from 0 to 3;\nat 2: send shard 1 from 1 to 0;\n", 4,
         "step 0: rank 0 sends shard 1 to rank 3, but does not have it", (5, "rank 0 receives it here, in step 1"),
         "move this transfer to a step after the one that brings the data"),
        ("allgather", "at 0 { send shard 1 from 1 to 0;\nsend shard 1 from 0 to 3; }\n", 5,
         "step 0: rank 0 sends shard 1 to rank 3, but does not have it", (4, "rank 0 receives it here, in step 0"),
         "move this transfer"),
        ("allgather", "at 0: send shard 1 from 0 to 3;\n", 4, "but does not have it", None,
         "bring it to rank 0 in an earlier step"),
        ("allgather", "at 0: reduce shard 1 from 1 to 2;\n", 4, "but allgather does not reduce", None,
         "write `send` in place of `reduce`"),
        ("allreduce", "at 0: reduce shard 1 from 0 to 1;\nat 4: reduce shard 1 from 1 to 2;\n"
         "at 8: reduce shard 1 from 0 to 3;\nat 9: reduce shard 1 from 3 to 2;\n", 7,
         "step 3: rank 3 reduces shard 1 to rank 2, which has the contribution of rank 0 already",
         (5, "rank 2 received it here first, in step 1"), "leave out one of the transfers"),
        ("allreduce", "at 0: reduce shard 1 from 0 to 1;\nat 1: reduce shard 1 from 1 to 0;\n", 5,
         "which has the contribution of rank 0 already", None, "leave out"),
        ("allreduce", "at 0 { reduce shard 1 from 0 to 1;\nsend shard 1 from 2 to 1; }\n", 4, "which comes last?",
         (5, "the other transfer of this step"), "move one of the two to another step"),
    ],
)  # fmt: skip
def test_the_transfer_is_underlined(
    collc: Callable[..., Ran], kind: str, body: str, line: int, message: str, second: tuple[int, str] | None, hint: str
) -> None:
    text = file(kind, body)
    ran = collc("cost", "-", stdin=text)
    first = text.splitlines()[line - 1]
    column = re.search("send|reduce", first)
    assert column is not None
    assert ran.status == 1 and f"<stdin>:{line}:{column.start() + 1}: error: the schedule of `c` is wrong: " in ran.err
    assert f"{message} [C0401]" in ran.err and f"  hint: {hint}" in ran.err, ran.err
    if second:
        assert re.search(rf"<stdin>:{second[0]}:\d+: note: {re.escape(second[1])}\n", ran.err), ran.err


def test_steps_with_gaps_are_explained(collc: Callable[..., Ran]) -> None:
    body = "at 3: send shard 0 from 0 to 1;\nat 7: send shard 1 from 0 to 3;\n"
    assert "note: steps are counted without gaps: step 1 is `at 7`" in collc(
        "cost", "-", stdin=file("allgather", body)).err  # fmt: skip


def test_the_first_few_missing_shards_are_listed(collc: Callable[..., Ran], tmp_path: Path) -> None:
    body = "at 5: send shard 0 from 0 to 1;\n"
    text = file("allgather", body)
    ran = collc("cost", "-", stdin=text)
    said = "the schedule of `c` is incomplete: rank 0 misses 3 of 4 shards: 1, 2 and 3; 3 more ranks miss shards"
    assert said in ran.err and "<stdin>:2:16: note: the collective" in ran.err
    assert "note: rank 1 misses 2 of 4 shards: 2 and 3\n" in ran.err
    path = tmp_path / "hand.coll"
    path.write_text(text)
    ran = collc("verify", "--json", str(path))
    check = json.loads(ran.out)["checks"][-1]
    assert check["detail"].startswith("rank 0 misses 3 of 4 shards: 1, 2 and 3") and len(check["notes"]) == 2


def test_the_hint_mends_a_schedule_when_it_is_repeated(collc: Callable[..., Ran]) -> None:
    body = GATHER.replace("1:", "6:")
    for _ in range(8):
        ran = collc("cost", "-", stdin=file("allgather", body))
        if ran.status == 0:
            break
        found = re.search(r"hint: add `(at \d+: send .*;)`", ran.err)
        assert found, ran.err
        body += f"  {found[1]}\n"
    assert ran.status == 0 and body.count("at 7") == 1


@pytest.mark.parametrize("network", ["biring(4)", "uniring(3)", "torus(3, 2)"])
@pytest.mark.parametrize("kind", ["allgather", "broadcast", "scatter", "gather", "alltoall"])
def test_hints_alone_write_a_schedule(kind: str, network: str) -> None:
    """From no transfers at all, each hint adds one, until the schedule is right."""
    root, body = "" if kind in ("allgather", "alltoall") else "{ root: 1 }", ""
    for _ in range(60):
        text = f"topology t = {network};\ncollective c = {kind} on t {root};\nschedule c using steps {{ {body} }}\n"
        request = load("hand.coll", text=text).collectives["c"]
        report = verify(request.schedule.schedule)
        if report.ok:
            return
        found = re.search(r"add `(at \d+: send .*?;)`", wrong_by_hand(request, report.failed[0]).hint or "")
        assert found, text
        body += f"\n{found[1]}"
    raise AssertionError(text)


def test_contributions_that_are_missing_are_counted(collc: Callable[..., Ran]) -> None:
    ran = collc("cost", "-", stdin=file("reduce-scatter", "at 0: reduce shard 0 from 1 to 0;\n"))
    assert "incomplete: rank 0 ends with shard 0 without the contributions of 2 of 4 ranks: 2 and 3" in ran.err
    assert "note: 4 of 4 results lack contributions, on ranks 0, 1, 2 and 3" in ran.err


def test_parts_that_are_missing_are_named(collc: Callable[..., Ran]) -> None:
    body = "for r in 0..4, q in 1..4 { at q: send shard r part 0 of 2 from (r + q - 1) mod 4 to (r + q) mod 4; }\n"
    ran = collc("cost", "-", stdin=file("allgather", body))
    assert "rank 0 misses 3 of 4 shards: 1 (part [1/2, 2/2) of it), 2 (part" in ran.err, ran.err
