"""Execution of a plan: slices of tensors go from rank to rank by the compiled engine, or as messages of gloo."""

from __future__ import annotations

import time
from datetime import timedelta

import torch
import torch.distributed as dist

from collc.ir.diagnostic import error

from .engine import Engine
from .messages import details
from .moves import Kind
from .operations import Operation
from .plan import Action, Plan

__all__ = ["Wire"]

#: tags: messages of a pair in one call, and calls with different tags
_MESSAGES, _CALLS = 1 << 16, 1 << 15

_POST, _AWAIT, _SEND, _SENT, _COPY = (int(k) for k in (Kind.POST, Kind.AWAIT, Kind.SEND, Kind.SENT, Kind.COPY))

_BEGINS = frozenset({_POST, _SEND})
_INCOMING = frozenset({_POST, _AWAIT})

_ALIGNED = 64


class Wire:
    """The connections of one rank of a group, and the memory of its calls besides their tensors.

    All ranks of a group have an ``engine``, or all have none and send over ``transport``, which is gloo; ``why``
    is the reason. There, every
    message of a call between two ranks has a tag of its own, and calls that follow each other have other tags. A call
    ends when all its sends have ended.
    """

    def __init__(self, transport: dist.ProcessGroup, engine: Engine | None, rank: int, size: int, why: str = ""):
        self.transport, self.engine, self.rank, self.size, self.why = transport, engine, rank, size, why
        self.calls = 0
        self.memory = torch.empty(0, dtype=torch.uint8)
        self.broken: Exception | None = None
        self.awaits: tuple[str, bool, int] | None = None
        self.what = ""
        self.kept: list[object] = []

    def play(
        self, what: str, plan: Plan, given: torch.Tensor, result: torch.Tensor, operation: Operation | None,
        timeout: timedelta,
    ) -> None:  # fmt: skip
        """Perform a call on flat tensors of one type; raises DistBackendError for a message that does not arrive."""
        if self.broken is not None:
            raise self.broken
        buffers = (given, result, *self._memory(plan, result))
        if self.engine is None:
            self._over_gloo(what, plan, buffers, operation, timeout)
        else:
            self._by_engine(self.engine, what, plan, buffers, operation, timeout)

    def _by_engine(
        self, engine: Engine, what: str, plan: Plan, buffers: tuple[torch.Tensor, ...], operation: Operation | None,
        timeout: timedelta,
    ) -> None:  # fmt: skip
        def combine(number: int) -> None:
            assert operation is not None
            _combine(operation, plan.columns.actions[number], buffers)

        self.what = what
        dtype, width = str(buffers[1].dtype).removeprefix("torch."), buffers[1].element_size()
        name = f"{operation.name} {dtype}" if operation is not None else ""
        places = [buffer.data_ptr() for buffer in buffers]
        failed = engine.play(plan.columns, places, width, name, combine, timeout.total_seconds())
        if failed is not None:
            engine.close()
            raise self._break(
                what, failed.incoming, failed.peer, f"the engine says: {failed.reason}", failed.timed_out, timeout
            )

    def _over_gloo(
        self, what: str, plan: Plan, buffers: tuple[torch.Tensor, ...], operation: Operation | None, timeout: timedelta
    ) -> None:
        base = self.calls % _CALLS * _MESSAGES
        self.calls += 1
        works: dict[int, dist.Work] = {}
        views: list[torch.Tensor] = []
        deadline = time.monotonic() + timeout.total_seconds()
        transport = self.transport
        for action in plan.actions:
            kind = action[0]
            if kind < _COPY:
                _, peer, number, message, (buffer, low, high) = action
                try:
                    if kind in _BEGINS:
                        view = buffers[buffer][low:high]
                        views.append(view)
                        begin = transport.recv if kind == _POST else transport.send
                        works[message] = begin([view], peer, base + number % _MESSAGES)
                    else:
                        self.awaits = what, kind in _INCOMING, peer
                        left = max(deadline - time.monotonic(), 0.001)
                        works.pop(message).wait(timedelta(seconds=left))
                except RuntimeError as problem:
                    self.kept.append((buffers, works, views))  # messages may still use them
                    timed_out = "timed out" in str(problem).lower()
                    raise self._break(what, kind in _INCOMING, peer, _note(problem), timed_out, timeout) from None
            elif kind == _COPY:
                to, one = (buffers[b][low:high] for b, low, high in action[1:3])
                to.copy_(one)
            else:
                assert operation is not None
                _combine(operation, action, buffers)
        self.awaits = None

    def where(self) -> str:
        """Return what this rank waits for now; empty if for nothing."""
        waits = self.engine.awaits() if self.engine is not None else None
        awaits = (self.what, *waits) if waits is not None else self.awaits
        if awaits is None:
            return ""
        what, incoming, peer = awaits
        return f"{what} waits on rank {self.rank} of {self.size} for a message {_direction(incoming)} rank {peer}"

    def _memory(self, plan: Plan, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scratch and the messages' own memory, of a tensor's type; calls share it."""
        width = like.element_size()
        scratch = -(-plan.scratch * width // _ALIGNED) * _ALIGNED
        need = scratch + plan.own * width
        if need > len(self.memory):
            self.memory = torch.empty(need, dtype=torch.uint8)
        parts = self.memory[: plan.scratch * width], self.memory[scratch : scratch + plan.own * width]
        return parts[0].view(like.dtype), parts[1].view(like.dtype)

    def close(self) -> None:
        """End the connections of the engine."""
        if self.engine is not None:
            self.engine.close()

    def _break(
        self, what: str, incoming: bool, peer: int, problem: str, timed_out: bool, timeout: timedelta
    ) -> Exception:  # fmt: skip
        """Return the error for this and all later calls: ranks may disagree about the order of messages."""
        waited = f" within {timeout.total_seconds():g} s" if timed_out else ""
        found = error(
            "C0095",
            f"{what} failed on rank {self.rank} of {self.size}: no message {_direction(incoming)} rank {peer}{waited}",
            notes=[problem],
            hint=f"check whether rank {peer} ended, failed, or made another call",
        )
        self.broken = dist.DistBackendError("\n".join([str(found), *details(found.diagnostics[0])]))
        return self.broken


def _combine(operation: Operation, action: Action, buffers: tuple[torch.Tensor, ...]) -> None:
    to, one, other = (buffers[b][low:high] for b, low, high in action[1:])
    operation.combine(one, other, to)


def _note(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return f"gloo says: {lines[0] if lines else type(problem).__name__}"


def _direction(incoming: bool) -> str:
    return "from" if incoming else "to"
