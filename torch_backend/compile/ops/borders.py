"""How tensors meet a net: their types, and the order of their memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from softneuro.torch_backend.compile.ops.reals import REALS

# THE table of torch's types that nets take and give, by the core's names and in the order of the core's own table.
TYPES = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.bool: "bool",
}
_BY_NUMBER = tuple(TYPES.values())


@dataclass(frozen=True)
class Border:
    """A tensor that a net takes as it lies, or copied together in the order of its axes."""

    shape: tuple[int, ...]
    dtype: str
    channels_last: bool

    @property
    def schema(self) -> str:
        """As the core writes it."""
        return f"cpu:{self.dtype}:{'nhwc' if self.channels_last else 'nchw'}"

    def __str__(self) -> str:
        words = ["x".join(map(str, self.shape))]
        words += [self.dtype] if self.dtype != "float32" else []
        return " ".join([*words, *(["channels last"] if self.channels_last else [])])


def borders_of(signature: Sequence[int], inputs: int) -> list[Border]:
    """The inputs that a region's signature stands for, as the op writes it: after the threads, form and sizes of each.

    A form is the rank, with the number of the type above the lowest byte and the layout above that.
    """

    def read(numbers: Iterator[int]) -> Border:
        form = next(numbers)
        shape = tuple(next(numbers) for _ in range(form & 0xFF))
        return Border(shape, _BY_NUMBER[form >> 8 & 0xFF], bool(form >> 16))

    numbers = iter(signature)
    next(numbers)
    return [read(numbers) for _ in range(inputs)]


def output_schema(dtype: torch.dtype, order: Sequence[int]) -> tuple[str, bool]:
    """The schema of an output whose axes lie in this order; False if it is to be transposed for it first."""
    rank = len(order)
    if rank >= 3 and dtype in REALS and tuple(order) == (0, *range(2, rank), 1):
        return f"cpu:{TYPES[dtype]}:nhwc", True
    return f"cpu:{TYPES[dtype]}:nchw", tuple(order) == tuple(range(rank))
