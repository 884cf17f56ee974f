"""Small networks as onnxruntime.quantization writes them: in both formats, with both types, claimed whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnxruntime import quantization

from softneuro import error_measure
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model, reasons, whole_session

node = helper.make_node


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, shape: tuple[int, ...]) -> None:
        random = np.random.default_rng(0)
        self.batches = iter([{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.batches, None)


def plain(random: np.random.Generator) -> bytes:
    """Convolutions, an addition, both pools and a product."""

    def f32(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"]),
        node("MaxPool", ["r0"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Add", ["c1", "p"], ["a"]),
        node("Relu", ["a"], ["r1"]),
        node("Conv", ["r1", "w2"], ["d"], group=16, pads=[1, 1, 1, 1]),
        node("Concat", ["d", "r1"], ["j"], axis=1),
        node("GlobalAveragePool", ["j"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    constants = {
        "w0": f32(16, 3, 3, 3),
        "b0": f32(16),
        "w1": f32(16, 16, 3, 3),
        "b1": f32(16),
        "w2": f32(16, 1, 3, 3),
        "w3": f32(10, 32),
        "b3": f32(10),
    }
    return make_model(nodes, {"x": (2, 3, 16, 16)}, {"y": None}, constants, 13)


def block(random: np.random.Generator) -> bytes:
    """A residual block with strides and a convolution beside it, then sigmoid gates, an average and a matrix."""

    def f32(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Conv", ["x", "w2", "b2"], ["c2"], strides=[2, 2]),
        node("Add", ["c1", "c2"], ["a"]),
        node("Relu", ["a"], ["r1"]),
        node("GlobalAveragePool", ["r1"], ["g"]),
        node("Sigmoid", ["g"], ["s"]),
        node("Mul", ["r1", "s"], ["m"]),
        node("AveragePool", ["m"], ["v"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["v", "flat"], ["f"]),
        node("MatMul", ["f", "w3"], ["y"]),
    ]
    constants = {
        "w0": f32(8, 3, 3, 3),
        "b0": f32(8),
        "w1": f32(8, 8, 3, 3),
        "b1": f32(8),
        "w2": f32(8, 3, 1, 1),
        "b2": f32(8),
        "w3": f32(128, 6),
        "flat": np.array([2, -1], np.int64),
    }
    return make_model(nodes, {"x": (2, 3, 16, 16)}, {"y": None}, constants, 13)


NETWORKS = {"plain": plain, "block": block}
TYPES = {
    "u8s8": (quantization.QuantType.QUInt8, quantization.QuantType.QInt8),
    "s8s8": (quantization.QuantType.QInt8, quantization.QuantType.QInt8),
    "u8u8": (quantization.QuantType.QUInt8, quantization.QuantType.QUInt8),
}


def quantized(name: str, folder: Path, form: str, types: str, per_channel: bool) -> str:
    model = onnx.load_from_string(NETWORKS[name](np.random.default_rng(3)))
    path = str(folder / "quantized.onnx")
    activations, weights = TYPES[types]
    quantization.quantize_static(
        model,
        path,
        Calibration((2, 3, 16, 16)),
        quant_format=quantization.QuantFormat[form],
        activation_type=activations,
        weight_type=weights,
        per_channel=per_channel,
    )
    return path


def layers(session: Any) -> Counter[str]:
    return Counter(layer["type"] for event in events(session) for layer in event.get("layers", []))


@pytest.mark.exact_host
@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, form: str, types: str, per_channel: bool, tmp_path: Path) -> None:
    path = quantized(name, tmp_path, form, types, per_channel)
    ours, cpu = whole_session(path), cpu_session(path)
    x = np.random.default_rng(5).standard_normal((2, 3, 16, 16)).astype(np.float32)
    result, reference = ours.run(None, {"x": x})[0], cpu.run(None, {"x": x})[0]
    assert error_measure.relative_error(result, reference) < 0.02
    assert not reasons(ours)
    assert layers(ours)["quantize"] >= 4
