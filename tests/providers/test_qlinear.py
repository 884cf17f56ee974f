"""Ops that carry the scales of their operands and results: each from bytes to bytes, against the CPU provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.providers.quantized import KINDS, Maker, check_steps

MICROSOFT = {"domain": "com.microsoft"}
KIND = ["UINT8", "INT8"]
X, Z = 0.02, 117  # scale and zero point of operands, those of signed ones are 128 less


def zero(kind: str, unsigned: int = Z) -> int:
    return unsigned if kind == "UINT8" else unsigned - 128


def operand(m: Maker, name: str, kind: str = "UINT8", scale: float = X, unsigned: int = Z) -> list[str]:
    return [name, m.constant(np.float32(scale)), m.constant(KINDS[kind](zero(kind, unsigned)))]


def result(m: Maker, kind: str = "UINT8", scale: float = 0.05, unsigned: int = 100) -> list[str]:
    return operand(m, "", kind, scale, unsigned)[1:]


def weight(m: Maker, shape: tuple[int, ...], axis: int | None, kind: str = "INT8") -> list[str]:
    info = np.iinfo(KINDS[kind])
    scales = m.scales(None if axis is None else shape[axis], 0.01)
    zeros = np.full(np.shape(scales), zero(kind, 128), KINDS[kind])
    values = m.random.integers(info.min + 1, info.max + 1, shape).astype(KINDS[kind])
    return [m.constant(values), m.constant(scales), m.constant(zeros)]


def bias(m: Maker, count: int) -> str:
    return m.constant(m.random.integers(-3000, 3000, count).astype(np.int32))


def check(m: Maker, shapes: dict[str, Any], kind: str = "UINT8", out: str | None = None, **given: Any) -> None:
    m.rename("y")
    check_steps(m.model(shapes, ["y"], dict.fromkeys(shapes, kind) | {"y": out or kind}), 1, **given)


CONV: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 9, 8), (4, 3, 3, 3), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    "depthwise": ((1, 6, 9, 8), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    "line": ((1, 3, 11), (4, 3, 3), {"auto_pad": "SAME_UPPER"}),
}


@pytest.mark.exact_host
@pytest.mark.parametrize("axis", [None, 0], ids=["tensor", "channel"])
@pytest.mark.parametrize("kinds", ["UINT8 INT8", "UINT8 UINT8", "INT8 INT8"])
@pytest.mark.parametrize("name", CONV)
def test_conv(name: str, kinds: str, axis: int | None) -> None:
    kind, weights = kinds.split()
    shape, kernel, attributes = CONV[name]
    m = Maker()
    more = [*weight(m, kernel, axis, weights), *result(m, kind), bias(m, kernel[0])]
    m.add("QLinearConv", *operand(m, "x", kind), *more, **attributes)
    check(m, {"x": shape}, kind)


@pytest.mark.exact_host
@pytest.mark.parametrize("axis", [None, 1], ids=["tensor", "columns"])
@pytest.mark.parametrize("kind", KIND)
def test_matmul(kind: str, axis: int | None) -> None:
    m = Maker()
    m.add("QLinearMatMul", *operand(m, "x", kind), *weight(m, (12, 7), axis), *result(m, kind))
    check(m, {"x": (2, 3, 12)}, kind)


def test_matmul_of_two_activations() -> None:
    m = Maker()
    m.add("QLinearMatMul", *operand(m, "a"), *operand(m, "b", scale=0.013, unsigned=99), *result(m, scale=0.2))
    check(m, {"a": (2, 3, 12), "b": (2, 12, 5)})


@pytest.mark.exact_host
@pytest.mark.parametrize("to", ["bytes", "reals"])
@pytest.mark.parametrize(("turned", "axis", "alpha"), [(0, None, 1.0), (0, 1, 1.0), (1, 0, 0.5)])
def test_gemm(turned: int, axis: int | None, alpha: float, to: str) -> None:
    m = Maker()
    w = weight(m, (7, 12) if turned else (12, 7), axis)
    out = result(m) if to == "bytes" else []
    m.add("QGemm", *operand(m, "x"), *w, bias(m, 7), *out, transB=turned, alpha=alpha, **MICROSOFT)
    m.rename("y")
    types = {"x": "UINT8", "y": "UINT8" if to == "bytes" else "FLOAT"}
    check_steps(m.model({"x": (3, 12)}, ["y"], types), 1 if to == "bytes" else 1e-4)


def test_products_that_share_constants() -> None:
    """Each makes the constants its own, by its attributes. The weights are too small for sums to saturate anywhere."""
    m = Maker()
    values = m.random.integers(-60, 61, (12, 12)).astype(np.int8)
    w = [m.constant(value) for value in (values, m.scales(12, 0.01), np.zeros(12, np.int8))]
    shared = [*operand(m, "x"), *w, bias(m, 12), *result(m)]
    names = []
    for turned, alpha in [(0, 1.0), (0, 0.5), (1, 1.0)]:
        m.add("QGemm", *shared, transB=turned, alpha=alpha, **MICROSOFT)
        names.append(f"y{len(names)}")
        m.rename(names[-1])
    check_steps(m.model({"x": (3, 12)}, names, dict.fromkeys(["x", *names], "UINT8")), 1)


@pytest.mark.parametrize("kind", KIND)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_two_operands(op: str, kind: str) -> None:
    m = Maker()
    b = operand(m, "b", kind, scale=0.013, unsigned=99)
    m.add(op, *operand(m, "a", kind), *b, *result(m, kind), **MICROSOFT)
    check(m, {"a": (2, 3, 4, 5), "b": (3, 1, 5)}, kind)


def test_a_constant_operand() -> None:
    m = Maker()
    b = m.constant(m.random.integers(0, 256, (3, 1, 5)).astype(np.uint8))
    m.add("QLinearAdd", *operand(m, b, scale=0.013), *operand(m, "x"), *result(m), **MICROSOFT)
    check(m, {"x": (2, 3, 4, 5)})


@pytest.mark.parametrize("kind", KIND)
def test_concat(kind: str) -> None:
    m = Maker()
    b = operand(m, "b", kind, scale=0.013, unsigned=99)
    m.add("QLinearConcat", *result(m, kind, X, Z), *operand(m, "a", kind), *b, axis=1, **MICROSOFT)
    check(m, {"a": (2, 3, 4), "b": (2, 5, 4)}, kind)


ONE: dict[str, tuple[str, tuple[int, ...], dict[str, Any], tuple[float, int]]] = {
    "average": ("QLinearAveragePool", (2, 3, 9, 8), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (X, Z)),
    "average of pads": (
        "QLinearAveragePool",
        (2, 3, 9, 8),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        (X, Z),
    ),
    "global average": ("QLinearGlobalAveragePool", (2, 3, 9, 8), {"channels_last": 0}, (0.005, Z)),
    "sigmoid": ("QLinearSigmoid", (2, 3, 9, 8), {}, (1 / 256, 0)),
    "leaky": ("QLinearLeakyRelu", (2, 3, 9, 8), {"alpha": 0.2}, (X, Z)),
    "softmax": ("QLinearSoftmax", (5, 17), {"axis": -1, "opset": 13}, (1 / 256, 0)),
    "old softmax": ("QLinearSoftmax", (5, 3, 4), {"axis": 1, "opset": 11}, (1 / 256, 0)),
}


@pytest.mark.parametrize("kind", KIND)
@pytest.mark.parametrize("name", ONE)
def test_one_operand(name: str, kind: str) -> None:
    op, shape, attributes, (scale, unsigned) = ONE[name]
    m = Maker()
    m.add(op, *operand(m, "x", kind), *result(m, kind, scale, unsigned), **attributes, **MICROSOFT)
    # Averages of bytes are ties often, which the host rounds otherwise.
    check(m, {"x": shape}, kind, share=0.1 if name == "average" else 0.01)


def test_quantized_by_its_own_domain() -> None:
    m = Maker()
    q = m.add("QuantizeLinear", *operand(m, "x"), **MICROSOFT)
    r = m.add("MaxPool", q, kernel_shape=[2, 2])
    m.add("DequantizeLinear", *operand(m, r), **MICROSOFT)
    m.rename("y")
    check_steps(m.model({"x": (2, 3, 9, 8)}, ["y"]), X)


@pytest.mark.exact_host
def test_a_chain() -> None:
    """A chain works on bytes all the way; signed ones between unsigned ends are another grid."""
    m = Maker()
    w = weight(m, (4, 3, 3, 3), 0)
    c = m.add("QLinearConv", *operand(m, "x"), *w, *result(m), bias(m, 4))
    p = m.add("MaxPool", c, kernel_shape=[2, 2])
    s = m.add(
        "QLinearSigmoid", *operand(m, p, scale=0.05, unsigned=100), *result(m, scale=1 / 256, unsigned=0), **MICROSOFT
    )
    both = [*operand(m, s, scale=1 / 256, unsigned=0), *operand(m, p, scale=0.05, unsigned=100)]
    m.add("QLinearMul", *both, *result(m, scale=0.02, unsigned=60), **MICROSOFT)
    check(m, {"x": (1, 3, 9, 8)})
