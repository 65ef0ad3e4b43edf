"""Identical bytes for identical input: every target, pipeline and scheduler, in processes that differ in all else.

    python benchmarks/determinism.py [--seeds 20] [--quick] [--only NAME ..]

Each process has another hash seed. Its working directory, locale, time zone, terminal width, number of cores and number
of library threads vary too. It runs all cases in its own order and prints a digest of each: files, their names,
standard output and the exit status. The script prints a line for each group of cases, and the differences; it returns 1
if there are any. ``tests/whole/test_determinism.py`` tries the ``--quick`` cases with few seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cases", "compared", "digests", "main", "surroundings"]

#: target -> variants of it, tried with every scheduler; those without take no schedule
TARGETS: dict[str, tuple[str, ...]] = {
    "msccl-xml": ("msccl-xml{runtime=executor}", "msccl-xml{runtime=msccl}", "msccl-xml{runtime=rccl}"),
    "oneccl-xml": ("oneccl-xml",),
    "mpi-c": ("mpi-c",),
    "ir": ("ir",),
    "mscclpp-json": ("mscclpp-json{protocol=LL}", "mscclpp-json{protocol=Simple}"),
    "nccl-tuner": (),
    "nccl-topo": (),
    "nccl-graph": ("nccl-graph",),
    "report": ("report",),
    "svg": ("svg",),
    "dot": ("dot",),
    "chakra": ("chakra",),
}
LEVELS = ("-O0", "-O1", "-O2", "-O3")

#: scheduler -> (network, collective) of the quick run, and more
SCHEDULERS = {
    "auto": (("biring(3)", "allreduce"), ("biring(5)", "allgather"), ("torus(2, 3)", "allreduce")),
    "bfb": (
        ("biring(3)", "allreduce"),
        ("torus(3, 2)", "allreduce"),
        ("circulant(11, {2, 3})", "allgather"),
        ("torus(4, 4)", "allreduce"),
    ),
    "double-binary-tree": (("complete(5)", "allreduce"), ("complete(12)", "allreduce")),
    "expansion": (("line(complete(3))", "allgather"), ("product(biring(3), complete(3))", "allreduce")),
    "exact": (("biring(4)", "allgather"), ("torus(2, 2)", "allgather")),
    "flow": (("torus(2, 3)", "alltoall"), ("hypercube(3)", "alltoall")),
    "general": (("torus(2, 3)", "alltoall"), ("leaf_spine(2, 2, 1)", "broadcast { root: 1 }")),
    "forest": (("biring(4)", "broadcast { root: 1 }"), ("dgx_a100(2)", "allreduce"), ("torus(3, 3)", "allgather")),
    "swing": (("torus(4)", "allreduce"), ("torus(4, 4)", "allreduce")),
    "recursive-doubling": (("hypercube(2)", "allreduce"), ("torus(6)", "allreduce")),
    "rabenseifner": (("hypercube(2)", "allreduce"), ("hypercube(4)", "allreduce")),
    "bucket": (
        ("torus(2, 2)", "allreduce"),
        ("torus(2, 3)", "allreduce"),
        ("product(complete(4), complete(2))", "allreduce"),
    ),
    "ring": (("biring(5)", "allreduce"), ("uniring(8)", "allreduce"), ("shifted_ring(8)", "allreduce")),
    "two-tier": (("dgx_a100(2)", "alltoall"),),
    "two-level": (("leaf_spine(2, 3, 2)", "allreduce"), ("dgx_a100(2)", "allgather")),
    "box-trees": (("leaf_spine(2, 3, 2)", "allreduce"), ("dgx_a100(2)", "allreduce")),
    "nccl-rings": (
        ("dgx1_v100()", "allreduce"),
        ("mi250(2)", "allreduce"),
        ("dgx_a100(3, 8)", "broadcast { root: 3 }"),
    ),
    "bine": (("torus(4)", "allreduce"), ("torus(4, 4)", "allreduce")),
    "pat": (("torus(5)", "allgather"), ("torus(8)", "reduce-scatter")),
    "trivance": (("torus(9)", "allreduce"), ("torus(27)", "allreduce")),
}
RANGE = (
    "topology net = torus(2, 2) with { latency: 5us, bandwidth: 100Gbps }; collective c = allreduce on net;\n"
    "schedule c using auto { sizes: all };\n"
)
TWO = (
    "topology net = biring(4); collective one = allreduce on net; collective two = allgather on net;\n"
    "emit one as msccl-xml; emit two as mpi-c; emit one as ir;\n"
)


def source(network: str, collective: str, scheduler: str) -> str:
    kind, _, options = collective.partition(" ")
    return f"topology net = {network}; collective c = {kind} on net {options}; schedule c using {scheduler};\n".replace(
        " ;", ";"
    )


def cases(quick: bool) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (name, text of the file, arguments before it) of every run."""
    for number, (scheduler, problems) in enumerate(SCHEDULERS.items()):
        for network, collective in problems[:1] if quick else problems:
            text, name = source(network, collective, scheduler), f"{scheduler}: {collective.split()[0]} on {network}"
            yield f"cost/{name}", text, ["cost", "--json"]
            if not quick:
                points = ["--size=1MiB,64MiB", "--alpha=10us", "--bandwidth=100Gbps"]
                yield f"cost/{name}, points", text, ["cost", *points]
            fits = {name: forms for name, forms in TARGETS.items() if name != "nccl-graph" or scheduler == "nccl-rings"}
            targets = list(itertools.chain(*fits.values()))
            if quick and scheduler != "bfb":
                targets = targets[number % 2 :: 2]
            for target in targets:
                for level in LEVELS if not quick or scheduler == "bfb" else ("-O2",):
                    yield f"{target.partition('{')[0]}/{name} {target} {level}", text, ["compile", level, "-t", target]
            if not quick or scheduler in ("bfb", "forest"):
                yield f"simulate/{name}", text, ["simulate", "--size=1KiB,64MiB", "--json", "--svg=a.svg"]
    yield from _rest()


