"""Lists of hosts: what they expand to, and where a text stops to be one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.importing.hostlist import HostListError, expand

stems = st.from_regex(r"[a-z][a-z0-9.-]{0,4}", fullmatch=True)
ranges = st.tuples(st.integers(0, 99), st.integers(0, 4), st.integers(1, 4))


@given(st.lists(st.tuples(stems, st.lists(ranges, min_size=1, max_size=3)), min_size=1, max_size=3))
def test_every_number_of_every_range_is_there_with_its_zeros(entries: list[tuple[str, list[tuple[int, ...]]]]) -> None:
    texts, expected = [], []
    for stem, runs in entries:
        texts.append(f"{stem}[{','.join(f'{a:0{w}}-{a + n:0{w}}' if n else f'{a:0{w}}' for a, n, w in runs)}]")
        expected += [f"{stem}{number:0{w}}" for a, n, w in runs for number in range(a, a + n + 1)]
    assert expand(",".join(texts)) == expand(" ,\t".join(texts)) == expected


def test_several_ranges_in_a_name_and_zeros_that_end() -> None:
    assert expand("r[1-2]n[1-2],login") == ["r1n1", "r1n2", "r2n1", "r2n2", "login"]
    assert expand("n[8-11]") == ["n8", "n9", "n10", "n11"] and expand("n[098-101]") == ["n098", "n099", "n100", "n101"]
    assert expand("n[1-2]x[3,5]-ib") == ["n1x3-ib", "n1x5-ib", "n2x3-ib", "n2x5-ib"] and expand("n,n") == ["n", "n"]


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("", 0, "found the end of the list, needed the name of a host"),
        ("a,,b", 2, "found `,`, needed the name of a host"),
        ("a,", 2, "found the end of the list"),
        ("a b", 2, "found `b`, needed `,`"),
        ("n[1-", 1, "found `[` without `]`"),
        ("n]", 1, "found `]`, needed `,`"),
        ("n[]", 2, "found `]` in brackets"),
        ("n[a-b]", 2, "found `a` in brackets"),
        ("n[1-2,x]", 6, "found `x` in brackets"),
        ("n[[1]]", 2, "found `[` in brackets"),
        ("n[1 2]", 4, "found `2` in brackets"),
        ("m,n[5-1]", 4, "found the range `5-1` backwards"),
        ("m,n[1-999999999]", 2, "found 1000000000 hosts, needed at most"),
        (f"n[1-{'9' * 30}]", 2, "found a number of more than 18 digits"),
        ("n[1-99999]" * 9, 0, "found more than 10^12 hosts"),
        ("n" * 300, 0, "found a name of more than 255 characters"),
    ],
)
def test_what_is_no_list_has_a_place(text: str, start: int, message: str) -> None:
    """Sizes are counted before anything is listed."""
    with pytest.raises(HostListError, match=re.escape(message)) as caught:
        expand(text)
    assert (caught.value.start, start < caught.value.end) == (start, True)


@given(st.text(alphabet="n0123456789[]-, \n", max_size=30))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        found = expand(text, most=1000)
    except HostListError as failure:
        assert 0 <= failure.start < failure.end <= len(text) + 1
    else:
        assert 1 <= len(found) <= 1000 and all(found)
