"""What every rank of a job does in which something is wrong, or odd. No test itself."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

import collc.autoload_torch
import collc.torch

SPECS = os.environ["COLLC_CHECK_SPECS"]  # a folder
RANK = int(os.environ["RANK"])


def begin(spec: str | None, seconds: float = 60, backend: str = "collc", **defines: int) -> None:
    if spec:
        collc.torch.configure(os.path.join(SPECS, spec), defines)
    dist.init_process_group(backend, timeout=timedelta(seconds=seconds))


def end() -> None:
    dist.barrier()
    dist.destroy_process_group()


def summed() -> None:
    x = torch.full((5,), float(RANK))
    dist.all_reduce(x)
    assert x.tolist() == [sum(range(dist.get_world_size())) * 1.0] * 5


def other_size() -> None:
    begin("four.coll")
    summed()
    dist.new_group([0, 1])
    assert not dist.group.WORLD.served
    end()


def no_spec() -> None:
    begin(None)


def bad_spec() -> None:
    begin("bad.coll")


def bad_defines() -> None:
    os.environ.update(COLLC_SPEC=os.path.join(SPECS, "three.coll"), COLLC_DEFINES="[3]")
    begin(None)


def other_spec() -> None:
    begin("three.coll", chunks=4 if RANK == 2 else 3)


def no_file_elsewhere() -> None:
    begin("three.coll" if RANK == 0 else "none.coll")
    summed()
    assert dist.group.WORLD.served["allreduce"] == 1
    end()


def killed() -> None:
    begin("three.coll")
    summed()
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
    for _ in range(2):  # the second one is refused at once
        try:
            dist.all_reduce(torch.ones(1000))
        except dist.DistBackendError as problem:
            print(f"refused: {problem}")
        else:
            raise AssertionError("an allreduce of fewer ranks")
    sys.exit(3)


def absent() -> None:
    begin("three.coll")
    summed()
    dist.barrier()
    store = distributed_c10d._get_default_store()
    if RANK == 1:
        store.wait(["refused/0", "refused/2"], timedelta(seconds=100))
        store.set("left/1", "")
        sys.exit(3)
    distributed_c10d._set_pg_timeout(timedelta(seconds=3))
    start = time.monotonic()
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    try:
        work.get_future().wait()
    except RuntimeError as problem:
        print(f"refused: {problem}")
    assert 2 < time.monotonic() - start < 60
    assert work.is_completed() and not work.is_success() and work.exception() is not None
    store.set(f"refused/{RANK}", "")
    if RANK == 0:  # the store ends with this rank
        store.wait(["refused/2", "left/1"], timedelta(seconds=100))
    dist.all_reduce(torch.ones(1))


def in_place_of_gloo() -> None:
    os.environ.update(COLLC_SPEC=os.path.join(SPECS, "three.coll"), COLLC_TORCH_REPLACE="gloo", COLLC_STATS="1")
    collc.autoload_torch.start()
    begin(None, backend="gloo")
    summed()
    x = torch.ones(3)
    dist.all_reduce(x, group=dist.new_group(backend="gloo"))
    assert dist.get_backend() == "collc" and x.tolist() == [3.0] * 3
    end()


def not_in_place() -> None:
    os.environ.update(COLLC_SPEC=os.path.join(SPECS, "three.coll"))
    collc.autoload_torch.start()
    begin(None, backend="gloo")
    summed()
    assert dist.get_backend() == "gloo"
    end()


globals()[os.environ["COLLC_CHECK_SCENARIO"]]()
