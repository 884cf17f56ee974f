"""activation: every function, any shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import normal, random, shapes, with_post

FUNCTIONS: list[dict[str, Any]] = [
    {"function": "none"},
    {"function": "relu"},
    {"function": "clamp", "a": 0.0, "b": 6.0},
    {"function": "clamp", "a": 0.5, "b": 1.0},
    {"function": "clamp", "a": 1.0, "b": -1.0},
    {"function": "leaky_relu", "a": 0.01},
    {"function": "hardswish"},
    {"function": "hardsigmoid"},
    {"function": "sigmoid"},
    {"function": "tanh"},
    {"function": "silu"},
    {"function": "swish", "a": 1.702},
    {"function": "swish", "a": -0.5},
    {"function": "gelu"},
    {"function": "gelu_tanh"},
    {"function": "elu", "a": 1.5},
    {"function": "softplus"},
    {"function": "mish"},
    {"function": "exp"},
    {"function": "log"},
    {"function": "erf"},
]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng, shape = random(draw), draw(shapes())
    scale = draw(st.sampled_from([0.01, 1, 4, 30]))
    x = normal(rng, shape) * scale
    return with_post(draw, rng, {"attrs": draw(st.sampled_from(FUNCTIONS)), "weights": {}, "inputs": [x]}, shape)
