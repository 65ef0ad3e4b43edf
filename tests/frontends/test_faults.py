"""Faults: the network that they leave is the one that the operators build, and mistakes say what to write."""

from __future__ import annotations

import numpy as np
import pytest

from collc.frontends.coll import topology
from collc.frontends.coll.faults import Fault, broken
from collc.ir.diagnostic import CollcError
from collc.ir.topology import Topology

SAME = [
    ("dgx_h100(2)", ["without gpu[0, 2] -> ib"], "without(dgx_h100(2), {gpu[0, 2] -> ib})"),
    ("dgx_h100(2)", ["without link gpu[0, 2] <-> ib"], "without(dgx_h100(2), {gpu[0, 2] <-> ib})"),
    ("dgx_h100(2)", ["without gpu[1, 5]"], "without(dgx_h100(2), {gpu[1, 5]})"),
    ("dgx_h100(2)", ["without gpu[1, 5]", "without 3"], "without(dgx_h100(2), {gpu[1, 5], 3})"),
    ("dgx_h100(2)", ["without gpu[0, 0..3] <-> ib"],
     "without(dgx_h100(2), {gpu[0, 0] <-> ib, gpu[0, 1] <-> ib, gpu[0, 2] <-> ib})"),
    ("dgx_h100(2)", ["slow gpu[1, i] <-> ib for i in 0..2: 1/2"],
     "degraded(dgx_h100(2), {gpu[1, 0] <-> ib, gpu[1, 1] <-> ib}, 1/2)"),
    ("dgx_h100(2)", ["slow gpu[0, 1] <-> ib: 12.5 GB/s"], "degraded(dgx_h100(2), {gpu[0, 1] <-> ib}, 1/4)"),
    ("dgx_h100(2)", ["slow gpu[0, 1]: 25 %"], "degraded(dgx_h100(2), {gpu[0, 1]}, 1/4)"),
    ("dgx_h100(2)", ["slow gpu[0, 1] <-> ib: 1/2", "without gpu[1, 7]"],
     "without(degraded(dgx_h100(2), {gpu[0, 1] <-> ib}, 1/2), {gpu[1, 7]})"),
    ("torus(4, 4)", ["without 0 <-> 1", "without 5..7"], "without(torus(4, 4), {0 <-> 1, 5, 6})"),
    ("torus(2, 3)", ["without 0 <-> 3, 0 <-> 3"], "without(torus(2, 3), {0 <-> 3, 0 <-> 3})"),
    ("hypercube(3)", ["slow 0 -> 1: 1/3"], "degraded(hypercube(3), {0 -> 1}, 1/3)"),
]  # fmt: skip

WRONG = [
    ("without gpu[0, 9]", "C0135", "found `gpu[0, 9]`, needed one of `gpu[0, 0]` to `gpu[1, 7]`"),
    ("without gpo[0, 1]", "C0120", "unknown family of nodes `gpo`"),
    ("without gpu[0, 1] <-> gpu[0, 2]", "C0311", "`dgx_h100(2)` has no link from `gpu[0, 1]` to `gpu[0, 2]`"),
    ("without 16", "C0311", "found rank 16, needed ranks from 0 to 15"),
    ("without gpu[0, 1] <-> {", "C0103", "missing `}`: found the end of the text"),
    ("without ", "C0340", "`without ` names no node and no link"),
    ("without 0..16", "C0343", "found all 16 ranks gone, needed at least one that stays"),
    ("loose 3", "C0340", "found `loose`, needed `without` or `slow`"),
    ("slow gpu[0, 1] <-> ib", "C0340", "found no bandwidth in `gpu[0, 1] <-> ib`"),
    ("slow gpu[0, 1] <-> ib: 3 ms", "C0340", "found a time, needed a bandwidth or a part of it"),
    ("slow gpu[0, 1] <-> ib: 400 GB/s", "C0342",
     "`slow gpu[0, 1] <-> ib: 400 GB/s` makes the link `gpu[0, 1] -> ib` no slower: it has 50 GB/s"),
    ("slow gpu[0, 1] <-> ib: 1", "C0342",
     "`slow gpu[0, 1] <-> ib: 1` makes the link `gpu[0, 1] -> ib` no slower: it has 50 GB/s"),
    ("slow gpu[0, 1] <-> ib: 0", "C0342", "found a bandwidth of 0 in `slow gpu[0, 1] <-> ib: 0`"),
]  # fmt: skip


