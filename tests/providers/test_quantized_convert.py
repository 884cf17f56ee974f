"""`convert` on quantized models: bytes through ops of ours, and the results of the model as it was."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import softneuro
from softneuro import error_measure, providers
from tests.providers.conftest import cpu_session, random_feeds
from tests.providers.quantized import Maker, steps
from tests.providers.test_custom_ops import DOMAIN, ops_session
from tests.providers.test_qlinear import X, Z, bias, operand, weight, zero
from tests.providers.test_qlinear import result as result_of
from tests.providers.test_quantized_networks import NETWORKS, quantized

SHAPE = (2, 3, 9, 8)


def converted(model: bytes, folder: Path) -> tuple[Counter[str], dict[str, str]]:
    """How often there is each op, ours by a name of its own, and the routines."""
    routines = providers.convert(model, folder / "out.onnx", tune="off", min_region_size=1)
    nodes = onnx.load(folder / "out.onnx").graph.node
    return Counter(("our " if node.domain == DOMAIN else "") + node.op_type for node in nodes), routines


def agree(model: bytes, folder: Path, scale: float, sizes: dict[str, int] | None = None) -> np.ndarray:
    """Results by the CPU provider alone, before and after."""
    cpu = cpu_session(model)
    feeds = random_feeds(cpu, sizes)
    result, expected = ops_session(str(folder / "out.onnx")).run(None, feeds)[0], cpu.run(None, feeds)[0]
    apart = steps(result, expected, scale if result.dtype == np.float32 else 1)
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= max(0.01 * apart.size, 1)
    assert result.min() < result.max()
    return np.asarray(result)


def conv(m: Maker, x: str, axis: int | None = 0, kind: str = "INT8", **attributes: Any) -> str:
    w, scales = m.weight(4, 3, 3, 3, axis=axis, kind=kind, zero=128 if kind == "UINT8" else 0)
    return str(m.add("Conv", x, w, m.bias(4, 0.02, scales), **attributes))


@pytest.mark.exact_host
@pytest.mark.parametrize("axis", [None, 0], ids=["tensor", "channel"])
@pytest.mark.parametrize("kinds", ["UINT8 INT8", "UINT8 UINT8", "INT8 INT8"])
@pytest.mark.parametrize("clamp", ["none", "relu", "clip"])
def test_a_convolution(clamp: str, kinds: str, axis: int | None, tmp_path: Path) -> None:
    kind, weights = kinds.split()
    m = Maker()
    less = 0 if kind == "UINT8" else 128
    real = conv(m, m.qdq("x", 0.02, 117 - less, kind), axis, weights, pads=[1, 0, 2, 1], strides=[2, 1])
    offset = {"none": 100, "relu": 40, "clip": 0}[clamp] - less
    if clamp == "relu":
        real = m.add("Relu", real)
    if clamp == "clip":
        real = m.add("Clip", real, m.constant(np.float32(0)), m.constant(np.float32(6)))
    m.qdq(real, 6 / 255, offset, kind)
    m.rename("y")
    model = m.model({"x": SHAPE}, ["y"])
    nodes, routines = converted(model, tmp_path)
    assert nodes == {"our Quantize": 1, "our QConv": 1, "our Dequantize": 1}
    assert all(not name or name.startswith("conv2d/cpu:qint8:nhwc/") for name in routines.values())
    result = agree(model, tmp_path, 6 / 255)
    assert clamp == "none" or result.min() == 0


@pytest.mark.exact_host
@pytest.mark.parametrize(
    ("planned", "named"),
    [
        ("conv2d/cpu:qint8:nhwc->cpu:float32:nhwc/int8_scalar", "conv2d/cpu:qint8:nhwc/int8_scalar"),
        ("conv2d/cpu:qint8:nhwc/int8_scalar", "conv2d/cpu:qint8:nhwc/int8_scalar"),
        ("conv2d/cpu:float32:nchw/direct_scalar{rows=1,split=0}", ""),
    ],
)
def test_routines_of_a_plan(planned: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those from bytes to reals are named as they are to bytes. One of reals is none for bytes."""
    m = Maker()
    m.qdq(conv(m, m.qdq("x", 0.02)), 0.05)
    m.rename("y")
    layer = next(node.output[0] for node in m.nodes if node.op_type == "Conv")
    monkeypatch.setattr(sys.modules["softneuro.providers.convert"], "_routines", lambda *_: {layer: planned})
    model = m.model({"x": SHAPE}, ["y"])
    assert converted(model, tmp_path)[1] == {layer: named}
    agree(model, tmp_path, 0.05)


