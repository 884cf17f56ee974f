"""Routines on quantized blobs: what is rounded to a step may be so otherwise near a tie alone.

Sums are exact but for routines that say otherwise, to which ties are as wide as their error.
"""

from __future__ import annotations

import importlib
import itertools
import os
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import softneuro
from softneuro import _C
from tests.bounds import bound
from tests.layers.strategies.sparse import repeated

TIE = 1e-4  # of a step: what float32 may err by
EXAMPLES = int(os.environ.get("SOFTNEURO_TEST_EXAMPLES", "60"))


def is_quantized(entry: dict[str, Any]) -> bool:
    return "qint8" in entry["in"] + entry["out"] and entry["layer"] != "adapt"


ENTRIES = {entry["descriptor"]: entry for entry in softneuro.registry() if is_quantized(entry)}
TYPES = sorted({entry["layer"] for entry in ENTRIES.values()})
WITH_WEIGHTS = ("conv1d", "conv2d", "conv_transpose2d", "linear")  # whose routines ask most of a problem


@st.composite
def quantizations(draw: st.DrawFn, values: np.ndarray[Any, Any], *, whole: bool = False) -> dict[str, Any]:
    """Parameters of unsigned bytes that hold some values, most of them or with room to spare."""
    least, most = draw(st.sampled_from([(0, 255), (0, 255), (0, 127)]))
    finite = values[np.isfinite(values)]
    spread = float(np.abs(finite).max()) if finite.size else 1.0
    factor = draw(st.sampled_from([1.0, 1.0, 0.4, 3.0])) if not whole else 1.0
    zero_point = draw(st.sampled_from([0, 7, 128 if most > 127 else 64, most]))
    steps = max(zero_point - least, most - zero_point)
    scale = np.float32(max(spread, 1e-3) * factor / steps)
    return {
        "scale": float(scale),
        "zero_point": zero_point,
        "least": least,
        "most": most,
        "reciprocal": draw(st.booleans()),
    }


