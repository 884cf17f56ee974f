"""Models with QuantizeLinear and DequantizeLinear around their ops: every node is claimed, and steps are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, random_feeds, relative_error, whole_session
from tests.providers.quantized import Maker, check_steps, steps
from tests.providers.test_ep_context import compiled, load

OUT = 0.05  # scale of results


def unit(
    op: str,
    shape: tuple[int, ...],
    weight: Callable[[Maker], list[str]] | None = None,
    out: tuple[float, int] = (OUT, 100),
    kind: str = "UINT8",
    relu: bool = False,
    **attributes: Any,
) -> bytes:
    """x -> Q, DQ, the op with what `weight` makes, Q, DQ -> y"""
    m = Maker(opset=21)
    zero = 117 if kind == "UINT8" else -11
    x = m.qdq("x", 0.02, zero, kind)
    more = weight(m) if weight else []
    y = m.add(op, x, *more, **attributes)
    if relu:
        y = m.add("Relu", y)
    m.qdq(y, out[0], out[1] if kind == "UINT8" else out[1] - 128, kind)
    m.rename("y")
    return m.model({"x": shape}, ["y"])


def conv_weight(*shape: int, bias: bool = True, **given: Any) -> Callable[[Maker], list[str]]:
    def make(m: Maker) -> list[str]:
        w, scales = m.weight(*shape, **given)
        return [w, m.bias(shape[0], 0.02, scales)] if bias else [w]

    return make


CONV: dict[str, tuple[tuple[int, ...], Callable[[Maker], list[str]], dict[str, Any]]] = {
    "tensor": ((1, 3, 9, 8), conv_weight(4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "channel": ((2, 3, 9, 8), conv_weight(4, 3, 3, 3, axis=0), {"pads": [1, 0, 2, 1], "strides": [2, 2]}),
    "negative axis": ((2, 3, 9, 8), conv_weight(4, 3, 3, 3, axis=-4), {}),
    "pointwise": ((1, 16, 5, 6), conv_weight(32, 16, 1, 1, axis=0), {}),
    "depthwise": ((1, 6, 9, 8), conv_weight(6, 1, 3, 3, axis=0), {"group": 6, "pads": [1, 1, 1, 1]}),
    "groups": ((1, 4, 9, 8), conv_weight(6, 2, 3, 2, axis=0), {"group": 2, "dilations": [2, 1]}),
    "line": ((2, 3, 11), conv_weight(4, 3, 3, axis=0), {"pads": [1, 2]}),
    "unsigned": ((1, 3, 9, 8), conv_weight(4, 3, 3, 3, kind="UINT8", zero=128), {}),
    "unsigned aside": ((1, 3, 9, 8), conv_weight(4, 3, 3, 3, kind="UINT8", zero=101), {}),
    "zero points": ((1, 3, 9, 8), conv_weight(4, 3, 3, 3, axis=0, zero=3), {}),
    "no bias": ((1, 3, 9, 8), conv_weight(4, 3, 3, 3, axis=0, bias=False), {}),
}


@pytest.mark.exact_host
@pytest.mark.parametrize("relu", [False, True], ids=["", "relu"])
@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
@pytest.mark.parametrize("name", CONV)
def test_conv(name: str, kind: str, relu: bool) -> None:
    shape, weight, attributes = CONV[name]
    check_steps(unit("Conv", shape, weight, kind=kind, relu=relu, **attributes), OUT)


def test_conv_transpose() -> None:
    model = unit("ConvTranspose", (1, 3, 5, 4), conv_weight(3, 2, 3, 3, bias=False), strides=[2, 2], pads=[0, 1, 2, 1])
    check_steps(model, OUT)


@pytest.mark.exact_host
@pytest.mark.parametrize("axis", [None, 0, 1], ids=["tensor", "rows", "columns"])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Gemm transposed", "Gemm scaled"])
def test_products(op: str, axis: int | None) -> None:
    turned = op == "Gemm transposed"
    shape = (2, 3, 12) if op == "MatMul" else (3, 12)

    def weight(m: Maker) -> list[str]:
        w, scales = m.weight(*((7, 12) if turned else (12, 7)), axis=axis)
        if op == "MatMul" or (axis is not None and axis != (0 if turned else 1)):
            return [w]
        return [w, m.bias(7, 0.02, scales)]

    attributes = {"Gemm transposed": {"transB": 1}, "Gemm scaled": {"alpha": 0.5}}.get(op, {})
    check_steps(unit(op.split(maxsplit=1)[0], shape, weight, **attributes), OUT)


def test_product_of_two_activations() -> None:
    m = Maker()
    y = m.add("MatMul", m.qdq("a", 0.02, 120), m.qdq("b", 0.03, 7))
    m.qdq(y, OUT)
    m.rename("y")
    check_steps(m.model({"a": (2, 3, 12), "b": (2, 12, 5)}, ["y"]), OUT)


IMAGE = (2, 6, 9, 8)
ONE: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "max": ("MaxPool", IMAGE, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 0, 1]}),
    "average": ("AveragePool", IMAGE, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "average of pads": ("AveragePool", IMAGE, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    "global average": ("GlobalAveragePool", IMAGE, {}),
    "relu": ("Relu", IMAGE, {}),
    "sigmoid": ("Sigmoid", IMAGE, {}),
    "leaky": ("LeakyRelu", IMAGE, {"alpha": 0.2}),
    "hardswish": ("HardSwish", IMAGE, {}),
    "tanh": ("Tanh", IMAGE, {}),
    "softmax": ("Softmax", (3, 17), {"axis": -1}),
    "transpose": ("Transpose", IMAGE, {"perm": [0, 2, 3, 1]}),
    "flatten": ("Flatten", IMAGE, {}),
    "identity": ("Identity", IMAGE, {}),
    "depth to space": ("DepthToSpace", (1, 8, 3, 4), {"blocksize": 2}),
}


@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
@pytest.mark.parametrize("name", ONE)
def test_one_operand(name: str, kind: str) -> None:
    op, shape, attributes = ONE[name]
    small = op in ("Sigmoid", "Softmax", "Tanh")
    out = (1 / 128 if op == "Tanh" else 1 / 256, 128 if op == "Tanh" else 0) if small else (OUT, 100)
    check_steps(unit(op, shape, out=out, kind=kind, **attributes), out[0])


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_two_operands(op: str) -> None:
    """The operands have unequal scales; one of them is broadcast."""
    m = Maker()
    y = m.add(op, m.qdq("a", 0.02, 120), m.qdq("b", 0.013, 99 if op != "Div" else 255))
    m.qdq(y, OUT)
    m.rename("y")
    feeds = {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32) for name, shape in TWO.items()}
    feeds["b"] = -abs(feeds["b"]) - 1 if op == "Div" else feeds["b"]
    check_steps(m.model(TWO, ["y"]), OUT, feeds=feeds)


TWO: dict[str, tuple[int, ...]] = {"a": (2, 3, 4, 5), "b": (3, 1, 5)}


def test_a_constant_operand() -> None:
    m = Maker()
    other, _ = m.weight(3, 1, 5)
    m.qdq(m.add("Add", m.qdq("x", 0.02, 120), other), OUT)
    m.rename("y")
    check_steps(m.model({"x": (2, 3, 4, 5)}, ["y"]), OUT)


def test_joined_of_unequal_scales() -> None:
    m = Maker()
    y = m.add("Concat", m.qdq("a", 0.02, 120), m.qdq("b", 0.013, 99), m.qdq("a", 0.02, 120), axis=1)
    m.qdq(y, 0.021, 121)
    m.rename("y")
    check_steps(m.model({"a": (2, 3, 4), "b": (2, 5, 4)}, ["y"]), 0.021)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize(mode: str) -> None:
    m = Maker()
    y = m.add("Resize", m.qdq("x", 0.02, 120), "", m.constant(np.float32([1, 1, 2, 2])), mode=mode)
    m.qdq(y, 0.02, 120)
    m.rename("y")
    check_steps(m.model({"x": (1, 3, 5, 4)}, ["y"]), 0.02)


def test_pieces() -> None:
    """Sliced, split, padded, reshaped and joined again by the same scale."""
    m = Maker()
    x = m.qdq("x", 0.02, 120)
    ranges = [m.constant(np.int64([v])) for v in (1, 7, 2)]
    a, b = m.add("Split", m.qdq(m.add("Slice", x, *ranges), 0.02, 120), axis=1, num_outputs=2, outputs=2)
    padded = m.add("Pad", m.qdq(a, 0.02, 120), m.constant(np.int64([0, 0, 1, 0, 0, 0, 0, 1])))
    flat = m.add("Reshape", m.qdq(padded, 0.02, 120), m.constant(np.int64([2, -1])))
    other = m.add("Reshape", m.qdq(b, 0.02, 120), m.constant(np.int64([2, -1])))
    y = m.add("Concat", m.qdq(flat, 0.02, 120), m.qdq(other, 0.02, 120), axis=1)
    m.qdq(y, 0.02, 120)
    m.rename("y")
    check_steps(m.model({"x": (2, 4, 8, 5)}, ["y"]), 0.02)


MOVES: dict[str, Callable[[Maker, str], str]] = {
    "max": lambda m, x: m.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
    "padded max": lambda m, x: m.add("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "reshape": lambda m, x: m.add("Reshape", x, m.constant(np.int64([4, -1]))),
    "transpose": lambda m, x: m.add("Transpose", x, perm=[0, 2, 3, 1]),
    "squeeze": lambda m, x: m.add("Squeeze", x, m.constant(np.int64([0]))),
    "unsqueeze": lambda m, x: m.add("Unsqueeze", x, m.constant(np.int64([2]))),
    "flatten": lambda m, x: m.add("Flatten", x),
    "concat": lambda m, x: m.add("Concat", x, x, axis=1),
    "slice": lambda m, x: m.add("Slice", x, *[m.constant(np.int64([v])) for v in (1, 3, 2)]),
    "split": lambda m, x: m.add("Concat", *m.add("Split", x, axis=1, num_outputs=2, outputs=2)[::-1], axis=1),
    "identity": lambda m, x: m.add("Identity", x),
    "gather": lambda m, x: m.add("Gather", x, m.constant(np.int64(1)), axis=1),
    "resize": lambda m, x: m.add(
        "Resize",
        x,
        "",
        m.constant(np.float32([1, 1, 2, 2])),
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
}


@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
@pytest.mark.parametrize("name", MOVES)
def test_bytes_are_moved(name: str, kind: str) -> None:
    """Between Q and DQ; and of a graph's input, whose scale only its DQ tells, to an output of bytes."""
    zero = 117 if kind == "UINT8" else -11
    m = Maker()
    y = MOVES[name](m, m.q("x", 0.02, zero, kind))
    m.dq(y, 0.02, zero, kind)
    m.rename("y")
    check_steps(m.model({"x": (1, 4, 6, 8)}, ["y"]), 0.02, most=0)
    m = Maker()
    relu = m.add("Relu", m.dq(MOVES[name](m, "x"), 0.02, zero, kind))
    m.q(relu, 0.01, zero, kind)
    m.rename("y")
    random = np.random.default_rng(0).integers(0, 256, (1, 4, 6, 8))
    feeds = {"x": random.astype(np.uint8).view(np.uint8 if kind == "UINT8" else np.int8)}
    check_steps(m.model({"x": (1, 4, 6, 8)}, ["y"], {"x": kind, "y": kind}), 1, feeds=feeds)


