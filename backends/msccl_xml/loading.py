"""The variables that make a runtime load and use files, and the log lines that prove it.

A runtime ignores files without a message: if it does not find the folder, if an algorithm fits no call, or if it was
built without MSCCL. It then runs its own collective, which is correct but slower.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import error

from .bundle import Member, served_sizes, unserved_calls, uses
from .model import KINDS
from .profiles import PROFILES, Profile
from .tokens import MAX_VALUE
from .windows import WHOLE

__all__ = ["Environment", "as_shell", "config_text", "environment", "is_config"]


@attrs.frozen
class Environment:
    """Variables to set (name, value, reason), and patterns to find in the runtime's output (pattern, meaning)."""

    runtime: str
    variables: tuple[tuple[str, str, str], ...]
    proofs: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def environment(members: Sequence[Member], runtime: str, config: str | None = None) -> Environment:
    """Return the environment that makes ``runtime`` load these files; paths become absolute.

    ``config`` is the path of the :func:`config_text`, which msccl takes instead of a list of paths. Raises C0653 if the
    runtime cannot take the paths: several folders for the executor and RCCL, or a colon in a path for msccl.
    """
    profile = PROFILES[runtime]
    return _folder(members, profile) if profile.reads_folder else _listed(members, profile, config)


def _listed(members: Sequence[Member], profile: Profile, config: str | None) -> Environment:
    paths = [os.path.abspath(member.path) for member in members]
    if config is not None:
        named = ("MSCCL_CONFIG", os.path.abspath(config), "the files, with sizes and protocols")
    else:
        for path in paths:
            if ":" in path:
                raise error(
                    "C0653", f"`{path}` cannot be in MSCCL_XML_FILES: a colon separates its paths",
                    hint="name the file that lists them: `--config FILE`",
                )  # fmt: skip
        named = (
            "MSCCL_XML_FILES",
            ":".join(paths),
            f"the files, at most {profile.max_algorithms}; msccl uses the first one that fits a call",
        )
    return Environment(
        profile.name,
        (
            named,
            ("NCCL_ALGO", "MSCCL,RING,TREE", "without it msccl loads the files and never uses them"),
            ("NCCL_DEBUG", "INFO", "logs what was loaded"),
            ("NCCL_DEBUG_SUBSYS", "INIT,ENV", "logs nothing else"),
        ),
        (
            (f"Parsed MSCCL Algorithm {paths[0]} successfully.", "once for each file and rank"),
            (f"Connected {len(members)} MSCCL algorithms", "msccl can use all of them"),
            ("failed to initialize. Will be ignored.", "must not appear: msccl does not use the file that it names"),
        ),
        (*_about(members, profile), "calls in a group of several do not use files"),
    )


def _folder(members: Sequence[Member], profile: Profile) -> Environment:
    folders = sorted({os.path.dirname(os.path.abspath(member.path)) for member in members})
    if len(folders) > 1:
        raise error(
            "C0653", f"{profile.title} loads the files of one folder, found {len(folders)}",
            notes=[f"`{folder}`" for folder in folders[:4]], hint="put the files into one folder",
        )  # fmt: skip
    return (_rccl if profile.name == "rccl" else _executor)(folders[0], members, profile)


def _common(folder: str) -> tuple[tuple[str, str, str], ...]:
    return (
        ("MSCCL_ALGO_DIR", folder, "the runtime loads every file in it, whatever its name"),
        ("NCCL_DEBUG", "INFO", "logs what was loaded"),
    )


def _rccl(folder: str, members: Sequence[Member], profile: Profile) -> Environment:
    return Environment(
        profile.name,
        (
            ("RCCL_MSCCL_ENABLE", "1", "the default"),
            ("RCCL_MSCCL_FORCE_ENABLE", "1", "otherwise RCCL uses no files on unknown machines"),
            ("RCCL_MSCCL_ENABLE_SINGLE_PROCESS", "1", "the default: ranks may share a process"),
            ("RCCL_MSCCLPP_ENABLE", "0", "otherwise MSCCL++ would serve calls before RCCL searches for files"),
            *_common(folder),
            ("NCCL_DEBUG_SUBSYS", "INIT,ENV,COLL", "logs calls too"),
        ),
        (
            (f"Using MSCCL files from {folder}", "RCCL found the folder"),
            ("MSCCL: Initialization finished", "the runtime loaded its files"),
            *((f"{name}: opCount", _FROM_FILE) for name in _functions(members)),
        ),
        (
            *_about(members, profile),
            "RCCL of 2026 has no MSCCL, and older builds can lack it: then no line names MSCCL",
        ),
    )


