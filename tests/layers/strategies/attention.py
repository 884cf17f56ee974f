"""attention: grouped heads, masks that broadcast, lengths, windows, caps, sinks, many blocks of keys, empty axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal

_SIZES = st.integers(1, 40) | st.sampled_from([0, 64, 127, 128, 129, 300])


#: dtypes of what comes behind queries, keys and values: a mask, lengths
_FORMS = [(), ("bool",), ("float32",), ("int64",), ("bool", "int64"), ("float32", "int64")]


def _mask(
    draw: st.DrawFn, rng: np.random.Generator, shape: tuple[int, ...], dtype: str
) -> tuple[dict[str, Any], np.ndarray]:
    """One that broadcasts along some of the first axes, now and then with rows of which nothing counts."""
    kept = [1 if draw(st.booleans()) else size for size in shape[:-1]]
    mask = rng.random((*kept, shape[-1])) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    if dtype == "bool":
        return {"mask": "keep"}, mask.astype(np.float32)
    added = normal(rng, *mask.shape)
    added[~mask] = draw(st.sampled_from([-np.inf, -100.0, np.finfo(np.float32).min]))
    return {"mask": "add", "lowest_drops": int(draw(st.booleans()))}, added


@st.composite
def problems(draw: st.DrawFn, form: tuple[str, ...] | None = None) -> Problem:
    """Everything that the layer has."""
    rng = generator(draw)
    form = draw(st.sampled_from(_FORMS)) if form is None else form
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
    if form and form[0] != "int64":
        more, mask = _mask(draw, rng, (batch, heads, rows, keys), form[0])
        attrs.update(more)
        inputs.append(mask)
    if "int64" in form:
        inputs.append(rng.integers(0, keys + 1, batch).astype(np.float32))
        attrs["at_end"], attrs["stops"] = int(draw(st.booleans())), int(draw(st.booleans()))
    weights = {"sinks": 3 * normal(rng, heads)} if draw(st.integers(0, 3)) == 0 else {}
    if draw(st.integers(0, 7)) == 0 and inputs[0].size > 0:
        inputs[0].flat[draw(st.integers(0, inputs[0].size - 1))] = draw(st.sampled_from([np.nan, np.inf]))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "dtypes": ["float32"] * 3 + list(form)}


def special() -> list[st.SearchStrategy[Problem]]:
    """Some of every form, which routines of their own compute."""
    return [problems(form) for form in _FORMS]
