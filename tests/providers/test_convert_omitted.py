"""`convert` where inputs or outputs are left out, in the middle or at the end, and where callers override weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from softneuro import providers
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds
from tests.providers.quantized import Maker
from tests.providers.test_custom_ops import DOMAIN, ops_session
from tests.providers.test_quantized_convert import agree, converted
from tests.providers.test_sessions import f32, i64

node = helper.make_node


def test_real_ones(tmp_path: Path) -> None:
    """One of each kind: before constants, behind them, all, and among outputs."""
    nodes = [
        node("Conv", ["x", "w", ""], ["c"], pads=[1, 1, 1, 1]),
        node("Clip", ["c", "", "top"], ["k"]),
        node("Clip", ["k", "", ""], ["k2"]),
        node("Clip", ["k2", "low", ""], ["k3"]),
        node("Resize", ["k3", "", "scales"], ["r"], mode="nearest"),
        node("Resize", ["r", "", "", "sizes"], ["s"], mode="nearest"),
        node("MaxPool", ["s"], ["p", ""], kernel_shape=[2, 2]),
        node("Pad", ["p", "pads", "", "axes"], ["d"]),
        node("Dropout", ["d", "", "off"], ["o"]),
        node("Conv", ["o", "w2", "b"], ["c2"]),
        node("Slice", ["c2", "zero", "one", "", ""], ["l"]),
        node("ReduceMean", ["l", ""], ["m"], keepdims=1),
        node("Squeeze", ["m"], ["scalar"]),
        node("Flatten", ["l"], ["f"]),
        node("Gemm", ["f", "v", ""], ["g"], transB=1),
        node("LayerNormalization", ["g", "n"], ["h"]),
        node("GRU", ["seq", "gw", "gr", "", "", ""], ["", "last"], hidden_size=2),
        node("Add", ["h", "scalar"], ["y"]),
    ]
    constants = {
        "w": f32(4, 3, 3, 3), "w2": f32(2, 4, 1, 1), "b": f32(2), "v": f32(5, 128), "n": f32(5),
        "top": np.float32(1.5), "low": np.float32(-0.5), "scales": np.array([1, 1, 2, 2], np.float32),
        "sizes": i64(1, 4, 9, 8), "pads": i64(0, 1), "axes": i64(3), "off": np.array(False),
        "zero": i64(0), "one": i64(1), "gw": f32(1, 6, 3), "gr": f32(1, 6, 2),
    }  # fmt: skip
    model = make_model(nodes, {"x": (1, 3, 4, 4), "seq": (2, 1, 3)}, {"y": None, "last": None}, constants)
    replaced = providers.convert(model, tmp_path / "out.onnx", tune="off")
    assert len(replaced) == 3
    cpu = cpu_session(model)
    check_same(ops_session(str(tmp_path / "out.onnx")), cpu, random_feeds(cpu))


def test_quantized_ones(tmp_path: Path) -> None:
    """Zero points, biases, bounds, and a pooling's indices. Nothing that is left out is taken for another's value."""
    m = Maker()
    x = m.qdq("x", 0.02)
    w, scales = m.weight(4, 3, 3, 3, axis=0)
    both = m.constant(np.asarray(np.float32(0.02) * scales, np.float32))
    integers = m.constant(m.random.integers(-3000, 3000, 4).astype(np.int32))
    bias = m.add("DequantizeLinear", integers, both, "", axis=0)
    conv = m.add("Conv", x, w, bias, pads=[1, 1, 1, 1])
    clip = m.add("Clip", conv, "", m.constant(np.float32(3)))
    y = m.dq(m.q(clip, 0.02, 128), 0.02, 128)
    m.add("MaxPool", y, kernel_shape=[2, 2])
    m.nodes[-1].output.append("")
    w2, _ = m.weight(2, 4, 1, 1, axis=0)
    second = m.add("Conv", m.qdq(m.nodes[-1].output[0], 0.02), w2, "")
    scale = m.constant(np.float32(0.05))
    m.add("DequantizeLinear", m.add("QuantizeLinear", second, scale, ""), scale, "")
    m.rename("y")
    model = m.model({"x": (2, 3, 9, 8)}, ["y"])
    nodes, _ = converted(model, tmp_path)
    assert nodes["our QConv"] == 2
    agree(model, tmp_path, 0.05)


def test_weights_that_callers_override(tmp_path: Path) -> None:
    """They are no constants: their ops stay."""
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Flatten", ["c"], ["f"]), node("MatMul", ["f", "v"], ["y"])]
    constants = {"w": f32(2, 3, 3, 3), "v": f32(2 * 4 * 4, 5)}
    model = make_model(nodes, {"x": (1, 3, 6, 6), "v": (32, 5)}, {"y": None}, constants)
    assert len(providers.convert(model, tmp_path / "out.onnx", tune="off")) == 1
    ours, cpu = ops_session(str(tmp_path / "out.onnx")), cpu_session(model)
    assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node if n.domain == DOMAIN] == ["Conv"]
    feeds = {"x": f32(1, 3, 6, 6)}
    check_same(ours, cpu, feeds)
    check_same(ours, cpu, {**feeds, "v": -constants["v"]})
