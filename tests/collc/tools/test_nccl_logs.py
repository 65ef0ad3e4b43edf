"""Logs of nccl-tests and OSU: as pasted, with what they say of themselves; exact lines, and crossovers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nccl_logs import nccl_log, osu_log
from sampling import examples

from collc.ir.diagnostic import CollcError
from collc.tools.nccl_logs import Given, Timed, read_log
from collc.tools.nccl_times import choices, fit_algorithms, line_of

TRY = settings(max_examples=examples(60), deadline=None)
SIZES = [2**k for k in range(3, 31, 3)]


def time(size: int) -> float:
    return 40 + size / 10_000


def measured(text: str, **said: object) -> list[Timed]:
    return read_log(text, "ring.log", Given(**said))[0]  # type: ignore[arg-type]


def refusal(text: str, **said: object) -> tuple[str, str]:
    """Return the message, and what the caret underlines."""
    with pytest.raises(CollcError) as refused:
        measured(text, **said)
    first = refused.value.diagnostics[0]
    assert first.code == "C0079"
    span = first.span
    return first.message, "" if span is None else span.source.line(span.line)[span.column - 1 : span.end_column - 1]


# ---- what a log holds


def test_a_log_of_nccl_tests() -> None:
    found = measured(nccl_log(time, SIZES))
    assert [(one.bytes, one.seconds) for one in found] == [
        (size, Fraction(f"{time(size):.2f}") / 10**6) for size in SIZES
    ]
    assert {(one.collective, one.nodes, one.ranks, one.algorithm, one.protocol) for one in found} == {
        ("allreduce", 2, 16, "ring", "simple")
    }


MANGLED = {
    "colors": lambda text: text.replace(" 0.00", " \x1b[1;32m0.00\x1b[0m").replace(
        "# nThread", "\x1b[4m# nThread\x1b[0m"
    ),
    "a mail": lambda text: "".join(f"> > {line}\n" for line in text.splitlines()),
    "tabs": lambda text: text.replace("     ", "\t"),
    "DOS": lambda text: text.replace("\n", "\r\n"),
    "mpirun": lambda text: "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()),
    "mpich": lambda text: "".join(f"[0] {line}\n" for line in text.splitlines()),
    "srun": lambda text: "".join(f"0: {line}\n" for line in text.splitlines()),
    "pdsh in a mail": lambda text: "".join(f"> n-001.dc: {line}\r\n" for line in text.splitlines()),
    "other lines": lambda text: text.replace("#\n", "#\nnode0:123:456 [0] NCCL INFO Channel 00/16 : 0 1 2 3\n\n"),
    "indented": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
}


@pytest.mark.parametrize("how", MANGLED)
def test_a_log_as_people_paste_it(how: str) -> None:
    assert measured(MANGLED[how](nccl_log(time, SIZES))) == measured(nccl_log(time, SIZES))


def test_several_runs_in_one_log() -> None:
    text = nccl_log(time, SIZES) + nccl_log(lambda size: 9 + size / 5000, SIZES, algorithm="Tree", protocol="LL128")
    found = measured(text)
    assert [one.algorithm for one in found] == ["ring"] * len(SIZES) + ["tree"] * len(SIZES)
    assert {one.protocol for one in found[len(SIZES) :]} == {"ll128"}


@pytest.mark.parametrize(
    ("line", "algorithm", "protocol"),
    [
        ("export NCCL_ALGO=Tree", "tree", None),
        ("node1:1:2 [0] NCCL INFO NCCL_ALGO set by environment to NVLSTree", "nvls_tree", None),
        ("mpirun -x NCCL_ALGO=CollnetDirect -x NCCL_PROTO=LL x", "collnet_direct", "ll"),
        ('NCCL_ALGO="Ring" NCCL_PROTO="LL128"', "ring", "ll128"),
    ],
)
def test_the_algorithm_is_what_nccl_was_set_to(line: str, algorithm: str, protocol: str | None) -> None:
    text = f"{line}\n" + nccl_log(time, SIZES, algorithm=None, protocol=None)
    assert {(one.algorithm, one.protocol) for one in measured(text)} == {(algorithm, protocol)}


def test_what_the_user_says_counts_more() -> None:
    said = {"algorithm": "pat", "protocol": "ll", "collective": "allgather", "ranks": 4, "nodes": 4}
    found = measured(nccl_log(time, SIZES), **said)[0]
    assert (found.algorithm, found.protocol, found.collective, found.ranks, found.nodes) == tuple(said.values())


def test_the_bus_bandwidth_names_an_allreduce() -> None:
    """Of tests before the name was printed: operation, no root, and 2 (N - 1) / N times the bandwidth."""
    found = measured(nccl_log(time, [1 << 20, 1 << 26], test=None))
    assert {one.collective for one in found} == {"allreduce"}


def test_wrong_results_are_skipped() -> None:
    found, notes = read_log(nccl_log(time, SIZES) + nccl_log(time, SIZES, wrong=3), "a", Given())
    assert len(found) == len(SIZES) and notes == [f"{len(SIZES)} rows of `a` skipped: the result was wrong"]


def test_the_time_in_place_counts_if_there_is_no_other() -> None:
    lines = nccl_log(time, [1024]).splitlines()
    row = lines[-4].split()
    lines[-4] = " ".join([*row[:5], *["N/A"] * 4, *row[9:]])
    assert measured("\n".join(lines))[0].bytes == 1024
    lines[-4] = " ".join([*row[:5], *["N/A"] * 8])
    assert "has no rows" in refusal("\n".join(lines))[0]


@pytest.mark.parametrize(("test", "kind", "times"), [("Allreduce", "allreduce", 1), ("Allgather", "allgather", 16)])
def test_a_log_of_osu(test: str, kind: str, times: int) -> None:
    """An allgather of OSU has sizes of one rank."""
    found = measured(osu_log(time, SIZES, test), algorithm="ring", nodes=2)
    assert [(one.collective, one.ranks, one.bytes) for one in found] == [(kind, 16, times * size) for size in SIZES]
    assert found[0].seconds == Fraction("40.00") / 10**6


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("# OSU MPI-CUDA Allreduce Latency Test v7.3", "allreduce"),
        ("# OSU NCCL-CUDA Allgather Latency Test v7.5", "allgather"),
        ("# OSU MPI Reduce_scatter Latency Test v5.8", "reduce-scatter"),
        ("# OSU MPI Broadcast Latency Test v7.3", "broadcast"),
        ("# OSU MPI All-to-All Personalized Exchange Latency Test v5.6.2", "alltoall"),
        ("$ mpirun -n 16 osu_xccl_reduce -d cuda D D", "reduce"),
    ],
)
def test_titles_of_osu_name_the_collective(title: str, kind: str) -> None:
    text = f"{title}\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1024    12.5\n"
    found = measured(text, algorithm="ring", ranks=16, nodes=2)
    assert [one.collective for one in found] == [kind]


# ---- what is missing or wrong


def test_what_a_log_does_not_say_is_needed() -> None:
    without = nccl_log(time, SIZES, algorithm=None, protocol=None)
    assert refusal(without)[0] == "the log does not name the algorithm of its rows"
    assert refusal(osu_log(time, SIZES, ranks=None), algorithm="ring")[0].startswith(
        "the log does not say the number of r"
    )
    assert refusal(osu_log(time, SIZES), algorithm="ring")[0].startswith("the log does not say the number of machines")
    assert refusal(nccl_log(time, [8], ranks=2, test=None))[0] == "the log does not name the collective of its rows"


@pytest.mark.parametrize("text", ["", "hello\n", "1 2 3\n", "# size count type time\n"])
def test_texts_without_rows_are_refused(text: str) -> None:
    assert refusal(text)[0] == "`ring.log` has no rows of nccl-tests or of the OSU benchmarks"


@pytest.mark.parametrize(
    ("old", "new", "message", "caret"),
    [
        ("40.00", "4O.00", "found `4O.00`, needed a number", "4O.00"),
        ("40.00", "0.00", "`0.00` is no size or time", "0.00"),
        ("NCCL_ALGO=Ring", "NCCL_ALGO=Rign", "NCCL has no algorithm `Rign`", "Rign"),
        ("NCCL_PROTO=Simple", "NCCL_PROTO=LL256", "NCCL has no protocol `LL256`", "LL256"),
    ],
)
def test_a_wrong_line_is_underlined(old: str, new: str, message: str, caret: str) -> None:
    text = nccl_log(time, [8]).replace(old, new, 1)
    assert refusal(text) == (message, caret)


def test_a_cut_row_is_underlined_as_a_whole() -> None:
    lines = nccl_log(time, [8, 16]).splitlines()
    lines[-4] = lines[-4][:60]
    message, caret = refusal("\n".join(lines))
    assert message == f"the row has {len(lines[-4].split())} columns, its heading has 13"
    assert caret == lines[-4].strip()


def test_lists_of_algorithms_name_none() -> None:
    assert "does not name the algorithm" in refusal(nccl_log(time, [8], algorithm="Ring,Tree"))[0]
    assert "does not name the algorithm" in refusal(nccl_log(time, [8], algorithm="^Ring"))[0]


# ---- lines


@TRY
@given(
    st.fractions(0, 1, max_denominator=10**6), st.fractions(Fraction(1, 10**6), 1, max_denominator=10**9),
    st.sets(st.integers(1, 10**9), min_size=2, max_size=8),
)  # fmt: skip
def test_points_of_a_line_give_the_line(alpha: Fraction, beta: Fraction, sizes: set[int]) -> None:
    assert line_of([(size, alpha + beta * size) for size in sizes]) == (alpha, beta)


@TRY
@given(st.lists(st.tuples(st.integers(1, 10**6), st.fractions(Fraction(1, 1000), 10)), min_size=2, max_size=6))
def test_no_line_near_it_has_less_squares(points: list[tuple[int, Fraction]]) -> None:
    found = line_of(points)
    if found is None:
        return

    def squares(alpha: Fraction, beta: Fraction) -> Fraction:
        return sum((((alpha + beta * size) / seconds - 1) ** 2 for size, seconds in points), Fraction(0))

    alpha, beta = found
    least = squares(alpha, beta)
    for share in (Fraction(99, 100), Fraction(101, 100)):
        assert least <= squares(alpha * share, beta) and least <= squares(alpha, beta * share)


def test_times_that_do_not_grow_are_refused() -> None:
    assert line_of([(8, Fraction(1)), (8, Fraction(2))]) is None
    assert line_of([(8, Fraction(2)), (80, Fraction(1, 10))]) is None
    with pytest.raises(CollcError, match="do not grow with the size"):
        fit_algorithms(measured(nccl_log(lambda size: 1000 - size / 1000, [8, 1024, 65536])))


def test_crossovers_are_exact_to_the_byte() -> None:
    """40 us + s / 10 GB/s meets 9 us + s / 5 GB/s at 310,000 bytes; rounding of the log moves it little."""
    text = nccl_log(time, SIZES) + nccl_log(lambda size: 9 + size / 5000, SIZES, algorithm="Tree")
    lines, notes = fit_algorithms(measured(text))
    (found,) = choices(lines)
    ring, tree = found.lines
    assert (ring.algorithm, tree.algorithm, notes) == ("ring", "tree", [])
    size = found.changes[1].size
    assert ring.times.at(size) < tree.times.at(size) and ring.times.at(size - 1) >= tree.times.at(size - 1)
    assert abs(size - 310_000) < 1000


def test_an_unknown_protocol_is_noted() -> None:
    _, notes = fit_algorithms(measured(nccl_log(time, SIZES, protocol=None)))
    assert notes[0].startswith("the logs do not name the protocol of ring, taken as simple")
