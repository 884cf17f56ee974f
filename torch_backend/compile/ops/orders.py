"""In which order the axes of a tensor lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def axis_order(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Axes by falling stride, stable; the identity for row-major memory."""
    axes = range(len(shape))
    moved = sorted((axis for axis in axes if shape[axis] != 1), key=lambda axis: (-strides[axis], axis))
    # Axes of size one have no order of their own: they keep their places.
    free = iter(moved)
    return tuple(axis if shape[axis] == 1 else next(free) for axis in axes)


def hints(numbers: Sequence[Any]) -> list[int]:
    """Sizes or strides, symbolic ones as they were when they were traced."""
    return [_hint(number) for number in numbers]


def _hint(value: Any) -> int:
    return value if isinstance(value, int) else int(value.node.hint) if value.node.has_hint() else 1 << 20


def inverse(order: Sequence[int]) -> list[int]:
    """The permutation that undoes one."""
    return sorted(range(len(order)), key=lambda i: order[i])


def contiguous_in(order: Sequence[int], tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its memory in the given order of axes."""
    return tensor.permute(tuple(order)).contiguous().permute(inverse(order))
