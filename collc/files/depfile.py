"""Make rules with the dependencies of outputs, for build systems.

GNU make reads a rule several times: for comments, recipes and assignments, then as variables, as words, as patterns of
file names. Each reading has its own special characters and its own escapes. Ninja and CMake know only a few of these
escapes, and take the other characters literally.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise

from collc.ir.diagnostic import CollcError, Diagnostic, error, warning

__all__ = ["depfile", "escape"]

_BACKSLASH = "[\\\\]"  # a pattern that matches one backslash, because readings drop different numbers of them
_BOTH = {" ": "\\ ", "\t": "\\\t", "#": "\\#", ":": "\\:", "$": "$$", ";": "\\\\\\;", "\v": "[\v]", "\f": "[\f]"}
_PATTERN = {"*": "\\*", "?": "\\?", "[": "\\["}
_TARGET = _BOTH | _PATTERN | {"=": "$(or =)", "\t": "$(subst x,\\\t,x)"}
_INPUT = _BOTH | _PATTERN | {"|": "\\|"}

#: Words that make does not take for the first file of several.
_DIRECTIVES = frozenset([
    "include", "-include", "sinclude", "load", "-load", "define", "endef", "undefine", "export", "unexport", "override",
    "private", "vpath", "ifdef", "ifndef", "ifeq", "ifneq", "else", "endif",
])  # fmt: skip

#: What Ninja 1.11 reads, in a word whose blanks, `#` and `$` are escaped.
_NINJA = re.compile(r"[a-zA-Z0-9+,/_:.~()}{%=@\[\]! #$\\\x80-\U0010ffff-]*(?<!\\)")


def escape(path: str, *, target: bool = False) -> str:
    r"""Return a path as a word of a make rule, one before the colon if it is a ``target``.

    Raises C0901 for a path that cannot be escaped.

    >>> print(escape("a b#c$d;e"))
    a\ b\#c$$d\\\;e
    """
    _require_escapable(path, target)
    special = _TARGET if target else _INPUT
    home = re.match(r"(\./+)*(?=~)", path)  # else a user's
    if target and path.endswith("&"):
        return escape(path[:-1], target=True) + "$(or &)"  # else targets of one recipe
    if home or re.search(r"[*?[\v\f]|\\+[;|=]|\\$", path):
        words = [_BACKSLASH if char == "\\" else special.get(char, char) for char in path]
        if home:
            words[home.end()] = "[~]"
        return "".join(words)
    # A backslash before an escaped character would itself be read as an escape.
    return re.sub(r"(\\*)([ \t#:])|(.)", lambda m: m[1] * 2 + special[m[2]] if m[2] else special.get(m[3], m[3]), path)


def _require_escapable(path: str, target: bool) -> None:
    """Raise C0901 for a path that make misreads with any escapes."""
    why = None
    if "\n" in path or "\r" in path:
        why = "has a line break, which no depfile can hold"
    elif target and "%" in path:
        why = "has a `%`, which makes a rule of it that holds for many files"
    elif target and re.fullmatch(r"(\./)*\.[A-Z_]+", path):
        why = "is a special target of make"
    if why:
        raise _refused(path, why)


def _refused(path: str, why: str) -> CollcError:
    return error(
        "C0901", f"the path {path!r} {why}", hint="rename the file; -MT gives an output another name in the rule"
    )  # fmt: skip


def _plain(path: str) -> str:
    """Return a path as a word for Ninja and CMake."""
    if "\n" in path or "\r" in path:
        raise _refused(path, "has a line break, which no depfile can hold")
    return re.sub(r"(\\*)([ \t#])", r"\1\1\\\2", path).replace("$", "$$")


def depfile(
    targets: Sequence[str], inputs: Sequence[str], *, words: Sequence[str] = (), phony: bool = False,
    absolute: bool = False,
) -> tuple[str, list[Diagnostic]]:  # fmt: skip
    """Return the rule ``targets: inputs`` and the warnings about it; raise C0901 for paths that it cannot hold.

    ``words`` are escaped already; the user gave them in place of the targets (``-MT``).
    ``phony`` adds an empty rule for every input but the first (``-MP``), so that a deleted include does not stop make.
    ``absolute`` makes the inputs' paths absolute and escapes them for CMake and Ninja instead of make.
    """
    paths = list(dict.fromkeys(os.path.abspath(p) if absolute else p for p in inputs if p != "-"))
    if absolute:
        left, right = [_plain(path) for path in targets], [_plain(path) for path in paths]
        empty = right[1:]
    else:
        _require_no_archive([*([] if words else targets), *paths])
        left, right = [] if words else _targets(targets), _inputs(paths)
        empty = [escape(path, target=True) for path in paths[1:]] if phony else []
    lines = [" ".join(words or left) + ":" + "".join(_apart(right))]
    if phony:
        lines += [f"\n{word}:" for word in empty]
    return "\n".join(lines) + "\n", _warnings(paths, right, absolute)


def _apart(words: Sequence[str]) -> list[str]:
    """Return words, each after a line break, which would swallow a blank before it."""
    return [(" " if before[-1] in " \t" else " \\\n  ") + word for before, word in pairwise([":", *words])]


def _targets(paths: Sequence[str]) -> list[str]:
    return _no_directive([escape(path, target=True) for path in paths])


def _no_directive(words: list[str]) -> list[str]:
    return [f"./{word}" if n == 0 and word in _DIRECTIVES else word for n, word in enumerate(words)]


def _inputs(paths: Sequence[str]) -> list[str]:
    """Return words in an order that make reads right: no ``NAME =`` in the first two, no blank at the line's end."""
    order = sorted(paths, key=lambda path: not path.endswith((" ", "\t")))
    if order and order[-1].endswith((" ", "\t")):
        raise _refused(order[-1], "ends in a blank, which make drops if no other file follows")
    if order and "=" in order[0]:
        plain = [path for path in order if "=" not in path and (path != order[-1] or order[-2][-1] not in " \t")]
        order = list(dict.fromkeys([*plain[:1], *order]))
    words = [escape(path) for path in order]
    words = [
        word.replace("=", "$(or =)") if n == 0 or (n == 1 and re.match("[+!]?=", word)) else word
        for n, word in enumerate(words)
    ]
    return _no_directive(words)


