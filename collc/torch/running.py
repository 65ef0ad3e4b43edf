"""Execution of a plan: slices of tensors go from rank to rank as gloo's point-to-point messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from collc.ir.diagnostic import error

from .messages import details
from .moves import Kind
from .plan import Plan

__all__ = ["Combine", "Wire"]

#: (one, other, to)
Combine = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]

#: tags: messages of a pair in one call, and calls with different tags
_MESSAGES, _CALLS = 1 << 16, 1 << 15

_POST, _AWAIT, _SEND, _SENT, _COPY = (int(k) for k in (Kind.POST, Kind.AWAIT, Kind.SEND, Kind.SENT, Kind.COPY))

_BEGINS = frozenset({_POST, _SEND})

_ALIGNED = 64


class Wire:
    """The connections of one rank of a group, and the memory of its calls besides their tensors.

    Between two ranks every message of a call has a tag of its own, and calls that follow each other have other tags.
    A call ends when all its sends have ended.
    """

    def __init__(self, transport: dist.ProcessGroup, rank: int, size: int):
        self.transport, self.rank, self.size = transport, rank, size
        self.calls = 0
        self.memory = torch.empty(0, dtype=torch.uint8)
        self.broken: Exception | None = None
        self.awaits: tuple[str, int, int] | None = None
        self.kept: list[object] = []

    def play(
        self, what: str, plan: Plan, given: torch.Tensor, result: torch.Tensor, combine: Combine | None,
        timeout: timedelta,
    ) -> None:  # fmt: skip
        """Perform a call on flat tensors of one type; raises DistBackendError for a message that does not arrive."""
        if self.broken is not None:
            raise self.broken
        base = self.calls % _CALLS * _MESSAGES
        self.calls += 1
        scratch, own = self._memory(plan, result)
        buffers = (given, result, scratch, own)
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
                        self.awaits = what, kind, peer
                        left = max(deadline - time.monotonic(), 0.001)
                        works.pop(message).wait(timedelta(seconds=left))
                except RuntimeError as problem:
                    self.kept.append((buffers, works, views))  # messages may still use them
                    raise self._break(what, kind, peer, problem, timeout) from None
            else:
                to, one, other = (buffers[b][low:high] for b, low, high in action[1:])
                if kind == _COPY:
                    to.copy_(one)
                else:
                    assert combine is not None
                    combine(one, other, to)
        self.awaits = None

    def where(self) -> str:
        """Return what this rank waits for now; empty if for nothing."""
        if self.awaits is None:
            return ""
        what, kind, peer = self.awaits
        return f"{what} waits on rank {self.rank} of {self.size} for a message {_direction(kind)} rank {peer}"

    def _memory(self, plan: Plan, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scratch and the messages' own memory, of a tensor's type; calls share it."""
        width = like.element_size()
        scratch = -(-plan.scratch * width // _ALIGNED) * _ALIGNED
        need = scratch + plan.own * width
        if need > len(self.memory):
            self.memory = torch.empty(need, dtype=torch.uint8)
        parts = self.memory[: plan.scratch * width], self.memory[scratch : scratch + plan.own * width]
        return parts[0].view(like.dtype), parts[1].view(like.dtype)

    def _break(self, what: str, kind: int, peer: int, problem: Exception, timeout: timedelta) -> Exception:
        """Return the error for this and all later calls: ranks may disagree about the order of messages."""
        lines = str(problem).strip().splitlines()
        timed_out = "timed out" in str(problem).lower()
        waited = f" within {timeout.total_seconds():g} s" if timed_out else ""
        found = error(
            "C0095",
            f"{what} failed on rank {self.rank} of {self.size}: no message {_direction(kind)} rank {peer}{waited}",
            notes=[f"gloo says: {lines[0] if lines else type(problem).__name__}"],
            hint=f"check whether rank {peer} ended, failed, or made another call",
        )
        self.broken = dist.DistBackendError("\n".join([str(found), *details(found.diagnostics[0])]))
        return self.broken


def _direction(kind: int) -> str:
    return "from" if kind in (_POST, _AWAIT) else "to"
