"""1x1 convolution with additions in the place of multiplications: its error, its range, where it is tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error
from tests.tune.records import records

ROUTINES = [
    entry["descriptor"]
    for entry in softneuro.registry()
    if entry["layer"] == "conv2d" and entry["available"] and "/winograd_1968_" in entry["descriptor"]
]
BLOCKS = [
    entry["descriptor"]
    for entry in softneuro.registry()
    if entry["layer"] == "depthwise_block" and entry["available"] and "/bands_adds_" in entry["descriptor"]
]
Array = np.ndarray[Any, Any]


LINEAR = [
    entry["descriptor"]
    for entry in softneuro.registry()
    if entry["layer"] == "linear" and entry["available"] and "/winograd_1968_" in entry["descriptor"]
]


def run(
    descriptor: str,
    weight: Array,
    x: Array,
    rows: int = 40,
    split: int = 0,
    threads: int = 1,
    bias: Array | None = None,
) -> Array:
    """weight [k, c], x [n, c, h, w]."""
    weights = {"weight": weight[:, :, None, None]} | ({} if bias is None else {"bias": bias})
    params = f"{{rows={rows},split={split}}}"
    out: Array = _C.testing.run_routine("conv2d", {}, weights, [x], descriptor + params, {}, threads)
    return out


def reference(weight: Array, x: Array) -> Array:
    out: Array = np.einsum("kc,ncyx->nkyx", weight.astype(np.float64), x.astype(np.float64))
    return out


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("channels", [16, 100, 576, 1500])
@pytest.mark.parametrize("least", [0, -np.inf])
def test_the_error_is_within_the_expected_one(descriptor: str, channels: int, least: float) -> None:
    """Tries samples as a relu leaves them, whose products of pairs add up, and any samples."""
    rng = np.random.default_rng(channels)
    weight = rng.standard_normal((40, channels), dtype=np.float32)
    x = np.maximum(rng.standard_normal((1, channels, 9, 9), dtype=np.float32), np.float32(least))
    weights = {"weight": weight[:, :, None, None]}
    bound = _C.testing.expected_error("conv2d", {}, weights, [x.shape], f"{descriptor}{{rows=40,split=0}}")
    assert relative_error(run(descriptor, weight, x), reference(weight, x)) < bound


@pytest.mark.parametrize("descriptor", LINEAR)
@pytest.mark.parametrize("channels", [16, 99, 1500])
@pytest.mark.parametrize("outputs", [48, 53])
def test_that_of_matrix_products_is_the_same(descriptor: str, channels: int, outputs: int) -> None:
    """Rows lie one behind the other: what follows the last channel is another row's."""
    rng = np.random.default_rng(channels)
    weights = {"weight": rng.standard_normal((outputs, channels), dtype=np.float32)}
    x = np.maximum(rng.standard_normal((37, channels), dtype=np.float32), 0)
    tuned = f"{descriptor}{{rows=20,split=0}}"
    out = _C.testing.run_routine("linear", {}, weights, [x], tuned, {}, 1)
    bound = _C.testing.expected_error("linear", {}, weights, [x.shape], tuned)
    assert relative_error(out, x.astype(np.float64) @ weights["weight"].T.astype(np.float64)) < bound


