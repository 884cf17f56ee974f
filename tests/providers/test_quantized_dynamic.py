"""Models whose activations are quantized in the run, as quantize_dynamic writes them."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_model, check_same, cpu_session, random_feeds, reasons, relative_error
from tests.providers.quantized import KINDS, Maker
from tests.providers.test_ep_context import compiled, load
from tests.providers.test_quantized_units import host_nodes, session

MICROSOFT = {"domain": "com.microsoft"}


def layers(made: Any) -> Counter[str]:
    """Counts the layers of the nets that have been prepared, by type."""
    prepared = [event for event in events(made) if event["event"] == "prepared"]
    return Counter(layer["type"] for event in prepared for layer in event["layers"])


def weight(m: Maker, c: int, k: int, kind: str = "INT8", zero: int = 0, columns: bool = False) -> list[str]:
    """Values, scale and zero point."""
    info = np.iinfo(KINDS[kind])
    values = m.random.integers(info.min, info.max + 1, (c, k)).astype(KINDS[kind])
    scale = m.scales(k if columns else None, 0.01)
    zeros = np.full(np.shape(scale), zero, KINDS[kind])
    return [m.constant(values), m.constant(scale), m.constant(zeros)]


def product(m: Maker, x: list[str], w: list[str], bias: int | None = None, *, swapped: bool = False) -> str:
    """A product of what DynamicQuantizeLinear makes, as the quantizer spells it out."""
    q, scale, zero = x
    values, weight_scale, weight_zero = w
    sums = m.add("Cast", m.add("MatMulInteger", q, values, zero, weight_zero), to=TensorProto.FLOAT)
    factor = m.add("Mul", *([weight_scale, scale] if swapped else [scale, weight_scale]))
    y = m.add("Mul", *([factor, sums] if swapped else [sums, factor]))
    if bias is not None:
        operands = [y, m.constant(m.random.standard_normal(bias).astype(np.float32))]
        y = m.add("Add", *(reversed(operands) if swapped else operands))
    return str(y)


@pytest.mark.exact_host
@pytest.mark.parametrize(("kind", "zero"), [("INT8", 0), ("INT8", -7), ("UINT8", 128), ("UINT8", 0), ("UINT8", 77)])
@pytest.mark.parametrize("columns", [False, True])
def test_weights(kind: str, zero: int, columns: bool) -> None:
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    product(m, x, weight(m, 40, 21, kind, zero, columns), 21 if columns else None, swapped=columns)
    m.rename("y")
    model = m.model({"x": ("n", 5, 40)}, ["y"])
    for n in (1, 3):
        check_model(model, {"n": n}, bound=1e-6)


@pytest.mark.exact_host
def test_several_products_of_one_tensor() -> None:
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    for name, k, zero in (("a", 8, 0), ("b", 16, 3), ("c", 24, 0)):
        product(m, x, weight(m, 40, k, zero=zero), k if name != "b" else None)
        m.rename(name)
    model = m.model({"x": (7, 40)}, ["a", "b", "c"])
    check_model(model, bound=1e-6)
    made = session(model)
    check_same(made, cpu_session(model), random_feeds(made), 1e-6)
    assert not host_nodes(made)
    assert layers(made) == {"dynamic_linear": 3}
    assert not any("in_floats" in layer for event in events(made) for layer in event.get("layers", []))


@pytest.mark.exact_host
def test_values_that_are_all_zero_or_not_finite() -> None:
    m = Maker()
    product(m, m.add("DynamicQuantizeLinear", "x", outputs=3), weight(m, 40, 8), 8)
    m.rename("y")
    model = m.model({"x": (7, 40)}, ["y"])
    made, cpu = session(model), cpu_session(model)
    for x in (np.zeros((7, 40), np.float32), np.full((7, 40), 3, np.float32)):
        check_same(made, cpu, {"x": x}, 1e-6)
    x[2, 3] = np.nan
    assert np.isnan(made.run(None, {"x": x})[0]).all()


def taken_whole_or_not(m: Maker, outputs: list[str], types: dict[str, str] | None = None) -> dict[str, list[str]]:
    """The host's nodes of a model that is right."""
    model = m.model({"x": (7, 40)}, outputs, types)
    made, cpu = session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    for result, reference in zip(made.run(None, feeds), cpu.run(None, feeds), strict=True):
        assert relative_error(result, reference) <= 1e-6
    assert not reasons(made)
    return host_nodes(made)


