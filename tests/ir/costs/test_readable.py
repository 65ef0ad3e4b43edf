"""Texts of certificates: boxes, ranges, what crosses and over what bandwidth."""

from __future__ import annotations

from fractions import Fraction

import pytest
from uneven_runs import collective

import collc
from collc.driver.records import read, written
from collc.ir.collective import ROOTED, Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.certificate import Bound
from collc.ir.costs.partitions import Partition, crossing
from collc.ir.costs.readable import exact_text, named_partition, named_tree_cuts
from collc.ir.costs.tree_cuts import SwitchBalance, TreeCuts, WeightedCut
from collc.ir.topology import Topology


@pytest.mark.parametrize(
    ("net", "kind", "text"),
    [
        ("dgx_h100(16)", "allreduce", "box 0 | box 1 | .. | box 15: 30 crossings over 6,400 GB/s"),
        ("dgx_h100(4)", "allreduce", "every rank alone: 62 crossings over 16,000 GB/s"),
        ("without(dgx_h100(16), {gpu[0, 2] <-> ib})", "allreduce",
         "box 0 | box 1 | .. | box 15: 30 crossings over 6,350 GB/s"),
        ("degraded(dgx_h100(4), {gpu[3, 1]}, 0.5)", "allreduce",
         "box 0 | box 1 | box 2 | every rank of box 3 alone: 20 crossings over 4,950 GB/s"),
        ("degraded(dgx_h100(16), {gpu[3, i] for i in 0..8}, 0.5)", "allreduce",
         "all but box 3 | every rank of box 3 alone: 16 crossings over 2,200 GB/s"),
        ("degraded(mi250(4), {gpu[1, 3]}, 0.5)", "allreduce",
         "box 0 | box 2 | box 3 | gpu[1, {0, 1}] | and 8 more parts: 22 crossings over 3,466 GB/s"),
        ("torus(3, 3)", "allreduce", "every rank alone: 16 crossings over 36 link units"),
        ("dgx_a100(16)", "allgather", "links into box 0: 120 shards over 200 GB/s"),
        ("dgx_a100(16)", "reduce-scatter", "links out of box 0: 120 shards over 200 GB/s"),
        ("dgx_a100(16)", "broadcast", "links into box 1: 1 vector over 200 GB/s"),
        ("dgx_a100(16)", "gather", "links into box 0: 120 shards over 200 GB/s"),
        ("dgx_a100(16)", "scatter", "links out of box 0: 120 shards over 200 GB/s"),
        ("dgx_a100(16)", "alltoall", "links out of box 0: 960 shards over 200 GB/s"),
        ("mesh(2, 2)", "scatter", "links out of the root: 3 shards over 2 link units"),
        ("complete(2)", "allreduce", "links out of rank 0: 1 vector over 1 link unit"),
    ],
)  # fmt: skip
def test_texts_that_a_person_can_check(net: str, kind: str, text: str) -> None:
    topology = collc.topology(net)
    found = bound(topology, Collective(kind, topology.num_ranks, 0 if kind in ROOTED else None))
    assert found.name == text


def test_weights_are_counted() -> None:
    found = bound(collc.topology("dgx_a100(2)"), collective("allgather", 16, range(16)))
    assert found.name == "links into box 0: shards of weight 92 over 200 GB/s"


def test_members_are_named_in_the_whole_network() -> None:
    net = collc.topology("dgx_a100(2)")
    assert bound(net, Collective("allgather", 16, members=(0, 8))).name.startswith("links into box ")
    alone = bound(collc.topology("complete(6)"), Collective("allreduce", 6, members=(1, 2, 3)))
    assert ": 1 vector over " in alone.name or " crossings over " in alone.name


def test_parts_into_which_links_lead_have_their_switches() -> None:
    """With the switch, the links of the other ranks lead into the last part; without it only its own link."""
    net = Topology.from_links("one", 4, [(a, b) for rank in range(4) for a, b in ((rank, 4), (4, rank))], 1)
    parts: tuple[tuple[int, ...], ...] = ((0,), (1,), (2, 3, 4))
    found = named_partition(net, Partition(parts, True, crossing(net, parts, True)))
    assert found.text == "ranks 2, 3 | each of ranks 0, 1 alone: 4 crossings over 4 link units into the parts"
    parts = ((0,), (1,), (2,), (3, 4))
    found = named_partition(net, Partition(parts, True, crossing(net, parts, True)))
    assert found.text.startswith("rank 3 with switch 4 | each of ranks 0 to 2 alone: 6 crossings over 6 link units")
    assert found.named == (("0",), ("1",), ("2",), ("3", "4"))


def test_families_of_cuts_name_images_together() -> None:
    """One row for all boxes of a family that automorphisms exchange, at twice the multiplier of all single ranks."""
    net = collc.topology("dgx_a100(2)")
    swap = (*(rank ^ 8 for rank in range(16)), 17, 16, 18)
    turn = (*(rank // 8 * 8 + (rank + 1) % 8 for rank in range(16)), 16, 17, 18)
    rows = (
        WeightedCut(Fraction(4), (*range(8), 16), False, False), WeightedCut(Fraction(16), (0,), False, False),
        WeightedCut(Fraction(16), (0,), True, False),
    )  # fmt: skip
    proof = TreeCuts(rows, (SwitchBalance(Fraction(1), 16, True),), (swap, turn), False, Fraction(2), Fraction(10**9))
    found = named_tree_cuts(net, proof)
    cuts, _, crossings = found.text.partition(": ")
    assert cuts == "2 x into each of boxes 0, 1, 1 x each rank"
    assert crossings == "2 crossings over 1 GB/s, balanced at nv[{0, 1}]"
    assert found.cuts[0].named == ("gpu[0, 0 to 7]", "nv[0]")
    kept = Bound(Fraction(2, 10**9), "tree-schedules", found.text, found)
    said = read(written(kept))
    assert isinstance(said, Bound) and said == kept and said.to_json() == kept.to_json()


def test_numbers_are_exact_where_they_are_short() -> None:
    assert [exact_text(Fraction(x)) for x in ("6375", "12.5", "0.125", "1/3", "1234567.5")] == [
        "6,375", "12.5", "0.125", "1/3", "1,234,567.5",
    ]  # fmt: skip
    assert exact_text(Fraction(10**12, 10**9 + 7)) == "999.999993"
