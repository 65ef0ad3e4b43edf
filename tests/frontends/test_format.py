"""Printing: ``parse(print(x)) == x``; formatting keeps meaning and comments, and a second time changes nothing."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import EXAMPLES
from sampling import examples

from collc.frontends.coll import ast, format_text
from collc.frontends.coll.parser import parse_expression, parse_file
from collc.frontends.coll.printer import expression_text, file_text
from collc.ir.diagnostic import CollcError, Source


def parsed(text: str) -> ast.File:
    result = parse_file(Source("<test>", text))
    assert result.problems == (), text
    return result.file


# ---- trees

_KEYWORDS = [
    "rank", "part", "steps", "of", "to", "from", "at", "in", "let", "param", "link", "shard", "switch", "mod", "and",
    "or", "send", "shards", "parts", "by", "function", "define", "call", "into",
    "scratch",
    "topology", "with", "for", "if", "among", "together", "pre", "post", "weights",
]  # fmt: skip
#: names that are also keywords are names wherever the grammar expects one; `not` and `import` begin expressions
names = st.sampled_from(["a", "b", "n", "gpu", "x_1", "_", *_KEYWORDS])
words = names.map(ast.Word)
hyphenated = st.sampled_from(["msccl-xml", "reduce-scatter", "max-chunks", "bfb", "a-1", "x-y-z"]).map(ast.Word)
texts = st.text(st.characters(exclude_characters='"\n', exclude_categories=["Cc", "Cs"]), max_size=6)
strings = texts.map(ast.String)
values = st.builds(lambda n, places: Fraction(n, 10**places), st.integers(0, 10**6), st.integers(0, 4))
units = st.sampled_from(["Gbps", "GB/s", "us", "MiB", "B", "furlong"])


def _composed(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    signs = st.sampled_from(["+", "-", "*", "/", "mod", "and", "or", "==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(ast.Binary, signs, inner, inner),
        st.builds(ast.Unary, st.sampled_from(["-", "not"]), inner),
        st.builds(ast.Range, inner, inner, st.none() | inner),
        st.builds(ast.SetOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(ast.Call, names, st.lists(inner, max_size=3).map(tuple)),
        st.builds(ast.Index, names, several),
        st.builds(ast.Index, texts, several, st.just(True)),
        st.builds(ast.Comprehension, inner, st.lists(_clauses(inner), min_size=1, max_size=2).map(tuple)),
    )


def _clauses(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Clause]:
    loops = st.lists(st.builds(ast.Loop, words, inner), min_size=1, max_size=2).map(tuple)
    return st.builds(ast.Clause, loops) | st.builds(ast.Clause, st.just(()), inner)


expressions: st.SearchStrategy[ast.Expr] = st.recursive(
    st.one_of(
        st.builds(ast.Number, values), st.builds(ast.Quantity, values, units), strings, st.builds(ast.Name, names),
        st.builds(ast.Import, strings, hyphenated),
    ),
    _composed,
    max_leaves=8,
)  # fmt: skip

#: as an option's value `a-b` is a word, so a word there has a hyphen before a letter
option_words = st.sampled_from(["reduce-scatter", "x-y-z"]).map(ast.Word)
options = st.builds(
    ast.Options, st.lists(st.builds(ast.Option, hyphenated, expressions | option_words), max_size=3).map(tuple)
)
defines = st.builds(ast.Define, st.sampled_from(["param", "let"]), words, expressions)
shapes = st.lists(expressions, max_size=2).map(tuple)
families = st.builds(ast.NodeFamily, words, shapes) | st.builds(
    ast.NodeFamily, texts.map(ast.Word), shapes, st.just(True)
)


@st.composite
def transfers(draw: st.DrawFn) -> ast.Transfer:
    cut = draw(st.booleans())
    part, parts = (draw(expressions), draw(expressions)) if cut else (None, None)
    action = draw(st.sampled_from(["send", "reduce"]))
    several = draw(st.booleans()), cut and draw(st.booleans())
    return ast.Transfer(
        action,
        draw(expressions),
        part,
        parts,
        draw(expressions),
        draw(expressions),
        *several,
        draw(st.none() | expressions),
        draw(st.none() | options),
    )


parameters = st.lists(words, max_size=3).map(tuple)
functions = st.builds(ast.Function, words, parameters, expressions)
invoked = st.builds(ast.Invoke, words, st.lists(expressions, max_size=3).map(tuple))


def _inside(inner: st.SearchStrategy[ast.Statement]) -> st.SearchStrategy[ast.Statement]:
    blocks = st.builds(ast.Block, st.lists(inner, max_size=3).map(tuple))
    loops = st.lists(st.builds(ast.Loop, words, expressions), min_size=1, max_size=2).map(tuple)
    plain = st.builds(ast.If, expressions, blocks, st.none() | blocks)
    return st.one_of(
        st.builds(ast.For, loops, blocks),
        plain,
        st.builds(ast.If, expressions, blocks, plain),
        st.builds(ast.At, expressions, blocks | transfers() | invoked),
        st.builds(ast.Procedure, words, parameters, blocks),
    )


statements: st.SearchStrategy[ast.Statement] = st.recursive(
    st.one_of(
        defines,
        st.builds(
            ast.Nodes, st.sampled_from(["rank", "switch"]), st.lists(families, min_size=1, max_size=2).map(tuple)
        ),
        st.builds(ast.Link, expressions, expressions, st.booleans(), st.lists(expressions, max_size=2).map(tuple)),
        transfers(),
        functions,
        invoked,
    ),
    _inside,
    max_leaves=5,
)
bodies = st.builds(ast.Block, st.lists(statements, max_size=3).map(tuple))


@st.composite
def topologies(draw: st.DrawFn) -> ast.TopologyOf:
    defaults = draw(st.none() | options)
    first = defaults is not None and draw(st.booleans())
    return ast.TopologyOf(draw(words), draw(bodies), defaults, first)


#: of the name of a collective
indices = st.lists(expressions, max_size=2).map(tuple)


@st.composite
def schedules(draw: st.DrawFn) -> ast.Schedule:
    if draw(st.booleans()):
        return ast.Schedule(draw(words), ast.Word("steps"), draw(st.none() | options), draw(bodies), draw(indices))
    return ast.Schedule(draw(words), draw(hyphenated), draw(st.none() | options), None, draw(indices))


collectives = st.builds(
    ast.Collective, words, hyphenated, expressions, st.none() | options, st.none() | expressions, indices
)


def _grouped(inner: st.SearchStrategy[ast.Statement]) -> st.SearchStrategy[ast.Statement]:
    blocks = st.builds(ast.Block, st.lists(inner, max_size=3).map(tuple))
    loops = st.lists(st.builds(ast.Loop, words, expressions), min_size=1, max_size=2).map(tuple)
    return st.builds(ast.For, loops, blocks) | st.builds(ast.If, expressions, blocks, st.none() | blocks)


#: statements of `together`
requests = st.recursive(collectives | st.builds(ast.Define, st.just("let"), words, expressions), _grouped, max_leaves=4)
conditions = st.lists(
    st.builds(ast.Option, st.sampled_from(["pre", "post", "weights"]).map(ast.Word), expressions), max_size=3
)

declarations = st.one_of(
    defines, st.builds(ast.Include, strings), st.builds(ast.TopologyIs, words, expressions, st.none() | options),
    topologies(), collectives, schedules(), st.builds(ast.Emit, words, hyphenated, st.none() | options, indices),
    st.builds(ast.Kind, words, conditions.map(tuple).map(ast.Options)),
    st.builds(ast.Together, st.builds(ast.Block, st.lists(requests, max_size=3).map(tuple))),
)  # fmt: skip
files = st.builds(ast.File, st.lists(declarations, max_size=4).map(tuple))


# ---- properties


@given(expressions)
def test_printed_expressions_read_back(expression: ast.Expr) -> None:
    """Parentheses are put exactly where precedence needs them, whatever the tree."""
    assert parse_expression(Source("<test>", expression_text(expression))) == (expression, None)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(files)
def test_printed_files_read_back(file: ast.File) -> None:
    assert parsed(file_text(file)) == file


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(files)
def test_formatting_printed_text_changes_nothing(file: ast.File) -> None:
    text = file_text(file)
    assert format_text(text) == text


_TOKEN = re.compile(r'"[^"\n]*"|[A-Za-z_][\w-]*|[\w.]+|<->|->|\.\.|[=!<>]=|\S')


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(files, st.data())
def test_comments_and_meaning_survive_formatting(file: ast.File, data: st.DataObject) -> None:
    """Comments anywhere, even inside expressions, are kept, and a second formatting changes nothing."""
    lines = file_text(file).split("\n")
    for i in data.draw(st.sets(st.integers(0, max(len(lines) - 1, 0)), max_size=4)):
        tokens = [m.end() for m in _TOKEN.finditer(lines[i])]
        cut = data.draw(st.sampled_from([0, *(end for end in tokens if _splits(lines[i], end)), len(lines[i])]))
        breaks = "\n" * data.draw(st.integers(1, 3))
        lines[i] = f'{lines[i][:cut]} # comment {i} ;{{}}"{breaks}{lines[i][cut:]}'
    text = "\n".join(lines)
    once = format_text(text)
    assert parsed(once) == file
    assert sorted(re.findall(r"# comment \d+ ;\{\}\"", text)) == sorted(re.findall(r"# comment \d+ ;\{\}\"", once))
    assert format_text(once) == once


def _splits(line: str, end: int) -> bool:
    """Whether a break at ``end`` leaves the tokens as they are: not inside a unit or a word with hyphens."""
    return re.match(r"[-/\w.]", line[end:]) is None and re.search(r"[-/.]$", line[:end]) is None


# ---- what it looks like

MESSY = """# RUN: nothing
topology   pod=torus( 3,3 , 2)with{bandwidth:25Gbps,latency : 10 us};# trailing
param  a=1;param b = (2+3)*4; # two


