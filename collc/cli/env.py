"""``collc env``: the environment that makes a runtime load files, and how to prove that it did."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest

from ..files.texts import STDIN, Output, check_writable, write_all
from .console import Console
from .env_choice import print_choice
from .inputs import read

if TYPE_CHECKING:
    from collc.backends.msccl_xml.bundle import Member
    from collc.backends.msccl_xml.loading import Environment

__all__ = ["env"]


@attrs.define
class _Found:
    """The algorithms, their texts by path, and the other files of folders with the errors in them."""

    members: list[Member] = attrs.Factory(list)
    texts: dict[str, str] = attrs.Factory(dict)
    others: dict[str, str] = attrs.Factory(dict)


def env(options: SimpleNamespace, console: Console) -> int:
    """Print the environment in which a runtime loads the files; return the exit status."""
    for print_other in (print_choice, _stock, _plans):
        if (status := print_other(options, console)) is not None:
            return status
    from collc.backends.msccl_xml.loading import as_shell, config_text, environment

    found = _read(options.files, console)
    runtime = _runtime(options.runtime, found.members)
    if options.config is not None and runtime != "msccl":
        message = f"--config writes the list of files for msccl, but runtime {runtime} reads a folder"
        raise error("C0001", message, exit_status=2)
    _require_loadable(found, runtime)
    needed = environment(found.members, runtime, options.config)
    if options.config is not None:
        check_writable([options.config], [member.path for member in found.members])
        write_all([Output(options.config, config_text(found.members))])
    if options.shell == "json":
        console.json(_object(found.members, needed))
    else:
        console.out(as_shell(needed))
    return 0


# ---- stock NCCL


def _stock(options: SimpleNamespace, console: Console) -> int | None:
    """Print the environment for files of stock NCCL; return the exit status, None if there is none of them."""
    from collc.backends.nccl_environment import as_object, as_shell, kind_of, stock_environment, stock_file

    texts = {name: read(name, console)[0] for path in options.files if path != STDIN for name in _stock_names(path)}
    kinds = {name: kind_of(text) for name, text in texts.items()}
    if not any(kinds.values()):
        return None
    other = next((name for name in options.files if name in kinds and kinds[name] is None), None)
    if other is not None:
        hint = "print them one after another"
        raise error("C0657", f"`{other}` is for another runtime than stock NCCL", hint=hint)
    given = [f"--{name}" for name in ("runtime", "config") if getattr(options, name) is not None]
    if given:
        raise error("C0001", f"{given[0]} is for MSCCL-XML, and these files are for stock NCCL", exit_status=2)
    files = [stock_file(name, texts[name]) for name, kind in kinds.items() if kind is not None]
    found = stock_environment(files, options.plugin)
    if options.shell == "json":
        console.json(as_object(files, found))
    else:
        console.out(as_shell(found))
    return 0


def _stock_names(path: str) -> list[str]:
    """Return a file, or the files of a folder that may be for stock NCCL."""
    names = _files(path)
    return names if names == [path] else [name for name in names if name.endswith((".xml", ".csv", ".conf"))]


# ---- MSCCL++


def _plans(options: SimpleNamespace, console: Console) -> int | None:
    """Print the environment for plans of MSCCL++; return the exit status, None if there is none of them."""
    from collc.backends.mscclpp_environment import as_object, as_shell, is_plan, plan_environment, plan_file

    paths = [path for path in options.files if path != STDIN]
    names = [name for path in paths for name in _files(path) if name == path or name.endswith(".json")]
    texts = {name: read(name, console)[0] for name in names}
    found = [name for name, text in texts.items() if is_plan(text)]
    if not found:
        return None
    if others := [name for name in options.files if name in texts and name not in found]:
        hint = "print them one after another"
        raise error("C0690", f"`{others[0]}` is no plan for MSCCL++, and `{found[0]}` is one", hint=hint)
    given = [f"--{name}" for name in ("runtime", "config", "plugin") if getattr(options, name) is not None]
    if given:
        raise error("C0001", f"{given[0]} is for other runtimes, and these files are for MSCCL++", exit_status=2)
    files = [plan_file(name, texts[name]) for name in found]
    needed = plan_environment(files)
    if options.shell == "json":
        console.json(as_object(files, needed))
    else:
        console.out(as_shell(needed))
    return 0


# ---- files


def _read(paths: Sequence[str], console: Console) -> _Found:
    """Return the algorithms in files, and in all files of folders."""
    from collc.backends.msccl_xml.bundle import Member
    from collc.backends.msccl_xml.loading import is_config
    from collc.backends.msccl_xml.reader import read as read_algorithm

    from ..reading import require_format, require_known

    found = _Found()
    for path in paths:
        if path == STDIN:
            raise error("C0001", "runtimes load files, not standard input", exit_status=2)
        for name in _files(path):
            try:
                text, _ = read(name, console)
                if name == path:
                    require_known(text, name, "convert")
                    require_format("msccl-xml", text, name)
                if name == path or not is_config(text):
                    found.members.append(Member(name, read_algorithm(text, name)))
                    found.texts[name] = text
            except CollcError as problem:
                if name == path:
                    raise
                found.others[name] = problem.diagnostics[0].message
    if not found.members:
        notes = [f"{name}: {why}" for name, why in found.others.items()]
        raise error("C0654", f"there is no algorithm in {', '.join(f'`{p}`' for p in paths)}", notes=notes[:3])
    return found


def _files(path: str) -> list[str]:
    """Return a file, or all files of a folder in the order of their names, without its folders."""
    if not os.path.isdir(path):
        return [path]
    try:
        found = sorted(os.path.join(path, name) for name in os.listdir(path))
    except OSError as problem:
        raise error("C0002", f"cannot read `{path}`: {(problem.strerror or str(problem)).lower()}") from None
    return [name for name in found if os.path.isfile(name)]


def _beside(members: Sequence[Member]) -> list[str]:
    """Return the other files in the folders of the members."""
    mine = {os.path.realpath(member.path) for member in members}
    folders = sorted({os.path.dirname(os.path.abspath(member.path)) for member in members})
    return [name for folder in folders for name in _files(folder) if os.path.realpath(name) not in mine]


# ---- checks


def _runtime(named: str | None, members: Sequence[Member]) -> str:
    """Return the named runtime, or the first that accepts all files."""
    from collc.backends.msccl_xml.bundle import accepting_runtimes
    from collc.backends.msccl_xml.profiles import PROFILES

    if named is not None:
        if named not in PROFILES:
            hint = nearest(named, PROFILES) or f"runtimes are {', '.join(PROFILES)}"
            raise error("C0606", f"unknown runtime `{named}`", hint=hint, exit_status=2)
        return named
    fitting = [profile.name for profile in accepting_runtimes(members)]
    if not fitting:
        hint = "name one, `--runtime NAME`, to see the reasons"
        raise error("C0654", f"no runtime accepts all {len(members)} files", hint=hint)
    return fitting[0]


def _require_loadable(found: _Found, runtime: str) -> None:
    """Raise C0654 for files that the runtime would not load or run, C0650 to C0652 for conflicts between them, and
    C0655 for other files that it would load."""
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
            hint = f"`collc verify {member.path} --runtime {runtime}` gives details, `collc convert` may adapt it"
            wrong.append(Diagnostic("C0654", f"{profile.title} would not run `{member.path}`", notes=notes, hint=hint))
    codes = {"windows": "C0650", "names": "C0651", "number": "C0652"}
    wrong += [Diagnostic(codes[c.name], c.detail) for c in check_together(found.members, runtime) if not c.ok]
    if profile.reads_folder and (others := _beside(found.members)):
        shown = ", ".join(f"`{os.path.basename(name)}`" for name in others[:4]) + (", ..." if len(others) > 4 else "")
        what = f"{profile.title} loads every file of a folder, also these: {shown}"
        note = "a file without an algorithm prevents the creation of communicators"
        hint = "put the algorithms into a folder of their own"
        if any(name not in found.others for name in others):
            hint = f"name the folder to use these too, or {hint}"
        wrong.append(Diagnostic("C0655", what, notes=(note,), hint=hint))
    if wrong:
        raise CollcError(wrong)


def _object(members: Sequence[Member], needed: Environment) -> dict[str, object]:
    from collc.backends.msccl_xml.bundle import served_sizes, uses
    from collc.backends.msccl_xml.profiles import PROFILES

    profile = PROFILES[needed.runtime]
    files = []
    for member in members:
        low, high = served_sizes(member.algorithm, profile)
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
        "runtime": needed.runtime,
        "variables": {name: value for name, value, _ in needed.variables},
        "look_for": [{"pattern": pattern, "meaning": meaning} for pattern, meaning in needed.proofs],
        "files": files,
        "remarks": list(needed.remarks),
    }
