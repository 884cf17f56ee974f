"""Files that ONNX Runtime has optimised for itself: integer ops with their channels last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, random_feeds, reasons, whole_session
from tests.providers.quantized import Maker


class Samples(CalibrationDataReader):
    """White images."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.images = iter([{"x": random.standard_normal((1, 3, 20, 20)).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> Any:
        return next(self.images, None)


def network() -> bytes:
    """Convolutions of several kinds, a residual, pools, functions of bytes, a concatenation."""
    m = Maker(17)

    def conv(x: str, c: int, k: int, size: int, **attributes: Any) -> str:
        w = m.random.standard_normal((k, c // attributes.get("group", 1), size, size)) / (c**0.5 * size)
        b = m.constant(m.random.standard_normal(k).astype(np.float32))
        return str(m.add("Conv", x, m.constant(w.astype(np.float32)), b, **attributes))

    x = m.add("Relu", conv("x", 3, 16, 3, strides=[2, 2], pads=[1] * 4))
    x = m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = m.add("Relu", conv(x, 16, 16, 3, pads=[1] * 4, group=16))
    x = m.add("Relu", m.add("Add", conv(y, 16, 16, 1), x))
    x = m.add("LeakyRelu", conv(x, 16, 32, 3, pads=[1] * 4), alpha=0.1)
    x = m.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = conv(x, 32, 32, 1)
    y = m.add("Mul", y, m.add("Sigmoid", y))
    x = m.add("Relu", conv(m.add("Concat", y, x, axis=1), 64, 48, 1))
    m.add("Flatten", m.add("GlobalAveragePool", x))
    m.rename("y")
    return m.model({"x": (1, 3, 20, 20)}, ["y"])


def optimised(path: Path, form: str, activations: str, weights: str) -> bytes:
    """As the runtime leaves it: quantized ahead, and its channels last."""
    plain, quantized, final = path / "plain.onnx", path / "quantized.onnx", path / "final.onnx"
    plain.write_bytes(network())
    kinds = {"activation_type": QuantType[activations], "weight_type": QuantType[weights]}
    quantize_static(plain, quantized, Samples(), QuantFormat[form], per_channel=form == "QDQ", **kinds)
    settings = onnxruntime.SessionOptions()
    settings.optimized_model_filepath = str(final)
    settings.log_severity_level = 3
    onnxruntime.InferenceSession(str(quantized), settings, providers=["CPUExecutionProvider"])
    return final.read_bytes()


@pytest.mark.parametrize(
    ("form", "activations", "weights"),
    [("QDQ", "QUInt8", "QUInt8"), ("QDQ", "QUInt8", "QInt8"), ("QOperator", "QInt8", "QInt8")],
)
def test_one_region_in_integers(tmp_path: Path, form: str, activations: str, weights: str) -> None:
    model = optimised(tmp_path, form, activations, weights)
    ops = [node.op_type for node in onnx.load_from_string(model).graph.node]
    assert {"NhwcMaxPool", "QLinearConv", "QLinearAveragePool", "QLinearGlobalAveragePool"} <= set(ops)
    ours, cpu = whole_session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    result, reference = ours.run(None, feeds)[0], cpu.run(None, feeds)[0]
    assert np.abs(result - reference).max() <= 0.02 * np.abs(reference).max()  # a step here and there
    assert not reasons(ours)
    layers = [layer for event in events(ours) if event["event"] == "prepared" for layer in event["layers"]]
    kinds = [layer["type"] for layer in layers]
    # Transposes have met, but for those that the image's channels come last by.
    assert kinds.count("transpose") <= 1, kinds
    assert kinds.count("conv2d") == ops.count("QLinearConv")
    assert not [layer for layer in layers if layer["type"] == "conv2d" and "in_floats" in layer]


def test_lists_with_channels_last() -> None:
    """One spatial axis; its weights stay as they are."""
    m = Maker(17)
    w = m.constant(m.random.integers(-60, 61, (8, 6, 3)).astype(np.int8))
    scale, zero = m.constant(np.float32(0.02)), m.constant(np.uint8(120))
    weight_scale, weight_zero = m.constant(np.float32(0.01)), m.constant(np.int8(0))
    y = m.add(
        "QLinearConv", "x", scale, zero, w, weight_scale, weight_zero, scale, zero,
        domain="com.microsoft", channels_last=1, pads=[1, 1], kernel_shape=[3],
    )  # fmt: skip
    m.add("NhwcMaxPool", y, domain="com.microsoft", kernel_shape=[2], strides=[2])
    m.rename("y")
    model = m.model({"x": (2, 10, 6)}, ["y"], {"x": "UINT8", "y": "UINT8"})
    ours, cpu = whole_session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    result, reference = ours.run(None, feeds)[0], cpu.run(None, feeds)[0]
    assert np.abs(result.astype(int) - reference).max() <= 1
    assert not reasons(ours)
