"""Unmodified programs on compiled collectives: their environment, and the run itself.

An MPI program gets a library by LD_PRELOAD (see ``backends/mpi_c/interpose``), compiled for the MPI of its
launcher and kept in a cache by the hash of all its inputs. A PyTorch program gets the specification, an MSCCL runtime
the files that it loads.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import attrs

from collc.backends.mpi_c.toolchain import INTEL, MPICH, NAMES, OPEN_MPI, Mpi, find, folders_of
from collc.ir.diagnostic import CollcError, error

from ..files.caches import FILES, LIBRARIES, digest_of_files, launch_folder
from ..files.trust import is_ours, is_private, is_sealed, make_folder, seal, write_privately

if TYPE_CHECKING:
    from collc.backends.mpi_c.interpose import Served
    from collc.ir.verify import Report

__all__ = [
    "GRACE_SECONDS",
    "REPORT",
    "Plan",
    "cache_folder",
    "folder_flaw",
    "keep_files",
    "kind_of",
    "library",
    "library_name",
    "mpi_of",
    "mpi_state",
    "preloaded",
    "run_command",
]

#: the file in which ranks report their served calls
REPORT = "COLLC_LAUNCH_REPORT"

#: seconds between a signal to a command and its kill
GRACE_SECONDS = 5.0

#: the exit status of `timeout` in a shell
_TIMED_OUT = 124

_MPI_LAUNCHER = re.compile(r"(mpiexec|mpirun|orterun|prterun)(\.\w+)?")
_TORCH_MODULES = ("torch.distributed.run", "torch.distributed.launch")


@attrs.frozen
class Plan:
    """A command and its environment variables."""

    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with the plan's variables set."""
        return {**base, **dict(self.variables)}


def kind_of(command: Sequence[str]) -> str:
    """Return the kind of a command: ``mpi``, or ``torch`` for torchrun.

    >>> kind_of(["torchrun", "train.py"]), kind_of(["python3", "-m", "torch.distributed.run"]), kind_of(["srun", "app"])
    ('torch', 'torch', 'mpi')
    """
    if os.path.basename(command[0]).startswith("torchrun"):
        return "torch"
    modules = [after for word, after in itertools.pairwise(command) if word == "-m"]
    return "torch" if modules and modules[0] in _TORCH_MODULES else "mpi"


# ---- the MPI of a launcher


def mpi_of(program: str, environ: Mapping[str, str]) -> Mpi:
    """Return the MPI of a launcher, whose compiler is in the same folder. Raises C0080, C0081, C0701."""
    if not _MPI_LAUNCHER.fullmatch(os.path.basename(program)):
        return find(None, environ)
    from collc.backends.mpi_c.installed import Suffixed

    path = which(program, environ)
    places = _places(path)
    for place in places:
        suffix = os.path.splitext(place)[1]
        if suffix[1:] in NAMES and os.path.exists(os.path.join(os.path.dirname(place), f"mpicc{suffix}")):
            return Suffixed(Path(place).parent, NAMES[suffix[1:]], "", suffix)
    for place in places[::-1]:
        folder = Path(place).parent
        if (folder / "mpicc").is_file() and (folder / "mpiexec").is_file():
            return find(folder, environ)
    raise error(
        "C0081",
        f"`{path}` has no `mpicc` in its folder, which must compile the library",
        hint="name its MPI, `--mpi DIR`, or install its development files",
    )


def _places(path: str) -> list[str]:
    return list(dict.fromkeys([os.path.realpath(path), os.path.abspath(path)]))


def mpi_state(program: str, requested: str | None, environ: Mapping[str, str]) -> list[object]:
    """Return what determines the MPI of a launcher or of ``--mpi``, without asking any MPI: the states of its files.

    These are the programs in all folders of the search. The list can be written as JSON. Raises C0080.
    """
    if requested is None and _MPI_LAUNCHER.fullmatch(os.path.basename(program)):
        paths = _places(which(program, environ))
        return [paths, [_programs_of_mpi(os.path.dirname(path)) for path in paths]]
    if requested in NAMES:
        from collc.backends.mpi_c.installed import folders_of_name

        folders = list(folders_of_name(str(requested), environ))
    else:
        folders = list(folders_of(None if requested == "mpicc" else requested, environ))
    return [one for one in map(_programs_of_mpi, dict.fromkeys(map(str, folders))) if one]


