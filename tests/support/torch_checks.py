"""What every rank of a torchrun job checks: each collective through compiled schedules against gloo. No test itself."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

RANKS = 4
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.int32, torch.int64, torch.uint8)
ARITHMETIC = (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX)
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
#: shapes: no element, one without dimensions, fewer than chunks, not divisible, and one sent in many messages
SHAPES = ((0,), (), (3,), (17, 5), (1 << 16,))


def filled(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Numbers whose sums and products over four ranks are exact in every type, so that any order gives the same."""
    made = torch.Generator().manual_seed(seed * 1000 + dist.get_rank())
    numbers = torch.randint(0, 3, shape, generator=made)
    return numbers.to(dtype) if dtype != torch.bool else numbers > 1


def same(mine: torch.Tensor, theirs: torch.Tensor, what: str) -> None:
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, what
    if not torch.equal(mine, theirs):
        wrong = int((mine != theirs).sum())
        raise AssertionError(f"{what}: {wrong} of {mine.numel()} elements differ on rank {dist.get_rank()}")


def types_and_operations() -> Iterator[tuple[torch.dtype, Any]]:
    yield from itertools.product(FLOATS + INTEGERS, ARITHMETIC)
    yield from itertools.product(INTEGERS, BITWISE)


def both(gloo: Any, call: Callable[[Any], list[torch.Tensor]], what: str) -> None:
    """Make a call on both groups and compare."""
    for mine, theirs in zip(call(None), call(gloo), strict=True):
        same(mine, theirs, what)


def check_allreduce(gloo: Any) -> None:
    for (dtype, op), shape in itertools.product(types_and_operations(), SHAPES[:4]):

        def call(group: Any, dtype: Any = dtype, op: Any = op, shape: Any = shape) -> list[torch.Tensor]:
            x = filled(shape, dtype, 1)
            dist.all_reduce(x, op=op, group=group)
            return [x]

        both(gloo, call, f"allreduce {dtype} {op} {shape}")
    for dtype, op in itertools.product((torch.bool,), (ReduceOp.MIN, ReduceOp.MAX, *BITWISE)):
        x = filled((17, 5), dtype, 1)
        dist.all_reduce(x, op=op)
        y = filled((17, 5), dtype, 1).to(torch.uint8)
        dist.all_reduce(y, op=op, group=gloo)
        same(x, y.bool(), f"allreduce {dtype} {op}")


def check_large(gloo: Any) -> None:
    for dtype in (torch.float64, torch.int32):

        def reduce(group: Any, dtype: Any = dtype) -> list[torch.Tensor]:
            x = filled((3 * (1 << 16) + 1,), dtype, 2)
            dist.all_reduce(x, group=group)
            return [x]

        def gather(group: Any, dtype: Any = dtype) -> list[torch.Tensor]:
            x = filled((1 << 16,), dtype, 2)
            y = x.new_empty(RANKS << 16)
            dist.all_gather_into_tensor(y, x, group=group)
            z = torch.empty_like(x)
            dist.reduce_scatter_tensor(z, y, group=group)
            return [y, z]

        both(gloo, reduce, f"large allreduce {dtype}")
        both(gloo, gather, f"large allgather and reduce-scatter {dtype}")


