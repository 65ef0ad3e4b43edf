"""Files of strangers: whatever is in them, the answer is a report or an error, soon, and never a traceback."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from foreign_files import IN_PLACE, alltoall, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import xml
from sampling import examples

from collc.backends.msccl_xml import read, verify_text
from collc.backends.msccl_xml.published import publish
from collc.backends.msccl_xml.tokens import check_tokens
from collc.ir.diagnostic import CollcError

SEEDS = [
    IN_PLACE,
    ring(3),
    alltoall(3),
    xml("allgather", 2, [[(1, 1, 0, ["nop <1:0", "s i0 o0 1 <1:0", "r i0 o1 1"]), (-1, -1, 0, ["cpy i0 o0 1 !"])],
                         [(0, 0, 0, ["s i0 o1 1", "r i0 o0 1"]), (-1, -1, 0, ["cpy i0 o1 1 !"])]], (1, 2, 0)),
]  # fmt: skip

#: values that have broken readers before
ODD = st.sampled_from(
    ["", "-1", "-2", "0", "1", "2", "127", "128", "32767", "65536", "2147483647", "-2147483648", "2147483648",
     "0x7fffffff", "9223372036854775807", "1e9", "nan", "i", "s", "Simple", "LL", "allgather", "reduce", "broadcast",
     "custom", "two",
     "1 ", "9" * 400, "&#x31;", "&lt;", "\u0661", "\x7f", "a" * 300]
)  # fmt: skip


def survives(text: str) -> None:
    """Read, judge and publish a text: each ends with an answer."""
    for work in (lambda: check_tokens(text), lambda: verify_text(text), lambda: publish(text).both_ways):
        try:
            work()
        except CollcError as problem:
            assert problem.exit_status != 70
            assert all(d.code.startswith(("C06", "C02")) for d in problem.diagnostics)


@st.composite
def bytes_changed(draw: st.DrawFn) -> str:
    """A file of which a few characters are lost, doubled or others."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text) - 1))
        length = draw(st.integers(0, 40))
        text = text[:at] + draw(st.text(alphabet="<>/\"'=&! -19xisn\n\t", max_size=6)) + text[at + length :]
    return text


@st.composite
def values_changed(draw: st.DrawFn) -> str:
    """A file of which a few attributes have odd values."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 3))):
        places = list(re.finditer(r'="([^"]*)"', text))
        place = places[draw(st.integers(0, len(places) - 1))]
        text = text[: place.start(1)] + draw(ODD) + text[place.end(1) :]
    return text


@st.composite
def lines_changed(draw: st.DrawFn) -> str:
    """A file whose elements are in another order, twice there, or missing."""
    lines = draw(st.sampled_from(SEEDS)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 5))):
        a, b = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match draw(st.sampled_from(["swap", "double", "drop"])):
            case "swap":
                lines[a], lines[b] = lines[b], lines[a]
            case "double":
                lines.insert(b, lines[a])
            case _:
                lines[a] = ""
    return "".join(lines)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(bytes_changed() | values_changed() | lines_changed())
def test_a_changed_file_is_answered(text: str) -> None:
    survives(text)


@settings(max_examples=examples(150))
@given(bytes_changed() | values_changed())
def test_what_is_read_from_a_text_that_is_no_xml_passes_the_tokeniser(text: str) -> None:
    """Whatever XML parsers make of it: what reads at all reads as XML, or as the runtimes do."""
    try:
        read(text)
    except CollcError as problem:
        if problem.diagnostics[0].code == "C0601" and not check_tokens(text):
            assert not _nested(text)


def _nested(text: str) -> bool:
    """Return whether there is an element, and every closing tag closes the one that is open."""
    opened: list[str] = []
    if not (text := re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)).strip():
        return False
    for close, name, single in re.findall(r"<(/?)([^ =>/]+)[^>]*?(/?)>", text):
        if close:
            if not opened or opened.pop() != name:
                return False
        elif not single:
            opened.append(name)
    return not opened


@pytest.mark.slow
@pytest.mark.parametrize("name", re.findall(r'(\w+)="', IN_PLACE)[:24])
@pytest.mark.parametrize("value", ["2147483647", "-2147483648", "1048576"])
def test_no_number_takes_memory_or_time(name: str, value: str) -> None:
    """A number is no reason to allocate: not ranks, not chunks, not counts, not steps, everywhere or in one place."""
    for count in (1, -1):
        text = re.sub(rf' {name}="[^"]*"', f' {name}="{value}"', IN_PLACE, count=max(count, 0))
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        survives(text)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB
        assert time.monotonic() - begin < 20


BILLION = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10 if k else "x" * 10}">' for k in range(10))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        f"<!DOCTYPE algo [{BILLION}]><algo name='&a9;'/>",
        f"<?xml version='1.0'?><!-- c --><!DOCTYPE algo [{BILLION}]><algo>&a9;</algo>",
        "\ufeff<!DOCTYPE algo SYSTEM '/etc/passwd'><algo/>",
        "<!DOCTYPE algo [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><algo name='&x;'/>",
        "<algo>" + "<gpu>" * 100_000,
        "<algo>" + "<gpu>" * 100_000 + "</gpu>" * 100_000 + "</algo>",
        "<algo " + " ".join(f'a{k}="1"' for k in range(50_000)) + "/>",
        "<algo " + 'a="1" ' * 50_000 + "/>",
        "<!-- " + "-" * 1_000_000 + " --><algo/>",
        "<!--" * 100_000,
        '<algo name="' + "&amp;" * 200_000 + '"/>',
        "<algo>" + "<!-- c -->" * 100_000 + "</algo>",
        "<" * 200_000,
        "<algo" + " " * 500_000 + "/>",
        "<algo a='" + "x" * 11_000_000 + "'/>",
    ],
    ids=range(15),
)
def test_bombs(text: str) -> None:
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    survives(text)
    assert time.monotonic() - begin < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # KiB


def test_the_command_answers_too(collc: Callable[..., Ran]) -> None:
    for k, text in enumerate(["", "<", "<algo/>", "\x01", "<algo>" * 2000, IN_PLACE[:-20], "<msccl_algos/>"]):
        Path(f"{k}.xml").write_text(text)
        for arguments in (["verify"], ["convert", "-t", "mpi-c"], ["run"], ["simulate"], ["env"]):
            ran = collc(*arguments, f"{k}.xml")
            assert ran.status in (1, 2)
            assert "internal error" not in ran.err