def _programs_of_mpi(folder: str) -> list[tuple[str, str, int, int]]:
    """Return the state of every compiler and launcher of an MPI in a folder."""
    found = []
    for name in ("mpicc", "mpiexec"):
        for suffix in ("", ".mpich", ".openmpi", ".impi"):
            path = os.path.join(folder, name + suffix)
            with contextlib.suppress(OSError):
                state = os.stat(path)
                found.append((path, os.path.realpath(path), state.st_size, state.st_mtime_ns))
    return found


def which(program: str, environ: Mapping[str, str]) -> str:
    """Return the path of a program, on PATH or beside this Python; raise C0080 if there is none."""
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None and os.path.basename(program) == program:
        found = shutil.which(program, path=os.path.dirname(sys.executable))
    if found is None:
        where = "on PATH or beside this Python" if os.path.basename(program) == program else "there"
        raise error("C0080", f"there is no program `{program}` {where}", hint=_hint(program))
    return found


def _hint(program: str) -> str | None:
    if _MPI_LAUNCHER.fullmatch(os.path.basename(program)):
        return "`pip install 'collc[mpi]'` installs an MPI; or write the path of the launcher"
    return None


# ---- the library


def library(served: Sequence[Served], mpi: Mpi, cache: Path, name: str, *, dry: bool = False) -> Path:
    """Return the path of the library for an MPI, after building it if the cache does not have it.

    ``dry`` builds nothing. A new library's source is read back first. Raises the errors of emission and compilation.
    """
    from collc.backends.base import Artifact
    from collc.backends.mpi_c.check import checked_library
    from collc.backends.mpi_c.interpose import listed
    from collc.backends.mpi_c.interpose.build import abi, build

    text, listing = listed(name, served)
    place = cache / LIBRARIES / _key(text, mpi) / f"{name}.{abi(mpi)}.so"
    if not dry and not is_sealed(str(place), str(cache)):
        _require_right(checked_library(listing, served, [Artifact(f"{name}.c", text, "mpi-c")]), name)
        with _writing(cache):
            make_folder(str(cache), LIBRARIES, place.parent.name)
            build(mpi, text, place)
            seal(str(place))
    return place


