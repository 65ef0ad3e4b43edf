"""`using auto`: what it picks is never beaten, its ranges are exact, every range's files are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from commands import Ran
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi_fixtures import STRICT, Built
from sampling import examples

import collc as compiler
from collc.backends.mpi_c.selected import Selected
from collc.backends.mpi_c.toolchain import Mpi
from collc.backends.msccl_xml import verify_text
from collc.backends.simulator import simulate
from collc.driver.compile import compile_collective
from collc.driver.result import CollectiveResult, Settings
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.reading.coll import load_spec
from collc.reading.loading import Loading
from collc.selection import Auto, Selector
from collc.selection import selector as module
from collc.selection.options import CANDIDATES

Collc = Callable[..., Ran]

NETS = (
    "biring(5)", "uniring(4)", "torus(3, 3)", "torus(4, 2)", "hypercube(3)", "kautz(2, 1)", "complete(4)", "mesh(2, 3)",
    "double_binary_tree(8)", "line(complete_bipartite(2), 1)", "leaf_spine(2, 3, 2)", "dgx_a100(1)",
    "torus(4, 4) with { bandwidth: 25 GB/s, latency: 700 ns }", "clustered(biring(3), 2, 1/2)",
)  # fmt: skip
KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast { root: 1 }", "reduce { root: 0 }")
#: sizes of all orders, some of them odd
SIZES = st.builds(lambda power, more: (1 << power) + more, st.integers(0, 28), st.integers(0, 1000))


def request(net: str, kind: str, schedule: str = "", size: int | None = None):
    kind, _, inside = kind.partition(" { ")
    given = [*([inside.rstrip(" }")] if inside else []), *([f"size: {size} B"] if size is not None else [])]
    options = f" {{ {', '.join(given)} }}" if given else ""
    text = f"topology t = {net};\ncollective c = {kind} on t{options};\n{schedule}"
    return load_spec(text, "<test>", Loading()).collectives["c"]


@cache
def made(net: str, kind: str, using: str, size: int | None) -> CollectiveResult:
    """One collective up to its schedule."""
    wanted = request(net, kind, f"schedule c using {using};", size)
    return compile_collective(wanted, (), Settings(until=Schedule))


def seconds(result: CollectiveResult, size: int | Fraction) -> Fraction:
    return simulate(result.schedule).time(size)  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(st.sampled_from(NETS), st.sampled_from(KINDS), SIZES)
def test_nothing_beats_what_is_picked(net, kind, size):
    """Every scheduler is compiled by itself, as a user would ask for it at that size, and simulated."""
    auto = made(net, kind, "auto", size)
    best = seconds(auto, size)
    assert best == auto.choice.intervals[0].best.times.at(size)
    for scheduler in CANDIDATES:
        if scheduler in ("exact", "flow", "general"):  # of `general`, a route may pass ranks
            continue
        try:
            other = made(net, kind, scheduler, size)
        except CollcError:
            continue
        assert best <= seconds(other, size), (scheduler, auto.choice.intervals[0].algorithm.name)


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(st.sampled_from(NETS), st.sampled_from(KINDS), SIZES, SIZES)
def test_ranges_are_exact(net, kind, one, other):
    """At a crossover both take as long; to the byte on both sides of a change the right one is the fastest."""
    low, high = sorted((one, other))
    chosen = Selector(request(net, kind).problem, Auto(sizes=f"{low}..{high}"))
    choice = chosen.choose({})
    assert (choice.intervals[0].low, choice.intervals[-1].high) == (low, high)
    for interval in choice.intervals:
        for size in {interval.low, interval.high}:
            assert interval.best.times.at(size) == min(c.times.at(size) for c in choice.candidates)
    for before, after in pairwise(choice.intervals):
        assert before.high + 1 == after.low and before.best != after.best
        assert before.high <= after.crossing <= after.low
        assert before.best.times.at(after.crossing) == after.best.times.at(after.crossing)
        assert before.best.times.at(after.low) >= after.best.times.at(after.low)


@pytest.mark.slow
@pytest.mark.parametrize("net", ["torus(4, 4)", "kautz(2, 1)", "dgx_a100(2)"])
def test_schedules_of_a_range_take_what_was_predicted(net):
    """The written-out schedules of all ranges, simulated on both sides of every change."""
    result = made(net, "allreduce", "auto { sizes: 1 KiB..64 MiB }", None)
    assert len(result.algorithms) == len(result.choice.intervals) >= 2
    ends = {size for one in result.choice.intervals for size in (one.low, one.high)}
    for one, interval in zip(result.algorithms, result.choice.intervals, strict=True):
        for size in ends:
            assert seconds(one, size) == interval.best.times.at(size)
        assert all(report.ok for report in one.reports)


def test_a_planted_bug_is_caught(monkeypatch):
    """Taking the slowest for the fastest fails the first property."""
    right = module.least
    monkeypatch.setattr(module, "least", lambda times, low, high: right(
        [type(one)(one.start, tuple(-b for b in one.base), tuple(-s for s in one.slope)) for one in times], low, high
    ))  # fmt: skip
    problem = request("torus(3, 3)", "allreduce").problem
    found = Selector(problem, Auto(size=1 << 20)).choose({})
    best = min(one.times.at(1 << 20) for one in found.candidates)
    assert found.intervals[0].best.times.at(1 << 20) > best


@pytest.mark.slow
@settings(max_examples=examples(4))
@given(st.sampled_from(NETS), st.integers(1, 3))
def test_few_algorithms(net, most):
    """At most as many as are wanted, of those that are the fastest somewhere; each the fastest of what is left."""
    problem = request(net, "allreduce").problem
    free = Selector(problem, Auto(sizes="1024..1073741824")).choose({})
    few = Selector(problem, Auto(sizes="1024..1073741824", most=most)).choose({})
    kept = {one.algorithm for one in few.intervals}
    assert len(kept) <= most
    sizes = {*free.ends, *few.ends}
    assert all(few.at(size) >= free.at(size) for size in sizes)
    for size in few.ends:
        assert few.at(size) == min(one.best.times.at(size) for one in few.intervals)


# ---- what applies


@pytest.mark.slow
def test_switches_go_through_schedulers_that_take_them():
    for net in ("dgx_a100(2)", "leaf_spine(2, 3, 2)"):
        result = compiler.compile_source(f"topology t = {net}; collective c = allreduce on t;", target="msccl-xml")
        assert result.collectives["c"].choice.intervals[0].algorithm.scheduler in ("forest", "two-level")
        assert all(report.ok for report in result.collectives["c"].reports)
    choice = made("dgx_a100(2)", "allreduce", "auto", None).choice
    assert {one.name: one.reason for one in choice.skipped}["bfb"].endswith("[C0501]")


@pytest.mark.parametrize("kind", ["gather { root: 0 }", "scatter { root: 1 }", "alltoall"])
def test_other_collectives(kind):
    result = made("biring(4)", kind, "auto", None)
    assert result.choice.intervals[0].algorithm.scheduler in ("exact", "bine", "flow", "general")
    assert all(report.ok for report in result.reports)


@pytest.mark.slow
def test_large_tori_stay_symmetric():
    result = made("torus(64, 64)", "allreduce", "auto { size: 1 MiB }", None)
    assert result.choice.intervals[0].algorithm.name == "trivance-bandwidth" and len(result.schedule.seed) < 20_000
    times = {one.algorithm.name: one.times.at(1024) for one in result.choice.candidates}
    assert min(times, key=lambda name: times[name]) == "swing-latency"
    reasons = {one.name: one.reason for one in result.choice.skipped}
    assert reasons["rabenseifner"] == "more than 8388608 transfers [C0047]"


def test_a_target_with_limits_gets_the_next_best():
    """The fastest needs more threadblocks than there are; what fits is taken, and the report says why."""
    free = made("complete(8)", "allreduce", "auto", 1 << 26)
    text = "collective c = allreduce on complete(8) { size: 64 MiB };"
    tight = compiler.compile_source(text, target="msccl-xml{threadblocks=5}").collectives["c"]
    assert free.choice.intervals[0].algorithm.name == "bfb" != tight.choice.intervals[0].algorithm.name
    assert "threadblocks" in {one.name: one.reason for one in tight.choice.skipped}["bfb"]


def test_options_say_what_is_compared():
    only = made("torus(3, 3)", "allreduce", 'auto { candidates: "ring, bucket", size: 1 KiB }', None).choice
    assert {one.algorithm.scheduler for one in only.candidates} == {"ring", "bucket"}
    rest = made("torus(3, 3)", "allreduce", "auto { without: bfb, alpha: 1 us, bandwidth: 400 Gbps }", None).choice
    assert "bfb" not in {one.algorithm.scheduler for one in rest.candidates} and rest.assumed == ()
    late = made("torus(3, 3)", "allreduce", "auto { latency: swing, size: 1 MiB }", None).choice
    assert late.intervals[0].best.times.at(0) < Fraction(1, 10**5)


def test_a_pipeline_of_its_own_needs_no_choice(collc: Collc) -> None:
    Path("a.coll").write_text("collective c = allreduce on torus(3, 3);\nschedule c using auto { size: 1 KiB };\n")
    ran = collc("compile", "a.coll", "-p", "ring,discretize,lower", "-t", "mpi-c", "-o", "c.c")
    assert (ran.status, ran.err) == (0, "") and "scheduled by ring" in Path("c.c").read_text()


# ---- mistakes


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("sizes: 1 MiB", "C0045", "whole sizes"), ("sizes: 2 KiB..1 KiB", "C0045", "2 KiB..1 KiB"),
        ("size: 1 KiB, sizes: all", "C0045", "found both"), ("candidates: swimg", "C0046", "swing"),
        ("candidates: auto", "C0046", "auto"), ("candidates: forest, without: forest", "C0046", "no candidate left"),
        ("sise: 1 KiB", "C0009", "size"), ("transfers: 0", "C0010", "transfers"), ("most: 0", "C0010", "most"),
        ("alpha: -1", "C0010", "alpha"),
        ("bandwidth: 0", "C0010", "bandwidth"), ("candidates: swing, transfers: 10", "C0047", "10 transfers"),
        ('candidates: "flow"', "C0503", "flow"),
    ],
)  # fmt: skip
def test_mistakes_in_options(options, code, said):
    with pytest.raises(CollcError) as caught:
        compile_collective(
            request("torus(3, 3)", "allreduce", f"schedule c using auto {{ {options} }};"), (), Settings(until=Schedule)
        )
    first = caught.value.diagnostics[0]
    assert first.code == code and first.span is not None and said in f"{first.message} {first.hint}"


# ---- files

RANGED = "topology t = torus(3, 3);\ncollective c = allreduce on t;\nschedule c using auto { sizes: 1 KiB..16 MiB };\n"


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["executor", "msccl", "rccl"])
def test_a_file_for_every_range(collc: Collc, runtime: str) -> None:
    """Names tell algorithm and sizes; windows touch and do not overlap, as each runtime reads them."""
    Path("a.coll").write_text(RANGED)
    ran = collc("a.coll", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "out/", "--json", "-MD")
    assert (ran.status, ran.err) == (0, "")
    found = json.loads(ran.out)
    ranges = found["collectives"][0]["auto"]["ranges"]
    paths = [one["path"] for one in found["outputs"]]
    assert len(paths) == len(ranges) >= 2 and paths[0].startswith("out/c-trivance-latency-1KiB-")
    windows = []
    for path, one in zip(paths, ranges, strict=True):
        text = Path(path).read_text()
        assert verify_text(text, path, runtime=runtime).ok and one["algorithm"] in Path(path).name
        window = [int(text.split(f'{name}="')[1].split('"')[0]) for name in ("minBytes", "maxBytes")]
        assert window == [one["min_bytes"], one["max_bytes"] + (runtime == "msccl")]
        windows.append((window[0], one["max_bytes"]))
    assert windows[0][0] == 1024 and windows[-1][1] == 16 << 20
    assert all(a[1] + 1 == b[0] for a, b in pairwise(windows))
    assert all(path in Path("out/c.d").read_text() for path in paths)


def test_several_files_need_a_folder_and_names(collc: Collc) -> None:
    Path("a.coll").write_text(RANGED)
    ran = collc("a.coll", "-t", "msccl-xml", "-o", "one.xml")
    assert ran.status == 2 and "C0021" in ran.err and not Path("one.xml").exists()
    ran = collc("-M", "a.coll", "-t", "msccl-xml")
    assert ran.status == 2 and "C0048" in ran.err
    Path("b.coll").write_text(RANGED.replace("1 KiB..16 MiB", "8 MiB..16 MiB"))
    assert collc("b.coll", "-t", "msccl-xml", "-o", "one.xml").status == 0 and Path("one.xml").exists()


def test_sizes_that_a_runtime_cannot_run(collc: Collc) -> None:
    """The first runtime has scratch for 128 MiB: what lies beyond has no file, and a warning says so."""
    text = RANGED.replace("allreduce on t", "alltoall on torus(3, 2)").replace("16 MiB", "1 GiB")
    text = text.replace("auto {", "auto { without: general,")
    Path("a.coll").write_text(text)
    ran = collc("a.coll", "-t", "msccl-xml{runtime=msccl}", "-o", "out/", "--json")
    assert ran.status == 0 and "C0049" in ran.err
    largest = max(int(Path(one["path"]).read_text().split('maxBytes="')[1].split('"')[0]) for one in
                  json.loads(ran.out)["outputs"])  # fmt: skip
    assert largest == (1 << 27) + 1  # that runtime's end is no part of its window


def test_the_report_says_why(collc: Collc) -> None:
    text = collc("cost", "-", stdin=RANGED).out
    assert "auto: the fastest of" in text and "meet at" in text and "times as long at best" in text
    found = json.loads(collc("cost", "-", "--json", stdin=RANGED).out)
    assert len(found["algorithms"]) == len(found["auto"]["ranges"]) and found["auto"]["skipped"]
    for one in found["auto"]["ranges"][1:]:
        assert Fraction(one["crossing"]) <= one["min_bytes"] <= Fraction(one["crossing"]) + 1
    names = [one["algorithm"] for one in found["auto"]["candidates"]]
    assert len(set(names)) == len(names) and {"bfb", "ring", "swing-latency"} <= set(names)
    plain = collc("cost", "-", stdin="collective c = allreduce on torus(3, 3) { size: 1 MiB };").out
    assert "at 1 MiB (the collective's size)" in plain


@pytest.mark.needs("mpi")
def test_the_selector_runs(mpich: Mpi, tmp_path: Path) -> None:
    """One source with all algorithms: calls on both sides of every change, every element on every rank."""
    text = "topology t = biring(4) with { latency: 1 us, bandwidth: 1 GB/s };\n"
    for name, kind in (("sums", "allreduce"), ("parts", "reduce-scatter")):
        text += f"collective {name} = {kind} on t;\nschedule {name} using auto {{ sizes: all }};\n"
    results = compiler.compile_source(text, target="mpi-c").collectives
    chosen = [Selected(tuple((a.window, a.program) for a in one.algorithms)) for one in results.values()]
    assert len(chosen[0].parts) >= 2
    counts = sorted({count for one in chosen for count in one.edges(("int32", "float64"))} | {0, 1, 1000})
    assert not any(one.untried() for one in chosen)
    rows = Built(mpich, chosen, tmp_path, ("-O0", *STRICT)).run(counts=counts, dtypes=("int32", "float64")).rows
    assert {row.name for row in rows} == {"sums", "parts"} and [row for row in rows if not row.correct] == []


@pytest.mark.needs("mpi")
def test_the_function_tells_its_algorithm(mpich: Mpi, tmp_path: Path) -> None:
    """What the generated function says of itself at every change, for two element types."""
    text = "collective sums = allreduce on torus(2, 2);\nschedule sums using auto { sizes: all };\n"
    result = compiler.compile_source(text, target="mpi-c")
    result.write(tmp_path)
    ranges = result.collectives["sums"].choice.intervals
    assert len(ranges) >= 2
    from collc.backends.mpi_c.launch import launch
    from collc.backends.mpi_c.toolchain import compile_c

    asked = [(count, kind, size) for kind, size in (("MPI_BYTE", 1), ("MPI_INT", 4))
             for one in ranges[:-1] for count in (one.high // size, one.high // size + 1)]  # fmt: skip
    calls = "".join(f"    puts(sums_algorithm({count}, {kind}));\n" for count, kind, _ in asked)
    main = '#include <stdio.h>\n#include "sums.h"\nint main(int n, char **a)\n{\n    MPI_Init(&n, &a);\n'
    main += (
        '    puts(sums_algorithm(-1, MPI_INT) ? "wrong" : "none");\n'
        + calls
        + "    MPI_Finalize();\n    return 0;\n}\n"
    )
    (tmp_path / "main.c").write_text(main)
    compile_c(mpich, [tmp_path / "main.c", tmp_path / "sums.c"], tmp_path / "main", ("-O0", *STRICT))
    said = launch(mpich, 1, [str(tmp_path / "main")], 60, tmp_path).split()
    expected = [next(r for r in ranges if r.high is None or count * size <= r.high) for count, _, size in asked]
    assert said == ["none", *(one.algorithm.name for one in expected)]