@pytest.mark.parametrize("zero", [0, 7, 255])
def test_borders_are_zeros(zero: int) -> None:
    """A convolution of a padded input, as of one that was padded with the zero point before."""
    results = []
    x = np.random.default_rng(0).integers(0, 256, (1, 3, 8, 7)).astype(np.uint8)
    padded = np.pad(x, ((0, 0), (0, 0), (2, 0), (1, 1)), constant_values=zero)
    for given, pads in ((x, [2, 1, 0, 1]), (padded, [0, 0, 0, 0])):
        m = Maker()
        w, _ = m.weight(4, 3, 3, 3, axis=0)
        y = m.add("Conv", m.dq("x", 0.02, zero), w, pads=pads)
        m.qdq(y, OUT)
        m.rename("y")
        session = whole_session(m.model({"x": given.shape}, ["y"], {"x": "UINT8"}))
        results.append(session.run(None, {"x": given})[0])
    np.testing.assert_array_equal(*results)


def test_against_exact_arithmetic() -> None:
    """A product of bytes, in rationals."""
    m = Maker()
    w, scales = m.weight(40, 9, axis=1)
    m.q(m.add("MatMul", m.dq("x", 0.25, 100), w), 0.5, 90)
    m.rename("y")
    values = next(v for v in m.constants.values() if v.dtype == np.int8 and v.ndim == 2)
    session = whole_session(m.model({"x": (33, 40)}, ["y"], {"x": "UINT8", "y": "UINT8"}))
    x = np.random.default_rng(1).integers(0, 256, (33, 40)).astype(np.uint8)
    sums = (x.astype(np.int64) - 100) @ values.astype(np.int64)
    exact = sums * (0.25 * scales.astype(np.float64)) / 0.5
    right = np.clip(np.rint(exact) + 90, 0, 255)
    result = session.run(None, {"x": x})[0].astype(np.int64)
    apart = np.abs(result - right)
    tie = np.abs(exact - np.floor(exact) - 0.5) < 1e-4
    assert apart.max() <= 1
    assert not np.any(apart[~tie])


