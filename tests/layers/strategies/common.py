"""What the strategies of several layer types share: arrays of drawn seeds, and post-ops."""

from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

#: attrs, weights by role, inputs with the residual last, post-ops
Problem: TypeAlias = dict[str, Any]

ACTIVATIONS = [
    {},
    {"activation": "relu"},
    {"activation": "clamp", "a": 0.0, "b": 6.0},
    {"activation": "leaky_relu", "a": 0.1},
    {"activation": "hardswish"},
    {"activation": "hardsigmoid"},
    {"activation": "sigmoid"},
    {"activation": "tanh"},
    {"activation": "silu"},
    {"activation": "swish", "a": 1.702},
    {"activation": "gelu"},
    {"activation": "gelu_tanh"},
    {"activation": "elu", "a": 0.7},
    {"activation": "softplus"},
    {"activation": "mish"},
]


def generator(draw: st.DrawFn) -> np.random.Generator:
    """A generator from a drawn seed: array contents are not worth shrinking."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """White float32 values of the shape."""
    return rng.standard_normal(shape, dtype=np.float32)


def stored(values: np.ndarray, dtype: str) -> Any:
    """A weight's values in a type, as graphs take it; NumPy has no bfloat16, which is the upper half of a float32."""
    if dtype == "bfloat16":
        return (values.view(np.uint32) >> 16).astype(np.uint16), dtype
    return values.astype(dtype)


def with_post_ops(
    draw: st.DrawFn, rng: np.random.Generator, inputs: list[np.ndarray], out_shape: tuple[int, ...]
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Inputs and post-ops with, sometimes, a residual of the output's shape and an activation.

    Now and then one element of the first input is not finite: no other output than those that depend on it may be.
    """
    post: dict[str, Any] = dict(draw(st.sampled_from(ACTIVATIONS)))
    if draw(st.booleans()):
        post["residual"] = True
        inputs = [*inputs, normal(rng, *out_shape)]
    if draw(st.integers(0, 7)) == 0 and inputs[0].size > 0 and post.get("activation", "relu") in ("relu", "clamp"):
        inputs[0].flat[draw(st.integers(0, inputs[0].size - 1))] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return inputs, post
