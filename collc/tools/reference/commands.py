"""The page of the command line: verbs by task, their options and examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...cli.arguments import Opt, Verb, usage
from ...cli.flags import GENERAL
from ...cli.tasks import EXAMPLES
from ...cli.verbs import VERBS, by_task
from .markdown import anchor, fenced, head, page, table

__all__ = ["commands_page"]

_TEXT = """All verbs of `collc` and their options. `collc VERB --help` prints the same, and `man collc-VERB` shows it.

The bare form `collc FILE.coll` is that of `collc compile`. Options may precede or follow files."""


def commands_page() -> str:
    """Return the text of the page."""
    verbs = (part for verb in VERBS.values() for part in _verb(verb))
    return page(head("Command line", _TEXT), *_tasks(), "## Options of all verbs", _options(GENERAL), *verbs)


def _tasks() -> Iterator[str]:
    yield "## Verbs by task"
    listed = [(task, VERBS[name]) for task, names in by_task().items() for name in names]
    rows = [(task, f"[`collc {verb.name}`](#{anchor(f'collc {verb.name}')})", verb.summary) for task, verb in listed]
    yield table(("task", "verb", "summary"), rows)


def _verb(verb: Verb) -> Iterator[str]:
    yield f"## collc {verb.name}"
    yield verb.summary
    yield fenced("text", usage(verb))
    if verb.details.strip():
        yield verb.details.strip()
    for title, group in verb.groups:
        if group is not GENERAL:
            yield f"**{title}.**"
            yield _options(group)
    yield fenced("sh", "\n".join(EXAMPLES[verb.name]))


def _options(group: Iterable[Opt]) -> str:
    return table(("option", "meaning"), [(f"`{opt.shown}`", opt.help) for opt in group])
