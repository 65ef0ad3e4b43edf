"""Paths for the files of a compilation."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from collc.backends import TARGETS
from collc.backends.base import Artifact, Target
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.node_names import split_name

from ..messages.internal import InternalError
from .texts import is_direct, is_folder

__all__ = ["NamedFile", "file_name", "identifier", "main_paths", "name_files", "stem_of"]


@frozen
class NamedFile:
    """A file with its path, its collective and its target."""

    path: str
    collective: str
    target: str
    artifact: Artifact


def stem_of(path: str) -> str:
    """Return the default name of an input's outputs: its own name without folder and last suffix.

    >>> stem_of("a/pod.coll"), stem_of("-")
    ('pod', 'stdin')
    """
    return os.path.splitext(os.path.basename(path))[0] if path != "-" else "stdin"


def main_paths(outputs: Sequence[tuple[str, Target]], stem: str, out: str | None) -> list[str]:
    """Return the path of the main file of every (collective, target), in order.

    Without ``out``, a single file is named after the input (``stem``). Several files, and all files in a folder, are
    named after their collectives; the target names a shared file. A repeated name gets a number. Raises C0021 if
    several files would have one path, C0721 if a name is that of a system header.
    """
    paths = _main_paths(_one_per_shared(outputs), stem, out)
    for path, (_, target) in zip(paths, _one_per_shared(outputs), strict=False):
        if not is_direct(path):
            target.require_stem(os.path.splitext(os.path.basename(path))[0])
    return paths


def _main_paths(outputs: Sequence[tuple[str, Target]], stem: str, out: str | None) -> list[str]:
    if out is not None and not is_folder(out):
        if len(outputs) > 1:
            listed = ", ".join(f"`{name}` as {target.name}" for name, target in outputs[:4])
            raise error(
                "C0021",
                f"{len(outputs)} outputs cannot go to one file `{out}`",
                notes=[f"outputs: {listed}{', ...' if len(outputs) > 4 else ''}"],
                hint="name a folder (`-o DIR/`), or choose one with --collective and -t",
                exit_status=2,
            )
        return [out] * len(outputs)
    folder = out or ""
    alone = len(outputs) == 1 and out is None and outputs[0][1].shared is None
    names = [stem] if alone else [file_name(name) for name, _ in outputs]
    taken: set[str] = set()
    paths = []
    for name, (_, target) in zip(names, outputs, strict=True):
        path, count = name + target.suffix, 2
        while path in taken:
            path, count = f"{name}-{count}{target.suffix}", count + 1
        taken.add(path)
        paths.append(os.path.join(folder, path))
    return paths


def _one_per_shared(outputs: Sequence[tuple[str, Target]]) -> list[tuple[str, Target]]:
    """Return the outputs with one entry, the first, for all collectives that share files."""
    named = [(target.shared or name, target) for name, target in outputs]
    return [one for n, one in enumerate(named) if one[1].shared is None or one not in named[:n]]


def _joined(
    emitted: Sequence[tuple[str, Target, Sequence[Artifact]]], verify: bool
) -> list[tuple[str, Target, Sequence[Artifact]]]:
    """Return the emitted files with one entry, the first, for all collectives that share files."""
    found: list[tuple[str, Target, Sequence[Artifact]]] = []
    for n, (name, target, artifacts) in enumerate(emitted):
        if target.shared is None:
            found.append((name, target, artifacts))
        elif all(target != other for _, other, _ in emitted[:n]):
            group = [(other, artifacts[0]) for other, of, artifacts in emitted if of == target]
            names = ", ".join(dict.fromkeys(n for n, _ in group))
            found.append((names, target, _join(target, names, [a for _, a in group], verify)))
    return found


def _join(target: Target, names: str, artifacts: Sequence[Artifact], verify: bool) -> Sequence[Artifact]:
    """Return the files that collectives share, read back by the target's own reader."""
    files = target.join(artifacts)
    report = target.check_joined(artifacts, files) if verify else None
    if report is not None and not report.ok:
        failed = "; ".join(f"{check.name}: {check.detail}" for check in report.failed)
        message = f"target `{target.name}` wrote a wrong file: {failed} (for `{names}`)"
        raise InternalError(message, collective=names, package=TARGETS.package(target.name))
    return files


def name_files(
    emitted: Sequence[tuple[str, Target, Sequence[Artifact]]], stem: str, out: str | None, *, verify: bool = True
) -> list[NamedFile]:
    """Return every file with its place: main files by :func:`main_paths`, further ones beside them.

    A further file has the stem of its main file and its own suffix or ending. Standard output, devices and pipes get
    only the main file. Files for different sizes have their labels after the stem. Collectives with shared files
    (``Target.shared``) are joined, and the joined files are read back unless ``verify`` is off. Raises C0021 if several
    files would have one path.
    """
    emitted = _joined(emitted, verify)
    _require_folder(emitted, out)
    paths = main_paths([(name, target) for name, target, _ in emitted], stem, out)
    files = []
    for path, (name, target, artifacts) in zip(paths, emitted, strict=True):
        if artifacts[0].label:
            alone = len(artifacts) == 1 and out is not None and not is_folder(out)
            files += [NamedFile(path if alone else _labelled(path, a), name, target.name, a) for a in artifacts]
            continue
        files.append(NamedFile(_ended(path, artifacts[0]), name, target.name, artifacts[0]))
        if not is_direct(path):
            files += [
                NamedFile(
                    os.path.splitext(path)[0] + (side.ending or os.path.splitext(side.filename)[1]), name, target.name,
                    side,
                )
                for side in artifacts[1:]
            ]  # fmt: skip
    return files


def _ended(path: str, artifact: Artifact) -> str:
    """Return the path of a main file with the ending of its artifact, unless it is a device or a pipe."""
    return os.path.splitext(path)[0] + artifact.ending if artifact.ending and not is_direct(path) else path


def _labelled(path: str, artifact: Artifact) -> str:
    stem, suffix = os.path.splitext(path)
    return f"{stem}-{artifact.label}{artifact.ending or suffix}"


def _require_folder(emitted: Sequence[tuple[str, Target, Sequence[Artifact]]], out: str | None) -> None:
    """Raise C0021 if files for several ranges of sizes would have one path."""
    for name, target, artifacts in emitted:
        if out is not None and not is_folder(out) and len(artifacts) > 1 and artifacts[0].label:
            labels = ", ".join(f"`{a.label}`" for a in artifacts[:4])
            raise error(
                "C0021",
                f"{len(artifacts)} files of `{name}` as {target.name}, for different sizes, cannot go to one `{out}`",
                notes=[f"they are for {labels}{', ...' if len(artifacts) > 4 else ''}"],
                hint="name a folder (`-o DIR/`)",
                exit_status=2,
            )


def file_name(collective: str) -> str:
    """Return the name of a collective as a name of a file, without suffix.

    >>> file_name("grads"), file_name("tp[0, 3]")
    ('grads', 'tp_0_3')
    """
    family, indices = split_name(collective)
    return "_".join([re.sub(r"[/\0]", "_", family), *map(str, indices)])


def identifier(text: str) -> str:
    """Return a name of the language from any text.

    >>> identifier("2-node pod")
    '_2_node_pod'
    """
    word = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    return f"_{word}" if word[0].isdigit() else word