let c = ((a));
collective grads = # why
   allreduce on pod { size: 64 MiB,
   # the op
   op: sum, # really
   dtype: float32  };
schedule grads using bfb;
emit grads as msccl-xml { channels: 4, } ;
topology dgx { # opens

  rank gpu[2,8];  switch ib ;
  for b in 0 .. 2-1, g in 0..8 {
    link gpu[b, g]<->ib: 25GB/s , 3 us;
    # end of block
  } # after block
  if a==3 { } else if not (a == 1 or b == 2) and b != 3 { let x = 1; } # hmm
  else
  { # in else
  let y = -(3 - 2) - (1 - 1)/2; }
  # last
} with { latency: 3 us } # post
schedule other using steps { at 0{send shard 1 part 0 of 2 from gpu[0,0]to 3;} }
# the end"""

NEAT = """# RUN: nothing
topology pod = torus(3, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };  # trailing
param a = 1;
param b = (2 + 3) * 4;  # two

let c = a;
# why
collective grads = allreduce on pod {
  size: 64 MiB,
  # the op
  op: sum,  # really
  dtype: float32,
};
schedule grads using bfb;
emit grads as msccl-xml { channels: 4 };
topology dgx {  # opens
  rank gpu[2, 8];
  switch ib;
  for b in 0..2 - 1, g in 0..8 {
    link gpu[b, g] <-> ib : 25 GB/s, 3 us;
    # end of block
  }  # after block
  if a == 3 {
  } else if not (a == 1 or b == 2) and b != 3 {
    let x = 1;
    # hmm
  } else {  # in else
    let y = -(3 - 2) - (1 - 1) / 2;
  }
  # last
} with { latency: 3 us };  # post
schedule other using steps {
  at 0 {
    send shard 1 part 0 of 2 from gpu[0, 0] to 3;
  }
}
# the end
"""


