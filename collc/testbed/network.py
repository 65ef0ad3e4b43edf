"""A network of namespaces that exists as long as a ``with`` block."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from pathlib import Path

import attrs

from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, find
from collc.ir.diagnostic import CollcError, error
from collc.ir.topology import Topology

from .available import entering, obstacle, unsharing
from .mpi import Inside, launcher_script, urgent
from .plan import Plan, plan
from .script import build_script, limit_script

__all__ = ["Network", "network"]

_BUILDING_SECONDS = 60.0
_PREFIX = "collc-testbed-"


@attrs.frozen(eq=False)
class Network:
    """A network built from ``plan``; ``folder`` is its temporary folder."""

    plan: Plan
    folder: Path
    holder: int = attrs.field(repr=False)

    def mpi(self, mpi: Mpi | None = None, shim: bool = True) -> Inside:
        """Return an MPI whose ``command`` runs rank r in namespace r, for use as any other Mpi.

        ``shim``: with a library that lets waiting ranks sleep for some microseconds instead of yielding the
        processor. Raises C0701 without an MPI.
        """
        found = find() if mpi is None else mpi
        return Inside(
            found.folder, found.vendor, found.version, entering=tuple(entering(self.holder)),
            hosts=tuple(self.plan.hosts), script=self.folder / "launcher", shim=self._shim() if shim else None,
        )  # fmt: skip

    def mpiexec(
        self, program: Sequence[str], mpi: Mpi | None = None, env: Mapping[str, str] | None = None,
        timeout: float = 120.0,
    ) -> str:  # fmt: skip
        """Run a program with a rank in every rank's namespace and return its output.

        ``env`` are also variables of the ranks. Raises C0706 if it failed and C0707 after ``timeout`` seconds.
        """
        inside = self.mpi(mpi)
        if env:
            inside = attrs.evolve(inside, settings=tuple(env.items()))
        return launch(inside, self.plan.num_ranks, list(program), timeout, self.folder)

    def run(self, node: int, command: Sequence[str], timeout: float = 60.0) -> str:
        """Run a command in one node's namespace and return its output; raise C0074 if it failed."""
        return _run([*self.entering(node), *command], timeout=timeout)

    def entering(self, node: int) -> list[str]:
        """Return the command that runs another in one node's namespace."""
        inner = ["nsenter", f"--net=/run/netns/{self.plan.namespace(node)}"]
        return [*entering(self.holder), *inner]

    def carried(self) -> dict[tuple[int, int], int]:
        """Return the bytes that every wire has carried so far, headers included, by (from, to)."""
        return {
            (node, wire.other(node)): self._counter(node, f"to{wire.other(node)}")
            for node in range(self.plan.num_nodes)
            for wire in self.plan.wires_of[node]
        }

    def carried_by_control(self) -> int:
        """Return the bytes that ranks have sent over the control bridge, which carries no messages of programs."""
        return sum(self._counter(rank, "control") for rank in range(self.plan.num_ranks))

    def _counter(self, node: int, device: str) -> int:
        lines = self.run(node, ["cat", "/proc/net/dev"]).splitlines()
        return next(int(line.split(":")[1].split()[8]) for line in lines if line.strip().startswith(f"{device}:"))

    def _shim(self) -> Path | None:
        """Build the library, once; without a C compiler there is none."""
        shim = self.folder / "shim.so"
        if not shim.exists():
            with contextlib.suppress(CollcError):
                eager = ["-DPATIENT=0"] if self.plan.delay else []  # few packets, which ranks must see soon
                compile_source(self.folder, "shim.c", shim, "-shared", "-fPIC", *eager)
        return shim if shim.exists() else None