def test_bytes_that_others_read() -> None:
    m = Maker()
    m.add("Relu", "x")
    x = m.add("DynamicQuantizeLinear", m.nodes[-1].output[0], outputs=3)
    product(m, x, weight(m, 40, 8))
    m.rename("y")
    m.add("Identity", x[0])
    m.rename("q")
    model = m.model({"x": (7, 40)}, ["y", "q"], {"y": "FLOAT", "q": "UINT8"})
    made = session(model)
    check_same(made, cpu_session(model), random_feeds(made), 1e-6)
    (event,) = [event for event in events(made) if event["event"] == "partition"]
    assert {"DynamicQuantizeLinear", "MatMulInteger"} <= {step["op"] for step in event["steps"]}
    assert not {"dynamic_linear", "dynamic_quantize"} & set(layers(made))


@pytest.mark.exact_host
@pytest.mark.parametrize("scaled", ["not", "by another", "by it and a column"])
def test_sums_that_are_scaled_otherwise(scaled: str) -> None:
    """They are whole numbers all the same."""
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    values, _, zero = weight(m, 40, 8)
    sums = m.add("Cast", m.add("MatMulInteger", x[0], values, x[2], zero), to=TensorProto.FLOAT)
    factor = sums
    if scaled == "by another":
        factor = m.add("DynamicQuantizeLinear", m.add("Sigmoid", "x"), outputs=3)[1]
    elif scaled == "by it and a column":
        factor = m.add("Mul", x[1], m.constant(np.float32(range(1, 8)).reshape(7, 1)))
    m.add("Mul", sums, factor)
    m.rename("y")
    m.add("Relu", x[1])  # the scale is a number like others
    m.rename("scale")
    model = m.model({"x": (7, 40)}, ["y", "scale"])
    made = session(model)
    check_same(made, cpu_session(model), random_feeds(made), 1e-6)
    assert not host_nodes(made)
    whole = scaled == "by it and a column"
    assert layers(made)["dynamic_linear"] == whole
    assert layers(made)["linear"] == (not whole)


def test_bytes_that_are_a_result() -> None:
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    product(m, x, weight(m, 40, 8))
    m.rename("y")
    host = taken_whole_or_not(m, ["y", x[0]], {"y": "FLOAT", x[0]: "UINT8"})
    assert host["DynamicQuantizeLinear"] == ["its bytes are a result"]


@pytest.mark.exact_host
def test_sums_that_others_read() -> None:
    """What one product of two needs is with the host, so the bytes are."""
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    product(m, x, weight(m, 40, 8))
    m.rename("y")
    values, _, zero = weight(m, 40, 8)
    m.add("MatMulInteger", x[0], values, x[2], zero)
    m.rename("sums")
    host = taken_whole_or_not(m, ["y", "sums"], {"y": "FLOAT", "sums": "INT32"})
    assert {"DynamicQuantizeLinear", "MatMulInteger"} <= set(host)


def test_near_misses() -> None:
    """Another zero point than the tensor's own, a scale of other rows, weights that flow."""
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    product(m, [x[0], x[1], m.constant(np.uint8(3))], weight(m, 40, 8))
    m.rename("a")
    w = weight(m, 40, 8)
    product(m, m.add("DynamicQuantizeLinear", "x", outputs=3), [w[0], m.constant(np.ones((7, 1), np.float32)), w[2]])
    m.rename("b")
    t = m.add("DynamicQuantizeLinear", m.add("Transpose", "x", perm=[1, 0]), outputs=3)
    product(m, m.add("DynamicQuantizeLinear", "x", outputs=3), [t[0], t[1], t[2]])
    m.rename("c")
    assert "DynamicQuantizeLinear" in taken_whole_or_not(m, ["a", "b", "c"])


