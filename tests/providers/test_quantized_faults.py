"""What quantized models have gone wrong with elsewhere: sums, biases, ties and numbers at the ends of what there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model, whole_session
from tests.providers.quantized import Maker
from tests.providers.test_quantized_odd import check

SHAPE = (2, 3, 9, 8)


def product(m: Maker, x: str, values: np.ndarray, scales: Any, bias: str = "", **attributes: Any) -> str:
    """With a matrix of bytes, [inputs, outputs]."""
    w = m.dq(m.constant(values.astype(np.int8)), scales, np.zeros(np.shape(scales)), "INT8", **attributes)
    return str(m.add("Gemm", x, w, bias) if bias else m.add("MatMul", x, w))


def layer_types(session: Any) -> list[str]:
    """Element types that matrices are computed with."""
    layers = [layer for event in events(session) for layer in event.get("layers", [])]
    return [layer["descriptor"].split(":")[1] for layer in layers if layer["type"] == "linear"]


@pytest.mark.parametrize(("depth", "kind"), [(512, "qint8"), (70_000, "float32")])
def test_sums_that_32_bits_do_not_hold(depth: int, kind: str) -> None:
    """The host's own integers overflow."""
    m = Maker()
    values = np.stack([np.full(depth, 127), np.full(depth, -127), np.arange(depth) % 255 - 127], axis=1)
    scale = 1 / (255 * 127 * depth)
    m.q(product(m, m.dq("x", 1.0, 0), values, scale), 1 / 128, 128)
    m.rename("y")
    session = whole_session(m.model({"x": (1, depth)}, ["y"], {"x": "UINT8", "y": "UINT8"}))
    assert layer_types(session) == [kind]
    result = session.run(None, {"x": np.full((1, depth), 255, np.uint8)})[0]
    exact = 255 * values.sum(axis=0) * np.float64(np.float32(scale)) * 128 + 128
    assert np.abs(result - np.clip(exact, 0, 255)).max() <= 0.51


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31)])
def test_biases_that_are_large_for_their_scale(number: int) -> None:
    """The weights are all but nothing."""
    m = Maker()
    x_scale, w_scale = 0.02, 1e-10
    scale = m.constant(np.float32(x_scale * w_scale))
    bias = m.add("DequantizeLinear", m.constant(np.full(4, number, np.int32)), scale)
    real = product(m, m.dq("x", x_scale, 0), m.random.integers(-127, 128, (6, 4)), w_scale, bias)
    m.q(real, 1e-4, 100)
    m.rename("y")
    session = whole_session(m.model({"x": (3, 6)}, ["y"], {"x": "UINT8", "y": "UINT8"}))
    result = session.run(None, {"x": np.zeros((3, 6), np.uint8)})[0]
    np.testing.assert_array_equal(result, np.full((3, 4), np.rint(number * x_scale * w_scale / 1e-4) + 100))


@pytest.mark.parametrize("scale", [0.16, 0.38])
def test_ties(scale: float) -> None:
    """Reals half way between two steps, as far as float32 has them: the host's steps exactly."""
    m = Maker()
    m.q("x", scale, 100)
    m.rename("y")
    model = m.model({"x": (1, 512)}, ["y"], {"y": "UINT8"})
    halves = ((np.arange(512) - 256) / 2).astype(np.float32) * np.float32(scale)
    feeds = {"x": halves[None]}
    np.testing.assert_array_equal(whole_session(model).run(None, feeds)[0], cpu_session(model).run(None, feeds)[0])


def test_what_is_not_a_number() -> None:
    """Becomes the least step, here as everywhere in a region."""
    for zero in (0, 100, 255):
        m = Maker()
        m.q("x", 0.02, zero)
        m.rename("y")
        session = whole_session(m.model({"x": (1, 3)}, ["y"], {"y": "UINT8"}))
        x = np.float32([[np.nan, 0, np.nan]])
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], [[0, zero, 0]])


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -float("inf")])
def test_scales_of_weights_that_are_no_numbers(scale: float) -> None:
    m = Maker()
    values = m.random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    values[1] = abs(values[1]) + 1  # no zeros, which some multiply by infinity
    w = m.dq(m.constant(values), np.float32([0.01, scale, 0.02, 0.01]), np.zeros(4), "INT8", axis=0)
    m.add("Conv", "x", w)
    m.rename("y")
    model = m.model({"x": SHAPE}, ["y"])
    ours, cpu = whole_session(model), cpu_session(model)
    x = {"x": np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)}
    result, reference = ours.run(None, x)[0], cpu.run(None, x)[0]
    assert not np.isfinite(result[:, 1]).any()
    np.testing.assert_allclose(result[:, [0, 2, 3]], reference[:, [0, 2, 3]], rtol=1e-4, atol=1e-5)


