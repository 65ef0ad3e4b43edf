"""PyTorch between network namespaces: calls of torch.distributed with collc against gloo, beside the cost model.

    PYTHONPATH=FOLDER_OF_TORCH python benchmarks/torch_testbed.py [--topology 'biring(4)'] [--rate 100mbit]
        [--sizes 64KiB,1MiB,16MiB] [--kinds allreduce allgather reduce-scatter] [--repeat 5]

Every rank is a process in a namespace of its own, and every link has the rate. Calls of gloo and of collc alternate in
one run; the table has medians of the slowest rank's milliseconds. The model's time of collc is the schedule's cost
without latency. gloo's is that of a ring in the order of the ranks, its algorithm for allreduce and allgather. Exit
status 0 and a reason where no testbed can be built.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import collc
from collc.messages.quantities import bandwidth, show_size, size
from collc.testbed import network, obstacle, plan
from collc.testbed.network import Network
from collc.testbed.plan import Plan

KINDS = ("allreduce", "allgather", "reduce-scatter")
#: the rounds of a ring of n ranks, in multiples of n - 1; gloo's reduce-scatter is not a plain ring
ROUNDS = {"allreduce": 2, "allgather": 1}


def specification(topology: str) -> str:
    """Return a `.coll` file with the breadth-first schedule of every kind."""
    names = {kind: kind.replace("-", "_") for kind in KINDS}
    lines = [f"collective {name} = {kind} on t; schedule {name} using bfb;" for kind, name in names.items()]
    return "\n".join([f"topology t = {topology};", *lines]) + "\n"


# ---- the model


def predicted(topology: str, kind: str, length: int, rate: Fraction) -> Fraction:
    """Return the seconds of the schedule for a vector of ``length`` bytes; ``rate`` is that of each link.

    The model counts in the bandwidth of a rank, which is that of all its links.
    """
    degree = int(collc.topology(topology).degree)
    text = f"topology t = {topology}; collective c = {kind} on t; schedule c using bfb;"
    return collc.compile_source(text, target="ir").cost.time(length, Fraction(0), rate * degree)


def predicted_ring(wires: Plan, kind: str, length: int) -> Fraction | None:
    """Return the seconds of a ring in the order of the ranks, over the routes of the testbed; None: not a ring."""
    n = wires.num_ranks
    if kind not in ROUNDS:
        return None
    used: dict[int, int] = {}
    for r in range(n):
        for link in wires.links(r, (r + 1) % n):
            used[link] = used.get(link, 0) + 1
    slowest = max(count / wires.network.bandwidth(link) for link, count in used.items())
    return ROUNDS[kind] * (n - 1) * Fraction(length, n) * slowest


# ---- ranks


def call_of(kind: str, length: int, ranks: int) -> Any:
    """Return a function that performs a call on a group, with ``length`` bytes of the whole vector, and checks it."""
    import torch
    import torch.distributed as dist

    count = max(length // 4 // ranks * ranks, ranks)
    whole, part = torch.ones(count), torch.ones(count // ranks)

    def call(group: Any) -> float:
        whole.fill_(1)
        part.fill_(1)
        dist.barrier(group=GROUPS["gloo"])
        begin = time.perf_counter()
        if kind == "allreduce":
            dist.all_reduce(whole, group=group)
        elif kind == "allgather":
            dist.all_gather_into_tensor(whole, part, group=group)
        else:
            dist.reduce_scatter_tensor(part, whole, group=group)
        seconds = time.perf_counter() - begin
        right = {"allreduce": (whole, ranks), "allgather": (whole, 1), "reduce-scatter": (part, ranks)}[kind]
        assert bool((right[0] == right[1]).all()), f"{kind} has a wrong result"
        return seconds

    return call


GROUPS: dict[str, Any] = {}


def rank(options: argparse.Namespace) -> None:
    """What every rank does; the first prints one line of JSON for each kind and size."""
    import torch
    import torch.distributed as dist

    import collc.torch

    torch.set_num_threads(1)
    collc.torch.configure(options.spec)
    dist.init_process_group("collc")
    GROUPS.update(gloo=dist.new_group(backend="gloo"), collc=dist.group.WORLD)
    for kind in options.kinds:
        for length in options.sizes:
            call = call_of(kind, length, dist.get_world_size())
            times: dict[str, list[float]] = {name: [] for name in GROUPS}
            for turn in range(options.repeat + 1):
                for name, group in GROUPS.items():
                    spent = torch.tensor([call(group)], dtype=torch.float64)
                    dist.all_reduce(spent, op=dist.ReduceOp.MAX, group=GROUPS["gloo"])
                    if turn:
                        times[name].append(float(spent))
            if dist.get_rank() == 0:
                print(json.dumps([kind, length, {k: statistics.median(v) for k, v in times.items()}]), flush=True)
    assert set(GROUPS["collc"].served) == set(options.kinds), "calls were delegated to gloo"
    dist.barrier()
    dist.destroy_process_group()


def job(net: Network, options: argparse.Namespace, spec: str) -> list[tuple[str, int, dict[str, float]]]:
    """Run the ranks, each in its namespace; return what the first printed."""
    ranks = net.plan.num_ranks
    listed = ",".join(str(length) for length in options.sizes)
    command = [sys.executable, __file__, "--spec", spec, "--sizes", listed, "--repeat", str(options.repeat)]
    command += ["--kinds", *options.kinds]
    shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": net.plan.control_address(0), "MASTER_PORT": "29500"}
    shared |= {"GLOO_SOCKET_IFNAME": "rid0", "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [*net.entering(r), *command], env={**os.environ, **shared, "RANK": str(r)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL, text=True,
        )
        for r in range(ranks)
    ]  # fmt: skip
    try:
        written, _ = processes[0].communicate(timeout=options.timeout)
        failed = [r for r, process in enumerate(processes) if process.wait(timeout=60)]
    finally:
        for process in processes:
            process.kill()
    if failed:
        raise SystemExit(f"ranks failed: {failed}")
    return [tuple(json.loads(line)) for line in written.splitlines() if line.startswith("[")]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.spec:
        rank(options)
        return 0
    reason = obstacle()
    if reason:
        print(f"skipped: {reason}")
        return 0
    wires = plan(collc.topology(options.topology), options.rate)
    with tempfile.TemporaryDirectory() as folder, network(wires) as net:
        spec = Path(folder) / "testbed.coll"
        spec.write_text(specification(options.topology))
        found = job(net, options, str(spec))
    print(f"{options.topology}, links of {float(options.rate) * 8 / 1e6:g} Mbit/s, median of {options.repeat}")
    print("| collective | size | gloo, ms | collc, ms | gloo / collc | model's | collc, model's ms |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for kind, length, times in found:
        ours, ring = predicted(options.topology, kind, length, options.rate), predicted_ring(wires, kind, length)
        ratio = f"{float(ring / ours):.2f}" if ring is not None else "-"
        cells = [kind, show_size(length), f"{times['gloo'] * 1e3:.1f}", f"{times['collc'] * 1e3:.1f}"]
        cells += [f"{times['gloo'] / times['collc']:.2f}", ratio, f"{float(ours) * 1e3:.1f}"]
        print("| " + " | ".join(cells) + " |")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="biring(4)", help="an expression of the language")
    parser.add_argument("--rate", type=_rate, default=_rate("100mbit"), help="bits per second of a link")
    parser.add_argument("--sizes", type=_sizes, default=_sizes("64KiB,1MiB,16MiB"), help="bytes of the whole vector")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for the whole run")
    parser.add_argument("--spec", help=argparse.SUPPRESS)  # a rank of the run
    return parser.parse_args(arguments)


def _rate(text: str) -> Fraction:
    return bandwidth(text.replace("mbit", "Mbps").replace("gbit", "Gbps"), "--rate")


def _sizes(text: str) -> list[int]:
    return [int(part) if part.isdigit() else size(part, "--sizes") for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
