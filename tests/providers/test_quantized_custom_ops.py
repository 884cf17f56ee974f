"""QConv, QLinear, Quantize and Dequantize: the host's bytes, with every routine, and clear about what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import softneuro
from tests.providers.conftest import cpu_session
from tests.providers.quantized import Maker
from tests.providers.test_custom_ops import DOMAIN, ops_session

X_SCALE, X_ZERO, Y_SCALE, Y_ZERO = 0.02, 117, 0.05, 9
GRIDS = {"x_scale": X_SCALE, "x_zero_point": X_ZERO, "y_scale": Y_SCALE, "y_zero_point": Y_ZERO}
random = np.random.default_rng(0)


def node_model(op: str, x: Any, constants: list[np.ndarray], **attributes: Any) -> bytes:
    names = [f"c{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="mine", domain=DOMAIN, **attributes)
    kinds = {"Quantize": (TensorProto.FLOAT, TensorProto.UINT8), "Dequantize": (TensorProto.UINT8, TensorProto.FLOAT)}
    kind, out = kinds.get(op, (TensorProto.UINT8, TensorProto.UINT8))
    info = helper.make_tensor_value_info
    tensors = [numpy_helper.from_array(value, name) for value, name in zip(constants, names, strict=True)]
    graph = helper.make_graph([node], "g", [info("x", kind, x)], [info("y", out, None)], tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def weight_bytes(*shape: int) -> np.ndarray:
    return random.integers(-127, 128, shape).astype(np.int8)


def scales(count: int | None) -> np.ndarray:
    return np.asarray(0.004 * (1 if count is None else 0.5 + random.random(count)), np.float32)


def image(*shape: int) -> np.ndarray:
    """Bytes with the least and the greatest among them."""
    x = random.integers(0, 256, shape).astype(np.uint8)
    x.flat[0], x.flat[-1] = 0, 255
    return x


def reference(op: str, x: np.ndarray, constants: list[np.ndarray], relu: bool = False, **attributes: Any) -> np.ndarray:
    """The same by ONNX's own ops, in float32."""
    m = Maker()
    w, w_scale, *bias = constants
    weight = m.dq(m.constant(w), w_scale, np.zeros(w_scale.shape), "INT8", **({"axis": 0} if w_scale.size > 1 else {}))
    real = m.dq("x", X_SCALE, X_ZERO)
    if op == "QConv":
        real = m.add("Conv", real, weight, *map(m.constant, bias), **attributes)
    else:
        real = m.add("MatMul", real, m.add("Transpose", weight))
        real = m.add("Add", real, m.constant(bias[0])) if bias else real
    m.q(m.add("Relu", real) if relu else real, Y_SCALE, Y_ZERO)
    m.rename("y")
    model = m.model({"x": x.shape}, ["y"], {"x": "UINT8", "y": "UINT8"})
    return np.asarray(cpu_session(model).run(None, {"x": x})[0])


def check_bytes(result: np.ndarray, expected: np.ndarray) -> None:
    assert result.dtype == np.uint8
    assert result.shape == expected.shape
    apart = np.abs(result.astype(int) - expected.astype(int))
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= max(0.01 * apart.size, 1)
    assert result.min() < result.max()


CONVS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9, 8), (4, 3, 3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    ((1, 8, 7, 7), (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    ((3, 16, 5, 6), (17, 16, 1, 1), {}),
    ((1, 4, 20), (6, 2, 3), {"dilations": [2], "group": 2}),
]


@pytest.mark.exact_host
@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), CONVS)
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_conv(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], attributes: dict[str, Any], by_channel: bool, bias: bool
) -> None:
    constants = [weight_bytes(*w_shape), scales(w_shape[0] if by_channel else None)]
    constants += [random.standard_normal(w_shape[0]).astype(np.float32)] if bias else []
    x = image(*x_shape)
    session = ops_session(node_model("QConv", x_shape, constants, **GRIDS, **attributes))
    expected = reference("QConv", x, constants, **attributes)
    check_bytes(session.run(None, {"x": x})[0], expected)
    assert session.get_outputs()[0].type == "tensor(uint8)"
    assert session.get_outputs()[0].shape == list(expected.shape)


