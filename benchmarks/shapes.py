"""Layers read from benchmarks/shapes/*.txt (see make_shapes): problems to time routines on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "shapes"
Weights = dict[str, np.ndarray[Any, np.dtype[np.float32]]]


@dataclass(frozen=True)
class Shape:
    """One distinct layer of a network: conv2d or linear, always with a bias."""

    text: str  # as the file has it, without the count
    type: str
    input: tuple[int, ...]
    weight: tuple[int, ...]
    attrs: dict[str, Any]
    count: int

    @cached_property
    def output(self) -> tuple[int, ...]:
        if self.type == "linear":
            return (*self.input[:-1], self.weight[0])
        pad = self.padding
        spans = [self.dilation[i] * (self.weight[2 + i] - 1) + 1 for i in range(2)]
        sizes = ((self.input[2 + i] + pad[i] + pad[2 + i] - spans[i]) // self.stride[i] + 1 for i in range(2))
        return (self.input[0], self.weight[0], *sizes)

    @property
    def stride(self) -> list[int]:
        return list(self.attrs.get("stride", (1, 1)))

    @property
    def padding(self) -> list[int]:
        return list(self.attrs.get("padding", (0, 0, 0, 0)))

    @property
    def dilation(self) -> list[int]:
        return list(self.attrs.get("dilation", (1, 1)))

    @property
    def groups(self) -> int:
        return int(self.attrs.get("groups", 1))

    @property
    def kind(self) -> str:
        """What sort of layer it is, in words."""
        if self.type == "linear":
            return "linear"
        kernel = "x".join(map(str, self.weight[2:]))
        if self.groups > 1:
            return f"{kernel} depthwise" if self.weight[1] == 1 else f"{kernel} grouped"
        if self.weight[1] <= 4:
            return f"{kernel} first of a net"
        return f"{kernel} strided" if max(self.stride) > 1 else kernel

    @property
    def flops(self) -> int:
        """Counts the plain sum, taps in the padding included; a product with its addition counts as two."""
        return 2 * math.prod(self.output) * math.prod(self.weight[1:])

    @property
    def bytes(self) -> int:
        """Read and written at least: input, weights, output, once each."""
        return 4 * (math.prod(self.input) + math.prod(self.weight) + math.prod(self.output))

    def weights(self, seed: int = 0) -> Weights:
        """Random weight and bias."""
        random = np.random.default_rng(seed)
        scale = np.float32(1 / math.sqrt(math.prod(self.weight[1:])))
        return {
            "weight": random.standard_normal(self.weight, dtype=np.float32) * scale,
            "bias": random.standard_normal(self.weight[0], dtype=np.float32),
        }


def parse(line: str) -> Shape:
    """A line of a shape file."""
    kind, source, weight, *words = line.split()
    attrs: dict[str, Any] = {}
    count = 1
    for word in words:
        name, _, value = word.partition("=")
        numbers = [int(number) for number in value.split(",")]
        if name == "count":
            count = numbers[0]
        else:
            attrs[name] = numbers[0] if name == "groups" else numbers

    def sizes(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split("x")))

    return Shape(line.partition(" count=")[0], kind, sizes(source), sizes(weight), attrs, count)


def names() -> list[str]:
    """Known shape files."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read(name: str) -> list[Shape]:
    """The shapes of a file, by its name without .txt."""
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()
    return [parse(line) for line in lines if line and not line.startswith("#")]
