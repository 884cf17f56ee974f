"""Whether tensors that a program writes to share memory with others that it is given."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set

import torch

Extent = tuple[int, int]  # of addresses: the first, and the one after the last


def extent(tensor: torch.Tensor) -> Extent:
    """What of the memory lies between a tensor's first and its last element."""
    start = tensor.data_ptr()
    if tensor.numel() == 0:
        return start, start
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.element_size()


def meets_itself(tensor: torch.Tensor) -> bool:
    """Whether two of a tensor's elements may be one in memory."""
    end = 1
    axes = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, size in sorted(axis for axis in axes if axis[1] > 1):
        if stride < end:
            return True
        end = (size - 1) * stride + end
    return False


class _Places:
    """Parts of the memory."""

    def __init__(self, extents: Iterable[Extent]) -> None:
        self._parts: list[Extent] = []  # apart from each other, by address
        self.meet = False
        for start, end in sorted(e for e in extents if e[0] < e[1]):
            if self._parts and start < self._parts[-1][1]:
                self.meet = True
                self._parts[-1] = (self._parts[-1][0], max(end, self._parts[-1][1]))
            else:
                self._parts.append((start, end))

    def meets(self, other: Extent) -> bool:
        """Whether any of them has an address in common with another part."""
        before = bisect_right(self._parts, other[1] - 1, key=lambda part: part[0])
        return before > 0 and other[0] < other[1] and self._parts[before - 1][1] > other[0]


class Written:
    """Tensors of a program, some of which it writes to: places in the list of its weights and then its arguments."""

    def __init__(self, weights: Sequence[torch.Tensor], written: Set[int]) -> None:
        self._weights = weights
        self._of_weights = {i for i in written if i < len(weights)}
        self._of_arguments = {i - len(weights) for i in written if i >= len(weights)}
        self._addresses: list[int] = []
        self._all, self._changing = _Places(()), _Places(())
        self._among_weights = False

    def meet(self, arguments: Sequence[object]) -> bool:
        """Whether memory that the program writes to is also another tensor's, or twice in one."""
        addresses = [weight.data_ptr() for weight in self._weights]
        if addresses != self._addresses:
            self._look(addresses)
        if self._among_weights:
            return True
        extents = {i: extent(t) for i, t in enumerate(arguments) if isinstance(t, torch.Tensor)}
        for i, place in extents.items():
            tensor = arguments[i]
            if i in self._of_arguments and isinstance(tensor, torch.Tensor):
                others = _Places(other for j, other in extents.items() if j != i)
                if meets_itself(tensor) or others.meets(place) or self._all.meets(place):
                    return True
            elif self._changing.meets(place):
                return True
        return False

    def _look(self, addresses: list[int]) -> None:
        # A tied weight stands there under each of its names.
        extents = {id(w): (i, extent(w)) for i, w in enumerate(self._weights)}
        changing = {id(self._weights[i]) for i in self._of_weights}
        self._all = _Places(e for _, e in extents.values())
        self._changing = _Places(extents[key][1] for key in changing)
        others = _Places(e for key, (_, e) in extents.items() if key not in changing)
        self._among_weights = self._changing.meet or any(others.meets(extents[key][1]) for key in changing)
        self._among_weights |= any(meets_itself(self._weights[i]) for i in self._of_weights)
        self._addresses = addresses
