"""attention: grouped heads, masks of both kinds that broadcast, windows, caps, many blocks of keys, empty axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal

_SIZES = st.integers(1, 40) | st.sampled_from([0, 64, 127, 128, 129, 300])


def _mask(draw: st.DrawFn, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[dict[str, Any], np.ndarray, str]:
    """One that broadcasts along some of the first axes, now and then with rows of which nothing counts."""
    kept = [1 if draw(st.booleans()) else size for size in shape[:-1]]
    mask = rng.random((*kept, shape[-1])) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    if draw(st.booleans()):
        return {"mask": "keep"}, mask.astype(np.float32), "bool"
    added = normal(rng, *mask.shape)
    added[~mask] = draw(st.sampled_from([-np.inf, -100.0, np.finfo(np.float32).min]))
    return {"mask": "add", "lowest_drops": int(draw(st.booleans()))}, added, "float32"


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Everything that the layer has."""
    rng = generator(draw)
    batch, groups, each = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rows, keys = draw(_SIZES), draw(_SIZES)
    depth, width = (draw(st.integers(1, 40) | st.sampled_from([64, 80, 257])) for _ in range(2))
    heads = groups * each
    inputs = [normal(rng, batch, n, m, d) for n, m, d in ((heads, rows, depth), (groups, keys, depth))]
    inputs.append(normal(rng, batch, groups, keys, width))
    attrs: dict[str, Any] = {"rows_first": int(draw(st.booleans())), "nan_if_empty": int(draw(st.booleans()))}
    if draw(st.booleans()):
        attrs["scale"] = draw(st.sampled_from([0.1, 1.0, -0.3]))
    if draw(st.integers(0, 3)) == 0:
        attrs["softcap"] = 2.0
    if draw(st.integers(0, 3)) == 0:
        attrs["zero_nan"] = 1
    for name in ("before", "after"):
        if draw(st.integers(0, 2)) == 0:
            attrs[name] = draw(st.integers(-3, 20) | st.sampled_from([150]))
    dtypes = ["float32"] * 3
    if draw(st.booleans()):
        more, mask, dtype = _mask(draw, rng, (batch, heads, rows, keys))
        attrs.update(more)
        inputs.append(mask)
        dtypes.append(dtype)
    if draw(st.integers(0, 7)) == 0 and inputs[0].size > 0:
        inputs[0].flat[draw(st.integers(0, inputs[0].size - 1))] = draw(st.sampled_from([np.nan, np.inf]))
    return {"attrs": attrs, "weights": {}, "inputs": inputs, "dtypes": dtypes}
