"""Compare files of programs whose passes worked on one rank with those whose passes worked on all: one table.

Time is that of the model of ``passes/analysis/timing.py``, with a latency of 64 KiB of a link's time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import collc
from collc.compiling import Level
from collc.ir.laid_out import laid_out
from collc.ir.program import Program
from collc.ir.symmetric_program import SymmetricProgram
from collc.passes.analysis.timing import duration

NETWORKS = ("torus(8, 8)", "torus(16, 16)", "hypercube(8)", "torus(6, 6, 6)", "circulant(256, {3, 5, 7})")
SIZES = {"1 KiB": 1 << 10, "64 MiB": 1 << 26}
SPEC = """
topology pod = {network};
collective grads = {kind} on pod {{ size: 64 MiB }};
schedule grads using {scheduler} {{ template: {template} }};
"""


def program_of(
    network: str, kind: str, template: bool, scheduler: str, target: str, level: Level
) -> tuple[Program, float]:
    """Return the program that the file lists, and the CPU seconds of its compilation with verification."""
    scheduler = "flow" if kind == "alltoall" else scheduler
    text = SPEC.format(network=network, kind=kind, scheduler=scheduler, template=str(template).lower())
    begin = time.process_time()
    program = collc.compile_source(text, target=target, level=level).program
    took = time.process_time() - begin
    return laid_out(program) if isinstance(program, SymmetricProgram) else program, took


def times(program: Program) -> list[int]:
    """Return the time of a call of each size, in bytes that a link moves in it."""
    chunks = program.chunks * program.collective.num_shards
    return [duration(program, 1 << 16, max(size // chunks, 1), 8) or 0 for size in SIZES.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=NETWORKS, help="networks")
    parser.add_argument("--kinds", nargs="*", default=["allreduce"], help="collectives")
    parser.add_argument("--using", default="bfb", help="scheduler of all collectives but all-to-alls: bfb or forest")
    parser.add_argument("--target", default="msccl-xml", help="msccl-xml with its options: msccl-xml{runtime=rccl}")
    parser.add_argument("--level", type=int, choices=(0, 1, 2, 3), default=2, help="level of the passes")
    arguments = parser.parse_args()
    names = " | ".join(f"time at {size}, one / all" for size in SIZES)
    head = "Instructions, all ranks | one rank | Threadblocks, all | one | CPU seconds, all | one"
    print(f"| Network | Collective | {head} | {names} |")
    print("|---" * (8 + len(SIZES)) + "|")
    for network in arguments.only:
        for kind in arguments.kinds:
            chosen = arguments.using, arguments.target, arguments.level
            found = (program_of(network, kind, template, *chosen) for template in (False, True))
            (of_all, before), (of_one, after) = found
            ratios = [f"{one / before:.2f}" for one, before in zip(times(of_one), times(of_all), strict=True)]
            blocks = [int(np.diff(program.rank_blocks).max()) for program in (of_all, of_one)]
            number = (f"{program.num_instructions:,}" for program in (of_all, of_one))
            row = (f"`{network}`", kind, *number, *blocks, f"{before:.1f}", f"{after:.1f}")
            print(f"| {' | '.join(map(str, (*row, *ratios)))} |", flush=True)


if __name__ == "__main__":
    main()
