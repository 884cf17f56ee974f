"""Pairs of convolutions: what random problems do not show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

AVAILABLE = {
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "conv2d_pair" and e["available"] and not e["fallback"]
}
Problem = tuple[dict[str, Any], dict[str, np.ndarray], list[np.ndarray], dict[str, Any]]


def pair(zeros: float = 0.8, stride: int = 1, size: tuple[int, int] = (37, 45), kernel: int = 3) -> Problem:
    """3 -> 24 -> 20 channels with a residual."""
    rng = np.random.default_rng(3)
    weights = {
        "first_weight": rng.standard_normal((24, 3, kernel, kernel), dtype=np.float32),
        "first_bias": rng.standard_normal(24, dtype=np.float32),
        "second_weight": rng.standard_normal((20, 24, kernel, kernel), dtype=np.float32),
        "second_bias": rng.standard_normal(20, dtype=np.float32),
    }
    for role in ("first_weight", "second_weight"):
        weights[role][rng.random(weights[role].shape) < zeros] = 0
    pad = [kernel // 2] * 4
    attrs = {
        "first_padding": pad,
        "first_function": "relu",
        "second_padding": pad,
        "second_stride": [stride] * 2,
    }
    out = [(n + 2 * pad[0] - kernel) // stride + 1 for n in size]
    inputs = [
        rng.standard_normal((2, 3, *size), dtype=np.float32),
        rng.standard_normal((2, 20, *out), dtype=np.float32),
    ]
    return attrs, weights, inputs, {"residual": True, "activation": "relu"}


def routines(problem: Problem, threads: int = 1) -> list[str]:
    attrs, weights, inputs, post = problem
    accepted = _C.testing.accepting("conv2d_pair", attrs, weights, [x.shape for x in inputs], post, threads)
    return [d for d in accepted if "/naive" not in d]


def run(problem: Problem, descriptor: str, threads: int = 1) -> np.ndarray:
    attrs, weights, inputs, post = problem
    return _C.testing.run_routine("conv2d_pair", attrs, weights, inputs, descriptor, post, threads)


def expected(problem: Problem) -> np.ndarray:
    attrs, weights, inputs, post = problem
    graph = softneuro.Graph()
    blobs = [graph.input(f"x{i}", x.shape) for i, x in enumerate(inputs)]
    graph.output(graph.add("conv2d_pair", blobs, weights=weights, post=post, **attrs))
    with np.errstate(all="ignore"):
        return graph.reference(inputs)[0]


def tuned(descriptor: str, **params: int) -> str:
    for name, value in params.items():
        descriptor = re.sub(rf"([{{,]){name}=\d+", rf"\g<1>{name}={value}", descriptor)
    return descriptor


def one_of_each(problem: Problem, threads: int = 1) -> list[str]:
    """The first tuning of each routine."""
    return list({d.split("{")[0]: d for d in reversed(routines(problem, threads))}.values())


def test_all_routines_take_sparse_pairs() -> None:
    assert AVAILABLE
    assert {d.split("{")[0] for d in routines(pair())} == AVAILABLE


def test_two_dense_convolutions_are_no_pair() -> None:
    assert not routines(pair(zeros=0.2))


@pytest.mark.parametrize("role", ["first_weight", "second_weight"])
def test_one_of_them_may_be_dense(role: str) -> None:
    problem = pair(kernel=5)
    rng = np.random.default_rng(0)
    problem[1][role] = rng.standard_normal(problem[1][role].shape, dtype=np.float32)
    wanted = expected(problem)
    for descriptor in one_of_each(problem):
        np.testing.assert_allclose(run(problem, descriptor), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
def test_results_do_not_depend_on_threads(stride: int, kernel: int) -> None:
    """Rows at seams are computed by two tasks, in one order."""
    problem = pair(stride=stride, size=(64, 52), kernel=kernel)
    for descriptor in routines(problem, threads=3):
        wanted = run(problem, descriptor)
        for threads in (2, 3):
            np.testing.assert_array_equal(run(problem, descriptor, threads), wanted, err_msg=descriptor)


@pytest.mark.parametrize("params", [(1, 1, 0), (2, 16, 1), (3, 7, 2), (100, 1000, 0), (7, 1000, 100)])
@pytest.mark.parametrize("kernel", [3, 7])
def test_tiles_of_any_size(params: tuple[int, int, int], kernel: int) -> None:
    """Smaller than the kernel, and larger than the image."""
    problem = pair(size=(13, 19), kernel=kernel)
    wanted = expected(problem)
    for descriptor in one_of_each(problem):
        if "fused_dsconv" not in descriptor:
            continue
        one = tuned(descriptor, height=params[0], width=params[1], piece=params[2])
        for threads in (1, 3):
            np.testing.assert_allclose(run(problem, one, threads), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("band", "chunk"), [(1, 1), (3, 5), (100, 1000)])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (7, 1), (5, 2)])
def test_bands_of_any_size(band: int, chunk: int, kernel: int, stride: int) -> None:
    problem = pair(size=(13, 19), kernel=kernel, stride=stride)
    wanted = expected(problem)
    for descriptor in one_of_each(problem):
        if "fused_bands" not in descriptor:
            continue
        one = tuned(descriptor, band=band, chunk=chunk)
        for threads in (1, 3):
            np.testing.assert_allclose(run(problem, one, threads), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("stride", [1, 2])
def test_what_is_not_finite_meets_zero_weights(value: float, stride: int) -> None:
    """As a dense product has it: NaN."""
    problem = pair(zeros=0.95, stride=stride)
    problem[2][0][0, 1, 20, 17] = value
    problem[2][0][1, 2, 0, 44] = value
    wanted = expected(problem)
    assert 0 < np.isnan(wanted).sum() < wanted.size
    for descriptor in one_of_each(problem):
        np.testing.assert_array_equal(np.isnan(run(problem, descriptor, 2)), np.isnan(wanted), err_msg=descriptor)


def test_overflow_in_between_meets_zero_weights() -> None:
    """Inputs are finite; one intermediate value is not, in float32."""
    problem = pair(zeros=0.95)
    problem[1]["first_weight"][5] = 0
    problem[1]["first_weight"][5, 1, 1, 1] = 1e30
    problem[2][0][0, 1, 20, 17] = 1e30
    wanted = np.zeros((37, 45), bool)
    wanted[19:22, 16:19] = True  # of every channel: its kernel has a zero there, or a weight that makes an infinity
    zero = problem[1]["second_weight"][:, 5] == 0
    for descriptor in one_of_each(problem):
        actual = run(problem, descriptor, 2)
        assert np.isfinite(actual[:, :, ~wanted]).all(), descriptor
        for r, s in np.ndindex(3, 3):
            np.testing.assert_array_equal(np.isnan(actual[0, :, 21 - r, 18 - s]), zero[:, r, s], err_msg=descriptor)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e-42])
@pytest.mark.parametrize("role", ["first_weight", "second_weight"])
def test_odd_weights_are_no_zeros(value: float, role: str) -> None:
    problem = pair()
    problem[1][role][3, 1, 1, 1] = value
    wanted = expected(problem)
    for descriptor in one_of_each(problem):
        actual = run(problem, descriptor)
        np.testing.assert_array_equal(np.isfinite(actual), np.isfinite(wanted.astype(np.float32)), err_msg=descriptor)


def test_weights_of_zeros_only() -> None:
    problem = pair()
    for role in ("first_weight", "second_weight"):
        problem[1][role][:] = 0
    wanted = expected(problem)
    for descriptor in one_of_each(problem):
        np.testing.assert_allclose(run(problem, descriptor), wanted, rtol=1e-6)


def test_rows_beyond_most_scratch_are_declined() -> None:
    attrs, weights, _, _ = pair()
    shape = (1, 3, 4, 8_000_000)
    graph = softneuro.Graph()
    graph.output(graph.add("conv2d_pair", [graph.input("x", shape)], weights=weights, **attrs))
    for descriptor in one_of_each(pair()):
        with pytest.raises(softneuro.Error, match="256 MiB"):
            softneuro.Net(graph, [descriptor])


@pytest.mark.parametrize("change", [{"height": 0}, {"width": -1}, {"piece": -1}, {"band": 0}, {"chunk": 0}])
def test_params_out_of_range(change: dict[str, int]) -> None:
    descriptor = next(d for d in routines(pair()) if f"{next(iter(change))}=" in d)
    with pytest.raises(softneuro.Error, match="must"):
        run(pair(), tuned(descriptor, **change))


def test_workspace_is_a_few_rows() -> None:
    """Neither the intermediate map nor a matrix of windows is there: the paper's claim."""
    attrs, weights, _, _ = pair()
    shape = (1, 3, 512, 512)
    graph = softneuro.Graph()
    graph.output(graph.add("conv2d_pair", [graph.input("x", shape)], weights=weights, **attrs))
    intermediate = 24 * 512 * 512 * 4
    for descriptor in one_of_each(pair()):
        if "/cpu:float32:nchw/" not in descriptor:
            continue  # whose net converts input and output
        assert softneuro.Net(graph, [descriptor], threads=2).stats["arena_bytes"] < intermediate / 10, descriptor


def test_bands_of_more_rows_than_scratch_has_room_for() -> None:
    weights = {
        "first_weight": np.ones((2048, 1, 3, 3), np.float32),
        "second_weight": np.ones((1, 2048, 3, 3), np.float32),
    }
    for weight in weights.values():
        weight[:, ::2, 1] = weight[..., 0] = 0
    pads = {"first_padding": [1] * 4, "second_padding": [1] * 4}
    problem: Problem = (pads, weights, [np.ones((1, 1, 200, 200), np.float32)], {})
    descriptors = {d.split("{")[0] for d in routines(problem) if "fused_bands" in d}
    assert descriptors
    for descriptor in descriptors:
        run(problem, descriptor + "{band=4,chunk=16}")
        with pytest.raises(softneuro.Error, match="band=200 asks for more rows than scratch has room for"):
            run(problem, descriptor + "{band=200,chunk=16}")
