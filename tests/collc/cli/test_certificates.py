"""Certificates in the JSON of ``collc cost``: a reader checks them from the JSON and the links of the network alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commands import Ran
from named_nodes import nodes_of

import collc as api
from collc.ir.topology import Topology

CASES = {
    "allgather": ("dgx_a100(4)", "using forest", "links into box 0: 24 shards over 200 GB/s"),
    "reduce-scatter": ("dgx_h100(2)", "using forest", None),
    "allreduce": ("degraded(dgx_h100(4), {gpu[3, 1]}, 0.5)", "using forest", None),
    "alltoall": ("dgx_a100(2)", "using flow", "links out of box 0: 64 shards over 200 GB/s"),
    "broadcast { root: 0 }": ("leaf_spine(3, 4, 2)", "using forest", None),
    "gather { root: 3 }": ("mi250(2)", "using flow", None),
    "allgatherv { weights: {5, 0, 1, 2} }": ("mesh(2, 2)", "using forest", None),
    "allreduce among {0, 1, 8, 9}": ("dgx_a100(2)", "using forest", None),
}


def certified(run: Callable[..., Ran], folder: Path, network: str, collective: str, schedule: str) -> dict[str, Any]:
    kind, _, options = collective.partition(" ")
    text = f"topology t = {network}; collective c = {kind} on t {options}; schedule c {schedule};"
    (folder / "a.coll").write_text(text)
    ran = run("cost", str(folder / "a.coll"), "--json")
    assert ran.status == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def proved(net: Topology, said: dict[str, Any]) -> Fraction:
    """Return the time per byte that the JSON proves; an AssertionError where it states what is not so."""
    proof = said["certificate"]
    assert proof["text"] == said["bottleneck_cut"]
    assert Fraction(proof["carries"]) / Fraction(proof["bandwidth"]) == Fraction(said["time_per_byte_bound"])
    if proof["kind"] == "cut":
        parts, named = [proof["nodes"]], [proof["named"]]
    else:
        alone = [[rank] for rank in range(net.num_ranks)]
        parts = alone if proof["parts"] == "every rank" else proof["parts"]
        named = (
            [[net.names[rank]] for rank in range(net.num_ranks)] if proof["named"] == "every rank" else proof["named"]
        )
        assert Fraction(proof["carries"]) == 2 * (len(parts) - 1)
    assert [nodes_of(net, each) for each in named] == [set(part) for part in parts]
    here = {"out of": 0, "into": 1}[proof["direction"]]
    width = Fraction(0)
    for part in map(set, parts):
        for link, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
            width += net.bandwidth(link) * (ends[here] in part and ends[1 - here] not in part)
    assert width == Fraction(proof["bandwidth"])
    return Fraction(proof["carries"]) / width


def said_amounts(text: str) -> Fraction:
    """Return the bandwidth of a text: ``.. over 6,375 GB/s``."""
    number, unit = re.search(r"over ([\d,./]+) (GB/s|link units?)", text).groups()  # type: ignore[union-attr]
    return Fraction(number.replace(",", "")) * (10**9 if unit == "GB/s" else 1)


@pytest.mark.parametrize("collective", list(CASES))
def test_a_reader_checks_the_certificate(collective: str, collc: Callable[..., Ran], tmp_path: Path) -> None:
    network, schedule, text = CASES[collective]
    said, net = certified(collc, tmp_path, network, collective, schedule), api.topology(network)
    assert proved(net, said) == Fraction(said["time_per_byte_bound"])
    assert text is None or said["bottleneck_cut"] == text
    assert said_amounts(said["bottleneck_cut"]) == Fraction(said["certificate"]["bandwidth"])
    assert len(said["bottleneck_cut"]) <= 110


# ---- families of cuts

#: networks with a family of cuts as the proof of an allreduce
FAMILIES = {
    "one switch adds": "switch s : reduces; switch f;",
    "one switch adds and copies": "switch s : multicast, reduces; switch f;",
}


def network_of(name: str) -> str:
    return f"rank a[4]; {FAMILIES[name]} for i in 0..4 {{ link a[i] <-> s : 1 GB/s; link a[i] <-> f : 1 GB/s; }}"


def family(run: Callable[..., Ran], folder: Path, name: str) -> tuple[Topology, dict[str, Any]]:
    text = f"topology t {{ {network_of(name)} }} collective c = allreduce on t;"
    (folder / "a.coll").write_text(f"{text} schedule c using forest {{ unbalanced: true }};")
    ran = run("cost", str(folder / "a.coll"), "--json")
    assert ran.status == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    schedule = api.compile_source((folder / "a.coll").read_text()).schedule
    assert schedule is not None
    return schedule.topology, found


def images(maps: list[list[int]], start: Any, move: Callable[[list[int], Any], Any]) -> set[Any]:
    """Return all images of something under a group that ``maps`` generate."""
    found, fresh = {start}, [start]
    while fresh:
        fresh = [one for one in {move(g, old) for g in maps for old in fresh} if one not in found]
        found.update(fresh)
    return found


def family_proves(net: Topology, proof: dict[str, Any]) -> Fraction:
    """Return the time per byte that a family of cuts proves, by its JSON and the links."""
    width: dict[tuple[int, int], Fraction] = {}
    for link, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
        width[ends] = width.get(ends, Fraction(0)) + net.bandwidth(link)
    ranks, copies, adds = range(net.num_ranks), set(net.multicast), set(net.reduces)
    assert set(proof.get("multicast", ())) <= copies and set(proof.get("reduces", ())) <= adds
    for g in proof["automorphisms"]:
        assert sorted(g) == list(range(net.num_nodes)) and {g[v] for v in ranks} == set(ranks)
        assert all(width.get((g[a], g[b])) == held for (a, b), held in width.items())
        assert {g[v] for v in copies} == copies and {g[v] for v in adds} == adds
    if proof["mirrored"]:
        assert all(width.get((b, a)) == held for (a, b), held in width.items()) and copies == adds
    count = dict.fromkeys(ranks, Fraction(0))
    used = {(arc, inward): Fraction(0) for arc in width for inward in (False, True)}
    for cut in proof["cuts"]:
        near, inward, factor = set(cut["nodes"]), cut["trees"] == "inward", Fraction(cut["multiplier"])
        assert nodes_of(net, cut["named"]) == near and factor >= 0
        near = near if cut["roots"] == "inside" else set(range(net.num_nodes)) - near
        assert any(rank not in near for rank in ranks)
        for rank in near & set(ranks):
            count[rank] += factor
        for a, b in width:
            if (b if inward else a) in near and (a if inward else b) not in near:
                used[(a, b), inward] += factor
    for row in proof["balances"]:
        switch, inward, factor = row["switch"], row["trees"] == "inward", Fraction(row["multiplier"])
        assert switch >= net.num_ranks
        assert factor <= 0 or switch not in copies or inward  # more leaves than enters
        assert factor >= 0 or switch not in adds or not inward
        for a, b in width:
            used[(a, b), inward] += factor * ((b == switch) - (a == switch))

    def mean(values: dict[Any, Fraction], those: set[Any]) -> Fraction:
        return sum((values[one] for one in those), Fraction(0)) / len(those)

    maps = proof["automorphisms"]
    least = min(mean(count, images(maps, rank, lambda g, v: g[v])) for rank in ranks)

    def moved(g: list[int], one: Any) -> Any:
        return ((g[one[0][0]], g[one[0][1]]), one[1])

    def price(arc: tuple[int, int]) -> Fraction:
        found = []
        for inward in (False, True):
            those = images(maps, (arc, inward), moved)
            those |= {((b, a), not way) for (a, b), way in those if proof["mirrored"]}
            found.append(mean(used, those))
        return max(*found, Fraction(0))

    held = sum((price(arc) * each for arc, each in width.items()), Fraction(0))
    assert least >= Fraction(proof["carries"]) and held <= Fraction(proof["bandwidth"])
    return Fraction(proof["carries"]) / Fraction(proof["bandwidth"])


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_reader_checks_a_family_of_cuts(name: str, collc: Callable[..., Ran], tmp_path: Path) -> None:
    net, said = family(collc, tmp_path, name)
    proof = said["certificate"]
    assert proof["kind"] == "cuts" and proof["text"] == said["bottleneck_cut"]
    assert family_proves(net, proof) == Fraction(said["time_per_byte_bound"])


def test_planted_faults_in_a_family_are_found(collc: Callable[..., Ran], tmp_path: Path) -> None:
    for name in FAMILIES:
        net, said = family(collc, tmp_path, name)
        proof = said["certificate"]
        first = {**proof["cuts"][0]}
        faults = [
            {"carries": str(Fraction(proof["carries"]) + 1)}, {"bandwidth": str(Fraction(proof["bandwidth"]) - 1)},
            {"cuts": proof["cuts"][1:]}, {"cuts": [{**first, "nodes": first["nodes"][1:]}, *proof["cuts"][1:]]},
            {"cuts": [{**first, "multiplier": "-1"}, *proof["cuts"][1:]]}, {"balances": []},
            {"automorphisms": [[1, 0, *range(3, net.num_nodes), 2]]}, {"multicast": [0]},
        ]  # fmt: skip
        for fault in faults:
            with pytest.raises((AssertionError, KeyError)):
                assert family_proves(net, {**proof, **fault}) == Fraction(said["time_per_byte_bound"])


ANY_PROOF = ({"carries": "7/3"}, {"bandwidth": "1"}, {"direction": "the other"}, {"named": "one less"})


@pytest.mark.parametrize(("collective", "fault"), [
    *(("allgather", fault) for fault in (*ANY_PROOF, {"nodes": "one less"})),
    *(("allreduce", fault) for fault in (*ANY_PROOF, {"parts": "one less"})),
])  # fmt: skip
def test_planted_faults_are_found(
    fault: dict[str, str], collective: str, collc: Callable[..., Ran], tmp_path: Path
) -> None:
    network, schedule, _ = CASES[collective]
    said, net = certified(collc, tmp_path, network, collective, schedule), api.topology(network)
    ((key, value),) = fault.items()
    proof = said["certificate"]
    if value == "one less":
        value = proof[key][1:]
    elif value == "the other":
        value = "into" if proof[key] == "out of" else "out of"
        proof["bandwidth"] = str(Fraction(proof["bandwidth"]) + 1)
    proof[key] = value
    with pytest.raises((AssertionError, KeyError)):
        proved(net, said)


def test_lines_are_short(collc: Callable[..., Ran], tmp_path: Path) -> None:
    """No line of the table is longer than 120 characters, however many nodes the certificate has."""
    for collective, (network, schedule, _) in CASES.items():
        certified(collc, tmp_path, network, collective, schedule)
        ran = collc("cost", str(tmp_path / "a.coll"))
        assert [line for line in ran.out.splitlines() if len(line) > 120] == []