@pytest.mark.parametrize("descriptor", LINEAR)
def test_a_row_of_a_matrix_that_is_not_finite_stays_alone(descriptor: str) -> None:
    x = np.ones((20, 35), np.float32)
    x[7, 34] = np.inf
    weights = {"weight": np.ones((21, 35), np.float32)}
    finite = np.isfinite(_C.testing.run_routine("linear", {}, weights, [x], f"{descriptor}{{rows=9,split=1}}", {}, 2))
    assert not finite[7].any()
    assert finite.sum() == 19 * 21


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_pixels_and_outputs_of_any_magnitude_are_as_exact(descriptor: str) -> None:
    """Each has a scale of its own."""
    rng = np.random.default_rng(0)
    pixels = 10.0 ** rng.integers(-25, 25, (1, 1, 6, 7))
    outputs = 10.0 ** rng.integers(-12, 12, (30, 1))
    weight = (rng.standard_normal((30, 50)) * outputs).astype(np.float32)
    x = (rng.standard_normal((1, 50, 6, 7)) * pixels).astype(np.float32)
    scale = outputs[:, :, None] * pixels[0]
    error = np.abs(run(descriptor, weight, x)[0] - reference(weight, x)[0]) / scale
    assert error.max() < 1e-5  # of sums of 50 products of magnitude 1


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_pixels_and_weights_of_zero_leave_the_bias(descriptor: str) -> None:
    rng = np.random.default_rng(0)
    weight, bias = rng.standard_normal((20, 64), dtype=np.float32), rng.standard_normal(20, dtype=np.float32)
    weight[3] = 0
    x = rng.standard_normal((1, 64, 5, 5), dtype=np.float32)
    x[:, :, 2, 3] = 0
    out = run(descriptor, weight, x, bias=bias)[0]
    np.testing.assert_array_equal(out[:, 2, 3], bias)
    np.testing.assert_array_equal(out[3], np.full((5, 5), bias[3]))


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("value", [3.4e38, 1e-38, 1e-42])
def test_the_largest_and_the_smallest_values(descriptor: str, value: float) -> None:
    x = np.full((1, 32, 3, 3), value, dtype=np.float32)
    weight = np.full((17, 32), 1 / 64, dtype=np.float32)
    np.testing.assert_allclose(run(descriptor, weight, x), np.full((1, 17, 3, 3), value / 2), rtol=1e-3)


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_scales_whose_product_is_beyond_float32(descriptor: str) -> None:
    x = np.zeros((1, 4, 1, 1), dtype=np.float32)
    x[0, 0] = 2.0**100
    weight = np.array([[2.0**-20, 2.0**30, 0, 0]], dtype=np.float32)
    np.testing.assert_array_equal(run(descriptor, weight, x), np.full((1, 1, 1, 1), 2.0**80))


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_stays_in_its_pixel(descriptor: str, value: float) -> None:
    x = np.ones((1, 20, 7, 9), dtype=np.float32)
    x[0, 3, 2, 4] = value
    finite = np.isfinite(run(descriptor, np.ones((5, 20), dtype=np.float32), x)[0])
    assert not finite[:, 2, 4].any()
    assert finite.sum() == 5 * (7 * 9 - 1)


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_a_weight_that_is_not_finite_stays_in_its_output(descriptor: str) -> None:
    weight = np.ones((20, 20), dtype=np.float32)
    weight[7, 5] = np.inf
    finite = np.isfinite(run(descriptor, weight, np.ones((1, 20, 4, 4), dtype=np.float32))[0])
    assert not finite[7].any()
    assert finite.sum() == 19 * 16


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_how_work_is_cut_does_not_change_a_bit(descriptor: str) -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((150, 70), dtype=np.float32)
    x = rng.standard_normal((2, 70, 11, 13), dtype=np.float32)
    expected = run(descriptor, weight, x)
    for rows in (1, 17, 500):
        for split in (0, 1):
            for threads in (1, 2, 3):
                np.testing.assert_array_equal(run(descriptor, weight, x, rows, split, threads), expected)


def inverted_residual(channels: int, wide: int) -> tuple[dict[str, Any], dict[str, Array]]:
    rng = np.random.default_rng(channels)
    relu6 = {f"{stage}_{name}": value for stage in ("expand", "depthwise") for name, value in RELU6.items()}
    weights = {
        "expand_weight": rng.standard_normal((wide, channels, 1, 1), dtype=np.float32) / np.float32(channels**0.5),
        "expand_bias": rng.standard_normal(wide, dtype=np.float32),
        "depthwise_weight": rng.standard_normal((wide, 1, 3, 3), dtype=np.float32) / 3,
        "project_weight": rng.standard_normal((channels, wide, 1, 1), dtype=np.float32) / np.float32(wide**0.5),
    }
    return {"padding": [1, 1, 1, 1]} | relu6, weights


RELU6 = {"function": "clamp", "a": 0.0, "b": 6.0}


