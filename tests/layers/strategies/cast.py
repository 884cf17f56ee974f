"""cast: integers and booleans of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes

RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "bool": (0, 1),
    "int32": (-(2**24), 2**24),
    "int64": (-(2**24), 2**24),
}


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape, dtype = draw(shapes()), draw(st.sampled_from(sorted(RANGES)))
    least, most = RANGES[dtype]
    values = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(least, most + 1, shape)
    return problem({}, values.astype(np.float32)) | {"dtypes": [dtype]}
