"""The way to a larger network: nodes renamed, cables removed and added give exactly the larger network."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import attrs
import pytest
import strategies
from commands import Ran
from hypothesis import given, settings
from sampling import examples

from collc.backends.networks.cabling import BOTH_WAYS, LOOP, cables
from collc.frontends.coll import topology
from collc.ir.topology import Topology
from collc.passes.finder.growth import grown, links_kept
from collc.tools.recabling import ADDED, KEPT, REMOVED, Recabling, recabling

Collc = Callable[..., Ran]
#: sender's node and port, receiver's node and port
Link = tuple[int, int, int, int]


def links(network: Topology) -> Counter[tuple[int, int]]:
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    return Counter((a, b) for a, b in ends if a != b)


def both(node: int, port: int, peer: int, peer_port: int, is_both: bool) -> list[Link]:
    return [(node, port, peer, peer_port), (peer, peer_port, node, port)][: 1 + is_both]


def mistake(small: Topology, large: Topology, found: Recabling) -> str:
    """Return what is wrong with a way, done cable by cable; nothing if it gives the larger network."""
    place = found.place
    if len(set(place)) != small.num_ranks or not set(place) <= set(range(large.num_ranks)):
        return "no map"
    plugged = {
        link for one in cables(small) if one.direction != LOOP
        for link in both(place[one.node], one.port, place[one.peer], one.peer_port, one.direction == BOTH_WAYS)
    }  # fmt: skip
    untouched = set(plugged)
    for one in found.cables:
        for link in both(one.node, one.port, one.peer, one.peer_port, one.direction == BOTH_WAYS):
            if one.change == ADDED:
                if any(link[:2] == other[:2] or link[2:] == other[2:] for other in plugged):
                    return "a port is used"
                plugged.add(link)
            elif link not in untouched:
                return "no such cable"
            else:
                untouched.remove(link)
                plugged -= {link} if one.change == REMOVED else set()
    if untouched:
        return "a cable is not listed"
    return "" if Counter((link[0], link[2]) for link in plugged) == links(large) else "another network"


def judged(small: Topology, large: Topology, place: Sequence[int]) -> Recabling:
    found = recabling(small, large, place)
    assert not mistake(small, large, found)
    kept = sum(1 + (one.direction == BOTH_WAYS) for one in found.cables if one.change == KEPT)
    assert kept == links_kept(small, large, list(place))
    ends = [side.tolist() for network in (small, large) for side in (network.src, network.dst)]
    ports = max(chain.from_iterable(Counter(side).values() for side in ends), default=0)
    assert all(max(one.port, one.peer_port) < ports for one in found.cables)
    return found


@pytest.mark.parametrize(
    ("small", "large"),
    [("circulant(16, {3, 4})", "circulant(17, {3, 4})"), ("torus(4, 4)", "torus(4, 5)"),
     ("generalized_kautz(3, 20)", "generalized_kautz(3, 23)"), ("debruijn(2, 3)", "generalized_kautz(2, 9)"),
     ("uniring(4, 2)", "biring(6)"), ("biring(5)", "uniring(7, 2)"), ("torus(2, 3)", "torus(2, 4)"),
     ("line(complete(4))", "circulant(13, {2})")],
)  # fmt: skip
def test_a_technician_gets_the_larger_network(small: str, large: str) -> None:
    one, two = topology(small), topology(large)
    judged(one, two, grown(one, two).place)
    judged(one, two, range(one.num_ranks))


@settings(max_examples=examples(60), deadline=None)
@given(strategies.connected(max_ranks=6), strategies.connected(min_ranks=6, max_ranks=8))
def test_any_two_networks(small: Topology, large: Topology) -> None:
    judged(small, large, grown(small, large).place)


def test_a_cable_of_which_one_link_is_kept_is_listed_by_link() -> None:
    found = judged(topology("biring(3)"), topology("uniring(3, 2)"), range(3))
    assert {"->"} == {one.direction for one in found.cables}
    assert [3, 3, 3] == [found.count(change) for change in (KEPT, REMOVED, ADDED)]


def test_equal_networks_need_no_work() -> None:
    found = judged(topology("debruijn(2, 3)"), topology("debruijn(2, 3)"), range(8))
    assert 0 == found.count(REMOVED) == found.count(ADDED)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda way: attrs.evolve(way, cables=way.cables[:-1]), "another network"),
        (lambda way: attrs.evolve(way, cables=way.cables[1:]), "a cable is not listed"),
        (lambda way: attrs.evolve(way, place=(way.place[1], way.place[0], *way.place[2:])), "no such cable"),
        (lambda way: attrs.evolve(way, place=(way.place[1], *way.place[1:])), "no map"),
        (lambda way: changed(way, ADDED, port=1 - way.cables[-1].port), "a port is used"),
        (lambda way: changed(way, REMOVED, change=KEPT), "a port is used"),
        (lambda way: changed(way, ADDED, direction="->"), "another network"),
    ],
)
def test_a_planted_fault_is_found(spoil: Callable[[Recabling], Recabling], said: str) -> None:
    small, large = topology("biring(5)"), topology("biring(6)")
    found = recabling(small, large, range(5))
    assert said == mistake(small, large, spoil(found))


def changed(way: Recabling, kind: str, **new: object) -> Recabling:
    """Return a way whose last cable of a change differs."""
    place = max(i for i, one in enumerate(way.cables) if one.change == kind)
    cables = list(way.cables)
    cables[place] = attrs.evolve(cables[place], **new)  # type: ignore[arg-type]
    return attrs.evolve(way, cables=tuple(cables))


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def applied(small: Topology, places: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, str]]) -> Counter[object]:
    """Return the links by new numbers after the work of the two tables."""
    place = {int(row["node"]): int(row["new_node"]) for row in places if row["node"]}
    found = Counter((place[a], place[b]) for (a, b), count in links(small).items() for _ in range(count))
    for row in rows:
        node, peer = int(row["new_node"]), int(row["new_peer"])
        ends = Counter([(node, peer), (peer, node)][: 1 + int(row["bidirectional"])])
        if row["change"] == REMOVED:
            found.subtract(ends)
        elif row["change"] == ADDED:
            found.update(ends)
        for old, new in (("node", "new_node"), ("peer", "new_peer")):
            assert place.get(int(row[old]) if row[old] else -1) == (int(row[new]) if row[old] else None)
    return +Counter(found)


def test_the_tables_of_the_command_give_the_larger_network(collc: Collc) -> None:
    use = ("find", "-n", "16", "-d", "4", "--expand-to", "18")
    found = json.loads(collc(*use, "--json").out)
    way, row = found["recabling"], next(row for row in found["expansions"] if row["n"] == 18)
    assert (way["n"], way["expression"]) == (18, row["expression"])
    places, cabled = (rows_of(collc(*use, "--table", name, "--csv").out) for name in ("places", "recabling"))
    assert (len(way["places"]), len(way["cables"])) == (len(places), len(cabled))
    small, large = topology(found["best"]), topology(way["expression"])
    assert applied(small, places, cabled) == links(large)
    assert applied(small, places, cabled[:-1]) != links(large)
    for change in (KEPT, REMOVED, ADDED):
        assert way[f"cables_{change}"] == sum(one["change"] == change for one in cabled)


def test_the_text_says_what_to_do(collc: Collc) -> None:
    text = collc("find", "-n", "5", "-d", "2", "--bidirectional", "--expand-to", "6").out
    assert "from biring(5) to biring(6): 4 cables kept, 1 removed, 2 added" in text
    lines = {line[:18].strip(): line[18:].strip() for line in text.splitlines()}
    assert ("none, nodes keep theirs", "5") == (lines["new numbers"], lines["new nodes"])
    assert ("0:1 <-> 4:0", "0:1 <-> new 5:0, 4:0 <-> new 5:1") == (lines["remove NODE:PORT"], lines["add NODE:PORT"])
    long = collc("find", "-n", "32", "-d", "4", "--expand-to", "33").out
    assert "more (--table recabling)" in long and "more (--table places)" in long
