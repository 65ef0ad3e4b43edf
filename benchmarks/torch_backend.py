"""Compiled schedules under torch.distributed against gloo's own collectives, in one run on this machine.

    python benchmarks/torch_backend.py [--ranks 4 8] [--kinds allreduce allgather] [--largest 26] [--spec FILE]

Needs torch and collc in this Python. Every size is timed in turns, gloo and then the schedule, as often as `--repeat`
says; the table has medians of the slowest rank's time. Ranks are processes that share this machine's
memory and processors, so it measures what the backend costs, not what a schedule gains on links of its own.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SPEC = """
param ranks = 4;
topology square = torus(ranks / 2, 2);
collective allreduce = allreduce on square;             schedule allreduce using bfb;
collective allgather = allgather on square;             schedule allgather using bfb;
collective scatter   = reduce-scatter on square;        schedule scatter using bfb;
collective broadcast = broadcast on square { root: 0 }; schedule broadcast using bfb;
collective alltoall  = alltoall on square;              schedule alltoall using flow;
"""
KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast", "alltoall")


def call_of(kind: str, size: int, ranks: int) -> Any:
    """Return a function that performs a call on a group, with `size` bytes of the whole vector."""
    import torch
    import torch.distributed as dist

    count = max(size // 4 // ranks * ranks, ranks)
    whole, part = torch.ones(count), torch.ones(count // ranks)
    other = torch.empty_like(whole)
    calls = {
        "allreduce": lambda group: dist.all_reduce(whole.fill_(1), group=group),
        "allgather": lambda group: dist.all_gather_into_tensor(whole, part, group=group),
        "reduce-scatter": lambda group: dist.reduce_scatter_tensor(part, whole, group=group),
        "broadcast": lambda group: dist.broadcast(whole, 0, group=group),
        "alltoall": lambda group: dist.all_to_all_single(other, whole, group=group),
    }
    return calls[kind]


def rank(ranks: int, options: argparse.Namespace, spec: str) -> None:
    """What every rank does; the first prints."""
    import torch
    import torch.distributed as dist

    import collc.torch

    torch.set_num_threads(1)
    collc.torch.configure(spec, {} if options.spec else {"ranks": ranks})
    dist.init_process_group("collc")
    gloo = dist.new_group(backend="gloo")
    for kind in options.kinds:
        for bits in range(10, options.largest + 1, options.step):
            call = call_of(kind, 1 << bits, ranks)
            times: dict[str, list[float]] = {"gloo": [], "collc": []}
            for turn in range(options.repeat + 1):
                for name, group in (("gloo", gloo), ("collc", dist.group.WORLD)):
                    loops = max(1, min(20, (1 << 20) >> bits))
                    dist.barrier(group=gloo)
                    begin = time.perf_counter()
                    for _ in range(loops):
                        call(group)
                    spent = torch.tensor([(time.perf_counter() - begin) / loops])
                    dist.all_reduce(spent, op=dist.ReduceOp.MAX, group=gloo)
                    if turn:
                        times[name].append(float(spent) * 1e6)
            if dist.get_rank() == 0:
                collc_us, gloo_us = statistics.median(times["collc"]), statistics.median(times["gloo"])
                print(
                    f"| {ranks} | {kind} | {1 << bits} | {gloo_us:.0f} | {collc_us:.0f} | {gloo_us / collc_us:.2f} |",
                    flush=True,
                )
    dist.barrier()
    dist.destroy_process_group()


def job(ranks: int, options: argparse.Namespace, spec: str) -> int:
    """Fork the ranks of a job, which share what this process has imported; return how many failed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    children = []
    for number in range(ranks):
        child = os.fork()
        if child == 0:
            os.environ["RANK"] = str(number)
            status = 1
            try:
                rank(ranks, options, spec)
                status = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["allreduce"])
    parser.add_argument("--largest", type=int, default=26, help="the largest size, as a power of two of bytes")
    parser.add_argument("--step", type=int, default=4, help="exponent of two between neighbouring sizes")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--spec", help="a .coll file for these ranks; without it a torus of n/2 x 2, breadth first")
    options = parser.parse_args()
    import torch.distributed  # once, before ranks are forked

    assert torch.distributed.is_available()
    print("| ranks | collective | bytes | gloo, us | collc, us | gloo / collc |\n|--:|---|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        spec = options.spec or str(Path(folder) / "square.coll")
        if not options.spec:
            Path(spec).write_text(SPEC)
        return min(1, sum(job(ranks, options, spec) for ranks in options.ranks))


if __name__ == "__main__":
    sys.exit(main())
