"""oneCCL-XML: what the schema and its rules refuse, and what the reader says of it."""

from __future__ import annotations

import re

import pytest
from oneccl_files import BROKEN_FORM, BROKEN_RULES, VALID, WRONG, broken
from places import ROOT

from collc.backends.oneccl_xml import is_oneccl, load, read, schema_text, verify_text
from collc.ir.diagnostic import CollcError


def _codes(text: str) -> list[str]:
    with pytest.raises(CollcError) as caught:
        read(text)
    return [d.code for d in caught.value.diagnostics]


def test_the_file_that_others_are_made_of_is_right() -> None:
    report = verify_text(VALID)
    assert report.ok and report.kind == "oneccl-xml" and report.collective == "allreduce" and report.ranks == 2


@pytest.mark.parametrize("name", BROKEN_FORM)
def test_the_schema_refuses(name: str) -> None:
    with pytest.raises(CollcError) as caught:
        read(broken(BROKEN_FORM[name]), "bad.xml")
    found = caught.value.diagnostics
    assert {d.code for d in found} == {"C0753"}
    assert any(BROKEN_FORM[name][2] in d.message for d in found), [d.message for d in found]
    assert all(d.span is not None and d.span.line > 1 for d in found)


@pytest.mark.parametrize("name", BROKEN_RULES)
def test_a_rule_does_not_hold(name: str) -> None:
    report = verify_text(broken(BROKEN_RULES[name]))
    assert not report.ok
    assert f"({BROKEN_RULES[name][2]})" in report.failed[0].detail
    with pytest.raises(CollcError) as caught:
        load(broken(BROKEN_RULES[name]), "bad.xml")
    assert caught.value.diagnostics[0].code == ("C0757" if BROKEN_RULES[name][2] == "R11" else "C0756")


@pytest.mark.parametrize("name", WRONG)
def test_what_is_well_formed_and_wrong_is_found_by_executing_it(name: str) -> None:
    report = verify_text(broken(WRONG[name]))
    assert WRONG[name][2] in [check.name for check in report.failed]
    with pytest.raises(CollcError, match="is wrong") as caught:
        load(broken(WRONG[name]))
    assert caught.value.diagnostics[0].code == "C0757"


def test_places_in_messages_are_those_of_the_file() -> None:
    (races, *_) = [c for c in verify_text(broken(WRONG["a lost wait"])).checks if c.name == "races"]
    assert "rank 0, step 1.0, line 2" in races.detail and "threadblock" not in races.detail


def test_every_key_of_the_schema_is_broken_by_some_file() -> None:
    words = {change[2] for change in BROKEN_FORM.values()}
    keys = {word.split('"')[1] for word in schema_text().split("name=") if word.startswith('"')}
    declared = {k for k in keys if f'<xs:key name="{k}"' in schema_text() or f'<xs:unique name="{k}"' in schema_text()
                or f'<xs:keyref name="{k}"' in schema_text()}  # fmt: skip
    assert len(declared) > 12 and declared <= words


def test_every_rule_in_words_is_broken_by_some_file() -> None:
    rules = {change[2] for change in BROKEN_RULES.values()} | {"R1"}  # R1 is below
    assert rules == {f"R{k}" for k in range(1, 15)}
    assert all(f"{rule}:" in schema_text() or f"({rule}:" in schema_text() for rule in rules)


def test_the_documentation_names_the_rules_and_keys_that_there_are() -> None:
    text = (ROOT / "docs" / "oneccl.md").read_text()
    listed = re.findall(r"^\| (R\d+) \|", text, re.MULTILINE)
    assert listed == [f"R{k}" for k in range(1, 17)]
    keys = set(re.findall(r'<xs:(?:key|keyref|unique) name="(\w+)"', schema_text()))
    assert set(re.findall(r"^\| `(\w+)`", text.split("## Rules")[1].split("## ")[0], re.MULTILINE)) == keys


def test_numbers_are_in_order() -> None:
    swapped = VALID.replace('<rank id="0"', '<rank id="x"').replace('<rank id="1"', '<rank id="0"')
    assert _codes(swapped.replace('<rank id="x"', '<rank id="1"')) == ["C0755", "C0755"]
    assert (
        _codes(VALID.replace('<step id="0.0"', '<step id="0.3"').replace('step="0.0"', 'step="0.3"')) == ["C0755"] * 2
    )
    assert _codes(VALID.replace('ranks="2"', 'ranks="3"')) == ["C0755"]


def test_what_is_not_xml_or_not_safe() -> None:
    assert _codes(VALID.replace("</oneccl>", "")) == ["C0752"]
    assert _codes("<oneccl") == ["C0752"]
    bomb = '<?xml version="1.0"?><!DOCTYPE oneccl [<!ENTITY a "aaaaaaaaaa">]>' + VALID.split("\n", 2)[2]
    assert _codes(bomb) == ["C0754"]
    assert _codes(VALID.replace("halves", "&a;")) == ["C0752"]


def test_blanks_around_values_mean_nothing() -> None:
    spaced = VALID.replace('"input"', '" input\t"').replace('chunk="1"', 'chunk=" 1"').replace('"0.0"', '"\n0.0 "')
    assert read(spaced) == read(VALID)


def test_too_long_a_text_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.backends.oneccl_xml.reader.MAX_TEXT", 100)
    assert _codes(VALID) == ["C0754"]


def test_many_mistakes_are_told_at_once_but_not_all() -> None:
    assert len(_codes(VALID.replace('count="1"', 'count="0"'))) > 5
    assert len(_codes(VALID.replace('<sync step="0.0"/>', '<sync step="0.9"/>' * 100))) <= 20


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<oneccl>", True),
        (VALID, True),
        ("\ufeff" + VALID, True),
        ("<algo/>", False),
        ("<onecclx/>", False),
        ("", False),
    ],
)
def test_files_are_recognised_by_their_root_element(text: str, answer: bool) -> None:
    assert is_oneccl(text) is answer
