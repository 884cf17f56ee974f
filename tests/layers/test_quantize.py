"""quantize divides as IEEE floats do, at every level: where a value is next to a tie its last digit decides."""

from __future__ import annotations

import numpy as np
import pytest

from softneuro import _C

F = np.float32


@pytest.mark.parametrize("scale", [0.1, 0.0123, 1.0, 1 / 3, 1.9999999, 3e-19, 2e-18, 1e18, 3e18, 1e-38])
def test_values_next_to_ties(scale: float) -> None:
    step = F(scale)
    random = np.random.default_rng(0)
    ties = (np.arange(-300, 300) + 0.5).astype(F) * step
    near = [np.nextafter(ties, F(side)) for side in (-np.inf, np.inf)]
    x = np.concatenate([ties, *near, random.uniform(-200, 200, 4001).astype(F) * step])
    x = np.concatenate([x, F([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, 0])]).astype(F)
    with np.errstate(all="ignore"):
        steps = np.clip(np.rint(x / step) + 100, 0, 255)
    steps[np.isnan(x)] = 0
    expected = (steps - 100).astype(F) * step
    post = {"quantize": {"scale": float(step), "zero_point": 100, "least": 0, "most": 255}}
    accepted = [d for d in _C.testing.accepting("quantize", {}, {}, [x.shape], post, 1) if "convert" in d]
    assert accepted
    for descriptor in accepted:
        actual = _C.testing.run_routine("quantize", {}, {}, [x], descriptor, post, 1)
        np.testing.assert_array_equal(actual, expected, err_msg=descriptor)
