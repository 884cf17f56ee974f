"""Panels of rows times weights without their zeros: bands, chunks and rows that do not come out even."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "linear" and e["available"] and "/sparse_gemm_" in e["descriptor"]
]


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("post", [{}, {"activation": "relu"}, {"residual": True, "activation": "elu", "a": 0.7}])
@pytest.mark.parametrize("rows", [2, 37, 300])
def test_bands_and_chunks(descriptor: str, post: dict[str, Any], rows: int) -> None:
    """Bands have any size. A value that is not finite makes NaN of its row where its weights are zero, of no other."""
    rng = np.random.default_rng(rows)
    weight = np.where(rng.random((70, 90)) < 0.2, rng.standard_normal((70, 90)), 0).astype(np.float32)
    weight[3] = 0
    weight[4] = 1
    weights = {"weight": weight, "bias": rng.standard_normal(70, dtype=np.float32)}
    inputs = [rng.standard_normal((rows, n), dtype=np.float32) for n in (90, 70)][: 2 if post.get("residual") else 1]
    graph = softneuro.Graph()
    blobs = [graph.input(f"x{i}", each.shape) for i, each in enumerate(inputs)]
    graph.output(graph.add("linear", blobs, weights=weights, post=post))
    for bad in (False, True):
        if bad:
            inputs[0][1, 77] = np.inf
        with np.errstate(all="ignore"):
            expected = graph.reference(inputs)[0].astype(np.float32)
        assert np.isnan(expected[1]).sum() == (0 if not bad else (weight[:, 77] == 0).sum())
        for band, chunk, split in [(1, 90, 0), (16, 7, 1), (112, 64, 0), (448, 1000, 1)]:
            params = f"{{band={band},chunk={chunk},split={split}}}"
            actual = _C.testing.run_routine("linear", {}, weights, inputs, descriptor + params, post, 3)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4, err_msg=params)


@pytest.mark.parametrize(
    ("params", "message"),
    [("{band=0,chunk=1,split=0}", "band must be"), ("{band=1,chunk=70000,split=0}", "chunk must be")],
)
def test_other_params_are_refused(params: str, message: str) -> None:
    weight = {"weight": np.zeros((32, 32), np.float32)}
    with pytest.raises(softneuro.Error, match=message):
        _C.testing.run_routine("linear", {}, weight, [np.ones((2, 32), np.float32)], ROUTINES[0] + params, {}, 1)