def _rest() -> Iterator[tuple[str, str, list[str]]]:
    """Yield what there is besides compiling one file for one target."""
    for target in ("msccl-xml", "msccl-xml{runtime=rccl}", "mpi-c", "ir"):
        yield f"ranges/{target}", RANGE, ["compile", "-t", target]
    nics = source("mi250(2)", "allreduce", "ring { rings: nics }")
    yield "ring/nics", nics, ["compile", "-t", "ir"]
    yield "cost/baselines", nics, ["cost", "--baselines", "--size=1KiB,64MiB"]
    for dialect in ("example", "ncclx"):
        yield f"nccl/tuner {dialect}", nics, ["compile", "-t", f"nccl-tuner{{dialect={dialect}}}"]
    ids = " ".join(f"{gpu:04x}:00:00.0" for gpu in range(8))
    box = source("dgx_a100(1)", "allreduce", "ring")
    yield "nccl/topo", box, ["compile", "-t", f'nccl-topo{{gpu-ids="{ids}",numa="0 0 0 0 1 1 1 1",cpu=amd}}']
    for form in ("nodelink", "graphml", "dot", "nccl-topo"):
        yield f"networks/{form}", box, ["topologies", "--as", form]
    yield "several/text", TWO, ["compile"]
    yield "several/json", TWO, ["compile", "--json"]
    passes = "bfb,discretize{max-chunks=8},lower,coalesce,assign-channels,reorder-fifo,prune-dependencies,reuse-scratch"
    ring = source("torus(2, 2)", "allreduce", "bfb")
    yield "passes/by hand", ring, ["compile", "-p", passes, "-t", "ir"]
    yield "passes/verify full", ring, ["compile", "--verify=full", "-t", "msccl-xml"]
    yield "passes/dump", ring, ["compile", "--dump-ir=all", "-t", "mpi-c"]
    yield "check/verify", ring, ["verify"]
    yield "check/wrong", ring.replace("bfb", "bfb { speed: 3 }"), ["compile", "--diagnostics-format=json"]
    yield "check/format", ring, ["format"]


def digests(quick: bool, order: int, only: list[str]) -> dict[str, str]:
    """Run all cases in this process, in an order of its own; return name -> digest of all that came of each."""
    listed = [case for case in cases(quick) if not only or any(case[0].startswith(name) for name in only)]
    random.Random(order).shuffle(listed)
    return {name: _digest(text, arguments) for name, text, arguments in listed}


