"""Thousands of layers folded into one: its weights are made without recursion."""

import threading

import numpy as np
import pytest

import softneuro

DEPTH = 3000


def _folded(kind):
    """A net of one layer and what follows it, which the passes fold into that layer; and its outcome."""
    rng = np.random.default_rng(0)
    x, weight = rng.random((1, 4, 3, 3), np.float32), rng.random((4, 4, 1, 1), np.float32)
    graph = softneuro.Graph()
    blob = graph.input("x", x.shape)
    expected = x.astype(np.float64)
    if kind == "convolution":
        blob = graph.add("conv2d", [blob], name="conv", weights={"weight": weight}, padding=[0] * 4)
        expected = np.einsum("oi,nihw->nohw", weight[:, :, 0, 0].astype(np.float64), expected)
    else:
        weights = {"mean": np.zeros(4, np.float32), "variance": np.ones(4, np.float32)}
        blob = graph.add("batch_norm", [blob], name="norm", weights=weights, eps=1e-12)
    for index in range(DEPTH):
        function, scalar = (("mul", 0.999), ("add", 0.002))[index % 2]
        blob = graph.add("binary", [blob], name=f"step {index}", function=function, scalar=scalar)
        expected = expected * scalar if function == "mul" else expected + scalar
    graph.output(blob)
    graph.optimize()
    assert len(graph.layers()) == 1
    (result,) = softneuro.Net(graph).run([x])
    return result, expected


@pytest.mark.parametrize("kind", ["convolution", "normalisation"])
def test_a_chain_needs_no_stack(kind):
    found = []
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(_folded(kind)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    ((result, expected),) = found
    np.testing.assert_allclose(result, expected, rtol=1e-5)
