"""squeeze_excite: odd numbers of channels and pixels, every activation, batches, empty ones."""

from hypothesis import strategies as st

from .common import ACTIVATIONS, Problem, generator, normal, with_post_ops


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Images of at least a pixel."""
    channels = draw(st.one_of(st.integers(1, 70), st.sampled_from([96, 120, 240])))
    hidden = draw(st.one_of(st.integers(1, 40), st.sampled_from([8, 24, 64])))
    size = draw(st.one_of(st.tuples(st.integers(1, 20), st.integers(1, 20)), st.sampled_from([(7, 7), (28, 28)])))
    batch = draw(st.sampled_from([1, 1, 1, 2, 3, 0]))
    rng = generator(draw)
    weights = {
        "squeeze_weight": normal(rng, hidden, channels, 1, 1) / channels**0.5,
        "excite_weight": normal(rng, channels, hidden, 1, 1) / hidden**0.5,
    }
    attrs = {}
    for stage, outputs in (("squeeze", hidden), ("excite", channels)):
        if draw(st.booleans()):
            weights[f"{stage}_bias"] = normal(rng, outputs)
        for name, value in draw(st.sampled_from(ACTIVATIONS)).items():
            attrs[f"{stage}_{'function' if name == 'activation' else name}"] = value
    inputs = [normal(rng, batch, channels, *size)]
    inputs, post = with_post_ops(draw, rng, inputs, (batch, channels, *size))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}
