"""`met` is printed only where no schedule of the named kind is faster, and no time is below a printed bound.

The optima here are found without collc's bounds: every set of nodes and every partition in turn, flows as a linear
program. Networks and schedulers are drawn at random; text and JSON of every schedule are read.
"""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
from cut_nets import all_sets, out_of, sent, switched
from hypothesis import given, settings
from hypothesis import strategies as st
from lp import lp3
from partitioned import slow_partition
from sampling import examples
from strategies import connected
from tree_lp import allreduce_by_trees

import collc
from collc.cli.cost_bounds import bandwidth_rows, bound_object
from collc.ir.collective import ROOTED, Collective
from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import CollcError
from collc.ir.topology import LinkClass, Topology

FORESTS = ("forest", "forest { k: optimal }", "forest { k: auto }", "forest { k: 1 }", "forest { k: 2 }")
SHIFTS = ("auto", "bfb", "ring", "bine", "pat", "trivance")
SCHEDULERS = {
    "allgather": (*FORESTS, *SHIFTS, "general"), "reduce-scatter": (*FORESTS, *SHIFTS),
    "allreduce": (*FORESTS, *FORESTS, *SHIFTS, "recursive-doubling", "rabenseifner", "double-binary-tree"),
    "broadcast": (*FORESTS, "auto", "bfb", "general"), "reduce": (*FORESTS, "auto", "bfb", "double-binary-tree"),
    "gather": ("auto", "flow", "general"), "scatter": ("auto", "flow", "bine"), "alltoall": ("auto", "flow", "general"),
}  # fmt: skip
NO_FASTER, NO_TREES = "met: no schedule is faster", "met: no schedules by trees are faster"


def least_by_sets(net: Topology, what: Collective) -> Fraction:
    """The least time per byte by all sets of nodes: of all collectives but allreduce and all-to-all the optimum."""
    n, root, kind = net.num_ranks, what.root or 0, what.kind
    backwards = net.transpose() if kind in ("reduce-scatter", "reduce", "scatter") else net
    supply = [int(rank == root) * n for rank in range(n)] if kind in ("broadcast", "reduce") else [1] * n
    sinks = [root] if kind in ("gather", "scatter") else range(n)
    found = [Fraction(0)]
    for nodes in all_sets(net.num_nodes, sinks):
        if parts := sent(net, supply, nodes):
            found.append(Fraction(parts, n) / sum(out_of(backwards, nodes), Fraction(0)))
    return max(found)


def least_allreduce(net: Topology) -> Fraction:
    """The least time per byte by all sets of nodes and all partitions: no schedule without coding takes less."""
    n = net.num_ranks
    vector = [Fraction(0)]
    for nodes in all_sets(net.num_nodes, range(n)):
        if sent(net, [1] * n, nodes):
            vector.append(1 / sum(out_of(net, nodes), Fraction(0)))
    return max(*vector, slow_partition(net))


def check(net: Topology, what: Collective, found: Cost) -> None:
    texts = "\n".join(" ".join(row) for row in bandwidth_rows(found))
    said = bound_object(found)
    time = found.time_per_byte
    assert time >= found.bound.value and time >= found.tightest.value
    assert (NO_FASTER in texts) + (NO_TREES in texts) == texts.count("met")
    assert said["bound_met"] == (NO_FASTER in texts or NO_TREES in texts)
    if what.kind == "alltoall":
        value = 1 / (net.num_ranks * lp3(net) * float(_least_bandwidth(net)))
        assert float(found.bound.value) <= value * (1 + 1e-6) and float(time) >= value * (1 - 1e-6)
        assert not said["bound_met"] or float(time) == pytest.approx(value, rel=1e-6)
        return
    least = least_allreduce(net) if what.kind == "allreduce" else least_by_sets(net, what)
    assert found.bound.value <= least <= time
    assert NO_FASTER not in texts or time == least
    if found.bw_optimal and what.kind == "allreduce" and found.forest is not None:
        assert time == least
    if NO_TREES in texts:
        assert said["bound_kind"] == "tree-schedules"
        assert float(time) == pytest.approx(1 / allreduce_by_trees(net), rel=1e-6)
    elif what.kind == "allreduce" and found.tree_bound is not None:
        assert float(found.tree_bound.value) <= 1 / allreduce_by_trees(net) * (1 + 1e-6)


