"""Names of nodes in quotes: wherever a node stands, and in everything that is made of a network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Ran
from hypothesis import example, given
from hypothesis import strategies as st

import collc as package
from collc.frontends.coll import format_text, load, topology
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.node_names import node_text
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import LinkClass, Topology

#: names that would end a comment, an element or a string of some output
EVIL = (
    "a*/ #include <x>",
    "b-->",
    "<c>&amp;%s",
    "\u05e9\u05dc\u05d5\u05dd",
    "d' ?> ]]>",
    "e\\",
    "`f`",
    "\u00e9\U0001f600",
)
HUB = "</svg>*/--&%\\n"

names = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='"'), min_size=1, max_size=9)


def star(ranks: tuple[str, ...], hub: str, family: bool = False) -> str:
    """The text of a network of ranks below one switch."""
    lines = [f'rank "{name}";' for name in ranks] + [f'switch "{hub}";']
    lines += [f'link "{name}" <-> "{hub}" : 25 GB/s, 1 us;' for name in ranks]
    return f"topology t {{ {' '.join(lines)} }}"


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(CollcError) as caught:
        load("t.coll", text=text)
    return caught.value.diagnostics


def t_of(text: str, name: str = "t") -> Topology:
    return load("t.coll", text=text).topologies[name]


# ---- where a node stands

SAME = [
    ("rank gpu[2]; switch nv;", 'rank "gpu"[2]; switch "nv";'),
    ("rank gpu[2]; switch nv;", 'rank "gpu[0]", "gpu[1]"; switch nv;'),
    ("link gpu[0] <-> nv; link nv -> gpu[1];", 'link "gpu[0]" <-> "nv"; link nv -> "gpu"[1];'),
    ("for i in 0..2 { link gpu[i] -> nv; }", 'for i in 0..2 { link "gpu"[i] -> "nv"; }'),
]


@pytest.mark.parametrize(("plain", "quoted"), SAME)
def test_a_node_is_the_same_with_quotes_and_without(plain: str, quoted: str) -> None:
    nodes = "" if "rank" in plain else "rank gpu[2]; switch nv; "
    tail = "link gpu[0] <-> nv; link gpu[1] <-> nv;"
    assert t_of(f"topology t {{ {nodes}{plain} {tail} }}") == t_of(f"topology t {{ {nodes}{quoted} {tail} }}")


@pytest.mark.parametrize(
    ("plain", "quoted"),
    [
        ("without(dgx_a100(2), {gpu[0, 3]})", 'without(dgx_a100(2), {"gpu[0, 3]"})'),
        ("without(dgx_a100(2), {gpu[1, 0] <-> ib})", 'without(dgx_a100(2), {"gpu[1,0]" <-> "ib"})'),
        ("without(dgx_a100(2), {nv[1]})", 'without(dgx_a100(2), {"nv"[1]})'),
        ("degraded(mi250(1), {gpu[0, 1]}, 1/2)", 'degraded(mi250(1), {"gpu[0, 1]"}, 1/2)'),
        ("subset(mi250(2), {gpu[0, 0], gpu[1, 3]})", 'subset(mi250(2), {"gpu[1, 3]", "gpu[0, 0]"})'),
        ("relabel(subset(dgx_a100(1), {0..3}), {2, 0, 1})",
         'relabel(subset(dgx_a100(1), {0..3}), {"gpu[0, 2]", 0, "gpu[0, 1]"})'),
    ],
)  # fmt: skip
def test_operators_take_names_of_families(plain: str, quoted: str) -> None:
    one, two = topology(plain), topology(quoted)
    assert (one.names, one.src.tolist(), one.dst.tolist()) == (two.names, two.src.tolist(), two.dst.tolist())
    assert [one.bandwidth(i) for i in range(one.num_links)] == [two.bandwidth(i) for i in range(two.num_links)]


def test_a_set_of_names_is_a_value_and_a_root_and_steps_take_names() -> None:
    text = f"""{star(("n-1", "n-2", "n-3"), "leaf 1")}
    let down = {{"n-2", "n-3" <-> "leaf 1"}};
    topology u = without(t, down);
    collective b = broadcast on t {{ root: "n-2" }};
    schedule b using steps {{ at 0 {{ send shard 0 from "n-2" to "n-1"; send shard 0 from "n-2" to "n-3"; }} }}"""
    spec = load("t.coll", text=text)
    assert spec.topologies["u"].names == ("n-1", "n-3") and spec.collectives["b"].problem.collective.root == 1
    schedule = spec.collectives["b"].schedule.schedule
    assert schedule is not None and schedule.src.tolist() == [1, 1] and schedule.dst.tolist() == [0, 2]


def test_a_loop_takes_names_and_nodes() -> None:
    text = """let hosts = {"n-1", "n-2"};
    topology t { rank "n-1", "n-2"; switch a, b;
      for h in hosts { link h <-> a : 1 GB/s; } for s in {a, b}, h in {"n-2"} { link s -> h : 2 GB/s; } }"""
    net = t_of(text)
    ends = [(net.names[a], net.names[b]) for a, b in zip(net.src.tolist(), net.dst.tolist(), strict=True)]
    assert ends == [("n-1", "a"), ("a", "n-1"), ("n-2", "a"), ("a", "n-2"), ("a", "n-2"), ("b", "n-2")]
    assert mistakes("topology t { rank a, b; for l in {a -> b} { link a -> b; } }")[0].code == "C0131"


def test_the_name_of_an_operator_s_topology_is_an_expression_of_the_language() -> None:
    text = 'collective c = allgather on without(t, {"n-2", "n-3" <-> "leaf 1"});'
    spec = load("t.coll", text=f"{star(('n-1', 'n-2', 'n-3', 'n-4'), 'leaf 1')} {text}")
    assert spec.collectives["c"].topology == 'without(t, {"n-2", "n-3" <-> "leaf 1"})'


@given(st.lists(names, min_size=3, max_size=6, unique=True))
@example(["2", "00", "0"])
@example(["1", "00", "0"])
@example(["1", "0", "2"])
def test_any_names_are_kept(chosen: list[str]) -> None:
    """Through the language, its canonical form, the printed IR and networkx."""
    text = star(tuple(chosen[:-1]), chosen[-1])
    net = t_of(text)
    assert net.names == tuple(chosen) and t_of(format_text(text)) == net
    assert parse_ir(print_ir(net)) == net and Topology.from_networkx(net.to_networkx()) == net
    less = load("t.coll", text=f"{text} topology u = without(t, {{{node_text(chosen[0])}}});").topologies["u"]
    assert chosen[0] not in less.names


@given(st.lists(st.text(st.sampled_from("a[]01, "), min_size=1, max_size=6), min_size=2, max_size=5))
def test_two_nodes_never_have_one_name(chosen: list[str]) -> None:
    """Names that look like families with indices share them, and only the same text is the same node."""
    quoted = ", ".join(f'"{name}"' for name in chosen)
    text = f"topology t {{ rank {quoted}; }}"
    if len(set(chosen)) < len(chosen):
        assert {d.code for d in mistakes(text)} == {"C0121"}
    else:
        assert t_of(text).names == tuple(chosen)


def test_families_and_single_nodes_do_not_collide() -> None:
    for nodes in (
        'rank gpu[4], "gpu[3]";',
        'rank "gpu[3]", gpu[4];',
        'rank a, "a";',
        "rank a, a[2];",
        'let a = 1; rank "a";',
    ):
        assert mistakes(f"topology t {{ {nodes} }}")[0].code == "C0121", nodes
    assert t_of('topology t { rank gpu[2], "gpu[7]", "gpu", "gpu[0, 1]"; }').num_ranks == 5


# ---- mistakes


@pytest.mark.parametrize(
    ("statement", "code", "column", "hint"),
    [
        ('link "n-3" -> sw;', "C0120", 6, "did you mean `\"n-2\"`?"),
        ('link "zzz" -> sw;', "C0120", 6, 'declare it above: `rank zzz;` or `switch zzz;`'),
        ('link "gpu[4]" -> sw;', "C0135", 6, "indices count from 0"),
        ('link "gpu" -> sw;', "C0135", 6, "write `gpu[0]`; for all of them, `for i in 0..4 { .. gpu[i] .. }`"),
        ('link "n-1"[0] -> sw;', "C0135", 6, 'write `"n-1"`'),
        ('link "x-1"[0] -> sw;', "C0120", 6, None),
        ("link n-1 -> sw;", "C0131", 6, 'write it in quotes, because it is no identifier: `"n-1"`'),
        ("link x/1 -> sw;", "C0131", 6, 'write it in quotes, because it is no identifier: `"x/1"`'),
        ('link sw -> "later"; rank "later";', "C0130", 12, "move the declaration up"),
        ('rank "";', "C0105", 6, None),
        (f'rank "{"a" * 256}";', "C0105", 6, None),
        ('rank "a\u202eb";', "C0105", 6, None),
        ("rank a-1;", "C0105", 6, 'write it in quotes: `"a-1"`'),
        ("switch s1, n001/gpu0;", "C0105", 12, 'write it in quotes: `"n001/gpu0"`'),
        ("link 0000:17:00.0 -> sw;", "C0105", 6, 'write it in quotes: `"0000:17:00.0"`'),
        ("link sw -> a.b.c;", "C0105", 12, 'write it in quotes: `"a.b.c"`'),
    ],
)  # fmt: skip
def test_a_wrong_name_has_a_caret_and_a_way_out(statement: str, code: str, column: int, hint: str | None) -> None:
    before = 'topology t { rank "n-1", "n-2", gpu[4]; switch sw;'
    (found, *others) = mistakes(f"{before}\n{statement}\n}}")
    assert not others and (found.code, found.span.line, found.span.column) == (code, 2, column)  # type: ignore[union-attr]
    assert hint is None or found.hint == hint


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ('"n-9"', "C0120"),
        ('"n-1", "n-1"', "C0137"),
        ('"n-1" -> "n-2"', "C0311"),
        ('"n-1" <-> "x"', "C0120"),
        ("n-1", "C0131"),
    ],
)
def test_wrong_members_of_sets(members: str, code: str) -> None:
    found = mistakes(f"{star(('n-1', 'n-2'), 'sw')} topology u = without(t, {{{members}}});")
    assert [d.code for d in found] == [code]
    if code != "C0137":
        assert '"' in (found[0].hint or "") or "is linked to" in (found[0].hint or "")


def test_ranks_without_names_have_numbers_only() -> None:
    for text in ('topology u = without(torus(3), {"2"});', 'collective b = broadcast on torus(3) { root: "2" };'):
        (found,) = mistakes(text)
        assert (found.code, found.hint) == ("C0132", "write `2` without quotes")


def test_a_faulty_declaration_causes_no_further_mistakes() -> None:
    found = mistakes('topology t { rank n-1, "m-1"; switch sw; link "n-1" -> sw; link "m-1" -> sw; }')
    assert [d.code for d in found] == ["C0105"]


@pytest.mark.slow
def test_of_many_names_the_nearest_is_found() -> None:
    text = star(tuple(f"n{i:05}/gpu{g}" for i in range(900) for g in range(8)), "leaf")
    (found,) = mistakes(f'{text} topology u = without(t, {{"n00400/gpo3"}});')
    assert found.hint == 'did you mean `"n00400/gpu3"`?'


# ---- outputs


@pytest.fixture(scope="module")
def evil() -> str:
    return f"{star(EVIL, HUB)} collective c = allreduce on t {{ size: 1 MiB }};"


@pytest.mark.parametrize("target", ["msccl-xml", "mpi-c", "oneccl-xml", "ir"])
def test_no_name_leaves_its_place_in_an_output(evil: str, target: str) -> None:
    """XML parses, and no text of C or XML has a character of a name that could end a comment or an element."""
    for name, artifact in package.compile_source(evil, target=target).files.items():
        if name.endswith(".xml"):
            ElementTree.fromstring(artifact.text)
        if target != "ir":
            assert not any(one in artifact.text for one in (*EVIL, HUB)), name


def test_printed_ir_of_every_level_reads_back(evil: str) -> None:
    result = package.compile_source(evil, target="ir")
    for level in (load("t.coll", text=evil).topologies["t"], result.schedule):
        assert parse_ir(print_ir(level)) == level


def test_hints_write_names_as_the_language_does() -> None:
    """A hint to add a link is a statement that the language reads."""
    net = Topology.from_links("net", 2, [(0, 1, LinkClass(Fraction(1)))], node_names=("n-1", "n 2"))
    with pytest.raises(CollcError) as caught:
        net.require_connected("it")
    hint = caught.value.diagnostics[0].hint or ""
    statement = re.search(r"link [^`]*;", hint)
    assert statement is not None
    assert t_of(f'topology t {{ rank "n-1", "n 2"; {statement[0]} }}').num_links == 2


def test_a_name_of_digits_is_no_rank_number() -> None:
    """Without quotes ``1`` is rank 1, which here has the name 0; in a network without names it is its own name."""
    text = star(("1", "0", "01"), "7")
    spec = load("t.coll", text=f'{text} collective c = allgather on without(t, {{"1", "0" <-> "7"}});')
    assert spec.collectives["c"].topology == 'without(t, {"1", "0" <-> "7"})'
    (found,) = mistakes(f'{text} topology u = without(t, {{"0" -> "1"}});')
    assert (found.message, found.hint) == ('`t` has no link from `"0"` to `"1"`', '`"0"` is linked to `"7"`')
    (found,) = mistakes(f'{text} collective c = broadcast on t {{ root: "7" }};')
    assert found.hint == 'only ranks have data; write a rank, such as `"1"`'
    (found,) = mistakes("topology u = without(torus(5), {0 -> 2});")
    assert (found.message, found.hint) == ("`torus(5)` has no link from `0` to `2`", "`0` is linked to `1`, `4`")
    net = Topology.from_links("net", 2, [(0, 1, LinkClass(Fraction(1)))], node_names=("1", "0"))
    with pytest.raises(CollcError) as caught:
        net.require_connected("it")
    assert '`link "1" <-> "0"' in (caught.value.diagnostics[0].hint or "")


def test_traces_and_pictures_parse(evil: str, tmp_path: Path, collc: Callable[..., Ran]) -> None:
    (tmp_path / "t.coll").write_text(evil)
    ran = collc("simulate", "t.coll", "--trace", "t.json", "--svg", "t.svg", "--json")
    assert ran.status == 0, ran.err
    ElementTree.parse(tmp_path / "t.svg")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    shown = {one["args"]["name"] for one in events if one["name"] == "process_name"}
    assert shown >= {f"rank {name}" for name in EVIL}
    json.loads(ran.out)
