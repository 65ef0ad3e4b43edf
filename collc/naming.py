"""Where the files of a compilation go."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import attrs

from collc.backends.base import Artifact, Target
from collc.ir.diagnostic import error

from .files import STDOUT, is_direct
from .internal import InternalError

__all__ = ["NamedFile", "identifier", "is_folder", "main_paths", "name_files", "stem_of"]


@attrs.frozen
class NamedFile:
    """A file with its place, the collective it is of and the target that made it."""

    path: str
    collective: str
    target: str
    artifact: Artifact


def stem_of(path: str) -> str:
    """Return the name that outputs of an input have by default: its own without folder and last suffix.

    >>> stem_of("a/pod.coll"), stem_of("-")
    ('pod', 'stdin')
    """
    return os.path.splitext(os.path.basename(path))[0] if path != "-" else "stdin"


def main_paths(wanted: Sequence[tuple[str, Target]], stem: str, out: str | None) -> list[str]:
    """Return the path of the main file of every (collective, target), in order.

    Without ``out``, one alone is called after the input (``stem``); several, and all in a folder, are called after
    their collectives, and a file that collectives share as its target says. A name that would come twice gets a number.
    Raises C0021 where several files were to go to one, C0721 where one would be taken for the system's.
    """
    paths = _main_paths(_once(wanted), stem, out)
    for path, (_, target) in zip(paths, _once(wanted), strict=False):
        if not is_direct(path):
            target.require_stem(os.path.splitext(os.path.basename(path))[0])
    return paths


def _main_paths(wanted: Sequence[tuple[str, Target]], stem: str, out: str | None) -> list[str]:
    if out is not None and not is_folder(out):
        if len(wanted) > 1:
            listed = ", ".join(f"`{name}` as {target.name}" for name, target in wanted[:4])
            raise error(
                "C0021",
                f"{len(wanted)} outputs cannot go to one file `{out}`",
                notes=[f"outputs: {listed}{', ...' if len(wanted) > 4 else ''}"],
                hint="name a folder (`-o DIR/`), or choose one with --collective and -t",
                exit_status=2,
            )
        return [out] * len(wanted)
    folder = out or ""
    alone = len(wanted) == 1 and out is None and wanted[0][1].shared is None
    names = [stem] if alone else [re.sub(r"[/\0]", "_", name) for name, _ in wanted]
    taken: set[str] = set()
    paths = []
    for name, (_, target) in zip(names, wanted, strict=True):
        path, count = name + target.suffix, 2
        while path in taken:
            path, count = f"{name}-{count}{target.suffix}", count + 1
        taken.add(path)
        paths.append(os.path.join(folder, path))
    return paths


def _once(wanted: Sequence[tuple[str, Target]]) -> list[tuple[str, Target]]:
    """Return what is wanted with one entry, at the first's place, for all collectives that share files."""
    named = [(target.shared or name, target) for name, target in wanted]
    return [one for n, one in enumerate(named) if one[1].shared is None or one not in named[:n]]


def _joined(
    emitted: Sequence[tuple[str, Target, Sequence[Artifact]]], verify: bool
) -> list[tuple[str, Target, Sequence[Artifact]]]:
    """Return what was emitted with one entry, at the first's place, for all collectives that share files."""
    found: list[tuple[str, Target, Sequence[Artifact]]] = []
    for n, (name, target, artifacts) in enumerate(emitted):
        if target.shared is None:
            found.append((name, target, artifacts))
        elif all(target != other for _, other, _ in emitted[:n]):
            group = [(other, made[0]) for other, of, made in emitted if of == target]
            names = ", ".join(dict.fromkeys(n for n, _ in group))
            found.append((names, target, _join(target, names, [a for _, a in group], verify)))
    return found


def _join(target: Target, names: str, made: Sequence[Artifact], verify: bool) -> Sequence[Artifact]:
    """Return the files that collectives share, read back by the target's own reader."""
    files = target.join(made)
    report = target.check_joined(made, files) if verify else None
    if report is not None and not report.ok:
        failed = "; ".join(f"{check.name}: {check.detail}" for check in report.failed)
        raise InternalError(f"target `{target.name}` wrote a wrong file: {failed} (for `{names}`)", collective=names)
    return files


def name_files(
    emitted: Sequence[tuple[str, Target, Sequence[Artifact]]], stem: str, out: str | None, *, verify: bool = True
) -> list[NamedFile]:
    """Return every file with its place: main files by :func:`main_paths`, further ones beside them.

    A further file keeps its main file's stem with its own suffix. Standard output, devices and pipes take the main file
    alone. Files for different sizes have their labels after the stem. Collectives that share files (``Target.shared``)
    are joined, and what is joined is read back unless ``verify`` is off. Raises C0021 where several of these were to go
    to one.
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
        files.append(NamedFile(path, name, target.name, artifacts[0]))
        if not is_direct(path):
            files += [
                NamedFile(os.path.splitext(path)[0] + os.path.splitext(side.filename)[1], name, target.name, side)
                for side in artifacts[1:]
            ]
    return files


def _labelled(path: str, artifact: Artifact) -> str:
    stem, suffix = os.path.splitext(path)
    return f"{stem}-{artifact.label}{suffix}"


def _require_folder(emitted: Sequence[tuple[str, Target, Sequence[Artifact]]], out: str | None) -> None:
    """Raise C0021 where files for several ranges of sizes are to go to one."""
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


def identifier(text: str) -> str:
    """Return a name of the language made of any text.

    >>> identifier("2-node pod")
    '_2_node_pod'
    """
    word = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    return f"_{word}" if word[0].isdigit() else word


def is_folder(out: str) -> bool:
    """Return whether an output names a folder: by a slash at its end, or because it is one."""
    return out != STDOUT and (out.endswith(("/", os.sep)) or os.path.isdir(out))
