"""Which operations and element types are served, and how two tensors are combined."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .running import Combine

__all__ = ["Operation", "operation"]

_FLOATS = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
_INTEGERS = frozenset({torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8})
_TRUTH = frozenset({torch.bool})

Operation = tuple[Combine, bool]

_Op = dist.ReduceOp
#: operation, how torch does it, element types, whether contributions may be added twice
_OPERATIONS: tuple[tuple[Any, Any, frozenset[Any], bool], ...] = (
    (_Op.SUM, torch.add, _FLOATS | _INTEGERS, False),
    (_Op.PRODUCT, torch.mul, _FLOATS | _INTEGERS, False),
    (_Op.MIN, torch.minimum, _FLOATS | _INTEGERS | _TRUTH, True),
    (_Op.MAX, torch.maximum, _FLOATS | _INTEGERS | _TRUTH, True),
    (_Op.BAND, torch.bitwise_and, _INTEGERS | _TRUTH, True),
    (_Op.BOR, torch.bitwise_or, _INTEGERS | _TRUTH, True),
    (_Op.BXOR, torch.bitwise_xor, _INTEGERS | _TRUTH, False),
)


def operation(op: Any, dtype: Any) -> Operation | None:
    """Return how an operation combines two tensors into a third, and whether it is idempotent; None: not served."""
    for known, function, dtypes, idempotent in _OPERATIONS:
        if op == known:  # torch's operations compare with ==, but are not found by `in`
            return (_into(function), idempotent) if dtype in dtypes else None
    return None


def _into(function: Any) -> Combine:
    def combine(one: Any, other: Any, to: Any) -> None:
        function(one, other, out=to)

    return combine