@contextlib.contextmanager
def _writing(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        hint = "name another folder with --cache"
        raise error("C0085", f"`{cache}` cannot be the cache: {reason}", hint=hint) from None


def _require_right(report: Report, name: str) -> None:
    from ..messages.internal import InternalError

    if not report.ok:
        failed = "; ".join(f"{check.name}: {check.detail}" for check in report.failed)
        raise InternalError(f"target `mpi-c` wrote a wrong file: {failed} (for the library `{name}`)")


def _key(text: str, mpi: Mpi) -> str:
    """Return the hash of all inputs of a library."""
    from collc.backends.mpi_c.interpose.build import COMPILING, LINKING

    wrapper = mpi.mpicc.resolve()
    found = wrapper.stat()
    compilers = [os.environ.get(name, "") for name in ("CC", "MPICH_CC", "OMPI_CC", "I_MPI_CC", "CFLAGS")]
    parts = [
        text, mpi.vendor, mpi.version, str(wrapper), found.st_size, found.st_mtime_ns, platform.machine(), *compilers,
        *COMPILING, *LINKING,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@contextlib.contextmanager
def cache_folder(named: str | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folder where libraries and files for launchers are kept.

    That is ``named``, else ``collc`` in ``XDG_CACHE_HOME`` or ``~/.cache``; if that cannot be used, a folder that goes
    with this run. Raises C0085 for a requested folder that cannot be used.
    """
    folder = Path(os.path.abspath(launch_folder(environ) if named is None else named))
    flaw = folder_flaw(folder)
    if flaw is None:
        yield folder
        return
    if named is not None:
        raise error("C0085", f"`{named}` cannot be the cache: {flaw}", hint="name another folder with --cache")
    with tempfile.TemporaryDirectory(prefix="collc-launch-") as temporary:
        yield Path(temporary)


def folder_flaw(folder: Path) -> str | None:
    """Return why programs must not load files of a folder, or None; create it if it is missing."""
    if re.search(r"[\s:]", str(folder)):
        return "LD_PRELOAD separates names by spaces and colons"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as problem:
        return (problem.strerror or str(problem)).lower()
    if not is_private(found):
        return "others can write there, and programs load its files"
    return None if os.access(folder, os.W_OK | os.X_OK) else "permission denied"


# ---- the command


def preloaded(command: Sequence[str], mpi: Mpi, shared: Path, variables: Mapping[str, str]) -> Plan:
    """Return a command whose ranks preload a library and get ``variables``.

    Launchers of MPICH and Intel MPI take ``-genv``, those of Open MPI ``-x``: then the launcher itself gets neither.
    Other commands get them in the environment.
    """
    before = [word for word in os.environ.get("LD_PRELOAD", "").split() if word]
    environment = {"LD_PRELOAD": ":".join([str(shared), *before]), **variables}
    if _MPI_LAUNCHER.fullmatch(os.path.basename(command[0])):
        if mpi.vendor in (MPICH, INTEL):
            given = [word for name, value in environment.items() for word in ("-genv", name, value)]
            return Plan((command[0], *given, *command[1:]))
        if mpi.vendor == OPEN_MPI:
            given = [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
            words = [word for part in _split(command[1:]) for word in (*given, *part, ":")]
            return Plan((command[0], *words[:-1]))
    return Plan(tuple(command), tuple(environment.items()))


def _split(words: Sequence[str]) -> list[list[str]]:
    """Return the parts of a command line for several programs, separated by colons."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def run_command(plan: Plan, environ: Mapping[str, str], timeout: float | None = None) -> int:
    """Run a command to its end and return its exit status, 128 + n if signal n ended it.

    An interrupt (an exception of a signal's handler) is passed on. The command gets :data:`GRACE_SECONDS` to end, then
    its processes are killed. Raises C0080 if it does not run, C0086 after ``timeout`` seconds.
    """
    alone = sys.stdin is None or not sys.stdin.isatty()  # at a terminal it stays in the foreground group
    program = which(plan.command[0], environ)
    process: subprocess.Popen[bytes] | None = None
    try:
        with _delayed_signals():
            process = subprocess.Popen(
                [program, *plan.command[1:]], env=plan.environment(environ), start_new_session=alone
            )
        status = process.wait(timeout)
    except OSError as problem:
        raise error("C0080", f"`{program}` does not run: {(problem.strerror or str(problem)).lower()}") from None
    except subprocess.TimeoutExpired:
        if process is not None:
            _end(process, signal.SIGTERM, alone)
        raise _too_long(plan, timeout or 0) from None
    except BaseException as reason:
        if process is not None:
            _end(process, getattr(reason, "number", signal.SIGINT), alone)
        raise
    return status if status >= 0 else 128 - status


@contextlib.contextmanager
def _delayed_signals() -> Iterator[None]:
    """Delay signals until the block ends, so that a process started in it is known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    held = {n: handler for n, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    for first, frame in arrived[:1]:
        answer = handlers[signal.Signals(first)]
        if callable(answer):
            answer(first, frame)


def _end(process: subprocess.Popen[bytes], number: int, alone: bool) -> None:
    """Pass a signal on, wait a little, then kill the rest."""
    try:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if alone:
                os.killpg(process.pid, signal.SIGKILL)
            elif process.poll() is None:
                process.kill()
        process.wait()


def _too_long(plan: Plan, seconds: float) -> CollcError:
    return error(
        "C0086",
        f"`{plan.command[0]}` ran longer than the limit of {seconds:g} s, so collc ended it",
        hint="raise --timeout, or leave it out",
        exit_status=_TIMED_OUT,
    )


# ---- files for runtimes


def library_name(files: Sequence[str]) -> str:
    """Return the name of the library for input files: letters, digits and underscores."""
    stems = [os.path.splitext(os.path.basename(path))[0] for path in files]
    return "collc_" + re.sub(r"[^A-Za-z0-9]+", "_", "_".join(stems))[:60]


def keep_files(files: Sequence[tuple[str, str]], cache: Path) -> list[Path]:
    """Write files (names and texts) into a folder of their own in the cache, by their content; return their paths."""
    key = digest_of_files(files)
    places = [cache / FILES / key / name for name, _ in files]
    with _writing(cache):
        make_folder(str(cache), FILES, key)
        for place, (_, text) in zip(places, files, strict=True):
            if not (is_ours(str(place), str(cache)) and place.read_bytes() == text.encode()):
                write_privately(str(place), text.encode())
    return places
