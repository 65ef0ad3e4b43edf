"""Which of NCCL's algorithms at which size: exact borders, NCCL's own conditions, measured lines."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import attrs
import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.tuning import LARGEST, Tuning, TuningRequest
from collc.selection.baselines import measure_baselines
from collc.selection.fitted import COLUMNS, parse_fitted
from collc.selection.measure import Model
from collc.selection.native import native_times, tuning_of
from collc.selection.options import Auto

NETS = (
    ("dgx_a100(2)", "allreduce", TuningRequest()), ("dgx_a100(4, 8)", "allreduce", TuningRequest()),
    ("torus(4, 4)", "allreduce", TuningRequest(nodes=16)), ("torus(3, 3)", "allgather", TuningRequest(nodes=9)),
    ("leaf_spine(3, 4, 2)", "allreduce", TuningRequest()), ("dgx_h100(1)", "allreduce", TuningRequest(1, None, True)),
    ("dgx_h100(1)", "allgather", TuningRequest(1, None, True)),
    ("complete(8)", "reduce-scatter", TuningRequest(nodes=8)),
    ("mi250(2)", "allreduce", TuningRequest()),
)  # fmt: skip


def problem(net: str, kind: str = "allreduce") -> Problem:
    found = topology(net)
    return Problem(found, Collective(kind, found.num_ranks))


def tuned(net: str, kind: str, request: TuningRequest) -> Tuning:
    return tuning_of(problem(net, kind), "c", request)


def refusal(net: str, kind: str, request: TuningRequest) -> str:
    with pytest.raises(CollcError) as refused:
        tuned(net, kind, request)
    return f"{refused.value.diagnostics[0].code} {refused.value.diagnostics[0].message}"


@pytest.mark.parametrize(("net", "kind", "request_"), every(2, NETS))
def test_the_choice_is_the_least_time_on_both_sides_of_every_border(
    net: str, kind: str, request_: TuningRequest
) -> None:
    """The borders partition all sizes, and the algorithm of each range is the fastest at its ends and inside."""
    found = tuned(net, kind, request_)
    assert (found.ranges[0].low, found.ranges[-1].high) == (0, LARGEST)
    assert all(a.high + 1 == b.low for a, b in zip(found.ranges, found.ranges[1:], strict=False))
    assert all(a.algorithm != b.algorithm for a, b in zip(found.ranges, found.ranges[1:], strict=False))
    nodes = found.nodes
    timed = list(native_times(problem(net, kind), nodes, Model.of(Auto()), request_.multicast))
    near = [border + k for border in found.borders for k in (-1, 0, 1)]
    for size in sorted({0, 1, LARGEST, *near, *(2**k for k in range(0, 64, 3))}):
        best = min(times.at(size) for _, times in timed)
        assert found.at(size).algorithm in {name for name, times in timed if times.at(size) == best}, size


@pytest.mark.parametrize("net", ["dgx_a100(2)", "leaf_spine(3, 4, 2)"])
def test_the_times_are_those_of_the_baselines(net: str) -> None:
    """A baseline chooses its pieces freely; in powers of two it is hardly slower."""
    sizes = (1 << 10, 1 << 20, 1 << 28)
    model = Model.of(Auto())
    baselines = {one.name: one.seconds for one in measure_baselines(problem(net), sizes, model).measured}
    timed = list(native_times(problem(net), 2 if net.startswith("dgx") else 3, model, False))
    for place, size in enumerate(sizes):
        tree = min(times.at(size) for name, times in timed if name == "tree")
        ring = next(times.at(size) for name, times in timed if name == "ring")
        assert ring == baselines["NCCL ring"][place]
        assert baselines["NCCL tree"][place] <= tree <= baselines["NCCL tree"][place] * Fraction(11, 10)


def test_nvls_takes_two_steps_and_little_more_than_the_vector() -> None:
    """8 ranks at 450 GB/s: (1 + 1/8) M over the link, and two latencies of 10 us."""
    timed = dict(native_times(problem("dgx_h100(1)"), 1, Model.of(Auto()), True))
    assert timed["nvls"].at(0) == Fraction(20, 10**6)
    assert timed["nvls"].at(8 * 10**9) - timed["nvls"].at(0) == Fraction(9, 450)
    halves = dict(native_times(problem("dgx_h100(1)", "allgather"), 1, Model.of(Auto()), True))
    assert halves["nvls"].at(45 * 10**9) == Fraction(10, 10**6) + Fraction(1, 10)
    assert tuned("dgx_h100(1)", "allreduce", TuningRequest(1, None, True)).ranges[0].algorithm == "nvls"


@pytest.mark.parametrize(
    ("net", "kind", "request_", "why"),
    [
        ("torus(4, 4)", "allreduce", TuningRequest(), "C0771 the network shows no boxes"),
        ("dgx_a100(2)", "allreduce", TuningRequest(nodes=3), "C0771 `nodes` is 3, the network has 2 machines"),
        ("torus(4, 4)", "allreduce", TuningRequest(nodes=3), "C0771 `nodes` is 3, the network has 1 or 16 machines"),
        ("dgx_a100(2)", "allgather", TuningRequest(), "C0770 for allgather of 16 ranks on 2 machines the"),
        ("dgx_a100(1)", "allreduce", TuningRequest(nodes=1), "C0770 for allreduce of 8 ranks on 1 machine"),
        ("dgx_a100(2)", "allreduce", TuningRequest(multicast=True), "C0772 NVLS needs one switch"),
        ("mi300x()", "allreduce", TuningRequest(nodes=1, multicast=True), "C0772 NVLS needs one switch"),
        ("kautz(2, 2)", "allreduce", TuningRequest(nodes=12), "C0775 NCCL has the algorithm ring on this network"),
    ],
)  # fmt: skip
def test_where_nccl_has_no_choice(net: str, kind: str, request_: TuningRequest, why: str) -> None:
    assert refusal(net, kind, request_).startswith(why)


# ---- measured times

HEAD = ",".join(COLUMNS)
ROWS = (
    "allreduce,2,16,ring,simple,1/10000,1/100000000000,8,1024,9,0.5",
    "allreduce,2,16,tree,ll128,1/50000,1/50000000000,8,2048,9,0.25",
    "allgather,2,16,ring,simple,1/10000,1/100000000000,8,1024,9,0",
)


def times(tmp_path: Path, *rows: str) -> str:
    path = tmp_path / "times.csv"
    path.write_text("\n".join([HEAD, *(rows or ROWS), ""]))
    return str(path)


def test_measured_lines_cross_at_the_exact_size(tmp_path: Path) -> None:
    """1/10000 + s / 10^11 = 1/50000 + s / (5 10^10) at s = 8,000,000; equal times are the first one's."""
    found = tuned("dgx_a100(2)", "allreduce", TuningRequest(measured=times(tmp_path)))
    assert [(one.low, one.algorithm, one.protocol) for one in found.ranges] == [
        (0, "tree", "ll128"), (8_000_000, "ring", "simple"),
    ]  # fmt: skip
    assert found.notes[1] == "all were measured from 8 to 1024 bytes; the lines go on beyond"


