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


def float32_adapts(shape: tuple[int, ...], threads: int) -> list[str]:
    """Conversions of layouts alone."""
    accepted = _C.testing.accepting("adapt", {}, {}, [shape], {}, threads)
    return [d for d in accepted if d.split("/")[1].count("float32") == 2]


@st.composite
def blobs(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Any rank from two on."""
    return values(draw, *draw(shapes(least=2)))


@settings(max_examples=80, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(x=blobs(), threads=st.sampled_from([1, 3]))
def test_every_conversion_is_exact(x: np.ndarray[Any, Any], threads: int) -> None:
    pairs = set()
    for descriptor in float32_adapts(x.shape, threads):
        actual = _C.testing.run_routine("adapt", {}, {}, [x], descriptor, {}, threads)
        np.testing.assert_array_equal(actual.view(np.int32), x.view(np.int32), err_msg=descriptor)
        pairs.add(descriptor.split("/")[1])
    layouts = [layout for layout in LAYOUTS if layout != "nhwc" or x.ndim >= 3]
    wanted = {(a, b) for a in layouts for b in layouts if a != b}
    plain = [layout for layout in layouts if not layout.endswith("c") or layout == "nhwc"]
    if x.ndim == 4:  # tiles are of a level's lanes: from rows, and from blocks of as many channels
        lanes = [n for n, isa in ((4, "scalar"), (8, "avx2"), (16, "avx512")) if isa in softneuro.available_isas()]
        wanted |= {pair for n in lanes for a in ("nchw", f"nchw{n}c") for pair in ((a, f"nchw{n}t"), (f"nchw{n}t", a))}
    wanted |= {pair for a in plain for pair in ((a, f"{a}_strided"), (f"{a}_strided", a))}
    assert pairs == {f"cpu:float32:{a}->cpu:float32:{b}" for a, b in wanted}


@pytest.mark.parametrize(("dtype", "values"), [("uint8", (0, 255)), ("int8", (-128, 127)), ("int64", (-9, 9))])
def test_parts_of_integers_are_gathered(dtype: str, values: tuple[int, int]) -> None:
    x = np.random.default_rng(1).integers(*values, (2, 3, 5, 7)).astype(np.float32)
    accepted = _C.testing.accepting("adapt", {}, {}, [x.shape], {}, 2, [dtype])
    gathers = [d for d in accepted if d.endswith("/gather") and d.startswith(f"adapt/cpu:{dtype}:")]
    assert len(gathers) == 2
    for descriptor in gathers:
        actual = _C.testing.run_routine("adapt", {}, {}, [x], descriptor, {}, 2, [dtype])
        np.testing.assert_array_equal(actual, x, err_msg=descriptor)


@pytest.mark.parametrize("shape", [(2, 37, 61, 43), (1, 64, 50, 50), (3, 200, 9, 9), (2, 5, 2000)])
def test_conversions_of_large_blobs(shape: tuple[int, ...]) -> None:
    """Sizes with several chunks of pixels per image, dealt to several threads."""
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    for descriptor in float32_adapts(shape, 5):
        actual = _C.testing.run_routine("adapt", {}, {}, [x], descriptor, {}, 5)
        np.testing.assert_array_equal(actual, x, err_msg=descriptor)


def test_the_best_level_comes_first() -> None:
    """Plans use the first of the routines between one pair of schemas that accepts."""
    order = {"avx512": 0, "avx2": 1, "scalar": 2}
    by_pair: dict[str, list[int]] = {}
    for entry in softneuro.registry():
        if entry["layer"] == "adapt" and "_" in entry["descriptor"].rsplit("/", 1)[1]:
            by_pair.setdefault(entry["in"] + entry["out"], []).append(order[entry["isa"]])
    # Layouts, tiles, and types to and from float32 in two layouts; fewer where not all levels are built.
    assert 60 <= len(by_pair) <= 20 + 12 + 32
    assert all(levels == sorted(levels) for levels in by_pair.values())


QUANTIZED = ["cpu:qint8:nchw", "cpu:qint8:nhwc", "float32", "cpu:float32:nhwc"]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 3, 5, 7), (2, 17, 9, 8), (1, 64, 1, 1), (3, 8, 16, 16), (1, 30, 1), (0, 4, 2, 2)]
)
def test_quantized_blobs(shape: tuple[int, ...], signed: bool) -> None:
    """Every way between bytes and floats, rows and channels side by side."""
    scale, zero_point = np.float32(0.037), 11
    stored = np.random.default_rng(0).integers(-128 if signed else 0, 128 if signed else 256, shape)
    reals = (stored - zero_point).astype(np.float32) * scale
    quantization = {
        "scale": float(scale),
        "zero_point": zero_point,
        "least": -128 if signed else 0,
        "most": 127 if signed else 255,
    }
    for source in QUANTIZED:
        for target in QUANTIZED:
            graph = softneuro.Graph()
            graph.output(graph.input("x", shape, source, quantization), target)
            given = stored.astype(np.int8 if signed else np.uint8).view(np.uint8) if "qint8" in source else reals
            (actual,) = softneuro.Net(graph, threads=2).run([given])
            if "qint8" in target:
                np.testing.assert_array_equal(np.ascontiguousarray(actual), stored.astype(np.uint8))
            else:
                np.testing.assert_array_equal(actual, reals)