AXES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, int], int]] = {
    "omitted": ((5, 12), (12, 7), {}, 1),
    "last": ((5, 12), (12, 7), {"axis": -1}, 1),
    "first": ((5, 12), (12, 7), {"axis": 0}, 0),
    "batches": ((2, 5, 12), (2, 12, 7), {"axis": 0}, 0),
    "columns of batches": ((2, 5, 12), (2, 12, 7), {"axis": 2}, 2),
}


@pytest.mark.exact_host
@pytest.mark.parametrize("name", AXES)
def test_axes_of_scales(name: str) -> None:
    shape, kernel, attributes, axis = AXES[name]
    m = Maker()
    count = kernel[axis]
    w = m.dq(m.constant(m.random.integers(-127, 128, kernel).astype(np.int8)), m.scales(count, 0.01), np.zeros(count),
             "INT8", **attributes)  # fmt: skip
    m.qdq(m.add("MatMul", m.qdq("x", 0.02), w), 0.05)
    m.rename("y")
    check(m.model({"x": shape}, ["y"]), 0.05)


@pytest.mark.exact_host
@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
def test_zero_points_that_differ_by_channel(kind: str) -> None:
    m = Maker()
    info = np.iinfo(np.uint8 if kind == "UINT8" else np.int8)
    values = m.random.integers(info.min, info.max + 1, (4, 3, 3, 3)).astype(info.dtype)
    zeros = np.int64([info.min, info.max, (info.min + info.max + 1) // 2, info.min + 7])
    w = m.dq(m.constant(values), m.scales(4, 0.01), zeros, kind, axis=0)
    m.qdq(m.add("Conv", m.qdq("x", 0.02), w), 0.2)
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"]), 0.2)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (0.5, 0.25), (-1.0, 1.0), (1.0, 0.0)])
def test_scaled_products(alpha: float, beta: float) -> None:
    m = Maker()
    w, scales = m.weight(12, 7, axis=1)
    m.qdq(m.add("Gemm", m.qdq("x", 0.02), w, m.bias(7, 0.02, scales), alpha=alpha, beta=beta), 0.05)
    m.rename("y")
    check(m.model({"x": (5, 12)}, ["y"]), 0.05)


def test_a_row_is_the_same_in_any_batch() -> None:
    """To the bit, by what integers are multiplied with."""
    m = Maker()
    conv = m.add("Conv", m.qdq("x", 0.02), m.weight(8, 3, 3, 3, axis=0)[0])
    pooled = m.add("Flatten", m.add("GlobalAveragePool", m.qdq(m.add("Relu", conv), 0.05, 0)))
    m.qdq(m.add("MatMul", m.qdq(pooled, 0.02, 0), m.weight(8, 5, axis=1)[0]), 0.01)
    m.rename("y")
    session = whole_session(m.model({"x": ("n", 3, 9, 8)}, ["y"]))
    x = np.random.default_rng(0).standard_normal((7, 3, 9, 8)).astype(np.float32)
    whole = session.run(None, {"x": x})[0]
    for row in range(7):
        np.testing.assert_array_equal(session.run(None, {"x": x[row : row + 1]})[0], whole[row : row + 1])


def test_no_negatives_behind_a_relu() -> None:
    """Signed bytes around zero have negatives in their range."""
    m = Maker()
    w, scales = m.weight(4, 3, 3, 3, axis=0)
    conv = m.add("Conv", m.qdq("x", 0.02, 0, "INT8"), w, m.bias(4, 0.02, scales))
    m.q(m.add("Relu", conv), 0.05, 0, "INT8")
    m.rename("y")
    model = m.model({"x": SHAPE}, ["y"], {"y": "INT8"})
    check(model, 1)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    assert whole_session(model).run(None, {"x": x})[0].min() == 0


@pytest.mark.parametrize("place", ["QuantizeLinear", "DequantizeLinear"])
def test_a_zero_point_of_another_type(place: str) -> None:
    """The runtime refuses the model, with the provider as without."""
    types = [np.uint8, np.int8] if place == "DequantizeLinear" else [np.int8, np.int32]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "other"], ["y"]),
    ]
    constants = {"s": np.float32(0.02), "z": types[0](3), "other": types[1](3)}
    if place == "QuantizeLinear":
        constants["z"], constants["other"] = np.int32(300), np.uint8(3)
    model = make_model(nodes, {"x": SHAPE}, {"y": None}, constants)
    for make in (cpu_session, whole_session):
        with pytest.raises(Exception, match=r"(?i)type"):
            make(model)


@pytest.mark.exact_host
def test_bytes_that_nobody_dequantizes() -> None:
    m = Maker()
    w, _ = m.weight(4, 3, 3, 3, axis=0)
    m.q(m.add("Conv", m.qdq("x", 0.02), w), 0.05)
    m.rename("y")
    m.add("MaxPool", "y", kernel_shape=[2, 2])
    m.rename("z")
    check(m.model({"x": SHAPE}, ["y", "z"], {"y": "UINT8", "z": "UINT8"}), 1)
