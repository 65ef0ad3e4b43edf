"""Texts made to take long or to fill the memory: each gets an answer, soon, and none ends in a crash.

Limits of time are guards against hanging, ten times what a quiet machine needs and more.
"""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collc.backends.msccl_xml.reader import read as read_msccl
from collc.backends.oneccl_xml.reader import read as read_oneccl
from collc.frontends import coll
from collc.frontends.coll import tables
from collc.frontends.coll.collector import paused
from collc.frontends.coll.parser import parse_file
from collc.ir.diagnostic import CollcError, Diagnostic, Source, nearest
from collc.ir.graph.bottleneck import list_ranks
from collc.ir.ranges import runs
from collc.ir.text import parse_ir
from collc.messages.render import as_json, as_text
from collc.tools.finding_database import _read as read_database
from collc.tools.measurements import read_measurements


@contextmanager
def soon(seconds: float = 10) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def mistakes(text: str, path: str = "<test>") -> tuple[Diagnostic, ...]:
    """Return the mistakes of a text, found soon and told in short."""
    with soon(), pytest.raises(CollcError) as caught:
        coll.load(path, text=text)
    assert len(as_text(caught.value.diagnostics)) < 50_000
    return caught.value.diagnostics


# ---- depth

NEST = {
    "parentheses": f"let x = {'(' * 100_000}1{')' * 100_000};",
    "parentheses, open": f"let x = {'(' * 100_000}",
    "sets": f"let x = {'{' * 200_000}{'}' * 200_000};",
    "indices": f"let x = {'r[' * 100_000}0{']' * 100_000};",
    "calls": f"let x = {'max(' * 100_000}1{')' * 100_000};",
    "minus": f"let x = {'-' * 200_000}1;",
    "not": f"let x = {'not ' * 200_000}true;",
    "sum": f"let x = {' + '.join(['a'] * 200_000)};",
    "product": f"let x = {' * '.join(['1'] * 200_000)};",
    "and": f"let x = {' and '.join(['true'] * 200_000)};",
    "for": f"topology t {{ rank r; {'for i in 0..1 { ' * 30_000}{'}' * 30_000} }}",
    "for, open": f"topology t {{ rank r; {'for i in 0..1 { ' * 30_000}",
    "if": f"topology t {{ rank r; {'if true { ' * 100_000}{'}' * 100_000} }}",
    "else if": f"topology t {{ rank r; if true {{}} {'else if true {} ' * 30_000} }}",
    "subset": f"topology t = {'subset(' * 10_000}uniring(2){', {0, 1})' * 10_000};",
    "options": f"topology t = uniring(2) with {{ latency: {'(' * 100_000}1{')' * 100_000} us }};",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NEST)
def test_nesting_is_refused_while_it_is_read(name: str) -> None:
    """One message, and what follows on lines of its own is read as if nothing had happened."""
    (only,) = mistakes(NEST[name])
    assert only.code == "C0116" and only.hint and only.span and only.span.source.path == "<test>"
    found = mistakes(f"{NEST[name]}\ntopology net = uniring(2);\ncollective c = wrong on net;")
    assert {"C0116", "C0201"} == {one.code for one in found}


