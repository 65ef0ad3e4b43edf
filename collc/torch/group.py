"""The process group for torch: compiled schedules for the collectives of the specification, gloo for all others.

The choice depends only on arguments that are equal on all ranks: kind, root, operation, element type, sizes. Ranks with
different choices would wait for each other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import attrs
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from .catalog import Entry
from .operations import Operation, operation
from .plan import Planner
from .running import Wire
from .tensors import apart, flat_of, flat_result, flattened, is_plain, padded, split_for, spread, write
from .work import CollcWork, Worker

__all__ = ["CollcGroup"]

#: largest whole vector (bytes) with one packed message per peer and level; larger calls send several, which overlap
PACKED = 1 << 18
#: blocks of unequal sizes are padded to the largest if all together grow no more than this
_MOST_PADDING = 4


#: Any: one of torch's classes of options, of which each kind of call has its own
Options: TypeAlias = Any
#: Any: a tensor or several, as torch gives them
Tensors: TypeAlias = Any


@attrs.frozen(eq=False)
class _Served:
    """A served call: a collective of the specification, and its operation or None."""

    entry: Entry
    operation: Operation | None


class CollcGroup(dist.ProcessGroup):
    """One rank's view of a group. ``inner`` is gloo, ``wire`` plays the schedules."""

    def __init__(
        self,
        rank: int,
        size: int,
        timeout: timedelta,
        inner: dist.ProcessGroup,
        wire: Wire | None,
        entries: Sequence[Entry],
        name: str,
    ):
        super().__init__(rank, size)
        self._inner, self._timeout, self._label = inner, timeout, name
        self._entries = [entry for entry in entries if entry.ranks == size]
        self._wire = wire
        self._worker = Worker(f"collc-{name}")
        self._planners: dict[tuple[int, int], Planner] = {}
        self.served: Counter[str] = Counter()
        self.delegated: Counter[str] = Counter()
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, inner)

    def getBackendName(self) -> str:
        return "collc"

    # ---- choice

    def _find(self, kind: str, tensors: Sequence[torch.Tensor], opts: Options, rooted: bool = False) -> _Served | None:
        """Return the collective for a call on these tensors, or None."""
        first = tensors[0]
        if not all(is_plain(t) and t.dtype == first.dtype for t in tensors):
            return None
        op = operation(opts.reduceOp, first.dtype) if hasattr(opts, "reduceOp") else None
        if op is None and hasattr(opts, "reduceOp"):
            return None
        root = int(opts.rootRank) if rooted else None
        for entry in self._entries:
            if entry.kind == kind and entry.root == root and (entry.once or (op is not None and op.idempotent)):
                return _Served(entry, op)
        return None

    # ---- execution

    def _play(
        self, served: _Served, given: torch.Tensor, result: torch.Tensor, elements: int, size: int, timeout: timedelta
    ) -> None:
        """Perform a call on flat tensors; ``elements`` is the count for the plan, ``size`` the bytes of the vector."""
        assert self._wire is not None
        which = served.entry.choose(size)
        key = id(served.entry), which
        if key not in self._planners:
            self._planners[key] = Planner(served.entry.algorithms[which].layout, self.rank())
        plan = self._planners[key].plan(elements, size <= PACKED)
        op = served.operation
        with torch.inference_mode():
            if op is not None and op.factor is not None:
                given = given.mul_(op.factor) if given.data_ptr() == result.data_ptr() else given * op.factor
            self._wire.play(served.entry.name, plan, given, result, op, timeout)
            if op is not None and op.mean and served.entry.root in (None, self.rank()):
                result.div_(self.size())

    def _serve(self, kind: str, opts: Options, work: Callable[[timedelta], list[torch.Tensor]]) -> CollcWork:
        self.served[kind] += 1
        limit = self._limit(opts)
        now = not getattr(opts, "asyncOp", True)
        where = self._wire.where if self._wire is not None else None
        return self._worker.submit(CollcWork(lambda: work(limit), where), now)

    def _limit(self, opts: Options) -> timedelta:
        given: timedelta | None = getattr(opts, "timeout", None)
        if given is not None and given > timedelta(0):
            return given
        # torch sets gloo's limit together with the group's
        usual: timedelta = getattr(getattr(self._inner, "options", None), "_timeout", self._timeout)
        return usual

    def _delegate(self, kind: str, names: Sequence[str], *args: object) -> dist.Work:
        """Pass a call to gloo, by the first of its names in this version of torch."""
        self.delegated[kind] += 1
        name = next((name for name in names if hasattr(self._inner, name)), names[0])
        return getattr(self._inner, name)(*args)

    # ---- one tensor

    def allreduce(self, tensors: Tensors, opts: Options = None, timeout: timedelta | None = None) -> dist.Work:
        tensors, opts = _listed(tensors), _options(c10d.AllreduceOptions, opts, timeout)
        served = self._find("allreduce", tensors, opts) if len(tensors) == 1 else None
        if served is None:
            return self._delegate("allreduce", ["allreduce"], tensors, opts)
        return self._serve("allreduce", opts, lambda limit: self._on_one(served, tensors[0], limit))

    def allreduce_coalesced(self, tensors: Tensors, opts: Options = None) -> dist.Work:
        tensors, opts = _listed(tensors), _options(c10d.AllreduceCoalescedOptions, opts)
        served = self._find("allreduce", tensors, opts) if tensors else None
        if served is None:
            return self._delegate("allreduce", ["allreduce_coalesced"], tensors, opts)

        def work(limit: timedelta) -> list[torch.Tensor]:
            if len(tensors) == 1:
                return self._on_one(served, tensors[0], limit)
            flat = flattened(tensors)
            self._on_one(served, flat, limit)
            spread(flat, tensors)
            return list(tensors)

        return self._serve("allreduce", opts, work)

    def broadcast(self, tensors: Tensors, opts: Options = None, timeout: timedelta | None = None) -> dist.Work:
        tensors = _listed(tensors)
        if isinstance(opts, int):
            opts, root = None, opts
            opts = _options(c10d.BroadcastOptions, opts, timeout)
            opts.rootRank = root
        opts = _options(c10d.BroadcastOptions, opts)
        served = self._find("broadcast", tensors, opts, rooted=True) if len(tensors) == 1 else None
        if served is None:
            return self._delegate("broadcast", ["broadcast"], tensors, opts)
        return self._serve("broadcast", opts, lambda limit: self._on_one(served, tensors[0], limit))

    def reduce(self, tensors: Tensors, opts: Options = None) -> dist.Work:
        tensors, opts = _listed(tensors), _options(c10d.ReduceOptions, opts)
        served = self._find("reduce", tensors, opts, rooted=True) if len(tensors) == 1 else None
        if served is None:
            return self._delegate("reduce", ["reduce"], tensors, opts)
        return self._serve("reduce", opts, lambda limit: self._on_one(served, tensors[0], limit))

    def _on_one(self, served: _Served, tensor: torch.Tensor, limit: timedelta) -> list[torch.Tensor]:
        flat = flat_of(tensor)
        count = flat.numel()
        self._play(served, flat, flat, count, count * flat.element_size(), limit)
        if flat.data_ptr() != tensor.data_ptr():
            write(tensor, flat)
        return [tensor]

    # ---- one block per rank

    def _blocks(self, served: _Served, given: torch.Tensor, result: torch.Tensor, limit: timedelta) -> None:
        """Perform a call whose input, output or both have one block per rank; both tensors are flat."""
        larger, smaller = (given, result) if len(given) > len(result) else (result, given)
        if served.entry.kind in ("gather", "scatter"):
            count = len(result if served.entry.kind == "scatter" else given)
        else:
            count = len(larger) // self.size() if served.entry.kind == "alltoall" else len(smaller)
        self._play(served, given, result, count, count * self.size() * given.element_size(), limit)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Options = None) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts)
        served = self._find("allgather", [input, output], opts) if self._are_blocks([output], [input]) else None
        if served is None:
            return self._delegate("allgather", ["all_gather_single", "_allgather_base"], output, input, opts)
        return self._serve("allgather", opts, lambda limit: self._gathered(served, [output], [input], limit))

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Options = None
    ) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts)
        fits = len(outputs) > 0 and self._are_blocks(outputs, inputs)
        served = self._find("allgather", [*outputs, *inputs], opts) if fits else None
        if served is None:
            names = ["all_gather_single_coalesced", "allgather_into_tensor_coalesced"]
            return self._delegate("allgather", names, outputs, inputs, opts)
        return self._serve("allgather", opts, lambda limit: self._gathered(served, outputs, inputs, limit))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _gathered(
        self, served: _Served, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], limit: timedelta
    ) -> list[torch.Tensor]:
        for output, input in zip(outputs, inputs, strict=True):
            result = flat_result(output)
            self._blocks(served, apart(flat_of(input), result), result, limit)
            if result.data_ptr() != output.data_ptr():
                write(output, result)
        return list(outputs)

    def allgather(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Options = None,
        timeout: timedelta | None = None,
    ) -> dist.Work:
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        return self._allgather_lists("allgather", outputs, inputs, _options(c10d.AllgatherOptions, opts, timeout))

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Options = None
    ) -> dist.Work:
        opts = _options(c10d.AllgatherOptions, opts)
        return self._allgather_lists("allgather_coalesced", outputs, inputs, opts)

    def _allgather_lists(
        self, name: str, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Options
    ) -> dist.Work:
        """Gather each input into a list of tensors, one a rank; these may differ in size."""
        pairs = list(zip(outputs, inputs, strict=False))
        fits = len(outputs) == len(inputs) > 0 and all(self._are_of_ranks(out, one) for out, one in pairs)
        served = self._find("allgather", [*inputs, *itertools.chain(*outputs)], opts) if fits else None
        if served is None:
            return self._delegate("allgather", [name], outputs, inputs, opts)

        def work(limit: timedelta) -> list[torch.Tensor]:
            for out, one in pairs:
                wide = max(t.numel() for t in out)
                given = padded([one], wide)
                result = given.new_empty(wide * self.size())
                self._blocks(served, given, result, limit)
                spread(result, out, wide)
            return [t for out in outputs for t in out]

        return self._serve("allgather", opts, work)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Options = None) -> dist.Work:
        opts = _options(c10d.ReduceScatterOptions, opts)
        served = self._find("reduce-scatter", [input, output], opts) if self._are_blocks([input], [output]) else None
        if served is None:
            names = ["reduce_scatter_single", "_reduce_scatter_base"]
            return self._delegate("reduce-scatter", names, output, input, opts)
        return self._serve("reduce-scatter", opts, lambda limit: self._gathered(served, [output], [input], limit))

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Options = None
    ) -> dist.Work:
        opts = _options(c10d.ReduceScatterOptions, opts)
        fits = len(outputs) > 0 and self._are_blocks(inputs, outputs)
        served = self._find("reduce-scatter", [*outputs, *inputs], opts) if fits else None
        if served is None:
            names = ["reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"]
            return self._delegate("reduce-scatter", names, outputs, inputs, opts)
        return self._serve("reduce-scatter", opts, lambda limit: self._gathered(served, outputs, inputs, limit))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[Sequence[torch.Tensor]],
        opts: Options = None,
        timeout: timedelta | None = None,
    ) -> dist.Work:
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = _options(c10d.ReduceScatterOptions, opts, timeout)
        fits = len(inputs) == 1 and len(outputs) == 1 and self._are_of_ranks(inputs[0], outputs[0])
        served = self._find("reduce-scatter", [*outputs, *inputs[0]], opts) if fits else None
        if served is None:
            return self._delegate("reduce-scatter", ["reduce_scatter"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[torch.Tensor]:
            wide = max(t.numel() for t in inputs[0])
            if self._are_equal(inputs[0], outputs[0]):
                return self._gathered(served, outputs, [flattened(inputs[0])], limit)
            given = padded(inputs[0], wide)
            result = given.new_empty(wide)
            self._blocks(served, given, result, limit)
            spread(result, outputs)
            return list(outputs)

        return self._serve("reduce-scatter", opts, work)

    # ---- one block from every rank to every rank

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_sizes: Sequence[int] | None = None,
        input_sizes: Sequence[int] | None = None,
        opts: Options = None,
    ) -> dist.Work:
        opts, splits = _options(c10d.AllToAllOptions, opts), (list(output_sizes or ()), list(input_sizes or ()))
        even = output.numel() == input.numel() and input.dim() > 0 and input.size(0) % self.size() == 0
        served = self._find("alltoall", [input, output], opts)
        if served is not None and any(splits):
            parts = split_for(output, splits[0], self.size()), split_for(input, splits[1], self.size())
            # Splits that are even on this rank may be uneven on others.
            wide = self._widest(*parts)
            if wide is not None:
                return self._serve("alltoall", opts, lambda limit: self._exchanged(served, *parts, wide, limit, output))
            even = False
        if served is None or not even:
            names = ["all_to_all_single", "alltoall_base"]
            return self._delegate("alltoall", names, output, input, *splits, opts)
        return self._serve("alltoall", opts, lambda limit: self._gathered(served, [output], [input], limit))

    alltoall_base = all_to_all_single

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Options = None
    ) -> dist.Work:
        opts = _options(c10d.AllToAllOptions, opts)
        served = self._find("alltoall", [*inputs, *outputs], opts) if inputs and outputs else None
        wide = self._widest(outputs, inputs) if served is not None else None
        if served is None or wide is None:
            return self._delegate("alltoall", ["alltoall"], outputs, inputs, opts)
        return self._serve("alltoall", opts, lambda limit: self._exchanged(served, outputs, inputs, wide, limit))

    def _exchanged(
        self, served: _Served, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], wide: int,
        limit: timedelta, of: torch.Tensor | None = None,
    ) -> list[torch.Tensor]:  # fmt: skip
        """Exchange blocks of at most ``wide`` elements; ``outputs`` are parts ``of`` a tensor, if it is given."""
        given = padded(inputs, wide)
        result = torch.empty_like(given)
        self._blocks(served, given, result, limit)
        spread(result, outputs, wide)
        return list(outputs) if of is None else [of]

    def _widest(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> int | None:
        """Return the most elements of a block of any rank; None if ranks disagree, or if padding is most of it.

        All ranks tell their blocks to all, in a small allreduce of gloo.
        """
        n, rank = self.size(), self.rank()
        sizes = torch.zeros((2, n, n), dtype=torch.int64)
        right = len(outputs) == len(inputs) == n
        for row, tensors in enumerate((outputs, inputs)):
            sizes[row, rank] = torch.tensor([t.numel() for t in tensors]) if right else -1
        self._inner.allreduce([sizes], c10d.AllreduceOptions()).wait()
        received, sent = sizes
        if bool((sent < 0).any()) or not torch.equal(received.T, sent):
            return None
        wide = int(sent.max())
        return wide if wide * n * n <= _MOST_PADDING * int(sent.sum()) or not wide else None

    # ---- between one rank and all

    def gather(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Options = None
    ) -> dist.Work:
        opts = _options(c10d.GatherOptions, opts)
        served = self._find("gather", inputs, opts, rooted=True) if len(inputs) == 1 else None
        at_root = served is not None and self.rank() == served.entry.root
        if served is None or (at_root and not self._are_equal(outputs[0] if outputs else [], inputs[0])):
            return self._delegate("gather", ["gather"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[torch.Tensor]:
            flat = flat_of(inputs[0])
            result = flat.new_empty(flat.numel() * self.size() if at_root else 0)
            self._blocks(served, flat, result, limit)
            if at_root:
                spread(result, outputs[0])
            return list(outputs[0]) if at_root else []

        return self._serve("gather", opts, work)

    def scatter(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Options = None
    ) -> dist.Work:
        opts = _options(c10d.ScatterOptions, opts)
        served = self._find("scatter", outputs, opts, rooted=True) if len(outputs) == 1 else None
        at_root = served is not None and self.rank() == served.entry.root
        if served is None or (at_root and not self._are_equal(inputs[0] if inputs else [], outputs[0])):
            return self._delegate("scatter", ["scatter"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[torch.Tensor]:
            result = flat_result(outputs[0])
            given = flattened(inputs[0]) if at_root else result.new_empty(0)
            self._blocks(served, given, result, limit)
            if result.data_ptr() != outputs[0].data_ptr():
                write(outputs[0], result)
            return list(outputs)

        return self._serve("scatter", opts, work)

    # ---- other calls

    def _start_coalescing(self, device: torch.device) -> None:
        """Begin a group of calls: they are independent anyway."""

    def _end_coalescing(self, device: torch.device) -> dist.Work:
        """Return a handle that is done when all calls so far are."""
        return self._worker.submit(CollcWork(list), False)

    def barrier(self, opts: Options = None, timeout: timedelta | None = None) -> dist.Work:
        """Wait until all earlier calls have ended on all ranks.

        The caller waits, not the worker, so all ranks call gloo in the same order.
        """
        self._worker.drain()
        return self._delegate("barrier", ["barrier"], _options(c10d.BarrierOptions, opts, timeout))

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> dist.Work:
        return self._delegate("send", ["send"], tensors, dst, tag)

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> dist.Work:
        return self._delegate("recv", ["recv"], tensors, src, tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> dist.Work:
        return self._delegate("recv", ["recv_anysource"], tensors, tag)

    def shutdown(self) -> None:
        self._worker.close()
        if self._wire is not None:
            self._wire.close()

    # ---- sizes

    def _are_blocks(self, larger: Sequence[torch.Tensor], smaller: Sequence[torch.Tensor]) -> bool:
        """Return whether each larger tensor has as many elements as the smaller one for every rank together."""
        pairs = zip(larger, smaller, strict=False)
        return len(larger) == len(smaller) and all(a.numel() == b.numel() * self.size() for a, b in pairs)

    def _are_of_ranks(self, tensors: Sequence[torch.Tensor], own: torch.Tensor) -> bool:
        """Return whether there is one tensor per rank, and this rank's has as many elements as ``own``."""
        return len(tensors) == self.size() and bool(tensors[self.rank()].numel() == own.numel())

    def _are_equal(self, tensors: Sequence[torch.Tensor], one: torch.Tensor) -> bool:
        """Return whether there is one tensor per rank, each with as many elements as ``one``."""
        return len(tensors) == self.size() and all(t.numel() == one.numel() for t in tensors)


def _listed(tensors: Tensors) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _options(kind: Options, given: Options, timeout: timedelta | None = None) -> Options:
    """Return ``given`` if it is options; otherwise default options with ``given`` as the operation and the timeout."""
    if given is not None and hasattr(given, "timeout"):
        return given
    options = kind()
    if given is not None:
        options.reduceOp = given
    if timeout is not None:
        options.timeout = timeout
    return options