def check_moves(gloo: Any) -> None:
    for dtype, shape in itertools.product((torch.float32, torch.int64, torch.bfloat16), SHAPES):

        def gather(group: Any, dtype: Any = dtype, shape: Any = shape) -> list[torch.Tensor]:
            x = filled(shape, dtype, 3)
            listed = [torch.empty_like(x) for _ in range(RANKS)]
            dist.all_gather(listed, x, group=group)
            if not shape:
                return listed  # gloo does not take it into one tensor
            joined = x.new_empty((RANKS * shape[0], *shape[1:]))
            dist.all_gather_into_tensor(joined, x, group=group)
            return [*listed, joined]

        def exchange(group: Any, dtype: Any = dtype, shape: Any = shape) -> list[torch.Tensor]:
            x = filled((RANKS * shape[0], *shape[1:]) if shape else (RANKS,), dtype, 4)
            y = torch.empty_like(x)
            dist.all_to_all_single(y, x, group=group)
            wide = len(x) // RANKS
            split = torch.empty_like(x)
            dist.all_to_all_single(split, x, [wide] * RANKS, [wide] * RANKS, group=group)
            same(split, y, "alltoall with splits")
            listed = [torch.empty_like(part) for part in x.chunk(RANKS)] if wide else []
            if listed:
                dist.all_to_all(listed, list(x.chunk(RANKS)), group=group)
            return [y, *listed]

        def spread(group: Any, dtype: Any = dtype, shape: Any = shape) -> list[torch.Tensor]:
            found = []
            for root in range(2):
                x = filled(shape, dtype, 5 + root)
                dist.broadcast(x, root, group=group)
                found.append(x)
            return found

        def scatter(group: Any, dtype: Any = dtype, shape: Any = shape) -> list[torch.Tensor]:
            parts = [filled(shape, dtype, 7 + r) for r in range(RANKS)]
            x = torch.empty_like(parts[0])
            dist.reduce_scatter(x, parts, group=group)
            y = torch.empty_like(x)
            if shape:
                dist.reduce_scatter_tensor(y, torch.cat(parts), group=group)
                same(x, y, "reduce-scatter of a list and of a tensor")
            return [x]

        for call in (gather, exchange, spread, scatter):
            both(gloo, call, f"{call.__name__} {dtype} {shape}")


def check_roots(gloo: Any) -> None:
    """Reduce, gather and scatter at the root that the specification has, and at another."""
    rank = dist.get_rank()
    for root, shape in itertools.product((1, 2), ((3,), (17, 5))):
        for group in (None, gloo):
            x = filled(shape, torch.float32, 9)
            total = x.clone()
            dist.all_reduce(total, group=gloo)
            dist.reduce(x, root, group=group)
            if rank == root:
                same(x, total, f"reduce to {root}")
            x = filled(shape, torch.float32, 10)
            expected = [torch.empty_like(x) for _ in range(RANKS)]
            dist.all_gather(expected, x, group=gloo)
            parts = [torch.empty_like(x) for _ in range(RANKS)] if rank == root else None
            dist.gather(x, parts, root, group=group)
            if parts is not None:
                for mine, theirs in zip(parts, expected, strict=True):
                    same(mine, theirs, f"gather to {root}")
            y = torch.empty_like(x)
            dist.scatter(y, expected if rank == root else None, root, group=group)
            same(y, x, f"scatter from {root}")


def check_memory(gloo: Any) -> None:
    """Tensors with gaps, transposed, overlapping, and that require gradients."""
    x = filled((8, 6), torch.float64, 11)
    y = x.clone()
    dist.all_reduce(x[:, ::2])
    part = y[:, ::2].contiguous()
    dist.all_reduce(part, group=gloo)
    y[:, ::2] = part
    same(x, y, "allreduce of a tensor with gaps")
    x = filled((8, 6), torch.float64, 12)
    y = x.clone()
    turned = x.t().contiguous().t() if dist.get_rank() % 2 else x  # laid out differently on every other rank
    dist.all_reduce(turned)
    dist.all_reduce(y, group=gloo)
    same(turned, y, "allreduce of a transposed tensor")
    whole = filled((RANKS, 5), torch.float32, 13)
    own = whole[dist.get_rank() : dist.get_rank() + 1]
    expected = torch.empty_like(whole)
    dist.all_gather_into_tensor(expected, own.clone(), group=gloo)
    dist.all_gather_into_tensor(whole, own)
    same(whole, expected, "allgather in place")
    leaf = torch.ones(5, requires_grad=True)
    dist.all_reduce(leaf)
    same(leaf.detach(), torch.full((5,), float(RANKS)), "allreduce of a leaf")
    with torch.inference_mode():
        z = torch.ones(5)
        dist.all_reduce(z)
        same(z, torch.full((5,), float(RANKS)), "allreduce of an inference tensor")


