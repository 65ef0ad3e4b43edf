"""The process group that torch is given: compiled schedules where the specification has one, gloo for all else.

Whether a call is served follows from what all ranks pass alike (kind, root, operation, element type, sizes), never from
what one rank alone sees, since ranks that decide differently would wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import attrs
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from .catalog import Entry
from .operations import operation
from .plan import Planner
from .running import Combine, Wire
from .work import CollcWork, Worker

__all__ = ["CollcGroup"]

#: calls of up to so many bytes (of the whole vector) send one message to a peer where larger ones send several, of
#: which the first can be used before the last has come
PACKED = 1 << 18


@attrs.frozen(eq=False)
class _Served:
    """How a call is performed: a collective of the specification and the operation, if it has one."""

    entry: Entry
    combine: Combine | None


class CollcGroup(dist.ProcessGroup):
    """One rank's view of a group. ``inner`` is gloo, ``wire`` a second gloo for the messages of schedules."""

    def __init__(
        self, rank: int, size: int, timeout: timedelta, inner: Any, wire: Any, entries: Sequence[Entry], name: str
    ):
        super().__init__(rank, size)
        self._inner, self._timeout, self._label = inner, timeout, name
        self._entries = [entry for entry in entries if entry.ranks == size]
        self._wire = Wire(wire, rank, size) if wire is not None else None
        self._worker = Worker(f"collc-{name}")
        self._planners: dict[tuple[int, int], Planner] = {}
        self.served: Counter[str] = Counter()
        self.delegated: Counter[str] = Counter()
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, inner)

    def getBackendName(self) -> str:
        return "collc"

    # ---- which calls are served

    def _find(self, kind: str, tensors: Sequence[Any], opts: Any, rooted: bool = False) -> _Served | None:
        """Return how a call on these tensors is performed, or nothing."""
        first = tensors[0]
        if not all(_is_plain(t) and t.dtype == first.dtype for t in tensors):
            return None
        op = operation(opts.reduceOp, first.dtype) if hasattr(opts, "reduceOp") else None
        if op is None and hasattr(opts, "reduceOp"):
            return None
        root = int(opts.rootRank) if rooted else None
        for entry in self._entries:
            if entry.kind == kind and entry.root == root and (entry.once or (op is not None and op[1])):
                return _Served(entry, op[0] if op else None)
        return None

    # ---- how they are performed

    def _play(self, served: _Served, given: Any, result: Any, elements: int, size: int, timeout: timedelta) -> None:
        """Perform a call on flat tensors: of so many elements (as plans count them), ``size`` bytes in all."""
        assert self._wire is not None
        which = served.entry.choose(size)
        key = id(served.entry), which
        if key not in self._planners:
            self._planners[key] = Planner(served.entry.algorithms[which].laid, self.rank())
        plan = self._planners[key].plan(elements, size <= PACKED)
        with torch.inference_mode():
            self._wire.play(served.entry.name, plan, given, result, served.combine, timeout)

    def _serve(self, kind: str, opts: Any, work: Callable[[timedelta], list[Any]]) -> CollcWork:
        self.served[kind] += 1
        limit = self._limit(opts)
        now = not getattr(opts, "asyncOp", True)
        return self._worker.submit(CollcWork(lambda: work(limit)), now)

    def _limit(self, opts: Any) -> timedelta:
        given = getattr(opts, "timeout", None)
        if given is not None and given > timedelta(0):
            return given
        # gloo's, which torch changes where it changes the group's
        return getattr(getattr(self._inner, "options", None), "_timeout", self._timeout)

    def _delegate(self, kind: str, names: Sequence[str], *args: Any) -> Any:
        """Let gloo perform a call, by the first of its names that this torch has."""
        self.delegated[kind] += 1
        name = next((name for name in names if hasattr(self._inner, name)), names[0])
        return getattr(self._inner, name)(*args)

    # ---- one tensor

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        tensors, opts = _listed(tensors), _options(c10d.AllreduceOptions, opts, timeout)
        served = self._find("allreduce", tensors, opts) if len(tensors) == 1 else None
        if served is None:
            return self._delegate("allreduce", ["allreduce"], tensors, opts)
        return self._serve("allreduce", opts, lambda limit: self._on_one(served, tensors[0], limit))

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        tensors, opts = _listed(tensors), _options(c10d.AllreduceCoalescedOptions, opts)
        served = self._find("allreduce", tensors, opts) if tensors else None
        if served is None:
            return self._delegate("allreduce", ["allreduce_coalesced"], tensors, opts)

        def work(limit: timedelta) -> list[Any]:
            if len(tensors) == 1:
                return self._on_one(served, tensors[0], limit)
            flat = _flattened(tensors)
            self._on_one(served, flat, limit)
            _spread(flat, tensors)
            return list(tensors)

        return self._serve("allreduce", opts, work)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
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

    def reduce(self, tensors: Any, opts: Any = None) -> Any:
        tensors, opts = _listed(tensors), _options(c10d.ReduceOptions, opts)
        served = self._find("reduce", tensors, opts, rooted=True) if len(tensors) == 1 else None
        if served is None:
            return self._delegate("reduce", ["reduce"], tensors, opts)
        return self._serve("reduce", opts, lambda limit: self._on_one(served, tensors[0], limit))

    def _on_one(self, served: _Served, tensor: Any, limit: timedelta) -> list[Any]:
        flat = _flat(tensor)
        count = flat.numel()
        self._play(served, flat, flat, count, count * flat.element_size(), limit)
        if flat.data_ptr() != tensor.data_ptr():
            _write(tensor, flat)
        return [tensor]

    # ---- a block for every rank

    def _blocks(self, served: _Served, given: Any, result: Any, limit: timedelta) -> None:
        """Perform a call whose input or output, or both, has a block for every rank; both are flat."""
        larger, smaller = (given, result) if len(given) > len(result) else (result, given)
        if served.entry.kind in ("gather", "scatter"):
            count = len(result if served.entry.kind == "scatter" else given)
        else:
            count = len(larger) // self.size() if served.entry.kind == "alltoall" else len(smaller)
        self._play(served, given, result, count, count * self.size() * given.element_size(), limit)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> Any:
        opts = _options(c10d.AllgatherOptions, opts)
        served = self._find("allgather", [input, output], opts) if self._are_blocks([output], [input]) else None
        if served is None:
            return self._delegate("allgather", ["all_gather_single", "_allgather_base"], output, input, opts)
        return self._serve("allgather", opts, lambda limit: self._gathered(served, [output], [input], limit))

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = _options(c10d.AllgatherOptions, opts)
        fits = len(outputs) > 0 and self._are_blocks(outputs, inputs)
        served = self._find("allgather", [*outputs, *inputs], opts) if fits else None
        if served is None:
            names = ["all_gather_single_coalesced", "allgather_into_tensor_coalesced"]
            return self._delegate("allgather", names, outputs, inputs, opts)
        return self._serve("allgather", opts, lambda limit: self._gathered(served, outputs, inputs, limit))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _gathered(self, served: _Served, outputs: Sequence[Any], inputs: Sequence[Any], limit: timedelta) -> list[Any]:
        for output, input in zip(outputs, inputs, strict=True):
            result = _flat_result(output)
            self._blocks(served, _apart(_flat(input), result), result, limit)
            if result.data_ptr() != output.data_ptr():
                _write(output, result)
        return list(outputs)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Any:
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = _options(c10d.AllgatherOptions, opts, timeout)
        fits = len(inputs) == 1 and len(outputs) == 1 and self._are_equal(outputs[0], inputs[0])
        served = self._find("allgather", [*inputs, *outputs[0]], opts) if fits else None
        if served is None:
            return self._delegate("allgather", ["allgather"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[Any]:
            flat = _flat(inputs[0])
            result = flat.new_empty(flat.numel() * self.size())
            self._blocks(served, flat, result, limit)
            _spread(result, outputs[0])
            return list(outputs[0])

        return self._serve("allgather", opts, work)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = _options(c10d.AllgatherOptions, opts)
        return self._delegate("allgather", ["allgather_coalesced"], outputs, inputs, opts)

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any = None) -> Any:
        opts = _options(c10d.ReduceScatterOptions, opts)
        served = self._find("reduce-scatter", [input, output], opts) if self._are_blocks([input], [output]) else None
        if served is None:
            names = ["reduce_scatter_single", "_reduce_scatter_base"]
            return self._delegate("reduce-scatter", names, output, input, opts)
        return self._serve("reduce-scatter", opts, lambda limit: self._gathered(served, [output], [input], limit))

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = _options(c10d.ReduceScatterOptions, opts)
        fits = len(outputs) > 0 and self._are_blocks(inputs, outputs)
        served = self._find("reduce-scatter", [*outputs, *inputs], opts) if fits else None
        if served is None:
            names = ["reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"]
            return self._delegate("reduce-scatter", names, outputs, inputs, opts)
        return self._serve("reduce-scatter", opts, lambda limit: self._gathered(served, outputs, inputs, limit))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Any:
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = _options(c10d.ReduceScatterOptions, opts, timeout)
        fits = len(inputs) == 1 and len(outputs) == 1 and self._are_equal(inputs[0], outputs[0])
        served = self._find("reduce-scatter", [*outputs, *inputs[0]], opts) if fits else None
        if served is None:
            return self._delegate("reduce-scatter", ["reduce_scatter"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[Any]:
            return self._gathered(served, outputs, [_flattened(inputs[0])], limit)

        return self._serve("reduce-scatter", opts, work)

    # ---- a block from every rank to every rank

    def all_to_all_single(
        self, output: Any, input: Any, output_sizes: Any = None, input_sizes: Any = None, opts: Any = None
    ) -> Any:
        opts, splits = _options(c10d.AllToAllOptions, opts), (list(output_sizes or ()), list(input_sizes or ()))
        even = output.numel() == input.numel() and input.dim() > 0 and input.size(0) % self.size() == 0
        served = self._find("alltoall", [input, output], opts)
        if served is not None and any(splits):
            # Splits that are even here may be uneven elsewhere.
            wide = input.size(0) // self.size() if even else -1
            even = even and all(size == wide for sizes in splits for size in sizes)
            even = self._agree(input.numel() if even else -1)
        if served is None or not even:
            names = ["all_to_all_single", "alltoall_base"]
            return self._delegate("alltoall", names, output, input, *splits, opts)
        return self._serve("alltoall", opts, lambda limit: self._gathered(served, [output], [input], limit))

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = _options(c10d.AllToAllOptions, opts)
        served = self._find("alltoall", [*inputs, *outputs], opts) if inputs and outputs else None
        if served is not None:
            even = self._are_equal(inputs, outputs[0]) and self._are_equal(outputs, inputs[0])
            served = served if self._agree(inputs[0].numel() if even else -1) else None
        if served is None:
            return self._delegate("alltoall", ["alltoall"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[Any]:
            given = _flattened(inputs)
            result = torch.empty_like(given)
            self._blocks(served, given, result, limit)
            _spread(result, outputs)
            return list(outputs)

        return self._serve("alltoall", opts, work)

    def _agree(self, value: int) -> bool:
        """Return whether all ranks pass the same number, not negative; gloo tells."""
        pair = torch.tensor([value, -value])
        opts = c10d.AllreduceOptions()
        opts.reduceOp = dist.ReduceOp.MIN
        self._inner.allreduce([pair], opts).wait()
        low, high = pair.tolist()
        return bool(low == -high and low >= 0)

    # ---- between one rank and all

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = _options(c10d.GatherOptions, opts)
        served = self._find("gather", inputs, opts, rooted=True) if len(inputs) == 1 else None
        at_root = served is not None and self.rank() == served.entry.root
        if served is None or (at_root and not self._are_equal(outputs[0] if outputs else [], inputs[0])):
            return self._delegate("gather", ["gather"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[Any]:
            flat = _flat(inputs[0])
            result = flat.new_empty(flat.numel() * self.size() if at_root else 0)
            self._blocks(served, flat, result, limit)
            if at_root:
                _spread(result, outputs[0])
            return list(outputs[0]) if at_root else []

        return self._serve("gather", opts, work)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = _options(c10d.ScatterOptions, opts)
        served = self._find("scatter", outputs, opts, rooted=True) if len(outputs) == 1 else None
        at_root = served is not None and self.rank() == served.entry.root
        if served is None or (at_root and not self._are_equal(inputs[0] if inputs else [], outputs[0])):
            return self._delegate("scatter", ["scatter"], outputs, inputs, opts)

        def work(limit: timedelta) -> list[Any]:
            result = _flat_result(outputs[0])
            given = _flattened(inputs[0]) if at_root else result.new_empty(0)
            self._blocks(served, given, result, limit)
            if result.data_ptr() != outputs[0].data_ptr():
                _write(outputs[0], result)
            return list(outputs)

        return self._serve("scatter", opts, work)

    # ---- all else

    def barrier(self, opts: Any = None, timeout: Any = None) -> Any:
        """All that was called before has ended on all ranks when a barrier has.

        Waited for here and not in the worker, so that gloo is called in the same order on all ranks.
        """
        self._worker.drain()
        return self._delegate("barrier", ["barrier"], _options(c10d.BarrierOptions, opts, timeout))

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        return self._delegate("send", ["send"], tensors, dst, tag)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        return self._delegate("recv", ["recv"], tensors, src, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self._delegate("recv", ["recv_anysource"], tensors, tag)

    def shutdown(self) -> None:
        self._worker.close()

    # ---- sizes

    def _are_blocks(self, larger: Sequence[Any], smaller: Sequence[Any]) -> bool:
        """Whether each of the larger tensors holds as many of the smaller ones as there are ranks."""
        pairs = zip(larger, smaller, strict=False)
        return len(larger) == len(smaller) and all(a.numel() == b.numel() * self.size() for a, b in pairs)

    def _are_equal(self, tensors: Sequence[Any], one: Any) -> bool:
        """Whether there is a tensor for every rank, each with as many elements as one."""
        return len(tensors) == self.size() and all(t.numel() == one.numel() for t in tensors)


def _is_plain(tensor: Any) -> bool:
    """Whether a tensor is memory of the CPU, all of it."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_quantized


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _options(kind: Any, given: Any, timeout: Any = None) -> Any:
    """Return options of a kind: those given, or the defaults with an operation and a time limit given apart."""
    if given is not None and hasattr(given, "timeout"):
        return given
    made = kind()
    if given is not None:
        made.reduceOp = given
    if timeout is not None:
        made.timeout = timeout
    return made


def _flat(tensor: Any) -> Any:
    """Return the elements one after the other: the tensor's own memory where they lie so."""
    tensor = tensor.detach()
    return (tensor if tensor.is_contiguous() else tensor.contiguous()).view(-1)


def _flat_result(tensor: Any) -> Any:
    """Return memory for a result: the tensor's own where its elements lie one after the other."""
    tensor = tensor.detach()
    return tensor.view(-1) if tensor.is_contiguous() else tensor.new_empty(tensor.numel())


def _flattened(tensors: Sequence[Any]) -> Any:
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def _write(tensor: Any, flat: Any) -> None:
    with torch.inference_mode():
        tensor.detach().copy_(flat.view(tensor.shape))


def _spread(flat: Any, tensors: Sequence[Any]) -> None:
    at = 0
    for tensor in tensors:
        _write(tensor, flat[at : at + tensor.numel()])
        at += tensor.numel()


def _apart(given: Any, result: Any) -> Any:
    """Return an input, copied where the result would overwrite it."""
    width = given.element_size()
    low, high = given.data_ptr(), given.data_ptr() + given.numel() * width
    first, end = result.data_ptr(), result.data_ptr() + result.numel() * width
    return given.clone() if low < end and first < high else given
