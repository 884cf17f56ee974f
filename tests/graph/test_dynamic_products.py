"""Products of what is quantized in the run: which become one layer, and that all of them mean the same after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import softneuro

RANDOM = np.random.default_rng(0)
BYTES = {"scale": [1.0], "least": -128, "most": 127}


def weight(*shape: int, scale: float = 1.0) -> Any:
    return RANDOM.integers(-128, 128, shape).astype(np.int8), {**BYTES, "scale": [scale]}


class Maker:
    """A graph of one input, what it is in eight bits, and what a linear layer makes of that."""

    def __init__(self, shape: tuple[int, ...], **attrs: Any) -> None:
        self.graph = softneuro.Graph()
        self.x = RANDOM.standard_normal(shape).astype(np.float32)
        made = self.graph.add("dynamic_quantize", [self.graph.input("x", shape)], **attrs)
        self.steps, self.scale, self.zero = self.graph.outputs_of(made)

    def product(self, k: int = 5, **more: Any) -> int:
        """Sums of whole numbers."""
        return self.linear(self.steps, k, **more)

    def linear(self, blob: int, k: int = 5, scale: float = 1.0, **weights: Any) -> int:
        c = self.graph.shape(blob)[-1]
        return self.graph.add("linear", [blob], weights={"weight": weight(k, c, scale=scale), **weights})

    def mul(self, a: int, b: Any) -> int:
        if isinstance(b, int):
            return self.graph.add("binary", [a, b], function="mul")
        if isinstance(b, float):
            return self.graph.add("binary", [a], function="mul", scalar=b)
        return self.graph.add("binary", [a], weights={"other": np.asarray(b, np.float32)}, function="mul")

    def reshape(self, blob: int, *shape: int) -> int:
        return self.graph.add("reshape", [blob], shape=shape)

    def layers(self, *outputs: int) -> list[str]:
        """Types after the passes, with which results are the same."""
        for blob in outputs:
            self.graph.output(blob)
        before = self.graph.reference([self.x])
        self.graph.optimize()
        after = self.graph.reference([self.x])
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(one).max(initial=0))
        return sorted(layer["type"] for layer in self.graph.layers())


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("factor", [None, 0.25, [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("first", [False, True])
def test_sums_times_the_scale(rows: bool, swapped: bool, factor: Any, first: bool) -> None:
    """A constant may come with the scale, or after it; it becomes part of the weight."""
    m = Maker((3, 7), rows=rows)
    sums, scale = m.product(), m.scale
    if factor is not None and first:
        scale = m.mul(scale, factor)
    y = m.mul(scale, sums) if swapped else m.mul(sums, scale)
    if factor is not None and not first:
        y = m.mul(y, factor)
    y = m.graph.add("binary", [y], weights={"other": np.ones(5, np.float32)}, function="add")
    assert m.layers(m.graph.add("activation", [y], function="relu")) == ["dynamic_linear"]


@pytest.mark.parametrize("rows", [False, True])
def test_other_shapes_of_rows(rows: bool) -> None:
    m = Maker((2, 3, 7), rows=rows)
    scale = m.reshape(m.scale, 6, 1) if rows else m.reshape(m.scale, 1)
    y = m.mul(m.linear(m.reshape(m.steps, 6, 7)), scale)
    assert m.layers(m.reshape(y, 2, 3, 5)) == ["dynamic_linear"]
    m = Maker((2, 3, 7), rows=rows)
    sums = m.reshape(m.linear(m.reshape(m.steps, 6, 7)), 2, 3, 5)
    assert m.layers(m.mul(sums, m.scale)).count("dynamic_linear") == 1


@pytest.mark.parametrize("rows", [False, True])
def test_reals_on_a_grid(rows: bool) -> None:
    m = Maker((3, 7), rows=rows)
    reals = m.mul(m.steps, m.scale)
    a, b = m.linear(reals, scale=0.5, bias=np.ones(5, np.float32)), m.linear(reals, 4)
    assert m.layers(a, b) == ["dynamic_linear"] * 2


def test_several_products_of_one_quantization() -> None:
    m = Maker((3, 7))
    scale = m.mul(m.scale, 0.5)  # of both
    assert m.layers(m.mul(m.product(4), scale), m.mul(m.product(6), scale)) == ["dynamic_linear"] * 2


def test_a_convolution() -> None:
    m = Maker((1, 4, 6, 6))
    y = m.graph.add("conv2d", [m.steps], weights={"weight": weight(3, 4, 3, 3)}, padding=[1, 1, 1, 1])
    assert m.layers(m.mul(y, m.scale)) == ["dynamic_conv2d"]


def otherwise_scaled(m: Maker) -> list[int]:
    return [m.mul(m.product(), m.graph.add("reduce", [m.steps], function="sum", axes=[0, 1], keepdim=1))]


def read_twice(m: Maker) -> list[int]:
    sums = m.product()
    return [m.mul(sums, m.scale), sums]


def with_a_bias(m: Maker) -> list[int]:
    return [m.mul(m.product(bias=np.ones(5, np.float32)), m.scale)]


def of_real_weights(m: Maker) -> list[int]:
    sums = m.graph.add("linear", [m.steps], weights={"weight": np.ones((5, 7), np.float32)})
    return [m.mul(sums, m.scale)]


def by_zero(m: Maker) -> list[int]:
    return [m.mul(m.product(), m.zero)]


def squared(m: Maker) -> list[int]:
    sums = m.product()
    return [m.mul(sums, sums)]


@pytest.mark.parametrize("near", [otherwise_scaled, read_twice, with_a_bias, of_real_weights, by_zero, squared])
def test_near_misses(near: Callable[[Maker], list[int]]) -> None:
    m = Maker((3, 7))
    assert "dynamic_linear" not in m.layers(*near(m))


def test_scales_of_other_rows() -> None:
    m = Maker((5, 7), rows=True)
    columns = m.reshape(m.scale, 1, 5)  # the scale of a row for a column
    assert "dynamic_linear" not in m.layers(m.mul(m.product(), columns))
    m = Maker((4, 6), rows=True)
    cut = m.linear(m.reshape(m.steps, 8, 3))  # two rows of each
    scale = m.mul(m.reshape(m.scale, 4, 1), np.ones((1, 2), np.float32))
    assert "dynamic_linear" not in m.layers(m.mul(cut, m.reshape(scale, 8, 1)))
    m = Maker((1, 4, 6, 6), rows=True)
    y = m.graph.add("conv2d", [m.steps], weights={"weight": weight(4, 4, 1, 1)})
    assert "dynamic_conv2d" not in m.layers(m.mul(y, m.scale))


def test_scales_that_bytes_cannot_have() -> None:
    """Zero and negative ones stay a product of their own."""
    m = Maker((3, 7))
    assert m.layers(m.mul(m.mul(m.product(), m.scale), [1, 0, -1, 2, 3])) == ["binary", "dynamic_linear"]