def _executor(folder: str, members: Sequence[Member], profile: Profile) -> Environment:
    return Environment(
        profile.name,
        (
            ("NCCL_MSCCL_ENABLE", "1", "the default"),
            *_common(folder),
            ("NCCL_DEBUG_SUBSYS", "INIT,ENV", "logs nothing else"),
        ),
        (
            (f"MSCCL_ALGO_DIR set by environment to {folder}", "the variable reached the ranks"),
            ("MSCCL: Initialization finished", "the runtime loaded its files"),
        ),
        (
            *_about(members, profile),
            "no line names the file of a call: time it with NCCL_MSCCL_ENABLE=0 too, or look for mscclKernel in a "
            "profile",
            "run one GPU a process: otherwise the executor uses no files",
        ),
    )


def _about(members: Sequence[Member], profile: Profile) -> list[str]:
    """Say which calls each file serves, and which calls no file serves."""
    found = []
    for member in members:
        low, high = served_sizes(member.algorithm, profile)
        modes = uses(member.algorithm, profile)
        where = "in place and out of place" if len(modes) > 1 else "in place" if True in modes else "out of place"
        sizes = f"{low} byte{'' if low == 1 else 's'} and more" if high is None else f"{low} to {high} bytes"
        chunks = member.algorithm.nchunksperloop
        owner = " of all ranks together" if KINDS.get(member.algorithm.coll) in WHOLE else ""
        even = f", elements{owner} a multiple of {chunks}" if chunks > 1 else ""
        what = f"{member.algorithm.coll} on {member.algorithm.ngpus} ranks, {where}, {sizes}{even}"
        found.append(f"{os.path.basename(member.path)}: {what}")
    return [*found, *unserved_calls(members, profile)]


_FROM_FILE = "once for each such call that used a file, and for no other call"
_FUNCTIONS = {
    "allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter", "alltoall": "AllToAll",
    "broadcast": "Broadcast", "reduce": "Reduce",
}  # fmt: skip


def _functions(members: Sequence[Member]) -> list[str]:
    """Return RCCL's names of the functions that run these files, in their order."""
    return list(dict.fromkeys(f"mscclFunc{_FUNCTIONS.get(member.algorithm.coll, '*')}" for member in members))


# ---- msccl's list of files


def config_text(members: Sequence[Member]) -> str:
    """Return the file that MSCCL_CONFIG names: one ``load`` for each file, in order, with its sizes and protocol.

    Raises C0653 for a path that such a file cannot hold.
    """
    profile = PROFILES["msccl"]
    lines = ["<msccl_algos>"]
    for member in members:
        path = os.path.abspath(member.path)
        if len(path.encode("utf-8", "surrogateescape")) > MAX_VALUE or any(c in path for c in '"\n\r'):
            found = (
                f"`{path}` cannot be in a configuration: paths have at most {MAX_VALUE} bytes, no quotes or line breaks"
            )
            raise error("C0653", found, hint="move the file")
        low, high = served_sizes(member.algorithm, profile)
        most = f' maxbytes="{high + 1}"' if high is not None else ""
        lines.append(f'  <load path="{path}" minbytes="{low}"{most} proto="{member.algorithm.proto}"/>')
    return "\n".join([*lines, "</msccl_algos>", ""])


def is_config(text: str) -> bool:
    """Return whether a text is such a list.

    >>> is_config('<msccl_algos>'), is_config('<algo name="a">')
    (True, False)
    """
    return text[:4096].lstrip("\ufeff").lstrip().startswith("<msccl_algos")


# ---- as shell commands


def as_shell(found: Environment) -> str:
    """Return assignments for any POSIX shell, with the patterns to find as comments."""
    lines = [f"# {PROFILES[found.runtime].title}: set these for every rank"]
    lines += [f"export {name}={shlex.quote(value)}  # {why}" for name, value, why in found.variables]
    lines += ["# then look for these lines in the output of every rank:"]
    lines += [f"#   {_one_line(pattern)}  ({meaning})" for pattern, meaning in found.proofs]
    lines += ["# files:"] if found.remarks else []
    lines += [f"#   {_one_line(remark)}" for remark in found.remarks]
    return "\n".join([*lines, ""])


def _one_line(text: str) -> str:
    """Return a text without characters that could end its comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
