"""Tensors as flat memory: without a copy where they are contiguous, and blocks of equal and unequal sizes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = [
    "apart", "flat_of", "flat_result", "flattened", "is_plain", "padded", "split_for", "spread", "write",
]  # fmt: skip


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is dense, not quantized, and in memory of the CPU."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_quantized


def flat_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a flat tensor of the elements, without a copy if the tensor is contiguous."""
    tensor = tensor.detach()
    return (tensor if tensor.is_contiguous() else tensor.contiguous()).view(-1)


def flat_result(tensor: torch.Tensor) -> torch.Tensor:
    """Return flat memory for a result: the tensor's own if it is contiguous."""
    tensor = tensor.detach()
    return tensor.view(-1) if tensor.is_contiguous() else tensor.new_empty(tensor.numel())


def flattened(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a copy of the elements of all tensors, one after another."""
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def write(tensor: torch.Tensor, flat: torch.Tensor) -> None:
    """Write as many elements to a tensor, also to one of inference mode."""
    with torch.inference_mode():
        tensor.detach().copy_(flat.view(tensor.shape))


def spread(flat: torch.Tensor, tensors: Sequence[torch.Tensor], wide: int | None = None) -> None:
    """Write the elements to tensors, from every block of ``wide`` elements to one, or one after the other."""
    at = 0
    for tensor in tensors:
        write(tensor, flat[at : at + tensor.numel()])
        at += tensor.numel() if wide is None else wide


def padded(tensors: Sequence[torch.Tensor], wide: int) -> torch.Tensor:
    """Return the elements of tensors in blocks of ``wide`` elements; others are 0."""
    if all(t.numel() == wide for t in tensors):
        return flattened(tensors)
    found = tensors[0].new_zeros(wide * len(tensors))
    for number, tensor in enumerate(tensors):
        found[number * wide : number * wide + tensor.numel()] = tensor.detach().reshape(-1)
    return found


def split_for(tensor: torch.Tensor, sizes: Sequence[int], ranks: int) -> list[torch.Tensor]:
    """Return the parts of a tensor for all ranks: of these sizes, or of equal ones; no parts if they do not fit."""
    if not tensor.dim():
        return []
    sizes = sizes or [tensor.size(0) // ranks] * ranks
    return list(tensor.detach().split(list(sizes))) if sum(sizes) == tensor.size(0) and len(sizes) == ranks else []


def apart(given: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return an input, or a copy if it overlaps the result."""
    width = given.element_size()
    low, high = given.data_ptr(), given.data_ptr() + given.numel() * width
    first, end = result.data_ptr(), result.data_ptr() + result.numel() * width
    return given.clone() if low < end and first < high else given
