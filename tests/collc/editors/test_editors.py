"""Colors: the lexer and the TextMate grammar know the whole language, and are the same rules."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from places import ROOT

from collc import __version__
from collc.backends import TARGETS
from collc.editors import rules as rules_module
from collc.editors.rules import KINDS, WORD_OPERATORS, Rule, keywords, rules
from collc.editors.textmate import SCOPES, files, write_files
from collc.frontends.coll import FAMILIES, OPERATORS
from collc.frontends.coll.kinds import PREDEFINED
from collc.frontends.units import UNITS
from collc.passes import SCHEDULERS

pygments = pytest.importorskip("pygments", reason="Pygments is not installed")
lexer = import_module("collc.editors.lexer")

SHIPPED = ROOT / "collc" / "share" / "editors"
EXAMPLES = [*sorted((ROOT / "examples").rglob("*.coll")), *sorted((ROOT / "docs").glob("*.coll"))]
GRAMMAR = (ROOT / "frontends" / "coll" / "grammar.lark").read_text("utf-8")
#: keyword -> its terminal, as the grammar's text has them: found without the tables that the rules use
KEYWORDS = {word: name for name, word in re.findall(r"^([A-Z]+)\.3: /([a-z]+)\(", GRAMMAR, re.MULTILINE)}
KIND_OF = {token: kind for kind, token in lexer.TOKENS.items()}


def lexed(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) of every token that is no blank."""
    tokens = lexer.CollLexer().get_tokens(text)
    return [(KIND_OF.get(token, str(token)), part) for token, part in tokens if part.strip()]


def highlighted(text: str) -> list[tuple[str, str]]:
    """Return the same by the TextMate grammar, as editors apply it: by lines, the leftmost match first."""
    found: list[tuple[str, str]] = []
    kinds = {f"{scope}.coll": kind for kind, scope in SCOPES.items() if scope}
    patterns = json.loads(files()["coll.tmLanguage.json"])["patterns"]
    compiled = [(re.compile(one["match"]), one["captures"]) for one in patterns]
    for line in text.splitlines():
        at = 0
        while at < len(line):
            hits = [(match.start(), place) for place, (pattern, _) in enumerate(compiled)
                    if (match := pattern.search(line, at)) and match.end() > at]  # fmt: skip
            if not hits:
                found.append(("Token.Error", line[at:]))
                break
            start, place = min(hits)
            match = compiled[place][0].search(line, at)
            assert match is not None
            found += [("Token.Error", line[at:start])] if line[at:start].strip() else []
            captures = compiled[place][1].items()
            found += [(kinds[one["name"]], match[int(group)]) for group, one in captures if match[int(group)]]
            at = match.end()
    return found


# ---- the lexer


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_no_error(path: Path) -> None:
    text = path.read_text()
    assert "".join(part for _, part in lexer.CollLexer().get_tokens(text)) == text.strip("\n") + "\n"
    assert [part for kind, part in lexed(text) if kind == "Token.Error"] == []


def test_examples_are_found() -> None:
    assert len(EXAMPLES) > 20


def test_a_wrong_sign_is_an_error() -> None:
    assert ("Token.Error", "$") in lexed("topology t = $;") and ("Token.Error", '"') in lexed('include "a')


@pytest.mark.parametrize("word", KEYWORDS)
def test_a_keyword_is_known(word: str) -> None:
    kind = "word-operator" if word in WORD_OPERATORS else "keyword"
    assert lexed(word) == lexed(f"{word} ") == highlighted(word) == [(kind, word)]
    assert lexed(f"{word}x") == [("name", f"{word}x")]


def test_every_terminal_is_a_keyword_or_a_sign() -> None:
    assert set(keywords()) == set(KEYWORDS) and len(KEYWORDS) > 30
    signs = re.findall(r'^[A-Z]+: ((?:"[^"]+"(?: \| )?)+)$', GRAMMAR, re.MULTILINE)
    for sign in (sign for line in signs for sign in re.findall('"([^"]+)"', line)):
        assert lexed(sign) == highlighted(sign) and [part for _, part in lexed(sign)] == [sign]


def test_a_keyword_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = tuple(word for word in keywords() if word != "among")
    monkeypatch.setattr(rules_module, "keywords", lambda: fewer)
    assert not any(re.search(r"\bamong\b", one.pattern) for one in rules())
    assert files()["coll.tmLanguage.json"] != (SHIPPED / "coll.tmLanguage.json").read_text()


