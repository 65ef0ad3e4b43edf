"""``collc env``: what a launcher sets so that a runtime loads files, and how to see that it did."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest

from ..files import STDIN, Output, check_writable, write_all
from .console import Console
from .inputs import read

if TYPE_CHECKING:
    from collc.backends.msccl_xml.bundle import Member
    from collc.backends.msccl_xml.loading import Environment

__all__ = ["env"]


@attrs.define
class _Found:
    """The algorithms found, their texts by path, and files of folders that hold none, with what is wrong with them."""

    members: list[Member] = attrs.Factory(list)
    texts: dict[str, str] = attrs.Factory(dict)
    strangers: dict[str, str] = attrs.Factory(dict)


def env(options: SimpleNamespace, console: Console) -> int:
    """Print the environment in which a runtime loads the files; return the exit status."""
    from collc.backends.msccl_xml.loading import as_shell, config_text, environment

    found = _read(options.files, console)
    runtime = _runtime(options.runtime, found.members)
    if options.config is not None and runtime != "msccl":
        message = f"--config makes the list of files that msccl reads; runtime {runtime} reads a folder"
        raise error("C0001", message, exit_status=2)
    _require_loadable(found, runtime)
    made = environment(found.members, runtime, options.config)
    if options.config is not None:
        check_writable([options.config], [member.path for member in found.members])
        write_all([Output(options.config, config_text(found.members))])
    if options.shell == "json":
        console.json(_object(found.members, made))
    else:
        console.out(as_shell(made))
    return 0


# ---- files


def _read(paths: Sequence[str], console: Console) -> _Found:
    """Return the algorithms in the files named, and in all files of the folders named."""
    from collc.backends.msccl_xml.bundle import Member
    from collc.backends.msccl_xml.loading import is_config
    from collc.backends.msccl_xml.reader import read as read_algorithm

    found = _Found()
    for path in paths:
        if path == STDIN:
            raise error("C0001", "runtimes load files, not standard input", exit_status=2)
        for name in _files(path):
            try:
                text, _ = read(name, console)
                if name == path or not is_config(text):
                    found.members.append(Member(name, read_algorithm(text, name)))
                    found.texts[name] = text
            except CollcError as problem:
                if name == path:
                    raise
                found.strangers[name] = problem.diagnostics[0].message
    if not found.members:
        notes = [f"{name}: {why}" for name, why in found.strangers.items()]
        raise error("C0654", f"there is no algorithm in {', '.join(f'`{p}`' for p in paths)}", notes=notes[:3])
    return found


def _files(path: str) -> list[str]:
    """Return a file, or all files of a folder in the order of their names; folders in it are no files."""
    if not os.path.isdir(path):
        return [path]
    try:
        found = sorted(os.path.join(path, name) for name in os.listdir(path))
    except OSError as problem:
        raise error("C0002", f"cannot read `{path}`: {(problem.strerror or str(problem)).lower()}") from None
    return [name for name in found if os.path.isfile(name)]


def _beside(members: Sequence[Member]) -> list[str]:
    """Return the files that stand in the members' folders and are none of them."""
    mine = {os.path.realpath(member.path) for member in members}
    folders = sorted({os.path.dirname(os.path.abspath(member.path)) for member in members})
    return [name for folder in folders for name in _files(folder) if os.path.realpath(name) not in mine]


# ---- checks


def _runtime(asked: str | None, members: Sequence[Member]) -> str:
    """Return the runtime asked for; without one, the first that takes all files."""
    from collc.backends.msccl_xml.bundle import takers
    from collc.backends.msccl_xml.profiles import PROFILES

    if asked is not None:
        if asked not in PROFILES:
            hint = nearest(asked, PROFILES) or f"runtimes are {', '.join(PROFILES)}"
            raise error("C0606", f"unknown runtime `{asked}`", hint=hint, exit_status=2)
        return asked
    fitting = [profile.name for profile in takers(members)]
    if not fitting:
        hint = "say which is meant, `--runtime NAME`, to see why"
        raise error("C0654", f"no runtime takes all {len(members)} files", hint=hint)
    return fitting[0]


def _require_loadable(found: _Found, runtime: str) -> None:
    """Raise C0654 for files that the runtime would not load or run, C0650 to C0652 for what is wrong between them, and
    C0655 for what else it would load."""
    from collc.backends.msccl_xml.bundle import check_together
    from collc.backends.msccl_xml.limits import check_limits
    from collc.backends.msccl_xml.profiles import PROFILES
    from collc.backends.msccl_xml.structure import check_structure
    from collc.backends.msccl_xml.tokens import check_tokens

    profile, wrong = PROFILES[runtime], list[Diagnostic]()
    for member in found.members:
        findings = [
            *check_tokens(found.texts[member.path]), *check_structure(member.algorithm),
            *check_limits(member.algorithm, profile),
        ]  # fmt: skip
        if findings:
            notes = tuple(f.message for f in findings[:3])
            hint = f"`collc verify {member.path} --runtime {runtime}` says more, `collc convert` may make one that fits"
            wrong.append(Diagnostic("C0654", f"{profile.title} would not run `{member.path}`", notes=notes, hint=hint))
    codes = {"windows": "C0650", "names": "C0651", "number": "C0652"}
    wrong += [Diagnostic(codes[c.name], c.detail) for c in check_together(found.members, runtime) if not c.ok]
    if profile.reads_folder and (others := _beside(found.members)):
        shown = ", ".join(f"`{os.path.basename(name)}`" for name in others[:4]) + (", ..." if len(others) > 4 else "")
        what = f"{profile.title} loads every file of a folder, and these are not meant: {shown}"
        note = "a file that is no algorithm keeps communicators from being made"
        hint = "put the algorithms into a folder of their own"
        if any(name not in found.strangers for name in others):
            hint = f"name the folder where they are meant too, or {hint}"
        wrong.append(Diagnostic("C0655", what, notes=(note,), hint=hint))
    if wrong:
        raise CollcError(wrong)


def _object(members: Sequence[Member], made: Environment) -> dict[str, Any]:
    from collc.backends.msccl_xml.bundle import calls, uses
    from collc.backends.msccl_xml.profiles import PROFILES

    profile = PROFILES[made.runtime]
    files = []
    for member in members:
        low, high = calls(member.algorithm, profile)
        modes = uses(member.algorithm, profile)
        files.append(
            {
                "path": os.path.abspath(member.path), "name": member.algorithm.name, "coll": member.algorithm.coll,
                "ranks": member.algorithm.ngpus, "proto": member.algorithm.proto, "inplace": True in modes,
                "outofplace": False in modes, "min_bytes": low, "max_bytes": high,
                "elements_multiple_of": member.algorithm.nchunksperloop,
            }
        )  # fmt: skip
    return {
        "runtime": made.runtime,
        "variables": {name: value for name, value, _ in made.variables},
        "look_for": [{"pattern": pattern, "meaning": meaning} for pattern, meaning in made.proofs],
        "files": files,
        "remarks": list(made.remarks),
    }