@pytest.mark.parametrize(
    "text",
    ["{" * 200_000, "[" * 200_000, "}" * 200_000, "@" * 1_000_000, '"' * 200_001, "/*" * 200_000,
     "let a = ;\n" * 50_000, "let a = 1 " * 50_000, "x y z " * 100_000, "topology t " + "{" * 200_000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_nonsense_of_any_length_is_answered(text: str) -> None:
    assert 0 < len(mistakes(text)) <= 100


def test_a_declaration_that_is_too_deep_leaves_no_other_mistakes() -> None:
    """Its name counts as declared, and a deep declaration among others costs only itself."""
    deep = f"let deep = {'(' * 5_000}1{')' * 5_000};"
    assert ["C0116"] == [one.code for one in mistakes(f"let a = 1;\n{deep}\nlet b = deep + a;\nlet c = b;")]
    block = f"topology t {{ rank a;\n{'if true { ' * 3_000}{'}' * 3_000}\n}} with {{ latency: 1 us }};"
    assert ["C0116"] == [one.code for one in mistakes(f"{block}\ncollective c = allgather on t;")]


# ---- size

LONG = {
    "name": ("let " + "a" * 1_000_000 + " = b;", "C0120"),
    "unknown name": ("let x = " + "a" * 1_000_000 + ";", "C0120"),
    "number": ("let x = " + "9" * 1_000_000 + ";", "C0115"),
    "fraction": ("let x = 0." + "9" * 1_000_000 + ";", "C0115"),
    "unit": ("let x = 1 " + "a" * 1_000_000 + ";", "C0123"),
    "include": ('include "' + "a" * 1_000_000 + '";', "C0150"),
    "operator": ("let x = 10**10**10;", "C0109"),
    "power": ("let x = pow(10, pow(10, 10));", "C0134"),
    "torus": ("topology t = torus(99999999999999999999);", "C0310"),
    "torus 2": ("topology t = torus(100000, 100000);", "C0310"),
    "dimensions": ("topology t = torus(" + "2, " * 20_000 + "2);", "C0311"),
    "arguments": ("topology t = torus(" + "2, " * 20_000 + '"two");', "C0131"),
    "ranks": ("topology t { rank r[200000]; }", "C0310"),
    "ranks by name": ("topology t { rank " + ", ".join(f"r{i}" for i in range(50_000)) + "; }", "C0310"),
    "ranks by statement": ("topology t { " + "".join(f"rank r{i};" for i in range(50_000)) + " }", "C0310"),
    "set": ("let x = {0..1000000000000};", "C0134"),
    "loops": ("topology t { rank r; for i in 0..1000000, j in 0..1000000 { } }", "C0142"),
    "powers of operators": ("topology t = power(uniring(2), 99);", "C0310"),
    "lines": ("topology t = line(complete(4), 90);", "C0310"),
    "degrees": ("topology t = degree(complete(4), 1000000);", "C0310"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_what_is_too_large_is_refused_with_one_short_message(name: str) -> None:
    text, code = LONG[name]
    (only,) = mistakes(text)
    assert only.code == code and len(only.message) < 300


@pytest.mark.slow
def test_many_declarations_are_fine() -> None:
    with soon(20):
        coll.load("x", text="".join(f"let a{i} = {i};\n" for i in range(10_000)))
        coll.load("x", text="let a0 = 1;" + "".join(f"let a{i} = a{i - 1} + 1;\n" for i in range(1, 10_000)))
        coll.load("x", text="".join(f"topology t{i} = complete(1);\n" for i in range(5_000)))


@pytest.mark.slow
def test_reading_takes_time_in_proportion() -> None:
    """Four times the text takes less than twelve times as long, whatever stands in it: quadratic would be sixteen."""
    kinds: dict[str, Callable[[int], str]] = {
        "let": lambda n: "".join(f"let a{i} = {i} + 1;\n" for i in range(n)),
        "rank": lambda n: "topology t { " + "".join(f"rank r{i};\n" for i in range(n)) + " }",
        "link": lambda n: "topology t { rank r[9]; " + "".join(f"link r[{i % 9}] -> r[0];\n" for i in range(n)) + " }",
        "blanks": lambda n: "\n" * (50 * n) + "# nothing\n" * n,
        "options": lambda n: "schedule c using bfb { " + "".join(f"a{i}: 1, " for i in range(n)) + " };",
    }
    for name, text in kinds.items():
        times = []
        for count in (1_500, 6_000):
            best = []
            for _ in range(2):
                began = time.process_time()
                parse_file(Source("x", text(count)))
                best.append(time.process_time() - began)
            times.append(min(best))
        assert times[1] < 12 * times[0] + 0.2, name


def test_the_collector_of_garbage_is_on_afterwards() -> None:
    assert gc.isenabled()
    with paused(), paused():
        assert not gc.isenabled()
    with pytest.raises(CollcError):
        coll.load("x", text="let a = ;")
    assert gc.isenabled()


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranks", ["".join(f"rank g{k};\n" for k in range(200_000)), f"rank {', '.join(f'g{k}' for k in range(200_000))};"]
)
def test_ranks_that_are_named_one_by_one_are_counted_while_they_are_read(ranks: str) -> None:
    """The rest of the topology is skipped, what follows is read, and names of the next topology count anew."""
    text = f"topology t {{\n{ranks}}}\ntopology u = nosuch(3);\ntopology v {{ rank g0; rank g1; link g0 <-> g1; }}\n"
    assert [d.code for d in mistakes(text)] == ["C0310", "C0122"]


def test_names_of_several_topologies_count_apart() -> None:
    body = "".join(f"rank g{k};\n" for k in range(18_000))
    assert parse_file(Source("x", f"topology t {{\n{body}}}\ntopology u {{\n{body}}}\n")).problems == ()


# ---- the grammar's tables


@pytest.mark.slow
def test_the_shipped_tables_are_those_of_the_grammar() -> None:
    folder = Path(tables.__file__).parent
    grammar = (folder / "grammar.lark").read_text(encoding="utf-8")
    assert (folder / "grammar.json").read_text(encoding="utf-8") == tables.tables_text(tables.build_tables(grammar))


def test_tables_of_another_grammar_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this check a change of the grammar would change nothing."""
    grammar = tables._grammar().replace("/include(", "/inclusion(")
    monkeypatch.setattr(tables, "_grammar", lambda: grammar)
    assert "inclusion" in tables.tables.__wrapped__().terminals["INCLUDE"]


def test_reading_a_text_does_not_load_lark() -> None:
    code = "import sys, collc.frontends.coll as c; c.load('x', text='let a = 1;'); sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# ---- names and memories of operators

DOUBLED = "let a0 = complete(1);" + "".join(f"let a{i} = product(a{i - 1}, a{i - 1});" for i in range(1, 34))
BOMBS = {
    "declared": DOUBLED.replace("let", "topology"),
    "named": DOUBLED,
    "two ranks": f"{DOUBLED} topology t = product(a33, uniring(2));",
    "powers": "topology a0 = complete(1);" + "".join(f"topology a{i} = power(a{i - 1}, 100);" for i in range(1, 34)),
    "degrees": "let a0 = complete(1);" + "".join(f"let a{i} = degree(a{i - 1}, 1);" for i in range(1, 2_000)),
    "lines": "let a0 = uniring(2);" + "".join(f"let a{i} = line(a{i - 1});" for i in range(1, 2_000)),
    "subsets": "let a0 = uniring(2);" + "".join(f"let a{i} = subset(a{i - 1}, {{0, 1}});" for i in range(1, 2_000)),
    "transposes": "let a0 = uniring(2);" + "".join(f"let a{i} = transpose(a{i - 1});" for i in range(1, 2_000)),
    "groups": "let a0 = cyclic(1);" + "".join(f"let a{i} = direct(a{i - 1}, a{i - 1});" for i in range(1, 34))
    + "topology t = cayley(a33, {});",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("name", BOMBS)
def test_operators_on_operators_take_little_memory(name: str) -> None:
    """In a child that has one gigabyte; then it is printed, sent and scheduled."""
    code = """
import pickle, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
import collc
from collc.frontends import coll
from collc.ir.diagnostic import CollcError
from collc.ir.text import print_ir
try:
    spec = coll.load("x", text=sys.stdin.read())
except CollcError as failure:
    sys.exit(len(str(failure)) > 1000)
for topology in spec.topologies.values():
    assert len(topology.name) <= 1100 and len(print_ir(topology)) < 10**5 and len(repr(topology)) < 10**5
    assert pickle.loads(pickle.dumps(topology)) == topology and hash(topology.origin)
"""
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=BOMBS[name], text=True, capture_output=True, timeout=120, env=environment
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_long_names_say_what_they_leave_out() -> None:
    lets = "let a0 = uniring(2);" + "".join(f"let a{i} = transpose(a{i - 1});" for i in range(1, 90))
    text = f"{lets}collective c = allgather on product(a89, uniring(2));"
    assert coll.load("x", text=text).collectives["c"].topology == "product(transpose(..), uniring(2))"
    short = coll.load("x", text="collective c = allgather on transpose(transpose(uniring(2)));")
    assert short.collectives["c"].topology == "transpose(transpose(uniring(2)))"


def test_a_topology_remembers_some_operators() -> None:
    """Enough for any expansion; whoever walks or sends what it remembers stays far from the limit of recursion."""
    lets = "let a0 = uniring(4);" + "".join(f"let a{i} = transpose(a{i - 1});" for i in range(1, 200))
    spec = coll.load("x", text=f"{lets}topology t = a60; topology u = a199;")
    assert spec.topologies["t"].origin is not None and spec.topologies["t"].origin.depth == 60
    for topology in spec.topologies.values():
        assert topology.origin is None or topology.origin.depth <= 64
        assert pickle.loads(pickle.dumps(topology)) == topology


# ---- includes

SECRET = "root:x:0:0:secret words:/root:/bin/sh\nlet leak = sesame;\n"


def test_nothing_of_a_file_outside_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "site.coll").write_text(SECRET)
    (tmp_path / "binary").write_bytes(b"words\x00sesame")
    (tmp_path / "latin").write_bytes(b"secret \xe9 sesame")
    (tmp_path / "in" / "sub" / "link.coll").symlink_to(tmp_path / "site.coll")
    for path in ("../site.coll", str(tmp_path / "site.coll"), "sub/link.coll", "../binary", "../latin"):
        main = tmp_path / "in" / "main.coll"
        main.write_text(f'include "{path}";\n')
        with pytest.raises(CollcError) as caught:
            coll.load(str(main))
        text = as_text(caught.value.diagnostics) + as_json(caught.value.diagnostics) + str(caught.value)
        assert not any(word in text for word in ("root:", "secret", "words", "sesame", "leak", "0xe9", "`x`")), path
        assert Path(path).name in text and ":1:" in text and "-I" in text
    with pytest.raises(CollcError) as caught:  # the same file in the include path is the user's own
        coll.load(str(main), text='include "../site.coll";', include_path=[str(tmp_path)])
    assert "sesame" in as_text(caught.value.diagnostics)


def test_files_outside_are_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "site.coll").write_text("let n = 4;")
    (tmp_path / "in" / "main.coll").write_text('include "../site.coll"; topology t = torus(n);')
    assert coll.load(str(tmp_path / "in" / "main.coll")).topologies["t"].num_ranks == 4


def test_includes_that_double_are_read_once(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"f{i}.coll").write_text(f'include "f{i + 1}.coll"; include "./f{i + 1}.coll";')
    (tmp_path / "f40.coll").write_text("topology t = uniring(2);")
    with soon():
        assert len(coll.load(str(tmp_path / "f0.coll")).files) == 41


# ---- other readers

HEAD = "collc-ir 1\n\n"
TOPOLOGY = HEAD + 'topology "pair" {\n  ranks 2\n  unit link\n'
CLASSES = "  classes 1: bandwidth latency {\n"

IRS = {
    "word": HEAD + "a" * 1_000_000,
    "string": HEAD + 'topology "' + "a" * 1_000_000 + '" {\n',
    "escapes": HEAD + 'topology "' + "\\" * 1_000_001 + '" {\n',
    "group": TOPOLOGY + '  symmetry "' + "direct(" * 100_000 + ")" * 100_000 + '"\n',
    "number": TOPOLOGY.replace("ranks 2", "ranks " + "9" * 1_000_000),
    "rational": TOPOLOGY + CLASSES + "    1/" + "9" * 1_000_000 + " 0\n",
    "blocks": HEAD + 'topology "a" {\n' * 100_000,
    "braces": HEAD + "{" * 1_000_000,
    "closing": TOPOLOGY + CLASSES + "a }" * 500_000,
    "tables": TOPOLOGY + CLASSES * 100_000,
}


@pytest.mark.parametrize("name", IRS)
def test_the_textual_ir_is_refused_soon(name: str) -> None:
    with soon(), pytest.raises(CollcError) as caught:
        parse_ir(IRS[name])
    assert len(str(caught.value)) < 1000


ALGO = '<algo name="a" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allgather" inplace="0">'
LAUGHS = "".join(f'<!ENTITY x{i} "{f"&x{i - 1};" * 10 if i else "ha"}">' for i in range(12))
XMLS = {
    "deep": ALGO + "<gpu>" * 100_000,
    "deep and closed": ALGO + "<gpu>" * 100_000 + "</gpu>" * 100_000 + "</algo>",
    "entities": f"<!DOCTYPE a [{LAUGHS}]>" + ALGO.replace('"a"', '"&x11;"') + "</algo>",
    "file": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + ALGO.replace('"a"', '"&x;"') + "</algo>",
    "long": ALGO.replace('"a"', '"' + "a" * 11_000_000 + '"') + "</algo>",
    "signs": "<" * 1_000_000,
}


@pytest.mark.parametrize("name", XMLS)
@pytest.mark.parametrize("read", [read_msccl, read_oneccl], ids=["msccl", "oneccl"])
def test_xml_is_refused_soon(name: str, read: Callable[[str], object]) -> None:
    with soon(), pytest.raises(CollcError) as caught:
        read(XMLS[name])
    assert len(str(caught.value)) < 1000 and "root:" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"rows":' * 100_000, '[{"bytes":' + "9" * 1_000_000 + "}]",
     "bytes,seconds\n" + "1" * 1_000_000 + ",1", '[{"bytes":"1e99999999","seconds":1}]',
     'bytes,seconds\n"' + "1\n" * 100_000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_measurements_are_refused_soon(text: str) -> None:
    with soon(), pytest.raises(CollcError) as caught:
        read_measurements(text, "times")
    assert caught.value.diagnostics[0].code == "C0076" and "recursion" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "9" * 1_000_000 + " 1 1 1 1 <-> - bfb x", "4 1 1e99999999 - 1 <-> - bfb x",
     "# searched 0..99999999999 with effort 1, seed 0", "# searched " + "9" * 1_000_000 + " with effort 1, seed 0"],
    ids=lambda text: text[:16],
)  # fmt: skip
def test_databases_are_refused_soon(text: str) -> None:
    with soon(), pytest.raises(CollcError) as caught:
        read_database(text, 2, "data")
    assert caught.value.diagnostics[0].code == "C0570" and len(str(caught.value)) < 1000


# ---- words


def test_runs_of_ranks_are_ranges() -> None:
    assert runs([12, 13, 14, 15]) == ["12..16"] and runs([1, 2, 3, 9]) == ["1", "2", "3", "9"] and runs([]) == []
    assert list_ranks(coll.topology("complete(20)"), [0, 1, *range(12, 16)]) == "{0, 1, 12..16} (6 of 20)"
    with pytest.raises(CollcError) as caught:
        coll.load("x", text="collective c = allgather on complete_bipartite(6);"
                            "schedule c using steps { at 0: send shard 0 from 0 to 5; }")  # fmt: skip
    assert caught.value.diagnostics[0].notes == ("rank 0 has links to 6..12",)


def test_no_name_is_like_one_of_a_million_letters() -> None:
    with soon():
        assert nearest("torus" * 200_000, ["torus", "mesh"]) is None
