"""Functions and blocks of a file: equal to the text with their bodies in place; every call ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends import coll
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.verify import verify_schedule


def steps(body: str, declarations: str = "", net: str = "complete(8)", nodes: int = 100) -> Schedule:
    kind = "allgather on net"
    text = f"{declarations} topology net = {net}; collective c = {kind}; schedule c using steps {{ {body} }}"
    schedule = coll.load("<test>", text=text, node_limit=nodes).collectives["c"].schedule.schedule
    assert isinstance(schedule, Schedule)
    return schedule


def mistake(body: str, declarations: str = "") -> str:
    with pytest.raises(CollcError) as caught:
        steps(body, declarations)
    (one,) = caught.value.diagnostics
    return f"{one.code}: {one.message}"


_RING = """define ring(members, first) {
  let n = count(members);
  function next(i) = members[(i + 1) mod n];
  for s in 0..n-1, i in 0..n { at first + s: send shard members[(i - s) mod n] from members[i] to next(i); }
}"""
_BY_HAND = """for s in 0..N-1, i in 0..N { at F + s: send shard A * ((i - s) mod N) + B from A * i + B
  to A * ((i + 1) mod N) + B; }"""


def by_hand(count: int, first: int, factor: int, base: int) -> str:
    named = _BY_HAND.replace("N", str(count)).replace("F", str(first))
    return named.replace("A", str(factor)).replace("B", str(base))


@pytest.mark.parametrize("where", ["file", "steps"])
def test_a_block_is_its_statements_with_the_arguments(where: str) -> None:
    body = "call ring(0..4, 0); call ring(1..8 by 2, 3);"
    found = steps(body, _RING) if where == "file" else steps(f"{_RING} {body}")
    assert found == steps(by_hand(4, 0, 1, 0) + by_hand(4, 3, 2, 1))


def test_elements_are_in_the_order_in_which_a_set_was_written() -> None:
    assert steps("let s = {3, 1, 2}; at 0: send shard 3 from s[0] to s[2];") == steps("at 0: send shard 3 from 3 to 2;")
    assert steps("let s = 1..8 by 3; at 0: send shard 4 from s[1] to s[2];") == steps("at 0: send shard 4 from 4 to 7;")


def test_two_levels_of_rings_gather_on_a_torus() -> None:
    body = """
      for r in 0..3 { call ring(r * 4..r * 4 + 4, 0); }
      define column(c) {
        for s in 0..2, r in 0..3 {
          at 3 + s: send shards ((r - s) mod 3) * 4..((r - s) mod 3) * 4 + 4 from r * 4 + c to (r + 1) mod 3 * 4 + c;
        }
      }
      for c in 0..4 { call column(c); }
    """
    assert verify_schedule(steps(body, _RING, net="torus(3, 4)")).ok


def test_blocks_inside_at_transfer_in_the_step_of_the_caller() -> None:
    block = "define swap(a, b) { send shard a from a to b; send shard b from b to a; }"
    assert steps(f"{block} for r in 0..4 {{ at r: call swap(r, r + 4); at 9 {{ call swap(7, 0); }} }}") == steps(
        "for r in 0..4 { at r { send shard r from r to r + 4; send shard r + 4 from r + 4 to r; } "
        "at 9 { send shard 7 from 7 to 0; send shard 0 from 0 to 7; } }"
    )


def test_blocks_call_blocks_and_see_the_names_around_them() -> None:
    declarations = """param far = 4;
      define hop(r) { send shard r from r to r + far; }
      define both(r) { call hop(r); call hop(r + 1); }"""
    assert steps("let far = 1; at 0: call both(0);", declarations) == steps(
        "at 0 { send shard 0 from 0 to 4; send shard 1 from 1 to 5; }"
    )


def test_functions_see_the_variables_of_loops_and_other_functions() -> None:
    body = "for d in 1..3 { function to(r) = past(r, d); at d: send shard 0 from to(0) to to(to(0)); }"
    assert steps(body, "function past(r, by_) = (r + by_) mod 8;") == steps(
        "at 1: send shard 0 from 1 to 2; at 2: send shard 0 from 2 to 4;"
    )


def test_functions_serve_topologies_and_lists_too() -> None:
    text = """function next(r, n) = (r + 1) mod n;
    topology net { rank g[4]; for i in 0..4 { link g[i] -> g[next(i, 4)]; } }
    collective c = custom on net { pre: 0..4, post: {next(r, 4) for r in 0..4} };"""
    spec = coll.load("<test>", text=text)
    assert spec.topologies["net"].num_links == 4
    assert spec.collectives["c"].problem.collective.post == ((1,), (2,), (3,), (0,))


_NUMBERS = st.integers(-20, 20)


@given(_NUMBERS, _NUMBERS, st.sampled_from(["a + b", "a * b - 1", "max(a, b)", "b mod 7 + abs(a)", "floor(a / 3) - b"]))
def test_a_call_is_the_expression_with_the_arguments(a: int, b: int, text: str) -> None:
    called = f"function f(a, b) = {text}; param x = pow(f({a}, {b}), 2) mod 5;"
    inline = text.replace("max", "M").replace("mod", "D").replace("abs", "S")
    inline = inline.replace("a", f"({a})").replace("b", f"({b})")
    inline = inline.replace("M", "max").replace("D", "mod").replace("S", "abs").replace("flo(or", "floor")
    plain = f"param x = pow({inline}, 2) mod 5;"
    body = "at x: send shard x from x to x + 1;"
    assert steps(body, called) == steps(body, plain)


@pytest.mark.parametrize(
    ("declarations", "body", "expected"),
    [
        ("function f(r) = f(r - 1);", "at f(0): send shard 0 from 0 to 1;", "C0130: `f` is used in its own definition"),
        ("function f(r) = g(r); function g(r) = f(r);", "", "C0130: `g` is used before its declaration"),
        ("define f() { call f(); }", "call f();", "C0130: `f` calls itself"),
        ("define f() { call g(); } define g() { call f(); }", "", "C0130: `g` is used before its declaration"),
        ("", "define f() { call f(); }", "C0130: `f` calls itself"),
        ("function f(a, a) = a;", "", "C0121: `a` is declared twice"),
        ("define f(a, a) { }", "at 0: call f(1, 1);", "C0121: `a` is declared twice"),
        ("function f(a) = a; function f(b) = b;", "", "C0121: `f` is declared twice"),
        ("function f(r) = r;", "at 0: send shard f from 0 to 1;", "C0131: `f` is a function, needed a value"),
        ("param f = 3;", "at f(0): send shard 0 from 0 to 1;", "C0122: unknown function `f`"),
        ("function f(r) = r;", "at f(): send shard 0 from 0 to 1;", "C0136: found 0 arguments, needed 1"),
    ],
)
def test_mistakes(declarations: str, body: str, expected: str) -> None:
    assert mistake(body, declarations) == expected


def test_chains_of_functions_and_blocks_are_not_endless() -> None:
    doubling = "".join(f"function f{i}(x) = f{i - 1}(x) + f{i - 1}(x);" for i in range(1, 20))
    assert mistake("for s in 0..1000 { let x = f19(s); }", f"function f0(x) = x; {doubling}").startswith("C0142")
    deep = "function f0(x) = x;" + "".join(f"function f{i}(x) = f{i - 1}(x + 1);" for i in range(1, 200))
    with pytest.raises(CollcError, match="C0116"):
        steps("", deep)
    twice = "".join(f"define b{i}(x) {{ call b{i - 1}(x); call b{i - 1}(x); }}" for i in range(1, 12))
    block = f"define b0(x) {{ for k in 0..40 {{ send shard 0 from 0 to 1; }} }} {twice}"
    assert mistake("at 0: call b11(0);", block).startswith("C0142")
    deep = "define b0(x) { send shard 0 from 0 to 1; }" + "".join(
        f"define b{i}(x) {{ call b{i - 1}(x); }}" for i in range(1, 200)
    )
    with pytest.raises(CollcError, match="C0116"):
        steps("at 0: call b199(0);", deep)