NAMES = [
    *((f"{name}(4)", "builtin", name) for name in (*FAMILIES, *OPERATORS, "ranks", "dihedral")),
    *((f"collective c = {name} on t;", "kind", name) for name in PREDEFINED),
    *((f"schedule c using {name};", "keyword" if name == "steps" else "kind", name) for name in SCHEDULERS.own),
    *((f"emit c as {name};", "kind", name) for name in TARGETS.own),
    *((f"x: 2.5 {unit},", "unit", unit) for unit in UNITS),
    *((f"x: 64{unit};", "unit", unit) for unit in UNITS),
]


@pytest.mark.parametrize(("text", "kind", "name"), NAMES)
def test_a_name_of_the_language_is_known(text: str, kind: str, name: str) -> None:
    assert (kind, name) in lexed(text) and (kind, name) in highlighted(text)


def test_what_stands_where() -> None:
    assert lexed("with { latency : 10 us, my-own: true }  # x") == [
        ("keyword", "with"), ("punctuation", "{"), ("option", "latency"), ("punctuation", ":"), ("number", "10"),
        ("unit", "us"), ("punctuation", ","), ("option", "my-own"), ("punctuation", ":"), ("constant", "true"),
        ("punctuation", "}"), ("comment", "# x"),
    ]  # fmt: skip
    assert lexed("link a[0..n-1] <-> ib : 3;")[3:8] == [
        ("number", "0"), ("operator", ".."), ("name", "n"), ("operator", "-"), ("number", "1"),
    ]  # fmt: skip
    assert ("name", "ib") in lexed("link a <-> ib : 3;")
    assert ("option", "size") in lexed("on t {\n  size: 1 MiB\n}") and ("keyword", "pre") in lexed("{\n  pre: x\n}")
    assert ("kind", "reduce-scatter") in lexed("{ custom: reduce-scatter }")
    assert ("keyword", "reduce") in lexed("at 0: reduce shard 1 from 0 to 1;")


# ---- both are the same rules


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_grammar_of_editors_gives_the_same(path: Path) -> None:
    text = path.read_text()
    assert highlighted(text) == lexed(text)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.kinds)
def test_a_rule_has_a_kind_for_each_group_and_matches_something(rule: Rule) -> None:
    pattern = re.compile(rule.pattern)
    assert pattern.groups == len(rule.kinds) and set(rule.kinds) <= set(KINDS)
    assert not pattern.match("") and "(?P" not in rule.pattern and "*+" not in rule.pattern


def test_every_kind_has_a_token_and_a_scope() -> None:
    used = {kind for one in rules() for kind in one.kinds}
    assert used == set(KINDS) == set(lexer.TOKENS) == set(SCOPES) == set(KIND_OF.values())
    assert len(set(SCOPES.values())) == len(SCOPES)


# ---- what is shipped


@pytest.mark.parametrize("name", files())
def test_a_shipped_file_is_up_to_date(name: str) -> None:
    assert (SHIPPED / name).read_text() == files()[name], "`python -m collc.editors.textmate -o collc/share/editors`"


def test_the_extension_names_its_files(tmp_path: Path) -> None:
    assert {path.name for path in SHIPPED.iterdir()} == set(files())
    package = json.loads(files()["package.json"])
    assert package["version"] == __version__
    (language,), (grammar,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    assert {language["configuration"], grammar["path"]} <= {f"./{name}" for name in files()}
    assert (language["id"], language["extensions"]) == (grammar["language"], [".coll"])
    assert json.loads(files()["coll.tmLanguage.json"])["scopeName"] == grammar["scopeName"]
    write_files(tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(files())


def test_pygments_finds_the_lexer() -> None:
    """By the entry point that an installation registers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    from pygments.plugin import LEXER_ENTRY_POINT

    module, _, name = project["entry-points"][LEXER_ENTRY_POINT]["coll"].partition(":")
    found = getattr(import_module(module), name)
    assert found is lexer.CollLexer and found.filenames == ("*.coll",) and "coll" in found.aliases
    assert any(one.startswith("pygments") for one in project["optional-dependencies"]["pygments"])


def test_only_the_lexer_needs_pygments() -> None:
    program = (
        "import sys; sys.modules['pygments'] = None\n"
        "import collc.editors.textmate, collc.cli.verbs, collc.api\n"
        "print(collc.editors.textmate.files()['package.json'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["contributes"]
