"""Odd scales, zero points, axes, blocks and types: each is computed as the host does, or left to it with the reason."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from softneuro import providers
from tests.providers.conftest import cpu_session, make_model, random_feeds, reasons, whole_session
from tests.providers.quantized import Maker, steps
from tests.providers.test_quantized_units import host_nodes

SHAPE = (2, 3, 9, 8)


def check(
    model: bytes,
    scale: float,
    declined: str = "",
    feeds: dict[str, np.ndarray] | None = None,
    sizes: dict[str, int] | None = None,
) -> None:
    """Results are the host's but for a step here and there. All is claimed, or some op is declined for that reason."""
    ours, cpu = providers.session(model, tune="off", never_worse=False, min_region_size=1), cpu_session(model)
    kept = host_nodes(ours)
    found = [reason for reasons in kept.values() for reason in reasons]
    assert bool(kept) == bool(declined), kept
    assert not declined or any(re.search(declined, reason) for reason in found), kept
    feeds = feeds or random_feeds(cpu, sizes)
    for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
        np.testing.assert_array_equal(np.isnan(result), np.isnan(reference))
        apart = steps(np.nan_to_num(result), np.nan_to_num(reference), scale)
        assert apart.max(initial=0) <= 1
        assert np.count_nonzero(apart) <= max(0.01 * apart.size, 1)
    assert not reasons(ours)


def with_weight(m: Maker, weight: str, **attributes: Any) -> bytes:
    m.qdq(m.add("Conv", m.qdq("x", 0.02), weight, **attributes), 0.05)
    m.rename("y")
    return m.model({"x": SHAPE}, ["y"])


@pytest.mark.exact_host
@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 25])
def test_versions(opset: int) -> None:
    m = Maker(opset)
    w, _ = m.weight(4, 3, 3, 3, axis=0 if opset >= 13 else None)
    check(with_weight(m, w), 0.05)


def test_no_zero_points() -> None:
    m = Maker()
    scale = m.constant(np.float32(0.02))
    x = m.add("DequantizeLinear", m.add("QuantizeLinear", "x", scale), scale)
    w = m.add("DequantizeLinear", m.constant(m.random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)), scale)
    m.add("QuantizeLinear", m.add("Conv", x, w), m.constant(np.float32(0.05)))
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"], {"y": "UINT8"}), 1)


def test_a_type_by_attribute() -> None:
    m = Maker(21)
    scale = m.constant(np.float32(0.05))
    m.add("QuantizeLinear", m.qdq("x", 0.02), scale, output_dtype=TensorProto.INT8)
    m.add("DequantizeLinear", m.add("MaxPool", m.nodes[-1].output[0], kernel_shape=[2, 2]), scale)
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"]), 0.05)


def test_one_scale_in_a_list() -> None:
    m = Maker()
    parameters = [m.constant(np.float32([0.02])), m.constant(np.uint8([120]))]
    w = m.dq(m.constant(np.int8(m.random.integers(-127, 128, (1, 3, 3, 3)))), [0.01], [0], "INT8", axis=0)
    x = m.add("DequantizeLinear", m.add("QuantizeLinear", "x", *parameters), *parameters)
    m.qdq(m.add("Conv", x, w), 0.05)
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"]), 0.05)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), 0.0, -0.02])
def test_scales_of_activations(scale: float) -> None:
    m = Maker()
    m.add("Relu", m.qdq("x", scale))
    m.rename("y")
    model = m.model({"x": SHAPE}, ["y"])
    ours, cpu = providers.session(model, tune="off", never_worse=False, min_region_size=1), cpu_session(model)
    assert any("its scale is" in reason for reason in host_nodes(ours)["QuantizeLinear"])
    feeds = random_feeds(cpu)
    np.testing.assert_array_equal(ours.run(None, feeds)[0], cpu.run(None, feeds)[0])


@pytest.mark.exact_host
@pytest.mark.parametrize("scale", [0.0, -0.01, 1e-44])
def test_scales_of_weights(scale: float) -> None:
    """One channel has such a scale; a dead one often does."""
    m = Maker()
    values = m.constant(m.random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8))
    w = m.dq(values, np.float32([0.01, scale, 0.02, 0.01]), np.zeros(4), "INT8", axis=0)
    check(with_weight(m, w), 0.05)


