"""The served operations and element types, and functions that combine two tensors."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import torch
import torch.distributed as dist

__all__ = ["Combine", "Operation", "operation"]

#: (one, other, to)
Combine = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]

_FLOATS = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
_INTEGERS = frozenset({torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8})
_TRUTH = frozenset({torch.bool})

_Op = dist.ReduceOp
#: operation, its name in the engine, torch's function, element types, whether it is idempotent
_OPERATIONS: tuple[tuple[dist.ReduceOp, str, Callable[..., torch.Tensor], frozenset[torch.dtype], bool], ...] = (
    (_Op.SUM, "sum", torch.add, _FLOATS | _INTEGERS, False),
    (_Op.AVG, "sum", torch.add, _FLOATS, False),
    (_Op.PRODUCT, "product", torch.mul, _FLOATS | _INTEGERS, False),
    (_Op.MIN, "min", torch.minimum, _FLOATS | _INTEGERS | _TRUTH, True),
    (_Op.MAX, "max", torch.maximum, _FLOATS | _INTEGERS | _TRUTH, True),
    (_Op.BAND, "and", torch.bitwise_and, _INTEGERS | _TRUTH, True),
    (_Op.BOR, "or", torch.bitwise_or, _INTEGERS | _TRUTH, True),
    (_Op.BXOR, "xor", torch.bitwise_xor, _INTEGERS | _TRUTH, False),
)


@attrs.frozen(eq=False)
class Operation:
    """How values of ranks become one: ``combine`` adds two; an ``idempotent`` operation may add a value twice.

    Before, every rank multiplies its values by ``factor``, if there is one; at the end a ``mean`` is divided by the
    number of ranks.
    """

    name: str
    combine: Combine
    idempotent: bool
    factor: float | torch.Tensor | None = None
    mean: bool = False


def operation(op: dist.ReduceOp, dtype: torch.dtype) -> Operation | None:
    """Return the operation on elements of a type; None: not served."""
    if op == _Op.PREMUL_SUM:
        return Operation("sum", _into(torch.add), False, factor=_factor(op)) if dtype in _FLOATS else None
    for known, name, function, dtypes, idempotent in _OPERATIONS:
        if op == known:  # torch's operations compare with ==, but are not found by `in`
            mean = known == _Op.AVG
            return Operation(name, _into(function), idempotent, mean=mean) if dtype in dtypes else None
    return None


def _factor(op: dist.ReduceOp) -> float | torch.Tensor:
    """Return the factor of a PREMUL_SUM: torch gives it away only where it saves the operation."""
    _, factor = op.__getstate__()
    return factor if isinstance(factor, torch.Tensor) else float(factor)


def _into(function: Callable[..., torch.Tensor]) -> Combine:
    def combine(one: torch.Tensor, other: torch.Tensor, to: torch.Tensor) -> None:
        function(one, other, out=to)

    return combine