@contextlib.contextmanager
def network(
    topology: Topology | Plan, rate: Fraction | int = 5_000_000, delay: Fraction | int = 0
) -> Iterator[Network]:
    """Build the network of a topology and remove it at the end of the block.

    ``rate`` are bytes per second of the topology's widest link, to which others are scaled (5,000,000 are 40 Mbit/s),
    ``delay`` seconds on every link. Everything is in namespaces of one process, which ends with this one, even if it is
    killed: nothing is visible outside, and nothing remains. Raises C0074 if this machine cannot build the network, and
    C0075 for an impossible topology or rate.
    """
    planned = topology if isinstance(topology, Plan) else plan(topology, rate, delay)
    reason = obstacle(bool(planned.delay))
    if reason:
        raise error("C0074", f"no testbed can be built here: {reason}")
    with _folder() as folder, _held() as holder:
        launcher_script(folder / "launcher")
        output = _run([*entering(holder), "sh", "-s"], build_script(planned))
        if not output.endswith("built\n"):
            raise error("C0074", "the testbed was not completed", notes=output.splitlines()[-3:])
        with _delayed(planned, folder, holder):
            yield Network(planned, folder, holder)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a temporary folder, and remove those of killed runs, whose locks are free."""
    import fcntl  # only Unix has it; elsewhere `obstacle` reports why

    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), open(left / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name, open(Path(name) / "lock.new", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(lock.name, Path(name) / "lock")
        os.chmod(name, 0o755)
        yield Path(name)


@contextlib.contextmanager
def _held() -> Iterator[int]:
    """Hold new namespaces by a process that reads from this one and ends with it.

    It is the first process of its PID namespace, so the kernel then kills all processes there.
    """
    process = subprocess.Popen(
        [*unsharing(), "sh", "-c", "echo held; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        if process.stdout.readline() != b"held\n":
            raise error(
                "C0074", "no namespaces were created", notes=[process.stderr.read(500).decode(errors="replace")]
            )
        yield process.pid
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def _delayed(planned: Plan, folder: Path, holder: int) -> Iterator[None]:
    """Run our program that carries packets between TUN devices, for links with a delay."""
    if not planned.delay:
        yield
        return
    compile_source(folder, "wires.c", folder / "wires")
    table = folder / "wires.txt"
    table.write_text("".join(f"{line}\n" for line in _table(planned)))
    process = subprocess.Popen(
        [*urgent(), *entering(holder), str(folder / "wires"), str(table)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        if process.stdout.readline() != b"ready\n":
            notes = process.stderr.read(500).decode(errors="replace").splitlines()
            raise error("C0074", "wires with a delay could not be made", notes=notes)
        _run([*entering(holder), "sh", "-s"], limit_script(planned))
        yield
    finally:
        # Its children end with the holder's PID namespace, and keep the pipes open until then.
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _table(planned: Plan) -> Iterator[str]:
    """Write the wires for the program that carries packets: nodes, ns a byte each way, ns of delay."""
    for wire in planned.wires:
        a, b = planned.namespace(wire.a), planned.namespace(wire.b)
        costs = [round(10**9 / rate) for rate in (wire.a_to_b, wire.b_to_a)]
        yield f"{a} to{wire.b} {b} to{wire.a} {costs[0]} {costs[1]} {round(planned.delay * 10**9)}"


def compile_source(folder: Path, source: str, output: Path, *flags: str) -> None:
    """Compile one of the C files beside this module; raise C0074 without a compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise error("C0074", f"`{source}` of the testbed cannot be built: no C compiler found")
    path = folder / source
    path.write_text(resources.files(__package__).joinpath(source).read_text(encoding="utf-8"), encoding="utf-8")
    _run([compiler, "-std=gnu99", "-O2", "-Wall", *flags, "-o", str(output), str(path), "-ldl"])


def _run(command: Sequence[str], text: str = "", timeout: float = _BUILDING_SECONDS) -> str:
    try:
        done = subprocess.run(
            list(command), input=text, capture_output=True, text=True, timeout=timeout, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error("C0074", f"a command of the testbed failed: {reason}") from None
    if done.returncode != 0:
        notes = (done.stderr or done.stdout).strip().splitlines()[:4]
        raise error("C0074", f"a command of the testbed ended with status {done.returncode}", notes=notes)
    return done.stdout