def test_a_tiny_range() -> None:
    m = Maker()
    m.add("Relu", m.qdq("x", 1e-44, 0))
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"]), 1e-44)


def test_numbers_that_no_byte_has() -> None:
    m = Maker()
    m.qdq("x", 0.02, 100)
    m.rename("y")
    x = np.float32([[np.inf, -np.inf, 1e30, -1e30, 0, -0.0, 1e-45, 3.4e38]])
    check(m.model({"x": x.shape}, ["y"]), 0.02, feeds={"x": x})


@pytest.mark.parametrize("what", ["scale", "zero point", "both"])
def test_parameters_that_are_inputs(what: str) -> None:
    m = Maker()
    scale = "s" if what != "zero point" else m.constant(np.float32(0.02))
    zero = "z" if what != "scale" else m.constant(np.uint8(120))
    x = m.add("DequantizeLinear", m.add("QuantizeLinear", "x", scale, zero), scale, zero)
    w, _ = m.weight(4, 3, 3, 3)
    m.qdq(m.add("Conv", x, w), 0.05)
    m.rename("y")
    inputs: dict[str, Any] = {"x": SHAPE}
    inputs |= {"s": ()} if scale == "s" else {}
    inputs |= {"z": ()} if zero == "z" else {}
    feeds = {"x": np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)}
    feeds |= {"s": np.float32(0.02)} if scale == "s" else {}
    feeds |= {"z": np.uint8(120)} if zero == "z" else {}
    feeds = {name: np.asarray(value) for name, value in feeds.items()}
    check(m.model(inputs, ["y"], {"z": "UINT8"}), 0.05, "its (scale|zero point) is not constant", feeds)


def test_a_scale_that_another_node_computes() -> None:
    m = Maker()
    scale = m.add("ReduceMax", m.add("Abs", "x"), keepdims=0)
    q = m.add("QuantizeLinear", "x", scale, m.constant(np.int8(0)))
    m.add("Relu", m.add("DequantizeLinear", q, scale, m.constant(np.int8(0))))
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"]), 1.0, "its scale is not constant")


def test_weights_that_are_inputs() -> None:
    m = Maker()
    w = m.dq("w", np.float32([0.01, 0.02, 0.01, 0.02]), np.zeros(4), "INT8", axis=0)
    m.qdq(m.add("Conv", m.qdq("x", 0.02), w), 0.05)
    m.rename("y")
    check(m.model({"x": SHAPE, "w": (4, 3, 3, 3)}, ["y"], {"w": "INT8"}), 0.05, "its input 1 is not constant")


@pytest.mark.parametrize("axis", [4, -5])
def test_an_axis_beyond_the_rank(axis: int) -> None:
    m = Maker()
    values = m.constant(m.random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8))
    w = m.dq(values, np.float32([0.01, 0.02, 0.02, 0.01]), np.zeros(4), "INT8", axis=axis)
    check(with_weight(m, w), 0.05, "the axis of its scales is not one of the tensor's")


def test_another_scale_behind() -> None:
    """Dequantized by other parameters than those that it was quantized by."""
    m = Maker()
    m.add("Sigmoid", m.dq(m.q(m.add("Relu", "x"), 0.02, 0), 0.03, 10))
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"]), 1e-4, "has another scale or zero point")


def test_two_meanings_of_one_input() -> None:
    m = Maker()
    m.add("Add", m.dq("x", 0.02, 120), m.dq("x", 0.03, 10))
    m.rename("y")
    check(m.model({"x": SHAPE}, ["y"], {"x": "UINT8"}), 1e-4, "other ops read 'x' otherwise")


