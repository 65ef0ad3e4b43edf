"""Every code that the compiler can print is explained, in its own room, and shown by some test."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from places import ROOT, TESTS

from collc.messages.explain import ROOMS, all_codes

FOLDERS = ("collc", "ir", "frontends", "passes", "backends")

#: module of a room's codes -> the ranges of codes that are its own
RANGES = {
    "collc.messages.codes": ("C00", "C090"),
    "collc.frontends.importing.codes": ("C092", "C093", "C094", "C095", "C096", "C097", "C098"),
    "collc.frontends.coll.codes": ("C01", "C03"),
    "collc.ir.codes": ("C02", "C03", "C04", "C08"),
    "collc.passes.codes": ("C05",),
    "collc.backends.msccl_xml.codes": ("C06",),
    "collc.backends.mscclpp_json.codes": ("C066", "C067", "C068", "C069"),
    "collc.backends.mscclpp_environment.codes": ("C069",),
    "collc.backends.mpi_c.codes": ("C07",),
    "collc.backends.builtin_rules.codes": ("C074",),
    "collc.backends.oneccl_xml.codes": ("C075", "C076"),
    "collc.backends.networks.codes": ("C078",),
    "collc.backends.nccl_topo.codes": ("C079",),
    "collc.backends.nccl_tuner.codes": ("C077",),
    "collc.backends.nccl_graph.codes": ("C091",),
    "collc.backends.svg.codes": ("C082",),
    "collc.backends.chakra.codes": ("C083",),
    "collc.training.codes": ("C099",),
}


@cache
def used() -> dict[str, str]:
    """Return every code that the source names outside of the paragraphs, and where."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "codes.py":
                for code in re.findall(r'"(C0\d{3})"', path.read_text()):
                    found.setdefault(code, str(path.relative_to(ROOT)))
    return found


def shown() -> str:
    """Return the text of all tests and of what their cases expect."""
    paths = [p for p in [*TESTS.rglob("*.py"), *TESTS.rglob("*.expect")] if p != Path(__file__)]
    return "\n".join(path.read_text() for path in sorted(paths))


def test_every_codes_module_is_merged() -> None:
    found = {
        "collc." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("codes.py")
    }
    assert {name.replace("collc.collc", "collc") for name in found} == set(ROOMS)


def test_every_code_in_the_source_is_explained() -> None:
    missing = {code: place for code, place in used().items() if code not in all_codes()}
    assert missing == {}


@pytest.mark.slow
def test_every_explained_code_is_in_the_source() -> None:
    assert set(all_codes()) - set(used()) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_codes_stay_in_their_room_s_range_and_are_paragraphs(room: str) -> None:
    for code, text in import_module(room).CODES.items():
        assert code.startswith(RANGES[room]), code
        title, blank, body = [*text.split("\n", 2), "", ""][:3]
        assert title and not blank and len(body.strip()) > 25, f"{code}: a title, a blank line, an explanation"
        assert not title.endswith(".") or title.endswith("..."), code


def test_no_two_rooms_have_the_same_code() -> None:
    listed = [code for room in ROOMS for code in import_module(room).CODES]
    assert sorted(listed) == sorted(set(listed))


def test_every_code_is_shown_by_a_test() -> None:
    text = shown()
    assert [code for code in all_codes() if code not in text] == []
