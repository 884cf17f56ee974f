"""Elements of other types at the borders of a net, bit by bit as IEEE 754 has them rounded, at every level."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro._C import Graph, Net, testing

HALVES = np.arange(1 << 16, dtype=np.uint16)


def run(x: np.ndarray[Any, Any], source: str, target: str, cast: bool = False) -> np.ndarray[Any, Any]:
    """The array in another type, by a net of nothing else."""
    graph = Graph()
    blob = graph.input("x", x.shape, source)
    graph.output(graph.add("cast", [blob]) if cast else blob, target)
    result: np.ndarray[Any, Any] = Net(graph, None, threads=2).run([x])[0]
    return result


def from_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A bfloat16 is the upper half of a float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded_to_bfloat16(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The nearest that a bfloat16 holds, of two as near the even one, as a float32."""
    bits = x.view(np.uint32)
    nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    return np.where(np.isnan(x), x, nearest)


def same(result: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Bit by bit but for what a NaN carries, which is nobody's to say."""
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    numbers, kind = ~np.isnan(expected), np.uint16 if expected.dtype == np.float16 else np.uint32
    np.testing.assert_array_equal(result.view(kind)[numbers], expected.view(kind)[numbers])


def telling_floats() -> np.ndarray[Any, Any]:
    """Whatever the sign, the exponent and the first bits, with what decides how the rest is rounded."""
    upper, low = np.arange(1 << 19, dtype=np.uint32) << 13, np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)
    return (upper[:, None] | low).reshape(-1).view(np.float32)


def check_halves() -> None:
    same(run(HALVES.view(np.float16), "float16", "float32"), HALVES.view(np.float16).astype(np.float32))
    same(run(HALVES, "bfloat16", "float32"), from_bfloat16(HALVES))
    floats = telling_floats()
    with np.errstate(over="ignore"):
        same(run(floats, "float32", "float16"), floats.astype(np.float16))
    same(from_bfloat16(run(floats, "float32", "bfloat16")), rounded_to_bfloat16(floats))


def check_integers() -> None:
    for name, values in {
        "uint8": np.arange(256, dtype=np.uint8),
        "int8": np.arange(-128, 128).astype(np.int8),
        "bool": np.array([True, False, False, True, True]),
    }.items():
        x = np.tile(values, 3)
        np.testing.assert_array_equal(run(x, name, "float32", cast=True), x.astype(np.float32))
        np.testing.assert_array_equal(run(x, name, "int64"), x.astype(np.int64))
    x = np.array([0, 1, -1, 2**24 + 1, -(2**24) - 3, 2**31 - 1, -(2**31)], np.int32)
    np.testing.assert_array_equal(run(x, "int32", "float32", cast=True), x.astype(np.float32))
    x = np.array([0, -5, 2**53 + 1, 2**63 - 1, -(2**63), 2**40 + 2**16 + 1], np.int64)
    np.testing.assert_array_equal(run(x, "int64", "float32", cast=True), x.astype(np.float32))


def check() -> None:
    """Everything, at the level of this process."""
    check_halves()
    check_integers()


@pytest.mark.parametrize("level", softneuro.available_isas())
def test_elements_become_what_ieee_754_makes_of_them(level: str) -> None:
    """All halves with their NaNs and denormals, floats on all sides of every rounding, integers to their ends."""
    code = "from tests.layers.test_convert import check; check()"
    environment = {**os.environ, "SOFTNEURO_MAX_ISA": level}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_halves_of_any_shape_by_any_routine(dtype: str, layout: str) -> None:
    """Sizes that no vector divides, dealt to several threads; exact there and back."""
    for shape in [(2, 3, 5, 7), (1, 70, 33, 41), (3, 1, 1), (5, 4, 1, 3, 2)]:
        x = np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)
        for source, target in ((dtype, "float32"), ("float32", dtype)):
            pair = f"adapt/cpu:{source}:{layout}->cpu:{target}:{layout}/convert_"
            accepted = testing.accepting("adapt", {}, {}, [shape], {}, 3)
            found = [descriptor for descriptor in accepted if descriptor.startswith(pair)]
            assert len(found) == len(softneuro.available_isas())
            for descriptor in found:
                np.testing.assert_array_equal(
                    testing.run_routine("adapt", {}, {}, [x], descriptor, {}, 3), x, descriptor
                )


def test_integers_are_converted_only_where_floats_hold_them() -> None:
    """A blob of any 64-bit integers has no way to float32 but the layer that says so."""
    shape = (3,)
    assert not any("float32" in d for d in testing.accepting("adapt", {}, {}, [shape], {}, 1, ["int64"]))
    graph = Graph()
    with pytest.raises(softneuro.Error, match="float32"):
        graph.output(graph.input("x", shape, "int64"), "float32")


def test_channels_last_halves_enter_and_leave() -> None:
    """Two steps on either side: the type, and the layout."""
    x = np.random.default_rng(0).standard_normal((2, 5, 4, 3)).astype(np.float16)
    graph = Graph()
    blob = graph.add("activation", [graph.input("x", x.shape, "cpu:float16:nhwc")], function="relu")
    graph.output(blob, "cpu:float16:nchw")
    np.testing.assert_array_equal(Net(graph, None).run([x])[0], np.maximum(x, 0))
