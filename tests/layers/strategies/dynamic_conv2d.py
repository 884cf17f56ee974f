"""dynamic_conv2d: the shapes of conv2d, with the grids and weights of dynamic_linear."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from . import conv2d
from .common import Problem, generator
from .dynamic_linear import GRIDS, weight


@st.composite
def problems(draw: st.DrawFn, of: st.SearchStrategy[Problem] | None = None) -> Problem:
    """Convolutions whose weights are bytes."""
    problem = draw(conv2d.problems() if of is None else of)
    shape = problem["weights"]["weight"].shape
    values, quantization = weight(draw, generator(draw), shape[0], int(np.prod(shape[1:])))
    problem["weights"]["weight"] = values.reshape(shape), quantization
    least, most = draw(st.sampled_from(GRIDS))
    attrs: dict[str, Any] = {name: draw(st.booleans()) for name in ("symmetric", "reciprocal")}
    problem["attrs"] = {**problem["attrs"], "least": least, "most": most, **attrs}
    offset, size = draw(st.sampled_from([0, 0, 3, -3])), draw(st.sampled_from([1.0, 1.0, 1e-30, 0.0]))
    problem["inputs"][0] = (problem["inputs"][0] + np.float32(offset)) * np.float32(size)
    return problem


def special() -> list[st.SearchStrategy[Problem]]:
    """What random problems seldom are."""
    return [problems(conv2d.problems(first=True)), problems(conv2d.of_padding())]