@pytest.mark.exact_host
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Gemm transB"])
@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
def test_a_linear_layer(op: str, kind: str, tmp_path: Path) -> None:
    m = Maker()
    turned = op == "Gemm transB"
    w, scales = m.weight(*((7, 33) if turned else (33, 7)), axis=0 if turned else 1)
    x = m.qdq("x", 0.02, 5, kind)
    name, *more = op.split()
    more_inputs = [m.bias(7, 0.02, scales)] if name == "Gemm" else []
    m.qdq(m.add(name, x, w, *more_inputs, **dict.fromkeys(more, 1)), 0.05, 3, kind)
    m.rename("y")
    model = m.model({"x": ("n", 33)}, ["y"])
    nodes, routines = converted(model, tmp_path)
    assert nodes == {"our Quantize": 1, "our QLinear": 1, "our Dequantize": 1}
    assert list(routines.values()) == [""]  # the shape is open
    agree(model, tmp_path, 0.05, {"n": 5})


@pytest.mark.exact_host
@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
@pytest.mark.parametrize("op", ["QLinearConv", "QLinearMatMul", "QGemm"])
def test_operators(op: str, kind: str, tmp_path: Path) -> None:
    """Between tensors of unsigned bytes. Signed ones of a model's own inputs and outputs stay what they are."""
    m = Maker()
    x, y = operand(m, "x", kind), result_of(m, kind)
    if op == "QLinearConv":
        shape: tuple[int, ...] = SHAPE
        m.add(op, *x, *weight(m, (4, 3, 3, 3), 0), *y, bias(m, 4), pads=[1, 1, 1, 1])
    elif op == "QLinearMatMul":
        shape = (5, 33)
        m.add(op, *x, *weight(m, (33, 7), 1), *y)
    else:
        shape = (5, 33)
        m.add(op, *x, *weight(m, (7, 33), 0), bias(m, 7), *y, transB=1, domain="com.microsoft")
    m.rename("y")
    model = m.model({"x": shape}, ["y"], {"x": kind, "y": kind})
    if kind == "INT8":
        with pytest.raises(softneuro.Error, match="no convolution"):
            converted(model, tmp_path)
        return
    nodes, _ = converted(model, tmp_path)
    assert nodes == {"our QConv" if op == "QLinearConv" else "our QLinear": 1}
    agree(model, tmp_path, 1)


@pytest.mark.parametrize("between", ["", "MaxPool", "Abs"])
def test_signed_bytes_between_operators(between: str, tmp_path: Path) -> None:
    """They become unsigned if all around them tells the zero point, and of one op all or none."""
    m = Maker()
    x = m.q("x", X, zero("INT8"), "INT8")
    for kernel in [(4, 3, 3, 3), (5, 4, 1, 1)]:
        y = result_of(m, "INT8", X, Z)
        x = m.add("QLinearConv", x, *operand(m, "", "INT8")[1:], *weight(m, kernel, 0), *y)
        x = m.add(between, x, **({"kernel_shape": [2, 2]} if between == "MaxPool" else {})) if between else x
    m.dq(x, X, zero("INT8"), "INT8")
    m.rename("y")
    model = m.model({"x": SHAPE}, ["y"])
    if between == "Abs":
        with pytest.raises(softneuro.Error, match="no convolution"):
            converted(model, tmp_path)
        return
    nodes, _ = converted(model, tmp_path)
    assert nodes == {"our Quantize": 1, "our QConv": 2, "our Dequantize": 1} | ({between: 2} if between else {})
    agree(model, tmp_path, X)


