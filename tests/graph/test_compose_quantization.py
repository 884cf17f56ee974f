"""Quantization spelt out in arithmetic: what of it gets a name, and that all of it means the same after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import softneuro

EPS = float(np.finfo(np.float32).eps)
SYMMETRIC = {"least": -128, "most": 127, "symmetric": True}
ASYMMETRIC = {"least": -128, "most": 127, "symmetric": False}


class Maker:
    """A graph of one input, and quantizations of it as torchao spells them."""

    def __init__(self, *shape: int, rows: bool = True, least: int = -128, most: int = 127, symmetric: bool = True):
        self.graph, self.random = softneuro.Graph(), np.random.default_rng(0)
        self.values = self.random.standard_normal(shape).astype(np.float32)
        # The value that a symmetric scale is found by is a tie, of which a digit decides where it is not cut off.
        self.values *= np.sign(self.values.max(-1, keepdims=True) + self.values.min(-1, keepdims=True))
        self.x = self.graph.input("x", shape)
        self.least, self.most, self.symmetric = least, most, symmetric
        self.axes = [len(shape) - 1] if rows else list(range(len(shape)))
        self.weight = self.random.integers(-128, 128, (5, shape[-1])).astype(np.int8)

    def binary(self, function: str, a: int, b: Any, reverse: bool = False) -> int:
        if isinstance(b, np.ndarray):
            return self.graph.add("binary", [a], weights={"other": b.astype(np.float32)}, function=function)
        if isinstance(b, float):
            return self.graph.add("binary", [a], function=function, scalar=b, reversed=int(reverse))
        return self.graph.add("binary", [a, b], function=function)

    def clamp(self, x: int, least: float, most: float = np.inf) -> int:
        return self.graph.add("activation", [x], function="clamp", a=least, b=most)

    def round(self, x: int) -> int:
        return self.graph.add("binary", [x], function="round")

    def reduce(self, function: str, axes: list[int] | None = None) -> int:
        return self.graph.add("reduce", [self.x], function=function, axes=axes or self.axes, keepdim=1)

    def ends(self) -> tuple[int, int]:
        """The least and the greatest value, and zero."""
        low, high = self.reduce("amin"), self.reduce("amax")
        zeros = np.zeros(self.graph.shape(low))
        return self.binary("min", low, zeros), self.binary("max", high, zeros)

    def scale(self, low: int, high: int, eps: float = EPS) -> int:
        span = float(self.most - self.least)
        if self.symmetric:
            extent = self.binary("max", self.binary("mul", low, -1.0), high)
            return self.clamp(self.binary("div", extent, span / 2), eps)
        return self.clamp(self.binary("div", self.binary("sub", high, low), span), eps)

    def zero(self, low: int, scale: int) -> Any:
        if self.symmetric:
            return np.zeros(self.graph.shape(scale))
        moved = self.binary("sub", self.round(self.binary("div", low, scale)), float(self.least), reverse=True)
        return self.clamp(moved, self.least, self.most)

    def found(self) -> tuple[int, Any]:
        """Scale and zero point."""
        low, high = self.ends()
        scale = self.scale(low, high)
        return scale, self.zero(low, scale)

    def steps(self, scale: int, zero: Any, x: int | None = None) -> int:
        factor = self.binary("mul", self.binary("div", scale, 1.0, reverse=True), 1.0)
        rounded = self.round(self.binary("mul", self.x if x is None else x, factor))
        return self.clamp(self.binary("add", rounded, zero), self.least, self.most)

    def product(self, steps: int) -> int:
        grid = {"scale": [1.0], "axis": -1, "least": -128, "most": 127}
        return self.graph.add("linear", [steps], weights={"weight": (self.weight, grid)})

    @property
    def sums(self) -> np.ndarray[Any, Any]:
        """Of the weight's rows."""
        return self.weight.sum(1).astype(np.float64)

    def layers(self, *outputs: int) -> list[str]:
        """Types after the passes, with which results are the same."""
        for blob in outputs:
            self.graph.output(blob)
        before = self.graph.reference([self.values])
        self.graph.optimize()
        after = self.graph.reference([self.values])
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(one).max(initial=0))
        return sorted(layer["type"] for layer in self.graph.layers())


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize(
    ("least", "most", "symmetric"),
    [(-128, 127, True), (-128, 127, False), (-127, 127, True), (0, 255, False), (0, 127, False), (-64, 63, True)],
)
def test_steps_of_the_run(rows: bool, least: int, most: int, symmetric: bool) -> None:
    m = Maker(3, 2, 7, rows=rows, least=least, most=most, symmetric=symmetric)
    scale, zero = m.found()
    m.layers(m.steps(scale, zero), scale)
    layers = m.graph.layers()
    attrs = layers[0]["attrs"]
    assert layers[0]["type"] == "dynamic_quantize"
    assert (attrs["rows"], attrs["symmetric"]) == (rows, symmetric)
    assert (attrs["least"], attrs["most"], attrs["reciprocal"], attrs["eps"]) == (least, most, 1, EPS)
    rest = {layer["type"] for layer in layers[1:]}
    assert rest <= {"reshape", "binary"}
    assert [layer["attrs"]["function"] for layer in layers if layer["type"] == "binary"] == ["add"] * (not symmetric)


