"""Names of nodes: families and indices, which texts are names, and how the language writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.node_names import LONGEST_NAME, name_flaw, node_text, printed, split_name

texts = st.text(st.sampled_from("ab[]0123, -"), min_size=1, max_size=12)


@given(texts)
def test_a_name_has_one_family_and_indices(name: str) -> None:
    """Splitting loses nothing, so two names are never one node."""
    family, indices = split_name(name)
    assert printed(family, indices) == name


@given(texts, st.lists(st.integers(0, 20), max_size=3).map(tuple))
def test_a_node_of_a_family_is_split_as_it_was_printed(family: str, indices: tuple[int, ...]) -> None:
    assert split_name(printed(family, indices)) == ((family, indices) if indices else split_name(family))


@pytest.mark.parametrize("name", ["a[01]", "a[1,2]", "a[]", "[1]", "a[1] ", "a[-1]", "a[1", "a[1, ]", "a[\u0661]"])
def test_what_is_not_printed_for_indices_is_a_name_of_its_own(name: str) -> None:
    assert split_name(name) == (name, ())


def test_only_identifiers_stand_without_quotes() -> None:
    bare = ("gpu", "gpu[0]", "gpu[0, 3]", "_x", "rank")
    quoted = ("n-001", "gpu[0,3]", "gpu [0]", "a b", "7", "00", "0a", "not", "true", "import", "n/m[0]", "")
    assert [node_text(name) for name in (*bare, *quoted)] == [*bare, *(f'"{name}"' for name in quoted)]


@pytest.mark.parametrize("name", ["", "a" * (LONGEST_NAME + 1), "a\tb", "a\x7f", "a\u202eb", "a\u2028", "a\u200b"])
def test_what_cannot_be_seen_is_no_name(name: str) -> None:
    assert name_flaw(name)


@pytest.mark.parametrize("name", ["a", "a" * LONGEST_NAME, "pci 0000:17:00.0", "*/ <&>% '", "\u05e9\u05dc\u05d5\u05dd"])
def test_everything_else_is_a_name(name: str) -> None:
    assert name_flaw(name) is None