def test_one_measured_algorithm_is_a_table_too(tmp_path: Path) -> None:
    found = tuned("dgx_a100(2)", "allgather", TuningRequest(measured=times(tmp_path)))
    assert [one.algorithm for one in found.ranges] == ["ring"]


def test_times_of_other_communicators_are_refused(tmp_path: Path) -> None:
    path = times(tmp_path)
    assert refusal("dgx_a100(4)", "allreduce", TuningRequest(measured=path)).startswith("C0773")
    assert refusal("dgx_a100(2)", "reduce-scatter", TuningRequest(measured=path)).startswith("C0773")
    two = times(tmp_path, *ROWS, ROWS[0].replace(",2,", ",4,"))
    assert "several numbers of machines" in refusal("dgx_a100(2)", "allreduce", TuningRequest(measured=two))
    assert tuned("dgx_a100(2)", "allreduce", TuningRequest(4, two)).nodes == 4


@pytest.mark.parametrize(
    "text",
    [
        "", "a,b\n1,2\n", HEAD.replace("alpha_s", "alpha") + "\n" + ROWS[0], f"{HEAD}\nallreduce",
        f"{HEAD}\n{ROWS[0].replace('1/10000', '1/0')}", f"{HEAD}\n{ROWS[0].replace(',16,', ',x,')}",
        f"{HEAD}\n{ROWS[0].replace('1/10000', '-1')}", f"{HEAD}\n{ROWS[0].replace('1/10000', '1' * 5000)}",
        f"{HEAD}\n{ROWS[0].replace(',2,', ',0,')}",
    ],
)  # fmt: skip
def test_wrong_files_of_times_are_refused(text: str) -> None:
    with pytest.raises(CollcError) as refused:
        parse_fitted(text, "times.csv")
    assert refused.value.diagnostics[0].code == "C0076"


def test_what_is_chosen_is_not_changed_by_the_order_of_equal_algorithms(tmp_path: Path) -> None:
    same = times(tmp_path, ROWS[0], ROWS[0].replace("ring", "tree"))
    found = tuned("dgx_a100(2)", "allreduce", TuningRequest(measured=same))
    assert [one.algorithm for one in found.ranges] == ["ring"]
    assert attrs.evolve(found, name="d").ranges == found.ranges
