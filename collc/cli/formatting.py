"""``collc format``."""

from __future__ import annotations

from types import SimpleNamespace

from collc.ir.diagnostic import CollcError, Diagnostic

from ..files.texts import STDIN, Output, check_writable, write_all
from .arguments import usage_error
from .console import Console
from .inputs import read

__all__ = ["format"]


def format(options: SimpleNamespace, console: Console) -> int:
    """Print files in canonical form, rewrite them (``-i``), or list those that are not canonical (``--check``)."""
    if options.in_place and STDIN in options.files:
        raise usage_error("standard input cannot be rewritten in place", "leave out -i")
    if options.in_place and options.check:
        raise usage_error("-i rewrites files, --check does not change them", "give only one of the two")
    printed, changed, wrong = list[str](), list[Output](), list[Diagnostic]()
    for path in options.files:
        try:
            before, after = _formatted(path, console)
        except CollcError as mistake:
            wrong += mistake.diagnostics
            continue
        printed.append(after)
        if before != after:
            changed.append(Output(path, after))
    if wrong:
        raise CollcError(wrong)
    if options.check:
        for output in changed:
            console.out(f"{output.path}: would be formatted\n")
        return 1 if changed else 0
    if not options.in_place:
        console.out("".join(printed))
        return 0
    check_writable([output.path for output in changed])
    console.signals.check()
    write_all(changed)
    for output in changed:
        console.say(f"formatted {output.path}")
    return 0


def _formatted(path: str, console: Console) -> tuple[str, str]:
    from collc.frontends import coll

    from ..reading import require_known

    text, name = read(path, console)
    require_known(text, name, "format")
    return text, coll.format_text(text, name)
