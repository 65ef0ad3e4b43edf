"""`auto` is never slower than what NCCL does, and `cost --baselines` says by how much it is faster."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from clusters import cluster, ragged_clusters
from commands import Ran
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import every, examples

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.graph.boxes import boxes_of
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.schedulers import SCHEDULERS
from collc.passes.synthesis.torus.two_level import TwoLevel
from collc.selection import Auto, Selector, selector
from collc.selection.baselines import baseline_algorithms, measure_baselines
from collc.selection.measure import Model

Collc = Callable[..., Ran]

NETS = (
    "dgx_a100(2)", "dgx_a100(3, 8)", "dgx_h100(4)", "mi250(2)", "leaf_spine(3, 4, 2)", "dgx_a100(1)", "torus(3, 3)",
    "clustered(hypercube(3), 2, 1/2)", "clustered(biring(3), 4, 1/4, 2, 2)", "hammingmesh(2, 2, 2, 2)",
    "clustered(dgx1_v100(), 2, 25 GB/s)", "subset(dgx_a100(2), {0, 1, 2, 3, 8, 9})",
)  # fmt: skip
KINDS = ("allreduce", "allgather", "reduce-scatter")
SIZES = (1 << 10, 1 << 20, 1 << 26)
CASES = every(4, [(net, kind, size) for net in NETS for kind in KINDS for size in SIZES])


def problem(net: str, kind: str) -> Problem:
    found = topology(net)
    return Problem(found, Collective(kind, found.num_ranks))


@pytest.mark.slow
@pytest.mark.parametrize(("net", "kind", "size"), CASES)
def test_no_baseline_is_faster_than_auto(net: str, kind: str, size: int) -> None:
    auto = Auto(size=size)
    chosen = Selector(problem(net, kind), auto).choose({}).at(size)
    found = measure_baselines(problem(net, kind), [size], Model.of(auto))
    assert found.measured
    assert all(one.seconds[0] >= chosen for one in found.measured)


@settings(max_examples=examples(5))
@given(ragged_clusters(), st.sampled_from(KINDS), st.integers(0, 26))
def test_any_cluster_is_scheduled_or_refused(net: Topology, kind: str, power: int) -> None:
    """Boxes of any links: schedules are right, and `auto` is as fast as the fastest."""
    asked, auto = Problem(net, Collective(kind, net.num_ranks)), Auto(size=1 << power)
    for _, algorithm in baseline_algorithms(asked):
        with contextlib.suppress(CollcError):
            assert verify(algorithm.scheduler_pass().run(asked)).ok
    found = measure_baselines(asked, [1 << power], Model.of(auto))
    if found.measured:
        chosen = Selector(asked, auto).choose({}).at(1 << power)
        assert all(one.seconds[0] >= chosen for one in found.measured)


def test_a_box_that_a_rank_cannot_leave_inside() -> None:
    """Rank 0 has no link into its box: only those by the fabric."""
    whole = cluster([2, 2])
    kept = (whole.src != 0) | (whole.dst != 4)
    net = Topology(
        "one-way", 4, whole.src[kept], whole.dst[kept], 3, link_class=whole.link_class[kept], classes=whole.classes
    )
    assert boxes_of(net) is not None
    for across in ("ring", "pat"):
        assert verify(TwoLevel(across=across).run(Problem(net, Collective("allreduce", 4)))).ok


def test_the_check_can_fail() -> None:
    """Without its candidates for boxes, and trees, `auto` is slower than the two-level algorithm."""
    auto = Auto(size=1 << 10, without="two-level, forest")
    found = measure_baselines(problem("dgx_a100(2)", "allreduce"), [1 << 10], Model.of(auto))
    assert found.best(0) is not None and found.best(0).name == "two-level ring"  # type: ignore[union-attr]
    assert found.best(0).seconds[0] < Selector(problem("dgx_a100(2)", "allreduce"), auto).choose({}).at(1 << 10)  # type: ignore[union-attr]


def test_every_baseline_is_a_candidate() -> None:
    for net in NETS:
        for kind in KINDS:
            for _, algorithm in baseline_algorithms(problem(net, kind)):
                how = SCHEDULERS[algorithm.scheduler].candidate
                assert how is not None and algorithm.options in (*how.variants, *how.boxes)


def test_a_tie_leaves_the_choice_as_it_was() -> None:
    """Candidates for boxes come after all others, and of equally fast ones the first wins."""
    found = Selector(problem("dgx_a100(2)", "allreduce"), Auto())
    last = [one.algorithm.options for one in found.measured]
    first = min(place for place, options in enumerate(last) if ("rings", "nics") in options)
    assert all(one.algorithm.scheduler in ("ring", "two-level", "box-trees") for one in found.measured[first:])


def test_networks_without_boxes_are_compared_as_before() -> None:
    found = Selector(problem("torus(3, 3)", "allreduce"), Auto())
    names = {one.algorithm.scheduler for one in found.measured} | {one.name for one in found.skipped}
    assert not names & {"two-level", "box-trees"}


def test_candidates_for_boxes_say_that_they_need_them() -> None:
    with pytest.raises(CollcError, match=r"C0587"):
        Selector(problem("torus(3, 3)", "allreduce"), Auto(candidates="two-level"))
    found = Selector(problem("torus(3, 3)", "allreduce"), Auto(candidates="two-level, bfb"))
    assert [one.name for one in found.skipped] == ["two-level"]


@pytest.mark.parametrize(("net", "boxes", "nics", "speed"), [("dgx_a100(2)", 2, 8, 25), ("dgx_h100(4, 8)", 4, 8, 50)])
def test_the_ring_at_large_sizes(net: str, boxes: int, nics: int, speed: int) -> None:
    """2 (N - 1) / N M / (g b) and 2 (N - 1) steps of 10 us."""
    size, ranks = 1 << 34, boxes * 8
    found = measure_baselines(problem(net, "allreduce"), [size], Model.of(Auto()))
    ring = next(one for one in found.measured if one.name == "NCCL ring")
    steps = 2 * (ranks - 1)
    assert ring.seconds[0] == Fraction(steps, ranks) * size / (nics * speed * 10**9) + steps * Fraction(1, 10**5)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("pod.coll").write_text("topology t = dgx_a100(2);\ncollective c = allreduce on t { size: 64 MiB };\n")
    return "pod.coll"


def test_cost_says_what_it_is_compared_with(collc: Collc, pod: str) -> None:
    ran = collc("cost", pod, "--baselines")
    assert ran.status == 0
    assert "2 boxes of 8 ranks with 8 NICs each" in ran.out
    head = next(line for line in ran.out.splitlines() if "NCCL ring" in line)
    assert [name in head for name in ("NCCL tree", "PAT", "two-level ring", "baseline / collc")] == [True] * 4
    assert "NCCL ring" not in collc("cost", pod).out


def test_the_same_as_json(collc: Collc, pod: str) -> None:
    found = json.loads(collc("cost", pod, "--baselines", "--json", "--size", "1KiB,64MiB").out)["baselines"]
    assert [one["size_bytes"] for one in found["points"]] == [1 << 10, 1 << 26]
    for point in found["points"]:
        best = min(point["baselines"], key=lambda one: one["time_us"])
        assert (point["best"], point["ratio"]) == (best["name"], best["ratio"])
        assert point["ratio"] == pytest.approx(best["time_us"] / point["time_us"])
        assert point["ratio"] >= 1
    algorithms = [point["algorithm"] for point in found["points"]]
    assert all(name.startswith("forest-") for name in algorithms) and len(set(algorithms)) == 2


def test_a_schedule_that_the_file_names_is_the_same_for_all_sizes(collc: Collc, pod: str) -> None:
    Path(pod).write_text(Path(pod).read_text() + "schedule c using ring { rings: nics };\n")
    found = json.loads(collc("cost", pod, "--baselines", "--json", "--size", "1KiB,64MiB").out)["baselines"]
    assert {point["algorithm"] for point in found["points"]} == {"ring"}
    ring = [next(one for one in point["baselines"] if one["name"] == "NCCL ring") for point in found["points"]]
    assert [one["ratio"] for one in ring] == [1, 1] and found["points"][0]["ratio"] < 1


def test_a_collective_without_baselines(collc: Collc, pod: str) -> None:
    Path(pod).write_text("topology t = torus(3, 3);\ncollective c = alltoall on t;\n")
    found = json.loads(collc("cost", pod, "--baselines", "--json").out)["baselines"]
    assert found["boxes"] is None and found["points"][0]["baselines"] == [] and found["points"][0]["best"] is None
    assert collc("cost", pod, "--baselines").status == 0


def test_baselines_that_do_not_apply_are_listed(collc: Collc, pod: str) -> None:
    Path(pod).write_text("topology t = subset(dgx_a100(2), {0, 1, 2, 3, 8, 9});\ncollective c = allreduce on t;\n")
    assert "no two-level ring: two-level needs boxes of one size" in collc("cost", pod, "--baselines").out


def test_trees_that_fit_only_in_fewer_pieces_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two schedulers grow trees; a smaller number of pieces is added to the one that was chosen."""
    found = Selector(problem("dgx_a100(2)", "allreduce"), Auto(candidates="forest, box-trees", size=1 << 26))
    trees = next(one.algorithm for one in found.measured if one.algorithm.scheduler == "box-trees")
    found.add_pieces(trees, 1)
    added = found.measured[-1].algorithm
    assert (added.scheduler, found.pieces[added]) == ("box-trees", 1)
    assert isinstance(trees.scheduler_pass(), selector.GrowsForest)