def test_one_range_for_several() -> None:
    m = Maker(3, 7, symmetric=False)
    scale, zero = m.found()
    assert m.layers(*(m.steps(scale, zero) for _ in range(2))).count("dynamic_quantize") == 1


@pytest.mark.parametrize("raised", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("rows", [False, True])
def test_products(rows: bool, symmetric: bool, raised: bool) -> None:
    """As torchao has them, of a tensor of rank 3, which is a matrix in between."""
    m = Maker(3, 2, 7, rows=rows, symmetric=symmetric)
    scale, zero = m.found()
    steps = m.graph.add("reshape", [m.steps(scale, zero)], shape=[6, 7])
    count = 6 if rows else 1
    sums = m.product(m.binary("add", steps, 128.0) if raised else steps)
    sums = m.binary("sub", sums, 128 * m.sums[None]) if raised else sums
    flat = m.graph.add("reshape", [scale], shape=[count, 1])
    reals = m.binary("mul", sums, flat)
    if not symmetric:
        shift = m.binary("mul", m.graph.add("reshape", [zero], shape=[count, 1]), flat)
        reals = m.binary("sub", reals, m.binary("mul", shift, m.sums))
    reals = m.binary("mul", reals, np.linspace(0.01, 0.02, 5))
    result = m.graph.add("reshape", [reals], shape=[3, 2, 5])
    assert m.layers(m.binary("add", result, np.ones(5))) == ["dynamic_linear"]


def test_steps_that_return() -> None:
    """As torch's export flow has them: bytes become reals before the product."""
    m = Maker(3, 7, rows=False)
    made = m.graph.add("dynamic_quantize", [m.x], reciprocal=1)
    scale, zero = (m.graph.add("reshape", [blob], shape=[1]) for blob in m.graph.outputs_of(made)[1:])
    m.least, m.most = 0, 255
    reals = m.binary("mul", m.binary("sub", m.steps(scale, zero), zero), scale)
    assert m.layers(m.product(reals)) == ["dynamic_linear"]


@pytest.mark.parametrize("raised", [False, True])
def test_a_known_scale(raised: bool) -> None:
    m = Maker(3, 7)
    m.values *= np.float32(0.5)
    rounded = m.round(m.binary("mul", m.x, np.full((1, 1), np.float32(1) / np.float32(0.02))))
    steps = m.clamp(m.binary("add", rounded, np.zeros((1, 1))), -128, 127)
    sums = m.product(m.binary("add", steps, 128.0) if raised else steps)
    sums = m.binary("sub", sums, 128 * m.sums) if raised else sums
    assert m.layers(m.binary("mul", sums, 0.02)) == ["linear", "quantize"]


def other_axes(m: Maker) -> int:
    m.axes = [0]
    return m.steps(*m.found())


def other_range(m: Maker) -> int:
    scale, zero = m.found()
    m.most = 126
    return m.steps(scale, zero)


def other_source(m: Maker) -> int:
    scale, zero = m.found()
    return m.steps(scale, zero, m.binary("mul", m.x, 2.0))


def without_zero(m: Maker) -> int:
    low, high = m.reduce("amin"), m.reduce("amax")
    scale = m.scale(low, high)
    return m.steps(scale, m.zero(low, scale))


def no_least_scale(m: Maker) -> int:
    low, high = m.ends()
    extent = m.binary("max", m.binary("mul", low, -1.0), high)
    return m.steps(m.binary("div", extent, 127.5), np.zeros((3, 1)))


def two_reductions(m: Maker) -> int:
    low, high = m.binary("min", m.reduce("amin", [0, 1]), 0.0), m.binary("max", m.reduce("amax"), 0.0)
    scale = m.scale(low, high)
    return m.steps(scale, np.zeros((3, 1)))


def shifted_zero(m: Maker) -> int:
    return m.steps(m.found()[0], np.full((3, 1), 1))


def of_the_greatest_twice(m: Maker) -> int:
    high = m.binary("max", m.reduce("amax"), 0.0)
    return m.steps(m.scale(high, high), np.zeros((3, 1)))


def not_rounded(m: Maker) -> int:
    factor = m.binary("div", m.found()[0], 1.0, reverse=True)
    return m.clamp(m.binary("mul", m.x, factor), -128, 127)


@pytest.mark.parametrize(
    "near",
    [other_axes, other_range, other_source, without_zero, no_least_scale, two_reductions, shifted_zero,
     of_the_greatest_twice, not_rounded],
)  # fmt: skip
def test_near_misses(near: Callable[[Maker], int]) -> None:
    m = Maker(3, 7)
    assert "dynamic_quantize" not in m.layers(near(m))


def test_an_asymmetric_zero_point_of_another_end() -> None:
    m = Maker(3, 7, symmetric=False)
    low, high = m.ends()
    scale = m.scale(low, high)
    assert "dynamic_quantize" not in m.layers(m.steps(scale, m.zero(high, scale)))


def zero_of_columns(m: Maker, scale: int, zero: int) -> tuple[int, int]:
    return scale, m.graph.add("reshape", [zero], shape=[1, 5])


def scale_of_columns(m: Maker, scale: int, zero: int) -> tuple[int, int]:
    return m.graph.add("reshape", [scale], shape=[1, 5]), zero


@pytest.mark.parametrize("turned", [zero_of_columns, scale_of_columns])
def test_a_shift_by_other_axes(turned: Callable[[Maker, int, int], tuple[int, int]]) -> None:
    """As many rows as columns."""
    m = Maker(5, 7, symmetric=False)
    scale, zero = m.found()
    sums = m.product(m.steps(scale, zero))
    shift = m.binary("mul", m.binary("mul", *turned(m, scale, zero)), m.sums)
    assert "dynamic_linear" not in m.layers(m.binary("sub", m.binary("mul", sums, scale), shift))


@pytest.mark.parametrize("off", [0, 1])
def test_what_is_subtracted_has_to_be_the_sums(off: int) -> None:
    m = Maker(3, 7)
    sums = m.product(m.binary("add", m.x, 128.0))
    other = 128 * m.sums
    other[3] += off
    assert (m.layers(m.binary("sub", sums, other)) == ["linear"]) == (not off)


def test_a_known_scale_stays_where_reals_are_multiplied() -> None:
    m = Maker(3, 7)
    steps = m.clamp(m.round(m.binary("mul", m.x, 50.0)), -128, 127)
    weights = {"weight": np.ones((5, 7), np.float32)}
    assert "quantize" not in m.layers(m.graph.add("linear", [steps], weights=weights))
