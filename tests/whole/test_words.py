"""The documents as text: short sentences, one word for one thing, links that exist, numbers that commands print.

Names, docstrings, comments and messages of the code use the same words.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from places import ROOT as REPOSITORY

import collc
from collc import cli
from collc.frontends.coll import format_text

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((REPOSITORY / "docs").rglob("*.md")),
    *(REPOSITORY / folder / "README.md" for folder in ("examples/plugin", "benchmarks/testbed")),
]  # fmt: skip
GLOSSARY = REPOSITORY / "docs" / "glossary.md"
PATHS = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())

MOST_WORDS_ON_AVERAGE = 18
MOST_WORDS = 36

#: What the documents no longer say, and what they say instead.
BANNED = {
    r"\b(ways?) (of|over|round|back|there)\b|\bthe shortest ways?\b|\bprivate double\b": "route",
    r"\b(late|later) by\b|\blateness\b|\bleast late\b|\d+ ?\w?s late\b": "latency",
    r"\bwho doubts\b|\bwho wants\b|\bwhoever\b": "name the actor",
    r"\bstays? as (they are|it is)\b": "unmodified",
    r"\bis for both\b": "say which two",
    r"\bnobody\b|\banybody\b|\bsomebody\b": "name the actor",
    r"\bso many\b": "the number",
    r"\bat the moment of\b|\bthe house\b": "say what it is",
    r"\ball or none\b": "atomic",
    r"\b(lasts|waits?) until\b.*\bthere\b": "has arrived",
    r"\bneither .* nor .* nor\b": "a list",
    r"\bblazing|\bpowerful|\bseamless|\bstate[- ]of[- ]the[- ]art|\brobust\b|\bcutting[- ]edge": "a number",
}

#: How no sentence of the documents begins, and what to do instead. Questions may.
BANNED_STARTS = {
    r"who(ever|m|se)?\b": "name the actor",
    r"where\b": "begin with `if` for a condition, with the subject for a place",
    r"of (an?|all|the|both|several|two|such)\b": "begin with the subject, or `in`, `for`, `among`",
    r"(beside|besides|likewise|lest)\b": "begin with the subject",
    r"(so|such) (it )?is it with\b|so too\b": "begin with the subject",
}

#: Words of place for what has none, and words of another age.
BANNED |= {
    r"\bstands? (in|at|above|below|beside|before|behind|after|directly)\b": "is, or write it there",
    r"\b(shall|hence|thereby|thereof|whereby|lest)\b": "must, so, by this",
}

#: What pages written by hand no longer say, and what they say instead.
BANNED_BY_HAND = {
    r"\b(carr(y|ies)|(move|write|cost|read|hold|lose|change|gain|send|add)s?|does) nothing\b": "no data",
    r"\bnothing (is|are|was|were|in|takes?|remains|may|that|at all|else|more)\b": "name what there is none of",
    r"\bstay(s|ed)?\b": "remains, or: is kept",
    r"\banew\b": "again",
    r"\bin place of\b": "instead of",
    r"\b(is|are|that is|that are) no (prime|power|multiple|identifier)\b": "is not a",
    r"\bgo(es)? on\b": "continues",
    r"\btell(s|ing)? .{0,12}apart\b": "distinguish",
    r"\bthere and back\b": "in the two directions",
    r"\b(no one|everyone)\b": "name the actor",
    r"\belsewhere\b": "say where",
    r"\bin turn\b": "alternately",
    r"\bwhole numbers\b": "integers",
    r"\blives? in\b": "is in",
    r"\bwhatever\b": "for every, or: however",
    r"\bin silence\b": "without a warning",
    r"\d (us|ms|trees|chunks|links|ranks) an? (step|rank|node|shard|box|root)\b": "per",
}

#: How no sentence of a page written by hand begins.
BANNED_STARTS_BY_HAND = {
    r"(nothing|whatever|elsewhere|beyond)\b": "begin with the subject",
    r"of\b(?! course)": "begin with the subject, or `in`, `for`, `among`",
    r"so (is|are|has|have|do|does|was|were)\b": "repeat the verb: `.. is an error too`",
    r"not \w+:": "say which subject does not",
    r"what(ever)?\b": "begin with the noun",
    r"there,": "say where",
}

#: Every one has a definition.
WORDS = re.findall(
    r"[\w-]+",
    """
    rank switch link route shard part chunk piece step transfer message latency bandwidth dependency pipelining
    threadblock channel connection slot peer schedule forest program template group bound T_L T_B certificate cut
    partition target pass in-place window
    """,
)

#: folders with code of ours
CODE = ("ir", "frontends", "passes", "backends", "collc", "benchmarks", "examples")

#: Names that say nothing of what they hold, and the kind of name to give instead.
BANNED_NAMES = {
    **dict.fromkeys(("made", "such", "gone", "laid", "gaps"), "a noun for the data"),
    **dict.fromkeys(("told", "asked", "wanted", "said", "says", "goes", "go"), "a noun for the data"),
    **dict.fromkeys(("mine", "theirs", "yours", "who", "whom", "whose"), "name the owner"),
    **dict.fromkeys(("nobody", "somebody", "anybody", "everybody"), "`none`, or the rank"),
    **dict.fromkeys(("late", "lateness"), "`latency`, or `delayed`"),
    **dict.fromkeys(("way", "ways"), "`route`, or `direction`"),
    **dict.fromkeys(("unbeaten", "grower"), "the field's term"),
}

#: Words that no name contains.
BANNED_IN_NAMES = {"told", "asked", "wanted", "said", "nobody", "somebody", "lateness", "wish", "wishes", "unbeaten"}

#: Names that may stay, by folder or file, with the reason.
ALLOWED_NAMES = {
    # the data that every node wants of a source, a field of the linear programs; and short locals
    "passes/synthesis/flow": {"wanted", "mine"},
    # the links of a rank, and those that a torus needs
    "passes/synthesis/torus/shape.py": {"wanted", "mine"},
    # the request of a search, a class of the tools' interface
    "collc/tools/finding.py": {"Wanted", "wanted", "mine"},
    "collc/pictures/frontier.py": {"wanted"},
    "collc/api.py": {"wanted"},
    # the same request, and short locals of verbs
    "collc/cli": {"_wanted", "wanted", "told", "mine"},
    # the program of a result, a field of the driver's interface
    "collc/driver/result.py": {"made", "_made"},
    # the word that `collc/testbed/measure.c` prints
    "benchmarks/testbed/run.py": {"late"},
}

#: Phrases that code no longer says in docstrings, comments and messages, and what it says instead.
BANNED_PHRASES = {
    r"\b(no|some|any|every)body\b|\bwhoever\b": "name the actor",
    r"\bso many\b": "the number",
    r"\bany more\b": "no longer",
    r"\bneeded (is|are)\b": "found X, needed Y",
    r"\bturn(ed|s|ing)? round\b": "reverse",
    r"\blest\b": "so that .. not",
    r"\bready to raise\b": "return the error",
    r"\b(none|nothing|None) where\b|\bwhere there (is|are) (none|no)\b": "None if",
    r"\bunless (told|asked)\b": "by default",
    r"\bways? (of \d|over|round|back|there)\b|\bshortest ways?\b": "route",
    r"\blateness\b|\bunbeaten\b|\bgrower\b": "the field's term",
    r"\bby turns\b|\btakes? turns\b": "alternately",
    r"\bstays? as (they are|it is)\b": "unchanged",
    r"(^|[.!?\"] ?)Who\b(?![^.]*\?)": "name the actor",
    r"\bshall\b": "must",
}


# ---- reading Markdown


def prose(text: str) -> list[str]:
    """Return the paragraphs, list items and quotations of a page: no headings, no tables, no code, no pictures."""
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    found: list[list[str]] = []
    fresh = True
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith(("#", "|", "![", "    ")) or line.startswith("    "):
            fresh = True
            continue
        if fresh or re.match(r"([-*+]|\d+\.) ", bare):
            found.append([])
            bare = re.sub(r"^([-*+]|\d+\.) ", "", bare)
        found[-1].append(bare)
        fresh = False
    return [_plain(" ".join(lines)) for lines in found]


def _plain(paragraph: str) -> str:
    """Return the words of a paragraph: code counts as one word, of a link its text stays."""
    paragraph = re.sub(r"``.+?``|`[^`]+`", "code", paragraph)
    paragraph = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    return re.sub(r"\*\*|__", "", paragraph)


def sentences(text: str) -> list[str]:
    """Return the sentences of a page. One ends at a period, question or exclamation mark before a capital or code."""
    found: list[str] = []
    for paragraph in prose(text):
        found += re.split(r"(?<=[.!?])[)\"]?\s+(?=[\"(]?(?:[A-Z0-9_]|code\b|collc\b))", paragraph)
    return [sentence for sentence in found if length(sentence) > 1]


def length(sentence: str) -> int:
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def headings(text: str) -> list[str]:
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [_heading(line) for line in text.splitlines() if re.match(r"#{1,6} ", line)]


def _heading(line: str) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip())


def anchor(heading: str) -> str:
    """Return the anchor that code forges give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(text: str) -> list[str]:
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"``.+?``|`[^`\n]+`", "code", text))