def check_order(gloo: Any) -> None:
    """Calls that are not waited for, waited for in another order, and futures."""
    tensors = [filled((100 * k,), torch.float32, 20 + k) for k in range(8)]
    expected = [t.clone() for t in tensors]
    for t in expected:
        dist.all_reduce(t, group=gloo)
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    last = torch.ones(3)
    dist.all_reduce(last)  # waits for its turn
    assert all(w.is_completed() for w in works)
    for work, mine, theirs in reversed(list(zip(works, tensors, expected, strict=True))):
        work.wait()
        assert work.is_success() and work.exception() is None
        same(mine, theirs, "allreduce that was not waited for")
    x = torch.ones(4)
    future = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] / RANKS)
    same(future.wait(), torch.ones(4), "a future")
    x, y = torch.ones(1 << 16), torch.ones(3)
    future = dist.all_reduce(x, async_op=True).get_future()
    chained = future.then(lambda f: dist.all_reduce(y, async_op=True).get_future().wait()[0] + f.value()[0][:3])
    same(chained.wait(), torch.full((3,), 2.0 * RANKS), "a call in a future's callback")
    x = torch.ones(1 << 18)
    twice = [dist.all_reduce(x, async_op=True) for _ in range(3)]
    twice[-1].wait(timedelta(seconds=60))
    same(x, torch.full((1 << 18,), float(RANKS**3)), "three allreduces of one tensor")
    works = [dist.all_reduce(torch.ones(1 << 16), async_op=True) for _ in range(3)]
    works.append(dist.barrier(async_op=True))
    assert all(w.is_completed() for w in works[:3])
    dist.all_reduce(torch.tensor([True]))  # gloo's, as the barrier
    works[3].wait()


def check_coalesced(gloo: Any) -> None:
    tensors = [filled((n,), torch.float32, 30 + n) for n in (3, 0, 10)]
    expected = [t.clone() for t in tensors]
    with dist._coalescing_manager():
        for t in tensors:
            dist.all_reduce(t)
    for t in expected:
        dist.all_reduce(t, group=gloo)
    for mine, theirs in zip(tensors, expected, strict=True):
        same(mine, theirs, "coalesced allreduce")
    inputs = [filled((n,), torch.float32, 40 + n) for n in (3, 10)]
    outputs = [x.new_empty(RANKS * len(x)) for x in inputs]
    back = [torch.empty_like(x) for x in inputs]
    with dist._coalescing_manager():
        for x, y in zip(inputs, outputs, strict=True):
            dist.all_gather_into_tensor(y, x)
    with dist._coalescing_manager():
        for x, y in zip(outputs, back, strict=True):
            dist.reduce_scatter_tensor(y, x)
    for x, y in zip(inputs, back, strict=True):
        same(y, x * RANKS, "coalesced allgather and reduce-scatter")
    x = torch.ones(3)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as works:
        dist.all_reduce(x)
    works.wait()
    same(x, torch.full((3,), float(RANKS)), "coalesced with a device")


def check_averages(gloo: Any) -> None:
    """Means as gloo's, bit by bit: the sums are exact. Factors, which gloo does not have."""
    for dtype, shape in itertools.product(FLOATS, SHAPES[:4]):

        def call(group: Any, dtype: Any = dtype, shape: Any = shape) -> list[torch.Tensor]:
            x = filled(shape, dtype, 60)
            dist.all_reduce(x, op=ReduceOp.AVG, group=group)
            parts = [filled(shape, dtype, 61 + r) for r in range(RANKS)]
            y = torch.empty_like(parts[0])
            dist.reduce_scatter(y, parts, op=ReduceOp.AVG, group=group)
            return [x, y]

        both(gloo, call, f"mean {dtype} {shape}")
    x, whole = filled((17,), torch.float64, 62), filled((RANKS * 3,), torch.float64, 63)
    given, total, own = x.clone(), x.clone(), torch.empty(3, dtype=torch.float64)
    dist.all_reduce(total, group=gloo)
    dist.reduce(given, 1, op=ReduceOp.AVG)
    if dist.get_rank() == 1:
        same(given, total / RANKS, "mean at one rank")
    kept = whole.clone()
    dist.reduce_scatter_tensor(own, whole, op=dist._make_nccl_premul_sum(0.25))
    same(whole, kept, "the input of a reduce-scatter with a factor")
    expected = torch.empty_like(own)
    dist.reduce_scatter_tensor(expected, whole, group=gloo)
    same(own, expected / 4, "reduce-scatter with a factor")
    for factor in (0.5, torch.tensor([0.5], dtype=torch.float64)):
        y = x.clone()
        dist.all_reduce(y, op=dist._make_nccl_premul_sum(factor))
        same(y, total / 2, f"allreduce with the factor {factor}")


