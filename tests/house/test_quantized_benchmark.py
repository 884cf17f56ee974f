"""How much of a network's work the benchmark of quantized ones takes for integers' work."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

quantized = pytest.importorskip("benchmarks.quantized")


def model(path: Path) -> str:
    weights = {"w": np.zeros((8, 2, 3, 3)), "v": np.zeros((5, 8)), "u": np.zeros((5, 7))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", group=2, pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["g"], "gemm", transB=1),
        helper.make_node("MatMul", ["g", "u"], ["y"], "matmul"),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", 1, (3, 4, 10, 9))],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return str(path)


def test_multiply_adds(tmp_path: Path) -> None:
    found = quantized.multiply_adds(model(tmp_path / "model.onnx"))
    assert found == {"conv": 3 * 8 * 10 * 9 * 2 * 9, "gemm": 3 * 5 * 8, "matmul": 3 * 7 * 5}


def test_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fused layer's routine is told at the last of its layers; plans of regions that were made again count once."""
    layers = [
        {"name": "a", "type": "conv2d", "descriptor": ""},
        {"name": "q", "type": "quantize", "descriptor": "conv2d/cpu:qint8:nhwc/gemm_avx2"},
        {"name": "b", "type": "linear", "descriptor": "linear/cpu:float32:nchw->cpu:qint8:nchw/gemm_avx2"},
    ]
    event = {"event": "prepared", "region": "y", "host": "", "layers": layers}
    monkeypatch.setattr(quantized, "events", lambda _: [event, event])
    assert quantized.share_in_integers(None, {"a": 30, "b": 10}) == 0.75
    monkeypatch.setattr(quantized, "events", lambda _: [event, {**event, "host": "it was slower"}])
    assert quantized.share_in_integers(None, {"a": 30, "b": 10}) == 0
