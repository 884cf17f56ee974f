"""where: values of any kind, infinities and NaN among those not chosen; every way of broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem
from .whole import WHOLE, any_values, pair, whole


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    inputs, dtypes = pair(draw, "float32", *WHOLE)
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    kind = draw(st.sampled_from(["whole", "last", "any"]))
    own = {"whole": shape, "last": shape[-1:], "any": tuple(1 if draw(st.booleans()) else size for size in shape)}[kind]
    inputs = [any_values(draw, dtypes[0], x.shape) for x in inputs]
    return problem({}, whole(draw, "bool", own), *inputs) | {"dtypes": ["bool", *dtypes]}
