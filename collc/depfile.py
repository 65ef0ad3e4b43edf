"""What a build system reads: make rules that say on which files an output depends."""

from __future__ import annotations

import os
from collections.abc import Sequence

from collc.ir.diagnostic import Diagnostic, error, warning

__all__ = ["depfile", "escape"]


def escape(path: str) -> str:
    r"""Return a path as a word of a make rule: blanks, ``#`` and ``$`` escaped, as make and Ninja both read them.

    >>> print(escape("a b#c$d"))
    a\ b\#c$$d
    """
    if "\n" in path or "\r" in path:
        raise error("C0901", f"the path {path!r} has a line break, which no depfile can hold")
    out, slashes = [], 0
    for char in path:
        if char in " \t#":
            # A backslash before an escaped character would itself be read as an escape.
            out.append("\\" * slashes + "\\")
        out.append("$$" if char == "$" else char)
        slashes = slashes + 1 if char == "\\" else 0
    return "".join(out)


def depfile(
    targets: Sequence[str], inputs: Sequence[str], *, phony: bool = False, absolute: bool = False
) -> tuple[str, list[Diagnostic]]:
    """Return the rule ``targets: inputs`` and the warnings about it.

    ``targets`` are words of a make rule already, where the user gave them (``-MT``); inputs are paths.
    ``phony`` adds an empty rule for every input but the first (``-MP``), so that a deleted include does not
    stop make. ``absolute`` makes the inputs' paths absolute, as CMake needs them.
    """
    paths = list(dict.fromkeys(os.path.abspath(p) if absolute else p for p in inputs if p != "-"))
    words = [escape(path) for path in paths]
    lines = [" \\\n  ".join([" ".join(targets) + ":", *words])]
    if phony:
        lines += [f"\n{word}:" for word in words[1:]]
    odd = [path for path in paths if "#" in path or "$" in path]
    warnings = []
    if odd:
        warnings.append(
            warning(
                "C0902",
                f"the depfile names `{odd[0]}`, which CMake 3.25 with Ninja gets wrong: it would rebuild always",
                notes=["it passes `#` and `$` on unescaped; make and Ninja by themselves read the depfile right"],
            )
        )
    return "\n".join(lines) + "\n", warnings
