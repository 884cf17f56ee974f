"""An input that a layer of the net updates in place."""

from __future__ import annotations

import numpy as np
import pytest

import softneuro

RNG = np.random.default_rng(0)


def net_of(*, reads_before: bool = False, storage: str = "float32", threads: int = 1) -> softneuro.Net:
    """Puts two rows into a cache, and makes something of it."""
    graph = softneuro.Graph()
    cache = graph.input("cache", (2, 8, 4), f"cpu:{storage}:nchw")
    rows = graph.input("rows", (2, 2, 4))
    places = graph.input("places", (2,), "cpu:int64:nchw")
    updated = graph.add("put", [cache, rows, places], axis=1, storage=storage)
    graph.output(updated, f"cpu:{storage}:nchw")
    graph.output(graph.add("activation", [cache if reads_before else updated], function="exp"))
    return softneuro.Net(graph, threads=threads)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_output_is_the_input(threads: int) -> None:
    net, cache, rows = net_of(threads=threads), normal(2, 8, 4), normal(2, 2, 4)
    expected = cache.copy()
    expected[:, [5, 1]] = rows
    for _ in range(2):  # a run may be repeated
        updated, made = net.run([cache, rows, np.array([5, 1])])
        assert np.shares_memory(updated, cache)
        np.testing.assert_array_equal(cache, expected)
        np.testing.assert_allclose(made, np.exp(expected), rtol=1e-5)


def test_of_equal_places_the_last_counts() -> None:
    cache, rows = normal(2, 8, 4), normal(2, 2, 4)
    net_of().run([cache, rows, np.array([3, 3])])
    np.testing.assert_array_equal(cache[:, 3], rows[:, 1])


@pytest.mark.parametrize("place", [8, -1, 2**62])
def test_nothing_is_written_where_a_place_is_beyond_the_end(place: int) -> None:
    cache = normal(2, 8, 4)
    before = cache.copy()
    with pytest.raises(softneuro.Error, match="beyond"):
        net_of().run([cache, normal(2, 2, 4), np.array([0, place])])
    np.testing.assert_array_equal(cache, before)


def test_halves_stay_halves() -> None:
    """The rows are rounded, and nothing else is touched."""
    cache, rows = normal(2, 8, 4).astype(np.float16), normal(2, 2, 4)
    expected = cache.copy()
    expected[:, [5, 1]] = rows.astype(np.float16)
    updated, made = net_of(storage="float16").run([cache, rows, np.array([5, 1])])
    assert np.shares_memory(updated, cache)
    np.testing.assert_array_equal(cache, expected)
    np.testing.assert_allclose(made, np.exp(expected.astype(np.float32)), rtol=1e-5)


def test_what_is_read_afterwards_is_refused() -> None:
    with pytest.raises(softneuro.Error, match="read again afterwards"):
        net_of(reads_before=True)


def test_other_memory_than_its_own_is_refused() -> None:
    """What would be written is a conversion of the input."""
    graph = softneuro.Graph()
    cache = graph.input("cache", (2, 8, 4), "cpu:bfloat16:nchw")
    blobs = [cache, graph.input("rows", (2, 2, 4)), graph.input("places", (2,), "cpu:int64:nchw")]
    graph.output(graph.add("put", blobs, axis=1))
    with pytest.raises(softneuro.Error, match="declared to be the memory"):
        softneuro.Net(graph)