def _digest(text: str, arguments: list[str]) -> str:
    """Return the digest of a run: its exit status, what it printed, names and contents of all files it wrote."""
    from collc.cli import main as command

    home = Path.cwd()
    with tempfile.TemporaryDirectory(dir=home) as folder:
        os.chdir(folder)
        try:
            Path("a.coll").write_text(text, encoding="utf-8")
            out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                where = ["-o", "out/"] if arguments[0] == "compile" else []
                status = command([*arguments, *where, "a.coll"])
            out.flush(), err.flush()
            digest = hashlib.sha256(f"{status}".encode())
            for stream in (out, err):
                digest.update(stream.buffer.getvalue() + b"\0")  # type: ignore[attr-defined]
            for path in sorted(Path().rglob("*")):
                if path.is_file():
                    digest.update(f"{path}".encode() + b"\0" + path.read_bytes())
        finally:
            os.chdir(home)
    return f"{status} {digest.hexdigest()[:24]}"


def surroundings(seed: int) -> dict[str, str]:
    """Return the environment of a process: its hash seed, and random values of settings that should not matter."""
    pick = random.Random(seed)
    threads = pick.choice(("1", "2", "7"))
    return {
        "PYTHONHASHSEED": str(seed), "LC_ALL": pick.choice(("C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8")),
        "TZ": pick.choice(("UTC", "Asia/Kathmandu", "America/St_Johns")), "COLUMNS": pick.choice(("40", "80", "203")),
        "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "HOME": "/nowhere", "TERM": "dumb",
    }  # fmt: skip


def work(quick: bool, seed: int, only: list[str], folder: str) -> subprocess.Popen[str]:
    """Start a process that prints the digests of all cases; odd ones have one core."""
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(seed), *(["--quick"] if quick else [])]
    if only:
        command += ["--only", *only]
    away = Path(folder) / f"seed {seed}" / ("x" * (seed % 7 + 1))
    away.mkdir(parents=True)
    return subprocess.Popen(
        command, cwd=away, env={**os.environ, **surroundings(seed)}, stdout=subprocess.PIPE, text=True
    )


def compared(quick: bool, seeds: list[int], only: list[str]) -> tuple[dict[str, dict[str, list[int]]], float]:
    """Return case -> digest -> the seeds that gave it, and the seconds of all processes, one after the other."""
    found: dict[str, dict[str, list[int]]] = {}
    start = time.perf_counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            process = work(quick, seed, only, folder)
            printed, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"the process of seed {seed} failed")
        for name, digest in json.loads(printed).items():
            found.setdefault(name, {}).setdefault(digest, []).append(seed)
    return found, time.perf_counter() - start


def main(arguments: list[str] | None = None) -> int:
    """Print what differs, and a line for each group of cases; return 1 where anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="processes, each with a hash seed of its own")
    parser.add_argument("--quick", action="store_true", help="one small network a scheduler")
    parser.add_argument("--only", nargs="*", default=[], help="names of cases, or their beginnings")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker is not None:
        if given.worker % 2 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(digests(given.quick, given.worker, given.only)))
        return 0
    found, seconds = compared(given.quick, list(range(given.seeds)), given.only)
    groups: dict[str, list[str]] = {}
    for name in sorted(found):
        groups.setdefault(name.split("/")[0], []).append(name)
    print(f"{'cases of':12} {'cases':>6} {'done':>6} {'refused':>8} {'differ':>7}   over {given.seeds} seeds")
    for group, names in groups.items():
        done = sum(next(iter(found[name])).startswith("0 ") for name in names)
        differ = sum(len(found[name]) > 1 for name in names)
        print(f"{group:12} {len(names):>6} {done:>6} {len(names) - done:>8} {differ:>7}")
    unlike = [name for name in found if len(found[name]) > 1]
    for name in sorted(unlike):
        print(
            f"DIFFERS {name}: " + "; ".join(f"{digest[:14]} of seeds {seeds}" for digest, seeds in found[name].items())
        )
    print(f"{len(found)} cases, {len(unlike)} differ, {seconds:.0f} s")
    return int(bool(unlike))


if __name__ == "__main__":
    sys.exit(main())
