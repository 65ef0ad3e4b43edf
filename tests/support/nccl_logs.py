"""Logs as nccl-tests and the OSU benchmarks print them, with times of a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["nccl_log", "osu_log"]

Time = Callable[[int], float]


def _row(size: int, micro: float, ranks: int, wrong: int) -> str:
    rate = size / micro / 1000
    half = f"{micro:>8.2f} {rate:>7.2f} {rate * 2 * (ranks - 1) / ranks:>7.2f} {wrong:>6d}"
    return f"{size:>12d} {size // 4:>13d}     float     sum      -1 {half} {half}"


def nccl_log(
    time: Time, sizes: Iterable[int], ranks: int = 16, hosts: int = 2, algorithm: str | None = "Ring",
    protocol: str | None = "Simple", test: str | None = "all_reduce_perf", wrong: int = 0,
) -> str:  # fmt: skip
    """Return the output of a test; ``time`` gives microseconds by size."""
    variables = [f"NCCL_ALGO={algorithm}"] * (algorithm is not None) + [f"NCCL_PROTO={protocol}"] * (
        protocol is not None
    )
    command = [f"$ {' '.join(variables)} ./build/{test} -b 8 -e 1G -f 2"] if test else variables
    lines = [
        *command, "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20", "#",
        "# Using devices",
        *(f"#  Rank {k:2d} Group  0 Pid {4000 + k} on  node{k * hosts // ranks} device  {k % 8} [0x07] NVIDIA A100"
          for k in range(ranks)),
        "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        "#wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
        *(_row(size, time(size), ranks, wrong) for size in sizes),
        "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 41.5", "#",
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def osu_log(time: Time, sizes: Iterable[int], test: str = "Allreduce", ranks: int | None = 16) -> str:
    """Return the output of a benchmark; the number of ranks stands in the command."""
    command = [] if ranks is None else [f"$ mpirun -np {ranks} osu_{test.lower()} d d"]
    rows = [f"{size:<10d} {time(size):>20.2f}" for size in sizes]
    lines = [*command, "", f"# OSU MPI-CUDA {test} Latency Test v7.3", "# Size       Avg Latency(us)", *rows]
    return "\n".join([*lines, ""])