def check_uneven(gloo: Any) -> None:
    """Blocks of different sizes: served, and as gloo's where gloo has the call."""
    rank, world = dist.get_rank(), dist.group.WORLD
    before = dict(world.served)
    sizes = [3, 0, 5, 2]
    outputs = [torch.empty(n) for n in sizes]
    dist.all_gather(outputs, torch.full((sizes[rank],), float(rank)))
    for r, found in enumerate(outputs):
        same(found, torch.full((sizes[r],), float(r)), "allgather of different sizes")
    lists = [[torch.empty(n) for n in sizes], [torch.empty(4) for _ in sizes]]
    dist.all_gather_coalesced(lists, [torch.full((sizes[rank],), 1.0), torch.full((4,), float(rank))])
    assert [t.tolist() for t in lists[1]] == [[float(r)] * 4 for r in range(RANKS)]
    assert [t.tolist() for t in lists[0]] == [[1.0] * n for n in sizes]

    def scatter(group: Any) -> list[torch.Tensor]:
        own = torch.empty(sizes[rank])
        dist.reduce_scatter(own, [filled((n,), torch.float32, 70 + r) for r, n in enumerate(sizes)], group=group)
        return [own]

    def exchange(group: Any) -> list[torch.Tensor]:
        sent = [(rank + 2 * r) % 4 for r in range(RANKS)]
        received = [(r + 2 * rank) % 4 for r in range(RANKS)]
        x = filled((sum(sent), 3), torch.float32, 80)
        y = x.new_empty((sum(received), 3))
        dist.all_to_all_single(y, x, received, sent, group=group)
        if group is None:  # gloo takes no such lists
            z = [x.new_empty((n, 3)) for n in received]
            dist.all_to_all(z, list(x.split(sent)))
            same(torch.cat(z), y, "alltoall of a list and with splits")
        return [y]

    both(gloo, scatter, "reduce-scatter of different sizes")
    both(gloo, exchange, "alltoall of different sizes")
    counted = {kind: world.served[kind] - before.get(kind, 0) for kind in ("allgather", "reduce-scatter", "alltoall")}
    assert counted == {"allgather": 2, "reduce-scatter": 1, "alltoall": 2}, counted
    # one block of many elements, and padding would be almost all
    sent, received = ([1000 * (rank == a and r == b) for r in range(RANKS)] for a, b in ((0, 1), (1, 0)))
    y = torch.empty(sum(received))
    dist.all_to_all_single(y, torch.ones(sum(sent)), received, sent)
    assert y.tolist() == [1.0] * sum(received)
    assert world.served["alltoall"] == before.get("alltoall", 0) + 2


def check_timeouts(gloo: Any) -> None:
    """A handle whose wait ends before the call names the rank that has not come."""
    if dist.get_rank() == 2:
        time.sleep(3)
    x = torch.ones(8)
    work = dist.all_reduce(x, async_op=True)
    try:
        work.wait(timedelta(seconds=1))
    except dist.DistBackendError as problem:
        found = str(problem)
        assert dist.get_rank() != 2 and "not done after 1 s: grads waits on rank" in found, found
        assert "message from rank" in found, found
    work.wait()
    same(x, torch.full((8,), float(RANKS)), "an allreduce after its wait ended")


def check_delegated(gloo: Any) -> None:
    """What no schedule is for: other sizes, types and operations, messages, objects, barriers."""
    rank = dist.get_rank()
    x = torch.full((2,), float(rank))
    if rank % 2:
        dist.recv(x, rank - 1, tag=5)
        assert x.tolist() == [rank - 1.0] * 2
    else:
        dist.send(x, rank + 1, tag=5)
    objects: list[Any] = [None] * RANKS
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(RANKS)]
    sizes = [rank + 1] * RANKS
    parts = torch.cat([torch.full((rank + 1,), float(rank)) for _ in range(RANKS)])
    found = torch.empty(sum(range(1, RANKS + 1)))
    dist.all_to_all_single(found, parts, list(range(1, RANKS + 1)), sizes)
    assert found.tolist() == [float(r) for r in range(RANKS) for _ in range(r + 1)]
    # even here and uneven elsewhere: rank 0 sends and receives nothing
    table = [[0] * RANKS] + [[0, *((r + k) % 3 for k in range(1, RANKS))] for r in range(1, RANKS)]
    outputs = [torch.empty(table[r][rank]) for r in range(RANKS)]
    dist.all_to_all_single(
        torch.empty(sum(len(o) for o in outputs)), torch.ones(sum(table[rank])), [len(o) for o in outputs], table[rank]
    )
    z = torch.ones(3, dtype=torch.complex64)
    dist.all_reduce(z)
    assert z.tolist() == [4 + 0j] * 3
    truth = torch.tensor([rank == 0, False])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, False]
    dist.barrier()


