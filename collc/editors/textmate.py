"""The TextMate grammar, and the folder of an extension of Visual Studio Code that has it.

``python -m collc.editors.textmate -o collc/share/editors`` writes the files that are shipped.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .rules import rules

__all__ = ["SCOPES", "files", "write_files"]

#: kind of a rule -> scope of TextMate; None: no scope
SCOPES: dict[str, str | None] = {
    "space": None, "comment": "comment.line.number-sign", "string": "string.quoted.double",
    "number": "constant.numeric", "unit": "keyword.other.unit", "keyword": "keyword.control",
    "word-operator": "keyword.operator.word", "operator": "keyword.operator", "punctuation": "punctuation",
    "constant": "constant.language", "builtin": "support.function", "function": "entity.name.function",
    "kind": "entity.name.type", "option": "variable.parameter", "name": "variable.other",
}  # fmt: skip

#: The version of the extension is that of collc.
_VERSION = "0.1.0"
_GRAMMAR = "coll.tmLanguage.json"
_SETTINGS = "language-configuration.json"


def files() -> dict[str, str]:
    """Return the files of the extension by name.

    >>> list(files())
    ['coll.tmLanguage.json', 'package.json', 'language-configuration.json']
    """
    documents = {_GRAMMAR: _grammar(), "package.json": _package(), _SETTINGS: _settings()}
    return {name: json.dumps(document, indent=2) + "\n" for name, document in documents.items()}


def write_files(folder: Path) -> None:
    """Write the files into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


def _grammar() -> dict[str, object]:
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "comment": "Written by `python -m collc.editors.textmate` from the tables of the language.",
        "name": "collc", "scopeName": "source.coll", "fileTypes": ["coll"],
        "patterns": [{"match": one.pattern, "captures": _captures(one.kinds)} for one in rules()],
    }  # fmt: skip


def _captures(kinds: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the scopes of the groups of a pattern, by their numbers."""
    scopes = {str(place): SCOPES[kind] for place, kind in enumerate(kinds, start=1)}
    return {place: {"name": f"{scope}.coll"} for place, scope in scopes.items() if scope}


def _package() -> dict[str, object]:
    """Return the manifest of the extension, which has no code."""
    language = {"id": "coll", "aliases": ["collc"], "extensions": [".coll"], "configuration": f"./{_SETTINGS}"}
    grammar = {"language": "coll", "scopeName": "source.coll", "path": f"./{_GRAMMAR}"}
    return {
        "name": "coll", "displayName": "collc", "publisher": "collc", "version": _VERSION,
        "description": "Networks, collectives and schedules of collc (.coll files)", "license": "Apache-2.0",
        "engines": {"vscode": "^1.60.0"}, "categories": ["Programming Languages"],
        "contributes": {"languages": [language], "grammars": [grammar]},
    }  # fmt: skip


def _settings() -> dict[str, object]:
    """Return how an editor comments, and which signs it closes."""
    pairs = [["{", "}"], ["[", "]"], ["(", ")"]]
    return {
        "comments": {"lineComment": "#"}, "brackets": pairs,
        "autoClosingPairs": [*pairs, ['"', '"']], "surroundingPairs": [*pairs, ['"', '"']],
        "indentationRules": {"increaseIndentPattern": "\\{[^}\"#]*$", "decreaseIndentPattern": "^\\s*\\}"},
    }  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "-o":
        sys.exit("usage: python -m collc.editors.textmate -o DIR")
    write_files(Path(sys.argv[2]))
