"""``collc find``, the API's find, databases and pictures."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from xml.etree import ElementTree

import attrs
import pytest
from commands import COMMAND, Ran
from picture_checks import check
from places import DATA
from sampling import EXHAUSTIVE

import collc as package
from collc.ir.costs.bounds import moore_graph_steps, moore_steps
from collc.passes.finder.database import DEGREES, Row, frontier, parse_rows, shipped
from collc.passes.finder.measure import row_mistakes
from collc.passes.finder.tasks import usual_evaluations
from collc.passes.finder.wide import wide_cost
from collc.pictures.frontier import pareto_svg
from collc.processes.workers import Work, pool
from collc.tools.finding import Frontier, Wanted, find
from collc.tools.finding_database import Searched, build, evaluations_for

Collc = Callable[..., Ran]

TABLES = json.loads((DATA / "paper_tables.json").read_text())
ROW_KEYS = {
    "expression", "T_L", "T_B", "T_B_float", "diameter", "bidirectional", "alltoall_rate", "time_us",
}  # fmt: skip

DATABASE = """# a small database
9 2 8/9 8/9 2 <-> 1/3 bfb hamming(2, 3)
9 8 8/9 - 8 -> - bfb uniring(9, 4)
16 2 1 1 2 -> - bfb cayley(metacyclic(8, 2, 7), {3, 4, 5, 6})
16 3 15/16 - 3 <-> - bfb circulant(16, {3, 4})
"""


@pytest.fixture
def database(collc: Collc) -> str:
    Path("best.txt").write_text(DATABASE)
    return "best.txt"


# ---- the command


def test_the_frontier_is_printed_with_its_bound_and_a_way_on(collc: Collc, database: str) -> None:
    ran = collc("find", "-n", "16", "-d", "4", "--database", database)
    assert (0, "") == (ran.status, ran.err)
    assert "cayley(metacyclic(8, 2, 7), {3, 4, 5, 6})" in ran.out
    assert "bound: no topology has less" in ran.out
    lines = [line.strip() for line in ran.out.splitlines()]
    Path("made.coll").write_text("\n".join(line for line in lines if line.endswith(";")))
    assert collc("check", "made.coll").status == 0


def test_json_has_the_keys_of_the_contract(collc: Collc, database: str) -> None:
    ran = collc("find", "-n", "16", "-d", "4", "--database", database, "--json")
    found = json.loads(ran.out)
    assert {"n", "degree", "frontier", "bound", "best"} <= set(found)
    assert {"T_L": 2, "T_B": "15/16"}.items() <= found["bound"].items()
    assert [2, 3] == [row["T_L"] for row in found["frontier"]]
    assert all(set(row) >= ROW_KEYS for row in found["frontier"])
    assert found["best"] in [row["expression"] for row in found["frontier"]]
    assert ["1", "15/16"] == [row["T_B"] for row in found["frontier"]]
    # 2 (2 alpha + M/B): section A.2
    assert 2 * (2 * 10 + 2**20 / 12.5e9 * 1e6) == pytest.approx(found["frontier"][0]["time_us"])


def test_the_best_depends_on_size_latency_and_bandwidth(collc: Collc, database: str) -> None:
    def best(*options: str) -> str:
        return str(json.loads(collc("find", "-n16", "-d4", "--database", database, "--json", *options).out)["best"])

    assert "cayley" in best("--size", "1KiB")
    assert "circulant" in best("--size", "1GiB")
    assert "cayley" in best("--size", "1GiB", "--alpha", "10s")
    assert "circulant" in best("--size", "1MiB", "--bandwidth", "1Gbps")
    assert "circulant" in best("--bidirectional")
    assert "circulant" in best("--objective", "allgather", "--alpha", "0ns")


def test_alltoall_times_are_those_of_table_4() -> None:
    wanted = Wanted(1024, 4, objective="alltoall")
    row = Row("generalized_kautz(4, 1024)", 1024, 4, 5, Fraction(341, 256), 5, False, Fraction("8.01e-4"))
    assert wanted.time(row) == pytest.approx(409.1e-6, rel=1e-3)
    assert wanted.time(attrs.evolve(row, alltoall_rate=None)) is None
    assert Wanted(1024, 4).time(row) == pytest.approx(323.5e-6, rel=1e-3)


def test_rates_are_computed_where_they_are_asked_for(collc: Collc, database: str) -> None:
    found = json.loads(collc("find", "-n9", "-d4", "--database", database, "--json", "--objective", "alltoall").out)
    (row,) = found["frontier"]
    assert row["time_us"] > 0


def test_an_allreduce_takes_both_halves_as_long_as_they_take(collc: Collc) -> None:
    text = DATABASE.replace("16 2 1 1 2", "16 2 1 5/4 2")
    Path("best.txt").write_text(text)
    ran = collc("find", "-n16", "-d4", "--database", "best.txt", "--json", "--size", "12500000", "--alpha", "0s")
    row = json.loads(ran.out)["frontier"][0]
    assert ("1", "5/4") == (row["T_B"], row["T_B_reduce_scatter"])
    assert 2250 == pytest.approx(row["time_us"])
    assert "reduce-scatter" in collc("find", "-n16", "-d4", "--database", "best.txt").out


def test_bidirectional_frontiers_have_only_such(collc: Collc) -> None:
    found = json.loads(collc("find", "-n", "12", "-d", "3", "--bidirectional", "--effort", "200", "--json").out)
    assert found["frontier"]
    for row in found["frontier"]:
        assert row["bidirectional"]
        assert package.topology(row["expression"]).reverse_links is not None
    # Moore's bound for graphs: 1 + 3 + 6 = 10 < 12
    assert 3 == found["bound"]["T_L"]


def test_what_the_database_does_not_have_is_searched(collc: Collc, database: str) -> None:
    ran = collc("find", "-n", "10", "-d", "4", "--database", database, "--effort", "100", "--json")
    assert "9/10" == json.loads(ran.out)["frontier"][0]["T_B"]


def test_a_search_for_a_missing_size_says_how_long_it_took(collc: Collc, database: str) -> None:
    use = ("find", "-n", "10", "-d", "4", "--database", database, "--effort", "100")
    assert "collc: not in the database; searched for " in collc(*use).err
    assert collc(*use, "-q").err == ""
    assert collc("find", "-n", "16", "-d", "4", "--database", database).err == ""


def test_an_interrupted_search_prints_what_it_has(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.cli.signals import Terminated
    from collc.tools import finding

    def interrupted(*arguments: object) -> list[Row]:
        raise Terminated(2)

    monkeypatch.setattr(finding, "assemble", interrupted)
    ran = collc("find", "-n", "24", "-d", "4", "--refresh", "--effort", "50")
    assert ran.status == 130
    assert "interrupted after" in ran.err
    assert "the frontier of the parts that ended" in ran.err
    assert "topologies of 24 nodes and degree 4" in ran.out
    assert "cayley(" in ran.out or "polycirculant(" in ran.out


def test_large_networks_are_searched_with_less_effort() -> None:
    kept: list[Frontier] = []
    found = find(Wanted(2520, 4), evaluations=4, keep=kept.append)
    assert not found.listed
    assert found.frontier
    assert kept
    for row in found.frontier:
        assert (row.nodes, row.degree) == (package.topology(row.expression).num_ranks, 4)
    assert usual_evaluations(2000) > usual_evaluations(2520) > usual_evaluations(10000) > 0


def test_nothing_is_left_on_standard_error_without_a_terminal(collc: Collc) -> None:
    ran = collc("find", "-n", "10", "-d", "4", "--refresh", "--effort", "100", "-j", "1")
    assert (0, "") == (ran.status, ran.err)


@pytest.mark.parametrize(
    ("arguments", "status", "code", "text"),
    [
        (["-d", "4"], 2, "C0001", "needs -n"),
        (["-n", "9"], 2, "C0001", "needs -d"),
        (["-n", "nine", "-d", "4"], 2, "C0001", "whole number"),
        (["-n", "9.5", "-d", "4"], 2, "C0001", "whole number"),
        (["-n", "-9", "-d", "4"], 2, "C0001", "whole number"),
        (["-n", "8..16", "-d", "4"], 2, "C0001", "one -n"),
        (["-n", "16..8", "-d", "4"], 2, "C0001", "a range"),
        (["-n", "4", "-d", "4"], 1, "C0030", "at least 5 nodes"),
        (["-n", "9", "-d", "0"], 1, "C0030", "at least 1"),
        (["-n", "100000", "-d", "4"], 1, "C0030", "at most 10000"),
        (["-n", "5000", "-d", "9"], 1, "C0030", "at most 4096"),
        (["-n", "900", "-d", "800"], 1, "C0030", "at most 64"),
        (["-n", "9", "-d", "3", "--bidirectional"], 1, "C0031", "odd"),
        (["-n", "9", "-d", "4", "--objective", "broadcast"], 2, "C0001", "needs one of"),
        (["-n", "9", "-d", "4", "--size", "many"], 2, "C0020", "--size"),
        (["-n", "9", "-d", "4", "--svg", "missing/a.svg"], 1, "C0004", "missing"),
        (["-n", "9", "-d", "4", "--database", "missing.txt"], 1, "C0002", "missing.txt"),
        (["-n", "9", "-d", "4", "-j", "0"], 2, "C0001", "at least 1"),
        (["-n", "9", "-d", "4", "extra"], 2, "C0001", "no arguments"),
        (["--refresh", "--database", "one.txt", "-d", "2,4"], 2, "C0001", "a folder"),
        (["--refresh", "--database", "no/one.txt", "-d", "2", "-n", "4"], 1, "C0004", "no/one.txt"),
        (["--check", "-d", "0"], 1, "C0030", "at least 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_arguments_are_clear_errors(
    collc: Collc, arguments: list[str], status: int, code: str, text: str
) -> None:
    ran = collc("find", *arguments)
    assert (status, "") == (ran.status, ran.out)
    assert code in ran.err
    assert text in ran.err


def test_a_search_that_finds_nothing_says_so() -> None:
    with pytest.raises(package.CollcError, match="C0034"):
        find(Wanted(8, 7, bidirectional=True), database=("", "none.txt"), work=_Nothing())


@attrs.frozen
class _Nothing(Work):
    """Searches that find nothing."""

    def run(self, function, calls, names, keep=None):  # type: ignore[no-untyped-def]
        raise package.CollcError(_nothing().diagnostics, 3)


def _nothing() -> package.CollcError:
    from collc.ir.diagnostic import error

    return error("C0034", "nothing", exit_status=3)


# ---- the API


def test_the_api_finds_what_the_command_finds(collc: Collc) -> None:
    found = package.find(nodes=9, degree=4, effort=100)
    shown = json.loads(collc("find", "-n", "9", "-d", "4", "--effort", "100", "--json").out)
    assert [row.expression for row in found.frontier] == [row["expression"] for row in shown["frontier"]]
    assert found.best is not None
    assert shown["best"] == found.best.expression
    assert (2, Fraction(8, 9)) == found.bound


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"nodes": 4}, "C0030"), ({"nodes": 9.5}, "C0030"), ({"nodes": "9"}, "C0030"), ({"nodes": True}, "C0030"),
        ({"degree": -1}, "C0030"), ({"objective": "broadcast"}, "C0032"), ({"alpha": "10"}, "C0020"),
        ({"alpha": float("nan")}, "C0020"), ({"bandwidth": 0}, "C0020"), ({"size": -1}, "C0030"),
        ({"degree": 3, "bidirectional": True}, "C0031"),
    ],
    ids=str,
)  # fmt: skip
def test_the_api_raises_clear_errors(options: dict[str, object], code: str) -> None:
    with pytest.raises(package.CollcError, match=code):
        package.find(**{"nodes": 9, "degree": 4, **options})  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_executor_finds_the_same_and_tells_of_it() -> None:
    seen: list[tuple[str, int, int]] = []
    alone = package.find(nodes=24, degree=4, refresh=True, effort=200)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        shared = package.find(
            nodes=24, degree=4, refresh=True, effort=200, executor=executor, progress=lambda *step: seen.append(step)
        )
    assert alone == shared
    assert any(done == total > 0 for _, done, total in seen)


def test_a_lost_worker_is_an_error() -> None:
    with pool(2) as executor, pytest.raises(package.CollcError, match="C0024"):
        Work(executor).run(_ends, [(0,)], ["ends"])


def _ends(status: int) -> None:
    os._exit(status)


def test_bounds_are_moore_s_and_theorem_4_s() -> None:
    for nodes, degree in [(1024, 4), (9, 4), (50, 7), (10, 3), (5, 2), (2, 1)]:
        one = Frontier(Wanted(nodes, degree), ()).bound
        both = Frontier(Wanted(nodes, degree, bidirectional=True), ()).bound
        assert (moore_steps(nodes, degree), Fraction(nodes - 1, nodes)) == one
        assert both[0] >= one[0]
    # The Petersen and the Hoffman-Singleton graph reach it.
    assert 2 == Frontier(Wanted(10, 3, bidirectional=True), ()).bound[0]
    assert 2 == Frontier(Wanted(50, 7, bidirectional=True), ()).bound[0]
    assert 3 == Frontier(Wanted(52, 7, bidirectional=True), ()).bound[0]


# ---- databases


def test_a_database_is_built_extended_and_checked(collc: Collc) -> None:
    options = ("find", "--refresh", "--database", "made.txt", "-d", "4", "--effort", "20", "-j", "1")
    first = collc(*options, "-n", "5..9")
    assert (0, "") == (first.status, first.err)
    assert "4 sizes" in first.out
    collc(*options, "-n", "9..12")
    whole = Path("made.txt").read_text()
    assert "# searched 5..12 with effort 20, seed 0\n" in whole
    Path("made.txt").unlink()
    collc(*options, "-n", "5..12")
    assert whole == Path("made.txt").read_text()
    assert (
        "have the costs of their rows" in collc("find", "--check", "--database", "made.txt", "-d", "4", "-j", "1").out
    )


def test_a_wrong_row_fails_the_check(collc: Collc, database: str) -> None:
    wrong = DATABASE.replace("16 2 1 1", "16 2 15/16 -").replace("9 2 8/9 8/9 2 <-> 1/3", "10 2 9/10 - 2 <-> -")
    Path(database).write_text(wrong)
    ran = collc("find", "--check", "--database", database, "-d", "4", "-j", "1")
    assert (1, "") == (ran.status, ran.out)
    assert 2 == ran.err.count("[C0033]")
    assert "T_B is 1, the row has 15/16" in ran.err
    assert "has 9 ranks of degree 4" in ran.err
    assert 0 == collc("find", "--check", "--database", database, "-d", "4", "-n", "9", "-j", "1").status


def test_a_database_that_is_none_is_an_error(collc: Collc, database: str) -> None:
    Path(database).write_text(DATABASE + "16 is a number\n")
    assert "best.txt:6" in collc("find", "-n16", "-d4", "--database", database).err
    Path(database).write_text("# searched all with effort 3, seed 0\n")
    ran = collc("find", "--refresh", "--database", database, "-d4", "-n9", "-j1")
    assert (1, True) == (ran.status, "C0570" in ran.err)


@pytest.mark.slow
def test_an_interrupted_build_goes_on_where_it_stopped() -> None:
    how, sizes = Searched(20, 0), range(5, 40 if EXHAUSTIVE else 22)
    whole = build(4, sizes, "", "made.txt", how, Work(), lambda text: None)
    kept: list[str] = []

    def stop(text: str) -> None:
        kept.append(text)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(4, sizes, "", "made.txt", how, Work(), stop)
    assert whole != kept[0]
    assert whole == build(4, sizes, kept[0], "made.txt", how, Work(), lambda text: None)
    asked: list[str] = []
    again = build(4, sizes, whole, "made.txt", how, Work(None, lambda *step: asked.append(step[0])), lambda text: None)
    assert (whole, []) == (again, asked)


def test_better_rows_are_not_lost() -> None:
    best = "12 1 11/12 11/12 1 <-> - bfb better(12)\n"
    text = build(4, [12], best, "made.txt", Searched(20, 0), Work(), lambda text: None)
    assert best in text


def test_sizes_that_machines_have_are_searched_longer() -> None:
    assert evaluations_for(1023, 100) < evaluations_for(1016, 100) < evaluations_for(1024, 100)


# ---- the shipped database


@pytest.mark.parametrize("nodes", [32, 64, 128, 256, 512, 1024])
def test_every_published_row_of_table_7_is_dominated(nodes: int) -> None:
    found = parse_rows(shipped(4) or "", 4, "shipped", nodes)
    for name, steps, bandwidth, *_ in TABLES["table7_d4"][str(nodes)]:
        # printed with three digits
        most = Fraction(str(bandwidth)) + Fraction(1, 2000)
        assert name == "bound" or any(row.T_L <= steps and row.T_B <= most for row in found), name
    assert frontier(found, bidirectional=True)


#: what a minute of random search reaches
REACHED = {
    32: [(3, "31/32")], 64: [(3, "17/16"), (4, "63/64")], 128: [(4, "127/128")], 256: [(4, "69/64"), (5, "255/256")],
    512: [(5, "1"), (6, "511/512")], 1024: [(5, "277/256"), (6, "257/256"), (7, "1023/1024")],
}  # fmt: skip


@pytest.mark.parametrize("nodes", REACHED)
def test_the_database_holds_what_is_known_to_be_reached(nodes: int) -> None:
    found = parse_rows(shipped(4) or "", 4, "shipped", nodes)
    for steps, bandwidth in REACHED[nodes]:
        assert any(row.T_L <= steps and row.T_B <= Fraction(bandwidth) for row in found)


#: two-way networks that a longer search with links both ways found
@pytest.mark.parametrize(
    ("degree", "nodes", "steps"), [(3, 336, 10), (3, 1000, 13), (4, 168, 5), (4, 504, 6), (4, 885, 9), (4, 1996, 16)]
)
def test_the_database_has_two_way_networks_of_few_steps(degree: int, nodes: int, steps: int) -> None:
    found = frontier(parse_rows(shipped(degree) or "", degree, "shipped", nodes), bidirectional=True)
    assert any(row.T_L <= steps and row.T_B == Fraction(nodes - 1, nodes) for row in found)


@pytest.mark.parametrize(
    ("degree", "nodes", "steps", "bandwidth"),
    [(4, 1996, 9, "1.014"), (4, 1995, 9, "1.025"), (4, 1999, 9, "1.1"),
     (3, 1996, 15, "1.1"), (3, 1000, 12, "1.06"), (6, 1000, 6, "1.05")],
)  # fmt: skip
def test_the_database_has_two_way_networks_between_the_bounds(
    degree: int, nodes: int, steps: int, bandwidth: str
) -> None:
    found = frontier(parse_rows(shipped(degree) or "", degree, "shipped", nodes), bidirectional=True)
    assert any(row.T_L <= steps and row.T_B <= Fraction(bandwidth) for row in found)


#: (degree, nodes) -> steps: large graphs of their degree and diameter, and sizes without symmetric networks
LOW_LATENCY = {
    (3, 20): 3, (3, 34): 4, (3, 38): 4, (3, 70): 5, (4, 15): 2, (4, 41): 4, (4, 364): 5, (6, 31): 2, (6, 32): 2,
    (8, 57): 2, (3, 254): 9, (3, 1226): 12, (4, 1289): 8, (8, 409): 4,
}  # fmt: skip


@pytest.mark.parametrize(("degree", "nodes"), LOW_LATENCY)
def test_the_database_has_two_way_networks_of_low_latency(degree: int, nodes: int) -> None:
    steps = LOW_LATENCY[degree, nodes]
    rows = [row for row in parse_rows(shipped(degree) or "", degree, "shipped", nodes) if row.bidirectional]
    fastest = min(rows, key=lambda row: row.T_L)
    assert moore_graph_steps(nodes, degree) <= fastest.T_L <= steps
    assert package.topology(fastest.expression).diameter == fastest.T_L
    assert fastest.alltoall_rate is not None


@pytest.mark.slow
def test_other_code_finds_the_costs_of_two_way_rows_of_degree_three() -> None:
    """A greedy flow on all nodes of the network, not the orbit of one node of its group."""
    rows = [row for row in parse_rows(shipped(3) or "", 3, "shipped") if row.nodes <= 200 and row.bidirectional]
    assert len(rows) > 98
    for row in rows:
        topology = package.topology(row.expression)
        assert topology.reverse_links is not None
        assert (topology.num_ranks, topology.degree) == (row.nodes, 3)
        if row.scheduler == "bfb":
            assert wide_cost(topology) == (row.T_L, row.T_B), row


@pytest.mark.slow
@pytest.mark.parametrize("degree", [d for d in DEGREES if shipped(d)])
def test_rows_of_the_shipped_database_cost_what_they_say(degree: int) -> None:
    rows = [row for row in parse_rows(shipped(degree) or "", degree, "shipped") if row.nodes <= 400]
    for row in rows[:: max(len(rows) // (25 if EXHAUSTIVE else 12), 1)]:
        assert row_mistakes(row, package.topology) == []


def test_a_look_up_takes_less_than_a_second(tmp_path: Path) -> None:
    before = os.times()
    done = subprocess.run([COMMAND, "find", "-n", "1024", "-d", "4"], cwd=tmp_path, capture_output=True, check=True)
    assert b"bound" in done.stdout
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert 0 < spent < 1


# ---- pictures


def test_the_picture_is_deterministic_well_formed_and_complete(collc: Collc, database: str) -> None:
    for name in ("a.svg", "b.svg"):
        assert 0 == collc("find", "-n16", "-d4", "--database", database, "--svg", name).status
    text = Path("a.svg").read_text()
    assert text == Path("b.svg").read_text()
    root = check(text)
    words = " ".join(root.itertext())
    for needed in ("circulant(16, {3, 4})", "T_L (steps)", "T_B (M/B)", "bound: 2 steps", "bound: 15/16 M/B"):
        assert needed in words
    space = "{http://www.w3.org/2000/svg}"
    squares = [
        each for each in root.findall(f"{space}a/{space}rect") if each.get("class") == "fill c1"
    ]  # legends are groups
    circles = [each for each in root.findall(f"{space}a/{space}circle") if each.get("class") == "fill c0"]
    rings = [each for each in root.findall(f"{space}circle") if each.get("class") == "ring ink"]
    assert (1, 1, 1) == (len(squares), len(circles), len(rings))
    assert "circulant(16, {3, 4}): 3 steps, 15/16 M/B" in [title.text for each in squares for title in each]
    (link,) = [one for one in root.findall(f"{space}a") if squares[0] in list(one)]
    (row,) = [one for one in root if f"#{one.get('id')}" == link.get("href")]
    assert "circulant(16, {3, 4}): 3 steps, 15/16 M/B" in " ".join(row.itertext())


def test_text_in_pictures_is_escaped() -> None:
    row = Row('line(<&"name">)', 16, 4, 2, Fraction(1), 2, False)
    text = pareto_svg(Frontier(Wanted(16, 4), (row,)))
    assert 'line(<&"name">)' in " ".join(ElementTree.fromstring(text).itertext())
