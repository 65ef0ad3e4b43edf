"""Files of uneven and custom collectives: written, read back equal, and wrong ones refused with a place."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.oneccl_xml import OneCclXml
from collc.backends.oneccl_xml.reader import read
from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError

SHIFT = """topology t = uniring(3);
collective shift { pre: 0..ranks, post: {(r + 1) mod ranks for r in 0..ranks} }
collective c = shift on t;"""


@given(st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any))
@settings(max_examples=examples(10), deadline=None)
def test_weights_are_read_back(weights: list[int]) -> None:
    listed = ", ".join(map(str, weights))
    text = f"topology t = torus(2, 2); collective c = allgatherv on t {{ weights: {{{listed}}} }};"
    result = collc.compile_source(text, target="oneccl-xml")
    document = read(result.artifacts["c"].text, "c.xml")
    assert document.collective.kind == CUSTOM and not document.inplace and document.outofplace
    assert result.program is not None
    report = OneCclXml().check(result.program, [result.artifacts["c"]])
    assert report.ok, report


def test_planted_faults_are_found() -> None:
    result = collc.compile_source(SHIFT, target="oneccl-xml")
    file, program = result.artifacts["c"], result.program
    assert program is not None
    for old, new in (
        ('from="0" to="1"', 'from="0" to="2"'), ('from="0" to="1"', 'from="1" to="1"'), ('count="1"/>', 'count="2"/>'),
        ('inplace="0"', 'inplace="1"'), ('input="1"', 'input="2"'), ('peer="1"', 'peer="2"'),
    ):  # fmt: skip
        assert old in file.text
        planted = attrs.evolve(file, text=file.text.replace(old, new, 1))
        assert not OneCclXml().check(program, [planted]).ok, (old, new)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('to="1"', 'to="9"', "R15"), ('to="1"', 'to="1 0"', "R15"), ('from="0"', 'from="3"', "R15"),
        ('count="1"/>', 'count="2000000000"/>', "R15"), ('to="1"', 'to="x"', "x"), (' to="1"', "", "to"),
    ],
)  # fmt: skip
def test_wrong_shards_are_refused(old: str, new: str, said: str) -> None:
    text = collc.compile_source(SHIFT, target="oneccl-xml").artifacts["c"].text
    assert old in text
    with pytest.raises(CollcError, match=said) as caught:
        read(text.replace(old, new, 1), "c.xml")
    assert caught.value.diagnostics[0].span is not None


def test_what_it_cannot_carry() -> None:
    with pytest.raises(CollcError, match="reduce-scatterv") as caught:
        OneCclXml().require(Collective("reduce-scatter", 4, weights=(1, 2, 3, 4)))
    assert caught.value.diagnostics[0].code == "C0766"
    with pytest.raises(CollcError, match="in place"):
        collc.compile_source(SHIFT, target="oneccl-xml{inplace=true}")