def check_groups(gloo: Any) -> None:
    """Groups of a size that the specification has a schedule for, of all ranks in another order, and of one rank."""
    rank = dist.get_rank()
    mine = next(g for g in (dist.new_group([0, 3]), dist.new_group([1, 2])) if dist.get_rank(g) >= 0)
    x = torch.full((101,), float(rank))
    dist.all_reduce(x, group=mine)
    assert x.tolist() == [3.0] * 101
    assert mine.served["allreduce"] == 1, mine.served
    three = dist.new_group([0, 1, 2])
    if rank < 3:
        x = torch.full((5,), float(rank))
        dist.all_reduce(x, group=three)
        assert x.tolist() == [3.0] * 5
        assert not three.served
    single = [dist.new_group([r]) for r in range(RANKS)][rank]
    x = torch.ones(3)
    dist.all_reduce(x, group=single)
    assert x.tolist() == [1.0] * 3


def check_functional(gloo: Any) -> None:
    import torch.distributed._functional_collectives as functional

    x = filled((17,), torch.float32, 50)
    expected = x.clone()
    dist.all_reduce(expected, group=gloo)
    same(functional.wait_tensor(functional.all_reduce(x, "sum", dist.group.WORLD)), expected, "functional allreduce")


def digest(parameters: list[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in parameters)).hexdigest()


def train(group: Any, hook: bool = False) -> list[torch.Tensor]:
    """Return the parameters after 20 steps of training, each rank on its own data."""
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(3)
    sizes = (20, 256, 256, 256, 3)
    layers = [(torch.nn.Linear(a, b), torch.nn.Tanh()) for a, b in itertools.pairwise(sizes)]
    model = torch.nn.Sequential(*itertools.chain.from_iterable(layers)).double()
    wrapped = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.005)
    if hook:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        wrapped.register_comm_hook(group, default_hooks.allreduce_hook)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
    made = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        x = torch.randn(16, 20, generator=made, dtype=torch.float64)
        loss = (wrapped(x) - x[:, :3] ** 2).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach().clone() for p in wrapped.parameters()]


def check_training(gloo: Any) -> None:
    group = dist.group.WORLD
    before = group.served["allreduce"]
    mine, hooked, theirs = train(group), train(group, hook=True), train(gloo)
    steps = group.served["allreduce"] - before
    assert steps >= 80, f"only {steps} allreduces of 2 x 20 steps and several buckets were served"
    far = max(float((a - b).abs().max()) for a, b in zip(mine, theirs, strict=True))
    assert far < 1e-12, f"parameters differ from gloo's by {far}"
    assert digest(mine) == digest(hooked)
    objects: list[Any] = [None] * RANKS
    dist.all_gather_object(objects, digest(mine), group=gloo)
    assert len(set(objects)) == 1, "ranks have different parameters"


CHECKS = {
    name.removeprefix("check_"): value for name, value in dict(globals()).items() if name.startswith("check_")
}  # fmt: skip


def main() -> None:
    if "--autoload" not in sys.argv:
        import collc.torch

        collc.torch.configure(os.environ["COLLC_CHECK_SPEC"], json.loads(os.environ.get("COLLC_CHECK_DEFINES", "{}")))
    torch.set_num_threads(1)
    dist.init_process_group("collc", timeout=timedelta(seconds=120))
    gloo = dist.new_group(backend="gloo")
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")] or list(CHECKS)
    for name in wanted:
        begin = time.perf_counter()
        CHECKS[name](gloo)
        if dist.get_rank() == 0:
            print(f"passed {name} {time.perf_counter() - begin:.1f} s", flush=True)
    world = dist.group.WORLD
    counts: list[Any] = [None] * RANKS
    dist.all_gather_object(counts, dict(world.served), group=gloo)
    assert all(count == counts[0] for count in counts), counts
    if dist.get_rank() == 0:
        print("served " + json.dumps(counts[0], sort_keys=True), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
