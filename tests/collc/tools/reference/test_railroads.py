"""Every rule of the grammar has a diagram of today's rule, which shows all that the rule names, within its page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import attrs
import pytest
from places import ROOT

from collc.tools.reference import diagrams
from collc.tools.reference.grammar import Either, Leaf, Row, Rule, Word, leaves, rules, words
from collc.tools.reference.railroads import diagram

pytest.importorskip("railroad")

SVG = "{http://www.w3.org/2000/svg}"
RULES = rules()
IDS = [rule.name for rule in RULES]
#: rules that begin with themselves, which diagrams show as loops
LOOPS = ("disjunction", "conjunction", "sum", "product")
#: the widest text column of the site, in pixels, and of a forge
MOST_WIDE = 760


def shown(picture: str) -> set[tuple[str, bool]]:
    """Return the texts of a diagram, each with whether it is text as it stands."""
    root = ElementTree.fromstring(picture)
    return {
        (group.find(f"{SVG}text").text or "", "non-terminal" not in group.get("class", ""))  # type: ignore[union-attr]
        for group in root.iter(f"{SVG}g")
        if group.find(f"{SVG}rect") is not None
    }


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_the_diagram_is_the_one_that_is_committed(rule: Rule) -> None:
    path = ROOT / "docs" / "reference" / "grammar" / f"{rule.name}.svg"
    assert diagram(rule) == path.read_text("utf-8"), "`.venv/bin/python -m collc.tools.reference -o docs`"


def test_every_diagram_has_a_rule() -> None:
    found = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs/reference/grammar").iterdir()}
    assert set(diagrams()) == found


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_the_diagram_shows_what_the_rule_names(rule: Rule) -> None:
    named = {(leaf.text, leaf.kind == "fixed") for leaf in leaves(rule.body)}
    itself = {(rule.name, False)} if rule.name in LOOPS else set[tuple[str, bool]]()
    assert shown(diagram(rule)) == named - itself


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_everything_is_inside_the_picture(rule: Rule) -> None:
    root = ElementTree.fromstring(diagram(rule))
    _, _, width, height = map(float, root.get("viewBox", "").split())
    assert width <= MOST_WIDE
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.get(name, "0")) for name in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
    for style in ("prefers-color-scheme:dark", "background:#fff", "background:#16181c"):
        assert style in diagram(rule)


def test_a_changed_rule_changes_its_diagram() -> None:
    [rule] = [rule for rule in RULES if rule.name == "emit"]
    assert isinstance(rule.body, Either)
    other = attrs.evolve(rule, body=Row((Leaf("emit", "fixed"), Leaf("named", "rule"))))
    assert diagram(other) != diagram(rule)
    assert shown(diagram(other)) == {("emit", True), ("named", False)}


def test_alternatives_with_the_same_beginning_are_joined() -> None:
    a, b, c = (Leaf(name, "rule") for name in "abc")
    rule = Rule("r", "Declarations", "r: a b | a c", Either((Row((a, b)), Row((a, c)))))
    picture = diagram(rule)
    assert re.findall(r">(\w)</text>", picture) == ["a", "b", "c"]


def test_left_recursion_is_a_loop() -> None:
    sign, product_ = Leaf("+", "fixed"), Leaf("product", "rule")
    rule = Rule("sum", "Expressions", "", Either((product_, Row((Leaf("sum", "rule"), sign, product_)))))
    assert shown(diagram(rule)) == {("+", True), ("product", False)}


# ---- the grammar as it is read


def test_every_rule_of_the_file_is_read() -> None:
    text = (ROOT / "frontends" / "coll" / "grammar.lark").read_text()
    assert IDS == [name.lstrip("?!") for name in re.findall(r"^([?!]?[a-z_]+):", text, re.MULTILINE)]
    assert len(IDS) == len(set(IDS)) and {"file", "atom", "transfer"} <= set(IDS)
    assert {rule.part for rule in RULES} == {"Declarations", "Statements", "Expressions"}
    named = {leaf.text for rule in RULES for leaf in leaves(rule.body) if leaf.kind == "word"}
    assert named <= {word.name for word in words()}
    assert {name for rule in RULES for name in rule.others()} <= set(IDS)


@pytest.mark.parametrize("word", words(), ids=lambda word: word.name)
def test_words_are_regular_expressions_of_python(word: Word) -> None:
    examples = {
        "NUMBER": "12.5", "STRING": '"a b"', "NAME": "pod_1", "WORD": "msccl-xml", "HYPHENATED": "reduce-scatter",
        "UNIT": "GB/s",
    }  # fmt: skip
    if word.name == "GLOB":
        assert re.match(word.pattern, "mlx5_* }")
    else:
        assert re.fullmatch(word.pattern, examples[word.name])


def test_the_text_of_a_rule_is_that_of_the_file() -> None:
    found = {rule.name: rule.text for rule in RULES}
    assert found["emit"] == 'emit: EMIT named AS WORD ";"\n    | EMIT named AS WORD options [";"]'
    assert max(len(line) for text in found.values() for line in text.splitlines()) <= 100
    text = " ".join((ROOT / "frontends" / "coll" / "grammar.lark").read_text().split())
    assert all(" ".join(line.split()) in text for line in found["atom"].splitlines())
