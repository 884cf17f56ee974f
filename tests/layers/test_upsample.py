"""upsample with given neighbours: the same bits in every layout and at every level."""

from __future__ import annotations

import numpy as np

from softneuro import _C

from .strategies.upsample import taps


def test_shares_first_rounds_every_step() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 19, 5, 7), dtype=np.float32)
    rows, columns = taps(rng, 5, 23, "bilinear"), taps(rng, 7, 41, "bilinear")
    expected = np.full((2, 19, 23, 41), np.float32(-2.5))
    for i, (above, below, top, bottom) in enumerate(rows):
        for j, (left, right, near, far) in enumerate(columns):
            if above < 0 or left < 0:
                continue
            first, second = x[:, :, int(above)], x[:, :, int(below)]
            total = near * top * first[:, :, int(left)]
            total = total + far * top * first[:, :, int(right)]
            total = total + near * bottom * second[:, :, int(left)]
            expected[:, :, i, j] = total + far * bottom * second[:, :, int(right)]
    attrs = {"mode": "bilinear", "output_size": [23, 41], "shares_first": 1, "outside": -2.5}
    weights = {"rows": rows, "columns": columns}
    accepted = [d for d in _C.testing.accepting("upsample", attrs, weights, [x.shape], {}, 1) if "bilinear" in d]
    assert len(accepted) >= 3  # three layouts, at any level
    for descriptor in accepted:
        actual = _C.testing.run_routine("upsample", attrs, weights, [x], descriptor, {}, 1)
        np.testing.assert_array_equal(actual, expected, err_msg=descriptor)
