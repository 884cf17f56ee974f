"""Three or six products of bfloat16 for one of float32: their error, their range, where they are tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error
from tests.tune.records import records


def routines(layer: str) -> list[str]:
    available = [e["descriptor"] for e in softneuro.registry() if e["available"] and e["layer"] == layer]
    return [descriptor for descriptor in available if "/bf16x" in descriptor]


ROUTINES = routines("conv2d")
FIRST = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["available"] and e["layer"] == "conv2d" and "/first_bf16x" in e["descriptor"]
]
Array = np.ndarray[Any, Any]


def run(layer: str, descriptor: str, weight: Array, x: Array, attrs: dict[str, Any] | None = None) -> Array:
    out: Array = _C.testing.run_routine(
        layer, attrs or {}, {"weight": weight}, [x], f"{descriptor}{{rows=5,split=0,panel=2,depth=0}}", {}, 1
    )
    return out


def convolve(descriptor: str, weight: Array, x: Array, attrs: dict[str, Any] | None = None) -> Array:
    return run("conv2d", descriptor, weight, x, attrs)


def check_error(descriptor: str, result: Array, expected: Array) -> None:
    error = relative_error(result, expected)
    if "bf16x3" in descriptor:
        assert 2e-6 < error < 5e-6  # the expected one; far below it would be another algorithm
    else:
        assert error < 1.5e-6  # six times as many sums as a float32 sum of products has


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("channels", [16, 160, 640])
def test_the_error_is_as_expected_and_does_not_grow_with_the_sum(descriptor: str, channels: int) -> None:
    rng = np.random.default_rng(channels)
    weight = rng.standard_normal((48, channels, 1, 1), dtype=np.float32)
    x = rng.standard_normal((1, channels, 9, 9), dtype=np.float32)
    expected = np.einsum("kc,cyx->kyx", weight[:, :, 0, 0].astype(np.float64), x[0].astype(np.float64))
    check_error(descriptor, convolve(descriptor, weight, x)[0], expected)


@pytest.mark.parametrize("descriptor", routines("linear"))
@pytest.mark.parametrize("channels", [16, 163, 640])
def test_that_of_matrix_products_is_the_same(descriptor: str, channels: int) -> None:
    rng = np.random.default_rng(channels)
    weight = rng.standard_normal((47, channels), dtype=np.float32)
    x = rng.standard_normal((40, channels), dtype=np.float32)
    check_error(descriptor, run("linear", descriptor, weight, x), x.astype(np.float64) @ weight.T.astype(np.float64))


@pytest.mark.parametrize("descriptor", [d for d in routines("linear") if "bf16x6" in d])
@pytest.mark.parametrize("channels", [16, 160, 1000])
def test_six_products_err_as_the_sums_alone(descriptor: str, channels: int) -> None:
    """By tiles less than a direct sum of float32 products, each rounded: 4e-8 at 16 channels, 2.5e-7 at 1000."""
    rng = np.random.default_rng(channels)
    weight = rng.standard_normal((48, channels), dtype=np.float32)
    x = rng.standard_normal((40, channels), dtype=np.float32)
    expected = x.astype(np.float64) @ weight.T.astype(np.float64)
    error = relative_error(run("linear", descriptor, weight, x), expected)
    tuning = f"{descriptor}{{rows=32,split=0,panel=2,depth=0}}"
    assert error < 1.2 * _C.testing.expected_error("linear", {}, {"weight": weight}, [x.shape], tuning)


@pytest.mark.parametrize(("layer", "kernel"), [("linear", ()), ("conv2d", (1, 1)), ("conv2d", (3, 2))])
@pytest.mark.parametrize("parts", ["bf16x3", "bf16x6"])
@pytest.mark.parametrize("channels", [64, 163])
@pytest.mark.parametrize("panel", [1, 2])
def test_depths_are_added_up(layer: str, kernel: tuple[int, ...], parts: str, channels: int, panel: int) -> None:
    """Bias and residual once, the activation at last."""
    rng = np.random.default_rng(channels)
    size = () if layer == "linear" else (7, 5)
    weights = {
        "weight": rng.standard_normal((47, channels, *kernel), dtype=np.float32),
        "bias": rng.standard_normal(47, dtype=np.float32),
    }
    x = rng.standard_normal((2, *size, channels) if layer == "linear" else (2, channels, *size), dtype=np.float32)
    attrs = {"padding": [0, 0, kernel[0] - 1, kernel[1] - 1]} if kernel else {}
    residual = rng.standard_normal((2, *size, 47) if layer == "linear" else (2, 47, *size), dtype=np.float32)
    post = {"activation": "relu", "residual": True}
    naive = next(e["descriptor"] for e in softneuro.registry() if e["layer"] == layer and "naive" in e["descriptor"])
    expected = _C.testing.run_routine(layer, attrs, weights, [x, residual], naive, post, 1)
    for descriptor in (d for d in routines(layer) if parts in d):
        params = f"{{rows=3,split=0,panel={panel},depth=32}}"
        out = _C.testing.run_routine(layer, attrs, weights, [x, residual], descriptor + params, post, 1)
        assert (out >= 0).all()
        check_error(descriptor, out, expected)


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_a_depth_that_splits_a_block_is_refused(descriptor: str) -> None:
    x = np.ones((1, 64, 2, 2), np.float32)
    weights = {"weight": np.ones((1, 64, 1, 1), np.float32)}
    with pytest.raises(softneuro.Error, match="depth must be a multiple of"):
        _C.testing.run_routine("conv2d", {}, weights, [x], f"{descriptor}{{rows=5,split=0,panel=2,depth=20}}", {}, 1)


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_values_near_the_largest_stay_finite(descriptor: str) -> None:
    largest = np.finfo(np.float32).max
    x = np.array([largest, -largest, 3.395e38, 1e30, 1.0], dtype=np.float32).reshape(1, 1, 1, 5)
    weight = np.full((1, 1, 1, 1), 0.5, dtype=np.float32)
    np.testing.assert_allclose(convolve(descriptor, weight, x), x / 2, rtol=1e-4 if "bf16x3" in descriptor else 1e-6)


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_stays_where_it_reaches(descriptor: str, value: float) -> None:
    x = np.ones((1, 20, 7, 9), dtype=np.float32)
    x[0, 3, 2, 4] = value
    attrs = {"padding": [1, 1, 1, 1]}
    out = convolve(descriptor, np.ones((5, 20, 3, 3), dtype=np.float32), x, attrs)
    reached = np.zeros((7, 9), dtype=bool)
    reached[1:4, 3:6] = True
    assert not np.isfinite(out[0][:, reached]).any()
    assert np.isfinite(out[0][:, ~reached]).all()


def convolve_first(descriptor: str, weight: Array, x: Array, attrs: dict[str, Any]) -> Array:
    out: Array = _C.testing.run_routine("conv2d", attrs, {"weight": weight}, [x], f"{descriptor}{{rows=2}}", {}, 1)
    return out


@pytest.mark.parametrize("descriptor", FIRST)
@pytest.mark.parametrize(
    ("shape", "padding", "stride"),
    [((20, 3, 7, 7), 3, 2), ((64, 3, 3, 3), 1, 1), ((5, 4, 11, 2), 6, 3), ((16, 1, 1, 19), 9, 1)],
)
def test_first_layers_err_as_much(descriptor: str, shape: tuple[int, ...], padding: int, stride: int) -> None:
    rng = np.random.default_rng(padding)
    weight = rng.standard_normal(shape, dtype=np.float32)
    x = rng.standard_normal((1, shape[1], 37, 41), dtype=np.float32)
    attrs = {"padding": [padding] * 4, "stride": [stride, stride]}
    out = convolve_first(descriptor, weight, x, attrs)
    rows, columns = (
        range(0, size - kernel + 1, stride)
        for size, kernel in zip((37 + 2 * padding, 41 + 2 * padding), shape[2:], strict=True)
    )
    image = np.pad(x[0].astype(np.float64), ((0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(image, shape[2:], axis=(1, 2))[:, rows][:, :, columns]
    check_error(descriptor, out[0], np.einsum("kcrs,cyxrs->kyx", weight.astype(np.float64), windows))


@pytest.mark.parametrize("descriptor", FIRST)
@pytest.mark.parametrize("value", [np.nan, np.inf, np.finfo(np.float32).max])
def test_such_a_sample_of_a_first_layer_reaches_its_windows_alone(descriptor: str, value: float) -> None:
    x = np.ones((1, 3, 24, 40), dtype=np.float32)
    x[0, 1, 10, 20] = value
    out = convolve_first(descriptor, np.full((5, 3, 3, 3), 0.5, np.float32), x, {"padding": [1, 1, 1, 1]})[0]
    reached = np.zeros((24, 40), dtype=bool)
    reached[9:12, 19:22] = True
    if np.isfinite(value):
        np.testing.assert_allclose(out[:, reached], value / 2, rtol=1e-4)
    else:
        assert not np.isfinite(out[:, reached]).any()
    assert (np.abs(out[:, ~reached]) <= 13.5).all()


def test_it_is_tried_only_where_there_are_instructions_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    x = graph.input("x", (1, 64, 14, 14))
    weight = rng.standard_normal((64, 64, 3, 3), dtype=np.float32)
    graph.output(graph.add("conv2d", [x], weights={"weight": weight}, padding=[1, 1, 1, 1]))
    _C.tune(graph, _C.parse_options({"time_budget_s": "5"}), 1)
    tried = "\n".join(record.key.descriptor for record in records(tmp_path))
    assert "conv2d/" in tried
    assert [d for d in ROUTINES if f"{d}{{" in tried] == [d for d in ROUTINES if d.endswith("_amx")]
