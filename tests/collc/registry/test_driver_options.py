"""Options of passes and targets are the typed fields of their class, from text and from the language alike."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.diagnostic import CollcError, Source, Span
from collc.ir.spec import Option
from collc.registry.elements import Element, element_text, parse_elements, pipeline_text
from collc.registry.options import build, describe, show


@attrs.frozen
class Sample:
    """A class such as passes are."""

    name: ClassVar[str] = "sample"

    count: int = 3
    limit: int | None = None
    fast: bool = False
    ratio: Fraction = Fraction(1, 2)
    mode: Literal["safe", "wild"] = "safe"
    word: str | None = None
    dims: tuple[int, ...] = ()
    protocol: str = attrs.field(default="Simple", metadata={"help": "of the wire", "choices": ("Simple", "LL")})
    even: int = attrs.field(default=2, validator=lambda self, field, value: _require_even(value))


def _require_even(value: int) -> None:
    if value % 2:
        raise ValueError(f"even must be even, found {value}")


def made(text: str, **defaults: object) -> Sample:
    (element,) = parse_elements(text, "-p")
    return build(Sample, "pass `sample`", element.options, defaults, element.span)


def mistakes(text: str) -> list[str]:
    with pytest.raises(CollcError) as caught:
        made(text)
    assert caught.value.exit_status == 2
    return [f"{d.span}: {d.message}" for d in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sample", Sample()),
        ("sample{}", Sample()),
        ("sample{count=8,limit=9}", Sample(count=8, limit=9)),
        ("sample{ count : 8 , limit : none }", Sample(count=8)),
        ("sample{fast}", Sample(fast=True)),
        ("sample{fast=on}", Sample(fast=True)),
        ("sample{ratio=2/6}", Sample(ratio=Fraction(1, 3))),
        ("sample{ratio=0.25}", Sample(ratio=Fraction(1, 4))),
        ("sample{mode=wild}", Sample(mode="wild")),
        ("sample{dims={3,4}}", Sample(dims=(3, 4))),
        ("sample{dims=3}", Sample(dims=(3,))),
        ("sample{word='a,b}'}", Sample(word="a,b}")),
        ("sample{protocol=LL}", Sample(protocol="LL")),
    ],
)
def test_text_becomes_fields(text: str, expected: Sample) -> None:
    assert expected == made(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample{cuont=8}", "<-p>:1:8: pass `sample` has no option `cuont`"),
        ("sample{count=many}", "<-p>:1:14: option `count` of pass `sample` needs a whole number, found `many`"),
        ("sample{count=1.5}", "<-p>:1:14: option `count` of pass `sample` needs a whole number, found `1.5`"),
        ("sample{limit=x}", "<-p>:1:14: option `limit` of pass `sample` needs a whole number or `none`, found `x`"),
        ("sample{fast=maybe}", "<-p>:1:13: option `fast` of pass `sample` needs true or false, found `maybe`"),
        ("sample{mode=mild}", "<-p>:1:13: option `mode` of pass `sample` needs one of safe, wild, found `mild`"),
        ("sample{ratio=1/0}", "<-p>:1:14: option `ratio` of pass `sample` needs a number, found `1/0`"),
        ("sample{protocol=L}", "<-p>:1:17: option `protocol` of pass `sample` needs one of Simple, LL, found `L`"),
        ("sample{count=1,count=2}", "<-p>:1:16: option `count` of pass `sample` is given twice"),
        ("sample{even=3}", "<-p>:1:13: pass `sample`: even must be even, found 3"),
    ],
)
def test_a_wrong_option_is_placed(text: str, message: str) -> None:
    assert [message] == mistakes(text)


def test_all_wrong_options_are_told_at_once() -> None:
    assert len(mistakes("sample{cuont=8,fast=maybe,mode=mild}")) == 3


def test_defaults_stand_in_only_where_the_class_has_the_field() -> None:
    assert Sample(limit=7) == made("sample", limit=7, max_channels=32)
    assert Sample(limit=1) == made("sample{limit=1}", limit=7)


def test_values_of_the_language_are_typed() -> None:
    span = Span(Source("a.coll", "x"), 1, 1, 1, 2)
    options = [
        Option("count", 8, span), Option("fast", True, span), Option("ratio", Fraction(1, 3), span),
        Option("dims", (1, 2), span), Option("word", "w", span), Option("limit", Fraction(4), span),
    ]  # fmt: skip
    expected = Sample(count=8, fast=True, ratio=Fraction(1, 3), dims=(1, 2), word="w", limit=4)
    assert expected == build(Sample, "pass", options)
    for wrong in (Option("count", True, span), Option("fast", 1, span), Option("word", 3, span)):
        with pytest.raises(CollcError, match="C0010"):
            build(Sample, "pass", [wrong])


@pytest.mark.parametrize(
    ("text", "at", "need"),
    [
        ("", None, None),
        ("a,", 3, "expected a name, found the end"),
        (",a", 1, "expected a name, found `,`"),
        ("a b", 3, "expected `,` between names, found `b`"),
        ("a{x=1", 6, "expected `,` or `}` after an option, found the end"),
        ("a{x=}", 5, "expected a value, found `}`"),
        ("a{=1}", 3, "expected an option `name=value`, found `=`"),
        ("a{x='1}", 8, "expected the closing quote, found the end"),
        ("a}", 2, "expected `,` between names, found `}`"),
        ("a{x=1}}", 7, "expected `,` between names, found `}`"),
        ("1", 1, "expected a name, found `1`"),
    ],
)
def test_a_broken_pipeline_has_a_caret(text: str, at: int | None, need: str | None) -> None:
    if at is None:
        assert parse_elements(text, "-p") == ()
        return
    with pytest.raises(CollcError) as caught:
        parse_elements(text, "-p")
    (found,) = caught.value.diagnostics
    assert (at, need) == (found.span.column if found.span else None, found.message)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_elements(text, "-p")
    except CollcError as mistake:
        assert {"C0006"} == {d.code for d in mistake.diagnostics}


_samples = st.builds(
    Sample,
    count=st.integers(-(10**20), 10**20),
    limit=st.none() | st.integers(),
    fast=st.booleans(),
    ratio=st.fractions(),
    mode=st.sampled_from(["safe", "wild"]),
    word=st.none() | st.text(st.characters(codec="ascii", exclude_characters="\"'"), max_size=8).filter(
        lambda word: word != "none"
    ),
    dims=st.lists(st.integers(0, 99), max_size=3).map(tuple),
)  # fmt: skip


@given(_samples)
def test_what_is_printed_is_read_back(sample: Sample) -> None:
    assert sample == made(element_text(sample))
    assert len(parse_elements(pipeline_text([sample, sample]), "-p")) == 2


def test_options_describe_themselves() -> None:
    described = {o.name: o for o in describe(Sample)}
    assert list(described) == ["count", "limit", "fast", "ratio", "mode", "word", "dims", "protocol", "even"]
    assert (described["count"].kind, described["count"].default) == ("int", "3")
    assert (described["limit"].kind, described["limit"].default) == ("int|none", "none")
    assert (described["mode"].kind, described["mode"].default) == ("safe|wild", "safe")
    assert (described["protocol"].kind, described["protocol"].help) == ("Simple|LL", "of the wire")


def test_values_are_shown_as_they_are_written() -> None:
    assert [show(v) for v in (True, None, Fraction(1, 3), (1, 2), "x")] == ["true", "none", "1/3", "{1,2}", "x"]


def test_elements_keep_their_place() -> None:
    first, second = parse_elements("bfb,\n discretize{max-chunks=8}", "-p")
    assert isinstance(first, Element)
    assert _place(first.span) == (1, 1, 1, 4)
    assert _place(second.span) == (2, 2, 2, 12)
    assert _place(second.options[0].span) == (2, 13, 2, 25)


def _place(span: Span | None) -> tuple[int, int, int, int]:
    assert span is not None
    return span.line, span.column, span.end_line, span.end_column