# ---- what is wrong with a page


def long_sentences(text: str) -> list[str]:
    found = sentences(text)
    wrong = [sentence for sentence in found if length(sentence) > MOST_WORDS]
    average = sum(map(length, found)) / max(1, len(found))
    return [*wrong, f"average of {average:.1f} words"] if average > MOST_WORDS_ON_AVERAGE else wrong


def banned(text: str, patterns: Mapping[str, str] = BANNED) -> list[str]:
    paragraphs = [*prose(text), *headings(text), *_cells(text)]
    return [
        f"{match[0]!r} (say: {better}) in: {paragraph[:90]}"
        for pattern, better in patterns.items()
        for paragraph in paragraphs
        if (match := re.search(pattern, paragraph, re.IGNORECASE))
    ]


def banned_starts(text: str, patterns: Mapping[str, str] = BANNED_STARTS) -> list[str]:
    """Return the sentences that begin with what is banned; questions may."""
    return [
        f"{match[0]!r} ({better}) in: {sentence[:90]}"
        for pattern, better in patterns.items()
        for sentence in sentences(text)
        if (match := re.match(pattern, sentence, re.IGNORECASE)) and not sentence.rstrip().endswith("?")
    ]


def headless(text: str) -> list[str]:
    """Return the sentences whose subject is the block of code above them."""
    return re.findall(r"^```\n\n((?!collc|gloo)[a-z][^\n]*)", text, re.MULTILINE)


