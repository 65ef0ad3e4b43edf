"""Mistakes of families and operators underline the argument that is wrong, or the member of its set."""

from __future__ import annotations

import pytest

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError

#: a call -> the text that is underlined
GUILTY = {
    "slim_fly(6)": "6", "jellyfish(9, 3)": "9", "jellyfish(5, 5)": "5", "tpu_v4(4, 4, 4, 2)": "2",
    "xpander(4, 2, 1 + pow(2, 70))": "1 + pow(2, 70)", "dgx_h100(2, 9)": "9", "gb200_nvl72(2, 73)": "73",
    "dragonfly_plus(2, 2, 2, 1, 9)": "9", "fat_tree(5)": "5", "fat_tree(8, 3)": "3", "biring(8, 3)": "3",
    "hammingmesh(2, 2, 2, 2, 5)": "5", "circulant(7, {1, 9})": "9", "circulant(7, {})": "{}",
    "directed_circulant(2)": "2", "generalized_kautz(4, 3)": "3", "power(biring(3), 101)": "101",
    "clustered(torus(3), 5, 1, 2)": "5", "clustered(torus(3), 2, 1 GB/s)": "1 GB/s",
    "subset(biring(3), {0, 5})": "5", "subset(biring(3), {})": "{}", "without(torus(4, 4), {1, 99})": "99",
    "without(biring(3), {0..3})": "{0..3}", "without(biring(3), {0, 1, 2})": "{0, 1, 2}",
    "without(biring(3), {0, 0 <-> 1, 7})": "7", "without(biring(3), {0, 1, 0})": "0",
    "degraded(biring(3), {0, 8}, 1/2)": "8", "relabel(biring(3), {0, 1})": "{0, 1}",
    "relabel(biring(3), {1, 2, 3})": "3", "cayley(cyclic(8), {1, 9})": "9", "cayley(cyclic(8), {0})": "0",
    'distance_regular("pg(2,6)")': '"pg(2,6)"',
    # several arguments together
    "tpu_v4(2, 2, 4, 1)": "tpu_v4(2, 2, 4, 1)", "twisted_torus(3, 5)": "twisted_torus(3, 5)",
}  # fmt: skip


def underlined(call: str) -> str:
    with pytest.raises(CollcError) as failure:
        topology(call)
    (found,) = failure.value.diagnostics
    span = found.span
    assert span is not None and span.line == span.end_line
    return span.source.text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


@pytest.mark.parametrize("call", GUILTY)
def test_the_wrong_argument_is_underlined(call: str) -> None:
    assert underlined(call) == GUILTY[call]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("gb200(2)", "write `gb200_nvl72(2)`"),
        ("without(dgx_a100(2), gpu[0, 3])", "write `{gpu[0, 3]}`"),
        ("without(dgx_a100(2), {gpu[1, 0..8]})", "write the numbers of these ranks: `{8..16}`"),
        ("without(dgx_a100(2, 8), {nic[0, 2..5]})", "name each node: `{nic[0, 2], nic[0, 3], ..}`"),
        ("without(torus(4, 4), {0 - 1})", "a set of links is `{0 <-> 1}`"),
        ("subset(torus(4, 4), {0 <-> 1})", "`without` takes links and switches; `subset` takes ranks"),
    ],
)
def test_hints_of_sets(call: str, hint: str) -> None:
    with pytest.raises(CollcError) as failure:
        topology(call)
    assert [found.hint for found in failure.value.diagnostics] == [hint]


def test_a_node_that_was_left_out_is_not_out_of_range() -> None:
    with pytest.raises(CollcError, match="`nic\\[0, 3\\]`, which the topology no longer has"):
        topology("degraded(without(dgx_a100(2, 8), {gpu[0, 3]}), {nic[0, 3]}, 1/2)")
