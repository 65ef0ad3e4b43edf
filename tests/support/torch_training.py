"""Ways to train on four ranks, each with the calls that the backend served and delegated. No test itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

RANKS = 4


def model(width: int = 30) -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(12, width), nn.Tanh(), nn.Linear(width, 30), nn.Tanh(), nn.Linear(30, 4)).double()


def batch(step: int) -> torch.Tensor:
    made = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(8, 12, generator=made, dtype=torch.float64)


def steps(net: Callable[[torch.Tensor], torch.Tensor], optimizer: Any, same_data: bool = False) -> None:
    for step in range(4):
        x = batch(step)
        if same_data:
            dist.broadcast(x, 0)
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()


def alone(same_data: bool = False, width: int = 30) -> list[torch.Tensor]:
    """Return the parameters of one process that has the data of all ranks."""
    net = model(width)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        ranks = [0] if same_data else range(RANKS)
        made = [torch.Generator().manual_seed(100 * step + rank) for rank in ranks]
        x = torch.cat([torch.randn(8, 12, generator=one, dtype=torch.float64) for one in made])
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()
    return [p.detach() for p in net.parameters()]


def close(mine: list[torch.Tensor], what: str, same_data: bool = False, width: int = 30) -> None:
    far = max(float((a - b).abs().max()) for a, b in zip(mine, alone(same_data, width), strict=True))
    assert far < 1e-12, f"{what}: parameters differ from one process's by {far}"


def ddp() -> None:
    from torch.nn.parallel import DistributedDataParallel

    net = DistributedDataParallel(model())
    steps(net, torch.optim.SGD(net.parameters(), lr=0.1))
    close([p.detach() for p in net.parameters()], "ddp")


def zero() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    net = DistributedDataParallel(model())
    steps(net, ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1))
    close([p.detach() for p in net.parameters()], "zero")


def fsdp2() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (RANKS,))
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    steps(net, torch.optim.SGD(net.parameters(), lr=0.1))
    close([p.full_tensor().detach() for p in net.parameters()], "fsdp2")


def tensor_parallel() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (RANKS,))
    net = parallelize_module(model(32), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    steps(net, torch.optim.SGD(net.parameters(), lr=0.1), same_data=True)
    mine = [p.full_tensor().detach() if hasattr(p, "full_tensor") else p.detach() for p in net.parameters()]
    close(mine, "tensor parallel", same_data=True, width=32)


def pipeline() -> None:
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank = dist.get_rank()
    layers = [nn.Linear(12, 12).double() for _ in range(RANKS)]
    stage = PipelineStage(layers[rank], rank, RANKS, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda out, target: (out - target).square().mean())
    for step in range(2):
        x = batch(step)
        dist.broadcast(x, 0)
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=x) if rank == RANKS - 1 else schedule.step()
    loss = torch.ones(1)
    dist.all_reduce(loss)
    assert loss.item() == RANKS


WAYS = {way.__name__: way for way in (ddp, zero, fsdp2, tensor_parallel, pipeline)}


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("collc", timeout=timedelta(seconds=120))
    world: Any = dist.group.WORLD
    for name in sys.argv[1:] or WAYS:
        world.served.clear()
        world.delegated.clear()
        WAYS[name]()
        if dist.get_rank() == 0:
            counts = {"served": dict(world.served), "delegated": dict(world.delegated)}
            print(f"way {name} {json.dumps(counts, sort_keys=True)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
