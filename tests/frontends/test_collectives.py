"""Collectives with weights, among members, and of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError

NETWORKS = """
topology ring = uniring(4);
topology pod = torus(3, 3);
topology box { rank gpu[2, 4]; switch nv[2]; for b in 0..2, g in 0..4 { link gpu[b, g] <-> nv[b]; } link nv[0] <-> nv[1]; }
"""  # noqa: E501 (one declaration)


def read(text: str, path: str = "<test>") -> Collective:
    """Return the last collective of a text."""
    spec = load(path, text=NETWORKS + text)
    return list(spec.collectives.values())[-1].problem.collective


def message(text: str) -> str:
    with pytest.raises(CollcError) as raised:
        read(text)
    return str(raised.value)


# ---- weights


@pytest.mark.parametrize(
    ("text", "kind", "weights"),
    [
        ("allgatherv on ring { weights: {5, 0, 1, 1} }", "allgather", (5, 0, 1, 1)),
        ("reduce-scatterv on ring { weights: {r * r for r in 0..4} }", "reduce-scatter", (0, 1, 4, 9)),
        ("gatherv on ring { weights: {1/2, 1/3, 1, 0}, root: 3 }", "gather", (3, 2, 6, 0)),
        ("scatterv on ring { root: 0, weights: {0.5, 0..3} }", "scatter", (1, 0, 2, 4)),
        ("alltoallv on pod among {0, 4} { matrix: {{0, 2}, {3, 3}} }", "alltoall", (0, 2, 3, 3)),
        ("alltoallv on pod among {0, 4} { matrix: {{a + b for b in 0..2} for a in 0..2} }", "alltoall", (0, 1, 1, 2)),
        ("allgatherv on pod among {1, 2, 8} { weights: {7, 7, 7} }", "allgather", (7, 7, 7)),
        ("shift on ring { weights: {1, 2, 3, 3} }", "custom", (1, 2, 3, 3)),
    ],
)  # fmt: skip
def test_weights(text: str, kind: str, weights: tuple[int, ...]) -> None:
    """Lists keep their order and repeated numbers; fractions become whole numbers in the same ratios."""
    shift = "collective shift { pre: 0..ranks post: {(r + 1) mod ranks for r in 0..ranks} }"
    found = read(f"{shift} collective c = {text};")
    assert (found.kind, found.weights) == (kind, weights)


def test_sizes_are_weights_and_the_size() -> None:
    mib = 1 << 20
    found = read("collective c = allgatherv on ring { weights: {64 MiB, 0 MiB, 0, 32 MiB} };")
    assert (found.weights, found.size) == ((2, 0, 0, 1), 96 * mib)
    found = read("collective c = allgatherv on ring { size: 1 MiB, weights: {64 MiB, 0 B, 0 B, 32 MiB} };")
    assert (found.weights, found.size) == ((2, 0, 0, 1), mib)
    found = read("collective c = alltoallv on ring among {0, 2} { matrix: {{1 KiB, 3 KiB}, {0, 2 KiB}} };")
    assert (found.weights, found.size) == ((1, 3, 0, 2), 4 << 10)


numbers = st.fractions(min_value=0, max_value=1000, max_denominator=20)


@settings(max_examples=examples(40))
@given(st.lists(numbers, min_size=4, max_size=4).filter(any))
def test_weights_have_the_ratios_of_what_is_written(written: Sequence[Fraction]) -> None:
    found = read(f"collective c = allgatherv on ring {{ weights: {{{', '.join(map(str, written))}}} }};").weights
    scale = lcm(*(one.denominator for one in written))
    assert found == tuple(int(one * scale) for one in written)


rows = st.lists(st.lists(st.integers(0, 99), min_size=3, max_size=3), min_size=3, max_size=3).filter(
    lambda rows: any(map(any, rows))
)


@settings(max_examples=examples(20))
@given(rows, st.sampled_from([",", " ", ";", "\t", ", "]), st.booleans())
def test_files_of_weights(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], sign: str, ended: bool
) -> None:
    """A matrix in a CSV or JSON file is the matrix in the text."""
    folder = tmp_path_factory.mktemp("counts")
    lines = "\n".join(sign.join(map(str, row)) for row in rows)
    (folder / "m.csv").write_text(f"# source by target\n{lines}{chr(10) * ended}")
    (folder / "m.json").write_text(json.dumps(rows, indent=1 if ended else None))
    flat = tuple(one for row in rows for one in row)
    for name in ("m.csv", "m.json"):
        text = f'collective c = alltoallv on ring among {{0, 1, 3}} {{ matrix: "{name}" }};'
        assert read(text, str(folder / "x.coll")).weights == flat


@pytest.mark.parametrize(
    "text", ["5\n0\n1\n1\n", "5, 0, 1, 1", "[5, 0, 1, 1]", "[[5], [0], [1], [1]]", "5e0 0.0 1. +1"]
)
def test_a_row_or_a_column_of_weights(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.txt").write_text(text)
    spec = load(
        str(tmp_path / "x.coll"),
        text='topology t = uniring(4); let where = "w.txt"; collective c = allgatherv on t { weights: where };',
    )
    assert spec.collectives["c"].problem.collective.weights == (5, 0, 1, 1)
    assert spec.files == (str(tmp_path / "x.coll"), str(tmp_path / "w.txt"))


# ---- members and conditions


def test_members() -> None:
    assert read("collective c = allreduce on pod among {r * 4 for r in 0..3};").members == (0, 4, 8)
    assert read("collective c = broadcast on pod among {0..3, 8} { root: 8 };").members == (0, 1, 2, 8)
    assert read("collective c = allgather on box among {gpu[0, 3], gpu[1, 0]};").members == (3, 4)
    assert read("collective c = allgather on box among {gpu[b, 2] for b in 0..2};").members == (2, 6)
    assert read("let some = {1, 3}; collective c = allgather on ring among some;").members == (1, 3)
    assert read("collective c = allgather on ring among 0..4;").members is None


def test_kinds_of_ones_own() -> None:
    shift = "collective shift { pre: 0..ranks; post: {(r + 1) mod ranks for r in 0..ranks}, }"
    found = read(f"{shift} collective c = shift on ring;")
    assert (found.pre, found.post) == ((0, 1, 2, 3), ((1,), (2,), (3,), (0,)))
    found = read(f"{shift} collective c = shift on pod among {{1, 5, 8}};")
    assert (found.pre, found.post, found.members) == ((1, 5, 8), ((5,), (8,), (1,)), None)
    found = read("collective c = custom on box { pre: {gpu[1, 0], 0}, post: {{gpu[0, 1], 0}, {}} };")
    assert (found.pre, found.post) == ((4, 0), ((0, 1), ()))


def test_neighbours() -> None:
    """Each link is a shard: of parallel links, each has one."""
    found = read("collective c = neighbours on torus(2, 3);")
    assert found.num_shards == 6 * 4
    assert sorted(post for pre, (post,) in zip(found.pre or (), found.post or (), strict=True) if pre == 0) == [
        1,
        2,
        3,
        3,
    ]
    assert "no link between two ranks" in message("collective c = neighbours on box;")


def test_comprehensions_are_sets_everywhere() -> None:
    """Also as arguments of families and as domains of loops."""
    spec = load(
        "<test>",
        text="topology a = circulant(9, {d + 1 for d in 0..2}); topology b { rank r[9];"
        " for i in 0..9, d in {2 * k - 3 for k in 1..3 if k != 0} { link r[i] -> r[(i + d) mod 9]; } }",
    )
    assert spec.topologies["a"].num_links == 36
    assert spec.topologies["b"].num_links == 18


# ---- together

HYBRID = """
param boxes = 2;
topology pod = dgx_a100(boxes);
together {
  let bytes = 1 MiB;
  for b in 0..boxes { collective tp[b] = allreduce on pod among {gpu[b, g] for g in 0..8} { size: (b + 1) * bytes }; }
  for g in 0..8 { collective dp[g, 0] = allreduce on pod among {gpu[b, g] for b in 0..boxes}; }
  if boxes > 2 { collective all = allgather on pod; }
}
schedule tp using forest;
schedule dp[3, 0] using ring;
emit tp as mpi-c;
emit dp[3, 0] as mpi-c;
"""


def test_together() -> None:
    """Loops declare families; a schedule or emit is of all or of one."""
    spec = load("<test>", text=HYBRID)
    assert spec.together == (("tp[0]", "tp[1]", *(f"dp[{g}, 0]" for g in range(8))),)
    found = {name: one.problem.collective for name, one in spec.collectives.items()}
    assert [(found[f"tp[{b}]"].members, found[f"tp[{b}]"].size) for b in range(2)] == [
        (tuple(range(8)), 1 << 20), (tuple(range(8, 16)), 2 << 20),
    ]  # fmt: skip
    assert found["dp[3, 0]"].members == (3, 11)
    assert [one.schedule.scheduler for one in spec.collectives.values()] == ["forest"] * 2 + ["auto"] * 3 + ["ring"] + [
        "auto"
    ] * 4
    assert [name for name, one in spec.collectives.items() if one.emits] == ["tp[0]", "tp[1]", "dp[3, 0]"]
    assert len({id(one.problem.topology) for one in spec.collectives.values()}) == 1
    assert "all" in load("<test>", text=HYBRID, params={"boxes": 3}).together[0]


def test_each_block_is_a_group() -> None:
    text = "topology t = uniring(4); together { collective a = allreduce on t; } collective b = allreduce on t;"
    assert load("<test>", text=f"{text} together {{ collective c = allgather on t; }}").together == (("a",), ("c",))
    assert load("<test>", text=text + "schedule a using ring;").together == (("a",),)


def test_steps_are_of_each_collective_of_a_family() -> None:
    text = (
        "topology t = complete(4); together { for b in 0..2 { collective c[b] = broadcast on t among {2 * b, 2 * b + 1}"
        " { root: 2 * b }; } } schedule c using steps { at 0: send shard 0 from 0 to 1; }"
    )
    found = load("<test>", text=text).collectives
    assert all(one.schedule.schedule is not None for one in found.values())


def test_variables_of_a_set_may_have_the_name_of_a_value_of_the_file() -> None:
    assert read("let r = 2; collective c = allreduce on ring among {r for r in 0..r};").members == (0, 1)
    assert "`g` is declared twice" in message(
        "together { for g in 0..2 { collective c[g] = allreduce on ring among {g for g in 0..2}; } }"
    )
    assert "`r` is declared twice" in message("collective c = allreduce on ring among {r for r in 0..2 for r in 0..2};")


def test_lists_have_names() -> None:
    """A repeated number, a size or a list in braces is right where a list stands, and wrong everywhere else."""
    assert read("let w = {5, 0, 1, 1}; collective c = allgatherv on ring { weights: w };").weights == (5, 0, 1, 1)
    text = "param w = {1 MiB, 0 B, 2 MiB, 2 MiB}; collective c = allgatherv on ring { weights: w };"
    assert read(text).size == 5 << 20
    given = load("<test>", text=NETWORKS + text, params={"w": "{r mod 2 for r in 0..4}"}).collectives["c"]
    assert given.problem.collective.weights == (0, 1, 0, 1)
    text = "let row = {0, 3, 3}; let m = {row, {1, 1, 1}, row};"
    found = read(f"{text} collective c = alltoallv on ring among 0..3 {{ matrix: m }};")
    assert found.weights == (0, 3, 3, 1, 1, 1, 0, 3, 3)
    found = read("let after = {{1, 2}, {0}}; collective c = custom on ring { pre: {0, 1}, post: after };")
    assert found.post == ((1, 2), (0,))
    assert "found 1 twice in a set" in message("let w = {1, 1};")
    assert "found 1 twice in a set" in message("let w = {1, 1}; topology t = circulant(8, w);")
    assert "found 1/2, needed an integer" in message("let w = {1/2, 1}; topology t = circulant(8, w);")
    assert "found member 1 twice" in message("let w = {1, 1}; collective c = allreduce on ring among w;")


def test_weights_of_other_folders_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("7654321\n-1\n")
    (tmp_path / "in").mkdir()
    text = 'topology t = uniring(2); collective c = allgatherv on t { weights: "../w.csv" };'
    with pytest.raises(CollcError) as raised:
        load(str(tmp_path / "in" / "x.coll"), text=text)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("C0217", "found weights that do not fit the collective")
    assert found.span is not None and (found.span.line, found.span.source.hidden) == (2, True)
