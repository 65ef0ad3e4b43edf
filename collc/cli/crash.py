"""Failures of the compiler itself: write a file that reproduces the failure, and print the command."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence

import attrs

from collc import __version__
from collc.ir.diagnostic import Diagnostic, Kind
from collc.ir.spec import Problem

from ..driver.pipeline import LEGALIZING
from ..files.texts import Output, write_all
from ..messages.internal import INTERNAL_STATUS, InternalError, fault
from ..registry.elements import parse_elements
from .console import Console

__all__ = ["report_crash"]


@attrs.frozen
class _Reproducer:
    """A text that makes ``command`` fail again; ``{}`` in the command is the name of the file."""

    text: str
    suffix: str
    command: tuple[str, ...]


def report_crash(problem: Exception, arguments: Sequence[str], console: Console) -> int:
    """Write the reproducer, add the diagnostic that names it, and return the exit status."""
    if os.environ.get("COLLC_DEBUG") == "1":
        console.err("".join(traceback.format_exception(problem)))
    reproducer = _reproducer(problem, arguments, console)
    path = _write(reproducer, problem)
    message = str(problem.diagnostics[0].message) if isinstance(problem, InternalError) else _message(problem)
    package = problem.package if isinstance(problem, InternalError) else None
    notes = list(problem.diagnostics[0].notes) if isinstance(problem, InternalError) else [fault()]
    if path is None:
        notes.append(f"command: {shlex.join(['collc', *arguments])}")
    else:
        command = shlex.join([path if word == "{}" else word for word in reproducer.command])
        notes += [f"{path} reproduces it", f"run: {command}"]
    hint = "report it with that file" if package is None else f"report it to the authors of `{package}`, with that file"
    console.fail([Diagnostic("C0070", message, notes=tuple(notes), hint=hint, kind=Kind.INTERNAL)])
    return INTERNAL_STATUS


def _message(problem: Exception) -> str:
    return f"internal error: {type(problem).__name__}: {problem}"


def _reproducer(problem: Exception, arguments: Sequence[str], console: Console) -> _Reproducer:
    """Return the IR before the failing pass if there is one, otherwise the input."""
    if isinstance(problem, InternalError) and problem.ir is not None and not isinstance(problem.ir, Problem):
        try:
            from collc.ir.text import print_ir

            # A program is emitted unchanged: `-p ''` runs no pass, and the passes that ran are not added again.
            command = ["collc", "compile", "{}", "-p", problem.remaining]
            command += ["-t", problem.target or "ir", "-o", os.devnull]
            left = {element.name for element in parse_elements(problem.remaining, "-p")}
            for name in LEGALIZING:
                if name in problem.done and name not in left:
                    command += ["--disable-pass", name]
            command += ["--verify=off"] if problem.unverified else []
            return _Reproducer(print_ir(problem.ir), ".ir", tuple(command))
        except Exception:  # the IR is too broken to print, so the input is the reproducer
            pass
    if not console.inputs:
        return _Reproducer("", ".txt", ("collc", *arguments))
    name, text = next(iter(console.inputs.items()))
    given = "-" if name == "<stdin>" else name
    words = ["{}" if word == given else word for word in arguments]
    if name != "<stdin>" and os.path.dirname(name):
        words += ["-I", os.path.dirname(name)]
    return _Reproducer(text, os.path.splitext(name)[1] or ".coll", ("collc", *words))


def _write(reproducer: _Reproducer, problem: Exception) -> str | None:
    """Write the file to the current folder, or to that of temporary files; return its path, or None.

    The content determines the name.
    """
    digest = hashlib.sha256((reproducer.text + " ".join(reproducer.command)).encode()).hexdigest()[:10]
    name = f"collc-crash-{digest}{reproducer.suffix}"
    for folder in ("", tempfile.gettempdir()):
        path = os.path.join(folder, name)
        try:
            write_all([Output(path, _with_header(reproducer, problem, path))])
        except Exception:
            continue
        return path
    return None


def _with_header(reproducer: _Reproducer, problem: Exception, path: str) -> str:
    """Return the text with the command and the traceback in comments, if its language has comments."""
    command = shlex.join([path if word == "{}" else word for word in reproducer.command])
    trace = re.sub(r'File ".*?([^/"]+/[^/"]+)"', r'File "\1"', "".join(traceback.format_exception(problem)))
    header = [
        "collc failed; this file reproduces the failure", f"run: {command}",
        f"collc {__version__}, Python {platform.python_version()}, {sys.platform}", "", *trace.splitlines(),
    ]  # fmt: skip
    comment = "".join(f"# {line}".rstrip() + "\n" for line in header)
    if reproducer.text.startswith("collc-ir"):
        first, _, rest = reproducer.text.partition("\n")
        return f"{first}\n{comment}{rest}"
    return reproducer.text if reproducer.text.lstrip().startswith("<") else comment + reproducer.text
