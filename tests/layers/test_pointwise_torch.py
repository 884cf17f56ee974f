"""Element-wise, normalizing and reducing layers against torch: references and routines, special values included."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softneuro import _C, Error, Graph

torch = pytest.importorskip("torch")
F = torch.nn.functional
FloatArray = npt.NDArray[np.float32]
INF, NAN = math.inf, math.nan
LARGEST = float(np.finfo(np.float32).max)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 7.0, 90.0, -90.0, 3e38, -3e38, INF, -INF, NAN], np.float32)


def spread(shape: tuple[int, ...]) -> FloatArray:
    """Special values among ordinary ones."""
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    values.flat[: SPECIAL.size] = SPECIAL
    return values


def check(
    layer: str,
    attrs: dict[str, Any],
    weights: dict[str, FloatArray],
    inputs: list[FloatArray],
    expected: Any,
    signs: bool = False,
) -> None:
    """The reference and every routine agree with torch's float32 result, NaN and infinities in the same places.

    `signs`: that of zero matters, too.
    """
    graph = Graph()
    blobs = [graph.input(f"x{i}", x.shape) for i, x in enumerate(inputs)]
    graph.output(graph.add(layer, blobs, weights=weights, **attrs))
    with np.errstate(all="ignore"):
        reference = graph.reference(inputs)[0].astype(np.float32)
    expected = expected.numpy()
    np.testing.assert_allclose(reference, expected, rtol=2e-5, atol=2e-6, err_msg="reference")
    for descriptor in _C.testing.accepting(layer, attrs, weights, [x.shape for x in inputs]):
        actual = _C.testing.run_routine(layer, attrs, weights, inputs, descriptor)
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6, err_msg=descriptor)
        if signs:
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]), descriptor)


ACTIVATIONS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "none": ({}, lambda x: x),
    "relu": ({}, F.relu),
    "clamp": ({"a": -1.0, "b": 2.0}, lambda x: torch.clamp(x, -1, 2)),
    "leaky_relu": ({"a": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    "hardswish": ({}, F.hardswish),
    "hardsigmoid": ({}, F.hardsigmoid),
    "sigmoid": ({}, torch.sigmoid),
    "tanh": ({}, torch.tanh),
    "silu": ({}, F.silu),
    "swish": ({"a": 1.5}, lambda x: x * torch.sigmoid(1.5 * x)),
    "gelu": ({}, F.gelu),
    "gelu_tanh": ({}, lambda x: F.gelu(x, approximate="tanh")),
    "elu": ({"a": 0.7}, lambda x: F.elu(x, 0.7)),
    "softplus": ({}, F.softplus),
    "mish": ({}, F.mish),
    "exp": ({}, torch.exp),
    "log": ({}, torch.log),
    "erf": ({}, torch.erf),
}


@pytest.mark.parametrize("function", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(97,), (2, 19, 3, 5)])
def test_activation(function: str, shape: tuple[int, ...]) -> None:
    attrs, reference = ACTIVATIONS[function]
    x = spread(shape)
    # In float64, as torch's vectorised float32 has faults of its own: gelu(inf) is NaN, hardswish(3e38) is inf.
    expected = reference(torch.from_numpy(x).double()).float()
    check("activation", {"function": function, **attrs}, {}, [x], expected)


def test_elu_of_minus_zero() -> None:
    x = np.resize(np.float32([-0.0, 0.0, -1e-40, 1e-40, -1.0, 1.0, -np.inf, np.inf]), 97)
    expected = F.elu(torch.from_numpy(x).double(), 0.7).float()
    check("activation", {"function": "elu", "a": 0.7}, {}, [x], expected, signs=True)


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        ("add", torch.add),
        ("sub", torch.sub),
        ("mul", torch.mul),
        ("div", torch.div),
        ("min", torch.minimum),
        ("max", torch.maximum),
        ("pow", torch.pow),
    ],
)
def test_binary_on_all_pairs_of_special_values(function: str, reference: Callable[..., Any]) -> None:
    a, b = (np.ascontiguousarray(m) for m in np.meshgrid(SPECIAL, SPECIAL))
    check("binary", {"function": function}, {}, [a, b], reference(torch.from_numpy(a), torch.from_numpy(b)))


@pytest.mark.parametrize("exponent", [2.0, 0.5, 3.0, -1.0, -0.5, 0.0, 1.0, 1.5, -2.0, INF])
def test_power_of_a_scalar(exponent: float) -> None:
    """Where a faster way to compute it stands for it, at -0 and -infinity too."""
    x = spread((2, 17, 5))
    power = torch.pow(torch.from_numpy(x), torch.full((1,), exponent))
    check("binary", {"function": "pow", "scalar": exponent}, {}, [x], power, signs=True)


@pytest.mark.parametrize("function", ["abs", "sqrt", "rsqrt"])
def test_function_of_one_input(function: str) -> None:
    x = spread((2, 17, 5))
    check("binary", {"function": function}, {}, [x], getattr(torch, function)(torch.from_numpy(x)), signs=True)


@pytest.mark.parametrize("bounds", [(-LARGEST, LARGEST), (-INF, LARGEST), (-LARGEST, INF), (0.0, LARGEST), (1, -1)])
def test_clamp_of_infinities(bounds: tuple[float, float]) -> None:
    """The largest number bounds an infinity, alone and behind a layer that absorbs the clamp."""
    x = spread((2, 17, 5))
    least, most = bounds
    expected = torch.clamp(torch.from_numpy(x), least, most)
    check("activation", {"function": "clamp", "a": least, "b": most}, {}, [x], expected, signs=True)


@pytest.mark.parametrize("one", ["scalar", "other", "input", "reversed"])
def test_function_of_one_input_takes_no_other(one: str) -> None:
    graph = Graph()
    blobs = [graph.input(f"x{i}", (2, 3)) for i in range(2 if one == "input" else 1)]
    attrs = {one: 1} if one in ("scalar", "reversed") else {}
    weights = {"other": np.ones((2, 3), np.float32)} if one == "other" else {}
    with pytest.raises(Error, match="of one input alone"):
        graph.add("binary", blobs, weights=weights, function="sqrt", **attrs)


@pytest.mark.parametrize("scalar", [0.0, 2.5, INF, NAN])
@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "min", "max", "pow"])
def test_scalar_on_the_left(function: str, scalar: float) -> None:
    """Padding lanes of blocked layouts too: 0 / 0 must not stay there."""
    x = spread((1, 17, 5))
    functions = {"min": torch.minimum, "max": torch.maximum}
    reference = functions.get(function, getattr(torch, function))
    expected = reference(torch.tensor(scalar, dtype=torch.float32), torch.from_numpy(x))
    check("binary", {"function": function, "scalar": scalar, "reversed": 1}, {}, [x], expected)


@pytest.mark.parametrize("weights", [1, 17])
def test_prelu(weights: int) -> None:
    x, weight = spread((2, 17, 5)), spread((17,))[:weights]
    check("prelu", {}, {"weight": weight}, [x], F.prelu(torch.from_numpy(x), torch.from_numpy(weight)))


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_of_special_rows(log: int, axis: int) -> None:
    """Rows with NaN, with +inf, of -inf alone, of huge values: all as in torch."""
    rows = np.random.default_rng(1).standard_normal((8, 37)).astype(np.float32)
    rows[0, 5], rows[1, 6], rows[2, 7] = NAN, INF, -INF
    rows[3, :] = -INF
    rows[4, :] *= 1e4
    rows[5, :] = 3e38
    rows[6, 36] = NAN
    x = np.ascontiguousarray(np.moveaxis(rows[:, :, None] + np.zeros((1, 1, 19), np.float32), 1, axis))
    function = torch.log_softmax if log else torch.softmax
    check("softmax", {"axis": axis, "log": log}, {}, [x], function(torch.from_numpy(x), axis))


@pytest.mark.parametrize("function", ["mean", "sum", "amax", "amin"])
@pytest.mark.parametrize("axes", [[1], [0], [2, 3], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("keepdim", [0, 1])
def test_reduce(function: str, axes: list[int], keepdim: int) -> None:
    x = np.random.default_rng(2).standard_normal((3, 18, 5, 7)).astype(np.float32)
    x[0, 1, 2, 3], x[1, 0, 0, 0], x[1, 0, 1, 1], x[2, 17, 4, 6] = NAN, INF, -INF, -INF
    expected = getattr(torch, function)(torch.from_numpy(x), dim=axes, keepdim=bool(keepdim))
    check("reduce", {"function": function, "axes": axes, "keepdim": keepdim}, {}, [x], expected)


@pytest.mark.parametrize("function", ["mean", "sum"])
def test_reduce_of_nothing(function: str) -> None:
    x = np.zeros((2, 3, 0), np.float32)
    check("reduce", {"function": function, "axes": [2]}, {}, [x], getattr(torch, function)(torch.from_numpy(x), dim=2))


def test_norms() -> None:
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((3, 18, 7, 5)) * 3 + 2).astype(np.float32)
    x[1, 4, 2, 2] = INF
    weight, bias, mean = (rng.standard_normal(18).astype(np.float32) for _ in range(3))
    variance = rng.random(18).astype(np.float32)
    t = torch.from_numpy
    expected = F.group_norm(t(x), 6, t(weight), t(bias), 1e-5)
    check("group_norm", {"groups": 6, "eps": 1e-5}, {"weight": weight, "bias": bias}, [x], expected)
    expected = F.batch_norm(t(x), t(mean), t(variance), t(weight), t(bias), eps=1e-5)
    weights = {"mean": mean, "variance": variance, "weight": weight, "bias": bias}
    check("batch_norm", {"eps": 1e-5}, weights, [x], expected)
    weight, bias = (rng.standard_normal((7, 5)).astype(np.float32) for _ in range(2))
    expected = F.layer_norm(t(x), (7, 5), t(weight), t(bias), 1e-5)
    check("layer_norm", {"axes": 2, "eps": 1e-5}, {"weight": weight, "bias": bias}, [x], expected)


def test_norms_of_rows_far_from_zero() -> None:
    """The variance is that of the differences to the mean: no cancellation."""
    x = (np.random.default_rng(4).standard_normal((2, 4, 33, 31)) + 1e4).astype(np.float32)
    expected = F.group_norm(torch.from_numpy(x).double(), 2).float()
    for descriptor in _C.testing.accepting("group_norm", {"groups": 2, "eps": 1e-5}, {}, [x.shape]):
        actual = _C.testing.run_routine("group_norm", {"groups": 2, "eps": 1e-5}, {}, [x], descriptor)
        np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-5, atol=2e-5, err_msg=descriptor)


@pytest.mark.parametrize("function", ["mean", "sum"])
def test_long_sums_keep_their_digits(function: str) -> None:
    """Ten million terms of one sign, along rows and along columns."""
    x = np.random.default_rng(5).random(10_000_000, np.float32)
    for shape, axis in (((1, x.size), 1), ((x.size // 4, 4), 0)):
        attrs = {"function": function, "axes": [axis]}
        expected = getattr(x.reshape(shape).astype(np.float64), function)(axis=axis)
        for descriptor in _C.testing.accepting("reduce", attrs, {}, [shape]):
            actual = _C.testing.run_routine("reduce", attrs, {}, [x.reshape(shape)], descriptor)
            np.testing.assert_allclose(actual, expected, rtol=3e-7, err_msg=descriptor)


@pytest.mark.parametrize(
    ("layer", "attrs", "weights", "shapes", "message"),
    [
        ("activation", {"function": "rulu"}, {}, [(2,)], "did you mean 'relu'"),
        ("activation", {"function": "clamp", "a": NAN}, {}, [(2,)], "NaN"),
        ("binary", {"function": "adds"}, {}, [(2,), (2,)], "did you mean 'add'"),
        ("binary", {"function": "add"}, {}, [(2, 3), (4, 3)], "do not broadcast"),
        ("binary", {"function": "add"}, {}, [(2, 3)], "wants a constant operand"),
        ("binary", {"function": "add", "scalar": 1.0}, {}, [(2,), (2,)], "no place for a constant"),
        ("prelu", {}, {"weight": (3,)}, [(2, 4)], "weight"),
        ("scale_shift", {}, {"scale": (4,)}, [(2, 4)], "shift"),
        ("scale_shift", {}, {"scale": (4,), "shift": (5,)}, [(2, 4)], "has shape 5"),
        ("batch_norm", {"eps": -1.0}, {"mean": (4,), "variance": (4,)}, [(2, 4)], "eps"),
        ("batch_norm", {"eps": 0.1}, {"mean": (4,), "variance": (4,), "gamma": (4,)}, [(2, 4)], "gamma"),
        ("softmax", {"axis": 2}, {}, [(2, 4)], "axis 2"),
        ("reduce", {"function": "mean", "axes": []}, {}, [(2, 4)], "axes is empty"),
        ("reduce", {"function": "mean", "axes": [1, 1]}, {}, [(2, 4)], "given twice"),
        ("reduce", {"function": "prod", "axes": [1]}, {}, [(2, 4)], "prod"),
        ("reduce", {"function": "amax", "axes": [1]}, {}, [(2, 0)], "without elements"),
        ("layer_norm", {"axes": 3, "eps": 0.1}, {}, [(2, 4)], "axes is 3"),
        ("group_norm", {"groups": 3, "eps": 0.1}, {}, [(2, 4)], "does not divide"),
    ],
)
def test_bad_layers_are_refused(
    layer: str, attrs: dict[str, Any], weights: dict[str, Any], shapes: list[tuple[int, ...]], message: str
) -> None:
    graph = Graph()
    blobs = [graph.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    values = {role: np.ones(shape, np.float32) for role, shape in weights.items()}
    with pytest.raises(Error, match=message):
        graph.add(layer, blobs, weights=values, **attrs)
