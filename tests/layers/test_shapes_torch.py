"""References of layers that move, pick or pool elements against torch, non-finite values included."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

import softneuro

if "SOFTNEURO_MAX_ISA" in os.environ:
    pytest.skip("references are the same at every level", allow_module_level=True)
torch = pytest.importorskip("torch")
functional = torch.nn.functional


def pool2d(a: dict[str, Any], x: Any) -> Any:
    top, left, bottom, right = a["padding"]
    # torch pads evenly and by at most half a kernel; its other rules do not depend on that.
    assume(top == bottom and left == right)
    assume(all(2 * p <= k for p, k in zip((top, left), a["kernel"], strict=True)))
    if a["function"] == "max":
        return functional.max_pool2d(x, a["kernel"], a["stride"], (top, left), a["dilation"], bool(a["ceil_mode"]))
    return functional.avg_pool2d(
        x, a["kernel"], a["stride"], (top, left), bool(a["ceil_mode"]), bool(a["count_include_pad"])
    )


def adaptive_pool2d(a: dict[str, Any], x: Any) -> Any:
    assume(min(a["output_size"]) > 0 and x.numel() > 0)
    function = functional.adaptive_max_pool2d if a["function"] == "max" else functional.adaptive_avg_pool2d
    return function(x, a["output_size"])


def pad(a: dict[str, Any], x: Any) -> Any:
    pads, rank = a["pads"], x.ndim
    by_axis = [(pads[axis], pads[axis + rank]) for axis in range(rank)]
    if a["mode"] == "wrap":
        for axis, (before, after) in enumerate(by_axis):
            x = x.index_select(axis, torch.arange(-before, x.shape[axis] + after) % max(x.shape[axis], 1))
        return x
    if a["mode"] != "constant":
        # torch has these modes for the last one to three axes.
        assume(rank in (3, 4, 5) and not any(v for pair in by_axis[:2] for v in pair) and x.numel() > 0)
        by_axis = by_axis[2:]
    flat = [v for pair in reversed(by_axis) for v in pair]
    return functional.pad(x, flat, a["mode"], a.get("value", 0.0) if a["mode"] == "constant" else None)


def upsample(a: dict[str, Any], x: Any) -> Any:
    assume(x.numel() > 0)
    scales = [a.get("scale_h"), a.get("scale_w")]
    if a["mode"] == "nearest":
        return torch.ops.aten.upsample_nearest2d(x, a["output_size"], *scales)
    return torch.ops.aten.upsample_bilinear2d(x, a["output_size"], bool(a["align_corners"]), *scales)


TORCH: dict[str, Callable[..., Any]] = {
    "pool2d": pool2d,
    "adaptive_pool2d": adaptive_pool2d,
    "concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "slice": lambda a, x: x[(slice(None),) * a["axis"] + (slice(a["start"], a["end"], a["step"]),)],
    "reshape": lambda a, x: x.reshape(a["shape"]),
    "transpose": lambda a, x: x.permute(a["perm"]),
    "pad": pad,
    "upsample": upsample,
    "pixel_shuffle": lambda a, x: functional.pixel_shuffle(x, a["factor"]),
    "identity": lambda a, x: x,
}


@pytest.mark.parametrize("layer", TORCH)
def test_reference_is_torch(layer: str) -> None:
    problems: st.SearchStrategy[dict[str, Any]] = importlib.import_module(f"tests.layers.strategies.{layer}").problems()

    @seed(0)
    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(problem=problems)
    def check(problem: dict[str, Any]) -> None:
        inputs, attrs = problem["inputs"], problem["attrs"]
        expected = TORCH[layer](attrs, *[torch.from_numpy(np.asarray(x)) for x in inputs]).numpy()
        graph = softneuro.Graph()
        blobs = [graph.input(f"x{i}", x.shape) for i, x in enumerate(inputs)]
        graph.output(graph.add(layer, blobs, **attrs))
        with np.errstate(all="ignore"):
            actual = graph.reference(inputs)[0].astype(np.float32)
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

    check()


BAD: list[tuple[str, dict[str, Any], list[tuple[int, ...]], str]] = [
    ("pool2d", {"function": "max", "kernel": [3, 3], "stride": [0, 1]}, [(1, 3, 8, 8)], "stride"),
    ("pool2d", {"function": "min", "kernel": [3, 3], "stride": [1, 1]}, [(1, 3, 8, 8)], "function"),
    ("pool2d", {"function": "max", "kernel": [9, 9], "stride": [1, 1]}, [(1, 3, 8, 8)], "does not fit"),
    ("pool2d", {"function": "max", "kernel": [3, 3], "stride": [1, 1]}, [(3, 8, 8)], "rank 4"),
    ("pool2d", {"function": "max", "kernel": [3], "stride": [1, 1]}, [(1, 3, 8, 8)], "2 values"),
    (
        "pool2d",
        {"function": "max", "kernel": [2, 2], "stride": [1, 1], "padding": [2, 0, 0, 0]},
        [(1, 3, 8, 8)],
        "smaller than the kernel",
    ),
    (
        "pool2d",
        {"function": "avg", "kernel": [2, 2], "stride": [1, 1], "dilation": [2, 1]},
        [(1, 3, 8, 8)],
        "dilation",
    ),
    ("adaptive_pool2d", {"function": "avg", "output_size": [1, 1]}, [(1, 3, 0, 8)], "empty"),
    ("concat", {"axis": 2}, [(1, 2), (1, 2)], "axis"),
    ("concat", {"axis": 1}, [(1, 2), (2, 2)], "differ"),
    ("concat", {"axis": 0}, [], "at least one"),
    ("slice", {"axis": 0, "start": 1, "end": 4}, [(3, 3)], "outside"),
    ("slice", {"axis": 0, "start": 0, "end": 3, "step": 0}, [(3, 3)], "step"),
    ("reshape", {"shape": [4, 2]}, [(3, 3)], "does not hold"),
    ("reshape", {"shape": [-1, 3]}, [(3, 3)], "shape"),
    ("transpose", {"perm": [0, 0]}, [(3, 3)], "permutation"),
    ("transpose", {"perm": [0, 2]}, [(3, 3)], "perm"),
    ("pad", {"mode": "reflect", "pads": [0, 3, 0, 0]}, [(3, 3)], "fit"),
    ("pad", {"mode": "replicate", "pads": [0, -1, 0, 0]}, [(3, 3)], "fit"),
    ("pad", {"mode": "constant", "pads": [-2, 0, -2, 0]}, [(3, 3)], "fit"),
    ("pad", {"mode": "circular", "pads": [0, 0, 0, 0]}, [(3, 3)], "mode"),
    ("upsample", {"mode": "bicubic", "output_size": [2, 2]}, [(1, 1, 2, 2)], "mode"),
    ("upsample", {"mode": "nearest", "output_size": [0, 2]}, [(1, 1, 2, 2)], "output_size"),
    ("pixel_shuffle", {"factor": 2}, [(1, 6, 2, 2)], "divisible"),
    ("identity", {"axis": 1}, [(1, 6)], "axis"),
    ("constant", {}, [(1, 6)], "input"),
]


@pytest.mark.parametrize(("layer", "attrs", "shapes", "message"), BAD)
def test_bad_layers_are_refused(layer: str, attrs: dict[str, Any], shapes: list[tuple[int, ...]], message: str) -> None:
    graph = softneuro.Graph()
    blobs = [graph.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    with pytest.raises(softneuro.Error, match=message):
        graph.add(layer, blobs, name="named", **attrs)