def _cells(text: str) -> list[str]:
    return [_plain(line) for line in text.splitlines() if line.lstrip().startswith("|")]


def repeated_headings(text: str) -> list[str]:
    found = [anchor(heading) for heading in headings(text)]
    return sorted({heading for heading in found if found.count(heading) > 1})


def dead_links(path: Path, text: str) -> list[str]:
    own = set(map(anchor, headings(text)))
    return [link for link in links(text) if not _leads_somewhere(path, own, urllib.parse.unquote(link))]


def _leads_somewhere(path: Path, own: set[str], link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    name, _, place = link.partition("#")
    there = (path.parent / name).resolve() if name else path
    if not there.exists():
        return False
    return not place or place in (own if there == path else _anchors(there))


@cache
def _anchors(path: Path) -> set[str]:
    return set(map(anchor, headings(path.read_text())))


# ---- the pages


@PATHS
def test_sentences_are_short(path: Path) -> None:
    assert long_sentences(path.read_text()) == []


@PATHS
def test_words_that_were_given_up_do_not_return(path: Path) -> None:
    assert banned(path.read_text()) == []


@PATHS
def test_sentences_begin_with_their_subject(path: Path) -> None:
    assert [*banned_starts(path.read_text()), *headless(path.read_text())] == []


def by_hand(path: Path) -> bool:
    """Return whether a page is written by hand: those of the reference have the words of the code."""
    return "reference" not in path.relative_to(REPOSITORY).as_posix() and path.name != "records.md"


def test_pages_written_by_hand_are_plain() -> None:
    paths = [*filter(by_hand, PAGES), REPOSITORY / "CHANGELOG.md"]
    texts = {path.relative_to(REPOSITORY).as_posix(): path.read_text() for path in paths}
    checks = ((banned, BANNED | BANNED_BY_HAND), (banned_starts, BANNED_STARTS | BANNED_STARTS_BY_HAND))
    assert [
        (name, wrong) for name, text in texts.items() for check, rules in checks for wrong in check(text, rules)
    ] == []


@PATHS
def test_every_heading_is_unique_on_its_page(path: Path) -> None:
    assert repeated_headings(path.read_text()) == []


@PATHS
def test_every_link_leads_somewhere(path: Path) -> None:
    assert dead_links(path, path.read_text()) == []


@PATHS
def test_pages_link_to_the_glossary(path: Path) -> None:
    assert path == GLOSSARY or any("glossary.md" in link for link in links(path.read_text()))


def test_the_index_lists_every_page() -> None:
    index = REPOSITORY / "docs" / "index.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index.read_text())}
    assert [path for path in PAGES if path != index and path not in listed] == []


def test_the_glossary_defines_every_word() -> None:
    assert set(map(str.lower, WORDS)) <= set(map(anchor, headings(GLOSSARY.read_text())))


@PATHS
def test_every_specification_that_is_shown_can_be_parsed(path: Path) -> None:
    for block in specifications(path):
        format_text(block, "shown.coll")


def specifications(path: Path) -> list[str]:
    return re.findall(r"^```coll\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def shown_options(text: str) -> set[tuple[str, str, str]]:
    """Return (verb that lists it, owner, option) for `using NAME { .. }`, `as NAME { .. }` and `NAME{a=b}`."""
    found = set()
    for verb, owner, given in [
        *(("schedulers", *match) for match in re.findall(r"using ([\w-]+) \{([^}]*)\}", text)),
        *(("targets", *match) for match in re.findall(r"as ([\w-]+) \{([^}]*)\}", text)),
        *(("targets", *match) for match in re.findall(r"\b((?:msccl|oneccl)-xml|mpi-c|ir)\{([^}]*)\}", text)),
        *(("passes", *match) for match in re.findall(r"\b(coalesce|discretize|lower)\{([^}]*)\}", text)),
    ]:
        bare = re.sub(r'"[^"]*"', "text", given)
        found |= {(verb, owner, option) for option in re.findall(r"([a-zA-Z][\w-]*)\s*[:=]", bare)}
    return {option for option in found if option[1] != "steps" and option[1].islower()}


# the explanations of diagnostics show mistakes
@pytest.mark.parametrize("path", [path for path in PAGES if not path.name.startswith("diagnostics-")], ids=str)
def test_options_that_are_shown_exist(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb, owner, option in sorted(shown_options(path.read_text())):
        assert cli.main([verb, owner, "--json"]) == 0
        known = {one["name"] for one in json.loads(capsys.readouterr().out)["options"]}
        if verb == "schedulers":
            known.add("relays")  # of every scheduler, for members
        assert option in known, (owner, option)


def commands(text: str) -> list[list[str]]:
    """Return the words of every `collc ..` that a page shows, in blocks of commands and in sentences."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    shown += re.findall(r"`((?:COLLC_\w+=\S+ )?collc [^`\n]+)`", text)
    found = (re.search(r"(?:^|bin/|\$\()(collc .*)", re.split(r"\s+#|\s--\s|[;&|)]\s", line)[0]) for line in shown)
    return [match[1].split() for match in found if match]


@PATHS
def test_commands_that_are_shown_exist(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--help"])
    verbs = set(re.findall(r"^  (\w+) ", capsys.readouterr().out, re.MULTILINE))
    for words in commands(path.read_text()):
        verb = words[1] if words[1] in verbs else "compile"
        assert verb != "compile" or words[1] in verbs or re.search(r"[.\-]|^[A-Z]+$|^@|^/", words[1]), words
        cli.main([verb, "--help"])
        known = capsys.readouterr().out
        for option in (word.split("=")[0].rstrip(".,;:)\"'") for word in words if word.startswith("--")):
            assert option == "--cmake-dir" or re.search(re.escape(option) + r"(?![\w-])", known), (words, option)


def test_commands_are_seen() -> None:
    text = "```sh\n.venv/bin/collc run a.coll --csv  # --not\ncollc launch b.coll -- app --nor\n```\n`collc cost x`"
    assert commands(text) == [
        ["collc", "run", "a.coll", "--csv"],
        ["collc", "launch", "b.coll"],
        ["collc", "cost", "x"],
    ]


def test_options_are_seen() -> None:
    text = """schedule c using auto { sizes: all, candidates: "swing: 1" };
    emit c as mpi-c { max-bytes: 1 }; -t 'ir{level=program}'"""
    assert shown_options(text) == {
        ("schedulers", "auto", "sizes"),
        ("schedulers", "auto", "candidates"),
        ("targets", "mpi-c", "max-bytes"),
        ("targets", "ir", "level"),
    }


# ---- places

#: folders at the top of the repository that pages name
TOPS = ("ir", "frontends", "passes", "backends", "collc", "tests", "benchmarks", "examples", "docs")
_PLACE = re.compile(rf"(?<![\w./$-])(?:\./)?((?:{'|'.join(TOPS)})/[\w./-]*|\.ci/\w+)")


def places(text: str) -> set[str]:
    """Return the files and folders of the repository that a page names, in sentences, tables and commands.

    Capitals stand for any name (`benchmarks/NAME.py`).
    """
    found = {match[1].rstrip("./-") for match in _PLACE.finditer(text)}
    return {place for place in found if not re.search(r"(^|/)[A-Z]{2,}(\.|/|$)", place)}


def files_to_write(text: str) -> set[str]:
    """Return the files that a page tells its reader to write: code of a file begins with its place."""
    return {
        *re.findall(r"^```python\n# ([\w./-]+\.py)\n", text, re.MULTILINE),
        *re.findall(r"Add a case, `(\S+)`", text),
    }


def missing(text: str) -> list[str]:
    return sorted(place for place in places(text) - files_to_write(text) if not (REPOSITORY / place).exists())


@PATHS
def test_every_place_that_is_named_exists(path: Path) -> None:
    assert missing(path.read_text()) == []


def docstrings_and_comments(source: str) -> str:
    """Return the docstrings and comments of a module."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, _DOCUMENTED)]
    comments = [match[0] for match in re.finditer(r"(?:^|[ ]{2})#:? .*", source, re.MULTILINE)]
    return "\n".join([*(ast.get_docstring(node) or "" for node in nodes), *comments])


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def missing_files(source: str) -> list[str]:
    """Return the files that a module's docstrings and comments name and that do not exist."""
    return [place for place in missing(docstrings_and_comments(source)) if "." in place] if missing(source) else []


def test_docstrings_and_comments_name_files_that_exist() -> None:
    paths = [path for top in TOPS for path in sorted((REPOSITORY / top).rglob("*.py"))]
    found = {str(path.relative_to(REPOSITORY)): missing_files(path.read_text()) for path in paths}
    assert {name: places for name, places in found.items() if places} == {}
    assert "ir/bounds.py" in missing_files('def f():\n    """Bounds are in ``ir/bounds.py``."""')
    assert "ir/bounds.py" in missing_files("x = 1  " + "# as ir/bounds.py says")


def references(name: str, source: str) -> list[str]:
    """Return the references by role (``:func:`..base.remark```) in a module whose module does not exist.

    Those without dots are of the same module, which linters do not see either: they are not tried.
    """
    package = name.split(".")[:-1]
    found = []
    for role, dots, path in re.findall(r":(mod|func|class|data|meth):`~?(\.*)(\w+(?:\.\w+)+|\w+)`", source):
        base = package[: len(package) - len(dots) + 1] if dots else []
        parts = [*base, *path.split(".")]
        if parts[0] != "collc" or not (dots or "." in path):
            continue
        if not any(
            _is_module(parts[:known]) for known in (len(parts), *((len(parts) - 1, len(parts) - 2) * (role != "mod")))
        ):
            found.append(f":{role}:`{dots}{path}`")
    return found


def _is_module(parts: list[str]) -> bool:
    folders = parts[1:] if len(parts) > 1 and parts[1] in TOPS else parts
    path = REPOSITORY.joinpath(*folders)
    return len(parts) > 1 and (path.is_dir() or path.with_suffix(".py").is_file())


def test_references_in_docstrings_name_modules_that_exist() -> None:
    found = {}
    for top in ("ir", "frontends", "passes", "backends", "collc"):
        for path in sorted((REPOSITORY / top).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            found[str(path)] = references(".".join(parts if top == "collc" else ("collc", *parts)), path.read_text())
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_a_reference_to_a_module_that_is_gone_is_found() -> None:
    text = ":mod:`.timing`, :func:`..base.remark`, :mod:`collc.ir.bounds`, :class:`collc.ir.program.Program`, :func:`f`"
    assert references("collc.passes.program.fuse", text) == [":mod:`.timing`", ":mod:`collc.ir.bounds`"]


def test_places_are_seen() -> None:
    text = "`ir/cost.py`, [a](docs/x.md) and tests/cases/AREA/x.coll; (passes/base.py). ../ir/x.py a/ir/y.py"
    assert places(text) == {"ir/cost.py", "docs/x.md", "passes/base.py"}
    assert missing(text) == ["docs/x.md", "ir/cost.py"]
    assert missing("```python\n# passes/fresh.py\n```\n`passes/fresh.py`") == []


# ---- names and prose of the code


def modules() -> list[Path]:
    return [path for folder in CODE for path in sorted((REPOSITORY / folder).rglob("*.py"))]


def names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module gives: functions, classes, parameters, variables, fields."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def banned_names(place: str, source: str) -> list[str]:
    """Return the banned names that a module gives, and the kind of name to give instead."""
    allowed = {name for start, some in ALLOWED_NAMES.items() if place.startswith(start) for name in some}
    given = set(names(ast.parse(source))) - allowed if _ANY_NAME.search(source) else set()
    return sorted(f"{name} (say: {better})" for name in given if (better := _better_name(name)))


#: such a word where a name is given; modules without one are not parsed
_ANY_NAME = re.compile(
    rf"(?i)(?<![a-z])({'|'.join(sorted({*BANNED_NAMES, *BANNED_IN_NAMES}))})(?![a-z])\w*\s*([^\w\s]?=|[:,()\[\]]|in\b)"
)


def _better_name(name: str) -> str:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    if len(words) == 1 and words[0].lower() in BANNED_NAMES:
        return BANNED_NAMES[words[0].lower()]
    return "a noun for the data" if BANNED_IN_NAMES.intersection(word.lower() for word in words) else ""


def prose_of_code(source: str) -> Iterator[str]:
    """Yield the docstrings and messages of a module, and its lines with comments, without quoted code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    yield from (match[0] for match in re.finditer(r"(?:^|[ ]{2}|\n *)#:? .*(?:\n *#:? .*)*", source))


def banned_phrases(source: str) -> list[str]:
    if not _ANY_PHRASE.search(_words(source)):
        return []  # most modules: the search of their parts would take longer
    return [
        f"{match[0]!r} (say: {better}) in: {text[:90]}"
        for text in map(_words, prose_of_code(source))
        for pattern, better in BANNED_PHRASES.items()
        if (match := re.search(pattern, text))
    ]


_ANY_PHRASE = re.compile("|".join(BANNED_PHRASES))


def _words(text: str) -> str:
    """Return a text in one line, without marks of comments and without quoted code."""
    return " ".join(re.sub(r"``.+?``|`[^`\n]+`|\n *#:?", " code " if "`" in text else " ", text).split())


def test_names_that_were_given_up_do_not_return() -> None:
    found = {str(p): banned_names(p.relative_to(REPOSITORY).as_posix(), p.read_text()) for p in modules()}
    assert {path: names for path, names in found.items() if names} == {}


def test_every_allowed_name_is_in_use() -> None:
    for start, allowed in ALLOWED_NAMES.items():
        paths = [path for path in modules() if path.relative_to(REPOSITORY).as_posix().startswith(start)]
        texts = [text for text in (path.read_text() for path in paths) if any(name in text for name in allowed)]
        assert allowed <= {name for text in texts for name in names(ast.parse(text))}, start


def test_phrases_that_were_given_up_do_not_return_to_code() -> None:
    found = {str(path): banned_phrases(path.read_text()) for path in modules()}
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize(
    "source",
    [
        "made = f()",
        "for _mine in f(): pass",
        "def told(): pass",
        "def f(*, wanted): pass",
        "class Wanted: pass",
        "class C:\n    late: int = 0",
        "self.ways = 3",
        "both, (waits_told, _) = f()",
        "x = [1 for such in f()]",
    ],
)
def test_a_banned_name_is_found(source: str) -> None:
    assert banned_names("ir/planted.py", source)


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return the place; None where there is none."""',
        "x = 1  # nobody reads it",
        'raise error("C0001", f"found {n}, needed are {m}")',
        'x = "so many ranks"',
        'def f():\n    """Who sends which tree."""',
    ],
)
def test_a_banned_phrase_of_code_is_found(source: str) -> None:
    assert banned_phrases(source)


def test_nothing_is_found_in_plain_code() -> None:
    source = 'both_ways = template(latency)  # the `way` of links, in both ways\nx = {"so": "many"}'
    assert [*banned_names("ir/plain.py", source), *banned_phrases(source)] == []


# ---- numbers

#: The columns of the table in the README.
NAMES = ("collc", "one_ring", "two_rings", "recursive_doubling", "rabenseifner")


#: a row of times by size, and where the table of GPUs begins
SIZE_ROW = re.compile(r"^\| (\w+ [KMG]iB) +\|(.*)\|$", re.MULTILINE)
ON_GPUS = "**Predicted, on GPUs.**"
BASELINES = ("NCCL ring", "NCCL tree", "PAT", "two-level PAT")


def test_the_table_of_the_readme_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    readme = (REPOSITORY / "README.md").read_text()
    command = next(
        line for line in readme.splitlines() if line.startswith("collc simulate docs/comparison.coll --size")
    )
    assert cli.main([*command.split()[1:], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    times: dict[str, list[float]] = {}
    for entry in printed["collectives"]:
        fastest = [point["time_us"] for point in entry["points"]]
        name = entry["name"].split("-")[0]
        times[name] = list(map(min, times.get(name, fastest), fastest))
    rows = SIZE_ROW.findall(readme.split(ON_GPUS)[0])
    assert len(rows) == len(times["collc"])
    for i, (_, cells) in enumerate(rows):
        shown = [float(cell) for cell in re.findall(r"([\d.]+) us", cells)]
        expected = [times[name][i] for name in NAMES]
        assert shown == pytest.approx(expected, rel=0.01)
        ratios = [float(cell) for cell in re.findall(r"([\d.]+)x", cells)]
        assert ratios == pytest.approx([time / expected[0] for time in expected[1:]], rel=0.05)


@pytest.mark.slow
def test_the_baselines_of_the_readme_and_of_their_page_are_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command of the page has the sizes of the README and more, so it runs once for both."""
    monkeypatch.chdir(REPOSITORY)
    readme = (REPOSITORY / "README.md").read_text().split(ON_GPUS)[1]
    page = (REPOSITORY / "docs" / "baselines.md").read_text()
    shorter, command = (
        next(line for line in text.splitlines() if line.startswith("collc cost docs/cluster.coll"))
        for text in (readme, page)
    )
    assert command.startswith(shorter)
    assert cli.main([*command.split()[1:], f"--csv={tmp_path}/times.csv"]) == 0
    block = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out.endswith(block[0])
    times: dict[str, dict[str, tuple[float, float, str]]] = {}
    for row in csv.DictReader((tmp_path / "times.csv").read_text().splitlines()):
        found = (float(row["time_us"]), float(row["ratio"]), row["best"])
        times.setdefault(row["size_bytes"], {})[row["algorithm"]] = found
    rows = SIZE_ROW.findall(readme)
    assert len(rows) == len(shorter.split()[-1].split(","))
    for (_, cells), point in zip(rows, times.values(), strict=False):
        shown = [float(number) * {"us": 1, "ms": 1000}[unit] for number, unit in re.findall(r"([\d.]+) ([um]s)", cells)]
        assert shown == pytest.approx([point[name][0] for name in ("collc", *BASELINES)], rel=0.001)
        [(best, ratio)] = [(name, ratio) for name, (_, ratio, is_best) in point.items() if is_best == "1"]
        assert cells.strip().endswith(f"{ratio:.2f}x, {best}")


def test_the_measured_times_of_the_readme_are_those_of_the_testbed() -> None:
    rows = re.findall(r"^\| (\S.*? \| \d+) \|(.* ms \|.*)\|$", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    table = (REPOSITORY / "docs" / "testbed.md").read_text().split("## Results at 40 Mbit/s")[0]
    measured = [set(re.findall(r"[\d.]+", line)) for line in table.splitlines() if "| 1 MiB |" in line]
    assert len(rows) == len(measured) == 4
    for (_, cells), numbers in zip(rows, measured, strict=True):
        times = re.findall(r"([\d.]+) ms", cells)
        assert len(times) == 4 and set(times) <= numbers


def test_the_api_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    readme = (REPOSITORY / "README.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert len(code) == 1
    exec(code[0].replace('"out/"', f'"{tmp_path}/"'), {"collc": collc})
    assert list(tmp_path.iterdir())


# ---- the checks themselves find what they are for


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (long_sentences, "Who " + "doubts " * MOST_WORDS + "it."),
        (long_sentences, "One sentence has about twenty-one words. " * 1 + ("A " + "word " * 21 + "ends. ") * 5),
        (banned, "Routes of 5 links: ways of 5 links."),
        (banned, "# Programs that stay as they are"),
        (banned, "| a | who doubts it |"),
        (banned, "The value stands in the file."),
        (banned_starts, "A sentence. Who doubts it checks it."),
        (lambda text: banned(text, BANNED_BY_HAND), "A dotted link carries nothing."),
        (lambda text: banned(text, BANNED_BY_HAND), "Trees stay as low. The sweep goes on."),
        (lambda text: banned(text, BANNED_BY_HAND), "| rate | 10 us a step |"),
        (lambda text: banned_starts(text, BANNED_STARTS_BY_HAND), "It fails. So is a file without a line."),
        (lambda text: banned_starts(text, BANNED_STARTS_BY_HAND), "It is. Of 1,000 faults one is found."),
        (headless, "```sh\nls\n```\n\nprints the files."),
        (banned_starts, "* Where links differ, it is slow."),
        (banned_starts, "It is fast. Of an allreduce both phases count."),
        (repeated_headings, "# One\n\n## Two\n\n## two"),
        (lambda text: dead_links(GLOSSARY, text), "[a](nowhere.md)"),
        (lambda text: dead_links(GLOSSARY, text), "[a](glossary.md#no-such-word)"),
        (lambda text: dead_links(GLOSSARY, text), "# Here\n\n[a](#there)"),
    ],
)
def test_a_fault_is_found(check: object, text: str) -> None:
    assert callable(check) and check(text)


@pytest.mark.parametrize(
    "text",
    [
        "```\n" + "word " * 100 + "\n```",
        "    " + "word " * 100,
        "| " + "word " * 100 + "|",
        "A short one. Another one, with `code. And more` and e.g. 3.11 or later.",
        "* one item\n* another item\n" * 30,
        "Where are the links? A test stands. Of course it does. Those of a forest differ.",
        "# Here\n\n[a](#here), [b](https://example.org/#x)",
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(text: str) -> None:
    assert [*long_sentences(text), *banned(text), *banned_starts(text), *dead_links(GLOSSARY, text)] == []