def snapped(x: np.ndarray[Any, Any], q: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The values that are stored."""
    steps = np.clip(np.nan_to_num(np.rint(x / np.float32(q["scale"]))) + q["zero_point"], q["least"], q["most"])
    return ((steps - q["zero_point"]).astype(np.float32) * np.float32(q["scale"])).astype(np.float32)


@st.composite
def quantized_weight(
    draw: st.DrawFn, weight: np.ndarray[Any, Any], axis: int = 0
) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """Signed bytes; per tensor, or per index of an axis; now and then as large as they can be, or zero by blocks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = weight.shape[axis] if draw(st.booleans()) and weight.ndim > 0 and weight.size else 0
    scales = rng.uniform(0.001, 0.02, max(count, 1)).astype(np.float32)
    kind = draw(st.sampled_from(["any", "extreme", "small", "blocks", "blocks", "blocks"]))
    if kind == "extreme":
        values = rng.choice([-128, -127, 127], weight.shape)
    else:
        values = rng.integers(-128, 128, weight.shape) if kind == "any" else rng.integers(-60, 60, weight.shape)
    zero_in_blocks = kind == "blocks" and weight.ndim > 1
    if zero_in_blocks:
        kept = rng.random((-(-weight.shape[0] // 16), -(-weight.shape[1] // 4), *weight.shape[2:])) < 0.4
        values = np.where(repeated(kept, weight.shape, 16, 4), values, 0)
    q: dict[str, Any] = {"scale": [float(s) for s in scales], "least": -128, "most": 127}
    if count:
        q["axis"] = axis
    if not zero_in_blocks and draw(st.integers(0, 3)) == 0:
        unsigned = draw(st.booleans())
        # One, or one for each index.
        kinds = 1 if draw(st.booleans()) else max(count, 1)
        zeros = np.resize(rng.choice([-128, 3, 127], kinds), max(count, 1)) + 128 * unsigned
        q.update(least=-128 + 128 * unsigned, most=127 + 128 * unsigned, zero_point=zeros.tolist())
        return (values + 128).astype(np.uint8) if unsigned else values.astype(np.int8), q
    return values.astype(np.int8), q


@st.composite
def quantized_problems(draw: st.DrawFn, strategy: st.SearchStrategy[dict[str, Any]], layer: str) -> dict[str, Any]:
    """What another strategy makes, of quantized values."""
    problem = dict(draw(strategy))
    inputs = [np.asarray(x, np.float32) for x in problem["inputs"]]
    if layer == "look_up":
        return problem
    if layer == "quantize" and draw(st.booleans()):
        return {**problem, "dtypes": ["float32"]}
    inputs = [np.nan_to_num(x, nan=0.0, posinf=2, neginf=-2) for x in inputs]
    same = draw(st.booleans())
    params: list[Any] = []
    for i, x in enumerate(inputs):
        params.append(params[0] if same and i > 0 else draw(quantizations(x)))
    residual = problem.get("post", {}).get("residual")
    if residual and draw(st.booleans()):
        params[-1] = "float32"
    inputs = [snapped(x, q) if isinstance(q, dict) else x for x, q in zip(inputs, params, strict=True)]
    weights = dict(problem["weights"])
    if layer in WITH_WEIGHTS:
        weight = weights["weight"][0] if isinstance(weights["weight"], tuple) else weights["weight"]
        weights["weight"] = draw(quantized_weight(weight, 1 if layer == "conv_transpose2d" else 0))
    return {**problem, "inputs": inputs, "weights": weights, "dtypes": params}


def reference(layer: str, problem: dict[str, Any], post: dict[str, Any]) -> np.ndarray[Any, Any]:
    graph = softneuro.Graph()
    blobs = []
    for i, (x, q) in enumerate(zip(problem["inputs"], problem["dtypes"], strict=True)):
        quantization = q if isinstance(q, dict) else None
        schema = "cpu:qint8:nchw" if quantization else "float32"
        blobs.append(graph.input(f"x{i}", x.shape, schema, quantization))
    graph.output(graph.add(layer, blobs, weights=problem["weights"], post=post, **problem["attrs"]), "float32")
    (result,) = graph.reference(problem["inputs"])
    return np.asarray(result)


def is_clamp(post: dict[str, Any]) -> bool:
    """Others are computed in float32, from a sum that is rounded to it."""
    return post.get("activation", "relu") in ("relu", "clamp")


def check_steps(
    actual: np.ndarray[Any, Any], exact: np.ndarray[Any, Any], q: dict[str, Any], where: str, tie: float = TIE
) -> None:
    """Each is the step nearest to the exact value, or next to it where that is almost a tie."""
    scale = float(np.float32(q["scale"]))
    per_unit = float(np.float32(1) / np.float32(q["scale"])) if q["reciprocal"] else 1 / scale
    low, high = q["least"] - q["zero_point"], q["most"] - q["zero_point"]
    steps = np.clip(np.where(np.isnan(exact), low, exact * per_unit), low, high)
    taken = np.rint(actual / scale)
    distance = np.abs(taken - steps)
    assert (distance <= 0.5 + tie).all(), f"{where}: {distance.max()} steps off"
    assert ((taken >= low) & (taken <= high)).all(), where


@pytest.mark.parametrize("layer", TYPES)
def test_quantized_routines(layer: str) -> None:
    """All that accept, by turns on one and three threads, the first of an algorithm on both: the bits are the same."""
    seen: set[str] = set()
    turn = itertools.count()
    module = importlib.import_module(f"tests.layers.strategies.{layer}")

    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        strategy = module.problems() | module.quantized() if hasattr(module, "quantized") else module.problems()
        problem = data.draw(quantized_problems(strategy, layer))
        post = dict(problem.get("post", {}))
        q = post.pop("quantize", None) if layer == "look_up" else post.get("quantize")
        with np.errstate(all="ignore"):
            exact = problem["inputs"][0].astype(np.float64) if layer == "quantize" else reference(layer, problem, post)
            main = len(problem["inputs"]) - bool(post.get("residual"))
            alone = {**problem, "inputs": problem["inputs"][:main], "dtypes": problem["dtypes"][:main]}
            sums = exact if layer == "quantize" or not post else reference(layer, alone, {})
        sums = sums[np.isfinite(sums)]
        size = np.linalg.norm(sums)
        if layer == "look_up":
            post["quantize"] = q
        if layer not in ("quantize", "look_up") and data.draw(st.booleans()):
            q = data.draw(quantizations(exact.astype(np.float32)))
            post["quantize"] = q
        results: dict[str, np.ndarray[Any, Any]] = {}
        arguments, dtypes = (layer, problem["attrs"], problem["weights"]), problem["dtypes"]
        shapes, number = [x.shape for x in problem["inputs"]], next(turn)
        for parity, threads in enumerate((1, 3)):
            first_ones: set[str] = set()
            for place, descriptor in enumerate(_C.testing.accepting(*arguments, shapes, post, threads, dtypes)):
                plain = descriptor.split("{")[0]
                if plain not in ENTRIES:
                    continue
                algorithm = plain.rsplit("/", 1)[1].split("_")[0] + ENTRIES[plain]["out"].split(":")[1]
                if algorithm in first_ones and (place + number + parity) % 2:
                    continue
                first_ones.add(algorithm)
                seen.add(plain)
                actual = _C.testing.run_routine(*arguments, problem["inputs"], descriptor, post, threads, dtypes)
                kind = "bytes" if q or "qint8" in ENTRIES[plain]["out"] else "floats"
                reorders = ENTRIES[plain]["error"] == "exact"
                if q:
                    rounded = (0.0 if is_clamp(post) else 3e-7) if reorders else bound(descriptor)
                    check_steps(actual, exact, q, descriptor, TIE + rounded * np.abs(sums).max(initial=0) / q["scale"])
                elif kind == "bytes":
                    np.testing.assert_allclose(actual, exact, rtol=1e-6, atol=1e-6, err_msg=descriptor)
                else:
                    # Activations and residuals may leave little of a large sum, whose last digit is what it was.
                    noise, most = np.linalg.norm((actual - exact).ravel()), 1e-6 if reorders else bound(descriptor)
                    assert noise <= most * (np.linalg.norm(exact.ravel()) + size), descriptor
                if is_clamp(post) and reorders:
                    first = results.setdefault(algorithm, actual)
                    np.testing.assert_array_equal(actual, first, err_msg=f"{descriptor}: other bits")

    # Those with weights have many routines, each for few of the problems.
    examples = EXAMPLES * 5 if layer in WITH_WEIGHTS else EXAMPLES
    limits = settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    seed(zlib.crc32(layer.encode()))(limits(check))()
    missed = {d for d, e in ENTRIES.items() if e["layer"] == layer and e["available"]} - seen
    assert not missed or EXAMPLES < 60, f"no random problem reached {sorted(missed)}"


@pytest.mark.parametrize("layer", ["add", "mul", "depthwise"])
def test_ties_are_taken_alike_at_every_level(layer: str) -> None:
    """Where many results lie at ties in real arithmetic, the last digit of floats decides."""
    rng = np.random.default_rng(0)
    grids = [{"scale": scale, "zero_point": 100, "least": 0, "most": 255} for scale in (0.05, 0.2)]
    inputs = [snapped(rng.uniform(-5, 5, (1, 32, 40, 40)).astype(np.float32), q) for q in grids]
    attrs: dict[str, Any] = {"function": layer}
    weights: dict[str, Any] = {}
    if layer == "depthwise":
        values = rng.integers(-9, 9, (32, 1, 3, 3)).astype(np.int8)
        weights["weight"] = values, {"scale": 0.1, "least": -128, "most": 127}
        weights["bias"] = np.float32(0.1) * rng.integers(-9, 9, 32).astype(np.float32)
        attrs, inputs, grids = {"groups": 32}, inputs[:1], grids[:1]
    problem = ("conv2d" if layer == "depthwise" else "binary", attrs, weights)
    post = {"quantize": {"scale": 0.02, "zero_point": 77} if layer == "mul" else {"scale": 0.2, "zero_point": 77}}
    accepted = _C.testing.accepting(*problem, [x.shape for x in inputs], post, 1, grids)
    results = {d: _C.testing.run_routine(*problem, inputs, d, post, 1, grids) for d in accepted if d in ENTRIES}
    first = next(iter(results.values()))
    for descriptor, result in results.items():
        np.testing.assert_array_equal(result, first, err_msg=descriptor)


def test_what_leaves_the_grid_is_not_quantized() -> None:
    """A maximum, or relu, of quantized values is one of them; not with another activation behind it, nor of nothing."""
    graph = softneuro.Graph()
    x = graph.input("x", (1, 2, 3, 3), "cpu:qint8:nchw", {"scale": 0.005, "zero_point": 0})
    relu = graph.add("activation", [x], function="relu", post={"activation": "clamp", "a": 0.25, "b": 2.0})
    gaps = {"function": "max", "kernel": [1, 2], "stride": [1, 1], "padding": [0, 1, 0, 1], "dilation": [1, 4]}
    nothing = graph.add("pool2d", [x], **gaps)
    for blob in (relu, nothing):
        graph.output(blob)
    values = np.zeros((1, 2, 3, 3), np.uint8)
    clamped, pooled = softneuro.Net(graph).run([values])
    assert clamped.dtype == pooled.dtype == np.float32
    assert (clamped == 0.25).all()
    assert np.isneginf(pooled).any()
