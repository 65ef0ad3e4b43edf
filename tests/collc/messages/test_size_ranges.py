"""Sizes and ranges on the command line: both ends, powers, mixtures, and mistakes with a caret."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from commands import Ran
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.diagnostic import CollcError
from collc.messages.size_ranges import sizes

Collc = Callable[..., Ran]


@pytest.mark.parametrize(
    ("text", "found"),
    [("1KiB", [1024]), ("1KiB,64MiB", [1024, 64 << 20]), ("1..8", [1, 2, 4, 8]), ("1..1", [1]),
     ("3..20", [3, 6, 12, 20]), ("1..100:10", [1, 10, 100]), ("1 KiB .. 4 KiB : 4", [1024, 4096]),
     ("0,1..4,3,2", [0, 1, 2, 4, 3]), ("1KB..1MB:1000", [1000, 10**6])],
)  # fmt: skip
def test_lists_and_ranges(text: str, found: list[int]) -> None:
    assert found == sizes(text, "--size")


@given(st.integers(1, 10**9), st.integers(0, 10**9), st.integers(2, 50))
def test_ranges_have_both_ends_and_powers_between(low: int, more: int, factor: int) -> None:
    found = sizes(f"{low}..{low + more}:{factor}", "--size")
    assert (found[0], found[-1]) == (low, low + more) and found == sorted(set(found))
    assert all(b == a * factor for a, b in pairwise(found[:-1]))
    assert len(found) < 2 or found[-2] < found[-1] <= found[-2] * factor


@given(st.text("0123456789KMiB.,: ", max_size=20))
def test_no_text_is_a_traceback(text: str) -> None:
    try:
        found = sizes(text, "--size")
    except CollcError as mistake:
        (only,) = mistake.diagnostics
        assert only.code == "C0020" and mistake.exit_status in (1, 2)
        assert only.span is None or only.span.column <= len(text) + 1
    else:
        assert found and len(found) < 200


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [("4KiB..1KiB", 1, "an end of at least its start"), ("1,2..x", 6, "found `x`"), ("1..4:1", 6, "a whole factor"),
     ("1..4:", 6, "a whole factor"), ("..4", 1, "found ``"), ("8,0..4", 3, "from at least 1 byte"),
     ("1,,2", 3, "found ``"), ("1..2Kib", 4, "found `2Kib`")],
)  # fmt: skip
def test_mistakes_are_underlined(text: str, column: int, said: str) -> None:
    with pytest.raises(CollcError, match=said) as found:
        sizes(text, "--size")
    (only,) = found.value.diagnostics
    assert only.span is not None and (only.span.column, only.span.source.text) == (column, text) and only.hint
    assert found.value.exit_status == 2


def test_every_verb_takes_ranges(collc: Collc) -> None:
    text = "collective c = allreduce on biring(4);\nschedule c using bfb;\n"
    for verb in ("cost", "simulate"):
        found = json.loads(collc(verb, "-", "--json", "--size", "1KiB..1MiB:32", stdin=text).out)
        assert [1 << 10, 1 << 15, 1 << 20] == [point["size_bytes"] for point in found["points"]]


def test_the_finder_is_asked_for_several_sizes(collc: Collc) -> None:
    found = json.loads(collc("find", "-n16", "-d4", "--json", "--size", "1KiB..256MiB:512").out)
    assert found["size_bytes"] == 1024 and [1 << 10, 1 << 19, 1 << 28] == [p["size_bytes"] for p in found["points"]]
    for point in found["points"]:
        alone = json.loads(collc("find", "-n16", "-d4", "--json", "--size", str(point["size_bytes"])).out)
        (best,) = (row for row in alone["frontier"] if row["expression"] == alone["best"])
        assert (point["best"], point["time_us"]) == (best["expression"], best["time_us"]) and "points" not in alone
    ran = collc("find", "-n16", "-d4", "--size", "1KiB..256MiB:512")
    assert ran.status == 0 and "512 KiB" in ran.out and "fastest" in ran.out
