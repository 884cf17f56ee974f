"""Scales, zero points and sums that are those of other rows: no pass takes them for those of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import softneuro

RANDOM = np.random.default_rng(0)
GRID = {"scale": [1.0], "axis": -1, "least": -128, "most": 127}
SIZE = 4
WEIGHT = RANDOM.integers(-128, 128, (SIZE, 8)).astype(np.int8)
SUMS = WEIGHT.sum(1).astype(np.float32)

Made = tuple[int, list[np.ndarray[Any, Any]]]


class Maker:
    """What spells quantization out."""

    def __init__(self) -> None:
        self.graph = softneuro.Graph()

    def input(self, *shape: int) -> tuple[int, Any]:
        spread = 10.0 ** np.arange(shape[0])
        values = RANDOM.standard_normal(shape) * spread.reshape(-1, *[1] * (len(shape) - 1))
        return self.graph.input(f"x{len(self.graph.input_shapes)}", shape), values.astype(np.float32)

    def binary(self, function: str, a: int, b: Any = None, reverse: bool = False) -> int:
        if isinstance(b, np.ndarray):
            return self.graph.add("binary", [a], weights={"other": b.astype(np.float32)}, function=function)
        if isinstance(b, float):
            return self.graph.add("binary", [a], function=function, scalar=b, reversed=int(reverse))
        return self.graph.add("binary", [a] if b is None else [a, b], function=function)

    def quantized(self, x: int, **attrs: Any) -> list[int]:
        return self.graph.outputs_of(self.graph.add("dynamic_quantize", [x], reciprocal=1, **attrs))

    def turned(self, x: int) -> int:
        return self.graph.add("transpose", [x], perm=[1, 0])

    def reshaped(self, x: int, *shape: int) -> int:
        return self.graph.add("reshape", [x], shape=shape)

    def steps(self, x: int, factor: int) -> int:
        rounded = self.binary("round", self.binary("mul", x, factor))
        return self.graph.add("activation", [rounded], function="clamp", a=-128.0, b=127.0)

    def scale(self, x: int, axes: list[int], zeros: Any = 0.0) -> int:
        low = self.binary("min", self.graph.add("reduce", [x], function="amin", axes=axes, keepdim=1), zeros)
        high = self.binary("max", self.graph.add("reduce", [x], function="amax", axes=axes, keepdim=1), zeros)
        extent = self.binary("div", self.binary("max", self.binary("mul", low, -1.0), high), 127.5)
        return self.graph.add("activation", [extent], function="clamp", a=1e-6, b=np.inf)

    def product(self, steps: int) -> int:
        return self.graph.add("linear", [steps], weights={"weight": (WEIGHT, GRID)})


def a_scale_that_grows(m: Maker) -> Made:
    x, values = m.input(1, 6, 8)
    steps, scale, _ = m.quantized(x, rows=1, least=-128, most=127, symmetric=1)
    return m.product(m.binary("mul", steps, m.reshaped(scale, 6, 1, 1))), [values]


def a_spelt_scale_turned(m: Maker) -> Made:
    x, values = m.input(SIZE, SIZE)
    return m.steps(x, m.turned(m.binary("div", m.scale(x, [1]), 1.0, reverse=True))), [values]


def a_known_scale_turned(m: Maker) -> Made:
    x, values = m.input(SIZE, SIZE)
    _, scale, _ = m.quantized(x, rows=1, least=-128, most=127, symmetric=1)
    return m.steps(x, m.binary("div", m.turned(scale), 1.0, reverse=True)), [values]


def a_scale_of_all_for_each_row(m: Maker) -> Made:
    x, values = m.input(SIZE, 8)
    scale = m.scale(x, [0, 1], np.zeros((SIZE, 1)))
    return m.steps(x, m.binary("div", scale, 1.0, reverse=True)), [values]


def a_zero_point_turned(m: Maker) -> Made:
    x, values = m.input(SIZE, SIZE)
    steps, _, zero = m.quantized(x, rows=1)
    return m.binary("sub", m.binary("add", steps, zero), m.turned(zero)), [values]


def sums_of_columns_for_rows(m: Maker) -> Made:
    x, values = m.input(SIZE, 8)
    return m.binary("sub", m.product(m.binary("add", x, 128.0)), 128 * SUMS[:, None]), [values]


def a_shift_that_grows(m: Maker) -> Made:
    x, values = m.input(1, 8)
    return m.binary("sub", m.product(m.binary("add", x, np.full((3, 8), 128.0))), 128 * SUMS), [values]


def a_shift_of_zeros_turned(m: Maker) -> Made:
    (x, values), (zero, zeros), (scale, scales) = m.input(SIZE, 8), m.input(SIZE, 1), m.input(SIZE, 1)
    real = m.binary("mul", m.product(m.binary("add", x, zero)), scale)
    both = m.reshaped(m.binary("mul", zero, scale), 1, SIZE)
    return m.binary("sub", real, m.binary("mul", both, SUMS[:, None])), [values, zeros, scales]


@pytest.mark.parametrize(
    "make",
    [
        a_scale_that_grows,
        a_spelt_scale_turned,
        a_known_scale_turned,
        a_scale_of_all_for_each_row,
        a_zero_point_turned,
        sums_of_columns_for_rows,
        a_shift_that_grows,
        a_shift_of_zeros_turned,
    ],
)
def test_means_the_same_after(make: Callable[[Maker], Made]) -> None:
    m = Maker()
    output, values = make(m)
    m.graph.output(output)
    (before,) = m.graph.reference(values)
    m.graph.optimize()
    (after,) = m.graph.reference(values)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5 * np.abs(before).max())