@pytest.mark.exact_host
@pytest.mark.parametrize("shape", [(1, 33), (7, 33), (2, 3, 33)])
@pytest.mark.parametrize("relu", [False, True])
def test_linear(shape: tuple[int, ...], relu: bool) -> None:
    constants = [weight_bytes(19, 33), scales(19), random.standard_normal(19).astype(np.float32)]
    named = {"activation": "relu"} if relu else {}
    session = ops_session(node_model("QLinear", ["n", *shape[1:]], constants, **GRIDS, **named))
    x = image(*shape)
    result = session.run(None, {"x": x})[0]
    check_bytes(result, reference("QLinear", x, constants, relu))
    assert (result.min() >= Y_ZERO) == relu
    assert session.run(None, {"x": np.zeros((0, *shape[1:]), np.uint8)})[0].shape == (0, *shape[1:-1], 19)


def test_every_routine_by_name() -> None:
    """Each runs to the same bytes, or declines with its reason; Winograd's sums may be a step off."""
    conv, linear = [weight_bytes(16, 16, 3, 3), scales(16)], [weight_bytes(24, 32), scales(24)]
    inputs = {"conv2d": image(1, 16, 12, 12), "linear": image(5, 32)}
    results: dict[str, list[np.ndarray]] = {"conv2d": [], "linear": []}
    nearly: list[np.ndarray] = []
    errors = []
    for entry in softneuro.registry():
        layer = entry["layer"]
        if layer not in inputs or not entry["available"] or "int8" not in entry["descriptor"]:
            continue
        op, constants = ("QConv", conv) if layer == "conv2d" else ("QLinear", linear)
        model = node_model(op, inputs[layer].shape, constants, routine=entry["descriptor"], **GRIDS)
        try:
            found = nearly if "/winograd" in entry["descriptor"] else results[layer]
            found.append(ops_session(model).run(None, {"x": inputs[layer]})[0])
        except Exception as error:
            errors.append(str(error))
    assert all("declines" in error for error in errors)
    for same in results.values():
        assert same
        assert all(np.array_equal(one, same[0]) for one in same)
    assert nearly
    assert all(np.abs(one.astype(int) - results["conv2d"][0]).max() <= 1 for one in nearly)
    check_bytes(results["linear"][0], reference("QLinear", inputs["linear"], linear))


def test_sums_that_integers_of_32_bits_do_not_hold() -> None:
    """Computed otherwise, and no less right."""
    depth = 70_000
    constants = [np.full((2, depth), 127, np.int8), np.float32([1e-7, 2e-7]), np.zeros(2, np.float32)]
    x = np.full((1, depth), 255, np.uint8)
    session = ops_session(node_model("QLinear", x.shape, constants, **GRIDS))
    real = depth * 127 * X_SCALE * (255 - X_ZERO) * np.float64([1e-7, 2e-7])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [np.rint(real / Y_SCALE) + Y_ZERO])


SPECIAL = np.float32([[np.nan, np.inf, -np.inf, 1e30, -0.0, 0.01, 0.03, 0.05, -0.01, -0.03, 1e-45, 2.5, -2.37]])


