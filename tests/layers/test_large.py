"""Problems of more elements than 32 bits count, which nobody has the memory to run here."""

from __future__ import annotations

import numpy as np
import pytest

from softneuro import _C

CONV = {"stride": [2], "padding": [0, 0], "dilation": [1], "groups": 1}
WEIGHTS = {"weight": np.ones((1, 1, 3), np.float32)}
NAIVE = "conv1d/cpu:float32:nchw/naive"


@pytest.mark.parametrize("length", [2**26, 2**31 + 100])
def test_references_do_not_run_large_problems(length: int) -> None:
    """They would want twice the memory of the tensors, or more, besides."""
    shapes = [(1, 1, length)]
    assert NAIVE not in _C.testing.accepting("conv1d", CONV, WEIGHTS, shapes)
    assert "too many in float64" in _C.testing.refusals("conv1d", CONV, WEIGHTS, shapes)[NAIVE]
    assert NAIVE not in _C.testing.refusals("conv1d", CONV, WEIGHTS, [(1, 1, 2**25)])
