"""What a launcher must set so that a runtime loads files and uses them, and how one sees that it did.

Nothing tells a user that a file was ignored: a folder that is not found, an algorithm that fits no call and a runtime
that was built without MSCCL all end in the runtime's own collective, which is right too, only slower.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import error

from .bundle import Member, calls, gaps, uses
from .model import KINDS
from .profiles import PROFILES, Profile
from .tokens import MAX_VALUE
from .windows import WHOLE

__all__ = ["Environment", "as_shell", "config_text", "environment", "is_config"]


@attrs.frozen
class Environment:
    """Variables to set (name, value, why), and what to look for in the runtime's output (a pattern, what it means)."""

    runtime: str
    variables: tuple[tuple[str, str, str], ...]
    proofs: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def environment(members: Sequence[Member], runtime: str, config: str | None = None) -> Environment:
    """Return what makes ``runtime`` load these files; paths become absolute.

    ``config`` is the file that :func:`config_text` went to, for msccl instead of a list of paths. Raises C0653 where
    files cannot be named to the runtime: in several folders for the executor and RCCL, or with a colon in a path for
    msccl.
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
                    "C0653", f"`{path}` cannot be in MSCCL_XML_FILES, whose names end at a colon",
                    hint="name the file that lists them: `--config FILE`",
                )  # fmt: skip
        named = (
            "MSCCL_XML_FILES",
            ":".join(paths),
            f"the files, at most {profile.max_algorithms}; of those that fit a call the first is used",
        )
    return Environment(
        profile.name,
        (
            named,
            ("NCCL_ALGO", "MSCCL,RING,TREE", "without it files are loaded and never used"),
            ("NCCL_DEBUG", "INFO", "says what was loaded"),
            ("NCCL_DEBUG_SUBSYS", "INIT,ENV", "only that"),
        ),
        (
            (f"Parsed MSCCL Algorithm {paths[0]} successfully.", "once for each file and rank"),
            (f"Connected {len(members)} MSCCL algorithms", "all of them can be used"),
            ("failed to initialize. Will be ignored.", "must not appear: it names a file that is not used"),
        ),
        (*_about(members, profile), "calls in a group of several are made without files"),
    )


def _folder(members: Sequence[Member], profile: Profile) -> Environment:
    folders = sorted({os.path.dirname(os.path.abspath(member.path)) for member in members})
    if len(folders) > 1:
        raise error(
            "C0653", f"{profile.title} loads the files of one folder, found {len(folders)}",
            notes=[f"`{folder}`" for folder in folders[:4]], hint="put the files into one folder",
        )  # fmt: skip
    common = (
        ("MSCCL_ALGO_DIR", folders[0], "every file in it is loaded, whatever its name"),
        ("NCCL_DEBUG", "INFO", "says what was loaded"),
    )
    if profile.name == "rccl":
        return Environment(
            profile.name,
            (
                ("RCCL_MSCCL_ENABLE", "1", "the default"),
                ("RCCL_MSCCL_FORCE_ENABLE", "1", "on machines that RCCL does not know it uses no files"),
                ("RCCL_MSCCL_ENABLE_SINGLE_PROCESS", "1", "the default: ranks may share a process"),
                ("RCCL_MSCCLPP_ENABLE", "0", "it would take calls before files are looked at"),
                *common,
                ("NCCL_DEBUG_SUBSYS", "INIT,ENV,COLL", "calls too"),
            ),
            (
                (f"Using MSCCL files from {folders[0]}", "the folder was found"),
                ("MSCCL: Initialization finished", "its files were loaded"),
                *((f"{name}: opCount", _FROM_FILE) for name in _functions(members)),
            ),
            (
                *_about(members, profile),
                "RCCL of 2026 has no MSCCL, and before it may have been built without: then no line names it",
            ),
        )
    return Environment(
        profile.name,
        (
            ("NCCL_MSCCL_ENABLE", "1", "the default"),
            *common,
            ("NCCL_DEBUG_SUBSYS", "INIT,ENV", "only that"),
        ),
        (
            (f"MSCCL_ALGO_DIR set by environment to {folders[0]}", "the variable reached the ranks"),
            ("MSCCL: Initialization finished", "its files were loaded"),
        ),
        (
            *_about(members, profile),
            "no line says which file a call ran from: time it with NCCL_MSCCL_ENABLE=0 too, or look for mscclKernel in "
            "a profile",
            "one GPU a process: otherwise no files are used",
        ),
    )


def _about(members: Sequence[Member], profile: Profile) -> list[str]:
    """Say for which calls each file is, and for which there is none."""
    found = []
    for member in members:
        low, high = calls(member.algorithm, profile)
        modes = uses(member.algorithm, profile)
        where = "in place and out of place" if len(modes) > 1 else "in place" if True in modes else "out of place"
        sizes = f"{low} byte{'' if low == 1 else 's'} and more" if high is None else f"{low} to {high} bytes"
        chunks = member.algorithm.nchunksperloop
        whose = " of all ranks together" if KINDS.get(member.algorithm.coll) in WHOLE else ""
        even = f", elements{whose} a multiple of {chunks}" if chunks > 1 else ""
        what = f"{member.algorithm.coll} on {member.algorithm.ngpus} ranks, {where}, {sizes}{even}"
        found.append(f"{os.path.basename(member.path)}: {what}")
    return [*found, *gaps(members, profile)]


_FROM_FILE = "once for each such call that ran from a file, and for no other"
_FUNCTIONS = {
    "allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter", "alltoall": "AllToAll",
    "broadcast": "Broadcast", "reduce": "Reduce",
}  # fmt: skip


def _functions(members: Sequence[Member]) -> list[str]:
    """Return what RCCL calls the functions that run these files, in their order."""
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
            found = f"`{path}` cannot be in a configuration: at most {MAX_VALUE} bytes, no quotes, no line breaks"
            raise error("C0653", found, hint="move the file")
        low, high = calls(member.algorithm, profile)
        most = f' maxbytes="{high + 1}"' if high is not None else ""
        lines.append(f'  <load path="{path}" minbytes="{low}"{most} proto="{member.algorithm.proto}"/>')
    return "\n".join([*lines, "</msccl_algos>", ""])


def is_config(text: str) -> bool:
    """Return whether a text is such a list.

    >>> is_config('<msccl_algos>'), is_config('<algo name="a">')
    (True, False)
    """
    return text[:4096].lstrip("\ufeff").lstrip().startswith("<msccl_algos")


# ---- as a shell reads it


def as_shell(found: Environment) -> str:
    """Return assignments that any POSIX shell takes, what to look for as comments."""
    lines = [f"# {PROFILES[found.runtime].title}: set these for every rank"]
    lines += [f"export {name}={shlex.quote(value)}  # {why}" for name, value, why in found.variables]
    lines += ["# then look for, in what every rank prints:"]
    lines += [f"#   {_one_line(pattern)}  ({meaning})" for pattern, meaning in found.proofs]
    lines += ["# files:"] if found.remarks else []
    lines += [f"#   {_one_line(remark)}" for remark in found.remarks]
    return "\n".join([*lines, ""])


def _one_line(text: str) -> str:
    """Return a text that cannot end its comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
