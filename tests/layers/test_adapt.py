"""adapt: every ordered pair of layouts, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softneuro
from softneuro import _C

from .strategies.moving import shapes, values

LAYOUTS = ["nchw", "nhwc", "nchw4c", "nchw8c", "nchw16c"]


@st.composite
def blobs(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Any rank from two on."""
    return values(draw, *draw(shapes(least=2)))


@settings(max_examples=80, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(x=blobs(), threads=st.sampled_from([1, 3]))
def test_every_conversion_is_exact(x: np.ndarray[Any, Any], threads: int) -> None:
    pairs = set()
    for descriptor in _C.testing.accepting("adapt", {}, {}, [x.shape], {}, threads):
        actual = _C.testing.run_routine("adapt", {}, {}, [x], descriptor, {}, threads)
        np.testing.assert_array_equal(actual.view(np.int32), x.view(np.int32), err_msg=descriptor)
        pairs.add(descriptor.split("/")[1])
    layouts = [layout for layout in LAYOUTS if layout != "nhwc" or x.ndim >= 3]
    assert pairs == {f"cpu:float32:{a}->{b}" for a in layouts for b in layouts if a != b}


@pytest.mark.parametrize("shape", [(2, 37, 61, 43), (1, 64, 50, 50), (3, 200, 9, 9), (2, 5, 2000)])
def test_conversions_of_large_blobs(shape: tuple[int, ...]) -> None:
    """Sizes with several chunks of pixels per image, dealt to several threads."""
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    for descriptor in _C.testing.accepting("adapt", {}, {}, [shape], {}, 5):
        actual = _C.testing.run_routine("adapt", {}, {}, [x], descriptor, {}, 5)
        np.testing.assert_array_equal(actual, x, err_msg=descriptor)


def test_the_best_level_comes_first() -> None:
    """Of the routines between one pair of schemas, the first that accepts is the one that plans use."""
    order = {"avx512": 0, "avx2": 1, "scalar": 2}
    by_pair: dict[str, list[int]] = {}
    for entry in softneuro.registry():
        if entry["layer"] == "adapt" and not entry["descriptor"].endswith("/view"):
            by_pair.setdefault(entry["in"] + entry["out"], []).append(order[entry["isa"]])
    assert len(by_pair) == 20
    assert all(levels == sorted(levels) for levels in by_pair.values())
