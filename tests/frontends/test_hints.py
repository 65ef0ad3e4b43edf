"""What hints offer: names that exist, quantities of the kind that is needed, calls that build."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.backends import TARGETS
from collc.frontends import coll
from collc.frontends.coll import guesses
from collc.frontends.coll.families import FAMILIES, OPERATORS
from collc.frontends.coll.families.examples import EXAMPLES
from collc.frontends.coll.guesses import NEEDED, Vocabulary, did_you_mean
from collc.frontends.coll.kinds import DTYPES, OPTIONS, PREDEFINED
from collc.frontends.coll.limits import LARGEST_NODE_LIMIT, limit_hint
from collc.frontends.coll.unit_hints import other_measure, unknown_unit
from collc.frontends.coll.values import Quantity
from collc.frontends.units import BANDWIDTH, MEASURES, SIZE, TIME, UNITS
from collc.ir.collective import OPERATIONS
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.passes import SCHEDULERS

WORDS = Vocabulary(tuple(SCHEDULERS), tuple(TARGETS))
_QUANTITY = re.compile(r"`(\d+(?:\.\d+)?) ([A-Za-z/]+)`")


def mistakes(text: str, **more: object) -> list[Diagnostic]:
    with pytest.raises(CollcError) as caught:
        coll.load("<test>", text=text, schedulers=SCHEDULERS, targets=TARGETS, **more)  # type: ignore[arg-type]
    return list(caught.value.diagnostics)


def hint(text: str) -> str:
    (found,) = mistakes(text)
    return found.hint or ""


# ---- names


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_builds(name: str) -> None:
    assert coll.topology(EXAMPLES[name]).num_ranks > 1


@pytest.mark.parametrize("word", guesses._TOPOLOGIES)
def test_every_topology_that_a_word_may_mean_builds(word: str) -> None:
    for call in guesses._TOPOLOGIES[word]:
        if guesses._exists(call):
            assert coll.topology(call).num_ranks > 1


def test_a_topology_that_is_not_available_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(guesses._TOPOLOGIES, "moon", ("moon_base(8)", "torus(4, 4)"))
    assert WORDS.hint("moon", "topology", ()) == "write `torus(4, 4)`"


@pytest.mark.parametrize(
    ("table", "known"),
    [
        (guesses._COLLECTIVES, PREDEFINED),
        (guesses._SCHEDULERS, tuple(SCHEDULERS)),
        (guesses._TARGETS, tuple(TARGETS)),
        (guesses._OPERATIONS, OPERATIONS),
        ({word: name for word, (name, _) in guesses._DTYPES.items()}, DTYPES),
        (guesses._OPTIONS, OPTIONS),
        (guesses._DEFAULTS, ("bandwidth", "latency", "reduction", "launch")),
        (guesses._OF_CLUSTERS, ("hosts", "nic")),
    ],
    ids=["collectives", "schedulers", "targets", "operations", "dtypes", "options", "defaults", "clusters"],
)
def test_every_habit_leads_to_a_name_and_is_none(table: dict[str, str], known: tuple[str, ...]) -> None:
    assert set(table.values()) <= set(known)
    assert not set(table) & set(known), "a name needs no hint"
    assert all(word == guesses.folded(word) for word in table), "words are looked up without case, `-` and `_`"


@pytest.mark.parametrize("need", NEEDED)
def test_a_hint_is_of_the_kind_that_is_needed(need: str) -> None:
    """A word of another kind is called so; it is never offered."""
    known = {
        "topology": (*FAMILIES, *OPERATORS), "collective": PREDEFINED, "scheduler": tuple(SCHEDULERS),
        "target": tuple(TARGETS), "operation": OPERATIONS, "element type": DTYPES, "option": ("size", "op"),
        "default": ("bandwidth", "latency"), "function": ("min", "max"), "option of a cluster": ("hosts", "nic"),
    }[need]  # fmt: skip
    for word in ("bfb", "torus", "mpi-c", "alltoall", "sum", "GB", "float32"):
        if word in known:
            continue
        found = WORDS.hint(word, need, known) or ""
        offered = re.findall(r"(?:did you mean|write) `(\w[\w-]*)", found)
        assert all(name in known for name in offered), (word, found)


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("BFB", ("bfb",), "bfb"), ("fat-tree", ("fat_tree",), "fat_tree"), ("tours", ("torus", "ring"), "torus"),
        ("zzz", ("torus",), None), ("x" * 1000, ("x" * 1000 + "y",), None),
    ],
)  # fmt: skip
def test_the_nearest_name(word: str, known: tuple[str, ...], expected: str | None) -> None:
    assert did_you_mean(word, known) == (f"did you mean `{expected}`?" if expected else None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("topology t = ring;", "`ring` is a scheduler; write `biring(8)` or `uniring(8)`"),
        ("topology t = torus[4, 4];", "write `torus(4, 4)`"),
        ("topology t = dgx-h100(2);", "did you mean `dgx_h100`?"),
        ("topology t = torus({4, 4});", "write `torus(4, 4)`"),
        ("topology t = circulant({1, 3}, 8);", "write `circulant(8, {1, 3})`"),
        ("topology t { rank gpu[4]; link gpu0 -> gpu[1]; }", "write `gpu[0]`"),
        ("let n = ranks(ring);", "write `biring(8)`"),
        ("collective g = allreduce on torus(3); schedule g using torus;", "`torus` is a graph family"),
    ],
)
def test_hints_of_mistakes(text: str, part: str) -> None:
    found = mistakes(text)[0]
    assert part in (found.hint or "")


# ---- units


def quantities(text: str) -> list[tuple[Fraction, str]]:
    """Return the quantities that a hint offers: multiples of the base unit, and what they measure."""
    return [(Fraction(number) * UNITS[unit][1], UNITS[unit][0]) for number, unit in _QUANTITY.findall(text)]


_FOREIGN = st.sampled_from([
    f"{prefix}{base}{rate}"
    for prefix in ("", "k", "K", "m", "M", "g", "G", "T", "Ki", "ki", "Mi", "mi")
    for base in ("b", "B", "bit", "bytes", "")
    for rate in ("", "/s", "ps", "s", "/sec")
    if f"{prefix}{base}{rate}" and f"{prefix}{base}{rate}" not in UNITS
])  # fmt: skip


@given(st.integers(1, 1000), _FOREIGN | st.text(max_size=6), st.sampled_from([(), *((m,) for m in MEASURES)]))
def test_hints_for_units_offer_what_is_needed(number: int, unit: str, needs: tuple[str, ...]) -> None:
    """Whatever the unit: quantities in a hint have units that exist, and measure what the place needs."""
    found = unknown_unit(Fraction(number), unit, needs)
    offered = re.findall(r"write `([^`]*)`", found)
    assert all(re.fullmatch(r"\d+(\.\d+)?( [A-Za-z/]+)?", text) for text in offered), found
    if needs:
        assert {measure for _, measure in quantities(found)} <= set(needs), found


@given(st.integers(1, 1000), st.sampled_from(sorted(UNITS)), st.sampled_from(MEASURES))
def test_another_measure_keeps_its_amount(number: int, unit: str, need: str) -> None:
    """A size becomes a bandwidth of as much a second, and the other way round; bits are no bytes."""
    measure, scale = UNITS[unit]
    found = Quantity(number * scale, measure, f"{number} {unit}")
    if measure != need:
        for amount, what in quantities(other_measure(found, (need,))):
            assert (amount, what) == (found.value, need)


def test_bits_are_eight_to_a_byte() -> None:
    assert unknown_unit(Fraction(64), "Mb", (SIZE,)).endswith("or `8 MB` for 64 megabits")
    assert other_measure(Quantity(Fraction(10**11), SIZE, "100 GB"), (BANDWIDTH,)).endswith("which is `800 Gbps`")


@pytest.mark.parametrize(("unit", "expected"), [("µs", "us"), ("μs", "us"), ("US", "us"), ("sec", "s"), ("Ns", "ns")])
def test_times(unit: str, expected: str) -> None:
    assert unknown_unit(Fraction(3), unit, (TIME,)) == f"write `3 {expected}`"


def test_a_hint_of_another_measure_is_not_the_found_unit() -> None:
    """What the parser refused is not offered again."""
    assert "64 Gbps" not in hint("collective g = allreduce on torus(3) { size: 64 Gbps };")


# ---- limits


@pytest.mark.parametrize("text", ["topology t = torus(5, 5);", "topology t { rank g[40]; link g[0] -> g[1]; }",
                                  "topology t = complete(30);"])  # fmt: skip
def test_the_limit_that_a_hint_names_is_enough(text: str) -> None:
    found = re.search(r"--node-limit (\d+)", mistakes(text, node_limit=10)[0].hint or "")
    assert found is not None
    coll.load("<test>", text=text, node_limit=int(found[1]))


def test_a_limit_that_no_memory_could_serve_is_not_offered() -> None:
    assert "--node-limit" in limit_hint(LARGEST_NODE_LIMIT) and "--node-limit" not in limit_hint(LARGEST_NODE_LIMIT + 1)
    (found,) = mistakes("topology t = torus(100000000000000000000, 4);")
    assert found.hint is not None and "--node-limit" not in found.hint


# ---- second places


def related(text: str, **more: object) -> list[tuple[str, str]]:
    return [(r.message, str(r.span).rpartition(">")[2] or str(r.span)) for r in mistakes(text, **more)[0].related]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("param n = 0; topology t = torus(n);", [("`n` is 0", ":1:7")]),
        ("param n = 1; let m = n / 2; topology t = torus(m);", [("`m` is 1/2", ":1:18")]),
        ("let t = 3 us; topology u = torus(3) with { bandwidth: t };", [("`t` is 3 us", ":1:5")]),
        ("topology t { rank a[2]; link a[0] -> a[2]; }", [("the declaration", ":1:19")]),
        ("topology t { param k = 0; rank a[k]; }", [("`k` is 0", ":1:20")]),
        ("topology t { rank a[2]; for i in 0..3 { link a[i] -> a[0]; } }", [("the declaration", ":1:19")]),
        ("topology t = torus(3); collective t2 = allreduce on t; emit t as ir;", [("the topology", ":1:10")]),
        ("param n = 1; param n = 2;", [("the first declaration", ":1:7")]),
        ("topology t = torus(0);", []),
        ("param n = 3; topology t = torus(n, 0);", []),
    ],
)
def test_the_second_place_is_the_one_that_explains(text: str, expected: list[tuple[str, str]]) -> None:
    assert related(text) == expected


def test_a_value_of_the_command_line_is_the_second_place() -> None:
    (found,) = mistakes("param n = 4; topology t = torus(n);", params={"n": 0})
    (place,) = found.related
    assert (place.message, str(place.span)) == ("`-D` sets `n` to 0", "<-D n>:1:1")


def test_names_of_a_missing_file_are_not_reported() -> None:
    text = 'include "gone.coll";\ntopology t = torus(site, 3);\ncollective g = allreduce on pod;\nemit h as ir;'
    assert [d.code for d in mistakes(text)] == ["C0150"]
    assert [d.code for d in mistakes(text + "topology pods = torus(3); let x = ranks(podz);")] == ["C0150", "C0120"]


def test_nothing_of_a_hidden_file_is_told(tmp_path: Path) -> None:
    """A file outside of the main file's folder is named, with no value of it."""
    (tmp_path / "outside.coll").write_text("param n = 7 / 2;\n")
    (tmp_path / "in").mkdir()
    main = tmp_path / "in" / "main.coll"
    main.write_text('include "../outside.coll";\ntopology t = torus(n);\n')
    with pytest.raises(CollcError) as caught:
        coll.load(str(main))
    (found,) = caught.value.diagnostics
    assert [place.message for place in found.related] == ["the declaration of `n`"]
