"""Float models written with QuantizeLinear and DequantizeLinear by calibrated ranges, run by the CPU provider."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import softneuro
from softneuro import _C, error_measure, providers
from tests.providers.conftest import cpu_session, make_model
from tests.providers.test_calibrated import BYTES, QUICK, batches, in_bytes, network, routines

pytestmark = pytest.mark.exact_host


def residual_network(size: int | str = 12) -> bytes:
    random = np.random.default_rng(3)
    constants: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int) -> str:
        constants[name] = (random.standard_normal(shape) / math.prod(shape[1:]) ** 0.5).astype(np.float32)
        return name

    def conv(x: str, name: str, channels: int) -> Any:
        inputs = [x, weight(f"{name}_w", 8, channels, 3, 3), weight(f"{name}_b", 8)]
        return helper.make_node("Conv", inputs, [f"{name}_y"], name=name, pads=[1, 1, 1, 1])

    nodes = [
        conv("x", "first", 3),
        helper.make_node("Relu", ["first_y"], ["a"]),
        conv("a", "second", 8),
        helper.make_node("Relu", ["second_y"], ["b"]),
        conv("b", "third", 8),
        helper.make_node("Add", ["third_y", "a"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["g"], name="last"),
        helper.make_node("Add", ["g", "n"], ["y"]),
    ]
    constants["m"] = random.standard_normal((8, 5)).astype(np.float32)
    constants["n"] = random.standard_normal(5).astype(np.float32)
    return make_model(nodes, {"x": (2, 3, size, size)}, {"y": (2, 5)}, constants)


def images(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(8)
    return [random.standard_normal((2, 3, 12, 12)).astype(np.float32) for _ in range(count)]


def error_of(path: Path, model: bytes, data: list[np.ndarray]) -> float:
    ours, floats = cpu_session(str(path)), cpu_session(model)
    pairs = [(ours.run(None, {"x": x})[0], floats.run(None, {"x": x})[0]) for x in data]
    return max(error_measure.relative_error(*pair) for pair in pairs)


def foretold(ranges: Path) -> float:
    """Of all roundings together."""
    sections = _C.RangeTable.load(str(ranges)).sections
    rows = [row for s in sections for row in (*s.blobs, *(one for one in s.layers if one.form == "bytes"))]
    return float(sum(row.error**2 for row in rows if row.error) ** 0.5)


@pytest.mark.parametrize("size", [12, "s"])
def test_all_layers(size: int | str, tmp_path: Path) -> None:
    model, ranges, out = residual_network(size), tmp_path / "ranges.txt", tmp_path / "out.onnx"
    providers.calibrate(model, images(6), ranges, method="min_max", options=QUICK)
    names = providers.to_qdq(model, out, ranges)
    assert names[:3] == ["first", "second", "third"]
    assert len(names) == 4  # the runtime has made one of MatMul and Add
    nodes = onnx.load(out).graph.node
    assert Counter(node.op_type for node in nodes)["QuantizeLinear"] == 5  # x, a, b, d, f
    error = error_of(out, model, images(3))
    assert 1e-4 < error < 0.1
    assert foretold(ranges) / 4 < error < 4 * foretold(ranges)


def test_layers_of_a_plan(tmp_path: Path) -> None:
    model, ranges, out = network(), tmp_path / "ranges.txt", tmp_path / "out.onnx"
    providers.calibrate(model, batches(6), ranges, method="min_max", options=QUICK)
    names = providers.to_qdq(model, out, ranges, max_error=0.05, options=BYTES)
    session = providers.session(model, calibration=ranges, max_error=0.05, **BYTES)
    assert len(names) == in_bytes(session) == 3
    assert 1e-4 < error_of(out, model, batches(4)) < 0.05
    ours = providers.session(out, tune="off")  # as any quantized model
    assert any("qint8" in routine for routine in routines(ours))


def test_what_is_refused(tmp_path: Path) -> None:
    ranges, out = tmp_path / "ranges.txt", tmp_path / "out.onnx"
    providers.calibrate(residual_network(), images(1), ranges, options=QUICK)
    with pytest.raises(softneuro.Error, match="no ranges of this model"):
        providers.to_qdq(network(), out, ranges)
    with pytest.raises(softneuro.Error, match="no layer"):
        providers.to_qdq(residual_network(), out, ranges, max_error=1e-9, options=QUICK)
    with pytest.raises(softneuro.Error, match="open"):
        providers.to_qdq(residual_network("s"), out, ranges, max_error=0.1, options=QUICK)
    with pytest.raises(softneuro.Error, match="missing"):
        providers.to_qdq(network(), out, tmp_path / "missing")
    assert not out.exists()


def one_layer(op: str) -> bytes:
    random = np.random.default_rng(4)
    groups = 2 if op == "grouped" else 1
    if op in {"Conv", "grouped"}:
        weight = random.standard_normal((6, 8 // groups, 3, 3))
        node = helper.make_node("Conv", ["x", "w", "b"] if op == "Conv" else ["x", "w"], ["z"], name="n", group=groups)
        shapes = {"x": (2, 8, 5, 5)}, {"y": (2, 6, 3, 3)}
    elif op == "Gemm":
        weight = random.standard_normal((6, 40))
        node = helper.make_node("Gemm", ["x", "w", "b"], ["z"], name="n", transB=1)
        shapes = {"x": (2, 40)}, {"y": (2, 6)}
    else:
        weight = random.standard_normal((40, 6))
        node = helper.make_node("MatMul", ["x", "w"], ["z"])  # which has no name
        shapes = {"x": (2, 40)}, {"y": (2, 6)}
    constants = {"w": weight.astype(np.float32), "b": random.standard_normal(6).astype(np.float32)}
    nodes = [node, helper.make_node("Relu", ["z"], ["y"])]
    return make_model(nodes, *shapes, {name: value for name, value in constants.items() if name in node.input})


@pytest.mark.parametrize("op", ["Conv", "grouped", "Gemm", "MatMul"])
def test_biases_make_up_for_weights(op: str, tmp_path: Path) -> None:
    model, ranges, out = one_layer(op), tmp_path / "ranges.txt", tmp_path / "out.onnx"
    # Steps of the input's grid: one, as it has values of 0 to 255. So weights alone are rounded.
    levels = np.linspace(0, 255, 8 if op in {"Conv", "grouped"} else 40).round().astype(np.float32)
    shape = (2, 8, 5, 5) if op in {"Conv", "grouped"} else (2, 40)
    data = [np.broadcast_to(levels.reshape(1, -1, *(1,) * (len(shape) - 2)), shape).copy()] * 2
    providers.calibrate(model, data, ranges, method="min_max", options=QUICK)
    assert providers.to_qdq(model, out, ranges) == ["z" if op == "MatMul" else "n"]
    assert error_of(out, model, data) < 1e-4
    table = _C.RangeTable.load(str(ranges))
    [section] = table.sections
    rows = section.layers
    for row in rows:
        row.corrected = False
    section.layers = rows
    table.set(section)
    table.save(str(ranges))
    providers.to_qdq(model, out, ranges)
    assert error_of(out, model, data) > 1e-3
