"""YAML with places: values, what is refused with a caret, and text as people paste it."""

from __future__ import annotations

import time

import pytest
from mutated import cases, survives

from collc.frontends.importing.yaml_tree import Fields, Items, Node, Scalar, parse_yaml
from collc.ir.diagnostic import CollcError, Source


def plain(node: Node) -> object:
    """Return a value without places."""
    match node:
        case Scalar():
            return node.text
        case Items():
            return [plain(item) for item in node.items]
    return {key: plain(value) for key, (_, value) in node.entries.items()}


def tree(text: str) -> Node:
    return parse_yaml(Source("x", text))


def refused(text: str) -> tuple[str, int, int]:
    with pytest.raises(CollcError) as failure:
        tree(text)
    only = failure.value.diagnostics[0]
    assert only.code == "C0929" and only.span is not None
    return only.message, only.span.line, only.span.column


TEXT = "# a comment\n- topology: t1   # its name\n  tree:\n    sizes: [ 4, '16' ]\n    flags: {a: true, b: }\n- x\n"


def test_flow_and_block_values_are_maps_lists_and_texts() -> None:
    expected = [{"topology": "t1", "tree": {"sizes": ["4", "16"], "flags": {"a": "true", "b": ""}}}, "x"]
    assert plain(tree(TEXT)) == plain(tree(f"---\n{TEXT}")) == plain(tree("\ufeff" + TEXT)) == expected
    assert plain(tree("".join(f"> {line}\n" for line in TEXT.splitlines()))) == expected
    assert plain(tree(TEXT.replace("\n", "\r\n"))) == expected


def test_places_are_those_of_the_pasted_text() -> None:
    quoted = tree("".join(f"> {line}\n" for line in TEXT.splitlines()))
    for node, shift in ((tree(TEXT), 0), (quoted, 2)):
        assert isinstance(node, Items) and isinstance(node.items[0], Fields)
        sizes = node.items[0].entries["tree"][1]
        assert isinstance(sizes, Fields)
        key, value = sizes.entries["sizes"]
        assert isinstance(value, Items)
        assert (key.span.line, key.span.column, key.span.end_column) == (4, 5 + shift, 10 + shift)
        assert [(one.span.column, one.span.end_column) for one in value.items] == [
            (14 + shift, 15 + shift), (17 + shift, 21 + shift)
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a: &x 1\nb: *x\n", "found the anchor `&x`", 1, 4),
        ("a: 1\nb: *x\n", "found the alias `*x`", 2, 4),
        ("a: !!python/object:os.system 1\n", "found a tag", 1, 4),
        ("a: !!set {x, y}\n", "found a tag", 1, 4),
        ("a: 1\n  \nb: 2\na: 3\n", "found the key `a` twice", 4, 1),
        ("[a, b]: 1\n", "found a list or a map as a key", 1, 1),
        ("a: 1\n---\nb: 2\n", "found a second document", 2, 1),
        ("a: [1, 2\nb: 3\n", "found text that is not YAML: expected ',' or ']'", 2, 2),
        ("a: 1\n\tb: 2\n", "found text that is not YAML: found character '\\t'", 2, 1),
        ('a: "\\ud800"\n', "found half of a character", 1, 4),
        ("a: \ud800\n", "found text that is not YAML: the character 0xd800 is not allowed", 1, 4),
        ("", "found no value", 1, 1),
        ("# only a comment\n", "found no value", 1, 1),
    ],
)
def test_what_is_refused(text: str, message: str, line: int, column: int) -> None:
    found = refused(text)
    assert found[0].startswith(message) and found[1:] == (line, column)


def test_escapes_and_versions_beyond_all_limits() -> None:
    for text in ('a: "\\U7fffffff"\n', f"%YAML 1.{'9' * 5000}\n--- a\n"):
        with pytest.raises(CollcError):
            tree(text)


def test_line_ends_that_are_none_here_shift_no_place() -> None:
    assert refused("a: 1 # \u2028 \x85 \u2029\nb: *x\n")[1:] == (2, 4)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000, "{a: " * 50_000, "- x\n" * 2_000_000, "a:\n" * 300_000, "? " * 100_000]
)
def test_hostile_texts_are_refused_soon(text: str) -> None:
    began = time.process_time()
    with pytest.raises(CollcError):
        tree(text)
    assert time.process_time() - began < 40


def test_mutations() -> None:
    survives(tree, [TEXT, "a: [x, {y: 1}]\n"], cases())
