"""The text of every manual page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from collc import __version__

from ...cli.arguments import Opt, Verb, usage
from ...cli.flags import GENERAL
from ...cli.tasks import EXAMPLES
from ...cli.verbs import SUMMARY, VERBS, by_task
from .roff import bold, inline, paragraphs, term

__all__ = ["pages", "write_pages"]

_STATUS = (
    ("0", "done"), ("1", "errors in the input, or a check failed"), ("2", "wrong usage"),
    ("3", "no schedule exists within the limits"), ("70", "internal error; collc writes a reproducer"),
)  # fmt: skip


def pages() -> dict[str, str]:
    """Return the text of every page by the name of its file.

    >>> sorted(pages())[:3]
    ['collc-cache.1', 'collc-calibrate.1', 'collc-check.1']
    """
    texts = {"collc.1": _overview()}
    return {**texts, **{f"collc-{verb.name}.1": _page(verb) for verb in VERBS.values()}}


def write_pages(folder: Path) -> None:
    """Write all pages into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def _overview() -> str:
    """Return the page of the command: the verbs by task, and the options of all verbs."""
    lines = [*_head("collc", SUMMARY.rstrip(".")), ".SH SYNOPSIS"]
    lines += [bold("collc") + inline(" FILE.coll [-t TARGET] [-o OUT] [OPTIONS]"), ".br",
              bold("collc") + inline(" VERB [ARGUMENTS] [OPTIONS]")]  # fmt: skip
    lines += [".SH DESCRIPTION", inline(f"{SUMMARY} Each verb has a page: `man collc-compile`.")]
    lines.append(inline("The bare form is that of `collc compile`."))
    for task, names in by_task().items():
        lines.append(f".SS {_title(task)}")
        lines += [line for name in names for line in term(bold(name), VERBS[name].summary)]
    lines += [".SH OPTIONS", inline("All verbs take these options.")]
    lines += _options(GENERAL)
    lines += term(bold("--cmake-dir"), "print the folder of collc.cmake, collc.mk and files for editors")
    lines += _see(f"collc-{name}" for name in VERBS)
    return _text(lines)


def _page(verb: Verb) -> str:
    """Return the page of one verb."""
    lines = [*_head(f"collc-{verb.name}", verb.summary.rstrip(".")), ".SH SYNOPSIS"]
    words = usage(verb).split(" ")
    lines.append(bold(" ".join(words[:2])) + inline(" " + " ".join(words[2:])))
    lines += [".SH DESCRIPTION", inline(verb.summary), *paragraphs(verb.details)]
    for title, group in verb.groups:
        lines += [f".SH OPTIONS: {_title(title)}", *_options(group)]
    lines.append(".SH EXAMPLES")
    for command in EXAMPLES[verb.name]:
        lines += [".PP", ".nf", bold(command), ".fi"]
    return _text([*lines, *_see(["collc"])])


def _head(name: str, summary: str) -> list[str]:
    version = inline(f"collc {__version__}")
    title = inline(name.upper())
    return [
        '.\\" Written by `python -m collc.tools.manual` from the tables of the command line.',
        f'.TH {title} 1 "" "{version}" "collc"', ".SH NAME", f"{inline(name)} \\- {inline(summary)}",
    ]  # fmt: skip


def _options(group: Iterable[Opt]) -> Iterator[str]:
    for opt in group:
        yield from term(bold(opt.shown), " ".join(opt.help.split()))


def _see(names: Iterable[str]) -> list[str]:
    """Return the exit status and the other pages, with which each page ends."""
    status = [line for number, meaning in _STATUS for line in term(number, meaning)]
    return [".SH EXIT STATUS", *status, ".SH SEE ALSO", ", ".join(f"{bold(name)}(1)" for name in names)]


def _title(text: str) -> str:
    return inline(text.upper())


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
