"""One run of the command: dispatch, signals, and the report of every kind of failure."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

from collc.ir.progress import watched
from collc.ir.registry import consulting

from .arguments import check_outputs, expand_response_files, help_text, parse, usage_error
from .console import Console
from .signals import Terminated
from .threads import without_threads
from .verbs import ALIKE, LATER, VERBS, overview

__all__ = ["run"]

_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


def run(arguments: Sequence[str], *, alone: bool = False) -> int:
    """Run one command line and return its exit status; ``alone``: the process does nothing else."""
    console = Console()
    console.guess(arguments)
    try:
        with console.signals.caught(alone=alone), watched(console.follow):
            with consulting() as told:
                status = _guarded(arguments, console, alone)
            # A fault of another package is no fault of the input, so -Werror does not apply.
            console.diagnostics += [] if console.warnings_off else told
            console.signals.check()
            status = max(status, _flush(console))
            console.finish()
        return status
    except Terminated as end:
        with contextlib.suppress(OSError):
            console.clear_progress()
        if alone:
            _forget_output()
            _end_what_is_left(128 + end.number)
        return 128 + end.number
    except BrokenPipeError:
        _forget_output()
        return _BROKEN_PIPE


def _end_what_is_left(status: int) -> None:
    """End unknown child processes, and the process itself if a solver blocks its end."""
    from ..processes.children import end_children

    end_children()
    if any(thread.name == "solver" for thread in threading.enumerate()):
        os._exit(status)


def _guarded(arguments: Sequence[str], console: Console, alone: bool) -> int:
    """Dispatch; turn every exception into diagnostics and an exit status."""
    try:
        return _dispatch(expand_response_files(arguments), console, alone)
    except BrokenPipeError:
        raise
    except Exception as problem:
        console.signals.check()
        # Imported only now: listings do not need diagnostics.
        from collc.ir.diagnostic import CollcError

        from ..messages.internal import INTERNAL_STATUS, memory_error

        if isinstance(problem, CollcError) and problem.exit_status != INTERNAL_STATUS:
            console.fail(problem.diagnostics)
            return problem.exit_status
        if isinstance(problem, MemoryError):
            lack = memory_error("this compilation")
            console.fail(lack.diagnostics)
            return lack.exit_status
        from .crash import report_crash

        return report_crash(problem, arguments, console)


def _dispatch(arguments: list[str], console: Console, alone: bool) -> int:
    """Find the verb, parse its options, run it."""
    if not arguments:
        console.err(overview())
        return 2
    if arguments[0] in ("-h", "--help", "help"):
        return _help(arguments[1:], console)
    if arguments == ["--cmake-dir"]:
        console.out(f"{os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'share')}\n")
        return 0
    if arguments[0] in LATER:
        raise usage_error(
            f"this version does not have `collc {arguments[0]}`",
            LATER[arguments[0]],
            "C0022",
        )
    verb = VERBS.get(arguments[0])
    rest = arguments[1:] if verb else arguments
    if verb is None:
        _require_file(arguments[0])
        verb = VERBS["compile"]
    options = parse(verb, rest)
    console.configure(options)
    if options.version:
        from collc import __version__

        console.out(f"collc {__version__}\n")
        return 0
    if options.help:
        console.out(help_text(verb))
        return 0
    check_outputs(verb, options)
    if alone:
        from ..processes.memory import keep_freed_memory

        keep_freed_memory()
    with without_threads():
        module = import_module(f"collc.cli.{verb.module}")
    name = verb.name.replace("-", "_")
    run_verb = getattr(module, f"{name}_" if iskeyword(name) else name)
    if not (getattr(options, "time_passes", False) or getattr(options, "profile", None)):
        return int(run_verb(options, console))
    from .profile import profiled

    return profiled(verb, options, console, run_verb)


def _help(rest: list[str], console: Console) -> int:
    verb = VERBS.get(rest[0]) if rest else None
    console.out(help_text(verb) if verb else overview())
    return 0


def _require_file(word: str) -> None:
    """Raise C0001 if the first word of the bare form looks like a mistyped verb."""
    if word.startswith("-") or os.path.exists(word) or "." in word or "/" in word:
        return
    from collc.ir.diagnostic import nearest

    alike = f"`collc {ALIKE[word]}` does that" if word in ALIKE else None
    hint = alike or nearest(word, VERBS)
    raise usage_error(f"`{word}` is neither a verb nor a file", hint or "`collc --help` lists the verbs")


# ---- the edges of the process


def _flush(console: Console) -> int:
    """Flush standard output now, while a full disk or a closed pipe can still be reported."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        from collc.ir.diagnostic import error

        message = f"cannot write standard output: {(problem.strerror or str(problem)).lower()}"
        console.fail(error("C0004", message).diagnostics)
        _forget_output()
        return 1
    return 0


def _forget_output() -> None:
    """Redirect standard output to /dev/null, so that the interpreter's final flush does not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