@pytest.mark.exact_host
def test_compiled_model(tmp_path: Path) -> None:
    """A saved region knows what its bytes mean, at its borders, too."""
    m = Maker()
    w, scales = m.weight(4, 3, 3, 3, axis=0)
    p = m.add("MaxPool", "x", kernel_shape=[2, 2])
    m.q(m.add("Conv", m.dq(p, 0.02, 117), w, m.bias(4, 0.02, scales)), OUT)
    m.rename("y")
    model = m.model({"x": (1, 3, 10, 8)}, ["y"], {"x": "UINT8", "y": "UINT8"})
    ours, cpu = load(compiled(model, tmp_path)), cpu_session(model)
    feeds = random_feeds(cpu)
    assert steps(ours.run(None, feeds)[0], cpu.run(None, feeds)[0], 1).max() <= 1


def verdicts(model: bytes) -> list[float]:
    """Errors that comparisons with the host have found."""
    session = providers.session(model, tune="profile", min_region_size=1, max_error=1e-9)
    found = [event["error"] for event in events(session) if event["event"] == "prepared" and "error" in event]
    assert found
    return found


def test_the_host_judges_steps_mildly() -> None:
    """Steps are no reason to leave a region to the host."""
    m = Maker()
    x = "x"
    for _ in range(4):
        w, _ = m.weight(8, 8, 3, 3, axis=0)
        x = m.qdq(m.add("Sigmoid", m.qdq(m.add("Conv", x, w, pads=[1] * 4), 0.02)), 1 / 256, 0)
    m.add("GlobalAveragePool", x)
    m.rename("y")
    model = m.model({"x": (1, 8, 12, 12)}, ["y"])
    assert not any(verdicts(model))
    feeds = random_feeds(cpu_session(model))
    ours, host = (made.run(None, feeds)[0] for made in (whole_session(model), cpu_session(model)))
    assert relative_error(ours, host) > 1e-9


def test_far_from_the_host_and_no_farther_from_the_truth() -> None:
    """What rounding leaves of averages: where they are ties, the host's is the opposite of what its float ops make."""
    m = Maker()
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    rounded = m.qdq(m.add("AveragePool", m.dq("x", 0.02, 0), **pool), 0.02, 0)
    m.add("Sub", rounded, m.add("AveragePool", m.dq("x", 0.02, 0), **pool))
    m.rename("y")
    model = m.model({"x": (1, 8, 32, 32)}, ["y"], {"x": "UINT8"})
    assert not any(verdicts(model))
    feeds = random_feeds(cpu_session(model))
    ours, host = (made.run(None, feeds)[0] for made in (whole_session(model), cpu_session(model)))
    assert relative_error(ours, host) > 0.3