@pytest.mark.exact_host
def test_what_the_host_computes_between_bytes_stays(tmp_path: Path) -> None:
    """With what quantizes around it, as one."""
    m = Maker()
    a = m.qdq(conv(m, m.qdq("x", 0.02)), 0.05)
    total = m.qdq(m.add("Add", a, m.qdq("z", 0.02)), 0.05)
    m.add("Sigmoid", total)
    m.rename("y")
    model = m.model({"x": SHAPE, "z": (2, 4, 7, 6)}, ["y"])
    nodes, _ = converted(model, tmp_path)
    assert nodes == {
        "our Quantize": 2, "our QConv": 1, "DequantizeLinear": 2, "Add": 1, "QuantizeLinear": 1, "our Dequantize": 1,
        "Sigmoid": 1,
    }  # fmt: skip
    agree(model, tmp_path, 0.02)


@pytest.mark.exact_host
def test_a_product_that_stays_real(tmp_path: Path) -> None:
    """The host computes it with what dequantizes both operands."""
    m = Maker()
    hidden = m.qdq(m.add("MatMul", m.qdq("x", 0.02), m.weight(33, 16, axis=1)[0]), 0.05)
    m.add("MatMul", hidden, m.weight(16, 5, axis=1)[0])
    m.rename("y")
    model = m.model({"x": (3, 33)}, ["y"])
    nodes, _ = converted(model, tmp_path)
    assert nodes == {"our Quantize": 1, "our QLinear": 1, "DequantizeLinear": 2, "MatMul": 1}
    agree(model, tmp_path, 0.05)


def stay(**changed: Any) -> Maker:
    """A convolution in float32 behind one that cannot be taken, for a reason."""
    m = Maker(21)
    kind = changed.get("weights", "INT8")
    w, _ = m.weight(4, 3, 3, 3, axis=changed.get("axis"), kind=kind, zero=changed.get("zero", 0))
    c = m.add("Conv", m.qdq("x", changed.get("scale", 0.02)), w, **changed.get("attributes", {}))
    if "bounds" in changed:
        c = m.add("Clip", c, *(m.constant(np.float32(value)) for value in changed["bounds"]))
    q = m.q(c, 0.05)
    if changed.get("read_twice"):
        m.add("Sigmoid", c)
        m.rename("z")
    m.add("Conv", m.dq(q, 0.05), m.constant(m.random.standard_normal((2, 4, 1, 1)).astype(np.float32)))
    m.rename("y")
    return m


@pytest.mark.parametrize(
    "changed",
    [
        {"zero": 3},
        {"weights": "UINT8", "zero": 127},
        {"attributes": {"auto_pad": "SAME_UPPER"}},
        {"bounds": [-1, 1]},
        {"read_twice": True},
    ],
    ids=str,
)
def test_what_is_left(changed: dict[str, Any], tmp_path: Path) -> None:
    m = stay(**changed)
    model = m.model({"x": SHAPE}, ["y", *(["z"] if "read_twice" in changed else [])])
    nodes, _ = converted(model, tmp_path)
    assert "our QConv" not in nodes
    assert nodes["our Conv"] == 1
    agree(model, tmp_path, 0.02)


@pytest.mark.exact_host
@pytest.mark.parametrize("types", ["u8s8", "s8s8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, form: str, types: str, tmp_path: Path) -> None:
    path = quantized(name, tmp_path, form, types, True)
    model = Path(path).read_bytes()
    nodes, _ = converted(model, tmp_path)
    assert nodes["our QConv"] + nodes["our QLinear"] == 4
    x = {"x": np.random.default_rng(5).standard_normal((2, 3, 16, 16)).astype(np.float32)}
    result, expected = ops_session(str(tmp_path / "out.onnx")).run(None, x)[0], cpu_session(model).run(None, x)[0]
    assert error_measure.relative_error(result, expected) < 0.02


@pytest.mark.exact_host
def test_with_the_provider(tmp_path: Path) -> None:
    model = Path(quantized("plain", tmp_path, "QDQ", "u8s8", True)).read_bytes()
    converted(model, tmp_path)
    settings = onnxruntime.SessionOptions()
    settings.register_custom_ops_library(providers.get_library_path())
    ours = providers.session(tmp_path / "out.onnx", settings, tune="off", min_region_size=1)
    x = {"x": np.random.default_rng(5).standard_normal((2, 3, 16, 16)).astype(np.float32)}
    assert error_measure.relative_error(ours.run(None, x)[0], cpu_session(model).run(None, x)[0]) < 0.02