@pytest.mark.parametrize("zero", [0, 117, 255])
def test_quantize_and_dequantize(zero: int) -> None:
    parameters = {"scale": X_SCALE, "zero_point": zero}
    x = np.concatenate([SPECIAL, random.standard_normal(SPECIAL.shape).astype(np.float32)])
    quantized = ops_session(node_model("Quantize", ["n", x.shape[1]], [], **parameters)).run(None, {"x": x})[0]
    steps = np.rint(np.clip(np.nan_to_num(x, nan=-np.inf), -1e6, 1e6) / np.float32(X_SCALE))
    expected = np.clip(steps + zero, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(quantized, expected)
    every = np.arange(256, dtype=np.uint8)
    back = ops_session(node_model("Dequantize", [256], [], **parameters)).run(None, {"x": every})[0]
    np.testing.assert_array_equal(back, np.float32(X_SCALE) * (every.astype(np.float32) - zero))


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_quantize_odd_shapes(shape: tuple[int, ...]) -> None:
    session = ops_session(node_model("Quantize", shape, [], scale=0.5))
    result = session.run(None, {"x": np.full(shape, 3, np.float32)})[0]
    np.testing.assert_array_equal(result, np.full(shape, 6, np.uint8))


W, S = weight_bytes(4, 3, 3, 3), scales(4)
NAN = float("nan")


def refused(op: str, constants: list[np.ndarray], **changed: Any) -> bytes:
    x: list[int] = [1, 3, 8, 8] if op != "QLinear" else [2, 5]
    parameters = GRIDS if op.startswith("Q") and op != "Quantize" else {"scale": X_SCALE}
    given = {name: value for name, value in {**parameters, **changed}.items() if value is not None}
    return node_model(op, x, constants, **given)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (refused("QConv", [W, S], x_scale=NAN), "QConv 'mine': x_scale is nan .*positive and finite"),
        (refused("QConv", [W, S], x_scale=None), "it has no attribute x_scale"),
        (refused("QConv", [W, S], x_scale=1), "its attribute x_scale is of another type"),
        (refused("QConv", [W, S], y_scale=-1.0), "y_scale is -1 .*positive and finite"),
        (refused("QConv", [W, S], y_scale=float("inf")), "y_scale is inf"),
        (refused("QConv", [W, S], x_zero_point=256), "x_zero_point is 256 .*from 0 to 255"),
        (refused("QConv", [W, S], y_zero_point=-(2**40)), "y_zero_point is -1099511627776"),
        (refused("QConv", [W, S[:3]]), "w_scale has 3 values .*one for each of 4 outputs"),
        (refused("QConv", [W, np.float32([1, 0, 1, 1])]), r"w_scale\[1\] is 0 .*positive and finite"),
        (refused("QConv", [W, S, S[:2]]), "bias"),
        (refused("QConv", [W, S[:0]]), "w_scale has 0 values"),
        (refused("QConv", [np.int8(1), S[:1]]), "w is a scalar"),
        (refused("QConv", [W[..., :0], S]), "must not be empty"),
        (refused("QConv", [W, S], strides=[1]), "strides has 1 values, not 2"),
        (refused("QConv", [W[:, :2], S]), "3 channels"),
        (refused("QConv", [W], x_scale=0.1), "(?i)input"),
        (refused("QConv", [W.astype(np.uint8), S]), "uint8"),
        (refused("QConv", [W, S], routine="conv2d/cpu:float32:nchw/direct_scalar"), "declines: does not quantize"),
        (refused("QConv", [W, S], routine="magic"), "magic"),
        (refused("QLinear", [weight_bytes(4, 6), S]), "ends in 5"),
        (refused("QLinear", [weight_bytes(4, 5), S], x_scale=0.0), "QLinear 'mine': x_scale is 0"),
        (refused("Quantize", [], scale=NAN), "Quantize 'mine': scale is nan"),
        (refused("Quantize", [], scale=None), "no attribute scale"),
        (refused("Quantize", [], zero_point=-1), "zero_point is -1 .*from 0 to 255"),
        (refused("Dequantize", [], scale=-0.5), "Dequantize 'mine': scale is -0.5"),
    ],
)
def test_what_is_refused(model: bytes, message: str) -> None:
    proto = onnx.load_from_string(model)
    kind = proto.graph.input[0].type.tensor_type
    shape = [dim.dim_value for dim in kind.shape.dim]
    dtype = np.uint8 if kind.elem_type == TensorProto.UINT8 else np.float32
    with pytest.raises(Exception, match=message):
        ops_session(model).run(None, {"x": np.zeros(shape, dtype)})
