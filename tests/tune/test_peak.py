"""Ceilings and single timings: only that they are measured and refuse nonsense, never how fast."""

from __future__ import annotations

import numpy as np
import pytest

import softneuro
from benchmarks import shapes
from softneuro import _C, device


@pytest.mark.parametrize("isa", softneuro.available_isas())
def test_fma_peak(isa: str) -> None:
    assert device.fma_peak(isa, seconds=0.001) > 1e8


@pytest.mark.parametrize("traffic", ["read", "write", "stream"])
def test_bandwidth(traffic: str) -> None:
    assert device.bandwidth(traffic, "L1", threads=2, seconds=0.001) > 1e8


def test_nonsense_is_refused() -> None:
    with pytest.raises(softneuro.Error, match="avx1024"):
        device.fma_peak("avx1024")
    with pytest.raises(softneuro.Error, match="read, write and stream"):
        _C.measure_bandwidth("sideways", 1 << 16, 1, 0.001)


def test_one_routine_is_timed() -> None:
    weights = {"weight": np.ones((16, 32), np.float32)}
    descriptor = _C.testing.accepting("linear", {}, weights, [(4, 32)])[0]
    times = _C.RoutineTimer("linear", {}, weights, [(4, 32)], descriptor).run(3, evict=False)
    assert len(times) == 3
    assert min(times) >= 0


@pytest.mark.parametrize("name", shapes.names())
def test_shapes_are_what_the_layers_infer(name: str) -> None:
    for shape in shapes.read(name):
        graph = softneuro.Graph()
        blob = graph.input("x", shape.input)
        weight = np.broadcast_to(np.float32(0), shape.weight)
        out = graph.add(shape.type, [blob], weights={"weight": weight}, **shape.attrs)
        assert graph.shape(out) == shape.output, shape.text
        assert shape.count >= 1
