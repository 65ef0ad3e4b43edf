"""``collc convert``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace

import attrs

from collc.backends.base import Artifact, Target
from collc.ir.diagnostic import error

from ..files.naming import NamedFile, name_files, stem_of
from ..files.texts import STDOUT, Output, check_writable, is_folder, output_folder, write_all
from ..tools.conversion import Converted, convert_text
from .compile import outputs_object, outputs_tables, require_one_output
from .console import Console
from .inputs import read, settings, targets
from .tabular import show, wants_table
from .watcher import Watcher, show_times

__all__ = ["convert"]


def convert(options: SimpleNamespace, console: Console) -> int:
    """Convert every input to other targets; write all files or none; return the exit status."""
    _check(options)
    options.O = "2"  # for schedules; programs keep their arrangement if it fits
    elements, watcher = targets(options), Watcher(options, console)
    done: list[Converted] = []
    files: list[NamedFile] = []
    for path in options.files:
        text, name = read(path, console)
        converted = convert_text(
            text, name, elements, settings=settings(options), collective=options.collective, root=options.root,
            observer=watcher,
        )  # fmt: skip
        console.warn(converted.warnings)
        done.append(converted)
        files += _named(converted, path, options)
    watcher.ends()
    _write(files, options, console)
    show_times([converted.result for converted in done], options, console)
    results = [converted.result for converted in done]
    if wants_table(options):
        show(options, console, outputs_tables(files, results), lambda: outputs_object(files, results), lambda: "")
    return 0


def _check(options: SimpleNamespace) -> None:
    """Raise C0001 or C0021 for options that do not fit together."""
    require_one_output(options)
    several = len(options.files) > 1 and options.o is not None and not is_folder(options.o)
    if several:
        found = f"the outputs of {len(options.files)} files cannot go to one `{options.o}`"
        raise error("C0021", found, hint="name a folder (`-o DIR/`)", exit_status=2)


def _named(converted: Converted, path: str, options: SimpleNamespace) -> list[NamedFile]:
    """Return the files with their paths, named after the input, and after the runtime if they would replace it."""
    emitted = [(converted.result.name, target, artifacts) for target, artifacts in converted.result.emitted]
    stem, out = stem_of(path), options.o
    if out is not None and is_folder(out):
        emitted = [(stem, target, artifacts) for _, target, artifacts in emitted]
    found = name_files(emitted, stem, out, verify=converted.result.settings.verify != "off")
    if out is not None and not is_folder(out):
        return found
    return [_beside(file, emitted) if os.path.normpath(file.path) == os.path.normpath(path) else file for file in found]


def _beside(file: NamedFile, emitted: Sequence[tuple[str, Target, Sequence[Artifact]]]) -> NamedFile:
    """Return a file that would replace the input with its runtime in the name."""
    target = next(target for _, target, artifacts in emitted if file.artifact in artifacts)
    stem, suffix = os.path.splitext(file.path)
    return attrs.evolve(file, path=f"{stem}-{target.reader or target.name}{suffix}")


def _write(files: Sequence[NamedFile], options: SimpleNamespace, console: Console) -> None:
    outputs = [Output(file.path, file.artifact.content) for file in files]
    twice = sorted({o.path for o in outputs if o.path != STDOUT and sum(p.path == o.path for p in outputs) > 1})
    if twice:
        raise error(
            "C0021", f"several files would be `{twice[0]}`", hint="give the inputs different names", exit_status=2
        )
    check_writable([output.path for output in outputs], options.files, options.o)
    console.signals.check()
    with output_folder(options.o):
        write_all(outputs, if_changed=options.write_if_changed)
    for output in outputs:
        console.say(f"wrote {output.path} ({len(output.data)} bytes)")