def _require_no_archive(paths: Sequence[str]) -> None:
    """Raise C0901 if make would see a member of an archive, ``ARCHIVE(MEMBER)``, in one path or across several."""
    opens = [path for path in paths if path.find("(") > 0]
    closes = [path for path in paths if path.endswith(")")]
    if opens and closes:
        raise _refused((*(path for path in opens if path in closes), *opens)[0], "is for make a member of an archive")


def _warnings(paths: Sequence[str], words: Sequence[str], absolute: bool) -> list[Diagnostic]:
    """Return a warning for the first path that CMake or Ninja misreads."""
    odd = [path for path in paths if "#" in path or "$" in path]
    lost = [path for path in paths if not _NINJA.fullmatch(path) or _plain(path) not in _as_ninja_reads(words)]
    if lost:
        can = not absolute and _NINJA.fullmatch(lost[0])
        note = "`-fdepfile-absolute` writes paths as CMake and Ninja read them" if can else "rename the file for Ninja"
        message = f"the depfile names {lost[0]!r}, which Ninja misreads: it would rebuild every time"
        return [warning("C0902", message, notes=[note] if absolute else ["make reads the depfile right", note])]
    if odd:
        return [
            warning(
                "C0902",
                f"the depfile names `{odd[0]}`, which CMake 3.25 with Ninja misreads: it would rebuild every time",
                notes=["it passes `#` and `$` on unescaped; make and Ninja by themselves read the depfile right"],
            )
        ]
    return []


def _as_ninja_reads(words: Sequence[str]) -> set[str]:
    """Return words as :func:`_plain` does, for Ninja, which reads `\\:` as a colon."""
    return {word.replace("\\:", ":") for word in words}
