"""What every rank prints: the bits of allreduces of random bits, in two groups at once. No test itself.

The ranks that the arguments name have no engine.
"""

from __future__ import annotations

import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import collc.torch

RANK = int(os.environ["RANK"])
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.int32, torch.int64, torch.uint8)
OPERATIONS = (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX)
SIZES = (5, 1000, 50003)


def filled(size: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Random bits: all kinds of numbers, and zeros of both signs."""
    made = torch.Generator().manual_seed(seed * 10 + RANK)
    width = torch.empty(0, dtype=dtype).element_size()
    found = torch.randint(0, 256, (size * width,), generator=made, dtype=torch.uint8).view(dtype)
    found[::7] = 0
    if dtype.is_floating_point and RANK:
        found[::14] = -0.0
    return found


def main() -> None:
    if str(RANK) in sys.argv[2:]:
        os.environ["COLLC_TORCH_ENGINE"] = "0"
    dist.init_process_group("collc")
    other = dist.new_group(backend="collc")
    for dtype in FLOATS + INTEGERS:
        for op in OPERATIONS + (ReduceOp.AVG,) * dtype.is_floating_point:
            digest = hashlib.sha256()
            for size in SIZES:
                one, two = filled(size, dtype, 1), filled(size, dtype, 2)
                works = [dist.all_reduce(one, op, async_op=True), dist.all_reduce(two, op, group=other, async_op=True)]
                for work in works[:: 1 if RANK else -1]:
                    work.wait()
                for found in (one, two):
                    if dtype.is_floating_point:  # NaNs have many bits
                        found[found.isnan()] = float("nan")
                    digest.update(found.view(torch.uint8).numpy().tobytes())
            print(f"bits {RANK} {dtype} {op} {digest.hexdigest()}")
    assert dist.group.WORLD.served["allreduce"] == len(SIZES) * (4 * 5 + 4 * 4)
    dist.barrier()
    dist.destroy_process_group()


assert collc.torch.configure
main()
