"""Standard output and standard error: form, color and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from ..files.stdout import write_stdout
from .meter import WIDTH, Meter
from .signals import Signals

if TYPE_CHECKING:
    from types import SimpleNamespace

    from collc.ir.diagnostic import Diagnostic

__all__ = ["Console", "wants_color"]


def wants_color(choice: str, stream: TextIO | None, environment: dict[str, str] | os._Environ[str]) -> bool:
    """Return whether to color: by the flag, then NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR, the terminal and TERM."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("CLICOLOR_FORCE", "0") not in ("", "0") or environment.get("FORCE_COLOR", "0") not in (
        "",
        "0",
    ):
        return True
    return stream is not None and stream.isatty() and environment.get("TERM") != "dumb"


_SECONDS_SHOWN = 0.2  # between two counts of one line of progress


def _columns() -> int:
    """Return the characters of a line that the terminal of standard error does not wrap."""
    try:
        columns = os.get_terminal_size(2).columns
    except (OSError, ValueError):
        return WIDTH
    return min(WIDTH, columns - 1) if columns > 1 else WIDTH


class Console:
    """Collects diagnostics until the end, and prints them in the chosen form.

    Diagnostics, dumps and timings go to standard error; standard output holds only what was asked for.
    """

    def __init__(self) -> None:
        self.format, self.color, self.limit = "text", "auto", 20
        self.errors_only, self.warnings_off, self.warnings_fatal, self.verbose = False, False, False, False
        self.signals = Signals(self.last_words)
        self.diagnostics: list[Diagnostic] = []
        self.inputs: dict[str, str] = {}  # name -> text of each input, for a reproducer
        self.progress_shown, self.doing, self.shown_at = False, "", 0.0
        self.meter = Meter()

    def configure(self, options: SimpleNamespace) -> None:
        """Take over the options of the group General."""
        self.format, self.color, self.limit = options.diagnostics_format, options.color, options.error_limit
        self.errors_only, self.verbose = options.quiet, options.verbose
        self.warnings_off, self.warnings_fatal = options.w, options.Werror

    def guess(self, arguments: Sequence[str]) -> None:
        """Take over how diagnostics are shown from a command line that may turn out wrong."""
        for argument in arguments:
            name, _, value = argument.partition("=")
            if name == "--diagnostics-format" and value in ("text", "json", "sarif"):
                self.format = value
            if name == "--color" and value in ("auto", "always", "never"):
                self.color = value

    # ---- standard output

    def out(self, text: str) -> None:
        """Write to standard output, as UTF-8 whatever the locale."""
        self.clear_progress()
        try:
            write_stdout(text.encode("utf-8", "surrogateescape"))
        except BrokenPipeError:
            raise
        except OSError as problem:
            from collc.ir.diagnostic import error

            raise error(
                "C0004", f"cannot write standard output: {(problem.strerror or str(problem)).lower()}"
            ) from None

    def json(self, value: Mapping[str, object]) -> None:
        """Write one JSON object to standard output, with the version of its schema."""
        import json

        from ..tables.schemas import VERSION

        self.out(json.dumps({"schema": VERSION, **value}, indent=2) + "\n")

    # ---- standard error

    def err(self, text: str) -> None:
        """Write to standard error, if there is one."""
        self.clear_progress()
        if sys.stderr is not None and text:
            sys.stderr.write(text)
            sys.stderr.flush()

    def say(self, text: str) -> None:
        """Write one line to standard error if -v is given."""
        if self.verbose:
            self.err(f"collc: {text}\n")

    def say_between(self, text: str) -> None:
        """Write a line to standard error that separates two rounds of work, unless -q or a document asks for none."""
        if not self.errors_only and self.format == "text":
            self.err(f"---- {text} ----\n")

    def progress(self, text: str) -> None:
        """Show the current work, on a terminal only; the next output replaces it."""
        self.doing, self.shown_at = text, 0.0
        self.meter.update(text, 0, 0)
        self._show(text)

    def count(self, what: str, done: int, total: int) -> None:
        """Show the current one of ``total`` parts, as :meth:`progress` does; end if a signal asks for it."""
        self.signals.check()
        self.doing, self.shown_at = f"{done:,} of {total:,}: {what}" if total else what, 0.0
        self.meter.update("", done, total)
        self._show(self.doing)

    def follow(self, what: str, done: int = 0, total: int = 0) -> None:
        """Show the progress of a part a few times a second; end if a signal asks for it."""
        self.signals.check()
        now = time.monotonic()
        if now - self.shown_at < _SECONDS_SHOWN:
            return
        self.shown_at = now
        count = f" {done:,} of {total:,}" if total else f" {done:,}" if done else ""
        self.meter.update(what, done, total)
        self._show(f"{self.doing}: {what}{count}" if self.doing else f"{what}{count}")

    def _show(self, text: str) -> None:
        if self.errors_only or self.format != "text" or sys.stderr is None or not sys.stderr.isatty():
            return
        if os.environ.get("TERM") != "dumb" and not os.environ.get("CI"):
            plain = "utf" not in (sys.stderr.encoding or "").lower()
            line = self.meter.line(text, _columns(), plain=plain)
            self.progress_shown = True  # first: a signal may arrive when the line is half written
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def clear_progress(self) -> None:
        """Clear the line of progress, before other output."""
        self.doing = ""
        if self.progress_shown and sys.stderr is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.progress_shown = False

    def last_words(self) -> None:
        """Clear the line of progress, past the stream, which another thread may hold."""
        if self.progress_shown:
            os.write(2, b"\r\x1b[K")

    # ---- diagnostics

    def warn(self, warnings: Iterable[Diagnostic]) -> None:
        """Keep warnings for the end; with -Werror, raise them as errors."""
        import attrs

        from collc.ir.diagnostic import CollcError, Severity

        found = [] if self.warnings_off else list(dict.fromkeys(warnings))
        if self.warnings_fatal and found:
            raise CollcError([attrs.evolve(d, severity=Severity.ERROR, notes=(*d.notes, "-Werror")) for d in found])
        self.diagnostics += found

    def fail(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Keep errors for the end."""
        self.diagnostics += diagnostics

    def finish(self) -> None:
        """Print all diagnostics: as text if there are any, as JSON or SARIF one document always."""
        self.clear_progress()
        shown = self.diagnostics
        if self.format == "text":
            if self.errors_only:
                shown = [d for d in shown if str(d.severity) == "error"]
            if shown:
                from ..messages.render import as_text

                color = wants_color(self.color, sys.stderr, os.environ)
                self.err(as_text(shown, color=color, limit=self.limit))
        elif self.format == "json":
            from ..messages.render import as_json

            self.err(as_json(shown))
        else:
            from collc import __version__

            from ..messages.render import as_sarif

            self.err(as_sarif(shown, __version__))