def bandwidths(net: Topology) -> list[tuple[int, int, object]]:
    return [(int(net.src[link]), int(net.dst[link]), net.bandwidth(link)) for link in range(net.num_links)]


def mistake(net: str, *faults: str) -> CollcError:
    with pytest.raises(CollcError) as found:
        broken(topology(net), [Fault.read(fault) for fault in faults])
    return found.value


@pytest.mark.parametrize(("net", "faults", "expression"), SAME, ids=lambda one: str(one)[:40])
def test_the_network_is_that_of_the_operators(net: str, faults: list[str], expression: str) -> None:
    whole, expected = topology(net), topology(expression)
    found = broken(whole, [Fault.read(fault) for fault in faults])
    assert bandwidths(found.topology) == bandwidths(expected)
    assert found.topology.names == expected.names and found.topology.num_ranks == expected.num_ranks
    assert [one for one in found.rank.tolist() if one >= 0] == list(range(expected.num_ranks))


@pytest.mark.parametrize(("net", "faults", "expression"), SAME, ids=lambda one: str(one)[:40])
def test_numbers_lead_from_the_links_before_to_those_after(net: str, faults: list[str], expression: str) -> None:
    whole = topology(net)
    found = broken(whole, [Fault.read(fault) for fault in faults])
    left = found.link >= 0
    assert (found.rank[whole.src[left & (whole.src < whole.num_ranks)]] >= 0).all()
    assert found.link[left].tolist() == list(range(found.topology.num_links))
    same = [whole.bandwidth(link) == found.topology.bandwidth(now) for link, now in enumerate(found.link) if now >= 0]
    assert (np.array(same) == ~found.touched[left]).all()


@pytest.mark.parametrize(("fault", "code", "message"), WRONG, ids=lambda one: str(one)[:40])
def test_mistakes(fault: str, code: str, message: str) -> None:
    found = mistake("dgx_h100(2)", fault)
    assert [(one.code, one.message) for one in found.diagnostics] == [(code, message)]


def test_a_mistake_has_its_place_in_the_fault() -> None:
    span = mistake("dgx_h100(2)", "without gpu[0, 1] <-> gpu[9, 9]").diagnostics[0].span
    assert span is not None
    assert (span.source.path, span.source.text) == ("<--without>", "gpu[0, 1] <-> gpu[9, 9]")
    assert span.source.text[span.column - 1 : span.end_column - 1] == "gpu[9, 9]"


@pytest.mark.parametrize("faults", [
    ("without gpu[1, 5]", "slow gpu[1, 5] <-> ib: 1/2"), ("slow gpu[0, 1] <-> ib: 1/2", "without gpu[0, 1] -> ib"),
    ("without 3", "without gpu[0, 3]"), ("without 3", "without 3"),
])  # fmt: skip
def test_two_faults_of_one_link(faults: tuple[str, ...]) -> None:
    assert mistake("dgx_h100(2)", *faults).diagnostics[0].code in ("C0341",)


def test_ranks_that_share_a_link_may_both_be_gone() -> None:
    found = broken(topology("torus(4, 4)"), [Fault("without", "0"), Fault("without", "1")])
    assert found.topology.num_ranks == 14


def test_ranks_that_are_cut_off() -> None:
    found = mistake("biring(4)", "without 0 <-> 1", "without 2 <-> 3").diagnostics[0]
    assert found.code == "C0301" and found.hint is not None and "`--without` names ranks as well" in found.hint


def test_bytes_per_second_need_a_network_that_has_them() -> None:
    assert mistake("torus(3, 3)", "slow 0 <-> 1: 3 GB/s").diagnostics[0].code == "C0342"
