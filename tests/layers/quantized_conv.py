"""A convolution of quantized values, with what it gives in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import softneuro
from softneuro import _C

Array = np.ndarray[Any, Any]


def routines(algorithm: str) -> list[str]:
    """Descriptors at every level that the machine has."""
    entries = [e for e in softneuro.registry() if e["layer"] == "conv2d" and e["available"]]
    return [e["descriptor"] for e in entries if f"/{algorithm}_" in e["descriptor"]]


class QuantizedConv:
    """Of 3x3 taps. Bytes of weights and inputs are random unless they are given."""

    def __init__(
        self,
        c: int,
        k: int,
        size: tuple[int, int],
        *,
        stride: int = 1,
        groups: int = 1,
        zero: int = 90,
        padding: Sequence[int] = (1, 1, 1, 1),
        weights: Array | None = None,
        inputs: Array | None = None,
    ):
        rng = np.random.default_rng(c + k)
        self.attrs = {"padding": list(padding), "stride": [stride, stride], "groups": groups}
        scales = rng.uniform(0.005, 0.02, k).astype(np.float32)
        values = rng.integers(-128, 128, (k, c // groups, 3, 3)) if weights is None else weights
        grid = {"scale": scales.tolist(), "least": -128, "most": 127, "axis": 0}
        bias = rng.standard_normal(k).astype(np.float32)
        self.weights = {"weight": (values.astype(np.int8), grid), "bias": bias}
        self.grid = {"scale": 0.03, "zero_point": zero, "least": 0, "most": 255}
        steps = rng.integers(0, 256, (2, c, *size)) if inputs is None else inputs
        self.x = (np.float32(0.03) * (steps - zero)).astype(np.float32)
        graph = softneuro.Graph()
        blob = graph.input("x", self.x.shape, "cpu:qint8:nchw", self.grid)
        graph.output(graph.add("conv2d", [blob], weights=self.weights, **self.attrs), "float32")
        self.expected: Array = graph.reference([self.x])[0]

    def run(self, descriptor: str, post: dict[str, Any], threads: int = 1) -> Array:
        arguments = ("conv2d", self.attrs, self.weights, [self.x], descriptor, post, threads, [self.grid])
        out: Array = _C.testing.run_routine(*arguments)
        return out

    def accepting(self) -> list[str]:
        arguments = ("conv2d", self.attrs, self.weights, [self.x.shape], {}, 1, [self.grid])
        return _C.testing.accepting(*arguments)

    def expected_error(self, descriptor: str) -> float:
        arguments = ("conv2d", self.attrs, self.weights, [self.x.shape], descriptor)
        value: float = _C.testing.expected_error(*arguments)
        return value