@pytest.mark.exact_host
@pytest.mark.parametrize("bias", [True, False])
def test_as_one_op(bias: bool) -> None:
    m = Maker()
    more = [m.constant(np.float32(range(8)))] if bias else []
    m.add("DynamicQuantizeMatMul", "x", *weight(m, 40, 8, "UINT8", 77), *more, **MICROSOFT)
    m.rename("a")
    q, scale, zero = m.add("DynamicQuantizeLinear", "x", outputs=3)
    values, weight_scale, weight_zero = weight(m, 40, 8, columns=True)
    m.add("MatMulIntegerToFloat", q, values, scale, weight_scale, zero, weight_zero, *more, **MICROSOFT)
    m.rename("b")
    check_model(m.model({"x": (2, 7, 40)}, ["a", "b"]), bound=1e-6)


def transformer(width: int = 32, heads: int = 4) -> Any:
    """A block of one, of any number of tokens."""
    m = Maker(opset=20)

    def linear(x: str, k: int, c: int) -> str:
        values = m.constant((m.random.standard_normal((c, k)) / np.sqrt(c)).astype(np.float32))
        return str(m.add("Add", m.add("MatMul", x, values), m.constant(m.random.standard_normal(k).astype(np.float32))))

    def norm(x: str) -> str:
        ones = m.constant(np.ones(width, np.float32))
        return str(m.add("LayerNormalization", x, ones, m.constant(np.zeros(width, np.float32))))

    def split(x: str, perm: list[int]) -> str:
        return str(m.add("Transpose", m.add("Reshape", x, m.constant([0, 0, heads, width // heads])), perm=perm))

    x = norm("x")
    q, k, v = (linear(x, width, width) for _ in range(3))
    scores = m.add("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
    mixed = m.add("MatMul", m.add("Softmax", scores, axis=-1), split(v, [0, 2, 1, 3]))
    joined = m.add("Reshape", m.add("Transpose", mixed, perm=[0, 2, 1, 3]), m.constant([0, 0, width]))
    x = m.add("Add", "x", linear(joined, width, width))
    m.add("Add", x, linear(m.add("Gelu", linear(norm(x), 4 * width, width)), width, 4 * width))
    m.rename("y")
    return onnx.load_model(io.BytesIO(m.model({"x": (1, "tokens", width)}, ["y"])))


@pytest.mark.exact_host
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_a_transformer(kind: Any, per_channel: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "dynamic.onnx")
    quantize_dynamic(transformer(), path, weight_type=kind, per_channel=per_channel)
    made, cpu = session(path), cpu_session(path)
    feeds = random_feeds(cpu, {"tokens": 19})
    # Last digits decide about some steps.
    assert relative_error(made.run(None, feeds)[0], cpu.run(None, feeds)[0]) < 0.02
    assert layers(made)["dynamic_linear"] == 6
    assert not host_nodes(made)


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(transformer(), path, weight_type=QuantType.QUInt8)
    model = path.read_bytes()
    made = load(compiled(model, tmp_path))
    feeds = random_feeds(made, {"tokens": 19})
    check_same(made, session(model), feeds)
    assert layers(made)["dynamic_linear"] == 6


@pytest.mark.exact_host
def test_tuned_and_compared_with_the_host() -> None:
    """Two products in a chain: what differs by steps is no error."""
    m = Maker()
    h = product(m, m.add("DynamicQuantizeLinear", "x", outputs=3), weight(m, 64, 128, columns=True), 128)
    h = m.add("Relu", h)
    product(m, m.add("DynamicQuantizeLinear", h, outputs=3), weight(m, 128, 64), 64)
    m.rename("y")
    model = m.model({"x": (16, 64)}, ["y"])
    made = providers.session(model, min_region_size=1, never_worse=False, time_budget_s=1)
    feeds = random_feeds(made)
    assert relative_error(made.run(None, feeds)[0], cpu_session(model).run(None, feeds)[0]) < 0.01
    (event,) = [event for event in events(made) if event["event"] == "prepared"]
    assert event["host"] == ""
    assert layers(made)["dynamic_linear"] == 2