def test_canonical_form() -> None:
    assert format_text(MESSY) == NEAT
    assert format_text(NEAT) == NEAT


def test_ranges_and_options_are_written_as_people_write_them() -> None:
    text = "schedule g using steps { for s in 0..n-1 { at s: send shard (r-s) mod n from r to (r+1) mod n; } }"
    assert "for s in 0..n-1 {\n    at s: send shard (r - s) mod n from r to (r + 1) mod n;" in format_text(text)
    wide = format_text("emit g as msccl-xml { " + ", ".join(f"option{i}: {10**9}" for i in range(9)) + " };")
    assert wide.splitlines()[1] == "  option0: 1000000000," and max(map(len, wide.splitlines())) < 100


def test_line_ends_and_byte_order_marks_are_taken_in_stride() -> None:
    assert format_text("\ufeffparam n = 3;\r\n\r\n\r\nparam m = 4; # x \r\n") == "param n = 3;\n\nparam m = 4;  # x\n"


@pytest.mark.parametrize("text", ["", "\n\n", "   "])
def test_nothing_formats_to_nothing(text: str) -> None:
    assert format_text(text) == ""


def test_a_file_of_comments_is_kept() -> None:
    assert format_text("\n# one\n\n\n# two") == "# one\n\n# two\n"


def test_formatting_reports_all_syntax_errors_and_no_others() -> None:
    with pytest.raises(CollcError) as caught:
        format_text("param n = ;\ntopology pod = nowhere(3);\nlet = 3;\n", "pod.coll")
    assert [str(d.span) for d in caught.value.diagnostics] == ["pod.coll:1:11", "pod.coll:3:5"]
    assert format_text("topology pod = nowhere(x);") == "topology pod = nowhere(x);\n"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.coll")), ids=lambda p: p.name)
def test_examples_format_to_the_same_meaning(path: Path) -> None:
    text = path.read_text()
    once = format_text(text, path.name)
    assert parsed(once) == parsed(text)
    assert format_text(once) == once
