"""Links kept by larger networks: counted again, against all placements of small networks, never above the bound."""

from __future__ import annotations

from itertools import permutations

import pytest
import strategies
from hypothesis import given, settings
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.topology import Topology
from collc.passes.finder import growth
from collc.passes.finder.growth import Grown, grown, kept_bound, links_kept


def judged(small: Topology, large: Topology) -> Grown:
    """Return the placement; fail if it is none, or keeps another number of links. Counts without the module's help."""
    found = grown(small, large)
    assert len(found.place) == small.num_ranks == len(set(found.place))
    assert set(found.place) <= set(range(large.num_ranks))
    left = [end for end in _ends(large) if end[0] != end[1]]
    kept = 0
    for a, b in _ends(small):
        if a != b and (found.place[a], found.place[b]) in left:
            left.remove((found.place[a], found.place[b]))
            kept += 1
    assert found.kept == kept <= found.bound <= found.links
    assert (found.labelling == "numbers") == (found.place == tuple(range(small.num_ranks)))
    return found


def _ends(network: Topology) -> list[tuple[int, int]]:
    return list(zip(network.src.tolist(), network.dst.tolist(), strict=True))


def most(small: Topology, large: Topology) -> int:
    """Return the most links that any placement keeps."""
    places = permutations(range(large.num_ranks), small.num_ranks)
    return max(links_kept(small, large, list(place)) for place in places)


@pytest.mark.parametrize(
    ("small", "large", "kept", "labelling"),
    [
        ("biring(5)", "biring(7)", 8, "numbers"),
        ("uniring(6)", "uniring(9)", 5, "numbers"),
        ("circulant(16, {3, 4})", "circulant(17, {3, 4})", 56, "numbers"),
        ("torus(4, 4)", "torus(4, 5)", 56, "search"),
        ("complete(4)", "complete(6)", 12, "numbers"),
        ("circulant(13, {2, 3})", "circulant(13, {4, 6})", 52, "search"),
    ],
)
def test_known_expansions_keep_their_links(small: str, large: str, kept: int, labelling: str) -> None:
    found = judged(topology(small), topology(large))
    assert (kept, labelling) == (found.kept, found.labelling)


@pytest.mark.parametrize(
    ("small", "large"),
    [("biring(5)", "biring(6)"), ("circulant(6, {1, 2})", "circulant(7, {1, 2})"), ("hypercube(2)", "hypercube(3)"),
     ("generalized_kautz(2, 6)", "generalized_kautz(2, 7)"), ("uniring(4, 2)", "biring(6)"),
     ("debruijn(2, 2)", "modified_debruijn(2, 2)")],
)  # fmt: skip
def test_no_placement_exceeds_the_bound_and_few_exceed_the_search(small: str, large: str) -> None:
    one, two = topology(small), topology(large)
    best = most(one, two)
    assert best <= kept_bound(one, two)
    assert best - 1 <= judged(one, two).kept <= best


@settings(max_examples=examples(40), deadline=None)
@given(strategies.connected(max_ranks=5), strategies.connected(min_ranks=5, max_ranks=6))
def test_the_bound_holds_for_any_networks(small: Topology, large: Topology) -> None:
    assert judged(small, large).kept <= most(small, large) <= kept_bound(small, large)


def test_a_network_keeps_all_links_in_itself() -> None:
    for call in ("generalized_kautz(3, 20)", "torus(2, 3)", "debruijn(2, 3)"):
        found = judged(topology(call), topology(call))
        assert found.kept == found.links == found.bound


def test_effort_ends_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = topology("torus(4, 4)"), topology("torus(4, 5)")
    monkeypatch.setattr(growth, "_followed", lambda small, large: list(range(16)))
    whole = judged(small, large).kept
    monkeypatch.setattr(growth, "_MOST_TRIED", 1)
    assert 24 <= judged(small, large).kept < whole


def test_a_planted_fault_in_a_placement_keeps_less() -> None:
    small, large = topology("torus(4, 4)"), topology("torus(4, 5)")
    place = list(grown(small, large).place)
    place[0], place[5] = place[5], place[0]
    assert links_kept(small, large, place) < 56