@pytest.mark.parametrize(("rows", "block"), [(32, 16), (30, 16)], ids=["even", "ragged"])
def test_blocks(rows: int, block: int) -> None:
    m = Maker(21)
    values = m.constant(m.random.integers(-127, 128, (rows, 6)).astype(np.int8))
    scales = m.constant((0.01 + 0.01 * m.random.random((-(-rows // block), 6))).astype(np.float32))
    w = m.add("DequantizeLinear", values, scales, axis=0, block_size=block)
    m.add("MatMul", "x", w)
    m.rename("y")
    check(m.model({"x": (5, rows)}, ["y"]), 1e-3, "not one for each index of an axis")


def test_four_bits_of_an_odd_count() -> None:
    m = Maker(21)
    m.constants["s"] = np.float32(0.1)
    m.nodes.append(helper.make_node("DequantizeLinear", ["w", "s"], ["d"]))
    m.add("MatMul", m.qdq("x", 0.02), "d")
    m.rename("y")
    model = onnx.load_from_string(m.model({"x": (3, 5), "w": (5, 3)}, ["y"], {"w": "INT4"}))
    values = m.random.integers(0, 256, 8).astype(np.uint8).tobytes()
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, (5, 3), values, raw=True))
    del model.graph.input[1]
    check(model.SerializeToString(), 1e-3, "'w' is int4")


@pytest.mark.parametrize("kind", ["UINT16", "INT16", "FLOAT8E4M3FN"])
def test_other_types(kind: str) -> None:
    number = TensorProto.DataType.Value(kind)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=number),
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    model = make_model(nodes, {"x": SHAPE}, {"y": None}, {"s": np.float32(0.02)}, 21)
    check(model, 0.02, f"'q' is {kind.lower()}")


def test_half_precision() -> None:
    """Scales of two bytes; the host's own results are rounded to them."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    constants = {"s": np.float16(0.02), "z": np.uint8(100)}
    model = make_model(nodes, {"x": SHAPE}, {"y": None}, constants, 21, types={"x": "FLOAT16", "y": "FLOAT16"})
    check(model, 0.02)


def test_open_shapes() -> None:
    m = Maker()
    w, _ = m.weight(4, 3, 3, 3, axis=0)
    c = m.qdq(m.add("Relu", m.add("Conv", m.qdq("x", 0.02), w)), 0.05, 3)
    m.add("GlobalAveragePool", c)
    m.rename("y")
    check(m.model({"x": ("n", 3, "h", "w")}, ["y"]), 0.05, sizes={"n": 2, "h": 9, "w": 11})


def test_an_empty_batch() -> None:
    m = Maker()
    m.add("Relu", m.qdq("x", 0.02))
    m.rename("y")
    session = providers.session(m.model({"x": ("n", 3)}, ["y"]), tune="off", min_region_size=1)
    assert session.run(None, {"x": np.zeros((0, 3), np.float32)})[0].shape == (0, 3)


def test_a_step_of_the_host_inside() -> None:
    """It is given the reals of bytes."""
    m = Maker()
    region, scales = m.constant(np.float32([0, 0, 0, 0, 1, 1, 1.5, 1])), m.constant(np.float32([1, 1, 1.7, 1.3]))
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}  # of more than there is
    y = m.add("Resize", m.qdq(m.add("Relu", "x"), 0.02), region, scales, mode="nearest", **crop)
    m.qdq(m.add("Relu", y), 0.02)
    m.rename("y")
    model = m.model({"x": ("n", 3, "h", "w")}, ["y"])
    session = whole_session(model)
    feeds = random_feeds(session, {"n": 1, "h": 7, "w": 9})
    np.testing.assert_array_equal(session.run(None, feeds)[0], cpu_session(model).run(None, feeds)[0])
    assert not reasons(session)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "GlobalAveragePool", "AveragePool"])
def test_what_changes_no_value(op: str) -> None:
    """Such layers go, and bytes stand where reals did."""
    m = Maker()
    x = m.qdq("x", 0.02, 0)
    if op.startswith("Reduce"):
        y = m.add(op, x, m.constant(np.int64([2, 3])))
    else:
        y = m.add(op, x, **({"kernel_shape": [1, 1]} if op == "AveragePool" else {}))
    m.qdq(m.add("Flatten", m.add("Sigmoid", y)), 1 / 256, 0)
    m.rename("y")
    check(m.model({"x": (2, 37, 1, 1)}, ["y"]), 1 / 256)
