"""All-to-all rates of the finder's rows: exact or between bounds, in the frontier and in the text of the database."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import attrs
import pytest
from lp import lp3
from sampling import every

from collc.frontends import coll
from collc.ir.diagnostic import CollcError
from collc.passes.finder.database import (
    DEGREES,
    Row,
    frontier,
    merged_frontiers,
    parse_rows,
    print_rows,
    rate_text,
    shipped,
)
from collc.passes.finder.found import dominates
from collc.passes.finder.measure import row_mistakes, with_alltoall_rate, with_narrow_rate
from collc.passes.finder.rates import rate_bracket
from collc.passes.synthesis.flow.rate import alltoall_rate, rate_bound
from collc.processes.workers import Work
from collc.tools.finding import Frontier, Wanted

KAUTZ = with_alltoall_rate(
    Row("generalized_kautz(2, 300)", 300, 2, 9, Fraction(1), 9, False), coll.topology
)  # fmt: skip
COMPLETE = Row("complete(4)", 4, 3, 1, Fraction(3, 4), 1, True, Fraction(1))


# ---- the bounds


@pytest.mark.parametrize(
    "text",
    [
        "circulant(9, {2, 3})", "line(complete(4))", "generalized_kautz(3, 11)", "generalized_kautz(5, 13)",
        "bidirectional(generalized_kautz(2, 9))", "bidirectional(generalized_kautz(3, 8))", "debruijn(2, 3)",
        'distance_regular("petersen")', "cayley(metacyclic(7, 3, 2), {1, 3, 8})", "cayley(cyclic(13), {1, 5, 8, 12})",
    ],
)  # fmt: skip
def test_the_bounds_hold_the_optimum_of_the_linear_program(text: str) -> None:
    lower, upper = rate_bracket(coll.topology(text))
    assert float(lower) * (1 - 1e-7) <= lp3(coll.topology(text)) <= float(upper) * (1 + 1e-7)


@pytest.mark.parametrize("text", ["generalized_kautz(3, 73)", "bidirectional(generalized_kautz(2, 70))"])
def test_large_networks_have_brackets_that_hold_the_narrow_one(text: str) -> None:
    lower, upper = rate_bracket(coll.topology(text))
    narrow = alltoall_rate(coll.topology(text), Fraction(1, 100))
    assert lower <= narrow.upper and narrow.lower <= upper
    assert lower < upper < lower * 2


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("line(cayley(metacyclic(157, 3, 12), {14, 47, 417, 454}))", "8/20473"),
        ("line(cayley(metacyclic(107, 2, 106), {12, 59, 96, 139}))", "1577/1889168"),
        ("generalized_kautz(4, 63)", "50309/2194236"),
    ],
)  # fmt: skip
def test_rates_that_nearly_meet_their_bound_are_brought_to_it(text: str, rate: str) -> None:
    """A gap of 10^-5 leaves a bracket here."""
    assert rate_bracket(coll.topology(text)) == (Fraction(rate), Fraction(rate))


def test_a_bracket_of_a_row_has_few_digits_and_holds_the_bounds() -> None:
    lower, upper = rate_bracket(coll.topology(KAUTZ.expression))
    assert KAUTZ.alltoall_rate is not None and KAUTZ.alltoall_upper is not None
    assert lower * Fraction(8191, 8192) <= KAUTZ.alltoall_rate <= lower < upper <= KAUTZ.alltoall_upper
    assert len(rate_text(KAUTZ)) < 24


def test_a_bracket_of_a_small_row_is_narrowed() -> None:
    row = with_alltoall_rate(Row("generalized_kautz(4, 73)", 73, 4, 4, Fraction(1), 4, False), coll.topology)
    narrow = with_narrow_rate(row, coll.topology, 73)
    assert row == with_narrow_rate(row, coll.topology, 72)
    assert row.alltoall_rate < narrow.alltoall_rate <= narrow.most_alltoall < row.alltoall_upper  # type: ignore[operator]


# ---- what is recomputed


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (Fraction(1001, 1000), Fraction(1)), (Fraction(1), Fraction(999, 1000)),  # claims more than is proved
        (Fraction(999, 1000), Fraction(1)), (Fraction(1), Fraction(1001, 1000)),  # wider than it has to be
    ],
)  # fmt: skip
def test_a_wrong_bracket_is_seen(lower: Fraction, upper: Fraction) -> None:
    assert KAUTZ.alltoall_rate is not None and KAUTZ.alltoall_upper is not None
    wrong = attrs.evolve(KAUTZ, alltoall_rate=KAUTZ.alltoall_rate * lower, alltoall_upper=KAUTZ.alltoall_upper * upper)
    rates = [text for text in row_mistakes(wrong, coll.topology) if "rate" in text]
    assert len(rates) == 1 and rates[0].startswith("alltoall_rate is between ") and rate_text(wrong) in rates[0]
    assert not any("rate" in text for text in row_mistakes(KAUTZ, coll.topology))


def test_a_bracket_that_is_given_as_exact_is_seen() -> None:
    exact = attrs.evolve(KAUTZ, alltoall_upper=None)
    assert any("alltoall_rate is between" in text for text in row_mistakes(exact, coll.topology))
    wide = attrs.evolve(COMPLETE, alltoall_rate=Fraction(9999, 10000), alltoall_upper=Fraction(1))
    assert row_mistakes(wide, coll.topology) == ["alltoall_rate is 1, the row has 9999/10000..1"]
    assert row_mistakes(COMPLETE, coll.topology) == []


@pytest.mark.parametrize("degree", DEGREES)
def test_all_rows_of_the_shipped_database_have_rates_below_every_bound(degree: int) -> None:
    rows = parse_rows(shipped(degree) or "", degree, "shipped")
    assert [row.expression for row in rows if row.alltoall_rate is None] == []
    for row in rows:
        assert row.alltoall_rate is not None and row.most_alltoall is not None
        assert 0 < row.alltoall_rate <= rate_bound(row.nodes, degree), row
        assert row.most_alltoall < 3 * row.alltoall_rate or "line(" in row.expression, row
        assert 5 * row.most_alltoall < 31 * row.alltoall_rate, row


@pytest.mark.parametrize("degree", DEGREES)
def test_a_sample_of_shipped_rates_is_recomputed(degree: int) -> None:
    rows = parse_rows(shipped(degree) or "", degree, "shipped")
    small = [row for row in rows if row.nodes <= 200 and row.nodes * degree <= 800]
    for row in every(30, small, degree):
        found = with_alltoall_rate(attrs.evolve(row, alltoall_rate=None, alltoall_upper=None), coll.topology)
        assert rate_text(found) == rate_text(row), row


# ---- text


def test_brackets_are_read_as_they_are_written() -> None:
    text = print_rows(2, [KAUTZ])
    assert f" {KAUTZ.alltoall_rate}..{KAUTZ.alltoall_upper} bfb " in text
    assert [KAUTZ] == parse_rows(text, 2, "rows.txt")


@pytest.mark.parametrize("rate", ["1/3..1/4", "1/3..1/3", "1/3..", "..1/3", "0", "-1/3", "1/3..1/2..1", "1..x"])
def test_a_wrong_bracket_is_no_row(rate: str) -> None:
    with pytest.raises(CollcError, match="C0570"):
        parse_rows(f"9 2 8/9 8/9 2 <-> {rate} bfb hamming(2, 3)\n", 4, "rows.txt")


# ---- the frontier of three criteria


def rated(name: str, steps: int, lower: str | None, upper: str | None = None) -> Row:
    ends = [None if end is None else Fraction(end) for end in (lower, upper)]
    return Row(name, 9, 4, steps, Fraction(8, 9), steps, False, *ends)


def test_a_better_rate_keeps_a_row_that_costs_more() -> None:
    fast, slow, best = rated("a", 2, "1/9"), rated("b", 3, "1/9"), rated("c", 4, "1/8")
    for objective in ("allreduce", "allgather", "alltoall", "mix"):
        assert frontier([slow, fast, best], objective=objective) == [fast, best], objective
    assert frontier([slow, fast, best], objective="cost") == [fast]
    assert merged_frontiers([slow, fast, best]) == [fast, best]


def test_brackets_are_compared_by_what_is_proved() -> None:
    fast, open_row, closed = rated("a", 2, "1/10", "1/8"), rated("b", 3, "1/11", "1/9"), rated("c", 3, "1/12", "1/10")
    assert frontier([fast, open_row, closed]) == [fast, open_row]
    assert dominates(fast, closed, alltoall=True) and not dominates(fast, open_row, alltoall=True)
    assert frontier([fast, open_row, closed], objective="mix") == [fast, open_row]


def test_times_of_a_bracket_are_those_of_both_ends() -> None:
    exact, bracket = rated("a", 2, "1/10"), rated("b", 3, "1/11", "1/9")
    found = Frontier(Wanted(9, 4, objective="alltoall", size=9 * 10**9, bandwidth=Fraction(4 * 10**9)),
                     (exact, bracket))  # fmt: skip
    assert found.best is exact and found.may_be_faster == (bracket,)
    assert found.times == (10.0, 11.0) and found.wanted.least_seconds(bracket) == 9.0
    assert found.is_for_rate(bracket) and not found.is_for_rate(exact)
    narrow = attrs.evolve(found, frontier=(exact, rated("b", 3, "1/12", "1/11")))
    assert narrow.may_be_faster == ()


# ---- completing a database


ROWS = """# collc find, degree 4
# searched 5..10 with effort 1, seed 0
# nodes T_L T_B reduce_scatter_T_B diameter links alltoall_rate scheduler expression
5 1 4/5 4/5 1 <-> - bfb complete(5)
9 2 8/9 8/9 2 <-> - bfb hamming(2, 3)
9 2 8/9 8/9 2 <-> 1/3 bfb torus(3, 3)
300 5 1 - 5 -> - bfb generalized_kautz(4, 300)
"""


def test_missing_rates_are_computed_and_nothing_else_changes(collc, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    Path("rows.txt").write_text(ROWS)
    asked = ("find", "--refresh", "--rates-only", "--database", "rows.txt", "-d", "4", "-j", "1")
    ran = collc(*asked, "-n", "5..10")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "rows.txt: 2 topologies of degree 4 got an all-to-all rate\n"
    assert Path("rows.txt").read_text() == ROWS.replace("<-> - bfb complete", "<-> 1 bfb complete").replace(
        "<-> - bfb hamming", "<-> 1/3 bfb hamming"
    )
    assert "1 topology of" in collc(*asked).out and "0 topologies of" in collc(*asked).out
    (row,) = parse_rows(Path("rows.txt").read_text(), 4, "rows.txt", 300)
    assert row.alltoall_rate is not None and row.alltoall_upper is not None
    assert not Path("rows.txt.units").exists()
    assert collc("find", "--check", "--database", "rows.txt", "-d", "4", "-n", "9").status == 0


def test_an_interrupted_run_goes_on_with_the_rates_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.files.finished import Finished
    from collc.tools import finding_database

    text, place = ROWS.replace("complete(5)", "circulant(5, {1, 2})"), str(tmp_path / "units")
    monkeypatch.setattr(finding_database, "_RATED", 1)
    monkeypatch.setattr(finding_database, "shipped", lambda degree: None)

    def interrupt(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finding_database.rate(4, None, text, "rows.txt", Work(None, interrupt), Finished(place))
    shown: list[str] = []
    work = Work(None, lambda what, done, total: shown.append(what))
    result, count = finding_database.rate(4, None, text, "rows.txt", work, Finished(place))
    assert count == 3 and 0 < sum("rates" in what for what in shown) < 3 + 1
    assert (result, 3) == finding_database.rate(4, None, text, "rows.txt", Work(), Finished(str(tmp_path / "other")))


@pytest.mark.parametrize("options", [("--exclude", "line"), ("--bidirectional",), ("--effort", "5")])
def test_rates_only_takes_no_options_of_a_search(collc, options: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    Path("rows.txt").write_text(ROWS)
    ran = collc("find", "--refresh", "--rates-only", "--database", "rows.txt", "-d", "4", *options)
    assert ran.status == 2 and f"--rates-only searches nothing, found also {options[0]}" in ran.err
    assert Path("rows.txt").read_text() == ROWS


# ---- what is printed

BRACKETS = """300 4 1 1 4 -> 1/400 bfb torus(15, 20)
300 5 1 1 5 -> 1/500..1/300 bfb circulant(300, {1, 17})
300 6 1 1 6 <-> 1/600..1/401 bfb circulant(300, {1, 19})
"""


def test_brackets_and_rows_for_the_rate_are_marked(collc) -> None:  # type: ignore[no-untyped-def]
    Path("rows.txt").write_text(BRACKETS)
    found = ("find", "-n", "300", "-d", "4", "--database", "rows.txt")
    ran = collc(*found, "--objective", "alltoall", "--size", "3000B", "--bandwidth", "4GB/s")
    lines = ran.out.splitlines()
    (star,) = (line.split() for line in lines if "*    4" in line)
    (plus,) = (line.split() for line in lines if "+    5" in line)
    assert star[:6] == ["*", "4", "1", "1.0000", "->", "1/400"] and star[6:8] == ["4", "us"]
    assert plus[5] == "1/500..1/300" and " ".join(plus[6:9]) == "3 us..5 us"
    assert "a..b: the rate is at least a, which a routing reaches, and at most b" in ran.out
    assert "+ costs more than another row" in ran.out and "1 row may be faster than the star's" in ran.out
    document = json.loads(collc(*found, "--json").out)
    rows = {row["T_L"]: row for row in document["frontier"]}
    assert set(rows) == {4, 5} and [row["T_L"] for row in document["bidirectional_frontier"]] == [6]
    keys = ("alltoall_rate", "alltoall_rate_upper", "only_for_alltoall")
    assert [rows[4][key] for key in keys] == ["1/400", "1/400", False]
    assert [rows[5][key] for key in keys] == ["1/500", "1/300", True]


def test_a_mix_is_ordered_by_the_proved_ends(collc) -> None:  # type: ignore[no-untyped-def]
    Path("rows.txt").write_text(BRACKETS)
    ran = collc("find", "-n", "300", "-d", "4", "--database", "rows.txt", "--alpha", "0us", "--bandwidth", "4GB/s",
                "--workload", "alltoall 3000B x 2, allgather 4000B x 0.5", "--json")  # fmt: skip
    rows = json.loads(ran.out)["frontier"]
    assert [(row["T_L"], row["time_us"], row["time_least_us"]) for row in rows] == [(4, 8.5, 8.5), (5, 10.5, 6.5)]


def test_rates_only_is_for_databases(collc) -> None:  # type: ignore[no-untyped-def]
    for options in (("-n", "9", "-d", "4"), ("--database", "rows.txt", "-d", "4"), ("--refresh", "-d", "4")):
        ran = collc("find", "--rates-only", *options)
        assert ran.status == 2 and "--rates-only completes the rows of a database" in ran.err