@pytest.mark.parametrize("descriptor", BLOCKS)
@pytest.mark.parametrize(("channels", "wide"), [(24, 144), (160, 960)])
@pytest.mark.parametrize("panels", ["expand=0,project=0", "expand=0,project=2", "expand=2,project=0"])
def test_fused_blocks_have_the_error_of_their_stages(descriptor: str, channels: int, wide: int, panels: str) -> None:
    attrs, weights = inverted_residual(channels, wide)
    x = np.random.default_rng(1).standard_normal((1, channels, 14, 14), dtype=np.float32)
    tuned = f"{descriptor}{{rows=4,{panels}}}"
    out = _C.testing.run_routine("depthwise_block", attrs, weights, [x], tuned, {}, 2)
    graph = softneuro.Graph()
    graph.output(graph.add("depthwise_block", [graph.input("x", x.shape)], weights=weights, **attrs))
    naive = graph.reference([x])[0]
    bound = _C.testing.expected_error("depthwise_block", attrs, weights, [x.shape], tuned)
    assert relative_error(out, naive) < bound + 3e-7  # of float32 between the stages


@pytest.mark.parametrize("descriptor", BLOCKS)
def test_what_is_not_finite_reaches_no_further_than_in_separate_layers(descriptor: str) -> None:
    attrs, weights = inverted_residual(24, 96)
    x = np.ones((1, 24, 12, 12), dtype=np.float32)
    x[0, 5, 6, 3] = np.inf
    tuned = f"{descriptor}{{rows=4,expand=0,project=0}}"
    finite = np.isfinite(_C.testing.run_routine("depthwise_block", attrs, weights, [x], tuned, {}, 1)[0])
    reached = np.zeros((12, 12), dtype=bool)
    reached[5:8, 2:5] = True
    assert finite[:, ~reached].all()


@pytest.mark.parametrize("descriptor", BLOCKS)
def test_how_blocks_are_cut_does_not_change_a_bit(descriptor: str) -> None:
    attrs, weights = inverted_residual(24, 96)
    x = np.random.default_rng(2).standard_normal((1, 24, 13, 11), dtype=np.float32)
    outs = [
        _C.testing.run_routine(
            "depthwise_block", attrs, weights, [x], f"{descriptor}{{rows={rows},expand=0,project=0}}", {}, threads
        )
        for rows, threads in [(2, 1), (4, 2), (13, 3)]
    ]
    np.testing.assert_array_equal(outs[0], outs[1])
    np.testing.assert_array_equal(outs[0], outs[2])


def test_blocks_refuse_panels_that_are_none() -> None:
    attrs, weights = inverted_residual(24, 96)
    x = np.ones((1, 24, 4, 4), dtype=np.float32)
    tuned = BLOCKS[0] + "{rows=2,expand=-1,project=0}"
    with pytest.raises(softneuro.Error, match=r"expand must be in \[0, "):
        _C.testing.run_routine("depthwise_block", attrs, weights, [x], tuned, {}, 1)


def test_no_rows_are_refused() -> None:
    with pytest.raises(softneuro.Error, match="rows must be positive, not 0"):
        run(ROUTINES[0], np.ones((4, 4), np.float32), np.ones((1, 4, 2, 2), np.float32), rows=0)


@pytest.mark.parametrize("strict", ["0", "1"])
def test_it_is_tried_where_additions_are_done_beside_multiply_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: str
) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    weight = rng.standard_normal((64, 64, 1, 1), dtype=np.float32)
    graph.output(graph.add("conv2d", [graph.input("x", (1, 64, 14, 14))], weights={"weight": weight}))
    _C.tune(graph, _C.parse_options({"time_budget_s": "5", "strict_nonfinite": strict}), 1)
    tried = "\n".join(record.key.descriptor for record in records(tmp_path))
    assert "conv2d/" in tried
    wanted = strict == "0" and _C.cpu_id().startswith("amd-") and "avx512" in softneuro.available_isas()
    assert ("/winograd_1968_avx512{" in tried) == wanted
    assert "/winograd_1968_avx2{" not in tried