def _least_bandwidth(net: Topology) -> Fraction:
    return min(net.bandwidth(link) for link in range(net.num_links) if net.src[link] != net.dst[link])


@given(st.data(), connected(min_ranks=2, max_ranks=4, extra=5) | switched(max_ranks=4))
@settings(max_examples=examples(60), deadline=None)
def test_met_is_the_optimum_and_no_bound_is_beaten(data: st.DataObject, net: Topology) -> None:
    kind = data.draw(st.sampled_from([*SCHEDULERS, "allreduce"]))
    scheduler = data.draw(st.sampled_from(SCHEDULERS[kind]))
    root = data.draw(st.integers(0, net.num_ranks - 1)) if kind in ROOTED else None
    what = Collective(kind, net.num_ranks, root)
    option = "" if root is None else f" {{ root: {root} }}"
    text = f"collective c = {kind} on t{option}; schedule c using {scheduler};"
    net = attrs.evolve(net, name="t")
    try:
        found = collc.compile_source(text, topologies={"t": net}, verify="off").cost
    except CollcError:
        return  # the scheduler does not take it
    check(net, what, found)


def weak(nic: int, boxes: int) -> Topology:
    """Boxes of 8 GPUs at 450 GB/s inside, NICs of 50 GB/s on one fabric, the first of ``nic`` GB/s."""
    gpus = [(box, gpu) for box in range(boxes) for gpu in range(8)]
    fabric, links = len(gpus) + boxes, list[tuple[int, int, LinkClass]]()
    for rank, (box, _) in enumerate(gpus):
        for switch, width in ((len(gpus) + box, 450), (fabric, 50 if rank else nic)):
            kind = LinkClass(Fraction(width * 10**9))
            links += [(rank, switch, kind), (switch, rank, kind)]
    names = (*(f"gpu[{box}, {gpu}]" for box, gpu in gpus), *(f"nv[{box}]" for box in range(boxes)), "ib")
    return Topology.from_links("t", len(gpus), links, boxes + 1, unit="B/s", node_names=names)


@pytest.mark.parametrize(("nic", "boxes", "scheduler", "bandwidth"), [
    (25, 16, "forest", "6,375"), (5, 16, "forest", "6,355"), (25, 8, "forest { k: optimal }", "3,175"),
    (5, 8, "forest { k: auto }", "3,155"),
])  # fmt: skip
def test_an_allreduce_with_a_weak_nic_is_met_only_at_the_optimum(
    nic: int, boxes: int, scheduler: str, bandwidth: str
) -> None:
    """The optimum is 2 (n - 1) crossings over the boxes' bandwidth; equal shards of all ranks are slower."""
    text = f"collective c = allreduce on t; schedule c using {scheduler};"
    found = collc.compile_source(text, topologies={"t": weak(nic, boxes)}, verify="off").cost
    optimum = Fraction(2 * (boxes - 1), int(bandwidth.replace(",", "")) * 10**9)
    every = " | ".join(f"box {box}" for box in range(boxes)) if boxes < 5 else f"box 0 | box 1 | .. | box {boxes - 1}"
    assert found.bound.name == f"{every}: {2 * (boxes - 1)} crossings over {bandwidth} GB/s"
    assert found.time_per_byte_bound == optimum <= found.time_per_byte
    rows = "\n".join(row[2] for row in bandwidth_rows(found))
    assert (NO_FASTER in rows) == (found.time_per_byte == optimum)
    assert max(map(len, rows.splitlines())) <= 66


def test_a_false_met_and_a_beaten_bound_are_seen() -> None:
    """The check above can fail: a bound that is raised to the time, or over it."""
    text = "collective c = allreduce on t; schedule c using bine;"
    small = attrs.evolve(collc.topology("mesh(3)"), name="t")
    good = collc.compile_source(text, topologies={"t": small}, verify="off").cost
    what = Collective("allreduce", 3)
    check(small, what, good)
    for value in (good.time_per_byte, good.time_per_byte * 2):
        raised = attrs.evolve(good, bound=attrs.evolve(good.bound, value=value))
        with pytest.raises(AssertionError):
            check(small, what, raised)
