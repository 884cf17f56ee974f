"""embedding: rows of either size of reals by either type of indices, those from the end now and then."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rows, length = draw(st.integers(1, 50)), draw(st.sampled_from([0, 1, 7, 16, 64, 100]))
    dtype, from_end = draw(st.sampled_from(["int64", "int32"])), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = rng.integers(-rows if from_end else 0, rows, draw(shapes(most=4))).astype(np.float32)
    weight: Any = values(draw, rows, length)
    kind = draw(st.sampled_from(["float32", "float16", "bfloat16"]))
    if kind == "float16":
        weight = weight.astype(np.float16)
    elif kind == "bfloat16":
        weight = ((weight.view(np.uint32) >> 16).astype(np.uint16), "bfloat16")
    return problem({"from_end": int(from_end)}, ids, weight=weight) | {"dtypes": [dtype]}
